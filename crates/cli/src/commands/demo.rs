//! `netdyno demo`: the main job, with nothing to set up.
//!
//! Who names no rate wants to see that each frame is accounted for, on whatever machine this is and whatever else it does: the rate is
//! one that the machine was seen to carry, and the demo has done what was asked when the counts of both ends add up. Who names a
//! rate wants that, and it falls short like any other replay.

use super::synth;
use crate::cli::{Demo, Output};
use crate::client::{Line, Signals, attend};
use crate::output::{conclude, note, print};
use ::lab::{Lab, Located};
use ::synth::{Profile, Synth};
use anyhow::{Context, Result, bail};
use job::Session;
use job::dropped::{Trace, Tracing};
use job::kinds::replay::Settings;
use job::kinds::shared::Pace;
use job::kinds::{replay, shared};
use job::place::Place;
use report::{Code, Report, Verdict, units};
use spec::{Consent, How, Oversize, Timestamps};
use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use traffic::Rate;

/// The seed of the capture: the same on every machine.
const SEED: u64 = 1;
/// The usual capture takes twice its 339 MB: as it was read, and where the kernel reads it. With less to spare than this a small
/// one has to do, before the kernel ends us for want of memory.
const ENOUGH_MEMORY: u64 = 1 << 30;

/// Where nobody asks for a rate, this is the most that is sent (article B's), and this part of what the machine has carried for a
/// second: what else it does may take more of it later.
const MOST_BITS: f64 = 1e9;
const PART: f64 = 0.5;
/// So many frames of the capture are sent again and again to find out.
const TRIED_FRAMES: u64 = 20_000;
const TRIED_FOR: Duration = Duration::from_secs(1);

/// What a capture takes beside its frames: a record's header for each, and its own.
const RECORD_HEADER: u64 = 16;
const FILE_HEADER: u64 = 24;

pub fn run(args: Demo) -> Result<u8> {
    // From before anything is said or made on: who sees a line may end us.
    let signals = Signals::handle(args.gauges.tui)?;
    // First, what fails at once if it does.
    let lab = Lab::two_hosts(&::lab::Options::default())?;
    let say = |text: &str| {
        if !args.quiet {
            note(text);
        }
    };
    let available = engine::memory::available();
    let (name, profile, like) = match available >= ENOUGH_MEMORY {
        true => ("bigflows", Profile::BIGFLOWS, "bigFlows.pcap"),
        false => ("smallflows", Profile::SMALLFLOWS, "smallFlows.pcap"),
    };
    let planned = match &args.capture {
        Some(file) => Planned::There(file.clone()),
        None => Planned::of(name, profile, args.keep)?,
    };
    report::prepare_dir(&args.report)?;
    say("lab: two hosts joined by a cable, tx0 -> rx0 (network namespaces, gone when this ends)");
    if args.capture.is_none() && available < ENOUGH_MEMORY {
        say(&format!(
            "capture: a small one, because {} MB of memory are free, and the usual one takes about {} MB",
            available >> 20,
            ENOUGH_MEMORY >> 20
        ));
    }
    signals.deaf.store(false, Relaxed);
    if args.capture.is_none() {
        say(&format!("capture: {}", planned.said()));
    }
    let Capture { path: file, open } = planned.made(&signals.stop)?;
    let replayed = || Settings {
        interface: Some(lab.sender.interface.to_owned()),
        preload: true,
        unique_every: Some(NonZeroU64::MIN),
        sign: true,
        oversize: if args.capture.is_some() { Oversize::Skip } else { Oversize::Refuse },
        skip_corrupt: args.capture.is_some(),
        name: args.capture.is_none().then(|| name.to_owned()),
        ..Settings::of(vec![file.clone()])
    };
    let rate = match args.rate {
        Some(rate) => rate,
        None => {
            let (rate, carried) = carried(replayed(), ends(&lab)?, &signals.stop)?;
            say(&format!(
                "rate: {rate}, because this machine carried {} for a second (--rate asks for another one)",
                units::bit_rate(carried)
            ));
            rate
        }
    };
    signals.deaf.store(true, Relaxed);
    if signals.stop.load(Relaxed) {
        bail!("stopped by a signal");
    }
    say(&format!(
        "replay: preloaded, looped with new addresses each time, at {rate} for {}",
        units::time(args.duration.as_nanos() as u64)
    ));
    let output = output(&args);
    let replayed = Settings {
        pace: Pace {
            rate: Some(rate),
            duration: Some(args.duration),
            no_real_time: args.no_real_time,
            ..Pace::default()
        },
        best_effort: args.rate.is_none(),
        ..replayed()
    };
    let session = signals.session(Consent::default(), None);
    let ends = ends(&lab)?;
    let tracing = Tracing::in_lab(Trace::IfPossible, clocks::Clock::Monotonic, &lab);
    let run = |session| {
        let mut report = replay::replay("demo", replayed, ends, session)?;
        tracing.finish(&mut report);
        Ok(report)
    };
    let mut report = attend(&output, Line::Shown, session, |session| job::spawn(session, run))?;
    // Its room is free before the report is written.
    drop(open);
    report.command_line = crate::output::command_line();
    if args.capture.is_none() {
        report.resolved.source = Some(report::Source::Synthetic {
            description: format!(
                "the frames with payload of an Internet access link with the published totals of {like}"
            ),
        });
        report.resolved.seed = Some(SEED);
    }
    let account = Account::of(&report);
    if let (None, Some(account)) = (args.rate, &account) {
        account.judge(&mut report);
    }
    let status = conclude(&report, &output, true)?;
    if let Some(account) = account.filter(|_| !args.json) {
        print(&format!("\n{}\n", account.said()))?;
    }
    Ok(status)
}

/// Where the result goes.
fn output(args: &Demo) -> Output {
    Output {
        json: args.json,
        report: Some(args.report.clone()),
        quiet: args.quiet,
        verbose: args.verbose,
        gauges: args.gauges.clone(),
        ..Output::default()
    }
}

/// Where frames leave, and where they are measured.
fn ends(lab: &Lab) -> Result<shared::Ends> {
    let at = |host: &::lab::Host| -> Result<Place> {
        let namespace = Some(host.namespace.try_clone()?);
        Place::at(host.interface.to_owned(), Located { namespace, name: host.interface.to_owned() })
    };
    let rx = shared::with_meter(at(&lab.receiver)?, (How::Auto, Timestamps::Software), true)?;
    Ok((vec![at(&lab.sender)?], vec![rx]))
}

/// A rate that this machine carries at this time, and what it carried, in bits per second: of frames like those that will be sent,
/// as many as arrived in a second at top speed.
fn carried(settings: Settings, ends: shared::Ends, stop: &Arc<AtomicBool>) -> Result<(Rate, f64)> {
    let tried = Settings {
        first: Some(TRIED_FRAMES),
        pace: Pace { rate: Some(Rate::TopSpeed), duration: Some(TRIED_FOR), ..Pace::default() },
        best_effort: true,
        ..settings
    };
    let session = Session { stop: Arc::clone(stop), ..Session::default() };
    let report = replay::replay("demo", tried, ends, session)?;
    let result = &report.result;
    let (Some(tx), Some(rx)) = (&result.tx, &result.rx) else { bail!("nothing was sent to find a rate by") };
    if stop.load(Relaxed) {
        bail!("stopped by a signal");
    }
    if let Verdict::Failed { reasons } = &result.verdict {
        let why = reasons.first().map(|reason| reason.to_string()).unwrap_or_default();
        bail!("finding a rate that this machine carries: {why}");
    }
    let seconds = (tx.totals.duration_ns as f64 / 1e9).max(1e-3);
    let carried = rx.totals.bytes.min(tx.totals.bytes) as f64 * 8.0 / seconds;
    Ok((Rate::Bits { bits_per_second: part_of(carried), layer1: false }, carried))
}

/// What is sent where so much was carried: a rate of two digits.
fn part_of(carried: f64) -> u64 {
    let part = (carried * PART).clamp(1e6, MOST_BITS);
    let digit = 10_f64.powi(part.log10().floor() as i32 - 1);
    // The least that is more by rounding alone is none.
    ((part / digit + 1e-9).floor() * digit).round() as u64
}

/// What both ends counted, frame by frame.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    sent: u64,
    /// As the sender's interface counted them, if it did.
    left: Option<u64>,
    /// Without those that came twice, and without others'.
    received: u64,
    lost: u64,
    /// Each frame had a number.
    each_by_number: bool,
}

impl Account {
    fn of(report: &Report) -> Option<Account> {
        let result = &report.result;
        let (tx, rx, loss) = (result.tx.as_ref()?, result.rx.as_ref()?, result.loss?);
        let others = rx.duplicated_frames.unwrap_or(0).saturating_add(rx.foreign_frames.unwrap_or(0));
        let counted = tx.interface_counters.first().filter(|counters| counters.foreign_frames == 0);
        Some(Account {
            sent: tx.totals.frames,
            left: counted.map(|counters| counters.tx_packets),
            received: rx.totals.frames.saturating_sub(others),
            lost: loss.frames,
            each_by_number: !loss.by_count_only,
        })
    }

    fn holds(&self) -> bool {
        self.sent > 0 && self.received.checked_add(self.lost) == Some(self.sent)
    }

    fn said(&self) -> String {
        let Account { sent, left, received, lost, each_by_number } = self;
        let how = if *each_by_number { "each by its own number" } else { "by count" };
        let left = match left {
            Some(left) if left == sent => ", as the sender's interface counted them,",
            _ => "",
        };
        let [sent, received, lost] = [sent, received, lost].map(|count| units::count(*count));
        let sign = if self.holds() { "=" } else { "is not" };
        format!("Accounted for: {sent} frames sent{left} {sign} {received} received + {lost} lost, {how}.")
    }

    /// Nobody asked for a rate, or for a machine that loses nothing: what was not sent in time, and what was lost, are told; it falls
    /// short if frames are not accounted for.
    fn judge(&self, report: &mut Report) {
        if !self.holds() {
            report.result.verdict.fall_short(Code::CountersDisagree, self.said());
            return;
        }
        let Verdict::Short { reasons } = &mut report.result.verdict else { return };
        let told = [Code::RateNotReached, Code::FramesRefused, Code::FramesLost, Code::FramesExplained];
        let (accounted, others): (Vec<_>, Vec<_>) =
            std::mem::take(reasons).into_iter().partition(|reason| told.contains(&reason.code));
        report.warnings.extend(accounted);
        report.result.verdict =
            if others.is_empty() { Verdict::Done } else { Verdict::Short { reasons: others } };
    }
}

/// A capture that can be read.
struct Capture {
    path: PathBuf,
    /// One without a name lasts as long as this.
    open: Option<File>,
}

/// Where the capture comes from, and what becomes of it.
enum Planned {
    /// It is there: the user's own, or one that an earlier demo kept.
    There(PathBuf),
    /// It is made, under this name.
    Kept(PathBuf, Synth),
    /// It is made in this folder, and gone when this process is.
    Passing(PathBuf, Synth),
}

impl Planned {
    /// The synthesised capture; fails if there is no room to make it. Of its frames those that have room for a signature, so that it
    /// is told of each frame what became of it.
    fn of(name: &str, profile: Profile, keep: bool) -> Result<Planned> {
        let cache = cache();
        let file = cache.join(format!("{name}-payload-{}-{SEED}.pcap", ::synth::GENERATION));
        if file.is_file() {
            return Ok(Planned::There(file));
        }
        let synth = Synth::new(profile, SEED)?.only_with_payload(wire::signature::LEN);
        let (folder, elsewhere) = if keep { (cache, "XDG_CACHE_HOME") } else { (passing(), "TMPDIR") };
        let (needed, free) = (size(&synth), room(&folder)?);
        if free.is_some_and(|free| free < needed) {
            bail!(
                "the capture of the demo takes {}, and {} has {} free: free some, name another folder in {elsewhere}, or give --capture FILE",
                units::bytes(needed),
                folder.display(),
                units::bytes(free.unwrap_or(0)),
            );
        }
        Ok(if keep { Planned::Kept(file, synth) } else { Planned::Passing(folder, synth) })
    }

    /// What is done, before it is: a user should know beforehand where how much is written.
    fn said(&self) -> String {
        let making = |synth: &Synth| {
            let amount = synth.amount();
            format!(
                "synthesising the {} with payload of an Internet access link, {}; {} in",
                units::counted(amount.frames, "frame"),
                units::counted(amount.flows, "flow"),
                units::bytes(size(synth))
            )
        };
        match self {
            Planned::There(file) => format!("{} (kept from an earlier run)", file.display()),
            Planned::Kept(file, synth) => format!("{} {}, which is kept", making(synth), file.display()),
            Planned::Passing(folder, synth) => {
                format!("{} {}, until this ends (--keep keeps it)", making(synth), folder.display())
            }
        }
    }

    /// Makes it, where it is not there.
    fn made(self, stop: &AtomicBool) -> Result<Capture> {
        match self {
            Planned::There(path) => Ok(Capture { path, open: None }),
            Planned::Kept(path, mut synth) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).with_context(|| {
                        format!("making {} (set XDG_CACHE_HOME to keep it elsewhere)", folder.display())
                    })?;
                }
                job::synthesis::write(&path, &mut synth, stop)?;
                Ok(Capture { path, open: None })
            }
            Planned::Passing(folder, synth) => {
                let file = synth::nameless(&folder, synth, stop)?;
                // Read by who knows paths: a path to what has no name of its own (proc_pid_fd(5)).
                let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                Ok(Capture { path, open: Some(file) })
            }
        }
    }
}

/// Where captures are kept.
fn cache() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("netdyno")
}

/// Where one is that is not kept: /tmp is memory on many hosts, and memory is what the demo needs for other things.
fn passing() -> PathBuf {
    let on_disk = || Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir());
    match std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => on_disk().unwrap_or_else(std::env::temp_dir),
    }
}

/// Bytes of the file.
fn size(synth: &Synth) -> u64 {
    let amount = synth.amount();
    amount.bytes + amount.frames * RECORD_HEADER + FILE_HEADER
}

/// Bytes that may be written below `folder`, which need not be there yet. `None` where nobody counts them (ramfs).
fn room(folder: &Path) -> Result<Option<u64>> {
    let Some(there) = folder.ancestors().find(|folder| folder.is_dir()) else { return Ok(None) };
    let stat =
        rustix::fs::statvfs(there).with_context(|| format!("asking for the room in {}", there.display()))?;
    Ok((stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_a_part_of_what_was_carried_in_two_digits_and_1_gbps_at_most() {
        for (carried, rate) in [
            (9e9, 1_000_000_000),
            (2e9, 1_000_000_000),
            (1.999e9, 990_000_000),
            (940e6, 470_000_000),
            (0.987_654e9, 490_000_000),
            (61e6, 30_000_000),
            (0.0, 1_000_000),
        ] {
            assert_eq!(part_of(carried), rate, "{carried}");
        }
    }

    /// A result of so many frames sent, received and lost.
    fn report(sent: u64, received: u64, lost: u64) -> Report {
        let mut report = Report::new("demo");
        let totals = |frames| report::Totals::over(frames, frames.saturating_mul(100), 1_000_000_000);
        report.result.tx = Some(report::Tx { totals: totals(sent), ..report::Tx::default() });
        report.result.rx = Some(report::Rx { totals: totals(received), ..report::Rx::default() });
        report.result.loss = Some(report::Loss::of(lost, sent));
        report
    }

    #[test]
    fn what_is_accounted_for_is_no_failure_and_what_is_not_is() {
        let mut late = report(1_000, 990, 10);
        late.result.verdict.fall_short(Code::FramesLost, "10 frames did not arrive");
        late.result.verdict.fall_short(Code::RateNotReached, "too slow");
        let account = Account::of(&late).unwrap();
        assert_eq!(
            account.said(),
            "Accounted for: 1,000 frames sent = 990 received + 10 lost, each by its own number."
        );
        account.judge(&mut late);
        assert_eq!((late.result.verdict.exit_status(), late.warnings.len()), (0, 2));
        for code in [Code::LinkLost, Code::SenderFailed, Code::MeterFailed, Code::Stopped] {
            let mut broken = report(1_000, 1_000, 0);
            broken.result.verdict.fall_short(code, "broken");
            Account::of(&broken).unwrap().judge(&mut broken);
            assert_eq!(broken.result.verdict.exit_status(), 1, "{code:?}");
        }
        for (sent, received, lost) in [(1_000, 990, 9), (1_000, 990, 11), (0, 0, 0), (10, u64::MAX, 2)] {
            let mut wrong = report(sent, received, lost);
            Account::of(&wrong).unwrap().judge(&mut wrong);
            assert_eq!(wrong.result.verdict.exit_status(), 1, "{sent} {received} {lost}");
        }
    }
}
