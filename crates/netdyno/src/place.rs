//! An interface that the user named, found and looked at.

use anyhow::Result;
use lab::Located;
use port::interface::{CounterReader, Interface, guard};
use port::packet::Target;

/// An interface and where it is.
#[derive(Debug)]
pub struct Place {
    /// As the user wrote it.
    pub spec: String,
    located: Located,
    pub interface: Interface,
}

impl Place {
    /// Finds what `spec` names.
    pub fn find(spec: &str) -> Result<Place> {
        Place::at(spec.to_owned(), lab::resolve(spec)?)
    }

    /// An interface whose place is known.
    pub fn at(spec: String, located: Located) -> Result<Place> {
        let name = located.name.clone();
        let interface = located.run_in(|| Interface::by_name(&name))??;
        Ok(Place { spec, located, interface })
    }

    /// Refuses an interface that the user depends on.
    pub fn guard(&self, yes_disrupt: Option<&str>) -> Result<()> {
        // In another namespace nobody is logged in through it, but it may carry that one's default route.
        let name = &self.interface.name;
        self.located.run_in(|| guard(name, yes_disrupt))??;
        Ok(())
    }

    /// Runs `work` where the interface is.
    pub fn run_in<T: std::marker::Send>(&self, work: impl FnOnce() -> T + std::marker::Send) -> Result<T> {
        Ok(self.located.run_in(work)?)
    }

    pub fn counters(&self) -> Result<CounterReader> {
        let name = &self.interface.name;
        Ok(self.run_in(|| CounterReader::open(name))??)
    }

    pub fn target(&self) -> Target {
        Target { name: self.interface.name.clone(), index: self.interface.index, mtu: self.interface.mtu }
    }

    /// The link's speed, for percentages.
    pub fn bits_per_second(&self) -> Option<u64> {
        self.interface.speed_mbps.map(|mbps| u64::from(mbps) * 1_000_000)
    }

    /// Is the speed it states a real limit? Virtual devices state one and do not keep to it.
    pub fn is_virtual(&self) -> bool {
        self.interface.kind.is_some()
    }

    /// Is `other` the far end of this cable (a veth pair)?
    pub fn is_joined_to(&self, other: &Place) -> bool {
        let (near, far) = (&self.interface, &other.interface);
        let pair = near.kind.as_deref() == Some("veth") && far.kind.as_deref() == Some("veth");
        pair && near.link == Some(far.index) && far.link == Some(near.index)
    }

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
            offloads: Vec::new(),
        }
    }
}
