//! An interface that the user named, found and looked at.

use anyhow::Result;
use lab::{Located, Namespace};
use port::carrier::Link;
use port::interface::{CounterReader, Interface, Use, guard_use, namespace_id};
use port::packet::Target;

/// An interface and where it is.
#[derive(Debug)]
pub struct Place {
    /// As the user wrote it.
    pub spec: String,
    located: Located,
    /// As its network namespace has it.
    pub interface: Interface,
}

/// What tells interfaces of all namespaces apart: the namespace's file, and the index in it.
pub type Identity = (u64, u64, u32);

impl Place {
    /// Which interface it is, whatever it is called.
    pub fn identity(&self) -> Option<Identity> {
        let namespace = self.located.run_in(Namespace::current).ok()?.ok()?;
        let stat = rustix::fs::fstat(&namespace).ok()?;
        Some((stat.st_dev, stat.st_ino, self.interface.index))
    }

    /// Whether it is an end of a lab's cables, by its name.
    pub(crate) fn is_of_a_lab(&self) -> bool {
        let name = &self.interface.name;
        name == lab::SENDER_INTERFACE || name == lab::RECEIVER_INTERFACE || name.starts_with("port")
    }

    /// Finds what `spec` names.
    ///
    /// # Errors
    /// That there is no such interface or namespace, or it may not be entered.
    pub fn find(spec: &str) -> Result<Place> {
        Place::at(spec.to_owned(), lab::resolve(spec)?)
    }

    /// An interface whose place is known.
    ///
    /// # Errors
    /// That the interface is not there.
    pub fn at(spec: String, located: Located) -> Result<Place> {
        let name = located.name.clone();
        let interface = located.run_in(|| Interface::by_name(&name))??;
        Ok(Place { spec, located, interface })
    }

    /// Refuses an interface that the user depends on.
    ///
    /// # Errors
    /// That it is in use and was not named, or that this cannot be found out.
    pub fn guard(&self, yes_disrupt: &[String]) -> Result<()> {
        self.guarded(yes_disrupt, Use::default())
    }

    /// The same for whom what arrives there is taken from this host: a loopback, or an interface with connections of this host's
    /// programs, is refused as well. `instead`: what would take nothing away.
    ///
    /// # Errors
    /// As [`Place::guard`].
    pub fn guard_taking(&self, yes_disrupt: &[String], instead: Option<&'static str>) -> Result<()> {
        self.guarded(yes_disrupt, Use { takes: true, instead, ..Use::default() })
    }

    fn guarded(&self, yes_disrupt: &[String], how: Use<'_>) -> Result<()> {
        let name = &self.interface.name;
        let allowed = yes_disrupt.iter().find(|allowed| *allowed == name).map(String::as_str);
        // In another namespace nobody is logged in through it, and that one's default route is none of ours.
        let how = Use { yes_disrupt: allowed, from_outside: self.is_elsewhere(), ..how };
        self.located.run_in(|| guard_use(name, how))??;
        Ok(())
    }

    /// Is it in a network namespace that is neither this process's nor that of the machine's first process? What cannot be found
    /// out is taken for no.
    pub fn is_elsewhere(&self) -> bool {
        let file = |path: &str| rustix::fs::stat(path).map(|stat| (stat.st_dev, stat.st_ino));
        let Ok(own) = file("/proc/thread-self/ns/net") else { return false };
        let there = self.located.run_in(|| file("/proc/thread-self/ns/net"));
        matches!(there, Ok(Ok(there)) if there != own && file("/proc/1/ns/net") != Ok(there))
    }

    /// The interface as it is now; `None` when it is no longer there. It is looked for by its number, because its name may have
    /// changed.
    ///
    /// # Errors
    /// That its namespace cannot be entered, or the kernel does not answer.
    pub fn now(&self) -> Result<Option<Interface>> {
        let index = self.interface.index;
        let all = self.run_in(Interface::list)??;
        Ok(all.into_iter().find(|one| one.index == index))
    }

    /// Why nothing comes through `what` any more, which was attached to the interface ("the meter"): by what has become of it.
    pub fn why_ended(&self, what: &str) -> String {
        let spec = &self.spec;
        match self.now() {
            Ok(None) => format!("{spec} was removed, or moved to another network namespace"),
            Ok(Some(now)) if !now.up => format!("{spec} was set down"),
            _ => format!("{what} was detached from {spec} by force"),
        }
    }

    /// Runs `work` where the interface is.
    ///
    /// # Errors
    /// That the namespace cannot be entered.
    pub fn run_in<T: std::marker::Send>(&self, work: impl FnOnce() -> T + std::marker::Send) -> Result<T> {
        Ok(self.located.run_in(work)?)
    }

    /// Its counters, to be read again and again.
    ///
    /// # Errors
    /// That the interface is not there.
    pub fn counters(&self) -> Result<CounterReader> {
        let name = &self.interface.name;
        Ok(self.run_in(|| CounterReader::open(name))??)
    }

    /// Its carrier, from now on.
    ///
    /// # Errors
    /// That the interface is not there.
    pub fn link(&self) -> Result<Link> {
        Ok(self.run_in(|| Link::open(&self.interface))??)
    }

    /// What engines are opened on.
    pub fn target(&self) -> Target {
        Target { name: self.interface.name.clone(), index: self.interface.index, mtu: self.interface.mtu }
    }

    /// Are both the same interface?
    pub fn is_same_as(&self, other: &Place) -> bool {
        let [one, other] = [self, other].map(Place::identity);
        one == other
    }

    /// The link's speed, for percentages.
    pub fn bits_per_second(&self) -> Option<u64> {
        self.interface.speed_mbps.map(|mbps| u64::from(mbps) * 1_000_000)
    }

    /// Is the speed it states a real limit? Virtual devices state one and do not keep to it.
    pub fn is_virtual(&self) -> bool {
        self.interface.kind.is_some()
    }

    /// Is it one end of a cable in memory? What leaves by it this machine carries on.
    pub fn is_veth(&self) -> bool {
        self.interface.kind.as_deref() == Some("veth")
    }

    /// Is `other` the far end of this cable (a veth pair)? What cannot be found out is taken for no.
    pub fn is_joined_to(&self, other: &Place) -> bool {
        let (near, far) = (&self.interface, &other.interface);
        let pair = self.is_veth() && other.is_veth();
        // Indices count within a namespace, and are the same in many.
        pair && near.link == Some(far.index) && far.link == Some(near.index) && self.leads_to(other)
    }

    /// Is the namespace of the cable's far end that of `other`?
    fn leads_to(&self, other: &Place) -> bool {
        let handle = |place: &Place| place.located.run_in(Namespace::current).ok()?.ok();
        let Some((here, there)) = handle(self).zip(handle(other)) else { return false };
        match self.interface.link_namespace {
            Some(number) => {
                let found = self.located.run_in(|| namespace_id(&there));
                matches!(found, Ok(Ok(Some(found))) if found == number)
            }
            // Both ends are in one namespace, which is one file.
            None => {
                let file = |namespace: &Namespace| rustix::fs::fstat(namespace).map(|s| (s.st_dev, s.st_ino));
                !other.interface.link_elsewhere && file(&here).is_ok_and(|here| file(&there) == Ok(here))
            }
        }
    }

    /// Whether `other` is in the same network namespace.
    ///
    /// # Errors
    /// That a namespace cannot be looked at.
    pub fn shares_namespace(&self, other: &Place) -> Result<bool> {
        let file = |place: &Place| -> Result<_> {
            let namespace = place.located.run_in(Namespace::current)??;
            Ok(rustix::fs::fstat(&namespace).map(|stat| (stat.st_dev, stat.st_ino))?)
        };
        Ok(file(self)? == file(other)?)
    }

    /// Those that are on, by the kernel's names of features (`ethtool -k`), and one that takes VLAN tags out of what arrives.
    fn offloads(&self) -> Vec<String> {
        let look = || -> Result<Vec<String>, rustix::io::Errno> {
            use port::ethtool::{Ethtool, Offload};
            let device = Ethtool::open(&self.interface.name)?;
            let offloads = device.offloads();
            let on = offloads.iter().filter(|offload| offload.on).map(|offload| offload.feature);
            let sums = [("rx-checksumming", Offload::RxChecksum), ("tx-checksumming", Offload::TxChecksum)];
            let sums = sums.iter().filter(|(_, sum)| device.offload(*sum) == Ok(true)).map(|(name, _)| *name);
            let tags = self.interface.takes_tags_out().then_some("rx-vlan-hw-parse");
            Ok(on.chain(sums).chain(tags).map(str::to_owned).collect())
        };
        self.run_in(look).ok().and_then(Result::ok).unwrap_or_default()
    }

    fn qdisc(&self) -> Option<String> {
        self.run_in(|| port::qdisc::kinds(self.interface.index)).ok()?.ok().filter(|kinds| !kinds.is_empty())
    }

    /// As a result has it; `role`: what it is for there.
    pub fn describe(&self, role: &str) -> report::Interface {
        let i = &self.interface;
        report::Interface {
            name: self.spec.clone(),
            role: Some(role.to_owned()),
            driver: i.driver.clone(),
            mtu: Some(i.mtu),
            speed_bits_per_second: self.bits_per_second(),
            tx_queues: Some(i.tx_queues),
            rx_queues: Some(i.rx_queues),
            carrier_wait_ns: None,
            qdisc: self.qdisc(),
            offloads: self.offloads(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::{Host, Lab, Options};

    fn place(host: &Host) -> Place {
        let namespace = Some(host.namespace.try_clone().unwrap());
        let name = host.interface.to_owned();
        Place::at(name.clone(), Located { namespace, name }).unwrap()
    }

    #[test]
    fn a_cables_ends_know_each_other_and_no_other_cables() {
        let labs = [0, 1].map(|_| Lab::two_hosts(&Options::default()).unwrap());
        let [(tx, rx), (other_tx, other_rx)] =
            [&labs[0], &labs[1]].map(|lab| (place(&lab.sender), place(&lab.receiver)));
        assert!(tx.is_joined_to(&rx) && rx.is_joined_to(&tx) && other_tx.is_joined_to(&other_rx));
        // These have the same index in their namespaces.
        assert_eq!(rx.interface.index, other_rx.interface.index);
        assert!(!tx.is_joined_to(&other_rx) && !tx.is_joined_to(&tx) && !tx.is_joined_to(&other_tx));
    }

    #[test]
    fn offloads_are_described_as_they_are_set() {
        use port::ethtool::{Ethtool, Offload};
        let lab = Lab::two_hosts(&Options::default()).unwrap();
        let tx = place(&lab.sender);
        for on in [true, false, true] {
            let set = || Ethtool::open(lab.sender.interface)?.set_offload(Offload::Gro, on);
            tx.run_in(set).unwrap().expect("set");
            let offloads = tx.describe("sends").offloads;
            assert_eq!(offloads.iter().any(|name| name == "rx-gro"), on, "{offloads:?}");
        }
    }
}
