//! TCP connections and UDP sessions without the host's stack: clients, and a server.

use crate::check::{self, Contradiction};
use crate::consent::Consent;
use crate::endpoint::EndpointRate;
use crate::kind::Kind;
use crate::live::Server;
use crate::parts::{priority, tag};
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::Written;
use settings::settings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use wire::Mac;

/// TCP connections or UDP sessions by the million, made in the kernel.
#[settings]
pub struct Sessions {
    /// The interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE")]
    #[serde(default, skip_serializing_if = "crate::setting::is_default")]
    pub on: String,
    /// The server to connect to: 10.0.0.2:80, [2001:db8::2]:80; without a port, port 80, of UDP 7. Nothing is ever sent to anybody else.
    #[setting(value = "ADDRESS[:PORT]")]
    #[serde(default, skip_serializing_if = "crate::setting::is_default")]
    pub to: Written<Server>,
    /// What is spoken: http, over TCP; or udp, where a session is a tuple from which numbered datagrams are sent, and over when each is answered.
    #[setting(value = "WHAT", default = "http")]
    pub application: Option<SessionApplication>,
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
    /// Of UDP: use them again from the server's side. A `netdyno sessions serve` that may relay sends a datagram to the address and port that it saw of
    /// each, and those that arrive are counted. That shows what a device knows only where it drops what comes in unasked.
    pub from_server: bool,
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
    /// Addresses of the clients: a prefix of the server's family, 10.1.0.0/24 or 2001:db8:1::/64. ARP or neighbour discovery is answered for
    /// those that are not the host's own. Default: the interface's address.
    #[setting(value = "PREFIX")]
    pub clients: Option<String>,
    /// The Ethernet address to send to. Default: the next hop's, which is asked for.
    #[setting(value = "MAC")]
    pub mac: Option<Written<Mac>>,
    /// Send all frames with a tag of this VLAN (802.1Q), and take those of this VLAN alone.
    #[setting(value = "ID", most = 4094)]
    pub vlan: Option<u16>,
    #[part]
    tag: tag!(),
    /// The path of the request: GET PATH.
    #[setting(value = "PATH", default = "/")]
    pub path: Option<String>,
    /// Fill requests up to this many bytes. Default: as long as they are, some 80; of UDP 16, over IPv6 28.
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
    /// What sessions speak.
    SessionApplication {
        /// HTTP/1.1 over TCP.
        Http = "http",
        /// Datagrams of UDP with numbers, which come back.
        Udp = "udp",
    }
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

/// A server of TCP connections or UDP sessions that keeps no state, in the kernel.
#[settings]
pub struct SessionsServer {
    /// The interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE")]
    pub on: String,
    /// What clients connect to: 10.0.0.2:80, [2001:db8::2]:80; without a port, port 80, of UDP 7. ARP or neighbour discovery is answered for an
    /// address that is not the host's own. Default: that port of the interface's address.
    #[setting(value = "ADDRESS[:PORT]")]
    pub listen: Option<Written<Server>>,
    /// What is spoken: http, over TCP; or udp, where each numbered datagram is answered by one.
    #[setting(value = "WHAT", default = "http")]
    pub application: Option<SessionApplication>,
    /// Take frames of this VLAN alone (802.1Q), and answer with its tag.
    #[setting(value = "ID", most = 4094)]
    pub vlan: Option<u16>,
    #[part]
    tag: tag!(),
    /// Bytes of an answer's body. Default: 100. Of UDP of the whole answer, from 16, over IPv6 28, to 1460; by default it is as long as its request, and
    /// for clients with public addresses never longer, unless they are allowed.
    #[setting(value = "BYTES", least = 0, most = 65000)]
    pub response_size: Option<u32>,
    /// Of UDP: send clients that ask for it a datagram to what was seen of another of their sessions, and to nobody else.
    pub relay: bool,
    /// Of UDP: answer clients with public addresses with more bytes than they sent. Whoever forges an address directs these to it.
    #[setting(option = "allow-public-clients", expert)]
    pub public_clients: bool,
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
    pub first: IpAddr,
    /// How many, one after the other.
    pub count: u32,
    /// Bits of the prefix that they are of.
    pub bits: u8,
}

/// No pool is larger than a /8.
const SHORTEST_PREFIX: u8 = 8;
/// Nor has one of IPv6 more addresses than this, however many its prefix has: they differ in the last 16 bits.
const MOST_OF_IPV6: u32 = 65_535;

impl Pool {
    /// A prefix, or one address.
    fn read(text: &str) -> Option<Pool> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        match address.parse().ok()? {
            IpAddr::V4(address) => Pool::of_ipv4(address, bits.unwrap_or(32)),
            IpAddr::V6(address) => Pool::of_ipv6(address, bits.unwrap_or(128)),
        }
    }

    /// Of a prefix up to /30 the first and the last address are no hosts' and left out.
    fn of_ipv4(address: Ipv4Addr, bits: u8) -> Option<Pool> {
        if !(SHORTEST_PREFIX..=32).contains(&bits) || address.is_multicast() || address.is_broadcast() {
            return None;
        }
        let size = 1u32 << (32 - bits);
        let base = u32::from(address) & !(size - 1);
        if bits < 32 && base != u32::from(address) {
            return None;
        }
        let (first, count) = if size > 2 { (base + 1, size - 2) } else { (base, size) };
        Some(Pool { first: Ipv4Addr::from(first).into(), count, bits })
    }

    /// Of a prefix up to /126 the first address is that of all its routers (RFC 4291, section 2.6.1) and left out.
    fn of_ipv6(address: Ipv6Addr, bits: u8) -> Option<Pool> {
        let no_host =
            address.is_multicast() || address.is_unspecified() || address.to_ipv4_mapped().is_some();
        if !(SHORTEST_PREFIX..=128).contains(&bits) || no_host {
            return None;
        }
        let size = 1u128 << (128 - bits);
        let base = u128::from(address);
        if base & (size - 1) != 0 {
            return None;
        }
        let (first, count) = if size > 2 { (base + 1, size - 1) } else { (base, size) };
        let count = count.min(MOST_OF_IPV6.into()) as u32;
        Some(Pool { first: Ipv6Addr::from(first).into(), count, bits })
    }

    /// All of them.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let first = self.first;
        (0..self.count).map(move |number| match first {
            IpAddr::V4(first) => Ipv4Addr::from(u32::from(first).wrapping_add(number)).into(),
            IpAddr::V6(first) => Ipv6Addr::from(u128::from(first).wrapping_add(number.into())).into(),
        })
    }

    /// Is the address one of them?
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                u32::from(address).wrapping_sub(first.into()) < self.count
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                u128::from(address).wrapping_sub(first.into()) < self.count.into()
            }
            _ => false,
        }
    }

    /// Is the address of the prefix, whether it is one of them or not?
    pub fn is_of_network(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differ = u32::from(first) ^ u32::from(address);
                differ.leading_zeros() >= self.bits.into()
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differ = u128::from(first) ^ u128::from(address);
                differ.leading_zeros() >= self.bits.into()
            }
            _ => false,
        }
    }
}

/// The control word of a VLAN tag (IEEE 802.1Q): priority, drop eligible, VLAN.
fn control_word(vlan: Option<u16>, priority: Option<u8>, dei: Option<u8>) -> Option<u16> {
    let (priority, dei) = (priority.unwrap_or(0), dei.unwrap_or(0));
    Some(u16::from(priority) << 13 | u16::from(dei) << 12 | vlan?)
}

/// Its rules: where the member is, whether it breaks one, and which.
fn of_tag(
    vlan: Option<u16>,
    priority: Option<u8>,
    dei: Option<u8>,
) -> [(&'static str, bool, &'static str); 5] {
    let untagged = vlan.is_none();
    let no_tag = "there is no tag to have it: give `.vlan`";
    [
        ("vlan", vlan.is_some_and(|vlan| vlan > 4094), "it is 0 to 4094"),
        ("vlan_priority", priority.is_some() && untagged, no_tag),
        ("vlan_priority", priority.is_some_and(|priority| priority > 7), "it is 0 to 7"),
        ("vlan_dei", dei.is_some() && untagged, no_tag),
        ("vlan_dei", dei.is_some_and(|dei| dei > 1), "it is 0 or 1"),
    ]
}

impl SessionsServer {
    /// What is spoken is UDP.
    pub fn is_udp(&self) -> bool {
        self.application == Some(SessionApplication::Udp)
    }

    /// The control word of the tag of its frames, if they have one.
    pub fn tag(&self) -> Option<u16> {
        control_word(self.vlan, self.vlan_priority, self.vlan_dei)
    }
}

impl Sessions {
    /// The addresses that were given.
    pub fn pool(&self) -> Option<Pool> {
        Pool::read(self.clients.as_deref()?)
    }

    /// The control word of the tag of all frames, if they have one.
    pub fn tag(&self) -> Option<u16> {
        control_word(self.vlan, self.vlan_priority, self.vlan_dei)
    }

    /// What is spoken is UDP.
    pub fn is_udp(&self) -> bool {
        self.application == Some(SessionApplication::Udp)
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

    /// Rules of what UDP has not, or has alone.
    fn of_udp(&self) -> [(&'static str, bool, &'static str); 8] {
        let udp = self.is_udp();
        let v6 = !self.to.address.to_canonical().is_ipv4();
        let few = self.connections.as_deref().is_some_and(|held| *held < 2);
        [
            ("close", udp && self.close.is_some(), "sessions of UDP end without a word; leave it out"),
            ("path", udp && self.path.is_some(), "it is of HTTP; leave it out"),
            (
                "from_server",
                self.from_server && !udp,
                "a server of TCP does not begin; it is of `.application` udp",
            ),
            ("from_server", self.from_server && !self.holds(), "it is of `.connections` that are held"),
            (
                "connections",
                self.from_server && few,
                "each is reached by way of another one: with `.from_server` it is 2 or more",
            ),
            (
                "use_again",
                self.use_again && self.from_server,
                "`.from_server` is another way to use them again; give one of the two",
            ),
            ("request_size", udp && self.request_size.is_some_and(|size| size < MARK), SHORT),
            ("request_size", udp && v6 && self.request_size.is_some_and(|size| size < MARK_IPV6), SHORT_IPV6),
        ]
    }

    /// They are used again before they are closed.
    pub fn uses_again(&self) -> bool {
        self.use_again || self.from_server
    }

    /// New connections a second.
    pub fn connections_per_second(&self) -> Option<u64> {
        match self.rate.as_deref() {
            Some(EndpointRate::Connections(rate)) => Some(*rate),
            _ => None,
        }
    }
}

/// Bytes that a datagram has at least.
const MARK: u32 = 16;
const MARK_IPV6: u32 = 28;
const SHORT: &str = "a datagram with a number has 16 bytes or more";
const SHORT_IPV6: &str = "over IPv6 a datagram with a number has 28 bytes or more";
/// In one frame, as segments are.
const LONGEST_DATAGRAM: u32 = 1460;
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
        let to = self.to.address.to_canonical();
        let tagged = self.vlan.is_some();
        let of_others = self.rate.is_some() && self.connections_per_second().is_none_or(|rate| rate == 0);
        check::hold("", &of_tag(self.vlan, self.vlan_priority, self.vlan_dei))?;
        check::hold("", &self.of_udp())?;
        let path = self.path.as_deref().unwrap_or("/");
        let odd =
            !path.starts_with('/') || path.len() > 1000 || !path.bytes().all(|byte| byte.is_ascii_graphic());
        check::hold(
            "",
            &[
                ("on", self.on.is_empty(), "which interface? Name IFACE, or IFACE@NAMESPACE"),
                ("to", self.to == Written::default(), "which server? Name its address and port: 10.0.0.2:80"),
                ("rate", of_others, "it is in connections per second: 10kcps"),
                (
                    "clients",
                    self.clients.is_some() && pool.is_none(),
                    "it is a prefix from its first address on, or one address: 10.1.0.0/24, 2001:db8:1::/64",
                ),
                (
                    "clients",
                    pool.is_some_and(|pool| pool.first.is_ipv4() != to.is_ipv4()),
                    "they are of IPv4 and the server is of IPv6, or the other way round: give a prefix of the server's family",
                ),
                (
                    "clients",
                    pool.is_some_and(|pool| pool.has(to)),
                    "the server's address is one of them: give a prefix without it",
                ),
                (
                    "clients",
                    tagged && pool.is_none(),
                    "which addresses are there in the VLAN? Give a prefix that is not the host's",
                ),
                (
                    "mac",
                    tagged && self.mac.is_none(),
                    "in a `.vlan` the next hop is not asked for: give its Ethernet address",
                ),
                (
                    "mac",
                    self.mac.as_deref().is_some_and(|mac| mac.0[0] & 1 == 1),
                    "it is the address of a group, and connections go to one host: give the next hop's own",
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
        check::hold("", &of_tag(self.vlan, self.vlan_priority, self.vlan_dei))?;
        let unsaid = self.vlan.is_some() && self.listen.is_none();
        let long = self.is_udp() && self.response_size.is_some_and(|size| size > LONGEST_DATAGRAM);
        let ends = self.is_udp() && self.requests.is_some();
        let least = match self.listen.as_deref().is_some_and(|listen| listen.address.to_canonical().is_ipv6())
        {
            true => (MARK_IPV6, SHORT_IPV6),
            false => (MARK, SHORT),
        };
        let short = self.is_udp() && self.response_size.is_some_and(|size| size < least.0);
        let of_udp = "it is of `.application` udp; leave it out";
        check::hold(
            "",
            &[
                ("listen", unsaid, "which address is served in the VLAN? Name it: 10.0.0.2:80"),
                ("response_size", long, "an answer of UDP is one datagram, of up to 1460 bytes"),
                ("response_size", short, least.1),
                ("relay", self.relay && !self.is_udp(), of_udp),
                ("public_clients", self.public_clients && !self.is_udp(), of_udp),
                ("requests", ends, "a server of UDP answers as often as it is asked; leave it out"),
            ],
        )
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn asks(&self) -> Consent {
        // Whoever forges such a client's address has it sent what it never asked for.
        let from = self.listen.as_ref().map_or_else(|| self.on.clone(), ToString::to_string);
        match self.public_clients {
            true => Consent { public_targets: vec![from], ..Consent::default() },
            false => Consent::default(),
        }
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
        for wrong in ["10.1.0.7/24", "10.0.0.0/7", "224.0.0.0/24", "a", "10.1.0.0/33", "10.1.0.0/", "/24", ""]
        {
            assert_eq!(pool(wrong), None, "{wrong}");
        }
        let pool = Pool::read("10.1.0.0/24").expect("a pool");
        assert!(pool.has([10, 1, 0, 1].into()) && pool.has([10, 1, 0, 254].into()));
        assert!(!pool.has([10, 1, 0, 0].into()) && !pool.has([10, 1, 0, 255].into()));
        assert!(!pool.has(Ipv4Addr::new(10, 1, 0, 1).to_ipv6_mapped().into()));
    }

    #[test]
    fn a_pool_of_ipv6_is_a_prefix_without_its_first_address_and_has_65535_at_most() {
        let pool = |text| Pool::read(text).map(|pool| (pool.first.to_string(), pool.count));
        assert_eq!(pool("2001:db8:1::/64"), Some(("2001:db8:1::1".to_owned(), 65_535)));
        assert_eq!(pool("2001:db8::7:0/112"), Some(("2001:db8::7:1".to_owned(), 65_535)));
        assert_eq!(pool("2001:db8::f0/124"), Some(("2001:db8::f1".to_owned(), 15)));
        assert_eq!(pool("2001:db8::4/127"), Some(("2001:db8::4".to_owned(), 2)));
        assert_eq!(pool("2001:db8::7"), Some(("2001:db8::7".to_owned(), 1)));
        for wrong in
            ["2001:db8::1/64", "ff02::/64", "::", "2001:db8::/129", "2001:db8::/7", "::ffff:10.0.0.0/120"]
        {
            assert_eq!(pool(wrong), None, "{wrong}");
        }
        let pool = Pool::read("2001:db8:1::/64").expect("a pool");
        let has = |text: &str| pool.has(text.parse().expect("an address"));
        assert!(has("2001:db8:1::1") && has("2001:db8:1::ffff"));
        assert!(!has("2001:db8:1::") && !has("2001:db8:1::1:0") && !has("2001:db8:2::1") && !has("0.0.0.1"));
        // Others of the network may have what it has not.
        let beside = |text: &str| pool.is_of_network(text.parse().expect("an address"));
        assert!(beside("2001:db8:1::") && beside("2001:db8:1:0:ffff::1") && !beside("2001:db8:1:1::1"));
        let pool = Pool::read("2001:db8::7").expect("a pool");
        assert!(
            pool.is_of_network(pool.first) && !pool.is_of_network([0x2001, 0xdb8, 0, 0, 0, 0, 0, 6].into())
        );
        let pool = Pool::read("10.1.0.0/24").expect("a pool");
        assert!(pool.is_of_network([10, 1, 0, 0].into()) && pool.is_of_network([10, 1, 0, 255].into()));
        assert!(
            pool.addresses().count() == 254 && pool.addresses().all(|address| pool.has(address)),
            "all are its own"
        );
        assert!(
            !pool.is_of_network([10, 1, 1, 1].into())
                && !pool.is_of_network("::1".parse().expect("an address"))
        );
    }

    #[test]
    fn a_tag_has_the_priority_above_and_the_vlan_below() {
        assert_eq!(control_word(None, Some(7), Some(1)), None);
        assert_eq!(control_word(Some(100), None, None), Some(100));
        assert_eq!(control_word(Some(0xabc), Some(5), Some(1)), Some(0xbabc));
    }
}
