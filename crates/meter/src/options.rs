//! What is to be measured, and how: plain data, for the meter and those below it.

use crate::content::Expected;
use crate::frames::Capture;
use crate::hardware::Hardware;
use clocks::Clock;

/// What becomes of frames that were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing reaches the host's stack: for a port that only receives test traffic. A packet socket cannot do this.
    Drop,
    /// The host gets them as if nobody had looked.
    Pass,
}

/// How frames are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The best that is possible, in the order of the others.
    Auto,
    /// In the driver, before the kernel makes a packet of the frame.
    XdpNative,
    /// In the kernel's receive path: works with every driver, about half as fast.
    XdpGeneric,
    /// In this process, from a packet socket.
    PacketSocket,
}

/// What to measure, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// What becomes of frames that were counted.
    pub action: Action,
    /// Which way to count; [`Mode::Auto`] takes the most exact that there is.
    pub mode: Mode,
    /// Streams 0 to this - 1 are told apart, at most 2^24. Takes 320 bytes for each stream. While that is little (8
    /// MiB), each CPU has records of its own, which costs a frame the least; of more streams they share them.
    pub streams: u32,
    /// The first so many streams have a histogram of their latencies, of 32 KB.
    pub stream_histograms: u32,
    /// The same streams have a histogram of the times between their arrivals, too, of 32 KB more. Costs an exact clock reading
    /// for each frame, as latency does, and the CPUs share the streams' records, since no CPU alone sees what follows what.
    pub inter_arrival: bool,
    /// Whether the CPUs share the streams' records; `None`: as their number says. Without effect if they must.
    pub share_records: Option<bool>,
    /// Measure latency: from the stamp in the frame to its arrival, both by `clock`; a stamp of 0 is none. Costs an
    /// exact clock reading for each frame (about 33 ns on a virtual machine), as arrivals do; together they still cost
    /// one.
    pub latency: bool,
    /// Times of arrival by the hardware, with native XDP or a packet socket. Frames that it did not stamp are timed by
    /// software, and counted ([`Stamps`](crate::Stamps)). Latency, variation, gaps and arrivals all follow from these times.
    pub hardware: Option<Hardware>,
    /// The clock that senders stamp frames with. [`Clock::Monotonic`] is shared by all namespaces of a host, and by no two
    /// hosts: latency means something only if the sender is on this machine. PTP or NTP can keep [`Clock::Tai`] alike on
    /// several hosts (Linux 6.1).
    pub clock: Clock,
    /// Find a signature up to 18 bytes before a frame's end, too: a device may add padding or a trailer.
    pub trailers: bool,
    /// What streams' frames must have before their signatures.
    pub content: Expected,
    /// How many arrival times to keep, 8 bytes each.
    pub arrivals: usize,
    /// Take frames for any destination address while the meter runs: test frames are seldom addressed to this host.
    pub promiscuous: bool,
    /// The senders have begun already: count loss from the lowest sequence number that arrives, not from 0.
    pub midstream: bool,
    /// Take no ICMP error for a signed frame. It quotes the packet that it is about, and so may end with the signature
    /// of a frame that arrived elsewhere: an answer from a host is not the frame coming back.
    pub ignore_icmp_errors: bool,
    /// The NIC takes VLAN tags out of what it receives. XDP programs then see frames without, and count 4 bytes too few of
    /// each that had one; sockets are told of it.
    pub tags_taken_out: bool,
    /// Its driver tells XDP programs of the tags (Linux 6.8): then they are counted.
    pub tags_told: bool,
    /// Why XDP would measure wrongly here, if it would: then [`Mode::Auto`] takes the packet socket.
    pub not_by_xdp: Option<String>,
    /// Copies of the frames, as they arrive. Costs a call and the copying for each, and without it nothing.
    pub capture: Option<Capture>,
}

impl Options {
    /// How many streams have a histogram of the times between their arrivals.
    pub(crate) fn stream_gaps(&self) -> u32 {
        if self.inter_arrival { self.streams.min(self.stream_histograms) } else { 0 }
    }

    /// Is the clock read for each frame?
    pub(crate) fn is_exact(&self) -> bool {
        self.latency || self.inter_arrival || self.arrivals > 0 || self.capture.is_some()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            action: Action::Drop,
            mode: Mode::Auto,
            streams: 1024,
            stream_histograms: 64,
            inter_arrival: false,
            share_records: None,
            latency: true,
            hardware: None,
            clock: Clock::Monotonic,
            trailers: true,
            content: Expected::default(),
            arrivals: 0,
            promiscuous: true,
            midstream: false,
            ignore_icmp_errors: false,
            tags_taken_out: false,
            tags_told: false,
            not_by_xdp: None,
            capture: None,
        }
    }
}
