//! When a trial that did not pass is done again: what a moment's stall of this machine explains says nothing of the device.

use trial::{Broken, Outcome};

/// More than this is not lost for a moment's stall, nor is what a load makes in so many seconds.
const LITTLE: f64 = 0.1;
const STALL_S: f64 = 0.03;
/// A sender that falls short by more than this will do so again.
const MOMENTARY: f64 = 0.5;
/// Trials of which the sender's part is known to be wrong are repeated so many times as often as others.
const SENDERS: u32 = 4;

/// May it be done again, if it was not yet so often? `broken` is what it did not keep; in a lab the device shares this
/// machine, and loses frames when the machine does something else. `seconds` is what the trial sent for, if it is told.
pub fn most(
    broken: Option<Broken>,
    outcome: &Outcome,
    seconds: Option<f64>,
    in_a_lab: bool,
    retries: u32,
) -> u32 {
    let shortfall = outcome.shortfall_ratio();
    let lost = outcome.loss_ratio() - shortfall;
    let moment = seconds.map_or(LITTLE, |seconds| (STALL_S / seconds.max(STALL_S)).min(LITTLE));
    match broken {
        None => 0,
        // Nothing is known of the device when the sender fell short, or was held up, unless much was lost all the same: a
        // search that took this for its upper bound would find the sender.
        Some(Broken::Shortfall) if shortfall < MOMENTARY => SENDERS * retries,
        Some(Broken::Uneven) if lost < LITTLE => SENDERS * retries,
        Some(Broken::Loss) if shortfall > 0.0 && shortfall < MOMENTARY && lost < LITTLE => SENDERS * retries,
        // Loss verification, as in ETSI GS NFV-TST 009, 12.3.3.
        Some(Broken::Loss) if outcome.loss_ratio() > moment => 0,
        Some(_) if (in_a_lab || outcome.uneven > 0) && outcome.loss_ratio() < LITTLE => retries,
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sender_did_is_tried_more_often_than_what_the_device_did() {
        let of = |intended, sent, received, uneven| {
            let outcome = Outcome { intended, sent, received, uneven, ..Outcome::default() };
            let broken = trial::Limits::default().broken(&outcome);
            [false, true].map(|in_a_lab| most(broken, &outcome, Some(0.3), in_a_lab, 2))
        };
        assert_eq!(of(100, 100, 100, 9), [0, 0]);
        assert_eq!(of(100, 60, 60, 0), [8, 8]);
        assert_eq!(of(100, 40, 40, 0), [0, 0]);
        assert_eq!(of(100, 100, 95, 9), [8, 8]);
        assert_eq!(of(100, 100, 95, 0), [0, 2]);
        assert_eq!(of(100, 100, 95, 1), [2, 2]);
        assert_eq!(of(100, 100, 50, 60), [0, 0]);
        assert_eq!(of(100, 99, 98, 0), [8, 8]);
        // In a minute no moment's stall loses a hundredth.
        let outcome = Outcome { intended: 1000, sent: 1000, received: 990, ..Outcome::default() };
        assert_eq!(most(Some(Broken::Loss), &outcome, Some(60.0), true, 2), 0);
        assert_eq!(most(Some(Broken::Loss), &outcome, Some(1.0), true, 2), 2);
        assert_eq!(most(Some(Broken::Loss), &outcome, None, true, 2), 2);
    }
}
