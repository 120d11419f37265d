//! DHCP for IPv4 (RFC 2131, options of RFC 2132), in the frame of BOOTP (RFC 951).

use super::message::{Lines, Part, ipv4, text};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get};

/// Kinds of message (option 53).
pub const TYPES: &[(&str, u128)] = &[
    ("discover", 1),
    ("offer", 2),
    ("request", 3),
    ("decline", 4),
    ("ack", 5),
    ("nak", 6),
    ("release", 7),
    ("inform", 8),
];
/// What stands before the options (RFC 2131 section 3).
pub const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Where the options start.
pub const OPTIONS: usize = 240;
/// BOOTP messages are no shorter (RFC 1542 section 2.1).
pub const SHORTEST: usize = 300;

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Dhcp,
    name: "dhcp",
    aliases: &[],
    title: "DHCP",
    doc: "Dynamic host configuration protocol for IPv4, over `udp`: ports 68 to 67 from clients, 67 to 68 from servers. Padded to 300 bytes.",
    min_len: 44,
    fields: &[
        Field::new("op", 0, 8, Kind::Uint, "1 from clients, 2 from servers; follows from `type`.").auto(Auto::Derived),
        Field::new("htype", 8, 8, Kind::Uint, "Hardware type; 1 is Ethernet.").default(1),
        Field::new("hlen", 16, 8, Kind::Uint, "Length of a hardware address.").default(6),
        Field::new("hops", 24, 8, Kind::Uint, "Relays passed."),
        Field::new("xid", 32, 32, Kind::Hex, "Transaction number.").default(1),
        Field::new("secs", 64, 16, Kind::Uint, "Seconds since the client began."),
        Field::new("flags", 80, 16, Kind::Hex, "0x8000 asks for answers by broadcast."),
        Field::new("ciaddr", 96, 32, Kind::Ipv4, "The client's address, if it has one."),
        Field::new("yiaddr", 128, 32, Kind::Ipv4, "The address that the client gets."),
        Field::new("siaddr", 160, 32, Kind::Ipv4, "Address of the next server."),
        Field::new("giaddr", 192, 32, Kind::Ipv4, "The relay's address."),
        Field::new("chaddr", 224, 48, Kind::Mac, "The client's Ethernet address: by itself that of the frame's `ether(src=..)`, and varies as it does.")
            .auto(Auto::Derived),
        Field::new("chaddr_padding", 272, 80, Kind::Hex, "The rest of the 16 bytes."),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::Message {
        parts: &[
            Part::new("type", "`discover`", "Kind of message: discover, offer, request, decline, ack, nak, release, inform or a number; may vary.")
                .or(&["message_type"]),
            Part::new("client_id", "none", "Client identifier, an Ethernet address (option 61); may vary."),
            Part::new("requested", "none", "Requested address (option 50); may vary.").or(&["requested_addr"]),
            Part::new("server", "none", "Server identifier, an address (option 54); may vary.").or(&["server_id"]),
            Part::new("lease", "none", "Lease time in seconds (option 51); may vary.").or(&["lease_time"]),
            Part::new("mask", "none", "Subnet mask (option 1).").or(&["subnet_mask"]),
            Part::new("router", "none", "Router's address (option 3); may vary."),
            Part::new("dns", "none", "DNS server's address (option 6); may vary.").or(&["name_server"]),
            Part::new("params", "none", "Parameters asked for, a list of option numbers (option 55).").or(&["param_req_list"]),
            Part::new("hostname", "none", "Host name (option 12); a list takes turns.").or(&["host_name"]),
            Part::new("domain", "none", "Domain name (option 15); a list takes turns."),
            Part::new("vendor", "none", "Vendor class identifier (option 60); a list takes turns.").or(&["vendor_class_id"]),
            Part::new("options", "none", "Any others: a list of `opt(N, hex=\"..\")` or `opt(N, \"text\")`."),
        ],
        describe,
    },
    header_len: |bytes| length(bytes),
    next: |_, _| Next::Payload,
};

/// The message's length: to its end option, and the zeros up to 300 bytes.
fn length(bytes: &[u8]) -> Option<usize> {
    if bytes.get(OPTIONS - 4..OPTIONS)? != COOKIE {
        return None;
    }
    let mut at = OPTIONS;
    loop {
        match *bytes.get(at)? {
            0 => at += 1,
            255 => break,
            _ => at += 2 + usize::from(*bytes.get(at + 1)?),
        }
    }
    let end = at + 1;
    let padding = bytes.get(end..SHORTEST.max(end)).filter(|rest| rest.iter().all(|byte| *byte == 0));
    Some(padding.map_or(end, |rest| end + rest.len()))
}

/// The options, one line each.
fn describe(bytes: &[u8]) -> Lines {
    let mut lines = Lines::new();
    let mut at = OPTIONS;
    while let Some(&code) = bytes.get(at).filter(|code| **code != 255) {
        if code == 0 {
            at += 1;
            continue;
        }
        let Some(length) = bytes.get(at + 1).map(|length| usize::from(*length)) else { break };
        let Some(data) = bytes.get(at + 2..at + 2 + length) else { break };
        lines.push(option(code, data));
        at += 2 + length;
    }
    lines
}

fn option(code: u8, data: &[u8]) -> (&'static str, String) {
    let number = || get(data, 0, data.len().min(4) * 8).unwrap_or(0);
    let hex = || crate::hex::encode(data);
    let quoted = || format!("\"{}\"", text(data));
    let address = || ipv4(data).filter(|_| data.len() == 4).unwrap_or_else(hex);
    match code {
        1 => ("mask", address()),
        3 => ("router", address()),
        6 => ("dns", address()),
        12 => ("hostname", quoted()),
        15 => ("domain", quoted()),
        50 => ("requested", address()),
        51 => ("lease", number().to_string()),
        53 => {
            let name = TYPES.iter().find(|(_, value)| *value == number());
            ("type", name.map_or_else(|| number().to_string(), |(name, value)| format!("{value} ({name})")))
        }
        54 => ("server", address()),
        55 => {
            let list: Vec<String> = data.iter().map(u8::to_string).collect();
            ("params", format!("[{}]", list.join(", ")))
        }
        60 => ("vendor", quoted()),
        61 if data.len() == 7 => {
            ("client_id", super::format_value(Kind::Mac, 48, get(data, 8, 48).unwrap_or(0)))
        }
        _ => ("option", format!("opt({code}, hex=\"{}\")", hex())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};
    use super::{COOKIE, describe};

    #[test]
    fn a_literal_packet() {
        let mut packet = vec![1, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef, 0, 3, 0x80, 0];
        packet.resize(28, 0);
        packet.extend([2, 0, 0, 0, 0, 9]);
        packet.resize(236, 0);
        packet.extend(COOKIE);
        packet.extend([53, 1, 3, 50, 4, 10, 0, 0, 7, 12, 2, b'p', b'c', 55, 2, 1, 3, 0, 43, 1, 9, 255]);
        let sound = packet.len();
        testing::reads(
            Protocol::Dhcp,
            &packet,
            &[("op", 1), ("xid", 0xdead_beef), ("secs", 3), ("flags", 0x8000), ("chaddr", 0x0200_0000_0009)],
        );
        testing::follows(Protocol::Dhcp, &packet, sound, Next::Payload);
        let lines: Vec<String> =
            describe(&packet).into_iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(
            lines,
            [
                "type=3 (request)",
                "requested=10.0.0.7",
                "hostname=\"pc\"",
                "params=[1, 3]",
                "option=opt(43, hex=\"09\")"
            ]
        );
        // Zeros up to 300 bytes belong to it, what stands behind does not.
        packet.resize(310, 0);
        assert_eq!((Protocol::Dhcp.spec().header_len)(&packet), Some(300));
        packet[239] = 0;
        assert_eq!((Protocol::Dhcp.spec().header_len)(&packet), None);
    }
}
