//! The connection to a NATS server, by crate async-nats, of which nothing is seen outside this module but its client.

use crate::message::shown;
use crate::{Fault, Prefix, files};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerError};
use report::units::printable;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::watch;

/// A server is asked so often whether it is there: two answers that are missing are a connection that is lost.
const ASKS: Duration = Duration::from_secs(2);
/// Messages of a subscription on their way to who reads them; what comes beyond is lost, and sent again.
const WAITING: usize = 256;
/// A server that takes less is of no use.
const LEAST_PAYLOAD: usize = 1024;
const PORT: u16 = 4222;

/// A server, as it is written: `tls://server:4222`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    tls: bool,
    host: String,
    port: u16,
}

impl Server {
    /// Does what is sent stay on this host?
    fn is_here(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "tls" } else { "nats" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Server, String> {
        let wrong = |what: &str| Err(format!("`{}` {what}: write tls://HOST:{PORT}", printable(text)));
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("is no address of a NATS server");
        };
        let tls = match scheme {
            "tls" => true,
            "nats" => false,
            _ => return wrong("is neither tls:// nor nats://"),
        };
        if rest.contains('@') {
            // It would be read by whoever lists processes.
            return Err("a login does not belong into the address: give --creds, --nkey, or --user and --password-file".to_owned());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if is_port(port) && !host.is_empty() => match port.parse() {
                Ok(port) if port > 0 => (host, port),
                _ => return wrong("has no port from 1 to 65535"),
            },
            _ => (rest, PORT),
        };
        let is_v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match is_v6 {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                (1..=253).contains(&host.len())
                    && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            }
        };
        if is_host { Ok(Server { tls, host: host.to_owned(), port }) } else { wrong("has no host") }
    }
}

/// Who logs in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Login {
    /// Nobody: the server asks for nothing, or for a certificate.
    #[default]
    None,
    /// A file of credentials: a JWT and its key.
    Credentials(PathBuf),
    /// A file with the seed of a user's key.
    Key(PathBuf),
    /// A name, and the file with its password.
    Password {
        /// The user's name.
        user: String,
        /// Its first line is the password.
        file: PathBuf,
    },
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// One, or several of a cluster.
    pub servers: Vec<Server>,
    /// What all subjects begin with.
    pub prefix: Prefix,
    /// Who logs in.
    pub login: Login,
    /// The certificates of those who may vouch for the server; none: those that the system trusts.
    pub ca: Option<PathBuf>,
    /// A certificate of this end, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Everything may be read and changed on its way to another host.
    pub plaintext: bool,
}

impl Options {
    /// The servers, in words.
    pub(crate) fn told(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        servers.join(" or ")
    }

    fn check(&self) -> Result<(), Fault> {
        if self.servers.is_empty() {
            return Err(Fault::Option(format!("no server is named: write tls://HOST:{PORT}")));
        }
        let plain = self.servers.iter().find(|server| !server.tls && !server.is_here());
        if let Some(server) = plain.filter(|_| !self.plaintext) {
            return Err(Fault::Option(format!(
                "{server}: on the way to another host anybody could read and change jobs and results: write tls://{}:{}, or allow it by --yes-plaintext",
                server.host, server.port
            )));
        }
        Ok(())
    }

    fn connecting(&self, name: &str, answers: Duration) -> Result<ConnectOptions, Fault> {
        self.check()?;
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(answers)
            .ping_interval(ASKS)
            .subscription_capacity(WAITING)
            .require_tls(self.servers.iter().all(|server| server.tls))
            // They would be reached without what is asked of those that are named.
            .ignore_discovered_servers()
            .reconnect_delay_callback(|attempts| {
                let attempts = u64::try_from(attempts).unwrap_or(u64::MAX);
                Duration::from_millis(attempts.saturating_sub(1).saturating_mul(100).min(2000))
            });
        options = match &self.login {
            Login::None => options,
            Login::Key(file) => options.nkey(files::seed(file)?),
            Login::Password { user, file } => options.user_and_password(user.clone(), files::password(file)?),
            Login::Credentials(file) => options.credentials(&files::credentials(file)?).map_err(|_| {
                let name = printable(&file.display().to_string());
                Fault::Option(format!(
                    "--creds: {name} has no JWT with a seed behind it: this is another file"
                ))
            })?,
        };
        if let Some(ca) = &self.ca {
            files::pem("--ca", ca, "certificate")?;
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = &self.certificate {
            files::pem("--cert", certificate, "certificate")?;
            files::pem("--key", key, "key")?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }
}

/// How the connection stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub connected: bool,
    /// How often it was made.
    pub times: u64,
    /// What the server does not permit, in its words: it says so later.
    pub refused: Option<String>,
    /// What else was wrong last.
    pub trouble: Option<String>,
}

impl State {
    fn heard(&mut self, event: Event) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.times += 1;
                self.trouble = None;
            }
            Event::Disconnected | Event::Closed => self.connected = false,
            Event::ServerError(ServerError::Other(said))
                if said.to_lowercase().contains("permissions violation") =>
            {
                self.refused = Some(shown(&said));
            }
            Event::ServerError(ServerError::AuthorizationViolation) => {
                self.trouble = Some("it refuses this login".to_owned());
            }
            Event::ServerError(other) => self.trouble = Some(shown(&other.to_string())),
            Event::ClientError(other) => self.trouble = Some(shown(&other.to_string())),
            // What is lost is sent again.
            Event::SlowConsumer(_) | Event::LameDuckMode | Event::Draining => {}
        }
    }
}

/// A connection that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Bus {
    pub client: Client,
    pub state: watch::Receiver<State>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) struct NotReached {
    pub fault: Fault,
    /// Another attempt may be better off.
    pub passes: bool,
    /// It is there, and did not come to an end: a server that is busy gives up logins.
    pub is_busy: bool,
}

impl From<Fault> for NotReached {
    fn from(fault: Fault) -> NotReached {
        NotReached { fault, passes: false, is_busy: false }
    }
}

impl Bus {
    /// Connects to a server that answers within this time, and stays connected.
    pub async fn connect(options: &Options, name: &str, answers: Duration) -> Result<Bus, NotReached> {
        let (tell, state) = watch::channel(State::default());
        let connecting = options.connecting(name, answers)?.event_callback(move |event| {
            tell.send_modify(|state| state.heard(event));
            async {}
        });
        let servers: Vec<String> = options.servers.iter().map(ToString::to_string).collect();
        let client = connecting.connect(servers).await.map_err(|error| not_reached(options, &error))?;
        let most = client.max_payload();
        if most < LEAST_PAYLOAD {
            let what = format!(
                "{} takes messages of at most {most} bytes: let its max_payload be {LEAST_PAYLOAD} at least, better 1MB",
                options.told()
            );
            return Err(Fault::Server(what).into());
        }
        Ok(Bus { client, state })
    }
}

/// What went wrong, with what caused it.
fn in_full(error: &ConnectError) -> String {
    let (mut text, mut cause) = (String::new(), error.source());
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text += if text.is_empty() { "" } else { ": " };
            text += &said;
        }
        cause = error.source();
    }
    shown(if text.is_empty() { "it does not answer" } else { &text })
}

fn not_reached(options: &Options, error: &ConnectError) -> NotReached {
    let (told, why) = (options.told(), in_full(error));
    let is_certificate = why.contains("certificate") || why.contains("alert");
    let (what, passes) = match error.kind() {
        ConnectErrorKind::AuthorizationViolation => {
            let mend = match options.login {
                Login::None => "it wants a login: give --creds, --nkey, or --user and --password-file",
                _ => "see that the server knows this user, and the file is the user's",
            };
            (format!("{told} refuses this login: {mend}"), false)
        }
        ConnectErrorKind::Authentication => {
            (format!("{told}: the login cannot be signed: see that the key in the file is a user's"), false)
        }
        ConnectErrorKind::ServerParse => (format!("{told} is no address of a NATS server"), false),
        ConnectErrorKind::Dns => (format!("{told} is not reached: {why}: see that the name is right"), true),
        _ if is_certificate => {
            let mend = "--ca FILE names whose certificates are believed, --cert and --key are this end's own";
            (format!("{told} is not trusted, or does not trust this end: {why}: {mend}"), false)
        }
        ConnectErrorKind::Tls => (format!("{told}: TLS: {why}"), false),
        _ => {
            let mend = "see that a NATS server runs there, that it speaks TLS if the address says so, and that no firewall is in between";
            (format!("{told} is not reached: {why}: {mend}"), true)
        }
    };
    let broke_off = ["eof", "Broken pipe", "reset by peer"].iter().any(|said| why.contains(said));
    NotReached { fault: Fault::Server(what), passes, is_busy: passes && broke_off }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_a_server_is_reached_and_has_no_login() {
        for (text, says) in [
            ("tls://server:4222", "tls://server:4222"),
            ("nats://127.0.0.1/", "nats://127.0.0.1:4222"),
            ("tls://[2001:db8::1]:99", "tls://[2001:db8::1]:99"),
            ("tls://[::1]", "tls://[::1]:4222"),
        ] {
            assert_eq!(text.parse::<Server>().unwrap().to_string(), says);
        }
        for (text, says) in [
            ("server:4222", "`server:4222` is no address of a NATS server: write tls://HOST:4222"),
            ("ws://server", "is neither tls:// nor nats://"),
            ("tls://a:b@server", "a login does not belong into the address"),
            ("tls://", "has no host"),
            ("tls://a b", "has no host"),
            ("tls://a/b", "has no host"),
            ("tls://a:70000", "has no port from 1 to 65535"),
            ("tls://[1.2.3.4]:1", "has no host"),
            ("tls://a:0", "has no port"),
        ] {
            let said = text.parse::<Server>().unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn plain_text_stays_on_this_host_unless_it_is_allowed() {
        let mut options = Options {
            servers: Vec::new(),
            prefix: "nd".parse().unwrap(),
            login: Login::None,
            ca: None,
            certificate: None,
            plaintext: false,
        };
        assert!(options.check().is_err());
        for (server, is_refused) in [
            ("nats://localhost", false),
            ("nats://127.8.0.1", false),
            ("nats://[::1]", false),
            ("tls://server", false),
            ("nats://server", true),
            ("nats://192.0.2.1", true),
            ("nats://localhost.example", true),
        ] {
            options.plaintext = false;
            options.servers = vec!["tls://a".parse().unwrap(), server.parse().unwrap()];
            assert_eq!(options.check().is_err(), is_refused, "{server}");
            options.plaintext = true;
            assert!(options.check().is_ok());
        }
    }

    #[test]
    fn what_is_not_permitted_is_known_by_the_servers_words() {
        let mut state = State::default();
        state.heard(Event::Connected);
        state.heard(Event::ServerError(ServerError::Other("Slow".into())));
        assert_eq!((state.connected, state.times, state.refused.clone()), (true, 1, None));
        let said = "Permissions Violation for Subscription to \"nd.agent.a.>\"";
        state.heard(Event::ServerError(ServerError::Other(said.into())));
        state.heard(Event::Disconnected);
        assert_eq!((state.connected, state.refused.as_deref()), (false, Some(said)));
    }
}
