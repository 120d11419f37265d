//! `netdyno trend` on folders of real results and changed copies of them, and `netdyno run --every --keep`, which fills such folders.

use crate::common::*;
use serde_json::{Value, json};
use std::path::Path;

/// A result of a real run, and a folder in which it stands many times over, an hour after each other, as `change` has them.
fn results(dir: &Folder, count: u64, change: impl Fn(u64, &mut Value)) -> String {
    let first = dir.path().join("first");
    run(format!(
        "netdyno send ipv4/udp --engine null --rate 100kpps --count 1000 --quiet --report {}",
        first.display()
    ));
    let text = std::fs::read_to_string(first.join("result.json")).expect("the result");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let folder = dir.path().join("results");
    for n in 0..count {
        let mut result = whole.clone();
        result["environment"]["started"] = json!(format!("2026-01-{:02}T{:02}:00:00Z", 1 + n / 24, n % 24));
        // Noise of 1 %, the same each time.
        let noise = ((n * 7919 % 101) as f64 / 50.0 - 1.0) * 0.01;
        result["result"]["tx"]["frames_per_second"] = json!(100_000.0 * (1.0 + noise));
        result["resolved"]["seed"] = json!(n);
        change(n, &mut result);
        let own = folder.join(format!("run-{n:02}"));
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::write(own.join("result.json"), serde_json::to_string_pretty(&result).expect("JSON"))
            .expect("written");
    }
    folder.display().to_string()
}

fn slower(result: &mut Value) {
    let rate = &mut result["result"]["tx"]["frames_per_second"];
    *rate = json!(rate.as_f64().expect("a rate") * 0.95);
    result["environment"]["kernel"] = json!("99.1.0-new");
}

#[test]
fn a_regression_fails_a_check_and_says_what_else_changed() {
    let dir = folder();
    let folder = results(&dir, 40, |n, result| {
        if n >= 34 {
            slower(result);
        }
    });
    run(format!("netdyno trend {folder}")).ok();
    let page = dir.path().join("trend.html").display().to_string();
    let told = run(format!("netdyno trend {folder} --check --page {page}")).with(1);
    let said = unfolded(&told.stdout);
    for words in
        ["WORSE: after run-33 (", "since run-34 (", " in 34 results before, ", "-> 99.1.0-new", "(-5."]
    {
        assert!(said.contains(words), "no `{words}`: {}", told.stdout);
    }
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("Worse than before") && !html.contains("<script"), "{html}");
    run(format!("netdyno trend {folder} --check --least 10%")).ok();
    run(format!("netdyno trend {folder} --check --since 2026-01-02T10:00:00Z")).ok();
    let json = run(format!("netdyno trend {folder} --check --json")).with(1).json();
    assert_eq!(json["schema"], "netdyno.trend/1");
    let series = &json["series"][0];
    let sent = &series["figures"][0];
    assert_eq!((&sent["key"], &sent["outcome"]), (&json!("tx_frames_per_second"), &json!("worse")));
    assert_eq!((&sent["shift"]["after"], &sent["groups"][1]["values"]), (&json!(33), &json!(6)));
    assert_eq!(series["results"][34]["path"], "run-34");
    let xml = run(format!("netdyno trend {folder} --check --format junit")).with(1).stdout;
    assert!(xml.contains("<failure message=\"sent after run-33"), "{xml}");
    let table = run(format!("netdyno trend {folder} --check --format markdown")).with(1).stdout;
    assert!(table.contains("| **worse** "), "{table}");
    // A page of somebody else is not replaced.
    std::fs::write(&page, "mine").expect("written");
    run(format!("netdyno trend {folder} --page {page}")).refused(&["--page", "is no page of netdyno's"]);
}

/// The table by DuckDB and by pyarrow, held to what `--json` says; the kernels of the groups of one figure are printed.
const TABLE: &str = r#"
import json, sys
import duckdb, pyarrow.parquet as pq
file, said = sys.argv[1], json.load(open(sys.argv[2]))
columns = "series, host, result, strftime(started, '%Y-%m-%dT%H:%M:%SZ'), short, figure, name, unit, better, value, group_number, group_mean, exception, outcome"
rows = duckdb.sql(f"SELECT {columns} FROM '{file}'").fetchall()
wanted = []
for series in said["series"]:
    for line in series["figures"]:
        for at, past in enumerate(series["results"]):
            value, out = line["values"][at], at in line["exceptions"]
            groups = [n for n, g in enumerate(line["groups"]) if g["first"] <= at <= g["last"] and value is not None and not out]
            group = groups[0] if groups else None
            wanted.append((series["name"], series.get("host"), past["path"], past["started"], past.get("short", False), line["key"],
                line["name"], line["unit"], line["better"], value, group, None if group is None else line["groups"][group]["mean"], out, line["outcome"]))
assert sorted(map(str, rows)) == sorted(map(str, wanted)), [pair for pair in zip(rows, wanted) if pair[0] != pair[1]][:3]
table = pq.read_table(file)
assert table.num_rows == len(wanted) >= 40 and str(table.schema.field("started").type) == "timestamp[ms, tz=UTC]", table.schema
print(*duckdb.sql(f"""SELECT group_number, json_extract_string(conditions, '$.kernel') AS kernel, count(*) FROM '{file}'
    WHERE figure = 'tx_frames_per_second' GROUP BY ALL ORDER BY ALL""").fetchall())
"#;

#[test]
fn duckdb_reads_what_changed_and_under_which_kernel() {
    let dir = folder();
    let folder = results(&dir, 40, |n, result| {
        if n >= 34 {
            slower(result);
        }
        if n == 3 {
            result["result"]["tx"].as_object_mut().expect("an object").remove("frames_per_second");
        }
    });
    let (table, json) = (dir.path().join("trend.parquet"), dir.path().join("trend.json"));
    let said = run(format!("netdyno trend {folder} --json --parquet {}", table.display())).ok().stdout;
    std::fs::write(&json, said).expect("written");
    let read = || crate::sinks::read(&dir, TABLE, &format!("{} {}", table.display(), json.display()));
    let said = read();
    assert!(
        said.contains("(0, '") && said.contains("(1, '99.1.0-new', 6)") && said.contains(", 33)"),
        "{said}"
    );
    // A table of ours is replaced, and nothing of anybody else's.
    run(format!("netdyno trend {folder} --json --parquet {}", table.display())).ok();
    assert_eq!(read(), said);
    for foreign in ["mine", "", "PAR1 but not whole"] {
        std::fs::write(&table, foreign).expect("written");
        run(format!("netdyno trend {folder} --parquet {}", table.display()))
            .refused(&["--parquet", "is no table of trends of netdyno's"]);
        assert_eq!(std::fs::read_to_string(&table).expect("it is there"), foreign);
    }
    // Nothing is written if one of two cannot be, and a pipe that nobody writes to is not waited for.
    let (page, pipe) = (dir.path().join("trend.html"), dir.path().join("pipe"));
    run(format!("mkfifo {}", pipe.display())).ok();
    run(format!("netdyno trend {folder} --page {} --parquet {}", page.display(), pipe.display()))
        .refused(&["--parquet", "is no table of trends of netdyno's"]);
    assert!(!page.exists());
}

#[test]
fn damaged_results_are_named_and_old_ones_pruned() {
    let dir = folder();
    let folder = results(&dir, 12, |_, _| ());
    let file = |n: u64| format!("{folder}/run-{n:02}/result.json");
    let whole = std::fs::read_to_string(file(1)).expect("a result");
    std::fs::write(file(1), &whole[..whole.len() / 3]).expect("written");
    std::fs::write(file(2), whole.replace("netdyno.report/2", "netdyno.report/9")).expect("written");
    std::fs::write(file(3), whole.replace("2026-01-01", "2996-01-01")).expect("written");
    let told = run(format!("netdyno trend {folder} --check")).ok();
    let said = unfolded(&told.stdout);
    for words in [
        "left out, damaged: 1: run-01/result.json",
        "left out, of another version: 1: run-02/",
        "left out, of the future: 1: run-03",
        "9 results in 1 series, 3 left out",
    ] {
        assert!(said.contains(words), "no `{words}`: {}", told.stdout);
    }
    run(format!("netdyno trend {folder} --prune 1d --keep-newest 5"))
        .ok()
        .says(&["removed run-00", "4 results removed"]);
    let left = run(format!("netdyno trend {folder} --json")).ok().json();
    assert_eq!((&left["results"], &left["left_out"][0]["why"]), (&json!(5), &json!("damaged")));
}

#[test]
fn a_newest_run_that_was_not_done_fails_a_check() {
    let dir = folder();
    let folder = results(&dir, 12, |n, result| {
        if n == 11 {
            result["result"]["verdict"] = json!({"outcome": "failed", "reasons": ["no carrier at tx0"]});
        }
    });
    run(format!("netdyno trend {folder}")).ok();
    let told = run(format!("netdyno trend {folder} --check")).with(1);
    let said = unfolded(&told.stdout);
    for words in ["NOT DONE: send ipv4/udp", "the newest run was not done in run-11", "no carrier at tx0"] {
        assert!(said.contains(words), "no `{words}`: {}", told.stdout);
    }
    let json = run(format!("netdyno trend {folder} --check --json")).with(1).json();
    assert_eq!((&json["not_done"][0]["path"], &json["not_done"][0]["runs"]), (&json!("run-11"), &json!(1)));
    std::fs::remove_dir_all(format!("{folder}/run-11")).expect("removed");
    run(format!("netdyno trend {folder} --check")).ok();
}

#[test]
fn what_is_no_folder_of_results_is_one_clear_error() {
    let dir = folder();
    let empty = dir.path().display();
    run(format!("netdyno trend {empty}")).refused(&["no results in", "--keep"]);
    run(format!("netdyno trend {empty}/none")).refused(&["none", "No such file"]);
    let folder = results(&dir, 4, |_, _| ());
    run(format!("netdyno trend {folder} --figure latency_p99"))
        .refused(&["--figure latency_p99: no result in"]);
    run(format!("netdyno trend {folder} --figure p99_latency")).with(2).says(&["near it are latency_p99"]);
    run(format!("netdyno trend {folder} --since yesterday")).with(2).says(&["2026-11-28", "30d"]);
}

/// A job of so long, in a file.
fn job(dir: &Folder, count: &str) -> String {
    let path = dir.path().join("job.yaml");
    let printed =
        run(format!("netdyno send ipv4/udp --engine null --rate 10kpps --count {count} --print-job"))
            .ok()
            .stdout;
    std::fs::write(&path, printed).expect("a job");
    path.display().to_string()
}

/// The results in a folder.
fn kept(folder: &Path) -> Vec<String> {
    let list = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        list.map(|item| item.expect("an item").file_name().into_string().expect("a name")).collect();
    names.retain(|name| folder.join(name).join("result.json").is_file());
    names.sort();
    names
}

#[test]
fn a_job_is_repeated_and_its_results_are_kept() {
    let dir = folder();
    let (job, folder) = (job(&dir, "100"), dir.path().join("kept"));
    let keep = format!("netdyno run {job} --keep {}", folder.display());
    let ran = run(format!("{keep} --every 1s --times 3"));
    assert!(ran.status <= 1, "{}", ran.stderr);
    assert_eq!(kept(&folder).len(), 3, "{}", ran.stderr);
    // One alone, and one more after a restart.
    assert!(run(&keep).status <= 1);
    assert!(run(format!("{keep} --every 1s --times 1 --quiet")).status <= 1);
    assert_eq!(kept(&folder).len(), 5);
    let trend = run(format!("netdyno trend {} --json", folder.display())).ok().json();
    assert_eq!((&trend["results"], trend["series"].as_array().expect("series").len()), (&json!(5), 1));
    // What cannot be done is refused before the first run.
    run(format!("netdyno run - --keep {}", folder.display())).with(2);
    run(format!("{keep} --every 0s")).with(2);
    run(format!("netdyno run {job} --every 1s")).with(2).says(&["--keep"]);
    run(format!("{keep} --json")).with(2).says(&["cannot be used with"]);
    let no_folder = dir.path().join("file");
    std::fs::write(&no_folder, "").expect("written");
    run(format!("netdyno run {job} --keep {}", no_folder.display())).refused(&["--keep", "name a folder"]);
}

#[test]
fn two_do_not_keep_results_in_one_folder() {
    let dir = folder();
    let (job, folder) = (job(&dir, "1M"), dir.path().join("kept"));
    let mut first = start(command(format!("netdyno run {job} --every 1h --keep {}", folder.display())));
    first.until_it_says("into ");
    let second = run(format!("netdyno run {job} --every 1h --keep {}", folder.display()));
    second.refused(&["keeps results there already", &format!("process {} ", first.pid())]);
    first.signal("TERM");
    first.wait();
}

#[test]
fn an_interrupt_ends_the_run_in_order_and_keeps_its_result() {
    let dir = folder();
    let (job, folder) = (job(&dir, "1M"), dir.path().join("kept"));
    let mut running = start(command(format!("netdyno run {job} --every 1h --keep {}", folder.display())));
    running.until_it_says("into ");
    // The run itself says when it has begun: before that a signal ends it without a result.
    running.until_it_says("sent");
    running.signal("INT");
    let ran = running.wait();
    assert!(ran.status <= 1, "{}: {}", ran.status, ran.stderr);
    assert_eq!(kept(&folder).len(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("ended after 1 run"), "{}", ran.stderr);
    // It waits for the next hour now, and ends at once when it is asked to.
    let mut waiting = start(command(format!("netdyno run {job} --every 1h --keep {}", folder.display())));
    waiting.until_it_says("the next run begins at");
    waiting.signal("TERM");
    assert_eq!(waiting.wait().ok().status, 0);
    assert_eq!(kept(&folder).len(), 1);
}

/// Pods are processes in two network namespaces. The network that is tried lets 2.4 Mbit/s of 20 through.
#[test]
fn a_slower_network_of_a_cluster_fails_the_example_for_ci() {
    let dir = folder();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (root, words) = (here.join("../.."), dir.path().join("words"));
    std::fs::create_dir(&words).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_netdyno"), words.join("netdyno")).expect("a link");
    std::os::unix::fs::symlink(here.join("tests/all/documents/containerlab.sh"), words.join("kubectl"))
        .expect("a link");
    let streams = std::fs::read_to_string(root.join("examples/kubernetes/streams.yaml")).expect("the pods");
    let brief = r#""tcp-stream", "10.9.0.2", "--duration", "300ms", "--rate", "20mbps", "#;
    let (before, behind) = streams.split_once(r#""latency-under-load""#).expect("the job's arguments");
    let behind = behind.split_once(r#""1s", "#).expect("its time").1;
    std::fs::write(dir.path().join("streams.yaml"), format!("{before}{brief}{behind}")).expect("written");
    let script = |head: &str, results: &str| {
        let text = format!(
            "set -eu\nmount -t tmpfs none /run\nip netns add far\nip link add v0 type veth peer name v1 netns far\nip link set lo up\n\
             ip address add 10.9.0.1/24 dev v0\nip link set v0 up\nip -n far address add 10.9.0.2/24 dev v1\nip -n far link set v1 up\n\
             ip -n far link set lo up\n{}/examples/ci/cni-regression.sh true '{head}' streams.yaml {results} --figure endpoint_throughput --format markdown\n",
            root.display()
        );
        let file = format!("{results}.sh");
        std::fs::write(dir.path().join(&file), text).expect("a script");
        let mut script = command(format!("unshare --net --mount --propagation private sh {file}"));
        let path = std::env::var("PATH").expect("a path");
        script.env("PATH", format!("{}:{path}", words.display())).env("HOME", dir.path()).env("RUNS", "6");
        start({
            script.current_dir(dir.path());
            script
        })
        .wait()
    };
    let loses = "ip netns exec far nft \"add table inet f; add chain inet f c { type filter hook input priority 0; }; \
                 add rule inet f c limit rate over 300 kbytes/second drop\"";
    let worse = script(loses, "worse").with(1);
    assert!(worse.stdout.contains("WORSE") || worse.stdout.contains("worse"), "{}", worse.stdout);
    let kept = std::fs::read_dir(dir.path().join("worse")).expect("results");
    let results = kept.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "json"));
    assert_eq!(results.count(), 12);
    // A network that cannot be made ends it before anything is judged.
    let without = script("false", "without").with(2);
    assert!(without.stderr.contains("the network was not made: false"), "{}", without.stderr);
}

#[test]
fn a_slower_xdp_program_fails_the_example_for_ci() {
    let dir = folder();
    // The second drops each twentieth frame.
    for (name, body) in [("base", "return 2;"), ("head", "return __sync_fetch_and_add(&n, 1) % 20 ? 2 : 1;")]
    {
        let text = format!(
            "static unsigned long n; __attribute__((section(\"xdp\"), used)) int prog(void *ctx) {{ {body} }}\n\
             char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n"
        );
        let file = |end: &str| dir.path().join(format!("{name}.{end}")).display().to_string();
        std::fs::write(file("c"), text).expect("written");
        run(format!("clang -O2 -g -target bpf -c {} -o {}", file("c"), file("o"))).ok();
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ci");
    let words = dir.path().join("words");
    std::fs::create_dir(&words).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_netdyno"), words.join("netdyno")).expect("a link");
    let path = format!("{}:{}", words.display(), std::env::var("PATH").expect("a path"));
    let text = std::fs::read_to_string(examples.join("job.yaml")).expect("the job");
    let job = dir.path().join("job.yaml");
    std::fs::write(&job, text.replace("20kpps", "2kpps").replace("2s", "200ms")).expect("written");
    let compared = |head: &str, results: &str| {
        let at = |name: &str| dir.path().join(name).display().to_string();
        let mut script = command(format!(
            "{} {} {} {} {} --figure loss_ratio --format markdown",
            examples.join("xdp-regression.sh").display(),
            at("base.o"),
            at(head),
            job.display(),
            at(results)
        ));
        script.env("PATH", &path);
        start(script).wait()
    };
    compared("base.o", "same").ok();
    let worse = compared("head.o", "worse").with(1);
    assert!(worse.stdout.contains("| 0 % | 5"), "{}", worse.stdout);
}
