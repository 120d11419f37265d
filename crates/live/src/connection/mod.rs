//! One TCP connection as its client sees it (RFC 9293): a state machine without a socket or a clock.
//!
//! Segments and times go in ([`Connection::receive`], [`Connection::on_time`]), segments come out
//! ([`Connection::poll`]). What is said is one stream known from the beginning, of which ever more is released
//! ([`Connection::say`]), in pieces whose bounds become those of segments; what is heard is taken in order
//! ([`Connection::take`]). `play.rs` knows what to say when; `run.rs` has the socket and the clock.

mod receiver;
mod rtt;
mod sender;

use crate::segment::{ACK, FIN, Options, PSH, RST, SYN, Segment};
use receiver::Receiver;
use rtt::Rtt;
use sender::{Piece, Sender};
use std::sync::Arc;

/// Of a clock that starts anywhere and never goes back.
pub type Nanos = u64;
/// A millisecond.
pub const MS: Nanos = 1_000_000;

/// What a peer takes that does not say otherwise, IPv4 and IPv6 (RFC 9293 section 3.7.1).
const DEFAULT_MSS: [u16; 2] = [536, 1220];
/// An option of time stamps, padded.
const TIMESTAMPS: u64 = 12;

/// What is offered and how patient it is.
#[derive(Debug, Clone)]
pub struct Config {
    /// First sequence number.
    pub isn: u32,
    /// Added to our time stamps.
    pub time_offset: u32,
    /// What the SYN offers.
    pub offer: Options,
    /// The most payload and options that the interface takes in one segment.
    pub most: u16,
    /// Bytes that we take at once.
    pub window: u32,
    /// Whether it goes over IPv6.
    pub ipv6: bool,
    /// Retransmissions of one segment before it is given up.
    pub retries: u32,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing was sent.
    Idle,
    /// The SYN was sent.
    SynSent,
    /// Both ends have agreed.
    Established,
    /// Over, in whatever way.
    Over(End),
}

/// How it came to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Both sides said that they have no more, and heard it of each other.
    Closed,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset it.
    ResetByPeer,
    /// We did.
    Reset,
    /// No answer, however often it was asked.
    Silent,
}

/// Counts of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments that were sent, retransmissions counted.
    pub segments_sent: u64,
    /// Segments that came.
    pub segments_received: u64,
    /// Of the sent: sent again.
    pub retransmissions: u64,
    /// Of those: after three duplicate acknowledgements (RFC 5681).
    pub fast_retransmits: u64,
    /// Times that nothing was acknowledged in time (RFC 6298).
    pub timeouts: u64,
    /// Times that a closed window was asked whether it has opened.
    pub window_probes: u64,
    /// Segments that came before their turn.
    pub out_of_order: u64,
    /// Bytes that came again.
    pub duplicate_bytes: u64,
    /// Segments that had no place in the connection.
    pub unacceptable: u64,
    /// The shortest round trip; `None` if none was timed.
    pub rtt_least_ns: Option<Nanos>,
    /// The mean round trip.
    pub rtt_mean_ns: Option<Nanos>,
    /// The longest round trip.
    pub rtt_most_ns: Option<Nanos>,
}

/// A TCP client without I/O: segments and times go in, segments come out.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    stream: Arc<[u8]>,
    state: State,
    sender: Sender,
    receiver: Receiver,
    rtt: Rtt,
    /// The peer's first sequence number.
    irs: u32,
    /// The shifts in use: ours, the peer's.
    scale: (u8, u8),
    sack: bool,
    /// The peer's last time stamp that was in order, if both use them (RFC 7323 section 4.3).
    recent: Option<u32>,
    syn: Option<(Nanos, u32)>,
    syn_wanted: bool,
    /// Acknowledgements owed: duplicates each, all others once.
    acks: u32,
    probe: bool,
    reset: Option<u32>,
    segments: (u64, u64),
    unacceptable: u64,
    pushed: bool,
}

impl Connection {
    /// A connection that will say (parts of) `stream`.
    pub fn new(config: Config, stream: Arc<[u8]>) -> Connection {
        Connection {
            config,
            stream,
            state: State::Idle,
            sender: Sender::new(),
            receiver: Receiver::default(),
            rtt: Rtt::default(),
            irs: 0,
            scale: (0, 0),
            sack: false,
            recent: None,
            syn: None,
            syn_wanted: false,
            acks: 0,
            probe: false,
            reset: None,
            segments: (0, 0),
            unacceptable: 0,
            pushed: false,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Begins with a SYN.
    pub fn connect(&mut self) {
        self.state = State::SynSent;
        self.syn_wanted = true;
    }

    /// The stream may be said up to `end`, which ends a segment.
    pub fn say(&mut self, end: u64, push: bool) {
        self.sender.say(end + 1, push);
    }

    /// After all that was released comes a FIN.
    pub fn finish(&mut self) {
        self.sender.end();
    }

    /// Ends it with a reset.
    pub fn abort(&mut self) {
        if self.state == State::Established {
            self.reset = Some(self.wire(self.sender.next()));
        }
        if !matches!(self.state, State::Over(_)) {
            self.state = State::Over(End::Reset);
        }
    }

    /// Everything released was acknowledged.
    pub fn all_said(&self) -> bool {
        self.sender.idle()
    }

    /// How many bytes of the stream were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.sender.una() - 1).min(self.stream.len() as u64)
    }

    /// The peer has no more to say.
    pub fn peer_finished(&self) -> bool {
        self.receiver.finished()
    }

    /// What was heard in order, and whether the peer pushed it.
    pub fn take(&mut self) -> (Vec<u8>, bool) {
        (self.receiver.take(), std::mem::take(&mut self.pushed))
    }

    /// The smoothed round trip.
    pub fn round_trip(&self) -> Option<Nanos> {
        self.rtt.smoothed()
    }

    /// Packets as long as `mtu` say do not get through (RFC 1191, RFC 8201).
    pub fn limit_path(&mut self, mtu: u32) {
        let headers: u32 = if self.config.ipv6 { 60 } else { 40 };
        // Less than every path takes is no path's limit, but an attack on us.
        let least = if self.config.ipv6 { 1280 } else { 576 };
        let timestamps = if self.recent.is_some() { TIMESTAMPS } else { 0 };
        self.sender.limit(u64::from(mtu.max(least) - headers) - timestamps);
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        Counts {
            segments_sent: self.segments.0,
            segments_received: self.segments.1,
            retransmissions: self.sender.retransmitted,
            fast_retransmits: self.sender.fast_retransmits,
            timeouts: self.sender.timeouts,
            window_probes: self.sender.probes,
            out_of_order: self.receiver.out_of_order,
            duplicate_bytes: self.receiver.duplicate_bytes,
            unacceptable: self.unacceptable,
            rtt_least_ns: self.rtt.least,
            rtt_mean_ns: self.rtt.mean(),
            rtt_most_ns: (self.rtt.samples > 0).then_some(self.rtt.most),
        }
    }

    /// When [`on_time`](Self::on_time) wants to be called.
    pub fn deadline(&self) -> Option<Nanos> {
        match self.state {
            State::SynSent => self.syn.map(|(at, _)| at + (self.rtt.timeout())),
            State::Established => self.sender.deadline(),
            State::Idle | State::Over(_) => None,
        }
    }

    /// Time went on.
    pub fn on_time(&mut self, now: Nanos) {
        match self.state {
            State::SynSent => {
                let Some((at, tries)) = self.syn else { return };
                if at + self.rtt.timeout() > now {
                    return;
                }
                if tries >= self.config.retries {
                    self.state = State::Over(End::Silent);
                    return;
                }
                self.syn = Some((now, tries + 1));
                self.rtt.back_off();
                self.syn_wanted = true;
            }
            State::Established => {
                self.probe |= self.sender.on_time(now, &mut self.rtt);
                if self.sender.tries > self.config.retries {
                    self.reset = Some(self.wire(self.sender.next()));
                    self.state = State::Over(End::Silent);
                }
            }
            State::Idle | State::Over(_) => {}
        }
    }

    /// Our sequence number of an offset.
    fn wire(&self, offset: u64) -> u32 {
        self.config.isn.wrapping_add(offset as u32)
    }

    /// The next segment to send, if there is one. Call it until there is none.
    pub fn poll(&mut self, now: Nanos) -> Option<Segment<'static>> {
        let segment = self.next_segment(now)?;
        self.segments.0 += 1;
        Some(segment)
    }

    fn next_segment(&mut self, now: Nanos) -> Option<Segment<'static>> {
        if let Some(seq) = self.reset.take() {
            let flags = if self.state == State::SynSent { RST } else { RST | ACK };
            return Some(Segment { seq, ..self.segment(flags, now) });
        }
        if self.syn_wanted && self.state == State::SynSent {
            self.syn_wanted = false;
            let tries = self.syn.map_or(0, |(_, tries)| tries);
            self.syn = Some((now, tries));
            let mut options = self.config.offer;
            options.timestamps = options.timestamps.map(|_| (self.time(now), 0));
            // The window of a SYN is never scaled (RFC 7323 section 2.2).
            let window = self.config.window.min(0xffff) as u16;
            return Some(Segment { seq: self.config.isn, flags: SYN, window, options, ..Segment::default() });
        }
        if !matches!(self.state, State::Established | State::Over(End::Closed)) {
            return None;
        }
        // Duplicates are what the peer counts: each goes by itself, before anything that carries the same number.
        if self.acks > 1 {
            self.acks -= 1;
            return Some(self.segment(ACK, now));
        }
        if self.state == State::Established
            && let Some(Piece { range, push, fin }) = self.sender.poll(now, &self.rtt)
        {
            self.acks = 0;
            let bytes = self.stream.get(range.start as usize - 1..range.end as usize - 1).unwrap_or_default();
            let payload = bytes.to_vec();
            let flags = ACK | if push { PSH } else { 0 } | if fin { FIN } else { 0 };
            let seq = self.wire(range.start);
            return Some(Segment { seq, payload: payload.into(), ..self.segment(flags, now) });
        }
        if std::mem::take(&mut self.probe) {
            let seq = self.wire(self.sender.una()).wrapping_sub(1);
            return Some(Segment { seq, ..self.segment(ACK, now) });
        }
        if self.acks > 0 {
            self.acks = 0;
            return Some(self.segment(ACK, now));
        }
        None
    }

    /// A segment without payload.
    fn segment(&self, flags: u8, now: Nanos) -> Segment<'static> {
        let mut options = Options::default();
        if let Some(recent) = self.recent {
            options.timestamps = Some((self.time(now), recent));
        }
        if self.sack && flags & RST == 0 {
            options.sacks = self.receiver.sacks(|offset| self.irs.wrapping_add(offset as u32));
        }
        Segment {
            seq: self.wire(self.sender.next()),
            ack: self.irs.wrapping_add(self.receiver.next() as u32),
            flags,
            window: (self.config.window >> self.scale.0).min(0xffff) as u16,
            options,
            ..Segment::default()
        }
    }

    /// Our clock for time stamps: milliseconds.
    fn time(&self, now: Nanos) -> u32 {
        ((now / MS) as u32).wrapping_add(self.config.time_offset)
    }

    /// A segment of the peer.
    pub fn receive(&mut self, segment: &Segment<'_>, now: Nanos) {
        self.segments.1 += 1;
        match self.state {
            State::SynSent => self.receive_in_syn_sent(segment, now),
            State::Established => self.receive_established(segment, now),
            // The peer did not get our last word, or is told once more.
            State::Over(End::Closed) if segment.has(FIN) => self.acks = 1,
            State::Idle | State::Over(_) => {}
        }
    }

    fn receive_in_syn_sent(&mut self, segment: &Segment<'_>, now: Nanos) {
        let right = segment.ack == self.config.isn.wrapping_add(1);
        if segment.has(RST) {
            if segment.has(ACK) && right {
                self.state = State::Over(End::Refused);
            }
            return;
        }
        if segment.has(ACK) && !right {
            // An old connection of the peer: it is told that this is none of ours (RFC 9293 section 3.10.7.3).
            self.unacceptable += 1;
            self.reset = Some(segment.ack);
            return;
        }
        if !(segment.has(SYN) && segment.has(ACK)) {
            self.unacceptable += 1;
            return;
        }
        if let Some((at, 0)) = self.syn {
            self.rtt.sample(now.saturating_sub(at));
        }
        self.irs = segment.seq;
        self.receiver.after_syn();
        let offer = &self.config.offer;
        if let (Some(ours), Some(theirs)) = (offer.window_scale, segment.options.window_scale) {
            self.scale = (ours, theirs);
        }
        self.sack = offer.sack_permitted && segment.options.sack_permitted;
        self.recent = offer.timestamps.and(segment.options.timestamps).map(|(value, _)| value);
        let theirs = segment.options.mss.unwrap_or(DEFAULT_MSS[usize::from(self.config.ipv6)]);
        let timestamps = if self.recent.is_some() { TIMESTAMPS } else { 0 };
        // A peer that states next to nothing would be sent headers only.
        let mss = u64::from(theirs.min(self.config.most).max(48)) - timestamps;
        self.sender.established(mss, segment.window.into());
        self.state = State::Established;
        self.acks = 1;
    }

    fn receive_established(&mut self, segment: &Segment<'_>, now: Nanos) {
        let relative =
            i64::from(segment.seq.wrapping_sub(self.irs.wrapping_add(self.receiver.next() as u32)) as i32);
        // Where it begins: in the peer's sequence space, from its SYN on.
        let start = self.receiver.next() as i64 + relative;
        let window = u64::from(self.config.window);
        if segment.has(RST) {
            // RFC 5961 section 3.2: only the exact number is believed; others are asked.
            if relative == 0 {
                self.state = State::Over(End::ResetByPeer);
            } else if relative > 0 && (relative as u64) < window {
                self.unacceptable += 1;
                self.acks = self.acks.max(1);
            }
            return;
        }
        // Protection against wrapped sequence numbers (RFC 7323 section 5.3).
        if let (Some(recent), Some((value, _))) = (self.recent, segment.options.timestamps)
            && (value.wrapping_sub(recent) as i32) < 0
        {
            self.unacceptable += 1;
            self.acks = self.acks.max(1);
            return;
        }
        // Old, beyond the window, or another SYN (RFC 5961 section 4.2): the answer is what we expect.
        if segment.has(SYN) || !segment.has(ACK) || relative >= window as i64 || start < 1 {
            self.unacceptable += u64::from(start >= 1);
            self.acks = self.acks.max(1);
            return;
        }
        if let (Some(_), Some((value, _))) = (self.recent, segment.options.timestamps)
            && relative <= 0
        {
            self.recent = Some(value);
        }
        self.take_acknowledgement(segment, now);
        let before = self.receiver.next();
        let in_order = self.receiver.receive(start as u64, &segment.payload, segment.has(FIN), window);
        if self.receiver.next() > before {
            self.pushed = segment.has(PSH) || segment.has(FIN);
            self.acks = self.acks.max(1);
        } else if !in_order {
            self.acks += 1;
        } else if segment.length() > 0 || relative < 0 {
            self.acks = self.acks.max(1);
        }
        if self.sender.finished() && self.receiver.finished() {
            self.state = State::Over(End::Closed);
        }
    }

    fn take_acknowledgement(&mut self, segment: &Segment<'_>, now: Nanos) {
        let una = self.sender.una();
        let ahead = i64::from(segment.ack.wrapping_sub(self.wire(una)) as i32);
        let ack = una as i64 + ahead;
        if ack > self.sender.next() as i64 {
            // Of what was never sent.
            self.unacceptable += 1;
            self.acks = self.acks.max(1);
            return;
        }
        if ahead < 0 {
            return;
        }
        let window = u64::from(segment.window) << self.scale.1;
        let wire_una = self.wire(una);
        let offset = |wire: u32| una.wrapping_add_signed(i64::from(wire.wrapping_sub(wire_una) as i32));
        let sack = self.sack;
        let blocks = segment.options.sacks;
        let blocks =
            blocks.as_slice().iter().filter(|_| sack).map(|(left, right)| (offset(*left), offset(*right)));
        let bare = segment.length() == 0;
        self.sender.acknowledged(ack as u64, window, blocks, bare, now, &mut self.rtt);
    }
}
