//! `netdyno clone return`: at a clone's target, copies are taken out of the tunnel, and answers to them go back into it.
//!
//! ```text
//!   this process ----------- pipe ------------> its guardian
//!     attaches, learns, forgets                   when the pipe ends, however: ends sockets of copies, takes filters away
//! ```

use super::{Place, Run, passive};
use crate::session::Session;
use anyhow::{Context, Result, anyhow};
use report::{Code, Report, Returned};
use snapshot::{Count, Snapshot, Title};
use spec::ReturnAgent;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steer::{Cleaned, Counts, Options, Standing, Steering};

/// Sockets have so long to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// From one snapshot to the next.
const SHOWS: Duration = Duration::from_millis(200);
/// Flows that are learned, unless said.
const MOST_FLOWS: u32 = 131_072;

impl Run for ReturnAgent {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

/// Starts the process that cleans up when this one is gone. In a group of its own: the terminal's Ctrl-C is not for it.
fn guardian(session: &Session) -> Result<Child> {
    let words = session.guardian.as_deref().unwrap_or_default();
    let (program, words) = words.split_first().context(
        "a return agent needs a second process that cleans up when the first one is gone, and who runs this job has none: run it by \
         the program netdyno, or by its agent",
    )?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().context("starting the process that cleans up when this one is gone")
}

/// The guardian has nothing to do.
fn dismiss(mut guardian: Child) {
    // Ours, and not yet waited for: no other process has its number.
    let _ = guardian.kill();
    let _ = guardian.wait();
}

fn run(args: &ReturnAgent, session: &Session) -> Result<Report> {
    passive::check(args)?;
    let engine = args.engine.context("`.engine` is not said")?;
    let tunnel = (args.tunnel_port.unwrap_or(steer::PORT), args.vni.unwrap_or(steer::VNI));
    let server = (args.server.address, args.server.port);
    let most_flows = args.max_flows.unwrap_or(MOST_FLOWS);
    let options = Options { on: args.on.clone(), server, engine, tunnel, most_flows };
    session.stop_in_order();
    let guardian = guardian(session)?;
    let steering = match Steering::start(options.clone()) {
        Ok(steering) => steering,
        // Nothing of its own is there. What is, is another one's.
        Err(error) => {
            dismiss(guardian);
            return Err(anyhow!("{error}"));
        }
    };
    let counts = attend(args, steering, &options, session);
    session.board.end();
    let done = steer::clean(PATIENCE, false)?;
    if done.left.is_none() {
        dismiss(guardian);
    }
    let (mut report, counts) = counts?;
    if let Some(why) = &done.left {
        let said = format!("answers to clients are still kept back by filters that stay: {why}");
        report.result.verdict.fall_short(Code::WentWithout, (said, "then: `.clean`"));
    }
    report.result.returned = Some(returned(&counts, &done));
    Ok(report)
}

/// Steers until it is ended.
fn attend(
    args: &ReturnAgent,
    mut steering: Steering,
    options: &Options,
    session: &Session,
) -> Result<(Report, Counts)> {
    let mut before = steering.turn()?;
    let place = Place::find(&args.on)?;
    let mut report = passive::report("clone return", &place, (None, None));
    if let Some(said) = steer::reverse_path(&options.on, options.engine) {
        report.warnings.add(Code::WentWithout, said);
    }
    let title = Arc::new(Title { rx: Some(args.on.clone()), ..passive::title("clone return") });
    let (address, port) = options.server;
    let address = address.map_or_else(String::new, |address| address.to_string());
    session.say(
        Code::Begun,
        format!(
            "steering at {}: copies of {address}:{port} from {} come in, answers go back to it; Ctrl-C ends",
            options.on, options.engine
        ),
    );
    session.warn(&report.warnings);
    let (begun, mut shown) = (Instant::now(), Instant::now());
    // A turn waits for a moment itself, and one has to follow the other: an interface that is new has no filters yet.
    while !session.is_stopped() {
        let now = steering.turn()?;
        tell(session, &before, &now);
        before = now;
        if shown.elapsed() >= SHOWS {
            shown = Instant::now();
            let count = |frames| Some(Count { frames, bytes: 0 });
            let (rx, tx) = (count(before.counts.decapsulated), count(before.counts.steered));
            let at_ns = begun.elapsed().as_nanos() as u64;
            session.board.publish(Snapshot {
                title: Arc::clone(&title),
                at_ns,
                rx,
                tx,
                ..Snapshot::default()
            });
        }
    }
    Ok((report, before.counts))
}

/// What has changed, for who looks on.
fn tell(session: &Session, before: &Standing, now: &Standing) {
    let say = |code: Code, said: &str| session.say(code, said);
    match (&before.closed, &now.closed) {
        (None, Some(why)) => {
            session.say(Code::TargetUnreachable, format!("Warning: nothing is let in: {why}"));
        }
        (Some(_), None) => say(Code::CaptureElsewhere, "copies are let in again"),
        _ => {}
    }
    match (before.engine, now.engine) {
        (false, true) => say(Code::CaptureElsewhere, "the engine is there"),
        (true, false) => {
            say(Code::CaptureElsewhere, "the engine is gone: the sockets of its copies are ended");
        }
        _ => {}
    }
    if before.counts.full == 0 && now.counts.full > 0 {
        say(
            Code::SessionsNotCopied,
            "Warning: there is no room for more flows: new copies are refused; give a larger `.max_flows`",
        );
    }
    if !before.elsewhere && now.elsewhere {
        say(
            Code::WentWithout,
            "Warning: sockets of copies are in another network namespace than this: their flows are forgotten late, and cannot be ended \
             from here",
        );
    }
}

fn returned(counts: &Counts, done: &Cleaned) -> Returned {
    Returned {
        connections: counts.learned,
        packets: counts.decapsulated,
        steered_packets: counts.steered,
        kept_icmp_errors: counts.stolen_icmp,
        kept_fragments: counts.stolen_fragments,
        kept_answers: counts.stolen_answers,
        refused_connections: counts.full,
        unknown_packets: counts.unlearned,
        closed_packets: counts.leaseless,
        malformed_packets: counts.malformed,
        foreign_packets: counts.foreign,
        ended_sockets: done.ended,
        removed_filters: done.filters,
    }
}
