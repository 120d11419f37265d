//! IGMP, version 3 (RFC 3376): reports of several groups with the sources that are wanted of them, and queries that name
//! sources. A query of 8 bytes is version 2's (section 7.1), and stands in `igmp`.

use super::message::{Lines, Part, ipv4};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get};

/// Membership query.
pub const QUERY: u8 = 0x11;
/// Membership report of version 3.
pub const REPORT: u8 = 0x22;
/// Kinds of group records (section 4.2.12).
pub const RECORDS: &[(&str, u8)] =
    &[("is_include", 1), ("is_exclude", 2), ("to_include", 3), ("to_exclude", 4), ("allow", 5), ("block", 6)];

fn report(header: &[u8], bit: usize) -> Option<usize> {
    (header.first() == Some(&REPORT)).then_some(bit)
}

fn query(header: &[u8], bit: usize) -> Option<usize> {
    (header.first() == Some(&QUERY)).then_some(bit)
}

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Igmpv3,
    name: "igmpv3",
    aliases: &["igmp3"],
    title: "IGMPv3",
    doc: "Internet group management protocol, version 3, over `ipv4`: a report of groups, or with `type=query` a query.",
    min_len: 8,
    fields: &[
        Field::new("type", 0, 8, Kind::Hex, "Type.")
            .default(REPORT as u128)
            .names(&[("query", QUERY as u128), ("report", REPORT as u128)]),
        Field::new(
            "maxresp",
            8,
            8,
            Kind::Uint,
            "Longest time to an answer, as a code of tenths of a second (queries).",
        )
        .or(&["mrcode"]),
        Field::new("chksum", 16, 16, Kind::Hex, "Checksum.").or(&["checksum"]).auto(Auto::Checksum),
        Field::new("rest", 32, 32, Kind::Hex, "The second word, where the type is neither."),
        Field::new("reserved", 32, 16, Kind::Hex, "Reserved (reports).").at(|h| report(h, 32)),
        Field::new("nrecords", 48, 16, Kind::Uint, "Group records (reports).")
            .or(&["numgrp"])
            .at(|h| report(h, 48))
            .auto(Auto::Derived),
        Field::new("group", 32, 32, Kind::Ipv4, "Group address (queries); 0 is all groups.")
            .or(&["gaddr"])
            .at(|h| query(h, 32)),
        Field::new("resv", 64, 4, Kind::Hex, "Reserved (queries).").at(|h| query(h, 64)),
        Field::new("s", 68, 1, Kind::Uint, "Suppress router-side processing (queries).").at(|h| query(h, 68)),
        Field::new("qrv", 69, 3, Kind::Uint, "Querier's robustness variable (queries).")
            .default(2)
            .at(|h| query(h, 69)),
        Field::new("qqic", 72, 8, Kind::Uint, "Querier's query interval, as a code of seconds (queries).")
            .default(125)
            .at(|h| query(h, 72)),
        Field::new("nsources", 80, 16, Kind::Uint, "Source addresses (queries).")
            .or(&["numsrc"])
            .at(|h| query(h, 80))
            .auto(Auto::Derived),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::Message {
        parts: &[
            Part::new(
                "records",
                "`[to_exclude(239.255.0.1)]`",
                "Group records of a report: `is_include`, `is_exclude`, `to_include`, `to_exclude`, `allow` or `block`, each `(GROUP, SOURCE, ..)`; the addresses may vary. `to_exclude(GROUP)` is what joining a group sends.",
            ),
            Part::new("sources", "none", "Source addresses of a query, a list; one alone may vary.")
                .or(&["srcaddrs"]),
        ],
        describe,
    },
    header_len: |bytes| length(bytes),
    next: |_, _| Next::Payload,
};

/// Bytes before records or sources.
pub fn fixed_len(kind: u8) -> usize {
    if kind == QUERY { 12 } else { 8 }
}

fn count(bytes: &[u8], byte: usize) -> Option<usize> {
    get(bytes, byte * 8, 16).map(|count| count as usize)
}

/// A group record's length.
fn record_len(bytes: &[u8], at: usize) -> Option<usize> {
    Some(8 + 4 * (count(bytes, at + 2)? + usize::from(*bytes.get(at + 1)?)))
}

fn length(bytes: &[u8]) -> Option<usize> {
    let mut at = fixed_len(*bytes.first()?);
    match *bytes.first()? {
        QUERY => at += 4 * count(bytes, 10)?,
        REPORT => {
            for _ in 0..count(bytes, 6)? {
                at += record_len(bytes, at)?;
            }
        }
        _ => {}
    }
    (at <= bytes.len()).then_some(at)
}

fn addresses(bytes: &[u8]) -> Vec<String> {
    bytes.chunks_exact(4).filter_map(ipv4).collect()
}

fn describe(bytes: &[u8]) -> Lines {
    let mut lines = Lines::new();
    let kind = bytes.first().copied().unwrap_or(0);
    if kind == QUERY {
        let sources = addresses(bytes.get(12..).unwrap_or_default());
        if !sources.is_empty() {
            lines.push(("sources", format!("[{}]", sources.join(", "))));
        }
    } else if kind == REPORT {
        let mut at = 8;
        while let Some(record) = record_len(bytes, at).and_then(|length| bytes.get(at..at + length)) {
            let code = record.first().copied().unwrap_or(0);
            let name = RECORDS.iter().find(|(_, number)| *number == code).map_or("record", |(name, _)| name);
            let said = 4 + 4 * count(record, 2).unwrap_or(0);
            let list = addresses(record.get(4..4 + said).unwrap_or_default());
            lines.push(("record", format!("{name}({})", list.join(", "))));
            at += record.len();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};
    use super::describe;

    #[test]
    fn literal_packets() {
        let report =
            [0x22, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 0, 239, 1, 1, 1, 1, 0, 0, 1, 232, 1, 1, 2, 10, 0, 0, 1];
        testing::reads(Protocol::Igmpv3, &report, &[("type", 0x22), ("nrecords", 2)]);
        testing::follows(Protocol::Igmpv3, &report, 28, Next::Payload);
        let lines: Vec<String> = describe(&report).into_iter().map(|(_, text)| text).collect();
        assert_eq!(lines, ["to_exclude(239.1.1.1)", "is_include(232.1.1.2, 10.0.0.1)"]);
        let query = [0x11, 100, 0, 0, 239, 1, 1, 1, 0x0a, 125, 0, 1, 10, 0, 0, 9];
        testing::reads(
            Protocol::Igmpv3,
            &query,
            &[("group", 0xef01_0101), ("s", 1), ("qrv", 2), ("qqic", 125), ("nsources", 1)],
        );
        testing::follows(Protocol::Igmpv3, &query, 16, Next::Payload);
        assert_eq!(describe(&query), [("sources", "[10.0.0.9]".to_owned())]);
        assert_eq!((Protocol::Igmpv3.spec().header_len)(&report[..27]), None);
    }
}
