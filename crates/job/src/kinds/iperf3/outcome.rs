//! What a test of iperf3's protocol came to, as a result.

use crate::kinds::endpoint::sound::{self, ns, per_second, told};
use ::endpoint::iperf3::params::{Params, Protocol};
use ::endpoint::iperf3::results::Cpu;
use ::endpoint::iperf3::summary::{End, Interval, Side, Start, Sum};
use ::transport::native::Host;
use report::{Code, Datagrams, Endpoint, EndpointEnd, EndpointInterval, EndpointStream, Report, units};

/// How far apart, in seconds, both ends' moments are at which what is left out ends: a message's way, and a busy machine's lateness.
const APART: f64 = 0.1;

/// What a client has of its test.
pub fn fill(report: &mut Report, start: &Start, end: &End, intervals: &[Interval], server: &str) {
    let params = &start.params;
    let udp = params.protocol == Protocol::Udp;
    let test = match (udp, params.bidir, params.reverse) {
        (false, true, _) => "tcp-bidir",
        (false, _, true) => "tcp-maerts",
        (false, ..) => "tcp-stream",
        (true, true, _) => "udp-bidir",
        (true, _, true) => "udp-maerts",
        (true, ..) => "udp-stream",
    };
    let directions = [true, false].map(|sends| (sends, Sum::of(&end.streams, sends)));
    let own = directions[0].1.sent;
    let last = intervals.last().and_then(tcp);
    let host = Host::here();
    report.result.endpoint = Some(Endpoint {
        test: test.to_owned(),
        server: server.to_owned(),
        client: start.streams.first().map(|stream| stream.local.ip().to_canonical().to_string()),
        connections: params.parallel.into(),
        warm_up_ns: u64::from(params.omit) * 1_000_000_000,
        streams: directions.iter().filter_map(|(sends, sum)| stream(*sends, sum, params, end)).collect(),
        local: EndpointEnd {
            program: Some(host.program),
            kernel: Some(host.kernel),
            congestion: end.congestion.clone(),
            send_buffer_bytes: Some(start.send_buffer).filter(|bytes| *bytes > 0),
            receive_buffer_bytes: Some(start.receive_buffer).filter(|bytes| *bytes > 0),
            mss_bytes: Some(u64::from(start.mss)).filter(|mss| *mss > 0 && !udp),
            process_cores: cores(end.cpu),
            rtt_ns: last.and_then(|last| last.rtt_ns),
            cwnd_bytes: last.map(|last| last.cwnd_bytes),
            retransmits: own.and_then(|own| own.retransmits).filter(|_| !udp),
            ..EndpointEnd::default()
        },
        remote: end.remote_cpu.map(|cpu| EndpointEnd {
            congestion: end.remote_congestion.clone(),
            process_cores: cores(cpu),
            ..EndpointEnd::default()
        }),
        intervals: intervals.iter().map(|one| interval(one, params.omit)).collect(),
        ..Endpoint::default()
    });
    for (sends, sum) in directions {
        let Some((sent, received)) = sum.sent.zip(sum.received).filter(|_| udp && params.omit > 0) else {
            continue;
        };
        if ends_early(&sent, &received) {
            let (from, to) = if sends { ("this host", "the server") } else { ("the server", "this host") };
            let said = format!(
                "{from} sent {} behind the warm-up and {to} saw numbers of {} only: the rest was lost at the end, to what was sent in 100 ms",
                units::counted(sent.udp.packets, "datagram"),
                units::count(received.udp.packets)
            );
            report.warnings.add(Code::DatagramsExplained, said);
        }
    }
    let is_here = |stream: &::endpoint::iperf3::summary::Stream| stream.local.ip() == stream.remote.ip();
    if start.streams.first().is_some_and(is_here) {
        sound::on_one_host(report);
    }
}

/// What is to be known of the figures, and whether both ends agree. `is_whole`: the test came to its end.
pub fn judge(report: &mut Report, params: &Params, is_whole: bool) {
    let Some(tested) = report.result.endpoint.clone() else { return };
    if params.skip_rx_copy {
        sound::never_touched(report, "MSG_TRUNC, by which the kernel drops it");
    }
    if params.zerocopy {
        sound::never_made(report);
    }
    for d in tested.streams.iter().filter_map(|stream| stream.datagrams) {
        // Receivers always have the kernel join them.
        sound::datagrams(report, d, true, "give it a larger buffer (`.window`), or offer less (`.bitrate`)");
    }
    sound::streams_add_up(report, &tested, is_whole);
    if is_whole {
        sound::is_of_something(report, &tested);
    }
}

/// What the kernel says of the connections on which this end sends, when an interval ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Their mean smoothed round-trip time.
    pub rtt_ns: Option<u64>,
    /// The sum of their congestion windows.
    pub cwnd_bytes: u64,
    /// Segments that were sent again in the interval.
    pub retransmits: u64,
}

/// `None` where this end sends nothing over TCP.
pub fn tcp(interval: &Interval) -> Option<Tcp> {
    let all = || interval.streams.iter().filter(|slice| slice.sender).filter_map(|slice| slice.tcp);
    all().next()?;
    let (count, rtts) =
        all().filter(|tcp| tcp.rtt > 0).fold((0, 0_u64), |(n, sum), tcp| (n + 1, sum + tcp.rtt));
    Some(Tcp {
        rtt_ns: (count > 0).then(|| rtts * 1000 / count),
        cwnd_bytes: all().map(|tcp| tcp.snd_cwnd).sum(),
        retransmits: all().map(|tcp| tcp.retransmits).sum(),
    })
}

/// Of percents of a core.
fn cores(cpu: Cpu) -> Option<f64> {
    told(cpu.total / 100.0)
}

/// One direction; `None` if there is none, or neither end is known.
fn stream(from_client: bool, sum: &Sum, params: &Params, end: &End) -> Option<EndpointStream> {
    // If who sent is gone, what was received was sent at least.
    let sent = sum.sent.or(sum.received)?;
    let both = sum.sent.zip(sum.received).filter(|_| params.protocol == Protocol::Udp);
    Some(EndpointStream {
        from_client,
        sent_bytes: sent.bytes,
        sent_ns: ns(sent.seconds),
        sent_bits_per_second: sent.rate(),
        sent_at_least: sum.sent.is_none(),
        received_bytes: sum.received.map(|received| received.bytes),
        received_ns: sum.received.map(|received| ns(received.seconds)),
        // Bytes of one moment have no rate.
        received_bits_per_second: sum
            .received
            .filter(|received| received.seconds > 0.0 || received.bytes == 0)
            .map(|received| received.rate()),
        datagrams: both
            .map(|(sent, received)| datagrams(&sent, &received, params, (!from_client).then_some(end))),
    })
}

/// A receiver says how many it missed among the numbers up to the last that came; with what was sent, those behind it are known, too. `here`:
/// this end received, and knows what the protocol does not tell.
fn datagrams(sent: &Side, received: &Side, params: &Params, here: Option<&End>) -> Datagrams {
    let missed = u64::try_from(received.udp.lost).unwrap_or(0);
    let came = received.udp.packets.saturating_sub(missed);
    // What does not count ends at a moment of each end's own: then the receiver's numbers alone fit each other. It has none of those that
    // were lost behind the last one that came.
    let by_numbers = params.omit > 0 && !ends_early(sent, received);
    let sent = if by_numbers { received.udp.packets } else { sent.udp.packets };
    let lost = sent.saturating_sub(came);
    Datagrams {
        size_bytes: params.len,
        sent,
        received: came,
        received_per_second: Some(per_second(came, received.seconds)),
        lost,
        loss_ratio: if sent > 0 { lost as f64 / sent as f64 } else { 0.0 },
        // Drops are of the whole test: with a part that does not count they are known only where they fit.
        dropped_by_receiver: here
            .map(|end| end.receiver_drops)
            .filter(|drops| params.omit == 0 || *drops <= lost),
        refused_by_sender: None,
        reordered: here.map(|_| received.udp.out_of_order),
        duplicated: None,
        jitter_ns: Some(ns(received.udp.jitter)),
    }
}

/// Whether the sender counts so many more datagrams than its receiver saw numbers of that the moments at which what is left out ends do not
/// explain it.
fn ends_early(sent: &Side, received: &Side) -> bool {
    let more = sent.udp.packets.saturating_sub(received.udp.packets);
    more as f64 > APART * per_second(sent.udp.packets, sent.seconds)
}

/// Times of what counts begin behind what is left out.
fn interval(one: &Interval, omit: u32) -> EndpointInterval {
    let shift = if one.omitted { 0.0 } else { f64::from(omit) };
    let tcp = tcp(one);
    let counts = one.streams.iter().filter_map(|slice| {
        let missed = if slice.sender { 0 } else { u64::try_from(slice.udp?.lost).unwrap_or(0) };
        Some(slice.udp?.packets.saturating_sub(missed))
    });
    EndpointInterval {
        start_ns: ns(one.start + shift),
        end_ns: ns(one.end + shift),
        bytes: one.streams.iter().map(|slice| slice.bytes).sum(),
        count: one.streams.iter().any(|slice| slice.udp.is_some()).then(|| counts.sum()),
        rtt_ns: tcp.and_then(|tcp| tcp.rtt_ns),
        cwnd_bytes: tcp.map(|tcp| tcp.cwnd_bytes),
        retransmits: tcp.map(|tcp| tcp.retransmits),
        ..EndpointInterval::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::endpoint::iperf3::summary::{self, Role, Total};
    use report::Verdict;

    fn start(params: Params) -> Start {
        Start {
            role: Role::Client,
            params,
            host: "a".to_owned(),
            port: 5201,
            cookie: String::new(),
            unix_ms: 0,
            system: String::new(),
            mss: 1448,
            send_buffer: 16_384,
            receive_buffer: 131_072,
            interval: 1.0,
            streams: Vec::new(),
        }
    }

    fn found(params: Params, end: &End, intervals: &[Interval]) -> Report {
        let (mut report, start) = (Report::new("iperf3"), start(params));
        fill(&mut report, &start, end, intervals, "a:5201");
        judge(&mut report, &start.params, true);
        report
    }

    fn tested(report: &Report) -> &Endpoint {
        report.result.endpoint.as_ref().expect("a test")
    }

    /// This end sent (or, if not, received) 100 datagrams; the other said that of 95 numbers 5 were missed.
    fn udp(sender: bool, omit: u32) -> Report {
        udp_of(sender, omit, 95)
    }

    fn udp_of(sender: bool, omit: u32, numbers: u64) -> Report {
        let side = |bytes, packets, lost| Side {
            seconds: 2.0,
            bytes,
            udp: summary::Datagrams { packets, lost, jitter: 0.001, out_of_order: 3 },
            ..Side::default()
        };
        let (sent, received) = (Some(side(100_000, 100, 0)), Some(side(90_000, numbers, 5)));
        let total = Total { socket: 5, sender, sent, received, tcp: None };
        let end = End { streams: vec![total], receiver_drops: 4, ..End::default() };
        let params = Params {
            protocol: Protocol::Udp,
            len: 1000,
            parallel: 1,
            reverse: !sender,
            omit,
            ..Params::default()
        };
        let one = |omitted| Interval { start: 0.0, end: 1.0, omitted, streams: Vec::new() };
        found(params, &end, &[one(true), one(false)])
    }

    #[test]
    fn what_was_sent_and_not_received_is_lost_and_what_the_protocol_does_not_tell_is_left_out() {
        let report = udp(true, 0);
        let stream = &tested(&report).streams[0];
        let d = stream.datagrams.expect("datagrams");
        assert_eq!((d.sent, d.received, d.lost, d.jitter_ns), (100, 90, 10, Some(1_000_000)));
        assert_eq!((d.reordered, d.duplicated), (None, None), "the server does not say so");
        assert_eq!((d.refused_by_sender, d.dropped_by_receiver), (None, None));
        assert_eq!(stream.received_bits_per_second, Some(360_000.0));
        assert_eq!(tested(&report).test, "udp-stream");
        assert!(report.result.verdict.reasons().is_empty());
        let here = tested(&udp(false, 0)).streams[0].datagrams.expect("datagrams");
        assert_eq!((here.reordered, here.dropped_by_receiver, here.lost), (Some(3), Some(4), 10));
    }

    #[test]
    fn with_a_warm_up_datagrams_are_those_whose_numbers_the_receiver_saw() {
        let report = udp(true, 1);
        let d = tested(&report).streams[0].datagrams.expect("datagrams");
        assert_eq!((d.sent, d.received, d.lost), (95, 90, 5));
        // What is left out comes first.
        let times: Vec<u64> = tested(&report).intervals.iter().map(|one| one.start_ns).collect();
        assert_eq!(times, [0, 1_000_000_000]);
    }

    #[test]
    fn what_is_lost_behind_the_last_number_that_came_is_lost_with_a_warm_up_too() {
        for (numbers, sent, lost, told) in [(95, 95, 5, 0), (94, 100, 11, 1), (5, 100, 100, 1)] {
            for sender in [true, false] {
                let report = udp_of(sender, 1, numbers);
                let d = tested(&report).streams[0].datagrams.expect("datagrams");
                assert_eq!((d.sent, d.lost), (sent, lost), "{numbers}");
                let words =
                    report.warnings.iter().filter(|said| said.to_string().contains("lost at the end"));
                assert_eq!(words.count(), told, "{numbers}");
            }
        }
    }

    fn tcp_of(sent: Option<u64>, received: Option<u64>) -> Report {
        let side = |bytes| Side { seconds: 1.0, bytes, retransmits: Some(2), ..Side::default() };
        let total =
            Total { socket: 5, sender: true, sent: sent.map(side), received: received.map(side), tcp: None };
        let end = End { streams: vec![total], ..End::default() };
        found(Params { parallel: 1, ..Params::default() }, &end, &[])
    }

    #[test]
    fn ends_that_contradict_each_other_are_told() {
        assert_eq!(tcp_of(Some(500), Some(500)).result.verdict, Verdict::Done);
        let less = tcp_of(Some(500), Some(400));
        assert_eq!((less.result.verdict.reasons().len(), less.warnings.len()), (0, 1));
        assert_eq!(tcp_of(Some(500), Some(501)).result.verdict.reasons().len(), 1);
        assert_eq!(tcp_of(Some(0), Some(0)).result.verdict.reasons().len(), 1, "nothing went");
    }

    #[test]
    fn a_test_in_both_directions_has_two_streams_and_a_lost_server_no_end_of_its_own() {
        let side = |bytes| Some(Side { seconds: 1.0, bytes, retransmits: Some(2), ..Side::default() });
        let total = |sender, sent, received| Total { socket: 5, sender, sent, received, tcp: None };
        let streams = vec![total(true, side(500), None), total(false, None, side(300))];
        let end = End { streams, ..End::default() };
        let report = found(Params { bidir: true, parallel: 1, ..Params::default() }, &end, &[]);
        let both: Vec<_> = (tested(&report).streams.iter())
            .map(|one| (one.from_client, one.sent_bytes, one.received_bytes, one.sent_at_least))
            .collect();
        assert_eq!(both, [(true, 500, None, false), (false, 300, Some(300), true)]);
        assert_eq!((tested(&report).local.retransmits, &tested(&report).remote), (Some(2), &None));
    }

    #[test]
    fn an_interval_has_the_mean_round_trip_and_the_sum_of_windows() {
        let slice = |rtt, snd_cwnd| summary::Slice {
            socket: 5,
            sender: true,
            bytes: 10,
            tcp: Some(summary::Tcp { retransmits: 1, snd_cwnd, rtt, ..summary::Tcp::default() }),
            udp: None,
        };
        let one =
            Interval { start: 0.0, end: 1.0, omitted: false, streams: vec![slice(10, 5), slice(30, 7)] };
        let wanted = Tcp { rtt_ns: Some(20_000), cwnd_bytes: 12, retransmits: 2 };
        assert_eq!((tcp(&one), interval(&one, 0).bytes), (Some(wanted), 20));
    }
}
