//! What a pair's test came to, of its report, and what all of them come to.

use report::{
    Code, Mesh, MeshOutcome, MeshPair, MeshSchedule, MeshServed, Report, Said, Sentence, Verdict, units,
};

/// Reasons that the verdict names one by one; the pairs have all.
const REASONS: usize = 6;
/// Pairs that are named with each.
const NAMED: usize = 4;

/// A pair without a result.
pub(super) fn failed(pair: MeshPair, reason: String) -> MeshPair {
    MeshPair {
        outcome: MeshOutcome::Failed,
        reason: Some(reason),
        // Of a test that broke off nothing is told.
        bits_per_second: None,
        transactions_per_second: None,
        p50_ns: None,
        p99_ns: None,
        count: None,
        lost: None,
        loss_ratio: None,
        dropped_by_receiver: None,
        retransmits: None,
        ..pair
    }
}

/// A pair with what its client says.
pub(super) fn filled(mut pair: MeshPair, came: Result<Report, String>) -> MeshPair {
    let report = match came {
        Ok(report) => report,
        Err(why) => return failed(pair, why),
    };
    let reasons: Vec<String> =
        report.result.verdict.reasons().iter().map(|said| crate::lost::shown(said)).collect();
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    pair.outcome = match report.result.verdict {
        Verdict::Done => MeshOutcome::Done,
        Verdict::Short { .. } => MeshOutcome::Short,
        Verdict::Failed { .. } => {
            return failed(pair, reason.unwrap_or_else(|| "it was not done".to_owned()));
        }
    };
    pair.reason = reason;
    if let Some(stamp) = &report.result.stamp {
        (pair.count, pair.lost, pair.loss_ratio) = (Some(stamp.sent), Some(stamp.lost), stamp.loss_ratio);
        pair.dropped_by_receiver = Some(stamp.dropped_by_receiver);
        (pair.p50_ns, pair.p99_ns) = stamp.round_trip_ns.as_ref().map(|d| (d.p50, d.p99)).unzip();
    } else if let Some(test) = &report.result.endpoint {
        if let Some(stream) = test.streams.iter().find(|stream| stream.from_client) {
            pair.bits_per_second = stream.received_bits_per_second;
            if let Some(datagrams) = stream.datagrams {
                (pair.count, pair.lost) = (Some(datagrams.sent), Some(datagrams.lost));
                pair.loss_ratio = Some(datagrams.loss_ratio);
                pair.dropped_by_receiver = datagrams.dropped_by_receiver;
            }
        }
        if let Some(transactions) = &test.transactions {
            pair.transactions_per_second = Some(transactions.per_second);
            (pair.p50_ns, pair.p99_ns) = transactions.latency_ns.as_ref().map(|d| (d.p50, d.p99)).unzip();
            pair.count = Some(transactions.count);
            if test.test == "udp-rr" {
                let asked = transactions.count.saturating_add(transactions.lost);
                pair.lost = Some(transactions.lost);
                pair.loss_ratio = (asked > 0).then(|| transactions.lost as f64 / asked as f64);
            }
        }
        pair.retransmits = test.local.retransmits;
    } else {
        let reason = "its agent's report has no result of a test".to_owned();
        return failed(pair, reason);
    }
    pair
}

/// What a server counted, by its report.
pub(super) fn served(report: &Report) -> Option<MeshServed> {
    if let Some(reflection) = &report.result.reflection {
        return Some(MeshServed { answered: Some(reflection.reflected_frames), ..MeshServed::default() });
    }
    let served = report.result.served?;
    Some(MeshServed { tests: Some(served.tests), broken_tests: Some(served.broken_tests), answered: None })
}

/// The whole is as good as its worst pair; what both ends counted must agree.
/// `serve_none`: hosts whose agents are there, and started no server.
pub(super) fn judge(report: &mut Report, mesh: &Mesh, serve_none: &[String], stopped: bool) {
    let verdict = &mut report.result.verdict;
    let counted =
        [mesh.done, mesh.short, mesh.failed, mesh.not_begun].into_iter().fold(0, u64::saturating_add);
    if counted != mesh.tests {
        let said = format!("the hosts make {} pairs, and of {counted} something is known", mesh.tests);
        verdict.fall_short(Code::CountersDisagree, said);
    }
    for host in &mesh.hosts {
        if let Some(error) = &host.error {
            let is_there = serve_none.contains(&host.name);
            let code = if is_there { Code::EndpointFailed } else { Code::AgentLost };
            verdict.fall_short(code, format!("{}: {error}", host.name));
        }
    }
    for (code, said) in reasons(mesh) {
        verdict.fall_short(code, said);
    }
    if stopped {
        let open = units::counted(mesh.not_begun, "pair");
        verdict.fall_short(Code::Stopped, format!("stopped before its time was over: {open} not begun"));
    }
    if mesh.done + mesh.short == 0 {
        verdict.fail(Code::EndpointFailed, "no pair was tested");
    }
    for host in &mesh.hosts {
        compare(report, mesh, host);
    }
}

/// What clients warned of, each warning once with its pairs; and whether tests that were to be all at once were that.
pub(super) fn warn(report: &mut Report, mesh: &Mesh, warnings: &[(String, Said)]) {
    if mesh.schedule == MeshSchedule::AllAtOnce
        && !mesh.loads_network()
        && let Some((apart, lasts)) = mesh.began_within_ns.zip(mesh.test_duration_ns)
    {
        let said = format!(
            "the tests began up to {} apart and measured for {} each: not all of it is of the network that all of them load",
            units::time(apart),
            units::time(lasts)
        );
        report.warnings.add(Code::WentWithout, (said, "test for longer (`.duration`)"));
    }
    // The same warning has other numbers at each pair.
    let mut groups: Vec<((Code, String), &Said, Vec<&str>)> = Vec::new();
    for (pair, said) in warnings {
        let key = (said.code, uncounted(said.cause()));
        match groups.iter_mut().find(|(own, ..)| *own == key) {
            Some((.., pairs)) => pairs.push(pair),
            None => groups.push((key, said, vec![pair])),
        }
    }
    for (_, said, pairs) in groups.iter().take(REASONS) {
        let differ = |(_, other): &&(String, Said)| {
            other.cause() != said.cause() && uncounted(other.cause()) == uncounted(said.cause())
        };
        let others = if warnings.iter().any(|other| differ(&other)) {
            " (of the first; others have other numbers)"
        } else {
            ""
        };
        let text = format!("{}: {}{others}", named(pairs.iter().copied()), crate::lost::shown(said.cause()));
        // Tests all at once have company at their servers, as asked; a server that others used, too, is found by its count.
        let is_as_asked = mesh.schedule == MeshSchedule::AllAtOnce && said.code == Code::ServerShared;
        let (asked, remedy) = match is_as_asked {
            true => (" (as it is with all tests at once)", None),
            false => ("", said.remedy().map(crate::lost::shown)),
        };
        report.warnings.add(said.code, Sentence::new(text + asked, remedy));
    }
    let more: usize = groups.iter().skip(REASONS).map(|(.., pairs)| pairs.len()).sum();
    if more > 0 {
        let said = format!("pairs gave {} more, of other kinds", units::counted(more as u64, "warning"));
        report.warnings.add(Code::WentWithout, said);
    }
}

/// A text without its numbers and their units' prefixes.
fn uncounted(text: &str) -> String {
    let words =
        text.split(' ').map(|word| if word.starts_with(|c: char| c.is_ascii_digit()) { "0" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The first of some pairs, and how many more there are.
fn named<'p>(pairs: impl ExactSizeIterator<Item = &'p str>) -> String {
    let more = pairs.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    pairs.take(NAMED).collect::<Vec<_>>().join(", ") + &more
}

/// Why pairs were not done as asked: each reason once, with its pairs. What a host is to blame for was said of the host.
fn reasons(mesh: &Mesh) -> Vec<(Code, String)> {
    let mut groups: Vec<((MeshOutcome, &str), Vec<&MeshPair>)> = Vec::new();
    for pair in &mesh.pairs {
        let why = pair.reason.as_deref().unwrap_or("it was not done as asked");
        let is_of_host =
            || mesh.hosts.iter().filter_map(|host| host.error.as_deref()).any(|error| why.contains(error));
        match pair.outcome {
            MeshOutcome::Short => {}
            MeshOutcome::Failed if !is_of_host() => {}
            _ => continue,
        }
        let key = (pair.outcome, why);
        match groups.iter_mut().find(|(own, _)| *own == key) {
            Some((_, pairs)) => pairs.push(pair),
            None => groups.push((key, vec![pair])),
        }
    }
    let mut said: Vec<(Code, String)> = groups
        .iter()
        .take(REASONS)
        .map(|((outcome, why), pairs)| {
            let names: Vec<String> = pairs.iter().map(|pair| pair.name()).collect();
            let named = named(names.iter().map(String::as_str));
            let text = format!("{named} {}: {}", word(*outcome), crate::lost::shown(why));
            (Code::EndpointFailed, text)
        })
        .collect();
    let more: usize = groups.iter().skip(REASONS).map(|(_, pairs)| pairs.len()).sum();
    if more > 0 {
        let text = format!("so did {more} more for other reasons, which stand beside each pair");
        said.push((Code::EndpointFailed, text));
    }
    said
}

fn word(outcome: MeshOutcome) -> &'static str {
    match outcome {
        MeshOutcome::Short => "fell short",
        _ => "failed",
    }
}

/// A server knows at least the tests that its clients did, and at most those that they began.
fn compare(report: &mut Report, mesh: &Mesh, host: &report::MeshHost) {
    let Some(served) = host.served else { return };
    let to = || mesh.pairs.iter().filter(|pair| pair.to == host.name);
    let sum = |of: &dyn Fn(&MeshPair) -> u64| to().map(of).fold(0, u64::saturating_add);
    let (what, counted, least, most) = match (served.tests, served.answered) {
        (Some(tests), _) => {
            let least = sum(&|pair| matches!(pair.outcome, MeshOutcome::Done | MeshOutcome::Short).into());
            let most = sum(&|pair| pair.began_ns.is_some().into());
            ("tests", tests, least, most)
        }
        (None, Some(answered)) => {
            let least = sum(&|pair| pair.count.unwrap_or(0).saturating_sub(pair.lost.unwrap_or(0)));
            // Answers may be lost on their way back.
            let most = if to().any(|pair| pair.outcome == MeshOutcome::Failed) {
                u64::MAX
            } else {
                sum(&|pair| pair.count.unwrap_or(0))
            };
            ("answered packets", answered, least, most)
        }
        (None, None) => return,
    };
    let [counted_said, least_said, most_said] = [counted, least, most].map(units::count);
    if counted < least {
        let said =
            format!("{}: its server counted {counted_said} {what}, and its clients {least_said}", host.name);
        report.result.verdict.fall_short(Code::CountersDisagree, said);
    } else if counted > most {
        let said = Sentence::from((
            format!(
                "{}: its server counted {counted_said} {what}, of which {most_said} at most are of this mesh",
                host.name
            ),
            "let nothing else use it meanwhile",
        ));
        report.warnings.add(Code::EndsShared, said);
    } else if served.answered.is_some() {
        // What came and found no room was on its way back, and not lost there.
        let came = sum(&|pair| {
            let [sent, lost, dropped] =
                [pair.count, pair.lost, pair.dropped_by_receiver].map(Option::unwrap_or_default);
            sent.saturating_sub(lost).saturating_add(dropped)
        });
        if most < u64::MAX && counted > came.saturating_mul(2) {
            let which = if came == 0 { "they were" } else { "the others were" };
            let said = format!(
                "{}: its reflector answered {counted_said}, and its clients got {least_said}: {which} lost on the way back (a veth \
                 without XDP at its other end hands such answers on late or not at all)",
                host.name
            );
            report.warnings.add(Code::DatagramsExplained, said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{MeshFigure, MeshHost};

    fn mesh(served: [u64; 2], outcomes: [MeshOutcome; 2]) -> Mesh {
        let host = |name: &str, tests| MeshHost {
            name: name.to_owned(),
            agent: true,
            served: Some(MeshServed { tests: Some(tests), ..MeshServed::default() }),
            ..MeshHost::default()
        };
        let pair = |from: &str, to: &str, outcome| MeshPair {
            from: from.to_owned(),
            to: to.to_owned(),
            outcome,
            began_ns: (outcome != MeshOutcome::NotBegun).then_some(0),
            p50_ns: (outcome == MeshOutcome::Done).then_some(50_000),
            reason: (outcome == MeshOutcome::Failed).then(|| "connection refused".to_owned()),
            ..MeshPair::default()
        };
        let mut mesh = Mesh {
            compared_by: MeshFigure::Latency,
            hosts: vec![host("a", served[0]), host("b", served[1])],
            pairs: vec![pair("a", "b", outcomes[0]), pair("b", "a", outcomes[1])],
            ..Mesh::default()
        };
        mesh.tests = mesh.pairs_of_hosts();
        mesh.conclude();
        mesh
    }

    fn judged(mesh: &Mesh, stopped: bool) -> (Report, Vec<String>) {
        let mut report = Report::new("endpoint");
        judge(&mut report, mesh, &[], stopped);
        let reasons = report.result.verdict.reasons().iter().map(|said| said.to_string()).collect();
        (report, reasons)
    }

    #[test]
    fn a_server_that_counted_other_than_its_clients_is_named() {
        use MeshOutcome::{Done, Failed};
        let (report, reasons) = judged(&mesh([1, 1], [Done, Done]), false);
        assert_eq!((reasons.len(), report.warnings.is_empty()), (0, true));
        let (_, reasons) = judged(&mesh([1, 0], [Done, Done]), false);
        assert_eq!(reasons, ["b: its server counted 0 tests, and its clients 1"]);
        let (report, reasons) = judged(&mesh([2, 1], [Done, Done]), false);
        assert!(
            reasons.is_empty()
                && report.warnings[0].contains("a: its server counted 2 tests, of which 1 at most")
        );
        // A test that failed may have come to the server or not.
        for tests in [0, 1] {
            let (report, reasons) = judged(&mesh([tests, 1], [Done, Failed]), false);
            assert_eq!(reasons, ["b to a failed: connection refused"]);
            assert!(report.warnings.is_empty());
        }
    }

    #[test]
    fn the_whole_is_as_good_as_its_worst_pair_and_a_pair_that_is_missing_is_noticed() {
        use MeshOutcome::{Done, Failed, NotBegun};
        let (report, reasons) = judged(&mesh([0, 0], [Failed, Failed]), false);
        assert_eq!((report.result.verdict.exit_status(), &*reasons[0]), (2, "no pair was tested"));
        let (report, reasons) = judged(&mesh([0, 1], [Done, NotBegun]), true);
        assert_eq!(report.result.verdict.exit_status(), 1);
        assert_eq!(reasons, ["stopped before its time was over: 1 pair not begun"]);
        let mut lacks = mesh([0, 1], [Done, Done]);
        lacks.pairs.pop();
        lacks.conclude();
        let (_, reasons) = judged(&lacks, false);
        assert!(
            reasons.iter().any(|said| said == "the hosts make 2 pairs, and of 1 something is known"),
            "{reasons:?}"
        );
        let mut lost = mesh([0, 0], [Failed, Done]);
        lost.hosts[1].error = Some("its agent was lost: its command ended".to_owned());
        lost.hosts[1].served = None;
        let (_, reasons) = judged(&lost, false);
        assert_eq!(reasons[0], "b: its agent was lost: its command ended");
    }

    #[test]
    fn an_agent_that_starts_no_server_is_not_lost() {
        use MeshOutcome::{Done, Failed};
        let mut none = mesh([1, 0], [Failed, Done]);
        none.hosts[1].error = Some("its agent starts no server: Address already in use".to_owned());
        none.hosts[1].served = None;
        for (serve_none, code) in [(vec![], Code::AgentLost), (vec!["b".to_owned()], Code::EndpointFailed)] {
            let mut report = Report::new("endpoint");
            judge(&mut report, &none, &serve_none, false);
            assert_eq!(report.result.verdict.reasons()[0].code, code);
        }
    }

    #[test]
    fn a_test_whose_begin_had_no_answer_may_be_among_those_counted() {
        use MeshOutcome::{Done, Failed};
        let mut lost = mesh([1, 1], [Failed, Done]);
        let (report, _) = judged(&lost, false);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        lost.pairs[0].began_ns = None;
        let (report, _) = judged(&lost, false);
        assert!(report.warnings[0].contains("b: its server counted 1 tests, of which 0 at most"));
    }

    #[test]
    fn a_receivers_drops_and_each_warning_of_pairs_are_kept() {
        let mut of_pair = Report::new("endpoint");
        let datagrams = report::Datagrams {
            sent: 100,
            lost: 9,
            dropped_by_receiver: Some(9),
            ..report::Datagrams::default()
        };
        let stream = report::EndpointStream {
            from_client: true,
            datagrams: Some(datagrams),
            ..report::EndpointStream::default()
        };
        of_pair.result.endpoint =
            Some(report::Endpoint { streams: vec![stream], ..report::Endpoint::default() });
        let kept = filled(MeshPair::default(), Ok(of_pair));
        assert_eq!((kept.lost, kept.dropped_by_receiver), (Some(9), Some(9)));
        assert_eq!(failed(kept, "broken".to_owned()).dropped_by_receiver, None);

        let drops = |count: u64| {
            Code::DatagramsExplained.says(format!("all {count} datagrams found no room in its socket"))
        };
        let shared = || Code::EndsShared.says(("both ends are on one host", "use two"));
        let mut warnings: Vec<(String, Said)> = (0..6).map(|n| (format!("a to {n}"), drops(n))).collect();
        warnings.extend([("b to a".to_owned(), shared()), ("c to a".to_owned(), shared())]);
        let mut report = Report::new("endpoint");
        warn(&mut report, &Mesh::default(), &warnings);
        let said: Vec<String> = report.warnings.iter().map(|said| said.to_string()).collect();
        assert_eq!(
            said,
            [
                "a to 0, a to 1, a to 2, a to 3 and 2 more: all 0 datagrams found no room in its socket (of the first; others have other numbers)",
                "b to a, c to a: both ends are on one host; use two",
            ]
        );
        let mut report = Report::new("endpoint");
        let at_once = Mesh { schedule: MeshSchedule::AllAtOnce, ..Mesh::default() };
        let company = Code::ServerShared.says(("other clients' tests ran at the server meanwhile", "wait"));
        warn(&mut report, &at_once, &[("b to a".to_owned(), company), ("b to a".to_owned(), shared())]);
        let said: Vec<String> = report.warnings.iter().map(|said| said.to_string()).collect();
        assert_eq!(
            said,
            [
                "b to a: other clients' tests ran at the server meanwhile (as it is with all tests at once)",
                "b to a: both ends are on one host; use two",
            ]
        );

        let many: Vec<_> = ('a'..='i')
            .map(|letter| (format!("a to {letter}"), Code::EndsShared.says(format!("kind {letter}"))))
            .collect();
        let mut report = Report::new("endpoint");
        warn(&mut report, &Mesh::default(), &many);
        assert_eq!(report.warnings.len(), REASONS + 1);
        assert_eq!(&*report.warnings[REASONS], "pairs gave 3 warnings more, of other kinds");
    }

    #[test]
    fn tests_that_hardly_overlap_do_not_load_the_network_together() {
        for (apart, warns) in [(99_000_000, 0), (100_000_000, 1)] {
            let apart = Mesh {
                schedule: MeshSchedule::AllAtOnce,
                began_within_ns: Some(apart),
                test_duration_ns: Some(1_000_000_000),
                ..Mesh::default()
            };
            let mut report = Report::new("endpoint");
            warn(&mut report, &apart, &[]);
            assert_eq!(report.warnings.len(), warns, "{:?}", report.warnings);
        }
    }

    #[test]
    fn answers_that_no_client_got_were_lost_on_the_way_back() {
        let with = |answered: u64, came: u64, dropped: u64| {
            let mut stamp = mesh([0, 0], [MeshOutcome::Done, MeshOutcome::Done]);
            stamp.hosts[0].served = None;
            stamp.hosts[1].served = Some(MeshServed { answered: Some(answered), ..MeshServed::default() });
            let pair = &mut stamp.pairs[0];
            (pair.count, pair.lost, pair.dropped_by_receiver) = (Some(100), Some(100 - came), Some(dropped));
            let (report, reasons) = judged(&stamp, false);
            assert!(reasons.is_empty(), "{reasons:?}");
            report.warnings.iter().map(|said| said.to_string()).collect::<Vec<_>>()
        };
        let said = with(100, 0, 0);
        assert!(
            said[0].starts_with(
                "b: its reflector answered 100, and its clients got 0: they were lost on the way back"
            ),
            "{said:?}"
        );
        // Few are lost, all were lost on the way there, or there was no room for them.
        for (answered, came, dropped) in [(100, 90, 0), (0, 0, 0), (100, 0, 60)] {
            assert!(with(answered, came, dropped).is_empty());
        }
    }
}
