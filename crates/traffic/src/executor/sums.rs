//! Checksums by parts: what never varies is summed once, what varies adds its words while it is written.

use super::buffers::BATCH;
use crate::program::{Stream, Sum};
use std::ops::Range;
use wire::checksum::{fold, sum};
use wire::signature;

/// Where a value goes besides its field: into a checksum, at an even or odd place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feed {
    pub(super) sum: usize,
    pub(super) shift: u32,
}

/// What a value adds to a one's complement sum, in at most 18 bits: room for 64 of them, shifted by 8, in 32 bits.
#[inline(always)]
pub(super) fn words(value: u64) -> u32 {
    let halves = (value >> 32) + (value & 0xffff_ffff);
    ((halves >> 16) + (halves & 0xffff)) as u32
}

#[derive(Debug)]
pub(super) struct SumPlan {
    pub(super) at: usize,
    pub(super) udp: bool,
    pub(super) error: u16,
    /// The sum of all that does not vary, for the shortest length and each longer one up to the longest.
    pub(super) base: Vec<u32>,
    pub(super) feeds: Vec<Feed>,
    /// The signature lies in what is covered.
    pub(super) covers_signature: bool,
    pub(super) start: usize,
}

impl SumPlan {
    /// Checksum `i` of `stream`, over frames that are `image` but for what varies, of `shortest` bytes at least.
    pub(super) fn new(stream: &Stream, i: usize, image: &[u8], shortest: u32) -> SumPlan {
        let (sum, signed) = (&stream.sums[i], stream.signature.is_some());
        SumPlan {
            at: sum.offset as usize,
            udp: sum.udp,
            error: sum.error,
            base: bases(sum, image, shortest, image.len() as u32, signed),
            feeds: feeds(&stream.sums, sum.offset as usize..sum.offset as usize + 2, i + 1),
            covers_signature: signed && sum.end.is_none(),
            start: sum.start as usize,
        }
    }
}

/// Adds each frame's value to the sums that cover it.
#[inline]
pub(super) fn feed(partial: &mut [[u32; BATCH]], feeds: &[Feed], values: &[u32; BATCH]) {
    for feed in feeds {
        for (total, value) in partial[feed.sum].iter_mut().zip(values) {
            *total = total.wrapping_add(value << feed.shift);
        }
    }
}

/// The sums (from number `from` on) that cover `range`, with the shift its words have there.
pub(super) fn feeds(sums: &[Sum], range: Range<usize>, from: usize) -> Vec<Feed> {
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
