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
use super::{ANSWERS, BATCH, Place, Run, key, passive, safety, target};
use crate::kinds::shared::draw_seed;
use crate::session::Session;
use anyhow::{Context, Result, bail};
use clone::fragments::Fragments;
use clone::packet::{NoSegment, read};
use clone::remote::forward::{Forwarder, Rules};
use clone::sample::Copies;
use port::filter::TcpServer;
use port::rx::{Direction, Kind, Rx as _, Slots, Take};
use report::{Code, Forwarded, ForwardedSessions, Report, units};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use snapshot::{Count, Snapshot, Title};
use spec::Forwarding;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
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

impl Run for Forwarding {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

struct Agent<'s> {
    forwarder: Forwarder,
    link: Link,
    fragments: Fragments,
    ceiling: Ceiling,
    session: &'s Session,
    begun: Instant,
    title: Arc<Title>,
    told: Instant,
    looked: Instant,
    /// Why there is no connection, as it was said last.
    why: Option<String>,
    fault: Option<String>,
}

/// Captures and forwards, until it is ended or its time is over.
fn run(args: &Forwarding, session: &Session) -> Result<Report> {
    passive::check(args)?;
    let (server, port) = args.server().context("`.server` has no port")?;
    let key = key::read(&args.key)?;
    let to = target(&args.send_to, "send_to")?;
    let place = Place::find(&args.on)?;
    let seed = args.seed.unwrap_or_else(draw_seed);
    let rules = rules(args, (server, port), (to, seed))?;
    let promiscuous = !place.run_in(|| match server {
        Some(address) => safety::is_here(address),
        None => place.interface.has_address().unwrap_or(false),
    })?;
    let filter = TcpServer { address: server, port, answers: ANSWERS, except: rules.except }.steps();
    let take = Take { direction: Direction::Both, filter: &filter, share: None, promiscuous };
    let interface = place.target();
    let mut ring = place.run_in(|| Slots::open_large(&interface, BATCH, &take, RING))??;
    let now = Instant::now();
    let captured = Place::find(&args.on)?;
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
        session,
        begun: now,
        title: Arc::new(Title {
            rx: Some(args.on.clone()),
            tx: Some(to.to_string()),
            ..passive::title("clone capture")
        }),
        told: now,
        looked: now,
        why: None,
        fault: None,
    };
    session.stop_in_order();
    agent.first()?;
    let duration = args.duration.as_deref().copied();
    let mut report = passive::report("clone capture", &place, (None, duration));
    report.resolved.seed = args.sample.as_ref().map(|_| seed);
    session.say(
        Code::Begun,
        format!("forwarding: sessions of port {port} at {} to {to}; Ctrl-C ends and reports", args.on),
    );
    let begun = Instant::now();
    let over = || session.is_stopped() || duration.is_some_and(|most| begun.elapsed() >= most);
    agent.run(&mut ring, place.interface.name == "lo", over);
    let early = duration.is_some_and(|most| begun.elapsed() < most);
    agent.forwarder.dropped(ring.counters().dropped);
    drop(ring);
    agent.end();
    session.board.end();
    if early {
        report.result.verdict.fall_short(Code::Stopped, "stopped before its time was over");
    }
    agent.fill(&mut report, args, begun.elapsed().as_nanos() as u64);
    Ok(report)
}

fn rules(
    args: &Forwarding,
    (server, port): (Option<IpAddr>, u16),
    (to, seed): (SocketAddr, u64),
) -> Result<Rules> {
    let all = Copies::new(1.0).context("one copy")?;
    Ok(Rules {
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
    })
}

impl Agent<'_> {
    /// The first connection: without it nothing is begun.
    fn first(&mut self) -> Result<()> {
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
            if self.session.is_stopped() {
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
                        self.session.say(Code::CaptureElsewhere, &said);
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

    fn say(&self, said: String) {
        self.session.say(Code::CaptureElsewhere, said);
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
            self.publish();
        }
    }

    /// What the connection does next, and says.
    fn step(&mut self) {
        match self.link.step(&mut self.forwarder) {
            Some(Happened::Up) => {
                // Pieces of packets that the clone before was told of are not this one's.
                self.fragments = Fragments::default();
                self.say(format!("connected to {} again", self.link.to()));
            }
            Some(Happened::Gone(why)) => {
                self.say(format!(
                    "the clone at {} is gone ({why}): its sessions are given up, and it is tried again until it is back",
                    self.link.to()
                ));
            }
            // Once for each reason, however often it is tried.
            Some(Happened::Failed(why)) if self.why.as_ref() != Some(&why) => {
                self.say(format!("the clone at {} is not back: {why}", self.link.to()));
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

    /// How it stands, for who looks on.
    fn publish(&self) {
        let (account, at_ns) = (self.forwarder.account(), self.begun.elapsed().as_nanos() as u64);
        let rx = Count { frames: account.frames.captured, bytes: 0 };
        let snapshot =
            Snapshot { title: Arc::clone(&self.title), at_ns, rx: Some(rx), ..Snapshot::default() };
        self.session.board.publish(snapshot);
    }

    fn fill(&self, report: &mut Report, args: &Forwarding, duration_ns: u64) {
        let account = self.forwarder.account();
        let forwards = self.forwarder.forwards;
        let (frames, left) = (account.frames, account.left);
        let verdict = &mut report.result.verdict;
        let mut fell = |code: Code, count: u64, what: &str| {
            if count > 0 {
                verdict.fall_short(code, format!("{} {what}", units::count(count)));
            }
        };
        fell(
            Code::FramesCut,
            account.dropped,
            "frames found no room in the ring, and sessions lack what was in them",
        );
        let of_sessions = [
            (
                forwards.shed,
                "sessions were given up: there was no room for them on the way, or on this machine",
            ),
            (forwards.lost, "sessions were given up with the connection to the clone"),
            (
                left.over_link,
                "sessions were not forwarded: the way to the clone had no room, or it was not there",
            ),
        ];
        for (count, what) in of_sessions {
            fell(Code::SessionsNotCopied, count, what);
        }
        if let Some(fault) = &self.fault {
            verdict.fall_short(Code::CaptureElsewhere, fault);
        }
        report.result.forwarded = Some(Forwarded {
            on: args.on.clone(),
            send_to: args.send_to.clone(),
            seed: report.resolved.seed,
            frames: frames.captured,
            from_clients: frames.from_clients,
            from_server: frames.from_server,
            dropped_frames: account.dropped,
            sessions: same_fields!(left, ForwardedSessions: half_open refused midstream sampled_out over_sessions over_rate
                over_ceiling over_link; forwarded: forwards.begun, shed: forwards.shed, lost: forwards.lost),
            arrived_sessions: None,
            queued_bytes: forwards.queued_bytes,
            lost_bytes: forwards.lost_bytes,
            sent_bytes: self.link.sent(),
            connections: self.link.connections(),
            cpu_ns: cpu_time().as_nanos() as u64,
            duration_ns,
        });
    }
}
