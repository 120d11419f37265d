//! What can be wrong with a plugin, or with what is asked of it.

use plugin_sdk::Fault;
use report::units::printable;
use std::path::PathBuf;

/// What a guest returned, or is, and should not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// An address beyond its memory.
    #[error("it points at bytes {at} to {end}, and its memory has {memory}")]
    Outside {
        /// The first byte.
        at: usize,
        /// Behind the last one.
        end: usize,
        /// Bytes of its memory.
        memory: usize,
    },
    /// More than is taken.
    #[error("it returns {bytes} bytes, and {most} are taken at most")]
    TooMuch {
        /// How much it is.
        bytes: usize,
        /// How much may be.
        most: usize,
    },
    /// Bytes that are no text.
    #[error("what it returns is no text in UTF-8 (byte {at})")]
    NotText {
        /// The first byte that is none.
        at: usize,
    },
    /// Text that is no JSON.
    #[error("what it returns is no JSON: {0}")]
    NotJson(String),
    /// JSON that is not what was asked for.
    #[error("what it returns is not what was asked for: {0}")]
    NotAsAsked(String),
    /// What it says of itself.
    #[error("its description is wrong: {0}")]
    Description(String),
    /// The schema of its options.
    #[error("the schema of its options cannot be used: {0}")]
    Schema(String),
    /// A batch that ends too early.
    #[error("its batch has {bytes} bytes, and the frames that it is said to hold take {need}")]
    ShortBatch {
        /// What it has.
        bytes: usize,
        /// What its lengths come to.
        need: usize,
    },
    /// A frame of a length that it may not have.
    #[error("frame {number} of its batch has {length} bytes, and it said that frames have 14 to {longest}")]
    FrameLength {
        /// Its place in the batch, from 0.
        number: usize,
        /// Its length.
        length: usize,
        /// What the guest said when it was opened.
        longest: usize,
    },
}

/// Why a plugin cannot be used, or not so.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// No plugin of this name.
    #[error("there is no plugin `{}`{hint}`netdyno plugin list` shows those that are there", printable(name))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What joins it to what follows, with a name that may have been meant.
        hint: String,
    },
    /// A module that cannot be read.
    #[error("plugin {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// A module, in a netdyno without WebAssembly.
    #[error(
        "plugin {}: {}; the built-in plugins are there",
        path.display(),
        report::absent("WebAssembly modules", "wasm")
    )]
    NoWasm {
        /// The file.
        path: PathBuf,
    },
    /// A file that is no module, or one that cannot be run here.
    #[error("plugin `{}`: {what}", printable(name))]
    NotAModule {
        /// What it is called.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// A module that is too large.
    #[error("plugin `{}`: the module has {bytes} bytes, and {most} are taken at most", printable(name))]
    TooLarge {
        /// What it is called.
        name: String,
        /// Its size.
        bytes: u64,
        /// What may be.
        most: u64,
    },
    /// It does not have what a plugin has.
    #[error(
        "plugin `{}`: it exports {missing}, which plugins of this world have (docs/writing-plugins.md)",
        printable(name)
    )]
    Exports {
        /// What it is called.
        name: String,
        /// What is not there or otherwise.
        missing: String,
    },
    /// It wants more of the host than there is.
    #[error(
        "plugin `{}`: it imports `{import}`, and a plugin has no access to the host: build it without (docs/writing-plugins.md)",
        printable(name)
    )]
    Import {
        /// What it is called.
        name: String,
        /// `module.name`.
        import: String,
    },
    /// Of another version of the boundary.
    #[error(
        "plugin `{}`: it speaks version {theirs} of the interface, and this netdyno version {ours}: build it with the SDK of this netdyno",
        printable(name)
    )]
    Version {
        /// What it is called.
        name: String,
        /// Its.
        theirs: i32,
        /// The host's.
        ours: i32,
    },
    /// It did not come to its end.
    #[error("plugin `{}`: in {call}: {what}{}", printable(name), said(log))]
    Broke {
        /// What it is called.
        name: String,
        /// Which of its functions.
        call: &'static str,
        /// What became of it.
        what: String,
        /// What it wrote to its output.
        log: String,
    },
    /// What it returned is not what it has to be.
    #[error("plugin `{}`: in {call}: {what}{}", printable(name), said(log))]
    Invalid {
        /// What it is called.
        name: String,
        /// Which of its functions.
        call: &'static str,
        /// What is wrong.
        what: Invalid,
        /// What it wrote to its output.
        log: String,
    },
    /// An option is wrong, by the plugin's schema or its own words.
    #[error(
        "plugin `{}`: {}{}: `netdyno plugin info {}` lists its options",
        printable(name),
        at(&fault.path),
        printable(fault.message.trim_end_matches(['.', ':'])),
        printable(name)
    )]
    Options {
        /// What it is called.
        name: String,
        /// Which option, and what is wrong.
        fault: Fault,
    },
    /// What it made is no scenario.
    #[error("plugin `{}`: what it made is no scenario that can be sent: {why}", printable(name))]
    Scenario {
        /// What it is called.
        name: String,
        /// Where and what.
        why: Box<scenario::ScenarioError>,
    },
    /// It sends where it may not.
    #[error("plugin `{}`: {why}", printable(name))]
    Destination {
        /// What it is called.
        name: String,
        /// Which destination.
        why: crate::judge::Refused,
    },
    /// Another module than the job was made with.
    #[error(
        "plugin `{}`: the job was made with {then}, and what is found now is {now}: install that one again, leave `plugin.{member}` out of the job, or run the result again with `.any_plugin`",
        printable(name)
    )]
    Another {
        /// What it is called.
        name: String,
        /// The job's.
        then: String,
        /// What was found.
        now: String,
        /// Which member of the job says so.
        member: &'static str,
    },
    /// It is of the other world.
    #[error("plugin `{}`: it yields frames one by one, and {what}", printable(name))]
    NotHere {
        /// What it is called.
        name: String,
        /// What cannot be done with them.
        what: &'static str,
    },
}

/// A JSON pointer, in front of what is wrong there.
fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{}`: ", printable(path)) }
}

/// A guest's last words.
fn said(log: &str) -> String {
    let log = log.trim();
    if log.is_empty() { String::new() } else { format!("; it wrote: {}", printable(log)) }
}
