//! Which elements a record has, in which order.

use crate::element::{self, Element, Number};
use crate::sampling::Flows;
use crate::table::{Ended, Flow, Over};

/// Whose records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// NetFlow v5: IPv4 only, one layout.
    V5,
    /// NetFlow v9 (RFC 3954).
    V9,
    /// IPFIX (RFC 7011).
    Ipfix,
}

impl Version {
    /// As messages have it.
    pub fn number(self) -> u16 {
        match self {
            Version::V5 => 5,
            Version::V9 => 9,
            Version::Ipfix => 10,
        }
    }
}

/// A field: an element and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What it is.
    pub number: Number,
    /// Its bytes.
    pub length: u16,
}

/// The fields of a record that is written, and where their values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// In their order.
    pub fields: Vec<Field>,
    what: Vec<What>,
    version: Version,
}

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// Of which protocol its messages are.
    pub version: Version,
    /// Its flows are of IPv6, or of IPv4.
    pub v6: bool,
    /// Elements of the other direction may be named (RFC 5103); if none is, those that go with what is named are added.
    pub both_ways: bool,
    /// Whose flows have packets of both directions. Of others, what tells of the other one is left out.
    pub answered: bool,
    /// Test signatures are looked for, so that what they say may be named.
    pub signed: bool,
}

impl Purpose {
    /// Flows of one direction.
    pub fn one_way(version: Version, v6: bool) -> Purpose {
        Purpose { version, v6, both_ways: false, answered: false, signed: false }
    }
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// There is no element of this name.
    #[error("`{0}` is no element: names are IANA's (octetDeltaCount) or NetFlow's (%IN_BYTES)")]
    Unknown(String),
    /// It is an element, but of nothing that a flow has here.
    #[error("`{0}` is not known of a flow here: leave it out")]
    NotHad(String),
    /// Test signatures have it, which are not looked for.
    #[error(
        "`{0}` comes from test signatures, which only IPFIX carries: ask for them (`.signatures`), or leave it out"
    )]
    NotSigned(String),
    /// It is of the other direction, and records are of one.
    #[error("`{0}` is of flows of both directions: ask for these (`.biflow`), or leave it out")]
    OtherWay(String),
    /// It names nothing.
    #[error("it names no element")]
    Empty,
    /// Records would be longer than messages.
    #[error("a record would have {0} bytes: name fewer elements")]
    TooLong(usize),
}

/// Where a field's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Octets,
    Packets,
    Protocol,
    Tos,
    TcpFlags,
    SourcePort,
    DestinationPort,
    Source,
    Destination,
    Ingress,
    Egress,
    FirstUptime,
    LastUptime,
    First(Unit),
    Last(Unit),
    Duration(Unit),
    ShortestPacket,
    LongestPacket,
    IcmpTypeCode,
    IcmpType,
    IcmpCode,
    LeastTtl,
    GreatestTtl,
    SourceMac,
    DestinationMac,
    Vlan,
    Version,
    Mpls,
    EndReason,
    SamplingInterval,
    SamplingAlgorithm,
    Dscp,
    /// What times since the start of the exporter count from.
    Began1970,
    /// Who began a flow of both directions.
    Began,
    /// Whether packets arrived or left.
    Direction,
    /// What test signatures said: the stream, the first and the last number, packets.
    Stream,
    FirstSequence,
    LastSequence,
    Signed,
    /// Nothing that is known where packets are only seen: next hops, autonomous systems, prefix lengths.
    Zero,
}

impl What {
    /// It is counted of packets, so each direction has its own (RFC 5103, 6.1).
    fn is_counted(self) -> bool {
        use What::{
            Duration, First, FirstUptime, GreatestTtl, Last, LastUptime, LeastTtl, LongestPacket, Octets,
            Packets, ShortestPacket, TcpFlags,
        };
        let times = matches!(self, FirstUptime | LastUptime | First(_) | Last(_) | Duration(_));
        let counts = matches!(self, Octets | Packets | TcpFlags);
        times || counts || matches!(self, ShortestPacket | LongestPacket | LeastTtl | GreatestTtl)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

/// What is known beside a flow when its record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// When the exporter began, in nanoseconds since 1970: `sysUpTime` counts from there.
    pub began_ns: u64,
    /// The interface that packets came in by (ifIndex), and where they leave: of flows that arrive, and of flows that leave.
    pub interfaces: [[u32; 2]; 2],
    /// One packet in so many was looked at; 1 is each.
    pub sampling: u32,
    /// They were chosen by chance.
    pub random: bool,
    /// Which flows are metered.
    pub flows: Flows,
}

impl Context {
    /// The interfaces of a flow's packets.
    pub(crate) fn interfaces(&self, flow: &Flow) -> [u32; 2] {
        self.interfaces[usize::from(flow.egress)]
    }
}

/// Ours: times to the millisecond, and why a record ended.
///
/// Those of v9 count from the start of the exporter (22, 21), as RFC 3954 has them: goflow2 2.2.6 reads no others of v9 and gives each
/// flow the message's time, with no word. nfcapd 1.7.1 reads either; pmacct 1.7.7 reads an uptime to the second, of whatever exporter.
pub fn usual(version: Version) -> String {
    let (first, last) = match version {
        Version::V9 => ("flowStartSysUpTime", "flowEndSysUpTime"),
        Version::V5 | Version::Ipfix => ("flowStartMilliseconds", "flowEndMilliseconds"),
    };
    format!("{USUAL} {first} {last} {USUAL_ENDS}")
}

const USUAL: &str = "sourceIPv4Address destinationIPv4Address sourceTransportPort destinationTransportPort \
     protocolIdentifier ipClassOfService tcpControlBits octetDeltaCount packetDeltaCount";
const USUAL_ENDS: &str = "ingressInterface egressInterface vlanId icmpTypeCodeIPv4 ipVersion flowEndReason";

/// What test signatures say of a flow, in netdyno's own elements ([`element::OWN`]).
pub const SIGNED: &str = "netdynoStream netdynoFirstSequence netdynoLastSequence netdynoSignedPackets";

impl Template {
    /// Reads names with spaces or commas between them. Of addresses, those of the purpose's IP version are taken, whichever is
    /// named. Where IPFIX has times since the start of the exporter, what they count from is added: its messages do not say it,
    /// as those of NetFlow do.
    ///
    /// # Errors
    /// Which name is none, or that there is none.
    pub fn parse(text: &str, purpose: Purpose) -> Result<Template, BadTemplate> {
        let mut template = Template { fields: Vec::new(), what: Vec::new(), version: purpose.version };
        let mut names_other_way = false;
        for name in text.split([' ', ',', '\t', '\n', '"']).filter(|name| !name.is_empty()) {
            let not_had = || BadTemplate::NotHad(name.to_owned());
            if let Some(element) = element::reverse_of_name(name) {
                let what = what(element.number.id).filter(|what| what.is_counted()).ok_or_else(not_had)?;
                if !purpose.both_ways {
                    return Err(BadTemplate::OtherWay(name.to_owned()));
                }
                names_other_way = true;
                if purpose.answered {
                    template.push(element, element::REVERSE, what, purpose);
                }
                continue;
            }
            let element = element::of_name(name).ok_or_else(|| BadTemplate::Unknown(name.to_owned()))?;
            if element.number.enterprise == element::OWN {
                if !purpose.signed || purpose.version != Version::Ipfix {
                    return Err(BadTemplate::NotSigned(name.to_owned()));
                }
                let what = own(element.number.id).ok_or_else(not_had)?;
                template.push(element, element::OWN, what, purpose);
                continue;
            }
            let element = of_version(element, purpose.v6);
            let what = what(element.number.id).ok_or_else(not_had)?;
            if what == What::Began && !purpose.both_ways {
                return Err(BadTemplate::OtherWay(name.to_owned()));
            }
            if what != What::Began || purpose.answered {
                template.push(element, 0, what, purpose);
            }
        }
        if purpose.answered && !names_other_way {
            template.add_other_way(purpose);
        }
        let by_start = template.has_uptime() && purpose.version == Version::Ipfix;
        if let Some(element) = element::of_name("systemInitTimeMilliseconds").filter(|_| by_start) {
            template.push(element, 0, What::Began1970, purpose);
        }
        match template.length() {
            0 => Err(BadTemplate::Empty),
            long if long > 1000 => Err(BadTemplate::TooLong(long)),
            _ => Ok(template),
        }
    }

    /// Adds a field, unless it is there.
    fn push(&mut self, element: &Element, enterprise: u32, what: What, purpose: Purpose) {
        let number = Number { enterprise, ..element.number };
        if self.fields.iter().any(|field| field.number == number) {
            return;
        }
        let length = if purpose.version == Version::V9 { element.length_v9 } else { element.length };
        self.fields.push(Field { number, length });
        self.what.push(what);
    }

    /// Of all that is counted, the same of the other direction, and who began.
    fn add_other_way(&mut self, purpose: Purpose) {
        let counted: Vec<(u16, What)> = self
            .fields
            .iter()
            .zip(&self.what)
            .filter(|(_, what)| what.is_counted())
            .map(|(field, what)| (field.number.id, *what))
            .collect();
        for (id, what) in counted {
            if let Some(element) = element::of_number(Number::iana(id)) {
                self.push(element, element::REVERSE, what, purpose);
            }
        }
        if let Some(element) = element::of_name("biflowDirection") {
            self.push(element, 0, What::Began, purpose);
        }
    }

    /// Some of its times count from the start of the exporter (`sysUpTime`).
    pub(crate) fn has_uptime(&self) -> bool {
        self.what.iter().any(|what| matches!(what, What::FirstUptime | What::LastUptime))
    }

    /// The longest time from a flow's first packet to its last that its fields can say.
    pub(crate) fn longest_ns(&self) -> u64 {
        let longest = |what: &What| match what {
            What::FirstUptime | What::LastUptime => UPTIME_NS,
            What::Duration(Unit::Milliseconds) => u64::from(u32::MAX) * 1_000_000,
            What::Duration(_) => u64::from(u32::MAX) * 1000,
            _ => u64::MAX,
        };
        self.what.iter().map(longest).min().unwrap_or(u64::MAX)
    }

    /// The most that its counters of bytes and packets hold.
    pub(crate) fn most_octets(&self) -> u64 {
        let counters = self
            .fields
            .iter()
            .zip(&self.what)
            .filter(|(_, what)| matches!(what, What::Octets | What::Packets));
        let most = |bytes: u16| 1u64.checked_shl(8 * u32::from(bytes)).map_or(u64::MAX, |above| above - 1);
        counters.map(|(field, _)| most(field.length)).min().unwrap_or(u64::MAX)
    }

    /// Bytes of a record.
    pub fn length(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.length)).sum()
    }

    /// What times since the start of the exporter count from, in milliseconds since 1970: its start, as v9's messages have it. In
    /// IPFIX the record says it, so that a flow of before the start, or of long after it, has one of its own.
    fn init_ms(&self, first_ns: u64, context: &Context) -> u64 {
        let says = self.what.contains(&What::Began1970) && self.version == Version::Ipfix;
        match first_ns.checked_sub(context.began_ns) {
            Some(since) if since < UPTIME_NS || !says => context.began_ns / 1_000_000,
            None if !says => context.began_ns / 1_000_000,
            // A second before its first packet: a time of 0 is none to some who read it.
            _ => (first_ns / 1_000_000).saturating_sub(1000),
        }
    }

    /// Writes the record of a flow.
    pub fn write(&self, over: &Over, context: &Context, out: &mut Vec<u8>) {
        let (forward, why) = (&over.flow, over.why);
        let back = over.other_way();
        let first_ns = back.map_or(forward.times_ns[0], |back| forward.times_ns[0].min(back.times_ns[0]));
        let init_ms = self.init_ms(first_ns, context);
        for (field, what) in self.fields.iter().zip(&self.what) {
            let length = usize::from(field.length);
            let other_way = field.number.enterprise == element::REVERSE;
            let flow = if other_way { back.as_ref().unwrap_or(forward) } else { forward };
            let signs = over.signs.unwrap_or_default();
            match what {
                What::Stream => number(signs.stream.into(), length, out),
                What::FirstSequence => number(signs.sequences[0], length, out),
                What::LastSequence => number(signs.sequences[1], length, out),
                What::Signed => number(signs.packets, length, out),
                What::Began => number(over.back.map_or(0, |back| back.began as u64), length, out),
                What::Source => address(flow, 0, length, out),
                What::Destination => address(flow, 1, length, out),
                What::SourceMac => out.extend(flow.macs[0]),
                What::DestinationMac => out.extend(flow.macs[1]),
                What::Mpls => out.extend(flow.mpls),
                // In one byte there are but the classic eight.
                What::TcpFlags if length == 1 => out.push(flow.tcp_flags as u8),
                what => number(value(*what, flow, why, (context, init_ms)), length, out),
            }
        }
    }
}

/// Half of what 32 bits of milliseconds can say, which wrap: 24.8 days. Within it times by `sysUpTime` have one meaning.
pub(crate) const UPTIME_NS: u64 = (1 << 31) * 1_000_000;

/// Big-endian, in so many bytes. What does not fit is the greatest that does: a counter that is too small would lie.
fn number(value: u64, length: usize, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    match bytes.get(8usize.wrapping_sub(length)..) {
        Some(last) if length == 8 || value >> (8 * length) == 0 => out.extend(last),
        Some(_) => out.extend(std::iter::repeat_n(0xff, length)),
        None => {
            out.extend(std::iter::repeat_n(0, length.saturating_sub(8)));
            out.extend(bytes);
        }
    }
}

fn address(flow: &Flow, which: usize, length: usize, out: &mut Vec<u8>) {
    let [hi, lo] = flow.key.address_words(which);
    if length == 16 {
        out.extend(hi.to_be_bytes());
        out.extend(lo.to_be_bytes());
    } else {
        out.extend((lo as u32).to_be_bytes());
    }
}

/// 2^-32 s since 1900 (RFC 7011, 6.1.9): NTP's era began so many seconds before 1970.
pub(crate) const NTP_TO_UNIX: u64 = 2_208_988_800;

fn ntp(ns: u64, mask: u64) -> u64 {
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    // Upwards, so that who reads nanoseconds gets the same ones again.
    let fraction = (rest << 32).div_ceil(1_000_000_000).min(u64::from(u32::MAX));
    (seconds + NTP_TO_UNIX) << 32 | fraction & mask
}

fn time(ns: u64, unit: Unit) -> u64 {
    match unit {
        Unit::Seconds => ns / 1_000_000_000,
        Unit::Milliseconds => ns / 1_000_000,
        // The last eleven bits are zero (RFC 7011, 6.1.9).
        Unit::Microseconds => ntp(ns, !0x7ff),
        Unit::Nanoseconds => ntp(ns, !0),
    }
}

fn value(what: What, flow: &Flow, why: Ended, (context, init_ms): (&Context, u64)) -> u64 {
    let [first, last] = flow.times_ns;
    let uptime = |ns: u64| (ns / 1_000_000).wrapping_sub(init_ms) & u64::from(u32::MAX);
    let [source_port, destination_port] = flow.key.ports();
    let is_icmp =
        matches!(flow.key.protocol(), wire::numbers::protocol::ICMP | wire::numbers::protocol::ICMPV6);
    let icmp = if is_icmp { destination_port } else { 0 };
    match what {
        What::Octets => flow.octets,
        What::Packets => flow.packets,
        What::Protocol => flow.key.protocol().into(),
        What::Tos => flow.key.tos().into(),
        What::Dscp => (flow.key.tos() >> 2).into(),
        What::TcpFlags => flow.tcp_flags.into(),
        What::SourcePort => source_port.into(),
        What::DestinationPort => destination_port.into(),
        What::Ingress => context.interfaces(flow)[0].into(),
        What::Egress => context.interfaces(flow)[1].into(),
        What::Direction => flow.egress.into(),
        What::FirstUptime => uptime(first),
        What::LastUptime => uptime(last),
        What::First(unit) => time(first, unit),
        What::Last(unit) => time(last, unit),
        What::Duration(Unit::Milliseconds) => last / 1_000_000 - first / 1_000_000,
        What::Duration(_) => (last - first) / 1000,
        What::ShortestPacket => flow.lengths[0].into(),
        What::LongestPacket => flow.lengths[1].into(),
        What::IcmpTypeCode => icmp.into(),
        What::IcmpType => (icmp >> 8).into(),
        What::IcmpCode => (icmp & 0xff).into(),
        What::LeastTtl => flow.ttl[0].into(),
        What::GreatestTtl => flow.ttl[1].into(),
        What::Vlan => flow.key.vlan().unwrap_or(0).into(),
        What::Version => {
            if flow.key.is_v6() {
                6
            } else {
                4
            }
        }
        What::EndReason => why.number().into(),
        What::Began1970 => init_ms,
        What::SamplingInterval => context.sampling.max(1).into(),
        What::SamplingAlgorithm => {
            if context.random {
                2
            } else {
                1
            }
        }
        What::Zero
        | What::Stream
        | What::FirstSequence
        | What::LastSequence
        | What::Signed
        | What::Began
        | What::Source
        | What::Destination
        | What::SourceMac
        | What::DestinationMac
        | What::Mpls => 0,
    }
}

/// The element of the wanted IP version that says the same.
fn of_version(element: &'static Element, v6: bool) -> &'static Element {
    const SAME: [(u16, u16); 7] = [(8, 27), (12, 28), (9, 29), (13, 30), (15, 62), (18, 63), (32, 139)];
    let id = element.number.id;
    let other = SAME.iter().find_map(|(four, six)| match v6 {
        true if id == *four => Some(*six),
        false if id == *six => Some(*four),
        _ => None,
    });
    other.and_then(|id| element::of_number(Number::iana(id))).unwrap_or(element)
}

/// Of netdyno's own elements.
fn own(id: u16) -> Option<What> {
    Some(match id {
        1 => What::Stream,
        2 => What::FirstSequence,
        3 => What::LastSequence,
        4 => What::Signed,
        _ => return None,
    })
}

fn what(id: u16) -> Option<What> {
    Some(match id {
        1 | 85 => What::Octets,
        2 | 86 => What::Packets,
        4 => What::Protocol,
        5 | 55 => What::Tos,
        6 => What::TcpFlags,
        7 => What::SourcePort,
        11 => What::DestinationPort,
        8 | 27 => What::Source,
        12 | 28 => What::Destination,
        10 | 252 => What::Ingress,
        14 | 253 => What::Egress,
        9 | 13 | 15 | 16 | 17 | 18 | 29 | 30 | 62 | 63 => What::Zero,
        21 => What::LastUptime,
        22 => What::FirstUptime,
        25 => What::ShortestPacket,
        26 => What::LongestPacket,
        32 | 139 => What::IcmpTypeCode,
        34 => What::SamplingInterval,
        35 => What::SamplingAlgorithm,
        52 => What::LeastTtl,
        53 => What::GreatestTtl,
        56 => What::SourceMac,
        80 => What::DestinationMac,
        58 | 243 => What::Vlan,
        60 => What::Version,
        61 => What::Direction,
        70 => What::Mpls,
        136 => What::EndReason,
        239 => What::Began,
        150 => What::First(Unit::Seconds),
        151 => What::Last(Unit::Seconds),
        152 => What::First(Unit::Milliseconds),
        153 => What::Last(Unit::Milliseconds),
        154 => What::First(Unit::Microseconds),
        155 => What::Last(Unit::Microseconds),
        156 => What::First(Unit::Nanoseconds),
        157 => What::Last(Unit::Nanoseconds),
        160 => What::Began1970,
        161 => What::Duration(Unit::Milliseconds),
        162 => What::Duration(Unit::Microseconds),
        176 | 178 => What::IcmpType,
        177 | 179 => What::IcmpCode,
        195 => What::Dscp,
        _ => return None,
    })
}
