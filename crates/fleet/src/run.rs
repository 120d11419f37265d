//! A job at an agent: started, followed to its end, stopped in order, and its report.
//!
//! The agent's lease is its standard input: while a run goes on it is asked for its clock now and then, so that one that is frozen or cut off is lost
//! within the time of an answer and not when its report is due.

use crate::client::{Client, LINE_BYTES, Said, read};
use crate::lost::Lost;
use agent::{FaultKind, JobGo, JobStart, JobStarted, OfRun, RunOutcome};
use report::{Code, Note};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of a report, at most: of 65,536 streams each has less than a kilobyte. As values it may take sixteen times as much (`client::memory`).
const REPORT_BYTES: usize = 64 << 20;
/// How often an agent is asked whether it is still there.
const ASKS: Duration = Duration::from_secs(1);
/// How often it is looked whether the run is to be stopped.
const LOOK: Duration = Duration::from_millis(20);
/// A run that was stopped has so long to end in an orderly way; an agent gives its runs 15 s.
const LAST: Duration = Duration::from_secs(20);

/// What an agent says of a run while it lasts.
#[derive(Debug)]
pub enum Told {
    /// A sentence.
    Note(Note),
    /// How it stands, of netdyno.snapshot/1.
    Snapshot(Value),
    /// It is over; its report follows, if there is one.
    Ended(RunOutcome),
}

/// What is waited for of a run.
enum Sign<'t> {
    /// It is held, and ready.
    Ready,
    /// It says something.
    Told(&'t Told),
}

#[derive(Deserialize)]
struct OfSnapshot {
    run: String,
    snapshot: Value,
}

#[derive(Deserialize)]
struct OfNote {
    run: String,
    #[serde(flatten)]
    note: Note,
}

#[derive(Deserialize)]
struct OfEnd {
    run: String,
    outcome: RunOutcome,
}

impl Client {
    /// Starts a job: with `start_at`, in nanoseconds of the agent's CLOCK_TAI, its first frame is due then.
    ///
    /// # Errors
    /// The agent is gone or silent, or refuses the job.
    pub fn start(&mut self, asked: &JobStart) -> Result<JobStarted, Lost> {
        let started: JobStarted = self.call("job.start", asked)?;
        self.begins(&started.run);
        Ok(started)
    }

    /// Follows a run to its end, and yields its report as JSON. `tell` hears what is said of it. Once `stop` is set, the run is stopped in an orderly way, and its report is of
    /// what was done until then.
    ///
    /// # Errors
    /// The agent is gone or silent, the run came to no result, or did not end in time after it was stopped.
    pub fn wait(&mut self, run: &str, stop: &AtomicBool, tell: &mut dyn FnMut(Told)) -> Result<Value, Lost> {
        self.takes(REPORT_BYTES);
        let report = self.follow(run, stop, tell);
        self.takes(LINE_BYTES);
        // Of who is lost nothing is known, and a run for which nobody more may wait goes on.
        let is_over = match &report {
            Ok(_) => true,
            Err(Lost::Refused(fault)) => fault.data.kind != FaultKind::Limit,
            Err(_) => false,
        };
        if is_over {
            self.is_over(run);
        }
        report
    }

    fn follow(&mut self, run: &str, stop: &AtomicBool, tell: &mut dyn FnMut(Told)) -> Result<Value, Lost> {
        let of_run = OfRun { run: run.to_owned() };
        let mut alive_until = self.patience().until();
        let waited = self.ask("job.wait", &of_run, alive_until)?;
        let (mut asked, mut asked_at): (Option<u64>, _) = (None, Instant::now());
        let mut must_end: Option<Instant> = None;
        let mut begun = 0;
        let last = LAST.max(self.patience().answer);
        loop {
            if stop.load(Relaxed) && must_end.is_none() {
                self.ask("job.stop", &of_run, alive_until)?;
                must_end = Some(Instant::now() + last);
            }
            let until = must_end.map_or(alive_until, |end| alive_until.min(end));
            if asked.is_none() && asked_at.elapsed() >= ASKS {
                asked = Some(self.ask("clock", &json!({ "t1": 0 }), until)?);
                asked_at = Instant::now();
                alive_until = self.patience().until();
            }
            // Who answers is there, however long the run lasts; and so is one whose report takes long on its way.
            if asked.is_none() || self.begun() != begun {
                alive_until = self.patience().until();
                begun = self.begun();
            }
            let said = self.said_within("job.wait", LOOK, until).map_err(|lost| match lost {
                Lost::Silent { to, said, .. } if must_end.is_some_and(|end| Instant::now() >= end) => {
                    Lost::Silent { to, within: last, said }
                }
                // A report may take as long as it likes: it is this that was not answered.
                Lost::Silent { within, said, .. } => Lost::Silent { to: "clock", within, said },
                lost => lost,
            });
            match said? {
                None => {}
                Some((Said::Answer(id, result), _)) if id == waited => {
                    let mut result = result?;
                    return match result.get_mut("report").map(Value::take) {
                        Some(report @ Value::Object(_)) => Ok(report),
                        _ => Err(Lost::Nonsense {
                            what: "the answer to `job.wait`: it has no report".to_owned(),
                        }),
                    };
                }
                Some((Said::Answer(id, result), _)) if Some(id) == asked => {
                    result?;
                    asked = None;
                }
                // One that ended by itself meanwhile cannot be stopped any more. What was asked before may be answered late.
                Some((Said::Answer(..), _)) => {}
                Some((Said::Unasked(method, params), _)) => {
                    if let Some(told) = told(&method, params, run)? {
                        tell(told);
                    }
                }
            }
        }
    }

    /// Waits until a run that is held is ready. `tell` hears what is said of it meanwhile.
    ///
    /// # Errors
    /// The agent is gone or silent, or the run came to its end before.
    pub(crate) fn await_ready(
        &mut self,
        run: &str,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Told),
    ) -> Result<(), Lost> {
        self.await_sign(run, stop, tell, &|said| matches!(said, Sign::Ready))
    }

    /// Waits until a run has begun what it does: a server listens then.
    ///
    /// # Errors
    /// As of [`Client::await_ready`].
    pub(crate) fn await_begun(
        &mut self,
        run: &str,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Told),
    ) -> Result<(), Lost> {
        let begun =
            |said: &Sign<'_>| matches!(said, Sign::Told(Told::Note(note)) if note.code == Code::Begun);
        self.await_sign(run, stop, tell, &begun)
    }

    /// Waits until the run says what `is_it`.
    fn await_sign(
        &mut self,
        run: &str,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Told),
        is_it: &dyn Fn(&Sign<'_>) -> bool,
    ) -> Result<(), Lost> {
        let mut alive_until = self.patience().until();
        let (mut asked, mut asked_at): (Option<u64>, _) = (None, Instant::now());
        loop {
            if stop.load(Relaxed) {
                return Err(Lost::Stopped);
            }
            if asked.is_none() {
                alive_until = self.patience().until();
                if asked_at.elapsed() >= ASKS {
                    asked = Some(self.ask("clock", &json!({ "t1": 0 }), alive_until)?);
                    asked_at = Instant::now();
                }
            }
            match self.said_within("job.start", LOOK, alive_until)? {
                Some((Said::Answer(id, result), _)) if Some(id) == asked => {
                    result?;
                    asked = None;
                }
                None | Some((Said::Answer(..), _)) => {}
                Some((Said::Unasked(method, params), _)) if method == "run.ready" => {
                    let ready: OfRun = read("run.ready", params)?;
                    if ready.run == run && is_it(&Sign::Ready) {
                        return Ok(());
                    }
                }
                Some((Said::Unasked(method, params), _)) => match told(&method, params, run)? {
                    // Why it ended, its end tells who waits for it.
                    Some(Told::Ended(_)) => {
                        self.wait(run, stop, tell)?;
                        let what = format!("{run} ended before it was told to begin");
                        return Err(Lost::Nonsense { what });
                    }
                    Some(other) => {
                        let is_sign = is_it(&Sign::Told(&other));
                        tell(other);
                        if is_sign {
                            return Ok(());
                        }
                    }
                    None => {}
                },
            }
        }
    }

    /// Tells a run that is held when to begin, in nanoseconds of the agent's CLOCK_TAI.
    ///
    /// # Errors
    /// The agent is gone or silent, or that time is over.
    pub(crate) fn go(&mut self, run: &str, start_at: u64) -> Result<(), Lost> {
        self.call::<Value>("job.go", &JobGo { run: run.to_owned(), start_at }).map(drop)
    }

    /// Ends a run without a report; whether it goes on or not.
    ///
    /// # Errors
    /// The agent is gone or silent, or refuses.
    pub fn abort(&mut self, run: &str) -> Result<(), Lost> {
        match self.call::<Value>("job.abort", &OfRun { run: run.to_owned() }) {
            Ok(_) => {}
            // There is none any more, or it is over already.
            Err(Lost::Refused(fault))
                if matches!(fault.data.kind, FaultKind::Unknown | FaultKind::Engine) => {}
            Err(lost) => return Err(lost),
        }
        self.is_over(run);
        Ok(())
    }
}

/// What is said of this run; of others, and what a later version says, nothing.
fn told(method: &str, params: Value, run: &str) -> Result<Option<Told>, Lost> {
    let (of, told) = match method {
        "run.note" => {
            let OfNote { run, note } = read(method, params)?;
            (run, Told::Note(note))
        }
        "run.snapshot" => {
            let OfSnapshot { run, snapshot } = read(method, params)?;
            (run, Told::Snapshot(snapshot))
        }
        "run.ended" => {
            let OfEnd { run, outcome } = read(method, params)?;
            (run, Told::Ended(outcome))
        }
        _ => return Ok(None),
    };
    Ok((of == run).then_some(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Patience;
    use crate::reach::Reach;
    use std::sync::Arc;

    /// Who answers by a shell's commands. What it takes to begin is no part of what is tried here.
    fn client(script: &str, answer: Duration) -> Client {
        let reach: Reach = format!("a={script}").parse().expect("an agent");
        Client::begin(&reach, Patience { answer, stop: Arc::default() }).expect("it begins")
    }

    const LONG: Duration = Duration::from_secs(120);
    const REPORT: &str = r#"echo '{"jsonrpc":"2.0","id":1,"result":{"report":{"a":1}}}'"#;

    #[test]
    fn what_is_answered_behind_the_report_is_no_answer_to_what_is_asked_next() {
        // `job.wait`, `clock` and `job.stop`, of which the first alone is answered in time; another, and one that nobody asked for.
        let late = r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;
        let [two, three, four, ninth] =
            ["2", "3", "4", "9"].map(|id| format!("echo '{}'", late.replace("ID", id)));
        let script = format!(
            "read a; read a; read a; {REPORT}; read a; {two}; {three}; {four}; read a; {ninth}; read a"
        );
        let mut client = client(&script, LONG);
        let stop = AtomicBool::new(true);
        let report = client.wait("r1", &stop, &mut |_| {}).expect("a report");
        assert_eq!(report, json!({ "a": 1 }));
        client.call::<Value>("job.forget", &json!({})).expect("its own answer");
        let lost = client.call::<Value>("job.forget", &json!({})).expect_err("nonsense");
        assert!(lost.to_string().contains("an answer to request 9, which waits for none"), "{lost}");
    }
}
