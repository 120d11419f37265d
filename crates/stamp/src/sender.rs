//! The loop of a session: sends what is due, and takes what arrives, until all is answered or the last packet has waited long enough.

use crate::kernel::{self, Refusal};
use crate::packet::{LARGEST, TTL};
use crate::session::{Arrived, Session};
use crate::time::{ErrorEstimate, Format};
use clocks::{Clock, ClockState};
use histogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use transport::sys::{set_int, set_name};

/// So many datagrams are taken before it is looked at what is due: whoever floods does not keep packets back.
const AT_ONCE: usize = 64;
/// What is in the socket at the end is taken for so long at most, because whoever floods goes on.
const REST: Duration = Duration::from_millis(100);
/// Whoever is asked to stop is heard after so long.
const LOOK: Duration = Duration::from_millis(50);
/// Packets that are due are sent as long after the end of their time; after that they are left out.
const GRACE: Duration = Duration::from_secs(1);
/// Different errors that came back are kept with their counts.
const ERRORS: usize = 16;
/// Answers of a reflector are read so far: beyond it there is padding.
const READ: usize = 256;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub to: SocketAddr,
    /// Own address.
    pub from: Option<IpAddr>,
    /// Own interface.
    pub device: Option<String>,
    /// The octet of DSCP and ECN.
    pub tos: Option<u8>,
    /// Octets of a packet.
    pub size: usize,
    /// Session identifier, not 0.
    pub session: u16,
    /// Packets, and how many a second.
    pub count: u64,
    pub per_second: u64,
    /// An answer that takes longer is late.
    pub wait: Duration,
}

/// What is seen while it lasts.
#[derive(Debug, Default)]
pub struct Live {
    pub sent: AtomicU64,
    pub answered: AtomicU64,
    pub round_trip: Mutex<Histogram>,
}

/// Errors that came back. Who sends them is from outside: so many kinds are kept, and of the others how often they came.
#[derive(Debug, Default)]
pub struct Errors {
    pub kinds: Vec<(Refusal, u64)>,
    pub others: u64,
}

impl Errors {
    fn add(&mut self, error: Refusal) {
        let room = self.kinds.len() < ERRORS;
        match self.kinds.iter_mut().find(|(known, _)| *known == error) {
            Some((_, count)) => *count += 1,
            None if room => self.kinds.push((error, 1)),
            None => self.others += 1,
        }
    }
}

/// What it came to.
#[derive(Debug)]
pub struct Outcome {
    pub session: Session,
    /// Own address and port.
    pub local: SocketAddr,
    /// Packets that were due and not sent.
    pub unsent: u64,
    /// Packets that the kernel refused, and why it refused the last one.
    pub refused: u64,
    pub refusal: Option<io::Error>,
    /// Errors that came back.
    pub errors: Errors,
    /// Answers whose time of arrival the program took, because the kernel did not say it.
    pub stamped_here: u64,
    /// Datagrams that the socket had no room for.
    pub dropped: u64,
    /// A host, not the reflector, that datagrams came from.
    pub stranger: Option<SocketAddr>,
    /// The most by which a packet left after it was due.
    pub latest_ns: u64,
    /// The most by which this host's clock may be off UTC: the worse of before and after. `None`: nobody keeps it, before or after.
    pub clock_error_ns: Option<u64>,
    /// By how much CLOCK_REALTIME was set while it lasted, as far as that is more than slewing does.
    pub stepped_ns: Option<u64>,
    /// How long packets were sent for.
    pub lasted: Duration,
}

/// What goes wrong before anything is sent.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    /// No socket, or not such a one.
    #[error("a socket for {to}: {error}")]
    Socket { to: SocketAddr, error: io::Error },
    /// The kernel takes no packet.
    #[error("sending to {to}: {error}")]
    Send { to: SocketAddr, error: io::Error },
}

/// A session identifier that nobody chose.
pub fn draw_session() -> u16 {
    let mut drawn = [0; 2];
    // Where the kernel has no randomness yet, the clock is as good: it only keeps sessions apart.
    if rustix::rand::getrandom(&mut drawn, rustix::rand::GetRandomFlags::NONBLOCK).is_err() {
        let [.., high, low] = clocks::monotonic().to_be_bytes();
        drawn = [high, low];
    }
    u16::from_be_bytes(drawn).max(1)
}

/// A socket that is ready for a session.
#[derive(Debug)]
pub struct Sender {
    socket: UdpSocket,
    local: SocketAddr,
    wanted: Wanted,
}

impl Sender {
    /// Makes the socket.
    ///
    /// # Errors
    /// There is no way to the reflector, or the kernel does not take the address, interface or DSCP.
    pub fn open(wanted: Wanted) -> Result<Sender, SenderError> {
        let error = |error| SenderError::Socket { to: wanted.to, error };
        let (socket, local) = open(&wanted).map_err(error)?;
        Ok(Sender { socket, local, wanted })
    }

    /// Own address and port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Runs the session until its end, or until somebody stops it.
    ///
    /// # Errors
    /// The kernel took not even the first packet.
    pub fn run(self, stop: &AtomicBool, live: &Live) -> Result<Outcome, SenderError> {
        let before = clocks::ahead(Clock::Realtime, Clock::Monotonic);
        let clock = ClockState::read();
        let to = self.wanted.to;
        let mut running = Running::new(self, clock);
        running.run(stop, live).map_err(|error| SenderError::Send { to, error })?;
        let mut outcome = running.outcome;
        outcome.lasted = running.lasted;
        let error = |state: Option<ClockState>| state?.error_ns();
        outcome.clock_error_ns = error(clock).zip(error(ClockState::read())).map(|(a, b)| a.max(b));
        let now = clocks::ahead(Clock::Realtime, Clock::Monotonic);
        // adjtimex(2) slews by 500 ppm at most.
        let slewed = u64::try_from(running.start.elapsed().as_nanos() / 2000).unwrap_or(u64::MAX);
        let moved = now.ns.abs_diff(before.ns);
        let doubt = before.width_ns.saturating_add(now.width_ns).saturating_add(slewed);
        outcome.stepped_ns = (moved > doubt.saturating_add(1_000_000)).then_some(moved);
        Ok(outcome)
    }
}

fn open(wanted: &Wanted) -> io::Result<(UdpSocket, SocketAddr)> {
    let v6 = wanted.to.is_ipv6();
    let any: IpAddr = if v6 { [0_u16; 8].into() } else { [0_u8; 4].into() };
    let socket = UdpSocket::bind((wanted.from.unwrap_or(any), 0))?;
    if let Some(device) = &wanted.device {
        set_name(&socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device)?;
    }
    kernel::tell_all(&socket, v6)?;
    let tos = wanted.tos.map(libc::c_int::from);
    if v6 {
        set_int(&socket, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, TTL.into())?;
        tos.map_or(Ok(()), |tos| set_int(&socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos))?;
    } else {
        set_int(&socket, libc::IPPROTO_IP, libc::IP_TTL, TTL.into())?;
        tos.map_or(Ok(()), |tos| set_int(&socket, libc::IPPROTO_IP, libc::IP_TOS, tos))?;
    }
    // Another socket that is connected says which address packets will have; ours is not, so that it hears answers from elsewhere.
    let port = socket.local_addr()?.port();
    let probe = UdpSocket::bind((wanted.from.unwrap_or(any), 0))?;
    if let Some(device) = &wanted.device {
        set_name(&probe, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device)?;
    }
    probe.connect(wanted.to)?;
    let local = SocketAddr::new(probe.local_addr()?.ip(), port);
    Ok((socket, local))
}

struct Running {
    socket: UdpSocket,
    wanted: Wanted,
    outcome: Outcome,
    error: ErrorEstimate,
    start: Instant,
    /// Packets that were due and dealt with: sent or refused.
    done: u64,
    /// When the last one was.
    last: Instant,
    lasted: Duration,
    dropped: Option<u32>,
}

impl Running {
    fn new(sender: Sender, clock: Option<ClockState>) -> Running {
        let Sender { socket, local, wanted } = sender;
        let wait = u64::try_from(wanted.wait.as_nanos()).unwrap_or(u64::MAX);
        let tai_ns = i64::from(clock.map_or(0, |clock| clock.tai_offset_s)).saturating_mul(1_000_000_000);
        let error_ns = clock.and_then(|clock| clock.error_ns());
        let outcome = Outcome {
            session: Session::new(wanted.session, wanted.size.min(LARGEST), wait, tai_ns),
            local,
            unsent: 0,
            refused: 0,
            refusal: None,
            errors: Errors::default(),
            stamped_here: 0,
            dropped: 0,
            stranger: None,
            latest_ns: 0,
            clock_error_ns: error_ns,
            stepped_ns: None,
            lasted: Duration::ZERO,
        };
        let error = ErrorEstimate { synchronised: error_ns.is_some(), format: Format::Ntp, error_ns };
        let now = Instant::now();
        let (lasted, dropped) = (Duration::ZERO, None);
        Running { socket, wanted, outcome, error, start: now, done: 0, last: now, lasted, dropped }
    }

    /// When packet `number` is due: a function of its number, so that nothing drifts.
    fn due(&self, number: u64) -> Duration {
        let ns = u128::from(number) * 1_000_000_000 / u128::from(self.wanted.per_second.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Packets that are due by then.
    fn due_by(&self, now: Duration) -> u64 {
        let due = now.as_nanos() * u128::from(self.wanted.per_second) / 1_000_000_000 + 1;
        u64::try_from(due).unwrap_or(u64::MAX).min(self.wanted.count)
    }

    fn run(&mut self, stop: &AtomicBool, live: &Live) -> io::Result<()> {
        self.start = Instant::now();
        let whole = self.due(self.wanted.count);
        let mut buffer = [0; READ];
        let mut sending = true;
        loop {
            let now = self.start.elapsed();
            let over = stop.load(Relaxed) || now > whole.saturating_add(GRACE);
            if sending && (self.done >= self.wanted.count || over) {
                (sending, self.lasted) = (false, now.min(whole));
                self.outcome.unsent = self.due_by(now).saturating_sub(self.done);
            }
            if sending && now >= self.due(self.done) {
                let late = now.saturating_sub(self.due(self.done)).as_nanos();
                self.outcome.latest_ns = self.outcome.latest_ns.max(u64::try_from(late).unwrap_or(u64::MAX));
                self.send()?;
                live.sent.store(self.outcome.session.sent(), Relaxed);
            }
            if !sending && self.is_over() {
                self.take_the_rest(&mut buffer, live);
                break;
            }
            self.wait(sending);
            self.take(&mut buffer, live);
        }
        Ok(())
    }

    /// Everything was answered, or the last packet has waited.
    fn is_over(&self) -> bool {
        let session = &self.outcome.session;
        session.figures.answered + session.figures.late >= session.sent()
            || self.last.elapsed() > self.wanted.wait
    }

    /// Until something arrives, or is due.
    fn wait(&self, sending: bool) {
        let left = if sending {
            self.due(self.done).saturating_sub(self.start.elapsed())
        } else {
            self.wanted.wait.saturating_sub(self.last.elapsed()) + Duration::from_millis(1)
        };
        let left = left.min(LOOK);
        let time = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        // Interrupted or not: it is looked at what there is.
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&time));
    }

    /// Sends one packet. T1 is taken last.
    ///
    /// # Errors
    /// It is the first that the kernel refuses, and it has taken none.
    fn send(&mut self) -> io::Result<()> {
        self.done += 1;
        let mut again = true;
        loop {
            let now = i64::try_from(clocks::now(Clock::Realtime)).unwrap_or(i64::MAX);
            let Some(packet) = self.outcome.session.send(now, self.error) else { return Ok(()) };
            let Err(error) = self.socket.send_to(packet, self.wanted.to) else {
                self.last = Instant::now();
                return Ok(());
            };
            self.outcome.session.unsend();
            // An error that came back for an earlier packet is told by the next call; this packet was not looked at.
            self.errors();
            if std::mem::take(&mut again) {
                continue;
            }
            self.outcome.refused += 1;
            if self.outcome.session.sent() == 0 && error.raw_os_error() != Some(libc::ENOBUFS) {
                return Err(error);
            }
            self.outcome.refusal = Some(error);
            return Ok(());
        }
    }

    /// Takes what has arrived. False: there may be more.
    fn take(&mut self, buffer: &mut [u8], live: &Live) -> bool {
        let mut all = false;
        for _ in 0..AT_ONCE {
            match kernel::receive(&self.socket, buffer) {
                Ok(Some(received)) => self.arrived(buffer, received, live),
                Ok(None) => {
                    all = true;
                    break;
                }
                // One that came back for a packet: told beside what arrives, and removed by that.
                Err(_) => self.errors(),
            }
        }
        self.errors();
        all
    }

    /// Takes what was there when the time was over, all of it: an answer behind what others sent has arrived, too.
    fn take_the_rest(&mut self, buffer: &mut [u8], live: &Live) {
        let by = Instant::now() + REST;
        while !self.take(buffer, live) && Instant::now() < by {}
        self.dropped(transport::socket::drops(&self.socket));
    }

    /// So many had found no room in the socket by now, of a counter of 32 bits that turns over.
    fn dropped(&mut self, now: Option<u32>) {
        let Some(now) = now else { return };
        let before = self.dropped.replace(now).unwrap_or(0);
        self.outcome.dropped += u64::from(now.wrapping_sub(before));
    }

    fn arrived(&mut self, buffer: &[u8], received: kernel::Received, live: &Live) {
        let is_reflector =
            |from: &SocketAddr| (from.ip(), from.port()) == (self.wanted.to.ip(), self.wanted.to.port());
        let from_reflector = received.from.as_ref().is_some_and(is_reflector);
        self.dropped(received.dropped);
        let here = || i64::try_from(clocks::now(Clock::Realtime)).unwrap_or(i64::MAX);
        let at = received.at_ns.unwrap_or_else(here);
        let bytes = buffer.get(..received.length.min(buffer.len())).unwrap_or_default();
        let session = &mut self.outcome.session;
        let before = session.figures.round_trip.count();
        match session.arrived(bytes, received.length, from_reflector, at) {
            Arrived::Answered => {
                self.outcome.stamped_here += u64::from(received.at_ns.is_none());
                live.answered.store(session.figures.answered, Relaxed);
                if session.figures.round_trip.count() > before
                    && let Some(last) = session.last_round_trip_ns()
                    && let Ok(mut shown) = live.round_trip.lock()
                {
                    shown.record(last);
                }
            }
            Arrived::OtherSource => self.outcome.stranger = self.outcome.stranger.or(received.from),
            _ => {}
        }
    }

    /// Takes the errors that came back.
    fn errors(&mut self) {
        for _ in 0..AT_ONCE {
            let Ok(Some(error)) = kernel::refusal(&self.socket) else { break };
            self.outcome.errors.add(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_any_number_of_kinds_are_counted() {
        let error = |code| Refusal { origin: 2, kind: 3, code, errno: 111, by: None };
        let mut errors = Errors::default();
        for code in (0..=255).chain(0..=255) {
            errors.add(error(code));
        }
        assert_eq!(errors.kinds.len(), ERRORS);
        assert_eq!(errors.kinds.iter().map(|(_, count)| count).sum::<u64>() + errors.others, 512);
    }

    /// Others' datagrams fill the socket while the sender is held up.
    #[test]
    fn an_answer_behind_a_flood_is_taken_at_the_end_and_what_found_no_room_is_counted() -> io::Result<()> {
        let reflector = UdpSocket::bind("127.0.0.1:0")?;
        let wanted = Wanted {
            to: reflector.local_addr()?,
            from: None,
            device: None,
            tos: None,
            size: crate::packet::BASE,
            session: 7,
            count: 1,
            per_second: 1,
            wait: Duration::from_secs(60),
        };
        let sender = Sender::open(wanted).map_err(io::Error::other)?;
        let to = SocketAddr::from(([127, 0, 0, 1], sender.local().port()));
        let mut running = Running::new(sender, ClockState::read());
        running.send()?;
        let flood = UdpSocket::bind("127.0.0.1:0")?;
        for _ in 0..2 * AT_ONCE {
            flood.send_to(&[0; 44], to)?;
        }
        let mut packet = [0; 44];
        reflector.recv_from(&mut packet)?;
        let mut answer = [0; 44];
        answer[24..38].copy_from_slice(&packet[..14]);
        reflector.send_to(&answer, to)?;
        for _ in 0..5000 {
            flood.send_to(&[0; 44], to)?;
        }
        running.take_the_rest(&mut [0; READ], &Live::default());
        let figures = &running.outcome.session.figures;
        assert_eq!(figures.answered, 1);
        assert!(running.outcome.dropped > 0);
        let others = figures.strangers.other_source + running.outcome.dropped;
        assert_eq!(others, 2 * AT_ONCE as u64 + 5000);
        Ok(())
    }
}
