//! Both ends of a search in a lab of its own: the server at the receiving host, the search at the sending one.

use super::Place;
use crate::impaired::Device;
use crate::kinds::lab;
use ::lab::{Lab, Options};
use ::transport::native::{Server, ServerOptions, serve};
use ::transport::phase::Stop;
use anyhow::{Context as _, Result, anyhow};
use endpoint::native::PORT;
use spec::Dut;
use std::net::{Ipv4Addr, SocketAddr};

/// Does `work` at the sending host of a lab, with a server at the other.
pub fn within<T: Send>(asked: &spec::Lab, work: impl FnOnce(Place) -> Result<T> + Send) -> Result<T> {
    let device = lab::asked_for(asked, Some(Dut::Router))?;
    let router = device.is_some_and(|device| device.kind.routes());
    // A router has addresses, or it is none.
    let lab = Lab::two_hosts(&Options {
        addresses: true,
        gro: asked.impair.is_none(),
        device,
        device_cpus: if router { lab::device_cpus() } else { Vec::new() },
        ..Options::default()
    })?;
    let _program = asked.impair.as_ref().map(|faults| Device::start_in(&lab, faults)).transpose()?;
    let stop = Stop::new();
    let listen = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))];
    let options = ServerOptions { listen, ..ServerOptions::default() };
    let server = lab.receiver.namespace.run_in(|| Server::bind(options, &stop))?;
    let server = server.context("a server in the lab")?;
    let place = Place::Host(SocketAddr::from((lab.receiver.address, PORT)));
    std::thread::scope(|scope| {
        // Also if `work` panics.
        struct Ends(Stop);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        let ends = Ends(stop.clone());
        let receiver = &lab.receiver.namespace;
        let serving = scope.spawn(|| receiver.run_in(|| serve(&server)));
        let done = lab.sender.namespace.run_in(|| work(place))?;
        drop(ends);
        let served = serving.join().map_err(|_| anyhow!("a thread panicked: this is a defect of netdyno"))?;
        served?.context("the server in the lab")?;
        done
    })
}
