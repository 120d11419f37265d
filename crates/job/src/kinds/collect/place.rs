//! Where messages come to: datagrams or connections, at an address and port.

use super::connections;
use super::receive::{self, Running, Sharing};
use super::writer::Queue;
use crate::kinds::shared;
use crate::transport::{Transport, transport};
use anyhow::{Context, Result};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A place that messages come to.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    transport: Transport,
    at: SocketAddr,
}

impl Place {
    pub fn find(name: &str) -> Result<Place> {
        let (transport, place) = transport(name);
        let found = place.to_socket_addrs().with_context(|| {
            format!("`.listen` {name}: give ADDR:PORT, such as 0.0.0.0:2055 or [::]:4739, or tcp://ADDR:PORT")
        })?;
        let at = found.into_iter().next().with_context(|| format!("`.listen` {name} has no address"))?;
        Ok(Place { transport, at })
    }
}

/// Where messages come in.
pub enum Socket {
    Datagrams(UdpSocket),
    Connections(connections::Place),
}

impl Place {
    /// Opens so many sockets at a place of several. Another socket there, this user's or another's, refuses them: two collectors at a
    /// port would each get a part and not know it. With `shares` they share it with others that do.
    pub fn open(self, all: &[Place], count: u32, shares: bool) -> Result<Vec<Socket>> {
        let Place { transport, at } = self;
        // Of IPv4 and IPv6 at the same port each has its own.
        let other = |place: &Place| {
            place.transport == transport && place.at.port() == at.port() && place.at.is_ipv4()
        };
        let only_v6 = at.is_ipv6() && all.iter().any(other);
        let several = count > 1;
        let mut sockets = Vec::new();
        for number in 0..count {
            let sharing = Sharing { before: shares || number > 0, after: shares || several, only_v6 };
            sockets.push(
                match transport {
                    Transport::Udp => receive::socket(at, sharing).map(Socket::Datagrams),
                    Transport::Tcp => {
                        shared::allow_many();
                        connections::Place::open(at, sharing).map(Socket::Connections)
                    }
                }
                .map_err(|error| in_use(error, shares))?,
            );
        }
        Ok(sockets)
    }
}

/// Says what to do where another has the port.
fn in_use(error: anyhow::Error, shares: bool) -> anyhow::Error {
    let io = error.downcast_ref::<rustix::io::Errno>().copied();
    if io != Some(rustix::io::Errno::ADDRINUSE) {
        return error;
    }
    let remedy = match shares {
        true => "it does not share the port: end it, or take another port",
        false => {
            "end it (`ss -ulpn` and `ss -tlpn` name it), or take another port; with `.share_port` at both each gets the \
                  messages of some exporters"
        }
    };
    error.context(format!("another socket receives there already, and each would get a part only; {remedy}"))
}

impl Socket {
    pub fn start(self, queues: Vec<Queue>, over: &Arc<AtomicBool>) -> std::io::Result<Running> {
        match self {
            Socket::Datagrams(socket) => {
                receive::start(queues, over, move |receiver| receive::datagrams(&socket, receiver))
            }
            Socket::Connections(place) => {
                receive::start(queues, over, move |receiver| connections::connections(place, receiver))
            }
        }
    }
}
