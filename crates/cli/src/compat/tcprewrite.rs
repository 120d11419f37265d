//! `netdyno tcprewrite`: tcprewrite's options, turned into a plan for what `netdyno edit` does. docs/compat.md says
//! what differs.

use super::autoopts::{self, Spec};
use super::edits::{new_link, tcprewrite_plan};
use super::{presets, tcpdump};
use crate::cli::edit::{FragmentSides, Tcprewrite};
use crate::commands::edit::{fragmenting, fragroute, not_in_headers, pass};
use crate::output::note;
use anyhow::{Result, bail};
use capture::{FileFormat, Reader};
use clap::{Args, Command};
use edit::rewrite::Target;
use report::units;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

/// The words that follow tcprewrite's name, with what its option files say. What cannot be read is left to be refused
/// where it is read again. `None`: they were saved, and like with AutoOpts that is all.
pub fn arguments(words: Vec<OsString>) -> Result<Option<Vec<OsString>>> {
    static COMMAND: LazyLock<Command> =
        LazyLock::new(|| Tcprewrite::augment_args(Command::new("tcprewrite")));
    let specs: Vec<Spec> = COMMAND
        .get_arguments()
        .filter_map(|arg| {
            let value = arg.get_action().takes_values().then_some("VALUE");
            Some(Spec { name: arg.get_long()?, short: arg.get_short(), value })
        })
        .collect();
    let Ok(mut parsed) = autoopts::parse_repeated(&specs, |_| true, &words) else { return Ok(Some(words)) };
    if !parsed.files.is_empty() {
        return Ok(Some(words));
    }
    if let Some(file) = parsed.value("load-opts").map(str::to_owned) {
        presets::load(Path::new(&file), "tcprewrite", &specs, &mut parsed)?;
    }
    if let Some(file) = parsed.value("save-opts") {
        presets::save(Path::new(file), "tcprewrite", &parsed)?;
        return Ok(None);
    }
    let word =
        |(name, value): &(&str, String)| match specs.iter().any(|s| s.name == *name && s.value.is_some()) {
            true => format!("--{name}={value}").into(),
            false => format!("--{name}").into(),
        };
    Ok(Some(parsed.options.iter().map(word).collect()))
}

/// Runs `netdyno tcprewrite`; returns the exit status.
pub fn run(args: Tcprewrite) -> Result<u8> {
    // There are none that show in files, but a wrong value is always told.
    super::defects()?;
    if args.verbose {
        tcpdump::check()?;
        if args.outfile.as_os_str() == "-" {
            bail!("standard output cannot take both the capture and --verbose: write the capture to a file");
        }
    }
    let mut plan = tcprewrite_plan(&args.edits, args.cachefile.is_some())?;
    let link = new_link(&args.edits, &mut plan)?;
    let rules = fragroute(args.fragroute.as_deref(), args.fragroute_seed)?;
    let target = Target {
        path: &args.outfile,
        format: FileFormat::PcapMicroseconds,
        link,
        // What tcprewrite writes into the file's header.
        snaplen: Some(65_535),
        known: None,
        fragment: fragmenting(rules.as_ref(), args.fragdir.unwrap_or(FragmentSides::Both)),
        uses: None,
    };
    let mut input = Reader::open(&args.infile)?;
    if args.skip_corrupt {
        input = input.lenient();
    }
    let (totals, whole) = pass(&args.infile, input, target, &plan, args.cachefile.as_deref())?;
    if totals.unsupported > 0 && !args.suppress_warnings {
        note(&format!(
            "Warning: {} without headers that can be edited",
            units::counted(totals.unsupported, "frame")
        ));
    }
    if let Some(told) = not_in_headers(&totals).filter(|_| !args.suppress_warnings) {
        note(&format!("Warning: {told}"));
    }
    if totals.foreign > 0 && !args.suppress_warnings {
        note(&format!(
            "Warning: {} left out: --dlt needs headers that can be read",
            units::counted(totals.foreign, "frame")
        ));
    }
    if args.verbose {
        tcpdump::show(&args.outfile, args.decode.as_deref())?;
    }
    Ok(u8::from(!whole))
}
