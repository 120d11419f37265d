//! Any text as a file of jobs; what is read is written and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spec::{Consent, File};

fuzz_target!(|text: &str| {
    let file = match File::read(text, "fuzz") {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let again = File::read(&file.to_text().expect("read from text"), "again").expect("what was written");
    assert_eq!(again, file);
    for job in &file.jobs {
        let asks = job.asks();
        assert!(asks.covers(job).is_ok());
        assert_eq!(Consent::default().covers(job).is_ok(), asks == Consent::default());
    }
});
