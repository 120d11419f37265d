//! Folders of results that were never measured: the same for the same seed.

use report::Report;
use report::model::{Interface, Loss, Rx, Totals, Tx};
use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The first result begins then; each next one an hour later.
pub const BEGIN: u64 = 1_790_000_000;
/// No result is of the future.
pub const NOW: u64 = BEGIN + 100_000 * 3600;

/// Numbers that only look random, from -1 to 1, the same for the same n.
pub fn noise(n: u64) -> f64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// A result of a run that sent and received so many frames a second.
pub fn result(n: u64, frames_per_second: f64) -> Report {
    let mut report = Report::new("send");
    report.requested = Some(json!({"kind": "send", "what": "ipv4/udp", "rate": "top", "seed": n}));
    let e = &mut report.environment;
    e.started = Some(report::units::rfc3339(BEGIN + 3600 * n));
    e.hostname = Some("lab1".to_owned());
    e.kernel = Some("6.1.0".to_owned());
    e.netdyno_version = "0.1.0".to_owned();
    e.interfaces = vec![Interface {
        name: "tx0".to_owned(),
        role: Some("send".to_owned()),
        driver: Some("veth".to_owned()),
        mtu: Some(1500),
        offloads: vec!["tx-checksumming".to_owned(), "rx-gro".to_owned()],
        ..Interface::default()
    }];
    let frames = frames_per_second as u64;
    let totals = Totals::over(frames, frames * 60, 1_000_000_000);
    report.result.tx = Some(Tx { totals, ..Tx::default() });
    report.result.rx = Some(Rx { totals, ..Rx::default() });
    report.result.loss = Some(Loss::between(frames, frames));
    report
}

pub fn write(folder: &Path, name: &str, report: &Report) {
    let dir = folder.join(name);
    fs::create_dir_all(&dir).expect("a folder");
    fs::write(dir.join("result.json"), report::json::to_string(report)).expect("written");
}

/// So many results, at rates that `level` says, with 1 % of noise; `change` may alter each.
pub fn folder(results: u64, level: impl Fn(u64) -> f64, change: impl Fn(u64, &mut Report)) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for n in 0..results {
        let mut report = result(n, level(n) * (1.0 + 0.01 * noise(n)));
        change(n, &mut report);
        write(folder.path(), &format!("run-{n}"), &report);
    }
    folder
}
