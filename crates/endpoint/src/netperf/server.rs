//! netserver's side of one control connection.
//!
//! Messages come in; what is to be done comes out. One test at a time: whoever runs it says [`Server::ready`] when it has its
//! socket, and [`Server::finished`] when it ended.

use super::legacy::Kind;
use super::message::{Message, Reader, UNKNOWN, kind};
use super::omni::{Request, Response, Results};
use super::plan::{Plan, Refusal, Style};

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this.
    Reply(Box<Message>),
    /// Prepare this, say so ([`Server::ready`]), run it, say what it came to.
    Run(Box<Plan>),
    /// A request was not granted: send this, and tell whoever watches.
    Refuse(Refusal, Box<Message>),
    /// Close the connection.
    Close(Ended),
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The passphrase was wrong, or none was given.
    Passphrase,
    /// Something was sent while a test ran.
    OutOfTurn,
}

/// One control connection.
#[derive(Debug)]
pub struct Server {
    passphrase: Option<Vec<u8>>,
    admitted: bool,
    reader: Reader,
    processors: u32,
    running: Option<Style>,
}

impl Server {
    /// A client just connected. `passphrase`: what it has to say first. `processors`: how many there are.
    pub fn new(passphrase: Option<&[u8]>, processors: u32) -> Server {
        Server {
            admitted: passphrase.is_none(),
            passphrase: passphrase.map(<[u8]>::to_vec),
            reader: Reader::default(),
            processors,
            running: None,
        }
    }

    /// Is part of a message here?
    pub fn expects_more(&self) -> bool {
        self.reader.held() > 0
    }

    /// Bytes arrived.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(message) = self.reader.take(&mut bytes) {
            if self.running.is_some() {
                steps.push(Step::Close(Ended::OutOfTurn));
                break;
            }
            let step = self.step(&message);
            let last = matches!(step, Some(Step::Close(_)));
            steps.extend(step);
            if last {
                break;
            }
        }
        steps
    }

    fn step(&mut self, message: &Message) -> Option<Step> {
        let number = message.kind();
        if number == kind::PASSPHRASE {
            self.admitted = self.passphrase.as_deref().is_none_or(|right| same(right, message.data()));
        }
        if !self.admitted {
            return Some(Step::Close(Ended::Passphrase));
        }
        let reply = |message: Message| Some(Step::Reply(Box::new(message)));
        match number {
            kind::PASSPHRASE => None,
            kind::DEBUG_ON | kind::DEBUG_OFF => reply(Message::new(kind::DEBUG_OK, 0)),
            kind::NODE_IDENTIFY => reply(Message::new(kind::NODE_IDENTIFY, 0)),
            kind::CPU_CALIBRATE => {
                let mut answer = Message::new(kind::CPU_CALIBRATE, 0);
                answer.set_float(0, RATE);
                answer.set(1, self.processors);
                reply(answer)
            }
            kind::SYSINFO => {
                let mut answer = Message::new(kind::SYSINFO + 1, 0);
                answer.set_text(0, 64, ",Deprecated,Deprecated,Deprecated,Deprecated");
                reply(answer)
            }
            kind::OMNI => Some(self.plan(Style::Omni, Request::decode(message))),
            _ => match Kind::of(number) {
                Some(kind) => Some(self.plan(Style::Legacy(kind), kind.decode(message))),
                None => reply(Message::new(number, UNKNOWN)),
            },
        }
    }

    fn plan(&mut self, style: Style, request: Request) -> Step {
        match Plan::of(style, request) {
            Ok(plan) => {
                self.running = Some(style);
                Step::Run(Box::new(plan))
            }
            Err(refusal) => Step::Refuse(refusal, Box::new(failure(style, refusal.errno()))),
        }
    }

    /// The socket is there.
    pub fn ready(&self, response: &Response) -> Message {
        match self.running {
            Some(Style::Legacy(kind)) => kind.response(response),
            _ => response.encode(),
        }
    }

    /// The test, or the preparation of its socket, failed.
    pub fn failed(&mut self, errno: u32) -> Message {
        failure(self.running.take().unwrap_or(Style::Omni), errno)
    }

    /// The test ended.
    pub fn finished(&mut self, results: &Results) -> Message {
        match self.running.take() {
            Some(Style::Legacy(kind)) => kind.results(results),
            _ => results.encode(),
        }
    }
}

/// The looper's rate, where none is needed: it only has to be not zero.
pub const RATE: f32 = 100.0;

fn failure(style: Style, errno: u32) -> Message {
    let number = match style {
        Style::Omni => kind::OMNI_RESPONSE,
        Style::Legacy(kind) => kind.number() + 1,
    };
    Message::new(number, if errno == 0 { 5 } else { errno })
}

/// In the same time wherever they differ.
fn same(right: &[u8], given: &[u8]) -> bool {
    let differ = right.iter().zip(given).fold(0, |differ, (a, b)| differ | (a ^ b));
    right.len() == given.len() && differ == 0
}
