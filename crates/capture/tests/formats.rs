//! Every format and packing is read right, from literal bytes, and what is written is read back.

mod common;

use std::io::Write;

use common::{BIG, Kept, LITTLE, Order, drain, read_all, reader};
use netdyno_capture::{FileFormat, Interface, Reader, Writer};
use proptest::prelude::*;
use wire::LinkType;

fn kept(time_ns: u64, data: &[u8], wire_len: u32) -> Kept {
    Kept { time_ns, data: data.to_vec(), wire_len, link: 1, interface: 0 }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for order in [LITTLE, BIG] {
        for (magic, name, time) in [
            (0xa1b2_c3d4, "microseconds", 1_600_000_000_000_005_000),
            (0xa1b2_3c4d, "nanoseconds", 1_600_000_000_000_000_005),
        ] {
            let file = [
                order.pcap_header(magic, 65535, 1),
                order.pcap_record(1_600_000_000, 5, b"hello", 60),
                order.pcap_record(u32::MAX, 0, b"", 0),
            ];
            let file = file.concat();
            let (records, error, notes) = read_all(&file);
            assert!(error.is_none());
            assert_eq!(records, [kept(time, b"hello", 60), kept(4_294_967_295_000_000_000, b"", 0)]);
            assert_eq!((notes.truncated, notes.zero_length), (1, 1));
            let expected = if order.big { "pcap, big-endian, " } else { "pcap, little-endian, " };
            assert_eq!(reader(&file).unwrap().format().to_string(), format!("{expected}{name}"));
        }
    }
}

#[test]
fn kuznetzovs_pcap_has_longer_records() {
    let record = [LITTLE.words(&[7, 0, 3, 3]), LITTLE.words(&[1, 0]), b"abc".to_vec()].concat();
    let file = [LITTLE.pcap_header(0xa1b2_cd34, 65535, 1), record.clone(), record].concat();
    let expected = kept(7_000_000_000, b"abc", 3);
    assert_eq!(read_all(&file).0, [expected.clone(), expected]);
}

#[test]
fn pcap_before_version_2_4_may_have_its_lengths_swapped() {
    let mut file = LITTLE.pcap_header(0xa1b2_c3d4, 65535, 1);
    file[6] = 3;
    file.extend(LITTLE.words(&[1, 0, 60, 3]));
    file.extend(b"abc");
    assert_eq!(read_all(&file).0, [kept(1_000_000_000, b"abc", 60)]);
}

#[test]
fn the_link_field_may_also_tell_an_fcs_length() {
    let file = LITTLE.pcap_header(0xa1b2_c3d4, 65535, 0x2400_0001);
    let reader = reader(&file).unwrap();
    assert_eq!((reader.interfaces()[0].link, reader.interfaces()[0].fcs_len), (LinkType::ETHERNET, 4));
}

#[test]
fn a_frame_check_sequence_stands_apart_from_the_packet() {
    // Two whole packets, one without half of its check sequence, one shorter than that.
    let mut pcap = LITTLE.pcap_header(0xa1b2_c3d4, 65535, 0x2400_0001);
    pcap.extend(LITTLE.pcap_record(1, 0, b"packetFCS!", 10));
    pcap.extend(LITTLE.pcap_record(1, 0, b"packetFC", 10));
    pcap.extend(LITTLE.pcap_record(1, 0, b"pack", 10));
    pcap.extend(LITTLE.pcap_record(1, 0, b"abc", 3));
    let mut reader = reader(&pcap).unwrap();
    let mut read = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        read.push((record.data.to_vec(), record.wire_len, record.fcs.to_vec(), record.fcs_len));
    }
    let of = |data: &[u8], wire_len: u32, fcs: &[u8], fcs_len: usize| {
        (data.to_vec(), wire_len, fcs.to_vec(), fcs_len)
    };
    let wanted = [
        of(b"packet", 6, b"FCS!", 4),
        of(b"packet", 6, b"FC", 4),
        of(b"pack", 6, b"", 4),
        of(b"", 0, b"abc", 3),
    ];
    assert_eq!(read, wanted);
    // In pcapng the interface says it, or a packet of itself (epb_flags).
    for order in [LITTLE, BIG] {
        let interface = order.interface(1, 0, &[order.option(13, &[2]), order.option(0, &[])].concat());
        let packet = |options: &[u8]| [&order.words(&[0, 0, 5, 8, 8])[..], b"packetFC", options].concat();
        let flags = |length: u32| [order.option(2, &order.u32(length << 5)), order.option(0, &[])].concat();
        let file = [
            order.section(),
            interface,
            order.block(6, &packet(&[])),
            order.block(6, &packet(&flags(4))),
            order.block(6, &packet(&flags(0))),
        ];
        let (records, error, _) = read_all(&file.concat());
        assert!(error.is_none(), "{error:?}");
        let data: Vec<&[u8]> = records.iter().map(|record| &record.data[..]).collect();
        assert_eq!(data, [&b"packet"[..], b"pack", b"packet"], "big-endian: {}", order.big);
    }
}

#[test]
fn no_more_is_read_of_a_packet_than_there_was() {
    let file = [
        LITTLE.pcap_header(0xa1b2_c3d4, 0, 1),
        LITTLE.pcap_record(1, 0, b"packet and more", 6),
        // Some writers do not tell how long packets were.
        LITTLE.pcap_record(2, 0, b"packet", 0),
    ];
    let (records, error, notes) = read_all(&file.concat());
    assert!(error.is_none());
    assert_eq!(records, [kept(1_000_000_000, b"packet", 6), kept(2_000_000_000, b"packet", 6)]);
    assert_eq!((notes.longer_than_wire, notes.truncated), (1, 0));
}

#[test]
fn pcapng_with_all_kinds_of_blocks() {
    for order in [LITTLE, BIG] {
        let speed = order.option(8, &order.u64(10_000_000_000));
        let options = [order.option(2, b"eth0"), speed, order.option(9, &[9]), order.option(0, &[])].concat();
        let statistics = |dropped: u64| {
            let body = [order.words(&[0, 0, 0]), order.option(5, &order.u64(dropped))].concat();
            order.block(5, &body)
        };
        let obsolete = [order.u16(1), order.u16(9)].concat();
        let obsolete = [obsolete, order.words(&[0, 6, 2, 2]), b"pb".to_vec()].concat();
        // A simple packet belongs to the section's first interface, whose snap length says how much of it there is.
        let other = if order.big { LITTLE } else { BIG };
        let simple = |order: Order| order.block(3, &[order.u32(60).to_vec(), b"simple".to_vec()].concat());
        let file = [
            order.section(),
            order.interface(1, 6, &options),
            order.interface(101, 0, &[]),
            order.block(4, &[0; 20]),
            order.block(10, &[1; 700_000]),
            order.block(0xbad, &[0; 8]),
            order.block(0x7777, &[]),
            order.enhanced(0, 1_600_000_000_000_000_005, b"hello", 60),
            order.enhanced(1, 7, b"raw", 3),
            statistics(3),
            order.block(2, &obsolete),
            simple(order),
            statistics(5),
            other.section(),
            other.interface(113, 6, &[]),
            other.enhanced(0, 8, b"second", 6),
            simple(other),
        ];
        let (records, error, notes) = read_all(&file.concat());
        assert!(error.is_none(), "{error:?}");
        let expect = |time_ns, data: &[u8], wire_len, link, interface| Kept {
            time_ns,
            data: data.to_vec(),
            wire_len,
            link,
            interface,
        };
        assert_eq!(
            records,
            [
                expect(1_600_000_000_000_000_005, b"hello", 60, 1, 0),
                expect(7000, b"raw", 3, 101, 1),
                expect(6000, b"pb", 2, 101, 1),
                expect(6000, b"simple", 60, 1, 0),
                expect(8000, b"second", 6, 113, 2),
                expect(8000, b"simple", 60, 113, 2),
            ]
        );
        assert_eq!((notes.untimed, notes.lost_in_capture, notes.unknown_blocks), (2, 5, 1));
        assert_eq!((notes.time_backwards, notes.over_snaplen), (2, 0));

        let mut reader = reader(&file.concat()).unwrap();
        while reader.next_record().unwrap().is_some() {}
        let [first, second, third] = reader.interfaces() else { panic!("three interfaces") };
        assert_eq!((first.name.as_deref(), first.speed_bps), (Some("eth0"), Some(10_000_000_000)));
        assert_eq!((first.ticks_per_second, second.ticks_per_second), (Some(1_000_000_000), Some(1_000_000)));
        assert_eq!(third.link, LinkType::LINUX_SLL);
    }
}

#[test]
fn every_resolution_of_time_becomes_nanoseconds() {
    let time = |resolution: u8, offset: i64, ticks: u64| {
        let options = [LITTLE.option(9, &[resolution]), LITTLE.option(14, &offset.to_le_bytes())].concat();
        let file = [LITTLE.section(), LITTLE.interface(1, 0, &options), LITTLE.enhanced(0, ticks, b"", 0)];
        let (records, error, notes) = read_all(&file.concat());
        assert!(error.is_none());
        (records[0].time_ns, notes.odd_times)
    };
    assert_eq!(time(0, 0, 7), (7_000_000_000, 0));
    assert_eq!(time(3, 0, 7), (7_000_000, 0));
    assert_eq!(time(9, 0, u64::MAX), (u64::MAX, 0));
    assert_eq!(time(12, 0, 7_999), (7, 0), "picoseconds");
    assert_eq!(time(127, 0, u64::MAX), (0, 0));
    assert_eq!(time(0x80 | 10, 0, 1536), (1_500_000_000, 0), "1/1024 s");
    assert_eq!(time(0xff, 0, u64::MAX), (0, 0));
    assert_eq!(time(6, 1_600_000_000, 5), (1_600_000_000_000_005_000, 0));
    assert_eq!(time(6, -1, 1_500_000), (500_000_000, 0));
    assert_eq!(time(6, -2, 1_500_000), (0, 1), "before 1970");
    assert_eq!(time(0, 0, u64::MAX), (u64::MAX, 1));
    assert_eq!(time(6, i64::MIN, 0), (0, 1));
    assert_eq!(time(6, i64::MAX, u64::MAX), (u64::MAX, 1));
}

#[test]
fn packed_captures_are_known_by_their_magic_and_may_have_several_members() {
    let record = |data: &[u8]| LITTLE.pcap_record(1, 0, data, data.len() as u32);
    let (head, tail) = ([LITTLE.pcap_header(0xa1b2_c3d4, 0, 1), record(b"one")].concat(), record(b"two"));
    let skippable = [&[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for (packed, name) in [
        ([gzip(&head), gzip(&tail)].concat(), "gzip"),
        ([zstd(&head), zstd(&tail)].concat(), "zstd"),
        ([skippable, zstd(&head), zstd(&tail)].concat(), "zstd"),
    ] {
        let (records, error, _) = read_all(&packed);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(records, [kept(1_000_000_000, b"one", 3), kept(1_000_000_000, b"two", 3)]);
        assert!(reader(&packed).unwrap().format().to_string().ends_with(name));
    }
}

#[test]
fn files_can_be_read_again_and_pipes_cannot() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.pcap", "x.pcap.gz", "x.pcapng.zst"] {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path, FileFormat::of_name(&path), LinkType::RAW).unwrap();
        for n in 0..1000u64 {
            writer.write(n, &n.to_le_bytes(), 8).unwrap();
        }
        assert!(!path.exists(), "not before it is finished");
        writer.finish().unwrap();

        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.file_len(), Some(path.metadata().unwrap().len()));
        for _ in 0..3 {
            let mut count = 0u64;
            while let Some(record) = reader.next_record().unwrap() {
                assert_eq!((record.time_ns, record.data), (count, &count.to_le_bytes()[..]));
                count += 1;
                assert_eq!(record.number, count);
            }
            assert_eq!(count, 1000);
            reader.rewind().unwrap();
            assert!(reader.next_record().unwrap().is_some());
            reader.rewind().unwrap();
        }
    }
    let error = reader(&LITTLE.pcap_header(0xa1b2_c3d4, 0, 1)).unwrap().rewind().unwrap_err();
    assert!(error.to_string().contains("cannot be read a second time"), "{error}");
}

#[test]
fn an_unfinished_file_is_not_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.pcap", "x.pcap.gz", "x.pcapng.zst"] {
        let mut writer =
            Writer::create(&folder.path().join(name), FileFormat::Pcapng, LinkType::ETHERNET).unwrap();
        writer.write(0, &[0; 300], 300).unwrap();
        drop(writer);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let mut pcap = Writer::new(vec![], FileFormat::PcapNanoseconds, LinkType::ETHERNET);
    let message = |result: Result<(), netdyno_capture::CaptureError>| result.unwrap_err().to_string();
    assert!(message(pcap.write(1 << 63, b"", 0)).contains("2106"));
    assert!(message(pcap.write(0, &vec![0; 262_145], 0)).contains("262145 bytes"));
    assert!(message(pcap.write_on(1, 0, b"", 0)).contains("of interface 1, and 1 are described"));
    assert!(pcap.add_interface(&Interface::default()).unwrap_err().to_string().contains("write pcapng"));
    assert!(pcap.write(0, &vec![0; 262_144], 0).is_ok());
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let mut writer =
        Writer::create("/dev/full".as_ref(), FileFormat::PcapNanoseconds, LinkType::ETHERNET).unwrap();
    let result = (0..1000).try_for_each(|n| writer.write(n, &[0; 1500], 1500)).and_then(|()| writer.finish());
    assert!(result.unwrap_err().to_string().contains("No space left"));
}

fn packets() -> impl Strategy<Value = Vec<(u64, Vec<u8>, u32, bool)>> {
    // Up to the year 2106, where pcap ends.
    let time = 0u64..4_294_967_296_000_000_000;
    let data = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..100),
        1 => (0usize..262_145).prop_map(|length| vec![7; length]),
    ];
    proptest::collection::vec((time, data, any::<u32>(), any::<bool>()), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(packets in packets(), which in 0usize..3, packing in 0usize..3, link in any::<u16>()) {
        let format = [FileFormat::PcapMicroseconds, FileFormat::PcapNanoseconds, FileFormat::Pcapng][which];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(["x.cap", "x.cap.gz", "x.cap.zst"][packing]);
        let mut writer = Writer::create(&path, format, LinkType(link)).unwrap();
        let second = match format {
            FileFormat::Pcapng => {
                let name = Some("second".to_owned());
                writer.add_interface(&Interface { link: LinkType::RAW, name, ..Interface::default() }).unwrap()
            }
            _ => 0,
        };
        for (time, data, wire_len, on_second) in &packets {
            writer.write_on(if *on_second { second } else { 0 }, *time, data, *wire_len).unwrap();
        }
        writer.finish().unwrap();
        let reader = Reader::open(&path).unwrap();
        prop_assert_eq!(reader.format().compression.map(|packing| packing.name()), [None, Some("gzip"), Some("zstd")][packing]);
        let (records, error, _) = drain(reader);
        prop_assert!(error.is_none());
        let unit = if which == 0 { 1000 } else { 1 };
        let expected: Vec<Kept> = packets.into_iter().map(|(time, data, wire_len, on_second)| {
            let interface = if on_second { second } else { 0 };
            let link = if interface == 1 { 101 } else { link };
            Kept { time_ns: time / unit * unit, data, wire_len, link, interface }
        }).collect();
        prop_assert_eq!(records, expected);
    }
}
