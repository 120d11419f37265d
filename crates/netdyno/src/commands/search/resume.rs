//! `netdyno search --continue`: the search that an earlier result is of.
//!
//! A result may be anybody's, and its command line is executed again. So nothing that runs a program or lifts a guard is
//! taken from it ([`Power`]): whoever continues the search gives such options again, and they must be those of the result,
//! because with others it would be another search.

use crate::cli::{Cli, Command};
use anyhow::{Context, Result, bail};
use clap::Parser;
use report::{Report, units};
use spec::{Consent, Job, Search};
use std::path::Path;

/// The result to go on from: a report folder or file, or what --json printed.
pub fn read(path: &Path) -> Result<Report> {
    let report = report::read(path).with_context(|| format!("--continue {}", path.display()))?;
    if report.command != "search" || report.result.search.is_none() {
        bail!(
            "--continue {}: that is the result of `netdyno {}`, not of a search",
            path.display(),
            units::printable(&report.command)
        );
    }
    if report.result.search.as_ref().is_some_and(|search| search.complete) {
        bail!("--continue {}: that search is complete; `netdyno report` shows it", path.display());
    }
    Ok(report)
}

/// What was asked for then; what it needs to be allowed has to be asked for `now`, too.
pub fn again(report: &Report, path: &Path, now: &Search) -> Result<Search> {
    let words = &report.requested.command_line;
    let then = match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Search(search)) => match search.kind.job() {
            (job, None, _) => Some(job),
            _ => None,
        },
        _ => None,
    };
    let Some(then) = then else {
        bail!(
            "--continue {}: its command line is not one that this version takes: `{}`",
            path.display(),
            units::printable(&words.join(" "))
        )
    };
    if then.find.name() != now.find.name() {
        bail!(
            "--continue {}: that is a search for {}, not for {}",
            path.display(),
            then.find.name(),
            now.find.name()
        );
    }
    let asks = |job: &Search| Job::Search(Box::new(job.clone())).asks();
    allow(path, &powers(asks(&then)), &powers(asks(now)))?;
    Ok(then)
}

/// An option that a foreign file must not give.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Power {
    option: &'static str,
    /// What it does, after "it would".
    does: &'static str,
    value: Option<String>,
}

/// All options of a search that run a program or lift a guard. A test holds the command line to this list.
fn powers(asks: Consent) -> [Power; 2] {
    let Consent { yes_disrupt, command } = asks;
    [
        Power { option: "--command", does: "run a program", value: command },
        Power {
            option: "--yes-disrupt",
            does: "use an interface that carries the default route or a login",
            value: (!yes_disrupt.is_empty()).then(|| yes_disrupt.join(" ")),
        },
    ]
}

/// Are the powers that are given now those of the result?
fn allow(path: &Path, then: &[Power], now: &[Power]) -> Result<()> {
    let path = path.display();
    for (Power { option, does, value: then }, now) in then.iter().zip(now) {
        match (then, &now.value) {
            (then, now) if then == now => {}
            (Some(then), None) => bail!(
                "--continue {path}: its search has {option}, which would {does}, and that is not done because a file says so: give {option} again on the command line, as it was: {}",
                quoted(then)
            ),
            (Some(then), Some(now)) => bail!(
                "--continue {path}: its search has {option} {}, and {option} {} was given: it must be the same, or start anew without --continue",
                quoted(then),
                quoted(now)
            ),
            (None, _) => bail!(
                "--continue {path}: its search has no {option}: leave it out, or start anew without --continue"
            ),
        }
    }
    Ok(())
}

/// As a shell takes it for one word; what moves the cursor is made visible.
fn quoted(text: &str) -> String {
    format!("'{}'", units::printable(text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn kind(words: &str) -> Search {
        match Cli::try_parse_from(words.split(' ')).expect("a command line").command {
            Command::Search(search) => search.kind.job().0,
            _ => panic!("no search"),
        }
    }

    fn asks(job: Search) -> Consent {
        Job::Search(Box::new(job)).asks()
    }

    fn continued(then: &str, now: &str) -> Result<Search> {
        let mut report = Report::new("search");
        report.requested.command_line = then.split(' ').map(str::to_owned).collect();
        again(&report, Path::new("r.json"), &kind(now))
    }

    #[test]
    fn what_runs_or_disrupts_is_never_taken_from_a_file() {
        let plain = "netdyno search reset --on eth0 --measure eth1 --rate 1kpps";
        let on = "netdyno search reset --continue r.json";
        for option in ["--command reboot", "--yes-disrupt eth0"] {
            let (name, value) = option.split_once(' ').expect("two words");
            let with = format!("{plain} {option}");
            for (then, now, says) in [
                (&*with, on, "give"),
                (&with, &format!("{on} {name} other"), "must be the same"),
                (plain, &format!("{on} {option}"), "leave it out"),
            ] {
                let error = continued(then, now).expect_err("a foreign power").to_string();
                assert!(error.contains(name) && error.contains(says), "{then}: {now}: {error}");
            }
            let kind = continued(&with, &format!("{on} {option}")).expect("the same");
            let values: Vec<_> = powers(asks(kind)).into_iter().filter_map(|power| power.value).collect();
            assert_eq!(values, [value]);
        }
        assert!(continued(plain, on).is_ok());
        let error =
            continued(plain, "netdyno search loss --continue r.json").expect_err("another").to_string();
        assert!(error.contains("for reset, not for loss"), "{error}");
    }

    /// Whoever adds an option to `search` says here that a foreign file may give it: it neither runs anything, nor lifts a
    /// guard, nor writes anywhere. Else it belongs to [`powers`], or to `Output`, which is never taken from the file.
    #[test]
    fn every_option_of_a_search_is_known_to_be_harmless_or_asked_for_again() {
        const HARMLESS: &str = "what on measure both-ways back gateway lab lab-dut lab-bottleneck lab-queue lab-burst \
            lab-loss lab-impair size seed no-learning warm-up retries no-real-time engine calibration cores core meter \
            timestamps tx-timestamps max min trial-duration method goal precision short axis rate max-flows max-burst floor repetitions \
            step throughput";
        const TAKEN_FROM_NOW: &str =
            "continue json csv json-lines report quiet print-job tui metrics metrics-name";
        let cli = Cli::command();
        let search = cli.find_subcommand("search").expect("search");
        let mut asked_again = Vec::new();
        for argument in search.get_subcommands().flat_map(clap::Command::get_arguments) {
            let name = argument.get_long().unwrap_or(argument.get_id().as_str());
            let known = HARMLESS.split_whitespace().chain(TAKEN_FROM_NOW.split_whitespace());
            if !known.clone().any(|known| known == name) && !asked_again.contains(&format!("--{name}")) {
                asked_again.push(format!("--{name}"));
            }
        }
        asked_again.sort();
        let kind = kind("netdyno search loss --lab");
        assert_eq!(asked_again, powers(asks(kind)).map(|power| power.option));
    }
}
