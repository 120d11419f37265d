//! The server's end of a control connection: what may be said when, and how long it may take. No socket, no clock.

use super::VERSION;
use super::auth::{Role, is_proof, proof};
use super::message::{Limits, Reason, Refused, ToServer};
use super::plan::Plan;
use std::time::Duration;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Does {
    /// Say the challenge.
    Challenge,
    /// The client may test; with this proof that the server has the token.
    Welcome(Option<String>),
    /// Prepare this, then call [`Session::prepared`].
    Prepare(Box<Plan>),
    /// Begin.
    Start,
    /// End what was begun, say what it came to, then call [`Session::ended`].
    Stop,
    /// Close.
    Close,
    /// Say so, and close.
    Refuse(Refused),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Proving,
    Idle,
    Preparing,
    Ready,
    Running { lasts: Duration },
    Over,
}

/// One control connection.
#[derive(Debug)]
pub struct Session {
    state: State,
    limits: Limits,
    token: Option<Vec<u8>>,
    nonce: String,
    theirs: String,
    run: String,
    lasts: Duration,
}

/// A client says the next thing within this, while nothing is measured.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between tests a client may think. It keeps others out meanwhile, if there are as many as may be.
const IDLE: Duration = Duration::from_secs(20);
/// A test may last so much longer than was planned: its ends are not as one.
const GRACE: Duration = Duration::from_secs(15);
/// Characters of a nonce, at most.
const MOST_NONCE: usize = 256;

impl Session {
    /// With what the server drew.
    pub fn new(limits: Limits, token: Option<Vec<u8>>, nonce: String) -> Session {
        let (theirs, run, lasts) = (String::new(), String::new(), Duration::ZERO);
        Session { state: State::Greeting, limits, token, nonce, theirs, run, lasts }
    }

    /// What the server drew.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Which job the client is of.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The client has to prove that it has the token.
    pub fn wants_proof(&self) -> bool {
        self.token.is_some()
    }

    /// A message came.
    pub fn hear(&mut self, message: &[u8]) -> Does {
        let said = match serde_json::from_slice::<ToServer>(message) {
            Ok(said) => said,
            Err(error) => return self.refuse(Reason::Protocol, format!("a message cannot be read: {error}")),
        };
        match (self.state, said) {
            (State::Greeting, ToServer::Hello { version, nonce, run, .. }) => {
                if version != VERSION {
                    let said = format!(
                        "the client speaks version {version} of the protocol, and this server version {VERSION}"
                    );
                    return self.refuse(Reason::Version, said);
                }
                if nonce.len() > MOST_NONCE || run.len() > MOST_NONCE {
                    return self.refuse(Reason::Protocol, "the client's nonce is too long".to_owned());
                }
                (self.theirs, self.run) = (nonce, run);
                self.state = State::Proving;
                Does::Challenge
            }
            (State::Proving, ToServer::Prove { proof: given }) => {
                let Some(token) = &self.token else { return self.out_of_place("prove") };
                if !is_proof(&given, token, Role::Client, &self.nonce, &self.theirs) {
                    return self.refuse(Reason::Token, "the client's token is not this server's".to_owned());
                }
                self.state = State::Idle;
                Does::Welcome(Some(proof(token, Role::Server, &self.nonce, &self.theirs)))
            }
            (State::Idle, ToServer::Test { plan }) => match plan.check(&self.limits) {
                Ok(()) => {
                    self.lasts = Duration::from_nanos(plan.duration_ns);
                    self.state = State::Preparing;
                    Does::Prepare(plan)
                }
                Err(bad) => {
                    // It may ask for less.
                    Does::Refuse(bad.into())
                }
            },
            (State::Ready, ToServer::Start) => {
                self.state = State::Running { lasts: self.lasts };
                Does::Start
            }
            (State::Running { .. } | State::Ready, ToServer::Stop) => Does::Stop,
            (_, ToServer::Bye) => {
                self.state = State::Over;
                Does::Close
            }
            (_, ToServer::Hello { .. }) => self.out_of_place("hello"),
            (_, ToServer::Prove { .. }) => self.out_of_place("prove"),
            (_, ToServer::Test { .. }) => self.out_of_place("test"),
            (_, ToServer::Start) => self.out_of_place("start"),
            (_, ToServer::Stop) => self.out_of_place("stop"),
        }
    }

    /// The challenge was said. Without a token the client is welcome at once.
    pub fn challenged(&mut self) -> Option<Does> {
        let welcome = self.state == State::Proving && self.token.is_none();
        welcome.then(|| {
            self.state = State::Idle;
            Does::Welcome(None)
        })
    }

    /// All flows are there.
    pub fn prepared(&mut self) {
        if self.state == State::Preparing {
            self.state = State::Ready;
        }
    }

    /// The results were said, or the test came to nothing: another may follow.
    pub fn ended(&mut self) {
        if self.state != State::Over {
            self.state = State::Idle;
        }
    }

    /// How long the next message may take.
    pub fn patience(&self) -> Duration {
        match self.state {
            State::Greeting | State::Proving | State::Preparing | State::Ready => PATIENCE,
            State::Idle => IDLE,
            State::Running { lasts } => lasts.saturating_add(GRACE),
            State::Over => Duration::ZERO,
        }
    }

    fn out_of_place(&mut self, what: &str) -> Does {
        self.refuse(Reason::Protocol, format!("`{what}` was not to be said now"))
    }

    fn refuse(&mut self, reason: Reason, said: String) -> Does {
        self.state = State::Over;
        Does::Refuse(Refused::new(reason, said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn says(session: &mut Session, text: &str) -> Does {
        session.hear(text.as_bytes())
    }

    const HELLO: &str = r#"{"is": "hello", "version": 1, "program": "x", "nonce": "bb"}"#;
    const TEST: &str = r#"{"is": "test", "plan": {"work": {"is": "stream", "from": "client"}, "flows": 1, "duration_ns": 5}}"#;

    #[test]
    fn a_client_without_the_token_gets_no_further() {
        let open = || Session::new(Limits::default(), Some(b"token".to_vec()), "aa".to_owned());
        let mut session = open();
        assert_eq!(says(&mut session, HELLO), Does::Challenge);
        assert_eq!(session.challenged(), None);
        assert!(matches!(says(&mut session, TEST), Does::Refuse(Refused { reason: Reason::Protocol, .. })));
        let mut session = open();
        says(&mut session, HELLO);
        let wrong = format!(r#"{{"is": "prove", "proof": "{}"}}"#, proof(b"other", Role::Client, "aa", "bb"));
        assert!(matches!(says(&mut session, &wrong), Does::Refuse(Refused { reason: Reason::Token, .. })));
        assert!(matches!(says(&mut session, TEST), Does::Refuse(_)));
        let mut session = open();
        says(&mut session, HELLO);
        let right = format!(r#"{{"is": "prove", "proof": "{}"}}"#, proof(b"token", Role::Client, "aa", "bb"));
        let Does::Welcome(Some(proof)) = says(&mut session, &right) else { panic!("not welcome") };
        assert!(is_proof(&proof, b"token", Role::Server, "aa", "bb"));
    }

    #[test]
    fn tests_follow_each_other_on_one_connection() {
        let mut session = Session::new(Limits::default(), None, "aa".to_owned());
        assert_eq!(says(&mut session, HELLO), Does::Challenge);
        assert_eq!(session.challenged(), Some(Does::Welcome(None)));
        for _ in 0..2 {
            assert!(matches!(says(&mut session, TEST), Does::Prepare(_)));
            session.prepared();
            assert_eq!(says(&mut session, r#"{"is": "start"}"#), Does::Start);
            assert!(session.patience() > GRACE);
            assert_eq!(says(&mut session, r#"{"is": "stop"}"#), Does::Stop);
            session.ended();
        }
        assert_eq!(says(&mut session, r#"{"is": "bye"}"#), Does::Close);
    }

    #[test]
    fn another_version_is_refused_by_its_number() {
        let mut session = Session::new(Limits::default(), None, "aa".to_owned());
        let Does::Refuse(refused) = says(&mut session, &HELLO.replace("1", "9")) else {
            panic!("not refused")
        };
        assert_eq!(refused.reason, Reason::Version);
        assert!(refused.said.contains("version 9"), "{refused}");
    }

    proptest! {
        #[test]
        fn whatever_is_said_in_whatever_order_is_answered(order in proptest::collection::vec(0_usize..8, 0..20)) {
            let said = [HELLO, TEST, r#"{"is": "start"}"#, r#"{"is": "stop"}"#, r#"{"is": "bye"}"#, "{}", "\u{0}",
                r#"{"is": "prove", "proof": "00"}"#];
            let mut session = Session::new(Limits::default(), None, "aa".to_owned());
            for what in order {
                let does = says(&mut session, said[what]);
                // Nothing is begun that was not prepared.
                prop_assert!(does != Does::Start);
                session.challenged();
            }
        }
    }
}
