//! What `netdyno collect` writes, as others read it, and what becomes of it when something goes wrong.

use crate::common::{Folder, Net, eventually, folder, listing, number, path, reasons, run};
use crate::probe::{collector, ended, many_kinds};
use serde_json::Value;
use std::path::Path;

const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

/// Runs a script by the interpreter that has Parquet's readers.
pub fn read(dir: &Folder, script: &str, arguments: &str) -> String {
    let file = path(dir, "read.py");
    std::fs::write(&file, script).expect("a script");
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/readers/bin/python");
    assert!(Path::new(python).exists(), "{python} is not there; `scripts/setup test` installs it");
    run(format!("{python} {file} {arguments}")).ok().stdout
}

fn collection(report: &Value) -> &Value {
    &report["result"]["collection"]
}

/// Exports the flows of a capture, all of them.
fn export(net: &Net, capture: &str, options: &str) {
    net.run(format!("netdyno probe {capture} --export 127.0.0.1:9995 {WHOLE} --json {options}")).ok();
}

/// Parquet by pyarrow and by DuckDB, and the same rows as CSV: a value that differs ends it.
const SAME: &str = r#"
import csv, datetime, sys
import duckdb, pyarrow.parquet as pq
file, text = sys.argv[1:]
rows = list(csv.DictReader(open(text)))
table = pq.read_table(file)
read = duckdb.sql(f"SELECT * REPLACE (epoch_ns(time_received_ns) AS time_received_ns, epoch_ns(time_flow_start_ns) AS time_flow_start_ns, epoch_ns(time_flow_end_ns) AS time_flow_end_ns) FROM '{file}'")
assert read.columns == table.column_names and set(rows[0]) | {"other_fields"} == set(read.columns), read.columns
for column in table.column_names:
    if str(table.schema.field(column).type).startswith("timestamp"):
        assert str(table.schema.field(column).type) == "timestamp[ns, tz=UTC]", table.schema
        table = table.set_column(table.column_names.index(column), column, table[column].cast("int64"))
def text_of(name, value):
    if value is None:
        return {"src_mac": "00:00:00:00:00:00", "dst_mac": "00:00:00:00:00:00"}.get(name, "")
    return str(value)
def check(what, of):
    assert len(of) == len(rows), (what, len(of), len(rows))
    for one, row in zip(of, rows):
        one = {name: text_of(name, value) for name, value in one.items() if name != "other_fields"}
        assert one == row, (what, one, row)
check("pyarrow", table.to_pylist())
check("duckdb", [dict(zip(read.columns, row)) for row in read.fetchall()])
others = [row for row in table["other_fields"].to_pylist() if row]
print(len(rows), len(others), duckdb.sql(f"SELECT count(DISTINCT json_extract(other_fields, '$.minimumTTL')) FROM '{file}'").fetchall()[0][0])
meta = pq.ParquetFile(file).metadata
assert {meta.row_group(0).column(n).compression for n in range(meta.num_columns)} == {"ZSTD"}, meta
"#;

#[test]
fn parquet_is_read_by_pyarrow_and_duckdb_as_what_csv_has() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let (csv, parquet) = (path(&dir, "flows.csv"), path(&dir, "flows.parquet"));
    let running = collector(&net, &format!("--write {csv} --write {parquet}"));
    export(
        &net,
        &capture,
        "--domain 4294967295 --template %IPV4_SRC_ADDR,%IPV4_DST_ADDR,%IN_PKTS,%IN_BYTES,%FIRST_SWITCHED,%L4_DST_PORT,%MIN_TTL",
    );
    let report = ended(running);
    let said = read(&dir, SAME, &format!("{parquet} {csv}"));
    let numbers: Vec<u64> = said.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    assert_eq!(numbers[0], number(&collection(&report)["records"]));
    assert_eq!(number(&collection(&report)["written_records"]), numbers[0]);
    assert_eq!(number(&collection(&report)["unwritten_records"]), 0);
    assert!(numbers[0] > 400 && numbers[1] == numbers[0] && numbers[2] >= 1, "{said}");
}

#[test]
fn numbers_of_64_bits_and_no_rows_are_read_back() {
    const HUGE: &str = r#"
import socket, struct
template = struct.pack("!HHHHHHHH", 256, 3, 1, 8, 2, 8, 8, 4)
data = struct.pack("!QQ4s", 2**64 - 1, 2**63, bytes([1, 2, 3, 4]))
sets = struct.pack("!HH", 2, 4 + len(template)) + template + struct.pack("!HH", 256, 4 + len(data)) + data
message = struct.pack("!HHIII", 10, 16 + len(sets), 1700000000, 0, 2**32 - 1) + sets
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(message, ("127.0.0.1", 9995))
"#;
    const READ: &str = r#"
import sys
import duckdb, pyarrow.parquet as pq
for file in sys.argv[1:]:
    rows = duckdb.sql(f"SELECT bytes, packets, src_addr, dst_addr, time_flow_start_ns, src_mac, observation_domain_id, other_fields FROM '{file}'").fetchall()
    assert pq.read_table(file).num_rows == len(rows)
    print(rows)
"#;
    let (net, dir) = (Net::new(), folder());
    let (none, huge, script) =
        (path(&dir, "none.parquet"), path(&dir, "huge.parquet"), path(&dir, "huge.py"));
    ended(collector(&net, &format!("--write {none}")));
    let running = collector(&net, &format!("--write {huge} --count 1"));
    std::fs::write(&script, HUGE).expect("a script");
    net.run(format!("/usr/bin/python3 {script}")).ok();
    running.wait().ok();
    let said = read(&dir, READ, &format!("{none} {huge}"));
    let huge = "[(18446744073709551615, 9223372036854775808, '1.2.3.4', None, None, None, 4294967295, None)]";
    assert_eq!(said.lines().collect::<Vec<_>>(), ["[]", huge]);
}

/// Rows in whole Parquet files below a folder, each of which is where its rows' times belong.
const BY_TIME: &str = r#"
import glob, sys
import duckdb
folder = sys.argv[1]
files = glob.glob(folder + "/**/*.parquet", recursive=True)
read = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true, filename = true)"
rows = duckdb.sql(f"SELECT count(*) FROM {read}").fetchall()[0][0] if files else 0
wrong = duckdb.sql(f"""SELECT count(*) FROM {read} WHERE
    strftime(make_timestamp_ns(epoch_ns(time_received_ns)), '%Y-%m-%d') <> CAST(date AS VARCHAR)
    OR CAST(strftime(make_timestamp_ns(epoch_ns(time_received_ns)), '%H') AS INT) <> CAST(hour AS INT)
    OR abs(epoch(strptime(regexp_extract(filename, '-([0-9]{{8}}T[0-9]{{6}})Z', 1), '%Y%m%dT%H%M%S')) - floor(epoch_ns(time_received_ns) / 1e9)) > 0""").fetchall()[0][0] if files else 0
print(len(files), rows, wrong)
"#;

#[test]
fn rotated_files_are_whole_when_they_have_their_names_even_if_it_is_killed() {
    let (net, dir) = (Net::new(), folder());
    let capture = path(&dir, "many.pcap");
    net.run(format!("netdyno craft ipv4(src=shuffled(10.0.0.0/16),dst=192.0.2.1)/udp(sport=1,dport=2) --size 64 --count 60000 --write {capture}")).ok();
    let out = path(&dir, "out");
    std::fs::create_dir(&out).expect("a folder");
    let options = format!("--write {out}/flows.parquet --rotate 1s --partition hour");
    let whole = collector(&net, &options);
    // Three seconds.
    export(&net, &capture, "--export-rate 20000");
    let report = ended(whole);
    let came = number(&collection(&report)["records"]);
    assert_eq!(came, 60_000);
    let numbers = |said: &str| -> Vec<u64> {
        said.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    };
    let before = numbers(&read(&dir, BY_TIME, &out));
    assert!(before[0] >= 3 && before[1] == came && before[2] == 0, "{before:?}");

    let killed = collector(&net, &options);
    let sending = net
        .start(format!("netdyno probe {capture} --export 127.0.0.1:9995 --export-rate 10000 {WHOLE} --json"));
    eventually("a file of the second collector has its name", || {
        numbers(&read(&dir, BY_TIME, &out))[0] > before[0] + 1
    });
    killed.signal("KILL");
    killed.wait();
    drop(sending);
    let after = numbers(&read(&dir, BY_TIME, &out));
    assert!(after[1] > before[1] && after[2] == 0, "{before:?} {after:?}");
}

#[test]
fn a_sink_that_stalls_holds_up_neither_receiving_nor_the_other_sink() {
    let (net, dir) = (Net::new(), folder());
    let capture = path(&dir, "many.pcap");
    net.run(format!("netdyno craft ipv4(src=shuffled(10.0.0.0/16),dst=192.0.2.1)/udp(sport=1,dport=2) --size 64 --count 60000 --write {capture}")).ok();
    let (pipe, csv) = (path(&dir, "pipe.jsonl"), path(&dir, "flows.csv"));
    run(format!("mkfifo {pipe}")).ok();
    // Somebody has it open, and does not read.
    let _open = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("the pipe");
    let running = collector(&net, &format!("--write {pipe} --write {csv}"));
    for _ in 0..8 {
        export(&net, &capture, "--export-rate 200000");
    }
    // It ends although the pipe is stuck.
    running.signal("INT");
    let ran = running.wait();
    let report = ran.json();
    let of = collection(&report);
    let came = number(&of["records"]);
    assert!(came > 300_000, "{report}");
    // Each has its own count, and neither stands for the other.
    let sink = |at: usize, name: &str| number(&of["sinks"][at][name]);
    assert_eq!((sink(0, "written_records"), sink(0, "unwritten_records")), (0, came), "{report}");
    assert_eq!((sink(1, "written_records"), sink(1, "unwritten_records")), (came, 0), "{report}");
    assert_eq!((number(&of["written_records"]), number(&of["unwritten_records"])), (0, came), "{report}");
    for said in ["did not go on for 10 s", "were not written"] {
        assert!(reasons(&report).iter().any(|reason| reason.contains(said)), "{said}: {report}");
    }
    let lines = std::fs::read_to_string(&csv).expect("the file").lines().count() as u64;
    assert_eq!(lines, came + 1);
    assert!(listing(dir.path()).contains(&"flows.csv".to_owned()));
}

#[test]
fn a_port_that_a_collector_has_is_refused_to_a_second_one_unless_both_share_it() {
    let net = Net::new();
    let first = collector(&net, "");
    for second in ["", "--share-port", "--threads 2"] {
        net.run(format!("netdyno collect --listen 127.0.0.1:9995 --duration 1s {second}"))
            .refused(&["--listen 127.0.0.1:9995", "another socket receives there already"]);
    }
    ended(first);
    let first = collector(&net, "--share-port");
    net.run("netdyno collect --listen 127.0.0.1:9995 --duration 1s --share-port").ok();
    ended(first);
    // IPv4 and IPv6 of one port are two places of one collector.
    net.run("netdyno collect --listen 0.0.0.0:9995 --listen [::]:9995 --threads 2 --duration 1s").ok();
}

#[test]
fn a_pipe_that_nobody_reads_ends_with_the_duration() {
    let (net, dir) = (Net::new(), folder());
    let pipe = path(&dir, "pipe.csv");
    run(format!("mkfifo {pipe}")).ok();
    let report = net
        .run(format!("netdyno collect --listen 127.0.0.1:9995 --write {pipe} --duration 1s --json"))
        .with(1)
        .json();
    assert!(reasons(&report)[0].contains("nobody opened the pipe"), "{report}");
}
