//! The clock of an agent beside this host's: exchanges through its pipe (docs/agent.md, `clock`), with no interpreter in between.
//!
//! To wake a thread takes tens of microseconds, and to get the interpreter as long again, both in one direction only: half of that would be
//! the error. So this end does not sleep while an answer is on its way, for as long as answers through a pipe take; the agent does
//! the same.

use clocks::{Clock, now};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Exchanges, at most; of these the one with the least round trip counts.
const MOST: usize = 900;
/// However slow they are, so many.
const LEAST: usize = 8;
/// A round trip with nobody else in between: nothing is gained by many more.
const CLOSE_NS: i64 = 10_000;
/// With a close one so many are enough, or so much time; without one, which other programs' work keeps away, more.
const ENOUGH: (usize, Duration) = (300, Duration::from_millis(40));
/// Beyond the least number none begins later than this.
const BUDGET: Duration = Duration::from_millis(300);
/// All end by then.
const LAST: Duration = Duration::from_secs(2);
/// Between the look at an answer's time and that at the clock which it is held to lies reading the answer; a step of less is not seen.
const SLACK_NS: i64 = 1_000_000;
/// An answer is awaited so long without sleeping.
const AWAKE: Duration = Duration::from_micros(300);
/// Steps in which the agent is left alone before the next one, so that it has come back to its pipe: the best step differs by build.
const PAUSE: Duration = Duration::from_micros(3);
const PIECE: usize = 64 << 10;

/// What exchanges came to.
struct Exchanged {
    /// This host's time of the best one, and how far the agent's clock was ahead then.
    at: i64,
    ahead: i64,
    round_trip: i64,
    exchanges: usize,
}

/// An end of the pipe that the interpreter has, as one of its own: nothing is changed for whoever has the other.
fn reopened(fd: i32, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    open(format!("/proc/self/fd/{fd}"), flags | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
}

/// The lines of the pipe, of which those that answer `clock` are kept back.
struct Lines {
    from: OwnedFd,
    /// For others, and behind them a part of a line.
    others: Vec<u8>,
    /// Where that part begins.
    part: usize,
    piece: Box<[u8]>,
}

/// An answer, and when it came.
struct Answer {
    t2: i64,
    t3: i64,
    t4: i64,
}

impl Lines {
    /// Waits for the answer to a request; None: the other end was closed, or it was too late.
    fn answer(&mut self, id: &str, last: Instant) -> rustix::io::Result<Option<Answer>> {
        let awake = Instant::now() + AWAKE;
        loop {
            let looked = Instant::now();
            if looked >= last {
                return Ok(None);
            }
            let patience = if looked < awake { Duration::ZERO } else { last - looked };
            if !comes(&self.from, patience)? {
                std::thread::yield_now();
                continue;
            }
            let length = match read(&self.from, &mut self.piece[..]) {
                Ok(0) => return Ok(None),
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let t4 = tai();
            self.others.extend_from_slice(self.piece.get(..length).unwrap_or_default());
            if let Some((t2, t3)) = self.taken(id) {
                return Ok(Some(Answer { t2, t3, t4 }));
            }
        }
    }

    /// Takes the answer to that request out of the whole lines, if it is there.
    fn taken(&mut self, id: &str) -> Option<(i64, i64)> {
        let mut found = None;
        while let Some(line) = self.others.get(self.part..) {
            let Some(end) = line.iter().position(|byte| *byte == b'\n') else { break };
            let end = self.part + end + 1;
            match self.others.get(self.part..end).and_then(|line| times(line, id)) {
                Some(times) => {
                    found = Some(times);
                    self.others.drain(self.part..end);
                }
                None => self.part = end,
            }
        }
        found
    }
}

/// Is there something to be read, or the end of it, within `patience`? (`port` has the same, and needs more than an extension may.)
fn comes(fd: &OwnedFd, patience: Duration) -> rustix::io::Result<bool> {
    let time = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

fn tai() -> i64 {
    i64::try_from(now(Clock::Tai)).unwrap_or(i64::MAX)
}

/// `t2` and `t3` of a line that answers that request.
fn times(line: &[u8], id: &str) -> Option<(i64, i64)> {
    // Reports are long, and none of them is looked through.
    if line.len() > 512 {
        return None;
    }
    let read: serde_json::Value = serde_json::from_slice(line).ok()?;
    if read.get("id")?.as_str()? != id {
        return None;
    }
    let result = read.get("result")?;
    Some((result.get("t2")?.as_i64()?, result.get("t3")?.as_i64()?))
}

fn exchange(lines: &mut Lines, to: &OwnedFd, name: &str) -> rustix::io::Result<Option<Exchanged>> {
    let began = Instant::now();
    let mut best: Option<Exchanged> = None;
    for number in 0..MOST {
        let (took, close) = (began.elapsed(), best.as_ref().is_some_and(|best| best.round_trip <= CLOSE_NS));
        let enough = took > BUDGET || close && (number >= ENOUGH.0 || took > ENOUGH.1);
        if number >= LEAST && enough {
            break;
        }
        let pause = Instant::now() + PAUSE * u32::try_from(number % 8).unwrap_or(0);
        while Instant::now() < pause {
            std::hint::spin_loop();
        }
        let id = format!("{name}-{number}");
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"clock\",\"params\":{{\"t1\":{number}}}}}\n"
        );
        let (monotonic, t1) = (clocks::monotonic(), tai());
        // Far less than a pipe takes at once, and nobody else writes meanwhile: all or nothing.
        match write(to, line.as_bytes()) {
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => {
                std::thread::yield_now();
                continue;
            }
            Err(Errno::PIPE) => break,
            Err(error) => return Err(error),
        }
        let Some(Answer { t2, t3, t4 }) = lines.answer(&id, began + LAST)? else { break };
        let round_trip = (t4.saturating_sub(t1)).saturating_sub(t3.saturating_sub(t2));
        let exchanges = best.as_ref().map_or(0, |best| best.exchanges) + 1;
        // A clock that was set in between tells nothing: its time went on otherwise than that which nobody sets, by more than it is slewed.
        let lasted = i64::try_from(clocks::monotonic().saturating_sub(monotonic)).unwrap_or(i64::MAX);
        let took = t4.saturating_sub(t1);
        // The clock is read before the times that it is held to, and after.
        let set = took > lasted + lasted / 1000 || lasted - took > SLACK_NS;
        if set || round_trip < 0 || t3 < t2 {
            continue;
        }
        let ahead = t2.saturating_sub(t1).saturating_add(t3.saturating_sub(t4)).div_euclid(2);
        match &mut best {
            Some(best) if best.round_trip <= round_trip => best.exchanges = exchanges,
            _ => best = Some(Exchanged { at: t1, ahead, round_trip, exchanges }),
        }
    }
    Ok(best)
}

/// When, how far ahead, round trip, exchanges; and what is for others.
type Told<'p> = ((i64, i64, i64, usize), Bound<'p, pyo3::types::PyBytes>);

/// Exchanges times with an agent whose answers come from `from_` and whose requests go to `to`, where nobody else reads or writes meanwhile;
/// `rest` was read and not yet looked at, and `name` begins the ids of the requests.
///
/// Returns when the best exchange was (`CLOCK_TAI`), how far the agent's clock was ahead, its round trip (all in nanoseconds), how many
/// exchanges there were (0: it did not answer), and what was read for others, behind `rest`.
#[pyfunction]
#[pyo3(signature = (from_, to, rest, name))]
pub(crate) fn exchange_clocks<'p>(
    py: Python<'p>,
    from_: i32,
    to: i32,
    rest: Vec<u8>,
    name: &str,
) -> PyResult<Told<'p>> {
    if name.bytes().any(|byte| !byte.is_ascii_alphanumeric()) {
        return Err(PyValueError::new_err("a name of letters and digits"));
    }
    let failed = |error: Errno| PyOSError::new_err((error.raw_os_error(), error.to_string()));
    // While the interpreter is held: nobody closes them meanwhile, upon which their numbers could be another file's.
    let (to, from) =
        (reopened(to, OFlags::WRONLY).map_err(failed)?, reopened(from_, OFlags::RDONLY).map_err(failed)?);
    let (found, others) = py
        .detach(|| {
            let mut lines = Lines { from, part: 0, others: rest, piece: vec![0; PIECE].into_boxed_slice() };
            lines.taken("");
            let found = exchange(&mut lines, &to, name);
            rustix::io::Result::Ok((found, lines.others))
        })
        .map_err(failed)?;
    // What was read for others is theirs whatever came of it.
    let found = found
        .ok()
        .flatten()
        .map_or((0, 0, 0, 0), |found| (found.at, found.ahead, found.round_trip, found.exchanges));
    Ok((found, pyo3::types::PyBytes::new(py, &others)))
}
