//! TCP (RFC 9293 section 3.1).

use super::options::{Layout, OptionSpec, option};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, http};

/// RFC 9293 section 3.2, RFC 7323 (wscale, timestamp), RFC 2018 (SACK), RFC 7413 (fast open).
pub(super) const OPTIONS: &[OptionSpec] = &[
    option("eol", &["end"], 0, Layout::Bare, "end of the list"),
    option("nop", &[], 1, Layout::Bare, "no operation"),
    option("mss", &[], 2, Layout::Fixed(&[2]), "maximum segment size"),
    option("wscale", &["ws"], 3, Layout::Fixed(&[1]), "window scale"),
    option("sackok", &[], 4, Layout::Fixed(&[]), "selective acknowledgement permitted"),
    option("sack", &[], 5, Layout::Words, "acknowledged blocks: left, right, ..."),
    option("timestamp", &["ts"], 8, Layout::Fixed(&[4, 4]), "time stamp and echo"),
    option("fastopen", &["tfo"], 34, Layout::Bytes, "fast open cookie"),
];

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Tcp,
    name: "tcp",
    aliases: &[],
    title: "TCP",
    doc: "Transmission control protocol.",
    min_len: 20,
    fields: &[
        Field::new("sport", 0, 16, Kind::Uint, "Source port.").or(&["srcport"]).default(1024),
        Field::new("dport", 16, 16, Kind::Uint, "Destination port.").or(&["dstport"]).default(80),
        Field::new("seq", 32, 32, Kind::Uint, "Sequence number."),
        Field::new("ack", 64, 32, Kind::Uint, "Acknowledgement number."),
        Field::new("dataofs", 96, 4, Kind::Uint, "Header length in 32-bit words.")
            .or(&["offset"])
            .auto(Auto::HeaderWords),
        Field::new("reserved", 100, 3, Kind::Uint, "Reserved."),
        Field::new(
            "flags",
            103,
            9,
            Kind::Flags(&["F", "S", "R", "P", "A", "U", "E", "C", "N"]),
            "Control bits, in letters or by name: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR; N is NS.",
        )
        .names(&[
            ("FIN", 1),
            ("SYN", 2),
            ("RST", 4),
            ("PSH", 8),
            ("ACK", 16),
            ("URG", 32),
            ("ECE", 64),
            ("CWR", 128),
        ])
        .default(2),
        Field::new("window", 112, 16, Kind::Uint, "Window.").or(&["win"]).default(8192),
        Field::new("chksum", 128, 16, Kind::Hex, "Checksum.").or(&["checksum"]).auto(Auto::PseudoChecksum),
        Field::new("urgptr", 144, 16, Kind::Uint, "Urgent pointer."),
    ],
    carries: Carries::Only(&[Protocol::Http]),
    variable: Variable::Options { table: OPTIONS, align: 4 },
    header_len: |bytes| {
        let length = get(bytes, 96, 4)? as usize * 4;
        (length >= 20 && length <= bytes.len()).then_some(length)
    },
    next: |header, rest| {
        let known = [16, 0]
            .into_iter()
            .filter_map(|bit| get(header, bit, 16))
            .any(|port| http::PORTS.contains(&port));
        if known && http::begins(rest) { Next::Layer(Protocol::Http) } else { Next::Payload }
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, format_value, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [
            4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x12, 0x20, 0, 0xab, 0xcd, 0, 0, 2, 4, 0x05, 0xb4,
            b'x',
        ];
        testing::reads(
            Protocol::Tcp,
            &packet,
            &[
                ("sport", 1024),
                ("dport", 80),
                ("seq", 1),
                ("ack", 2),
                ("dataofs", 6),
                ("flags", 0x12),
                ("window", 8192),
            ],
        );
        testing::follows(Protocol::Tcp, &packet, 24, Next::Payload);
        let request = [&packet[..24], b"GET / HTTP/1.1"].concat();
        testing::follows(Protocol::Tcp, &request, 24, Next::Layer(Protocol::Http));
        let flags = Protocol::Tcp.spec().field("flags").unwrap();
        assert_eq!(format_value(flags.kind, flags.bits, 0x12), "SA");
    }
}
