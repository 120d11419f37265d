//! A session: the packets that were sent, and what each answer tells of them. No socket, no clock.

use crate::direction::{Directions, NoDirection, Numbers};
use crate::packet::{self, Answer};
use crate::time::{self, ErrorEstimate, Format};
use histogram::Histogram;

/// Packets of a session at most: 24 bytes are kept of each.
pub const MOST: u64 = 4_000_000;

/// What became of a datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// The first answer to a packet, in time.
    Answered,
    /// A further one.
    Duplicate,
    /// Later than answers are waited for: the packet counts as lost.
    Late,
    /// Of another host or port.
    OtherSource,
    /// Not as long as an answer.
    TooShort,
    /// It has another session's identifier.
    OtherSession,
    /// It answers a packet that was never sent.
    UnknownNumber,
    /// It says that the packet was sent at another time than it was.
    OtherTime,
}

/// Counts of datagrams that arrived and are no answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strangers {
    pub other_source: u64,
    pub too_short: u64,
    pub other_session: u64,
    pub unknown_number: u64,
    pub other_time: u64,
}

/// What one way took, by two clocks.
#[derive(Debug, Clone, Default)]
pub struct OneWay {
    /// Those that are not below zero.
    pub delay: Histogram,
    /// Those that are: the clocks are apart by more than the delay.
    pub negative: u64,
    /// The least of all.
    pub least_ns: Option<i64>,
    /// Differences of one packet's and the next one's, without sign (RFC 3393): what the clocks are apart does not matter there.
    pub variation: Histogram,
}

impl OneWay {
    fn record(&mut self, delay: i64) {
        self.least_ns = Some(self.least_ns.map_or(delay, |least| least.min(delay)));
        match u64::try_from(delay) {
            Ok(delay) => self.delay.record(delay),
            Err(_) => self.negative += 1,
        }
    }
}

/// What the reflector says of its clock, over all its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TheirClock {
    /// How it writes times.
    pub format: Format,
    /// Of PTP's format: it counts TAI, and this much was taken away. 0: what it writes is UTC.
    pub tai_ns: i64,
    /// In all answers.
    pub synchronised: bool,
    /// The most that it said. `None`: some answer did not say.
    pub error_ns: Option<u64>,
}

/// What answers tell.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Packets that were answered in time.
    pub answered: u64,
    /// Packets whose first answer came too late.
    pub late: u64,
    /// Further answers to packets that had been answered.
    pub duplicates: u64,
    /// First answers, in time, to packets that were sent before one that had been answered.
    pub reordered: u64,
    pub strangers: Strangers,
    /// In time, but with times that cannot be: none, later sent than received, or longer at the reflector than the whole round trip.
    pub implausible: u64,
    /// (T4 - T1) - (T3 - T2).
    pub round_trip: Histogram,
    /// Of packets that were sent one after the other, without sign.
    pub round_trip_variation: Histogram,
    /// T3 - T2.
    pub residence: Histogram,
    pub forward: OneWay,
    pub back: OneWay,
    pub clock: Option<TheirClock>,
    /// Of the packets, as the reflector received them: the least and the greatest.
    pub ttl: Option<(u8, u8)>,
    /// Answers with our session identifier, and those without any.
    pub session_echoed: u64,
    pub session_zero: u64,
    /// Answers that were not as long as the packet.
    pub other_length: u64,
    /// Answers whose padding was recognised, and those with padding at all.
    pub padding_recognised: u64,
    pub padding_back: u64,
}

/// What is kept of a packet.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at_ns: i64,
    wire: u64,
    /// The reflector's number in the first answer.
    own: Option<std::num::NonZeroU32>,
}

/// The delays of the packet that was answered before.
#[derive(Debug, Clone, Copy)]
struct Before {
    number: u32,
    round_trip: i64,
    forward: i64,
    back: i64,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    id: u16,
    wait_ns: u64,
    /// How far TAI is ahead of UTC, as the kernel knows it; 0 if it does not.
    tai_ns: i64,
    packet: Vec<u8>,
    sent: Vec<Sent>,
    numbers: Numbers,
    highest: Option<u32>,
    before: Option<Before>,
    pub figures: Figures,
}

impl Session {
    /// Of packets of `size` octets, whose answers are waited for so long.
    pub fn new(id: u16, size: usize, wait_ns: u64, tai_ns: i64) -> Session {
        Session {
            id,
            wait_ns,
            tai_ns,
            packet: packet::blank(size, id),
            sent: Vec::new(),
            numbers: Numbers::default(),
            highest: None,
            before: None,
            figures: Figures::default(),
        }
    }

    /// Packets that were sent.
    pub fn sent(&self) -> u64 {
        self.sent.len() as u64
    }

    /// When the last one was.
    pub fn last_sent_ns(&self) -> Option<i64> {
        self.sent.last().map(|sent| sent.at_ns)
    }

    /// The round trip of the answer before, if its times were plausible.
    pub fn last_round_trip_ns(&self) -> Option<u64> {
        self.before.and_then(|before| u64::try_from(before.round_trip).ok())
    }

    /// The next packet, sent at `at_ns`. `None`: there were enough.
    pub fn send(&mut self, at_ns: i64, error: ErrorEstimate) -> Option<&[u8]> {
        let number = u32::try_from(self.sent.len()).ok().filter(|number| u64::from(*number) < MOST)?;
        let wire = time::to_ntp(at_ns);
        packet::mark(&mut self.packet, number, wire, error.write());
        self.sent.push(Sent { at_ns, wire, own: None });
        Some(&self.packet)
    }

    /// The kernel did not take it.
    pub fn unsend(&mut self) {
        self.sent.pop();
    }

    /// A datagram of `length` bytes, of which `bytes` are the first, arrived.
    pub fn arrived(&mut self, bytes: &[u8], length: usize, from_reflector: bool, t4: i64) -> Arrived {
        let what = self.recognise(bytes, length, from_reflector, t4);
        let figures = &mut self.figures;
        let count = match what {
            Arrived::Answered => &mut figures.answered,
            Arrived::Duplicate => &mut figures.duplicates,
            Arrived::Late => &mut figures.late,
            Arrived::OtherSource => &mut figures.strangers.other_source,
            Arrived::TooShort => &mut figures.strangers.too_short,
            Arrived::OtherSession => &mut figures.strangers.other_session,
            Arrived::UnknownNumber => &mut figures.strangers.unknown_number,
            Arrived::OtherTime => &mut figures.strangers.other_time,
        };
        *count += 1;
        what
    }

    fn recognise(&mut self, bytes: &[u8], length: usize, from_reflector: bool, t4: i64) -> Arrived {
        if !from_reflector {
            return Arrived::OtherSource;
        }
        let Some(answer) = Answer::read(bytes) else { return Arrived::TooShort };
        // Reflectors of TWAMP-Light, and of RFC 8762 alone, leave it 0.
        if answer.session != self.id && answer.session != 0 {
            return Arrived::OtherSession;
        }
        let so_far = self.sent();
        let Some(sent) = self.sent.get_mut(answer.number as usize) else { return Arrived::UnknownNumber };
        if sent.wire != answer.t1 {
            return Arrived::OtherTime;
        }
        let own = answer.own_number;
        // One more, so that 0 is none; the greatest number cannot be a count of ours anyway.
        let kept = std::num::NonZeroU32::MIN.saturating_add(own);
        if let Some(before) = sent.own {
            self.numbers.again(answer.number, before.get() - 1, own.min(u32::MAX - 1), so_far);
            return Arrived::Duplicate;
        }
        sent.own = Some(kept);
        let t1 = sent.at_ns;
        self.numbers.first(answer.number, own, so_far);
        if t4.saturating_sub(t1) > i64::try_from(self.wait_ns).unwrap_or(i64::MAX) {
            return Arrived::Late;
        }
        if self.highest.is_some_and(|highest| answer.number < highest) {
            self.figures.reordered += 1;
        }
        self.highest = self.highest.max(Some(answer.number));
        self.facts(&answer, length);
        if self.times(&answer, t1, t4).is_none() {
            self.figures.implausible += 1;
        }
        Arrived::Answered
    }

    /// What an answer tells besides times.
    fn facts(&mut self, answer: &Answer, length: usize) {
        let figures = &mut self.figures;
        if let Some(ttl) = answer.ttl {
            let (least, most) = figures.ttl.unwrap_or((ttl, ttl));
            figures.ttl = Some((least.min(ttl), most.max(ttl)));
        }
        figures.session_echoed += u64::from(answer.session == self.id && self.id != 0);
        figures.session_zero += u64::from(answer.session == 0);
        figures.other_length += u64::from(length != self.packet.len());
        if let Some(padding) = answer.padding {
            figures.padding_back += 1;
            figures.padding_recognised += u64::from(padding.recognised);
        }
    }

    /// The delays of one answer. `None`: its times cannot be.
    fn times(&mut self, answer: &Answer, t1: i64, t4: i64) -> Option<()> {
        let format = answer.error.format;
        let t2 = time::read(answer.t2, format, t4)?;
        let t3 = time::read(answer.t3, format, t4)?;
        let residence = u64::try_from(t3.checked_sub(t2)?).ok()?;
        let round_trip = t4.checked_sub(t1)?.checked_sub_unsigned(residence)?;
        let elapsed = u64::try_from(round_trip).ok()?;
        let shift = self.clock(&answer.error, (t1, t4), (t2, t3));
        let forward = t2.checked_sub(shift)?.checked_sub(t1)?;
        let back = t4.checked_sub(t3.checked_sub(shift)?)?;
        self.figures.round_trip.record(elapsed);
        self.figures.residence.record(residence);
        self.figures.forward.record(forward);
        self.figures.back.record(back);
        let now = Before { number: answer.number, round_trip, forward, back };
        if let Some(before) = self.before.filter(|before| before.number.checked_add(1) == Some(now.number)) {
            self.figures.round_trip_variation.record(round_trip.abs_diff(before.round_trip));
            self.figures.forward.variation.record(forward.abs_diff(before.forward));
            self.figures.back.variation.record(back.abs_diff(before.back));
        }
        self.before = Some(now);
        Some(())
    }

    /// Takes in what an answer says of the reflector's clock; what is to be taken away from its times to have UTC.
    fn clock(&mut self, said: &ErrorEstimate, ours: (i64, i64), theirs: (i64, i64)) -> i64 {
        let known = self.figures.clock.get_or_insert_with(|| {
            // PTP counts TAI, but some write UTC: the one that is closer to our time.
            let middle = |(a, b): (i64, i64)| a / 2 + b / 2;
            let off = |tai: i64| middle(theirs).saturating_sub(tai).abs_diff(middle(ours));
            let is_tai = said.format == Format::Ptp && off(self.tai_ns) < off(0);
            TheirClock {
                format: said.format,
                tai_ns: if is_tai { self.tai_ns } else { 0 },
                synchronised: true,
                error_ns: Some(0),
            }
        });
        // Two formats in one session: nothing is known of such a clock.
        known.synchronised &= said.synchronised && said.format == known.format;
        known.error_ns = known.error_ns.zip(said.error_ns).map(|(most, error)| most.max(error));
        known.tai_ns
    }

    /// The reflector's numbers are its own count.
    pub fn is_stateful(&self) -> bool {
        self.numbers.is_stateful()
    }

    /// Where packets were lost; those whose answers came late are not among them.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn directions(&self) -> Result<Directions, NoDirection> {
        self.numbers.directions(self.sent())
    }
}

/// Why one-way delays are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// This host's clock is not kept to UTC.
    OursUnsynchronised,
    /// The reflector says that its clock is not.
    TheirsUnsynchronised,
    /// The reflector does not say by how much its clock may be off.
    NoErrorEstimate,
    /// Some, of this way or the other, are below zero.
    Negative,
    /// Both clocks together may be off by so much, in nanoseconds, which is no less than the median.
    ErrorTooLarge(u64),
}

/// By how much the delays of one way may be off. Where those of either way are below zero, some clock is off by more than it says, and
/// neither way is believed.
///
/// # Errors
/// They are not to be told.
pub fn one_way_error(way: &OneWay, figures: &Figures, ours_ns: Option<u64>) -> Result<u64, Withheld> {
    let ours = ours_ns.ok_or(Withheld::OursUnsynchronised)?;
    let theirs = figures.clock.filter(|clock| clock.synchronised).ok_or(Withheld::TheirsUnsynchronised)?;
    let error = theirs.error_ns.ok_or(Withheld::NoErrorEstimate)?.saturating_add(ours);
    if figures.forward.negative > 0 || figures.back.negative > 0 {
        return Err(Withheld::Negative);
    }
    if error >= way.delay.p50() {
        return Err(Withheld::ErrorTooLarge(error));
    }
    Ok(error)
}

#[cfg(test)]
mod tests;
