//! Scenario files: several streams, with rates, weights, bursts, ramps and chains, to a [`Program`].
//!
//! ```text
//!   YAML --yaml--> model (values with their places) --compile, timing--> Program, with a lane for each timing
//! ```
//!
//! Users read about the language in `docs/scenarios.md`; its schema, `docs/scenario.schema.json`, is made from the
//! model. Whatever a file says, reading and compiling it neither panics nor takes unbounded time or memory.
//!
//! A crate of its own because the reader of each kind of value is compiled for it anew: most of the code there is, all of it run once.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod compile;
mod error;
mod flows;
mod keys;
mod model;
mod profile;
mod timing;
mod weighted;
mod yaml;

pub use compile::{Compiled, Context, Sign, Unresolved};
pub use error::ScenarioError;
pub use flows::{FlowClass, FlowPlan};
pub use model::MAX_STREAMS;
pub use yaml::MAX_BYTES;

#[cfg(doc)]
use traffic::program::Program;

/// A file that was read, not yet compiled.
#[derive(Debug, Clone)]
pub struct Scenario {
    file: model::File,
    /// What it was called when it was read.
    source: String,
    /// For excerpts in errors.
    text: String,
}

/// Reads any YAML file, within the bounds of a scenario's; `name` is the file's, for messages. JSON is YAML, too.
///
/// # Errors
/// It is no YAML, or more than anybody writes.
pub fn value(text: &str, name: &str) -> Result<serde_json::Value, ScenarioError> {
    yaml::read(text).map_err(|fault| ScenarioError::new(name, text, fault))
}

/// Reads a scenario; `name` is the file's, for messages.
///
/// # Errors
/// Where the file is wrong, and what to write.
pub fn parse(text: &str, name: &str) -> Result<Scenario, ScenarioError> {
    match yaml::read(text) {
        Ok(file) => Ok(Scenario { file, source: name.to_owned(), text: text.to_owned() }),
        Err(fault) => Err(ScenarioError::new(name, text, fault)),
    }
}

impl Scenario {
    /// Its name in results: the one it gives itself, or the file's.
    pub fn name(&self) -> &str {
        self.file.name.as_ref().map_or(&self.source, |name| &name.0)
    }

    /// What it says it is for.
    pub fn description(&self) -> Option<&str> {
        self.file.description.as_deref()
    }

    /// The seed it states.
    pub fn seed(&self) -> Option<u64> {
        self.file.seed
    }

    /// Streams that it lists; those of flows are not among them.
    pub fn streams(&self) -> usize {
        self.file.streams.0.len()
    }

    /// Of these, how many state a size of their own.
    pub fn sized_streams(&self) -> usize {
        self.file.streams.0.iter().filter(|stream| stream.value.size.is_some()).count()
    }

    /// Has it flows, which begin and end?
    pub fn has_flows(&self) -> bool {
        !self.file.flows.0.is_empty()
    }

    /// Do streams share a common rate that the file does not say?
    pub fn wants_rate(&self) -> bool {
        compile::wants_rate(&self.file)
    }

    /// What to send, and when.
    ///
    /// # Errors
    /// Where the file asks for what cannot be sent.
    pub fn compile(&self, context: &Context) -> Result<Compiled, ScenarioError> {
        compile::compile(self, context).map_err(|fault| ScenarioError::new(&self.source, &self.text, fault))
    }
}

/// The JSON Schema of a scenario, as kept in `docs/scenario.schema.json` for editors. A test fails when that file is
/// stale; `NETDYNO_BLESS=1 cargo test -p netdyno-scenario` writes it anew.
pub fn schema() -> String {
    let schema = schemars::schema_for!(model::File);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
