//! Sends ten thousand frames over a cable and shows what came of them.
//!
//! As root: `cargo run -p netdyno --example send_and_measure`

use netdyno::lab::{Lab, Options};
use netdyno::spec::{Link, Send};
use netdyno::{Session, report, start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Two hosts in namespaces of their own and a cable between them; gone when `lab` is.
    let lab = Lab::two_hosts(&Options::default())?;
    let job = Send {
        what: "ipv4(src=10.0.0.0/24)/udp(dport=9)".to_owned(),
        links: vec![Link { on: Some(lab.sender.spec()), measure: Some(lab.receiver.spec()) }],
        rate: Some("20kpps".parse()?),
        count: Some("10k".parse()?),
        ..Send::default()
    };
    let report = start(job.into(), Session::default())?.wait()?;
    print!("{}", report::text::render(&report, report::text::Options::default()));
    Ok(())
}
