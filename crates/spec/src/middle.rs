//! Jobs that stand between two interfaces: a bridge, a device with known faults.

use crate::check::{self, Contradiction};
use crate::edits::Edits;
use crate::kind::Kind;
use crate::no;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::settings;
use std::time::Duration;

words! {
    /// How frames are forwarded.
    BridgeEngine {
        /// The fastest that the interfaces and what is asked for allow.
        Auto = "auto",
        /// In the drivers.
        Xdp = "xdp",
        /// In the kernel's receive path, as traffic control does.
        Tc = "tc",
        /// There, too, by XDP.
        XdpGeneric = "xdp-generic",
        /// Packet sockets and user space.
        Packet = "packet",
    }
}

/// Two interfaces become one cable, on which frames may be chosen and edited.
#[settings]
pub struct Bridge {
    /// The two interfaces. Of edits with two values the first is for what arrives on the first one (the client's side),
    /// the second for what arrives on the second one (the server's).
    #[setting(value = "IFACE")]
    pub between: [String; 2],
    /// Forward only from the first interface to the second.
    pub one_way: bool,
    /// Bridge for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End when this many frames have been forwarded, both directions together; not one more is.
    #[setting(value = "FRAMES")]
    pub count: Option<Written<u64>>,
    /// Forward only these frames: S:, D:, B: or E:NETWORKS (source, destination, both, either), P:1-5,9,72- (the
    /// number of the frame, both directions together), F:EXPRESSION (a BPF filter as tcpdump's, which compiles it).
    #[setting(value = "RULE", excludes("exclude"))]
    pub include: Option<String>,
    /// Forward all frames but these: S:, D:, B:, E: or P:, as above.
    #[setting(value = "RULE")]
    pub exclude: Option<String>,
    /// How frames are forwarded: xdp (in the drivers), tc (in the kernel's receive path, as traffic control does;
    /// Linux 6.6), xdp-generic (there, too, by XDP), packet (packet sockets and user space, which edits and chooses),
    /// or auto: the fastest that the interfaces and what is asked for allow.
    #[setting(
        value = "ENGINE",
        default = "auto",
        brief = "How frames leave: the fastest that is possible here, or one of these"
    )]
    #[serde(default)]
    pub engine: BridgeEngine,
    /// What is done to each frame.
    #[setting(within)]
    pub edits: Option<Edits>,
    /// Yes, bridge this interface although it carries the default route or your login: nothing that arrives on it
    /// reaches this host any more. Once for each.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
}

words! {
    /// Which way faults happen.
    Direction {
        /// Both ways.
        Both = "both",
        /// From the first interface to the second.
        There = "there",
        /// From the second to the first.
        Back = "back",
    }
}

/// What happens to frames. A share is written 1%, 1/1000; exactly so many are meant, evenly spread unless they are drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// Frames leave so long after they arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Written<Duration>>,
    /// As much more or less, evenly drawn for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Written<Duration>>,
    /// No frame leaves before one that arrived earlier.
    #[serde(default, skip_serializing_if = "no")]
    pub keep_order: bool,
    /// The share that is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// The share that leaves twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<String>,
    /// Copies of a duplicated frame besides itself. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
    /// The share that is put back behind later ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<String>,
    /// How far: behind so many later frames (3), or by a time (200us). Default: 3.
    #[serde(
        default,
        deserialize_with = "crate::written::text_or_number",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub reorder_by: Option<String>,
    /// The share of which one bit of the payload flips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<String>,
    /// Corrupted frames get a right checksum.
    #[serde(default, skip_serializing_if = "no")]
    pub mend_checksum: bool,
    /// Forward for the first time, lose everything for the second, and so on: 2s/500ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flap: Option<String>,
    /// Forward for the first time, hold everything for the second, and so on: 2s/500ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<String>,
    /// Copies of each frame that go back where it came from.
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub come_back: Option<u32>,
    /// Which way this happens.
    #[serde(default)]
    pub direction: Direction,
    /// The frames of each share are drawn at random.
    #[serde(default, skip_serializing_if = "no")]
    pub random: bool,
    /// Key of all that is drawn. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Bytes that may wait in each direction. Default: 256M.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Written<u64>>,
}

/// Two interfaces become a device with known faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Impair {
    /// The two interfaces.
    pub between: [String; 2],
    /// What happens to frames.
    #[serde(default)]
    pub faults: Faults,
    /// For so long. Default: until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}

impl Kind for Bridge {
    fn settings() -> &'static [Member] {
        Bridge::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::bridge(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

impl Kind for Impair {
    fn check(&self) -> Result<(), Contradiction> {
        check::impair(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}
