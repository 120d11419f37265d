//! Programs that leave by ports of their own, as one, and apart again.

use crate::program::{Lane, Program, Stream};
use crate::schedule::Schedule;

impl Program {
    /// Programs that leave by ports of their own: the first by port 0, and so on. Each keeps its lanes, and so its times; their
    /// signed streams keep their numbers.
    pub fn of_ports(programs: impl IntoIterator<Item = Program>) -> Program {
        let mut whole = Program { streams: Vec::new(), lanes: Vec::new() };
        for (port, program) in (0..=u8::MAX).zip(programs) {
            let before = whole.streams.len() as u32;
            whole.streams.extend(program.streams.into_iter().map(|stream| Stream { port, ..stream }));
            whole.lanes.extend(program.lanes.into_iter().map(|lane| Lane {
                order: lane.order.iter().map(|stream| before + stream).collect(),
                ..lane
            }));
        }
        whole
    }

    /// What of it leaves by `port`: its streams, and the lanes that have no other.
    pub fn at_port(&self, port: u8) -> Program {
        let mut numbers = vec![None; self.streams.len()];
        let mut streams = Vec::new();
        for (number, stream) in numbers.iter_mut().zip(&self.streams).filter(|(_, s)| s.port == port) {
            *number = Some(streams.len() as u32);
            streams.push(stream.clone());
        }
        let own = |lane: &Lane| -> Option<Lane> {
            let order = lane.order.iter().map(|stream| *numbers.get(*stream as usize)?);
            Some(Lane { order: order.collect::<Option<_>>()?, ..lane.clone() })
        };
        Program { lanes: self.lanes.iter().filter_map(own).collect(), streams }
    }

    /// The same with the numbers of signed streams raised by `first`.
    pub fn numbered_from(mut self, first: u32) -> Program {
        for number in self.streams.iter_mut().filter_map(|stream| stream.signature.as_mut()) {
            *number = number.saturating_add(first);
        }
        self
    }

    /// The number behind the last one of its signed streams.
    pub fn numbers(&self) -> u32 {
        self.streams
            .iter()
            .filter_map(|stream| stream.signature)
            .max()
            .map_or(0, |most| most.saturating_add(1))
    }

    /// Streams of several programs that take turns, a frame of each and so on, by `schedule`. A program of several lanes has
    /// no part in it but its first lane's.
    pub fn in_turn(programs: Vec<Program>, schedule: Schedule) -> Program {
        let mut streams = Vec::new();
        let mut orders: Vec<Vec<u32>> = Vec::new();
        for program in programs {
            let before = streams.len() as u32;
            let order = program.lanes.first().map(|lane| lane.order.iter().map(|s| before + s).collect());
            orders.extend(order);
            streams.extend(program.streams);
        }
        let longest = orders.iter().map(Vec::len).max().unwrap_or(0);
        let turns = (0..longest).flat_map(|turn| {
            orders.iter().filter_map(move |order| order.get(turn % order.len().max(1)).copied())
        });
        let order: Vec<u32> = turns.collect();
        Program::interleaved(streams, order, schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, number: u32, per_ns: u64) -> Program {
        let stream = Stream { signature: Some(number), ..Stream::of(name, &[0; 60]) };
        Program::single(stream).with_schedule(Schedule::Frames { frames: 1, per_ns })
    }

    #[test]
    fn programs_of_several_ports_come_apart_as_they_were() {
        let parts = [program("a", 3, 100), program("b", 4, 200), program("c", 9, 300)];
        let whole = Program::of_ports(parts.clone());
        assert!(whole.check().is_ok() && whole.has_ports());
        assert_eq!((whole.numbers(), whole.lanes.len()), (10, 3));
        for (port, part) in parts.iter().enumerate() {
            let own = whole.at_port(port as u8);
            assert!(own.check().is_ok());
            assert_eq!(own.streams[0].name, part.streams[0].name);
            assert_eq!(own.lanes[0].schedule, part.lanes[0].schedule);
        }
        assert!(whole.at_port(3).lanes.is_empty());
        assert_eq!(parts[1].clone().numbered_from(10).streams[0].signature, Some(14));
    }

    #[test]
    fn streams_take_turns_a_frame_of_each() {
        let schedule = Schedule::Frames { frames: 1, per_ns: 50 };
        let parts = ["a", "b", "c"].map(|name| program(name, 0, 100));
        let turns = Program::in_turn(parts.into(), schedule.clone());
        assert!(turns.check().is_ok());
        assert_eq!((&turns.lanes[0].order[..], &turns.lanes[0].schedule), (&[0, 1, 2][..], &schedule));
    }
}
