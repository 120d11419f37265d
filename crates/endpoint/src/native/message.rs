//! What both ends say.

use super::plan::{BadPlan, Plan};
use serde::{Deserialize, Serialize};

/// From the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ToServer {
    /// First.
    Hello {
        /// The protocol's version.
        version: u32,
        /// Which program, for people.
        program: String,
        /// Drawn by the client: hexadecimal digits.
        nonce: String,
    },
    /// It has the token.
    Prove {
        /// [`super::auth::proof`].
        proof: String,
    },
    /// This is to be done.
    Test {
        /// What.
        plan: Box<Plan>,
    },
    /// All data connections are there: begin.
    Start,
    /// It is over: say what it came to.
    Stop,
    /// Nothing more.
    Bye,
}

/// From the server. `P` is how it stands now, `R` what it came to, `H` what the server's host is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ToClient<P, R, H> {
    /// First.
    Challenge {
        /// The protocol's version.
        version: u32,
        /// Which program, for people.
        program: String,
        /// Drawn by the server: hexadecimal digits.
        nonce: String,
        /// The client has to prove that it has the server's token.
        token: bool,
    },
    /// The client may test.
    Welcome {
        /// That the server has the token too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<String>,
        /// What may be asked.
        limits: Limits,
        /// Its host.
        host: H,
    },
    /// No.
    Refused(Refused),
    /// Data connections may come.
    Ready {
        /// Names the test: hexadecimal digits.
        key: String,
        /// Where to, if not to the port that control connections go to: of datagrams one for each flow, else one for all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ports: Vec<u16>,
    },
    /// All data connections are there.
    Joined,
    /// It has begun.
    Started,
    /// How it stands.
    Progress(P),
    /// What it came to.
    Results(R),
}

/// What the server permits each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Flows in a test.
    pub flows: u32,
    /// How long a test lasts, in ns.
    pub duration_ns: u64,
    /// Memory of a test's buffers, in bytes.
    pub memory: u64,
    /// Bits a second that the server sends to a client, and takes from it over TCP; 0: as fast as it goes.
    pub bits_per_second: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { flows: 1024, duration_ns: 3_600_000_000_000, memory: 1 << 30, bits_per_second: 0 }
    }
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Another version of the protocol.
    Version,
    /// No token, or another one.
    Token,
    /// Too many clients at once.
    Busy,
    /// More than a limit of the server's.
    Limit,
    /// What was said cannot be understood, or not at this place.
    Protocol,
    /// The server's host cannot do it.
    Host,
    /// It took too long.
    Time,
    /// The server ends.
    Ending,
    /// Another, of a later version.
    #[serde(other)]
    Other,
}

/// No, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{said}")]
pub struct Refused {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub said: String,
}

impl Refused {
    /// One.
    pub fn new(reason: Reason, said: impl Into<String>) -> Refused {
        Refused { reason, said: said.into() }
    }
}

impl From<BadPlan> for Refused {
    fn from(bad: BadPlan) -> Refused {
        Refused::new(Reason::Limit, bad.to_string())
    }
}
