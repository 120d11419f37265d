//! Jobs, wherever they come from: typed, out of a file, or out of a result. Each is run the same way.

use super::agents::elsewhere;
use super::consent::{needed, of_result, unallowed};
use super::resume;
use crate::cli::search::Kind;
use crate::cli::{Allowed, Output, Rerun, Run};
use crate::client::{Line, Signals, attend};
use crate::output::{aside, conclude, note, print, say_replaced, written};
use crate::wording;
use anyhow::{Context, Result, anyhow, bail};
use fleet::{Asked, Reach};
use job::{Handle, Member, Session};
use report::compare::{Named, compare, render};
use report::units::printable;
use report::{Report, text};
use spec::{Consent, File, Job};
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use traffic::Rate;
use transport::rights::{self, User};

/// Files of jobs are no longer than scenarios.
const MOST_BYTES: u64 = scenario::MAX_BYTES as u64;

/// A job that was typed: it is allowed what it asks for.
pub fn typed((job, output): (Job, Output)) -> Result<u8> {
    wording::as_typed(&job);
    check(&job)?;
    if output.print_job {
        return print_jobs(vec![job]);
    }
    if let Some(said) = bare_rate(&job).filter(|_| !output.quiet) {
        note(&said);
    }
    let report = attended(&job, job.asks(), &output)?;
    put(&job, &report, &output)
}

/// What contradicts itself, by the options that were typed.
pub(super) fn check(job: &Job) -> Result<()> {
    job.check().map_err(|wrong| match job {
        // A host was typed by its place, where it has no name.
        Job::Endpoint(test) if wrong.member == "host" && !test.host.is_empty() => {
            anyhow!("{}: {}", printable(&test.host), wrong.what)
        }
        _ => anyhow!("{}", wording::contradiction(job, &wrong)),
    })
}

/// What a rate without a unit was taken for: `500M` is bits, as with iperf3, and others might mean frames by it.
fn bare_rate(job: &Job) -> Option<String> {
    let rate = match job {
        Job::Send(job) => job.rate.as_ref(),
        Job::Replay(job) => job.rate.as_ref(),
        Job::Trial(job) => Some(&job.rate),
        _ => None,
    }?;
    let written = rate.text();
    let number = written.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let bare = written.len() <= number.len() + 2 && number.ends_with(|c: char| c.is_ascii_digit());
    let bits = matches!(**rate, Rate::Bits { layer1: false, .. });
    (bare && bits).then(|| format!("rate {written}: {} of frames without FCS", **rate))
}

/// A search that was typed, or that an earlier result is of.
pub fn search(kind: Kind) -> Result<u8> {
    let (job, resume, output) = kind.job();
    wording::as_typed(&job);
    let Some(path) = resume else { return typed((job, output)) };
    if elsewhere(&output.elsewhere)?.is_some() {
        bail!("--continue: a search that agents carry out begins anew: leave out --continue, or the agents");
    }
    if output.print_job {
        bail!("--continue: the job that goes on stands in that result; leave out --print-job");
    }
    let earlier = resume::read(&path)?;
    let job = resume::again(&earlier, &path, &job)?;
    check_output(&job, &output)?;
    let session = Signals::handle(output.gauges.tui)?.session(job.asks(), None);
    let words = earlier.command_line.clone();
    let then = job.clone();
    let run = move |session: Session| match then {
        Job::Search(then) => job::go_on(&then, earlier, &session),
        Job::EndpointSearch(then) => job::go_on_between(&then, earlier, &session),
        Job::SessionsSearch(then) => job::go_on_sessions(&then, earlier, &session),
        _ => bail!("--continue: no search"),
    };
    let mut report = attend(&output, Line::Not, session, |session| job::spawn(session, run))?;
    report.command_line = words;
    put(&job, &report, &output)
}

fn print_jobs(jobs: Vec<Job>) -> Result<u8> {
    print(&File { jobs }.to_text()?)?;
    Ok(0)
}

/// Runs it to its end, and shows it meanwhile.
fn attended(job: &Job, consent: Consent, output: &Output) -> Result<Report> {
    check_output(job, output)?;
    if let Some((agents, asked)) = elsewhere(&output.elsewhere)? {
        return at_agents(job, (agents, asked), consent, output);
    }
    if matches!(job, Job::Endpoint(test) if test.mesh) {
        bail!(
            "`.mesh`: its tests begin at agents: give --inventory FILE, or --agent NAME='COMMAND' for each"
        );
    }
    let session = Signals::handle(output.gauges.tui)?.session(consent, None);
    if let Job::EndpointServer(server) = job
        && let Some(user) = leaves_root(server.user.as_deref())?
    {
        // Of this thread and of those that it begins: before there are any.
        rustix::thread::set_no_new_privs(true).context("no_new_privs")?;
        output.report.as_deref().map(|folder| hand_over(folder, &user)).transpose()?;
    }
    let mut report = attend(output, line(job), session, |session| start(job, session))?;
    report.command_line = crate::output::command_line();
    Ok(report)
}

/// The same, carried out by agents.
fn at_agents(
    job: &Job,
    (agents, asked): (Vec<Reach>, Asked),
    consent: Consent,
    output: &Output,
) -> Result<Report> {
    if writes_to_stdout(job) {
        bail!("what an agent writes comes here as a file: name one in place of `-`");
    }
    let session = Signals::handle(output.gauges.tui)?.session(consent, None);
    let then = job.clone();
    let run = move |session: Session| Ok(fleet::carry_out(&then, &agents, &session, &asked)?);
    let mut report = attend(output, line(job), session, |session| job::spawn(session, run))?;
    report.command_line = crate::output::command_line();
    Ok(report)
}

/// Who a server goes on as that was begun as root.
fn leaves_root(user: Option<&str>) -> Result<Option<User>> {
    let Some(name) = user.filter(|_| rights::is_root()) else { return Ok(None) };
    let user = User::find(name).with_context(|| format!("`.user` {}", printable(name)))?;
    Ok((user.uid != 0).then_some(user))
}

/// The report is written as who it is then.
fn hand_over(folder: &Path, user: &User) -> Result<()> {
    report::prepare_dir(folder)?;
    let folder = folder.canonicalize().with_context(|| format!("`.report` {}", folder.display()))?;
    for above in folder.ancestors().skip(1) {
        let of = std::fs::metadata(above).with_context(|| above.display().to_string())?;
        if of.uid() != user.uid && of.mode() & 0o001 == 0 {
            bail!(
                "`.report` {}: user {} cannot reach it through {}: name another folder, or stay root by `--user root`",
                folder.display(),
                user.name,
                above.display()
            );
        }
    }
    std::os::unix::fs::chown(&folder, Some(user.uid), Some(user.gid))
        .with_context(|| format!("`.report` {}: giving it to user {}", folder.display(), user.name))?;
    Ok(())
}

/// What stands in a file was checked when it was read, and what is typed before it came here.
fn start(job: &Job, session: Session) -> std::io::Result<Handle> {
    let job = job.clone();
    job::spawn(session, move |session| job::carry_out(&job, session))
}

/// What says by itself how it goes needs no line.
fn line(job: &Job) -> Line {
    match job {
        Job::Live(_) | Job::Trial(_) | Job::Search(_) | Job::EndpointSearch(_) | Job::SessionsSearch(_) => {
            Line::Not
        }
        _ => Line::Shown,
    }
}

/// Does its capture go to standard output?
fn writes_to_stdout(job: &Job) -> bool {
    match job {
        Job::Replay(replay) => {
            replay.write.as_deref() == Some(Path::new("-"))
                || captures_to_stdout(replay.meter.capture.as_ref())
        }
        Job::Send(send) => captures_to_stdout(send.meter.capture.as_ref()),
        Job::Measure(measure) => captures_to_stdout(measure.capture.as_ref()),
        Job::Collect(collect) => collect.writes_to_stdout(),
        _ => false,
    }
}

fn captures_to_stdout(capture: Option<&spec::Capture>) -> bool {
    capture.is_some_and(spec::Capture::writes_to_stdout)
}

/// What a search of a device is for.
fn sought(job: &Job) -> Option<&'static str> {
    match job {
        Job::Search(search) => Some(search.find.name()),
        _ => None,
    }
}

/// Standard output takes one thing, and of what no such job has nothing can be printed.
fn check_output(job: &Job, output: &Output) -> Result<()> {
    report::get::check(job.kind(), sought(job), &output.get).map_err(|never| anyhow!("--get: {never}"))?;
    let sizes = match job {
        Job::Search(search) => Some(search.bench.size()),
        Job::Trial(trial) => Some(trial.bench.size()),
        _ => None,
    };
    // Sizes that are none are told by who reads them.
    if let Some(sizes) = sizes.and_then(|sizes| job::frame_sizes(sizes).ok()) {
        let sizes: Vec<String> = sizes.into_iter().map(|(name, _)| name).collect();
        report::get::check_sizes(&sizes, &output.get).map_err(|none| anyhow!("--get: {none} (--size)"))?;
    }
    let also = [
        ("--json", output.json),
        ("--json-lines", output.json_lines),
        ("--csv", output.csv.is_some()),
        ("--get", !output.get.is_empty()),
    ];
    if let Some((option, _)) = also.iter().find(|(_, given)| *given && writes_to_stdout(job)) {
        let what = if matches!(job, Job::Collect(_)) { "records" } else { "capture" };
        bail!("standard output cannot take both the {what} and {option}: write the {what} to a file");
    }
    Ok(())
}

/// Prints and writes a job's result; returns the exit status.
fn put(job: &Job, report: &Report, output: &Output) -> Result<u8> {
    if writes_to_stdout(job) {
        // The capture or the records went there; the summary must not follow.
        let page = written(report, output.report.as_deref())?;
        aside(&text::render(report, text::Options { page: page.as_deref(), ..text::Options::default() }));
        return Ok(report.result.verdict.exit_status());
    }
    // What `--get` is refused for before the run is held to what all results of the tests have.
    debug_assert_eq!(
        report::get::unforeseen(job.kind(), sought(job), report),
        [""; 0],
        "figures of {}",
        job.kind()
    );
    let concluded = conclude(report, output, matches!(job, Job::Replay(replay) if replay.write.is_none()));
    if concluded.as_ref().is_err_and(|error| error.is::<report::get::Missing>()) {
        // What was measured is told all the same: it took time.
        aside(&text::render(report, text::Options::default()));
    }
    concluded
}

/// `netdyno run FILE`.
pub fn run_file(args: &Run) -> Result<u8> {
    wording::as_in_a_file();
    let name = args.file.display().to_string();
    let jobs = read(&args.file)?.jobs;
    if args.output.print_job {
        return print_jobs(jobs);
    }
    let consent = args.allowed.consent();
    for (number, job) in jobs.iter().enumerate() {
        consent.covers(job).map_err(|refused| unallowed(&refused)).with_context(|| {
            if jobs.len() == 1 { name.clone() } else { format!("{name}: jobs[{number}]") }
        })?;
    }
    needed(&consent, &jobs).context(name.clone())?;
    for (number, job) in jobs.iter().enumerate() {
        crate::hints::check_job(job).with_context(|| {
            if jobs.len() == 1 { name.clone() } else { format!("{name}: jobs[{number}]") }
        })?;
    }
    if let Some(folder) = &args.keep {
        return super::every::run(args, folder);
    }
    match &jobs[..] {
        [job] => {
            let report = attended(job, consent, &args.output).context(name)?;
            put(job, &report, &args.output)
        }
        jobs => side_by_side(jobs, &consent, &args.output, &name),
    }
}

impl Allowed {
    pub fn consent(&self) -> Consent {
        let Allowed { yes_disrupt, command, write, .. } = self.clone();
        let Allowed { allow_read, allow_address, allow_public_target, allow_source_prefix, .. } =
            self.clone();
        Consent {
            yes_disrupt,
            command,
            write,
            read: allow_read,
            addresses: allow_address,
            public_targets: allow_public_target,
            own_prefixes: allow_source_prefix,
        }
    }
}

fn read(path: &Path) -> Result<File> {
    let (name, mut bytes) = (path.display().to_string(), Vec::new());
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)),
    };
    crate::hints::check_job_file(path, &bytes)?;
    read.with_context(|| format!("reading the jobs in {name}"))?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("{name} is no file of jobs: those are text, YAML or JSON (docs/jobs.md)");
    };
    File::read(&text, &name).map_err(|bad| match bad {
        spec::BadFile::Yaml(bad) => anyhow!(bad),
        bad => anyhow!("{name}: {bad}"),
    })
}

/// What several jobs cannot do at once.
fn check_side_by_side(jobs: &[Job], output: &Output, name: &str) -> Result<()> {
    let alone = [
        ("--tui", output.gauges.tui),
        ("--metrics", output.gauges.metrics.is_some()),
        ("--json-lines", output.json_lines),
        ("--csv", output.csv.is_some()),
        ("--get", !output.get.is_empty()),
        ("--agent", !output.elsewhere.agent.is_empty()),
        ("--inventory", output.elsewhere.inventory.is_some()),
        ("--at", output.elsewhere.at.is_some()),
    ];
    if let Some((option, _)) = alone.iter().find(|(_, given)| *given) {
        bail!("{option} shows one job, and {name} has {}: give each a file of its own", jobs.len());
    }
    if let Some(number) = jobs.iter().position(Job::runs_alone) {
        bail!("{name}: jobs[{number}]: trials need the tester for themselves: give them a file of their own");
    }
    if let Some(number) = jobs.iter().position(writes_to_stdout) {
        bail!("{name}: jobs[{number}]: standard output takes the results of all jobs: name a file");
    }
    Ok(())
}

/// Several jobs of one file. They begin together, and each has a thread of its own.
fn side_by_side(jobs: &[Job], consent: &Consent, output: &Output, name: &str) -> Result<u8> {
    check_side_by_side(jobs, output, name)?;
    let signals = Signals::handle(false)?;
    let folder = |number: usize, job: &Job| {
        output.report.as_ref().map(|dir| dir.join(format!("{}-{}", number + 1, job.kind())))
    };
    if !output.quiet {
        note(&format!("{} jobs begin together; Ctrl-C ends them and reports", jobs.len()));
        jobs.iter()
            .enumerate()
            .filter_map(|(number, job)| folder(number, job))
            .for_each(|dir| say_replaced(&dir));
    }
    let run = |number: usize, job: &Job, member: Member| -> Result<Report> {
        // One line that moves cannot be shared.
        let quiet = Output { quiet: true, report: folder(number, job), ..Output::default() };
        let session = signals.session(consent.clone(), Some(member));
        let done = attend(&quiet, Line::Not, session, |session| start(job, session));
        let done = done.map(|mut report| {
            report.command_line = crate::output::command_line();
            report
        });
        // The others may go on for long.
        done.inspect_err(|error| note(&format!("netdyno: {name}: jobs[{number}]: {}", job::in_full(error))))
    };
    let done: Vec<Result<Report>> = std::thread::scope(|scope| {
        let members = Member::beginning(jobs.len());
        let numbered = jobs.iter().zip(members).enumerate();
        let threads: Vec<_> =
            numbered.map(|(number, (job, member))| scope.spawn(move || run(number, job, member))).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("it panicked: this is a defect of netdyno")))
        });
        joined.collect()
    });
    tell(jobs, done, output, folder, name)
}

/// Writes and prints what became of jobs that ran side by side.
fn tell(
    jobs: &[Job],
    done: Vec<Result<Report>>,
    output: &Output,
    folder: impl Fn(usize, &Job) -> Option<PathBuf>,
    name: &str,
) -> Result<u8> {
    let mut status = 0;
    let (mut values, mut said) = (Vec::new(), String::new());
    for (number, (job, report)) in jobs.iter().zip(done).enumerate() {
        let Ok(report) = report.as_ref().map_err(job::in_full).map_err(|error| {
            values.push(serde_json::json!({ "error": error }));
            status = 2;
        }) else {
            continue;
        };
        // The result is printed even if it cannot be written: it took time to measure.
        let page = written(report, folder(number, job).as_deref()).unwrap_or_else(|error| {
            note(&format!("netdyno: {name}: jobs[{number}]: {}", job::in_full(&error)));
            status = 2;
            None
        });
        said += &format!("jobs[{number}]: {}\n", job.kind());
        said += &text::render(report, text::Options { page: page.as_deref(), ..text::Options::default() });
        said += "\n";
        status = status.max(report.result.verdict.exit_status());
        values.push(serde_json::from_str(&report::json::to_string(report))?);
    }
    let text = match output.json {
        true => serde_json::to_string_pretty(&values)? + "\n",
        false => said.trim_end().to_owned() + "\n",
    };
    match print(&text) {
        Err(error) if !crate::output::reader_left(&error) => Err(error),
        _ => Ok(status),
    }
}

/// `netdyno rerun REPORT`.
pub fn rerun(args: &Rerun) -> Result<u8> {
    let name = args.result.display().to_string();
    crate::hints::check_file(&args.result, crate::hints::Kind::Result)?;
    let before = report::read(&args.result)?;
    let mut job = of_result(&before).context(name.clone())?;
    if let Some(plugin) = job.plugin_mut().filter(|_| args.any_plugin) {
        (plugin.version, plugin.sha256) = (None, None);
    }
    if args.output.print_job {
        return print_jobs(vec![job]);
    }
    let mut output = args.output.clone();
    if let Some(at) = &before.requested_at {
        let asked = &mut output.elsewhere;
        if asked.agent.is_empty() && asked.inventory.is_none() {
            bail!(
                "{name}: its job began at an agent (--at {at}): name the agents again, by --agent or --inventory"
            );
        }
        // Without it a host that was only captured would copy.
        asked.at.get_or_insert_with(|| at.clone());
    }
    let consent = args.allowed.consent();
    consent.covers(&job).map_err(|refused| unallowed(&refused)).context(name.clone())?;
    needed(&consent, std::slice::from_ref(&job)).context(name.clone())?;
    wording::as_typed(&job);
    let report = attended(&job, consent, &output)?;
    let status = put(&job, &report, &args.output)?;
    let kept = args
        .output
        .report
        .as_ref()
        .map_or_else(|| "now".to_owned(), |dir| printable(&dir.display().to_string()));
    let (a, b) =
        ([Named { name: printable(&name), report: &before }], [Named { name: kept, report: &report }]);
    let comparison = compare(&a, &b, args.least.0)?;
    let Output { json, json_lines, csv, get, .. } = &args.output;
    let taken = *json || *json_lines || csv.is_some() || !get.is_empty() || writes_to_stdout(&job);
    match taken {
        // Standard output is for who reads it by program.
        true => aside(&render(&comparison, super::compare::options())),
        false => print(&("\n".to_owned() + &render(&comparison, super::compare::options())))?,
    }
    Ok(status)
}
