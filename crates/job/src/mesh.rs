//! Fully meshed traffic (RFC 2889, 5.1): each port of a list sends to every other, in turns.
//!
//! ```text
//!   frame      0        1        2        3         of each port: as port 0's first goes to port 1, port 1's goes to port 2
//!   port 0   to 1     to 2     to 3     to 1 ...    and port 3's to port 0, so that at any time each port is sent as much
//!   port 1   to 2     to 3     to 0     to 2 ...    as it sends
//!   ...
//! ```

use crate::kinds::resolve::addressed;
use crate::place::Place;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use traffic::{Program, Schedule};
use wire::Mac;

/// UDP ports of RFC 2544's test frames (C.2.6.4).
pub const UDP: &str = "udp(sport=49184, dport=7)";

/// A port, and how frames are addressed to it.
#[derive(Debug, Clone)]
pub struct Station {
    /// As the user knows it.
    pub name: String,
    pub mac: Mac,
    /// The router that its frames are sent to; `None`: frames are sent to the stations themselves.
    pub gateway: Option<Mac>,
    /// Its IPv4 address.
    pub address: String,
}

impl Station {
    /// The port of this number at a place.
    pub fn at(place: &Place, number: usize, gateway: Option<Mac>) -> Result<Station> {
        let mac = place.interface.mac.with_context(|| format!("{} has no Ethernet address", place.spec))?;
        Ok(Station { name: place.spec.clone(), mac: Mac(mac), gateway, address: address(number) })
    }
}

/// Of the range for benchmarks (RFC 2544, C.2.2), for each port one in a network of its own.
pub fn address(number: usize) -> String {
    format!("198.18.{}.2", number + 1)
}

/// Whom each of so many ports sends to, in this order.
pub fn turns(ports: usize) -> impl Iterator<Item = (usize, Vec<usize>)> {
    (0..ports).map(move |from| (from, (1..ports).map(|further| (from + further) % ports).collect()))
}

/// What `from` sends to `to`: by default UDP between their addresses.
pub fn frames(what: Option<&str>, from: &Station, to: &Station) -> String {
    match what {
        Some(what) => what.replace("{src_ip}", &from.address).replace("{dst_ip}", &to.address),
        None => format!("ipv4(src={}, dst={})/{UDP}", from.address, to.address),
    }
}

/// Fills in the Ethernet addresses of frames from one to the other, where the expression gave none.
pub fn address_frames(program: &mut Program, from: &Station, to: &Station) -> Result<()> {
    addressed(program, from.mac, from.gateway.unwrap_or(to.mac))
}

/// What the ports send, each by its schedule, and at which of them each numbered stream is to arrive. `compile` is told the
/// frames, as an expression, and the number to sign them with; they are numbered from `first` on.
pub fn program(
    stations: &[Station],
    what: Option<&str>,
    first: u32,
    schedule: impl Fn(usize) -> Result<Schedule>,
    compile: impl Fn(&str, u32) -> Result<Program>,
) -> Result<(Program, BTreeMap<u32, usize>)> {
    let (mut programs, mut arrive) = (Vec::new(), BTreeMap::new());
    let mut numbers = first..;
    for (from, order) in turns(stations.len()) {
        let mut parts = Vec::new();
        for to in order {
            let (Some(source), Some(target), Some(number)) =
                (stations.get(from), stations.get(to), numbers.next())
            else {
                continue;
            };
            let mut part = compile(&frames(what, source, target), number)?;
            address_frames(&mut part, source, target)?;
            for stream in &mut part.streams {
                stream.name = format!("{} to {}", source.name, target.name);
            }
            arrive.insert(number, to);
            parts.push(part);
        }
        programs.push(Program::in_turn(parts, schedule(from)?));
    }
    Ok((Program::of_ports(programs), arrive))
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::expr::{Options, compile};
    use traffic::{Executor, Slab};

    #[test]
    fn in_each_turn_every_port_is_sent_one_frame() {
        for ports in 2..9 {
            let all: Vec<_> = turns(ports).collect();
            for turn in 0..ports - 1 {
                let mut targets: Vec<usize> = all.iter().map(|(_, order)| order[turn]).collect();
                targets.sort_unstable();
                assert_eq!(targets, (0..ports).collect::<Vec<_>>(), "{ports} {turn}");
            }
            for (from, order) in all {
                assert!(!order.contains(&from) && order.len() == ports - 1);
            }
        }
    }

    fn stations(gateway: Option<Mac>) -> Vec<Station> {
        let station = |number: usize| Station {
            name: format!("p{number}"),
            mac: Mac([2, 0, 0, 0, 0, number as u8]),
            gateway,
            address: address(number),
        };
        (0..3).map(station).collect()
    }

    #[test]
    fn frames_have_the_addresses_of_their_ports_and_streams_say_where_they_arrive() {
        let signed = |text: &str, signature: u32| {
            let options =
                Options { size: Some("64".parse()?), signature: Some(signature), ..Options::default() };
            Ok(compile(text, &options)?)
        };
        let schedule = |_| Ok(Schedule::Frames { frames: 1, per_ns: 1000 });
        let router = Mac([2, 0, 0, 0, 9, 9]);
        for (gateway, what) in [
            (None, None),
            (Some(router), None),
            (None, Some("ether(dst=02:00:00:00:09:09)/ipv4(src={src_ip}, dst={dst_ip})/udp")),
        ] {
            let (whole, arrive) = program(&stations(gateway), what, 10, schedule, signed).expect("a program");
            assert_eq!(
                arrive.into_iter().collect::<Vec<_>>(),
                [(10, 1), (11, 2), (12, 2), (13, 0), (14, 0), (15, 1)]
            );
            let own = whole.at_port(1);
            assert_eq!(
                own.streams.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
                ["p1 to p2", "p1 to p0"]
            );
            let mut executor = Executor::new(&own).expect("sound");
            let mut slab = Slab::new(2, 64);
            executor.render(&mut slab.buffers(), 2, || 0);
            for (frame, to) in [(slab.frame(0), 2u8), (slab.frame(1), 0)] {
                let next =
                    if gateway.is_some() || what.is_some() { router } else { Mac([2, 0, 0, 0, 0, to]) };
                assert_eq!((&frame[..6], &frame[6..12]), (&next.0[..], &[2, 0, 0, 0, 0, 1][..]));
                assert_eq!(
                    (&frame[26..30], &frame[30..34]),
                    (&[198, 18, 2, 2][..], &[198, 18, to + 1, 2][..])
                );
            }
        }
    }
}
