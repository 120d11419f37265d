//! Queueing disciplines and what they counted: the numbers of `tc -s qdisc show`.
//!
//! The root of an interface is the only one that counts frames where super-frames (GSO) are sent: what an interface counts of those is one or
//! many, as its driver likes, but a discipline counts each frame that it lets through. Caller: `netdyno bridge`.

use crate::netlink::{Attributes, DUMP, Message, NetlinkError, Socket, read_u32, read_u64};
use std::collections::BTreeMap;

/// `struct tcmsg`: family, padding, interface, handle, parent, info.
const TCMSG: usize = 20;
const ROOT: u32 = 0xffff_ffff;
/// Of `ingress` and `clsact`, which are no queues: filters drop there.
const INGRESS: u32 = 0xffff_fff1;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;

/// A queueing discipline, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Discipline {
    /// Its interface's number.
    pub index: u32,
    /// `tbf`, `fq_codel`, `noqueue`, ...
    pub kind: String,
    handle: u32,
    parent: u32,
}

impl Discipline {
    fn parse(message: &[u8]) -> Option<Discipline> {
        let [index, handle, parent] = [4, 8, 12].map(|at| read_u32(message, at));
        let kind = Attributes::after(message, TCMSG).str(TCA_KIND)?;
        Some(Discipline { index: index?, kind, handle: handle?, parent: parent? })
    }

    /// `8001:`, as tc has it.
    pub fn handle(&self) -> String {
        format!("{:x}:", self.handle >> 16)
    }

    /// `root`, or the class that it is in: `1:10`.
    pub fn parent(&self) -> String {
        match self.parent {
            ROOT => "root".to_owned(),
            INGRESS => "ingress".to_owned(),
            class => format!("{:x}:{:x}", class >> 16, class & 0xffff),
        }
    }
}

/// By how much a counter of 32 bits rose, over a wrap if need be; `None`: it went back, because what counts was made anew, under the same handle
/// perhaps.
pub fn rise(now: u32, earlier: u32) -> Option<u32> {
    let rise = now.wrapping_sub(earlier);
    (rise <= u32::MAX / 2).then_some(rise)
}

/// What all disciplines have dropped, modulo 2^32, by a socket that was opened in their network namespace.
///
/// # Errors
/// That the kernel does not answer.
pub fn dropped(socket: &mut Socket) -> Result<BTreeMap<Discipline, u32>, NetlinkError> {
    let dropped = |message: &Vec<u8>| {
        let queue = Attributes::after(message, TCMSG).nested(TCA_STATS2).get(TCA_STATS_QUEUE)?;
        Some((Discipline::parse(message)?, drops(queue)?))
    };
    Ok(dump(socket, 0)?.iter().filter_map(dropped).collect())
}

/// The disciplines of an interface; of all, if its number is 0.
fn dump(socket: &mut Socket, index: u32) -> Result<Vec<Vec<u8>>, NetlinkError> {
    let mut ask = [0; TCMSG];
    ask[4..8].copy_from_slice(&index.to_ne_bytes());
    socket.request(Message::new(libc::RTM_GETQDISC, DUMP).fixed(&ask))
}

/// Of `struct gnet_stats_queue`: qlen, backlog, drops, requeues, overlimits.
fn drops(queue: &[u8]) -> Option<u32> {
    read_u32(queue, 8)
}

/// What it has counted, which begins anew when it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// `tbf`, `fq_codel`, `noqueue`, ...
    pub kind: String,
    handle: u32,
    /// Frames that it let through, each of a super-frame by itself. Wraps at 2^32 on kernels that say no more.
    pub frames: u64,
    /// What it dropped: frames, or super-frames, as it has them.
    pub dropped: u32,
    /// What waits in it.
    pub waiting: u32,
}

impl Counted {
    /// A count for the tests of those who judge by it.
    pub fn told(kind: &str, frames: u64, dropped: u32) -> Counted {
        Counted { kind: kind.to_owned(), handle: 0, frames, dropped, waiting: 0 }
    }

    /// What was counted since `earlier`, if that was by the same discipline.
    pub fn since(&self, earlier: &Counted) -> Option<Counted> {
        if (&self.kind, self.handle) != (&earlier.kind, earlier.handle) {
            return None;
        }
        let frames = match self.frames.checked_sub(earlier.frames) {
            Some(rise) => rise,
            // 32 bits that wrapped.
            None => u64::from(rise(self.frames as u32, earlier.frames as u32)?),
        };
        let dropped = rise(self.dropped, earlier.dropped)?;
        Some(Counted { frames, dropped, ..self.clone() })
    }
}

/// Reads it again and again.
#[derive(Debug)]
pub struct Reader {
    socket: Socket,
    index: u32,
}

impl Reader {
    /// Of an interface of the calling thread's network namespace; to be read from anywhere.
    ///
    /// # Errors
    /// That there are no descriptors left.
    pub fn open(index: u32) -> Result<Reader, NetlinkError> {
        Ok(Reader { socket: Socket::route()?, index })
    }

    /// `None`: frames go to the driver without a discipline that counts (`noqueue`).
    ///
    /// # Errors
    /// That the interface went away, or the kernel does not answer.
    pub fn read(&mut self) -> Result<Option<Counted>, NetlinkError> {
        let all = dump(&mut self.socket, self.index)?;
        Ok(all.iter().find_map(|one| parse(one, self.index)).filter(|found| found.kind != "noqueue"))
    }
}

/// The disciplines of an interface of the calling thread's network namespace, the root first, each kind once: `mq fq_codel`.
///
/// # Errors
/// That the kernel does not answer.
pub fn kinds(index: u32) -> Result<String, NetlinkError> {
    let all = dump(&mut Socket::route()?, index)?;
    let of = |message: &Vec<u8>| {
        let found = Discipline::parse(message).filter(|found| found.index == index)?;
        Some((found.parent != ROOT, found.kind))
    };
    let mut kinds: Vec<(bool, String)> = all.iter().filter_map(of).collect();
    kinds.sort_by_key(|(below, _)| *below);
    let mut named: Vec<String> = Vec::new();
    for (_, kind) in kinds {
        if !named.contains(&kind) {
            named.push(kind);
        }
    }
    Ok(named.join(" "))
}

fn parse(message: &[u8], index: u32) -> Option<Counted> {
    let root = Discipline::parse(message).filter(|found| (found.index, found.parent) == (index, ROOT))?;
    let stats = Attributes::after(message, TCMSG).nested(TCA_STATS2);
    let basic = stats.get(TCA_STATS_BASIC)?;
    let queue = stats.get(TCA_STATS_QUEUE)?;
    Some(Counted {
        kind: root.kind,
        handle: root.handle,
        // struct gnet_stats_basic: bytes (64 bits), packets; of more than 32 bits there is another attribute.
        frames: match stats.get(TCA_STATS_PKT64) {
            Some(wide) => read_u64(wide, 0)?,
            None => u64::from(read_u32(basic, 8)?),
        },
        waiting: read_u32(queue, 0)?,
        dropped: drops(queue)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(frames: u64, dropped: u32) -> Counted {
        Counted { kind: "tbf".to_owned(), handle: 0x8001_0000, frames, dropped, waiting: 0 }
    }

    #[test]
    fn a_message_is_read_and_others_are_not() {
        let mut head = [0; TCMSG];
        head[4..8].copy_from_slice(&7u32.to_ne_bytes());
        head[8..12].copy_from_slice(&0x8001_0000u32.to_ne_bytes());
        let of = |parent: u32, wide: Option<u64>| {
            head[12..16].copy_from_slice(&parent.to_ne_bytes());
            let mut basic = 999u64.to_ne_bytes().to_vec();
            basic.extend_from_slice(&[300u32.to_ne_bytes(), [0; 4]].concat());
            let queue: Vec<u8> = [2u32, 2_000, 5, 0, 9].into_iter().flat_map(u32::to_ne_bytes).collect();
            let message = Message::new(0, 0).fixed(&head).attr_str(TCA_KIND, "tbf");
            let message = message.nest(TCA_STATS2, |stats| {
                let stats = stats.attr(TCA_STATS_BASIC, &basic).attr(TCA_STATS_QUEUE, &queue);
                match wide {
                    Some(wide) => stats.attr(TCA_STATS_PKT64, &wide.to_ne_bytes()),
                    None => stats,
                }
            });
            message.payload()
        };
        let mut of = of;
        let read = parse(&of(ROOT, None), 7).expect("the root of 7");
        assert_eq!(read, Counted { waiting: 2, ..counted(300, 5) });
        let wide = parse(&of(ROOT, Some(1 << 40)), 7).expect("the root of 7");
        assert_eq!(wide.frames, 1 << 40);
        assert_eq!(parse(&of(ROOT, None), 8), None);
        assert_eq!(parse(&of(0x8001_0000, None), 7), None);
        assert_eq!(parse(&of(ROOT, None)[..30], 7), None);
    }

    #[test]
    fn what_was_counted_since_survives_a_wrap_and_not_another_discipline() {
        let wrapped = counted(5, 3).since(&counted((1 << 32) - 10, u32::MAX)).expect("the same");
        assert_eq!((wrapped.frames, wrapped.dropped), (15, 4));
        let wide = counted((1 << 32) + 5, 0).since(&counted((1 << 32) - 10, 0)).expect("the same");
        assert_eq!(wide.frames, 15);
        let other = Counted { handle: 0x8002_0000, ..counted(5, 0) };
        assert_eq!(other.since(&counted(1, 0)), None);
        // Deleted and made once more under its handle.
        assert_eq!(counted(5, 0).since(&counted(100, 0)), None);
        assert_eq!(counted(500, 1).since(&counted(100, 2)), None);
    }

    #[test]
    fn the_kernel_tells_of_loopback_what_it_has() {
        let loopback = crate::interface::Interface::by_name("lo").expect("lo");
        let mut reader = Reader::open(loopback.index).expect("a socket");
        assert!(!kinds(loopback.index).expect("an answer").is_empty());
        // Which has none that counts, unless somebody gave it one.
        reader.read().expect("an answer");
    }
}
