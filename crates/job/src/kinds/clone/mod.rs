//! `netdyno clone`: what clients say to a server is said to another one, over connections of our own.
//!
//! ```text
//!   interface (a packet socket's ring, both directions, a filter in the kernel; \            +--> copies --> target
//!     or programs at traffic control and BPF ring buffers)                        worker --> table
//!   captures (at their own time) -----------------------------------------------/            (a thread each, sessions by hash)
//!   captures on other hosts: agent --> link ==encrypted==> listen -------------/
//! ```
//!
//! Nothing is sent but what connections to the target send; nothing of production is touched.

/// A struct with so many members of another one, by their names, and others behind them.
macro_rules! same_fields {
    ($from:expr, $to:ident: $($field:ident)+ $(; $($rest:tt)*)?) => {{
        let from = $from;
        $to { $($field: from.$field,)+ $($($rest)*)? }
    }};
}

mod agent;
mod back;
mod ceiling;
mod copies;
pub(crate) mod doctor;
pub(crate) mod key;
mod link;
mod listen;
mod outcome;
pub(super) mod safety;
mod tunnel;
mod worker;

use super::{Run, passive};
use crate::panel::Names;
use crate::place::Place;
use crate::session::{Looked, Session};
use crate::timekeeping::Timekeeping;
use anyhow::{Context, Result, bail};
use capture::Reader;
use ceiling::Ceiling;
use clone::addresses::Addresses;
use clone::digest::Ignored;
use clone::replica::Pace;
use clone::sample::Copies as Number;
use clone::table::{Adopt, Rules, Table};
use copies::{Copies, Sources};
use lab::Namespace;
use listen::{Inlet, Listening, Wanted};
use meter::segments::{self, Segments};
use port::filter::TcpServer;
use port::local::LocalPrefix;
use port::rx::{Direction, Slots, Take};
use report::{Code, Interval, Report, Resolved, Source};
use snapshot::{Snapshot, Title};
use spec::{CloneCapture, ClonePace, Cloning};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tunnel::{Tunnel, Watch};
use worker::{Done, Share, Shared, Standing, Worker};

/// Memory for frames that wait, of all threads together: some 32,000 frames, an eighth of a second at 250,000 a second.
const RING: usize = 64 << 20;
/// Frames that are taken at once.
const BATCH: usize = 256;
/// Of each segment from the server so much is taken, a whole one of an Ethernet link: heads and short bodies. More of a segment that the
/// kernel has joined is counted by its numbers.
const ANSWERS: u32 = 1522;
const MOST_SESSIONS: usize = 100_000;
const GAP: Duration = Duration::from_secs(3);
const FORGET: Duration = Duration::from_secs(3600);
const IDLE: Duration = Duration::from_millis(200);

impl Run for Cloning {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Cloning, session: &Session) -> Result<Report> {
    passive::check(args)?;
    let (server, port) = args.server().context("`.server` has no port")?;
    let to = target(&args.to, "to")?;
    let noise = args.noise_target.as_deref().map(|to| target(to, "noise_target")).transpose()?;
    let prefix = args.prefix();
    let key = args.key.as_deref().map(key::read).transpose()?;
    let found = args.on.as_deref().map(Place::find).transpose()?;
    let place = found.as_ref();
    refuse(args, (server, port), (to, noise), place)?;
    if let Some(file) = args.stop_file.as_deref().filter(|file| file.exists()) {
        bail!("`.stop_file` {} is there: nothing was begun; remove it first", file.display());
    }
    super::shared::allow_many();
    let local = local(args)?;
    let tunnel = match args.client_addresses && !args.dry_run {
        true => Some(Tunnel::open(args, to)?),
        false => None,
    };
    try_ways(args, (to, noise), tunnel.as_ref())?;
    let threads = args.threads.unwrap_or(1);
    let rules = rules(args, (server, port), [Some(to), noise])?;
    let mut shared: Vec<Shared> = (0..threads).map(|_| Shared::default()).collect();
    let workers = workers(args, (to, noise), rules, &shared)?;
    let mut report = begin(args, place, session)?;
    if let (Some((first, bits)), Some(false)) = (prefix, local.as_ref().map(LocalPrefix::vanishes)) {
        report.warnings.add(
            Code::WentWithout,
            format!(
                "the kernel has no tun interface: after a SIGKILL the route stays (ip route del local {first}/{bits} dev lo)"
            ),
        );
    }
    session.stop_in_order();
    session.meet()?;
    let mut listening = None;
    let mut inlets = None;
    if let (Some(at), Some(key)) = (&args.listen, key) {
        let adopts = args.adopt != spec::Adopt::SynOnly;
        let wanted = Wanted { server, port, adopts, targets: [Some(to), noise] };
        let (begun, for_workers) = Listening::begin(at, key, wanted, &session.board, workers.len())?;
        shared.push(begun.shared());
        listening = Some(begun);
        inlets = Some(for_workers);
    }
    let watch = tunnel.as_ref().map(Tunnel::watch).transpose()?;
    let inside = tunnel.as_ref().map(Tunnel::namespace);
    let handles = start(args, place, inlets, (to, inside), (server, port), (&rules, workers))?;
    // Whoever waits for these words may begin now: what comes is captured.
    session.say(Code::Begun, begun(args, (server, port), to));
    let title = title(args, place, to);
    let places = place.map_or(&[][..], std::slice::from_ref);
    let mut panel = passive::panel(session, title, &report, places, Names::unknown(0))?;
    let mut warned = false;
    let time = Timekeeping::begin();
    let duration = args.duration.as_deref().copied();
    let watched = session.watch(&mut panel, duration, |at_ns| {
        let sum = sum(&shared);
        if !warned && at_ns > safety::LOOK_NS {
            warned = true;
            if let Some(said) =
                safety::direction(args, (server, port), &sum.funnel.frames, &sum.funnel.sessions)
            {
                session.say(Code::CaptureOneSided, format!("Warning: {said}"));
            }
        }
        let is_lost = watch.as_ref().is_some_and(Watch::is_lost);
        // A clone that listens waits for captures until somebody ends it.
        let over = shared.iter().all(|shared| shared.done.load(Relaxed))
            || is_dead(&handles, &shared)
            || is_lost
            || args.stop_file.as_deref().is_some_and(std::path::Path::exists);
        let f = &sum.funnel;
        Looked::of((f.frames.captured, f.said.sent), over, snapshot(&sum))
    });
    let is_lost = watch.as_ref().is_some_and(Watch::is_lost);
    for shared in &shared {
        shared.lost.store(is_lost, Relaxed);
        shared.over.store(true, Relaxed);
    }
    if is_lost {
        let said = "the return agent at the target does not answer any more: nothing more is copied";
        session.say(Code::TargetUnreachable, format!("Warning: {said}"));
    }
    let joined = handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| Done::panicked()));
    let done: Vec<Done> = joined.chain(listening.into_iter().map(Listening::end)).collect();
    drop(watch);
    drop(tunnel);
    session.board.end();
    report.intervals = watched.samples.intervals().map(interval).collect();
    watched.judge(&mut report);
    outcome::fill(&mut report, args, &done);
    outcome::judge(&mut report, args, (server, port), &done);
    judge_end(&mut report, args, (session.is_stopped(), &time), &done);
    if is_lost {
        cut_off(&mut report, to);
    }
    Ok(report)
}

/// What ended it, and was the clock set by which all of it goes?
fn judge_end(report: &mut Report, args: &Cloning, (is_stopped, time): (bool, &Timekeeping), done: &[Done]) {
    if let Some(file) = args.stop_file.as_deref().filter(|file| file.exists()) {
        report
            .warnings
            .add(Code::Stopped, format!("ended because there is a file {} (`.stop_file`)", file.display()));
    }
    if is_stopped && args.duration.is_none() && done.iter().any(|done| done.unread) {
        let said = "stopped before all of the captures was copied";
        report.result.verdict.fall_short(Code::Stopped, said);
    }
    if time.was_set() {
        let said = "this host's clock was set while it ran: delays, and how long servers took, are perhaps none, and connections may have \
                    been given up by it";
        report.warnings.add(Code::ClockSet, said);
    }
}

/// Refuses a target, and a second one that noise is known by, that is what is copied.
fn refuse(
    args: &Cloning,
    server: (Option<IpAddr>, u16),
    (to, noise): (SocketAddr, Option<SocketAddr>),
    place: Option<&Place>,
) -> Result<()> {
    safety::refuse(args, server, ("to", to), place)?;
    if let Some(noise) = noise {
        if noise == to {
            bail!(
                "`.noise_target` {noise} is `.to`: it has to be a server of its own, with what the server has"
            );
        }
        safety::refuse(args, server, ("noise_target", noise), place)?;
    }
    Ok(())
}

/// The prefix of source addresses, made local to this host.
fn local(args: &Cloning) -> Result<Option<LocalPrefix>> {
    let Some((first, bits)) = args.prefix().filter(|_| !args.dry_run) else { return Ok(None) };
    let local = LocalPrefix::add(first, bits).with_context(|| {
        format!("`.source_prefix` {first}/{bits} cannot be made local to this host (run as root)")
    })?;
    Ok(Some(local))
}

/// Connects to the targets once, the way copies will.
fn try_ways(
    args: &Cloning,
    (to, noise): (SocketAddr, Option<SocketAddr>),
    tunnel: Option<&Tunnel>,
) -> Result<()> {
    let prefix = args.prefix();
    if let Some(tunnel) = tunnel {
        tunnel.check()?;
        let from = tunnel.test_address();
        tunnel.namespace().run_in(|| safety::canary(to, Some(from), safety::Way::Tunnel))??;
    } else if !args.dry_run {
        let way = if prefix.is_some() { safety::Way::Prefix } else { safety::Way::Host };
        let own = prefix.and_then(|(first, bits)| own_address(first, bits));
        for to in [Some(to), noise].into_iter().flatten() {
            safety::canary(to, own, way)?;
        }
    }
    Ok(())
}

/// One for each thread, beside what it shares with those who look on.
fn workers(
    args: &Cloning,
    (to, noise): (SocketAddr, Option<SocketAddr>),
    rules: Rules,
    shared: &[Shared],
) -> Result<Vec<Worker>> {
    let pace = match args.pace {
        ClonePace::Wallclock => Pace::Wallclock,
        ClonePace::Causal => Pace::Causal,
        ClonePace::CausalThink => Pace::CausalThink,
    };
    let ignored = Arc::new(Ignored::new(&args.ignore));
    let threads = args.threads.unwrap_or(1);
    let mut workers = Vec::new();
    for (lane, shared) in (0..threads).zip(shared) {
        let sources = match args.prefix() {
            None if args.client_addresses => Sources::Clients,
            None => Sources::Host,
            Some((first, bits)) => {
                Sources::Prefix(Addresses::new(first, bits, lane, threads).with_context(|| {
                    format!("`.source_prefix` has no address for each of {threads} threads")
                })?)
            }
        };
        let mut copies = Copies::new((to, noise), pace, sources, args.dry_run).context("epoll")?;
        copies.sides.iter_mut().for_each(|side| side.comparison.ignored = Arc::clone(&ignored));
        let ceiling =
            Ceiling::new(args.max_cpu.as_deref().map(|share| share.0), args.max_memory.as_deref().copied());
        workers.push(Worker::new(Table::new(rules), copies, shared.clone(), ceiling));
    }
    Ok(workers)
}

fn title(args: &Cloning, place: Option<&Place>, to: SocketAddr) -> Title {
    Title {
        rx: Some(match (place, &args.listen) {
            (Some(place), _) => place.spec.clone(),
            (None, Some(listen)) => listen.clone(),
            (None, None) => "captures".to_owned(),
        }),
        tx: Some(to.to_string()),
        ..passive::title("clone")
    }
}

/// The tunnel to the target broke.
fn cut_off(report: &mut Report, to: SocketAddr) {
    let said = format!(
        "the return agent at the target {} did not answer any more: the clone was stopped, and sessions were copied up to then",
        to.ip()
    );
    let mend = "is it running, does the tunnel's UDP port pass, is the interface up?";
    report.result.verdict.fall_short(Code::TargetUnreachable, (said, mend));
}

/// An address and port of a prefix, for the connection that is tried first.
fn own_address(first: IpAddr, bits: u8) -> Option<SocketAddr> {
    let mut all = Addresses::new(first, bits, 0, 1)?;
    let taken = all.take(first, 1024 + (std::process::id() % 60_000) as u16, 0)?;
    Some(SocketAddr::new(all.address(taken), taken.port))
}

fn target(to: &str, member: &str) -> Result<SocketAddr> {
    let found = to.to_socket_addrs().with_context(|| {
        format!("`.{member}` {to}: give HOST:PORT, such as 10.0.0.2:80 or [2001:db8::2]:80")
    })?;
    found.into_iter().next().with_context(|| format!("`.{member}` {to} has no address"))
}

fn rules(
    args: &Cloning,
    (server, port): (Option<IpAddr>, u16),
    targets: [Option<SocketAddr>; 2],
) -> Result<Rules> {
    let number = Number::new(args.copies.unwrap_or(1.0)).context("`.copies` is no number of copies")?;
    let copies = match args.sample.as_deref() {
        Some(share) => number.of_share(share.0),
        None => number,
    };
    // A capture's time passes faster, and so do its gaps.
    let (times, of) =
        args.speed.as_deref().map_or((1, 1), |speed| (speed.numerator.max(1), speed.denominator));
    let scaled = |time: Duration| (time.as_nanos() * u128::from(of) / u128::from(times)) as u64;
    let ns = |given: &Option<spec::Written<Duration>>, default: Duration| {
        given.as_deref().copied().unwrap_or(default)
    };
    Ok(Rules {
        server,
        port,
        adopt: match args.adopt {
            spec::Adopt::SynOnly => Adopt::SynOnly,
            spec::Adopt::Idle => Adopt::Idle(scaled(ns(&args.idle_time, IDLE))),
            spec::Adopt::HttpBoundary => Adopt::HttpBoundary,
        },
        copies,
        seed: args.seed.unwrap_or(0),
        chosen_before: args.capture == CloneCapture::RingBuffer,
        most_sessions: args.max_sessions.as_deref().map_or(MOST_SESSIONS, |most| *most as usize),
        most_new: args.max_new.as_deref().copied(),
        most_bits: args.max_rate.as_deref().and_then(|rate| match rate {
            traffic::rate::Rate::Bits { bits_per_second, .. } => Some(*bits_per_second),
            _ => None,
        }),
        ramp_ns: ns(&args.ramp, Duration::ZERO).as_nanos() as u64,
        gap_ns: scaled(ns(&args.gap_time, GAP)),
        idle_ns: ns(&args.forget_after, FORGET).as_nanos() as u64,
        // In a capture, who has the target's address is somebody of that time.
        targets: targets.map(|to| {
            to.filter(|_| args.captures.is_empty())
                .map(|to| to.ip())
                .filter(|target| !target.is_loopback() && server != Some(*target))
        }),
        // On a loopback everybody is a server of his own host.
        never: targets.map(|to| to.filter(|to| !to.ip().is_loopback()).map(|to| (to.ip(), to.port()))),
        own: args.prefix(),
    })
}

fn begin(args: &Cloning, place: Option<&Place>, session: &Session) -> Result<Report> {
    let duration = args.duration.as_deref().copied();
    let mut report = match place {
        Some(place) => passive::report("clone", place, (None, duration)),
        None => {
            let mut report = Report::new("clone");
            let files = args.captures.iter().map(|path| path.display().to_string()).collect();
            report.resolved = Resolved {
                duration_ns: duration.map(|d| d.as_nanos() as u64),
                source: args.listen.is_none().then_some(Source::Files { files }),
                ..Resolved::default()
            };
            report.environment = crate::environment::collect();
            report
        }
    };
    if args.captures.is_empty() && args.source_prefix.is_none() && !args.client_addresses && !args.dry_run {
        let said = "copies come from this host's own address, not from their clients': at most some 28,000 connections \
                    at once, and in any minute of those that it closes itself";
        report
            .warnings
            .add(Code::WentWithout, (said, "give `.source_prefix` to keep ports and to have more, or `.client_addresses` to keep addresses as well"));
    }
    session.warn(&[]);
    Ok(report)
}

fn begun(args: &Cloning, (server, port): (Option<IpAddr>, u16), to: SocketAddr) -> String {
    let of =
        server.map_or_else(|| format!("port {port}"), |server| SocketAddr::new(server, port).to_string());
    let at = match (&args.on, &args.listen) {
        (Some(on), _) => on.clone(),
        (None, Some(listen)) => format!("captures that connect to {listen}"),
        (None, None) => "captures".to_owned(),
    };
    let does = if args.dry_run { "counting, connecting to nobody" } else { "copying" };
    format!("{does}: sessions of {of} at {at} onto {to}; Ctrl-C ends and reports")
}

type Handle = std::thread::JoinHandle<Done>;

/// Has a thread ended without saying that it has nothing more to do? It panicked, and nobody does its part.
fn is_dead(handles: &[Handle], shared: &[Shared]) -> bool {
    handles.iter().zip(shared).any(|(handle, shared)| handle.is_finished() && !shared.done.load(Relaxed))
}

fn start(
    args: &Cloning,
    place: Option<&Place>,
    inlets: Option<Vec<Inlet>>,
    (to, inside): (SocketAddr, Option<&Namespace>),
    (server, port): (Option<IpAddr>, u16),
    (rules, workers): (&Rules, Vec<Worker>),
) -> Result<Vec<Handle>> {
    let lanes = workers.len() as u64;
    let mut handles = Vec::new();
    match (place, inlets) {
        (_, Some(inlets)) => {
            for (worker, inlet) in workers.into_iter().zip(inlets) {
                handles.push(spawn(worker, inside, move |worker| worker.remote(&inlet))?);
            }
        }
        (Some(place), None) => {
            // The target's frames are not taken, if it has the server's port and is seen here.
            let except = Some(to.ip()).filter(|ip| to.port() == port && server != Some(*ip));
            let filter = TcpServer { address: server, port, answers: ANSWERS, except }.steps();
            let group = (lanes > 1).then_some((std::process::id() & 0xffff) as u16);
            // A mirror's frames are for others; a server's own interface is left as it is.
            let promiscuous = !place.run_in(|| match server {
                Some(address) => safety::is_here(address),
                None => place.interface.has_address().unwrap_or(false),
            })?;
            let take = Take { direction: Direction::Both, filter: &filter, share: group, promiscuous };
            let target = place.target();
            let loopback = place.interface.name == "lo";
            if args.capture == CloneCapture::RingBuffer {
                let options = segments::Options {
                    server,
                    port,
                    except: rules.targets,
                    answers: ANSWERS,
                    seed: rules.seed,
                    sample: rules.copies.bounds(),
                    lanes: workers.len(),
                    bytes: RING,
                    loopback,
                    promiscuous,
                };
                let rings = place.run_in(|| Segments::attach(&target, &options, BATCH))?;
                let rings = rings.map_err(|error| {
                    let (left_out, mend) =
                        ("`.capture` ring-buffer", "leave it out to capture by a packet socket");
                    anyhow::Error::new(error).context(format!("{left_out}: {mend}"))
                })?;
                for ((lane, worker), ring) in (0..).zip(workers).zip(rings) {
                    let share = Share { port, seed: rules.seed, lane, lanes };
                    handles.push(spawn(worker, inside, move |worker| worker.live(ring, false, Some(share)))?);
                }
                return Ok(handles);
            }
            let open = || Slots::open_large(&target, BATCH, &take, RING / lanes as usize);
            let rings = workers.iter().map(|_| open()).collect::<Result<Vec<_>, _>>();
            let rings = place.run_in(|| rings)?;
            for (worker, ring) in workers.into_iter().zip(rings?) {
                handles.push(spawn(worker, inside, move |worker| worker.live(ring, loopback, None))?);
            }
        }
        (None, None) => {
            let speed = args
                .speed
                .as_deref()
                .copied()
                .unwrap_or(traffic::schedule::Speed { numerator: 1, denominator: 1 });
            for (lane, worker) in (0..).zip(workers) {
                let readers = args.captures.iter().map(|path| {
                    Reader::open(path).with_context(|| format!("`.captures` {}", path.display()))
                });
                let readers: Vec<Reader> = readers.collect::<Result<_>>()?;
                handles.push(spawn(worker, inside, move |worker| {
                    worker.captures(readers, speed, (lane, lanes))
                })?);
            }
        }
    }
    if handles.is_empty() {
        bail!("there is no thread to copy");
    }
    Ok(handles)
}

/// A thread for `worker`, where its copies' sockets are to be made.
fn spawn(
    worker: Worker,
    inside: Option<&Namespace>,
    work: impl FnOnce(Worker) -> Done + Send + 'static,
) -> Result<Handle> {
    let inside = inside.map(Namespace::try_clone).transpose()?;
    let thread = std::thread::Builder::new().name("clone".to_owned());
    let run = move || match inside.map_or(Ok(()), |inside| inside.enter_current_thread()) {
        Ok(()) => work(worker),
        Err(error) => worker.fail(error.to_string()),
    };
    Ok(thread.spawn(run)?)
}

fn sum(shared: &[Shared]) -> Standing {
    let mut sum = Standing::default();
    for one in shared {
        let one = *one.standing.lock().unwrap_or_else(PoisonError::into_inner);
        sum.funnel.add(&one.funnel);
        sum.dropped += one.dropped;
        sum.open += one.open;
        sum.compared += one.compared;
        sum.different += one.different;
    }
    sum
}

fn snapshot(sum: &Standing) -> Snapshot {
    let Standing { funnel: f, dropped, open, compared, different } = sum;
    let s = &f.sessions;
    Snapshot {
        cloned: Some(snapshot::Cloned {
            frames: f.frames.captured,
            dropped_frames: *dropped,
            sessions: s.seen,
            open_sessions: *open,
            copied_sessions: s.copied + s.adopted,
            cut_sessions: s.gaps
                + s.missed
                + s.truncated
                + s.too_early
                + s.turned_tls
                + s.shed
                + s.unforwarded,
            connected: f.copies.connected,
            unconnected: f.copies.refused + f.copies.timed_out + f.copies.no_address + f.copies.failed,
            due_bytes: f.said.due,
            sent_bytes: f.said.sent,
            compared: *compared,
            different: *different,
        }),
        ..Snapshot::default()
    }
}

fn interval([(start_ns, before), (end_ns, now)]: [(u64, (u64, u64)); 2]) -> Interval {
    Interval {
        start_ns,
        end_ns,
        rx_frames: Some(now.0 - before.0),
        tx_bytes: Some(now.1 - before.1),
        ..Interval::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_ends_the_clone_and_is_told() {
        let (panics, ends): (Handle, Handle) =
            (std::thread::spawn(|| panic!("as a test")), std::thread::spawn(Done::default));
        while !panics.is_finished() || !ends.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let shared = [Shared::default(), Shared::default()];
        shared[0].done.store(true, Relaxed);
        assert!(!is_dead(&[ends], &shared));
        // It never said that it has nothing more to do.
        let handles = [panics];
        assert!(is_dead(&handles, &shared[1..]));
        let [handle] = handles;
        let done = handle.join().unwrap_or_else(|_| Done::panicked());
        assert!(done.fault.is_some_and(|fault| fault.contains("panicked")));
    }
}
