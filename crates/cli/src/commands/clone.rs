//! `netdyno clone`: a job like others, its doctor, captures for a clone on another host with their keys, and the return agent at its
//! target.
//!
//! ```text
//!   netdyno clone return ---- pipe ----> netdyno clone return --clean --when-alone
//!     attaches, learns, forgets            when the pipe ends, however: ends sockets of copies, takes filters away
//! ```

use crate::cli::clone::{Capture, Clone, Doctor, Return, Verb};
use crate::client::Signals;
use crate::output::{note, print};
use crate::wording;
use anyhow::{Context, Result, anyhow, bail};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use steer::{Cleaned, Counts, Options, Standing, Steering};

/// Runs it; returns the exit status.
pub fn run(args: Clone) -> Result<u8> {
    match args.verb {
        Some(Verb::Doctor(args)) => doctor(*args),
        Some(Verb::Capture(args)) => capture(*args),
        Some(Verb::Key { file }) => {
            job::make_clone_key(&file)?;
            note(&format!(
                "{} is a new key: copy it to the other host, for its owner alone to read (scp -p)",
                file.display()
            ));
            Ok(0)
        }
        Some(Verb::Return(args)) if args.asked.0.clean => clean(&args),
        Some(Verb::Return(args)) => steer(args.asked.0),
        None => super::jobs::typed(args.declared.job()),
    }
}

fn doctor(args: Doctor) -> Result<u8> {
    let json = args.json;
    let signals = Signals::at_once()?;
    let found = job::diagnose_clone(&args.asked.0, &signals.stop)?;
    let text = if json { serde_json::to_string_pretty(&found)? + "\n" } else { found.text() };
    print(&wording::said(&text))?;
    Ok(u8::from(!found.is_well()))
}

fn capture(args: Capture) -> Result<u8> {
    let json = args.json;
    let forwarding = args.asked.0;
    forwarding
        .check()
        .map_err(|wrong| anyhow!("{}: {}", wording::typed(&format!("`.{}`", wrong.member)), wrong.what))?;
    let signals = Signals::at_once()?;
    let forwarded = job::forward_to_clone(&forwarding, &signals.stop, &|said| note(&wording::said(said)))?;
    let text = if json { serde_json::to_string_pretty(&forwarded)? + "\n" } else { forwarded.text() };
    print(&wording::said(&text))?;
    Ok(u8::from(!forwarded.is_whole()))
}

/// Sockets have so long to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same once nobody waits.
const PATIENCE_ALONE: Duration = Duration::from_secs(3600);

/// Flows that a return agent learns, unless said.
pub const MOST_FLOWS: u32 = 131_072;

/// Takes away what an agent left.
fn clean(args: &Return) -> Result<u8> {
    if args.when_alone {
        // Ends when the agent does, however that is.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
    let patience = if args.when_alone { PATIENCE_ALONE } else { PATIENCE };
    let done = steer::clean(patience, args.asked.0.force)
        .context("taking the return agent's filters away (run as root)")?;
    if !args.when_alone {
        print(&cleaned(&done))?;
    }
    Ok(u8::from(done.left.is_some()))
}

fn cleaned(done: &Cleaned) -> String {
    let left = done.left.as_ref().map_or_else(String::new, |why| {
        format!("answers to clients are still kept back by filters that stay: {why}; then: netdyno clone return --clean\n")
    });
    let [filters, sockets] = [(done.filters, "filter"), (done.ended, "socket")]
        .map(|(count, what)| report::units::counted(count, what));
    format!("{filters} taken away, {sockets} of copies ended\n{left}")
}

/// Starts the process that cleans up when this one is gone. In a group of its own: the terminal's Ctrl-C is not for it.
fn guardian() -> Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["clone", "return", "--clean", "--when-alone"]).stdin(Stdio::piped()).stdout(Stdio::null());
    command.stderr(Stdio::null()).process_group(0);
    command.spawn().context("starting the process that cleans up when this one is gone")
}

fn steer(args: spec::ReturnAgent) -> Result<u8> {
    let (Some(on), Some(server), Some(engine)) = (args.on, args.server, args.engine) else {
        bail!("--on, --server and --engine say what to steer");
    };
    let server = server.into_value();
    let signals = Signals::at_once()?;
    let guardian = guardian()?;
    let tunnel = (args.tunnel_port.unwrap_or(steer::PORT), args.vni.unwrap_or(steer::VNI));
    let most_flows = args.max_flows.unwrap_or(MOST_FLOWS);
    let options = Options { on, server: (server.address, server.port), engine, tunnel, most_flows };
    let said = |error: steer::SteerError| anyhow::anyhow!("{}", wording::said(&error.to_string()));
    let steering = match Steering::start(options.clone()) {
        Ok(steering) => steering,
        // Nothing of its own is there. What is, is another one's.
        Err(error) => {
            dismiss(guardian);
            return Err(said(error));
        }
    };
    let counts = attend(steering, &options, &signals);
    let done = steer::clean(PATIENCE, false)?;
    if done.left.is_none() {
        dismiss(guardian);
    }
    print(&(cleaned(&done) + &told(&counts?)))?;
    Ok(u8::from(done.left.is_some()))
}

/// The guardian has nothing to do.
fn dismiss(mut guardian: Child) {
    // Ours, and not yet waited for: no other process has its number.
    let _ = guardian.kill();
    let _ = guardian.wait();
}

/// Steers until a signal comes.
fn attend(mut steering: Steering, options: &Options, signals: &Signals) -> Result<Counts> {
    let mut before = steering.turn()?;
    let (address, port) = options.server;
    let address = address.map_or_else(String::new, |address| address.to_string());
    note(&format!(
        "steering at {}: copies of {address}:{port} from {} come in, answers go back to it; Ctrl-C ends",
        options.on, options.engine
    ));
    if let Some(said) = steer::reverse_path(&options.on, options.engine) {
        note(&format!("Warning: {said}"));
    }
    while !signals.stop.load(Relaxed) {
        let now = steering.turn()?;
        tell(&before, &now);
        before = now;
    }
    Ok(before.counts)
}

/// What has changed, for who looks on.
fn tell(before: &Standing, now: &Standing) {
    match (&before.closed, &now.closed) {
        (None, Some(why)) => note(&format!("Warning: nothing is let in: {why}")),
        (Some(_), None) => note("copies are let in again"),
        _ => {}
    }
    match (before.engine, now.engine) {
        (false, true) => note("the engine is there"),
        (true, false) => note("the engine is gone: the sockets of its copies are ended"),
        _ => {}
    }
    if before.counts.full == 0 && now.counts.full > 0 {
        note("Warning: there is no room for more flows: new copies are refused; give a larger --max-flows");
    }
    if !before.elsewhere && now.elsewhere {
        note(
            "Warning: sockets of copies are in another network namespace than this: their flows are forgotten late, and cannot be ended \
             from here",
        );
    }
}

fn told(counts: &Counts) -> String {
    let rows = [
        ("copies let in", counts.learned, "connections"),
        ("", counts.decapsulated, "packets"),
        ("answers steered back", counts.steered, "packets"),
        ("kept from clients", counts.stolen_icmp, "ICMP errors"),
        ("", counts.stolen_fragments, "fragments of TCP segments"),
        ("", counts.stolen_answers, "answers that the tunnel did not take"),
        ("refused", counts.full, "connections for which there was no room"),
        ("", counts.unlearned, "packets of unknown connections"),
        ("", counts.leaseless, "packets while not at work"),
        ("", counts.malformed, "packets that are none for the server"),
        ("", counts.foreign, "packets of copies' addresses that came by another way"),
    ];
    rows.iter().map(|(what, count, of)| format!("{what:<22}{count} {of}\n")).collect()
}
