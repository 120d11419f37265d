//! A client: one test with one server.

use super::Show;
use super::control::Control;
use super::data::{Data, Ways};
use super::open::{self, Local};
use crate::cpu;
use endpoint::iperf3::client::{Action, Session};
use endpoint::iperf3::params::{Params, Protocol};
use endpoint::iperf3::results::{Cpu, Results};
use endpoint::iperf3::summary::{End, Role, Start, Total};
use endpoint::iperf3::{Cookie, Error, TCP_BLOCK, UDP_BLOCK, limits};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Signals and streams that ended are looked for so often.
const LOOK: Duration = Duration::from_millis(20);
/// The same where the test ends by an amount, which may be there soon.
const LOOK_CLOSELY: Duration = Duration::from_micros(500);
/// So long after the last datagram of an amount none will come.
const SILENCE: Duration = Duration::from_secs(2);
/// All of an amount has arrived at the server's host. The server counts what its program has read, and nothing says how far that is: the end
/// is told when the windows that the server's host gives have not changed for so long, and two round trips.
const READS: Duration = Duration::from_millis(100);
/// What was sent and of which nothing more arrives within this is not waited for.
const STUCK: Duration = Duration::from_secs(10);
/// A stream that breaks may do so because the server is ending: then it says so within this.
const SAYS: Duration = Duration::from_millis(500);

/// What is tested, and how.
#[derive(Debug, Clone)]
pub struct Client {
    /// The server, by name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// IPv6 alone, or IPv4 alone.
    pub family: Option<bool>,
    /// This host's side of sockets.
    pub local: Local,
    /// The test. A `len` of 0 is filled in.
    pub params: Params,
    /// Seconds of an interval; 0: one.
    pub interval: f64,
    /// The core of this side.
    pub core: Option<u32>,
    /// A file to send or to write.
    pub file: Option<PathBuf>,
    /// Data must come within so long, where this side receives.
    pub receive_timeout: Duration,
    /// For the output: what uname(2) says.
    pub system: String,
    /// Ends the test.
    pub stop: Arc<AtomicBool>,
}

/// Why a test did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// What happened.
    Error(String),
    /// `stop` was set.
    Interrupted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error.to_string())
    }
}

fn failed(error: impl ToString) -> Failure {
    Failure::Error(error.to_string())
}

/// What runs.
struct Test<'a> {
    client: &'a Client,
    show: &'a mut dyn Show,
    control: Control,
    session: Session,
    start: Start,
    cookie: Cookie,
    data: Option<Data>,
    epoch: Instant,
    next: f64,
    /// What had arrived when something last did.
    heard: (u64, Instant),
}

impl Client {
    /// Runs the test. What was measured is shown even where it fails.
    ///
    /// # Errors
    /// It did not come to its end.
    pub fn run(&self, show: &mut dyn Show) -> Result<(), Failure> {
        if let Some(core) = self.core {
            cpu::pin(core).map_err(|error| failed(format!("unable to set CPU affinity: {error}")))?;
        }
        let mptcp = self.params.mptcp;
        let socket = open::control(&self.host, self.port, self.family, &self.local, mptcp).map_err(failed)?;
        if let Some(keep_alive) = &self.local.keep_alive {
            keep_alive.set(&socket).map_err(failed)?;
        }
        let mut random = [0; 36];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty()).map_err(failed)?;
        let cookie = Cookie::new(random);
        let mut control = Control::new(socket).map_err(failed)?;
        control.send(cookie.bytes())?;
        // Now that data was sent it is what the path allows.
        let mss = crate::socket::Actual::of(control.socket()).mss.unwrap_or(0);
        let mut params = self.params.clone();
        let dynamic = params.len == 0 && params.protocol == Protocol::Udp && mss > 0;
        if params.len == 0 {
            params.len = match params.protocol {
                Protocol::Tcp => TCP_BLOCK,
                Protocol::Udp if dynamic => {
                    u64::from(mss).clamp(*limits::UDP_BLOCK.start(), *limits::UDP_BLOCK.end())
                }
                Protocol::Udp => UDP_BLOCK,
            };
        }
        let epoch = Instant::now();
        let session = Session::new(&params, Duration::ZERO);
        let start = Start {
            role: Role::Client,
            host: self.host.clone(),
            port: self.port,
            cookie: cookie.text().to_owned(),
            unix_ms: unix_ms(),
            system: self.system.clone(),
            mss,
            send_buffer: 0,
            receive_buffer: 0,
            interval: self.interval,
            streams: Vec::new(),
            params,
        };
        show.connected(&start, dynamic);
        let mut test = Test {
            client: self,
            show,
            control,
            session,
            start,
            cookie,
            data: None,
            epoch,
            next: self.interval,
            heard: (0, epoch),
        };
        match test.run() {
            Ok(()) => Ok(()),
            Err(failure) => {
                test.break_off(&failure);
                Err(failure)
            }
        }
    }
}

/// Milliseconds of Unix time.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}

impl Test<'_> {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn run(&mut self) -> Result<(), Failure> {
        loop {
            if self.client.stop.load(Relaxed) {
                return Err(Failure::Interrupted);
            }
            let mut patience = LOOK;
            if self.session.running() {
                patience = self.tick()?;
            } else if let Some(deadline) = self.session.deadline()
                && self.now() > deadline
            {
                return Err(self.session.late().into());
            }
            let bytes = self.control.receive(patience)?;
            if self.take(&bytes)? {
                return Ok(());
            }
        }
    }

    /// Bytes from the server, or none; whether the test is done.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        for action in self.session.receive(bytes, self.now())? {
            match action {
                Action::Send(bytes) => self.control.send(&bytes)?,
                Action::OpenStreams => self.open()?,
                Action::Prepare => {}
                Action::Run => self.begin()?,
                Action::Report => {
                    let Some(data) = &mut self.data else { continue };
                    let results = data.results();
                    let bytes = self.session.results(&results, self.epoch.elapsed());
                    self.control.send(&bytes)?;
                    // The server's may have come with what asked for ours.
                    return self.take(&[]);
                }
                Action::Done(theirs) => {
                    if let Some(Err(error)) = self.data.as_ref().map(|data| data.check(&theirs)) {
                        self.conclude(None);
                        return Err(error.into());
                    }
                    self.conclude(Some(&theirs));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn peer(&self) -> Result<std::net::SocketAddr, Failure> {
        TcpStream::peer_addr(self.control.socket()).map_err(failed)
    }

    fn open(&mut self) -> Result<(), Failure> {
        let peer = self.peer()?;
        let links =
            open::streams(peer, &self.start.params, &self.cookie, &self.client.local).map_err(failed)?;
        let ways = Ways { file: self.client.file.clone(), ends_it: true };
        let data = Data::new(self.start.params.clone(), ways, links).map_err(failed)?;
        let actual = data.actual();
        self.start.streams = data.streams();
        self.start.send_buffer = actual.send_buffer.unwrap_or(0).into();
        self.start.receive_buffer = actual.receive_buffer.unwrap_or(0).into();
        self.data = Some(data);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.show.start(&self.start);
        if let Some(data) = &mut self.data {
            data.run().map_err(|error| failed(format!("unable to create thread: {error}")))?;
        }
        self.heard = (0, Instant::now());
        Ok(())
    }

    /// What is due while data flows; how long until the next.
    fn tick(&mut self) -> Result<Duration, Failure> {
        let Some(data) = &mut self.data else { return Ok(LOOK) };
        let received = data.received().unwrap_or(0);
        self.show.look(data.moved().saturating_sub(received), received);
        let params = &self.start.params;
        let by_amount = params.bytes > 0 || params.blocks > 0;
        if data.omitting() && data.runs() >= Duration::from_secs(params.omit.into()) {
            if data.rest().1 && self.client.interval > 0.0 {
                self.show.interval(&self.start, &data.interval());
            }
            data.omitted();
            self.next = self.client.interval;
        }
        if data.finished()
            || (!by_amount
                && params.seconds > 0
                && !data.omitting()
                && data.seconds() >= f64::from(params.seconds))
        {
            self.finish()?;
            return Ok(LOOK);
        }
        if let Some(failure) = data.failure() {
            // The server's own word is the better one.
            let bytes = self.control.receive(SAYS)?;
            self.take(&bytes)?;
            return Err(Failure::Error(failure));
        }
        if self.client.interval > 0.0 && data.seconds() >= self.next {
            self.show.interval(&self.start, &data.interval());
            while self.next <= data.seconds() {
                self.next += self.client.interval;
            }
        }
        if let Some(received) = data.received() {
            if received != self.heard.0 {
                self.heard = (received, Instant::now());
            } else if by_amount
                && received > 0
                && params.protocol == Protocol::Udp
                && self.heard.1.elapsed() > SILENCE
            {
                // The server has sent it all, and some of it is lost.
                self.finish()?;
                return Ok(LOOK);
            } else if self.heard.1.elapsed() > self.client.receive_timeout {
                return Err(failed("idle timeout for receiving data"));
            }
        }
        let look = if by_amount { LOOK_CLOSELY } else { LOOK };
        Ok(data.due(self.next, look))
    }

    /// The data is done.
    fn finish(&mut self) -> Result<(), Failure> {
        if let Some(data) = &mut self.data {
            if data.all_sent() {
                drained(data, &self.client.stop);
            }
            // The server hears of the end before this side has read what had arrived by then: its time is as long as ours.
            data.halt();
            data.told();
        }
        let bytes = self.session.end(self.now());
        self.control.send(&bytes)?;
        if let Some(data) = &mut self.data {
            data.finish();
        }
        self.last_interval();
        Ok(())
    }

    /// What came after the last whole interval. One that is a tenth as long as others, and empty, says nothing.
    fn last_interval(&mut self) {
        let Some(data) = &mut self.data else { return };
        let (since, moved) = data.rest();
        if since.as_secs_f64() > 0.1 * self.client.interval || moved {
            self.show.interval(&self.start, &data.interval());
        }
    }

    fn conclude(&mut self, theirs: Option<&Results>) {
        let Some(data) = &mut self.data else { return };
        let mut end = ended(data, theirs);
        // What nobody asked for is not shown, whoever says it.
        end.server_output = end.server_output.filter(|_| self.start.params.server_output);
        end.unread = unread(&self.start.params, &end);
        self.show.end(&self.start, &end);
    }

    /// What was measured until now is shown, and the server is told.
    fn break_off(&mut self, failure: &Failure) {
        let running = self.session.running();
        if let Some(data) = &mut self.data {
            data.finish();
        }
        if running {
            self.last_interval();
            self.conclude(None);
        }
        if *failure == Failure::Interrupted {
            self.control.say(&Session::terminate());
        }
    }
}

/// Waits until all that was sent has arrived at the server's host, and its program has had time to read it: a server counts nothing that it reads
/// after it was told of the end.
fn drained(data: &mut Data, stop: &AtomicBool) {
    let mut seen = data.under_way();
    let mut since = Instant::now();
    let mut gone = (seen.0 == 0).then_some(since);
    let reads = READS.max(2 * data.round_trip());
    while !stop.load(Relaxed) {
        let patience = if gone.is_some() { reads } else { STUCK };
        if since.elapsed() >= patience {
            break;
        }
        // The end of sending is a time that rates are of; that of reading is not.
        std::thread::sleep(Duration::from_micros(if gone.is_some() { 2000 } else { 100 }));
        let now = data.under_way();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        if now.0 == 0 {
            gone.get_or_insert(since);
        }
    }
    if let Some(gone) = gone {
        data.gone(gone);
    }
}

/// Bytes of an amount that the server's host acknowledged and the server did not count: it did not read them before it ended.
fn unread(params: &Params, end: &End) -> u64 {
    let by_amount = params.bytes > 0 || params.blocks > 0;
    let sent =
        end.streams.iter().filter(|total| total.sender && by_amount && params.protocol == Protocol::Tcp);
    let short = |total: &Total| Some(total.sent?.bytes.saturating_sub(total.received?.bytes));
    sent.filter_map(short).sum()
}

/// The end as either side has it.
pub fn ended(data: &mut Data, theirs: Option<&Results>) -> End {
    let own = data.results();
    End {
        streams: data.totals(theirs),
        cpu: own.cpu,
        remote_cpu: theirs.map(|theirs| theirs.cpu).filter(Cpu::is_possible),
        congestion: own.congestion,
        remote_congestion: theirs.and_then(|theirs| theirs.congestion.clone()),
        server_output: theirs.and_then(|theirs| theirs.output.clone()),
        receiver_drops: data.drops(),
        unread: 0,
        file: data.file(),
    }
}
