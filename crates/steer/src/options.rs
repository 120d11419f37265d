//! What is steered where.

use std::net::IpAddr;

/// UDP port of VXLAN (RFC 7348).
pub const PORT: u16 = 4789;
/// The network identifier of copies, unless another is given.
pub const VNI: u32 = 0x6e64;
/// Of the engine's end of the tunnel, which has no others in it: nobody has to be asked for an address.
pub const ENGINE_MAC: [u8; 6] = [0x02, 0x6e, 0x64, 0, 0, 1];
/// Of the target's end.
pub const OWN_MAC: [u8; 6] = [0x02, 0x6e, 0x64, 0, 0, 2];

/// What is steered where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The interface where the tunnel's packets come in and leave.
    pub on: String,
    /// The server whose copies are taken in; without an address, any of this host with that port.
    pub server: (Option<IpAddr>, u16),
    /// netdyno's host, the only one that packets of the tunnel are taken from. Copies are of its family.
    pub engine: IpAddr,
    /// Of the tunnel: its UDP port and its network identifier.
    pub tunnel: (u16, u32),
    /// Flows that are learned at once.
    pub most_flows: u32,
}
