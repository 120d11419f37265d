//! What interfaces, drivers and hosts counted during a run, held to what we did.

use crate::place::Place;
use engine::Sent;
use port::interface::{CounterReader, Counters};
use port::watch::Source as Counting;
use report::{HostCounter, InterfaceCounters, Report, units};
use std::time::{Duration, Instant};

/// Drivers that update their counters now and then do so at least this often.
const COUNTERS_SETTLE: Duration = Duration::from_millis(2500);

/// What the interface counted since `before`, once it has counted `ours` or will not any more; `None` when its
/// counters can no longer be read.
pub fn moved(reader: &mut CounterReader, before: &Counters, ours: u64) -> Option<Counters> {
    let start = Instant::now();
    loop {
        let moved = reader.read().ok()?.since(before);
        if moved.tx_packets >= ours || start.elapsed() > COUNTERS_SETTLE {
            return Some(moved);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Of frames that were handed over ([`engine::Counts::HandedOver`]) sent is what the interface counts, the rest was refused.
pub fn believe_the_interface(sent: &mut Sent, moved: &Counters) {
    let counters = &mut sent.counters;
    let missing = counters.frames.saturating_sub(moved.tx_packets);
    // A driver that counts no frame of XDP programs at all says nothing.
    if missing == 0 || moved.tx_packets == 0 {
        return;
    }
    let bytes = (u128::from(counters.bytes) * u128::from(missing) / u128::from(counters.frames)) as u64;
    counters.frames -= missing;
    counters.bytes -= bytes;
    counters.failed += missing;
    counters.failed_bytes += bytes;
}

/// Holds what we counted to what the interface did.
pub fn compare_counters(report: &mut Report, place: &Place, ours: u64, moved: Option<Counters>) {
    let Some(moved) = moved else {
        report.warnings.push(format!("the counters of {} can no longer be read", place.spec));
        return;
    };
    let mut compared = InterfaceCounters::compare(&place.spec, ours, moved.tx_packets);
    compared.tx_bytes = Some(moved.tx_bytes);
    compared.tx_errors = Some(moved.tx_errors);
    compared.tx_dropped = Some(moved.tx_dropped);
    if compared.missing_frames > 0 {
        report.result.verdict.fall_short(format!(
            "unaccounted frames: the kernel accepted {} but {} counts only {} as transmitted ({} dropped, {} errors): {} are missing",
            units::counted(ours, "frame"),
            place.spec,
            units::count(moved.tx_packets),
            units::count(moved.tx_dropped),
            units::count(moved.tx_errors),
            units::count(compared.missing_frames),
        ));
    }
    if compared.foreign_frames > 0 {
        report.warnings.push(format!(
            "{} sent {} that are not of this run: other programs use it, or the kernel itself does (ARP, IPv6)",
            place.spec,
            units::counted(compared.foreign_frames, "frame"),
        ));
    }
    if let Some(tx) = &mut report.result.tx {
        tx.interface_counters.push(compared);
    }
}

/// What rose at each end of the run.
pub fn counted(ends: Vec<(String, port::watch::Watch)>) -> Vec<HostCounter> {
    let of = |(place, watch): (String, port::watch::Watch)| {
        watch.end().into_iter().map(move |rise| host_counter(&place, rise))
    };
    ends.into_iter().flat_map(of).collect()
}

/// A rise at one end of the run.
pub fn host_counter(place: &str, rise: port::watch::Rise) -> HostCounter {
    // The cores serve all that happens on the machine.
    let place = if rise.source == Counting::Cores { "this machine" } else { place };
    HostCounter {
        place: place.to_owned(),
        source: rise.source.name().to_owned(),
        explains: rise.meaning().map(str::to_owned),
        name: rise.name,
        rise: rise.by,
    }
}

/// Where lost frames may have gone, by those who counted them.
pub fn where_they_went(counters: &[HostCounter]) -> Option<String> {
    let told = counters.iter().filter_map(|counter| {
        let why = counter.explains.as_ref()?;
        let HostCounter { place, name, rise, source, .. } = counter;
        Some(format!("{place} counts {} as {name} ({source}): {why}", units::count(*rise)))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("where frames may have gone: {}", told.join("; ")))
}

/// Two runs on one interface number their frames alike, so that the one's stand in for what the other lost: that shows
/// in frames that came twice, or long after their place, and are no more than the interface sent of others'.
pub fn another_run(report: &Report, odd: u64) -> Option<String> {
    let counted = report.result.tx.as_ref()?.interface_counters.iter();
    let others = counted.max_by_key(|counters| counters.foreign_frames)?;
    (odd > 0 && others.foreign_frames >= odd).then(|| {
        format!(
            "{} came twice or long after their place, and {} sent {} of others: if they are another netdyno's, they \
             stand in for what this run lost, and the loss may be larger than it says; give each run an interface of \
             its own",
            units::counted(odd, "signed frame"),
            others.interface,
            units::counted(others.foreign_frames, "frame"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counters_that_tell_are_named_for_a_loss() {
        let counter = |name: &str, explains: Option<&str>| HostCounter {
            place: "rx0".to_owned(),
            source: "interface".to_owned(),
            name: name.to_owned(),
            rise: 1_500,
            explains: explains.map(str::to_owned),
        };
        assert_eq!(where_they_went(&[counter("rx_packets", None)]), None);
        let told = where_they_went(&[
            counter("rx_packets", None),
            counter("rx_missed_errors", Some("the receive ring was full")),
        ]);
        assert_eq!(
            told.as_deref(),
            Some(
                "where frames may have gone: rx0 counts 1,500 as rx_missed_errors (interface): the receive ring was full"
            )
        );
    }
}
