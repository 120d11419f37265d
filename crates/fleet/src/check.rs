//! Looks at agents side by side: which version each is, what its host can do, how far its clock is ahead. Nothing is sent over a network
//! but what the commands themselves send that reach them.

use crate::client::{Client, Patience};
use crate::lost::{Lost, LostKind};
use crate::offset::Offset;
use crate::reach::Reach;
use agent::{Host, May};
use port::doctor::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layout's name and version.
pub const SCHEMA: &str = "netdyno.agents/1";

/// Where nobody says which interfaces are of interest, so many of those that are granted are looked at closely.
const LOOKED_AT: usize = 8;
/// Of an agent's thread. Lines are on the heap; what is nested as deep as may be (127 levels) is read by as many calls within each other.
pub(crate) const STACK_BYTES: usize = 2 << 20;

/// What was found out about some agents.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked {
    /// Name and major version of this layout: `netdyno.agents/1`.
    pub schema: &'static str,
    /// Each agent, in the order of the names.
    pub agents: Vec<Entry>,
}

/// What was found out about one agent. What is not known is left out.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Entry {
    /// What it is called.
    pub name: String,
    /// Its tags in the inventory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tags: Vec<String>,
    /// It answered all that it was asked.
    pub ready: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Its version of netdyno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What its host is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// What it grants to jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may: Option<May>,
    /// What its host knows of its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<HostClock>,
    /// How far its clock (CLOCK_TAI) is ahead of that of the host where this was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
    /// Its interfaces: those that are of interest, or that it grants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub interfaces: Vec<Interface>,
    /// What `netdyno doctor` says of its host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub findings: Vec<Finding>,
}

/// Why an agent is not ready.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Failure {
    /// For programs.
    pub kind: LostKind,
    /// In one sentence.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl From<&Lost> for Failure {
    fn from(lost: &Lost) -> Failure {
        Failure { kind: lost.kind(), message: lost.to_string(), remedy: lost.remedy() }
    }
}

/// What a host knows of its own clock.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HostClock {
    /// TAI less UTC, in seconds, as the kernel knows it; 0: nobody has set it, and CLOCK_TAI shows UTC.
    pub tai_minus_utc_s: i64,
    /// What the kernel counts time by (`tsc`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// A daemon keeps it (adjtimex(2)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronised: Option<bool>,
    /// The most by which it may be off UTC, as that daemon says, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_error_ns: Option<u64>,
}

/// An interface of an agent's host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Interface {
    /// Its name there.
    #[serde(flatten)]
    pub told: InterfaceTold,
    /// What `netdyno doctor` says of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub findings: Vec<Finding>,
}

/// What an agent says of an interface.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceTold {
    /// Its name there.
    pub name: String,
    /// It was set up.
    pub up: bool,
    /// Its MTU, in bytes.
    pub mtu: u32,
    /// Its Ethernet address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Its driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What kind of virtual device it is (`veth`), if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bits_per_second: Option<u64>,
    /// Jobs may use it.
    pub granted: bool,
}

/// One thing that `netdyno doctor` looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is about: `kernel`, `interface`.
    pub area: String,
    /// In a word or two.
    pub topic: String,
    /// Whether it is in order: `good`: as it should be; `note`: worth knowing, and may matter; `bad`: costs rate or precision, or prevents
    /// something; `unknown`: could not be seen.
    #[schemars(schema_with = "states")]
    pub state: State,
    /// What is there.
    pub found: String,
    /// What that means for the rate to expect.
    pub means: String,
    /// The command that changes it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

#[cfg(not(feature = "without-schemas"))]
fn states(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": State::ALL })
}

#[derive(Deserialize)]
pub(crate) struct HostTold {
    clock: HostClock,
    pub interfaces: Vec<InterfaceTold>,
    /// Those that were asked for, in their order.
    pub named: Vec<InterfaceTold>,
    diagnosis: Option<Diagnosis>,
    #[serde(default)]
    diagnoses: Vec<Diagnosis>,
}

#[derive(Deserialize)]
struct Diagnosis {
    findings: Vec<Finding>,
}

impl Checked {
    /// Agents that are ready.
    pub fn ready(&self) -> usize {
        self.agents.iter().filter(|agent| agent.ready).count()
    }

    /// The exit status: 0 all are ready, 1 some are, 2 none is.
    pub fn exit_status(&self) -> u8 {
        match self.ready() {
            ready if ready == self.agents.len() => 0,
            0 => 2,
            _ => 1,
        }
    }
}

/// Looks at all of them at once; `diagnosis`: with what `netdyno doctor` finds. Each has its own time, and none waits for another.
pub fn check(agents: &[Reach], diagnosis: bool, patience: &Patience) -> Checked {
    let look = |reach: &Reach| {
        let name = reach.name.to_string();
        let mut entry = Entry { name, tags: reach.tags.clone(), ..Entry::default() };
        match look(reach, (diagnosis, patience), &mut entry) {
            Ok(()) => entry.ready = true,
            Err(lost) => entry.error = Some(Failure::from(&lost)),
        }
        entry
    };
    let agents = std::thread::scope(|scope| {
        let started: Vec<_> = agents
            .iter()
            .map(|reach| {
                let thread = std::thread::Builder::new().name("agent".to_owned()).stack_size(STACK_BYTES);
                (reach, thread.spawn_scoped(scope, move || look(reach)))
            })
            .collect();
        let joined = started.into_iter().map(|(reach, thread)| {
            let entry = thread.map(|thread| thread.join().ok());
            let lost = match entry {
                Ok(Some(entry)) => return entry,
                Ok(None) => std::io::Error::other("its thread panicked: this is a defect of netdyno"),
                Err(error) => error,
            };
            let error = Some(Failure::from(&Lost::NotStarted(lost)));
            Entry { name: reach.name.to_string(), error, ..Entry::default() }
        });
        joined.collect()
    });
    Checked { schema: SCHEMA, agents }
}

fn look(reach: &Reach, (diagnosis, patience): (bool, &Patience), entry: &mut Entry) -> Result<(), Lost> {
    let (mut client, welcome) = Client::reach(reach, patience.clone())?;
    entry.version = Some(welcome.version.into_owned());
    entry.host = Some(welcome.host);
    entry.may = Some(welcome.may);
    let mut told: HostTold = client.host(&reach.interfaces, diagnosis)?;
    if !reach.interfaces.is_empty() {
        if !told.named.iter().map(|told| &told.name).eq(&reach.interfaces) {
            return Err(Lost::Nonsense { what: "the answer to `host` tells of other interfaces".to_owned() });
        }
        told.interfaces = std::mem::take(&mut told.named);
    }
    told.interfaces.retain(|told| !reach.interfaces.is_empty() || told.granted);
    if diagnosis && reach.interfaces.is_empty() && !told.interfaces.is_empty() {
        let granted: Vec<String> =
            told.interfaces.iter().take(LOOKED_AT).map(|interface| interface.name.clone()).collect();
        told.diagnoses = client.host::<HostTold>(&granted, true)?.diagnoses;
    }
    // They are in the order of the names that were asked for.
    let mut diagnoses = told.diagnoses.into_iter();
    entry.clock = Some(told.clock);
    entry.interfaces = told.interfaces.into_iter().map(|told| of_interface(told, diagnoses.next())).collect();
    entry.findings = told.diagnosis.map(|diagnosis| diagnosis.findings).unwrap_or_default();
    entry.offset = Some(client.compared()?);
    Ok(())
}

/// An interface with its findings; those of the whole host stand there already.
fn of_interface(told: InterfaceTold, diagnosis: Option<Diagnosis>) -> Interface {
    let mut findings = diagnosis.map(|diagnosis| diagnosis.findings).unwrap_or_default();
    findings.retain(|finding| finding.area == "interface");
    Interface { told, findings }
}
