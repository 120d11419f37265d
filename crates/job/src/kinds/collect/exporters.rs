//! Exporters of datagrams: who they are, and who gives way when there are too many.
//!
//! Anybody can send a datagram from any port. So an exporter is only who sends what begins as a message; those that say nothing for
//! long are forgotten; and where there is no room those give way that have been silent longest, with some patience for each message
//! that they sent. What was counted of them stays in the result, by their addresses.

use super::receive::{Came, Exporter};
use flow::collect::{Counters, MOST_EXPORTERS, Room, Session, is_message};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

const SECOND: u64 = 1_000_000_000;
/// Who says nothing for so long is forgotten: four times what exporters leave between two templates.
const SILENT_S: u64 = 7_200;
/// Exporters and what they keep are looked at this often, for what is too old.
const LOOK_S: u64 = 60;
/// Of all exporters so many give way at once, so that not each new one looks for who does.
const GIVE_WAY: usize = MOST_EXPORTERS / 16;
/// Each message outweighs so many seconds of silence, up to so many messages.
const PATIENCE_S: u64 = 10;
const MOST_MESSAGES: u64 = 64;

/// In a result: whose addresses had no room, and datagrams that are no messages. They are no exporter.
pub const OTHERS: &str = "(others)";

struct Live {
    exporter: Exporter,
    heard_s: u64,
}

impl Live {
    /// Who has the least gives way first.
    fn weight(&self) -> u64 {
        let counters = self.exporter.session.counters();
        let sound = counters.messages.saturating_sub(counters.malformed);
        self.heard_s + PATIENCE_S * sound.min(MOST_MESSAGES)
    }
}

/// Exporters of one receiver.
pub struct Exporters {
    most: usize,
    live: HashMap<SocketAddr, Live>,
    /// Of those that are forgotten, by their addresses,
    past: HashMap<IpAddr, Came>,
    /// of those whose addresses had no room, and of datagrams that are no messages.
    others: Came,
    /// What came before of all that is forgotten.
    forgotten: u64,
    looked_s: u64,
}

impl Exporters {
    pub fn new() -> Exporters {
        Exporters::of(MOST_EXPORTERS)
    }

    fn of(most: usize) -> Exporters {
        Exporters {
            most,
            live: HashMap::new(),
            past: HashMap::new(),
            others: Came::default(),
            forgotten: 0,
            looked_s: 0,
        }
    }

    /// Who sent this datagram. `None`: nobody that an exporter would be, which is counted. `now_ns` is by a clock that only goes on.
    pub fn find(
        &mut self,
        from: SocketAddr,
        message: &[u8],
        now_ns: u64,
        room: &mut Room,
        new: impl FnOnce() -> Session,
    ) -> Option<&mut Exporter> {
        let heard_s = now_ns / SECOND;
        if !self.live.contains_key(&from) {
            if !is_message(message) {
                self.nobodys(message);
                return None;
            }
            if self.live.len() >= self.most {
                self.give_way(room);
            }
        }
        let live = self.live.entry(from).or_insert_with(|| Live { exporter: Exporter::new(new()), heard_s });
        live.heard_s = heard_s;
        live.exporter.session.at(now_ns);
        Some(&mut live.exporter)
    }

    /// A datagram that nobody sent who would be an exporter.
    pub fn nobodys(&mut self, message: &[u8]) {
        let counters = &mut self.others.counters;
        counters.messages += 1;
        counters.bytes += message.len() as u64;
        counters.malformed += 1;
    }

    /// Those that have been silent longest are forgotten.
    fn give_way(&mut self, room: &mut Room) {
        let mut all: Vec<(u64, SocketAddr)> =
            self.live.iter().map(|(from, live)| (live.weight(), *from)).collect();
        let count = GIVE_WAY.min(self.most / 16).max(1).min(all.len());
        if count < all.len() {
            all.select_nth_unstable(count);
        }
        for (_, from) in all.into_iter().take(count) {
            self.forget(from, room);
        }
    }

    fn forget(&mut self, from: SocketAddr, room: &mut Room) {
        let Some(live) = self.live.remove(&from) else { return };
        self.forgotten += 1;
        let came = live.exporter.came();
        live.exporter.session.end(room);
        let has_room = self.past.len() < self.most || self.past.contains_key(&from.ip());
        let sum = if has_room { self.past.entry(from.ip()).or_default() } else { &mut self.others };
        *sum = sum.plus(&came);
    }

    /// Once a minute: who has been silent too long is forgotten, and of the others what is too old. Whenever there is little room,
    /// the address that has taken most of it gives way.
    pub fn look(&mut self, now_ns: u64, room: &mut Room) {
        let now_s = now_ns / SECOND;
        if now_s >= self.looked_s + LOOK_S {
            self.looked_s = now_s;
            let is_silent = |live: &Live| live.heard_s + SILENT_S <= now_s;
            let silent: Vec<SocketAddr> =
                self.live.iter().filter(|(_, live)| is_silent(live)).map(|(from, _)| *from).collect();
            silent.into_iter().for_each(|from| self.forget(from, room));
            for live in self.live.values_mut() {
                live.exporter.session.at(now_ns);
                live.exporter.session.age(room);
            }
        }
        if room.is_short() {
            let mut taken: HashMap<IpAddr, usize> = HashMap::new();
            for (from, live) in &self.live {
                *taken.entry(from.ip()).or_default() += live.exporter.session.taken();
            }
            let Some((most, _)) = taken.into_iter().max_by_key(|(_, taken)| *taken) else { return };
            let of_it = self.live.iter_mut().filter(|(from, _)| from.ip() == most);
            of_it.for_each(|(_, live)| live.exporter.session.give_way(room));
        }
    }

    /// Of each, what was counted.
    pub fn counters(&self) -> impl Iterator<Item = Counters> {
        let live = self.live.values().map(|live| *live.exporter.session.counters());
        live.chain(self.past.values().chain([&self.others]).map(|came| came.counters))
    }

    /// How many there were: those that are heard, and addresses of others.
    pub fn count(&self) -> u64 {
        (self.live.len() + self.past.len()) as u64
    }

    /// How many were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Who they were, and what came of them. Ports that are silent now are reported by their address, together.
    pub fn done(self) -> Vec<(String, Came)> {
        let live = self.live.into_iter().map(|(from, live)| (from.to_string(), live.exporter.came()));
        let past = self.past.into_iter().map(|(from, came)| match from {
            IpAddr::V4(from) => (format!("{from}:*"), came),
            IpAddr::V6(from) => (format!("[{from}]:*"), came),
        });
        let others = Some(self.others).filter(|others| others.counters.messages > 0);
        live.chain(past).chain(others.map(|others| (OTHERS.to_owned(), others))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(number: u32) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], number as u16))
    }

    /// A message of NetFlow v5 with one record.
    fn message(number: u32) -> Vec<u8> {
        let mut bytes = vec![0; 24 + 48];
        bytes[..4].copy_from_slice(&[0, 5, 0, 1]);
        bytes[16..20].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    fn send(all: &mut Exporters, room: &mut Room, from: SocketAddr, bytes: &[u8], at_s: u64) -> bool {
        let Some(exporter) = all.find(from, bytes, at_s * SECOND, room, || Session::new(false)) else {
            return false;
        };
        exporter.session.message(bytes, room, &mut |_, _| ());
        true
    }

    fn total(all: &Exporters) -> (u64, u64, u64) {
        let sum = all.counters().fold(Counters::default(), |sum, one| sum.plus(&one));
        (sum.messages, sum.records, sum.malformed)
    }

    #[test]
    fn bytes_that_are_no_message_make_no_exporter() {
        let (mut all, mut room) = (Exporters::of(16), Room::of(1 << 20));
        for number in 0..1000 {
            assert!(!send(&mut all, &mut room, from(number), &[7], 1));
        }
        assert!(send(&mut all, &mut room, from(2000), &message(0), 1));
        assert_eq!((all.count(), all.forgotten(), total(&all)), (1, 0, (1001, 1, 1000)));
        let names: Vec<String> = all.done().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["10.0.0.1:2000", "(others)"]);
    }

    #[test]
    fn ports_that_change_shut_nobody_out_and_those_that_go_on_stay() {
        let (mut all, mut room) = (Exporters::of(64), Room::of(1 << 20));
        let whole = room;
        let steady: SocketAddr = "192.0.2.9:2055".parse().expect("an address");
        let mut sent = 0u64;
        for number in 0..20_000u32 {
            // A hundred new ports a second; the steady one speaks once a second.
            let at_s = u64::from(number / 100);
            if number % 100 == 0 {
                assert!(send(&mut all, &mut room, steady, &message(number / 100), at_s));
                sent += 1;
            }
            assert!(send(&mut all, &mut room, from(number), &message(0), at_s));
            sent += 1;
            assert!(all.live.len() <= 64);
        }
        // It was never taken for another, and nothing that was counted is gone.
        let of = all.live[&steady].exporter.session.counters();
        assert_eq!((of.messages, of.missing_records), (200, 0));
        assert_eq!(total(&all), (sent, sent, 0));
        assert_eq!(all.forgotten() + all.live.len() as u64, 20_001);
        let done = all.live.drain().map(|(_, live)| live.exporter.session);
        done.for_each(|session| session.end(&mut room));
        assert_eq!(room, whole);
    }

    #[test]
    fn the_silent_are_forgotten_and_what_came_of_them_is_not() {
        let (mut all, mut room) = (Exporters::of(64), Room::of(1 << 20));
        for port in 1..=3 {
            send(&mut all, &mut room, from(port), &message(0), 10);
        }
        send(&mut all, &mut room, from(1), &message(1), SILENT_S);
        all.look((SILENT_S + 20) * SECOND, &mut room);
        assert_eq!((all.live.len(), all.forgotten(), total(&all).1), (1, 2, 4));
        let mut names: Vec<(String, u64)> =
            all.done().into_iter().map(|(name, came)| (name, came.counters.records)).collect();
        names.sort();
        assert_eq!(names, [("10.0.0.1:*".to_owned(), 2), ("10.0.0.1:1".to_owned(), 2)]);
    }

    #[test]
    fn the_address_that_has_taken_most_gives_way_where_there_is_little_room() {
        let (mut all, mut room) = (Exporters::of(64), Room::of(1 << 20));
        // Templates of 1,000 fields, from many ports of one address.
        let mut set =
            [&2u16.to_be_bytes()[..], &4008u16.to_be_bytes(), &[1, 0], &1000u16.to_be_bytes()].concat();
        (0..1000).for_each(|_| set.extend([0, 1, 0, 4]));
        let mut bytes = vec![0, 10];
        bytes.extend((16 + set.len() as u16).to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(set);
        let small = SocketAddr::from(([192, 0, 2, 1], 9));
        send(&mut all, &mut room, small, &message(0), 1);
        let kept = all.live[&small].exporter.session.taken();
        for port in 0..60 {
            send(&mut all, &mut room, from(port), &bytes, 1);
        }
        assert!(room.is_short());
        all.look(SECOND, &mut room);
        assert!(!room.is_short() && all.live[&small].exporter.session.taken() == kept);
        let refused: u64 = all.counters().map(|counters| counters.refused).sum();
        assert!(refused >= 20, "{refused}");
    }
}
