//! Sends each frame that arrives on one of two interfaces out of the other one, in the kernel: a bridge of two ports.
//!
//! The work is done by `bpf/bridge.bpf.c`, which says where it hooks in and what it does to frames (nothing, but for
//! checksums that a veth left unfinished). As with the meter, the programs are attached for as long as a [`Forwarder`]
//! lives, and however the process dies. [`Hold`] is for bridging in user space: it keeps what arrives from this host's
//! own stack while packet sockets see it. `netdyno bridge` calls both.

use crate::attach;
use crate::error::MeterError;
use crate::loader::{self, LoadedBridge};
use crate::ring;
use bpf::{Hook, Link, kernel};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

#[cfg(test)]
mod tests;

/// Where frames are taken from their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In the driver.
    XdpNative,
    /// In the kernel's receive path, by XDP.
    XdpGeneric,
    /// In the kernel's receive path, by traffic control (tcx, Linux 6.6): knows super-frames and VLAN tags taken out.
    Tc,
}

impl Way {
    /// Its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Way::XdpNative => "xdp",
            Way::XdpGeneric => "xdp-generic",
            Way::Tc => "tc",
        }
    }

    pub(crate) fn hook(self) -> Hook {
        match self {
            Way::XdpNative => Hook::XdpNative,
            Way::XdpGeneric => Hook::XdpGeneric,
            Way::Tc => Hook::TcIngress,
        }
    }
}

/// The Linux that brought tcx.
const TCX: (u32, u32) = (6, 6);

/// How to forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Only from the first interface to the second.
    pub one_way: bool,
    /// Forward this many frames, both directions together, and drop what comes after.
    pub limit: Option<u64>,
    /// The largest packets that the second, the first interface sends (what arrives on the first leaves by the second).
    pub mtu: [u32; 2],
    /// Frames that arrive on the first, on the second interface may have checksums that were left to hardware.
    pub complete: [bool; 2],
    /// The driver of the second interface sends for XDP only while it has a program: give it one where nothing is taken from
    /// it (`one_way`).
    pub needs_program: bool,
}

/// What went in one direction up to now. Bytes are layer 2 without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// All that arrived: the sum of `forwarded`, `over_limit`, `too_long` and `failed`.
    pub frames: u64,
    pub bytes: u64,
    /// Handed to the other interface.
    pub forwarded: u64,
    pub forwarded_bytes: u64,
    /// Came after the last frame that was asked for.
    pub over_limit: u64,
    /// Longer than the other interface allows.
    pub too_long: u64,
    /// The other interface was not there.
    pub failed: u64,
    /// The forwarded, each super-frame counted once: what the other interface may count.
    pub buffers: u64,
    /// Bytes of those: the headers of a super-frame are in them once.
    pub buffer_bytes: u64,
    /// Among the forwarded: left with a checksum that had been left to hardware.
    pub completed: u64,
    /// When the first and the last frame arrived, to within a clock tick (1 to 10 ms).
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
}

/// One CPU's share of one direction: `bpf/include/bridge.h`, field by field.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    pub frames: u64,
    pub bytes: u64,
    pub forwarded: u64,
    pub forwarded_bytes: u64,
    pub over_limit: u64,
    pub too_long: u64,
    pub failed: u64,
    pub buffers: u64,
    pub completed: u64,
    /// `CLOCK_MONOTONIC`; 0: nothing yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's own.
    pub tick: u64,
    pub buffer_bytes: u64,
}

/// A bridge at work. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Forwarder {
    loaded: LoadedBridge,
    links: Vec<Link>,
    _promiscuous: Vec<OwnedFd>,
}

impl Forwarder {
    /// Starts to forward between two interfaces of the calling thread's network namespace, in one way or not at all.
    /// Afterwards it can be looked at from any thread.
    pub fn attach(names: [&str; 2], way: Way, options: &Options) -> Result<Forwarder, MeterError> {
        let indices = [attach::index_of(names[0])?, attach::index_of(names[1])?];
        let loaded = loader::load_bridge(indices, way, options).map_err(|error| match error {
            MeterError::Load { .. } if way == Way::Tc && kernel::is_before(TCX) => MeterError::NotPossible {
                what: "bridge",
                interface: names[0].to_owned(),
                reasons: kernel::needs("tcx", TCX),
            },
            other => other,
        })?;
        let inward = if options.one_way { 1 } else { 2 };
        let (mut links, mut promiscuous) = (Vec::new(), Vec::new());
        for (name, index) in names.into_iter().zip(indices).take(inward) {
            links.push(join(&loaded, name, index, way)?);
            promiscuous.push(
                ring::promiscuous(index)
                    .map_err(|error| MeterError::System { what: "promiscuous mode", error })?,
            );
        }
        if options.one_way && options.needs_program && way == Way::XdpNative {
            links.push(join(&loader::load_pass()?, names[1], indices[1], way)?);
        }
        Ok(Forwarder { loaded, links, _promiscuous: promiscuous })
    }

    /// Why a program was refused that this kernel should take, if one for older kernels is at work.
    pub fn refused(&self) -> Option<&str> {
        self.loaded.refused.as_deref()
    }

    /// Does a bridge take already what arrives on an interface of the calling thread's network namespace? It would leave
    /// another one nothing, or the other one it.
    pub fn is_at_work(name: &str) -> Result<bool, MeterError> {
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
    pub fn snapshot(&self) -> [Passed; 2] {
        let counters = &self.loaded.counters;
        [0, 1].map(|direction| {
            (direction..counters.len())
                .step_by(2)
                .filter_map(|entry| counters.get(entry))
                .fold(Passed::default(), |sum, share| sum.with(&share))
        })
    }

    /// Stops to forward, leaves the interfaces as they were, and says what was done.
    pub fn finish(mut self) -> [Passed; 2] {
        // Closing the links detaches the programs before it returns.
        self.links.clear();
        self.snapshot()
    }
}

fn join(loaded: &LoadedBridge, name: &str, index: u32, way: Way) -> Result<Link, MeterError> {
    loaded.program.attach(index, way.hook()).map_err(|error| {
        let reasons = match (way, error) {
            (_, Errno::PERM) => return MeterError::Permission { what: "attaching the bridge" },
            (Way::Tc, Errno::INVAL) => kernel::needs("tcx", TCX),
            (Way::Tc, other) => other.to_string(),
            _ => {
                let native = way == Way::XdpNative;
                let (attach::WhyNot::Occupied(said) | attach::WhyNot::Refused(said)) =
                    attach::why_not(name, index, native, error, &loaded.program);
                said
            }
        };
        MeterError::NotPossible { what: "bridge", interface: name.to_owned(), reasons }
    })
}

impl Passed {
    /// The sum with one CPU's share.
    fn with(self, share: &Passage) -> Passed {
        let time = |ns: u64| (ns > 0).then_some(ns);
        Passed {
            frames: self.frames + share.frames,
            bytes: self.bytes + share.bytes,
            forwarded: self.forwarded + share.forwarded,
            forwarded_bytes: self.forwarded_bytes + share.forwarded_bytes,
            over_limit: self.over_limit + share.over_limit,
            too_long: self.too_long + share.too_long,
            failed: self.failed + share.failed,
            buffers: self.buffers + share.buffers,
            buffer_bytes: self.buffer_bytes + share.buffer_bytes,
            completed: self.completed + share.completed,
            first_ns: self.first_ns.into_iter().chain(time(share.first_ns)).min(),
            last_ns: self.last_ns.max(time(share.last_ns)),
        }
    }

    /// From the first to the last arrival; 0 with fewer than two frames.
    pub fn duration_ns(&self) -> u64 {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

/// Keeps what arrives on an interface from this host's stack, which would answer or forward what a bridge in user
/// space takes. Packet sockets see it before that. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Hold {
    link: Link,
}

impl Hold {
    /// Starts to hold, on an interface of the calling thread's network namespace.
    pub fn attach(name: &str) -> Result<Hold, MeterError> {
        let index = attach::index_of(name)?;
        let loaded = loader::load_hold()?;
        join(&loaded, name, index, Way::Tc).map(|link| Hold { link })
    }

    /// False once the interface was removed, or somebody detached the program by force.
    pub fn is_attached(&self) -> bool {
        self.link.is_attached()
    }
}
