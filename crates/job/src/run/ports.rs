//! Several ports that each send a program of their own, by workers of their own and from one start.
//!
//! ```text
//!   port 0:  program --share--> its workers --> tx[0] --.              .--> rx[0]: streams that are to arrive there,
//!   port 1:  program --share--> its workers --> tx[1] --+-- devices ---+--> rx[1]  and such that are not: misdirected
//!   ...                                                 '              '--> ...
//! ```
//!
//! (The two sides of a capture are another thing: there each worker sends by all ports, in one order.)

use super::fill::{Outcome, sent_by};
use super::meters::Measured;
use super::{Opened, Setup, Wanted, trust};
use anyhow::{Result, bail};
use engine::{Counts, Job, Merged};
use meter::{Measurement, StreamStats};
use port::tx::TxCounters;
use report::{Choice, PortResult, Report, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the work is divided, and what is to arrive where.
#[derive(Debug, Clone)]
pub struct PerPort {
    /// How many ports send.
    pub ports: usize,
    /// Workers of each.
    pub workers: usize,
    /// Where the frames of each signed stream of the whole program are to arrive, by the place in the list of meters.
    pub arrive: BTreeMap<u32, usize>,
}

impl PerPort {
    /// The meter at which a stream is to arrive, by the number in its signatures. `None`: it is none of ours.
    pub fn meter_of(&self, number: u32) -> Option<usize> {
        self.arrive.get(&(number / self.workers.max(1) as u32)).copied()
    }

    /// What each worker sends, port by port: of the whole program that of its port, and of the number of frames as many as
    /// every port. `share`: what a worker of several has of a port's.
    ///
    /// # Errors
    /// That a port's frames cannot be shared out among its workers.
    pub fn jobs(&self, whole: &Job, share: impl Fn(&Job, usize) -> Result<Vec<Job>>) -> Result<Vec<Job>> {
        let Some(program) = whole.source.program() else {
            bail!("a capture is sent by all its workers to all its ports: this is a defect of netdyno")
        };
        let mut jobs = Vec::new();
        for port in 0..self.ports {
            let count = whole.count.map(|count| count / self.ports as u64);
            let own = whole.share(program.at_port(port as u8), count);
            match self.workers {
                0 | 1 => jobs.push(own),
                workers => jobs.extend(share(&own, workers)?),
            }
        }
        Ok(jobs)
    }

    /// What the workers of each port sent together.
    pub fn add_up(&self, merged: &mut Merged) {
        let sum = |workers: &[engine::Share]| {
            let mut sum = TxCounters::default();
            workers.iter().for_each(|worker| sum.add(&worker.counters));
            sum
        };
        merged.whole.ports = merged.shares.chunks(self.workers.max(1)).map(sum).collect();
    }

    /// Takes out of what was measured at meter `at` the frames that were to arrive at another. Returns how many they were.
    pub fn take_strays(&self, at: usize, measured: &mut Measurement) -> u64 {
        let strayed = |stream: &StreamStats| self.meter_of(stream.stream).is_some_and(|meter| meter != at);
        let (strays, own): (Vec<_>, Vec<_>) = measured.streams.drain(..).partition(strayed);
        measured.streams = own;
        if strays.is_empty() {
            return 0;
        }
        let totals = &mut measured.totals;
        for stray in &strays {
            totals.frames = totals.frames.saturating_sub(stray.frames);
            totals.signed = totals.signed.saturating_sub(stray.frames);
            totals.bytes = totals.bytes.saturating_sub(stray.bytes);
            totals.reordered = totals.reordered.saturating_sub(stray.reordered);
            totals.duplicates = totals.duplicates.saturating_sub(stray.duplicates);
            totals.late = totals.late.saturating_sub(stray.late);
            totals.corrupted = totals.corrupted.saturating_sub(stray.corrupted);
        }
        // How long the others were under way, where that is known stream by stream.
        let mut latency = histogram::Histogram::new();
        let known = measured.streams.iter().all(|own| own.latencies.is_some() || own.latency.is_none());
        measured.streams.iter().filter_map(|own| own.latencies.as_ref()).for_each(|own| latency.merge(own));
        if known {
            measured.totals.latency = latency;
        }
        strays.iter().map(|stray| stray.frames).sum()
    }
}

/// Opens the engines of each port, one for each of its `workers`. `wanted`: of all ports.
pub fn open(setup: &Setup, workers: usize, wanted: &Wanted<'_>) -> Result<Opened> {
    let mut opened = Vec::new();
    let parts = wanted.shares.chunks(workers.max(1)).zip(wanted.cpus.chunks(workers.max(1)));
    for ((port, place), (shares, cpus)) in wanted.places.iter().enumerate().zip(parts) {
        let whole = wanted.program.map(|program| Arc::new(program.at_port(port as u8)));
        let joined_to = || setup.rx.iter().map(|(at, _)| at).find(|at| place.is_joined_to(at));
        opened.push((setup.open)(&Wanted {
            places: std::slice::from_ref(place),
            program: whole.as_ref(),
            shares,
            cpus,
            measured: wanted.measured.map(|first| joined_to().unwrap_or(first)),
            ..*wanted
        })?);
    }
    Ok(joined(opened))
}

/// The engines of all ports as those of one run.
fn joined(ports: Vec<Opened>) -> Opened {
    let mut joined = Opened { workers: Vec::new(), choice: Choice::default(), replaceable: false };
    let (mut names, mut reasons) = (Vec::new(), Vec::new());
    for Opened { workers, choice, .. } in ports {
        joined.workers.extend(workers);
        let Choice { name, reason, not_taken, .. } = choice;
        if !names.contains(&name) {
            names.push(name);
            reasons.push(reason);
        }
        for why in not_taken {
            // Of what several ports have in common the first tells.
            if !joined.choice.not_taken.iter().any(|known| known.name == why.name) {
                joined.choice.not_taken.push(why);
            }
        }
    }
    (joined.choice.name, joined.choice.reason) = (names.join("+"), reasons.join("; "));
    joined
}

/// What is known of frames of several engines is what is known by the one that tells least.
pub fn counts(workers: &[Box<dyn engine::Engine>]) -> Counts {
    let mut all = workers.iter().map(|worker| worker.counts());
    let first = all.next().unwrap_or(Counts::Accepted);
    if all.all(|counts| counts == first) { first } else { Counts::Accepted }
}

/// A row for each port, with what it sent.
pub fn fill_tx(report: &mut Report, run: &Outcome<'_>) {
    if run.setup.per_port.is_none() {
        return;
    }
    let row = |(port, place): (usize, &crate::place::Place)| {
        let sent = sent_by(run.sent(), port);
        PortResult {
            interface: place.spec.clone(),
            tx_frames: sent.frames,
            tx_bytes: sent.bytes,
            failed_frames: sent.failed,
            ..PortResult::default()
        }
    };
    report.result.ports = run.setup.tx.iter().enumerate().map(row).collect();
}

/// And with what arrived. `streams`: those of the whole program, as they were sent and arrived.
pub fn fill_rx(report: &mut Report, run: &Outcome<'_>, measured: &Measured, streams: &[Stream]) {
    let setup = run.setup;
    let Some(program) = setup.job.source.program() else { return };
    if setup.per_port.is_none() {
        return;
    }
    let signs = run.jobs.iter().all(trust::signs);
    let port_of: BTreeMap<u32, usize> = program
        .streams
        .iter()
        .filter_map(|stream| Some((stream.signature?, usize::from(stream.port))))
        .collect();
    let mut arrived = vec![0u64; setup.tx.len()];
    for stream in streams {
        let port = port_of.get(&stream.stream).and_then(|port| arrived.get_mut(*port));
        if let Some(sum) = port {
            *sum += stream.rx_frames.saturating_sub(stream.duplicated_frames);
        }
    }
    let ends = setup.rx.iter().zip(&measured.parts);
    for ((row, ((place, _), part)), arrived) in report.result.ports.iter_mut().zip(ends).zip(arrived) {
        row.measured_at = Some(place.spec.clone());
        row.rx_frames = Some(part.frames);
        row.rx_bytes = Some(part.bytes);
        row.lost_frames = Some(row.tx_frames.saturating_sub(if signs { arrived } else { part.frames }));
        row.misdirected_frames = signs.then_some(part.strays);
    }
}

/// Frames that arrived at ports that they were not sent to, in words.
pub fn misdirected(ports: &[PortResult]) -> Option<String> {
    let all: u64 = ports.iter().filter_map(|port| port.misdirected_frames).sum();
    let named = ports.iter().filter_map(|port| {
        let frames = port.misdirected_frames.filter(|frames| *frames > 0)?;
        let at = port.measured_at.as_ref().unwrap_or(&port.interface);
        Some(format!("{at} {}", report::units::count(frames)))
    });
    (all > 0).then(|| {
        format!(
            "{} at a port that {} not sent to ({}): a device on the way floods or misdirects frames",
            report::units::counted(all, "frame") + " arrived",
            if all == 1 { "it was" } else { "they were" },
            named.collect::<Vec<_>>().join(", ")
        )
    })
}

/// The ports that lost frames, in words; nothing of a single one.
pub fn whose_loss(ports: &[PortResult]) -> String {
    let named = ports.iter().filter_map(|port| {
        let lost = port.lost_frames.filter(|lost| *lost > 0)?;
        Some(format!("{} {}", port.interface, report::units::count(lost)))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { String::new() } else { format!(": of those sent by {}", named.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::{Program, Schedule, Stream};

    fn program(number: u32) -> Program {
        let stream = Stream { signature: Some(number), ..Stream::of("s", &[0; 60]) };
        Program::single(stream).with_schedule(Schedule::Frames { frames: 1, per_ns: 1_000 })
    }

    #[test]
    fn each_ports_workers_share_that_ports_program_and_its_part_of_the_count() {
        let whole =
            Job { count: Some(30), ..Job::program(Program::of_ports([program(0), program(1), program(2)])) };
        let arrive = [(0, 1), (1, 2), (2, 0)].into();
        let per_port = PerPort { ports: 3, workers: 2, arrive };
        let jobs = per_port.jobs(&whole, super::super::shared_out).expect("shares");
        let told = jobs.iter().map(|job| {
            let program = job.source.program().expect("a program");
            (program.streams[0].port, program.streams[0].signature, job.count)
        });
        let told: Vec<_> = told.collect();
        let expected: Vec<_> = (0..6u32).map(|n| (n as u8 / 2, Some(n), Some(5))).collect();
        assert_eq!(told, expected);
        // Each worker's number of a stream arrives where the stream does.
        let at: Vec<_> = (0..7).map(|number| per_port.meter_of(number)).collect();
        assert_eq!(at, [Some(1), Some(1), Some(2), Some(2), Some(0), Some(0), None]);
    }

    #[test]
    fn engines_of_several_ports_are_named_once_and_reasons_with_them() {
        let opened = |name: &str, why: &str| {
            let not_taken = vec![report::NotTaken { name: "xdp".to_owned(), reason: why.to_owned() }];
            let choice = Choice { name: name.to_owned(), reason: format!("{name} works"), not_taken };
            Opened { workers: Vec::new(), choice, replaceable: true }
        };
        let all = joined(vec![opened("afxdp", "p0"), opened("packet", "p1"), opened("afxdp", "p2")]);
        assert_eq!((all.choice.name.as_str(), all.replaceable), ("afxdp+packet", false));
        assert_eq!(all.choice.reason, "afxdp works; packet works");
        let whys: Vec<_> = all.choice.not_taken.iter().map(|why| why.reason.as_str()).collect();
        assert_eq!(whys, ["p0"]);
    }

    #[test]
    fn the_ports_that_lost_or_got_too_much_are_named() {
        let port = |name: &str, lost: u64, misdirected: u64| PortResult {
            interface: name.to_owned(),
            measured_at: Some(name.replace('t', "r")),
            lost_frames: Some(lost),
            misdirected_frames: Some(misdirected),
            ..PortResult::default()
        };
        let quiet = [port("tx0", 0, 0), port("tx1", 0, 0)];
        assert_eq!((misdirected(&quiet), whose_loss(&quiet)), (None, String::new()));
        let loud = [port("tx0", 5, 0), port("tx1", 0, 1_000)];
        assert_eq!(whose_loss(&loud), ": of those sent by tx0 5");
        let said = misdirected(&loud).expect("some");
        assert!(
            said.starts_with("1,000 frames arrived at a port that they were not sent to (rx1 1,000)"),
            "{said}"
        );
    }
}
