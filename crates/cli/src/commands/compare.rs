//! `netdyno compare`: results beside each other.

use crate::cli::compare::Compare;
use crate::output::{columns, print};
use crate::wording;
use anyhow::{Context, Result, bail};
use report::Report;
use report::compare::{Named, compare, render};
use report::text::Options;
use report::units::printable;
use std::io::stdout;
use std::path::PathBuf;

pub fn run(args: Compare) -> Result<u8> {
    let (a, b) = match (args.results.as_slice(), args.against.as_slice()) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        ([_], []) => bail!("compare with what? Give two results, or those of B after --against"),
        (more, []) => {
            bail!("{} results: which of them are A, which are B? Give those of B after --against", more.len())
        }
        (a, b) => (a, b),
    };
    let (a, b) = (read(a)?, read(b)?);
    let (a, b) = (named(&a), named(&b));
    let comparison = compare(&a, &b, args.least.0)?;
    let page = args
        .report
        .map(|dir| report::write_comparison_in(&comparison, (&a, &b), &dir, wording::said))
        .transpose()?;
    let text = if args.json {
        serde_json::to_string_pretty(&comparison).context("the comparison as JSON")? + "\n"
    } else {
        let open =
            page.map(|page| format!("Open {} for the plots.\n", printable(&page.display().to_string())));
        render(&comparison, options()) + &open.unwrap_or_default()
    };
    print(&wording::said(&text))?;
    Ok(comparison.exit_status())
}

/// As wide as the terminal, in the words of the command line.
pub fn options() -> Options<'static> {
    Options { width: columns(stdout()), said: |text| wording::said(text).into_owned(), ..Options::default() }
}

/// The results of one side, each once.
fn read(paths: &[PathBuf]) -> Result<Vec<(String, Report)>> {
    let mut seen = Vec::new();
    let mut all = Vec::new();
    for path in paths {
        let real = path.canonicalize().with_context(|| format!("reading {}", path.display()))?;
        if seen.contains(&real) {
            bail!(
                "{} is given twice: only results of different runs tell how much a run differs from itself",
                path.display()
            );
        }
        seen.push(real);
        crate::hints::check_file(path, crate::hints::Kind::Result)?;
        all.push((printable(&path.display().to_string()), report::read(path)?));
    }
    Ok(all)
}

fn named(side: &[(String, Report)]) -> Vec<Named<'_>> {
    side.iter().map(|(name, report)| Named { name: name.clone(), report }).collect()
}
