//! Jobs that send: of an expression, a scenario, captures.

use crate::bench::Bench;
use crate::check::{self, Contradiction};
use crate::consent::{self, Consent};
use crate::edits::Edits;
use crate::kind::Kind;
use crate::listen::{Capture, Clock, How, Timestamps};
use crate::parts::{disrupting, lab, metering, pace, priority, shape, through, tracing};
use crate::plugin::Plugin;
use crate::setting::{self, Member, Settings as _};
use crate::words::words;
use crate::written::{Share, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::settings;
use std::ffi::OsStr;
use std::path::PathBuf;
use traffic::schedule::Speed;

/// Where frames leave, and where they are measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Frames leave by this interface (IFACE, or IFACE@NAMESPACE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// They are measured, and dropped unless `meter.pass` says otherwise, where they arrive on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
}

/// Of a link one interface, as a text: `on=eth1`, `measure=eth2`, and `on2=`, `measure2=` of the second of two links. What a client
/// is told of each is declared with the job's links.
enum End {
    On,
    Measure,
}

impl End {
    /// Which, of a certain link or of the first that has none, and the interface.
    fn read(given: &OsStr) -> Result<(End, Option<usize>, &str), String> {
        let given = setting::text(given)?;
        let (which, interface) = given.split_once('=').unwrap_or(("on", given));
        if interface.is_empty() {
            return Err("an interface has a name".to_owned());
        }
        match which {
            "on" => Ok((End::On, None, interface)),
            "measure" => Ok((End::Measure, None, interface)),
            "on2" => Ok((End::On, Some(1), interface)),
            "measure2" => Ok((End::Measure, Some(1), interface)),
            _ => Err("write on=IFACE or measure=IFACE".to_owned()),
        }
    }

    fn of(self, link: &mut Link) -> &mut Option<String> {
        match self {
            End::On => &mut link.on,
            End::Measure => &mut link.measure,
        }
    }
}

/// The nth interface that frames leave by is of the nth link, as is the nth that they are measured on.
impl setting::Value for Vec<Link> {
    const SHAPE: setting::Shape = setting::Shape::Many;

    fn reads(text: &OsStr) -> Result<(), String> {
        End::read(text).map(|_| ())
    }

    fn put(&mut self, text: &OsStr) -> Result<(), String> {
        let (end, number, interface) = End::read(text)?;
        let missing = |link: &Link| match end {
            End::On => link.on.is_none(),
            End::Measure => link.measure.is_none(),
        };
        let number = number.or_else(|| self.iter().position(missing)).unwrap_or(self.len());
        if self.len() <= number {
            self.resize_with(number + 1, Link::default);
        }
        if let Some(link) = self.get_mut(number) {
            *end.of(link) = Some(interface.to_owned());
        }
        Ok(())
    }
}

words! {
    /// Which ports send to which.
    Pattern {
        /// Each link by itself: what leaves by `on` arrives at `measure`.
        Pairs = "pairs",
        /// Fully meshed (RFC 2889): each `on` sends to every other, in turns, and measures what is sent to it.
        Mesh = "mesh",
    }
}

impl Pattern {
    /// As it is where nobody says so.
    pub(crate) fn is_pairs(&self) -> bool {
        *self == Pattern::Pairs
    }
}

words! {
    /// How frames leave.
    Engine {
        /// The fastest that the interface, the kernel and the frames allow.
        Auto = "auto",
        /// XDP live frames: made in the kernel.
        Xdp = "xdp",
        /// AF_XDP sockets, without copying where the driver can.
        Afxdp = "afxdp",
        /// A packet socket with sendmmsg.
        Packet = "packet",
        /// A packet socket with PACKET_TX_RING.
        PacketRing = "packet-ring",
        /// Nowhere.
        Null = "null",
    }
}

words! {
    /// Who says when frames left.
    Stamps {
        /// The hardware.
        Hardware = "hardware",
        /// The driver, as it hands them to the hardware.
        Driver = "driver",
    }
}

words! {
    /// Which frames end with a signature (stream, sequence, time).
    Sign {
        /// Those that have room for one, where they are measured; of captures none.
        Auto = "auto",
        /// All; of captures those with as many bytes of TCP or UDP payload.
        Always = "always",
        /// None.
        Never = "never",
    }
}

/// Through what.
#[settings]
pub struct Through {
    #[part]
    through: through!(),
}

/// What an expression does not say.
#[settings]
pub struct Shape {
    #[part]
    shape: shape!(),
}

/// How frames are measured where they arrive.
#[settings(heading = "Measure")]
pub struct Meter {
    /// How to measure: xdp (native), xdp-generic, packet (a packet socket), or the best that is possible.
    #[setting(option = "meter", value = "HOW", default = "auto", expert)]
    #[serde(default)]
    pub how: How,
    /// Who times arrivals: the hardware (it must stamp all frames; by native XDP where the driver gives its stamps to XDP
    /// programs, else by a packet socket), software, or auto: the hardware where the meter that is taken anyway sees its stamps.
    #[setting(value = "WHO", default = "auto", expert)]
    #[serde(default)]
    pub timestamps: Timestamps,
    /// The clock of the time stamps in frames: monotonic, this host's own; or tai, which PTP or NTP keep alike on several
    /// hosts, for delays between them. Sender and meter must use the same.
    #[setting(value = "CLOCK", default = "monotonic", expert)]
    #[serde(default)]
    pub clock: Clock,
    /// So many of the streams, from the first on, get percentiles of their latency; 32 KB of memory each. The others have
    /// minimum, mean and maximum.
    #[setting(value = "N", default = "64", expert)]
    pub stream_histograms: Option<u32>,
    /// Keep how the times between the arrivals of a stream spread, too, of as many streams as have percentiles of latency; 32 KB of
    /// memory each. Costs the receiver some time for each frame. On by itself where the whole load has a shape.
    #[setting(brief = "Keep how the times between a stream's arrivals spread (docs/measuring.md)")]
    pub inter_arrival: bool,
    /// Check the payload of each frame that arrives against what was sent, as far as it does not vary: frames that
    /// differ are counted as corrupted. Headers may change on the way. Costs the receiver some time for each byte.
    #[setting(brief = "Check the payload of each frame against what was sent")]
    pub check_content: bool,
    /// Let frames go on to the host of `.measure` after they were counted: for a service there that is to get them, or another
    /// program that looks on. Its stack then works for each frame, on the CPU that measures, and may answer. Default: XDP drops
    /// them (a packet socket cannot).
    pub pass: bool,
    /// What arrives is captured, too.
    #[setting(within)]
    pub capture: Option<Capture>,
}

/// Frames of an expression, a scenario or a plugin are sent.
#[settings(heading = "Traffic")]
pub struct Send {
    /// What to send: a packet expression such as 'ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535)' (see
    /// docs/expressions.md), or a scenario file of several streams, FILE.yaml or - for standard input (see
    /// docs/scenarios.md).
    #[setting(
        typed_by_place,
        value = "WHAT",
        optional,
        file,
        brief = "A packet, such as 'ipv4(src=10.0.0.0/16)/udp(dport=53)' (docs/expressions.md), or a scenario FILE.yaml"
    )]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// Instead of that: a plugin says what the frames are.
    #[setting(within)]
    pub plugin: Option<Plugin>,
    /// Where frames leave and are measured. Of several links each sends the whole, at the rate and as many frames as are asked
    /// for, from one start.
    #[setting(
        unnamed,
        comma,
        excludes("lab"),
        shorthand(
            option = "on",
            value = "IFACE",
            means = "on={}",
            text = "Send on this interface (IFACE, or IFACE@NAMESPACE). Given several times, each of these ports sends `.what`, at the rate and as many frames as are asked for, from one start."
        ),
        shorthand(
            option = "measure",
            value = "IFACE",
            means = "measure={}",
            heading = "Measure",
            text = "Measure on this interface what arrives (IFACE, or IFACE@NAMESPACE); of several ports on one for each. What arrives there is dropped after it was counted, unless `.pass` says otherwise."
        )
    )]
    pub links: Vec<Link>,
    /// The interfaces of several agents share what is sent: each frame leaves by one of them, at the rate and as many frames as are asked for in
    /// all. Default: each sends the whole.
    #[setting(brief = "Share what is sent among the agents, instead of each sending the whole")]
    pub share: bool,
    #[part]
    lab: lab!(),
    /// Which of several links send to which. In a mesh, {src_ip} and {dst_ip} in `what` stand for the addresses of ports.
    #[setting(
        unnamed,
        default = "pairs",
        excludes("round_trip", "resolve", "lab"),
        shorthand(
            option = "mesh",
            means = "mesh",
            text = "Fully meshed traffic (RFC 2889): each `.on` sends to every other, in turns, and measures what is sent to it. Frames get the ports' Ethernet addresses, unless `.what` gives some; {src_ip} and {dst_ip} in it are addresses of 198.18.0.0/15, in a network of its own for each port."
        )
    )]
    #[serde(default, skip_serializing_if = "Pattern::is_pairs")]
    pub pattern: Pattern,
    #[part]
    frames: shape!(),
    /// Which frames are signed.
    #[setting(
        unnamed,
        default = "auto",
        shorthand(
            option = "sign",
            means = "always",
            text = "End each frame with an 18-byte signature (stream, sequence, time), for loss, order and latency. On by itself with `.measure`, where there is room."
        ),
        shorthand(
            option = "no-sign",
            means = "never",
            excludes("round_trip"),
            text = "Sign no frame although it is measured: the receiver then counts, and spends no time on order and latency."
        )
    )]
    #[serde(default)]
    pub sign: Sign,
    #[part]
    pace: pace!(),
    /// How the load varies, instead of frames at even distances: poisson (the rate is the mean of exponential gaps),
    /// sine:period=10s,amplitude=50% (about the rate), square:period=1s,high=20%,low=10% (the rate for 20% of each second, 10% of it
    /// for the rest), flash:after=10s,rise=2s,peak=10x,hold=5s,fall=20s (once up to ten times the rate, and back), or
    /// onoff:on=100ms,off=900ms,alpha=1.5 (the rate and nothing by turns, for times of Pareto distribution: self-similar). With
    /// arrivals=poisson behind any but the first, frames come by chance at that rate. See docs/scenarios.md.
    #[setting(
        value = "SHAPE",
        heading = "Rate",
        needs("rate"),
        brief = "Vary the load: poisson, sine:period=10s, square:period=1s, flash:rise=2s,fall=20s, onoff:on=100ms,off=1s"
    )]
    pub shape: Option<Written<traffic::Shape>>,
    #[part]
    priority: priority!(),
    #[part]
    through: through!(),
    #[part]
    metering: metering!(),
    #[part]
    tracing: tracing!(),
    /// Find the Ethernet address of the next hop, by the first frame's destination address: from the kernel's tables,
    /// or by ARP and neighbour solicitation. An address given in ether(dst=...) stays.
    #[setting(
        brief = "Find the Ethernet address of the next hop, by ARP or neighbour solicitation",
        excludes("lab")
    )]
    pub resolve: bool,
    #[part]
    disrupting: disrupting!(),
}

words! {
    /// Of two sides one.
    Side {
        /// That which leaves by the first link.
        First = "first",
        /// That which leaves by the second.
        Second = "second",
    }
}

words! {
    /// What becomes of frames longer than the interface's MTU allows.
    Oversize {
        /// The capture is refused.
        Refuse = "refuse",
        /// They are skipped, and counted.
        Skip = "skip",
    }
}

/// Frames that are not sent, on purpose.
#[settings(heading = "Traffic", perhaps)]
pub struct Loss {
    /// Do not send this share of the frames: 1%, 0.5%. Each is lost with the same probability; the captures are then
    /// read while sending.
    #[setting(option = "loss", value = "PERCENT")]
    pub share: Written<Share>,
    /// Which frames get lost: the same seed loses the same ones.
    #[setting(option = "loss-seed", value = "SEED", default = "1", needs("share"), expert)]
    pub seed: Option<u64>,
}

/// Captures are sent.
#[settings(heading = "Traffic")]
pub struct Replay {
    /// Captures, sent one after the other: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[setting(typed_by_place, value = "FILE", always, needed)]
    pub captures: Vec<PathBuf>,
    /// Where frames leave and are measured; of two sides the first's, then the second's.
    #[setting(
        unnamed,
        excludes("lab"),
        shorthand(
            option = "on",
            value = "IFACE",
            means = "on={}",
            text = "Send on this interface (IFACE, or IFACE@NAMESPACE)."
        ),
        shorthand(
            option = "on2",
            value = "IFACE",
            means = "on2={}",
            excludes("only_side"),
            text = "Send the frames of the second side on this interface (IFACE, or IFACE@NAMESPACE), those of the first on `.on`, in the order and at the times of the capture across both. Which side sent each frame `.sides` says; default: auto."
        ),
        shorthand(
            option = "measure",
            value = "IFACE",
            means = "measure={}",
            heading = "Measure",
            text = "Measure on this interface what arrives (IFACE, or IFACE@NAMESPACE). What arrives there is dropped after it was counted, unless `.pass` says otherwise."
        ),
        shorthand(
            option = "measure2",
            value = "IFACE",
            means = "measure2={}",
            heading = "Measure",
            needs("measure", "on2"),
            text = "Measure on this interface what arrives of `.on2`'s frames, and with `.measure` what arrives of `.on`'s: with a device in the middle, frames of `.on` arrive where those of `.on2` leave."
        )
    )]
    pub links: Vec<Link>,
    #[part]
    lab: lab!(),
    /// Which side sent each frame: the first's leave by `.on`, the second's by `.links[1].on`, and edits tell them apart. By what hosts do: auto (clients first; what
    /// gives nothing away is a client), server, bridge, router, first (who is seen first is a client); by their addresses:
    /// cidr=10.0.0.0/8,... or mac=02:00:00:00:00:01,... are first; by port; by a cache file of tcpprep (its name); or by
    /// file: `files` takes captures in pairs, one of each side, and merges them by their times. What a cache file leaves
    /// out is not sent.
    #[setting(
        value = "HOW",
        file,
        brief = "Which side sent each frame: auto, cidr=..., port, a cache of tcpprep, files"
    )]
    pub sides: Option<String>,
    /// Send this side's frames only, by `.on`: where what is in between would not pass on both sides' by one port.
    #[setting(value = "SIDE", needs("sides"), rare)]
    pub only_side: Option<Side>,
    /// Write the frames, with the times they would leave at, into a capture file instead.
    #[setting(short = 'w', value = "FILE", excludes("links", "lab", "round_trip", "cores"), consent)]
    pub write: Option<PathBuf>,
    /// Faster or slower than captured: 2x, 0.5x. Default: as captured, 1x.
    #[setting(value = "SPEED", heading = "Rate", excludes("rate"))]
    pub speed: Option<Written<Speed>>,
    #[part]
    pace: pace!(),
    /// How the load varies, in place of the capture's own times: the shapes that `send` has, such as poisson or
    /// sine:period=10s,amplitude=50% (docs/scenarios.md). The frames and their order stay the capture's.
    #[setting(
        value = "SHAPE",
        heading = "Rate",
        needs("rate"),
        brief = "Vary the load: poisson, sine:period=10s, square:period=1s, flash:rise=2s,fall=20s, onoff:on=100ms,off=1s"
    )]
    pub shape: Option<Written<traffic::Shape>>,
    /// Key of what `.shape` leaves to chance: the same seed gives the same times. Default: drawn, and named in the result.
    #[setting(value = "N", heading = "Rate", needs("shape"), expert)]
    pub seed: Option<u64>,
    #[part]
    priority: priority!(),
    /// Send the captures this many times; 0 is without end. Default: once, or as often as `.duration` or `.count` ask.
    #[setting(value = "TIMES", heading = "Rate")]
    #[serde(rename = "loop")]
    pub loops: Option<u64>,
    /// true: the captures are read into memory first; false: while they are sent. Default: the small ones are.
    #[setting(
        unnamed,
        shorthand(
            option = "preload",
            means = "true",
            text = "Read the captures into memory first. Small ones (up to 32 MB) always are."
        ),
        shorthand(
            option = "stream",
            means = "false",
            text = "Read the captures while sending, in bounded memory, even if they are small."
        )
    )]
    pub preload: Option<bool>,
    /// New flows with each loop: in pass k (from 0) of each IP packet the lesser address is lowered by k and the
    /// greater raised by k (modulo 2^32 - 1, of IPv6 the low 32 bits), which keeps every checksum right and both
    /// directions of a conversation together. What is not IP is sent as it is.
    #[setting(brief = "New flows with each loop: addresses change, checksums stay right")]
    pub unique_ip: bool,
    /// Which frames are signed.
    #[setting(
        unnamed,
        default = "auto",
        shorthand(
            option = "sign",
            means = "always",
            text = "Overwrite the last 18 bytes of TCP and UDP payload, where there are so many, with a signature (stream, sequence, time) and correct the checksum: `.measure` then tells loss, order and latency of those frames.",
            brief = "Sign frames that have room for it, so that `.measure` tells loss, order and latency"
        )
    )]
    #[serde(default)]
    pub sign: Sign,
    /// Frames longer than the interface's MTU allows: refuse the capture, or skip (and count) them.
    #[setting(value = "WHAT", default = "refuse")]
    #[serde(default)]
    pub oversize: Oversize,
    /// Of a damaged capture send what is sound before the damage.
    pub skip_corrupt: bool,
    /// Frames that are left out, on purpose.
    #[setting(within)]
    pub loss: Option<Loss>,
    #[part]
    through: through!(),
    #[part]
    metering: metering!(),
    #[part]
    tracing: tracing!(),
    /// What is done to each frame.
    #[setting(within)]
    pub edits: Option<Edits>,
    #[part]
    disrupting: disrupting!(),
}

/// What is sent through, of those that have that part.
macro_rules! through_of {
    ($($job:ty),+) => {$(
        impl $job {
            /// Through what.
            pub fn through(&self) -> Through {
                Through {
                    engine: self.engine,
                    calibration: self.calibration.clone(),
                    cores: self.cores.clone(),
                    tx_timestamps: self.tx_timestamps,
                }
            }
        }
    )+};
}

through_of!(Send, Replay, Bench);

impl Kind for Send {
    fn settings() -> &'static [Member] {
        Send::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::send(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn draw(&mut self, seed: u64) {
        self.seed.get_or_insert(seed);
    }

    fn asks(&self) -> Consent {
        Consent { write: self.meter.writes(), ..Consent::default() }
    }
}

impl Meter {
    /// The file that it writes.
    fn writes(&self) -> Vec<PathBuf> {
        consent::written(self.capture.as_ref().map(|capture| &*capture.file))
    }
}

impl Kind for Replay {
    fn settings() -> &'static [Member] {
        Replay::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::replay(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn draw(&mut self, seed: u64) {
        self.seed.get_or_insert(seed);
    }

    fn asks(&self) -> Consent {
        let mut write = consent::written(self.write.as_deref());
        write.extend(self.meter.writes());
        Consent { write, ..Consent::default() }
    }
}
