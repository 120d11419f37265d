//! A search's trials, one after the other: done, or taken from an earlier result; told to the search, kept for the report.
//!
//! What a trial is (frames through a device, a test between two endpoints) is the tester's matter. All searches go this way:
//!
//! ```text
//!   trial::Search -- Wanted --> drive --> Tester: an earlier row, or a trial
//!        ^                        |
//!        '------- Outcome --------'--> Course: the rows, what ended it, how long the rest takes
//! ```

use anyhow::{Result, bail};
use report::{Code, Report, units};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use trial::{Ahead, Left, Outcome, Remaining, Search, Wanted};

/// A trial as the result has it.
pub trait Row {
    /// Its number, from 1.
    fn number(&self) -> u32;

    /// What it came to.
    fn outcome(&self) -> Outcome;

    /// It was the trial of this number, after which so much was known: between which loads the answer lies, for each goal.
    fn learned(&mut self, number: u32, bounds: Vec<(Option<f64>, Option<f64>)>);
}

/// The trials of one command.
#[derive(Debug)]
pub struct Course<R> {
    /// All that were done, in order.
    pub rows: Vec<R>,
    /// Those of an earlier result that were not asked for yet.
    kept: VecDeque<R>,
    /// A trial that could not be carried out, which ended the search.
    pub fault: Option<String>,
    /// Which of how many frame sizes is tried, from 1.
    pub size_number: (usize, usize),
    started: Instant,
    sending_ns: u64,
    /// How long the rest takes.
    pub ahead: Ahead,
}

impl<R> Course<R> {
    /// Begins, with the trials of an earlier result.
    pub fn new(kept: Vec<R>) -> Course<R> {
        Course {
            rows: Vec::new(),
            kept: kept.into(),
            fault: None,
            size_number: (1, 1),
            started: Instant::now(),
            sending_ns: 0,
            ahead: Ahead::new(),
        }
    }

    /// For so long trials sent.
    pub fn sending_ns(&self) -> u64 {
        self.sending_ns
    }

    /// So long it takes so far, without what was done earlier.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What was done, if it could be. An error ends the search, and is told only if nothing was measured before that is worth keeping.
    pub fn carried<T>(&mut self, done: Result<T>) -> Result<Option<T>> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if self.rows.is_empty() => Err(error),
            Err(error) => {
                self.fault = Some(crate::in_full(&error));
                Ok(None)
            }
        }
    }

    /// How long the rest of all takes.
    pub fn left(&mut self, left: Left) -> Option<Remaining> {
        self.ahead.left(left, self.size_number.0)
    }

    /// Of a search that came to its end no trials of an earlier result may be left.
    pub fn check_used(&self) -> Result<()> {
        match self.kept.len() {
            0 => Ok(()),
            more => bail!(
                "`.continue`: that result has {} more than this search: it is of another one",
                units::counted(more as u64, "trial")
            ),
        }
    }

    /// Says in the result that the search ended before its last trial: by itself for this reason, or because a trial could not be
    /// carried out, or by hand.
    pub fn judge_incomplete(&self, report: &mut Report, why: Option<String>) {
        let after = units::counted(self.rows.len() as u64, "trial");
        let fault = self.fault.as_ref().map(|fault| format!("the next could not be carried out ({fault})"));
        let ended = match why.or(fault) {
            Some(why) => format!("ended after {after}, because {why}"),
            None => format!("interrupted after {after}"),
        };
        let next = match report.result.agents.is_empty() {
            true => "go on with `.continue` from a written result (`.report`, or `.json` to a file)",
            false => report::conclusion::BEGINS_ANEW,
        };
        report.result.verdict.fall_short(
            Code::SearchIncomplete,
            (format!("{ended}: what is known so far stands above"), next),
        );
    }
}

/// Who carries out the trials of a search.
pub trait Tester<S: ?Sized> {
    /// A trial as its result has it.
    type Row: Row;

    /// The trials so far.
    fn course(&mut self) -> &mut Course<Self::Row>;

    /// Is this the trial that is wanted?
    fn is_of(&self, row: &Self::Row, wanted: &Wanted) -> bool;

    /// Does somebody want it to end?
    fn is_stopped(&self) -> bool;

    /// Does a trial. `None` when it ended the search.
    fn attempt(&mut self, wanted: &Wanted, search: &S) -> Result<Option<(Self::Row, Outcome)>>;

    /// The last trial is over: tells how it stands.
    fn over(&mut self, search: &S, left: Option<Remaining>);
}

/// Tells a search the trials that an earlier result has.
///
/// # Errors
/// That they are of another search.
pub fn go_on<S: Search + ?Sized, T: Tester<S>>(search: &mut S, tester: &mut T) -> Result<()> {
    while let Some(wanted) = search.next() {
        let Some(row) = tester.course().kept.pop_front() else { break };
        if !tester.is_of(&row, &wanted) {
            bail!(
                "`.continue`: trial {} of that result is not the one that this search would do there: it is of another search, or of another version of netdyno; start anew without `.continue`",
                row.number()
            );
        }
        search.tell(&row.outcome());
        let course = tester.course();
        course.sending_ns += wanted.sending_ns();
        course.ahead.tried(wanted.sending_ns(), None);
        course.rows.push(row);
    }
    Ok(())
}

/// Carries a search to its end; false when it was ended before.
///
/// # Errors
/// That nothing could be measured, or that the earlier result is of another search.
pub fn drive<S: Search + ?Sized, T: Tester<S>>(search: &mut S, tester: &mut T) -> Result<bool> {
    go_on(search, tester)?;
    while let Some(wanted) = search.next() {
        if tester.is_stopped() {
            return Ok(false);
        }
        let started = Instant::now();
        let done = tester.attempt(&wanted, search);
        let course = tester.course();
        let Some((mut row, outcome)) = course.carried(done)?.flatten() else { return Ok(false) };
        course.sending_ns += wanted.sending_ns();
        course.ahead.tried(wanted.sending_ns(), Some(super::nanos(started.elapsed())));
        search.tell(&outcome);
        row.learned(course.rows.len() as u32 + 1, search.bounds());
        course.rows.push(row);
        let left = course.left(search.left());
        tester.over(search, left);
    }
    Ok(true)
}

/// How long the rest takes, as the end of a sentence.
pub fn ahead_said(left: Option<Remaining>) -> String {
    match left {
        None => String::new(),
        Some(Remaining { ns, at_most }) => {
            format!("; {} {} left", if at_most { "at most" } else { "about" }, units::ahead(ns))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::Verdict;
    use trial::{Repeated, RepeatedPlan};

    #[derive(Debug, Clone, PartialEq)]
    struct Tried(u32, f64);

    impl Row for Tried {
        fn number(&self) -> u32 {
            self.0
        }

        fn outcome(&self) -> Outcome {
            Outcome::judged(true)
        }

        fn learned(&mut self, number: u32, _: Vec<(Option<f64>, Option<f64>)>) {
            self.0 = number;
        }
    }

    /// Does trials until one cannot be carried out, or until it is stopped.
    struct Bench {
        course: Course<Tried>,
        breaks_at: usize,
        stops_at: usize,
        left: Vec<bool>,
    }

    impl Tester<Repeated> for Bench {
        type Row = Tried;

        fn course(&mut self) -> &mut Course<Tried> {
            &mut self.course
        }

        fn is_of(&self, row: &Tried, wanted: &Wanted) -> bool {
            row.1 == wanted.load
        }

        fn is_stopped(&self) -> bool {
            self.course.rows.len() >= self.stops_at
        }

        fn attempt(&mut self, wanted: &Wanted, _: &Repeated) -> Result<Option<(Tried, Outcome)>> {
            if self.course.rows.len() >= self.breaks_at {
                bail!("no more");
            }
            Ok(Some((Tried(0, wanted.load), Outcome::judged(true))))
        }

        fn over(&mut self, _: &Repeated, left: Option<Remaining>) {
            self.left.push(left.is_some());
        }
    }

    fn search() -> Repeated {
        Repeated::new(RepeatedPlan { loads: vec![10.0, 20.0], trial_ns: 1000, then: None, repetitions: 2 })
    }

    fn bench(kept: Vec<Tried>, breaks_at: usize, stops_at: usize) -> Bench {
        Bench { course: Course::new(kept), breaks_at, stops_at, left: Vec::new() }
    }

    fn whole() -> Vec<Tried> {
        [10.0, 10.0, 20.0, 20.0].into_iter().zip(1..).map(|(load, number)| Tried(number, load)).collect()
    }

    #[test]
    fn a_search_that_goes_on_has_the_same_trials_as_one_that_was_not_interrupted() {
        for kept in 0..=4 {
            let mut bench = bench(whole()[..kept].to_vec(), 99, 99);
            assert!(drive(&mut search(), &mut bench).expect("its own trials"));
            assert_eq!(bench.course.rows, whole());
            assert!(bench.course.check_used().is_ok());
            assert_eq!(bench.course.sending_ns(), 4000);
            // Of those that are done now each but the last has some ahead.
            let ahead: Vec<bool> = (kept..4).map(|number| number < 3).collect();
            assert_eq!(bench.left, ahead);
        }
    }

    #[test]
    fn trials_of_another_search_are_refused() {
        let mut other = whole();
        other[1].1 = 11.0;
        let error = drive(&mut search(), &mut bench(other, 99, 99)).expect_err("another").to_string();
        assert!(error.contains("trial 2 of that result is not the one"), "{error}");
        let mut more = whole();
        more.push(Tried(5, 20.0));
        let mut bench = bench(more, 99, 99);
        assert!(drive(&mut search(), &mut bench).expect("all of its own"));
        let error = bench.course.check_used().expect_err("one more").to_string();
        assert!(error.contains("has 1 trial more than this search"), "{error}");
    }

    #[test]
    fn what_was_measured_before_a_fault_is_kept_and_a_fault_before_it_is_an_error() {
        assert_eq!(
            drive(&mut search(), &mut bench(Vec::new(), 0, 99)).expect_err("none").to_string(),
            "no more"
        );
        for (breaks_at, stops_at, said) in [
            (3, 99, "ended after 3 trials, because the next could not be carried out (no more): what"),
            (99, 2, "interrupted after 2 trials: what"),
        ] {
            let mut bench = bench(Vec::new(), breaks_at, stops_at);
            assert!(!drive(&mut search(), &mut bench).expect("some"));
            let mut report = Report::new("search");
            bench.course.judge_incomplete(&mut report, None);
            let Verdict::Short { reasons } = &report.result.verdict else { panic!("short") };
            assert!(reasons[0].to_string().starts_with(said), "{reasons:?}");
            assert!(reasons[0].to_string().contains("`.continue`"), "{reasons:?}");
            // No result of agents can be gone on with.
            let mut report = Report::new("search");
            report.result.agents = vec![report::AgentPart::default()];
            bench.course.judge_incomplete(&mut report, None);
            let said = report.result.verdict.reasons()[0].to_string();
            assert!(said.contains("begins anew") && !said.contains("continue"), "{said}");
        }
    }
}
