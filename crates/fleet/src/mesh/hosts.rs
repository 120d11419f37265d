//! Which hosts a mesh is of: `10.0.0.1@a,10.0.0.2@b,192.0.2.9`, and by the addresses and tags of an inventory `@a` and `@rack-1`.

use crate::plan::Unplanned;
use crate::reach::Reach;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Hosts at most: of so many there are 4,032 pairs.
pub(super) const MOST: usize = 64;
/// And of tests all at once: an agent does 16 jobs at a time, and one of them is its server.
pub(super) const MOST_AT_ONCE: usize = 16;

/// A host of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// What its row and its column are called.
    pub name: String,
    /// What its clients connect to.
    pub address: String,
    /// Its agent, by its place among those that were named; `None`: a server that stands already.
    pub agent: Option<usize>,
}

/// The hosts that `text` names; `port`: where the test's server listens, unless said.
///
/// # Errors
/// One of them cannot be, or there are too few or too many.
pub(super) fn hosts(
    text: &str,
    agents: &[Reach],
    port: u16,
    all_at_once: bool,
) -> Result<Vec<Host>, Unplanned> {
    let mut hosts = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let found = match part.rsplit_once('@') {
            Some(("", name)) => by_inventory(name, agents)?,
            Some((address, name)) => vec![at(address, place(name, part, agents)?, agents)],
            None => vec![Host { name: part.to_owned(), address: part.to_owned(), agent: None }],
        };
        hosts.extend(found);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = hosts.iter().find(|host| !seen.insert(&*host.name)) {
        let why = format!("{} is named twice: in a mesh each host has one address", twice.name);
        return Err(Unplanned::Mesh { why });
    }
    each_elsewhere(&hosts, port)?;
    let agents = hosts.iter().filter(|host| host.agent.is_some()).count();
    let most = if all_at_once { MOST_AT_ONCE } else { MOST };
    let why = match (hosts.len(), agents) {
        (0 | 1, _) => "a mesh has two hosts at least: 10.0.0.1@lab1,10.0.0.2@lab2".to_owned(),
        (_, 0) => "none of the hosts has an agent, so that no test can begin: write ADDRESS@AGENT".to_owned(),
        (all, _) if all > most && all_at_once => {
            format!(
                "{all} hosts: all at once {most} are possible; leave out `.all_at_once`, for rounds of up to {MOST}"
            )
        }
        (all, _) if all > most => format!("{all} hosts: {most} are possible"),
        _ => return Ok(hosts),
    };
    Err(Unplanned::Mesh { why })
}

/// No two hosts may be at one address: a host would be in two tests of a round, and one of them under another's name.
fn each_elsewhere(hosts: &[Host], port: u16) -> Result<(), Unplanned> {
    let mut seen: BTreeMap<SocketAddr, &str> = BTreeMap::new();
    for host in hosts {
        let at = socket(&host.address, port).map_err(|why| Unplanned::Mesh { why })?;
        if let Some(first) = seen.insert(at, &host.name) {
            let why =
                format!("{first} and {} are both at {at}: leave out one, or mend its address", host.name);
            return Err(Unplanned::Mesh { why });
        }
    }
    Ok(())
}

/// Where a server of this address listens.
fn socket(address: &str, port: u16) -> Result<SocketAddr, String> {
    let alone = address.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port));
    let found = alone.or_else(|_| address.parse::<SocketAddr>()).ok().filter(|at| at.port() != 0);
    let Some(at) = found else {
        return Err(format!(
            "`{address}` is no address of a host: write 10.0.0.1, 10.0.0.1:5000 or [2001:db8::1]:5000, of ports 1 to 65535"
        ));
    };
    let ip = at.ip().to_canonical();
    if ip.is_unspecified() || ip.is_multicast() {
        return Err(format!(
            "`{address}` is no address of one host: write the one by which the others reach it"
        ));
    }
    Ok(SocketAddr::new(ip, at.port()))
}

fn at(address: &str, agent: usize, agents: &[Reach]) -> Host {
    let name = agents.get(agent).map(|agent| agent.name.to_string()).unwrap_or_default();
    Host { name, address: address.to_owned(), agent: Some(agent) }
}

fn place(name: &str, text: &str, agents: &[Reach]) -> Result<usize, Unplanned> {
    let found = agents.iter().position(|agent| agent.name.as_str() == name);
    found.ok_or_else(|| crate::plan::unknown("host".to_owned(), text, name, agents))
}

/// The agent of this name, or those with this tag, at the addresses that the inventory has.
fn by_inventory(name: &str, agents: &[Reach]) -> Result<Vec<Host>, Unplanned> {
    let is_tagged = |agent: &Reach| agent.tags.iter().any(|tag| tag == name);
    let found: Vec<usize> = match agents.iter().position(|agent| agent.name.as_str() == name) {
        Some(agent) => vec![agent],
        None => (0..).zip(agents).filter(|(_, agent)| is_tagged(agent)).map(|(at, _)| at).collect(),
    };
    if found.is_empty() {
        return Err(crate::plan::unknown("host".to_owned(), &format!("@{name}"), name, agents));
    }
    let addressed = |agent: usize| match agents.get(agent).and_then(|agent| agent.address.as_deref()) {
        Some(address) => Ok(at(address, agent, agents)),
        None => {
            let name = at("", agent, agents).name;
            Err(Unplanned::Mesh {
                why: format!(
                    "the inventory has no `address` of {name}: give it one, or write ADDRESS@{name}"
                ),
            })
        }
    };
    found.into_iter().map(addressed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> Vec<Reach> {
        let inventory = "schema: netdyno.inventory/1\nagents:\n  a: {command: x, address: 10.0.0.1, tags: [rack]}\n  \
                         b: {command: x, address: '10.0.0.2:5000', tags: [rack]}\n  c: {command: x}\n";
        crate::reach::inventory(inventory, "lab.yaml").expect("an inventory")
    }

    fn named(text: &str) -> Result<Vec<(String, String, Option<usize>)>, String> {
        let all = hosts(text, &agents(), 12866, false).map_err(|why| why.to_string())?;
        Ok(all.into_iter().map(|host| (host.name, host.address, host.agent)).collect())
    }

    #[test]
    fn hosts_are_named_by_address_agent_and_tag() {
        let host = |name: &str, address: &str, agent| (name.to_owned(), address.to_owned(), agent);
        assert_eq!(
            named("10.1.0.1@a, 10.1.0.3@c,192.0.2.9"),
            Ok(vec![
                host("a", "10.1.0.1", Some(0)),
                host("c", "10.1.0.3", Some(2)),
                host("192.0.2.9", "192.0.2.9", None)
            ])
        );
        let rack = vec![host("a", "10.0.0.1", Some(0)), host("b", "10.0.0.2:5000", Some(1))];
        assert_eq!(named("@rack"), Ok(rack.clone()));
        assert_eq!(named("@a,@b"), Ok(rack));
    }

    #[test]
    fn hosts_at_one_address_differ_by_their_ports() {
        let both = "10.0.0.1:5000@a,10.0.0.1@b";
        assert!(named(both).is_ok() && named("[2001:db8::1]:5000@a,2001:db8::1@b").is_ok());
        let at = |port| hosts("10.0.0.1:862@a,10.0.0.1@b", &agents(), port, false);
        assert!(at(12866).is_ok() && at(862).is_err(), "a reflector's port is another");
    }

    #[test]
    fn what_is_no_mesh_says_why() {
        for (text, says) in [
            ("10.0.0.1@a", "two hosts at least"),
            ("", "two hosts at least"),
            ("10.0.0.1@a,10.0.0.2@a", "a is named twice"),
            ("10.0.0.1,10.0.0.2", "none of the hosts has an agent"),
            ("10.0.0.1@a,10.0.0.2@z", "there is no agent `z`"),
            ("@a,@z", "there is no agent `z`"),
            ("10.0.0.1@a,10.0.0.1:12866@b", "a and b are both at 10.0.0.1:12866"),
            ("10.0.0.1@a,10.0.0.1", "a and 10.0.0.1 are both at"),
            ("10.0.0.1@a,[::ffff:10.0.0.1]:12866@b", "a and b are both at"),
            ("2001:db8::1@a,[2001:db8:0::1]:12866@b", "a and b are both at [2001:db8::1]:12866"),
            ("10.0.0.1@a,10.0.0.2/24@b", "`10.0.0.2/24` is no address of a host"),
            ("10.0.0.1@a,10.0.0.2@b@c", "`10.0.0.2@b` is no address of a host"),
            ("10.0.0.1@a,10.0.0.2:65536@b", "`10.0.0.2:65536` is no address of a host"),
            ("10.0.0.1@a,10.0.0.2:0@b", "`10.0.0.2:0` is no address of a host"),
            ("10.0.0.1@a,[2001:db8::1]@b", "is no address of a host"),
            ("10.0.0.1@a,0.0.0.0@b", "`0.0.0.0` is no address of one host"),
            ("@a,@c", "the inventory has no `address` of c"),
        ] {
            let said = named(text).expect_err(text);
            assert!(said.contains(says), "{text}: {said}");
        }
        let many =
            |count: usize| (0..count).map(|n| format!("10.0.1.{n},")).collect::<String>() + "10.0.0.1@a";
        assert!(hosts(&many(63), &agents(), 12866, false).is_ok());
        let said = hosts(&many(64), &agents(), 12866, false).expect_err("too many").to_string();
        assert!(said.contains("65 hosts: 64 are possible"), "{said}");
        let said = hosts(&many(16), &agents(), 12866, true).expect_err("too many").to_string();
        assert!(said.contains("17 hosts: all at once 16 are possible"), "{said}");
    }
}
