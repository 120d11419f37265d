//! What came of it, in the report.

use super::Plan;
use crate::place::Place;
use crate::run::counters::{self, Leaving, Told};
use histogram::Histogram;
use report::{Choice, Code, Distribution, HeldSessions, Interval, Pacing, Report, Rx, Totals, Tx, units};
use sessions::{Counts, Ran};
use snapshot::Count;
use xdp::way::Way;

pub(super) fn choice(native: bool, reason: &str, way: &Way) -> Choice {
    let name = if native { "xdp" } else { "xdp-generic" };
    let reason = format!("frames are {}; answers are taken by {reason}", way.describe());
    Choice { name: name.to_owned(), reason, ..Choice::default() }
}

/// Between two looks at what came and what left.
pub(super) fn interval([(start_ns, before), (end_ns, now)]: [(u64, [Count; 2]); 2]) -> Interval {
    let ([rx, tx], [rx_before, tx_before]) = (now, before);
    let since = |now: u64, before: u64| Some(now.saturating_sub(before));
    Interval {
        start_ns,
        end_ns,
        rx_frames: since(rx.frames, rx_before.frames),
        rx_bytes: since(rx.bytes, rx_before.bytes),
        tx_frames: since(tx.frames, tx_before.frames),
        tx_bytes: since(tx.bytes, tx_before.bytes),
        ..Interval::default()
    }
}

pub(super) fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

pub(super) fn fill(
    report: &mut Report,
    plan: &Plan,
    (counts, ran, open): (&Counts, &Ran, u64),
    [handshake, answer]: &[Histogram; 2],
) {
    // Of a schedule whose last connection is over before the next would have been due, the time of the schedule.
    let span = ran.duration_ns.max(ran.opening_ns);
    report.result.tx = Some(Tx {
        totals: Totals::over(counts.tx_frames, counts.tx_bytes, span),
        engine: "xdp".to_owned(),
        ..Tx::default()
    });
    report.result.rx =
        Some(Rx { totals: Totals::over(counts.rx_frames, counts.rx_bytes, span), ..Rx::default() });
    report.result.pacing = Some(Pacing { priority: Some(ran.had.to_string()), ..Pacing::default() });
    report.result.sessions = Some(report::Sessions {
        server: plan.options.server.to_string(),
        application: if plan.options.udp { "udp" } else { "http" }.to_owned(),
        first_client: plan.options.first_address.to_string(),
        client_addresses: plan.options.addresses.into(),
        tuples: plan.options.slots.into(),
        // One after the other: none is used again before all are used.
        tuples_used: counts.opened.min(plan.options.slots.into()),
        opened: counts.opened,
        established: counts.established,
        finished: counts.finished,
        failed: counts.failed(),
        reset: counts.reset,
        timed_out: counts.timed_out,
        unanswered: counts.unanswered,
        abandoned: counts.abandoned,
        closed_early: counts.closed_early,
        refused: counts.refused,
        open,
        requests: counts.asked,
        answers: counts.answers(),
        status_1xx: counts.status_1xx,
        status_2xx: counts.status_2xx,
        status_3xx: counts.status_3xx,
        status_4xx: counts.status_4xx,
        status_5xx: counts.status_5xx,
        not_http: counts.not_http,
        status_unread: counts.unread,
        numbered_answers: counts.numbered,
        relays_refused: counts.relays_refused,
        interim_answers: counts.interim,
        unframed_answers: counts.unframed,
        answers_to_the_close: counts.to_the_close,
        misframed_answers: counts.misframed,
        overlong_answers: counts.overlong,
        held: plan.options.holds.then_some(HeldSessions {
            asked: plan.load.count.unwrap_or(0),
            held: ran.held,
            opening_ns: ran.settled_ns,
            used_again: counts.used_again,
            answered_again: counts.used_again_answered,
            from_server: plan.options.from_server,
            using_ns: ran.using_ns,
            closing_ns: ran.closing_ns,
        }),
        retransmitted: counts.retransmitted(),
        retransmitted_syns: counts.retransmitted_syns,
        retransmitted_requests: counts.retransmitted_requests,
        retransmitted_acks: counts.retransmitted_acks,
        retransmitted_fins: counts.retransmitted_fins,
        duplicates: counts.duplicates,
        out_of_order: counts.out_of_order,
        unexpected: counts.unexpected,
        malformed: counts.malformed,
        resets_sent: counts.resets_sent,
        deferred_requests: counts.deferred,
        undeferred_requests: counts.undeferred,
        without_room: counts.no_room,
        arp_replies: counts.arp_replies,
        neighbour_advertisements: counts.advertisements,
        answer_bytes: counts.answer_bytes,
        intended_per_second: plan.load.rate.map(|rate| rate as f64),
        opening_ns: ran.opening_ns,
        opened_per_second: per_second(counts.opened, ran.opening_ns),
        duration_ns: ran.duration_ns,
        finished_per_second: per_second(counts.finished, span),
        late: ran.late,
        tuples_in_use: ran.busy,
        cpu_ns: ran.cpu_ns,
        handshake_ns: Distribution::whole(handshake),
        answer_ns: Distribution::whole(answer),
        nat: None,
    });
}

/// What was short. `bounded`: an end was asked for.
pub(super) fn judge(
    report: &mut Report,
    plan: &Plan,
    (counts, ran, open): (&Counts, &Ran, u64),
    bounded: bool,
) {
    let verdict = &mut report.result.verdict;
    if ran.stopped && bounded {
        verdict.fall_short(Code::Stopped, "stopped before its end");
    }
    let due = plan.load.rate.zip(plan.load.duration).map(|(rate, time)| {
        u64::try_from((u128::from(rate) * time.as_nanos()).div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
    });
    let due = due.into_iter().chain(plan.load.count).min();
    let opened = units::count(counts.opened);
    if let Some(due) = due.filter(|due| counts.opened < *due && !ran.stopped) {
        let why = match ran.busy {
            0 => "",
            _ => ": the tuples that came next were still in use; give more addresses with `.clients`",
        };
        let said =
            format!("{opened} of the {} that were due were opened{why}", units::counted(due, "connection"));
        verdict.fall_short(Code::RateNotReached, said);
    }
    if counts.failed() > 0 {
        verdict.fall_short(Code::SessionsFailed, failures(counts));
    }
    if let Some(said) = statuses(counts) {
        verdict.fall_short(Code::SessionsFailed, said);
    }
    if let Some(said) = lengths(counts) {
        verdict.fall_short(Code::SessionsFailed, said);
    }
    let answered = counts.used_again_answered;
    if answered < counts.used_again {
        let said = format!(
            "{} of {} that were used again were answered",
            units::count(answered),
            units::counted(counts.used_again, "connection")
        );
        verdict.fall_short(Code::SessionsFailed, said);
    }
    if counts.to_the_close > 0 {
        let said = format!(
            "{} of {} had no length that was read in their first segment, and the server's close ended them: whether any was cut short is not known",
            units::count(counts.to_the_close),
            units::counted(counts.answers(), "answer")
        );
        report.warnings.add(Code::AnswersUnknown, said);
    }
    of_udp(report, plan, (counts, ran));
    adds_up(report, (counts, ran, open));
    let verdict = &mut report.result.verdict;
    if counts.no_room > 0 {
        let said = format!(
            "{} not sent: the frames that asked for them had no room, and the driver gives none",
            units::counted(counts.no_room, "segment")
        );
        verdict.fall_short(Code::SessionsUnsent, said);
    }
}

/// What makes figures of UDP say less than they seem to.
fn of_udp(report: &mut Report, plan: &Plan, (counts, ran): (&Counts, &Ran)) {
    let slots = u64::from(plan.options.slots);
    if plan.options.udp && counts.opened > slots {
        let said = format!(
            "{} were opened from {}: those that had the tuple of an earlier one were no new sessions to a device that still knew it",
            units::counted(counts.opened, "session"),
            units::counted(slots, "tuple")
        );
        report.warnings.add(Code::SessionsFailed, (said, "give more addresses with `.clients`"));
    }
    if plan.options.udp && plan.load.use_again && !plan.options.from_server {
        let said = "what is asked again by its client shows nothing of a device: one that had forgotten a session of UDP makes it anew";
        report.warnings.add(Code::AnswersUnknown, (said, "have the server begin, with `.from_server`"));
    }
    if ran.without_cookie > 0 {
        report.result.verdict.fall_short(Code::SessionsFailed, no_relays(ran));
    }
    if counts.relays_refused > 0 {
        let said = format!(
            "the server refused {}, because it sends none or was started again: of those sessions nothing is known",
            units::counted(counts.relays_refused, "relay")
        );
        report.result.verdict.fall_short(Code::SessionsFailed, said);
    }
}

/// Why none was used again from the server's side.
pub(super) fn no_relays(ran: &Ran) -> String {
    format!(
        "of {} that were held {} had an answer without a cookie: the server sends nothing by itself, so none was used again; start `netdyno sessions serve` \
         with `.relay`",
        units::counted(ran.held, "session"),
        units::count(ran.without_cookie)
    )
}

/// Tags that stand beside frames, as Linux hands them on over a veth, are not seen by XDP: whoever answers with such ones is not heard.
pub(super) fn beside(report: &mut Report, plan: &Plan, place: &Place, counts: &Counts) {
    if plan.options.tag.is_some() && place.is_veth() && counts.opened > 0 && counts.rx_frames == 0 {
        let said = "nothing came back in the VLAN: if the other end of the veth hands tags on beside frames, as bridges and VLAN devices do, \
                    they are not seen here";
        report
            .warnings
            .add(Code::SessionsFailed, (said, "try `ethtool -K PEER txvlan off` where the frames come from"));
    }
}

/// How many connections failed, and how.
fn failures(counts: &Counts) -> String {
    let kinds = [
        (counts.reset, "reset"),
        (counts.timed_out, "timed out"),
        (counts.unanswered, "closed before the answer was whole"),
        (counts.closed_early, "closed by the server before their time"),
        (counts.refused, "ended because the server takes no segment as long as the request"),
        (counts.abandoned, "abandoned when the run was ended"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", units::count(*count)))
        .collect();
    format!(
        "{} of {} did not finish: {}",
        units::count(counts.failed()),
        units::counted(counts.opened, "connection"),
        kinds.join(", ")
    )
}

/// Answers that were whole and say that something is wrong.
fn statuses(counts: &Counts) -> Option<String> {
    let kinds = [
        (counts.status_1xx, "status 1xx, and none was read after it"),
        (counts.status_4xx, "status 4xx"),
        (counts.status_5xx, "status 5xx"),
        (counts.not_http, "no status of HTTP/1.1"),
        (counts.unread, "a status that was not read, because it came in several segments"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} had {what}", units::count(*count)))
        .collect();
    let of = units::counted(counts.answers(), "answer");
    (!kinds.is_empty()).then(|| format!("of {of} {}", kinds.join(", ")))
}

/// Answers that are not as long as they say, or say lengths that contradict each other.
fn lengths(counts: &Counts) -> Option<String> {
    let kinds = [
        (
            counts.misframed,
            "a Content-Length that is no number or contradicts another one: where it ends is not known",
        ),
        (counts.overlong, "more bytes than announced"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} had {what}", units::counted(*count, "answer")))
        .collect();
    (!kinds.is_empty()).then(|| kinds.join("; "))
}

/// Sums that must be equal, of which each side was counted by itself.
fn adds_up(report: &mut Report, (counts, ran, open): (&Counts, &Ran, u64)) {
    let verdict = &mut report.result.verdict;
    if counts.opened != counts.ended() + open {
        let said = format!(
            "{} opened, {} ended and {} still open by their slots: the programs did not count each once",
            units::counted(counts.opened, "connection"),
            units::count(counts.ended()),
            units::count(open)
        );
        verdict.fall_short(Code::CountersDisagree, said);
    } else if open > 0 && ran.duration_ns > 0 {
        let said = format!("{} left open", units::counted(open, "connection"));
        verdict.fall_short(Code::CountersDisagree, said);
    }
    if counts.answers() > counts.asked {
        let said = format!(
            "{} were asked and {} answered",
            units::counted(counts.asked, "request"),
            units::count(counts.answers())
        );
        verdict.fall_short(Code::CountersDisagree, said);
    }
}

/// The programs hand frames to the driver and never learn what became of them: the interface's own counter tells, by frames and by
/// bytes.
pub(super) fn compare(report: &mut Report, place: &Place, counts: &Counts, leaving: &mut Leaving) {
    against(report, place, (counts.tx_frames, counts.tx_bytes), leaving);
}

pub(super) fn against(
    report: &mut Report,
    place: &Place,
    (frames, bytes): (u64, u64),
    leaving: &mut Leaving,
) {
    let Some(moved) = leaving.settled(frames) else {
        let said = format!("the counters of {} can no longer be read", place.spec);
        report.warnings.add(Code::CountersUnreadable, said);
        return;
    };
    let seen = leaving.seen(frames, &moved, true);
    let told = Told {
        remedy: None,
        unaccounted: "; the other end of a veth takes them only while it has an XDP program of its own or GRO",
        nobody: "look at what arrived at the other end",
        completions: None,
    };
    counters::account(report, counters::compare(&place.spec, frames, &moved), &moved, &seen, &told);
    // Of a veth the counter knows the very frames; those of others add to it.
    if place.is_veth() && moved.tx_packets == frames && moved.tx_bytes != bytes {
        let said = format!(
            "{} were sent, and {} counted {}: frames left with other lengths",
            units::counted(bytes, "byte"),
            place.spec,
            units::count(moved.tx_bytes)
        );
        report.result.verdict.fall_short(Code::CountersDisagree, said);
    }
}
