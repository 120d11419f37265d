//! Fields of packets that other tools have options for: `--dst 10.0.0.1 --dport 80` is `ipv4(dst=10.0.0.1)/udp(dport=80)` here.

use wire::proto::Protocol;

/// What stands behind such an option.
enum Value {
    /// The value that is typed.
    Typed,
    /// None: it is this one.
    Is(&'static str),
    /// None: the layer alone is meant.
    Layer,
}

/// An option of other tools.
pub struct Field {
    pub typed: &'static [&'static str],
    layer: &'static str,
    field: &'static str,
    value: Value,
    /// A packet that has it.
    pub example: &'static str,
}

/// A field with its value; without one the layer alone.
pub struct Set {
    layer: String,
    field: Option<(String, String)>,
}

impl Field {
    pub fn takes_value(&self) -> bool {
        matches!(self.value, Value::Typed)
    }

    pub fn is_destination(&self) -> bool {
        self.layer == IP && self.field == "dst" && self.takes_value()
    }

    pub fn set(&self, value: Option<String>) -> Option<Set> {
        let value = match &self.value {
            Value::Layer => return Some(Set::layer(self.layer)),
            Value::Is(value) => (*value).to_owned(),
            Value::Typed if self.layer == "raw" => return None,
            Value::Typed => value?,
        };
        Some(Set { layer: self.layer.to_owned(), field: Some((self.field.to_owned(), value)) })
    }
}

impl Set {
    pub fn layer(name: &str) -> Set {
        Set { layer: name.to_ascii_lowercase(), field: None }
    }

    pub fn destination(host: &str) -> Set {
        Set { layer: IP.to_owned(), field: Some(("dst".to_owned(), host.to_owned())) }
    }

    pub fn port(port: &str) -> Set {
        Set { layer: PORTS.to_owned(), field: Some(("dport".to_owned(), port.to_owned())) }
    }
}

/// IPv4 or IPv6, as the packet has it.
const IP: &str = "ip";
/// TCP, UDP or SCTP, as the packet has it.
const PORTS: &str = "ports";

const fn of(
    typed: &'static [&'static str],
    layer: &'static str,
    field: &'static str,
    value: Value,
    example: &'static str,
) -> Field {
    Field { typed, layer, field, value, example }
}

/// What other tools have options for, and we have fields of packets.
pub const FIELDS: &[Field] = &[
    of(
        &["--dst", "--dst-ip", "--dip", "--dest", "--daddr", "--dst_ip", "--to", "--target", "--host"],
        IP,
        "dst",
        Value::Typed,
        "ipv4(dst=198.18.0.2)/udp",
    ),
    of(
        &["--src", "--src-ip", "--sip", "--saddr", "--src_ip", "-a", "--spoof", "--from"],
        IP,
        "src",
        Value::Typed,
        "ipv4(src=198.18.0.1)/udp",
    ),
    of(
        &["--rand-source"],
        "ipv4",
        "src",
        Value::Is("random(10.0.0.0/8)"),
        "ipv4(src=random(10.0.0.0/8))/udp",
    ),
    of(&["--rand-dest"], "ipv4", "dst", Value::Is("random(10.0.0.0/8)"), "ipv4(dst=random(10.0.0.0/8))/udp"),
    of(
        &["--dport", "--dst-port", "--destport", "--port", "-p"],
        PORTS,
        "dport",
        Value::Typed,
        "ipv4/udp(dport=53)",
    ),
    of(
        &["--sport", "--src-port", "--baseport", "--source-port", "-g"],
        PORTS,
        "sport",
        Value::Typed,
        "ipv4/udp(sport=1000..1999)",
    ),
    of(&["--dst-mac", "--dmac"], "ether", "dst", Value::Typed, "ether(dst=02:00:00:00:00:02)/ipv4/udp"),
    of(&["--src-mac", "--smac"], "ether", "src", Value::Typed, "ether(src=02:00:00:00:00:01)/ipv4/udp"),
    of(&["--vlan", "--vlan-id"], "vlan", "id", Value::Typed, "vlan(id=100)/ipv4/udp"),
    of(&["--mpls"], "mpls", "label", Value::Typed, "mpls(label=100)/ipv4/udp"),
    of(&["--ttl"], IP, "ttl", Value::Typed, "ipv4(ttl=64)/udp"),
    of(&["--tos", "-Q"], IP, "tos", Value::Typed, "ipv4(tos=0xb8)/udp"),
    of(&["--dscp"], IP, "dscp", Value::Typed, "ipv4(dscp=46)/udp"),
    of(&["-S", "--syn"], "tcp", "flags", Value::Is("S"), "ipv4/tcp(flags=S)"),
    of(&["--flags", "--tcp-flags"], "tcp", "flags", Value::Typed, "ipv4/tcp(flags=S)"),
    of(&["--tcp"], "tcp", "", Value::Layer, "ipv4/tcp(flags=S)"),
    of(&["--udp", "-u", "-2"], "udp", "", Value::Layer, "ipv4/udp"),
    of(&["--icmp", "-1"], "icmp", "", Value::Layer, "ipv4/icmp"),
    of(&["--arp", "--arp-type"], "arp", "", Value::Layer, "arp(tpa=198.18.0.2)"),
    of(&["--ipv6", "-6"], "ipv6", "", Value::Layer, "ipv6/udp"),
    of(
        &["--payload", "--data", "--file", "--data-string"],
        "raw",
        "",
        Value::Typed,
        "ipv4/udp/raw(\"text\")",
    ),
];

pub fn by_name(typed: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.typed.contains(&typed))
}

/// A packet with these fields: that which was typed, or one of UDP over IPv4 if they say no other. None for a packet that is
/// more than layers with simple fields, and for what would be none.
pub fn packet(what: Option<&str>, sets: &[Set]) -> Option<String> {
    let mut layers = what.map_or(Some(Vec::new()), read)?;
    let is = |name: &str, of: &[&str]| of.contains(&name);
    let has = |layers: &[Layer], of: &[&str]| {
        layers.iter().find(|layer| is(&layer.name, of)).map(|layer| layer.name.clone())
    };
    let named = |of: &[&str]| sets.iter().find(|set| is(&set.layer, of)).map(|set| set.layer.clone());
    let is_v6 = sets
        .iter()
        .any(|set| set.layer == IP && set.field.as_ref().is_some_and(|(_, value)| value.contains(':')));
    const IPS: [&str; 2] = ["ipv4", "ipv6"];
    const OVER: [&str; 3] = ["tcp", "udp", "sctp"];
    let ip = has(&layers, &IPS)
        .or_else(|| named(&IPS))
        .unwrap_or_else(|| if is_v6 { "ipv6" } else { "ipv4" }.to_owned());
    let ports = has(&layers, &OVER).or_else(|| named(&OVER)).unwrap_or_else(|| "udp".to_owned());
    for set in sets {
        let name = match set.layer.as_str() {
            IP => &ip,
            PORTS => &ports,
            name => name,
        };
        let at = put(&mut layers, name);
        if let (Some((field, value)), Some(layer)) = (&set.field, layers.get_mut(at)) {
            layer.fields.retain(|(own, _)| own != field);
            layer.fields.push((field.clone(), value.clone()));
        }
    }
    let has_over = layers.iter().any(|layer| rank(&layer.name) >= rank("udp"));
    if what.is_none() && has(&layers, &["arp"]).is_none() {
        put(&mut layers, &ip);
        if !has_over {
            put(&mut layers, &ports);
        }
    }
    let written: Vec<String> = layers.iter().map(Layer::written).collect();
    let written = written.join("/");
    traffic::expr::compile(&written, &traffic::expr::Options::default()).is_ok().then_some(written)
}

struct Layer {
    name: String,
    fields: Vec<(String, String)>,
}

impl Layer {
    fn written(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if fields.is_empty() { self.name.clone() } else { format!("{}({})", self.name, fields.join(",")) }
    }
}

/// The layers of a packet of simple fields.
fn read(what: &str) -> Option<Vec<Layer>> {
    // A prefix has the mark that stands between layers.
    let mut layers = Vec::new();
    let mut rest = what;
    while !rest.is_empty() {
        let end = rest.find(['/', '(']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at_checked(end)?;
        Protocol::by_name(name)?;
        let (inside, behind) = match behind.strip_prefix('(') {
            Some(behind) => behind.split_once(')')?,
            None => ("", behind),
        };
        if inside.contains(['(', '"', '[']) {
            return None;
        }
        let fields = inside.split(',').filter(|field| !field.trim().is_empty()).map(|field| {
            field.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        });
        layers.push(Layer { name: name.to_owned(), fields: fields.collect::<Option<_>>()? });
        rest = match behind.strip_prefix('/') {
            Some(behind) => behind,
            None if behind.is_empty() => "",
            None => return None,
        };
    }
    Some(layers)
}

/// Where a layer stands among others.
fn rank(name: &str) -> usize {
    ["ether", "vlan", "mpls", "ipv4", "udp"].iter().position(|known| *known == name).unwrap_or(match name {
        "qinq" => 1,
        "ipv6" | "arp" => 3,
        "raw" => 5,
        _ => 4,
    })
}

/// The place of a layer, put in where there is none yet.
fn put(layers: &mut Vec<Layer>, name: &str) -> usize {
    if let Some(at) = layers.iter().position(|layer| layer.name == name) {
        return at;
    }
    let at = layers.iter().position(|layer| rank(&layer.name) > rank(name)).unwrap_or(layers.len());
    layers.insert(at, Layer { name: name.to_owned(), fields: Vec::new() });
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_other_tools_have_options_for_stand_in_the_packet() {
        let of = |what: Option<&str>, typed: &[(&str, &str)]| {
            let set = |(name, value): &(&str, &str)| {
                by_name(name).expect(name).set(Some((*value).to_owned())).expect("a value")
            };
            packet(what, &typed.iter().map(set).collect::<Vec<_>>())
        };
        for (what, typed, said) in [
            (None, &[("--dst", "10.0.0.1"), ("--dport", "80")][..], Some("ipv4(dst=10.0.0.1)/udp(dport=80)")),
            (None, &[("-p", "80"), ("-S", "")], Some("ipv4/tcp(dport=80,flags=S)")),
            (None, &[("--icmp", ""), ("--dst", "10.0.0.1")], Some("ipv4(dst=10.0.0.1)/icmp")),
            (None, &[("--vlan", "5")], Some("vlan(id=5)/ipv4/udp")),
            (None, &[("--dst", "2001:db8::1")], Some("ipv6(dst=2001:db8::1)/udp")),
            (
                Some("ipv4(src=10.0.0.0/8)/tcp"),
                &[("--dport", "80")],
                Some("ipv4(src=10.0.0.0/8)/tcp(dport=80)"),
            ),
            (Some("ipv4(ttl=5)/udp"), &[("--ttl", "7")], Some("ipv4(ttl=7)/udp")),
            // What would be no packet is not told.
            (None, &[("--dst", "nowhere at all")], None),
            (Some("ipv4/udp/raw(\"a/b\")"), &[("--ttl", "7")], None),
        ] {
            assert_eq!(of(what, typed).as_deref(), said, "{what:?} {typed:?}");
        }
    }
}
