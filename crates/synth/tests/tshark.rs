//! An analyser that is not ours reads a synthesised capture.

use std::io::Write;
use std::process::Command;

use netdyno_synth::{Profile, Synth};

/// Writes a nanosecond pcap: a global header and 16 bytes before each frame, little-endian.
fn write_pcap(profile: Profile, seed: u64) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    let mut synth = Synth::new(profile, seed).unwrap();
    while let Some((time, frame)) = synth.next() {
        let (seconds, rest) = ((time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32);
        for word in [seconds, rest, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    file.write_all(&bytes).unwrap();
    file
}

fn tshark(file: &std::path::Path, arguments: &[&str]) -> String {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-n", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE"])
        .args(arguments)
        .output()
        .expect("this test needs tshark: run scripts/setup test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tshark_finds_nothing_malformed_and_no_bad_checksum() {
    let file = write_pcap(Profile::SMALLFLOWS, 1);
    // Status 0 is bad; nothing may be unverified either.
    let complaints =
        "_ws.malformed || ip.checksum.status != 1 || tcp.checksum.status != 1 || udp.checksum.status != 1";
    assert_eq!(tshark(file.path(), &["-Y", complaints]), "");
    // Warnings and errors, but for connections that are meant to be reset.
    assert_eq!(tshark(file.path(), &["-Y", "_ws.expert.severity >= 0x600000 && !tcp.connection.rst"]), "");
    assert!(!tshark(file.path(), &["-Y", "_ws.expert.severity >= 0x600000"]).is_empty(), "the filter works");
    let all = tshark(file.path(), &["-T", "fields", "-e", "frame.number"]);
    assert_eq!(all.lines().count(), 14_261);
}

#[test]
fn tshark_reads_the_protocols_that_were_meant() {
    let file = write_pcap(Profile::SMALLFLOWS, 1);
    let count = |filter: &str| tshark(file.path(), &["-Y", filter]).lines().count();
    assert_eq!(count("arp"), 18);
    assert!(count("dns.flags.response == 1 && dns.a") > 150);
    assert!(count("http.request.method == \"GET\"") > 10);
    assert!(count("http.response.code == 200") > 50);
    assert!(count("tls.app_data") > 500);
}
