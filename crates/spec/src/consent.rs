//! What a job may not decide alone.

use crate::Job;
use crate::bench::Find;

/// What whoever runs a job allows it: given beside the job, never by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// Interfaces that may be used although they carry the default route or a login.
    pub yes_disrupt: Vec<String>,
    /// What may be run by a shell.
    pub command: Option<String>,
}

/// A job needs what was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotGiven {
    /// An interface.
    #[error(
        "it would use {0}, although that carries the default route or a login, which is not done because a file says so"
    )]
    Disrupt(String),
    /// A command.
    #[error("it would run a program, `{0}`, which is not done because a file says so")]
    Command(String),
    /// Another command than the job's was allowed.
    #[error("it would run `{of_job}`, and what was allowed is `{allowed}`")]
    OtherCommand {
        /// The job's.
        of_job: String,
        /// What was allowed.
        allowed: String,
    },
}

impl Consent {
    /// Does it allow what `job` asks for? An interface that the job does not name needs no word, and a command that it does
    /// not have is not run.
    ///
    /// # Errors
    /// What the job would do that is not allowed.
    pub fn covers(&self, job: &Job) -> Result<(), NotGiven> {
        let asks = job.asks();
        for interface in asks.yes_disrupt {
            if !self.yes_disrupt.contains(&interface) {
                return Err(NotGiven::Disrupt(interface));
            }
        }
        match (asks.command, &self.command) {
            (None, _) => Ok(()),
            (Some(of_job), Some(allowed)) if of_job == *allowed => Ok(()),
            (Some(of_job), Some(allowed)) => Err(NotGiven::OtherCommand { of_job, allowed: allowed.clone() }),
            (Some(of_job), None) => Err(NotGiven::Command(of_job)),
        }
    }
}

impl Job {
    /// What it needs to be allowed.
    pub fn asks(&self) -> Consent {
        let command = match self {
            Job::Search(search) => match &search.find {
                Find::Reset(reset) => reset.command.clone(),
                _ => None,
            },
            _ => None,
        };
        Consent { yes_disrupt: self.yes_disrupt().to_vec(), command }
    }

    /// Interfaces that it asks to use although they carry the default route or a login.
    pub fn yes_disrupt(&self) -> &[String] {
        match self {
            Job::Send(job) => &job.yes_disrupt,
            Job::Replay(job) => &job.yes_disrupt,
            Job::Measure(job) => &job.yes_disrupt,
            Job::Reflect(job) => &job.yes_disrupt,
            Job::Bridge(job) => &job.yes_disrupt,
            Job::Impair(job) => &job.yes_disrupt,
            Job::Live(job) => &job.yes_disrupt,
            Job::Trial(job) => &job.yes_disrupt,
            Job::Search(job) => &job.yes_disrupt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bench, Reset, Search};

    fn reset(command: Option<&str>, yes_disrupt: &[&str]) -> Job {
        let find = Find::Reset(Reset { command: command.map(str::to_owned), ..Reset::default() });
        Job::Search(Box::new(Search {
            find,
            bench: Bench::default(),
            max: None,
            min: None,
            trial_duration: None,
            yes_disrupt: yes_disrupt.iter().map(|name| (*name).to_owned()).collect(),
        }))
    }

    #[test]
    fn a_job_never_allows_itself_anything() {
        let nothing = Consent::default();
        assert_eq!(nothing.covers(&reset(None, &[])), Ok(()));
        assert_eq!(nothing.covers(&reset(Some("reboot"), &[])), Err(NotGiven::Command("reboot".into())));
        assert_eq!(nothing.covers(&reset(None, &["eth0"])), Err(NotGiven::Disrupt("eth0".into())));
        let given = Consent { yes_disrupt: vec!["eth0".into()], command: Some("reboot".into()) };
        assert_eq!(given.covers(&reset(Some("reboot"), &["eth0"])), Ok(()));
        assert_eq!(given.covers(&reset(None, &[])), Ok(()));
        assert!(matches!(given.covers(&reset(Some("rm"), &[])), Err(NotGiven::OtherCommand { .. })));
        assert_eq!(given.covers(&reset(None, &["eth0", "eth1"])), Err(NotGiven::Disrupt("eth1".into())));
    }
}
