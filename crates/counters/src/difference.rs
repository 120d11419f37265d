//! What changed between two snapshots of one network namespace.

use crate::kind::{Topic, is_narrow, may_be_narrow, topic};
use crate::rules::{self, Note};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What changed between two snapshots of one network namespace. Counters that did not move are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CountersDifference")]
pub struct Difference {
    /// The host's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The network namespace: `net:[4026531840]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// From the first snapshot to the second, by CLOCK_MONOTONIC.
    pub seconds: f64,
    /// Counters that moved, by what they are about.
    pub groups: Vec<Group>,
    /// Gauges that are different.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gauges: Vec<State>,
    /// Segments that TCP sent again, as a share of Tcp.OutSegs; left out where none were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// What follows from them, by stated rules (docs/counters.md).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A difference by itself.
#[derive(Serialize)]
struct Named<'a> {
    schema: &'static str,
    #[serde(flatten)]
    difference: &'a Difference,
}

/// Counters about one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// What they are about.
    pub topic: Topic,
    /// Those that moved, by name.
    pub changes: Vec<Change>,
}

/// A counter that moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CounterChange")]
pub struct Change {
    /// Its name: `Tcp.RetransSegs`.
    pub name: String,
    /// By how much it rose; left out where that cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
    /// Rise per second; left out where no time passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Left out of a counter that only the second snapshot has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Left out of a counter that only the first snapshot has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// What is not as usual with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irregular: Option<Irregular>,
}

/// Why a change is no plain subtraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Irregular {
    /// Only the second snapshot has it. Taken as counted from zero: the kernel lists some counters from their first event on.
    Appeared,
    /// Only the first snapshot has it: an interface or a socket that is gone. The change is not known.
    Vanished,
    /// It went over the largest number of 32 or 64 bits, which is taken into account.
    Wrapped,
    /// It fell, and not because it wrapped: it was reset (with its driver, for example). The change is not known.
    Reset,
}

/// A gauge that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// Its name: `Tcp.CurrEstab`.
    pub name: String,
    /// Left out of a gauge that only the second snapshot has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// Left out of a gauge that only the first snapshot has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
}

/// Why two snapshots have no difference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// The second was taken before the first.
    #[error("the second snapshot was taken before the first: give the earlier one first")]
    Order,
    /// Counters begin anew with each boot.
    #[error(
        "the snapshots are of different boots or hosts ({0} and {1}): counters begin at zero with each boot"
    )]
    Boot(String, String),
    /// Each namespace has counters of its own.
    #[error("the snapshots are of different network namespaces ({0} and {1}): each has counters of its own")]
    Namespace(String, String),
}

impl Difference {
    /// By how much the counter of this name rose; `None`: it did not move, or that is not known.
    pub fn changed(&self, name: &str) -> Option<u64> {
        self.groups.iter().flat_map(|group| &group.changes).find(|change| change.name == name)?.by
    }

    /// JSON, indented, with a member `schema` that says what it is.
    pub fn to_json(&self) -> String {
        // Numbers and texts: nothing in it can fail.
        serde_json::to_string_pretty(&self.named()).unwrap_or_default() + "\n"
    }

    /// The same on one line.
    pub fn to_json_line(&self) -> String {
        serde_json::to_string(&self.named()).unwrap_or_default() + "\n"
    }

    fn named(&self) -> Named<'_> {
        Named { schema: "netdyno.counters-difference/1", difference: self }
    }

    /// Neither a counter nor a gauge moved.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.gauges.is_empty()
    }
}

/// What changed from `before` to `after`.
///
/// # Errors
/// That they are not of the same namespace and boot, or in the wrong order.
pub fn difference(before: &Snapshot, after: &Snapshot) -> Result<Difference, Incomparable> {
    let differ =
        |a: &Option<String>, b: &Option<String>| Some((a.clone()?, b.clone()?)).filter(|(a, b)| a != b);
    if let Some((a, b)) = differ(&before.boot_id, &after.boot_id) {
        let named = |host: &Option<String>, id: String| {
            host.clone().map_or(id.clone(), |host| format!("{host}, {id}"))
        };
        return Err(Incomparable::Boot(named(&before.host, a), named(&after.host, b)));
    }
    if let Some((a, b)) = differ(&before.namespace, &after.namespace) {
        return Err(Incomparable::Namespace(a, b));
    }
    let ns = after.monotonic_ns.checked_sub(before.monotonic_ns).ok_or(Incomparable::Order)?;
    let seconds = ns as f64 / 1e9;

    let names: BTreeSet<&String> = before.counters.keys().chain(after.counters.keys()).collect();
    let mut moved: Vec<(Topic, Change)> = names
        .into_iter()
        .filter_map(|name| {
            let change = change(name, before.counters.get(name).copied(), after.counters.get(name).copied())?;
            let per_second = change.by.filter(|_| ns > 0).map(|by| by as f64 / seconds);
            Some((topic(name), Change { per_second, ..change }))
        })
        .collect();
    moved.sort_by_key(|(topic, _)| *topic);
    let mut groups: Vec<Group> = Vec::new();
    for (topic, change) in moved {
        match groups.last_mut().filter(|group| group.topic == topic) {
            Some(group) => group.changes.push(change),
            None => groups.push(Group { topic, changes: vec![change] }),
        }
    }

    let names: BTreeSet<&String> = before.gauges.keys().chain(after.gauges.keys()).collect();
    let state = |name: &String| {
        let (before, after) = (before.gauges.get(name).copied(), after.gauges.get(name).copied());
        (before != after).then(|| State { name: name.clone(), before, after })
    };
    let mut found = Difference {
        host: after.host.clone(),
        namespace: after.namespace.clone(),
        seconds,
        groups,
        gauges: names.into_iter().filter_map(state).collect(),
        ..Difference::default()
    };
    let sent = found.changed("Tcp.OutSegs").filter(|sent| *sent > 0);
    found.retransmitted_share =
        sent.map(|sent| found.changed("Tcp.RetransSegs").unwrap_or(0) as f64 / sent as f64);
    found.notes = rules::notes(&found);
    Ok(found)
}

/// How a counter moved, if it did.
fn change(name: &str, before: Option<u64>, after: Option<u64>) -> Option<Change> {
    let (by, irregular) = match (before, after) {
        (None, None | Some(0)) => return None,
        (None, Some(after)) => (Some(after), Some(Irregular::Appeared)),
        (Some(_), None) => (None, Some(Irregular::Vanished)),
        (Some(before), Some(after)) if before == after => return None,
        (Some(before), Some(after)) => rise(before, after, is_narrow(name), may_be_narrow(name)),
    };
    Some(Change { name: name.to_owned(), by, per_second: None, before, after, irregular })
}

/// By how much a counter rose. One that fell wrapped, if it was in the upper half of its range and is now in the lower: more
/// than half of the range between two snapshots is less likely than that it was set back.
pub(crate) fn rise(before: u64, after: u64, narrow: bool, maybe: bool) -> (Option<u64>, Option<Irregular>) {
    if let Some(by) = after.checked_sub(before) {
        return (Some(by), None);
    }
    let half = 1 << 31;
    let fits = before <= u64::from(u32::MAX);
    if fits && (narrow || maybe && before >= half && after < half) {
        return (Some(u64::from((after as u32).wrapping_sub(before as u32))), Some(Irregular::Wrapped));
    }
    if before >= 1 << 63 && after < 1 << 63 {
        return (Some(after.wrapping_sub(before)), Some(Irregular::Wrapped));
    }
    (None, Some(Irregular::Reset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SCHEMA;

    fn snapshot(at_s: u64, counters: &[(&str, u64)], gauges: &[(&str, i64)]) -> Snapshot {
        Snapshot {
            schema: SCHEMA.to_owned(),
            host: Some("a".to_owned()),
            boot_id: Some("1".to_owned()),
            namespace: Some("net:[1]".to_owned()),
            realtime_ns: 0,
            monotonic_ns: at_s * 1_000_000_000,
            counters: counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            gauges: gauges.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        }
    }

    #[test]
    fn counters_are_subtracted_and_gauges_shown() {
        let before = snapshot(
            10,
            &[("Tcp.OutSegs", 100), ("Tcp.RetransSegs", 1), ("Udp.NoPorts", 5)],
            &[("Tcp.CurrEstab", 3), ("Tcp.MaxConn", -1)],
        );
        let after = snapshot(
            14,
            &[("Tcp.OutSegs", 500), ("Tcp.RetransSegs", 3), ("Udp.NoPorts", 5)],
            &[("Tcp.CurrEstab", 2), ("Tcp.MaxConn", -1)],
        );
        let found = difference(&before, &after).expect("comparable");
        assert_eq!(found.seconds, 4.0);
        let topics: Vec<Topic> = found.groups.iter().map(|group| group.topic).collect();
        assert_eq!(topics, [Topic::Tcp, Topic::Retransmission]);
        assert_eq!(found.groups[0].changes[0].per_second, Some(100.0));
        assert_eq!(
            found.gauges,
            [State { name: "Tcp.CurrEstab".to_owned(), before: Some(3), after: Some(2) }]
        );
        assert_eq!(found.retransmitted_share, Some(0.005));
    }

    #[test]
    fn counters_of_one_snapshot_only_shift_nothing() {
        let before = snapshot(0, &[("IcmpMsg.InType3", 1), ("if.gone.rx_bytes", 7)], &[]);
        let after =
            snapshot(1, &[("IcmpMsg.InType3", 2), ("IcmpMsg.InType8", 4), ("if.new.rx_errors", 0)], &[]);
        let found = difference(&before, &after).expect("comparable");
        let all: Vec<_> = found
            .groups
            .iter()
            .flat_map(|g| &g.changes)
            .map(|c| (c.name.as_str(), c.by, c.irregular))
            .collect();
        assert_eq!(
            all,
            [
                ("IcmpMsg.InType3", Some(1), None),
                ("IcmpMsg.InType8", Some(4), Some(Irregular::Appeared)),
                ("if.gone.rx_bytes", None, Some(Irregular::Vanished)),
            ]
        );
    }

    #[test]
    fn a_counter_that_fell_wrapped_or_was_set_back() {
        assert_eq!(rise(u64::MAX, 4, false, false), (Some(5), Some(Irregular::Wrapped)));
        assert_eq!(rise(0xffff_fff0, 4, false, true), (Some(20), Some(Irregular::Wrapped)));
        assert_eq!(rise(100, 4, true, true), (Some((1 << 32) - 96), Some(Irregular::Wrapped)));
        assert_eq!(rise(100, 4, false, true), (None, Some(Irregular::Reset)));
        assert_eq!(rise(0xffff_fff0, 4, false, false), (None, Some(Irregular::Reset)));
    }

    #[test]
    fn snapshots_that_do_not_belong_together_are_refused() {
        let (early, late) = (snapshot(1, &[], &[]), snapshot(2, &[], &[]));
        assert_eq!(difference(&late, &early), Err(Incomparable::Order));
        let elsewhere = Snapshot { namespace: Some("net:[2]".to_owned()), ..late.clone() };
        assert!(matches!(difference(&early, &elsewhere), Err(Incomparable::Namespace(..))));
        let rebooted = Snapshot { boot_id: Some("2".to_owned()), ..late };
        assert!(difference(&early, &rebooted).expect_err("another boot").to_string().contains("a, 1"));
    }

    #[test]
    fn no_time_has_no_rates() {
        let found =
            difference(&snapshot(1, &[("x", 1)], &[]), &snapshot(1, &[("x", 2)], &[])).expect("comparable");
        assert_eq!((found.changed("x"), found.groups[0].changes[0].per_second), (Some(1), None));
    }
}
