//! The page for one run that is carried out elsewhere in this process (`--watch`).
//!
//! ```text
//!   page, API -- Hand -- netdyno.agent/1 --> Stand-in (a thread) --> Board of the run
//! ```
//!
//! The stand-in answers what an agent would for this one run, `r1`, and starts no others; so the server is the same.

use crate::door::Listen;
use crate::guard::{Guard, Token};
use crate::hand::Hand;
use crate::runs::Run;
use crate::{Fault, NICE, lock, native, page};
use report::Report;
use serde_json::{Value, json};
use snapshot::{Board, Request, Snapshot};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The run's name.
const NAME: &str = "r1";
/// How often the board is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Between two snapshots.
const EVERY: Duration = Duration::from_millis(100);
/// After the run's end pages have so long to be told of it.
const LAST: Duration = Duration::from_millis(600);
/// Rates may be changed to so many percent, as by an agent.
const PERCENT: std::ops::RangeInclusive<u64> = 10..=1000;

/// What became of the run: its report, or why there is none.
type Came = Arc<Mutex<Option<Result<Value, String>>>>;

/// A server that lasts as long as a run.
#[derive(Debug)]
pub struct Watching {
    at: String,
    came: Came,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What is watched.
#[derive(Debug)]
pub struct Watched {
    /// How it goes.
    pub board: Arc<Board>,
    /// Set, it ends in an orderly way.
    pub stop: Arc<AtomicBool>,
    /// The command line that it is.
    pub command: String,
}

impl Watching {
    /// Serves until it is told what became of the run.
    ///
    /// # Errors
    /// It cannot listen there, or others reach the address and there is no token.
    pub fn start(listen: &Listen, token: Option<Token>, watched: Watched) -> Result<Watching, Fault> {
        if listen.is_far() && token.is_none() {
            let what = format!(
                "--watch {listen}: others reach this address: watch at 127.0.0.1, or use `netdyno serve` with a token"
            );
            return Err(Fault::Option(what));
        }
        let bound = listen.bind("--watch")?;
        let at = bound.says(false);
        let local = matches!(listen, Listen::Unix(_));
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_read_timeout(Some(LOOK))?;
        let (over, came): (Arc<AtomicBool>, Came) = Default::default();
        watched.board.watch_closely();
        let stand_in = StandIn { watched, came: Arc::clone(&came), over: Arc::clone(&over) };
        let command = stand_in.watched.command.clone();
        let answering =
            std::thread::Builder::new().name("watched".to_owned()).spawn(move || stand_in.answer(&far))?;
        let (ends, of_path) = (Arc::clone(&over), listen.clone());
        let serving = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let _ = rustix::process::setpriority_process(None, NICE);
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let Ok(stream) = tokio::net::UnixStream::from_std(near) else { return };
                let Ok(hand) = Hand::begin(stream).await else { return };
                let job = json!({"kind": command.split_whitespace().nth(1).unwrap_or("run")});
                hand.runs().add(Arc::new(Run::new(
                    NAME.to_owned(),
                    job.clone(),
                    &job,
                    json!([]),
                    Some(command),
                )));
                // From now on what it says has somewhere to go.
                let _ = hand.call("watch", json!({})).await;
                let routes = native::routes(hand, Some(NAME)).merge(page::routes());
                let routes = Guard::new(Vec::new(), token, local).over(routes);
                let until = async {
                    while !ends.load(Relaxed) {
                        tokio::time::sleep(LOOK).await;
                    }
                    tokio::time::sleep(LAST).await;
                };
                bound.serve(routes, None, until).await;
            });
            of_path.clean();
        })?;
        Ok(Watching { at, came, over, threads: vec![answering, serving] })
    }

    /// Where.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// The run is over.
    pub fn over(self, report: Result<&Report, String>) {
        let told = report.map(|report| serde_json::to_value(report).unwrap_or_default());
        *lock(&self.came) = Some(told);
        self.over.store(true, Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

struct StandIn {
    watched: Watched,
    came: Came,
    over: Arc<AtomicBool>,
}

/// What it has told so far.
#[derive(Default)]
struct Told {
    begun: bool,
    next_note: u64,
    sequence: u64,
    latest: Option<Arc<Snapshot>>,
    at: Option<Instant>,
    ended: bool,
    /// Waits for the end.
    waiting: Vec<Value>,
}

impl StandIn {
    fn answer(&self, far: &UnixStream) {
        let (mut lines, mut line, mut told) = (BufReader::new(far), Vec::new(), Told::default());
        loop {
            match lines.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {
                    let asked: Value = serde_json::from_slice(&line).unwrap_or_default();
                    line.clear();
                    if let Some(answer) = self.does(&asked, &mut told)
                        && write(far, &answer).is_none()
                    {
                        return;
                    }
                }
                // What came of a line so far stays.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
            if told.begun && self.tell(far, &mut told).is_none() {
                return;
            }
        }
    }

    fn does(&self, asked: &Value, told: &mut Told) -> Option<Value> {
        let id = asked["id"].clone();
        let result = match asked["method"].as_str().unwrap_or_default() {
            "hello" => Ok(json!({
                "version": env!("CARGO_PKG_VERSION"),
                "job": spec::SCHEMA,
                "report": report::SCHEMA,
                "snapshot": snapshot::SCHEMA,
                "host": {"name": rustix::system::uname().nodename().to_string_lossy()},
                "may": {},
                "limits": {},
            })),
            "watch" => {
                told.begun = true;
                Ok(json!({}))
            }
            "job.pause" => self.by_hand(Request::Pause, true),
            "job.resume" => self.by_hand(Request::Resume, true),
            "job.rate" => {
                match asked["params"]["percent"].as_u64().filter(|percent| PERCENT.contains(percent)) {
                    Some(percent) => {
                        let wish = Request::Percent(u32::try_from(percent).unwrap_or(100));
                        self.by_hand(wish, false).map(|_| json!({ "percent": percent }))
                    }
                    None => Err("give `percent`, 10 to 1000, of the rate that was asked for".to_owned()),
                }
            }
            "job.stop" | "job.abort" => {
                self.watched.stop.store(true, Relaxed);
                Ok(json!({}))
            }
            "job.wait" => match self.outcome() {
                Some(told) => told,
                None => {
                    told.waiting.push(id);
                    return None;
                }
            },
            _ => Err("this page is of one run, and starts no others: `netdyno serve` does".to_owned()),
        };
        Some(answer(&id, result))
    }

    fn by_hand(&self, wish: Request, pauses: bool) -> Result<Value, String> {
        let latest = self.watched.board.latest().ok_or("it has not begun yet")?;
        let manual = &latest.title.manual;
        if let Some(why) = if pauses { &manual.no_pause } else { &manual.no_rate } {
            return Err(why.clone());
        }
        self.watched.board.request(wish);
        Ok(json!({}))
    }

    fn outcome(&self) -> Option<Result<Value, String>> {
        let came = lock(&self.came);
        came.clone().map(|came| came.map(|report| json!({ "report": report })))
    }

    /// What is new.
    fn tell(&self, far: &UnixStream, told: &mut Told) -> Option<()> {
        let board = &self.watched.board;
        for note in board.notes(&mut told.next_note) {
            let mut params = serde_json::to_value(&note).unwrap_or_default();
            params["run"] = NAME.into();
            write(far, &json!({"jsonrpc": "2.0", "method": "run.note", "params": params}))?;
        }
        let is_due = told.at.is_none_or(|at| at.elapsed() >= EVERY);
        let newest = board.latest().filter(|newest| {
            is_due && told.latest.as_ref().is_none_or(|latest| !Arc::ptr_eq(latest, newest))
        });
        if let Some(newest) = newest {
            let snapshot: Value = serde_json::from_str(&snapshot::line(&newest)).unwrap_or_default();
            let params = json!({"run": NAME, "sequence": told.sequence, "snapshot": snapshot});
            write(far, &json!({"jsonrpc": "2.0", "method": "run.snapshot", "params": params}))?;
            (told.latest, told.at) = (Some(newest), Some(Instant::now()));
            told.sequence += 1;
        }
        if self.over.load(Relaxed) && !std::mem::replace(&mut told.ended, true) {
            write(far, &json!({"jsonrpc": "2.0", "method": "run.ended", "params": {"run": NAME}}))?;
            let outcome = self.outcome().unwrap_or_else(|| Err("it ended".to_owned()));
            for id in std::mem::take(&mut told.waiting) {
                write(far, &answer(&id, outcome.clone()))?;
            }
        }
        Some(())
    }
}

fn answer(id: &Value, result: Result<Value, String>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(message) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32_004, "message": message, "data": {"kind": "engine"}}})
        }
    }
}

fn write(mut to: &UnixStream, value: &Value) -> Option<()> {
    to.write_all(format!("{value}\n").as_bytes()).ok()
}
