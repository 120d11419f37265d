//! What is said to the peer: in the capture's pieces, as fast as the peer's window and the network allow (RFC 5681), and
//! again where it was lost (RFC 6298, RFC 6675 in short: three duplicate acknowledgements or three segments' worth of
//! selective ones mean that a segment is lost).

use super::{MS, Nanos, rtt::Rtt};
use std::collections::VecDeque;
use std::ops::Range;

/// Duplicate acknowledgements that mean a loss (RFC 5681 section 3.2).
const DUPLICATES: u32 = 3;
/// Segments that may leave before the first acknowledgement (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Zero windows are probed after as long as the retransmission timer, then ever more seldom up to this.
const LONGEST_PROBE: Nanos = 10_000 * MS;

/// A piece that left and is not acknowledged.
#[derive(Debug, Clone)]
struct Flight {
    start: u64,
    end: u64,
    push: bool,
    fin: bool,
    sent: Nanos,
    /// How often it left.
    times: u32,
    sacked: bool,
    /// To be sent again.
    lost: bool,
}

/// What to send: bytes of the stream, or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub range: Range<u64>,
    pub push: bool,
    pub fin: bool,
}

/// Offsets in our sequence space: the SYN is 0, the first byte 1.
#[derive(Debug)]
pub struct Sender {
    /// Pieces to send that have not left, by their ends.
    words: VecDeque<(u64, bool)>,
    fin_wanted: bool,
    fin_left: bool,
    /// First not acknowledged, and first not sent.
    una: u64,
    next: u64,
    flights: VecDeque<Flight>,
    mss: u64,
    /// The peer's window, in bytes from `una`, and when it was told.
    window: u64,
    most_window: u64,
    cwnd: u64,
    ssthresh: u64,
    duplicates: u32,
    /// In recovery until this is acknowledged.
    recovery: Option<u64>,
    timer: Option<Nanos>,
    probe: Option<(Nanos, Nanos)>,
    /// The timer ran out so often since anything was acknowledged.
    pub tries: u32,
    pub retransmitted: u64,
    pub fast_retransmits: u64,
    pub timeouts: u64,
    pub probes: u64,
}

impl Sender {
    pub fn new() -> Sender {
        Sender {
            words: VecDeque::new(),
            fin_wanted: false,
            fin_left: false,
            una: 1,
            next: 1,
            flights: VecDeque::new(),
            mss: 536,
            window: 0,
            most_window: 0,
            cwnd: 0,
            ssthresh: u64::MAX,
            duplicates: 0,
            recovery: None,
            timer: None,
            probe: None,
            tries: 0,
            retransmitted: 0,
            fast_retransmits: 0,
            timeouts: 0,
            probes: 0,
        }
    }

    /// The connection is there: segments of at most `mss` bytes, into a window of so many.
    pub fn established(&mut self, mss: u64, window: u64) {
        self.mss = mss.max(1);
        self.cwnd = INITIAL_WINDOW * self.mss;
        self.window = window;
        self.most_window = window;
    }

    /// Packets of this size do not get through.
    pub fn limit(&mut self, mss: u64) {
        if mss >= self.mss {
            return;
        }
        self.mss = mss.max(1);
        self.flights.iter_mut().filter(|flight| !flight.sacked).for_each(|flight| flight.lost = true);
    }

    pub fn una(&self) -> u64 {
        self.una
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    /// Everything that was asked for has left and was acknowledged.
    pub fn idle(&self) -> bool {
        self.flights.is_empty() && self.words.is_empty() && self.fin_wanted == self.fin_left
    }

    /// Our FIN was acknowledged.
    pub fn finished(&self) -> bool {
        self.fin_left && self.flights.is_empty()
    }

    /// Bytes up to `end` may be said, as one piece.
    pub fn say(&mut self, end: u64, push: bool) {
        if self.words.back().map_or(self.next, |(last, _)| *last) < end {
            self.words.push_back((end, push));
        }
    }

    /// After what was said there is no more.
    pub fn end(&mut self) {
        self.fin_wanted = true;
    }

    /// The bytes that are taken for being in the network.
    fn pipe(&self) -> u64 {
        // Each duplicate says that something has arrived; selective acknowledgements say what.
        let told = self.recovery.is_some() && !self.flights.iter().any(|flight| flight.sacked);
        let arrived = if told { u64::from(self.duplicates) * self.mss } else { 0 };
        let pipe: u64 = self
            .flights
            .iter()
            .filter(|flight| !flight.sacked && !flight.lost)
            .map(|flight| flight.end - flight.start)
            .sum();
        pipe.saturating_sub(arrived)
    }

    /// What to send now, if anything. Call it until it says no.
    pub fn poll(&mut self, now: Nanos, rtt: &Rtt) -> Option<Piece> {
        let pipe = self.pipe();
        let mss = self.mss;
        if let Some(at) = self.flights.iter().position(|flight| flight.lost)
            && (pipe < self.cwnd || at == 0)
        {
            // What was sent as one and is too large by now leaves in two.
            let split = self.flights.get_mut(at).and_then(|flight| {
                (flight.end - flight.start > mss && !flight.fin).then(|| {
                    let rest = Flight { start: flight.start + mss, times: flight.times, ..flight.clone() };
                    (flight.end, flight.push) = (rest.start, false);
                    rest
                })
            });
            if let Some(rest) = split {
                self.flights.insert(at + 1, rest);
            }
            let flight = self.flights.get_mut(at)?;
            (flight.lost, flight.sent) = (false, now);
            flight.times += 1;
            self.retransmitted += 1;
            let end = flight.end - u64::from(flight.fin);
            let piece = Piece { range: flight.start..end, push: flight.push, fin: flight.fin };
            self.timer = Some(now + rtt.timeout());
            return Some(piece);
        }
        let (range, push, fin) = match self.words.front().copied() {
            Some((end, push)) => {
                let room =
                    self.window.saturating_sub(self.next - self.una).min(self.cwnd.saturating_sub(pipe));
                let wanted = (end - self.next).min(self.mss);
                // Not in slivers (RFC 9293 section 3.8.6.2.1): all of it, or as much as half of what the peer ever took.
                if room < wanted && (room == 0 || room < (self.most_window / 2).min(self.mss)) {
                    self.wait_for_window(now, rtt);
                    return None;
                }
                let to = self.next + wanted.min(room);
                (self.next..to, push && to == end, false)
            }
            None if self.fin_wanted && !self.fin_left => (self.next..self.next, false, true),
            None => return None,
        };
        self.probe = None;
        let end = range.end + u64::from(fin);
        self.flights.push_back(Flight {
            start: range.start,
            end,
            push,
            fin,
            sent: now,
            times: 1,
            sacked: false,
            lost: false,
        });
        self.next = end;
        self.fin_left |= fin;
        if self.words.front().is_some_and(|(end, _)| *end <= self.next) {
            self.words.pop_front();
        }
        self.timer.get_or_insert(now + rtt.timeout());
        Some(Piece { range, push, fin })
    }

    /// Nothing is on its way that could bring a larger window: ask for it from time to time.
    fn wait_for_window(&mut self, now: Nanos, rtt: &Rtt) {
        if self.flights.is_empty() && self.probe.is_none() {
            self.probe = Some((now + rtt.timeout(), rtt.timeout()));
        }
    }

    /// When [`on_time`](Self::on_time) wants to be called.
    pub fn deadline(&self) -> Option<Nanos> {
        let probe = self.probe.map(|(at, _)| at);
        self.timer.into_iter().chain(probe).min()
    }

    /// Time went on. True if the peer is to be asked for its window.
    pub fn on_time(&mut self, now: Nanos, rtt: &mut Rtt) -> bool {
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timer = None;
            if !self.flights.is_empty() {
                // RFC 5681 section 3.1, equation 4; RFC 6298 section 5.4 to 5.6.
                if self.tries == 0 {
                    self.ssthresh = (self.pipe() / 2).max(2 * self.mss);
                }
                self.cwnd = self.mss;
                (self.recovery, self.duplicates) = (None, 0);
                self.tries += 1;
                self.timeouts += 1;
                rtt.back_off();
                self.flights.iter_mut().filter(|flight| !flight.sacked).for_each(|flight| flight.lost = true);
                // A peer may forget what it acknowledged selectively (RFC 2018 section 8).
                if let Some(first) = self.flights.front_mut() {
                    (first.lost, first.sacked) = (true, false);
                }
                self.timer = Some(now + rtt.timeout());
            }
        }
        if let Some((at, pause)) = self.probe
            && at <= now
        {
            let pause = (pause * 2).min(LONGEST_PROBE);
            self.probe = Some((now + pause, pause));
            self.probes += 1;
            // A window that stays small is used as it is (RFC 9293 section 3.8.6.2.1).
            self.most_window = self.window;
            return true;
        }
        false
    }

    /// An acknowledgement up to `ack`, with the window from there on. `bare`: without payload, so it may be a duplicate.
    pub fn acknowledged(
        &mut self,
        ack: u64,
        window: u64,
        sacks: impl Iterator<Item = (u64, u64)>,
        bare: bool,
        now: Nanos,
        rtt: &mut Rtt,
    ) {
        let news = self.mark_sacked(sacks);
        let same_window = window == self.window;
        self.window = window;
        self.most_window = self.most_window.max(window);
        if window > 0 {
            self.probe = None;
        }
        if ack > self.una {
            self.advance(ack, now, rtt);
        } else if bare && !self.flights.is_empty() && (same_window || news) {
            self.duplicates += 1;
        }
        self.look_for_losses();
    }

    fn advance(&mut self, ack: u64, now: Nanos, rtt: &mut Rtt) {
        let newly = ack - self.una;
        self.una = ack;
        (self.duplicates, self.tries) = (0, 0);
        rtt.progress();
        let mut measured = None;
        while let Some(flight) = self.flights.front_mut() {
            if flight.end > ack {
                flight.start = flight.start.max(ack);
                break;
            }
            if flight.times == 1 {
                measured = Some(now.saturating_sub(flight.sent));
            }
            self.flights.pop_front();
        }
        if let Some(sample) = measured {
            rtt.sample(sample);
        }
        self.next = self.next.max(ack);
        match self.recovery {
            Some(point) if ack < point => {
                // A partial acknowledgement: the next one is lost, too (RFC 6582 section 3.2).
                if let Some(first) = self.flights.front_mut()
                    && !first.sacked
                    && first.times == 1
                {
                    first.lost = true;
                }
            }
            Some(_) => {
                self.recovery = None;
                self.cwnd = self.ssthresh;
            }
            None if self.cwnd < self.ssthresh => self.cwnd += newly.min(2 * self.mss),
            None => self.cwnd += (self.mss * newly / self.cwnd.max(1)).max(1),
        }
        self.timer = (!self.flights.is_empty()).then(|| now + rtt.timeout());
    }

    /// True if a block was news.
    fn mark_sacked(&mut self, sacks: impl Iterator<Item = (u64, u64)>) -> bool {
        let mut news = false;
        for (left, right) in sacks {
            for flight in &mut self.flights {
                if !flight.sacked && flight.start >= left && flight.end <= right {
                    (flight.sacked, flight.lost) = (true, false);
                    news = true;
                }
            }
        }
        news
    }

    /// Marks what is lost, and begins a recovery if that is new.
    fn look_for_losses(&mut self) {
        let enough = u64::from(DUPLICATES) * self.mss;
        let mut above = 0;
        let mut lost = false;
        for flight in self.flights.iter_mut().rev() {
            if flight.sacked {
                above += flight.end - flight.start;
            } else if flight.times == 1 && !flight.lost && above >= enough {
                flight.lost = true;
                lost = true;
            }
        }
        if self.recovery.is_none()
            && self.duplicates >= DUPLICATES
            && let Some(first) = self.flights.front_mut()
            && first.times == 1
            && !first.sacked
        {
            first.lost = true;
            lost = true;
        }
        if lost && self.recovery.is_none() {
            self.fast_retransmits += 1;
            self.recovery = Some(self.next);
            let flying: u64 = self.flights.iter().map(|flight| flight.end - flight.start).sum();
            self.ssthresh = (flying / 2).max(2 * self.mss);
            self.cwnd = self.ssthresh;
        }
    }
}
