//! From netperf's options to the job of a test.

use super::Places;
use super::options::Options;
use endpoint::netperf::figures::Flow;
use endpoint::netperf::omni::flag;
use spec::{BitRate, Confidence, EndpointTest, Netperf, TimeOrZero, Written};
use std::net::SocketAddr;
use std::time::Duration;

/// A number that is not given where it is negative.
fn given<T: TryFrom<i32>>(number: i32) -> Option<T> {
    T::try_from(number).ok()
}

/// A size that is the default where it is 0 or negative.
fn size(of: i64) -> Option<Written<u64>> {
    u64::try_from(of).ok().filter(|size| *size > 0).map(Written::from)
}

/// The test.
pub fn job(o: &Options, places: &Places) -> Netperf {
    let test = match (o.flow, o.datagrams) {
        (Flow::Send, false) => EndpointTest::TcpStream,
        (Flow::Send, true) => EndpointTest::UdpStream,
        (Flow::Receive, false) => EndpointTest::TcpMaerts,
        (Flow::Receive, true) => EndpointTest::UdpMaerts,
        (Flow::Transact, false) => EndpointTest::TcpRr,
        (Flow::Transact, true) => EndpointTest::UdpRr,
        (Flow::TransactEach, _) => EndpointTest::TcpCrr,
        (Flow::ConnectEach, _) => EndpointTest::TcpCc,
    };
    let host = match places.server {
        SocketAddr::V6(at) if at.scope_id() != 0 => format!("{}%{}", at.ip(), at.scope_id()),
        at => at.ip().to_string(),
    };
    let units = size((-i64::from(o.length)).max(0));
    let time = Duration::from_secs(u64::try_from(o.length).unwrap_or(0));
    let (exchanges, transacts) =
        (matches!(o.flow, Flow::Transact | Flow::TransactEach), o.flow.is_transactions());
    let flood = test == EndpointTest::UdpStream;
    let request = &o.request;
    Netperf {
        test,
        host,
        port: Some(places.server.port()),
        duration: units.is_none().then(|| TimeOrZero(time).into()),
        bytes: units.clone().filter(|_| !transacts),
        transactions: units.filter(|_| transacts),
        size: size(o.own_sizes[0].into()),
        receive_size: size(o.own_sizes[1].into()),
        remote_size: size(request.send_size.into()),
        remote_receive_size: size(request.receive_size.into()),
        request: size(o.request_size.into()).filter(|_| exchanges),
        response: size(o.response_size.into()).filter(|_| exchanges),
        burst: (o.burst > 0).then(|| o.burst.saturating_add(1)),
        confidence: o
            .confidence
            .map(|goal| Confidence { level: f64::from(goal.level) / 100.0, width: goal.interval }.into()),
        iterations: o.confidence.map(|goal| goal.max),
        least_iterations: o.confidence.map(|goal| goal.min),
        result_only: o.confidence.is_some_and(|goal| goal.result_only),
        local_cpu: o.local_cpu,
        remote_cpu: request.flags & flag::MEASURE_CPU != 0,
        wait: (!o.wait.is_zero()).then(|| o.wait.into()),
        lost_after: o.loses_after.map(Written::from),
        from: o.own.host.as_ref().map(|_| places.own),
        from_port: o.own.port,
        data_host: places.data,
        data_port: u16::try_from(request.data_port).ok().filter(|port| *port > 0),
        data_from: places.own_data,
        data_from_port: o.own_data.port,
        ports: o.ports.map(|(first, last)| [first, last]),
        send_buffer: o.own_buffers[0].and_then(|bytes| size(bytes.into())),
        receive_buffer: o.own_buffers[1].and_then(|bytes| size(bytes.into())),
        remote_send_buffer: size(request.send_buffer.into()),
        remote_receive_buffer: size(request.recv_buffer.into()),
        nodelay: o.nodelay,
        cork: o.cork,
        congestion: o.congestion.clone(),
        remote_congestion: Some(request.congestion.clone()).filter(|name| !name.is_empty()),
        pacing: o.pacing.map(|bytes| BitRate(bytes.saturating_mul(8)).into()),
        mss: o.mss,
        priority: o.priority,
        remote_priority: given(request.priority),
        tos: o.tos,
        remote_tos: given(request.tos),
        dont_fragment: o.dont_fragment,
        keepalive: o.keepalive,
        fast_open: o.fast_open,
        defer_accept: request.flags & flag::DEFER_ACCEPT != 0,
        across_routers: flood && !o.dont_route,
        same_network: !flood && o.dont_route,
        sendfile: o.sendfile,
        avoid_copies: o.avoid_copies,
        core: o.core,
        remote_core: given(request.cpu),
        ..Netperf::default()
    }
}
