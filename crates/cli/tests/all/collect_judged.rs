//! What `netdyno collect` reads of exporters that others wrote nothing for: random templates, lengths, orders and times, judged by
//! nfcapd 1.7.1. Where the two have different rules (docs/flows.md, "Which field counts") the generator keeps away.

use crate::common::{Net, folder, path, run};
use crate::probe::{Nfcapd, Records, collector, ended, written};

/// Messages of three exporters, the same ones each time: 400 of NetFlow v5, v9 and IPFIX each, with a record or some.
const EXPORTERS: &str = r#"
import random, socket, struct, time
dice = random.Random(31)
NOW, UP = 1700000000, 7000
def bytes_of(value, length): return value.to_bytes(length, "big")
def set_of(number, body, pad):
    body += bytes(-len(body) % 4 if pad else 0)
    return struct.pack("!HH", number, 4 + len(body)) + body
def uptimes():
    # Some began before the uptime wrapped, 7 s ago. None ended before it: nfcapd takes these for 49.7 days later.
    last = UP - dice.randrange(0, UP)
    return (last - dice.randrange(0, 20000)) % 2**32, last % 2**32
def flow(v6):
    size = 16 if v6 else 4
    protocol = dice.choice([6, 17, 17, 47, 132, 58 if v6 else 1])
    first = (NOW - dice.randrange(1000, 70000)) * 1000 + dice.randrange(1000)
    ports = 0 if protocol in (1, 58, 47) else 1
    began, over = uptimes()
    return {
        8: dice.randbytes(size), 12: dice.randbytes(size), 7: ports * dice.randrange(1, 65536), 11: ports * dice.randrange(1, 65536),
        4: protocol, 5: dice.randrange(256), 6: dice.randrange(64) if protocol == 6 else 0, 1: dice.randrange(1, 2**31), 2: dice.randrange(1, 2**20),
        22: began, 21: over, 152: first, 153: first + dice.randrange(100000), 9999: dice.randbytes(7), 96: b"name"[:dice.randrange(5)],
    }
def template_of(number, v6, version):
    times = dice.choice([[22, 21], [152, 153]]) if version == 9 else [152, 153]
    lengths = {8: 16 if v6 else 4, 12: 16 if v6 else 4, 7: 2, 11: 2, 4: 1, 5: 1, 6: dice.choice([1, 2]), 1: dice.choice([4, 8]),
        2: dice.choice([4, 8]), 22: 4, 21: 4, 152: 8, 153: 8, 9999: 7, 96: 65535}
    fields = [8, 12, 7, 11, 4, 5, 6, 1, 2] + times + dice.sample([9999, 96], dice.randrange(3))
    dice.shuffle(fields)
    name = lambda field: {8: 27, 12: 28}[field] if v6 and field in (8, 12) else field
    body = struct.pack("!HH", number, len(fields)) + b"".join(struct.pack("!HH", name(f), lengths[f]) for f in fields)
    return v6, [(field, lengths[field]) for field in fields], body
def record(template):
    v6, fields, _ = template
    of = flow(v6)
    out = b""
    for field, length in fields:
        value = of[field]
        if length == 65535:
            out += dice.choice([bytes([len(value)]), b"\xff" + struct.pack("!H", len(value))]) + value
        else:
            out += value if isinstance(value, bytes) else bytes_of(value, length)
    return out
def templated(version):
    numbers = {}
    domains = [0, 7, 2**32 - 1]
    known = {domain: {} for domain in domains}
    for count in range(400):
        domain = dice.choice(domains)
        sets, records = b"", 0
        if not known[domain] or dice.random() < 0.1:
            number = dice.randrange(256, 261)
            known[domain][number] = template_of(number, dice.random() < 0.4, version)
            sets += set_of(2 if version == 10 else 0, known[domain][number][2], True)
            records += version == 9
        counted = 0
        for _ in range(dice.randrange(1, 4)):
            number = dice.choice(list(known[domain]))
            several = [record(known[domain][number]) for _ in range(dice.choice([1, 1, 2, 9, 20]))]
            if len(sets) + sum(map(len, several)) > 1300:
                break
            varies = any(length == 65535 for _, length in known[domain][number][1])
            sets += set_of(number, b"".join(several), not varies)
            counted += len(several)
        sequence = numbers.get(domain, 0)
        numbers[domain] = (sequence + (counted if version == 10 else 1)) % 2**32
        if version == 10:
            yield struct.pack("!HHIII", 10, 16 + len(sets), NOW, sequence, domain) + sets
        else:
            yield struct.pack("!HHIIII", 9, records + counted, UP, NOW, sequence, domain) + sets
def v5():
    sequence = 0
    for _ in range(400):
        count = dice.randrange(1, 31)
        body = b""
        for _ in range(count):
            of = flow(False)
            port = of[11] if of[4] != 1 else dice.randrange(1, 16) * 256 + dice.randrange(4)
            body += of[8] + of[12] + bytes(4) + struct.pack("!HHIIIIHHBBBBHHBBH", 1, 2, of[2], of[1], of[22], of[21], of[7], port, 0,
                of[6], of[4], of[5], 1, 2, 24, 25, 0)
        yield struct.pack("!HHIIIIBBH", 5, count, UP, NOW, 0, sequence, 0, 3, 0) + body
        sequence += count
for messages in (v5(), templated(9), templated(10)):
    exporter = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for message in messages:
        exporter.sendto(message, ("127.0.0.1", 9995))
        time.sleep(0.0005)
"#;

#[test]
fn records_of_random_exporters_are_what_nfcapd_reads() {
    let (net, dir) = (Net::new(), folder());
    let (script, csv) = (path(&dir, "exporters.py"), path(&dir, "flows.csv"));
    std::fs::write(&script, EXPORTERS).expect("a script");
    let send = || net.run(format!("taskset -c 0 /usr/bin/python3 {script}")).ok();
    let nfcapd = Nfcapd::start(&net, &dir, "nfcapd");
    send();
    let (_, theirs) = nfcapd.records();
    let running = collector(&net, &format!("--write {csv}"));
    send();
    let report = ended(running);
    let ours = written(&csv);
    let collection = &report["result"]["collection"];
    for member in ["malformed_messages", "unread_sets", "missing_records", "missing_messages", "restarts"] {
        assert_eq!(collection[member], 0, "{member}: {collection}");
    }
    let sorted = |records: Records| -> Records {
        let sort = |(flow, mut counted): (String, Vec<[u64; 5]>)| {
            counted.sort_unstable();
            (flow, counted)
        };
        records.into_iter().map(sort).collect()
    };
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    let other: Vec<_> =
        theirs.iter().filter(|(flow, counted)| ours.get(*flow) != Some(counted)).take(5).collect();
    let ours_of: Vec<_> = other.iter().map(|(flow, _)| ours.get(*flow)).collect();
    assert!(other.is_empty(), "nfcapd: {other:?}\nours: {ours_of:?}");
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() > 10_000, "{}", ours.len());
}

/// Exporters of all kinds that lose, repeat and overtake messages, restart, and say in each way how they sample. What is true of them
/// follows from what was sent and what arrived (exporters.py); scripts/judge-exporters asks goflow2, nfdump and pmacct about the same.
#[test]
fn rows_and_counts_of_random_exporters_are_what_is_true_of_them() {
    let (net, dir) = (Net::new(), folder());
    let [script, exporters, csv, result] =
        ["exporters.py", "exporters.json", "rows.csv", "result.json"].map(|name| path(&dir, name));
    std::fs::write(&script, include_str!("exporters.py")).expect("a script");
    let python = format!("taskset -c 0 /usr/bin/python3 {script}");
    run(format!("{python} make {exporters} --messages 750")).ok();
    let running = collector(&net, &format!("--write {csv}"));
    net.run(format!("{python} send {exporters} 127.0.0.1 9995")).ok();
    let report = ended(running);
    std::fs::write(&result, report.to_string()).expect("a result");
    let judged = run(format!("{python} judge {exporters} {csv} {result}"));
    assert!(judged.stdout.starts_with("0 faults"), "{}", judged.stdout);
}
