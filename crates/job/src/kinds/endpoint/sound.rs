//! What a result between two endpoints is worth, of whichever protocol: whether what both ends counted adds up, and what is to be known of
//! its figures.

use report::{Code, Datagrams, Endpoint as Tested, EndpointStream, Report, units};
use std::cmp::Ordering;

/// So many a second; none of no time.
pub fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Seconds in a result's own unit.
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// What a server says that it used, if that can be: nobody but it knows.
pub fn told(used: f64) -> Option<f64> {
    Some(used).filter(|used| used.is_finite() && *used >= 0.0)
}

/// What must add up between the ends of streams: nothing is received that was not sent. `is_sound`: no connection failed, which explains what
/// is missing.
pub fn streams_add_up(report: &mut Report, tested: &Tested, is_sound: bool) {
    let disagree = |report: &mut Report, said: String| {
        report.result.verdict.fall_short(Code::CountersDisagree, said);
    };
    for stream in tested.streams.iter().filter(|stream| !stream.sent_at_least) {
        let (from, to) =
            if stream.from_client { ("this host", "the server") } else { ("the server", "this host") };
        if let Some(d) = stream.datagrams.filter(|d| once(*d) > d.sent) {
            let said = format!(
                "{to} counts {} besides duplicates, and {from} sent {}: what was lost is not known",
                units::counted(once(d), "datagram"),
                units::count(d.sent)
            );
            disagree(report, said);
        }
        drops_fit(report, stream, tested.warm_up_ns == 0);
        // Who receives cannot always tell duplicates, and counts their bytes.
        let received = stream.received_bytes.unwrap_or(0);
        if tested.warm_up_ns == 0
            && stream.datagrams.is_some_and(|d| d.duplicated.is_none() && once(d) <= d.sent)
            && received > stream.sent_bytes
        {
            let said = format!(
                "{to} counts {} in datagrams, and {from} sent {}: some came twice, or its count is wrong",
                units::bytes(received),
                units::bytes(stream.sent_bytes)
            );
            report.warnings.add(Code::CountersDisagree, said);
        }
        // With a warm-up each end counts in a time of its own.
        let whole = tested.warm_up_ns == 0 && stream.datagrams.is_none();
        match stream.received_bytes.filter(|_| whole).map(|received| received.cmp(&stream.sent_bytes)) {
            Some(Ordering::Greater) => {
                let said = format!(
                    "{to} counts {}, and {from} sent {}: what was received is not known",
                    units::bytes(stream.received_bytes.unwrap_or(0)),
                    units::bytes(stream.sent_bytes)
                );
                disagree(report, said);
            }
            Some(Ordering::Less) if is_sound => {
                let missing = stream.sent_bytes - stream.received_bytes.unwrap_or(0);
                let said = format!(
                    "{} of {} that {from} handed to its kernel had not been read by {to} when it ended",
                    units::bytes(missing),
                    units::bytes(stream.sent_bytes)
                );
                report.warnings.add(Code::CountersDisagree, said);
            }
            Some(Ordering::Less | Ordering::Equal) | None => {}
        }
    }
}

/// What found no room in the receiver's socket was lost, or had come already. `is_whole`: all of it is of the time that counts; with a warm-up
/// drops of its edges are of either side.
fn drops_fit(report: &mut Report, stream: &EndpointStream, is_whole: bool) {
    let Some(d) = stream.datagrams else { return };
    let dropped = d.dropped_by_receiver.unwrap_or(0);
    if dropped <= d.lost.saturating_add(d.duplicated.unwrap_or(0)) {
        return;
    }
    let said = format!(
        "the receiver's kernel dropped {} of a stream of which {} were lost: why they were lost is not known",
        units::counted(dropped, "datagram"),
        units::count(d.lost)
    );
    match is_whole {
        true => report.result.verdict.fall_short(Code::CountersDisagree, said),
        false => report.warnings.add(Code::CountersDisagree, said),
    }
}

/// Those that arrived, each counted once as far as its receiver tells them apart.
fn once(d: Datagrams) -> u64 {
    d.received.saturating_sub(d.duplicated.unwrap_or(0))
}

/// What was lost and why, as far as that is known. `joined`: the receiver's kernel joins datagrams (UDP_GRO), and of those that it then drops it
/// counts several as one. `mend`: what helps a receiver that was too slow.
pub fn datagrams(report: &mut Report, d: Datagrams, joined: bool, mend: &'static str) {
    let dropped = d.dropped_by_receiver.unwrap_or(0);
    if d.lost > 0 && dropped == d.lost {
        let said = format!(
            "all {} that were lost had reached the receiver's host and found no room in its socket: the receiver was too slow, not \
             the network",
            units::counted(d.lost, "datagram")
        );
        report.warnings.add(Code::DatagramsExplained, (said, mend));
    } else if (1..d.lost).contains(&dropped) {
        let said = format!(
            "of {} that were lost {}{} had reached the receiver's host and found no room in its socket",
            units::counted(d.lost, "datagram"),
            if joined { "at least " } else { "" },
            units::count(dropped)
        );
        report.warnings.add(Code::DatagramsExplained, said);
    }
    if let Some(refused) = d.refused_by_sender.filter(|refused| *refused > 0) {
        let said = format!(
            "the sender's own host refused {} (ENOBUFS): they are not among those sent",
            units::counted(refused, "datagram")
        );
        report.warnings.add(Code::DatagramsExplained, said);
    }
}

/// The receiver made a figure that no program with the data could have: by `how`.
pub fn never_touched(report: &mut Report, how: &str) {
    let said = format!(
        "the receiver took the data by {how}: it was never touched, which no program that wants it can do"
    );
    report.warnings.add(Code::DataUntouched, said);
}

/// The sender did the same.
pub fn never_made(report: &mut Report) {
    let said = "the sender sent the same pages of memory again and again, without a copy: as a server of files does, not as a program \
                that makes its data";
    report.warnings.add(Code::DataUntouched, said);
}

/// Both ends are on one host.
pub fn on_one_host(report: &mut Report) {
    let said = "both ends are on this host: the CPU use of each is of both, and no network lies between";
    report.warnings.add(Code::EndsShared, said);
}

/// Nothing went, and nothing else explains that.
pub fn is_of_something(report: &mut Report, tested: &Tested) {
    let nothing = tested.opening.is_none()
        && tested.streams.iter().all(|stream| stream.sent_bytes == 0)
        && tested.transactions.as_ref().is_none_or(|t| t.count == 0);
    if nothing && matches!(report.result.verdict, report::Verdict::Done) {
        report.result.verdict.fall_short(Code::EndpointFailed, "nothing went between the ends");
    }
}
