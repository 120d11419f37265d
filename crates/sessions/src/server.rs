//! The server as its users see it: attach to an interface, look at the counts, finish.

use crate::attach::{Attached, attach};
use crate::layout::Served;
use crate::loader::{self, LoadedServer};
use bpf::ProgramError;
use std::net::SocketAddrV4;

/// Whom it answers, and what.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// What clients connect to.
    pub listen: SocketAddrV4,
    /// The interface's Ethernet address.
    pub own: [u8; 6],
    /// The address is none of the host's own: ARP requests for it are answered.
    pub answers_arp: bool,
    /// The whole answer, up to 65,535 bytes.
    pub answer: Vec<u8>,
    /// The longest segment, up to 1,460 bytes of payload.
    pub mss: u16,
    /// The answer to so many requests closes a connection.
    pub requests: u32,
    /// Of its sequence numbers: who does not know it cannot guess them.
    pub key: [u32; 2],
    /// Attach in the kernel's receive path although the driver can do better.
    pub generic: bool,
}

/// A server at work. Nothing of it outlives it or its process.
#[derive(Debug)]
pub struct Server(Attached<LoadedServer>);

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
        Ok(Server(attached))
    }

    /// Whether it is in the driver.
    pub fn is_native(&self) -> bool {
        self.0.native
    }

    /// How it is attached and why not in a better way, for a person.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// False once the interface was removed, or somebody detached the program by force.
    pub fn is_attached(&self) -> bool {
        self.0.link.is_attached()
    }

    /// The loaded program, for test runs.
    #[cfg(test)]
    pub(crate) fn program(&self) -> &bpf::Program {
        &self.0.loaded.program
    }

    /// The sums up to now.
    pub fn snapshot(&self) -> Served {
        Served::over(&self.0.loaded.counts)
    }

    /// Ends, leaves the interface as it was, and says what was done.
    pub fn finish(self) -> Served {
        let Attached { loaded, link, .. } = self.0;
        drop(link);
        Served::over(&loaded.counts)
    }
}
