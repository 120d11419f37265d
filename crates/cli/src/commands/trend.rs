//! `netdyno trend`: results over time.

use crate::cli::trend::{Format, Since, Trend};
use crate::output::{note, print};
use crate::wording;
use anyhow::{Context, Result, anyhow, bail};
use report::units::printable;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use trend::{Wish, judge};

pub fn run(args: &Trend) -> Result<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let since = args.since.map(|since| match since {
        Since::Time(at) => at,
        Since::Ago(age) => now.saturating_sub(age.as_secs()),
    });
    if args.parquet.is_some() && !trend::PARQUET_HERE {
        bail!("--parquet: {}", report::absent("Parquet", "parquet"));
    }
    let folder = trend::read(&args.folder, now)?;
    let wish = Wish { figures: args.figure.clone(), least: args.least.0, since, any_host: args.any_host };
    let trend = judge(&folder, &wish);
    if let Some(wanted) =
        args.figure.iter().find(|wanted| !trend.lines().any(|(_, line)| wanted.means(&line.key, &line.name)))
    {
        bail!(
            "--figure {}: no result in {} has it, or neither direction of it is better",
            printable(&wanted.text()),
            args.folder.display()
        );
    }
    if let Some(page) = &args.page {
        refuse("--page", page, "page", is_page)?;
    }
    if let Some(table) = &args.parquet {
        refuse("--parquet", table, TABLE, trend::is_table)?;
    }
    if let Some(page) = &args.page {
        write("--page", page, trend::page(&trend).as_bytes())?;
    }
    if let Some(table) = &args.parquet {
        let bytes = trend::parquet(&trend).map_err(|why| anyhow!("--parquet: {why}"))?;
        write("--parquet", table, &bytes)?;
    }
    let text = match (args.json, args.format) {
        (true, _) => trend::json(&trend),
        (false, Format::Junit) => trend::junit(&trend),
        (false, Format::Markdown) => trend::markdown(&trend),
        (false, Format::Text) => {
            let page = args.page.as_ref().map(|page| printable(&page.display().to_string()));
            let open = page.map(|page| format!("Open {page} for the plots.\n"));
            trend::text(&trend, super::compare::options()) + &open.unwrap_or_default()
        }
    };
    print(&wording::said(&text))?;
    let pruned = match args.prune {
        Some(age) => prune(&trend, now.saturating_sub(age.as_secs()), args.keep_newest),
        None => 0,
    };
    Ok(pruned.max(if args.check { trend.exit_status() } else { 0 }))
}

/// Removes old results and says which. 2 if one could not be removed.
fn prune(trend: &trend::Trend, before: u64, keep: usize) -> u8 {
    let pruned = trend::prune(trend, before, keep);
    for path in &pruned.removed {
        note(&format!("removed {path}"));
    }
    for failed in &pruned.failed {
        note(&format!("not removed: {failed}"));
    }
    note(&format!("{} removed", report::units::counted(pruned.removed.len() as u64, "result")));
    if pruned.failed.is_empty() { 0 } else { 2 }
}

fn is_page(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(512).read_to_end(&mut beginning));
    read.is_ok() && String::from_utf8_lossy(&beginning).contains(report::html::GENERATOR)
}

/// What a file of Parquet is.
const TABLE: &str = "table of trends";

/// Only what is such a one of ours is replaced: looked at before anything is written.
fn refuse(option: &str, path: &Path, what: &str, is_ours: impl Fn(&Path) -> bool) -> Result<()> {
    let failed = || format!("{option} {}", printable(&path.display().to_string()));
    let path = report::place::resolve(path).with_context(failed)?;
    // (A pipe would have no end.)
    if let Ok(there) = fs::symlink_metadata(&path)
        && !(there.is_file() && is_ours(&path))
    {
        bail!(
            "{}: it is there already and is no {what} of netdyno's; move it or name another file",
            failed()
        );
    }
    Ok(())
}

/// Writes a file beside its name, and gives it that when it is whole.
fn write(option: &str, path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("{option} {}", printable(&path.display().to_string()));
    let path = report::place::resolve(path).with_context(failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".netdyno-trend-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .with_context(failed)?;
    file.write_all(bytes).with_context(failed)?;
    file.persist(&path).map_err(|error| error.error).with_context(failed)?;
    Ok(())
}
