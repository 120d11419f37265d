//! A varying field: the law its values follow, a batch at a time, and how they are written.

use super::buffers::{BATCH, Slots};
use super::sums::{Feed, feeds, words};
use crate::program::{Field, Stream};
use crate::values::Values;

#[derive(Debug)]
pub(super) struct FieldPlan<'p> {
    at: usize,
    bytes: u8,
    shift: u8,
    mask: u64,
    /// The mask covers all bytes touched: nothing of the template shines through.
    whole: bool,
    pub(super) feeds: Vec<Feed>,
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

impl<'p> FieldPlan<'p> {
    /// `field` of `stream`, at its first value.
    pub(super) fn new(stream: &'p Stream, field: &'p Field) -> FieldPlan<'p> {
        let full = if field.bytes == 8 { u64::MAX } else { (1 << (8 * field.bytes)) - 1 };
        FieldPlan {
            at: field.offset as usize,
            bytes: field.bytes,
            shift: field.shift,
            mask: field.mask,
            whole: field.mask == full,
            feeds: feeds(&stream.sums, field.range(), 0),
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
    }

    pub(super) fn seek(&mut self, number: u64) {
        self.j = number / self.every;
        self.left = self.every - number % self.every;
        self.turn = self.values.period().map_or(0, |period| self.j.checked_rem(period).unwrap_or(0));
        self.value = self.values.at(self.j);
    }

    /// The next `out.len()` values.
    #[inline]
    pub(super) fn fill(&mut self, out: &mut [u64]) {
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
    pub(super) fn store(
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
pub(super) fn read(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
