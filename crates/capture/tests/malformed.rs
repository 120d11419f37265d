//! Every kind of bad input is one clear error behind all sound records; nothing panics, hangs or allocates at the
//! file's word.

mod common;

use std::io::{Read, Write};

use common::{BIG, LITTLE, Order, drain, fault, read_all, reader};
use netdyno_capture::{CaptureError, Fault, MAX_CAPTURED, Reader, info};
use proptest::prelude::*;

/// Two sound records, 24 + 2 * 21 bytes.
fn pcap() -> Vec<u8> {
    let record = LITTLE.pcap_record(1, 0, b"hello", 5);
    [LITTLE.pcap_header(0xa1b2_c3d4, 65535, 1), record.clone(), record].concat()
}

/// Likewise, 28 + 20 + 2 * 40 bytes.
fn pcapng() -> Vec<u8> {
    let packet = LITTLE.enhanced(0, 5, b"hello", 5);
    [LITTLE.section(), LITTLE.interface(1, 0, &[]), packet.clone(), packet].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[track_caller]
fn assert_fault(bytes: &[u8], sound: usize, parts: &[&str]) {
    let (records, message) = fault(bytes);
    assert_eq!(records, sound, "{message}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn what_is_not_a_capture_is_told_by_its_looks() {
    for (bytes, part) in [
        (&b""[..], "is empty (0 bytes)"),
        (b"\xd4\xc3", "starts with d4 c3"),
        (b"\x7fELF\x02\x01\x01\0", "it is an ELF program"),
        (b"No.  Time  Source\n1", "it is text that starts \"No.  Time  Source\\n1\""),
        (b"PK\x03\x04aaaa", "zip archive: unpack it first"),
        (b"\xfd7zXZ\0", "xz -dk FILE"),
        (b"snoop\0\0\0\0\0\0\x02", "editcap FILE out.pcapng"),
        (b"\xa1\xb2\x34\xcd\0\0", "Mesquita"),
        (&[0; 100], "starts with zeros"),
        (&[0xee; 100], "starts with ee ee ee"),
    ] {
        assert_fault(bytes, 0, &["x.pcap is", part]);
    }
    assert_fault(&gzip(b"hello, world"), 0, &["it is gzip of something else: inside, it is text"]);
    assert_fault(&gzip(b""), 0, &["gzip of something else: inside, there is nothing"]);
    assert_fault(&gzip(&gzip(&pcap())), 0, &["gzip twice"]);
}

#[test]
fn files_that_cannot_be_opened_say_why() {
    let message = |path: &str| Reader::open(path.as_ref()).unwrap_err().to_string();
    assert!(message("/nonexistent/x.pcap").starts_with("/nonexistent/x.pcap cannot be opened: No such file"));
    assert!(message("/").contains("is a directory"), "{}", message("/"));
}

#[test]
fn a_header_cut_off_anywhere_is_told() {
    for length in 4..24 {
        let wanted = format!("file header at byte 0: the file ends after {length} of its 24 bytes");
        assert_fault(&pcap()[..length], 0, &[&wanted]);
    }
    for length in 4..28 {
        assert_fault(
            &pcapng()[..length],
            0,
            &["file header at byte 0: the file ends after", "of its 28 bytes"],
        );
    }
}

#[test]
fn a_last_record_cut_off_anywhere_is_told_after_the_sound_ones() {
    for length in 46..66 {
        let got = length - 45;
        let wanted = if got < 16 { 16 } else { 21 };
        let text = format!("x.pcap, record 2 at byte 45: the file ends after {got} of its {wanted} bytes");
        assert_fault(
            &pcap()[..length],
            1,
            &[&text, "The record before it is sound; `.skip_corrupt` keeps it"],
        );
    }
    for length in 89..128 {
        let text = format!("record 2 at byte 88: the file ends after {} of its", length - 88);
        assert_fault(&pcapng()[..length], 1, &[&text]);
    }
    for (whole, records) in
        [(pcap(), 2), (pcap()[..24].to_vec(), 0), (pcapng(), 2), (pcapng()[..48].to_vec(), 0)]
    {
        assert_eq!(fault(&whole), (records, String::new()));
    }
}

#[test]
fn lenient_reading_keeps_the_sound_part_and_says_so() {
    let packed = gzip(&pcap());
    for bytes in [&pcap()[..60], &pcapng()[..100], &packed[..packed.len() - 4]] {
        let (records, error, notes) = drain(reader(bytes).unwrap().lenient());
        assert!(error.is_none() && !records.is_empty());
        assert!(notes.cut_short.unwrap().contains("ends"));
    }
    let mut lenient = reader(&pcap()[..60]).unwrap().lenient();
    let info = info::summarise(&mut lenient).unwrap();
    assert_eq!(info.frames, 1);
    assert!(info.warnings.iter().any(|warning| warning.starts_with("Only the sound part was read: x.pcap")));
}

#[test]
fn lengths_are_believed_only_up_to_the_cap() {
    let huge = |captured: u32| [pcap(), LITTLE.words(&[1, 0, captured, captured]), vec![0; 100]].concat();
    let wanted = ["record 3 at byte 66: claims 4294967295 captured bytes, more than the 262144"];
    assert_fault(&huge(u32::MAX), 2, &wanted);
    assert_fault(&huge(MAX_CAPTURED), 2, &["the file ends after 116 of its 262160 bytes"]);
    let block = |length: u32| [pcapng(), LITTLE.words(&[6, length]), vec![0; 100]].concat();
    assert_fault(
        &block(0xffff_fffc),
        2,
        &["record 3 at byte 128: a block of 4294967292 bytes is longer than"],
    );
    // Blocks that are stepped over may be as long as they like, if they are there.
    let skipped = [pcapng(), LITTLE.words(&[77, 0xffff_fffc]), vec![0; 100]].concat();
    assert_fault(
        &skipped,
        2,
        &["block of unknown type after record 2 at byte 128: the file ends after 108 of its 4294967292"],
    );
}

#[test]
fn a_record_longer_than_the_snap_length_is_read_and_noted() {
    let record = LITTLE.pcap_record(1, 0, &[0; 100], 100);
    let file = [LITTLE.pcap_header(0xa1b2_c3d4, 60, 1), record].concat();
    let (records, error, notes) = read_all(&file);
    assert!(error.is_none());
    assert_eq!((records.len(), notes.over_snaplen), (1, 1));
}

#[test]
fn oddities_are_counted_not_refused() {
    let file = [
        LITTLE.pcap_header(0xa1b2_c3d4, 0, 1),
        LITTLE.pcap_record(9, 0, b"", 0),
        LITTLE.pcap_record(8, 0, b"abc", 2),
        LITTLE.pcap_record(8, 2_000_000, b"abc", 9),
    ];
    let (records, error, notes) = read_all(&file.concat());
    assert!(error.is_none());
    assert_eq!(records.len(), 3);
    assert_eq!(
        (notes.zero_length, notes.time_backwards, notes.longer_than_wire, notes.truncated),
        (1, 1, 1, 1)
    );
    assert_eq!(notes.odd_times, 1);
}

#[test]
fn unknown_versions_are_refused() {
    let mut file = pcap();
    file[4] = 3;
    assert_fault(&file, 0, &["file header at byte 0: version 3.4 is not known"]);
    let mut file = pcapng();
    file[14] = 9;
    assert_fault(&file, 0, &["version 1.9 is not known"]);
    file[14] = 2;
    assert_eq!(fault(&file).0, 2, "1.2 means 1.0");
}

#[test]
fn pcapng_blocks_are_checked() {
    let with = |block: Vec<u8>| [pcapng(), block].concat();
    let change = |mut block: Vec<u8>, at: usize, value: u32| {
        block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        block
    };
    let packet = || LITTLE.enhanced(0, 5, b"hello", 5);
    assert_fault(
        &with(change(packet(), 4, 41)),
        2,
        &["record 3 at byte 128: a block of length 41 cannot be"],
    );
    assert_fault(&with(change(packet(), 4, 0)), 2, &["a block of length 0 cannot be"]);
    assert_fault(&with(change(packet(), 36, 44)), 2, &["length is 40 at its head and 44 at its tail"]);
    assert_fault(&with(change(packet(), 8, 7)), 2, &["names interface 7, but the section describes 1"]);
    assert_fault(&with(change(packet(), 20, 9)), 2, &["claims 9 captured bytes in a block with room for 8"]);
    assert_fault(&with(change(packet(), 20, u32::MAX)), 2, &["claims 4294967295 captured bytes in a block"]);
    let unknown = LITTLE.block(77, &[0; 8]);
    assert_fault(&with(change(unknown.clone(), 4, 8)), 2, &["a block of length 8 cannot be"]);
    assert_fault(&with(change(unknown, 16, 24)), 2, &["block of unknown type after record 2", "at its tail"]);
    assert_fault(
        &with(change(LITTLE.section(), 8, 1)),
        2,
        &["section header after record 2", "byte order mark"],
    );
    // A new section forgets the interfaces of the one before.
    let orphan = [pcapng(), LITTLE.section(), packet()].concat();
    assert_fault(&orphan, 2, &["names interface 0, but the section describes 0"]);
    let many = [LITTLE.section(), LITTLE.interface(1, 0, &[]).repeat(5000)].concat();
    assert_fault(&many, 0, &["more than 4096 interfaces"]);
    // Options that run out of their block end, no more.
    let broken = [LITTLE.u16(2), LITTLE.u16(60_000)].concat();
    assert_eq!(
        fault(&[LITTLE.section(), LITTLE.interface(1, 0, &broken), packet()].concat()),
        (1, String::new())
    );
}

#[test]
fn packed_streams_cut_or_corrupted_never_end_silently() {
    let mut long = pcap();
    let mut noise = 1u32;
    for _ in 0..5000 {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        long.extend(LITTLE.pcap_record(1, 0, &noise.to_le_bytes().repeat(3), 12));
    }
    let total = fault(&long).0;
    for packed in [gzip(&long), zstd::stream::encode_all(&long[..], 1).unwrap()] {
        assert_eq!(fault(&packed), (total, String::new()));
        for cut in (5..packed.len()).step_by(packed.len() / 97).chain(packed.len() - 9..packed.len()) {
            let (_, error, _) = read_all(&packed[..cut]);
            let Some(CaptureError::Malformed { fault, packed: true, .. }) = &error else {
                panic!("cut at {cut}: {error:?}");
            };
            assert!(matches!(fault, Fault::TruncatedStream { .. }), "cut at {cut}: {fault}");
        }
    }
    // gzip has a checksum: no bit can be turned without being noticed.
    let packed = gzip(&long);
    for at in (10..packed.len()).step_by(packed.len() / 97) {
        let mut bad = packed.clone();
        bad[at] ^= 0x10;
        assert!(read_all(&bad).1.is_some(), "byte {at}");
    }
    let trailing = [gzip(&pcap()), b"something else altogether".to_vec()].concat();
    assert_fault(&trailing, 2, &["record 3 at byte 66 of the unpacked data: the gzip stream is corrupt"]);
}

/// Fails with a system's error after its bytes.
struct Failing(std::io::Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(std::io::Error::from_raw_os_error(5)),
            count => Ok(count),
        }
    }
}

#[test]
fn a_failing_disk_is_told_from_a_bad_capture() {
    for bytes in [pcap(), gzip(&pcap())[..30].to_vec()] {
        let source = Failing(std::io::Cursor::new(bytes));
        let error = match Reader::from_read(Box::new(source), "x.pcap") {
            Ok(reader) => drain(reader.lenient()).1,
            Err(error) => Some(error),
        };
        assert!(matches!(error, Some(CaptureError::Read { .. })), "{error:?}");
    }
}

/// A source of one byte at a time, as a slow pipe may be.
struct Trickle(std::io::Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let end = out.len().min(1);
        self.0.read(&mut out[..end])
    }
}

#[test]
fn bytes_may_come_one_by_one() {
    for bytes in [pcap(), pcapng(), gzip(&pcapng()), zstd::stream::encode_all(&pcap()[..], 1).unwrap()] {
        let source = Trickle(std::io::Cursor::new(bytes));
        let (records, error, _) = drain(Reader::from_read(Box::new(source), "x.pcap").unwrap());
        assert!(error.is_none());
        assert_eq!(records.len(), 2);
    }
}

/// A capture with a bit of everything, some of its bytes changed, its end perhaps missing.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let original = (any::<bool>(), any::<bool>(), 0usize..3).prop_map(|(ng, big, packing)| {
        let order: Order = if big { BIG } else { LITTLE };
        let plain = if ng {
            let options =
                [order.option(2, b"eth0"), order.option(9, &[9]), order.option(14, &[0xff; 8])].concat();
            [
                order.section(),
                order.interface(1, 100, &options),
                order.enhanced(0, 1 << 60, &[1; 70], 90),
                order.block(5, &[order.words(&[0, 0, 0]), order.option(5, &[1; 8])].concat()),
                order.block(3, &[order.u32(8).to_vec(), vec![2; 8]].concat()),
                order.block(99, &[3; 40]),
                order.enhanced(0, 7, &[0x45; 60], 60),
            ]
            .concat()
        } else {
            let record = order.pcap_record(1, 5, &[0x45; 60], 90);
            [order.pcap_header(0xa1b2_3c4d, 65535, 1), record.repeat(4)].concat()
        };
        match packing {
            0 => plain,
            1 => gzip(&plain),
            _ => zstd::stream::encode_all(&plain[..], 1).unwrap(),
        }
    });
    let byte = prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(4)];
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), byte), 0..8);
    (original, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut bytes, changes, cut, whole)| {
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if !whole {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_mutation_panics_or_goes_on_for_ever(bytes in mutated(), lenient in any::<bool>()) {
        let Ok(mut reader) = reader(&bytes) else { return Ok(()) };
        if lenient {
            reader = reader.lenient();
        }
        // The smallest record is 16 bytes of unpacked data; corrupt zstd cannot make more than a block of them.
        let (records, _, _) = drain(reader);
        prop_assert!(records.len() <= 128 * 1024 / 16);
    }

    #[test]
    fn no_mutation_upsets_a_summary(bytes in mutated()) {
        let Ok(reader) = reader(&bytes) else { return Ok(()) };
        let mut reader = reader.lenient();
        if let Ok(info) = info::summarise(&mut reader) {
            prop_assert!(info.text().chars().all(|c| c == '\n' || !c.is_control()));
            prop_assert_eq!(info.sizes_with_fcs.iter().map(|class| class.frames).sum::<u64>(), info.frames);
            let unknown = info.frames_without_flow.total();
            prop_assert!(info.flows + unknown <= info.frames && info.conversations <= info.flows);
        }
    }

    #[test]
    fn no_bytes_at_all_upset_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..300), magic in 0usize..6) {
        let magics = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4],
            &[0x0a, 0x0d, 0x0d, 0x0a], &[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd], &[]];
        let (records, _, _) = read_all(&[magics[magic], &bytes].concat());
        prop_assert!(records.len() <= 1 << 20);
    }
}
