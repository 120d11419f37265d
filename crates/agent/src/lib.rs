//! `netdyno agent`: jobs for another program, which speaks netdyno.agent/1 (docs/agent.md) over a pipe.
//!
//! ```text
//!   client -- lines --> Input --> Agent: methods --> Run (a thread each): job::Handle
//!      ^                             |                  |
//!      '---- a thread <-- Outbox <---'------------------'  answers, notes, the newest snapshot of each run
//! ```
//!
//! Nothing here waits for a client that does not read. When its end of the pipe is closed, each run is stopped in an orderly way, and the
//! agent ends.

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

mod contents;
mod devices;
mod folder;
mod grants;
mod host;
mod input;
mod log;
mod message;
mod outbox;
mod prepare;
mod run;
#[cfg(not(feature = "without-schemas"))]
mod schema;

pub use grants::{BadGrant, Grants};
pub use host::boot_id;
pub use input::{Came, Input};
pub use log::Log;
pub use message::{
    Agree, Among, AskClock, AskHost, Client, ClockTold, ContentBegin, ContentBegun, ContentChunk,
    DevicesStart, DevicesTold, EmulatedDevice, EmulatedVlan, Fault, FaultData, FaultKind, FilePiece,
    FileRead, Hello, Host, JobGo, JobRate, JobStart, JobStarted, Limits, LinkSet, May, NeighbourTold,
    OfContent, OfDevices, OfRun, PROTOCOL, RateSet, RunEnded, RunNote, RunOutcome, RunReady, RunSnapshot,
    Used, Welcome, Written,
};
#[cfg(not(feature = "without-schemas"))]
pub use schema::schema;

use contents::Contents;
use folder::Folder;
use message::{Request, answer, no_such_method};
use outbox::Outbox;
use run::Run;
use serde::Serialize;
use serde_json::{Value, json};
use snapshot::{Phase, Request as Wish};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runs at once.
const RUNNING: usize = 16;
/// Runs that are kept.
const RUNS: usize = 64;
/// Requests that wait for their answers.
const WAITING: usize = 256;
/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// At its end a client that takes nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// Runs have so long to end in an orderly way.
const LAST: Duration = Duration::from_secs(15);

/// What an agent is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// What jobs may do.
    pub grants: Grants,
    /// Bytes of all files.
    pub contents_bytes: u64,
    /// Where it is written down who asked for what.
    pub log: Option<Log>,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its end, or a signal came.
    Orderly,
    /// Nobody reads the answers any more, though requests may still come.
    Unread,
}

/// Serves a client until it closes its end, or `stop` is set. Then each run has ended, and nothing of it is left.
///
/// # Errors
/// There is no folder or thread to be had.
pub fn serve(
    from: BorrowedFd<'_>,
    to: impl Write + AsFd + Send + 'static,
    options: Options,
    stop: &AtomicBool,
) -> std::io::Result<Ended> {
    let folder = Folder::new(options.contents_bytes)?;
    let outbox = Arc::new(Outbox::default());
    outbox.directly_to(to.as_fd().try_clone_to_owned()?);
    // At the end a client that does not read keeps it for ever; nobody waits for it.
    let _writer = outbox.write_to(to)?;
    let mut agent = Agent::new(options, folder, Arc::clone(&outbox));
    let mut input = Input::new(from, message::LINE_BYTES);
    let ended = loop {
        if outbox.is_closed() || outbox.is_deaf() {
            break Ended::Unread;
        }
        if stop.load(Relaxed) {
            break Ended::Orderly;
        }
        // Who does not read is not read from.
        if !outbox.await_room(LOOK) {
            if input::is_hung_up(from) {
                break Ended::Orderly;
            }
            continue;
        }
        match input.next(LOOK) {
            Came::Nothing => {}
            Came::End => break Ended::Orderly,
            Came::TooLong => {
                let what = format!("a line has more than {} bytes", message::LINE_BYTES);
                outbox.push(answer(&Value::Null, &Err(Fault::new(FaultKind::Limit, what))));
            }
            Came::Line(line) => {
                if agent.line(&line, input.read_at()) {
                    input.stay_awake();
                }
            }
        }
    };
    agent.end();
    outbox.finish(PATIENCE);
    Ok(ended)
}

/// The runs that are kept, by their names.
type Runs = BTreeMap<String, Arc<Run>>;

struct Agent {
    grants: Grants,
    log: Option<Log>,
    limits: Limits,
    folder: Folder,
    contents: Contents,
    outbox: Arc<Outbox>,
    runs: Runs,
    shared: prepare::Shared,
    devices: devices::AllDevices,
    links: devices::Links,
    followers: Vec<JoinHandle<()>>,
    next_run: u64,
    greeted: bool,
    /// Requests that wait for their answers.
    waiting: Arc<AtomicUsize>,
    /// The lease is over.
    over: Arc<AtomicBool>,
}

/// Answered now, or later by somebody else.
type Answered = Option<Result<Value, Fault>>;

fn now(told: impl Serialize) -> Answered {
    Some(serde_json::to_value(told).map_err(internal))
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped so")]
fn internal(error: serde_json::Error) -> Fault {
    Fault::new(FaultKind::Internal, error.to_string())
}

impl Agent {
    fn new(options: Options, folder: Folder, outbox: Arc<Outbox>) -> Agent {
        let limits = Limits {
            line_bytes: message::LINE_BYTES,
            chunk_bytes: message::CHUNK_BYTES,
            contents_bytes: options.contents_bytes,
            contents: contents::MOST,
            running: RUNNING,
            runs: RUNS,
            waiting: WAITING,
        };
        Agent {
            contents: Contents::new(folder.path(), options.contents_bytes),
            grants: options.grants,
            log: options.log,
            limits,
            folder,
            outbox,
            runs: Runs::new(),
            shared: prepare::Shared::new(),
            devices: devices::AllDevices::default(),
            links: devices::Links::default(),
            followers: Vec::new(),
            next_run: 1,
            greeted: false,
            waiting: Arc::default(),
            over: Arc::default(),
        }
    }

    /// Does what a line asks for that came at `read`. Did it ask for the time?
    fn line(&mut self, line: &[u8], read: u64) -> bool {
        let request = match Request::read(line) {
            Ok(request) => request,
            Err((id, fault)) => {
                self.outbox.push(answer(&id, &Err(fault)));
                return false;
            }
        };
        let answered = self.method(&request, read).unwrap_or_else(|fault| Some(Err(fault)));
        if let Some(answered) = answered {
            self.outbox.push(answer(&request.id, &answered));
        }
        request.method == "clock"
    }

    fn method(&mut self, request: &Request, read: u64) -> Result<Answered, Fault> {
        if !self.greeted && request.method != "hello" {
            return Err(Fault::usage("the first request must be `hello`"));
        }
        Ok(match request.method.as_str() {
            "hello" => self.hello(&request.params()?)?,
            "host" => self.look_at_host(request)?,
            "clock" => {
                let AskClock { t1 } = request.params()?;
                let begun = message::clock_begun(&request.id, t1, read);
                self.outbox.push_at_once(|| message::clock_answer(begun));
                None
            }
            "content.begin" => now(self.contents.begin(request.params()?)?),
            "content.chunk" => {
                let ContentChunk { content, offset, base64 } = request.params()?;
                now(json!({ "offset": self.contents.chunk(&content, offset, base64)? }))
            }
            "content.end" => {
                let OfContent { content } = request.params()?;
                self.contents.end(&content)?;
                now(json!({}))
            }
            "content.forget" => {
                let OfContent { content } = request.params()?;
                self.contents.forget(&content)?;
                now(json!({}))
            }
            "devices.start" => self.devices(&request.params()?)?,
            "devices.look" => {
                let OfDevices { devices } = request.params()?;
                now(self.devices.look(&devices)?)
            }
            "devices.stop" => {
                let OfDevices { devices } = request.params()?;
                self.devices.stop(&devices)?;
                self.log.iter().for_each(|log| log.devices("devices_over", &devices, json!({})));
                now(json!({}))
            }
            "link.set" => self.set_link(&request.params()?)?,
            "job.start" => {
                self.start(request).inspect_err(|fault| {
                    self.log.iter().for_each(|log| log.refused(&fault.message));
                })?;
                None
            }
            "job.go" => self.go(&request.params()?)?,
            "job.pause" => self.wish(request, Wish::Pause)?,
            "job.resume" => self.wish(request, Wish::Resume)?,
            "job.rate" => self.rate(&request.params()?)?,
            "job.stop" => {
                self.going(request)?.handle().stop();
                now(json!({}))
            }
            "job.abort" => {
                self.going(request)?.abort();
                now(json!({}))
            }
            "job.wait" => self.wait(request)?,
            "job.files" => now(json!({ "files": self.run(request)?.files()? })),
            "file.read" => {
                let asked: FileRead = request.params()?;
                now(self.run_named(&asked.run)?.read(&asked)?)
            }
            "job.forget" => self.forget(request)?,
            other => return Err(no_such_method(other)),
        })
    }

    fn hello(&mut self, hello: &Hello) -> Result<Answered, Fault> {
        if !hello.protocol.iter().any(|protocol| protocol == PROTOCOL) {
            let what = format!("hello: this netdyno speaks {PROTOCOL} alone");
            return Err(Fault::usage(what).remedy("use a client of the same version as the agent"));
        }
        let again = std::mem::replace(&mut self.greeted, true);
        if let Some(log) = self.log.as_ref().filter(|_| !again) {
            log.client(&hello.client);
        }
        Ok(now(Welcome {
            protocol: PROTOCOL.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            job: spec::SCHEMA.into(),
            report: report::SCHEMA.into(),
            snapshot: snapshot::SCHEMA.into(),
            host: host::host(),
            may: self.grants.told(),
            limits: self.limits,
        }))
    }

    /// Takes a place among the requests that wait.
    fn waits(&self) -> Result<(), Fault> {
        if self.waiting.load(Relaxed) >= WAITING {
            let what = format!("{WAITING} requests wait for their answers already");
            return Err(Fault::new(FaultKind::Limit, what));
        }
        self.waiting.fetch_add(1, Relaxed);
        Ok(())
    }

    /// It takes a while: others are answered meanwhile.
    fn look_at_host(&mut self, request: &Request) -> Result<Answered, Fault> {
        let asked: AskHost = request.params()?;
        self.waits()?;
        let (grants, id, outbox) = (self.grants.clone(), request.id.clone(), Arc::clone(&self.outbox));
        let waiting = Arc::clone(&self.waiting);
        let look = move || {
            outbox.push(answer(&id, &host::look(&asked, &grants)));
            waiting.fetch_sub(1, Relaxed);
        };
        let started = std::thread::Builder::new().name("host".to_owned()).spawn(look);
        let started = started.map_err(|error| {
            self.waiting.fetch_sub(1, Relaxed);
            Fault::new(FaultKind::Limit, error.to_string())
        })?;
        self.keep(started);
        Ok(None)
    }

    /// What cannot be written down is not done.
    fn is_written(&self) -> Result<(), Fault> {
        self.log.as_ref().and_then(Log::broken).map_or(Ok(()), |why| Err(not_written(&why)))
    }

    fn devices(&mut self, asked: &DevicesStart) -> Result<Answered, Fault> {
        self.is_written()?;
        let devices = self.devices.start(asked, &self.grants)?;
        let of = json!({ "on": asked.on, "addresses": asked.devices.len() });
        self.log.iter().for_each(|log| log.devices("devices", &devices, of.clone()));
        Ok(now(OfDevices { devices }))
    }

    fn set_link(&mut self, asked: &LinkSet) -> Result<Answered, Fault> {
        self.is_written()?;
        self.links.set(asked, &self.grants)?;
        let of = json!({ "up": asked.up });
        self.log.iter().for_each(|log| log.devices("link", &asked.on, of.clone()));
        Ok(now(json!({})))
    }

    fn keep(&mut self, thread: JoinHandle<()>) {
        self.followers.retain(|follower| !follower.is_finished());
        self.followers.push(thread);
    }

    fn run_named(&self, name: &str) -> Result<Arc<Run>, Fault> {
        self.runs.get(name).cloned().ok_or_else(|| {
            Fault::new(FaultKind::Unknown, format!("there is no run `{}`", report::units::printable(name)))
        })
    }

    fn run(&self, request: &Request) -> Result<Arc<Run>, Fault> {
        let OfRun { run } = request.params()?;
        self.run_named(&run)
    }

    /// A run that is not over.
    fn going(&self, request: &Request) -> Result<Arc<Run>, Fault> {
        let run = self.run(request)?;
        run.must_go_on()?;
        Ok(run)
    }

    /// Pauses a run, or goes on.
    fn wish(&self, request: &Request, wish: Wish) -> Result<Answered, Fault> {
        let run = self.going(request)?;
        if let Some(why) = manual(&run, |manual| manual.no_pause)? {
            return Err(Fault::new(FaultKind::Engine, format!("{}: {why}", run.name)));
        }
        run.handle().board().request(wish);
        Ok(now(json!({})))
    }

    /// A run that is held begins at a time.
    fn go(&self, asked: &JobGo) -> Result<Answered, Fault> {
        let run = self.run_named(&asked.run)?;
        run.must_go_on()?;
        let held = run.hold().filter(|hold| hold.is_ready());
        let Some(hold) = held else {
            let what = match run.hold() {
                Some(_) => format!("{} is not ready yet", run.name),
                None => format!("{} is not held: it begins by itself", run.name),
            };
            return Err(Fault::new(FaultKind::Engine, what).remedy("wait for `run.ready`"));
        };
        if asked.start_at <= clocks::now(clocks::Clock::Tai) {
            let what = format!("{}: that time is over", run.name);
            return Err(Fault::new(FaultKind::Late, what).remedy("give a later `start_at`"));
        }
        let ahead = clocks::ahead(clocks::Clock::Tai, clocks::Clock::Monotonic).ns;
        if !hold.begin_at(asked.start_at.saturating_add_signed(ahead.saturating_neg())) {
            return Err(Fault::new(
                FaultKind::Engine,
                format!("{} was told already when to begin", run.name),
            ));
        }
        Ok(now(json!({})))
    }

    fn rate(&self, asked: &JobRate) -> Result<Answered, Fault> {
        let run = self.run_named(&asked.run)?;
        let percent = prepare::percent(&run.job, asked)?;
        if let Some(mtu) = run.mtu {
            self.grants.changed_rate(&run.job, mtu, percent)?;
        }
        run.must_go_on()?;
        if let Some(why) = manual(&run, |manual| manual.no_rate)? {
            return Err(Fault::new(FaultKind::Engine, format!("{}: {why}", run.name)));
        }
        run.handle().set_rate(percent);
        if let Some(log) = &self.log {
            log.rate(&run.name, percent);
        }
        Ok(now(RateSet { percent }))
    }

    fn wait(&self, request: &Request) -> Result<Answered, Fault> {
        let run = self.run(request)?;
        self.waits()?;
        let answered = run.wait(request.id.clone());
        if answered.is_some() {
            self.waiting.fetch_sub(1, Relaxed);
        }
        Ok(answered)
    }

    fn forget(&mut self, request: &Request) -> Result<Answered, Fault> {
        let run = self.run(request)?;
        run.must_be_over()?;
        self.runs.remove(&run.name);
        run.forget();
        Ok(now(json!({})))
    }

    fn start(&mut self, request: &Request) -> Result<(), Fault> {
        let asked: JobStart = request.params()?;
        self.is_written()?;
        let all = self.runs.len();
        let going: Vec<Arc<Run>> = self.runs.values().filter(|run| !run.is_over()).cloned().collect();
        if going.len() >= RUNNING || all >= RUNS {
            let what = match going.len() {
                RUNNING.. => format!("{RUNNING} runs go on, which is the most"),
                _ => format!("{all} runs are kept, which is the most"),
            };
            return Err(
                Fault::new(FaultKind::Limit, what).remedy("wait for runs, and forget those that are over")
            );
        }
        let number = self.next_run;
        let name = format!("r{number}");
        let every = Some(asked.snapshots_every_ns).filter(|every| *every > 0).map(Duration::from_nanos);
        let prepared = prepare::prepare(
            asked,
            &name,
            (&self.grants, &mut self.contents, self.folder.path()),
            &mut self.shared,
            &going,
        )?;
        self.next_run += 1;
        let started =
            JobStarted { run: name.clone(), job: prepared.told.clone(), interfaces: prepared.used.clone() };
        if let Some(log) = &self.log {
            let interfaces = serde_json::to_value(&started.interfaces).map_err(internal)?;
            log.started(&name, &started.job, &interfaces).map_err(|why| not_written(&why))?;
        }
        let run = prepared.start(number, name.clone(), &self.grants)?;
        let run = Arc::new(run);
        self.runs.insert(name, Arc::clone(&run));
        // Before whatever it says.
        let told = serde_json::to_value(started).map_err(internal);
        self.outbox.push(answer(&request.id, &told));
        let (outbox, over, waiting) =
            (Arc::clone(&self.outbox), Arc::clone(&self.over), Arc::clone(&self.waiting));
        let (of_thread, log) = (Arc::clone(&run), self.log.clone());
        let follow = move || {
            let answered = of_thread.follow(&outbox, every, &over);
            waiting.fetch_sub(answered, Relaxed);
            if let Some(log) = log {
                log.over(&of_thread.name, of_thread.outcome().as_deref());
            }
        };
        match std::thread::Builder::new().name("run".to_owned()).spawn(follow) {
            Ok(follower) => self.keep(follower),
            // Its end is not told until somebody asks.
            Err(_) => {
                run.abort();
                run.follow(&self.outbox, None, &self.over);
            }
        }
        Ok(())
    }

    /// The client has gone: all runs end in an orderly way.
    fn end(&mut self) {
        self.over.store(true, Relaxed);
        for run in self.runs.values() {
            run.handle().stop();
        }
        let until = Instant::now() + LAST;
        for follower in self.followers.drain(..) {
            while !follower.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            // One that hears nothing ends with the process, to which all belongs that it has.
            if follower.is_finished() {
                let _ = follower.join();
            }
        }
        self.runs.values().for_each(|run| run.forget());
        self.devices.end();
        self.links.put_back();
        if let Some(log) = &self.log {
            log.gone();
        }
    }
}

/// What cannot be written down is not done.
fn not_written(why: &str) -> Fault {
    let what = format!("the agent's log cannot be written: {why}");
    Fault::new(FaultKind::Limit, what).remedy("make room for it")
}

/// Why something cannot be done to a run by hand.
fn manual(
    run: &Run,
    why: impl FnOnce(snapshot::ManualControl) -> Option<String>,
) -> Result<Option<String>, Fault> {
    let Some(snapshot) = run.handle().snapshot() else {
        let fault = Fault::new(FaultKind::Engine, format!("{} has not begun yet", run.name));
        return Err(fault.remedy("wait for its first snapshot"));
    };
    if snapshot.phase == Phase::Ended {
        return Err(Fault::new(FaultKind::Engine, format!("{} is over", run.name)));
    }
    Ok(why(snapshot.title.manual.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Looks at a line as an agent does that grants nothing, and starts nothing.
    fn look(line: &[u8]) -> Result<(), Fault> {
        let request = Request::read(line).map_err(|(_, fault)| fault)?;
        match request.method.as_str() {
            "hello" => request.params::<Hello>().map(drop),
            "host" => request.params::<AskHost>().map(drop),
            "clock" => request.params::<AskClock>().map(drop),
            "content.begin" => request.params::<ContentBegin>().map(drop),
            "content.chunk" => request.params::<ContentChunk<'_>>().map(drop),
            "content.end" | "content.forget" => request.params::<OfContent>().map(drop),
            "devices.start" => request.params::<DevicesStart>().map(drop),
            "devices.look" | "devices.stop" => request.params::<OfDevices>().map(drop),
            "link.set" => request.params::<LinkSet>().map(drop),
            "job.rate" => request.params::<JobRate>().map(drop),
            "job.go" => request.params::<JobGo>().map(drop),
            "file.read" => request.params::<FileRead>().map(drop),
            "job.start" => {
                let folder = tempfile::tempdir().expect("a folder");
                let nowhere = folder.path();
                let mut contents = Contents::new(nowhere, 0);
                prepare::prepare(
                    request.params()?,
                    "r1",
                    (&Grants::default(), &mut contents, nowhere),
                    &mut prepare::Shared::new(),
                    &[],
                )
                .map(drop)
            }
            "job.pause" | "job.resume" | "job.stop" | "job.abort" | "job.wait" | "job.files"
            | "job.forget" => request.params::<OfRun>().map(drop),
            other => Err(no_such_method(other)),
        }
    }

    /// Requests that are right, each a line.
    const LINES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"client":{"name":"a","version":"1"},"protocol":["netdyno.agent/1"]}}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"clock","params":{"t1":-5}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"job.start","params":{"job":{"kind":"send","what":"ipv4/udp","lab":{},"rate":"10kpps","count":5},"snapshots_every_ns":500000000,"start_at":1795768415000000000}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"job.start","params":{"job":{"kind":"measure","capture":{"file":"x.pcapng"},"on":"lo"},"contents":{"a":"c1"},"agree":{"yes_disrupt":["lo"],"command":"reboot"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"content.begin","params":{"name":"web.pcap","bytes":24,"sha256":"d7439d04aee3dd5d5f0dd2e8fa2cb4ce1bf93c7bb1aeef4f3b6b6f1e86ee5d0a"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"file.read","params":{"run":"r1","name":"x","offset":18446744073709551615,"length":5}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"job.rate","params":{"run":"r1","rate":"5kpps"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"job.start","params":{"job":{"kind":"measure","on":"lo"},"among":{"hold":true,"stamps_ahead_ns":-5,"part":[0,2]}}}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"job.go","params":{"run":"r1","start_at":1795768415000000000}}"#,
    ];

    #[test]
    fn each_of_the_lines_below_is_understood() {
        for line in LINES {
            if let Err(fault) = look(line.as_bytes()) {
                assert_eq!(fault.data.kind, FaultKind::Refused, "{line}: {fault}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// What is spoiled is one error that says something, and nobody panics.
        #[test]
        fn any_line_is_an_error_or_a_request(
            line in prop::sample::select(LINES),
            spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..6),
        ) {
            let mut bytes = line.as_bytes().to_vec();
            for (at, byte, how) in spoils {
                let at = at.index(bytes.len().max(1));
                match how {
                    0 => bytes.insert(at, byte),
                    1 if at < bytes.len() => bytes[at] = byte,
                    2 => bytes.truncate(at.max(1)),
                    _ if at < bytes.len() => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            if let Err(fault) = look(&bytes) {
                prop_assert!(!fault.message.is_empty() && fault.code < 0);
            }
        }
    }
}
