//! Sends frames of a source that netdyno does not know: here an iterator that makes them up, each with its time.
//!
//! As root: `cargo run -p netdyno --example custom_source`

use netdyno::lab::{Lab, Options};
use netdyno::source::Sequence;
use netdyno::spec::{Link, Send};
use netdyno::{Session, start_with};

/// Frames that grow, further and further apart: when each is due, in nanoseconds from the start, and its bytes without FCS.
fn frames() -> impl Iterator<Item = (u64, Vec<u8>)> {
    (0..200u64).map(|n| {
        let mut frame = vec![0; 60 + n as usize];
        frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, 2]);
        frame[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 1]);
        // The EtherType for experiments, and what anybody may put behind it.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[14..22].copy_from_slice(&n.to_be_bytes());
        (n * n * 10_000, frame)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::two_hosts(&Options::default())?;
    // The job says where and how; what is sent stands beside it.
    let job = Send {
        what: "growing frames".to_owned(),
        links: vec![Link { on: Some(lab.sender.spec()), measure: Some(lab.receiver.spec()) }],
        ..Send::default()
    };
    let source = Sequence::timed("growing frames", frames());
    let report = start_with(job, source, Session::default())?.wait()?;
    let (tx, rx) = (report.result.tx.as_ref(), report.result.rx.as_ref());
    let (tx, rx) = tx.zip(rx).ok_or("nothing was measured")?;
    println!("sent: {} frames, {} bytes", tx.totals.frames, tx.totals.bytes);
    println!("received: {} frames, {} bytes", rx.totals.frames, rx.totals.bytes);
    Ok(())
}
