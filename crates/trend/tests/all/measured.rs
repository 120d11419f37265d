//! Figures to be quoted, measured by hand: `cargo test --release -p netdyno-trend -- --ignored --nocapture`. NETDYNO_RESULT names a
//! real result, of which the others are made; NETDYNO_FOLDER a folder where they stay.

use crate::made::{NOW, noise, result, write};
use netdyno_trend::{Wish, judge, page, read};
use std::time::Instant;

#[test]
#[ignore = "measures: by hand"]
fn ten_thousand_results() {
    let made = tempfile::tempdir().expect("a folder");
    let own = std::env::var("NETDYNO_FOLDER").ok().map(std::path::PathBuf::from);
    let made = own.as_deref().unwrap_or(made.path());
    let real =
        std::env::var("NETDYNO_RESULT").ok().map(|path| report::read(path.as_ref()).expect("a result"));
    for n in (0..10_000).filter(|n| !made.join(format!("run-{n}")).exists()) {
        let mut report = real.clone().unwrap_or_else(|| result(n, 1e6));
        report.environment.started = result(n, 1e6).environment.started;
        if let Some(latency) = &mut report.result.latency_ns {
            latency.p99 = (2000.0 * (1.0 + 0.05 * noise(n))) as u64;
        }
        write(made, &format!("run-{n}"), &report);
    }
    let bytes = std::fs::metadata(made.join("run-0/result.json")).expect("a result").len();
    println!("10,000 results of {bytes} bytes");
    for what in ["read", "from the index"] {
        let start = Instant::now();
        let read = read(made, NOW).expect("results");
        println!("{what}: {:?}", start.elapsed());
        let trend = judge(&read, &Wish::default());
        println!("with changes: {:?}", start.elapsed());
        let html = page(&trend);
        println!("with the page of {} bytes: {:?}", html.len(), start.elapsed());
        assert!(html.len() < 1_000_000);
    }
    let index = std::fs::metadata(made.join(".netdyno-trend")).expect("an index").len();
    println!("an index of {index} bytes");
}
