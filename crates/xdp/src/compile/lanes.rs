//! Which stream is next in the lane that is due, and when the lane's next frame is due: `traffic::schedule` over again.

use super::{Compiler, DATA, LENGTH_SLOT};
use crate::XdpError;
use crate::asm::{FP, If, Label, Op, R0, R1, R2, R3, R4, R5, R7, R8, Reg, Size};
use crate::layout::{self, lane};
use traffic::Schedule;
use traffic::program::Lane;
use traffic::schedule::{Speed, Step};

impl Compiler<'_> {
    /// Jumps to the stream whose frame is next. With several lanes, R8 is the one that is due.
    pub(super) fn choose(&mut self, streams: &[Label]) {
        let lanes: Vec<(u64, Label)> =
            (0..self.program.lanes.len()).map(|l| (l as u64, self.asm.label())).collect();
        if lanes.is_empty() {
            // Nothing to send: the gate lets nothing through.
            self.asm.jump(self.drop);
        } else if lanes.len() > 1 {
            self.dispatch(R8, &lanes);
        }
        for (l, &(_, label)) in lanes.iter().enumerate() {
            self.asm.place(label);
            let order = self.program.lanes[l].order.clone();
            let of: Vec<usize> = self.streams_of(l);
            if let [only] = of[..] {
                self.asm.jump(streams[only]);
                continue;
            }
            let place = layout::LANES + l as u32 * layout::LANE + lane::PLACE;
            let length = order.len() as u64;
            self.word(R1, place);
            let (inside, still) = (self.asm.label(), self.asm.label());
            // It always is: this is for the verifier.
            self.asm.jump_if_imm(If::Lt, R1, length, R5, inside);
            self.asm.mov_imm(R1, 0);
            self.asm.place(inside);
            self.asm.mov(R2, R1);
            self.asm.op_imm(Op::Add, R2, 1, R5);
            self.asm.jump_if_imm(If::Lt, R2, length, R5, still);
            self.asm.mov_imm(R2, 0);
            self.asm.place(still);
            self.set_word(place, R2);
            let at = self.table(order.iter().flat_map(|s| s.to_ne_bytes()));
            self.asm.op_small(Op::Shl, R1, 2);
            self.asm.map_value(R2, DATA, at);
            self.asm.op(Op::Add, R2, R1);
            self.asm.load(Size::W, R1, R2, 0);
            let targets: Vec<(u64, Label)> = of.iter().map(|&s| (s as u64, streams[s])).collect();
            self.dispatch(R1, &targets);
        }
    }

    /// Emits what moves lane `l` on to its next frame.
    pub(super) fn advance(&mut self, l: usize) -> Result<(), XdpError> {
        if !self.paced {
            return Ok(());
        }
        let program = self.program;
        let this = &program.lanes[l];
        let base = layout::LANES + l as u32 * layout::LANE;
        let due = base + lane::DUE;
        let first = match &this.schedule {
            Schedule::Times { offsets, speed, .. } => {
                offsets.first().map_or(0, |&offset| speed.scale(u128::from(offset)))
            }
            Schedule::Steps { steps } => match staircase(steps).first() {
                Some(first) => first.due,
                None => u64::MAX,
            },
            _ => 0,
        };
        self.init(due, first.saturating_add(this.start_ns));
        match &this.schedule {
            Schedule::TopSpeed => {}
            Schedule::Frames { frames, per_ns } => {
                self.step(base, per_ns / (*frames).max(1), per_ns % (*frames).max(1), *frames);
            }
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                self.bits(l, base, (*bits_per_second).max(1), *overhead_bytes)
            }
            Schedule::Times { offsets, period_ns, speed } => {
                self.times(base, this, offsets, *period_ns, *speed)?
            }
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                self.init(base + lane::BASE, this.start_ns);
                let (turn, burst, set) = (base + lane::TURN, base + lane::BASE, self.asm.label());
                let next = self.asm.label();
                self.word(R1, turn);
                self.asm.op_imm(Op::Add, R1, 1, R5);
                self.asm.jump_if_imm(If::Ge, R1, *frames, R5, next);
                self.word(R2, due);
                self.asm.op_imm(Op::Add, R2, *gap_ns, R5);
                self.asm.jump(set);
                self.asm.place(next);
                self.word(R2, burst);
                self.asm.op_imm(Op::Add, R2, *period_ns, R5);
                self.set_word(burst, R2);
                self.asm.mov_imm(R1, 0);
                self.asm.place(set);
                self.set_word(turn, R1);
                self.set_word(due, R2);
            }
            Schedule::Steps { steps } => self.steps(base, this, steps),
            Schedule::Shaped(_) => return Err(XdpError::Shaped),
        }
        self.end(base, this);
        Ok(())
    }

    /// A lane with so many frames ends behind the last.
    fn end(&mut self, base: u32, this: &Lane) {
        let Some(frames) = this.frames else { return };
        self.init(base + lane::LEFT, frames);
        if frames == 0 {
            self.init(base + lane::END, this.start_ns);
            self.state.insert(base + lane::DUE, u64::MAX);
        }
        let more = self.asm.label();
        self.word(R1, base + lane::LEFT);
        self.asm.op_imm(Op::Sub, R1, 1, R5);
        self.set_word(base + lane::LEFT, R1);
        self.asm.jump_if_imm(If::Ne, R1, 0, R5, more);
        self.finish(base);
        self.asm.place(more);
    }

    /// Ends a lane; its due time becomes where it ended.
    fn finish(&mut self, base: u32) {
        self.word(R1, base + lane::DUE);
        self.set_word(base + lane::END, R1);
        self.asm.store_imm(Size::D, R7, (base + lane::DUE) as i16, -1);
    }

    /// `due += whole`, and a nanosecond more each time that fractions of `part / of` have added up to one.
    fn step(&mut self, base: u32, whole: u64, part: u64, of: u64) {
        let due = base + lane::DUE;
        self.word(R1, due);
        self.asm.op_imm(Op::Add, R1, whole, R5);
        if part != 0 {
            self.word(R2, base + lane::REMAINDER);
            self.carry(R2, R1, part, of);
            self.set_word(base + lane::REMAINDER, R2);
        }
        self.set_word(due, R1);
    }

    /// `remainder += part`, and when that comes to `of`, one more in `whole` instead. Never is the sum formed: of rates
    /// with many digits it would need more than 64 bits.
    fn carry(&mut self, remainder: Reg, whole: Reg, part: u64, of: u64) {
        let (below, carried) = (self.asm.label(), self.asm.label());
        self.asm.jump_if_imm(If::Lt, remainder, of - part, R5, below);
        self.asm.op_imm(Op::Sub, remainder, of - part, R5);
        self.asm.op_imm(Op::Add, whole, 1, R5);
        self.asm.jump(carried);
        self.asm.place(below);
        self.asm.op_imm(Op::Add, remainder, part, R5);
        self.asm.place(carried);
    }

    /// The time that the frame's bits take.
    fn bits(&mut self, l: usize, base: u32, rate: u64, overhead: u32) {
        let streams = self.streams_of(l);
        let constant = !self.lengths_vary && streams.iter().all(|&s| !self.plans[s].stream.is_captured());
        if constant {
            let bits = (u64::from(self.program.longest()) + u64::from(overhead)) * 8 * 1_000_000_000;
            self.step(base, bits / rate, bits % rate, rate);
            return;
        }
        self.asm.load(Size::D, R1, FP, LENGTH_SLOT);
        self.asm.op_imm(Op::Add, R1, overhead.into(), R5);
        self.asm.op_imm(Op::Mul, R1, 8_000_000_000, R5);
        // total / rate and total % rate, with one division.
        self.word(R2, base + lane::REMAINDER);
        self.asm.op(Op::Add, R1, R2);
        self.asm.mov_imm(R4, rate);
        self.asm.mov(R3, R1);
        self.asm.op(Op::Div, R3, R4);
        self.word(R2, base + lane::DUE);
        self.asm.op(Op::Add, R2, R3);
        self.set_word(base + lane::DUE, R2);
        self.asm.op(Op::Mul, R3, R4);
        self.asm.op(Op::Sub, R1, R3);
        self.set_word(base + lane::REMAINDER, R1);
    }

    /// Stated offsets, repeated. Offsets and period are scaled beforehand, their fractions kept.
    fn times(
        &mut self,
        base: u32,
        this: &Lane,
        offsets: &[u64],
        period_ns: u64,
        speed: Speed,
    ) -> Result<(), XdpError> {
        if offsets.is_empty() {
            self.state.insert(base + lane::DUE, u64::MAX);
            return Ok(());
        }
        let (by, of) = (u128::from(speed.denominator), u128::from(speed.numerator.max(1)));
        let scaled = |ns: u64| {
            let product = u128::from(ns) * by;
            (u64::try_from(product / of).unwrap_or(u64::MAX / 4), (product % of) as u64)
        };
        let fractions = of > 1;
        let mut table = Vec::with_capacity(offsets.len() * if fractions { 16 } else { 8 });
        for &offset in offsets {
            let (whole, part) = scaled(offset);
            table.extend(whole.to_ne_bytes());
            if fractions {
                table.extend(part.to_ne_bytes());
            }
        }
        let at = self.table(table);
        let (whole, part) = scaled(period_ns);
        let of = of as u64;
        self.init(base + lane::BASE, this.start_ns);
        let (same_pass, inside, below) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.word(R1, base + lane::TURN);
        self.asm.op_imm(Op::Add, R1, 1, R5);
        self.word(R2, base + lane::BASE);
        if fractions {
            self.word(R3, base + lane::BASE_REMAINDER);
        }
        self.asm.jump_if_imm(If::Lt, R1, offsets.len() as u64, R5, same_pass);
        self.asm.mov_imm(R1, 0);
        self.asm.op_imm(Op::Add, R2, whole, R5);
        if part != 0 {
            self.carry(R3, R2, part, of);
            self.set_word(base + lane::BASE_REMAINDER, R3);
        }
        self.set_word(base + lane::BASE, R2);
        self.asm.place(same_pass);
        self.set_word(base + lane::TURN, R1);
        // It always is: this is for the verifier.
        self.asm.jump_if_imm(If::Lt, R1, offsets.len() as u64, R5, inside);
        self.asm.mov_imm(R1, 0);
        self.asm.place(inside);
        self.asm.op_small(Op::Shl, R1, if fractions { 4 } else { 3 });
        self.asm.map_value(R4, DATA, at);
        self.asm.op(Op::Add, R4, R1);
        self.asm.load(Size::D, R0, R4, 0);
        self.asm.op(Op::Add, R2, R0);
        if fractions {
            // Whether both fractions come to one, without their sum.
            self.asm.load(Size::D, R0, R4, 8);
            self.asm.mov_imm(R1, of);
            self.asm.op(Op::Sub, R1, R0);
            self.asm.jump_if(If::Lt, R3, R1, below);
            self.asm.op_imm(Op::Add, R2, 1, R5);
            self.asm.place(below);
        }
        self.set_word(base + lane::DUE, R2);
        Ok(())
    }

    /// A staircase, each step with its number of frames.
    fn steps(&mut self, base: u32, this: &Lane, steps: &[Step]) {
        let stairs = staircase(steps);
        let Some(first) = stairs.first() else { return };
        let end = stairs.last().map_or(0, |last| last.end);
        let words = |stair: &Stair| {
            let due = stair.due.saturating_add(this.start_ns);
            [stair.frames, due, stair.whole, stair.part, stair.of]
        };
        // The present step's five words are copied out of the table when it begins; `TURN` counts its frames.
        let mut table: Vec<u8> = Vec::new();
        for stair in &stairs[1..] {
            table.extend(words(stair).iter().flat_map(|word| word.to_ne_bytes()));
        }
        // Nothing behind the last step: its due time is never.
        let after = [u64::MAX, u64::MAX, 0, 0, 1];
        table.extend(after.iter().flat_map(|word| word.to_ne_bytes()));
        let at = self.table(table);
        let own = self.state_end;
        self.state_end += 64;
        for (i, word) in words(first).into_iter().enumerate() {
            self.init(own + 8 * i as u32, word);
        }
        self.init(base + lane::END, end.saturating_add(this.start_ns));
        let (next, done, below, carried) =
            (self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label());
        self.asm.map_value(R8, super::STATE, own);
        // own: frames left, -, whole, part, of; BASE: the number of the next entry of the table.
        self.asm.load(Size::D, R1, R8, 0);
        self.asm.op_imm(Op::Sub, R1, 1, R5);
        self.asm.store(Size::D, R8, 0, R1);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, next);
        self.word(R1, base + lane::DUE);
        self.asm.load(Size::D, R2, R8, 16);
        self.asm.op(Op::Add, R1, R2);
        self.word(R2, base + lane::REMAINDER);
        self.asm.load(Size::D, R3, R8, 24);
        self.asm.load(Size::D, R4, R8, 32);
        self.asm.op(Op::Sub, R4, R3);
        self.asm.jump_if(If::Lt, R2, R4, below);
        self.asm.op(Op::Sub, R2, R4);
        self.asm.op_imm(Op::Add, R1, 1, R5);
        self.asm.jump(carried);
        self.asm.place(below);
        self.asm.op(Op::Add, R2, R3);
        self.asm.place(carried);
        self.set_word(base + lane::REMAINDER, R2);
        self.set_word(base + lane::DUE, R1);
        self.asm.jump(done);

        self.asm.place(next);
        let inside = self.asm.label();
        self.word(R1, base + lane::BASE);
        self.asm.jump_if_imm(If::Lt, R1, stairs.len() as u64, R5, inside);
        self.asm.mov_imm(R1, 0);
        self.asm.place(inside);
        self.asm.mov(R2, R1);
        self.asm.op_imm(Op::Add, R2, 1, R5);
        self.set_word(base + lane::BASE, R2);
        self.asm.op_small(Op::Mul, R1, 40);
        self.asm.map_value(R4, DATA, at);
        self.asm.op(Op::Add, R4, R1);
        for word in [0i16, 16, 24, 32] {
            self.asm.load(Size::D, R1, R4, word);
            self.asm.store(Size::D, R8, word, R1);
        }
        self.asm.load(Size::D, R1, R4, 8);
        self.set_word(base + lane::DUE, R1);
        self.asm.mov_imm(R1, 0);
        self.set_word(base + lane::REMAINDER, R1);
        self.asm.place(done);
    }
}

/// A step with the frames that fall into it.
struct Stair {
    frames: u64,
    due: u64,
    whole: u64,
    part: u64,
    of: u64,
    /// Where its next frame would be due.
    end: u64,
}

/// Works out which frames each step of a staircase has; steps without any are left out.
fn staircase(steps: &[Step]) -> Vec<Stair> {
    let mut stairs = Vec::new();
    let mut due = 0u64;
    for step in steps {
        if due >= step.end_ns || step.frames == 0 {
            continue;
        }
        // t(i) = due + floor(i * per_ns / frames) < end  <=>  i < (end - due) * frames / per_ns
        let (frames, per_ns) = (u128::from(step.frames), u128::from(step.per_ns.max(1)));
        let count = (u128::from(step.end_ns - due) * frames).div_ceil(per_ns);
        let span = count * per_ns / frames;
        let end = due.saturating_add(u64::try_from(span).unwrap_or(u64::MAX));
        stairs.push(Stair {
            frames: u64::try_from(count).unwrap_or(u64::MAX),
            due,
            whole: step.per_ns / step.frames,
            part: step.per_ns % step.frames,
            of: step.frames,
            end,
        });
        due = end;
    }
    stairs
}
