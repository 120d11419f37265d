//! Frames into buffers.
//!
//! A buffer that already holds a frame of the same stream gets only what differs: the varying fields, the lengths and
//! the checksums. A checksum is never computed over the frame while sending: what does not vary was summed once (for
//! each possible length), and each varying field adds its own words to that sum as it is written. SCTP's CRC alone is
//! computed over what it covers, by the processor's own instruction.
//!
//! Whose frame comes next, and when, is the [`Walk`]'s to know.
//!
//! Frames are made a batch at a time, one *operation* after the other over all frames of the batch: which law a field
//! follows, how wide it is and which sums it feeds are then decided once a batch, and what is left for each frame are
//! loops of a few instructions (`make bench`, "executor": about 6 ns a frame for two fields and two checksums, where
//! deciding per frame cost 26).
//!
//! The executor walks indices in order and keeps the next value of each field at hand (a division per field would
//! cost more than all the rest), but holds no state that [`Executor::seek`] could not compute from the index alone.

use crate::lengths::Lengths;
use crate::program::{BadProgram, Crc, Program, Stream, Sum};
use crate::templates::{Addresses, low_words};
use crate::values::Values;
use crate::walk::Walk;
use std::ops::Range;
use wire::checksum::{finish, finish_udp, fold, sum};
use wire::crc::crc32c;
use wire::layers::Layers;
use wire::signature::{self, Signature};

/// What a buffer holds, as kept beside the buffer by whoever owns it: [`NOTHING`] or a frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held(u64);

/// Tells that nothing may be relied on to stand in a buffer.
pub const NOTHING: u64 = 0;

impl Held {
    fn frame(stream: usize, length: usize) -> Held {
        Held((stream as u64 + 1) << 32 | length as u64)
    }

    /// The length of the frame held, when it is one of this stream.
    fn of(self, stream: usize) -> Option<usize> {
        (self.0 >> 32 == stream as u64 + 1).then_some((self.0 & 0xffff_ffff) as usize)
    }
}

/// Frames made at once. More gains nothing and spills the first-level cache.
pub const BATCH: usize = 64;

/// Buffers for frames: buffer `i` is `bytes[i * stride..]`, at least as long as the program's longest frame.
#[derive(Debug)]
pub struct Buffers<'a> {
    /// All buffers.
    pub bytes: &'a mut [u8],
    /// From one buffer to the next.
    pub stride: usize,
    /// What each holds, noted here by the executor; [`NOTHING`] when that is not known.
    pub held: &'a mut [u64],
    /// Receives the length of each frame.
    pub lengths: &'a mut [u32],
}

/// Buffers that belong to us.
#[derive(Debug)]
pub struct Slab {
    bytes: Vec<u8>,
    stride: usize,
    held: Vec<u64>,
    lengths: Vec<u32>,
}

impl Slab {
    /// `count` buffers of at least `size` bytes.
    pub fn new(count: usize, size: usize) -> Slab {
        // An odd number of cache lines apart: a power of two would put all buffers into the same few cache sets.
        let stride = (size.div_ceil(64) | 1) * 64;
        Slab { bytes: vec![0; stride * count], stride, held: vec![NOTHING; count], lengths: vec![0; count] }
    }

    /// The buffers.
    pub fn buffers(&mut self) -> Buffers<'_> {
        Buffers {
            bytes: &mut self.bytes,
            stride: self.stride,
            held: &mut self.held,
            lengths: &mut self.lengths,
        }
    }

    /// Frame `i`.
    pub fn frame(&self, i: usize) -> &[u8] {
        &self.bytes[i * self.stride..][..self.lengths[i] as usize]
    }
}

/// Which buffers of a batch a stream's frames go into.
#[derive(Debug, Clone, Copy)]
enum Slots<'a> {
    /// The first so many: the only stream's.
    First(usize),
    /// These.
    Listed(&'a [u16]),
}

impl Slots<'_> {
    fn len(self) -> usize {
        match self {
            Slots::First(n) => n,
            Slots::Listed(slots) => slots.len(),
        }
    }

    fn get(self, j: usize) -> usize {
        match self {
            Slots::First(_) => j,
            Slots::Listed(slots) => slots[j] as usize,
        }
    }

    /// Gives `f` the `N` bytes at `at` of each buffer in turn, with its number in the batch. Walking whole buffers
    /// lets the compiler check bounds once; that is worth a third of the time.
    #[inline(always)]
    fn each<const N: usize>(
        self,
        bytes: &mut [u8],
        stride: usize,
        at: usize,
        mut f: impl FnMut(usize, &mut [u8; N]),
    ) {
        match self {
            Slots::First(n) => {
                for (j, buffer) in bytes.chunks_exact_mut(stride).take(n).enumerate() {
                    if let Some(window) = buffer[at..].first_chunk_mut() {
                        f(j, window);
                    }
                }
            }
            Slots::Listed(slots) => {
                for (j, &slot) in slots.iter().enumerate() {
                    if let Some(window) = bytes[slot as usize * stride + at..].first_chunk_mut() {
                        f(j, window);
                    }
                }
            }
        }
    }
}

impl Slots<'_> {
    /// Writes 16-bit values at `N` places of each buffer.
    #[inline(always)]
    fn write<const N: usize>(self, bytes: &mut [u8], stride: usize, places: [(usize, &[u16; BATCH]); N]) {
        let write = |buffer: &mut [u8], j: usize| {
            for (at, values) in places {
                buffer[at..at + 2].copy_from_slice(&values[j & (BATCH - 1)].to_ne_bytes());
            }
        };
        match self {
            Slots::First(n) => {
                for (j, buffer) in bytes.chunks_exact_mut(stride).take(n).enumerate() {
                    write(buffer, j);
                }
            }
            Slots::Listed(slots) => {
                for (j, &slot) in slots.iter().enumerate() {
                    write(&mut bytes[slot as usize * stride..][..stride], j);
                }
            }
        }
    }
}

/// Walks a program's frames in order.
#[derive(Debug)]
pub struct Executor<'p> {
    plans: Vec<Plan<'p>>,
    walk: Walk<'p>,
    signed: bool,
    paced: bool,
    /// Frames leave by two interfaces.
    sided: bool,
    longest: usize,
    /// For each stream its frames in the batch being made; 0 between batches.
    counts: Vec<u16>,
}

impl<'p> Executor<'p> {
    /// Prepares to run `program` from frame 0.
    pub fn new(program: &'p Program) -> Result<Executor<'p>, BadProgram> {
        let mut walk = Walk::new(program)?;
        // Who only wants frames does not pay for times.
        walk.seek(0);
        Ok(Executor {
            plans: program.streams.iter().map(Plan::new).collect(),
            walk,
            signed: program.streams.iter().any(|s| s.signature.is_some()),
            paced: program.is_paced(),
            sided: program.has_sides(),
            longest: program.longest() as usize,
            counts: vec![0; program.streams.len()],
        })
    }

    /// Do frames carry time stamps, so that the clock given to [`Executor::render`] matters?
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// Goes to frame `n`, or behind the last one.
    pub fn seek(&mut self, n: u64) {
        self.walk.seek(n);
        for (plan, &k) in self.plans.iter_mut().zip(self.walk.counts()) {
            plan.seek(k);
        }
    }

    /// When the next frame is due, from the start of the run; `None` behind the last one.
    #[inline]
    pub fn next_due(&mut self) -> Option<u64> {
        self.walk.next_due()
    }

    /// When one more frame would be due behind the last one.
    pub fn end(&mut self) -> u64 {
        self.walk.end()
    }

    /// The side of the next frame; 0 behind the last one.
    #[inline]
    pub fn next_side(&self) -> u8 {
        if !self.sided {
            return 0;
        }
        self.walk.peek().map_or(0, |stream| self.plans[stream as usize].stream.side)
    }

    /// Length of the next frame; 0 behind the last one.
    #[inline]
    pub fn next_length(&self) -> u32 {
        self.walk.peek().map_or(0, |stream| self.plans[stream as usize].next_length())
    }

    /// Length of the frame `ahead` frames after the next one; 0 behind the last one.
    pub fn length_ahead(&self, ahead: usize) -> u32 {
        let mut owners = vec![0; ahead + 1];
        if self.walk.clone().pass_all(&mut owners) <= ahead {
            return 0;
        }
        let owner = owners[ahead];
        let before = owners[..ahead].iter().filter(|&&other| other == owner).count() as u64;
        let plan = &self.plans[owner as usize];
        plan.stream.length_of(plan.k + before)
    }

    /// Writes the next frames into the first `count` buffers and moves on. `clock` is asked for the time that goes
    /// into each signature. Returns how many were made: fewer than `count` at the program's end, when there are not
    /// that many buffers, or more than [`BATCH`] were asked for; none when the buffers are too short for the
    /// program's longest frame.
    pub fn render(&mut self, buffers: &mut Buffers<'_>, count: usize, clock: impl FnMut() -> u64) -> usize {
        let count = self.room(buffers, count);
        if let [plan] = &mut self.plans[..]
            && let Some(count) = self.walk.pass(count)
        {
            let mut clock = clock;
            plan.render(0, buffers, Slots::First(count), &mut clock);
            return count;
        }
        self.render_in_turn(buffers, count, clock)
    }

    /// As [`Executor::render`], for frames of several streams. Apart, to keep that short for the one that most have.
    #[inline(never)]
    fn render_in_turn(
        &mut self,
        buffers: &mut Buffers<'_>,
        count: usize,
        clock: impl FnMut() -> u64,
    ) -> usize {
        let mut owners = [0; BATCH];
        let made = self.walk.pass_all(&mut owners[..count]);
        self.make(buffers, &owners[..made], clock);
        made
    }

    /// As [`Executor::render`], but only frames due by `until`, and only the first ones that are of one side; notes in
    /// `due` when each is. At top speed all are due.
    pub fn render_due(
        &mut self,
        buffers: &mut Buffers<'_>,
        count: usize,
        until: u64,
        due: &mut [u64],
        clock: impl FnMut() -> u64,
    ) -> usize {
        let count = count.min(due.len());
        if !self.paced {
            due[..count].fill(0);
            if self.sided {
                return self.render_side(buffers, count, clock);
            }
            return self.render(buffers, count, clock);
        }
        let count = self.room(buffers, count);
        // From here on the walk keeps time.
        if self.walk.next_due().is_none() {
            return 0;
        }
        let mut owners = [0; BATCH];
        let mut made = 0;
        let side = self.next_side();
        while made < count
            && (!self.sided || self.next_side() == side)
            && let Some(turn) = self.walk.take_due(until)
        {
            (owners[made], due[made]) = (turn.stream, turn.due);
            made += 1;
        }
        self.make(buffers, &owners[..made], clock);
        made
    }

    /// As [`Executor::render`], up to where the side changes.
    fn render_side(&mut self, buffers: &mut Buffers<'_>, count: usize, clock: impl FnMut() -> u64) -> usize {
        let count = self.room(buffers, count);
        let side = self.next_side();
        let mut owners = [0; BATCH];
        let mut made = 0;
        while made < count && self.next_side() == side && self.walk.pass_all(&mut owners[made..=made]) == 1 {
            made += 1;
        }
        self.make(buffers, &owners[..made], clock);
        made
    }

    /// How many of `count` frames there is room for.
    fn room(&self, buffers: &Buffers<'_>, count: usize) -> usize {
        let count = count.min(BATCH).min(buffers.held.len()).min(buffers.lengths.len());
        let fits = buffers.stride >= self.longest && buffers.bytes.len() >= count * buffers.stride;
        if fits { count } else { 0 }
    }

    /// Makes the next frame of each of `owners`, a batch at most, for which there is room.
    fn make(&mut self, buffers: &mut Buffers<'_>, owners: &[u32], mut clock: impl FnMut() -> u64) {
        if let [plan] = &mut self.plans[..] {
            plan.render(0, buffers, Slots::First(owners.len()), &mut clock);
            return;
        }
        // Each stream makes its own frames of the batch, in its own order, in the places that are its. Sorted by
        // counting, so that only streams which have one are looked at.
        for &owner in owners {
            self.counts[owner as usize] += 1;
        }
        let mut slots = [0u16; BATCH];
        let mut parts = [(0u32, 0u16, 0u16); BATCH];
        let (mut streams, mut end) = (0, 0);
        for &owner in owners {
            // A count below BATCH is still one; what stands there afterwards is where the stream's next place goes.
            let count = self.counts[owner as usize];
            if count <= BATCH as u16 {
                parts[streams] = (owner, end, end + count);
                streams += 1;
                self.counts[owner as usize] = BATCH as u16 + 1 + end;
                end += count;
            }
        }
        for (i, &owner) in owners.iter().enumerate() {
            let place = &mut self.counts[owner as usize];
            slots[(*place - BATCH as u16 - 1) as usize] = i as u16;
            *place += 1;
        }
        for &(owner, from, to) in &parts[..streams] {
            self.counts[owner as usize] = 0;
            let slots = Slots::Listed(&slots[from as usize..to as usize]);
            self.plans[owner as usize].render(owner as usize, buffers, slots, &mut clock);
        }
    }

    /// Moves on by one frame without writing anything.
    pub fn skip(&mut self) {
        let mut owner = [0];
        if self.walk.pass_all(&mut owner) == 1 {
            let plan = &mut self.plans[owner[0] as usize];
            plan.seek(plan.k + 1);
        }
    }
}

/// A stream, prepared.
#[derive(Debug)]
struct Plan<'p> {
    stream: &'p Stream,
    /// The next frame's index in the stream.
    k: u64,
    shape: Shape<'p>,
}

#[derive(Debug)]
enum Shape<'p> {
    /// One template and laws.
    Patched(Box<Patched<'p>>),
    /// Many templates (a capture): the next one, and the pass it belongs to.
    Captured { template: usize, pass: u64 },
}

impl<'p> Plan<'p> {
    fn new(stream: &'p Stream) -> Plan<'p> {
        let shape = if stream.is_captured() {
            Shape::Captured { template: 0, pass: 0 }
        } else {
            Shape::Patched(Box::new(Patched::new(stream)))
        };
        Plan { stream, k: 0, shape }
    }

    fn seek(&mut self, k: u64) {
        self.k = k;
        match &mut self.shape {
            Shape::Patched(patched) => patched.seek(k),
            Shape::Captured { template, pass } => {
                let count = self.stream.templates.len() as u64;
                (*template, *pass) = ((k % count) as usize, k / count);
            }
        }
    }

    #[inline]
    fn next_length(&self) -> u32 {
        match &self.shape {
            Shape::Patched(patched) => patched.length.value,
            Shape::Captured { template, .. } => self.stream.templates.length(*template),
        }
    }

    fn render(
        &mut self,
        s: usize,
        buffers: &mut Buffers<'_>,
        slots: Slots<'_>,
        clock: &mut dyn FnMut() -> u64,
    ) {
        match &mut self.shape {
            Shape::Patched(patched) => patched.render(s, self.k, buffers, slots, clock),
            Shape::Captured { template, pass } => {
                for j in 0..slots.len() {
                    let slot = slots.get(j);
                    let buffer = &mut buffers.bytes[slot * buffers.stride..][..buffers.stride];
                    buffers.held[slot] = NOTHING;
                    buffers.lengths[slot] = captured(self.stream, *template, *pass, buffer, clock);
                    *template += 1;
                    if *template == self.stream.templates.len() {
                        (*template, *pass) = (0, *pass + 1);
                    }
                }
            }
        }
        self.k += slots.len() as u64;
    }
}

/// Copies template `i` and changes what its pass demands.
fn captured(stream: &Stream, i: usize, pass: u64, buffer: &mut [u8], clock: &mut dyn FnMut() -> u64) -> u32 {
    let templates = &stream.templates;
    let bytes = templates.get(i);
    let Some(frame) = buffer.get_mut(..bytes.len()) else { return 0 };
    frame.copy_from_slice(bytes);
    if stream.unique_addresses && pass != 0 {
        let (addresses, source_is_less) = templates.addresses(i);
        spread_addresses(frame, addresses, source_is_less, pass);
    }
    if let (Some(number), Some(rank)) = (stream.signature, templates.signed_rank(i)) {
        let sequence = pass * templates.signed_per_pass() + rank;
        sign_captured(frame, Signature { stream: number, sequence, time: clock() });
    }
    bytes.len() as u32
}

/// The addresses of pass `pass`: the lesser goes down by `pass`, the greater goes up, so that both directions of a
/// conversation stay mirror images and no two passes share a flow. The arithmetic is modulo 2^32 - 1, a multiple of
/// 0xffff: the one's complement sum of both addresses stays as it was, and with it the IPv4, TCP and UDP checksums.
/// Of IPv6 addresses the low 32 bits change.
pub fn spread_addresses(frame: &mut [u8], addresses: Addresses, source_is_less: bool, pass: u64) {
    let (at, size) = match addresses {
        Addresses::None => return,
        Addresses::V4(at) => (at, 4),
        Addresses::V6(at) => (at, 16),
    };
    let Some((source, destination)) = low_words(frame, at, size) else { return };
    const M: u64 = 0xffff_ffff;
    let by = pass % M;
    let up = |word: u32| ((u64::from(word) + by) % M) as u32;
    let down = |word: u32| ((u64::from(word) + M - by) % M) as u32;
    let (source, destination) =
        if source_is_less { (down(source), up(destination)) } else { (up(source), down(destination)) };
    frame[at + size - 4..at + size].copy_from_slice(&source.to_be_bytes());
    frame[at + 2 * size - 4..at + 2 * size].copy_from_slice(&destination.to_be_bytes());
}

/// Overwrites the last 18 bytes, which are TCP or UDP payload, and corrects the checksum for what changed (RFC 1624).
pub fn sign_captured(frame: &mut [u8], signature: Signature) {
    let layers = Layers::parse(wire::LinkType::ETHERNET, frame);
    let Some(l4) = layers.l4_offset else { return };
    let (field, udp) = match layers.ip_protocol {
        Some(6) => (l4 + 16, false),
        Some(17) => (l4 + 6, true),
        _ => return,
    };
    let Some(tail) = frame.len().checked_sub(signature::LEN) else { return };
    if field + 2 > tail {
        return;
    }
    let odd = (tail - l4) % 2 == 1;
    let words = |bytes: &[u8]| if odd { sum(bytes) << 8 } else { sum(bytes) };
    let old = words(&frame[tail..]);
    let bytes = signature.to_bytes();
    frame[tail..].copy_from_slice(&bytes);
    let before = u16::from_be_bytes([frame[field], frame[field + 1]]);
    if udp && before == 0 {
        return; // The sender chose to have no checksum.
    }
    // HC' = ~(~HC + ~m + m'): ~m is taken as 0xffff times enough minus m, which is 0 modulo 0xffff.
    let partial = u64::from(!before) + (u64::from(u32::MAX) * 0xffff - old) + words(&bytes);
    let value = if udp { finish_udp(partial) } else { finish(partial) };
    frame[field..field + 2].copy_from_slice(&value.to_be_bytes());
}

/// Where a value goes besides its field: into a checksum, at an even or odd place.
#[derive(Debug, Clone, Copy)]
struct Feed {
    sum: usize,
    shift: u32,
}

/// What a value adds to a one's complement sum, in at most 18 bits: room for 64 of them, shifted by 8, in 32 bits.
#[inline(always)]
fn words(value: u64) -> u32 {
    let halves = (value >> 32) + (value & 0xffff_ffff);
    ((halves >> 16) + (halves & 0xffff)) as u32
}

#[derive(Debug)]
struct FieldPlan<'p> {
    at: usize,
    bytes: u8,
    shift: u8,
    mask: u64,
    /// The mask covers all bytes touched: nothing of the template shines through.
    whole: bool,
    feeds: Vec<Feed>,
    values: &'p Values,
    every: u64,
    /// From one frame of the stream to the next, in the numbers that laws are given: `jump` times `every` and `rest`.
    stride: u64,
    jump: u64,
    rest: u64,
    /// `jump` and `jump + 1` modulo the period, if there is one.
    turns: [u64; 2],
    /// Numbers left with the present value.
    left: u64,
    /// The present step.
    j: u64,
    /// `j` modulo the period.
    turn: u64,
    value: u64,
}

impl FieldPlan<'_> {
    fn seek(&mut self, number: u64) {
        self.j = number / self.every;
        self.left = self.every - number % self.every;
        self.turn = self.values.period().map_or(0, |period| self.j.checked_rem(period).unwrap_or(0));
        self.value = self.values.at(self.j);
    }

    /// The next `out.len()` values.
    #[inline]
    fn fill(&mut self, out: &mut [u64]) {
        match (self.values, self.every, self.stride) {
            // The common case, one addition a frame. A range that never wraps has count 0, which `turn` never meets.
            (Values::Range { start, step, count }, 1, 1) => {
                let (mut value, mut turn) = (self.value, self.turn);
                for slot in out.iter_mut() {
                    *slot = value;
                    turn = turn.wrapping_add(1);
                    value = value.wrapping_add(*step);
                    if turn == *count {
                        (turn, value) = (0, *start);
                    }
                }
                (self.value, self.turn) = (value, turn);
                self.j = self.j.wrapping_add(out.len() as u64);
            }
            // As common where cores share a stream. `by` is less than the count; without a count turns do not matter.
            (Values::Range { step, count, .. }, 1, stride) => {
                let (by, edge) =
                    if *count == 0 { (0, u64::MAX) } else { (self.turns[0], count - self.turns[0]) };
                let forth = step.wrapping_mul(self.turns[0]);
                let back = step.wrapping_mul(edge);
                let (mut value, mut turn) = (self.value, self.turn);
                for slot in out.iter_mut() {
                    *slot = value;
                    let wraps = turn >= edge;
                    value = if wraps { value.wrapping_sub(back) } else { value.wrapping_add(forth) };
                    turn = if wraps { turn - edge } else { turn + by };
                }
                (self.value, self.turn) = (value, turn);
                self.j = self.j.wrapping_add(stride.wrapping_mul(out.len() as u64));
            }
            _ => {
                for slot in out {
                    *slot = self.value;
                    self.advance();
                }
            }
        }
    }

    /// On to the stream's next frame.
    #[inline]
    fn advance(&mut self) {
        let carry = self.left <= self.rest;
        self.left = if carry { self.left + (self.every - self.rest) } else { self.left - self.rest };
        let by = self.jump + u64::from(carry);
        if by == 0 {
            return;
        }
        self.j = self.j.wrapping_add(by);
        let turns = self.turns[usize::from(carry)];
        match self.values {
            Values::Range { step, count: 0, .. } => {
                self.value = self.value.wrapping_add(step.wrapping_mul(by));
            }
            Values::Range { start, step, count } => {
                self.turn_by(turns, *count);
                self.value = start.wrapping_add(step.wrapping_mul(self.turn));
            }
            Values::List(items) => {
                self.turn_by(turns, items.len() as u64);
                self.value = items.get(self.turn as usize).copied().unwrap_or(0);
            }
            law => self.value = law.at(self.j),
        }
    }

    /// Turns by less than `count`, which `turn` stays below.
    #[inline]
    fn turn_by(&mut self, by: u64, count: u64) {
        let edge = count.saturating_sub(by);
        self.turn = if self.turn >= edge { self.turn - edge } else { self.turn + by };
    }

    /// Writes a value into each frame, and tells what it adds to sums.
    #[inline]
    fn store(
        &self,
        bytes: &mut [u8],
        stride: usize,
        slots: Slots<'_>,
        values: &[u64; BATCH],
        added: &mut [u32; BATCH],
    ) {
        match self.bytes {
            1 => self.store_wide::<1>(bytes, stride, slots, values, added),
            2 => self.store_wide::<2>(bytes, stride, slots, values, added),
            3 => self.store_wide::<3>(bytes, stride, slots, values, added),
            4 => self.store_wide::<4>(bytes, stride, slots, values, added),
            5 => self.store_wide::<5>(bytes, stride, slots, values, added),
            6 => self.store_wide::<6>(bytes, stride, slots, values, added),
            7 => self.store_wide::<7>(bytes, stride, slots, values, added),
            _ => self.store_wide::<8>(bytes, stride, slots, values, added),
        }
    }

    #[inline(always)]
    fn store_wide<const N: usize>(
        &self,
        bytes: &mut [u8],
        stride: usize,
        slots: Slots<'_>,
        values: &[u64; BATCH],
        added: &mut [u32; BATCH],
    ) {
        let (shift, mask) = (self.shift, self.mask);
        let write = |window: &mut [u8; N], value: u64| window.copy_from_slice(&value.to_be_bytes()[8 - N..]);
        if self.whole {
            slots.each(bytes, stride, self.at, |j, window: &mut [u8; N]| {
                write(window, values[j & (BATCH - 1)])
            });
        } else {
            slots.each(bytes, stride, self.at, |j, window: &mut [u8; N]| {
                write(window, (read(window) & !mask) | ((values[j & (BATCH - 1)] << shift) & mask));
            });
        }
        if !self.feeds.is_empty() {
            for (added, value) in added.iter_mut().zip(values) {
                let placed = (value << shift) & mask;
                // The narrow cases are narrow arithmetic, four lanes of a vector instead of two.
                *added = match N {
                    1 | 2 => placed as u32,
                    3 | 4 => (placed as u32 >> 16) + (placed as u32 & 0xffff),
                    _ => words(placed),
                };
            }
        }
    }
}

/// Up to eight bytes as a big-endian number.
#[inline(always)]
fn read(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[derive(Debug)]
struct LengthPlan {
    at: usize,
    less: u32,
    feeds: Vec<Feed>,
}

#[derive(Debug)]
struct SumPlan {
    at: usize,
    udp: bool,
    error: u16,
    /// The sum of all that does not vary, for the shortest length and each longer one up to the longest.
    base: Vec<u32>,
    feeds: Vec<Feed>,
    /// The signature lies in what is covered.
    covers_signature: bool,
    start: usize,
}

#[derive(Debug)]
struct CrcPlan<'p> {
    crc: &'p Crc,
    feeds: Vec<Feed>,
}

/// The next length.
#[derive(Debug)]
struct LengthState {
    value: u32,
    /// Place in a list, and by how much that moves.
    turn: usize,
    turns: usize,
}

#[derive(Debug)]
struct Patched<'p> {
    stream: &'p Stream,
    /// The template with all varying bits zero, as long as the longest frame.
    image: Vec<u8>,
    shortest: u32,
    fields: Vec<FieldPlan<'p>>,
    lengths: Vec<LengthPlan>,
    crc: Option<CrcPlan<'p>>,
    sums: Vec<SumPlan>,
    /// For each checksum the partial sums of a batch, while it is made.
    partial: Vec<[u32; BATCH]>,
    /// For each checksum its values of a batch, in the byte order of the wire.
    written: Vec<[u16; BATCH]>,
    length: LengthState,
}

impl<'p> Patched<'p> {
    fn new(stream: &'p Stream) -> Patched<'p> {
        let template = stream.templates.get(0);
        let (shortest, longest) = stream.lengths.bounds(template.len() as u32);
        let mut image = template[..longest as usize].to_vec();
        for field in &stream.fields {
            let window = &mut image[field.range()];
            let cleared = read(window) & !field.mask;
            let n = window.len();
            window.copy_from_slice(&cleared.to_be_bytes()[8 - n..]);
        }
        let places =
            stream.length_fields.iter().map(|f| f.offset).chain(stream.sums.iter().map(|s| s.offset));
        for at in places {
            image[at as usize..at as usize + 2].fill(0);
        }
        if let Some(crc) = &stream.crc {
            image[crc.offset as usize..crc.offset as usize + 4].fill(0);
        }
        let feeds = |range: Range<usize>, before: usize| feeds(&stream.sums, range, before);
        let fields = stream
            .fields
            .iter()
            .map(|field| {
                let full = if field.bytes == 8 { u64::MAX } else { (1 << (8 * field.bytes)) - 1 };
                FieldPlan {
                    at: field.offset as usize,
                    bytes: field.bytes,
                    shift: field.shift,
                    mask: field.mask,
                    whole: field.mask == full,
                    feeds: feeds(field.range(), 0),
                    values: &field.values,
                    every: field.every,
                    stride: stream.step,
                    jump: stream.step / field.every,
                    rest: stream.step % field.every,
                    turns: [0, 1].map(|more| {
                        let by = stream.step / field.every + more;
                        field.values.period().map_or(by, |period| by.checked_rem(period).unwrap_or(0))
                    }),
                    left: field.every,
                    j: 0,
                    turn: 0,
                    value: field.values.at(0),
                }
            })
            .collect();
        let lengths: Vec<LengthPlan> = stream
            .length_fields
            .iter()
            .map(|field| LengthPlan {
                at: field.offset as usize,
                less: field.less,
                feeds: feeds(field.offset as usize..field.offset as usize + 2, 0),
            })
            .collect();
        let crc = stream
            .crc
            .as_ref()
            .map(|crc| CrcPlan { crc, feeds: feeds(crc.offset as usize..crc.offset as usize + 4, 0) });
        let sums = stream
            .sums
            .iter()
            .enumerate()
            .map(|(i, sum)| SumPlan {
                at: sum.offset as usize,
                udp: sum.udp,
                error: sum.error,
                base: bases(sum, &image, shortest, longest, stream.signature.is_some()),
                feeds: feeds(sum.offset as usize..sum.offset as usize + 2, i + 1),
                covers_signature: stream.signature.is_some() && sum.end.is_none(),
                start: sum.start as usize,
            })
            .collect();
        let mut patched = Patched {
            stream,
            image,
            shortest,
            fields,
            lengths,
            crc,
            sums,
            partial: vec![[0; BATCH]; stream.sums.len()],
            written: vec![[0; BATCH]; stream.sums.len()],
            length: LengthState { value: 0, turn: 0, turns: 1 },
        };
        if shortest == longest {
            patched.settle_lengths();
        }
        patched.seek(0);
        patched
    }

    /// With a single length the length fields are constants: they move into the image and the sums.
    fn settle_lengths(&mut self) {
        for field in std::mem::take(&mut self.lengths) {
            let value = (self.shortest - field.less) as u16;
            self.image[field.at..field.at + 2].copy_from_slice(&value.to_be_bytes());
            for feed in field.feeds {
                for base in &mut self.sums[feed.sum].base {
                    *base += u32::from(value) << feed.shift;
                }
            }
        }
    }

    fn seek(&mut self, k: u64) {
        let number = self.stream.number(k);
        for field in &mut self.fields {
            field.seek(number);
        }
        if let Lengths::List(items) = &self.stream.lengths {
            let count = (items.len() as u64).max(1);
            self.length.turn = (number % count) as usize;
            self.length.turns = (self.stream.step % count) as usize;
        }
        self.length.value = self.stream.lengths.at(number, self.image.len() as u32);
    }

    #[inline(always)]
    fn advance_length(&mut self, k: u64) {
        match &self.stream.lengths {
            Lengths::Template | Lengths::Fixed(_) => {}
            Lengths::List(items) => {
                self.length.turn += self.length.turns;
                if self.length.turn >= items.len() {
                    self.length.turn -= items.len();
                }
                self.length.value = items.get(self.length.turn).copied().unwrap_or(self.length.value);
            }
            law => self.length.value = law.at(self.stream.number(k + 1), 0),
        }
    }

    fn render(
        &mut self,
        s: usize,
        k: u64,
        buffers: &mut Buffers<'_>,
        slots: Slots<'_>,
        clock: &mut dyn FnMut() -> u64,
    ) {
        self.lay_images(s, k, buffers, slots);
        let (stride, bytes) = (buffers.stride, &mut *buffers.bytes);
        let mut values = [0u64; BATCH];
        let mut added = [0u32; BATCH];
        let n = slots.len();
        for field in &mut self.fields {
            field.fill(&mut values[..n]);
            field.store(bytes, stride, slots, &values, &mut added);
            feed(&mut self.partial, &field.feeds, &added);
        }
        if let Some(stream) = self.stream.signature {
            for j in 0..n {
                let slot = slots.get(j);
                let tail = buffers.lengths[slot] as usize - signature::LEN;
                let written = Signature { stream, sequence: k + j as u64, time: clock() }.to_bytes();
                bytes[slot * stride + tail..][..signature::LEN].copy_from_slice(&written);
                let added = words(sum(&written));
                for (partial, plan) in self.partial.iter_mut().zip(&self.sums) {
                    if plan.covers_signature {
                        partial[j] += added << (8 * ((tail - plan.start) & 1));
                    }
                }
            }
        }
        if let Some(plan) = &self.crc {
            let at = plan.crc.offset as usize;
            for (j, added) in added.iter_mut().enumerate().take(n) {
                let slot = slots.get(j);
                let frame = &mut bytes[slot * stride..][..buffers.lengths[slot] as usize];
                frame[at..at + 4].fill(0);
                let value = plan.crc.bytes(crc32c(&frame[plan.crc.start as usize..]));
                frame[at..at + 4].copy_from_slice(&value);
                *added = words(u32::from_be_bytes(value).into());
            }
            feed(&mut self.partial, &plan.feeds, &added);
        }
        for i in 0..self.sums.len() {
            let plan = &self.sums[i];
            // A computed zero of UDP becomes 0xffff; both are the same number to one's complement arithmetic.
            let instead_of_zero = if plan.udp { 0xffff } else { 0 };
            for (value, &partial) in added.iter_mut().zip(&self.partial[i]) {
                // Folding 32 bits; the second fold takes the carry of the first.
                let once = (partial & 0xffff) + (partial >> 16);
                let right = !((once & 0xffff) + (once >> 16)) & 0xffff;
                let right = if right == 0 { instead_of_zero } else { right };
                *value = (right + u32::from(plan.error)) & 0xffff;
            }
            if plan.udp && plan.error != 0 {
                // Wrong on purpose must not become zero, which would say that there is no checksum.
                let right_for_zero = u32::from(plan.error.wrapping_neg());
                let instead = if right_for_zero == 1 { 2 } else { 1 };
                for value in added.iter_mut().filter(|value| **value == 0) {
                    *value = instead;
                }
            }
            for (written, value) in self.written[i].iter_mut().zip(&added) {
                *written = (*value as u16).to_be();
            }
            feed(&mut self.partial, &plan.feeds, &added);
        }
        // Two and three checksums are what nearly all traffic has; one walk over the buffers then writes them all.
        match (&self.sums[..], &self.written[..]) {
            ([a, b], [x, y]) => slots.write(bytes, stride, [(a.at, x), (b.at, y)]),
            ([a, b, c], [x, y, z]) => slots.write(bytes, stride, [(a.at, x), (b.at, y), (c.at, z)]),
            (sums, all) => {
                for (sum, written) in sums.iter().zip(all) {
                    slots.write(bytes, stride, [(sum.at, written)]);
                }
            }
        }
    }

    /// Makes each buffer hold the stream's image at the right length, and starts the sums.
    fn lay_images(&mut self, s: usize, k: u64, buffers: &mut Buffers<'_>, slots: Slots<'_>) {
        let varying = self.shortest as usize != self.image.len();
        if !varying {
            for (partial, sum) in self.partial.iter_mut().zip(&self.sums) {
                partial.fill(sum.base[0]);
            }
            if let Slots::First(n) = slots {
                // Buffers that all hold this very stream at its one length, which is how a run goes on.
                let wanted = Held::frame(s, self.image.len());
                let others = buffers.held[..n].iter().fold(0, |others, held| others | (held ^ wanted.0));
                buffers.lengths[..n].fill(self.shortest);
                if others == 0 {
                    return;
                }
            }
        }
        for j in 0..slots.len() {
            let slot = slots.get(j);
            let length = self.length.value as usize;
            let wanted = Held::frame(s, length);
            let held = Held(buffers.held[slot]);
            if held != wanted {
                let frame = &mut buffers.bytes[slot * buffers.stride..][..self.image.len()];
                match held.of(s) {
                    // The image is all there but for the bytes of the signature that ended the frame before.
                    Some(before) if self.stream.signature.is_some() => {
                        let tail = before - signature::LEN..before;
                        frame[tail.clone()].copy_from_slice(&self.image[tail]);
                    }
                    Some(_) => {}
                    None => frame.copy_from_slice(&self.image),
                }
                buffers.held[slot] = wanted.0;
            }
            buffers.lengths[slot] = length as u32;
            if varying {
                for (partial, sum) in self.partial.iter_mut().zip(&self.sums) {
                    partial[j] = sum.base[length - self.shortest as usize];
                }
                for field in &self.lengths {
                    let value = (length as u32 - field.less) as u16;
                    buffers.bytes[slot * buffers.stride + field.at..][..2]
                        .copy_from_slice(&value.to_be_bytes());
                    for feed in &field.feeds {
                        self.partial[feed.sum][j] += u32::from(value) << feed.shift;
                    }
                }
                self.advance_length(k + j as u64);
            }
        }
    }
}

/// Adds each frame's value to the sums that cover it.
#[inline]
fn feed(partial: &mut [[u32; BATCH]], feeds: &[Feed], values: &[u32; BATCH]) {
    for feed in feeds {
        for (total, value) in partial[feed.sum].iter_mut().zip(values) {
            *total = total.wrapping_add(value << feed.shift);
        }
    }
}

/// The sums (from number `from` on) that cover `range`, with the shift its words have there.
fn feeds(sums: &[Sum], range: Range<usize>, from: usize) -> Vec<Feed> {
    let mut found = Vec::new();
    for (i, sum) in sums.iter().enumerate().skip(from) {
        let end = sum.end.map_or(usize::MAX, |end| end as usize);
        let own = std::iter::once(sum.start as usize..end);
        for covered in own.chain(sum.also.iter().map(|r| r.start as usize..r.end as usize)) {
            if covered.start <= range.start && range.end <= covered.end {
                // The value's last byte stands in the low half of a word when an even number of bytes ends with it.
                found.push(Feed { sum: i, shift: 8 * ((range.end - covered.start) & 1) as u32 });
            }
        }
    }
    found
}

/// The sum of all that does not vary, for each length from `shortest` to `longest`.
fn bases(plan: &Sum, image: &[u8], shortest: u32, longest: u32, signed: bool) -> Vec<u32> {
    let start = plan.start as usize;
    let constant =
        plan.plus + plan.also.iter().map(|r| sum(&image[r.start as usize..r.end as usize])).sum::<u64>();
    let covered = |end: usize| if plan.plus_length { (end - start) as u64 } else { 0 };
    if let Some(end) = plan.end {
        let end = end as usize;
        return vec![
            fold(constant + sum(&image[start..end]) + covered(end)).into();
            (longest - shortest) as usize + 1
        ];
    }
    // One walk over the longest frame: each length needs the sum of all bytes before it, less its signature's place.
    let less = if signed { signature::LEN } else { 0 };
    let mut total = constant + sum(&image[start..shortest as usize - less]);
    let mut out = Vec::with_capacity((longest - shortest + 1) as usize);
    for length in shortest as usize..=longest as usize {
        out.push(fold(total + covered(length)).into());
        let next = length - less;
        if length < longest as usize {
            total += u64::from(image[next]) << (8 * ((next - start + 1) & 1));
        }
    }
    out
}

/// Frame `n` of `program`, made anew: the plain definition that tests hold every faster way to. Empty behind the last.
pub fn frame(program: &Program, n: u64, now: u64) -> Result<Vec<u8>, BadProgram> {
    let mut executor = Executor::new(program)?;
    executor.seek(n);
    let mut slab = Slab::new(1, program.longest() as usize);
    executor.render(&mut slab.buffers(), 1, || now);
    Ok(slab.frame(0).to_vec())
}
