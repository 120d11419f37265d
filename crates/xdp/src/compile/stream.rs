//! A stream's frames: its image, its fields, its lengths, its signature, its checksums.

use super::{Compiler, DATA, LENGTH_SLOT, Pages};
use crate::XdpError;
use crate::asm::{FP, If, Op, R0, R1, R2, R3, R4, R5, R6, R8, R9, Reg, Size, helper};
use crate::layout::{self, field, stream as words};
use engine::clock::Clock;
use std::ops::Range;
use traffic::lengths::Lengths;
use traffic::program::{Field, Stream, Sum};
use wire::checksum::{fold, sum};
use wire::signature;

/// Up to so many bytes are written by single stores of constants; more are copied by a helper.
const INLINE: usize = 192;

/// A stream, looked at.
pub(super) struct Plan<'p> {
    pub stream: &'p Stream,
    /// Its longest frame with everything that varies taken as zero.
    pub image: Vec<u8>,
    pub shortest: usize,
    pub longest: usize,
}

impl<'p> Plan<'p> {
    pub fn new(stream: &'p Stream) -> Plan<'p> {
        let templates = &stream.templates;
        if stream.is_captured() {
            let (shortest, longest) = (templates.shortest() as usize, templates.longest() as usize);
            return Plan { stream, image: vec![0; longest], shortest, longest };
        }
        let (shortest, longest) = stream.lengths.bounds(templates.shortest());
        let (shortest, longest) = (shortest as usize, longest as usize);
        let mut image = templates.get(0)[..longest].to_vec();
        for field in &stream.fields {
            for (i, byte) in image[field.range()].iter_mut().enumerate() {
                *byte &= !((field.mask >> (8 * (usize::from(field.bytes) - 1 - i))) as u8);
            }
        }
        for field in &stream.length_fields {
            let value = if shortest == longest { (longest - field.less as usize) as u16 } else { 0 };
            image[field.offset as usize..][..2].copy_from_slice(&value.to_be_bytes());
        }
        for sum in &stream.sums {
            image[sum.offset as usize..][..2].fill(0);
        }
        if let Some(crc) = &stream.crc {
            image[crc.offset as usize..][..4].fill(0);
        }
        Plan { stream, image, shortest, longest }
    }

    fn one_length(&self) -> bool {
        self.shortest == self.longest
    }

    /// What does not vary of a sum, for a frame of `length` bytes.
    fn base(&self, plan: &Sum, length: usize) -> u16 {
        let start = plan.start as usize;
        let (end, summed) = match plan.end {
            Some(end) => (end as usize, end as usize),
            None if self.stream.signature.is_some() => (length, length - signature::LEN),
            None => (length, length),
        };
        let also: u64 = plan.also.iter().map(|r| sum(&self.image[r.start as usize..r.end as usize])).sum();
        let covered = if plan.plus_length { (end - start) as u64 } else { 0 };
        fold(plan.plus + also + sum(&self.image[start..summed]) + covered)
    }

    /// The lengths there are, if they are few and far enough apart for their signatures not to overlap.
    fn few_lengths(&self) -> Option<Vec<usize>> {
        match &self.stream.lengths {
            Lengths::Template | Lengths::Fixed(_) => Some(vec![self.longest]),
            Lengths::List(items) => {
                let mut lengths: Vec<usize> = items.iter().map(|&l| l as usize).collect();
                lengths.sort_unstable();
                lengths.dedup();
                (lengths.len() <= 8).then_some(lengths)
            }
            Lengths::Random { .. } => None,
        }
    }
}

/// What pages may not hold, given that each holds `frame` with some frame of the program written over it: the first
/// so many bytes, and the places of old signatures.
pub(super) fn unsure(plans: &[Plan<'_>], frame: &[u8], pages: Pages) -> (usize, Vec<usize>) {
    let everything = (frame.len(), Vec::new());
    if pages == Pages::Touched || plans.iter().any(|plan| plan.stream.is_captured()) {
        return everything;
    }
    let differs =
        |plan: &Plan<'_>| plan.image.iter().zip(frame).rposition(|(a, b)| a != b).map_or(0, |last| last + 1);
    let mut head = plans.iter().map(differs).max().unwrap_or(0);
    if plans.len() > 1 {
        // What one stream writes into its frame stands in another's way.
        let written = |plan: &Plan<'_>| {
            let stream = plan.stream;
            let fields = stream.fields.iter().map(|f| f.range().end);
            let lengths = stream.length_fields.iter().map(|f| f.offset as usize + 2);
            let sums = stream.sums.iter().map(|s| s.offset as usize + 2);
            let crc = stream.crc.iter().map(|c| c.offset as usize + 4);
            fields.chain(lengths).chain(sums).chain(crc).max().unwrap_or(0)
        };
        head = head.max(plans.iter().map(written).max().unwrap_or(0));
    }
    let mut tails = Vec::new();
    for plan in plans.iter().filter(|plan| plan.stream.signature.is_some()) {
        let Some(lengths) = plan.few_lengths() else { return everything };
        tails.extend(lengths);
    }
    tails.sort_unstable();
    tails.dedup();
    // A signature always stands at the same place, or is written over with the rest of the head.
    let longest = frame.len();
    if plans
        .iter()
        .all(|plan| plan.one_length() && plan.longest == longest && plan.stream.signature.is_some())
    {
        tails.clear();
    }
    tails.retain(|&length| length > head);
    // A frame that ends within the place of an old signature would need a part of it written over.
    let ends_within = |plan: &Plan<'_>| match plan.few_lengths() {
        Some(lengths) => tails
            .iter()
            .any(|&tail| lengths.iter().any(|&length| length < tail && length + signature::LEN > tail)),
        None => !tails.is_empty(),
    };
    if tails.len() > 8 || plans.iter().any(ends_within) {
        return everything;
    }
    (head, tails)
}

impl Compiler<'_> {
    /// Emits what makes a frame of stream `s`.
    pub(super) fn stream(&mut self, s: usize) -> Result<(), XdpError> {
        let base = self.state_end;
        self.asm.map_value(R9, super::STATE, base);
        let stream = self.plans[s].stream;
        if stream.is_captured() {
            self.state_end += words::FIELDS;
            return self.captured(s, base);
        }
        let fields = stream.fields.len() as u32;
        // Behind the fields: what length fields and checksums add to (other) checksums.
        let own = words::FIELDS + fields * words::FIELD;
        let written = own + 8 * stream.length_fields.len() as u32;
        let crc = written + 8 * stream.sums.len() as u32;
        self.state_end += (crc + 8 * u32::from(stream.crc.is_some())).next_multiple_of(64);
        self.length(s, base);
        self.lay(s);
        for (i, f) in stream.fields.iter().enumerate() {
            let at = words::FIELDS + i as u32 * words::FIELD;
            self.value(stream, f, at, base);
            let summed = !feeds(&stream.sums, f.range(), 0).is_empty();
            self.put(f, summed.then_some((at + field::PLACED) as i16));
        }
        if !self.plans[s].one_length() {
            for (i, f) in stream.length_fields.iter().enumerate() {
                self.asm.load(Size::D, R1, FP, LENGTH_SLOT);
                self.asm.op_imm(Op::Sub, R1, f.less.into(), R5);
                self.asm.op_small(Op::And, R1, 0xffff);
                self.asm.store(Size::D, R9, (own + 8 * i as u32) as i16, R1);
                self.asm.big_endian(R1, 16);
                self.asm.store(Size::H, R8, f.offset as i16, R1);
            }
        }
        if let Some(number) = stream.signature {
            self.sign(s, number);
        }
        self.crc(s, crc)?;
        for i in 0..stream.sums.len() {
            self.checksum(s, i, own, written, crc);
        }
        Ok(())
    }

    /// Finds the frame's length, brings the page to it, and makes R8 point to the frame. A length that is no constant
    /// is left in the stack's `LENGTH_SLOT`.
    fn length(&mut self, s: usize, base: u32) {
        let plan = &self.plans[s];
        let (stream, shortest, longest) = (plan.stream, plan.shortest, plan.longest);
        let page = self.frame.len();
        if shortest == longest {
            if self.lengths_vary {
                self.asm.mov_imm(R1, longest as u64);
                self.asm.store(Size::D, FP, LENGTH_SLOT, R1);
                self.add_word(layout::BYTES, R1, R2);
            }
            if longest != page {
                self.asm.mov(R1, R6);
                self.asm.mov_imm(R2, (longest as u64).wrapping_sub(page as u64));
                self.asm.call(helper::ADJUST_TAIL);
            }
        } else {
            let word = words::LENGTH;
            match &stream.lengths {
                Lengths::List(items) => {
                    let count = items.len() as u64;
                    self.init(base + word, stream.first % count);
                    self.asm.load(Size::D, R1, R9, word as i16);
                    self.asm.mov(R2, R1);
                    self.asm.op_imm(Op::Add, R2, stream.step % count, R5);
                    let (still, inside) = (self.asm.label(), self.asm.label());
                    self.asm.jump_if_imm(If::Lt, R2, count, R5, still);
                    self.asm.op_imm(Op::Sub, R2, count, R5);
                    self.asm.place(still);
                    self.asm.store(Size::D, R9, word as i16, R2);
                    self.asm.jump_if_imm(If::Lt, R1, count, R5, inside);
                    self.asm.mov_imm(R1, 0);
                    self.asm.place(inside);
                    let at = self.table(items.iter().flat_map(|item| item.to_ne_bytes()));
                    self.asm.op_small(Op::Shl, R1, 2);
                    self.asm.map_value(R2, DATA, at);
                    self.asm.op(Op::Add, R2, R1);
                    self.asm.load(Size::W, R1, R2, 0);
                }
                Lengths::Random { key, min, max } => {
                    self.init(base + word, stream.first);
                    self.asm.load(Size::D, R1, R9, word as i16);
                    self.asm.mov(R2, R1);
                    self.asm.op_imm(Op::Add, R2, stream.step, R5);
                    self.asm.store(Size::D, R9, word as i16, R2);
                    self.hash(*key);
                    self.pick(u64::from(max - min) + 1);
                    self.asm.op_imm(Op::Add, R1, (*min).into(), R5);
                }
                // These have one length only.
                Lengths::Template | Lengths::Fixed(_) => self.asm.mov_imm(R1, longest as u64),
            }
            self.asm.store(Size::D, FP, LENGTH_SLOT, R1);
            self.add_word(layout::BYTES, R1, R2);
            let whole = self.asm.label();
            self.asm.mov(R2, R1);
            self.asm.op_imm(Op::Sub, R2, page as u64, R5);
            self.asm.jump_if_imm(If::Eq, R2, 0, R5, whole);
            self.asm.mov(R1, R6);
            self.asm.call(helper::ADJUST_TAIL);
            self.asm.place(whole);
        }
    }

    /// `R8` becomes the frame; the verifier sees that it has `least` bytes. Uses R1 and R2.
    pub(super) fn frame_pointer(&mut self, least: usize) {
        self.asm.load(Size::W, R8, R6, 0);
        self.asm.load(Size::W, R2, R6, 4);
        self.asm.mov(R1, R8);
        self.asm.op_imm(Op::Add, R1, least as u64, R5);
        self.asm.jump_if(If::Gt, R1, R2, self.drop);
    }

    /// Makes the page hold the stream's image wherever it may not.
    fn lay(&mut self, s: usize) {
        let plan = &self.plans[s];
        let (shortest, longest) = (plan.shortest, plan.longest);
        let head = self.unsure.min(longest);
        let image = plan.image.clone();
        if head > INLINE || head > shortest {
            let at = self.table(image.iter().copied());
            if longest == shortest {
                self.asm.mov_imm(R4, head as u64);
            } else {
                // As much of the head as this frame has. The verifier learns the bounds.
                self.asm.load(Size::D, R4, FP, LENGTH_SLOT);
                self.asm.mov_imm(R1, head as u64);
                self.min(R4, R1);
                let enough = self.asm.label();
                self.asm.jump_if_imm(If::Ge, R4, 1, R5, enough);
                self.asm.mov_imm(R4, 1);
                self.asm.place(enough);
            }
            self.asm.mov(R1, R6);
            self.asm.mov_imm(R2, 0);
            self.asm.map_value(R3, DATA, at);
            self.asm.call(helper::STORE_BYTES);
            self.frame_pointer(shortest);
        } else {
            self.frame_pointer(shortest);
            self.constants(0, &image[..head]);
        }
        for length in self.old_signatures.clone() {
            if length > longest {
                continue;
            }
            let tail = length - signature::LEN;
            let from = tail.max(head);
            // A frame of this very length gets its own signature there; a shorter one does not reach it.
            if longest == shortest {
                if length != longest || self.plans[s].stream.signature.is_none() {
                    self.constants(from, &image[from..length]);
                }
                continue;
            }
            let beyond = self.asm.label();
            self.asm.load(Size::W, R2, R6, 4);
            self.asm.mov(R1, R8);
            self.asm.op_imm(Op::Add, R1, length as u64, R5);
            self.asm.jump_if(If::Gt, R1, R2, beyond);
            self.constants(from, &image[from..length]);
            self.asm.place(beyond);
        }
    }

    /// Writes constant bytes at `at`, the widest stores first.
    fn constants(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let offset = at as i16;
            let n = if let Some(eight) = bytes.first_chunk::<8>() {
                let value = u64::from_ne_bytes(*eight);
                match i32::try_from(value as i64) {
                    Ok(small) => self.asm.store_imm(Size::D, R8, offset, small),
                    Err(_) => {
                        self.asm.mov_imm(R1, value);
                        self.asm.store(Size::D, R8, offset, R1);
                    }
                }
                8
            } else if let Some(four) = bytes.first_chunk::<4>() {
                self.asm.store_imm(Size::W, R8, offset, i32::from_ne_bytes(*four));
                4
            } else if let Some(two) = bytes.first_chunk::<2>() {
                self.asm.store_imm(Size::H, R8, offset, i32::from(u16::from_ne_bytes(*two)));
                2
            } else {
                self.asm.store_imm(Size::B, R8, offset, i32::from(bytes[0]));
                1
            };
            at += n;
            bytes = &bytes[n..];
        }
    }

    /// Writes R1 into the frame as the value of `f`. What it adds to sums is stored at `note` behind R9.
    fn put(&mut self, f: &Field, note: Option<i16>) {
        let all = if f.bytes == 8 { u64::MAX } else { (1 << (8 * f.bytes)) - 1 };
        if f.shift != 0 {
            self.asm.op_small(Op::Shl, R1, f.shift.into());
        }
        if f.mask != u64::MAX {
            self.asm.op_imm(Op::And, R1, f.mask, R5);
        }
        if let Some(at) = note {
            self.asm.store(Size::D, R9, at, R1);
        }
        // In pieces of 8, 4, 2 and 1 bytes, from the front.
        let mut left = u32::from(f.bytes);
        let mut at = f.offset as i16;
        while left > 0 {
            let size = match left {
                8.. => Size::D,
                4.. => Size::W,
                2.. => Size::H,
                _ => Size::B,
            };
            let bits = 8 * size.bytes();
            left -= size.bytes();
            let ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let mask = ((f.mask & all) >> (8 * left)) & ones;
            if mask != 0 {
                self.asm.mov(R2, R1);
                if left > 0 {
                    self.asm.op_small(Op::Shr, R2, 8 * left);
                }
                if size != Size::B {
                    self.asm.big_endian(R2, bits as i32);
                }
                if mask != ones {
                    // Other bits of these bytes are not the field's.
                    let keep = !mask & ones;
                    let keep = match size {
                        Size::B => keep,
                        Size::H => u64::from((keep as u16).to_be()),
                        Size::W => u64::from((keep as u32).to_be()),
                        Size::D => keep.to_be(),
                    };
                    self.asm.load(size, R3, R8, at);
                    self.asm.op_imm(Op::And, R3, keep, R5);
                    self.asm.op(Op::Or, R2, R3);
                }
                self.asm.store(size, R8, at, R2);
            }
            at += size.bytes() as i16;
        }
    }

    /// The time that goes into the frame, into R0.
    pub(super) fn stamp(&mut self) {
        if !self.stamps_together() {
            self.read_clock();
            return;
        }
        let stamped = self.asm.label();
        self.word(R0, layout::STAMP);
        self.asm.jump_if_imm(If::Ne, R0, 0, R5, stamped);
        self.read_clock();
        self.set_word(layout::STAMP, R0);
        self.asm.place(stamped);
    }

    /// The time by the clock of signatures, into R0.
    fn read_clock(&mut self) {
        self.asm.call(match self.options.stamps {
            Clock::Tai | Clock::Elsewhere { .. } => helper::KTIME_TAI,
            _ => helper::KTIME,
        });
        if let Clock::Elsewhere { ahead_ns } = self.options.stamps {
            self.asm.op_imm(Op::Add, R0, ahead_ns.cast_unsigned(), R5);
        }
    }

    /// Writes the signature; what it adds to sums goes to the stream's `SIGNATURE` word.
    fn sign(&mut self, s: usize, number: u32) {
        let plan = &self.plans[s];
        let (one_length, longest) = (plan.one_length(), plan.longest);
        self.stamp();
        if one_length {
            self.signature(number, R8, (longest - signature::LEN) as i16);
        } else {
            self.tail_pointer();
            self.signature(number, R4, 0);
        }
        self.asm.store(Size::D, R9, words::SIGNATURE as i16, R2);
    }

    /// `R4` becomes the place of the last 18 bytes, by the length in `LENGTH_SLOT`. Uses R1 and R2.
    pub(super) fn tail_pointer(&mut self) {
        let page = self.frame.len() as u64;
        self.asm.load(Size::D, R1, FP, LENGTH_SLOT);
        self.asm.op_imm(Op::Sub, R1, signature::LEN as u64, R5);
        // It never is: this is for the verifier.
        self.asm.jump_if_imm(If::Gt, R1, page, R5, self.drop);
        self.asm.mov(R4, R8);
        self.asm.op(Op::Add, R4, R1);
        self.asm.mov(R1, R4);
        self.asm.op_imm(Op::Add, R1, signature::LEN as u64, R5);
        self.asm.load(Size::W, R2, R6, 4);
        self.asm.jump_if(If::Gt, R1, R2, self.drop);
    }

    /// Writes magic, stream, the stream's next number and the time in R0 at `at` behind `to`. R2 becomes what the
    /// 18 bytes add to a sum, as they stand at an even place. Uses R1 and R3.
    pub(super) fn signature(&mut self, number: u32, to: Reg, at: i16) {
        let asm = &mut self.asm;
        // R1: the number.
        asm.load(Size::D, R1, R9, words::NUMBER as i16);
        asm.mov(R3, R1);
        asm.op_imm(Op::Add, R3, 1, R5);
        asm.store(Size::D, R9, words::NUMBER as i16, R3);
        // Magic, stream and the number's highest byte.
        let head = u64::from(signature::MAGIC) << 32 | u64::from(number & signature::MAX_STREAM) << 8;
        asm.mov(R2, R1);
        asm.op_small(Op::Shr, R2, 32);
        asm.op_small(Op::And, R2, 0xff);
        asm.mov_imm(R3, head);
        asm.op(Op::Or, R3, R2);
        asm.big_endian(R3, 64);
        asm.store(Size::D, to, at, R3);
        // The number's other four bytes.
        asm.low32(R1);
        asm.op(Op::Add, R2, R1);
        asm.big_endian(R1, 32);
        asm.store(Size::W, to, at + 8, R1);
        // 48 bits of the time.
        asm.op_small(Op::Shl, R0, 16);
        asm.op_small(Op::Shr, R0, 16);
        asm.op(Op::Add, R2, R0);
        asm.op_imm(Op::Add, R2, u64::from(fold(sum(&head.to_be_bytes()))), R5);
        asm.mov(R3, R0);
        asm.op_small(Op::Shr, R3, 32);
        asm.big_endian(R3, 16);
        asm.store(Size::H, to, at + 12, R3);
        asm.big_endian(R0, 32);
        asm.store(Size::W, to, at + 14, R0);
    }

    /// Computes and writes checksum `i` of stream `s`.
    fn checksum(&mut self, s: usize, i: usize, lengths: u32, written: u32, crc: u32) {
        let plan = &self.plans[s];
        let stream = plan.stream;
        let (shortest, longest) = (plan.shortest, plan.longest);
        let sum = &stream.sums[i];
        // R3 collects; `most` bounds it.
        let mut most = 0xffffu128;
        if shortest == longest {
            let base = plan.base(sum, longest);
            self.asm.mov_imm(R3, base.into());
        } else if sum.end.is_some() {
            // Of a range that does not reach the end nothing depends on the length, but for fields.
            let base = plan.base(sum, longest);
            self.asm.mov_imm(R3, base.into());
        } else {
            let bases: Vec<u8> =
                (shortest..=longest).flat_map(|length| plan.base(sum, length).to_ne_bytes()).collect();
            let at = self.table(bases);
            self.of_length(at, Size::H, (shortest, longest));
        }
        for (f, spec) in stream.fields.iter().enumerate() {
            let placed = (words::FIELDS + f as u32 * words::FIELD + field::PLACED) as i16;
            for shift in feeds(&stream.sums[i..=i], spec.range(), 0) {
                self.asm.load(Size::D, R4, R9, placed);
                let mut value = u128::from(spec.mask);
                if value > 1 << 40 {
                    self.asm.mov(R5, R4);
                    self.asm.op_small(Op::Shr, R5, 32);
                    self.asm.low32(R4);
                    self.asm.op(Op::Add, R4, R5);
                    value = (1 << 33) - 2;
                }
                most += self.feed(shift, value);
            }
        }
        if shortest != longest {
            for (f, spec) in stream.length_fields.iter().enumerate() {
                let range = spec.offset as usize..spec.offset as usize + 2;
                for shift in feeds(&stream.sums[i..=i], range, 0) {
                    self.asm.load(Size::D, R4, R9, (lengths + 8 * f as u32) as i16);
                    most += self.feed(shift, 0xffff);
                }
            }
        }
        for inner in 0..i {
            let at = stream.sums[inner].offset as usize;
            for shift in feeds(&stream.sums[i..=i], at..at + 2, 0) {
                self.asm.load(Size::D, R4, R9, (written + 8 * inner as u32) as i16);
                most += self.feed(shift, 0xffff);
            }
        }
        if let Some(spec) = &stream.crc {
            let at = spec.offset as usize;
            for shift in feeds(&stream.sums[i..=i], at..at + 4, 0) {
                self.asm.load(Size::D, R4, R9, crc as i16);
                most += self.feed(shift, u32::MAX.into());
            }
        }
        if stream.signature.is_some() && sum.end.is_none() {
            self.asm.load(Size::D, R4, R9, words::SIGNATURE as i16);
            let start = sum.start as usize;
            if shortest == longest {
                let odd = (longest - signature::LEN - start) % 2 == 1;
                most += self.feed(if odd { 8 } else { 0 }, 1 << 49);
            } else {
                // Whether it begins in the middle of a word depends on the length.
                let even = self.asm.label();
                self.asm.load(Size::D, R1, FP, LENGTH_SLOT);
                self.asm.op_imm(Op::Sub, R1, (signature::LEN + start) as u64, R5);
                self.asm.op_small(Op::And, R1, 1);
                self.asm.jump_if_imm(If::Eq, R1, 0, R5, even);
                self.asm.op_small(Op::Shl, R4, 8);
                self.asm.place(even);
                self.asm.op(Op::Add, R3, R4);
                most += 1 << 57;
            }
        }
        self.fold(R3, 128 - most.leading_zeros());
        self.complement(sum);
        if (i + 1..stream.sums.len()).any(|outer| {
            !feeds(&stream.sums[outer..=outer], sum.offset as usize..sum.offset as usize + 2, 0).is_empty()
        }) {
            self.asm.store(Size::D, R9, (written + 8 * i as u32) as i16, R3);
        }
        self.asm.big_endian(R3, 16);
        self.asm.store(Size::H, R8, sum.offset as i16, R3);
    }

    /// Makes R3 the checksum of what was summed up in it, wrong on purpose where it is to be.
    fn complement(&mut self, sum: &Sum) {
        self.asm.op_small(Op::Xor, R3, 0xffff);
        let label = self.asm.label();
        if sum.udp {
            self.asm.jump_if_imm(If::Ne, R3, 0, R5, label);
            self.asm.mov_imm(R3, 0xffff);
        }
        self.asm.place(label);
        if sum.error != 0 {
            self.asm.op_small(Op::Add, R3, sum.error.into());
            self.asm.op_small(Op::And, R3, 0xffff);
            if sum.udp {
                // Wrong on purpose must not become zero, which would say that there is no checksum.
                let right_for_zero = sum.error.wrapping_neg();
                let label = self.asm.label();
                self.asm.jump_if_imm(If::Ne, R3, 0, R5, label);
                self.asm.mov_imm(R3, if right_for_zero == 1 { 2 } else { 1 });
                self.asm.place(label);
            }
        }
    }

    /// `R3 += R4 << shift`; returns the most that this adds when R4 is at most `value`.
    fn feed(&mut self, shift: u32, value: u128) -> u128 {
        if shift != 0 {
            self.asm.op_small(Op::Shl, R4, shift);
        }
        self.asm.op(Op::Add, R3, R4);
        value << shift
    }
}

/// The shifts by which words in `range` enter the sums (from number `from` on) that cover it.
fn feeds(sums: &[Sum], range: Range<usize>, from: usize) -> Vec<u32> {
    let mut found = Vec::new();
    for sum in &sums[from..] {
        let end = sum.end.map_or(usize::MAX, |end| end as usize);
        let own = std::iter::once(sum.start as usize..end);
        for covered in own.chain(sum.also.iter().map(|r| r.start as usize..r.end as usize)) {
            if covered.start <= range.start && range.end <= covered.end {
                found.push(8 * ((range.end - covered.start) & 1) as u32);
            }
        }
    }
    found
}
