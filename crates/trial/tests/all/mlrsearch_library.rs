//! Ours beside the library `MLRsearch` 1.2.1 (FD.io CSIT, from PyPI): the same loads, trial by trial, on the same devices.
//!
//! Both search at the same time. Each trial that the library asks for must be the one that ours wants, and both are told
//! the same outcome.

use crate::device::{Kind, Simulated};
use netdyno_trial::mlr::{Goal, MlrSearch, Plan};
use netdyno_trial::{Limits, Search};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The library in a process of its own.
struct Library {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Library {
    fn start() -> Library {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = match std::env::var_os("NETDYNO_MLRSEARCH_PYTHON") {
            Some(python) => PathBuf::from(python),
            None => here.join("../../target/mlrsearch/bin/python"),
        };
        let mut child = Command::new(&python)
            .arg(here.join("tests/all/mlrsearch_library.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; `scripts/setup test` installs it", python.display())
            });
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Library { child, input, output: BufReader::new(output) }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the library reads");
        self.input.flush().expect("the library reads");
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the library writes");
        assert!(!line.is_empty(), "the library's process ended");
        line.trim().to_owned()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn json(plan: &Plan) -> String {
    let goals: Vec<_> = plan
        .goals
        .iter()
        .map(|goal| {
            serde_json::json!({
                "loss_ratio": goal.limits.loss_ratio,
                "exceed_ratio": goal.exceed_ratio,
                "relative_width": goal.relative_width,
                "initial_trial_duration": goal.initial_trial_s,
                "final_trial_duration": goal.final_trial_s,
                "duration_sum": goal.duration_sum_s,
                "preceding_targets": goal.preceding_targets,
                "expansion_coefficient": goal.expansion,
            })
        })
        .collect();
    serde_json::json!({
        "least": plan.least, "greatest": plan.greatest, "warm_up": plan.warm_up_s, "goals": goals,
    })
    .to_string()
}

/// Both on the same device; how many trials it took, or where they part.
fn beside(library: &mut Library, plan: &Plan, device: &mut Simulated) -> Result<u64, String> {
    let mut ours = MlrSearch::new(plan.clone()).map_err(|error| error.to_string())?;
    library.say(&json(plan));
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    loop {
        let line = library.hear();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["trial", load, duration] => {
                let (load, duration): (f64, f64) = (load.parse().unwrap(), duration.parse().unwrap());
                let Some(wanted) = ours.next() else {
                    return Err(abandon(
                        library,
                        format!("ours is over, theirs tries {load} for {duration} s"),
                    ));
                };
                let same = near(wanted.load, load) && wanted.duration_ns == (duration * 1e9).round() as u64;
                if !same {
                    return Err(abandon(
                        library,
                        format!(
                            "trial {}: theirs {load} for {duration} s, ours {wanted:?}",
                            device.trials + 1
                        ),
                    ));
                }
                if device.trials > 20_000 {
                    return Err(abandon(library, "no end".to_owned()));
                }
                let outcome = device.trial(&wanted);
                library.say(&format!("{} {} {}", outcome.intended, outcome.sent, outcome.received));
                ours.tell(&outcome);
            }
            ["over"] => break,
            _ => return Err(format!("the library says: {line}")),
        }
    }
    let mut differences = Vec::new();
    if let Some(wanted) = ours.next() {
        differences.push(format!("theirs is over after {}, ours wants {wanted:?}", device.trials));
    }
    for found in ours.found() {
        let line = library.hear();
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        for (theirs, own) in words.iter().zip([found.lower, found.upper, found.conditional_throughput]) {
            let agree = match (theirs.parse::<f64>(), own) {
                (Err(_), None) => true,
                (Ok(theirs), Some(own)) => near(theirs, own),
                _ => false,
            };
            if !agree {
                differences.push(format!("theirs found {line}, ours {found:?}"));
            }
        }
    }
    if differences.is_empty() { Ok(device.trials) } else { Err(differences.join("; ")) }
}

/// The library cannot be told to stop: it is started anew.
fn abandon(library: &mut Library, why: String) -> String {
    *library = Library::start();
    why
}

fn goal(
    loss: f64,
    exceed: f64,
    width: f64,
    (initial, last, sum): (f64, f64, f64),
    before: u32,
    by: i64,
) -> Goal {
    Goal {
        limits: Limits::loss(loss),
        exceed_ratio: exceed,
        relative_width: width,
        initial_trial_s: initial,
        final_trial_s: last,
        duration_sum_s: sum,
        preceding_targets: before,
        expansion: by,
    }
}

/// All 1632 searches when NETDYNO_MLRSEARCH_ALL is set, which takes minutes; else every 13th, of each kind some.
#[test]
fn tries_the_same_loads_as_the_library() {
    let rfc = Goal::rfc2544(60.0, 0.005);
    let goals: Vec<Vec<Goal>> = vec![
        vec![rfc],
        vec![Goal::csit(0.0, 1.0, 0.005)],
        vec![Goal::csit(0.0, 1.0, 0.005), Goal::csit(0.005, 1.0, 0.005)],
        vec![Goal { exceed_ratio: 0.5, duration_sum_s: 120.0, ..rfc }],
        vec![goal(0.0, 0.0, 0.02, (0.5, 10.0, 10.0), 3, 4), goal(0.01, 0.2, 0.005, (1.0, 5.0, 17.0), 1, 2)],
        vec![goal(0.0, 0.0, 0.001, (0.1, 2.0, 2.0), 4, 3)],
        vec![goal(0.0, 0.0, 0.005, (1.0, 1.0, 1.0), 0, 2)],
        vec![
            rfc,
            Goal::csit(0.0, 1.0, 0.005),
            Goal::csit(0.005, 1.0, 0.01),
            goal(0.1, 0.0, 0.05, (1.0, 30.0, 30.0), 2, 2),
        ],
    ];
    let ranges =
        [(9_001.0, 14_880_952.0), (1_000.0, 200_000.0), (100.0, 1_000_000_000.0), (800_000.0, 1_200_000.0)];
    let kinds = |least: f64, greatest: f64, at: f64| {
        let between = least * (greatest / least).powf(at);
        [
            Kind::Hard(between),
            Kind::Hard(least * 1.003),
            Kind::Hard(least * 0.9),
            Kind::Hard(greatest * 0.998),
            Kind::Hard(greatest * 2.0),
            Kind::Noisy(between, 0.03),
            Kind::Noisy(between, 0.3),
            Kind::Slope(between, 0.05),
            Kind::Slope(least, 0.5),
            Kind::Lossy(0.003),
            Kind::Lossy(0.5),
            Kind::Spikes(between, 0.05, 0.3),
            Kind::Spikes(between, 0.3, 0.05),
            Kind::Flapping(between, 0.1),
            Kind::Flapping(between, 0.4),
            Kind::Dead,
            Kind::SlowSender(between),
        ]
    };
    let all = std::env::var_os("NETDYNO_MLRSEARCH_ALL").is_some();
    let mut library = Library::start();
    let (mut searches, mut compared, mut trials) = (0, 0, 0);
    let mut parted = Vec::new();
    for (number, goals) in goals.iter().enumerate() {
        for (least, greatest) in ranges {
            for (seed, at) in [0.31, 0.5777, 0.84].into_iter().enumerate() {
                for kind in kinds(least, greatest, at) {
                    searches += 1;
                    if !all && searches % 13 != 0 {
                        continue;
                    }
                    let plan = Plan {
                        goals: goals.clone(),
                        least,
                        greatest,
                        warm_up_s: if seed == 1 { 1.0 } else { 0.0 },
                        most_s: f64::INFINITY,
                        enough: 0.0,
                    };
                    let mut device = Simulated::new(kind, searches);
                    compared += 1;
                    match beside(&mut library, &plan, &mut device) {
                        Ok(n) => trials += n,
                        Err(why) => parted.push(format!(
                            "#{searches} goals {number}, {least}..{greatest}, {kind:?}: {why}"
                        )),
                    }
                }
            }
        }
    }
    println!("{compared} searches, {trials} trials");
    assert!(
        compared > 100 && trials > 10 * compared,
        "{compared} searches of {trials} trials compare nothing"
    );
    assert!(parted.is_empty(), "{} of {searches} parted:\n{}", parted.len(), parted.join("\n"));
}
