//! Which packets are sent at all: tcpprep's `--include` and `--exclude`.

use std::net::IpAddr;

use wire::LinkType;

use super::Packet;
use super::nets::{BadNet, Nets};

/// A rule and whether it names what is sent or what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    rule: Rule,
    exclude: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// Ranges of packet numbers, both ends included.
    Numbers(Vec<(u64, u64)>),
    Source(Nets),
    Destination(Nets),
    Both(Nets),
    Either(Nets),
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSelection {
    /// It does not begin with one of the letters.
    #[error(
        "`{0}` is not a rule: write S:, D:, B: or E: and networks, or P: and packet numbers (P:1-5,9,72-)"
    )]
    NotARule(String),
    /// A BPF filter.
    #[error(
        "`{0}`: BPF filters are not read here, and the cache that tcpprep makes with one has no entries for what it \
         leaves out, so that it fits no capture: use S:, D:, B:, E: or P:, or filter the capture first (tcpdump -r \
         IN -w OUT FILTER)"
    )]
    Filter(String),
    /// A network.
    #[error(transparent)]
    Net(#[from] BadNet),
    /// A packet number.
    #[error("`{0}` is not a packet number or a range of them: write 9, 1-5 or 72-")]
    Number(String),
}

impl Selection {
    /// Only what the rule names.
    ///
    /// # Errors
    /// The rule cannot be read: what is wrong, and what to write.
    pub fn include(rule: &str) -> Result<Selection, BadSelection> {
        Ok(Selection { rule: parse(rule)?, exclude: false })
    }

    /// All but what the rule names.
    ///
    /// # Errors
    /// The rule cannot be read: what is wrong, and what to write.
    pub fn exclude(rule: &str) -> Result<Selection, BadSelection> {
        Ok(Selection { rule: parse(rule)?, exclude: true })
    }

    /// Whether a packet may be sent as far as its number (from 1) goes.
    #[inline]
    pub fn takes_number(&self, number: u64) -> bool {
        match &self.rule {
            Rule::Numbers(ranges) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&number)) != self.exclude
            }
            _ => true,
        }
    }

    /// Whether packet `number` (from 1), this frame, may be sent. What is not IP has no address that could exclude it.
    pub fn takes(&self, link: LinkType, number: u64, frame: &[u8]) -> bool {
        self.takes_number(number)
            && (matches!(self.rule, Rule::Numbers(_))
                || Packet::of(link, frame)
                    .is_none_or(|packet| self.takes_addresses(packet.source, packet.destination)))
    }

    /// Whether a packet may be sent as far as its addresses go.
    pub fn takes_addresses(&self, source: IpAddr, destination: IpAddr) -> bool {
        let named = match &self.rule {
            Rule::Numbers(_) => return true,
            Rule::Source(nets) => nets.contain(source),
            Rule::Destination(nets) => nets.contain(destination),
            Rule::Both(nets) => nets.contain(source) && nets.contain(destination),
            Rule::Either(nets) => nets.contain(source) || nets.contain(destination),
        };
        named != self.exclude
    }
}

fn parse(text: &str) -> Result<Rule, BadSelection> {
    let (kind, list) = text.split_once(':').ok_or_else(|| BadSelection::NotARule(text.to_owned()))?;
    Ok(match kind {
        "S" => Rule::Source(list.parse()?),
        "D" => Rule::Destination(list.parse()?),
        "B" => Rule::Both(list.parse()?),
        "E" => Rule::Either(list.parse()?),
        "P" => Rule::Numbers(numbers(list)?),
        "F" => return Err(BadSelection::Filter(text.to_owned())),
        _ => return Err(BadSelection::NotARule(text.to_owned())),
    })
}

/// `1-5,9,72-`. A range may begin at 0, which no packet has, and be open at its end; written 72-0, too.
fn numbers(list: &str) -> Result<Vec<(u64, u64)>, BadSelection> {
    list.split(',')
        .map(|part| {
            let bad = || BadSelection::Number(part.to_owned());
            let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
                true => text.parse::<u64>().map_err(|_| bad()),
                false => Err(bad()),
            };
            match part.split_once('-') {
                None => number(part).map(|one| (one, one)),
                Some((first, rest)) => {
                    let last = if rest.trim().is_empty() { 0 } else { number(rest)? };
                    let first = number(first)?;
                    Ok((first, if last == 0 && first > 0 { u64::MAX } else { last }))
                }
            }
        })
        .collect()
}
