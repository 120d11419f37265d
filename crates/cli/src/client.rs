//! A job for who sits at the terminal: signals end it, a line or a screen shows it, and what it says is printed.
//!
//! ```text
//!   job (a thread) --> Board --> teller (a thread): notes, progress line
//!        ^                '----> gauges (threads): screen, metrics, lines of JSON
//!        '-- stop flag <-- signals, screen
//! ```

use crate::cli::Output;
use crate::output;
use crate::wording;
use anyhow::{Context, Result};
use gauges::Gauges;
use job::{Among, Handle, Member, Session};
use report::live::{EndpointPace, Pace, Progress};
use report::{Code, Loss, Note, Report, Severity, Totals};
use snapshot::{Board, Count, Phase, Snapshot};
use spec::Consent;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A signal within this time after the first is the same one: timeout(1) sends it to a process and then to its group, and a
/// lab passes on what it gets.
const SAME: Duration = Duration::from_millis(300);
/// From one progress line to the next.
const REDRAW: Duration = Duration::from_millis(200);

/// The flags that signals set: SIGINT, SIGTERM, and SIGHUP unless `nohup` or the like had it ignored.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// One came.
    pub stop: Arc<AtomicBool>,
    /// Nobody looks at `stop` yet: a signal ends the process at once.
    pub deaf: Arc<AtomicBool>,
}

impl Signals {
    /// From now on. A second signal ends the process, unless a screen does so, which must give the terminal back first.
    pub fn handle(screen: bool) -> Result<Signals> {
        let signals = Signals { stop: Arc::default(), deaf: Arc::new(AtomicBool::new(true)) };
        let again = Arc::new(AtomicBool::new(false));
        for signal in gauges::ending_signals() {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&signals.deaf))?;
            if !screen {
                signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&again))?;
            }
            signal_hook::flag::register(signal, Arc::clone(&signals.stop))?;
        }
        if !screen {
            await_second(again)?;
        }
        Ok(signals)
    }

    /// As [`Signals::handle`], for who looks at `stop` from the beginning.
    pub fn at_once() -> Result<Signals> {
        let signals = Signals::handle(false)?;
        signals.deaf.store(false, Relaxed);
        Ok(signals)
    }

    /// A session that they end.
    pub fn session(&self, consent: Consent, together: Option<Member>) -> Session {
        Session {
            consent,
            stop: Arc::clone(&self.stop),
            deaf: Arc::clone(&self.deaf),
            board: Arc::new(Board::worded(wording::said)),
            together,
            start_at: None,
            among: Among::default(),
            elsewhere: None,
            guardian: Some(crate::commands::clone::guardian()),
        }
    }
}

/// Sets `again` a moment after the first signal.
fn await_second(again: Arc<AtomicBool>) -> Result<()> {
    let mut came = signal_hook::iterator::Signals::new(gauges::ending_signals())?;
    let wait = move || {
        if came.forever().next().is_some() {
            std::thread::sleep(SAME);
            again.store(true, Relaxed);
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("starting a thread for signals")?;
    Ok(())
}

/// Whether a line is to show how it goes, beside what else `output` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Shown,
    /// It says by itself how it goes.
    Not,
}

/// Prepares what `output` asks for, starts the job, shows it, and waits for its end.
pub fn attend(
    output: &Output,
    line: Line,
    session: Session,
    start: impl FnOnce(Session) -> std::io::Result<Handle>,
) -> Result<Report> {
    if let Some(dir) = &output.report {
        report::prepare_dir(dir)?;
        if !output.quiet {
            output::say_replaced(dir);
        }
    }
    let mut gauges = Gauges::prepare(output.gauges_wanted(), &session.board)?;
    let _at_host = output.gauges.metrics.and_then(|at| metrics_at_host(at, output, &session.board));
    let stop = Arc::clone(&session.stop);
    let watching = match &output.gauges.watch {
        Some(at) => Some(crate::commands::serve::watch(at, Arc::clone(&session.board), Arc::clone(&stop))?),
        None => None,
    };
    let handle = start(session).context("starting a thread for the job")?;
    let board = handle.board();
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| tell(board, output, line));
        if let Some(gauges) = &mut gauges
            && board.await_first()
        {
            // Without what was asked for there is no use in going on.
            gauges.begin(&stop).inspect_err(|_| handle.stop())?;
        }
        while !board.await_end(Duration::from_secs(60), u64::MAX) {}
        // Gives the terminal back.
        gauges = None;
        Ok(())
    })?;
    let came = handle.into_result();
    if let Some(watching) = watching {
        crate::commands::serve::watched(watching, came.as_ref().map_err(ToString::to_string));
    }
    Ok(came?)
}

/// In a lab: the same metrics at the host that the lab was made on, where they can be reached. Somebody else may have that port there;
/// within the lab they are served in any case.
fn metrics_at_host(at: SocketAddr, output: &Output, board: &Arc<Board>) -> Option<gauges::metrics::Server> {
    let host = std::env::var_os(lab::ENV_HOST_NS)?;
    let names = &output.gauges.metrics_name;
    let serve = || gauges::metrics::Server::start(at, names, Arc::clone(board));
    let served = lab::Namespace::open(Path::new(&host)).and_then(|host| host.run_in(serve));
    let why = match served {
        Ok(Ok(server)) => return Some(server),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    output::note(&format!("not reachable from outside the lab: {why}"));
    None
}

/// Prints what the job says, and how it goes.
fn tell(board: &Board, output: &Output, line: Line) {
    let mut live = if line == Line::Shown { output::live(output) } else { None };
    let (mut next, mut before) = (0, Snapshot::default());
    loop {
        let over = board.await_end(REDRAW, next);
        for note in board.notes(&mut next).iter().filter(|note| is_said(note, output)) {
            if let Some(live) = &mut live {
                let _ = live.clear();
            }
            output::note(&note.sentence());
        }
        if over {
            break;
        }
        let (Some(live), Some(now)) = (&mut live, board.latest()) else { continue };
        if now.at_ns < before.at_ns {
            // It began anew, with another engine.
            before = Snapshot::default();
        }
        let moves = matches!(now.phase, Phase::Running | Phase::Paused);
        if moves && now.at_ns >= before.at_ns + REDRAW.as_nanos() as u64 * 9 / 10 {
            let _ = live.update(&progress(&now, &before));
            before = Snapshot::clone(&now);
        }
    }
    if let Some(live) = &mut live {
        let _ = live.clear();
    }
}

/// Who wants quiet is told what matters, and who has a screen what does not stand there.
fn is_said(note: &Note, output: &Output) -> bool {
    let on_screen = !matches!(
        note.code,
        Code::NextHopFound | Code::CaptureRead | Code::PartOfCapture | Code::ActNow | Code::CommandFailed
    );
    note.severity > Severity::Info || !(output.quiet || output.gauges.tui && on_screen)
}

/// The same of an endpoint test.
fn endpoint(now: &snapshot::Endpoint, before: snapshot::Endpoint, span_ns: u64) -> EndpointPace {
    let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 * 1e9 / span_ns.max(1) as f64;
    // A server counts the bytes of a test when it is over: they are no rate.
    let is_server = now.clients.is_some();
    let bits = |now: u64, before: u64| (now > 0 && !is_server).then(|| 8.0 * per_second(now, before));
    EndpointPace {
        sent_bits_per_second: bits(now.sent_bytes, before.sent_bytes),
        received_bits_per_second: bits(now.received_bytes, before.received_bytes),
        transactions_per_second: now
            .transactions
            .map(|count| per_second(count, before.transactions.unwrap_or(0))),
        latency_p50_ns: now.latency_p50_ns,
        latency_p99_ns: now.latency_p99_ns,
        rtt_ns: now.rtt_ns,
        retransmits: now.retransmits,
        clients: now.clients,
        tests: now.tests,
        all_tests: now.all_tests,
        round: now.round.zip(now.rounds),
    }
}

/// What lies between two snapshots.
fn progress(now: &Snapshot, before: &Snapshot) -> Progress {
    let span = now.at_ns.saturating_sub(before.at_ns);
    let pace = |now: Option<Count>, before: Option<Count>| {
        let (now, before) = (now?, before.unwrap_or_default());
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let rate = Totals::over(since(now.frames, before.frames), since(now.bytes, before.bytes), span);
        Some(Pace {
            frames: now.frames,
            frames_per_second: rate.frames_per_second,
            bits_per_second: rate.bits_per_second,
        })
    };
    let due = now.intended.map(|intended| intended.saturating_sub(before.intended.unwrap_or(0)));
    Progress {
        elapsed: Duration::from_nanos(now.at_ns),
        remaining: now.remaining_ns.map(Duration::from_nanos),
        at_most: now.remaining_at_most,
        sent: pace(now.tx, before.tx),
        intended_frames_per_second: due.map(|due| Totals::over(due, 0, span).frames_per_second),
        received: pace(now.rx, before.rx),
        loss: now.lost.zip(now.tx).map(|(lost, sent)| Loss {
            by_count_only: now.lost_by_count_only,
            ..Loss::of(lost, sent.frames)
        }),
        endpoint: now.endpoint.map(|e| endpoint(&e, before.endpoint.unwrap_or_default(), span)),
        warnings: now.warnings.len(),
    }
}
