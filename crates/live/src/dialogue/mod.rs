//! What a captured connection says: the client's words, how they were cut, what of the server's each of them waited for,
//! and what the server answered.
//!
//! ```text
//!   client   "GET /a"               "GET /b"             FIN
//!   server             "200 ..."             "404 ..."
//!            `--- exchange 0 ----'  `--- exchange 1 ---'  closing
//! ```
//!
//! What the client waited for is taken from the acknowledgement that its words carried: that much of the server's words
//! it had received.

pub mod collect;
mod stream;

use crate::segment::{ACK, FIN, Options, PSH, RST, SYN};
use collect::{Conversation, Taken};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use stream::{New, Stream};

/// What the client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Bytes up to `end` of all that it says.
    Bytes {
        /// Up to this of all that it says.
        end: u64,
        /// To be handed on at once.
        push: bool,
    },
    /// No more comes from the client.
    Fin,
    /// The connection is torn down.
    Reset,
}

/// What the client does once it has heard `after` bytes (and the server's FIN, if `after_fin`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub say: Say,
    /// Bytes that the server must have said before.
    pub after: u64,
    /// The server must have ended its side before.
    pub after_fin: bool,
    /// How long it took to do so, from what it waited for or did before.
    pub delay_ns: u64,
    /// When, in the capture.
    pub time_ns: u64,
}

/// Words of the client, and what the server answered to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Which of the steps.
    pub steps: Range<usize>,
    /// Of the client's bytes.
    pub said: Range<u64>,
    /// Of the server's bytes.
    pub heard: Range<u64>,
    /// From the last word to the first byte of the answer.
    pub first_byte_ns: Option<u64>,
    /// From the last word to the last byte of the answer.
    pub last_byte_ns: Option<u64>,
    /// The longest pause within the answer.
    pub pause_ns: u64,
}

/// How a connection ended in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client was first to say that it has no more.
    ByClient,
    /// The server ended its side first.
    ByServer,
    /// The client tore it down.
    ResetByClient,
    /// The server tore it down.
    ResetByServer,
    /// The capture ends before.
    Open,
}

/// Something that the client said is not in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// How much of what it said is there.
    pub at: u64,
    /// Bytes that are missing; none if it is not known how many.
    pub bytes: Option<u64>,
    /// The packets are there, but cut by the capture's snap length.
    pub cut: bool,
}

/// A captured connection, understood.
#[derive(Debug, Clone)]
pub struct Dialogue {
    /// Its number in the capture, from 0.
    pub number: u64,
    /// The captured client.
    pub client: SocketAddr,
    /// The captured server.
    pub server: SocketAddr,
    /// Begins with a SYN.
    pub handshake: bool,
    /// What the client's SYN offered, and its window in bytes.
    pub offer: Options,
    /// The window that the client offered, in bytes.
    pub window: u32,
    /// When it began, in the capture.
    pub start_ns: u64,
    /// What the client says.
    pub said: Arc<[u8]>,
    /// What the server said.
    pub heard: Vec<u8>,
    /// Of which this was not captured.
    pub unknown: Vec<Range<u64>>,
    /// All that the client does, in order.
    pub steps: Vec<Step>,
    /// The words of the client with the server's answers.
    pub exchanges: Vec<Exchange>,
    /// Steps behind the last answer.
    pub closing: Range<usize>,
    /// Who ended it.
    pub ended: Ended,
    /// The server ended its side.
    pub server_fin: bool,
    /// The first place where the capture lacks what the client said.
    pub gap: Option<Gap>,
    /// Segments of the client that said nothing new, or fitted nowhere.
    pub repeated: u64,
    /// Segments that fitted nowhere.
    pub wild: u64,
}

/// Puts a conversation in order.
pub fn understand(conversation: &Conversation) -> Dialogue {
    let first_is_client = conversation.first_is_client();
    let (client, server) = match first_is_client {
        true => conversation.ends,
        false => (conversation.ends.1, conversation.ends.0),
    };
    let mut builder = Builder::new(&conversation.segments, first_is_client);
    for (index, taken) in conversation.segments.iter().enumerate() {
        builder.add(index, taken);
    }
    builder.finish();
    let start_ns = conversation.segments.first().map_or(0, |taken| taken.time_ns);
    let steps = builder.steps();
    let total = builder.answered();
    let (exchanges, closing) = exchanges(&steps, total, &builder.arrivals);
    let syn = conversation
        .segments
        .iter()
        .find(|taken| taken.by_first == first_is_client && taken.segment.has(SYN) && !taken.segment.has(ACK));
    let gap = builder.gap();
    let mut said = builder.said.bytes;
    if let Some(gap) = gap {
        said.truncate(gap.at as usize);
    }
    let any_timestamps = conversation.segments.iter().any(|taken| taken.segment.options.timestamps.is_some());
    let offer = match syn {
        Some(syn) => syn.segment.options,
        // Without its SYN only what can be seen later on is known to have been offered.
        None => Options { timestamps: any_timestamps.then_some((0, 0)), ..Options::default() },
    };
    Dialogue {
        number: conversation.number,
        client,
        server,
        handshake: syn.is_some(),
        offer,
        window: syn.map_or(0xffff, |syn| {
            u32::from(syn.segment.window).max(0xffff) << offer.window_scale.unwrap_or(0).min(14)
        }),
        start_ns,
        said: said.into(),
        unknown: builder.heard.unknown,
        server_fin: builder.heard.fin.is_some(),
        heard: builder.heard.bytes,
        steps,
        exchanges,
        closing,
        ended: builder.ended,
        gap,
        repeated: builder.said.repeated,
        wild: builder.said.wild + builder.heard.wild,
    }
}

struct Builder<'a> {
    segments: &'a [Taken],
    first_is_client: bool,
    said: Stream,
    heard: Stream,
    /// The client's words in order.
    words: Vec<New>,
    /// What had arrived of the server's words, and when.
    arrivals: Vec<(u64, u64)>,
    client_fin: Option<usize>,
    client_reset: Option<usize>,
    ended: Ended,
}

impl<'a> Builder<'a> {
    fn new(segments: &'a [Taken], first_is_client: bool) -> Builder<'a> {
        Builder {
            segments,
            first_is_client,
            said: Stream::default(),
            heard: Stream::default(),
            words: Vec::new(),
            arrivals: Vec::new(),
            client_fin: None,
            client_reset: None,
            ended: Ended::Open,
        }
    }

    fn add(&mut self, index: usize, taken: &Taken) {
        let by_client = taken.by_first == self.first_is_client;
        let segment = &taken.segment;
        let (own, other) = match by_client {
            true => (&mut self.said, &mut self.heard),
            false => (&mut self.heard, &mut self.said),
        };
        let seq = segment.seq.wrapping_add(u32::from(segment.has(SYN)));
        if segment.has(RST) {
            if self.ended == Ended::Open || (self.client_fin.is_none() && by_client) {
                self.ended = if by_client { Ended::ResetByClient } else { Ended::ResetByServer };
            }
            // After both sides have said that they are done, a reset says nothing.
            if by_client && !(own.fin.is_some() && other.fin.is_some()) {
                self.client_reset.get_or_insert(index);
            }
            return;
        }
        own.begin(seq);
        if segment.has(ACK) {
            other.begin(segment.ack);
        }
        let length = segment.payload.len() + taken.missing;
        let mut new = Vec::new();
        if length > 0 {
            own.add(seq, &segment.payload, taken.missing, index, &mut new);
        }
        if segment.has(FIN) && own.fin.is_none() {
            let at = own.offset(seq) + length as i64;
            if at >= own.next() as i64 {
                own.fin = Some(at as u64);
                if by_client {
                    self.client_fin = Some(index);
                }
                if self.ended == Ended::Open {
                    self.ended = if by_client { Ended::ByClient } else { Ended::ByServer };
                }
            }
        }
        if by_client {
            self.words.extend(new);
        } else {
            self.arrivals.extend(new.iter().map(|new| (new.end, taken.time_ns)));
        }
    }

    fn finish(&mut self) {
        let mut new = Vec::new();
        self.said.close_gaps(&mut self.words);
        self.heard.close_gaps(&mut new);
        let end = self.segments.last().map_or(0, |taken| taken.time_ns);
        let time = |new: &New| self.segments.get(new.index).map_or(end, |taken| taken.time_ns);
        self.arrivals.extend(new.iter().map(|new| (new.end, time(new))));
    }

    /// How much of the server's words answers what is said: up to a gap, what the client had heard behind it.
    fn answered(&self) -> u64 {
        let all = self.heard.next();
        let gap = self.said.unknown.first().map(|range| range.start);
        let behind = gap.and_then(|gap| self.words.iter().find(|word| word.end > gap));
        match behind.and_then(|word| self.segments.get(word.index)) {
            Some(taken) => (self.heard.offset(taken.segment.ack).max(0) as u64).min(all),
            None => all,
        }
    }

    fn gap(&self) -> Option<Gap> {
        let range = self.said.unknown.first()?;
        let cut =
            self.segments.iter().any(|taken| taken.by_first == self.first_is_client && taken.missing > 0);
        Some(Gap { at: range.start, bytes: Some(range.end - range.start), cut })
    }

    /// What the client does, in order.
    fn steps(&self) -> Vec<Step> {
        let gap = self.said.unknown.first().map(|range| range.start);
        let mut steps = Vec::new();
        for word in &self.words {
            if gap.is_some_and(|gap| word.end > gap) {
                break;
            }
            let push = self.segments.get(word.index).is_some_and(|taken| taken.segment.has(PSH));
            self.step(&mut steps, word.index, Say::Bytes { end: word.end, push });
        }
        if gap.is_none() {
            for (index, say) in [(self.client_fin, Say::Fin), (self.client_reset, Say::Reset)] {
                if let Some(index) = index {
                    self.step(&mut steps, index, say);
                }
            }
        }
        steps
    }

    fn step(&self, steps: &mut Vec<Step>, index: usize, say: Say) {
        let Some(taken) = self.segments.get(index) else { return };
        let before = steps.last().copied();
        let floor = before.map_or(0, |step| step.after);
        let total = self.heard.next();
        // A reset acknowledges nothing that could be relied on.
        let known = taken.segment.has(ACK) && !taken.segment.has(RST) && self.heard.has_begun();
        let acknowledged = match known {
            true => self.heard.offset(taken.segment.ack),
            false => self
                .arrivals
                .iter()
                .take_while(|(_, at)| *at <= taken.time_ns)
                .last()
                .map_or(0, |a| a.0 as i64),
        };
        let after = (acknowledged.max(0) as u64).clamp(floor, total.max(floor));
        let after_fin = self.heard.fin.is_some_and(|fin| acknowledged > fin as i64);
        let reached = self.arrivals.partition_point(|(end, _)| *end < after);
        let arrived = self.arrivals.get(reached).filter(|_| after > 0);
        let trigger = arrived.map(|(_, at)| *at).into_iter().chain(before.map(|step| step.time_ns)).max();
        let trigger = trigger.or_else(|| self.opened_ns()).unwrap_or(taken.time_ns);
        let delay_ns = taken.time_ns.saturating_sub(trigger);
        steps.push(Step { say, after, after_fin, delay_ns, time_ns: taken.time_ns });
    }

    /// When the server had answered the SYN.
    fn opened_ns(&self) -> Option<u64> {
        let answer = self.segments.iter().find(|taken| taken.segment.has(SYN) && taken.segment.has(ACK));
        answer.or(self.segments.first()).map(|taken| taken.time_ns)
    }
}

/// Groups steps by what they waited for.
fn exchanges(steps: &[Step], total: u64, arrivals: &[(u64, u64)]) -> (Vec<Exchange>, Range<usize>) {
    let mut starts: Vec<usize> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if index == 0 || steps.get(index - 1).is_some_and(|before| before.after < step.after) {
            starts.push(index);
        }
    }
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut said = 0;
    let mut add = |range: Range<usize>, from: u64, to: u64| {
        let group = steps.get(range.clone()).unwrap_or_default();
        let mut ends = group.iter().filter_map(|step| match step.say {
            Say::Bytes { end, .. } => Some(end),
            Say::Fin | Say::Reset => None,
        });
        let end = ends.next_back().unwrap_or(said);
        let last = group.last().map(|step| step.time_ns);
        let first = arrivals.partition_point(|(end, _)| *end <= from);
        let behind = arrivals.partition_point(|(end, _)| *end < to);
        let answer =
            arrivals.get(first..(behind + 1).min(arrivals.len())).filter(|_| to > from).unwrap_or_default();
        let since = |at: Option<&(u64, u64)>| Some(at?.1.saturating_sub(last?));
        exchanges.push(Exchange {
            steps: range,
            said: said..end,
            heard: from..to,
            first_byte_ns: since(answer.first()),
            last_byte_ns: since(answer.last()),
            pause_ns: answer
                .windows(2)
                .map(|pair| match pair {
                    [a, b] => b.1.saturating_sub(a.1),
                    _ => 0,
                })
                .max()
                .unwrap_or(0),
        });
        said = end;
    };
    let first = steps.first().map_or(total, |step| step.after);
    if first > 0 {
        add(0..0, 0, first);
    }
    let mut closing = steps.len()..steps.len();
    for (nth, &start) in starts.iter().enumerate() {
        let end = starts.get(nth + 1).copied().unwrap_or(steps.len());
        let from = steps.get(start).map_or(0, |step| step.after);
        let to = steps.get(end).map_or(total, |step| step.after);
        let ends_it = steps.get(start).is_some_and(|step| !matches!(step.say, Say::Bytes { .. }));
        if ends_it && from == to {
            closing = start..end;
        } else {
            add(start..end, from, to);
        }
    }
    (exchanges, closing)
}

#[cfg(test)]
mod tests;
