//! What this machine and interface can do, what limits the rate, and the command that changes it.
//!
//! A diagnosis only looks. Its probes are real where they can be: XDP is judged by loading a program of two
//! instructions, live frames by running it (on no device; nothing is sent), the clock by reading it. It works
//! without privileges, and then says what it could not see. Caller: `netdyno doctor`; the findings also
//! explain an engine's choice in a report.
//!
//! `machine` looks at what all interfaces share, `device` at one interface, `drivers` knows what was tried with a driver
//! like its own, `outlook` sums up as rates,
//! `text` lays out; `probe` holds the system calls.

mod device;
mod drivers;
mod machine;
mod outlook;
mod probe;
mod stamps;
mod text;

use serde::{Deserialize, Serialize};

use crate::interface::InterfaceError;

pub use outlook::Outlook;

/// How a finding bears on the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// Worth knowing; may matter.
    Note,
    /// Costs rate or precision, or prevents something.
    Bad,
    /// Could not be seen.
    Unknown,
}

impl State {
    /// All of them.
    pub const ALL: [State; 4] = [State::Good, State::Note, State::Bad, State::Unknown];
}

/// What a finding is about; findings are grouped by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// netdyno itself.
    Program,
    /// What the kernel has.
    Kernel,
    /// What this process may do.
    Privileges,
    /// CPUs, their frequencies and clocks.
    Processor,
    /// Of the kernel and the machine.
    Settings,
    /// What the interface and its driver can do.
    Interface,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// In a word or two.
    pub topic: String,
    /// Whether it is in order.
    pub state: State,
    /// What is there.
    pub found: String,
    /// What that means for the rate to expect.
    pub means: String,
    /// The exact command that changes it, where there is one.
    pub command: Option<String>,
}

impl Finding {
    fn new(
        area: Area,
        topic: &str,
        state: State,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Self {
        Self { area, topic: topic.to_owned(), state, found: found.into(), means: means.into(), command: None }
    }

    fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// Everything found, and the rates that follow from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The interface that was asked for.
    pub interface: Option<String>,
    /// In the order of their areas.
    pub findings: Vec<Finding>,
    /// One for each engine, the fastest first; empty without an interface.
    pub outlook: Vec<Outlook>,
}

/// Looks at the machine and, if one is named, at an interface of this thread's network namespace.
///
/// # Errors
/// That there is no such interface, or the kernel does not say what it is.
pub fn diagnose(interface: Option<&str>) -> Result<Diagnosis, InterfaceError> {
    let machine = machine::Machine::look();
    let mut findings = machine.findings();
    let outlook = match interface {
        Some(name) => {
            let device = device::Device::look(name)?;
            findings.extend(device.findings());
            findings.push(stamps::finding(name, device.interface.index));
            findings.extend(device.interface.driver.as_deref().and_then(drivers::finding));
            outlook::outlook(&machine, &device)
        }
        None => {
            findings.extend(device::overview()?);
            Vec::new()
        }
    };
    Ok(Diagnosis { interface: interface.map(str::to_owned), findings, outlook })
}

impl Diagnosis {
    /// The diagnosis for people: 80 columns, grouped, each finding with its meaning and command.
    pub fn text(&self) -> String {
        text::render(self)
    }
}

/// A small file of `/proc` or `/sys`, without the line's end.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
