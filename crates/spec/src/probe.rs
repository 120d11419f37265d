//! A flow probe: what arrives is counted by flows, and their records are exported.

use crate::check::{self, Contradiction};
use crate::consent::Consent;
use crate::kind::Kind;
use crate::listen::How;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::Written;
use settings::settings;
use std::path::PathBuf;
use std::time::Duration;

words! {
    /// How records are written.
    ExportFormat {
        /// IPFIX (RFC 7011).
        Ipfix = "ipfix",
        /// NetFlow v9 (RFC 3954).
        V9 = "9",
        /// NetFlow v5: IPv4 only.
        V5 = "5",
    }
}

words! {
    /// Which of an interface's frames are metered.
    FlowDirection {
        /// Those that arrive.
        In = "in",
        /// Those that leave.
        Out = "out",
        /// All, and what leaves is another flow than what arrives.
        Both = "both",
    }
}

/// What names a place that is reached over TCP begins with this.
pub const TCP: &str = "tcp://";

/// What arrives is counted by flows, and their records are exported.
#[settings]
pub struct Probe {
    /// The interface that is metered, its arrivals unless `.direction` says more (IFACE, or IFACE@NAMESPACE). Its host gets them as
    /// before.
    #[setting(value = "IFACE", excludes("captures"))]
    pub on: Option<String>,
    /// Which frames are metered: in (those that arrive), out (those that leave), or both: what leaves then is another flow than
    /// what arrives, and records say which (flowDirection). What leaves is seen by a packet socket only.
    #[setting(value = "WHICH", default = "in")]
    pub direction: FlowDirection,
    /// How to take frames: xdp (native), xdp-generic, packet (a packet socket), or the best
    /// that is possible: native XDP, else a packet socket.
    #[setting(option = "meter", value = "HOW", default = "auto", expert, excludes("captures"))]
    pub how: How,
    /// Drop what was metered, so that nothing reaches this host's own stack: for a port that only gets a copy of traffic.
    #[setting(excludes("captures"))]
    pub drop: bool,
    /// Yes, attach an XDP program to this interface although it carries the default route or your login. Else it is metered
    /// by a packet socket.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
    /// Captures to meter instead of an interface, one behind the other as one; - is standard input.
    #[setting(typed_by_place, value = "FILE")]
    pub captures: Vec<PathBuf>,
    /// A collector that gets the records by UDP, or, as tcp://HOST:PORT, by TCP (IPFIX only); may be given more than once, and then
    /// each gets all of them.
    #[setting(value = "HOST:PORT", consent)]
    pub export: Vec<String>,
    /// Send each message to one collector in turn instead of to all; each has templates and sequence numbers of its own.
    pub balance: bool,
    /// How records are written: ipfix, 9 (NetFlow v9), 5 (NetFlow v5: IPv4 only).
    #[setting(value = "FORMAT", default = "ipfix")]
    #[serde(default)]
    pub format: ExportFormat,
    /// What records hold: names of elements with spaces between, IANA's (octetDeltaCount) or nProbe's (%IN_BYTES). Of
    /// addresses, IPv6 flows get IPv6's. Default: addresses, ports, protocol, ToS, flags, bytes of IP, packets, first and last in
    /// ms, interfaces, VLAN, ICMP type, version, why it ended.
    #[setting(short = 'T', value = "NAMES", hyphens)]
    pub template: Option<String>,
    /// The number of the template for IPv4; IPv6's is the next. Default: 257.
    #[setting(value = "N", least = 256, most = 65535, expert)]
    pub template_id: Option<u16>,
    /// Send templates again after this long. They are also sent again after 20 messages, once a second at most, and when a
    /// collector's host says that nobody listens. Default: 1m.
    #[setting(value = "TIME", expert)]
    pub template_refresh: Option<Written<Duration>>,
    /// Observation domain (IPFIX), source (v9), engine (v5, up to 255). Default: 0.
    #[setting(value = "N", expert)]
    pub domain: Option<u32>,
    /// A record ends this long after its flow's last packet. Default: 15s.
    #[setting(value = "TIME")]
    pub idle_timeout: Option<Written<Duration>>,
    /// A record ends this long after its first packet although more come; those make another record. Default: 1m.
    #[setting(value = "TIME")]
    pub active_timeout: Option<Written<Duration>>,
    /// A record ends this long after TCP's FIN or RST. Default: 1s.
    #[setting(value = "TIME", expert)]
    pub end_timeout: Option<Written<Duration>>,
    /// Flows at once, at most 128 bytes of memory each; with more, the one idle longest ends. Default: 1048576.
    #[setting(value = "N")]
    pub max_flows: Option<Written<u64>>,
    /// Of GTP-U, VXLAN, GRE, ERSPAN (types I, II and III) and IP in IP, meter the packets inside.
    pub inner: bool,
    /// Make one record of both directions of a flow (RFC 5103; IPFIX only): source is who sent the first packet, and what came
    /// back is in elements of the other direction (reverseOctetDeltaCount). Takes up to 192 bytes of memory a flow.
    pub biflow: bool,
    /// Read the signatures of test frames (a sender's `.sign`): records say the stream, its first and last number and how many
    /// packets were signed (netdynoStream and others, enterprise 32473; IPFIX only). Takes frames by a packet socket.
    #[setting(expert)]
    pub signatures: bool,
    /// Look at one packet in N only; the records say so. With NetFlow v5 N is up to 16383.
    #[setting(value = "N", least = 1)]
    pub sample: Option<u32>,
    /// Leave to chance which packet in N that is. Default: every Nth.
    #[setting(needs("sample"), expert)]
    pub sample_at_random: bool,
    /// Meter one flow in N only, all of its packets: which ones, a hash of their keys says. Options records say so (RFC 7014).
    #[setting(value = "N", least = 1)]
    pub sample_flows: Option<u32>,
    /// With the same seed every probe takes the same flows, both directions of a conversation among them. Default: drawn, and in
    /// the result.
    #[setting(alias = "seed", value = "N", needs("sample_flows"), expert)]
    pub sample_seed: Option<u64>,
    /// The interface that packets arrive at, in records. Default: the number that this host has for it; of packets that leave by it, 0.
    #[setting(value = "N", expert)]
    pub input_index: Option<u32>,
    /// The interface that they leave by, in records. Default: 0; of packets that leave by it, this host's number.
    #[setting(value = "N", expert)]
    pub output_index: Option<u32>,
    /// Send at most N records a second; others wait. Default: no limit on an interface, 100000 of captures.
    #[setting(value = "N", least = 1, expert)]
    pub export_rate: Option<u32>,
    /// Meter for this long. Default: until interrupted, or to the captures' end.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End after this many frames.
    #[setting(value = "FRAMES")]
    pub count: Option<Written<u64>>,
}

impl Kind for Probe {
    fn settings() -> &'static [Member] {
        Probe::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn asks(&self) -> Consent {
        Consent { addresses: self.export.clone(), ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::probe(self)
    }
}
