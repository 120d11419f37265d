//! Frames of one template: what varies is written over what the buffer holds, an operation after the other over the batch.

use super::buffers::{BATCH, Buffers, Held, Slots};
use super::field::{FieldPlan, read};
use super::sums::{Feed, SumPlan, feed, feeds, words};
use crate::lengths::Lengths;
use crate::program::{Crc, Stream};
use std::ops::Range;
use wire::checksum::sum;
use wire::crc::crc32c;
use wire::signature::{self, Signature};

#[derive(Debug)]
struct LengthPlan {
    at: usize,
    less: u32,
    feeds: Vec<Feed>,
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
pub(super) struct Patched<'p> {
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

/// The template as long as the longest frame, with zero where something varies or is computed; and the shortest length.
fn image(stream: &Stream) -> (Vec<u8>, u32) {
    let template = stream.templates.get(0);
    let (shortest, longest) = stream.lengths.bounds(template.len() as u32);
    let mut image = template[..longest as usize].to_vec();
    for field in &stream.fields {
        let window = &mut image[field.range()];
        let cleared = read(window) & !field.mask;
        let n = window.len();
        window.copy_from_slice(&cleared.to_be_bytes()[8 - n..]);
    }
    let places = stream.length_fields.iter().map(|f| f.offset).chain(stream.sums.iter().map(|s| s.offset));
    for at in places {
        image[at as usize..at as usize + 2].fill(0);
    }
    if let Some(crc) = &stream.crc {
        image[crc.offset as usize..crc.offset as usize + 4].fill(0);
    }
    (image, shortest)
}

impl<'p> Patched<'p> {
    pub(super) fn new(stream: &'p Stream) -> Patched<'p> {
        let (image, shortest) = image(stream);
        let feeds = |range: Range<usize>| feeds(&stream.sums, range, 0);
        let lengths = stream
            .length_fields
            .iter()
            .map(|field| LengthPlan {
                at: field.offset as usize,
                less: field.less,
                feeds: feeds(field.offset as usize..field.offset as usize + 2),
            })
            .collect();
        let crc = stream
            .crc
            .as_ref()
            .map(|crc| CrcPlan { crc, feeds: feeds(crc.offset as usize..crc.offset as usize + 4) });
        let sums = (0..stream.sums.len()).map(|i| SumPlan::new(stream, i, &image, shortest)).collect();
        let mut patched = Patched {
            stream,
            shortest,
            fields: stream.fields.iter().map(|field| FieldPlan::new(stream, field)).collect(),
            lengths,
            crc,
            sums,
            partial: vec![[0; BATCH]; stream.sums.len()],
            written: vec![[0; BATCH]; stream.sums.len()],
            length: LengthState { value: 0, turn: 0, turns: 1 },
            image,
        };
        if shortest as usize == patched.image.len() {
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

    pub(super) fn seek(&mut self, k: u64) {
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

    /// The next frame's.
    #[inline]
    pub(super) fn next_length(&self) -> u32 {
        self.length.value
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

    pub(super) fn render(
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
