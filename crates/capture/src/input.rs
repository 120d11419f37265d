//! Bytes from a file, a pipe or a decompressor, handed out in place from one buffer.
//!
//! The buffer grows only to what a caller asks for, and callers ask for no more than a bounded record, so memory is
//! bounded whatever the file claims. Compression is told by its magic, never by a name. Knows nothing of captures.

use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek};
use std::ops::Range;
use std::os::fd::AsFd;

use crate::patience::{Patience, Waiting};
use crate::{Compression, zst};

/// Large enough that a read() costs nothing beside its copying, small enough to stay in a second-level cache.
const BUFFER: usize = 256 * 1024;
/// Room before the place reads go to, for the part of a record that the read before left.
const HEAD: usize = 64 * 1024;

pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    /// For reading again: the same open file, whose position `source` shares.
    file: Option<File>,
    /// How long it is waited for, where it may keep one waiting.
    pub(crate) patience: Option<Patience>,
    pub(crate) compression: Option<Compression>,
    buffer: Vec<u8>,
    /// Where reads go: at the start of a page, for the kernel copies whole pages faster.
    head: usize,
    start: usize,
    end: usize,
    /// Offset of `buffer[0]` in the unpacked data; below zero (wrapped) while it is room not yet used.
    base: u64,
    at_end: bool,
    /// A read failed; it is reported when the bytes before it have been used up.
    failed: Option<io::Error>,
}

impl Input {
    pub(crate) fn from_file(file: File) -> io::Result<Input> {
        // A pipe has no position and can be read only once.
        if !file.metadata()?.is_file() {
            return Input::waiting(file);
        }
        let again = file.try_clone()?;
        let mut input = Input::from_read(Box::new(file))?;
        input.file = Some(again);
        Ok(input)
    }

    /// What may keep a reader waiting.
    pub(crate) fn waiting(source: impl Read + AsFd + Send + 'static) -> io::Result<Input> {
        let patience = Patience::default();
        let mut input = Input::from_read(Box::new(Waiting { source, patience: patience.clone() }))?;
        input.patience = Some(patience);
        Ok(input)
    }

    pub(crate) fn from_read(source: Box<dyn Read + Send>) -> io::Result<Input> {
        let mut buffer = vec![0; HEAD + 4096 + BUFFER];
        let head = HEAD + buffer.as_ptr().align_offset(4096).min(4096);
        buffer.truncate(head + BUFFER);
        let mut input = Input {
            source,
            file: None,
            patience: None,
            compression: None,
            buffer,
            head,
            start: 0,
            end: 0,
            base: 0,
            at_end: false,
            failed: None,
        };
        input.detect()?;
        Ok(input)
    }

    /// Starts again at the file's first byte. `Ok(false)` where that cannot be.
    pub(crate) fn rewind(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        file.rewind()?;
        self.source = Box::new(file.try_clone()?);
        (self.start, self.end, self.base) = (0, 0, 0);
        (self.at_end, self.failed, self.compression) = (false, None, None);
        self.detect()?;
        Ok(true)
    }

    /// Puts a decompressor before the source if its first bytes ask for one.
    fn detect(&mut self) -> io::Result<()> {
        self.have(4);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let compression = match *self.peek() {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // A frame, or a skippable frame before one (RFC 8878 section 3.1).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => return Ok(()),
        };
        let head = Cursor::new(self.peek().to_vec());
        let packed = BufReader::with_capacity(
            BUFFER / 2,
            head.chain(std::mem::replace(&mut self.source, Box::new(io::empty()))),
        );
        self.source = match compression {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Compression::Zstd => zst::decoder(packed)?,
        };
        self.compression = Some(compression);
        (self.start, self.end, self.base, self.at_end) = (0, 0, 0, false);
        Ok(())
    }

    /// Length of the file as it lies on the disk, where it is one.
    pub(crate) fn file_len(&self) -> Option<u64> {
        Some(self.file.as_ref()?.metadata().ok()?.len())
    }

    /// How many bytes were consumed.
    pub(crate) fn offset(&self) -> u64 {
        self.base.wrapping_add(self.start as u64)
    }

    /// Bytes at hand.
    #[inline]
    pub(crate) fn peek(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    /// Brings at least `wanted` bytes to hand; false if the stream ends or fails before.
    #[inline]
    pub(crate) fn have(&mut self, wanted: usize) -> bool {
        self.end - self.start >= wanted || self.fill(wanted)
    }

    #[inline(never)]
    fn fill(&mut self, wanted: usize) -> bool {
        // What is left goes before the place of the next read, so that reads stay whole pages, or, if it is much, to
        // the buffer's start.
        let left = self.end - self.start;
        let to = self.head.saturating_sub(left);
        let offset = self.offset();
        self.buffer.copy_within(self.start..self.end, to);
        (self.start, self.end) = (to, to + left);
        self.base = offset.wrapping_sub(to as u64);
        let wanted = to + wanted;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted && !self.at_end {
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
            match self.source.read(room) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end = self.buffer.len().min(self.end + count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = Some(error);
                    self.at_end = true;
                }
            }
        }
        self.end >= wanted
    }

    /// Steps over `count` bytes at hand and says where they stay until the next [`have`](Self::have).
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) -> Range<usize> {
        let start = self.start;
        self.start = self.end.min(start + count);
        start..self.start
    }

    /// Steps over `count` bytes, at hand or not; how many there were.
    pub(crate) fn skip(&mut self, count: u64) -> u64 {
        let mut left = count;
        while left > 0 && self.have(1) {
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.start);
            self.consume(step);
            left -= step as u64;
        }
        count - left
    }

    /// Bytes that [`consume`](Self::consume) stepped over.
    #[inline]
    pub(crate) fn consumed(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or(&[])
    }

    /// Why the stream ended, if it did not end properly.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }
}
