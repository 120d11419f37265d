//! The runs of this server, as their clients see them: state, the newest snapshots, notes, and the report.

use crate::{fault, lock};
use agent::Fault;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Snapshots of a run that who comes later is told.
const HISTORY: usize = 300;
/// Notes of a run that are kept, the last ones.
const NOTES: usize = 256;

/// All runs, by their numbers.
#[derive(Debug)]
pub(crate) struct Runs {
    all: Mutex<BTreeMap<u64, Arc<Run>>>,
    changes: watch::Sender<u64>,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs { all: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix('r')?.parse().ok()
}

impl Runs {
    pub fn find(&self, name: &str) -> Option<Arc<Run>> {
        lock(&self.all).get(&number(name)?).cloned()
    }

    pub fn add(&self, run: Arc<Run>) {
        if let Some(number) = number(&run.name) {
            lock(&self.all).insert(number, run);
        }
    }

    pub fn remove(&self, name: &str) {
        if let Some(number) = number(name) {
            lock(&self.all).remove(&number);
        }
    }

    pub fn len(&self) -> usize {
        lock(&self.all).len()
    }

    /// What may be forgotten first.
    pub fn oldest_over(&self) -> Option<Arc<Run>> {
        lock(&self.all).values().find(|run| run.is_over() && !run.kept).cloned()
    }

    /// All of them, the newest first.
    pub fn all(&self) -> Vec<Arc<Run>> {
        lock(&self.all).values().rev().cloned().collect()
    }

    /// Something of some run is another.
    pub fn changed(&self) {
        self.changes.send_modify(|change| *change += 1);
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Preparing,
    Ready,
    Running,
    Paused,
    Ending,
    Done,
    Short,
    Failed,
    Aborted,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Preparing => "preparing",
            State::Ready => "ready",
            State::Running => "running",
            State::Paused => "paused",
            State::Ending => "ending",
            State::Done => "done",
            State::Short => "short",
            State::Failed => "failed",
            State::Aborted => "aborted",
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, State::Done | State::Short | State::Failed | State::Aborted)
    }
}

/// A snapshot, and as which event it is told.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub sequence: u64,
    /// `{"sequence":..,"snapshot":..}`, written once for all who look.
    pub text: Arc<str>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub name: String,
    /// As it is carried out.
    pub job: Value,
    pub kind: String,
    pub interfaces: Value,
    /// The command line that it is, where it is one.
    command: Option<String>,
    started_at: String,
    inside: Mutex<Inside>,
    /// Counts what is new.
    news: watch::Sender<u64>,
    over_at: AtomicU64,
    /// When a look at its streams was told last, and the time before.
    looked_at: AtomicU64,
    looked_before_at: AtomicU64,
    /// Its files, and what it counted, are still asked for.
    kept: bool,
}

#[derive(Debug)]
struct Inside {
    state: State,
    history: VecDeque<Moment>,
    /// The newest, with all that it has.
    told: Option<Moment>,
    /// The newest two snapshots.
    newest: Option<Arc<Value>>,
    before: Option<Arc<Value>>,
    notes: VecDeque<Value>,
    notes_lost: u64,
    report: Option<Arc<Value>>,
    error: Option<Fault>,
}

impl Run {
    pub fn new(name: String, told: Value, asked: &Value, interfaces: Value, command: Option<String>) -> Run {
        let kind = asked["kind"].as_str().unwrap_or_default().to_owned();
        let now = clocks::now(clocks::Clock::Realtime) / 1_000_000_000;
        let inside = Inside {
            state: State::Preparing,
            history: VecDeque::new(),
            told: None,
            newest: None,
            before: None,
            notes: VecDeque::new(),
            notes_lost: 0,
            report: None,
            error: None,
        };
        Run {
            name,
            job: told,
            kind,
            interfaces,
            command,
            started_at: report::units::rfc3339(now),
            inside: Mutex::new(inside),
            news: watch::Sender::new(0),
            over_at: AtomicU64::new(0),
            looked_at: AtomicU64::new(0),
            looked_before_at: AtomicU64::new(0),
            kept: false,
        }
    }

    /// It is not forgotten to make room.
    pub fn kept(self, kept: bool) -> Run {
        Run { kept, ..self }
    }

    fn change(&self, change: impl FnOnce(&mut Inside)) {
        change(&mut lock(&self.inside));
        self.news.send_modify(|news| *news += 1);
    }

    /// A snapshot came.
    pub fn moment(&self, sequence: u64, snapshot: Value) {
        let text: Arc<str> = json!({"sequence": sequence, "snapshot": snapshot}).to_string().into();
        let mut short = snapshot.clone();
        if let Some(members) = short.as_object_mut() {
            // Of these only the newest is asked for, and with many streams they are most of it.
            for long in ["streams", "cores", "queues", "counters"] {
                members.remove(long);
            }
        }
        let short: Arc<str> = json!({"sequence": sequence, "snapshot": short}).to_string().into();
        let state = match snapshot["phase"].as_str() {
            Some("paused") => State::Paused,
            Some("settling" | "ended") => State::Ending,
            _ => State::Running,
        };
        self.change(|inside| {
            if !inside.state.is_over() {
                inside.state = state;
            }
            // Streams are looked at less often than snapshots come: rates are between two looks.
            let looked = |of: &Value| of["streams_elapsed_ns"].as_u64().unwrap_or(0);
            let anew = inside
                .newest
                .as_ref()
                .is_none_or(|newest| looked(newest) != looked(&snapshot) || looked(newest) == 0);
            let newest = inside.newest.replace(Arc::new(snapshot));
            if anew {
                let before = self.looked_at.swap(clocks::monotonic(), Relaxed);
                self.looked_before_at.store(before, Relaxed);
                inside.before = newest;
            }
            if inside.history.len() == HISTORY {
                inside.history.pop_front();
            }
            inside.history.push_back(Moment { sequence, text: short });
            inside.told = Some(Moment { sequence, text });
        });
    }

    pub fn note(&self, note: Value) {
        self.change(|inside| {
            if inside.notes.len() == NOTES {
                inside.notes.pop_front();
                inside.notes_lost += 1;
            }
            inside.notes.push_back(note);
        });
    }

    pub fn ready(&self) {
        self.change(|inside| inside.state = State::Ready);
    }

    pub fn over(&self, told: Result<Value, Fault>) {
        self.over_at.store(clocks::monotonic(), Relaxed);
        self.change(|inside| match told {
            Ok(report) => {
                let done = report["result"]["verdict"]["outcome"] == "done";
                inside.state = if done { State::Done } else { State::Short };
                inside.report = Some(Arc::new(report));
            }
            Err(fault) => {
                let aborted = fault.data.kind == agent::FaultKind::Aborted;
                inside.state = if aborted { State::Aborted } else { State::Failed };
                inside.error = Some(fault);
            }
        });
    }

    /// When it was over, by the monotonic clock.
    pub fn over_at(&self) -> u64 {
        self.over_at.load(Relaxed)
    }

    /// When the look before the last at its streams was told, by the monotonic clock.
    pub fn looked_before_at(&self) -> u64 {
        self.looked_before_at.load(Relaxed)
    }

    pub fn state(&self) -> State {
        lock(&self.inside).state
    }

    pub fn is_over(&self) -> bool {
        self.state().is_over()
    }

    pub fn report(&self) -> Option<Arc<Value>> {
        lock(&self.inside).report.clone()
    }

    pub fn error(&self) -> Option<Fault> {
        lock(&self.inside).error.clone()
    }

    /// The newest snapshot, and the one before it.
    pub fn newest(&self) -> (Option<Arc<Value>>, Option<Arc<Value>>) {
        let inside = lock(&self.inside);
        (inside.newest.clone(), inside.before.clone())
    }

    /// Has it begun to do what it is for?
    pub fn has_begun(&self) -> bool {
        let inside = lock(&self.inside);
        inside.newest.is_some() || inside.notes.iter().any(|note| note["code"] == "begun")
    }

    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Waits until something of it is as wanted, or it is over.
    pub async fn await_until(&self, is: impl Fn(&Run) -> bool) {
        let mut news = self.news();
        while !is(self) && !self.is_over() {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    pub async fn await_over(&self) {
        self.await_until(|_| false).await;
    }

    /// How it stands, as data.
    pub fn told(&self) -> Value {
        let inside = lock(&self.inside);
        let verdict = inside.report.as_ref().map(|report| report["result"]["verdict"].clone());
        json!({
            "run": self.name,
            "kind": self.kind,
            "state": inside.state.name(),
            "started_at": self.started_at,
            "job": self.job,
            "command": self.command.clone().unwrap_or_else(|| command(&self.job)),
            "interfaces": self.interfaces,
            "error": inside.error.as_ref().map(fault::told),
            "verdict": verdict,
        })
    }

    /// For who comes later: what was said so far, and the number of the last snapshot.
    pub fn past(&self) -> (Value, Option<u64>, u64) {
        let inside = lock(&self.inside);
        let history: Vec<Value> =
            inside.history.iter().filter_map(|moment| serde_json::from_str(&moment.text).ok()).collect();
        let last = inside.history.back().map(|moment| moment.sequence);
        let notes = inside.notes_lost + inside.notes.len() as u64;
        let told = json!({"history": history, "notes": inside.notes, "notes_lost": inside.notes_lost});
        (told, last, notes)
    }

    /// The newest snapshot if it is none that was told; notes behind the first `told`, and how many that makes.
    pub fn since(&self, sequence: Option<u64>, told: u64) -> (Option<Moment>, Vec<Value>, u64) {
        let inside = lock(&self.inside);
        let newest = inside.told.as_ref().filter(|moment| Some(moment.sequence) != sequence).cloned();
        // Of those that had no more room nobody is told again.
        let skipped = told.saturating_sub(inside.notes_lost);
        let notes = inside.notes.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)).cloned();
        (newest, notes.collect(), inside.notes_lost + inside.notes.len() as u64)
    }
}

/// A command line that does the same.
pub(crate) fn command(job: &Value) -> String {
    let text = job.to_string().replace('\'', r"'\''");
    format!("netdyno run - <<< '{text}'")
}
