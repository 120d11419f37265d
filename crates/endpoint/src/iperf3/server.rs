//! The server's side of one client's control connection, from after its cookie: bytes and times in, bytes and what to do out.

use super::error::{Code, Error};
use super::inbox::{Inbox, framed};
use super::limits;
use super::params::Params;
use super::results::Results;
use super::state::State;
use std::time::Duration;

/// What the client says.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// What it asks for: answer by [`Session::accept`] or [`Session::refuse`].
    Asks(Box<Params>),
    /// It is done: stop, and call [`Session::ended`].
    Ends,
    /// Its results: answer by [`Session::results`].
    Results(Box<Results>),
    /// It has all it wants.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Parameters,
    Deciding,
    Opening,
    Running,
    Stopping,
    Results,
    Answering,
    Finishing,
    Done,
}

/// How long a client may take for each of its steps.
const STEP: Duration = Duration::from_secs(10);
/// For opening its streams: one after another, with a round trip each.
const STREAMS: Duration = Duration::from_secs(30);
/// Beyond the time that it asked for: it waits for its last interval, and for what is on its way.
const BEYOND: Duration = Duration::from_secs(30);

/// A control connection, as its server has it.
#[derive(Debug)]
pub struct Session {
    phase: Phase,
    since: Duration,
    inbox: Inbox,
    runs: Option<Duration>,
}

impl Session {
    /// A client whose cookie came, and the first bytes for it.
    pub fn new(now: Duration) -> (Session, Vec<u8>) {
        let session = Session { phase: Phase::Parameters, since: now, inbox: Inbox::default(), runs: None };
        (session, vec![State::ParamExchange.byte()])
    }

    /// Bytes came; none, if only what is there already is to be looked at.
    ///
    /// # Errors
    /// The client does not keep to the protocol, or goes.
    pub fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<Option<Event>, Error> {
        self.inbox.push(bytes);
        match self.phase {
            Phase::Parameters => {
                let Some(value) = self.inbox.json(limits::PARAMS, Error::Params)? else { return Ok(None) };
                let params = Params::of(&value)?;
                // One that runs until so much is sent is ended by the lack of data, not by time.
                self.runs = (params.seconds > 0).then(|| {
                    Duration::from_secs(u64::from(params.omit) + u64::from(params.seconds)) + BEYOND
                });
                self.enter(Phase::Deciding, now);
                Ok(Some(Event::Asks(Box::new(params))))
            }
            Phase::Results => {
                let Some(value) = self.inbox.json(limits::RESULTS, Error::Results)? else { return Ok(None) };
                self.enter(Phase::Answering, now);
                Ok(Some(Event::Results(Box::new(Results::of(&value)?))))
            }
            Phase::Deciding | Phase::Stopping | Phase::Answering | Phase::Done => Ok(None),
            Phase::Opening | Phase::Running | Phase::Finishing => {
                let Some(byte) = self.inbox.byte() else { return Ok(None) };
                match (State::of(byte), self.phase) {
                    (Some(State::TestEnd), Phase::Running) => {
                        self.enter(Phase::Stopping, now);
                        Ok(Some(Event::Ends))
                    }
                    (Some(State::IperfDone), Phase::Finishing) => {
                        self.enter(Phase::Done, now);
                        Ok(Some(Event::Done))
                    }
                    (Some(State::ClientTerminate), _) => Err(Error::ClientTerminated),
                    (Some(state), phase) => Err(Error::Unexpected(format!("{state:?} while {phase:?}"))),
                    (None, _) => Err(Error::Unexpected(format!("byte {byte}"))),
                }
            }
        }
    }

    fn enter(&mut self, phase: Phase, now: Duration) {
        self.phase = phase;
        self.since = now;
    }

    /// The test may be: the client opens its streams when it has these bytes.
    pub fn accept(&mut self, now: Duration) -> Vec<u8> {
        self.enter(Phase::Opening, now);
        vec![State::CreateStreams.byte()]
    }

    /// What the client gets where the test may not be, or cannot go on.
    pub fn refuse(code: Code, errno: i32) -> Vec<u8> {
        let numbers = [code as i32, errno].map(i32::to_be_bytes);
        [&[State::ServerError.byte()], numbers.as_flattened()].concat()
    }

    /// What a client gets that is one too many.
    pub fn busy() -> Vec<u8> {
        vec![State::AccessDenied.byte()]
    }

    /// What clients get when the server is ended.
    pub fn terminate() -> Vec<u8> {
        vec![State::ServerTerminate.byte()]
    }

    /// All streams are there: the data may flow when these bytes are sent.
    pub fn run(&mut self, now: Duration) -> Vec<u8> {
        self.enter(Phase::Running, now);
        vec![State::TestStart.byte(), State::TestRunning.byte()]
    }

    /// Nothing is sent or counted any longer.
    pub fn ended(&mut self, now: Duration) -> Vec<u8> {
        self.enter(Phase::Results, now);
        vec![State::ExchangeResults.byte()]
    }

    /// This side's results.
    pub fn results(&mut self, results: &Results, now: Duration) -> Vec<u8> {
        self.enter(Phase::Finishing, now);
        let mut bytes = framed(&results.json());
        bytes.push(State::DisplayResults.byte());
        bytes
    }

    /// Until when the client must have taken its next step. `None` while it waits for us, or while data flows without an end in
    /// time: the driver looks at the data.
    pub fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Deciding | Phase::Stopping | Phase::Answering | Phase::Done => None,
            Phase::Running => self.runs.map(|time| self.since + time),
            Phase::Opening => Some(self.since + STREAMS),
            Phase::Parameters | Phase::Results | Phase::Finishing => Some(self.since + STEP),
        }
    }

    /// It did not.
    pub fn late(&self) -> Error {
        match self.phase {
            Phase::Opening => Error::Late("the client opens its streams too slowly", STREAMS.as_secs()),
            Phase::Running => Error::Late(
                "the client does not end its test",
                self.runs.map_or(BEYOND.as_secs(), |runs| runs.as_secs()),
            ),
            Phase::Results => Error::Late("the client does not send its results", STEP.as_secs()),
            Phase::Finishing => Error::Late("the client does not end", STEP.as_secs()),
            _ => Error::Late("the client does not send its parameters", STEP.as_secs()),
        }
    }

    /// The client has everything; that it does not say so loses nothing.
    pub fn finishing(&self) -> bool {
        matches!(self.phase, Phase::Finishing | Phase::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::client;
    use super::super::results::{Stream, stream_id};
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_client_and_a_server_of_ours_come_to_the_end() {
        let params = Params { seconds: 1, parallel: 2, bidir: true, ..Params::default() };
        let mut client = client::Session::new(&params, NOW);
        let (mut server, mut to_client) = Session::new(NOW);
        let mut told = Vec::new();
        let mut theirs = None;
        let mut to_server = Vec::new();
        for _ in 0..20 {
            for action in client.receive(&std::mem::take(&mut to_client), NOW).unwrap() {
                match action {
                    client::Action::Send(bytes) => to_server.extend(bytes),
                    client::Action::Report => to_server.extend(client.results(&Results::default(), NOW)),
                    client::Action::Run => to_server.extend(client.end(NOW)),
                    client::Action::Done(results) => theirs = Some(results),
                    client::Action::OpenStreams | client::Action::Prepare => {}
                }
            }
            while let Some(event) = server.receive(&std::mem::take(&mut to_server), NOW).unwrap() {
                match &event {
                    Event::Asks(asked) => {
                        assert_eq!(**asked, params);
                        to_client.extend(server.accept(NOW));
                        to_client.extend(server.run(NOW));
                    }
                    Event::Ends => to_client.extend(server.ended(NOW)),
                    Event::Results(_) => {
                        // Of two streams in each direction.
                        let stream = |index| Stream { id: stream_id(index), ..Stream::default() };
                        let streams = (0..4).map(stream).collect();
                        let ours = Results { congestion: Some("reno".into()), streams, ..Results::default() };
                        to_client.extend(server.results(&ours, NOW));
                    }
                    Event::Done => {}
                }
                told.push(event);
            }
        }
        assert_eq!(told.len(), 4);
        assert_eq!(told[3], Event::Done);
        assert_eq!(theirs.unwrap().congestion.as_deref(), Some("reno"));
    }

    #[test]
    fn each_step_has_a_time() {
        let (mut server, _) = Session::new(NOW);
        assert_eq!(server.deadline(), Some(STEP));
        let asked = framed(&Params { seconds: 5, omit: 1, ..Params::default() }.json());
        assert!(matches!(server.receive(&asked, NOW), Ok(Some(Event::Asks(_)))));
        server.accept(STEP);
        assert_eq!(server.deadline(), Some(STEP + STREAMS));
        server.run(STEP);
        assert_eq!(server.deadline(), Some(STEP + Duration::from_secs(6) + BEYOND));
    }

    proptest! {
        #[test]
        fn hostile_clients_end_their_own_test_and_nothing_else(messages: Vec<Vec<u8>>, valid: bool) {
            let (mut server, _) = Session::new(NOW);
            if valid {
                server.receive(&framed(&Params::default().json()), NOW).unwrap();
                server.accept(NOW);
                server.run(NOW);
            }
            for message in messages {
                match server.receive(&message, NOW) {
                    Ok(Some(Event::Ends)) => drop(server.ended(NOW)),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
    }
}
