//! `netdyno clone capture`: captures a server's traffic and forwards it to a clone on another host, which copies. Whole sessions, over
//! one connection that is encrypted; nothing here waits for it.
//!
//! ```text
//!   ring (both directions, filter in the kernel) --> forwarder: sessions, queue (bounded) --> link: channel ==TCP==> clone
//!                              one thread, under ceilings of processor and memory
//! ```
//!
//! It sends nothing else, and changes nothing on its host.

use super::ceiling::{Ceiling, Order, cpu_time};
use super::copies::now_real;
use super::link::{Happened, Link};
use super::worker::Ending;
use super::{ANSWERS, BATCH, Place, key, safety, target};
use anyhow::{Context, Result, bail};
use clone::fragments::Fragments;
use clone::packet::{NoSegment, read};
use clone::remote::forward::{Forwarder, Rules};
use clone::sample::Copies;
use port::filter::TcpServer;
use port::rx::{Direction, Kind, Rx as _, Slots, Take};
use report::units;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Serialize;
use spec::Forwarding;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use traffic::rate::Rate;
use wire::LinkType;

/// Memory for frames that wait.
const RING: usize = 32 << 20;
/// Bytes that wait for the connection, at most.
const QUEUE: usize = 8 << 20;
const MOST_SESSIONS: usize = 100_000;
/// Between two accounts for the clone.
const ACCOUNTS: Duration = Duration::from_millis(200);
const LOOKS: Duration = Duration::from_millis(10);
/// The first connection has to come about within this.
const FIRST: Duration = Duration::from_secs(6);
/// At the end what waits is sent for so long.
const DRAINS: Duration = Duration::from_secs(2);
/// After some frames it rests for a moment, as a clone's worker does.
const NAP: Duration = Duration::from_micros(40);
const FEW: usize = 64;

/// What became of everything.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Forwarded {
    /// Where it was captured, and where it went.
    pub on: String,
    /// The clone.
    pub send_to: String,
    /// Which sessions were chosen, where not all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Frames that were captured,
    pub frames: u64,
    /// segments among them from clients,
    pub from_clients: u64,
    /// and from the server.
    pub from_server: u64,
    /// Frames that the kernel had no room for.
    pub dropped_frames: u64,
    /// Sessions.
    pub sessions: ForwardedSessions,
    /// Records' bytes, before encryption: put in the queue,
    pub queued_bytes: u64,
    /// and thrown away, because the connection broke.
    pub lost_bytes: u64,
    /// Bytes that the connection took, encrypted.
    pub sent_bytes: u64,
    /// Connections to the clone that were established.
    pub connections: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// How long it ran.
    pub duration_ns: u64,
    /// What was not as it should be, a sentence each.
    pub reasons: Vec<String>,
}

/// Sessions by what became of them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ForwardedSessions {
    /// Forwarded from their beginning.
    pub forwarded: u64,
    /// Of those: given up, because there was no room for a segment or it took too much of the machine,
    pub shed: u64,
    /// or because the connection to the clone broke.
    pub lost: u64,
    /// Not forwarded: SYNs whose connection was never established,
    pub half_open: u64,
    /// refused by the server,
    pub refused: u64,
    /// open before the start,
    pub midstream: u64,
    /// not chosen,
    pub sampled_out: u64,
    /// too many at once,
    pub over_sessions: u64,
    /// beyond the rate,
    pub over_rate: u64,
    /// beyond a ceiling,
    pub over_ceiling: u64,
    /// or without room on the way to the clone, or without a clone.
    pub over_link: u64,
}

impl Forwarded {
    /// Was all forwarded that was to be?
    pub fn is_whole(&self) -> bool {
        self.reasons.is_empty()
    }

    /// For people.
    pub fn text(&self) -> String {
        let s = &self.sessions;
        let mut text = String::new();
        let mut line = |label: &str, facts: &[String]| {
            let _ = writeln!(text, "{label:<10} {}", facts.join(", "));
        };
        let some = |all: &[(&str, u64)]| -> Vec<String> {
            let there = all.iter().filter(|(_, count)| *count > 0);
            there.map(|(what, count)| format!("{} {what}", units::count(*count))).collect()
        };
        line(
            "captured",
            &[
                units::counted(self.frames, "frame"),
                format!("{} from clients", units::count(self.from_clients)),
                format!("{} from the server", units::count(self.from_server)),
                format!("{} dropped", units::count(self.dropped_frames)),
            ],
        );
        let mut sessions = vec![format!("{} forwarded", units::count(s.forwarded))];
        sessions.extend(some(&[
            ("half open", s.half_open),
            ("refused by the server", s.refused),
            ("open before the start", s.midstream),
            ("sampled out", s.sampled_out),
            ("beyond max-sessions", s.over_sessions),
            ("beyond max-rate", s.over_rate),
            ("beyond max-cpu or max-memory", s.over_ceiling),
            ("without room on the way", s.over_link),
        ]));
        line("sessions", &sessions);
        let given_up = some(&[("for want of room", s.shed), ("with the connection", s.lost)]);
        if !given_up.is_empty() {
            line("given up", &given_up);
        }
        line(
            "sent",
            &[
                format!("{} to {}", units::bytes(self.sent_bytes), units::printable(&self.send_to)),
                units::counted(self.connections, "connection"),
            ],
        );
        let share = self.cpu_ns as f64 * 100.0 / self.duration_ns.max(1) as f64;
        line("CPU", &[format!("{}, {share:.1} % of a core", units::time(self.cpu_ns))]);
        for reason in &self.reasons {
            line("fell short", std::slice::from_ref(reason));
        }
        text
    }
}

struct Agent<'s> {
    forwarder: Forwarder,
    link: Link,
    fragments: Fragments,
    ceiling: Ceiling,
    say: &'s dyn Fn(&str),
    told: Instant,
    looked: Instant,
    /// Why there is no connection, as it was said last.
    why: Option<String>,
    fault: Option<String>,
}

/// Captures and forwards, until `stop` is set or the time is over. What is to be known meanwhile is said by `say`.
///
/// # Errors
/// What was asked makes no sense, the interface cannot be captured, or there is no clone that takes it.
pub fn forward(args: &Forwarding, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<Forwarded> {
    let cloning = spec::Cloning { server: args.from.server.clone(), ..spec::Cloning::default() };
    let (server, port) = cloning
        .server()
        .context("`.from` has no port: give eth0:80, eth0:10.0.0.1:80 or eth0:[2001:db8::1]:80")?;
    let key = key::read(&args.key)?;
    let to = target(&args.send_to, "send_to")?;
    let place = Place::find(&args.from.on)?;
    let seed = match args.seed {
        Some(seed) => seed,
        None => {
            let mut bytes = [0; 8];
            getrandom(&mut bytes, GetRandomFlags::empty())?;
            u64::from_ne_bytes(bytes)
        }
    };
    let all = Copies::new(1.0).context("one copy")?;
    let rules = Rules {
        server,
        port,
        // Its own connection is none of the server's, whatever port the clone has.
        except: Some(to.ip()).filter(|_| to.port() == port),
        share: args.sample.as_deref().map_or(all, |share| all.of_share(share.0)),
        seed,
        most_sessions: args.max_sessions.as_deref().map_or(MOST_SESSIONS, |most| *most as usize),
        most_bits: args.max_rate.as_deref().and_then(|rate| match rate {
            Rate::Bits { bits_per_second, .. } => Some(*bits_per_second),
            _ => None,
        }),
        most_queued: QUEUE,
    };
    let promiscuous = !place.run_in(|| match server {
        Some(address) => safety::is_here(address),
        None => place.interface.has_address().unwrap_or(false),
    })?;
    let filter = TcpServer { address: server, port, answers: ANSWERS, except: rules.except }.steps();
    let take = Take { direction: Direction::Both, filter: &filter, share: None, promiscuous };
    let interface = place.target();
    let mut ring = place.run_in(|| Slots::open_large(&interface, BATCH, &take, RING))??;
    let now = Instant::now();
    let captured = Place::find(&args.from.on)?;
    let refuses = move |target: SocketAddr| {
        // The clone's own loopback is this host's only if it runs here.
        let there = target.ip().is_loopback() && !safety::is_here(to.ip());
        let reached = !there && safety::is_reached(&captured, (server, port), target).unwrap_or(true);
        reached.then(|| {
            format!("its target {target} is the server that is captured here: copies would go to production; give the clone another `.to`")
        })
    };
    let mut agent = Agent {
        forwarder: Forwarder::new(rules),
        link: Link::new(to, key, (server, port), Box::new(refuses)),
        fragments: Fragments::default(),
        ceiling: Ceiling::new(
            args.max_cpu.as_deref().map(|share| share.0),
            args.max_memory.as_deref().copied(),
        ),
        say,
        told: now,
        looked: now,
        why: None,
        fault: None,
    };
    agent.first(stop)?;
    say(&format!("forwarding: sessions of port {port} at {} to {to}; Ctrl-C ends and reports", args.from.on));
    let begun = Instant::now();
    let over = || stop.load(Relaxed) || args.duration.as_deref().is_some_and(|most| begun.elapsed() >= *most);
    agent.run(&mut ring, place.interface.name == "lo", over);
    agent.forwarder.dropped(ring.counters().dropped);
    drop(ring);
    agent.end();
    let duration_ns = begun.elapsed().as_nanos() as u64;
    Ok(agent.result(args, args.sample.as_ref().map(|_| seed), duration_ns))
}

impl Agent<'_> {
    /// The first connection: without it nothing is begun.
    fn first(&mut self, stop: &AtomicBool) -> Result<()> {
        let until = Instant::now() + FIRST;
        loop {
            match self.link.step(&mut self.forwarder) {
                Some(Happened::Up) => return Ok(()),
                Some(Happened::Failed(why)) => {
                    bail!("`.send_to` {}: {why}; nothing was begun", self.link.to())
                }
                Some(Happened::Gone(why)) => bail!("`.send_to` {}: {why}", self.link.to()),
                None => {}
            }
            if stop.load(Relaxed) {
                bail!("it was ended before there was a connection to {}", self.link.to());
            }
            if Instant::now() > until {
                bail!(
                    "`.send_to` {} does not answer: does a clone listen there (`.listen`), and does a firewall drop connections?",
                    self.link.to()
                );
            }
            self.wait(None, Duration::from_millis(20));
        }
    }

    /// Waits for frames, and for the connection.
    fn wait(&self, ring: Option<&Slots>, patience: Duration) -> bool {
        let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let socket = self.link.socket().map(|(socket, write)| {
            PollFd::new(socket, if write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN })
        });
        let rung = ring.map(|ring| PollFd::new(ring, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = rung.into_iter().chain(socket).collect();
        let _ = poll(&mut all, Some(&patience));
        ring.is_some() && all.first().is_some_and(|first| !first.revents().is_empty())
    }

    fn run(&mut self, ring: &mut Slots, loopback: bool, over: impl Fn() -> bool) {
        let (mut woken, mut deaf) = (false, false);
        let mut ending = Ending::default();
        loop {
            // What came before the end is forwarded.
            if over() && (ending.is_due() || deaf) {
                break;
            }
            // As in `worker`: a ring that is ready and has nothing has an error, which is taken by waiting for it.
            let patience = if woken || deaf { Duration::from_millis(1) } else { Duration::ZERO };
            let count = match ring.advance(patience) {
                Ok(count) => count,
                Err(error) => {
                    if self.fault.is_none() {
                        let said = format!("capturing was interrupted: {error}");
                        (self.say)(&said);
                        self.fault = Some(said);
                    }
                    deaf = true;
                    std::thread::sleep(LOOKS);
                    0
                }
            };
            for frame in ring.frames() {
                if !(loopback && frame.kind == Kind::Outgoing) {
                    self.frame(frame.bytes, frame.length, frame.stamp.ns);
                }
            }
            ring.give_back();
            if count == 0 && ending.has_begun() {
                break;
            }
            self.tick(ring);
            self.step();
            woken = false;
            if count == 0 {
                woken = self.wait((!deaf).then_some(ring), LOOKS);
            } else if count < FEW {
                std::thread::sleep(NAP);
            }
        }
    }

    fn frame(&mut self, bytes: &[u8], length: usize, at_ns: u64) {
        self.forwarder.frames().captured += 1;
        match read(LinkType::ETHERNET, bytes, length) {
            Ok(segment) => self.forwarder.segment(&segment, at_ns),
            Err(NoSegment::Other) => self.forwarder.frames().other_protocols += 1,
            Err(NoSegment::Malformed) => self.forwarder.frames().malformed += 1,
            Err(NoSegment::Fragment) => {
                self.forwarder.frames().fragments += 1;
                let Some(whole) = self.fragments.take(LinkType::ETHERNET, bytes, at_ns) else { return };
                let frames = self.forwarder.frames();
                frames.fragments -= whole.frames.min(frames.fragments);
                frames.joined += whole.frames - 1;
                match read(LinkType::ETHERNET, &whole.frame, whole.frame.len()) {
                    Ok(segment) => self.forwarder.segment(&segment, at_ns),
                    Err(_) => frames.malformed += 1,
                }
            }
        }
    }

    fn tick(&mut self, ring: &mut Slots) {
        if self.looked.elapsed() < LOOKS {
            return;
        }
        self.looked = Instant::now();
        self.forwarder.look(now_real());
        if let Some(order) = self.ceiling.look() {
            self.forwarder.hold_back(order != Order::Go);
            if order == Order::Shed {
                self.forwarder.shed(self.forwarder.open().div_ceil(10));
            }
        }
        if self.told.elapsed() >= ACCOUNTS {
            self.told = Instant::now();
            self.forwarder.dropped(ring.counters().dropped);
            self.forwarder.tell();
        }
    }

    /// What the connection does next, and says.
    fn step(&mut self) {
        match self.link.step(&mut self.forwarder) {
            Some(Happened::Up) => {
                // Pieces of packets that the clone before was told of are not this one's.
                self.fragments = Fragments::default();
                (self.say)(&format!("connected to {} again", self.link.to()));
            }
            Some(Happened::Gone(why)) => {
                (self.say)(&format!(
                    "the clone at {} is gone ({why}): its sessions are given up, and it is tried again until it is back",
                    self.link.to()
                ));
            }
            // Once for each reason, however often it is tried.
            Some(Happened::Failed(why)) if self.why.as_ref() != Some(&why) => {
                (self.say)(&format!("the clone at {} is not back: {why}", self.link.to()));
                self.why = Some(why);
            }
            Some(Happened::Failed(_)) | None => {}
        }
    }

    /// Sends what waits, and says that this is the end.
    fn end(&mut self) {
        let was_up = self.link.is_up();
        self.forwarder.finish();
        let until = Instant::now() + DRAINS;
        // The clone closes the connection when it has heard all.
        let mut heard = false;
        while self.link.is_up() && Instant::now() < until {
            self.link.step(&mut self.forwarder);
            if self.link.is_idle() && self.forwarder.queued() == 0 {
                heard = true;
                self.link.close();
            }
            self.wait(None, LOOKS);
        }
        if was_up && !heard {
            self.fault.get_or_insert_with(|| {
                "at the end the clone did not take what was still to be sent".to_owned()
            });
        }
    }

    fn result(&self, args: &Forwarding, seed: Option<u64>, duration_ns: u64) -> Forwarded {
        let account = self.forwarder.account();
        let forwards = self.forwarder.forwards;
        let (frames, left) = (account.frames, account.left);
        let mut reasons = Vec::new();
        let mut fell = |count: u64, what: &str| {
            if count > 0 {
                reasons.push(format!("{} {what}", units::count(count)));
            }
        };
        fell(account.dropped, "frames found no room in the ring, and sessions lack what was in them");
        fell(
            forwards.shed,
            "sessions were given up: there was no room for them on the way, or on this machine",
        );
        fell(forwards.lost, "sessions were given up with the connection to the clone");
        fell(
            left.over_link,
            "sessions were not forwarded: the way to the clone had no room, or it was not there",
        );
        reasons.extend(self.fault.clone());
        Forwarded {
            on: args.from.on.clone(),
            send_to: args.send_to.clone(),
            seed,
            frames: frames.captured,
            from_clients: frames.from_clients,
            from_server: frames.from_server,
            dropped_frames: account.dropped,
            sessions: same_fields!(left, ForwardedSessions: half_open refused midstream sampled_out over_sessions over_rate
                over_ceiling over_link; forwarded: forwards.begun, shed: forwards.shed, lost: forwards.lost),
            queued_bytes: forwards.queued_bytes,
            lost_bytes: forwards.lost_bytes,
            sent_bytes: self.link.sent(),
            connections: self.link.connections(),
            cpu_ns: cpu_time().as_nanos() as u64,
            duration_ns,
            reasons,
        }
    }
}
