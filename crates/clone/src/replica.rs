//! A copy of a session: what is said to the target, and when. Events of the session and of the copy's own connection come in; what
//! is to be done next is asked for with [`Replica::next`]. The engine has the socket.
//!
//! ```text
//!   session: said, finished, reset, cut, over --> queue --next--> Write, Shutdown, Reset, Close
//!   target:  connected, received, closed -------'   (held until the target has answered as much as the server had, if asked)
//! ```

use crate::exchange::{Comparison, Exchange};
use crate::framing::{Framer, Line, Protocol};
use std::collections::VecDeque;
use std::sync::Arc;

/// When a client's bytes are said again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When they come.
    Wallclock,
    /// Not before the target has answered what the server had answered when the client said them.
    Causal,
    /// And as much later as the client took for it.
    CausalThink,
}

/// Memory for bytes that wait for the target, of one copy, at most.
pub const MOST_HELD: usize = 16 << 20;
/// What a piece of them takes beside its bytes.
const PIECE: usize = 96;
/// When the session is over, what waits is offered to the target for so long.
pub const OFFER_NS: u64 = 30_000_000_000;
/// An answer that does not come is waited for so long.
pub const PATIENCE_NS: u64 = 10_000_000_000;
/// The target has so long to close, after the client has.
pub const CLOSE_NS: u64 = 5_000_000_000;
/// Exchanges that wait for answers, of one copy, at most.
const MOST_EXCHANGES: usize = 4096;

/// Bytes that are not said yet.
#[derive(Debug)]
struct Held {
    bytes: Arc<[u8]>,
    from: usize,
    since_ns: u64,
    answers: u32,
    asked: u32,
    thought_ns: u64,
}

/// How the client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Open,
    Finished,
    Reset,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing, before something happens.
    Wait,
    /// Nothing before then.
    Until(u64),
    /// Say this; then [`Replica::wrote`].
    Write(&'a [u8]),
    /// Say nothing more (FIN); then [`Replica::done`].
    Shutdown,
    /// Tear the connection down (RST).
    Reset,
    /// Close it.
    Close,
}

/// A copy.
#[derive(Debug)]
pub struct Replica {
    #[allow(clippy::box_collection, reason = "most are empty, and their size counts in each session")]
    queue: Option<Box<VecDeque<Held>>>,
    #[allow(clippy::box_collection, reason = "most are empty, and their size counts in each session")]
    exchanges: Option<Box<VecDeque<Exchange>>>,
    framer: Framer,
    /// When the target last answered,
    answer_ns: u64,
    /// and when the client ended.
    end_ns: u64,
    /// The number of the first exchange.
    base: u32,
    /// Answers by the target: whole ones, or begun ones.
    answers: u32,
    /// Requests that were said.
    sent: u32,
    waiting: u32,
    protocol: Protocol,
    end: End,
    connected: bool,
    shut: bool,
    target_closed: bool,
    /// And the client still spoke.
    closed_early: bool,
    server_finished: bool,
    over: bool,
    compares: bool,
    impatient: bool,
}

impl Replica {
    /// One that is not connected yet; `compares`: its answers count.
    pub fn new(compares: bool) -> Replica {
        Replica {
            queue: None,
            exchanges: None,
            framer: Framer::default(),
            answer_ns: 0,
            end_ns: 0,
            base: 0,
            answers: 0,
            sent: 0,
            waiting: 0,
            protocol: Protocol::Unknown,
            end: End::Open,
            connected: false,
            shut: false,
            target_closed: false,
            closed_early: false,
            server_finished: false,
            over: false,
            compares,
            impatient: false,
        }
    }

    /// Bytes that are not said yet.
    pub fn waiting(&self) -> usize {
        self.waiting as usize
    }

    /// The memory that they take: a client may say them one by one.
    pub fn held(&self) -> usize {
        self.waiting() + self.queue.as_ref().map_or(0, |queue| queue.len() * PIECE)
    }

    /// Does the client still speak, as far as it is known?
    pub fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Was the client's connection reset?
    pub fn is_reset(&self) -> bool {
        self.end == End::Reset
    }

    /// Did it stop waiting for an answer?
    pub fn was_impatient(&self) -> bool {
        self.impatient
    }

    /// The connection is there.
    pub fn connected(&mut self) {
        self.connected = true;
    }

    /// May what the client says now be written at once, without being queued?
    pub fn is_due(&self, pace: Pace, answers: u32) -> bool {
        let answered = pace == Pace::Wallclock || self.answers >= answers;
        self.connected && self.queue.is_none() && answered && pace != Pace::CausalThink && !self.shut
    }

    /// The client said this, of which `from` bytes were written at once. `shared` is the same for all copies.
    pub fn say(
        &mut self,
        (bytes, from): (&[u8], usize),
        shared: &mut Option<Arc<[u8]>>,
        (answers, thought_ns, asked): (u32, u64, u32),
        now_ns: u64,
    ) {
        if from >= bytes.len() {
            return self.said(asked, now_ns);
        }
        let bytes = Arc::clone(shared.get_or_insert_with(|| Arc::from(bytes)));
        self.waiting += (bytes.len() - from) as u32;
        let held = Held { bytes, from, since_ns: now_ns, answers, asked, thought_ns };
        self.queue.get_or_insert_default().push_back(held);
    }

    /// Everything that belongs to requests before this number was said.
    fn said(&mut self, asked: u32, now_ns: u64) {
        let base = self.base;
        if asked > self.sent
            || self.protocol == Protocol::Turns
            || self.exchanges.as_ref().is_some_and(|all| all.len() as u32 + base >= asked)
        {
            self.sent = self.sent.max(asked);
            if let Some(exchanges) = &mut self.exchanges {
                let count = asked.saturating_sub(base) as usize;
                // A request that comes in parts is said with the last of them.
                for exchange in exchanges.iter_mut().take(count).rev() {
                    if exchange.sent_ns != 0 && exchange.target.first_ns != 0 {
                        break;
                    }
                    let last = exchange.sent_ns == 0;
                    exchange.sent_ns = now_ns;
                    if !last {
                        break;
                    }
                }
            }
        }
    }

    /// What is to be done?
    pub fn next(&mut self, pace: Pace, now_ns: u64) -> Step<'_> {
        if !self.connected {
            return Step::Wait;
        }
        if self.queue.is_some() {
            let ready = self.queue.as_ref().and_then(|queue| queue.front()).map_or(0, |held| {
                if pace == Pace::Wallclock || held.answers == 0 {
                    return 0;
                }
                match self.answers >= held.answers {
                    true if pace == Pace::CausalThink => self.answer_ns + held.thought_ns,
                    true => 0,
                    false => held.since_ns + PATIENCE_NS,
                }
            });
            if ready > now_ns {
                return Step::Until(ready);
            }
            if let Some(held) = self.queue.as_ref().and_then(|queue| queue.front()) {
                self.impatient |= pace != Pace::Wallclock && self.answers < held.answers;
                return Step::Write(held.bytes.get(held.from..).unwrap_or_default());
            }
        }
        match self.end {
            End::Reset => Step::Reset,
            _ if self.target_closed && (self.over || self.shut) => Step::Close,
            End::Finished if !self.shut => Step::Shutdown,
            End::Finished if now_ns >= self.end_ns + CLOSE_NS => Step::Close,
            End::Finished => Step::Until(self.end_ns + CLOSE_NS),
            End::Open => Step::Wait,
        }
    }

    /// So many bytes of what was to be written were taken.
    pub fn wrote(&mut self, bytes: usize, now_ns: u64) {
        let Some(queue) = &mut self.queue else { return };
        self.waiting = self.waiting.saturating_sub(bytes as u32);
        let Some(held) = queue.front_mut() else { return };
        held.from += bytes;
        if held.from >= held.bytes.len() {
            let asked = held.asked;
            queue.pop_front();
            if queue.is_empty() {
                self.queue = None;
            }
            self.said(asked, now_ns);
        }
    }

    /// FIN was sent.
    pub fn done(&mut self, now_ns: u64) {
        self.shut = true;
        self.end_ns = now_ns;
    }

    /// The client says nothing more.
    pub fn finish(&mut self) {
        self.end = self.end.max(End::Finished);
    }

    /// The client tore its connection down.
    pub fn reset(&mut self, now_ns: u64) {
        self.end = End::Reset;
        self.end_ns = now_ns;
    }

    /// When the client ended: FIN was sent, or the client's RST came.
    pub fn ended_ns(&self) -> u64 {
        self.end_ns
    }

    /// The session is over at the server.
    pub fn over(&mut self) {
        self.over = true;
        self.finish();
    }

    /// The target closed or is gone: what waits is never said. How many bytes that are, if the connection is not good for more.
    pub fn target_closed(&mut self) {
        self.closed_early |= self.is_open();
        self.target_closed = true;
    }

    /// The server says nothing more: who closes first on both sides is the server, not the client.
    pub fn server_finished(&mut self) {
        self.server_finished = true;
    }

    /// Did the target close, while the client still spoke and the server listened to the end?
    pub fn was_closed_early(&self) -> bool {
        self.closed_early && !self.server_finished
    }

    /// Gives up what waits: how many bytes.
    pub fn give_up(&mut self) -> u64 {
        self.queue = None;
        u64::from(std::mem::take(&mut self.waiting))
    }

    /// The client asks something.
    pub fn asked(&mut self, number: u32, line: Line, protocol: Protocol) {
        if self.protocol == Protocol::Unknown {
            self.protocol = protocol;
        }
        let full = self.exchanges.as_ref().is_some_and(|exchanges| exchanges.len() >= MOST_EXCHANGES);
        if self.protocol == Protocol::Unknown || full {
            return;
        }
        let exchanges = self.exchanges.get_or_insert_default();
        if exchanges.is_empty() {
            self.base = number;
        }
        exchanges.push_back(Exchange { ask: line, ..Exchange::default() });
    }

    fn exchange(&mut self, number: u32) -> Option<&mut Exchange> {
        let at = number.checked_sub(self.base)? as usize;
        self.exchanges.as_mut()?.get_mut(at)
    }

    /// The request is whole, or goes on.
    pub fn asked_whole(&mut self, number: u32, bodyless: bool, now_ns: u64) {
        if let Some(exchange) = self.exchange(number) {
            exchange.asked_ns = now_ns;
            exchange.bodyless |= bodyless;
        }
    }

    /// The server answers a request.
    pub fn online(
        &mut self,
        (number, bytes, line, ended): (u32, u64, Option<Line>, bool),
        now_ns: u64,
        comparison: &mut Comparison,
    ) {
        if let Some(exchange) = self.exchange(number) {
            exchange.online.came(bytes, line, ended, now_ns);
            if ended {
                self.settle(false, comparison);
            }
        }
    }

    /// Which answer belongs to which request is not known any more: by whose turn it is from now on, and nothing is compared.
    pub fn unframed(&mut self, comparison: &mut Comparison) {
        if self.compares {
            comparison.unframed_sessions += 1;
        }
        self.compares = false;
        self.protocol = Protocol::Turns;
        self.framer = Framer::default();
        self.exchanges = None;
        self.answers = u32::MAX;
    }

    /// The target answers.
    pub fn received(&mut self, bytes: &[u8], now_ns: u64, comparison: &mut Comparison) {
        match self.protocol {
            Protocol::Unknown => {}
            Protocol::Turns => self.took_turn(bytes.len() as u64, now_ns, comparison),
            Protocol::Http | Protocol::Redis => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let number = self.answers;
                    let bodyless = self.exchange(number).is_some_and(|exchange| exchange.bodyless);
                    let took = self.framer.take(self.protocol, rest, true, bodyless);
                    let Some(took) = took.ok().filter(|_| number < self.sent) else {
                        return self.unframed(comparison);
                    };
                    rest = rest.get(took.bytes..).unwrap_or_default();
                    let interim = took.head.is_some_and(|head| head.interim);
                    if interim && took.ended {
                        continue;
                    }
                    let line = took.head.map(|head| head.line);
                    if let Some(exchange) = self.exchange(number) {
                        exchange.target.came(took.bytes as u64, line, took.ended, now_ns);
                    }
                    if took.ended {
                        self.answers += 1;
                        self.answer_ns = now_ns;
                    }
                }
                self.settle(false, comparison);
            }
        }
    }

    /// Bytes belong to the oldest request that was said and is not answered as far as the server answered it.
    fn took_turn(&mut self, bytes: u64, now_ns: u64, comparison: &mut Comparison) {
        self.answer_ns = now_ns;
        let base = self.base;
        let Some(exchanges) = self.exchanges.as_mut().filter(|_| self.answers != u32::MAX) else { return };
        let last = exchanges.iter().rposition(|exchange| exchange.sent_ns != 0);
        let Some(last) = last else { return };
        let open = |exchange: &Exchange| exchange.target.size < exchange.online.size.max(1);
        let at = exchanges.iter().take(last).position(open).unwrap_or(last);
        if let Some(exchange) = exchanges.get_mut(at) {
            exchange.target.came(bytes, None, false, now_ns);
            self.answers = self.answers.max(base + at as u32 + 1);
        }
        self.settle(false, comparison);
    }

    /// Counts the exchanges that are over; at the end of a connection all of them.
    pub fn settle(&mut self, all: bool, comparison: &mut Comparison) {
        let Some(exchanges) = &mut self.exchanges else { return };
        loop {
            let framed = self.protocol != Protocol::Turns;
            let next = exchanges.get(1).copied();
            let Some(first) = exchanges.front() else { break };
            // Of turns, an answer has ended when the next request is on its way on both sides.
            let turned = next.is_some_and(|next| next.target.first_ns != 0 && next.online.first_ns != 0);
            let both = if framed { first.online.ended && first.target.ended } else { turned };
            if !both && !all {
                break;
            }
            if self.compares && first.sent_ns != 0 {
                comparison.settle(first);
                comparison.delay.record(first.sent_ns.saturating_sub(first.asked_ns));
            }
            exchanges.pop_front();
            self.base += 1;
        }
        if exchanges.is_empty() {
            self.exchanges = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(replica: &mut Replica, bytes: &[u8], answers: u32, thought_ns: u64, asked: u32, now_ns: u64) {
        replica.say((bytes, 0), &mut None, (answers, thought_ns, asked), now_ns);
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    fn asks(replica: &mut Replica, number: u32, now_ns: u64) {
        replica.asked(number, Line::of(GET), Protocol::Http);
        replica.asked_whole(number, false, now_ns);
    }

    #[test]
    fn nothing_is_said_before_the_connection_is_there_and_all_in_order() {
        let mut replica = Replica::new(true);
        said(&mut replica, b"ab", 0, 0, 1, 1);
        said(&mut replica, b"c", 0, 0, 1, 2);
        replica.finish();
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Wait);
        replica.connected();
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Write(b"ab"));
        replica.wrote(1, 3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Write(b"b"));
        replica.wrote(1, 3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Write(b"c"));
        replica.wrote(1, 3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Shutdown);
        assert_eq!(replica.waiting(), 0);
        replica.done(3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Until(3 + CLOSE_NS));
        replica.target_closed();
        assert_eq!(replica.next(Pace::Wallclock, 4), Step::Close);
    }

    #[test]
    fn a_causal_copy_waits_for_the_targets_answer_and_thinks_as_long() {
        for (pace, due) in [(Pace::Causal, 0), (Pace::CausalThink, 500)] {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            replica.connected();
            asks(&mut replica, 0, 10);
            assert!(pace == Pace::CausalThink || replica.is_due(pace, 0));
            said(&mut replica, GET, 0, 0, 1, 10);
            assert_eq!(replica.next(pace, 10), Step::Write(GET));
            replica.wrote(GET.len(), 10);
            replica.online((0, 40, Some(Line::of(ANSWER)), true), 20, &mut comparison);
            asks(&mut replica, 1, 520);
            assert!(!replica.is_due(pace, 1));
            said(&mut replica, GET, 1, 500, 2, 520);
            assert_eq!(replica.next(pace, 530), Step::Until(520 + PATIENCE_NS));
            replica.received(&ANSWER[..10], 600, &mut comparison);
            assert_eq!(replica.next(pace, 600), Step::Until(520 + PATIENCE_NS));
            replica.received(&ANSWER[10..], 700, &mut comparison);
            if due > 0 {
                assert_eq!(replica.next(pace, 700), Step::Until(700 + due));
            }
            assert_eq!(replica.next(pace, 700 + due), Step::Write(GET));
            assert_eq!((comparison.compared, comparison.delay.max()), (1, 0));
            assert_eq!((comparison.target_first.p50(), comparison.target_last.p50()), (590, 690));
            assert!(!replica.was_impatient());
        }
    }

    #[test]
    fn an_answer_that_never_comes_is_not_waited_for_for_ever() {
        let mut replica = Replica::new(true);
        replica.connected();
        said(&mut replica, GET, 1, 0, 1, 5);
        assert_eq!(replica.next(Pace::Causal, 5), Step::Until(5 + PATIENCE_NS));
        assert_eq!(replica.next(Pace::Causal, 5 + PATIENCE_NS), Step::Write(GET));
        assert!(replica.was_impatient());
    }

    #[test]
    fn bytes_that_come_one_by_one_count_with_what_keeps_them() {
        let mut replica = Replica::new(false);
        for _ in 0..1000 {
            said(&mut replica, b"x", 0, 0, 1, 1);
        }
        assert_eq!((replica.waiting(), replica.held()), (1000, 1000 * (1 + PIECE)));
        assert_eq!((replica.give_up(), replica.held()), (1000, 0));
    }

    #[test]
    fn a_reset_comes_behind_what_was_said() {
        let mut replica = Replica::new(false);
        replica.connected();
        said(&mut replica, b"x", 0, 0, 1, 1);
        replica.reset(1);
        assert_eq!(replica.next(Pace::Wallclock, 1), Step::Write(b"x"));
        replica.wrote(1, 1);
        assert_eq!(replica.next(Pace::Wallclock, 1), Step::Reset);
    }

    #[test]
    fn a_target_closes_early_if_the_server_did_not_close_as_well() {
        for (server, client, early) in [(false, false, true), (true, false, false), (false, true, false)] {
            let mut replica = Replica::new(false);
            replica.connected();
            if client {
                replica.finish();
            }
            replica.target_closed();
            if server {
                replica.server_finished();
            }
            assert_eq!(replica.was_closed_early(), early, "server {server}, client {client}");
        }
    }

    #[test]
    fn turns_are_compared_by_size_and_what_is_left_at_the_end() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected();
        for number in 0..3u32 {
            let now = u64::from(number) * 100 + 10;
            replica.asked(number, Line::default(), Protocol::Turns);
            replica.asked_whole(number, false, now);
            replica.say((b"ask", 3), &mut None, (number, 0, number + 1), now);
            replica.online((number, 8, None, false), now + 20, &mut comparison);
            let size = if number == 1 { 9 } else { 8 };
            replica.received(&[0; 9][..size], now + 30, &mut comparison);
        }
        replica.settle(true, &mut comparison);
        assert_eq!((comparison.compared, comparison.same, comparison.sizes_differ), (3, 2, 1));
        assert_eq!(comparison.target_first.max(), 30);
    }

    #[test]
    fn an_answer_nobody_asked_for_ends_the_comparison_and_holds_nothing() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected();
        asks(&mut replica, 0, 1);
        replica.say((GET, GET.len()), &mut None, (0, 0, 1), 1);
        replica.received(ANSWER, 2, &mut comparison);
        replica.received(ANSWER, 3, &mut comparison);
        assert_eq!(comparison.unframed_sessions, 1);
        assert!(replica.is_due(Pace::Causal, 9));
    }
}
