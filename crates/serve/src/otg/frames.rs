//! A flow's headers as a packet expression: each field of the model by the field of ours that is the same bits.
//!
//! An absent field means that the generator decides, so it is left to the expression, where lengths, checksums and the numbers of what
//! follows are right by themselves.

use super::devices::{Fill, Filled};
use super::read::At;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// How a field's values are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number of so many bits.
    Bits(u32),
    Mac,
    Ip4,
    Ip6,
    /// `generated` or `custom`.
    Checksum,
}

/// A field: its name in the model, in expressions, and how it is written.
type Field = (&'static str, &'static str, Kind);

use Kind::{Bits, Checksum, Ip4, Ip6, Mac};

/// A header: its name in the model, in expressions, its fields, and members that are read elsewhere.
type Header = (&'static str, &'static str, &'static [Field], &'static [&'static str]);

const HEADERS: &[Header] = &[
    ("ethernet", "ether", &[("dst", "dst", Mac), ("src", "src", Mac), ("ether_type", "type", Bits(16))], &[]),
    (
        "vlan",
        "vlan",
        &[("priority", "prio", Bits(3)), ("cfi", "dei", Bits(1)), ("id", "id", Bits(12))],
        &["tpid"],
    ),
    (
        "vxlan",
        "vxlan",
        &[
            ("flags", "flags", Bits(8)),
            ("reserved0", "reserved1", Bits(24)),
            ("vni", "vni", Bits(24)),
            ("reserved1", "reserved2", Bits(8)),
        ],
        &[],
    ),
    (
        "ipv4",
        "ipv4",
        &[
            ("version", "version", Bits(4)),
            ("header_length", "ihl", Bits(4)),
            ("total_length", "len", Bits(16)),
            ("identification", "id", Bits(16)),
            ("fragment_offset", "frag", Bits(13)),
            ("time_to_live", "ttl", Bits(8)),
            ("protocol", "proto", Bits(8)),
            ("header_checksum", "chksum", Checksum),
            ("src", "src", Ip4),
            ("dst", "dst", Ip4),
        ],
        &["priority", "reserved", "dont_fragment", "more_fragments", "options"],
    ),
    (
        "ipv6",
        "ipv6",
        &[
            ("version", "version", Bits(4)),
            ("traffic_class", "tc", Bits(8)),
            ("flow_label", "fl", Bits(20)),
            ("payload_length", "plen", Bits(16)),
            ("next_header", "nh", Bits(8)),
            ("hop_limit", "hlim", Bits(8)),
            ("src", "src", Ip6),
            ("dst", "dst", Ip6),
        ],
        &[],
    ),
    (
        "tcp",
        "tcp",
        &[
            ("src_port", "sport", Bits(16)),
            ("dst_port", "dport", Bits(16)),
            ("seq_num", "seq", Bits(32)),
            ("ack_num", "ack", Bits(32)),
            ("data_offset", "dataofs", Bits(4)),
            ("window", "window", Bits(16)),
            ("checksum", "chksum", Checksum),
        ],
        &["ecn_ns", "ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack", "ctl_psh", "ctl_rst", "ctl_syn", "ctl_fin"],
    ),
    (
        "udp",
        "udp",
        &[
            ("src_port", "sport", Bits(16)),
            ("dst_port", "dport", Bits(16)),
            ("length", "len", Bits(16)),
            ("checksum", "chksum", Checksum),
        ],
        &[],
    ),
    (
        "mpls",
        "mpls",
        &[
            ("label", "label", Bits(20)),
            ("traffic_class", "tc", Bits(3)),
            ("bottom_of_stack", "s", Bits(1)),
            ("time_to_live", "ttl", Bits(8)),
        ],
        &[],
    ),
    (
        "arp",
        "arp",
        &[
            ("hardware_type", "hwtype", Bits(16)),
            ("protocol_type", "ptype", Bits(16)),
            ("hardware_length", "hwlen", Bits(8)),
            ("protocol_length", "plen", Bits(8)),
            ("operation", "op", Bits(16)),
            ("sender_hardware_addr", "hwsrc", Mac),
            ("sender_protocol_addr", "psrc", Ip4),
            ("target_hardware_addr", "hwdst", Mac),
            ("target_protocol_addr", "pdst", Ip4),
        ],
        &[],
    ),
    (
        "gre",
        "gre",
        &[
            ("checksum_present", "c", Bits(1)),
            ("version", "version", Bits(3)),
            ("protocol", "proto", Bits(16)),
            ("checksum", "chksum", Checksum),
        ],
        &["reserved0", "reserved1"],
    ),
    (
        "gtpv1",
        "gtpu",
        &[
            ("version", "version", Bits(3)),
            ("protocol_type", "pt", Bits(1)),
            ("e_flag", "e", Bits(1)),
            ("s_flag", "s", Bits(1)),
            ("pn_flag", "pn", Bits(1)),
            ("message_type", "type", Bits(8)),
            ("message_length", "len", Bits(16)),
            ("teid", "teid", Bits(32)),
            ("squence_number", "seq", Bits(16)),
            ("n_pdu_number", "npdu", Bits(8)),
        ],
        &["reserved"],
    ),
];

const ECHO: &[Field] = &[
    ("type", "type", Bits(8)),
    ("code", "code", Bits(8)),
    ("identifier", "id", Bits(16)),
    ("sequence_number", "seq", Bits(16)),
    ("checksum", "chksum", Checksum),
];

/// Bits of TCP's flags, from FIN on.
const FLAGS: [&str; 9] =
    ["ctl_fin", "ctl_syn", "ctl_rst", "ctl_psh", "ctl_ack", "ctl_urg", "ecn_echo", "ecn_cwr", "ecn_ns"];

/// Values of a list that is written out.
const LISTED: u64 = 4096;

/// What the headers of a flow come to as an expression, of which `fill` knows what the first ones have where nothing is given. `None`:
/// something is wrong, and was told.
pub(crate) fn expression(packet: &At<'_>, fill: &Fill) -> Option<String> {
    let mut layers = Vec::new();
    let mut all = Some(());
    for (at, header) in packet.each().iter().enumerate() {
        match layer(header, fill.layers.get(at)) {
            Some(layer) => layers.push(layer),
            None => all = None,
        }
    }
    all?;
    if layers.is_empty() {
        return Some("ether".to_owned());
    }
    Some(layers.join("/"))
}

const CHOICES: &[&str] = &[
    "ethernet", "vlan", "vxlan", "ipv4", "ipv6", "tcp", "udp", "mpls", "arp", "gre", "gtpv1", "icmp",
    "icmpv6", "custom",
];

fn layer(header: &At<'_>, filled: Option<&Filled>) -> Option<String> {
    let choice = header.choice("ethernet", CHOICES);
    if choice.is_empty() {
        return None;
    }
    if let Some(filled) = filled.filter(|filled| filled.model != choice) {
        let what = format!(
            "must be `{}`: the devices that send have a header for each of their tags, and no other",
            filled.model
        );
        header.get("choice").wrong(&what);
        return None;
    }
    header.only(&["choice", choice]);
    let of = header.get(choice);
    match choice {
        "custom" => {
            of.only(&["bytes", "metric_tags"]);
            of.not(&[("metric_tags", NO_TAGS)]);
            let bytes = of.get("bytes").name()?;
            let bytes: String = bytes.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
            if bytes.len() % 2 == 1 || !bytes.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                of.get("bytes").wrong("must be bytes in hexadecimal");
                return None;
            }
            Some(format!("raw(hex=\"{bytes}\")"))
        }
        "icmp" | "icmpv6" => {
            of.only(&["choice", "echo"]);
            if of.choice("echo", &["echo"]).is_empty() {
                return None;
            }
            let echo = of.get("echo");
            let names: Vec<&str> = ECHO.iter().map(|(name, ..)| *name).collect();
            echo.only(&names);
            let mut given = Vec::new();
            fields(&echo, ECHO, &mut given);
            // The model's default is a request, of both.
            if !echo.get("type").is_there() {
                given.insert(0, format!("type={}", if choice == "icmp" { 8 } else { 128 }));
            }
            Some(written(choice, &given))
        }
        _ => table(choice, &of, filled),
    }
}

fn written(name: &str, given: &[String]) -> String {
    if given.is_empty() { name.to_owned() } else { format!("{name}({})", given.join(", ")) }
}

fn table(choice: &str, of: &At<'_>, filled: Option<&Filled>) -> Option<String> {
    let (_, name, own, elsewhere) = HEADERS.iter().find(|(model, ..)| *model == choice)?;
    let mut names: Vec<&str> = own.iter().map(|(name, ..)| *name).chain(elsewhere.iter().copied()).collect();
    let queue = "priority flow control is not emulated: leave it out";
    names.extend(["pfc_queue", "dst_usids", "next_extension_header_type", "extension_headers"]);
    of.only(&names);
    of.not(&[
        ("pfc_queue", queue),
        ("options", "options of IPv4 are not offered here: leave them out"),
        ("dst_usids", "give `dst`"),
        ("extension_headers", "not offered: leave it out"),
        ("next_extension_header_type", "not offered: leave it out"),
    ]);
    let mut given = Vec::new();
    fields(of, own, &mut given);
    for (field, value) in filled.iter().flat_map(|filled| &filled.fields) {
        let is_given = |given: &String| given.split_once('=').is_some_and(|(name, _)| name == *field);
        if !given.iter().any(is_given) {
            given.push(format!("{field}={value}"));
        }
    }
    let mut name = *name;
    match choice {
        "vlan" => match of.get("tpid").is_there().then(|| constant(&of.get("tpid"), 16)) {
            None => name = filled.map_or(name, |filled| filled.name),
            Some(Some(0x8100)) => {}
            Some(Some(0x88a8)) => name = "qinq",
            Some(Some(_)) => of.get("tpid").wrong("netdyno sends 33024 (0x8100) and 34984 (0x88a8)"),
            Some(None) => {}
        },
        "ipv4" => {
            let bits = [("reserved", 4), ("dont_fragment", 2), ("more_fragments", 1)];
            bit_flags(of, &bits, "flags", &mut given);
            priority(&of.get("priority"), &mut given);
        }
        "tcp" => {
            let bits: Vec<(&str, u64)> =
                FLAGS.iter().enumerate().map(|(at, name)| (*name, 1 << at)).collect();
            bit_flags(of, &bits, "flags", &mut given);
        }
        "gre" | "gtpv1" => {
            for reserved in ["reserved", "reserved0", "reserved1"] {
                let found = of.get(reserved);
                if found.is_there()
                    && found.value().is_some_and(|value| value.is_object() && constant(&found, 16) != Some(0))
                {
                    found.wrong("must be 0 or left out");
                }
            }
        }
        _ => {}
    }
    Some(written(name, &given))
}

/// Bits that are one field of an expression.
fn bit_flags(of: &At<'_>, bits: &[(&str, u64)], field: &str, given: &mut Vec<String>) {
    // Of TCP's the model says that those which nobody names are not set.
    if field_is_left_out(of, bits) {
        return;
    }
    let mut sum = 0;
    for (name, bit) in bits {
        if constant(&of.get(name), 1) == Some(1) {
            sum |= bit;
        }
    }
    given.push(format!("{field}={sum}"));
}

fn field_is_left_out(of: &At<'_>, bits: &[(&str, u64)]) -> bool {
    bits.len() < FLAGS.len() && bits.iter().all(|(name, _)| !of.get(name).is_there())
}

fn priority(of: &At<'_>, given: &mut Vec<String>) {
    if !of.is_there() {
        return;
    }
    of.only(&["choice", "raw", "tos", "dscp"]);
    match of.choice("dscp", &["raw", "tos", "dscp"]) {
        "raw" => given.extend(field(&of.get("raw"), Bits(8)).map(|value| format!("tos={value}"))),
        "dscp" => {
            let dscp = of.get("dscp");
            dscp.only(&["phb", "ecn"]);
            let parts = [("phb", "dscp", Bits(6)), ("ecn", "ecn", Bits(2))];
            fields(&dscp, &parts, given);
        }
        "tos" => {
            let tos = of.get("tos");
            let parts = [
                ("precedence", 5),
                ("delay", 4),
                ("throughput", 3),
                ("reliability", 2),
                ("monetary", 1),
                ("unused", 0),
            ];
            tos.only(&parts.map(|(name, _)| name));
            let sum: u64 = parts
                .iter()
                .filter_map(|(name, shift)| {
                    Some(constant(&tos.get(name), if *shift == 5 { 3 } else { 1 })? << shift)
                })
                .sum();
            given.push(format!("tos={sum}"));
        }
        _ => {}
    }
}

const NO_TAGS: &str = "metric tags are not offered: make a flow for each value that is to be counted apart";

fn fields(of: &At<'_>, own: &[Field], given: &mut Vec<String>) {
    for (name, ours, kind) in own {
        given.extend(field(&of.get(name), *kind).map(|value| format!("{ours}={value}")));
    }
}

/// A field that stands still. An offence if it does not.
fn constant(of: &At<'_>, bits: u32) -> Option<u64> {
    if !of.is_there() {
        return None;
    }
    of.not(&[("metric_tags", NO_TAGS)]);
    match of.choice("value", &["value", "values", "increment", "decrement", "random", "auto"]) {
        "value" => number(&of.get("value"), Bits(bits)).and_then(|value| u64::try_from(value).ok()),
        "auto" => None,
        _ => {
            of.wrong("this field stands still: give a `value`");
            None
        }
    }
}

/// The value of a field as an expression has it; `None`: the generator decides, or it is wrong, which was told.
fn field(of: &At<'_>, kind: Kind) -> Option<String> {
    if !of.is_there() {
        return None;
    }
    if kind == Checksum {
        of.only(&["choice", "generated", "custom"]);
        return match of.choice("generated", &["generated", "custom"]) {
            "custom" => number(&of.get("custom"), Bits(16)).map(|value| value.to_string()),
            _ => match of.get("generated").text() {
                Some("bad") => Some("bad".to_owned()),
                Some("good") | None => None,
                Some(_) => {
                    of.get("generated").wrong("must be good or bad");
                    None
                }
            },
        };
    }
    of.only(&["choice", "value", "values", "increment", "decrement", "random", "auto", "metric_tags"]);
    of.not(&[("metric_tags", NO_TAGS)]);
    match of.choice("value", &["value", "values", "increment", "decrement", "random", "auto"]) {
        "value" => number(&of.get("value"), kind).map(|value| spelled(value, kind)),
        "values" => {
            let values = of.get("values");
            let all: Vec<u128> = values.each().iter().filter_map(|value| number(value, kind)).collect();
            match all.len() {
                0 => None,
                count if count as u64 > LISTED => {
                    values.wrong(&format!("at most {LISTED} values"));
                    None
                }
                _ => Some(list(&all, kind)),
            }
        }
        "increment" => walk(&of.get("increment"), kind, false),
        "decrement" => walk(&of.get("decrement"), kind, true),
        "random" => random(&of.get("random"), kind),
        _ => None,
    }
}

fn list(all: &[u128], kind: Kind) -> String {
    match all {
        [one] => spelled(*one, kind),
        _ => format!("[{}]", all.iter().map(|value| spelled(*value, kind)).collect::<Vec<_>>().join(", ")),
    }
}

fn most(kind: Kind) -> u128 {
    match kind {
        Bits(bits) => (1 << bits.min(64)) - 1,
        Mac => (1 << 48) - 1,
        Ip4 => u128::from(u32::MAX),
        Ip6 => u128::MAX,
        Checksum => 0xffff,
    }
}

fn walk(of: &At<'_>, kind: Kind, down: bool) -> Option<String> {
    of.only(&["start", "step", "count"]);
    let start = number(&of.get("start"), kind).unwrap_or(0);
    let step = if of.get("step").is_there() { number(&of.get("step"), kind)? } else { 1 };
    let count = of.get("count").whole().unwrap_or(1).max(1);
    if count == 1 || step == 0 {
        return Some(spelled(start, kind));
    }
    let way = step.checked_mul(u128::from(count - 1));
    let last = match down {
        false => way.and_then(|way| start.checked_add(way)).filter(|last| *last <= most(kind)),
        true => way.and_then(|way| start.checked_sub(way)),
    };
    let Some(last) = last else {
        let end = if down { "below 0" } else { "beyond the field's greatest value" };
        of.wrong(&format!("`start`, `step` and `count` lead {end}"));
        return None;
    };
    let step = if step == 1 { String::new() } else { format!(" step={step}") };
    Some(format!("{}..{}{step}", spelled(start, kind), spelled(last, kind)))
}

/// So many values, drawn once from the seed, then again the same.
fn random(of: &At<'_>, kind: Kind) -> Option<String> {
    of.only(&["min", "max", "seed", "count"]);
    let least = number(&of.get("min"), kind).unwrap_or(0);
    let greatest = if of.get("max").is_there() { number(&of.get("max"), kind)? } else { most(kind) };
    let seed = of.get("seed").whole().unwrap_or(1);
    let count = of.get("count").whole().unwrap_or(1).max(1);
    if least > greatest {
        of.wrong("`min` is greater than `max`");
        return None;
    }
    // With seed 0 nothing needs to be repeatable, so all values of the run differ as they come.
    if seed == 0 {
        return Some(format!("random({}..{})", spelled(least, kind), spelled(greatest, kind)));
    }
    if count > LISTED {
        of.get("count").wrong(&format!("at most {LISTED} values are drawn; with `seed` 0 any number"));
        return None;
    }
    let mut draw = Draw(seed);
    let all: Vec<u128> = (0..count).map(|_| draw.between(least, greatest)).collect();
    Some(list(&all, kind))
}

/// Numbers by a seed: splitmix64, whose constants are in its author's public text.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, least: u128, greatest: u128) -> u128 {
        let drawn = (u128::from(self.next()) << 64) | u128::from(self.next());
        match (greatest - least).checked_add(1) {
            Some(span) => least + drawn % span,
            None => drawn,
        }
    }
}

/// A value of a field.
fn number(of: &At<'_>, kind: Kind) -> Option<u128> {
    if !of.is_there() {
        of.wrong("is needed");
        return None;
    }
    let read = match kind {
        Bits(_) | Checksum => of.whole().map(u128::from),
        Ip4 => of.text()?.parse::<Ipv4Addr>().ok().map(|address| u128::from(u32::from(address))),
        Ip6 => of.text()?.parse::<Ipv6Addr>().ok().map(u128::from),
        Mac => of
            .text()?
            .parse::<wire::Mac>()
            .ok()
            .map(|mac| mac.0.iter().fold(0, |number, byte| (number << 8) | u128::from(*byte))),
    };
    match read {
        Some(read) if read <= most(kind) => Some(read),
        Some(_) => {
            of.wrong(&format!("is more than the field has room for, {}", most(kind)));
            None
        }
        None => {
            if !matches!(kind, Bits(_) | Checksum) {
                of.wrong(match kind {
                    Ip4 => "must be an IPv4 address",
                    Ip6 => "must be an IPv6 address",
                    _ => "must be an Ethernet address, 02:00:00:00:00:01",
                });
            }
            None
        }
    }
}

fn spelled(value: u128, kind: Kind) -> String {
    match kind {
        Bits(_) | Checksum => value.to_string(),
        Ip4 => Ipv4Addr::from(u32::try_from(value).unwrap_or(u32::MAX)).to_string(),
        Ip6 => Ipv6Addr::from(value).to_string(),
        Mac => {
            let mut text = String::new();
            for at in (0..6).rev() {
                let _ = write!(text, "{:02x}{}", (value >> (8 * at)) & 0xff, if at == 0 { "" } else { ":" });
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::Findings;
    use super::*;
    use serde_json::json;

    #[test]
    fn headers_and_patterns_become_an_expression() {
        let packet = json!([
            {"choice": "ethernet", "ethernet": {"dst": {"choice": "value", "value": "00:00:00:00:00:0b"}, "src": {"value": "02:00:00:00:00:0a"}}},
            {"choice": "vlan", "vlan": {"id": {"increment": {"start": 10, "step": 2, "count": 3}}, "tpid": {"value": 34984}}},
            {"choice": "ipv4", "ipv4": {
                "src": {"choice": "increment", "increment": {"start": "1.1.1.1", "step": "0.0.0.2", "count": "4"}},
                "dst": {"choice": "values", "values": ["2.2.2.2", "2.2.2.3"]},
                "dont_fragment": {"value": 1},
                "priority": {"choice": "dscp", "dscp": {"phb": {"value": 46}}},
                "header_checksum": {"choice": "generated", "generated": "bad"},
                "time_to_live": {"choice": "decrement", "decrement": {"start": 64, "step": 1, "count": 3}},
            }},
            {"choice": "tcp", "tcp": {"dst_port": {"value": 443}, "ctl_syn": {"value": 1}, "ctl_ack": {"value": 1}}},
            {"choice": "custom", "custom": {"bytes": "00 ff"}},
        ]);
        let findings = Findings::default();
        let got = expression(&At::root(&packet, &findings), &Fill::default()).expect("right");
        assert_eq!(findings.offences(), Vec::<String>::new());
        assert_eq!(
            got,
            "ether(dst=00:00:00:00:00:0b, src=02:00:00:00:00:0a)/qinq(id=10..14 step=2)/ipv4(ttl=64..62, chksum=bad, \
             src=1.1.1.1..1.1.1.7 step=2, dst=[2.2.2.2, 2.2.2.3], flags=2, dscp=46)/tcp(dport=443, flags=18)/raw(hex=\"00ff\")"
        );
        traffic::expr::compile(&got, &traffic::expr::Options::default()).expect("an expression");
    }

    #[test]
    fn each_offence_is_told_with_its_path() {
        let packet = json!([
            {"choice": "rsvp", "rsvp": {}},
            {"choice": "ipv4", "ipv4": {"src": {"value": "1.2.3"}, "odd": {}, "identification": {"value": 65536}}},
            {"choice": "udp", "udp": {"src_port": {"value": 1, "metric_tags": [{"name": "t"}]}}},
            {"choice": "tcp", "tcp": {"ctl_syn": {"choice": "values", "values": [0, 1]}}},
            {"choice": "ipv6", "ipv6": {"src": {"increment": {"start": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "step": "::1", "count": 2}}}},
        ]);
        let findings = Findings::default();
        expression(&At::root(&packet, &findings).get("none"), &Fill::default());
        let at = At::root(&packet, &findings);
        assert_eq!(expression(&at, &Fill::default()), None);
        let told = findings.offences();
        for path in [
            "[0].choice",
            "[1].ipv4.src.value",
            "[1].ipv4.odd",
            "[1].ipv4.identification.value",
            "[2].udp.src_port.metric_tags",
            "[3].tcp.ctl_syn",
            "[4].ipv6.src.increment",
        ] {
            assert!(told.iter().any(|text| text.starts_with(&format!("{path}:"))), "{path}: {told:?}");
        }
    }

    #[test]
    fn drawn_values_are_the_same_for_the_same_seed_and_within_their_bounds() {
        let of = |seed: u64| {
            let value =
                json!({"choice": "random", "random": {"min": 10, "max": 20, "seed": seed, "count": 100}});
            let findings = Findings::default();
            field(&At::root(&value, &findings), Bits(16)).expect("drawn")
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let all: Vec<u64> =
            of(7).trim_matches(['[', ']']).split(", ").map(|n| n.parse().expect("a number")).collect();
        assert!(all.len() == 100 && all.iter().all(|n| (10..=20).contains(n)));
    }
}
