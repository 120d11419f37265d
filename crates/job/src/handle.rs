//! A job that runs.

use crate::kinds::{Run, endpoint, given, search, sessions};
use crate::{Session, claims};
use anyhow::{Result, anyhow};
use engine::source::Source;
use report::{Code, Report};
use snapshot::{Board, Request, Snapshot};
use spec::Job;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// As a process's first thread has it.
const STACK: usize = 8 << 20;

/// Why a job came to no result.
#[derive(Debug, Clone)]
pub struct Failed(Arc<anyhow::Error>);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::in_full(&self.0))
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl Failed {
    /// The error of this type among what went wrong.
    pub fn find<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.0.chain().find_map(|cause| cause.downcast_ref())
    }

    /// Is it that this process lacks rights? The words say which.
    pub fn is_denied(&self) -> bool {
        crate::denied::is_denied(&self.0)
    }
}

/// What became of a job: its result, or why there is none.
pub type Outcome = std::result::Result<Arc<Report>, Failed>;

/// A job that runs in a thread of its own. Dropping it stops the job and waits until nothing of it is left: no program at an
/// interface, no namespace.
#[derive(Debug)]
pub struct Handle {
    board: Arc<Board>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    outcome: Arc<OnceLock<Outcome>>,
}

/// Starts it. What it needs to be allowed is `session.consent`'s to give.
///
/// # Errors
/// The system has no thread to spare. All else that goes wrong is reported by [`Handle::wait`].
pub fn start(job: Job, session: Session) -> std::io::Result<Handle> {
    spawn(session, move |session| {
        job.check()?;
        carry_out(&job, session)
    })
}

/// Starts a job that sends the frames of `source`: a program, a capture that is streamed, an iterator
/// ([`engine::source::Sequence`]), or anything else that implements [`engine::source::Frames`]. `job.what` is only what they
/// are called in the result; the rate, if the job has one, takes the place of their own times. `size`, `seed`, `resolve` and
/// `meter.check_content` are about frames of expressions, and refused.
///
/// # Errors
/// The system has no thread to spare. All else that goes wrong is reported by [`Handle::wait`].
pub fn start_with(job: spec::Send, source: impl Into<Source>, session: Session) -> std::io::Result<Handle> {
    let source = source.into();
    spawn(session, move |session| {
        let mut whole = job.clone();
        if whole.what.is_empty() {
            // A name that nobody gave.
            "a source".clone_into(&mut whole.what);
        }
        let whole = Job::from(whole);
        whole.check()?;
        session.consent.covers(&whole)?;
        given::run(&job, source, session)
    })
}

/// Runs a job that was checked ([`Job::check`]) to its end, in this thread.
///
/// # Errors
/// What it needs is not allowed, or it cannot be done: nothing was measured.
pub fn carry_out(job: &Job, session: Session) -> Result<Report> {
    session.consent.covers(job)?;
    let mut report = spec::of_kind!(job, job => job.run(session))?;
    remember(job, &mut report);
    Ok(report)
}

/// Goes on with a search whose result so far is `earlier`.
///
/// # Errors
/// As of [`carry_out`].
pub fn go_on(search: &spec::Search, earlier: Report, session: &Session) -> Result<Report> {
    let mut report = search::run(search, Some(earlier), session)?;
    remember(&Job::from(search.clone()), &mut report);
    Ok(report)
}

/// Goes on with a search between two endpoints whose result so far is `earlier`.
///
/// # Errors
/// As of [`carry_out`].
pub fn go_on_between(search: &spec::EndpointSearch, earlier: Report, session: &Session) -> Result<Report> {
    let mut report = endpoint::search::run(search, Some(earlier), session)?;
    remember(&Job::from(search.clone()), &mut report);
    Ok(report)
}

/// Goes on with a search by TCP connections whose result so far is `earlier`.
///
/// # Errors
/// As of [`carry_out`].
pub fn go_on_sessions(search: &spec::SessionsSearch, earlier: Report, session: &Session) -> Result<Report> {
    let mut report = sessions::search::run(search, Some(earlier), session)?;
    remember(&Job::from(search.clone()), &mut report);
    Ok(report)
}

/// The job in its result, with what was drawn for it: run again, it does the same.
fn remember(job: &Job, report: &mut Report) {
    let mut job = job.clone();
    if let Some(seed) = report.resolved.seed {
        job.draw(seed);
    }
    // The plugin that it was, so that run again it is the same or says that it is not.
    if let Some(plugin) = job.plugin_mut()
        && let Some(report::Source::Plugin { version, sha256, .. }) = &report.resolved.source
    {
        plugin.version = Some(version.clone());
        plugin.sha256.clone_from(sha256);
    }
    match job.to_value() {
        Ok(job) => report.requested = Some(job),
        Err(why) => {
            let said = format!("`netdyno rerun` cannot run this again: {why}");
            report.warnings.add(Code::NotRepeatable, said);
        }
    }
}

/// Runs what is no job yet as if it were one.
///
/// # Errors
/// The system has no thread to spare.
pub fn spawn(
    session: Session,
    run: impl FnOnce(Session) -> Result<Report> + Send + 'static,
) -> std::io::Result<Handle> {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    let (board, stop) = (Arc::clone(&session.board), Arc::clone(&session.stop));
    let outcome: Arc<OnceLock<Outcome>> = Arc::default();
    let thread = std::thread::Builder::new().name("job".to_owned()).stack_size(STACK).spawn({
        let (board, outcome) = (Arc::clone(&board), Arc::clone(&outcome));
        let number = NUMBER.fetch_add(1, Relaxed);
        move || {
            claims::for_job(number);
            // Nothing that the job has is used after it.
            let done = catch_unwind(AssertUnwindSafe(|| {
                let mut report = run(session)?;
                report.list_notes();
                Ok(report)
            }));
            let done = done.unwrap_or_else(|_| Err(anyhow!("it panicked: this is a defect of netdyno")));
            claims::release();
            let _ = outcome.set(done.map(Arc::new).map_err(|error| Failed(Arc::new(error))));
            board.end();
        }
    })?;
    Ok(Handle { board, stop, thread: Mutex::new(Some(thread)), outcome })
}

impl Handle {
    /// Where it puts how it stands, for whoever looks on.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// How it stands; `None` before it has begun.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.board.latest()
    }

    /// Sends nothing until it is resumed. What cannot be paused is not (`snapshot.title.manual` says why).
    pub fn pause(&self) {
        self.board.request(Request::Pause);
    }

    /// Goes on.
    pub fn resume(&self) {
        self.board.request(Request::Resume);
    }

    /// Sends at so many percent of the rate that was asked for. What has no rate to change, or an engine whose times are
    /// frozen in, is not changed (`snapshot.title.manual` says why).
    pub fn set_rate(&self, percent: u32) {
        self.board.request(Request::Percent(percent));
    }

    /// Ends it in an orderly way: what was measured until then is its result. May be called again, and from any thread.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Is it over?
    pub fn is_over(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Waits for its end and tells what came of it: the same each time it is asked.
    ///
    /// # Errors
    /// It came to no result.
    pub fn wait(&self) -> Outcome {
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // What it panicked of is in the outcome.
            let _ = thread.join();
        }
        match self.outcome.get() {
            Some(outcome) => outcome.clone(),
            None => Err(Failed(Arc::new(anyhow!("the job's thread ended without a word")))),
        }
    }
}

impl Handle {
    /// The same, for whoever wants the report for himself.
    ///
    /// # Errors
    /// It came to no result.
    pub fn into_result(mut self) -> std::result::Result<Report, Failed> {
        let shared = self.wait();
        // The thread is over, and nobody else has it.
        drop(Arc::get_mut(&mut self.outcome).and_then(OnceLock::take));
        shared.map(Arc::unwrap_or_clone)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.thread.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        // Others may be ended by the same flag.
        if !self.is_over() {
            self.stop();
        }
        let _ = self.wait();
    }
}
