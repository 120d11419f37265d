//! Trials carried out: what `netdyno trial` and `netdyno search` share.
//!
//! ```text
//!   trial::Search -- Wanted --> Series -- Offer --> Rig -- run::run, one for each way --> Report
//!                 <- Outcome --         <- Ran ----                                   <--
//! ```

mod blame;
pub mod course;
pub mod far;
pub mod floor;
pub mod goal;
mod looks;
mod offer;
mod outcome;
mod ports;
#[cfg(not(feature = "netflow"))]
#[path = "probed/absent.rs"]
mod probed;
#[cfg(feature = "netflow")]
mod probed;
mod rig;
mod series;
mod show;
mod softirq;
mod watch;

pub use goal::Goal;
pub use ports::{frame_sizes, mean_bytes};
pub use rig::{Offer, Ran, Rig};
pub use series::{How, Series, outcome_of, row, rows_of, shown};
pub use softirq::PacketThreads;

use std::time::Duration;
use traffic::fraction::gcd;
use traffic::{Rate, Schedule};

/// Says that nothing is known of what this machine held up, if its packet threads matter and the kernel does not tell of them.
pub fn warn_if_silent(threads: Option<&PacketThreads>, warnings: &mut report::Warnings) {
    if threads.is_some_and(|threads| threads.waited_ns().is_none()) {
        warnings.add(
            report::Code::KernelSilent,
            "the kernel does not tell here how long its packet threads (ksoftirqd) waited for a processor: what the device loses while this \
             machine is busy cannot be told from what it loses by itself",
        );
    }
}

/// A time in a trial's own unit.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The schedule of so many frames a second, to a thousandth of a frame.
pub fn schedule(frames_per_second: f64) -> Schedule {
    let frames = (frames_per_second * 1000.0).round().max(1.0) as u64;
    let per_ns = 1_000_000_000_000u64;
    let common = gcd(frames, per_ns);
    Schedule::Frames { frames: frames / common, per_ns: per_ns / common }
}

/// A rate in frames a second, of frames of `mean` bytes (the FCS counted) on a link of `bits_per_second`.
pub fn frames_per_second(rate: Rate, mean: f64, bits_per_second: Option<u64>) -> anyhow::Result<f64> {
    let on_the_wire = (mean + trial::ethernet::BETWEEN_FRAMES as f64) * 8.0;
    Ok(match rate {
        Rate::Frames(exact) => exact.as_f64(),
        Rate::Bits { bits_per_second, layer1: false } => bits_per_second as f64 / ((mean - 4.0) * 8.0),
        Rate::Bits { bits_per_second, layer1: true } => bits_per_second as f64 / on_the_wire,
        Rate::Percent(percent) => match bits_per_second {
            Some(link) => percent.as_f64() / 100.0 * link as f64 / on_the_wire,
            None => anyhow::bail!(
                "{rate}: the link states no speed to take a percentage of; give 100kpps or 1gbps"
            ),
        },
        Rate::Flows(_) => anyhow::bail!("{rate}: give frames or bits per second here"),
        Rate::TopSpeed => anyhow::bail!("`top` is no load that can be compared: give 100kpps, 1gbps or 40%"),
    })
}
