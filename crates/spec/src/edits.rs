//! What is done to each frame on its way from one place to another.

use crate::words::words;
use settings::settings;

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
#[settings(heading = "Edits")]
#[derive(Eq)]
pub struct Edits {
    /// Make Ethernet frames of others (raw IP, loopback, Linux cooked, HDLC, PPP, Juniper, 802.11); needs `.dst_mac` and
    /// `.src_mac` where frames do not tell them.
    pub to_ethernet: bool,
    /// Source Ethernet address.
    #[setting(value = "MAC[,MAC]")]
    pub src_mac: Option<String>,
    /// Destination Ethernet address.
    #[setting(value = "MAC[,MAC]")]
    pub dst_mac: Option<String>,
    /// Replace an Ethernet address wherever it stands.
    #[setting(value = "OLD=NEW")]
    pub replace_mac: Vec<String>,
    /// Scramble Ethernet addresses: the same seed gives each host the same new one.
    #[setting(value = "SEED", excludes("src_mac", "dst_mac", "replace_mac"))]
    pub scramble_mac: Option<u32>,
    /// Keep the first bytes of scrambled addresses: 3 keeps the maker's prefix.
    #[setting(value = "BYTES", needs("scramble_mac"), least = 1, most = 6)]
    #[schemars(range(min = 1, max = 6))]
    pub keep_mac_bytes: Option<u8>,
    /// Keep Ethernet broadcast and multicast addresses.
    pub keep_group_macs: bool,
    /// Put a VLAN tag with this identifier before all others.
    #[setting(value = "ID", excludes("vlan_del"), most = 4095)]
    #[schemars(range(max = 4095))]
    pub vlan_add: Option<u16>,
    /// Priority of that tag. Default: that of the frame's outermost tag, or 0.
    #[setting(value = "0-7", needs("vlan_add"), most = 7)]
    #[schemars(range(max = 7))]
    pub vlan_priority: Option<u8>,
    /// Drop eligibility of that tag.
    #[setting(value = "0|1", needs("vlan_add"), most = 1)]
    #[schemars(range(max = 1))]
    pub vlan_dei: Option<u8>,
    /// The kind of that tag.
    #[setting(value = "KIND", needs("vlan_add"), default = "802.1q")]
    pub vlan_kind: Option<VlanKind>,
    /// Take the outermost VLAN tag off.
    pub vlan_del: bool,
    /// Replace IP addresses, of sources, of destinations and in ARP: the first prefix that holds an address is
    /// replaced by the other, host bits stay. 10.0.0.0/8=172.16.0.0/12, 2001:db8::/32=fd00::/32, several with commas.
    #[setting(value = "FROM=TO")]
    pub map_ip: Vec<String>,
    /// Replace IP addresses of sources only.
    #[setting(value = "FROM=TO", excludes("map_ip"))]
    pub map_src_ip: Option<String>,
    /// Replace IP addresses of destinations only.
    #[setting(value = "FROM=TO", excludes("map_ip"))]
    pub map_dst_ip: Option<String>,
    /// All of the client's addresses become the first, all of the server's the second.
    #[setting(value = "IP=IP", excludes("map_ip"))]
    pub endpoints: Option<String>,
    /// Scramble IP addresses, in ARP, too: the same seed gives each host the same new one.
    #[setting(value = "SEED")]
    pub scramble_ip: Option<u32>,
    /// Keep IP multicast addresses.
    pub keep_group_ips: bool,
    /// Replace TCP, UDP and SCTP ports, of sources and destinations: 80=8080, 8000-8999=80, 20+21=2121, several with
    /// commas.
    #[setting(value = "FROM=TO")]
    pub map_port: Vec<String>,
    /// TTL and hop limit: set (64), raised (+1) or lowered (-1), within 1 to 255.
    #[setting(value = "N|+N|-N", hyphens)]
    #[serde(deserialize_with = "crate::written::text_or_number")]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub ttl: Option<String>,
    /// The second byte of IPv4: DSCP and ECN.
    #[setting(value = "BYTE")]
    pub tos: Option<u8>,
    /// Traffic class of IPv6.
    #[setting(value = "BYTE")]
    pub traffic_class: Option<u8>,
    /// Flow label of IPv6.
    #[setting(value = "LABEL", most = 0xf_ffff)]
    #[schemars(range(max = 0xf_ffff))]
    pub flow_label: Option<u32>,
    /// Add this to TCP sequence and acknowledgement numbers.
    #[setting(value = "N")]
    pub tcp_shift: Option<u32>,
    /// Damage payloads at random, of one in `.fuzz_factor` frames: drop the frame, cut it, or put zeros, ones or others
    /// in place of up to 15 bytes. Checksums are then computed afresh. The same seed does the same.
    #[setting(value = "SEED", least = 1)]
    #[schemars(range(min = 1))]
    pub fuzz_seed: Option<u32>,
    /// Damage one in this many frames.
    #[setting(value = "N", needs("fuzz_seed"), default = "8", least = 1)]
    #[schemars(range(min = 1))]
    pub fuzz_factor: Option<u32>,
    /// Frames of which the capture has only a part: append zeros, make them frames of that length, or leave them out.
    #[setting(value = "HOW", other_word = "trunc=truncate", other_word = "del=delete")]
    pub fix_length: Option<FixLength>,
    /// Cut what stands behind the link header to this many bytes.
    #[setting(value = "BYTES", excludes("fix_length"), least = 1, most = 262_144)]
    #[schemars(range(min = 1, max = 262_144))]
    pub cut_to_mtu: Option<u32>,
    /// Make lengths in IP headers those of the frames.
    pub fix_header_length: bool,
    /// Compute the checksums of IPv4, TCP, UDP, SCTP, ICMP and ICMPv6 afresh. Edits correct checksums by themselves;
    /// this fixes those that were wrong.
    pub fix_checksums: bool,
    /// Take the frame check sequence, four bytes, off each frame. Only for captures that have it.
    pub strip_fcs: bool,
    /// Leave out frames that cannot be edited (802.3 length fields, cut off headers). Default: write them as they are.
    pub drop_unsupported: bool,
}
