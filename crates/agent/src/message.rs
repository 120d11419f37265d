//! The lines of netdyno.agent/1: requests, answers, notifications and errors, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The protocol's name and version.
pub const PROTOCOL: &str = "netdyno.agent/1";

/// Bytes of a line to the agent, without its newline.
pub const LINE_BYTES: usize = 1 << 20;
/// Bytes of a piece of a file, before base64: a line has room for it.
pub const CHUNK_BYTES: usize = 720_896;
/// Bytes of a request's number, where it is a text.
const ID_BYTES: usize = 128;

/// What went wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The request or the job does not make sense.
    Usage,
    /// There is no such run, content or file.
    Unknown,
    /// The agent does not grant it, another run holds the interface, or this host needs it.
    Refused,
    /// The kernel does not permit it to this user.
    Permission,
    /// The job came to no result, or cannot do this.
    Engine,
    /// A line, a content, or the number of runs is beyond the limits.
    Limit,
    /// The run was aborted.
    Aborted,
    /// `start_at` had passed before all was ready.
    Late,
    /// A defect of netdyno.
    Internal,
}

/// An error, as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// JSON-RPC's number of the error.
    pub code: i32,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The same for programs.
    pub data: FaultData,
}

/// What a program reads of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultData {
    /// What went wrong.
    pub kind: FaultKind,
    /// The setting's path in the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// JSON-RPC 2.0, section 5.1.
const NO_JSON: i32 = -32_700;
const NO_REQUEST: i32 = -32_600;
const NO_METHOD: i32 = -32_601;

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        let code = match kind {
            FaultKind::Usage => -32_602,
            FaultKind::Unknown => -32_001,
            FaultKind::Refused => -32_002,
            FaultKind::Permission => -32_003,
            FaultKind::Engine => -32_004,
            FaultKind::Limit => -32_005,
            FaultKind::Aborted => -32_006,
            FaultKind::Late => -32_007,
            FaultKind::Internal => -32_603,
        };
        Fault { code, message: message.into(), data: FaultData { kind, setting: None, remedy: None } }
    }

    fn coded(self, code: i32) -> Fault {
        Fault { code, ..self }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Usage, message)
    }

    /// Of a setting, which the message begins with.
    pub(crate) fn of_setting(kind: FaultKind, setting: &str, what: impl std::fmt::Display) -> Fault {
        let mut fault = Fault::new(kind, format!("{setting}: {what}"));
        fault.data.setting = Some(setting.to_owned());
        fault
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Fault {
        self.data.remedy = Some(remedy.into());
        self
    }
}

/// A request: its number, and what is asked.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    pub id: Value,
    pub method: String,
    pub params: Value,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong, and the number of the request as far as it is one.
    pub fn read(line: &[u8]) -> Result<Request, (Value, Fault)> {
        let nobody = |fault| (Value::Null, fault);
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| nobody(Fault::usage(format!("the line is no JSON: {error}")).coded(NO_JSON)))?;
        let wrong = |what: &str| Fault::usage(what).coded(NO_REQUEST);
        let Value::Object(mut members) = value else {
            return Err(nobody(wrong("a request is one object a line; lists of requests are not taken")));
        };
        let id = match members.remove("id") {
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Value::Number(number),
            Some(Value::String(text)) if text.len() <= ID_BYTES => Value::String(text),
            Some(_) => {
                return Err(nobody(wrong("`id` must be a whole number, or a text of at most 128 bytes")));
            }
            None => return Err(nobody(wrong("`id` is missing: every request is answered"))),
        };
        let with = |fault| (id.clone(), fault);
        match members.remove("jsonrpc") {
            Some(Value::String(version)) if version == "2.0" => {}
            _ => return Err(with(wrong("`jsonrpc` must be \"2.0\""))),
        }
        let Some(Value::String(method)) = members.remove("method") else {
            return Err(with(wrong("`method` must be a text")));
        };
        let params = members.remove("params").unwrap_or_else(|| Value::Object(Map::new()));
        if let Some(other) = members.keys().next() {
            let what = format!("there is no member `{}`", report::units::printable(other));
            return Err(with(wrong(&what)));
        }
        if !params.is_object() {
            return Err(with(Fault::usage("`params` must be an object, with parameters by their names")));
        }
        Ok(Request { id, method, params })
    }

    /// The parameters of its method.
    pub fn params<'p, P: Deserialize<'p>>(&'p self) -> Result<P, Fault> {
        P::deserialize(&self.params).map_err(|error| Fault::usage(format!("{}: {error}", self.method)))
    }
}

pub(crate) fn no_such_method(method: &str) -> Fault {
    let what = format!("there is no method `{}`", report::units::printable(method));
    Fault::usage(what).coded(NO_METHOD)
}

/// A line with an answer.
pub(crate) fn answer(id: &Value, outcome: &Result<Value, Fault>) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Fault>,
    }
    report::json::line(&Answer {
        jsonrpc: "2.0",
        id,
        result: outcome.as_ref().ok(),
        error: outcome.as_ref().err(),
    })
}

/// How an answer to `clock` ends behind the value of `t3`.
const CLOCK_ENDS: &str = "}}\n";

/// An answer to `clock` up to the value of `t3`: what takes time to write is written before that time is read.
pub(crate) fn clock_begun(id: &Value, t1: i64, t2: u64) -> String {
    let told = serde_json::to_value(ClockTold { t1, t2, t3: 0 })
        .map_err(|error| Fault::new(FaultKind::Internal, error.to_string()));
    let mut line = answer(id, &told);
    line.truncate(line.len().saturating_sub("0".len() + CLOCK_ENDS.len()));
    line
}

/// The same with the time as it is now, ready to be written.
pub(crate) fn clock_answer(mut begun: String) -> String {
    use std::fmt::Write;
    // Writing to a string does not fail.
    let _ = write!(begun, "{}{CLOCK_ENDS}", clocks::now(clocks::Clock::Tai));
    begun
}

/// A line that nobody asked for.
pub(crate) fn notification(method: &'static str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'static str,
        params: &'a P,
    }
    report::json::line(&Notification { jsonrpc: "2.0", method, params })
}

/// Who speaks.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whose it is, for the agent's log: `alice@desk`.
    #[serde(default)]
    pub user: Option<String>,
}

/// Parameters of `hello`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Who speaks.
    pub client: Client,
    /// The versions of the protocol that it knows.
    pub protocol: Vec<String>,
}

/// The answer to `hello`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// The version of the protocol that is taken.
    pub protocol: Cow<'static, str>,
    /// The agent's version.
    pub version: Cow<'static, str>,
    /// Which jobs it reads.
    pub job: Cow<'static, str>,
    /// Which reports it writes.
    pub report: Cow<'static, str>,
    /// Which snapshots it writes.
    pub snapshot: Cow<'static, str>,
    /// What the host is.
    pub host: Host,
    /// What jobs may do.
    pub may: May,
    /// How much of all there may be.
    pub limits: Limits,
}

/// What the host is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its kernel's release.
    pub kernel: String,
    /// Its processors' architecture.
    pub architecture: Cow<'static, str>,
    /// Processors that the agent may use.
    pub cores: usize,
    /// Another one after each boot.
    pub boot_id: String,
}

/// What the agent grants to jobs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct May {
    /// Patterns of interfaces.
    pub interfaces: Vec<String>,
    /// The highest rate.
    pub max_rate: Option<String>,
    /// Folders whose files may be read by their paths.
    pub folders: Vec<String>,
    /// Interfaces that may be used although they carry the default route or a login.
    pub yes_disrupt: Vec<String>,
    /// Commands that may be run.
    pub commands: Vec<String>,
    /// Files with secrets that may be read by their paths.
    pub read: Vec<String>,
    /// Patterns of addresses that may be connected or sent to.
    pub addresses: Vec<String>,
    /// Patterns of addresses at which peers may be waited for.
    pub listen: Vec<String>,
    /// Public addresses that clients' data may be copied to.
    pub public_targets: Vec<String>,
    /// Prefixes that may become the host's own.
    pub source_prefixes: Vec<String>,
    /// Kinds that jobs may be of; none: all but those that have to be named.
    #[serde(default)]
    pub kinds: Vec<String>,
}

/// How much of all there may be.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Bytes of a line to the agent.
    pub line_bytes: usize,
    /// Bytes of a piece of a file, before base64.
    pub chunk_bytes: usize,
    /// Bytes of all files: contents, and what runs write.
    pub contents_bytes: u64,
    /// Contents that are kept.
    pub contents: usize,
    /// Runs at once.
    pub running: usize,
    /// Runs that are kept, those that are over among them.
    pub runs: usize,
    /// Requests that wait for their answers.
    pub waiting: usize,
}

/// Parameters of `host`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskHost {
    /// Interfaces that are looked at closely.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// With what `netdyno doctor` finds.
    #[serde(default = "yes")]
    pub diagnosis: bool,
    /// With the address that packets from here to this one come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towards: Option<IpAddr>,
}

fn yes() -> bool {
    true
}

/// Parameters of `devices.start`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DevicesStart {
    /// The interface that they are on.
    pub on: String,
    /// One for each address.
    pub devices: Vec<EmulatedDevice>,
}

/// An address of an emulated device.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmulatedDevice {
    /// Its Ethernet address.
    pub mac: String,
    /// Its VLAN tags, the outermost first; at most two.
    #[serde(default)]
    pub vlans: Vec<EmulatedVlan>,
    /// The longest IP packet that it answers.
    #[serde(default = "usual_mtu")]
    pub mtu: u16,
    /// Its IPv4 or IPv6 address.
    pub address: String,
    /// Whose Ethernet address it finds out, of the same family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

fn usual_mtu() -> u16 {
    1500
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmulatedVlan {
    /// Its EtherType: 33024 or 34984.
    pub tpid: u16,
    /// Its number, 1 to 4094.
    pub id: u16,
    /// Its priority, 0 to 7.
    pub priority: u8,
}

/// Parameters of `devices.look` and `devices.stop`, and the answer to `devices.start`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfDevices {
    /// Those of one `devices.start`.
    pub devices: String,
}

/// The answer to `devices.look`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DevicesTold {
    /// Gateways that are asked for.
    pub neighbours: Vec<NeighbourTold>,
    /// Questions sent: ARP requests and neighbour solicitations.
    pub asked: u64,
    /// Those of others that were answered.
    pub answered: u64,
    /// Echo requests that were answered.
    pub pings: u64,
    /// Frames that the interface did not take.
    pub unsent: u64,
    /// Why the devices are there no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What a device knows of its gateway.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeighbourTold {
    /// The device, by its place in `devices`.
    pub device: usize,
    /// The gateway.
    pub address: String,
    /// Its Ethernet address; left out: it has not answered, or does not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// Parameters of `link.set`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSet {
    /// The interface.
    pub on: String,
    /// Up, or down.
    pub up: bool,
}

/// Parameters of `clock`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskClock {
    /// The client's time.
    pub t1: i64,
}

/// The answer to `clock`, in nanoseconds of CLOCK_TAI.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClockTold {
    /// The client's time.
    pub t1: i64,
    /// When the request was read.
    pub t2: u64,
    /// When the answer was about to be written.
    pub t3: u64,
}

/// Parameters of `content.begin`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentBegin {
    /// The file's name, for messages.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of it, in hexadecimal digits.
    pub sha256: String,
}

/// Where a content is gone on with.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContentBegun {
    /// Its number.
    pub content: String,
    /// Bytes of it that are here.
    pub offset: u64,
}

/// Parameters of `content.chunk`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentChunk<'a> {
    /// Of which content.
    pub content: String,
    /// Where in it the piece begins.
    pub offset: u64,
    /// The piece.
    #[serde(borrow)]
    pub base64: &'a str,
}

/// Parameters of `content.end` and `content.forget`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfContent {
    /// Which content.
    pub content: String,
}

/// What the client consents to of that which a job may not decide alone.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Agree {
    /// Interfaces that carry the default route or a login.
    pub yes_disrupt: Vec<String>,
    /// The command that is run.
    pub command: Option<String>,
    /// Files with secrets that are read.
    pub read: Vec<String>,
    /// Addresses that are connected or sent to.
    pub addresses: Vec<String>,
    /// Public addresses that clients' data is copied to.
    pub public_targets: Vec<String>,
    /// Prefixes that become the host's own.
    pub source_prefixes: Vec<String>,
}

/// Parameters of `job.start`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobStart {
    /// The job, of netdyno.job/1.
    pub job: Map<String, Value>,
    /// For paths in the job the content that each is.
    #[serde(default)]
    pub contents: BTreeMap<String, String>,
    /// When its first frame is due, in nanoseconds of CLOCK_TAI.
    pub start_at: Option<u64>,
    /// Time between two snapshots, in nanoseconds; 0: none.
    #[serde(default)]
    pub snapshots_every_ns: u64,
    /// What the client consents to; left out: to all that the job asks for.
    pub agree: Option<Agree>,
    /// What it has to know of jobs at other agents, where together they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among: Option<Among>,
    /// Snapshots have the streams, the cores, the queues and the counters, too, which takes the run up to a hundredth of a core.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closely: bool,
}

/// What a job has to know that is a part of one at several agents.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Among {
    /// Once all is ready, it says so (`run.ready`), and waits for `job.go`.
    pub hold: bool,
    /// How far CLOCK_TAI of the host where its frames are measured is ahead of the agent's, in nanoseconds; they are stamped by that, where the
    /// job's clock is `tai`.
    pub stamps_ahead_ns: i64,
    /// Its frames are measured at another agent: they are signed, and its report says how many of each number were sent.
    pub measured: bool,
    /// Which it is, from 0, and of how many jobs that send: their signed streams have numbers of their own. Where the job has `share`, each
    /// sends a part of the frames.
    pub part: Option<(u32, u32)>,
    /// It is a trial of a device: where frames have times they are sent before all ordinary tasks of the machine from the start, unless the job has
    /// `no_real_time`.
    pub trial: bool,
    /// It shares its interfaces with other runs of this client that say so, too: one measures where another sends, and several send.
    pub beside: bool,
}

/// Parameters of `job.go`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobGo {
    /// Which run.
    pub run: String,
    /// When its first frame is due, in nanoseconds of the agent's CLOCK_TAI.
    pub start_at: u64,
}

/// The answer to `job.start`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobStarted {
    /// The run.
    pub run: String,
    /// The job as it is carried out.
    pub job: Value,
    /// The interfaces that it holds.
    pub interfaces: Vec<Used>,
}

/// An interface of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// The setting that names it.
    pub setting: String,
    /// Its name there.
    pub name: String,
}

/// Parameters of `job.pause`, `job.resume`, `job.stop`, `job.abort`, `job.wait`, `job.files` and `job.forget`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfRun {
    /// Which run.
    pub run: String,
}

/// Parameters of `job.rate`: one of both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRate {
    /// Which run.
    pub run: String,
    /// The new rate, in the unit of the job's own.
    pub rate: Option<String>,
    /// The same in percent of the job's own.
    pub percent: Option<u32>,
}

/// The answer to `job.rate`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RateSet {
    /// The rate in percent of the job's own.
    pub percent: u32,
}

/// A file that a run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Its path, as the job names it.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of it, in hexadecimal digits.
    pub sha256: String,
}

/// Parameters of `file.read`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRead {
    /// Which run.
    pub run: String,
    /// The file, as `job.files` names it.
    pub name: String,
    /// Where to begin.
    pub offset: u64,
    /// How many bytes at most.
    pub length: u64,
}

/// The answer to `file.read`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FilePiece {
    /// The piece.
    pub base64: String,
    /// Where the next one begins.
    pub offset: u64,
    /// There is none.
    pub end: bool,
}

/// A run that is held is ready.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunReady<'a> {
    /// Which run.
    pub run: &'a str,
}

/// How a run stands.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunSnapshot<'a> {
    /// Which run.
    pub run: &'a str,
    /// How many were due before it.
    pub sequence: u64,
    /// How it stands, of netdyno.snapshot/1.
    pub snapshot: Value,
}

/// What a run says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunNote<'a> {
    /// Which run.
    pub run: &'a str,
    /// What it says.
    #[serde(flatten)]
    pub note: &'a report::Note,
    /// Notes before it that are not kept.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// As was asked.
    Done,
    /// Short of what was asked.
    Short,
    /// Without a report.
    Failed,
    /// By `job.abort`.
    Aborted,
}

/// A run is over.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunEnded<'a> {
    /// Which run.
    pub run: &'a str,
    /// How it ended.
    pub outcome: RunOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_clock_is_written_as_any_other() {
        let id = Value::from("}} \"0");
        let line = clock_answer(clock_begun(&id, -5, 7));
        let read: Value = serde_json::from_str(&line).expect("JSON");
        let told: [Option<i64>; 3] = ["t1", "t2", "t3"].map(|name| read["result"][name].as_i64());
        assert!(matches!(told, [Some(-5), Some(7), Some(8..)]), "{line}");
        assert_eq!(line, answer(&id, &Ok(read["result"].clone())));
    }
}
