//! IP's groups, and the Ethernet addresses that follow from them.

use wire::Mac;

/// An IP group's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    V4(u32),
    V6(u128),
}

impl Group {
    /// The Ethernet address of its members.
    pub(super) fn mac(self) -> Mac {
        match self {
            // RFC 1112 section 6.4: the low 23 bits.
            Group::V4(address) => {
                let [_, b, c, d] = address.to_be_bytes();
                Mac([0x01, 0x00, 0x5e, b & 0x7f, c, d])
            }
            // RFC 2464 section 7: the low 32 bits.
            Group::V6(address) => {
                let [a, b, c, d] = (address as u32).to_be_bytes();
                Mac([0x33, 0x33, a, b, c, d])
            }
        }
    }
}
