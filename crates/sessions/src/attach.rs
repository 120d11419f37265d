//! Attaches a program in the driver, or else in the kernel's receive path.

use bpf::attach::{self, WhyNot};
use bpf::{Hook, Link, Program, ProgramError};
use port::interface::Interface;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// A loaded program and its place.
#[derive(Debug)]
pub struct Attached<T> {
    pub loaded: T,
    /// Dropped first when it ends: nothing arrives from then on.
    pub link: Link,
    pub native: bool,
    /// For a person: how, and why not in a better way.
    pub reason: String,
}

/// Loads and attaches at `interface` of the calling thread's network namespace. `load` is given the interface to redirect answers to,
/// if XDP_TX is not certain to arrive: a veth whose peer has GRO and no program takes what is redirected and nothing else.
pub fn attach<T>(
    interface: &str,
    what: &'static str,
    generic_only: bool,
    mut load: impl FnMut(Option<u32>) -> Result<T, ProgramError>,
    program: impl Fn(&T) -> &Program,
) -> Result<Attached<T>, ProgramError> {
    let ifindex = attach::index_of(interface)?;
    let found = Interface::by_name(interface).ok();
    let veth = found.as_ref().is_some_and(|found| found.kind.as_deref() == Some("veth"));
    let ways: &[bool] = if generic_only { &[false] } else { &[true, false] };
    let mut reasons: Vec<String> = Vec::new();
    for &native in ways {
        let loaded = load((native && veth).then_some(ifindex))?;
        let hook = if native { Hook::XdpNative } else { Hook::XdpGeneric };
        match program(&loaded).attach(ifindex, hook) {
            Ok(link) => {
                let how = if native { "native XDP" } else { "generic XDP, which is slower than native XDP" };
                let reason = match reasons.is_empty() {
                    true => how.to_owned(),
                    false => format!("{} ({how})", reasons.join("; ")),
                };
                return Ok(Attached { loaded, link, native, reason });
            }
            Err(Errno::PERM) => return Err(attach::not_permitted()),
            Err(error) => {
                let mtu = || found.as_ref().map(|found| found.mtu);
                let (WhyNot::Occupied(said) | WhyNot::Refused(said)) =
                    attach::why_not((interface, ifindex), mtu, native, error, program(&loaded));
                if !reasons.contains(&said) {
                    reasons.push(said);
                }
            }
        }
    }
    let (interface, reasons) = (interface.to_owned(), reasons.join("; "));
    Err(ProgramError::NotPossible { what, interface, reasons })
}

/// Has `interface` take frames for any group while what is returned is held: who asks for an address of IPv6 asks a group, which only the host
/// of that address is in.
pub fn groups(interface: &str) -> Result<Option<OwnedFd>, ProgramError> {
    let index = attach::index_of(interface)?;
    match port::socket::all_groups(index) {
        Ok(socket) => Ok(Some(socket)),
        // A link without such a filter.
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Ok(None),
        Err(error) => Err(ProgramError::System { what: "taking frames for all groups", error }),
    }
}
