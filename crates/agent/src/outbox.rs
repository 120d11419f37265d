//! Lines on their way to the client.
//!
//! Nobody waits for a client that does not read: answers wait here, and when many do, no more requests are read; of each run there is
//! one snapshot, the newest. A thread of its own writes.

use port::socket::polled;
use rustix::event::PollFlags;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// With so many bytes on their way no more requests are read, and no more notes are taken.
const FULL: usize = 8 << 20;
/// A pipe that has room at all takes so many bytes at once (pipe(7), PIPE_BUF).
const AT_ONCE: usize = 4096;

#[derive(Debug, Default)]
struct Inside {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// By the number of the run.
    snapshots: BTreeMap<u64, Vec<u8>>,
    /// The client does not read any more.
    closed: bool,
    /// Nothing more comes.
    ending: bool,
    /// A line is being written.
    writing: bool,
    /// Bytes written since the beginning.
    written: u64,
    /// Where short lines are written at once, if nothing waits before them: no other thread has to wake.
    direct: Option<OwnedFd>,
}

impl Inside {
    fn next(&mut self) -> Option<Vec<u8>> {
        let line = self.lines.pop_front();
        if let Some(line) = &line {
            self.bytes -= line.len();
        }
        line.or_else(|| self.snapshots.pop_first().map(|(_, line)| line))
    }
}

/// Where lines wait for the client.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    inside: Mutex<Inside>,
    changed: Condvar,
}

impl Outbox {
    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to write to `out` what is put here.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn write_to(
        self: &Arc<Self>,
        mut out: impl Write + Send + 'static,
    ) -> std::io::Result<JoinHandle<()>> {
        let outbox = Arc::clone(self);
        std::thread::Builder::new().name("answers".to_owned()).spawn(move || {
            while let Some(line) = outbox.take() {
                let done = out.write_all(&line).and_then(|()| out.flush());
                let mut inside = outbox.lock();
                inside.writing = false;
                inside.written += line.len() as u64;
                inside.closed |= done.is_err();
                outbox.changed.notify_all();
            }
        })
    }

    /// Short lines are written to this from now on as soon as they are put here, which must lead to the same place.
    pub fn directly_to(&self, direct: OwnedFd) {
        self.lock().direct = Some(direct);
    }

    /// Puts there what has to come soon.
    pub fn push_at_once(&self, line: impl FnOnce() -> String) {
        let inside = self.lock();
        let is_first = !inside.closed && !inside.writing && inside.lines.is_empty();
        let direct = inside.direct.as_ref().filter(|direct| is_first && has_room(direct));
        // Nothing more than this stands between what it tells and its being written.
        let line = line();
        if let Some(direct) = direct.filter(|_| line.len() <= AT_ONCE)
            && let Ok(written) = rustix::io::write(direct, line.as_bytes())
        {
            drop(inside);
            // What is no pipe may take less.
            match line.get(written..) {
                None | Some("") => {}
                Some(rest) => self.push(rest.to_owned()),
            }
            return;
        }
        drop(inside);
        self.push(line);
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut inside = self.lock();
        loop {
            if inside.closed {
                return None;
            }
            if let Some(line) = inside.next() {
                inside.writing = true;
                self.changed.notify_all();
                return Some(line);
            }
            if inside.ending {
                return None;
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts a line there that must come.
    pub fn push(&self, line: String) {
        let mut inside = self.lock();
        if inside.closed {
            return;
        }
        inside.bytes += line.len();
        inside.lines.push_back(line.into_bytes());
        self.changed.notify_all();
    }

    /// The newest snapshot of a run, in place of the one before.
    pub fn snapshot(&self, run: u64, line: String) {
        let mut inside = self.lock();
        if !inside.closed {
            inside.snapshots.insert(run, line.into_bytes());
            self.changed.notify_all();
        }
    }

    /// No snapshot of the run comes behind this.
    pub fn last_snapshot(&self, run: u64) {
        let mut inside = self.lock();
        if let Some(line) = inside.snapshots.remove(&run) {
            inside.bytes += line.len();
            inside.lines.push_back(line);
        }
    }

    pub fn has_room(&self) -> bool {
        let inside = self.lock();
        inside.closed || inside.bytes < FULL
    }

    /// Waits a while for room. Is there some?
    pub fn await_room(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut inside = self.lock();
        while !inside.closed && inside.bytes >= FULL {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inside = self.changed.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Has the client closed its end?
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Has nobody its other end any more, though nothing was written since?
    pub fn is_deaf(&self) -> bool {
        let inside = self.lock();
        let Some(direct) = &inside.direct else { return false };
        polled(direct, PollFlags::empty(), Duration::ZERO).is_ok_and(|flags| flags.contains(PollFlags::ERR))
    }

    /// Nothing more comes. Waits until all is written, as long as the client goes on reading: each `patience` it must have taken something.
    pub fn finish(&self, patience: Duration) {
        let mut inside = self.lock();
        inside.ending = true;
        self.changed.notify_all();
        let mut written = inside.written;
        let mut until = Instant::now() + patience;
        while !inside.closed && (inside.writing || !inside.lines.is_empty() || !inside.snapshots.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            inside = self.changed.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
            if inside.written != written {
                written = inside.written;
                until = Instant::now() + patience;
            }
        }
    }
}

/// Can something be written without waiting?
fn has_room(to: &impl AsFd) -> bool {
    polled(to, PollFlags::OUT, Duration::ZERO) == Ok(PollFlags::OUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc;

    /// Takes a line when it is told to.
    struct Slow(mpsc::Receiver<()>, mpsc::Sender<String>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            let _ = self.1.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_a_run_the_newest_snapshot_comes_and_all_lines_do_in_their_order() {
        let (allow, allowed) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let outbox = Arc::new(Outbox::default());
        outbox.push("1\n".to_owned());
        (0..1000).for_each(|n| outbox.snapshot(7, format!("s{n}\n")));
        outbox.push("2\n".to_owned());
        outbox.last_snapshot(7);
        outbox.push("3\n".to_owned());
        let writer = outbox.write_to(Slow(allowed, tell)).expect("a thread");
        (0..4).for_each(|_| allow.send(()).expect("a writer"));
        outbox.finish(Duration::from_secs(60));
        writer.join().expect("no panic");
        assert_eq!(told.try_iter().collect::<String>(), "1\n2\ns999\n3\n");
    }

    #[test]
    fn a_client_that_does_not_read_keeps_nobody_from_ending_and_there_is_no_room() {
        let (_allow, allowed) = mpsc::channel();
        let (tell, _told) = mpsc::channel();
        let outbox = Arc::new(Outbox::default());
        let _writer = outbox.write_to(Slow(allowed, tell)).expect("a thread");
        (0..9).for_each(|_| outbox.push("x".repeat(1 << 20)));
        assert!(!outbox.await_room(Duration::from_millis(1)) || outbox.has_room());
        outbox.push("x".repeat(1 << 20));
        assert!(!outbox.await_room(Duration::from_millis(1)) && !outbox.is_closed());
        outbox.finish(Duration::from_millis(1));
    }

    #[test]
    fn what_has_to_come_soon_comes_in_its_turn_and_waits_for_nobody() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let outbox = Arc::new(Outbox::default());
        outbox.directly_to(writer.as_fd().try_clone_to_owned().expect("a descriptor"));
        outbox.push_at_once(|| "1\n".to_owned());
        outbox.push("2\n".to_owned());
        outbox.push_at_once(|| "3\n".to_owned());
        let thread = outbox.write_to(writer).expect("a thread");
        outbox.finish(Duration::from_secs(60));
        // Full: it is kept.
        let (_full, writer) = std::io::pipe().expect("a pipe");
        let kept = Arc::new(Outbox::default());
        kept.directly_to(writer.as_fd().try_clone_to_owned().expect("a descriptor"));
        for _ in 0..100 {
            kept.push_at_once(|| "x".repeat(4096));
        }
        assert!(kept.lock().bytes > 0);
        thread.join().expect("no panic");
        drop(outbox);
        assert_eq!(std::io::read_to_string(reader).expect("read"), "1\n2\n3\n");
    }

    #[test]
    fn one_that_has_gone_is_known() {
        let (allow, allowed) = mpsc::channel();
        let (tell, _told) = mpsc::channel();
        drop(allow);
        let outbox = Arc::new(Outbox::default());
        outbox.push("1\n".to_owned());
        outbox.write_to(Slow(allowed, tell)).expect("a thread").join().expect("no panic");
        assert!(outbox.is_closed() && outbox.has_room());
        outbox.finish(Duration::from_secs(60));
    }
}
