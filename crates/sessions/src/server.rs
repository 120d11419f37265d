//! The server as its users see it: attach to an interface, look at the counts, finish.

use crate::attach::{Attached, attach, groups};
use crate::layout::Served;
use crate::loader::{self, LoadedServer};
use bpf::ProgramError;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Whom it answers, and what.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// What clients connect to.
    pub listen: SocketAddr,
    /// The interface's Ethernet address.
    pub own: [u8; 6],
    /// The address is none of the host's own: ARP requests or neighbour solicitations for it are answered.
    pub answers_for_address: bool,
    /// The control word of the VLAN tag of all frames, if they have one. Frames of other VLANs are left to the host.
    pub tag: Option<u16>,
    /// Answers datagrams of UDP instead of TCP connections: the answer is one, see [`crate::datagram`].
    pub udp: bool,
    /// The whole answer, up to 65,535 bytes; of UDP 1,460.
    pub answer: Vec<u8>,
    /// The longest segment, up to 1,460 bytes of payload.
    pub mss: u16,
    /// The answer to so many requests closes a connection.
    pub requests: u32,
    /// Of its sequence numbers and cookies: who does not know it cannot guess them.
    pub key: [u32; 4],
    /// Of UDP: sends relays.
    pub relays: bool,
    /// Of UDP: who may be answered with more bytes than were sent.
    pub longer: Longer,
    /// Attach in the kernel's receive path although the driver can do better.
    pub generic: bool,
}

/// Whom a server of UDP may answer with more bytes than were sent to it (`enum longer_answers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Longer {
    /// Nobody.
    #[default]
    No = 0,
    /// Who has a private address.
    Private = 1,
    /// Whoever asks.
    All = 2,
}

/// A server at work. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Server {
    attached: Attached<LoadedServer>,
    /// Keeps an interface taking solicitations for the address, which go to a group.
    _groups: Option<OwnedFd>,
}

impl Server {
    /// Starts to answer on `interface` of the calling thread's network namespace.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program, or the interface is not there.
    pub fn attach(interface: &str, options: &ServerOptions) -> Result<Server, ProgramError> {
        let load = |redirect_to| loader::server(options, redirect_to);
        let attached =
            attach(interface, "serve sessions", options.generic, load, |loaded: &LoadedServer| {
                &loaded.program
            })?;
        let asked = options.answers_for_address && options.listen.is_ipv6();
        let groups = if asked { groups(interface)? } else { None };
        Ok(Server { attached, _groups: groups })
    }

    /// Whether it is in the driver.
    pub fn is_native(&self) -> bool {
        self.attached.native
    }

    /// How it is attached and why not in a better way, for a person.
    pub fn reason(&self) -> &str {
        &self.attached.reason
    }

    /// False once the interface was removed, or somebody detached the program by force.
    pub fn is_attached(&self) -> bool {
        self.attached.link.is_attached()
    }

    /// The loaded program, for test runs.
    #[cfg(test)]
    pub(crate) fn program(&self) -> &bpf::Program {
        &self.attached.loaded.program
    }

    /// The sums up to now.
    pub fn snapshot(&self) -> Served {
        Served::over(&self.attached.loaded.counts)
    }

    /// Ends, leaves the interface as it was, and says what was done.
    pub fn finish(self) -> Served {
        let Attached { loaded, link, .. } = self.attached;
        drop(link);
        Served::over(&loaded.counts)
    }
}
