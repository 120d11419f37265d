//! Receives the records of the probe under test, and holds them to the truth.

use super::truth::Truth;
use anyhow::{Context, Result};
use flow::collect::{Counters, Room, Session};
use port::socket::{Arrived, receive_stamped, stamp_arrivals};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Messages that may wait: some millions of records. Where the sender has the only other CPU, they wait until it is done.
const BUFFER: usize = 512 << 20;
const ROOM: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_millis(20);
/// What waits is left waiting while it takes less of the buffer than this.
const LITTLE: f64 = 0.5;
/// Exporters at once.
const MOST_EXPORTERS: usize = 1024;

/// Binds the socket that records come to.
pub fn socket(at: SocketAddr) -> Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // Without CAP_NET_ADMIN it is what net.core.rmem_max allows.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER)?;
    }
    stamp_arrivals(&socket)?;
    bind(&socket, &at).with_context(|| format!("collecting at {at}"))?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// A step of time that arrivals are told apart by.
const STEP_NS: u64 = 1_000_000;
/// Steps of a trial, some four hours; what comes later counts for the last.
const MOST_STEPS: usize = 1 << 24;

/// How many records came, by when.
#[derive(Debug, Default)]
struct Arrivals {
    begins_ns: u64,
    /// Of each step of time since then.
    steps: Vec<u32>,
}

impl Arrivals {
    fn count(&mut self, at_ns: u64, records: u64) {
        let step = usize::try_from(at_ns.saturating_sub(self.begins_ns) / STEP_NS).unwrap_or(MOST_STEPS);
        let step = step.min(MOST_STEPS - 1);
        if records > 0 && step >= self.steps.len() {
            self.steps.resize(step + 1, 0);
        }
        if let Some(count) = self.steps.get_mut(step) {
            *count = count.saturating_add(u32::try_from(records).unwrap_or(u32::MAX));
        }
    }

    /// Those that came before a time, less those of the step that it is in.
    fn until(&self, at_ns: u64) -> u64 {
        let steps = usize::try_from(at_ns.saturating_sub(self.begins_ns) / STEP_NS).unwrap_or(MOST_STEPS);
        self.steps.iter().take(steps).map(|count| u64::from(*count)).sum()
    }
}

/// What came in one trial.
#[derive(Debug, Clone, Copy, Default)]
pub struct Came {
    /// Of all exporters.
    pub counters: Counters,
    /// Records of the trial that arrived until the time that was given.
    pub in_time_records: u64,
    /// Messages that arrived and found no room here.
    pub dropped_messages: u64,
}

#[derive(Default)]
struct Inside {
    truth: Option<Truth>,
    sessions: HashMap<SocketAddr, Session>,
    /// Records of this trial, by when they came.
    arrivals: Arrivals,
    /// When the last record of the trial came.
    last: Option<Instant>,
    /// Dropped before the trial, and what sessions had counted.
    dropped_before: u64,
    before: Counters,
    fault: Option<String>,
}

/// A collector that runs.
pub struct Collector {
    inside: Arc<Mutex<Inside>>,
    socket: Arc<UdpSocket>,
    over: Arc<AtomicBool>,
    hold: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl Collector {
    /// Begins, on these CPUs; none: anywhere.
    pub fn start(socket: UdpSocket, cpus: &[usize]) -> Result<Collector> {
        let socket = Arc::new(socket);
        let inside = Arc::<Mutex<Inside>>::default();
        let [over, hold] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let mut set = rustix::thread::CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        let pinned = !cpus.is_empty();
        let thread = std::thread::Builder::new().name("collect".to_owned()).spawn({
            let (socket, inside) = (Arc::clone(&socket), Arc::clone(&inside));
            let (over, hold) = (Arc::clone(&over), Arc::clone(&hold));
            move || {
                if pinned {
                    // Elsewhere it may take time from the probe: what it measures is then worse than it is.
                    let _ = rustix::thread::sched_setaffinity(None, &set);
                }
                work(&socket, &inside, &over, &hold);
            }
        })?;
        Ok(Collector { inside, socket, over, hold, thread: Some(thread) })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dropped(&self) -> u64 {
        port::socket::receive_drops(&*self.socket).unwrap_or(0)
    }

    /// A trial begins, at this time.
    pub fn begin(&self, truth: Truth, begins_ns: u64) {
        let dropped_before = self.dropped();
        let mut inside = self.lock();
        // A probe that goes on from trial to trial sends its templates when it likes: they are kept.
        let mut sessions = std::mem::take(&mut inside.sessions);
        if sessions.len() > MOST_EXPORTERS / 2 {
            sessions.clear();
        }
        let before = sum(&sessions);
        let fault = inside.fault.take();
        let arrivals = Arrivals { begins_ns, ..Arrivals::default() };
        let truth = Some(truth);
        *inside = Inside { truth, sessions, before, dropped_before, arrivals, fault, ..Inside::default() };
    }

    /// Leaves messages in the socket for now, as long as there is room: where there are two CPUs, reading them takes time from
    /// the sender or from the probe. The kernel's stamps say when they came.
    pub fn hold(&self, hold: bool) {
        self.hold.store(hold, Relaxed);
    }

    /// Its sending is over.
    pub fn sent(&self, at_ns: u64) {
        let mut inside = self.lock();
        if let Some(truth) = &mut inside.truth {
            truth.end(at_ns);
        }
    }

    /// Packets of the trial that records have, and how long ago the last of them came.
    pub fn progress(&self) -> (u64, Option<Duration>) {
        let inside = self.lock();
        let packets = inside.truth.as_ref().map_or(0, |truth| truth.said().packets);
        (packets, inside.last.map(|last| last.elapsed()))
    }

    /// What keeps it from receiving.
    pub fn fault(&self) -> Option<String> {
        self.lock().fault.clone()
    }

    /// What came, how much of it until this time, and what it is held to.
    pub fn end(&self, until_ns: u64) -> (Came, Option<Truth>) {
        let dropped = self.dropped();
        let mut inside = self.lock();
        let counters = sum(&inside.sessions).since(&inside.before);
        let truth = inside.truth.take();
        let came = Came {
            counters,
            in_time_records: inside.arrivals.until(until_ns),
            dropped_messages: dropped.saturating_sub(inside.dropped_before),
        };
        (came, truth)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(socket: &UdpSocket, inside: &Mutex<Inside>, over: &AtomicBool, hold: &AtomicBool) {
    use std::io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    let mut buffer = vec![0; 65_536];
    let mut room = Room::of(ROOM);
    let mut left = 0u32;
    while !over.load(Relaxed) {
        if hold.load(Relaxed) {
            left = left.saturating_sub(1);
            if left == 0 && port::socket::receive_fill(socket).is_ok_and(|fill| fill < LITTLE) {
                std::thread::sleep(PATIENCE);
                continue;
            }
            // A system call, so not for each message.
            left = if left == 0 { 1024 } else { left };
        }
        let arrived = match receive_stamped(socket, &mut buffer) {
            Ok(arrived) => arrived,
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused) => {
                continue;
            }
            Err(error) => {
                let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
                inside.fault = Some(error.to_string());
                return;
            }
        };
        let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.take(&arrived, buffer.get(..arrived.length).unwrap_or_default(), &mut room);
    }
}

fn sum(sessions: &HashMap<SocketAddr, Session>) -> Counters {
    sessions.values().fold(Counters::default(), |sum, one| sum.plus(one.counters()))
}

impl Inside {
    fn take(&mut self, arrived: &Arrived, bytes: &[u8], room: &mut Room) {
        if self.sessions.is_empty() {
            *room = Room::of(ROOM);
        }
        if self.sessions.len() >= MOST_EXPORTERS && !self.sessions.contains_key(&arrived.from) {
            return;
        }
        let session = self.sessions.entry(arrived.from).or_insert_with(|| Session::new(false));
        let mut own = 0;
        // What comes between trials is nobody's, but may hold templates.
        let truth = &mut self.truth;
        session.message(bytes, room, &mut |record, _| {
            own += u64::from(truth.as_mut().is_some_and(|truth| truth.take(record)));
        });
        if own > 0 {
            self.last = Some(Instant::now());
        }
        // By the kernel's stamps: messages may have waited.
        self.arrivals.count(arrived.at_ns.unwrap_or_else(|| clocks::now(clocks::Clock::Realtime)), own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_when_they_came_and_not_by_when_they_were_read() {
        let begins_ns = 1_700_000_000_000_000_000;
        let mut arrivals = Arrivals { begins_ns, ..Arrivals::default() };
        let at = |ms: u64| begins_ns + ms * 1_000_000;
        // Read late, in another order; one with a stamp of before the trial.
        for (ms, records) in [(4000, 29), (1200, 30), (1200, 5), (3999, 27)] {
            arrivals.count(at(ms), records);
        }
        arrivals.count(begins_ns - 5, 1);
        assert_eq!(
            [0, 1, 1200, 1201, 3999, 4000, 4001].map(|ms| arrivals.until(at(ms))),
            [0, 1, 1, 36, 36, 63, 92]
        );
        assert_eq!(arrivals.until(u64::MAX), 92);
    }
}
