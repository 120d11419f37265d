//! IPsec as the network sees it: ESP in tunnels, in UDP where a NAT is, with IKE beside it. The shape is right (identifiers,
//! sequence numbers, lengths by cipher), the bytes inside are of no cipher: nobody can decrypt them (RFC 4303, RFC 3948).

use crate::common::*;
use plugin_sdk::options::{Addresses, ip};
use plugin_sdk::packet::{Packet, udp};
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::value::{Value, any, counted};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// How packets are protected.
    Cipher {
        /// AES-GCM (RFC 4106): 8 bytes of IV, 16 of ICV, padded to 4.
        Gcm = "aes_gcm",
        /// AES-CBC with HMAC-SHA-256-128 (RFC 3602, RFC 4868): 16 bytes of IV, 16 of ICV, padded to 16.
        Cbc = "aes_cbc_sha256",
        /// ChaCha20-Poly1305 (RFC 7634): 8 bytes of IV, 16 of ICV, padded to 4.
        Chacha = "chacha20_poly1305",
        /// NULL with HMAC-SHA-256-128 (RFC 2410): no IV, 16 of ICV, padded to 4.
        Null = "null_sha256",
    }
}

/// A length of inner packets.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Bytes of the inner IP packet.
    #[schemars(range(min = 20, max = 8900))]
    pub length: u16,
    /// Its share of the packets.
    #[schemars(range(min = 1, max = 10000))]
    pub share: u32,
}

options! {
    /// Options of esp.
    {
        /// Gateways that send (IPv4 or IPv6).
        src_ip: Addresses = addresses("198.18.0.1"),
        /// Gateways that receive.
        dst_ip: Addresses = addresses("198.19.0.1"),
        /// Number of security associations.
        #[schemars(range(min = 1, max = 16_777_216))]
        associations: u64 = 100,
        /// The first association's security parameters index; below 256 are reserved.
        #[schemars(range(min = 256))]
        first_spi: u32 = 0x1000,
        /// How packets are protected: it decides how long they are.
        cipher: Cipher = Cipher::Gcm,
        /// Lengths of inner packets.
        #[schemars(length(min = 1, max = 32))]
        inner: Vec<Part> = vec![
            Part { length: 40, share: 7 },
            Part { length: 576, share: 4 },
            Part { length: 1400, share: 1 },
        ],
        /// NAT traversal: ESP in UDP, port 4500.
        nat_t: bool = false,
        /// Packets of NAT keepalive among 1,000, with `nat_t`.
        #[schemars(range(max = 1000))]
        keepalives: u32 = 0,
        /// Packets of IKE_SA_INIT requests among 1,000.
        #[schemars(range(max = 1000))]
        ike: u32 = 0,
    }
}

/// IPsec tunnels.
#[derive(Debug)]
pub struct Esp;

impl Compile for Esp {
    type Options = Options;
    const NAME: &'static str = "esp";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "IPsec tunnels' packets in their true shape: ESP with identifiers and sequence numbers for each association, lengths by cipher, NAT traversal, keepalives, IKE.";

    fn examples() -> Vec<Example> {
        vec![
            example!("100 associations of AES-GCM, three lengths of packets", {}),
            example!("10,000 associations behind NATs, with keepalives and IKE", {
                "associations": 10000, "nat_t": true, "keepalives": 20, "ike": 30, "cipher": "aes_cbc_sha256"
            }),
            example!("IPv6 gateways, one association, full packets", {
                "src_ip": "2001:2::1", "dst_ip": "2001:2:0:1::1", "associations": 1, "inner": [{ "length": 1350, "share": 1 }]
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if u64::from(o.first_spi) + o.associations > 1 << 32 {
            return Err(Fault::at("/first_spi", "the last association's index has more than 32 bits"));
        }
        if o.keepalives > 0 && !o.nat_t {
            return Err(Fault::at("/keepalives", "keepalives are sent through a NAT: set `nat_t`"));
        }
        if o.keepalives + o.ike >= 1000 {
            return Err(Fault::at("/ike", "keepalives and IKE leave nothing to ESP: together below 1000"));
        }
        let (iv, icv, align) = match o.cipher {
            Cipher::Gcm | Cipher::Chacha => (8, 16, 4),
            Cipher::Cbc => (16, 16, 16),
            Cipher::Null => (0, 16, 4),
        };
        let header = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?;
        let all = u64::from(1000 - o.keepalives - o.ike);
        let whole: u64 = o.inner.iter().map(|part| u64::from(part.share)).sum();
        let mut streams = Vec::new();
        let outer = |payload| -> Packet {
            if o.nat_t {
                header.clone() / udp().sport(4500).dport(4500) / payload
            } else {
                header.clone().proto(50) / payload
            }
        };
        for (at, part) in o.inner.iter().enumerate() {
            // Each length has associations of its own, so that sequence numbers of each go up by one.
            let (first, count) = split(o.associations, o.inner.len() as u64, at as u64);
            if count == 0 {
                continue;
            }
            let spi = counted(u64::from(o.first_spi) + first, count);
            let sequence = Value::from(1..=u32::MAX).every(count);
            // Inner packet, padding, its length and the next header, to a multiple of the block.
            let covered = (usize::from(part.length) + 2).next_multiple_of(align);
            let content: Vec<u8> =
                (0..covered + icv).map(|i| (i as u32).wrapping_mul(0x9e37_79b1).to_be_bytes()[0]).collect();
            let mut payload = bytes().vary(32, spi).vary(32, sequence);
            for _ in 0..iv / 8 {
                payload = payload.vary(64, any());
            }
            // What begins the ciphertext is different in each packet, too.
            let begin = payload.len();
            let payload = payload.put(&content).vary_at(begin, 64, any());
            let name = format!("{} bytes", part.length);
            streams.push((Stream::new(outer(payload)).named(name), u64::from(part.share) * all));
        }
        if o.keepalives > 0 {
            // RFC 3948 section 2.3: one byte of ones.
            let keepalive = header.clone() / udp().sport(4500).dport(4500) / bytes().u8(0xff);
            streams.push((Stream::new(keepalive).named("keepalive"), u64::from(o.keepalives) * whole));
        }
        if o.ike > 0 {
            let packet = header.clone() / udp().sport(500).dport(500) / ike_sa_init();
            streams.push((Stream::new(packet).named("ike"), u64::from(o.ike) * whole));
        }
        Ok(Scenario::new(proportional(streams)))
    }
}

/// IKE_SA_INIT (RFC 7296 section 1.2): a proposal, a key exchange, a nonce.
fn ike_sa_init() -> Payload {
    let proposal = bytes()
        .u8(34)
        .u8(0)
        .u16(44)
        .u8(0)
        .u8(0)
        .u16(40)
        .u8(1)
        .u8(1)
        .u8(0)
        .u8(4)
        .u8(3)
        .u8(0)
        .u16(8)
        .u8(1)
        .u8(0)
        .u16(20)
        .u8(3)
        .u8(0)
        .u16(8)
        .u8(2)
        .u8(0)
        .u16(5)
        .u8(3)
        .u8(0)
        .u16(8)
        .u8(3)
        .u8(0)
        .u16(12)
        .u8(0)
        .u8(0)
        .u16(8)
        .u8(4)
        .u8(0)
        .u16(31);
    let exchange = bytes()
        .u8(40)
        .u8(0)
        .u16(40)
        .u16(31)
        .u16(0)
        .vary(64, any())
        .vary(64, any())
        .vary(64, any())
        .vary(64, any());
    let nonce = bytes().u8(0).u8(0).u16(36).vary(64, any()).vary(64, any()).vary(64, any()).vary(64, any());
    let length = 28 + proposal.len() + exchange.len() + nonce.len();
    bytes()
        .vary(64, any())
        .u64(0)
        .u8(33)
        .u8(0x20)
        .u8(34)
        .u8(0x08)
        .u32(0)
        .u32(length as u32)
        .append(&proposal)
        .append(&exchange)
        .append(&nonce)
}
