//! Whether what went wrong is that this process lacks rights.
//!
//! Each crate words its own refusals, with the capabilities that mend them, and most of these errors have no cause that says EPERM. Clients
//! tell the two apart: who may not do it asks somebody, and who did it wrong asks nobody.

use bpf::ProgramError;
use bridge::RelayError;
use impair::DeviceError;
use lab::LabError;
use live::LiveError;
use meter::MeterError;
use port::afxdp::AfxdpError;
use port::resolve::ResolveError;
use port::rx::RxError;
use port::tx::TxError;
use rustix::io::Errno;
use std::error::Error;
use std::io;
use xdp::XdpError;

/// Is it, or one of its causes?
pub fn is_denied(error: &anyhow::Error) -> bool {
    error.chain().any(denies)
}

fn denies(cause: &(dyn Error + 'static)) -> bool {
    by_the_system(cause) || by_a_crate(cause)
}

/// What a call returned.
fn by_the_system(cause: &(dyn Error + 'static)) -> bool {
    let errno = |errno: &Errno| matches!(*errno, Errno::PERM | Errno::ACCESS);
    cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        || cause.downcast_ref::<Errno>().is_some_and(errno)
}

fn by_a_crate(cause: &(dyn Error + 'static)) -> bool {
    let is_xdp = |error: &XdpError| match error {
        XdpError::Permission => true,
        XdpError::NoSpare { error } | XdpError::System { error, .. } => denies(error),
        _ => false,
    };
    let is_program = |error: &ProgramError| match error {
        ProgramError::Permission { .. } => true,
        ProgramError::System { error, .. } => denies(error),
        _ => false,
    };
    cause.downcast_ref().is_some_and(is_xdp)
        || cause.downcast_ref().is_some_and(is_program)
        || matches!(cause.downcast_ref(), Some(LabError::NotPermitted))
        || matches!(cause.downcast_ref(), Some(LiveError::Permission { .. }))
        || matches!(cause.downcast_ref(), Some(AfxdpError::Permission(_) | AfxdpError::ReceivePermission(_)))
        || matches!(cause.downcast_ref(), Some(ResolveError::Permission { .. }))
        || matches!(cause.downcast_ref(), Some(RxError::Permission(_)))
        || matches!(cause.downcast_ref(), Some(TxError::Permission(_)))
        || inside(cause).is_some_and(denies)
}

/// What stands as itself in the place of an error that it caused, and is none of that one's causes.
fn inside<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(MeterError::Program(error)) = cause.downcast_ref() {
        return Some(error);
    }
    match cause.downcast_ref() {
        Some(RelayError::Receive(error)) => return Some(error),
        Some(RelayError::Send(error)) => return Some(error),
        None => {}
    }
    match cause.downcast_ref()? {
        DeviceError::Receive(error) => Some(error),
        DeviceError::Send(error) => Some(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};

    #[test]
    fn a_lack_of_rights_is_known_however_it_is_said_and_whatever_stands_around_it() {
        let denied: [anyhow::Error; 14] = [
            RelayError::from(RxError::Permission("eth1".into())).into(),
            DeviceError::from(TxError::Permission("eth1".into())).into(),
            io::Error::from(Errno::ACCESS).into(),
            Errno::PERM.into(),
            ProgramError::Permission { what: "loading an XDP program" }.into(),
            ProgramError::System { what: "opening", error: io::Error::from(io::ErrorKind::PermissionDenied) }
                .into(),
            MeterError::from(ProgramError::Permission { what: "opening a packet socket" }).into(),
            XdpError::Permission.into(),
            XdpError::NoSpare { error: Errno::PERM }.into(),
            LabError::NotPermitted.into(),
            AfxdpError::Permission("eth1".into()).into(),
            RxError::Permission("eth1".into()).into(),
            TxError::Permission("eth1".into()).into(),
            LiveError::Permission { what: "attaching a BPF program" }.into(),
        ];
        for error in denied {
            let said = crate::in_full(&error);
            assert!(is_denied(&Err::<(), _>(error).context("measuring on eth1").unwrap_err()), "{said}");
        }
        let other: [anyhow::Error; 5] = [
            anyhow!("sending on eth1 needs CAP_NET_RAW: run with sudo"),
            Errno::NODEV.into(),
            io::Error::from(io::ErrorKind::NotFound).into(),
            XdpError::NoLiveFrames.into(),
            TxError::Gone("eth1".into()).into(),
        ];
        for error in other {
            assert!(!is_denied(&error), "{}", crate::in_full(&error));
        }
    }
}
