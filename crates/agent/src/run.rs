//! A job that was started here, until it is forgotten.

use crate::message::{
    CHUNK_BYTES, Fault, FaultKind, FilePiece, FileRead, RunEnded, RunNote, RunOutcome, RunReady, RunSnapshot,
    Written, answer, notification,
};
use crate::outbox::Outbox;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use job::{Claimed, Failed, Handle, Hold, Late, Outcome};
use port::interface::InterfaceError;
use serde_json::Value;
use sha2::{Digest, Sha256};
use snapshot::Snapshot;
use spec::Job;
use spec::reach::{Reach, each_text};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Files of a run that are told.
const MOST_FILES: usize = 10_000;
/// A run that is ready waits so long to be told when to begin.
const HELD: Duration = Duration::from_secs(120);

/// A file of the job, where it is here, and how the job names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub real: String,
    pub named: String,
    pub written: bool,
}

#[derive(Debug, Default)]
struct End {
    /// Requests that wait for it.
    waiting: Vec<Value>,
    answer: Option<Result<Value, Fault>>,
    /// The interfaces are held until it is over.
    claims: Vec<Arc<Claimed>>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub number: u64,
    pub name: String,
    pub job: Job,
    /// The largest MTU of its interfaces; in a lab rates have no limit.
    pub mtu: Option<u32>,
    handle: Handle,
    hold: Option<Arc<Hold>>,
    folder: PathBuf,
    names: Vec<Named>,
    aborted: AtomicBool,
    end: Mutex<End>,
}

impl Run {
    pub fn new(
        (number, name): (u64, String),
        (job, mtu): (Job, Option<u32>),
        (handle, hold): (Handle, Option<Arc<Hold>>),
        (folder, names): (PathBuf, Vec<Named>),
        claims: Vec<Arc<Claimed>>,
    ) -> Run {
        let end = Mutex::new(End { claims, ..End::default() });
        Run { number, name, job, mtu, handle, hold, folder, names, aborted: AtomicBool::new(false), end }
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where it waits for `job.go`.
    pub fn hold(&self) -> Option<&Hold> {
        self.hold.as_deref()
    }

    pub fn is_over(&self) -> bool {
        self.end().answer.is_some()
    }

    pub fn must_go_on(&self) -> Result<(), Fault> {
        if !self.is_over() {
            return Ok(());
        }
        Err(Fault::new(FaultKind::Engine, format!("{} is over", self.name)))
    }

    pub fn must_be_over(&self) -> Result<(), Fault> {
        if self.is_over() {
            return Ok(());
        }
        let fault = Fault::new(FaultKind::Engine, format!("{} is not over", self.name));
        Err(fault.remedy("stop it, or wait for it"))
    }

    /// What came of it, in a word or a sentence, once it is over.
    pub fn outcome(&self) -> Option<String> {
        let verdict = |told: &Value| {
            let verdict = told.pointer("/report/result/verdict")?;
            verdict.get("outcome").and_then(Value::as_str).map(str::to_owned)
        };
        self.end().answer.as_ref().map(|answer| match answer {
            Ok(told) => verdict(told).unwrap_or_else(|| "over".to_owned()),
            Err(fault) => fault.message.clone(),
        })
    }

    /// Ends it without a report.
    pub fn abort(&self) {
        self.aborted.store(true, Relaxed);
        self.handle.stop();
    }

    /// The answer to `job.wait`, or `None`: the request waits.
    pub fn wait(&self, id: Value) -> Option<Result<Value, Fault>> {
        let mut end = self.end();
        if end.answer.is_none() {
            end.waiting.push(id);
        }
        end.answer.clone()
    }

    /// Tells the client how it goes, until it is over, and then what came of it. How many waited for that.
    pub fn follow(&self, outbox: &Outbox, every: Option<Duration>, ended: &AtomicBool) -> usize {
        self.tell(outbox, every, ended);
        let outcome = self.handle.wait();
        let (how, told) = self.told(outcome);
        outbox.last_snapshot(self.number);
        let claims = std::mem::take(&mut self.end().claims);
        drop(claims);
        // Who hears that it is over finds it so, and its interfaces free.
        let mut end = self.end();
        outbox.push(notification("run.ended", &RunEnded { run: &self.name, outcome: how }));
        let waiting = std::mem::take(&mut end.waiting);
        for id in &waiting {
            outbox.push(answer(id, &told));
        }
        end.answer = Some(told);
        waiting.len()
    }

    fn tell(&self, outbox: &Outbox, every: Option<Duration>, ended: &AtomicBool) {
        const LOOK: Duration = Duration::from_millis(100);
        let board = self.handle.board();
        let (mut next, mut lost, mut sequence) = (0, 0, 0);
        let mut due = every.map(|every| Instant::now() + every);
        let mut latest: Option<Arc<Snapshot>> = None;
        let mut held = self.hold();
        let mut ready_since: Option<Instant> = None;
        loop {
            if held.is_some_and(Hold::is_ready) {
                held = None;
                ready_since = Some(Instant::now());
                outbox.push(notification("run.ready", &RunReady { run: &self.name }));
            }
            self.must_be_told(&mut ready_since);
            let until = due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
            let over = board.await_end(until, next);
            // Where the client does not read, the board keeps what it has room for.
            if outbox.has_room() || over {
                let before = next;
                let notes = board.notes(&mut next);
                lost += (next - before).saturating_sub(notes.len() as u64);
                for mut note in notes {
                    while !outbox.await_room(LOOK) && !ended.load(Relaxed) {}
                    note.text = self.in_the_jobs_words(&note.text);
                    note.remedy = note.remedy.map(|remedy| self.in_the_jobs_words(&remedy));
                    let note = RunNote { run: &self.name, note: &note, lost: std::mem::take(&mut lost) };
                    outbox.push(notification("run.note", &note));
                }
            } else if !over {
                outbox.await_room(until);
            }
            if due.is_some_and(|due| Instant::now() >= due || over) {
                let newest = board.latest();
                let is_news = match (&newest, &latest) {
                    (Some(newest), Some(latest)) => !Arc::ptr_eq(newest, latest),
                    (newest, _) => newest.is_some(),
                };
                if let (true, Some(snapshot)) = (is_news, &newest) {
                    self.send_snapshot(outbox, snapshot, sequence);
                    latest = newest;
                }
                sequence += u64::from(is_news);
                due = every.map(|every| Instant::now() + every);
            }
            if over {
                return;
            }
        }
    }

    /// Who holds an interface and is never told to begin gives it back.
    fn must_be_told(&self, ready_since: &mut Option<Instant>) {
        if self.hold().is_some_and(|hold| hold.at().is_some()) {
            *ready_since = None;
        } else if ready_since.is_some_and(|since| since.elapsed() > HELD) {
            self.abort();
        }
    }

    fn send_snapshot(&self, outbox: &Outbox, snapshot: &Snapshot, sequence: u64) {
        let mut value = serde_json::from_str(&snapshot::line(snapshot)).unwrap_or_default();
        self.name_files(&mut value);
        let told = RunSnapshot { run: &self.name, sequence, snapshot: value };
        outbox.snapshot(self.number, notification("run.snapshot", &told));
    }

    /// What is answered to who waited.
    fn told(&self, outcome: Outcome) -> (RunOutcome, Result<Value, Fault>) {
        if self.aborted.load(Relaxed) {
            let _ = std::fs::remove_dir_all(&self.folder);
            let fault = Fault::new(FaultKind::Aborted, format!("{} was aborted", self.name));
            return (RunOutcome::Aborted, Err(fault));
        }
        match outcome {
            Ok(report) => {
                let mut value = serde_json::to_value(&*report).unwrap_or_default();
                let done = value["result"]["verdict"]["outcome"] == "done";
                self.name_files(&mut value);
                let how = if done { RunOutcome::Done } else { RunOutcome::Short };
                (how, Ok(serde_json::json!({ "report": value })))
            }
            Err(failed) => (RunOutcome::Failed, Err(self.fault(&failed))),
        }
    }

    fn fault(&self, failed: &Failed) -> Fault {
        let said = self.in_the_jobs_words(&failed.to_string());
        if let Some(found) = failed.find::<spec::Contradiction>() {
            return Fault::of_setting(FaultKind::Usage, &found.member, self.in_the_jobs_words(&found.what));
        }
        if let Some(found) = failed.find::<traffic::expr::ExprError>() {
            return Fault::of_setting(FaultKind::Usage, expression(&self.job, &found.to_string()), said);
        }
        if let Some(found) = failed.find::<scenario::ScenarioError>() {
            return Fault::of_setting(FaultKind::Usage, expression(&self.job, &found.to_string()), said);
        }
        if let Some(InterfaceError::Protected { name, .. } | InterfaceError::Needed { name, .. }) =
            failed.find()
        {
            return match self.setting_of(name) {
                Some(setting) => Fault::of_setting(FaultKind::Refused, &setting, said),
                None => Fault::new(FaultKind::Refused, said),
            };
        }
        if failed.find::<Late>().is_some() {
            return Fault::new(FaultKind::Late, said).remedy("give a later `start_at`");
        }
        if failed.is_denied() {
            return Fault::new(FaultKind::Permission, said).remedy("run the agent as root, by `sudo -n`");
        }
        Fault::new(FaultKind::Engine, said)
    }

    /// Which setting of the job is this interface.
    fn setting_of(&self, interface: &str) -> Option<String> {
        let mut found = None;
        each_text(&mut self.job.to_value().ok()?, &mut |setting, reach, text| {
            if reach == Reach::Interface && text == interface && !setting.contains("yes_disrupt") {
                found.get_or_insert_with(|| setting.to_owned());
            }
        });
        found
    }

    /// Paths as the job has them.
    fn in_the_jobs_words(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, file| text.replace(&file.real, &file.named))
    }

    fn name_files(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.names.iter().any(|file| text.contains(&file.real)) => {
                *text = self.in_the_jobs_words(text);
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.name_files(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.name_files(value)),
            _ => {}
        }
    }

    /// What it wrote: each with its place here.
    fn written(&self) -> Result<Vec<(String, PathBuf)>, Fault> {
        self.must_be_over()?;
        let mut files = Vec::new();
        for file in self.names.iter().filter(|file| file.written) {
            let (Some(folder), Some(own)) =
                (Path::new(&file.real).parent(), Path::new(&file.real).file_name())
            else {
                continue;
            };
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            for entry in entries.flatten() {
                if files.len() == MOST_FILES {
                    let what = format!("{} wrote more than {MOST_FILES} files", self.name);
                    return Err(Fault::new(FaultKind::Limit, what));
                }
                if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                    continue;
                }
                // Of a file that begins anew each hour the names are others.
                let name = match entry.file_name() {
                    name if name == own => file.named.clone(),
                    name => Path::new(&file.named).with_file_name(name).to_string_lossy().into_owned(),
                };
                files.push((name, entry.path()));
            }
        }
        files.sort();
        Ok(files)
    }

    /// Its files, with their lengths and digests.
    pub fn files(&self) -> Result<Vec<Written>, Fault> {
        let read = |path: &Path| -> io::Result<(u64, String)> {
            let (mut file, mut digest) = (File::open(path)?, Sha256::new());
            let bytes = io::copy(&mut file, &mut digest)?;
            Ok((bytes, wire::hex::encode(&digest.finalize())))
        };
        let of = |(name, path): (String, PathBuf)| {
            let (bytes, sha256) = read(&path).map_err(|error| unreadable(&name, &error))?;
            Ok(Written { name, bytes, sha256 })
        };
        self.written()?.into_iter().map(of).collect()
    }

    /// A piece of one of them.
    pub fn read(&self, asked: &FileRead) -> Result<FilePiece, Fault> {
        let files = self.written()?;
        let Some((name, path)) = files.into_iter().find(|(name, _)| *name == asked.name) else {
            let what = format!("{} wrote no file `{}`", self.name, report::units::printable(&asked.name));
            return Err(Fault::new(FaultKind::Unknown, what));
        };
        let read = || -> io::Result<(Vec<u8>, u64)> {
            let mut file = File::open(&path)?;
            let whole = file.metadata()?.len();
            file.seek(SeekFrom::Start(asked.offset))?;
            let mut piece = Vec::new();
            file.take(asked.length.min(CHUNK_BYTES as u64)).read_to_end(&mut piece)?;
            Ok((piece, whole))
        };
        let (piece, whole) = read().map_err(|error| unreadable(&name, &error))?;
        let offset = asked.offset.saturating_add(piece.len() as u64);
        Ok(FilePiece { base64: STANDARD.encode(piece), offset, end: offset >= whole })
    }

    /// Its files go.
    pub fn forget(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn unreadable(name: &str, error: &io::Error) -> Fault {
    Fault::new(FaultKind::Engine, format!("{name} cannot be read: {error}"))
}

/// The setting that an error of what is sent is about, where a bench has two. An error of an expression shows it, or the part of it that has
/// room, in a line of its own; one of a scenario has the name of its file.
fn expression(job: &Job, error: &str) -> &'static str {
    let bench = match job {
        Job::Trial(trial) => &trial.bench,
        Job::Search(search) => &search.bench,
        _ => return "what",
    };
    let [what, back] = [&bench.what, &bench.back].map(|what| what.as_deref().unwrap_or_default());
    let shown = error.lines().nth(1).unwrap_or_default().trim();
    let shown = shown.trim_start_matches("...").trim_end_matches("...");
    let is_of = |text: &str| {
        let shows = !shown.is_empty() && text.contains(shown);
        !text.is_empty() && (shows || error.contains(text))
    };
    // What goes there is looked at first.
    if back == shown && what != shown || is_of(back) && !is_of(what) { "bench.back" } else { "bench.what" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_what_is_sent_back_names_that() {
        let job = |what: &str, back: &str| {
            let written = serde_json::json!({ "schema": spec::SCHEMA, "kind": "trial", "rate": "1kpps",
                "bench": { "lab": {}, "both_ways": true, "what": what, "back": back } });
            spec::File::of(written).expect("a job").jobs.remove(0)
        };
        let shown = |text: &str| format!("no layer is called `upd`\n  {text}\n       ^^^");
        assert_eq!(expression(&job("ipv4/udp", "ipv4/upd"), &shown("ipv4/upd")), "bench.back");
        assert_eq!(expression(&job("ipv4/upd", "ipv4/udp"), &shown("ipv4/upd")), "bench.what");
        assert_eq!(
            expression(&job("ipv4/upd", "ipv4/upd(sport=1)"), &shown("ipv4/upd(sport=1)")),
            "bench.back"
        );
        assert_eq!(expression(&job("ipv4/upd", "ipv4/upd"), &shown("ipv4/upd")), "bench.what");
    }
}
