//! The kernel's counters with those of drivers and queueing disciplines, as `netdyno counters` shows them.

use crate::place::Place;
use anyhow::{Context as _, Result, bail};
use counters::Snapshot;
use port::ethtool::Ethtool;

/// The interfaces whose drivers and queueing disciplines are asked, all in one namespace.
#[derive(Debug)]
pub struct Places(Vec<Place>);

impl Places {
    /// Finds them by their names (`IFACE`, or `IFACE@NAMESPACE`). Without any it is the namespace that the caller is in.
    ///
    /// # Errors
    /// One of them is not there, or they are in different namespaces.
    pub fn find(names: &[String]) -> Result<Places> {
        let places: Vec<Place> = names
            .iter()
            .map(|name| Place::find(name).with_context(|| format!("`.on` {name}")))
            .collect::<Result<_>>()?;
        if let Some(other) =
            places.iter().skip(1).find(|place| !places[0].shares_namespace(place).unwrap_or(false))
        {
            bail!(
                "`.on` {} and `.on` {} are in different network namespaces: take a snapshot of each",
                places[0].spec,
                other.spec
            );
        }
        Ok(Places(places))
    }

    /// The counters of the namespace, now: the kernel's, and of these interfaces the driver's and the queueing discipline's.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn look(&self) -> Result<Snapshot> {
        let Some(first) = self.0.first() else { return Ok(Snapshot::here()?) };
        first.run_in(|| -> Result<Snapshot> {
            let mut now = Snapshot::here()?;
            for place in &self.0 {
                let name = &place.interface.name;
                // Not every driver counts, and not every interface has a discipline that does.
                if let Ok(counted) = Ethtool::open(name).and_then(|device| device.statistics()) {
                    now.add(&format!("ethtool.{name}"), counted);
                }
                let asked =
                    port::qdisc::Reader::open(place.interface.index).and_then(|mut reader| reader.read());
                if let Some(qdisc) = asked.with_context(|| format!("the queueing discipline of {name}"))? {
                    let of = format!("qdisc.{name}.{}", qdisc.kind);
                    let numbers = [
                        ("packets", qdisc.frames),
                        ("dropped", qdisc.dropped.into()),
                        ("waiting", qdisc.waiting.into()),
                    ];
                    now.add(&of, numbers);
                }
            }
            Ok(now)
        })?
    }
}
