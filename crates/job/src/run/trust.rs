//! Has anybody seen frames leave? Some engines hand frames to a driver that may drop all of them without a word. The run's
//! own first frames tell: while nobody counts one (interface, driver, meter), the engine is not trusted, and after some
//! time a run that `--engine auto` chose it for is begun anew with the next.
//!
//! No frame is sent for this alone. Only a meter where they should arrive is witness enough for that: a driver may send
//! frames that it counts nowhere, and without a meter they would then leave twice.

use super::counters::{COUNTERS_SETTLE, Seen, few, xdp_sent};
use super::meters::Meters;
use crate::place::Place;
use anyhow::Result;
use engine::{Counts, Job};
use port::interface::{CounterReader, Counters};
use port::watch::Watch;
use std::time::{Duration, Instant};

/// A driver's own counters take long to read.
const LOOK_AT_DRIVER: Duration = Duration::from_millis(250);

/// Looks on while an engine sends its first frames.
pub struct Suspicion<'a> {
    reader: CounterReader,
    before: Counters,
    driver: Watch,
    meter: Option<&'a Meters>,
    since: Option<Instant>,
    looked: Option<Instant>,
    seen: Seen,
    trusted: bool,
    signs: bool,
}

/// A counter that others' frames move as well (a neighbour's, a switch's own) says something only of so many.
const ENOUGH: u64 = 64;

impl<'a> Suspicion<'a> {
    /// Of the engines that send by `place`, from now on. `signs`: each frame has a signature, by which it is known.
    pub fn begin(place: &Place, meter: Option<&'a Meters>, signs: bool) -> Result<Suspicion<'a>> {
        let mut reader = place.counters()?;
        let before = reader.read()?;
        let name = &place.interface.name;
        let driver = place.run_in(|| Watch::begin(name, false))?;
        let seen = Seen { ours: 0, interface: 0, driver: None, arrived: None, counts: Counts::HandedOver };
        Ok(Suspicion {
            reader,
            before,
            driver,
            meter,
            since: None,
            looked: None,
            seen,
            trusted: false,
            signs,
        })
    }

    /// Looks again, when `handed` frames were handed over. True when the engine is not to be trusted.
    pub fn refuted(&mut self, handed: u64) -> bool {
        if self.trusted || handed == 0 {
            return false;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        self.seen.ours = handed;
        // What cannot be read says nothing.
        let Ok(now) = self.reader.read() else { return false };
        self.seen.interface = now.since(&self.before).tx_packets;
        self.seen.arrived = self.meter.map(|meter| arrived(meter, self.signs));
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_AT_DRIVER) {
            self.looked = Some(Instant::now());
            self.seen.driver = xdp_sent(&self.driver.rises());
        }
        let Seen { interface, driver, arrived, .. } = self.seen;
        let one = |count: Option<u64>| count.is_some_and(|count| count > 0);
        let many = |count: u64| handed >= ENOUGH && count > few(handed);
        let seen = if self.signs { one(arrived) } else { arrived.is_some_and(many) };
        self.trusted = one(driver) || seen || many(interface);
        // Some drivers bring their counters up to date every other second.
        !self.trusted && since.elapsed() >= COUNTERS_SETTLE && self.seen.vanished()
    }
}

/// Frames of this run that arrived: the signed ones, where each has a signature.
pub fn arrived(meters: &Meters, signs: bool) -> u64 {
    let snapshot = meters.snapshot();
    if signs || snapshot.signed > 0 { snapshot.signed } else { snapshot.frames }
}

/// Has each frame of the job a signature?
pub fn signs(job: &Job) -> bool {
    job.source.facts().all_signed
}

/// Why an engine is not taken any more.
pub fn reason(place: &Place, seen: &Seen) -> String {
    format!(
        "none of the first {} it handed over was seen leaving by {}{}: the run was started again",
        report::units::counted(seen.ours, "frame"),
        place.spec,
        ", its driver or the meter"
    )
}

impl Suspicion<'_> {
    /// Has somebody seen frames leave?
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// What the driver counts by now.
    pub fn driver(&mut self) -> Option<u64> {
        xdp_sent(&self.driver.rises())
    }

    /// What was seen, by the last look.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distrusted::Distrusted;
    use crate::run::{Opened, Setup, run};
    use engine::null::NullTx;

    use engine::{Engine, Userspace};
    use lab::{Host, Lab, Located};
    use port::packet::Sendmmsg;
    use report::{Choice, Report, Witness};

    use traffic::{Program, Schedule, Stream};

    fn place(host: &Host) -> Place {
        let namespace = Some(host.namespace.try_clone().expect("a handle"));
        let name = host.interface.to_owned();
        Place::at(name.clone(), Located { namespace, name }).expect("a place")
    }

    /// A run whose first engine says that it hands all frames over, and sends none.
    fn sent_by_one_that_lies(count: Option<u64>, another: bool) -> Report {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        sent_in([&lab.sender, &lab.receiver], &Distrusted::default(), count, another)
    }

    /// The same from one of these hosts to the other, as one of a session's.
    fn sent_in(hosts: [&Host; 2], session: &Distrusted, count: Option<u64>, another: bool) -> Report {
        let [tx, rx] = hosts.map(place);
        let mut frame = vec![0; 60];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        let schedule = Schedule::Frames { frames: 2_000, per_ns: 1_000_000_000 };
        let program = Program::single(Stream::of("s", &frame)).with_schedule(schedule);
        let open = move |wanted: &crate::run::Wanted<'_>| {
            let lies = wanted.distrusted.is_empty();
            let place = wanted.places.first().expect("a place");
            let target = place.target();
            let worker: Box<dyn Engine> = if lies {
                Box::new(Userspace::new("xdp", NullTx::new(60)).counting(Counts::HandedOver))
            } else {
                Box::new(Userspace::new("packet", place.run_in(|| Sendmmsg::open(&target, 60))??))
            };
            let choice = Choice {
                name: worker.name().to_owned(),
                not_taken: wanted.distrusted.to_vec(),
                ..Choice::default()
            };
            Ok(Opened { workers: vec![worker], choice, replaceable: lies && another })
        };
        run(Setup {
            distrusted: session.clone(),
            tx: vec![tx],
            rx: vec![(rx, meter::Options::default())],
            best_effort: true,
            ..Setup::of("send", Box::new(open), Job { count, ..Job::program(program) }, 60)
        })
        .expect("a result")
    }

    fn began_anew(report: &Report, frames: u64) {
        let choice = report.environment.engine.as_ref().expect("an engine");
        assert_eq!(choice.name, "packet");
        assert!(choice.not_taken[0].reason.contains("seen leaving"), "{choice:?}");
        let (tx, rx) =
            (report.result.tx.as_ref().expect("sent"), report.result.rx.as_ref().expect("received"));
        assert_eq!((tx.totals.frames, rx.totals.frames), (frames, frames));
        assert_eq!(tx.interface_counters[0].confirmed_by, Some(Witness::Interface));
    }

    #[test]
    fn a_short_run_that_nobody_saw_is_sent_once_more_by_the_next_engine() {
        began_anew(&sent_by_one_that_lies(Some(300), true), 300);
    }

    #[test]
    fn a_long_run_that_nobody_sees_is_broken_off_and_begins_anew_whole() {
        began_anew(&sent_by_one_that_lies(Some(8_000), true), 8_000);
    }

    #[test]
    fn an_engine_is_distrusted_for_one_session_and_one_interface() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let (there, back) = ([&lab.sender, &lab.receiver], [&lab.receiver, &lab.sender]);
        let (session, another) = (Distrusted::default(), Distrusted::default());
        let known = |session: &Distrusted, host: &Host| session.at(&place(host)).len();
        began_anew(&sent_in(there, &session, Some(300), true), 300);
        // What a clone of the session was told counts, here and nowhere else.
        assert_eq!([&lab.sender, &lab.receiver].map(|host| known(&session, host)), [1, 0]);
        assert_eq!(known(&another, &lab.sender), 0);
        // It is not tried again: nothing new was learnt.
        began_anew(&sent_in(there, &session, Some(300), true), 300);
        assert_eq!(known(&session, &lab.sender), 1);
        // The other way, and in another session, it is.
        began_anew(&sent_in(back, &session, Some(300), true), 300);
        began_anew(&sent_in(there, &another, Some(300), true), 300);
        assert_eq!((known(&session, &lab.receiver), known(&another, &lab.sender)), (1, 1));
    }

    #[test]
    fn the_last_engine_is_kept_and_what_nobody_saw_falls_short() {
        let report = sent_by_one_that_lies(Some(300), false);
        let verdict = &report.result.verdict;
        assert_eq!(verdict.exit_status(), 1, "{verdict:?}");
        let told = verdict.reasons().join("; ");
        assert!(told.contains("nobody saw these frames leave") && told.contains("`.engine`"), "{told}");
        let counted = &report.result.tx.as_ref().expect("sent").interface_counters[0];
        assert_eq!(counted.confirmed_by, Some(Witness::Nobody));
    }
}
