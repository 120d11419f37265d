//! Finds the throughput of a router that forwards 20 Mbit/s, in a lab of the job's own.
//!
//! As root: `cargo run -p netdyno --example search`

use netdyno::spec::{Bench, Find, Finding, Lab, Method, Search, Throughput};
use netdyno::{Session, start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Search {
        // Large frames are few at that rate, so that any machine keeps up.
        bench: Bench {
            lab: Some(Lab {
                bottleneck: Some("20mbps".parse()?),
                queue: Some("8k".parse()?),
                burst: Some("6k".parse()?),
                ..Lab::default()
            }),
            size: Some("1518".to_owned()),
            ..Bench::default()
        },
        // Halving, until both bounds are within 5 % of each other.
        find: Find::Throughput(Throughput {
            finding: Finding { method: Method::Bisect, precision: Some("5%".parse()?), ..Finding::default() },
            ..Throughput::default()
        }),
        max: Some("2kpps".parse()?),
        min: None,
        trial_duration: Some("200ms".parse()?),
        yes_disrupt: Vec::new(),
    };
    let handle = start(job.into(), Session::default())?;
    let report = handle.wait()?;
    match &report.result.throughput {
        Some(found) if found.reached => println!("throughput: {:.0} frames/s", found.frames_per_second),
        // A machine that cannot send in time proves nothing about the router.
        Some(found) => {
            println!("throughput: not determined, at least {:.0} frames/s", found.frames_per_second)
        }
        None => println!("throughput: not determined"),
    }
    Ok(())
}
