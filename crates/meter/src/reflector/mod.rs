//! Sends each frame that arrives back where it came from: the far end of a round trip.
//!
//! The work is done by `bpf/reflect.bpf.c`, which says what is turned round and what is not. As with the meter, the
//! program is attached for as long as a [`Reflector`] lives, and however the process dies.

use crate::attach;
use crate::error::MeterError;
use crate::loader::{self, LoadedReflector};
use crate::meter::Mode;
use crate::ring;
use bpf::{Hook, Link};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

/// What to reflect, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    pub mode: ReflectMode,
    /// Only frames with a signature at their end; others pass to the host.
    pub only_signed: bool,
    /// Let only the Ethernet addresses change places.
    pub mac_only: bool,
    /// Leave frames for other Ethernet addresses than the interface's own to its filter. Test frames are seldom
    /// addressed to this host, so the default is to take all.
    pub own_address_only: bool,
}

/// Where frames are turned round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReflectMode {
    /// The best that is possible, in the order of the others.
    #[default]
    Auto,
    /// In the driver.
    XdpNative,
    /// In the kernel's receive path: works with every driver, about half as fast.
    XdpGeneric,
}

/// What was reflected up to now. Bytes are layer 2 without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reflected {
    /// All that arrived: the sum of `reflected`, `group`, `resolution`, `without_signature` and `malformed`.
    pub frames: u64,
    pub bytes: u64,
    /// Handed to the driver to be sent back.
    pub reflected: u64,
    pub reflected_bytes: u64,
    /// Echo requests among them, which became replies.
    pub echoes: u64,
    /// To a broadcast or multicast address: passed to the host.
    pub group: u64,
    /// ARP and IPv6 neighbour discovery: passed to the host.
    pub resolution: u64,
    /// Without the signature that was asked for: passed to the host.
    pub without_signature: u64,
    /// Cut short, or with headers that contradict themselves: dropped.
    pub malformed: u64,
    /// When the first and the last frame arrived, to within a clock tick (1 to 10 ms).
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
}

/// One CPU's share: `bpf/include/reflector.h`, field by field.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub frames: u64,
    pub bytes: u64,
    pub reflected: u64,
    pub reflected_bytes: u64,
    pub echoes: u64,
    pub group: u64,
    pub resolution: u64,
    pub unsigned_frames: u64,
    pub malformed: u64,
    /// `CLOCK_MONOTONIC`; 0: nothing yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's own.
    pub tick: u64,
}

/// A reflector at work. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Reflector {
    loaded: LoadedReflector,
    link: Option<Link>,
    mode: Mode,
    reason: String,
    _promiscuous: Option<OwnedFd>,
}

impl Reflector {
    /// Starts to reflect on `interface` of the calling thread's network namespace. Afterwards it can be looked at from
    /// any thread.
    pub fn attach(interface: &str, options: &Options) -> Result<Reflector, MeterError> {
        let ifindex = attach::index_of(interface)?;
        let ways: &[bool] = match options.mode {
            ReflectMode::Auto => &[true, false],
            ReflectMode::XdpNative => &[true],
            ReflectMode::XdpGeneric => &[false],
        };
        let loaded = loader::load_reflector(options)?;
        let mut reasons: Vec<String> = Vec::new();
        for native in ways {
            let hook = if *native { Hook::XdpNative } else { Hook::XdpGeneric };
            match loaded.program.attach(ifindex, hook) {
                Ok(link) => return Ok(Reflector::working(loaded, link, ifindex, *native, &reasons, options)),
                Err(Errno::PERM) => {
                    return Err(MeterError::Permission { what: "attaching an XDP program" });
                }
                Err(error) => {
                    let (attach::WhyNot::Occupied(said) | attach::WhyNot::Refused(said)) =
                        attach::why_not(interface, ifindex, *native, error, &loaded.program);
                    if !reasons.contains(&said) {
                        reasons.push(said);
                    }
                }
            }
        }
        let (interface, reasons) = (interface.to_owned(), reasons.join("; "));
        Err(MeterError::NotPossible { what: "reflect", interface, reasons })
    }

    fn working(
        loaded: LoadedReflector,
        link: Link,
        ifindex: u32,
        native: bool,
        reasons: &[String],
        options: &Options,
    ) -> Reflector {
        let (mode, how) = if native {
            (Mode::XdpNative, "native XDP")
        } else {
            (Mode::XdpGeneric, "generic XDP: expect about half the rate of native XDP")
        };
        let mut reason = how.to_owned();
        if let Some(refused) = &loaded.refused {
            reason += &format!("; {refused}");
        }
        let mut promiscuous = None;
        if !options.own_address_only {
            match ring::promiscuous(ifindex) {
                Ok(socket) => promiscuous = Some(socket),
                Err(error) => {
                    reason += &format!(
                        "; promiscuous mode is not possible ({error}): only frames to its own addresses"
                    );
                }
            }
        }
        if !reasons.is_empty() {
            reason = format!("{} ({reason})", reasons.join("; "));
        }
        Reflector { loaded, link: Some(link), mode, reason, _promiscuous: promiscuous }
    }

    /// [`Mode::XdpNative`] or [`Mode::XdpGeneric`].
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How it reflects and why not in a better way, for a person.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether frames can still arrive: false once the interface was removed, or somebody detached the program by
    /// force. What was counted until then stays.
    pub fn is_attached(&self) -> bool {
        self.link.as_ref().is_some_and(Link::is_attached)
    }

    /// The sums up to now.
    pub fn snapshot(&self) -> Reflected {
        let counters = &self.loaded.counters;
        (0..counters.len())
            .filter_map(|cpu| counters.get(cpu))
            .fold(Reflected::default(), |sum, share| sum.with(&share))
    }

    /// Stops to reflect, leaves the interface as it was, and says what was done.
    pub fn finish(mut self) -> Reflected {
        // Closing the link detaches the program before it returns.
        drop(self.link.take());
        self.snapshot()
    }
}

impl Reflected {
    /// The sum with one CPU's share.
    fn with(self, share: &Counters) -> Reflected {
        let time = |ns: u64| (ns > 0).then_some(ns);
        Reflected {
            frames: self.frames + share.frames,
            bytes: self.bytes + share.bytes,
            reflected: self.reflected + share.reflected,
            reflected_bytes: self.reflected_bytes + share.reflected_bytes,
            echoes: self.echoes + share.echoes,
            group: self.group + share.group,
            resolution: self.resolution + share.resolution,
            without_signature: self.without_signature + share.unsigned_frames,
            malformed: self.malformed + share.malformed,
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
