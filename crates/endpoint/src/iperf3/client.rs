//! The client's side of a control connection: bytes and times in, bytes and what to do out.

use super::error::Error;
use super::inbox::{Inbox, framed};
use super::limits;
use super::params::Params;
use super::results::Results;
use super::state::State;
use std::time::Duration;

/// What to do next, in this order.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Open the data connections.
    OpenStreams,
    /// Get ready to send and receive.
    Prepare,
    /// Send and receive, from now on.
    Run,
    /// Say what was sent and received, by [`Session::results`].
    Report,
    /// The server's results are here; the test is done.
    Done(Box<Results>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connected,
    Parameters,
    Opening,
    Starting,
    Running,
    Ending,
    Reporting,
    Exchanging,
    Displaying,
    Done,
}

/// How long a server may take for its answer: it may wait for others before it lets streams be opened.
const ANSWER: Duration = Duration::from_secs(30);
/// For the results, which a server sends when it has read all that was sent.
const RESULTS: Duration = Duration::from_secs(60);

/// A control connection, as its client has it.
#[derive(Debug)]
pub struct Session {
    params: serde_json::Value,
    /// Those of both directions.
    streams: usize,
    phase: Phase,
    since: Duration,
    inbox: Inbox,
    failing: bool,
    results: Option<Box<Results>>,
}

impl Session {
    /// One that is connected, and whose cookie is sent.
    pub fn new(params: &Params, now: Duration) -> Session {
        Session {
            params: params.json(),
            streams: params.parallel as usize * if params.bidir { 2 } else { 1 },
            phase: Phase::Connected,
            since: now,
            inbox: Inbox::default(),
            failing: false,
            results: None,
        }
    }

    /// Bytes came.
    ///
    /// # Errors
    /// The test cannot go on.
    pub fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<Vec<Action>, Error> {
        self.inbox.push(bytes);
        let mut todo = Vec::new();
        while self.step(now, &mut todo)? {}
        Ok(todo)
    }

    /// One message, if it is whole.
    fn step(&mut self, now: Duration, todo: &mut Vec<Action>) -> Result<bool, Error> {
        if self.failing {
            let Some(numbers) = self.inbox.take(8) else { return Ok(false) };
            let number =
                |at: usize| numbers[at..].first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes));
            return Err(Error::Server(number(0), number(4)));
        }
        if self.phase == Phase::Exchanging {
            let Some(value) = self.inbox.json(limits::RESULTS, Error::Results)? else { return Ok(false) };
            self.results = Some(Box::new(Results::of(&value)?.has_all(self.streams)?));
            self.enter(Phase::Displaying, now);
            return Ok(true);
        }
        let Some(byte) = self.inbox.byte() else { return Ok(false) };
        match (State::of(byte), self.phase) {
            (Some(State::ParamExchange), Phase::Connected) => {
                todo.push(Action::Send(framed(&self.params)));
                self.enter(Phase::Parameters, now);
            }
            (Some(State::CreateStreams), Phase::Parameters) => {
                todo.push(Action::OpenStreams);
                self.enter(Phase::Opening, now);
            }
            (Some(State::TestStart), Phase::Opening) => {
                todo.push(Action::Prepare);
                self.enter(Phase::Starting, now);
            }
            (Some(State::TestRunning), Phase::Starting) => {
                todo.push(Action::Run);
                self.enter(Phase::Running, now);
            }
            (Some(State::ExchangeResults), Phase::Ending) => {
                todo.push(Action::Report);
                self.enter(Phase::Reporting, now);
            }
            (Some(State::DisplayResults), Phase::Displaying) => {
                todo.push(Action::Send(vec![State::IperfDone.byte()]));
                todo.push(Action::Done(self.results.take().unwrap_or_default()));
                self.enter(Phase::Done, now);
            }
            (Some(State::AccessDenied), _) => return Err(Error::Busy),
            (Some(State::ServerTerminate), _) => return Err(Error::ServerTerminated),
            (Some(State::ServerError), _) => self.failing = true,
            (Some(state), phase) => {
                return Err(Error::Unexpected(format!("{state:?} while {phase:?}")));
            }
            (None, _) => return Err(Error::Unexpected(format!("byte {byte}"))),
        }
        Ok(true)
    }

    fn enter(&mut self, phase: Phase, now: Duration) {
        self.phase = phase;
        self.since = now;
    }

    /// The data is sent, or received: the bytes that say so.
    pub fn end(&mut self, now: Duration) -> Vec<u8> {
        self.enter(Phase::Ending, now);
        vec![State::TestEnd.byte()]
    }

    /// These are this side's results: the bytes to send. What has come since is looked at by the next [`Session::receive`].
    pub fn results(&mut self, results: &Results, now: Duration) -> Vec<u8> {
        self.enter(Phase::Exchanging, now);
        framed(&results.json())
    }

    /// What the server is told if the client is ended before the test is.
    pub fn terminate() -> Vec<u8> {
        vec![State::ClientTerminate.byte()]
    }

    /// Until when the server must have said something. While data flows, the driver looks at that.
    pub fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Running | Phase::Done => None,
            Phase::Ending | Phase::Reporting | Phase::Exchanging | Phase::Displaying => {
                Some(self.since + RESULTS)
            }
            _ => Some(self.since + ANSWER),
        }
    }

    /// It did not.
    pub fn late(&self) -> Error {
        let (what, limit) = match self.phase {
            Phase::Connected => ("the server does not answer", ANSWER),
            Phase::Parameters => ("the server does not let streams be opened", ANSWER),
            Phase::Opening | Phase::Starting => ("the server does not start the test", ANSWER),
            _ => ("the server does not send its results", RESULTS),
        };
        Error::Late(what, limit.as_secs())
    }

    /// Data flows.
    pub fn running(&self) -> bool {
        self.phase == Phase::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const NOW: Duration = Duration::ZERO;

    fn session() -> Session {
        let params = Params { seconds: 1, parallel: 1, ..Params::default() };
        Session::new(&params, NOW)
    }

    #[test]
    fn a_whole_test_in_single_bytes() {
        let mut session = session();
        let mut seen = Vec::new();
        let theirs =
            framed(&json!({"cpu_util_total": 1, "streams": [{"id": 1, "bytes": 5, "end_time": 1.0}]}));
        for byte in [9, 10, 1, 2] {
            seen.extend(session.receive(&[byte], NOW).unwrap());
        }
        assert!(matches!(seen[0], Action::Send(ref sent) if sent.ends_with(b"}")));
        assert_eq!(seen[1..], [Action::OpenStreams, Action::Prepare, Action::Run]);
        assert!(session.running() && session.deadline().is_none());
        assert_eq!(session.end(NOW), [4]);
        assert_eq!(session.receive(&[13], NOW), Ok(vec![Action::Report]));
        session.results(&Results::default(), NOW);
        for byte in &theirs {
            assert_eq!(session.receive(&[*byte], NOW), Ok(vec![]));
        }
        let done = session.receive(&[14], NOW).unwrap();
        assert_eq!(done[0], Action::Send(vec![16]));
        assert!(matches!(&done[1], Action::Done(results) if results.streams[0].bytes == 5));
    }

    #[test]
    fn a_servers_refusals_are_said() {
        assert_eq!(session().receive(&[0xff], NOW), Err(Error::Busy));
        let mut failing = session();
        assert_eq!(failing.receive(&[9, 0xfe, 0, 0], NOW).map(|todo| todo.len()), Ok(1));
        assert_eq!(failing.receive(&[0, 142, 0, 0, 0, 13], NOW), Err(Error::Server(142, 13)));
        assert!(matches!(session().receive(&[3], NOW), Err(Error::Unexpected(_))));
        assert!(matches!(session().receive(&[14], NOW), Err(Error::Unexpected(_))));
    }

    proptest! {
        #[test]
        fn hostile_servers_end_a_test_and_nothing_else(messages: Vec<Vec<u8>>) {
            let mut session = session();
            for message in messages {
                if session.receive(&message, NOW).is_err() {
                    break;
                }
            }
        }
    }
}
