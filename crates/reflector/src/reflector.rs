//! The reflector as its users see it: attach to an interface, look at the numbers, finish.

use crate::counters::Reflected;
use crate::loader::{self, Loaded};
use crate::options::{Mode, Options};
use crate::stamp::{self, Keeper};
use bpf::attach::{self, WhyNot};
use bpf::{Hook, Link, Program, ProgramError};
use port::interface::Interface;
use port::socket::promiscuous;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// A reflector at work. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Reflector {
    work: Work,
    link: Option<Link>,
    mode: Mode,
    reason: String,
    _promiscuous: Option<OwnedFd>,
}

/// The program that was loaded.
#[derive(Debug)]
enum Work {
    /// Turns all round.
    All(Loaded),
    /// Answers STAMP test packets, for as long as somebody keeps its clock.
    Stamp(Keeper),
}

impl Work {
    fn load(interface: (&str, u32), options: &Options, native: bool) -> Result<Work, ProgramError> {
        let Some(stamp) = &options.stamp else { return Ok(Work::All(loader::load(options)?)) };
        let (name, ifindex) = interface;
        let own = Interface::by_name(name).ok().and_then(|found| found.mac).unwrap_or_default();
        Ok(Work::Stamp(Keeper::start(stamp::load(stamp, own, !native)?, ifindex)?))
    }

    fn program(&self) -> &Program {
        match self {
            Work::All(loaded) => &loaded.program,
            Work::Stamp(keeper) => &keeper.loaded().program,
        }
    }

    fn refused(&self) -> Option<&str> {
        match self {
            Work::All(loaded) => loaded.refused.as_deref(),
            Work::Stamp(keeper) => keeper.loaded().refused.as_deref(),
        }
    }

    fn counted(&self) -> Reflected {
        match self {
            Work::All(Loaded { counters, .. }) => (0..counters.len())
                .filter_map(|cpu| counters.get(cpu))
                .fold(Reflected::default(), |sum, share| sum.with(&share)),
            Work::Stamp(keeper) => stamp::counted(&keeper.loaded().counters),
        }
    }
}

impl Reflector {
    /// Starts to reflect on `interface` of the calling thread's network namespace. Afterwards it can be looked at from
    /// any thread.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program, or the interface is not there.
    pub fn attach(interface: &str, options: &Options) -> Result<Reflector, ProgramError> {
        let ifindex = attach::index_of(interface)?;
        let ways: &[bool] = match options.mode {
            Mode::Auto => &[true, false],
            Mode::XdpNative => &[true],
            Mode::XdpGeneric => &[false],
        };
        let mut reasons: Vec<String> = Vec::new();
        for native in ways {
            let work = Work::load((interface, ifindex), options, *native)?;
            let hook = if *native { Hook::XdpNative } else { Hook::XdpGeneric };
            match work.program().attach(ifindex, hook) {
                Ok(link) => return Ok(Reflector::working(work, link, ifindex, *native, &reasons, options)),
                Err(Errno::PERM) => {
                    return Err(attach::not_permitted());
                }
                Err(error) => {
                    let mtu = || Interface::by_name(interface).ok().map(|found| found.mtu);
                    let (WhyNot::Occupied(said) | WhyNot::Refused(said)) =
                        attach::why_not((interface, ifindex), mtu, *native, error, work.program());
                    if !reasons.contains(&said) {
                        reasons.push(said);
                    }
                }
            }
        }
        let (interface, reasons) = (interface.to_owned(), reasons.join("; "));
        Err(ProgramError::NotPossible { what: "reflect", interface, reasons })
    }

    fn working(
        work: Work,
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
        if let Some(refused) = work.refused() {
            reason += &format!("; {refused}");
        }
        let mut taking_all = None;
        // Test packets are addressed to this interface.
        if !options.own_address_only && options.stamp.is_none() {
            match promiscuous(ifindex) {
                Ok(socket) => taking_all = Some(socket),
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
        Reflector { work, link: Some(link), mode, reason, _promiscuous: taking_all }
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
        self.work.counted()
    }

    /// Stops to reflect, leaves the interface as it was, and says what was done.
    pub fn finish(mut self) -> Reflected {
        // Closing the link detaches the program before it returns.
        drop(self.link.take());
        self.snapshot()
    }
}
