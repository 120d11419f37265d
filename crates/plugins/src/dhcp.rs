//! DHCP of many subscribers, directly or through a relay with option 82 (RFC 2131, RFC 2132, RFC 3046).

use crate::common::*;
use plugin_sdk::options::Values;
use plugin_sdk::packet::{ether, ipv4, udp, vlan};
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use std::net::Ipv4Addr;

options! {
    /// Options of dhcp.
    {
        /// Number of subscribers, each with a MAC and transaction numbers of its own.
        #[schemars(range(min = 1, max = 10_000_000))]
        subscribers: u64 = 1000,
        /// Share of DISCOVER.
        #[schemars(range(max = 100))]
        discover: u32 = 50,
        /// Share of REQUEST of an address that was offered.
        #[schemars(range(max = 100))]
        request: u32 = 50,
        /// Share of REQUEST that renews a lease.
        #[schemars(range(max = 100))]
        renew: u32 = 0,
        /// Share of RELEASE.
        #[schemars(range(max = 100))]
        release: u32 = 0,
        /// Share of INFORM.
        #[schemars(range(max = 100))]
        inform: u32 = 0,
        /// The server.
        server: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 67),
        /// The first subscriber's address: asked for, renewed, released.
        first_address: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1),
        /// The relay's address: messages come from it by unicast, as from an access node. Default: broadcast by clients.
        relay: Option<Ipv4Addr> = None,
        /// With a relay: circuits (option 82), each subscriber one, named `access-` and eight digits.
        circuits: bool = true,
        /// What clients call their class (option 60); empty: nothing.
        #[schemars(length(max = 64))]
        vendor_class: String = "netdyno".to_owned(),
        /// VLAN identifiers of an 802.1Q tag, such as one for each subscriber. Default: none.
        vlan: Option<Values> = None,
    }
}

/// Which message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Discover,
    Request,
    Renew,
    Release,
    Inform,
}

/// DHCP clients.
#[derive(Debug)]
pub struct Dhcp;

impl Compile for Dhcp {
    type Options = Options;
    const NAME: &'static str = "dhcp";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "DHCP of up to millions of subscribers: DISCOVER, REQUEST, renewal, RELEASE and INFORM in any mix, by broadcast or from a relay with option 82.";

    fn examples() -> Vec<Example> {
        vec![
            example!("1,000 subscribers: DISCOVER and REQUEST", {}),
            example!("After a power failure: a million subscribers behind an access node", {
                "subscribers": 1_000_000, "discover": 100, "request": 0, "relay": "198.18.0.1"
            }),
            example!("A day's mix, one VLAN a subscriber", {
                "subscribers": 4000, "discover": 10, "request": 10, "renew": 70, "release": 5, "inform": 5, "vlan": "1..4000"
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.discover + o.request + o.renew + o.release + o.inform == 0 {
            return Err(Fault::at("/discover", "all shares are 0: nothing would be sent"));
        }
        if !o.vendor_class.is_ascii() {
            return Err(Fault::at("/vendor_class", "ASCII characters"));
        }
        let streams = vec![
            ("discover", Message::Discover, o.discover),
            ("request", Message::Request, o.request),
            ("renew", Message::Renew, o.renew),
            ("release", Message::Release, o.release),
            ("inform", Message::Inform, o.inform),
        ];
        let streams =
            streams.into_iter().map(|(name, message, share)| (stream(&o, message).named(name), share.into()));
        Ok(Scenario::new(proportional(streams.collect())))
    }
}

fn stream(o: &Options, message: Message) -> Stream {
    // Subscriber n in frame n: its MAC stands in Ethernet and in chaddr, its address in ciaddr or option 50.
    let own = macs(0x0200_0100_0000, o.subscribers);
    let address = v4s(o.first_address, o.subscribers);
    let has_address = matches!(message, Message::Renew | Message::Release | Message::Inform);
    let zero = || bytes().u32(0);
    let ip_or_zero = |wanted: bool| if wanted { bytes().vary(32, &address) } else { zero() };
    let relayed = o.relay.filter(|_| !matches!(message, Message::Renew | Message::Release));
    let relay = relayed.unwrap_or(Ipv4Addr::UNSPECIFIED).octets();
    let mut out: Payload = bytes()
        .u8(1)
        .u8(1)
        .u8(6)
        .u8(u8::from(relayed.is_some()))
        .vary(32, "random()")
        .u16(0)
        // The broadcast flag: a client without an address wants its answer so.
        .u16(if has_address || relayed.is_some() { 0 } else { 0x8000 })
        .append(&ip_or_zero(has_address))
        .append(&zero())
        .append(&zero())
        .put(&relay)
        .vary(48, &own)
        .put(&[0; 10])
        .put(&[0; 192])
        .u32(0x6382_5363);
    let kind = match message {
        Message::Discover => 1,
        Message::Request | Message::Renew => 3,
        Message::Release => 7,
        Message::Inform => 8,
    };
    out = out.put(&[53, 1, kind]).put(&[61, 7, 1]).vary(48, &own);
    if matches!(message, Message::Request) {
        out = out.put(&[50, 4]).vary(32, &address).put(&[54, 4]).put(&o.server.octets());
    }
    if message == Message::Release {
        out = out.put(&[54, 4]).put(&o.server.octets());
    } else {
        if !o.vendor_class.is_empty() {
            out = out.u8(60).u8(o.vendor_class.len() as u8).text(&o.vendor_class);
        }
        out = out.put(&[57, 2, 5, 220]).put(&[55, 7, 1, 3, 6, 15, 28, 51, 54]);
    }
    if relayed.is_some() && o.circuits {
        // Option 82: circuit ID (1) of 15 bytes.
        out = out.put(&[82, 17, 1, 15]).text("access-").digits(8);
    }
    out = out.u8(255);
    // BOOTP's least is 300 bytes (RFC 1542 section 2.1).
    let missing = 300usize.saturating_sub(out.len());
    out = out.put(&vec![0; missing]);
    let broadcast = !has_address && relayed.is_none();
    let header = match (relayed, broadcast) {
        (Some(relay), _) => ipv4().src(relay).dst(o.server),
        (None, true) => ipv4().src("0.0.0.0").dst("255.255.255.255"),
        (None, false) => ipv4().src(&address).dst(o.server),
    };
    let transport = udp().sport(if relayed.is_some() { 67 } else { 68 }).dport(67);
    let link = if relayed.is_some() { ether() } else { ether().src(&own) };
    let link = if broadcast { link.dst("ff:ff:ff:ff:ff:ff") } else { link };
    let link = match &o.vlan {
        Some(id) => link / vlan().id(id),
        None => link.into(),
    };
    Stream::new(link / header.ttl(64) / transport / out)
}
