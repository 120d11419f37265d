//! What a job may not decide alone.

use crate::Job;
use std::path::{Path, PathBuf};

/// What whoever runs a job allows it: given beside the job, never by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// Interfaces that may be used although they carry the default route or a login.
    pub yes_disrupt: Vec<String>,
    /// What may be run by a shell.
    pub command: Option<String>,
    /// Files that may be written, and overwritten.
    pub write: Vec<PathBuf>,
    /// Public addresses that copies of clients' data may be sent to, as the job writes them.
    pub public_targets: Vec<String>,
    /// Prefixes that may become this host's own, as the job writes them.
    pub own_prefixes: Vec<String>,
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
    /// A file.
    #[error("it would write {}, whatever that is now, which is not done because a file says so", .0.display())]
    Write(PathBuf),
    /// A target of a clone.
    #[error(
        "it would send what clients say to {0}, a public address, which is not done because a file says so"
    )]
    PublicTarget(String),
    /// A prefix that a clone's copies come from.
    #[error(
        "it would make {0} this host's own, so that nobody else there can be reached, which is not done because a file says so"
    )]
    OwnPrefix(String),
}

/// Something was allowed that no job asks for: then another one was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needless {
    /// An interface.
    Disrupt(String),
    /// A command.
    Command(String),
    /// A file.
    Write(PathBuf),
    /// A target of a clone.
    PublicTarget(String),
    /// A prefix that a clone's copies come from.
    OwnPrefix(String),
}

impl Consent {
    /// Does it allow what `job` asks for?
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
        if let Some(path) = asks.write.into_iter().find(|path| !self.write.contains(path)) {
            return Err(NotGiven::Write(path));
        }
        if let Some(target) = asks.public_targets.into_iter().find(|to| !self.public_targets.contains(to)) {
            return Err(NotGiven::PublicTarget(target));
        }
        if let Some(prefix) = asks.own_prefixes.into_iter().find(|one| !self.own_prefixes.contains(one)) {
            return Err(NotGiven::OwnPrefix(prefix));
        }
        match (asks.command, &self.command) {
            (None, _) => Ok(()),
            (Some(of_job), Some(allowed)) if of_job == *allowed => Ok(()),
            (Some(of_job), Some(allowed)) => Err(NotGiven::OtherCommand { of_job, allowed: allowed.clone() }),
            (Some(of_job), None) => Err(NotGiven::Command(of_job)),
        }
    }

    /// What it allows that none of `jobs` asks for.
    pub fn needless(&self, jobs: &[Job]) -> Option<Needless> {
        let asked: Vec<Consent> = jobs.iter().map(Job::asks).collect();
        let nobody = |asks: &dyn Fn(&Consent) -> bool| !asked.iter().any(asks);
        let interface = self.yes_disrupt.iter().find(|name| nobody(&|asks| asks.yes_disrupt.contains(name)));
        let file = self.write.iter().find(|path| nobody(&|asks| asks.write.contains(path)));
        let command = self.command.iter().find(|_| nobody(&|asks| asks.command.is_some()));
        let target = self.public_targets.iter().find(|to| nobody(&|asks| asks.public_targets.contains(to)));
        let prefix = self.own_prefixes.iter().find(|one| nobody(&|asks| asks.own_prefixes.contains(one)));
        let prefix = prefix.cloned().map(Needless::OwnPrefix);
        let interface = interface.cloned().map(Needless::Disrupt);
        let command = command.cloned().map(Needless::Command);
        let target = target.cloned().map(Needless::PublicTarget);
        interface.or(command).or(file.cloned().map(Needless::Write)).or(target).or(prefix)
    }
}

/// The file that a job writes: standard output is whoever runs it's own.
pub(crate) fn written(path: Option<&Path>) -> Vec<PathBuf> {
    path.filter(|path| *path != Path::new("-")).map(Path::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bench, Find, Reset, Search};

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
        let given = Consent {
            yes_disrupt: vec!["eth0".into()],
            command: Some("reboot".into()),
            ..Consent::default()
        };
        assert_eq!(given.covers(&reset(Some("reboot"), &["eth0"])), Ok(()));
        assert_eq!(given.covers(&reset(None, &[])), Ok(()));
        assert_eq!(given.needless(&[reset(Some("rm"), &[]), reset(None, &["eth0"])]), None);
        assert_eq!(given.needless(&[reset(None, &["eth0"])]), Some(Needless::Command("reboot".into())));
        assert_eq!(given.needless(&[reset(Some("rm"), &[])]), Some(Needless::Disrupt("eth0".into())));
        assert!(matches!(given.covers(&reset(Some("rm"), &[])), Err(NotGiven::OtherCommand { .. })));
        assert_eq!(given.covers(&reset(None, &["eth0", "eth1"])), Err(NotGiven::Disrupt("eth1".into())));
        for kind in ["kind: replay, captures: [a.pcap]", "kind: live, capture: a.pcap, to: 10.0.0.1, on: a"] {
            let job = |path: &str| {
                let text = format!("{{schema: netdyno.job/1, {kind}, write: {path}}}");
                crate::File::read(&text, "job").expect("a job").jobs.remove(0)
            };
            let path = PathBuf::from("/etc/passwd");
            assert_eq!(nothing.covers(&job("/etc/passwd")), Err(NotGiven::Write(path.clone())));
            let given = Consent { write: vec![path.clone()], ..Consent::default() };
            assert_eq!(given.covers(&job("/etc/passwd")), Ok(()));
            assert_eq!(given.covers(&job("other")), Err(NotGiven::Write("other".into())));
            assert_eq!(given.needless(&[job("other")]), Some(Needless::Write(path)));
            assert_eq!(nothing.covers(&job("'-'")), Ok(()));
        }
    }
}
