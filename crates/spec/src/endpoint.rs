//! Endpoint tests: streams and transactions over this host's TCP and UDP, against a netdyno server; and that server.

use crate::check::{Contradiction, hold};
use crate::consent::Consent;
use crate::cores::Cores;
use crate::kind::Kind;
use crate::parts::socket_buffers;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::{Quantity, Written};
use settings::settings;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::{BadQuantity, Rate, parse_count};

words! {
    /// What is done between two endpoints.
    EndpointTest {
        /// Bytes from here to the server over TCP, as fast as they go.
        TcpStream = "tcp-stream",
        /// Bytes from the server to here over TCP.
        TcpMaerts = "tcp-maerts",
        /// Both at once, over connections of their own.
        TcpBidir = "tcp-bidir",
        /// Datagrams from here to the server.
        UdpStream = "udp-stream",
        /// Datagrams from the server to here.
        UdpMaerts = "udp-maerts",
        /// A request and a response, again and again, over each TCP connection.
        TcpRr = "tcp-rr",
        /// The same over UDP.
        UdpRr = "udp-rr",
        /// A TCP connection for each request and response.
        TcpCrr = "tcp-crr",
        /// TCP connections that are made and closed.
        TcpCc = "tcp-cc",
        /// TCP connections that are opened, many at once, and closed or held: how many a second, how long each takes, what fails.
        ConnectionRate = "connection-rate",
        /// Transactions by themselves, and then beside streams that fill the path: by how much their latency rises.
        LatencyUnderLoad = "latency-under-load",
        /// Test packets of STAMP (RFC 8762), or TWAMP-Light, to any reflector of these: round trip, loss by direction, delay variation.
        Stamp = "stamp",
    }
}

impl EndpointTest {
    /// It has a stream of bytes over TCP.
    pub fn streams(self) -> bool {
        matches!(self, Self::TcpStream | Self::TcpMaerts | Self::TcpBidir | Self::LatencyUnderLoad)
    }

    /// It has requests and responses, or connections, that are timed.
    pub fn transacts(self) -> bool {
        matches!(
            self,
            Self::TcpRr
                | Self::UdpRr
                | Self::TcpCrr
                | Self::TcpCc
                | Self::ConnectionRate
                | Self::LatencyUnderLoad
        )
    }

    /// Over UDP.
    pub fn is_udp(self) -> bool {
        matches!(self, Self::UdpStream | Self::UdpMaerts | Self::UdpRr)
    }
}

words! {
    /// How a stream's bytes are sent.
    SendMethod {
        /// send(2): the kernel copies them.
        Write = "write",
        /// sendfile(2) out of memory: no copy.
        Sendfile = "sendfile",
        /// splice(2) out of memory: no copy.
        Splice = "splice",
        /// MSG_ZEROCOPY: no copy, unless the kernel has to.
        Zerocopy = "zerocopy",
    }
}

words! {
    /// How a stream's bytes are received.
    ReceiveMethod {
        /// recv(2): the kernel copies them.
        Read = "read",
        /// MSG_TRUNC: the kernel drops them, and the data is never touched.
        Trunc = "trunc",
        /// splice(2) to /dev/null: the data is never touched.
        Splice = "splice",
    }
}

words! {
    /// Which Internet protocol.
    Family {
        /// Whichever the host's first address is of.
        Any = "any",
        /// IPv4.
        V4 = "4",
        /// IPv6.
        V6 = "6",
    }
}

impl Family {
    /// Whether it is IPv6; `None`: either.
    pub fn v6(self) -> Option<bool> {
        match self {
            Family::Any => None,
            Family::V4 => Some(false),
            Family::V6 => Some(true),
        }
    }
}

impl From<Option<bool>> for Family {
    fn from(v6: Option<bool>) -> Family {
        match v6 {
            None => Family::Any,
            Some(false) => Family::V4,
            Some(true) => Family::V6,
        }
    }
}

/// Of what a load is so much a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointRate {
    /// Transactions.
    Transactions(u64),
    /// Bits of payload.
    Bits(u64),
    /// Datagrams.
    Datagrams(u64),
    /// Connections.
    Connections(u64),
}

impl Quantity for EndpointRate {
    const NAME: &'static str = "EndpointRate";
    const WRITTEN: &'static str = "A load: 20ktps (transactions per second), 500M or 500mbps (bits of payload per second), 100kpps (datagrams per second), 10kcps (connections per second), of all connections together.";
    const EXAMPLES: &'static [&'static str] = &["20ktps", "500mbps", "100kpps", "10kcps"];

    fn read(text: &str) -> Result<EndpointRate, String> {
        let lower: String = text.to_ascii_lowercase().split_whitespace().collect();
        let count =
            |units: [&str; 2]| units.into_iter().find_map(|unit| parse_count(lower.strip_suffix(unit)?).ok());
        if let Some(rate) = count(["tps", "transactions/s"]) {
            return Ok(EndpointRate::Transactions(rate));
        }
        if let Some(rate) = count(["cps", "connections/s"]) {
            return Ok(EndpointRate::Connections(rate));
        }
        let bare = text.parse::<u64>().is_ok();
        let bad = || match bare {
            true => format!(
                "`{text}` has no unit: write {text}cps for new connections a second, {text}tps for transactions, {text}mbps or \
                 {text}pps"
            ),
            false => format!("`{text}` is no load: write 20ktps, 500M or 500mbps, 100kpps or 10kcps"),
        };
        match text.parse::<Rate>() {
            Ok(Rate::Bits { bits_per_second, layer1: false }) => Ok(EndpointRate::Bits(bits_per_second)),
            Ok(Rate::Frames(rate)) if rate.numerator.is_multiple_of(rate.denominator) => {
                Ok(EndpointRate::Datagrams(rate.numerator / rate.denominator))
            }
            Err(bytes @ BadQuantity::Bytes(_)) => Err(bytes.to_string()),
            _ => Err(bad()),
        }
    }
}

/// How sure a result is to be: netperf's -I.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// 0.9, 0.95 or 0.99.
    pub level: f64,
    /// The whole width of the interval around the mean, as a share of it.
    pub width: f64,
}

impl Quantity for Confidence {
    const NAME: &'static str = "Confidence";
    const WRITTEN: &'static str = "Confidence and the whole width of the interval, both in percent: 99%,5% (the mean within 2.5 % of what it is, 99 times in 100).";
    const EXAMPLES: &'static [&'static str] = &["99%,5%", "95%,2%"];

    fn read(text: &str) -> Result<Confidence, String> {
        let bad = || {
            format!(
                "`{text}` is no confidence: write 99%,5% (90, 95 or 99 percent, and the interval's width)"
            )
        };
        let (level, width) = text.split_once(',').ok_or_else(bad)?;
        let number = |text: &str| text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
        let (level, width) = number(level).zip(number(width)).ok_or_else(bad)?;
        let possible = [90.0, 95.0, 99.0].contains(&level) && width > 0.0 && width <= 100.0;
        possible.then_some(Confidence { level: level / 100.0, width: width / 100.0 }).ok_or_else(bad)
    }
}

/// A test between this host and a netdyno server.
#[settings]
pub struct Endpoint {
    /// What is done.
    #[setting(typed_by_place, value = "TEST", explained)]
    #[serde(default)]
    pub test: EndpointTest,
    /// The server: HOST, HOST:PORT, or unix:PATH. Its port, if none is said, is 12866; a reflector's, of stamp, 862.
    #[setting(typed_by_place, value = "HOST")]
    #[serde(default)]
    pub host: String,
    /// Load of all connections together: 20ktps (an open loop, whose latency counts from when each request was due), 500mbps,
    /// 100kpps, 10kcps (connections). Default: as fast as it goes.
    #[setting(
        value = "RATE",
        heading = "Traffic",
        brief = "Load of all connections together: 20ktps, 500mbps, 100kpps, 10kcps"
    )]
    pub rate: Option<Written<EndpointRate>>,
    /// Measure for this long. Default: 10s.
    #[setting(short = 'd', value = "TIME", heading = "Traffic")]
    pub duration: Option<Written<Duration>>,
    /// End when each connection of a stream has carried this many bytes.
    #[setting(value = "BYTES", excludes("duration"), heading = "Traffic")]
    pub bytes: Option<Written<u64>>,
    /// End when each connection has had this many transactions.
    #[setting(value = "N", excludes("duration"), heading = "Traffic")]
    pub transactions: Option<Written<u64>>,
    /// Connections at once. Default: 1. Of connection-rate, handshakes under way at once; default: 64, and 1024 with `.rate`.
    #[setting(short = 'p', value = "N", heading = "Traffic")]
    pub parallel: Option<u32>,
    /// Threads for all connections. Default: a thread each up to 64 connections; of more, one for each processor.
    #[setting(value = "N", heading = "Traffic")]
    pub threads: Option<u32>,
    /// connection-rate: keep this many connections open, idle, until the end. With `.rate` others are opened, and the oldest closed for
    /// each.
    #[setting(value = "N", heading = "Traffic")]
    pub hold: Option<u32>,
    /// Bytes of a stream's message (of one call), or of a datagram. Default: 131072; datagrams 1472 over IPv4 and 1452 over IPv6; packets of
    /// stamp 44, larger ones from 48 on.
    #[setting(
        value = "BYTES",
        heading = "Traffic",
        brief = "Bytes of a stream's message, or of a datagram (131072; 1472)"
    )]
    pub size: Option<Written<u64>>,
    /// Bytes of a request. Default: 1.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub request: Option<Written<u64>>,
    /// Bytes of a response. Default: 1.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub response: Option<Written<u64>>,
    /// Transactions in flight over each connection. Default: 1 (netperf's -b N is N + 1).
    #[setting(value = "N", heading = "Traffic")]
    pub burst: Option<u32>,
    /// Only this Internet protocol: 4 or 6.
    #[setting(value = "VERSION", default = "any", heading = "Traffic")]
    pub family: Family,
    /// A file whose first line is the server's token.
    #[setting(value = "FILE", heading = "Traffic")]
    pub token_file: Option<PathBuf>,
    /// Run for this long before anything is measured.
    #[setting(value = "TIME", heading = "Measure")]
    pub warm_up: Option<Written<Duration>>,
    /// Repeat until the mean is so sure: 99%,5% is within 2.5 % of the mean, 99 times in 100 (netperf's -I).
    #[setting(
        value = "LEVEL,WIDTH",
        heading = "Measure",
        brief = "Repeat until the mean is so sure: 99%,5%"
    )]
    pub confidence: Option<Written<Confidence>>,
    /// With `.confidence`, repeat at most so often. Default: 10.
    #[setting(value = "N", needs("confidence"), heading = "Measure")]
    pub iterations: Option<u32>,
    /// connection-rate: who is not open by then has failed. Default: 10s.
    #[setting(value = "TIME", heading = "Measure")]
    pub connect_timeout: Option<Written<Duration>>,
    /// stamp: an answer that comes later after its packet counts as lost. Default: 1s.
    #[setting(value = "TIME", heading = "Measure")]
    pub wait: Option<Written<Duration>>,
    /// stamp: session identifier (SSID, RFC 8972), 1 to 65535. Default: drawn.
    #[setting(value = "N", heading = "Traffic")]
    pub ssid: Option<u32>,
    /// Test each ordered pair of several hosts: each agent is a client of every other host. The host is a list then, and behind each
    /// address stands the agent where its server is started: 10.0.0.1@lab1,10.0.0.2@lab2.
    #[setting(
        heading = "Agents",
        brief = "Test each ordered pair of several hosts: 10.0.0.1@lab1,10.0.0.2@lab2"
    )]
    pub mesh: bool,
    /// With `.mesh`, do all tests at the same time, so that the network is loaded. Default: rounds, in which no host is in two tests at once.
    #[setting(needs("mesh"), heading = "Agents", brief = "With `.mesh`, do all tests at the same time")]
    pub all_at_once: bool,
    #[part]
    socket_buffers: socket_buffers!(),
    /// TCP_NODELAY at both ends; transactions have it anyway.
    #[setting(expert)]
    pub nodelay: bool,
    /// TCP_CORK at the end that sends.
    #[setting(expert)]
    pub cork: bool,
    /// Congestion control at both ends: cubic, bbr, reno, ...
    #[setting(value = "NAME", expert)]
    pub congestion: Option<String>,
    /// The kernel paces each connection at the end that sends (SO_MAX_PACING_RATE): 500mbps.
    #[setting(value = "RATE", expert)]
    pub pacing: Option<Written<EndpointRate>>,
    /// DSCP of what both ends send: 0 to 63, ef, cs1, af41.
    #[setting(value = "DSCP", expert)]
    pub dscp: Option<String>,
    /// Multipath TCP, if the server has it too.
    #[setting(expert)]
    pub mptcp: bool,
    /// How a stream's bytes are sent: write, sendfile, splice, zerocopy.
    #[setting(value = "HOW", default = "write", expert)]
    pub method: SendMethod,
    /// How they are received: read; trunc or splice never touch the data.
    #[setting(value = "HOW", default = "read", expert)]
    pub receive_method: ReceiveMethod,
    /// Receiving polls the device for this long (SO_BUSY_POLL), at both ends: 50us.
    #[setting(value = "TIME", expert)]
    pub busy_poll: Option<Written<Duration>>,
    /// Wait awake for requests and responses, at both ends: takes two cores whole.
    #[setting(expert)]
    pub spin: bool,
    /// The kernel cuts large buffers into datagrams (UDP_SEGMENT).
    #[setting(expert)]
    pub gso: bool,
    /// The kernel puts datagrams together for the receiver (UDP_GRO).
    #[setting(expert)]
    pub gro: bool,
    /// Datagrams that one call sends. Default: 1; 64 with `.gso`.
    #[setting(value = "N", expert)]
    pub batch: Option<u32>,
    /// Pin threads here: N cores, or a list (0-3,6).
    #[setting(value = "CORES", expert)]
    pub cores: Option<Written<Cores>>,
    /// Pin threads at the server, too.
    #[setting(value = "CORES", expert)]
    pub remote_cores: Option<Written<Cores>>,
    /// Own address.
    #[setting(value = "ADDR", expert)]
    pub from: Option<String>,
    /// Own interface (SO_BINDTODEVICE).
    #[setting(value = "IFACE", expert)]
    pub device: Option<String>,
}

impl Endpoint {
    /// The DSCP by its number or name.
    pub fn dscp_number(&self) -> Option<u8> {
        dscp(self.dscp.as_deref()?)
    }
}

/// A DSCP by its number or its name (RFC 2474, 2597, 3246, 8622).
pub(crate) fn dscp(text: &str) -> Option<u8> {
    let lower = text.trim().to_ascii_lowercase();
    if let Ok(number) = lower.parse::<u8>() {
        return (number < 64).then_some(number);
    }
    let digits = |name: &str| -> Option<Vec<u8>> {
        let rest = lower.strip_prefix(name)?;
        rest.chars().map(|digit| digit.to_digit(10).and_then(|digit| u8::try_from(digit).ok())).collect()
    };
    match (lower.as_str(), digits("cs").as_deref(), digits("af").as_deref()) {
        ("ef", ..) => Some(46),
        ("le", ..) => Some(1),
        ("va" | "voice-admit", ..) => Some(44),
        (_, Some([class]), _) if *class < 8 => Some(8 * class),
        (_, _, Some([class, drop])) if (1..=4).contains(class) && (1..=3).contains(drop) => {
            Some(8 * class + 2 * drop)
        }
        _ => None,
    }
}

impl Kind for Endpoint {
    fn settings() -> &'static [Member] {
        Endpoint::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn asks(&self) -> Consent {
        let hosts: Vec<&str> =
            if self.mesh { self.host.split(',').map(str::trim).collect() } else { vec![&self.host] };
        let addresses = hosts.into_iter().filter(|host| !host.is_empty()).map(str::to_owned).collect();
        Consent { addresses, read: self.token_file.iter().cloned().collect(), ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        endpoint(self)
    }

    fn runs_alone(&self) -> bool {
        false
    }
}

/// The server of endpoint tests.
#[settings]
pub struct EndpointServer {
    /// Where to listen: ADDR:PORT, or unix:PATH; may be given more than once. Default: [::]:12866, or 0.0.0.0:12866 without IPv6.
    #[setting(value = "ADDR:PORT")]
    pub listen: Vec<String>,
    /// A file whose first line is a token that clients have to have.
    #[setting(value = "FILE", heading = "Traffic")]
    pub token_file: Option<PathBuf>,
    /// Clients at once. Default: 64.
    #[setting(value = "N")]
    pub max_clients: Option<u32>,
    /// Connections at once, of all clients. Default: 20000.
    #[setting(value = "N")]
    pub max_connections: Option<u32>,
    /// Connections of one test, those that it holds among them. Default: 1024.
    #[setting(value = "N")]
    pub max_parallel: Option<u32>,
    /// How long a test may last. Default: 1h.
    #[setting(value = "TIME")]
    pub max_duration: Option<Written<Duration>>,
    /// Memory of the buffers of all clients' tests together. Default: 1073741824.
    #[setting(value = "BYTES")]
    pub max_memory: Option<Written<u64>>,
    /// What a test may have this host send, or receive: 500mbps. Of datagrams a client that sends more is ended. Default: as fast as it
    /// goes.
    #[setting(value = "RATE")]
    pub max_rate: Option<Written<EndpointRate>>,
    /// Multipath TCP for who asks for it.
    #[setting(expert)]
    pub mptcp: bool,
    /// Started as root, go on as this user once it listens. Default: nobody, and of a job in a file whoever started it; root stays root.
    #[setting(
        value = "USER",
        brief = "Started as root, go on as this user once it listens. Default: nobody"
    )]
    pub user: Option<String>,
    /// Serve for this long. Default: until interrupted.
    #[setting(value = "TIME", heading = "Traffic")]
    pub duration: Option<Written<Duration>>,
}

impl Kind for EndpointServer {
    fn settings() -> &'static [Member] {
        EndpointServer::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn asks(&self) -> Consent {
        Consent { read: self.token_file.iter().cloned().collect(), ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        endpoint_server(self)
    }
}

/// What a test of many pairs cannot be.
fn mesh(job: &Endpoint) -> Result<(), Contradiction> {
    use EndpointTest as Test;
    let of_each = matches!(
        job.test,
        Test::TcpStream
            | Test::UdpStream
            | Test::TcpRr
            | Test::UdpRr
            | Test::TcpCrr
            | Test::TcpCc
            | Test::Stamp
    );
    let own = "each client of a mesh has its own; leave it out";
    let amount = "tests that end after an amount do not load the network for as long as each other: leave it out, or `.all_at_once`";
    hold(
        "",
        &[
            ("all_at_once", job.all_at_once && !job.mesh, "it goes with `.mesh` only"),
            ("bytes", job.all_at_once && job.bytes.is_some(), amount),
            ("transactions", job.all_at_once && job.transactions.is_some(), amount),
            (
                "mesh",
                job.mesh && !of_each,
                "it is of tcp-stream, udp-stream, tcp-rr, udp-rr, tcp-crr, tcp-cc and stamp: each pair is tested in both directions",
            ),
            ("host", job.mesh && job.host.contains("unix:"), "the hosts of a mesh have addresses"),
            ("confidence", job.mesh && job.confidence.is_some(), "a mesh tests each pair once; leave it out"),
            ("from", job.mesh && job.from.is_some(), own),
            ("device", job.mesh && job.device.is_some(), own),
        ],
    )
}

fn endpoint(job: &Endpoint) -> Result<(), Contradiction> {
    mesh(job)?;
    if job.test == EndpointTest::Stamp {
        return crate::stamp::check(job);
    }
    let of_stamp = "it is of stamp; leave it out";
    hold("", &[("wait", job.wait.is_some(), of_stamp), ("ssid", job.ssid.is_some(), of_stamp)])?;
    ends(job)?;
    amounts(job)?;
    sockets(job)
}

/// With whom, over how many connections, how often.
fn ends(job: &Endpoint) -> Result<(), Contradiction> {
    use EndpointTest as Test;
    let test = job.test;
    let unix = job.host.starts_with("unix:");
    let opens = test == Test::ConnectionRate;
    let each = matches!(test, Test::TcpCrr | Test::TcpCc | Test::ConnectionRate);
    let no_transactions = "this test has no transactions; leave it out";
    hold(
        "",
        &[
            ("host", job.host.is_empty(), "where is the server? Name HOST or HOST:PORT"),
            (
                "host",
                unix && (test.is_udp() || each),
                "over a Unix socket there are tcp-stream, tcp-maerts, tcp-bidir, tcp-rr and latency-under-load only",
            ),
            ("parallel", job.parallel == Some(0), "it is at least 1"),
            ("threads", job.threads.is_some_and(|threads| !(1..=1024).contains(&threads)), "it is 1 to 1024"),
            (
                "threads",
                job.threads.is_some() && test.is_udp(),
                "flows of datagrams have a thread each; leave it out",
            ),
            ("hold", job.hold == Some(0), "it is at least 1"),
            ("hold", job.hold.is_some() && !opens, "connection-rate alone holds connections; leave it out"),
            (
                "connect_timeout",
                job.connect_timeout.is_some() && !opens,
                "it is of connection-rate; leave it out",
            ),
            (
                "connect_timeout",
                job.connect_timeout.as_deref().is_some_and(Duration::is_zero),
                "it is longer than 0",
            ),
            (
                "transactions",
                job.transactions.is_some() && opens,
                "connection-rate ends by time; give `.duration`",
            ),
            ("spin", job.spin && opens, "connection-rate waits for many at once; leave it out"),
            ("burst", job.burst == Some(0), "it is at least 1: transactions in flight"),
            ("burst", job.burst.is_some_and(|most| most > 65_536), "it is at most 65536"),
            ("burst", job.burst.is_some() && (!test.transacts() || each), no_transactions),
            (
                "iterations",
                job.iterations.is_some() && job.confidence.is_none(),
                "it goes with `.confidence` only",
            ),
            ("iterations", job.iterations.is_some_and(|most| !(3..=1000).contains(&most)), "it is 3 to 1000"),
            (
                "confidence",
                job.confidence.is_some() && test == Test::LatencyUnderLoad,
                "this test has no single result; leave it out",
            ),
        ],
    )
}

/// How much, how long, and at which rate.
fn amounts(job: &Endpoint) -> Result<(), Contradiction> {
    use EndpointTest as Test;
    let test = job.test;
    let opens = test == Test::ConnectionRate;
    let each = matches!(test, Test::TcpCrr | Test::TcpCc | Test::ConnectionRate);
    let empty = matches!(test, Test::TcpCc | Test::ConnectionRate);
    let datagrams = matches!(test, Test::UdpStream | Test::UdpMaerts);
    let zero = |count: &Option<Written<u64>>| count.as_deref() == Some(&0);
    let rate = job.rate.as_deref();
    let ill_rate = match rate {
        None => false,
        Some(EndpointRate::Transactions(_)) => !test.transacts() || each,
        Some(EndpointRate::Bits(_)) => !(test.streams() || datagrams) || test == Test::LatencyUnderLoad,
        Some(EndpointRate::Datagrams(_)) => !datagrams,
        Some(EndpointRate::Connections(_)) => !opens,
    };
    let no_stream = "this test has no stream over TCP; leave it out";
    let no_transactions = "this test has no transactions; leave it out";
    let large = |count: &Option<Written<u64>>, most: u64| count.as_deref().is_some_and(|count| *count > most);
    hold(
        "",
        &[
            ("bytes", zero(&job.bytes), "it is at least 1"),
            ("bytes", job.bytes.is_some() && !(test.streams() || datagrams), no_stream),
            (
                "bytes",
                job.bytes.is_some() && test == Test::LatencyUnderLoad,
                "this test ends by time; give `.duration`",
            ),
            ("transactions", job.transactions.is_some() && !test.transacts(), no_transactions),
            (
                "transactions",
                job.transactions.is_some() && test == Test::LatencyUnderLoad,
                "this test ends by time; give `.duration`",
            ),
            ("transactions", zero(&job.transactions), "it is at least 1"),
            ("duration", job.duration.as_deref().is_some_and(Duration::is_zero), "it is longer than 0"),
            ("size", zero(&job.size), "it is at least 1"),
            ("size", large(&job.size, 64 << 20), "it is at most 64 MiB"),
            ("size", datagrams && large(&job.size, 65_507), "a datagram is at most 65507 bytes"),
            (
                "size",
                datagrams && job.size.as_deref().is_some_and(|size| *size < 24),
                "a datagram has at least 24 bytes: its key, number and time",
            ),
            ("size", job.size.is_some() && !(test.streams() || datagrams), no_stream),
            ("request", job.request.is_some() && (!test.transacts() || empty), no_transactions),
            ("response", job.response.is_some() && (!test.transacts() || empty), no_transactions),
            ("request", zero(&job.request) || large(&job.request, 16 << 20), "it is 1 byte to 16 MiB"),
            ("response", zero(&job.response) || large(&job.response, 16 << 20), "it is 1 byte to 16 MiB"),
            (
                "request",
                test == Test::UdpRr && large(&job.request, 65_507),
                "a datagram is at most 65507 bytes",
            ),
            (
                "response",
                test == Test::UdpRr && large(&job.response, 65_507),
                "a datagram is at most 65507 bytes",
            ),
            (
                "rate",
                ill_rate,
                "this test has no such load: transactions take tps, connection-rate cps, streams over TCP bps, streams of datagrams bps or pps",
            ),
            (
                "rate",
                matches!(rate, Some(EndpointRate::Bits(bits)) if *bits < job.parallel.unwrap_or(1).into()),
                "it is less than a bit a second for each connection: more, or fewer of them by `.parallel`",
            ),
        ],
    )
}

/// How it is sent and received.
fn sockets(job: &Endpoint) -> Result<(), Contradiction> {
    use EndpointTest as Test;
    let test = job.test;
    let unix = job.host.starts_with("unix:");
    let datagrams = matches!(test, Test::UdpStream | Test::UdpMaerts);
    let rate = job.rate.as_deref();
    let open_loop = matches!(rate, Some(EndpointRate::Transactions(_)));
    let no_stream = "this test has no stream over TCP; leave it out";
    let no_transactions = "this test has no transactions; leave it out";
    let no_datagrams = "this test has no stream of datagrams; leave it out";
    let large = |count: &Option<Written<u64>>, most: u64| count.as_deref().is_some_and(|count| *count > most);
    let over_connections = !test.is_udp() && !unix;
    // Unless said, of IPv4: the greater one.
    let size = job.size.as_deref().copied().unwrap_or(1472);
    hold(
        "",
        &[
            ("spin", job.spin && !test.transacts(), no_transactions),
            ("method", job.method != SendMethod::Write && !test.streams(), no_stream),
            ("method", job.method == SendMethod::Zerocopy && unix, "Unix sockets have no MSG_ZEROCOPY"),
            (
                "method",
                job.method == SendMethod::Zerocopy && job.mptcp,
                "Multipath TCP has no MSG_ZEROCOPY: leave out `.mptcp`, or take another way",
            ),
            ("receive_method", job.receive_method != ReceiveMethod::Read && !test.streams(), no_stream),
            (
                "receive_method",
                job.receive_method == ReceiveMethod::Trunc && unix,
                "Unix sockets do not drop what they receive",
            ),
            ("gso", job.gso && !datagrams, no_datagrams),
            ("gro", job.gro && !datagrams, no_datagrams),
            ("batch", job.batch.is_some() && !datagrams, no_datagrams),
            ("batch", job.batch.is_some_and(|batch| !(1..=256).contains(&batch)), "it is 1 to 256"),
            (
                "batch",
                job.gso && job.batch.is_some_and(|batch| batch > 64),
                "with `.gso` it is 1 to 64: the kernel cuts no more out of a buffer",
            ),
            (
                "batch",
                job.gso && job.batch.is_some_and(|batch| u64::from(batch).saturating_mul(size) > 65_507),
                "with `.gso` a call has 65507 bytes at most: less of them, or a smaller `.size`",
            ),
            ("send_buffer", large(&job.send_buffer, 1 << 30), "it is at most 1 GiB"),
            ("receive_buffer", large(&job.receive_buffer, 1 << 30), "it is at most 1 GiB"),
            ("remote_send_buffer", large(&job.remote_send_buffer, 1 << 30), "it is at most 1 GiB"),
            ("remote_receive_buffer", large(&job.remote_receive_buffer, 1 << 30), "it is at most 1 GiB"),
            ("nodelay", job.nodelay && !over_connections, "it is of TCP only"),
            ("cork", job.cork && !over_connections, "it is of TCP only"),
            ("congestion", job.congestion.is_some() && !over_connections, "it is of TCP only"),
            ("mptcp", job.mptcp && !over_connections, "it is of TCP only"),
            ("dscp", job.dscp.is_some() && unix, "it is of IP only"),
            (
                "dscp",
                job.dscp.is_some() && job.dscp_number().is_none(),
                "it is 0 to 63 or a name: ef, le, cs0 to cs7, af11 to af43",
            ),
            (
                "pacing",
                job.pacing.as_deref().is_some_and(|rate| !matches!(rate, EndpointRate::Bits(_))),
                "it is in bits per second: 500mbps",
            ),
            ("pacing", job.pacing.is_some() && unix, "it is of IP only"),
            (
                "transactions",
                open_loop && job.transactions.is_some() && job.duration.is_some(),
                "there is one end: leave out `.duration`",
            ),
        ],
    )
}

fn endpoint_server(job: &EndpointServer) -> Result<(), Contradiction> {
    let zero = |most: Option<u32>| most == Some(0);
    let at_least = "it is at least 1";
    hold(
        "",
        &[
            ("listen", job.listen.is_empty(), "where does it listen? Name ADDR:PORT"),
            ("max_clients", zero(job.max_clients), at_least),
            ("max_connections", zero(job.max_connections), at_least),
            ("max_parallel", zero(job.max_parallel), at_least),
            ("user", job.user.as_deref() == Some(""), "whose rights? Name a user"),
            (
                "max_rate",
                job.max_rate.as_deref().is_some_and(|rate| !matches!(rate, EndpointRate::Bits(_))),
                "it is in bits per second: 500mbps",
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an end would make something else of without a word.
    #[test]
    fn what_would_be_made_smaller_is_refused() {
        let written = |count: u64| Some(Written::of(count.to_string(), count));
        let udp =
            Endpoint { test: EndpointTest::UdpStream, host: "h".into(), gso: true, ..Endpoint::default() };
        assert_eq!(Endpoint { batch: Some(44), ..udp.clone() }.check(), Ok(()));
        let all = [
            (Endpoint { batch: Some(65), ..udp.clone() }, "batch"),
            (Endpoint { batch: Some(45), ..udp.clone() }, "batch"),
            (Endpoint { batch: Some(64), size: written(1024), ..udp.clone() }, "batch"),
            (Endpoint { remote_send_buffer: written(1 << 31), ..udp.clone() }, "remote_send_buffer"),
            (
                Endpoint {
                    parallel: Some(8),
                    rate: Some(Written::of("7bps".into(), EndpointRate::Bits(7))),
                    ..udp.clone()
                },
                "rate",
            ),
        ];
        for (job, member) in all {
            assert_eq!(job.check().expect_err(member).member, member, "{job:?}");
        }
    }

    #[test]
    fn loads_and_confidences_are_read_as_people_write_them() {
        assert_eq!(EndpointRate::read("20ktps"), Ok(EndpointRate::Transactions(20_000)));
        assert_eq!(EndpointRate::read("1.5 Gbps"), Ok(EndpointRate::Bits(1_500_000_000)));
        assert_eq!(EndpointRate::read("100kpps"), Ok(EndpointRate::Datagrams(100_000)));
        assert_eq!(EndpointRate::read("10kcps"), Ok(EndpointRate::Connections(10_000)));
        for bits in ["500M", "500Mbit", "500Mbit/s", "500Mb/s"] {
            assert_eq!(EndpointRate::read(bits), Ok(EndpointRate::Bits(500_000_000)), "{bits}");
        }
        assert!(EndpointRate::read("500MB/s").is_err_and(|text| text.contains("might count bytes")));
        assert!(EndpointRate::read("40%").is_err() && EndpointRate::read("1gbps-l1").is_err());
        assert!(EndpointRate::read("5").is_err() && EndpointRate::read("xtps").is_err());
        assert_eq!(Confidence::read("99%,5%"), Ok(Confidence { level: 0.99, width: 0.05 }));
        assert_eq!(Confidence::read("95, 2"), Ok(Confidence { level: 0.95, width: 0.02 }));
        assert!(Confidence::read("98%,5%").is_err() && Confidence::read("99%").is_err());
        assert!(Confidence::read("99%,0%").is_err());
    }

    #[test]
    fn dscps_have_names() {
        for (text, number) in
            [("EF", 46), ("cs0", 0), ("CS7", 56), ("af11", 10), ("af43", 38), ("46", 46), ("le", 1)]
        {
            assert_eq!(dscp(text), Some(number), "{text}");
        }
        for bad in ["64", "cs8", "af44", "af51", "cs", "x", ""] {
            assert_eq!(dscp(bad), None, "{bad}");
        }
    }
}
