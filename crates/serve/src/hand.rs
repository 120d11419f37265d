//! The server's own end of netdyno.agent/1: requests and their answers, and what runs say, which goes to [`Runs`].

use crate::lock;
use crate::runs::{Run, Runs};
use agent::{Fault, FaultData, FaultKind, PROTOCOL};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

/// Requests that are not written yet.
const WAITING: usize = 64;
/// Bytes of a file in one request: as base64 they fit into a line.
const CHUNK: usize = 512 << 10;
/// Bytes of a request to the agent.
const LINE: usize = 1 << 20;
/// Runs are kept until there are so many; then the oldest that is over goes. (An agent keeps 64.)
const KEPT: usize = 48;
/// What was refused for want of room is asked for again after this.
const AGAIN: Duration = Duration::from_millis(200);
/// Snapshots of ordinary runs: ten a second.
pub(crate) const EVERY_NS: u64 = 100_000_000;

/// What an agent is asked by.
#[derive(Debug, Clone)]
pub(crate) struct Hand(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    to: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next: AtomicU64,
    gone: AtomicBool,
    runs: Runs,
    welcome: Mutex<Value>,
    /// One file at a time.
    sending: tokio::sync::Mutex<()>,
}

/// A request without an answer.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Value, Fault>>,
    /// It starts this job, which is kept or not: the run is there before anything that it says is read.
    starts: Option<(Value, bool)>,
}

/// Why there is no answer.
pub(crate) fn fault(kind: FaultKind, message: impl Into<String>) -> Fault {
    let code = match kind {
        FaultKind::Usage => -32_602,
        FaultKind::Engine => -32_004,
        _ => -32_603,
    };
    Fault { code, message: message.into(), data: FaultData { kind, setting: None, remedy: None } }
}

impl Hand {
    /// Greets the agent at the other end.
    pub async fn begin(stream: UnixStream) -> std::io::Result<Hand> {
        let (from, to) = stream.into_split();
        let (sender, receiver) = mpsc::channel(WAITING);
        let hand = Hand(Arc::new(Inside {
            to: sender,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            gone: AtomicBool::new(false),
            runs: Runs::default(),
            welcome: Mutex::default(),
            sending: tokio::sync::Mutex::default(),
        }));
        tokio::spawn(write(receiver, to));
        tokio::spawn(hand.clone().read(from));
        let client = json!({"name": "netdyno serve", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"client": client, "protocol": [PROTOCOL]});
        let welcome = hand.call("hello", hello).await.map_err(std::io::Error::other)?;
        *lock(&hand.0.welcome) = welcome;
        Ok(hand)
    }

    /// What the agent said of itself.
    pub fn welcome(&self) -> Value {
        lock(&self.0.welcome).clone()
    }

    /// Does it still answer?
    pub fn is_there(&self) -> bool {
        !self.0.gone.load(Relaxed)
    }

    pub fn runs(&self) -> &Runs {
        &self.0.runs
    }

    /// Asks, and waits for the answer.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, Fault> {
        self.ask(method, params, None).await
    }

    async fn ask(&self, method: &str, params: Value, starts: Option<(Value, bool)>) -> Result<Value, Fault> {
        let id = self.0.next.fetch_add(1, Relaxed);
        let mut line =
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().into_bytes();
        line.push(b'\n');
        if line.len() > LINE {
            let what = format!(
                "{method}: it comes to {} bytes, and at most {LINE} are taken: send what is long as a content",
                line.len()
            );
            return Err(fault(FaultKind::Usage, what));
        }
        // The agent says of what it cannot read only that it could not.
        if serde_json::from_slice::<Value>(&line).is_err() {
            return Err(fault(FaultKind::Usage, format!("{method}: it is nested deeper than is read")));
        }
        let (answer, answered) = oneshot::channel();
        lock(&self.0.waiting).insert(id, Waiting { answer, starts });
        let gone = || fault(FaultKind::Internal, "the part of the server that carries out jobs has ended");
        if !self.is_there() || self.0.to.send(line).await.is_err() {
            lock(&self.0.waiting).remove(&id);
            return Err(gone());
        }
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn read(self, from: OwnedReadHalf) {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            // Its lines are our own: a report is one, however long it is.
            match lines.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let Ok(said) = serde_json::from_slice::<Value>(&line) else { continue };
            match said.get("id").and_then(Value::as_u64) {
                Some(id) => self.answered(id, said),
                None => self.said(said),
            }
        }
        self.0.gone.store(true, Relaxed);
        lock(&self.0.waiting).clear();
    }

    fn answered(&self, id: u64, mut said: Value) {
        let Some(Waiting { answer, starts }) = lock(&self.0.waiting).remove(&id) else { return };
        let told: Result<Value, Fault> = match said.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(serde_json::from_value(said["error"].take())
                .unwrap_or_else(|error| fault(FaultKind::Internal, error.to_string()))),
        };
        if let (Ok(told), Some((job, kept))) = (&told, starts) {
            let name = told["run"].as_str().unwrap_or_default().to_owned();
            let run = Run::new(name, told["job"].clone(), &job, told["interfaces"].clone(), None);
            self.runs().add(Arc::new(run.kept(kept)));
            self.runs().changed();
        }
        let _ = answer.send(told);
    }

    fn said(&self, mut said: Value) {
        let mut params = said["params"].take();
        let Some(run) = params["run"].as_str().and_then(|name| self.runs().find(name)) else {
            // It was not told yet that the run has begun: that comes first, so it is none of this server's.
            return;
        };
        match said["method"].as_str() {
            Some("run.snapshot") => {
                run.moment(params["sequence"].as_u64().unwrap_or(0), params["snapshot"].take());
            }
            Some("run.note") => {
                if let Some(members) = params.as_object_mut() {
                    members.remove("run");
                }
                run.note(params);
            }
            Some("run.ready") => run.ready(),
            Some("run.ended") => {
                let hand = self.clone();
                tokio::spawn(async move { hand.ended(&run).await });
            }
            _ => {}
        }
        self.runs().changed();
    }

    /// A run is over: its report, or why there is none.
    async fn ended(&self, run: &Arc<Run>) {
        let mut told = self.call("job.wait", json!({"run": run.name})).await;
        // Too many requests wait: the report is there all the same.
        while matches!(&told, Err(fault) if fault.data.kind == FaultKind::Limit) && self.is_there() {
            tokio::time::sleep(AGAIN).await;
            told = self.call("job.wait", json!({"run": run.name})).await;
        }
        run.over(told.map(|mut told| told["report"].take()));
        self.runs().changed();
    }

    /// Starts a job.
    pub async fn start(&self, mut params: Value) -> Result<Arc<Run>, Fault> {
        self.make_room().await;
        if params.get("snapshots_every_ns").is_none() {
            params["snapshots_every_ns"] = EVERY_NS.into();
        }
        // What others are a part of is asked for when they are over, too.
        let starts = (params["job"].clone(), params.get("among").is_some());
        let told = self.ask("job.start", params, Some(starts)).await?;
        let found = told["run"].as_str().and_then(|name| self.runs().find(name));
        found.ok_or_else(|| fault(FaultKind::Internal, "a run without a name"))
    }

    /// Forgets what is over and oldest, where there is too much.
    async fn make_room(&self) {
        while self.runs().len() >= KEPT {
            let Some(run) = self.runs().oldest_over() else { return };
            self.forget(&run).await;
        }
    }

    pub async fn forget(&self, run: &Run) {
        let told = self.call("job.forget", json!({"run": run.name})).await;
        // One that goes on stays where it is seen.
        if told.is_ok() || run.is_over() {
            self.runs().remove(&run.name);
        }
        self.runs().changed();
    }

    /// Sends a file. Its name for messages, and the content that it is now.
    pub async fn content(&self, name: &str, bytes: &[u8]) -> Result<Value, Fault> {
        // Two that send the same at once would each find the other's pieces.
        let _turn = self.0.sending.lock().await;
        let sha256 = wire::hex::encode(&Sha256::digest(bytes));
        let begin = json!({"name": name, "bytes": bytes.len(), "sha256": sha256});
        let begun = self.call("content.begin", begin).await?;
        let content = begun["content"].as_str().unwrap_or_default().to_owned();
        let mut offset = usize::try_from(begun["offset"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            let piece = rest.get(..CHUNK).unwrap_or(rest);
            let chunk = json!({"content": content, "offset": offset, "base64": STANDARD.encode(piece)});
            self.call("content.chunk", chunk).await?;
            offset += piece.len();
        }
        // Of one that was there already as well: whoever sent it may have gone before its end.
        self.call("content.end", json!({"content": content})).await?;
        Ok(json!({"content": content, "name": name, "bytes": bytes.len(), "sha256": sha256}))
    }

    /// All bytes of a file that a run wrote.
    pub async fn file(&self, run: &str, name: &str) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        loop {
            let asked = json!({"run": run, "name": name, "offset": bytes.len(), "length": CHUNK});
            let piece = self.call("file.read", asked).await?;
            let text = piece["base64"].as_str().unwrap_or_default();
            let decoded =
                STANDARD.decode(text).map_err(|error| fault(FaultKind::Internal, error.to_string()))?;
            bytes.extend_from_slice(&decoded);
            if piece["end"].as_bool() != Some(false) || decoded.is_empty() {
                return Ok(bytes);
            }
        }
    }
}

async fn write(mut lines: mpsc::Receiver<Vec<u8>>, mut to: OwnedWriteHalf) {
    while let Some(line) = lines.recv().await {
        if to.write_all(&line).await.is_err() {
            return;
        }
    }
}
