//! What came of it, in the report.

use super::Plan;
use crate::place::Place;
use crate::run::counters::{self, Leaving, Told};
use histogram::Histogram;
use report::{Choice, Code, Distribution, Interval, Report, Rx, Totals, Tx, units};
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

fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

pub(super) fn fill(
    report: &mut Report,
    plan: &Plan,
    (counts, ran): (&Counts, &Ran),
    [handshake, answer]: &[Histogram; 2],
) {
    let span = ran.duration_ns;
    report.result.tx = Some(Tx {
        totals: Totals::over(counts.tx_frames, counts.tx_bytes, span),
        engine: "xdp".to_owned(),
        ..Tx::default()
    });
    report.result.rx =
        Some(Rx { totals: Totals::over(counts.rx_frames, counts.rx_bytes, span), ..Rx::default() });
    report.result.sessions = Some(report::Sessions {
        server: plan.options.server.to_string(),
        first_client: plan.options.first_address.to_string(),
        client_addresses: plan.options.addresses.into(),
        tuples: plan.options.slots.into(),
        opened: counts.opened,
        established: counts.established,
        finished: counts.finished,
        failed: counts.failed(),
        reset: counts.reset,
        timed_out: counts.timed_out,
        unanswered: counts.unanswered,
        abandoned: counts.abandoned,
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
        without_room: counts.no_room,
        arp_replies: counts.arp_replies,
        answer_bytes: counts.answer_bytes,
        intended_per_second: plan.load.rate.map(|rate| rate as f64),
        opening_ns: ran.opening_ns,
        opened_per_second: per_second(counts.opened, ran.opening_ns),
        duration_ns: ran.duration_ns,
        finished_per_second: per_second(counts.finished, ran.duration_ns),
        late: ran.late,
        tuples_in_use: ran.busy,
        cpu_ns: ran.cpu_ns,
        handshake_ns: Distribution::whole(handshake),
        answer_ns: Distribution::whole(answer),
    });
}

/// What was short. `bounded`: an end was asked for.
pub(super) fn judge(report: &mut Report, plan: &Plan, (counts, ran): (&Counts, &Ran), bounded: bool) {
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
        let kinds = [
            (counts.reset, "reset"),
            (counts.timed_out, "timed out"),
            (counts.unanswered, "closed without an answer"),
            (counts.abandoned, "abandoned when the run was ended"),
        ];
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", units::count(*count)))
            .collect();
        let said = format!(
            "{} of {} did not finish: {}",
            units::count(counts.failed()),
            units::counted(counts.opened, "connection"),
            kinds.join(", ")
        );
        verdict.fall_short(Code::SessionsFailed, said);
    }
    if counts.opened != counts.ended() && ran.duration_ns > 0 {
        let said = format!("{opened} connections were opened and {} ended", units::count(counts.ended()));
        verdict.fall_short(Code::CountersDisagree, said);
    }
    if counts.no_room > 0 {
        let said = format!(
            "{} not sent: the frames that asked for them had no room, and the driver gives none",
            units::counted(counts.no_room, "segment")
        );
        verdict.fall_short(Code::SessionsUnsent, said);
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
    if place.interface.kind.as_deref() == Some("veth")
        && moved.tx_packets == frames
        && moved.tx_bytes != bytes
    {
        let said = format!(
            "{} were sent, and {} counted {}: frames left with other lengths",
            units::counted(bytes, "byte"),
            place.spec,
            units::count(moved.tx_bytes)
        );
        report.result.verdict.fall_short(Code::CountersDisagree, said);
    }
}
