//! The thread beside a STAMP reflector: keeps its clock and this host's addresses, and removes sessions that are long silent.

use super::clock::Reading;
use super::loader::Loaded;
use super::own::Own;
use bpf::ProgramError;
use clocks::monotonic;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// So often the clock is looked at. What a program stamps is wrong for so long after somebody has set the clock.
const LOOK: Duration = Duration::from_millis(100);
/// So many looks lie between two at the host's addresses.
const ADDRESSES: u64 = 10;
/// So many lie between two searches for silent sessions.
const SESSIONS: u64 = 100;
/// A session this long silent is over: the default of REFWAIT (RFC 5357 section 3.5).
const SILENT_NS: u64 = 900_000_000_000;

/// A loaded program whose clock is kept.
#[derive(Debug)]
pub struct Keeper {
    loaded: Arc<Loaded>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Sets the clock and the addresses for an interface of the calling thread's network namespace, and begins to keep them.
    pub fn start(loaded: Loaded, ifindex: u32) -> Result<Keeper, ProgramError> {
        let loaded = Arc::new(loaded);
        let mut kept = Kept { loaded: Arc::clone(&loaded), ifindex, own: Own::default() };
        kept.look(0)?;
        let (stop, stopped) = channel::<()>();
        let work = move || {
            for turn in 1.. {
                match stopped.recv_timeout(LOOK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
                // What fails here fails for good. The program sees that nobody looks any more, and says so in its error estimates.
                if kept.look(turn).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("stamp clock".to_owned())
            .spawn(work)
            .map_err(|error| ProgramError::System { what: "starting a thread", error })?;
        Ok(Keeper { loaded, stop: Some(stop), thread: Some(thread) })
    }

    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}

/// What the thread keeps.
struct Kept {
    loaded: Arc<Loaded>,
    ifindex: u32,
    /// As the program knows them.
    own: Own,
}

impl Kept {
    /// The `turn`-th look, from 0 on.
    fn look(&mut self, turn: u64) -> Result<(), ProgramError> {
        if turn.is_multiple_of(ADDRESSES)
            && let Some(own) = Own::look(self.ifindex).filter(|own| *own != self.own)
        {
            self.loaded.set_destinations(&self.own, &own)?;
            self.own = own;
        }
        self.loaded.set_clock(turn, &Reading::take(), &self.own)?;
        if turn.is_multiple_of(SESSIONS) {
            self.loaded.forget_before(monotonic().saturating_sub(SILENT_NS));
        }
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say; one that panicked has said so.
            let _ = thread.join();
        }
    }
}
