//! Who asked for what: a line of JSON for each client, each job that was started or refused, and each end, behind those that the file has.

use crate::message::Client;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Refusals of one client that are written; more of them are counted. A client must not fill the disk.
const REFUSALS: u64 = 1000;
/// And lines of all kinds, with which it ends.
const LINES: u64 = 100_000;
/// Characters of a text of the client's.
const TEXT: usize = 300;

/// The file, of all clients of this process.
#[derive(Debug, Clone)]
pub struct Log(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    file: File,
    refused: u64,
    lines: u64,
    /// A line could not be written, and why.
    broken: Option<String>,
}

impl Log {
    /// Opens the file, to write to its end. A new one only its owner may read.
    ///
    /// # Errors
    /// It cannot be written, or others than its owner may write it.
    pub fn open(path: &Path) -> std::io::Result<Log> {
        // A FIFO that nobody reads would hold the agent up.
        if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
            return Err(Error::new(ErrorKind::InvalidInput, "it is a FIFO, and must be a file"));
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let found = file.metadata()?;
        if found.is_file() && found.mode() & 0o022 != 0 {
            let what = "others than its owner may write it: take that from them (chmod go-w)";
            return Err(Error::new(ErrorKind::PermissionDenied, what));
        }
        Ok(Log(Arc::new(Mutex::new(Inside { file, refused: 0, lines: 0, broken: None }))))
    }

    /// A client has greeted. What it says of itself is its word; how it came here is what this host knows.
    pub(crate) fn client(&self, client: &Client) {
        let known = |name: &str| std::env::var(name).ok().map(|value| shown(&value));
        let mut came = json!({ "uid": rustix::process::geteuid().as_raw() });
        for (member, name) in [("ssh_connection", "SSH_CONNECTION"), ("sudo_user", "SUDO_USER")] {
            if let Some(value) = known(name) {
                came[member] = json!(value);
            }
        }
        let said = json!({ "name": shown(&client.name), "version": shown(&client.version), "user": client.user.as_deref().map(shown) });
        self.write("client", json!({ "says": said, "came": came }));
    }

    /// A job has started.
    ///
    /// # Errors
    /// It cannot be written down.
    pub(crate) fn started(&self, run: &str, job: &Value, interfaces: &Value) -> Result<(), String> {
        // What it sends may be long, and with the name of a secret's file it is no secret.
        let told = |member: &str| job.get(member).filter(|value| !value.is_null()).map(short);
        let mut line = json!({ "run": run, "kind": told("kind"), "interfaces": interfaces });
        for member in ["what", "rate", "duration", "count", "host", "server"] {
            if let Some(value) = told(member) {
                line[member] = value;
            }
        }
        self.write("started", line);
        self.lock().broken.clone().map_or(Ok(()), Err)
    }

    /// The rate of a run is another one.
    pub(crate) fn rate(&self, run: &str, percent: u32) {
        self.write("rate", json!({ "run": run, "percent": percent }));
    }

    /// Devices have begun or ended, or a link was set up or down.
    pub(crate) fn devices(&self, event: &str, name: &str, mut of: Value) {
        of["name"] = json!(shown(name));
        self.write(event, of);
    }

    /// A job was refused.
    pub(crate) fn refused(&self, why: &str) {
        let number = {
            let mut inside = self.lock();
            inside.refused = inside.refused.saturating_add(1);
            inside.refused
        };
        if number <= REFUSALS {
            self.write("refused", json!({ "why": shown(why) }));
        }
    }

    /// A run is over.
    pub(crate) fn over(&self, run: &str, outcome: Option<&str>) {
        self.write("over", json!({ "run": run, "outcome": outcome.map(shown) }));
    }

    /// The client has gone.
    pub(crate) fn gone(&self) {
        let refused = self.lock().refused;
        self.write("gone", json!({ "refused": refused }));
    }

    /// Why nothing may be begun: what cannot be written down is not done.
    pub(crate) fn broken(&self) -> Option<String> {
        if self.lock().broken.is_some() {
            // There may be room again.
            self.write("written_again", json!({}));
        }
        self.lock().broken.clone()
    }

    fn write(&self, event: &str, mut line: Value) {
        line["event"] = json!(event);
        line["at"] = json!(report::units::rfc3339(clocks::now(clocks::Clock::Realtime) / 1_000_000_000));
        line["agent"] = json!(std::process::id());
        // One write, so that lines of several agents do not mix.
        let mut inside = self.lock();
        // What was written in part is a line of its own.
        let before = if inside.broken.is_some() { "\n" } else { "" };
        let text = format!("{before}{line}\n");
        inside.lines = inside.lines.saturating_add(1);
        inside.broken = match inside.lines {
            ..=LINES => inside.file.write_all(text.as_bytes()).err().map(|error| error.to_string()),
            _ => Some(format!("it has {LINES} lines of this client already")),
        };
    }

    /// Nothing that panics happens under this lock.
    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shown(text: &str) -> String {
    report::units::printable(text).chars().take(TEXT).collect()
}

fn short(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(shown(text)),
        Value::Number(_) | Value::Bool(_) => value.clone(),
        other => json!(shown(&other.to_string())),
    }
}
