//! `netdyno netperf`: a test with a server of netperf's protocol.
//!
//! ```text
//!   spec::Netperf --> transport::netperf::client::Test --> Session: once, or until its mean is known --> Vec<Outcome> --> the result
//! ```
//!
//! The job is data. What is not, or makes no difference to the test, is given beside it.

mod outcome;

use super::netserver::passphrase;
use crate::kinds::{Run, passive};
use crate::panel::{Names, Panel};
use crate::session::Session;
use crate::trials::nanos;
use ::endpoint::netperf::PORT;
use ::endpoint::netperf::confidence::{Goal, Series};
use ::endpoint::netperf::omni::{Request, flag};
use ::endpoint::netperf::plan::Length;
use ::transport::netperf::client::{self, Failure, Kind, Moment, Outcome, Test};
use ::transport::phase::Stop;
use ::transport::socket;
use anyhow::{Context, Result, bail};
use report::{Code, EndpointInterval, Report, Resolved};
use snapshot::{Snapshot, Title};
use spec::{EndpointTest, Netperf, Written};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// From one snapshot to the next.
const PUBLISHED: Duration = Duration::from_millis(100);
/// From one interval of the result to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// Seconds of a test that ends by no amount.
const LASTS: Duration = Duration::from_secs(10);
/// Tests of which a mean is made: at least, and at most.
const ITERATIONS: (u32, u32) = (3, 10);

/// Told how a test goes.
pub type Look = dyn Fn(&Moment) + Send + Sync;

/// What a client has beside its job.
#[derive(Default)]
pub struct Beside {
    /// What the server wants to hear first, where the job names no file of it.
    pub passphrase: Option<String>,
    /// What buffers are filled with.
    pub fill: Option<Arc<[u8]>>,
    /// What is asked of the server besides what the job says: how its buffers lie in memory, and with which of its files they are filled.
    pub request: Request,
    /// Told how a test goes, so often.
    pub look: Option<(Duration, Box<Look>)>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Ended {
    /// The result.
    pub report: Report,
    /// What each repetition came to; there is one at least.
    pub runs: Vec<Outcome>,
    /// It was stopped before its time was over.
    pub stopped: bool,
}

impl Run for Netperf {
    fn run(&self, session: Session) -> Result<Report> {
        passive::check(self)?;
        test(self, Beside::default(), &session).map(|ended| ended.report)
    }
}

/// Where the server is.
fn server(job: &Netperf) -> Result<SocketAddr> {
    let port = job.port.unwrap_or(PORT);
    let name = || report::units::printable(&job.host);
    let found = (&*job.host, port).to_socket_addrs().with_context(|| format!("{}: no such host", name()))?;
    let mut found = found.filter(|at| job.family.v6().is_none_or(|v6| at.is_ipv6() == v6));
    found.next().with_context(|| format!("{}: it has no IPv{} address", name(), job.family))
}

fn size(of: Option<&Written<u64>>) -> Option<u32> {
    of.map(|size| u32::try_from(**size).unwrap_or(u32::MAX))
}

/// As requests say it: -1 where the server's own is to be taken.
fn asked(number: Option<u32>) -> i32 {
    number.map_or(-1, |number| i32::try_from(number).unwrap_or(i32::MAX))
}

fn length(job: &Netperf) -> Length {
    let lasts = job.duration.as_ref().map(|time| time.0);
    match job.bytes.as_deref().or(job.transactions.as_deref()) {
        Some(units) => Length::Units(*units),
        None => {
            let seconds = lasts.unwrap_or(LASTS).as_secs();
            Length::of(i32::try_from(seconds).unwrap_or(i32::MAX))
        }
    }
}

/// Whether routers are not to be crossed.
fn dont_route(job: &Netperf) -> bool {
    job.same_network || job.test == EndpointTest::UdpStream && !job.across_routers
}

/// What is asked of the server.
fn request(job: &Netperf, besides: Request) -> Request {
    let flags = [
        // With it comes the name of the congestion control.
        (!dont_route(job), flag::ROUTING_ALLOWED),
        (job.remote_cpu, flag::MEASURE_CPU),
        (job.nodelay, flag::NODELAY),
        (job.keepalive, flag::KEEPALIVE),
        (job.fast_open, flag::FASTOPEN),
        (job.dont_fragment, flag::MTU_DISCOVER),
        (job.defer_accept, flag::DEFER_ACCEPT),
    ];
    Request {
        cpu: asked(job.remote_core),
        send_buffer: asked(size(job.remote_send_buffer.as_ref())),
        recv_buffer: asked(size(job.remote_receive_buffer.as_ref())),
        send_size: asked(size(job.remote_size.as_ref())),
        receive_size: asked(size(job.remote_receive_size.as_ref())),
        flags: flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum(),
        avoid: [i32::from(job.avoid_copies); 2],
        data_port: job.data_port.unwrap_or(0).into(),
        priority: asked(job.remote_priority),
        tos: asked(job.remote_tos.map(u32::from)),
        congestion: job.remote_congestion.clone().unwrap_or_default(),
        ..besides
    }
}

/// The test that a job says. `to`: where data goes.
fn of(job: &Netperf, to: IpAddr, request: Request, fill: Option<Arc<[u8]>>) -> Result<Test> {
    use EndpointTest as What;
    let kind = match job.test {
        What::TcpStream | What::UdpStream => Kind::Send,
        What::TcpMaerts | What::UdpMaerts => Kind::Receive,
        What::TcpRr | What::UdpRr => Kind::Transact,
        What::TcpCrr => Kind::TransactEach,
        What::TcpCc => Kind::ConnectEach,
        other => bail!("`.test`: netperf's protocol has no {other}"),
    };
    Ok(Test {
        kind,
        datagrams: job.test.is_udp(),
        length: length(job),
        request,
        options: socket::Options {
            send_buffer: size(job.send_buffer.as_ref()),
            receive_buffer: size(job.receive_buffer.as_ref()),
            nodelay: job.nodelay,
            cork: job.cork,
            congestion: job.congestion.clone(),
            pacing_rate: job.pacing.as_ref().map(|rate| rate.0 / 8),
            tos: job.tos,
            priority: job.priority,
            mss: job.mss,
            // Of the control connection, unless data goes over another family of addresses.
            bind: job.data_from.or(job.from.filter(|from| from.is_ipv6() == to.is_ipv6())),
            port: job.data_from_port,
            dont_fragment: job.dont_fragment,
            keepalive: job.keepalive,
            fast_open: job.fast_open,
            ..socket::Options::default()
        },
        data_to: job.data_host,
        send_size: size(job.size.as_ref()).unwrap_or(0),
        recv_size: size(job.receive_size.as_ref()).unwrap_or(0),
        request_size: size(job.request.as_ref()).unwrap_or(1),
        response_size: size(job.response.as_ref()).unwrap_or(1),
        burst: job.burst.unwrap_or(1).saturating_sub(1),
        ports: job.ports.map(|[first, last]| (first, last)),
        sendfile: job.sendfile,
        avoid_copies: job.avoid_copies,
        fill,
        core: job.core,
        wait: job.wait.as_deref().copied().unwrap_or_default(),
        loses_after: job.lost_after.as_deref().copied(),
        dont_route: dont_route(job),
        measure_cpu: job.local_cpu,
    })
}

/// How well the mean is to be known.
fn goal(job: &Netperf) -> Option<Goal> {
    let sure = job.confidence.as_deref()?;
    Some(Goal {
        level: (sure.level * 100.0).round() as u32,
        interval: sure.width,
        min: job.least_iterations.unwrap_or(ITERATIONS.0),
        max: job.iterations.unwrap_or(ITERATIONS.1),
        result_only: job.result_only,
    })
}

/// What is seen of one repetition, and of those before it.
struct Seen<'a> {
    panel: Panel,
    kind: Kind,
    lasts: Option<Duration>,
    look: Option<&'a Look>,
    intervals: Vec<EndpointInterval>,
    last: (Duration, u64, u64),
}

impl Seen<'_> {
    /// The next repetition begins.
    fn again(&mut self) {
        self.intervals.clear();
        self.last = (Duration::ZERO, 0, 0);
    }

    fn see(&mut self, now: &Moment) {
        if let Some(look) = self.look {
            look(now);
        }
        let transacts = !matches!(self.kind, Kind::Send | Kind::Receive);
        let sends = self.kind == Kind::Send;
        let endpoint = snapshot::Endpoint {
            sent_bytes: if sends { now.bytes } else { 0 },
            received_bytes: if self.kind == Kind::Receive { now.bytes } else { 0 },
            transactions: transacts.then_some(now.count),
            ..snapshot::Endpoint::default()
        };
        let remaining_ns = self.lasts.map(|lasts| nanos(lasts.saturating_sub(now.at)));
        let seen =
            Snapshot { at_ns: nanos(now.at), remaining_ns, endpoint: Some(endpoint), ..Snapshot::default() };
        self.panel.show(seen, None);
        let (at, bytes, count) = self.last;
        if now.at > at && (now.last || now.at.saturating_sub(at) >= INTERVAL) {
            self.intervals.push(EndpointInterval {
                start_ns: nanos(at),
                end_ns: nanos(now.at),
                bytes: now.bytes.saturating_sub(bytes),
                count: Some(now.count.saturating_sub(count)),
                ..EndpointInterval::default()
            });
            self.last = (now.at, now.bytes, now.count);
        }
    }
}

/// Tests with the server. What contradicts itself in the job must have been found before.
///
/// # Errors
/// There is no server, it refuses, or no data flows: nothing was measured.
pub fn test(job: &Netperf, beside: Beside, session: &Session) -> Result<Ended> {
    let server = server(job)?;
    let to = job.data_host.unwrap_or(server.ip());
    let said = match &job.passphrase_file {
        Some(path) => {
            Some(String::from_utf8(passphrase(path)?).context("`.passphrase_file`: it is not UTF-8")?)
        }
        None => beside.passphrase,
    };
    let test = of(job, to, request(job, beside.request), beside.fill)?;
    let control = socket::Options { bind: job.from, port: job.from_port, ..socket::Options::default() };
    session.stop_in_order();
    let stop = Stop::from(Arc::clone(&session.stop));
    let lasts = match test.length {
        Length::Time(time) => Some(time),
        Length::Units(_) => None,
    };
    let mut report = Report::new("netperf");
    report.resolved =
        Resolved { duration_ns: lasts.map(|lasts| lasts.as_nanos() as u64), ..Resolved::default() };
    report.environment = crate::environment::collect();
    session.others_are_there();
    let mut client = client::Session::connect(server, &control, said.as_deref())
        .with_context(|| format!("are you sure there is a netserver at {server}"))?;
    session.meet()?;
    session.say(Code::Begun, format!("{} with netserver at {server}; Ctrl-C ends and reports", job.test));
    let engine = Some("sockets".to_owned());
    let title = Title { engine, tx: Some(server.to_string()), ..passive::title("netperf") };
    let panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let (each, look) = match &beside.look {
        Some((each, look)) => (*each, Some(&**look)),
        None => (PUBLISHED, None),
    };
    let last = (Duration::ZERO, 0, 0);
    let seen = Mutex::new(Seen { panel, kind: test.kind, lasts, look, intervals: Vec::new(), last });
    let lock = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    let (goal, mut series, mut runs) = (goal(job), Series::default(), Vec::new());
    let done: Result<(), Failure> = loop {
        lock().again();
        let run = match client.run(&test, &stop, Some(each), &|moment| lock().see(&moment)) {
            Ok(run) => run,
            Err(failure) => break Err(failure),
        };
        let [result, here, there] = outcome::of(&test, &run);
        series.push(result, here, there);
        let over = run.stopped || !goal.as_ref().is_some_and(|goal| series.goes_on(goal));
        runs.push(run);
        if over || stop.is_set() {
            break Ok(());
        }
    };
    session.board.end();
    done?;
    let stopped = stop.is_set();
    let intervals = std::mem::take(&mut lock().intervals);
    outcome::fill(&mut report, job, &test, &runs, intervals, server);
    if let Some(goal) = &goal {
        outcome::judge_mean(
            &mut report,
            goal,
            &series,
            runs.iter().map(|run| outcome::of(&test, run)[0]).collect(),
        );
    }
    if stopped {
        report.result.verdict.fall_short(Code::Stopped, "stopped before its time was over");
    }
    Ok(Ended { report, runs, stopped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::Job;

    fn asked_for(members: &str) -> (Test, Option<Goal>) {
        let text = format!("{{schema: netdyno.job/1, kind: netperf, host: 192.0.2.1, {members}}}");
        let Job::Netperf(job) = spec::File::read(&text, "job").expect("a job").jobs.remove(0) else {
            panic!("another kind")
        };
        let request = request(&job, Request::default());
        (of(&job, [192, 0, 2, 1].into(), request, None).expect("a test"), goal(&job))
    }

    #[test]
    fn what_a_job_does_not_say_has_netperfs_defaults() {
        let (plain, goal) = asked_for("");
        assert_eq!((plain.kind, plain.datagrams, plain.length), (Kind::Send, false, Length::Time(LASTS)));
        assert_eq!((plain.send_size, plain.request_size, plain.burst, goal), (0, 1, 0, None));
        let defaults = Request { flags: flag::ROUTING_ALLOWED, ..Request::default() };
        assert_eq!(plain.request, defaults);
        // Who floods datagrams by mistake does not flood others' networks.
        let (udp, _) = asked_for("test: udp-stream, duration: 0");
        assert_eq!((udp.dont_route, udp.datagrams, udp.length), (true, true, Length::of(0)));
        assert!(!asked_for("test: udp-stream, across_routers: true").0.dont_route);
    }

    #[test]
    fn what_a_job_says_is_what_the_server_is_asked_for() {
        let (said, goal) = asked_for(
            "test: udp-rr, transactions: 9, request: 100, response: 200, burst: 4, lost_after: 2s, wait: 1s, data_port: 7, \
             data_from_port: 8, remote_send_buffer: 10k, remote_receive_buffer: 20k, remote_size: 30, remote_receive_size: 40, \
             remote_core: 1, core: 2, remote_priority: 3, priority: 4, remote_tos: 16, tos: 8, remote_congestion: bbr, \
             remote_cpu: true, local_cpu: true, keepalive: true, dont_fragment: true, same_network: true, defer_accept: true, \
             confidence: '95%,2%', iterations: 20, least_iterations: 5, result_only: true",
        );
        assert_eq!((said.kind, said.datagrams, said.length), (Kind::Transact, true, Length::Units(9)));
        assert_eq!((said.request_size, said.response_size, said.burst), (100, 200, 3));
        assert_eq!((said.loses_after, said.wait), (Some(Duration::from_secs(2)), Duration::from_secs(1)));
        let wanted = Request {
            cpu: 1,
            send_buffer: 10_000,
            recv_buffer: 20_000,
            send_size: 30,
            receive_size: 40,
            flags: flag::MEASURE_CPU | flag::KEEPALIVE | flag::MTU_DISCOVER | flag::DEFER_ACCEPT,
            data_port: 7,
            priority: 3,
            tos: 16,
            congestion: "bbr".to_owned(),
            ..Request::default()
        };
        assert_eq!(said.request, wanted);
        let own = &said.options;
        assert_eq!((own.priority, own.tos, own.port, said.core), (Some(4), Some(8), Some(8), Some(2)));
        assert!(said.dont_route && said.measure_cpu);
        assert_eq!(goal, Some(Goal { level: 95, interval: 0.02, min: 5, max: 20, result_only: true }));
    }

    #[test]
    fn data_leaves_from_the_address_of_the_control_connection_unless_it_goes_over_another_family() {
        let bind = |members: &str, to: &str| {
            let text =
                format!("{{schema: netdyno.job/1, kind: netperf, host: a, from: 192.0.2.9, {members}}}");
            let Job::Netperf(job) = spec::File::read(&text, "job").expect("a job").jobs.remove(0) else {
                panic!("another kind")
            };
            let test = of(&job, to.parse().expect("an address"), Request::default(), None).expect("a test");
            test.options.bind.map(|address| address.to_string())
        };
        assert_eq!(bind("", "192.0.2.1").as_deref(), Some("192.0.2.9"));
        assert_eq!(bind("", "2001:db8::1"), None);
        assert_eq!(bind("data_from: '2001:db8::9'", "2001:db8::1").as_deref(), Some("2001:db8::9"));
    }
}
