//! A copy of a session: what is said to the target, and when. Events of the session and of the copy's own connection come in; what
//! is to be done next is asked for with [`Replica::next`]. The engine has the socket.
//!
//! ```text
//!   session: said, finished, reset, cut, over --> queue --next--> Write, Shutdown, Reset, Close
//!   target:  connected, received, closed -------'   (held until the target has answered as much as the server had, if asked)
//! ```
//!
//! Held at any pace are the first bytes where the server spoke first, until the target has as well, and the end: a client closes when it has
//! its answers, and a target that hears of that before it has given them may cancel them.

use crate::exchange::{Comparison, End as Ended, Exchange};
use crate::framing::{Framer, Line, Lost, Part, Protocol};
use std::collections::VecDeque;
use std::sync::Arc;

/// When a client's bytes are said again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When they come.
    Wallclock,
    /// Not before the target has answered what the server had answered when the client said them.
    Causal,
    /// And as much later as the client took.
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
/// An answer whose end cannot be known, and that is shorter than the server's, has ended when nothing came for so long.
pub const QUIET_NS: u64 = 1_000_000_000;
/// The same of a greeting, which a client waits for in each session.
pub const GREETING_QUIET_NS: u64 = 100_000_000;
/// Exchanges that wait for answers, of one copy, at most.
const MOST_EXCHANGES: usize = 4096;
/// Bytes by which a target is ahead of the server, and of which it is not known yet which request they answer.
const MOST_AHEAD: usize = 64 << 10;
/// What a greeting is called.
const GREETING: &[u8] = b"(greeting)";

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

/// Does the target owe an answer?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owes {
    Nothing,
    /// It is looked at again then.
    Until(u64),
    /// It does, and was waited for long enough.
    Late,
}

/// A copy.
#[derive(Debug)]
pub struct Replica {
    #[allow(clippy::box_collection, reason = "most are empty, and their size counts in each session")]
    queue: Option<Box<VecDeque<Held>>>,
    #[allow(clippy::box_collection, reason = "most are empty, and their size counts in each session")]
    exchanges: Option<Box<VecDeque<Exchange>>>,
    /// What the target said and the server has not said yet, where messages are not told apart.
    #[allow(clippy::box_collection, reason = "most are empty, and their size counts in each session")]
    ahead: Option<Box<Vec<u8>>>,
    /// What the last answer that was compared is of, and how it begins, if it is the server's: more may come behind it.
    alike: Option<Box<[Line; 2]>>,
    framer: Framer,
    /// When the target last answered,
    answer_ns: u64,
    /// when something was said to it last,
    said_ns: u64,
    /// and when the client ended.
    end_ns: u64,
    /// Bytes of the target,
    heard: u64,
    /// of the server,
    online: u64,
    /// and of the server when the client ended, where messages are not told apart.
    due_heard: u64,
    /// Bytes of the server since the client spoke last,
    online_since: u32,
    /// of the target since it was spoken to last,
    target_since: u32,
    /// and bytes of the server that the end waits for: of the answer that had begun, or since the client spoke last.
    due_bytes: u32,
    /// Whole answers that the end waits for.
    due: u32,
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
    /// The client went on when the copy ended.
    cut: bool,
    compares: bool,
    /// They counted, until it was not known any more which of them belongs to which request.
    lost: bool,
    /// An answer of the target broke the rules: what it says from there on is not looked at.
    broken: bool,
    /// It was more than was asked for, behind an answer that was compared already: whether the server does the same is not known yet.
    overlong: bool,
    impatient: bool,
    /// The server spoke first, and the target is waited for.
    greets: bool,
    /// The target was so far ahead that its bytes were taken for the last request's.
    overran: bool,
    /// Its end was put off,
    held: bool,
    /// and not for ever.
    unanswered: bool,
}

impl Replica {
    /// One that is not connected yet; `compares`: its answers count.
    pub fn new(compares: bool) -> Replica {
        Replica {
            queue: None,
            exchanges: None,
            ahead: None,
            alike: None,
            framer: Framer::default(),
            answer_ns: 0,
            said_ns: 0,
            end_ns: 0,
            heard: 0,
            online: 0,
            due_heard: 0,
            online_since: 0,
            target_since: 0,
            due_bytes: 0,
            due: 0,
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
            cut: false,
            compares,
            lost: false,
            broken: false,
            overlong: false,
            impatient: false,
            greets: false,
            overran: false,
            held: false,
            unanswered: false,
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

    /// Did it stop waiting for an answer?
    pub fn was_impatient(&self) -> bool {
        self.impatient
    }

    /// Was its end put off, because answers were due?
    pub fn was_held(&self) -> bool {
        self.held
    }

    /// Did it end without the answers that were due?
    pub fn was_unanswered(&self) -> bool {
        self.unanswered
    }

    fn is_framed(&self) -> bool {
        matches!(self.protocol, Protocol::Http | Protocol::Redis)
    }

    /// The connection is there.
    pub fn connected(&mut self, now_ns: u64) {
        self.connected = true;
        if self.greets
            && let Some(greeting) = self.exchanges.as_mut().and_then(|all| all.front_mut())
        {
            greeting.sent_ns = now_ns;
        }
    }

    /// The server speaks before its client does.
    pub fn greets(&mut self, now_ns: u64, comparison: &mut Comparison) {
        self.protocol = Protocol::Turns;
        self.greets = true;
        self.sent = 1;
        comparison.requests += u64::from(self.compares);
        let sent_ns = if self.connected { now_ns } else { 0 };
        let mut greeting = Exchange { ask: Line::of(GREETING), sent_ns, ..Exchange::default() };
        if let Some(ahead) = self.ahead.take_if(|_| !self.compares) {
            greeting.target.came(ahead.len() as u64, None, false, self.answer_ns);
            greeting.target.last = ahead.last().copied().unwrap_or_default();
        }
        self.exchanges.get_or_insert_default().push_back(greeting);
    }

    /// Until when what the client says first waits for the target's greeting, if it does.
    fn greeting_due(&self, since_ns: u64) -> Option<u64> {
        let greeting =
            self.exchanges.as_ref().filter(|_| self.greets && self.base == 0 && !self.target_closed)?;
        let greeting = greeting.front()?;
        let (online, target) = (&greeting.online, &greeting.target);
        // What came before the server's greeting was captured counts as well.
        let came = target.size + self.ahead.as_ref().map_or(0, |ahead| ahead.len() as u64);
        let last = self.ahead.as_ref().and_then(|ahead| ahead.last().copied()).unwrap_or(target.last);
        if came == 0 {
            return Some(since_ns + PATIENCE_NS);
        }
        // Banners end with a line; of any other greeting the server's length says how long one is.
        let ended = came >= online.size || online.last == b'\n' && last == b'\n';
        (!ended).then(|| (self.answer_ns + GREETING_QUIET_NS).min(since_ns + PATIENCE_NS))
    }

    /// May what the client says now be written at once, without being queued?
    pub fn is_due(&self, pace: Pace, answers: u32) -> bool {
        let answered = pace == Pace::Wallclock || self.answers >= answers;
        self.connected
            && self.queue.is_none()
            && answered
            && pace != Pace::CausalThink
            && !self.shut
            && !self.greets
    }

    /// The client said this, captured at `since_ns`, of which `from` bytes were written at once. `shared` is the same for all copies.
    pub fn say(
        &mut self,
        (bytes, from): (&[u8], usize),
        shared: &mut Option<Arc<[u8]>>,
        (answers, thought_ns, asked): (u32, u64, u32),
        (since_ns, now_ns): (u64, u64),
    ) {
        self.online_since = 0;
        if from >= bytes.len() {
            return self.said(asked, since_ns, now_ns);
        }
        let bytes = Arc::clone(shared.get_or_insert_with(|| Arc::from(bytes)));
        self.waiting += (bytes.len() - from) as u32;
        let held = Held { bytes, from, since_ns, answers, asked, thought_ns };
        self.queue.get_or_insert_default().push_back(held);
    }

    /// Everything that belongs to requests before this number was said, of which the last bytes were captured at `since_ns`.
    fn said(&mut self, asked: u32, since_ns: u64, now_ns: u64) {
        self.said_ns = now_ns;
        self.target_since = 0;
        self.sent = self.sent.max(asked);
        let count = asked.saturating_sub(self.base) as usize;
        let Some(exchanges) = &mut self.exchanges else { return };
        for exchange in exchanges.iter_mut().take(count).rev() {
            // A request that comes in parts is said with the last of them.
            let goes_on = exchange.asked_ns >= since_ns && exchange.target.first_ns == 0;
            if exchange.sent_ns != 0 && !goes_on {
                break;
            }
            exchange.sent_ns = now_ns;
        }
    }

    /// What is to be done?
    pub fn next(&mut self, pace: Pace, now_ns: u64) -> Step<'_> {
        if !self.connected {
            return Step::Wait;
        }
        if let Some((since_ns, answers, thought_ns)) = self
            .queue
            .as_ref()
            .and_then(|queue| queue.front())
            .map(|held| (held.since_ns, held.answers, held.thought_ns))
        {
            let causal = pace != Pace::Wallclock;
            let greeting = self.greeting_due(since_ns);
            let answered = if !causal || answers == 0 {
                0
            } else {
                match self.answers >= answers {
                    true if pace == Pace::CausalThink => self.answer_ns + thought_ns,
                    true => 0,
                    false => since_ns + PATIENCE_NS,
                }
            };
            let ready = answered.max(greeting.unwrap_or(0));
            if ready > now_ns {
                return Step::Until(ready);
            }
            self.impatient |= causal && self.answers < answers || greeting == Some(since_ns + PATIENCE_NS);
            self.greets = false;
            if let Some(held) = self.queue.as_ref().and_then(|queue| queue.front()) {
                return Step::Write(held.bytes.get(held.from..).unwrap_or_default());
            }
        }
        let closes = self.target_closed && (self.over || self.shut);
        match self.end {
            End::Open => return Step::Wait,
            End::Reset => {}
            End::Finished if closes => return Step::Close,
            // Who has closed his side may be answered as long as the server may answer its client.
            End::Finished if self.shut && !self.over => return Step::Wait,
            End::Finished => {}
        }
        match self.owes(now_ns) {
            Owes::Nothing => {}
            Owes::Until(at) => {
                self.held |= !self.shut;
                return Step::Until(at);
            }
            Owes::Late => (self.held, self.unanswered) = (true, true),
        }
        if self.end == End::Reset {
            return Step::Reset;
        }
        if !self.shut {
            return Step::Shutdown;
        }
        match self.end_ns.max(self.answer_ns) + CLOSE_NS {
            until if now_ns < until => Step::Until(until),
            _ => Step::Close,
        }
    }

    /// Does the target owe answers that the server had given when its client ended?
    fn owes(&self, now_ns: u64) -> Owes {
        if self.target_closed || !self.connected || self.unanswered {
            return Owes::Nothing;
        }
        let patience = self.end_ns + PATIENCE_NS;
        let due_bytes = u64::from(self.due_bytes);
        let until = if self.is_framed() {
            let begun =
                self.due.checked_sub(self.base).and_then(|at| self.exchanges.as_ref()?.get(at as usize));
            match begun.filter(|_| due_bytes > 0) {
                _ if self.answers < self.due => patience,
                // The answer that the client did not hear to its end.
                Some(begun) if self.answers == self.due && begun.target.size < due_bytes => patience,
                _ => return Owes::Nothing,
            }
        } else {
            let since = u64::from(self.target_since);
            // Whether the last word of somebody who would have gone on has an answer is not known.
            let may_be = self.cut && self.said_ns != 0 && due_bytes == 0;
            // What was said at once at the target, and one after the other at the server, is answered at once as well.
            let all = self.heard >= self.due_heard;
            if since >= due_bytes && all && !may_be {
                return Owes::Nothing;
            }
            let quiet = self.answer_ns.max(self.said_ns) + QUIET_NS;
            match since > 0 || all || may_be {
                true if now_ns >= quiet => return Owes::Nothing,
                true => quiet.min(patience),
                false => patience,
            }
        };
        if now_ns >= patience { Owes::Late } else { Owes::Until(until) }
    }

    /// So many bytes of what was to be written were taken.
    pub fn wrote(&mut self, bytes: usize, now_ns: u64) {
        let Some(queue) = &mut self.queue else { return };
        self.waiting = self.waiting.saturating_sub(bytes as u32);
        let Some(held) = queue.front_mut() else { return };
        held.from += bytes;
        if held.from >= held.bytes.len() {
            let (asked, since_ns) = (held.asked, held.since_ns);
            queue.pop_front();
            if queue.is_empty() {
                self.queue = None;
            }
            self.said(asked, since_ns, now_ns);
        }
    }

    /// FIN was sent.
    pub fn done(&mut self, now_ns: u64) {
        self.shut = true;
        self.end_ns = now_ns;
    }

    /// The client says nothing more, when the server had given so many whole answers.
    pub fn finish(&mut self, answers: u32, now_ns: u64) {
        if self.end == End::Open {
            self.end = End::Finished;
            self.owe(answers, now_ns);
        }
    }

    /// The client goes on, and its copy does not: the target may answer what it heard, of which so many requests are whole.
    pub fn cut(&mut self, requests: u32, now_ns: u64) {
        self.cut = true;
        self.finish(requests, now_ns);
    }

    /// The client tore its connection down, when the server had given so many whole answers.
    pub fn reset(&mut self, answers: u32, now_ns: u64) {
        self.end = End::Reset;
        self.owe(answers, now_ns);
    }

    fn owe(&mut self, answers: u32, now_ns: u64) {
        self.end_ns = self.end_ns.max(now_ns);
        self.due = answers;
        self.due_heard = self.online;
        let begun = |number: u32| {
            let at = number.checked_sub(self.base)? as usize;
            u32::try_from(self.exchanges.as_ref()?.get(at)?.online.size).ok()
        };
        self.due_bytes = match self.is_framed() {
            true if self.cut => 0,
            true => begun(answers).unwrap_or(0),
            false => self.online_since,
        };
    }

    /// When the client ended: FIN was sent, or the client's RST came; or when what it had said before was said to the target.
    pub fn ended_ns(&self) -> u64 {
        self.end_ns.max(self.said_ns)
    }

    /// The session is over at the server, which gave so many whole answers.
    pub fn over(&mut self, answers: u32, now_ns: u64) {
        self.over = true;
        self.finish(answers, now_ns);
        // Who closed his side first has been answered meanwhile.
        if self.shut {
            self.owe(answers, now_ns);
        }
    }

    /// Nothing more is copied: what has not ended will not.
    pub fn stop(&mut self) {
        self.cut = true;
    }

    /// The target closed or is gone: what waits is never said. How many bytes that are, if the connection is not good for more.
    pub fn target_closed(&mut self, comparison: &mut Comparison) {
        self.closed_early |= self.is_open();
        self.target_closed = true;
        if self.framer.ends_with_connection() {
            self.framer = Framer::default();
            let number = self.answers;
            self.answers += 1;
            if let Some(exchange) = self.exchange(number) {
                exchange.target.ended = true;
            }
            self.settle(comparison);
        }
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
    pub fn asked(&mut self, number: u32, line: Line, protocol: Protocol, comparison: &mut Comparison) {
        if self.protocol == Protocol::Unknown {
            self.protocol = protocol;
        }
        // The server's last answer is known to be whole now.
        if self.overlong {
            self.overran_alone(comparison);
        }
        let full = self.exchanges.as_ref().is_some_and(|exchanges| exchanges.len() >= MOST_EXCHANGES);
        let lost = self.lost && protocol != Protocol::Turns;
        comparison.requests += u64::from(self.compares || lost);
        comparison.unfollowed += u64::from(lost);
        if full {
            comparison.unfollowed += u64::from(self.compares);
            return;
        }
        let exchanges = self.exchanges.get_or_insert_default();
        if exchanges.is_empty() {
            self.base = number;
        }
        exchanges.push_back(Exchange { ask: line, ..Exchange::default() });
        // The server's last answer is known to be whole now, and of what the target said before it was asked nothing is one.
        if self.ahead.is_some() {
            match (self.is_framed(), self.compares) {
                (true, _) => self.unframed(comparison),
                (false, true) => self.turn(&[], 0, comparison),
                (false, false) => self.ahead = None,
            }
        }
    }

    /// The client asks something that is never said.
    pub fn asked_in_vain(&self, comparison: &mut Comparison) {
        comparison.requests += u64::from(self.compares || self.lost);
        comparison.unsaid += u64::from(self.compares || self.lost);
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

    /// The server's answer to a request holds this.
    pub fn online_holds(&mut self, number: u32, part: Part<'_>, comparison: &mut Comparison) {
        let (framed, compares) = (self.is_framed(), self.compares);
        if !compares && framed {
            return;
        }
        let Some(exchange) = self.exchange(number) else { return };
        if let Part::Body([.., last]) = part {
            exchange.online.last = *last;
        }
        if compares {
            comparison.take(&mut exchange.online, part);
        }
    }

    /// The server answers a request.
    pub fn online(
        &mut self,
        (number, bytes, line, ended): (u32, u64, Option<Line>, bool),
        now_ns: u64,
        comparison: &mut Comparison,
    ) {
        self.online += bytes;
        self.online_since = self.online_since.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        let Some(exchange) = self.exchange(number) else { return };
        exchange.online.came(bytes, line, ended, now_ns);
        if ended {
            self.settle(comparison);
        } else if self.protocol == Protocol::Turns && self.compares {
            self.turn(&[], 0, comparison);
        }
    }

    /// Which answer belongs to which request is not known any more: by whose turn it is from now on, and nothing is compared.
    pub fn unframed(&mut self, comparison: &mut Comparison) {
        if self.compares {
            comparison.unframed_sessions += 1;
            self.lost = true;
        }
        self.follow_no_more(comparison);
        self.protocol = Protocol::Turns;
        self.answers = u32::MAX;
    }

    /// Its messages cannot be told apart: nothing is compared.
    pub fn unread(&mut self, comparison: &mut Comparison) {
        comparison.unread_sessions += u64::from(self.compares);
        self.follow_no_more(comparison);
    }

    fn follow_no_more(&mut self, comparison: &mut Comparison) {
        for exchange in self.exchanges.take().into_iter().flat_map(|all| *all) {
            comparison.drop(&exchange);
            comparison.unfollowed += u64::from(self.compares);
        }
        self.compares = false;
        self.framer = Framer::default();
        (self.ahead, self.alike, self.overlong) = (None, None, false);
    }

    /// The target answers.
    pub fn received(&mut self, bytes: &[u8], now_ns: u64, comparison: &mut Comparison) {
        self.heard += bytes.len() as u64;
        self.target_since = self.target_since.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        match self.protocol {
            Protocol::Unknown => {
                self.answer_ns = now_ns;
                self.hold(bytes);
            }
            Protocol::Turns => {
                self.answer_ns = now_ns;
                match self.compares {
                    true => self.turn(bytes, now_ns, comparison),
                    false => self.took_turn(bytes, now_ns),
                }
            }
            Protocol::Http | Protocol::Redis => self.framed(bytes, now_ns, comparison),
        }
    }

    fn framed(&mut self, bytes: &[u8], now_ns: u64, comparison: &mut Comparison) {
        let mut rest = if self.broken { &[] } else { bytes };
        while !rest.is_empty() {
            let number = self.answers;
            let asked = number < self.sent;
            let at = number.checked_sub(self.base).map(|at| at as usize);
            let mut exchange = self.exchanges.as_mut().zip(at).and_then(|(all, at)| all.get_mut(at));
            let bodyless = exchange.as_ref().is_some_and(|exchange| exchange.bodyless);
            let compares = self.compares;
            let mut tell = |part: Part<'_>| {
                if let Some(exchange) = exchange.as_deref_mut().filter(|_| compares) {
                    comparison.take(&mut exchange.target, part);
                }
            };
            let begins = self.framer.is_idle();
            let took = self.framer.take(self.protocol, rest, (true, bodyless), &mut tell);
            let took = match took {
                Ok(took) if asked => took,
                Err(Lost::Malformed) if asked => {
                    let line = self.framer.head().or(begins.then_some(rest)).map(Line::of);
                    return self.breaks(Some(number), (rest.len() as u64, line), now_ns, comparison);
                }
                // Of its own accord a server says only that it waited for too long (RFC 9110, section 15.5.9): no fault of the answer before.
                Ok(_) if begins && self.alike.is_some() && is_timeout(rest) => {
                    return self.unframed(comparison);
                }
                // More than was asked for: no client takes that for a part of the answer before.
                Ok(_) | Err(Lost::Malformed) => {
                    return self.breaks(number.checked_sub(1), (0, None), now_ns, comparison);
                }
                Err(Lost::Elsewhere) => return self.unframed(comparison),
            };
            rest = rest.get(took.bytes..).unwrap_or_default();
            let interim = took.head.is_some_and(|head| head.interim);
            if interim && took.ended {
                continue;
            }
            let line = took.head.map(|head| head.line);
            if let Some(exchange) = exchange {
                exchange.target.came(took.bytes as u64, line, took.ended, now_ns);
            }
            if took.ended {
                self.answers += 1;
                self.answer_ns = now_ns;
            }
        }
        self.settle(comparison);
    }

    /// The target's answer to this request breaks the rules that say where it ends. It is compared when the server's is whole, unless
    /// that breaks them, too; then nothing of the session is followed any more.
    fn breaks(
        &mut self,
        number: Option<u32>,
        (bytes, line): (u64, Option<Line>),
        now_ns: u64,
        comparison: &mut Comparison,
    ) {
        let compares = self.compares;
        let exchange = number.and_then(|number| self.exchange(number)).filter(|_| compares);
        if let Some(exchange) = exchange {
            exchange.target.came(bytes, line, true, now_ns);
            exchange.target.malformed = true;
        } else if compares && self.alike.is_some() {
            self.overlong = true;
        } else {
            return self.unframed(comparison);
        }
        self.broken = true;
        self.answers = u32::MAX;
        self.answer_ns = now_ns;
        self.framer = Framer::default();
        match self.overlong && self.exchanges.is_some() {
            true => self.overran_alone(comparison),
            false => self.settle(comparison),
        }
    }

    /// More than was asked for came behind an answer that had been found alike, and the server said no more: it is not like that one.
    fn overran_alone(&mut self, comparison: &mut Comparison) {
        if let Some([ask, line]) = self.alike.take().map(|alike| *alike) {
            comparison.overran(ask, line);
        }
        self.unframed(comparison);
    }

    /// Of a copy whose answers are not compared, bytes belong to the oldest request that was said and is not answered as far as the server
    /// answered it.
    fn took_turn(&mut self, bytes: &[u8], now_ns: u64) {
        let base = self.base;
        let Some(exchanges) = self.exchanges.as_mut().filter(|_| self.answers != u32::MAX) else { return };
        let last = exchanges.iter().rposition(|exchange| exchange.sent_ns != 0);
        let Some(last) = last else { return };
        let open = |exchange: &Exchange| exchange.target.size < exchange.online.size.max(1);
        let at = exchanges.iter().take(last).position(open).unwrap_or(last);
        if let Some(exchange) = exchanges.get_mut(at) {
            exchange.target.came(bytes.len() as u64, None, false, now_ns);
            exchange.target.last = bytes.last().copied().unwrap_or_default();
            self.answers = self.answers.max(base + at as u32 + 1);
        }
        while exchanges.len() > 1
            && exchanges.get(1).is_some_and(|next| next.target.first_ns != 0 && next.online.first_ns != 0)
        {
            exchanges.pop_front();
            self.base += 1;
        }
    }

    /// What the target says ahead of the server waits, because which request it answers is not known yet.
    fn hold(&mut self, bytes: &[u8]) {
        let ahead = self.ahead.get_or_insert_default();
        let room = MOST_AHEAD.saturating_sub(ahead.len());
        ahead.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// An answer is what comes between two requests in the stream: what the target says is set beside what the server said, byte by byte,
    /// however both were cut into segments. Takes what was ahead, and these bytes.
    fn turn(&mut self, bytes: &[u8], now_ns: u64, comparison: &mut Comparison) {
        if self.answers == u32::MAX {
            return;
        }
        if bytes.is_empty() && self.ahead.is_none() {
            return self.settle(comparison);
        }
        let before = self.ahead.take();
        let joined = before.map(|mut ahead| {
            ahead.extend_from_slice(bytes);
            ahead
        });
        let mut rest = joined.as_ref().map_or(bytes, |joined| joined.as_slice());
        while !rest.is_empty() {
            let Some(exchanges) = self.exchanges.as_mut() else { break };
            let Some(last) = exchanges.iter().rposition(|exchange| exchange.sent_ns != 0) else { break };
            let mut at = 0;
            // The oldest that is not answered as far as the server did.
            while at < last
                && exchanges.get(at).is_some_and(|e| e.target.ended || e.target.size >= e.online.size.max(1))
            {
                at += 1;
            }
            // The next one was asked: there is no more of the server's answer, and of the target's, if it was said to it as well.
            let closed = exchanges.len() > at + 1;
            let (next_said, next_ns) = (at < last, exchanges.get(at + 1).map_or(0, |next| next.sent_ns));
            let Some(exchange) = exchanges.get_mut(at) else { break };
            if now_ns != 0 {
                exchange.target.touch(now_ns);
                exchange.target.last_ns = now_ns;
                self.answers = self.answers.max(self.base + at as u32 + 1);
            }
            let room = exchange.online.size.saturating_sub(exchange.target.size) as usize;
            let fits = rest.get(..room).unwrap_or(rest);
            let target = &exchange.target;
            let apart = target.digest.contradicts(fits, &exchange.online.digest);
            // A shorter answer, and what follows is the next one's.
            if closed && next_said && apart && target.size > 0 && target.first_ns <= next_ns {
                exchange.target.ended = true;
                continue;
            }
            let same = room == 0 && exchange.online.digest.has_body_of(&target.digest);
            let takes = match (closed, next_said) {
                // A longer one: nothing else can be answered yet.
                (true, false) if room == 0 && !same => rest,
                _ if room > 0 => fits,
                (false, _) if rest.len() > MOST_AHEAD => {
                    self.overran = true;
                    rest
                }
                _ => break,
            };
            comparison.take(&mut exchange.target, Part::Body(takes));
            exchange.target.size += takes.len() as u64;
            exchange.target.last = takes.last().copied().unwrap_or_default();
            if exchange.target.first_ns == 0 {
                exchange.target.touch(self.answer_ns);
                exchange.target.last_ns = self.answer_ns;
                self.answers = self.answers.max(self.base + at as u32 + 1);
            }
            comparison.forget_common(exchange);
            rest = rest.get(takes.len()..).unwrap_or_default();
        }
        let rest = rest.to_vec();
        if !rest.is_empty() {
            self.hold(&rest);
        }
        // It was further ahead than could be waited for, and the server's answer ended elsewhere.
        let lost = self.exchanges.as_ref().is_some_and(|all| {
            all.front().is_some_and(|first| all.len() > 1 && first.target.size > first.online.size)
        });
        if self.overran && lost {
            return self.unframed(comparison);
        }
        self.settle(comparison);
    }

    /// Counts the exchanges that are over.
    pub fn settle(&mut self, comparison: &mut Comparison) {
        let framed = self.protocol != Protocol::Turns;
        while let Some(exchanges) = &mut self.exchanges {
            let Some(first) = exchanges.front() else { break };
            // Of turns, an answer has ended when the next request is on its way on both sides.
            let both = match framed {
                true => first.online.ended && first.target.ended,
                false => exchanges
                    .get(1)
                    .is_some_and(|next| next.target.first_ns != 0 && next.online.first_ns != 0),
            };
            if !both {
                break;
            }
            if self.compares {
                let before = comparison.same;
                comparison.settle(first, Ended::Whole, framed);
                match framed && comparison.same > before {
                    true => **self.alike.get_or_insert_default() = [first.ask, first.online.line],
                    false => self.alike = None,
                }
            }
            let broken = framed && first.target.malformed;
            exchanges.pop_front();
            self.base += 1;
            if broken {
                return self.unframed(comparison);
            }
        }
        if self.exchanges.as_ref().is_some_and(|all| all.is_empty()) {
            self.exchanges = None;
        }
    }

    /// Nothing more comes of either side: counts the exchanges that are left.
    pub fn settle_all(&mut self, now_ns: u64, comparison: &mut Comparison) {
        if self.overlong {
            self.overran_alone(comparison);
        }
        let framed = self.is_framed();
        if let Some(ahead) = self.ahead.take().filter(|_| self.compares) {
            let last = self.exchanges.as_mut().and_then(|all| all.iter_mut().rfind(|one| one.sent_ns != 0));
            if let Some(exchange) = last {
                comparison.take(&mut exchange.target, Part::Body(&ahead));
                exchange.target.came(ahead.len() as u64, None, false, self.answer_ns);
            }
        }
        let given_up = self.unanswered && !self.target_closed;
        let end = match self.cut || given_up || self.end == End::Reset {
            true => Ended::Cut(now_ns),
            false => Ended::Over,
        };
        let exchanges = self.exchanges.take().map(|all| *all).unwrap_or_default();
        let count = exchanges.len();
        for (at, exchange) in exchanges.iter().enumerate() {
            if self.compares {
                // Of turns, all but the last have ended.
                let whole = !framed && at + 1 < count && exchange.target.first_ns != 0;
                comparison.settle(exchange, if whole { Ended::Over } else { end }, framed);
            }
        }
    }
}

/// Is it an answer that no request is needed for?
fn is_timeout(head: &[u8]) -> bool {
    head.starts_with(b"HTTP/1.") && head.get(8..12) == Some(b" 408")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(replica: &mut Replica, bytes: &[u8], answers: u32, thought_ns: u64, asked: u32, now_ns: u64) {
        replica.say((bytes, 0), &mut None, (answers, thought_ns, asked), (now_ns, now_ns));
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    fn asks(replica: &mut Replica, number: u32, now_ns: u64) {
        replica.asked(number, Line::of(GET), Protocol::Http, &mut Comparison::default());
        replica.asked_whole(number, false, now_ns);
    }

    /// The server's answer, whole.
    fn answers(replica: &mut Replica, number: u32, now_ns: u64, comparison: &mut Comparison) {
        replica.online_holds(number, Part::Head(&ANSWER[..ANSWER.len() - 2]), comparison);
        replica.online_holds(number, Part::Body(b"ok"), comparison);
        replica.online((number, ANSWER.len() as u64, Some(Line::of(ANSWER)), true), now_ns, comparison);
    }

    /// A turn of the server.
    fn turns(replica: &mut Replica, number: u32, bytes: &[u8], now_ns: u64, comparison: &mut Comparison) {
        replica.online_holds(number, Part::Body(bytes), comparison);
        replica.online((number, bytes.len() as u64, None, false), now_ns, comparison);
    }

    fn asks_in_turn(replica: &mut Replica, number: u32, now_ns: u64, comparison: &mut Comparison) {
        replica.asked(number, Line::default(), Protocol::Turns, comparison);
        replica.asked_whole(number, false, now_ns);
    }

    #[test]
    fn nothing_is_said_before_the_connection_is_there_and_all_in_order() {
        let mut replica = Replica::new(true);
        said(&mut replica, b"ab", 0, 0, 1, 1);
        said(&mut replica, b"c", 0, 0, 1, 2);
        replica.finish(0, 2);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Wait);
        replica.connected(3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Write(b"ab"));
        replica.wrote(1, 3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Write(b"b"));
        replica.wrote(1, 3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Write(b"c"));
        replica.wrote(1, 3);
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Shutdown);
        assert_eq!(replica.waiting(), 0);
        replica.done(3);
        // The server may still answer.
        assert_eq!(replica.next(Pace::Wallclock, 3), Step::Wait);
        replica.over(0, 4);
        assert_eq!(replica.next(Pace::Wallclock, 4), Step::Until(4 + CLOSE_NS));
        replica.target_closed(&mut Comparison::default());
        assert_eq!(replica.next(Pace::Wallclock, 4), Step::Close);
        assert!(!replica.was_held());
    }

    #[test]
    fn an_end_waits_for_the_answers_that_the_server_had_given_at_any_pace() {
        for (pace, resets) in [Pace::Wallclock, Pace::Causal, Pace::CausalThink]
            .into_iter()
            .flat_map(|pace| [(pace, false), (pace, true)])
        {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            replica.connected(1);
            asks(&mut replica, 0, 10);
            said(&mut replica, GET, 0, 0, 1, 10);
            assert_eq!(replica.next(pace, 10), Step::Write(GET));
            replica.wrote(GET.len(), 10);
            answers(&mut replica, 0, 20, &mut comparison);
            match resets {
                true => replica.reset(1, 30),
                false => replica.finish(1, 30),
            }
            replica.over(1, 30);
            assert_eq!(replica.next(pace, 30), Step::Until(30 + PATIENCE_NS));
            replica.received(&ANSWER[..9], 200, &mut comparison);
            assert_eq!(replica.next(pace, 200), Step::Until(30 + PATIENCE_NS));
            replica.received(&ANSWER[9..], 210, &mut comparison);
            assert_eq!(replica.next(pace, 210), if resets { Step::Reset } else { Step::Shutdown });
            assert!(replica.was_held() && !replica.was_unanswered());
            assert_eq!((comparison.compared, comparison.same), (1, 1));
        }
    }

    #[test]
    fn an_end_before_the_answer_is_an_end_before_the_answer() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        asks(&mut replica, 0, 10);
        said(&mut replica, GET, 0, 0, 1, 10);
        replica.wrote(GET.len(), 10);
        replica.finish(0, 11);
        assert_eq!(replica.next(Pace::Wallclock, 11), Step::Shutdown);
        replica.done(11);
        // What half an answer made a client go away has begun to come.
        let mut replica = Replica::new(true);
        replica.connected(1);
        asks(&mut replica, 0, 10);
        said(&mut replica, GET, 0, 0, 1, 10);
        replica.wrote(GET.len(), 10);
        replica.online((0, 40, Some(Line::of(ANSWER)), false), 20, &mut comparison);
        replica.reset(0, 30);
        assert_eq!(replica.next(Pace::Wallclock, 30), Step::Until(30 + PATIENCE_NS));
        let answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", &[b'x'; 40][..]].concat();
        replica.received(&answer, 40, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 40), Step::Reset);
    }

    #[test]
    fn an_end_does_not_wait_for_ever_and_that_is_counted() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        asks(&mut replica, 0, 10);
        said(&mut replica, GET, 0, 0, 1, 10);
        replica.wrote(GET.len(), 10);
        answers(&mut replica, 0, 20, &mut comparison);
        replica.finish(1, 30);
        replica.over(1, 30);
        assert_eq!(replica.next(Pace::Wallclock, 30 + PATIENCE_NS), Step::Shutdown);
        assert!(replica.was_held() && replica.was_unanswered());
        // A target that closed owes nothing.
        let mut replica = Replica::new(true);
        replica.connected(1);
        asks(&mut replica, 0, 10);
        said(&mut replica, GET, 0, 0, 1, 10);
        replica.wrote(GET.len(), 10);
        replica.finish(1, 30);
        replica.over(1, 30);
        replica.target_closed(&mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 31), Step::Close);
        assert!(!replica.was_unanswered());
    }

    #[test]
    fn where_messages_are_not_told_apart_an_end_waits_for_as_much_or_for_silence() {
        let start = || {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            replica.connected(1);
            asks_in_turn(&mut replica, 0, 10, &mut comparison);
            said(&mut replica, b"ask", 0, 0, 1, 10);
            replica.wrote(3, 10);
            turns(&mut replica, 0, b"an answer", 20, &mut comparison);
            replica.finish(0, 30);
            replica.over(0, 30);
            assert_eq!(replica.next(Pace::Wallclock, 30), Step::Until(30 + PATIENCE_NS));
            (replica, comparison)
        };
        let (mut replica, mut comparison) = start();
        replica.received(b"an ans", 40, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 40), Step::Until(40 + QUIET_NS));
        replica.received(b"wer", 50, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 50), Step::Shutdown);
        // Two that were said at once have both to be answered.
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        for number in 0..2 {
            asks_in_turn(&mut replica, number, 10, &mut comparison);
            said(&mut replica, b"ask", 0, 0, number + 1, 10);
            turns(&mut replica, number, b"an answer", 20, &mut comparison);
        }
        replica.wrote(3, 25);
        replica.wrote(3, 25);
        replica.finish(0, 30);
        replica.over(0, 30);
        replica.received(b"an answer", 40, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 40), Step::Until(40 + QUIET_NS));
        replica.received(b"an answer", 50, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 50), Step::Shutdown);
        // A shorter one.
        let (mut replica, mut comparison) = start();
        replica.received(b"none", 40, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 40 + QUIET_NS), Step::Shutdown);
        assert!(!replica.was_unanswered());
    }

    #[test]
    fn whoever_would_have_gone_on_is_answered_before_the_copy_ends() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        asks(&mut replica, 0, 10);
        said(&mut replica, GET, 0, 0, 1, 10);
        replica.wrote(GET.len(), 10);
        // Copying ends before the server has answered.
        replica.cut(1, 20);
        replica.over(0, 20);
        assert_eq!(replica.next(Pace::Wallclock, 20), Step::Until(20 + PATIENCE_NS));
        replica.received(ANSWER, 30, &mut comparison);
        assert_eq!(replica.next(Pace::Wallclock, 30), Step::Shutdown);
        comparison.requests = 1;
        replica.settle_all(40, &mut comparison);
        assert_eq!((comparison.cut, comparison.online_unanswered, comparison.contradiction()), (1, 0, None));
    }

    #[test]
    fn a_client_waits_for_the_targets_greeting_at_any_pace_as_it_waited_for_the_servers() {
        // What the target greets with, and whether the client speaks at once then.
        for (greeting, at_once) in [
            (&b"220 one ready\r\n"[..], true),
            (b"220 short\r\n", true),
            (b"short", false),
            (b"220 longer than that\r\n", true),
        ] {
            for pace in [Pace::Wallclock, Pace::Causal] {
                let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
                replica.greets(5, &mut comparison);
                turns(&mut replica, 0, b"220 one ready\r\n", 5, &mut comparison);
                replica.connected(6);
                asks_in_turn(&mut replica, 1, 10, &mut comparison);
                assert!(!replica.is_due(pace, 1));
                said(&mut replica, b"HELO\r\n", 1, 0, 2, 10);
                assert_eq!(replica.next(pace, 10), Step::Until(10 + PATIENCE_NS));
                replica.received(greeting, 20, &mut comparison);
                if !at_once {
                    assert_eq!(replica.next(pace, 20), Step::Until(20 + GREETING_QUIET_NS));
                }
                let now = if at_once { 20 } else { 20 + GREETING_QUIET_NS };
                assert_eq!(replica.next(pace, now), Step::Write(b"HELO\r\n"));
                replica.wrote(6, now);
                turns(&mut replica, 1, b"250 ok\r\n", 30, &mut comparison);
                replica.received(b"250 ok\r\n", now + 9, &mut comparison);
                replica.settle_all(now + 10, &mut comparison);
                let same = u64::from(greeting == b"220 one ready\r\n");
                assert_eq!((comparison.compared, comparison.same), (2, 1 + same), "{comparison:?}");
                assert!(!replica.was_impatient() && comparison.contradiction().is_none());
            }
        }
        // One that never comes is not waited for for ever.
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        replica.greets(5, &mut comparison);
        turns(&mut replica, 0, b"220 one ready\r\n", 5, &mut comparison);
        said(&mut replica, b"HELO\r\n", 1, 0, 2, 10);
        assert_eq!(replica.next(Pace::Wallclock, 10 + PATIENCE_NS), Step::Write(b"HELO\r\n"));
        assert!(replica.was_impatient());
    }

    #[test]
    fn identical_servers_answer_alike_in_turn_however_both_are_cut_and_whoever_is_first() {
        use proptest::prelude::*;
        // The server's answers; where its stream is cut, and the target's; who comes next; how many requests are said ahead.
        let turn = proptest::collection::vec(0u8..3, 1..9);
        let steps = proptest::collection::vec((any::<bool>(), 1usize..12), 1..200);
        proptest!(ProptestConfig::with_cases(2000), |(answers in proptest::collection::vec(turn, 1..8), steps in steps)| {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            replica.connected(1);
            let whole: Vec<u8> = answers.concat();
            let mut ends = Vec::new();
            answers.iter().fold(0, |at, one| { ends.push(at + one.len()); at + one.len() });
            let (mut asked, mut online, mut target, mut now) = (0usize, 0usize, 0usize, 10u64);
            for (server, count) in steps.into_iter().chain(std::iter::repeat_n((true, 12), 99)).chain(std::iter::repeat_n((false, 12), 99)) {
                now += 10;
                // The client asks when the server has answered.
                if asked < answers.len() && (asked == 0 || online == ends[asked - 1]) {
                    let number = asked as u32;
                    asked += 1;
                    asks_in_turn(&mut replica, number, now, &mut comparison);
                    replica.say((b"ask", 3), &mut None, (number, 0, number + 1), (now, now));
                }
                // Identical servers have nothing to answer beyond what they were asked.
                let most = ends[asked - 1];
                let (at, number) = if server { (&mut online, asked as u32 - 1) } else { (&mut target, 0) };
                let until = (*at + count).min(most);
                let bytes = &whole[*at..until];
                if bytes.is_empty() {
                    continue;
                }
                *at = until;
                match server {
                    true => turns(&mut replica, number, bytes, now, &mut comparison),
                    false => replica.received(bytes, now, &mut comparison),
                }
            }
            replica.settle_all(now, &mut comparison);
            prop_assert_eq!((comparison.compared, comparison.same), (asked as u64, asked as u64), "{:?}", comparison);
            prop_assert_eq!(comparison.contradiction(), None);
        });
    }

    #[test]
    fn answers_in_turn_that_are_shorter_or_longer_differ_alone() {
        for other in [&b"hell"[..], b"hello and more", b"HELLO", b"other"] {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            replica.connected(1);
            for number in 0..4u32 {
                let now = 100 + u64::from(number) * 100;
                asks_in_turn(&mut replica, number, now, &mut comparison);
                replica.say((b"ask", 3), &mut None, (number, 0, number + 1), (now, now));
                let own = format!("hello{number}");
                turns(&mut replica, number, own.as_bytes(), now + 20, &mut comparison);
                replica.received(if number == 1 { other } else { own.as_bytes() }, now + 30, &mut comparison);
            }
            replica.settle_all(900, &mut comparison);
            let differ = comparison.sizes_differ + comparison.bodies_differ;
            assert_eq!((comparison.compared, differ), (4, 1), "{other:?} {comparison:?}");
        }
    }

    #[test]
    fn a_request_is_said_when_its_own_last_byte_is() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        for (number, now) in [(0, 10), (1, 500)] {
            asks(&mut replica, number, now);
            replica.say((GET, GET.len()), &mut None, (0, 0, number + 1), (now, now + 5));
        }
        for number in [0, 1] {
            answers(&mut replica, number, 600, &mut comparison);
            replica.received(ANSWER, 615, &mut comparison);
        }
        assert_eq!((comparison.target_first.max(), comparison.target_first.min()), (600, 110));
    }

    #[test]
    fn a_causal_copy_waits_for_the_targets_answer_and_thinks_as_long() {
        for (pace, due) in [(Pace::Causal, 0), (Pace::CausalThink, 500)] {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            replica.connected(1);
            asks(&mut replica, 0, 10);
            assert!(pace == Pace::CausalThink || replica.is_due(pace, 0));
            said(&mut replica, GET, 0, 0, 1, 10);
            assert_eq!(replica.next(pace, 10), Step::Write(GET));
            replica.wrote(GET.len(), 10);
            answers(&mut replica, 0, 20, &mut comparison);
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
        replica.connected(1);
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
        replica.connected(1);
        said(&mut replica, b"x", 0, 0, 1, 1);
        replica.reset(0, 1);
        assert_eq!(replica.next(Pace::Wallclock, 1), Step::Write(b"x"));
        replica.wrote(1, 1);
        assert_eq!(replica.next(Pace::Wallclock, 1), Step::Reset);
    }

    #[test]
    fn a_target_closes_early_if_the_server_did_not_close_as_well() {
        for (server, client, early) in [(false, false, true), (true, false, false), (false, true, false)] {
            let mut replica = Replica::new(false);
            replica.connected(1);
            if client {
                replica.finish(0, 1);
            }
            replica.target_closed(&mut Comparison::default());
            if server {
                replica.server_finished();
            }
            assert_eq!(replica.was_closed_early(), early, "server {server}, client {client}");
        }
    }

    #[test]
    fn an_answer_that_ends_with_the_connection_ends_with_it_at_the_target_too() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        replica.asked(0, Line::of(GET), Protocol::Http, &mut comparison);
        replica.asked_whole(0, false, 1);
        replica.say((GET, GET.len()), &mut None, (0, 0, 1), (1, 1));
        let answer = b"HTTP/1.0 200 OK\r\n\r\nall of it";
        let head = answer.len() - 9;
        replica.online_holds(0, Part::Head(&answer[..head]), &mut comparison);
        replica.online_holds(0, Part::Body(&answer[head..]), &mut comparison);
        replica.online((0, answer.len() as u64, Some(Line::of(answer)), false), 2, &mut comparison);
        replica.received(answer, 3, &mut comparison);
        // The target's connection is over before the server's is.
        replica.target_closed(&mut comparison);
        assert_eq!(comparison.compared, 0);
        replica.online((0, 0, None, true), 5, &mut comparison);
        replica.settle_all(6, &mut comparison);
        assert_eq!((comparison.same, comparison.cut, comparison.contradiction()), (1, 0, None));
    }

    #[test]
    fn an_answer_nobody_asked_for_ends_the_comparison_and_holds_nothing() {
        let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
        replica.connected(1);
        asks(&mut replica, 0, 1);
        replica.say((GET, GET.len()), &mut None, (0, 0, 1), (1, 1));
        replica.received(ANSWER, 2, &mut comparison);
        replica.received(ANSWER, 3, &mut comparison);
        // No pace waits for its answers.
        assert!(replica.is_due(Pace::Causal, 9));
        assert_eq!((comparison.malformed, comparison.unframed_sessions), (0, 0));
        // The server's answer is none like that.
        answers(&mut replica, 0, 4, &mut comparison);
        assert_eq!((comparison.malformed, comparison.unframed_sessions), (1, 1));
    }

    #[test]
    fn more_than_was_asked_for_behind_an_answer_found_alike_makes_it_another_unless_the_server_says_more_too()
    {
        const LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
        let counts = |c: &Comparison| [c.same, c.malformed, c.unfollowed, c.unframed_sessions, c.requests];
        for (more, then, wanted) in [
            (&b", world"[..], "ends", [0, 1, 0, 1, 1]),
            (ANSWER, "ends", [0, 1, 0, 1, 1]),
            (b", world", "asks", [0, 1, 1, 1, 2]),
            (b", world", "had asked", [0, 1, 1, 1, 2]),
            (b", world", "server", [1, 0, 0, 1, 1]),
            (LATE, "ends", [1, 0, 0, 1, 1]),
        ] {
            let (mut replica, mut comparison) = (Replica::new(true), Comparison::default());
            let ask = |replica: &mut Replica, number, comparison: &mut Comparison| {
                replica.asked(number, Line::of(GET), Protocol::Http, comparison);
                replica.asked_whole(number, false, 1);
            };
            replica.connected(1);
            ask(&mut replica, 0, &mut comparison);
            replica.say((GET, GET.len()), &mut None, (0, 0, 1), (1, 1));
            answers(&mut replica, 0, 2, &mut comparison);
            replica.received(ANSWER, 3, &mut comparison);
            assert_eq!(comparison.same, 1);
            if then == "had asked" {
                ask(&mut replica, 1, &mut comparison);
            }
            replica.received(more, 50_000_000, &mut comparison);
            match then {
                "asks" => ask(&mut replica, 1, &mut comparison),
                "server" => replica.unframed(&mut comparison),
                _ => {}
            }
            // What follows is not looked at.
            replica.received(ANSWER, 60_000_000, &mut comparison);
            replica.settle_all(70_000_000, &mut comparison);
            assert_eq!(counts(&comparison), wanted, "{} {then}", more.escape_ascii());
            assert_eq!(comparison.contradiction(), None);
            assert_eq!(
                comparison.ranked().first().map(|(_, kind)| kind.example),
                (wanted[1] > 0).then(|| Line::of(GET))
            );
        }
    }
}
