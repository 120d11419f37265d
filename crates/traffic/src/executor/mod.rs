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
//!
//! ```text
//!  Executor: whose frames are next (walk) --> patched: one template, operations over the batch
//!                                        |      field: a field's values, written   sums: checksums by parts
//!                                        '-> captured: a template each, copied
//!  both write into buffers
//! ```

mod buffers;
mod captured;
mod field;
mod patched;
mod sums;

use self::buffers::Slots;
pub use self::buffers::{BATCH, Buffers, NOTHING, Slab};
use self::captured::captured;
pub use self::captured::{sign_captured, spread_addresses};
use self::patched::Patched;
use crate::program::{BadProgram, Program, Stream};
use crate::walk::Walk;

/// Walks a program's frames in order.
#[derive(Debug)]
pub struct Executor<'p> {
    plans: Vec<Plan<'p>>,
    walk: Walk<'p>,
    signed: bool,
    paced: bool,
    /// Frames leave by several ports.
    spread: bool,
    longest: usize,
    /// For each stream its frames in the batch being made; 0 between batches.
    counts: Vec<u16>,
}

impl<'p> Executor<'p> {
    /// Prepares to run `program` from frame 0.
    ///
    /// # Errors
    /// The program contradicts itself ([`Program::check`]).
    pub fn new(program: &'p Program) -> Result<Executor<'p>, BadProgram> {
        let mut walk = Walk::new(program)?;
        // Who only wants frames does not pay for times.
        walk.seek(0);
        Ok(Executor {
            plans: program.streams.iter().map(Plan::new).collect(),
            walk,
            signed: program.streams.iter().any(|s| s.signature.is_some()),
            paced: program.is_paced(),
            spread: program.has_ports(),
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

    /// The port that the next frame leaves by; 0 behind the last one.
    #[inline]
    pub fn next_port(&self) -> u8 {
        if !self.spread {
            return 0;
        }
        self.walk.peek().map_or(0, |stream| self.plans[stream as usize].stream.port)
    }

    /// Length of the next frame; 0 behind the last one.
    #[inline]
    pub fn next_length(&self) -> u32 {
        self.walk.peek().map_or(0, |stream| self.plans[stream as usize].next_length())
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

    /// As [`Executor::render`], but only frames due by `until`, and only the first ones that leave by one port; notes in
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
            if self.spread {
                return self.render_port(buffers, count, clock);
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
        let port = self.next_port();
        while made < count
            && (!self.spread || self.next_port() == port)
            && let Some(turn) = self.walk.take_due(until)
        {
            (owners[made], due[made]) = (turn.stream, turn.due);
            made += 1;
        }
        self.make(buffers, &owners[..made], clock);
        made
    }

    /// As [`Executor::render`], up to where the port changes.
    fn render_port(&mut self, buffers: &mut Buffers<'_>, count: usize, clock: impl FnMut() -> u64) -> usize {
        let count = self.room(buffers, count);
        let port = self.next_port();
        let mut owners = [0; BATCH];
        let mut made = 0;
        while made < count && self.next_port() == port && self.walk.pass_all(&mut owners[made..=made]) == 1 {
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
            Shape::Patched(patched) => patched.next_length(),
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

/// Frame `n` of `program`, made anew: the plain definition that tests hold every faster way to. Empty behind the last.
///
/// # Errors
/// The program contradicts itself ([`Program::check`]).
pub fn frame(program: &Program, n: u64, now: u64) -> Result<Vec<u8>, BadProgram> {
    let mut executor = Executor::new(program)?;
    executor.seek(n);
    let mut slab = Slab::new(1, program.longest() as usize);
    executor.render(&mut slab.buffers(), 1, || now);
    Ok(slab.frame(0).to_vec())
}
