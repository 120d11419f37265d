//! What the fuzz targets share.

use std::io::Cursor;

use capture::Reader;

/// Reads a capture to its end, strictly and leniently, and holds the two against each other.
pub fn read_capture(bytes: &[u8]) {
    let strict = records(bytes, false);
    let lenient = records(bytes, true);
    // Leniency forgives the end of a capture; what comes before is the same.
    assert_eq!(strict.0, lenient.0);
    assert!(lenient.1 || !strict.1, "what is sound is sound to the lenient reader");
}

/// How many records were read, and whether the end was reached without an error.
fn records(bytes: &[u8], lenient: bool) -> (u64, bool) {
    let Ok(mut reader) = Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "fuzz") else {
        return (0, false);
    };
    if lenient {
        reader = reader.lenient();
    }
    let mut count = 0;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                count += 1;
                assert_eq!(record.number, count);
                assert!(record.data.len() <= capture::MAX_CAPTURED as usize);
                std::hint::black_box(wire::layers::Layers::parse(record.link, record.data));
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(matches!(reader.next_record(), Ok(None)), "after an error there is no more");
                return (count, false);
            }
        }
    }
    assert!(matches!(reader.next_record(), Ok(None)), "after the end there is no more");
    (count, true)
}
