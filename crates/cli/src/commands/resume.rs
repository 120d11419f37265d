//! `netdyno search --continue`: the search that an earlier result is of.
//!
//! A result may be anybody's. So nothing that runs a program or lifts a guard is taken from it: whoever continues the search
//! gives such options again, and they must be those of the result, because with others it would be another search.

use super::consent::{needed, of_result, unallowed};
use anyhow::{Context, Result, anyhow, bail};
use report::{Report, units};
use spec::{Job, NotGiven};
use std::path::Path;

/// The result to go on from: a report folder or file, or what --json printed.
pub fn read(path: &Path) -> Result<Report> {
    crate::hints::check_file(path, crate::hints::Kind::Result).context("--continue")?;
    let report = report::read(path).with_context(|| format!("--continue {}", path.display()))?;
    let (of_device, between) = (report.result.search.as_ref(), report.result.endpoint_search.as_ref());
    let by_sessions = report.result.sessions_search.as_ref().map(|search| search.complete);
    let complete = of_device.map(|search| search.complete).or(between.map(|search| search.complete));
    let complete = complete.or(by_sessions);
    match complete.filter(|_| report.command == "search") {
        None => bail!(
            "--continue {}: that is the result of `netdyno {}`, not of a search",
            path.display(),
            units::printable(&report.command)
        ),
        Some(true) => {
            bail!("--continue {}: that search is complete; `netdyno report` shows it", path.display())
        }
        Some(false) => {}
    }
    Ok(report)
}

/// What to do about a search that needs more than was given again: its own option gives the server's address.
fn not_given(refused: &NotGiven, then: &Job) -> anyhow::Error {
    let to = match (refused, then) {
        (NotGiven::Address(_), Job::SessionsSearch(then)) => format!("--to {}", then.sessions.to),
        (NotGiven::PublicTarget(_), Job::SessionsSearch(then)) => {
            format!("--to {} --allow-public-target", then.sessions.to)
        }
        _ => return unallowed(refused),
    };
    anyhow!("{}: give {to} on the command line, if you want that", units::printable(&refused.to_string()))
}

/// What a job searches for.
fn sought(job: &Job) -> Option<&'static str> {
    match job {
        Job::Search(search) => Some(search.find.name()),
        Job::EndpointSearch(search) => Some(search.find.name()),
        Job::SessionsSearch(search) => Some(search.find.name()),
        _ => None,
    }
}

/// What was asked for then; what it needs to be allowed has to be asked for `now`, too.
pub fn again(report: &Report, path: &Path, now: &Job) -> Result<Job> {
    let what = || format!("--continue {}", path.display());
    let then = of_result(report).with_context(what)?;
    let (Some(before), Some(after)) = (sought(&then), sought(now)) else {
        bail!("{}: requested: a `{}`, and no search", what(), then.kind());
    };
    if before != after {
        bail!("{}: that is a search for {before}, not for {after}", what());
    }
    then.check().with_context(what)?;
    let given = now.asks();
    given.covers(&then).map_err(|refused| not_given(&refused, &then)).with_context(what)?;
    needed(&given, std::slice::from_ref(&then)).with_context(what)?;
    Ok(then)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::{Args as _, CommandFactory, Parser};
    use spec::setting::{Settings as _, each};

    fn kind(words: &str) -> Job {
        match Cli::try_parse_from(words.split(' ')).expect("a command line").command {
            Command::Search(search) => search.kind.job().0,
            _ => panic!("no search"),
        }
    }

    fn continued(then: &str, now: &str) -> Result<Job> {
        let mut report = Report::new("search");
        report.requested = Some(kind(then).to_value().expect("text"));
        again(&report, Path::new("r.json"), &kind(now))
    }

    #[test]
    fn what_runs_or_disrupts_is_never_taken_from_a_file() {
        let plain = "netdyno search reset --on eth0 --measure eth1 --rate 1kpps";
        let on = "netdyno search reset --continue r.json";
        for (option, other) in
            [("--command reboot", "must be the same"), ("--yes-disrupt eth0", "give --yes-disrupt")]
        {
            let (name, _) = option.split_once(' ').expect("two words");
            let with = format!("{plain} {option}");
            for (then, now, says) in [
                (&*with, on, "give"),
                (&with, &format!("{on} {name} other"), other),
                (plain, &format!("{on} {option}"), "leave it out"),
            ] {
                let error = job::in_full(&continued(then, now).expect_err("a foreign power"));
                assert!(
                    error.contains("--continue r.json") && error.contains(says),
                    "{then}: {now}: {error}"
                );
            }
            let then = continued(&with, &format!("{on} {option}")).expect("the same");
            assert_eq!(then, kind(&with));
        }
        assert!(continued(plain, on).is_ok());
        let error =
            continued(plain, "netdyno search loss --continue r.json").expect_err("another").to_string();
        assert!(error.contains("for reset, not for loss"), "{error}");
        let error = again(&Report::new("search"), Path::new("r.json"), &kind(on)).expect_err("no job");
        assert!(job::in_full(&error).contains("earlier version"), "{error:#}");
    }

    /// Whoever adds a setting of a search declares whether it needs consent, and crate `spec` holds that it is asked for then. The other
    /// options are the plugin's own (a plugin has no access to this host), and where the result goes, which is never taken from the file.
    #[test]
    fn every_option_of_a_search_is_declared_as_harmless_or_asked_for_again() {
        let of_others = ["set", "plugin-config", "continue"];
        let output = crate::cli::Output::augment_args(clap::Command::new("output"));
        let mut declared = std::collections::BTreeMap::new();
        let searches = spec::Find::SETTINGS.iter().chain(spec::EndpointFind::SETTINGS);
        let searches = searches.chain(spec::SessionsFind::SETTINGS);
        let all = searches.map(|(_, members)| *members);
        let common = [spec::Search::MEMBERS, spec::EndpointSearch::MEMBERS, spec::SessionsSearch::MEMBERS];
        for members in all.chain(common) {
            each(members, &mut |_, setting| {
                let by_itself = setting.is_typed().then(|| setting.option.unwrap_or(setting.name));
                let shorthands = setting.shorthands.iter().map(|shorthand| shorthand.option);
                for name in by_itself.into_iter().chain(shorthands) {
                    *declared.entry(name).or_insert(false) |= setting.consent;
                }
            });
        }
        let cli = Cli::command();
        let search = cli.find_subcommand("search").expect("search");
        let mut asked_again = std::collections::BTreeSet::new();
        for argument in search.get_subcommands().flat_map(clap::Command::get_arguments) {
            let name = argument.get_id().as_str();
            let is_output = output.get_arguments().any(|of_output| of_output.get_id() == name);
            let long = argument.get_long().unwrap_or(name);
            let is_harmless = is_output || of_others.contains(&long) || declared.get(name) == Some(&false);
            if !is_harmless {
                asked_again.insert(name.to_owned());
            }
        }
        assert_eq!(asked_again.into_iter().collect::<Vec<_>>(), ["command", "yes-disrupt"]);
    }
}
