//! A flow probe: what arrives is counted by flows, and their records are exported.

use crate::check::{self, Contradiction};
use crate::consent::Consent;
use crate::kind::Kind;
use crate::listen::How;
use crate::no;
use crate::words::words;
use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// What arrives on this interface (IFACE, or IFACE@NAMESPACE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Which frames are metered there. Records say it (`flowDirection`) where some leave. What leaves is seen by a packet socket only.
    #[serde(default, skip_serializing_if = "is_in")]
    pub direction: FlowDirection,
    /// By what frames are taken there. Best is native XDP.
    #[serde(default, skip_serializing_if = "is_auto")]
    pub how: How,
    /// What was metered is dropped, and the host gets nothing.
    #[serde(default, skip_serializing_if = "no")]
    pub drop: bool,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
    /// Or these captures, in this order, as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<PathBuf>,
    /// Collectors that get the records, over UDP (HOST:PORT) or TCP (tcp://HOST:PORT; IPFIX only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub export: Vec<String>,
    /// Each message goes to one collector in turn, with templates and sequence numbers of each one's own. Default: each goes to all.
    #[serde(default, skip_serializing_if = "no")]
    pub balance: bool,
    /// How records are written.
    #[serde(default)]
    pub format: ExportFormat,
    /// What they hold: IANA's names (`octetDeltaCount`) or NetFlow's (`%IN_BYTES`), with spaces between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The number of IPv4's template; IPv6's is the next. Default: 257.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_id: Option<u16>,
    /// Templates and what the probe says of itself are sent again after so long. Templates are also sent after 20 messages, once a
    /// second at most, and when a collector's host said that nobody listens. Default: 1m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_refresh: Option<Written<Duration>>,
    /// Observation domain of IPFIX, source of v9, engine of v5 (up to 255). Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<u32>,
    /// A record ends so long after its flow's last packet. Default: 15s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Written<Duration>>,
    /// A record ends so long after its first packet, although more come. Default: 1m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_timeout: Option<Written<Duration>>,
    /// A record ends so long after TCP's FIN or RST. Default: 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timeout: Option<Written<Duration>>,
    /// Flows at once; with more, the one that is idle longest ends. Default: 1048576.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_flows: Option<Written<u64>>,
    /// Of GTP-U, VXLAN, GRE, ERSPAN and IP in IP the headers inside.
    #[serde(default, skip_serializing_if = "no")]
    pub inner: bool,
    /// Packets of both directions are one flow and one record (RFC 5103), with elements of the other direction under number 29305: of
    /// IPFIX only.
    #[serde(default, skip_serializing_if = "no")]
    pub biflow: bool,
    /// Test signatures are read (`sign` of those who send), and records say stream and numbers in elements of netdyno's own, under
    /// number 32473: of IPFIX only. A packet socket takes the frames.
    #[serde(default, skip_serializing_if = "no")]
    pub signatures: bool,
    /// One packet in so many is looked at; with NetFlow v5 in up to 16383.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    /// Which ones is left to chance. Default: every so manyth.
    #[serde(default, skip_serializing_if = "no")]
    pub sample_at_random: bool,
    /// One flow in so many is metered, all of its packets: which ones, a hash of their keys says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_flows: Option<u32>,
    /// With the same seed every probe takes the same flows, both directions of a conversation among them. Default: drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_seed: Option<u64>,
    /// The interface that packets arrive at, in records (`ingressInterface`). Default: the number that the host has for it; 0 of
    /// packets that leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_index: Option<u32>,
    /// The interface that they leave by (`egressInterface`). Default: 0, because who looks on does not know it; of packets that
    /// leave by the interface, the number that the host has for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_index: Option<u32>,
    /// At most so many records a second are sent; others wait. Default: no limit on an interface, 100000 of captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_rate: Option<u32>,
    /// For so long. Default: until it is stopped, or the captures end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// Until so many frames were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
}

fn is_in(direction: &FlowDirection) -> bool {
    *direction == FlowDirection::In
}

fn is_auto(how: &How) -> bool {
    *how == How::Auto
}

impl Kind for Probe {
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
