//! Searches by TCP connections or UDP sessions that the kernel makes: the highest rate of new ones that a device carries without failures, and how many
//! it holds at once.

use crate::check::{Contradiction, hold};
use crate::consent::Consent;
use crate::endpoint::EndpointRate;
use crate::kind::Kind;
use crate::parts::lab;
use crate::sessions::Sessions;
use crate::setting::{Member, Settings as _};
use crate::written::{Ratio, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::settings;
use std::time::Duration;

/// A search by TCP connections through a device.
#[settings]
pub struct SessionsSearch {
    /// What is searched for.
    #[setting(apart)]
    pub find: SessionsFind,
    /// The connections of a trial; `duration` is that of each trial. Their rate is what is varied.
    #[setting(within)]
    #[serde(default)]
    pub sessions: Sessions,
    #[part]
    lab: lab!(),
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionsFind {
    /// The highest rate of new connections without failures.
    Sessions(MostSessions),
    /// The most connections that are held at once and answered when they are used again.
    SessionCapacity(SessionCapacity),
}

impl Default for SessionsFind {
    fn default() -> SessionsFind {
        SessionsFind::Sessions(MostSessions::default())
    }
}

impl SessionsFind {
    /// Of each search its name and its settings.
    pub const SETTINGS: &'static [(&'static str, &'static [Member])] =
        &[("sessions", MostSessions::MEMBERS), ("session-capacity", SessionCapacity::MEMBERS)];

    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            SessionsFind::Sessions(_) => "sessions",
            SessionsFind::SessionCapacity(_) => "session-capacity",
        }
    }

    /// Time between two trials.
    pub fn settle(&self) -> Duration {
        let said = match self {
            SessionsFind::Sessions(find) => find.settle.as_deref(),
            SessionsFind::SessionCapacity(find) => find.settle.as_deref(),
        };
        said.copied().unwrap_or(Duration::from_secs(1))
    }
}

/// The highest rate of new connections without failures.
#[settings(heading = "Search")]
pub struct MostSessions {
    /// How near the highest rate that passes and the lowest that fails must come, relative to the rate.
    #[setting(value = "SHARE", default = "2%")]
    pub precision: Option<Written<Ratio>>,
    /// Open no more new connections a second than this: 50kcps. Default: up from what is reached as fast as it goes, which is tried first.
    #[setting(value = "RATE")]
    pub max: Option<Written<EndpointRate>>,
    /// Open no fewer than this. Default: a thousandth of the greatest.
    #[setting(value = "RATE")]
    pub min: Option<Written<EndpointRate>>,
    /// Share of a trial's connections that may fail, or need a segment sent again.
    #[setting(value = "SHARE", default = "0%")]
    pub max_failed: Option<Written<Ratio>>,
    /// Trials that must pass at the rate that was found.
    #[setting(value = "N", default = "3", least = 1, most = 100)]
    pub confirm: Option<u32>,
    /// Time between two trials, in which the device may forget connections that were closed.
    #[setting(value = "TIME", default = "1s")]
    pub settle: Option<Written<Duration>>,
}

impl MostSessions {
    /// How near the bounds must come.
    pub fn precision(&self) -> f64 {
        self.precision.as_deref().map_or(0.02, |share| share.0)
    }

    /// The share of connections that may fail.
    pub fn max_failed(&self) -> f64 {
        self.max_failed.as_deref().map_or(0.0, |share| share.0)
    }

    /// Trials that must pass.
    pub fn confirm(&self) -> u32 {
        self.confirm.unwrap_or(3)
    }

    /// The greatest rate that is tried, if it is given.
    pub fn most(&self) -> Option<u64> {
        per_second(self.max.as_ref())
    }

    /// The least.
    pub fn least(&self) -> Option<u64> {
        per_second(self.min.as_ref())
    }
}

/// The most connections that are held at once and answered when they are used again.
#[settings(heading = "Search")]
pub struct SessionCapacity {
    /// Hold no more connections than this.
    #[setting(value = "N", default = "100000")]
    pub max: Option<Written<u64>>,
    /// Hold no fewer than this.
    #[setting(value = "N", default = "1")]
    pub min: Option<Written<u64>>,
    /// How near the most that passes and the fewest that fail must come, relative to their number. Default: to the connection.
    #[setting(value = "SHARE")]
    pub precision: Option<Written<Ratio>>,
    /// Trials that must pass with the number that was found.
    #[setting(value = "N", default = "2", least = 1, most = 100)]
    pub confirm: Option<u32>,
    /// Time between two trials, in which the device may forget connections that were closed.
    #[setting(value = "TIME", default = "1s")]
    pub settle: Option<Written<Duration>>,
}

impl SessionCapacity {
    /// The most that are held.
    pub fn most(&self) -> u64 {
        self.max.as_deref().copied().unwrap_or(100_000)
    }

    /// The fewest.
    pub fn least(&self) -> u64 {
        self.min.as_deref().copied().unwrap_or(1)
    }

    /// How near the bounds must come; `None`: to the connection.
    pub fn precision(&self) -> Option<f64> {
        self.precision.as_deref().map(|share| share.0)
    }

    /// Trials that must pass.
    pub fn confirm(&self) -> u32 {
        self.confirm.unwrap_or(2)
    }
}

fn per_second(rate: Option<&Written<EndpointRate>>) -> Option<u64> {
    match rate.map(|rate| **rate) {
        Some(EndpointRate::Connections(rate)) => Some(rate),
        _ => None,
    }
}

/// A longer pause between trials is none that anybody waits for.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

impl Kind for SessionsSearch {
    fn settings() -> &'static [Member] {
        SessionsSearch::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.sessions.yes_disrupt
    }

    fn asks(&self) -> Consent {
        // In a lab nobody else is connected to.
        if self.lab.is_some() { Consent::default() } else { self.sessions.asks() }
    }

    fn runs_alone(&self) -> bool {
        true
    }
}

fn check(job: &SessionsSearch) -> Result<(), Contradiction> {
    let s = &job.sessions;
    let in_lab = job.lab.is_some();
    let there = "in a lab both ends are there; leave it out";
    let varied = "that is what is varied; leave it out";
    let timed = "a trial ends by time; give `.duration`";
    let of_rates = matches!(job.find, SessionsFind::Sessions(_));
    let held = match of_rates {
        true => "connections of this search are not held; leave it out",
        false => "how many are held is what is varied, and each is used again at once; leave it out",
    };
    hold(
        "sessions.",
        &[
            (
                "on",
                s.on.is_empty() && !in_lab,
                "which interface? Name IFACE, or IFACE@NAMESPACE; or `.lab`, to try it without any",
            ),
            ("on", !s.on.is_empty() && in_lab, there),
            ("to", s.to != Written::default() && in_lab, there),
            ("mac", s.mac.is_some() && in_lab, there),
            ("vlan", s.vlan.is_some() && in_lab, "a lab has no VLANs; leave it out"),
            (
                "clients",
                in_lab && s.pool().is_some_and(|pool| !pool.first.is_ipv4()),
                "a lab is of IPv4: give a prefix of that, such as 198.18.1.0/24, or leave it out",
            ),
            ("public_target", s.public_target && in_lab, there),
            ("yes_disrupt", !s.yes_disrupt.is_empty() && in_lab, there),
            ("rate", s.rate.is_some() && of_rates, varied),
            ("duration", s.duration.is_some() && !of_rates, "a trial ends when all are held; leave it out"),
            ("count", s.count.is_some(), timed),
            ("connections", s.connections.is_some(), held),
            ("hold", s.hold.is_some(), held),
            ("use_again", s.use_again, held),
            (
                "from_server",
                s.from_server && of_rates,
                "connections of this search are not held; leave it out",
            ),
            (
                "from_server",
                s.is_udp() && !s.from_server && !of_rates && !in_lab,
                "a device makes a session of UDP anew that it had forgotten, when the client uses it again: have the server begin, with `.from_server`",
            ),
        ],
    )?;
    if let Some(asked) = &job.lab {
        let ports = asked.ports.is_some();
        let faults = asked.impair.is_some();
        hold(
            "lab.",
            &[
                ("ports", ports, "between two ends there are two; leave it out"),
                ("impair", faults, "the device with faults passes no frames of XDP on; leave it out"),
            ],
        )?;
        crate::check::lab("lab.", asked, false)?;
    }
    match &job.find {
        SessionsFind::Sessions(find) => check_rates(find)?,
        SessionsFind::SessionCapacity(find) => check_capacity(find)?,
    }
    let held = match &job.find {
        SessionsFind::Sessions(_) => None,
        // So that the rules of connections that are held are those of the trial.
        SessionsFind::SessionCapacity(find) => find.most().to_string().parse().ok(),
    };
    // In a lab both ends are there, whatever they are.
    let on = if in_lab { "tx0".to_owned() } else { s.on.clone() };
    let to = if in_lab { "198.18.0.2:80".parse().unwrap_or_default() } else { s.to.clone() };
    Sessions { connections: held, on, to, ..s.clone() }
        .check()
        .map_err(|wrong| Contradiction { member: format!("sessions.{}", wrong.member), ..wrong })
}

/// No pause is longer.
fn is_long(settle: Option<&Written<Duration>>) -> bool {
    settle.is_some_and(|settle| **settle > LONGEST_PAUSE)
}

fn check_capacity(find: &SessionCapacity) -> Result<(), Contradiction> {
    let outside = find.precision().is_some_and(|precision| !(precision > 0.0 && precision < 1.0));
    hold(
        "find.session-capacity.",
        &[
            ("max", !(1..=1 << 24).contains(&find.most()), "it is 1 to 16777216"),
            ("min", !(1..=find.most()).contains(&find.least()), "it is 1 to `.max`"),
            ("precision", outside, "it is more than 0 and less than 100%"),
            ("confirm", !(1..=100).contains(&find.confirm()), "it is 1 to 100"),
            ("settle", is_long(find.settle.as_ref()), "it is at most 1h"),
        ],
    )
}

fn check_rates(find: &MostSessions) -> Result<(), Contradiction> {
    let cps = "it is in connections per second: 20kcps";
    let of_others = |rate: &Option<Written<EndpointRate>>| {
        rate.is_some() && per_second(rate.as_ref()).is_none_or(|rate| rate == 0)
    };
    let (precision, failed) = (find.precision(), find.max_failed());
    hold(
        "find.sessions.",
        &[
            ("max", of_others(&find.max), cps),
            ("min", of_others(&find.min), cps),
            (
                "min",
                find.least().zip(find.most()).is_some_and(|(min, max)| min >= max),
                "it is less than `.max`",
            ),
            ("precision", !(precision > 0.0 && precision < 1.0), "it is more than 0 and less than 100%"),
            ("max_failed", !(0.0..1.0).contains(&failed), "it is 0 or more and less than 100%"),
            ("confirm", !(1..=100).contains(&find.confirm()), "it is 1 to 100"),
            ("settle", is_long(find.settle.as_ref()), "it is at most 1h"),
        ],
    )
}
