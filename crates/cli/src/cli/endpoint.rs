//! The arguments of `netdyno endpoint`.

use super::{Output, explained_word, word};
use clap::{Args, Subcommand, ValueHint};
use spec::{
    Confidence, Cores, EndpointRate, EndpointTest, Family, ReceiveMethod, SendMethod, Word as _, Written,
};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "The server is the far end: netdyno endpoint serve there, first.")]
pub struct Endpoint {
    #[command(subcommand)]
    pub serve: Option<Serve>,
    /// What is done.
    #[arg(value_name = "TEST", required = true, value_parser = explained_word::<EndpointTest>())]
    pub test: Option<EndpointTest>,
    /// The server: HOST, HOST:PORT, or unix:PATH. Its port, if none is said, is 12866.
    #[arg(value_name = "HOST", required = true)]
    pub host: Option<String>,
    /// Only this Internet protocol: 4 or 6.
    #[arg(long, value_name = "VERSION", default_value = "any", value_parser = word::<Family>())]
    pub family: Family,
    /// A file whose first line is the server's token.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Connections at once. Default: 1. Of connection-rate, handshakes under way at once; default: 64, and 1024 with --rate.
    #[arg(short, long, value_name = "N")]
    pub parallel: Option<u32>,
    /// Threads for all connections. Default: a thread each up to 64 connections; of more, one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// connection-rate: keep so many connections open, idle, until the end. With --rate others are opened, and the oldest closed for each.
    #[arg(long, value_name = "N")]
    pub hold: Option<u32>,
    /// connection-rate: who is not open by then has failed. Default: 10s.
    #[arg(long, value_name = "TIME")]
    pub connect_timeout: Option<Written<Duration>>,
    /// Measure for this long. Default: 10s.
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Do not measure what comes in so long before.
    #[arg(long, value_name = "TIME")]
    pub warm_up: Option<Written<Duration>>,
    /// Until each connection of a stream has carried so many bytes.
    #[arg(long, value_name = "BYTES", conflicts_with = "duration")]
    pub bytes: Option<Written<u64>>,
    /// Until each connection has had so many transactions.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    pub transactions: Option<Written<u64>>,
    /// Bytes of a stream's message (of one call), or of a datagram. Default: 131072; datagrams 1472 over IPv4 and 1452 over IPv6.
    #[arg(long, value_name = "BYTES")]
    pub size: Option<Written<u64>>,
    /// Bytes of a request. Default: 1.
    #[arg(long, value_name = "BYTES")]
    pub request: Option<Written<u64>>,
    /// Bytes of a response. Default: 1.
    #[arg(long, value_name = "BYTES")]
    pub response: Option<Written<u64>>,
    /// Transactions in flight over each connection. Default: 1 (netperf's -b N is N + 1).
    #[arg(long, value_name = "N")]
    pub burst: Option<u32>,
    /// Load of all connections together: 20ktps (an open loop, whose latency counts from when each request was due), 500mbps,
    /// 100kpps, 10kcps (connections). Default: as fast as it goes.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Written<EndpointRate>>,
    /// Repeat until the mean is so sure: 99%,5% is within 2.5 % of the mean, 99 times in 100 (netperf's -I).
    #[arg(long, value_name = "LEVEL,WIDTH")]
    pub confidence: Option<Written<Confidence>>,
    /// With --confidence, repeat at most so often. Default: 10.
    #[arg(long, value_name = "N", requires = "confidence")]
    pub iterations: Option<u32>,
    /// SO_SNDBUF here, in bytes. The kernel doubles it, and stops tuning it.
    #[arg(long, value_name = "BYTES")]
    pub send_buffer: Option<Written<u64>>,
    /// SO_RCVBUF here.
    #[arg(long, value_name = "BYTES")]
    pub receive_buffer: Option<Written<u64>>,
    /// SO_SNDBUF at the server.
    #[arg(long, value_name = "BYTES")]
    pub remote_send_buffer: Option<Written<u64>>,
    /// SO_RCVBUF at the server.
    #[arg(long, value_name = "BYTES")]
    pub remote_receive_buffer: Option<Written<u64>>,
    /// TCP_NODELAY at both ends; transactions have it anyway.
    #[arg(long)]
    pub nodelay: bool,
    /// TCP_CORK at the end that sends.
    #[arg(long)]
    pub cork: bool,
    /// Congestion control at both ends: cubic, bbr, reno, ...
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// The kernel paces each connection at the end that sends (SO_MAX_PACING_RATE): 500mbps.
    #[arg(long, value_name = "RATE")]
    pub pacing: Option<Written<EndpointRate>>,
    /// DSCP of what both ends send: 0 to 63, ef, cs1, af41.
    #[arg(long, value_name = "DSCP")]
    pub dscp: Option<String>,
    /// Multipath TCP, if the server has it too.
    #[arg(long)]
    pub mptcp: bool,
    /// How a stream's bytes are sent: write, sendfile, splice, zerocopy.
    #[arg(long, value_name = "HOW", default_value = "write", value_parser = word::<SendMethod>())]
    pub method: SendMethod,
    /// How they are received: read; trunc or splice never touch the data.
    #[arg(long, value_name = "HOW", default_value = "read", value_parser = word::<ReceiveMethod>())]
    pub receive_method: ReceiveMethod,
    /// Receiving polls the device for so long (SO_BUSY_POLL), at both ends: 50us.
    #[arg(long, value_name = "TIME")]
    pub busy_poll: Option<Written<Duration>>,
    /// Wait awake for requests and responses, at both ends: takes two cores whole.
    #[arg(long)]
    pub spin: bool,
    /// The kernel cuts large buffers into datagrams (UDP_SEGMENT).
    #[arg(long)]
    pub gso: bool,
    /// The kernel puts datagrams together for the receiver (UDP_GRO).
    #[arg(long)]
    pub gro: bool,
    /// Datagrams that one call sends. Default: 1; 64 with --gso.
    #[arg(long, value_name = "N")]
    pub batch: Option<u32>,
    /// Pin threads here: N cores, or a list (0-3,6).
    #[arg(long, value_name = "CORES")]
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
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Subcommand)]
pub enum Serve {
    /// Be the far end of endpoint tests, for several clients at once, until interrupted. Safe to be left running: every client
    /// has limits, and nothing is sent to an address that did not ask over TCP.
    Serve(Server),
}

#[derive(Debug, Args)]
pub struct Server {
    /// Where to listen: ADDR:PORT, or unix:PATH; may be given more than once. Default: [::]:12866, or 0.0.0.0:12866 without IPv6.
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<String>,
    /// A file whose first line is a token that clients have to have.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Clients at once. Default: 64.
    #[arg(long, value_name = "N")]
    pub max_clients: Option<u32>,
    /// Connections at once, of all clients. Default: 20000.
    #[arg(long, value_name = "N")]
    pub max_connections: Option<u32>,
    /// Connections of one test, those that it holds among them. Default: 1024.
    #[arg(long, value_name = "N")]
    pub max_parallel: Option<u32>,
    /// How long a test may last. Default: 1h.
    #[arg(long, value_name = "TIME")]
    pub max_duration: Option<Written<Duration>>,
    /// Memory of the buffers of all clients' tests together. Default: 1073741824.
    #[arg(long, value_name = "BYTES")]
    pub max_memory: Option<Written<u64>>,
    /// What a test may have this host send, or receive: 500mbps. Of datagrams a client that sends more is ended. Default: as fast as it goes.
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Written<EndpointRate>>,
    /// Multipath TCP for who asks for it.
    #[arg(long)]
    pub mptcp: bool,
    /// Started as root, go on as this user once it listens. Default: nobody; root stays root.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Serve for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    #[command(flatten)]
    pub output: Output,
}

impl Endpoint {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        if let Some(Serve::Serve(server)) = self.serve {
            return server.job();
        }
        let job = spec::Endpoint {
            test: self.test.unwrap_or_else(|| EndpointTest::ALL[0].0),
            host: self.host.unwrap_or_default(),
            family: self.family,
            token_file: self.token_file,
            parallel: self.parallel,
            threads: self.threads,
            hold: self.hold,
            connect_timeout: self.connect_timeout,
            duration: self.duration,
            warm_up: self.warm_up,
            bytes: self.bytes,
            transactions: self.transactions,
            size: self.size,
            request: self.request,
            response: self.response,
            burst: self.burst,
            rate: self.rate,
            confidence: self.confidence,
            iterations: self.iterations,
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            remote_send_buffer: self.remote_send_buffer,
            remote_receive_buffer: self.remote_receive_buffer,
            nodelay: self.nodelay,
            cork: self.cork,
            congestion: self.congestion,
            pacing: self.pacing,
            dscp: self.dscp,
            mptcp: self.mptcp,
            method: self.method,
            receive_method: self.receive_method,
            busy_poll: self.busy_poll,
            spin: self.spin,
            gso: self.gso,
            gro: self.gro,
            batch: self.batch,
            cores: self.cores,
            remote_cores: self.remote_cores,
            from: self.from,
            device: self.device,
        };
        (job.into(), self.output)
    }
}

impl Server {
    fn job(self) -> (spec::Job, Output) {
        // Without IPv6 there is no [::] to listen on.
        let v6 = std::path::Path::new("/proc/net/if_inet6").exists();
        let all = if v6 { "[::]:12866" } else { "0.0.0.0:12866" };
        let listen = if self.listen.is_empty() { vec![all.to_owned()] } else { self.listen };
        let job = spec::EndpointServer {
            listen,
            token_file: self.token_file,
            max_clients: self.max_clients,
            max_connections: self.max_connections,
            max_parallel: self.max_parallel,
            max_duration: self.max_duration,
            max_memory: self.max_memory,
            max_rate: self.max_rate,
            mptcp: self.mptcp,
            // Who is not root has nothing to leave.
            user: self.user.or_else(|| transport::rights::is_root().then(|| "nobody".to_owned())),
            duration: self.duration,
        };
        (job.into(), self.output)
    }
}
