//! `netdyno tcpbridge`: tcpbridge's command line. What differs from tcpbridge stands in docs/compat.md.

use super::edits;
use crate::cli::Output;
use crate::cli::bridge::Tcpbridge;
use crate::client::{Line, Signals, attend};
use crate::output::{note, print};
use ::edit::rewrite::Plan;
use anyhow::{Context, Result};
use job::kinds::bridge::{self, Settings};
use port::interface::Interface;
use report::classic;
use spec::Consent;

/// Runs `netdyno tcpbridge`; returns the exit status.
pub fn run(args: Tcpbridge) -> Result<u8> {
    if args.listnics {
        let names = Interface::list()?.into_iter().map(|interface| interface.name + "\n");
        print(&format!("Available network interfaces:\n{}", names.collect::<String>()))?;
        return Ok(0);
    }
    refuse(&args)?;
    // `always_group_mac` and the like are part of every plan of tcprewrite's: what nobody asked for is no edit.
    let plan = edits::tcprewrite_plan(&args.edits, true)?;
    let nothing = Plan { always_group_mac: true, keep_foreign: true, ..Plan::default() };
    let between = [args.intf1.context("-i is needed")?, args.intf2.context("-I is needed")?];
    let settings = Settings {
        one_way: args.unidir,
        count: args.limit,
        filter: bridge::filter(args.include.as_deref(), args.exclude.as_deref())?,
        plan: (plan != nothing).then_some(plan),
        ..Settings::of_two("tcpbridge", between)
    };
    if args.pid {
        note(&format!("PID: {}", std::process::id()));
    }
    let consent = Consent { yes_disrupt: args.yes_disrupt, ..Consent::default() };
    let session = Signals::handle(false)?.session(consent, None);
    let output = Output::default();
    let report = attend(&output, Line::Shown, session, |session| {
        job::spawn(session, move |session| bridge::bridge(&settings, &session))
    })?;
    print(&classic::render(&report))?;
    for reason in report.result.verdict.reasons() {
        note(&format!("Warning: {reason}"));
    }
    Ok(report.result.verdict.exit_status())
}

/// What is not there is refused by its name, not passed over.
fn refuse(args: &Tcpbridge) -> Result<()> {
    super::refuse(&[
        ("--verbose", args.verbose, "watch the frames with `tcpdump -i IFACE` instead"),
        ("--load-opts", args.load_opts.is_some(), "write the options on the command line"),
        ("--save-opts", args.save_opts.is_some(), "write the options on the command line"),
        (
            "--dlt",
            args.edits.dlt.as_deref().is_some_and(|dlt| dlt != "enet"),
            "Ethernet interfaces carry Ethernet",
        ),
    ])
}
