//! What others counted meanwhile: interfaces, drivers, queues, hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_zero;

/// A counter that rose during the run, by frames of this run or of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCounter {
    /// The interface at whose end it was read, or `this machine`.
    pub place: String,
    /// Who counts: `interface` (`ip -s link`), `driver` (`ethtool -S`), `stack` (`nstat`), `cores`
    /// (`/proc/net/softnet_stat`); of a lab's device also `queue` (`tc -s qdisc`), `rule` (nftables) and `impair` (its
    /// program).
    pub source: String,
    /// Name of the counter at that place.
    pub name: String,
    /// By how much it rose during the run.
    pub rise: u64,
    /// Part of the rise that is frames which arrived and were measured: some drivers count as dropped what the meter's
    /// program drops after counting it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_frames: Option<u64>,
    /// Frames that it counts are gone: why, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explains: Option<String>,
}

/// How far an interface's own transmit counters moved during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// The interface.
    pub interface: String,
    /// Frames this program handed to the interface.
    pub sent_frames: u64,
    /// Rise of the interface's `tx_packets`.
    pub tx_packets: u64,
    /// Rise of its `tx_bytes`, as the driver counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    /// Rise of its `tx_errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_errors: Option<u64>,
    /// Rise of its `tx_dropped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_dropped: Option<u64>,
    /// Frames the counter saw that were not ours (`tx_packets` above `sent_frames`).
    pub foreign_frames: u64,
    /// Frames counted as sent that the interface did not see (`tx_packets` below `sent_frames`).
    pub missing_frames: u64,
    /// What of `sent_frames` was handed over in one piece counted once (super-frames: GSO, GRO); left out where that is the
    /// same. The interface counts either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_buffers: Option<u64>,
    /// What the root queueing discipline in front of the interface let through and dropped, where frames went by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueCounters>,
    /// Rise of the driver's own counter of frames that XDP programs and AF_XDP sockets sent, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_xdp_frames: Option<u64>,
    /// Who saw the frames leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<Witness>,
    /// Bytes that the interface counted of each frame beyond those of layer 2 without FCS: 4 where it counts the FCS.
    /// Left out where it counted other frames, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_layer2_bytes: Option<i64>,
}

/// What a queueing discipline counted, frames of this run and of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounters {
    /// Kind of the discipline: `tbf`, `fq_codel`, ...
    pub kind: String,
    /// Let through, each frame of a super-frame by itself.
    pub passed_frames: u64,
    /// Dropped, frames or super-frames as it had them.
    pub dropped: u64,
    /// Waited in it when the run ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
}

/// Who saw that frames left an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// The interface's own counter.
    Interface,
    /// The driver's counter of XDP frames. The interface's does not know them.
    Driver,
    /// The receiver: they arrived. No counter of the sender knows them.
    Meter,
    /// The driver gave back their memory as done with; no counter knows them, and no receiver counted.
    Completions,
    /// No counter saw them.
    Nobody,
}

impl InterfaceCounters {
    /// Compares the counter's rise with our own count.
    pub fn compare(interface: impl Into<String>, sent_frames: u64, tx_packets: u64) -> Self {
        Self {
            interface: interface.into(),
            sent_frames,
            tx_packets,
            foreign_frames: tx_packets.saturating_sub(sent_frames),
            missing_frames: sent_frames.saturating_sub(tx_packets),
            ..Self::default()
        }
    }
}
