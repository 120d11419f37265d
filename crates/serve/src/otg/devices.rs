//! Emulated devices of a configuration: their addresses, and flows between them.

use super::config::Port;
use super::read::At;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use wire::Mac;

/// Addresses on one port.
const ADDRESSES: usize = 4096;
/// Pairs of one flow.
const PAIRS: usize = 4096;
/// Tags of a device.
const TAGS: usize = 2;
/// In an expression: where the gateways' Ethernet addresses go.
const GATEWAYS: &str = "@gateways@";

const NOT_HERE: &str = "netdyno's devices have Ethernet and IP addresses alone: leave it out";

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vlan {
    pub tpid: u16,
    pub id: u64,
    pub priority: u64,
}

/// An IP address of an emulated device.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Address {
    /// Its own name in the configuration, its Ethernet's and its device's.
    pub name: String,
    pub ethernet: String,
    pub device: String,
    /// Where it is, by the port's place.
    pub port: usize,
    pub mac: Mac,
    pub vlans: Vec<Vlan>,
    pub mtu: u64,
    pub address: IpAddr,
    pub gateway: IpAddr,
    /// It is not asked for.
    pub gateway_mac: Option<Mac>,
}

impl Address {
    /// As an agent has it.
    pub fn told(&self) -> Value {
        let vlan = |vlan: &Vlan| json!({"tpid": vlan.tpid, "id": vlan.id, "priority": vlan.priority});
        let mut told = json!({
            "mac": self.mac.to_string(),
            "vlans": self.vlans.iter().map(vlan).collect::<Vec<_>>(),
            "mtu": self.mtu,
            "address": self.address.to_string(),
        });
        if self.gateway_mac.is_none() {
            told["gateway"] = self.gateway.to_string().into();
        }
        told
    }
}

/// All addresses of a configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Devices {
    pub addresses: Vec<Address>,
    /// Those of each name, of an address, an Ethernet or a device.
    names: HashMap<String, Vec<usize>>,
}

/// An Ethernet without its addresses.
struct Ethernet {
    device: String,
    name: String,
    port: usize,
    mac: Mac,
    vlans: Vec<Vlan>,
    mtu: u64,
}

impl Devices {
    pub fn read(of: &At<'_>, ports: &[Port]) -> Devices {
        let mut all = Devices::default();
        for device in of.each() {
            device.only(&["name", "ethernets"]);
            let Some(name) = all.name(&device) else { continue };
            for ethernet in device.get("ethernets").each() {
                if let Some(read) = all.ethernet(&ethernet, &name, ports) {
                    all.read_addresses(&ethernet, &read);
                }
            }
        }
        for (at, port) in ports.iter().enumerate() {
            if all.addresses.iter().filter(|address| address.port == at).count() > ADDRESSES {
                of.wrong(&format!("at most {ADDRESSES} addresses on port `{}`", port.name));
            }
        }
        all
    }

    /// A name that nothing else of the devices has.
    fn name(&mut self, of: &At<'_>) -> Option<String> {
        let name = of.get("name").name()?.to_owned();
        if self.names.contains_key(&name) {
            of.get("name").wrong(&format!("there are two `{}`", report::units::printable(&name)));
            return None;
        }
        self.names.insert(name.clone(), Vec::new());
        Some(name)
    }

    fn ethernet(&mut self, of: &At<'_>, device: &str, ports: &[Port]) -> Option<Ethernet> {
        of.only(&[
            "name",
            "connection",
            "port_name",
            "mac",
            "mtu",
            "vlans",
            "ipv4_addresses",
            "ipv6_addresses",
            "dhcpv4_interfaces",
            "dhcpv6_interfaces",
        ]);
        of.not(&[("dhcpv4_interfaces", NOT_HERE), ("dhcpv6_interfaces", NOT_HERE)]);
        let name = self.name(of);
        let connection = of.get("connection");
        connection.only(&["choice", "port_name"]);
        let at = match connection.choice("port_name", &["port_name"]) {
            _ if !connection.is_there() => of.get("port_name"),
            "" => return None,
            _ => connection.get("port_name"),
        };
        let port = at.name().and_then(|name| {
            let found = ports.iter().position(|port| port.name == name);
            if found.is_none() {
                at.wrong(&format!("there is no port `{}`", report::units::printable(name)));
            }
            found
        });
        let mac = mac(&of.get("mac"));
        let mtu = if of.get("mtu").is_there() { of.get("mtu").whole()? } else { 1500 };
        if !(68..=16_384).contains(&mtu) {
            of.get("mtu").wrong("must be 68 to 16384");
            return None;
        }
        let vlans = self.vlans(&of.get("vlans"));
        Some(Ethernet { device: device.to_owned(), name: name?, port: port?, mac: mac?, vlans: vlans?, mtu })
    }

    fn vlans(&mut self, of: &At<'_>) -> Option<Vec<Vlan>> {
        if of.count() > TAGS {
            of.wrong(&format!("at most {TAGS} tags"));
            return None;
        }
        let mut vlans = Vec::new();
        for vlan in of.each() {
            vlan.only(&["name", "tpid", "priority", "id"]);
            self.name(&vlan)?;
            let tpid = match vlan.get("tpid").text() {
                None | Some("x8100") => 0x8100,
                Some("x88A8") => 0x88a8,
                Some(_) => {
                    vlan.get("tpid").wrong("netdyno has x8100 and x88A8");
                    return None;
                }
            };
            let id = if vlan.get("id").is_there() { vlan.get("id").whole()? } else { 1 };
            let priority = vlan.get("priority").whole().unwrap_or(0);
            if !(1..=4094).contains(&id) || priority > 7 {
                vlan.wrong("must have an id of 1 to 4094 and a priority of 0 to 7");
                return None;
            }
            vlans.push(Vlan { tpid, id, priority });
        }
        Some(vlans)
    }

    fn read_addresses(&mut self, of: &At<'_>, ethernet: &Ethernet) {
        for (list, bits) in [("ipv4_addresses", 32), ("ipv6_addresses", 128)] {
            for at in of.get(list).each() {
                at.only(&["name", "address", "prefix", "gateway", "gateway_mac"]);
                let (name, address) = (self.name(&at), host(&at.get("address"), bits == 32));
                let gateway = host(&at.get("gateway"), bits == 32);
                if at.get("prefix").whole().is_some_and(|prefix| prefix > bits) {
                    at.get("prefix").wrong(&format!("must be at most {bits}"));
                }
                let fixed = at.get("gateway_mac");
                fixed.only(&["choice", "auto", "value"]);
                let gateway_mac = match fixed.choice("auto", &["auto", "value"]) {
                    "value" => mac(&fixed.get("value")),
                    _ => None,
                };
                let (Some(name), Some(address), Some(gateway)) = (name, address, gateway) else { continue };
                let numbers = |vlans: &[Vlan]| vlans.iter().map(|vlan| vlan.id).collect::<Vec<_>>();
                let other = self.addresses.iter().find(|other| {
                    other.port == ethernet.port
                        && other.address == address
                        && numbers(&other.vlans) == numbers(&ethernet.vlans)
                });
                if let Some(other) = other {
                    at.get("address").wrong(&format!("`{}` has it already", other.name));
                    continue;
                }
                let place = self.addresses.len();
                for known in [&name, &ethernet.name, &ethernet.device] {
                    self.names.entry(known.clone()).or_default().push(place);
                }
                self.addresses.push(Address {
                    name,
                    ethernet: ethernet.name.clone(),
                    device: ethernet.device.clone(),
                    port: ethernet.port,
                    mac: ethernet.mac,
                    vlans: ethernet.vlans.clone(),
                    mtu: ethernet.mtu,
                    address,
                    gateway,
                    gateway_mac,
                });
            }
        }
    }

    /// Those that a list of a flow names, of one family: of a device or an Ethernet the first.
    fn named(&self, of: &At<'_>, v4: bool) -> Option<Vec<usize>> {
        let mut found = Some(Vec::new());
        for name in of.each() {
            let text = name.name()?;
            let family = if v4 { "IPv4" } else { "IPv6" };
            let shown = report::units::printable(text);
            let places = self.names.get(text);
            let is = |at: &&usize| self.addresses.get(**at).is_some_and(|own| own.address.is_ipv4() == v4);
            let place = places.and_then(|places| places.iter().find(is));
            match place {
                Some(place) => found.iter_mut().for_each(|found| found.push(*place)),
                None => {
                    found = None;
                    name.wrong(&match places {
                        None => {
                            format!("there is no device `{shown}`, nor an Ethernet or address of this name")
                        }
                        Some(_) => {
                            format!("`{shown}` has no {family} address, and the flow's `packet` is {family}")
                        }
                    });
                }
            }
        }
        if of.count() == 0 {
            of.wrong("is needed: names of devices, of their Ethernets or of their addresses");
            return None;
        }
        found
    }

    /// The ends of a flow between devices, whose headers begin with these.
    pub fn ends(&self, of: &At<'_>, packet: &At<'_>) -> Option<Ends> {
        of.only(&["mode", "tx_names", "rx_names", "bidirectional"]);
        if of.get("bidirectional").flag() {
            of.get("bidirectional")
                .wrong("a flow has one way here: give a second one, with the names the other way round");
        }
        let v4 = Ends::family(packet)?;
        let (tx, rx) = (self.named(&of.get("tx_names"), v4), self.named(&of.get("rx_names"), v4));
        let (tx, rx) = (tx?, rx?);
        let mode = of.get("mode");
        let pairs: Vec<(usize, usize)> = match mode.text() {
            None | Some("mesh") => {
                if tx.len().saturating_mul(rx.len()) > PAIRS {
                    of.wrong(&format!("at most {PAIRS} pairs"));
                    return None;
                }
                tx.iter().flat_map(|tx| rx.iter().map(|rx| (*tx, *rx))).collect()
            }
            Some("one_to_one") if tx.len() == rx.len() => tx.into_iter().zip(rx).collect(),
            Some("one_to_one") => {
                of.wrong("one_to_one needs as many `rx_names` as `tx_names`");
                return None;
            }
            Some(_) => {
                mode.wrong("must be mesh or one_to_one");
                return None;
            }
        };
        let ends = Ends { pairs: pairs.into_iter().filter(|(tx, rx)| tx != rx).collect() };
        let senders = || ends.pairs.iter().filter_map(|(tx, _)| self.addresses.get(*tx));
        let Some(first) = senders().next() else {
            of.wrong("these names are no pair of two devices");
            return None;
        };
        if senders().any(|sender| sender.port != first.port) {
            of.get("tx_names").wrong("all senders of a flow are at one port here: give a flow for each port");
            return None;
        }
        if senders().any(|sender| sender.vlans.len() != first.vlans.len()) {
            of.get("tx_names")
                .wrong("all senders of a flow have the same number of VLAN tags: give a flow for each");
            return None;
        }
        Some(ends)
    }

    /// The port that sends, and those that receive.
    pub fn ports(&self, ends: &Ends) -> (usize, Vec<usize>) {
        let port = |at: &usize| self.addresses.get(*at).map(|address| address.port);
        let tx = ends.pairs.iter().find_map(|(tx, _)| port(tx)).unwrap_or_default();
        let mut rx: Vec<usize> = ends.pairs.iter().filter_map(|(_, rx)| port(rx)).collect();
        rx.sort_unstable();
        rx.dedup();
        (tx, rx)
    }

    /// What the devices know of a flow's headers: for each of the first ones fields, in expressions, that take these values unless others are given.
    pub fn fill(&self, ends: &Ends) -> Fill {
        let tx: Vec<&Address> = ends.pairs.iter().filter_map(|(tx, _)| self.addresses.get(*tx)).collect();
        let rx: Vec<&Address> = ends.pairs.iter().filter_map(|(_, rx)| self.addresses.get(*rx)).collect();
        let mut layers = vec![Filled {
            model: "ethernet",
            name: "ether",
            fields: vec![
                ("src", listed(tx.iter().map(|from| from.mac.to_string()))),
                ("dst", GATEWAYS.to_owned()),
            ],
        }];
        let tags = tx.first().map_or(0, |first| first.vlans.len());
        for at in 0..tags {
            let vlans = || tx.iter().filter_map(|from| from.vlans.get(at));
            let is_outer = vlans().any(|vlan| vlan.tpid == 0x88a8);
            layers.push(Filled {
                model: "vlan",
                name: if is_outer { "qinq" } else { "vlan" },
                fields: vec![
                    ("id", listed(vlans().map(|vlan| vlan.id.to_string()))),
                    ("prio", listed(vlans().map(|vlan| vlan.priority.to_string()))),
                ],
            });
        }
        let v4 = tx.first().is_none_or(|first| first.address.is_ipv4());
        let name = if v4 { "ipv4" } else { "ipv6" };
        let address = |of: &[&Address]| listed(of.iter().map(|own| own.address.to_string()));
        layers.push(Filled { model: name, name, fields: vec![("src", address(&tx)), ("dst", address(&rx))] });
        Fill { layers }
    }

    /// What of an expression is open is filled in by the gateways' addresses; `None`: one is not known.
    pub fn resolved(&self, frame: &str, ends: &Ends, known: &BTreeMap<usize, Mac>) -> Option<String> {
        if !frame.contains(GATEWAYS) {
            return Some(frame.to_owned());
        }
        let mac = |(tx, _): &(usize, usize)| {
            let own = self.addresses.get(*tx)?;
            own.gateway_mac.or_else(|| known.get(tx).copied()).map(|mac| mac.to_string())
        };
        let macs: Vec<String> = ends.pairs.iter().map(mac).collect::<Option<_>>()?;
        Some(frame.replace(GATEWAYS, &listed(macs.into_iter())))
    }

    /// Those whose gateways an expression needs to be asked for.
    pub fn open<'e>(&'e self, frame: &str, ends: &'e Ends) -> impl Iterator<Item = usize> + 'e {
        let needs = frame.contains(GATEWAYS);
        let is_open =
            move |tx: &usize| needs && self.addresses.get(*tx).is_some_and(|own| own.gateway_mac.is_none());
        ends.pairs.iter().map(|(tx, _)| *tx).filter(is_open)
    }
}

/// An expression as it is checked before any gateway has answered.
pub(crate) fn unresolved(frame: &str) -> String {
    frame.replace(GATEWAYS, "02:00:00:00:00:00")
}

/// Pairs of addresses, by their places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ends {
    pub pairs: Vec<(usize, usize)>,
}

impl Ends {
    /// Is the flow's first header behind Ethernet and tags IPv4, or IPv6? Another is an offence.
    fn family(packet: &At<'_>) -> Option<bool> {
        let headers = packet.each();
        let kind = |at: &At<'_>| at.get("choice").text().map(str::to_owned);
        let mut behind = headers.iter().skip(1).skip_while(|at| kind(at).as_deref() == Some("vlan"));
        match behind.next().and_then(kind).as_deref() {
            Some("ipv4") => Some(true),
            Some("ipv6") => Some(false),
            _ => {
                packet.wrong("flows between devices begin with ethernet, then vlan where the devices have tags, then ipv4 or ipv6");
                None
            }
        }
    }
}

/// A header that devices know something of.
#[derive(Debug)]
pub(crate) struct Filled {
    /// In the model, and in expressions.
    pub model: &'static str,
    pub name: &'static str,
    pub fields: Vec<(&'static str, String)>,
}

/// The first headers of a flow between devices.
#[derive(Debug, Default)]
pub(crate) struct Fill {
    pub layers: Vec<Filled>,
}

/// One value, where all are the same.
fn listed(mut values: impl Iterator<Item = String>) -> String {
    let Some(first) = values.next() else { return String::new() };
    let rest: Vec<String> = values.collect();
    if rest.iter().all(|value| *value == first) {
        return first;
    }
    format!("[{first}, {}]", rest.join(", "))
}

fn mac(of: &At<'_>) -> Option<Mac> {
    let read = of.name()?.parse::<Mac>().ok().filter(|mac| mac.0[0] & 1 == 0 && *mac != Mac::default());
    if read.is_none() {
        of.wrong("must be the Ethernet address of one host, 02:00:00:00:00:01");
    }
    read
}

fn host(of: &At<'_>, v4: bool) -> Option<IpAddr> {
    let read = of.name()?.parse::<IpAddr>().ok();
    let read = read.filter(|read| read.is_ipv4() == v4 && !read.is_unspecified() && !read.is_multicast());
    if read.is_none() {
        of.wrong(if v4 {
            "must be the IPv4 address of one host"
        } else {
            "must be the IPv6 address of one host"
        });
    }
    read
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    fn address(name: &str, address: &str, gateway: &str) -> Value {
        json!({"name": name, "address": address, "gateway": gateway})
    }

    /// Two devices on the first port, one of them with a tag, and one on the second; and a flow.
    fn config(tx: &[&str], rx: &[&str], packet: &[&str], more: &Value) -> Value {
        let ethernet = |name: &str, port: &str, mac: &str, vlan: bool, address: Value| {
            let vlans =
                if vlan { json!([{"name": format!("{name}.v"), "id": 7, "priority": 3}]) } else { json!([]) };
            json!({"name": name, "ethernets": [{
                "name": format!("{name}.e"), "mac": mac, "vlans": vlans, "connection": {"choice": "port_name", "port_name": port},
                "ipv4_addresses": [address], "ipv6_addresses": [],
            }]})
        };
        let mut device = json!({"tx_names": tx, "rx_names": rx});
        for (name, value) in more.as_object().expect("members") {
            device[name] = value.clone();
        }
        json!({
            "ports": [{"name": "a", "location": "x"}, {"name": "b", "location": "y"}],
            "devices": [
                ethernet("d1", "a", "02:00:00:00:00:01", false, address("d1.i", "10.0.0.1", "10.0.0.9")),
                ethernet("d2", "a", "02:00:00:00:00:02", false, address("d2.i", "10.0.0.2", "10.0.0.9")),
                ethernet("d3", "a", "02:00:00:00:00:03", true, address("d3.i", "10.0.0.3", "10.0.0.9")),
                ethernet("d4", "b", "02:00:00:00:00:04", false, address("d4.i", "10.1.0.4", "10.1.0.9")),
                ethernet("d5", "b", "02:00:00:00:00:05", false, address("d5.i", "10.1.0.5", "10.1.0.9")),
            ],
            "flows": [{
                "name": "f", "size": {"fixed": 128}, "tx_rx": {"choice": "device", "device": device},
                "packet": packet.iter().map(|name| json!({"choice": name, *name: {}})).collect::<Vec<_>>(),
            }],
        })
    }

    const IP: &[&str] = &["ethernet", "ipv4", "udp"];

    #[track_caller]
    fn frame(value: &Value) -> (Config, String) {
        let (config, findings) = Config::read(value);
        assert_eq!(findings.offences(), Vec::<String>::new());
        let (_, frame) = config.flows[0].between.clone().expect("between devices");
        (config, frame)
    }

    #[test]
    fn what_the_headers_leave_open_is_the_devices() {
        let (read, text) = frame(&config(&["d1", "d2.e"], &["d4.i", "d5"], IP, &json!({})));
        assert_eq!(
            text,
            "ether(src=[02:00:00:00:00:01, 02:00:00:00:00:01, 02:00:00:00:00:02, 02:00:00:00:00:02], dst=@gateways@)\
             /ipv4(src=[10.0.0.1, 10.0.0.1, 10.0.0.2, 10.0.0.2], dst=[10.1.0.4, 10.1.0.5, 10.1.0.4, 10.1.0.5])/udp"
        );
        assert_eq!((read.flows[0].tx, &read.flows[0].rx[..]), (0, &[1][..]));
        // Each frame goes to the gateway of who sends it; while one is not known there is no frame.
        let (ends, _) = read.flows[0].between.as_ref().expect("between devices");
        let mac = |last: u8| Mac([2, 0, 0, 0, 0, last]);
        let mut known = BTreeMap::from([(0, mac(8))]);
        assert_eq!(read.devices.resolved(&text, ends, &known), None);
        known.insert(1, mac(9));
        let whole = read.devices.resolved(&text, ends, &known).expect("all are known");
        let wanted = "dst=[02:00:00:00:00:08, 02:00:00:00:00:08, 02:00:00:00:00:09, 02:00:00:00:00:09])/ipv4";
        assert!(whole.contains(wanted), "{whole}");
        traffic::expr::compile(&whole, &traffic::expr::Options::default()).expect("an expression");
        let (_, text) = frame(&config(&["d1", "d2"], &["d4", "d5"], IP, &json!({"mode": "one_to_one"})));
        assert!(text.contains("src=[10.0.0.1, 10.0.0.2], dst=[10.1.0.4, 10.1.0.5]"), "{text}");
        let (_, text) = frame(&config(&["d3"], &["d4"], &["ethernet", "vlan", "ipv4"], &json!({})));
        assert_eq!(
            text,
            "ether(src=02:00:00:00:00:03, dst=@gateways@)/vlan(id=7, prio=3)/ipv4(src=10.0.0.3, dst=10.1.0.4)"
        );
        // What is given stays, and then nobody is asked.
        let mut given = config(&["d1"], &["d4"], IP, &json!({}));
        given["flows"][0]["packet"][0]["ethernet"] = json!({"dst": {"value": "02:00:00:00:00:77"}});
        given["flows"][0]["packet"][1]["ipv4"] =
            json!({"dst": {"value": "10.9.9.9"}, "src": {"choice": "auto"}});
        let (read, text) = frame(&given);
        assert_eq!(
            text,
            "ether(dst=02:00:00:00:00:77, src=02:00:00:00:00:01)/ipv4(dst=10.9.9.9, src=10.0.0.1)/udp"
        );
        let (ends, frame) = read.flows[0].between.as_ref().expect("between devices");
        assert_eq!(read.devices.open(frame, ends).count(), 0);
    }

    #[test]
    fn flows_between_devices_that_cannot_be_are_refused_by_their_path() {
        let tagged = &["ethernet", "vlan", "ipv4"];
        let v6 = &["ethernet", "ipv6", "udp"];
        for (value, path) in [
            (
                config(&["d1"], &["d2"], IP, &json!({})),
                "flows[0].tx_rx.device: these devices are at one port",
            ),
            (config(&["d1"], &["d1"], IP, &json!({})), "flows[0].tx_rx.device: these names are no pair"),
            (config(&["d1", "d4"], &["d5"], IP, &json!({})), "flows[0].tx_rx.device.tx_names: all senders"),
            (config(&["d1", "d3"], &["d5"], IP, &json!({})), "flows[0].tx_rx.device.tx_names: all senders"),
            (config(&["d1"], &["nobody"], IP, &json!({})), "flows[0].tx_rx.device.rx_names[0]: there is no"),
            (config(&["d1"], &["d4"], v6, &json!({})), "flows[0].tx_rx.device.tx_names[0]: `d1` has no IPv6"),
            (config(&["d1"], &[], IP, &json!({})), "flows[0].tx_rx.device.rx_names: is needed"),
            (config(&["d1"], &["d4"], tagged, &json!({})), "flows[0].packet[1].choice: must be `ipv4`"),
            (config(&["d3"], &["d4"], IP, &json!({})), "flows[0].packet[1].choice: must be `vlan`"),
            (config(&["d1"], &["d4"], &["ethernet", "arp"], &json!({})), "flows[0].packet: flows between"),
            (config(&["d1"], &["d4"], IP, &json!({"mode": "odd"})), "flows[0].tx_rx.device.mode: must be"),
            (
                config(&["d1"], &["d4"], IP, &json!({"bidirectional": true})),
                "flows[0].tx_rx.device.bidirectional",
            ),
            (
                config(&["d1", "d2"], &["d4"], IP, &json!({"mode": "one_to_one"})),
                "flows[0].tx_rx.device: one_to_one needs",
            ),
        ] {
            let (_, findings) = Config::read(&value);
            let told = findings.offences();
            assert!(told.iter().any(|text| text.starts_with(path)), "{path}: {told:?}");
        }
        let mut odd = config(&["d1"], &["d4"], IP, &json!({}));
        let devices = odd["devices"].as_array_mut().expect("devices");
        devices[0]["bgp"] = json!({"router_id": "1.1.1.1"});
        devices[1]["ethernets"][0]["ipv4_addresses"][0]["address"] = "10.0.0.1".into();
        devices[2]["ethernets"][0]["mac"] = "01:00:00:00:00:01".into();
        devices[3]["ethernets"][0]["name"] = "d1.e".into();
        devices[4]["ethernets"][0]["ipv4_addresses"][0]["gateway"] = "::1".into();
        let told = Config::read(&odd).1.offences();
        for path in [
            "devices[0].bgp",
            "devices[1].ethernets[0].ipv4_addresses[0].address: `d1.i` has it already",
            "devices[2].ethernets[0].mac",
            "devices[3].ethernets[0].name: there are two",
            "devices[4].ethernets[0].ipv4_addresses[0].gateway",
        ] {
            assert!(told.iter().any(|text| text.starts_with(path)), "{path}: {told:?}");
        }
    }
}
