//! `netdyno edit` and `netdyno tcprewrite`: a capture in, an edited one out.

use super::edits::{new_link, plan, tcprewrite_plan};
use crate::cli::edit::{Edit, Tcprewrite};
use crate::output::note;
use ::edit::cache::{Cache, Way};
use ::edit::rewrite::{self, EditError, Plan, Side, Target, Totals};
use anyhow::{Result, bail};
use capture::{FileFormat, Reader};
use report::units;
use std::path::Path;
use wire::LinkType;

pub fn run(args: Edit) -> Result<u8> {
    let plan = plan(&args.edits, args.sides.is_some())?;
    let format = FileFormat::of_name(&args.write);
    let link = args.edits.to_ethernet.then_some(LinkType::ETHERNET);
    let target = Target { path: &args.write, format, link, snaplen: None };
    let mut input = Reader::open(&args.input)?;
    if args.skip_corrupt {
        input = input.lenient();
    }
    let totals = pass(&args.input, input, target, &plan, args.sides.as_deref())?;
    note(&summary(&totals, &args.write, plan.drop_unsupported));
    Ok(0)
}

fn summary(totals: &Totals, path: &Path, dropped: bool) -> String {
    let mut text = format!("wrote {} of {}", path.display(), units::counted(totals.written, "frame"));
    if totals.unsupported > 0 && !dropped {
        text += &format!(", {} of them unedited: their headers cannot be read", totals.unsupported);
    }
    let left = totals.read - totals.written;
    if left > 0 {
        text += &format!("; {} left out", units::counted(left, "frame"));
    }
    text
}

/// `netdyno tcprewrite`.
pub fn tcprewrite(args: Tcprewrite) -> Result<u8> {
    refuse(&args)?;
    let mut plan = tcprewrite_plan(&args.edits, args.cachefile.is_some())?;
    let link = new_link(&args.edits, &mut plan)?;
    let target = Target {
        path: &args.outfile,
        format: FileFormat::PcapMicroseconds,
        link,
        // What tcprewrite writes into the file's header.
        snaplen: Some(65_535),
    };
    // As far as the capture is sound, like libpcap's users.
    let input = Reader::open(&args.infile)?;
    let totals = pass(&args.infile, input, target, &plan, args.cachefile.as_deref())?;
    if totals.unsupported > 0 && !args.suppress_warnings {
        note(&format!(
            "Warning: {} without headers that can be edited",
            units::counted(totals.unsupported, "frame")
        ));
    }
    Ok(0)
}

/// What is not there yet is refused by its name, not passed over.
fn refuse(args: &Tcprewrite) -> Result<()> {
    let given = [
        ("--fuzz-seed", args.edits.fuzz_seed.is_some(), "fuzzing is not supported"),
        ("--fragroute", args.fragroute.is_some(), "fragmenting is not supported"),
        ("--fragdir", args.fragdir.is_some(), "fragmenting is not supported"),
        ("--verbose", args.verbose, "show the written capture with `tcpdump -r` instead"),
        ("--load-opts", args.load_opts.is_some(), "write the options on the command line"),
        ("--save-opts", args.save_opts.is_some(), "write the options on the command line"),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((name, _, why)) => bail!("{name}: {why}"),
        None => Ok(()),
    }
}

/// Edits the capture; the output gets its name only when it is whole.
fn pass(
    path: &Path,
    mut input: Reader,
    target: Target<'_>,
    plan: &Plan,
    cache: Option<&Path>,
) -> Result<Totals> {
    if same_file(path, target.path) {
        bail!("{} cannot be read and written at once: give another name for the output", path.display());
    }
    let cache = cache.map(|file| Cache::open(file).map(|cache| (file, cache))).transpose()?;
    let side = |number: u64| {
        let Some((file, cache)) = &cache else { return Ok(Some(Side::Client)) };
        match cache.way(number) {
            Some(Way::Primary) => Ok(Some(Side::Client)),
            Some(Way::Secondary) => Ok(Some(Side::Server)),
            Some(Way::Skip) => Ok(None),
            None => Err(EditError::Side(format!(
                "{} knows {}, and the capture has more: it is of another capture",
                file.display(),
                units::counted(cache.len(), "frame")
            ))),
        }
    };
    let stop = crate::run::stop_on_signals()?;
    let totals = rewrite::run(&mut input, target, plan, side, &stop)?;
    if let Some(why) = &input.notes().cut_short {
        note(&format!("Warning: {why}"));
    }
    Ok(totals)
}

/// Whether both names lead to one file. Names that lead nowhere yet do not.
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| (m.dev(), m.ino()));
    id(a).is_some_and(|a| id(b) == Some(a))
}
