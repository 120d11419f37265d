//! A device with known faults at work: a thread for each direction between two interfaces. For `netdyno impair`, and for
//! labs.

use crate::cli::impair::Faults;
use crate::place::Place;
use ::impair::{DeviceError, Did, Direction, Job, carry};
use anyhow::{Result, bail};
use histogram::Histogram;
use lab::{Host, Lab, Located};
use meter::forward::Hold;
use port::interface::{CounterReader, Counters};
use port::tx::TxError;
use report::{Impaired, Passage, Totals};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

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
            let plan = faults.plan(number);
            let comes_back = plan.come_back > 0;
            let direction = from.run_in(|| Direction::open(&from.target(), &to.target(), comes_back))??;
            opened.push((direction, ::impair::Faults::new(&plan, number as u64)));
        }
        let (start_ns, buffer) = (engine::clock::now(), faults.buffer);
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
            Passage {
                from: names[direction].to_owned(),
                to: names[1 - direction].to_owned(),
                received: over(did.frames, did.bytes),
                forwarded: over(did.forwarded.saturating_sub(dropped), did.forwarded_bytes),
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
