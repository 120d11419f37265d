//! What those who attach an XDP program do alike: find the interface, and say why it cannot be attached there.

use crate::error::ProgramError;
use crate::kernel;
use crate::program::Program;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// Every driver with XDP takes programs at this MTU.
const ORDINARY_MTU: u32 = 1500;

/// Why a program is not attached, for a person.
#[derive(Debug)]
pub enum WhyNot {
    /// Another one is there, and is named.
    Occupied(String),
    /// By the kernel or the driver, for this reason.
    Refused(String),
}

/// The error of who may not attach.
pub fn not_permitted() -> ProgramError {
    ProgramError::Permission { what: "attaching an XDP program" }
}

/// Explains `error`, with which the kernel refused to attach `program` to the interface of this name and index, in native or
/// else generic mode. `mtu` is its largest packet, asked for where it may be the cause.
pub fn why_not(
    (interface, ifindex): (&str, u32),
    mtu: impl FnOnce() -> Option<u32>,
    native: bool,
    error: Errno,
    program: &Program,
) -> WhyNot {
    if let Some((id, name)) = program.occupant(ifindex) {
        return WhyNot::Occupied(format!(
            "XDP not possible on {interface}: program {id} ({name}) is attached already and is left alone (`bpftool net` \
             shows it)"
        ));
    }
    let cause = match error {
        Errno::OPNOTSUPP if native => unsupported(mtu()),
        Errno::OPNOTSUPP => "the kernel does not support it (EOPNOTSUPP)".to_owned(),
        Errno::INVAL if kernel::is_before(kernel::OLDEST) => {
            kernel::needs("a program that goes with its process", kernel::OLDEST)
        }
        Errno::INVAL | Errno::RANGE => format!(
            "the driver refused it ({error}); usual causes are an MTU too large for XDP{} or LRO switched on",
            mtu().map_or_else(String::new, |mtu| format!(" (it is {mtu})"))
        ),
        Errno::NOSPC | Errno::BUSY => format!("the driver has not enough free queues ({error})"),
        other => other.to_string(),
    };
    let mode = if native { "native" } else { "generic" };
    WhyNot::Refused(format!("{mode} XDP not possible on {interface}: {cause}"))
}

/// A driver without native XDP and one that has none at this MTU (vmxnet3) say the same.
fn unsupported(mtu: Option<u32>) -> String {
    match mtu {
        Some(mtu) if mtu > ORDINARY_MTU => {
            format!("the driver has no XDP support (EOPNOTSUPP), or none at an MTU of {mtu}")
        }
        _ => "the driver has no XDP support (EOPNOTSUPP)".to_owned(),
    }
}

/// By a socket, not by /sys: that shows the namespace it was mounted in, not the calling thread's.
///
/// # Errors
/// That no interface of the calling thread's network namespace has this name.
pub fn index_of(interface: &str) -> Result<u32, ProgramError> {
    let system = |error: Errno| ProgramError::System { what: "opening a socket", error: error.into() };
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(system)?;
    netdevice::name_to_index(any, interface).map_err(|_| ProgramError::NoSuchInterface(interface.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_refuses_at_a_great_mtu_is_not_called_a_lack_of_xdp() {
        assert_eq!(unsupported(Some(1500)), "the driver has no XDP support (EOPNOTSUPP)");
        assert_eq!(unsupported(None), unsupported(Some(1500)));
        assert!(unsupported(Some(9000)).contains("or none at an MTU of 9000"));
    }
}
