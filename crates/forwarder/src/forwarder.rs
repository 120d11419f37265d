//! The forwarder as its users see it: attach to two interfaces, look at the numbers, finish.

use crate::counters::Counters;
use crate::loader::{self, Loaded};
use crate::options::{Options, Way};
use bpf::attach::{self, WhyNot};
use bpf::{Link, ProgramError, kernel};
use port::interface::Interface;
use port::socket::promiscuous;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

#[cfg(test)]
mod tests;

/// The Linux that brought tcx.
const TCX: (u32, u32) = (6, 6);

/// A bridge at work. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Forwarder {
    loaded: Loaded,
    links: Vec<Link>,
    _promiscuous: Vec<OwnedFd>,
}

impl Forwarder {
    /// Starts to forward between two interfaces of the calling thread's network namespace, in one way or not at all.
    /// Afterwards it can be looked at from any thread.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program, or an interface is not there.
    pub fn attach(names: [&str; 2], way: Way, options: &Options) -> Result<Forwarder, ProgramError> {
        let indices = [attach::index_of(names[0])?, attach::index_of(names[1])?];
        let loaded = loader::load(indices, way, options).map_err(|error| match error {
            ProgramError::Load { .. } if way == Way::Tc && kernel::is_before(TCX) => {
                ProgramError::NotPossible {
                    what: "bridge",
                    interface: names[0].to_owned(),
                    reasons: kernel::needs("tcx", TCX),
                }
            }
            other => other,
        })?;
        let inward = if options.one_way { 1 } else { 2 };
        let (mut links, mut taking_all) = (Vec::new(), Vec::new());
        for (name, index) in names.into_iter().zip(indices).take(inward) {
            links.push(join(&loaded, name, index, way)?);
            taking_all.push(
                promiscuous(index)
                    .map_err(|error| ProgramError::System { what: "promiscuous mode", error })?,
            );
        }
        if options.one_way && options.needs_program && way == Way::XdpNative {
            links.push(join(&loader::load_pass()?, names[1], indices[1], way)?);
        }
        Ok(Forwarder { loaded, links, _promiscuous: taking_all })
    }

    /// Why a program was refused that this kernel should take, if one for older kernels is at work.
    pub fn refused(&self) -> Option<&str> {
        self.loaded.refused.as_deref()
    }

    /// Does a bridge take already what arrives on an interface of the calling thread's network namespace? It would leave
    /// another one nothing, or the other one it.
    ///
    /// # Errors
    /// That the interface is not there, or the kernel does not say.
    pub fn is_at_work(name: &str) -> Result<bool, ProgramError> {
        const OURS: [&str; 4] = ["bridge_xdp", "bridge_xdp_5_9", "bridge_tc", "hold_tc"];
        let programs = bpf::at_ingress(attach::index_of(name)?);
        Ok(programs.iter().any(|program| OURS.contains(&program.as_str())))
    }

    /// Whether frames can still arrive everywhere: false once an interface was removed, or somebody detached a program
    /// by force. What was counted until then stays.
    pub fn is_attached(&self) -> bool {
        self.links.iter().all(Link::is_attached)
    }

    /// The sums up to now: of the first interface to the second, and back.
    pub fn snapshot(&self) -> [Counters; 2] {
        let counters = &self.loaded.counters;
        [0, 1].map(|direction| {
            (direction..counters.len())
                .step_by(2)
                .filter_map(|entry| counters.get(entry))
                .fold(Counters::default(), |sum, share| sum.with(&share))
        })
    }

    /// Stops to forward, leaves the interfaces as they were, and says what was done.
    pub fn finish(mut self) -> [Counters; 2] {
        // Closing the links detaches the programs before it returns.
        self.links.clear();
        self.snapshot()
    }
}

fn join(loaded: &Loaded, name: &str, index: u32, way: Way) -> Result<Link, ProgramError> {
    loaded.program.attach(index, way.hook()).map_err(|error| {
        let reasons = match (way, error) {
            (_, Errno::PERM) => return ProgramError::Permission { what: "attaching the bridge" },
            (Way::Tc, Errno::INVAL) => kernel::needs("tcx", TCX),
            (Way::Tc, other) => other.to_string(),
            _ => {
                let native = way == Way::XdpNative;
                let mtu = || Interface::by_name(name).ok().map(|found| found.mtu);
                let (WhyNot::Occupied(said) | WhyNot::Refused(said)) =
                    attach::why_not((name, index), mtu, native, error, &loaded.program);
                said
            }
        };
        ProgramError::NotPossible { what: "bridge", interface: name.to_owned(), reasons }
    })
}

/// Keeps what arrives on an interface from this host's stack, which would answer or forward what a bridge in user
/// space takes. Packet sockets see it before that. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Hold {
    link: Link,
}

impl Hold {
    /// Starts to hold, on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program, or an interface is not there.
    pub fn attach(name: &str) -> Result<Hold, ProgramError> {
        let index = attach::index_of(name)?;
        let loaded = loader::load_hold()?;
        join(&loaded, name, index, Way::Tc).map(|link| Hold { link })
    }

    /// False once the interface was removed, or somebody detached the program by force.
    pub fn is_attached(&self) -> bool {
        self.link.is_attached()
    }
}
