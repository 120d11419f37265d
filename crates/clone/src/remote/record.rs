//! What the ends of a channel say to each other: records, several in a frame. In front of an agent's records each frame has the
//! time by the agent's clock at which it was sealed, in eight bytes.
//!
//! ```text
//!   agent --> clone   HELLO, then SEGMENT and SHED as they come, ACCOUNT five times a second, BYE
//!   clone --> agent   WELCOME or REFUSED, HEARD twice a second, END
//! ```
//!
//! Numbers are big-endian. A segment is what `table` needs of it: no header is sent as it was.

use crate::funnel::{Frames, Plus, Sessions};
use crate::packet::Segment;
use std::net::{IpAddr, SocketAddr};
use wire::flow::FlowKey;
use wire::numbers::protocol;

/// Of both ends; others are refused.
pub const VERSION: u8 = 2;
/// Bytes of payload in one record; a longer segment is several.
pub const MOST_PAYLOAD: usize = 32 << 10;
/// What a record has beside its payload, at most.
pub const MOST_HEAD: usize = 80;
/// Of a reason.
const MOST_TEXT: usize = 1000;

/// What was said.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is made and written, or read and used, at a time; none is kept"
)]
pub enum Record<'a> {
    /// An agent's first.
    Hello {
        /// Its [`VERSION`].
        version: u8,
        /// The server's address; `None`: any.
        server: Option<IpAddr>,
        /// The server's port.
        port: u16,
    },
    /// A segment was captured.
    Segment {
        /// When, by the agent's clock.
        at_ns: u64,
        /// What it holds.
        segment: Segment<'a>,
    },
    /// The agent says nothing more of this session.
    Shed(FlowKey),
    /// What became of all that the agent does not forward, since its HELLO.
    Account(Account),
    /// The agent ends.
    Bye,
    /// The clone takes what the agent says.
    Welcome {
        /// Sessions that are open already are wanted as well.
        adopts: bool,
        /// Where copies go: the agent knows whether that is its own server.
        targets: [Option<SocketAddr>; 2],
    },
    /// The clone is there.
    Heard,
    /// The clone does not want this agent, or the agent does not forward to this clone.
    Refused(&'a str),
    /// The clone ends.
    End,
}

/// Frames, and sessions that are not forwarded, since an agent's HELLO.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// What was captured.
    pub frames: Frames,
    /// Frames that the kernel had no room for.
    pub dropped: u64,
    /// Sessions that are not forwarded, by reason.
    pub left: Sessions,
}

/// Counters as a record has them: numbers one behind the other.
trait Numbers<const COUNT: usize> {
    fn numbers(&self) -> [u64; COUNT];

    fn of(numbers: [u64; COUNT]) -> Self;
}

macro_rules! numbers {
    ($type:ident, $count:literal: $($field:ident)+ $(, $rest:ident)?) => {
        impl Numbers<$count> for $type {
            fn numbers(&self) -> [u64; $count] {
                [$(self.$field),+]
            }

            fn of([$($field),+]: [u64; $count]) -> $type {
                $type { $($field,)+ $(..$type::$rest())? }
            }
        }
    };
}

// Urgent data is counted where it is copied.
numbers!(Frames, 13: captured from_clients from_server other_flows other_protocols fragments joined malformed truncated syns syn_acks
    syn_acks_alone strays, default);
// What becomes of sessions at an agent.
numbers!(Sessions, 8: half_open refused midstream sampled_out over_sessions over_rate over_ceiling over_link, default);

impl Account {
    /// Adds another's.
    pub fn add(&mut self, other: &Account) {
        self.frames.plus(&other.frames);
        self.dropped += other.dropped;
        self.left.plus(&other.left);
    }

    /// Sessions that are not forwarded.
    pub fn not_forwarded(&self) -> u64 {
        self.left.numbers().iter().sum()
    }
}

const HELLO: u8 = 1;
const SEGMENT: u8 = 2;
const SHED: u8 = 3;
const ACCOUNT: u8 = 4;
const BYE: u8 = 5;
const WELCOME: u8 = 16;
const HEARD: u8 = 17;
const REFUSED: u8 = 18;
const END: u8 = 19;

fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

fn put_flow(out: &mut Vec<u8>, flow: &FlowKey) {
    out.push(if flow.source().is_ipv4() { 4 } else { 6 });
    put_address(out, flow.source());
    put_address(out, flow.destination());
    out.extend_from_slice(&flow.source_port().to_be_bytes());
    out.extend_from_slice(&flow.destination_port().to_be_bytes());
}

impl Record<'_> {
    /// Appends it. Of a segment's payload no more than [`MOST_PAYLOAD`] bytes may be there.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Record::Hello { version, server, port } => {
                out.extend_from_slice(&[HELLO, *version]);
                out.extend_from_slice(&port.to_be_bytes());
                match server {
                    None => out.push(0),
                    Some(address) => {
                        out.push(if address.is_ipv4() { 4 } else { 6 });
                        put_address(out, *address);
                    }
                }
            }
            Record::Segment { at_ns, segment } => {
                out.push(SEGMENT);
                put_flow(out, &segment.flow);
                out.extend_from_slice(&at_ns.to_be_bytes());
                out.extend_from_slice(&segment.seq.to_be_bytes());
                out.extend_from_slice(&segment.ack.to_be_bytes());
                out.push(segment.flags);
                let missing = u32::try_from(segment.missing).unwrap_or(u32::MAX);
                out.extend_from_slice(&missing.to_be_bytes());
                let payload = segment.payload.get(..MOST_PAYLOAD).unwrap_or(segment.payload);
                out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
                out.extend_from_slice(payload);
            }
            Record::Shed(flow) => {
                out.push(SHED);
                put_flow(out, flow);
            }
            Record::Account(account) => {
                out.push(ACCOUNT);
                let numbers = account.frames.numbers().into_iter().chain([account.dropped]);
                numbers
                    .chain(account.left.numbers())
                    .for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
            }
            Record::Bye => out.push(BYE),
            Record::Welcome { adopts, targets } => {
                out.extend_from_slice(&[WELCOME, u8::from(*adopts)]);
                for target in targets {
                    match target {
                        None => out.push(0),
                        Some(target) => {
                            out.push(if target.is_ipv4() { 4 } else { 6 });
                            put_address(out, target.ip());
                            out.extend_from_slice(&target.port().to_be_bytes());
                        }
                    }
                }
            }
            Record::Heard => out.push(HEARD),
            Record::Refused(text) => {
                let mut end = text.len().min(MOST_TEXT);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                let text = text.get(..end).unwrap_or_default();
                out.push(REFUSED);
                out.extend_from_slice(&(text.len() as u16).to_be_bytes());
                out.extend_from_slice(text.as_bytes());
            }
            Record::End => out.push(END),
        }
    }
}

/// Bytes from which records are taken, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

/// What came is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRecord;

impl<'a> Reader<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes().map(|[byte]| byte)
    }

    fn half(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    /// A time.
    pub fn long(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.long()?;
        }
        Some(numbers)
    }

    fn address(&mut self, family: u8) -> Option<IpAddr> {
        match family {
            4 => self.bytes::<4>().map(IpAddr::from),
            6 => self.bytes::<16>().map(IpAddr::from),
            _ => None,
        }
    }

    /// One that is there, or not.
    fn socket(&mut self) -> Option<Option<SocketAddr>> {
        match self.byte()? {
            0 => Some(None),
            family => Some(Some(SocketAddr::new(self.address(family)?, self.half()?))),
        }
    }

    fn flow(&mut self) -> Option<FlowKey> {
        let family = self.byte()?;
        let (source, destination) = (self.address(family)?, self.address(family)?);
        FlowKey::new(source, destination, protocol::TCP, self.half()?, self.half()?)
    }

    /// The next record; `Ok(None)` at the end.
    ///
    /// # Errors
    /// What is there is none.
    pub fn record(&mut self) -> Result<Option<Record<'a>>, NoRecord> {
        if self.0.is_empty() {
            return Ok(None);
        }
        self.one().map(Some).ok_or(NoRecord)
    }

    fn one(&mut self) -> Option<Record<'a>> {
        Some(match self.byte()? {
            HELLO => {
                let (version, port) = (self.byte()?, self.half()?);
                let server = match self.byte()? {
                    0 => None,
                    family => Some(self.address(family)?),
                };
                Record::Hello { version, server, port }
            }
            SEGMENT => {
                let (flow, at_ns) = (self.flow()?, self.long()?);
                let (seq, ack, flags, missing) = (self.word()?, self.word()?, self.byte()?, self.word()?);
                let length = usize::from(self.half()?);
                let payload = self.slice(length)?;
                let segment = Segment { flow, seq, ack, flags, payload, missing: missing as usize };
                Record::Segment { at_ns, segment }
            }
            SHED => Record::Shed(self.flow()?),
            ACCOUNT => {
                let frames = Frames::of(self.numbers()?);
                Record::Account(Account {
                    frames,
                    dropped: self.long()?,
                    left: Sessions::of(self.numbers()?),
                })
            }
            BYE => Record::Bye,
            WELCOME => {
                let adopts = self.byte()? != 0;
                Record::Welcome { adopts, targets: [self.socket()?, self.socket()?] }
            }
            HEARD => Record::Heard,
            REFUSED => {
                let length = usize::from(self.half()?);
                Record::Refused(std::str::from_utf8(self.slice(length)?).ok()?)
            }
            END => Record::End,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ACK, FIN};
    use proptest::prelude::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let [c, d] = [1, 2].map(|last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        let flow = FlowKey::new(a, b, 6, 40_000, 80).unwrap();
        let six = FlowKey::new(c, d, 6, 40_000, 80).unwrap();
        let payload = vec![7; MOST_PAYLOAD];
        let account = Account {
            frames: Frames::of(std::array::from_fn(|n| n as u64)),
            dropped: 99,
            left: Sessions::of(std::array::from_fn(|n| 100 + n as u64)),
        };
        let segment = |flow, payload, missing| Record::Segment {
            at_ns: u64::MAX - 5,
            segment: Segment { flow, seq: 1, ack: u32::MAX, flags: ACK | FIN, payload, missing },
        };
        let records = [
            Record::Hello { version: VERSION, server: None, port: 80 },
            Record::Hello { version: 9, server: Some(c), port: 443 },
            segment(flow, b"", 0),
            segment(six, &payload, 70_000),
            Record::Shed(six),
            Record::Account(account),
            Record::Bye,
            Record::Welcome { adopts: true, targets: [None; 2] },
            Record::Welcome {
                adopts: false,
                targets: ["10.0.0.2:80", "[fd00::2]:81"].map(|at| at.parse().ok()),
            },
            Record::Heard,
            Record::Refused("no: é"),
            Record::End,
        ];
        let mut bytes = Vec::new();
        for record in &records {
            let from = bytes.len();
            record.put(&mut bytes);
            assert!(matches!(record, Record::Account(_)) || bytes.len() - from <= MOST_HEAD + payload.len());
        }
        let mut reader = Reader(&bytes);
        for record in &records {
            assert_eq!(reader.record(), Ok(Some(*record)));
        }
        assert_eq!(reader.record(), Ok(None));
        // Whatever is cut off is no record.
        for (nth, record) in records.iter().enumerate() {
            let mut one = Vec::new();
            record.put(&mut one);
            for end in 1..one.len().min(120) {
                assert_eq!(Reader(&one[..end]).record(), Err(NoRecord), "record {nth}, {end} bytes");
            }
        }
        let long = "é".repeat(2000);
        let mut one = Vec::new();
        Record::Refused(&long).put(&mut one);
        assert!(matches!(Reader(&one).record(), Ok(Some(Record::Refused(text))) if text.len() == MOST_TEXT));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_go_on_for_ever(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut reader = Reader(&bytes);
            let mut count = 0;
            while let Ok(Some(_)) = reader.record() {
                count += 1;
            }
            prop_assert!(count <= bytes.len());
        }
    }
}
