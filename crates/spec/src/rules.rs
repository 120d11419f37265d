//! That every rule of this crate is broken by a job of `rules.txt`: a rule that nobody has tried may name what is not there.

use crate::File;
use crate::check::Rules;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::Location;

/// Where rules stand in the sources, the place of one among those, and its member with what it says.
type Rule = ((&'static str, u32, u32), usize, String);

thread_local! {
    /// All rules that jobs were held to, and how many jobs broke each. (Who breaks one is told of the first alone.)
    static SEEN: RefCell<BTreeMap<Rule, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// Jobs are held to these.
#[track_caller]
pub fn seen(path: &str, rules: Rules<'_>) {
    let at = Location::caller();
    let at = (at.file(), at.line(), at.column());
    let broken = rules.iter().position(|(_, wrong, _)| *wrong);
    SEEN.with_borrow_mut(|seen| {
        for (number, (member, _, what)) in rules.iter().enumerate() {
            // Some name what was counted.
            let same = |rule: &&Rule| (rule.0, rule.1) == (at, number);
            let rule = match seen.keys().find(same) {
                Some(rule) => rule.clone(),
                None => (at, number, format!("{path}{member}: {what}")),
            };
            *seen.entry(rule).or_default() += u32::from(broken == Some(number));
        }
    });
}

/// What no text can say: each of these quantities is refused as nothing when it is read. A program may hand them over.
const OF_PROGRAMS: [&str; 12] = [
    "bytes: it is at least 1",
    "capture.rotate_size: it is at least 1",
    "connect_timeout: it is longer than 0",
    "duration: it is longer than 0",
    "find.transactions.below: it is longer than 0",
    "max_flows: it is at least 1",
    "rotate_size: it is at least 1",
    "size: it is at least 1",
    "transactions: it is at least 1",
    "gap_time: segments come out of order: give it more, such as 3s",
    "to: where is the server? Name its address and port",
    "wait: it is longer than 0",
];

#[test]
fn every_rule_is_broken_by_a_job_and_says_where() {
    let broken = || SEEN.with_borrow(|seen| seen.values().sum::<u32>());
    let (mut wrong, mut before) = (String::new(), 0);
    for job in include_str!("rules.txt").lines().filter(|line| line.starts_with("kind: ")) {
        let read = File::read(&format!("{{schema: netdyno.job/1, {job}}}"), "job");
        if broken() == before {
            let _ = writeln!(wrong, "{job}: it breaks no rule: {:?}", read.err().map(|bad| bad.to_string()));
        }
        before = broken();
    }
    SEEN.with_borrow(|seen| {
        assert!(seen.len() > 250, "{} rules", seen.len());
        for ((at, _, says), broken) in seen {
            if (*broken == 0) != OF_PROGRAMS.contains(&&**says) {
                let _ = writeln!(wrong, "{}:{}: {says}: {broken} jobs break it", at.0, at.1);
            }
        }
    });
    assert!(wrong.is_empty(), "each line of rules.txt breaks a rule, and each rule is broken:\n{wrong}");
}
