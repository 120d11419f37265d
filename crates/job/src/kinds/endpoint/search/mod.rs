//! `netdyno search socket-buffer` and `netdyno search transactions`: one endpoint test, done again and again with another
//! setting, as a search of crate `trial` wants it.
//!
//! ```text
//!   trial::Sweep | trial::Climb -- Wanted --> trials::course::drive --> Between: the endpoint test --> one row of the result
//!        ^                                                                      |
//!        '--------------------------------- Outcome -----------------------------'
//! ```

mod climb;
mod lab;
mod sweep;
mod tester;

use super::outcome;
use super::parts::{Part, Parts};
use super::{Bench, token};
use crate::kinds::{Run, passive};
use crate::panel::Names;
use crate::session::Session;
use crate::trials::course::{Course, drive, go_on};
use crate::trials::nanos;
use ::transport::native::{Host, Place};
use anyhow::{Context as _, Result};
use report::{Code, EndpointCounts, EndpointSearch as Found, EndpointSearchKind, Report, Resolved, units};
use snapshot::Title;
use spec::{Endpoint, EndpointFind, EndpointSearch, Written};
use std::time::Duration;
use tester::Between;
use trial::{Climb, Left, Outcome, Search, Sweep, Wanted};

/// A trial is measured for so long, unless said; in a lab
const LASTS: Duration = Duration::from_secs(5);
/// for so long.
const IN_A_LAB: Duration = Duration::from_secs(1);
/// What comes before is not: connections find their pace.
const WARM_UP: Duration = Duration::from_millis(200);
/// In flight in a closed loop that shows what can be done, over each connection.
const CLOSED_LOOP: u32 = 16;

/// What is done again and again.
struct Tested<'a> {
    job: &'a EndpointSearch,
    /// The test, with the defaults of searches.
    args: &'a Endpoint,
    parts: &'a Parts,
}

impl Tested<'_> {
    /// How long a trial is measured.
    fn trial_ns(&self) -> u64 {
        nanos(self.parts.measured())
    }
}

/// One of the searches.
enum Sought {
    Sweep(Sweep),
    Climb(Box<Climb>),
}

impl Sought {
    fn of(tested: &Tested<'_>) -> Sought {
        match &tested.job.find {
            EndpointFind::SocketBuffer(find) => Sought::Sweep(sweep::plan(find, tested)),
            EndpointFind::Transactions(find) => Sought::Climb(Box::new(climb::plan(find, tested))),
        }
    }

    fn search(&self) -> &dyn Search {
        match self {
            Sought::Sweep(sweep) => sweep,
            Sought::Climb(climb) => climb.as_ref(),
        }
    }

    /// What the trials come to.
    fn judge(&self, report: &mut Report, found: &mut Found, tested: &Tested<'_>, server: Host) {
        let trials = (found.trials.as_slice(), found.complete);
        match (self, &tested.job.find) {
            (Sought::Sweep(sweep), EndpointFind::SocketBuffer(find)) => {
                found.socket_buffer = Some(sweep::judge(report, trials, (find, sweep), tested, server));
            }
            (Sought::Climb(climb), EndpointFind::Transactions(find)) => {
                found.transactions = Some(climb::judge(report, trials, (find, climb), tested));
            }
            _ => {}
        }
    }
}

impl Search for Sought {
    fn next(&self) -> Option<Wanted> {
        self.search().next()
    }

    fn tell(&mut self, outcome: &Outcome) {
        match self {
            Sought::Sweep(sweep) => sweep.tell(outcome),
            Sought::Climb(climb) => climb.tell(outcome),
        }
    }

    fn left(&self) -> Left {
        self.search().left()
    }

    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        self.search().bounds()
    }
}

impl Run for EndpointSearch {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, None, &session)
    }
}

/// Searches, or goes on with what an earlier result of the same search has.
///
/// # Errors
/// What was asked for that cannot be, or that the earlier result is of another search.
pub fn run(job: &EndpointSearch, earlier: Option<Report>, session: &Session) -> Result<Report> {
    passive::check(job)?;
    match &job.lab {
        None => {
            let host = &job.endpoint.host;
            let place =
                Place::find(host, job.endpoint.family.v6()).with_context(|| format!("looking up {host}"))?;
            search(job, earlier, session, place)
        }
        Some(asked) => lab::within(asked, |place| search(job, earlier, session, place)),
    }
}

/// The test of all trials: what is asked for, with the defaults of searches.
fn tested(job: &EndpointSearch) -> Endpoint {
    let mut args = job.endpoint.clone();
    let lasts = if job.lab.is_some() { IN_A_LAB } else { LASTS };
    let written = |time: Duration| format!("{}ms", time.as_millis()).parse::<Written<Duration>>().ok();
    args.duration = args.duration.or_else(|| written(lasts));
    args.warm_up = args.warm_up.or_else(|| written(WARM_UP));
    (args.confidence, args.iterations) = (None, None);
    args
}

fn search(job: &EndpointSearch, earlier: Option<Report>, session: &Session, place: Place) -> Result<Report> {
    let args = tested(job);
    let token = args.token_file.as_deref().map(token).transpose()?;
    let run = format!("{}-{}", clocks::now(clocks::Clock::Realtime), std::process::id());
    session.stop_in_order();
    let bench = Bench { args: &args, session, place, token, run };
    let parts = Parts::of(&args, &bench.place)?;
    let tested = Tested { job, args: &args, parts: &parts };
    let mut report = Report::new("search");
    report.resolved = Resolved { duration_ns: Some(tested.trial_ns()), ..Resolved::default() };
    report.environment = crate::environment::collect();
    // Who is not there is known before anything is said to begin.
    session.others_are_there();
    let client = bench.connect(&parts)?;
    let (ends, host) = (client.ends(), client.host().clone());
    client.bye();
    session.meet()?;
    let title = Title {
        engine: Some("sockets".to_owned()),
        tx: Some(bench.place.to_string()),
        ..passive::title("search")
    };
    let panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let kept = earlier.and_then(|report| report.result.endpoint_search).map(|search| search.trials);
    let course = Course::new(kept.unwrap_or_default());
    let mut between = Between { tested: &tested, bench: &bench, panel, course, last: None };
    let mut sought = Sought::of(&tested);
    go_on(&mut sought, &mut between)?;
    session.say(Code::Begun, begun(&bench, job, &parts, &host, sought.left().trials));
    let complete = drive(&mut sought, &mut between)?;
    if complete {
        between.course.check_used()?;
    }
    session.board.end();
    let Between { mut course, last, .. } = between;
    let mut found = Found {
        complete,
        elapsed_ns: nanos(course.elapsed()),
        local_settings: outcome::settings(&Host::here()),
        remote_settings: outcome::settings(&host),
        ..described(&tested, &bench)
    };
    outcome::untouched(&mut report, &args, &parts, last.iter().flat_map(|round| &round.outcomes));
    let here = ends.is_some_and(|[own, peer]| own.ip() == peer.ip());
    if here || job.lab.is_some() {
        let said =
            "both ends are on this host: they share its processors, and no network of its own lies between";
        report.warnings.add(Code::EndsShared, said);
    }
    if !complete {
        course.judge_incomplete(&mut report, None);
    }
    found.trials = std::mem::take(&mut course.rows);
    sought.judge(&mut report, &mut found, &tested, host);
    report.result.endpoint_search = Some(found);
    Ok(report)
}

/// A result that has no trials yet.
fn described(tested: &Tested<'_>, bench: &Bench<'_>) -> Found {
    let Tested { job, args, parts } = tested;
    let transacts = args.test.transacts();
    Found {
        kind: EndpointSearchKind::from(job.find.name()),
        test: args.test.to_string(),
        server: bench.place.to_string(),
        connections: u64::from(args.parallel.unwrap_or(1)),
        trial_ns: tested.trial_ns(),
        warm_up_ns: nanos(parts.lasts().saturating_sub(parts.measured())),
        counts: if transacts { EndpointCounts::Transactions } else { EndpointCounts::Bits },
        ..Found::default()
    }
}

/// What is said as a search begins, with about so many trials before it.
fn begun(bench: &Bench<'_>, job: &EndpointSearch, parts: &Parts, server: &Host, left: u64) -> String {
    let took = if parts.all.iter().any(Part::is_transactions) { "" } else { ", each as fast as it goes" };
    format!(
        "{} by {} with {} ({}, Linux {}): about {} of {}{took}; Ctrl-C ends and reports",
        job.find.name(),
        bench.args.test,
        bench.place,
        server.program,
        server.kernel,
        units::counted(left, "trial"),
        units::time(nanos(parts.lasts())),
    )
}
