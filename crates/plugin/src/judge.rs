//! Where frames go, for plugins that say of themselves that they load one's own equipment only (`restricted`).
//!
//! What is judged are the frames themselves: of a packet program the bytes of its templates with all values that its fields
//! may take, of frames that a plugin yields each frame. What options say is not looked at. Every destination has to lie in
//! [`ALLOWED`], that of the outermost IP header as those in tunnels; what that depends on (EtherTypes, IP versions) may not
//! vary.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
        for number in 0..stream.templates.len() {
            let template = stream.templates.get(number);
            // Shorter frames have fewer headers, and none that the longest has not.
            judge(&stream.name, template, &stream.fields)?;
        }
        signed_over(stream)?;
    }
    Ok(())
}

/// A signature stands in the last bytes, whatever they are: not over an address.
fn signed_over(stream: &Stream) -> Result<(), Refused> {
    let template = stream.templates.get(0);
    let (shortest, _) = stream.lengths.bounds(template.len() as u32);
    let from = (shortest as usize).saturating_sub(wire::signature::LEN);
    let over = |head: &Head| stream.signature.is_some() && head.destination.end > from;
    match heads(template).iter().find(|head| over(head)) {
        Some(head) => Err(Refused::Structure { stream: stream.name.clone(), offset: head.destination.start }),
        None => Ok(()),
    }
}

/// Judges one frame, of those called `name`.
///
/// # Errors
/// As of [`program`].
pub fn frame(name: &str, bytes: &[u8]) -> Result<(), Refused> {
    judge(name, bytes, &[])
}

fn judge(name: &str, bytes: &[u8], fields: &[Field]) -> Result<(), Refused> {
    let structure = |offset: usize| Refused::Structure { stream: name.to_owned(), offset };
    let heads = heads(bytes);
    let layers = Layers::parse(LinkType::ETHERNET, bytes);
    // The link headers: where they say that IP begins, and that something else does.
    let link_end = if layers.is_ip() { layers.l3_offset } else { bytes.len().min(layers.l3_offset) };
    let varies = |range: std::ops::Range<usize>| {
        let touched = fields.iter().flat_map(|field| field.range().filter(|at| touches(field, *at)));
        touched.filter(|at| range.contains(at)).min()
    };
    if let Some(at) = varies(12..link_end).filter(|at| structural(bytes, *at, link_end)) {
        return Err(structure(at));
    }
    for head in &heads {
        if let Some(at) = varies(head.at..head.at + 1) {
            return Err(structure(at));
        }
        let address = |high: bool| {
            let part = bytes.get(head.destination.clone()).unwrap_or_default();
            let own = part.iter().fold(0, |all, &byte| all << 8 | u128::from(byte));
            (own, part.len(), high)
        };
        for (low, high) in ranges(head, bytes, fields) {
            let (_, width, _) = address(false);
            let of = |bits: u128| match width {
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

/// Does a byte in front of the network layer decide what that is? Tag control and label values do not.
fn structural(bytes: &[u8], at: usize, link_end: usize) -> bool {
    let mut type_at = 12;
    while type_at + 2 <= link_end {
        if (type_at..type_at + 2).contains(&at) {
            return true;
        }
        match bytes.get(type_at..type_at + 2) {
            Some([0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]) => type_at += 4,
            // Labels: the bottom-of-stack bit decides.
            Some([0x88, 0x47] | [0x88, 0x48]) => return at >= type_at + 2 && (at - type_at - 2) % 4 == 2,
            _ => return at >= type_at,
        }
    }
    false
}

/// Does the field write a bit of this byte?
fn touches(field: &Field, at: usize) -> bool {
    let range = field.range();
    let from_end = range.end.saturating_sub(at + 1);
    range.contains(&at) && (field.mask >> (8 * from_end as u32)) & 0xff != 0
}

/// An IP header.
struct Head {
    at: usize,
    destination: std::ops::Range<usize>,
}

/// The IP headers of a frame: the outermost, and what IP, GRE, VXLAN, GENEVE and GTP-U carry.
fn heads(bytes: &[u8]) -> Vec<Head> {
    let mut heads = Vec::new();
    let mut layers = Layers::parse(LinkType::ETHERNET, bytes);
    let mut base = 0;
    while heads.len() < DEEPEST && layers.is_ip() {
        let at = base + layers.l3_offset;
        let destination = if layers.l3 == L3::V4 { at + 16..at + 20 } else { at + 24..at + 40 };
        heads.push(Head { at, destination });
        let (Some(l4), Some(protocol)) = (layers.l4_offset, layers.ip_protocol) else { break };
        let Some((link, from)) = carried(bytes, base + l4, protocol) else { break };
        let Some(rest) = bytes.get(from..) else { break };
        layers = Layers::parse(link, rest);
        base = from;
    }
    heads
}

/// What a transport header at `at` carries, if that is a packet or a frame: of which type, and where it begins.
fn carried(bytes: &[u8], at: usize, protocol: u8) -> Option<(LinkType, usize)> {
    use wire::numbers::protocol;
    const GRE: u8 = 47;
    let word = |at: usize| bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map(u16::from_be_bytes);
    let by_type = |ethertype: u16, at: usize| match ethertype {
        0x0800 | 0x86dd => Some((LinkType::RAW, at)),
        0x6558 => Some((LinkType::ETHERNET, at)),
        _ => None,
    };
    match protocol {
        // IPv4 or IPv6 in IP.
        4 | 41 => Some((LinkType::RAW, at)),
        GRE => {
            let flags = word(at)?;
            let more = [0x8000, 0x2000, 0x1000].iter().filter(|bit| flags & **bit != 0).count();
            by_type(word(at + 2)?, at + 4 + 4 * more)
        }
        protocol::UDP => match word(at + 2)? {
            // VXLAN, and GENEVE with its options.
            4789 => Some((LinkType::ETHERNET, at + 16)),
            6081 => by_type(word(at + 10)?, at + 16 + 4 * usize::from(bytes.get(at + 8)? & 0x3f)),
            // GTP-U: the optional fields, and extension headers behind them.
            2152 => {
                let flags = *bytes.get(at + 8)?;
                let mut inner = at + 16;
                if flags & 7 != 0 {
                    inner += 4;
                    let mut next = *bytes.get(inner - 1)?;
                    for _ in 0..DEEPEST {
                        if next == 0 {
                            break;
                        }
                        let length = 4 * usize::from(*bytes.get(inner)?).max(1);
                        inner += length;
                        next = *bytes.get(inner - 1)?;
                    }
                }
                Some((LinkType::RAW, inner))
            }
            _ => None,
        },
        _ => None,
    }
}

/// All destinations of a header, as ranges.
fn ranges(head: &Head, bytes: &[u8], fields: &[Field]) -> Vec<(u128, u128)> {
    let part = bytes.get(head.destination.clone()).unwrap_or_default();
    let template = part.iter().fold(0, |all, &byte| all << 8 | u128::from(byte));
    let mut all = vec![(template, template)];
    for field in fields {
        let range = field.range();
        if range.end <= head.destination.start || range.start >= head.destination.end {
            continue;
        }
        // The field's bytes as a number, moved to where they stand in the address; what lies outside falls away.
        let width = 8 * part.len();
        let moved = |value: u64| {
            let value = u128::from(value);
            let moved = match head.destination.end.checked_sub(range.end) {
                Some(left) => value.checked_shl(8 * left as u32).unwrap_or(0),
                None => value >> (8 * (range.end - head.destination.end)),
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
        let (own, taken) = if one { (all, taken) } else { (hull(&all), hull(&taken)) };
        all = own
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
    }
}
