//! The packet program: the one form that everything to be sent is compiled to.
//!
//! ```text
//!   lanes, merged by due time: frame n of the program is frame i of a lane
//!   frame i --order--> stream s, its frame k --template--> bytes
//!                         |                                  ^
//!                         |  q = first + step * k            |
//!                         |- fields   at(q / every)  --------|   written in this order:
//!                         |- length   at(q)          --------|   fields, length fields,
//!                         |- signature (k), time     --------|   signature, CRC,
//!                         |- crc      over the above --------|   sums (inner before outer)
//!                         `- sums     over the above --------'
//! ```
//!
//! Offsets count bytes from the start of the frame. What a front end must guarantee is checked once, by
//! [`Program::check`]; the executor then needs no checks per frame.

use crate::lengths::Lengths;
use crate::schedule::Schedule;
use crate::templates::Templates;
use crate::values::Values;
use crate::walk::Walk;
use std::ops::Range;
use std::sync::Arc;

/// Most varying fields, and most checksums, of a stream: what the executor's 32-bit partial sums have room for.
pub const MAX_FIELDS: usize = 64;

/// Everything there is to know about the frames of a run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The streams; each belongs to exactly one lane.
    pub streams: Vec<Stream>,
    /// Frames of all lanes leave in the order of their due times; of those due at once, the lower lane's first. No
    /// lanes (and no streams): nothing to send, which is what a core may be left with when a program is shared out.
    pub lanes: Vec<Lane>,
}

/// Streams that take turns, and when.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Frame *i* of the lane is one of stream `order[i % order.len()]`: an exact repeating interleave.
    pub order: Arc<[u32]>,
    /// When frame *i* is due, counted from `start_ns`. A lane at top speed must be the program's only one.
    pub schedule: Schedule,
    /// Nanoseconds after the start of the run.
    pub start_ns: u64,
    /// The lane ends after so many frames (or where its schedule does).
    pub frames: Option<u64>,
}

impl Lane {
    /// A lane from the start of the run, without end.
    pub fn new(order: impl Into<Arc<[u32]>>, schedule: Schedule) -> Lane {
        Lane { order: order.into(), schedule, start_ns: 0, frames: None }
    }
}

/// Frames that belong together: one template (or one capture), varied by one set of laws.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Shown in results.
    pub name: String,
    /// The bytes that do not vary. Frame *k* starts from template `k % templates.len()`; `k / templates.len()` is
    /// the *pass*. With [`Lengths`] other than `Template`, each template must be as long as the longest frame.
    pub templates: Templates,
    /// What varies.
    pub fields: Vec<Field>,
    /// How long frame *k* is.
    pub lengths: Lengths,
    /// Header fields that say a length.
    pub length_fields: Vec<LengthField>,
    /// A CRC to compute, before the checksums: they may cover it, it covers none of them.
    pub crc: Option<Crc>,
    /// Checksums to compute, inner ones before outer ones that cover them.
    pub sums: Vec<Sum>,
    /// Put a signature into the last 18 bytes, under this stream number; of captured frames only into those whose
    /// last 18 bytes are TCP or UDP payload.
    pub signature: Option<u32>,
    /// Each pass over the templates gets addresses of its own (captures).
    pub unique_addresses: bool,
    /// Frame *k* has the field values and the length that the laws give for number `first + step * k`, so that cores
    /// can share a stream out. Nothing else of the frame, its signature for one, counts this way. 0 for captures.
    pub first: u64,
    /// At least 1; 1 for captures.
    pub step: u64,
    /// Which of a run's ports its frames leave by, counted from 0. It changes no frame.
    pub port: u8,
}

/// A varying field: up to 64 bits anywhere in the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// First byte touched.
    pub offset: u32,
    /// Bytes touched, 1 to 8.
    pub bytes: u8,
    /// The value is shifted left by this within those bytes, taken as one big-endian number.
    pub shift: u8,
    /// Which bits of those bytes belong to the field (after the shift); others keep the template's.
    pub mask: u64,
    /// The law.
    pub values: Values,
    /// The field takes its next value every this many frames of the stream (1: each frame). Nesting is built from it.
    pub every: u64,
}

impl Field {
    /// A field of `width` bits that starts `bit` bits into the frame (bit 0 is the first byte's most significant).
    /// `None` when it would touch more than eight bytes or `width` is not 1 to 64.
    pub fn at_bit(bit: u64, width: u32, values: Values) -> Option<Field> {
        if width == 0 || width > 64 {
            return None;
        }
        let first = bit / 8;
        let end = bit + u64::from(width);
        let bytes = end.div_ceil(8) - first;
        if bytes > 8 {
            return None;
        }
        let shift = bytes * 8 - (end - first * 8);
        let ones = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        Some(Field {
            offset: u32::try_from(first).ok()?,
            bytes: bytes as u8,
            shift: shift as u8,
            mask: ones << shift,
            values,
            every: 1,
        })
    }

    /// The same field, advancing only every `every` frames.
    pub fn every(self, every: u64) -> Field {
        Field { every: every.max(1), ..self }
    }

    /// Do both write a common bit? Each value is added to checksums as if it stood in the frame, so no other may.
    fn overlaps(&self, other: &Field) -> bool {
        let byte_of = |field: &Field, at: u32| {
            let from_end = (field.offset + u32::from(field.bytes)).checked_sub(at + 1)?;
            if at < field.offset { None } else { Some((field.mask >> (8 * from_end)) as u8) }
        };
        self.range().any(|at| {
            let at = at as u32;
            matches!((byte_of(self, at), byte_of(other, at)), (Some(a), Some(b)) if a & b != 0)
        })
    }

    /// The range of bytes touched.
    pub fn range(&self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.bytes as usize
    }
}

/// A 16-bit big-endian header field that says `frame length - less`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthField {
    /// Where it stands.
    pub offset: u32,
    /// Bytes of the frame that it does not count.
    pub less: u32,
}

/// A checksum field and what it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Where the checksum stands (two bytes; taken as zero while summing). It must lie in the covered range, at an
    /// even distance from its start.
    pub offset: u32,
    /// First byte covered.
    pub start: u32,
    /// End of what is covered; `None`: to the end of the frame.
    pub end: Option<u32>,
    /// Ranges outside `start..end` that are covered too: the addresses of a pseudo header. Even lengths.
    pub also: Vec<Range<u32>>,
    /// Added to the sum: the pseudo header's constant parts (protocol number).
    pub plus: u64,
    /// Add the covered length (`end - start`) too, as pseudo headers do.
    pub plus_length: bool,
    /// UDP's rule: a computed zero is written as 0xffff (RFC 768).
    pub udp: bool,
    /// Added (modulo 0x10000) to the right value before writing: wrong on purpose when not 0.
    pub error: u16,
}

/// A CRC-32C field (SCTP's, RFC 9260 section 6.8), which covers everything from `start` to the end of the frame. One whose
/// bytes are the same in all frames stands in the template instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crc {
    /// Where it stands: four bytes, the least significant first, taken as zero while computing.
    pub offset: u32,
    /// First byte covered.
    pub start: u32,
    /// Added by exclusive or to the right value, as the four bytes stand: wrong on purpose when not 0.
    pub error: u32,
}

impl Crc {
    /// The four bytes, from the CRC of what is covered.
    pub fn bytes(&self, crc: u32) -> [u8; 4] {
        (crc.swap_bytes() ^ self.error).to_be_bytes()
    }
}

/// What a front end got wrong. Users never see one unless we have a defect, or a length does not suit the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProgram {
    /// Nothing to send.
    #[error("the program has no frames")]
    Empty,
    /// Something lies outside of the shortest frame.
    #[error("stream `{stream}`: {what} at byte {offset} lies outside of the shortest frame, {length} bytes")]
    Outside {
        /// The stream's name.
        stream: String,
        /// Which part.
        what: &'static str,
        /// First byte outside.
        offset: u64,
        /// The shortest frame.
        length: u32,
    },
    /// A length law asks for more than the template holds.
    #[error(
        "stream `{stream}`: a frame of {length} bytes is asked for, but its template has only {template}"
    )]
    TooLong {
        /// The stream's name.
        stream: String,
        /// The longest frame.
        length: u32,
        /// The template.
        template: u32,
    },
    /// A lane that cannot be.
    #[error("lane {lane}: {what}")]
    Lane {
        /// Its number.
        lane: usize,
        /// What does not hold.
        what: &'static str,
    },
    /// An index or alignment that the executor relies on does not hold.
    #[error("stream `{stream}`: {what}")]
    Inconsistent {
        /// The stream's name.
        stream: String,
        /// What does not hold.
        what: &'static str,
    },
}

impl Program {
    /// A program of one stream, sent as fast as it goes.
    pub fn single(stream: Stream) -> Program {
        Program::interleaved(vec![stream], [0], Schedule::TopSpeed)
    }

    /// A program of streams that take turns by `order`, in one lane.
    pub fn interleaved(streams: Vec<Stream>, order: impl Into<Arc<[u32]>>, schedule: Schedule) -> Program {
        Program { streams, lanes: vec![Lane::new(order, schedule)] }
    }

    /// The same frames at other times: all lanes follow `schedule`.
    pub fn with_schedule(mut self, schedule: Schedule) -> Program {
        self.lanes.iter_mut().for_each(|lane| lane.schedule = schedule.clone());
        self
    }

    /// The only lane's schedule, of a program that is that lane from start to end.
    pub fn only_schedule(&self) -> Option<&Schedule> {
        match &self.lanes[..] {
            [Lane { schedule, start_ns: 0, frames: None, .. }] => Some(schedule),
            _ => None,
        }
    }

    /// Do frames have times to wait for?
    pub fn is_paced(&self) -> bool {
        self.lanes.iter().any(|lane| lane.schedule.is_paced())
    }

    /// Checks all that the executor relies on.
    ///
    /// # Errors
    /// What of it contradicts itself.
    pub fn check(&self) -> Result<(), BadProgram> {
        for stream in &self.streams {
            stream.check()?;
        }
        let mut lane_of = vec![None; self.streams.len()];
        for (number, lane) in self.lanes.iter().enumerate() {
            let bad = |what| Err(BadProgram::Lane { lane: number, what });
            if lane.order.is_empty() {
                return Err(BadProgram::Empty);
            }
            if !lane.schedule.is_paced() && self.lanes.len() > 1 {
                return bad("top speed leaves no room for other lanes");
            }
            if let Err(what) = lane.schedule.check() {
                return bad(what);
            }
            for &s in lane.order.iter() {
                match lane_of.get_mut(s as usize) {
                    None => return bad("the order names a stream that is not there"),
                    Some(Some(other)) if *other != number => {
                        return bad("another lane has its stream already");
                    }
                    Some(lane) => *lane = Some(number),
                }
            }
        }
        match lane_of.iter().position(Option::is_none) {
            Some(s) => Err(BadProgram::Inconsistent {
                stream: self.streams[s].name.clone(),
                what: "no lane sends this stream",
            }),
            None => Ok(()),
        }
    }

    /// Longest frame of all streams, in bytes.
    pub fn longest(&self) -> u32 {
        self.streams.iter().map(Stream::longest).max().unwrap_or(0)
    }

    /// How many of the first `n` frames carry a signature, by the number of the stream that is in it.
    pub fn signed_among(&self, n: u64) -> Vec<(u32, u64)> {
        let Ok(mut walk) = Walk::new(self) else { return Vec::new() };
        walk.seek(n);
        let signed = |(stream, &frames): (&Stream, &u64)| {
            stream.signature.map(|number| (number, stream.signed_among(frames)))
        };
        self.streams.iter().zip(walk.counts()).filter_map(signed).collect()
    }

    /// How many frames are due within `ns` of the start of the run, where that has a closed form; [`Tally`] counts
    /// where it has not.
    ///
    /// [`Tally`]: crate::walk::Tally
    pub fn frames_due_by(&self, ns: u64) -> Option<u64> {
        let due = |lane: &Lane| lane.due_by(ns, self.only_length_of(lane));
        self.lanes.iter().try_fold(0u64, |total, lane| Some(total.saturating_add(due(lane)?)))
    }

    /// Whether a seed went into its frames or their times. Each law is asked for its key, so that none is forgotten.
    pub fn uses_seed(&self) -> bool {
        let Program { streams, lanes } = self;
        streams.iter().any(Stream::uses_seed) || lanes.iter().any(|lane| lane.schedule.key().is_some())
    }

    /// The length of all frames, when they have the same.
    pub fn only_length(&self) -> Option<u32> {
        same(self.streams.iter().map(Stream::only_length))
    }

    /// The length of all frames of a lane, when they have the same.
    pub fn only_length_of(&self, lane: &Lane) -> Option<u32> {
        same(lane.order.iter().map(|&s| self.streams.get(s as usize)?.only_length()))
    }

    /// Frames until every stream has gone through all its templates once: a capture's number of frames.
    pub fn frames_per_pass(&self) -> u64 {
        if self.is_pair_of_captures() {
            return self.lanes[0].order.len() as u64;
        }
        let order: u64 = self.lanes.iter().map(|lane| lane.order.len() as u64).sum();
        order * self.streams.first().map_or(1, |s| s.templates.len() as u64)
    }

    /// Is it captured frames that leave by two interfaces, in one lane that names that of each frame of a pass?
    pub fn is_pair_of_captures(&self) -> bool {
        let [lane] = &self.lanes[..] else { return false };
        self.streams.len() > 1
            && self.streams.iter().all(Stream::is_captured)
            && self.streams.iter().map(|s| s.templates.len()).sum::<usize>() == lane.order.len()
    }

    /// Do frames leave by other ports than the first?
    pub fn has_ports(&self) -> bool {
        self.streams.iter().any(|stream| stream.port != 0)
    }
}

/// What all of `values` are, if that is one thing.
fn same(mut values: impl Iterator<Item = Option<u32>>) -> Option<u32> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

impl Stream {
    /// A stream of one template, sent as it is.
    pub fn of(name: impl Into<String>, bytes: &[u8]) -> Stream {
        Stream {
            name: name.into(),
            templates: Templates::single(bytes),
            fields: Vec::new(),
            lengths: Lengths::Template,
            length_fields: Vec::new(),
            crc: None,
            sums: Vec::new(),
            signature: None,
            unique_addresses: false,
            first: 0,
            step: 1,
            port: 0,
        }
    }

    /// Are its frames captured ones, copied whole, rather than one template that is patched?
    pub fn is_captured(&self) -> bool {
        self.templates.is_captured()
    }

    /// Whether a seed went into one of its laws. All members are named: one that is added does not compile before somebody
    /// decides whether a seed can be in it, because a seed that is not reported cannot be used again.
    fn uses_seed(&self) -> bool {
        let Stream {
            fields,
            lengths,
            name: _,
            templates: _,
            length_fields: _,
            crc: _,
            sums: _,
            signature: _,
            unique_addresses: _,
            first: _,
            step: _,
            port: _,
        } = self;
        lengths.key().is_some() || fields.iter().any(|field| field.values.key().is_some())
    }

    /// The length of all its frames, when they have the same.
    fn only_length(&self) -> Option<u32> {
        let (shortest, _) = self.lengths.bounds(self.templates.shortest());
        (shortest == self.longest()).then_some(shortest)
    }

    /// How many of its first `frames` frames carry its signature.
    fn signed_among(&self, frames: u64) -> u64 {
        if !self.is_captured() {
            return frames;
        }
        let templates = &self.templates;
        let (passes, within) = (frames / templates.len() as u64, frames % templates.len() as u64);
        passes * templates.signed_per_pass() + templates.signed_among(within as usize)
    }

    /// Longest frame, in bytes.
    pub fn longest(&self) -> u32 {
        self.lengths.bounds(self.templates.longest()).1
    }

    fn check(&self) -> Result<(), BadProgram> {
        let name = || self.name.clone();
        let inconsistent = |what| BadProgram::Inconsistent { stream: name(), what };
        if self.templates.is_empty() {
            return Err(BadProgram::Empty);
        }
        if self.step == 0 || self.is_captured() && (self.first, self.step) != (0, 1) {
            return Err(inconsistent(
                "a stream advances by 1 or more frames, a captured one by 1 from the first",
            ));
        }
        let template = self.templates.shortest();
        let (shortest, longest) = self.lengths.bounds(template);
        if longest > template {
            return Err(BadProgram::TooLong { stream: name(), length: longest, template });
        }
        let inside = |what, end: u64| {
            if end > u64::from(shortest) {
                Err(BadProgram::Outside { stream: name(), what, offset: end - 1, length: shortest })
            } else {
                Ok(())
            }
        };
        for field in &self.fields {
            if !(1..=8).contains(&field.bytes) || field.every == 0 {
                return Err(inconsistent(
                    "a field must touch 1 to 8 bytes and advance every 1 or more frames",
                ));
            }
            inside("a field", u64::from(field.offset) + u64::from(field.bytes))?;
        }
        if self.fields.len() > MAX_FIELDS || self.sums.len() > MAX_FIELDS {
            return Err(inconsistent("at most 64 fields vary, and at most 64 checksums are computed"));
        }
        for (i, field) in self.fields.iter().enumerate() {
            if self.fields[..i].iter().any(|before| before.overlaps(field)) {
                return Err(inconsistent("two varying fields share bits of the frame"));
            }
        }
        for field in &self.length_fields {
            inside("a length field", u64::from(field.offset) + 2)?;
            if field.less > shortest {
                return Err(inconsistent("a length field would be negative"));
            }
        }
        for sum in &self.sums {
            inside("a checksum", u64::from(sum.offset) + 2)?;
            let end = sum.end.unwrap_or(shortest);
            inside("what a checksum covers", u64::from(end))?;
            for range in &sum.also {
                inside("what a checksum covers", u64::from(range.end))?;
                if range.start > range.end || (range.end - range.start) % 2 != 0 {
                    return Err(inconsistent("a pseudo header range has an odd length"));
                }
            }
            if sum.offset < sum.start || sum.offset + 2 > end || (sum.offset - sum.start) % 2 != 0 {
                return Err(inconsistent("a checksum field must lie in its own range, at an even distance"));
            }
            self.check_covered(sum, end)?;
        }
        if let Some(crc) = &self.crc {
            inside("a CRC", u64::from(crc.offset) + 4)?;
            if crc.start > crc.offset || self.sums.iter().any(|sum| sum.offset + 2 > crc.start) {
                return Err(inconsistent("a CRC lies in its own range, and no checksum does"));
            }
        }
        self.check_signature(shortest)?;
        if self.lengths != Lengths::Template && self.is_captured() {
            return Err(inconsistent("a length law does not go with captured frames"));
        }
        if self.is_captured()
            && !(self.fields.is_empty()
                && self.length_fields.is_empty()
                && self.sums.is_empty()
                && self.crc.is_none())
        {
            return Err(inconsistent("fields do not go with captured frames"));
        }
        Ok(())
    }

    /// What varies is covered by a checksum or not, because each value is added as a whole.
    fn check_covered(&self, sum: &Sum, end: u32) -> Result<(), BadProgram> {
        let fields = self.fields.iter().map(|field| (field.offset, field.offset + u32::from(field.bytes)));
        let words = self.length_fields.iter().map(|field| field.offset);
        let words = words.chain(self.sums.iter().map(|other| other.offset)).map(|at| (at, at + 2));
        let own = sum.start..sum.end.map_or(u32::MAX, |_| end);
        let partly = |(from, to): (u32, u32)| {
            std::iter::once(&own).chain(&sum.also).any(|range| {
                from < range.end && range.start < to && !(range.start <= from && to <= range.end)
            })
        };
        if fields.chain(words).any(partly) {
            let what =
                "what varies stands partly within the bytes that a checksum covers: divide it into two";
            return Err(BadProgram::Inconsistent { stream: self.name.clone(), what });
        }
        Ok(())
    }

    /// The signature stands behind all that varies.
    fn check_signature(&self, shortest: u32) -> Result<(), BadProgram> {
        let Some(stream) = self.signature.filter(|_| !self.is_captured()) else { return Ok(()) };
        if stream > wire::signature::MAX_STREAM {
            let what = "stream numbers of signatures have 24 bits";
            return Err(BadProgram::Inconsistent { stream: self.name.clone(), what });
        }
        let tail = u64::from(shortest).checked_sub(wire::signature::LEN as u64);
        let covered_by_others = self
            .fields
            .iter()
            .map(|f| u64::from(f.offset) + u64::from(f.bytes))
            .chain(self.length_fields.iter().map(|f| u64::from(f.offset) + 2))
            .chain(self.sums.iter().map(|s| u64::from(s.offset) + 2))
            .chain(self.crc.iter().map(|c| u64::from(c.offset) + 4))
            .max()
            .unwrap_or(0);
        if tail.is_none_or(|tail| covered_by_others > tail) {
            return Err(BadProgram::Outside {
                stream: self.name.clone(),
                what: "the signature's 18 bytes leave no room for what stands",
                offset: covered_by_others,
                length: shortest,
            });
        }
        Ok(())
    }
}
