//! Goals as users write them: `loss=0.1%,p99=50us,reorder=0%,exceed=50%,sum=21s`.

use crate::cli::search::share;
use anyhow::{Result, bail};
use report::units;
use std::time::Duration;
use traffic::rate::parse_duration;
use trial::{Broken, LatencyLimit, Limits, Outcome, Percentile};

/// What has to be kept, and how surely.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    pub limits: Limits,
    /// The share of time that may be bad.
    pub exceed: f64,
    /// Time until a load is decided.
    pub sum: Option<Duration>,
}

impl Goal {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Goal> {
        let mut goal = Goal { limits: Limits::default(), exceed: 0.0, sum: None };
        for part in text.split(',').map(str::trim) {
            let wrong = |why: &str| {
                anyhow::anyhow!(
                    "--goal {text}: {why}; write loss=0.1%, p99=50us (p50, p90, p99, p99.9, max), reorder=0%, exceed=50% or sum=21s, several with commas"
                )
            };
            let Some((name, value)) = part.split_once('=') else { return Err(wrong("a goal is NAME=VALUE")) };
            let ratio = || share(value).map_err(|why| wrong(&why));
            if let Some(percentile) = Percentile::ALL.into_iter().find(|p| p.name() == name) {
                let at_most = parse_duration(value).map_err(|why| wrong(&why.to_string()))?;
                if goal.limits.latency.is_some() {
                    return Err(wrong("one percentile of latency is possible"));
                }
                goal.limits.latency = Some(LatencyLimit { percentile, at_most_ns: super::nanos(at_most) });
                continue;
            }
            match name {
                "loss" => goal.limits.loss_ratio = ratio()?,
                "reorder" => goal.limits.reorder_ratio = Some(ratio()?),
                "exceed" => goal.exceed = ratio()?,
                "sum" => goal.sum = Some(parse_duration(value).map_err(|why| wrong(&why.to_string()))?),
                _ => return Err(wrong(&format!("`{name}` is not known"))),
            }
        }
        if goal.limits.loss_ratio >= 1.0 || goal.exceed >= 1.0 {
            bail!("--goal {text}: a goal that allows everything finds nothing: give less than 100%");
        }
        Ok(goal)
    }

    /// In words.
    pub fn text(&self) -> String {
        let mut text = format!("loss {}", units::percent(self.limits.loss_ratio));
        if let Some(limit) = self.limits.latency {
            text += &format!(", {} {}", limit.percentile, units::time(limit.at_most_ns));
        }
        if let Some(ratio) = self.limits.reorder_ratio {
            text += &format!(", reorder {}", units::percent(ratio));
        }
        if self.exceed > 0.0 {
            text += &format!(", but in {} of the time", units::percent(self.exceed));
        }
        text
    }

    /// What came of a trial, in two words at most.
    pub fn verdict(&self, outcome: &Outcome) -> &'static str {
        match self.limits.broken(outcome) {
            None => "passed",
            Some(Broken::Loss) => "loss",
            Some(Broken::Shortfall) => "sender short",
            Some(Broken::Latency) => "latency",
            Some(Broken::LatencyUnknown) => "latency unknown",
            Some(Broken::Order) => "order",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_as_written() {
        let goal = Goal::parse("loss=0.5%, p99.9=50us,reorder=1/1000,exceed=50%,sum=21s").unwrap();
        assert_eq!(goal.limits.loss_ratio, 0.005);
        assert_eq!(
            goal.limits.latency,
            Some(LatencyLimit { percentile: Percentile::P999, at_most_ns: 50_000 })
        );
        assert_eq!((goal.limits.reorder_ratio, goal.exceed), (Some(0.001), 0.5));
        assert_eq!(goal.sum, Some(Duration::from_secs(21)));
        for bad in
            ["", "loss", "loss=5", "loss=-1%", "loss=100%", "p98=1ms", "p99=5", "p50=1ms,p99=1ms", "x=1%"]
        {
            let error = Goal::parse(bad).expect_err(bad).to_string();
            assert!(error.starts_with(&format!("--goal {bad}:")), "{error}");
        }
    }
}
