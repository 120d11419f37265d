//! Jobs that send: of an expression, a scenario, captures.

use crate::bench::Lab;
use crate::check::{self, Contradiction};
use crate::consent::{self, Consent};
use crate::cores::Cores;
use crate::edits::Edits;
use crate::kind::Kind;
use crate::listen::{Capture, Clock, How, Timestamps};
use crate::no;
use crate::plugin::Plugin;
use crate::words::words;
use crate::written::{Share, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use traffic::Rate;
use traffic::expr::Size;
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

/// How fast, for how long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pace {
    /// At which rate.
    pub rate: Option<Written<Rate>>,
    /// For so long.
    pub duration: Option<Written<Duration>>,
    /// So many frames.
    pub count: Option<Written<u64>>,
    /// How much faster than asked for after a stall.
    pub catch_up: Option<f64>,
    /// Never sleep.
    pub spin: bool,
    /// Never go before other programs.
    pub no_real_time: bool,
}

/// Through what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Through {
    /// How frames leave.
    pub engine: Engine,
    /// What is fastest here, by measurement.
    pub calibration: Option<PathBuf>,
    /// Which CPUs send.
    pub cores: Option<Written<Cores>>,
    /// Who stamps frames as they leave.
    pub tx_timestamps: Option<Stamps>,
}

/// How frames are measured where they arrive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// By what.
    #[serde(default)]
    pub how: How,
    /// Who times arrivals.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// The clock of the time stamps in frames.
    #[serde(default)]
    pub clock: Clock,
    /// So many of the streams, from the first on, get percentiles of their latency. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_histograms: Option<u32>,
    /// The payload of each frame is checked against what was sent, as far as it does not vary.
    #[serde(default, skip_serializing_if = "no")]
    pub check_content: bool,
    /// What was measured goes on to the host. Default: it is dropped, where XDP measures.
    #[serde(default, skip_serializing_if = "no")]
    pub pass: bool,
    /// What arrives is captured, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
}

/// Frames of an expression, a scenario or a plugin are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// A packet expression, such as ipv4(dst=198.18.0.1)/udp(dport=9), or a scenario file: FILE.yaml.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// Instead of that: a plugin says what the frames are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Plugin>,
    /// Where frames leave and are measured. Of several links each sends the whole, at the rate and as many frames as are asked
    /// for, from one start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// In a lab of its own instead of links: two hosts, and a device between them if one is asked for. What has a limit or a loss there
    /// is a bridge that learns nothing, unless `dut` says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<Lab>,
    /// Which of several links send to which. In a mesh, {src_ip} and {dst_ip} in `what` stand for the addresses of ports.
    #[serde(default, skip_serializing_if = "Pattern::is_pairs")]
    pub pattern: Pattern,
    /// Frame sizes. Default: as long as the layers are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Written<Size>>,
    /// Key of all random values: the same seed gives the same frames. Default: drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Which frames are signed.
    #[serde(default)]
    pub sign: Sign,
    /// How fast. A scenario may say it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Written<Rate>>,
    /// For so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// So many frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
    /// After a stall, at most so many times the rate, over any millisecond; 1: nothing is caught up. Default: bursts of at most 32
    /// frames, with at most half of what the link carries over any millisecond, or twice the rate, whichever is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<f64>,
    /// Never sleep while waiting for a frame's time.
    #[serde(default, skip_serializing_if = "no")]
    pub spin: bool,
    /// Frames that have times are sent like any other program sends, also when others hold that up. Default: from then on before
    /// all ordinary tasks, where that is permitted.
    #[serde(default, skip_serializing_if = "no")]
    pub no_real_time: bool,
    /// How frames leave.
    #[serde(default)]
    pub engine: Engine,
    /// What is fastest here, as `netdyno doctor` measured it and wrote into this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<PathBuf>,
    /// How many cores send (4), or which CPUs (0-3,6). Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Written<Cores>>,
    /// Frames are stamped as they leave, up to a thousand a second, by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_timestamps: Option<Stamps>,
    /// Frames come back to where they are sent, and are measured there.
    #[serde(default, skip_serializing_if = "no")]
    pub round_trip: bool,
    /// How they are measured.
    #[serde(default)]
    pub meter: Meter,
    /// The Ethernet address of the next hop is found by the first frame's destination.
    #[serde(default, skip_serializing_if = "no")]
    pub resolve: bool,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// This share of them: 1%, 0.5%.
    pub share: Written<Share>,
    /// Which ones. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Captures are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Capture files, sent one after the other: pcap or pcapng, plain, gzip or zstd.
    pub captures: Vec<PathBuf>,
    /// Where frames leave and are measured; of two sides the first's, then the second's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// In a lab of its own instead of links: two hosts, and a device between them if one is asked for. What has a limit or a loss there
    /// is a bridge that learns nothing, unless `dut` says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<Lab>,
    /// How it is told which side sent each frame (with two links; default: auto): auto, server, bridge, router, first, cidr=10.0.0.0/8,..., mac=...,
    /// port, files, or the name of a cache file of tcpprep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<String>,
    /// Only this side's frames are sent, by the first link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_side: Option<Side>,
    /// Into this file instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<PathBuf>,
    /// Faster or slower than captured. Default: as captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Written<Speed>>,
    /// How fast, whatever the capture says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Written<Rate>>,
    /// For so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// So many frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
    /// After a stall, at most so many times the rate, over any millisecond; 1: nothing is caught up. Default: bursts of at most 32
    /// frames, with at most half of what the link carries over any millisecond, or twice the rate, whichever is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<f64>,
    /// Never sleep while waiting for a frame's time.
    #[serde(default, skip_serializing_if = "no")]
    pub spin: bool,
    /// Frames that have times are sent like any other program sends, also when others hold that up. Default: from then on before
    /// all ordinary tasks, where that is permitted.
    #[serde(default, skip_serializing_if = "no")]
    pub no_real_time: bool,
    /// So many times; 0 is without end. Default: once, or as often as a time or a number of frames takes.
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub loops: Option<u64>,
    /// true: the captures are read into memory first; false: while they are sent. Default: the small ones are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<bool>,
    /// New flows with each pass.
    #[serde(default, skip_serializing_if = "no")]
    pub unique_ip: bool,
    /// Which frames are signed.
    #[serde(default)]
    pub sign: Sign,
    /// What becomes of frames longer than the MTU.
    #[serde(default)]
    pub oversize: Oversize,
    /// Of a damaged capture what is sound before the damage is sent.
    #[serde(default, skip_serializing_if = "no")]
    pub skip_corrupt: bool,
    /// Frames that are left out, on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// How frames leave.
    #[serde(default)]
    pub engine: Engine,
    /// What is fastest here, as `netdyno doctor` measured it and wrote into this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<PathBuf>,
    /// How many cores send (4), or which CPUs (0-3,6). Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Written<Cores>>,
    /// Frames are stamped as they leave, up to a thousand a second, by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_timestamps: Option<Stamps>,
    /// Frames come back to where they are sent, and are measured there.
    #[serde(default, skip_serializing_if = "no")]
    pub round_trip: bool,
    /// How they are measured.
    #[serde(default)]
    pub meter: Meter,
    /// What is done to each frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Edits>,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}

/// What jobs that send have alike, together.
macro_rules! together {
    ($job:ty) => {
        impl $job {
            /// How fast, for how long.
            pub fn pace(&self) -> Pace {
                Pace {
                    rate: self.rate.clone(),
                    duration: self.duration.clone(),
                    count: self.count.clone(),
                    catch_up: self.catch_up,
                    spin: self.spin,
                    no_real_time: self.no_real_time,
                }
            }

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
    };
}

together!(Send);
together!(Replay);

impl Kind for Send {
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
    fn check(&self) -> Result<(), Contradiction> {
        check::replay(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn asks(&self) -> Consent {
        let mut write = consent::written(self.write.as_deref());
        write.extend(self.meter.writes());
        Consent { write, ..Consent::default() }
    }
}
