//! The probe's thread: takes frames, counts them by flows, writes records that ended.

use super::sender::{self, Counts, Queue, Sender, Sent};
use super::source::{Ring, Source, Until};
use anyhow::Result;
use capture::Reader;
use clocks::Clock;
use flow::export::{Exporter, Message, Settings, Status};
use flow::packet::{Choice, Frame, NoPacket, Packet, Walk};
use flow::sampling::Flows;
use flow::table::{self, Over, Table};
use port::rx::{Kind, RxError, StampedBy};
use report::Collector;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::LinkType;

/// Frames are waited for so long at once.
const PATIENCE: Duration = Duration::from_millis(5);
/// Entries of the table that are looked at for each batch of frames: more than frames come in one, so that what ends keeps up.
const WORK: usize = 1024;
/// Frames of a capture between two looks at the clock, and at what ended.
const PIECE: usize = 256;
/// A message that is not full goes out after so long.
const LINGER_NS: u64 = 200_000_000;
/// A clock that is so far off was set; less is kept by NTP.
const STEP_NS: i64 = 50_000_000;

/// What was seen so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    pub frames: u64,
    pub bytes: u64,
    pub octets: u64,
    pub other: u64,
    pub malformed: u64,
    /// Frames of a link type in which nobody here knows where IP begins, and the first such type.
    pub unreadable: u64,
    pub unreadable_link: Option<LinkType>,
    /// Fragments in flows without ports, because their first one is not known.
    pub unattributed: u64,
    pub unsampled: u64,
    pub dropped: u64,
    /// It gave up on what had waited at its end: so long before that came what it looked at last.
    pub undrained_ns: u64,
    pub joined: u64,
    /// Of `frames` those that left.
    pub left: u64,
    pub clock_steps: u64,
    pub flows: u64,
    pub most_flows: u64,
    pub table_bytes: u64,
    pub table: table::Counters,
    pub unsayable: u64,
    /// Records whose times `sysUpTime` cannot say.
    pub untimely: u64,
    pub sent: Sent,
}

/// What it came to.
#[derive(Debug)]
pub struct Done {
    pub seen: Seen,
    pub lasted_ns: u64,
    pub collectors: Vec<Collector>,
    /// Why it ended before it was to.
    pub fault: Option<String>,
    /// There are collectors.
    pub exports: bool,
    /// All was counted to its end.
    pub is_whole: bool,
    /// All of the captures was read.
    pub is_read: bool,
}

/// The probe, before it runs.
pub struct Meter {
    pub source: Source,
    pub table: Table,
    pub choice: Choice,
    /// One frame in so many is looked at.
    pub sample: u32,
    pub random: bool,
    pub settings: Settings,
    /// What is exported begins with the first frame, which is of a capture.
    pub begins_with_frame: bool,
    /// Frames that are looked at.
    pub count: Option<u64>,
    /// It is to end.
    pub over: Arc<AtomicBool>,
}

/// A probe that runs.
pub struct Running {
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<Done>,
}

impl Running {
    pub fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    pub fn finish(self) -> Done {
        let seen = Arc::clone(&self.seen);
        self.thread.join().unwrap_or_else(|_| Done {
            seen: *seen.lock().unwrap_or_else(PoisonError::into_inner),
            lasted_ns: 0,
            collectors: Vec::new(),
            fault: Some("the probe's thread panicked: this is a defect of netdyno".to_owned()),
            exports: false,
            is_whole: false,
            is_read: false,
        })
    }
}

impl Meter {
    /// Begins, in a thread.
    pub fn start(self, sender: Sender) -> Result<Running> {
        let queue = sender.start()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let told = Arc::clone(&seen);
        let Meter { source, table, choice, sample, random, settings, begins_with_frame, count, over } = self;
        let refresh_ns = settings.refresh_ns;
        let flows = settings.context.flows;
        let began_ns = settings.context.began_ns;
        let exporter = Exporter::new(settings)?.without_templates();
        let work = move || {
            let mut probe = Probe {
                status_each_ns: refresh_ns.max(1_000_000_000),
                walk: Walk::new(choice),
                records: Records {
                    exporter,
                    queue,
                    began_ns,
                    unsent: [0; 3],
                    unsent_ns: [0; 2],
                    waits: false,
                },
                begins_with_frame,
                table,
                sample: Sample::new(sample, random),
                flows,
                count,
                over,
                told,
                seen: Seen::default(),
                lingers_since: 0,
                status_ns: 0,
                ignored_ns: [0; 2],
                now_ns: 0,
                is_read: false,
            };
            let start = Instant::now();
            let fault = match source {
                Source::Live { ring, longest } => probe.live(ring, longest),
                Source::Captures(readers) => probe.captures(readers),
            };
            probe.end(start, fault)
        };
        let thread = std::thread::Builder::new().name("probe".to_owned()).spawn(work)?;
        Ok(Running { seen, thread })
    }
}

/// Records on their way out.
struct Records {
    exporter: Exporter,
    queue: Queue,
    /// Times since the start of the exporter are times since then.
    began_ns: u64,
    /// What found no room in the queue.
    unsent: Counts,
    unsent_ns: [u64; 2],
    /// The queue is waited for: nothing is lost meanwhile.
    waits: bool,
}

impl Records {
    fn with(&mut self, now_ns: u64, write: impl FnOnce(&mut Exporter, &mut dyn FnMut(Message<'_>))) {
        let Records { exporter, queue, unsent, unsent_ns, waits, .. } = self;
        let before = unsent[0];
        write(exporter, &mut |message| queue.push(message, *waits, unsent));
        if unsent[0] > before {
            stretch(unsent_ns, now_ns);
        }
    }

    fn write(&mut self, over: &Over, now_ns: u64) {
        self.with(now_ns, |exporter, send| exporter.add(over, now_ns, send));
    }

    fn flush(&mut self, now_ns: u64) {
        self.with(now_ns, |exporter, send| exporter.flush(now_ns, send));
        self.queue.hand_over(self.waits, &mut self.unsent);
    }

    /// What was sent so far. What found no room in the queue is among what was not.
    fn sent(&self) -> Sent {
        let mut sent = self.queue.sent();
        sender::add(&mut sent.unsent, &self.unsent);
        sent
    }
}

/// What times since the start of the exporter count from, where the earliest time is known: a day before it, because captures are not
/// always in the order of their times; in whole seconds.
pub fn before(first_ns: u64) -> u64 {
    const DAY_NS: u64 = 86_400_000_000_000;
    first_ns.saturating_sub(DAY_NS) / 1_000_000_000 * 1_000_000_000
}

/// The same of an interface: in whole seconds, because messages of v9 have no others, and a message of the same second is not to be of
/// before the start.
pub fn just_before(now_ns: u64) -> u64 {
    (now_ns / 1_000_000_000).saturating_sub(1) * 1_000_000_000
}

/// So long at most what waits is taken when it is told to end; the largest ring is emptied in less.
const DRAINS_NS: u64 = 5_000_000_000;

/// All until `until_ns` was taken: how much of what had arrived until the end was not, where that is known or given up on.
fn undrained(ends_ns: u64, until_ns: u64, now_ns: u64) -> Option<u64> {
    (until_ns >= ends_ns || now_ns >= ends_ns.saturating_add(DRAINS_NS))
        .then(|| ends_ns.saturating_sub(until_ns))
}

/// The times of the first and the last of something; zero before it.
fn stretch(times_ns: &mut [u64; 2], at_ns: u64) {
    *times_ns = [if times_ns[0] == 0 { at_ns } else { times_ns[0] }, at_ns];
}

struct Probe {
    walk: Walk,
    table: Table,
    records: Records,
    begins_with_frame: bool,
    sample: Sample,
    /// Which flows are metered.
    flows: Flows,
    count: Option<u64>,
    over: Arc<AtomicBool>,
    told: Arc<Mutex<Seen>>,
    seen: Seen,
    /// When what had waited was sent last.
    lingers_since: u64,
    status_ns: u64,
    /// The probe says of itself how it does so often: as often as templates.
    status_each_ns: u64,
    /// When the first and the last frame was ignored.
    ignored_ns: [u64; 2],
    /// The time of the last frame, or now.
    now_ns: u64,
    /// All of the captures was read.
    is_read: bool,
}

impl Probe {
    fn live(&mut self, mut ring: Ring, longest: usize) -> Option<String> {
        let mut time = Time::start();
        let mut dropped_ns = 0;
        // When it was told to end: what had arrived until then is metered.
        let mut ends_ns = None;
        let mut packets = Vec::new();
        loop {
            let patience = if self.table.is_empty() { PATIENCE * 4 } else { PATIENCE };
            let fault = ring.advance(patience).err();
            let now_ns = time.now(&mut self.seen.clock_steps);
            // What waits is not later than what was taken last: no flow ends before its packets are counted.
            let mut until_ns = match ring.until() {
                Until::Behind(behind_ns) => now_ns.saturating_sub(behind_ns),
                Until::Monotonic(ns) => time.of_monotonic(ns),
            };
            if self.over.load(Relaxed) {
                ends_ns.get_or_insert(now_ns);
            }
            packets.clear();
            for frame in ring.frames() {
                if self.is_enough() {
                    break;
                }
                let at_ns = match frame.stamp.by {
                    StampedBy::Program => time.of_monotonic(frame.stamp.ns),
                    _ => {
                        until_ns = frame.stamp.ns.saturating_add_signed(-time.shift_ns);
                        until_ns
                    }
                };
                let segment = frame.offload.segment.map(|segment| segment.size);
                self.seen.joined += u64::from(segment.is_none() && frame.length > longest);
                let vlan = frame.tag.map(|(_, control)| control & 0xfff);
                let (link, bytes, length) = (LinkType::ETHERNET, frame.bytes, frame.length);
                let egress = frame.kind == Kind::Outgoing;
                packets.extend(self.packet(&Frame { link, bytes, length, at_ns, vlan, segment, egress }));
            }
            let Probe { table, records, now_ns: last_ns, .. } = self;
            table.add_all(&packets, &mut |over| records.write(over, *last_ns));
            // A system call, so not for each batch.
            if now_ns > dropped_ns + 20_000_000 || ends_ns.is_some() || fault.is_some() {
                dropped_ns = now_ns;
                let dropped = ring.dropped();
                if dropped > self.seen.dropped {
                    self.seen.dropped = dropped;
                    stretch(&mut self.ignored_ns, now_ns);
                }
            }
            let left_ns = ends_ns.and_then(|ends_ns| undrained(ends_ns, until_ns, now_ns));
            let over = self.is_enough() || left_ns.is_some();
            self.seen.undrained_ns = left_ns.filter(|_| !self.is_enough()).unwrap_or(0);
            self.now_ns = self.now_ns.max(until_ns);
            self.work(WORK);
            match fault {
                Some(RxError::Down(_)) | None => {}
                Some(fault) => return Some(fault.to_string()),
            }
            if over {
                return None;
            }
        }
    }

    fn captures(&mut self, mut readers: Vec<Reader>) -> Option<String> {
        self.records.waits = true;
        while let Some(mut reader) = readers.pop() {
            let mut left = PIECE;
            // The link type of the last frame that could be read.
            let mut known = None;
            loop {
                if self.is_enough() {
                    return None;
                }
                let record = match reader.next_record() {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(error) => return Some(error.to_string()),
                };
                if self.seen.frames == 0 && self.begins_with_frame {
                    self.records.began_ns = before(record.time_ns);
                    self.records.exporter.begin_at(self.records.began_ns);
                }
                self.now_ns = self.now_ns.max(record.time_ns);
                let frame = Frame {
                    link: record.link,
                    bytes: record.data,
                    length: (record.wire_len as usize).max(record.data.len()),
                    at_ns: record.time_ns,
                    vlan: None,
                    segment: None,
                    egress: false,
                };
                match known == Some(frame.link) || frame.link.is_readable() {
                    true => {
                        known = Some(frame.link);
                        self.add(&frame);
                    }
                    false => self.pass_over(&frame),
                }
                left -= 1;
                if left == 0 {
                    left = PIECE;
                    if self.over.load(Relaxed) {
                        return None;
                    }
                    self.work(usize::MAX);
                }
            }
        }
        self.is_read = true;
        None
    }

    fn is_enough(&self) -> bool {
        self.count.is_some_and(|count| self.seen.frames >= count)
    }

    fn add(&mut self, frame: &Frame<'_>) {
        if let Some(packet) = self.packet(frame) {
            let Probe { table, records, now_ns, .. } = self;
            table.add(&packet, &mut |over| records.write(over, *now_ns));
        }
    }

    /// Counts a frame of which it is not known where IP begins.
    fn pass_over(&mut self, frame: &Frame<'_>) {
        self.seen.frames += 1;
        self.seen.bytes += frame.length as u64;
        self.seen.unreadable += 1;
        self.seen.unreadable_link.get_or_insert(frame.link);
        stretch(&mut self.ignored_ns, frame.at_ns);
    }

    /// Counts a frame, and says what it counts for, if that is looked at and is IP.
    #[inline]
    fn packet(&mut self, frame: &Frame<'_>) -> Option<Packet> {
        self.seen.frames += 1;
        self.seen.bytes += frame.length as u64;
        self.seen.left += u64::from(frame.egress);
        if !self.sample.takes() {
            self.seen.unsampled += 1;
            return None;
        }
        match self.walk.packet(frame) {
            Ok(packet) if self.flows.take(&packet.key) => {
                self.seen.octets += packet.octets;
                return Some(packet);
            }
            Ok(_) => self.seen.unsampled += 1,
            Err(NoPacket::NotIp) => self.seen.other += 1,
            Err(NoPacket::Malformed) => {
                self.seen.malformed += 1;
                stretch(&mut self.ignored_ns, frame.at_ns);
            }
        }
        None
    }

    /// Ends records whose time is over, and sends what has waited long enough.
    fn work(&mut self, most: usize) {
        let now_ns = self.now_ns;
        let Probe { table, records, .. } = self;
        table.expire(now_ns, most, &mut |over| records.write(over, now_ns));
        if self.status_ns == 0 {
            self.status_ns = now_ns;
        }
        if now_ns >= self.status_ns.saturating_add(self.status_each_ns) {
            self.status_ns = now_ns;
            self.status();
        }
        if now_ns >= self.lingers_since + LINGER_NS {
            self.lingers_since = now_ns;
            self.records.flush(now_ns);
            self.tell();
        }
    }

    fn status(&mut self) {
        let status = Status {
            ignored_packets: self.seen.dropped + self.seen.malformed + self.seen.unreadable,
            ignored_octets: 0,
            ignored_ns: self.ignored_ns,
            unsent: self.records.sent().unsent,
            unsent_ns: self.records.unsent_ns,
        };
        let now_ns = self.now_ns;
        // What was metered before goes before it.
        self.records.with(now_ns, |exporter, send| exporter.flush(now_ns, send));
        self.records.queue.status(status, now_ns, self.records.began_ns);
    }

    fn tell(&mut self) {
        let seen = &mut self.seen;
        seen.flows = self.table.len() as u64;
        seen.most_flows = self.table.counters().most;
        seen.table_bytes = self.table.bytes() as u64;
        seen.table = *self.table.counters();
        let exported = self.records.exporter.counters();
        (seen.unsayable, seen.untimely) = (exported.unsayable, exported.untimely);
        seen.unattributed = self.walk.unattributed();
        seen.sent = self.records.sent();
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = *seen;
    }

    fn end(mut self, start: Instant, fault: Option<String>) -> Done {
        let lasted_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.tell();
        // What is still under way ends with the probe, and may take its time.
        self.records.waits = true;
        let now_ns = self.now_ns;
        let Probe { table, records, .. } = &mut self;
        table.expire(now_ns, usize::MAX, &mut |over| records.write(over, now_ns));
        table.flush(usize::MAX, &mut |over| records.write(over, now_ns));
        self.status();
        self.records.flush(now_ns);
        self.tell();
        let Records { queue, unsent, .. } = self.records;
        let exports = !queue.is_to_nobody();
        let (mut sent, collectors) = queue.finish();
        sender::add(&mut sent.unsent, &unsent);
        let seen = Seen { flows: 0, sent, ..self.seen };
        Done { seen, lasted_ns, collectors, fault, exports, is_whole: true, is_read: self.is_read }
    }
}

/// Which frames are looked at.
struct Sample {
    one_in: u32,
    /// Until the next.
    left: u32,
    random: Option<u64>,
}

impl Sample {
    fn new(one_in: u32, random: bool) -> Sample {
        let seed = super::super::shared::draw_seed() | 1;
        Sample { one_in: one_in.max(1), left: 1, random: random.then_some(seed) }
    }

    #[inline]
    fn takes(&mut self) -> bool {
        if self.one_in == 1 {
            return true;
        }
        if let Some(state) = &mut self.random {
            // xorshift64*: each frame by itself, with a chance of one in so many.
            *state ^= *state >> 12;
            *state ^= *state << 25;
            *state ^= *state >> 27;
            let drawn = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
            return (drawn * u64::from(self.one_in)) >> 32 == 0;
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = self.one_in;
            return true;
        }
        false
    }
}

/// The time since 1970 as it was when the probe began, and as it went on from there by a clock that nobody sets: so a clock
/// that is set ends no flow.
struct Time {
    ahead_ns: i64,
    /// How far the host's clock is ahead of that because it was set.
    shift_ns: i64,
    /// How far it is ahead because it is kept right, bit by bit.
    drift_ns: i64,
    drift_at_ns: u64,
}

impl Time {
    fn start() -> Time {
        let ahead_ns = clocks::ahead(Clock::Realtime, Clock::Monotonic).ns;
        Time { ahead_ns, shift_ns: 0, drift_ns: 0, drift_at_ns: clocks::monotonic() }
    }

    /// Now.
    fn now(&mut self, steps: &mut u64) -> u64 {
        let (real, monotonic) = (clocks::now(Clock::Realtime), clocks::monotonic());
        let shift = (real as i64).wrapping_sub(monotonic as i64).wrapping_sub(self.ahead_ns);
        if (shift - self.shift_ns).abs() > STEP_NS {
            self.shift_ns = shift;
            *steps += 1;
        }
        if monotonic > self.drift_at_ns + 1_000_000_000 {
            self.drift_at_ns = monotonic;
            let drift = clocks::ahead(Clock::Realtime, Clock::Monotonic).ns - self.ahead_ns - self.shift_ns;
            self.drift_ns = if drift.abs() > STEP_NS { self.drift_ns } else { drift };
        }
        real.saturating_add_signed(-self.shift_ns)
    }

    /// A time by CLOCK_MONOTONIC.
    fn of_monotonic(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ahead_ns + self.drift_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_at_the_end_is_taken_or_told() {
        let end = 100_000_000_000;
        // The ring is behind: it goes on.
        assert_eq!(undrained(end, end - 1, end + 1_000_000), None);
        assert_eq!(undrained(end, end, end + 1_000_000), Some(0));
        assert_eq!(undrained(end, end - 7, end + DRAINS_NS), Some(7));
    }
}
