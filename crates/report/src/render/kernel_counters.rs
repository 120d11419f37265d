//! The kernel's counters as text: what changed between two snapshots, by what it is about, and a snapshot as it is.
//!
//! The data and the rules are crate `counters`'s. Callers: `netdyno counters`, and sections of reports that have such a
//! difference.

use crate::data::units;
use crate::render::table::Table;
use counters::{Change, Difference, Irregular, Snapshot, Topic, Weight, meaning, topic};
use std::collections::BTreeMap;

/// What changed, for a terminal: a heading, groups of counters with their rates, gauges, and what follows from them.
pub fn render(of: &Difference) -> String {
    let mut text =
        format!("{} over {}\n", whose(of.namespace.as_deref(), of.host.as_deref()), time(of.seconds));
    if of.is_empty() {
        text += "\nNothing changed.\n";
    }
    for group in &of.groups {
        text += &format!("\n{}\n", group.topic.title());
        let mut table = Table::default();
        for change in &group.changes {
            table.row(
                &format!("  {}", change.name),
                [Some(risen(change)), change.per_second.map(units::event_rate)],
            );
        }
        text += &explained(&table, group.changes.iter().map(remark));
    }
    if !of.gauges.is_empty() {
        text += "\nGauges, before and after\n";
        let mut table = Table::default();
        let value = |value: Option<i64>| value.map(|value| value.to_string());
        for state in &of.gauges {
            table.row(
                &format!("  {}", state.name),
                [value(state.before), Some("->".to_owned()), value(state.after)],
            );
        }
        text += &table.to_string();
    }
    if !of.notes.is_empty() {
        text += "\nWhat follows\n";
    }
    for note in &of.notes {
        let weight = if note.weight == Weight::Warning { "warning" } else { "note" };
        text += &format!("  {weight}: {} [{}]\n", units::printable(&note.text), note.rule);
    }
    text
}

/// A snapshot, for a terminal: what is not zero.
pub fn snapshot(of: &Snapshot) -> String {
    let mut text = whose(of.namespace.as_deref(), of.host.as_deref()) + ", those that are not zero\n";
    let mut groups: BTreeMap<Topic, Vec<(&String, u64)>> = BTreeMap::new();
    for (name, value) in of.counters.iter().filter(|(_, value)| **value != 0) {
        groups.entry(topic(name)).or_default().push((name, *value));
    }
    for (topic, counters) in &groups {
        text += &format!("\n{}\n", topic.title());
        let mut table = Table::default();
        for (name, value) in counters {
            table.row(&format!("  {name}"), [Some(units::count(*value))]);
        }
        text += &explained(&table, counters.iter().map(|(name, _)| meaning(name).map(str::to_owned)));
    }
    text += "\nGauges\n";
    let mut table = Table::default();
    for (name, value) in &of.gauges {
        table.row(&format!("  {name}"), [Some(value.to_string())]);
    }
    text + &table.to_string()
}

fn whose(namespace: Option<&str>, host: Option<&str>) -> String {
    let of = [namespace, host].into_iter().flatten().map(units::printable).collect::<Vec<_>>().join(" on ");
    format!("Counters of {}", if of.is_empty() { "an unknown network namespace" } else { &of })
}

fn time(seconds: f64) -> String {
    units::time((seconds * 1e9).round() as u64)
}

fn risen(change: &Change) -> String {
    change.by.map_or_else(|| "?".to_owned(), units::count)
}

/// What a counter means, and what is odd about its change.
fn remark(change: &Change) -> Option<String> {
    let value = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), units::count);
    let odd = change.irregular.map(|irregular| match irregular {
        Irregular::Appeared => "new since the first snapshot".to_owned(),
        Irregular::Vanished => format!("gone; was {}", value(change.before)),
        Irregular::Wrapped => "wrapped".to_owned(),
        Irregular::Reset => format!("set back, from {} to {}", value(change.before), value(change.after)),
    });
    let all: Vec<String> = odd.into_iter().chain(meaning(&change.name).map(str::to_owned)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// A table with a remark behind each row.
fn explained(table: &Table, remarks: impl Iterator<Item = Option<String>>) -> String {
    let text = table.to_string();
    let width = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let lines = text.lines().zip(remarks).map(|(line, remark)| match remark {
        Some(remark) => format!("{line:width$}  {remark}\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::difference;

    fn snapshot_of(at_ns: u64, counters: &str, gauges: &str) -> Snapshot {
        let text = format!(
            r#"{{"schema":"netdyno.counters/1","host":"a","namespace":"net:[1]","realtime_ns":0,"monotonic_ns":{at_ns},"counters":{{{counters}}},"gauges":{{{gauges}}}}}"#
        );
        Snapshot::from_json(&text).expect("a snapshot")
    }

    #[test]
    fn a_difference_says_what_moved_how_fast_and_what_follows() {
        let before = snapshot_of(
            0,
            r#""Tcp.OutSegs":10,"Tcp.RetransSegs":0,"if.eth0.rx_bytes":5"#,
            r#""Tcp.CurrEstab":2"#,
        );
        let after = snapshot_of(
            2_000_000_000,
            r#""Tcp.OutSegs":2890827,"Tcp.RetransSegs":17004,"IcmpMsg.InType3":1"#,
            r#""Tcp.CurrEstab":3"#,
        );
        let found = difference(&before, &after).expect("comparable");
        assert_eq!(
            render(&found),
            "Counters of net:[1] on a over 2.00 s\n\
             \n\
             TCP\n  Tcp.OutSegs  2,890,817  1,445,409/s  segments sent, of a super-packet each; not those with retransmitted data only\n\
             \n\
             TCP retransmission\n  Tcp.RetransSegs  17,004  8,502/s  segments sent again\n\
             \n\
             IP and ICMP\n  IcmpMsg.InType3  1  0.5/s  new since the first snapshot\n\
             \n\
             Interfaces\n  if.eth0.rx_bytes  ?  -  gone; was 5\n\
             \n\
             Gauges, before and after\n  Tcp.CurrEstab  2  ->  3\n\
             \n\
             What follows\n  \
             warning: TCP sent 17004 segments again: 0.5882% of 2890817 in Tcp.OutSegs [tcp-retransmission]\n"
        );
        let nothing = difference(&before, &before).expect("comparable");
        assert!(render(&nothing).ends_with("\nNothing changed.\n"));
    }

    #[test]
    fn a_snapshot_shows_what_is_not_zero() {
        let text = snapshot(&snapshot_of(0, r#""Udp.NoPorts":1234,"Udp.InErrors":0"#, r#""Tcp.MaxConn":-1"#));
        assert!(text.contains("  Udp.NoPorts  1,234  datagrams that nobody listened for\n"), "{text}");
        assert!(!text.contains("InErrors") && text.ends_with("Gauges\n  Tcp.MaxConn  -1\n"), "{text}");
    }
}
