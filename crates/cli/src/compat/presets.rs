//! Option files as AutoOpts reads them (`--load-opts FILE`): a line for each option, in sections named after programs.
//!
//! ```text
//! [TCPPREP]
//! pcap     in.pcap
//! auto     bridge
//! nonip
//! comment  "kept together"
//! ```

use super::autoopts::{Parsed, Spec};
use anyhow::{Context, Result, bail};
use capture::AtomicFile;
use std::io::Write;
use std::path::Path;

/// Adds what a file says about `program` to what the command line says, which goes before.
pub fn load(path: &Path, program: &str, specs: &[Spec], parsed: &mut Parsed) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let presets = read(&text, program, specs).with_context(|| format!("options in {}", path.display()))?;
    // Those that may be repeated may be so in the file, too.
    let given: Vec<&str> = parsed.options.iter().map(|(name, _)| *name).collect();
    parsed.options.extend(presets.into_iter().filter(|(name, _)| !given.contains(name)));
    Ok(())
}

/// Writes all options into a file that [`load`] reads, and AutoOpts, too.
pub fn save(path: &Path, program: &str, parsed: &Parsed) -> Result<()> {
    let mut text = format!("# Options of {program}, written by netdyno.\n[{}]\n", program.to_uppercase());
    for (name, value) in &parsed.options {
        if matches!(*name, "save-opts" | "load-opts") {
            continue;
        }
        if value.contains('\n') {
            bail!("--save-opts: --{name} has more than one line, which option files cannot hold");
        }
        text += format!("{name:<20}{value}").trim_end();
        text.push('\n');
    }
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.finish()
    });
    written.with_context(|| format!("writing {}", path.display()))
}

pub(super) fn read(text: &str, program: &str, specs: &[Spec]) -> Result<Vec<(&'static str, String)>> {
    let mut options = Vec::new();
    // What stands before the first section is for every program.
    let mut ours = true;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            ours = section.trim().eq_ignore_ascii_case(program);
            continue;
        }
        if !ours {
            continue;
        }
        let (name, value) = line.split_once([' ', '\t', '=']).unwrap_or((line, ""));
        let value = value.trim().trim_start_matches('=').trim();
        let name = name.trim_start_matches("--").to_ascii_lowercase().replace('_', "-");
        let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
            bail!("line {}: there is no option `{name}`", number + 1);
        };
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        match spec.value {
            None if !value.is_empty() => bail!("line {}: `{name}` takes no value", number + 1),
            Some(_) if value.is_empty() => bail!("line {}: `{name}` needs a value", number + 1),
            _ => options.push((spec.name, value.to_owned())),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [Spec; 3] = [
        Spec { name: "pcap", short: Some('i'), value: Some("FILE") },
        Spec { name: "no-arg-comment", short: None, value: None },
        Spec { name: "comment", short: Some('C'), value: Some("TEXT") },
    ];

    #[test]
    fn only_the_programs_own_section_counts() {
        let text = "[TCPREWRITE]\nbogus 1\n\n# a word\n[tcpprep]\npcap  in.pcap\nNO_ARG_COMMENT\ncomment = \"two words\"\n";
        let wanted: [(&str, String); 3] =
            [("pcap", "in.pcap".into()), ("no-arg-comment", "".into()), ("comment", "two words".into())];
        assert_eq!(read(text, "tcpprep", &SPECS).unwrap(), wanted);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, says) in [
            ("\nbogus 1", "line 2: there is no option `bogus`"),
            ("pcap", "line 1: `pcap` needs a value"),
            ("no-arg-comment yes", "takes no value"),
        ] {
            let error = read(text, "tcpprep", &SPECS).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
