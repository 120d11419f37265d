//! The device in the middle of a lab, as it is asked for.

use crate::device_counters::DeviceCounters;
use crate::dropped::{Trace, Tracing};
use crate::impaired::Device;
use crate::place::Place;
use ::lab::nat::Limits;
use ::lab::{Bottleneck, Kind, Lab, Located, Loss};
use anyhow::{Result, anyhow, bail};
use report::Report;
use spec::Dut;
use std::time::Duration;
use traffic::Rate;

/// On the wire a frame takes its FCS, the preamble and the gap before the next, too.
const WIRE: u16 = 24;
/// Ethernet header and a VLAN tag.
const HEADER: u32 = 18;
/// The queue before a bottleneck, and the tokens it saves, each in time at its rate: enough that a moment in which this machine did
/// something else loses nothing, little enough that a trial of seconds is not longer for it.
const SAVED: Duration = Duration::from_millis(5);

/// Two interfaces between which a device of ours forwards.
pub const PROGRAM: ::lab::Device = ::lab::Device { kind: Kind::Program, bottleneck: None, loss: None };

/// The device that is asked for, if any; `limits` are those of a NAT.
pub fn device(
    dut: Option<Dut>,
    bottleneck: Option<Bottleneck>,
    loss: Option<Loss>,
    limits: Limits,
) -> Option<::lab::Device> {
    let kind = match dut {
        None if bottleneck.is_none() && loss.is_none() => return None,
        None | Some(Dut::Bridge) => Kind::Bridge,
        Some(Dut::Router) => Kind::Router,
        Some(Dut::Nat) => Kind::Nat(limits),
    };
    Some(::lab::Device { kind, bottleneck, loss })
}

/// The device that a job asks for, if any. With a limit of connections it is a NAT, with any other limit `limited`, unless said.
///
/// # Errors
/// What does not go together, or cannot be.
pub fn asked_for(asked: &spec::Lab, limited: Option<Dut>) -> Result<Option<::lab::Device>> {
    let bottleneck = of_job(asked)?;
    let loss = asked.loss.as_deref().map(str::parse).transpose().map_err(|bad| anyhow!("lab.loss: {bad}"))?;
    let slows = bottleneck.is_some() || loss.is_some();
    let counts = asked.limits_connections();
    if asked.impair.is_some() && (asked.dut.is_some() || slows || counts) {
        bail!(
            "lab.impair: that is a device of its own; leave out `dut`, `bottleneck`, `loss`, `connections` and `new_connections`"
        );
    }
    let dut = asked.dut.or(if counts { Some(Dut::Nat) } else { limited.filter(|_| slows) });
    if counts && dut != Some(Dut::Nat) {
        bail!("lab: `connections` and `new_connections` are limits of `dut: nat`");
    }
    let limits = limits(asked)?;
    Ok(device(dut, bottleneck, loss, limits).or(asked.impair.as_ref().map(|_| PROGRAM)))
}

fn limits(asked: &spec::Lab) -> Result<Limits> {
    let limits = Limits { connections: asked.most_connections(), per_second: asked.most_new_connections() };
    if asked.connections.is_some() && limits.connections.is_none() {
        bail!("lab.connections: it is 1 to 65535");
    }
    if asked.new_connections.is_some() && limits.per_second.is_none() {
        bail!("lab.new_connections: it is in connections per second, up to 1000kcps: 2kcps");
    }
    Ok(limits)
}

/// The CPUs that do a device's work: all but the last, which sends.
pub fn device_cpus() -> Vec<usize> {
    let mut cpus = crate::environment::allowed_cpus().unwrap_or_default();
    cpus.pop();
    cpus
}

/// A lab's bottleneck.
///
/// # Errors
/// As of [`bottleneck`].
pub fn of_job(asked: &spec::Lab) -> Result<Option<Bottleneck>> {
    let Some(rate) = asked.bottleneck.as_deref().copied() else { return Ok(None) };
    bottleneck(rate, asked.queue.as_deref().copied(), asked.burst.as_deref().copied(), 1500).map(Some)
}

/// A lab with two hosts for frames that are not made for it, and the device between them at work.
#[derive(Debug)]
pub struct TwoHosts {
    lab: Lab,
    device: Option<Device>,
    /// What is between the hosts learns where addresses are.
    pub learns: bool,
}

impl TwoHosts {
    /// Made as it is asked for, with so many queues at each end. What has a limit or a loss is a bridge that learns nothing, unless told
    /// otherwise: captures have both directions, which a bridge that learns would not pass on.
    ///
    /// # Errors
    /// What is asked for that cannot be, or that there can be no lab.
    pub fn make(asked: &spec::Lab, queues: u32) -> Result<TwoHosts> {
        if asked.ports.is_some() {
            bail!("`.lab.ports`: this lab has two hosts; leave it out");
        }
        let mut device = asked_for(asked, Some(Dut::Bridge))?;
        if let Some(device) =
            device.as_mut().filter(|device| device.kind == Kind::Bridge && asked.dut.is_none())
        {
            device.kind = Kind::Hub;
        }
        let learns = device.is_some_and(|device| device.kind == Kind::Bridge);
        let device_cpus = device_cpus();
        let lab =
            Lab::two_hosts(&::lab::Options { queues, device, device_cpus, ..::lab::Options::default() })?;
        let program = asked.impair.as_ref().map(|faults| Device::start_in(&lab, faults)).transpose()?;
        Ok(TwoHosts { lab, device: program, learns })
    }

    /// Where frames leave, and where they arrive.
    ///
    /// # Errors
    /// That an interface is gone.
    pub fn places(&self) -> Result<[Place; 2]> {
        let at = |host: &::lab::Host| -> Result<Place> {
            let namespace = Some(host.namespace.try_clone()?);
            Place::at(host.interface.to_owned(), Located { namespace, name: host.interface.to_owned() })
        };
        Ok([at(&self.lab.sender)?, at(&self.lab.receiver)?])
    }

    /// What this kernel drops in it, from now on.
    pub fn tracing(&self, wanted: Trace, clock: spec::Clock) -> Tracing {
        Tracing::in_lab(wanted, super::shared::stamp_clock(clock), &self.lab)
    }

    /// What its device counts from now on.
    pub fn counters(&self) -> DeviceCounters {
        DeviceCounters::begin(&self.lab, self.device.as_ref().map(Device::snapshot))
    }

    /// It is over: says what its device did, and puts into the result what it counted.
    ///
    /// # Errors
    /// That the device ended before.
    pub fn finish(
        self,
        mut counters: DeviceCounters,
        report: &mut Report,
        session: impl FnOnce(String),
    ) -> Result<()> {
        let did = self.device.as_ref().map(Device::snapshot);
        let (sender, receiver) = (self.lab.sender.interface, self.lab.receiver.interface);
        report.result.counters.extend(counters.rises(&self.lab, did, &[sender], &[receiver]));
        let Some(device) = self.device else { return Ok(()) };
        let done = device.finish();
        let passages = done.passages([::lab::device::DEVICE_NEAR, ::lab::device::DEVICE_FAR]);
        let there = passages.iter().map(|passage| format!("device: {}", passage.facts().join(", ")));
        session(there.collect::<Vec<_>>().join("\n"));
        match done.why {
            Some(why) => bail!("the device ended before its lab: {why}"),
            None => Ok(()),
        }
    }
}

/// A token bucket of this rate. What is not given follows from it: tokens and room for 5 ms, and for two frames at least.
///
/// # Errors
/// That the bucket cannot hold a frame, or the rate cannot be kept.
pub fn bottleneck(rate: Rate, queue: Option<u64>, burst: Option<u64>, mtu: u32) -> Result<Bottleneck> {
    let Rate::Bits { bits_per_second, layer1 } = rate else {
        bail!("the bottleneck's rate is in bits per second: 200mbps, or 200mbps-l1 on the wire");
    };
    let frame = u64::from(mtu + HEADER);
    let saved = u128::from(bits_per_second) / 8 * SAVED.as_millis() / 1000;
    let saved = u32::try_from(saved).unwrap_or(u32::MAX);
    let saved = u64::from(saved).max(2 * frame);
    let (burst, queue) = (burst.unwrap_or(saved), queue.unwrap_or(saved));
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
