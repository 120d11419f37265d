//! What people type in place of a packet and mean otherwise: a plugin's name, a capture, another tool's test or script.
//! Each is told the command that does it, made of what was typed.

use crate::cli::mistyped::everyday;
use anyhow::{Result, bail};
use report::units::{printable, shell_word};
use spec::Job;
use std::ffi::OsString;
use std::path::Path;
use traffic::expr::{Options, compile};
use wire::proto::Protocol;

/// Endings of captures, behind which `.gz` and `.zst` may stand.
const CAPTURES: [&str; 5] = ["pcap", "pcapng", "cap", "dmp", "erf"];
/// Tests of netperf begin so.
const NETPERF: [&str; 3] = ["TCP_", "UDP_", "OMNI"];

/// Refuses a word that is no packet expression and no scenario, with what to type instead.
///
/// # Errors
/// It is such a word.
pub fn check(what: Option<&str>) -> Result<()> {
    let Some(word) = what else { return Ok(()) };
    match advice(word, Path::new(word).exists(), By::Typed(&typed())) {
        Some(advice) => bail!(advice),
        None => check_expression(word),
    }
}

/// The command line. A word of it may be a path that is no text.
pub fn typed() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A packet expression that is wrong is reported before all else that is wrong.
fn check_expression(word: &str) -> Result<()> {
    let path = Path::new(word);
    let named = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("yaml") || end.eq_ignore_ascii_case("yml"));
    if word == "-" || named || path.exists() {
        return Ok(());
    }
    // What a port of a mesh puts there.
    let text = word.replace("{src_ip}", "198.18.0.1").replace("{dst_ip}", "198.18.0.2");
    let text = if text == word { word } else { &text };
    compile(text, &Options::default())?;
    Ok(())
}

/// The same of a command line that clap refused because something is lacking: the packet that was typed is no packet.
///
/// # Errors
/// As of [`check`].
pub fn check_refused(words: &[OsString]) -> Result<()> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let at = match words.get(1) {
        Some(&("send" | "craft" | "trial")) => 2,
        Some(&"search") => 3,
        _ => return Ok(()),
    };
    // An option's value may stand first: only what can be nothing else is looked at.
    check(words.get(at).filter(|word| !word.starts_with('-') && word.contains('/')).copied())
}

/// Refuses what is no file of jobs but something that netdyno writes or reads elsewhere, with the verb that takes it.
///
/// # Errors
/// It is such a file.
pub fn check_job_file(path: &Path, begins: &[u8]) -> Result<()> {
    match no_job(path, begins) {
        Some(said) => bail!(said),
        None => Ok(()),
    }
}

/// What a capture begins with: pcap in either order, of microseconds or nanoseconds, and pcapng.
const MAGIC: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// What stands near the beginning of a result, also where another program has sorted its members.
const RESULTS: [&str; 3] = ["\"netdyno.report/", "\"environment\":{", "\"environment\": {"];

/// What a file is that netdyno writes or reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Capture,
    Job,
    Scenario,
    Result,
    Module,
}

impl Kind {
    /// What a file is, by its name and what it begins with; `None` where neither says so.
    fn of(path: &Path, begins: &[u8]) -> Option<Kind> {
        let lower = path.to_string_lossy().to_ascii_lowercase();
        let plain = lower.strip_suffix(".gz").or_else(|| lower.strip_suffix(".zst")).unwrap_or(&lower);
        if path.join("result.json").exists() {
            return Some(Kind::Result);
        }
        if MAGIC.iter().any(|magic| begins.starts_with(magic)) {
            return Some(Kind::Capture);
        }
        if begins.starts_with(b"\0asm") {
            return Some(Kind::Module);
        }
        let start = String::from_utf8_lossy(begins);
        if begins.contains(&0) || plain != lower {
            let named = CAPTURES.iter().any(|end| plain.ends_with(&format!(".{end}")));
            return named.then_some(Kind::Capture);
        }
        let trimmed = start.trim_start();
        let member = |name: &str| {
            start.contains(&format!("\"{name}\":"))
                || start.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
        };
        if trimmed.starts_with('<') && start.contains("netdyno")
            || trimmed.starts_with('{') && RESULTS.iter().any(|word| start.contains(word))
        {
            Some(Kind::Result)
        } else if start.contains("netdyno.job/") || member("kind") || member("jobs") {
            Some(Kind::Job)
        } else if member("streams") || start.contains("netdyno.scenario/") {
            Some(Kind::Scenario)
        } else {
            None
        }
    }

    /// What to type for such a file.
    fn advice(self, word: &str) -> String {
        match self {
            Kind::Capture => {
                format!(
                    "a capture: netdyno info {word} says what it holds, netdyno replay {word} --lab sends it"
                )
            }
            Kind::Job => format!("a job: netdyno run {word}"),
            Kind::Scenario => format!("a scenario: netdyno send {word} --lab (or --on IFACE)"),
            Kind::Result => {
                format!("a result: netdyno report {word} shows it, netdyno rerun {word} runs its job again")
            }
            Kind::Module => {
                format!("a plugin: netdyno plugin info {word}, netdyno send --plugin {word} --lab")
            }
        }
    }
}

/// Refuses a file that is known to be of another kind than a verb takes, with the verb that takes it. What cannot be read, and what
/// says nothing of itself, is left to who reads it.
///
/// # Errors
/// It is such a file.
pub fn check_file(path: &Path, takes: Kind) -> Result<()> {
    use std::io::Read as _;
    if !path.exists() {
        return match no_file(path, &typed(), is_interface) {
            Some(told) => bail!(told),
            None => Ok(()),
        };
    }
    // A pipe can be read once only.
    if path.is_dir() && takes == Kind::Result || !path.is_dir() && !path.is_file() {
        return Ok(());
    }
    let mut begins = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(4096).read_to_end(&mut begins);
    }
    match Kind::of(path, &begins).filter(|kind| *kind != takes) {
        Some(kind) => {
            let name = path.display().to_string();
            bail!("{} is {}", printable(&name), kind.advice(&shell_word(&name)))
        }
        None => Ok(()),
    }
}

fn is_interface(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && Path::new("/sys/class/net").join(name).exists()
}

/// Of a file that there is not, what its name is otherwise (an interface, a collector, a rate), and the line that takes it for that.
fn no_file(path: &Path, typed: &[String], is_interface: impl Fn(&str) -> bool) -> Option<String> {
    let name = path.to_str()?;
    let line = everyday::of_line(typed);
    if is_interface(name) {
        let line = line.unwrap_or_else(|| format!("netdyno doctor {}", shell_word(name)));
        return Some(format!("{name} is an interface, and there is no file of that name: {line}"));
    }
    Some(format!("there is no file {name}; it is written so: {}", line?))
}

fn no_job(path: &Path, begins: &[u8]) -> Option<String> {
    let name = path.display().to_string();
    let word = shell_word(&name);
    let lower = name.to_ascii_lowercase();
    let plain = lower.strip_suffix(".gz").or_else(|| lower.strip_suffix(".zst")).unwrap_or(&lower);
    let is_text = std::str::from_utf8(begins).is_ok();
    let named = !is_text && CAPTURES.iter().any(|end| plain.ends_with(&format!(".{end}")));
    if named || MAGIC.iter().any(|magic| begins.starts_with(magic)) {
        return Some(format!("{name} is a capture, not a job: netdyno replay {word} --on IFACE (or --lab)"));
    }
    let start = String::from_utf8_lossy(begins);
    let trimmed = start.trim_start();
    let result = path.join("result.json").exists()
        || trimmed.starts_with('<')
        || trimmed.starts_with('{') && start.contains("\"netdyno.report/");
    if result {
        return Some(format!("{name} is a result, not a job: netdyno rerun {word} runs its job again"));
    }
    if path.as_os_str() != "-" && !path.exists() && everyday::is_command(&name) {
        return Some(format!(
            "there is no file {name}; `run` runs a file of jobs (docs/jobs.md), and a command beside a lab: netdyno lab -- {word}"
        ));
    }
    match Kind::of(path, begins)? {
        Kind::Scenario => {
            Some(format!("{name} is a scenario, not a job: netdyno send {word} --on IFACE (or --lab)"))
        }
        Kind::Module => {
            Some(format!("{name} is a plugin, not a job: netdyno send --plugin {word} --on IFACE (or --lab)"))
        }
        _ => None,
    }
}

/// The same of what stands in a file of jobs, in the words of such a file.
///
/// # Errors
/// As of [`check`].
pub fn check_job(job: &Job) -> Result<()> {
    let bench =
        |bench: &spec::Bench| [("bench.what", bench.what.clone()), ("bench.back", bench.back.clone())];
    let words = match job {
        Job::Send(send) => vec![("what", Some(send.what.clone()))],
        Job::Trial(trial) => bench(&trial.bench).to_vec(),
        Job::Search(search) => bench(&search.bench).to_vec(),
        _ => Vec::new(),
    };
    for (member, word) in words {
        let advice = word.and_then(|word| advice(&word, Path::new(&word).exists(), By::File));
        if let Some(advice) = advice {
            bail!("{member}: {}", printable(&advice));
        }
    }
    Ok(())
}

/// Who is told.
#[derive(Clone, Copy)]
enum By<'a> {
    /// Whoever typed this command line.
    Typed(&'a [String]),
    /// Whoever wrote a file of jobs.
    File,
}

impl By<'_> {
    /// How the capture `word` is sent.
    fn replay(self, word: &str) -> String {
        match self {
            // No option of a search is one of a replay.
            By::Typed(typed) if typed.get(1).is_some_and(|verb| verb == "search") => {
                format!("netdyno replay {} --on IFACE", shell_word(word))
            }
            By::Typed(typed) => mended(typed, word, &[word], Some("replay")),
            By::File => format!("a job of `kind: replay` with `captures: [{word}]`"),
        }
    }

    /// How the port scan of an article takes the place of its capture: ports 1025 to 65535 of a host, once each.
    fn scan(self, word: &str, name: &str) -> String {
        match self {
            By::Typed(typed) => {
                let set = ["dst_ip=198.19.0.1", "first_port=1025", "last_port=65535"];
                let words = set.iter().flat_map(|set| ["--set", set]);
                mended(typed, word, &["--plugin", name].into_iter().chain(words).collect::<Vec<_>>(), None)
            }
            By::File => format!(
                "write `plugin: {{name: {name}, options: {{dst_ip: 198.19.0.1, first_port: 1025, last_port: 65535}}}}` in its place"
            ),
        }
    }

    /// How a plugin takes the place of `word`.
    fn plugin(self, word: &str, name: &str) -> String {
        match self {
            By::Typed(typed) => mended(typed, word, &["--plugin", name], None),
            By::File => format!("write `plugin: {{name: {name}}}` in its place"),
        }
    }
}

fn advice(word: &str, there: bool, by: By<'_>) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let ending = |text: &str| Path::new(text).extension().map(|end| end.to_string_lossy().into_owned());
    let stem = |text: &str| Path::new(text).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let plain = lower.strip_suffix(".gz").or_else(|| lower.strip_suffix(".zst")).unwrap_or(&lower);
    let end = ending(plain).unwrap_or_default();
    if CAPTURES.contains(&end.as_str()) && !word.contains('(') {
        let command = by.replay(word);
        let made = stem(plain).and_then(|stem| {
            let plugin =
                ["tcp_port_scan", "udp_port_scan"].into_iter().find(|name| stem.starts_with(*name))?;
            Some(format!("; the frames of that article are made without it: {}", by.scan(word, plugin)))
        });
        return Some(if there {
            format!("{word} is a capture: {command}")
        } else {
            format!("there is no file {word}; a capture is sent by {command}{}", made.unwrap_or_default())
        });
    }
    if matches!(end.as_str(), "py" | "lua" | "ipynb") && !word.contains('(') {
        return Some(format!(
            "{word} is a script: profiles of TRex, Scapy and MoonGen are not run. One packet of it, in Scapy's own spelling, is an \
             expression: netdyno craft 'Ether()/IP(dst=\"198.18.0.1\")/UDP(dport=53)' --show; several with rates and sizes are a \
             scenario (docs/scenarios.md), a program that makes frames is a plugin: netdyno plugin new NAME"
        ));
    }
    let name = lower.replace('-', "_");
    let name = name.strip_suffix(".go").or_else(|| name.strip_suffix(".wasm")).unwrap_or(&name);
    if let (false, true, By::Typed(typed)) = (there, is_interface(word), by) {
        let line = everyday::of_line(typed).unwrap_or_else(|| mended(typed, word, &["--on", word], None));
        return Some(format!("{word} is an interface, no packet: {line}"));
    }
    if let (false, true, By::Typed(typed)) = (there, everyday::is_host(word), by)
        && let Some(line) = everyday::of_line(typed)
    {
        return Some(format!("{word} is no packet, which has addresses as fields: {line}"));
    }
    if there || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    if NETPERF.iter().any(|test| word.starts_with(test)) && word == word.to_ascii_uppercase() {
        return Some(format!(
            "{word} is a test of netperf, between two hosts: netdyno netserver on the other, netdyno netperf -H HOST -t {word} here"
        ));
    }
    plugin::find(name).is_ok().then(|| {
        let other = if name == "imix" {
            match by {
                By::Typed(_) => "; as sizes of other frames: --size imix",
                By::File => "; as sizes of other frames: `size: imix`",
            }
        } else if Protocol::by_name(name).is_some() {
            "; a layer of that name stands behind others (docs/expressions.md)"
        } else {
            ""
        };
        format!("{word} is a plugin: {}{other}", by.plugin(word, name))
    })
}

/// The command line as it was typed, with other words in place of one, and perhaps another verb.
fn mended(typed: &[String], word: &str, instead: &[&str], verb: Option<&str>) -> String {
    let mut words = vec!["netdyno".to_owned()];
    for (i, typed) in typed.iter().enumerate().skip(1) {
        if typed == word {
            words.extend(instead.iter().map(|word| shell_word(word)));
        } else if let (1, Some(verb)) = (i, verb) {
            words.push(verb.to_owned());
        } else {
            words.push(shell_word(typed));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_articles_and_other_tools_are_told_the_command() {
        for (line, there, said) in [
            (
                "send tcp_port_scan --on eth0 --rate 1G",
                false,
                "tcp_port_scan is a plugin: netdyno send --plugin tcp_port_scan --on eth0 --rate 1G",
            ),
            ("craft udp-port-scan -w x.pcap", false, "netdyno craft --plugin udp_port_scan -w x.pcap"),
            ("send simpleudp.go --on eth0", false, "netdyno send --plugin simpleudp --on eth0"),
            ("send imix --on eth0", false, "--size imix"),
            ("send dns --on eth0", false, "netdyno send --plugin dns --on eth0"),
            (
                "send bigFlows.pcap --on eth0",
                true,
                "bigFlows.pcap is a capture: netdyno replay bigFlows.pcap --on eth0",
            ),
            (
                "send tcp_port_scan_64.pcap --on eth0",
                false,
                "there is no file tcp_port_scan_64.pcap; a capture is sent by netdyno replay tcp_port_scan_64.pcap --on eth0; the frames of that article are made without it: netdyno send --plugin tcp_port_scan --set dst_ip=198.19.0.1 --set first_port=1025 --set last_port=65535 --on eth0",
            ),
            ("send a.pcap.gz --on eth0", true, "netdyno replay a.pcap.gz --on eth0"),
            ("send stl/imix.py --on eth0", true, "scenario"),
            ("send TCP_STREAM --on eth0", false, "netdyno netperf -H HOST -t TCP_STREAM"),
            ("search loss dns --lab", false, "dns is a plugin: netdyno search loss --plugin dns --lab"),
            ("search throughput a.pcap --lab", true, "a.pcap is a capture: netdyno replay a.pcap --on IFACE"),
        ] {
            let typed: Vec<String> =
                std::iter::once("netdyno").chain(line.split(' ')).map(str::to_owned).collect();
            let word = if typed[1] == "search" { &typed[3] } else { &typed[2] };
            let advice = advice(word, there, By::Typed(&typed)).unwrap_or_default();
            assert!(advice.contains(said), "{line}: {advice}");
        }
    }

    #[test]
    fn words_in_a_file_of_jobs_are_told_what_to_write() {
        let told = |job: &str| {
            let job = format!("schema: netdyno.job/1\n{job}");
            let file = spec::File::read(&job, "jobs.yaml").expect("a file of jobs");
            check_job(&file.jobs[0]).expect_err("advice").to_string()
        };
        for (job, said) in [
            (
                "kind: send\nwhat: dns\nlinks: [{on: eth0}]\n",
                "what: dns is a plugin: write `plugin: {name: dns}` in its place",
            ),
            (
                "kind: send\nwhat: missing.pcap\nlinks: [{on: eth0}]\n",
                "a capture is sent by a job of `kind: replay` with `captures: [missing.pcap]`",
            ),
            (
                "kind: trial\nrate: 1kpps\nbench: {what: imix, lab: {}}\n",
                "bench.what: imix is a plugin: write `plugin: {name: imix}` in its place; as sizes of other frames: `size: imix`",
            ),
            (
                "kind: trial\nrate: 1kpps\nbench: {what: ipv4/udp, back: dns, both_ways: true, lab: {}}\n",
                "bench.back: dns",
            ),
            ("kind: send\nwhat: stl/imix.py\nlinks: [{on: eth0}]\n", "what: stl/imix.py is a script"),
        ] {
            let told = told(job);
            assert!(told.contains(said), "{job}: {told}");
        }
        let fine = "schema: netdyno.job/1\nkind: send\nwhat: ipv4/udp\nlinks: [{on: eth0}]\n";
        assert!(check_job(&spec::File::read(fine, "jobs.yaml").expect("a file of jobs").jobs[0]).is_ok());
    }

    #[test]
    fn captures_and_results_are_no_jobs() {
        let told = |name: &str, begins: &[u8]| no_job(Path::new(name), begins);
        let capture = "dns.pcap is a capture, not a job: netdyno replay dns.pcap --on IFACE (or --lab)";
        assert_eq!(told("dns.pcap", &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).as_deref(), Some(capture));
        assert!(told("x", &[0x0a, 0x0d, 0x0d, 0x0a]).expect("told").contains("netdyno replay x"));
        assert!(told("x.pcap.gz", &[0x1f, 0x8b]).expect("told").contains("netdyno replay x.pcap.gz"));
        let result = told("result.json", b"{\n  \"schema\": \"netdyno.report/2\",").expect("told");
        assert_eq!(
            result,
            "result.json is a result, not a job: netdyno rerun result.json runs its job again"
        );
        assert!(told("report.html", b"<!doctype html>").expect("told").contains("netdyno rerun report.html"));
        assert_eq!(told("job.json", b"{\"schema\": \"netdyno.job/1\", \"kind\": \"send\"}"), None);
        assert_eq!(told("job.yaml", b"schema: netdyno.job/1"), None);
    }

    #[test]
    fn a_file_of_another_kind_is_told_the_verb_that_takes_it() {
        for (name, begins, kind) in [
            ("a.bin", &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0][..], Some(Kind::Capture)),
            ("a.pcap.gz", &[0x1f, 0x8b, 0], Some(Kind::Capture)),
            ("plugin", b"\0asm\x01\0", Some(Kind::Module)),
            ("a.yaml", b"name: x\nstreams:\n  - frame: ipv4/udp\n", Some(Kind::Scenario)),
            ("a.json", b"{\"streams\": []}", Some(Kind::Scenario)),
            ("a.yaml", b"schema: netdyno.job/1\nkind: send\n", Some(Kind::Job)),
            ("result.json", b"{\n  \"schema\": \"netdyno.report/2\"", Some(Kind::Result)),
            ("page.html", b"<!doctype html><title>netdyno send</title>", Some(Kind::Result)),
            ("page.html", b"<!doctype html><title>else</title>", None),
            ("notes.txt", b"streams are nice", None),
            ("empty", b"", None),
        ] {
            assert_eq!(Kind::of(Path::new(name), begins), kind, "{name}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.yaml");
        std::fs::write(&file, "streams:\n  - frame: ipv4/udp\n").expect("a file");
        let told = check_file(&file, Kind::Result).expect_err("a scenario").to_string();
        assert!(told.contains("s.yaml is a scenario: netdyno send /"), "{told}");
        assert!(check_file(&file, Kind::Scenario).is_ok());
        assert!(check_file(&folder.path().join("none"), Kind::Result).is_ok(), "who reads it says so");
        assert!(check_file(folder.path(), Kind::Result).is_ok());
        let told = no_job(Path::new("s.yaml"), b"streams:\n").expect("no job");
        assert_eq!(told, "s.yaml is a scenario, not a job: netdyno send s.yaml --on IFACE (or --lab)");
    }

    #[test]
    fn an_interface_in_a_files_or_a_packets_place_is_told_its_option() {
        let typed = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let told = |line| no_file(Path::new("eth7"), &typed(line), |name| name == "eth7");
        assert_eq!(
            told("netdyno probe eth7 --export h:2055").as_deref(),
            Some(
                "eth7 is an interface, and there is no file of that name: netdyno probe --on eth7 --export h:2055"
            )
        );
        let of_info = told("netdyno info eth7").expect("an interface");
        assert!(of_info.ends_with("netdyno doctor eth7"), "{of_info}");
        assert_eq!(no_file(Path::new("a.pcap"), &typed("netdyno probe a.pcap"), |_| false), None);
        // Every network namespace has this one.
        let words = typed("netdyno search throughput lo --max 1mpps");
        let told = advice("lo", false, By::Typed(&words)).expect("an interface");
        assert_eq!(told, "lo is an interface, no packet: netdyno search throughput --on lo --max 1mpps");
    }

    #[test]
    fn a_packet_that_is_none_is_refused_before_all_else() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in ["trial ipv4/upd --lab", "send ipv4/upd", "search throughput ipv4/upd", "craft ipv4/upd"]
        {
            let told = check_refused(&words(&format!("netdyno {line}"))).expect_err("no packet").to_string();
            assert!(told.contains("did you mean `udp`?"), "{line}: {told}");
        }
        for line in ["trial ipv4/udp --lab", "send --report a/b", "replay ipv4/upd", "lab a/b", "send"] {
            assert!(check_refused(&words(&format!("netdyno {line}"))).is_ok(), "{line}");
        }
        assert!(check_expression("ipv4(src={src_ip}, dst={dst_ip})/udp").is_ok());
        assert!(check_expression("ipv4/udp/payload").is_ok() && check_expression("-").is_ok());
    }

    #[test]
    fn packets_and_scenarios_are_left_alone() {
        for word in
            ["ipv4/udp", "arp", "ether", "tcp_port_scn", "-", "load.yaml", "raw(\"x.pcap\")", "IP()/UDP()"]
        {
            assert_eq!(advice(word, false, By::File), None, "{word}");
        }
        assert_eq!(advice("imix", true, By::File), None, "a file of that name");
    }
}
