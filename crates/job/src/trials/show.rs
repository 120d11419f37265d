//! What a screen and Prometheus show of trials: all that was sent so far, and how far the search has come.
//!
//! Each trial is a run that begins at zero. Here they are added up, so that counters never fall and rates and bars go on
//! from one trial to the next. Threads of several ways tell how they stand; what they tell is put together.

use super::ports::Ports;
use crate::kinds::shared;
use crate::panel::{Names, Panel};
use crate::run::Onlooker;
use anyhow::Result;
use histogram::Histogram;
use report::Said;
use report::search::TrialVerdict;
use snapshot::{Board, Bound, Count, Search, Snapshot, Title, Trial};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use trial::Remaining;

/// Trials in the table.
const MOST_ROWS: usize = 100;

/// The onlookers of one command's trials.
pub struct Show {
    inside: Arc<Mutex<Inside>>,
}

impl std::fmt::Debug for Show {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Show").finish_non_exhaustive()
    }
}

struct Inside {
    panel: Panel,
    started: Instant,
    search: Search,
    /// What earlier runs came to, and how each way's present run stands.
    before: Snapshot,
    now: Vec<Option<Snapshot>>,
    /// When all will be over, at a guess or at the latest.
    ends: Option<Remaining>,
    /// Engine and meter.
    through: (Option<String>, Option<String>),
}

impl Show {
    /// Begins to show what `command` does with these ports.
    pub fn begin(command: &str, ports: &Ports, board: &Arc<Board>) -> Result<Show> {
        let mut panel = Panel::of(board);
        let ends = || ends(ports);
        let names =
            |names: Vec<&String>| Some(names.into_iter().map(String::as_str).collect::<Vec<_>>().join("+"));
        let title = Title {
            command: command.to_owned(),
            tx: names(ports.ways.iter().flat_map(super::ports::Way::sender_names).collect()),
            rx: names(ports.ways.iter().flat_map(super::ports::Way::receiver_names).collect()),
            manual: shared::no_manual_control_of_trials(),
            ..Title::default()
        };
        panel.begin(title, &[], ends, Names::unknown(0))?;
        let inside = Inside {
            panel,
            started: Instant::now(),
            search: Search { of_rate: true, ..Search::default() },
            before: Snapshot::default(),
            now: vec![None; ports.ways.len()],
            ends: None,
            through: (None, None),
        };
        let show = Show { inside: Arc::new(Mutex::new(inside)) };
        show.change(|_| {});
        Ok(show)
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of the search, and shows it.
    pub fn change(&self, change: impl FnOnce(&mut Search)) {
        let mut inside = self.lock();
        change(&mut inside.search);
        inside.publish();
    }

    /// A trial begins that sends so long; all will be over in `left`.
    pub fn trial(&self, load: f64, trial_ns: u64, left: Option<Remaining>) {
        let mut inside = self.lock();
        let now = inside.at_ns();
        let search = &mut inside.search;
        (search.load, search.trial_ns, search.trial_began_ns) = (load, trial_ns, now);
        inside.ends = left.map(|left| Remaining { ns: now.saturating_add(left.ns), ..left });
        inside.publish();
    }

    /// It is over, and this is known now.
    pub fn over(&self, trial: Trial, bounds: Vec<Bound>, known: String) {
        let mut inside = self.lock();
        let search = &mut inside.search;
        search.trials += 1;
        search.passed += u64::from(trial.verdict == TrialVerdict::Passed);
        search.trial_ns = 0;
        (search.bounds, search.known) = (bounds, known);
        search.rows.insert(0, trial);
        search.rows.truncate(MOST_ROWS);
        inside.publish();
    }

    /// What should be known before the figures are trusted.
    pub fn warn(&self, warnings: &[Said]) {
        self.lock().panel.warn(warnings);
    }

    /// A run of all ways begins: whom each of them tells how it stands.
    pub fn onlookers(&self) -> Vec<Onlooker> {
        let mut inside = self.lock();
        inside.fold();
        let closely = inside.panel.is_watched_closely();
        let onlooker = |way: usize| -> Onlooker {
            let inside = Arc::clone(&self.inside);
            let tell = Arc::new(move |moment: Snapshot| {
                let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
                inside.learn(&moment.title);
                if let Some(slot) = inside.now.get_mut(way) {
                    *slot = Some(moment);
                }
                // One of them sets the pace.
                if way == 0 {
                    inside.publish();
                }
            });
            Onlooker { tell, closely }
        };
        (0..inside.now.len()).map(onlooker).collect()
    }
}

/// What hosts and interfaces count.
fn ends(ports: &Ports) -> Result<Vec<(String, port::watch::Watch)>> {
    let mut ends: Vec<(String, port::watch::Watch)> = Vec::new();
    for (_, place) in ports.ways.iter().flat_map(super::ports::Way::each) {
        let place = place?;
        let name = &place.interface.name;
        let first = ends.is_empty();
        let watch = place.run_in(|| port::watch::Watch::begin(name, first))?;
        if !ends.iter().any(|(spec, _)| *spec == place.spec) {
            ends.push((place.spec.clone(), watch));
        }
    }
    Ok(ends)
}

impl Inside {
    fn at_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// What ran is over: it belongs to what was before.
    fn fold(&mut self) {
        let now: Vec<Snapshot> = self.now.iter_mut().filter_map(Option::take).collect();
        let closely = self.panel.is_watched_closely();
        now.iter().for_each(|moment| add(&mut self.before, moment, closely));
        self.before.workers.clear();
    }

    /// Through what frames go is known when the first run has begun.
    fn learn(&mut self, title: &Title) {
        if self.through != (title.engine.clone(), title.meter.clone()) {
            self.through = (title.engine.clone(), title.meter.clone());
            let (engine, meter) = self.through.clone();
            self.panel.retitle(|own| (own.engine, own.meter) = (engine, meter));
        }
    }

    fn publish(&mut self) {
        let mut moment = self.before.clone();
        let closely = self.panel.is_watched_closely();
        self.now.iter().flatten().for_each(|now| add(&mut moment, now, closely));
        moment.at_ns = self.at_ns();
        moment.remaining_ns = remaining(self.ends.map(|ends| ends.ns), moment.at_ns);
        moment.remaining_at_most =
            moment.remaining_ns.is_some() && self.ends.is_some_and(|ends| ends.at_most);
        moment.search = Some(Arc::new(self.search.clone()));
        self.panel.show(moment, None);
    }
}

/// Time to an end that was guessed. When the guess is over and the search is not, nobody knows.
fn remaining(ends_ns: Option<u64>, at_ns: u64) -> Option<u64> {
    ends_ns?.checked_sub(at_ns).filter(|left| *left > 0)
}

/// Counts add up.
fn add(sum: &mut Snapshot, one: &Snapshot, closely: bool) {
    let count = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b)).or(a).or(b);
    let both = |a: Option<Count>, b: Option<Count>| {
        let sum = |(a, b): (Count, Count)| Count { frames: a.frames + b.frames, bytes: a.bytes + b.bytes };
        a.zip(b).map(sum).or(a).or(b)
    };
    sum.intended = count(sum.intended, one.intended);
    sum.tx = both(sum.tx, one.tx);
    sum.rx = both(sum.rx, one.rx);
    sum.lost = count(sum.lost, one.lost);
    sum.duplicated = count(sum.duplicated, one.duplicated);
    sum.reordered = count(sum.reordered, one.reordered);
    sum.trailed = count(sum.trailed, one.trailed);
    sum.late = count(sum.late, one.late);
    if closely {
        merge(&mut sum.latency, one.latency.as_ref());
        merge(&mut sum.lateness, one.lateness.as_ref());
    }
    sum.workers.extend(one.workers.iter().copied());
}

fn merge(sum: &mut Option<Arc<Histogram>>, one: Option<&Arc<Histogram>>) {
    match (sum.as_mut(), one) {
        (Some(sum), Some(one)) => Arc::make_mut(sum).merge(one),
        (None, Some(one)) => *sum = Some(Arc::clone(one)),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_that_is_over_is_no_end() {
        assert_eq!(remaining(None, 5), None);
        assert_eq!(remaining(Some(9), 5), Some(4));
        assert_eq!([remaining(Some(5), 5), remaining(Some(5), 9)], [None, None]);
    }

    #[test]
    fn runs_add_up_and_what_nobody_counted_stays_unknown() {
        let mut latency = Histogram::new();
        latency.record(5);
        let one = Snapshot {
            tx: Some(Count { frames: 3, bytes: 180 }),
            lost: Some(1),
            latency: Some(Arc::new(latency)),
            ..Snapshot::default()
        };
        let mut sum = Snapshot::default();
        add(&mut sum, &one, true);
        add(&mut sum, &one, true);
        assert_eq!((sum.tx, sum.rx, sum.lost), (Some(Count { frames: 6, bytes: 360 }), None, Some(2)));
        assert_eq!(sum.latency.map(|latency| latency.count()), Some(2));
        // A worker is told once: of the run that goes on.
        assert_eq!(one.latency.map(|latency| latency.count()), Some(1));
    }
}
