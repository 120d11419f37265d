//! Trials and searches whose ports are at several agents: they are done here, and each of their runs by the agents.

use crate::check::{HostTold, InterfaceTold};
use crate::client::{Client, Patience};
use crate::joint::{Asked, NotDone, Turn, one_run};
use crate::plan::{Unplanned, agents_of, place};
use crate::reach::Reach;
use job::{Elsewhere, FarPort, Session};
use report::Report;
use spec::{Consent, Job};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// So many runs later frames have the same numbers again: what a device held for that long is taken for no other run's.
const TURNS: u32 = 8;

/// Is it a job of many runs, with ports at several agents?
///
/// # Errors
/// An interface is at none.
pub(crate) fn are_apart(job: &Job, agents: &[Reach]) -> Result<bool, Unplanned> {
    Ok(matches!(job, Job::Trial(_) | Job::Search(_)) && agents_of(job, agents)?.len() > 1)
}

/// Does the trials, each by these agents.
///
/// # Errors
/// They came to no result.
pub(crate) fn carry_out(
    job: &Job,
    agents: &[Reach],
    session: &Session,
    asked: &Asked,
) -> Result<Report, NotDone> {
    let runs = Runs {
        agents: agents.to_vec(),
        asked: asked.clone(),
        consent: session.consent.clone(),
        begun: AtomicU32::new(0),
        stop: Arc::clone(&session.stop),
    };
    let session = Session {
        consent: session.consent.clone(),
        stop: Arc::clone(&session.stop),
        deaf: Arc::clone(&session.deaf),
        board: Arc::clone(&session.board),
        elsewhere: Some(Arc::new(runs)),
        ..Session::default()
    };
    job::carry_out(job, session).map_err(NotDone::Trials)
}

/// Runs by these agents.
#[derive(Debug)]
struct Runs {
    agents: Vec<Reach>,
    asked: Asked,
    consent: Consent,
    begun: AtomicU32,
    stop: Arc<AtomicBool>,
}

impl Elsewhere for Runs {
    fn port(&self, name: &str) -> anyhow::Result<FarPort> {
        let found = place(name, &self.agents)
            .and_then(|(interface, agent)| Some((interface, self.agents.get(agent)?)));
        let Some((interface, reach)) = found else { anyhow::bail!("{name}: there is no such agent") };
        let told = self.look(reach, interface).map_err(|lost| {
            let remedy = lost.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            anyhow::anyhow!("{}: {lost}{remedy}: nothing was sent", reach.name)
        })?;
        // A virtual device states a speed and does not keep to it.
        Ok(FarPort {
            mac: told.mac.as_deref().and_then(|mac| Some(mac.parse::<wire::Mac>().ok()?.0)),
            bits_per_second: told.speed_bits_per_second.filter(|_| told.kind.is_none()),
        })
    }

    fn carry_out(&self, job: &Job, stop: &Arc<AtomicBool>) -> anyhow::Result<Report> {
        // What it says on its way is of one run of many.
        let session = Session { consent: self.consent.clone(), stop: Arc::clone(stop), ..Session::default() };
        let turn = Turn { number: self.begun.fetch_add(1, Relaxed) % TURNS, of: TURNS, trials: true };
        Ok(one_run(job, &self.agents, &session, (&self.asked, turn))?)
    }
}

impl Runs {
    fn look(&self, reach: &Reach, interface: &str) -> Result<InterfaceTold, crate::Lost> {
        let patience = Patience { answer: self.asked.answer, stop: Arc::clone(&self.stop) };
        let (mut client, _) = Client::reach(reach, patience)?;
        let told: HostTold = client.host(&[interface.to_owned()], false)?;
        told.named.into_iter().next().ok_or_else(|| crate::Lost::Nonsense {
            what: "the answer to `host` tells of no interface".to_owned(),
        })
    }
}
