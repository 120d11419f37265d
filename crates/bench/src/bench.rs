//! The bench itself: two hosts and a cable, a core that sends and a core that watches, and processes run and counted.

use crate::fixtures::frames;
use crate::sys::{self, Usage};
use anyhow::{Context, Result, bail};
use lab::{Lab, Options as LabOptions};
use meter::{Action, Meter, Mode, Options as MeterOptions};
use port::interface::{CounterReader, Interface};
use port::packet::Target;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::CpuSet;
use rustix::time::Timespec;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use traffic::{Executor, Slab};

/// What all cases share.
#[derive(Debug)]
pub struct Bench {
    pub lab: Lab,
    /// Rounds of each measurement.
    pub runs: usize,
    pub quick: bool,
    /// Senders are real-time tasks.
    realtime: bool,
    /// Senders are started as a user starts them.
    as_users_do: AtomicBool,
    /// Senders are pinned here; everything else runs elsewhere.
    pub core: usize,
    /// How many there are, and all of them, as taskset(1) names them.
    pub core_count: usize,
    cores: String,
    pub netdyno: PathBuf,
    /// Whether the peer is there.
    pub peer: bool,
    stop: Arc<AtomicBool>,
    _first: Arc<FirstOfSessions>,
}

/// What the user chose.
#[derive(Debug)]
pub struct Settings {
    pub runs: usize,
    pub quick: bool,
    pub realtime: bool,
    pub core: usize,
    /// How many cores there are.
    pub cores: usize,
    pub netdyno: PathBuf,
    pub peer: bool,
}

/// A sender, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Netdyno,
    /// netdyno by tcpreplay's name, with its options.
    DropIn,
    Tcpreplay,
    Trafgen,
    XdpTrafficgen,
}

/// Of senders that are real-time tasks.
const PRIORITY: i32 = 10;

impl Tool {
    pub fn name(self) -> &'static str {
        match self {
            Tool::Netdyno => "netdyno",
            Tool::DropIn => "netdyno tcpreplay",
            Tool::Tcpreplay => "tcpreplay",
            Tool::Trafgen => "trafgen",
            Tool::XdpTrafficgen => "xdp-trafficgen",
        }
    }
}

/// Who receives. On a veth that is work of the sending core, so it must be the same for all that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Far {
    /// The host's own stack, which drops frames for another host.
    Stack,
    /// An XDP program of two instructions, which drops them.
    Drop,
    /// netdyno's meter, which counts them and their sizes.
    Count,
    /// netdyno's meter, which also reads the clock for each, for latency.
    Time,
    /// netdyno's meter, that tells so many streams apart, and reads the clock for each frame or not.
    Streams { streams: u32, latency: bool },
    /// netdyno's meter as `netdyno measure` has it: reads the clock for each, and lets the host have them.
    Pass,
    /// A program that counts frames and their bytes, and drops them.
    Bare,
    /// What the sender brings along (`--measure`).
    Own,
}

/// A receiver at work, until this is dropped.
#[derive(Debug, Default)]
pub struct Receiver {
    _meter: Option<Meter>,
    _link: Option<bpf::Link>,
    _counts: Option<bpf::Memory>,
}

/// A process that ended.
#[derive(Debug)]
pub struct Ran {
    pub usage: Usage,
    pub wall: Duration,
    /// Frames it says it sent; `None` if it does not say.
    pub said: Option<u64>,
    /// netdyno's result.
    pub report: Option<report::Report>,
}

impl Ran {
    pub fn cpu(&self) -> Duration {
        self.usage.user + self.usage.system
    }

    /// Cores used, 1.0 being one all the time.
    pub fn cpu_share(&self) -> f64 {
        self.cpu().as_secs_f64() / self.wall.as_secs_f64()
    }
}

impl Bench {
    pub fn new(settings: Settings) -> Result<Bench> {
        let Settings { runs, quick, realtime, core, cores, netdyno, peer } = settings;
        let (core_count, cores) = (cores, format!("0-{}", cores - 1));
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let lab = Lab::two_hosts(&LabOptions::default())?;
        let _first = Arc::new(FirstOfSessions::new());
        let as_users_do = AtomicBool::new(false);
        Ok(Bench {
            lab,
            runs,
            quick,
            realtime,
            as_users_do,
            core,
            core_count,
            cores,
            netdyno,
            peer,
            stop,
            _first,
        })
    }

    /// The same with a cable of several queues.
    pub fn with_queues(&self, queues: u32) -> Result<Bench> {
        let lab = Lab::two_hosts(&LabOptions { queues, ..LabOptions::default() })?;
        Ok(Bench {
            lab,
            cores: self.cores.clone(),
            netdyno: self.netdyno.clone(),
            stop: Arc::clone(&self.stop),
            as_users_do: AtomicBool::new(self.as_users_do.load(Ordering::Relaxed)),
            _first: Arc::clone(&self._first),
            ..*self
        })
    }

    /// The receiving interface, as netdyno's `--measure` wants it.
    pub fn far_interface(&self) -> String {
        let receiver = &self.lab.receiver;
        let namespace = receiver.namespace.as_fd().as_raw_fd();
        format!("{}@/proc/{}/fd/{namespace}", receiver.interface, std::process::id())
    }

    /// From now on senders are ordinary programs, or are no longer.
    pub fn as_users_do(&self, so: bool) {
        self.as_users_do.store(so, Ordering::Relaxed);
    }

    /// Was the bench interrupted? Ends whatever asks.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { bail!("interrupted") } else { Ok(()) }
    }

    /// The tools that can be measured here.
    pub fn tools(&self) -> &'static [Tool] {
        if self.peer { &[Tool::Netdyno, Tool::Tcpreplay] } else { &[Tool::Netdyno] }
    }

    /// A command line: all tools before all else that is not real-time, all with their sending thread on the one
    /// core. netdyno pins itself, to the cores it is given or else to that one; the others are pinned.
    pub fn command_line(&self, tool: Tool, arguments: &[String]) -> Vec<String> {
        let core = self.core.to_string();
        let own = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let mut line = match self.realtime {
            _ if self.as_users_do.load(Ordering::Relaxed) => own(&["nice", "-n", "0"]),
            true => own(&["chrt", "-f", &PRIORITY.to_string()]),
            false => own(&["nice", "-n", "-20"]),
        };
        match tool {
            Tool::Netdyno => {
                // It may use all cores, as it would without us: this program's own choice is inherited.
                line.extend(own(&["taskset", "-c", &self.cores]));
                line.push(self.netdyno.display().to_string());
                line.extend_from_slice(arguments);
                if !arguments.iter().any(|word| word == "--cores") {
                    line.extend(own(&["--core", &core]));
                }
                line.push("--json".to_owned());
            }
            Tool::DropIn => {
                line.extend(own(&["taskset", "-c", &core, &self.netdyno.display().to_string(), "tcpreplay"]));
                line.extend_from_slice(arguments);
            }
            Tool::Tcpreplay | Tool::Trafgen | Tool::XdpTrafficgen => {
                line.extend(own(&["taskset", "-c", &core, tool.name()]));
                line.extend_from_slice(arguments);
            }
        }
        line
    }

    /// Runs a tool on the sender until it ends, calling `watch` with its process id every `tick`; when that says
    /// `false`, the process is ended.
    pub fn run(
        &self,
        tool: Tool,
        arguments: &[String],
        tick: Duration,
        watch: impl FnMut(u32, Duration) -> bool,
    ) -> Result<Ran> {
        /// Little in this bench takes as long.
        const LIMIT: Duration = Duration::from_secs(120);
        self.run_within(LIMIT, tool, arguments, tick, watch)
    }

    /// The same with another limit, after which the tool is killed.
    pub fn run_within(
        &self,
        limit: Duration,
        tool: Tool,
        arguments: &[String],
        tick: Duration,
        mut watch: impl FnMut(u32, Duration) -> bool,
    ) -> Result<Ran> {
        self.check()?;
        let line = self.command_line(tool, arguments);
        let (mut said, mut complained) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut command = self.lab.sender.namespace.command(&line[0])?;
        command
            .args(&line[1..])
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(complained.try_clone()?);
        let start = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start `{}`", line.join(" ")))?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let tick = Timespec { tv_sec: tick.as_secs() as i64, tv_nsec: tick.subsec_nanos().into() };
        let mut ended_by_us = false;
        loop {
            let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
            if matches!(poll(&mut polled, Some(&tick)), Ok(n) if n > 0) {
                break;
            }
            let overdue = start.elapsed() > limit || self.stop.load(Ordering::Relaxed);
            if overdue || (!watch(child.id(), start.elapsed()) && !ended_by_us) {
                pidfd_send_signal(&pidfd, if overdue { Signal::KILL } else { Signal::TERM })?;
                ended_by_us = true;
            }
        }
        let usage = sys::wait(child.id())?;
        let wall = start.elapsed();
        self.check()?;
        let (said, complained) = (text(&mut said)?, text(&mut complained)?);
        if usage.status != 0 && !ended_by_us {
            // netdyno ends with 1 when a run fell short of what was asked: that is a result.
            let short = matches!(tool, Tool::Netdyno | Tool::DropIn) && usage.status == 1 << 8;
            if !short {
                bail!("`{}` failed: {}{}", line.join(" "), complained.trim(), said.trim());
            }
        }
        let (mut frames, mut result) = (None, None);
        match tool {
            Tool::Netdyno if ended_by_us => {}
            Tool::Netdyno => {
                let report =
                    report::json::from_str(&said).with_context(|| format!("`{}`", line.join(" ")))?;
                frames = report.result.tx.as_ref().map(|tx| tx.totals.frames);
                result = Some(report);
            }
            Tool::Tcpreplay | Tool::DropIn => frames = actual(&format!("{said}{complained}")),
            // Of each process, and at last of all together.
            Tool::Trafgen => frames = before(&said, " packets outgoing"),
            Tool::XdpTrafficgen => {}
        }
        Ok(Ran { usage, wall, said: frames, report: result })
    }

    /// Runs netdyno to its end, if wanted on a terminal of 80 by 24 whose every word is read; calls `watch` with its
    /// process id every `tick`.
    pub fn run_on_a_terminal(
        &self,
        on_terminal: bool,
        arguments: &[String],
        tick: Duration,
        mut watch: impl FnMut(u32, Duration) -> bool,
    ) -> Result<Ran> {
        if !on_terminal {
            return self.run(Tool::Netdyno, arguments, tick, watch);
        }
        self.check()?;
        let line = self.command_line(Tool::Netdyno, arguments);
        let mut said = tempfile::tempfile()?;
        let (ours, theirs) = sys::terminal(80, 24).context("a terminal")?;
        let mut command = self.lab.sender.namespace.command(&line[0])?;
        command.args(&line[1..]).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.stdin(theirs.try_clone()?).stdout(said.try_clone()?).stderr(theirs);
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start `{}`", line.join(" ")))?;
        // It holds the other end, which the reader waits to see closed.
        drop(command);
        let reader = std::thread::spawn(move || {
            let mut terminal = File::from(ours);
            let mut words = [0; 65_536];
            while terminal.read(&mut words).is_ok_and(|count| count > 0) {}
        });
        while child.try_wait()?.is_none() {
            watch(child.id(), start.elapsed());
            if self.stop.load(Ordering::Relaxed) || start.elapsed() > Duration::from_secs(120) {
                child.kill()?;
            }
            std::thread::sleep(tick);
        }
        let wall = start.elapsed();
        let _ = reader.join();
        self.check()?;
        let said = text(&mut said)?;
        let report = report::json::from_str(&said).with_context(|| format!("`{}`", line.join(" ")))?;
        Ok(Ran { usage: Usage::default(), wall, said: None, report: Some(report) })
    }

    /// Runs a tool with nothing else to do meanwhile.
    pub fn run_plainly(&self, tool: Tool, arguments: &[String]) -> Result<Ran> {
        self.run(tool, arguments, Duration::from_millis(50), |_, _| true)
    }

    /// Counts what reaches the far end, by the interface's own counters.
    pub fn far_counter(&self) -> Result<FarCounter> {
        let receiver = &self.lab.receiver;
        let reader = receiver.namespace.run_in(|| CounterReader::open(receiver.interface))??;
        FarCounter::new(reader)
    }

    /// Takes down when each frame arrives at the far end, in the kernel.
    pub fn arrival_meter(&self, frames: usize) -> Result<Meter> {
        let options = MeterOptions {
            action: Action::Drop,
            mode: Mode::XdpNative,
            streams: 1,
            latency: false,
            arrivals: frames,
            ..MeterOptions::default()
        };
        let receiver = &self.lab.receiver;
        Ok(receiver.namespace.run_in(|| Meter::attach(receiver.interface, &options))??)
    }

    /// Puts a receiver at the far end.
    pub fn receiver(&self, far: Far) -> Result<Receiver> {
        let end = &self.lab.receiver;
        let usual = MeterOptions::default().streams;
        let meter = |latency, streams, action| -> Result<Receiver> {
            // In all else as `netdyno send --measure` has it.
            let options =
                MeterOptions { mode: Mode::XdpNative, latency, streams, action, ..MeterOptions::default() };
            let meter = end.namespace.run_in(|| Meter::attach(end.interface, &options))??;
            Ok(Receiver { _meter: Some(meter), ..Receiver::default() })
        };
        match far {
            Far::Stack | Far::Own => Ok(Receiver::default()),
            Far::Count => meter(false, usual, Action::Drop),
            Far::Time => meter(true, usual, Action::Drop),
            Far::Pass => meter(true, usual, Action::Pass),
            Far::Streams { streams, latency } => meter(latency, streams.max(usual), Action::Drop),
            Far::Bare => {
                let (program, counts) = crate::floors::counting()?;
                let link = end.namespace.run_in(|| -> Result<bpf::Link> {
                    let index = Interface::by_name(end.interface)?.index;
                    program.attach(index, bpf::Hook::XdpNative).context("XDP at the far end")
                })??;
                Ok(Receiver { _link: Some(link), _counts: Some(counts), ..Receiver::default() })
            }
            Far::Drop => {
                let link = end.namespace.run_in(|| -> Result<bpf::Link> {
                    let index = Interface::by_name(end.interface)?.index;
                    crate::floors::verdict(crate::floors::XDP_DROP)?
                        .attach(index, bpf::Hook::XdpNative)
                        .context("XDP at the far end")
                })??;
                Ok(Receiver { _link: Some(link), ..Receiver::default() })
            }
        }
    }

    /// The sending interface.
    pub fn target(&self) -> Result<Target> {
        let sender = &self.lab.sender;
        let found = sender.namespace.run_in(|| Interface::by_name(sender.interface))??;
        Ok(Target { name: sender.interface.to_owned(), index: found.index, mtu: found.mtu })
    }

    /// Moves the calling thread to a core, as undisturbed there as the tools.
    pub fn take_core(realtime: bool, core: usize) -> Result<()> {
        match realtime {
            true => sys::become_realtime(PRIORITY).context("SCHED_FIFO")?,
            false => rustix::process::setpriority_process(None, -20).context("nice -20")?,
        }
        pin(core)
    }

    /// Whether senders are real-time tasks.
    pub fn is_realtime(&self) -> bool {
        self.realtime
    }

    /// Runs `work` on a thread of the sending core and in the sender's namespace, with the index of its interface and
    /// a frame of `bytes`; calls `watch` meanwhile.
    pub fn send_barely<T: Send>(
        &self,
        bytes: u32,
        work: impl FnOnce(u32, &[u8]) -> std::io::Result<T> + Send,
        mut watch: impl FnMut() -> Result<()>,
    ) -> Result<T> {
        self.check()?;
        let frame = frame(bytes)?;
        let sender = &self.lab.sender;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.on_sending_core(|| {
                    sender.namespace.enter_current_thread()?;
                    let index = Interface::by_name(sender.interface)?.index;
                    Ok(work(index, &frame)?)
                })
            });
            while !thread.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
                watch()?;
            }
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `work` on a thread of the sending core, as undisturbed as the tools.
    pub fn on_sending_core<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                Bench::take_core(self.realtime, self.core)?;
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// With autogroups the kernel shares cores among terminal sessions first and among the tasks of each only then
/// (sched(7)), so that nice -20 alone says nothing to tasks of other sessions: ours goes before them, too.
#[derive(Debug)]
struct FirstOfSessions {
    before: Option<String>,
}

const AUTOGROUP: &str = "/proc/self/autogroup";

impl FirstOfSessions {
    fn new() -> FirstOfSessions {
        // The file reads `/autogroup-72 nice 0`, and takes the number alone.
        let text = std::fs::read_to_string(AUTOGROUP).unwrap_or_default();
        let before = text.split_whitespace().last().map(str::to_owned);
        let raised = std::fs::write(AUTOGROUP, "-20").is_ok();
        FirstOfSessions { before: before.filter(|_| raised) }
    }
}

impl Drop for FirstOfSessions {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Nobody is left to tell; the session ends with its terminal anyway.
            let _ = std::fs::write(AUTOGROUP, before);
        }
    }
}

/// A frame of so many bytes, for another host.
pub fn frame(bytes: u32) -> Result<Vec<u8>> {
    let program = frames(bytes)?;
    let mut slab = Slab::new(1, bytes as usize);
    Executor::new(&program)?.render(&mut slab.buffers(), 1, || 0);
    Ok(slab.frame(0).to_vec())
}

/// Binds the calling thread to a core.
pub fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).with_context(|| format!("cannot run on core {core}"))
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// tcpreplay's count, from its closing block: `Actual: 1234 packets (...) sent in ... seconds`.
fn actual(text: &str) -> Option<u64> {
    let rest = text.split("Actual: ").nth(1)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The number before the last of these words.
fn before(text: &str, words: &str) -> Option<u64> {
    let (text, _) = text.rsplit_once(words)?;
    text.split_whitespace().last()?.parse().ok()
}

/// Frames that arrived at the far end, over time.
#[derive(Debug)]
pub struct FarCounter {
    reader: CounterReader,
    before: u64,
    bytes_before: u64,
    /// When frames were first and last seen to have arrived, and how many were there by then.
    first: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
}

impl FarCounter {
    fn new(mut reader: CounterReader) -> Result<FarCounter> {
        let read = reader.read()?;
        let (before, bytes_before) = (read.rx_packets, read.rx_bytes);
        Ok(FarCounter { reader, before, bytes_before, first: None, last: None })
    }

    /// Looks now. Returns how many have arrived.
    pub fn look(&mut self) -> Result<u64> {
        let (count, now) = (self.reader.read()?.rx_packets - self.before, Instant::now());
        if count > self.last.map_or(0, |(_, seen)| seen) {
            self.first.get_or_insert((now, count));
            self.last = Some((now, count));
        }
        Ok(count)
    }

    /// How many frames have arrived, without a look.
    pub fn arrived(&mut self) -> Result<u64> {
        Ok(self.arrived_bytes()?.0)
    }

    /// How many frames have arrived, and how many bytes.
    pub fn arrived_bytes(&mut self) -> Result<(u64, u64)> {
        let read = self.reader.read()?;
        Ok((read.rx_packets - self.before, read.rx_bytes - self.bytes_before))
    }

    /// Frames per second between the first and the last look that saw new ones.
    pub fn rate(&self) -> Option<f64> {
        let ((from, few), (to, many)) = (self.first?, self.last?);
        let seconds = to.duration_since(from).as_secs_f64();
        (seconds > 0.0).then(|| (many - few) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_peers_own_count_is_read() {
        let block = "Actual: 645110 packets (38706600 bytes) sent in 0.39 seconds\nRated: 98 Bps";
        assert_eq!(super::actual(block), Some(645_110));
        assert_eq!(super::actual("Fatal Error"), None);
        let block = "  300000 packets outgoing\n  18000000 bytes outgoing";
        assert_eq!(super::before(block, " packets outgoing"), Some(300_000));
        assert_eq!(super::before("", " packets outgoing"), None);
    }
}
