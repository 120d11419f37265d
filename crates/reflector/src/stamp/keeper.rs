//! The thread beside a STAMP reflector: keeps its clock, and removes sessions that are long silent.

use super::clock::Reading;
use super::loader::Loaded;
use bpf::ProgramError;
use clocks::monotonic;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// So often the clock is looked at. What a program stamps is wrong for so long after somebody has set the clock.
const LOOK: Duration = Duration::from_millis(100);
/// So many looks lie between two searches for silent sessions.
const LOOKS: u32 = 100;
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
    /// Sets the clock, and begins to keep it.
    pub fn start(loaded: Loaded) -> Result<Keeper, ProgramError> {
        loaded.set_clock(0, &Reading::take())?;
        let loaded = Arc::new(loaded);
        let (stop, stopped) = channel::<()>();
        let kept = Arc::clone(&loaded);
        let work = move || {
            for turn in 1.. {
                match stopped.recv_timeout(LOOK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
                // What fails here fails for good. The program sees that nobody looks any more, and says so in its error estimates.
                if kept.set_clock(turn, &Reading::take()).is_err() {
                    return;
                }
                if turn.is_multiple_of(u64::from(LOOKS)) {
                    kept.forget_before(monotonic().saturating_sub(SILENT_NS));
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

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say; one that panicked has said so.
            let _ = thread.join();
        }
    }
}
