//! Tests with a server of netperf's protocol, and such a server. Settings that `endpoint` has as well have the same names.

use crate::check::{Contradiction, hold};
use crate::consent::Consent;
use crate::endpoint::{Confidence, EndpointTest, Family};
use crate::iperf3::{BitRate, TimeOrZero};
use crate::kind::Kind;
use crate::parts::socket_buffers;
use crate::setting::{Member, Settings as _};
use crate::written::Written;
use settings::settings;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A test with a server of netperf's protocol.
#[settings]
pub struct Netperf {
    /// What is done: tcp-stream, tcp-maerts, tcp-rr, tcp-crr, tcp-cc, udp-stream, udp-maerts, udp-rr.
    #[setting(typed_by_place, value = "TEST")]
    #[serde(default)]
    pub test: EndpointTest,
    /// The server: a name or an address.
    #[setting(typed_by_place, value = "HOST", consent)]
    #[serde(default)]
    pub host: String,
    /// The server's port. Default: 12865.
    #[setting(value = "PORT", least = 1, heading = "Traffic")]
    pub port: Option<u16>,
    /// Only this Internet protocol: 4 or 6.
    #[setting(value = "VERSION", default = "any", heading = "Traffic")]
    pub family: Family,
    /// A file whose first line is the server's passphrase.
    #[setting(value = "FILE", consent, heading = "Traffic")]
    pub passphrase_file: Option<PathBuf>,
    /// Measure for this long, in whole seconds; 0: for a day. Default: 10s.
    #[setting(value = "TIME", heading = "Traffic")]
    pub duration: Option<Written<TimeOrZero>>,
    /// End when this many bytes of a stream over TCP were sent.
    #[setting(value = "BYTES", excludes("duration"), heading = "Traffic")]
    pub bytes: Option<Written<u64>>,
    /// End after this many transactions.
    #[setting(value = "N", excludes("duration"), heading = "Traffic")]
    pub transactions: Option<Written<u64>>,
    /// Bytes of each send. Default: as many as the socket's send buffer has.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub size: Option<Written<u64>>,
    /// Bytes of each receive. Default: as many as the socket's receive buffer has.
    #[setting(value = "BYTES", expert)]
    pub receive_size: Option<Written<u64>>,
    /// Bytes of each send of the server.
    #[setting(value = "BYTES", expert)]
    pub remote_size: Option<Written<u64>>,
    /// Bytes of each receive of the server.
    #[setting(value = "BYTES", expert)]
    pub remote_receive_size: Option<Written<u64>>,
    /// Bytes of a request. Default: 1.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub request: Option<Written<u64>>,
    /// Bytes of a response. Default: 1.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub response: Option<Written<u64>>,
    /// Transactions in flight over the connection. Default: 1 (netperf's -b N is N + 1).
    #[setting(value = "N", least = 1, most = 65536, heading = "Traffic")]
    pub burst: Option<u32>,
    /// Repeat until the mean is so sure, by netperf's rule: 99%,5% or 95%,2%.
    #[setting(value = "LEVEL,WIDTH", heading = "Measure")]
    pub confidence: Option<Written<Confidence>>,
    /// With `.confidence`, repeat at most so often. Default: 10.
    #[setting(value = "N", needs("confidence"), least = 3, most = 30, heading = "Measure")]
    pub iterations: Option<u32>,
    /// With `.confidence`, repeat at least so often. Default: 3.
    #[setting(value = "N", needs("confidence"), least = 3, most = 30, heading = "Measure")]
    pub least_iterations: Option<u32>,
    /// With `.confidence`, look at the result alone, and not at the use of processors.
    #[setting(needs("confidence"), heading = "Measure")]
    pub result_only: bool,
    /// Measure the use of processors at this end.
    #[setting(heading = "Measure")]
    pub local_cpu: bool,
    /// Measure the use of processors at the server.
    #[setting(heading = "Measure")]
    pub remote_cpu: bool,
    /// Wait for this long before the first byte.
    #[setting(value = "TIME", expert)]
    pub wait: Option<Written<Duration>>,
    /// UDP: a datagram that is not answered within this time is lost, and the next request is sent.
    #[setting(value = "TIME", expert)]
    pub lost_after: Option<Written<Duration>>,
    /// Own address of the control connection, and of data unless that has one of its own.
    #[setting(value = "ADDR", expert)]
    pub from: Option<IpAddr>,
    /// Own port of the control connection.
    #[setting(value = "PORT", expert)]
    pub from_port: Option<u16>,
    /// The server's address for data, if that is another one.
    #[setting(value = "ADDR", consent, expert)]
    pub data_host: Option<IpAddr>,
    /// The server's port for data. Default: any.
    #[setting(value = "PORT", expert)]
    pub data_port: Option<u16>,
    /// Own address for data.
    #[setting(value = "ADDR", expert)]
    pub data_from: Option<IpAddr>,
    /// Own port for data. Default: any.
    #[setting(value = "PORT", expert)]
    pub data_from_port: Option<u16>,
    /// Own ports of tcp-crr and tcp-cc, in turn: the first and the last.
    #[setting(apart, optional)]
    pub ports: Option<[u16; 2]>,
    #[part]
    socket_buffers: socket_buffers!(),
    /// TCP_NODELAY at both ends.
    #[setting(expert)]
    pub nodelay: bool,
    /// TCP_CORK here.
    #[setting(expert)]
    pub cork: bool,
    /// Congestion control here: cubic, bbr, reno, ...
    #[setting(value = "NAME", expert)]
    pub congestion: Option<String>,
    /// Congestion control at the server.
    #[setting(value = "NAME", expert)]
    pub remote_congestion: Option<String>,
    /// The kernel paces what this end sends (SO_MAX_PACING_RATE): 500mbps.
    #[setting(value = "RATE", expert)]
    pub pacing: Option<Written<BitRate>>,
    /// Largest segment of TCP.
    #[setting(value = "BYTES", most = 65535, expert)]
    pub mss: Option<u32>,
    /// SO_PRIORITY here.
    #[setting(value = "N", expert)]
    pub priority: Option<u32>,
    /// SO_PRIORITY at the server.
    #[setting(value = "N", expert)]
    pub remote_priority: Option<u32>,
    /// IP's type of service here: 0 to 255.
    #[setting(value = "N", expert)]
    pub tos: Option<u8>,
    /// IP's type of service at the server.
    #[setting(value = "N", expert)]
    pub remote_tos: Option<u8>,
    /// Datagrams and segments may not be fragmented.
    #[setting(expert)]
    pub dont_fragment: bool,
    /// SO_KEEPALIVE at both ends.
    #[setting(expert)]
    pub keepalive: bool,
    /// TCP Fast Open at both ends.
    #[setting(expert)]
    pub fast_open: bool,
    /// TCP_DEFER_ACCEPT at the server.
    #[setting(expert)]
    pub defer_accept: bool,
    /// Cross routers with udp-stream, too. Without it, others' networks are not flooded by mistake (SO_DONTROUTE).
    #[setting(expert)]
    pub across_routers: bool,
    /// Do not cross routers, whatever is done.
    #[setting(excludes("across_routers"), expert)]
    pub same_network: bool,
    /// Send a stream by sendfile(2), without a copy.
    #[setting(expert)]
    pub sendfile: bool,
    /// Receive by splice(2) to nowhere: the data is never touched.
    #[setting(expert)]
    pub avoid_copies: bool,
    /// The core of this end.
    #[setting(value = "CPU", most = 65535, expert)]
    pub core: Option<u32>,
    /// The server's core.
    #[setting(value = "CPU", most = 65535, expert)]
    pub remote_core: Option<u32>,
}

impl Netperf {
    /// It has requests and responses, or connections.
    fn transacts(&self) -> bool {
        matches!(
            self.test,
            EndpointTest::TcpRr | EndpointTest::UdpRr | EndpointTest::TcpCrr | EndpointTest::TcpCc
        )
    }
}

fn netperf(job: &Netperf) -> Result<(), Contradiction> {
    use EndpointTest as Test;
    let (test, udp) = (job.test, job.test.is_udp());
    let each = matches!(test, Test::TcpCrr | Test::TcpCc);
    let count = |count: &Option<Written<u64>>| count.as_deref().copied();
    let most = if udp { 65_507 } else { 64 << 20 };
    let large = |size: &Option<Written<u64>>, most: u64| count(size).is_some_and(|size| size > most);
    let larger = if udp { "a datagram is at most 65507 bytes" } else { "it is at most 64 MiB" };
    let buffer = "it is at most 1 GiB";
    let no_transactions = "this test has no transactions; leave it out";
    let time = job.duration.as_ref().map(|time| time.0);
    let units = u64::from(i32::MAX.unsigned_abs());
    let outside = |number: Option<u32>, least: u32, most: u32| {
        number.is_some_and(|number| !(least..=most).contains(&number))
    };
    hold(
        "",
        &[
            ("host", job.host.is_empty(), "where is the server? Name HOST"),
            (
                "test",
                matches!(test, Test::TcpBidir | Test::ConnectionRate | Test::LatencyUnderLoad | Test::Stamp),
                "netperf's protocol has tcp-stream, tcp-maerts, tcp-rr, tcp-crr, tcp-cc, udp-stream, udp-maerts and udp-rr",
            ),
            (
                "duration",
                time.is_some_and(|time| time.subsec_nanos() > 0),
                "the protocol counts whole seconds",
            ),
            (
                "duration",
                time.is_some_and(|time| time > Duration::from_secs(86_400)),
                "a test lasts a day at most",
            ),
            (
                "duration",
                job.duration.is_some() && (job.bytes.is_some() || job.transactions.is_some()),
                "there is one end: leave out `.bytes` and `.transactions`",
            ),
            (
                "bytes",
                job.bytes.is_some() && (job.transacts() || udp),
                "of streams over TCP only; leave it out",
            ),
            ("transactions", job.transactions.is_some() && !job.transacts(), no_transactions),
            ("bytes", large(&job.bytes, units), "the protocol counts 2147483647 at most"),
            ("transactions", large(&job.transactions, units), "the protocol counts 2147483647 at most"),
            ("size", large(&job.size, most), larger),
            ("receive_size", large(&job.receive_size, most), larger),
            ("remote_size", large(&job.remote_size, most), larger),
            ("remote_receive_size", large(&job.remote_receive_size, most), larger),
            ("request", job.request.is_some() && (!job.transacts() || test == Test::TcpCc), no_transactions),
            (
                "response",
                job.response.is_some() && (!job.transacts() || test == Test::TcpCc),
                no_transactions,
            ),
            ("request", large(&job.request, most), larger),
            ("response", large(&job.response, most), larger),
            ("burst", job.burst.is_some() && (!job.transacts() || each), no_transactions),
            (
                "ports",
                job.ports.is_some_and(|[first, last]| first == 0 || last < first),
                "the lower one stands first, and none is 0",
            ),
            ("sendfile", job.sendfile && test != Test::TcpStream, "it is of tcp-stream only"),
            ("send_buffer", large(&job.send_buffer, 1 << 30), buffer),
            ("receive_buffer", large(&job.receive_buffer, 1 << 30), buffer),
            ("remote_send_buffer", large(&job.remote_send_buffer, 1 << 30), buffer),
            ("remote_receive_buffer", large(&job.remote_receive_buffer, 1 << 30), buffer),
            (
                "remote_congestion",
                job.remote_congestion.as_ref().is_some_and(|name| name.len() > 15),
                "the protocol has room for 15 bytes",
            ),
            (
                "confidence",
                job.confidence.as_deref().is_some_and(|sure| ![0.95, 0.99].contains(&sure.level)),
                "netperf's rule knows 95 and 99 percent",
            ),
            ("port", job.port == Some(0), "it is 1 to 65535"),
            ("burst", outside(job.burst, 1, 65_536), "it is 1 to 65536"),
            ("iterations", outside(job.iterations, 3, 30), "it is 3 to 30"),
            ("least_iterations", outside(job.least_iterations, 3, 30), "it is 3 to 30"),
            ("mss", outside(job.mss, 1, 65_535), "it is 1 to 65535"),
            (
                "least_iterations",
                job.least_iterations.unwrap_or(3) > job.iterations.unwrap_or(10),
                "it is no more than `.iterations`",
            ),
        ],
    )
}

impl Kind for Netperf {
    fn settings() -> &'static [Member] {
        Netperf::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn asks(&self) -> Consent {
        let host = (!self.host.is_empty()).then(|| self.host.clone());
        let data = self.data_host.map(|address| address.to_string());
        Consent {
            addresses: host.into_iter().chain(data).collect(),
            read: self.passphrase_file.iter().cloned().collect(),
            ..Consent::default()
        }
    }

    fn check(&self) -> Result<(), Contradiction> {
        netperf(self)
    }
}

/// A server of netperf's protocol.
#[settings]
pub struct Netserver {
    /// Where to listen: ADDR:PORT, may be given more than once; port 0 is any. Default: [::]:12865, or 0.0.0.0:12865 without IPv6.
    #[setting(value = "ADDR:PORT")]
    pub listen: Vec<String>,
    /// Only this Internet protocol: 4 or 6.
    #[setting(value = "VERSION", default = "any")]
    pub family: Family,
    /// A file whose first line is the passphrase that clients have to say.
    #[setting(value = "FILE", consent)]
    pub passphrase_file: Option<PathBuf>,
    /// Serve one client after the other.
    pub serial: bool,
}

impl Kind for Netserver {
    fn settings() -> &'static [Member] {
        Netserver::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn asks(&self) -> Consent {
        Consent { read: self.passphrase_file.iter().cloned().collect(), ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        let empty = self.listen.iter().any(String::is_empty);
        hold("", &[("listen", empty, "name ADDR:PORT, such as 0.0.0.0:12865")])
    }
}

#[cfg(test)]
mod tests {
    use crate::File;

    #[test]
    fn a_test_ends_once_and_its_settings_fit_it() {
        let said = |members: &str| {
            let text = format!("{{schema: netdyno.job/1, kind: netperf, {members}}}");
            File::read(&text, "job").map(|_| ()).map_err(|bad| bad.to_string())
        };
        for fine in
            ["host: a", "host: a, test: udp-rr, duration: 0, burst: 5", "host: a, bytes: 1M, sendfile: true"]
        {
            assert_eq!(said(fine), Ok(()), "{fine}");
        }
        for (members, wrong) in [
            ("test: tcp-rr", "host"),
            ("host: a, test: tcp-bidir", "test"),
            ("host: a, duration: 1500ms", "duration"),
            ("host: a, duration: 2d", "duration"),
            ("host: a, duration: 5s, bytes: 5", "duration"),
            ("host: a, test: udp-stream, bytes: 5", "bytes"),
            ("host: a, transactions: 5", "transactions"),
            ("host: a, bytes: 3G", "bytes"),
            ("host: a, test: udp-rr, request: 70k", "request"),
            ("host: a, test: tcp-crr, burst: 2", "burst"),
            ("host: a, ports: [5, 4]", "ports"),
            ("host: a, confidence: '99%,5%', iterations: 2", "iterations"),
            ("host: a, test: udp-stream, sendfile: true", "sendfile"),
            ("host: a, confidence: '90%,5%'", "confidence"),
            ("host: a, confidence: '99%,5%', least_iterations: 11", "least_iterations"),
        ] {
            let said = said(members).expect_err(members);
            assert!(said.starts_with(&format!("{wrong}: ")), "{members}: {said}");
        }
    }
}
