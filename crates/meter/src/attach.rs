//! What the meter and the reflector do alike: find the interface, and say why a program cannot be attached to it.

use crate::error::MeterError;
use bpf::Program;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// Why a program is not attached, for a person.
#[derive(Debug)]
pub enum WhyNot {
    /// Another one is there, and is named.
    Occupied(String),
    Refused(String),
}

/// Explains `error`, with which the kernel refused to attach `program` in native or else generic mode.
pub fn why_not(interface: &str, ifindex: u32, native: bool, error: Errno, program: &Program) -> WhyNot {
    if let Some((id, name)) = program.occupant(ifindex) {
        return WhyNot::Occupied(format!(
            "XDP not possible on {interface}: program {id} ({name}) is attached already and is left alone (`bpftool net` \
             shows it)"
        ));
    }
    let cause = match error {
        Errno::OPNOTSUPP if native => "the driver has no XDP support (EOPNOTSUPP)".to_owned(),
        Errno::OPNOTSUPP => "the kernel does not support it (EOPNOTSUPP)".to_owned(),
        Errno::INVAL | Errno::RANGE => format!(
            "the driver refused it ({error}); usual causes are an MTU too large for XDP, LRO switched on, or a \
             kernel before 5.9"
        ),
        Errno::NOSPC | Errno::BUSY => format!("the driver has not enough free queues ({error})"),
        other => other.to_string(),
    };
    let mode = if native { "native" } else { "generic" };
    WhyNot::Refused(format!("{mode} XDP not possible on {interface}: {cause}"))
}

/// By a socket, not by /sys: that shows the namespace it was mounted in, not the calling thread's.
pub fn index_of(interface: &str) -> Result<u32, MeterError> {
    let system = |error: Errno| MeterError::System { what: "opening a socket", error: error.into() };
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(system)?;
    netdevice::name_to_index(any, interface).map_err(|_| MeterError::NoSuchInterface(interface.to_owned()))
}
