//! Without Parquet: no file of it is begun ([`HERE`]).

use crate::Row;
use crate::ground::Ground;
use std::convert::Infallible;
use std::io;

/// Whether this build can write such files.
pub const HERE: bool = false;

/// There is none.
#[derive(Debug)]
pub struct Parquet(Infallible);

impl Parquet {
    pub fn create(_: Ground) -> io::Result<Parquet> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn write(&mut self, _: &[Row]) -> io::Result<()> {
        match self.0 {}
    }

    pub fn size(&self) -> u64 {
        match self.0 {}
    }

    pub fn end(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    pub fn ended(self) -> (u64, Ground) {
        match self.0 {}
    }

    pub fn salvage(self) -> Option<(u64, Ground)> {
        match self.0 {}
    }
}
