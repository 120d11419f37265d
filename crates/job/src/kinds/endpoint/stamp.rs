//! `netdyno endpoint stamp`: a session of STAMP (crate `stamp`) with any reflector, and what its figures are worth.

use crate::kinds::passive;
use crate::panel::Names;
use crate::session::{Looked, Session};
use crate::trials::nanos;
use ::stamp::direction::NoDirection;
use ::stamp::kernel::Refusal;
use ::stamp::sender::{Errors, Live, Outcome, Sender, Wanted, draw_session};
use ::stamp::session::{Figures, OneWay, Withheld, one_way_error};
use ::stamp::time::Format;
use ::stamp::{PORT, packet};
use ::transport::native::Place;
use anyhow::{Context, Result};
use histogram::Histogram;
use report::{Code, Distribution, Report, Resolved, Stamp, StampClocks, StampError, StampStrangers, units};
use snapshot::{Snapshot, Title};
use spec::Endpoint;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// An answer is waited for so long, unless said.
const WAIT: Duration = Duration::from_secs(1);

pub(super) fn run(args: &Endpoint, session: &Session) -> Result<Report> {
    let wanted = wanted(args)?;
    let to = wanted.to;
    let mut report = Report::new("endpoint");
    let duration_ns = Some(nanos(args.stamp_duration()));
    report.resolved = Resolved { duration_ns, count: Some(wanted.count), ..Resolved::default() };
    report.environment = crate::environment::collect();
    let sender = Sender::open(wanted.clone())?;
    session.stop_in_order();
    session.meet()?;
    let rate = units::event_rate(wanted.per_second as f64);
    session.say(
        Code::Begun,
        format!(
            "STAMP to {to}, session {}, {rate} of {} B; Ctrl-C ends and reports",
            wanted.session, wanted.size
        ),
    );
    let title =
        Title { engine: Some("sockets".to_owned()), tx: Some(to.to_string()), ..passive::title("endpoint") };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let live = Live::default();
    let size = wanted.size as u64;
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| sender.run(&session.stop, &live));
        session.watch(&mut panel, None, |_| look(&live, size, running.is_finished()));
        running.join()
    });
    session.board.end();
    let outcome =
        outcome.map_err(|_| anyhow::anyhow!("a thread panicked: this is a defect of netdyno"))??;
    let told = told(&outcome, &wanted);
    judge(&mut report, &told, &wanted);
    report.result.stamp = Some(told);
    if session.is_stopped() {
        report.result.verdict.fall_short(Code::Stopped, "stopped before its time was over");
    }
    Ok(report)
}

fn wanted(args: &Endpoint) -> Result<Wanted> {
    let place = Place::find_at(&args.host, PORT, args.family.v6())
        .with_context(|| format!("looking up {}", args.host))?;
    let Place::Host(to) = place else { anyhow::bail!("`.host`: STAMP goes over UDP") };
    let from: Option<IpAddr> = match &args.from {
        Some(text) => Some(text.parse().with_context(|| format!("`.from` {text} is no address"))?),
        None => None,
    };
    anyhow::ensure!(
        from.is_none_or(|from| from.is_ipv6() == to.is_ipv6()),
        "`.from` is not of the Internet protocol of {to}: choose it by `.family`"
    );
    let size = args.size.as_deref().and_then(|size| usize::try_from(*size).ok());
    Ok(Wanted {
        to,
        from,
        device: args.device.clone(),
        tos: args.dscp_number().map(|dscp| dscp << 2),
        size: size.unwrap_or(packet::BASE),
        session: args.ssid.and_then(|id| u16::try_from(id).ok()).unwrap_or_else(draw_session),
        count: u64::try_from(args.stamp_packets()).unwrap_or(u64::MAX),
        per_second: args.stamp_rate(),
        wait: args.wait.as_deref().copied().unwrap_or(WAIT),
    })
}

fn look(live: &Live, size: u64, over: bool) -> Looked<'static, ()> {
    let delays = live.round_trip.lock().map(|shown| shown.clone()).unwrap_or_default();
    let (sent, answered) = (live.sent.load(Relaxed), live.answered.load(Relaxed));
    let mut now =
        snapshot::Endpoint { sent_bytes: sent * size, transactions: Some(answered), ..Default::default() };
    if !delays.is_empty() {
        (now.latency_p50_ns, now.latency_p99_ns) = (Some(delays.p50()), Some(delays.p99()));
    }
    Looked::of((), over, Snapshot { endpoint: Some(now), ..Snapshot::default() })
}

/// The result as data.
fn told(outcome: &Outcome, wanted: &Wanted) -> Stamp {
    let (session, figures) = (&outcome.session, &outcome.session.figures);
    let sent = session.sent();
    let lost = sent.saturating_sub(figures.answered);
    let whole = |histogram: &Histogram| Distribution::whole(histogram);
    let mut stamp = Stamp {
        reflector: wanted.to.to_string(),
        client: outcome.local.to_string(),
        ssid: wanted.session.into(),
        size_bytes: wanted.size as u64,
        sent,
        answered: figures.answered,
        lost,
        loss_ratio: (sent > 0).then(|| lost as f64 / sent as f64),
        late: figures.late,
        wait_ns: nanos(wanted.wait),
        unsent: outcome.unsent,
        refused: outcome.refused,
        latest_departure_ns: outcome.latest_ns,
        stateful: session.is_stateful().then_some(true),
        duplicates: figures.duplicates,
        reordered: figures.reordered,
        implausible_times: figures.implausible,
        strangers: strangers(figures, outcome.stranger),
        dropped_by_receiver: outcome.dropped,
        errors: errors(&outcome.errors),
        round_trip_ns: whole(&figures.round_trip),
        round_trip_variation_ns: whole(&figures.round_trip_variation),
        forward_variation_ns: whole(&figures.forward.variation),
        return_variation_ns: whole(&figures.back.variation),
        residence_ns: whole(&figures.residence),
        clocks: clocks(outcome),
        least_ttl: figures.ttl.map(|(least, _)| least.into()),
        forward_hops: hops(figures),
        ssid_returned: returned(figures),
        padding_recognised: (figures.padding_back > 0)
            .then_some(figures.padding_recognised == figures.padding_back),
        other_length: figures.other_length,
        ..Stamp::default()
    };
    match session.directions() {
        Ok(found) => {
            (stamp.forward_lost, stamp.return_lost) = (Some(found.forward), Some(found.back));
            stamp.unknown_direction_lost = Some(found.unknown);
        }
        Err(why) => stamp.no_direction = Some(no_direction(why, figures.answered).to_owned()),
    }
    one_way(&mut stamp, outcome);
    stamp
}

/// Delays of one way each, or why they are withheld.
fn one_way(stamp: &mut Stamp, outcome: &Outcome) {
    let figures = &outcome.session.figures;
    if figures.round_trip.is_empty() {
        return;
    }
    let way = |way: &OneWay| {
        if outcome.stepped_ns.is_some() {
            return Err("this host's clock was set while it lasted".to_owned());
        }
        let error = one_way_error(way, figures, outcome.clock_error_ns).map_err(withheld)?;
        Ok((Distribution::whole(&way.delay), error))
    };
    match way(&figures.forward) {
        Ok((delay, error)) => (stamp.forward_delay_ns, stamp.one_way_error_ns) = (delay, Some(error)),
        Err(why) => stamp.forward_withheld = Some(why),
    }
    match way(&figures.back) {
        Ok((delay, error)) => (stamp.return_delay_ns, stamp.one_way_error_ns) = (delay, Some(error)),
        Err(why) => stamp.return_withheld = Some(why),
    }
}

fn withheld(why: Withheld) -> String {
    match why {
        Withheld::OursUnsynchronised => "nothing keeps this host's clock to UTC (adjtimex(2))".to_owned(),
        Withheld::TheirsUnsynchronised => {
            "the reflector says that its clock is not kept to UTC (its S bit is 0)".to_owned()
        }
        Withheld::NoErrorEstimate => "the reflector does not say by how much its clock may be off".to_owned(),
        Withheld::Negative => {
            "some delays of one way would be below zero: the clocks are further apart than they say"
                .to_owned()
        }
        Withheld::ErrorTooLarge(error) => {
            format!("both clocks together may be off by {}, more than the delay", units::time(error))
        }
    }
}

fn no_direction(why: NoDirection, answered: u64) -> &'static str {
    match why {
        _ if answered == 0 => "no packet was answered in time",
        NoDirection::SameNumbers => {
            "the reflector's sequence numbers are those of the packets: it is stateless, or received every packet up to the last that it \
             answered"
        }
        NoDirection::NoCount => "the reflector's sequence numbers are no count of this session from 0",
        NoDirection::Duplicates => "packets arrived twice at the reflector, and it counted both",
        NoDirection::Jumps => {
            "the reflector counted more packets than were sent to it meanwhile: some arrived twice or in another order, or it counts other sessions too"
        }
    }
}

fn strangers(figures: &Figures, first: Option<SocketAddr>) -> StampStrangers {
    let s = figures.strangers;
    StampStrangers {
        all: s.other_source + s.too_short + s.other_session + s.unknown_number + s.other_time,
        other_source: s.other_source,
        first_source: first.map(|first| first.to_string()),
        too_short: s.too_short,
        other_session: s.other_session,
        unknown_number: s.unknown_number,
        other_time: s.other_time,
    }
}

/// Routers on the way there: each takes one from the TTL. A reflector that cannot read it says 255 (RFC 5357, section 4.2.1), so that 255
/// means none, or nothing.
fn hops(figures: &Figures) -> Option<u64> {
    let (least, most) = figures.ttl?;
    (least == most && (1..packet::TTL).contains(&least)).then(|| u64::from(packet::TTL - least))
}

fn returned(figures: &Figures) -> Option<bool> {
    match (figures.session_echoed, figures.session_zero) {
        (1.., 0) => Some(true),
        (0, 1..) => Some(false),
        _ => None,
    }
}

fn clocks(outcome: &Outcome) -> StampClocks {
    let theirs = outcome.session.figures.clock;
    let format = |format| match format {
        Format::Ntp => "ntp".to_owned(),
        Format::Ptp => "ptp".to_owned(),
    };
    StampClocks {
        t1: "program".to_owned(),
        t4: "kernel".to_owned(),
        t4_by_program: outcome.stamped_here,
        own_error_ns: outcome.clock_error_ns,
        reflector_error_ns: theirs.and_then(|clock| clock.error_ns),
        reflector_synchronised: theirs.map(|clock| clock.synchronised),
        reflector_format: theirs.map(|clock| format(clock.format)),
        tai_offset_ns: theirs.map_or(0, |clock| u64::try_from(clock.tai_ns).unwrap_or(0)),
        stepped_ns: outcome.stepped_ns,
    }
}

fn errors(all: &Errors) -> Vec<StampError> {
    let one = |(refusal, count): &(Refusal, u64)| StampError {
        what: meaning(refusal),
        by: refusal.by.map(|by| by.to_string()),
        count: *count,
    };
    let others = StampError { what: "errors of other kinds".to_owned(), by: None, count: all.others };
    all.kinds.iter().map(one).chain((all.others > 0).then_some(others)).collect()
}

/// ICMP says that nothing listens at the port.
const PORT_UNREACHABLE: &str = "port unreachable";

/// What an error says: ICMP's (RFC 792, RFC 1812), ICMPv6's (RFC 4443), or this host's own.
fn meaning(refusal: &Refusal) -> String {
    let known = match (refusal.origin, refusal.kind, refusal.code) {
        (2, 3, 3) | (3, 1, 4) => PORT_UNREACHABLE,
        (2, 3, 0) | (3, 1, 0) => "network unreachable",
        (2, 3, 1) | (3, 1, 3) => "host unreachable",
        (2, 3, 9 | 10 | 13) | (3, 1, 1) => "administratively prohibited",
        (2, 3, 4) | (3, 2, _) => "packet too large",
        (2, 11, _) | (3, 3, _) => "time to live exceeded",
        (2, kind, code) => return format!("ICMP type {kind} code {code}"),
        (3, kind, code) => return format!("ICMPv6 type {kind} code {code}"),
        _ => return std::io::Error::from_raw_os_error(refusal.errno).to_string(),
    };
    known.to_owned()
}

/// Whether it was done as asked, and what is to be known of its figures.
fn judge(report: &mut Report, stamp: &Stamp, wanted: &Wanted) {
    let to = wanted.to;
    if stamp.sent > 0 && stamp.answered == 0 {
        report.result.verdict.fall_short(Code::EndpointFailed, nobody(stamp, to));
    } else if stamp.sent == 0 {
        report.result.verdict.fall_short(Code::EndpointFailed, "no packet was sent");
    } else if let Some(error) = stamp.errors.first() {
        let by = error.by.as_deref().unwrap_or("this host");
        let said = format!("{} of {} came back from {by} for packets", units::count(error.count), error.what);
        report.warnings.add(Code::DatagramsExplained, said);
    }
    if stamp.unsent > 0 && stamp.sent > 0 {
        let said = format!("{} were due and not sent", units::counted(stamp.unsent, "packet"));
        report.result.verdict.fall_short(Code::RateNotReached, said);
    }
    if stamp.refused > 0 {
        let said = format!(
            "this host's kernel refused {}: they are not among those sent",
            units::counted(stamp.refused, "packet")
        );
        report.result.verdict.fall_short(Code::FramesRefused, said);
    }
    if stamp.dropped_by_receiver > 0 {
        let said = format!(
            "this host's socket had no room for {}: of what is called lost, as many may have been answered",
            units::counted(stamp.dropped_by_receiver, "datagram")
        );
        report.warnings.add(Code::DatagramsExplained, said);
    }
    if stamp.implausible_times > 0 {
        let said = format!(
            "{} had time stamps that cannot be: such packets have no delay",
            units::counted(stamp.implausible_times, "answer")
        );
        report.warnings.add(Code::ClockUnkept, said);
    }
    if let Some(by) = stamp.clocks.stepped_ns {
        let said =
            format!("this host's clock was set by {} meanwhile: delays of then are off", units::time(by));
        report.result.verdict.fall_short(Code::ClockSet, said);
    }
}

/// Why nobody answered, as far as that is known, and what to do.
fn nobody(stamp: &Stamp, to: SocketAddr) -> (String, String) {
    let none = format!("none of {} was answered", units::counted(stamp.sent, "packet"));
    if stamp.late > 0 {
        let said = format!("{none} in time: {} too late", units::counted(stamp.late, "answer"));
        return (said, "wait longer (`.wait`)".to_owned());
    }
    if let Some(error) = stamp.errors.first() {
        let by = error.by.as_deref().unwrap_or("this host");
        let said = format!("{none}: {by} says {}", error.what);
        let mend = if error.what == PORT_UNREACHABLE {
            format!(
                "start a STAMP or TWAMP-Light reflector at UDP port {}, or name the port of the one that runs: HOST:PORT",
                to.port()
            )
        } else {
            "look at the way there (routes, filters)".to_owned()
        };
        return (said, mend);
    }
    if stamp.strangers.other_source > 0
        && let Some(first) = &stamp.strangers.first_source
    {
        let said = format!("{none}, but datagrams came from {first}, which is not {to}");
        return (said, format!("name the address that answers: {first}"));
    }
    if stamp.strangers.all > 0 {
        let said = format!(
            "{none}: the {} that came are no answers of this session",
            units::counted(stamp.strangers.all, "datagram")
        );
        return (said, "look whether what listens there is a reflector of STAMP or TWAMP-Light".to_owned());
    }
    let mend = format!(
        "see that a reflector runs there, allows this host, and that no filter drops UDP port {} in either direction",
        to.port()
    );
    (format!("{none}, and no error came back"), mend)
}
