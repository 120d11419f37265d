//! What of a trial's loss may be the tester's own: frames that its receiving side lost, and frames that nobody saw leave.
//!
//! A figure here is the most that may be the tester's. Too much makes a trial one that says nothing, which is done again;
//! too little would blame the device.

use port::watch::Source;
use report::{HostCounter, Report};
use std::collections::BTreeMap;

/// The kernel's counters of what an interface lost while receiving. Frames that came damaged are not among them: who
/// damaged them is not known, and a device that does loses them.
const RECEIVING: [&str; 5] =
    ["rx_missed_errors", "rx_dropped", "rx_fifo_errors", "rx_length_errors", "rx_nohandler"];

/// Frames that the receiving side may have lost, at `receivers` and behind them. `device_here`: the device under test shares
/// the cores, so what their backlogs drop may be its own loss.
pub fn missed(report: &Report, receivers: &[&str], device_here: bool) -> u64 {
    let Some(rx) = &report.result.rx else { return 0 };
    if rx.blind_because.is_some() {
        return report.result.loss.map_or(0, |loss| loss.frames);
    }
    let here = |source: Source| {
        let of = move |counter: &&HostCounter| {
            counter.source == source.name()
                && match source {
                    Source::Cores => is_receivers(&counter.place, receivers),
                    _ => receivers.contains(&counter.place.as_str()),
                }
        };
        report.result.counters.iter().filter(of)
    };
    let gone = |counter: &HostCounter| counter.rise.saturating_sub(counter.own_frames.unwrap_or(0));
    let interface = here(Source::Interface).filter(|counter| RECEIVING.contains(&&*counter.name));
    let interface = sum(interface.map(gone));
    // Of each name without its numbers, added up over queues. Names overlap, with the kernel's, too: the most counts.
    let mut driver: BTreeMap<String, u64> = BTreeMap::new();
    let losing = |counter: &&HostCounter| counter.explains.is_some() && !counter.name.contains("crc");
    let receiving = |counter: &&HostCounter| counter.name.contains("rx") && !counter.name.contains("tx");
    for counter in here(Source::Driver).filter(losing).filter(receiving) {
        let name = counter.name.replace(|c: char| c.is_ascii_digit(), "");
        let all: &mut u64 = driver.entry(name).or_default();
        *all = all.saturating_add(gone(counter));
    }
    let backlog = here(Source::Cores).filter(|counter| counter.name == "dropped" && !device_here);
    let backlog = sum(backlog.map(|counter| counter.rise));
    let most = interface.max(driver.into_values().max().unwrap_or(0));
    most.saturating_add(backlog).saturating_add(rx.dropped_frames.unwrap_or(0))
}

/// It may be an agent's word.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Is this machine the one where frames arrive? One of several agents has its name.
fn is_receivers(machine: &str, receivers: &[&str]) -> bool {
    match machine.split_once('@') {
        Some((_, agent)) => {
            receivers.iter().any(|receiver| receiver.rsplit_once('@').is_some_and(|(_, at)| at == agent))
        }
        None => true,
    }
}

/// Frames that may never have left.
pub fn unconfirmed(report: &Report) -> u64 {
    let Some(tx) = &report.result.tx else { return 0 };
    match tx.interface_counters.is_empty() {
        // Whoever could have counted them was not asked, or did not answer.
        true => tx.totals.frames,
        false => tx.unconfirmed_frames.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Choice, InterfaceCounters, Rx, Totals, Tx};

    fn report(counters: &[(&str, Source, &str, u64)]) -> Report {
        let mut report = Report::new("trial");
        let counter = |&(place, source, name, rise): &(&str, Source, &str, u64)| HostCounter {
            place: place.to_owned(),
            source: source.name().to_owned(),
            name: name.to_owned(),
            rise,
            own_frames: None,
            explains: Some(String::new()),
        };
        report.result.counters = counters.iter().map(counter).collect();
        report.result.rx = Some(Rx { totals: Totals::over(900, 54_000, 1_000_000_000), ..Rx::default() });
        report.result.loss = Some(report::Loss::of(100, 1000));
        report.environment.meter = Some(Choice { name: "xdp".to_owned(), ..Choice::default() });
        report
    }

    #[test]
    fn what_the_receiving_side_lost_is_found_wherever_it_is_counted() {
        use Source::{Cores, Driver, Interface, Stack};
        for (counters, device_here, expected) in [
            (&[("rx0", Interface, "rx_missed_errors", 7), ("rx0", Interface, "rx_dropped", 5)][..], true, 12),
            // The other end's, the sending ones, damaged ones and the stack's are no losses of the receiver.
            (&[("tx0", Interface, "rx_missed_errors", 7), ("rx0", Interface, "tx_dropped", 5)], false, 0),
            (&[("rx0", Interface, "rx_crc_errors", 7), ("rx0", Stack, "UdpInCsumErrors", 5)], false, 0),
            // The same frames by several names; queues add up.
            (
                &[
                    ("rx0", Interface, "rx_missed_errors", 4),
                    ("rx0", Driver, "rx_no_buffer_count", 4),
                    ("rx0", Driver, "rx_queue_0_drops", 3),
                    ("rx0", Driver, "rx_queue_1_drops", 3),
                    ("rx0", Driver, "tx_queue_1_drops", 30),
                ],
                false,
                6,
            ),
            (&[("this machine", Cores, "dropped", 9)], false, 9),
            // Where each end is another's, the sender's losses are none of the receiver.
            (&[("this machine@near", Cores, "dropped", 9)], false, 0),
            (
                &[("rx0", Interface, "rx_missed_errors", u64::MAX), ("rx0", Interface, "rx_dropped", 2)],
                false,
                u64::MAX,
            ),
            (&[("this machine", Cores, "dropped", 9)], true, 0),
        ] {
            assert_eq!(missed(&report(counters), &["rx0"], device_here), expected, "{counters:?}");
        }
        // A driver that counts what our own program drops.
        let mut ours = report(&[("rx0", Interface, "rx_dropped", 903), ("rx0", Driver, "rx0_drops", 903)]);
        ours.result.counters.iter_mut().for_each(|counter| counter.own_frames = Some(900));
        assert_eq!(missed(&ours, &["rx0"], false), 3);
        let mut socket = report(&[("rx0", Interface, "rx_dropped", 900)]);
        socket.environment.meter = Some(Choice { name: "packet".to_owned(), ..Choice::default() });
        if let Some(rx) = &mut socket.result.rx {
            rx.dropped_frames = Some(11);
        }
        assert_eq!(missed(&socket, &["rx0"], false), 911);
    }

    #[test]
    fn a_blind_meter_lost_all_that_is_missing() {
        let mut blind = report(&[]);
        assert_eq!(missed(&blind, &["rx0"], false), 0);
        if let Some(rx) = &mut blind.result.rx {
            rx.blind_because = Some("its meter was detached".to_owned());
        }
        assert_eq!(missed(&blind, &["rx0"], false), 100);
    }

    #[test]
    fn frames_that_nobody_could_count_are_unconfirmed() {
        let mut uncounted = report(&[]);
        assert_eq!(unconfirmed(&uncounted), 0);
        let totals = Totals::over(1000, 60_000, 1_000_000_000);
        uncounted.result.tx = Some(Tx { totals, ..Tx::default() });
        assert_eq!(unconfirmed(&uncounted), 1000);
        let seen = InterfaceCounters::compare("tx0", 1000, 990);
        uncounted.result.tx = Some(Tx {
            totals,
            interface_counters: vec![seen],
            unconfirmed_frames: Some(10),
            ..Tx::default()
        });
        assert_eq!(unconfirmed(&uncounted), 10);
    }
}
