//! What a clone came to: the result's figures, and whether all was done that was asked.

use super::safety;
use super::worker::Done;
use clone::digest::FirstDifference;
use clone::exchange::{Comparison, Difference, Kind};
use clone::framing::Line;
use clone::funnel::Funnel;
use histogram::Histogram;
use report::{
    Cloned, ClonedAnswers, ClonedDifference, ClonedNoise, ClonedPlace, Code, Distribution, Report, units,
};
use spec::Cloning;
use std::cmp::Reverse;
use std::net::IpAddr;

/// Differences that the result lists.
const MOST_LISTED: usize = 100;
/// Bytes of a field's value that are shown.
const MOST_SHOWN: usize = 80;

/// The funnel, the target's answers, the second target's.
fn sum(done: &[Done]) -> (Funnel, Comparison, Comparison) {
    let (mut funnel, mut comparison, mut noise) =
        (Funnel::default(), Comparison::default(), Comparison::default());
    for one in done {
        funnel.add(&one.funnel);
        comparison.add(&one.comparison);
        noise.add(&one.noise);
    }
    (funnel, comparison, noise)
}

pub fn fill(report: &mut Report, args: &Cloning, done: &[Done]) {
    let (funnel, comparison, second) = sum(done);
    let noise = args.noise_target.as_ref().filter(|_| !args.dry_run);
    report.result.cloned = Some(Cloned {
        frames: funnel.frames,
        dropped_frames: done.iter().map(|done| done.dropped).sum(),
        sessions: funnel.sessions,
        not_forwarded_sessions: done.iter().filter_map(|done| done.not_forwarded).reduce(u64::saturating_add),
        bytes: funnel.bytes,
        connections: funnel.copies,
        sent: funnel.said,
        answers: (!args.dry_run).then(|| answers(&comparison, noise.map(|_| &second), args.speed.is_none())),
        noise: noise.map(|target| ClonedNoise {
            target: target.clone(),
            connections: funnel.second_copies,
            sent: funnel.second_said,
            answers: answers(&second, None, args.speed.is_none()),
        }),
        contradictions: [&comparison, &second]
            .into_iter()
            .filter_map(Comparison::contradiction)
            .chain(funnel.contradictions())
            .chain(done.iter().filter_map(|done| done.contradiction.clone()))
            .collect(),
        turned_away: done.iter().map(|done| done.turned_away).sum(),
        cpu_ns: done.iter().map(|done| done.cpu_ns).sum(),
    });
}

/// `noise`: of the second target. `true_time`: a capture that is played faster says nothing of how long its server took.
fn answers(c: &Comparison, noise: Option<&Comparison>, true_time: bool) -> ClonedAnswers {
    let of =
        |histogram: &Histogram| (histogram.count() > 0).then(|| Distribution::whole(histogram)).flatten();
    let online = |histogram: &Histogram| if true_time { of(histogram) } else { None };
    let mut ranked = c.ranked();
    // What the second target has as often is noise: what is beyond that comes first.
    if let Some(noise) = noise {
        ranked.sort_by_key(|(difference, kind)| Reverse(kind.count.saturating_sub(noise.alike(difference))));
    }
    let listed = ranked.iter().take(MOST_LISTED).map(|(difference, kind)| {
        let noise = noise.map(|noise| noise.alike(difference));
        ClonedDifference { count: kind.count, noise, ..told(difference, kind) }
    });
    ClonedAnswers {
        requests: c.requests,
        compared: c.compared,
        same: c.same,
        lines_differ: c.lines_differ,
        malformed: c.malformed,
        sizes_differ: c.sizes_differ,
        bodies_differ: c.bodies_differ,
        cut_short: c.cut_short,
        fields_differ: c.fields_differ,
        in_part: c.in_part,
        online_unanswered: c.online_unanswered,
        target_unanswered: c.target_unanswered,
        cut: c.cut,
        unsaid: c.unsaid,
        unfollowed: c.unfollowed,
        unframed_sessions: c.unframed_sessions,
        unread_sessions: c.unread_sessions,
        online_first_byte_ns: online(&c.online_first),
        online_last_byte_ns: online(&c.online_last),
        target_first_byte_ns: of(&c.target_first),
        target_last_byte_ns: of(&c.target_last),
        delay_ns: of(&c.delay),
        differences: listed.collect(),
        other_differences: c.other_kinds
            + ranked.iter().skip(MOST_LISTED).map(|(_, kind)| kind.count).sum::<u64>(),
    }
}

/// A kind of differences, in words.
fn told(difference: &Difference, kind: &Kind) -> ClonedDifference {
    let of =
        |line: &Line, what: &str| if line.is_empty() { what.to_owned() } else { format!("{line}, {what}") };
    let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let first = match &kind.first {
        Some(FirstDifference::Body(Some((offset, [online, target])))) => {
            Some(ClonedPlace { offset: *offset, online: shown(online), target: shown(target) })
        }
        _ => None,
    };
    let (name, online, target) = match difference {
        Difference::Line(online, target) => ("first_line", text(online), text(target)),
        Difference::Malformed(line) => {
            ("malformed", of(line, "whole"), "malformed: where it ends is not known".to_owned())
        }
        Difference::Size(line, online, target) => {
            ("size", of(line, &format!("{online} bytes")), of(line, &format!("{target} bytes")))
        }
        Difference::Body(line) => {
            let other = if first.is_some() { "another" } else { "another, behind its first 2,048 bytes" };
            ("body", of(line, "a body"), other.to_owned())
        }
        Difference::CutShort(line) => {
            ("cut_short", of(line, "whole"), "cut short: less came than its head announces".to_owned())
        }
        Difference::Field(line, name) => {
            let value = |value: &Option<Vec<u8>>| match value {
                Some(value) => format!("{name}: {}", shown(value.get(..MOST_SHOWN).unwrap_or(value))),
                None => format!("no {name}"),
            };
            match &kind.first {
                Some(FirstDifference::Field(_, [online, target])) => {
                    ("field", of(line, &value(online)), value(target))
                }
                _ => ("field", of(line, "a head"), "another".to_owned()),
            }
        }
    };
    let example = kind.example.to_string();
    ClonedDifference { kind: name.to_owned(), online, target, example, first, ..ClonedDifference::default() }
}

fn text(line: &Line) -> String {
    if line.is_empty() { "nothing".to_owned() } else { line.to_string() }
}

pub fn judge(report: &mut Report, args: &Cloning, server: (Option<IpAddr>, u16), done: &[Done]) {
    let (funnel, ..) = sum(done);
    let Some(cloned) = report.result.cloned.clone() else { return };
    let verdict = &mut report.result.verdict;
    for wrong in &cloned.contradictions {
        verdict.fall_short(
            Code::CountersDisagree,
            format!("what became of the copies does not add up: {wrong}"),
        );
    }
    for fault in done.iter().filter_map(|done| done.fault.as_ref()) {
        verdict.fall_short(Code::SourceFailed, format!("capturing was interrupted: {fault}"));
    }
    if let Some(said) = safety::direction(args, server, &funnel.frames, &funnel.sessions) {
        verdict.fall_short(Code::CaptureOneSided, said);
    }
    judge_capture(report, args, &cloned);
    judge_sessions(report, args, &cloned);
    warn_of_what_was_left_out(report, &cloned);
    warn_of_strangers(report, args, &cloned);
    if args.dry_run {
        return;
    }
    judge_connections(report, &cloned);
    warn_of_answers(report, &cloned);
    judge_answers(report, args, &cloned);
    if let Some(noise) = &cloned.noise {
        judge_noise(report, noise);
    }
}

/// Who connected where captures of other hosts do, and was none.
fn warn_of_strangers(report: &mut Report, args: &Cloning, cloned: &Cloned) {
    if cloned.turned_away > 0 {
        let said = format!(
            "{} to {} {} not let in: without the key in time, of another server or version, or more than there is room for",
            units::counted(cloned.turned_away, "connection"),
            args.listen.as_deref().unwrap_or_default(),
            if cloned.turned_away == 1 { "was" } else { "were" }
        );
        report.warnings.add(Code::CaptureElsewhere, said);
    }
}

/// Sessions that the capture had in part.
fn judge_capture(report: &mut Report, args: &Cloning, cloned: &Cloned) {
    let (verdict, counted) = (&mut report.result.verdict, units::counted);
    if cloned.dropped_frames > 0 {
        let said = format!(
            "{} were lost before they could be looked at, and sessions with them",
            counted(cloned.dropped_frames, "frame")
        );
        verdict.fall_short(Code::MeterMissed, (said, "sample sessions, or give it more threads"));
    }
    let s = &cloned.sessions;
    if s.truncated > 0 {
        let said =
            format!("{} ended with a segment that was captured in part", counted(s.truncated, "session"));
        // Live it is what found no place but a slot of the ring, which holds its beginning.
        let remedy = match args.on {
            None if args.listen.is_some() => "sample sessions at the capture",
            Some(_) => {
                "sample sessions, or give it more threads: there was no room for segments that the kernel had joined (GRO)"
            }
            None => "capture whole frames: a snap length of 262144",
        };
        verdict.fall_short(Code::FramesCut, (said, remedy));
    }
    if s.shed > 0 {
        let said = format!(
            "{} were given up, because copying took more of the machine than it may",
            counted(s.shed, "session")
        );
        verdict.fall_short(Code::SessionsNotCopied, said);
    }
    if s.unforwarded > 0 {
        let said = format!(
            "{} were copied up to where the capture on another host gave them up: the way from it had no room, or broke",
            counted(s.unforwarded, "session")
        );
        verdict.fall_short(
            Code::SessionsNotCopied,
            (said, "sample sessions at the capture, or limit their rate"),
        );
    }
}

/// Sessions that were copied in part, or were not to be copied.
fn judge_sessions(report: &mut Report, args: &Cloning, cloned: &Cloned) {
    let (verdict, counted, s) = (&mut report.result.verdict, units::counted, &cloned.sessions);
    let others = s.truncated + s.shed + s.unforwarded + s.turned_tls;
    if s.cut() > others {
        let said = format!(
            "{} were copied up to a gap: {} lacked bytes that the server has, which is this capture's loss",
            counted(s.cut() - others, "session"),
            units::count(s.missed)
        );
        verdict.fall_short(Code::SessionsNotCopied, said);
    }
    if cloned.frames.urgent > 0 {
        let said = format!(
            "{} of copied sessions had urgent data (TCP's URG): its byte {} sent to the target as one of the others, and the \
             server's program may have got it apart from them",
            counted(cloned.frames.urgent, "segment"),
            if args.dry_run { "would be" } else { "is" }
        );
        verdict.fall_short(Code::SessionsNotCopied, said);
    }
    if s.tls + s.turned_tls > 0 {
        let said = format!(
            "{} of TLS: not copied from where that begins, because the target has keys of its own",
            counted(s.tls + s.turned_tls, "session")
        );
        let mend = "copy behind what ends TLS, between it and the server";
        verdict.fall_short(Code::SessionsNotCopied, (said, mend));
    }
    if s.own > 0 {
        let said = format!(
            "{} came from copies' own addresses or from the target, and were not copied again",
            counted(s.own, "session")
        );
        verdict.fall_short(
            Code::CopiesCameBack,
            (said, "does the target hand its requests on to the server that is copied, or is its host a client of it?"),
        );
    }
}

/// What nobody wanted copied, and frames that are odd.
fn warn_of_what_was_left_out(report: &mut Report, cloned: &Cloned) {
    let (counted, s) = (units::counted, &cloned.sessions);
    let left = s.over_sessions + s.over_rate + s.over_ceiling;
    if left > 0 {
        let said =
            format!("{} were not copied, because of the limits that were given", counted(left, "session"));
        report.warnings.add(Code::SessionsNotCopied, said);
    }
    if s.over_link > 0 {
        let said = format!(
            "{} were not copied, because the way from the capture on another host had no room, or was not there",
            counted(s.over_link, "session")
        );
        report.warnings.add(Code::SessionsNotCopied, said);
    }
    if cloned.frames.fragments > 0 {
        let said = format!(
            "{} left out: pieces of IP packets of which others were never captured, or that contradict each other",
            counted(cloned.frames.fragments, "frame")
        );
        report.warnings.add(Code::FragmentsLeftOut, said);
    }
    if cloned.bytes.different > 0 {
        let said = format!(
            "{} came again with other content; the first were copied",
            counted(cloned.bytes.different, "byte")
        );
        report.warnings.add(Code::FramesOdd, said);
    }
}

/// Connections to the target, and what was said by them.
fn judge_connections(report: &mut Report, cloned: &Cloned) {
    let counted = units::counted;
    let verdict = &mut report.result.verdict;
    let c = &cloned.connections;
    let failures = c.failures();
    let failed: u64 = failures.iter().map(|(_, count)| count).sum();
    if failed > 0 {
        let why = failures.iter().filter(|(_, count)| *count > 0);
        let why: Vec<String> = why.map(|(what, count)| format!("{} {what}", units::count(*count))).collect();
        let said = format!(
            "{} of {} to the target were not established: {}",
            units::count(failed),
            counted(c.wanted, "connection"),
            why.join(", ")
        );
        match c.no_address {
            0 => verdict.fall_short(Code::TargetUnreachable, said),
            _ => verdict.fall_short(
                Code::TargetUnreachable,
                (said, "give `.source_prefix`, or a larger one: each address has some 64,000 ports"),
            ),
        }
    }
    let unsaid = cloned.sent.due - cloned.sent.sent.min(cloned.sent.due);
    if unsaid > cloned.sent.unconnected {
        let said = format!(
            "{} of {} were not said to the target, though it was connected to",
            units::bytes(unsaid - cloned.sent.unconnected),
            units::bytes(cloned.sent.due)
        );
        verdict.fall_short(Code::BytesUnsent, said);
    }
}

/// What the target answered.
fn warn_of_answers(report: &mut Report, cloned: &Cloned) {
    let (counted, c) = (units::counted, &cloned.connections);
    if c.unanswered_ends > 0 {
        let said = format!(
            "{} to the target ended without the answers that the server had given by then: they did not come within {}",
            counted(c.unanswered_ends, "connection"),
            units::time(clone::replica::PATIENCE_NS)
        );
        report.warnings.add(Code::TargetDiffers, said);
    }
    if let Some(answers) = cloned.answers.as_ref().filter(|answers| answers.unread_sessions > 0) {
        let said = format!(
            "{} of HTTP/2 copied, and not compared: whose answer is whose is not told apart there",
            counted(answers.unread_sessions, "session")
        );
        report.warnings.add(Code::WentWithout, said);
    }
}

/// Whether as many answers are the server's as was asked for.
fn judge_answers(report: &mut Report, args: &Cloning, cloned: &Cloned) {
    let Some(answers) = &cloned.answers else { return };
    let said = format!(
        "{} of {} differ from the server's, {} more are missing",
        units::count(answers.differing()),
        units::counted(answers.compared, "answer"),
        units::count(answers.target_unanswered)
    );
    match args.max_differing {
        Some(_) if answers.compared + answers.target_unanswered == 0 => report.result.verdict.fall_short(
            Code::GoalNotReached,
            (
                "no answer was compared: whether the target answers as the server does is not known",
                "copy sessions with whole requests and answers, or leave out `.max_differing`",
            ),
        ),
        Some(most) if answers.different() > most => report.result.verdict.fall_short(
            Code::TargetDiffers,
            (
                format!("{said}: more than the {} that may (`.max_differing`)", units::count(most)),
                "what differs by nature is left out by `.ignore`",
            ),
        ),
        _ if answers.different() > 0 => report.warnings.add(Code::TargetDiffers, said),
        _ => {}
    }
    let judged = answers.compared + answers.target_unanswered;
    if args.max_differing.is_some() && judged > 0 {
        judge_uncompared(report, cloned, answers);
    } else if args.max_differing.is_none() && answers.unfollowed > judged {
        let said = format!(
            "{} {} compared, and {} were in sessions that could not be followed: which answer belongs to which request was not known there",
            units::counted(judged, "answer"),
            if judged == 1 { "was" } else { "were" },
            units::counted(answers.unfollowed, "request")
        );
        report.warnings.add(Code::WentWithout, said);
    }
}

/// What was not compared may differ. Some answers always are under way when a clone of live traffic ends: those are told, and where most
/// were not compared, or nobody knows, the bound was not kept.
fn judge_uncompared(report: &mut Report, cloned: &Cloned, answers: &ClonedAnswers) {
    let counted = units::counted;
    let all = [
        (answers.cut, "answer", "cut off"),
        (answers.unsaid, "request", "not said to the target"),
        (answers.unfollowed, "request", "in sessions that could not be followed"),
        (answers.unframed_sessions, "session", "followed in part only"),
        (answers.unread_sessions, "session", "of HTTP/2"),
    ];
    let all: Vec<String> = (all.iter().filter(|(count, ..)| *count > 0))
        .map(|(count, noun, what)| format!("{} {what}", counted(*count, noun)))
        .collect();
    if all.is_empty() {
        return;
    }
    let judged = answers.compared + answers.target_unanswered;
    let most = answers.cut + answers.unsaid + answers.unfollowed > judged
        || answers.unframed_sessions > cloned.sessions.taken() / 2
        || answers.unread_sessions > 0;
    let said = format!("beside {}, not compared were: {}", counted(judged, "answer"), all.join(", "));
    if most {
        let mend =
            "copy for longer, or sessions with whole requests and answers, or leave out `.max_differing`";
        let said =
            format!("too little was compared to know whether the target answers as the server does: {said}");
        report.result.verdict.fall_short(Code::GoalNotReached, (said, mend));
    } else {
        report.warnings.add(Code::WentWithout, said);
    }
}

/// Noise is known of what the second target heard.
fn judge_noise(report: &mut Report, noise: &ClonedNoise) {
    let c = &noise.connections;
    let lost = c.wanted - c.connected.min(c.wanted);
    let unsaid = noise.sent.due - noise.sent.sent.min(noise.sent.due);
    if lost + unsaid > 0 {
        let said = format!(
            "the second target {} did not hear everything: {} of {} were not established, {} were not sent: its noise is less than \
             there is",
            noise.target,
            units::count(lost),
            units::counted(c.wanted, "connection"),
            units::bytes(unsaid)
        );
        report.warnings.add(Code::TargetUnreachable, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{ClonedSessions, Verdict};

    /// The reasons and the number of warnings, of ten sessions.
    fn judged(max_differing: Option<u64>, answers: ClonedAnswers) -> (String, usize) {
        let sessions = ClonedSessions { copied: 10, ..ClonedSessions::default() };
        let cloned = Cloned { sessions, answers: Some(answers), ..Cloned::default() };
        let mut report = Report::new("clone");
        judge_answers(&mut report, &Cloning { max_differing, ..Cloning::default() }, &cloned);
        let reasons = match &report.result.verdict {
            Verdict::Done => String::new(),
            verdict => format!("{:?}", verdict.reasons()),
        };
        (reasons, report.warnings.len())
    }

    #[test]
    fn a_bound_on_what_differs_is_not_kept_where_most_was_not_compared() {
        let zero = Some(0);
        let of = |compared: u64| ClonedAnswers { compared, same: compared, ..ClonedAnswers::default() };
        assert_eq!(judged(zero, of(5)), (String::new(), 0));
        let (said, _) = judged(zero, ClonedAnswers { cut: 3, ..of(0) });
        assert!(said.contains("no answer was compared"), "{said}");
        // What was under way at the end is told.
        assert_eq!(judged(zero, ClonedAnswers { cut: 3, ..of(5) }), (String::new(), 1));
        for (answers, says) in [
            (ClonedAnswers { cut: 6, ..of(5) }, "beside 5 answers, not compared were: 6 answers cut off"),
            (ClonedAnswers { cut: 2, unfollowed: 4, ..of(5) }, "4 requests in sessions that could not be"),
            (ClonedAnswers { unframed_sessions: 6, ..of(5) }, "6 sessions followed in part only"),
            (ClonedAnswers { unread_sessions: 1, ..of(5) }, "1 session of HTTP/2"),
        ] {
            assert_eq!(judged(None, answers.clone()), (String::new(), 0), "{says}");
            let (said, warnings) = judged(zero, answers);
            assert!(
                said.contains("too little was compared") && said.contains(says) && warnings == 0,
                "{said}"
            );
        }
    }
}
