//! The meter as its users see it: attach to an interface, look at the numbers, finish.

use crate::error::MeterError;
use crate::frames::Reader;
use crate::hardware::{Following, Hardware, Stamps};
use crate::layout::{self, Buckets, CLASSES, Stream, Totals};
use crate::loader::{self, Loaded, Stamper};
use crate::measurement::{Measurement, Snapshot, StreamStats, stream_gaps};
use crate::options::{Action, Mode, Options};
use crate::socket::{Socket, SocketError};
use crate::tracker::{Tracker, Wanted};
use bpf::attach::{self, WhyNot};
use bpf::{Hook, Link, ProgramError, zeroed};
use clocks::Clock;
use port::interface::Interface;
use port::packet::Target;
use port::rx::RxError;
use port::socket;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The word of a stream's record that is 0 while nothing was seen.
const NEXT: usize = std::mem::offset_of!(Stream, next) / 8;

/// A meter at work. Nothing of it outlives it or its process: links, sockets and memory are held by descriptors.
#[derive(Debug)]
pub struct Meter {
    source: Source,
    mode: Mode,
    reason: String,
    streams: u32,
    midstream: bool,
    /// The first so many streams have a histogram of the times between their arrivals.
    stream_gaps: u32,
    tags_unseen: bool,
    drops: bool,
    clock: Clock,
    /// When it began to count, by CLOCK_MONOTONIC.
    began_ns: u64,
    _promiscuous: Option<OwnedFd>,
}

#[derive(Debug)]
enum Source {
    Kernel { tables: Arc<Loaded>, link: Option<Link>, following: Option<Following>, frames: Option<Reader> },
    Socket(Socket),
}

impl Source {
    /// Whether VLAN tags that were taken out of frames are counted by a program.
    fn counts_tags(&self) -> bool {
        matches!(self, Source::Kernel { tables, .. } if tables.counts_tags)
    }

    /// Of the hardware; the kernel's program counts how many there were.
    fn stamps(&self) -> Option<Stamps> {
        match self {
            Source::Kernel { following, .. } => following.as_ref().map(|following| following.stamps(0)),
            Source::Socket(socket) => socket.stamps(),
        }
    }
}

impl Source {
    /// Hands copies of frames to who wants them, from now on. What came since the program was attached waits in its rings.
    fn hand_over(&mut self, options: &Options) -> Result<(), MeterError> {
        let Source::Kernel { tables, frames, .. } = self else { return Ok(()) };
        let rings = tables.frames.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(capture), Some((rings, switch))) = (&options.capture, rings) {
            let failed =
                |error| ProgramError::System { what: "starting a thread for captured frames", error };
            *frames = Some(Reader::start(rings, switch, capture).map_err(failed)?);
        }
        Ok(())
    }
}

impl Meter {
    /// Does this kernel load the program that counts? Nothing is attached.
    /// If only for older kernels than this one, that is said.
    ///
    /// # Errors
    /// That it loads none of them, with the verifier's words.
    pub fn loads() -> Result<Option<String>, MeterError> {
        let options = Options { streams: 1, stream_histograms: 0, ..Options::default() };
        Ok(loader::load(&options, Stamper::Software)?.refused)
    }

    /// Starts to count on `interface` of the calling thread's network namespace. Afterwards the meter works from any
    /// thread.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program, or the interface is not there.
    pub fn attach(interface: &str, options: &Options) -> Result<Meter, MeterError> {
        if !(1..=1 << 24).contains(&options.streams) {
            return Err(MeterError::Options(format!(
                "{} streams: 1 to 16777216 are possible",
                options.streams
            )));
        }
        if options.arrivals >= u32::MAX as usize {
            return Err(MeterError::Options(format!(
                "{} arrivals: at most 4294967294 are possible",
                options.arrivals
            )));
        }
        let ifindex = attach::index_of(interface)?;
        let began_ns = clocks::monotonic();
        let mut tried = Tried { interface, ifindex, reasons: Vec::new() };
        let (mut source, mode) = match tried.by_hardware(options)? {
            Some(found) => found,
            None => match tried.with_tags(options)? {
                Some(found) => found,
                None => tried.in_order(options)?,
            },
        };
        source.hand_over(options)?;
        let mut reason = match mode {
            Mode::XdpNative => "native XDP".to_owned(),
            Mode::XdpGeneric => "generic XDP: expect about half the rate of native XDP".to_owned(),
            _ => "packet socket: expect at most 1 to 2 million frames per second".to_owned(),
        };
        if source.stamps().is_some() {
            reason += ", arrivals by time stamps of the hardware";
        }
        if let Source::Kernel { tables, .. } = &source
            && let Some(refused) = &tables.refused
        {
            reason += &format!("; {refused}");
        }
        if mode == Mode::PacketSocket && options.action == Action::Drop {
            reason += "; the frames also reach the host's own stack";
        }
        let mut promiscuous = None;
        // The packet socket has seen to it itself.
        if options.promiscuous && mode != Mode::PacketSocket {
            match socket::promiscuous(ifindex) {
                Ok(socket) => promiscuous = Some(socket),
                Err(error) => {
                    reason += &format!(
                        "; promiscuous mode is not possible ({error}): only frames to its own addresses"
                    );
                }
            }
        }
        if !tried.reasons.is_empty() {
            reason = format!("{} ({reason})", tried.reasons.join("; "));
        }
        let Options { streams, midstream, clock, .. } = *options;
        let stream_gaps = options.stream_gaps();
        let tags_unseen = options.tags_taken_out && mode != Mode::PacketSocket && !source.counts_tags();
        let drops = options.action == Action::Drop && mode != Mode::PacketSocket;
        Ok(Meter {
            source,
            mode,
            reason,
            streams,
            midstream,
            stream_gaps,
            tags_unseen,
            drops,
            clock,
            began_ns,
            _promiscuous: promiscuous,
        })
    }

    /// The clock of arrivals and stamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How it counts; never [`Mode::Auto`].
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether an XDP program drops what it measured: some drivers count that among their drops (virtio_net).
    pub fn drops(&self) -> bool {
        self.drops
    }

    /// How it counts and why not in a better way, for a person.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether frames can still arrive: false once the interface was removed, or somebody detached the meter from it by
    /// force. What was counted until then stays.
    pub fn is_attached(&self) -> bool {
        match &self.source {
            Source::Kernel { link: Some(link), .. } => link.is_attached(),
            Source::Kernel { link: None, .. } => false,
            Source::Socket(socket) => !socket.is_down(),
        }
    }

    /// The sums over everything up to now. Cheap (half a megabyte for each CPU that saw frames is read): poll it ten times a
    /// second. Latencies are left out where stamps are of before it began.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.counted();
        if snapshot.has_old_stamps(self.began_ns) {
            snapshot.forget_latencies();
        }
        snapshot
    }

    fn counted(&self) -> Snapshot {
        match &self.source {
            Source::Kernel { tables, .. } => {
                let mut sum = zeroed::<Totals>();
                // A CPU that saw nothing has no frame of any size.
                (0..tables.totals.len())
                    .filter(|cpu| (0..CLASSES).any(|class| tables.totals.word(*cpu, class) > Some(0)))
                    .filter_map(|cpu| tables.totals.get_boxed(cpu))
                    .for_each(|share| sum.add(&share));
                let seen = tables.arrivals.get(0).unwrap_or(0);
                Snapshot::from_sum(&sum, seen, tables.arrivals.len() as u64 - 1, 0)
            }
            Source::Socket(socket) => {
                let dropped = socket.dropped();
                let tracker = socket.tracker();
                let (seen, kept) = (tracker.arrivals_seen, tracker.arrivals.len() as u64);
                Snapshot::from_sum(&tracker.totals, seen, kept, dropped)
            }
        }
    }

    /// What the hardware's time stamps are worth, if arrivals are timed by them.
    pub fn stamps(&self) -> Option<Stamps> {
        let mut stamps = self.source.stamps()?;
        if let Source::Kernel { .. } = self.source {
            stamps.frames = self.snapshot().by_hardware;
        }
        Some(stamps)
    }

    /// The streams of which something arrived, by number. Looks at the whole table, CPU by CPU.
    pub fn streams(&self) -> Vec<StreamStats> {
        (0..self.streams).filter_map(|number| self.stream(number)).collect()
    }

    /// One stream, if something of it arrived.
    pub fn stream(&self, number: u32) -> Option<StreamStats> {
        self.look_at(number, true)
    }

    /// The same without percentiles, for whoever looks often: those of 64 streams are 2 MB to read, for each CPU.
    pub fn stream_in_short(&self, number: u32) -> Option<StreamStats> {
        self.look_at(number, false)
    }

    fn look_at(&self, number: u32, with_histogram: bool) -> Option<StreamStats> {
        if number >= self.streams {
            return None;
        }
        let mut sum = Stream::default();
        let (mut buckets, mut gaps) = (None, None);
        match &self.source {
            Source::Kernel { tables, .. } => {
                let (streams, own, number) =
                    (self.streams as usize, tables.with_histogram as usize, number as usize);
                let cpus = 0..if tables.shared { 1 } else { tables.totals.len() };
                let shares = cpus.clone().map(|cpu| cpu * streams + number);
                // Most of many have seen nothing, which one word tells.
                shares
                    .filter(|slot| tables.streams.word(*slot, NEXT) > Some(0))
                    .filter_map(|slot| tables.streams.get(slot))
                    .for_each(|share| sum.add(&share));
                if with_histogram && number < own && sum.latency.count > 0 {
                    let shares = cpus.filter_map(|cpu| tables.histograms.get(cpu * own + number));
                    shares.for_each(|share| buckets.get_or_insert_with(Buckets::default).add(&share));
                }
                if with_histogram && number < self.stream_gaps as usize {
                    gaps = tables.stream_gaps.get(number);
                }
            }
            Source::Socket(socket) => {
                let tracker = socket.tracker();
                sum.add(tracker.streams.get(number as usize)?);
                buckets = tracker.histograms.get(number as usize).filter(|_| with_histogram).copied();
                gaps = tracker.stream_gaps.get(number as usize).filter(|_| with_histogram).copied();
            }
        }
        let mut stats =
            StreamStats::from_sum(number, &sum, buckets.as_ref(), (!self.midstream).then_some(0))?;
        stats.gaps = gaps.and_then(|gaps| stream_gaps(&gaps, &sum));
        Some(stats)
    }

    /// The arrival times of the first [`Options::arrivals`] frames, in order, as `CLOCK_MONOTONIC` nanoseconds.
    pub fn arrivals(&self) -> Vec<u64> {
        match &self.source {
            Source::Kernel { tables, .. } => {
                let seen = tables.arrivals.get(0).unwrap_or(0) as usize;
                let mut times: Vec<u64> = (1..=seen).map_while(|slot| tables.arrivals.get(slot)).collect();
                // A CPU reads the clock before it takes a place: two CPUs may take theirs the other way round. A
                // place that was taken and not yet written is 0 and is left out.
                times.sort();
                times.drain(..times.partition_point(|time| *time == 0));
                times
            }
            Source::Socket(socket) => socket.tracker().arrivals.clone(),
        }
    }

    /// Waits for stragglers: until `expected` frames have arrived, or none has for `quiet`, but no longer than
    /// `limit`. RFC 2544 (section 23) waits two seconds after the last frame was sent.
    pub fn settle(&self, expected: Option<u64>, quiet: Duration, limit: Duration) {
        self.settle_by(|seen| seen.frames, expected, quiet, limit);
    }

    /// The same for the frames that `count` finds in a snapshot.
    pub fn settle_by(
        &self,
        count: fn(&Snapshot) -> u64,
        expected: Option<u64>,
        quiet: Duration,
        limit: Duration,
    ) {
        settle(|| count(&self.snapshot()), expected, quiet, limit);
    }

    /// Stops counting, leaves the interface as it was, and says all that was measured.
    pub fn finish(mut self) -> Measurement {
        match &mut self.source {
            // Closing the link detaches the program before it returns.
            Source::Kernel { link, following, .. } => {
                drop(link.take());
                following.iter_mut().for_each(Following::conclude);
            }
            Source::Socket(socket) => socket.stop(),
        }
        let (mut totals, mut streams, arrivals) = (self.counted(), self.streams(), self.arrivals());
        let old_stamps = totals.has_old_stamps(self.began_ns);
        if old_stamps {
            totals.forget_latencies();
            streams.iter_mut().for_each(StreamStats::forget_latencies);
        }
        let captured = match &mut self.source {
            Source::Kernel { tables, frames, .. } => {
                frames.as_mut().map(|frames| frames.finish(totals.frames.saturating_sub(tables.unwanted())))
            }
            Source::Socket(socket) => socket.captured(),
        };
        let (stamps, tags_unseen) = (self.stamps(), self.tags_unseen);
        Measurement {
            mode: self.mode,
            reason: self.reason,
            totals,
            streams,
            arrivals,
            stamps,
            tags_unseen,
            old_stamps,
            captured,
        }
    }
}

/// Waits until `count` says `expected`, or has said the same for `quiet`, but no longer than `limit`.
pub fn settle(count: impl Fn() -> u64, expected: Option<u64>, quiet: Duration, limit: Duration) {
    let start = Instant::now();
    let (mut frames, mut changed) = (count(), start);
    while expected.is_none_or(|expected| frames < expected)
        && changed.elapsed() < quiet
        && start.elapsed() < limit
    {
        std::thread::sleep(Duration::from_millis(2).min(quiet));
        let now = count();
        if now != frames {
            (frames, changed) = (now, Instant::now());
        }
    }
}

/// The attempts on one interface and why the better ones failed.
struct Tried<'a> {
    interface: &'a str,
    ifindex: u32,
    reasons: Vec<String>,
}

impl Tried<'_> {
    /// With times of arrival by the hardware, if that is asked for and possible. Native XDP is not given up for them
    /// unless they are required: a packet socket is slower, and keeps nothing from the host.
    fn by_hardware(&mut self, options: &Options) -> Result<Option<(Source, Mode)>, MeterError> {
        let Some(hardware) = &options.hardware else { return Ok(None) };
        let native = match options.mode {
            Mode::PacketSocket => None,
            Mode::XdpGeneric => {
                Some("generic XDP sees none (leave out `.how`, or take `.how` packet)".to_owned())
            }
            _ if !hardware.to_xdp => {
                Some("the driver gives them to sockets, and not to XDP programs".to_owned())
            }
            Mode::Auto | Mode::XdpNative => match self.bound(hardware, options)? {
                Ok(source) => return Ok(Some((source, Mode::XdpNative))),
                Err(reason) => Some(reason),
            },
        };
        let asked = options.mode == Mode::PacketSocket || hardware.required && options.mode == Mode::Auto;
        if let Some(reason) = native {
            // What nobody asked for is no reason, where the stamps are the sockets'.
            if hardware.required || hardware.to_xdp {
                self.reasons.push(format!("no time stamps of the hardware by XDP: {reason}"));
            }
        }
        if asked && let Some(source) = self.packet_socket(options, Some(hardware))? {
            return Ok(Some((source, Mode::PacketSocket)));
        }
        if hardware.required {
            return Err(ProgramError::NotPossible {
                what: "take time stamps of the hardware",
                interface: self.interface.to_owned(),
                reasons: self.reasons.join("; "),
            }
            .into());
        }
        Ok(None)
    }

    /// By a program that asks the driver for VLAN tags that were taken out, if that is possible.
    fn with_tags(&mut self, options: &Options) -> Result<Option<(Source, Mode)>, MeterError> {
        if !options.tags_taken_out
            || !options.tags_told
            || !matches!(options.mode, Mode::Auto | Mode::XdpNative)
        {
            return Ok(None);
        }
        let loaded = match loader::load(options, Stamper::Bound { ifindex: self.ifindex, stamps: false }) {
            Ok(loaded) => loaded,
            Err(error @ (ProgramError::Memory { .. } | ProgramError::Permission { .. })) => {
                return Err(error.into());
            }
            // Without it tags are not seen, which is told.
            Err(_) => return Ok(None),
        };
        let link = loaded.program.attach(self.ifindex, Hook::XdpNative).ok();
        Ok(link.map(|link| {
            let tables = Arc::new(loaded);
            (Source::Kernel { tables, link: Some(link), following: None, frames: None }, Mode::XdpNative)
        }))
    }

    /// The program for this interface alone; or why not.
    fn bound(
        &mut self,
        hardware: &Hardware,
        options: &Options,
    ) -> Result<Result<Source, String>, MeterError> {
        let loaded = match loader::load(options, Stamper::Bound { ifindex: self.ifindex, stamps: true }) {
            Ok(loaded) => Arc::new(loaded),
            Err(error @ (ProgramError::Memory { .. } | ProgramError::Permission { .. })) => {
                return Err(error.into());
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        let tables = Arc::clone(&loaded);
        let tell = move |turn, line: &_| tables.clock.set(turn, line).map_err(|error| error.to_string());
        let following = match Following::start(&hardware.compare, tell) {
            Ok(following) => following,
            Err(error) => return Ok(Err(format!("their clock cannot be read: {error}"))),
        };
        Ok(match loaded.program.attach(self.ifindex, Hook::XdpNative) {
            Ok(link) => {
                let following = Some(following);
                Ok(Source::Kernel { tables: loaded, link: Some(link), following, frames: None })
            }
            Err(Errno::PERM) => return Err(attach::not_permitted().into()),
            Err(error) => Err(self.why_not(true, error, &loaded)),
        })
    }

    fn in_order(&mut self, options: &Options) -> Result<(Source, Mode), MeterError> {
        let modes: &[Mode] = match options.mode {
            Mode::Auto if options.not_by_xdp.is_some() => &[Mode::PacketSocket],
            Mode::Auto => &[Mode::XdpNative, Mode::XdpGeneric, Mode::PacketSocket],
            ref only => std::slice::from_ref(only),
        };
        if options.mode == Mode::Auto {
            self.reasons.extend(options.not_by_xdp.clone());
        }
        let mut tables = None;
        for mode in modes {
            let source = match mode {
                Mode::PacketSocket => self.timed_or_not(options),
                _ => self.xdp(*mode == Mode::XdpNative, options, &mut tables),
            };
            match source {
                Ok(Some(source)) => return Ok((source, *mode)),
                Ok(None) => {}
                // The other ways want the same tables: asking for less is the user's to decide.
                Err(error @ MeterError::Memory { .. }) => return Err(error),
                // What is refused for want of rights or an older kernel's sake may yet be possible in another way.
                Err(error) if options.mode == Mode::Auto && *mode != Mode::PacketSocket => {
                    let said = error.to_string();
                    if !self.reasons.contains(&said) {
                        self.reasons.push(said);
                    }
                }
                // One way to get the rights for all: said once, without the ways that failed for the same reason.
                Err(error @ MeterError::Program(ProgramError::Permission { .. })) => return Err(error),
                Err(error) if self.reasons.is_empty() => return Err(error),
                Err(error) => self.reasons.push(error.to_string()),
            }
        }
        Err(ProgramError::NotPossible {
            what: "measure",
            interface: self.interface.to_owned(),
            reasons: self.reasons.join("; "),
        }
        .into())
    }

    /// `tables` is the program loaded for an earlier attempt, if there was one.
    fn xdp(
        &mut self,
        native: bool,
        options: &Options,
        tables: &mut Option<Loaded>,
    ) -> Result<Option<Source>, MeterError> {
        let loaded = match tables.take() {
            Some(loaded) => loaded,
            None => loader::load(options, Stamper::Software)?,
        };
        let hook = if native { Hook::XdpNative } else { Hook::XdpGeneric };
        match loaded.program.attach(self.ifindex, hook) {
            Ok(link) => {
                let tables = Arc::new(loaded);
                return Ok(Some(Source::Kernel { tables, link: Some(link), following: None, frames: None }));
            }
            Err(Errno::PERM) => return Err(attach::not_permitted().into()),
            Err(error) => {
                let said = self.why_not(native, error, &loaded);
                if !self.reasons.contains(&said) {
                    self.reasons.push(said);
                }
            }
        }
        *tables = Some(loaded);
        Ok(None)
    }

    fn why_not(&self, native: bool, error: Errno, loaded: &Loaded) -> String {
        let mtu = || Interface::by_name(self.interface).ok().map(|found| found.mtu);
        match attach::why_not((self.interface, self.ifindex), mtu, native, error, &loaded.program) {
            WhyNot::Occupied(said) => format!("{said}; frames that it drops or redirects are not seen here"),
            WhyNot::Refused(said) => said,
        }
    }

    /// By the hardware's stamps where they can be had.
    fn timed_or_not(&mut self, options: &Options) -> Result<Option<Source>, MeterError> {
        // Where this was asked for, it has been tried, and the reason is there.
        if options.mode == Mode::Auto
            && let Some(hardware) = &options.hardware
            && let Some(source) = self.packet_socket(options, Some(hardware))?
        {
            return Ok(Some(source));
        }
        self.packet_socket(options, None)
    }

    fn packet_socket(
        &mut self,
        options: &Options,
        hardware: Option<&Hardware>,
    ) -> Result<Option<Source>, MeterError> {
        let tracker = Tracker::new(Wanted {
            streams: options.streams,
            histograms: options.stream_histograms,
            gaps: options.stream_gaps(),
            // As far as all CPUs together remember them with XDP.
            seen_bits: if layout::is_shared(2, options.streams, 0) {
                0
            } else {
                layout::seen_bits(options.streams)
            },
            latency: options.latency,
            arrivals: options.arrivals,
            exact: options.capture.is_some(),
            trailers: options.trailers,
            ignore_icmp_errors: options.ignore_icmp_errors,
            content: options.content.clone(),
        });
        let compare = hardware.map(|hardware| &hardware.compare);
        // Its blocks hold any frame: no MTU counts.
        let target = Target { name: self.interface.to_owned(), index: self.ifindex, mtu: 0 };
        match Socket::open(
            &target,
            options.promiscuous,
            options.clock,
            compare,
            tracker,
            options.capture.as_ref(),
        ) {
            Ok(socket) => Ok(Some(Source::Socket(socket))),
            Err(SocketError::Receive(RxError::Permission(_))) => {
                Err(ProgramError::Permission { what: "opening a packet socket" }.into())
            }
            Err(error) => {
                self.reasons.push(match hardware {
                    Some(_) => format!("no time stamps of the hardware by a packet socket: {error}"),
                    None => format!("packet socket not possible on {}: {error}", self.interface),
                });
                Ok(None)
            }
        }
    }
}
