//! The NAT of a lab, as it counts itself while connections go through it: that of a lab of the job's own, or of the `netdyno lab` that this
//! process runs in, which is found by a variable.

use crate::place::Place;
use ::lab::nat::{self, Tracked};
use ::lab::{ENV_NAT, Lab, Namespace, NamespaceRef};
use anyhow::{Context as _, Result};
use report::NatCounts;

/// A NAT of a lab.
#[derive(Debug)]
pub(crate) struct DeviceNat {
    namespace: Namespace,
    /// Nobody else looks at it, so that its table may be emptied.
    own: bool,
}

/// What it had counted at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before(Tracked);

impl DeviceNat {
    /// That of a lab of the job's own, if its device is one.
    pub(crate) fn of(lab: &Lab) -> Result<Option<DeviceNat>> {
        let Some([near, _]) = &lab.device else { return Ok(None) };
        let namespace = near.namespace.try_clone()?;
        Ok(nat::tracked(&namespace)?.map(|_| DeviceNat { namespace, own: true }))
    }

    /// That of the lab that this process runs in, if it has one and the interface is an end of it.
    pub(crate) fn around(place: &Place) -> Result<Option<DeviceNat>> {
        let Some(name) = std::env::var_os(ENV_NAT) else { return Ok(None) };
        let name = name.to_string_lossy();
        if !place.is_of_a_lab() {
            return Ok(None);
        }
        let named =
            NamespaceRef::parse(&name).with_context(|| format!("the variable {ENV_NAT} is damaged"))?;
        Ok(Some(DeviceNat { namespace: named.open()?, own: false }))
    }

    /// What it has counted before a trial, for which a table of the job's own is emptied.
    pub(crate) fn begin(&self) -> Result<Before> {
        if self.own {
            nat::forget(&self.namespace)?;
        }
        Ok(Before(nat::tracked(&self.namespace)?.unwrap_or_default()))
    }

    /// What it has counted since.
    pub(crate) fn since(&self, Before(before): &Before) -> Result<NatCounts> {
        let now = nat::tracked(&self.namespace)?.unwrap_or_default();
        Ok(counts(&now.since(before)))
    }
}

/// As the result has them.
pub fn counts(tracked: &Tracked) -> NatCounts {
    NatCounts {
        translated: tracked.translated,
        entries: tracked.entries,
        over_connections: tracked.over_connections,
        over_rate: tracked.over_rate,
        invalid: tracked.invalid,
        insert_failed: tracked.insert_failed,
        table_full: tracked.dropped,
        early_dropped: tracked.early_dropped,
    }
}
