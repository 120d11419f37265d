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
    /// Rows that it had no room for.
    without_room: AtomicU64,
    kept: Mutex<Kept>,
}

impl Queue {
    /// Gives rows to the writer, if there is room. Does not wait; what finds none is counted.
    pub fn give(&self, batch: &Arc<Vec<Row>>) {
        let given = self.into.try_send(Arc::clone(batch)).is_ok();
        let count = if given { &self.progress.given } else { &self.progress.without_room };
        count.fetch_add(batch.len() as u64, Relaxed);
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

    /// How it stands; what found no room is among what is lost.
    pub fn kept(&self) -> Kept {
        let mut kept = self.progress.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept.lost += self.progress.without_room.load(Relaxed);
        kept
    }

    /// Waits until all that came is written, or it does not get on. To be called when nobody has a queue to it any more. What it
    /// writes to, and what became of the rows.
    pub fn finish(self) -> (String, Kept) {
        let done = || self.progress.done.load(Relaxed);
        let (mut before, mut since) = (done(), Instant::now());
        while !self.thread.is_finished() {
            if since.elapsed() > PATIENCE {
                let kept = self.given_up();
                return (self.name, kept);
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
        (self.name, kept)
    }

    /// The thread stays where it hangs; it ends with the process.
    fn given_up(&self) -> Kept {
        let mut kept = self.kept();
        let given = self.progress.given.load(Relaxed) + self.progress.without_room.load(Relaxed);
        kept.lost = given.saturating_sub(kept.records);
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
