//! The arguments of `netdyno agent`.

use super::nats::AtServer;
use clap::{ArgGroup, Args, ValueHint};
use spec::Written;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use traffic::Rate;
use traffic::rate::parse_duration;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("reached").required(true).args(["stdio", "nats"]))]
pub struct Agent {
    /// Speak over standard input and output.
    #[arg(long, conflicts_with_all = ["prefix", "creds", "nkey", "user", "password_file", "ca", "cert", "key", "yes_plaintext"])]
    pub stdio: bool,
    /// Connect to this NATS server, and serve those who ask for the agent there: tls://server:4222. Several of a cluster have commas
    /// between them.
    #[arg(long, value_name = "URL", value_delimiter = ',', requires = "id", help_heading = "NATS")]
    pub nats: Vec<String>,
    /// The agent's name at the server.
    #[arg(long, value_name = "NAME", requires = "nats", help_heading = "NATS")]
    pub id: Option<String>,
    /// A client that is silent for this long is gone, and its runs are ended. It should be longer than the restart of a server takes. 3s to 1h.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "nats", default_value = "10s", help_heading = "NATS")]
    pub lease: Duration,
    #[command(flatten)]
    pub at_server: AtServer,
    #[command(flatten)]
    pub allowed: Allowed,
}

/// What jobs may do.
#[derive(Debug, Args)]
pub struct Allowed {
    /// What jobs may do stands in this file, too: YAML with these options as members, such as `allow_interface: [eth1]` and
    /// `max_rate: 10mpps`. It is read once, and others than its owner must not be able to write it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub grants: Option<PathBuf>,
    /// Jobs may use interfaces of these names: eth1, 'veth*', rx0@receiver. A pattern without @ is of the agent's own network
    /// namespace. May be given more than once, as the others below.
    #[arg(long, value_name = "PATTERN")]
    pub allow_interface: Vec<String>,
    /// Jobs may send at up to this rate: 10mpps, 1gbps.
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Written<Rate>>,
    /// Jobs may read files below this folder by their paths; others have to be sent.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: Vec<PathBuf>,
    /// Jobs may use this interface although it carries the default route or a login.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    /// Jobs may connect or send to these addresses, as they write them: 192.0.2.1:2055, '198.18.*'.
    #[arg(long, value_name = "PATTERN")]
    pub allow_address: Vec<String>,
    /// Jobs may wait for peers at these addresses, as they write them; any: at those of a server that names none.
    #[arg(long, value_name = "PATTERN")]
    pub allow_listen: Vec<String>,
    /// Jobs may be of this kind alone: send, measure. Without it of all kinds but clone-capture and clone-return, which reach into a server's own
    /// traffic and have to be named.
    #[arg(long, value_name = "KIND")]
    pub allow_kind: Vec<String>,
    /// Jobs may run this command, word for word.
    #[arg(long, value_name = "CMD", help_heading = "Expert")]
    pub allow_command: Vec<String>,
    /// Jobs may read this file with a password, token or key by its path.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Expert")]
    pub allow_read: Vec<PathBuf>,
    /// Jobs may copy what clients say to this public address.
    #[arg(long, value_name = "HOST:PORT", help_heading = "Expert")]
    pub allow_public_target: Vec<String>,
    /// Jobs may make this prefix the host's own.
    #[arg(long, value_name = "PREFIX", help_heading = "Expert")]
    pub allow_source_prefix: Vec<String>,
    /// Write to the end of this file who asked for what: a line of JSON for each client, each job that was started or refused, and each end. While
    /// it cannot be written, no job is started.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// For tests of how clocks are compared: in answers and in frames' stamps, use a clock that is this many nanoseconds ahead of this
    /// host's (behind: -5000). Arrivals are still timed by this host's own clock.
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 0,
        allow_negative_numbers = true,
        help_heading = "Expert"
    )]
    pub clock_ahead: i64,
    /// Keep at most this many bytes of files in memory: what is sent, and what jobs write.
    #[arg(long, value_name = "SIZE", default_value = "1G", help_heading = "Expert")]
    pub max_contents: Written<u64>,
}

impl Allowed {
    /// The options, for another agent that allows the same.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        let mut add = |option: &str, values: &mut dyn Iterator<Item = OsString>| {
            for value in values {
                let mut word = OsString::from(format!("--{option}="));
                word.push(value);
                words.push(word);
            }
        };
        let Allowed {
            // What it says stands in the others.
            grants: _,
            allow_interface,
            max_rate,
            folder,
            yes_disrupt,
            allow_address,
            allow_listen,
            allow_command,
            allow_read,
            allow_public_target,
            allow_source_prefix,
            allow_kind,
            log,
            clock_ahead,
            max_contents,
        } = self;
        add("allow-interface", &mut each(allow_interface));
        add("max-rate", &mut max_rate.iter().map(|rate| rate.text().into()));
        add("folder", &mut each(folder));
        add("yes-disrupt", &mut each(yes_disrupt));
        add("allow-address", &mut each(allow_address));
        add("allow-listen", &mut each(allow_listen));
        add("allow-command", &mut each(allow_command));
        add("allow-read", &mut each(allow_read));
        add("allow-public-target", &mut each(allow_public_target));
        add("allow-source-prefix", &mut each(allow_source_prefix));
        add("allow-kind", &mut each(allow_kind));
        add("log", &mut log.iter().map(|file| file.as_os_str().to_os_string()));
        let ahead = Some(*clock_ahead).filter(|ahead| *ahead != 0);
        add("clock-ahead", &mut ahead.iter().map(|ahead| ahead.to_string().into()));
        add("max-contents", &mut std::iter::once(max_contents.text().into()));
        words
    }
}

fn each<T: AsRef<OsStr>>(values: &[T]) -> impl Iterator<Item = OsString> {
    values.iter().map(|value| value.as_ref().to_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        agent: Agent,
    }

    #[test]
    fn the_agent_of_a_session_allows_what_the_one_does_that_dials_out() {
        let line = "agent --nats tls://a,tls://b --id x --allow-interface veth* --allow-interface a@b --max-rate 10mpps --folder /a \
                    --yes-disrupt eth0 --allow-address 198.18.* --allow-listen any --allow-command reboot --allow-read /key \
                    --allow-public-target h:1 --allow-source-prefix 198.18.0.0/15 --allow-kind send --max-contents 7M";
        let one = Line::parse_from(line.split_whitespace()).agent;
        assert_eq!(one.nats, ["tls://a", "tls://b"]);
        let words = one.allowed.words();
        assert_eq!(words.len(), 13);
        let all = ["agent", "--stdio"].map(OsString::from).into_iter().chain(words);
        let other = Line::parse_from(all).agent;
        assert!(other.stdio);
        assert_eq!(format!("{:?}", other.allowed), format!("{:?}", one.allowed));
        for (wrong, says) in [
            ("agent", "--stdio"),
            ("agent --stdio --nats tls://a --id x", "cannot be used with"),
            ("agent --nats tls://a", "--id"),
            ("agent --stdio --ca x", "cannot be used with"),
            ("agent --nats tls://a --id x --user u", "--password-file"),
        ] {
            let said = Line::try_parse_from(wrong.split_whitespace()).unwrap_err().to_string();
            assert!(said.contains(says), "{wrong}: {said}");
        }
    }
}
