//! Devices that are there: a thread, a socket that receives and one that sends.

use crate::devices::{Counts, Devices, Neighbour};
use crate::filter;
use port::packet::Target;
use port::rx::{Direction, Rx, RxError, Slots, Take};
use port::socket;
use rustix::net::{SendFlags, send};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// It looks so often whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Frames in one batch, and memory for those that wait.
const BATCH: usize = 64;
const MEMORY: usize = 1 << 20;

/// Why there are no devices.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// No socket that receives.
    #[error(transparent)]
    Receive(#[from] RxError),
    /// No socket that sends, or no thread.
    #[error("emulating devices on {interface}: {source}")]
    Io {
        /// The interface.
        interface: String,
        /// What the system says.
        source: std::io::Error,
    },
}

#[derive(Debug)]
struct Shared {
    devices: Mutex<Devices>,
    stop: AtomicBool,
    /// Frames that could not be sent.
    unsent: AtomicU64,
    /// Why they are there no more.
    failed: Mutex<Option<String>>,
}

/// Nothing panics under these locks.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Devices on an interface, for as long as this is kept.
#[derive(Debug)]
pub struct Emulation {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Emulation {
    /// Begins, in the network namespace of the calling thread, which is the interface's.
    ///
    /// # Errors
    /// There are no sockets to be had on the interface, or no thread.
    pub fn begin(target: &Target, devices: Devices) -> Result<Emulation, EmulateError> {
        let failed = |source| EmulateError::Io { interface: target.name.clone(), source };
        let steps = filter::steps();
        let take = Take { direction: Direction::In, filter: &steps, share: None, promiscuous: true };
        let rx = Slots::open_large(target, BATCH, &take, MEMORY)?;
        let tx = socket::open().map_err(failed)?;
        socket::bind(&tx, target.index, 0).map_err(failed)?;
        let shared = Arc::new(Shared {
            devices: Mutex::new(devices),
            stop: AtomicBool::new(false),
            unsent: AtomicU64::new(0),
            failed: Mutex::new(None),
        });
        let of_thread = Arc::clone(&shared);
        let run = move || run(&of_thread, rx, &tx);
        let thread = std::thread::Builder::new().name("devices".to_owned()).spawn(run).map_err(failed)?;
        Ok(Emulation { shared, thread: Some(thread) })
    }

    /// What the devices know of their gateways.
    pub fn neighbours(&self) -> Vec<Neighbour> {
        lock(&self.shared.devices).neighbours()
    }

    /// What they did so far, and frames of theirs that the interface did not take.
    pub fn counts(&self) -> (Counts, u64) {
        (lock(&self.shared.devices).counts(), self.shared.unsent.load(Relaxed))
    }

    /// Why they are there no more, if so.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.failed).clone()
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, mut rx: Slots, tx: &OwnedFd) {
    let begun = Instant::now();
    let give = |frame: &[u8]| {
        if send(tx, frame, SendFlags::DONTWAIT).is_err() {
            shared.unsent.fetch_add(1, Relaxed);
        }
    };
    while !shared.stop.load(Relaxed) {
        let next = {
            let mut devices = lock(&shared.devices);
            devices.due(begun.elapsed()).iter().for_each(|frame| give(frame));
            devices.next()
        };
        let patience = next.map_or(LOOK, |next| next.saturating_sub(begun.elapsed()).min(LOOK));
        match rx.advance(patience.max(Duration::from_millis(1))) {
            Ok(_) => {}
            Err(RxError::Down(_)) => {
                lock(&shared.devices).forget(begun.elapsed());
                std::thread::sleep(LOOK);
            }
            Err(error) => {
                lock(&shared.devices).forget(begun.elapsed());
                *lock(&shared.failed) = Some(error.to_string());
                return;
            }
        }
        let mut devices = lock(&shared.devices);
        for frame in rx.frames() {
            if let Some(answer) = devices.frame(begun.elapsed(), frame.tag, frame.bytes) {
                give(&answer);
            }
        }
        drop(devices);
        rx.give_back();
    }
}
