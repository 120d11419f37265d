//! What was found out about agents, for people.

use crate::check::{Checked, Entry, Finding, HostClock, Interface};
use crate::lost::shown;
use crate::offset::Offset;
use port::doctor::State;
use report::units;
use std::fmt::Write as _;

/// A few lines for each agent; `all`: what is in order as well.
pub fn render(checked: &Checked, all: bool) -> String {
    let mut text = String::new();
    for agent in &checked.agents {
        render_one(&mut text, agent, all);
    }
    let (ready, of) = (checked.ready(), checked.agents.len());
    let agents = units::counted(of as u64, "agent");
    let _ = match of - ready {
        0 => writeln!(text, "{agents}, all ready"),
        lacks => writeln!(text, "{agents}: {ready} ready, {lacks} not"),
    };
    text
}

fn render_one(text: &mut String, agent: &Entry, all: bool) {
    let _ = writeln!(text, "{}: {}", agent.name, if agent.ready { "ready" } else { "not ready" });
    if let Some(error) = &agent.error {
        let _ = writeln!(text, "  {}", error.message);
        if let Some(remedy) = &error.remedy {
            let _ = writeln!(text, "  {remedy}");
        }
    }
    if let (Some(version), Some(host)) = (&agent.version, &agent.host) {
        let _ = writeln!(
            text,
            "  netdyno {} on {}: Linux {}, {}, {}",
            shown(version),
            shown(&host.name),
            shown(&host.kernel),
            shown(&host.architecture),
            units::counted(host.cores as u64, "core")
        );
    }
    if let Some(clock) = &agent.clock {
        let _ = writeln!(text, "  clock: {}", told(clock));
    }
    if let Some(offset) = &agent.offset {
        let _ = writeln!(text, "  {}", compared(offset));
    }
    for interface in &agent.interfaces {
        of_interface(text, interface, all);
    }
    if agent.ready && agent.interfaces.is_empty() {
        let patterns = agent.may.as_ref().map(|may| may.interfaces.join(", ")).unwrap_or_default();
        let _ = match &*patterns {
            "" => writeln!(text, "  it grants no interface: jobs may have labs of their own alone"),
            patterns => writeln!(text, "  it grants {}, and lists no such interface", shown(patterns)),
        };
    }
    findings(text, &agent.findings, all, "  ");
}

fn told(clock: &HostClock) -> String {
    let mut said = vec![clock.source.as_deref().map_or_else(|| "of an unknown source".to_owned(), shown)];
    match (clock.synchronised, clock.max_error_ns) {
        (Some(true), Some(error)) => {
            said.push(format!("kept by a daemon within {} of UTC", units::time(error)))
        }
        (Some(true), None) => said.push("kept by a daemon".to_owned()),
        (Some(false), _) => said.push("kept by no daemon".to_owned()),
        (None, _) => {}
    }
    if clock.tai_minus_utc_s == 0 {
        said.push("the kernel has not been told the leap seconds".to_owned());
    }
    said.join(", ")
}

/// How far a clock is ahead, with its error.
pub fn compared(offset: &Offset) -> String {
    let by = units::time(offset.offset_ns.unsigned_abs());
    let which = if offset.offset_ns < 0 { "behind" } else { "ahead of" };
    format!(
        "its clock is {by} {which} this host's, give or take {} (least round trip of {}: {})",
        units::time(offset.error_ns),
        offset.exchanges,
        units::time(offset.round_trip_ns)
    )
}

fn of_interface(text: &mut String, interface: &Interface, all: bool) {
    let told = &interface.told;
    let mut said = vec![told.driver.as_deref().map_or_else(|| "no driver is known".to_owned(), shown)];
    said.extend(told.speed_bits_per_second.map(|speed| units::bit_rate(speed as f64)));
    said.push(if told.up { "up" } else { "down" }.to_owned());
    said.push(format!("MTU {}", told.mtu));
    if !told.granted {
        said.push("not granted".to_owned());
    }
    let _ = writeln!(text, "  {}: {}", shown(&told.name), said.join(", "));
    findings(text, &interface.findings, all, "    ");
}

fn findings(text: &mut String, findings: &[Finding], all: bool, indent: &str) {
    for finding in findings.iter().filter(|finding| all || finding.state == State::Bad) {
        let state = match finding.state {
            State::Good => "good",
            State::Note => "note",
            State::Bad => "bad",
            State::Unknown => "not seen",
        };
        let Finding { topic, found, means, .. } = finding;
        let _ = writeln!(text, "{indent}{state}: {}: {}: {}", shown(topic), shown(found), shown(means));
        if let Some(command) = &finding.command {
            let _ = writeln!(text, "{indent}  there: {}", shown(command));
        }
    }
}
