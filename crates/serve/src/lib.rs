//! `netdyno serve`: jobs over HTTP (docs/http.md), Open Traffic Generator (docs/otg.md), and a page (docs/watching.md).
//!
//! ```text
//!   browser, curl, snappi -- HTTP --> door, guard --> native, otg, page
//!                                                          |
//!                                     Hand -- netdyno.agent/1 over a pair of sockets --> agent (a thread)
//!                                      |                                                  |
//!                                     Runs <-- notes, snapshots, ends --------------------'
//! ```
//!
//! The server is a client of `netdyno agent` that lives in the same process: what jobs may do, what they hold and how they end is decided there, and
//! this crate knows jobs as JSON alone. All of HTTP happens on one thread of low priority; it keeps what the newest snapshots said, so that
//! whoever asks, however often, costs the senders nothing.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod door;
mod events;
mod fault;
mod guard;
mod hand;
mod metrics;
mod native;
mod openapi;
mod otg;
mod page;
mod runs;
mod settings;
mod watch;

pub use door::{Listen, Tls};
pub use guard::{BadToken, Token};
pub use watch::{Watched, Watching};

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a server is started with.
#[derive(Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: Listen,
    /// Names of this server that requests may be for, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// Who may ask; `None`: everybody who reaches it.
    pub token: Option<Token>,
    /// Over TLS.
    pub tls: Option<Tls>,
    /// What jobs may do.
    pub agent: agent::Options,
    /// Is told where it listens.
    pub say: fn(&str),
}

/// Why there is no server, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An option, or a file that it names.
    #[error("{0}")]
    Option(String),
    /// This host has no more of something.
    #[error("{0}")]
    Host(#[from] std::io::Error),
}

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Ordinary tasks go before this thread.
const NICE: i32 = 10;

/// Serves until `stop` is set. Then each run has ended, and nothing of it is left.
///
/// # Errors
/// It cannot listen there, or an option is wrong.
pub fn serve(options: Options, stop: &AtomicBool) -> Result<(), Fault> {
    let Options { listen, names, token, tls, agent, say } = options;
    let needs_token = listen.is_far() && token.is_none();
    if needs_token {
        let what = format!(
            "--listen {listen}: others reach this address, and whoever reaches the server may send frames: add --token-file FILE, or listen at 127.0.0.1"
        );
        return Err(Fault::Option(what));
    }
    let tls = tls.map(|tls| tls.acceptor()).transpose()?;
    let bound = listen.bind("--listen")?;
    let (near, far) = UnixStream::pair()?;
    let far_too = far.try_clone()?;
    let over = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&over);
    // Before this thread's priority goes down: those of runs are children of that one.
    let serving = std::thread::Builder::new().name("agent".to_owned()).spawn(move || {
        use std::os::fd::AsFd;
        agent::serve(far.as_fd(), far_too, agent, &stops)
    })?;
    // Where that is refused all works the same.
    let _ = rustix::process::setpriority_process(None, NICE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        near.set_nonblocking(true)?;
        let hand = hand::Hand::begin(tokio::net::UnixStream::from_std(near)?).await?;
        let guard = guard::Guard::new(names, token, matches!(listen, Listen::Unix(_)));
        let tester = otg::Tester::new(hand.clone());
        let routes = native::routes(hand.clone(), None).merge(otg::routes(tester)).merge(page::routes());
        let routes = guard.over(routes);
        say(&bound.says(tls.is_some()));
        let until = async {
            while !stop.load(Relaxed) && hand.is_there() {
                tokio::time::sleep(LOOK).await;
            }
        };
        bound.serve(routes, tls, until).await;
        Ok(())
    });
    drop(runtime);
    over.store(true, Relaxed);
    let _ = serving.join();
    listen.clean();
    served
}

/// Nothing here panics while it has a lock, and what a lock holds is whole all the same.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is it an address that others than this host reach?
fn is_far(address: &SocketAddr) -> bool {
    !address.ip().is_loopback()
}
