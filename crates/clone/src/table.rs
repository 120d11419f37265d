//! The sessions of one server as a capture shows them, in both directions: what clients said is put in order, and what the server
//! answered says how far that goes, whose turn it is, and what the capture misses.
//!
//! ```text
//!   SYN ---> half open --ACK--> open --FIN, RST, a gap, long silence--> over (kept for a moment: late segments are its own)
//!   (no connection to the        |
//!    target yet: floods cost     '--- events: opened, greets, bytes, asked, answered, end
//!    it nothing)
//!   anything else ---> waiting --the policy's moment--> open
//! ```
//!
//! Called with segments in the order of capture, and now and then with the time alone.

use crate::framing::{Framer, Line, Part, Protocol, is_http, is_http2, is_tls};
use crate::funnel::{Bytes, Frames, Sessions};
use crate::packet::{ACK, FIN, RST, SYN, Segment};
use crate::sample::{self, Copies};
use crate::slab::Slab;
use crate::stream::{Found, Stream};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::net::IpAddr;
use wire::flow::{FlowHasher, FlowKey};

/// Connections that are half open, at most; the oldest one goes first.
const MOST_HALF_OPEN: usize = 65_536;
/// Sessions that were open before the start, at most; the oldest one goes first. A flood of ACKs must not fill the memory.
const MOST_STRANGE: usize = 131_072;
/// Bytes of all sessions that wait for what precedes them, at most.
const MOST_EARLY: u64 = 256 << 20;
/// And for so long.
const HALF_OPEN_NS: u64 = 30_000_000_000;
/// Late segments of a session that is over belong to it for so long.
const LINGER_NS: u64 = 2_000_000_000;
/// What the server acknowledged and the capture has not may still come, out of order.
const MISSED_NS: u64 = 100_000_000;
/// A session without a number.
const NONE: u32 = u32::MAX;
/// No FIN was seen.
const NO_FIN: u64 = u64::MAX;

/// Which sessions that were open before the start are copied from somewhere in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopt {
    /// None: only those whose SYN is seen.
    SynOnly,
    /// When a client speaks after nothing was said for so many nanoseconds, and all was acknowledged.
    Idle(u64),
    /// At a segment that begins with an HTTP/1 request.
    HttpBoundary,
}

/// What is copied, and how.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The server's address; `None`: any.
    pub server: Option<IpAddr>,
    /// The server's port.
    pub port: u16,
    /// Sessions that are open already.
    pub adopt: Adopt,
    /// How often each session is copied.
    pub copies: Copies,
    /// Of the choice of sessions.
    pub seed: u64,
    /// Who captures has left out sessions without copies but for SYN, FIN and RST: they are known by the server's SYN-ACK already.
    pub chosen_before: bool,
    /// Sessions that are copied at once, at most.
    pub most_sessions: usize,
    /// New ones a second, at most.
    pub most_new: Option<u64>,
    /// Bits a second that clients say, at most: while it is more, no new session is taken.
    pub most_bits: Option<u64>,
    /// The share of sessions that are copied grows from none to all for so many nanoseconds.
    pub ramp_ns: u64,
    /// A gap ends a session after so long.
    pub gap_ns: u64,
    /// Nothing was heard for so long: the session's end was missed.
    pub idle_ns: u64,
    /// Where copies go: sessions that come from there are copies that came back, and those that go there are copies.
    pub targets: [Option<IpAddr>; 2],
    /// The targets' sockets: their own sessions are not copied, which would be copied onto themselves.
    pub never: [Option<(IpAddr, u16)>; 2],
    /// Where copies come from: an address and how many bits of it.
    pub own: Option<(IpAddr, u8)>,
}

/// A session's number.
pub type Id = u32;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A session is copied from now on, so often.
    Opened {
        /// Its client's and its server's addresses and ports.
        flow: FlowKey,
        /// How often.
        copies: u32,
    },
    /// The client says this, behind what it said before.
    Said {
        /// Never empty.
        bytes: &'a [u8],
        /// Answers that the client had got when it said it: whole ones where messages can be told apart, else begun ones.
        answers: u32,
        /// Since the last of them had come, in nanoseconds.
        thought_ns: u64,
        /// Requests that have begun with these bytes, since the session's beginning.
        asked: u32,
    },
    /// The client asks something new, with this number.
    Asked {
        /// From 0.
        number: u32,
        /// What it begins with.
        line: Line,
        /// What is spoken.
        protocol: Protocol,
    },
    /// The request with this number is whole, or goes on.
    AskedWhole {
        /// From 0.
        number: u32,
        /// Its answer has no body.
        bodyless: bool,
    },
    /// The answer to this request holds this, of which [`Event::Answered`] tells how it stands.
    Holds {
        /// The request's number.
        number: u32,
        /// What it holds.
        part: Part<'a>,
    },
    /// The server answers this request.
    Answered {
        /// The request's number.
        number: u32,
        /// So many bytes more.
        bytes: u64,
        /// What the answer begins with, once that is known.
        line: Option<Line>,
        /// That was all of it.
        ended: bool,
    },
    /// The server speaks first: what it says before the client does is the answer to request 0, which nobody made.
    Greets,
    /// Which answers belong to which requests is not known any more.
    Unframed,
    /// Nothing can be told apart of what is spoken: it is copied, and not compared.
    Unread,
    /// The server says nothing more.
    ServerFinished,
    /// The client says nothing more.
    Finished {
        /// Whole answers that the server had given by then, of HTTP/1 and Redis.
        answers: u32,
    },
    /// The client tears the connection down.
    Reset {
        /// As above.
        answers: u32,
    },
    /// What the client says next is not known: the copies end here.
    Cut {
        /// Requests that are whole, of HTTP/1 and Redis.
        answers: u32,
    },
    /// The connection is over at the server: nothing more comes of this session.
    Over {
        /// Whole answers that the server gave, of HTTP/1 and Redis.
        answers: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    HalfOpen,
    /// The server said SYN and ACK.
    Answered,
    Waiting,
    Open,
    /// Not copied, but known.
    Left,
    Over,
}

#[derive(Debug)]
struct Session {
    flow: FlowKey,
    /// Another one whose flow has the same hash.
    twin: Id,
    phase: Phase,
    protocol: Protocol,
    /// Generic turns: the server has said something since the client began to ask.
    turned: bool,
    /// An answer has begun and not ended.
    answering: bool,
    /// Numbers of the server's bytes are known.
    server_known: bool,
    /// The client's bytes; of a session that waits, `next` is behind the last that was seen.
    client: Stream,
    /// Where the client's FIN stands.
    fin: u64,
    finished: bool,
    server_finished: bool,
    /// The number of the server's byte that is awaited.
    server_next: u32,
    asks: Framer,
    answers: Framer,
    asked: u32,
    /// Requests that are whole.
    whole: u32,
    answered: u32,
    /// Bits of the requests that wait for their answers, from the next one on: it has no body.
    bodyless: u32,
    /// When it was first seen.
    began_ns: u64,
    /// When the last answer ended.
    answer_ns: u64,
    /// When anything came last, in seconds.
    last_s: u32,
    /// There is one, and it is among those that are looked at.
    gap: bool,
    /// What the gap will be counted as.
    missed: bool,
    truncated: bool,
    /// Segments with urgent data that came early.
    early_urgent: u32,
    /// It was open before it was copied.
    adopted: bool,
    /// Which capture it comes from.
    origin: u8,
}

impl Session {
    /// Whole answers that the server has given, where they can be told apart.
    fn given(&self) -> u32 {
        if self.is_framed() { self.answered } else { 0 }
    }

    /// Whole requests, where they can be told apart.
    fn wanted(&self) -> u32 {
        if self.is_framed() { self.whole } else { 0 }
    }

    fn is_framed(&self) -> bool {
        matches!(self.protocol, Protocol::Http | Protocol::Redis)
    }
}

/// The hash is one already.
#[derive(Debug, Default, Clone, Copy)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// All sessions of a server.
#[derive(Debug)]
pub struct Table {
    rules: Rules,
    hasher: FlowHasher,
    by_flow: HashMap<u64, Id, BuildHasherDefault<Same>>,
    sessions: Slab<Session>,
    /// Numbers are used again: an entry whose session is not what it was is passed over.
    half_open: VecDeque<(u64, Id)>,
    /// Those that wait to be adopted, with when they began.
    strange: VecDeque<(u64, Id)>,
    lingering: VecDeque<(u64, FlowKey)>,
    /// When they are given up.
    gapped: Vec<(u64, FlowKey)>,
    copied: usize,
    /// No new session is copied.
    at_ceiling: bool,
    /// Bytes that wait for what precedes them.
    early: u64,
    /// Since the first segment.
    start_ns: Option<u64>,
    second: (u64, u64),
    bucket: (u64, f64),
    looked_ns: u64,
    origin: u8,
    /// Of segments.
    pub frames: Frames,
    /// Of sessions.
    pub counts: Sessions,
    /// Of what clients said.
    pub bytes: Bytes,
}

impl Table {
    /// One without sessions.
    pub fn new(rules: Rules) -> Table {
        Table {
            rules,
            hasher: FlowHasher::default(),
            by_flow: HashMap::default(),
            sessions: Slab::default(),
            half_open: VecDeque::new(),
            strange: VecDeque::new(),
            lingering: VecDeque::new(),
            gapped: Vec::new(),
            copied: 0,
            at_ceiling: false,
            early: 0,
            start_ns: None,
            second: (0, 0),
            bucket: (0, 0.0),
            looked_ns: 0,
            origin: 0,
            frames: Frames::default(),
            counts: Sessions::default(),
            bytes: Bytes::default(),
        }
    }

    /// Sessions that are copied at this moment.
    pub fn open(&self) -> usize {
        self.copied
    }

    /// From now on new sessions are copied, or not, because copying takes more than it may.
    pub fn hold_back(&mut self, at_ceiling: bool) {
        self.at_ceiling = at_ceiling;
    }

    /// Ends copies of so many sessions, because copying takes far more than it may.
    pub fn shed(&mut self, count: usize, emit: &mut impl FnMut(Id, Event<'_>)) {
        let open = |id: &Id| self.sessions.get(*id).is_some_and(|session| session.phase == Phase::Open);
        let chosen: Vec<Id> = self.sessions.numbers().into_iter().filter(open).take(count).collect();
        for id in chosen {
            self.counts.shed += 1;
            self.cut_short(id, emit);
        }
    }

    /// Segments come from this capture from now on, of several.
    pub fn comes_from(&mut self, origin: u8) {
        self.origin = origin;
    }

    /// Its capture says nothing more of a session: it ends as it stands.
    pub fn abandon(&mut self, flow: &FlowKey, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        if let Some(id) = self.find(flow) {
            self.leave(id, now_ns, emit);
        }
    }

    /// Nothing more comes of a capture's sessions.
    pub fn abandon_all(&mut self, origin: u8, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        for id in self.sessions.numbers() {
            if self.sessions.get(id).is_some_and(|session| session.origin == origin) {
                self.leave(id, now_ns, emit);
            }
        }
    }

    fn leave(&mut self, id: Id, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        match self.sessions.get(id).map(|session| session.phase) {
            Some(Phase::Open) => {
                self.counts.unforwarded += 1;
                self.cut(id, emit);
                self.end(id, now_ns, emit);
            }
            Some(Phase::Over) | None => {}
            Some(_) => self.forget(id, emit),
        }
    }

    /// Sessions that are known, of whatever kind.
    pub fn known(&self) -> usize {
        self.sessions.len()
    }

    fn find(&self, flow: &FlowKey) -> Option<Id> {
        let mut id = *self.by_flow.get(&self.hasher.hash_one(flow))?;
        while id != NONE {
            let session = self.sessions.get(id)?;
            if session.flow == *flow {
                return Some(id);
            }
            id = session.twin;
        }
        None
    }

    fn insert(&mut self, session: Session) -> Id {
        let hash = self.hasher.hash_one(session.flow);
        let before = self.by_flow.get(&hash).copied().unwrap_or(NONE);
        let id = self.sessions.insert(Session { twin: before, ..session });
        self.by_flow.insert(hash, id);
        id
    }

    fn remove(&mut self, id: Id) {
        let Some(session) = self.sessions.remove(id) else { return };
        let hash = self.hasher.hash_one(session.flow);
        let Some(first) = self.by_flow.get(&hash).copied() else { return };
        if first == id {
            match session.twin {
                NONE => self.by_flow.remove(&hash),
                twin => self.by_flow.insert(hash, twin),
            };
            return;
        }
        let mut at = first;
        while let Some(one) = self.sessions.get_mut(at) {
            if one.twin == id {
                one.twin = session.twin;
                return;
            }
            at = one.twin;
        }
    }

    /// From the client to the server, and whether this segment goes there; `None`: another server's.
    fn role(&self, segment: &Segment<'_>) -> Option<(FlowKey, bool)> {
        let flow = segment.flow;
        let server = |address: IpAddr| match self.rules.server {
            Some(server) => server == address,
            None => !self.rules.targets.contains(&Some(address)),
        };
        let to = flow.destination_port() == self.rules.port && server(flow.destination());
        let from = flow.source_port() == self.rules.port && server(flow.source());
        match (to, from) {
            (true, false) => Some((flow, true)),
            (false, true) => Some((flow.reversed(), false)),
            (false, false) => None,
            // A client whose port is the server's.
            (true, true) if self.find(&flow).is_some() => Some((flow, true)),
            (true, true) if self.find(&flow.reversed()).is_some() => Some((flow.reversed(), false)),
            (true, true) if segment.has(SYN) && segment.has(ACK) => Some((flow.reversed(), false)),
            (true, true) => Some((flow, true)),
        }
    }

    /// A segment was captured.
    pub fn segment(&mut self, segment: &Segment<'_>, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        self.start_ns.get_or_insert(now_ns);
        let Some((flow, to_server)) = self.role(segment) else {
            self.frames.other_flows += 1;
            return;
        };
        let (syn, ack) = (segment.has(SYN), segment.has(ACK));
        match to_server {
            true => {
                self.frames.from_clients += 1;
                self.frames.syns += u64::from(syn && !ack);
                self.frames.truncated += u64::from(segment.missing > 0);
            }
            false => {
                self.frames.from_server += 1;
                self.frames.syn_acks += u64::from(syn && ack);
            }
        }
        let mut found = self.find(&flow);
        if to_server && syn && !ack && !segment.has(RST) {
            // The same numbers: sent again. Others: addresses and ports are used again.
            match found.and_then(|id| self.sessions.get(id).map(|session| (id, session))) {
                Some((_, session))
                    if session
                        .client
                        .next()
                        .wrapping_sub(session.client.delivered() as u32)
                        .wrapping_sub(1)
                        == segment.seq
                        && session.phase != Phase::Waiting =>
                {
                    return;
                }
                Some((id, session)) => {
                    if session.phase == Phase::Open {
                        self.counts.replaced += 1;
                        self.cut(id, emit);
                    }
                    self.forget(id, emit);
                }
                None => {}
            }
            self.begin(flow, segment.seq.wrapping_add(1), Phase::HalfOpen, now_ns);
            return;
        }
        if found.is_none() {
            self.frames.syn_acks_alone += u64::from(!to_server && syn && ack);
            // What could be a session that is open, and not the end of one.
            let lives = to_server && ack && !syn && !segment.has(RST) && !segment.has(FIN);
            if !lives {
                self.frames.strays += 1;
                return;
            }
            found = Some(self.begin(flow, segment.seq, Phase::Waiting, now_ns));
        }
        let Some(id) = found else { return };
        match to_server {
            true => self.client_sent(id, segment, now_ns, emit),
            false => self.server_sent(id, segment, now_ns, emit),
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.last_s = (now_ns / 1_000_000_000) as u32;
        }
        if now_ns.wrapping_sub(self.looked_ns) > 10_000_000 {
            self.look(now_ns, emit);
        }
    }

    fn begin(&mut self, flow: FlowKey, seq: u32, phase: Phase, now_ns: u64) -> Id {
        self.counts.seen += 1;
        if phase == Phase::HalfOpen {
            // The oldest goes: a flood must not fill the memory.
            while self.half_open.len() >= MOST_HALF_OPEN {
                self.drop_half_open();
            }
        } else {
            self.counts.waiting += 1;
            while self.strange.len() >= MOST_STRANGE {
                self.drop_strange();
            }
        }
        let id = self.insert(Session {
            flow,
            twin: NONE,
            phase,
            protocol: Protocol::Unknown,
            turned: false,
            answering: false,
            server_known: false,
            client: Stream::begin(seq),
            fin: NO_FIN,
            finished: false,
            server_finished: false,
            server_next: 0,
            asks: Framer::default(),
            answers: Framer::default(),
            asked: 0,
            whole: 0,
            answered: 0,
            bodyless: 0,
            began_ns: now_ns,
            answer_ns: now_ns,
            last_s: (now_ns / 1_000_000_000) as u32,
            gap: false,
            missed: false,
            early_urgent: 0,
            truncated: false,
            adopted: false,
            origin: self.origin,
        });
        match phase {
            Phase::HalfOpen => self.half_open.push_back((now_ns, id)),
            _ => self.strange.push_back((now_ns, id)),
        }
        id
    }

    fn drop_strange(&mut self) {
        let Some((since, id)) = self.strange.pop_front() else { return };
        let is_it = self
            .sessions
            .get(id)
            .is_some_and(|session| session.phase == Phase::Waiting && session.began_ns == since);
        if is_it {
            self.counts.waiting -= 1;
            self.counts.midstream += 1;
            self.remove(id);
        }
    }

    fn drop_half_open(&mut self) {
        let Some((since, id)) = self.half_open.pop_front() else { return };
        let is_it = self.sessions.get(id).is_some_and(|session| {
            matches!(session.phase, Phase::HalfOpen | Phase::Answered) && session.began_ns == since
        });
        if is_it {
            self.counts.half_open += 1;
            self.remove(id);
        }
    }

    fn client_sent(
        &mut self,
        id: Id,
        segment: &Segment<'_>,
        now_ns: u64,
        emit: &mut impl FnMut(Id, Event<'_>),
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.phase {
            Phase::HalfOpen | Phase::Answered => {
                if segment.has(RST) {
                    self.counts.half_open += 1;
                    self.remove(id);
                    return;
                }
                // The handshake's third segment, or what follows it.
                if !segment.has(ACK) || session.client.position(segment.seq) < 0 {
                    return;
                }
                // Who invents its address does not know the server's number: such connections come about nowhere.
                if session.server_known && session.server_next != segment.ack {
                    let ahead = segment.ack.wrapping_sub(session.server_next) as i32;
                    if !(0..1 << 24).contains(&ahead) {
                        return;
                    }
                }
                self.open_or_leave(id, false, now_ns, emit);
            }
            Phase::Waiting => {
                let moment = self.is_moment(id, segment, now_ns);
                let Some(session) = self.sessions.get_mut(id) else { return };
                let end = segment.seq.wrapping_add(segment.length() as u32);
                if segment.has(RST) || segment.has(FIN) {
                    self.counts.waiting -= 1;
                    self.counts.midstream += 1;
                    session.phase = Phase::Over;
                    self.linger(id, now_ns);
                    return;
                }
                if moment {
                    session.client = Stream::begin(segment.seq);
                    self.counts.waiting -= 1;
                    self.open_or_leave(id, true, now_ns, emit);
                } else {
                    if session.client.position(end) > 0 || segment.length() > 0 && session.asked == 0 {
                        session.client = Stream::begin(end);
                    }
                    if segment.length() > 0 {
                        // Who speaks first after the server is at a boundary.
                        (session.turned, session.asked, session.answer_ns) = (false, 1, now_ns);
                    }
                    return;
                }
            }
            Phase::Open | Phase::Left | Phase::Over => {}
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.phase {
            Phase::Open => {}
            Phase::Left | Phase::Over => {
                if session.phase == Phase::Over {
                    return;
                }
                if segment.has(RST) {
                    session.phase = Phase::Over;
                    self.linger(id, now_ns);
                } else if segment.has(FIN) {
                    session.finished = true;
                    self.over_if_both_finished(id, now_ns);
                }
                return;
            }
            _ => return,
        }
        if segment.has(RST) {
            // Out of any window it is a blind one (RFC 5961).
            let at = session.client.position(segment.seq) - session.client.delivered() as i64;
            if (-(1 << 20)..1 << 24).contains(&at) {
                emit(id, Event::Reset { answers: session.given() });
                self.end(id, now_ns, emit);
            }
            return;
        }
        if segment.has(FIN) && session.fin == NO_FIN {
            let at = session.client.position(segment.seq) + segment.length() as i64;
            session.fin = u64::try_from(at).unwrap_or(NO_FIN);
        }
        if segment.length() > 0 {
            self.said(id, segment, now_ns, emit);
        }
        self.finish_if_said(id, now_ns, emit);
    }

    /// Is this the moment to adopt a session?
    fn is_moment(&self, id: Id, segment: &Segment<'_>, now_ns: u64) -> bool {
        let Some(session) = self.sessions.get(id) else { return false };
        if segment.payload.is_empty() || segment.missing > 0 {
            return false;
        }
        // Nothing that was seen is sent again, and nothing before it is missing.
        let in_order = session.asked == 0 || session.client.next() == segment.seq;
        match self.rules.adopt {
            Adopt::SynOnly => false,
            Adopt::Idle(quiet) => {
                let acknowledged = !session.server_known || session.server_next == segment.ack;
                in_order && acknowledged && now_ns.saturating_sub(session.answer_ns) >= quiet
            }
            Adopt::HttpBoundary => {
                in_order && (session.asked == 0 || session.turned) && is_http(segment.payload)
            }
        }
    }

    /// A session is there: is it copied?
    fn open_or_leave(&mut self, id: Id, adopted: bool, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        let Some(session) = self.sessions.get(id) else { return };
        let flow = session.flow;
        let hash = sample::session(self.rules.seed, &flow);
        let copies = self.rules.copies.of(hash);
        let within = |(own, bits): (IpAddr, u8), address: IpAddr| match (own, address) {
            (IpAddr::V4(own), IpAddr::V4(address)) => {
                (own.to_bits() ^ address.to_bits()).checked_shr(32 - u32::from(bits.min(32))).unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(own), IpAddr::V6(address)) => {
                (own.to_bits() ^ address.to_bits()).checked_shr(128 - u32::from(bits.min(128))).unwrap_or(0)
                    == 0
            }
            _ => false,
        };
        let client = flow.source();
        let passed = now_ns.saturating_sub(self.start_ns.unwrap_or(now_ns));
        // A hash of its own: which sessions come first is no matter of which are chosen.
        let place = (hash.rotate_left(32) >> 11) as f64 / (1u64 << 53) as f64;
        let ramped = passed < self.rules.ramp_ns && place >= passed as f64 / self.rules.ramp_ns as f64;
        let left = if self.rules.own.is_some_and(|own| within(own, client))
            || self.rules.targets.contains(&Some(client))
            || self.rules.never.contains(&Some((flow.destination(), flow.destination_port())))
        {
            Some(&mut self.counts.own)
        } else if copies == 0 {
            Some(&mut self.counts.sampled_out)
        } else if ramped {
            Some(&mut self.counts.ramped_out)
        } else if self.copied >= self.rules.most_sessions {
            Some(&mut self.counts.over_sessions)
        } else if self.at_ceiling {
            Some(&mut self.counts.over_ceiling)
        } else if is_over_rate(&self.rules, &mut self.second, &mut self.bucket, now_ns) {
            Some(&mut self.counts.over_rate)
        } else {
            None
        };
        if let Some(count) = left {
            *count += 1;
            if let Some(session) = self.sessions.get_mut(id) {
                session.phase = Phase::Left;
            }
            return;
        }
        self.copied += 1;
        match adopted {
            true => self.counts.adopted += 1,
            false => self.counts.copied += 1,
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.phase = Phase::Open;
            session.adopted = adopted;
            (session.turned, session.asked, session.answer_ns) = (false, 0, now_ns);
        }
        emit(id, Event::Opened { flow, copies });
    }

    /// The client's bytes.
    fn said(&mut self, id: Id, segment: &Segment<'_>, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.finished {
            return;
        }
        // A keepalive sends one byte again that was acknowledged long ago (RFC 9293 section 3.8.4): what it is does not matter.
        let keepalive = segment.length() <= 1
            && session.client.position(segment.seq) + 1 == session.client.delivered() as i64;
        if keepalive {
            self.bytes.repeated += segment.length() as u64;
            return;
        }
        // Where a client would begin, or may: TLS has keys of its own with each server.
        let begins =
            session.protocol == Protocol::Unknown || session.protocol == Protocol::Turns && session.turned;
        if begins && session.client.next() == segment.seq && is_tls(segment.payload) {
            match session.protocol == Protocol::Unknown {
                true => {
                    self.counts.tls += 1;
                    let count =
                        if session.adopted { &mut self.counts.adopted } else { &mut self.counts.copied };
                    *count -= 1;
                }
                // It had begun without (STARTTLS).
                false => self.counts.turned_tls += 1,
            }
            self.cut_short(id, emit);
            return;
        }
        let mut found = Found::default();
        let mut delivered = 0;
        let Session { client, asks, protocol, asked, whole, answered, bodyless, turned, answer_ns, .. } =
            session;
        let thought_ns = now_ns.saturating_sub(*answer_ns);
        let answers = *answered + u32::from(*protocol == Protocol::Turns && *turned);
        let before = client.early() as u64;
        let mut asking = Asking { protocol, asks, asked, whole, answered, bodyless, turned };
        let room = client.add(segment.seq, segment.payload, &mut found, |bytes| {
            delivered += bytes.len() as u64;
            asking.follow(bytes, &mut |event| emit(id, event));
            emit(id, Event::Said { bytes, answers, thought_ns, asked: *asking.asked });
        });
        self.early = self.early + session.client.early() as u64 - before;
        self.bytes.captured += found.new;
        self.bytes.delivered += delivered;
        self.bytes.repeated += found.repeated;
        self.bytes.different += found.different;
        self.bytes.wild += found.wild;
        self.bucket.1 -= delivered as f64;
        // Of a session that is not copied, or sent again, nothing is said otherwise than the server heard it.
        if segment.is_urgent() && found.new > 0 {
            match delivered > 0 {
                true => self.frames.urgent += 1,
                false => session.early_urgent = session.early_urgent.saturating_add(1),
            }
        }
        if session.client.early() == 0 {
            self.frames.urgent += u64::from(std::mem::take(&mut session.early_urgent));
        }
        session.truncated |= segment.missing > 0;
        if room.is_err() || self.early > MOST_EARLY && session.client.early() > 0 {
            self.counts.too_early += 1;
            self.cut_short(id, emit);
            return;
        }
        let gap = session.client.early() > 0 || session.truncated;
        if gap && !session.gap {
            session.gap = true;
            self.gapped.push((now_ns + self.rules.gap_ns, session.flow));
        } else if !gap && session.gap && !session.missed {
            session.gap = false;
            let flow = session.flow;
            self.gapped.retain(|(_, gapped)| *gapped != flow);
        }
    }

    fn finish_if_said(&mut self, id: Id, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.phase == Phase::Open && !session.finished && session.client.delivered() >= session.fin {
            session.finished = true;
            emit(id, Event::Finished { answers: session.given() });
        }
        let was_open = session.phase == Phase::Open;
        self.over_if_both_finished(id, now_ns);
        if let Some(session) =
            self.sessions.get(id).filter(|session| session.phase == Phase::Over && was_open)
        {
            emit(id, Event::Over { answers: session.given() });
        }
    }

    fn over_if_both_finished(&mut self, id: Id, now_ns: u64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.finished && session.server_finished && matches!(session.phase, Phase::Open | Phase::Left) {
            if session.phase == Phase::Open {
                self.copied -= 1;
                let early = session.client.give_up();
                self.bytes.behind_gaps += early;
                self.early -= early;
            }
            session.phase = Phase::Over;
            self.linger(id, now_ns);
        }
    }

    fn linger(&mut self, id: Id, now_ns: u64) {
        if let Some(session) = self.sessions.get(id) {
            self.lingering.push_back((now_ns, session.flow));
        }
    }

    /// The session is over at once.
    fn end(&mut self, id: Id, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.phase == Phase::Open {
            self.copied -= 1;
            let early = session.client.give_up();
            self.bytes.behind_gaps += early;
            self.early -= early;
            emit(id, Event::Over { answers: session.given() });
        }
        session.phase = Phase::Over;
        self.linger(id, now_ns);
    }

    /// The session is not copied any more, and goes on: it is known until it ends, so that it is counted once.
    fn cut_short(&mut self, id: Id, emit: &mut impl FnMut(Id, Event<'_>)) {
        self.cut(id, emit);
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.phase == Phase::Open {
            self.copied -= 1;
            let early = session.client.give_up();
            self.bytes.behind_gaps += early;
            self.early -= early;
            emit(id, Event::Over { answers: session.given() });
            session.phase = Phase::Left;
            session.finished |= session.fin != NO_FIN;
            session.gap = false;
        }
    }

    /// What the client says next is not known.
    fn cut(&mut self, id: Id, emit: &mut impl FnMut(Id, Event<'_>)) {
        if let Some(session) = self.sessions.get(id).filter(|session| session.phase == Phase::Open) {
            emit(id, Event::Cut { answers: session.wanted() });
        }
    }

    /// Nothing is known of it any more.
    fn forget(&mut self, id: Id, emit: &mut impl FnMut(Id, Event<'_>)) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.phase {
            Phase::HalfOpen | Phase::Answered => self.counts.half_open += 1,
            Phase::Waiting => {
                self.counts.waiting -= 1;
                self.counts.midstream += 1;
            }
            Phase::Open => {
                self.copied -= 1;
                let early = session.client.give_up();
                self.bytes.behind_gaps += early;
                self.early -= early;
                emit(id, Event::Over { answers: session.given() });
            }
            Phase::Left | Phase::Over => {}
        }
        self.remove(id);
    }

    fn server_sent(
        &mut self,
        id: Id,
        segment: &Segment<'_>,
        now_ns: u64,
        emit: &mut impl FnMut(Id, Event<'_>),
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let end = segment.seq.wrapping_add(segment.length() as u32);
        match session.phase {
            Phase::HalfOpen | Phase::Answered => {
                if segment.has(RST) {
                    self.counts.refused += 1;
                    self.remove(id);
                } else if segment.has(SYN) && segment.has(ACK) {
                    session.phase = Phase::Answered;
                    (session.server_next, session.server_known) = (segment.seq.wrapping_add(1), true);
                    let flow = session.flow;
                    let of = |rules: &Rules| rules.copies.of(sample::session(rules.seed, &flow));
                    if self.rules.chosen_before && of(&self.rules) == 0 {
                        self.open_or_leave(id, false, now_ns, emit);
                    }
                }
                return;
            }
            Phase::Waiting => {
                if segment.length() > 0 {
                    (session.turned, session.answer_ns) = (true, now_ns);
                    (session.server_next, session.server_known) = (end, true);
                }
                return;
            }
            Phase::Left => {
                session.server_finished |= segment.has(FIN) || segment.has(RST);
                session.finished |= segment.has(RST);
                self.over_if_both_finished(id, now_ns);
                return;
            }
            Phase::Over => return,
            Phase::Open => {}
        }
        if segment.has(ACK) {
            let missing = session.client.acknowledged(segment.ack);
            // Behind the last byte the FIN has a number, too.
            let fin = u64::from(session.fin != NO_FIN);
            if missing > fin && !session.missed {
                (session.missed, session.gap) = (true, true);
                self.gapped.push((now_ns + MISSED_NS, session.flow));
            } else if missing <= fin && session.missed {
                session.missed = false;
                session.gap = session.client.early() > 0 || session.truncated;
                if !session.gap {
                    let flow = session.flow;
                    self.gapped.retain(|(_, gapped)| *gapped != flow);
                }
            }
        }
        if segment.length() > 0 {
            if !session.server_known {
                (session.server_next, session.server_known) = (segment.seq, true);
            }
            let ahead = i64::from(segment.seq.wrapping_sub(session.server_next) as i32);
            let old = usize::try_from(-ahead).unwrap_or(0).min(segment.length());
            let new = segment.length() - old;
            if new > 0 {
                let bytes = segment.payload.get(old.min(segment.payload.len())..).unwrap_or_default();
                session.server_next = end;
                let unseen = u64::try_from(ahead).unwrap_or(0);
                answer(session, id, unseen, bytes, (new - bytes.len()) as u64, now_ns, emit);
            }
        }
        if segment.has(RST) {
            // What the client says after that never reaches anybody.
            emit(id, Event::ServerFinished);
            if !session.finished {
                session.finished = true;
                emit(id, Event::Finished { answers: session.given() });
            }
            self.end(id, now_ns, emit);
        } else if segment.has(FIN) {
            if !session.server_finished {
                emit(id, Event::ServerFinished);
            }
            session.server_finished = true;
            // An answer without a length ends here; any other one was never whole.
            let ends = session.answers.ends_with_connection();
            if session.answering && session.protocol == Protocol::Http && ends {
                session.answering = false;
                let number = session.answered;
                session.answered += 1;
                session.answer_ns = now_ns;
                emit(id, Event::Answered { number, bytes: 0, line: None, ended: true });
            }
            self.finish_if_said(id, now_ns, emit);
        }
    }

    /// Ends what waited too long.
    pub fn look(&mut self, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        self.looked_ns = now_ns;
        while self.half_open.front().is_some_and(|(since, _)| now_ns.saturating_sub(*since) > HALF_OPEN_NS) {
            self.drop_half_open();
        }
        while let Some((since, flow)) = self.lingering.front().copied() {
            if now_ns.saturating_sub(since) <= LINGER_NS {
                break;
            }
            self.lingering.pop_front();
            let over = |id: &Id| self.sessions.get(*id).is_some_and(|session| session.phase == Phase::Over);
            if let Some(id) = self.find(&flow).filter(over) {
                self.remove(id);
            }
        }
        let mut at = 0;
        while let Some((until_ns, flow)) = self.gapped.get(at).copied() {
            let session = self.find(&flow).and_then(|id| Some((id, self.sessions.get(id)?)));
            match session {
                Some((id, session)) if session.gap && session.phase == Phase::Open => {
                    if now_ns < until_ns {
                        at += 1;
                        continue;
                    }
                    match (session.truncated, session.missed) {
                        (true, _) => self.counts.truncated += 1,
                        (_, true) => self.counts.missed += 1,
                        _ => self.counts.gaps += 1,
                    }
                    self.cut_short(id, emit);
                }
                _ => {}
            }
            self.gapped.swap_remove(at);
        }
    }

    /// Ends sessions of which nothing was heard for long. It looks at each: call it seldom.
    pub fn sweep(&mut self, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        for id in self.sessions.numbers() {
            let Some(session) = self.sessions.get(id) else { continue };
            let silent_s = u64::from(((now_ns / 1_000_000_000) as u32).wrapping_sub(session.last_s));
            if silent_s > self.rules.idle_ns / 1_000_000_000 {
                if session.phase == Phase::Open {
                    self.counts.idle += 1;
                    emit(id, Event::Finished { answers: session.given() });
                }
                self.forget(id, emit);
            }
        }
    }

    /// Nothing more is captured: every session ends as it stands.
    pub fn finish(&mut self, now_ns: u64, emit: &mut impl FnMut(Id, Event<'_>)) {
        self.finish_those(|_| true, emit);
        self.looked_ns = now_ns;
    }

    /// Nothing more is captured by one of several captures: its sessions end as they stand.
    pub fn finish_from(&mut self, origin: u8, emit: &mut impl FnMut(Id, Event<'_>)) {
        self.finish_those(|session| session.origin == origin, emit);
    }

    fn finish_those(&mut self, which: impl Fn(&Session) -> bool, emit: &mut impl FnMut(Id, Event<'_>)) {
        for id in self.sessions.numbers() {
            let Some(session) = self.sessions.get(id).filter(|session| which(session)) else { continue };
            // With a hole in it, it would have ended there.
            if session.phase == Phase::Open && session.gap {
                match (session.truncated, session.missed) {
                    (true, _) => self.counts.truncated += 1,
                    (_, true) => self.counts.missed += 1,
                    _ => self.counts.gaps += 1,
                }
            }
            // Its client goes on: what it says next is not copied.
            if !session.finished {
                self.cut(id, emit);
            }
            self.forget(id, emit);
        }
    }
}

/// Are there too many new sessions, or bits?
fn is_over_rate(rules: &Rules, second: &mut (u64, u64), bucket: &mut (u64, f64), now_ns: u64) -> bool {
    if let Some(bits) = rules.most_bits {
        let per_second = bits as f64 / 8.0;
        let passed = now_ns.saturating_sub(bucket.0) as f64 / 1e9;
        *bucket = (now_ns, (bucket.1 + passed * per_second).min(per_second / 10.0));
        if bucket.1 < 0.0 {
            return true;
        }
    }
    if let Some(most) = rules.most_new {
        if second.0 != now_ns / 1_000_000_000 {
            *second = (now_ns / 1_000_000_000, 0);
        }
        if second.1 >= most {
            return true;
        }
        second.1 += 1;
    }
    false
}

/// What is known of a session's requests.
struct Asking<'a> {
    protocol: &'a mut Protocol,
    asks: &'a mut Framer,
    asked: &'a mut u32,
    whole: &'a mut u32,
    answered: &'a mut u32,
    bodyless: &'a mut u32,
    turned: &'a mut bool,
}

impl Asking<'_> {
    fn follow(&mut self, bytes: &[u8], emit: &mut impl FnMut(Event<'_>)) {
        if *self.protocol == Protocol::Unknown {
            *self.protocol = Protocol::of(bytes);
            *self.turned = false;
            if is_http2(bytes) {
                emit(Event::Unread);
            }
        }
        let mut rest = bytes;
        while !rest.is_empty() && *self.protocol != Protocol::Turns {
            if self.asks.is_idle() {
                emit(Event::Asked { number: *self.asked, line: Line::of(rest), protocol: *self.protocol });
                *self.asked += 1;
            }
            match self.asks.take(*self.protocol, rest, (false, false), &mut |_| ()) {
                Ok(took) => {
                    // 32 requests ahead of their answers are told apart; behind them a HEAD is taken for a GET.
                    let ahead = self.whole.saturating_sub(*self.answered);
                    if let Some(bit) =
                        took.head.filter(|head| head.bodyless).and_then(|_| 1u32.checked_shl(ahead))
                    {
                        *self.bodyless |= bit;
                    }
                    let bodyless = took.head.is_some_and(|head| head.bodyless);
                    emit(Event::AskedWhole { number: self.asked.saturating_sub(1), bodyless });
                    *self.whole += u32::from(took.ended);
                    rest = rest.get(took.bytes..).unwrap_or_default();
                }
                Err(_) => {
                    *self.protocol = Protocol::Turns;
                    *self.turned = true;
                    emit(Event::Unframed);
                }
            }
        }
        if *self.protocol == Protocol::Turns && !rest.is_empty() {
            if *self.asked == 0 || *self.turned {
                *self.answered = *self.asked;
                *self.turned = false;
                emit(Event::Asked { number: *self.asked, line: Line::default(), protocol: Protocol::Turns });
                *self.asked += 1;
            }
            emit(Event::AskedWhole { number: *self.asked - 1, bodyless: false });
        }
    }
}

/// The server's bytes: `unseen` that were not captured before them, and `missing` behind.
fn answer(
    session: &mut Session,
    id: Id,
    unseen: u64,
    bytes: &[u8],
    missing: u64,
    now_ns: u64,
    emit: &mut impl FnMut(Id, Event<'_>),
) {
    if session.protocol == Protocol::Unknown {
        (session.protocol, session.asked) = (Protocol::Turns, 1);
        emit(id, Event::Greets);
    }
    match session.protocol {
        Protocol::Unknown => {}
        Protocol::Turns => {
            session.turned = true;
            session.answer_ns = now_ns;
            if let Some(number) = session.asked.checked_sub(1) {
                for part in [Part::Hole(unseen), Part::Body(bytes), Part::Hole(missing)] {
                    if !matches!(part, Part::Hole(0) | Part::Body([])) {
                        emit(id, Event::Holds { number, part });
                    }
                }
                let bytes = unseen + bytes.len() as u64 + missing;
                emit(id, Event::Answered { number, bytes, line: None, ended: false });
            }
        }
        Protocol::Http | Protocol::Redis => {
            let followed = follow(session, id, unseen, bytes, missing, now_ns, emit);
            if followed.is_none() {
                session.protocol = Protocol::Turns;
                (session.turned, session.answering) = (true, false);
                emit(id, Event::Unframed);
            }
        }
    }
}

fn follow(
    session: &mut Session,
    id: Id,
    unseen: u64,
    bytes: &[u8],
    missing: u64,
    now_ns: u64,
    emit: &mut impl FnMut(Id, Event<'_>),
) -> Option<()> {
    let mut rest = bytes;
    let mut holes = [unseen, missing];
    while !rest.is_empty() || holes != [0, 0] {
        // Who answers what nobody asked is not followed.
        if session.answered >= session.asked {
            return None;
        }
        let hole = if holes[0] > 0 { 0 } else { 1 };
        let number = session.answered;
        let took = if holes[0] > 0 || rest.is_empty() {
            let (skipped, body) = session.answers.skip(std::mem::take(&mut holes[hole])).ok()?;
            if skipped.bytes == 0 {
                continue;
            }
            if body > 0 {
                emit(id, Event::Holds { number, part: Part::Hole(body) });
            }
            skipped
        } else {
            let bodyless = session.bodyless & 1 == 1;
            let tell = &mut |part: Part<'_>| emit(id, Event::Holds { number, part });
            let took = session.answers.take(session.protocol, rest, (true, bodyless), tell).ok()?;
            rest = rest.get(took.bytes..)?;
            took
        };
        let interim = took.head.is_some_and(|head| head.interim);
        if interim && took.ended {
            continue;
        }
        session.answering = !took.ended;
        let line = took.head.map(|head| head.line);
        if took.ended {
            session.answered += 1;
            session.bodyless >>= 1;
            session.answer_ns = now_ns;
        }
        emit(id, Event::Answered { number, bytes: took.bytes as u64, line, ended: took.ended });
    }
    Some(())
}

#[cfg(test)]
mod tests;
