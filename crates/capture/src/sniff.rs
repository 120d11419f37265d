//! What a file that is not a capture looks like, so that the error can say so and name the way out.

use crate::Compression;

/// One sentence about a file that starts with `head`, once unpacked.
pub(crate) fn looks_like(head: &[u8], compression: Option<Compression>) -> String {
    let what = describe(head);
    match compression {
        Some(compression) => format!("it is {} of something else: inside, {what}", compression.name()),
        None => what,
    }
}

/// First bytes, what they are, and what to do.
const KNOWN: &[(&[u8], &str)] = &[
    (b"\xfd7zXZ\0", "it is compressed with xz: unpack it first (xz -dk FILE)"),
    (b"BZh", "it is compressed with bzip2: unpack it first (bzip2 -dk FILE)"),
    (b"\x04\x22\x4d\x18", "it is compressed with lz4: unpack it first (lz4 -d FILE)"),
    (b"\x1f\x8b", "it is compressed with gzip twice: unpack it first (gzip -d FILE)"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd twice: unpack it first (zstd -d FILE)"),
    (b"PK\x03\x04", "it is a zip archive: unpack it first (unzip FILE)"),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive: unpack it first (7z x FILE)"),
    (b"\x7fELF", "it is an ELF program or library"),
    (b"%PDF", "it is a PDF document"),
    (b"snoop\0\0\0", "it is a Solaris snoop capture: convert it first (editcap FILE out.pcapng)"),
    (b"btsnoop\0", "it is a Bluetooth btsnoop capture: convert it first (editcap FILE out.pcapng)"),
    (b"RTSS", "it is a Microsoft Network Monitor 1 capture: convert it first (editcap FILE out.pcapng)"),
    (b"GMBU", "it is a Microsoft Network Monitor 2 capture: convert it first (editcap FILE out.pcapng)"),
    (b"TRSNIFF data", "it is a Sniffer capture: convert it first (editcap FILE out.pcapng)"),
    (b"XCP\0", "it is a NetXray capture: convert it first (editcap FILE out.pcapng)"),
    (b"\xa1\xb2\x34\xcd", "it is pcap as modified by F. Mesquita: convert it first (editcap FILE out.pcap)"),
    (b"\xcd\x34\xb2\xa1", "it is pcap as modified by F. Mesquita: convert it first (editcap FILE out.pcap)"),
    (b"\x1c\x00\x01\xac", "it is pcap as modified by IXIA: convert it first (editcap FILE out.pcap)"),
    (b"\xac\x01\x00\x1c", "it is pcap as modified by IXIA: convert it first (editcap FILE out.pcap)"),
    (b"\x1c\x00\x01\xab", "it is pcap as modified by IXIA: convert it first (editcap FILE out.pcap)"),
    (b"\xab\x01\x00\x1c", "it is pcap as modified by IXIA: convert it first (editcap FILE out.pcap)"),
];

fn describe(head: &[u8]) -> String {
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).into();
    }
    let head = head.get(..head.len().min(64)).unwrap_or(head);
    if head.is_empty() {
        return "there is nothing".into();
    }
    if head.iter().all(|byte| *byte == 0) {
        return "it starts with zeros: the file was allocated but never written".into();
    }
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e);
    if head.iter().all(is_text) {
        let line: String =
            head.iter().take(24).map(|byte| char::from(*byte).escape_default().to_string()).collect();
        return format!(
            "it is text that starts \"{line}\" (a hex dump is turned into a capture by text2pcap)"
        );
    }
    let bytes: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("it starts with {}, which is no magic of pcap or pcapng (file FILE may know it)", bytes.join(" "))
}
