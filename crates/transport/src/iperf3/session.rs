//! One client's test on a server: its thread has the control connection, and ends whatever happens.

use super::Show;
use super::client::{ended, unix_ms};
use super::control::Control;
use super::data::{Data, Link, Ways};
use super::open::{self, Local};
use super::server::{Numbered, Shared};
use crate::cpu;
use crate::lobby::{Seat, Share};
use endpoint::iperf3::params::{Params, Protocol};
use endpoint::iperf3::results::Results;
use endpoint::iperf3::server::{self, Event};
use endpoint::iperf3::summary::{Role, Start};
use endpoint::iperf3::{Code, Cookie, Error, TCP_BLOCK, UDP_BLOCK};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Timers, streams and the end of the server are looked for so often.
const LOOK: Duration = Duration::from_millis(20);
/// Whoever waits for a client that is due looks no more often.
const LEAST: Duration = Duration::from_millis(1);
/// Streams that are being opened are there at once.
const LOOK_CLOSELY: Duration = Duration::from_millis(2);
/// Where another client of the same address opens its streams of datagrams, for so long.
const TURN: Duration = Duration::from_secs(20);

/// A client that breaks off says so within this.
const SAYS: Duration = Duration::from_millis(200);

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// The client has its results.
    Well,
    /// It was a test, and did not come to its end.
    Failed,
    /// It never became a test.
    NoTest,
}

/// A session.
pub(super) struct Session<'a> {
    shared: &'a Shared,
    control: Control,
    cookie: Cookie,
    peer: SocketAddr,
    show: Box<dyn Show>,
    protocol: server::Session,
    epoch: Instant,
    links: (Sender<Numbered>, Receiver<Numbered>),
    /// Until its test begins it may have to leave for others.
    seat: Option<Seat>,
    /// Of the bytes and the tests that all have together.
    shares: Vec<Share<'a>>,
    test: Option<Test>,
}

/// What a client asked for and the server agreed to.
struct Test {
    start: Start,
    data: Option<Data>,
    came: Vec<Numbered>,
    next: f64,
    heard: (u64, Instant),
    /// When, and what had been moved then: once a second, for the limit of the rate.
    moved: VecDeque<(Duration, u64)>,
}

/// Serves the client.
pub(super) fn run(mut session: Session<'_>) -> Done {
    match session.serve() {
        Ok(()) => Done::Well,
        Err(error) => session.break_off(&error),
    }
}

impl<'a> Session<'a> {
    /// Of a client whose cookie came.
    pub(super) fn new(
        shared: &'a Shared,
        control: Control,
        cookie: Cookie,
        peer: SocketAddr,
        show: Box<dyn Show>,
        seat: Seat,
    ) -> Session<'a> {
        let (protocol, _) = server::Session::new(Duration::ZERO);
        let epoch = Instant::now();
        let (links, seat, shares) = (channel(), Some(seat), Vec::new());
        Session { shared, control, cookie, peer, show, protocol, epoch, links, seat, shares, test: None }
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn serve(&mut self) -> Result<(), Error> {
        let (protocol, first) = server::Session::new(self.now());
        self.protocol = protocol;
        self.control.send(&first)?;
        loop {
            if self.shared.stop.load(Relaxed) {
                return Err(Error::ServerTerminated);
            }
            if self.protocol.deadline().is_some_and(|deadline| self.now() > deadline) {
                return if self.protocol.finishing() { Ok(()) } else { Err(self.protocol.late()) };
            }
            let patience = match self.tick() {
                Ok(patience) => patience,
                // A stream that broke may be one of a client that says why.
                Err(error) => {
                    let bytes = self.control.receive(SAYS)?;
                    match self.protocol.receive(&bytes, self.now())? {
                        Some(Event::Ends) => self.ends()?,
                        _ => return Err(error),
                    }
                    continue;
                }
            };
            let bytes = match self.control.receive(patience) {
                Ok(bytes) => bytes,
                // It has its results.
                Err(_) if self.protocol.finishing() => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut event = self.protocol.receive(&bytes, self.now())?;
            while let Some(one) = event {
                match one {
                    Event::Asks(params) => self.asked(*params)?,
                    Event::Ends => self.ends()?,
                    Event::Results(theirs) => self.results(&theirs)?,
                    Event::Done => return Ok(()),
                }
                event = self.protocol.receive(&[], self.now())?;
            }
        }
    }

    /// Whether the test may be.
    fn judge(&self, params: &Params) -> Result<(), Error> {
        let server = &self.shared.server;
        if let Some(check) = &server.check {
            check(params.auth_token.as_deref()).map_err(|why| Error::Refused(Code::Authorization, why))?;
        }
        let limits = &server.limits;
        if limits.seconds > 0 && params.seconds.saturating_add(params.omit) > limits.seconds {
            let words = "client's requested duration exceeds the server's maximum permitted limit";
            return Err(Error::Refused(Code::Duration, words.into()));
        }
        if limits.rate.0 > 0 && params.total_rate() > limits.rate.0 {
            let words = "total required bandwidth is larger than server limit";
            return Err(Error::Refused(Code::TotalRate, words.into()));
        }
        Ok(())
    }

    fn asked(&mut self, mut params: Params) -> Result<(), Error> {
        self.judge(&params)?;
        if params.len == 0 {
            params.len = if params.protocol == Protocol::Tcp { TCP_BLOCK } else { UDP_BLOCK };
        }
        let (wanted, memory) = (open::memory(&params), &self.shared.memory);
        let share = memory.take(wanted).ok_or_else(|| {
            let said = format!(
                "{wanted} bytes of buffers are asked for, and of the {} that the server has for all tests {} are taken",
                memory.most(),
                memory.taken()
            );
            Error::NoRoom(said)
        })?;
        self.shares.push(share);
        if let Some(core) = params.server_affinity.or(self.shared.server.core) {
            cpu::pin(core).map_err(|error| {
                Error::Refused(Code::InitStream, format!("unable to set CPU affinity: {error}"))
            })?;
        }
        let start = Start {
            role: Role::Server,
            host: self.peer.ip().to_string(),
            port: self.peer.port(),
            cookie: self.cookie.text().to_owned(),
            unix_ms: unix_ms(),
            system: self.shared.server.system.clone(),
            mss: 0,
            send_buffer: 0,
            receive_buffer: 0,
            interval: self.shared.server.interval,
            streams: Vec::new(),
            params,
        };
        self.show.connected(&start, false);
        let began = Instant::now();
        while !self.shared.opens(&self.cookie, &start.params, &self.links.0) {
            if began.elapsed() > TURN || self.shared.stop.load(Relaxed) {
                let words = "another client of this address opens its streams".to_owned();
                return Err(open::create_stream(words));
            }
            std::thread::sleep(LOOK_CLOSELY);
        }
        self.test = Some(Test {
            next: start.interval,
            start,
            data: None,
            came: Vec::new(),
            heard: (0, began),
            moved: VecDeque::new(),
        });
        let now = self.now();
        let bytes = self.protocol.accept(now);
        self.control.send(&bytes)
    }

    /// What is due; how long to wait for the client's next word.
    fn tick(&mut self) -> Result<Duration, Error> {
        let Some(test) = &mut self.test else { return Ok(LOOK) };
        if test.data.is_none() {
            test.came.extend(self.links.1.try_iter());
            if test.came.len() < test.start.params.client_sends().len() {
                return Ok(LOOK_CLOSELY);
            }
            self.begin()?;
            return Ok(LOOK);
        }
        let limits = &self.shared.server.limits;
        test.flow(&mut *self.show, limits.rate, limits.receive_timeout, limits.seconds)
    }

    /// All streams are there.
    fn begin(&mut self) -> Result<(), Error> {
        self.shared.opened(&self.cookie);
        let Some(one) = self.shared.tests.take(1) else { return Err(Error::Busy) };
        self.shares.push(one);
        self.seat = None;
        let server = &self.shared.server;
        let Some(test) = &mut self.test else { return Ok(()) };
        let params = &test.start.params;
        let mut came = std::mem::take(&mut test.came);
        came.sort_by_key(|(number, _)| *number);
        let local = Local { send_timeout: server.send_timeout, ..Local::default() };
        let mut links = Vec::new();
        for ((_, link), client_sends) in came.into_iter().zip(params.client_sends()) {
            if let Link::Tcp(stream) = &link {
                let code = |error: crate::socket::SocketError| {
                    let code = if error.to_string().contains("TCP_CONGESTION") {
                        Code::Congestion
                    } else {
                        Code::InitStream
                    };
                    Error::Refused(code, error.to_string())
                };
                open::options(params, !client_sends).apply(stream, self.peer.ip()).map_err(code)?;
                open::finish(stream, params, &local).map_err(code)?;
            }
            links.push((link, !client_sends));
        }
        let ways = Ways { file: server.file.clone(), ends_it: false };
        let failed =
            |error: std::io::Error| open::create_stream(format!("unable to create a stream: {error}"));
        let mut data = Data::new(params.clone(), ways, links).map_err(failed)?;
        let actual = data.actual();
        test.start.streams = data.streams();
        test.start.send_buffer = actual.send_buffer.unwrap_or(0).into();
        test.start.receive_buffer = actual.receive_buffer.unwrap_or(0).into();
        test.start.mss = actual.mss.unwrap_or(0);
        self.show.start(&test.start);
        let bytes = self.protocol.run(self.epoch.elapsed());
        self.control.send(&bytes)?;
        data.run().map_err(failed)?;
        test.heard = (0, Instant::now());
        test.data = Some(data);
        Ok(())
    }

    /// The client is done.
    fn ends(&mut self) -> Result<(), Error> {
        if let Some(test) = &mut self.test {
            test.last_interval(&mut *self.show);
            // iperf3's client reads whole blocks until it hears of the results: without an end it waits for the rest of one.
            if let Some(data) = &test.data {
                data.close_senders();
            }
        }
        let bytes = self.protocol.ended(self.epoch.elapsed());
        self.control.send(&bytes)
    }

    /// Both sides' results are here.
    fn results(&mut self, theirs: &Results) -> Result<(), Error> {
        let mut own = Results::default();
        if let Some(test) = &mut self.test
            && let Some(data) = &mut test.data
        {
            own = data.results();
            // A client's idea of this server's output is none.
            let theirs = Results { output: None, ..theirs.clone() };
            self.show.end(&test.start, &ended(data, Some(&theirs)));
            if test.start.params.server_output {
                own.output = self.show.output();
            }
        }
        let bytes = self.protocol.results(&own, self.epoch.elapsed());
        self.control.send(&bytes)
    }

    /// The test cannot go on: the client is told, what was measured is shown.
    fn break_off(&mut self, error: &Error) -> Done {
        self.shared.opened(&self.cookie);
        match error {
            Error::ServerTerminated => self.control.say(&server::Session::terminate()),
            Error::Busy => self.control.say(&server::Session::busy()),
            Error::ClientTerminated | Error::Closed => {}
            Error::NoRoom(_) => {
                self.control.say(&server::Session::refuse(Params::code(error), libc::ENOMEM));
            }
            _ => self.control.say(&server::Session::refuse(Params::code(error), 0)),
        }
        if let Some(test) = &mut self.test
            && test.data.is_some()
        {
            test.last_interval(&mut *self.show);
            if let Some(data) = &mut test.data {
                self.show.end(&test.start, &ended(data, None));
            }
        }
        self.show.error(&error.to_string());
        // A client that is refused was still served; one that came while another was served was not.
        match self.test {
            Some(_) if *error == Error::Busy => Done::NoTest,
            Some(_) => Done::Failed,
            None => Done::NoTest,
        }
    }
}

impl Test {
    /// While data flows.
    fn flow(
        &mut self,
        show: &mut dyn Show,
        (most, over): (u64, u64),
        patience: Duration,
        limit: u32,
    ) -> Result<Duration, Error> {
        let Some(data) = &mut self.data else { return Ok(LOOK) };
        let interval = self.start.interval;
        if data.omitting() && data.runs() >= Duration::from_secs(self.start.params.omit.into()) {
            if data.rest().1 && interval > 0.0 {
                show.interval(&self.start, &data.interval());
            }
            data.omitted();
            self.next = interval;
        }
        if interval > 0.0 && data.seconds() >= self.next {
            // The client's end comes at the same time as the last whole interval: one line for both.
            let end = f64::from(self.start.params.seconds);
            if data.omitting() || end == 0.0 || (data.seconds() - end).abs() > 0.05 {
                show.interval(&self.start, &data.interval());
            }
            while self.next <= data.seconds() {
                self.next += interval;
            }
        }
        if let Some(failure) = data.failure() {
            return Err(Error::Refused(Code::CreateStream, failure));
        }
        // A client that takes nothing keeps a place as one that sends nothing does.
        let (moved, now) = (data.received().unwrap_or_else(|| data.moved()), Instant::now());
        if moved != self.heard.0 {
            self.heard = (moved, now);
        } else if now.duration_since(self.heard.1) > patience {
            let words = match data.received() {
                Some(_) => "idle timeout for receiving data",
                None => "the client takes no data",
            };
            return Err(Error::Refused(Code::NoMessage, words.to_owned()));
        }
        let runs = data.runs();
        if limit > 0 && runs > Duration::from_secs(u64::from(limit) + 1) {
            return Err(Error::Refused(Code::Expired, "server test duration expired".into()));
        }
        if most > 0 && self.moved.back().is_none_or(|(at, _)| runs.saturating_sub(*at).as_secs() >= 1) {
            self.moved.push_back((runs, data.moved()));
            while self.moved.len() > usize::try_from(over.max(1)).unwrap_or(60) + 1 {
                self.moved.pop_front();
            }
            if let (Some(first), Some(last)) = (self.moved.front(), self.moved.back()) {
                let seconds = (last.0 - first.0).as_secs_f64();
                let bits = last.1.saturating_sub(first.1) as f64 * 8.0;
                if seconds >= over.max(1) as f64 && bits / seconds > most as f64 {
                    let words = "total required bandwidth is larger than server limit".to_owned();
                    return Err(Error::Refused(Code::TotalRate, words));
                }
            }
        }
        Ok(data.due(self.next, LOOK).max(LEAST))
    }

    fn last_interval(&mut self, show: &mut dyn Show) {
        let Some(data) = &mut self.data else { return };
        data.finish();
        let (since, moved) = data.rest();
        if since.as_secs_f64() > 0.1 * self.start.interval || moved {
            show.interval(&self.start, &data.interval());
        }
    }
}
