//! zstd (RFC 8878), by its own library.

use std::io::{self, BufRead, Read, Write};

/// Fast: a capture is written while traffic waits.
const LEVEL: i32 = 1;

/// What packs what is written into it, and hands it on.
pub(crate) type Encoder<W> = zstd::stream::write::Encoder<'static, W>;

/// Packs for `target`.
pub(crate) fn encoder<W: Write>(target: W) -> io::Result<Encoder<W>> {
    Encoder::new(target, LEVEL)
}

/// Unpacks. A frame may ask for a window; the library allows 128 MB (zstd --ultra -22), and -19 has 8 MB.
pub(crate) fn decoder(packed: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::stream::read::Decoder::with_buffer(packed)?))
}

/// What there is without the feature, for its test.
#[cfg(test)]
#[allow(dead_code, reason = "its test calls what the crate would call, and not what never happens")]
#[path = "zst/absent.rs"]
mod absent;
