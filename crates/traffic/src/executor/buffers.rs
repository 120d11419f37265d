//! Buffers that frames are made in, and what each holds from before.
//!
//! Whoever sends lends them a batch at a time ([`Buffers`]); [`Slab`] is for those that have none. The executor walks those of
//! one stream with [`Slots`].

/// What a buffer holds, as kept beside the buffer by whoever owns it: [`NOTHING`] or a frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held(pub(super) u64);

/// Tells that nothing may be relied on to stand in a buffer.
pub const NOTHING: u64 = 0;

impl Held {
    #[inline]
    pub(super) fn frame(stream: usize, length: usize) -> Held {
        Held((stream as u64 + 1) << 32 | length as u64)
    }

    /// The length of the frame held, when it is one of this stream.
    #[inline]
    pub(super) fn of(self, stream: usize) -> Option<usize> {
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
pub(super) enum Slots<'a> {
    /// The first so many: the only stream's.
    First(usize),
    /// These.
    Listed(&'a [u16]),
}

impl Slots<'_> {
    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Slots::First(n) => n,
            Slots::Listed(slots) => slots.len(),
        }
    }

    #[inline]
    pub(super) fn get(self, j: usize) -> usize {
        match self {
            Slots::First(_) => j,
            Slots::Listed(slots) => slots[j] as usize,
        }
    }

    /// Gives `f` the `N` bytes at `at` of each buffer in turn, with its number in the batch. Walking whole buffers
    /// lets the compiler check bounds once; that is worth a third of the time.
    #[inline(always)]
    pub(super) fn each<const N: usize>(
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

    /// Writes 16-bit values at `N` places of each buffer.
    #[inline(always)]
    pub(super) fn write<const N: usize>(
        self,
        bytes: &mut [u8],
        stride: usize,
        places: [(usize, &[u16; BATCH]); N],
    ) {
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
