//! Flow profiles to streams and lanes: packet *j* of each flow of a class is a stream, each time of a flow is a lane.
//!
//! ```text
//!   flow i of the profile begins at start + floor(i * per_ns / flows), and is of class cycle[i % cycle.len()]
//!   a class: protocol, packets P, duration D; its packet j leaves floor(D * j / (P - 1)) after the flow's begin
//!
//!   lane  0      |0 1 2 0 0 1 ...   first packets of all flows             frame k of each stream is of the class's
//!   lane  D / 3  |  1     1 ...     second packets of those with four      flow k, in all of its streams alike: the
//!   lane  D      |0 1 2 0 0 1 ...   last packets                           same laws, begun so much later
//! ```
//!
//! So nothing is kept of a flow while it lasts, and as many may be under way as there are keys. Packets of a flow keep
//! their distances to the nanosecond, because all lanes follow one function of the flow's number.

use super::compile::{Context, Sign, sign_of};
use super::error::{Fault, Outcome, Place};
use super::keys::{Keys, Space};
use super::model::{Defaults, File, SizeText, Time};
use super::profile::{Packets, Port, PortRange, Profile, Transport};
use super::timing;
use super::weighted::Weighted;
use super::yaml::At;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use traffic::expr::{self, FCS, Options, Size};
use traffic::fraction::gcd;
use traffic::lengths::Lengths;
use traffic::program::{self, Lane};
use traffic::schedule::{Schedule, Speed};
use traffic::values;

/// Flows until kinds of flows repeat their order, at most.
const MAX_CYCLE: u64 = 1 << 16;
/// Entries of a size table, at most: TCP's sequence numbers follow each of them.
const MAX_TABLE: usize = 1024;
/// Between two packets of a flow at least.
const LEAST_GAP_NS: u64 = 1_000;
/// Seeds of classes begin here, so that they are not those of streams.
const SEEDS: u64 = 1 << 32;

/// What a flow profile comes to, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPlan {
    /// Its name.
    pub name: String,
    /// New flows, in so many nanoseconds.
    pub rate: (u64, u64),
    /// Flows in all; `None` without end.
    pub flows: Option<u64>,
    /// The first flow begins so long after the run's start.
    pub start_ns: u64,
    /// Flows of one protocol, number of packets and duration.
    pub classes: Vec<FlowClass>,
}

/// Flows that differ in nothing but their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowClass {
    /// `tcp`, `udp` or `icmp`.
    pub protocol: &'static str,
    /// Packets of each flow.
    pub packets: u32,
    /// From the first packet to the last; 0 for one packet.
    pub duration_ns: u64,
    /// Of each so many flows of the profile ...
    pub cycle: u32,
    /// ... so many are of this class.
    pub share: u32,
    /// Flows in all; `None` without end.
    pub flows: Option<u64>,
    /// Flows until a key comes again.
    pub different_keys: u128,
}

impl FlowPlan {
    /// New flows per second.
    pub fn flows_per_second(&self) -> f64 {
        self.rate.0 as f64 * 1e9 / self.rate.1 as f64
    }

    /// Frames of all flows; `None` without end.
    pub fn frames(&self) -> Option<u64> {
        let of = |class: &FlowClass| class.flows.map(|flows| flows.saturating_mul(class.packets.into()));
        self.classes.iter().map(of).try_fold(0u64, |sum, frames| Some(sum.saturating_add(frames?)))
    }

    /// Frames per second while as many flows begin as end.
    pub fn frames_per_second(&self) -> f64 {
        self.per_flow(|class| class.packets.into()) * 1e9
    }

    /// Flows under way at a time while as many begin as end: those of one packet last no time.
    pub fn concurrency(&self) -> f64 {
        self.per_flow(|class| class.duration_ns)
    }

    /// What a flow has, of all flows that begin in a nanosecond. Sums are integers, so that the figure has one rounding.
    fn per_flow(&self, of: impl Fn(&FlowClass) -> u64) -> f64 {
        let (flows, per_ns) = self.rate;
        let cycle = self.classes.first().map_or(1, |class| class.cycle.max(1));
        let all: u128 =
            self.classes.iter().map(|class| u128::from(class.share) * u128::from(of(class))).sum();
        all.saturating_mul(flows.into()) as f64 / (u128::from(per_ns) * u128::from(cycle)) as f64
    }

    /// The longest flow.
    pub fn longest_ns(&self) -> u64 {
        self.classes.iter().map(|class| class.duration_ns).max().unwrap_or(0)
    }

    /// Flows of the class with the fewest keys until one comes again, in flows of the whole profile.
    pub fn different_keys(&self) -> u128 {
        let all = |class: &FlowClass| {
            class.different_keys.saturating_mul(class.cycle.into()) / u128::from(class.share.max(1))
        };
        self.classes.iter().map(all).min().unwrap_or(0)
    }
}

/// A profile's part of the program.
pub(super) struct Made {
    pub plan: FlowPlan,
    pub streams: Vec<program::Stream>,
    /// Streams are numbered as in the whole program.
    pub lanes: Vec<Lane>,
    /// Its frames would have been signed, had there been room.
    pub unsigned: bool,
}

/// A class before it has keys.
#[derive(Clone, Copy)]
struct Kind {
    transport: Transport,
    packets: u32,
    duration_ns: u64,
    share: u32,
}

impl Kind {
    /// When packet `j` leaves, from the flow's begin.
    fn at(&self, j: u32) -> u64 {
        match self.packets {
            0 | 1 => 0,
            packets => (u128::from(self.duration_ns) * u128::from(j) / u128::from(packets - 1)) as u64,
        }
    }
}

fn fault(place: Place, message: impl Into<String>) -> Fault {
    Fault { place, message: message.into() }
}

/// All profiles of a file; `before` streams stand in front of theirs.
pub(super) fn compile(file: &File, context: &Context, before: usize) -> Outcome<Vec<Made>> {
    let mut made = Vec::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut spaces: Vec<(String, &Profile, Space)> = Vec::new();
    let mut next = before;
    for (number, at) in file.flows.0.iter().enumerate() {
        let profile = &at.value;
        let name =
            profile.name.as_ref().map_or_else(|| format!("flows {}", number + 1), |n| n.value.0.clone());
        let name_at = profile.name.as_ref().map_or(at.place, |name| name.place);
        if let Some(other) = names.insert(name.clone(), number) {
            let message =
                format!("`{name}` is the name of flow profile {}, too: names must differ", other + 1);
            return Err(fault(name_at, message));
        }
        let space = space(profile)?;
        if let Some((other, ..)) = spaces.iter().find(|(_, p, s)| may_collide((p, s), (profile, &space))) {
            let message = format!(
                "flows of `{other}` and `{name}` may have the same addresses and ports: give one of them another `source`, `destination`, `source_port` or `destination_port`"
            );
            return Err(fault(space.place, message));
        }
        let one =
            Compiler { file, context, profile, at, name: &name, number, first: next }.compile(&space)?;
        next += one.streams.len();
        made.push(one);
        spaces.push((name, profile, space));
    }
    Ok(made)
}

/// Where a profile's keys come from.
fn space(profile: &Profile) -> Outcome<Space> {
    let (source, destination) = (&profile.source, &profile.destination);
    if source.value.first.is_ipv4() != destination.value.first.is_ipv4() {
        let message =
            "source and destination are of different IP versions: give both as IPv4 or both as IPv6";
        return Err(fault(destination.place, message));
    }
    let ports = profile.source_port.as_ref().map_or(PortRange { first: 1024, last: 65535 }, |p| p.value);
    Ok(Space { source: source.value, destination: destination.value, ports, place: source.place })
}

fn transports(profile: &Profile) -> Vec<(Transport, u32)> {
    profile.protocol.as_ref().map_or(vec![(Transport::Udp, 1)], |protocol| protocol.value.0.clone())
}

fn destination_ports(profile: &Profile) -> Vec<(u16, u32)> {
    match &profile.destination_port {
        Some(At { value: Weighted(ports), .. }) => {
            ports.iter().map(|(Port(p), share)| (*p, *share)).collect()
        }
        None => vec![(443, 1)],
    }
}

/// May two profiles have a key in common?
fn may_collide((a, in_a): (&Profile, &Space), (b, in_b): (&Profile, &Space)) -> bool {
    if !in_a.meets(in_b) {
        return false;
    }
    let (of_a, of_b) = (transports(a), transports(b));
    of_a.iter().filter(|(t, _)| of_b.iter().any(|(other, _)| other == t)).any(|(transport, _)| {
        let ports = destination_ports(b);
        *transport == Transport::Icmp
            || in_a.shares_ports(in_b)
                && destination_ports(a).iter().any(|(p, _)| ports.iter().any(|(other, _)| other == p))
    })
}

struct Compiler<'a> {
    file: &'a File,
    context: &'a Context,
    profile: &'a Profile,
    at: &'a At<Profile>,
    name: &'a str,
    number: usize,
    /// Number of its first stream.
    first: usize,
}

impl<'a> Compiler<'a> {
    fn defaults(&self) -> &'a Defaults {
        &self.file.defaults
    }

    fn compile(&self, space: &Space) -> Outcome<Made> {
        let kinds = self.kinds()?;
        let total = kinds.iter().map(|kind| u64::from(kind.share)).sum::<u64>();
        let parts: Vec<(u32, u32)> = (0u32..).zip(&kinds).map(|(n, kind)| (n, kind.share)).collect();
        let Lengths::List(cycle) = Lengths::mix(&parts) else {
            return Err(fault(self.at.place, "these shares make no order"));
        };
        let rate = self.rate(&kinds, total)?;
        let start_ns = self.profile.start.as_ref().map_or(0, |start| start.value.0);
        let flows = self.flows(rate, start_ns, &kinds)?;
        let own = |n: u32| flows.map(|flows| among(&cycle, flows, |kind| kind == n));
        let keys = self.keys(space, &kinds, own)?;
        let mut streams: Vec<program::Stream> = Vec::new();
        let mut at: BTreeMap<u64, Vec<Option<u32>>> = BTreeMap::new();
        let mut unsigned = false;
        let (sizes, sizes_at) = self.sizes()?;
        for (n, (kind, keys)) in kinds.iter().zip(&keys).enumerate() {
            let frames = Frames { of: self, kind, keys, sizes: &sizes, sizes_at, class: n };
            let number = u32::try_from(self.first + streams.len()).unwrap_or(u32::MAX);
            let (own, signed) = frames.streams(number)?;
            unsigned |= !signed;
            for j in 0..kind.packets {
                let members = at.entry(kind.at(j)).or_insert_with(|| vec![None; kinds.len()]);
                if let Some(member) = members.get_mut(n) {
                    *member = Some(number + j);
                }
            }
            streams.extend(own);
        }
        let lanes: Vec<Lane> = at
            .iter()
            .map(|(after, members)| Lane {
                start_ns: start_ns.saturating_add(*after),
                ..lane(&cycle, members, rate, flows)
            })
            .collect();
        let classes = kinds.iter().zip(&keys).zip(0u32..).map(|((kind, keys), n)| FlowClass {
            protocol: kind.transport.name(),
            packets: kind.packets,
            duration_ns: kind.duration_ns,
            cycle: u32::try_from(total).unwrap_or(u32::MAX),
            share: kind.share,
            flows: own(n),
            different_keys: keys.different,
        });
        let plan = FlowPlan { name: self.name.to_owned(), rate, flows, start_ns, classes: classes.collect() };
        Ok(Made { plan, streams, lanes, unsigned })
    }

    /// All kinds of flows, with their shares in lowest terms.
    fn kinds(&self) -> Outcome<Vec<Kind>> {
        let one = Weighted(vec![(Packets(1), 1)]);
        let packets = self.profile.packets.as_ref();
        let (counts, counts_at) = packets.map_or((&one, self.at.place), |at| (&at.value, at.place));
        let durations = self.profile.duration.as_ref();
        if durations.is_none() && counts.0.iter().any(|(Packets(count), _)| *count > 1) {
            let message =
                "how long does a flow last? Give `duration`, from its first packet to its last (2s)";
            return Err(fault(counts_at, message));
        }
        let none = Weighted(vec![(Time(0), 1)]);
        let (durations, durations_at) = durations.map_or((&none, self.at.place), |at| (&at.value, at.place));
        let mut kinds: Vec<Kind> = Vec::new();
        let (mut cycle, mut all) = (0u64, 0u64);
        let sum = |shares: u64, share: u32| shares + u64::from(share);
        let duration_shares = durations.0.iter().map(|(_, share)| *share).fold(0, sum);
        for (transport, part) in transports(self.profile) {
            for (Packets(packets), of) in &counts.0 {
                for (Time(duration_ns), with) in &durations.0 {
                    // A flow of one packet lasts no time: one kind, whatever the durations.
                    let single = *packets == 1;
                    let with = if single { duration_shares } else { u64::from(*with) };
                    let share = u64::from(part) * u64::from(*of) * with;
                    let gap = duration_ns.checked_div(u64::from(packets - 1));
                    if gap.is_some_and(|gap| gap < LEAST_GAP_NS) {
                        let message = format!(
                            "{packets} packets within {duration_ns} ns are less than 1 us apart: give a longer duration or fewer packets"
                        );
                        return Err(fault(durations_at, message));
                    }
                    cycle = cycle.saturating_add(share);
                    all += u64::from(*packets);
                    if self.first as u64 + all > super::MAX_STREAMS as u64 {
                        let message = format!(
                            "each packet of each kind of flow (protocol, packets, duration) is a stream, and these come to more than the {} that a scenario has: give fewer packets, or fewer kinds",
                            super::MAX_STREAMS
                        );
                        return Err(fault(counts_at, message));
                    }
                    let duration_ns = if single { 0 } else { *duration_ns };
                    let share = u32::try_from(share).unwrap_or(u32::MAX);
                    kinds.push(Kind { transport, packets: *packets, duration_ns, share });
                    if single {
                        break;
                    }
                }
            }
        }
        let divisor = kinds.iter().fold(0, |divisor, kind| gcd(divisor, kind.share)).max(1);
        if cycle / u64::from(divisor) > MAX_CYCLE {
            let message = format!(
                "the shares of protocols, packets and durations come to an order of {} flows before it repeats; {MAX_CYCLE} are the most: round them",
                cycle / u64::from(divisor)
            );
            return Err(fault(counts_at, message));
        }
        kinds.iter_mut().for_each(|kind| kind.share /= divisor);
        Ok(kinds)
    }

    /// New flows, in so many nanoseconds.
    fn rate(&self, kinds: &[Kind], total: u64) -> Outcome<(u64, u64)> {
        match (&self.profile.rate, &self.profile.concurrency) {
            (Some(_), Some(concurrency)) => {
                let message =
                    "`rate` and `concurrency` follow from each other by the duration: keep one of them";
                Err(fault(concurrency.place, message))
            }
            (Some(rate), None) => {
                let per = u128::from(rate.value.0.denominator) * 1_000_000_000;
                timing::reduced(rate.value.0.numerator.into(), per)
                    .ok_or_else(|| fault(rate.place, "this rate has too many digits"))
            }
            (None, Some(concurrency)) => {
                let lasting =
                    kinds.iter().map(|kind| u128::from(kind.share) * u128::from(kind.duration_ns)).sum();
                let flows = u128::from(concurrency.value.0) * u128::from(total);
                timing::reduced(flows, lasting).ok_or_else(|| {
                    fault(concurrency.place, "flows of one packet are never under way at a time: give `rate`")
                })
            }
            (None, None) => {
                let message = "how many new flows? Give `rate` (10kflows/s), or `concurrency` (20k)";
                Err(fault(self.at.place, message))
            }
        }
    }

    /// How many flows: as many as were asked for, or as end within the run.
    fn flows(&self, rate: (u64, u64), start_ns: u64, kinds: &[Kind]) -> Outcome<Option<u64>> {
        let count = self.profile.count.as_ref().map(|count| count.value.0);
        let place = self.file.duration.as_ref().map_or(self.at.place, |time| time.place);
        let run = self.context.duration.or(self.file.duration.as_ref().map(|time| time.value.0));
        let Some(run) = run else { return Ok(count) };
        let longest = kinds.iter().map(|kind| kind.duration_ns).max().unwrap_or(0);
        let Some(room) =
            run.checked_sub(start_ns).and_then(|ns| ns.checked_sub(longest)).and_then(|ns| ns.checked_sub(1))
        else {
            let message = format!(
                "the run ends after {run} ns, before the first flow of `{}` can (it begins after {start_ns} ns and lasts {longest} ns): give a longer run",
                self.name
            );
            return Err(fault(place, message));
        };
        let within = Schedule::Frames { frames: rate.0, per_ns: rate.1 }.frames_due_by(room).unwrap_or(0);
        Ok(Some(count.map_or(within, |count| count.min(within))))
    }

    /// Each kind's keys.
    fn keys(&self, space: &Space, kinds: &[Kind], own: impl Fn(u32) -> Option<u64>) -> Outcome<Vec<Keys>> {
        let mut all: Vec<Option<Keys>> = vec![None; kinds.len()];
        for transport in [Transport::Tcp, Transport::Udp, Transport::Icmp] {
            let of: Vec<usize> = (0..kinds.len()).filter(|&n| kinds[n].transport == transport).collect();
            let classes: Vec<(u32, Option<u64>)> =
                of.iter().map(|&n| (kinds[n].share, own(u32::try_from(n).unwrap_or(u32::MAX)))).collect();
            for ((n, (_, flows)), keys) in of.iter().zip(&classes).zip(space.divide(transport, &classes)?) {
                if flows.is_some_and(|flows| u128::from(flows) > keys.different) {
                    let kind = &kinds[*n];
                    return Err(space.fault(format!(
                        "`{}` has {} {} flows of {} packets, but addresses and ports for {}: give a shorter prefix for `source` or `destination`, a wider `source_port`, or fewer flows",
                        self.name,
                        flows.unwrap_or(0),
                        transport.name(),
                        kind.packets,
                        keys.different
                    )));
                }
                all[*n] = Some(keys);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// Frame sizes in their order, the frame check sequence counted, and the place that says them; none if nothing does.
    fn sizes(&self) -> Outcome<(Vec<u32>, Place)> {
        let default = self.defaults().size.as_ref().filter(|_| self.context.size.is_none());
        let own: Option<&At<SizeText>> = self.profile.size.as_ref().or(default);
        let place = own.map_or(self.at.place, |size| size.place);
        let size = match own {
            Some(size) => Some(size.value.0.parse::<Size>().map_err(|bad| fault(place, bad.to_string()))?),
            None => self.context.size.clone(),
        };
        let sizes = match size {
            None => Vec::new(),
            Some(Size::Fixed(size)) => vec![size],
            Some(Size::List(sizes)) => sizes,
            Some(Size::Mix(parts)) => match Lengths::mix(&parts) {
                Lengths::List(sizes) => sizes.to_vec(),
                _ => Vec::new(),
            },
            Some(Size::Random { .. }) => {
                let message = "sizes of flows follow an order, so that sequence numbers can: give a table ({64: 50%, 1500: 50%}), imix or a range";
                return Err(fault(place, message));
            }
        };
        if sizes.len() > MAX_TABLE {
            let message = format!(
                "these sizes repeat after {} frames; {MAX_TABLE} are the most for flows: round the shares",
                sizes.len()
            );
            return Err(fault(place, message));
        }
        Ok((sizes, place))
    }
}

/// How many of the first `flows` are of kinds that `is`.
fn among(cycle: &[u32], flows: u64, is: impl Fn(u32) -> bool) -> u64 {
    let length = (cycle.len() as u64).max(1);
    let count = |part: &[u32]| part.iter().filter(|kind| is(**kind)).count() as u64;
    let rest = usize::try_from(flows % length).unwrap_or(0);
    flows / length * count(cycle) + count(cycle.get(..rest).unwrap_or_default())
}

/// The lane of one packet of flows: of each kind that has a member its stream.
fn lane(cycle: &[u32], members: &[Option<u32>], rate: (u64, u64), flows: Option<u64>) -> Lane {
    let member = |kind: u32| members.get(kind as usize).copied().flatten();
    let order: Arc<[u32]> = cycle.iter().filter_map(|&kind| member(kind)).collect();
    let schedule = if order.len() == cycle.len() {
        Schedule::Frames { frames: rate.0, per_ns: rate.1 }
    } else {
        // The same function of the flow's number, at the numbers that have this packet.
        let offsets = (0u64..).zip(cycle).filter(|(_, kind)| member(**kind).is_some()).map(|(i, _)| i);
        let speed = Speed { numerator: rate.0, denominator: rate.1 };
        Schedule::Times { offsets: offsets.collect(), period_ns: cycle.len() as u64, speed }
    };
    let frames = flows.map(|flows| among(cycle, flows, |kind| member(kind).is_some()));
    Lane { frames, ..Lane::new(order, schedule) }
}

/// The frames of one class.
struct Frames<'a> {
    of: &'a Compiler<'a>,
    kind: &'a Kind,
    keys: &'a Keys,
    sizes: &'a [u32],
    sizes_at: Place,
    class: usize,
}

impl Frames<'_> {
    /// A stream for each packet, and whether they are signed as was wished.
    fn streams(&self, first: u32) -> Outcome<(Vec<program::Stream>, bool)> {
        let said = self.of.profile.sign.as_ref().or(self.of.defaults().sign.as_ref()).map(|sign| sign.value);
        let sign = sign_of(said, self.of.context.sign);
        let all = |signed: bool| -> Outcome<Vec<program::Stream>> {
            (0..self.kind.packets).map(|j| self.stream(j, signed.then_some(first + j))).collect()
        };
        match sign {
            Sign::All => Ok((all(true)?, true)),
            Sign::No => Ok((all(false)?, true)),
            Sign::WhereRoom => match all(true) {
                Ok(streams) => Ok((streams, true)),
                Err(_) => Ok((all(false)?, false)),
            },
        }
    }

    /// Bytes in front of the payload.
    fn headers(&self) -> u32 {
        let ip = if self.is_v4() { 20 } else { 40 };
        14 + ip + if self.kind.transport == Transport::Tcp { 20 } else { 8 }
    }

    fn is_v4(&self) -> bool {
        matches!(self.of.profile.source.value.first, IpAddr::V4(_))
    }

    /// Sizes of packet `j`: the same order for each packet, each beginning one later, so that the packets of a flow differ.
    fn sizes(&self, j: u32) -> Vec<u32> {
        if self.sizes.is_empty() {
            return vec![(self.headers() + FCS).max(64)];
        }
        let mut sizes = self.sizes.to_vec();
        let by = j as usize % sizes.len();
        sizes.rotate_left(by);
        sizes
    }

    /// TCP sequence numbers of packet `j`: what the packets before it have, the SYN counted as one.
    fn sequence(&self, j: u32) -> String {
        let mut numbers = vec![u32::from(j > 0); self.sizes(0).len()];
        for before in 0..j {
            for (number, size) in numbers.iter_mut().zip(self.sizes(before)) {
                let payload = size.saturating_sub(FCS + self.headers());
                *number = number.wrapping_add(payload);
            }
        }
        match &numbers[..] {
            [first, rest @ ..] if rest.iter().any(|number| number != first) => {
                let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
                format!("[{}]", list.join(","))
            }
            numbers => numbers.first().copied().unwrap_or(0).to_string(),
        }
    }

    fn expression(&self, j: u32) -> String {
        let ip = if self.is_v4() { "ipv4" } else { "ipv6" };
        let transport = match self.kind.transport {
            Transport::Icmp => {
                let name = if self.is_v4() { "icmp" } else { "icmpv6" };
                format!("{name}(type=echo-request, id=1, seq={})", j + 1)
            }
            Transport::Udp => {
                format!("udp(sport={}, dport={})", self.keys.source_port(), self.destination_port())
            }
            Transport::Tcp => {
                let flags = match j {
                    0 => "S",
                    j if j + 1 == self.kind.packets => "FA",
                    _ => "PA",
                };
                // Whoever acknowledges has had the other side's SYN.
                let acknowledged = u8::from(j > 0);
                format!(
                    "tcp(sport={}, dport={}, seq={}, ack={acknowledged}, flags={flags})",
                    self.keys.source_port(),
                    self.destination_port(),
                    self.sequence(j)
                )
            }
        };
        format!("{ip}({})/{transport}", self.keys.addresses())
    }

    fn destination_port(&self) -> String {
        let ports: Vec<(u32, u32)> = destination_ports(self.of.profile)
            .into_iter()
            .map(|(port, share)| (u32::from(port), share))
            .collect();
        match Lengths::mix(&ports) {
            Lengths::List(list) if list.len() > 1 => {
                let list: Vec<String> = list.iter().map(u32::to_string).collect();
                format!("[{}]", list.join(","))
            }
            _ => ports.first().map_or(0, |(port, _)| *port).to_string(),
        }
    }

    fn stream(&self, j: u32, signature: Option<u32>) -> Outcome<program::Stream> {
        let Kind { transport, packets, duration_ns, .. } = *self.kind;
        let lasting = match self.of.profile.duration.as_ref().map_or(1, |at| at.value.0.len()) {
            0 | 1 => String::new(),
            _ => format!(" {duration_ns} ns"),
        };
        let name = format!("{} {}{lasting} {}/{packets}", self.of.name, transport.name(), j + 1);
        let sizes = self.sizes(j);
        let size = if let [only] = sizes[..] { Size::Fixed(only) } else { Size::List(sizes) };
        // The same for all packets of a class: fields are numbered alike in each, so that flow k has the same key.
        let seed = SEEDS + ((self.of.number as u64) << 16) + self.class as u64;
        let seed = values::hash(self.of.context.seed, seed);
        let options = Options { size: Some(size), seed, signature, name };
        let made = expr::compile(&self.expression(j), &options).map_err(|bad| {
            fault(self.sizes_at, format!("frames of {} flows: {}", transport.name(), bad.message))
        })?;
        made.streams.into_iter().next().ok_or_else(|| fault(self.of.at.place, "this makes no frames"))
    }
}
