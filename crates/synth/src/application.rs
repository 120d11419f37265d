//! The applications of a capture: server ports, how common each is, and what its payload looks like.
//!
//! The table holds real services; beyond it, ports from a range that is registered to nobody known to the usual
//! dissectors. What a service's payload looks like is either right for its protocol or opaque on a port that no
//! dissector claims, so that a protocol analyser finds nothing malformed.

use crate::random::{For, Key};

/// What is said on a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// One request, one response, with content lengths that are right.
    Http,
    /// TLS application data records, one a segment.
    Tls,
    /// One query, one answer.
    Dns,
    /// Bytes of a private protocol over TCP.
    OpaqueTcp,
    /// Bytes of a private protocol over UDP.
    OpaqueUdp,
}

impl Speech {
    /// Over TCP, not UDP.
    pub fn is_tcp(self) -> bool {
        matches!(self, Speech::Http | Speech::Tls | Speech::OpaqueTcp)
    }
}

/// A server port and what is spoken there.
#[derive(Debug, Clone, Copy)]
pub struct Application {
    pub port: u16,
    pub speech: Speech,
}

/// The three that have a share of their own; see [`pick`].
const FIRST: [(u16, Speech); 3] = [(80, Speech::Http), (443, Speech::Tls), (53, Speech::Dns)];

// Short, for the table.
const HTTP: Speech = Speech::Http;
const TLS: Speech = Speech::Tls;
const TCP: Speech = Speech::OpaqueTcp;
const UDP: Speech = Speech::OpaqueUdp;

/// The rest in order of popularity.
const OTHERS: [(u16, Speech); 72] = [
    (993, TLS),
    (5223, TCP),
    (8080, HTTP),
    (3074, UDP),
    (995, TLS),
    (5228, TCP),
    (465, TLS),
    (19302, UDP),
    (8443, TCP),
    (3658, UDP),
    (3128, HTTP),
    (1119, TCP),
    (27015, UDP),
    (5061, TLS),
    (6112, UDP),
    (8081, TCP),
    (16393, UDP),
    (853, TLS),
    (8888, TCP),
    (990, TCP),
    (6697, TCP),
    (3690, TCP),
    (8088, HTTP),
    (6969, TCP),
    (8008, TCP),
    (563, TCP),
    (636, TLS),
    (992, TCP),
    (4190, TCP),
    (655, UDP),
    (5671, TLS),
    (2628, TCP),
    (8883, TLS),
    (989, TCP),
    (4899, TCP),
    (8140, TCP),
    (4949, TCP),
    (5666, TCP),
    (5667, TCP),
    (706, TCP),
    (2086, UDP),
    (2101, TCP),
    (6566, TCP),
    (8021, TCP),
    (8990, TCP),
    (9673, TCP),
    (10080, UDP),
    (10081, TCP),
    (10082, TCP),
    (10083, TCP),
    (17001, UDP),
    (17002, UDP),
    (17003, UDP),
    (17004, TCP),
    (22125, TCP),
    (22128, TCP),
    (22273, TCP),
    (24554, TCP),
    (27374, TCP),
    (1127, TCP),
    (871, TCP),
    (1178, TCP),
    (1236, TCP),
    (2601, TCP),
    (2602, TCP),
    (2604, TCP),
    (2605, TCP),
    (4557, TCP),
    (4559, TCP),
    (5680, TCP),
    (6444, TCP),
    (7100, TCP),
];

/// Beyond the table: these ports, in turn, every third of them UDP.
const UNNAMED_PORTS: std::ops::Range<u16> = 28_000..29_300;

/// Most applications a profile can ask for.
pub const MAX: u32 = (FIRST.len() + OTHERS.len()) as u32 + (UNNAMED_PORTS.end - UNNAMED_PORTS.start) as u32;

/// The first `count` applications (at most [`MAX`]).
pub fn applications(count: u32) -> Vec<Application> {
    let named = FIRST.iter().chain(&OTHERS).copied();
    let unnamed = UNNAMED_PORTS.enumerate().map(|(i, port)| (port, if i % 3 == 2 { UDP } else { TCP }));
    named.chain(unnamed).take(count as usize).map(|(port, speech)| Application { port, speech }).collect()
}

/// Chooses an application for each conversation.
///
/// 22 % of them are HTTP, 13 % HTTPS and 40 % DNS; the rest falls off with rank as 1 / rank^1.1.
#[derive(Debug)]
pub struct Mix {
    /// Upper end of each application's share, the last being the sum of all.
    bounds: Vec<f64>,
}

impl Mix {
    pub fn new(count: u32) -> Mix {
        let others: f64 = (1..=count.saturating_sub(3)).map(zipf).sum();
        let mut total = 0.0;
        let bounds = (0..count)
            .map(|i| {
                total += match i {
                    0 => 0.22,
                    1 => 0.13,
                    2 => 0.40,
                    _ => 0.25 * zipf(i - 2) / others,
                };
                total
            })
            .collect();
        Mix { bounds }
    }

    /// The application of conversation `index`. The first conversations take one each, so that all occur.
    pub fn pick(&self, key: Key, index: u64) -> u32 {
        let count = self.bounds.len() as u64;
        if index < count {
            return index as u32;
        }
        let point = key.unit(For::Application, index) * self.bounds.last().copied().unwrap_or(0.0);
        (self.bounds.partition_point(|&bound| bound <= point) as u32).min(count as u32 - 1)
    }
}

fn zipf(rank: u32) -> f64 {
    libm::pow(f64::from(rank), -1.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_port_occurs_twice() {
        let all = applications(MAX);
        assert_eq!(all.iter().map(|a| a.port).collect::<HashSet<_>>().len(), MAX as usize);
    }

    #[test]
    fn shares_are_as_stated() {
        let (mix, key) = (Mix::new(132), Key::new(3));
        let mut counts = [0u32; 132];
        for i in 0..100_000 {
            counts[mix.pick(key, i) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| n > 0));
        for (application, share) in [(0, 22_000), (1, 13_000), (2, 40_000)] {
            assert!(counts[application].abs_diff(share) < 600, "{application}: {}", counts[application]);
        }
    }
}
