//! What a run shows while it lasts: a full-screen view for a person, metrics for Prometheus, and lines of JSON for programs.
//!
//! ```text
//!   snapshot::Board  <- the job puts a Snapshot there ten times a second, and takes Requests (pause, faster, ...)
//!      |--- screen: a thread that draws it and reads keys
//!      |--- metrics: a thread that serves it over HTTP
//!      '--- lines: a thread that writes it once a second
//! ```
//!
//! What all show is a pure function of snapshots (`screen::draw`, `metrics::text`, `snapshot::line`). Nothing here knows an
//! engine or a meter, and whoever publishes never waits for a terminal or a client.
//!
//! The screen is a Cargo feature, `tui`: without it, it is an error that says so.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod lines;
pub mod metrics;
#[cfg(feature = "tui")]
pub mod screen;
#[cfg(not(feature = "tui"))]
#[path = "screen/absent.rs"]
pub mod screen;
mod signals;
mod terminal;

pub use signals::ending_signals;
pub use terminal::dumb_terminal;

use snapshot::Board;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why there can be no gauges.
#[derive(Debug, thiserror::Error)]
pub enum GaugesError {
    /// A netdyno without its screen.
    #[error("`.tui`: {}", report::absent("the full-screen view", "tui"))]
    Absent,
    /// There is no screen to draw on.
    #[error("`.tui` draws on standard error, which is not a terminal: leave it out, or run it on a terminal")]
    NotATerminal,
    /// The terminal of this name (TERM) cannot move its cursor.
    #[error(
        "`.tui` cannot draw on this terminal (TERM={0}): leave it out, or set TERM to what the terminal is, such as xterm or vt220"
    )]
    DumbTerminal(String),
    /// Nobody can be served at the address: why, and what to do.
    #[error("`.metrics` {0}: {1}{2}")]
    Listen(SocketAddr, std::io::Error, &'static str),
    /// The system refused what is named first.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] std::io::Error),
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// A full-screen view on standard error.
    pub screen: bool,
    /// The address at which Prometheus finds `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Names that metrics may be asked by, besides those that this host is known to have.
    pub names: Vec<String>,
    /// Lines of JSON on standard output.
    pub lines: bool,
}

/// The gauges of a run. Dropping them gives the terminal back and ends the server.
#[derive(Debug)]
pub struct Gauges {
    board: Arc<Board>,
    wanted: Wanted,
    screen: Option<screen::Screen>,
    lines: Option<lines::Lines>,
    _server: Option<metrics::Server>,
}

impl Gauges {
    /// Takes hold of what is wanted, or says why it cannot be had; draws nothing yet. `None` if nothing is wanted.
    ///
    /// # Errors
    /// What cannot be had: there is no terminal, the address is taken.
    pub fn prepare(wanted: Wanted, board: &Arc<Board>) -> Result<Option<Gauges>, GaugesError> {
        if !wanted.screen && wanted.metrics.is_none() && !wanted.lines {
            return Ok(None);
        }
        if wanted.screen {
            screen::check()?;
        }
        board.watch_closely();
        let server = wanted
            .metrics
            .map(|at| metrics::Server::start(at, &wanted.names, Arc::clone(board)))
            .transpose()?;
        Ok(Some(Gauges { board: Arc::clone(board), wanted, screen: None, lines: None, _server: server }))
    }

    /// Begins to draw. `stop` is set when the user wants to quit, and by [`ending_signals`].
    ///
    /// # Errors
    /// That the terminal cannot be drawn on, or no thread can be started.
    pub fn begin(&mut self, stop: &Arc<AtomicBool>) -> Result<(), GaugesError> {
        if self.wanted.screen && self.screen.is_none() {
            self.screen = Some(screen::Screen::start(Arc::clone(&self.board), Arc::clone(stop))?);
        }
        if self.wanted.lines && self.lines.is_none() {
            let lines = lines::Lines::start(Arc::clone(&self.board), std::io::stdout());
            self.lines = Some(lines.map_err(|error| GaugesError::Io("`.json_lines`", error))?);
        }
        Ok(())
    }
}

/// Onlookers' threads give way to those that send, where both want a core.
pub(crate) fn give_way() {
    // Of the calling thread (setpriority(2)). Where it cannot be, looking on costs more.
    let _ = rustix::process::nice(10);
}
