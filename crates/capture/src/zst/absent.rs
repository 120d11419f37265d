//! Without zstd: a capture that it packed is neither read nor written.

use std::convert::Infallible;
use std::io::{self, BufRead, Read, Write};
use std::marker::PhantomData;

/// There is none.
pub(crate) struct Encoder<W>(Infallible, PhantomData<W>);

impl<W> Encoder<W> {
    pub(crate) fn finish(self) -> io::Result<W> {
        match self.0 {}
    }
}

impl<W> Write for Encoder<W> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

fn absent() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, report::absent("zstd", "zstd"))
}

pub(crate) fn encoder<W: Write>(_: W) -> io::Result<Encoder<W>> {
    Err(absent())
}

pub(crate) fn decoder(_: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Err(absent())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_zstd_packed_gets_an_error_that_names_the_feature() {
        let read = super::decoder(std::io::empty()).map(|_| ());
        let written = super::encoder(Vec::new()).map(|_| ());
        for result in [read, written] {
            let said = result.expect_err("there is none").to_string();
            assert!(said.contains("without zstd (Cargo feature `zstd`)"), "{said}");
        }
    }
}
