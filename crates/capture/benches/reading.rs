//! What reading costs, beside the floor: `cargo bench -p netdyno-capture`. Files are made in the temporary folder
//! and read from the page cache. On the development machine a record of 60 bytes costs 15 to 20 ns, of which half
//! is the kernel's copying.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use netdyno_capture::{FileFormat, Reader, Writer, info};
use wire::LinkType;

const RECORDS: u64 = 1_000_000;
const FLOWS: u64 = 40_000;

/// UDP frames of [`FLOWS`] flows.
fn make(path: &Path, length: usize, records: u64) -> f64 {
    let mut frame = vec![0x02; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((length as u16 - 14).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 53, 0, 26, 0, 0]);
    frame.resize(length, 0);
    let start = Instant::now();
    let mut writer = Writer::create(path, FileFormat::of_name(path), LinkType::ETHERNET).unwrap();
    for n in 0..records {
        frame[26..30].copy_from_slice(&(0x0a00_0000 + (n % FLOWS) as u32).to_be_bytes());
        writer.write(1_600_000_000_000_000_000 + n * 1000, &frame, length as u32).unwrap();
    }
    writer.finish().unwrap();
    start.elapsed().as_nanos() as f64 / records as f64
}

/// The best of five, in nanoseconds a record.
fn best(records: u64, mut run: impl FnMut()) -> f64 {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / records as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    println!("{:24}{:>10}{:>10}{:>10}{:>10}   ns a record", "", "write", "read()", "records", "info");
    for (name, length, records) in [
        ("60.pcap", 60, RECORDS),
        ("60.pcapng", 60, RECORDS),
        ("60.pcap.gz", 60, RECORDS),
        ("60.pcap.zst", 60, RECORDS),
        ("1514.pcap", 1514, RECORDS / 10),
    ] {
        let path = folder.path().join(name);
        let write = make(&path, length, records);
        let mut buffer = vec![0; 256 * 1024];
        let floor = best(records, || {
            let mut file = File::open(&path).unwrap();
            while file.read(&mut buffer).unwrap() > 0 {}
        });
        let read = best(records, || {
            let mut reader = Reader::open(&path).unwrap();
            let mut bytes = 0u64;
            while let Some(record) = reader.next_record().unwrap() {
                bytes += record.data.len() as u64;
            }
            assert_eq!(bytes, records * length as u64);
        });
        let info = best(records, || {
            let info = info::summarise(&mut Reader::open(&path).unwrap()).unwrap();
            assert_eq!(info.flows, FLOWS);
        });
        println!("{name:24}{write:>10.1}{floor:>10.1}{read:>10.1}{info:>10.1}");
    }
}
