//! Connection requests as operating systems send them.

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::tcp;
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// Whose SYN it looks like: its options, window, time to live.
    Stack {
        /// Linux: MSS, SACK permitted, time stamps, window scale 7.
        Linux = "linux",
        /// Windows: MSS, window scale 8, SACK permitted.
        Windows = "windows",
        /// BSD and its descendants: MSS, window scale 6, time stamps, SACK permitted.
        Bsd = "bsd",
        /// No options.
        Bare = "bare",
    }
}

options! {
    /// Options of tcp_syn.
    {
        /// Source addresses (IPv4 or IPv6): one, a prefix, a range, a list, random(...).
        src_ip: Addresses = addresses("10.0.0.0/16"),
        /// Destination addresses, of the same IP version.
        dst_ip: Addresses = addresses("198.18.0.1"),
        /// Source ports.
        src_port: Values = values("1024..65535"),
        /// Destination ports.
        dst_port: Values = values("443"),
        /// Exactly so many different pairs of source address and port. 0: both advance together.
        flows: u64 = 0,
        /// Whose SYN it looks like; several take turns.
        #[schemars(length(min = 1, max = 4))]
        stacks: Vec<Stack> = vec![Stack::Linux],
        /// Maximum segment size that is offered.
        #[schemars(range(min = 64))]
        mss: u16 = 1460,
        /// Offer explicit congestion notification (RFC 3168): sets ECE and CWR.
        ecn: bool = false,
    }
}

/// Connection requests.
#[derive(Debug)]
pub struct TcpSyn;

impl Compile for TcpSyn {
    type Options = Options;
    const NAME: &'static str = "tcp_syn";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str =
        "TCP connection requests (SYN) with the options and windows of common systems; nothing is answered.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Requests of Linux clients to an HTTPS server", {}),
            example!("A mix of systems, exactly 100,000 clients, two ports", {
                "stacks": ["linux", "windows", "bsd"], "flows": 100_000, "dst_port": [80, 443], "ecn": true
            }),
            example!("IPv6", { "src_ip": "2001:2::/64", "dst_ip": "2001:2:0:1::1" }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let (source, ports) = flows(o.flows, &o.src_ip, &o.src_port, "flows")?;
        let flags = if o.ecn { "SEC" } else { "S" };
        let mut streams = Vec::new();
        for stack in &o.stacks {
            let mss = if o.src_ip.is_ipv6() { o.mss.saturating_sub(20) } else { o.mss };
            let (name, window, ttl, options) = match stack {
                Stack::Linux => (
                    "linux",
                    64_240,
                    64,
                    format!("[mss({mss}), sackok, timestamp(1000000, 0), nop, wscale(7)]"),
                ),
                Stack::Windows => {
                    ("windows", 64_240, 128, format!("[mss({mss}), nop, wscale(8), nop, nop, sackok]"))
                }
                Stack::Bsd => (
                    "bsd",
                    65_535,
                    64,
                    format!("[mss({mss}), nop, wscale(6), sackok, timestamp(1000000, 0)]"),
                ),
                Stack::Bare => ("bare", 8192, 64, "[]".to_owned()),
            };
            let segment = tcp()
                .sport(&ports)
                .dport(&o.dst_port)
                .seq(any())
                .flags(flags)
                .window(window)
                .options(options);
            let header = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?.src(&source).ttl(ttl).dont_fragment();
            streams.push(Stream::new(header / segment).named(name));
        }
        Ok(Scenario::new(streams))
    }
}
