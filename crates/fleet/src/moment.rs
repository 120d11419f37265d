//! How all parts of a job stand at one moment. Each agent tells of moments of its own, since the common start: those of all are taken at the latest that all have told of,
//! between two that each has told as even, so that what arrived is of the same moment as what was sent.

use crate::plan::{Part, Role};
use serde_json::Value;
use snapshot::{Board, Count, ManualControl, Snapshot, Title};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a part had counted at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moment {
    at_ns: u64,
    intended: Option<u64>,
    tx: Option<Count>,
    rx: Option<Count>,
    remaining_ns: Option<u64>,
}

/// The last two that a part has told of.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    before: Moment,
    now: Moment,
    over: bool,
    all_sent: Option<u64>,
}

impl Moment {
    /// From a line of netdyno.snapshot/1.
    fn of(told: &Value) -> Moment {
        let number = |path: &str| told.pointer(path).and_then(Value::as_u64);
        let count = |frames, bytes| Some(Count { frames: number(frames)?, bytes: number(bytes)? });
        Moment {
            at_ns: number("/elapsed_ns").unwrap_or(0),
            intended: number("/intended_frames"),
            tx: count("/tx/frames", "/tx/bytes"),
            rx: count("/rx/frames", "/rx/bytes"),
            remaining_ns: number("/remaining_ns"),
        }
    }
}

impl Seen {
    /// It has sent so many frames in all.
    pub fn has_sent(&mut self, frames: u64) {
        self.all_sent = Some(frames);
    }

    /// Frames that it has sent, as far as it has told.
    pub fn sent(&self) -> u64 {
        self.all_sent.or(self.now.tx.map(|tx| tx.frames)).unwrap_or(0)
    }

    /// Frames that it has received.
    pub fn received(&self) -> u64 {
        self.now.rx.map_or(0, |rx| rx.frames)
    }

    /// It tells of another moment.
    pub fn tell(&mut self, told: &Value) {
        let now = Moment::of(told);
        if now.at_ns > self.now.at_ns {
            self.before = std::mem::replace(&mut self.now, now);
        }
    }

    /// It counts no more.
    pub fn is_over(&mut self) {
        self.over = true;
    }

    fn at(&self, at_ns: u64) -> Moment {
        let Seen { before, now, .. } = self;
        if at_ns >= now.at_ns {
            return *now;
        }
        let (passed, span) = (at_ns.saturating_sub(before.at_ns), (now.at_ns - before.at_ns).max(1));
        let even = |from: u64, to: u64| {
            let part = u128::from(to.saturating_sub(from)) * u128::from(passed) / u128::from(span);
            from.saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
        };
        let count = |from: Option<Count>, to: Option<Count>| {
            let (from, to) = (from.unwrap_or_default(), to?);
            Some(Count { frames: even(from.frames, to.frames), bytes: even(from.bytes, to.bytes) })
        };
        Moment {
            at_ns,
            intended: now.intended.map(|to| even(before.intended.unwrap_or(0), to)),
            tx: count(before.tx, now.tx),
            rx: count(before.rx, now.rx),
            remaining_ns: now.remaining_ns,
        }
    }
}

/// What a job of several agents is called for who looks on.
pub(crate) fn title(command: &str) -> Title {
    let why = Some("several agents carry it out".to_owned());
    Title {
        command: command.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        manual: ManualControl { no_pause: why.clone(), no_rate: why },
        ..Title::default()
    }
}

/// What was shown of a job.
pub(crate) struct Shown {
    title: Arc<Title>,
    at_ns: u64,
}

impl Shown {
    pub(crate) fn of(title: Title) -> Shown {
        Shown { title: Arc::new(title), at_ns: 0 }
    }

    /// Shows how all stand now, if that is later than what was shown.
    pub(crate) fn show(&mut self, board: &Board, now: Option<Snapshot>) {
        if let Some(snapshot) = now.filter(|snapshot| snapshot.at_ns > self.at_ns) {
            self.at_ns = snapshot.at_ns;
            board.publish(Snapshot { title: Arc::clone(&self.title), ..snapshot });
        }
    }
}

/// How all stand; `None`, until each has told of a moment.
pub(crate) fn summed(seen: &BTreeMap<usize, Seen>, parts: &[Part]) -> Option<Snapshot> {
    // A server's counts are the test's, seen from its end.
    if seen.len() < parts.iter().filter(|part| part.role != Role::Serves).count() {
        return None;
    }
    let going = seen.values().filter(|seen| !seen.over).map(|seen| seen.now.at_ns).min();
    let at_ns = going.or_else(|| seen.values().map(|seen| seen.now.at_ns).max())?;
    let moments: Vec<(usize, Moment)> = seen.iter().map(|(part, seen)| (*part, seen.at(at_ns))).collect();
    let all = |of: fn(&Moment) -> Option<Count>| {
        moments.iter().filter_map(|(_, moment)| of(moment)).reduce(|a, b| Count {
            frames: a.frames.saturating_add(b.frames),
            bytes: a.bytes.saturating_add(b.bytes),
        })
    };
    let sends = |part: usize| parts.get(part).is_some_and(|part| !part.role.attends());
    let senders: Vec<&Moment> =
        moments.iter().filter(|(part, _)| sends(*part)).map(|(_, moment)| moment).collect();
    let intended = senders.iter().try_fold(0u64, |sum, moment| Some(sum.saturating_add(moment.intended?)));
    let intended = intended.filter(|_| !senders.is_empty());
    let (mut tx, rx) = (all(|moment| moment.tx), all(|moment| moment.rx));
    if let (Some(tx), Some(rx)) = (&mut tx, rx)
        && rx.frames <= intended.unwrap_or(u64::MAX)
    {
        // A sender counts frames a moment after they left: what has arrived was sent.
        (tx.frames, tx.bytes) = (tx.frames.max(rx.frames), tx.bytes.max(rx.bytes));
    }
    Some(Snapshot {
        at_ns,
        remaining_ns: senders.iter().filter_map(|moment| moment.remaining_ns).max(),
        percent: 100,
        intended,
        tx,
        rx,
        ..Snapshot::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(at_ms: u64, end: &str, frames: u64) -> Value {
        json!({ "elapsed_ns": at_ms * 1_000_000, end: { "frames": frames, "bytes": frames * 60 } })
    }

    #[test]
    fn what_arrived_is_of_the_moment_that_what_was_sent_is_of() {
        let part = |role| Part {
            agent: 0,
            role,
            job: Default::default(),
            sends_on: Vec::new(),
            measures_on: Vec::new(),
            arrives_at: Vec::new(),
        };
        let parts = [part(Role::Measures), part(Role::Sends { number: 0, measured_at: Some(0) })];
        let mut seen: BTreeMap<usize, Seen> = BTreeMap::new();
        let frames = |seen: &BTreeMap<usize, Seen>| {
            let all = summed(seen, &parts)?;
            Some((all.at_ns / 1_000_000, all.tx?.frames, all.rx?.frames))
        };
        // A thousand a second; the meter tells of later moments than the sender.
        seen.entry(0).or_default().tell(&told(700, "rx", 700));
        assert_eq!(frames(&seen), None, "the sender has told of none");
        seen.entry(1).or_default().tell(&told(500, "tx", 500));
        assert_eq!(frames(&seen), Some((500, 500, 500)));
        seen.entry(0).or_default().tell(&told(1_200, "rx", 1_200));
        seen.entry(1).or_default().tell(&told(1_000, "tx", 1_000));
        assert_eq!(frames(&seen), Some((1_000, 1_000, 1_000)));
        // One that is over holds nobody up, and what comes late is no news.
        seen.entry(1).or_default().is_over();
        seen.entry(0).or_default().tell(&told(600, "rx", 1));
        assert_eq!(frames(&seen), Some((1_200, 1_200, 1_200)));
    }
}
