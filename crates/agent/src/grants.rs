//! What jobs may do: said where the agent is started, never by who speaks to it.

use crate::message::{Fault, FaultKind, May, Used};
use job::place::Place;
use serde_json::Value;
use spec::reach::{Reach, each_text};
use spec::{Find, Job};
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use traffic::Rate;

/// What is granted.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Patterns of interfaces that jobs may use.
    pub interfaces: Vec<String>,
    /// The highest rate.
    pub max_rate: Option<spec::Written<Rate>>,
    /// Folders whose files may be read by their paths.
    pub folders: Vec<PathBuf>,
    /// Interfaces that may be used although they carry the default route or a login.
    pub yes_disrupt: Vec<String>,
    /// Commands that may be run.
    pub commands: Vec<String>,
    /// Files with secrets that may be read by their paths.
    pub read: Vec<PathBuf>,
    /// Patterns of addresses that may be connected or sent to.
    pub addresses: Vec<String>,
    /// Patterns of addresses at which peers may be waited for.
    pub listen: Vec<String>,
    /// Public addresses that clients' data may be copied to.
    pub public_targets: Vec<String>,
    /// Prefixes that may become the host's own.
    pub source_prefixes: Vec<String>,
    /// The kinds that jobs may be of; without any, all but those that have to be named: captures for clones, and their return agents.
    pub kinds: Vec<String>,
    /// What takes away what a return agent left ([`job::Session::guardian`]).
    pub guardian: Option<Vec<String>>,
}

/// Kinds of jobs that reach into a server's own traffic: nobody grants them by an interface alone.
const NAMED: [&str; 2] = ["clone-capture", "clone-return"];

/// What is wrong with what is to be granted.
#[derive(Debug, thiserror::Error)]
pub enum BadGrant {
    /// A word that is no kind of job.
    #[error("--allow-kind {kind}: there is no such kind of job; there are {}", Job::KINDS.join(", "))]
    Kind {
        /// The word.
        kind: String,
    },
    /// A rate that no job's rate can be compared with.
    #[error(
        "--max-rate {0}: write frames per second (10mpps) or bits per second of frames without FCS (1gbps)"
    )]
    Rate(String),
    /// A folder that is not there.
    #[error("--folder {}: {error}", .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why it cannot be used.
        error: std::io::Error,
    },
}

/// Does a text fit a pattern, in which `*` stands for any characters?
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

fn any_fits(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, text))
}

/// The same of addresses: what a star stands for is part of an address, because a name that begins like one may lead anywhere.
fn fits_address(pattern: &str, text: &str) -> bool {
    let is_address = || text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok();
    fits(pattern, text) && (pattern == text || pattern == "*" || is_address())
}

/// A text of a job that names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOf {
    /// Only what has its layout is read of it, or it is perhaps no file.
    Read { perhaps: bool },
    /// Its words are shown to others.
    Secret,
    /// It is written.
    Written,
}

/// Where a path of a job leads, if it is another one.
pub(crate) type Places<'a> = &'a mut dyn FnMut(&str, FileOf, &str) -> Result<Option<String>, Fault>;

impl Grants {
    /// Looks whether they make sense, and finds the folders.
    ///
    /// # Errors
    /// They do not.
    pub fn checked(mut self) -> Result<Grants, BadGrant> {
        if let Some(rate) = &self.max_rate
            && !matches!(**rate, Rate::Frames(_) | Rate::Bits { layer1: false, .. })
        {
            return Err(BadGrant::Rate(rate.text().to_owned()));
        }
        if let Some(kind) = self.kinds.iter().find(|kind| !Job::KINDS.contains(&kind.as_str())) {
            return Err(BadGrant::Kind { kind: kind.clone() });
        }
        for path in &mut self.folders {
            *path = path.canonicalize().map_err(|error| BadGrant::Folder { path: path.clone(), error })?;
        }
        Ok(self)
    }

    /// As the client is told.
    pub(crate) fn told(&self) -> May {
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
        May {
            interfaces: self.interfaces.clone(),
            max_rate: self.max_rate.as_ref().map(|rate| rate.text().to_owned()),
            folders: paths(&self.folders),
            yes_disrupt: self.yes_disrupt.clone(),
            commands: self.commands.clone(),
            read: paths(&self.read),
            addresses: self.addresses.clone(),
            listen: self.listen.clone(),
            public_targets: self.public_targets.clone(),
            source_prefixes: self.source_prefixes.clone(),
            kinds: self.kinds.clone(),
        }
    }

    /// Is an interface of this name granted?
    pub(crate) fn has_interface(&self, name: &str) -> bool {
        // A path of a namespace may lead anywhere by its links and dots: only the very same one is granted.
        let same = |pattern: &str| match name.contains('/') {
            true => pattern == name,
            false => pattern.contains('@') == name.contains('@') && fits(pattern, name),
        };
        self.interfaces.iter().any(|pattern| same(pattern))
    }

    /// An interface, if it is granted: by the name that is written, and by the kernel's own for it.
    pub(crate) fn interface(&self, setting: &str, written: &str) -> Result<Place, Fault> {
        if !self.has_interface(written) {
            return Err(no_interface(setting, written));
        }
        let place = Place::find(written)
            .map_err(|error| Fault::of_setting(FaultKind::Usage, setting, job::in_full(&error)))?;
        let kernels = match written.split_once('@') {
            Some((_, namespace)) => format!("{}@{namespace}", place.interface.name),
            None => place.interface.name.clone(),
        };
        if self.has_interface(&kernels) { Ok(place) } else { Err(no_interface(setting, &kernels)) }
    }

    /// Looks through all texts of a job, and puts the places of its files into it. What it uses, outside of labs.
    pub(crate) fn look_through(
        &self,
        value: &mut Value,
        in_lab: bool,
        places: Places<'_>,
    ) -> Result<Vec<(Used, Place)>, Fault> {
        let mut used: Vec<(Used, Place)> = Vec::new();
        let mut fault = None;
        each_text(value, &mut |setting, reach, text| {
            if fault.is_some() {
                return;
            }
            let looked = match reach {
                Reach::Interface if setting.contains("yes_disrupt") => {
                    self.listed(setting, (text, "--yes-disrupt"), self.yes_disrupt.contains(text))
                }
                Reach::Interface if in_lab => Ok(()),
                Reach::Interface => self.interface(setting, text).map(|place| {
                    used.push((Used { setting: setting.to_owned(), name: text.clone() }, place));
                }),
                Reach::Address => self.address(setting, text),
                Reach::Listens if in_lab => Ok(()),
                Reach::Listens => {
                    self.listed(setting, (text, "--allow-listen"), any_fits(&self.listen, text))
                }
                Reach::Command => {
                    self.listed(setting, (text, "--allow-command"), self.commands.contains(text))
                }
                Reach::Prefix => {
                    let granted = self.source_prefixes.contains(text);
                    self.listed(setting, (text, "--allow-source-prefix"), granted)
                }
                Reach::Secret => put(text, places(setting, FileOf::Secret, text)),
                Reach::Written => put(text, places(setting, FileOf::Written, text)),
                Reach::Parsed => put(text, places(setting, FileOf::Read { perhaps: false }, text)),
                Reach::Perhaps => put(text, places(setting, FileOf::Read { perhaps: true }, text)),
                Reach::Word => Ok(()),
            };
            fault = looked.err();
        });
        fault.map_or(Ok(used), Err)
    }

    fn address(&self, setting: &str, text: &str) -> Result<(), Fault> {
        let of_a_clone = matches!(setting, "to" | "noise_target");
        let granted = self.addresses.iter().any(|pattern| fits_address(pattern, text))
            || of_a_clone && self.public_targets.iter().any(|target| target == text);
        self.listed(setting, (text, "--allow-address"), granted)
    }

    fn listed(&self, setting: &str, (text, option): (&str, &str), granted: bool) -> Result<(), Fault> {
        if granted {
            return Ok(());
        }
        let text = report::units::printable(text);
        let what = format!("{text} is not granted to this agent");
        let fault = Fault::of_setting(FaultKind::Refused, setting, what);
        Err(fault.remedy(format!("start the agent with {option} '{text}'")))
    }

    /// Which file may be read by its path; `None`: it is none, but an expression or a name.
    pub(crate) fn file(&self, setting: &str, path: &str, kind: FileOf) -> Result<Option<PathBuf>, Fault> {
        let refused = |what: &str, remedy: &str| {
            let path = report::units::printable(path);
            let what = format!("{path} {what}");
            Fault::of_setting(FaultKind::Refused, setting, what).remedy(remedy.to_owned())
        };
        if path == "-" {
            return Err(refused("is standard input or output, which the protocol has", "name a file"));
        }
        if kind == FileOf::Secret {
            let granted = self.read.iter().any(|granted| granted == Path::new(path));
            let remedy = "send it as a content, or start the agent with --allow-read and its path";
            return if granted { Ok(Some(path.into())) } else { Err(refused("has a secret", remedy)) };
        }
        // What is not there may be an expression, or a plugin's name; of a path it is an error in any case. Of what has no path any more
        // (a descriptor below /proc) the kernel still opens the link.
        let is_there = std::fs::metadata(path).is_ok() || std::fs::symlink_metadata(path).is_ok();
        let is_name = setting.ends_with("plugin.name") || setting.ends_with("floor");
        let is_path = path.starts_with(['/', '.', '~'])
            || path.ends_with(".wasm")
            || is_name && path.contains('/')
            || Path::new(path).components().any(|part| part == Component::ParentDir);
        if kind == (FileOf::Read { perhaps: true }) && !is_there && !is_path {
            return Ok(None);
        }
        match Path::new(path).canonicalize() {
            Ok(whole) if self.folders.iter().any(|folder| whole.starts_with(folder)) => Ok(Some(whole)),
            _ => Err(refused(
                "is no content of this job, and is in no folder that the agent grants",
                "send it as a content and name it in `contents`, or start the agent with --folder",
            )),
        }
    }

    /// Would it grant a job, as far as that is known without its host's interfaces and files?
    ///
    /// # Errors
    /// What is not granted.
    fn foresees(&self, mut value: Value, job: &Job) -> Result<(), Fault> {
        self.job(job, false)?;
        let mut fault = None;
        each_text(&mut value, &mut |setting, reach, text| {
            if fault.is_some() {
                return;
            }
            let looked = match reach {
                Reach::Interface if setting.contains("yes_disrupt") => {
                    self.listed(setting, (text, "--yes-disrupt"), self.yes_disrupt.contains(text))
                }
                Reach::Interface if !self.has_interface(text) => Err(no_interface(setting, text)),
                Reach::Address => self.address(setting, text),
                Reach::Listens => {
                    self.listed(setting, (text, "--allow-listen"), any_fits(&self.listen, text))
                }
                _ => Ok(()),
            };
            fault = looked.err();
        });
        fault.map_or(Ok(()), Err)
    }

    /// May jobs be of this kind?
    fn kind(&self, kind: &'static str) -> Result<(), Fault> {
        let granted = match self.kinds.is_empty() {
            true => !NAMED.contains(&kind),
            false => self.kinds.iter().any(|granted| granted == kind),
        };
        if granted {
            return Ok(());
        }
        let fault =
            Fault::of_setting(FaultKind::Refused, "kind", format!("{kind} is not granted to this agent"));
        Err(fault.remedy(format!("start the agent with --allow-kind {kind}")))
    }

    /// What no pattern can tell of a job.
    pub(crate) fn job(&self, job: &Job, in_lab: bool) -> Result<(), Fault> {
        self.kind(job.kind())?;
        for target in job.asks().public_targets {
            self.listed(
                "public_target",
                (&target, "--allow-public-target"),
                self.public_targets.contains(&target),
            )?;
        }
        if let Job::ReturnAgent(back) = job
            && let Some(engine) = back.engine
        {
            self.address("engine", &engine.to_string())?;
        }
        if let Job::EndpointServer(server) = job
            && server.user.is_some()
        {
            let what = "an agent stays who it is";
            return Err(Fault::of_setting(FaultKind::Refused, "user", what).remedy("leave it out"));
        }
        if !in_lab && listens_by_itself(job) {
            let what = "it would wait for peers at any address of this host";
            self.listed("listen", ("any", "--allow-listen"), any_fits(&self.listen, "any")).map_err(
                |_| {
                    Fault::of_setting(FaultKind::Refused, "listen", what)
                        .remedy("say where, and start the agent with --allow-listen and the same")
                },
            )?;
        }
        Ok(())
    }

    /// Does a job keep to the highest rate? `mtu`: the largest of its interfaces; `of_file`: its frames are a scenario's.
    pub(crate) fn rate(&self, job: &Job, mtu: u32, of_file: bool) -> Result<(), Fault> {
        let Some(limit) = &self.max_rate else { return Ok(()) };
        let refused = |setting: &str, what: String| {
            Fault::of_setting(FaultKind::Refused, setting, what)
                .remedy(format!("give a rate of at most {limit}"))
        };
        let paced = match rate_of(job) {
            Paced::By(..) if of_file && matches!(job, Job::Trial(_) | Job::Search(_)) => {
                Paced::Unknown("bench.what", OWN_RATES)
            }
            Paced::By(..) if of_file => Paced::Unknown("what", OWN_RATES),
            paced => paced,
        };
        let Some(highest) = highest_percent(job) else {
            let what =
                format!("what comes by chance has no highest rate, and this agent grants {limit} at most");
            return Err(Fault::of_setting(FaultKind::Refused, "shape", what)
                .remedy("leave it out, or give one without arrivals by chance"));
        };
        match paced {
            Paced::Nothing => Ok(()),
            Paced::By(_, Some(rate)) if keeps_to(rate, **limit, mtu, highest) => Ok(()),
            Paced::By(_, Some(rate)) if keeps_to(rate, **limit, mtu, 100) => Err(refused(
                "shape",
                format!(
                    "at its highest, {highest} percent of {rate} may be more than this agent grants, {limit}"
                ),
            )),
            Paced::By(setting, Some(rate)) => {
                Err(refused(setting, format!("{rate} may be more than this agent grants, {limit}")))
            }
            Paced::By(setting, None) => {
                Err(refused(setting, format!("it is left out, and this agent grants {limit} at most")))
            }
            Paced::Unknown(setting, why) => {
                let what = format!("{why}, and this agent grants {limit} at most");
                Err(Fault::of_setting(FaultKind::Refused, setting, what))
            }
        }
    }

    /// After a stall a job with a limited rate catches up at no more than twice that: it says so, or it is said for it.
    pub(crate) fn bounds_catching_up(&self, job: &Job, value: &mut Value) -> Result<(), Fault> {
        const MOST: f64 = 2.0;
        let catch_up = match job {
            Job::Send(send) => send.catch_up,
            Job::Replay(replay) => replay.catch_up,
            _ => return Ok(()),
        };
        let (Some(limit), Some(members)) = (&self.max_rate, value.as_object_mut()) else { return Ok(()) };
        match catch_up {
            Some(times) if times > MOST => {
                let what = format!("this agent grants {limit} at most, and twice that after a stall");
                Err(Fault::of_setting(FaultKind::Refused, "catch_up", what)
                    .remedy("give 2 at most, or leave it out"))
            }
            Some(_) => Ok(()),
            None => {
                // Without a rate it is refused for that.
                if members.contains_key("rate") {
                    members.insert("catch_up".to_owned(), MOST.into());
                }
                Ok(())
            }
        }
    }

    /// Does it when the rate is changed to so many percent?
    pub(crate) fn changed_rate(&self, job: &Job, mtu: u32, percent: u32) -> Result<(), Fault> {
        let (Some(limit), Paced::By(setting, Some(rate))) = (&self.max_rate, rate_of(job)) else {
            return Ok(());
        };
        let highest = highest_percent(job).unwrap_or(u32::MAX);
        if keeps_to(rate, **limit, mtu, (percent.saturating_mul(highest)).div_ceil(100)) {
            return Ok(());
        }
        let what = format!("{percent} percent of {rate} may be more than this agent grants, {limit}");
        Err(Fault::of_setting(FaultKind::Refused, setting, what))
    }
}

fn no_interface(setting: &str, name: &str) -> Fault {
    let name = report::units::printable(name);
    Fault::of_setting(FaultKind::Refused, setting, format!("{name} is not granted to this agent"))
        .remedy(format!("start the agent with --allow-interface {name}"))
}

impl May {
    /// Would an agent that says so carry out such a job? What only its host knows, it alone decides: files, names and the interfaces' use.
    ///
    /// # Errors
    /// What is not granted, as the agent itself would say it.
    pub fn foresees(&self, job: &Job) -> Result<(), Fault> {
        let grants = Grants {
            interfaces: self.interfaces.clone(),
            yes_disrupt: self.yes_disrupt.clone(),
            addresses: self.addresses.clone(),
            listen: self.listen.clone(),
            public_targets: self.public_targets.clone(),
            kinds: self.kinds.clone(),
            ..Grants::default()
        };
        let value = job.to_value().map_err(|error| Fault::usage(format!("job.start: {error}")))?;
        grants.foresees(value, job)
    }
}

fn put(text: &mut String, placed: Result<Option<String>, Fault>) -> Result<(), Fault> {
    if let Some(place) = placed? {
        *text = place;
    }
    Ok(())
}

/// Servers that say no address.
fn listens_by_itself(job: &Job) -> bool {
    match job {
        Job::Collect(job) => job.listen.is_empty(),
        Job::EndpointServer(job) => job.listen.is_empty(),
        Job::Iperf3Server(job) => job.bind.is_none(),
        Job::Netserver(job) => job.listen.is_empty(),
        _ => false,
    }
}

/// How fast a job sends, by its own settings.
enum Paced {
    /// It sends nothing, or only what arrives.
    Nothing,
    /// By this setting, if it is there.
    By(&'static str, Option<Rate>),
    /// Nobody knows, for this reason.
    Unknown(&'static str, &'static str),
}

/// The highest percentage of its rate at which a job sends; `None`: by chance any.
fn highest_percent(job: &Job) -> Option<u32> {
    match job {
        Job::Send(send) => send.shape.as_ref().map_or(Some(100), |shape| shape.highest_percent()),
        Job::Replay(replay) => replay.shape.as_ref().map_or(Some(100), |shape| shape.highest_percent()),
        _ => Some(100),
    }
}

const OWN_RATES: &str = "the traffic has rates of its own";

fn rate_of(job: &Job) -> Paced {
    let written = |rate: &Option<spec::Written<Rate>>| rate.as_ref().map(|rate| **rate);
    match job {
        Job::Measure(_)
        | Job::Reflect(_)
        | Job::Bridge(_)
        | Job::Impair(_)
        | Job::Probe(_)
        | Job::ReturnAgent(_)
        | Job::Collect(_) => Paced::Nothing,
        Job::Sessions(_) | Job::SessionsSearch(_) => {
            Paced::Unknown("rate", "connections have no rate of frames")
        }
        Job::EndpointServer(_) | Job::Iperf3Server(_) | Job::Netserver(_) | Job::SessionsServer(_) => {
            Paced::Unknown("kind", "what a server sends is its clients' to say")
        }
        Job::Send(send) if send.plugin.is_some() => Paced::Unknown("plugin", OWN_RATES),
        Job::Send(send) if is_no_expression(&send.what) => Paced::Unknown("what", OWN_RATES),
        Job::Send(send) => Paced::By("rate", written(&send.rate)),
        Job::Replay(replay) => Paced::By("rate", written(&replay.rate)),
        Job::Trial(trial) if trial.bench.plugin.is_some() => Paced::Unknown("bench.plugin", OWN_RATES),
        Job::Trial(trial) => Paced::By("rate", Some(*trial.rate)),
        Job::Search(search) if search.bench.plugin.is_some() => Paced::Unknown("bench.plugin", OWN_RATES),
        Job::Search(search) => match &search.find {
            Find::Throughput(found) if found.axis == spec::Axis::Rate => {
                Paced::By("max", written(&search.max))
            }
            Find::Throughput(_) => Paced::Unknown("find.throughput.axis", "what is varied is not the rate"),
            _ => Paced::Unknown("find", "this search finds its loads itself"),
        },
        _ => Paced::Unknown("kind", "nobody can tell beforehand how fast it sends"),
    }
}

/// A scenario, which is a file: the client sends it as a content, or it has the ending of one.
fn is_no_expression(what: &str) -> bool {
    what == "-"
        || what.starts_with('/')
        || [".yaml", ".yml", ".json"].iter().any(|ending| what.ends_with(ending))
}

/// Is a rate, so many percent of it, certainly no more than the limit? Frames have at least an Ethernet header, and no more than the
/// interface's MTU and a header with a tag.
fn keeps_to(rate: Rate, limit: Rate, mtu: u32, percent: u32) -> bool {
    const HEADER_BITS: u128 = 14 * 8;
    let most_bits = (u128::from(mtu) + 18) * 8;
    let percent = u128::from(percent);
    // (numerator, denominator) of frames or bits.
    let (numerator, denominator, frames) = match rate {
        Rate::Frames(exact) => {
            (u128::from(exact.numerator) * percent, u128::from(exact.denominator) * 100, true)
        }
        Rate::Bits { bits_per_second, .. } => (u128::from(bits_per_second) * percent, 100, false),
        _ => return false,
    };
    let (limit, limit_denominator, limits_frames) = match limit {
        Rate::Frames(exact) => (u128::from(exact.numerator), u128::from(exact.denominator), true),
        Rate::Bits { bits_per_second, .. } => (u128::from(bits_per_second), 1, false),
        _ => return false,
    };
    let (numerator, denominator) = match (frames, limits_frames) {
        (true, false) => (numerator.saturating_mul(most_bits), denominator),
        (false, true) => (numerator, denominator.saturating_mul(HEADER_BITS)),
        _ => (numerator, denominator),
    };
    numerator.saturating_mul(limit_denominator) <= limit.saturating_mul(denominator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(text: &str) -> Job {
        let text = format!("{{schema: netdyno.job/1, {text}}}");
        spec::File::read(&text, "job").unwrap_or_else(|error| panic!("{text}: {error}")).jobs.remove(0)
    }

    proptest! {
        #[test]
        fn a_pattern_is_what_an_expression_says(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            // Independently: all ways to take the star.
            fn model(pattern: &[u8], text: &[u8]) -> bool {
                match pattern.split_first() {
                    None => text.is_empty(),
                    Some((b'*', rest)) => (0..=text.len()).any(|at| model(rest, &text[at..])),
                    Some((first, rest)) => text.first() == Some(first) && model(rest, &text[1..]),
                }
            }
            prop_assert_eq!(fits(&pattern, &text), model(pattern.as_bytes(), text.as_bytes()));
        }
    }

    #[test]
    fn kinds_are_granted_by_their_names_and_some_by_nothing_else() {
        let of = |kinds: &[&str], text: &str| {
            let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let addresses = vec!["10.0.0.1*".to_owned()];
            let interfaces = vec!["a".to_owned()];
            let grants =
                Grants { kinds, addresses, interfaces, ..Grants::default() }.checked().expect("kinds");
            let said = grants.job(&job(text), false).map_err(|fault| fault.to_string());
            // Who knows no more than what the agent says foresees it.
            assert_eq!(grants.told().foresees(&job(text)).map_err(|fault| fault.to_string()), said, "{text}");
            said
        };
        let capture = "kind: clone-capture, on: a, server: '80', send_to: '10.0.0.1:1', key: k";
        let back = "kind: clone-return, on: a, server: ':80', engine: 10.0.0.1";
        for (kinds, text, granted) in [
            (&[][..], "kind: measure, on: a", true),
            (&[], capture, false),
            (&[], back, false),
            (&["clone-capture"], capture, true),
            (&["clone-capture"], back, false),
            (&["clone-capture"], "kind: measure, on: a", false),
            (&["measure", "clone-return"], back, true),
        ] {
            let said = of(kinds, text);
            assert_eq!(said.is_ok(), granted, "{kinds:?} {text}: {said:?}");
            assert!(said.err().is_none_or(|said| said.contains("is not granted to this agent")));
        }
        // Who is let in as a clone is granted, too.
        let only =
            Grants { kinds: vec!["clone-return".into()], interfaces: vec!["a".into()], ..Grants::default() };
        for said in [only.job(&job(back), false), only.told().foresees(&job(back))] {
            let fault = said.expect_err("no address");
            assert!(fault.to_string().contains("10.0.0.1 is not granted"), "{fault}");
            assert_eq!(fault.data.remedy.as_deref(), Some("start the agent with --allow-address '10.0.0.1'"));
        }
        let bad = Grants { kinds: vec!["measures".into()], ..Grants::default() }.checked();
        assert!(bad.is_err_and(|bad| bad.to_string().contains("there is no such kind of job")));
    }

    #[test]
    fn a_rate_is_compared_on_the_side_of_caution() {
        let rate = |text: &str| -> Rate { text.parse().expect("a rate") };
        for (asked, limit, percent, wanted) in [
            ("1gbps", "1gbps", 100, true),
            ("1gbps", "1gbps", 101, false),
            ("1gbps-l1", "1gbps", 100, true),
            ("100kpps", "100kpps", 100, true),
            ("100kpps", "99kpps", 100, false),
            ("200kpps", "100kpps", 50, true),
            // 1,518 bytes each, at most.
            ("100kpps", "1214400000bps", 100, true),
            ("100kpps", "1214399999bps", 100, false),
            // 14 bytes each, at least.
            ("112kbps", "1kpps", 100, true),
            ("113kbps", "1kpps", 100, false),
            ("top", "100gbps", 100, false),
            ("1%", "100gbps", 100, false),
            ("1flows/s", "100mpps", 100, false),
        ] {
            assert_eq!(
                keeps_to(rate(asked), rate(limit), 1500, percent),
                wanted,
                "{asked} {limit} {percent}"
            );
        }
    }

    #[test]
    fn what_nobody_can_tell_the_rate_of_is_refused_where_rates_are_limited() {
        let grants = Grants { max_rate: Some("10kpps".parse().expect("a rate")), ..Grants::default() };
        let rated = |text: &str| grants.rate(&job(text), 1500, false).map_err(|fault| fault.message);
        for good in [
            "kind: send, what: ipv4/udp, links: [{on: a}], rate: 10kpps",
            "kind: send, what: ipv4/udp, links: [{on: a}], rate: 5kpps, shape: 'sine:period=1s,amplitude=100%'",
            "kind: replay, captures: [a], links: [{on: a}], rate: 1mbps",
            "kind: measure, on: a",
            "kind: trial, rate: 1kpps, bench: {links: [{on: a, measure: b}]}",
        ] {
            rated(good).unwrap_or_else(|error| panic!("{good}: {error}"));
        }
        for (bad, says) in [
            (
                "kind: send, what: ipv4/udp, links: [{on: a}]",
                "rate: it is left out, and this agent grants 10kpps",
            ),
            ("kind: send, what: ipv4/udp, links: [{on: a}], rate: top", "rate: top speed may be more"),
            (
                "kind: send, what: a.yaml, links: [{on: a}], rate: 1pps",
                "what: the traffic has rates of its own",
            ),
            ("kind: send, plugin: {name: a}, links: [{on: a}], rate: 1pps", "plugin: the traffic"),
            (
                "kind: send, what: ipv4/udp, links: [{on: a}], rate: 9kpps, shape: 'sine:period=1s'",
                "shape: at its highest, 150 percent",
            ),
            (
                "kind: send, what: ipv4/udp, links: [{on: a}], rate: 1kpps, shape: 'flash:rise=1s,fall=1s,peak=10.5x'",
                "shape: at its highest, 1050 percent",
            ),
            (
                "kind: replay, captures: [a], links: [{on: a}], rate: 9kpps, shape: 'sine:period=1s'",
                "shape: at its highest, 150 percent",
            ),
            (
                "kind: send, what: ipv4/udp, links: [{on: a}], rate: 1pps, shape: poisson",
                "shape: what comes by chance",
            ),
            ("kind: replay, captures: [a], links: [{on: a}]", "rate: it is left out"),
            ("kind: search, find: throughput, bench: {links: [{on: a, measure: b}]}", "max: it is left out"),
            (
                "kind: search, find: {throughput: {axis: flows, rate: 1kpps}}, max: 1kpps, bench: {links: [{on: a, measure: b}]}",
                "find.throughput.axis: what is varied",
            ),
            ("kind: search, find: burst, bench: {links: [{on: a, measure: b}]}", "find: this search"),
            ("kind: endpoint, test: tcp-stream, host: a", "kind: nobody can tell"),
        ] {
            let said = rated(bad).expect_err(bad);
            assert!(said.starts_with(says), "{bad}: {said}");
        }
        let send = job("kind: send, what: ipv4/udp, links: [{on: a}], rate: 5kpps");
        grants.changed_rate(&send, 1500, 200).expect("no more than is granted");
        assert!(grants.changed_rate(&send, 1500, 201).is_err());
        // What is caught up with after a stall is bounded, too.
        let bounded = |text: &str| {
            let job = job(text);
            let mut value = job.to_value().expect("text");
            grants
                .bounds_catching_up(&job, &mut value)
                .map(|()| value["catch_up"].clone())
                .map_err(|fault| fault.message)
        };
        assert_eq!(bounded("kind: send, what: ipv4/udp, links: [{on: a}], rate: 5kpps"), Ok(2.0.into()));
        assert_eq!(
            bounded("kind: send, what: ipv4/udp, links: [{on: a}], rate: 5kpps, catch_up: 1"),
            Ok(1.0.into())
        );
        assert!(
            bounded("kind: replay, captures: [a], links: [{on: a}], rate: 5kpps, catch_up: 3")
                .is_err_and(|said| said.starts_with("catch_up"))
        );
        assert!(
            grants.rate(&send, 1500, true).is_err_and(|fault| fault.message.starts_with("what: the traffic"))
        );
    }

    #[test]
    fn a_job_reaches_only_what_is_granted_and_each_refusal_names_the_setting() {
        let grants = Grants {
            addresses: vec!["192.0.2.1:2055".into(), "198.18.*".into()],
            listen: vec!["127.0.0.1:*".into()],
            commands: vec!["true".into()],
            ..Grants::default()
        };
        let look = |text: &str| {
            let mut value = job(text).to_value().expect("text");
            let mut paths = |setting: &str, kind: FileOf, path: &str| -> Result<Option<String>, Fault> {
                if kind == FileOf::Written {
                    Ok(Some("/there".into()))
                } else {
                    grants.file(setting, path, kind).map(|_| None)
                }
            };
            grants.look_through(&mut value, false, &mut paths).map(|_| value).map_err(|fault| fault.message)
        };
        // Tests run where the crate stands.
        let pipe = Path::new("src/pipe");
        let _ = std::fs::remove_file(pipe);
        std::os::unix::fs::symlink("/proc/self/fd/1", pipe).expect("a link");
        look("kind: collect, listen: ['127.0.0.1:2055'], write: [a.csv]").expect("granted");
        look("kind: endpoint, test: tcp-stream, host: 198.18.0.7").expect("granted");
        for (text, says) in [
            (
                "kind: collect, listen: ['0.0.0.0:2055'], write: [a.csv]",
                "listen[0]: 0.0.0.0:2055 is not granted",
            ),
            (
                "kind: send, what: ipv4/udp, links: [{on: eth0}], rate: 1pps",
                "links[0].on: eth0 is not granted",
            ),
            (
                "kind: replay, captures: [/etc/passwd], links: [{on: eth0}]",
                "captures[0]: /etc/passwd is no content",
            ),
            ("kind: send, what: /etc/passwd, rate: 1pps, lab: {}", "what: /etc/passwd is no content"),
            ("kind: send, what: '-', rate: 1pps, lab: {}", "what: - is standard input"),
            (
                "kind: send, what: src/../../../etc/passwd, rate: 1pps, lab: {}",
                "what: src/../../../etc/passwd is no content",
            ),
            // It is there, and has no path.
            ("kind: send, what: src/pipe, rate: 1pps, lab: {}", "what: src/pipe is no content"),
            ("kind: send, plugin: {name: a/b}, rate: 1pps, lab: {}", "plugin.name: a/b is no content"),
            (
                "kind: endpoint, test: tcp-stream, host: 198.18.x.localhost",
                "host: 198.18.x.localhost is not granted",
            ),
            (
                "kind: send, plugin: {name: ../a.wasm}, rate: 1pps, lab: {}",
                "plugin.name: ../a.wasm is no content",
            ),
            ("kind: endpoint, test: tcp-stream, host: 10.0.0.1", "host: 10.0.0.1 is not granted"),
            (
                "kind: endpoint, test: tcp-stream, host: 198.18.0.1, token_file: /etc/shadow",
                "token_file: /etc/shadow has a secret",
            ),
        ] {
            let said = look(text).expect_err(text);
            assert!(said.starts_with(says), "{text}: {said}");
        }
        std::fs::remove_file(pipe).expect("there");
        let ports = Grants {
            interfaces: vec!["tx0@/run/netns/*".into(), "tx0@/run/netns/a".into()],
            ..Grants::default()
        };
        for (name, says) in
            [("tx0@/run/netns/../../proc/1/ns/net", "is not granted"), ("tx0@/run/netns/b", "is not granted")]
        {
            assert!(ports.interface("on", name).is_err_and(|fault| fault.message.contains(says)), "{name}");
        }
        assert!(
            ports.interface("on", "tx0@/run/netns/a").is_err_and(|fault| fault.data.kind == FaultKind::Usage)
        );
        let job_of = |text: &str| grants.job(&job(text), false).map_err(|fault| fault.message);
        assert!(job_of("kind: netserver").is_err_and(|said| said.starts_with("listen: it would wait")));
        assert!(
            job_of("kind: endpoint-server, listen: ['127.0.0.1:1'], user: nobody")
                .is_err_and(|said| said.starts_with("user"))
        );
    }

    #[test]
    fn only_rates_that_can_be_compared_are_limits() {
        let of = |text: &str| Grants { max_rate: text.parse().ok(), ..Grants::default() }.checked();
        assert!(of("10mpps").is_ok() && of("1gbps").is_ok());
        for bad in ["top", "5%", "1gbps-l1", "1flows/s"] {
            assert!(of(bad).is_err_and(|error| error.to_string().contains(bad)), "{bad}");
        }
    }
}
