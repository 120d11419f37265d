//! Any bytes as a packed capture that is read into memory: however much they unpack to, no more is taken than was said.
#![no_main]

use capture::Reader;
use engine::source::preload::preload;
use engine::source::{Input, Reading, SourceError};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

const MOST: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "fuzz") else { return };
    let reading = Reading { whole_length: bytes.len() % 2 == 1, ..Reading::default() };
    match preload(&mut [Input::from(reader.lenient())], &reading, MOST) {
        Ok(loaded) => assert!(loaded.memory() <= MOST),
        Err(SourceError::NoRoom { most, .. }) => assert_eq!(most, MOST),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
