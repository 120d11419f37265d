//! Goals as users write them: `loss=0.1%,p99=50us,reorder=0%,exceed=50%,sum=21s`, or a name that others use, `ndr`, `pdr`.

use anyhow::{Result, bail};
use report::search::TrialVerdict;
use report::units;
use spec::{Quantity, Ratio};
use std::time::Duration;
use traffic::rate::parse_duration;
use trial::{Broken, Delay, Limits, Outcome};

/// What has to be kept, and how surely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// As others call it.
    name: Option<&'static str>,
    pub limits: Limits,
    /// The share of time that may be bad.
    pub exceed: f64,
    /// Time until a load is decided.
    pub sum: Option<Duration>,
    /// Length of a trial, if another than that of the search.
    pub trial: Option<Duration>,
}

/// FD.io CSIT's goals: so many trials of a second, of which half may exceed the loss.
const CSIT_TRIAL: Duration = Duration::from_secs(1);
const CSIT_SUM: Duration = Duration::from_secs(21);
const CSIT_EXCEED: f64 = 0.5;
/// No drop rate, and partial drop rate, with their losses.
const CSIT: [(&str, &str, f64); 2] = [("ndr", "NDR", 0.0), ("pdr", "PDR", 0.005)];

/// A sender that fell short by more did not offer the load: half of the precision that searches have by default.
pub const SHORTFALL: f64 = 0.00125;

impl Goal {
    /// Trials that only measure: whatever comes of the load passes.
    pub fn any() -> Goal {
        Goal { name: None, limits: limits(1.0), exceed: 0.0, sum: None, trial: None }
    }

    /// Not a frame lost.
    pub fn no_loss() -> Goal {
        Goal { limits: limits(0.0), ..Self::any() }
    }

    /// For a search that is so exact: what is found is then as exact, too.
    pub fn within(mut self, precision: f64) -> Goal {
        self.limits.shortfall_ratio = Some((precision / 2.0).min(4.0 * SHORTFALL));
        self
    }

    fn named(name: &str) -> Option<Goal> {
        let (_, name, loss) = CSIT.into_iter().find(|(written, ..)| name.eq_ignore_ascii_case(written))?;
        Some(Goal {
            name: Some(name),
            limits: limits(loss),
            exceed: CSIT_EXCEED,
            sum: Some(CSIT_SUM),
            trial: Some(CSIT_TRIAL),
        })
    }

    /// Reads one. What follows a name changes it: `pdr,sum=5s`.
    pub fn parse(text: &str) -> Result<Goal> {
        let mut goal = Self::no_loss();
        for (number, part) in text.split(',').map(str::trim).enumerate() {
            let wrong = |why: &str| {
                anyhow::anyhow!(
                    "`.goal` {text}: {why}; write loss=0.1%, p99=50us (p50, p90, p99, p99.9, max, pdv, ipdv, jitter), reorder=0%, exceed=50%, sum=21s or trial=1s, several with commas; or ndr or pdr"
                )
            };
            if let (0, Some(named)) = (number, Self::named(part)) {
                goal = named;
                continue;
            }
            let Some((name, value)) = part.split_once('=') else { return Err(wrong("a goal is NAME=VALUE")) };
            let ratio = || Ratio::read(value).map(|ratio| ratio.0).map_err(|why| wrong(&why));
            let time = || parse_duration(value).map_err(|why| wrong(&why.to_string()));
            if let Some(delay) = Delay::ALL.into_iter().find(|delay| delay.name() == name) {
                goal.limits.delays = goal.limits.delays.and(delay, super::nanos(time()?));
                continue;
            }
            match name {
                "loss" => goal.limits.loss_ratio = ratio()?,
                "reorder" => goal.limits.reorder_ratio = Some(ratio()?),
                "exceed" => goal.exceed = ratio()?,
                "sum" => goal.sum = Some(time()?),
                "trial" => goal.trial = Some(time()?),
                _ => return Err(wrong(&format!("`{name}` is not known"))),
            }
        }
        if goal.limits.loss_ratio >= 1.0 || goal.exceed >= 1.0 {
            bail!("`.goal` {text}: a goal that allows everything finds nothing: give less than 100%");
        }
        if goal.trial.is_some_and(|trial| trial < Duration::from_millis(10)) {
            bail!("`.goal` {text}: a trial of less than 10 ms says nothing; give trial=10ms or more");
        }
        Ok(goal)
    }

    /// What one trial of it decides alone, as bisection has it: the limits of a name, without its sums. `None` where sums
    /// were asked for by hand.
    pub fn by_one_trial(&self) -> Option<Goal> {
        let plain = Goal { exceed: 0.0, sum: None, trial: None, ..*self };
        let asked_for = self.name.is_none() && *self != plain;
        (!asked_for).then_some(plain)
    }

    /// In words.
    pub fn text(&self) -> String {
        let mut text = self.name.map(|name| format!("{name}: ")).unwrap_or_default();
        text += &format!("loss {}", units::percent(self.limits.loss_ratio));
        for (delay, at_most) in self.limits.delays.iter() {
            text += &format!(", {delay} {}", units::time(at_most));
        }
        if let Some(ratio) = self.limits.reorder_ratio {
            text += &format!(", reorder {}", units::percent(ratio));
        }
        if self.exceed > 0.0 {
            text += &format!(", but in {} of the time", units::percent(self.exceed));
        }
        text
    }

    /// What came of a trial.
    pub fn verdict(&self, outcome: &Outcome) -> TrialVerdict {
        verdict(self.limits.broken(outcome))
    }
}

/// What was not kept, as the report says it.
fn verdict(broken: Option<Broken>) -> TrialVerdict {
    match broken {
        None => TrialVerdict::Passed,
        Some(Broken::Loss) => TrialVerdict::Loss,
        Some(Broken::Shortfall) => TrialVerdict::SenderShort,
        Some(Broken::Uneven) => TrialVerdict::SenderUneven,
        Some(Broken::Receiver) => TrialVerdict::ReceiverLost,
        Some(Broken::Unconfirmed) => TrialVerdict::Unconfirmed,
        Some(Broken::Latency) => TrialVerdict::Latency,
        Some(Broken::Variation) => TrialVerdict::Variation,
        Some(Broken::LatencyUnknown) => TrialVerdict::LatencyUnknown,
        Some(Broken::Order) => TrialVerdict::Order,
    }
}

/// So much loss, of a load that was offered.
fn limits(loss: f64) -> Limits {
    Limits { shortfall_ratio: Some(SHORTFALL), ..Limits::loss(loss) }
}

/// Why nothing could be said of the device, in one clause, for trials of these verdicts.
pub fn excuse<'a>(verdicts: impl Iterator<Item = &'a TrialVerdict>) -> String {
    let all: Vec<&TrialVerdict> = verdicts.collect();
    let of = |verdict: TrialVerdict, words: &'static str| all.contains(&&verdict).then_some(words);
    let said = [
        of(TrialVerdict::SenderShort, "the sender did not keep to the load"),
        of(TrialVerdict::SenderUneven, "this machine, which the device shares, was held up"),
        of(TrialVerdict::ReceiverLost, "the tester's own receiver lost frames"),
        of(TrialVerdict::Unconfirmed, "nobody confirmed that the frames left the tester"),
        of(TrialVerdict::LatencyUnknown, "no latency could be taken"),
    ];
    let said: Vec<&str> = said.into_iter().flatten().collect();
    if said.is_empty() { "the sender did not keep to the load".to_owned() } else { said.join(", or ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trial::Delays;

    #[test]
    fn goals_are_read_as_written() {
        let goal =
            Goal::parse("loss=0.5%, p99.9=50us,pdv=9us,reorder=1/1000,exceed=50%,sum=21s,trial=1s").unwrap();
        assert_eq!(goal.limits.loss_ratio, 0.005);
        let delays = Delays::default().and(Delay::P999, 50_000).and(Delay::Variation, 9_000);
        assert_eq!(goal.limits.delays, delays);
        assert_eq!((goal.limits.reorder_ratio, goal.exceed), (Some(0.001), 0.5));
        assert_eq!(goal.sum, Some(Duration::from_secs(21)));
        assert_eq!(goal.trial, Some(Duration::from_secs(1)));
        for bad in ["", "loss", "loss=5", "loss=-1%", "loss=100%", "p98=1ms", "p99=5", "x=1%", "loss=0%,ndr"]
        {
            let error = Goal::parse(bad).expect_err(bad).to_string();
            assert!(error.starts_with(&format!("`.goal` {bad}:")), "{error}");
        }
    }

    #[test]
    fn verdicts_say_whose_fault_it_was() {
        use Broken::{
            Latency, LatencyUnknown, Loss, Order, Receiver, Shortfall, Unconfirmed, Uneven, Variation,
        };
        for broken in
            [Loss, Shortfall, Uneven, Receiver, Unconfirmed, Latency, LatencyUnknown, Variation, Order]
        {
            assert_eq!(verdict(Some(broken)).is_the_testers(), broken.is_the_testers(), "{broken:?}");
        }
        assert!(!TrialVerdict::Passed.is_the_testers() && !TrialVerdict::PortLost.is_the_testers());
        let verdicts = ["passed", "unconfirmed", "loss", "receiver lost"].map(TrialVerdict::from);
        let excused = excuse(verdicts.iter());
        assert_eq!(
            excused,
            "the tester's own receiver lost frames, or nobody confirmed that the frames left the tester"
        );
    }

    #[test]
    fn names_of_others_are_known() {
        let pdr = Goal::parse("pdr").unwrap();
        let written = Goal::parse("loss=0.5%,exceed=50%,sum=21s,trial=1s").unwrap();
        assert_eq!(Goal { name: None, ..pdr }, written);
        assert_eq!(Goal::parse("NDR").unwrap().limits, limits(0.0));
        assert_eq!(Goal::parse("pdr,sum=5s").unwrap().sum, Some(Duration::from_secs(5)));
        // Bisection takes their limits alone, and refuses sums that were asked for.
        assert_eq!(pdr.by_one_trial().unwrap().limits, limits(0.005));
        assert_eq!(pdr.by_one_trial().unwrap().sum, None);
        assert_eq!(written.by_one_trial(), None);
        assert_eq!(pdr.text(), "PDR: loss 0.50 %, but in 50.0 % of the time");
    }
}
