//! From a job that the client sent to one that may be carried out here.

use crate::contents::Contents;
use crate::grants::{FileOf, Grants};
use crate::message::{self, Agree, Fault, FaultKind, JobRate, JobStart, Used};
use crate::run::{Named, Run};
use job::place::{Identity, Place};
use job::{Among, Claimed, Session, claim_interface};
use serde_json::Value;
use snapshot::Board;
use spec::{BadFile, Consent, File, Job};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use traffic::Rate;

/// The shortest time between two snapshots.
const LEAST_EVERY_NS: u64 = 10_000_000;
/// Rates may be changed to so many percent.
const PERCENT: std::ops::RangeInclusive<u64> = 10..=1000;

/// A job that may start.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// As the client is told.
    pub told: Value,
    pub used: Vec<Used>,
    /// As it is carried out: with the places of files.
    job: Job,
    /// The largest MTU of its interfaces; in a lab rates have no limit.
    mtu: Option<u32>,
    consent: Consent,
    claims: Vec<Arc<Claimed>>,
    closely: bool,
    start_at: Option<u64>,
    among: Among,
    folder: PathBuf,
    names: Vec<Named>,
}

/// Parts of one job at most.
const PARTS: u32 = 4096;

/// What the job is told of others.
fn joined(asked: message::Among, start_at: Option<u64>) -> Result<Among, Fault> {
    if asked.hold && start_at.is_some() {
        return Err(Fault::usage("job.start: a job that is held is told its start by `job.go`"));
    }
    if let Some((part, of)) = asked.part
        && !(part < of && of <= PARTS)
    {
        let what = format!(
            "job.start: `among.part` [{part}, {of}]: the first must be less than the second, and that at most {PARTS}"
        );
        return Err(Fault::usage(what));
    }
    let hold = asked.hold.then(Arc::default);
    let message::Among { hold: _, stamps_ahead_ns, measured, part, trial, beside: _ } = asked;
    Ok(Among { hold, stamps_ahead_ns, measured, part, trial })
}

/// Who types `clone return` says with it that answers are steered there. Of an agent, who starts it says so: a target's only interface carries
/// the default route as a rule.
fn guard(found: &[(Used, Place)], yes_disrupt: &[String]) -> Result<(), Fault> {
    for (used, place) in found {
        place.guard(yes_disrupt).map_err(|error| {
            let name = report::units::printable(&place.interface.name);
            Fault::of_setting(FaultKind::Refused, &used.setting, job::in_full(&error)).remedy(format!(
                "if it may be steered there all the same: start the agent with --yes-disrupt {name}"
            ))
        })?;
    }
    Ok(())
}

/// Looks whether a job may be carried out, and puts its files where it finds them. `going`: the runs beside it.
pub(crate) fn prepare(
    asked: JobStart,
    name: &str,
    (grants, contents, folder): (&Grants, &mut Contents, &Path),
    shared: &mut Shared,
    going: &[Arc<Run>],
) -> Result<Prepared, Fault> {
    let JobStart { mut job, contents: named, start_at, snapshots_every_ns, agree, among, closely } = asked;
    let is_beside = among.as_ref().is_some_and(|among| among.beside);
    if (1..LEAST_EVERY_NS).contains(&snapshots_every_ns) {
        return Err(Fault::usage("job.start: `snapshots_every_ns` must be 0 or at least 10000000 (10 ms)"));
    }
    if job.contains_key("jobs") {
        return Err(Fault::usage(
            "job.start: `job` is one job; start each of several by a request of its own",
        ));
    }
    job.entry("schema").or_insert_with(|| spec::SCHEMA.into());
    let as_sent = read(Value::Object(job))?;
    let among = joined(among.unwrap_or_default(), start_at)?;
    if clocks::pretended() != 0 && matches!(as_sent, Job::Measure(_)) {
        let what = "job.start: an agent with --clock-ahead does not measure: arrivals are timed by the kernel's own clock";
        return Err(Fault::new(FaultKind::Refused, what));
    }
    if (start_at.is_some() || among.hold.is_some())
        && matches!(
            as_sent,
            Job::Search(_)
                | Job::Trial(_)
                | Job::Impair(_)
                | Job::EndpointSearch(_)
                | Job::SessionsSearch(_)
                | Job::EndpointServer(_)
                | Job::Forwarding(_)
                | Job::ReturnAgent(_)
                | Job::SessionsServer(_)
                | Job::Iperf3Server(_)
                | Job::Netserver(_)
        )
    {
        return Err(Fault::usage("job.start: jobs of this kind begin at once")
            .remedy("leave out `start_at` and `hold`"));
    }
    if let Some(agree) = agree {
        agrees(agree, &as_sent)?;
    }
    beside(&as_sent, going)?;
    let told = as_sent.to_value().map_err(|error| Fault::usage(format!("job.start: {error}")))?;
    let in_lab = ["/lab", "/bench/lab"].iter().any(|lab| told.pointer(lab).is_some_and(|lab| !lab.is_null()));
    grants.job(&as_sent, in_lab)?;
    let folder = folder.join(name);
    let mut value = told.clone();
    if !in_lab {
        grants.bounds_catching_up(&as_sent, &mut value)?;
    }
    let mut files = Files {
        grants,
        contents,
        named: &named,
        folder: &folder,
        names: Vec::new(),
        taken: BTreeMap::new(),
        of_file: false,
    };
    let found =
        grants.look_through(&mut value, in_lab, &mut |setting, kind, path| files.place(setting, kind, path));
    let found = found.and_then(|found| files.all_taken().map(|()| found));
    let Files { names, of_file, .. } = files;
    let rest = found.and_then(|found| {
        let job = read(value)?;
        if matches!(job, Job::ReturnAgent(_)) {
            guard(&found, &grants.yes_disrupt)?;
        }
        let mtu = found.iter().map(|(_, place)| place.interface.mtu).max().unwrap_or(1500);
        if !in_lab {
            grants.rate(&job, mtu, of_file)?;
        }
        let claims = claim(&found, name, is_beside.then_some(shared))?;
        let used = found.into_iter().map(|(used, _)| used).collect();
        Ok((job, mtu, claims, used))
    });
    // What was put there for nothing goes.
    let (job, mtu, claims, used) = rest.inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&folder);
    })?;
    let consent = job.asks();
    let mtu = (!in_lab).then_some(mtu);
    Ok(Prepared { told, used, job, mtu, consent, claims, closely, start_at, among, folder, names })
}

impl Prepared {
    /// Starts it.
    pub fn start(self, number: u64, name: String, grants: &Grants) -> Result<Run, Fault> {
        let board = Arc::new(Board::default());
        if self.closely {
            board.watch_closely();
        }
        let session = Session {
            consent: self.consent,
            stop: Arc::default(),
            deaf: Arc::new(AtomicBool::new(false)),
            board,
            together: None,
            start_at: self.start_at,
            among: self.among.clone(),
            elsewhere: None,
            guardian: grants.guardian.clone(),
        };
        let handle = job::start(self.job.clone(), session)
            .map_err(|error| Fault::new(FaultKind::Limit, format!("no thread for the run: {error}")))?;
        let handle = (handle, self.among.hold);
        Ok(Run::new((number, name), (self.job, self.mtu), handle, (self.folder, self.names), self.claims))
    }
}

fn read(value: Value) -> Result<Job, Fault> {
    match File::of(value) {
        Ok(mut file) if file.jobs.len() == 1 => Ok(file.jobs.remove(0)),
        Ok(_) => Err(Fault::usage("job.start: `job` is one job")),
        Err(BadFile::Member { path, what }) => Err(Fault::of_setting(FaultKind::Usage, &path, what)),
        Err(BadFile::Yaml(error)) => Err(Fault::usage(format!("job.start: {error}"))),
    }
}

/// What the client consents to is all that the job asks for.
fn agrees(agree: Agree, job: &Job) -> Result<(), Fault> {
    let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
    let consent = Consent {
        yes_disrupt: agree.yes_disrupt,
        command: agree.command,
        // Files that are written are the run's own.
        write: job.asks().write,
        read: paths(agree.read),
        addresses: agree.addresses,
        public_targets: agree.public_targets,
        own_prefixes: agree.source_prefixes,
    };
    consent.covers(job).map_err(|lacks| {
        Fault::new(FaultKind::Refused, format!("job.start: {lacks}")).remedy("name it in `agree`")
    })
}

/// Trials and searches need the tester for themselves.
fn beside(job: &Job, going: &[Arc<Run>]) -> Result<(), Fault> {
    let alone = going.iter().find(|run| run.job.runs_alone());
    let run = match (job.runs_alone(), going.first(), alone) {
        (_, _, Some(run)) | (true, Some(run), _) => run,
        _ => return Ok(()),
    };
    let what = format!("{} goes on, and nothing runs beside trials and searches", run.name);
    Err(Fault::new(FaultKind::Refused, what).remedy("wait until it is over"))
}

/// Interfaces that runs of this client share.
pub(crate) type Shared = BTreeMap<Identity, Weak<Claimed>>;

/// Holds each interface once; `shared`: for those that share it.
fn claim(
    found: &[(Used, Place)],
    name: &str,
    mut shared: Option<&mut Shared>,
) -> Result<Vec<Arc<Claimed>>, Fault> {
    let who = format!("run {name} of the agent with process ID {}", std::process::id());
    let mut held = Vec::new();
    let mut claims = Vec::new();
    for (used, place) in found {
        let Some(identity) = place.identity().filter(|identity| !held.contains(identity)) else { continue };
        held.push(identity);
        let of_others = shared.as_ref().and_then(|shared| shared.get(&identity)).and_then(Weak::upgrade);
        if let Some(claim) = of_others {
            claims.push(claim);
            continue;
        }
        let claim = claim_interface(identity, &who).map_err(|holder| {
            let what = format!("{} is held by {holder}", used.name);
            Fault::of_setting(FaultKind::Refused, &used.setting, what).remedy("wait until that is over")
        })?;
        let claim = Arc::new(claim);
        if let Some(shared) = &mut shared {
            shared.retain(|_, claim| claim.strong_count() > 0);
            shared.insert(identity, Arc::downgrade(&claim));
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// Where the files of a job are.
struct Files<'a> {
    grants: &'a Grants,
    contents: &'a mut Contents,
    /// For paths the contents.
    named: &'a BTreeMap<String, String>,
    folder: &'a Path,
    names: Vec<Named>,
    /// For paths where they are; the same file has one place.
    taken: BTreeMap<(String, bool), String>,
    /// What says the frames is a file.
    of_file: bool,
}

const NO_TEXT: &str = "it must be text in UTF-8";
/// Bytes of a file's name: Linux has no longer ones.
const NAME_BYTES: usize = 255;

impl Files<'_> {
    /// A setting is a file: is it what says the frames?
    fn is_traffic(&mut self, setting: &str) {
        self.of_file |= matches!(setting, "what" | "bench.what" | "bench.back");
    }

    fn place(&mut self, setting: &str, kind: FileOf, path: &str) -> Result<Option<String>, Fault> {
        let written = kind == FileOf::Written;
        let content = self.named.get(path);
        if content.is_none() && !written {
            let Some(found) = self.grants.file(setting, path, kind)? else { return Ok(None) };
            self.is_traffic(setting);
            let found =
                found.to_str().ok_or_else(|| Fault::of_setting(FaultKind::Usage, setting, NO_TEXT))?;
            if found != path {
                self.names.push(Named { real: found.to_owned(), named: path.to_owned(), written });
            }
            return Ok(Some(found.to_owned()));
        }
        self.is_traffic(setting);
        if path == "-" || path.starts_with("-.") {
            self.grants.file(setting, "-", kind)?;
        }
        if let Some(place) = self.taken.get(&(path.to_owned(), written)) {
            return Ok(Some(place.clone()));
        }
        let usage = |what: &str| Fault::of_setting(FaultKind::Usage, setting, what);
        let own = Path::new(path).file_name().filter(|_| !path.ends_with('/'));
        let own = own.ok_or_else(|| usage("it must end with a file's name"))?;
        if own.len() > NAME_BYTES || path.contains('\0') {
            return Err(usage("no file can have that name: it has more than 255 bytes, or a byte 0"));
        }
        let folder = self.folder.join(self.taken.len().to_string());
        let room = |error: std::io::Error| {
            Fault::new(FaultKind::Limit, format!("{setting}: there is no room for its file: {error}"))
        };
        std::fs::create_dir_all(&folder).map_err(room)?;
        let place = folder.join(own);
        if let Some(content) = content {
            let from = self.contents.path(content)?;
            // What may be written must not change the content.
            let put = if written {
                std::fs::copy(&from, &place).map(|_| ())
            } else {
                std::fs::hard_link(&from, &place)
            };
            put.map_err(room)?;
        }
        let real = place.to_str().ok_or_else(|| usage(NO_TEXT))?.to_owned();
        self.names.push(Named { real: real.clone(), named: path.to_owned(), written });
        self.taken.insert((path.to_owned(), written), real.clone());
        Ok(Some(real))
    }

    /// A content that the job has no path for was meant for something.
    fn all_taken(&self) -> Result<(), Fault> {
        let known = |path: &String| {
            [false, true].iter().any(|written| self.taken.contains_key(&(path.clone(), *written)))
        };
        match self.named.keys().find(|path| !known(path)) {
            None => Ok(()),
            Some(path) => {
                let what = format!(
                    "job.start: no setting of the job is the path `{}`",
                    report::units::printable(path)
                );
                Err(Fault::usage(what).remedy("write it in `contents` as it stands in the job"))
            }
        }
    }
}

/// The rate that is asked for, in percent of the job's own.
pub(crate) fn percent(job: &Job, asked: &JobRate) -> Result<u32, Fault> {
    let percent = match (&asked.rate, asked.percent) {
        (Some(rate), None) => in_percent(job, rate)?,
        (None, Some(percent)) => u64::from(percent),
        _ => return Err(Fault::usage("job.rate: give either `rate` or `percent`")),
    };
    if !PERCENT.contains(&percent) {
        let what = format!("job.rate: {percent} percent of the job's own rate: 10 to 1000 are possible");
        return Err(Fault::usage(what));
    }
    Ok(u32::try_from(percent).unwrap_or(u32::MAX))
}

fn in_percent(job: &Job, text: &str) -> Result<u64, Fault> {
    let usage = |what: String| Fault::of_setting(FaultKind::Usage, "rate", what);
    let asked: Rate = text.parse().map_err(|error| usage(format!("{error}")))?;
    let own = match job {
        Job::Send(send) => send.rate.as_ref(),
        Job::Replay(replay) => replay.rate.as_ref(),
        _ => None,
    };
    let Some(own) = own else {
        return Err(usage("the job has no rate of its own".to_owned()).remedy("give `percent`"));
    };
    let fraction = |rate: Rate, like: Rate| -> Option<(u128, u128)> {
        match (rate, like) {
            (Rate::Frames(rate), Rate::Frames(_))
            | (Rate::Flows(rate), Rate::Flows(_))
            | (Rate::Percent(rate), Rate::Percent(_)) => {
                Some((rate.numerator.into(), rate.denominator.into()))
            }
            (Rate::Bits { bits_per_second, layer1 }, Rate::Bits { layer1: other, .. }) if layer1 == other => {
                Some((bits_per_second.into(), 1))
            }
            _ => None,
        }
    };
    let both = fraction(asked, **own).zip(fraction(**own, asked));
    let Some(((numerator, denominator), (own_numerator, own_denominator))) = both else {
        return Err(usage(format!("{asked} is of another unit than the job's rate, {own}")));
    };
    let above = numerator.saturating_mul(own_denominator).saturating_mul(100);
    let below = denominator.saturating_mul(own_numerator).max(1);
    Ok(u64::try_from((above + below / 2) / below).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(text: &str) -> Job {
        File::read(&format!("{{schema: netdyno.job/1, {text}}}"), "job").expect("a job").jobs.remove(0)
    }

    #[test]
    fn a_rate_is_changed_in_the_unit_of_the_jobs_own() {
        let send = job("kind: send, what: ipv4/udp, lab: {}, rate: 10kpps");
        let of = |rate: Option<&str>, percent: Option<u32>| {
            let asked = JobRate { run: "r1".into(), rate: rate.map(str::to_owned), percent };
            super::percent(&send, &asked).map_err(|fault| fault.message)
        };
        assert_eq!(of(Some("5kpps"), None), Ok(50));
        assert_eq!(of(Some("3333.4pps"), None), Ok(33));
        assert_eq!(of(None, Some(200)), Ok(200));
        for (rate, percent, says) in [
            (Some("5mbps"), None, "rate: 5 Mbit/s is of another unit than the job's rate, 10kpps"),
            (Some("5"), None, "rate: `5`"),
            (Some("1pps"), None, "job.rate: 0 percent"),
            (None, Some(1001), "job.rate: 1001 percent"),
            (None, None, "job.rate: give either"),
            (Some("5kpps"), Some(50), "job.rate: give either"),
        ] {
            let said = of(rate, percent).expect_err(says);
            assert!(said.starts_with(says), "{said}");
        }
        let top = job("kind: send, what: ipv4/udp, lab: {}");
        let asked = JobRate { run: "r1".into(), rate: Some("5pps".into()), percent: None };
        assert!(super::percent(&top, &asked).is_err_and(|fault| fault.data.remedy.is_some()));
    }

    #[test]
    fn what_the_client_agrees_to_must_be_all_that_the_job_asks_for() {
        let disrupts =
            job("kind: send, what: ipv4/udp, links: [{on: eth0}], rate: 1pps, yes_disrupt: [eth0]");
        let fault = agrees(Agree::default(), &disrupts).expect_err("it is not named");
        assert_eq!(fault.data.kind, FaultKind::Refused);
        assert!(fault.message.contains("eth0"), "{fault}");
        agrees(Agree { yes_disrupt: vec!["eth0".into()], ..Agree::default() }, &disrupts).expect("named");
    }
}
