//! Finds the TCP connections of a capture and keeps the segments of those that are wanted.
//!
//! Connections are numbered as Wireshark's `tcp.stream` does, from 0 in the order of their first packets; the same
//! addresses and ports begin a new one with a SYN of another sequence number.

use crate::error::LiveError;
use crate::packet::{self, NoSegment};
use crate::segment::{ACK, RST, SYN, Segment};
use capture::Reader;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

/// All that is kept of a capture is held in memory, and a second time, put in order, while it is understood: no more than
/// this, so that both stay below 1 GiB and a little.
pub const MOST_BYTES: usize = 1 << 29;
/// Bytes that a kept segment costs besides its payload, about.
const OVERHEAD: usize = 120;

/// Which connections to play.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The first that begins with a SYN; if none does, the first.
    First,
    /// By number.
    Number(u64),
    /// By addresses and ports: the client's, the server's. The first of them.
    Between(SocketAddr, SocketAddr),
    /// Every one.
    All,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::First => write!(f, "the first"),
            Which::Number(number) => write!(f, "{number}"),
            Which::Between(client, server) => write!(f, "{client}-{server}"),
            Which::All => write!(f, "all"),
        }
    }
}

/// A segment as captured.
#[derive(Debug, Clone)]
pub struct Taken {
    /// When it was captured.
    pub time_ns: u64,
    /// Sent by the end that the capture showed first.
    pub by_first: bool,
    /// The segment.
    pub segment: Segment<'static>,
    /// Bytes of payload that were not captured.
    pub missing: usize,
}

/// A connection as captured.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Its number in the capture, from 0.
    pub number: u64,
    /// The end that the capture showed first, and the other.
    pub ends: (SocketAddr, SocketAddr),
    /// In the order of the capture.
    pub segments: Vec<Taken>,
    client: Option<SocketAddr>,
}

impl Conversation {
    /// One without segments yet.
    pub fn new(number: u64, ends: (SocketAddr, SocketAddr)) -> Conversation {
        Conversation { number, ends, segments: Vec::new(), client: None }
    }

    /// Does the capture show who opened it?
    pub fn shows_client(&self) -> bool {
        self.segments.iter().any(|taken| taken.segment.has(SYN))
    }

    /// Says who the client is, of a connection that does not show it.
    pub fn client_is(&mut self, client: SocketAddr) {
        self.client = Some(client);
    }

    /// Did the end shown first open it? By SYNs; else as was said; else by ports, of which the server's is the lower.
    pub fn first_is_client(&self) -> bool {
        if let Some(client) = self.client {
            return client == self.ends.0;
        }
        let opened = self.segments.iter().find_map(|taken| {
            let (syn, ack) = (taken.segment.has(SYN), taken.segment.has(ACK));
            syn.then_some(taken.by_first != ack)
        });
        opened.unwrap_or(self.ends.0.port() >= self.ends.1.port())
    }

    fn begins_with_syn(&self) -> bool {
        self.segments.first().is_some_and(|taken| taken.segment.has(SYN))
    }
}

/// What a capture has.
#[derive(Debug, Default)]
pub struct Collected {
    /// The wanted ones, by number.
    pub conversations: Vec<Conversation>,
    /// How many connections there are.
    pub total: u64,
    /// Frames with pieces of TCP packets, which are not put together.
    pub fragments: u64,
    /// Why the capture was left before its end, if it was.
    pub cut_short: Option<String>,
}

struct Known {
    number: u64,
    /// The sequence number of the SYN without ACK.
    syn: Option<u32>,
    /// Where its segments are kept.
    kept: Option<usize>,
}

/// Reads a capture to its end.
///
/// # Errors
/// That the capture cannot be read, or holds too much.
pub fn collect(reader: &mut Reader, which: &Which) -> Result<Collected, LiveError> {
    let mut found = Collected::default();
    let mut known: HashMap<(SocketAddr, SocketAddr), Known> = HashMap::new();
    let mut bytes = 0;
    while let Some(record) = reader.next_record()? {
        let it = match packet::read(record.link, record.data, record.wire_len) {
            Ok(it) => it,
            Err(NoSegment::Fragment) => {
                found.fragments += 1;
                continue;
            }
            Err(NoSegment::Other) => continue,
        };
        let ends = (it.source, it.destination);
        let key = if ends.0 <= ends.1 { ends } else { (ends.1, ends.0) };
        let opening = it.segment.has(SYN) && !it.segment.has(ACK) && !it.segment.has(RST);
        let again = |known: &Known| opening && known.syn != Some(it.segment.seq);
        if known.get(&key).is_none_or(again) {
            let number = found.total;
            found.total += 1;
            let kept = wanted(which, number, ends, opening, &found.conversations).then(|| {
                found.conversations.push(Conversation::new(number, ends));
                found.conversations.len() - 1
            });
            known.insert(key, Known { number, syn: opening.then_some(it.segment.seq), kept });
        }
        let conversation = known
            .get(&key)
            .and_then(|known| Some((known, found.conversations.get_mut(known.kept?)?)))
            .filter(|(known, conversation)| known.number == conversation.number);
        let Some((_, conversation)) = conversation else { continue };
        bytes += it.segment.payload.len() + OVERHEAD;
        if bytes > MOST_BYTES {
            return Err(LiveError::TooLarge { which: which.to_string(), most: MOST_BYTES });
        }
        let payload = it.segment.payload.into_owned();
        conversation.segments.push(Taken {
            time_ns: record.time_ns,
            by_first: it.source == conversation.ends.0,
            segment: Segment { payload: payload.into(), ..it.segment },
            missing: it.missing,
        });
    }
    found.cut_short = reader.notes().cut_short.clone();
    if *which == Which::First
        && let Some(at) = found.conversations.iter().position(Conversation::begins_with_syn)
    {
        found.conversations.swap(0, at);
    }
    if *which == Which::First {
        found.conversations.truncate(1);
    }
    if found.conversations.is_empty() {
        return Err(match found.total {
            0 => LiveError::NoTcp { fragments: found.fragments },
            total => LiveError::NoSuchFlow { which: which.to_string(), total, last: total - 1 },
        });
    }
    Ok(found)
}

fn wanted(
    which: &Which,
    number: u64,
    ends: (SocketAddr, SocketAddr),
    opening: bool,
    kept: &[Conversation],
) -> bool {
    match which {
        Which::First => kept.is_empty() || (opening && !kept.iter().any(Conversation::begins_with_syn)),
        Which::Number(wanted) => number == *wanted,
        Which::Between(client, server) => {
            kept.is_empty() && (ends == (*client, *server) || ends == (*server, *client))
        }
        Which::All => true,
    }
}
