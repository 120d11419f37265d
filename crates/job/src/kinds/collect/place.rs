//! Where messages come to: datagrams or connections, at an address and port.

use super::connections;
use super::receive::{self, Running};
use super::writer::Queue;
use crate::transport::{Transport, transport};
use anyhow::{Context, Result};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
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
    Connections(TcpListener),
}

impl Socket {
    pub fn open(Place { transport, at }: Place) -> Result<Socket> {
        Ok(match transport {
            Transport::Udp => Socket::Datagrams(receive::socket(at)?),
            Transport::Tcp => {
                connections::allow_many();
                Socket::Connections(connections::socket(at)?)
            }
        })
    }

    pub fn start(self, queues: Vec<Queue>, over: &Arc<AtomicBool>) -> std::io::Result<Running> {
        match self {
            Socket::Datagrams(socket) => {
                receive::start(queues, over, move |desk| receive::datagrams(&socket, desk))
            }
            Socket::Connections(socket) => {
                receive::start(queues, over, move |desk| connections::connections(socket, desk))
            }
        }
    }
}
