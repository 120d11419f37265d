//! SCTP (RFC 9260 section 3): the common header, and the DATA chunk. Other chunks are payload.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get};

/// Length of the common header.
pub const HEADER: usize = 12;
/// Where the checksum stands in it.
pub const CHECKSUM: usize = 8;
/// Length of a DATA chunk's header.
const DATA_HEADER: usize = 16;

/// What follows the common header: a DATA chunk whose header is whole.
fn chunk(rest: &[u8]) -> Next {
    let length = get(rest, 16, 16).unwrap_or(0) as usize;
    match rest.first() {
        Some(0) if rest.len() >= DATA_HEADER && length >= DATA_HEADER => Next::Layer(Protocol::SctpData),
        _ => Next::Payload,
    }
}

/// Where what users send starts in an SCTP packet, as far as it can be known: behind the header of a leading DATA chunk,
/// whose length may not have been filled in yet, else behind the common header.
pub fn payload(packet: &[u8]) -> usize {
    match packet.get(HEADER) {
        Some(0) if packet.len() >= HEADER + DATA_HEADER => HEADER + DATA_HEADER,
        _ => HEADER,
    }
}

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Sctp,
    name: "sctp",
    aliases: &[],
    title: "SCTP",
    doc: "Stream control transmission protocol: the common header. What follows are chunks: `sctpdata`, or any others \
          as `raw(hex=\"..\")`.",
    min_len: HEADER,
    fields: &[
        Field::new("sport", 0, 16, Kind::Uint, "Source port.").or(&["srcport"]).default(1024),
        Field::new("dport", 16, 16, Kind::Uint, "Destination port.").or(&["dstport"]).default(9),
        Field::new("tag", 32, 32, Kind::Hex, "Verification tag.").or(&["vtag"]),
        Field::new("chksum", 64, 32, Kind::Hex, "CRC-32C, as its four bytes stand in the header.")
            .or(&["checksum"])
            .auto(Auto::Crc32c),
    ],
    carries: Carries::Only(&[Protocol::SctpData]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= HEADER).then_some(HEADER),
    next: |_, rest| chunk(rest),
};

pub(super) static DATA: Spec = Spec {
    protocol: Protocol::SctpData,
    name: "sctpdata",
    aliases: &["sctpchunkdata"],
    title: "SCTP data chunk",
    doc: "A DATA chunk with all of a message (RFC 9260 section 3.3.1).",
    min_len: DATA_HEADER,
    fields: &[
        Field::new("type", 0, 8, Kind::Uint, "Chunk type."),
        Field::new("reserved", 8, 4, Kind::Hex, "Reserved."),
        Field::new(
            "flags",
            12,
            4,
            Kind::Flags(&["E", "B", "U", "I"]),
            "In letters: the message ends, begins here; is unordered; is to be acknowledged immediately.",
        )
        .default(3),
        Field::new("len", 16, 16, Kind::Uint, "Header and user data in bytes, without padding.")
            .or(&["length"])
            .auto(Auto::Length),
        Field::new("tsn", 32, 32, Kind::Uint, "Transmission sequence number."),
        Field::new("stream_id", 64, 16, Kind::Uint, "Stream identifier.").or(&["sid"]),
        Field::new("stream_seq", 80, 16, Kind::Uint, "Stream sequence number.").or(&["ssn"]),
        Field::new("proto_id", 96, 32, Kind::Uint, "Payload protocol identifier.").or(&["ppid"]),
        Field::new("delay_sack", 12, 1, Kind::Uint, "`flags` I.").view(),
        Field::new("unordered", 13, 1, Kind::Uint, "`flags` U.").view(),
        Field::new("beginning", 14, 1, Kind::Uint, "`flags` B.").default(1).view(),
        Field::new("ending", 15, 1, Kind::Uint, "`flags` E.").default(1).view(),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= DATA_HEADER).then_some(DATA_HEADER),
    next: |_, _| Next::Payload,
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};
    use super::payload;

    #[test]
    fn a_literal_packet() {
        let mut packet = vec![4, 0, 0x0b, 0x59, 0, 0, 0, 7, 0xde, 0xad, 0xbe, 0xef];
        packet.extend([0, 3, 0, 18, 0, 0, 0, 9, 0, 2, 0, 5, 0, 0, 0, 46, b'h', b'i', 0, 0]);
        testing::reads(
            Protocol::Sctp,
            &packet,
            &[("sport", 1024), ("dport", 2905), ("tag", 7), ("chksum", 0xdead_beef)],
        );
        testing::follows(Protocol::Sctp, &packet, 12, Next::Layer(Protocol::SctpData));
        let chunk = &packet[12..];
        testing::reads(
            Protocol::SctpData,
            chunk,
            &[("type", 0), ("flags", 3), ("beginning", 1), ("unordered", 0), ("len", 18), ("tsn", 9)],
        );
        testing::reads(
            Protocol::SctpData,
            chunk,
            &[("stream_id", 2), ("stream_seq", 5), ("proto_id", 46), ("ending", 1), ("delay_sack", 0)],
        );
        testing::follows(Protocol::SctpData, chunk, 16, Next::Payload);
        assert_eq!(payload(&packet), 28);
        // Another chunk (INIT), one cut short, one whose length cannot be, none.
        packet[12] = 1;
        testing::follows(Protocol::Sctp, &packet, 12, Next::Payload);
        packet[12] = 0;
        testing::follows(Protocol::Sctp, &packet[..27], 12, Next::Payload);
        packet[15] = 15;
        testing::follows(Protocol::Sctp, &packet, 12, Next::Payload);
        assert_eq!((payload(&packet), payload(&packet[..27]), payload(&[])), (28, 12, 12));
    }
}
