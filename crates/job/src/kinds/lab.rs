//! The device in the middle of a lab, as it is asked for.

use ::lab::{Bottleneck, Kind, Loss};
use anyhow::{Result, bail};
use spec::Dut;
use std::time::Duration;
use traffic::Rate;

/// What waits before a bottleneck unless told otherwise: some 40 full frames.
const QUEUE: u64 = 64_000;
/// On the wire a frame takes its FCS, the preamble and the gap before the next, too.
const WIRE: u16 = 24;
/// Ethernet header and a VLAN tag.
const HEADER: u32 = 18;
/// The queue before a bottleneck where devices are tried, and the tokens it saves, each in time at its rate: enough that a moment in
/// which this machine did something else loses nothing, little enough that a trial of seconds is not longer for it.
const SAVED: Duration = Duration::from_millis(5);

/// Two interfaces between which a device of ours forwards.
pub const PROGRAM: ::lab::Device = ::lab::Device { kind: Kind::Program, bottleneck: None, loss: None };

/// The device that is asked for, if any.
pub fn device(dut: Option<Dut>, bottleneck: Option<Bottleneck>, loss: Option<Loss>) -> Option<::lab::Device> {
    let kind = match dut {
        None if bottleneck.is_none() && loss.is_none() => return None,
        None | Some(Dut::Bridge) => Kind::Bridge,
        Some(Dut::Router) => Kind::Router,
    };
    Some(::lab::Device { kind, bottleneck, loss })
}

/// The CPUs that do a device's work: all but the last, which sends.
pub fn device_cpus() -> Vec<usize> {
    let mut cpus = crate::environment::allowed_cpus().unwrap_or_default();
    cpus.pop();
    cpus
}

/// A lab's bottleneck, where trials are tried: what is not given holds 5 ms of its rate.
///
/// # Errors
/// As of [`bottleneck`].
pub fn of_trials(asked: &spec::Lab) -> Result<Option<Bottleneck>> {
    let Some(rate) = asked.bottleneck.as_deref().copied() else { return Ok(None) };
    let mut made = bottleneck(rate, asked.queue.as_deref().copied(), asked.burst.as_deref().copied(), 1500)?;
    let saved = u128::from(made.bits_per_second) / 8 * SAVED.as_millis() / 1000;
    let saved = u32::try_from(saved).unwrap_or(u32::MAX).max(2 * 1518);
    if asked.burst.is_none() {
        made.burst = saved;
    }
    if asked.queue.is_none() {
        made.queue = saved;
    }
    Ok(Some(made))
}

/// A token bucket of this rate. What is not given follows from it: tokens for a millisecond, and room for two frames at
/// least.
///
/// # Errors
/// That the bucket cannot hold a frame, or the rate cannot be kept.
pub fn bottleneck(rate: Rate, queue: Option<u64>, burst: Option<u64>, mtu: u32) -> Result<Bottleneck> {
    let Rate::Bits { bits_per_second, layer1 } = rate else {
        bail!("the bottleneck's rate is in bits per second: 200mbps, or 200mbps-l1 on the wire");
    };
    let frame = u64::from(mtu + HEADER);
    let burst = burst.unwrap_or((bits_per_second / 8_000).max(2 * frame));
    let queue = queue.unwrap_or(QUEUE.max(2 * frame));
    for (name, bytes) in [("burst", burst), ("queue", queue)] {
        if bytes < frame || bytes > u64::from(u32::MAX) {
            bail!("--{name} {bytes}: {frame} bytes (a frame of the largest size) to 4 GB are possible");
        }
    }
    if bits_per_second < 8_000 {
        bail!("a bottleneck of less than 8 kbit/s cannot be made");
    }
    let overhead = if layer1 { WIRE } else { 0 };
    Ok(Bottleneck { bits_per_second, overhead, burst: burst as u32, queue: queue as u32 })
}
