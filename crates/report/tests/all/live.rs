//! The moving line: it fits, it keeps what matters, and it cleans up after itself.

use std::time::Duration;

use netdyno_report::Loss;
use netdyno_report::live::{Live, Pace, Progress, line, sentence};

fn progress(seconds: u64) -> Progress {
    let pace = Pace { frames: seconds * 1_600_000, frames_per_second: 1.6e6, bits_per_second: 5.696e9 };
    Progress {
        elapsed: Duration::from_secs(seconds),
        remaining: Some(Duration::from_secs(60 - seconds)),
        at_most: false,
        sent: Some(pace),
        intended_frames_per_second: Some(1.6e6),
        received: Some(Pace { frames_per_second: 1.5e6, ..pace }),
        loss: Some(Loss::of(12, 1_600_000)),
        endpoint: None,
        warnings: 2,
    }
}

#[test]
fn the_line_reads_as_agreed() {
    let wide = " 20%  12s  48s left  sent 1.60 Mpps  of 1.60 Mpps  5.70 Gbit/s  got 1.50 Mpps  lost 0.0008 %  2 warnings";
    assert_eq!(line(&progress(12), 200), wide);
    assert_eq!(
        line(&progress(12), 80),
        "12s  48s left  sent 1.60 Mpps  got 1.50 Mpps  lost 0.0008 %  2 warnings"
    );
    assert_eq!(line(&progress(12), 45), "12s  sent 1.60 Mpps  lost 0.0008 %");
    assert_eq!(line(&Progress::default(), 80), " 0s");
    let search =
        |ns, at_most| Progress { remaining: Some(Duration::from_nanos(ns)), at_most, ..Progress::default() };
    assert_eq!(sentence(&search(75_000_000_000, true)), "0s (at most 1m 15s left)");
    assert!(line(&search(999_000_000, true), 80).ends_with("at most <1s left"));
    assert!(line(&search(999_000_000, false), 80).ends_with("  <1s left"));
}

#[test]
fn the_line_never_exceeds_its_width() {
    let mut extreme = progress(59);
    extreme.sent =
        Some(Pace { frames: u64::MAX, frames_per_second: f64::MAX, bits_per_second: f64::INFINITY });
    extreme.elapsed = Duration::MAX;
    extreme.remaining = None;
    for width in 0..200 {
        for p in [progress(0), progress(60), extreme] {
            assert!(line(&p, width).len() <= width, "{width}: {}", line(&p, width));
        }
    }
}

#[test]
fn a_log_gets_whole_sentences() {
    assert_eq!(
        sentence(&progress(12)),
        "12s (48s left): sent 19,200,000 frames, now 1.60 Mpps, 5.70 Gbit/s of 1.60 Mpps; \
         received 19,200,000 frames, now 1.50 Mpps, 5.70 Gbit/s; lost 12 frames (0.0008 %); 2 warnings"
    );
}

#[test]
fn a_terminal_is_left_clean() {
    let mut out = Vec::new();
    let mut live = Live::terminal(&mut out, 40);
    live.update(&progress(1)).expect("memory takes it");
    live.message("v0: link down\x1b[2J").expect("memory takes it");
    live.update(&progress(2)).expect("memory takes it");
    live.clear().expect("memory takes it");
    live.clear().expect("memory takes it");
    let out = String::from_utf8(out).expect("text");
    let line = |s| format!("\r\x1b[K{}", line(&progress(s), 39));
    assert_eq!(out, format!("{}\r\x1b[Kv0: link down\\u{{1b}}[2J\n{}\r\x1b[K", line(1), line(2)));
}

#[test]
fn a_log_gets_one_line_every_so_often_and_no_control_characters() {
    let mut out = Vec::new();
    let mut live = Live::log(&mut out, Duration::from_secs(10));
    for second in 0..=35 {
        live.update(&progress(second)).expect("memory takes it");
    }
    live.clear().expect("memory takes it");
    let out = String::from_utf8(out).expect("text");
    let starts: Vec<_> = out.lines().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(starts, ["10s", "20s", "30s"]);
    assert!(!out.contains(['\r', '\x1b']));
}
