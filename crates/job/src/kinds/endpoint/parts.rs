//! From a job to what is done at the same time: a stream in each direction, transactions; each with its own control connection.

use super::{FILLS, LASTS, LONGEST};
use crate::trials::nanos;
use ::endpoint::native::{End, From as Sender, Plan, Work};
use ::transport::exchange::Exchange;
use ::transport::native::{Place, Test};
use ::transport::pace::Rate;
use ::transport::socket::Options;
use anyhow::{Context, Result};
use spec::{Cores, Endpoint, EndpointRate, EndpointTest, Word as _};
use std::net::IpAddr;
use std::time::Duration;

/// One of them.
#[derive(Debug, Clone)]
pub struct Part {
    pub test: Test,
    /// No stream runs beside it.
    pub alone: bool,
}

impl Part {
    pub fn is_transactions(&self) -> bool {
        !matches!(self.test.plan.work, Work::Stream { .. })
    }

    /// This host sends.
    pub fn sends(&self) -> bool {
        self.test.plan.work == Work::Stream { from: Sender::Client }
    }
}

/// All of them.
#[derive(Debug)]
pub struct Parts {
    pub all: Vec<Part>,
    /// What this end's sockets are like besides.
    pub own: Options,
    warm_up: Duration,
    measured: Duration,
    by_amount: bool,
}

/// Bytes of a message of a stream.
const MESSAGE: u64 = 131_072;
/// Transactions beside streams: so many a second tell percentiles and are no load of their own,
const BESIDE: u64 = 100;
/// and so many may be under way: the path may be as slow as it is.
const BESIDE_IN_FLIGHT: u32 = 1024;
/// Handshakes under way at once: far below what an accept queue holds (net.core.somaxconn, 4096),
const HANDSHAKES: u32 = 64;
/// and in an open loop: those that are due and find no room would be left out.
const HANDSHAKES_DUE: u32 = 1024;
/// A connection that is opened has so long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The server says so often how it stands.
const INTERVAL: Duration = Duration::from_millis(100);

impl Parts {
    pub fn of(args: &Endpoint, place: &Place) -> Result<Parts> {
        let test = args.test;
        let loaded = test == EndpointTest::LatencyUnderLoad;
        let by_amount = args.bytes.is_some() || args.transactions.is_some();
        let measured = args.duration.as_deref().copied().unwrap_or(if by_amount { LONGEST } else { LASTS });
        let warm_up = args.warm_up.as_deref().copied().unwrap_or(if loaded { FILLS } else { Duration::ZERO });
        let own = own(args)?;
        let stream = |from| part(args, place, &own, Work::Stream { from }, test.is_udp());
        let all = match test {
            EndpointTest::TcpStream | EndpointTest::UdpStream => vec![stream(Sender::Client)?],
            EndpointTest::TcpMaerts | EndpointTest::UdpMaerts => vec![stream(Sender::Server)?],
            EndpointTest::TcpBidir => vec![stream(Sender::Client)?, stream(Sender::Server)?],
            EndpointTest::TcpRr | EndpointTest::UdpRr => {
                vec![part(args, place, &own, Work::Exchange, test.is_udp())?]
            }
            EndpointTest::TcpCrr | EndpointTest::TcpCc => vec![part(args, place, &own, Work::Each, false)?],
            EndpointTest::ConnectionRate => vec![part(args, place, &own, Work::Open, false)?],
            // It has no server of ours (`super::stamp`).
            EndpointTest::Stamp => Vec::new(),
            EndpointTest::LatencyUnderLoad => vec![
                stream(Sender::Client)?,
                stream(Sender::Server)?,
                part(args, place, &own, Work::Exchange, false)?,
            ],
        };
        let mut parts = Parts { all, own, warm_up, measured, by_amount };
        for part in &mut parts.all {
            part.test.plan.duration_ns = nanos(warm_up.saturating_add(measured));
            part.test.plan.warm_up_ns = nanos(warm_up);
        }
        Ok(parts)
    }

    /// It ends when so much is done, not by time.
    pub fn by_amount(&self) -> bool {
        self.by_amount
    }

    /// How long is measured.
    pub fn measured(&self) -> Duration {
        self.measured
    }

    /// What comes in so long before is not.
    pub fn warm_up(&self) -> Duration {
        self.warm_up
    }

    /// The same with the warm-up.
    pub fn lasts(&self) -> Duration {
        self.warm_up.saturating_add(self.measured)
    }
}

fn own(args: &Endpoint) -> Result<Options> {
    let bind: Option<IpAddr> = match &args.from {
        Some(text) => Some(text.parse().with_context(|| format!("`.from` {text} is no address"))?),
        None => None,
    };
    Ok(Options { bind, device: args.device.clone(), mptcp: args.mptcp, ..Options::default() })
}

/// CPUs that a choice of cores means.
fn cores(cores: Option<&Cores>) -> Vec<u32> {
    let of = |list: Vec<usize>| list.into_iter().filter_map(|core| u32::try_from(core).ok()).collect();
    match cores {
        None => Vec::new(),
        Some(Cores::List(list)) => of(list.clone()),
        Some(Cores::Number(number)) => {
            let allowed = crate::environment::allowed_cpus().unwrap_or_default();
            of(allowed.into_iter().take(*number).collect())
        }
    }
}

fn part(args: &Endpoint, place: &Place, own: &Options, work: Work, datagrams: bool) -> Result<Part> {
    let loaded = args.test == EndpointTest::LatencyUnderLoad;
    let stream = matches!(work, Work::Stream { .. });
    // Transactions beside streams are one flow, whatever the streams are.
    let flows = match work {
        Work::Exchange if loaded => 1,
        Work::Open => args.parallel.unwrap_or(if args.rate.is_some() { HANDSHAKES_DUE } else { HANDSHAKES }),
        _ => args.parallel.unwrap_or(1),
    };
    let sends_here = work == Work::Stream { from: Sender::Client };
    let size = args.size.as_deref().copied().unwrap_or(if datagrams { datagram(place) } else { MESSAGE });
    let share = |rate: u64| (rate / u64::from(flows.max(1))).max(1);
    let bits = match args.rate.as_deref() {
        Some(EndpointRate::Bits(bits)) => Some(share(*bits)),
        Some(EndpointRate::Datagrams(count)) => Some(share(count.saturating_mul(size).saturating_mul(8))),
        _ => None,
    };
    let pacing = match args.pacing.as_deref() {
        Some(EndpointRate::Bits(bits)) => Some((bits / 8).max(1)),
        _ => None,
    };
    let buffer = |size: &Option<spec::Written<u64>>| {
        size.as_deref().map(|size| u32::try_from(*size).unwrap_or(u32::MAX))
    };
    let tos = args.dscp_number().map(|dscp| dscp << 2);
    let busy_poll = args.busy_poll.as_deref().map(|time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    let end = |sends: bool| End {
        nodelay: args.nodelay || (!stream && !datagrams && matches!(place, Place::Host(_))),
        cork: args.cork && sends,
        // Who only receives has nothing of it, and may not be permitted to choose.
        congestion: args.congestion.clone().filter(|_| sends),
        pacing_rate: pacing.filter(|_| sends),
        tos,
        busy_poll,
        send_method: stream.then(|| args.method.name().to_owned()),
        receive_method: stream.then(|| args.receive_method.name().to_owned()),
        gso: args.gso && sends,
        gro: args.gro && !sends,
        batch: args.batch.filter(|_| sends),
        bits_per_second: bits.filter(|_| sends),
        spin: args.spin,
        ..End::default()
    };
    let near = End {
        send_buffer: buffer(&args.send_buffer),
        receive_buffer: buffer(&args.receive_buffer),
        cores: cores(args.cores.as_deref()),
        ..end(sends_here || !stream)
    };
    let far = End {
        send_buffer: buffer(&args.remote_send_buffer),
        receive_buffer: buffer(&args.remote_receive_buffer),
        cores: cores(args.remote_cores.as_deref()),
        ..end(!sends_here || !stream)
    };
    let no_bytes = matches!(args.test, EndpointTest::TcpCc | EndpointTest::ConnectionRate);
    let sized =
        |size: &Option<spec::Written<u64>>| if no_bytes { 0 } else { size.as_deref().copied().unwrap_or(1) };
    let of_exchange = |of: u64| if stream { 0 } else { of };
    let transactions = match args.rate.as_deref() {
        Some(EndpointRate::Transactions(rate) | EndpointRate::Connections(rate)) => Some(*rate),
        _ => (loaded && !stream).then_some(BESIDE),
    };
    let in_flight = args.burst.unwrap_or(if loaded { BESIDE_IN_FLIGHT } else { 1 });
    let exchange = Exchange {
        in_flight,
        // Of all flows together; connections are opened on one schedule.
        rate: transactions.map(|rate| Rate {
            count: rate.max(1),
            per_ns: 1_000_000_000_u64.saturating_mul(match work {
                Work::Open => 1,
                _ => u64::from(flows.max(1)),
            }),
        }),
        spin: args.spin,
        ..Exchange::new(1, 1)
    };
    let plan = Plan {
        work,
        datagrams,
        flows,
        duration_ns: 0,
        warm_up_ns: 0,
        size: if stream { size } else { 0 },
        request: of_exchange(sized(&args.request)),
        response: of_exchange(sized(&args.response)),
        hold: u64::from(args.hold.unwrap_or(0)),
        interval_ns: nanos(INTERVAL),
        end: far,
    };
    let count = args.transactions.as_deref().copied().filter(|_| !stream);
    let bytes = args.bytes.as_deref().copied().filter(|_| stream);
    let threads = args.threads;
    let handshake = args.connect_timeout.as_deref().copied().unwrap_or(HANDSHAKE);
    let test = Test { plan, end: near, exchange, bytes, count, threads, handshake, own: own.clone() };
    Ok(Part { test, alone: !loaded || stream })
}

/// The longest datagram that Ethernet's MTU takes whole.
fn datagram(place: &Place) -> u64 {
    match place {
        Place::Host(at) if at.is_ipv6() => 1452,
        _ => 1472,
    }
}
