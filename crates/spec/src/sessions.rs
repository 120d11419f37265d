//! TCP sessions without the host's TCP: clients, and a server.

use crate::check::{self, Contradiction};
use crate::consent::Consent;
use crate::endpoint::EndpointRate;
use crate::kind::Kind;
use crate::live::Server;
use crate::parts::priority;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::Written;
use settings::settings;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use wire::Mac;

/// TCP connections by the million, made in the kernel.
#[settings]
pub struct Sessions {
    /// The interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE")]
    #[serde(default, skip_serializing_if = "crate::setting::is_default")]
    pub on: String,
    /// The server to connect to: 10.0.0.2:80; without a port, port 80. Nothing is ever sent to anybody else.
    #[setting(value = "ADDRESS[:PORT]")]
    #[serde(default, skip_serializing_if = "crate::setting::is_default")]
    pub to: Written<Server>,
    /// New connections a second, however many are open: 10kcps. Default: as fast as it goes with `.in_flight` open.
    #[setting(value = "RATE")]
    pub rate: Option<Written<EndpointRate>>,
    /// Open connections for this long. Default: until interrupted.
    #[setting(value = "TIME", excludes("count"))]
    pub duration: Option<Written<Duration>>,
    /// Open this many connections.
    #[setting(value = "N")]
    pub count: Option<Written<u64>>,
    /// Open this many connections and hold them open, use them again or not, and close them.
    #[setting(value = "N", excludes("duration", "count"))]
    pub connections: Option<Written<u64>>,
    /// Hold them for this long once all are open. Default: until interrupted; with `.use_again` no longer.
    #[setting(value = "TIME")]
    pub hold: Option<Written<Duration>>,
    /// After that, ask each of them once more, and count who answers.
    pub use_again: bool,
    /// Requests of each connection, each after the answer to the last.
    #[setting(value = "N", least = 1, most = 1000000, default = "1")]
    pub requests: Option<u32>,
    /// Time between an answer and the next request, up to 2m. Connections that are held go on asking.
    #[setting(value = "TIME")]
    pub think: Option<Written<Duration>>,
    /// Who closes, once all is answered: server, fin or rst, which are the client's. Default: the server; with several requests and for
    /// connections that are held the client, by FIN.
    #[setting(value = "WHO")]
    pub close: Option<SessionClose>,
    /// Connections that are open at once, at most. Default: 100 without a `.rate`; with one, as many as there are tuples.
    #[setting(value = "N", least = 1)]
    pub in_flight: Option<u64>,
    /// Addresses of the clients: a prefix of IPv4, 10.1.0.0/24. ARP is answered for those that are not the host's own. Default: the
    /// interface's address.
    #[setting(value = "PREFIX")]
    pub clients: Option<String>,
    /// The Ethernet address to send to. Default: the next hop's, which is asked for.
    #[setting(value = "MAC")]
    pub mac: Option<Written<Mac>>,
    /// The path of the request: GET PATH.
    #[setting(value = "PATH", default = "/")]
    pub path: Option<String>,
    /// Fill requests up to this many bytes. Default: as long as they are, some 80.
    #[setting(value = "BYTES", least = 1, most = 1460)]
    pub request_size: Option<u32>,
    /// A connection that has not ended after this time has failed: at most 2m.
    #[setting(value = "TIME", default = "10s")]
    pub timeout: Option<Written<Duration>>,
    /// Send again what is not answered after this time, then after twice that, and so on.
    #[setting(option = "rto", value = "TIME", default = "200ms")]
    pub retransmit_after: Option<Written<Duration>>,
    #[part]
    priority: priority!(),
    /// Use generic XDP although the driver can do native: slower.
    pub generic: bool,
    /// Allow a server whose address is not private.
    #[setting(option = "allow-public-target", expert)]
    pub public_target: bool,
    /// Yes, use this interface although it carries the default route or your login.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
}

words! {
    /// Who closes a TCP connection, and how.
    SessionClose {
        /// The server, because the client asks for it.
        Server = "server",
        /// The client, by a FIN.
        Fin = "fin",
        /// The client, by a RST.
        Rst = "rst",
    }
}

/// A server of TCP connections that keeps no state, in the kernel.
#[settings]
pub struct SessionsServer {
    /// The interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE")]
    pub on: String,
    /// What clients connect to: 10.0.0.2:80; without a port, port 80. ARP is answered for an address that is not the host's own. Default:
    /// port 80 of the interface's address.
    #[setting(value = "ADDRESS[:PORT]")]
    pub listen: Option<Written<Server>>,
    /// Bytes of an answer's body.
    #[setting(value = "BYTES", least = 0, most = 65000, default = "100")]
    pub response_size: Option<u32>,
    /// Requests of a connection: the server closes with the answer to so many.
    #[setting(value = "N", least = 1, most = 1000000, default = "1")]
    pub requests: Option<u32>,
    /// Serve for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Use generic XDP although the driver can do native: slower.
    pub generic: bool,
    /// Yes, use this interface although it carries the default route or your login.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
}

/// Addresses of clients: the first, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// The first.
    pub first: Ipv4Addr,
    /// How many, one after the other.
    pub count: u32,
}

/// No pool is larger than a /8.
const SHORTEST_PREFIX: u8 = 8;

impl Pool {
    /// A prefix, or one address. Of a prefix up to /30 the first and the last address are no hosts' and left out.
    fn read(text: &str) -> Option<Pool> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let (address, bits): (Ipv4Addr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        if !(SHORTEST_PREFIX..=32).contains(&bits) || address.is_multicast() || address.is_broadcast() {
            return None;
        }
        let size = 1u32 << (32 - bits);
        let base = u32::from(address) & !(size - 1);
        if bits < 32 && base != u32::from(address) {
            return None;
        }
        let (first, count) = if size > 2 { (base + 1, size - 2) } else { (base, size) };
        Some(Pool { first: first.into(), count })
    }

    /// Is the address one of them?
    pub fn has(&self, address: Ipv4Addr) -> bool {
        u32::from(address).wrapping_sub(self.first.into()) < self.count
    }
}

impl Sessions {
    /// The addresses that were given.
    pub fn pool(&self) -> Option<Pool> {
        Pool::read(self.clients.as_deref()?)
    }

    /// Connections are held open.
    pub fn holds(&self) -> bool {
        self.connections.is_some()
    }

    /// Who closes.
    pub fn closes(&self) -> SessionClose {
        let by_client = self.holds() || self.requests.is_some_and(|requests| requests > 1);
        self.close.unwrap_or(if by_client { SessionClose::Fin } else { SessionClose::Server })
    }

    /// New connections a second.
    pub fn connections_per_second(&self) -> Option<u64> {
        match self.rate.as_deref() {
            Some(EndpointRate::Connections(rate)) => Some(*rate),
            _ => None,
        }
    }
}

/// Later ones no longer fit in a slot's time stamps.
const MOST_TIME: Duration = Duration::from_secs(120);
const LEAST_TIME: Duration = Duration::from_millis(1);

impl Kind for Sessions {
    fn settings() -> &'static [Member] {
        Sessions::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        let outside = |time: &Option<Written<Duration>>| {
            time.as_deref().is_some_and(|time| !(LEAST_TIME..=MOST_TIME).contains(time))
        };
        let pool = self.pool();
        let to = match self.to.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        };
        let of_others = self.rate.is_some() && self.connections_per_second().is_none_or(|rate| rate == 0);
        let path = self.path.as_deref().unwrap_or("/");
        let odd =
            !path.starts_with('/') || path.len() > 1000 || !path.bytes().all(|byte| byte.is_ascii_graphic());
        check::hold(
            "",
            &[
                ("on", self.on.is_empty(), "which interface? Name IFACE, or IFACE@NAMESPACE"),
                ("to", self.to == Written::default(), "which server? Name its address and port: 10.0.0.2:80"),
                ("to", to.is_none(), "it is an IPv4 address: IPv6 is not supported yet"),
                ("rate", of_others, "it is in connections per second: 10kcps"),
                (
                    "clients",
                    self.clients.is_some() && pool.is_none(),
                    "it is an IPv4 prefix from its first address on, or one address: 10.1.0.0/24",
                ),
                (
                    "clients",
                    pool.zip(to).is_some_and(|(pool, to)| pool.has(to)),
                    "the server's address is one of them: give a prefix without it",
                ),
                (
                    "path",
                    odd,
                    "it begins with a slash and has up to 1000 printable characters without spaces",
                ),
                ("timeout", outside(&self.timeout), "it is from 1ms to 2m"),
                ("think", outside(&self.think), "it is from 1ms to 2m"),
                ("hold", self.hold.is_some() && !self.holds(), "it is of `.connections` that are held"),
                ("use_again", self.use_again && !self.holds(), "it is of `.connections` that are held"),
                (
                    "think",
                    self.think.is_some()
                        && !self.holds()
                        && self.requests.is_none_or(|requests| requests < 2),
                    "it is between `.requests` of a connection, or of `.connections` that are held",
                ),
                (
                    "close",
                    self.close == Some(SessionClose::Server)
                        && (self.holds() || self.requests.is_some_and(|requests| requests > 1)),
                    "the client closes connections that ask several times or are held: fin or rst",
                ),
                ("retransmit_after", outside(&self.retransmit_after), "it is from 1ms to 2m"),
            ],
        )
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn asks(&self) -> Consent {
        // None is named where a lab or an earlier result has it.
        if self.to == Written::default() {
            return Consent::default();
        }
        // Whoever allows a public address allows it to be connected to.
        let to = vec![self.to.to_string()];
        match self.public_target {
            true => Consent { public_targets: to, ..Consent::default() },
            false => Consent { addresses: to, ..Consent::default() },
        }
    }
}

impl Kind for SessionsServer {
    fn settings() -> &'static [Member] {
        SessionsServer::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        let v6 = self.listen.as_deref().is_some_and(|listen| listen.address.is_ipv6());
        check::hold("", &[("listen", v6, "it is an IPv4 address: IPv6 is not supported yet")])
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_a_prefix_without_its_first_and_last_address() {
        let pool = |text| Pool::read(text).map(|pool| (pool.first.to_string(), pool.count));
        assert_eq!(pool("10.1.0.0/24"), Some(("10.1.0.1".to_owned(), 254)));
        assert_eq!(pool("10.1.0.4/31"), Some(("10.1.0.4".to_owned(), 2)));
        assert_eq!(pool("10.1.0.7"), Some(("10.1.0.7".to_owned(), 1)));
        for wrong in ["10.1.0.7/24", "10.0.0.0/7", "224.0.0.0/24", "a", "10.1.0.0/33", "2001:db8::/64", ""] {
            assert_eq!(pool(wrong), None, "{wrong}");
        }
        let pool = Pool::read("10.1.0.0/24").expect("a pool");
        assert!(pool.has([10, 1, 0, 1].into()) && pool.has([10, 1, 0, 254].into()));
        assert!(!pool.has([10, 1, 0, 0].into()) && !pool.has([10, 1, 0, 255].into()));
    }
}
