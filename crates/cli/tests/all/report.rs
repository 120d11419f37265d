//! Results on disk and on the screen.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

/// Does `value` keep to `schema`? The words of JSON Schema that ours uses; a field that it does not name is a fault.
pub fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fault = |what: &str| Err(format!("{at}: {what}: {value}"));
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).ok_or(format!("{at}: no {name}"))?;
        return check(root, target, value, at);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[word].as_array() {
            let tried: Vec<_> = choices.iter().map(|choice| check(root, choice, value, at)).collect();
            if tried.iter().all(Result::is_err) {
                return Err(tried.into_iter().filter_map(Result::err).collect::<Vec<_>>().join(" and "));
            }
        }
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        return fault("not the one value");
    }
    let is = |kind: &Value| match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => false,
    };
    let fits = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    };
    if !fits {
        return fault("not of the type");
    }
    if value.as_f64().zip(schema["minimum"].as_f64()).is_some_and(|(value, least)| value < least) {
        return fault("below the minimum");
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap_or_default()).is_none() {
            return fault(&format!("no {name}"));
        }
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, field) in fields {
            match properties.get(name) {
                Some(property) => check(root, property, field, &format!("{at}.{name}"))?,
                None => return fault(&format!("{name} is not in the schema")),
            }
        }
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        if schema["items"].is_object() {
            check(root, &schema["items"], item, &format!("{at}[{n}]"))?;
        }
    }
    Ok(())
}

/// A schema of those in docs.
pub fn schema(name: &str) -> Value {
    let file = format!("{}/../../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(file).expect("the schema")).expect("JSON")
}

fn reported(net: &Net) -> (String, Ran) {
    let dir = net.file("report");
    let ran = net.run(format!(
        "netdyno send ipv4(src=10.0.0.0/24)/udp --size 100 --on tx0 --measure rx0 --rate 20kpps --count 9000 --report {dir}"
    ));
    (dir, ran)
}

#[test]
fn three_files_are_written_and_the_page_is_named() {
    let net = Net::new();
    let (dir, ran) = reported(&net);
    assert_eq!(listing(&dir), ["figures.csv", "intervals.csv", "report.html", "result.json"]);
    assert!(ran.stdout.contains(&format!("{dir}/report.html")), "{}", ran.stdout);
}

#[test]
fn every_result_keeps_to_the_published_schema() {
    let net = Net::new();
    let schema = schema("report");
    let (dir, _) = reported(&net);
    let text = std::fs::read_to_string(format!("{dir}/result.json")).expect("the result");
    let mut results: Vec<Value> = vec![serde_json::from_str(&text).expect("JSON")];
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 20 -w {file}")).ok();
    for line in [
        format!("netdyno replay {file} --on tx0 --measure rx0 --loop 3 --unique-ip --sign --json"),
        format!("netdyno replay {file} --on tx0 --topspeed --stream --json"),
        "netdyno measure --on tx0 --duration 100ms --count 1 --json".to_owned(),
        "netdyno send ipv4/udp --engine null --topspeed --count 10 --json".to_owned(),
    ] {
        results.push(net.run(line).json());
    }
    for result in results {
        assert_eq!(check(&schema, &schema, &result, "result"), Ok(()));
    }
    // And the check can fail.
    assert!(check(&schema, &schema, &serde_json::json!({"schema": "netdyno.report/2"}), "result").is_err());
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let net = Net::new();
    let (dir, _) = reported(&net);
    let page = std::fs::read_to_string(format!("{dir}/report.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("netdyno"));
    for reference in
        ["src=\"", "<link", "@import", "url(", "href=\"http", "href=http", "fetch(", "XMLHttpRequest"]
    {
        assert!(!page.contains(reference), "{reference}");
    }
    let names_only = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!names_only.contains("http://") && !names_only.contains("https://"));
}

#[test]
fn the_table_of_intervals_adds_up_to_the_whole() {
    let net = Net::new();
    let (dir, _) = reported(&net);
    let table = std::fs::read_to_string(format!("{dir}/intervals.csv")).expect("the table");
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a head");
    let rows: Vec<_> = rows.collect();
    for (column, sum) in
        [("intended_frames", 9000), ("tx_frames", 9000), ("rx_frames", 9000), ("tx_bytes", 9000 * 96)]
    {
        let column =
            head.iter().position(|name| *name == column).unwrap_or_else(|| panic!("{column} in {head:?}"));
        let values = rows.iter().map(|row| row[column].parse::<u64>().expect("a number"));
        assert_eq!(values.sum::<u64>(), sum, "{}", head[column]);
    }
    let at = |name| head.iter().position(|column| *column == name).expect("a column");
    for pair in rows.windows(2) {
        assert_eq!(pair[0][at("end_ns")], pair[1][at("start_ns")]);
    }
}

#[test]
fn an_earlier_result_is_shown_again_as_it_was() {
    let net = Net::new();
    let (dir, ran) = reported(&net);
    let summary = ran.stdout.lines().next().expect("a table");
    for path in [dir.clone(), format!("{dir}/result.json"), format!("{dir}/report.html")] {
        let again = run(format!("netdyno report {path}")).with(ran.status);
        assert_eq!(again.stdout.lines().next(), Some(summary));
        for line in ran.stdout.lines().filter(|line| line.starts_with("sent") || line.starts_with("received"))
        {
            assert!(again.stdout.contains(line), "no `{line}` in {}", again.stdout);
        }
    }
    let again = run(format!("netdyno report {dir} --json")).with(ran.status).json();
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{dir}/result.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(again, written);
}

#[test]
fn what_is_no_report_is_neither_shown_nor_overwritten() {
    let net = Net::new();
    let dir = net.file("precious");
    std::fs::create_dir(&dir).expect("a folder");
    std::fs::write(format!("{dir}/result.json"), "my thesis").expect("a file");
    let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 10 --report";
    net.run(format!("{send} {dir}")).refused(&["result.json", "is not a netdyno report"]);
    assert_eq!(std::fs::read_to_string(format!("{dir}/result.json")).expect("a file"), "my thesis");
    net.run(format!("{send} /proc/nowhere")).refused(&["/proc/nowhere"]);
    run(format!("netdyno report {dir}")).refused(&["result.json"]);
    run(format!("netdyno report {}", net.file("none"))).refused(&["none"]);
    // A run that could not be reported was not begun.
    let link = net.run("ip -s -j link show tx0").ok().json();
    assert_eq!(number(&link[0]["stats64"]["tx"]["packets"]), 0);
}

#[test]
fn a_result_that_will_be_replaced_is_named_as_the_run_begins() {
    let net = Net::new();
    let dir = net.file("again");
    let send = format!("netdyno send ipv4/udp --on tx0 --topspeed --count 10 --report {dir}");
    let said = |ran: Ran| ran.ok().stderr;
    let first = said(net.run(&send));
    assert!(!first.contains("replaces"), "{first}");
    let second = said(net.run(&send));
    assert!(second.contains("has the result of `netdyno send`, begun at 20"), "{second}");
    assert!(second.contains("this run replaces it when it ends"), "{second}");
    let quiet = said(net.run(format!("{send} --quiet")));
    assert!(!quiet.contains("replaces"), "{quiet}");
}

#[test]
fn other_tools_command_lines_write_no_report_and_say_who_does() {
    for (line, says) in [
        ("tcpreplay -i x --report out a.pcap", "`netdyno replay --report DIR` does the same work"),
        ("iperf3 -c x --report=out", "`netdyno endpoint --report DIR` does the same work"),
        ("netserver --report out", "`netdyno endpoint serve --report DIR`"),
        ("netperf -H x --report out", "`netdyno endpoint --report DIR`"),
        ("softflowd -i x --report out", "`netdyno probe --report DIR`"),
        ("tcprewrite --report out", "measures nothing, so that there is no result to write"),
    ] {
        run(format!("netdyno {line}")).refused(&[says]);
    }
}

#[test]
fn a_terminal_gets_a_moving_line_and_a_pipe_plain_ones() {
    let net = Net::new();
    let binary = env!("CARGO_BIN_EXE_netdyno");
    let send = format!("{binary} send ipv4/udp --on tx0 --measure rx0 --rate 1kpps --duration 1200ms");
    let mut script = net.command("script -qec");
    script.args([&send, "/dev/null"]);
    let screen = start(script).wait().stdout;
    for words in ["\r", "\u{1b}[K", "pps", "left", "lost 0 %", "received"] {
        assert!(screen.contains(words), "no {words:?} in {screen:?}");
    }
    let piped = net.run(&send);
    assert!(
        !piped.stdout.contains('\u{1b}') && !piped.stderr.contains('\r'),
        "{}{}",
        piped.stdout,
        piped.stderr
    );
    let quiet = net.run(format!("{send} --quiet"));
    assert_eq!(quiet.stderr, "");
}

#[test]
fn what_the_hosts_counted_stands_beside_the_result() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --engine packet --on tx0 --measure rx0 --topspeed --count 700 --json";
    let report = net.run(send).result();
    let rise = |place: &str, source: &str, name: &str| {
        let counters = report["result"]["counters"].as_array().expect("counters");
        let found =
            counters.iter().find(|c| c["place"] == place && c["source"] == source && c["name"] == name);
        found.map_or(0, |counter| number(&counter["rise"]))
    };
    assert_eq!(rise("tx0", "interface", "tx_packets"), 700, "{report}");
    assert_eq!(rise("rx0", "driver", "rx_queue_0_xdp_packets"), 700, "{report}");
    // Our own meter's drops explain no loss.
    let drops = report["result"]["counters"].as_array().expect("counters").iter();
    assert!(
        drops.filter(|c| c["name"] == "rx_queue_0_xdp_drops").all(|c| c["explains"].is_null()),
        "{report}"
    );
}

#[test]
fn another_runs_frames_that_hide_a_loss_are_told() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --sign --engine packet --on tx0";
    let first = net.start(format!("{send} --rate 1kpps --duration 600s --measure rx0 --json"));
    let sent = || number(&net.run("ip -s -j link show tx0").ok().json()[0]["stats64"]["tx"]["packets"]);
    eventually("the first run sends", || sent() > 300);
    net.run(format!("{send} --topspeed --count 100 --quiet")).ok();
    first.signal("INT");
    let report = first.wait().json();
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("100 signed frames came twice or") && warnings.contains("its own"), "{report}");
    // Alone nothing of the kind is said.
    let report = net.run(format!("{send} --topspeed --count 100 --measure rx0 --json")).result();
    assert!(!report["warnings"].to_string().contains("came twice"), "{report}");
}

#[test]
fn how_a_run_stands_is_told_in_lines_of_json() {
    let net = Net::new();
    let (snapshots, reports) = (schema("snapshot"), schema("report"));
    let sends = "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 1kpps --duration 2500ms --json-lines";
    let trial = "netdyno trial --lab --rate 1kpps --duration 1500ms --retries 0 --json-lines";
    for (line, told) in [(sends, "send"), (trial, "trial")] {
        let ran = net.run(line);
        let mut lines: Vec<Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let report = lines.pop().expect("a line");
        assert_eq!(check(&reports, &reports, &report, "report"), Ok(()));
        // One each second, where this machine comes to it, and the last moment.
        assert!(!lines.is_empty(), "{}", ran.stdout);
        judged(lines.len() > 1);
        let mut before = (0, 0);
        for line in &lines {
            assert_eq!(check(&snapshots, &snapshots, line, "snapshot"), Ok(()));
            assert!(line["run"]["command"].as_str().is_some_and(|name| name == told), "{line}");
            let now = (number(&line["elapsed_ns"]), line["tx"]["frames"].as_u64().unwrap_or(0));
            assert!(now.0 >= before.0 && now.1 >= before.1, "{}", ran.stdout);
            before = now;
        }
        if told == "send" {
            let (last, result) = (lines.last().expect("a line"), &report["result"]);
            assert_eq!(last["phase"], "ended");
            assert_eq!(before.1, number(&result["tx"]["frames"]), "{last}");
            assert_eq!(last["latency_ns"]["count"], result["latency_ns"]["count"], "{last}");
            assert_eq!(last["late_frames"], result["pacing"]["late_frames"], "{last}");
        }
    }
    run(format!("{sends} --json")).with(2).says(&["cannot be used with"]);
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 3 -w {file}")).ok();
    run(format!("netdyno replay {file} -w - --json-lines")).refused(&["--json-lines", "standard output"]);
}
