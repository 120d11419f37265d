//! The probe under test in a lab: started anew for each trial, and what the kernel says of it.

use crate::Handle;
use crate::place::Place;
use ::lab::{Host, Lab, Running};
use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use spec::{ExportFormat, Flows, UnderTest};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A probe opens its socket within this.
const PATIENCE: Duration = Duration::from_secs(60);
/// And ends within this.
const GRACE: Duration = Duration::from_secs(3);
/// So much of what it printed is reported.
const MOST_TOLD: usize = 400;

/// A probe that runs.
pub enum Probe {
    /// This program's, as a job beside this one.
    Own(Handle),
    /// Another's.
    Other { running: Running, output: File, name: String },
}

/// What the trial asks of it.
pub struct Wanted<'a> {
    pub flows: &'a Flows,
    pub lab: &'a Lab,
    /// Where its records go.
    pub collector: SocketAddr,
    /// Where it may run; none: anywhere.
    pub cpus: &'a [usize],
}

impl Wanted<'_> {
    fn seconds(time: Duration) -> String {
        time.as_secs().max(1).to_string()
    }

    fn version(&self) -> &'static str {
        match self.flows.format {
            ExportFormat::Ipfix => "10",
            ExportFormat::V9 => "9",
            ExportFormat::V5 => "5",
        }
    }

    /// What replaces what in a command.
    fn filled(&self, command: &str) -> String {
        let flows = self.flows;
        [
            ("{interface}", ::lab::RECEIVER_INTERFACE.to_owned()),
            ("{collector}", self.collector.to_string()),
            ("{host}", self.collector.ip().to_string()),
            ("{port}", self.collector.port().to_string()),
            ("{format}", self.version().to_owned()),
            ("{idle}", Self::seconds(flows.idle(true))),
            ("{active}", Self::seconds(flows.active(true))),
            ("{flows}", flows.cache(true).unwrap_or(0).to_string()),
        ]
        .iter()
        .fold(command.to_owned(), |command, (name, value)| command.replace(name, value))
    }

    /// The command of a program that is known, and its name.
    fn command(&self) -> Option<(String, String)> {
        // `/run/netns` is the lab's, and gone with it.
        const SOFTFLOWD: &str = "exec softflowd -d -i {interface} -n {collector} -v {format} -m {flows} -B 67108864 \
            -t maxlife={active} -t tcp={idle} -t tcp.rst={idle} -t tcp.fin={idle} -t udp={idle} -t icmp={idle} -t general={idle} \
            -t expint=1 -A milli -c /run/netns/softflowd.ctl -p /run/netns/softflowd.pid";
        const PMACCT: &str = "printf '%s\\n' 'daemonize: false' 'pcap_interface: {interface}' 'plugins: nfprobe' \
            'aggregate: src_host,dst_host,src_port,dst_port,proto,tos' 'nfprobe_receiver: {collector}' 'nfprobe_version: {format}' \
            'nfprobe_timeouts: tcp={idle}:tcp.rst={idle}:tcp.fin={idle}:udp={idle}:icmp={idle}:general={idle}:maxlife={active}:expint=1' \
            'nfprobe_maxflows: {flows}' 'plugin_pipe_size: 268435456' 'plugin_buffer_size: 100000' \
            >/run/netns/pmacctd.conf && exec pmacctd -f /run/netns/pmacctd.conf";
        let (command, name) = match (&self.flows.command, self.flows.probe) {
            (Some(command), _) => (command.as_str(), command.as_str()),
            (None, Some(UnderTest::Softflowd)) => (SOFTFLOWD, "softflowd"),
            (None, Some(UnderTest::Pmacct)) => (PMACCT, "pmacctd"),
            (None, None | Some(UnderTest::Netdyno)) => return None,
        };
        Some((self.filled(command), name.to_owned()))
    }

    /// Starts it, and waits until it listens.
    pub fn start(&self, stop: &AtomicBool) -> Result<Probe> {
        let host = &self.lab.receiver;
        let Some((command, name)) = self.command() else { return self.start_own(stop) };
        let known = self.flows.command.is_none();
        let there = |name: &str| {
            port::outside::program(name).get_program().as_encoded_bytes().contains(&b'/')
                && fs::exists(port::outside::program(name).get_program()).unwrap_or(false)
        };
        if known && !there(&name) {
            bail!("`.probe` {name}: it is not installed: `apt-get install {}`", name.trim_end_matches('d'));
        }
        let output = File::from(rustix::fs::memfd_create("probe", rustix::fs::MemfdFlags::CLOEXEC)?);
        let shell = port::outside::program("sh");
        let argv: Vec<OsString> = vec![shell.get_program().to_owned(), "-c".into(), command.into()];
        let running = ::lab::start(self.lab, host, &argv, &output, self.cpus)?;
        let mut probe = Probe::Other { running, output, name };
        let until = Instant::now() + PATIENCE;
        // Probes look by a packet socket or by an XDP program; one with an AF_XDP socket has a program, too.
        while sockets(host).is_none_or(|sockets| sockets.is_empty()) && !has_program(host) {
            probe.check()?;
            if stop.load(Relaxed) {
                return Ok(probe);
            }
            if Instant::now() > until {
                bail!(
                    "the probe has opened no packet socket and attached no XDP program within {} s{}",
                    PATIENCE.as_secs(),
                    probe.told()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(probe)
    }

    fn start_own(&self, stop: &AtomicBool) -> Result<Probe> {
        let flows = self.flows;
        let job = spec::Probe {
            on: Some(self.lab.receiver.spec()),
            export: vec![self.collector.to_string()],
            format: flows.format,
            idle_timeout: written(flows.idle(true)),
            active_timeout: written(flows.active(true)),
            max_flows: flows.cache(true).and_then(|flows| flows.to_string().parse().ok()),
            // As at a port that gets a copy of traffic: nobody else wants these frames, and the lab's sender would pay for what
            // the receiver's stack does with them.
            drop: true,
            ..spec::Probe::default()
        };
        let job = spec::Job::from(job);
        // It is this search that asks for its collector, and no file.
        let session = crate::Session { consent: job.asks(), ..crate::Session::default() };
        let cpus = self.cpus;
        // Its threads have the namespace and the CPUs of the one that starts them.
        let handle = self.lab.receiver.namespace.run_in(|| {
            if !cpus.is_empty() {
                let mut set = rustix::thread::CpuSet::new();
                cpus.iter().for_each(|cpu| set.set(*cpu));
                rustix::thread::sched_setaffinity(None, &set)?;
            }
            crate::start(job, session)
        })??;
        let until = Instant::now() + PATIENCE;
        while handle.snapshot().is_none() {
            if handle.is_over() {
                handle.wait().map_err(|failed| anyhow!("the probe: {failed}"))?;
                bail!("the probe ended before it began");
            }
            if stop.load(Relaxed) || Instant::now() > until {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Probe::Own(handle))
    }
}

impl Probe {
    /// An error if it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self {
            Probe::Own(handle) if handle.is_over() => {
                handle.wait().map_err(|failed| anyhow!("the probe: {failed}"))?;
                bail!("the probe ended during the trial");
            }
            Probe::Own(_) => Ok(()),
            Probe::Other { running, .. } => match running.ended() {
                None => Ok(()),
                Some(127) => bail!("the probe's command was not found{}", self.told()),
                Some(status) => bail!("the probe ended with status {status}{}", self.told()),
            },
        }
    }

    /// What it printed last.
    fn told(&mut self) -> String {
        let Probe::Other { output, name, .. } = self else { return String::new() };
        let mut bytes = Vec::new();
        let length = output.metadata().map_or(0, |metadata| metadata.len());
        let from = length.saturating_sub(MOST_TOLD as u64);
        let read = output
            .seek(SeekFrom::Start(from))
            .and_then(|_| output.take(MOST_TOLD as u64).read_to_end(&mut bytes));
        let said = String::from_utf8_lossy(&bytes);
        match read {
            Ok(_) if !said.trim().is_empty() => format!(": {name} said: {}", said.trim()),
            _ => String::new(),
        }
    }

    /// Frames that arrived and that it did not take, as far as the kernel or itself knows it.
    pub fn dropped(&self, host: &Host) -> Option<u64> {
        match self {
            // It counts them, and tells at its end.
            Probe::Own(handle) => Some(handle.snapshot()?.flows?.dropped),
            Probe::Other { .. } => {
                let sockets = sockets(host)?;
                // One that takes frames by an XDP program has none: what it did not take the kernel does not know.
                if sockets.is_empty() {
                    return None;
                }
                let mut sum = 0;
                for (process, descriptor) in sockets {
                    let process = pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()?;
                    let socket = pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()).ok()?;
                    sum += port::socket::take_drops(&socket).ok()?;
                }
                Some(sum)
            }
        }
    }

    /// Ends it: what it has left it may send now.
    pub fn end(mut self) -> Result<()> {
        match &mut self {
            Probe::Own(handle) => {
                handle.stop();
                handle.wait().map_err(|failed| anyhow!("the probe: {failed}"))?;
            }
            Probe::Other { running, .. } => {
                running.terminate();
                let until = Instant::now() + GRACE;
                while running.ended().is_none() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        Ok(())
    }
}

/// Whether an XDP program is attached to a host's interface: a lab's has none of itself.
fn has_program(host: &Host) -> bool {
    Place::find(&host.spec()).is_ok_and(|place| place.interface.xdp.is_some())
}

/// The packet sockets of other processes on a host that get frames: process and descriptor, each socket once. `None`: it cannot be found out.
fn sockets(host: &Host) -> Option<Vec<(i32, i32)>> {
    let own = std::process::id();
    let there = rustix::fs::fstat(host.namespace.as_fd()).ok()?.st_ino;
    let numbers = |folder: &str| -> Option<Vec<i32>> {
        let entries = fs::read_dir(folder).ok()?.flatten();
        Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    };
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for process in numbers("/proc")?.into_iter().filter(|process| *process as u32 != own) {
        let at = format!("/proc/{process}");
        // It may have ended meanwhile.
        let Ok(namespace) = fs::metadata(format!("{at}/ns/net")) else { continue };
        if namespace.ino() != there {
            continue;
        }
        let Ok(table) = fs::read_to_string(format!("{at}/net/packet")) else { continue };
        // One that is not bound yet (R, "running") gets no frames. The last column is its inode.
        let running = |line: &&str| line.split_whitespace().nth(5) == Some("1");
        let inodes: BTreeSet<&str> =
            table.lines().skip(1).filter(running).filter_map(|line| line.split_whitespace().last()).collect();
        for descriptor in numbers(&format!("{at}/fd")).unwrap_or_default() {
            let Ok(target) = fs::read_link(format!("{at}/fd/{descriptor}")) else { continue };
            let target = target.to_string_lossy().into_owned();
            let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            if inode.is_some_and(|inode| inodes.contains(inode) && seen.insert(inode.to_owned())) {
                found.push((process, descriptor));
            }
        }
    }
    Some(found)
}

/// The collector's address, as the lab's probe is told it.
pub fn collector(lab: &Lab) -> Result<(std::net::UdpSocket, SocketAddr)> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = lab.receiver.namespace.run_in(|| super::collector::socket(any))??;
    let at = socket.local_addr().context("the collector's address")?;
    Ok((socket, at))
}

/// A time as a job has it.
fn written(time: Duration) -> Option<spec::Written<Duration>> {
    format!("{}ms", time.as_millis()).parse().ok()
}
