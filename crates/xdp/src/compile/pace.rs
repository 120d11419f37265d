//! The gate: may a frame leave now?
//!
//! Time is kept inside the calls of BPF_PROG_TEST_RUN, of which each lasts for many frames (`crate::calls`). The kernel
//! runs the program `batch` times and then hands what was sent to the driver. The first run of a batch looks at
//! the clock; at top speed it grants the batch its frames, else it waits a little for the next frame's time and moves
//! the pacer. Runs that may send nothing return XDP_DROP: that recycles the page and costs some tens of nanoseconds.

use super::{Compiler, STAMPED_TOGETHER, mean_rate};
use crate::asm::{If, Label, Op, R0, R1, R2, R3, R4, R5, R7, R8, R9, Size, helper};
use crate::layout::{self, lane};
use engine::{GRACE_NS, LATE_NS, pacer};
use histogram::{BUCKETS, PART_BITS, RANGE_BITS};
use traffic::Program;

/// Looks at the clock while waiting within one run: some two microseconds. Longer waits go on in the next run, so
/// that the kernel can end the call or run other work in between.
const LOOKS: usize = 48;

/// Frames handed to the driver together in a paced run. One at a time is the most exact; what no driver could take
/// one by one needs batches. A batch that is not full when nothing more is due is filled with empty runs.
pub fn batch(program: &Program) -> u32 {
    let rates = program.lanes.iter().map(|lane| mean_rate(program, lane));
    match rates.sum::<Option<f64>>() {
        // A batch takes less than a microsecond and a half.
        Some(rate) => ((rate * 0.8e-6).min(64.0) as u32).next_power_of_two().clamp(1, 64),
        None => 32,
    }
}

/// What a link's bound for catching up comes to.
struct Link {
    /// The time that a frame takes of it.
    took: u64,
    /// How far beyond now that time may have come when an overdue frame leaves: so long is a burst.
    slack: u64,
}

impl Compiler<'_> {
    /// Emits the gate. Behind it, in a program with several lanes, R8 is the lane that is due first; in a paced
    /// program R9 is when.
    pub(super) fn gate(&mut self) {
        if self.paced {
            self.first_due();
            self.paced_gate();
        } else {
            self.open_gate();
        }
    }

    /// Ends the run unless it may go on: not stopped, and begun. R0 becomes the time since its start.
    fn begin_batch(&mut self, done: Label) {
        let waiting = self.asm.label();
        let begun = self.asm.label();
        // The time of the end is not to move on while the call waits to be interrupted.
        self.word(R1, layout::DONE);
        self.asm.jump_if_imm(If::Ne, R1, 0, R5, self.drop);
        self.word(R1, layout::STOP);
        self.asm.jump_if_imm(If::Ne, R1, 0, R5, done);
        self.word(R1, layout::START);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, waiting);
        self.asm.call(helper::KTIME);
        self.word(R1, layout::START);
        // It may have been paused between both looks.
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, waiting);
        self.asm.jump_if(If::Ge, R0, R1, begun);
        self.asm.place(waiting);
        self.asm.store_imm(Size::D, R7, layout::ARRIVED as i16, 1);
        self.asm.jump(self.drop);
        self.asm.place(begun);
        self.asm.op(Op::Sub, R0, R1);
        self.less_put_off();
        self.set_word(layout::NOW, R0);
    }

    /// R0, a time since the start, becomes one of the schedule.
    fn less_put_off(&mut self) {
        if self.options.pacing.catch_up.is_never() {
            self.word(R1, layout::PUT_OFF);
            self.asm.op(Op::Sub, R0, R1);
        }
    }

    /// Puts the schedule off when R9, due, can leave only now: `engine::pacer::put_off`. Then R0, the time, is R9.
    fn put_off(&mut self) {
        let (on_time, whole) = (self.asm.label(), self.asm.label());
        self.asm.jump_if(If::Le, R0, R9, on_time);
        self.asm.mov(R1, R0);
        self.asm.op(Op::Sub, R1, R9);
        self.asm.jump_if_imm(If::Le, R1, pacer::TOLERATED_NS, R5, on_time);
        self.add_word(layout::PUT_OFF, R1, R2);
        self.word(R2, layout::LONGEST_STALL);
        self.max(R2, R1);
        self.set_word(layout::LONGEST_STALL, R2);
        // The end stays where it is by the clock.
        self.word(R2, layout::DURATION);
        self.asm.jump_if(If::Ge, R2, R1, whole);
        self.asm.mov(R2, R1);
        self.asm.place(whole);
        self.asm.op(Op::Sub, R2, R1);
        self.set_word(layout::DURATION, R2);
        self.asm.mov_imm(R1, 1);
        self.add_word(layout::STALLS, R1, R2);
        self.asm.mov(R0, R9);
        // By the schedule as it is now the frame is in time.
        self.set_word(layout::NOW, R0);
        self.set_word(layout::PACED_AT, R0);
        self.asm.store_imm(Size::D, R7, layout::BEHIND as i16, 0);
        self.asm.place(on_time);
    }

    /// At top speed: a batch is granted its frames at once.
    fn open_gate(&mut self) {
        let (go, grant, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.word(R1, layout::QUOTA);
        self.asm.jump_if_imm(If::Ne, R1, 0, R5, go);
        // Runs of this batch that are to send nothing.
        self.word(R1, layout::ROOM);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, grant);
        self.asm.op_imm(Op::Sub, R1, 1, R5);
        self.set_word(layout::ROOM, R1);
        self.asm.jump(self.drop);

        self.asm.place(done);
        self.asm.store_imm(Size::D, R7, layout::DONE as i16, 1);
        self.asm.jump(self.drop);

        self.asm.place(grant);
        self.asm.store_imm(Size::D, R7, layout::ROOM as i16, (self.batch - 1) as i32);
        self.begin_batch(done);
        self.word(R1, layout::DURATION);
        self.asm.jump_if(If::Ge, R0, R1, done);
        self.word(R2, layout::LEFT);
        self.asm.jump_if_imm(If::Eq, R2, 0, R5, done);
        self.asm.mov_imm(R1, self.batch.into());
        self.min(R1, R2);
        self.asm.op(Op::Sub, R2, R1);
        self.set_word(layout::LEFT, R2);
        self.add_word(layout::SENT, R1, R3);
        if self.stamps_together() {
            self.asm.store_imm(Size::D, R7, layout::STAMP as i16, 0);
            self.asm.mov(R2, R1);
            self.asm.op_imm(Op::Sub, R2, u64::from(STAMPED_TOGETHER) + 1, R5);
            self.set_word(layout::STAMP_UNTIL, R2);
        }
        self.asm.mov_imm(R2, self.batch.into());
        self.asm.op(Op::Sub, R2, R1);
        self.set_word(layout::ROOM, R2);

        self.asm.place(go);
        self.asm.op_imm(Op::Sub, R1, 1, R5);
        self.set_word(layout::QUOTA, R1);
        if self.stamps_together() {
            // Whether this frame has a stamp or not: it is the first of a bulk.
            let within = self.asm.label();
            self.word(R2, layout::STAMP_UNTIL);
            self.asm.jump_if(If::Ne, R1, R2, within);
            self.asm.op_imm(Op::Sub, R2, STAMPED_TOGETHER.into(), R5);
            self.set_word(layout::STAMP_UNTIL, R2);
            self.asm.store_imm(Size::D, R7, layout::STAMP as i16, 0);
            self.asm.place(within);
        }
    }

    /// R9 becomes the time of the frame that is due first; with several lanes, R8 its lane.
    fn first_due(&mut self) {
        self.word(R9, layout::LANES + lane::DUE);
        if self.program.lanes.len() > 1 {
            self.asm.mov_imm(R8, 0);
            for l in 1..self.program.lanes.len() {
                let later = self.asm.label();
                self.word(R1, layout::LANES + l as u32 * layout::LANE + lane::DUE);
                self.asm.jump_if(If::Ge, R1, R9, later);
                self.asm.mov(R9, R1);
                self.asm.mov_imm(R8, l as u64);
                self.asm.place(later);
            }
            // The verifier would look through all that follows once for each way that led here, and give up at some
            // thirty lanes. What is read back from memory it takes for any number.
            for (word, register) in [(layout::FIRST_LANE, R8), (layout::FIRST_DUE, R9)] {
                self.set_word(word, register);
                self.word(register, word);
            }
        }
    }

    /// Frames leave at their times.
    fn paced_gate(&mut self) {
        let (check, new_batch, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.word(R1, layout::ROOM);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, new_batch);
        self.asm.op_imm(Op::Sub, R1, 1, R5);
        self.set_word(layout::ROOM, R1);
        self.asm.jump(check);

        self.asm.place(done);
        self.asm.store_imm(Size::D, R7, layout::DONE as i16, 1);
        self.asm.store_imm(Size::D, R7, layout::RELEASE as i16, 0);
        self.asm.jump(self.drop);

        self.asm.place(new_batch);
        self.asm.store_imm(Size::D, R7, layout::ROOM as i16, (self.batch - 1) as i32);
        self.begin_batch(done);
        self.word(R1, layout::DURATION);
        self.asm.jump_if(If::Ge, R9, R1, done);
        self.asm.op_imm(Op::Add, R1, GRACE_NS, R5);
        // Without a duration the sum comes round.
        let timed = self.asm.label();
        self.asm.jump_if_imm(If::Lt, R1, GRACE_NS, R5, timed);
        self.asm.jump_if(If::Gt, R0, R1, done);
        self.asm.place(timed);
        self.word(R1, layout::LEFT);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, done);
        self.wait();
        self.release();

        self.asm.place(check);
        let go = self.asm.label();
        self.word(R1, layout::RELEASE);
        match self.link() {
            None => self.asm.jump_if(If::Ge, R9, R1, self.drop),
            Some(link) => {
                self.asm.jump_if(If::Lt, R9, R1, go);
                self.overdue(&link);
                self.asm.place(go);
                self.charge(&link);
            }
        }
        self.word(R1, layout::LEFT);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, self.drop);
        self.asm.op_imm(Op::Sub, R1, 1, R5);
        self.set_word(layout::LEFT, R1);
        self.asm.mov_imm(R1, 1);
        self.add_word(layout::SENT, R1, R2);
        self.note_lateness();
    }

    /// The link's bound for catching up, for the longest of these frames.
    fn link(&self) -> Option<Link> {
        let bits = self.options.pacing.catch_up.link()?;
        let frame = pacer::wire_bits(self.program.longest().into());
        let (ns_per_bit, burst) = pacer::budget_of(bits);
        let frames = (burst / frame.max(1)).clamp(1, pacer::MOST_BURST as u64);
        let took = ((frame as f64 * ns_per_bit).ceil() as u64).max(1);
        Some(Link { took, slack: (frames - 1) * took })
    }

    /// Ends the run unless R9 is overdue and the link's bound lets it go: `engine::pacer::Budget::room`, frame by frame.
    fn overdue(&mut self, link: &Link) {
        self.word(R2, layout::NOW);
        self.asm.jump_if(If::Gt, R9, R2, self.drop);
        self.word(R1, layout::DURATION);
        self.asm.jump_if(If::Ge, R9, R1, self.drop);
        self.asm.op_imm(Op::Add, R2, link.slack, R5);
        self.word(R1, layout::FREE_AT);
        self.asm.jump_if(If::Gt, R1, R2, self.drop);
    }

    /// A frame leaves: `engine::pacer::Budget::take`.
    fn charge(&mut self, link: &Link) {
        self.word(R1, layout::FREE_AT);
        self.word(R2, layout::NOW);
        self.max(R1, R2);
        self.asm.op_imm(Op::Add, R1, link.took, R5);
        self.asm.op_imm(Op::Add, R2, link.took.max(pacer::WINDOW_NS), R5);
        self.min(R1, R2);
        self.set_word(layout::FREE_AT, R1);
    }

    /// Waits for R9, a little. R0 is the time, before and after.
    fn wait(&mut self) {
        let over = self.asm.label();
        // One that is behind catches up at its pace, whatever the clock says.
        self.word(R1, layout::BEHIND);
        self.asm.jump_if_imm(If::Ne, R1, 0, R5, over);
        // Nor does one linger when the call is to end, or the frame is so far away that its engine will sleep.
        self.asm.jump_if(If::Ge, R0, R9, over);
        self.word(R1, layout::LINGER);
        self.asm.jump_if(If::Ge, R9, R1, over);
        self.asm.mov(R1, R9);
        self.asm.op(Op::Sub, R1, R0);
        self.word(R2, layout::STAY);
        self.asm.jump_if(If::Ge, R1, R2, over);
        for _ in 0..LOOKS {
            self.asm.jump_if(If::Ge, R0, R9, over);
            self.asm.call(helper::KTIME);
            self.word(R1, layout::START);
            self.asm.jump_if_imm(If::Eq, R1, 0, R5, self.drop);
            self.asm.op(Op::Sub, R0, R1);
            self.less_put_off();
        }
        self.asm.place(over);
        // What took longer was no waiting: somebody else had the core.
        let (counted, waited) = (self.asm.label(), LOOKS as u64 * 400);
        self.word(R1, layout::NOW);
        self.set_word(layout::NOW, R0);
        self.asm.mov(R2, R0);
        self.asm.op(Op::Sub, R2, R1);
        self.asm.jump_if_imm(If::Gt, R2, waited, R5, counted);
        self.add_word(layout::LINGERED, R2, R3);
        self.asm.place(counted);
    }

    /// Moves the pacer: `engine::pacer` in integers. R0 is the time, R9 when the next frame is due.
    fn release(&mut self) {
        if self.options.pacing.catch_up.is_never() {
            self.put_off();
        }
        let catch_up = pacer::bounded(self.options.pacing.catch_up.times());
        let slope = (catch_up * 0.85 * 1024.0) as u64;
        let jump = (catch_up * 0.1 * 1e6) as u64;
        let (behind, moved, kept_up, store, met) =
            (self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label());
        // R1: elapsed time scaled, that is, how far the position may move.
        self.word(R1, layout::PACED_AT);
        self.set_word(layout::LOOKED, R1);
        self.set_word(layout::PACED_AT, R0);
        if self.options.pacing.catch_up.link().is_some() {
            // Nothing is overdue: the run is where its schedule is, however it got there.
            let overdue = self.asm.label();
            self.asm.jump_if(If::Ge, R0, R9, overdue);
            self.asm.mov(R4, R0);
            self.asm.mov_imm(R3, 0);
            self.asm.jump(met);
            self.asm.place(overdue);
        }
        self.asm.mov(R2, R0);
        self.asm.op(Op::Sub, R2, R1);
        self.asm.op_imm(Op::Mul, R2, slope, R5);
        self.asm.op_imm(Op::Shr, R2, 10, R5);
        self.asm.mov(R1, R2);
        // R2: the position. RELEASE is one more; 0 before the first frame, which comes to the same.
        self.word(R2, layout::RELEASE);
        let first = self.asm.label();
        self.asm.jump_if_imm(If::Eq, R2, 0, R5, first);
        self.asm.op_imm(Op::Sub, R2, 1, R5);
        self.asm.place(first);
        self.word(R3, layout::BEHIND);
        self.asm.jump_if_imm(If::Ne, R3, 0, R5, behind);

        // free = max(position, min(due, now)); to = free + min(step, jump)
        self.asm.mov(R3, R9);
        self.min(R3, R0);
        self.max(R3, R2);
        self.asm.mov_imm(R4, jump);
        self.min(R4, R1);
        self.asm.op(Op::Add, R4, R3);
        self.asm.jump(moved);

        // to = position + step; free = max(position, min(due, to)); to = min(to, free + jump)
        self.asm.place(behind);
        self.asm.op(Op::Add, R1, R2);
        self.asm.mov(R3, R9);
        self.min(R3, R1);
        self.max(R3, R2);
        self.asm.mov(R4, R3);
        self.asm.op_imm(Op::Add, R4, jump, R5);
        self.min(R4, R1);

        // position = min(now, max(to, free))
        self.asm.place(moved);
        self.max(R4, R3);
        self.asm.mov_imm(R3, 0);
        self.asm.jump_if(If::Ge, R4, R0, kept_up);
        self.asm.mov_imm(R3, 1);
        self.asm.jump(store);
        self.asm.place(kept_up);
        self.asm.mov(R4, R0);
        self.asm.place(store);
        self.asm.place(met);
        self.set_word(layout::BEHIND, R3);
        // Nothing due after the end may leave.
        self.word(R3, layout::DURATION);
        self.asm.op_imm(Op::Add, R4, 1, R5);
        self.min(R4, R3);
        self.set_word(layout::RELEASE, R4);

        // A stall: something was due, and nobody looked.
        let on_time = self.asm.label();
        self.word(R2, layout::LOOKED);
        self.max(R2, R9);
        self.asm.jump_if(If::Le, R0, R2, on_time);
        self.asm.mov(R1, R0);
        self.asm.op(Op::Sub, R1, R2);
        self.asm.jump_if_imm(If::Le, R1, LATE_NS, R5, on_time);
        self.word(R2, layout::LONGEST_STALL);
        self.max(R2, R1);
        self.set_word(layout::LONGEST_STALL, R2);
        self.asm.mov_imm(R3, 1);
        self.add_word(layout::STALLS, R3, R2);
        self.asm.place(on_time);
    }

    /// Takes down how late the frame is that leaves now. R9 is when it was due.
    fn note_lateness(&mut self) {
        let (late, in_time, summed) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.word(R1, layout::NOW);
        self.asm.jump_if(If::Ge, R1, R9, late);
        self.asm.mov(R1, R9);
        self.asm.place(late);
        self.asm.op(Op::Sub, R1, R9);
        self.set_word(layout::LAST_LATE, R1);
        let not_first = self.asm.label();
        self.word(R2, layout::FIRST_LATE);
        self.asm.jump_if_imm(If::Ne, R2, 0, R5, not_first);
        self.asm.mov(R2, R1);
        self.asm.op_imm(Op::Add, R2, 1, R5);
        self.set_word(layout::FIRST_LATE, R2);
        self.asm.place(not_first);
        self.add_word(layout::LATE_SUM, R1, R2);
        self.asm.jump_if(If::Ge, R2, R1, summed);
        self.asm.mov_imm(R2, 1);
        self.add_word(layout::LATE_SUM_ROUNDS, R2, R3);
        self.asm.place(summed);
        self.word(R2, layout::LATE_MAX);
        self.max(R2, R1);
        self.set_word(layout::LATE_MAX, R2);
        self.word(R2, layout::BEHIND);
        self.add_word(layout::CATCH_UP, R2, R3);
        self.asm.jump_if_imm(If::Le, R1, LATE_NS, R5, in_time);
        self.asm.mov_imm(R2, 1);
        self.add_word(layout::LATE, R2, R3);
        self.asm.place(in_time);

        // programs/bpf/include/loglinear.h: the bucket of R1 into R2.
        let (found, count) = (self.asm.label(), self.asm.label());
        let rows = self.asm.label();
        self.asm.mov_imm(R2, BUCKETS as u64 - 1);
        self.asm.mov(R3, R1);
        self.asm.op_imm(Op::Shr, R3, RANGE_BITS.into(), R5);
        self.asm.jump_if_imm(If::Ne, R3, 0, R5, found);
        self.asm.mov(R3, R1);
        self.asm.op_imm(Op::Shr, R3, PART_BITS.into(), R5);
        self.asm.mov_imm(R2, 0);
        for half in [16u64, 8, 4, 2] {
            let less = self.asm.label();
            self.asm.mov(R4, R3);
            self.asm.op_imm(Op::Shr, R4, half, R5);
            self.asm.jump_if_imm(If::Eq, R4, 0, R5, less);
            self.asm.op_imm(Op::Add, R2, half, R5);
            self.asm.mov(R3, R4);
            self.asm.place(less);
        }
        self.asm.mov_imm(R4, 2);
        self.min(R4, R3);
        self.asm.op(Op::Add, R2, R4);
        self.asm.jump_if_imm(If::Gt, R2, 1, R5, rows);
        self.asm.mov(R2, R1);
        self.asm.jump(found);
        self.asm.place(rows);
        self.asm.op_imm(Op::Sub, R2, 1, R5);
        self.asm.mov(R3, R1);
        self.asm.op(Op::Shr, R3, R2);
        self.asm.op_imm(Op::Shl, R2, PART_BITS.into(), R5);
        self.asm.op(Op::Add, R2, R3);
        self.asm.place(found);
        // It always is: this is for the verifier.
        self.asm.jump_if_imm(If::Ge, R2, BUCKETS as u64, R5, count);
        self.asm.op_imm(Op::Shl, R2, 3, R5);
        self.asm.mov(R3, R7);
        self.asm.op(Op::Add, R3, R2);
        self.asm.load(Size::D, R4, R3, layout::HISTOGRAM as i16);
        self.asm.op_imm(Op::Add, R4, 1, R5);
        self.asm.store(Size::D, R3, layout::HISTOGRAM as i16, R4);
        self.asm.place(count);
    }
}
