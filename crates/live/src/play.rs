//! Says the client's words at the right moments, hears the answers, and decides what became of it all. Pure: segments and
//! times in, segments and times out.

use crate::compare::{Answer, Captured, Difference, Later};
use crate::connection::{Config, Connection, Counts, End, MS, Nanos, State};
use crate::dialogue::{Dialogue, Ended, Exchange, Say, Step};
use crate::packet::Ends;
use crate::segment::Segment;
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::sync::Arc;

/// An answer that is another one, but as long as captured, has so long to go on.
const SETTLE: Nanos = 50 * MS;
/// How long the other side may take to close when all was said.
const CLOSING: Nanos = 2_000 * MS;
/// How long we answer for a connection that is over: our last acknowledgement may have been lost.
const LINGER: Nanos = 50 * MS;

/// How it is played.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Wait as long as the captured client did before its words; else say them at once.
    pub captured_timing: bool,
    /// Without an answer, or without getting a word out, for so long, it is given up.
    pub timeout: Nanos,
    /// A short or other answer is over when nothing came for so long.
    pub quiet: Nanos,
    /// What may differ in answers.
    pub ignore: Vec<Regex>,
}

/// How one exchange went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanged {
    /// When the last word was said, on the clock that callers give.
    pub asked_at: Option<Nanos>,
    /// Bytes that the client said.
    pub said: u64,
    /// Bytes of the captured answer.
    pub expected: u64,
    /// Bytes of the answer.
    pub received: u64,
    /// Bytes that the capture does not have.
    pub not_compared: u64,
    /// The first place where the answer is another.
    pub difference: Option<Difference>,
    /// From the last word to the first byte of the answer.
    pub first_byte_ns: Option<Nanos>,
    /// The same in the capture.
    pub captured_first_byte_ns: Option<Nanos>,
    /// From the last word to the last byte of the answer.
    pub last_byte_ns: Option<Nanos>,
    /// The same in the capture.
    pub captured_last_byte_ns: Option<Nanos>,
}

/// What stopped it before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The server does not accept connections there.
    Refused,
    /// Nothing came back to the SYN.
    NoAnswerToSyn,
    /// The server does not acknowledge.
    NotAcknowledged,
    /// The server acknowledges, but takes nothing.
    WindowClosed,
    /// The server takes what it is told, and says nothing.
    NoAnswer,
    /// The server reset the connection.
    Reset,
    /// The server closed before all was said.
    ClosedEarly,
    /// The user stopped it.
    Stopped,
}

/// What became of a connection.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was played.
    pub dialogue: Arc<Dialogue>,
    /// From where to where.
    pub ends: Ends,
    /// The server took the connection.
    pub connected: bool,
    /// What stopped it before its end.
    pub broken: Option<Broken>,
    /// In order.
    pub exchanges: Vec<Exchanged>,
    /// Bytes that the server acknowledged.
    pub said: u64,
    /// Who ended it.
    pub ended: Ended,
    /// It did not close although it was told.
    pub left_open: bool,
    /// What TCP did.
    pub counts: Counts,
    /// From the first segment to the last.
    pub duration_ns: Nanos,
}

impl Outcome {
    /// Every byte the server said is what it said in the capture, and all was said.
    pub fn is_equal(&self) -> bool {
        self.broken.is_none() && self.exchanges.iter().all(|exchange| exchange.difference.is_none())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Connecting,
    /// In this exchange, before this step.
    Saying(usize),
    Hearing,
    Closing(usize),
    /// Until then.
    Ending(Nanos),
    /// Over, but answered for until then.
    Lingering(Nanos),
    Done,
}

/// An answer to compare while the connection goes on: [`compare`](Self::compare) takes as long as it takes, and
/// [`Play::compared`] wants to know.
#[derive(Debug)]
pub struct Work {
    exchange: usize,
    later: Later,
    dialogue: Arc<Dialogue>,
    settings: Arc<Settings>,
}

/// What became of [`Work`].
#[derive(Debug)]
pub struct Compared {
    exchange: usize,
    difference: Option<Difference>,
    not_compared: u64,
}

impl Work {
    /// Compares; what takes long is done here, by another thread than that which plays.
    pub fn compare(self) -> Compared {
        let captured = Play::captured(&self.dialogue, &self.settings);
        let (difference, not_compared) = self.later.compare(captured);
        Compared { exchange: self.exchange, difference, not_compared }
    }
}

/// How a connection stands while it is played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// It has begun.
    pub begun: bool,
    /// It is over.
    pub over: bool,
    /// It was stopped before its end.
    pub broken: bool,
    /// Bytes that the server has acknowledged, and that it has said.
    pub said: u64,
    /// Bytes that came.
    pub heard: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
}

/// A connection being played.
#[derive(Debug)]
pub struct Play {
    dialogue: Arc<Dialogue>,
    settings: Arc<Settings>,
    ends: Ends,
    connection: Connection,
    phase: Phase,
    exchange: usize,
    answer: Answer,
    results: Vec<Exchanged>,
    began: Nanos,
    /// When the last word was said, or what it waited for was heard.
    trigger: Nanos,
    /// When the last word of this exchange was said.
    asked: Option<Nanos>,
    first_byte: Option<Nanos>,
    last_byte: Nanos,
    /// When the server last took anything of ours.
    progress: (u64, Nanos),
    pushed: bool,
    connected: bool,
    broken: Option<Broken>,
    ended: Ended,
    left_open: bool,
    finished: Nanos,
    work: VecDeque<Work>,
}

impl Play {
    /// One that has not begun.
    pub fn new(dialogue: Arc<Dialogue>, ends: Ends, config: Config, settings: Arc<Settings>) -> Play {
        let connection = Connection::new(config, Arc::clone(&dialogue.said));
        Play {
            dialogue,
            settings,
            ends,
            connection,
            phase: Phase::Waiting,
            exchange: 0,
            answer: Answer::to(0..0),
            results: Vec::new(),
            began: 0,
            trigger: 0,
            asked: None,
            first_byte: None,
            last_byte: 0,
            progress: (0, 0),
            pushed: false,
            connected: false,
            broken: None,
            ended: Ended::Open,
            left_open: false,
            finished: 0,
            work: VecDeque::new(),
        }
    }

    /// Is there an answer to compare?
    pub fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// Something to be compared elsewhere, in this order.
    pub fn work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// How work came out.
    pub fn compared(&mut self, compared: Compared) {
        if let Some(result) = self.results.get_mut(compared.exchange) {
            (result.difference, result.not_compared) = (compared.difference, compared.not_compared);
        }
    }

    /// Has the answer of a finished exchange compared, if that takes long.
    fn compare_later(&mut self, exchange: usize) {
        let captured = Play::captured(&self.dialogue, &self.settings);
        if let Some(later) = self.answer.later(captured) {
            let (dialogue, settings) = (Arc::clone(&self.dialogue), Arc::clone(&self.settings));
            self.work.push_back(Work { exchange, later, dialogue, settings });
        }
    }

    /// From where to where it is played.
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Begins.
    pub fn start(&mut self, now: Nanos) {
        (self.phase, self.began, self.finished) = (Phase::Connecting, now, now);
        self.connection.connect();
    }

    /// Has it begun?
    pub fn has_begun(&self) -> bool {
        self.phase != Phase::Waiting
    }

    /// Is it over?
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Nothing is left to say or hear, but the last acknowledgement may have to be said again.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Lingering(_))
    }

    /// A segment of the server's.
    pub fn receive(&mut self, segment: &Segment<'_>, now: Nanos) {
        self.connection.receive(segment, now);
        self.advance(now);
    }

    /// A router says that packets are too long for it.
    pub fn limit_path(&mut self, mtu: u32) {
        self.connection.limit_path(mtu);
    }

    /// Time went on.
    pub fn on_time(&mut self, now: Nanos) {
        self.connection.on_time(now);
        self.advance(now);
    }

    /// The next segment to send.
    pub fn poll(&mut self, now: Nanos) -> Option<Segment<'static>> {
        self.connection.poll(now)
    }

    /// The user wants no more.
    pub fn stop(&mut self, now: Nanos) {
        if !self.is_over() {
            self.break_off(Broken::Stopped, now);
        }
        self.phase = Phase::Done;
    }

    /// When [`on_time`](Self::on_time) wants to be called.
    pub fn deadline(&self) -> Option<Nanos> {
        let own = match self.phase {
            Phase::Waiting | Phase::Connecting | Phase::Done => None,
            Phase::Saying(step) => Some(self.due(step).unwrap_or(self.trigger + self.settings.timeout)),
            Phase::Closing(step) => Some(self.due(step).unwrap_or(self.trigger + self.closing())),
            Phase::Hearing if self.connection.all_said() => Some(self.answer_over_at()),
            Phase::Hearing => Some(self.stuck_at()),
            Phase::Ending(until) | Phase::Lingering(until) => Some(until),
        };
        own.into_iter().chain(self.connection.deadline()).min()
    }

    fn captured<'a>(dialogue: &'a Dialogue, settings: &'a Settings) -> Captured<'a> {
        Captured { bytes: &dialogue.heard, unknown: &dialogue.unknown, ignore: &settings.ignore }
    }

    fn current(&self) -> Option<&Exchange> {
        self.dialogue.exchanges.get(self.exchange)
    }

    /// When a step is to be done.
    fn due(&self, step: usize) -> Option<Nanos> {
        let step = self.dialogue.steps.get(step)?;
        if step.after_fin && !self.connection.peer_finished() && self.broken.is_none() {
            return None;
        }
        Some(if self.settings.captured_timing { self.trigger + step.delay_ns } else { self.trigger })
    }

    /// Until when the server must have taken something.
    fn stuck_at(&self) -> Nanos {
        self.progress.1.max(self.trigger) + self.settings.timeout
    }

    /// How long the server may take to close.
    fn closing(&self) -> Nanos {
        CLOSING.min(self.settings.timeout)
    }

    fn advance(&mut self, now: Nanos) {
        self.hear(now);
        self.look_at_connection(now);
        let acknowledged = self.connection.acknowledged();
        if acknowledged > self.progress.0 || self.connection.all_said() {
            self.progress = (acknowledged, now);
        }
        // Each turn goes on by a step or stops.
        while self.step(now) {}
    }

    fn hear(&mut self, now: Nanos) {
        let (bytes, pushed) = self.connection.take();
        self.pushed |= pushed;
        if bytes.is_empty() {
            return;
        }
        self.last_byte = now;
        self.pushed = pushed;
        self.first_byte.get_or_insert(now);
        let captured = Play::captured(&self.dialogue, &self.settings);
        // What comes when nothing more is expected is an answer to the last words.
        self.answer.add(&bytes, captured);
    }

    fn look_at_connection(&mut self, now: Nanos) {
        if self.connection.peer_finished() && self.ended == Ended::Open {
            self.ended = match self.phase {
                Phase::Ending(_) => Ended::ByClient,
                _ if self.fin_said() => Ended::ByClient,
                _ => Ended::ByServer,
            };
        }
        match self.connection.state() {
            State::Over(_) if self.is_over() => {}
            State::Over(End::Closed) => self.over(now),
            State::Over(End::Refused) => self.break_off(Broken::Refused, now),
            State::Over(End::Silent) if !self.connected => self.break_off(Broken::NoAnswerToSyn, now),
            State::Over(End::Silent) => self.break_off(Broken::NotAcknowledged, now),
            State::Over(End::ResetByPeer) => {
                let done = matches!(self.phase, Phase::Closing(_) | Phase::Ending(_));
                self.ended = Ended::ResetByServer;
                if done || (self.last_answer_heard() && self.dialogue.ended == Ended::ResetByServer) {
                    self.over(now);
                } else {
                    self.break_off(Broken::Reset, now);
                }
            }
            State::Over(End::Reset) => {
                if self.broken.is_none() && self.ended == Ended::Open {
                    self.ended = Ended::ResetByClient;
                }
                self.over(now);
            }
            State::Established if self.phase == Phase::Connecting => {
                self.connected = true;
                (self.trigger, self.progress) = (now, (0, now));
                self.enter(0, Vec::new(), now);
            }
            State::Idle | State::SynSent | State::Established => {}
        }
    }

    fn fin_said(&self) -> bool {
        matches!(self.phase, Phase::Lingering(_))
            || self.dialogue.steps.iter().take(self.steps_done()).any(|step| step.say == Say::Fin)
    }

    fn steps_done(&self) -> usize {
        match self.phase {
            Phase::Saying(step) | Phase::Closing(step) => step,
            Phase::Hearing => self.current().map_or(0, |exchange| exchange.steps.end),
            Phase::Waiting | Phase::Connecting => 0,
            Phase::Ending(_) | Phase::Lingering(_) | Phase::Done => self.dialogue.steps.len(),
        }
    }

    fn last_answer_heard(&self) -> bool {
        self.exchange + 1 >= self.dialogue.exchanges.len()
            && self.phase == Phase::Hearing
            && self.answer.received() >= self.answer.expected()
    }

    /// One step onwards, if it is time for one.
    fn step(&mut self, now: Nanos) -> bool {
        match self.phase {
            Phase::Saying(at) => {
                if self.current().is_none_or(|exchange| at >= exchange.steps.end) {
                    self.phase = Phase::Hearing;
                    self.asked = Some(now);
                    return true;
                }
                if self.due(at).is_none() && now >= self.trigger + self.settings.timeout {
                    self.break_off(Broken::NoAnswer, now);
                    return false;
                }
                self.say(at, now).is_some_and(|step| {
                    if self.phase == Phase::Saying(at) {
                        self.phase = Phase::Saying(at + 1);
                    }
                    self.trigger = now;
                    step.say != Say::Reset
                })
            }
            Phase::Hearing => self.next_if_heard(now),
            Phase::Closing(at) => {
                if at >= self.dialogue.closing.end {
                    // What the capture does not show is done in good order.
                    self.connection.finish();
                    self.phase = Phase::Ending(now + self.closing());
                    return true;
                }
                if self.due(at).is_none() && now >= self.trigger + self.closing() {
                    self.left_open = true;
                    self.connection.finish();
                    self.phase = Phase::Ending(now + self.closing());
                    return true;
                }
                self.say(at, now).is_some_and(|_| {
                    if self.phase == Phase::Closing(at) {
                        self.phase = Phase::Closing(at + 1);
                    }
                    self.trigger = now;
                    true
                })
            }
            Phase::Ending(until) if now >= until => {
                self.left_open = true;
                self.connection.abort();
                self.over(now);
                true
            }
            Phase::Lingering(until) if now >= until => {
                self.phase = Phase::Done;
                false
            }
            Phase::Waiting | Phase::Connecting | Phase::Ending(_) | Phase::Lingering(_) | Phase::Done => {
                false
            }
        }
    }

    /// Does a step, if it is time for it.
    fn say(&mut self, at: usize, now: Nanos) -> Option<Step> {
        if self.due(at).is_none_or(|due| now < due) {
            return None;
        }
        let step = *self.dialogue.steps.get(at)?;
        match step.say {
            Say::Bytes { end, push } => self.connection.say(end, push),
            Say::Fin => self.connection.finish(),
            Say::Reset => {
                self.connection.abort();
                self.ended = if self.ended == Ended::Open { Ended::ResetByClient } else { self.ended };
                self.close_answer();
                self.over(now);
            }
        }
        Some(step)
    }

    /// When the answer is over if nothing more comes.
    fn answer_over_at(&self) -> Nanos {
        let exchange = self.current();
        if self.answer.received() == 0 {
            let captured = exchange.and_then(|exchange| exchange.first_byte_ns).unwrap_or(0);
            return self.asked.unwrap_or(self.trigger) + self.settings.timeout.max(2 * captured);
        }
        let pause = exchange.map_or(0, |exchange| 2 * exchange.pause_ns);
        let heard = self.last_byte.max(self.asked.unwrap_or(0));
        heard
            + match self.answer.received() >= self.answer.expected() {
                true if self.pushed => SETTLE,
                true => self.settings.quiet,
                false => self.settings.quiet.max(pause),
            }
    }

    fn next_if_heard(&mut self, now: Nanos) -> bool {
        let captured = Play::captured(&self.dialogue, &self.settings);
        let (received, expected) = (self.answer.received(), self.answer.expected());
        let last = self.exchange + 1 >= self.dialogue.exchanges.len();
        let finished = self.connection.peer_finished();
        let at_length = received == expected && self.answer.same_so_far(captured);
        let over = at_length
            || finished
            || (received > expected && self.answer.goes_on_as_captured(captured))
            || (received > 0
                && self.pushed
                && received != expected
                && self.answer.shorter_but_whole(captured))
            || (received > 0 && now >= self.answer_over_at());
        if !over {
            if !self.connection.all_said() {
                if now >= self.stuck_at() {
                    self.break_off(Broken::WindowClosed, now);
                }
            } else if received == 0 && now >= self.answer_over_at() {
                self.break_off(Broken::NoAnswer, now);
            }
            return false;
        }
        if !self.connection.all_said() && !finished {
            // It has answered before it took all: the next words wait their turn.
            if now >= self.stuck_at() {
                self.break_off(Broken::WindowClosed, now);
            }
            return false;
        }
        self.trigger = if received > 0 { self.last_byte.max(self.trigger) } else { now };
        if !last {
            let words = self.dialogue.exchanges.get(self.exchange + 1..).unwrap_or_default();
            if finished && words.iter().any(|exchange| !exchange.said.is_empty()) {
                self.break_off(Broken::ClosedEarly, now);
                return false;
            }
        }
        let carried = self.close_answer();
        if last {
            self.phase = Phase::Closing(self.dialogue.closing.start);
            self.trigger = self.trigger.max(self.last_byte);
        } else {
            self.enter(self.exchange + 1, carried, now);
        }
        true
    }

    fn enter(&mut self, exchange: usize, carried: Vec<u8>, now: Nanos) {
        self.exchange = exchange;
        (self.asked, self.first_byte) = (None, None);
        let Some(next) = self.dialogue.exchanges.get(exchange) else {
            self.phase = Phase::Closing(self.dialogue.closing.start);
            return;
        };
        self.answer = Answer::to(next.heard.clone());
        self.phase = Phase::Saying(next.steps.start);
        if !carried.is_empty() {
            self.first_byte = Some(now);
            let captured = Play::captured(&self.dialogue, &self.settings);
            self.answer.add(&carried, captured);
        }
    }

    /// Writes down how the current exchange went; what belongs to the next one is handed back.
    fn close_answer(&mut self) -> Vec<u8> {
        if self.results.len() > self.exchange {
            return Vec::new();
        }
        let dialogue = Arc::clone(&self.dialogue);
        let captured = Play::captured(&dialogue, &self.settings);
        let carried = self.answer.finish(captured);
        let Some(exchange) = dialogue.exchanges.get(self.exchange) else { return carried };
        let since = |at: Nanos| at.saturating_sub(self.asked.unwrap_or(at));
        let received = self.answer.received();
        self.results.push(Exchanged {
            asked_at: self.asked,
            said: exchange.said.end - exchange.said.start,
            expected: self.answer.expected(),
            received,
            not_compared: self.answer.not_compared(),
            difference: self.answer.difference().cloned(),
            first_byte_ns: self.first_byte.filter(|_| received > 0).map(since),
            captured_first_byte_ns: exchange.first_byte_ns,
            last_byte_ns: (received > 0).then(|| since(self.last_byte)),
            captured_last_byte_ns: exchange.last_byte_ns,
        });
        self.compare_later(self.results.len() - 1);
        carried
    }

    fn break_off(&mut self, why: Broken, now: Nanos) {
        self.broken = Some(why);
        if self.connected {
            self.close_answer();
        }
        self.connection.abort();
        self.over(now);
    }

    fn over(&mut self, now: Nanos) {
        if self.connected && !self.is_over() {
            self.close_late();
        }
        self.finished = now;
        let linger = match self.connection.state() {
            State::Over(End::Closed) => LINGER.max(2 * self.connection.round_trip().unwrap_or(0)),
            _ => 0,
        };
        self.phase = if linger == 0 { Phase::Done } else { Phase::Lingering(now + linger) };
    }

    /// Something came after the last answer was closed, or it was never closed.
    fn close_late(&mut self) {
        if self.results.len() <= self.exchange {
            self.close_answer();
        } else if self.answer.received() > self.results.last().map_or(0, |result| result.received) {
            let captured = Play::captured(&self.dialogue, &self.settings);
            self.answer.finish(captured);
            if let Some(result) = self.results.last_mut() {
                result.received = self.answer.received();
                result.difference = self.answer.difference().cloned();
            }
            self.compare_later(self.results.len().saturating_sub(1));
        }
    }

    /// How it stands, for somebody who looks on.
    pub fn standing(&self) -> Standing {
        let heard: u64 = self.results.iter().map(|exchange| exchange.received).sum();
        Standing {
            begun: self.has_begun(),
            over: self.is_over(),
            broken: self.broken.is_some(),
            said: self.connection.acknowledged(),
            heard: heard + if self.results.len() > self.exchange { 0 } else { self.answer.received() },
            retransmitted: self.connection.counts().retransmissions,
        }
    }

    /// What became of it. Work that nobody has taken is done now.
    pub fn outcome(&mut self) -> Outcome {
        while let Some(work) = self.work() {
            self.compared(work.compare());
        }
        Outcome {
            dialogue: Arc::clone(&self.dialogue),
            ends: self.ends,
            connected: self.connected,
            broken: self.broken,
            exchanges: self.results.clone(),
            said: self.connection.acknowledged(),
            ended: self.ended,
            left_open: self.left_open,
            counts: self.connection.counts(),
            duration_ns: self.finished.saturating_sub(self.began),
        }
    }
}
