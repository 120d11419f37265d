//! The NAT of a lab, as it counts itself while connections go through it: that of a lab of the job's own, or of the `netdyno lab` that this
//! process runs in, which is found by a variable.

use crate::place::Place;
use ::lab::nat::{self, Tracked};
use ::lab::{ENV_NAT, Lab, Namespace, NamespaceRef};
use anyhow::{Context as _, Result};
use report::units::counted;
use report::{Code, NatCounts, Report};
use std::sync::OnceLock;

/// A NAT of a lab.
#[derive(Debug)]
pub(crate) struct DeviceNat {
    namespace: Namespace,
    /// Nobody else looks at it, so that its table may be emptied.
    own: bool,
    /// Why it did not say what it had counted, the first time.
    silent: OnceLock<String>,
}

/// What it had counted at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before(Tracked);

impl DeviceNat {
    /// That of a lab of the job's own, if its device is one.
    pub(crate) fn of(lab: &Lab) -> Result<Option<DeviceNat>> {
        let Some([near, _]) = &lab.device else { return Ok(None) };
        let namespace = near.namespace.try_clone()?;
        Ok(nat::tracked(&namespace)?.map(|_| DeviceNat { namespace, own: true, silent: OnceLock::new() }))
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
        Ok(Some(DeviceNat { namespace: named.open()?, own: false, silent: OnceLock::new() }))
    }

    /// What it has counted before a trial, for which a table of the job's own is emptied.
    pub(crate) fn begin(&self) -> Result<Before> {
        if self.own {
            nat::forget(&self.namespace)?;
        }
        Ok(Before(self.tracked()?))
    }

    /// What it has counted since. Where that cannot be read any more, it is not known, and `compare` says so.
    pub(crate) fn since(&self, Before(before): &Before) -> Option<NatCounts> {
        let removed = "rules of its table were removed or made anew meanwhile";
        match self.tracked().and_then(|now| now.since(before).context(removed)) {
            Ok(counted) => Some(counts(&counted)),
            Err(error) => {
                self.silent.get_or_init(|| format!("{error:#}"));
                None
            }
        }
    }

    fn tracked(&self) -> Result<Tracked> {
        nat::tracked(&self.namespace)?.context("its table has no rule that translates")
    }

    /// Warnings of what it did not say, and of connections that finished and that it says nothing of, by what finished in each trial
    /// and what it counted meanwhile.
    pub(crate) fn compare<'c>(
        &self,
        report: &mut Report,
        trials: impl Iterator<Item = (u64, Option<&'c NatCounts>)>,
    ) {
        if let Some(why) = self.silent.get() {
            report
                .warnings
                .add(Code::KernelSilent, format!("what the NAT of the lab counted is not known: {why}"));
        }
        compare(report, trials);
    }
}

/// A warning where connections finished that the NAT says nothing of, by what finished in each trial and what the NAT counted meanwhile.
fn compare<'c>(report: &mut Report, trials: impl Iterator<Item = (u64, Option<&'c NatCounts>)>) {
    let beyond = |(finished, nat): (u64, Option<&NatCounts>)| Some((finished, nat?.translated));
    let differing: Vec<(u64, u64)> =
        trials.filter_map(beyond).filter(|(finished, translated)| finished > translated).collect();
    let Some((finished, translated)) = differing.first() else { return };
    let others = match differing.len() {
        1 => String::new(),
        more => format!(" (and so in {} more)", more - 1),
    };
    report.warnings.add(
        Code::CountersDisagree,
        format!(
            "{} finished, of which the NAT of the lab translated {translated}{others}: the others did not go through it, or it was changed meanwhile",
            counted(*finished, "connection")
        ),
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_that_finished_than_were_translated_are_a_warning() {
        let nat = |translated| NatCounts { translated, ..NatCounts::default() };
        let said = |trials: &[(u64, Option<NatCounts>)]| {
            let mut report = Report::new("sessions");
            compare(&mut report, trials.iter().map(|(finished, nat)| (*finished, nat.as_ref())));
            serde_json::to_string(&report.warnings).expect("JSON")
        };
        let none = said(&[]);
        assert_eq!(said(&[(10, Some(nat(10))), (9, Some(nat(10))), (5, None)]), none);
        let two = said(&[(10, Some(nat(10))), (11, Some(nat(10))), (12, Some(nat(0)))]);
        assert!(
            two.contains(
                "11 connections finished, of which the NAT of the lab translated 10 (and so in 1 more): "
            ),
            "{two}"
        );
    }
}
