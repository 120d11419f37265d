//! What the kernel drops while something goes on, as data of reports: for `netdyno drops`, and for runs that send and measure.

mod evidence;
mod over_time;

use crate::place::Place;
use ::lab::{Host, Lab, Namespace};
use anyhow::{Context as _, Result, bail};
use clocks::Clock;
use drops::beside::{Beside, Counters, Door};
use drops::{Counted, Example, Kind, Named, Names, Only, Row, Settings, Tracer};
use evidence::{Evidence, Facts, Filtered};
use over_time::Followed;
pub use over_time::{Follow, OverTime};
use port::interface::Interface;
use report::sections::drops::{DROPS_SCHEMA, Dropped, DroppedKind, DroppedOfStream, Drops, DropsTraced};
use report::{Code, Report};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Streams that are told of one cause; what further ones lost is in its frames.
const STREAMS: usize = 1_000;

/// Network namespaces whose rules and queues are read at most.
const NAMESPACES: usize = 256;

/// Looks at what the kernel drops, from its start on.
#[derive(Debug)]
pub struct Looking {
    tracer: Tracer,
    /// Rules, queues and backlogs, and what they said at the start.
    beside: Beside,
    before: Counters,
    began: Instant,
    began_ns: u64,
    /// Its own network namespace, which needs not be named.
    here: u32,
}

impl Looking {
    /// Starts, for all of this host or one interface (`IFACE`, or `IFACE@NAMESPACE`); it keeps frames if there are to be examples.
    ///
    /// # Errors
    /// There is no such interface, or drops cannot be traced here.
    pub fn start(on: Option<&str>, examples: bool) -> Result<Looking> {
        let on = on.map(|name| place(name).with_context(|| format!("`.on` {name}"))).transpose()?;
        let (only, doors) = match on {
            Some((only, door)) => (Some(only), vec![(only.netns, door)]),
            None => (None, everywhere()),
        };
        Looking::with(&Settings { only, examples, ..Settings::default() }, doors)
    }

    /// The same with all settings; rules and queues are read in these network namespaces.
    ///
    /// # Errors
    /// Drops cannot be traced here.
    fn with(settings: &Settings, doors: Vec<(u32, Door)>) -> Result<Looking> {
        let tracer = Tracer::start(settings)?;
        let (began_ns, began) = (clocks::monotonic(), Instant::now());
        let beside = Beside::of(doors.into_iter().take(NAMESPACES));
        let before = beside.read();
        Ok(Looking { tracer, beside, before, began, began_ns, here: drops::namespace_of_this_thread() })
    }

    /// What was dropped up to now, as far as it agrees with a filter.
    ///
    /// # Errors
    /// The kernel does not give its tables.
    pub fn look(&self, filter: &Filter) -> Result<Drops> {
        let lasted = self.began.elapsed();
        let mut counted = self.tracer.read()?;
        let names = names_for(&counted);
        let filtered = filtered(&counted, &names);
        counted.rows.retain(|row| filter.agrees(row, &names.of(row)));
        let evidence = Evidence { beside: &self.beside, before: &self.before, filtered: &filtered };
        Ok(self.drops(&counted, &names, &evidence, (self.began_ns, lasted), None))
    }

    /// Frames that were dropped, as far as they agree with a filter: some of each function and reason.
    ///
    /// # Errors
    /// The kernel does not give them.
    pub fn examples(&self, filter: &Filter) -> Result<Examples> {
        let (kept, without_room) = self.tracer.examples()?;
        let names = if kept.is_empty() { Names::default() } else { Names::read() };
        let devices = devices(&self.tracer.read()?.rows);
        // Both clocks go on meanwhile, by less than anybody reads off a capture.
        let since_1970 = clocks::now(Clock::Realtime).saturating_sub(clocks::monotonic());
        let mut of_cause: HashMap<Named, usize> = HashMap::new();
        let mut frames = Vec::new();
        for example in kept {
            let named = names.of(&example.of);
            if !filter.agrees(&example.of, &named) {
                continue;
            }
            let count = of_cause.entry(named.clone()).or_default();
            *count += 1;
            if *count <= EXAMPLES {
                frames.push(self.example(example, &named, &devices, since_1970));
            }
        }
        Ok(Examples { frames, without_room })
    }

    fn example(
        &self,
        example: Example,
        named: &Named,
        devices: &HashMap<(u32, u32), String>,
        since_1970: u64,
    ) -> ExampleFrame {
        let Example { of, time_ns, length, headless, bytes: kept } = example;
        let mut comment = format!("{}, {}", named.function, named.reason);
        if let Some(name) = devices.get(&(of.netns, of.ifindex)) {
            comment += &format!(" at {name}");
        }
        match of.netns {
            0 => comment += " (netns unknown)",
            other if other == self.here => {}
            other => comment += &format!(" (netns {other})"),
        }
        let mut bytes = Vec::with_capacity(kept.len() + ETHERNET);
        let mut wire_len = length;
        if headless {
            comment += "; it had no Ethernet header there, this one is made up";
            bytes.extend([0; 12]);
            bytes.extend(of.ethertype.to_be_bytes());
            wire_len = wire_len.saturating_add(ETHERNET as u32);
        }
        bytes.extend(kept);
        ExampleFrame { time_ns: since_1970.saturating_add(time_ns), bytes, wire_len, comment }
    }

    fn drops(
        &self,
        counted: &Counted,
        names: &Names,
        evidence: &Evidence<'_>,
        (began_ns, lasted): (u64, Duration),
        followed: Option<&Followed>,
    ) -> Drops {
        let mut causes = rows(counted, names, self.here, began_ns);
        evidence.attach(&mut causes);
        if let Some(followed) = followed {
            followed.fill(&mut causes);
        }
        let dropped: Vec<Dropped> = causes.into_iter().map(|(one, _)| one).collect();
        let listed: u64 = dropped.iter().map(|one| one.frames).sum();
        let mut notes = Vec::new();
        let named = dropped.iter().any(|one| one.function == "(hidden)");
        notes.extend(names.missing().filter(|_| named).map(str::to_owned));
        if counted.unread > 0 {
            notes.push(format!(
                "{} lay in several buffers, in which this kernel lets nobody look for a signature (Linux 6.12 does): frames of tests \
                 among them are shown as ordinary ones",
                report::units::counted(counted.unread, "frame")
            ));
        }
        Drops {
            schema: DROPS_SCHEMA.to_owned(),
            duration_ns: lasted.as_nanos().try_into().unwrap_or(u64::MAX),
            frames: listed.saturating_add(counted.unlisted),
            drops: dropped,
            unlisted_frames: counted.unlisted,
            missed_frames: counted.missed,
            local_messages: counted.frames(Kind::Local),
            command_status: None,
            notes,
        }
    }
}

/// Rows that differ in nothing that is shown are one, with its streams. `here`: the network namespace that needs not be named.
fn rows(counted: &Counted, names: &Names, here: u32, began_ns: u64) -> Vec<(Dropped, Facts)> {
    let devices = devices(&counted.rows);
    let mut found: BTreeMap<Shown, (Dropped, Facts)> = BTreeMap::new();
    for row in counted.rows.iter().filter(|row| row.kind != Kind::Local) {
        let named = names.of(row);
        let interface = match row.interface.as_str() {
            "" => devices.get(&(row.netns, row.ifindex)).cloned().unwrap_or_default(),
            name => name.to_owned(),
        };
        let kind = kind(row.kind);
        let (protocol, port) = match kind {
            DroppedKind::Ordinary => (protocol(row).unwrap_or_default(), row.port),
            _ => (String::new(), 0),
        };
        // The kernel numbers none of them 0.
        let netns = Some(row.netns).filter(|netns| *netns != here);
        // Functions without a name are told apart all the same.
        let apart = if named.function.starts_with('(') { row.location } else { 0 };
        let key = (named, interface, netns, kind, protocol, port, apart);
        let (one, facts) = found.entry(key.clone()).or_insert_with(|| {
            let (Named { function, reason }, interface, netns, kind, protocol, port, _) = key;
            let one = Dropped {
                function,
                reason,
                kind,
                interface: (!interface.is_empty()).then_some(interface),
                namespace: netns.filter(|netns| *netns != 0),
                namespace_unknown: netns == Some(0),
                protocol: (!protocol.is_empty()).then_some(protocol),
                port: (port != 0).then_some(port),
                first_ns: u64::MAX,
                ..Dropped::default()
            };
            (one, Facts { netns: row.netns, ..Facts::default() })
        });
        add(one, row, began_ns);
        facts.interfaces.insert(row.ifindex);
        facts.causes.insert(row.cause());
        facts.ethertypes.insert(row.ethertype);
    }
    let mut all: Vec<(Dropped, Facts)> = found.into_values().collect();
    all.sort_by_key(|(one, _)| Reverse(one.frames));
    for (one, _) in &mut all {
        one.streams.sort_by_key(|stream| stream.stream);
        one.streams.truncate(STREAMS);
    }
    all
}

/// What netfilter dropped of all that was counted, by namespace and EtherType.
fn filtered(counted: &Counted, names: &Names) -> Filtered {
    let mut found = Filtered::new();
    for row in &counted.rows {
        let named = names.of(row);
        if evidence::is_filtered(&named.function, &named.reason) {
            let sum = found.entry((row.netns, row.ethertype)).or_default();
            *sum = sum.saturating_add(row.frames).saturating_add(row.copies);
        }
    }
    found
}

/// `began_ns`: times are told from then on.
fn add(one: &mut Dropped, row: &Row, began_ns: u64) {
    let since = |ns: u64| ns.saturating_sub(began_ns);
    one.frames = one.frames.saturating_add(row.frames);
    one.bytes = one.bytes.saturating_add(row.bytes);
    one.copies = one.copies.saturating_add(row.copies);
    one.first_ns = one.first_ns.min(since(row.first_ns));
    one.last_ns = one.last_ns.max(since(row.last_ns));
    if row.kind != Kind::Signed || row.coarse || row.frames == 0 {
        return;
    }
    let new = DroppedOfStream {
        stream: row.stream,
        frames: row.frames,
        first_sequence: row.first_sequence,
        last_sequence: row.last_sequence,
        lowest_sequence: row.lowest,
        highest_sequence: row.highest,
        first_ns: since(row.first_ns),
        last_ns: since(row.last_ns),
    };
    add_stream(one, new);
}

/// So many of each function and reason are examples.
const EXAMPLES: usize = 8;
/// An Ethernet header.
const ETHERNET: usize = 14;

/// Frames that were dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examples {
    /// In the order in which they were dropped.
    pub frames: Vec<ExampleFrame>,
    /// So many were not kept, for there was no room.
    pub without_room: u64,
}

/// A frame that was dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExampleFrame {
    /// When, since 1970.
    pub time_ns: u64,
    /// Its first bytes, from its Ethernet header on.
    pub bytes: Vec<u8>,
    /// How long it was.
    pub wire_len: u32,
    /// Function, reason and place.
    pub comment: String,
}

/// What is shown of a row: names, interface, namespace, whose, protocol and port; and where, if that has no name.
type Shown = (Named, String, Option<u32>, DroppedKind, String, u16, u64);

/// Where nothing was dropped, nothing need be named.
fn names_for(counted: &Counted) -> Names {
    if counted.rows.is_empty() { Names::default() } else { Names::read() }
}

fn add_stream(one: &mut Dropped, new: DroppedOfStream) {
    match one.streams.iter_mut().find(|stream| stream.stream == new.stream) {
        Some(was) => join(was, &new),
        None => one.streams.push(new),
    }
}

/// The same stream at the same place, with another address.
fn join(was: &mut DroppedOfStream, new: &DroppedOfStream) {
    if new.first_ns < was.first_ns {
        (was.first_ns, was.first_sequence) = (new.first_ns, new.first_sequence);
    }
    if new.last_ns > was.last_ns {
        (was.last_ns, was.last_sequence) = (new.last_ns, new.last_sequence);
    }
    was.frames = was.frames.saturating_add(new.frames);
    was.lowest_sequence = was.lowest_sequence.min(new.lowest_sequence);
    was.highest_sequence = was.highest_sequence.max(new.highest_sequence);
}

/// Names of interfaces by namespace and number, as far as any row has them.
fn devices(rows: &[Row]) -> HashMap<(u32, u32), String> {
    let named = rows.iter().filter(|row| !row.interface.is_empty());
    named.map(|row| ((row.netns, row.ifindex), row.interface.clone())).collect()
}

fn kind(of: Kind) -> DroppedKind {
    match of {
        Kind::Signed => DroppedKind::Test,
        Kind::SignedByOthers => DroppedKind::OtherTest,
        Kind::Xdp => DroppedKind::Xdp,
        Kind::Ordinary | Kind::Local => DroppedKind::Ordinary,
    }
}

fn protocol(row: &Row) -> Option<String> {
    let name = match (row.ethertype, row.protocol) {
        (0x0800, 0) => "ip",
        (0x86dd, 0) => "ipv6",
        (0x0800 | 0x86dd, 1) => "icmp",
        (0x0800 | 0x86dd, 2) => "igmp",
        (0x0800 | 0x86dd, 6) => "tcp",
        (0x0800 | 0x86dd, 17) => "udp",
        (0x0800 | 0x86dd, 47) => "gre",
        (0x0800 | 0x86dd, 50) => "esp",
        (0x0800 | 0x86dd, 58) => "icmpv6",
        (0x0800 | 0x86dd, 132) => "sctp",
        (0x0800 | 0x86dd, other) => return Some(format!("ip {other}")),
        (0x0806, _) => "arp",
        (0x88cc, _) => "lldp",
        (0, _) => return None,
        (other, _) => return Some(format!("0x{other:04x}")),
    };
    Some(name.to_owned())
}

/// Frames of a run are those stamped from now on. Of another host's clock it is not known when that was.
fn since_now(clock: Clock) -> Option<drops::Run> {
    let tai = match clock {
        Clock::Monotonic => false,
        Clock::Tai => true,
        Clock::Realtime | Clock::Elsewhere { .. } => return None,
    };
    Some(drops::Run { began_ns: clocks::now(clock), tai })
}

fn place(name: &str) -> Result<(Only, Door)> {
    let place = Place::find(name)?;
    let (netns, door) = door_of(&place).context("its network namespace cannot be opened")?;
    Ok((Only { ifindex: place.interface.index, netns }, door))
}

/// The network namespace of an interface.
fn door_of(place: &Place) -> Option<(u32, Door)> {
    let namespace = place.run_in(Namespace::current).ok()?.ok()?;
    Some((drops::beside::number(&namespace)?, Door::Held(namespace)))
}

/// This namespace, those that have names, and those of all processes.
fn everywhere() -> Vec<(u32, Door)> {
    let own = Namespace::current().ok();
    let own = own.and_then(|own| Some((drops::beside::number(&own)?, Door::Held(own))));
    let mut found: Vec<(u32, Door)> = own.into_iter().chain(with_names()).collect();
    let mut known: BTreeSet<u32> = found.iter().map(|(netns, _)| *netns).collect();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let file = process.path().join("ns/net");
        let is_one = process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        if found.len() < NAMESPACES
            && is_one
            && let Some(netns) = number_of_file(&file)
            && known.insert(netns)
        {
            found.push((netns, Door::File(file)));
        }
    }
    found
}

fn number_of_file(file: &Path) -> Option<u32> {
    u32::try_from(std::fs::metadata(file).ok()?.ino()).ok()
}

/// Looks on while a test runs, and ties what was dropped to its frames.
#[derive(Debug, Default)]
pub struct Tracing {
    looking: Option<Arc<Looking>>,
    /// What dropped when, left here by the run.
    follow: Option<Follow>,
    /// The network namespaces that frames of the test can be in.
    namespaces: Vec<u32>,
    /// Nobody else is there.
    in_a_lab: bool,
    /// Where the meters are: what is dropped behind them had arrived.
    meters: Vec<(Only, String)>,
    /// Why it is not traced, where it was asked for.
    refused: Option<String>,
}

/// Whether drops are traced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trace {
    /// They are not.
    #[default]
    No,
    /// If it is possible here; otherwise nothing is said.
    IfPossible,
    /// It was asked for.
    Yes,
}

/// Functions that drop frames on their way into an interface, of which they are already: before any meter there.
const BEFORE_A_METER: [&str; 6] =
    ["veth_xmit", "enqueue_to_backlog", "netif_rx", "dev_kfree_skb", "__dev_forward_skb", "veth_forward_skb"];

impl Trace {
    /// Of a test between interfaces of this host, or else in a lab.
    pub fn of(asked: bool, refused: bool, in_a_lab: bool) -> Trace {
        match (asked, refused, in_a_lab) {
            (_, true, _) | (false, _, false) => Trace::No,
            (true, ..) => Trace::Yes,
            (false, _, true) => Trace::IfPossible,
        }
    }
}

impl Tracing {
    /// Begins on this host, where frames are stamped by this clock, leave at some places and are measured at others. Of this test is what is
    /// dropped in the namespaces of those places, or in one that has a name here: where another test's hosts are, nobody else looks.
    pub fn begin(wanted: Trace, clock: Clock, sending: &[&Place], measured: &[&Place]) -> Tracing {
        if wanted == Trace::No {
            return Tracing::default();
        }
        let meter = |place: &&Place| {
            let (netns, door) = door_of(place)?;
            let at = Only { ifindex: place.interface.index, netns };
            Some(((at, place.interface.name.clone()), (netns, door)))
        };
        let (meters, there): (Vec<_>, Vec<_>) = measured.iter().filter_map(meter).unzip();
        let own = sending.iter().filter_map(|place| door_of(place)).chain(there);
        let doors: Vec<(u32, Door)> = own.chain(with_names()).collect();
        let namespaces = doors.iter().map(|(netns, _)| *netns).collect();
        let tracing = Tracing::between(wanted, clock, meters, doors);
        Tracing { namespaces, ..tracing }
    }

    /// Begins in a lab: only what is dropped in its hosts is of this test, and the receiver's interface is where it is measured.
    pub fn in_lab(wanted: Trace, clock: Clock, lab: &Lab) -> Tracing {
        if wanted == Trace::No {
            return Tracing::default();
        }
        let of = |host: &Host| host.namespace.run_in(drops::namespace_of_this_thread).unwrap_or(0);
        let name = lab.receiver.interface;
        let index = lab.receiver.namespace.run_in(|| Interface::by_name(name).map(|found| found.index));
        let receiver =
            Only { ifindex: index.ok().and_then(Result::ok).unwrap_or(0), netns: of(&lab.receiver) };
        let device = lab.device.iter().flatten();
        let ports = lab.ports.iter().flatten();
        let hosts = [&lab.sender, &lab.receiver].into_iter().chain(device).chain(ports);
        let doors: Vec<(u32, Door)> =
            hosts.filter_map(|host| Some((of(host), Door::Held(host.namespace.try_clone().ok()?)))).collect();
        let namespaces = doors.iter().map(|(netns, _)| *netns).collect();
        let tracing = Tracing::between(wanted, clock, vec![(receiver, name.to_owned())], doors);
        Tracing { in_a_lab: true, namespaces, ..tracing }
    }

    fn between(wanted: Trace, clock: Clock, meters: Vec<(Only, String)>, doors: Vec<(u32, Door)>) -> Tracing {
        let settings = Settings {
            run: since_now(clock),
            meters: meters.iter().map(|(at, _)| *at).collect(),
            ..Settings::default()
        };
        let (looking, refused) = match Looking::with(&settings, doors) {
            Ok(looking) => (Some(Arc::new(looking)), None),
            Err(error) => (None, (wanted == Trace::Yes).then(|| format!("{error:#}"))),
        };
        let follow = looking.clone().map(Follow::of);
        Tracing { looking, follow, refused, meters, ..Tracing::default() }
    }

    /// By which a run looks on while it lasts.
    pub(crate) fn follow(&self) -> Option<Follow> {
        self.follow.clone()
    }

    /// It is over: puts into the result what was dropped, and what that is of the loss.
    pub fn finish(self, report: &mut Report) {
        if let Some(why) = &self.refused {
            report.warnings.add(Code::DropsNotTraced, why.clone());
        }
        let beginning = self.looking.as_ref().map(|looking| Before {
            counted: Counted::default(),
            beside: looking.before.clone(),
            at_ns: looking.began_ns,
        });
        self.put(report, beginning.as_ref());
    }

    /// Why nothing is traced, where that was asked for.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// What was counted up to now. `None`: the kernel does not say, or nothing is traced.
    pub(crate) fn counted(&self) -> Option<Before> {
        let at_ns = clocks::monotonic();
        let looking = self.looking.as_ref()?;
        // Of several trials each has causes with times and sequence numbers of its own. What cannot be forgotten is subtracted.
        let _ = looking.tracer.forget();
        Some(Before { counted: looking.tracer.read().ok()?, beside: looking.beside.read(), at_ns })
    }

    /// Puts into a result what was dropped since `before`.
    pub(crate) fn put(&self, report: &mut Report, before: Option<&Before>) {
        let Some(looking) = &self.looking else { return };
        let Some(before) = before else {
            let said = "what the kernel had dropped before could not be read, so that what it dropped meanwhile is not known";
            report.warnings.add(Code::DropsNotTraced, said);
            return;
        };
        let counted = match looking.tracer.read() {
            Ok(counted) => counted.since(&before.counted),
            Err(error) => {
                report.warnings.add(Code::DropsNotTraced, format!("{error:#}"));
                return;
            }
        };
        let lasted = Duration::from_nanos(clocks::monotonic().saturating_sub(before.at_ns));
        let names = names_for(&counted);
        let filtered = filtered(&counted, &names);
        let evidence = Evidence { beside: &looking.beside, before: &before.beside, filtered: &filtered };
        // Of a run with intervals times count from their start on.
        let followed = self.follow.as_ref().and_then(Follow::take);
        let whole = followed.as_ref().and_then(|followed| followed.as_ref().ok());
        let whole = whole.filter(|followed| followed.fits(&report.intervals));
        let began_ns = whole.map_or(before.at_ns, |followed| followed.started_ns.max(before.at_ns));
        let found = looking.drops(&counted, &names, &evidence, (began_ns, lasted), whole);
        let (mut drops, mut other_frames, mut nowhere) = (Vec::new(), 0_u64, 0_u64);
        let sent = SentStreams::of(report);
        for mut one in found.drops {
            // They may be of anybody's test.
            if one.namespace_unknown {
                nowhere = nowhere.saturating_add(one.frames);
                continue;
            }
            let here = one.namespace.unwrap_or(looking.here);
            let own = self.namespaces.contains(&here);
            one.measured = is_behind(&one, here, &self.meters);
            sent.rename(&mut one);
            one.refused = sent.was_refused(&one);
            match one.kind {
                DroppedKind::Test | DroppedKind::OtherTest if own => drops.push(one),
                // Of a lab all is told: nobody else is there.
                _ if own && self.in_a_lab => drops.push(one),
                _ if own => other_frames = other_frames.saturating_add(one.frames),
                _ => {}
            }
        }
        let mut notes = found.notes;
        let lost = report.result.loss.map(|loss| loss.frames);
        sent.tell_attempts(&mut drops, lost);
        let named_frames = sent.named(&drops, lost, &mut notes);
        let not_seen_frames = lost.map(|lost| lost.saturating_sub(named_frames));
        let whole = whole.filter(|_| named_frames > 0 || lost.is_none_or(|lost| lost > 0));
        let over_time =
            whole.map(|_| over_time::of(&mut drops, &report.intervals, not_seen_frames, &mut notes));
        if let (Some(Err(why)), true) = (followed, named_frames > 0) {
            notes.push(why);
        }
        report.result.drops_traced = Some(DropsTraced {
            named_frames,
            not_seen_frames,
            over_time,
            other_frames,
            unlisted_frames: found
                .unlisted_frames
                .saturating_add(found.missed_frames)
                .saturating_add(nowhere),
            notes,
        });
        report.result.drops = drops;
    }
}

/// What had been dropped by a moment of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Before {
    counted: Counted,
    beside: Counters,
    at_ns: u64,
}

/// The streams of a run with what each of them lost, which what was dropped is held to.
#[derive(Debug, Default)]
struct SentStreams {
    /// Parts of a stream that have numbers of their own in signatures: one for each core.
    parts: u32,
    /// Empty where it is not known how many frames each stream had.
    lost: BTreeMap<u32, u64>,
    /// Attempts that the sender made again: they are no frames that were sent, and the kernel may have dropped them.
    retried: u64,
    /// Every frame that a packet socket's way past the queueing disciplines drops is an attempt that its sender is told of.
    is_told: bool,
}

/// What frees a frame that goes past the queueing disciplines when its interface does not take it: `sendmsg` then ends with ENOBUFS.
/// (The last one is where the compiler put it into its caller.)
const REFUSES: [&str; 3] = ["__dev_direct_xmit", "packet_direct_xmit", "packet_xmit"];

/// What frees a frame for which the backlog of a veth's other end has no room.
const BACKLOGS: [&str; 2] = ["enqueue_to_backlog", "netif_rx"];

impl SentStreams {
    fn of(report: &Report) -> SentStreams {
        let sent = || report.streams.iter().filter(|stream| stream.tx_frames.is_some());
        // Of so many not all are listed.
        let all = report.streams.len() < crate::run::MOST_STREAMS;
        let lost = if all {
            sent().map(|stream| (stream.stream, stream.lost_frames)).collect()
        } else {
            BTreeMap::new()
        };
        let retried =
            report.result.tx.as_ref().map(|tx| tx.retried_enobufs.saturating_add(tx.retried_eagain));
        let parts = report.result.parts_of_a_stream.max(1);
        let is_told = report.environment.engine.as_ref().is_some_and(|engine| engine.name == "packet");
        SentStreams { parts, lost, retried: retried.unwrap_or(0), is_told }
    }

    /// Whether the sender was told of what was dropped there. (AF_XDP's copies go the same way, and nobody is told.) What the other end of a
    /// veth has no room for it is told of, too, but not by all kernels and not where another CPU finds that out: such drops are attempts for
    /// certain where the streams lost nothing. How often the sender tried again is no measure: of what is refused within a batch the kernel
    /// tells it only by sending less.
    fn was_refused(&self, one: &Dropped) -> bool {
        let nothing_lost = || {
            let lost_none = |stream: &DroppedOfStream| self.lost.get(&stream.stream) == Some(&0);
            self.retried > 0 && !one.streams.is_empty() && one.streams.iter().all(lost_none)
        };
        self.is_told
            && one.kind == DroppedKind::Test
            && !one.measured
            && (REFUSES.contains(&one.function.as_str()) || nothing_lost())
    }

    /// What backlogs dropped of frames that their sender was told of, where the sums leave nothing else: just so many were dropped beyond
    /// what is missing. (Which frames were refused no kernel says, and a stream that lost some may have had others refused.)
    fn tell_attempts(&self, drops: &mut [Dropped], lost: Option<u64>) {
        let is_there = |one: &Dropped| one.is_loss() && BACKLOGS.contains(&one.function.as_str());
        let sum = |of: &dyn Fn(&Dropped) -> bool| {
            drops.iter().filter(|one| of(one)).map(|one| one.frames).fold(0, u64::saturating_add)
        };
        let (there, all) = (sum(&is_there), sum(&Dropped::is_loss));
        let beyond = lost.and_then(|lost| all.checked_sub(lost));
        if self.retried > 0 && there > 0 && beyond == Some(there) {
            for one in drops.iter_mut().filter(|one| is_there(one)) {
                one.refused = true;
            }
        }
    }

    /// Streams have the numbers that the result has for them.
    fn rename(&self, one: &mut Dropped) {
        if self.parts == 1 {
            return;
        }
        for mut part in std::mem::take(&mut one.streams) {
            let whole = part.stream / self.parts;
            if self.lost.is_empty() || self.lost.contains_key(&whole) {
                part.stream = whole;
            }
            add_stream(one, part);
        }
    }

    /// How many of the frames that were lost are among those that were dropped; notes say what contradicts that.
    fn named(&self, drops: &[Dropped], lost: Option<u64>, notes: &mut Vec<String>) -> u64 {
        let mut all = 0_u64;
        let mut dropped: BTreeMap<u32, u64> = BTreeMap::new();
        for one in drops.iter().filter(|one| one.is_loss()) {
            all = all.saturating_add(one.frames);
            for stream in &one.streams {
                let sum = dropped.entry(stream.stream).or_default();
                *sum = sum.saturating_add(stream.frames);
            }
        }
        let mut others = 0_u64;
        let mut more = 0_u64;
        for (stream, frames) in dropped.iter().filter(|_| !self.lost.is_empty()) {
            match self.lost.get(stream) {
                Some(lost) => more = more.saturating_add(frames.saturating_sub(*lost)),
                None => others = others.saturating_add(*frames),
            }
        }
        let named = all.saturating_sub(others);
        more = more.max(lost.map_or(0, |lost| named.saturating_sub(lost)));
        let counted = report::units::counted;
        if others > 0 {
            notes.push(format!(
                "{} of streams that this run did not send were dropped: another test's at the same time, or an earlier one's",
                counted(others, "frame")
            ));
        }
        if more > 0 {
            let refused =
                drops.iter().filter(|one| one.refused).map(|one| one.frames).fold(0, u64::saturating_add);
            let retried = match self.retried.saturating_sub(refused) {
                0 => String::new(),
                retried => {
                    format!(
                        ", or what was refused to the sender, which tried again ({})",
                        counted(retried, "time")
                    )
                }
            };
            notes.push(format!(
                "{} more were dropped than are missing: copies of others, or frames that had been measured before{retried}",
                counted(more, "frame")
            ));
        }
        named
    }
}

/// The network namespaces that have names here: hosts of `ip netns` and of `netdyno lab -- COMMAND`, containers of CNI and Docker.
fn with_names() -> Vec<(u32, Door)> {
    let folders = ["/run/netns", "/run/docker/netns"].map(std::fs::read_dir);
    let files = folders.into_iter().flatten().flatten().flatten().map(|file| file.path());
    files.filter_map(|file| Some((number_of_file(&file)?, Door::File(file)))).collect()
}

/// Had they been measured before? What is dropped at the meter's own interface is, but on its way in.
fn is_behind(one: &Dropped, namespace: u32, meters: &[(Only, String)]) -> bool {
    let is_there =
        |(at, name): &(Only, String)| at.netns == namespace && one.interface.as_ref() == Some(name);
    meters.iter().any(is_there) && !BEFORE_A_METER.iter().any(|function| one.function.starts_with(function))
}

/// Which rows are shown: all that agree with every word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter(Vec<Word>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Protocol(String),
    EtherType(u16),
    Signed,
    Port(u16),
    Function(String),
    Reason(String),
    Stream(u32),
}

const PROTOCOLS: [&str; 10] = ["tcp", "udp", "icmp", "icmpv6", "sctp", "arp", "igmp", "gre", "esp", "lldp"];

impl std::str::FromStr for Filter {
    type Err = anyhow::Error;

    /// Reads words such as `udp and port 53`, `reason NETFILTER_DROP`, `function ip_forward`, `stream 3`.
    fn from_str(text: &str) -> Result<Filter> {
        const HOW: &str = "words are udp, tcp, icmp, arp and the like, ipv4, ipv6, signed, port N, reason NAME, function NAME, stream N, with `and` between \
                           them, and all of them must be true of what is shown";
        let mut found = Vec::new();
        let mut words = text.split_whitespace().filter(|word| *word != "and" && *word != "&&");
        while let Some(word) = words.next() {
            let lower = word.to_ascii_lowercase();
            let alone = match &*lower {
                "ip" | "ipv4" => Some(Word::EtherType(0x0800)),
                "ipv6" | "ip6" => Some(Word::EtherType(0x86dd)),
                "signed" => Some(Word::Signed),
                name => PROTOCOLS.contains(&name).then(|| Word::Protocol(lower.clone())),
            };
            if let Some(word) = alone {
                found.push(word);
                continue;
            }
            if !matches!(&*lower, "port" | "reason" | "function" | "stream") {
                bail!("there is no word `{word}` in a filter of drops: {HOW}");
            }
            let value = words.next().with_context(|| format!("what behind `{word}`? {HOW}"))?;
            let number = || format!("`{value}` is no number of a {lower}");
            found.push(match &*lower {
                "port" => Word::Port(value.parse().with_context(number)?),
                "stream" => Word::Stream(value.parse().with_context(number)?),
                "reason" => Word::Reason(value.to_ascii_uppercase()),
                _ => Word::Function(value.to_owned()),
            });
        }
        match found.is_empty() {
            true => bail!("an empty filter: {HOW}"),
            false => Ok(Filter(found)),
        }
    }
}

impl Filter {
    /// Whether all words are true of a row.
    fn agrees(&self, row: &Row, named: &Named) -> bool {
        self.0.iter().all(|word| word.is_true_of(row, named))
    }
}

impl Word {
    fn is_true_of(&self, row: &Row, named: &Named) -> bool {
        match self {
            Word::Protocol(name) => protocol(row).as_ref() == Some(name),
            Word::EtherType(number) => row.ethertype == *number,
            Word::Signed => matches!(row.kind, Kind::Signed | Kind::SignedByOthers),
            Word::Port(port) => row.port == *port,
            Word::Function(name) => named.function == *name,
            Word::Reason(name) => named.reason == *name,
            Word::Stream(number) => row.kind == Kind::Signed && row.stream == *number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_streams(streams: &[(u32, u64)]) -> Dropped {
        let one = |&(stream, frames): &(u32, u64)| DroppedOfStream {
            stream,
            frames,
            lowest_sequence: 3,
            ..DroppedOfStream::default()
        };
        Dropped {
            kind: DroppedKind::Test,
            frames: streams.iter().map(|(_, frames)| frames).sum(),
            streams: streams.iter().map(one).collect(),
            ..Dropped::default()
        }
    }

    #[test]
    fn parts_of_a_stream_are_dropped_of_that_stream() {
        let sent = SentStreams { parts: 2, lost: [(0, 5), (1, 7)].into(), ..SentStreams::default() };
        let mut one = of_streams(&[(0, 2), (1, 3), (2, 3), (3, 4), (40, 1)]);
        sent.rename(&mut one);
        let of: Vec<(u32, u64)> = one.streams.iter().map(|stream| (stream.stream, stream.frames)).collect();
        assert_eq!(of, [(0, 5), (1, 7), (40, 1)], "the last is somebody else's");
        let mut notes = Vec::new();
        assert_eq!(sent.named(&[one], Some(12), &mut notes), 12);
        assert!(notes.len() == 1 && notes[0].starts_with("1 frame of streams that this run did not send"));
    }

    #[test]
    fn what_was_dropped_beside_what_is_missing_is_told_stream_by_stream() {
        let named = |dropped: &[(u32, u64)], lost: &[(u32, u64)]| {
            let sent =
                SentStreams { parts: 1, lost: lost.iter().copied().collect(), ..SentStreams::default() };
            let mut notes = Vec::new();
            let all = lost.iter().map(|(_, frames)| frames).sum();
            (sent.named(&[of_streams(dropped)], Some(all), &mut notes), notes.concat())
        };
        assert_eq!(named(&[(0, 4), (1, 2)], &[(0, 5), (1, 2)]), (6, String::new()));
        // The sums are the same, and nothing of it fits.
        let (all, said) = named(&[(0, 6), (1, 0)], &[(0, 2), (1, 4)]);
        assert!(all == 6 && said.starts_with("4 frames more were dropped than are missing"), "{said}");
        // Of streams nothing is known.
        let mut sent = SentStreams::default();
        let mut notes = Vec::new();
        assert_eq!(sent.named(&[of_streams(&[(9, 6)])], Some(5), &mut notes), 6);
        assert!(notes.concat().starts_with("1 frame more were dropped") && !notes.concat().contains("again"));
        sent.retried = 1;
        sent.named(&[of_streams(&[(9, 6)])], Some(5), &mut notes);
        assert!(
            notes[1].ends_with("or what was refused to the sender, which tried again (1 time)"),
            "{notes:?}"
        );
    }

    #[test]
    fn what_was_refused_to_a_sender_that_is_told_is_no_loss() {
        let told = SentStreams { parts: 1, lost: [(0, 4), (1, 0)].into(), retried: 9, is_told: true };
        let at = |function: &str, frames: u64| Dropped {
            function: function.to_owned(),
            ..of_streams(&[(0, frames)])
        };
        let mut attempts = at("__dev_direct_xmit", 9);
        assert!(told.was_refused(&attempts));
        assert!(told.was_refused(&at("packet_xmit", 10)), "within batches, of which it knows less");
        assert!(!told.was_refused(&at("ip_error", 4)), "it left");
        let of_no_loss = Dropped { function: "enqueue_to_backlog".to_owned(), ..of_streams(&[(1, 5)]) };
        assert!(told.was_refused(&of_no_loss), "nothing of that stream was lost");
        assert!(!told.was_refused(&at("enqueue_to_backlog", 5)), "some of it was");
        assert!(!SentStreams { is_told: false, ..told }.was_refused(&attempts), "AF_XDP");
        attempts.refused = true;
        let told = SentStreams { parts: 1, lost: [(0, 4)].into(), retried: 9, is_told: true };
        let mut notes = Vec::new();
        assert_eq!(told.named(&[attempts, at("ip_error", 4)], Some(4), &mut notes), 4);
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn what_backlogs_refused_is_no_loss_where_just_so_many_more_were_dropped_than_are_missing() {
        let sent = SentStreams { parts: 1, lost: [(0, 4)].into(), retried: 3, is_told: false };
        let at = |function: &str, frames: u64| Dropped {
            function: function.to_owned(),
            ..of_streams(&[(0, frames)])
        };
        let told = |sent: &SentStreams, backlog: u64, lost: Option<u64>| {
            let mut drops = [at("ip_error", 4), at("enqueue_to_backlog", backlog)];
            sent.tell_attempts(&mut drops, lost);
            let mut notes = Vec::new();
            let named = sent.named(&drops, lost, &mut notes);
            (drops.map(|one| one.refused), named, notes.is_empty())
        };
        assert_eq!(told(&sent, 9, Some(4)), ([false, true], 4, true));
        // One of them may be of those that are missing, or a copy: which, nobody says.
        assert_eq!(told(&sent, 9, Some(5)), ([false, false], 13, false));
        assert_eq!(told(&sent, 9, Some(13)), ([false, false], 13, false));
        assert_eq!(told(&sent, 9, None).0, [false, false]);
        let untold = SentStreams { retried: 0, ..sent };
        assert_eq!(told(&untold, 9, Some(4)).0, [false, false], "its sender was told of none");
    }

    fn row(protocol: u8, port: u16) -> Row {
        Row {
            location: 5,
            reason: 1,
            netns: 0,
            ifindex: 0,
            interface: String::new(),
            kind: Kind::Ordinary,
            stream: 0,
            ethertype: 0x0800,
            protocol,
            port,
            coarse: false,
            frames: 1,
            bytes: 60,
            copies: 0,
            first_ns: 0,
            last_ns: 0,
            first_sequence: 0,
            last_sequence: 0,
            lowest: 0,
            highest: 0,
        }
    }

    #[test]
    fn what_was_dropped_nowhere_is_not_in_the_namespace_of_the_command() {
        let there = |netns, kind| Row { netns, kind, frames: 9, ..row(17, 53) };
        let all =
            [there(0, Kind::Signed), there(7, Kind::Signed), there(8, Kind::Signed), there(0, Kind::Local)];
        let counted = Counted { rows: all.to_vec(), ..Counted::default() };
        let shown = rows(&counted, &Names::default(), 7, 0);
        let mut shown: Vec<_> =
            shown.iter().map(|(one, _)| (one.frames, one.namespace, one.namespace_unknown)).collect();
        shown.sort_unstable();
        assert_eq!(shown, [(9, None, false), (9, None, true), (9, Some(8), false)]);
    }

    #[test]
    fn a_filter_shows_what_all_its_words_are_true_of() {
        let rows = [
            (row(17, 53), "a"),
            (row(17, 54), "b"),
            (row(6, 53), "a"),
            (Row { ethertype: 0x86dd, ..row(17, 53) }, "a"),
            (Row { kind: Kind::Signed, stream: 3, ..row(17, 53) }, "b"),
            (Row { kind: Kind::SignedByOthers, stream: 3, ..row(17, 53) }, "b"),
        ];
        for (filter, shown) in [
            ("udp", &[0, 1, 3, 4, 5][..]),
            ("udp and port 54", &[1]),
            ("PORT 53", &[0, 2, 3, 4, 5]),
            ("function a && reason no_socket", &[0, 2, 3]),
            ("ipv6", &[3]),
            ("ipv4 and tcp", &[2]),
            ("signed and udp and port 53", &[4, 5]),
            ("stream 3", &[4]),
        ] {
            let read: Filter = filter.parse().expect("well-formed");
            let agrees = |(row, function): &(Row, &str)| {
                read.agrees(row, &Named { function: (*function).to_owned(), reason: "NO_SOCKET".to_owned() })
            };
            let found: Vec<usize> = (0..rows.len()).filter(|at| agrees(&rows[*at])).collect();
            assert_eq!(found, shown, "{filter}");
        }
        assert!(
            Filter::default().agrees(&row(1, 0), &Named { function: String::new(), reason: String::new() })
        );
        for (wrong, wanted) in [
            ("", "an empty filter"),
            ("udp or tcp", "no word `or`"),
            ("port", "what behind `port`?"),
            ("port http", "`http` is no number of a port"),
        ] {
            let error = format!("{:#}", wrong.parse::<Filter>().expect_err(wrong));
            assert!(error.contains(wanted), "{wrong}: {error}");
        }
    }
}
