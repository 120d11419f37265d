//! `netdyno info`: what captures hold.

use crate::cli::Info;
use crate::output::print;
use anyhow::Result;

pub fn run(args: Info) -> Result<u8> {
    let mut readers = job::kinds::replay::open(&args.files, args.skip_corrupt)?;
    let mut found = Vec::with_capacity(readers.len());
    for reader in &mut readers {
        found.push(capture::info::summarise(reader)?);
    }
    if args.json {
        let text = match &found[..] {
            [one] => serde_json::to_string_pretty(one)?,
            several => serde_json::to_string_pretty(several)?,
        };
        print(&(text + "\n"))?;
    } else {
        let texts: Vec<String> = found.iter().map(|info| info.text().trim_end().to_owned()).collect();
        print(&(texts.join("\n\n") + "\n"))?;
    }
    Ok(0)
}
