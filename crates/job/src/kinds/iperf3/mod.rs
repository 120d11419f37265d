//! `netdyno iperf3`: a test with a server of iperf3's protocol, and such a server.
//!
//! ```text
//!   spec::Iperf3 --> transport::iperf3::Client --> Seen: the board, what the result needs --> whoever shows the test in iperf3's own form
//! ```
//!
//! The job is data. What is not, or makes no difference to the test (who is shown it as it goes, words for both ends' output, who may test),
//! is given beside it.

mod outcome;

use crate::kinds::endpoint::server::standing;
use crate::kinds::{Run, passive};
use crate::panel::{Names, Panel};
use crate::session::Session;
use crate::trials::nanos;
use ::endpoint::iperf3::params::{Params, Protocol};
use ::endpoint::iperf3::results::Output;
use ::endpoint::iperf3::summary::{End, Interval, Start};
use ::endpoint::iperf3::{PORT, UDP_RATE, VERSION};
use ::transport::iperf3::server::{Check, News};
use ::transport::iperf3::{self, Client, Failure, Limits, Local, Server, Show, Tally};
use anyhow::{Result, anyhow, bail};
use report::{Code, Report, Resolved, Served};
use snapshot::{Snapshot, Title};
use spec::{BitRate, Iperf3, Iperf3Server, KeepAlive, TimeOrZero, Written};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// From one snapshot to the next.
const PUBLISHED: Duration = Duration::from_millis(100);
/// Seconds of an interval, unless said.
const INTERVAL: f64 = 1.0;
/// Seconds of a test that ends by no amount.
const LASTS: u32 = 10;
/// Seconds of the mean that is held against a server's bound.
const AVERAGED: u64 = 5;

/// What a client says to its server that makes no difference to the test.
#[derive(Debug, Default)]
pub struct Words {
    /// Who asks, encrypted for the server.
    pub token: Option<String>,
    /// What stands before each line of output.
    pub title: Option<String>,
    /// Of the user, for both ends' JSON.
    pub extra_data: Option<String>,
    /// The server is to send what it printed.
    pub server_output: bool,
}

/// What came of a client's test.
#[derive(Debug)]
pub struct Ended {
    /// The result, as far as there is one.
    pub report: Report,
    /// Whether the test came to its end.
    pub done: Result<(), Failure>,
}

/// What a server has beside its job.
pub struct Beside {
    /// Makes what is shown a test as it goes, for each.
    pub news: Box<News>,
    /// Called when its ports are there, before the first client is accepted.
    pub bound: Box<dyn Fn() + Send>,
    /// Called before each wait for a first client, with the number of the next test.
    pub listening: Box<dyn Fn(u64) + Send + Sync>,
    /// Who may test.
    pub check: Option<Box<Check>>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

/// Shows nobody anything.
#[derive(Debug)]
struct Nobody;

impl Show for Nobody {
    fn connected(&mut self, _: &Start, _: bool) {}
    fn start(&mut self, _: &Start) {}
    fn interval(&mut self, _: &Start, _: &Interval) {}
    fn end(&mut self, _: &Start, _: &End) {}
    fn error(&mut self, _: &str) {}
}

impl Run for Iperf3 {
    fn run(&self, session: Session) -> Result<Report> {
        passive::check(self)?;
        burst_fits(self).map_err(|said| anyhow!("`.burst`: {said}"))?;
        let Ended { report, done } = test(self, Words::default(), &mut Nobody, &session)?;
        match done {
            // Nothing was measured.
            Err(Failure::Error(why)) if report.result.endpoint.is_none() => bail!("{why}"),
            _ => Ok(report),
        }
    }
}

impl Run for Iperf3Server {
    fn run(&self, session: Session) -> Result<Report> {
        passive::check(self)?;
        let news = || -> Box<dyn Show> { Box::new(Nobody) };
        let beside =
            Beside { news: Box::new(news), bound: Box::new(|| {}), listening: Box::new(|_| {}), check: None };
        Ok(serve(self, beside, &session)?.0)
    }
}

/// What uname(2) says, for both ends' output.
pub fn system() -> String {
    let name = rustix::system::uname();
    let words = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    words.map(|word| word.to_string_lossy()).join(" ")
}

/// A test as the protocol has it.
fn params(job: &Iperf3, words: Words) -> Params {
    let count = |count: &Option<Written<u64>>| count.as_deref().copied().unwrap_or(0);
    let by_amount = job.bytes.is_some() || job.blockcount.is_some();
    let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    let bits = |rate: &Option<Written<BitRate>>| rate.as_deref().map(|rate| rate.0);
    Params {
        protocol: if job.udp { Protocol::Udp } else { Protocol::Tcp },
        omit: job.omit.as_deref().map_or(0, |time| seconds(*time)),
        seconds: job.time.as_deref().map_or(if by_amount { 0 } else { LASTS }, |time| seconds(time.0)),
        bytes: count(&job.bytes),
        blocks: count(&job.blockcount),
        parallel: job.parallel.unwrap_or(1),
        reverse: job.reverse,
        bidir: job.bidir,
        len: count(&job.length),
        rate: bits(&job.bitrate).unwrap_or(if job.udp { UDP_RATE } else { 0 }),
        burst: job.burst.unwrap_or(0),
        fq_rate: bits(&job.fq_rate).unwrap_or(0),
        window: count(&job.window),
        mss: job.set_mss.unwrap_or(0),
        nodelay: job.no_delay,
        mptcp: job.mptcp,
        tos: job.tos.unwrap_or(0),
        flow_label: job.flowlabel.unwrap_or(0),
        server_affinity: job.server_affinity,
        congestion: job.congestion.clone(),
        title: words.title,
        extra_data: words.extra_data,
        server_output: words.server_output,
        counters_64bit: job.udp_counters_64bit,
        repeating: job.repeating_payload,
        zerocopy: job.zerocopy,
        dont_fragment: job.dont_fragment,
        skip_rx_copy: job.skip_rx_copy,
        gsro: job.gsro,
        auth_token: words.token,
        client_version: Some(VERSION.to_owned()),
    }
}

/// A burst over TCP leaves in one call.
///
/// # Errors
/// Its blocks are more than that.
pub fn burst_fits(job: &Iperf3) -> Result<(), String> {
    params(job, Words::default()).burst_fits()
}

fn interval(asked: Option<&Written<TimeOrZero>>) -> f64 {
    asked.map_or(INTERVAL, |interval| interval.0.as_secs_f64())
}

fn time(asked: Option<&Written<TimeOrZero>>) -> Option<Duration> {
    asked.map(|time| time.0)
}

fn received_within(asked: Option<&Written<Duration>>) -> Duration {
    asked.map_or(Limits::default().receive_timeout, |time| **time)
}

fn keep_alive(asked: Option<&Written<KeepAlive>>) -> Option<iperf3::KeepAlive> {
    asked.map(|asked| iperf3::KeepAlive { idle: asked.idle, interval: asked.interval, count: asked.count })
}

fn client(job: &Iperf3, words: Words, session: &Session) -> Client {
    Client {
        host: job.host.clone(),
        port: job.port.unwrap_or(PORT),
        family: job.family.v6(),
        local: Local {
            bind: job.bind,
            port: job.cport,
            device: job.bind_dev.clone(),
            send_timeout: time(job.snd_timeout.as_ref()),
            keep_alive: keep_alive(job.cntl_ka.as_ref()),
            connect_timeout: time(job.connect_timeout.as_ref()),
        },
        params: params(job, words),
        interval: interval(job.interval.as_ref()),
        core: job.affinity,
        file: job.file.clone(),
        receive_timeout: received_within(job.rcv_timeout.as_ref()),
        system: system(),
        stop: Arc::clone(&session.stop),
    }
}

fn server(job: &Iperf3Server, check: Option<Box<Check>>, tally: Arc<Tally>, session: &Session) -> Server {
    let rate = job.server_bitrate_limit.as_deref().map_or(0, |rate| rate.0);
    let longest = job.server_max_duration.as_deref().map_or(0, Duration::as_secs);
    Server {
        bind: job.bind,
        family: job.family.v6(),
        port: job.port.unwrap_or(PORT),
        device: job.bind_dev.clone(),
        mptcp: job.mptcp,
        one_off: job.one_off,
        idle_timeout: job.idle_timeout.as_deref().copied(),
        limits: Limits {
            rate: (rate, job.averaged_over.as_deref().map_or(AVERAGED, Duration::as_secs)),
            seconds: u32::try_from(longest).unwrap_or(u32::MAX),
            receive_timeout: received_within(job.rcv_timeout.as_ref()),
            ..Limits::default()
        },
        interval: interval(job.interval.as_ref()),
        core: job.affinity,
        file: job.file.clone(),
        send_timeout: time(job.snd_timeout.as_ref()),
        keep_alive: keep_alive(job.cntl_ka.as_ref()),
        system: system(),
        check,
        stop: Arc::clone(&session.stop),
        tally,
    }
}

/// Publishes how a client's test goes, keeps what the result needs, and hands all on to who shows it.
struct Seen<'a> {
    show: &'a mut dyn Show,
    panel: Panel,
    began: Option<Instant>,
    published: Option<Instant>,
    now: snapshot::Endpoint,
    start: Option<Start>,
    intervals: Vec<Interval>,
    end: Option<End>,
}

impl Seen<'_> {
    fn publish(&mut self) {
        let Some((began, start)) = self.began.zip(self.start.as_ref()) else { return };
        self.published = Some(Instant::now());
        let passed = began.elapsed();
        let whole = u64::from(start.params.seconds) + u64::from(start.params.omit);
        let timed = start.params.seconds > 0;
        let remaining_ns = timed.then(|| nanos(Duration::from_secs(whole).saturating_sub(passed)));
        let endpoint = Some(self.now);
        self.panel
            .show(Snapshot { at_ns: nanos(passed), remaining_ns, endpoint, ..Snapshot::default() }, None);
    }
}

impl Show for Seen<'_> {
    fn connected(&mut self, start: &Start, dynamic: bool) {
        self.show.connected(start, dynamic);
    }

    fn start(&mut self, start: &Start) {
        self.show.start(start);
        (self.began, self.start) = (Some(Instant::now()), Some(start.clone()));
        self.publish();
    }

    fn look(&mut self, sent: u64, received: u64) {
        self.show.look(sent, received);
        (self.now.sent_bytes, self.now.received_bytes) = (sent, received);
        if self.published.is_none_or(|at| at.elapsed() >= PUBLISHED) {
            self.publish();
        }
    }

    fn interval(&mut self, start: &Start, interval: &Interval) {
        self.show.interval(start, interval);
        if let Some(tcp) = outcome::tcp(interval) {
            self.now.rtt_ns = tcp.rtt_ns;
            self.now.cwnd_bytes = Some(tcp.cwnd_bytes);
            self.now.retransmits = Some(self.now.retransmits.unwrap_or(0) + tcp.retransmits);
        }
        self.intervals.push(interval.clone());
        self.publish();
    }

    fn end(&mut self, start: &Start, end: &End) {
        self.show.end(start, end);
        self.end = Some(end.clone());
    }

    fn error(&mut self, error: &str) {
        self.show.error(error);
    }
}

/// Tests with the server, and shows `show` how it goes. What contradicts itself in the job must have been found before.
///
/// # Errors
/// Whoever looks on wants what is not to be had.
pub fn test(job: &Iperf3, words: Words, show: &mut dyn Show, session: &Session) -> Result<Ended> {
    let client = client(job, words, session);
    session.stop_in_order();
    let mut report = Report::new("iperf3");
    let lasts = Duration::from_secs(client.params.seconds.into());
    let duration_ns = (!lasts.is_zero()).then_some(lasts.as_nanos() as u64);
    report.resolved = Resolved { duration_ns, ..Resolved::default() };
    report.environment = crate::environment::collect();
    session.meet()?;
    let to = match client.host.parse::<IpAddr>() {
        Ok(address) => std::net::SocketAddr::new(address, client.port).to_string(),
        Err(_) => format!("{}:{}", client.host, client.port),
    };
    session.say(Code::Begun, format!("testing with iperf3's server at {to}; Ctrl-C ends and reports"));
    let engine = Some("sockets".to_owned());
    let title = Title { engine, tx: Some(to.clone()), ..passive::title("iperf3") };
    let panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let mut seen = Seen {
        show,
        panel,
        began: None,
        published: None,
        now: snapshot::Endpoint::default(),
        start: None,
        intervals: Vec::new(),
        end: None,
    };
    let done = client.run(&mut seen);
    session.board.end();
    if let Some((start, end)) = seen.start.as_ref().zip(seen.end.as_ref()) {
        outcome::fill(&mut report, start, end, &seen.intervals, &to);
        outcome::judge(&mut report, &start.params, done.is_ok());
    }
    match &done {
        Ok(()) => {}
        Err(Failure::Interrupted) => {
            report.result.verdict.fall_short(Code::Stopped, "stopped before its time was over");
        }
        Err(Failure::Error(why)) => {
            let why = report::units::printable(why);
            report.result.verdict.fall_short(Code::EndpointFailed, format!("the test broke off: {why}"));
        }
    }
    Ok(Ended { report, done })
}

/// What a server has on its way, for its snapshots and its result.
#[derive(Debug, Default)]
struct Traffic {
    /// Clients that were agreed with and are still there.
    clients: AtomicU64,
    /// Bytes of payload of tests that are over, both ways.
    bytes: AtomicU64,
}

/// Counts a server's test, and hands all on to who shows it.
struct Counts {
    show: Box<dyn Show>,
    traffic: Arc<Traffic>,
    agreed: bool,
    bytes: u64,
}

impl Show for Counts {
    fn connected(&mut self, start: &Start, dynamic: bool) {
        self.show.connected(start, dynamic);
        if !std::mem::replace(&mut self.agreed, true) {
            self.traffic.clients.fetch_add(1, Relaxed);
        }
    }

    fn start(&mut self, start: &Start) {
        self.show.start(start);
    }

    fn interval(&mut self, start: &Start, interval: &Interval) {
        self.show.interval(start, interval);
    }

    fn end(&mut self, start: &Start, end: &End) {
        self.show.end(start, end);
        let own = |total: &::endpoint::iperf3::summary::Total| {
            let side = if total.sender { total.sent } else { total.received };
            side.map(|side| side.bytes)
        };
        // One that breaks off after its end is told of twice.
        self.bytes = end.streams.iter().filter_map(own).sum();
    }

    fn error(&mut self, error: &str) {
        self.show.error(error);
    }

    fn output(&mut self) -> Option<Output> {
        self.show.output()
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        self.traffic.bytes.fetch_add(self.bytes, Relaxed);
        if self.agreed {
            self.traffic.clients.fetch_sub(1, Relaxed);
        }
    }
}

/// Serves until it is stopped, or after one test; whether the last test came to its end. What contradicts itself in the job must have been
/// found before.
///
/// # Errors
/// The port is not to be had.
pub fn serve(job: &Iperf3Server, beside: Beside, session: &Session) -> Result<(Report, bool)> {
    session.stop_in_order();
    let Beside { news, bound, listening, check } = beside;
    let (tally, traffic) = (Arc::<Tally>::default(), Arc::<Traffic>::default());
    let server = server(job, check, Arc::clone(&tally), session);
    let mut report = Report::new("iperf3");
    report.environment = crate::environment::collect();
    let at = server.bind.map_or_else(String::new, |address| format!("{address}, "));
    let at = format!("{at}port {}", server.port);
    session.say(Code::Begun, format!("serving iperf3's clients at {at}; Ctrl-C ends and reports"));
    let title = Title { rx: Some(at), ..passive::title("iperf3") };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let counted = {
        let traffic = Arc::clone(&traffic);
        move || -> Box<dyn Show> {
            let traffic = Arc::clone(&traffic);
            Box::new(Counts { show: news(), traffic, agreed: false, bytes: 0 })
        }
    };
    let now = || Served {
        tests: tally.tests.load(Relaxed),
        broken_tests: tally.broken.load(Relaxed),
        refused_connections: tally.refused.load(Relaxed),
        bytes: traffic.bytes.load(Relaxed),
    };
    // Other jobs of the file may be its clients: they begin when the port is there.
    let bound = move || {
        bound();
        session.serves();
    };
    let well = std::thread::scope(|scope| {
        let serving = scope.spawn(move || server.serve(&counted, &bound, &*listening));
        session.watch(&mut panel, None, |_| {
            standing(now(), traffic.clients.load(Relaxed), serving.is_finished())
        });
        serving.join().map_err(|_| anyhow!("a thread panicked: this is a defect of netdyno"))
    })?;
    session.board.end();
    let well = well.map_err(|error| anyhow!(error))?;
    if !well && job.one_off {
        report.result.verdict.fall_short(Code::EndpointFailed, "the test did not come to its end");
    }
    report.result.served = Some(now());
    Ok((report, well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::endpoint::iperf3::limits;
    use spec::Job;
    use spec::setting::named;
    use std::path::PathBuf;

    fn client_of(members: &str) -> Client {
        let text = format!("{{schema: netdyno.job/1, kind: iperf3, host: a, {members}}}");
        match spec::File::read(&text, "job").expect("a job").jobs.remove(0) {
            Job::Iperf3(job) => client(&job, Words::default(), &Session::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_job_does_not_say_has_iperf3s_defaults() {
        let plain = client_of("");
        let p = &plain.params;
        assert_eq!((plain.port, plain.interval, plain.receive_timeout.as_secs()), (5201, 1.0, 120));
        assert_eq!((p.seconds, p.rate, p.parallel, p.len, p.protocol), (10, 0, 1, 0, Protocol::Tcp));
        let udp = client_of("udp: true, bytes: 5").params;
        assert_eq!((udp.seconds, udp.rate, udp.bytes), (0, UDP_RATE, 5));
        let endless = client_of("udp: true, bitrate: 0, time: 0, interval: 0");
        assert_eq!((endless.params.seconds, endless.params.rate, endless.interval), (0, 0, 0.0));
    }

    #[test]
    fn what_a_job_says_is_what_the_server_is_asked_for() {
        let said = client_of(
            "time: 3s, omit: 2s, parallel: 3, bidir: true, length: 9k, bitrate: 2mbps, burst: 4, fq_rate: 3mbps, window: 10k, \
             set_mss: 1400, no_delay: true, mptcp: true, tos: 255, flowlabel: 7, server_affinity: 1, congestion: bbr, \
             udp_counters_64bit: true, repeating_payload: true, zerocopy: true, dont_fragment: true, skip_rx_copy: true",
        );
        let wanted = Params {
            omit: 2,
            seconds: 3,
            parallel: 3,
            bidir: true,
            len: 9000,
            rate: 2_000_000,
            burst: 4,
            fq_rate: 3_000_000,
            window: 10_000,
            mss: 1400,
            nodelay: true,
            mptcp: true,
            tos: 255,
            flow_label: 7,
            server_affinity: Some(1),
            congestion: Some("bbr".to_owned()),
            counters_64bit: true,
            repeating: true,
            zerocopy: true,
            dont_fragment: true,
            skip_rx_copy: true,
            client_version: Some(VERSION.to_owned()),
            ..Params::default()
        };
        assert_eq!(said.params, wanted);
        let (params, gsro) =
            (client_of("blockcount: 6, reverse: true").params, client_of("udp: true, gsro: true"));
        assert_eq!((params.blocks, params.reverse, params.seconds, gsro.params.gsro), (6, true, 0, true));
        let own = client_of(
            "port: 9, cport: 8, bind: '::1', bind_dev: eth0, family: '6', affinity: 3, interval: 500ms, file: x, \
             rcv_timeout: 5s, snd_timeout: 6ms, connect_timeout: 7ms, cntl_ka: 9//2",
        );
        let local = &own.local;
        assert_eq!(
            (own.port, local.port, own.family, own.core, own.interval),
            (9, Some(8), Some(true), Some(3), 0.5)
        );
        assert_eq!((local.bind.map(|at| at.is_ipv6()), local.device.as_deref()), (Some(true), Some("eth0")));
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis());
        assert_eq!((ms(local.send_timeout), ms(local.connect_timeout)), (Some(6), Some(7)));
        assert_eq!((own.receive_timeout.as_secs(), own.file), (5, Some(PathBuf::from("x"))));
        let kept = local.keep_alive.expect("kept alive");
        assert_eq!((kept.idle, kept.interval, kept.count), (Some(9), None, Some(2)));
    }

    #[test]
    fn a_job_is_the_server_that_it_says() {
        let text = "{schema: netdyno.job/1, kind: iperf3-server, port: 9, one_off: true, idle_timeout: 3s, \
                    server_bitrate_limit: 10mbps, averaged_over: 7s, server_max_duration: 9s, bind: 192.0.2.1, family: '4'}";
        let Job::Iperf3Server(job) = spec::File::read(text, "job").expect("a job").jobs.remove(0) else {
            panic!("no server")
        };
        let server = server(&job, None, Arc::default(), &Session::default());
        assert_eq!((server.port, server.one_off, server.family), (9, true, Some(false)));
        assert_eq!((server.limits.rate, server.limits.seconds), ((10_000_000, 7), 9));
        assert_eq!((server.idle_timeout, server.bind.is_some()), (Some(Duration::from_secs(3)), true));
    }

    /// Crate `spec` is below the protocol's, and has its limits by itself.
    #[test]
    fn settings_have_the_protocols_limits() {
        let bounds = |name: &str| {
            let setting = named(<Iperf3 as spec::Kind>::settings(), name).expect(name);
            setting.bounds.1
        };
        assert_eq!(bounds("parallel"), Some(limits::STREAMS.into()));
        assert_eq!(bounds("burst"), Some(limits::BURST.into()));
        assert_eq!(bounds("set_mss"), Some(limits::MSS.into()));
        let takes = |members: String| {
            let text = format!("{{schema: netdyno.job/1, kind: iperf3, host: a, {members}}}");
            spec::File::read(&text, "job").is_ok()
        };
        let edges: [(&dyn Fn(u64) -> String, u64); 5] = [
            (&|n| format!("time: {n}s"), limits::SECONDS.into()),
            (&|n| format!("omit: {n}s"), limits::OMIT.into()),
            (&|n| format!("length: {n}"), limits::TCP_BLOCK),
            (&|n| format!("udp: true, length: {n}"), *limits::UDP_BLOCK.end()),
            (&|n| format!("window: {n}"), limits::WINDOW),
        ];
        for (members, most) in edges {
            assert_eq!([most, most + 1].map(|n| takes(members(n))), [true, false], "{}", members(most));
        }
    }
}
