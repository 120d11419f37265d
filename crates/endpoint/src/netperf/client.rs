//! netperf's side of a control connection: a request, its response, the results, and perhaps the next request.
//!
//! A server that does not know DO_OMNI was built without it: it is asked again in the test's own words ([`super::legacy`]).

use super::legacy::Kind;
use super::message::{Message, Reader, UNKNOWN, kind};
use super::omni::{Request, Response, Results};

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this: the server was asked in words that it does not know.
    Again(Box<Message>),
    /// The server is ready: run the data phase.
    Data(Response),
    /// The server's side of it.
    Done(Results),
}

/// What the server said instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It does not know the request.
    #[error("the server does not know this test, or was built without the omni tests")]
    Unknown,
    /// An error number.
    #[error("the server cannot do this: {}", std::io::Error::from_raw_os_error(*.0 as i32))]
    Remote(u32),
    /// Something else was expected.
    #[error("the server answered with message {found} where {expected} was expected: is it a netserver?")]
    Unexpected {
        /// What came.
        found: u32,
        /// What was due.
        expected: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Requested,
    Running,
}

/// A control connection.
#[derive(Debug)]
pub struct Client {
    reader: Reader,
    state: State,
    asked: Request,
    answered: Response,
    /// How the server was asked, if not by DO_OMNI; it is then asked so from the beginning.
    legacy: Option<Kind>,
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

impl Client {
    /// Just connected.
    pub fn new() -> Client {
        Client {
            reader: Reader::default(),
            state: State::Idle,
            asked: Request::default(),
            answered: Response::default(),
            legacy: None,
        }
    }

    /// The message that says the passphrase.
    pub fn passphrase(text: &str) -> Message {
        let mut message = Message::new(kind::PASSPHRASE, 0);
        message.set_text(0, super::message::WORDS * 4, text);
        message
    }

    /// The message that begins a test.
    pub fn request(&mut self, request: &Request) -> Message {
        self.state = State::Requested;
        self.asked = request.clone();
        self.legacy.map_or_else(|| request.encode(), |kind| kind.request(request))
    }

    /// Bytes arrived; what was taken of them is cut off.
    ///
    /// # Errors
    /// The server refuses, or is none.
    pub fn receive(&mut self, bytes: &mut &[u8]) -> Result<Option<Step>, Fault> {
        let Some(message) = self.reader.take(bytes) else { return Ok(None) };
        let found = message.kind();
        let expected = self.legacy.map_or(kind::OMNI_RESPONSE, |kind| kind.number() + 1);
        match (self.state, message.second()) {
            (State::Requested, UNKNOWN) if self.legacy.is_none() => {
                let kind = Kind::saying(&self.asked).ok_or(Fault::Unknown)?;
                self.legacy = Some(kind);
                Ok(Some(Step::Again(Box::new(kind.request(&self.asked)))))
            }
            (_, UNKNOWN) => Err(Fault::Unknown),
            // Kinds of results are not to be looked at: their bytes are turned round or not, by the server's processor.
            (State::Running, 0) => {
                self.state = State::Idle;
                Ok(Some(Step::Done(match self.legacy {
                    Some(kind) => kind.decode_results(&message, &self.asked, &self.answered),
                    None => Results::decode(&message),
                })))
            }
            (State::Requested, 0) if found == expected => {
                self.state = State::Running;
                self.answered = match self.legacy {
                    Some(kind) => kind.decode_response(&message, &self.asked),
                    None => Response::decode(&message),
                };
                Ok(Some(Step::Data(self.answered.clone())))
            }
            (State::Idle, _) | (State::Requested, 0) => Err(Fault::Unexpected { found, expected }),
            (State::Requested, _) if found != expected && found.swap_bytes() != expected => {
                Err(Fault::Unexpected { found, expected })
            }
            (_, errno) => Err(Fault::Remote(errno)),
        }
    }

    /// Is the server asked in the older words?
    pub fn is_legacy(&self) -> bool {
        self.legacy.is_some()
    }

    /// How many bytes of a message are here.
    pub fn held(&self) -> usize {
        self.reader.held()
    }
}
