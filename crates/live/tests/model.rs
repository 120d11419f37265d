//! Whole connections in simulated time, against a peer written anew, over a network that loses, repeats and reorders.

use netdyno_live::connection::{Config, Connection, End, MS, Nanos, State};
use netdyno_live::segment::{ACK, FIN, Options, PSH, RST, SYN, Segment};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const MSS: usize = 500;

/// A server that takes everything, and says its own part once it has heard ours: as plainly as can be.
struct Peer {
    isn: u32,
    window: u32,
    /// Bytes of the client, by offset; `None` for its FIN.
    heard: BTreeMap<u64, u8>,
    client_isn: u32,
    next: u64,
    fin_at: Option<u64>,
    says: Vec<u8>,
    /// Acknowledged by the client: 0 with its SYN not yet, from 1 on bytes, then the FIN.
    una: u64,
    timer: Option<Nanos>,
    timestamps: bool,
    recent: u32,
}

impl Peer {
    fn segment(&self, at: u64, flags: u8, payload: Vec<u8>, now: Nanos) -> Segment<'static> {
        let mut options = Options::default();
        if self.timestamps {
            options.timestamps = Some(((now / MS) as u32, self.recent));
        }
        if flags & SYN != 0 {
            options.mss = Some(MSS as u16);
        }
        Segment {
            seq: self.isn.wrapping_add(at as u32),
            ack: self.client_isn.wrapping_add(1).wrapping_add(self.next as u32),
            flags,
            window: self.window as u16,
            options,
            payload: payload.into(),
        }
    }

    /// All that is due: everything not acknowledged, once what the client says is known.
    fn speak(&mut self, now: Nanos, out: &mut Vec<Segment<'static>>) {
        if self.una == 0 {
            out.push(self.segment(0, SYN | ACK, Vec::new(), now));
        } else if self.fin_at.is_some_and(|fin| self.next > fin) {
            let end = self.says.len() as u64 + 1;
            let mut at = self.una;
            // Four segments at a time.
            for _ in 0..4 {
                if at < end {
                    let to = (at + MSS as u64 - 20).min(end);
                    let bytes = self.says[at as usize - 1..to as usize - 1].to_vec();
                    out.push(self.segment(at, ACK | PSH, bytes, now));
                    at = to;
                } else if at == end {
                    out.push(self.segment(at, ACK | FIN, Vec::new(), now));
                    break;
                }
            }
        }
        self.timer = (self.una <= self.says.len() as u64 + 1).then_some(now + 300 * MS);
    }

    fn receive(&mut self, segment: &Segment<'_>, now: Nanos, out: &mut Vec<Segment<'static>>) {
        if segment.has(RST) {
            panic!("a reset");
        }
        if let Some((value, _)) = segment.options.timestamps {
            self.recent = value;
        }
        if segment.has(SYN) {
            self.client_isn = segment.seq;
            self.speak(now, out);
            return;
        }
        assert!(segment.payload.len() <= MSS, "more than the peer takes");
        let at = u64::from(segment.seq.wrapping_sub(self.client_isn.wrapping_add(1)));
        if at < 1 << 31 {
            for (nth, byte) in segment.payload.iter().enumerate() {
                let at = at + nth as u64;
                assert!(at < self.next + u64::from(self.window), "beyond the window");
                let known = self.heard.insert(at, *byte);
                assert!(known.is_none_or(|known| known == *byte), "other bytes than before");
            }
            if segment.has(FIN) {
                self.fin_at = Some(at + segment.payload.len() as u64);
            }
        }
        while self.heard.contains_key(&self.next) {
            self.next += 1;
        }
        if self.fin_at == Some(self.next) {
            self.next += 1;
        }
        let acked = u64::from(segment.ack.wrapping_sub(self.isn));
        let news = acked > self.una && acked <= self.says.len() as u64 + 2;
        if news {
            self.una = acked;
        }
        if segment.length() > 0 {
            out.push(self.segment(self.una, ACK, Vec::new(), now));
        }
        let finished = self.fin_at.is_some_and(|fin| self.next > fin);
        if news || (finished && self.timer.is_none()) {
            self.speak(now, out);
        }
    }
}

struct Network {
    seed: u64,
    loss: u64,
    duplicate: u64,
    jitter: u64,
    /// By arrival; the number keeps what arrives together in order.
    flying: BTreeMap<(Nanos, u64), (bool, Segment<'static>)>,
    count: u64,
}

impl Network {
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    fn carry(&mut self, to_client: bool, segment: Segment<'static>, now: Nanos) {
        let copies = match self.random() % 100 {
            roll if roll < self.loss => 0,
            roll if roll < self.loss + self.duplicate => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let at = now + 5 * MS + self.random() % (self.jitter * MS + 1);
            self.count += 1;
            self.flying.insert((at, self.count), (to_client, segment.clone()));
        }
    }
}

/// Runs a connection to its end; what the server heard, what the client heard, and the connection.
fn converse(
    said: &[u8],
    says: &[u8],
    piece: usize,
    offer: Options,
    window: u32,
    mut network: Network,
) -> (Vec<u8>, Vec<u8>, Connection) {
    let config = Config {
        isn: 0xffff_ff00,
        time_offset: 77,
        offer,
        most: 1460,
        window: 0xffff,
        ipv6: false,
        retries: 30,
    };
    let mut client = Connection::new(config, Arc::from(said));
    for end in (piece..said.len()).step_by(piece).chain([said.len()]) {
        client.say(end as u64, true);
    }
    client.finish();
    let mut peer = Peer {
        isn: 0xffff_fff0,
        window,
        heard: BTreeMap::new(),
        client_isn: 0,
        next: 0,
        fin_at: None,
        says: says.to_vec(),
        una: 0,
        timer: None,
        timestamps: offer.timestamps.is_some(),
        recent: 0,
    };
    let (mut now, mut heard, mut out) = (0, Vec::new(), Vec::new());
    client.connect();
    for _ in 0..200_000 {
        while let Some(segment) = client.poll(now) {
            network.carry(false, segment, now);
        }
        for segment in out.drain(..) {
            network.carry(true, segment, now);
        }
        heard.extend(client.take().0);
        if matches!(client.state(), State::Over(_)) && peer.una > says.len() as u64 + 1 {
            break;
        }
        let arrival = network.flying.first_key_value().map(|((at, _), _)| *at);
        let next = [arrival, client.deadline(), peer.timer].into_iter().flatten().min();
        let Some(next) = next else { break };
        now = now.max(next);
        if arrival.is_some_and(|at| at <= now)
            && let Some((_, (to_client, segment))) = network.flying.pop_first()
        {
            match to_client {
                true => client.receive(&segment, now),
                false => peer.receive(&segment, now, &mut out),
            }
        }
        if client.deadline().is_some_and(|at| at <= now) {
            client.on_time(now);
        }
        if peer.timer.is_some_and(|at| at <= now) {
            peer.speak(now, &mut out);
        }
    }
    (peer.heard.into_values().collect(), heard, client)
}

fn offers() -> impl Strategy<Value = Options> {
    (any::<bool>(), any::<bool>(), proptest::option::of(0u8..8)).prop_map(|(sack, timestamps, scale)| {
        Options {
            mss: Some(1460),
            sack_permitted: sack,
            timestamps: timestamps.then_some((0, 0)),
            window_scale: scale,
            ..Options::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn all_is_said_and_heard_over_any_network(
        said in proptest::collection::vec(any::<u8>(), 1..20_000),
        says in proptest::collection::vec(any::<u8>(), 0..8_000),
        piece in 1usize..3_000,
        offer in offers(),
        window in 600u32..20_000,
        seed in any::<u64>(),
        loss in 0u64..25,
        duplicate in 0u64..20,
        jitter in 0u64..30,
    ) {
        // Tiny pieces make long tests.
        let piece = piece.max(said.len() / 60 + 1);
        let network = Network { seed, loss, duplicate, jitter, flying: BTreeMap::new(), count: 0 };
        let (there, here, client) = converse(&said, &says, piece, offer, window, network);
        prop_assert_eq!(client.state(), State::Over(End::Closed));
        prop_assert!(there == said, "the server heard {} of {} bytes", there.len(), said.len());
        prop_assert!(here == says, "the client heard {} of {} bytes", here.len(), says.len());
        if loss == 0 && jitter == 0 && duplicate == 0 {
            prop_assert_eq!(client.counts().retransmissions, 0);
        }
    }

    /// Whatever a peer sends, nothing panics, and nothing is believed that cannot be.
    #[test]
    fn no_segments_make_it_panic(
        segments in proptest::collection::vec(
            (any::<u8>(), -3000i64..3000, -3000i64..3000, any::<u16>(), 0usize..1500, any::<u8>()), 0..60),
    ) {
        let config = Config {
            isn: 1000, time_offset: 0, offer: Options { mss: Some(1460), sack_permitted: true, timestamps: Some((0, 0)),
            window_scale: Some(7), ..Options::default() }, most: 1460, window: 0xffff, ipv6: false, retries: 3,
        };
        let mut client = Connection::new(config, Arc::from(vec![7u8; 5000]));
        client.say(5000, true);
        client.finish();
        client.connect();
        let syn = Segment { seq: 5000, ack: 1001, flags: SYN | ACK, window: 1000, options: Options { sack_permitted: true,
            timestamps: Some((1, 1)), mss: Some(100), ..Options::default() }, ..Segment::default() };
        let mut now = 0;
        client.poll(now);
        client.receive(&syn, now);
        for (flags, seq, ack, window, length, pause) in segments {
            let mut options = Options::default();
            options.sacks.push((1000u32.wrapping_add_signed(ack as i32), 1000u32.wrapping_add_signed(seq as i32)));
            let segment = Segment { seq: 5001u32.wrapping_add_signed(seq as i32), ack: 1001u32.wrapping_add_signed(ack as i32),
                flags, window, options, payload: vec![1; length].into() };
            client.receive(&segment, now);
            let mut sent = 0;
            while client.poll(now).is_some() {
                sent += 1;
                prop_assert!(sent < 1000, "it never stops");
            }
            client.take();
            now += u64::from(pause) * 10 * MS;
            client.on_time(now);
        }
        prop_assert!(client.acknowledged() <= 5000);
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let config = Config {
        isn: 1,
        time_offset: 0,
        offer: Options::default(),
        most: 1460,
        window: 0xffff,
        ipv6: false,
        retries: 3,
    };
    let mut client = Connection::new(config, Arc::from(&b""[..]));
    client.connect();
    let mut syns = Vec::new();
    let mut now = 0;
    while client.state() == State::SynSent {
        while client.poll(now).is_some() {
            syns.push(now / MS);
        }
        now = client.deadline().expect("a timer");
        client.on_time(now);
    }
    assert_eq!(client.state(), State::Over(End::Silent));
    assert_eq!(syns, [0, 1000, 3000, 7000]);
}
