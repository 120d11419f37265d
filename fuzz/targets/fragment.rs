//! Any text as fragroute's rules, and any bytes behind its first zero as the frame they are for.
#![no_main]

use edit::fragment::{MAX_BYTES, MAX_FRAMES, Rules};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, frame) = bytes.split_at(split);
    let Ok(rules) = Rules::parse(&String::from_utf8_lossy(text), 1) else { return };
    let frame = frame.get(1..).unwrap_or(&[]);
    let frames = rules.apply(frame, frame.len().min(14), 1).unwrap_or_default();
    assert!(frames.len() <= MAX_FRAMES);
    assert!(frames.iter().map(Vec::len).sum::<usize>() <= MAX_BYTES + frame.len());
    assert_eq!(rules.apply(frame, frame.len().min(14), 1).unwrap_or_default(), frames);
});
