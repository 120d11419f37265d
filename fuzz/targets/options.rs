//! Any text as an option file, and any words as a command line that AutoOpts would read.
#![no_main]
#![allow(dead_code, reason = "parts of the program")]

#[path = "../../crates/cli/src/compat/autoopts.rs"]
mod autoopts;
#[path = "../../crates/cli/src/compat/presets.rs"]
mod presets;

use autoopts::{Parsed, Spec};
use libfuzzer_sys::fuzz_target;
use std::ffi::OsString;

const SPECS: [Spec; 5] = [
    Spec { name: "pcap", short: Some('i'), value: Some("FILE") },
    Spec { name: "pps", short: Some('p'), value: Some("N") },
    Spec { name: "pps-multi", short: None, value: Some("N") },
    Spec { name: "topspeed", short: Some('t'), value: None },
    Spec { name: "comment", short: Some('C'), value: Some("TEXT") },
];

fn sound(parsed: &Parsed) {
    for (name, value) in &parsed.options {
        let spec = SPECS.iter().find(|spec| spec.name == *name).expect("an option that there is");
        assert!(spec.value.is_some() || value.is_empty());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    match autoopts::parse(&SPECS, &words) {
        Ok(parsed) => sound(&parsed),
        Err(bad) => assert!(!bad.to_string().is_empty()),
    }
    if let Ok(options) = presets::read(&text, "tcpprep", &SPECS) {
        sound(&Parsed { options, files: Vec::new() });
    }
});
