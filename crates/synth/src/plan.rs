//! Plans a capture: who talks to whom, in how many frames of which length, and when.
//!
//! The mix is chosen, not measured; the published captures state only totals. In order:
//!
//! 1. **Conversations.** 7 % of the flows are one-way, the others come in pairs. Each conversation draws an
//!    application, an inside host (Pareto), a server (Pareto) and a client port nobody else has.
//! 2. **Frames a conversation.** Unanswered TCP is one SYN, DNS is a query and its answer; the others share what
//!    is left in proportion to lognormal weights (web: mu 2.2, sigma 1.5; the rest: mu 1.2, sigma 1.9).
//! 3. **Shape.** TCP opens, asks, sends full segments, acknowledgements and segments in between, and closes; the
//!    shares follow from the mean length that is needed. Short conversations are refused or broken off.
//! 4. **Lengths.** The in-between segments are stretched or shrunk until the byte totals are exact.
//! 5. **Times.** Conversations start anywhere; gaps follow a round-trip time where the direction turns, and are
//!    exponential around a lognormal mean where it does not.

use crate::application::{self, Mix, Speech};
use crate::conversation::{
    ACK, Conversation, FIN, FULL, LEAST_DATA, LEAST_FIRST_DATA, MINIMUM, PSH, RST, SYN, Slot, UDP_PAYLOAD,
    uses_timestamps,
};
use crate::frame;
use crate::hosts::{self, ClientPorts};
use crate::random::{For, Key, fraction};
use crate::{Error, Profile};

/// The whole capture, in the order of time.
#[derive(Debug)]
pub struct Plan {
    pub conversations: Vec<Conversation>,
    pub slots: Vec<Slot>,
}

/// Most frames one capture may have (a plan of 8 GB).
const MAX_FRAMES: u64 = 500_000_000;
/// Longest duration: a year.
const MAX_SECONDS: u64 = 366 * 86_400;

fn check(what: &'static str, asked: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&asked) { Ok(()) } else { Err(Error::OutOfRange { what, asked, least, most }) }
}

/// Plans the capture that `profile` describes.
pub fn plan(profile: &Profile, key: Key) -> Result<Plan, Error> {
    check("frames", profile.frames, 1, MAX_FRAMES)?;
    check("non_flow_frames", profile.non_flow_frames, 0, profile.frames)?;
    check("flows", profile.flows, 1, profile.frames - profile.non_flow_frames)?;
    check("hosts", u64::from(profile.hosts), 1, u64::from(hosts::MAX_CLIENTS))?;
    let longest = if profile.frames == 1 { 0 } else { MAX_SECONDS };
    check("duration (in seconds)", profile.duration.as_secs_f64().ceil() as u64, 0, longest)?;
    let duration = profile.duration.as_nanos() as u64; // At most a year, as just checked.

    let mut conversations = conversations(profile, key)?;
    let mut slots = Vec::with_capacity(profile.frames as usize);
    let flow_frames = profile.frames - profile.non_flow_frames;
    let flow_bytes = profile.bytes.saturating_sub(profile.non_flow_frames * MINIMUM as u64);
    check("web_frames", profile.web_frames, 0, flow_frames)?;
    check("web_bytes", profile.web_bytes, 0, flow_bytes)?;
    let (other_frames, other_bytes) = (flow_frames - profile.web_frames, flow_bytes - profile.web_bytes);
    for (web, frames, bytes) in
        [(true, profile.web_frames, profile.web_bytes), (false, other_frames, other_bytes)]
    {
        let group = Group { conversations: &conversations, web, key };
        let counts = group.frame_counts(frames)?;
        group.shape(&counts, bytes, duration, &mut slots)?;
    }
    non_flow(profile, key, duration, conversations.len() as u32, &mut slots);

    // Stable, so that the frames of a conversation stay in order even where they share a nanosecond.
    slots.sort_by_key(|slot| slot.time);
    if let Some(first) = slots.first_mut() {
        first.time = 0;
    }
    if let Some(last) = slots.last_mut() {
        last.time = duration;
    }
    for slot in &slots {
        if let Some(conversation) = conversations.get_mut(slot.source as usize) {
            let payload = frame::payload_length(conversation, slot);
            conversation.total[usize::from(slot.back)] += payload as u64;
        }
    }
    Ok(Plan { conversations, slots })
}

fn conversations(profile: &Profile, key: Key) -> Result<Vec<Conversation>, Error> {
    let mut one_way = profile.flows * 7 / 100;
    one_way += (profile.flows - one_way) % 2;
    let count = one_way + (profile.flows - one_way) / 2;
    let room = u64::from(profile.hosts) * u64::from(hosts::PORTS_A_CLIENT);
    check("flows", profile.flows, 1, profile.flows.min(profile.flows * room / count))?;
    check("applications", u64::from(profile.applications), 1, count.min(u64::from(application::MAX)))?;

    let mix = Mix::new(profile.applications);
    let applications = application::applications(profile.applications);
    let mut ports = ClientPorts::new(key, profile.hosts);
    let servers = (profile.flows / 25).clamp(4, u64::from(hosts::MAX_SERVERS)) as u32;
    let mut one_way_left = one_way;
    (0..count)
        .map(|number| {
            let application = mix.pick(key, number);
            let spoken = applications[application as usize];
            let wanted = key.skewed(For::Client, number, profile.hosts);
            let (client, client_port) = ports.take(wanted).ok_or(Error::OutOfRange {
                what: "flows",
                asked: profile.flows,
                least: 1,
                most: room,
            })?;
            // Few resolvers serve all names; each other application favours servers of its own.
            let server = match spoken.speech {
                Speech::Dns => key.skewed(For::Server, number, 3),
                _ => (key.skewed(For::Server, number, servers) + application * 17) % servers,
            };
            // Exactly `one_way` of `count`, each equally likely (selection sampling).
            let one_way = key.bits(For::OneWay, number) % (count - number) < one_way_left;
            one_way_left -= u64::from(one_way);
            let sequence = key.bits(For::Sequence, number);
            let clock = key.bits(For::Sequence, number | 1 << 63);
            Ok(Conversation {
                client,
                server: hosts::server_address(server),
                client_port,
                application: spoken,
                timestamps: uses_timestamps(key, client),
                one_way,
                number: number as u32,
                total: [0; 2],
                sent: [0; 2],
                sequence: [sequence as u32, (sequence >> 32) as u32],
                clock: [clock as u32, (clock >> 32) as u32],
                said: [0; 2],
            })
        })
        .collect()
}

/// The web conversations of a capture, or all others; each group has totals of its own.
struct Group<'a> {
    conversations: &'a [Conversation],
    web: bool,
    key: Key,
}

impl Group<'_> {
    fn members(&self) -> impl Iterator<Item = &Conversation> {
        self.conversations.iter().filter(|c| matches!(c.application.port, 80 | 443) == self.web)
    }

    /// How many frames each member has, in order.
    fn frame_counts(&self, frames: u64) -> Result<Vec<u32>, Error> {
        let what = if self.web { "web_frames" } else { "frames (other than web)" };
        let weight = |c: &Conversation| {
            let fixed = c.application.speech == Speech::Dns || (c.one_way && c.application.speech.is_tcp());
            let (mu, sigma) = if self.web { (2.2, 1.5) } else { (1.2, 1.9) };
            if fixed { 0.0 } else { self.key.lognormal(For::Weight, u64::from(c.number), mu, sigma) }
        };
        let least = self.members().map(|c| if c.one_way { 1 } else { 2 }).sum();
        let weights: f64 = self.members().map(weight).sum();
        check(what, frames, least, if weights > 0.0 { MAX_FRAMES } else { least })?;
        // What is beyond the least is dealt out along the running sum of weights: exact, whatever the rounding.
        let (extra, mut sum, mut dealt) = (frames - least, 0.0, 0);
        let mut counts: Vec<u32> = Vec::new();
        let mut last_weighted = None;
        for c in self.members() {
            let weight = weight(c);
            sum += weight;
            let upto = ((sum / weights * extra as f64) as u64).clamp(dealt, extra);
            let share = if weight > 0.0 { upto - dealt } else { 0 };
            dealt += share;
            if weight > 0.0 {
                last_weighted = Some(counts.len());
            }
            counts.push((share + if c.one_way { 1 } else { 2 }) as u32);
        }
        if let Some(last) = last_weighted {
            counts[last] += (extra - dealt) as u32;
        }
        Ok(counts)
    }

    /// Lays out every member's frames and brings their lengths to `bytes` in all.
    fn shape(&self, counts: &[u32], bytes: u64, duration: u64, slots: &mut Vec<Slot>) -> Result<(), Error> {
        let begin = slots.len();
        let mut lengths = Lengths::for_group(self, counts, bytes);
        let mut gaps = Vec::new();
        for (c, &count) in self.members().zip(counts) {
            let first = slots.len();
            match c.application.speech {
                Speech::Dns => dns(c, count, self.key, slots),
                Speech::OpaqueUdp => udp(c, count, self.key, &mut lengths, slots),
                Speech::Http | Speech::Tls | Speech::OpaqueTcp => {
                    tcp(c, count, self.key, &mut lengths, slots)
                }
            }
            set_times(self.key, c.number, duration, &mut slots[first..], &mut gaps);
        }
        lengths.fit(
            &mut slots[begin..],
            begin,
            bytes,
            if self.web { "web_bytes" } else { "bytes (other than web)" },
        )
    }
}

/// Lengths of frames that carry data: drawn first, then fitted to the total.
struct Lengths {
    /// Of the frames that are neither handshake nor close, how many are full and how many acknowledge only.
    full: f64,
    bare: f64,
    /// Longest that an in-between frame is drawn.
    longest: u16,
    /// Frames that may be stretched or shrunk, as (index, least length).
    elastic: Vec<(u32, u16)>,
    /// Full frames, shrunk only when that is not enough.
    filled: Vec<(u32, u16)>,
}

/// What the data frames of a conversation are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Full,
    Bare,
    Between,
}

impl Lengths {
    fn for_group(group: &Group<'_>, counts: &[u32], bytes: u64) -> Lengths {
        let (mut all, mut data) = (0u64, 0u64);
        for (c, &count) in group.members().zip(counts) {
            all += u64::from(count);
            data += match c.application.speech {
                Speech::Dns => 0,
                Speech::OpaqueUdp => u64::from(count),
                _ => u64::from(data_frames(count, c.one_way)),
            };
        }
        // Up to a third of the data frames are full, with half of all bare; where more is to be carried, three
        // of four that are not full are bare. Either share of full ones follows from the mean that is needed,
        // given what in-between frames are drawn from. It comes near both published mixes (643 bytes a frame:
        // 36 % full; 239 bytes: 9 %).
        let mean = bytes.saturating_sub((all - data) * 70) as f64 / data.max(1) as f64;
        let longest = if group.web { FULL - 1 } else { 500 };
        let (most, bare, between) = (f64::from(FULL), 66.0, f64::from(longest + 90) / 2.0);
        let few = (mean - (bare + between) / 2.0) / (most - between);
        let rest = 0.75 * bare + 0.25 * between;
        let many = (mean - rest) / (most - rest);
        let full = if few < 1.0 / 3.0 { few.max(0.0) } else { many.min(1.0) };
        Lengths {
            full,
            bare: f64::min(0.5, 0.75 * (1.0 - full)),
            longest,
            elastic: Vec::new(),
            filled: Vec::new(),
        }
    }

    fn kind(&self, draw: u64) -> Kind {
        if fraction(draw) < self.bare { Kind::Bare } else { self.data_kind(draw.rotate_left(32)) }
    }

    fn data_kind(&self, draw: u64) -> Kind {
        if fraction(draw) * (1.0 - self.bare) < self.full { Kind::Full } else { Kind::Between }
    }

    /// An acknowledgement needs data to acknowledge. One that is drawn too early goes behind a data frame that
    /// takes its place, so that of draws with chance p only p / (1 + p^2) of the frames are acknowledgements;
    /// this is the p that makes it `bare`.
    fn tcp_kind(&self, draw: u64) -> Kind {
        let chance = 2.0 * self.bare / (1.0 + libm::sqrt((1.0 - 4.0 * self.bare * self.bare).max(0.0)));
        if fraction(draw) < chance { Kind::Bare } else { self.data_kind(draw.rotate_left(32)) }
    }

    /// Draws the length of data frame `index`, at least `least`.
    fn draw(&mut self, kind: Kind, least: u16, index: usize, key: Key) -> u16 {
        match kind {
            Kind::Full => {
                self.filled.push((index as u32, least));
                FULL
            }
            Kind::Between | Kind::Bare => {
                self.elastic.push((index as u32, least));
                let span = f64::from(self.longest.saturating_sub(least));
                least + (span * key.unit(For::Length, index as u64)) as u16
            }
        }
    }

    /// Moves elastic lengths, all in the same proportion of their room, until `slots` add up to `bytes`.
    fn fit(&self, slots: &mut [Slot], begin: usize, bytes: u64, what: &'static str) -> Result<(), Error> {
        let sum: u64 = slots.iter().map(|slot| u64::from(slot.length)).sum();
        let grow = |slot: &Slot, _| u64::from(FULL - slot.length);
        let shrink = |slot: &Slot, least: u16| u64::from(slot.length - least);
        let room = |slots: &[Slot], list: &[(u32, u16)], of: &dyn Fn(&Slot, u16) -> u64| -> u64 {
            list.iter().map(|&(index, least)| of(&slots[index as usize - begin], least)).sum()
        };
        let up = room(slots, &self.elastic, &grow);
        let down = [room(slots, &self.elastic, &shrink), room(slots, &self.filled, &shrink)];
        check(what, bytes, sum - down[0] - down[1], sum + up)?;
        let mut shift = |list: &[(u32, u16)], amount: u64, room: u64, longer: bool| {
            if amount == 0 {
                return;
            }
            let mut left = amount;
            // First everyone's rounded-down part, then one byte each from those that have room.
            for pass in 0..2 {
                for &(index, least) in list {
                    let slot = &mut slots[index as usize - begin];
                    let own = if longer { grow(slot, least) } else { shrink(slot, least) };
                    let part = if pass == 0 { own * amount / room } else { own.min(left).min(1) };
                    left -= part;
                    slot.length = if longer { slot.length + part as u16 } else { slot.length - part as u16 };
                }
            }
        };
        if bytes >= sum {
            shift(&self.elastic, bytes - sum, up, true);
        } else {
            let first = (sum - bytes).min(down[0]);
            shift(&self.elastic, first, down[0], false);
            shift(&self.filled, sum - bytes - first, down[1], false);
        }
        Ok(())
    }
}

fn slot(c: &Conversation, length: u16, flags: u8, back: bool) -> Slot {
    Slot { time: 0, source: c.number, length, flags, back }
}

fn dns(c: &Conversation, count: u32, key: Key, slots: &mut Vec<Slot>) {
    let (query, answer) = crate::payload::dns_lengths(key, c.number);
    for (length, back) in [(query, false), (answer, true)].into_iter().take(count as usize) {
        slots.push(slot(c, UDP_PAYLOAD + length, 0, back));
    }
}

fn udp(c: &Conversation, count: u32, key: Key, lengths: &mut Lengths, slots: &mut Vec<Slot>) {
    for i in 0..count {
        let draw = key.bits(For::Shape, slots.len() as u64);
        // The first is the client's, the second the server's, then either.
        let back = !c.one_way && (i == 1 || (i > 1 && draw % 5 < 3));
        let kind = lengths.kind(draw);
        let length = match kind {
            Kind::Bare => MINIMUM + (draw % 32) as u16,
            _ => lengths.draw(kind, MINIMUM, slots.len(), key),
        };
        slots.push(slot(c, length, 0, back));
    }
}

/// Frames of a TCP conversation of `count` frames that are neither handshake nor close.
fn data_frames(count: u32, one_way: bool) -> u32 {
    match count {
        _ if one_way => 0,
        0..=4 => 0,
        5 | 6 => count - 4,
        _ => count - 6,
    }
}

fn tcp(c: &Conversation, count: u32, key: Key, lengths: &mut Lengths, slots: &mut Vec<Slot>) {
    let bare = frame::bare_length(c);
    let opening = frame::syn_length(c);
    if c.one_way {
        slots.extend((0..count).map(|_| slot(c, opening, SYN, false)));
        return;
    }
    slots.push(slot(c, opening, SYN, false));
    if count == 2 {
        slots.push(slot(c, MINIMUM, RST | ACK, true)); // Refused.
        return;
    }
    slots.push(slot(c, opening, SYN | ACK, true));
    if count == 3 {
        slots.push(slot(c, MINIMUM, RST, false)); // Half open.
        return;
    }
    slots.push(slot(c, bare, ACK, false));

    // Nine of ten conversations mostly receive; the others mostly send.
    let download = key.unit(For::Shape, u64::from(c.number) | 1 << 63) < 0.9;
    let mut spoken = [false; 2];
    let header = frame::header_length(c);
    // Who has sent data that is not acknowledged; and whether an acknowledgement was drawn before its data.
    let (mut unacknowledged, mut owed) = (None::<bool>, false);
    for i in 0..data_frames(count, false) {
        let draw = key.bits(For::Shape, slots.len() as u64);
        let mut kind = if std::mem::take(&mut owed) { Kind::Bare } else { lengths.tcp_kind(draw) };
        if kind == Kind::Bare && unacknowledged.is_none() {
            owed = true;
            kind = lengths.data_kind(key.bits(For::Shape, slots.len() as u64 | 1 << 62));
        }
        if let (Kind::Bare, Some(sender)) = (kind, unacknowledged) {
            unacknowledged = None;
            slots.push(slot(c, bare, ACK, !sender));
            continue;
        }
        // The client asks first.
        let along = kind == Kind::Full || draw % 5 < 3;
        let back = i > 0 && along == download;
        unacknowledged = Some(back);
        let least = if spoken[usize::from(back)] { LEAST_DATA } else { LEAST_FIRST_DATA };
        spoken[usize::from(back)] = true;
        let length = lengths.draw(kind, header + least, slots.len(), key);
        slots.push(slot(c, length, PSH | ACK, back));
    }

    match count {
        4..=6 => slots.push(slot(c, MINIMUM, RST, false)), // Broken off.
        _ => {
            let first = key.unit(For::Traits, u64::from(c.number) | 1 << 63) < 0.6;
            slots.push(slot(c, bare, FIN | ACK, first));
            slots.push(slot(c, bare, FIN | ACK, !first));
            slots.push(slot(c, bare, ACK, first));
        }
    }
}

/// Gives a conversation its times; `gaps` is scratch space.
fn set_times(key: Key, number: u32, duration: u64, slots: &mut [Slot], gaps: &mut Vec<f64>) {
    let draw = u64::from(number);
    // Round trips around 40 ms; a mean gap around 12 ms, some conversations a hundred times busier than others.
    let round_trip = key.lognormal(For::Pace, 2 * draw, -3.2, 0.8);
    let pace = key.lognormal(For::Pace, 2 * draw + 1, -4.4, 1.2);
    gaps.clear();
    let mut previous: Option<&Slot> = None;
    for (i, slot) in slots.iter().enumerate() {
        let wait = key.exponential(For::Gap, (draw << 32) | i as u64);
        gaps.push(match previous {
            None => 0.0,
            // The capture is taken next to the inside hosts: only an answer from outside takes a round trip.
            Some(p) if !p.back && slot.back && p.flags != ACK => round_trip * (0.9 + 0.1 * wait),
            Some(p) if p.back && !slot.back => 0.000_3 + 0.1 * pace * wait,
            Some(_) => pace * wait,
        });
        previous = Some(slot);
    }
    let duration = duration as f64;
    let span = gaps.iter().sum::<f64>() * 1e9;
    let fit = if span > 0.95 * duration { 0.95 * duration / span } else { 1.0 };
    let mut time = key.unit(For::Start, draw) * (duration - span * fit);
    for (slot, gap) in slots.iter_mut().zip(gaps) {
        time += *gap * 1e9 * fit;
        slot.time = (time as u64).min(duration as u64);
    }
}

/// ARP: requests and, 0.2 ms later, their replies.
fn non_flow(profile: &Profile, key: Key, duration: u64, first: u32, slots: &mut Vec<Slot>) {
    for i in 0..profile.non_flow_frames as u32 {
        let asked = key.unit(For::NonFlow, u64::from(i / 2)) * duration as f64;
        let back = i % 2 == 1;
        let time = (asked as u64 + if back { 200_000 } else { 0 }).min(duration);
        slots.push(Slot { time, source: first + i, length: MINIMUM, flags: 0, back });
    }
}
