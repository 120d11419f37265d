//! `netdyno lab -- CMD`: any command between two hosts of its own.

mod server;

use crate::cli::lab::Lab;
use crate::output::note;
use ::lab::nat::Limits;
use anyhow::{Result, bail};
use job::device_xdp::DeviceXdp;
use job::impaired::Device;
use job::kinds::lab::{PROGRAM, bottleneck, device, device_cpus};
use server::Server;

pub fn run(args: Lab) -> Result<u8> {
    if !(68..=65_535).contains(&args.mtu) {
        bail!("--mtu {}: 68 to 65535 are possible", args.mtu);
    }
    if !(1..=64).contains(&args.queues) {
        bail!("--queues {}: 1 to 64 are possible", args.queues);
    }
    if !(1..=::lab::MOST_CABLES).contains(&args.cables) {
        bail!("--cables {}: 1 to {} are possible", args.cables, ::lab::MOST_CABLES);
    }
    if let Some(ports) = args.ports.filter(|ports| !(3..=::lab::MOST_PORTS).contains(ports)) {
        bail!("--ports {ports}: 3 to {} are possible; two hosts are there without it", ::lab::MOST_PORTS);
    }
    // A device of several ports is a bridge unless it is said to be something else, and one with a limit of connections a NAT.
    let is_bridge = args.ports.is_some() || args.dut_xdp.is_some();
    let limits = limits(&args)?;
    let usual = if limits == Limits::default() { spec::Dut::Bridge } else { spec::Dut::Nat };
    let dut = args.dut.or((is_bridge || usual == spec::Dut::Nat).then_some(usual));
    let is_nat = dut == Some(spec::Dut::Nat);
    if is_nat && args.ports.is_some() {
        bail!("--dut nat: it stands between two hosts; leave out --ports");
    }
    let bottleneck =
        args.bottleneck.map(|rate| bottleneck(rate, args.queue, args.burst, args.mtu)).transpose()?;
    let options = ::lab::Options {
        mtu: args.mtu,
        queues: args.queues,
        cables: args.cables,
        addresses: args.addresses || args.server.is_some(),
        ports: args.ports,
        device: device(dut, bottleneck, args.loss, limits).or(args.impair.as_ref().map(|_| PROGRAM)),
        device_cpus: device_cpus(),
        // What XDP sends, as `netdyno sessions` does, arrives at this device only with GRO.
        gro: is_nat,
    };
    let lab = ::lab::Lab::two_hosts(&options)?;
    let program = args.dut_xdp.as_deref();
    let program = program
        .map(|object| DeviceXdp::put_into(&lab, object, args.dut_xdp_program.as_deref()))
        .transpose()
        .map_err(|error| match error.downcast::<verdicts::VerdictsError>() {
            Ok(error) => anyhow::anyhow!("--dut-xdp: {}", super::xdp::choosing(error, "--dut-xdp-program")),
            Err(error) => anyhow::anyhow!("--dut-xdp: {error:#}"),
        })?;
    let mut variables: Vec<_> = program.as_ref().map(DeviceXdp::variable).into_iter().collect();
    variables.extend(is_nat.then(|| (::lab::ENV_NAT, ::lab::DEVICE.into())));
    let start = || {
        let device = args.impair.as_ref().map(|faults| Device::start_in(&lab, faults)).transpose()?;
        let server = args.server.as_ref().map(|server| Server::start(&lab, server)).transpose()?;
        anyhow::Ok((device, server))
    };
    let (status, (device, server)) = ::lab::run_command_beside(&lab, &args.command, &variables, start)?;
    if let Some(status) = server.and_then(|mut server| server.ended()) {
        note(&format!("the server ended with status {status} before CMD did"));
    }
    if let Some([near, _]) = lab.device.as_ref().filter(|_| is_nat)
        && let Some(tracked) = ::lab::nat::tracked(&near.namespace)?
    {
        note(&format!("device: {}", job::device_nat::counts(&tracked).facts().join(", ")));
    }
    if let Some(program) = program {
        note(&format!("device: {}", report::xdp::facts(&program.told()?).join(", ")));
    }
    if let Some(device) = device {
        let done = device.finish();
        for passage in done.passages([::lab::device::DEVICE_NEAR, ::lab::device::DEVICE_FAR]) {
            note(&format!("device: {}", passage.facts().join(", ")));
        }
        if let Some(why) = done.why {
            bail!("the device ended before its lab: {why}");
        }
    }
    Ok(u8::try_from(status).unwrap_or(1))
}

/// Of connections, which only a NAT has.
fn limits(args: &Lab) -> Result<Limits> {
    let asked = spec::Lab {
        connections: args.connections.map(|most| most.to_string().parse()).transpose().ok().flatten(),
        new_connections: args.new_connections.clone(),
        ..spec::Lab::default()
    };
    let limits = Limits { connections: asked.most_connections(), per_second: asked.most_new_connections() };
    if let Some(most) = args.connections.filter(|_| limits.connections.is_none()) {
        bail!("--connections {most}: 1 to 65535 are possible");
    }
    if let Some(rate) = args.new_connections.as_ref().filter(|_| limits.per_second.is_none()) {
        bail!("--new-connections {rate}: it is in connections per second, up to 1000kcps: 2kcps");
    }
    let other = args.dut.filter(|dut| *dut != spec::Dut::Nat);
    if let Some(dut) = other.filter(|_| limits != Limits::default()) {
        bail!("--dut {dut}: --connections and --new-connections are limits of --dut nat");
    }
    Ok(limits)
}
