//! Counting: takes records one by one, knows no files until the end.

use std::collections::{BTreeMap, HashSet};

use wire::LinkType;
use wire::flow::{FlowHasher, FlowKey, FlowOf, FlowSet};
use wire::layers::{L3, Layers};
use wire::numbers::{ethertype, protocol};

use super::{
    Addresses, FramesWithoutFlow, Info, InterfaceInfo, Layer, MAX_PORTS, Port, Protocol, SizeClass, names,
};
use crate::{Notes, Reader, Record};

/// Flows that are kept apart; the same holds for addresses of each kind. It is what a hash table of 2^23 places
/// takes without growing again. At the limit a capture of nothing but new IPv4 sources takes 550 MB.
pub const FLOW_LIMIT: usize = 7 << 20;

/// Upper bounds of the RFC 2819 size classes, FCS included: below 64, 64, 65 to 127, ...
const SIZE_BOUNDS: [u32; 7] = [63, 64, 127, 255, 511, 1023, 1518];

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    frames: u64,
    bytes: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, bytes: u32) {
        self.frames += 1;
        self.bytes += u64::from(bytes);
    }
}

/// A set that stops growing at its limit and then says so.
#[derive(Debug)]
struct Bounded<T>(HashSet<T, FlowHasher>);

impl<T: std::hash::Hash + Eq> Bounded<T> {
    #[inline]
    fn insert(&mut self, item: T, limit: usize) -> bool {
        if self.0.len() < limit {
            self.0.insert(item);
            true
        } else {
            self.0.contains(&item)
        }
    }
}

/// A summary in the making.
#[derive(Debug)]
pub struct Summary {
    limit: usize,
    exact: bool,
    total: Count,
    captured_bytes: u64,
    times: Option<(u64, u64)>,
    lengths: Option<(u32, u32)>,
    sizes: [u64; SIZE_BOUNDS.len() + 1],
    interface_frames: Vec<u64>,
    flows: FlowSet,
    without_flow: FramesWithoutFlow,
    ipv4: [Bounded<u32>; 2],
    ipv6: [Bounded<u128>; 2],
    ip_versions: [Count; 2],
    other_network: BTreeMap<L3Name, Count>,
    transports: Vec<Count>,
    tags: [Count; 3],
    /// By port, TCP and UDP.
    ports: [Vec<Count>; 2],
}

/// Network layers other than sound IP, in a form that can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum L3Name {
    EtherType(u16),
    Llc,
    Unknown,
}

impl Summary {
    /// An empty summary that keeps at most `flow_limit` flows apart.
    pub fn new(flow_limit: usize) -> Summary {
        let bounded = || Bounded(HashSet::default());
        Summary {
            limit: flow_limit,
            exact: true,
            total: Count::default(),
            captured_bytes: 0,
            times: None,
            lengths: None,
            sizes: [0; SIZE_BOUNDS.len() + 1],
            interface_frames: vec![],
            flows: FlowSet::default(),
            without_flow: FramesWithoutFlow::default(),
            ipv4: [bounded(), bounded()],
            ipv6: [Bounded(HashSet::default()), Bounded(HashSet::default())],
            ip_versions: [Count::default(); 2],
            other_network: BTreeMap::new(),
            transports: vec![Count::default(); 256],
            tags: [Count::default(); 3],
            ports: [vec![Count::default(); 1 << 16], vec![Count::default(); 1 << 16]],
        }
    }

    /// Counts a record.
    pub fn add(&mut self, record: &Record<'_>) {
        let length = record.wire_len;
        self.total.add(length);
        self.captured_bytes += record.data.len() as u64;
        let (first, last) = self.times.unwrap_or((record.time_ns, record.time_ns));
        self.times = Some((first.min(record.time_ns), last.max(record.time_ns)));
        let (smallest, largest) = self.lengths.unwrap_or((length, length));
        self.lengths = Some((smallest.min(length), largest.max(length)));
        let fcs = if record.link == LinkType::ETHERNET { 4 } else { 0 };
        let class = SIZE_BOUNDS.partition_point(|bound| length.saturating_add(fcs) > *bound);
        if let Some(frames) = self.sizes.get_mut(class) {
            *frames += 1;
        }
        // The reader bounds how many interfaces there are.
        let interface = record.interface as usize;
        if interface >= self.interface_frames.len() {
            self.interface_frames.resize(interface + 1, 0);
        }
        if let Some(frames) = self.interface_frames.get_mut(interface) {
            *frames += 1;
        }
        let layers = Layers::parse(record.link, record.data);
        self.protocols(&layers, length);
        self.flow(&layers, record.data, length);
    }

    #[inline]
    fn protocols(&mut self, layers: &Layers, length: u32) {
        let [vlan, mpls, pppoe] = &mut self.tags;
        for (present, count) in
            [(layers.vlan_tags > 0, vlan), (layers.mpls_labels > 0, mpls), (layers.pppoe, pppoe)]
        {
            if present {
                count.add(length);
            }
        }
        let name = match layers.l3 {
            L3::V4 | L3::V6 => {
                let [v4, v6] = &mut self.ip_versions;
                if layers.l3 == L3::V4 { v4 } else { v6 }.add(length);
                let number = layers.ip_protocol.unwrap_or(0);
                if let Some(count) = self.transports.get_mut(usize::from(number)) {
                    count.add(length);
                }
                return;
            }
            L3::Arp => L3Name::EtherType(ethertype::ARP),
            L3::Other(kind) => L3Name::EtherType(kind),
            L3::Llc => L3Name::Llc,
            L3::Unknown => L3Name::Unknown,
        };
        self.other_network.entry(name).or_default().add(length);
    }

    #[inline]
    fn flow(&mut self, layers: &Layers, data: &[u8], length: u32) {
        let key = match FlowKey::of(layers, data) {
            FlowOf::Flow(key) => key,
            FlowOf::NonIp => {
                self.without_flow.not_ip += 1;
                return;
            }
            FlowOf::Fragment => {
                self.without_flow.later_fragments += 1;
                return self.addresses(layers, data);
            }
            FlowOf::Cut => {
                self.without_flow.cut_off += 1;
                return self.addresses(layers, data);
            }
        };
        let at = match key.protocol() {
            protocol::TCP => Some(0),
            protocol::UDP => Some(1),
            _ => None,
        };
        if let Some(ports) = at.and_then(|at| self.ports.get_mut(at))
            && let Some(count) = ports.get_mut(usize::from(server_port(&key)))
        {
            count.add(length);
        }
        if self.flows.len() < self.limit {
            // The addresses of a known flow are known.
            if self.flows.insert(key) {
                self.addresses(layers, data);
            }
        } else if !self.flows.contains(&key) {
            self.exact = false;
            self.addresses(layers, data);
        }
    }

    /// Counts both addresses of an IP header.
    fn addresses(&mut self, layers: &Layers, data: &[u8]) {
        let packet = data.get(layers.l3_offset..).unwrap_or(&[]);
        let mut exact = true;
        match layers.l3 {
            L3::V4 => {
                for (set, at) in self.ipv4.iter_mut().zip([12, 16]) {
                    if let Some(address) = packet.get(at..).and_then(|rest| rest.first_chunk()) {
                        exact &= set.insert(u32::from_ne_bytes(*address), self.limit);
                    }
                }
            }
            _ => {
                for (set, at) in self.ipv6.iter_mut().zip([8, 24]) {
                    if let Some(address) = packet.get(at..).and_then(|rest| rest.first_chunk()) {
                        exact &= set.insert(u128::from_ne_bytes(*address), self.limit);
                    }
                }
            }
        }
        self.exact &= exact;
    }

    /// The result; `reader` is the one whose records were counted.
    pub fn finish(self, reader: &Reader) -> Info {
        let frames = self.total.frames;
        let duration_ns = self.times.map_or(0, |(first, last)| last - first);
        let seconds = Some(duration_ns as f64 / 1e9).filter(|_| duration_ns > 0);
        let conversations =
            self.flows.iter().filter(|key| **key <= key.reversed() || !self.flows.contains(&key.reversed()));
        let conversations = conversations.count() as u64;
        let mut info = Info {
            file: reader.name().to_owned(),
            file_bytes: reader.file_len(),
            format: reader.format().to_string(),
            interfaces: self.interfaces(reader),
            frames,
            bytes: self.total.bytes,
            captured_bytes: self.captured_bytes,
            duration_ns,
            first_time_ns: self.times.map(|(first, _)| first),
            last_time_ns: self.times.map(|(_, last)| last),
            first_time: self.times.map(|(first, _)| rfc3339(first)),
            last_time: self.times.map(|(_, last)| rfc3339(last)),
            frames_per_second: seconds.map(|seconds| frames as f64 / seconds),
            bits_per_second: seconds.map(|seconds| self.total.bytes as f64 * 8.0 / seconds),
            mean_frame_bytes: Some(self.total.bytes as f64 / frames as f64).filter(|_| frames > 0),
            smallest_frame_bytes: self.lengths.map(|(smallest, _)| smallest.into()),
            largest_frame_bytes: self.lengths.map(|(_, largest)| largest.into()),
            sizes_with_fcs: self.size_classes(),
            flows: self.flows.len() as u64,
            flows_exact: self.exact,
            conversations,
            addresses: Addresses {
                ipv4_sources: self.ipv4[0].0.len() as u64,
                ipv4_destinations: self.ipv4[1].0.len() as u64,
                ipv6_sources: self.ipv6[0].0.len() as u64,
                ipv6_destinations: self.ipv6[1].0.len() as u64,
            },
            protocols: self.protocol_list(),
            ports: self.port_list(),
            distinct_ports: self.ports.iter().flatten().filter(|count| count.frames > 0).count() as u64,
            frames_without_flow: self.without_flow,
            notes: reader.notes().clone(),
            warnings: vec![],
        };
        info.warnings = warnings(&info, reader, self.limit);
        info
    }

    fn interfaces(&self, reader: &Reader) -> Vec<InterfaceInfo> {
        let frames = self.interface_frames.iter().copied().chain(std::iter::repeat(0));
        let described = reader.interfaces().iter().zip(frames);
        described
            .map(|(interface, frames)| InterfaceInfo {
                name: interface.name.clone(),
                link: interface.link.to_string(),
                link_number: interface.link.0,
                bits_per_second: interface.speed_bps,
                snap_length: interface.snaplen,
                frames,
            })
            .collect()
    }

    fn size_classes(&self) -> Vec<SizeClass> {
        let from = std::iter::once(0).chain(SIZE_BOUNDS.iter().map(|bound| bound + 1));
        let to = SIZE_BOUNDS.iter().copied().map(Some).chain([None]);
        from.zip(to).zip(self.sizes).map(|((from, to), frames)| SizeClass { from, to, frames }).collect()
    }

    fn protocol_list(&self) -> Vec<Protocol> {
        let mut list = vec![];
        let mut push = |layer, name: String, count: Count| {
            if count.frames > 0 {
                list.push(Protocol { layer, name, frames: count.frames, bytes: count.bytes });
            }
        };
        for (name, count) in ["VLAN", "MPLS", "PPPoE"].into_iter().zip(self.tags) {
            push(Layer::Tag, name.into(), count);
        }
        for (name, count) in ["IPv4", "IPv6"].into_iter().zip(self.ip_versions) {
            push(Layer::Network, name.into(), count);
        }
        for (name, count) in &self.other_network {
            let name = match *name {
                L3Name::EtherType(kind @ (ethertype::IPV4 | ethertype::IPV6)) => {
                    format!("{} with a broken header", names::ethertype(kind).unwrap_or("IP"))
                }
                L3Name::EtherType(kind) => {
                    names::ethertype(kind).map_or_else(|| format!("EtherType {kind:#06x}"), str::to_owned)
                }
                L3Name::Llc => "LLC".into(),
                L3Name::Unknown => "not recognised".into(),
            };
            push(Layer::Network, name, *count);
        }
        for (number, count) in (0..=255).zip(&self.transports) {
            let name =
                names::ip_protocol(number).map_or_else(|| format!("IP protocol {number}"), str::to_owned);
            push(Layer::Transport, name, *count);
        }
        // A stable sort: equals stay in the order of their numbers.
        list.sort_by_key(|protocol| (protocol.layer, std::cmp::Reverse(protocol.frames)));
        list
    }

    fn port_list(&self) -> Vec<Port> {
        let by_transport = ["tcp", "udp"].into_iter().zip(&self.ports);
        let mut list: Vec<Port> = by_transport
            .flat_map(|(transport, counts)| {
                (0..=u16::MAX).zip(counts).map(move |(port, count)| (transport, port, count))
            })
            .filter(|(_, _, count)| count.frames > 0)
            .map(|(transport, port, count)| Port {
                transport,
                port,
                name: names::service(port),
                frames: count.frames,
                bytes: count.bytes,
            })
            .collect();
        list.sort_by_key(|port| std::cmp::Reverse(port.frames));
        list.truncate(MAX_PORTS);
        list
    }
}

/// Which of the two ports is the server's: one with a known service, or else the lower.
pub fn server_port(key: &FlowKey) -> u16 {
    let (low, high) = match (key.source_port(), key.destination_port()) {
        (a, b) if a <= b => (a, b),
        (a, b) => (b, a),
    };
    // Below 1024 a port is a service's whether we know its name or not.
    if low >= 1024 && names::service(low).is_none() && names::service(high).is_some() { high } else { low }
}

/// RFC 3339 with nanoseconds.
fn rfc3339(time_ns: u64) -> String {
    let seconds = report::units::rfc3339(time_ns / 1_000_000_000);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), time_ns % 1_000_000_000)
}

/// What of all this the user should be told in words.
fn warnings(info: &Info, reader: &Reader, limit: usize) -> Vec<String> {
    use report::units::counted;
    let notes: &Notes = &info.notes;
    let mut warnings = vec![];
    let mut warn = |count: u64, text: &str| {
        if count > 0 {
            warnings.push(format!("{} {text}", counted(count, "frame")));
        }
    };
    warn(
        notes.truncated,
        "captured only in part (snap length): a replay would send less than was on the wire",
    );
    warn(
        notes.longer_than_wire,
        "with more bytes captured than they had on the wire: what is beyond is left out",
    );
    warn(notes.over_snaplen, "longer than the snap length that the file states");
    warn(notes.zero_length, "without a single byte: these cannot be sent");
    warn(notes.time_backwards, "earlier than the frame before: times run backwards");
    warn(notes.odd_times, "with an impossible time stamp, held to what is possible");
    warn(notes.untimed, "without a time stamp, shown with that of the frame before");
    warn(notes.lost_in_capture, "lost by the capturing program, as it says itself");
    if notes.unknown_blocks > 0 {
        warnings.push(format!("{} of unknown type skipped", counted(notes.unknown_blocks, "block")));
    }
    if info.frames == 0 {
        warnings.push("The capture has a header and no frames".into());
    }
    if !info.flows_exact {
        let limit = report::units::count(limit as u64);
        warnings.push(format!("More than {limit} flows or addresses: their numbers are lower bounds"));
    }
    if reader.interfaces().iter().any(|interface| interface.fcs_len > 0) {
        warnings.push("Frames end with their FCS, as the file says: it is neither counted nor sent".into());
    }
    if let Some(cut) = &notes.cut_short {
        warnings.push(format!("Only the sound part was read: {cut}"));
    }
    warnings
}
