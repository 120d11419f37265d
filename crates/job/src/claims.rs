//! Which CPUs other netdynos send on, and which real-time tasks took ours: so that two senders do not share one unasked, and
//! so that one which starved can say beside whom.
//!
//! A sender claims its CPUs by a lock on a file of its own in a folder of its user's, which the kernel gives up however the
//! process ends. Where there is no such folder, nobody claims anything. Of other programs' real-time tasks nothing is known
//! but what they used, which is looked at before and after a run.

pub mod interface;

use crate::run::judge::pace::RATE_TOLERANCE;
use engine::Priority;
use report::{Code, Report, Said, Sentence, Verdict};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, ftruncate, mkdirat, openat};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What this process holds, and for which of its jobs.
static HELD: Mutex<Held> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Which of several jobs side by side this thread prepares.
    static JOB: Cell<usize> = const { Cell::new(0) };
}

/// From now on this thread claims CPUs for the job of this number: what another job of this process has is not its own.
pub fn for_job(number: usize) {
    JOB.set(number);
}

/// The job that this thread prepares, for threads that do so for it.
pub fn job() -> usize {
    JOB.get()
}

/// The job of this thread is over: its CPUs are anybody's.
pub fn release() {
    let job = JOB.get();
    HELD.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, (_, of)| *of != job);
}

type Held = BTreeMap<usize, (OwnedFd, usize)>;

/// Which other job of this process has a CPU, if this process has it.
fn held_here(held: &Held, cpu: usize) -> Option<Option<Holder>> {
    let (file, job) = held.get(&cpu)?;
    Some((*job != JOB.get()).then(|| holder(file)))
}

/// Another netdyno that sends on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// 0: not known.
    pub process: u32,
    pub real_time: bool,
}

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is ours, or nobody can claim here.
    Ours,
    Held(Holder),
}

/// The folder of the locks.
fn folder() -> Option<OwnedFd> {
    let own = rustix::process::geteuid();
    let runtime = match own.is_root() {
        true => PathBuf::from("/run"),
        false => PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?),
    };
    let path = runtime.join("netdyno");
    match mkdirat(CWD, &path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(_) => return None,
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, &path, flags, Mode::empty()).ok()?;
    let stat = fstat(&folder).ok()?;
    // What others may write into says nothing.
    (stat.st_uid == own.as_raw() && stat.st_mode & 0o022 == 0).then_some(folder)
}

fn file_of(folder: &OwnedFd, cpu: usize) -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, format!("cpu{cpu}"), flags, Mode::RUSR | Mode::WUSR).ok()?;
    let stat = fstat(&file).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(file)
}

fn holder(file: &OwnedFd) -> Holder {
    let mut bytes = [0; 64];
    let length = rustix::io::pread(file, &mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
    let mut words = text.split_whitespace();
    let process = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    // Who has it now may not have written yet: what stands there is of one that is no more.
    if !fs::exists(format!("/proc/{process}")).unwrap_or(false) {
        return Holder { process: 0, real_time: false };
    }
    Holder { process, real_time: words.next() == Some("real-time") }
}

/// Tries of a claim after the first, and the pause before each: others look with a lock who has a CPU, for a moment.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// Locks what nobody holds for longer than a moment.
fn patiently(mut lock: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    for _ in 0..TRIES {
        match lock() {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(BETWEEN_TRIES),
            done => return done,
        }
    }
    lock()
}

/// Claims a CPU for this thread's job, until that is over, or says who has it.
pub fn claim(cpu: usize, priority: Priority) -> Claim {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(other) = held_here(&held, cpu) {
        return other.map_or(Claim::Ours, Claim::Held);
    }
    let Some(file) = folder().and_then(|folder| file_of(&folder, cpu)) else { return Claim::Ours };
    match patiently(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => {
            let kind = if priority == Priority::RealTime { "real-time" } else { "ordinary" };
            let text = format!("{} {kind}\n", std::process::id());
            // Without it the others know only that it is somebody's.
            let _ = ftruncate(&file, 0).and_then(|()| rustix::io::pwrite(&file, text.as_bytes(), 0));
            held.insert(cpu, (file, JOB.get()));
            Claim::Ours
        }
        Err(Errno::WOULDBLOCK) => Claim::Held(holder(&file)),
        // A file system without locks.
        Err(_) => Claim::Ours,
    }
}

/// Who has a CPU, without claiming it.
pub fn held_by_another(cpu: usize) -> Option<Holder> {
    if let Some(other) = held_here(&HELD.lock().unwrap_or_else(PoisonError::into_inner), cpu) {
        return other;
    }
    let file = file_of(&folder()?, cpu)?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(holder(&file)),
        _ => None,
    }
}

/// The CPUs in the order in which senders take them: the last first, and those that another has behind all.
pub fn free_first(cpus: &[usize], held: impl Fn(usize) -> bool) -> Vec<usize> {
    let (taken, free): (Vec<usize>, Vec<usize>) = cpus.iter().rev().partition(|&&cpu| held(cpu));
    [free, taken].concat()
}

/// A real-time task of user space, by what it has used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    process: u32,
    name: String,
    /// The CPU it ran on last.
    cpu: usize,
    /// In clock ticks.
    used: u64,
}

/// Kernel threads (`include/linux/sched.h`): they do what the kernel has to do.
const PF_KTHREAD: u64 = 0x0020_0000;

impl Task {
    /// `/proc/PID/task/TID/stat` (proc_pid_stat(5)).
    fn parse(process: u32, stat: &str) -> Option<Task> {
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        // The first of the rest is field 3.
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        (field(9)? & PF_KTHREAD == 0).then_some(())?;
        Some(Task {
            process,
            name: name.to_owned(),
            cpu: usize::try_from(field(39)?).ok()?,
            used: field(14)?.saturating_add(field(15)?),
        })
    }
}

/// The real-time tasks of other processes, by their number.
fn tasks() -> BTreeMap<u32, Task> {
    let mut found = BTreeMap::new();
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let own = std::process::id();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = number(&entry).filter(|process| *process != own) else { continue };
        for thread in fs::read_dir(entry.path().join("task")).into_iter().flatten().flatten() {
            let Some(id) = number(&thread).filter(|id| engine::priority::is_real_time_thread(*id)) else {
                continue;
            };
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            found.extend(Task::parse(process, &stat).map(|task| (id, task)));
        }
    }
    found
}

/// What happened beside a run's senders.
#[derive(Debug)]
pub struct Beside {
    cpus: Vec<usize>,
    /// The look goes through all tasks of this machine, while the run gets ready.
    looking: Option<JoinHandle<BTreeMap<u32, Task>>>,
    /// `None`: nobody looked.
    before: Option<BTreeMap<u32, Task>>,
    holders: Vec<(usize, Holder)>,
}

impl Beside {
    /// From now on, where senders of that priority run on `cpus`.
    pub fn begin(cpus: &[Option<usize>], priority: Priority) -> Beside {
        let cpus: Vec<usize> = cpus.iter().flatten().copied().collect();
        let of = |cpu: &usize| match claim(*cpu, priority) {
            Claim::Held(holder) => Some((*cpu, holder)),
            Claim::Ours => None,
        };
        let holders = cpus.iter().filter_map(of).collect();
        // Who goes before others as well is stopped by none of them for long.
        let look = || std::thread::Builder::new().name("beside".to_owned()).spawn(tasks).ok();
        let looking = (priority != Priority::RealTime).then(look).flatten();
        Beside { cpus, looking, before: None, holders }
    }

    /// Sending begins: what was to be looked at before has been.
    pub fn ready(&mut self) {
        self.before = self.looking.take().and_then(|looking| looking.join().ok());
    }

    /// What is to be said before the run.
    pub fn warnings(&self) -> Vec<Said> {
        let said = |(cpu, holder): &(usize, Holder)| {
            let process = process(holder.process);
            Code::CpuBusy.says((
                format!("CPU {cpu} is another netdyno's ({process}), whose sender is a real-time task and goes first"),
                "give this one another CPU (`.cores`)",
            ))
        };
        // Ordinary senders share.
        self.holders.iter().filter(|(_, holder)| holder.real_time).map(said).collect()
    }

    /// Says who kept the sender of a finished run from its CPU, if that was too slow.
    pub fn tell(&self, report: &mut Report) {
        let Some(tx) = &report.result.tx else { return };
        let slower = |asked: f64| tx.totals.frames_per_second < asked * (1.0 - RATE_TOLERANCE);
        let put_off = report.result.pacing.as_ref().and_then(|pacing| pacing.catch_up);
        let held_up = tx.intended_frames_per_second.is_some_and(slower)
            || put_off.is_some_and(|held_up| held_up.abandoned_ns > 0);
        let Some(said) = held_up.then(|| self.culprits(tasks)).flatten() else { return };
        match &mut report.result.verdict {
            Verdict::Done => report.warnings.add(Code::CpuBusy, said),
            Verdict::Short { reasons } | Verdict::Failed { reasons } => {
                match reasons.iter_mut().find(|reason| reason.code == Code::RateNotReached) {
                    Some(reason) => reason.also(said),
                    None => reasons.push(Code::CpuBusy.says(said)),
                }
            }
        }
    }

    fn culprits(&self, now: impl FnOnce() -> BTreeMap<u32, Task>) -> Option<Sentence> {
        let mut said: Vec<String> = self
            .holders
            .iter()
            .filter(|(_, holder)| holder.real_time)
            .map(|(cpu, holder)| format!("another netdyno's on CPU {cpu} ({})", process(holder.process)))
            .collect();
        // What tasks have used in all their lives says nothing of this run.
        if let Some(before) = &self.before {
            said.extend(busy(before, &now(), &self.cpus));
        }
        (!said.is_empty()).then(|| {
            let tasks = said.join(", ");
            let said = format!("a real-time task goes before this sender on its CPU: {tasks}");
            (said, "give one of them another CPU (`.cores`)").into()
        })
    }
}

fn process(number: u32) -> String {
    if number == 0 { "process unknown".to_owned() } else { format!("process {number}") }
}

/// Ticks that somebody must have used to be worth naming: a tenth of a second (USER_HZ is 100).
const ENOUGH: u64 = 10;

/// Of the tasks on `cpus` those that used much since.
fn busy(before: &BTreeMap<u32, Task>, now: &BTreeMap<u32, Task>, cpus: &[usize]) -> Vec<String> {
    let used = |id: &u32, task: &Task| task.used - before.get(id).map_or(0, |then| then.used.min(task.used));
    let tasks = now.iter().filter(|(id, task)| cpus.contains(&task.cpu) && used(id, task) >= ENOUGH);
    tasks.map(|(_, task)| format!("{} ({})", task.name, process(task.process))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::Warnings;

    #[test]
    fn tasks_of_user_space_are_read_whatever_their_name() {
        let stat = |name: &str, flags: u64| {
            format!(
                "77 ({name}) R 1 77 77 0 -1 {flags} 0 0 0 0 12 30 0 0 -3 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 5 2 1 0 0 0"
            )
        };
        let task = Task::parse(7, &stat("a) (b", 0x0040_0040)).expect("a task");
        assert_eq!(task, Task { process: 7, name: "a) (b".to_owned(), cpu: 5, used: 42 });
        assert_eq!(Task::parse(7, &stat("migration/0", 0x0420_8040)), None);
        for broken in ["", "77 (x", "77 (x) R 1", "x)("] {
            assert_eq!(Task::parse(7, broken), None, "{broken}");
        }
    }

    #[test]
    fn only_who_used_much_of_our_cpus_meanwhile_is_named() {
        let task = |cpu, used| Task { process: 9, name: "cyclic".to_owned(), cpu, used };
        let before = BTreeMap::from([(1, task(3, 100)), (2, task(3, 100)), (3, task(2, 100))]);
        let now = BTreeMap::from([(1, task(3, 101)), (2, task(3, 300)), (3, task(2, 900)), (4, task(3, 50))]);
        assert_eq!(busy(&before, &now, &[3]), ["cyclic (process 9)"; 2]);
        assert!(busy(&before, &now, &[0]).is_empty());
    }

    #[test]
    fn what_a_task_used_before_is_no_culprit_where_nobody_looked_before() {
        let task = |used| BTreeMap::from([(1, Task { process: 9, name: "cyclic".to_owned(), cpu: 3, used })]);
        let beside = |before| Beside { cpus: vec![3], looking: None, before, holders: Vec::new() };
        // A sender that goes first, too.
        assert_eq!(beside(None).culprits(|| task(5_000)), None);
        assert_eq!(beside(Some(task(5_000))).culprits(|| task(5_001)), None);
        let said = beside(Some(task(4_000))).culprits(|| task(5_000)).expect("used meanwhile");
        assert!(said.to_string().contains("cyclic (process 9)"), "{said}");
    }

    #[test]
    fn ways_take_the_cpus_that_nobody_sends_on_first() {
        assert_eq!(free_first(&[0, 1, 2, 5], |_| false), [5, 2, 1, 0]);
        assert_eq!(free_first(&[0, 1, 2, 5], |cpu| cpu == 5 || cpu == 1), [2, 0, 5, 1]);
        // As many as there are, however they are held.
        assert_eq!(free_first(&[0, 1], |_| true), [1, 0]);
    }

    #[test]
    fn a_lock_that_is_held_for_a_moment_holds_nothing() {
        for (held, free) in [(0, true), (TRIES, true), (TRIES + 1, false)] {
            let mut tries = 0;
            let locked = patiently(|| {
                tries += 1;
                if tries <= held { Err(Errno::WOULDBLOCK) } else { Ok(()) }
            });
            assert_eq!((locked.is_ok(), tries), (free, held.min(TRIES) + 1), "{held}");
        }
        let mut tries = 0;
        let failed = patiently(|| {
            tries += 1;
            Err(Errno::NOLCK)
        });
        assert_eq!((failed, tries), (Err(Errno::NOLCK), 1));
    }

    #[test]
    fn a_cpu_is_claimed_once_and_free_again_when_its_process_is_killed() {
        // None that any machine has.
        let cpu = rustix::thread::CpuSet::MAX_CPU + std::process::id() as usize;
        let path = format!("/run/netdyno/cpu{cpu}");
        // Of one that lives.
        let own = std::process::id();
        assert_eq!(held_by_another(cpu), None);
        let mut other = std::process::Command::new("flock")
            .args([&path, "sh", "-c", &format!("echo {own} real-time > {path}; exec sleep 600")])
            .spawn()
            .expect("flock (util-linux), as root");
        let until = |wanted: Option<Holder>| {
            while held_by_another(cpu) != wanted {
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let holder = Holder { process: own, real_time: true };
        until(Some(holder));
        assert_eq!(claim(cpu, Priority::Ordinary), Claim::Held(holder));
        let beside = Beside::begin(&[Some(cpu)], Priority::RealTime);
        assert!(beside.warnings()[0].contains(&format!("process {own}), whose sender is a real-time task")));
        // Of 1,000 frames a second 130 were sent.
        let mut report = Report::new("send");
        report.result.tx = Some(report::Tx {
            totals: report::Totals::over(130, 7_800, 1_000_000_000),
            intended_frames_per_second: Some(1_000.0),
            ..report::Tx::default()
        });
        report.result.verdict.fall_short(Code::RateNotReached, "the rate was not reached");
        beside.tell(&mut report);
        let said = report.result.verdict.reasons().join("; ");
        assert!(
            said.contains("a real-time task goes before this sender")
                && said.contains(&format!("process {own}")),
            "{said}"
        );
        // Who was in time, needs no cause.
        if let Some(tx) = &mut report.result.tx {
            tx.intended_frames_per_second = Some(130.0);
        }
        (report.result.verdict, report.warnings) = (Verdict::Done, Warnings::default());
        beside.tell(&mut report);
        assert_eq!((report.result.verdict, report.warnings.len()), (Verdict::Done, 0));
        // The text of one that is no more (no process has such a number) says nothing of who has it.
        fs::write(&path, "4194305 real-time\n").expect("written");
        until(Some(Holder { process: 0, real_time: false }));
        // Its child holds the lock, too, until it ends.
        let children = format!("/proc/{0}/task/{0}/children", other.id());
        let child = fs::read_to_string(children).expect("its children").trim().parse().expect("one");
        let child = rustix::process::Pid::from_raw(child).expect("a process");
        rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("killed");
        other.wait().expect("ended");
        until(None);
        assert_eq!(claim(cpu, Priority::Ordinary), Claim::Ours);
        assert_eq!(claim(cpu, Priority::Ordinary), Claim::Ours, "it is ours already");
        assert_eq!(held_by_another(cpu), None);
        let text = fs::read_to_string(&path).expect("the file");
        assert_eq!(text, format!("{} ordinary\n", std::process::id()));
        fs::remove_file(path).expect("removed");
    }
}
