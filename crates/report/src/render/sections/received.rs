//! What arrived and what did not, in lines and facts.

use super::{Line, Section};
use crate::data::figure::Measured;
use crate::data::model::Report;
use crate::data::sections::received::{Rx, figures};
use crate::data::sections::totals::Totals;
use crate::data::units;
use crate::render::html::grid::Facts;

/// Where arrivals lasted longer than was sent: for how long.
fn longer(report: &Report) -> Option<String> {
    arrivals(report.result.rx.as_ref()?, &report.result.tx.as_ref()?.totals)
}

fn arrivals(came: &Rx, sent: &Totals) -> Option<String> {
    let span = came.arrival_span_ns.filter(|_| came.is_over_arrivals(sent))?;
    Some(format!("arrivals went on for {}, which received rates are over", units::time(span)))
}

pub(super) struct Received;

impl Section for Received {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let mut facts: Vec<_> = figures(report).iter().filter_map(Measured::fact).collect();
        facts.extend(longer(report));
        vec![Line::facts("receiver", facts)]
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        facts.figures(&figures(report));
        facts.maybe("arrivals", longer(report));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rx(frames: u64, span_ns: u64) -> Rx {
        Rx { totals: Totals::over(frames, frames * 60, span_ns), ..Rx::default() }
    }

    #[test]
    fn of_as_many_frames_the_rate_is_that_of_what_was_sent() {
        let sent = Totals::over(10_000, 600_000, 2_000_000_000);
        for span in [1_999_960_000, 2_000_000_000, 2_000_040_000] {
            let mut came = rx(10_000, span);
            came.over_sending_time(&sent);
            assert_eq!((&came.totals, came.arrival_span_ns), (&sent, Some(span)));
            assert_eq!(arrivals(&came, &sent), None);
        }
        // A single frame has no time of its own, nor has what was not timed.
        let mut alone = rx(1, 0);
        alone.over_sending_time(&Totals::over(1, 60, 1_000_000));
        assert_eq!(alone.totals.frames_per_second, 1000.0);
        alone.over_sending_time(&Totals::default());
        assert_eq!(alone.totals.frames_per_second, 1000.0);
    }

    #[test]
    fn a_queue_that_is_emptied_after_the_last_frame_was_sent_is_told_and_makes_no_path_faster() {
        let sent = Totals::over(10_000, 600_000, 2_000_000_000);
        let mut came = rx(10_000, 4_000_000_000);
        came.over_sending_time(&sent);
        assert_eq!(came.totals.frames_per_second, 2500.0);
        assert_eq!(
            arrivals(&came, &sent).as_deref(),
            Some("arrivals went on for 4.00 s, which received rates are over")
        );
        // As short as it may be: 300 frames that were handed over in 0.2 ms and came in 3.6.
        let mut came = rx(300, 3_600_000);
        came.over_sending_time(&Totals::over(300, 18_000, 200_000));
        assert!(came.totals.frames_per_second < 84_000.0, "{:?}", came.totals);
    }

    #[test]
    fn what_came_before_an_outage_did_not_come_all_the_time() {
        let mut came = rx(5_000, 1_000_000_000);
        came.over_sending_time(&Totals::over(10_000, 600_000, 2_000_000_000));
        assert_eq!(came.totals.frames_per_second, 2500.0);
    }

    #[test]
    fn beside_frames_of_others_the_time_of_arrivals_says_nothing() {
        let sent = Totals::over(10_000, 600_000, 2_000_000_000);
        let mut came = rx(10_000, 2_500_000_000);
        came.over_sending_time(&sent);
        came.others_came(&sent);
        assert_eq!((came.totals.frames_per_second, came.arrival_span_ns), (5000.0, None));
        assert_eq!(arrivals(&came, &sent), None);
    }

    #[test]
    fn a_result_of_before_keeps_its_rates() {
        let old = serde_json::json!({
            "frames": 10, "bytes": 600, "duration_ns": 999_979_906, "frames_per_second": 10.1,
            "bits_per_second": 1.0, "bits_per_second_l1": 2.0
        });
        let old: Rx = serde_json::from_value(old).expect("readable");
        assert_eq!((old.totals.frames_per_second, old.arrival_span_ns), (10.1, None));
        assert_eq!(arrivals(&old, &Totals::over(10, 600, 900_000_000)), None);
    }
}
