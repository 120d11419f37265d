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
    /// Files with passwords, tokens and keys that may be read, because what they say is shown to others.
    pub read: Vec<PathBuf>,
    /// Addresses that may be connected to, or sent records to, as the job writes them.
    pub addresses: Vec<String>,
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
    /// A file with a secret.
    #[error("it would read {} and show somebody what it says, which is not done because a file says so", .0.display())]
    Read(PathBuf),
    /// An address.
    #[error("it would connect or send to {0}, which is not done because a file says so")]
    Address(String),
    /// A target of a clone.
    #[error("it would send to {0}, a public address, which is not done because a file says so")]
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
    /// A file that is written.
    Write(PathBuf),
    /// A file that is read.
    Read(PathBuf),
    /// An address.
    Address(String),
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
        let refused = [
            beyond(&asks.yes_disrupt, &self.yes_disrupt).map(NotGiven::Disrupt),
            beyond(&asks.write, &self.write).map(NotGiven::Write),
            beyond(&asks.read, &self.read).map(NotGiven::Read),
            beyond(&asks.addresses, &self.addresses).map(NotGiven::Address),
            beyond(&asks.public_targets, &self.public_targets).map(NotGiven::PublicTarget),
            beyond(&asks.own_prefixes, &self.own_prefixes).map(NotGiven::OwnPrefix),
        ];
        if let Some(refused) = refused.into_iter().flatten().next() {
            return Err(refused);
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
        let command = self.command.clone().filter(|_| asked.iter().all(|asks| asks.command.is_none()));
        let needless = [
            nobodys(&self.yes_disrupt, &asked, |asks| &asks.yes_disrupt).map(Needless::Disrupt),
            command.map(Needless::Command),
            nobodys(&self.write, &asked, |asks| &asks.write).map(Needless::Write),
            nobodys(&self.read, &asked, |asks| &asks.read).map(Needless::Read),
            nobodys(&self.addresses, &asked, |asks| &asks.addresses).map(Needless::Address),
            nobodys(&self.public_targets, &asked, |asks| &asks.public_targets).map(Needless::PublicTarget),
            nobodys(&self.own_prefixes, &asked, |asks| &asks.own_prefixes).map(Needless::OwnPrefix),
        ];
        needless.into_iter().flatten().next()
    }
}

/// The first of `these` that is not among `those`.
fn beyond<T: Clone + PartialEq>(these: &[T], those: &[T]) -> Option<T> {
    these.iter().find(|one| !those.contains(one)).cloned()
}

/// The first of `given` that is in no list of `asked`.
fn nobodys<T: Clone + PartialEq>(
    given: &[T],
    asked: &[Consent],
    list: impl Fn(&Consent) -> &Vec<T>,
) -> Option<T> {
    given.iter().find(|one| !asked.iter().any(|asks| list(asks).contains(one))).cloned()
}

/// The file that a job writes: standard output is whoever runs it's own.
pub(crate) fn written(path: Option<&Path>) -> Vec<PathBuf> {
    let path = path.filter(|path| *path != Path::new("-") && !path.as_os_str().is_empty());
    path.map(Path::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::{REACHES, Reach};
    use crate::setting::{Settings, each};
    use crate::{Bench, Find, Reset, Search};
    use std::ffi::OsStr;

    /// Of each setting one of these is a value.
    const VALUES: [&str; 15] = [
        "1",
        "true",
        "300",
        "a",
        "1s",
        "5pps",
        "50%",
        "2x",
        "02:00:00:00:00:01",
        "192.0.2.1",
        "5mbps",
        "99%,5%",
        "loss 1%",
        "poisson",
        "3",
    ];

    /// Holds of each setting of such a job that the job asks for consent with it if, and only if, that is declared.
    fn holds<T: Settings>(kind: &str, job: impl Fn(T) -> Job) -> usize {
        let mut asked = 0;
        each(T::MEMBERS, &mut |path, setting| {
            let words = (setting.words)().into_iter();
            let mut values = words.chain(VALUES);
            let value = values.find(|value| setting.takes(OsStr::new(value)).is_ok());
            let value = value.unwrap_or_else(|| panic!("{kind}: {path}: no value"));
            let mut settings = T::default();
            assert_eq!(settings.put(path, OsStr::new(value)), Some(Ok(())), "{kind}: {path}");
            let asks = job(settings).asks() != Consent::default();
            assert_eq!(asks, setting.consent, "{kind}: {path}: {value}");
            asked += usize::from(asks);
        });
        asked
    }

    #[test]
    fn a_job_asks_for_consent_by_the_settings_that_are_declared_so() {
        fn find<T>(find: impl Fn(T) -> Find) -> impl Fn(T) -> Job {
            move |found| Search { find: find(found), ..Search::default() }.into()
        }
        let asked = [
            holds("send", |job: crate::Send| job.into()),
            holds("replay", |job: crate::Replay| job.into()),
            holds("measure", |job: crate::Measure| job.into()),
            holds("reflect", |job: crate::Reflect| job.into()),
            holds("bridge", |job: crate::Bridge| job.into()),
            holds("probe", |job: crate::Probe| job.into()),
            holds("collect", |job: crate::Collect| job.into()),
            holds("trial", |job: crate::Trial| job.into()),
            holds("iperf3", |job: crate::Iperf3| job.into()),
            holds("iperf3-server", |job: crate::Iperf3Server| job.into()),
            holds("netperf", |job: crate::Netperf| job.into()),
            holds("netserver", |job: crate::Netserver| job.into()),
            holds("search", |job: Search| job.into()),
            holds("throughput", find(Find::Throughput)),
            holds("latency", find(Find::Latency)),
            holds("loss", find(Find::Loss)),
            holds("burst", find(Find::Burst)),
            holds("recovery", find(Find::Recovery)),
            holds("reset", find(Find::Reset)),
            holds("soak", find(Find::Soak)),
            holds("flows", find(Find::Flows)),
        ];
        assert_eq!(asked, [2, 3, 2, 1, 1, 2, 4, 1, 2, 1, 3, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1]);
    }

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
        let back = "{schema: netdyno.job/1, kind: clone-return, on: a, server: ':80', engine: 10.0.0.1}";
        let back = crate::File::read(back, "job").expect("a job").jobs.remove(0);
        assert_eq!(nothing.covers(&back), Err(NotGiven::Address("10.0.0.1".into())), "it lets a host in");
        for kind in ["kind: replay, captures: [a.pcap]", "kind: live, capture: a.pcap, to: 10.0.0.1, on: a"] {
            let job = |path: &str| {
                let text = format!("{{schema: netdyno.job/1, {kind}, write: {path}}}");
                crate::File::read(&text, "job").expect("a job").jobs.remove(0)
            };
            let path = PathBuf::from("/etc/passwd");
            let nothing = Consent { addresses: job("a").asks().addresses, ..Consent::default() };
            assert_eq!(nothing.covers(&job("/etc/passwd")), Err(NotGiven::Write(path.clone())));
            let given = Consent { write: vec![path.clone()], ..nothing.clone() };
            assert_eq!(given.covers(&job("/etc/passwd")), Ok(()));
            assert_eq!(given.covers(&job("other")), Err(NotGiven::Write("other".into())));
            assert_eq!(given.needless(&[job("other")]), Some(Needless::Write(path)));
            assert_eq!(nothing.covers(&job("'-'")), Ok(()));
        }
    }

    const WORDS: &str = "size table user dst_mac endpoints map_dst_ip map_ip map_port map_src_ip replace_mac src_mac ttl congestion \
        dscp from corrupt duplicate flap freeze loss reorder reorder_by goals exclude include template ignore server test_address \
        goal topic sha256 version engine remote_congestion data_from clients path";

    fn reach(setting: &str) -> Option<Reach> {
        let listed = REACHES.iter().find(|(name, _)| *name == setting).map(|(_, reach)| *reach);
        listed.or_else(|| WORDS.split_whitespace().any(|word| word == setting).then_some(Reach::Word))
    }

    /// The settings of a schema that are texts of any form, wherever they are.
    fn texts(schema: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
        let is = |schema: &serde_json::Value, what: &str| match &schema["type"] {
            serde_json::Value::String(one) => one == what,
            serde_json::Value::Array(some) => some.iter().any(|one| one == what),
            _ => false,
        };
        for (name, setting) in schema["properties"].as_object().into_iter().flatten() {
            let one = if is(setting, "array") { &setting["items"] } else { setting };
            let free = ["pattern", "enum", "const", "oneOf"].iter().all(|bound| one.get(bound).is_none());
            if is(one, "string") && free {
                found.insert(name.clone());
            }
        }
        match schema {
            serde_json::Value::Object(members) => members.values().for_each(|member| texts(member, found)),
            serde_json::Value::Array(members) => members.iter().for_each(|member| texts(member, found)),
            _ => {}
        }
    }

    #[test]
    #[cfg(not(feature = "without-schemas"))]
    fn each_text_of_a_job_file_is_known_for_what_it_may_reach() {
        let mut found = std::collections::BTreeSet::new();
        texts(&serde_json::to_value(schemars::schema_for!(Job)).expect("a schema"), &mut found);
        assert!(found.len() > 50, "{found:?}");
        let unknown: Vec<&String> = found.iter().filter(|name| reach(name).is_none()).collect();
        assert!(unknown.is_empty(), "say in REACHES or WORDS what these are: {unknown:?}");
    }

    #[test]
    fn no_file_reads_a_secret_or_reaches_an_address_by_its_word_alone() {
        let clone = "kind: clone, on: o0, server: '80', to: '10.0.0.1:80'";
        let cases = [
            (
                "password_file",
                "kind: collect, listen: ['127.0.0.1:9995'], clickhouse: {url: 'http://a:1', password_file: /etc/shadow}",
            ),
            ("url", "kind: collect, listen: ['127.0.0.1:9995'], clickhouse: {url: 'http://a:1'}"),
            ("brokers", "kind: collect, listen: ['127.0.0.1:9995'], kafka: {brokers: ['a:9092']}"),
            ("token_file", "kind: endpoint, host: a, token_file: /etc/shadow"),
            ("token_file", "kind: endpoint-server, listen: ['127.0.0.1:1'], token_file: /etc/shadow"),
            ("host", "kind: endpoint, host: 'unix:/run/docker.sock'"),
            ("host", "kind: iperf3, host: 192.0.2.1"),
            ("host", "kind: netperf, host: 192.0.2.1"),
            ("data_host", "kind: netperf, host: a, data_host: 192.0.2.1"),
            ("passphrase_file", "kind: netserver, passphrase_file: /etc/shadow"),
            ("passphrase_file", "kind: netperf, host: a, passphrase_file: /etc/shadow"),
            ("export", "kind: probe, captures: [a.pcap], export: ['192.0.2.1:2055']"),
            (
                "key",
                "kind: clone, listen: '0.0.0.0:1', key: /root/.ssh/id_rsa, server: '80', to: '10.0.0.1:80'",
            ),
            ("to", clone),
            ("to", "kind: live, capture: a.pcap, to: '10.0.0.1:80', on: a"),
            ("noise_target", &format!("{clone}, noise_target: '10.0.0.2:80'")),
            (
                "send_to",
                "kind: clone-capture, on: o0, server: '80', send_to: '10.0.0.1:1', key: /root/.ssh/id_rsa",
            ),
            (
                "key",
                "kind: clone-capture, on: o0, server: '80', send_to: '10.0.0.1:1', key: /root/.ssh/id_rsa",
            ),
        ];
        for (setting, job) in cases {
            let text = format!("{{schema: netdyno.job/1, {job}}}");
            let job =
                crate::File::read(&text, "job").unwrap_or_else(|bad| panic!("{job}: {bad}")).jobs.remove(0);
            let asks = job.asks();
            // All that it asks for but this.
            let mut given = asks.clone();
            match reach(setting) {
                Some(Reach::Secret) => given.read.clear(),
                Some(Reach::Address) => given.addresses.clear(),
                other => panic!("{setting}: {other:?}"),
            }
            assert_eq!(asks.covers(&job), Ok(()), "{text}");
            match given.covers(&job) {
                Err(NotGiven::Read(_)) => assert_eq!(reach(setting), Some(Reach::Secret), "{text}"),
                Err(NotGiven::Address(_)) => assert_eq!(reach(setting), Some(Reach::Address), "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        // Each that the table has is tried here.
        for (setting, reach) in REACHES {
            let tried = cases.iter().any(|(name, _)| name == setting);
            assert_eq!(tried, matches!(reach, Reach::Secret | Reach::Address), "{setting}");
        }
    }
}
