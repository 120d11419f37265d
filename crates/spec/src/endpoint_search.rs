//! Searches between two endpoints: the smallest socket buffer that carries what the path does, and the highest rate of
//! transactions that stays in time.

use crate::check::{Contradiction, hold};
use crate::endpoint::{Endpoint, EndpointRate, EndpointTest};
use crate::kind::Kind;
use crate::parts::lab;
use crate::setting::{Member, Settings as _};
use crate::written::{Quantity, Ratio, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::settings;
use std::time::Duration;
use traffic::rate::parse_count;

/// Sizes of buffers, in bytes, from the smallest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffers(pub Vec<u64>);

/// More sizes than these say nothing more, and take long.
const MOST_SIZES: usize = 64;
/// What SO_SNDBUF takes: an int.
const LARGEST: u64 = i32::MAX as u64;

impl Default for Buffers {
    /// From a page to what a path of 1 Gbit/s and 30 ms takes.
    fn default() -> Self {
        Buffers((12..=22).map(|bits| 1 << bits).collect())
    }
}

impl Quantity for Buffers {
    const NAME: &'static str = "Buffers";
    const WRITTEN: &'static str = "Sizes in bytes: a list (64Ki,256Ki,1Mi), or a range by doubling (4Ki..4Mi). k and M are 1000 and 1000000, Ki and Mi 1024 and 1048576.";
    const EXAMPLES: &'static [&'static str] = &["4Ki..4Mi", "16k,128k,1M"];

    fn read(text: &str) -> Result<Buffers, String> {
        let mut sizes = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => sizes.push(size(part)?),
                Some((from, to)) => {
                    let (from, to) = (size(from)?, size(to)?);
                    if from >= to {
                        return Err(format!("`{part}`: a range goes upwards"));
                    }
                    let doubled = std::iter::successors(Some(from), |at| at.checked_mul(2));
                    sizes.extend(doubled.take_while(|at| *at < to));
                    sizes.push(to);
                }
            }
        }
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() > MOST_SIZES {
            return Err(format!("`{text}`: {} sizes; {MOST_SIZES} at most", sizes.len()));
        }
        Ok(Buffers(sizes))
    }
}

fn size(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let bare = lower.strip_suffix('b').unwrap_or(&lower);
    let (digits, factor) = match bare {
        bare if bare.ends_with("ki") => (bare.strip_suffix("ki"), 1 << 10),
        bare if bare.ends_with("mi") => (bare.strip_suffix("mi"), 1 << 20),
        bare if bare.ends_with("gi") => (bare.strip_suffix("gi"), 1 << 30),
        bare => (Some(bare), 1_u64),
    };
    let count =
        digits.and_then(|digits| parse_count(digits).ok()).and_then(|count| count.checked_mul(factor));
    match count {
        Some(bytes) if (1..=LARGEST).contains(&bytes) => Ok(bytes),
        Some(_) => Err(format!("`{text}`: a buffer has 1 byte to 2 GiB")),
        None => Err(format!("`{text}` is no size: write 64Ki, 64k or 65536")),
    }
}

/// A search between this host and a netdyno server.
#[settings]
pub struct EndpointSearch {
    /// What is searched for.
    #[setting(apart)]
    pub find: EndpointFind,
    /// The test that is done again and again; `duration` is that of each trial. Its buffers, or its rate, are what is varied.
    #[setting(within)]
    pub endpoint: Endpoint,
    #[part]
    lab: lab!(),
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointFind {
    /// The smallest socket buffer that reaches nearly the best result.
    SocketBuffer(SocketBuffer),
    /// The highest rate of transactions whose latency stays below a bound.
    Transactions(MostTransactions),
}

impl Default for EndpointFind {
    fn default() -> EndpointFind {
        EndpointFind::SocketBuffer(SocketBuffer::default())
    }
}

impl EndpointFind {
    /// Of each search its name and its settings.
    pub const SETTINGS: &'static [(&'static str, &'static [Member])] =
        &[("socket-buffer", SocketBuffer::MEMBERS), ("transactions", MostTransactions::MEMBERS)];

    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            EndpointFind::SocketBuffer(_) => "socket-buffer",
            EndpointFind::Transactions(_) => "transactions",
        }
    }
}

/// The smallest socket buffer that reaches nearly the best result.
#[settings(heading = "Search")]
pub struct SocketBuffer {
    /// Sizes that are asked for (SO_SNDBUF and SO_RCVBUF, at both ends), in bytes: a list (16k,128k,1M), or a range by
    /// doubling. The kernel's own tuning is tried besides.
    #[setting(value = "SIZES", default = "4Ki..4Mi", heading = "Traffic")]
    pub buffers: Option<Written<Buffers>>,
    /// What share of the best result is enough.
    #[setting(value = "SHARE", default = "95%")]
    pub enough: Option<Written<Ratio>>,
    /// Try each size this often at least.
    #[setting(value = "N", default = "3", least = 1, most = 1000)]
    pub repetitions: Option<u32>,
}

impl SocketBuffer {
    /// The sizes, from the smallest.
    pub fn sizes(&self) -> Vec<u64> {
        self.buffers.as_deref().map_or_else(|| Buffers::default().0, |buffers| buffers.0.clone())
    }

    /// How often each is tried at least.
    pub fn repetitions(&self) -> u32 {
        self.repetitions.unwrap_or(3)
    }

    /// What share of the best is enough.
    pub fn enough(&self) -> f64 {
        self.enough.as_deref().map_or(0.95, |share| share.0)
    }
}

/// The highest rate of transactions whose latency stays below a bound.
#[settings(heading = "Search")]
pub struct MostTransactions {
    /// How near the highest rate that passes and the lowest that fails must come, relative to the rate.
    #[setting(value = "SHARE", default = "2%")]
    pub precision: Option<Written<Ratio>>,
    /// Offer no more than this: 50ktps. Default: up from what a closed loop reaches, which is tried first.
    #[setting(value = "RATE")]
    pub max: Option<Written<EndpointRate>>,
    /// Offer no less than this. Default: a thousandth of the greatest.
    #[setting(value = "RATE")]
    pub min: Option<Written<EndpointRate>>,
    /// The bound of the latency, at `.percentile`: 200us.
    #[setting(
        value = "TIME",
        brief = "The bound of another percentile (`.percentile`)",
        shorthand(
            option = "p99",
            value = "TIME",
            means = "{}",
            text = "The bound of the 99th percentile: 200us.",
            excludes("percentile")
        )
    )]
    pub below: Option<Written<Duration>>,
    /// Which percentile of the latency is bounded: 50 to 99.999, or 100 for the longest.
    #[setting(value = "N", default = "99")]
    pub percentile: Option<f64>,
    /// Trials that must pass at the rate that was found.
    #[setting(value = "N", default = "3", least = 1, most = 100)]
    pub confirm: Option<u32>,
}

impl MostTransactions {
    /// The bound; 0 where there is none, which is refused.
    pub fn below(&self) -> Duration {
        self.below.as_deref().copied().unwrap_or_default()
    }

    /// Of which percentile of the latency.
    pub fn percentile(&self) -> f64 {
        self.percentile.unwrap_or(99.0)
    }

    /// How near the bounds must come.
    pub fn precision(&self) -> f64 {
        self.precision.as_deref().map_or(0.02, |share| share.0)
    }

    /// Trials that must pass.
    pub fn confirm(&self) -> u32 {
        self.confirm.unwrap_or(3)
    }
}

impl Kind for EndpointSearch {
    fn settings() -> &'static [Member] {
        EndpointSearch::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn check(&self) -> Result<(), Contradiction> {
        check(self)
    }

    fn runs_alone(&self) -> bool {
        true
    }
}

fn check(job: &EndpointSearch) -> Result<(), Contradiction> {
    use EndpointTest as Test;
    let test = job.endpoint.test;
    let e = &job.endpoint;
    let of_buffers = matches!(job.find, EndpointFind::SocketBuffer(_));
    let in_lab = job.lab.is_some();
    let ports = job.lab.as_ref().is_some_and(|lab| lab.ports.is_some());
    let given = |size: &Option<Written<u64>>| size.is_some() && of_buffers;
    let varied = "that is what is varied; leave it out";
    let none = "a trial ends by time; give `.duration`";
    let unix = e.host.starts_with("unix:");
    hold(
        "endpoint.",
        &[
            (
                "host",
                e.host.is_empty() && !in_lab,
                "where is the server? Name HOST or HOST:PORT; or `.lab`, to try it without any",
            ),
            ("host", !e.host.is_empty() && in_lab, "in a lab both ends are there; leave it out"),
            ("host", unix && of_buffers, "a Unix socket has no receive buffer; name a host"),
            (
                "test",
                of_buffers
                    && !matches!(
                        test,
                        Test::TcpStream
                            | Test::TcpMaerts
                            | Test::UdpStream
                            | Test::UdpMaerts
                            | Test::TcpRr
                            | Test::UdpRr
                    ),
                "buffers are tried with tcp-stream, tcp-maerts, udp-stream, udp-maerts, tcp-rr and udp-rr",
            ),
            (
                "test",
                !of_buffers && !matches!(test, Test::TcpRr | Test::UdpRr),
                "rates of transactions are offered by tcp-rr and udp-rr",
            ),
            ("mesh", e.mesh, "a search is between two endpoints; leave it out"),
            ("bytes", e.bytes.is_some(), none),
            ("transactions", e.transactions.is_some(), none),
            ("rate", e.rate.is_some() && !of_buffers, varied),
            ("send_buffer", given(&e.send_buffer), varied),
            ("receive_buffer", given(&e.receive_buffer), varied),
            ("remote_send_buffer", given(&e.remote_send_buffer), varied),
            ("remote_receive_buffer", given(&e.remote_receive_buffer), varied),
            ("confidence", e.confidence.is_some() && !of_buffers, "a rate passes or does not; leave it out"),
        ],
    )?;
    hold("lab.", &[("ports", ports, "between two ends there are two; leave it out")])?;
    match &job.find {
        EndpointFind::SocketBuffer(find) => {
            let share = find.enough();
            hold(
                "find.socket-buffer.",
                &[
                    ("repetitions", !(1..=1000).contains(&find.repetitions()), "it is 1 to 1000"),
                    ("enough", !(share > 0.0 && share <= 1.0), "it is more than 0 and at most 100%"),
                ],
            )?;
        }
        EndpointFind::Transactions(find) => {
            let no_rate = |rate: &Option<Written<EndpointRate>>| {
                rate.as_deref().is_some_and(|rate| !matches!(rate, EndpointRate::Transactions(_)))
            };
            let rate = |rate: &Option<Written<EndpointRate>>| match rate.as_deref() {
                Some(EndpointRate::Transactions(rate)) => Some(*rate),
                _ => None,
            };
            let tps = "it is in transactions per second: 20ktps";
            let empty = rate(&find.min).zip(rate(&find.max)).is_some_and(|(min, max)| min >= max);
            let (percentile, precision) = (find.percentile(), find.precision());
            hold(
                "find.transactions.",
                &[
                    ("below", find.below.is_none(), "below which latency? Give a time: 200us"),
                    ("below", find.below().is_zero(), "it is longer than 0"),
                    ("percentile", !(50.0..=100.0).contains(&percentile), "it is 50 to 100"),
                    ("max", no_rate(&find.max), tps),
                    ("min", no_rate(&find.min), tps),
                    ("min", empty, "it is less than `.max`"),
                    (
                        "precision",
                        !(precision > 0.0 && precision < 1.0),
                        "it is more than 0 and less than 100%",
                    ),
                    ("confirm", !(1..=100).contains(&find.confirm()), "it is 1 to 100"),
                ],
            )?;
        }
    }
    // What holds of every test holds of this one; where both ends are is the lab's to say.
    let host = if in_lab { "lab".to_owned() } else { e.host.clone() };
    Endpoint { host, ..e.clone() }
        .check()
        .map_err(|wrong| Contradiction { member: format!("endpoint.{}", wrong.member), ..wrong })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_lists_or_double() {
        let read = |text: &str| Buffers::read(text).map(|buffers| buffers.0);
        assert_eq!(read("4Ki..32Ki"), Ok(vec![4096, 8192, 16_384, 32_768]));
        assert_eq!(read("128k, 16k"), Ok(vec![16_000, 128_000]));
        assert_eq!(read("4k..18k,1Mi"), Ok(vec![4000, 8000, 16_000, 18_000, 1 << 20]));
        assert_eq!(read("4Ki..4Mi"), Ok(Buffers::default().0));
        for bad in ["", "x", "0", "4Gi", "8k..4k", "4k..", "1..1Gi,3..1Gi,5..1Gi"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
