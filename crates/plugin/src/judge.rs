//! Where frames go, for plugins that say of themselves that they load one's own equipment only (`restricted`).
//!
//! What is judged are the frames themselves: of a packet program the bytes of its templates with all values that its fields
//! may take, of frames that a plugin yields each frame. What options say is not looked at. Every destination has to lie in
//! [`ALLOWED`], that of the outermost IP header as those in tunnels, and those that routing headers and source routes name as
//! later ones; what that depends on (EtherTypes, IP versions) may not vary. Where a protocol's number or a UDP port varies,
//! what each tunnel of those would carry is judged. What cannot be followed to its end is refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use traffic::{Field, Program, Stream, Values};
use wire::LinkType;
use wire::layers::{L3, Layers};

/// Private addresses (RFC 1918, RFC 4193) and those for benchmarks (RFC 2544, RFC 5180), with their prefix lengths.
pub const ALLOWED: [(IpAddr, u8); 6] = [
    (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), 15),
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0)), 48),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
];

/// Values of a list that are looked at one by one; of more only the lowest and the highest count.
const MOST_VALUES: usize = 4_096;
/// IP headers in one another.
const DEEPEST: usize = 8;
/// Headers that are looked at in one frame, those of all readings together.
const MOST_LOOKS: usize = 512;
/// Protocols that carry packets, or ports that say so: IPv4, UDP, IPv6, GRE.
const LEAD_ON: [u8; 4] = [4, 17, 41, GRE];
const GRE: u8 = 47;
/// UDP ports of tunnels: VXLAN, GENEVE, GTP-U.
const TUNNELS: [u16; 3] = [4789, 6081, 2152];

/// A frame that such a plugin may not send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A destination.
    Address {
        /// Of which stream.
        stream: String,
        /// The destination, or one of several.
        address: IpAddr,
    },
    /// What a destination depends on varies.
    Structure {
        /// Of which stream.
        stream: String,
        /// The first byte that varies.
        offset: usize,
    },
    /// There is more than is looked at, or what cannot be read.
    Unread {
        /// Of which stream.
        stream: String,
        /// Where that begins.
        offset: usize,
        /// What it is.
        what: &'static str,
    },
}

/// Why a frame was not followed to its end.
enum Stop {
    /// This byte varies and may not.
    Varies(usize),
    /// What begins at this byte.
    Unread(usize, &'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Address { stream, address } => write!(
                f,
                "it may load private and benchmarking addresses only (198.18.0.0/15, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, \
                 2001:2::/48, fc00::/7), and frames of `{}` would go to {address}",
                report::units::printable(stream)
            ),
            Refused::Structure { stream, offset } => write!(
                f,
                "it may load private and benchmarking addresses only, and in frames of `{}` byte {offset} varies, by which it \
                 is told where their addresses are",
                report::units::printable(stream)
            ),
            Refused::Unread { stream, offset, what } => write!(
                f,
                "it may load private and benchmarking addresses only, and frames of `{}` have {what} at byte {offset}, behind \
                 which other addresses could stand",
                report::units::printable(stream)
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// Is it an address that such plugins may send to?
pub fn is_allowed(address: IpAddr) -> bool {
    within(address, address)
}

/// Do all addresses from `low` to `high` lie in one of the prefixes?
fn within(low: IpAddr, high: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    ALLOWED.iter().any(|(prefix, length)| {
        let ((own, width), (low, its), (high, _)) = (bits(*prefix), bits(low), bits(high));
        let host = width - u32::from(*length);
        width == its && own >> host == low >> host && own >> host == high >> host
    })
}

/// Judges all frames of a program.
///
/// # Errors
/// The first destination that is none of those allowed.
pub fn program(program: &Program) -> Result<(), Refused> {
    for stream in &program.streams {
        let varying = Varying::of(stream);
        for number in 0..stream.templates.len() {
            // Shorter frames have fewer headers, and none that the longest has not.
            judge(&stream.name, stream.templates.get(number), &varying)?;
        }
    }
    Ok(())
}

/// Judges one frame, of those called `name`.
///
/// # Errors
/// As of [`program`].
pub fn frame(name: &str, bytes: &[u8]) -> Result<(), Refused> {
    judge(name, bytes, &Varying::default())
}

/// What of a frame is not as in its template.
#[derive(Default)]
struct Varying<'p> {
    fields: &'p [Field],
    /// What the executor computes: lengths, checksums, a CRC, and the last bytes of all lengths that are signed.
    computed: Vec<Range<usize>>,
}

impl<'p> Varying<'p> {
    fn of(stream: &'p Stream) -> Varying<'p> {
        let two = |offset: u32| offset as usize..offset as usize + 2;
        let mut computed: Vec<Range<usize>> =
            stream.length_fields.iter().map(|own| two(own.offset)).collect();
        computed.extend(stream.sums.iter().map(|sum| two(sum.offset)));
        computed.extend(stream.crc.iter().map(|crc| crc.offset as usize..crc.offset as usize + 4));
        if stream.signature.is_some() {
            let template = stream.templates.get(0).len();
            let (shortest, _) = stream.lengths.bounds(template as u32);
            computed.push((shortest as usize).saturating_sub(wire::signature::LEN)..template);
        }
        Varying { fields: &stream.fields, computed }
    }

    /// The first byte of these that a field writes.
    fn by_fields(&self, range: &Range<usize>) -> Option<usize> {
        range.clone().find(|at| self.fields.iter().any(|field| touches(field, *at)))
    }

    /// The first that is computed.
    fn by_computing(&self, range: &Range<usize>) -> Option<usize> {
        range.clone().find(|at| self.computed.iter().any(|own| own.contains(at)))
    }
}

fn judge(name: &str, bytes: &[u8], varying: &Varying<'_>) -> Result<(), Refused> {
    let structure = |offset: usize| Refused::Structure { stream: name.to_owned(), offset };
    let stopped = |stop| match stop {
        Stop::Varies(offset) => structure(offset),
        Stop::Unread(offset, what) => Refused::Unread { stream: name.to_owned(), offset, what },
    };
    let mut walk = Walk { bytes, varying, heads: Vec::new(), read: Vec::new(), tried: Vec::new(), looks: 0 };
    walk.packet(LinkType::ETHERNET, 0, 0).map_err(stopped)?;
    let Walk { heads, read, tried, .. } = walk;
    let fixed = read.iter().filter_map(|range| varying.by_fields(range).or(varying.by_computing(range)));
    let computed = tried.iter().chain(&heads).filter_map(|range| varying.by_computing(range));
    if let Some(at) = fixed.chain(computed).min() {
        return Err(structure(at));
    }
    for head in &heads {
        for (low, high) in ranges(head, bytes, varying.fields) {
            let of = |bits: u128| match head.len() {
                4 => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
                _ => IpAddr::V6(Ipv6Addr::from_bits(bits)),
            };
            if !within(of(low), of(high)) {
                let address = if is_allowed(of(low)) { of(high) } else { of(low) };
                return Err(Refused::Address { stream: name.to_owned(), address });
            }
        }
    }
    Ok(())
}

/// Does the field write a bit of this byte?
fn touches(field: &Field, at: usize) -> bool {
    let range = field.range();
    let from_end = range.end.saturating_sub(at + 1);
    range.contains(&at) && (field.mask >> (8 * from_end as u32)) & 0xff != 0
}

/// A way through the headers of a frame: the outermost, and what IP, GRE, VXLAN, GENEVE and GTP-U carry.
struct Walk<'w> {
    bytes: &'w [u8],
    varying: &'w Varying<'w>,
    /// Destinations.
    heads: Vec<Range<usize>>,
    /// What was read to find them: it may not vary.
    read: Vec<Range<usize>>,
    /// What fields may vary, since each of its values was tried that leads on.
    tried: Vec<Range<usize>>,
    looks: usize,
}

impl Walk<'_> {
    fn word(&self, at: usize) -> Option<u16> {
        wire::bytes::be16(self.bytes, at)
    }

    /// Is there room for so many bytes?
    fn room(&self, at: usize, bytes: usize) -> bool {
        at + bytes <= self.bytes.len()
    }

    /// May the number in these bytes be that one?
    fn may_be(&self, range: &Range<usize>, number: u128) -> bool {
        ranges(range, self.bytes, self.varying.fields)
            .iter()
            .any(|(low, high)| (low..=high).contains(&&number))
    }

    /// A packet or a frame that begins at `base`.
    fn packet(&mut self, link: LinkType, base: usize, depth: usize) -> Result<(), Stop> {
        self.looks += 1;
        if self.looks > MOST_LOOKS || depth >= DEEPEST {
            return Err(Stop::Unread(base, "more headers than are judged"));
        }
        let bytes = self.bytes;
        let Some(rest) = bytes.get(base..) else { return Ok(()) };
        let layers = Layers::parse(link, rest);
        let at = base + layers.l3_offset;
        if link == LinkType::ETHERNET {
            self.link(base, at);
        }
        match layers.l3 {
            L3::V4 | L3::V6 | L3::Unknown => self.read.push(at..at + 1),
            // LLC and SNAP, whose type may be IP's.
            L3::Llc => self.read.push(at..at + 8),
            L3::Other(kind) if layers.mpls_labels > 0 || matches!(kind, 0x0800 | 0x86dd) => {
                self.read.push(at..at + 1);
            }
            L3::Arp | L3::Other(_) => {}
        }
        match layers.l3 {
            L3::V4 => {
                self.heads.push(at + 16..at + 20);
                let header = 4 * usize::from(bytes.get(at).copied().unwrap_or_default() & 0x0f);
                self.source_route(at + 20, at + header)?;
                // A later piece carries no header, if it is always one.
                let offset = at + 6..at + 8;
                let later = self.word(at + 6).is_some_and(|word| word & 0x1fff != 0);
                if later && self.varying.by_fields(&offset).is_none() {
                    self.read.push(offset);
                    return Ok(());
                }
                self.tried.push(offset);
                self.protocol(at + 9, at + header, depth)
            }
            L3::V6 => {
                self.heads.push(at + 24..at + 40);
                self.protocol(at + 6, at + 40, depth)
            }
            _ => Ok(()),
        }
    }

    /// What of Ethernet's header at `base`, and of those behind it up to `end`, decides what follows. Tag control and label
    /// values do not.
    fn link(&mut self, base: usize, end: usize) {
        let mut at = base + 12;
        while at + 2 <= end {
            self.read.push(at..at + 2);
            match self.word(at) {
                Some(0x8100 | 0x88a8 | 0x9100) => at += 4,
                // Labels: the bottom-of-stack bit decides.
                Some(0x8847 | 0x8848) => {
                    return self.read.extend((at + 4..end).step_by(4).map(|at| at..at + 1));
                }
                // PPPoE: not the session and the length.
                Some(0x8864) => return self.read.extend([at + 2..at + 4, at + 8..end]),
                _ => return self.read.push(at + 2..end),
            }
        }
    }

    /// What stands at `at`, of the protocol whose number stands at `number`: first IPv6's extension headers.
    fn protocol(&mut self, mut number: usize, mut at: usize, depth: usize) -> Result<(), Stop> {
        const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
        for _ in 0..2 * DEEPEST {
            let Some(&template) = self.bytes.get(number) else { return Ok(()) };
            let own = number..number + 1;
            if let Some(varies) = self.varying.by_fields(&own) {
                let extended = EXTENSIONS.iter().any(|one| self.may_be(&own, (*one).into()));
                if extended && self.room(at, 8 + 20) {
                    return Err(Stop::Varies(varies));
                }
                self.tried.push(own.clone());
                for protocol in LEAD_ON {
                    if self.may_be(&own, protocol.into()) {
                        self.carried(protocol, at, depth)?;
                    }
                }
                return Ok(());
            }
            self.read.push(own);
            if !EXTENSIONS.contains(&template) {
                return self.carried(template, at, depth);
            }
            let Some(&length) = self.bytes.get(at + 1) else { return Ok(()) };
            let length = match template {
                44 => {
                    let offset = at + 2..at + 4;
                    let later = self.word(at + 2).is_some_and(|word| word & 0xfff8 != 0);
                    if later && self.varying.by_fields(&offset).is_none() {
                        self.read.push(offset);
                        return Ok(());
                    }
                    self.tried.push(offset);
                    8
                }
                51 => (usize::from(length) + 2) * 4,
                _ => (usize::from(length) + 1) * 8,
            };
            if template != 44 {
                self.read.push(at + 1..at + 2);
            }
            if template == 43 {
                self.segments(at, length)?;
            }
            number = at;
            at += length;
        }
        Err(Stop::Unread(at, "more extension headers than are judged"))
    }

    /// The destinations that a routing header of this length names: all addresses of types 0 (RFC 5095) and 2 (RFC 6275), the
    /// list of type 4 (SRH, RFC 8754). Of other types nobody knows here where they lead.
    fn segments(&mut self, at: usize, length: usize) -> Result<(), Stop> {
        let room = (length - 8) / 16;
        self.read.push(at + 2..at + 3);
        let count = match self.bytes.get(at + 2) {
            None => return Ok(()),
            Some(0 | 2) => room,
            Some(4) => {
                self.read.push(at + 4..at + 5);
                usize::from(self.bytes.get(at + 4).copied().unwrap_or_default()) + 1
            }
            Some(_) => return Err(Stop::Unread(at, "a routing header of an unknown type")),
        };
        if count > room || !self.room(at, length) {
            return Err(Stop::Unread(at, "a routing header that is longer than it says"));
        }
        self.heads.extend((0..count).map(|one| at + 8 + 16 * one..at + 24 + 16 * one));
        Ok(())
    }

    /// The destinations of IPv4's loose and strict source routes among the options from `at` to `end` (RFC 791).
    fn source_route(&mut self, mut at: usize, end: usize) -> Result<(), Stop> {
        while at < end.min(self.bytes.len()) {
            let kind = self.bytes.get(at).copied().unwrap_or_default();
            self.read.push(at..at + 1);
            match kind {
                0 => break,
                1 => at += 1,
                _ => {
                    let length = usize::from(self.bytes.get(at + 1).copied().unwrap_or_default());
                    self.read.push(at + 1..at + 2);
                    if length < 2 || at + length > end || !self.room(at, length) {
                        return Err(Stop::Unread(at, "an IP option that is longer than its header"));
                    }
                    if matches!(kind, 131 | 137) {
                        let hops = length.saturating_sub(3) / 4;
                        self.heads.extend((0..hops).map(|one| at + 3 + 4 * one..at + 7 + 4 * one));
                    }
                    at += length;
                }
            }
        }
        Ok(())
    }

    /// What a transport header at `at` carries, if that is a packet or a frame.
    fn carried(&mut self, protocol: u8, at: usize, depth: usize) -> Result<(), Stop> {
        match protocol {
            // IPv4 or IPv6 in IP.
            4 | 41 if self.room(at, 20) => self.packet(LinkType::RAW, at, depth + 1),
            GRE if self.room(at, 4 + 20) => {
                self.read.push(at..at + 2);
                let flags = self.word(at).unwrap_or_default();
                let more = [0x8000, 0x2000, 0x1000].iter().filter(|bit| flags & **bit != 0).count();
                self.typed(at + 2, at + 4 + 4 * more, depth)
            }
            17 => {
                let port = at + 2..at + 4;
                let tunnels = TUNNELS.into_iter().filter(|number| self.may_be(&port, (*number).into()));
                let tunnels: Vec<u16> = tunnels.collect();
                self.tried.push(port);
                tunnels.into_iter().try_for_each(|tunnel| self.tunnel(tunnel, at, depth))
            }
            _ => Ok(()),
        }
    }

    /// What follows at `at`, by the EtherType at `kind`.
    fn typed(&mut self, kind: usize, at: usize, depth: usize) -> Result<(), Stop> {
        self.read.push(kind..kind + 2);
        match self.word(kind) {
            Some(0x0800 | 0x86dd) => self.packet(LinkType::RAW, at, depth + 1),
            Some(0x6558) => self.packet(LinkType::ETHERNET, at, depth + 1),
            _ => Ok(()),
        }
    }

    /// What a UDP header at `at` carries for this port. What has no room for another IP header is no tunnel's.
    fn tunnel(&mut self, port: u16, at: usize, depth: usize) -> Result<(), Stop> {
        match port {
            4789 if self.room(at, 16 + 14 + 20) => self.packet(LinkType::ETHERNET, at + 16, depth + 1),
            // GENEVE with its options.
            6081 if self.room(at, 16 + 20) => {
                self.read.push(at + 8..at + 9);
                let options = self.bytes.get(at + 8).copied().unwrap_or_default() & 0x3f;
                self.typed(at + 10, at + 16 + 4 * usize::from(options), depth)
            }
            // GTP-U: the optional fields, and extension headers behind them.
            2152 if self.room(at, 16 + 20) => {
                let mut inner = at + 16;
                self.read.push(at + 8..at + 9);
                if self.bytes.get(at + 8).is_some_and(|flags| flags & 7 != 0) {
                    inner += 4;
                    for _ in 0..DEEPEST {
                        self.read.push(inner - 1..inner);
                        match (self.bytes.get(inner - 1), self.bytes.get(inner)) {
                            (Some(1..), Some(&length)) => {
                                self.read.push(inner..inner + 1);
                                inner += 4 * usize::from(length).max(1);
                            }
                            _ => break,
                        }
                    }
                }
                self.packet(LinkType::RAW, inner, depth + 1)
            }
            _ => Ok(()),
        }
    }
}

/// All numbers that these bytes may hold, as ranges.
fn ranges(own: &Range<usize>, bytes: &[u8], fields: &[Field]) -> Vec<(u128, u128)> {
    let part = bytes.get(own.clone()).unwrap_or_default();
    let template = part.iter().fold(0, |all, &byte| all << 8 | u128::from(byte));
    let mut all = vec![(template, template)];
    for field in fields {
        let range = field.range();
        if range.end <= own.start || range.start >= own.end {
            continue;
        }
        // The field's bytes as a number, moved to where they stand in the address; what lies outside falls away.
        let width = 8 * part.len();
        let moved = |value: u64| {
            let value = u128::from(value);
            let moved = match own.end.checked_sub(range.end) {
                Some(left) => value.checked_shl(8 * left as u32).unwrap_or(0),
                None => value >> (8 * (range.end - own.end)),
            };
            if width == 128 { moved } else { moved & ((1 << width) - 1) }
        };
        let mask = moved(field.mask);
        let taken: Vec<(u128, u128)> =
            values(field).into_iter().map(|(low, high)| (moved(low), moved(high))).collect();
        let one = all.len() * taken.len() <= MOST_VALUES;
        let hull = |ranges: &[(u128, u128)]| {
            let low = ranges.iter().map(|range| range.0).min().unwrap_or(0);
            vec![(low, ranges.iter().map(|range| range.1).max().unwrap_or(0))]
        };
        let (before, taken) = if one { (all, taken) } else { (hull(&all), hull(&taken)) };
        all = before
            .iter()
            .flat_map(|(low, high)| {
                taken.iter().map(move |(least, most)| (low & !mask | least, high & !mask | most))
            })
            .collect();
    }
    all
}

/// What a field writes, as ranges of its bytes taken as one number.
fn values(field: &Field) -> Vec<(u64, u64)> {
    let ones = field.mask.checked_shr(field.shift.into()).unwrap_or(0);
    let placed = |value: u64| (value & ones) << field.shift & field.mask;
    let everything = vec![(0, field.mask)];
    let run = |start: u64, step: u64, count: u64| {
        let Some(last) = count.checked_sub(1) else { return everything.clone() };
        // A step down is a large one up.
        let (low, high) = match step as i64 {
            0.. => (Some(start), step.checked_mul(last).and_then(|by| start.checked_add(by))),
            _ => (step.wrapping_neg().checked_mul(last).and_then(|by| start.checked_sub(by)), Some(start)),
        };
        match (low, high) {
            (Some(low), Some(high)) if high <= ones => vec![(placed(low), placed(high))],
            _ => everything.clone(),
        }
    };
    match &field.values {
        Values::Range { start, step, count } | Values::Random { start, step, count, .. } => {
            run(*start, *step, *count)
        }
        Values::Shuffled { start, step, bits, .. } => run(*start, *step, 1 << (bits & 63)),
        Values::List(items) | Values::RandomList { items, .. } => {
            items.iter().map(|item| (placed(*item), placed(*item))).collect()
        }
        Values::Runs(runs) | Values::RandomRuns { runs, .. } => {
            runs.each().flat_map(|(start, step, count)| run(start, step, count)).collect()
        }
    }
}
