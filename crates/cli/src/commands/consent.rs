//! The job of a result or file, and what it may do to others.

use anyhow::{Result, anyhow, bail};
use report::Report;
use report::units::printable;
use spec::{Consent, File, Job, Needless, NotGiven};

/// The job of a result.
///
/// # Errors
/// It has none, or one that this version does not read.
pub fn of_result(report: &Report) -> Result<Job> {
    let Some(job) = report.requested.clone() else {
        bail!(
            "it does not say which job it is of: it was written by `netdyno {}`, or by an earlier version",
            printable(&report.command)
        );
    };
    let mut file = File::of(job).map_err(|bad| anyhow!("requested: {}", printable(&bad.to_string())))?;
    match file.jobs.len() {
        1 => Ok(file.jobs.remove(0)),
        more => bail!("requested: {more} jobs, and a result is of one"),
    }
}

/// What to do about a job that needs more than it was given.
pub fn unallowed(refused: &NotGiven) -> anyhow::Error {
    let mend = match refused {
        NotGiven::Disrupt(interface) => {
            format!("give --yes-disrupt {} on the command line, if you want that", quoted(interface))
        }
        NotGiven::Command(command) => {
            format!("give --command {} on the command line, if you want that", quoted(command))
        }
        NotGiven::Write(path) => {
            format!(
                "give --write {} on the command line, if you want that",
                quoted(&path.display().to_string())
            )
        }
        NotGiven::Read(path) => {
            format!(
                "give --allow-read {} on the command line, if you want that",
                quoted(&path.display().to_string())
            )
        }
        NotGiven::Address(address) => {
            format!("give --allow-address {} on the command line, if you want that", quoted(address))
        }
        NotGiven::PublicTarget(target) => {
            format!("give --allow-public-target {} on the command line, if you want that", quoted(target))
        }
        NotGiven::OwnPrefix(prefix) => {
            format!("give --allow-source-prefix {} on the command line, if you want that", quoted(prefix))
        }
        NotGiven::OtherCommand { .. } => "it must be the same".to_owned(),
    };
    anyhow!("{}: {mend}", printable(&refused.to_string()))
}

/// Refuses what no job asks for: whoever gave it meant something else.
pub fn needed(consent: &Consent, jobs: &[Job]) -> Result<()> {
    match consent.needless(jobs) {
        None => Ok(()),
        Some(Needless::Disrupt(interface)) => {
            bail!("--yes-disrupt {interface}: there is no job that asks for it; leave it out")
        }
        Some(Needless::Command(command)) => {
            bail!("--command {}: there is no job that runs a command; leave it out", quoted(&command))
        }
        Some(Needless::Write(path)) => {
            bail!("--write {}: there is no job that writes it; leave it out", path.display())
        }
        Some(Needless::Read(path)) => {
            bail!(
                "--allow-read {}: there is no job that reads a secret from it; leave it out",
                path.display()
            )
        }
        Some(Needless::Address(address)) => {
            bail!(
                "--allow-address {}: there is no job that names it as a server or collector; leave it out",
                printable(&address)
            )
        }
        Some(Needless::PublicTarget(target)) => {
            bail!(
                "--allow-public-target {}: there is no job that copies to it; leave it out",
                printable(&target)
            )
        }
        Some(Needless::OwnPrefix(prefix)) => {
            bail!(
                "--allow-source-prefix {}: there is no job whose copies come from it; leave it out",
                printable(&prefix)
            )
        }
    }
}

/// As a shell takes it for one word; what moves the cursor is made visible.
fn quoted(text: &str) -> String {
    format!("'{}'", printable(text).replace('\'', r"'\''"))
}
