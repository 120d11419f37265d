//! Looks at a job while it runs, and changes it: pauses it, goes on at half the rate, and ends it.
//!
//! As root: `cargo run -p netdyno --example observer`

use netdyno::lab::{Lab, Options};
use netdyno::snapshot::Phase;
use netdyno::spec::{Engine, Link, Send};
use netdyno::{Handle, Session, Snapshot, start};
use std::time::Duration;

/// Waits until what it sees is so. An observer may be as slow as it likes: the job does not wait for it.
fn until(handle: &Handle, is_so: impl Fn(&Snapshot) -> bool) -> Result<(), Box<dyn std::error::Error>> {
    while !handle.is_over() {
        if handle.snapshot().is_some_and(|now| is_so(&now)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // Then it says why.
    handle.wait()?;
    Err("the job was over before".into())
}

fn sent(now: &Snapshot) -> u64 {
    now.tx.map_or(0, |tx| tx.frames)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::two_hosts(&Options::default())?;
    let job = Send {
        what: "ipv4/udp(dport=9)".to_owned(),
        links: vec![Link { on: Some(lab.sender.spec()), measure: Some(lab.receiver.spec()) }],
        rate: Some("10kpps".parse()?),
        // Frames that the kernel makes have their times frozen in: `title.manual` of a snapshot says what cannot be changed.
        engine: Engine::Packet,
        ..Send::default()
    };
    // Without a count and a duration it lasts until somebody ends it.
    let handle = start(job.into(), Session::default())?;
    until(&handle, |now| sent(now) >= 1_000)?;
    println!("more than 1,000 frames were sent");
    handle.pause();
    until(&handle, |now| now.phase == Phase::Paused)?;
    println!("paused");
    handle.set_rate(50);
    handle.resume();
    until(&handle, |now| now.phase == Phase::Running && now.percent == 50)?;
    println!("goes on at 50 %");
    handle.stop();
    let report = handle.wait()?;
    println!("changes by hand: {}", report.result.adjustments.len());
    println!("lost: {}", report.result.loss.map_or(0, |loss| loss.frames));
    Ok(())
}
