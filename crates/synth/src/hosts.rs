//! Who talks: addresses and client ports.
//!
//! Inside hosts are private (10.20.0.0/16); the servers they talk to are from 198.18.0.0/15, the block set aside
//! for benchmarking (RFC 2544 appendix C.2.2, RFC 6890), so that a capture which is replayed onto a real network
//! by mistake addresses nobody.

use crate::random::{For, Key};

/// Inside hosts that 10.20.0.0/16 has room for.
pub const MAX_CLIENTS: u32 = 253 * 256;
/// Servers that 198.18.0.0/15 has room for.
pub const MAX_SERVERS: u32 = 254 * 512;

/// The IANA dynamic range (RFC 6335 section 6), as client ports.
const CLIENT_PORTS: std::ops::RangeInclusive<u16> = 49152..=65535;

/// Ports in that range which dissectors give to a protocol; a client that happened to use one would have its
/// payload read as that protocol's.
pub const NOT_FOR_CLIENTS: [u16; 31] = [
    49152, 49153, 49999, 51413, 51820, 53413, 54328, 55555, 56000, 56001, 56500, 56501, 57000, 57001, 57032,
    57033, 57500, 57501, 57532, 57533, 59000, 59001, 59032, 59033, 59500, 59501, 59532, 59533, 60000, 60001,
    64738,
];

/// Client ports that one host has.
pub const PORTS_A_CLIENT: u32 = 65535 - 49152 + 1 - NOT_FOR_CLIENTS.len() as u32;

/// The gateway, which is also the resolver of the inside hosts' network on the link.
pub const GATEWAY_MAC: [u8; 6] = [0x02, 0x4e, 0x44, 0x00, 0x00, 0x01];
/// The gateway's inside address.
pub const GATEWAY: [u8; 4] = [10, 20, 0, 1];

/// Inside host number `index`.
pub fn client_address(index: u32) -> [u8; 4] {
    [10, 20, (index / 253) as u8, (2 + index % 253) as u8]
}

/// Its Ethernet address: locally administered.
pub fn client_mac(index: u32) -> [u8; 6] {
    [0x02, 0x4e, 0x44, 0x01, (index >> 8) as u8, index as u8]
}

/// Server number `index`: neighbours in number are far apart in address.
pub fn server_address(index: u32) -> [u8; 4] {
    // 40,503 has no factor in common with 254 * 512, so this permutes the block.
    let place = (u64::from(index) * 40_503 + 11) % u64::from(MAX_SERVERS);
    let (net, host) = ((place / 254) as u16, (place % 254) as u8);
    [198, 18 + (net >> 8) as u8, net as u8, host + 1]
}

/// Hands out client ports, each at most once for a host, so that no two conversations share a 5-tuple.
#[derive(Debug)]
pub struct ClientPorts {
    next: Vec<u16>,
    left: Vec<u32>,
}

impl ClientPorts {
    pub fn new(key: Key, clients: u32) -> ClientPorts {
        let span = u64::from(CLIENT_PORTS.end() - CLIENT_PORTS.start()) + 1;
        let first = |i| CLIENT_PORTS.start() + (key.bits(For::ClientPort, u64::from(i)) % span) as u16;
        ClientPorts { next: (0..clients).map(first).collect(), left: vec![PORTS_A_CLIENT; clients as usize] }
    }

    /// A port of host `wanted`, or of the next host that has one left.
    pub fn take(&mut self, wanted: u32) -> Option<(u32, u16)> {
        let count = self.next.len();
        let client = (0..count).map(|i| (wanted as usize + i) % count).find(|&i| self.left[i] > 0)?;
        self.left[client] -= 1;
        loop {
            let port = self.next[client];
            self.next[client] = if port == *CLIENT_PORTS.end() { *CLIENT_PORTS.start() } else { port + 1 };
            if !NOT_FOR_CLIENTS.contains(&port) {
                return Some((client as u32, port));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_host_has_an_address_of_its_own() {
        assert_eq!((0..MAX_SERVERS).map(server_address).collect::<HashSet<_>>().len(), MAX_SERVERS as usize);
        assert_eq!((0..MAX_CLIENTS).map(client_address).collect::<HashSet<_>>().len(), MAX_CLIENTS as usize);
        assert!((0..MAX_SERVERS).map(server_address).all(|a| a[0] == 198 && a[1] & 0xfe == 18));
        assert!((0..MAX_CLIENTS).all(|i| client_address(i) != GATEWAY));
    }

    #[test]
    fn ports_are_given_once_and_then_run_out() {
        let mut ports = ClientPorts::new(Key::new(1), 2);
        let mut seen = HashSet::new();
        while let Some(pair) = ports.take(0) {
            assert!(seen.insert(pair));
        }
        assert_eq!(seen.len(), 2 * PORTS_A_CLIENT as usize);
    }
}
