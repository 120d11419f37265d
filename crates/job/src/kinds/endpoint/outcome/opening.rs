//! What became of connections that were to be opened (`connection-rate`).

use super::{Part, PartOutcome, Report};
use ::endpoint::native::Work;
use ::transport::crowd::calls::Opened;
use report::{Code, Opening, units};

/// Of all repetitions. None: no connection was to be opened.
pub fn of(part: &Part, all: &[PartOutcome<'_>]) -> Option<Opening> {
    if part.test.plan.work != Work::Open {
        return None;
    }
    let opened = |(_, outcome, _): &PartOutcome<'_>| outcome.ours.opened.clone();
    let sum = all.iter().filter_map(opened).reduce(|sum, one| Opened {
        // States, not sums.
        most: one.most.max(sum.most),
        held: one.held,
        ..sum.plus(&one)
    });
    let hold = part.test.plan.hold;
    sum.map(|o| Opening {
        attempts: o.attempts,
        opened: o.opened,
        failed: o.failed(),
        refused: o.refused,
        timed_out: o.timed_out,
        no_port: o.no_port,
        reset: o.reset,
        no_file: o.no_file,
        unreachable: o.unreachable,
        other: o.other,
        error: o.error,
        unfinished: o.unfinished,
        most_open: o.most,
        hold,
        held: o.held,
        broken: o.broken,
    })
}

/// Was it done as asked? `unsent`: due and not tried.
pub fn judge(report: &mut Report, opening: &Opening, unsent: u64) {
    let connections = |count| units::counted(count, "connection");
    let mut short = |said: String, mend: &str| {
        let code = Code::EndpointFailed;
        match mend {
            "" => report.result.verdict.fall_short(code, said),
            mend => report.result.verdict.fall_short(code, (said, mend.to_owned())),
        }
    };
    if opening.failed > 0 {
        let reasons: Vec<String> =
            opening.reasons().map(|(reason, count)| format!("{} {reason}", units::count(count))).collect();
        let error = opening
            .error
            .as_deref()
            .map_or_else(String::new, |error| format!("; the first: {}", units::printable(error)));
        let mend = if opening.no_port > 0 {
            "an address has some 28,000 ports towards each port of another: widen net.ipv4.ip_local_port_range, or hold fewer"
        } else if opening.no_file > 0 {
            "raise this process's hard limit of files (ulimit -Hn, RLIMIT_NOFILE)"
        } else if opening.timed_out > 0 {
            "see if the server's accept queue overflowed (ListenOverflows; raise net.core.somaxconn there), or open fewer at once (`.parallel`)"
        } else {
            ""
        };
        short(format!("{} failed: {}{error}", connections(opening.failed), reasons.join(", ")), mend);
    }
    if opening.broken > 0 {
        short(format!("{} that were held broke", connections(opening.broken)), "");
    }
    if opening.hold > 0 && opening.held < opening.hold {
        let said =
            format!("{} were held at the end, of {}", units::count(opening.held), connections(opening.hold));
        short(said, "give it longer by `.duration`");
    }
    if opening.opened == 0 {
        short("no connection was opened".to_owned(), "");
    }
    if unsent > 0 {
        let said = format!(
            "the load was not offered: {} were due and not tried within the test",
            connections(unsent)
        );
        report.result.verdict.fall_short(
            Code::RateNotReached,
            (said, "permit more handshakes at once by `.parallel`, or offer less"),
        );
    }
}
