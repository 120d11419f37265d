//! The links of a command's interfaces: waited for before anything is sent, and followed until it is over.
//!
//! ```text
//!   Ends::open -> attach programs, open engines -> wait -> Following -> end: into the report
//! ```

use crate::place::Place;
use crate::session::Session;
use anyhow::Result;
use port::carrier::{Link, Loss, Watcher, What, wait};
use report::{Code, LinkChange, LinkEvent, Report, units};
use std::sync::atomic::AtomicBool;

/// Up to here nobody need know that a link was waited for.
const WORTH_A_NOTE_NS: u64 = 5_000_000;

/// The interfaces of a command, before it does anything to them.
#[derive(Debug)]
pub struct Ends {
    links: Vec<Link>,
    names: Vec<Name>,
}

/// As the user knows an interface, and what it is for.
#[derive(Debug)]
struct Name {
    spec: String,
    role: String,
}

impl Ends {
    /// None yet.
    pub fn none() -> Ends {
        Ends { links: Vec::new(), names: Vec::new() }
    }

    /// One whose carrier the run needs: without it nothing begins.
    pub fn needed(&mut self, place: &Place, role: &str) -> Result<()> {
        self.add(place.link()?, place, role);
        Ok(())
    }

    /// One that only receives, and may be there before its cable is.
    pub fn optional(&mut self, place: &Place, role: &str) -> Result<()> {
        self.add(place.link()?.optional(), place, role);
        Ok(())
    }

    fn add(&mut self, link: Link, place: &Place, role: &str) {
        self.links.push(link);
        self.names.push(Name { spec: place.spec.clone(), role: role.to_owned() });
    }

    /// Waits for all carriers, after programs were attached, and says in `report` how long that took.
    pub fn wait(mut self, session: &Session, report: &mut Report) -> Result<Following> {
        let waited = wait(&mut self.links, &session.stop)?;
        for (Name { spec, .. }, waited) in self.names.iter().zip(waited) {
            if waited.is_down {
                report.warnings.add(Code::NoCarrier, format!(
                    "{spec} has no carrier yet: nothing arrives until its cable is plugged in and the other end is up"
                ));
                continue;
            }
            if !waited.was_down {
                continue;
            }
            let described = report.environment.interfaces.iter_mut().find(|there| there.name == *spec);
            if let Some(described) = described {
                described.carrier_wait_ns = Some(waited.ns);
            }
            if waited.ns > WORTH_A_NOTE_NS {
                session.say(
                    Code::CarrierWaited,
                    format!(
                        "waited {} for the carrier of {spec}, which its driver may take down when a program is attached",
                        units::time(waited.ns)
                    ),
                );
            }
        }
        Ok(Following {
            watcher: Watcher::start(self.links)?,
            names: self.names,
            start_ns: engine::clock::now(),
        })
    }
}

/// Waits for the carrier of `place` before it is asked for something; for what is over before a run begins.
pub fn await_link(place: &Place, stop: &AtomicBool) -> Result<()> {
    wait(&mut [place.link()?], stop)?;
    Ok(())
}

/// Links that are followed.
#[derive(Debug)]
pub struct Following {
    watcher: Watcher,
    names: Vec<Name>,
    start_ns: u64,
}

impl Following {
    /// To be ended before programs are detached, which may take a link down. Times count from the start of sending, or
    /// from when the carriers were there.
    pub fn end(self, sending: Option<Lasted>, report: &mut Report) {
        let start = sending.map_or(self.start_ns, |sending| sending.from_ns);
        let mut events = Vec::new();
        for (Name { spec, role }, losses) in self.names.iter().zip(self.watcher.end()) {
            // What had come back by the start lost nothing.
            let during = losses.iter().filter(|loss| {
                let after = sending.is_some_and(|sending| {
                    loss.at_ns > sending.to_ns && (sending.all_arrived || role.starts_with("send"))
                });
                !after && ended_ns(loss).is_none_or(|end| end > start)
            });
            events.extend(during.map(|loss| LinkEvent {
                interface: spec.clone(),
                role: role.clone(),
                what: match loss.what {
                    What::CarrierLost => LinkChange::CarrierLost,
                    What::SetDown => LinkChange::SetDown,
                    What::Removed => LinkChange::Removed,
                },
                at_ns: loss.at_ns.saturating_sub(start),
                duration_ns: loss.duration_ns,
                between_looks: loss.between_looks,
            }));
        }
        events.sort_by_key(|event| event.at_ns);
        report.result.link_events = events;
    }
}

/// When frames were sent, on the clock of [`engine::clock`].
#[derive(Debug, Clone, Copy)]
pub struct Lasted {
    from_ns: u64,
    to_ns: u64,
    /// What happened to a link later cost no frame.
    all_arrived: bool,
}

impl Lasted {
    /// Until now.
    pub fn since(from_ns: u64) -> Lasted {
        Lasted { from_ns, to_ns: u64::MAX, all_arrived: false }
    }

    pub fn of(sent: &engine::Sent, all_arrived: bool) -> Lasted {
        let end = sent.started_ns.saturating_add(sent.duration_ns);
        // What did not end by itself may have ended for want of a link.
        let to_ns = if matches!(sent.ended, engine::Ended::Done) { end } else { u64::MAX };
        Lasted { from_ns: sent.started_ns, to_ns, all_arrived }
    }
}

fn ended_ns(loss: &Loss) -> Option<u64> {
    loss.duration_ns.map(|duration| loss.at_ns.saturating_add(duration))
}

/// So many are named one by one.
const NAMED: usize = 4;

/// How [`told`] begins.
pub const LOST: &str = "the link was lost during the run";

/// What happened to the links, in one sentence.
pub fn told(events: &[LinkEvent]) -> Option<String> {
    let mut said: Vec<String> = events.iter().take(NAMED).map(LinkEvent::sentence).collect();
    if let Some(more) = events.len().checked_sub(NAMED).filter(|more| *more > 0) {
        said.push(format!("and {} more (link_events in the JSON)", units::count(more as u64)));
    }
    (!said.is_empty()).then(|| format!("{LOST}: {}", said.join("; ")))
}

/// Says it as a warning, where the command itself does not know what was lost meanwhile.
pub fn warn(report: &mut Report) {
    let said = told(&report.result.link_events);
    let said = said.map(|said| format!("{said}: what was sent meanwhile was lost there"));
    report.warnings.extend(said.map(|said| Code::LinkLost.says(said)));
}
