//! What all interfaces of a machine share: kernel, privileges, processor, settings.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::{Area, Finding, State, probe, read};
use crate::netlink::Socket;

/// `AF_XDP` (`linux/socket.h`), for the architectures whose C library does not name it.
const AF_XDP: u16 = 44;

/// Capabilities, by their numbers in `linux/capability.h`.
const CAPABILITIES: [(u32, &str); 4] =
    [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW"), (39, "CAP_BPF"), (21, "CAP_SYS_ADMIN")];

/// Above these, reading the clock is a call into the kernel, and a wake-up is late enough to matter.
const CHEAP_CLOCK_NS: u32 = 60;
const LATE_WAKE_UP: Duration = Duration::from_micros(150);

/// Runs of live frames; each call costs about 20 ms, most of it spent waiting.
const RUNS: usize = 6;

/// The parts of a look that others build on.
#[derive(Debug)]
pub struct Machine {
    pub xdp: Result<(), Errno>,
    /// Nanoseconds to make and drop one live frame.
    pub live_frame_ns: Result<u32, Errno>,
    pub xdp_socket: Result<(), Errno>,
    /// Does the kernel tell what drivers do with XDP?
    pub tells_features: bool,
    pub packet_socket: Result<(), Errno>,
    /// Whether the kernel turned the probe into machine code; `None` if it could not be seen.
    pub compiled: Option<bool>,
}

impl Machine {
    pub fn look() -> Self {
        let program = probe::load_drop_program();
        let live = match &program {
            // Others share the machine: the fastest of a few short runs is what it can do.
            Ok(program) => (0..RUNS)
                .map(|_| probe::run_live_frames(program))
                .reduce(|best, next| next.and_then(|next| Ok(best?.min(next))))
                .unwrap_or(Err(Errno::NOSYS)),
            Err(errno) => Err(*errno),
        };
        let socket = |family, kind| rustix::net::socket(family, kind, None).map(drop);
        // The sysctl exists in the first network namespace only; without a program to look at it has to do.
        let sysctl = || read("/proc/sys/net/core/bpf_jit_enable").map(|value| value != "0");
        let compiled =
            program.as_ref().ok().and_then(|program| probe::is_compiled(program).ok()).or_else(sysctl);
        Self {
            compiled,
            xdp: program.map(drop),
            live_frame_ns: live,
            tells_features: Socket::generic().and_then(|mut socket| socket.family("netdev")).is_ok(),
            xdp_socket: socket(AddressFamily::from_raw(AF_XDP), SocketType::RAW),
            packet_socket: socket(AddressFamily::PACKET, SocketType::RAW),
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.kernel();
        findings.extend(privileges());
        findings.extend(processor());
        findings.extend(settings());
        findings
    }

    fn kernel(&self) -> Vec<Finding> {
        let finding =
            |topic, state, found: String, means: &str| Finding::new(Area::Kernel, topic, state, found, means);
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy().into_owned();
        // By what it did when it was asked, not by its number: distributions take back what is newer.
        let (state, means) = match (self.live_frame_ns, self.tells_features) {
            (Ok(_), true) => (State::Good, "has what every engine needs"),
            (Ok(_), false) => {
                (State::Note, "has live frames, but cannot tell what drivers do with XDP (6.3 and later can)")
            }
            (Err(Errno::PERM | Errno::ACCESS), _) => {
                (State::Unknown, "what it can do is seen with more privileges only")
            }
            (Err(_), _) => (
                State::Bad,
                "without XDP live frames: the xdp engine cannot run; use `.engine` packet, or Linux 5.18 or later",
            ),
        };
        let mut findings = vec![finding("version", state, format!("Linux {release}"), means)];
        findings.push(match self.xdp {
            Ok(()) => finding(
                "XDP programs",
                State::Good,
                "load".into(),
                "XDP can be had; whether it takes the meter's own program is said below",
            ),
            Err(errno) => not_available(
                "XDP programs",
                errno,
                "frames are counted through a packet socket, which loses some above 1 Mpps",
            ),
        });
        findings.push(match self.live_frame_ns {
            Ok(ns) => finding(
                "XDP live frames",
                State::Good,
                format!("run: {ns} ns to make and drop one"),
                "the fastest way out of one core; the time is this kernel's share of each frame",
            ),
            // Before there were any, their flag was no flag.
            Err(Errno::INVAL) => finding(
                "XDP live frames",
                State::Bad,
                "not known to this kernel".into(),
                "the xdp engine cannot run; use `.engine` afxdp or packet, or Linux 5.18 or later",
            ),
            Err(errno) => not_available("XDP live frames", errno, "the xdp engine cannot run"),
        });
        findings.push(match self.xdp_socket {
            Ok(()) => finding(
                "AF_XDP sockets",
                State::Good,
                "open".into(),
                "the afxdp engine can run where a driver takes it",
            ),
            Err(errno) => not_available("AF_XDP sockets", errno, "the afxdp engine cannot run"),
        });
        findings.push(match self.packet_socket {
            Ok(()) => finding(
                "packet sockets",
                State::Good,
                "open".into(),
                "the packet engine can run on every interface",
            ),
            Err(errno) => {
                not_available("packet sockets", errno, "the packet engine cannot run: nothing can be sent")
            }
        });
        findings.push(if Path::new("/sys/kernel/btf/vmlinux").exists() {
            finding("BTF", State::Good, "there".into(), "BPF programs fit themselves to this kernel when loaded")
        } else {
            finding("BTF", State::Note, "missing".into(), "programs that read the kernel's own structures cannot load; XDP can. The kernel must be built with CONFIG_DEBUG_INFO_BTF")
        });
        findings.push(match self.compiled {
            Some(false) => finding(
                "BPF compiler",
                State::Bad,
                "off".into(),
                "BPF programs are interpreted, several times slower",
            )
            .command("sudo sysctl -w net.core.bpf_jit_enable=1"),
            Some(true) => {
                finding("BPF compiler", State::Good, "on".into(), "BPF programs run as machine code")
            }
            None => finding(
                "BPF compiler",
                State::Unknown,
                "not permitted".into(),
                "if it is off, BPF programs are several times slower",
            )
            .command("sudo netdyno doctor"),
        });
        findings
    }
}

fn not_available(topic: &str, errno: Errno, means: &str) -> Finding {
    match errno {
        Errno::PERM | Errno::ACCESS => Finding::new(
            Area::Kernel,
            topic,
            State::Unknown,
            "not permitted",
            format!("without privileges {means}"),
        )
        .command("sudo netdyno doctor"),
        // Of one that lacks it, or of a container whose filter of system calls lets nobody have it.
        errno => Finding::new(
            Area::Kernel,
            topic,
            State::Bad,
            format!("refused: {errno}"),
            format!("{means}; use a kernel that has it, or a container that permits it (seccomp)"),
        ),
    }
}

/// `6.18.44-something`: the first two numbers.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn privileges() -> Option<Finding> {
    let status = read("/proc/thread-self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(mask.trim(), 16).ok()?;
    let missing: Vec<&str> =
        CAPABILITIES.iter().filter(|(bit, _)| effective & (1 << bit) == 0).map(|(_, name)| *name).collect();
    let user = if rustix::process::geteuid().is_root() { "root" } else { "not root" };
    // In a user namespace all capabilities may be there, and yet none counts for BPF; the probes above tell.
    let outside = read("/proc/self/uid_map")
        .is_some_and(|map| map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]);
    let (state, found, means) = if missing.is_empty() && outside {
        (State::Good, format!("{user}, all that is needed"), "every engine, the meter and the lab may run")
    } else if missing.is_empty() {
        (
            State::Note,
            format!("{user} of a user namespace"),
            "packet sockets and the lab work; XDP needs the machine's own root",
        )
    } else {
        (
            State::Bad,
            format!("{user}, without {}", missing.join(", ")),
            "sending needs CAP_NET_RAW, XDP needs CAP_BPF and CAP_NET_ADMIN, the lab needs CAP_SYS_ADMIN",
        )
    };
    let finding = Finding::new(Area::Privileges, "capabilities", state, found, means);
    Some(if missing.is_empty() { finding } else { finding.command("sudo netdyno ...") })
}

fn processor() -> Vec<Finding> {
    let mut findings = vec![cores(), load()];
    findings.extend(hypervisor());
    findings.push(governor());
    findings.push(clock());
    findings.push(wake_up());
    findings.push(isolated());
    if let Some(nodes) = read("/sys/devices/system/node/online").filter(|nodes| nodes.contains(['-', ','])) {
        findings.push(Finding::new(
            Area::Processor,
            "NUMA",
            State::Note,
            format!("nodes {nodes}"),
            "send from cores of the node the interface sits on: memory of another is slower",
        ));
    }
    findings
}

fn cores() -> Finding {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let online = read("/sys/devices/system/cpu/online").unwrap_or_else(|| "unknown".to_owned());
    let (state, means) = match usable {
        1 => (
            State::Note,
            "sender, receiver and everything else share one core: pacing suffers and rates halve; two or more serve better",
        ),
        2 => (State::Note, "one sends, one is left for the receiver and the rest of the machine"),
        _ => (State::Good, "rates add up over cores as long as each has a queue of its own"),
    };
    Finding::new(Area::Processor, "cores", state, format!("{usable} usable, online {online}"), means)
}

fn load() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let average = read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let topic = "other work";
    match average {
        Some(load) if load > cores / 2.0 => Finding::new(
            Area::Processor,
            topic,
            State::Note,
            format!("load {load:.1} on {cores} cores"),
            "other programs take part of the time: rates will be lower and scatter",
        )
        .command("top"),
        Some(load) => Finding::new(
            Area::Processor,
            topic,
            State::Good,
            format!("load {load:.1} on {cores} cores"),
            "little to disturb a measurement",
        ),
        None => Finding::new(
            Area::Processor,
            topic,
            State::Unknown,
            "cannot be read",
            "rates scatter if other programs run",
        ),
    }
}

fn hypervisor() -> Option<Finding> {
    read("/proc/cpuinfo")?
        .lines()
        .find(|line| line.starts_with("flags"))?
        .split_whitespace()
        .any(|flag| flag == "hypervisor")
        .then(|| {
            let name =
                ["/sys/class/dmi/id/sys_vendor", "/sys/hypervisor/type"].iter().find_map(|path| read(path));
            Finding::new(
                Area::Processor,
                "hypervisor",
                State::Note,
                name.map_or_else(
                    || "a virtual machine".to_owned(),
                    |name| format!("a virtual machine ({name})"),
                ),
                "the host may take cores away at any time: expect late frames, and compare medians",
            )
        })
}

fn governor() -> Finding {
    let topic = "frequency";
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpufreq").into_iter().flatten().flatten();
    let mut governors: Vec<String> =
        folder.filter_map(|policy| read(policy.path().join("scaling_governor").to_str()?)).collect();
    governors.sort();
    governors.dedup();
    let found = governors.join(", ");
    match governors.as_slice() {
        [] => Finding::new(
            Area::Processor,
            topic,
            State::Note,
            "not in this kernel's hands",
            "firmware or the host sets it",
        ),
        [only] if only == "performance" => Finding::new(
            Area::Processor,
            topic,
            State::Good,
            found,
            "cores run at full speed from the first frame",
        ),
        _ => Finding::new(
            Area::Processor,
            topic,
            State::Bad,
            found,
            "cores slow down between bursts: rates scatter, and gaps are uneven",
        )
        .command("echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"),
    }
}

/// Time for one reading of the clock, in ns: the least of several batches, because what else runs takes its time out of some.
fn cost_of_the_clock() -> u32 {
    const BATCHES: u32 = 50;
    const READS: u32 = 200;
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..READS {
            std::hint::black_box(Instant::now());
        }
        (start.elapsed().as_nanos() / u128::from(READS)) as u32
    };
    (0..BATCHES).map(batch).min().unwrap_or(0)
}

fn clock() -> Finding {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let source = read(&format!("{folder}/current_clocksource")).unwrap_or_else(|| "unknown".to_owned());
    let available = read(&format!("{folder}/available_clocksource")).unwrap_or_default();
    judge_clock(cost_of_the_clock(), &source, &available)
}

/// A dear clock is wrong only where this machine has a cheaper one.
fn judge_clock(cost: u32, source: &str, available: &str) -> Finding {
    let finding = |state, means: &str| {
        Finding::new(Area::Processor, "clock", state, format!("{source}, {cost} ns a read"), means)
    };
    if cost <= CHEAP_CLOCK_NS {
        return finding(State::Good, "frames can be timed one by one");
    }
    if source != "tsc" && available.split(' ').any(|name| name == "tsc") {
        return finding(State::Bad, "each frame that is timed or stamped pays this much; tsc costs less")
            .command("echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource");
    }
    finding(
        State::Note,
        "each frame that is timed or stamped pays this much; this machine has no cheaper clock",
    )
}

fn wake_up() -> Finding {
    const SLEEP: Duration = Duration::from_micros(200);
    let mut late: Vec<Duration> = (0..21)
        .map(|_| {
            let start = Instant::now();
            std::thread::sleep(SLEEP);
            start.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort();
    let median = late.get(late.len() / 2).copied().unwrap_or_default();
    let slack = rustix::thread::current_timer_slack().unwrap_or_default();
    let found = format!("{} us late (median), timer slack {} us", median.as_micros(), slack / 1000);
    let (state, means) = if median > LATE_WAKE_UP {
        (State::Note, "a paced sender has to spin longer before each frame: more of the core is used")
    } else {
        (State::Good, "a paced sender sleeps until shortly before a frame is due, then spins")
    };
    Finding::new(Area::Processor, "wake-up", state, found, means)
}

fn isolated() -> Finding {
    let isolated = read("/sys/devices/system/cpu/isolated").filter(|list| !list.is_empty());
    match isolated {
        Some(list) => Finding::new(
            Area::Processor,
            "isolated cores",
            State::Good,
            &list,
            "send from these: nothing else runs on them",
        )
        .command(format!("netdyno ... `.cores` {list}")),
        None => Finding::new(
            Area::Processor,
            "isolated cores",
            State::Note,
            "none",
            "other work may interrupt a sender for milliseconds; only for the last per mille of precision: \
             boot with isolcpus=N nohz_full=N",
        ),
    }
}

fn settings() -> Vec<Finding> {
    let mut findings = Vec::new();
    let number = |name: &str| read(&format!("/proc/sys/net/core/{name}"))?.parse::<u64>().ok();
    let mut at_least = |topic: &str, name: &str, wanted: u64, enough: &str, short: &str| {
        // Some of these exist in the first network namespace only; they count for all.
        let Some(value) = number(name) else { return };
        let found = format!("net.core.{name} = {value}");
        findings.push(if value >= wanted {
            Finding::new(Area::Settings, topic, State::Good, found, enough)
        } else {
            Finding::new(Area::Settings, topic, State::Note, found, short)
                .command(format!("sudo sysctl -w net.core.{name}={wanted}"))
        });
    };
    at_least(
        "send buffer",
        "wmem_max",
        4 << 20,
        "a sender's socket buffer holds a few thousand frames",
        "without CAP_NET_ADMIN a sender's socket buffer stays small: shorter batches, lower rate",
    );
    at_least(
        "receive buffer",
        "rmem_max",
        4 << 20,
        "a packet-socket meter's buffer survives a pause of milliseconds",
        "without CAP_NET_ADMIN a packet-socket meter's buffer stays small: losses of its own",
    );
    at_least(
        "backlog",
        "netdev_max_backlog",
        10_000,
        "frames for a local receiver without NAPI wait here; long enough",
        "veth receivers without GRO or XDP lose frames when more than this many wait",
    );
    findings.push(if irqbalance_runs() {
        Finding::new(
            Area::Settings,
            "irqbalance",
            State::Note,
            "running",
            "moves interrupts between cores during a measurement: results scatter",
        )
        .command("sudo systemctl stop irqbalance")
    } else {
        Finding::new(
            Area::Settings,
            "irqbalance",
            State::Good,
            "not running",
            "interrupts stay where they are",
        )
    });
    findings
}

fn irqbalance_runs() -> bool {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .any(|process| process.path().join("comm").to_str().and_then(read).as_deref() == Some("irqbalance"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("5.4"), Some((5, 4)));
        assert!(version("5.9.1") < version("5.18"));
        assert_eq!(version("nonsense"), None);
    }

    #[test]
    fn a_dear_clock_is_bad_only_where_there_is_a_cheaper_one() {
        let judged = |cost, source, available| {
            let finding = judge_clock(cost, source, available);
            (finding.state, finding.command.is_some())
        };
        assert_eq!(judged(25, "tsc", "tsc hpet acpi_pm"), (State::Good, false));
        assert_eq!(judged(25, "kvm-clock", "kvm-clock tsc"), (State::Good, false));
        assert_eq!(judged(233, "kvm-clock", "kvm-clock"), (State::Note, false));
        assert_eq!(judged(233, "tsc", "tsc"), (State::Note, false));
        assert_eq!(judged(900, "hpet", "tsc hpet acpi_pm"), (State::Bad, true));
        assert!(cost_of_the_clock() < 100_000);
    }

    #[test]
    fn what_is_refused_for_want_of_privilege_is_unknown_not_bad() {
        let denied = not_available("XDP programs", Errno::PERM, "nothing");
        assert_eq!((denied.state, denied.command.as_deref()), (State::Unknown, Some("sudo netdyno doctor")));
        assert_eq!(not_available("XDP programs", Errno::NOSYS, "nothing").state, State::Bad);
    }
}
