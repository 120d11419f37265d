//! Jobs, wherever they come from: typed, out of a file, or out of a result. Each is run the same way.

use super::{bridge, impair, live, measure, reflect, replay, search, send, trial};
use crate::cli::search::Kind;
use crate::cli::{Output, Rerun, Run};
use crate::output::{aside, conclude, note, print, written};
use crate::run::together::Member;
use anyhow::{Context, Result, anyhow, bail};
use report::compare::{Named, compare, render};
use report::units::printable;
use report::{Report, text};
use spec::{Clock, Consent, File, Job, NotGiven};
use std::io::Read;
use std::path::Path;

/// What a job is run with: what it is allowed, where its result goes, and the jobs that begin with it.
#[derive(Debug)]
pub struct With<'a> {
    pub consent: &'a Consent,
    pub output: &'a Output,
    pub together: Option<Member>,
}

/// Files of jobs are no longer than scenarios.
const MOST_BYTES: u64 = traffic::scenario::MAX_BYTES as u64;

/// A job that was typed: it is allowed what it asks for.
pub fn typed((job, output): (Job, Output)) -> Result<u8> {
    if output.print_job {
        return print_job(job);
    }
    let consent = job.asks();
    let report = carry_out(&job, With { consent: &consent, output: &output, together: None })?;
    put(&job, &report, &output)
}

/// A search that was typed, or that an earlier result is of.
pub fn search(kind: Kind) -> Result<u8> {
    let (search, resume, output) = kind.job();
    let job = Job::from(search.clone());
    if output.print_job {
        if resume.is_some() {
            bail!("--continue: the job that goes on stands in that result; leave out --print-job");
        }
        return print_job(job);
    }
    let consent = job.asks();
    let with = With { consent: &consent, output: &output, together: None };
    let mut report = search::run(search, resume.as_deref(), with)?;
    if resume.is_none() {
        remember(&job, &mut report);
    }
    put(&job, &report, &output)
}

fn print_job(job: Job) -> Result<u8> {
    print(&File { jobs: vec![job] }.to_text())?;
    Ok(0)
}

/// Runs it to its end. Its result says what it was.
pub fn carry_out(job: &Job, with: With<'_>) -> Result<Report> {
    let mut report = match job.clone() {
        Job::Send(job) => send::run(&job, with),
        Job::Replay(job) => replay::run(*job, with),
        Job::Measure(job) => measure::run(&job, with),
        Job::Reflect(job) => reflect::run(&job, with),
        Job::Bridge(job) => bridge::run(*job, with),
        Job::Impair(job) => impair::run(*job, with),
        Job::Live(job) => live::run(&job, with),
        Job::Trial(job) => trial::run(&job, with),
        Job::Search(job) => search::run(*job, None, with),
    }?;
    remember(job, &mut report);
    Ok(report)
}

/// The job in its result, with what was drawn for it: run again, it does the same.
fn remember(job: &Job, report: &mut Report) {
    let mut job = job.clone();
    let drawn = report.requested.seed;
    match &mut job {
        Job::Send(job) => job.seed = job.seed.or(drawn),
        Job::Trial(job) => job.bench.seed = job.bench.seed.or(drawn),
        Job::Search(job) => job.bench.seed = job.bench.seed.or(drawn),
        _ => {}
    }
    report.requested.job = Some(job);
}

/// Prints and writes a job's result; returns the exit status.
fn put(job: &Job, report: &Report, output: &Output) -> Result<u8> {
    let Job::Replay(replay) = job else { return conclude(report, output, false) };
    if replay.write.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        // The capture went there; the summary must not follow it.
        aside(&text::render(report, text::Options::default()));
        return Ok(report.result.verdict.exit_status());
    }
    conclude(report, output, replay.write.is_none())
}

/// `netdyno run FILE`.
pub fn run_file(args: &Run) -> Result<u8> {
    let name = args.file.display().to_string();
    let jobs = read(&args.file)?.jobs;
    if args.output.print_job {
        print(&File { jobs }.to_text())?;
        return Ok(0);
    }
    let consent = Consent { yes_disrupt: args.yes_disrupt.clone(), command: args.command.clone() };
    for (number, job) in jobs.iter().enumerate() {
        consent.covers(job).map_err(|refused| unallowed(&refused)).with_context(|| {
            if jobs.len() == 1 { name.clone() } else { format!("{name}: jobs[{number}]") }
        })?;
    }
    match &jobs[..] {
        [job] => {
            let with = With { consent: &consent, output: &args.output, together: None };
            let report = carry_out(job, with).context(name)?;
            put(job, &report, &args.output)
        }
        jobs => side_by_side(jobs, &consent, &args.output, &name),
    }
}

/// What to do about a job that needs more than it was given.
fn unallowed(refused: &NotGiven) -> anyhow::Error {
    let mend = match refused {
        NotGiven::Disrupt(interface) => format!("add --yes-disrupt {}", quoted(interface)),
        NotGiven::Command(command) => format!("add --command {}", quoted(command)),
        NotGiven::OtherCommand { .. } => "the two must be the same".to_owned(),
    };
    anyhow!("{}: {mend}, if you want that", printable(&refused.to_string()))
}

/// As a shell takes it for one word; what moves the cursor is made visible.
fn quoted(text: &str) -> String {
    format!("'{}'", printable(text).replace('\'', r"'\''"))
}

fn read(path: &Path) -> Result<File> {
    let (name, mut text) = (path.display().to_string(), String::new());
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(MOST_BYTES + 1).read_to_string(&mut text),
        false => {
            std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
        }
    };
    read.with_context(|| format!("reading the jobs in {name}"))?;
    File::read(&text, &name).map_err(|bad| match bad {
        spec::BadFile::Yaml(bad) => anyhow!(bad),
        bad => anyhow!("{name}: {bad}"),
    })
}

/// Several jobs of one file. They begin together, and each has a thread of its own.
fn side_by_side(jobs: &[Job], consent: &Consent, output: &Output, name: &str) -> Result<u8> {
    let alone = [
        ("--tui", output.gauges.tui),
        ("--metrics", output.gauges.metrics.is_some()),
        ("--json-lines", output.json_lines),
        ("--csv", output.csv),
    ];
    if let Some((option, _)) = alone.iter().find(|(_, given)| *given) {
        bail!("{option} shows one job, and {name} has {}: give each a file of its own", jobs.len());
    }
    if let Some(number) = jobs.iter().position(|job| matches!(job, Job::Trial(_) | Job::Search(_))) {
        bail!("{name}: jobs[{number}]: trials need the tester for themselves: give them a file of their own");
    }
    let clocks: Vec<Option<Clock>> = jobs.iter().map(stamping_clock).collect();
    let first = clocks.iter().flatten().next();
    if let Some(number) =
        clocks.iter().position(|clock| clock.as_ref().is_some_and(|clock| Some(clock) != first))
    {
        bail!("{name}: jobs[{number}].meter.clock: jobs that run side by side stamp frames by one clock");
    }
    let folder = |number: usize, job: &Job| format!("{}-{}", number + 1, job.kind());
    // One line that moves cannot be shared.
    let quiet = Output { quiet: true, json: output.json, ..Output::default() };
    if !output.quiet {
        note(&format!("{} jobs begin together; Ctrl-C ends them and reports", jobs.len()));
    }
    let done: Vec<Result<Report>> = std::thread::scope(|scope| {
        let run = |(number, (job, member)): (usize, (_, Member))| {
            let report = output.report.as_ref().map(|dir| dir.join(folder(number, job)));
            let output = Output { report, ..quiet.clone() };
            scope.spawn(move || {
                crate::claims::for_job(number);
                carry_out(job, With { consent, output: &output, together: Some(member) })
            })
        };
        let members = Member::of(jobs.len());
        let threads: Vec<_> = jobs.iter().zip(members).enumerate().map(run).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("it panicked: this is a defect of netdyno")))
        });
        joined.collect()
    });
    let mut status = 0;
    let (mut reports, mut said) = (Vec::new(), String::new());
    for (number, (job, report)) in jobs.iter().zip(done).enumerate() {
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                note(&format!("netdyno: {name}: jobs[{number}]: {}", crate::in_full(&error)));
                status = 2;
                continue;
            }
        };
        let dir = output.report.as_ref().map(|dir| dir.join(folder(number, job)));
        let page = written(&report, dir.as_deref())?;
        said += &format!("jobs[{number}]: {}\n", job.kind());
        said += &text::render(&report, text::Options { page: page.as_deref(), ..text::Options::default() });
        said += "\n";
        status = status.max(report.result.verdict.exit_status());
        reports.push(report);
    }
    let text = match output.json {
        true => serde_json::to_string_pretty(&reports)? + "\n",
        false => said.trim_end().to_owned() + "\n",
    };
    match print(&text) {
        Err(error) if !crate::output::reader_left(&error) => Err(error),
        _ => Ok(status),
    }
}

/// The clock that a job stamps frames with.
fn stamping_clock(job: &Job) -> Option<Clock> {
    match job {
        Job::Send(job) => Some(job.meter.clock),
        Job::Replay(job) => Some(job.meter.clock),
        _ => None,
    }
}

/// `netdyno rerun REPORT`.
pub fn rerun(args: &Rerun) -> Result<u8> {
    let name = args.result.display().to_string();
    let before = report::read(&args.result)?;
    let Some(job) = before.requested.job.clone() else {
        bail!(
            "{name}: it does not say which job it is of: it was written by `netdyno {}`, or by an earlier version",
            printable(&before.command)
        );
    };
    if args.output.print_job {
        return print_job(job);
    }
    let consent = Consent { yes_disrupt: args.yes_disrupt.clone(), command: args.command.clone() };
    consent.covers(&job).map_err(|refused| unallowed(&refused)).context(name.clone())?;
    let report = carry_out(&job, With { consent: &consent, output: &args.output, together: None })?;
    let status = put(&job, &report, &args.output)?;
    let (a, b) = (
        [Named { name: printable(&name), report: &before }],
        [Named { name: "now".to_owned(), report: &report }],
    );
    let comparison = compare(&a, &b, args.least.0)?;
    match args.output.json || args.output.json_lines || args.output.csv {
        // Standard output is for who reads it by program.
        true => aside(&render(&comparison)),
        false => print(&("\n".to_owned() + &render(&comparison)))?,
    }
    Ok(status)
}
