//! What an agent forwards: whole sessions, each from its handshake on. Nothing of a session goes to the clone before the client has
//! acknowledged the server's SYN-ACK, so that a flood of SYNs costs the way to the clone nothing.
//!
//! Nothing here waits. What is to be sent stands in a queue with a bound: above half of it no new session is begun, and a session
//! whose segment finds no room is given up, whole.

use super::record::{Account, MOST_PAYLOAD, Record};
use crate::funnel::Frames;
use crate::packet::{ACK, FIN, RST, SYN, Segment, URG};
use crate::sample::{self, Copies};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use wire::flow::{FlowHasher, FlowKey};

/// Connections that are half open, at most; the oldest one goes first.
const MOST_HALF_OPEN: usize = 65_536;
/// Sessions that are known, of whatever kind; beyond them a new one is left out.
const MOST_KNOWN: usize = 1 << 20;
/// Sessions that were open before the start, which are known only so that each is counted once.
const MOST_STRANGE: usize = 131_072;
const HALF_OPEN_NS: u64 = 30_000_000_000;
/// Late segments of a session that is over are forwarded for so long.
const LINGER_NS: u64 = 2_000_000_000;
/// A session of which nothing was heard for so long is forgotten.
const IDLE_S: u32 = 3600;
const SWEEP_NS: u64 = 10_000_000_000;
/// Records of one frame: so much that latency and overhead are small.
const CHUNK: usize = 60_000;

/// Which sessions are forwarded.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The server's address; `None`: any.
    pub server: Option<IpAddr>,
    /// The server's port.
    pub port: u16,
    /// Without a server's address: nobody at this address is one. It is the clone's.
    pub except: Option<IpAddr>,
    /// The share of sessions.
    pub share: Copies,
    /// Of the choice of sessions.
    pub seed: u64,
    /// Sessions that are forwarded at once, at most.
    pub most_sessions: usize,
    /// Bits a second: while more is forwarded, no session is begun.
    pub most_bits: Option<u64>,
    /// Bytes that wait to be sent, at most.
    pub most_queued: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// With the time of the SYN, and the SYN-ACK's number and time.
    HalfOpen(Option<(u32, u64)>),
    Forwarded,
    /// Not forwarded, but known.
    Left,
    /// Was forwarded: what comes late still is.
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Session {
    phase: Phase,
    /// The SYN's number; of a session that was open before, that of its first segment less one.
    syn: u32,
    began_ns: u64,
    /// Behind the last byte of the client that was forwarded.
    next: u32,
    last_s: u32,
    /// Of the client and of the server.
    finished: [bool; 2],
}

/// Sessions by what became of them here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forwards {
    /// Begun to be forwarded.
    pub begun: u64,
    /// Given up, because there was no room for a segment.
    pub shed: u64,
    /// Given up, because the connection to the clone broke.
    pub lost: u64,
    /// Records' bytes that were put in the queue,
    pub queued_bytes: u64,
    /// and those that were thrown away, because the connection broke.
    pub lost_bytes: u64,
}

/// Records that wait to be sent, in pieces that are a frame's each.
#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Queue {
    fn put(&mut self, record: &Record<'_>) -> usize {
        let open = self.pieces.back().is_some_and(|last| last.len() < CHUNK - MOST_PAYLOAD);
        if !open {
            self.pieces.push_back(Vec::new());
        }
        let Some(last) = self.pieces.back_mut() else { return 0 };
        let before = last.len();
        record.put(last);
        let length = last.len() - before;
        self.bytes += length;
        length
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.len();
        Some(piece)
    }
}

/// All sessions of a server, as an agent sees them.
#[derive(Debug)]
pub struct Forwarder {
    rules: Rules,
    sessions: HashMap<FlowKey, Session, FlowHasher>,
    half_open: VecDeque<(u64, FlowKey)>,
    lingering: VecDeque<(u64, FlowKey)>,
    strange: VecDeque<(u64, FlowKey)>,
    queue: Queue,
    /// There is a clone that takes what is forwarded, and it wants sessions that are open already.
    linked: Option<bool>,
    open: usize,
    held_back: bool,
    bucket: (u64, f64),
    swept_ns: u64,
    /// Since the clone's welcome, and before it.
    now: Account,
    before: Account,
    /// Of all the time.
    pub forwards: Forwards,
}

impl Forwarder {
    /// One that knows no session, and has no clone.
    pub fn new(rules: Rules) -> Forwarder {
        Forwarder {
            rules,
            sessions: HashMap::default(),
            half_open: VecDeque::new(),
            lingering: VecDeque::new(),
            strange: VecDeque::new(),
            queue: Queue::default(),
            linked: None,
            open: 0,
            held_back: false,
            bucket: (0, 0.0),
            swept_ns: 0,
            now: Account::default(),
            before: Account::default(),
            forwards: Forwards::default(),
        }
    }

    /// A clone takes what is forwarded from now on. What was counted before is not its affair.
    pub fn link(&mut self, adopts: bool) {
        self.linked = Some(adopts);
        self.before.add(&self.now);
        self.now = Account::default();
    }

    /// The clone is gone: its sessions are given up, whole.
    pub fn unlink(&mut self) {
        if self.linked.take().is_none() {
            return;
        }
        self.forwards.lost_bytes += self.queue.bytes as u64;
        self.queue = Queue::default();
        for session in self.sessions.values_mut() {
            if session.phase == Phase::Forwarded {
                session.phase = Phase::Left;
                self.forwards.lost += 1;
            }
        }
        self.open = 0;
    }

    /// From now on sessions are begun, or not, because capturing takes more than it may.
    pub fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Gives up so many sessions.
    pub fn shed(&mut self, count: usize) {
        let open = self.sessions.iter().filter(|(_, session)| session.phase == Phase::Forwarded);
        let chosen: Vec<FlowKey> = open.map(|(flow, _)| *flow).take(count).collect();
        chosen.into_iter().for_each(|flow| self.give_up(flow));
    }

    fn give_up(&mut self, flow: FlowKey) {
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        if session.phase == Phase::Forwarded {
            self.open -= 1;
        }
        session.phase = Phase::Left;
        self.forwards.shed += 1;
        // It has room in any case: the clone must not wait for what never comes.
        self.forwards.queued_bytes += self.queue.put(&Record::Shed(flow)) as u64;
    }

    /// Sessions that are forwarded at this moment.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.queue.bytes
    }

    /// Records that go into the next frame.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.queue.take()
    }

    /// Frames since the clone's welcome, which are counted by who reads them.
    pub fn frames(&mut self) -> &mut Frames {
        &mut self.now.frames
    }

    /// Frames that the kernel had no room for, since the start.
    pub fn dropped(&mut self, all: u64) {
        self.now.dropped = all.saturating_sub(self.before.dropped);
    }

    /// Since the start.
    pub fn account(&self) -> Account {
        let mut all = self.before;
        all.add(&self.now);
        all
    }

    /// Tells the clone how it stands.
    pub fn tell(&mut self) {
        if self.linked.is_some() {
            self.queue.put(&Record::Account(self.now));
        }
    }

    /// Nothing more is captured.
    pub fn finish(&mut self) {
        while !self.half_open.is_empty() {
            self.drop_half_open();
        }
        self.tell();
        // What is queued is all that there will be, and the clone ends what is open as it stands.
        if self.linked.take().is_some() {
            self.queue.put(&Record::Bye);
        }
    }

    /// From the client to the server, and whether this segment goes there; `None`: another server's.
    fn role(&self, segment: &Segment<'_>) -> Option<(FlowKey, bool)> {
        let flow = segment.flow;
        let server = |address: IpAddr| match self.rules.server {
            Some(server) => server == address,
            None => self.rules.except != Some(address),
        };
        let to = flow.destination_port() == self.rules.port && server(flow.destination());
        let from = flow.source_port() == self.rules.port && server(flow.source());
        match (to, from) {
            (true, false) => Some((flow, true)),
            (false, true) => Some((flow.reversed(), false)),
            (false, false) => None,
            // A client whose port is the server's.
            (true, true) if self.sessions.contains_key(&flow) => Some((flow, true)),
            (true, true) if self.sessions.contains_key(&flow.reversed()) => Some((flow.reversed(), false)),
            (true, true) if segment.has(SYN) && segment.has(ACK) => Some((flow.reversed(), false)),
            (true, true) => Some((flow, true)),
        }
    }

    /// A segment was captured, at this time.
    pub fn segment(&mut self, segment: &Segment<'_>, at_ns: u64) {
        let Some((flow, to_server)) = self.role(segment) else {
            self.now.frames.other_flows += 1;
            return;
        };
        let (syn, ack) = (segment.has(SYN), segment.has(ACK));
        let frames = &mut self.now.frames;
        match to_server {
            true => {
                frames.from_clients += 1;
                frames.syns += u64::from(syn && !ack);
                frames.truncated += u64::from(segment.missing > 0);
            }
            false => {
                frames.from_server += 1;
                frames.syn_acks += u64::from(syn && ack);
            }
        }
        if to_server && syn && !ack && !segment.has(RST) {
            return self.began(flow, segment.seq, at_ns);
        }
        let Some(session) = self.sessions.get_mut(&flow) else {
            self.now.frames.syn_acks_alone += u64::from(!to_server && syn && ack);
            let lives = to_server && ack && !syn && !segment.has(RST) && !segment.has(FIN);
            match lives {
                true => self.strange(flow, segment, at_ns),
                false => self.now.frames.strays += 1,
            }
            return;
        };
        session.last_s = (at_ns / 1_000_000_000) as u32;
        match session.phase {
            Phase::HalfOpen(answer) => self.half_opened(flow, (segment, to_server), answer, at_ns),
            Phase::Left => {
                session.finished[usize::from(!to_server)] |= segment.has(FIN);
                if segment.has(RST) || session.finished == [true; 2] {
                    self.linger(flow, at_ns);
                }
            }
            Phase::Forwarded | Phase::Over => self.forward(flow, (segment, to_server), at_ns),
        }
    }

    /// A SYN.
    fn began(&mut self, flow: FlowKey, seq: u32, at_ns: u64) {
        if let Some(session) = self.sessions.get(&flow) {
            // The same number: sent again. Another: addresses and ports are used again.
            if session.syn == seq && session.phase != Phase::Over {
                return;
            }
            self.forget(&flow);
        }
        if self.sessions.len() >= MOST_KNOWN {
            self.now.left.over_sessions += 1;
            return;
        }
        while self.half_open.len() >= MOST_HALF_OPEN {
            self.drop_half_open();
        }
        self.half_open.push_back((at_ns, flow));
        self.know(flow, Phase::HalfOpen(None), seq, at_ns);
    }

    fn know(&mut self, flow: FlowKey, phase: Phase, syn: u32, at_ns: u64) {
        let next = syn.wrapping_add(1);
        let last_s = (at_ns / 1_000_000_000) as u32;
        let session = Session { phase, syn, began_ns: at_ns, next, last_s, finished: [false; 2] };
        self.sessions.insert(flow, session);
    }

    fn forget(&mut self, flow: &FlowKey) {
        match self.sessions.remove(flow).map(|session| session.phase) {
            Some(Phase::HalfOpen(_)) => self.now.left.half_open += 1,
            Some(Phase::Forwarded) => self.open -= 1,
            Some(Phase::Left | Phase::Over) | None => {}
        }
    }

    fn drop_half_open(&mut self) {
        let Some((since, flow)) = self.half_open.pop_front() else { return };
        let is_it = self
            .sessions
            .get(&flow)
            .is_some_and(|session| matches!(session.phase, Phase::HalfOpen(_)) && session.began_ns == since);
        if is_it {
            self.forget(&flow);
        }
    }

    fn linger(&mut self, flow: FlowKey, at_ns: u64) {
        self.lingering.push_back((at_ns, flow));
    }

    /// A segment of a session whose handshake is not over.
    fn half_opened(
        &mut self,
        flow: FlowKey,
        (segment, to_server): (&Segment<'_>, bool),
        answer: Option<(u32, u64)>,
        at_ns: u64,
    ) {
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        if segment.has(RST) {
            let count = if to_server { &mut self.now.left.half_open } else { &mut self.now.left.refused };
            *count += 1;
            self.sessions.remove(&flow);
            return;
        }
        if !to_server {
            if segment.has(SYN) && segment.has(ACK) {
                session.phase = Phase::HalfOpen(Some((segment.seq, at_ns)));
            }
            return;
        }
        if !segment.has(ACK) || (segment.seq.wrapping_sub(session.next) as i32) < 0 {
            return;
        }
        // Who invents its address does not know the server's number: such connections come about nowhere.
        let ahead = answer.map(|(seq, _)| segment.ack.wrapping_sub(seq).wrapping_sub(1) as i32);
        if ahead.is_some_and(|ahead| !(0..1 << 24).contains(&ahead)) {
            return;
        }
        let (syn, began_ns) = (session.syn, session.began_ns);
        if !self.open_or_leave(flow, at_ns) {
            return;
        }
        let bare = Segment { flow, seq: syn, ack: 0, flags: SYN, payload: &[], missing: 0 };
        self.put(flow, &bare, began_ns);
        if let Some((seq, answered_ns)) = answer {
            let back = flow.reversed();
            let ack = syn.wrapping_add(1);
            let bare = Segment { flow: back, seq, ack, flags: SYN | ACK, payload: &[], missing: 0 };
            self.put(flow, &bare, answered_ns);
        }
        self.put(flow, segment, at_ns);
        self.ends(flow, (segment, true), at_ns);
    }

    /// A session that was open before the start.
    fn strange(&mut self, flow: FlowKey, segment: &Segment<'_>, at_ns: u64) {
        let adopts = self.linked == Some(true);
        // Where the clone adopts sessions, it does so at what a client says.
        if adopts && segment.payload.is_empty() {
            return;
        }
        while self.strange.len() >= MOST_STRANGE {
            let Some((since, oldest)) = self.strange.pop_front() else { break };
            let is_it = self
                .sessions
                .get(&oldest)
                .is_some_and(|session| session.phase == Phase::Left && session.began_ns == since);
            if is_it {
                self.sessions.remove(&oldest);
            }
        }
        self.know(flow, Phase::Left, segment.seq.wrapping_sub(1), at_ns);
        if !adopts {
            self.strange.push_back((at_ns, flow));
            self.now.left.midstream += 1;
        } else if self.open_or_leave(flow, at_ns) {
            self.put(flow, segment, at_ns);
        }
    }

    /// A session is there: is it forwarded?
    fn open_or_leave(&mut self, flow: FlowKey, at_ns: u64) -> bool {
        let hash = sample::session(self.rules.seed, &flow);
        let left = &mut self.now.left;
        let count = if self.rules.share.of(hash) == 0 {
            Some(&mut left.sampled_out)
        } else if self.linked.is_none() || self.queue.bytes > self.rules.most_queued / 2 {
            Some(&mut left.over_link)
        } else if self.open >= self.rules.most_sessions || self.sessions.len() >= MOST_KNOWN {
            Some(&mut left.over_sessions)
        } else if self.held_back {
            Some(&mut left.over_ceiling)
        } else if over_rate(self.rules.most_bits, &mut self.bucket, at_ns) {
            Some(&mut left.over_rate)
        } else {
            None
        };
        let phase = if count.is_none() { Phase::Forwarded } else { Phase::Left };
        match count {
            Some(count) => *count += 1,
            None => {
                self.open += 1;
                self.forwards.begun += 1;
            }
        }
        if let Some(session) = self.sessions.get_mut(&flow) {
            session.phase = phase;
        }
        phase == Phase::Forwarded
    }

    /// A segment of a session that is forwarded.
    fn forward(&mut self, flow: FlowKey, (segment, to_server): (&Segment<'_>, bool), at_ns: u64) {
        // What a client acknowledges tells the clone nothing: what it has heard stands in what it says.
        if to_server && segment.length() == 0 && segment.flags & (SYN | FIN | RST) == 0 {
            return;
        }
        self.put(flow, segment, at_ns);
        self.ends(flow, (segment, to_server), at_ns);
    }

    /// Is the session over with this segment?
    fn ends(&mut self, flow: FlowKey, (segment, to_server): (&Segment<'_>, bool), at_ns: u64) {
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        if session.phase != Phase::Forwarded {
            return;
        }
        // Out of any window it is a blind one (RFC 5961), which the clone passes over as well.
        let near = (-(1 << 20)..1 << 24).contains(&(segment.seq.wrapping_sub(session.next) as i32));
        if to_server && near {
            let end = segment.seq.wrapping_add(segment.length() as u32);
            if (end.wrapping_sub(session.next) as i32) > 0 {
                session.next = end;
            }
        }
        session.finished[usize::from(!to_server)] |= segment.has(FIN);
        if session.finished == [true; 2] || segment.has(RST) && (near || !to_server) {
            session.phase = Phase::Over;
            self.open -= 1;
            self.linger(flow, at_ns);
        }
    }

    /// Queues a segment; the session is given up if there is no room.
    fn put(&mut self, flow: FlowKey, segment: &Segment<'_>, at_ns: u64) {
        let known = self
            .sessions
            .get(&flow)
            .is_some_and(|session| matches!(session.phase, Phase::Forwarded | Phase::Over));
        if !known || self.linked.is_none() {
            return;
        }
        if self.queue.bytes + segment.payload.len() > self.rules.most_queued {
            return self.give_up(flow);
        }
        let pieces = segment.payload.len().div_ceil(MOST_PAYLOAD).max(1);
        for nth in 0..pieces {
            let from = nth * MOST_PAYLOAD;
            let rest = segment.payload.get(from..).unwrap_or_default();
            let (payload, last) = (rest.get(..MOST_PAYLOAD).unwrap_or(rest), nth + 1 == pieces);
            let piece = Segment {
                seq: segment.seq.wrapping_add(from as u32),
                payload,
                missing: if last { segment.missing } else { 0 },
                flags: if last { segment.flags } else { segment.flags & !(FIN | RST | URG) },
                ..*segment
            };
            let length = self.queue.put(&Record::Segment { at_ns, segment: piece }) as u64;
            self.forwards.queued_bytes += length;
            self.bucket.1 -= length as f64;
        }
    }

    /// Forgets what is over or never came about.
    pub fn look(&mut self, now_ns: u64) {
        while self.half_open.front().is_some_and(|(since, _)| now_ns.saturating_sub(*since) > HALF_OPEN_NS) {
            self.drop_half_open();
        }
        while let Some((since, flow)) = self.lingering.front().copied() {
            if now_ns.saturating_sub(since) <= LINGER_NS {
                break;
            }
            self.lingering.pop_front();
            let over = self.sessions.get(&flow).is_some_and(|session| {
                matches!(session.phase, Phase::Over | Phase::Left) && session.began_ns <= since
            });
            if over {
                self.sessions.remove(&flow);
            }
        }
        if now_ns.saturating_sub(self.swept_ns) < SWEEP_NS {
            return;
        }
        self.swept_ns = now_ns;
        let now_s = (now_ns / 1_000_000_000) as u32;
        let open = &mut self.open;
        self.sessions.retain(|_, session| {
            let silent = now_s.saturating_sub(session.last_s) > IDLE_S;
            let half_open = matches!(session.phase, Phase::HalfOpen(_));
            *open -= usize::from(silent && session.phase == Phase::Forwarded);
            !silent || half_open
        });
    }
}

/// Is more forwarded than may be?
fn over_rate(most_bits: Option<u64>, bucket: &mut (u64, f64), now_ns: u64) -> bool {
    let Some(bits) = most_bits else { return false };
    let per_second = bits as f64 / 8.0;
    let passed = now_ns.saturating_sub(bucket.0) as f64 / 1e9;
    *bucket = (now_ns, (bucket.1 + passed * per_second).min(per_second / 10.0));
    bucket.1 < 0.0
}

#[cfg(test)]
mod tests {
    use super::super::record::Reader;
    use super::*;
    use crate::funnel::Sessions;

    const MS: u64 = 1_000_000;

    fn rules() -> Rules {
        Rules {
            server: None,
            port: 80,
            except: None,
            share: Copies::new(1.0).unwrap(),
            seed: 1,
            most_sessions: 1000,
            most_bits: None,
            most_queued: 100_000,
        }
    }

    struct Tap {
        forwarder: Forwarder,
        now_ns: u64,
    }

    impl Tap {
        fn new(rules: Rules) -> Tap {
            let mut forwarder = Forwarder::new(rules);
            forwarder.link(false);
            Tap { forwarder, now_ns: 1 }
        }

        fn take(&mut self, client: u16, to_server: bool, flags: u8, (seq, ack): (u32, u32), payload: &[u8]) {
            let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
            let flow = FlowKey::new(a, b, 6, client, 80).unwrap();
            let flow = if to_server { flow } else { flow.reversed() };
            let segment = Segment { flow, seq, ack, flags, payload, missing: 0 };
            self.forwarder.frames().captured += 1;
            self.forwarder.segment(&segment, self.now_ns);
        }

        fn handshake(&mut self, client: u16) {
            self.take(client, true, SYN, (99, 0), b"");
            self.take(client, false, SYN | ACK, (499, 100), b"");
            self.take(client, true, ACK, (100, 500), b"");
        }

        /// What went into the queue, in words.
        fn said(&mut self) -> Vec<String> {
            let mut said = Vec::new();
            while let Some(piece) = self.forwarder.take() {
                let mut reader = Reader(&piece);
                while let Some(record) = reader.record().unwrap() {
                    said.push(match record {
                        Record::Segment { segment: s, .. } => {
                            let from = if s.flow.destination_port() == 80 { "client" } else { "server" };
                            format!("{from} {:02x} {} {}", s.flags, s.seq, s.payload.len())
                        }
                        Record::Shed(flow) => format!("shed {}", flow.source_port()),
                        Record::Account(_) => "account".to_owned(),
                        other => format!("{other:?}"),
                    });
                }
            }
            said
        }

        fn left(&self) -> Sessions {
            self.forwarder.account().left
        }
    }

    #[test]
    fn a_session_is_forwarded_from_its_handshake_on_and_a_syn_alone_is_not() {
        let mut tap = Tap::new(rules());
        for client in 1000..1200 {
            tap.take(client, true, SYN, (99, 0), b"");
            tap.take(client, false, SYN | ACK, (499, 100), b"");
        }
        assert_eq!(tap.said(), [""; 0]);
        tap.handshake(5000);
        assert_eq!(tap.said(), ["client 02 99 0", "server 12 499 0", "client 10 100 0"]);
        tap.take(5000, true, ACK, (100, 500), b"GET");
        tap.take(5000, false, ACK, (500, 103), b"200");
        // What the server acknowledges is told, what the client does is not.
        tap.take(5000, true, ACK, (103, 503), b"");
        tap.take(5000, false, ACK, (503, 103), b"");
        assert_eq!(tap.said(), ["client 10 100 3", "server 10 500 3", "server 10 503 0"]);
        tap.take(5000, true, ACK | FIN, (103, 503), b"");
        tap.take(5000, false, ACK | FIN, (503, 104), b"");
        assert_eq!(tap.said(), ["client 11 103 0", "server 11 503 0"]);
        assert_eq!((tap.forwarder.open(), tap.forwarder.forwards.begun), (0, 1));
        tap.now_ns += HALF_OPEN_NS + 2;
        tap.forwarder.look(tap.now_ns);
        assert_eq!((tap.left().half_open, tap.forwarder.sessions.len()), (200, 0));
        let f = tap.forwarder.account().frames;
        assert_eq!((f.captured, f.from_clients, f.from_server, f.syns), (409, 205, 204, 201));
    }

    #[test]
    fn who_does_not_know_the_servers_number_opens_nothing() {
        let mut tap = Tap::new(rules());
        tap.take(5000, true, SYN, (99, 0), b"");
        tap.take(5000, false, SYN | ACK, (499, 100), b"");
        tap.take(5000, true, ACK, (100, 77), b"GET");
        tap.take(5000, true, ACK, (90, 500), b"GET");
        assert_eq!(tap.said(), [""; 0]);
        tap.take(5000, false, RST | ACK, (500, 100), b"");
        tap.take(5001, true, SYN, (99, 0), b"");
        tap.take(5001, false, RST | ACK, (0, 100), b"");
        assert_eq!(tap.left(), Sessions { refused: 2, ..Sessions::default() });
    }

    #[test]
    fn a_long_segment_is_several_records_and_ends_once() {
        let mut tap = Tap::new(rules());
        tap.handshake(5000);
        tap.said();
        tap.take(5000, true, ACK | FIN, (100, 500), &[7; 70_000]);
        assert_eq!(tap.said(), ["client 10 100 32768", "client 10 32868 32768", "client 11 65636 4464"]);
    }

    #[test]
    fn above_half_no_session_is_begun_and_one_that_finds_no_room_is_given_up_whole() {
        let mut tap = Tap::new(rules());
        tap.handshake(5000);
        tap.handshake(5001);
        tap.take(5000, true, ACK, (100, 500), &[7; 60_000]);
        tap.handshake(5002);
        assert_eq!((tap.left().over_link, tap.forwarder.open()), (1, 2));
        tap.take(5001, true, ACK, (100, 500), &[7; 60_000]);
        // It is given up once, and nothing of it comes behind that, though there is room for it.
        tap.take(5001, true, ACK, (60_100, 500), b"more");
        tap.take(5000, true, ACK, (60_100, 500), b"more");
        assert_eq!((tap.forwarder.forwards.shed, tap.forwarder.open()), (1, 1));
        let said = tap.said();
        assert_eq!(said[8..], ["shed 5001", "client 10 60100 4"], "{said:?}");
        assert_eq!(tap.forwarder.queued(), 0);
        tap.handshake(5003);
        assert_eq!(tap.forwarder.open(), 2);
        tap.forwarder.shed(5);
        assert_eq!((tap.forwarder.open(), tap.forwarder.forwards.shed), (0, 3));
    }

    #[test]
    fn without_a_clone_sessions_are_counted_and_with_a_new_one_only_new_ones_are_forwarded() {
        let mut tap = Tap::new(rules());
        tap.handshake(5000);
        tap.forwarder.unlink();
        assert_eq!((tap.said(), tap.forwarder.forwards.lost), (vec![], 1));
        tap.take(5000, true, ACK, (100, 500), b"GET");
        tap.handshake(5001);
        assert_eq!((tap.said(), tap.left().over_link), (vec![], 1));
        tap.forwarder.link(false);
        tap.take(5000, true, ACK, (103, 500), b"GET");
        tap.take(5001, true, ACK, (100, 500), b"GET");
        tap.handshake(5002);
        assert_eq!(tap.said().len(), 3);
        // The new clone hears of what was since its welcome.
        tap.forwarder.dropped(7);
        assert_eq!((tap.forwarder.now.frames.captured, tap.forwarder.now.not_forwarded()), (5, 0));
        assert_eq!((tap.forwarder.account().frames.captured, tap.forwarder.account().dropped), (12, 7));
    }

    #[test]
    fn sessions_that_were_open_are_forwarded_if_the_clone_adopts_them() {
        let mut tap = Tap::new(rules());
        tap.take(5000, true, ACK, (100, 500), b"GET");
        tap.take(5000, true, ACK, (103, 500), b"GET");
        assert_eq!((tap.said(), tap.left().midstream), (vec![], 1));
        let mut tap = Tap::new(rules());
        tap.forwarder.link(true);
        tap.take(5000, true, ACK, (100, 500), b"");
        tap.take(5000, true, ACK, (100, 500), b"GET");
        tap.take(5000, false, ACK, (500, 103), b"200");
        assert_eq!(tap.said(), ["client 10 100 3", "server 10 500 3"]);
        assert_eq!(tap.left().midstream, 0);
    }

    #[test]
    fn shares_rates_and_numbers_leave_out_whole_sessions() {
        let mut tap = Tap::new(Rules { share: Copies::new(1.0).unwrap().of_share(0.5), ..rules() });
        (1000..1400).for_each(|client| {
            tap.handshake(client);
            tap.said();
        });
        let (out, begun) = (tap.left().sampled_out, tap.forwarder.forwards.begun);
        assert!(out + begun == 400 && (150..250).contains(&out), "{out}");
        let mut tap = Tap::new(Rules { most_bits: Some(80_000), ..rules() });
        for client in 1000..1100 {
            tap.now_ns += 10 * MS;
            tap.handshake(client);
            tap.take(client, true, ACK, (100, 500), &[7; 1000]);
            tap.said();
        }
        let begun = tap.forwarder.forwards.begun;
        // A second at 10 kB/s: each session takes some 1.2 kB.
        assert!((7..=10).contains(&begun), "{begun}");
        assert_eq!(tap.left().over_rate, 100 - begun);
        let mut tap = Tap::new(Rules { most_sessions: 3, ..rules() });
        (0..5).for_each(|client| tap.handshake(5000 + client));
        tap.forwarder.hold_back(true);
        assert_eq!((tap.left().over_sessions, tap.forwarder.open()), (2, 3));
    }

    #[test]
    fn a_flood_of_syns_keeps_no_more_than_its_bound() {
        let mut tap = Tap::new(rules());
        let server = IpAddr::from([10, 0, 0, 2]);
        for n in 0..200_000u32 {
            let flow = FlowKey::new(IpAddr::from(n.to_be_bytes()), server, 6, 7, 80).unwrap();
            let segment = Segment { flow, seq: n, ack: 0, flags: SYN, payload: &[], missing: 0 };
            tap.forwarder.segment(&segment, u64::from(n));
        }
        assert_eq!(tap.forwarder.sessions.len(), MOST_HALF_OPEN);
        assert_eq!((tap.said(), tap.left().half_open), (vec![], 200_000 - MOST_HALF_OPEN as u64));
        tap.forwarder.finish();
        assert_eq!(
            (tap.said(), tap.left().half_open),
            (vec!["account".to_owned(), "Bye".to_owned()], 200_000)
        );
    }
}
