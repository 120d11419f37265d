//! netperf's side of a control connection: a request, its response, the results, and perhaps the next request.

use super::message::{Message, Reader, UNKNOWN, kind};
use super::omni::{Request, Response, Results};

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The server is ready: run the data phase.
    Data(Response),
    /// The server's side of it.
    Done(Results),
}

/// What the server said instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It does not know the request.
    #[error("the server does not know this request: is it a netserver of 2.6 or later?")]
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
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

impl Client {
    /// Just connected.
    pub fn new() -> Client {
        Client { reader: Reader::default(), state: State::Idle }
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
        request.encode()
    }

    /// Bytes arrived; what was taken of them is cut off.
    ///
    /// # Errors
    /// The server refuses, or is none.
    pub fn receive(&mut self, bytes: &mut &[u8]) -> Result<Option<Step>, Fault> {
        let Some(message) = self.reader.take(bytes) else { return Ok(None) };
        let (found, expected) = (message.kind(), kind::OMNI_RESPONSE);
        match (self.state, message.second()) {
            (_, UNKNOWN) => Err(Fault::Unknown),
            // Kinds of results are not to be looked at: their bytes are turned round or not, by the server's processor.
            (State::Running, 0) => {
                self.state = State::Idle;
                Ok(Some(Step::Done(Results::decode(&message))))
            }
            (State::Requested, 0) if found == expected => {
                self.state = State::Running;
                Ok(Some(Step::Data(Response::decode(&message))))
            }
            (State::Idle, _) | (State::Requested, 0) => Err(Fault::Unexpected { found, expected }),
            (State::Requested, _) if found != expected && found.swap_bytes() != expected => {
                Err(Fault::Unexpected { found, expected })
            }
            (_, errno) => Err(Fault::Remote(errno)),
        }
    }

    /// How many bytes of a message are here.
    pub fn held(&self) -> usize {
        self.reader.held()
    }
}
