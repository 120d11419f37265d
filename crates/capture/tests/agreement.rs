//! Agreement with Wireshark's tools (capinfos, editcap, mergecap, tshark) on frames, bytes and times, for captures
//! written here, for what those tools make of them, and for all files of the folder in `NETDYNO_CAPTURES`, if set.
//! The tools must be installed: apt-get install tshark.

use std::path::{Path, PathBuf};
use std::process::Command;

use netdyno_capture::{FileFormat, Interface, Reader, Writer, info};
use wire::LinkType;

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error} (apt-get install tshark)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Frames, original bytes and duration as capinfos counts, and as we do.
fn assert_agrees(path: &Path) {
    let mut reader = Reader::open(path).unwrap();
    let info = info::summarise(&mut reader).unwrap();
    let line = run("capinfos", &["-T", "-m", "-r", "-M", "-c", "-d", "-u", text(path)]);
    let mut fields = line.trim().rsplit(',');
    let mut field = || fields.next().unwrap();
    let (duration, bytes, frames) = (field(), field(), field());
    assert_eq!(frames, info.frames.to_string(), "{line}");
    assert_eq!(bytes, info.bytes.to_string(), "{line}");
    if duration != "n/a" {
        // capinfos gives as many digits as the file's resolution has, and cuts the rest.
        let ours = format!("{}.{:09}", info.duration_ns / 1_000_000_000, info.duration_ns % 1_000_000_000);
        assert!(ours.starts_with(duration.trim_end_matches('0')), "{line}: {ours}");
    }
}

const FRAMES: u64 = 500;

/// Frame n: UDP of 20 flows, 61 to 1,470 bytes, 1.000001001 s apart.
fn frame(n: u64) -> (u64, Vec<u8>) {
    let length = 61 + (n as usize * 37) % 1410;
    let mut data = vec![0x02; 12];
    data.extend([0x08, 0x00, 0x45, 0]);
    data.extend((length as u16 - 14).to_be_bytes());
    data.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, (n % 20) as u8, 192, 0, 2, 1]);
    data.extend([0x10, 0x00, 0x00, 53]);
    data.extend((length as u16 - 34).to_be_bytes());
    data.resize(length, 0);
    (1_700_000_000_123_456_789 + n * 1_000_001_001, data)
}

fn write(path: PathBuf, format: FileFormat) -> PathBuf {
    let mut writer = Writer::create(&path, format, LinkType::ETHERNET).unwrap();
    let second = match format {
        FileFormat::Pcapng => {
            let name = Some("raw0".to_owned());
            writer.add_interface(&Interface { link: LinkType::RAW, name, ..Interface::default() }).unwrap()
        }
        _ => 0,
    };
    for n in 0..FRAMES {
        let (time, data) = frame(n);
        if second > 0 && n % 3 == 0 {
            writer.write_on(second, time, &data[14..], data.len() as u32 - 14).unwrap();
        } else {
            // Some are cut, as with a snap length.
            writer.write(time, &data[..data.len().min(1000)], data.len() as u32).unwrap();
        }
    }
    writer.finish().unwrap();
    path
}

#[test]
fn files_written_here_and_real_captures_are_what_capinfos_says() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [
        ("us.pcap", FileFormat::PcapMicroseconds),
        ("ns.pcap", FileFormat::PcapNanoseconds),
        ("ns.pcap.gz", FileFormat::PcapNanoseconds),
        ("ns.pcap.zst", FileFormat::PcapNanoseconds),
        ("mixed.pcapng", FileFormat::Pcapng),
        ("mixed.pcapng.gz", FileFormat::Pcapng),
    ] {
        assert_agrees(&write(folder.path().join(name), format));
    }
    if let Some(real) = std::env::var_os("NETDYNO_CAPTURES") {
        for entry in std::fs::read_dir(real).unwrap() {
            let path = entry.unwrap().path();
            if text(&path).contains(".pcap") {
                assert_agrees(&path);
            }
        }
    }
}

#[test]
fn tshark_sees_the_times_lengths_and_link_types_that_were_written() {
    let folder = tempfile::tempdir().unwrap();
    for format in [FileFormat::PcapNanoseconds, FileFormat::Pcapng] {
        let path = write(folder.path().join("x"), format);
        let fields = [
            "-T",
            "fields",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.cap_len",
            "-e",
            "frame.len",
            "-e",
            "frame.encap_type",
        ];
        let seen = run("tshark", &[&["-n", "-r", text(&path)][..], &fields[..]].concat());
        let mut reader = Reader::open(&path).unwrap();
        let mut lines = seen.lines();
        while let Some(record) = reader.next_record().unwrap() {
            // Wireshark numbers encapsulations in its own way: 1 is Ethernet, 7 raw IP.
            let encapsulation = if record.link == LinkType::ETHERNET { 1 } else { 7 };
            let (seconds, fraction) = (record.time_ns / 1_000_000_000, record.time_ns % 1_000_000_000);
            let (captured, length) = (record.data.len(), record.wire_len);
            let ours = format!("{seconds}.{fraction:09}\t{captured}\t{length}\t{encapsulation}");
            assert_eq!(lines.next(), Some(ours.as_str()), "frame {}", record.number);
        }
        assert_eq!((lines.next(), seen.lines().count() as u64), (None, FRAMES));
    }
}

#[test]
fn what_editcap_and_mergecap_make_is_read_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ns = write(at("ns.pcap"), FileFormat::PcapNanoseconds);
    let mixed = write(at("mixed.pcapng"), FileFormat::Pcapng);
    let mut made = vec![];
    for kind in ["pcap", "nsecpcap", "pcapng", "modpcap"] {
        let out = at(kind);
        run("editcap", &["-F", kind, text(&ns), text(&out)]);
        made.push(out);
    }
    let (cut, merged) = (at("cut.pcapng"), at("merged.pcapng"));
    run("editcap", &["-s", "100", "-F", "pcapng", text(&mixed), text(&cut)]);
    run("mergecap", &["-w", text(&merged), text(&ns), text(&mixed), text(&at("pcap"))]);
    made.extend([cut, merged]);
    for path in made {
        assert_agrees(&path);
        let packed = path.with_extension("packed.gz");
        let input = std::fs::File::open(&path).unwrap();
        let output = std::fs::File::create(&packed).unwrap();
        assert!(Command::new("gzip").arg("-c").stdin(input).stdout(output).status().unwrap().success());
        assert_agrees(&packed);
    }
}

#[test]
fn flows_are_those_that_were_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path().join("x.pcap"), FileFormat::PcapNanoseconds);
    let info = info::summarise(&mut Reader::open(&path).unwrap()).unwrap();
    assert_eq!((info.flows, info.conversations, info.addresses.ipv4_sources), (20, 20, 20));
    assert_eq!((info.ports[0].port, info.ports[0].name, info.ports[0].frames), (53, Some("dns"), FRAMES));
}
