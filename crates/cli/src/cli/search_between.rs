//! `netdyno search socket-buffer` and `netdyno search transactions`: searches between two endpoints.

use super::declared::Asked;
use super::lab::OwnLab;
use super::{Output, explained_word, word};
use clap::{Args, ValueHint};
use spec::{Confidence, Cores, EndpointRate, EndpointTest, Family, ReceiveMethod, SendMethod, Written};
use std::path::PathBuf;
use std::time::Duration;

/// What `-h` says of other searches' cores, sizes and rates is not said of these: their texts are declared with both.
const PIN: &str = "Pin threads here: N cores, or a list (0-3,6)";

/// The test that is done again and again, and between whom.
#[derive(Debug, Clone, Args)]
pub struct Between {
    /// The server (netdyno endpoint serve): HOST or HOST:PORT. Its port, if none is said, is 12866.
    #[arg(value_name = "HOST", required_unless_present_any = ["lab", "resume"], conflicts_with = "lab")]
    pub host: Option<String>,
    #[command(flatten)]
    pub in_lab: Asked<spec::InLab>,
    #[command(flatten)]
    pub own_lab: OwnLab,
    /// Only this Internet protocol: 4 or 6.
    #[arg(long, value_name = "VERSION", default_value = "any", value_parser = word::<Family>())]
    pub family: Family,
    /// A file whose first line is the server's token.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Connections at once, a thread each. Default: 1.
    #[arg(short, long, value_name = "N")]
    pub parallel: Option<u32>,
    /// Measure each trial for this long. Default: 5s; in a lab 1s.
    #[arg(long, value_name = "TIME")]
    pub trial_duration: Option<Written<Duration>>,
    /// Do not measure what comes in so long before. Default: 200ms.
    #[arg(long, value_name = "TIME")]
    pub warm_up: Option<Written<Duration>>,
    /// Bytes of a request. Default: 1.
    #[arg(long, value_name = "BYTES")]
    pub request: Option<Written<u64>>,
    /// Bytes of a response. Default: 1.
    #[arg(long, value_name = "BYTES")]
    pub response: Option<Written<u64>>,
    /// TCP_NODELAY at both ends; transactions have it anyway.
    #[arg(long)]
    pub nodelay: bool,
    /// Congestion control at both ends: cubic, bbr, reno, ...
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// DSCP of what both ends send: 0 to 63, ef, cs1, af41.
    #[arg(long, value_name = "DSCP")]
    pub dscp: Option<String>,
    /// Receiving polls the device for so long (SO_BUSY_POLL), at both ends: 50us.
    #[arg(long, value_name = "TIME")]
    pub busy_poll: Option<Written<Duration>>,
    #[arg(long, value_name = "CORES", help = PIN, long_help = PIN)]
    pub cores: Option<Written<Cores>>,
    /// Pin threads at the server, too.
    #[arg(long, value_name = "CORES")]
    pub remote_cores: Option<Written<Cores>>,
    /// Own address.
    #[arg(long, value_name = "ADDR")]
    pub from: Option<String>,
    /// Own interface (SO_BINDTODEVICE).
    #[arg(long, value_name = "IFACE")]
    pub device: Option<String>,
    /// Go on with the search that this result (a folder of --report, its result.json, or what --json printed) is of, at its
    /// first trial that was not done. All else is as it was asked for then.
    #[arg(long = "continue", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = "The server is the far end: netdyno endpoint serve there, first.")]
pub struct SocketBuffer {
    #[command(flatten)]
    pub between: Between,
    /// What is done with each size: tcp-stream, tcp-maerts, udp-stream, udp-maerts, tcp-rr or udp-rr.
    #[arg(long, value_name = "TEST", default_value = "tcp-stream", value_parser = explained_word::<EndpointTest>())]
    pub test: EndpointTest,
    #[command(flatten)]
    pub find: Asked<spec::SocketBuffer>,
    /// And repeat each until its mean is so sure: 95%,10% is within 5 % of the mean, 95 times in 100.
    #[arg(long, value_name = "LEVEL,WIDTH")]
    pub confidence: Option<Written<Confidence>>,
    /// With --confidence, repeat at most so often. Default: 10.
    #[arg(long, value_name = "N", requires = "confidence")]
    pub iterations: Option<u32>,
    #[arg(
        long,
        value_name = "BYTES",
        help = "Bytes of a stream's message, or of a datagram (131072; 1472)",
        long_help = "Bytes of a stream's message (of one call), or of a datagram. Default: 131072; datagrams 1472 over IPv4 and 1452 over IPv6"
    )]
    pub size: Option<Written<u64>>,
    /// Transactions in flight over each connection. Default: 1.
    #[arg(long, value_name = "N")]
    pub burst: Option<u32>,
    #[arg(
        long,
        value_name = "RATE",
        help = "Load of all connections together: 500mbps, 100kpps, 20ktps",
        long_help = "Load of all connections together: 500mbps, 100kpps, 20ktps. Default: as fast as it goes"
    )]
    pub rate: Option<Written<EndpointRate>>,
    /// How a stream's bytes are sent: write, sendfile, splice, zerocopy.
    #[arg(long, value_name = "HOW", default_value = "write", value_parser = word::<SendMethod>())]
    pub method: SendMethod,
    /// How they are received: read; trunc or splice never touch the data.
    #[arg(long, value_name = "HOW", default_value = "read", value_parser = word::<ReceiveMethod>())]
    pub receive_method: ReceiveMethod,
    /// The kernel cuts large buffers into datagrams (UDP_SEGMENT).
    #[arg(long)]
    pub gso: bool,
    /// The kernel puts datagrams together for the receiver (UDP_GRO).
    #[arg(long)]
    pub gro: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "The server is the far end: netdyno endpoint serve there, first.")]
#[command(mut_arg("below", |below| below.help("The bound of another percentile (--percentile)")))]
pub struct Transactions {
    #[command(flatten)]
    pub between: Between,
    /// What is offered: tcp-rr or udp-rr.
    #[arg(long, value_name = "TEST", default_value = "tcp-rr", value_parser = explained_word::<EndpointTest>())]
    pub test: EndpointTest,
    /// The bound of the 99th percentile: 200us.
    #[arg(long, value_name = "TIME", required_unless_present_any = ["below", "resume"], conflicts_with_all = ["below", "percentile"])]
    pub p99: Option<Written<Duration>>,
    #[command(flatten)]
    pub find: Asked<spec::MostTransactions>,
    /// Transactions in flight over each connection at most. Default: 1024, and 16 in the closed loop.
    #[arg(long, value_name = "N")]
    pub burst: Option<u32>,
    /// Wait awake for requests and responses, at both ends: takes two cores whole.
    #[arg(long)]
    pub spin: bool,
}

impl Between {
    fn parts(self, test: EndpointTest) -> (spec::Endpoint, Option<spec::Lab>, Option<PathBuf>, Output) {
        let lab = self.own_lab.put(self.in_lab.0.lab);
        let endpoint = spec::Endpoint {
            test,
            host: self.host.unwrap_or_default(),
            family: self.family,
            token_file: self.token_file,
            parallel: self.parallel,
            duration: self.trial_duration,
            warm_up: self.warm_up,
            request: self.request,
            response: self.response,
            nodelay: self.nodelay,
            congestion: self.congestion,
            dscp: self.dscp,
            busy_poll: self.busy_poll,
            cores: self.cores,
            remote_cores: self.remote_cores,
            from: self.from,
            device: self.device,
            ..spec::Endpoint::default()
        };
        (endpoint, lab, self.resume, self.output)
    }
}

impl SocketBuffer {
    /// The job, the result to go on from, and where the result goes.
    pub fn job(self) -> (spec::EndpointSearch, Option<PathBuf>, Output) {
        let (endpoint, lab, resume, output) = self.between.parts(self.test);
        let endpoint = spec::Endpoint {
            confidence: self.confidence,
            iterations: self.iterations,
            size: self.size,
            burst: self.burst,
            rate: self.rate,
            method: self.method,
            receive_method: self.receive_method,
            gso: self.gso,
            gro: self.gro,
            ..endpoint
        };
        let find = spec::EndpointFind::SocketBuffer(self.find.0);
        (spec::EndpointSearch { find, endpoint, lab }, resume, output)
    }
}

impl Transactions {
    /// The job, the result to go on from, and where the result goes.
    pub fn job(self) -> (spec::EndpointSearch, Option<PathBuf>, Output) {
        let (endpoint, lab, resume, output) = self.between.parts(self.test);
        let endpoint = spec::Endpoint { burst: self.burst, spin: self.spin, ..endpoint };
        let mut find = self.find.0;
        find.below = self.p99.or(find.below);
        let find = spec::EndpointFind::Transactions(find);
        (spec::EndpointSearch { find, endpoint, lab }, resume, output)
    }
}
