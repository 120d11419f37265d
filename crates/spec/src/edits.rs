//! What is done to each frame on its way from one place to another.

use crate::no;
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// The kind of a VLAN tag.
    VlanKind {
        /// A customer's.
        Q = "802.1q",
        /// A provider's.
        Ad = "802.1ad",
    }
}

impl VlanKind {
    /// The EtherType of its tags.
    pub fn ether_type(self) -> u16 {
        match self {
            VlanKind::Q => wire::numbers::ethertype::VLAN,
            VlanKind::Ad => wire::numbers::ethertype::QINQ,
        }
    }
}

words! {
    /// What becomes of frames of which a capture has only a part.
    FixLength {
        /// Zeros are appended.
        Pad = "pad",
        /// They become frames of that length.
        Truncate = "truncate",
        /// They are left out.
        Delete = "delete",
    }
}

/// Edits. Where two values may be given, with a comma between, the first is for the client's frames, the second for the
/// server's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// Make Ethernet frames of others (raw IP, loopback, Linux cooked, HDLC, PPP, Juniper, 802.11).
    #[serde(default, skip_serializing_if = "no")]
    pub to_ethernet: bool,
    /// Source Ethernet address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_mac: Option<String>,
    /// Destination Ethernet address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_mac: Option<String>,
    /// Ethernet addresses to replace wherever they stand: OLD=NEW.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace_mac: Vec<String>,
    /// Scramble Ethernet addresses: the same seed gives each host the same new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scramble_mac: Option<u32>,
    /// Keep so many of their first bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 6))]
    pub keep_mac_bytes: Option<u8>,
    /// Keep Ethernet broadcast and multicast addresses.
    #[serde(default, skip_serializing_if = "no")]
    pub keep_group_macs: bool,
    /// Put a VLAN tag with this identifier before all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4095))]
    pub vlan_add: Option<u16>,
    /// Its priority. Default: that of the frame's outermost tag, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 7))]
    pub vlan_priority: Option<u8>,
    /// Its drop eligibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1))]
    pub vlan_dei: Option<u8>,
    /// Its kind. Default: 802.1q.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan_kind: Option<VlanKind>,
    /// Take the outermost VLAN tag off.
    #[serde(default, skip_serializing_if = "no")]
    pub vlan_del: bool,
    /// Replace IP addresses by prefix: FROM=TO.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map_ip: Vec<String>,
    /// Those of sources only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_src_ip: Option<String>,
    /// Those of destinations only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_dst_ip: Option<String>,
    /// All of the client's addresses become the first, all of the server's the second: IP=IP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<String>,
    /// Scramble IP addresses: the same seed gives each host the same new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scramble_ip: Option<u32>,
    /// Keep IP multicast addresses.
    #[serde(default, skip_serializing_if = "no")]
    pub keep_group_ips: bool,
    /// Replace ports: FROM=TO.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map_port: Vec<String>,
    /// TTL and hop limit: set (64), raised (+1) or lowered (-1).
    #[serde(
        default,
        deserialize_with = "crate::written::text_or_number",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub ttl: Option<String>,
    /// The second byte of IPv4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tos: Option<u8>,
    /// Traffic class of IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u8>,
    /// Flow label of IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 0xf_ffff))]
    pub flow_label: Option<u32>,
    /// Add this to TCP sequence and acknowledgement numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_shift: Option<u32>,
    /// Damage payloads at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub fuzz_seed: Option<u32>,
    /// Of one in so many frames. Default: 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub fuzz_factor: Option<u32>,
    /// What becomes of frames of which the capture has only a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix_length: Option<FixLength>,
    /// Cut what stands behind the link header to so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 262_144))]
    pub cut_to_mtu: Option<u32>,
    /// Make lengths in IP headers those of the frames.
    #[serde(default, skip_serializing_if = "no")]
    pub fix_header_length: bool,
    /// Compute checksums afresh.
    #[serde(default, skip_serializing_if = "no")]
    pub fix_checksums: bool,
    /// Take the frame check sequence off each frame.
    #[serde(default, skip_serializing_if = "no")]
    pub strip_fcs: bool,
    /// Leave out frames that cannot be edited.
    #[serde(default, skip_serializing_if = "no")]
    pub drop_unsupported: bool,
}
