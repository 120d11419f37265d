//! DNS messages (RFC 1035 section 4), with EDNS (RFC 6891) and its padding (RFC 7830). Over TCP two bytes of length stand
//! in front: that is not this layer.

use super::message::{Lines, Part, text};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get};

/// Types of records that have a name (IANA "dns-parameters").
pub const TYPES: &[(&str, u128)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("OPT", 41),
    ("DS", 43),
    ("DNSKEY", 48),
    ("HTTPS", 65),
    ("AXFR", 252),
    ("ANY", 255),
    ("ALL", 255),
];
/// Classes that have a name.
pub const CLASSES: &[(&str, u128)] = &[("IN", 1), ("CH", 3), ("HS", 4), ("NONE", 254), ("ANY", 255)];
/// Compression pointers followed in one name, at most: a name has 127 labels.
const MAX_POINTERS: usize = 128;

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Dns,
    name: "dns",
    aliases: &[],
    title: "DNS",
    doc: "A domain name system message over `udp`: a question, and answers to it.",
    min_len: 12,
    fields: &[
        Field::new("id", 0, 16, Kind::Hex, "Transaction number.").default(1),
        Field::new("qr", 16, 1, Kind::Uint, "1 is a response; so it is by itself with `answers`."),
        Field::new("opcode", 17, 4, Kind::Uint, "Kind of query.").names(&[
            ("query", 0),
            ("iquery", 1),
            ("status", 2),
            ("notify", 4),
            ("update", 5),
        ]),
        Field::new("aa", 21, 1, Kind::Uint, "Authoritative answer."),
        Field::new("tc", 22, 1, Kind::Uint, "Truncated."),
        Field::new("rd", 23, 1, Kind::Uint, "Recursion desired.").default(1),
        Field::new("ra", 24, 1, Kind::Uint, "Recursion available; 1 by itself with `answers`."),
        Field::new("z", 25, 1, Kind::Uint, "Reserved."),
        Field::new("ad", 26, 1, Kind::Uint, "Authentic data."),
        Field::new("cd", 27, 1, Kind::Uint, "Checking disabled."),
        Field::new("rcode", 28, 4, Kind::Uint, "Response code.").names(&[
            ("noerror", 0),
            ("formerr", 1),
            ("servfail", 2),
            ("nxdomain", 3),
            ("notimp", 4),
            ("refused", 5),
        ]),
        Field::new("qdcount", 32, 16, Kind::Uint, "Questions.").auto(Auto::Derived),
        Field::new("ancount", 48, 16, Kind::Uint, "Answers.").auto(Auto::Derived),
        Field::new("nscount", 64, 16, Kind::Uint, "Authorities."),
        Field::new("arcount", 80, 16, Kind::Uint, "Additional records.").auto(Auto::Derived),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::Message {
        parts: &[
            Part::new(
                "qname",
                "`www.example.org`",
                "The name that is asked for. A list of names takes turns, one each frame; `random([..])` too.",
            )
            .or(&["name"]),
            Part::new(
                "qtype",
                "`A`",
                "The type that is asked for: A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, DS, DNSKEY, HTTPS, AXFR, ANY or a number; may vary.",
            )
            .or(&["type"]),
            Part::new("qclass", "`IN`", "The class: IN, CH, HS, NONE, ANY or a number; may vary.").or(&["class"]),
            Part::new(
                "answers",
                "none",
                "Answers to the question: addresses (A, AAAA; may vary), `a(..)`, `aaaa(..)`, `cname(\"..\")`, `ns(\"..\")`, `ptr(\"..\")`, `mx(N, \"..\")`, `txt(\"..\")`, `record(TYPE, hex=\"..\")`; one, or a list in brackets.",
            )
            .or(&["an"]),
            Part::new("ttl", "`300`", "Time to live of each answer, in seconds; may vary."),
            Part::new("edns", "none", "An OPT record with this size of datagrams; may vary.").or(&["edns_size"]),
        ],
        describe,
    },
    header_len: |bytes| length(bytes),
    next: |_, _| Next::Payload,
};

/// Where the name that starts at `at` ends.
fn skip_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            byte if byte >= 0xc0 => return bytes.get(at + 1).map(|_| at + 2),
            byte if byte < 0x40 => at += 1 + usize::from(byte),
            _ => return None,
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    crate::bytes::be16(bytes, at).map(usize::from)
}

/// The message's length by its own counts.
fn length(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    for _ in 0..be16(bytes, 4)? {
        at = skip_name(bytes, at)? + 4;
    }
    let records = be16(bytes, 6)? + be16(bytes, 8)? + be16(bytes, 10)?;
    for _ in 0..records {
        let fixed = skip_name(bytes, at)?;
        at = fixed + 10 + be16(bytes, fixed + 8)?;
    }
    (at <= bytes.len()).then_some(at)
}

/// The name that starts at `at`, as written, with compression undone.
fn name(bytes: &[u8], mut at: usize) -> Option<String> {
    let mut out = String::new();
    for _ in 0..MAX_POINTERS {
        match usize::from(*bytes.get(at)?) {
            0 => return Some(if out.is_empty() { ".".into() } else { out }),
            pointer @ 0xc0.. => at = (pointer & 0x3f) << 8 | usize::from(*bytes.get(at + 1)?),
            length @ ..0x40 => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&text(bytes.get(at + 1..at + 1 + length)?));
                at += 1 + length;
            }
            _ => return None,
        }
    }
    None
}

fn named(names: &[(&'static str, u128)], value: usize) -> String {
    let name = names.iter().find(|(_, number)| *number == value as u128);
    name.map_or_else(|| value.to_string(), |(name, _)| (*name).to_owned())
}

/// Questions and records, one line each.
fn describe(bytes: &[u8]) -> Lines {
    let mut lines = Lines::new();
    let mut at = 12;
    for _ in 0..be16(bytes, 4).unwrap_or(0) {
        let Some((name, end)) = name(bytes, at).zip(skip_name(bytes, at)) else { return lines };
        let Some((kind, class)) = be16(bytes, end).zip(be16(bytes, end + 2)) else { return lines };
        lines.push(("question", format!("{name} {} {}", named(TYPES, kind), named(CLASSES, class))));
        at = end + 4;
    }
    for (section, count_at) in [("answer", 6), ("authority", 8), ("additional", 10)] {
        for _ in 0..be16(bytes, count_at).unwrap_or(0) {
            let Some((line, end)) = record(bytes, at) else { return lines };
            lines.push((section, line));
            at = end;
        }
    }
    lines
}

/// A resource record as text, and where it ends.
fn record(bytes: &[u8], at: usize) -> Option<(String, usize)> {
    let owner = name(bytes, at)?;
    let fixed = skip_name(bytes, at)?;
    let (kind, class) = (be16(bytes, fixed)?, be16(bytes, fixed + 2)?);
    let ttl = get(bytes, (fixed + 4) * 8, 32)?;
    let start = fixed + 10;
    let end = start + be16(bytes, fixed + 8)?;
    let data = bytes.get(start..end)?;
    if kind == 41 {
        let padding = if be16(data, 0) == Some(12) {
            format!(", {} bytes of padding", data.len() - 4)
        } else {
            String::new()
        };
        return Some((format!("OPT (EDNS), datagrams of {class} bytes{padding}"), end));
    }
    let data = match (kind, data.len()) {
        (1, 4) => super::message::ipv4(data)?,
        (28, 16) => std::net::Ipv6Addr::from(*data.first_chunk::<16>()?).to_string(),
        (2 | 5 | 12, _) => name(bytes, start)?,
        (15, _) => format!("{} {}", be16(data, 0)?, name(bytes, start + 2)?),
        (16, _) => format!("\"{}\"", text(data.get(1..)?)),
        _ => crate::hex::encode(data),
    };
    Some((format!("{owner} {} {} {ttl} {data}", named(TYPES, kind), named(CLASSES, class)), end))
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};
    use super::describe;

    #[test]
    fn a_literal_packet() {
        let mut packet =
            vec![0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 1, 2, b'a', b'b', 1, b'c', 0, 0, 28, 0, 1];
        packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1]);
        packet.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 6, 0, 12, 0, 2, 0, 0]);
        testing::reads(
            Protocol::Dns,
            &packet,
            &[
                ("id", 7),
                ("qr", 1),
                ("rd", 1),
                ("ra", 1),
                ("rcode", 0),
                ("qdcount", 1),
                ("ancount", 1),
                ("arcount", 1),
            ],
        );
        testing::follows(Protocol::Dns, &packet, packet.len(), Next::Payload);
        let lines: Vec<String> =
            describe(&packet).into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(
            lines,
            [
                "question: ab.c AAAA IN",
                "answer: ab.c A IN 300 192.0.2.1",
                "additional: OPT (EDNS), datagrams of 1232 bytes, 2 bytes of padding"
            ]
        );
        // Cut short, and a name that points at itself.
        assert_eq!((Protocol::Dns.spec().header_len)(&packet[..packet.len() - 1]), None);
        packet[12..14].copy_from_slice(&[0xc0, 12]);
        assert!(describe(&packet).is_empty());
    }
}
