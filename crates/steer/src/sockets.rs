//! Sockets of learned flows: which there are, and ending them (sock_diag(7); ending needs CONFIG_INET_DIAG_DESTROY).

use crate::flows::Flow;
use port::netlink::{DUMP, Message, NetlinkError, REQUEST, Socket};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;
const TIME_WAIT: u8 = 6;
const LISTEN: u8 = 10;
/// struct inet_diag_req_v2 up to the socket's ends.
const BEFORE_ENDS: usize = 8;
const REQUEST_SIZE: usize = 56;

/// TCP sockets of this network namespace.
#[derive(Debug)]
pub struct Sockets(Socket);

/// What there is of a server's.
#[derive(Debug, Default)]
pub struct Found {
    /// Connections, by their flow; none that waits for the end of its time (TIME_WAIT) and says nothing by itself.
    pub flows: HashSet<Flow>,
    /// The server's listening socket is in this namespace.
    pub listening: bool,
}

impl Sockets {
    pub fn open() -> Result<Sockets, NetlinkError> {
        Socket::diag().map(Sockets)
    }

    /// Those of a server's port.
    pub fn of(&mut self, port: u16) -> Result<Found, NetlinkError> {
        let mut found = Found::default();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            let mut ask = [0; REQUEST_SIZE];
            ask[0] = family;
            ask[1] = libc::IPPROTO_TCP as u8;
            ask[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
            for message in self.0.request(Message::new(BY_FAMILY, DUMP).fixed(&ask))? {
                // struct inet_diag_msg: family, state, timer, retransmissions, the ends.
                let (Some([family, state, ..]), Some(ends)) = (message.get(..4), message.get(4..40)) else {
                    continue;
                };
                let Some((own, other)) = read(*family, ends) else { continue };
                match *state {
                    _ if own.port() != port => {}
                    LISTEN => found.listening = true,
                    TIME_WAIT => {}
                    _ => {
                        found.flows.insert(Flow::new(other, own));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Ends a connection: its program gets ECONNABORTED.
    pub fn destroy(&mut self, flow: &Flow) -> Result<(), NetlinkError> {
        let (client, server) = flow.ends();
        let mut ask = [0; REQUEST_SIZE];
        ask[0] = if client.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 };
        ask[1] = libc::IPPROTO_TCP as u8;
        ask[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        let ends = &mut ask[BEFORE_ENDS..];
        ends[..2].copy_from_slice(&server.port().to_be_bytes());
        ends[2..4].copy_from_slice(&client.port().to_be_bytes());
        for (at, end) in [(4, server), (20, client)] {
            match end.ip() {
                IpAddr::V4(address) => ends[at..at + 4].copy_from_slice(&address.octets()),
                IpAddr::V6(address) => ends[at..at + 16].copy_from_slice(&address.octets()),
            }
        }
        // INET_DIAG_NOCOOKIE.
        ends[40..48].fill(0xff);
        self.0.request(Message::new(DESTROY, REQUEST).fixed(&ask)).map(|_| ())
    }
}

/// struct inet_diag_sockid: ports of both, addresses of both.
fn read(family: u8, ends: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let port = |at: usize| Some(u16::from_be_bytes(ends.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        if i32::from(family) == libc::AF_INET {
            let four: [u8; 4] = ends.get(at..at + 4)?.try_into().ok()?;
            return Some(Ipv4Addr::from(four).into());
        }
        let all: [u8; 16] = ends.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(all)).to_canonical())
    };
    Some((SocketAddr::new(address(4)?, port(0)?), SocketAddr::new(address(20)?, port(2)?)))
}
