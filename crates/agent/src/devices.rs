//! Emulated devices on granted interfaces, and links that are set up or down.

use crate::grants::Grants;
use crate::message::{DevicesStart, DevicesTold, EmulatedDevice, Fault, FaultKind, LinkSet, NeighbourTold};
use emulate::{Device, Devices, Emulation, Vlan};
use job::place::{Identity, Place};
use port::interface::set_up;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Interfaces with devices.
const INTERFACES: usize = 16;
/// Addresses on one of them.
const ADDRESSES: usize = 4096;

/// Devices, by the names of those that were started together.
#[derive(Debug, Default)]
pub(crate) struct AllDevices {
    all: BTreeMap<String, (Option<Identity>, Emulation)>,
    next: u64,
}

impl AllDevices {
    pub fn start(&mut self, asked: &DevicesStart, grants: &Grants) -> Result<String, Fault> {
        if self.all.len() >= INTERFACES || asked.devices.len() > ADDRESSES {
            let what = format!("{ADDRESSES} addresses on each of {INTERFACES} interfaces are the most");
            return Err(Fault::new(FaultKind::Limit, what).remedy("give fewer, or stop others"));
        }
        let place = grants.interface("on", &asked.on)?;
        let failed = |error: &anyhow::Error| Fault::of_setting(FaultKind::Engine, "on", job::in_full(error));
        // Questions of theirs reach whoever is behind it, and its hardware takes all that arrives.
        place.guard(&grants.yes_disrupt).map_err(|error| failed(&error))?;
        let identity = place.identity();
        if identity.is_some() && self.all.values().any(|(other, _)| *other == identity) {
            let what = format!("{} has devices already", report::units::printable(&asked.on));
            return Err(Fault::of_setting(FaultKind::Refused, "on", what).remedy("stop those first"));
        }
        let devices = asked.devices.iter().enumerate().map(|(at, device)| read(at, device));
        let devices = Devices::new(devices.collect::<Result<_, _>>()?);
        let begun = place.run_in(|| Emulation::begin(&place.target(), devices));
        let begun = begun.map_err(|error| failed(&error))?.map_err(|error| failed(&error.into()))?;
        self.next += 1;
        let name = format!("d{}", self.next);
        self.all.insert(name.clone(), (identity, begun));
        Ok(name)
    }

    fn named(&self, name: &str) -> Result<&Emulation, Fault> {
        self.all.get(name).map(|(_, devices)| devices).ok_or_else(|| unknown(name))
    }

    pub fn look(&self, name: &str) -> Result<DevicesTold, Fault> {
        let devices = self.named(name)?;
        let (counts, unsent) = devices.counts();
        let told = |of: emulate::Neighbour| NeighbourTold {
            device: of.device,
            address: of.address.to_string(),
            mac: of.mac.map(|mac| wire::Mac(mac).to_string()),
        };
        Ok(DevicesTold {
            neighbours: devices.neighbours().into_iter().map(told).collect(),
            asked: counts.asked,
            answered: counts.answered,
            pings: counts.pings,
            unsent,
            failed: devices.failure(),
        })
    }

    pub fn stop(&mut self, name: &str) -> Result<(), Fault> {
        self.all.remove(name).map(drop).ok_or_else(|| unknown(name))
    }

    pub fn end(&mut self) {
        self.all.clear();
    }
}

fn unknown(name: &str) -> Fault {
    let name = report::units::printable(name);
    Fault::new(FaultKind::Unknown, format!("there are no devices `{name}`"))
}

fn read(at: usize, device: &EmulatedDevice) -> Result<Device, Fault> {
    let wrong = |member: &str, what: String| {
        Fault::of_setting(FaultKind::Usage, &format!("devices[{at}].{member}"), what)
    };
    let mac: wire::Mac =
        device.mac.parse().map_err(|error: wire::mac::BadMac| wrong("mac", error.to_string()))?;
    if mac.0[0] & 1 == 1 || mac.0 == [0; 6] {
        return Err(wrong("mac", format!("{mac} is nobody's address: its first byte must be even")));
    }
    let address = |member: &str, text: &str| {
        let read = text.parse::<IpAddr>().ok().filter(|read| !read.is_unspecified() && !read.is_multicast());
        read.ok_or_else(|| wrong(member, "must be the IP address of one host".to_owned()))
    };
    let own = address("address", &device.address)?;
    let gateway = device.gateway.as_deref().map(|text| address("gateway", text)).transpose()?;
    if gateway.is_some_and(|gateway| gateway.is_ipv4() != own.is_ipv4()) {
        return Err(wrong("gateway", "must be of the address's family".to_owned()));
    }
    if device.vlans.len() > 2 {
        return Err(wrong("vlans", "at most two tags".to_owned()));
    }
    let vlan = |vlan: &crate::message::EmulatedVlan| {
        let fits = matches!(vlan.tpid, 0x8100 | 0x88a8) && (1..=4094).contains(&vlan.id) && vlan.priority < 8;
        let what = "must have a tpid of 33024 or 34984, an id of 1 to 4094 and a priority of 0 to 7";
        fits.then_some(Vlan { tpid: vlan.tpid, id: vlan.id, priority: vlan.priority })
            .ok_or_else(|| wrong("vlans", what.to_owned()))
    };
    Ok(Device {
        mac: mac.0,
        vlans: device.vlans.iter().map(vlan).collect::<Result<_, _>>()?,
        mtu: device.mtu,
        address: own,
        gateway,
    })
}

/// Interfaces that were set up or down, and how they were found.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<(Place, bool)>);

impl Links {
    pub fn set(&mut self, asked: &LinkSet, grants: &Grants) -> Result<(), Fault> {
        let place = grants.interface("on", &asked.on)?;
        let name = report::units::printable(&asked.on);
        // In a namespace of its own an interface is a lab's, and nobody depends on it.
        if !grants.yes_disrupt.contains(&asked.on) && !place.is_elsewhere() {
            let what = format!("{name} is not set up or down: who uses it would lose it");
            return Err(Fault::of_setting(FaultKind::Refused, "on", what)
                .remedy(format!("start the agent with --yes-disrupt {name}")));
        }
        if !self.0.iter().any(|(known, _)| known.is_same_as(&place)) {
            self.0.push((Place::find(&asked.on).map_err(|error| engine(&error))?, place.interface.up));
        }
        let index = place.interface.index;
        let set = place.run_in(|| set_up(index, asked.up)).map_err(|error| engine(&error))?;
        set.map_err(|error| engine(&error.into()))
    }

    /// As they were found.
    pub fn put_back(&mut self) {
        for (place, up) in self.0.drain(..) {
            let index = place.interface.index;
            let changed = place.now().ok().flatten().is_some_and(|now| now.up != up);
            if changed {
                let _ = place.run_in(|| set_up(index, up));
            }
        }
    }
}

fn engine(error: &anyhow::Error) -> Fault {
    Fault::of_setting(FaultKind::Engine, "on", job::in_full(error))
}
