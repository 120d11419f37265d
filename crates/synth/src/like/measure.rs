//! Takes the statistics of a capture, frame by frame, in bounded memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use wire::LinkType;
use wire::flow::{FlowHasher, FlowKey, FlowMap, FlowOf};
use wire::layers::{L3, Layers};
use wire::numbers::{ethertype, protocol};

use super::distribution::{Bin, Bins, Scale};
use super::profile::{
    BadProfile, Blocks, FlowProfile, Hosts, IPV4_BLOCKS, IPV6_BLOCKS, Interval, KINDS, Kind, MAC_BLOCKS,
    Other, PLACES, SCHEMA, Shape, Sizes, Tags, What, shortest,
};

/// Conversations that are told apart: what a hash table of 2^22 places takes. With the hosts, which can be twice as many, this
/// comes to less than 1 GB, whatever the length of the capture.
pub const CONVERSATIONS: usize = 7 << 19;

/// Kinds told apart while measuring: four times what is kept, so that a few early ones do not displace the common ones.
const OPEN_KINDS: usize = 4 * KINDS;
/// The first port of those that no service has of its own (RFC 6335 section 6): their numbers are not kept.
const FIRST_DYNAMIC: u16 = 49152;
/// Intervals: when there are more, two and two become one.
const MOST_INTERVALS: usize = 64;
/// Kinds of other frames that are told apart.
const OTHERS: usize = KINDS;

/// A frame of a capture.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The first byte is a header of this type.
    pub link: LinkType,
    /// Its bytes, as far as they were captured.
    pub bytes: &'a [u8],
    /// How long it was, without FCS.
    pub length: u32,
    /// When, in ns; of whatever beginning.
    pub time_ns: u64,
}

/// What conversations of a kind have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct KindKey {
    ip: u8,
    protocol: u8,
    tags: Tags,
    port: Service,
}

/// A service's port, or one of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Service {
    Port(u16),
    /// Below 1024, below 49152, above.
    Class(u8),
}

#[derive(Debug)]
struct Open {
    key: KindKey,
    frames: u64,
    sizes: [Vec<Bins>; 2],
    /// Of a class: which ports, one bit each.
    ports: Option<Box<[u64; 1024]>>,
}

impl Open {
    fn new(key: KindKey) -> Open {
        let ports = matches!(key.port, Service::Class(_)).then(|| Box::new([0; 1024]));
        let sizes = || vec![Bins::new(Scale::Sizes); PLACES];
        Open { key, frames: 0, sizes: [sizes(), sizes()], ports }
    }

    fn note_port(&mut self, port: u16) {
        let word = self.ports.as_mut().and_then(|ports| ports.get_mut(usize::from(port >> 6)));
        if let Some(word) = word {
            *word |= 1 << (port & 63);
        }
    }

    fn merge(&mut self, other: &Open) {
        self.frames += other.frames;
        for (own, theirs) in self.sizes.iter_mut().flatten().zip(other.sizes.iter().flatten()) {
            own.merge(theirs);
        }
        if let Service::Port(port) = other.key.port {
            self.note_port(port);
        }
    }
}

/// A conversation under way.
#[derive(Debug, Clone, Copy)]
struct Talk {
    first_ns: u64,
    last_ns: u64,
    frames: [u32; 2],
    kind: u16,
    /// The client is the source of the key that stands for both directions.
    client_is_source: bool,
    server_first: bool,
    opened: bool,
    finished: bool,
    reset: bool,
}

#[derive(Debug, Clone)]
struct Part {
    starts: Bins,
    gaps: Bins,
}

impl Part {
    fn new() -> Part {
        Part { starts: Bins::new(Scale::Times), gaps: Bins::new(Scale::Times) }
    }
}

/// What a host did.
const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const SENT: u8 = 4;
const GOT: u8 = 8;

/// Statistics in the making.
#[derive(Debug)]
pub struct Measure {
    server_port: fn(&FlowKey) -> u16,
    limit: usize,
    talks: FlowMap<Talk>,
    kinds: Vec<Open>,
    kind_of: HashMap<KindKey, u16, FlowHasher>,
    hosts: HashMap<IpAddr, u8, FlowHasher>,
    others: BTreeMap<(What, Tags), Bins>,
    vlans: HashSet<u16, FlowHasher>,
    parts: Vec<Part>,
    part_ns: u64,
    times: Option<(u64, u64)>,
    /// Whether each block has had an address of the capture.
    used: ([bool; IPV4_BLOCKS.len()], [bool; IPV6_BLOCKS.len()], [bool; MAC_BLOCKS.len()]),
    left_out: u64,
    resized: u64,
}

impl Measure {
    /// Nothing was seen yet. `server_port` tells which of a flow's two ports is the server's.
    pub fn new(server_port: fn(&FlowKey) -> u16) -> Measure {
        Measure::with_limit(server_port, CONVERSATIONS)
    }

    fn with_limit(server_port: fn(&FlowKey) -> u16, limit: usize) -> Measure {
        Measure {
            server_port,
            limit,
            talks: FlowMap::default(),
            kinds: Vec::new(),
            kind_of: HashMap::default(),
            hosts: HashMap::default(),
            others: BTreeMap::new(),
            vlans: HashSet::default(),
            parts: Vec::new(),
            part_ns: 1_000,
            times: None,
            used: Default::default(),
            left_out: 0,
            resized: 0,
        }
    }

    /// Frames of conversations beyond [`CONVERSATIONS`]: not in the statistics.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Frames counted longer than they were, because the look-alike's Ethernet and IP headers need it: those of other link
    /// layers, and those whose headers contradict their length.
    pub fn resized(&self) -> u64 {
        self.resized
    }

    /// Counts a frame.
    pub fn add(&mut self, frame: &Seen<'_>) {
        let layers = Layers::parse(frame.link, frame.bytes);
        let tags = Tags {
            vlan: layers.vlan_tags.min(4),
            mpls: if layers.pppoe { 0 } else { layers.mpls_labels.min(8) },
            pppoe: layers.pppoe,
        };
        self.note_addresses(frame, &layers);
        let flow = FlowKey::of(&layers, frame.bytes);
        let begins = match flow {
            FlowOf::Flow(key) => !self.talks.contains_key(&key.conversation()),
            _ => false,
        };
        if begins && self.talks.len() >= self.limit {
            self.left_out += 1;
            return;
        }
        if let Some(vlan) = layers.vlan {
            self.vlans.insert(vlan);
        }
        let at = self.gap(frame.time_ns, begins);
        match flow {
            FlowOf::Flow(key) => self.conversation(frame, &layers, tags, key, at),
            _ => self.other(frame, &layers, tags, flow),
        }
    }

    /// Counts the time since the frame before; gives the time since the first.
    fn gap(&mut self, time_ns: u64, begins: bool) -> u64 {
        let (first, before) = self.times.unwrap_or((time_ns, time_ns));
        // Where times run backwards, frames come at once.
        let now = time_ns.max(before);
        self.times = Some((first, now));
        let at = now - first;
        while at / self.part_ns >= MOST_INTERVALS as u64 {
            self.part_ns = self.part_ns.saturating_mul(2);
            let merged = self.parts.chunks(2).map(|two| {
                let mut sum = Part::new();
                for part in two {
                    sum.starts.merge(&part.starts);
                    sum.gaps.merge(&part.gaps);
                }
                sum
            });
            self.parts = merged.collect();
        }
        let index = (at / self.part_ns) as usize;
        if self.parts.len() <= index {
            self.parts.resize_with(index + 1, Part::new);
        }
        if let Some(part) = self.parts.get_mut(index) {
            if begins { &mut part.starts } else { &mut part.gaps }.add(now - before);
        }
        at
    }

    /// Which blocks of addresses the capture has addresses of.
    fn note_addresses(&mut self, frame: &Seen<'_>, layers: &Layers) {
        let (v4, v6, mac) = &mut self.used;
        if frame.link == LinkType::ETHERNET {
            for address in
                [frame.bytes.first_chunk::<3>(), frame.bytes.get(6..).and_then(|b| b.first_chunk())]
            {
                let Some(&[first, b'N', b'D']) = address else { continue };
                for (used, block) in mac.iter_mut().zip(MAC_BLOCKS) {
                    *used |= first == block;
                }
            }
        }
        let packet = frame.bytes.get(layers.l3_offset..).unwrap_or(&[]);
        let v4_at: &[usize] = match layers.l3 {
            L3::V4 => &[12, 16],
            L3::Arp => &[14, 24],
            _ => &[],
        };
        for at in v4_at {
            let Some(address) = packet.get(*at..).and_then(|rest| rest.first_chunk::<4>()) else { continue };
            let address = u32::from_be_bytes(*address);
            for (used, (block, bits)) in v4.iter_mut().zip(IPV4_BLOCKS) {
                *used |= (address ^ block.to_bits()) >> bits == 0;
            }
        }
        if layers.l3 == L3::V6 {
            for at in [8, 24] {
                let Some(address) = packet.get(at..).and_then(|rest| rest.first_chunk::<16>()) else {
                    continue;
                };
                let address = u128::from_be_bytes(*address);
                for (used, block) in v6.iter_mut().zip(IPV6_BLOCKS) {
                    *used |= (address ^ block.to_bits()) >> 80 == 0;
                }
            }
        }
    }

    /// The size that the look-alike's frame has, FCS counted.
    fn size(&mut self, frame: &Seen<'_>, layers: &Layers, tags: Tags, least: u64) -> u64 {
        let length = u64::from(frame.length);
        // Of other link layers what lies behind the link header counts; Ethernet's stands in front.
        let size = match frame.link {
            LinkType::ETHERNET => length + 4,
            _ => length.saturating_sub(layers.l3_offset as u64) + 14 + tags.bytes() + 4,
        };
        self.resized += u64::from(size.max(least) != length + 4);
        size.max(least)
    }

    fn other(&mut self, frame: &Seen<'_>, layers: &Layers, tags: Tags, flow: FlowOf) {
        let ip = if layers.l3 == L3::V6 { 6 } else { 4 };
        let transport = layers.ip_protocol.unwrap_or(protocol::NO_NEXT_HEADER);
        let what = match (flow, layers.l3) {
            (FlowOf::Fragment, _) => What::Fragment { ip, protocol: transport },
            (FlowOf::Cut, _) => What::CutOff { ip, protocol: transport },
            (_, L3::Arp) => What::EtherType(ethertype::ARP),
            (_, L3::Other(kind)) => What::EtherType(kind),
            (_, L3::Llc) => What::Llc,
            _ => What::Unknown,
        };
        let least = match what {
            What::Fragment { ip: 6, .. } => shortest(6, protocol::NO_NEXT_HEADER, tags) + 8,
            What::Fragment { ip, .. } | What::CutOff { ip, .. } => {
                shortest(ip, protocol::NO_NEXT_HEADER, tags)
            }
            What::EtherType(ethertype::ARP) => 4 + 14 + tags.bytes() + 28,
            What::Llc => 4 + 14 + 3 + tags.bytes(),
            _ => 4 + 14 + tags.bytes(),
        };
        let size = self.size(frame, layers, tags, least);
        let key = match self.others.len() < OTHERS || self.others.contains_key(&(what, tags)) {
            true => (what, tags),
            false => (What::Unknown, Tags::default()),
        };
        self.others.entry(key).or_insert_with(|| Bins::new(Scale::Sizes)).add(size);
    }

    fn conversation(&mut self, frame: &Seen<'_>, layers: &Layers, tags: Tags, key: FlowKey, at: u64) {
        let both = key.conversation();
        let from_source = key == both;
        let flags = layers.l4_offset.filter(|_| key.protocol() == protocol::TCP);
        let flags = flags.and_then(|at| frame.bytes.get(at + 13)).copied().unwrap_or(0);
        let mut talk = match self.talks.get(&both) {
            Some(talk) => *talk,
            None => self.begin(key, tags, from_source, flags, at),
        };
        let side = usize::from(from_source != talk.client_is_source);
        let place = place(talk.frames[side]);
        let size =
            self.size(frame, layers, tags, shortest(if key.is_v6() { 6 } else { 4 }, key.protocol(), tags));
        if let Some(kind) = self.kinds.get_mut(usize::from(talk.kind)) {
            kind.frames += 1;
            if let Some(sizes) = kind.sizes[side].get_mut(place) {
                sizes.add(size);
            }
        }
        if talk.frames[side] == 0 {
            for (host, did) in [(key.source(), SENT), (key.destination(), GOT)] {
                *self.hosts.entry(host).or_insert(0) |= did;
            }
        }
        talk.frames[side] = talk.frames[side].saturating_add(1);
        talk.last_ns = talk.last_ns.max(at);
        talk.finished |= flags & crate::conversation::FIN != 0;
        talk.reset |= flags & crate::conversation::RST != 0;
        self.talks.insert(both, talk);
    }

    /// The first frame of a conversation.
    fn begin(&mut self, key: FlowKey, tags: Tags, from_source: bool, flags: u8, at: u64) -> Talk {
        let ported = !matches!(key.protocol(), protocol::ICMP | protocol::ICMPV6)
            && (key.source_port(), key.destination_port()) != (0, 0);
        let server = (self.server_port)(&key);
        // Whoever is asked has the server's port; where both have it, whoever sends first asks.
        let server_first = ported && key.destination_port() != server;
        let service = match key.protocol() {
            protocol::ICMP | protocol::ICMPV6 => key.source_port() << 8 | key.destination_port() & 0xff,
            _ => server,
        };
        let ip = if key.is_v6() { 6 } else { 4 };
        let kind = self.kind(
            KindKey { ip, protocol: key.protocol(), tags, port: Service::Port(service) },
            service,
            ported,
        );
        for (host, role) in [(key.source(), CLIENT), (key.destination(), SERVER)] {
            *self.hosts.entry(host).or_insert(0) |= role;
        }
        Talk {
            first_ns: at,
            last_ns: at,
            frames: [0; 2],
            kind,
            client_is_source: from_source != server_first,
            server_first,
            opened: !server_first && flags & 0x12 == crate::conversation::SYN,
            finished: false,
            reset: false,
        }
    }

    fn kind(&mut self, key: KindKey, port: u16, ported: bool) -> u16 {
        let class = KindKey { port: Service::Class(class(port)), ..key };
        let full = self.kinds.len() >= OPEN_KINDS && !self.kind_of.contains_key(&key);
        let key = if ported && port >= FIRST_DYNAMIC || full { class } else { key };
        let next = self.kinds.len() as u16;
        let number = *self.kind_of.entry(key).or_insert(next);
        if number == next {
            self.kinds.push(Open::new(key));
        }
        if let Some(open) = self.kinds.get_mut(usize::from(number)) {
            open.note_port(port);
        }
        number
    }

    /// The statistics of what was seen.
    ///
    /// # Errors
    /// There is nothing that could be imitated.
    pub fn finish(self) -> Result<FlowProfile, BadProfile> {
        let Some((first, last)) = self.times else {
            return Err(BadProfile {
                place: "kinds".to_owned(),
                what: "the capture has no frames".to_owned(),
            });
        };
        let hosts = |v6: bool| {
            let mut sum = Hosts::default();
            for (_, &roles) in self.hosts.iter().filter(|(host, _)| host.is_ipv6() == v6) {
                sum.clients += u64::from(roles & CLIENT != 0);
                sum.servers += u64::from(roles & SERVER != 0);
                sum.both += u64::from(roles & CLIENT != 0 && roles & SERVER != 0);
                sum.silent += u64::from(roles & (SERVER | SENT | CLIENT) == SERVER);
                sum.unanswered += u64::from(roles & (CLIENT | GOT | SERVER) == CLIENT);
            }
            sum
        };
        let free = |used: &[bool]| used.iter().position(|used| !used).unwrap_or(0);
        let (v4, v6, mac) = &self.used;
        let blocks =
            Blocks { ipv4: IPV4_BLOCKS[free(v4)].0, ipv6: IPV6_BLOCKS[free(v6)], mac: MAC_BLOCKS[free(mac)] };
        let (kinds, place_of) = kept(self.kinds);
        let mut shapes: Vec<BTreeMap<(u32, u32), Gathered>> = vec![BTreeMap::new(); kinds.len()];
        for talk in self.talks.values() {
            let Some(shapes) = shapes.get_mut(place_of[usize::from(talk.kind)]) else { continue };
            let bin = talk.frames.map(|frames| Scale::Frames.bin(frames.into()));
            shapes.entry(bin.into()).or_default().add(talk);
        }
        let profile = FlowProfile {
            schema: SCHEMA.to_owned(),
            duration_ns: last - first,
            blocks,
            ipv4: hosts(false),
            ipv6: hosts(true),
            vlans: self.vlans.len() as u64,
            kinds: kinds.into_iter().zip(shapes).map(|(open, shapes)| kind(open, shapes)).collect(),
            others: self
                .others
                .into_iter()
                .map(|((what, tags), sizes)| Other { what, tags, sizes: sizes.distribution() })
                .collect(),
            interval_ns: self.part_ns,
            intervals: self
                .parts
                .into_iter()
                .map(|part| Interval {
                    starts_ns: part.starts.distribution(),
                    gaps_ns: part.gaps.distribution(),
                })
                .collect(),
        };
        profile.check()?;
        Ok(profile)
    }
}

/// Which list of sizes the next frame belongs to, behind `before` of its direction.
pub(super) fn place(before: u32) -> usize {
    match before {
        0..4 => before as usize,
        4..8 => 4,
        8..16 => 5,
        _ => 6,
    }
}

fn class(port: u16) -> u8 {
    match port {
        0..1024 => 0,
        1024..FIRST_DYNAMIC => 1,
        _ => 2,
    }
}

/// The kinds that are kept, the largest first, and for each that was open which it went to.
fn kept(open: Vec<Open>) -> (Vec<Open>, Vec<usize>) {
    let mut order: Vec<usize> = (0..open.len()).collect();
    // By the key in the end, so that the same frames give the same file.
    order.sort_by_key(|&n| (std::cmp::Reverse(open[n].frames), open[n].key));
    let mut kept: Vec<Open> = Vec::new();
    let mut place_of = vec![0; open.len()];
    let mut classes: HashMap<KindKey, usize> = HashMap::new();
    let mut open: Vec<Option<Open>> = open.into_iter().map(Some).collect();
    for number in order {
        let Some(one) = open.get_mut(number).and_then(Option::take) else { continue };
        let class_key = match one.key.port {
            Service::Class(_) => one.key,
            Service::Port(port) => KindKey { port: Service::Class(class(port)), ..one.key },
        };
        let is_class = matches!(one.key.port, Service::Class(_));
        if kept.len() < KINDS && !is_class {
            place_of[number] = kept.len();
            kept.push(one);
            continue;
        }
        let place = *classes.entry(class_key).or_insert_with(|| {
            kept.push(Open::new(class_key));
            kept.len() - 1
        });
        place_of[number] = place;
        if let Some(sum) = kept.get_mut(place) {
            sum.merge(&one);
            if let (Some(sum), Some(one)) = (&mut sum.ports, &one.ports) {
                sum.iter_mut().zip(one.iter()).for_each(|(sum, one)| *sum |= one);
            }
        }
    }
    (kept, place_of)
}

/// Conversations of one shape.
#[derive(Debug, Clone)]
struct Gathered {
    counts: [u64; 5],
    frames: [Bin; 2],
    durations: Bins,
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered { counts: [0; 5], frames: [Bin::default(); 2], durations: Bins::new(Scale::Times) }
    }
}

impl Gathered {
    fn add(&mut self, talk: &Talk) {
        let facts = [true, talk.server_first, talk.opened, talk.finished, talk.reset];
        for (count, fact) in self.counts.iter_mut().zip(facts) {
            *count += u64::from(fact);
        }
        for (bin, frames) in self.frames.iter_mut().zip(talk.frames) {
            bin.add(frames.into());
        }
        self.durations.add(talk.last_ns - talk.first_ns);
    }
}

fn kind(open: Open, shapes: BTreeMap<(u32, u32), Gathered>) -> Kind {
    let [client, server] = open.sizes.map(|places| {
        let mut places: Vec<_> = places.iter().map(Bins::distribution).collect();
        while places.last().is_some_and(|sizes| sizes.is_empty()) {
            places.pop();
        }
        places
    });
    let ports = open.ports.map(|words| {
        let port = |(word, bits): (usize, u64)| (word * 64 + bits as usize) as u16;
        let first = words.iter().enumerate().find(|(_, word)| **word != 0);
        let last = words.iter().enumerate().rev().find(|(_, word)| **word != 0);
        let least = first.map_or(0, |(at, word)| port((at, word.trailing_zeros().into())));
        let most = last.map_or(0, |(at, word)| port((at, 63 - u64::from(word.leading_zeros()))));
        let count: u32 = words.iter().map(|word| word.count_ones()).sum();
        // Not the numbers themselves: the class's own bounds, or all that is between.
        let (low, high) = match open.key.port {
            Service::Class(0) => (0, 1023),
            Service::Class(1) => (1024, FIRST_DYNAMIC - 1),
            Service::Class(_) => (FIRST_DYNAMIC, u16::MAX),
            Service::Port(_) => (least, most),
        };
        [low, high, count.min(u32::from(high - low) + 1).min(u32::from(u16::MAX)) as u16]
    });
    let shapes = shapes.into_values().map(|gathered| {
        let [conversations, server_first, opened, finished, reset] = gathered.counts;
        let mut shape = Shape { conversations, server_first, opened, finished, reset, ..Shape::default() };
        let [client, server] = &gathered.frames;
        client.spread(&mut shape.client);
        server.spread(&mut shape.server);
        shape.duration_ns = gathered.durations.distribution();
        shape
    });
    Kind {
        ip: open.key.ip,
        protocol: open.key.protocol,
        port: match open.key.port {
            Service::Port(port) => Some(port),
            Service::Class(_) => None,
        },
        ports,
        tags: open.key.tags,
        shapes: shapes.collect(),
        sizes: Sizes { client, server },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: [u8; 4], port: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[17] = 46;
        frame[23] = 17;
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[37] = 53;
        frame
    }

    fn add(measure: &mut Measure, frame: &[u8], time_ns: u64) {
        measure.add(&Seen { link: LinkType::ETHERNET, bytes: frame, length: frame.len() as u32, time_ns });
    }

    #[test]
    fn conversations_beyond_the_limit_are_left_out_and_counted() {
        let mut measure = Measure::with_limit(FlowKey::destination_port, 2);
        for n in 0..5u8 {
            add(&mut measure, &udp([10, 0, 0, n], 5000), u64::from(n) * 1000);
            add(&mut measure, &udp([10, 0, 0, 0], 5000), u64::from(n) * 1000);
        }
        assert_eq!(measure.left_out(), 3);
        let bounds = measure.finish().unwrap().bounds();
        assert_eq!((bounds.conversations, bounds.frames), (2, 7));
    }

    #[test]
    fn blocks_with_addresses_of_the_capture_are_not_taken() {
        let mut measure = Measure::new(FlowKey::destination_port);
        add(&mut measure, &udp([10, 0, 0, 1], 5000), 0);
        add(&mut measure, &udp([100, 64, 0, 1], 5000), 0);
        let mut arp = vec![0; 60];
        arp[..3].copy_from_slice(&[2, b'N', b'D']);
        arp[12..14].copy_from_slice(&[8, 6]);
        arp[28..32].copy_from_slice(&[172, 16, 0, 1]);
        add(&mut measure, &arp, 0);
        let blocks = measure.finish().unwrap().blocks;
        assert_eq!((blocks.ipv4.octets(), blocks.mac), ([198, 18, 0, 0], 6));
    }

    #[test]
    fn many_ports_are_put_together_and_the_common_ones_kept() {
        let mut measure = Measure::new(FlowKey::source_port);
        for port in 1..3000u16 {
            add(&mut measure, &udp([10, 0, 0, 1], port), u64::from(port));
        }
        for _ in 0..10 {
            add(&mut measure, &udp([10, 0, 0, 1], 53), 5000);
        }
        let profile = measure.finish().unwrap();
        assert!(profile.kinds.iter().any(|kind| kind.port == Some(53)));
        assert!(profile.kinds.len() <= KINDS + 3);
        let ports: u32 =
            profile.kinds.iter().map(|kind| kind.ports.map_or(1, |[_, _, n]| u32::from(n))).sum();
        assert_eq!(ports, 2999);
        assert_eq!(profile.bounds().frames, 2999 + 10);
    }

    #[test]
    fn intervals_stay_few_and_keep_every_gap() {
        let mut measure = Measure::new(FlowKey::destination_port);
        for n in 0..10_000u64 {
            add(&mut measure, &udp([10, 0, 0, 1], 5000), n * n);
        }
        let profile = measure.finish().unwrap();
        assert!((32..=64).contains(&profile.intervals.len()));
        let gaps: u128 = profile.intervals.iter().map(|part| part.gaps_ns.sum()).sum();
        assert_eq!(gaps, 9_999 * 9_999);
        assert_eq!(profile.intervals.iter().map(|part| part.gaps_ns.count()).sum::<u64>(), 9_999);
        assert_eq!(profile.intervals[0].starts_ns.0, [(0, 1)].into());
    }
}
