//! What `tcpreplay-edit` has beyond tcpreplay: tcprewrite's options for edits, done to each packet before it is sent.
//!
//! They are declared for clap, in `cli::edit`; here they are read the way tcpreplay reads its own, mixed with those.

use super::autoopts::{Parsed, Spec};
use super::edits;
use crate::cli::edit::TcprewriteEdits;
use ::edit::rewrite::Plan;
use anyhow::{Result, anyhow, bail};
use clap::{ArgAction, Args, Command, FromArgMatches};
use std::sync::LazyLock;

static COMMAND: LazyLock<Command> =
    LazyLock::new(|| TcprewriteEdits::augment_args(Command::new("tcpreplay-edit").disable_help_flag(true)));

/// The options, each with what it does.
pub fn options() -> impl Iterator<Item = (Spec, String)> {
    COMMAND.get_arguments().filter_map(|arg| {
        let names = arg.get_value_names().and_then(|names| names.first());
        let takes = arg.get_action().takes_values();
        let value = takes.then(|| names.map_or("VALUE", |name| name.as_str()));
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        Some((Spec { name: arg.get_long()?, short: arg.get_short(), value }, help))
    })
}

/// May there be more than one of this option?
pub fn is_repeated(name: &str) -> bool {
    let mut arguments = COMMAND.get_arguments();
    arguments.any(|arg| arg.get_long() == Some(name) && matches!(arg.get_action(), ArgAction::Append))
}

/// The edits that are asked for, if any are. `sided`: it is known which side sent each packet.
pub fn plan(given: &Parsed, sided: bool) -> Result<Option<Plan>> {
    let ours = |name: &str| COMMAND.get_arguments().any(|arg| arg.get_long() == Some(name));
    let words: Vec<String> = given
        .options
        .iter()
        .filter(|(name, _)| ours(name))
        .map(|(name, value)| {
            let takes = options().any(|(spec, _)| spec.name == *name && spec.value.is_some());
            if takes { format!("--{name}={value}") } else { format!("--{name}") }
        })
        .collect();
    if words.is_empty() {
        return Ok(None);
    }
    let words = std::iter::once("tcpreplay-edit".to_owned()).chain(words);
    let matches = COMMAND.clone().try_get_matches_from(words).map_err(|error| in_a_line(&error))?;
    let edits = TcprewriteEdits::from_arg_matches(&matches).map_err(|error| in_a_line(&error))?;
    let mut plan = edits::tcprewrite_plan(&edits, sided)?;
    edits::new_link(&edits, &mut plan)?;
    if let Some(dlt) = edits.dlt.as_deref().filter(|dlt| !["enet", "user"].contains(dlt)) {
        bail!(
            "--dlt={dlt}: an Ethernet interface sends Ethernet frames; enet and user can be sent, tcprewrite writes others into a file"
        );
    }
    Ok(Some(plan))
}

/// Clap's message without its hints.
fn in_a_line(error: &clap::Error) -> anyhow::Error {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    anyhow!("{}", lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::autoopts;
    use std::ffi::OsString;

    fn planned(line: &str) -> Result<Option<Plan>> {
        let specs: Vec<Spec> = options().map(|(spec, _)| spec).collect();
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        plan(&autoopts::parse_repeated(&specs, is_repeated, &words)?, false)
    }

    #[test]
    fn tcprewrites_words_make_a_plan() {
        assert_eq!(planned("").unwrap(), None);
        let plan =
            planned("-s7 -C -r 80:8080 -r 81:8081 --enet-dmac=02:00:00:00:00:01 --ttl -3").unwrap().unwrap();
        assert!(plan.scramble_ip.is_some() && plan.fix_checksums);
        assert_eq!([plan.ports.get(80), plan.ports.get(81)], [8080, 8081]);
        assert_eq!(plan.ttl, Some(::edit::rewrite::Ttl::Subtract(3)));
    }

    #[test]
    fn what_is_wrong_is_told_in_a_line() {
        for (line, says) in [
            ("--mtu=0", "--mtu"),
            ("--tos=256", "--tos"),
            ("-N 10.0.0.0/8", "--pnat"),
            ("--dlt=hdlc --hdlc-address 15 --hdlc-control 0", "an Ethernet interface sends Ethernet frames"),
            ("-e 1.2.3.4:5.6.7.8", "--cachefile"),
            ("-s 1 -s 2", "given twice"),
        ] {
            let error = job::in_full(&planned(line).expect_err(line));
            assert!(error.contains(says) && error.lines().count() == 1, "{line}: {error}");
        }
    }
}
