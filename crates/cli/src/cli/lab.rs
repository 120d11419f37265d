//! `netdyno lab`. The device that other verbs put into a lab of their own is declared in crate `spec`.

use super::word;
use ::lab::Loss;
use clap::{Args, ValueHint};
use spec::setting::OneValue as _;
use spec::{Dut, EndpointRate, Faults, Written};
use std::ffi::OsString;
use std::path::PathBuf;
use traffic::Rate;
use traffic::rate::parse_count;

#[derive(Debug, Args)]
pub struct Lab {
    /// MTU of the cables.
    #[arg(long, default_value_t = 1500)]
    pub mtu: u32,
    /// Transmit and receive queues of each end.
    #[arg(long, default_value_t = 1)]
    pub queues: u32,
    /// Cables between the hosts: tx0 - rx0, tx1 - rx1, ...; at most 4. A device stands in the first.
    #[arg(long, default_value_t = 1)]
    pub cables: u32,
    /// Ports of one device, 3 to 16, instead of cables: port0, port1, ... are all on the sending host, and the device's are
    /// dut0, dut1, ...; a router has the network 198.18.N+1.0/24 at port N.
    #[arg(long, value_name = "N", conflicts_with_all = ["cables", "addresses", "impair"])]
    pub ports: Option<u32>,
    /// Give the hosts addresses: 198.18.0.1 and 198.18.0.2, behind a router 198.19.0.2.
    #[arg(long)]
    pub addresses: bool,
    /// Put a device to test between the hosts: Linux as a bridge, as an IPv4 router (from 198.18.0.0/16 to
    /// 198.19.0.0/16; frames are sent to its MAC address, 02:00:00:00:01:01), or as a nat, a router that gives connections of the sending
    /// host its own address 198.19.255.254 and a port of its choice. Default with a limit of connections: nat; with another limit, a loss or --ports: bridge.
    #[arg(long, value_name = "KIND", value_parser = word::<Dut>())]
    pub dut: Option<Dut>,
    /// Put this XDP program into the device, in the driver of each of its interfaces: what it passes, the device forwards. The result of
    /// each run in the lab has its verdicts by stream, and its ns a frame (docs/xdp.md). Default with it: --dut bridge.
    #[arg(long, value_name = "PROG.o", value_hint = ValueHint::FilePath, conflicts_with = "impair")]
    pub dut_xdp: Option<PathBuf>,
    /// Which program of that object, by the name of its function or its section, where it holds several.
    #[arg(long, value_name = "NAME", requires = "dut_xdp")]
    pub dut_xdp_program: Option<String>,
    /// The most that the device forwards, each way: a token bucket of this rate (200mbps; 200mbps-l1 on the wire).
    #[arg(long, value_name = "RATE")]
    pub bottleneck: Option<Rate>,
    /// What waits before the bottleneck, in bytes. Default: 5 ms of its rate.
    #[arg(long, value_name = "BYTES", value_parser = parse_count, requires = "bottleneck")]
    pub queue: Option<u64>,
    /// Tokens that the bottleneck saves up, in bytes. Default: 5 ms of its rate.
    #[arg(long, value_name = "BYTES", value_parser = parse_count, requires = "bottleneck")]
    pub burst: Option<u64>,
    /// What the device loses, each way, evenly: 1%, 1/1000.
    #[arg(long, value_name = "SHARE")]
    pub loss: Option<Loss>,
    /// The most connections that the nat holds at once: 1 to 65535. What would begin one more is dropped; a connection that was closed no
    /// longer counts.
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "ports")]
    pub connections: Option<u64>,
    /// The most new connections a second that the nat takes: 2kcps. What would begin more is dropped; a token bucket saves up those of 20 ms.
    #[arg(long, value_name = "RATE", conflicts_with = "ports")]
    pub new_connections: Option<Written<EndpointRate>>,
    /// Put a device with known faults between the hosts: what `netdyno impair` does, its options written without dashes
    /// ('delay 500us loss 1%', docs/impair.md).
    #[arg(long, value_name = "FAULTS", value_parser = faults, conflicts_with_all = ["dut", "bottleneck", "loss", "connections", "new_connections"])]
    pub impair: Option<Faults>,
    /// Run this at the receiving host, by a shell, from before CMD until CMD ends; CMD begins when it listens at a port
    /// ('netdyno endpoint serve --quiet') or has an XDP program at an interface ('netdyno sessions serve --on rx0'). `http` is a server that netdyno has: the pages / and /numbers at ports 80 and 8080. The
    /// hosts have addresses, as with --addresses.
    #[arg(long, value_name = "CMD|http", conflicts_with = "ports")]
    pub server: Option<String>,
    /// The command. It runs on the sending host, which has interface tx0; rx0 is the receiving host's (also written
    /// rx0@receiver): what begins with `ip netns exec receiver` runs there. The device's namespace is called dut, its interfaces dut0, dut1, ...
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// What happens to frames, in one word.
fn faults(text: &str) -> Result<Faults, String> {
    Faults::of(text.as_ref()).map_err(|bad| crate::wording::typed(&bad).into_owned())
}
