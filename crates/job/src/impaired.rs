//! A device with known faults at work: a thread for each direction between two interfaces. For `netdyno impair`, and for
//! labs.

use crate::place::Place;
use ::impair::{DeviceError, Did, Direction, Job, Plan, carry};
use anyhow::{Context as _, Result, anyhow, bail};
use forwarder::Hold;
use histogram::Histogram;
use lab::{Host, Lab, Located};
use port::interface::{CounterReader, Counters};
use port::tx::TxError;
use report::{Impaired, Passage, Totals};
use spec::Faults;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that may wait in each direction, of who names no number.
const BUFFER: u64 = 256_000_000;
/// Frames that a reordered one is put behind.
const BEHIND: &str = "3";
/// Copies of a frame, at most.
const MOST_COPIES: u32 = 100_000;

/// What faults come to in the direction of this number: 0 from the first interface to the second.
///
/// # Errors
/// Which fault cannot be, and why.
pub fn plan(faults: &Faults, direction: usize) -> Result<Plan> {
    fn read<T: FromStr<Err: std::fmt::Display>>(name: &str, text: Option<&String>) -> Result<Option<T>> {
        let read = text.map(|text| text.parse::<T>().map_err(|bad| anyhow!("{bad}")));
        read.transpose().with_context(|| format!("faults.{name}"))
    }
    let copies = faults.copies.unwrap_or(1);
    let needed = [
        ("jitter", faults.jitter.is_some() && faults.delay.is_none(), "delay"),
        ("keep_order", faults.keep_order && faults.jitter.is_none(), "jitter"),
        ("copies", faults.copies.is_some() && faults.duplicate.is_none(), "duplicate"),
        ("reorder_by", faults.reorder_by.is_some() && faults.reorder.is_none(), "reorder"),
        ("mend_checksum", faults.mend_checksum && faults.corrupt.is_none(), "corrupt"),
    ];
    if let Some((name, _, needs)) = needed.iter().find(|(_, lacks, _)| *lacks) {
        bail!("faults.{name}: it needs `{needs}`");
    }
    for (name, number) in [("copies", Some(copies)), ("loop", faults.come_back)] {
        if let Some(number) = number.filter(|number| !(1..=MOST_COPIES).contains(number)) {
            bail!("faults.{name}: {number} is not possible: give 1 to {MOST_COPIES}");
        }
    }
    let time = |given: &Option<spec::Written<Duration>>| given.as_deref().copied().unwrap_or_default();
    let by = faults.reorder_by.as_deref().unwrap_or(BEHIND);
    let plan = Plan {
        delay: time(&faults.delay),
        jitter: time(&faults.jitter),
        keep_order: faults.keep_order,
        loss: read("loss", faults.loss.as_ref())?,
        duplicate: read("duplicate", faults.duplicate.as_ref())?,
        copies,
        reorder: read("reorder", faults.reorder.as_ref())?,
        shift: by.parse::<::impair::Shift>().map_err(|bad| anyhow!("faults.reorder_by: {bad}"))?,
        corrupt: read("corrupt", faults.corrupt.as_ref())?,
        mend: faults.mend_checksum,
        flap: read("flap", faults.flap.as_ref())?,
        freeze: read("freeze", faults.freeze.as_ref())?,
        come_back: faults.come_back.unwrap_or(0),
        random: faults.random,
        seed: faults.seed.unwrap_or(1),
    };
    Ok(match (faults.direction, direction) {
        (spec::Direction::There, 1) | (spec::Direction::Back, 0) => Plan::default(),
        _ => plan,
    })
}

/// It works until it is dropped or finished.
#[derive(Debug)]
pub struct Device {
    threads: Vec<JoinHandle<Result<Histogram, DeviceError>>>,
    counts: [Arc<Mutex<Did>>; 2],
    stop: Arc<AtomicBool>,
    /// What the interfaces counted before, that by which each direction leaves.
    counters: Vec<(CounterReader, Counters)>,
    holds: Vec<Hold>,
    /// Why the host's own stack gets the frames as well, if it does.
    pub leaks: Option<String>,
}

/// What it did, from the first interface to the second and back.
#[derive(Debug)]
pub struct Done {
    /// What became of the frames of each direction.
    pub did: [Did; 2],
    /// Of the forwarded: those that an interface took and then dropped, because the queue of its cable was full.
    dropped: [u64; 2],
    /// How late frames left.
    pub lateness: [Option<Histogram>; 2],
    /// Why it ended before it was told to.
    pub why: Option<String>,
}

impl Device {
    /// Puts it between two interfaces of one network namespace.
    ///
    /// # Errors
    /// That an interface cannot be received from or sent to, or the faults contradict each other.
    pub fn start(places: &[Place; 2], faults: &Faults) -> Result<Device> {
        let [a, b] = places;
        let stop = Arc::new(AtomicBool::new(false));
        let (mut holds, mut leaks, mut opened) = (Vec::new(), None, Vec::new());
        for (number, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
            let name = &from.interface.name;
            match from.run_in(|| Hold::attach(name))? {
                Ok(hold) => holds.push(hold),
                Err(error) => leaks = Some(error.to_string()),
            }
            let plan = plan(faults, number)?;
            let comes_back = plan.come_back > 0;
            let direction = from.run_in(|| Direction::open(&from.target(), &to.target(), comes_back))??;
            opened.push((direction, ::impair::Faults::new(&plan, number as u64)));
        }
        let buffer = faults.buffer.as_deref().copied().unwrap_or(BUFFER);
        let start_ns = engine::clock::now();
        let mut counters = Vec::new();
        for to in [b, a] {
            let mut reader = to.counters()?;
            let before = reader.read()?;
            counters.push((reader, before));
        }
        let mut device =
            Device { threads: Vec::new(), counts: Default::default(), stop, counters, holds, leaks };
        for (number, (direction, faults)) in opened.into_iter().enumerate() {
            device.counts[number] = direction.counts();
            let job = Job { faults, buffer, start_ns, cpu: cpu(number), stop: device.stop.clone() };
            device.threads.push(
                std::thread::Builder::new().name("impair".to_owned()).spawn(move || carry(direction, job))?,
            );
        }
        Ok(device)
    }

    /// The same in a lab whose device forwards by a program.
    ///
    /// # Errors
    /// As [`Device::start`].
    pub fn start_in(lab: &Lab, faults: &Faults) -> Result<Device> {
        let Some(ports) = &lab.device else { bail!("this lab has no device") };
        let place = |host: &Host| -> Result<Place> {
            let (namespace, name) = (Some(host.namespace.try_clone()?), host.interface.to_owned());
            Place::at(name.clone(), Located { namespace, name })
        };
        Device::start(&[place(&ports[0])?, place(&ports[1])?], faults)
    }

    /// From the first interface to the second, and back.
    pub fn snapshot(&self) -> [Did; 2] {
        self.counts.each_ref().map(|counts| *counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Frames that left and were dropped by the interface, in each direction; those of others are among them.
    pub fn dropped(&mut self) -> [u64; 2] {
        let mut dropped = [0; 2];
        for (sum, (reader, before)) in dropped.iter_mut().zip(&mut self.counters) {
            *sum = reader.read().map_or(0, |now| now.since(before).tx_dropped);
        }
        dropped
    }

    /// Why it works no more, if it does not.
    pub fn ended(&self) -> Option<String> {
        if self.holds.iter().any(|hold| !hold.is_attached()) {
            return Some("an interface was removed, or the device detached from it by force".to_owned());
        }
        self.threads.iter().any(JoinHandle::is_finished).then(|| "a direction ended".to_owned())
    }

    /// Takes it away.
    pub fn finish(mut self) -> Done {
        self.stop.store(true, Relaxed);
        let mut done = Done { did: [Did::default(); 2], dropped: [0; 2], lateness: [None, None], why: None };
        for (number, thread) in self.threads.drain(..).enumerate() {
            match thread.join() {
                Ok(Ok(lateness)) => done.lateness[number] = Some(lateness),
                // Frames that waited for room at the end are not forwarded.
                Ok(Err(DeviceError::Send(TxError::Stopped(_)))) => {}
                Ok(Err(error)) => done.why = Some(error.to_string()),
                Err(_) => done.why = Some("a thread panicked: this is a defect of netdyno".to_owned()),
            }
        }
        done.did = self.snapshot();
        done.dropped = self.dropped();
        done
    }
}

/// What the device did with one direction's frames.
pub fn impaired(did: &Did, lateness: Option<&Histogram>) -> Impaired {
    Impaired {
        lost_frames: did.lost,
        flapped_frames: did.flapped,
        copied_frames: did.copies,
        reordered_frames: did.reordered,
        corrupted_frames: did.corrupted,
        frozen_frames: did.frozen,
        returned_frames: did.returned,
        full_frames: did.full,
        inside_frames: did.inside,
        lateness_ns: lateness.filter(|late| !late.is_empty()).and_then(report::Distribution::whole),
    }
}

impl Done {
    /// One row for each direction between interfaces of these names.
    pub fn passages(&self, names: [&str; 2]) -> Vec<Passage> {
        let row = |direction: usize| {
            let (did, dropped) = (&self.did[direction], self.dropped[direction]);
            let over = |frames, bytes| Totals::over(frames, bytes, did.duration_ns());
            let left = did.forwarded.saturating_sub(dropped);
            // How long those were that an interface dropped nobody says: as long as the others on average.
            let bytes = u128::from(did.forwarded_bytes) * u128::from(left) / u128::from(did.forwarded.max(1));
            Passage {
                from: names[direction].to_owned(),
                to: names[1 - direction].to_owned(),
                received: over(did.frames, did.bytes),
                forwarded: over(left, u64::try_from(bytes).unwrap_or(u64::MAX)),
                too_long_frames: did.too_long,
                refused_frames: did.refused + dropped,
                uncut_frames: did.unfit,
                missed_frames: did.missed,
                impaired: Some(impaired(did, self.lateness[direction].as_ref())),
                ..Passage::default()
            }
        };
        vec![row(0), row(1)]
    }
}

/// The CPU of a direction: not the last one, where senders are by default.
fn cpu(direction: usize) -> Option<usize> {
    let allowed = crate::environment::allowed_cpus()?;
    let others = allowed.len().checked_sub(1).filter(|&others| others > 0)?;
    allowed.get(others - 1 - direction % others).copied()
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interface_dropped_is_in_neither_the_frames_nor_the_bytes_that_left() {
        let did = Did {
            frames: 100,
            bytes: 10_000,
            forwarded: 100,
            forwarded_bytes: 10_000,
            first_ns: Some(0),
            last_ns: Some(1_000_000_000),
            ..Did::default()
        };
        let done = Done { did: [did, Did::default()], dropped: [40, 0], lateness: [None, None], why: None };
        let [there, back] = done.passages(["a", "b"]).try_into().expect("two directions");
        assert_eq!((there.forwarded.frames, there.forwarded.bytes, there.refused_frames), (60, 6_000, 40));
        assert_eq!((there.received.bytes, back.forwarded.bytes), (10_000, 0));
    }
}
