//! What to do to each frame: the plan that options are turned into. Plain data; [`super::frame`] carries it out.

use wire::Mac;

use super::fuzz::Fuzz;
use super::ports::PortMap;
use super::random;

/// Which side of a conversation sent a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    /// The first interface's side: what is edited as "client to server".
    #[default]
    Client,
    /// The second interface's.
    Server,
}

/// A value for each side; frames of a side without one keep theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerSide<T> {
    /// For frames of [`Side::Client`].
    pub client: Option<T>,
    /// For frames of [`Side::Server`].
    pub server: Option<T>,
}

impl<T: Copy> PerSide<T> {
    /// The same for both.
    pub fn both(value: T) -> PerSide<T> {
        PerSide { client: Some(value), server: Some(value) }
    }

    pub(crate) fn of(&self, side: Side) -> Option<T> {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

/// Random Ethernet addresses that follow from the old ones and a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacScramble {
    pub(crate) mask: [u8; 6],
    pub(crate) keep: usize,
}

impl MacScramble {
    /// Keeps the first `keep` bytes (0 to 6) of each address.
    pub fn new(seed: u32, keep: usize) -> MacScramble {
        MacScramble { mask: random::distinct_bytes(seed), keep: keep.min(6) }
    }
}

/// What happens to VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vlan {
    /// A tag is put before all others. Priority and CFI (DEI) that are not given are those of the tag that was the
    /// outermost, or 0.
    Add {
        /// VLAN identifier, 0 to 4095.
        id: u16,
        /// Priority, 0 to 7.
        priority: Option<u8>,
        /// Canonical format indicator or drop eligible.
        cfi: Option<bool>,
        /// The tag's EtherType: 0x8100 (802.1Q) or 0x88a8 (802.1ad).
        ether_type: u16,
    },
    /// The outermost tag is taken off.
    Delete,
}

/// An IPv4 or IPv6 prefix. Bits behind the prefix are kept as written, and mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Address and prefix length, 0 to 32.
    V4(u32, u8),
    /// Address and prefix length, 0 to 128.
    V6(u128, u8),
}

impl Prefix {
    /// All of IPv4.
    pub const ALL_V4: Prefix = Prefix::V4(0, 0);
    /// All of IPv6.
    pub const ALL_V6: Prefix = Prefix::V6(0, 0);

    /// Whether both are of one IP version.
    pub fn same_version(&self, other: &Prefix) -> bool {
        matches!((self, other), (Prefix::V4(..), Prefix::V4(..)) | (Prefix::V6(..), Prefix::V6(..)))
    }
}

fn mask_v4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0)
}

/// Which addresses become which: the first entry whose `from` holds an address replaces the bits of `to`'s prefix in
/// it and keeps the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressMap {
    entries: Vec<(Prefix, Prefix)>,
}

impl AddressMap {
    /// Adds an entry behind the others. `false`, and nothing added, if the two are not of one IP version.
    #[must_use]
    pub fn push(&mut self, from: Prefix, to: Prefix) -> bool {
        let same = from.same_version(&to);
        if same {
            self.entries.push((from, to));
        }
        same
    }

    /// Without an entry nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first entry that holds an address.
    pub fn first_that_holds(&self, address: std::net::IpAddr) -> Option<usize> {
        self.entries.iter().position(|(from, _)| match (*from, address) {
            (Prefix::V4(from, bits), std::net::IpAddr::V4(address)) => {
                (address.to_bits() ^ from) & mask_v4(bits) == 0
            }
            (Prefix::V6(from, bits), std::net::IpAddr::V6(address)) => {
                (address.to_bits() ^ from) & mask_v6(bits) == 0
            }
            _ => false,
        })
    }

    /// The new address, if an entry holds this one.
    pub fn map_v4(&self, address: u32) -> Option<u32> {
        self.entries.iter().find_map(|entry| match *entry {
            (Prefix::V4(from, bits), Prefix::V4(to, to_bits)) if (address ^ from) & mask_v4(bits) == 0 => {
                let mask = mask_v4(to_bits);
                Some(to & mask | address & !mask)
            }
            _ => None,
        })
    }

    /// The new address, if an entry holds this one.
    pub fn map_v6(&self, address: u128) -> Option<u128> {
        self.entries.iter().find_map(|entry| match *entry {
            (Prefix::V6(from, bits), Prefix::V6(to, to_bits)) if (address ^ from) & mask_v6(bits) == 0 => {
                let mask = mask_v6(to_bits);
                Some(to & mask | address & !mask)
            }
            _ => None,
        })
    }
}

/// What happens to the TTL of IPv4 and the hop limit of IPv6. The result is held within 1 to 255 where it is
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// This value.
    Set(u8),
    /// More by this.
    Add(u8),
    /// Less by this.
    Subtract(u8),
}

impl Ttl {
    pub(crate) fn apply(self, ttl: u8) -> u8 {
        match self {
            Ttl::Set(value) => value,
            Ttl::Add(value) => ttl.saturating_add(value),
            Ttl::Subtract(value) => ttl.saturating_sub(value).max(1),
        }
    }
}

/// What happens to frames of which fewer bytes were captured than were on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixLength {
    /// Zeros are appended up to the length on the wire.
    Pad,
    /// They become frames of the captured length, and their IP header says so.
    Truncate,
    /// They are left out.
    Delete,
}

/// A link header to put in the place of each frame's own, which then is not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewHeader {
    /// Cisco's HDLC.
    Hdlc {
        /// The address byte: 0x0f for unicast, 0x8f for broadcast.
        address: u8,
        /// The control byte, usually 0.
        control: u8,
    },
    /// PPP in HDLC-like framing: of IP packets only.
    PppSerial,
    /// None: IP packets only.
    Raw,
    /// Juniper's, before the Ethernet header, which stays.
    JuniperEthernet,
    /// These bytes.
    Bytes {
        /// Before the client's frames.
        client: Vec<u8>,
        /// Before the server's.
        server: Vec<u8>,
    },
}

/// All edits, in the order in which they happen to a frame. The default edits nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Takes the last four bytes off each frame: the frame check sequence of captures that have it.
    pub strip_fcs: bool,
    /// Source Ethernet address.
    pub source_mac: PerSide<Mac>,
    /// Destination Ethernet address.
    pub destination_mac: PerSide<Mac>,
    /// Ethernet broadcast and multicast addresses are kept.
    pub skip_l2_broadcast: bool,
    /// Addresses to replace wherever they stand, one after the other.
    pub replace_mac: Vec<(Mac, Mac)>,
    /// Scrambles Ethernet addresses.
    pub scramble_mac: Option<MacScramble>,
    /// Another link header.
    pub header: Option<NewHeader>,
    /// VLAN tags.
    pub vlan: Option<Vlan>,
    /// The whole second byte of IPv4: DSCP and ECN.
    pub tos: Option<u8>,
    /// TTL and hop limit.
    pub ttl: Option<Ttl>,
    /// IPv6 traffic class.
    pub traffic_class: Option<u8>,
    /// IPv6 flow label.
    pub flow_label: Option<u32>,
    /// TCP, UDP and SCTP ports, of both directions.
    pub ports: PortMap,
    /// Added to TCP sequence and acknowledgement numbers.
    pub tcp_shift: Option<u32>,
    /// Payloads are damaged.
    pub fuzz: Option<Fuzz>,
    /// Frames that were captured only in part.
    pub fix_length: Option<FixLength>,
    /// Frames whose network layer is longer than this many bytes are cut to it.
    pub cut_to_mtu: Option<u32>,
    /// Source addresses only.
    pub map_source: AddressMap,
    /// Destination addresses only.
    pub map_destination: AddressMap,
    /// Addresses of the client: the source of its frames, the destination of the server's; in ARP, too.
    pub map_client: AddressMap,
    /// Addresses of the server, likewise.
    pub map_server: AddressMap,
    /// IP broadcast and multicast addresses are kept.
    pub skip_broadcast: bool,
    /// Scrambles IP addresses: the same address becomes the same one in every frame. See [`random::ip_seed`].
    pub scramble_ip: Option<u32>,
    /// Sets the IP header's length to the frame's.
    pub fix_header_length: bool,
    /// Computes the checksums of IPv4, TCP, UDP, SCTP and ICMP afresh in every frame.
    pub fix_checksums: bool,
    /// A frame for an IP group gets that group's Ethernet address even if no address was edited, as tcprewrite has
    /// it. Otherwise only where an edit changed the IP address.
    pub always_group_mac: bool,
    /// Ethernet frames that cannot be converted to another link type are kept as they are, as tcprewrite has it. Otherwise they
    /// are left out.
    pub keep_foreign: bool,
    /// Frames that cannot be edited (no Ethernet header, 802.3 length fields, cut off headers) are left out instead
    /// of kept as they are.
    pub drop_unsupported: bool,
}

impl Plan {
    /// Whether addresses of link headers are to change.
    pub(crate) fn edits_macs(&self) -> bool {
        let sides = [self.source_mac, self.destination_mac];
        sides.iter().any(|mac| mac.client.or(mac.server).is_some())
            || !self.replace_mac.is_empty()
            || self.scramble_mac.is_some()
    }

    pub(crate) fn maps_addresses(&self) -> bool {
        let maps = [&self.map_source, &self.map_destination, &self.map_client, &self.map_server];
        maps.iter().any(|map| !map.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_keeps_host_bits_and_takes_the_first_entry_that_holds_the_address() {
        let mut map = AddressMap::default();
        assert!(map.push(Prefix::V4(0x0a000000, 8), Prefix::V4(0xc0a83700, 24)));
        assert!(map.push(Prefix::V4(0, 0), Prefix::V4(0x01020304, 32)));
        assert_eq!(map.map_v4(0x0a96_097b), Some(0xc0a8_377b));
        assert_eq!(map.map_v4(0x0b00_0001), Some(0x0102_0304));
        assert_eq!(map.map_v6(1), None);
    }

    #[test]
    fn ipv6_prefixes_need_not_end_at_a_byte() {
        let mut map = AddressMap::default();
        let from = Prefix::V6(0x2001_0db8 << 96, 32);
        assert!(map.push(from, Prefix::V6(0x3001_aaaa_bbbf << 80, 45)));
        let address = 0x2001_0db8_0007_0000_0000_0000_0000_0001;
        assert_eq!(map.map_v6(address), Some(0x3001_aaaa_bbbf_0000_0000_0000_0000_0001));
    }

    #[test]
    fn versions_do_not_mix() {
        assert!(!AddressMap::default().push(Prefix::ALL_V4, Prefix::ALL_V6));
    }

    #[test]
    fn ttl_is_held_between_1_and_255() {
        assert_eq!(Ttl::Add(58).apply(250), 255);
        assert_eq!(Ttl::Subtract(58).apply(58), 1);
        assert_eq!(Ttl::Subtract(1).apply(64), 63);
        assert_eq!(Ttl::Set(0).apply(64), 0);
    }
}
