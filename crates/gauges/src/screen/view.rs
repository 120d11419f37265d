//! What the screen remembers between two moments, and what keys do to it. No terminal, no clock.

use snapshot::{Count, Phase, Request, Snapshot};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rates and latencies of "now" are of the last second.
const NOW_NS: u64 = 1_000_000_000;
/// A column of the history.
const COLUMN_NS: u64 = 500_000_000;
/// Columns kept: as many as a wide terminal has.
const COLUMNS: usize = 400;
/// The help has hardly more lines, however narrow the terminal is.
const MOST_OF_HELP: usize = 60;

/// One column of the history: rates in frames a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Column {
    pub sent: f64,
    pub received: f64,
    pub lost: f64,
    /// Latency that 99 % of the column's frames stayed within; 0 where none was measured.
    pub p99_ns: f64,
    /// Of an endpoint test, a second: bits of payload sent and received, transactions, segments sent again.
    pub endpoint: [f64; 4],
}

/// By what streams are sorted; ties by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Loss,
    Rate,
    Number,
}

impl Order {
    pub fn name(self) -> &'static str {
        match self {
            Order::Loss => "loss",
            Order::Rate => "rate",
            Order::Number => "number",
        }
    }

    fn next(self) -> Order {
        match self {
            Order::Loss => Order::Rate,
            Order::Rate => Order::Number,
            Order::Number => Order::Loss,
        }
    }
}

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Quit,
    Pause,
    Faster,
    Slower,
    AsAsked,
    Help,
    /// Leaves the help.
    Back,
    Order,
    Down(usize),
    Up(usize),
    Top,
}

/// Everything that is drawn.
#[derive(Debug, Default)]
pub struct View {
    pub now: Option<Arc<Snapshot>>,
    /// The last second.
    recent: VecDeque<Arc<Snapshot>>,
    pub history: VecDeque<Column>,
    /// Where the column that is being filled began.
    column: Option<Arc<Snapshot>>,
    pub order: Order,
    pub scroll: usize,
    pub help: bool,
    /// The help's first line that is shown.
    pub help_scroll: usize,
    pub quitting: bool,
    /// An answer to the last key.
    pub note: Option<String>,
}

fn rate(now: u64, before: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { now.saturating_sub(before) as f64 * 1e9 / ns as f64 }
}

impl View {
    /// The moment to compare the present one with.
    pub fn before(&self) -> Option<&Snapshot> {
        let now = self.now.as_ref()?;
        self.recent.front().filter(|before| before.at_ns < now.at_ns).map(Arc::as_ref)
    }

    pub fn update(&mut self, moment: Arc<Snapshot>) {
        // Another run of the same command begins at zero again.
        if self.now.as_ref().is_some_and(|now| moment.at_ns < now.at_ns) {
            self.recent.clear();
            self.history.clear();
            self.column = None;
        }
        let begin = Arc::clone(self.column.get_or_insert_with(|| Arc::new(Snapshot::default())));
        let span = moment.at_ns.saturating_sub(begin.at_ns);
        if span >= COLUMN_NS {
            let of = |of: fn(&Snapshot) -> u64| rate(of(&moment), of(&begin), span);
            let counts = |m: &Snapshot| {
                m.endpoint.map_or([0; 4], |e| {
                    [
                        e.sent_bytes.saturating_mul(8),
                        e.received_bytes.saturating_mul(8),
                        e.transactions.unwrap_or(0),
                        e.retransmits.unwrap_or(0),
                    ]
                })
            };
            let (now, before) = (counts(&moment), counts(&begin));
            if self.history.len() == COLUMNS {
                self.history.pop_front();
            }
            self.history.push_back(Column {
                sent: of(|m| m.tx.map_or(0, |c| c.frames)),
                received: of(|m| m.rx.map_or(0, |c| c.frames)),
                lost: of(|m| m.lost.unwrap_or(0)),
                p99_ns: match (&moment.latency, &begin.latency) {
                    (Some(now), Some(before)) => now.since(before).p99() as f64,
                    (Some(now), None) => now.p99() as f64,
                    (None, _) => 0.0,
                },
                endpoint: std::array::from_fn(|n| rate(now[n], before[n], span)),
            });
            self.column = Some(Arc::clone(&moment));
        }
        if self.recent.is_empty() && moment.at_ns < 2 * NOW_NS {
            // At first, "now" is what there was since the start.
            self.recent
                .push_back(Arc::new(Snapshot { title: Arc::clone(&moment.title), ..Snapshot::default() }));
        }
        while self.recent.get(1).is_some_and(|second| second.at_ns + NOW_NS <= moment.at_ns) {
            self.recent.pop_front();
        }
        self.recent.push_back(Arc::clone(&moment));
        if self.now.as_ref().map(|now| now.phase) != Some(moment.phase) {
            self.note = None;
        }
        self.now = Some(moment);
    }

    /// Does what a key asks for; what the run has to do is returned.
    pub fn press(&mut self, key: Key) -> Option<Request> {
        self.note = None;
        let manual = self.now.as_ref().map(|now| now.title.manual.clone()).unwrap_or_default();
        let over = self.now.as_ref().is_some_and(|now| matches!(now.phase, Phase::Settling | Phase::Ended));
        let (why_not, request) = match key {
            Key::Quit => {
                self.quitting = true;
                return None;
            }
            Key::Help => {
                self.help = !self.help;
                self.help_scroll = 0;
                return None;
            }
            Key::Back => {
                self.help = false;
                return None;
            }
            Key::Order => {
                self.order = self.order.next();
                self.scroll = 0;
                return None;
            }
            Key::Down(by) if self.help => {
                self.help_scroll = (self.help_scroll + by).min(MOST_OF_HELP);
                return None;
            }
            Key::Up(by) if self.help => {
                self.help_scroll = self.help_scroll.saturating_sub(by);
                return None;
            }
            Key::Down(by) => {
                let streams = self.now.as_ref().map_or(0, |now| now.streams.len());
                self.scroll = (self.scroll + by).min(streams.saturating_sub(1));
                return None;
            }
            Key::Up(by) => {
                self.scroll = self.scroll.saturating_sub(by);
                return None;
            }
            Key::Top => {
                self.scroll = 0;
                return None;
            }
            Key::Pause => (manual.no_pause, Request::Toggle),
            Key::Faster => (manual.no_rate, Request::Faster),
            Key::Slower => (manual.no_rate, Request::Slower),
            Key::AsAsked => (manual.no_rate, Request::Percent(100)),
        };
        match why_not {
            _ if over => self.note = Some("all was sent: nothing can be changed any more".to_owned()),
            Some(why) => self.note = Some(why),
            None => return Some(request),
        }
        None
    }

    /// The rates of now, in frames and bytes a second.
    pub fn rates(&self, of: fn(&Snapshot) -> Option<Count>) -> Option<(f64, f64)> {
        let now = self.now.as_ref()?;
        let (count, before) = (of(now)?, self.before()?);
        let (then, span) = (of(before).unwrap_or_default(), now.at_ns - before.at_ns);
        Some((rate(count.frames, then.frames, span), rate(count.bytes, then.bytes, span)))
    }

    /// A single count's rate of now.
    pub fn rate(&self, of: fn(&Snapshot) -> Option<u64>) -> Option<f64> {
        self.rate_of(of)
    }

    /// The same, of whatever.
    pub fn rate_of(&self, of: impl Fn(&Snapshot) -> Option<u64>) -> Option<f64> {
        let now = self.now.as_ref()?;
        let (count, before) = (of(now)?, self.before()?);
        Some(rate(count, of(before).unwrap_or(0), now.at_ns - before.at_ns))
    }

    /// The rate of a queue of now, which is looked at less often: else that of the run.
    pub fn queue_rate(&self, queue: &snapshot::Queue) -> f64 {
        let Some(now) = &self.now else { return 0.0 };
        let same = |then: &&snapshot::Queue| {
            (&then.interface, then.receives, then.number) == (&queue.interface, queue.receives, queue.number)
        };
        let before = self.before().filter(|before| before.counters_at_ns < now.counters_at_ns);
        let packets =
            before.and_then(|before| before.queues.iter().find(same)).map_or(0, |then| then.packets);
        rate(queue.packets, packets, now.counters_at_ns - before.map_or(0, |before| before.counters_at_ns))
    }

    /// The streams, in order, with their rates of now.
    pub fn streams(&self) -> Vec<(&snapshot::Stream, f64)> {
        let Some(now) = &self.now else { return Vec::new() };
        let (then, span): (&[snapshot::Stream], u64) = match self.before() {
            Some(before) => (&before.streams, now.streams_at_ns.saturating_sub(before.streams_at_ns)),
            None => (&[], 0),
        };
        let rate_of = |stream: &snapshot::Stream| {
            let found = then.binary_search_by_key(&stream.number, |s| s.number).ok();
            let before = found.map_or(0, |n| then[n].received.frames);
            rate(stream.received.frames, before, span)
        };
        let mut all: Vec<_> = now.streams.iter().map(|s| (s, rate_of(s))).collect();
        match self.order {
            Order::Loss => all.sort_by_key(|(stream, _)| (std::cmp::Reverse(stream.lost), stream.number)),
            Order::Rate => all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.number.cmp(&b.0.number))),
            Order::Number => all.sort_by_key(|(stream, _)| stream.number),
        }
        all
    }
}
