//! Laws of values, as instructions: `traffic::values` and `traffic::lengths` over again.

use super::{Compiler, DATA};
use crate::asm::{If, Op, R0, R1, R2, R3, R4, R5, R9, Reg, Size};
use crate::layout::field;
use traffic::program::{Field, Stream};
use traffic::values::{Run, Runs, Shuffle, Values};

impl Compiler<'_> {
    /// `R1 = hash(key, R1)`. Uses R2 and R5.
    pub(super) fn hash(&mut self, key: u64) {
        let asm = &mut self.asm;
        asm.op_imm(Op::Mul, R1, 0x9e37_79b9_7f4a_7c15, R5);
        asm.op_imm(Op::Xor, R1, key, R5);
        for factor in [Some(0xff51_afd7_ed55_8ccd), Some(0xc4ce_b9fe_1a85_ec53), None] {
            asm.mov(R2, R1);
            asm.op_small(Op::Shr, R2, 33);
            asm.op(Op::Xor, R1, R2);
            if let Some(factor) = factor {
                asm.op_imm(Op::Mul, R1, factor, R5);
            }
        }
    }

    /// `R1` becomes the number at place `R1`. Uses R2 and R5.
    fn shuffle(&mut self, order: &Shuffle) {
        let asm = &mut self.asm;
        asm.op_imm(Op::And, R1, order.mask, R5);
        asm.op_imm(Op::Xor, R1, order.key, R5);
        for factor in order.factors {
            asm.op_imm(Op::Mul, R1, factor, R5);
            asm.op_imm(Op::And, R1, order.mask, R5);
            asm.mov(R2, R1);
            asm.op_small(Op::Shr, R2, order.shift);
            asm.op(Op::Xor, R1, R2);
        }
    }

    /// `R1 = (R1 * count) >> 64`; a count of 0 leaves R1. Uses R0 and R2 to R5.
    pub(super) fn pick(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        let asm = &mut self.asm;
        let (low, high) = (count & 0xffff_ffff, count >> 32);
        // R1 = a * 2^32 + b; the product's upper half, from the four partial products.
        asm.mov(R2, R1);
        asm.low32(R2);
        asm.op_small(Op::Shr, R1, 32);
        asm.mov_imm(R5, low);
        asm.mov(R3, R2);
        asm.op(Op::Mul, R3, R5); // b * low
        asm.op_small(Op::Shr, R3, 32);
        asm.mov(R4, R1);
        asm.op(Op::Mul, R4, R5); // a * low
        asm.mov(R0, R4);
        asm.low32(R0);
        asm.op(Op::Add, R3, R0);
        asm.op_small(Op::Shr, R4, 32);
        if high != 0 {
            asm.mov_imm(R5, high);
            asm.op(Op::Mul, R2, R5); // b * high
            asm.mov(R0, R2);
            asm.low32(R0);
            asm.op(Op::Add, R3, R0);
            asm.op_small(Op::Shr, R2, 32);
            asm.op(Op::Add, R4, R2);
            asm.op(Op::Mul, R1, R5); // a * high
            asm.op(Op::Add, R4, R1);
        }
        asm.op_small(Op::Shr, R3, 32);
        asm.mov(R1, R4);
        asm.op(Op::Add, R1, R3);
    }

    /// `R1 = items[R1]`, of which there are `count`. Uses R2.
    fn item(&mut self, items: &[u64]) {
        let inside = self.asm.label();
        // It always is: this is for the verifier.
        self.asm.jump_if_imm(If::Lt, R1, items.len() as u64, R2, inside);
        self.asm.mov_imm(R1, 0);
        self.asm.place(inside);
        let at = self.table(items.iter().flat_map(|item| item.to_ne_bytes()));
        self.asm.op_small(Op::Shl, R1, 3);
        self.asm.map_value(R2, DATA, at);
        self.asm.op(Op::Add, R2, R1);
        self.asm.load(Size::D, R1, R2, 0);
    }

    /// `R1` becomes the number at place `R1` of the runs. Uses R2 to R5.
    ///
    /// A search by halves without a branch: with branches the verifier would walk each way through them alone.
    fn run(&mut self, runs: &Runs) {
        let all = runs.all();
        let room = all.len().next_power_of_two();
        // Behind the last run are some that no place reaches.
        let mut column = |of: fn(&Run) -> u64, fill: u64| {
            let words = all.iter().map(of).chain(std::iter::repeat_n(fill, room - all.len()));
            self.table(words.flat_map(u64::to_ne_bytes))
        };
        let (ends, bases, steps) =
            (column(|run| run.end, Runs::MOST), column(|run| run.base, 0), column(|run| run.step, 0));
        let asm = &mut self.asm;
        // R2 is the number of runs that are known to end at R1 or before it.
        asm.mov_imm(R2, 0);
        let mut half = room / 2;
        while half > 0 {
            // R4 is the end of the run before which `half` more stand. The verifier sees less of R2 than holds, and still no place
            // beyond the columns behind this one.
            asm.map_value(R4, DATA, ends + (half as u32 - 1) * 8);
            asm.mov(R3, R2);
            asm.op_small(Op::Shl, R3, 3);
            asm.op(Op::Add, R4, R3);
            asm.load(Size::D, R4, R4, 0);
            // Neither is above 2^63: the sign of the difference tells whether R1 lies before it.
            asm.mov(R3, R1);
            asm.op(Op::Sub, R3, R4);
            asm.op_small(Op::Shr, R3, 63);
            asm.op_small(Op::Xor, R3, 1);
            asm.op_small(Op::Shl, R3, half.trailing_zeros());
            asm.op(Op::Add, R2, R3);
            asm.op_imm(Op::And, R2, room as u64 - 1, R5);
            half /= 2;
        }
        asm.op_small(Op::Shl, R2, 3);
        for (to, column) in [(R3, bases), (R4, steps)] {
            asm.map_value(to, DATA, column);
            asm.op(Op::Add, to, R2);
            asm.load(Size::D, to, to, 0);
        }
        asm.op(Op::Mul, R1, R4);
        asm.op(Op::Add, R1, R3);
    }

    /// `R1` becomes the present value of field `f` of `stream`, whose words start `words` bytes behind R9; the state
    /// moves on to the next frame's.
    pub(super) fn value(&mut self, stream: &Stream, f: &Field, words: u32, base: u32) {
        let word = |name: u32| (words + name) as i16;
        let (every, step) = (f.every.max(1), stream.step.max(1));
        let j = stream.first / every;
        self.init(base + words + field::PHASE, stream.first % every);
        // From one frame to the next the step number grows by `whole`, and by one more when the phase comes round.
        let (whole, part) = (step / every, step % every);
        match &f.values {
            Values::Range { start, step: by, count } => {
                let turn = if *count == 0 { j } else { j % count };
                self.init(base + words + field::VALUE, start.wrapping_add(by.wrapping_mul(turn)));
                self.init(base + words + field::TURN, turn);
                self.asm.load(Size::D, R1, R9, word(field::VALUE));
                let whole = if *count == 0 { whole } else { whole % count };
                let still = self.asm.label();
                if part == 0 && whole == 0 {
                    return;
                }
                // R2 is how far the turn moves, R3 how far the value does.
                self.asm.mov_imm(R2, whole);
                self.asm.mov_imm(R3, by.wrapping_mul(whole));
                if part != 0 {
                    let same = self.phase(every, part, word(field::PHASE));
                    self.asm.op_imm(Op::Add, R2, 1, R5);
                    self.asm.op_imm(Op::Add, R3, *by, R5);
                    self.asm.place(same);
                }
                self.asm.op(Op::Add, R3, R1);
                if *count != 0 {
                    self.asm.load(Size::D, R4, R9, word(field::TURN));
                    self.asm.op(Op::Add, R4, R2);
                    self.asm.jump_if_imm(If::Lt, R4, *count, R5, still);
                    self.asm.op_imm(Op::Sub, R4, *count, R5);
                    self.asm.op_imm(Op::Sub, R3, by.wrapping_mul(*count), R5);
                    self.asm.place(still);
                    self.asm.store(Size::D, R9, word(field::TURN), R4);
                }
                self.asm.store(Size::D, R9, word(field::VALUE), R3);
            }
            Values::List(items) if items.is_empty() => self.asm.mov_imm(R1, 0),
            Values::List(_) | Values::Runs(_) => {
                let count = f.values.period().unwrap_or(1);
                self.init(base + words + field::TURN, j % count);
                self.asm.mov_imm(R2, whole % count);
                if part != 0 {
                    let same = self.phase(every, part, word(field::PHASE));
                    self.asm.op_imm(Op::Add, R2, 1, R5);
                    self.asm.place(same);
                }
                self.asm.load(Size::D, R1, R9, word(field::TURN));
                self.asm.op(Op::Add, R2, R1);
                let still = self.asm.label();
                self.asm.jump_if_imm(If::Lt, R2, count, R5, still);
                self.asm.op_imm(Op::Sub, R2, count, R5);
                self.asm.place(still);
                self.asm.store(Size::D, R9, word(field::TURN), R2);
                match &f.values {
                    Values::List(items) => self.item(items),
                    Values::Runs(runs) => self.run(runs),
                    _ => {}
                }
            }
            Values::Random { .. }
            | Values::RandomList { .. }
            | Values::RandomRuns { .. }
            | Values::Shuffled { .. } => {
                self.init(base + words + field::STEP, j);
                self.asm.load(Size::D, R1, R9, word(field::STEP));
                self.asm.mov(R2, R1);
                self.asm.op_imm(Op::Add, R2, whole, R5);
                if part != 0 {
                    let same = self.phase(every, part, word(field::PHASE));
                    self.asm.op_imm(Op::Add, R2, 1, R5);
                    self.asm.place(same);
                }
                self.asm.store(Size::D, R9, word(field::STEP), R2);
                self.drawn(&f.values);
            }
        }
    }

    /// `R1`, a step's number, becomes what a law of chance has for it.
    fn drawn(&mut self, values: &Values) {
        match values {
            Values::Random { key, start, step, count } => {
                self.hash(*key);
                self.pick(*count);
                self.asm.op_imm(Op::Mul, R1, *step, R5);
                self.asm.op_imm(Op::Add, R1, *start, R5);
            }
            Values::Shuffled { key, start, step, bits } => {
                self.shuffle(&Shuffle::new(*key, *bits));
                self.asm.op_imm(Op::Mul, R1, *step, R5);
                self.asm.op_imm(Op::Add, R1, *start, R5);
            }
            Values::RandomList { key, items } if !items.is_empty() => {
                self.hash(*key);
                self.pick(items.len() as u64);
                self.item(items);
            }
            Values::RandomRuns { key, runs } => {
                self.hash(*key);
                self.pick(runs.count());
                self.run(runs);
            }
            _ => self.asm.mov_imm(R1, 0),
        }
    }

    /// Moves the phase of a field that does not change with each frame; jumps to the label returned unless it came
    /// round. Uses R4 and R5.
    fn phase(&mut self, every: u64, part: u64, word: i16) -> crate::asm::Label {
        let (same, round) = (self.asm.label(), self.asm.label());
        self.asm.load(Size::D, R4, R9, word);
        self.asm.op_imm(Op::Add, R4, part, R5);
        self.asm.jump_if_imm(If::Ge, R4, every, R5, round);
        self.asm.store(Size::D, R9, word, R4);
        self.asm.jump(same);
        self.asm.place(round);
        self.asm.op_imm(Op::Sub, R4, every, R5);
        self.asm.store(Size::D, R9, word, R4);
        same
    }

    /// Folds the one's complement sum in `sum`, below 2^`bits`, to 16 bits, by way of R5.
    pub(super) fn fold(&mut self, sum: Reg, bits: u32) {
        let asm = &mut self.asm;
        let mut most = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        if most > u64::from(u32::MAX) {
            asm.mov(R5, sum);
            asm.op_small(Op::Shr, R5, 32);
            asm.low32(sum);
            asm.op(Op::Add, sum, R5);
            most = u64::from(u32::MAX) + (most >> 32);
        }
        while most > 0xffff {
            asm.mov(R5, sum);
            asm.op_small(Op::Shr, R5, 16);
            asm.op_small(Op::And, sum, 0xffff);
            asm.op(Op::Add, sum, R5);
            // The greatest sum of both halves: all ones below, or one less above.
            let high = most >> 16;
            most = if most & 0xffff == 0xffff {
                high + 0xffff
            } else {
                (high - 1 + 0xffff).max(high + (most & 0xffff))
            };
        }
    }
}
