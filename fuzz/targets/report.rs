//! Any text as a result that is read back, from JSON or from a page: what is read is shown in every way, and read again
//! as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use report::{Report, classic, compare, csv, html, json, text};

fn show(report: &Report) {
    std::hint::black_box(text::render(report, text::Options::default()));
    std::hint::black_box((classic::render(report), csv::render(report), csv::trials(report)));
    let page = html::render(report);
    assert_eq!(&html::embedded_report(&page).expect("our own page"), report);
    assert_eq!(&json::from_str(&json::to_string(report)).expect("our own text"), report);
    let named = |name: &str| compare::Named { name: name.to_owned(), report };
    if let Ok(comparison) = compare::compare(&[named("a")], &[named("b")], 0.0) {
        std::hint::black_box(compare::render(&comparison, text::Options::default()));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for read in [json::from_str(text), html::embedded_report(text)] {
        match read {
            Ok(report) => show(&report),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
