//! What a plugin says about itself, and what it says of options that it cannot use.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a plugin is, and which options it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The name it is called by.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// What it sends, in a sentence or a few.
    pub about: String,
    /// How it yields traffic.
    pub world: World,
    /// JSON Schema of its options, draft 2020-12: an object.
    pub options: Value,
    /// Options that do something useful.
    #[serde(default)]
    pub example: Vec<Example>,
    /// A stress profile: netdyno refuses destinations outside private and benchmarking addresses.
    #[serde(default)]
    pub restricted: bool,
}

/// How a plugin yields traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// A scenario, once.
    Compile,
    /// Frame by frame.
    Frames,
}

/// Options that do something useful.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// What they do.
    pub about: String,
    /// The options; what is not there has its default.
    pub set: Map<String, Value>,
}

impl Example {
    /// An example of options written as a JSON object; what is no object is no option.
    #[must_use]
    pub fn new(about: &str, set: Value) -> Example {
        let set = if let Value::Object(set) = set { set } else { Map::new() };
        Example { about: about.to_owned(), set }
    }
}

/// Options that a plugin cannot use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{message}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct Fault {
    /// Which option, as a JSON pointer (`/dst_ip`, `/zones/0/name`); empty for all of them.
    pub path: String,
    /// What is wrong with it, and what to write.
    pub message: String,
}

impl Fault {
    /// A fault of one option, named by its JSON pointer.
    #[must_use]
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { path: path.into(), message: message.into() }
    }

    /// A fault of the options as a whole.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Fault {
        Fault::at("", message)
    }
}
