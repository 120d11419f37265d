//! What stopped a search, by the causes of its trials: that of the one that failed nearest to what passed. Where none failed
//! it is the end of the loads that could be tried.

use super::{By, Cause, OF_THE_LAB};
use crate::data::model::Report;
use crate::data::search::{FlowTrial, Part, SizeResult, Stage, Trial, TrialVerdict};
use crate::data::units::{self, printable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of searches whose trials look for a limit. In others losses are wanted (recovery, reset), or only measured.
static PARTS: [Part; 7] =
    [Part::Throughput, Part::Loss, Part::Burst, Part::Soak, Part::Flows, Part::Confirm, Part::Sustained];

/// What kept a search from more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Where the loads ended that passed.
    pub at: StoppedAt,
    /// Number of the trial that failed nearest to what passed, where the loads ended at a `trial`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// Number of trials that failed.
    #[serde(default, skip_serializing_if = "none")]
    pub failed_trials: u32,
    /// Number of trials that failed by the same cause.
    #[serde(default, skip_serializing_if = "none")]
    pub alike_trials: u32,
    /// What made that trial fail, or limits the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn none(count: &u32) -> bool {
    *count == 0
}

/// Where the loads ended that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedAt {
    /// Higher ones failed.
    Trial,
    /// Higher ones were not asked for.
    Asked,
    /// The link carries no higher ones.
    Link,
    /// The sender reaches no higher ones.
    Sender,
    /// That is not known.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Of a trial that was judged, if it lost frames or its sender was short.
fn of_trial(trial: &Trial) -> Option<Cause> {
    let by_goal = |said: &str| Some(Cause::new(By::Goal, said, ""));
    match trial.verdict {
        TrialVerdict::Latency => by_goal("the latency was above its limit"),
        TrialVerdict::Variation => by_goal("delays differed by more than their limit"),
        TrialVerdict::Order => by_goal("more frames were out of order than allowed"),
        TrialVerdict::LatencyUnknown => Some(Cause::new(By::Unknown, "no latency was measured", "")),
        TrialVerdict::SenderUneven => Some(Cause::new(
            By::Machine,
            "this machine limits: it was busy, and held up the sender, or the kernel's packet threads behind it",
            "`netdyno doctor` says what this machine can do better",
        )),
        TrialVerdict::Unconfirmed => Some(Cause::new(
            By::Unknown,
            "no counter saw the missing frames leave the tester",
            "another `.engine` (afxdp, packet) has its frames counted",
        )),
        // Of flows it is not told by frames that arrived: none are counted.
        _ => match &trial.flows {
            Some(flows) => of_flows(flows),
            None => trial.cause.clone(),
        },
    }
}

/// Where a probe lost what it has no records of.
pub fn of_flows(flows: &FlowTrial) -> Option<Cause> {
    let of = |lost: u64, noun: &str| (lost > 0).then(|| units::counted(lost, noun));
    if let Some(messages) = of(flows.collector_lost_messages, "message") {
        let said = format!("the tester's own collector lost {messages} of the probe's");
        return Some(Cause::new(By::Receiver, said, ""));
    }
    let lost = [
        (of(flows.port_lost_packets.unwrap_or(0), "packet"), "on the way in (its port or socket)"),
        (of(flows.cache_lost_flows, "flow"), "inside (its cache)"),
        (of(flows.export_lost_records, "record"), "on the way out (its export)"),
    ];
    let lost: Vec<String> =
        lost.into_iter().filter_map(|(lost, place)| Some(format!("{} {place}", lost?))).collect();
    (!lost.is_empty()).then(|| Cause::new(By::Device, format!("the probe lost {}", lost.join(", and ")), ""))
}

/// What stopped the search of one size, if a trial did.
pub fn stopped(size: &SizeResult, trials: &[Trial]) -> Option<Stopped> {
    let own =
        |t: &&Trial| t.frame_size == size.frame_size && PARTS.contains(&t.part) && t.stage != Stage::WarmUp;
    let failed = |t: &&Trial| !matches!(t.verdict, TrialVerdict::Passed | TrialVerdict::PortLost);
    let failed: Vec<&Trial> = trials.iter().filter(own).filter(failed).collect();
    // Trials are judged by the first goal.
    let passed = size.of_first_goal().map(|found| found.frames_per_second);
    let passed = passed.or(size.found).or(size.burst.map(|burst| burst.frames.mean));
    // What says nothing of the device stopped it only where nothing else did.
    let by_device: Vec<&Trial> = failed.iter().copied().filter(|t| !t.verdict.is_the_testers()).collect();
    let among = if by_device.is_empty() { &failed } else { &by_device };
    let distance = |t: &&&Trial| passed.map_or(t.load, |passed| (t.load - passed).abs());
    let nearest = among.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let cause = of_trial(nearest);
    let alike = |t: &&&Trial| match (&cause, of_trial(t)) {
        (Some(one), Some(other)) => one.is_like(&other) && t.verdict == nearest.verdict,
        (one, other) => one.is_none() && other.is_none(),
    };
    Some(Stopped {
        at: StoppedAt::Trial,
        trial: Some(nearest.number),
        failed_trials: u32::try_from(failed.len()).unwrap_or(u32::MAX),
        alike_trials: u32::try_from(failed.iter().filter(alike).count()).unwrap_or(u32::MAX),
        cause,
    })
}

/// What happened to frames of several sizes, a clause for each kind: the first size's figures stand for it.
fn by_size<T>(
    of_sizes: Vec<(String, T)>,
    like: impl Fn(&T, &T) -> bool,
    say: impl Fn(&T) -> String,
) -> Vec<String> {
    let mut grouped: Vec<(Vec<String>, T)> = Vec::new();
    for (size, what) in of_sizes {
        match grouped.iter_mut().find(|(_, first)| like(first, &what)) {
            Some((sizes, _)) => sizes.push(printable(&size)),
            None => grouped.push((vec![printable(&size)], what)),
        }
    }
    let named = |sizes: &[String]| match sizes.iter().all(|s| s.bytes().all(|b| b.is_ascii_digit())) {
        true => format!("frames of {} bytes", sizes.join(", ")),
        false => format!("frames of {}", sizes.join(", ")),
    };
    let clause = |(sizes, what): &(Vec<String>, T)| {
        let (first, others) = sizes.split_at(1);
        let others = if others.is_empty() { String::new() } else { format!("; {}: the same", named(others)) };
        format!("{}: {}{others}", named(first), say(what))
    };
    grouped.iter().map(clause).collect()
}

/// Of the trials of one command, as one: sizes with the same cause stand together, with the figures of the first.
pub(super) fn of_trials(trials: &[Trial]) -> Option<Cause> {
    let failed =
        trials.iter().filter(|t| !matches!(t.verdict, TrialVerdict::Passed | TrialVerdict::PortLost));
    // What verdicts say of the others needs no cause.
    let causes: Vec<(String, Cause)> =
        failed.filter_map(|t| Some((t.frame_size.clone(), t.cause.clone()?))).collect();
    let first = causes.first().map(|(_, cause)| cause.clone())?;
    if trials.len() == 1 {
        return Some(first);
    }
    let said = by_size(causes, Cause::is_like, |cause| cause.said.clone());
    Some(Cause { said: said.join("; "), ..first })
}

/// What stopped a search, a clause for each kind, and what to type next.
pub(crate) fn said(report: &Report) -> Option<(String, Option<String>)> {
    let search = report.result.search.as_ref()?;
    let whole = search.sizes.iter().filter(|size| size.unfinished.is_empty());
    let found = whole.filter_map(|size| Some((size.frame_size.clone(), size.stopped.as_ref()?)));
    let clauses: Vec<(String, (String, &Stopped))> =
        found.filter_map(|(size, stopped)| Some((size, (in_words(stopped, report)?, stopped)))).collect();
    let alike = |(_, one): &(String, &Stopped), (_, other): &(String, &Stopped)| {
        let same = match (&one.cause, &other.cause) {
            (Some(one), Some(other)) => one.is_like(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        one.at == other.at && same
    };
    let next = clauses.iter().filter_map(|(_, (_, stopped))| stopped.cause.as_ref()).find_map(next);
    if search.sizes.len() == 1 {
        return clauses.into_iter().next().map(|(_, (words, _))| (words, next));
    }
    const MOST: usize = 4;
    let mut all = by_size(clauses, alike, |(words, _)| words.clone());
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    if more > 0 {
        all.push(format!("and {more} more in the JSON"));
    }
    (!all.is_empty()).then(|| (all.join("; "), next))
}

/// What to type next: a search is not to be searched again.
fn next(cause: &Cause) -> Option<String> {
    let at_the_tester = match cause.by {
        By::Counter => cause.counter.as_ref().is_some_and(|c| !c.place.starts_with(OF_THE_LAB)),
        By::Receiver | By::Bursts | By::Link | By::Interface | By::Cpu | By::Machine => true,
        By::Dropped | By::Nothing | By::Queue | By::Device | By::Goal | By::Unknown => false,
    };
    (at_the_tester && !cause.next.is_empty()).then(|| cause.next.clone())
}

fn in_words(stopped: &Stopped, report: &Report) -> Option<String> {
    let cause = || stopped.cause.as_ref().map(|cause| printable(&cause.said));
    Some(match stopped.at {
        StoppedAt::Trial => {
            let trial = report.result.trials.iter().find(|t| Some(t.number) == stopped.trial)?;
            let load = match trial.intended_frames_per_second {
                Some(rate) => units::frame_rate(rate),
                None if trial.flows.is_some() => units::flow_rate(trial.load),
                None => {
                    let axis = report.result.search.as_ref().map(|s| s.axis.in_words());
                    format!("{} {}", units::count(trial.load as u64), axis.unwrap_or_default())
                }
            };
            let why = cause().unwrap_or_else(|| {
                "which part lost frames is not known: the result has no counters of that trial".to_owned()
            });
            let often = match stopped.failed_trials {
                0 | 1 => String::new(),
                failed => {
                    let trials = units::counted(failed.into(), "trial");
                    format!(" (so in {} of {trials} that failed)", stopped.alike_trials)
                }
            };
            format!("at {load} {why}{often}")
        }
        StoppedAt::Sender => {
            let why = cause().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("the sender: it reaches no higher load{why}, and the device passed all that were tried")
        }
        StoppedAt::Link => {
            "the link: it carries no higher load, and the device passed all that were tried".to_owned()
        }
        StoppedAt::Asked => {
            "no higher load was asked for, and the device passed all that were tried (`.max`)".to_owned()
        }
        StoppedAt::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::HostCounter;
    use crate::data::search::{SearchResult, Throughput};

    fn dropped(place: &str, rise: u64) -> Cause {
        let counter =
            HostCounter { place: place.into(), name: "tbf_dropped".into(), rise, ..HostCounter::default() };
        let said = format!("{place} dropped {rise} frames");
        Cause { counter: Some(counter), ..Cause::new(By::Counter, said, "`netdyno doctor`") }
    }

    fn trial(number: u32, load: f64, verdict: &str, cause: Option<Cause>) -> Trial {
        Trial {
            number,
            part: Part::Throughput,
            frame_size: "64".into(),
            load,
            intended_frames_per_second: Some(load),
            verdict: verdict.into(),
            cause,
            ..Trial::default()
        }
    }

    fn size(found: Option<f64>) -> SizeResult {
        let found = found.map(|rate| Throughput { frames_per_second: rate, ..Throughput::default() });
        SizeResult { frame_size: "64".into(), throughput: vec![found], ..SizeResult::default() }
    }

    fn shown(size: SizeResult, trials: Vec<Trial>) -> String {
        let mut report = Report::new("search");
        report.result.search = Some(SearchResult { sizes: vec![size], ..SearchResult::default() });
        report.result.trials = trials;
        said(&report).map(|(said, _)| said).unwrap_or_default()
    }

    #[test]
    fn what_stopped_a_search_is_the_cause_of_the_nearest_failure() {
        let dut = "the lab's dut1";
        let trials = vec![
            trial(1, 4000.0, "loss", Some(dropped(dut, 900))),
            trial(2, 1000.0, "passed", None),
            trial(3, 1100.0, "loss", Some(dropped(dut, 7))),
            trial(4, 1050.0, "sender short", Some(Cause::new(By::Cpu, "the CPU limits", ""))),
            // With nothing but its load.
            Trial { part: Part::Recovery, ..trial(5, 1001.0, "loss", None) },
        ];
        let mut found = size(Some(1000.0));
        let stopped = stopped(&found, &trials).expect("a trial");
        assert_eq!((stopped.trial, stopped.failed_trials, stopped.alike_trials), (Some(3), 3, 2));
        found.stopped = Some(stopped);
        let words = "at 1.10 kpps the lab's dut1 dropped 7 frames (so in 2 of 3 trials that failed)";
        assert_eq!(shown(found, trials), words);
    }

    #[test]
    fn what_cannot_be_told_is_said_to_be_unknown() {
        let trials = vec![trial(1, 4000.0, "loss", None)];
        let mut none = size(None);
        none.stopped = stopped(&none, &trials);
        assert!(shown(none, trials).contains("is not known"), "a result of an earlier version has no causes");
        let latency = vec![trial(1, 4000.0, "latency", None)];
        let mut none = size(None);
        none.stopped = stopped(&none, &latency);
        assert_eq!(shown(none, latency), "at 4.00 kpps the latency was above its limit");
    }

    #[test]
    fn where_nothing_failed_it_was_the_end_of_what_could_be_tried() {
        let passed = vec![trial(1, 1000.0, "passed", None)];
        assert_eq!(stopped(&size(Some(1000.0)), &passed), None);
        for (at, words) in [
            (StoppedAt::Sender, "the sender: it reaches no higher load (the CPU limits)"),
            (StoppedAt::Link, "the link"),
            (StoppedAt::Asked, "was asked for"),
        ] {
            let cause = (at == StoppedAt::Sender).then(|| Cause::new(By::Cpu, "the CPU limits", ""));
            let stopped = Some(Stopped { at, cause, ..Stopped::default() });
            let text = shown(SizeResult { stopped, ..size(Some(1000.0)) }, passed.clone());
            assert!(text.contains(words), "{at:?}: {text}");
        }
    }

    #[test]
    fn a_probes_records_say_where_they_were_lost() {
        let flows = FlowTrial { cache_lost_flows: 40, export_lost_records: 2, ..FlowTrial::default() };
        let lost = Trial { part: Part::Flows, flows: Some(flows), ..trial(1, 5000.0, "loss", None) };
        let mut none = size(None);
        none.stopped = stopped(&none, std::slice::from_ref(&lost));
        let text = "the probe lost 40 flows inside (its cache), and 2 records on the way out (its export)";
        assert!(shown(none, vec![lost]).contains(text));
    }

    #[test]
    fn the_cause_of_a_trial_of_flows_is_where_they_were_lost_and_no_other() {
        let flows = FlowTrial { port_lost_packets: Some(7), cache_lost_flows: 40, ..FlowTrial::default() };
        let frames = Cause::new(By::Nothing, "nothing reached rx0", "");
        let lost = Trial { flows: Some(flows), ..trial(1, 5000.0, "loss", Some(frames)) };
        let said = of_trial(&lost).expect("a cause").said;
        assert_eq!(
            said,
            "the probe lost 7 packets on the way in (its port or socket), and 40 flows inside (its cache)"
        );
        // What is only said not to be there is no cause either.
        let whole = Trial { flows: Some(FlowTrial::default()), ..lost };
        assert_eq!(of_trial(&whole), None);
    }

    #[test]
    fn trials_of_several_sizes_have_their_causes_side_by_side() {
        let other =
            |size: &str, cause| Trial { frame_size: size.into(), ..trial(2, 1.0, "loss", Some(cause)) };
        let (here, there) = (dropped("rx0", 5), dropped("the lab's dut1", 6));
        let one = of_trials(&[trial(1, 1.0, "loss", Some(here.clone()))]).expect("a cause");
        assert_eq!(one, here);
        let trials = [trial(1, 1.0, "loss", Some(here.clone())), other("128", here), other("512", there)];
        let all = of_trials(&trials).expect("a cause");
        let words = "frames of 64 bytes: rx0 dropped 5 frames; frames of 128 bytes: the same; frames of 512 bytes: the lab's dut1 dropped 6 frames";
        assert_eq!(all.said, words);
        assert_eq!(of_trials(&[trial(1, 1.0, "passed", None)]), None);
    }
}
