//! The arguments of `netdyno probe`.

use super::{Output, word};
use clap::{Args, ValueHint};
use spec::{ExportFormat, FlowDirection, How, Written};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Probe {
    /// Captures to meter instead of an interface, one behind the other as one; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The interface that is metered, its arrivals unless --direction says more (IFACE, or IFACE@NAMESPACE). Its host gets them as before.
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "files")]
    pub interface: Option<String>,
    /// Which frames are metered: in (those that arrive), out (those that leave), or both: what leaves then is another flow than
    /// what arrives, and records say which (flowDirection). What leaves is seen by a packet socket only.
    #[arg(long, value_name = "WHICH", default_value = "in", value_parser = word::<FlowDirection>())]
    pub direction: FlowDirection,
    /// How to take frames: xdp (native), xdp-generic, packet (a packet socket), or the best
    /// that is possible: native XDP, else a packet socket.
    #[arg(long, value_name = "HOW", default_value = "auto", conflicts_with = "files", value_parser = word::<How>())]
    pub meter: How,
    /// Drop what was metered, so that nothing reaches this host's own stack: for a port that only gets a copy of traffic.
    #[arg(long, conflicts_with = "files")]
    pub drop: bool,
    /// Yes, attach an XDP program to this interface although it carries the default route or your login. Else it is metered
    /// by a packet socket.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    /// A collector that gets the records by UDP, or, as tcp://HOST:PORT, by TCP (IPFIX only); may be given more than once, and then
    /// each gets all of them.
    #[arg(long, value_name = "HOST:PORT")]
    pub export: Vec<String>,
    /// Send each message to one collector in turn instead of to all; each has templates and sequence numbers of its own.
    #[arg(long)]
    pub balance: bool,
    /// How records are written: ipfix, 9 (NetFlow v9), 5 (NetFlow v5: IPv4 only).
    #[arg(long, value_name = "FORMAT", default_value = "ipfix", value_parser = word::<ExportFormat>())]
    pub format: ExportFormat,
    /// What records hold: names of elements with spaces between, IANA's (octetDeltaCount) or nProbe's (%IN_BYTES). Of
    /// addresses, IPv6 flows get IPv6's. Default: addresses, ports, protocol, ToS, flags, bytes of IP, packets, first and last in
    /// ms, interfaces, VLAN, ICMP type, version, why it ended.
    #[arg(short = 'T', long, value_name = "NAMES", allow_hyphen_values = true)]
    pub template: Option<String>,
    /// The number of the template for IPv4; IPv6's is the next. Default: 257.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(256..))]
    pub template_id: Option<u16>,
    /// Send templates again after this long. They are also sent again after 20 messages, once a second at most, and when a
    /// collector's host says that nobody listens. Default: 1m.
    #[arg(long, value_name = "TIME")]
    pub template_refresh: Option<Written<Duration>>,
    /// Observation domain (IPFIX), source (v9), engine (v5, up to 255). Default: 0.
    #[arg(long, value_name = "N")]
    pub domain: Option<u32>,
    /// A record ends this long after its flow's last packet. Default: 15s.
    #[arg(long, value_name = "TIME")]
    pub idle_timeout: Option<Written<Duration>>,
    /// A record ends this long after its first packet although more come; those make another record. Default: 1m.
    #[arg(long, value_name = "TIME")]
    pub active_timeout: Option<Written<Duration>>,
    /// A record ends this long after TCP's FIN or RST. Default: 1s.
    #[arg(long, value_name = "TIME")]
    pub end_timeout: Option<Written<Duration>>,
    /// Flows at once, at most 128 bytes of memory each; with more, the one idle longest ends. Default: 1048576.
    #[arg(long, value_name = "N")]
    pub max_flows: Option<Written<u64>>,
    /// Of GTP-U, VXLAN, GRE, ERSPAN (types I, II and III) and IP in IP, meter the packets inside.
    #[arg(long)]
    pub inner: bool,
    /// Make one record of both directions of a flow (RFC 5103; IPFIX only): source is who sent the first packet, and what came
    /// back is in elements of the other direction (reverseOctetDeltaCount). Takes up to 192 bytes of memory a flow.
    #[arg(long)]
    pub biflow: bool,
    /// Read the signatures of test frames (`send --sign`): records say the stream, its first and last number and how many
    /// packets were signed (netdynoStream and others, enterprise 32473; IPFIX only). Takes frames by a packet socket.
    #[arg(long)]
    pub signatures: bool,
    /// Look at one packet in N only; the records say so. With NetFlow v5 N is up to 16383.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: Option<u32>,
    /// Leave to chance which packet in N that is. Default: every Nth.
    #[arg(long, requires = "sample")]
    pub sample_at_random: bool,
    /// Meter one flow in N only, all of its packets: which ones, a hash of their keys says. Options records say so (RFC 7014).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample_flows: Option<u32>,
    /// With the same seed every probe takes the same flows, both directions of a conversation among them. Default: drawn, and in
    /// the result.
    #[arg(long, alias = "seed", value_name = "N", requires = "sample_flows")]
    pub sample_seed: Option<u64>,
    /// The interface that packets arrive at, in records. Default: the number that this host has for it; of packets that leave by it, 0.
    #[arg(long, value_name = "N")]
    pub input_index: Option<u32>,
    /// The interface that they leave by, in records. Default: 0; of packets that leave by it, this host's number.
    #[arg(long, value_name = "N")]
    pub output_index: Option<u32>,
    /// Send at most N records a second; others wait. Default: no limit on an interface, 100000 of captures.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub export_rate: Option<u32>,
    /// Meter for this long. Default: until interrupted, or to the captures' end.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End after this many frames.
    #[arg(long, value_name = "FRAMES")]
    pub count: Option<Written<u64>>,
    #[command(flatten)]
    pub output: Output,
}

impl Probe {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let job = spec::Probe {
            on: self.interface,
            direction: self.direction,
            how: self.meter,
            drop: self.drop,
            yes_disrupt: self.yes_disrupt,
            captures: self.files,
            export: self.export,
            balance: self.balance,
            format: self.format,
            template: self.template,
            template_id: self.template_id,
            template_refresh: self.template_refresh,
            domain: self.domain,
            idle_timeout: self.idle_timeout,
            active_timeout: self.active_timeout,
            end_timeout: self.end_timeout,
            max_flows: self.max_flows,
            inner: self.inner,
            biflow: self.biflow,
            signatures: self.signatures,
            sample: self.sample,
            sample_at_random: self.sample_at_random,
            sample_flows: self.sample_flows,
            sample_seed: self.sample_seed,
            input_index: self.input_index,
            output_index: self.output_index,
            export_rate: self.export_rate,
            duration: self.duration,
            count: self.count,
        };
        (job.into(), self.output)
    }
}
