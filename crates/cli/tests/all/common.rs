//! Running netdyno and its judges, two hosts to run them on, and captures as bytes.

use crate::judged::judged;
use ::lab::{Lab, Namespace, Options};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What takes longer than this hangs. No verdict: a machine with much other work, or an emulated one, is slow.
const PATIENCE: Duration = Duration::from_secs(900);

/// A command line, cut at blanks: no path or expression here has one.
pub fn command(line: impl AsRef<str>) -> Command {
    let mut words = line.as_ref().split_whitespace();
    let mut command = Command::new(executable(words.next().expect("a program")));
    command.args(words.map(executable));
    command
}

fn executable(program: &str) -> &str {
    // Measurements name another build: `scripts/bench-clone`.
    static OTHER: OnceLock<Option<String>> = OnceLock::new();
    match OTHER.get_or_init(|| std::env::var("NETDYNO_UNDER_TEST").ok()) {
        _ if program != "netdyno" => program,
        Some(other) => other,
        None => env!("CARGO_BIN_EXE_netdyno"),
    }
}

/// Runs a command line here.
pub fn run(line: impl AsRef<str>) -> Ran {
    start(command(line)).wait()
}

/// Starts a command with its output in files, which no pipe's size can hold up.
pub fn start(mut command: Command) -> Running {
    take_place(Kind::Shared);
    let [stdout, stderr] = [(); 2].map(|()| tempfile::tempfile().expect("a temporary file"));
    command.stdin(Stdio::null());
    command.stdout(stdout.try_clone().expect("a descriptor"));
    command.stderr(stderr.try_clone().expect("a descriptor"));
    let what = format!("{command:?}");
    let child = command.spawn().unwrap_or_else(|error| {
        panic!("cannot run {what}: {error}; `scripts/setup test` installs the tools")
    });
    Running { child, what, stdout, stderr }
}

/// A command that runs. It is killed if a test ends without having waited for it.
pub struct Running {
    child: Child,
    what: String,
    stdout: File,
    stderr: File,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `ps`-like names: INT, TERM, KILL.
    pub fn signal(&self, name: &str) {
        run(format!("kill -{name} {}", self.pid())).ok();
    }

    /// Several at once: a process for each would take longer, on a busy machine, than the time within which they are one request.
    pub fn signals(&self, names: &[&str]) {
        let kills: Vec<String> = names.iter().map(|name| format!("kill -{name} {}", self.pid())).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", &kills.join("; ")]);
        start(shell).wait().ok();
    }

    /// What it has said on standard error so far.
    pub fn said(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until it has said something on standard error.
    pub fn until_it_says(&mut self, words: &str) {
        let start = Instant::now();
        while !text(&self.stderr).contains(words) {
            let ended = self.child.try_wait().expect("its state").is_some();
            assert!(
                !ended && start.elapsed() < PATIENCE,
                "{} did not say `{words}` but:\n{}{}",
                self.what,
                text(&self.stdout),
                text(&self.stderr)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// It must not have ended.
    pub fn must_run(&mut self) {
        let ended = self.child.try_wait().expect("its state");
        assert!(ended.is_none(), "{} ended:\n{}{}", self.what, text(&self.stdout), text(&self.stderr));
    }

    /// Waits until it has printed something on standard output.
    pub fn until_it_prints(&mut self, words: &str) {
        let start = Instant::now();
        while !text(&self.stdout).contains(words) {
            let ended = self.child.try_wait().expect("its state").is_some();
            assert!(!ended && start.elapsed() < PATIENCE, "{} did not print `{words}`", self.what);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits, and says how many bytes of memory it had at most.
    pub fn wait_and_weigh(mut self) -> (Ran, u64) {
        let mut most = 0;
        while self.child.try_wait().expect("its state").is_none() {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
            let line =
                status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
            most = most.max(line.map_or(0, |kilobytes| kilobytes.parse::<u64>().expect("a number") * 1024));
            std::thread::sleep(Duration::from_millis(2));
        }
        (self.wait(), most)
    }

    pub fn wait(mut self) -> Ran {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "{} hangs:\n{}", self.what, text(&self.stderr));
            std::thread::sleep(Duration::from_millis(5));
        };
        Ran {
            status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            what: std::mem::take(&mut self.what),
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &File) -> String {
    // The child shares the offset: read by a name of its own.
    let mut own = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("a temporary file");
    let mut bytes = Vec::new();
    own.rewind().expect("a file");
    own.read_to_end(&mut bytes).expect("its text");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A command that ended.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub what: String,
    pub stdout: String,
    pub stderr: String,
}

/// A text in one line: where lines are folded is no matter.
pub fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Ran {
    /// It must have ended with this status.
    #[track_caller]
    pub fn with(self, status: i32) -> Ran {
        assert_eq!(self.status, status, "{}\n{}{}", self.what, self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn ok(self) -> Ran {
        self.with(0)
    }

    /// Not done: status 2, one clear error that says all of `words`, and nothing that looks like a result.
    #[track_caller]
    pub fn refused(self, words: &[&str]) -> Ran {
        let ran = self.with(2);
        assert_eq!(ran.stdout, "", "{}", ran.what);
        assert_eq!(ran.stderr.matches("netdyno: ").count(), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran.says(words)
    }

    /// Standard error says all of this.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Ran {
        for word in words {
            assert!(self.stderr.contains(word), "{}\nno `{word}` in: {}", self.what, self.stderr);
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}{}", self.what, self.stdout, self.stderr))
    }

    /// The result of a run that did all it was asked for. Where other work held up its sender, as it must show by itself,
    /// it may have been too slow, which is then the only thing it may report; all counts must be right all the same.
    #[track_caller]
    pub fn result(&self) -> Value {
        let report = self.json();
        let reasons = reasons(&report);
        let only_slow = reasons.iter().all(|reason| reason.starts_with("the rate was not reached"));
        assert!(only_slow, "{}: {reasons:?}", self.what);
        assert!(reasons.is_empty() || was_held_up(&report), "{}: {reasons:?}\n{report}", self.what);
        assert_eq!(self.status, i32::from(!reasons.is_empty()), "{}: {reasons:?}", self.what);
        report
    }

    /// The result of a search, and whether it found all it was to find. A machine with other work may have kept it from
    /// that, which it must say.
    #[track_caller]
    pub fn searched(&self) -> (Value, bool) {
        let report = self.json();
        let reasons = reasons(&report);
        let only_undetermined = reasons.iter().all(|reason| reason.contains("not determined"));
        assert!(only_undetermined, "{}: {reasons:?}\n{}", self.what, self.stderr);
        assert_eq!(self.status, i32::from(!reasons.is_empty()), "{}: {reasons:?}", self.what);
        if !reasons.is_empty() {
            let trials = report["result"]["trials"].as_array().expect("trials");
            // Of a loss curve a trial is told by its loss, whatever the sender fell short of.
            let short = |trial: &Value| {
                trial["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("sender"))
                    || number(&trial["sent_frames"]) < number(&trial["intended_frames"])
            };
            assert!(trials.iter().any(short), "{}: {report}", self.what);
        }
        (report, judged(reasons.is_empty()))
    }
}

/// May tests send with two CPUs? Where there is but one, what has to be right is that two are refused.
pub fn several_cpus() -> bool {
    let several = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !several {
        run("netdyno send ipv4/udp --engine null --rate 1kpps --count 1 --cores 2")
            .refused(&["--cores 2", "1 CPU only"]);
        judged(false);
    }
    several
}

/// Is it the longest burst of 1,514 bytes that passes a bottleneck of 20 Mbit/s where 8,000 bytes wait and 6,000 were saved, as
/// coarse searches see it? If that was not determined, is it no more than that? A sender that is held up again and again has
/// a lower greatest rate, at which longer bursts pass.
#[track_caller]
pub fn is_the_burst(frames: f64, frames_per_second: f64, determined: bool) {
    let leaves = 20e6 / (1514.0 * 8.0) / frames_per_second;
    let truth = 14_000.0 / 1514.0 / (1.0 - leaves);
    if leaves >= 1.0 {
        // All that comes leaves, however long it lasts.
        return;
    }
    let least = if determined { 0.5 * truth } else { 0.0 };
    assert!(
        (least..=1.3 * truth).contains(&frames),
        "{frames} at {frames_per_second}/s, the truth is {truth}"
    );
}

/// Does a trial say that the tester itself was at fault, and nothing of the device?
pub fn says_nothing(trial: &Value) -> bool {
    let verdict = trial["verdict"].as_str().expect("a verdict");
    ["sender short", "sender uneven", "receiver lost", "unconfirmed", "latency unknown"].contains(&verdict)
}

/// A search that found nothing, of a device that forwards nothing: its throughput is none. Where its sender, or this machine, was held
/// up even at the least load, that was not determined.
#[track_caller]
pub fn assert_no_throughput(ran: Ran, least: &str) {
    let ran = ran.with(1);
    if !judged(!ran.stdout.contains("not determined")) {
        let held_up = ["the sender", "this machine"].iter().any(|words| ran.stdout.contains(words));
        assert!(held_up, "not why: {}", ran.stdout);
        return;
    }
    for words in ["no throughput", least] {
        assert!(ran.stdout.contains(words), "no `{words}` in: {}", ran.stdout);
    }
}

/// A trial that this device passes: of `frames`, all that were sent arrived. A sender that was held up may have sent fewer,
/// or so many at once that the device had no room, and then nothing is said of the device.
#[track_caller]
pub fn assert_passed(trial: &Value, frames: u64) {
    let count = |name: &str| number(&trial[name]);
    let (intended, sent, lost) = (count("intended_frames"), count("sent_frames"), count("lost_frames"));
    assert_eq!(count("received_frames"), sent - lost, "{trial}");
    // One that took longer should have sent as many more.
    assert!(intended == frames || intended > frames && sent < intended, "{trial}");
    match trial["verdict"].as_str().expect("a verdict") {
        // What was lost while this machine was held up is not the device's.
        "passed" => {
            let excused = trial["excused_frames"].as_u64().unwrap_or(0);
            assert!(lost == excused && sent + 1 >= frames, "{trial}");
        }
        "sender short" => assert!(sent < intended, "{trial}"),
        "sender uneven" => assert!(lost > 0 && number(&trial["uneven_frames"]) > 0, "{trial}"),
        _ => panic!("{trial}"),
    }
}

/// Does a run say by itself that its sender was held up, for at least half of the time that it was late by? A sender that is
/// slow without that is no busy machine's fault.
pub fn was_held_up(report: &Value) -> bool {
    let catch_up = &report["result"]["pacing"]["catch_up"];
    let stalls = number(&catch_up["stalls"]) as f64 * longest_stall(report) as f64;
    let explained = stalls.max(number(&catch_up["abandoned_ns"]) as f64);
    longest_stall(report) > 100_000 && 2.0 * explained >= missing_ns(report)
}

/// The time that a run took beyond its schedule's.
fn missing_ns(report: &Value) -> f64 {
    let tx = &report["result"]["tx"];
    let took = number(&tx["duration_ns"]) as f64;
    // "the rate was not reached: frames for 1 s took 2 s (50 % of the rate asked for)"
    let share = |reason: &String| {
        let (percent, _) = reason.rsplit_once('(')?.1.split_once('%')?;
        percent.trim().trim_start_matches(['<', '>']).parse::<f64>().ok()
    };
    if let Some(percent) = reasons(report).iter().find_map(share) {
        return took * (1.0 - percent / 100.0);
    }
    let rate = tx["intended_frames_per_second"].as_f64().filter(|rate| *rate > 0.0);
    rate.map_or(0.0, |rate| took - number(&tx["frames"]) as f64 * 1e9 / rate)
}

#[test]
fn a_short_stall_excuses_no_slow_run() {
    let report = |stalls: u64, longest: u64, abandoned: u64| {
        let catch_up = serde_json::json!({
            "stalls": stalls, "longest_stall_ns": longest, "abandoned_ns": abandoned
        });
        let why = "the rate was not reached: frames for 1 s took 2 s (50 % of the rate asked for)";
        serde_json::json!({ "result": {
            "pacing": { "catch_up": catch_up },
            "tx": { "duration_ns": 2_000_000_000_u64, "frames": 1_000 },
            "verdict": { "reasons": [why] },
        }})
    };
    for (stalls, longest, abandoned, excused) in [
        (3, 200_000, 0, false),
        (3, 200_000_000, 0, true),
        (3, 200_000, 600_000_000, true),
        (3, 90_000, 600_000_000, false),
        (0, 0, 0, false),
    ] {
        assert_eq!(
            was_held_up(&report(stalls, longest, abandoned)),
            excused,
            "{stalls} of {longest}, {abandoned}"
        );
    }
}

/// Of at most four runs the first whose sender was in time, by its own account, or else the last: what is said of times can be judged
/// by it. A run that is not in time is no failure, and neither does another one make it right: all that is said of each holds for this.
pub fn in_time(is: impl Fn(&Value) -> bool, mut run: impl FnMut() -> Value) -> Value {
    let mut report = run();
    for _ in 1..4 {
        if is(&report) {
            break;
        }
        report = run();
    }
    report
}

/// The longest time that a run's sender was held up, by its own account; what is less than 100 us is none. What a test says
/// of times holds for senders that had the time.
pub fn longest_stall(report: &Value) -> u64 {
    number(&report["result"]["pacing"]["catch_up"]["longest_stall_ns"])
}

/// The part of its frames that a run sent more than 100 us after their time, by its own account.
pub fn late_share(report: &Value) -> f64 {
    let sent = number(&report["result"]["tx"]["frames"]);
    number(&report["result"]["pacing"]["late_frames"]) as f64 / sent.max(1) as f64
}

/// Why a run was not all that was asked for.
pub fn reasons(report: &Value) -> Vec<String> {
    let reasons = report["result"]["verdict"]["reasons"].as_array().cloned().unwrap_or_default();
    reasons.iter().map(|reason| reason.as_str().expect("text").to_owned()).collect()
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a count: {value}"))
}

/// Waits until something is so.
#[track_caller]
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE / 3, "not within {:?}: {what}", PATIENCE / 3);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Tests run side by side, as many as there are places, in the order in which they came. A test has its place from what it first
/// does (`start`, `folder`, `Net`) until its thread ends. Where as many threads as tests are allowed (scripts/test), all of them wait here.
static PLACES: Mutex<Places> =
    Mutex::new(Places { shared: 0, searching: false, alone: false, waiting: VecDeque::new() });

struct Places {
    shared: usize,
    searching: bool,
    alone: bool,
    waiting: VecDeque<(Kind, Thread)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shared,
    /// Its senders go before all others, as searches' do: two of them would hold each other up, and say so. One at a time.
    Searching,
    /// It is about times: when nobody else waits for a place, so that on a quiet machine there is something to judge.
    Alone,
    /// Threads that a test starts run in its place.
    None,
}

impl Places {
    /// Those that are to run now, and are told so.
    fn let_in(&mut self, most: usize) {
        while let Some(at) = self.next(most) {
            let (kind, thread) = self.waiting.remove(at).expect("a test that waits");
            self.count(kind, true);
            thread.unpark();
        }
    }

    /// Searches begin as early as they can: one after the other they take as long as all others beside them.
    fn next(&self, most: usize) -> Option<usize> {
        let first = |kind| self.waiting.iter().position(|(waits, _)| *waits == kind);
        let taken = self.shared + usize::from(self.searching);
        if self.alone || taken >= most {
            return None;
        }
        let searching = first(Kind::Searching).filter(|_| !self.searching);
        searching.or_else(|| first(Kind::Shared)).or_else(|| first(Kind::Alone).filter(|_| taken == 0))
    }

    fn count(&mut self, kind: Kind, has: bool) {
        match kind {
            Kind::Shared if has => self.shared += 1,
            Kind::Shared => self.shared -= 1,
            Kind::Searching => self.searching = has,
            Kind::Alone => self.alone = has,
            Kind::None => {}
        }
    }
}

/// How many tests run side by side.
fn places() -> usize {
    let asked = std::env::var("NETDYNO_TEST_PLACES").ok().and_then(|places| places.parse().ok());
    asked.unwrap_or_else(|| 2 * std::thread::available_parallelism().map_or(2, usize::from)).max(1)
}

thread_local! {
    static PLACE: Place = const { Place { kind: Cell::new(Kind::None), since: RefCell::new(None) } };
}

/// A test's place among the others, and since when it has it, by its name.
struct Place {
    kind: Cell<Kind>,
    since: RefCell<Option<(Instant, String)>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((since, test)) = self.since.take() else { return };
        let mut all = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        all.count(self.kind.get(), false);
        all.let_in(places());
        drop(all);
        // What libtest says of its time has the waiting in it.
        if let Some(path) = std::env::var_os("NETDYNO_TEST_TIMES")
            && let Ok(mut file) = File::options().append(true).create(true).open(path)
        {
            let _ = file.write_all(format!("{:.1} {test}\n", since.elapsed().as_secs_f64()).as_bytes());
        }
    }
}

/// Waits for a place, unless this test has one.
fn take_place(kind: Kind) {
    let this = std::thread::current();
    // libtest names the threads of tests as them, and runs those that are to follow one another in its own: they are alone anyway.
    let name = this.name().unwrap_or_default();
    let is_a_test = name.contains("::");
    let has = PLACE.with(|place| place.kind.get());
    if !is_a_test || has != Kind::None {
        assert!(!is_a_test || kind == Kind::Shared || kind == has, "a test says how it runs before all else");
        return;
    }
    // A test that failed poisons the lock, and spoils nothing.
    let lock = || PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = lock();
    all.waiting.push_back((kind, this.clone()));
    all.let_in(places());
    while all.waiting.iter().any(|(_, thread)| thread.id() == this.id()) {
        drop(all);
        std::thread::park();
        all = lock();
    }
    drop(all);
    PLACE.with(|place| {
        place.kind.set(kind);
        place.since.replace(Some((Instant::now(), name.to_owned())));
    });
}

/// No other test runs until this one has ended: for one that is about times.
pub fn alone() {
    take_place(Kind::Alone);
}

/// No other test that searches runs until this one has ended.
pub fn searching() {
    take_place(Kind::Searching);
}

#[test]
fn tests_that_search_run_one_at_a_time_and_those_about_times_last() {
    let this = std::thread::current;
    let mut all = Places { shared: 0, searching: false, alone: false, waiting: VecDeque::new() };
    let order = [Kind::Alone, Kind::Shared, Kind::Searching, Kind::Searching, Kind::Shared, Kind::Shared];
    all.waiting.extend(order.map(|kind| (kind, this())));
    let counts = |all: &Places| (all.shared, all.searching, all.alone, all.waiting.len());
    all.let_in(3);
    assert_eq!(counts(&all), (2, true, false, 3));
    // The place of one that searched is taken by the next that does.
    all.count(Kind::Searching, false);
    all.let_in(3);
    assert_eq!(counts(&all), (2, true, false, 2));
    all.count(Kind::Shared, false);
    all.let_in(3);
    assert_eq!(counts(&all), (2, true, false, 1));
    for kind in [Kind::Shared, Kind::Shared] {
        all.count(kind, false);
        all.let_in(3);
        assert_eq!(all.waiting.len(), 1, "another test runs");
    }
    all.count(Kind::Searching, false);
    all.let_in(3);
    assert_eq!(counts(&all), (0, false, true, 0));
    all.waiting.push_back((Kind::Shared, this()));
    all.let_in(3);
    assert_eq!(all.waiting.len(), 1, "one that is alone stays alone");
}

/// Two hosts joined by a cable, and a folder.
pub struct Net {
    pub lab: Lab,
    pub dir: TempDir,
}

impl Net {
    pub fn new() -> Net {
        Net::with(&Options::default())
    }

    pub fn with(options: &Options) -> Net {
        take_place(Kind::Shared);
        let lab = Lab::two_hosts(options).unwrap_or_else(|error| panic!("these tests need root: {error}"));
        Net { lab, dir: temporary() }
    }

    pub fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// A command line on the sending host; netdyno finds rx0 of the other as it does inside `netdyno lab`.
    pub fn command(&self, line: impl AsRef<str>) -> Command {
        let mut command = inside(&self.lab.sender.namespace, line.as_ref());
        command.env(::lab::ENV_RECEIVER_NS, handle(&self.lab.receiver.namespace));
        command
    }

    pub fn start(&self, line: impl AsRef<str>) -> Running {
        start(self.command(line))
    }

    pub fn run(&self, line: impl AsRef<str>) -> Ran {
        self.start(line).wait()
    }

    /// Waits until frames leave tx0.
    pub fn until_frames_leave(&self) {
        eventually("frames leave tx0", || {
            let link = self.run("ip -s -j link show tx0").ok().json();
            number(&link[0]["stats64"]["tx"]["packets"]) > 20
        });
    }

    /// A command line on the receiving host.
    pub fn start_there(&self, line: impl AsRef<str>) -> Running {
        start(inside(&self.lab.receiver.namespace, line.as_ref()))
    }

    pub fn run_there(&self, line: impl AsRef<str>) -> Ran {
        self.start_there(line).wait()
    }

    /// What tcpdump sees arrive at rx0 while `send` runs, once `count` frames did and no more.
    pub fn received(&self, count: usize, send: impl FnOnce()) -> Vec<Vec<u8>> {
        let file = self.file("received.pcap");
        let mut tcpdump = self.start_there(format!("tcpdump -Z root -n -U -B 16384 -Q in -i rx0 -w {file}"));
        tcpdump.until_it_says("listening on");
        send();
        // What stands in tcpdump's ring when it is told to end is not written: so wait for all, then for more.
        eventually(&format!("{count} frames arrived"), || frames(&file).len() >= count);
        std::thread::sleep(Duration::from_millis(100));
        tcpdump.signal("INT");
        tcpdump.wait().ok().says(&["\n0 packets dropped by kernel"]);
        frames(&file)
    }
}

pub fn inside(namespace: &Namespace, line: &str) -> Command {
    let mut words = line.split_whitespace();
    let program = executable(words.next().expect("a program"));
    let mut command = namespace.command(OsStr::new(program)).expect("a command");
    command.args(words.map(executable));
    command
}

/// A namespace under a name that other processes can open.
pub fn handle(namespace: &Namespace) -> String {
    use std::os::fd::AsFd;
    format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd())
}

/// A folder for a test that needs no hosts.
pub struct Folder {
    dir: TempDir,
}

impl Folder {
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

pub fn folder() -> Folder {
    take_place(Kind::Shared);
    Folder { dir: temporary() }
}

pub fn temporary() -> TempDir {
    tempfile::Builder::new().prefix("netdyno-test-").tempdir().expect("a temporary folder")
}

pub fn path(dir: &Folder, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

/// The names of what is in a folder, sorted.
pub fn listing(dir: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A capture made of bytes: classic pcap, microseconds, a frame each 100 us. Ours is not asked.
pub fn write_pcap(file: impl Into<PathBuf>, link_type: u32, frames: &[Vec<u8>]) {
    let mut out: Vec<u8> = pcap_header(link_type);
    for (n, frame) in frames.iter().enumerate() {
        let n = n as u32;
        out.extend(pcap_record(n / 10_000, n % 10_000 * 100, frame.len() as u32, frame));
    }
    std::fs::write(file.into(), out).expect("a written capture");
}

pub fn pcap_header(link_type: u32) -> Vec<u8> {
    [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link_type]
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect()
}

/// `wire_length` is how long the frame was before it was captured.
pub fn pcap_record(seconds: u32, micros: u32, wire_length: u32, frame: &[u8]) -> Vec<u8> {
    let words = [seconds, micros, frame.len() as u32, wire_length];
    words.iter().flat_map(|word| word.to_le_bytes()).chain(frame.iter().copied()).collect()
}

/// The frames of a classic little-endian pcap file; as many as are whole.
pub fn frames(file: impl AsRef<Path>) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(&file).unwrap_or_default();
    let mut frames = Vec::new();
    let mut rest = bytes.get(24..).unwrap_or_default();
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let Some(frame) = rest.get(16..16 + length) else { break };
        frames.push(frame.to_vec());
        rest = &rest[16 + length..];
    }
    frames
}

/// The same frames, byte by byte and in order; says where they begin to differ.
#[track_caller]
pub fn assert_same_frames(got: &[Vec<u8>], wanted: &[Vec<u8>]) {
    let differ = got.iter().zip(wanted).position(|(a, b)| a != b);
    assert_eq!(differ, None, "frame {differ:?}: {:02x?}", differ.map(|n| (&got[n], &wanted[n])));
    assert_eq!(got.len(), wanted.len());
}

/// What tshark finds wrong, one line each: malformed packets and bad checksums. Ports name no protocol here, since
/// arbitrary payload is no sound DNS.
pub fn tshark_complaints(file: &str) -> String {
    // (Else what comes back to a port that happens to be that of some protocol is taken for a message of it.)
    let mut tshark = command("tshark -n -d udp.port==862,twamp.test -r");
    tshark.arg(file);
    for protocol in ["ip", "tcp", "udp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    tshark.args(["-o", "sctp.checksum:CRC 32c", "-o", "tcp.analyze_sequence_numbers:FALSE"]);
    let bad =
        ["ip", "tcp", "udp", "sctp", "icmp", "icmpv6"].map(|p| format!("{p}.checksum.status == \"Bad\""));
    tshark.args(["-Y", &format!("_ws.malformed || {}", bad.join(" || "))]);
    start(tshark).wait().ok().stdout
}

/// Puts the frames of a classic pcap file behind those of others with its link type: tools take longer to begin than to read all.
pub fn join_pcap(all: &mut Vec<u8>, file: &str) {
    let bytes = std::fs::read(file).expect("a capture");
    all.extend(if all.is_empty() { &bytes[..] } else { &bytes[24..] });
}

/// The capture that a script of Scapy's makes, in a file of this test's. It takes seconds, and is done once for all tests.
pub fn by_scapy(made: &OnceLock<Vec<u8>>, dir: &Folder, name: &str, script: &str) -> String {
    let capture = path(dir, &format!("{name}.pcap"));
    let bytes = made.get_or_init(|| {
        let file = path(dir, &format!("{name}.py"));
        std::fs::write(&file, script).expect("a script");
        run(format!("/usr/bin/python3 {file} {capture}")).ok();
        std::fs::read(&capture).expect("a capture")
    });
    std::fs::write(&capture, bytes).expect("a capture");
    capture
}

/// Fields of every frame, as tshark reads them. It takes longer to begin than to read a small file.
pub fn tshark_rows(file: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let asked: String = fields.iter().map(|field| format!(" -e {field}")).collect();
    let rows = run(format!("tshark -n -r {file} -T fields -E separator=|{asked}")).ok().stdout;
    rows.lines().map(|row| row.split('|').map(str::to_owned).collect()).collect()
}

/// One field of every frame, as tshark reads it.
pub fn tshark_field(file: &str, field: &str) -> Vec<String> {
    let ran = run(format!("tshark -n -r {file} -T fields -e {field}")).ok();
    ran.stdout.lines().map(str::to_owned).collect()
}
