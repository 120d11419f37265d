//! `netdyno beforeafter`: two listings of counters, subtracted by name.

use crate::cli::counters::Beforeafter;
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use counters::listing::subtract;
use std::io::Read;
use std::path::Path;

/// A longer file is no listing.
const MOST: u64 = 64 << 20;

pub fn run(args: &Beforeafter) -> Result<u8> {
    let dash = Path::new("-");
    if args.before == dash && args.after == dash {
        bail!("both files are standard input: one of them may be -");
    }
    let (before, after) = (listing(&args.before)?, listing(&args.after)?);
    let found = subtract(&before, &after)
        .with_context(|| format!("subtracting {} from {}", args.before.display(), args.after.display()))?;
    for warning in &found.warnings {
        note(warning);
    }
    print(&found.text)?;
    Ok(u8::from(!found.warnings.is_empty()))
}

/// A text file, `-` is standard input.
pub fn listing(path: &Path) -> Result<String> {
    let reading = || format!("reading {}", path.display());
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).with_context(reading)?.take(MOST + 1).read_to_end(&mut bytes)
    };
    read.with_context(reading)?;
    if bytes.len() as u64 > MOST {
        bail!("{} is longer than 64 MiB: this is no listing of counters", path.display());
    }
    let is_text = |text: &String| !text.contains('\0');
    String::from_utf8(bytes).ok().filter(is_text).with_context(|| {
        format!("{} is no text: give what a tool printed (netstat -s, ethtool -S, nstat)", path.display())
    })
}
