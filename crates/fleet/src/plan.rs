//! Which agent does what of a job whose interfaces are at several: `eth1@lab1` is interface `eth1` of agent `lab1`.
//!
//! ```text
//!   send ... --on eth1@a --on eth1@b --measure eth2@c --measure eth2@c2
//!        a: send on eth1, part 0 of 2 --.        c:  measure on eth2
//!        b: send on eth1, part 1 of 2 --'        c2: measure on eth2
//! ```
//!
//! What leaves and arrives at one agent is one job there, as without agents. Nothing is reached here.

use crate::reach::Reach;
use serde_json::{Map, Value, json};
use spec::Job;
use spec::reach::{Reach as Reaches, each_text};
use std::collections::BTreeMap;

/// Streams that a meter tells apart, where nobody says how many: those of several senders have numbers far apart.
const STREAMS: u32 = 4096;

/// What one agent does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Which agent, by its place among those that were named.
    pub agent: usize,
    pub role: Role,
    /// The job there.
    pub job: Map<String, Value>,
    /// Interfaces there by which frames leave, and where they are measured.
    pub sends_on: Vec<String>,
    pub measures_on: Vec<String>,
    /// Of a sender the interfaces of `measured_at` where its frames are to arrive.
    pub arrives_at: Vec<String>,
}

/// What for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The whole job, at one agent.
    Whole,
    /// It sends: which part it is, and the agent where its frames are measured, if that is another one.
    Sends { number: u32, measured_at: Option<usize> },
    /// It measures what others send, until they have done.
    Measures,
    /// It serves an endpoint test until that is over.
    Serves,
}

impl Role {
    /// It is there for what others do, until they have done.
    pub fn attends(self) -> bool {
        matches!(self, Role::Measures | Role::Serves)
    }
}

/// A job in parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub parts: Vec<Part>,
    /// The senders share the frames.
    pub shared: bool,
}

/// Why a job cannot be carried out by agents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplanned {
    /// None of its interfaces is at an agent.
    #[error(
        "agents are named, and none of the job's interfaces is at one: write IFACE@AGENT, such as {example}"
    )]
    Nowhere {
        /// An interface of the job with an agent that there is, or what it looks like.
        example: String,
    },
    /// One is, and another one is not.
    #[error(
        "`{setting}` {interface}: it is at no agent; write {interface}@{agent} (an interface of this host is at an agent, too: start one here, and name it)"
    )]
    Here {
        /// The setting.
        setting: String,
        /// What it names.
        interface: String,
        /// An agent that there is.
        agent: String,
    },
    /// No agent is called so.
    #[error("`{setting}` {text}: there is no agent `{name}`; there are {known}")]
    Unknown {
        /// The setting.
        setting: String,
        /// What it says.
        text: String,
        /// What no agent is called.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Jobs of this kind have one place.
    #[error(
        "a job of kind `{kind}` is carried out by one agent, and this one has interfaces at {agents}: only `send`, `replay`, `trial` and `search` can send at one and measure at another"
    )]
    Apart {
        /// The kind.
        kind: &'static str,
        /// The agents.
        agents: String,
    },
    /// It is not said where a job without interfaces is.
    #[error("`.at`: the test's server is at {server}; say at which agent it begins, such as `.at` {example}")]
    NotAt {
        /// Where the server is.
        server: String,
        /// An agent that there is.
        example: String,
    },
    /// Hosts that make no mesh of endpoint tests.
    #[error("`.mesh`: {why}")]
    Mesh {
        /// Why not.
        why: String,
    },
    /// Something that takes sender and meter in one place.
    #[error("`{setting}`: {why}")]
    Together {
        /// The setting.
        setting: &'static str,
        /// Why not.
        why: &'static str,
    },
}

/// An interface of a job: its setting, its name there, and the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct At {
    setting: String,
    interface: String,
    agent: usize,
}

/// The agents where the interfaces of a job are, each once.
///
/// # Errors
/// One of them is at none.
pub(crate) fn agents_of(job: &Job, agents: &[Reach]) -> Result<Vec<usize>, Unplanned> {
    let mut value = job.to_value().unwrap_or_default();
    Ok(each_once(&places(&mut value, agents)?))
}

fn each_once(places: &[At]) -> Vec<usize> {
    let mut all: Vec<usize> = places.iter().map(|at| at.agent).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Where an endpoint test says its server.
const SERVERS: [&str; 2] = ["/host", "/endpoint/host"];
/// The port of a server that names none.
pub(crate) const SERVER_PORT: u16 = 12866;

/// A job that is begun at an agent by its name: whatever has no interfaces. Where an endpoint test's server is at an agent, too (`192.0.2.1@lab2`),
/// it is started there. `None`: it is said nowhere where it begins, and its interfaces tell.
fn endpoints(job: &Job, agents: &[Reach], at: Option<&str>) -> Result<Option<Plan>, Unplanned> {
    let mut value = job.to_value().unwrap_or_default();
    let is_test = matches!(job, Job::Endpoint(_) | Job::EndpointSearch(_));
    let host = SERVERS.iter().filter(|_| is_test).find_map(|path| {
        let (address, name) = value.pointer(path)?.as_str()?.rsplit_once('@')?;
        Some((*path, address.to_owned(), name.to_owned()))
    });
    let known = |setting: &str, name: &str, text: &str| {
        let found = agents.iter().position(|agent| agent.name.as_str() == name);
        found.ok_or_else(|| unknown(setting.to_owned(), text, name, agents))
    };
    let server = match &host {
        Some((path, address, name)) => {
            Some((*path, address, known("host", name, &format!("{address}@{name}"))?))
        }
        None => None,
    };
    let at = match (at, &host) {
        (Some(at), _) => known("at", at, at)?,
        (None, Some((_, _, server))) => {
            let other = agents.iter().find(|agent| agent.name.as_str() != server).or(agents.first());
            let example = other.map_or_else(|| "lab1".to_owned(), |agent| agent.name.to_string());
            return Err(Unplanned::NotAt { server: server.clone(), example });
        }
        (None, None) => return Ok(None),
    };
    let mut named = None;
    each_text(&mut value, &mut |setting, reach, text| {
        if reach == Reaches::Interface && !setting.ends_with("bind_dev") {
            named.get_or_insert_with(|| text.clone());
        }
    });
    if named.is_some() {
        return Err(Unplanned::Together {
            setting: ".at",
            why: "the job's interfaces say where it is: leave it out",
        });
    }
    let mut parts = Vec::new();
    if let Some((path, address, agent)) = server {
        if let Some(host) = value.pointer_mut(path) {
            *host = json!(address);
        }
        let mut serves =
            json!({ "schema": spec::SCHEMA, "kind": "endpoint-server", "listen": [listened(address)] });
        if let Some(token) =
            value.pointer(&path.replace("host", "token_file")).filter(|token| !token.is_null())
        {
            serves["token_file"] = token.clone();
        }
        parts.push(alone(agent, Role::Serves, serves));
    }
    parts.push(alone(at, Role::Whole, value));
    Ok(Some(Plan { parts, shared: false }))
}

/// A part that sends and measures nothing by itself.
fn alone(agent: usize, role: Role, job: Value) -> Part {
    let job = match job {
        Value::Object(job) => job,
        _ => Map::new(),
    };
    Part { agent, role, job, sends_on: Vec::new(), measures_on: Vec::new(), arrives_at: Vec::new() }
}

/// Where a server listens that is called so.
pub(crate) fn listened(address: &str) -> String {
    match address.parse::<std::net::IpAddr>() {
        Ok(address) => std::net::SocketAddr::new(address, SERVER_PORT).to_string(),
        Err(_)
            if address.starts_with("unix:")
                || address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) =>
        {
            address.to_owned()
        }
        Err(_) => format!("{address}:{SERVER_PORT}"),
    }
}

/// Puts a job into parts; `at`: where it begins, if it has no interfaces that say it.
///
/// # Errors
/// It cannot be carried out by these agents.
pub(crate) fn plan(job: &Job, agents: &[Reach], at: Option<&str>) -> Result<Plan, Unplanned> {
    if let Some(plan) = endpoints(job, agents, at)? {
        return Ok(plan);
    }
    let mut value = job.to_value().unwrap_or_default();
    let places = places(&mut value, agents)?;
    let all = each_once(&places);
    let Value::Object(whole) = value else { return Err(nowhere("eth1", agents)) };
    if let [agent] = all[..] {
        let role = Role::Whole;
        let of = |ends: &[&str]| -> Vec<String> {
            let names = places.iter().filter(|at| ends.iter().any(|end| at.setting.ends_with(end)));
            names.map(|at| at.interface.clone()).collect()
        };
        let (sends_on, measures_on) = match job {
            Job::Measure(_) => (Vec::new(), of(&["on"])),
            _ => (of(&["on", "between", "device"]), of(&["measure"])),
        };
        return Ok(Plan {
            parts: vec![Part { agent, role, job: whole, sends_on, measures_on, arrives_at: Vec::new() }],
            shared: false,
        });
    }
    let (links, shared) = match job {
        Job::Send(send) => (&send.links, send.share),
        Job::Replay(replay) => (&replay.links, false),
        _ => {
            let kind = job.kind();
            let agents = all.iter().filter_map(|agent| Some(agents.get(*agent)?.name.to_string()));
            return Err(Unplanned::Apart { kind, agents: agents.collect::<Vec<_>>().join(" and ") });
        }
    };
    together(job)?;
    let disrupted: Vec<Disrupted> = places
        .iter()
        .filter(|at| at.setting.starts_with("yes_disrupt"))
        .map(|at| (at.agent, at.interface.clone()))
        .collect();
    let parts = parts(&whole, links, (agents, &disrupted));
    let senders = parts.iter().filter(|part| !part.role.attends()).count();
    if senders > 1 && !matches!(job, Job::Send(_)) {
        return Err(Unplanned::Together { setting: ".on", why: "captures are sent by one agent" });
    }
    let unmeasured = |part: &Part| {
        matches!(part.role, Role::Sends { measured_at: None, .. }) && part.measures_on.is_empty()
    };
    if parts.iter().any(unmeasured) && parts.iter().any(|part| !part.measures_on.is_empty()) {
        let why = "what one of the agents sends is measured nowhere: give each a `.measure`";
        return Err(Unplanned::Together { setting: ".measure", why });
    }
    let captures = whole.get("meter").and_then(|meter| meter.get("capture")).is_some_and(Value::is_object);
    let meters = parts.iter().filter(|part| !part.measures_on.is_empty()).count();
    if captures && meters > 1 {
        let why = "one file takes what arrives at one agent's interface: measure at one";
        return Err(Unplanned::Together { setting: ".capture", why });
    }
    Ok(Plan { parts, shared })
}

fn nowhere(interface: &str, agents: &[Reach]) -> Unplanned {
    let agent = agents.first().map_or("lab1", |agent| agent.name.as_str());
    Unplanned::Nowhere { example: format!("{interface}@{agent}") }
}

/// Where `text` is.
pub(crate) fn place<'t>(text: &'t str, agents: &[Reach]) -> Option<(&'t str, usize)> {
    let (interface, name) = text.rsplit_once('@')?;
    Some((interface, agents.iter().position(|agent| agent.name.as_str() == name)?))
}

/// What may be disrupted, and at which agent.
type Disrupted = (usize, String);

/// All interfaces of the job; in the job they stand as they are called there then.
fn places(job: &mut Value, agents: &[Reach]) -> Result<Vec<At>, Unplanned> {
    let (mut found, mut here) = (Vec::new(), Vec::new());
    each_text(job, &mut |setting, reach, text| {
        if reach != Reaches::Interface {
            return;
        }
        match place(text, agents) {
            Some((interface, agent)) => {
                let interface = interface.to_owned();
                text.clone_from(&interface);
                found.push(At { setting: setting.to_owned(), interface, agent });
            }
            None => here.push((setting.to_owned(), text.clone())),
        }
    });
    let (Some(first), Some((setting, text))) = (found.first(), here.into_iter().next()) else {
        return if found.is_empty() { Err(not_at(job, agents)) } else { Ok(found) };
    };
    let agent = agents.get(first.agent).map(|agent| agent.name.to_string()).unwrap_or_default();
    Err(match text.rsplit_once('@') {
        Some((_, name)) => unknown(setting, &text, name, agents),
        None => Unplanned::Here { setting: dotted(&setting), interface: text, agent },
    })
}

/// None is at an agent: the one that comes closest to it, where there is one.
fn not_at(job: &mut Value, agents: &[Reach]) -> Unplanned {
    let mut closest = None;
    each_text(job, &mut |setting, reach, text| {
        let is_better = closest.is_none() || setting.ends_with(".on");
        if reach == Reaches::Interface && is_better {
            closest = Some((setting.to_owned(), text.clone()));
        }
    });
    match closest {
        Some((setting, text)) => match text.rsplit_once('@') {
            Some((_, name)) => unknown(setting, &text, name, agents),
            None => nowhere(&text, agents),
        },
        None => nowhere("eth1", agents),
    }
}

pub(crate) fn unknown(setting: String, text: &str, name: &str, agents: &[Reach]) -> Unplanned {
    let known: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    Unplanned::Unknown {
        setting: dotted(&setting),
        text: report::units::printable(text),
        name: report::units::printable(name),
        known: known.join(", "),
    }
}

/// Interfaces as they are named where the job was asked for.
pub(crate) fn at_agent(interfaces: &[String], agent: &str) -> Vec<String> {
    interfaces.iter().map(|interface| format!("{interface}@{agent}")).collect()
}

/// As a client knows how to word it: of a list of links the end alone.
fn dotted(setting: &str) -> String {
    format!(".{}", setting.rsplit('.').next().unwrap_or(setting))
}

/// Refuses what takes sender and meter in one place.
fn together(job: &Job) -> Result<(), Unplanned> {
    let refused = |setting, why| Err(Unplanned::Together { setting, why });
    let (meter, mesh, trip, lab) = match job {
        Job::Send(send) => {
            (&send.meter, send.pattern == spec::Pattern::Mesh, send.round_trip, send.lab.is_some())
        }
        Job::Replay(replay) => (&replay.meter, false, replay.round_trip, replay.lab.is_some()),
        _ => return Ok(()),
    };
    let anew = meter
        .capture
        .as_ref()
        .is_some_and(|capture| capture.rotate.is_some() || capture.rotate_size.is_some());
    let from_stdin = match job {
        Job::Send(send) => send.what == "-",
        Job::Replay(replay) => replay.captures.iter().any(|path| path.as_os_str() == "-"),
        _ => false,
    };
    match () {
        () if anew => {
            refused(".capture", "a file that begins anew is not fetched from an agent: capture into one file")
        }
        () if from_stdin => refused(".what", "standard input is not sent to agents: name a file"),
        () if meter.check_content => refused(
            ".meter.check_content",
            "who measures knows what was sent where both are one agent's alone",
        ),
        () if mesh => refused(".pattern", "the ports of a mesh are one agent's"),
        () if trip => refused(
            ".round_trip",
            "what comes back is measured where it left: give that agent's interface alone",
        ),
        () if lab => refused(".lab", "a lab is made where the job runs"),
        () => Ok(()),
    }
}

/// Of a link the interfaces by which frames leave and where they are measured.
type Ends = (Option<String>, Option<String>);

/// The senders, each with the links that it has, and the meters of what is measured elsewhere.
fn parts(
    whole: &Map<String, Value>,
    links: &[spec::Link],
    (agents, disrupted): (&[Reach], &[Disrupted]),
) -> Vec<Part> {
    // What leaves one agent and is measured at one other is one job: its stamps are of that one's clock.
    let mut senders: BTreeMap<(usize, Option<usize>), Vec<Ends>> = BTreeMap::new();
    let mut meters: Vec<(usize, String)> = Vec::new();
    let mut arrives: BTreeMap<(usize, Option<usize>), Vec<String>> = BTreeMap::new();
    let at = |text: &Option<String>| {
        let (interface, agent) = place(text.as_deref()?, agents)?;
        Some((interface.to_owned(), agent))
    };
    for link in links {
        match (at(&link.on), at(&link.measure)) {
            (Some((on, from)), Some((measure, to))) if from == to => {
                senders.entry((from, None)).or_default().push((Some(on), Some(measure)));
            }
            (Some((on, from)), Some(meter)) => {
                senders.entry((from, Some(meter.1))).or_default().push((Some(on), None));
                arrives.entry((from, Some(meter.1))).or_default().push(meter.0.clone());
                let (interface, agent) = meter;
                if !meters.contains(&(agent, interface.clone())) {
                    meters.push((agent, interface));
                }
            }
            (Some((on, from)), None) => senders.entry((from, None)).or_default().push((Some(on), None)),
            (None, Some((interface, agent))) => meters.push((agent, interface)),
            (None, None) => {}
        }
    }
    // Frames of links that have no meter of their own are measured by the meters that there are.
    let spare = meters.first().map(|(agent, _)| *agent);
    let numbered = (0u32..).zip(senders);
    let sends = numbered.map(|(number, ((agent, measured_at), links))| {
        let own = links.iter().any(|(_, measure)| measure.is_some());
        let measured_at = measured_at.or(spare.filter(|_| !own));
        let mut part = sender(whole, (agent, disrupted), (number, measured_at), &links);
        // Whose links name none may arrive at any of them.
        part.arrives_at = arrives.get(&(agent, measured_at)).cloned().unwrap_or_default();
        part
    });
    let sends: Vec<Part> = sends.collect();
    meters.into_iter().map(|(agent, on)| meter(whole, (agent, disrupted), &on)).chain(sends).collect()
}

fn sender(
    whole: &Map<String, Value>,
    (agent, disrupted): (usize, &[Disrupted]),
    (number, measured_at): (u32, Option<usize>),
    links: &[Ends],
) -> Part {
    let mut job = whole.clone();
    let link = |(on, measure): &Ends| {
        let mut link = Map::new();
        link.extend(on.clone().map(|on| ("on".to_owned(), on.into())));
        link.extend(measure.clone().map(|measure| ("measure".to_owned(), measure.into())));
        Value::Object(link)
    };
    job.insert("links".to_owned(), links.iter().map(link).collect());
    if measured_at.is_some() {
        // How frames are measured is said to who measures them.
        job.insert("meter".to_owned(), json!({ "clock": "tai" }));
    }
    let of = |end: fn(&Ends) -> &Option<String>| links.iter().filter_map(|link| end(link).clone()).collect();
    let (sends_on, measures_on) = (of(|link| &link.0), of(|link| &link.1));
    keep_disrupting(&mut job, (agent, disrupted));
    let role = Role::Sends { number, measured_at };
    Part { agent, role, job, sends_on, measures_on, arrives_at: Vec::new() }
}

fn meter(whole: &Map<String, Value>, (agent, disrupted): (usize, &[Disrupted]), on: &str) -> Part {
    let asked = whole.get("meter").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut job = Map::new();
    job.insert("kind".to_owned(), "measure".into());
    job.insert("on".to_owned(), on.into());
    job.insert("clock".to_owned(), "tai".into());
    job.insert("streams".to_owned(), STREAMS.into());
    job.insert("drop".to_owned(), (asked.get("pass") != Some(&Value::Bool(true))).into());
    for name in ["how", "timestamps", "stream_histograms", "capture"] {
        job.extend(asked.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    let measures_on = vec![on.to_owned()];
    keep_disrupting(&mut job, (agent, disrupted));
    let (role, sends_on) = (Role::Measures, Vec::new());
    Part { agent, role, job, sends_on, measures_on, arrives_at: Vec::new() }
}

/// What may be disrupted is told who has it.
fn keep_disrupting(job: &mut Map<String, Value>, (agent, disrupted): (usize, &[Disrupted])) {
    job.remove("yes_disrupt");
    let own: Vec<Value> =
        disrupted.iter().filter(|(at, _)| *at == agent).map(|(_, on)| on.clone().into()).collect();
    if !own.is_empty() {
        job.insert("yes_disrupt".to_owned(), own.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(names: &[&str]) -> Vec<Reach> {
        names.iter().map(|name| format!("{name}=netdyno agent --stdio").parse().expect("an agent")).collect()
    }

    fn planned(job: &str) -> Result<Plan, Unplanned> {
        let job = spec::File::read(&format!("{{schema: netdyno.job/1, {job}}}"), "job")
            .expect("a job")
            .jobs
            .remove(0);
        plan(&job, &agents(&["a", "b", "c"]), None)
    }

    /// Who does what, in a line.
    fn told(job: &str) -> Vec<String> {
        let plan = planned(job).unwrap_or_else(|why| panic!("{why}"));
        let line = |part: &Part| {
            let name = ["a", "b", "c"][part.agent];
            let what = match part.role {
                Role::Whole => "all".to_owned(),
                Role::Measures => "measures".to_owned(),
                Role::Serves => "serves".to_owned(),
                Role::Sends { number, measured_at } => format!("sends as {number} for {measured_at:?}"),
            };
            format!("{name} {what} {:?} {:?}", part.sends_on, part.measures_on)
        };
        plan.parts.iter().map(line).collect()
    }

    #[test]
    fn each_agent_gets_its_part() {
        assert_eq!(
            told("kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0@b}]"),
            [r#"b measures [] ["rx0"]"#, r#"a sends as 0 for Some(1) ["tx0"] []"#]
        );
        assert_eq!(
            told("kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0@a}]"),
            [r#"a all ["tx0"] ["rx0"]"#]
        );
        // One meter for several senders, as the second measured on nothing of its own.
        assert_eq!(
            told(
                "kind: send, what: ipv4/udp, rate: 5pps, share: true, links: [{on: tx0@a, measure: rx0@c}, {on: tx0@b}]"
            ),
            [
                r#"c measures [] ["rx0"]"#,
                r#"a sends as 0 for Some(2) ["tx0"] []"#,
                r#"b sends as 1 for Some(2) ["tx0"] []"#
            ]
        );
        assert_eq!(
            told(
                "kind: send, what: ipv4/udp, rate: 5pps, links: [{on: x@a, measure: y@a}, {on: x@ns@b, measure: z@a}]"
            ),
            [
                r#"a measures [] ["z"]"#,
                r#"a sends as 0 for None ["x"] ["y"]"#,
                r#"b sends as 1 for Some(0) ["x@ns"] []"#
            ]
        );
        assert_eq!(told("kind: measure, on: eth0@c"), [r#"c all [] ["eth0"]"#]);
    }

    #[test]
    fn the_parts_are_jobs_with_what_was_asked_of_them() {
        let plan = planned(
            "kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0@b}], yes_disrupt: [tx0@a, rx0@b], \
             meter: {how: packet, pass: true, capture: {file: got.pcapng}}",
        )
        .expect("parts");
        let [meter, sender] = &plan.parts[..] else { panic!("two") };
        for part in [meter, sender] {
            let mut job = part.job.clone();
            job.insert("schema".to_owned(), spec::SCHEMA.into());
            spec::File::of(Value::Object(job)).expect("a job");
        }
        assert_eq!(
            (&meter.job["how"], &meter.job["drop"], &meter.job["clock"]),
            (&json!("packet"), &json!(false), &json!("tai"))
        );
        assert_eq!(
            (&meter.job["capture"]["file"], &meter.job["yes_disrupt"]),
            (&json!("got.pcapng"), &json!(["rx0"]))
        );
        assert_eq!(
            (&sender.job["meter"]["clock"], &sender.job["yes_disrupt"]),
            (&json!("tai"), &json!(["tx0"]))
        );
        assert!(sender.job["meter"].get("capture").is_none());
    }

    #[test]
    fn what_is_at_no_agent_is_said_with_how_to_write_it() {
        let says = |job: &str, words: &[&str]| {
            let said = planned(job).expect_err("it cannot be planned").to_string();
            for word in words {
                assert!(said.contains(word), "{said}");
            }
        };
        says("kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0}]", &["tx0@a"]);
        says(
            "kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@d}]",
            &["no agent `d`", "a, b, c", "`.on`"],
        );
        says(
            "kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0}]",
            &["rx0@a", "start one here"],
        );
        says(
            "kind: replay, captures: [a], links: [{on: tx0@a, measure: rx0@b}, {on: tx0@c, measure: rx1@b}], sides: auto",
            &["captures are sent by one agent"],
        );
        says(
            "kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0@b}, {on: tx0@c, measure: rx1@b}], meter: {capture: {file: got.pcapng}}",
            &["`.capture`", "measure at one"],
        );
        says("kind: bridge, between: [x@a, y@b]", &["`bridge`", "a and b"]);
        says(
            "kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0@b}], meter: {check_content: true}",
            &[".meter.check_content"],
        );
    }
}
