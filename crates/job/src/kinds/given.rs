//! Frames of a source that is given beside the job: whatever implements [`engine::source::Frames`].

use super::replay::stream_buffer;
use super::shared::{self, Metering, Pace, Through};
use crate::run::{self, Setup};
use crate::session::Session;
use anyhow::{Result, bail};
use engine::Job;
use engine::source::Source;
use report::{Report, RequestedRate, Resolved};
use spec::{Engine, Pattern, Send, Sign, Word};
use traffic::Schedule;

/// As `send`, with the frames of `source`; `job.what` is only what they are called.
///
/// # Errors
/// As any job: what was asked for that cannot be, or why it was not done.
pub fn run(job: &Send, source: Source, session: Session) -> Result<Report> {
    refuse(job, None)?;
    let told = report::Source::Synthetic { description: job.what.clone() };
    carry_out(job, source, (told, None), session)
}

/// The frames that a plugin yields: as [`run()`], reported as `told`, made with that seed.
///
/// # Errors
/// As [`run()`].
pub fn of_plugin(
    job: &Send,
    mut source: Source,
    (told, seed): (report::Source, u64),
    session: Session,
) -> Result<Report> {
    let name = match &told {
        report::Source::Plugin { name, .. } => Some(name.as_str()),
        _ => None,
    };
    refuse(&Send { seed: None, ..job.clone() }, name)?;
    let measured = job.links.iter().any(|link| link.measure.is_some());
    if measured && job.sign == Sign::Auto {
        source.sign(0);
    }
    carry_out(job, source, (told, Some(seed)), session)
}

fn carry_out(
    job: &Send,
    mut source: Source,
    (told, seed): (report::Source, Option<u64>),
    session: Session,
) -> Result<Report> {
    let pace = Pace::from(job);
    shared::check_pace(&pace)?;
    let link = job.links.first();
    let sending = link.and_then(|link| link.on.as_deref());
    let through = Through::of(job.through(), &session.consent);
    let metering = Metering {
        measure: link.and_then(|link| link.measure.clone()),
        round_trip: job.round_trip,
        how: job.meter.clone(),
    };
    let place = shared::sending_place(sending, &through)?;
    let rate = match pace.rate {
        Some(rate) => {
            let schedule = shared::schedule(rate, place.as_ref(), None)?;
            let asked = shared::requested_rate(rate, &schedule);
            if !source.pace(schedule) {
                bail!(
                    "rate: these frames have times of their own, which their source does not change: leave it out"
                );
            }
            asked
        }
        None if source.is_paced() => {
            RequestedRate { text: "as the source says".to_owned(), ..RequestedRate::default() }
        }
        None => RequestedRate { text: traffic::Rate::TopSpeed.to_string(), ..RequestedRate::default() },
    };
    if session.among.part.is_some_and(|(_, of)| of > 1) {
        bail!(
            "several agents send frames of expressions and scenarios only: a plugin that yields frames one by one is one agent's"
        );
    }
    if (job.sign == Sign::Always || job.round_trip) && !source.sign(0) {
        bail!("sign: this source cannot sign its frames: leave it out");
    }
    let facts = source.facts();
    let rx = shared::measuring_place(&metering, &through, facts.paced, sending)?;
    if let (Some(place), Some(program)) = (&place, source.program()) {
        shared::check_mtu(program, place)?;
    }
    let cpus = shared::cpus(&through, place.as_slice())?;
    if let report::Source::Plugin { name, .. } = &told
        && cpus.len() > 1
        && !matches!(source.schedule(), Some(Schedule::TopSpeed | Schedule::Frames { .. }))
    {
        bail!(
            "plugin `{name}`: it yields frames one by one, and several cores share those only at an even rate in frames: give a `.rate` in frames, or one core"
        );
    }
    let total = match (facts.frames, pace.count) {
        (Some(own), Some(count)) => Some(own.min(count)),
        (own, count) => own.or(count),
    };
    let resolved = Resolved {
        source: Some(told),
        seed,
        engine: Some(job.engine.name().to_owned()),
        rate: Some(rate),
        count: pace.count,
        duration_ns: pace.duration.map(|d| d.as_nanos() as u64),
        interfaces: shared::interfaces(place.as_slice(), rx.as_slice(), metering.round_trip),
        ..Resolved::default()
    };
    let longest = facts.longest.unwrap_or_else(|| stream_buffer(place.as_ref(), None));
    session.stop_in_order();
    let sends = Job {
        count: pace.count,
        duration: pace.duration,
        pacing: pace.pacing(place.as_slice()),
        stamps: shared::stamps(metering.how.clock, &session.among),
        ..Job::of(source)
    };
    run::run(Setup {
        resolved,
        total,
        endless: total.is_none() && pace.duration.is_none(),
        patient: true,
        trace: super::send::traced(job, false),
        tx: place.filter(|_| job.engine != Engine::Null).into_iter().collect(),
        rx: rx.into_iter().collect(),
        round_trip: job.round_trip,
        capture: job.meter.capture.clone(),
        cpus,
        priority: pace.priority(facts.paced),
        session,
        ..Setup::of(
            "send",
            shared::open_by(&through, false, sends.source.program().map(|program| &**program))?,
            sends,
            longest,
        )
    })
}

/// Refuses members that are about frames which are made here. `plugin`: which one yields these.
fn refuse(job: &Send, plugin: Option<&str>) -> Result<()> {
    if job.links.len() > 1 || job.pattern == Pattern::Mesh {
        if let Some(name) = plugin {
            bail!(
                "plugin `{name}`: it yields frames one by one, which leave by one interface: name one, or take a plugin of the world `compile`"
            );
        }
        bail!("links: the frames of a source that is given leave by one interface: name one");
    }
    let members = [
        ("size", job.size.is_some()),
        ("seed", job.seed.is_some()),
        ("shape", job.shape.is_some()),
        ("resolve", job.resolve),
        ("meter.check_content", job.meter.check_content),
    ];
    match members.into_iter().find(|(_, given)| *given) {
        Some((member, _)) => {
            if let Some(name) = plugin {
                let member = member.trim_start_matches("meter.");
                bail!(
                    "plugin `{name}`: it yields frames one by one, and `.{member}` does nothing to those: leave it out, and look for an option of the plugin's"
                );
            }
            bail!("{member}: it does nothing to frames of a source that is given: leave it out")
        }
        None => Ok(()),
    }
}
