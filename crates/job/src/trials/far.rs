//! Trials whose ports are at agents of other hosts: each is one job that sends at one and is measured at another, which somebody
//! else carries out ([`Elsewhere`]).

use super::offer::Offer;
use super::ports::{Ports, Way};
use crate::session::{Elsewhere, Session};
use anyhow::{Context, Result, bail};
use report::{Report, units};
use spec::{Bench, Consent, Find, Job, Link, Meter, Pattern, Send, Sign, Written};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use traffic::expr::Size;
use traffic::{Rate, Schedule};

/// Why something is refused.
pub const ONE_PLACE: &str =
    "a trial between agents is one job from one of them to another; give all ports to one agent for that";

/// Frames that teach a switch.
const TEACHING: u64 = 3;

/// Who carries out the runs, and what all of them have alike.
#[derive(Debug)]
pub struct Far {
    runs: Arc<dyn Elsewhere>,
    like: Send,
}

/// Refuses what takes both ends in one place.
///
/// # Errors
/// What of the bench that is.
pub fn check(bench: &Bench) -> Result<()> {
    match () {
        () if bench.pattern == Pattern::Mesh => bail!("`.pattern: mesh`: {ONE_PLACE}"),
        () if bench.both_ways => bail!("`.both_ways`: {ONE_PLACE}"),
        () if bench.plugin.is_some() => bail!("`.plugin`: {ONE_PLACE}"),
        () if bench.links.len() > 1 => bail!("`.on` several times: {ONE_PLACE}"),
        () => Ok(()),
    }
}

/// Refuses searches that look at each arrival.
///
/// # Errors
/// It is one of them.
pub fn check_search(find: &Find) -> Result<()> {
    match find {
        Find::Recovery(_) | Find::Reset(_) | Find::Flows(_) => {
            bail!("`search {}`: it looks at arrivals one by one, and {ONE_PLACE}", find.name())
        }
        Find::Throughput(_) | Find::Latency(_) | Find::Loss(_) | Find::Burst(_) | Find::Soak(_) => Ok(()),
    }
}

impl Far {
    /// Of the ports that were found there.
    ///
    /// # Errors
    /// These trials take one place.
    pub fn of(bench: &Bench, ports: &Ports, runs: &Arc<dyn Elsewhere>, session: &Session) -> Result<Far> {
        let [way] = &ports.ways[..] else { bail!("`.on` several times: {ONE_PLACE}") };
        Ok(Far { runs: Arc::clone(runs), like: like(bench, way, &session.consent) })
    }

    /// Sends an offer of frames, signed, and returns what came of all of it.
    ///
    /// # Errors
    /// It could not be carried out.
    pub fn run(&self, what: &str, offer: &Offer, seed: u64, stop: &Arc<AtomicBool>) -> Result<Report> {
        if offer.closely || offer.command.is_some() {
            bail!("a trial that looks at each arrival: {ONE_PLACE}");
        }
        let job = Send {
            what: what.to_owned(),
            seed: Some(seed),
            size: Some(size_in_words(&offer.size)?),
            rate: Some(rate_in_words(&offer.schedule)?),
            duration: offer.duration.map(Written::from),
            count: offer.count.map(Written::from),
            ..self.like.clone()
        };
        let mut report = self.runs.carry_out(&Job::from(job), stop)?;
        if let Some((name, why)) =
            report.result.agents.iter().find_map(|agent| Some((&agent.name, agent.error.as_ref()?)))
        {
            bail!("{} was lost in a trial: {}", units::printable(name), units::printable(why));
        }
        // It is a part of the trial: what it was told is none of the user's words.
        report.requested = None;
        Ok(report)
    }

    /// Refuses what cannot be: so many frames that the schedule has no place for them.
    ///
    /// # Errors
    /// Whoever sends tells of that many.
    pub fn check(report: &Report, due: Option<u64>) -> Result<()> {
        let sent = report.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
        match due {
            Some(due) if sent > due.saturating_mul(2).saturating_add(1000) => {
                bail!(
                    "the agent that sends tells of {} frames, and {} were due",
                    units::count(sent),
                    units::count(due)
                )
            }
            _ => Ok(()),
        }
    }

    /// Three frames from where those of trials will arrive, no faster than these.
    ///
    /// # Errors
    /// They could not be sent.
    pub fn teach(&self, from: &str, what: &str, offer: &Offer, stop: &Arc<AtomicBool>) -> Result<()> {
        let rate = match offer.schedule {
            Schedule::Frames { frames, per_ns } if frames.saturating_mul(1_000_000) < per_ns => {
                rate_in_words(&offer.schedule)?
            }
            _ => words("1000pps")?,
        };
        let link = Link { on: Some(from.to_owned()), measure: None };
        let job = Send {
            what: what.to_owned(),
            links: vec![link],
            size: Some(size_in_words(&offer.size)?),
            rate: Some(rate),
            count: Some(Written::from(TEACHING)),
            sign: Sign::Never,
            meter: Meter::default(),
            ..self.like.clone()
        };
        let taught = self.runs.carry_out(&Job::from(job), stop);
        let taught = taught.with_context(|| format!("learning frames from {from}"))?;
        let left = taught.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
        if left < TEACHING && !stop.load(std::sync::atomic::Ordering::Relaxed) {
            bail!("learning frames from {from}: {left} of {TEACHING} left");
        }
        Ok(())
    }
}

/// What all trials' runs have alike.
fn like(bench: &Bench, way: &Way, consent: &Consent) -> Send {
    let link = Link { on: way.sender_names().next().cloned(), measure: way.receiver_names().next().cloned() };
    Send {
        links: vec![link],
        sign: Sign::Always,
        catch_up: Some(1.0),
        no_real_time: bench.no_real_time,
        engine: bench.engine,
        calibration: bench.calibration.clone(),
        cores: bench.cores.clone(),
        tx_timestamps: bench.tx_timestamps,
        meter: Meter { how: bench.how, timestamps: bench.timestamps, ..Meter::default() },
        yes_disrupt: consent.yes_disrupt.clone(),
        ..Send::default()
    }
}

fn words<T: std::str::FromStr<Err = String>>(text: &str) -> Result<T> {
    text.parse().map_err(|why: String| anyhow::anyhow!("{text}: {why}"))
}

/// A schedule of trials as a job says it: to a thousandth of a frame.
fn rate_in_words(schedule: &Schedule) -> Result<Written<Rate>> {
    let Schedule::Frames { frames, per_ns } = schedule else {
        return match schedule {
            Schedule::TopSpeed => words("top"),
            _ => bail!("a trial's frames come evenly or at top speed: this is a defect of netdyno"),
        };
    };
    let thousandths = u128::from(*frames) * 1_000_000_000_000 / u128::from((*per_ns).max(1));
    words(&format!("{}.{:03}pps", thousandths / 1000, thousandths % 1000))
}

/// Sizes as a job says them.
fn size_in_words(size: &Size) -> Result<Written<Size>> {
    let joined = |all: Vec<String>| all.join(",");
    let text = match size {
        Size::Fixed(size) => size.to_string(),
        Size::List(sizes) => joined(sizes.iter().map(u32::to_string).collect()),
        Size::Random { min, max } => format!("random({min}..{max})"),
        Size::Mix(parts) => joined(parts.iter().map(|(size, weight)| format!("{size}:{weight}")).collect()),
    };
    let written: Written<Size> = words(&text)?;
    if *written != *size {
        bail!("{text}: these sizes mean others in a job: this is a defect of netdyno");
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::schedule;

    #[test]
    fn what_a_trial_offers_means_the_same_in_a_job() {
        for rate in [0.001, 1.0, 1907.199, 14_880_952.381, 123_456_789.5] {
            let schedule = schedule(rate);
            let written = rate_in_words(&schedule).expect("a rate");
            let Rate::Frames(exact) = *written else { panic!("{written}") };
            assert!((exact.as_f64() - rate).abs() < 0.001, "{written}");
        }
        assert_eq!(rate_in_words(&Schedule::TopSpeed).map(|rate| *rate).ok(), Some(Rate::TopSpeed));
        for text in ["64", "64,512,1518", "random(64..1518)", "64:7,570:4,1518:1", "imix", "aaafg", "64..80"]
        {
            let size: Size = text.parse().expect("sizes");
            assert_eq!(size_in_words(&size).map(|written| written.into_value()).ok(), Some(size), "{text}");
        }
    }
}
