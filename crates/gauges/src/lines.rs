//! How a run stands, once a second, as a line of JSON.
//!
//! A thread of its own writes. While the reader keeps it waiting no moment is written, and the next that is, is the newest:
//! a slow reader has fewer lines, and the run is no slower.

use crate::give_way;
use snapshot::{Board, Snapshot, line};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// From line to line.
const EVERY: Duration = Duration::from_secs(1);
/// A reader that takes nothing for so long does not get the last one.
const PATIENCE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Writing,
    /// One more.
    Last,
    Over,
}

type State = (Mutex<Phase>, Condvar);

/// Writes until it is dropped, and the last moment then, if its reader takes it at once.
#[derive(Debug)]
pub struct Lines {
    over: Arc<State>,
    writer: Option<JoinHandle<()>>,
}

impl Lines {
    /// Begins a thread that writes a line each second to `out`, and the last when this is dropped.
    ///
    /// # Errors
    /// That no thread can be started.
    pub fn start(board: Arc<Board>, out: impl Write + Send + 'static) -> io::Result<Lines> {
        let over = Arc::new((Mutex::new(Phase::Writing), Condvar::new()));
        let writer = std::thread::Builder::new().name("lines".to_owned()).spawn({
            let over = Arc::clone(&over);
            move || write(&board, &over, out)
        })?;
        Ok(Lines { over, writer: Some(writer) })
    }
}

impl Drop for Lines {
    /// The last line is waited for, but not for long: whoever measures must end.
    fn drop(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Last;
        self.over.1.notify_all();
        let Some(writer) = self.writer.take() else { return };
        let until = Instant::now() + PATIENCE;
        while !writer.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A line that is being written is written whole, and none comes behind it: standard output is then the result's.
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Over;
        if writer.is_finished() {
            let _ = writer.join();
        }
    }
}

fn write(board: &Board, (over, told): &State, mut out: impl Write) {
    give_way();
    let mut next = Instant::now() + EVERY;
    let mut written: Option<Arc<Snapshot>> = None;
    loop {
        let waiting = over.lock().unwrap_or_else(PoisonError::into_inner);
        let left = next.saturating_duration_since(Instant::now());
        let waited = told.wait_timeout_while(waiting, left, |over| *over == Phase::Writing);
        let phase = *waited.unwrap_or_else(PoisonError::into_inner).0;
        if phase == Phase::Over {
            return;
        }
        if let Some(moment) = board.latest()
            && !written.as_ref().is_some_and(|written| Arc::ptr_eq(written, &moment))
        {
            // A reader that has left is no fault of the run; who prints the report will find out, too.
            if out.write_all(line(&moment).as_bytes()).and_then(|()| out.flush()).is_err() {
                return;
            }
            written = Some(moment);
        }
        if phase == Phase::Last {
            return;
        }
        // What was missed while the reader kept us waiting is not made up for.
        next = (next + EVERY).max(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snapshot::{Count, SCHEMA, schema};
    use std::sync::mpsc;

    fn moment(frames: u64) -> Snapshot {
        Snapshot { tx: Some(Count { frames, bytes: 60 * frames }), ..Snapshot::default() }
    }

    /// Takes a line when it is told to.
    struct Slow {
        allowed: mpsc::Receiver<()>,
        lines: mpsc::Sender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            let _ = self.lines.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Lines that a [`Slow`] reader takes, with a moment to begin with; who allows it to, and what it has taken.
    fn read_slowly() -> (Arc<Board>, mpsc::Sender<()>, mpsc::Receiver<String>, Lines) {
        let board = Arc::new(Board::default());
        let (allow, allowed) = mpsc::channel();
        let (tell, lines) = mpsc::channel();
        board.publish(moment(1));
        let written = Lines::start(Arc::clone(&board), Slow { allowed, lines: tell }).expect("a thread");
        (board, allow, lines, written)
    }

    fn frames(line: &str) -> u64 {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        value["tx"]["frames"].as_u64().expect("frames")
    }

    #[test]
    fn a_reader_that_keeps_us_waiting_holds_nobody_up_and_gets_the_newest() {
        let (board, allow, lines, written) = read_slowly();
        // However long the reader takes, publishing goes on.
        for frames in 2..=1000 {
            board.publish(moment(frames));
        }
        allow.send(()).expect("a writer");
        let first = frames(&lines.recv().expect("a line"));
        assert!((1..=1000).contains(&first));
        board.publish(moment(1001));
        // Enough for one that was taken before this was published, this, and the last.
        (0..3).for_each(|_| allow.send(()).expect("a writer"));
        let next = frames(&lines.recv().expect("a line"));
        let newest = if next == 1000 { frames(&lines.recv().expect("a line")) } else { next };
        assert_eq!(newest, 1001);
        board.publish(moment(1002));
        drop(written);
        assert_eq!(lines.try_iter().map(|line| frames(&line)).last(), Some(1002));
    }

    #[test]
    fn a_reader_that_takes_nothing_keeps_nobody_from_ending() {
        let (board, allow, lines, written) = read_slowly();
        drop(written);
        board.publish(moment(2));
        // What was begun comes whole, and nothing after it: the channel closes with its thread.
        for _ in 0..3 {
            let _ = allow.send(());
        }
        assert!(lines.iter().map(|line| frames(&line)).all(|frames| frames == 1));
    }

    #[test]
    fn a_reader_that_left_ends_the_lines_and_nothing_else() {
        let board = Arc::new(Board::default());
        let (allow, allowed) = mpsc::channel();
        let (tell, lines) = mpsc::channel();
        drop((allow, lines));
        board.publish(moment(1));
        let written = Lines::start(Arc::clone(&board), Slow { allowed, lines: tell }).expect("a thread");
        drop(written);
        board.publish(moment(2));
    }

    #[test]
    fn the_schema_in_docs_is_that_of_a_line() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/snapshot.schema.json");
        if std::env::var_os("NETDYNO_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::write(path, schema()).expect("written");
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == schema(), "{path} is stale: NETDYNO_BLESS=1 cargo test -p netdyno-gauges");
    }

    #[test]
    fn a_line_has_what_is_known_and_nothing_else() {
        let mut moment = moment(3);
        let empty: serde_json::Value = serde_json::from_str(&line(&Snapshot::default())).expect("JSON");
        assert_eq!((&empty["schema"], &empty["phase"]), (&SCHEMA.into(), &"running".into()));
        assert!(empty.get("tx").is_none() && empty.get("latency_ns").is_none(), "{empty}");
        let mut histogram = histogram::Histogram::default();
        [10, 20, 30].into_iter().for_each(|ns| histogram.record(ns));
        moment.latency = Some(Arc::new(histogram));
        let told = line(&moment);
        assert!(told.ends_with("}\n") && told.matches('\n').count() == 1);
        let value: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        assert_eq!((&value["latency_ns"]["count"], &value["latency_ns"]["max"]), (&3.into(), &30.into()));
        assert!(value["latency_ns"].get("histogram").is_none(), "{value}");
    }
}
