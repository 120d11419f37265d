//! netserver: a thread for each client, several at once, each with its deadlines.

use super::control::{self, Read1};
use super::{data, processors};
use crate::lobby::{Budget, Lobby, Seat};
use crate::phase::Stop;
use crate::socket::{self, Options, SocketError};
use endpoint::netperf::message::LENGTH;
use endpoint::netperf::plan::{Plan, Shape};
use endpoint::netperf::server::{Ended, Server, Step};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A client says what it wants within this, and all of a message.
const SPEAKS: Duration = Duration::from_secs(5);
/// From one test to the next of one client.
const IDLE: Duration = Duration::from_secs(60);
/// Connections that run no test, at most. When there are more, the address with the most of them loses its oldest.
const STRANGERS: usize = 256;
/// A message is taken within this.
const TAKES: Duration = Duration::from_secs(20);
/// How often whoever waits looks whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// How to serve.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Where.
    pub at: Vec<SocketAddr>,
    /// What clients have to say first.
    pub passphrase: Option<Vec<u8>>,
    /// One client after the other.
    pub serial: bool,
    /// Most tests at once; one more is refused.
    pub tests: u64,
    /// Bytes that all tests' buffers take together, the kernel's among them; a test for which no room is left is refused.
    pub memory: u64,
    /// IPV6_V6ONLY.
    pub v6_only: bool,
}

/// What happens, for whoever writes it down.
#[derive(Debug)]
pub enum Event<'a> {
    /// It listens there.
    Listening(SocketAddr),
    /// A client's test was refused: as many run as may be.
    Full(SocketAddr),
    /// A test begins.
    Began(SocketAddr, &'a Plan),
    /// It ended: bytes both ways, transactions, seconds.
    Ended(SocketAddr, &'a endpoint::netperf::omni::Results),
    /// It could not be done, for this reason.
    Failed(SocketAddr, String),
}

/// What all clients of a server share.
struct Shared<'a> {
    serving: &'a Serving,
    strangers: Arc<Lobby>,
    tests: Budget,
    memory: Budget,
    stop: &'a Stop,
    tell: &'a (dyn Fn(Event<'_>) + Sync),
}

/// Serves until `stop` is set. `listening` is called once all listen, before the first client is accepted: from then on no right is needed.
///
/// # Errors
/// An address is not to be had.
pub fn serve(
    serving: &Serving,
    stop: &Stop,
    listening: &dyn Fn(),
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Result<(), SocketError> {
    let options = Options { v6_only: serving.v6_only, ..Options::default() };
    let mut listeners = Vec::new();
    for at in &serving.at {
        let listener = socket::listen(*at, &options, 128)?;
        tell(Event::Listening(listener.local_addr().unwrap_or(*at)));
        listeners.push(listener);
    }
    listening();
    let shared = &Shared {
        serving,
        strangers: Lobby::new(STRANGERS),
        tests: Budget::new(serving.tests),
        memory: Budget::new(serving.memory),
        stop,
        tell,
    };
    std::thread::scope(|scope| {
        for listener in &listeners {
            scope.spawn(move || {
                while !stop.is_set() {
                    let Some((control, peer)) = next(listener) else { continue };
                    // Whoever has said nothing makes room before a thread is made for one more.
                    let Ok(seat) = shared.strangers.enter(&control, Some(peer.ip())) else { continue };
                    let one = move || {
                        if let Err(error) = converse(&control, peer, Some(seat), shared) {
                            tell(Event::Failed(peer, error.to_string()));
                        }
                    };
                    if serving.serial {
                        one();
                    } else {
                        // Without memory for one more thread the client is turned away.
                        let named = std::thread::Builder::new().name("netserver".to_owned());
                        if let Err(error) = named.spawn_scoped(scope, one) {
                            tell(Event::Failed(peer, error.to_string()));
                        }
                    }
                }
            });
        }
    });
    Ok(())
}

fn next(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match socket::accept(listener, LOOK) {
        Ok(found) => found,
        Err(_) => {
            // No descriptors, no memory: others may give theirs back.
            std::thread::sleep(LOOK);
            None
        }
    }
}

/// A client, from its first message to its last. `seat`: it has one while it runs no test.
fn converse(
    control: &TcpStream,
    peer: SocketAddr,
    mut seat: Option<Seat>,
    shared: &Shared<'_>,
) -> io::Result<()> {
    let Shared { serving, stop, tell, .. } = *shared;
    control.set_nodelay(true)?;
    let ends = [control.local_addr()?.ip(), peer.ip()].map(|address| address.to_canonical());
    let mut server = Server::new(serving.passphrase.as_deref(), processors());
    let mut bytes = [0; LENGTH];
    let mut patience = SPEAKS;
    loop {
        let count = match control::read(control, &mut bytes, patience, stop)? {
            Read1::Bytes(count) => count,
            Read1::Closed if server.expects_more() => {
                return Err(io::Error::other("it closed in the middle of a message"));
            }
            Read1::Closed | Read1::Stopped => return Ok(()),
            Read1::Late if server.expects_more() => {
                return Err(io::Error::other("it never finished its message"));
            }
            Read1::Late => return Ok(()),
        };
        for step in server.receive(bytes.get(..count).unwrap_or_default()) {
            match step {
                Step::Reply(message) => control::send(control, &message, TAKES)?,
                Step::Refuse(refusal, message) => {
                    tell(Event::Failed(peer, refusal.to_string()));
                    control::send(control, &message, TAKES)?;
                }
                Step::Run(plan) => {
                    seat = None;
                    test(&mut server, *plan, control, (peer, ends), shared)?;
                }
                Step::Close(Ended::Passphrase) => {
                    return Err(io::Error::other("the passphrase was wrong, or missing"));
                }
                Step::Close(Ended::OutOfTurn) => return Err(io::Error::other("it spoke while its test ran")),
            }
        }
        if seat.is_none() {
            seat = Some(shared.strangers.enter(control, Some(peer.ip()))?);
        }
        patience = if server.expects_more() { SPEAKS } else { IDLE };
    }
}

fn test(
    server: &mut Server,
    plan: Plan,
    control: &TcpStream,
    (peer, [own, other]): (SocketAddr, [IpAddr; 2]),
    shared: &Shared<'_>,
) -> io::Result<()> {
    let Shared { stop, tell, .. } = *shared;
    let Some(_one) = shared.tests.take(1) else {
        tell(Event::Full(peer));
        return control::send(control, &server.failed(libc::EBUSY as u32), TAKES);
    };
    tell(Event::Began(peer, &plan));
    let (sends, datagrams) =
        (plan.shape == Shape::Send, plan.transport == endpoint::netperf::plan::Transport::Udp);
    if sends && datagrams && plan.peer_port == 0 {
        return control::send(control, &server.failed(libc::EDESTADDRREQ as u32), TAKES);
    }
    let (prepared, response) = match data::prepare(plan, own, other) {
        Ok(prepared) => prepared,
        Err(error) => {
            let errno = error.io().raw_os_error().unwrap_or(libc::EINVAL);
            tell(Event::Failed(peer, error.to_string()));
            return control::send(control, &server.failed(errno as u32), TAKES);
        }
    };
    let wanted = prepared.memory();
    let Some(_memory) = shared.memory.take(wanted) else {
        let (most, taken) = (shared.memory.most(), shared.memory.taken());
        let said = format!(
            "{wanted} bytes of buffers were asked for, and of the {most} of all tests {taken} are taken"
        );
        tell(Event::Failed(peer, said));
        return control::send(control, &server.failed(libc::ENOMEM as u32), TAKES);
    };
    control::send(control, &server.ready(&response), TAKES)?;
    match prepared.run(control, stop) {
        Ok(results) => {
            tell(Event::Ended(peer, &results));
            control::send(control, &server.finished(&results), TAKES)
        }
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(match error.kind() {
                io::ErrorKind::TimedOut => libc::ETIMEDOUT,
                _ => libc::EIO,
            });
            tell(Event::Failed(peer, format!("the data phase: {error}")));
            control::send(control, &server.failed(errno as u32), TAKES)
        }
    }
}
