//! Two jobs at once in one process: one measures what arrives, the other sends. They begin together.
//!
//! As root: `cargo run -p netdyno --example two_jobs`

use netdyno::lab::{Lab, Options};
use netdyno::spec::{Link, Measure, Send, Sign};
use netdyno::{Member, Session, start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::two_hosts(&Options::default())?;
    let send = Send {
        what: "ipv4/udp(dport=9)".to_owned(),
        links: vec![Link { on: Some(lab.sender.spec()), measure: None }],
        rate: Some("5kpps".parse()?),
        count: Some("2000".parse()?),
        sign: Sign::Always,
        ..Send::default()
    };
    let measure = Measure {
        on: lab.receiver.spec(),
        count: Some("2000".parse()?),
        duration: Some("60s".parse()?),
        ..Measure::default()
    };
    // Nothing is sent before both are ready.
    let mut together = Member::beginning(2).into_iter();
    let session = |together| Session { together, ..Session::default() };
    let measuring = start(measure.into(), session(together.next()))?;
    let sending = start(send.into(), session(together.next()))?;
    let (sent, measured) = (sending.wait()?, measuring.wait()?);
    println!("sent: {} frames", sent.result.tx.as_ref().map_or(0, |tx| tx.totals.frames));
    for stream in &measured.streams {
        println!("stream {}: {} arrived, {} lost", stream.stream, stream.rx_frames, stream.lost_frames);
    }
    Ok(())
}
