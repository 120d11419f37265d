//! Jobs that wait for what comes: a meter, a reflector.

use crate::check::{self, Contradiction};
use crate::consent::{self, Consent};
use crate::kind::Kind;
use crate::parts::tracing;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::Written;
use settings::settings;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

words! {
    /// By what frames are measured.
    How {
        /// The best that is possible.
        Auto = "auto",
        /// Native XDP.
        Xdp = "xdp",
        /// Generic XDP.
        XdpGeneric = "xdp-generic",
        /// A packet socket.
        Packet = "packet",
    }
}

words! {
    /// Who times arrivals.
    Timestamps {
        /// The hardware, where the meter that is taken anyway sees its stamps.
        Auto = "auto",
        /// The hardware.
        Hardware = "hardware",
        /// Software.
        Software = "software",
    }
}

words! {
    /// The clock of time stamps in frames.
    Clock {
        /// This host's own.
        Monotonic = "monotonic",
        /// International atomic time, which PTP or NTP keep alike on several hosts.
        Tai = "tai",
    }
}

words! {
    /// What happens to frames.
    Event {
        /// Frames are missing before this one.
        Lost = "lost",
        /// It arrived too late to tell whether it arrived before.
        Late = "late",
        /// It arrived before.
        Duplicated = "duplicated",
        /// It arrived after one with a higher number.
        Reordered = "reordered",
    }
}

/// Frames are captured where they are measured, whatever becomes of them then.
#[settings(heading = "Measure", perhaps)]
pub struct Capture {
    /// Capture what arrives where it is measured, whatever becomes of it then, into this file (NAME.pcapng, readable while it
    /// grows; - is standard output: `| tcpdump -r -`). Times are the meter's. What cannot be captured in time is counted.
    #[setting(
        option = "capture",
        value = "FILE",
        consent,
        brief = "Capture what arrives into this file (NAME.pcapng; - is standard output)"
    )]
    pub file: PathBuf,
    /// Capture this many bytes of each frame; 0: all.
    #[setting(option = "capture-snap", value = "BYTES", needs("file"), rare)]
    pub snap: Option<Written<u64>>,
    /// Capture this many frames, the first ones, and then no more; measuring goes on.
    #[setting(option = "capture-count", value = "N", needs("file"), rare)]
    pub count: Option<Written<u64>>,
    /// Begin a new file after this long: FILE then is what names begin with (cap-20261126T013000Z.pcapng).
    #[setting(option = "capture-rotate", value = "TIME", needs("file"), rare)]
    pub rotate: Option<Written<Duration>>,
    /// Begin a new file when one has this many bytes: 128M.
    #[setting(option = "capture-rotate-size", value = "BYTES", needs("file"), rare)]
    pub rotate_size: Option<Written<u64>>,
    /// Keep the last N of several files.
    #[setting(option = "capture-files", value = "N", needs("file"), rare)]
    pub files: Option<u32>,
    /// Capture only signed frames to which this happened, each with a comment that says what, and their neighbours in their streams:
    /// lost (frames are missing before this one), reordered, duplicated, late (too late to tell which).
    #[setting(option = "capture-only", value = "WHAT", needs("file"), comma, rare)]
    pub only: Vec<Event>,
    /// With `.capture.only`: this many neighbours before and behind each. Default: 8.
    #[setting(option = "capture-around", value = "N", needs("only"), rare)]
    pub around: Option<u32>,
}

impl Capture {
    /// Does it go to standard output?
    pub fn writes_to_stdout(&self) -> bool {
        self.file == Path::new("-")
    }
}

/// What arrives is counted.
#[settings]
pub struct Measure {
    /// The interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE", heading = "Traffic")]
    pub on: String,
    /// Measure for this long. Default: until interrupted.
    #[setting(value = "TIME", heading = "Rate")]
    pub duration: Option<Written<Duration>>,
    /// End when this many frames have arrived.
    #[setting(value = "FRAMES", heading = "Rate")]
    pub count: Option<Written<u64>>,
    /// Drop what was counted, so that nothing reaches this host's own stack: for a port that only receives test
    /// traffic. Default: the host gets everything as if nobody had looked.
    #[setting(
        heading = "Measure",
        shorthand(
            option = "pass",
            means = "false",
            text = "Let frames go on to the host: the default, said."
        )
    )]
    pub drop: bool,
    /// How to measure: xdp (native), xdp-generic, packet (a packet socket), or the best that is possible.
    #[setting(option = "meter", value = "HOW", default = "auto", expert)]
    #[serde(default)]
    pub how: How,
    /// Who times arrivals: the hardware (it must stamp all frames; by native XDP where the driver gives its stamps to XDP
    /// programs, else by a packet socket), software, or auto: the hardware where the meter that is taken anyway sees its stamps.
    #[setting(value = "WHO", default = "auto", expert)]
    #[serde(default)]
    pub timestamps: Timestamps,
    /// The clock that the sender stamps frames with: monotonic, if it is on this host; tai, if the sender stamps by that, too.
    #[setting(value = "CLOCK", default = "monotonic", expert)]
    #[serde(default)]
    pub clock: Clock,
    /// Streams to tell apart by their signatures, up to 16777216; 320 bytes of memory each.
    #[setting(value = "N", default = "1024", expert)]
    pub streams: Option<u32>,
    /// So many of the streams, from the first on, get percentiles of their latency; 32 KB of memory each. The others have
    /// minimum, mean and maximum.
    #[setting(value = "N", default = "64", expert)]
    pub stream_histograms: Option<u32>,
    /// Keep how the times between the arrivals of a stream spread, too, of as many streams as have percentiles of latency; 32 KB of
    /// memory each. Costs the receiver some time for each frame.
    #[setting(brief = "Keep how the times between a stream's arrivals spread (docs/measuring.md)")]
    pub inter_arrival: bool,
    /// What arrives is captured, too.
    #[setting(within)]
    pub capture: Option<Capture>,
    #[part]
    tracing: tracing!(),
    /// Yes, measure on this interface although it carries the default route or your login, or (with `.drop`) connections of this
    /// host.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
}

/// STAMP test packets (RFC 8762) are answered.
#[settings(perhaps)]
pub struct Stamp {
    /// Answer test packets to this UDP port. Default: 862.
    #[setting(option = "stamp-port", value = "PORT", needs("stamp"), least = 1)]
    pub port: Option<u16>,
    /// Number answers as the sender numbered its packets: nothing is kept of sessions, and loss there and loss back are one figure.
    /// Default: the answers of each session are numbered by themselves.
    #[setting(option = "stamp-stateless", needs("stamp"))]
    pub stateless: bool,
    /// Sessions that are numbered at one time, up to 1048576; about 128 bytes of memory each. Packets of further ones get the sender's
    /// numbers and are counted. Default: 16384.
    #[setting(
        option = "stamp-sessions",
        value = "N",
        needs("stamp"),
        excludes("stamp.stateless"),
        least = 1,
        most = 1048576,
        rare
    )]
    pub sessions: Option<u32>,
    /// Answer at most this many test packets a second; packets above that rate are dropped and counted. Default: all.
    #[setting(option = "stamp-rate", value = "PACKETS", needs("stamp"), least = 1)]
    pub rate: Option<u32>,
    /// Answer only sources of these prefixes: 10.0.0.0/8,2001:db8::/32. Default: all.
    #[setting(option = "stamp-from", value = "PREFIX", needs("stamp"), comma)]
    pub from: Vec<String>,
}

impl Stamp {
    /// The prefixes of sources: addresses and bits. What is none is left out.
    pub fn sources(&self) -> Vec<(IpAddr, u8)> {
        self.from.iter().filter_map(|prefix| source(prefix)).collect()
    }

    fn check(&self) -> Result<(), Contradiction> {
        let wrong = self.from.iter().any(|prefix| source(prefix).is_none());
        let rules: check::Rules<'_> =
            &[("from", wrong, "give prefixes, or addresses: 10.0.0.0/8, 192.0.2.7, 2001:db8::/32")];
        check::hold("stamp.", rules)
    }
}

/// A prefix; an address alone is one of all its bits.
fn source(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((address, bits))
}

/// What arrives is sent back.
#[settings]
pub struct Reflect {
    /// The interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE")]
    pub on: String,
    /// Reflect for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End when this many frames have been sent back.
    #[setting(value = "FRAMES")]
    pub count: Option<Written<u64>>,
    /// Send back only frames that end with netdyno's signature; the host gets the others. Default: all that are not
    /// for a group.
    pub only_signed: bool,
    /// Let only the Ethernet addresses change places, not those of IP, nor ports.
    pub mac_only: bool,
    /// Use generic XDP although the driver can do native: slower, and needs nothing of a veth's other end.
    pub generic: bool,
    /// Answer STAMP test packets (RFC 8762, and those of TWAMP Light) and stamp them in the kernel; the host gets all else. Default:
    /// send back what arrives.
    #[setting(
        within,
        option = "stamp",
        excludes("only_signed", "mac_only"),
        brief = "Answer STAMP test packets (RFC 8762), stamped in the kernel; the host gets all else"
    )]
    pub stamp: Option<Stamp>,
    /// Yes, reflect on this interface although it carries the default route or your login, or (without `.only_signed`)
    /// connections of this host.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
}

impl Kind for Measure {
    fn settings() -> &'static [Member] {
        Measure::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::capture("capture.", self.capture.as_ref())
    }

    fn asks(&self) -> Consent {
        Consent {
            write: consent::written(self.capture.as_ref().map(|capture| &*capture.file)),
            ..Consent::default()
        }
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

impl Kind for Reflect {
    fn settings() -> &'static [Member] {
        Reflect::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        self.stamp.as_ref().map_or(Ok(()), Stamp::check)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}
