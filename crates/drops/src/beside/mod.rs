//! What else the kernel counts of drops, beside the tracer: rules of nftables, queueing disciplines, backlogs of CPUs. Read before and
//! after, and never changed.

pub mod cores;
pub mod queues;
pub mod rules;
#[cfg(test)]
mod tests;

use lab::Namespace;
use port::netlink::{NetlinkError, Socket};
use rules::Ruleset;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// So long nft may take to list a ruleset, and so many bytes of it are read.
const LISTING: Duration = Duration::from_secs(5);
const LISTED: u64 = 16 << 20;

/// Network namespaces whose counters are read.
#[derive(Debug, Default)]
pub struct Beside {
    at: Vec<(u32, Door)>,
}

/// How a network namespace is entered.
#[derive(Debug)]
pub enum Door {
    /// By a descriptor, which keeps it from going away.
    Held(Namespace),
    /// By a file, which is opened each time: others' namespaces must not live on because somebody looks at them.
    File(PathBuf),
}

impl Door {
    /// Runs `work` in there, if it is the namespace of this number still.
    fn run_in<T: Send>(&self, netns: u32, work: impl FnOnce(&Namespace) -> T + Send) -> Option<T> {
        let opened;
        let namespace = match self {
            Door::Held(namespace) => namespace,
            Door::File(path) => {
                opened = Namespace::open(path).ok()?;
                &opened
            }
        };
        match number(namespace)? == netns {
            // Being here takes no rights.
            true if crate::namespace_of_this_thread() == netns => Some(work(namespace)),
            true => namespace.run_in(|| work(namespace)).ok(),
            false => None,
        }
    }
}

/// The number of a network namespace, as rows have it.
pub fn number(namespace: &Namespace) -> Option<u32> {
    u32::try_from(rustix::fs::fstat(namespace).ok()?.st_ino).ok()
}

/// What all of them said at one moment.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    at: BTreeMap<u32, Of>,
    cores: cores::Cores,
}

/// Of one namespace.
#[derive(Debug, Clone)]
struct Of {
    /// Or why they cannot be read.
    rules: Result<Ruleset, String>,
    queues: queues::Queues,
}

/// What can have dropped frames by rules of netfilter in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Rules of nftables.
    pub suspects: Vec<rules::Suspect>,
    /// Why those cannot be read.
    pub unread: Option<String>,
    /// Tables of legacy iptables that are in use, whose rules are not read.
    pub legacy: BTreeSet<String>,
}

impl Beside {
    /// Of these namespaces, by their numbers.
    pub fn of(namespaces: impl IntoIterator<Item = (u32, Door)>) -> Beside {
        let mut at: Vec<(u32, Door)> = Vec::new();
        for (netns, door) in namespaces {
            if at.iter().all(|(known, _)| *known != netns) {
                at.push((netns, door));
            }
        }
        Beside { at }
    }

    /// What they count now. A namespace that cannot be entered is left out.
    pub fn read(&self) -> Counters {
        let of = |(netns, door): &(u32, Door)| Some((*netns, door.run_in(*netns, |_| Of::read())?));
        Counters { at: self.at.iter().filter_map(of).collect(), cores: cores::read() }
    }

    /// Rules that can have dropped frames in a namespace since `earlier`. `None`: it was not looked at.
    pub fn rules(&self, netns: u32, earlier: &Counters, now: &Counters) -> Option<Rules> {
        let (_, door) = self.at.iter().find(|(at, _)| *at == netns)?;
        let (now, then) = (now.at.get(&netns)?, earlier.at.get(&netns)?);
        let (suspects, unread) = match (&now.rules, &then.rules) {
            (Ok(now), Ok(then)) => (now.since(then), None),
            (Err(why), _) | (_, Err(why)) => (Vec::new(), Some(why.clone())),
        };
        let legacy = door.run_in(netns, |_| rules::legacy()).unwrap_or_default();
        Some(Rules { suspects, unread, legacy })
    }

    /// The words of rules in a namespace, as nft has them, by family, table and handle. Nothing where nft is not installed.
    pub fn words(&self, netns: u32) -> BTreeMap<(String, String, u64), String> {
        let door = self.at.iter().find(|(at, _)| *at == netns);
        let listed = door.and_then(|(_, door)| door.run_in(netns, listed)?);
        rules::words(&listed.unwrap_or_default())
    }
}

impl Of {
    /// Of the calling thread's namespace.
    fn read() -> Of {
        let rules = Socket::netfilter().and_then(|mut socket| Ruleset::read(&mut socket));
        let queues = Socket::route().and_then(|mut socket| queues::read(&mut socket));
        Of { rules: rules.map_err(|error| why_unread(&error)), queues: queues.unwrap_or_default() }
    }
}

impl Counters {
    /// Disciplines of an interface that dropped since `earlier`.
    pub fn queues(&self, earlier: &Counters, netns: u32) -> Vec<(queues::Queue, u64)> {
        let of =
            |counters: &Counters| counters.at.get(&netns).map(|of| of.queues.clone()).unwrap_or_default();
        queues::since(&of(self), &of(earlier))
    }

    /// CPUs whose backlog dropped since `earlier`.
    pub fn cores(&self, earlier: &Counters) -> cores::Cores {
        cores::since(&self.cores, &earlier.cores)
    }
}

fn why_unread(error: &NetlinkError) -> String {
    match error.errno() {
        Some(rustix::io::Errno::PERM) => "reading them needs CAP_NET_ADMIN (sudo has it)".to_owned(),
        _ => error.to_string(),
    }
}

/// What nft lists. Its words are fixed: names of tables are chosen by whoever made them, and nft takes its arguments for commands.
fn listed(namespace: &Namespace) -> Option<String> {
    let mut command = namespace.command("nft").ok()?;
    command.args(["-a", "-s", "-t", "list", "ruleset"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut out = child.stdout.take()?;
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut bytes = Vec::new();
            let read = out.by_ref().take(LISTED).read_to_end(&mut bytes);
            read.ok().map(|_| String::from_utf8_lossy(&bytes).into_owned())
        });
        let ended = ends_in_time(&mut child, || reading.is_finished());
        let listed = reading.join().ok().flatten();
        listed.filter(|_| ended)
    })
}

/// Waits until all is read, or time is over; ends it in any case.
fn ends_in_time(child: &mut Child, is_read: impl Fn() -> bool) -> bool {
    let until = Instant::now() + LISTING;
    while !is_read() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    let read = is_read();
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    read
}
