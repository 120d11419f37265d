//! `--tui` and `--metrics`: what stands on a terminal of 80 by 24, what keys do, and what Prometheus would read.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A terminal of a terminal multiplexer's own, on the sending host.
struct Terminal<'a> {
    net: &'a Net,
    socket: String,
}

impl<'a> Terminal<'a> {
    /// Runs a shell command in it. What the command prints on standard output goes to the file `out`.
    fn start(net: &'a Net, size: &str, line: &str) -> Terminal<'a> {
        // A server of its own: one that has just lost its last session still listens, and ends.
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let server = SERVERS.fetch_add(1, Relaxed);
        let terminal = Terminal { net, socket: net.file(&format!("tmux-{server}")) };
        let netdyno = env!("CARGO_BIN_EXE_netdyno");
        // What the terminal shows when the command has ended is looked at, too.
        let script = format!(
            "exec 3>&2; {} > {}; echo \"status $?\"; stty -a > {}; echo all gone; sleep 60\n",
            line.replace("netdyno ", &format!("{netdyno} ")),
            net.file("out"),
            net.file("stty")
        );
        let file = net.file("script");
        std::fs::write(&file, script).expect("a written file");
        let (width, height) = size.split_once('x').expect("a size");
        let mut command = net.command(format!("tmux -u -f /dev/null -S {} new-session -d", terminal.socket));
        command.args(["-x", width, "-y", height, &format!("LC_ALL=C.UTF-8 sh {file}")]);
        start(command).wait().ok();
        terminal
    }

    fn tmux(&self, words: &str) -> String {
        self.net.run(format!("tmux -S {} {words}", self.socket)).ok().stdout
    }

    fn press(&self, keys: &str) {
        self.tmux(&format!("send-keys {keys}"));
    }

    fn text(&self) -> String {
        self.tmux("capture-pane -p")
    }

    /// Waits until all these words stand on it, in one line.
    #[track_caller]
    fn shows(&self, words: &[&str]) -> String {
        let found = |text: &str| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
        let start = std::time::Instant::now();
        loop {
            let text = self.text();
            if found(&text) {
                return text;
            }
            // No verdict: what takes longer hangs.
            assert!(start.elapsed().as_secs() < 300, "no line with {words:?} in:\n{text}");
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
    }

    /// Waits for the end, and looks whether the terminal is as it was. The result that was printed, if there is one.
    #[track_caller]
    fn over(&self, statuses: &[i32]) -> Value {
        let text = self.shows(&["all gone"]);
        assert!(statuses.iter().any(|status| text.contains(&format!("status {status}\n"))), "{text}");
        assert!(!text.contains("q quit"), "the screen is still there:\n{text}");
        assert_eq!(self.tmux("display-message -p #{cursor_flag}#{alternate_on}"), "10\n");
        let modes = std::fs::read_to_string(self.net.file("stty")).expect("what stty says");
        let mode = |mode: &str| modes.split_whitespace().any(|word| word == mode);
        assert!(["icanon", "echo", "isig"].into_iter().all(mode), "{modes}");
        let out = std::fs::read_to_string(self.net.file("out")).expect("its output");
        serde_json::from_str(&out).unwrap_or(Value::Null)
    }

    /// The same of a run that was ended and did what was asked until then. Where other work held its sender up just then,
    /// that is all that it may say.
    #[track_caller]
    fn ended(&self) -> Value {
        let result = self.over(&[0, 1]);
        let why = reasons(&result);
        assert!(why.iter().all(|why| why.starts_with("the rate was not reached")), "{why:?}");
        assert!(why.is_empty() || was_held_up(&result), "{result}");
        result
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.net.run(format!("tmux -S {} kill-server", self.socket));
    }
}

fn scrape(net: &Net, port: u16) -> String {
    net.run(format!("curl -s --max-time 5 http://127.0.0.1:{port}/metrics")).ok().stdout
}

/// A sample's value.
#[track_caller]
fn value(page: &str, sample: &str) -> u64 {
    let found = page.lines().find_map(|line| line.strip_prefix(sample)?.trim().parse::<f64>().ok());
    found.unwrap_or_else(|| panic!("no `{sample}` in:\n{page}")) as u64
}

const SEND: &str = "netdyno send ipv4/udp --size 100 --on tx0 --measure rx0 --engine packet --json";

#[test]
fn a_run_is_seen_paused_made_faster_and_ended_on_80_by_24() {
    let net = Net::new();
    let line = format!("{} --rate 2kpps --tui --metrics 127.0.0.1:9117", SEND);
    let terminal = Terminal::start(&net, "80x24", &line);
    for label in ["latency", "lateness", "cores", "workers"] {
        terminal.shows(&[label]);
    }
    let text = terminal.shows(&["sent", "pps"]);
    assert_eq!(text.lines().count(), 24, "{text}");
    let first = text.lines().next().expect("a line");
    assert!(first.starts_with(" netdyno send  tx0 > rx0  packet") && first.contains("RUNNING"), "{text}");
    for label in ["intended", "sent", "received", "lost", "lateness", "stream", "workers", "cores"] {
        assert!(text.lines().any(|line| line.starts_with(label)), "no {label}:\n{text}");
    }
    assert!(text.lines().last().expect("a line").contains("q quit   space pause   + - rate"), "{text}");

    terminal.press("+ +");
    terminal.shows(&["RUNNING at 120 %"]);
    terminal.press("?");
    terminal.shows(&["pause, and go on"]);
    terminal.press("?");
    terminal.press("Space");
    terminal.shows(&["PAUSED at 120 %"]);

    // Nothing moves any more, so what is served now is what the result will say. A batch that was begun still leaves, and how
    // long that takes, and until somebody looks again, is this machine's affair: two looks, seconds apart, that are the same.
    let (tx, rx) =
        ("netdyno_tx_frames_total{interface=\"tx0\"}", "netdyno_rx_frames_total{interface=\"rx0\"}");
    let mut page = scrape(&net, 9117);
    eventually("all has arrived, and nothing more leaves", || {
        let later = scrape(&net, 9117);
        if value(&later, "netdyno_elapsed_seconds") < value(&page, "netdyno_elapsed_seconds") + 2 {
            return false;
        }
        let before = std::mem::replace(&mut page, later);
        value(&before, tx) == value(&page, tx) && value(&page, tx) == value(&page, rx)
    });
    assert_eq!(value(&page, "netdyno_state{state=\"paused\"}"), 1);

    terminal.press("q");
    let result = terminal.ended();
    let tx = &result["result"]["tx"];
    assert_eq!(number(&tx["frames"]), value(&page, "netdyno_tx_frames_total{interface=\"tx0\"}"));
    assert_eq!(number(&tx["bytes"]), value(&page, "netdyno_tx_bytes_total{interface=\"tx0\"}"));
    assert_eq!(
        number(&result["result"]["rx"]["frames"]),
        value(&page, "netdyno_rx_frames_total{interface=\"rx0\"}")
    );
    assert_eq!(number(&result["result"]["loss"]["frames"]), value(&page, "netdyno_lost_frames"));
    let latency = &result["result"]["latency_ns"];
    assert_eq!(number(&latency["count"]), value(&page, "netdyno_latency_seconds_count"));
    assert_eq!(number(&tx["frames"]), value(&page, "netdyno_latency_seconds_bucket{le=\"+Inf\"}"));
    let changes = result["result"]["adjustments"].as_array().expect("adjustments").clone();
    let told: Vec<_> = changes.iter().map(|a| (a["change"].as_str(), a["rate_ratio"].as_f64())).collect();
    assert_eq!(told, [(Some("rate"), Some(1.1)), (Some("rate"), Some(1.2)), (Some("paused"), Some(1.2))]);
    assert!(changes.is_sorted_by_key(|a| number(&a["at_ns"])));
}

#[test]
fn a_pause_makes_the_run_longer_and_costs_no_frame() {
    let net = Net::new();
    for engine in ["packet", "xdp"] {
        // It is ended by hand, so that it is there however late the keys are pressed.
        let line = format!("{} --rate 1kpps --tui", SEND.replace("packet", engine));
        let terminal = Terminal::start(&net, "80x24", &line);
        terminal.shows(&["sent", "pps"]);
        terminal.press("Space");
        terminal.shows(&["PAUSED"]);
        let paused = std::time::Instant::now();
        if engine == "xdp" {
            // It can be paused, but says why it cannot change its rate.
            terminal.press("+");
            terminal.shows(&["the xdp engine's times are frozen"]);
        }
        std::thread::sleep(std::time::Duration::from_millis(700));
        let least = paused.elapsed().as_nanos() as u64;
        terminal.press("Space");
        terminal.shows(&["RUNNING"]);
        std::thread::sleep(std::time::Duration::from_millis(500));
        terminal.press("q");
        let result = terminal.ended();
        let tx = &result["result"]["tx"];
        // All that was due, which is a frame for each millisecond without those of the pause.
        let frames = number(&tx["frames"]);
        assert!(number(&tx["due_not_sent_frames"]) == 0 || was_held_up(&result), "{engine}: {tx}");
        assert!(number(&tx["duration_ns"]) >= (frames - 1) * 1_000_000 + least, "{engine}: {tx}");
        // The burst that making good for the pause would be stands in no interval.
        let most =
            result["intervals"].as_array().expect("intervals").iter().map(|i| number(&i["tx_frames"])).max();
        if judged(longest_stall(&result) < 200_000_000) {
            assert!(most < Some(500), "{engine}: {most:?}");
        }
    }
}

#[test]
fn the_terminal_is_given_back_whatever_ends_the_run() {
    let net = Net::new();
    for signal in ["INT", "TERM", "HUP"] {
        let terminal = Terminal::start(&net, "80x24", &format!("{} --rate 1kpps --tui", SEND));
        terminal.shows(&["sent", "pps"]);
        let shell = terminal.tmux("display-message -p #{pane_pid}");
        let ours = net.run(format!("pgrep -P {}", shell.trim())).ok().stdout;
        net.run(format!("kill -{signal} {}", ours.trim())).ok();
        let result = terminal.ended();
        assert!(number(&result["result"]["tx"]["frames"]) > 0, "{signal}");
    }
    // An interface that goes away in the middle is told below the screen, not on it.
    let terminal = Terminal::start(&net, "80x24", &format!("{} --rate 1kpps --tui", SEND));
    terminal.shows(&["sent", "pps"]);
    net.run("ip link set tx0 down").ok();
    terminal.over(&[1]);
}

#[test]
fn it_follows_the_terminals_size_and_shows_what_matters_most_on_a_tiny_one() {
    let net = Net::new();
    let terminal = Terminal::start(&net, "80x24", &format!("NO_COLOR=1 {} --rate 1kpps --tui", SEND));
    terminal.shows(&["cores", "cpu0"]);
    let colours = terminal.tmux("capture-pane -p -e");
    let digits = |code: &str| code.split_once('m').map(|(code, _)| code.to_owned());
    let coloured = colours
        .split("\x1b[")
        .filter_map(digits)
        .any(|code| code.split(';').any(|n| matches!(n.as_bytes(), [b'3' | b'4' | b'9', b'0'..=b'8', ..])));
    assert!(!coloured, "{colours:?}");
    terminal.tmux("resize-window -x 44 -y 7");
    let text = terminal.shows(&["RUNNING"]);
    eventually("fewer lines", || !terminal.text().contains("cores"));
    let text = format!("{text}{}", terminal.shows(&["lost"]));
    assert!(text.contains("sent"), "{text}");
    terminal.tmux("resize-window -x 120 -y 40");
    terminal.shows(&["cores", "cpu0"]);
    terminal.press("C-c");
    terminal.ended();
}

/// All that a shell command writes to a terminal of 80 by 24.
fn written_to_a_terminal(net: &Net, command: &str) -> String {
    let file = net.file("typed");
    let netdyno = env!("CARGO_BIN_EXE_netdyno");
    let line = command.replace("netdyno ", &format!("{netdyno} "));
    std::fs::write(&file, format!("stty rows 24 cols 80\n{line}\n")).expect("a written file");
    let python = "import pty, sys\nsys.exit(pty.spawn(['sh', sys.argv[1]]) >> 8)";
    let mut typed = net.command("python3 -c");
    typed.args([python, file.as_str()]);
    start(typed).wait().stdout
}

/// The codes of colours in it: 30 to 37, 40 to 47, their bright ones, those of palettes (38, 48), and their defaults (39, 49).
fn colours(written: &str) -> Vec<String> {
    let codes = written.split("\x1b[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !";:".contains(c))?;
        rest[end..].starts_with('m').then(|| rest[..end].to_owned())
    });
    let is_colour = |code: &String| {
        let numbers = code.split([';', ':']).filter_map(|n| n.parse::<u32>().ok());
        numbers.into_iter().any(|n| matches!(n, 30..=49 | 90..=107))
    };
    codes.filter(is_colour).collect()
}

#[test]
fn nothing_is_coloured_where_nobody_wants_colours() {
    let net = Net::new();
    let seen = |how: &str, command: &str, shows: &str| {
        let written = written_to_a_terminal(&net, &format!("env {how} {command}"));
        assert!(written.contains(shows), "no `{shows}` of {command}: {written:?}");
        colours(&written)
    };
    let screen = format!("{SEND} --rate 1kpps --duration 2s --tui");
    let progress = format!("{} --rate 1kpps --duration 1s", SEND.replace(" --json", ""));
    // A terminal with colours gets some, else what follows would prove nothing.
    assert!(!seen("-u NO_COLOR TERM=xterm-256color", &screen, "tx0 > rx0").is_empty());
    assert!(!seen("NO_COLOR= TERM=xterm-256color", &screen, "tx0 > rx0").is_empty(), "empty is not set");
    for value in ["1", "0", "false"] {
        let how = format!("NO_COLOR={value} TERM=xterm-256color");
        assert_eq!(seen(&how, &screen, "tx0 > rx0"), [""; 0], "NO_COLOR={value}");
    }
    // Machines that build set CI, and colours may be wished for by variables: a terminal that has none gets none.
    let unwanted = [
        "NO_COLOR=1 TERM=xterm-256color CI=true CLICOLOR_FORCE=1",
        "-u NO_COLOR -u CI TERM=dumb",
        "-u NO_COLOR TERM=dumb CI=true CLICOLOR=1",
        "-u NO_COLOR -u TERM CI=true",
        "NO_COLOR=yes TERM=dumb",
    ];
    for how in unwanted {
        for (command, shows) in [
            (progress.as_str(), "received"),
            ("netdyno --help", "Usage"),
            ("netdyno send --help", "--rate"),
            ("netdyno send --no-such-option", "unexpected argument"),
            ("netdyno doctor lo", "lo"),
            ("netdyno search loss --lab --size 1518 --max 500pps --trial-duration 50ms", "1518"),
        ] {
            assert_eq!(seen(how, command, shows), [""; 0], "{how} {command}");
        }
    }
}

#[test]
fn where_there_can_be_no_screen_that_is_said_and_nothing_is_sent() {
    let net = Net::new();
    net.run(format!("{} --topspeed --count 1 --tui", SEND)).refused(&["--tui", "not a terminal"]);
    let terminal = Terminal::start(&net, "80x24", &format!("TERM=dumb {} --topspeed --count 1 --tui", SEND));
    terminal.shows(&["TERM=dumb"]);
    terminal.over(&[2]);
}

#[test]
fn measure_and_reflect_have_screens_too() {
    let net = Net::new();
    // Native XDP would need a program at the other end of the veth, too.
    for (verb, words) in [("measure", "received"), ("reflect --generic", "sent back")] {
        let terminal = Terminal::start(&net, "80x24", &format!("netdyno {verb} --on tx0 --tui --json"));
        let name = verb.split(' ').next().expect("a verb");
        terminal.shows(&[name, "tx0", "RUNNING"]);
        let send = net
            .start_there("netdyno send ipv4/udp --sign --on rx0 --rate 1kpps --engine packet --duration 2s");
        terminal.shows(&[words, "pps"]);
        terminal.press("Space");
        terminal.shows(&["there is nothing to pause"]);
        send.signal("INT");
        send.wait();
        terminal.press("q");
        let report = terminal.over(&[0]);
        assert_eq!(report["command"], *name);
    }
}

#[test]
fn a_search_shows_its_trials_and_what_is_known_and_metrics_tell_the_same() {
    let net = Net::new();
    net.run("ip link set lo up").ok();
    let line = "netdyno search throughput --lab --lab-bottleneck 20mbps --size 1518 --goal loss=0% --goal loss=10% \
                --trial-duration 500ms --precision 0.0001% --json --tui --metrics 127.0.0.1:9119";
    let terminal = Terminal::start(&net, "80x24", line);
    terminal.shows(&["search", "throughput, frames of 1518 bytes"]);
    terminal.shows(&["trials are over"]);
    terminal.shows(&["known", "loss 0 %", "kpps failed"]);
    let text = terminal.shows(&["trial", "verdict"]);
    assert_eq!(text.lines().count(), 24, "{text}");
    for label in [" netdyno search throughput  tx0 > rx0", "sent", "received", "lost", "done"] {
        assert!(text.lines().any(|line| line.starts_with(label)), "no {label}:\n{text}");
    }
    terminal.press("+");
    terminal.shows(&["a trial is at its load"]);
    let page = scrape(&net, 9119);
    let trials = |page: &str| {
        ["passed", "failed"].map(|v| value(page, &format!("netdyno_search_trials_total{{verdict=\"{v}\"}}")))
    };
    let [passed, failed] = trials(&page);
    assert!(passed + failed > 0, "{page}");
    assert!(page.contains("netdyno_search_info{part=\"throughput\",frame_size=\"1518\"} 1\n"), "{page}");
    let sent = value(&page, "netdyno_tx_frames_total{interface=\"tx0\"}");
    // Counters go on from trial to trial.
    eventually("the next trials", || trials(&scrape(&net, 9119)).iter().sum::<u64>() > passed + failed + 2);
    assert!(value(&scrape(&net, 9119), "netdyno_tx_frames_total{interface=\"tx0\"}") > sent);
    terminal.press("q");
    let result = terminal.over(&[1]);
    assert_eq!(result["result"]["search"]["complete"], false);
    let done = result["result"]["trials"].as_array().expect("trials").len() as u64;
    assert!(done >= passed + failed + 2, "{done} trials");
}

#[test]
fn a_trial_a_bridge_and_played_connections_have_screens() {
    let net = Net::new();
    net.run("ip link set lo up").ok();
    let line = "netdyno trial --lab --size 512 --rate 2kpps --duration 20s --json --tui";
    let terminal = Terminal::start(&net, "80x24", line);
    terminal.shows(&["trial    1: 2.00 kpps for 20.0 s"]);
    terminal.shows(&["received", "pps"]);
    terminal.press("q");
    assert_eq!(terminal.over(&[1])["result"]["trials"].as_array().map(Vec::len), Some(1));
    drop(terminal);

    net.run("ip link add one type veth peer name two").ok();
    net.run("ip link set one up").ok();
    net.run("ip link set two up").ok();
    let line = "netdyno bridge --between tx0 one --engine packet --json --tui --metrics 127.0.0.1:9120";
    let terminal = Terminal::start(&net, "80x24", line);
    terminal.shows(&["netdyno bridge", "RUNNING"]);
    let send = net.start_there("netdyno send ipv4/udp --on rx0 --rate 1kpps --engine packet --duration 5s");
    terminal.shows(&["tx0 > one", "forwarded"]);
    let forwarded = "netdyno_bridge_forwarded_frames_total{from=\"tx0\",to=\"one\"}";
    eventually("frames are forwarded", || value(&scrape(&net, 9120), forwarded) > 100);
    send.signal("INT");
    send.wait();
    terminal.press("q");
    assert_eq!(terminal.over(&[0])["command"], "bridge");
    drop(terminal);

    // Nobody answers there: it says the same again and again.
    let capture = net.file("session.pcap");
    let syn = "ether/ipv4(src=10.0.0.1,dst=10.0.0.2)/tcp(sport=1234,dport=80,flags=S,seq=1)";
    run(format!("netdyno craft {syn} -w {capture}")).ok();
    let to = "--to 198.18.0.2:80 --from 198.18.0.1 --mac 02:00:00:00:00:02";
    let line = format!("netdyno live {capture} {to} --on tx0 --json --tui --metrics 127.0.0.1:9121");
    let terminal = Terminal::start(&net, "80x24", &line);
    terminal.shows(&["played", "0 connections over", "1 open"]);
    eventually("it is said again", || {
        value(&scrape(&net, 9121), "netdyno_tx_frames_total{interface=\"tx0\"}") > 1
    });
    terminal.press("q");
    assert_eq!(terminal.over(&[1, 2])["command"], "live");
}

#[test]
fn a_job_that_is_stopped_gives_the_terminal_back_and_takes_it_again() {
    let net = Net::new();
    let netdyno = env!("CARGO_BIN_EXE_netdyno");
    let (send, stopped) = (SEND.replace("netdyno ", &format!("{netdyno} ")), net.file("stopped"));
    // A shell that looks after jobs, as a person's does.
    let script = format!(
        "set -m\n{send} --rate 1kpps --tui >{}\nstty -a >{stopped}\necho halted >&2\nread word\nfg >/dev/null\n",
        net.file("result")
    );
    std::fs::write(net.file("job"), script).expect("a written file");
    let terminal = Terminal::start(&net, "80x24", &format!("bash {}", net.file("job")));
    terminal.shows(&["sent", "pps"]);
    terminal.press("C-z");
    let text = terminal.shows(&["halted"]);
    assert!(!text.contains("q quit"), "{text}");
    let modes = std::fs::read_to_string(&stopped).expect("what stty says");
    assert!(modes.split_whitespace().any(|mode| mode == "icanon"), "{modes}");
    terminal.press("Enter");
    terminal.shows(&["q quit"]);
    terminal.shows(&["sent", "pps"]);
    terminal.press("q");
    terminal.over(&[0, 1]);
    let result = std::fs::read_to_string(net.file("result")).expect("its result");
    assert!(number(&serde_json::from_str::<Value>(&result).expect("JSON")["result"]["tx"]["frames"]) > 0);
}

/// The official client's own parsers, the second of which is strict.
const PARSE: &str = r#"
import sys
from prometheus_client.parser import text_string_to_metric_families as classic
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
parse = {"classic": classic, "strict": strict}[sys.argv[1]]
for family in parse(open(sys.argv[2]).read()):
    assert family.documentation and family.type != "unknown", family
    for sample in family.samples:
        print(sample.name, sorted(sample.labels.items()), float(sample.value))
"#;

#[test]
fn metrics_are_what_prometheus_reads_and_what_the_result_says() {
    let net = Net::new();
    let parser = net.file("parse.py");
    std::fs::write(&parser, PARSE).expect("a written file");
    // It measures for longer than is sent, so what is served at last is what the result says.
    let mut meter = net
        .start_there("netdyno measure --on rx0 --count 500 --json --metrics 127.0.0.1:9118 --duration 20s");
    meter.until_it_says("measuring on rx0");
    let there = |what: &str| net.run_there(format!("curl -s --max-time 5 {what}")).ok().stdout;
    net.run("netdyno send ipv4/udp --sign --on tx0 --topspeed --count 499 --engine packet").ok();
    eventually("all is served", || {
        let page = there("http://127.0.0.1:9118/metrics");
        page.contains("netdyno_stream_rx_frames_total{stream=\"0\",name=\"\"} 499\n")
    });
    let at = "http://127.0.0.1:9118";
    for (kind, accept) in [("classic", "*/*"), ("strict", "application/openmetrics-text;version=1.0.0")] {
        let page = net.file(kind);
        let headers = there(&format!("-D - -o {page} -H Accept:{accept} {at}/metrics"));
        let content_type = if kind == "strict" {
            "application/openmetrics-text; version=1.0.0"
        } else {
            "text/plain; version=0.0.4"
        };
        assert!(headers.contains(&format!("Content-Type: {content_type}; charset=utf-8")), "{headers}");
        let samples = run(format!("/usr/bin/python3 {parser} {kind} {page}")).ok().stdout;
        for sample in [
            "netdyno_rx_frames_total [('interface', 'rx0')] 499.0",
            "netdyno_lost_frames [] 0.0",
            "netdyno_latency_seconds_count [] 499.0",
            "netdyno_state [('state', 'running')] 1.0",
        ] {
            assert!(samples.contains(sample), "no {sample} in {samples}");
        }
    }
    for (what, code) in [("/other", "404"), ("/metrics -X POST", "405"), ("/", "200"), ("/metrics -I", "200")]
    {
        assert_eq!(there(&format!("-o /dev/null -w %{{http_code}} {at}{what}")), code, "{what}");
    }
    net.run_there("netdyno measure --on rx0 --duration 1s --metrics 127.0.0.1:9118")
        .refused(&["--metrics 127.0.0.1:9118", "another program listens there"]);
    net.run_there("netdyno measure --on rx0 --duration 1s --metrics 192.0.2.1:9118")
        .refused(&["--metrics 192.0.2.1:9118", "no such address"]);
    net.run("netdyno send ipv4/udp --sign --on tx0 --topspeed --count 1 --engine packet").ok();
    assert_eq!(number(&meter.wait().ok().json()["result"]["rx"]["frames"]), 500);
}

#[test]
fn a_clone_is_seen_and_its_page_says_what_happened() {
    use crate::clone::oracle::{self, Load, Server};
    let net = Net::with(&::lab::Options { addresses: true, ..Default::default() });
    // The target has an address of its own: sessions from its host would be copies that came back.
    net.run_there("ip address add 198.18.0.3/24 dev rx0").ok();
    let online = Server::start(&net.lab.sender.namespace, "0.0.0.0:80", 128);
    let target = Server::start(&net.lab.receiver.namespace, "198.18.0.3:80", 130);
    let report = net.file("report");
    let line = format!("netdyno clone --from tx0:80 --to 198.18.0.3:80 --json --tui --report {report}");
    let terminal = Terminal::start(&net, "80x24", &line);
    terminal.shows(&["netdyno clone", "RUNNING"]);
    let load = Load { connections: 20, requests: 200, per_second: 1000, body: 0, short: false };
    oracle::run(&net.lab.receiver.namespace, "198.18.0.1:80", load);
    terminal.shows(&["sessions", "20 seen, 20 copied"]);
    terminal.shows(&["target", "20 connections, 0 failed"]);
    let text = terminal.shows(&["answers", "200 compared, 200 differ"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    terminal.press("q");
    let result = terminal.over(&[0]);
    assert_eq!(number(&result["result"]["cloned"]["sessions"]["copied"]), 20);
    let page = std::fs::read_to_string(format!("{report}/report.html")).expect("a page");
    for words in [
        "Copied 20 of 20 sessions: 20 connections to the target",
        "200 of 200 answers differ from the server",
    ] {
        assert!(page.contains(words), "no `{words}` in the page");
    }
    drop((online.seen(), target.seen()));
}
