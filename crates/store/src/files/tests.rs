use super::*;
use flow::record::Format;
use std::collections::BTreeMap;

const START: u64 = 1_795_484_000 * SECOND; // 2026-11-24T01:33:20Z

fn row(ns: u64, octets: u64) -> Row {
    let mut session = flow::collect::Session::new(true);
    let mut message = vec![0u8; 24 + 48];
    message[..4].copy_from_slice(&[0, 5, 0, 1]);
    message[24..28].copy_from_slice(&[10, 0, 0, 1]);
    let mut made = None;
    let mut room = flow::collect::Room::of(1 << 20);
    session.message(&message, &mut room, &mut |record, others| {
        let mut record = *record;
        assert_eq!(record.format, Format::V5);
        record.octets = octets;
        made = Some(Row::of(&record, others, [192, 0, 2, 1].into(), ns));
    });
    made.expect("a record")
}

fn plan(folder: &Path, name: &str) -> Plan {
    let path = folder.join(name);
    let form = Form::of(&path).expect("a form");
    Plan { path, form, every: None, size: None, partition: None }
}

/// Files below a folder, by their names there.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
            }
        }
    }
    found
}

#[test]
fn a_row_goes_to_the_file_of_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan(folder.path(), "flows.csv");
    plan.every = Some(Duration::from_secs(600));
    plan.partition = Some(Partition::Hour);
    let mut files_of = Files::create(plan).unwrap();
    assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
    // 01:33:20, 01:39:59.9, 01:40:00, 02:00:00, and one that is late.
    let times = [0, 399, 400, 1600, 10].map(|after| START + after * SECOND);
    let rows: Vec<Row> = times.iter().zip(1..).map(|(ns, octets)| row(*ns, octets)).collect();
    files_of.take(&rows);
    files_of.finish();
    assert_eq!(files_of.kept(), &Kept { records: 5, ..Kept::default() });
    let found = files(folder.path());
    let lines: Vec<(&str, usize)> =
        found.iter().map(|(name, text)| (name.as_str(), text.lines().count() - 1)).collect();
    assert_eq!(
        lines,
        [
            ("date=2026-11-24/hour=01/flows-20261124T013000Z.csv", 3),
            ("date=2026-11-24/hour=01/flows-20261124T014000Z.csv", 1),
            ("date=2026-11-24/hour=02/flows-20261124T020000Z.csv", 1),
        ]
    );
}

#[test]
fn a_file_that_is_large_enough_is_followed_by_another_and_none_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { size: Some(1), ..plan(folder.path(), "flows.jsonl") };
    let mut files_of = Files::create(plan).unwrap();
    for octets in 0..3 {
        files_of.take(&[row(START, octets)]);
    }
    files_of.finish();
    assert_eq!(files_of.kept().records, 3);
    let found = files(folder.path());
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["flows-20261124T013320Z-2.jsonl", "flows-20261124T013320Z-3.jsonl", "flows-20261124T013320Z.jsonl"]
    );
    assert!(found["flows-20261124T013320Z-3.jsonl"].contains("\"bytes\":2,"));
}

#[test]
fn a_file_whose_time_is_over_gets_its_name_without_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { every: Some(Duration::from_secs(1)), ..plan(folder.path(), "flows.parquet") };
    let mut files_of = Files::create(plan).unwrap();
    files_of.take(&[row(START, 7)]);
    assert_eq!(files_of.kept().records, 0);
    files_of.look();
    assert_eq!(files_of.kept().records, 1);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_folder_that_goes_and_comes_back_costs_what_came_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let plan = Plan { size: Some(1), ..plan(&inside, "flows.csv") };
    let mut files_of = Files::create(plan).unwrap();
    files_of.take(&[row(START, 1)]);
    std::fs::remove_dir_all(&inside).unwrap();
    files_of.take(&[row(START, 2)]);
    files_of.take(&[row(START, 3)]);
    assert_eq!((files_of.kept().records, files_of.kept().lost, files_of.kept().faults), (1, 2, 1));
    assert!(files_of.kept().fault.as_ref().unwrap().contains("flows-2026"), "{:?}", files_of.kept());
    std::fs::create_dir(&inside).unwrap();
    files_of.pause = None;
    files_of.take(&[row(START, 4)]);
    files_of.finish();
    assert_eq!((files_of.kept().records, files_of.kept().lost), (2, 2));
    assert_eq!(files(&inside).len(), 1);
}

#[test]
fn a_disk_that_is_full_is_said_and_nothing_half_is_left() {
    // It takes what is opened, and no byte.
    let plan = Plan { form: Form::Csv, ..plan(Path::new("/dev"), "full.csv") };
    let plan = Plan { path: PathBuf::from("/dev/full"), ..plan };
    let mut files_of = Files::create(plan).unwrap();
    let rows: Vec<Row> = (0..10_000).map(|octets| row(START, octets)).collect();
    files_of.take(&rows);
    files_of.take(&rows);
    files_of.finish();
    assert_eq!((files_of.kept().records, files_of.kept().lost), (0, 20_000));
    assert!(files_of.kept().fault.as_ref().unwrap().contains("No space left"), "{:?}", files_of.kept());
}

/// A disk of 1 MiB, which is gone with it.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(mount.success(), "these tests need root");
        Disk(folder)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn of_a_disk_that_fills_up_what_is_whole_is_kept_and_said() {
    let rows: Vec<Row> = (0..1000).map(|octets| row(START, octets)).collect();
    for ending in ["csv", "jsonl", "pb"] {
        let disk = Disk::new();
        let mut files_of = Files::create(plan(disk.0.path(), &format!("flows.{ending}"))).unwrap();
        for _ in 0..40 {
            files_of.take(&rows);
        }
        files_of.finish();
        let kept = files_of.kept().clone();
        assert!(kept.records > 500 && kept.records + kept.lost == 40_000, "{ending}: {kept:?}");
        let fault = kept.fault.unwrap();
        let said = format!("ends behind its first {}", report::units::counted(kept.records, "record"));
        assert!(fault.contains("No space left") && fault.contains(&said), "{fault}");
        // It is as long as so many rows are.
        let bytes = std::fs::read(disk.0.path().join(format!("flows.{ending}"))).unwrap();
        let mut wanted = Vec::new();
        if ending == "csv" {
            text::head(&mut wanted);
        }
        let mut scratch = Vec::new();
        for row in rows.iter().cycle().take(kept.records as usize) {
            match ending {
                "csv" => text::csv(row, &mut wanted),
                "jsonl" => text::json(row, &mut wanted),
                _ => protobuf::write(row, &mut scratch, &mut wanted),
            }
        }
        assert!(bytes == wanted, "{ending}: {} and {}", bytes.len(), wanted.len());
        assert_eq!(files(disk.0.path()).len(), 1);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn of_parquet_the_groups_that_are_whole_are_kept() {
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    let disk = Disk::new();
    let mut files_of = Files::create(plan(disk.0.path(), "flows.parquet")).unwrap();
    let mut seed = 1u64;
    for _ in 0..30 {
        let rows: Vec<Row> = (0..crate::parquet::GROUP as u64 / 10)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                row(START, seed >> 62)
            })
            .collect();
        files_of.take(&rows);
    }
    // Three groups fit; what fills the rest of the disk is not compressible.
    assert!(files_of.kept().fault.is_none(), "{:?}", files_of.kept());
    let mut filler = std::fs::File::create(disk.0.path().join("filler")).unwrap();
    while std::io::Write::write(&mut filler, &[1; 4096]).is_ok_and(|count| count > 0) {}
    let rows: Vec<Row> = (0..crate::parquet::GROUP as u64)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            row(START, seed)
        })
        .collect();
    files_of.take(&rows);
    files_of.finish();
    let kept = files_of.kept();
    let group = crate::parquet::GROUP as u64;
    assert!(
        kept.records >= group && kept.records.is_multiple_of(group) && kept.records <= 3 * group,
        "{kept:?}"
    );
    assert_eq!(kept.records + kept.lost, 4 * group);
    let file = std::fs::File::open(disk.0.path().join("flows.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows() as u64, kept.records);
    assert_eq!(reader.get_row_iter(None).unwrap().filter(Result::is_ok).count() as u64, kept.records);
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn a_pipe_without_a_reader_holds_nothing_up_and_one_that_comes_late_gets_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path());
    let rows: Vec<Row> = (0..100).map(|octets| row(START, octets)).collect();
    let mut files_of = Files::create(plan(folder.path(), "pipe.jsonl")).unwrap();
    files_of.take(&rows);
    files_of.look();
    files_of.finish();
    assert_eq!((files_of.kept().records, files_of.kept().lost), (0, 100));
    assert!(files_of.kept().fault.as_ref().unwrap().contains("nobody opened the pipe"), "{files_of:?}");

    let mut files_of = Files::create(plan(folder.path(), "pipe.jsonl")).unwrap();
    files_of.take(&rows);
    files_of.look();
    let reader = std::thread::spawn(move || std::fs::read_to_string(path).unwrap());
    // Until the reader is there, which nobody waits for.
    while !reader.is_finished() {
        files_of.look();
        if files_of.kept().records == 0 && files_of.open.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        if matches!(&files_of.open[..], [Open { of: Encoder::Bytes(lines), .. }] if lines.ground.is_open()) {
            files_of.finish();
            break;
        }
    }
    assert_eq!((files_of.kept().records, files_of.kept().lost), (100, 0));
    assert_eq!(reader.join().unwrap().lines().count(), 100);
}

#[test]
fn what_went_into_a_pipe_before_its_reader_left_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path());
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let rows: Vec<Row> = (0..20).map(|octets| row(START, octets)).collect();
    let mut files_of = Files::create(plan(folder.path(), "pipe.jsonl")).unwrap();
    files_of.take(&rows);
    files_of.look();
    drop(reader);
    files_of.take(&rows);
    files_of.look();
    files_of.take(&rows);
    files_of.finish();
    assert_eq!((files_of.kept().records, files_of.kept().lost), (20, 40));
    let fault = files_of.kept().fault.clone().unwrap();
    assert!(fault.contains("Broken pipe") && fault.contains("20 records"), "{fault}");
}

/// Keeps the cost in view (`cargo test --release -p netdyno-store cost -- --nocapture`).
#[test]
fn the_cost_of_a_row() {
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let one = row(START, 64);
    let count = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    let rows: Vec<Row> = (0..count)
        .map(|number| {
            let mut row = one.clone();
            let address = |value: u64| Some(std::net::Ipv4Addr::from(value as u32).into());
            row.received_ns = START + number * 1000;
            row.record.times_ns = [START + number * 999, START + number * 1001];
            row.record.addresses = [address(random()), address(random())];
            row.record.ports = [random() as u16, random() as u16];
            row.record.octets = 40 + random() % 1460;
            row.record.packets = 1 + random() % 4;
            row
        })
        .collect();
    for ending in ["csv", "jsonl", "pb", "parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(folder.path(), &format!("flows.{ending}"));
        let path = plan.path.clone();
        let mut files_of = Files::create(plan).unwrap();
        let begun = Instant::now();
        rows.chunks(1024).for_each(|rows| files_of.take(rows));
        files_of.finish();
        let lasted = begun.elapsed();
        assert_eq!(files_of.kept().records, count);
        let size = std::fs::metadata(path).unwrap().len();
        println!("{ending}: {} ns and {} bytes a row", lasted.as_nanos() as u64 / count, size / count);
    }
}
