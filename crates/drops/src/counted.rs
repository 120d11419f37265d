//! What was counted, as numbers: `programs/bpf/include/drops.h` in Rust.

use programs::drops::types::{drop_count, drop_key, drop_totals};
use std::collections::BTreeMap;

/// Where a row's fields stand in the kernel's structures, in bytes.
pub const KEY: usize = size_of::<drop_key>();
pub const COUNT: usize = size_of::<drop_count>();
const NAME: usize = 72;
const _: () = assert!(KEY == 32 && COUNT == NAME + 16 && size_of::<drop_totals>() == 48);
/// A frame that was kept for an example.
pub const EXAMPLE: usize = KEY + 24 + 512;

/// What sort of frame it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Without a signature.
    Ordinary,
    /// With a signature, which can be of this run.
    Signed,
    /// With a signature that was stamped before this run, or by another clock.
    SignedByOthers,
    /// A message that never was on a network: of Unix sockets, netlink.
    Local,
    /// Dropped by XDP, before there was a socket buffer: what it was is not known.
    Xdp,
}

/// A tracepoint of XDP, which stands in the place of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tracepoint {
    /// A program failed, or said what no verdict is.
    Exception,
    /// The driver did not take a frame that a program sent back.
    BulkTx,
    /// A device did not take frames that were redirected to it.
    DevmapXmit,
    /// There was no place to redirect a frame to.
    Redirect,
}

/// One cause at one place: frames that have all of this in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The address that the function that dropped returns to; of XDP a number.
    pub location: u64,
    /// By the running kernel's `enum skb_drop_reason`.
    pub reason: u32,
    /// The network namespace's number, as /proc/self/ns/net shows it; 0: not known.
    pub netns: u32,
    /// 0: not known.
    pub ifindex: u32,
    /// Empty: not known.
    pub interface: String,
    /// What sort of frame.
    pub kind: Kind,
    /// Of frames with a signature.
    pub stream: u32,
    /// 0x0800 is IPv4.
    pub ethertype: u16,
    /// IP's; 0: not known.
    pub protocol: u8,
    /// The destination port of TCP, UDP or SCTP; 0: none.
    pub port: u16,
    /// Not told apart by interface, protocol, port and stream: there was no more room.
    pub coarse: bool,
    /// How many, of which no other copy was held.
    pub frames: u64,
    /// Their bytes as the kernel counts them where they were dropped, with or without headers.
    pub bytes: u64,
    /// Copies that were dropped while another one was held: by a bridge that floods, or a capture.
    pub copies: u64,
    /// When the first one was dropped, by CLOCK_MONOTONIC to the tick.
    pub first_ns: u64,
    /// And the last one.
    pub last_ns: u64,
    /// The sequence number of the first one, of frames with a signature.
    pub first_sequence: u64,
    /// And of the last one.
    pub last_sequence: u64,
    /// The lowest of them.
    pub lowest: u64,
    /// The highest of them.
    pub highest: u64,
}

/// Why and where a frame was dropped, whatever it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause {
    /// As a [`Row`] has it.
    pub location: u64,
    /// As a [`Row`] has it.
    pub reason: u32,
    /// The network namespace's number; 0: not known.
    pub netns: u32,
    /// 0: not known, or not told apart.
    pub ifindex: u32,
}

impl Cause {
    /// That of a key, if it is of frames of this run.
    pub(crate) fn of_signed(key: &[u8]) -> Option<Cause> {
        let row = Row::of_key(key, false);
        (row.kind == Kind::Signed).then(|| row.cause())
    }
}

/// Frames of a key that each CPU counted, of which no other copy was held.
pub(crate) fn frames(counts: &[Vec<u8>]) -> u64 {
    counts.iter().map(|count| long(count, 0)).fold(0, u64::saturating_add)
}

/// All that was counted up to now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The most frequent ones first.
    pub rows: Vec<Row>,
    /// Frames that found no place in any table.
    pub unlisted: u64,
    /// Frames in several buffers, in which this kernel lets nobody look for a signature: they are among those without one.
    pub unread: u64,
    /// Drops that the program was not run for, because one on the same CPU was being counted.
    pub missed: u64,
}

impl Counted {
    /// Frames in `rows` of this sort.
    pub fn frames(&self, kind: Kind) -> u64 {
        self.rows.iter().filter(|row| row.kind == kind).map(|row| row.frames).sum()
    }

    /// What came since `earlier`, an earlier look of the same tracer.
    pub fn since(&self, earlier: &Counted) -> Counted {
        let before: BTreeMap<_, _> = earlier.rows.iter().map(|row| (row.identity(), row)).collect();
        let rows = self.rows.iter().filter_map(|row| {
            let mut row = row.clone();
            if let Some(was) = before.get(&row.identity()) {
                row.frames = row.frames.saturating_sub(was.frames);
                row.bytes = row.bytes.saturating_sub(was.bytes);
                row.copies = row.copies.saturating_sub(was.copies);
                // Not before what was seen then.
                row.first_ns = row.first_ns.max(was.last_ns);
            }
            (row.frames + row.copies > 0).then_some(row)
        });
        Counted {
            rows: rows.collect(),
            unlisted: self.unlisted.saturating_sub(earlier.unlisted),
            unread: self.unread.saturating_sub(earlier.unread),
            missed: self.missed.saturating_sub(earlier.missed),
        }
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(part(bytes, at))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(part(bytes, at))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(part(bytes, at))
}

impl Row {
    /// A key and what each CPU counted by it. `None` if none did.
    pub fn read(key: &[u8], counts: &[Vec<u8>], coarse: bool) -> Option<Row> {
        let mut row = Row::of_key(key, coarse);
        counts.iter().for_each(|count| row.add(count));
        (row.frames + row.copies > 0).then_some(row)
    }

    /// Why and where.
    pub fn cause(&self) -> Cause {
        let Row { location, reason, netns, ifindex, .. } = *self;
        Cause { location, reason, netns, ifindex }
    }

    /// A key, of which nothing is counted yet.
    fn of_key(key: &[u8], coarse: bool) -> Row {
        let kind = match part::<1>(key, 29) {
            [0] => Kind::Ordinary,
            [1] => Kind::Signed,
            [2] => Kind::SignedByOthers,
            [3] => Kind::Local,
            _ => Kind::Xdp,
        };
        let [protocol] = part(key, 28);
        Row {
            location: long(key, 0),
            reason: word(key, 8),
            netns: word(key, 12),
            ifindex: word(key, 16),
            interface: String::new(),
            kind,
            stream: word(key, 20),
            ethertype: half(key, 24),
            port: half(key, 26),
            protocol,
            coarse,
            frames: 0,
            bytes: 0,
            copies: 0,
            first_ns: 0,
            last_ns: 0,
            first_sequence: 0,
            last_sequence: 0,
            lowest: 0,
            highest: 0,
        }
    }

    /// One CPU's share.
    fn add(&mut self, count: &[u8]) {
        let name: [u8; 16] = part(count, NAME);
        if self.interface.is_empty()
            && let Some(name) = name.split(|byte| *byte == 0).next()
        {
            self.interface = String::from_utf8_lossy(name).into_owned();
        }
        let [frames, bytes, copies] = [0, 8, 16].map(|at| long(count, at));
        if frames + copies == 0 {
            return;
        }
        let [first_ns, last_ns, first, last, lowest, highest] =
            [24, 32, 40, 48, 56, 64].map(|at| long(count, at));
        let (none, no_frames) = (self.frames + self.copies == 0, self.frames == 0);
        if frames > 0 && (no_frames || first_ns < self.first_ns) {
            self.first_sequence = first;
        }
        if frames > 0 && (no_frames || last_ns >= self.last_ns) {
            self.last_sequence = last;
        }
        if frames > 0 {
            self.lowest = if no_frames { lowest } else { self.lowest.min(lowest) };
            self.highest = self.highest.max(highest);
        }
        self.first_ns = if none { first_ns } else { self.first_ns.min(first_ns) };
        self.last_ns = self.last_ns.max(last_ns);
        self.frames += frames;
        self.bytes += bytes;
        self.copies += copies;
    }

    /// What tells it apart from all others.
    fn identity(&self) -> (u64, u32, u32, u32, Kind, u32, u16, u8, u16, bool) {
        let Row { location, reason, netns, ifindex, kind, stream, ethertype, protocol, port, coarse, .. } =
            self;
        (*location, *reason, *netns, *ifindex, *kind, *stream, *ethertype, *protocol, *port, *coarse)
    }

    /// Of XDP: which of its tracepoints.
    pub fn tracepoint(&self) -> Option<Tracepoint> {
        match self.location {
            1 => Some(Tracepoint::Exception),
            2 => Some(Tracepoint::BulkTx),
            3 => Some(Tracepoint::DevmapXmit),
            4 => Some(Tracepoint::Redirect),
            _ => None,
        }
    }
}

/// The sums of all CPUs: drops that found no place, frames whose end was not read, and examples that were not kept.
pub fn totals(of_cpus: &[Vec<u8>]) -> (u64, u64, u64) {
    let sum = |at| of_cpus.iter().map(|bytes| long(bytes, at)).sum();
    (sum(0), sum(8), sum(40))
}

/// A frame that was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// What is told of it; nothing is counted in there.
    pub of: Row,
    /// When it was dropped, by CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Its length there.
    pub length: u32,
    /// It had no Ethernet header there: its bytes begin with what follows one.
    pub headless: bool,
    /// Its first bytes, of those that lay in its first buffer.
    pub bytes: Vec<u8>,
}

impl Example {
    /// As the kernel wrote it. `None`: it is cut off.
    pub fn read(bytes: &[u8]) -> Option<Example> {
        let head = KEY + 24;
        let captured = word(bytes, KEY + 12) as usize;
        Some(Example {
            of: Row::of_key(bytes.get(..KEY)?, false),
            time_ns: long(bytes, KEY),
            length: word(bytes, KEY + 8),
            headless: word(bytes, KEY + 16) != 0,
            bytes: bytes.get(head..head.checked_add(captured)?)?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(words: [u64; 9], name: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(name);
        bytes.resize(COUNT, 0);
        bytes
    }

    #[test]
    fn examples_are_read_and_what_is_cut_off_is_none() {
        let mut bytes = vec![0; EXAMPLE];
        bytes[8] = 7;
        bytes[KEY..KEY + 8].copy_from_slice(&5_000_u64.to_ne_bytes());
        for (at, word) in [(8, 1_514_u32), (12, 3), (16, 1)] {
            bytes[KEY + at..KEY + at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[KEY + 24..KEY + 27].copy_from_slice(&[0x45, 0, 1]);
        let example = Example::read(&bytes).expect("whole");
        assert_eq!((example.of.reason, example.time_ns, example.length), (7, 5_000, 1_514));
        assert_eq!((example.headless, &example.bytes[..]), (true, &[0x45, 0, 1][..]));
        assert_eq!(Example::read(&bytes[..KEY + 26]), None);
        assert_eq!(Example::read(&[]), None);
    }

    #[test]
    fn what_cpus_counted_is_added_and_the_earliest_and_latest_stand() {
        let mut key = [0; KEY];
        (key[8], key[20], key[29]) = (7, 3, 1);
        let cpus = [
            count([10, 640, 0, 200, 400, 5, 30, 4, 31], b"veth0"),
            count([0; 9], b""),
            count([2, 128, 1, 100, 300, 90, 1, 1, 90], b""),
        ];
        let row = Row::read(&key, &cpus, false).expect("counted");
        assert_eq!((row.reason, row.stream, row.kind, &*row.interface), (7, 3, Kind::Signed, "veth0"));
        assert_eq!((row.frames, row.bytes, row.copies, row.first_ns, row.last_ns), (12, 768, 1, 100, 400));
        assert_eq!((row.first_sequence, row.last_sequence, row.lowest, row.highest), (90, 30, 1, 90));
        assert_eq!(Row::read(&key, &[count([0; 9], b"veth0")], false), None, "nothing was counted");
        let later =
            Counted { rows: vec![Row { frames: 15, ..row.clone() }], missed: 3, ..Default::default() };
        let earlier = Counted { rows: vec![row], missed: 1, ..Default::default() };
        let since = later.since(&earlier);
        assert_eq!((since.frames(Kind::Signed), since.frames(Kind::Ordinary), since.missed), (3, 0, 2));
        assert_eq!(since.rows[0].first_ns, 400, "those of before were dropped before");
        assert!(later.since(&later).rows.is_empty());
    }
}
