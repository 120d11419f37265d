//! Any bytes as what the kernel answers over netlink.
#![no_main]

use libfuzzer_sys::fuzz_target;
use port::netlink::{Attributes, split};

/// Attributes within attributes.
fn walk(attributes: Attributes<'_>, depth: u32) -> usize {
    let mut count = 0;
    for (kind, value) in attributes {
        count += 1;
        assert!(attributes.get(kind).is_some() && value.len() <= attributes.0.len());
        std::hint::black_box((attributes.str(kind), attributes.u32(kind)));
        if depth > 0 {
            count += walk(attributes.nested(kind), depth - 1);
        }
    }
    count
}

fuzz_target!(|bytes: &[u8]| {
    let mut answers = Vec::new();
    let number =
        bytes.get(8..12).and_then(|word| word.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word));
    let _ = split(bytes, number, &mut answers);
    assert!(answers.iter().map(Vec::len).sum::<usize>() <= bytes.len());
    std::hint::black_box(port::guard::read_all(&answers));
    std::hint::black_box(port::guard::read_all(&[bytes.to_vec()]));
    std::hint::black_box(walk(Attributes::after(bytes, 16), 2));
});
