//! Keeps this host's stack from seeing the server's segments, which it would answer with resets: loads `programs/bpf/guard.bpf.c`
//! and attaches it to the interface, for as long as a [`Guard`] lives and its process does.

use crate::error::LiveError;
use crate::packet::Ends;
use bpf::{Hook, Link, Program, Quiet};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::io::Errno;
use std::mem::{MaybeUninit, size_of};
use std::net::IpAddr;
use std::os::fd::AsFd;

/// `struct connection` of the program.
const KEY: usize = size_of::<programs::guard::types::connection>();
const _: () = assert!(KEY == 36);

/// A guard in place.
#[derive(Debug)]
pub struct Guard {
    connections: MapHandle,
    _link: Link,
}

impl Guard {
    /// Attaches it to an interface of the calling thread's network namespace, with room for so many connections. It
    /// stops nothing until it is told what.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program.
    pub fn attach(ifindex: u32, room: usize) -> Result<Guard, LiveError> {
        let _quiet = Quiet::start();
        let failed = |error: libbpf_rs::Error| match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => LiveError::Permission { what: "loading a BPF program" },
            _ => LiveError::NoGuard { reason: Quiet::refusal(&format!("{error:#}")) },
        };
        let mut storage = MaybeUninit::uninit();
        let mut open = programs::guard::GuardSkelBuilder::default().open(&mut storage).map_err(failed)?;
        let entries = u32::try_from(room.max(1)).unwrap_or(u32::MAX);
        open.maps.connections.set_max_entries(entries).map_err(failed)?;
        let skeleton = open.load().map_err(failed)?;
        let connections = MapHandle::try_from(&skeleton.maps.connections).map_err(failed)?;
        let kept = Program::keep(skeleton.progs.guard.as_fd());
        let program = kept.map_err(|error| LiveError::NoGuard { reason: format!("keeping it: {error}") })?;
        let link = program.attach(ifindex, Hook::TcIngress).map_err(|error| match error {
            Errno::PERM => LiveError::Permission { what: "attaching a BPF program" },
            Errno::INVAL => {
                LiveError::NoGuard { reason: format!("this is Linux {}", bpf::kernel::release()) }
            }
            error => LiveError::NoGuard { reason: format!("attaching it: {error}") },
        })?;
        Ok(Guard { connections, _link: link })
    }

    /// From now on the server's segments of this connection do not reach the stack.
    ///
    /// # Errors
    /// That there is no more room.
    pub fn add(&self, ends: &Ends) -> Result<(), LiveError> {
        self.connections
            .update(&key(ends), &[0; 8], MapFlags::ANY)
            .map_err(|error| LiveError::NoGuard { reason: format!("telling it a connection: {error:#}") })
    }
}

fn key(ends: &Ends) -> [u8; KEY] {
    let mut key = [0; KEY];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(field) = key.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    };
    for (at, end) in [(0, ends.to), (16, ends.from)] {
        match end.ip() {
            IpAddr::V4(address) => put(at + 12, &address.octets()),
            IpAddr::V6(address) => put(at, &address.octets()),
        }
    }
    put(32, &ends.to.port().to_be_bytes());
    put(34, &ends.from.port().to_be_bytes());
    key
}
