//! DNS over UDP: queries of a list of names, or of generated ones; and answers (RFC 1035, RFC 6891).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::udp;
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// A record type.
    Type {
        /// IPv4 address.
        A = "A",
        /// Name server.
        Ns = "NS",
        /// Another name.
        Cname = "CNAME",
        /// Start of authority.
        Soa = "SOA",
        /// Address to name.
        Ptr = "PTR",
        /// Mail exchange.
        Mx = "MX",
        /// Text.
        Txt = "TXT",
        /// IPv6 address.
        Aaaa = "AAAA",
        /// Service.
        Srv = "SRV",
        /// HTTPS service binding.
        Https = "HTTPS",
        /// Any type.
        Any = "ANY",
    }
}

impl Type {
    fn number(self) -> u16 {
        match self {
            Type::A => 1,
            Type::Ns => 2,
            Type::Cname => 5,
            Type::Soa => 6,
            Type::Ptr => 12,
            Type::Mx => 15,
            Type::Txt => 16,
            Type::Aaaa => 28,
            Type::Srv => 33,
            Type::Https => 65,
            Type::Any => 255,
        }
    }
}

/// A type of queries.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The record type.
    pub r#type: Type,
    /// Its share of the queries.
    #[schemars(range(min = 1, max = 1000))]
    pub share: u32,
}

options! {
    /// Options of dns.
    {
        /// Addresses of clients (IPv4 or IPv6).
        clients: Addresses = addresses("10.0.0.0/16"),
        /// Addresses of servers, of the same IP version.
        servers: Addresses = addresses("198.18.0.53"),
        /// Ports of clients.
        client_port: Values = values("random(1024..65535)"),
        /// The server's port.
        #[schemars(range(min = 1))]
        port: u16 = 53,
        /// Names to ask for, each as often as the others.
        #[schemars(length(max = 200))]
        names: Vec<String> = vec!["www.example.com".to_owned(), "mail.example.com".to_owned(), "example.net".to_owned()],
        /// Ask for names that no cache knows as well: a counting label of so many digits under each name. 0: none.
        #[schemars(range(max = 12))]
        unique_digits: u32 = 0,
        /// Types of queries and their shares.
        #[schemars(length(min = 1, max = 11))]
        types: Vec<Asked> = vec![Asked { r#type: Type::A, share: 7 }, Asked { r#type: Type::Aaaa, share: 3 }],
        /// Send what the server answers (NOERROR, with records) instead of the queries.
        answers: bool = false,
        /// Records of an answer.
        #[schemars(range(min = 1, max = 20))]
        records: u16 = 1,
        /// Whether recursion is desired.
        recursion: bool = true,
        /// Size of UDP payload announced by EDNS(0); 0: no EDNS.
        edns: u16 = 1232,
        /// Ask for DNSSEC records (the DO bit of EDNS).
        dnssec: bool = false,
    }
}

/// A name in labels (RFC 1035 section 3.1), the counting label aside.
fn labels(name: &str, digits: u32, at: usize) -> Result<Payload, Fault> {
    let fault = |message: &str| Fault::at(format!("/names/{at}"), format!("`{name}`: {message}"));
    let mut out = bytes();
    if digits > 0 {
        out = out.u8(digits as u8 + 1).put(b"h").digits(digits);
    }
    for label in name.trim_end_matches('.').split('.').filter(|label| !label.is_empty()) {
        let length = u8::try_from(label.len()).ok().filter(|length| *length <= 63);
        let length = length.ok_or_else(|| fault("a label has 63 characters at most"))?;
        if !label.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(fault("labels are of ASCII characters; write others in Punycode (xn--...)"));
        }
        out = out.u8(length).text(label);
    }
    let out = out.u8(0);
    if out.len() > 255 { Err(fault("a name has 255 bytes at most")) } else { Ok(out) }
}

/// One record of an answer, for the name at byte 12.
fn record(kind: Type, n: u16) -> Payload {
    let data = match kind {
        Type::A | Type::Any => bytes().put(&[198, 18, (n >> 8) as u8, n as u8]),
        Type::Aaaa => bytes().u32(0x2001_0002).u64(0).u32(n.into()),
        Type::Ns | Type::Cname | Type::Ptr => bytes().put(b"\x03ns1").u16(0xc00c),
        Type::Soa => bytes()
            .put(b"\x03ns1")
            .u16(0xc00c)
            .put(b"\x0ahostmaster")
            .u16(0xc00c)
            .u32(1)
            .u32(7200)
            .u32(900)
            .u32(1_209_600)
            .u32(300),
        Type::Mx => bytes().u16(10 * (n + 1)).put(b"\x02mx").u16(0xc00c),
        Type::Txt => bytes().u8(15).put(b"v=spf1 mx -all "),
        Type::Srv => bytes().u16(n).u16(1).u16(443).put(b"\x03srv").u16(0xc00c),
        Type::Https => bytes().u16(n + 1).u8(0).u16(1).u16(3).put(b"\x02h2"),
    };
    let kind = if kind == Type::Any { Type::A } else { kind };
    bytes().u16(0xc00c).u16(kind.number()).u16(1).u32(300).u16(data.len() as u16).append(&data)
}

/// Queries and answers.
#[derive(Debug)]
pub struct Dns;

impl Compile for Dns {
    type Options = Options;
    const NAME: &'static str = "dns";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "DNS queries of a list of names and types, with transaction numbers of chance and EDNS; or the answers to them.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Queries for A and AAAA, 7 to 3", {}),
            example!("Names that no cache knows: h00000000.example.com, h00000001.example.com, ...", {
                "names": ["example.com"], "unique_digits": 8, "types": [{ "type": "A", "share": 1 }]
            }),
            example!("Answers of every type, three records each", {
                "answers": true, "records": 3, "names": ["example.com"],
                "types": [{ "type": "A", "share": 5 }, { "type": "AAAA", "share": 2 }, { "type": "MX", "share": 1 },
                    { "type": "TXT", "share": 1 }, { "type": "SRV", "share": 1 }, { "type": "NS", "share": 1 },
                    { "type": "SOA", "share": 1 }, { "type": "HTTPS", "share": 1 }]
            }),
            example!("IPv6, DNSSEC wanted", {
                "clients": "2001:2::/112", "servers": "2001:2:0:1::53", "dnssec": true
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.names.is_empty() {
            return Err(Fault::at("/names", "give one name at least"));
        }
        if o.names.len() * o.types.len() > 1024 {
            return Err(Fault::at("/names", "names times types are 1024 at most"));
        }
        if o.dnssec && o.edns == 0 {
            return Err(Fault::at("/dnssec", "the DO bit stands in EDNS: set `edns`"));
        }
        let mut streams = Vec::new();
        for (at, name) in o.names.iter().enumerate() {
            let question = labels(name, o.unique_digits, at)?;
            for asked in &o.types {
                let recursion = u16::from(o.recursion) << 8;
                let (flags, records) =
                    if o.answers { (0x8080 | recursion, o.records) } else { (recursion, 0) };
                let edns = u16::from(o.edns > 0);
                let mut message = bytes().vary(16, any()).u16(flags).u16(1).u16(records).u16(0).u16(edns);
                message = message.append(&question).u16(asked.r#type.number()).u16(1);
                for n in 0..records {
                    message = message.append(&record(asked.r#type, n));
                }
                if o.edns > 0 {
                    // OPT (RFC 6891 section 6.1.2): root, type 41, payload size, extended code and flags, no options.
                    message = message.u8(0).u16(41).u16(o.edns).u32(u32::from(o.dnssec) << 15).u16(0);
                }
                let (from, to) = if o.answers { (&o.servers, &o.clients) } else { (&o.clients, &o.servers) };
                let transport = if o.answers {
                    udp().sport(o.port).dport(&o.client_port)
                } else {
                    udp().sport(&o.client_port).dport(o.port)
                };
                let header = ip(from, to, "/servers")?;
                let name = format!("{name} {:?}", asked.r#type).to_uppercase();
                streams.push((Stream::new(header / transport / message).named(name), u64::from(asked.share)));
            }
        }
        Ok(Scenario::new(proportional(streams)))
    }
}
