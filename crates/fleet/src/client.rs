//! One agent, reached by a command: requests, answers, and what it says unasked.
//!
//! ```text
//!   Client -- lines --> standard input of `sh -c COMMAND` ... agent
//!      ^------ lines <-- standard output           standard error --> a thread that keeps its end
//! ```
//!
//! All that comes is from outside: a line has a length, an answer a time, what is kept a number. When the client is dropped, the command's standard
//! input is closed, which is the agent's lease; a command that does not end then is ended with the programs that it started.

use crate::lost::Lost;
use crate::offset::{Exchange, NoOffset, Offset};
use crate::reach::{Name, Reach};
use agent::{AskClock, AskHost, Came, ClockTold, Fault, Input, PROTOCOL, Welcome};
use clocks::Clock;
use port::socket::polled;
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a line of an agent.
pub(crate) const LINE_BYTES: usize = 1 << 20;
/// As values a line takes at most so many times the bytes that it may have.
const MEMORY: usize = 16;
/// Of what a command writes to standard error so many bytes are kept, the last.
const SAID_BYTES: usize = 4096;
/// Exchanges of time stamps, each time that clocks are compared,
const EXCHANGES: usize = 20;
/// or as many as fit into this.
const EXCHANGES_WITHIN: Duration = Duration::from_secs(1);
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// A command whose output was closed has so long to end.
const ENDS: Duration = Duration::from_millis(500);
/// One whose input was closed has so long. An agent without runs takes milliseconds,
const GRACE: Duration = Duration::from_secs(2);
/// and gives those that it has 15 s to end in an orderly way.
const GRACE_OF_RUNS: Duration = Duration::from_secs(17);

/// How long is waited, and until when.
#[derive(Debug, Clone)]
pub struct Patience {
    /// For one answer, and for the command to begin.
    pub answer: Duration,
    /// Set from outside: nothing more is waited for.
    pub stop: Arc<AtomicBool>,
}

impl Patience {
    pub(crate) fn until(&self) -> Instant {
        // A day is as good as for ever.
        Instant::now() + self.answer.min(Duration::from_secs(86_400))
    }
}

/// An agent that answers.
#[derive(Debug)]
pub struct Client {
    name: Name,
    child: Child,
    to: Option<ChildStdin>,
    from: Input<ChildStdout>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Reads that.
    listener: Option<JoinHandle<()>>,
    patience: Patience,
    next: u64,
    /// Requests without an answer. One may come when it is not waited for any more.
    open: BTreeSet<u64>,
    /// Bytes of a line.
    most: usize,
    /// Runs that may go on.
    runs: BTreeSet<String>,
    /// It was not answered in time: what closes politely would wait once more.
    deaf: bool,
    /// The command was waited for: from then on its number may be somebody else's.
    reaped: bool,
}

/// Why it is not known on which interface something is to stand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoInterface {
    /// There is none, or there are several.
    #[error("{0}")]
    Not(String),
    /// The agent is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// A line of an agent: an answer, or what nobody asked for.
#[derive(Deserialize)]
struct Line {
    jsonrpc: String,
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
    result: Option<Value>,
    error: Option<Fault>,
}

/// What a line is.
#[derive(Debug)]
pub(crate) enum Said {
    /// The answer to the request of this number.
    Answer(u64, Result<Value, Lost>),
    /// What nobody asked for.
    Unasked(String, Value),
}

/// Who asks, for the agent's log: `alice@desk`.
fn user() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    match std::env::var("SUDO_USER").or_else(|_| std::env::var("USER")) {
        Ok(user) => format!("{user}@{host}"),
        Err(_) => format!("{}@{host}", rustix::process::getuid().as_raw()),
    }
}

/// Was a clock that showed these two not set in between, which lasted at least and at most so long? What is more than the slew of one that
/// is kept right was a step, forwards or back.
fn is_kept(from: u64, to: u64, least: u64, most: u64) -> bool {
    let is_within = |took: u64| took + least / 1000 + 1 >= least && took <= most + most / 1000 + 1;
    to.checked_sub(from).is_some_and(is_within)
}

/// At least what a line takes as values: an object has room for eleven members from the first one on, so that `{"":0}` takes a hundred times its bytes.
fn memory(line: &[u8]) -> usize {
    let of = |byte: &u8| match byte {
        b'{' => 640,
        b'[' | b',' => 140,
        _ => 1,
    };
    line.iter().map(of).sum()
}

impl Said {
    /// Reads a line. It is from outside.
    fn of(line: &[u8]) -> Result<Said, Lost> {
        let nonsense = || Lost::nonsense(line);
        let read: Line = serde_json::from_slice(line).map_err(|_| nonsense())?;
        if read.jsonrpc != "2.0" {
            return Err(nonsense());
        }
        match (read.id, read.method, read.result, read.error) {
            (None, Some(method), None, None) => Ok(Said::Unasked(method, read.params.unwrap_or_default())),
            // It could not read what was asked.
            (None, None, None, Some(fault)) => Err(Lost::Refused(Box::new(fault))),
            (Some(id), None, result, error) => {
                let id = id.as_u64().ok_or_else(nonsense)?;
                match (result, error) {
                    (Some(result), None) => Ok(Said::Answer(id, Ok(result))),
                    (None, Some(fault)) => Ok(Said::Answer(id, Err(Lost::Refused(Box::new(fault))))),
                    _ => Err(nonsense()),
                }
            }
            _ => Err(nonsense()),
        }
    }
}

impl Client {
    /// Starts the command, and greets who answers.
    ///
    /// # Errors
    /// There is no agent of this version behind it.
    pub fn reach(reach: &Reach, patience: Patience) -> Result<(Client, Welcome), Lost> {
        let mut client = Client::begin(reach, patience)?;
        let welcome = client.greet()?;
        Ok((client, welcome))
    }

    /// Starts the command.
    pub(crate) fn begin(reach: &Reach, patience: Patience) -> Result<Client, Lost> {
        if patience.stop.load(Relaxed) {
            return Err(Lost::Stopped);
        }
        let command = match reach.copies {
            true => crate::copy::command(&reach.command, &patience)?,
            false => reach.command.clone(),
        };
        let mut child = port::outside::program("sh")
            .args(["-c", &command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The terminal's Ctrl-C is for this process, which then ends its agents in order.
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(errors)) = pipes else {
            return Err(std::io::Error::other("it has no pipes").into());
        };
        let said = Arc::default();
        let mut client = Client {
            name: reach.name.clone(),
            child,
            to: Some(to),
            from: Input::new(from, LINE_BYTES),
            said: Arc::clone(&said),
            listener: None,
            patience,
            next: 1,
            open: BTreeSet::new(),
            most: LINE_BYTES,
            runs: BTreeSet::new(),
            deaf: false,
            reaped: false,
        };
        client.listener = Some(listen(errors, said)?);
        if let Some(to) = &client.to {
            // A command that does not read must not hold this up.
            let flags = fcntl_getfl(to).map_err(std::io::Error::from)?;
            fcntl_setfl(to, flags | OFlags::NONBLOCK).map_err(std::io::Error::from)?;
        }
        Ok(client)
    }

    fn greet(&mut self) -> Result<Welcome, Lost> {
        let hello = json!({
            "client": { "name": "netdyno", "version": env!("CARGO_PKG_VERSION"), "user": user() },
            "protocol": [PROTOCOL],
        });
        let welcome: Value = self.call("hello", &hello)?;
        // Of another version the rest may look otherwise.
        let there = welcome.get("version").and_then(Value::as_str).unwrap_or_default();
        let protocol = welcome.get("protocol").and_then(Value::as_str).unwrap_or_default();
        if there != env!("CARGO_PKG_VERSION") || protocol != PROTOCOL {
            let there = match there {
                "" => "without a version".to_owned(),
                there => report::units::printable(there).chars().take(40).collect(),
            };
            let there =
                if protocol == PROTOCOL { there } else { format!("{there}, which speaks another protocol") };
            return Err(Lost::OtherVersion { there, here: env!("CARGO_PKG_VERSION") });
        }
        read("hello", welcome)
    }

    /// What it is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// From now on who ends the client's waiting ends its run in order instead.
    pub(crate) fn is_stopped_in_order(&mut self) {
        self.patience.stop = Arc::default();
    }

    /// From now on each answer is waited for so long.
    pub fn waits(&mut self, answer: Duration) {
        self.patience.answer = answer;
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The agent is gone, silent, or refuses.
    pub fn call<R: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<R, Lost> {
        let (result, _) = self.exchange(method, params)?;
        read(method, result)
    }

    /// What its host is and can do; `diagnosis`: with what `netdyno doctor` finds.
    ///
    /// # Errors
    /// The agent is gone, silent, or does not grant one of the interfaces.
    pub fn host<R: DeserializeOwned>(&mut self, interfaces: &[String], diagnosis: bool) -> Result<R, Lost> {
        self.call("host", &AskHost { interfaces: interfaces.to_vec(), diagnosis, towards: None })
    }

    /// The address that packets from its host to `to` come from.
    ///
    /// # Errors
    /// The agent is gone or silent, or there is no way.
    pub(crate) fn address_towards(&mut self, to: IpAddr) -> Result<IpAddr, Lost> {
        #[derive(Deserialize)]
        struct Told {
            own_address: IpAddr,
        }
        let asked = AskHost { interfaces: Vec::new(), diagnosis: false, towards: Some(to) };
        Ok(self.call::<Told>("host", &asked)?.own_address)
    }

    /// The one interface that its inventory names, or else that it grants.
    ///
    /// # Errors
    /// It has another number of them.
    pub(crate) fn only_interface(&mut self, reach: &Reach, what: &str) -> Result<String, NoInterface> {
        let mut found = match &reach.interfaces[..] {
            [] => self.granted()?,
            named => named.to_vec(),
        };
        match (found.pop(), found.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => Err(NoInterface::Not(format!("it grants no interface, and {what} stands on one"))),
            (Some(_), more) => Err(NoInterface::Not(format!(
                "{} interfaces might have {what}: name one in the inventory (`interfaces`)",
                more + 1
            ))),
        }
    }

    /// The interfaces that it grants to jobs.
    ///
    /// # Errors
    /// The agent is gone or silent.
    pub(crate) fn granted(&mut self) -> Result<Vec<String>, Lost> {
        let told: crate::check::HostTold = self.host(&[], false)?;
        let granted = told.interfaces.into_iter().filter(|interface| interface.granted);
        Ok(granted.map(|interface| interface.name).collect())
    }

    /// How far its clock is ahead of this host's, by as many exchanges as are made whenever clocks are compared.
    ///
    /// # Errors
    /// As of [`Client::offset`].
    pub(crate) fn compared(&mut self) -> Result<Offset, Lost> {
        self.offset(EXCHANGES, EXCHANGES_WITHIN)
    }

    /// How far its clock is ahead of this host's, by so many exchanges, or by as many as fit into `within` once there are a few.
    ///
    /// # Errors
    /// The agent is gone or silent, or its time stamps say nothing.
    pub fn offset(&mut self, exchanges: usize, within: Duration) -> Result<Offset, Lost> {
        const FEW: usize = 4;
        /// A clock that is set again and again has no offset.
        const STEPS: usize = 100;
        let until = Instant::now() + within;
        let mut made = Vec::new();
        let mut stepped = 0;
        while made.len() < exchanges && (made.len() < FEW || Instant::now() < until) {
            match self.exchange_stamps()? {
                Some(exchange) => made.push(exchange),
                None if stepped < STEPS => stepped += 1,
                None => return Err(NoOffset::Stepped.into()),
            }
        }
        Ok(Offset::of(&made)?)
    }

    /// None, if this host's clock was set meanwhile.
    fn exchange_stamps(&mut self) -> Result<Option<Exchange>, Lost> {
        let (before, t1, after) = (clocks::monotonic(), clocks::now(Clock::Tai), clocks::monotonic());
        let asked = i64::try_from(t1).unwrap_or(i64::MAX);
        // To be woken for the answer takes longer than its way.
        self.from.stay_awake();
        let (result, t4) = self.exchange("clock", &AskClock { t1: asked })?;
        let [read_before, read_after] = self.from.read_between();
        let told: ClockTold = read("clock", result)?;
        if told.t1 != asked {
            let what = format!("its `clock` answers another request ({} for {asked})", told.t1);
            return Err(Lost::Nonsense { what });
        }
        let kept = is_kept(t1, t4, read_before.saturating_sub(after), read_after.saturating_sub(before));
        Ok(kept.then_some(Exchange { t1, t2: told.t2, t3: told.t3, t4 }))
    }

    /// The result of a request, and when its line had been read.
    fn exchange(&mut self, method: &'static str, params: &impl Serialize) -> Result<(Value, u64), Lost> {
        let until = self.patience.until();
        let id = self.ask(method, params, until)?;
        loop {
            match self.said(method, until)? {
                (Said::Answer(answered, result), read_at) if answered == id => return Ok((result?, read_at)),
                // What nobody waits for any more is left: an answer that comes late, and what is said of a run.
                (Said::Answer(..) | Said::Unasked(..), _) => {}
            }
        }
    }

    /// Writes a request: its number.
    pub(crate) fn ask(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
        until: Instant,
    ) -> Result<u64, Lost> {
        let id = self.next;
        self.next += 1;
        self.open.insert(id);
        let line =
            report::json::line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.write(line.as_bytes(), method, until)?;
        Ok(id)
    }

    /// What it says next, and when that had been read.
    fn said(&mut self, to: &'static str, until: Instant) -> Result<(Said, u64), Lost> {
        loop {
            if let Some(said) = self.said_within(to, LOOK, until)? {
                return Ok(said);
            }
        }
    }

    /// The same, if it says something within `patience`.
    pub(crate) fn said_within(
        &mut self,
        to: &'static str,
        patience: Duration,
        until: Instant,
    ) -> Result<Option<(Said, u64)>, Lost> {
        let patience = self.left(to, until)?.min(patience);
        let line = match self.from.next(patience) {
            Came::Line(line) => line,
            Came::Nothing => return Ok(None),
            Came::TooLong => {
                return Err(Lost::Nonsense { what: format!("a line of more than {} bytes", self.most) });
            }
            Came::End => return Err(self.ended()),
        };
        let read_at = self.from.read_at();
        if memory(&line) > self.most.saturating_mul(MEMORY) {
            let what =
                "a line of so many values that it takes more memory than an answer may take".to_owned();
            return Err(Lost::Nonsense { what });
        }
        let said = Said::of(&line)?;
        match &said {
            Said::Answer(id, _) if !self.open.remove(id) => {
                Err(Lost::Nonsense { what: format!("an answer to request {id}, which waits for none") })
            }
            _ => Ok(Some((said, read_at))),
        }
    }

    /// Writes a line, as far as the command takes it.
    fn write(&mut self, line: &[u8], to: &'static str, until: Instant) -> Result<(), Lost> {
        let mut rest = line;
        while !rest.is_empty() {
            let Some(stdin) = &self.to else { return Err(self.ended()) };
            match rustix::io::write(stdin, rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let patience = self.left(to, until)?;
                    if let Some(stdin) = &self.to {
                        let _ = polled(stdin, PollFlags::OUT, patience);
                    }
                }
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// From now on a line may have so many bytes.
    pub(crate) fn takes(&mut self, most: usize) {
        self.most = most;
        self.from.takes(most);
    }

    /// This run goes on: what is waited for when it is left.
    pub(crate) fn begins(&mut self, run: &str) {
        self.runs.insert(run.to_owned());
    }

    /// This run is over.
    pub(crate) fn is_over(&mut self, run: &str) {
        self.runs.remove(run);
    }

    /// Bytes that came of a line that is not whole yet.
    pub(crate) fn begun(&self) -> usize {
        self.from.begun()
    }

    /// How long an answer is waited for, and who says that nothing more is.
    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// How long it may be waited now.
    fn left(&mut self, to: &'static str, until: Instant) -> Result<Duration, Lost> {
        if self.patience.stop.load(Relaxed) {
            return Err(Lost::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.deaf = true;
            return Err(Lost::Silent { to, within: self.patience.answer, said: self.said_last() });
        }
        Ok(left.min(LOOK))
    }

    /// The last that the command wrote to standard error.
    fn said_last(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// The command has closed its output: what became of it?
    fn ended(&mut self) -> Lost {
        let how = match self.await_end(ENDS) {
            Some(status) => format!("ended ({status})"),
            None => "closed its output".to_owned(),
        };
        // What it said last may be under way; programs that it left may keep the pipe open.
        let until = Instant::now() + ENDS;
        while self.listener.as_ref().is_some_and(|listener| !listener.is_finished()) && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        Lost::Ended { how, said: self.said_last() }
    }

    fn await_end(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.reaped = true;
                    return Some(status);
                }
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The agent's lease is over.
        drop(self.to.take());
        let grace = if self.runs.is_empty() { GRACE } else { GRACE_OF_RUNS };
        if self.reaped || (!self.deaf && self.await_end(grace).is_some()) {
            return;
        }
        // As long as it was not waited for, its number is nobody else's.
        let group = Pid::from_child(&self.child);
        for signal in [Signal::TERM, Signal::KILL] {
            let _ = kill_process_group(group, signal);
            if self.await_end(ENDS).is_some() {
                return;
            }
        }
    }
}

/// Keeps the end of what a command writes.
pub(crate) fn listen(
    mut errors: impl Read + Send + 'static,
    said: Arc<Mutex<Vec<u8>>>,
) -> std::io::Result<JoinHandle<()>> {
    let listen = move || {
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = errors.read(&mut piece) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.extend_from_slice(piece.get(..count).unwrap_or_default());
            let over = said.len().saturating_sub(SAID_BYTES);
            said.drain(..over);
        }
    };
    std::thread::Builder::new().name("errors".to_owned()).stack_size(64 << 10).spawn(listen)
}

/// The result of a request, as what it must be.
pub(crate) fn read<R: DeserializeOwned>(method: &str, result: Value) -> Result<R, Lost> {
    serde_json::from_value(result).map_err(|error| {
        let said = report::units::printable(&error.to_string());
        Lost::Nonsense {
            what: format!("the answer to `{method}`: {}", said.chars().take(200).collect::<String>()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines as agents write them.
    const LINES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocol":"netdyno.agent/1","version":"0.1.0"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{"t1":5,"t2":1795768413000021310,"t3":1795768413000024020}}"#,
        r#"{"jsonrpc":"2.0","id":20,"error":{"code":-32002,"message":"links[0].on: eth0 is not granted to this agent","data":{"kind":"refused","setting":"links[0].on","remedy":"start the agent with --allow-interface eth0"}}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is no JSON","data":{"kind":"usage"}}}"#,
        r#"{"jsonrpc":"2.0","method":"run.note","params":{"run":"r1","code":"begun","severity":"info","text":"sends through xdp"}}"#,
        r#"{"jsonrpc":"2.0","method":"run.ended","params":{"run":"r1","outcome":"done"}}"#,
    ];

    #[test]
    fn each_of_the_lines_is_understood() {
        let kinds: Vec<String> = LINES
            .iter()
            .map(|line| match Said::of(line.as_bytes()) {
                Ok(Said::Answer(id, Ok(_))) => format!("{id}"),
                Ok(Said::Answer(id, Err(lost))) => format!("{id}: {:?}", lost.kind()),
                Ok(Said::Unasked(method, _)) => method,
                Err(lost) => format!("{:?}", lost.kind()),
            })
            .collect();
        assert_eq!(kinds, ["1", "3", "20: Refused", "Refused", "run.note", "run.ended"]);
    }

    #[test]
    fn a_clock_that_was_set_in_an_exchange_is_noticed_whichever_way() {
        const AT: u64 = 1_795_768_413_000_000_000;
        for (took, kept) in
            [(100_000, true), (100_090, true), (99_910, true), (101_000, false), (60_000, false), (0, false)]
        {
            assert_eq!(is_kept(AT, AT + took, 99_950, 100_050), kept, "{took}");
        }
        assert!(!is_kept(AT, AT - 1, 99_950, 100_050));
    }

    #[test]
    fn a_line_of_nothing_but_values_is_no_answer() {
        let begin = |script: &str| {
            let reach: Reach = format!("a={script}").parse().expect("an agent");
            let patience = Patience { answer: Duration::from_secs(120), stop: Arc::default() };
            Client::begin(&reach, patience).expect("it begins")
        };
        let lines = |count: usize| {
            format!(
                r#"read a; printf '{{"jsonrpc":"2.0","id":1,"result":[0'; yes ',{{"":0}}' | head -n {count} | tr -d '\n'; echo ']}}'; cat >/dev/null"#
            )
        };
        let lost = begin(&lines(100_000)).call::<Value>("x", &json!({})).expect_err("it is too much");
        assert!(lost.to_string().contains("more memory than an answer may take"), "{lost}");
        let few = begin(&lines(1_000)).call::<Vec<Value>>("x", &json!({})).expect("an answer");
        assert_eq!(few.len(), 1_001);
    }

    #[test]
    fn what_is_nested_as_deep_as_may_be_fits_on_the_stack_of_an_agents_thread() {
        let line = |levels: usize| {
            let [open, close] = [r#"{"a":"#, "}"].map(|part| part.repeat(levels));
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{open}0{close}}}"#)
        };
        let look = move || {
            assert!(matches!(Said::of(line(125).as_bytes()), Ok(Said::Answer(1, Ok(_)))));
            for levels in [128, 100_000] {
                assert!(matches!(Said::of(line(levels).as_bytes()), Err(Lost::Nonsense { .. })), "{levels}");
            }
        };
        let thread = std::thread::Builder::new().stack_size(crate::check::STACK_BYTES).spawn(look);
        thread.expect("a thread").join().expect("no panic");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// What a hostile agent says is understood, or is one error that fits into a message.
        #[test]
        fn any_line_of_an_agent_is_understood_or_one_error(
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
            if let Err(lost) | Ok(Said::Answer(_, Err(lost))) = Said::of(&bytes) {
                let said = lost.to_string();
                prop_assert!(!said.is_empty() && said.len() < 1000 && !said.contains(|c: char| c.is_control()), "{said:?}");
                let _ = lost.remedy();
            }
        }
    }
}
