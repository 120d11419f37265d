//! Both ends of a search in a lab of its own: `netdyno sessions serve` at the receiving host, the clients at the sending one, and between
//! them the device that is asked for.

use super::super::server;
use crate::device_nat::DeviceNat;
use crate::kinds::lab;
use crate::place::Place;
use ::lab::{Host, Lab, Located, Options};
use anyhow::{Context as _, Result, bail};
use report::Report;
use sessions::Server;
use spec::{Dut, SessionClose, Sessions, SessionsServer};

/// A connection may ask so often after what a trial asks of it: once more, when it is used again.
const MORE_REQUESTS: u32 = 2;
/// The most that a server takes.
const MOST_REQUESTS: u32 = 1_000_000;
/// Clients unless said: beside the sending host's address, in the network that is behind it. Some 12 million tuples.
const CLIENTS: &str = "198.18.1.0/24";

/// Does `work` from the sending host of a lab, whose receiving host serves.
pub(super) fn within(
    asked: &spec::Lab,
    args: Sessions,
    work: impl FnOnce(Place, &Sessions, Option<DeviceNat>) -> Result<Report>,
) -> Result<Report> {
    if asked.impair.is_some() || asked.ports.is_some() {
        bail!("lab: between two ends stands no device with faults, and none of several ports");
    }
    let device = lab::asked_for(asked, Some(Dut::Router))?;
    let lab = Lab::two_hosts(&Options {
        addresses: true,
        // A device of Linux takes what XDP sends only so.
        gro: device.is_some(),
        device,
        device_cpus: if device.is_some() { lab::device_cpus() } else { Vec::new() },
        ..Options::default()
    })?;
    let receiver = at(&lab.receiver)?;
    let serving = server::options(&served(&args), &receiver)?;
    let attached = receiver.run_in(|| Server::attach(lab.receiver.interface, &serving))?;
    let attached = attached.context("serving in the lab")?;
    let args = Sessions {
        on: lab.sender.interface.to_owned(),
        to: serving.listen.to_string().parse().map_err(anyhow::Error::msg)?,
        clients: args.clients.or_else(|| Some(CLIENTS.to_owned())),
        ..args
    };
    let nat = DeviceNat::of(&lab)?;
    let report = work(at(&lab.sender)?, &args, nat);
    let done = attached.finish();
    let mut report = report?;
    report.result.sessions_served = Some(server::served(serving.listen, &done));
    Ok(report)
}

/// The server's end: it closes where the connections leave that to it, and else takes all that they ask.
fn served(args: &Sessions) -> SessionsServer {
    let asked = args.requests.unwrap_or(1);
    let requests = match args.closes() {
        SessionClose::Server => asked,
        _ => asked.saturating_add(MORE_REQUESTS).min(MOST_REQUESTS),
    };
    let requests = (!args.is_udp()).then_some(requests);
    SessionsServer {
        requests,
        application: args.application,
        relay: args.is_udp(),
        ..SessionsServer::default()
    }
}

fn at(host: &Host) -> Result<Place> {
    let namespace = Some(host.namespace.try_clone()?);
    Place::at(host.interface.to_owned(), Located { namespace, name: host.interface.to_owned() })
}
