//! Writers of records: a thread for each, behind a queue that is bounded, so that receiving never waits for one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Kept, Row, Sink};

/// Batches that may wait: some 260,000 rows. What a file of columns writes at once are half as many.
const QUEUE: usize = 256;
/// A sink looks what is due this often.
const LOOK: Duration = Duration::from_millis(500);
/// At the end a writer that does not get on is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way to a writer.
#[derive(Debug, Clone)]
pub struct Queue {
    into: SyncSender<Arc<Vec<Row>>>,
    progress: Arc<Progress>,
}

/// How far a writer is.
#[derive(Debug, Default)]
struct Progress {
    /// Rows that were given to it, and those that it has done with.
    given: AtomicU64,
    done: AtomicU64,
    kept: Mutex<Kept>,
}

impl Queue {
    /// Gives rows to the writer, if there is room. Does not wait.
    pub fn give(&self, batch: &Arc<Vec<Row>>) -> bool {
        let given = self.into.try_send(Arc::clone(batch)).is_ok();
        if given {
            self.progress.given.fetch_add(batch.len() as u64, Relaxed);
        }
        given
    }
}

impl Progress {
    fn tell(&self, sink: &dyn Sink) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone_from(sink.kept());
    }
}

/// A writer that runs.
pub struct Writer {
    /// What it writes to, for a person.
    name: String,
    thread: JoinHandle<()>,
    progress: Arc<Progress>,
}

impl Writer {
    /// Begins to write, in a thread.
    pub fn start(name: String, sink: Box<dyn Sink>) -> std::io::Result<(Queue, Writer)> {
        let (into, out) = sync_channel(QUEUE);
        let progress = Arc::new(Progress::default());
        let queue = Queue { into, progress: Arc::clone(&progress) };
        let told = Arc::clone(&progress);
        let thread =
            std::thread::Builder::new().name("write".to_owned()).spawn(move || work(sink, &out, &told))?;
        Ok((queue, Writer { name, thread, progress }))
    }

    /// How it stands.
    pub fn kept(&self) -> Kept {
        self.progress.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until all that came is written, or it does not get on. To be called when nobody has a queue to it any more.
    pub fn finish(self) -> Kept {
        let done = || self.progress.done.load(Relaxed);
        let (mut before, mut since) = (done(), Instant::now());
        while !self.thread.is_finished() {
            if since.elapsed() > PATIENCE {
                return self.given_up();
            }
            if done() != before {
                (before, since) = (done(), Instant::now());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut kept = self.kept();
        if self.thread.join().is_err() {
            kept.fault = Some("a writer's thread panicked: this is a defect of netdyno".to_owned());
        }
        kept
    }

    /// The thread stays where it hangs; it ends with the process.
    fn given_up(&self) -> Kept {
        let mut kept = self.kept();
        kept.lost = self.progress.given.load(Relaxed).saturating_sub(kept.records);
        let seconds = PATIENCE.as_secs();
        kept.fault.get_or_insert(format!(
            "writing to {} did not go on for {seconds} s: what was not written is lost",
            self.name
        ));
        kept
    }
}

fn work(mut sink: Box<dyn Sink>, batches: &Receiver<Arc<Vec<Row>>>, progress: &Progress) {
    let mut looked = Instant::now();
    loop {
        match batches.recv_timeout(LOOK) {
            Ok(batch) => {
                sink.take(&batch);
                progress.done.fetch_add(batch.len() as u64, Relaxed);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            sink.look();
            progress.tell(&*sink);
        }
    }
    sink.finish();
    progress.tell(&*sink);
}
