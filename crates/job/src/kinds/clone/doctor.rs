//! `netdyno clone doctor`: which of SYN, SYN-ACK and ACK is missing where, and what to type next. It listens where a clone would,
//! and makes one connection to the target as a clone does; nothing is copied.
//!
//! ```text
//!   clients --SYN--> server     listened to at the interface of `on`
//!   clients <-SYN-ACK- server
//!   clients --ACK--> server
//!
//!   here --SYN--> target        one connection, from the address that copies have, watched at all interfaces
//!   here <-SYN-ACK- target
//!   here --ACK--> target
//! ```
//!
//! With a prefix the route of table `local` is there while the connection is tried, as it is while a clone runs; with clients' addresses
//! the tunnel is, and the connection goes through it. What captures on other hosts see is not looked at from here.

use super::tunnel::Tunnel;
use super::{ANSWERS, BATCH, LocalPrefix, Place, key, own_address, rules, safety, target};
use anyhow::{Context, Result, bail};
use clone::packet::{ACK, RST, SYN, read};
use clone::table::Table;
use port::doctor::State;
use port::filter::TcpServer;
use port::packet::Target;
use port::rx::{Direction, Rx as _, Slots, Take};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use serde::Serialize;
use spec::Cloning;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wire::LinkType;
use wire::flow::FlowKey;

/// It listens so long, unless a whole handshake is seen earlier.
pub const LISTENS: Duration = Duration::from_secs(5);
/// Longer is a clone's affair.
const LONGEST: Duration = Duration::from_secs(600);
/// The connection to the target has so long.
const CONNECTS: Duration = Duration::from_secs(2);
/// What a connection's last frame may take to come through the ring.
const SETTLES: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_millis(20);
/// Memory for frames that wait.
const RING: usize = 4 << 20;
/// Sessions whose handshakes are told apart.
const MOST: usize = 65_536;

/// One step that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which.
    pub step: &'static str,
    /// How it is.
    pub state: State,
    /// What was seen.
    pub found: String,
    /// What to type next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// All steps, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Each with its verdict.
    pub steps: Vec<Step>,
}

impl Diagnosis {
    /// Is nothing missing?
    pub fn is_well(&self) -> bool {
        self.steps.iter().all(|step| step.state != State::Bad)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Step { step, state, found, command } in &self.steps {
            let state = match state {
                State::Good => "ok",
                State::Note => "note",
                State::Bad => "MISSING",
                State::Unknown => "unknown",
            };
            let _ = writeln!(text, "{step:<22} {state:<8} {found}");
            if let Some(command) = command {
                let _ = writeln!(text, "{:<31} next: {command}", "");
            }
        }
        text
    }
}

fn step(step: &'static str, state: State, found: impl Into<String>) -> Step {
    Step { step, state, found: found.into(), command: None }
}

impl Step {
    fn next(mut self, command: impl Into<String>) -> Step {
        self.command = Some(command.into());
        self
    }
}

/// Looks at every step of a clone that `args` describe; ends early when `stop` is set.
///
/// # Errors
/// That the interface is not there or cannot be listened at, or the arguments say nothing that could be cloned.
pub fn diagnose(args: &Cloning, stop: &AtomicBool) -> Result<Diagnosis> {
    super::passive::check(args)?;
    let server = args.server().context("`.server` has no port")?;
    let to = target(&args.to, "to")?;
    let found = args.on.as_deref().map(Place::find).transpose()?;
    let mut steps = Vec::new();
    let refused = safety::refuse(args, server, ("to", to), found.as_ref()).err();
    // What may not be a target is not connected to.
    let tried = || refused.is_none().then(|| connection(args, to));
    let tried = match (&found, &args.listen) {
        (Some(place), _) => {
            steps.push(interface(place));
            let listens = args.duration.as_deref().copied().unwrap_or(LISTENS).min(LONGEST);
            let (seen, tried) = std::thread::scope(|scope| {
                let listening = scope.spawn(|| listen(args, server, to, place, (listens, stop)));
                let tried = tried();
                let listened =
                    listening.join().unwrap_or_else(|_| anyhow::bail!("the thread that listens broke down"));
                (listened, tried)
            });
            steps.extend(seen?);
            tried
        }
        (None, Some(at)) => {
            steps.extend(link(args, at, server.1));
            tried()
        }
        (None, None) => bail!("there is no interface to listen at; give `.on`, or `.listen`"),
    };
    match refused {
        Some(refused) => steps.push(step("target", State::Bad, refused.to_string())),
        None => steps.push(step("target", State::Good, format!("{to} may be a target"))),
    }
    steps.extend(tried.transpose()?.unwrap_or_default());
    Ok(Diagnosis { steps })
}

/// What captures on other hosts connect to.
fn link(args: &Cloning, at: &str, port: u16) -> [Step; 3] {
    let bound = match TcpListener::bind(at) {
        Ok(_) => step("address to listen at", State::Good, format!("{at} is free")),
        Err(error) => {
            let step =
                step("address to listen at", State::Bad, format!("{at} cannot be listened at: {error}"));
            match error.kind() {
                ErrorKind::AddrInUse => step.next("ss -ltnp"),
                _ => step.next("ip address show"),
            }
        }
    };
    let key = match args.key.as_deref().map(key::read) {
        Some(Ok(_)) => step("key", State::Good, "it can be read"),
        Some(Err(error)) => step("key", State::Bad, format!("{error:#}")),
        None => step("key", State::Bad, "there is none").next("netdyno clone key FILE"),
    };
    let there =
        step("captures", State::Note, "what they see is not looked at from here; on each of their hosts:")
            .next(format!("`.doctor_there`, with PORT {port} and TARGET {}", args.to));
    [bound, key, there]
}

fn interface(place: &Place) -> Step {
    let name = &place.spec;
    match (place.interface.up, place.interface.carrier) {
        (true, true) => step("interface", State::Good, format!("{name} is up")),
        (true, false) => step("interface", State::Bad, format!("{name} has no carrier"))
            .next(format!("ip link show {}", place.interface.name)),
        (false, _) => step("interface", State::Bad, format!("{name} is down"))
            .next(format!("ip link set {} up", place.interface.name)),
    }
}

/// Of one session: which of its handshake's segments were seen.
const SEEN_SYN: u8 = 1;
const SEEN_SYN_ACK: u8 = 2;
const SEEN_ACK: u8 = 4;

/// Listens to clients and the server.
fn listen(
    args: &Cloning,
    (server, port): (Option<IpAddr>, u16),
    to: SocketAddr,
    place: &Place,
    (listens, stop): (Duration, &AtomicBool),
) -> Result<[Step; 3]> {
    let except = Some(to.ip()).filter(|ip| to.port() == port && server != Some(*ip));
    let filter = TcpServer { address: server, port, answers: ANSWERS, except }.steps();
    let take = Take { direction: Direction::Both, filter: &filter, share: None, promiscuous: true };
    let aim = place.target();
    let mut ring = place.run_in(|| Slots::open_large(&aim, BATCH, &take, RING))??;
    let mut table = Table::new(rules(args, (server, port), [Some(to), None])?);
    let mut sessions: HashMap<FlowKey, u8> = HashMap::new();
    let mut captured = 0;
    let end = Instant::now() + listens;
    let mut whole = false;
    while !whole && Instant::now() < end && !stop.load(Relaxed) {
        // A ring that broke has been told by `interface` or is by what is missing.
        if ring.advance(PATIENCE).is_err() {
            std::thread::sleep(PATIENCE);
        }
        for frame in ring.frames() {
            captured += 1;
            let Ok(segment) = read(LinkType::ETHERNET, frame.bytes, frame.length) else { continue };
            table.segment(&segment, frame.stamp.ns, &mut |_, _| ());
            let is_server =
                |address: IpAddr, of: u16| of == port && server.is_none_or(|server| server == address);
            let flow = segment.flow;
            let (key, bit) = if is_server(flow.destination(), flow.destination_port()) {
                (flow, if segment.has(SYN) { SEEN_SYN } else { SEEN_ACK })
            } else if is_server(flow.source(), flow.source_port()) {
                (flow.reversed(), if segment.has(SYN) { SEEN_SYN_ACK } else { 0 })
            } else {
                continue;
            };
            if sessions.len() < MOST || sessions.contains_key(&key) {
                let bits = sessions.entry(key).or_default();
                *bits |= bit;
                whole |= *bits == SEEN_SYN | SEEN_SYN_ACK | SEEN_ACK;
            }
        }
        ring.give_back();
    }
    table.frames.captured = captured;
    Ok(handshakes(args, (server, port), &table, &sessions))
}

/// What is to be said of the handshakes at the interface.
fn handshakes(
    args: &Cloning,
    server: (Option<IpAddr>, u16),
    table: &Table,
    sessions: &HashMap<FlowKey, u8>,
) -> [Step; 3] {
    const STEPS: [&str; 3] = ["SYN of clients", "SYN-ACK of the server", "ACK of clients"];
    let [syn, syn_ack, ack] = STEPS;
    let on = args.on.as_deref().unwrap_or_default();
    let name = on.split('@').next().unwrap_or(on);
    let filter = safety::filter(server);
    let look = format!("tcpdump -ni {name} '{filter}'");
    let frames = &table.frames;
    let (clients, answers) = (frames.from_clients, frames.from_server);
    let good =
        |step_, what: &str, count: u64| step(step_, State::Good, format!("{what} seen at {on}: {count}"));
    let missing = |step_, why: &str| step(step_, State::Bad, why).next(look.clone());
    let wrong = safety::direction(args, server, frames, &table.counts);
    // The command stands beside it.
    let cut = wrong.as_deref().and_then(|said| said.find(" compare with").and_then(|at| said.get(..at)));
    let wrong = cut.unwrap_or_default().trim_end_matches(';');
    if clients + answers == 0 {
        return [
            missing(syn, wrong),
            step(syn_ack, State::Unknown, "nothing was seen"),
            step(ack, State::Unknown, "nothing was seen"),
        ];
    }
    if clients == 0 {
        return [
            missing(syn, wrong),
            good(syn_ack, "segments of the server", answers),
            missing(ack, "no segment of a client is seen"),
        ];
    }
    if answers == 0 {
        return [
            good(syn, "segments of clients", clients),
            missing(syn_ack, wrong),
            step(ack, State::Unknown, "there is no SYN-ACK to acknowledge"),
        ];
    }
    let with = |bits: u8| sessions.values().filter(|seen| **seen & bits == bits).count() as u64;
    if frames.syns == 0 {
        let open = "no session began while it listened; those seen were open before: they are copied with `.adopt` idle or http-boundary";
        let alone = "SYN-ACKs are seen without a SYN: sessions' first segments come in by another interface";
        let first = match frames.syn_acks {
            0 => step(syn, State::Note, open),
            _ => missing(syn, alone),
        };
        return [
            first,
            good(syn_ack, "segments of the server", answers),
            good(ack, "segments of clients", clients),
        ];
    }
    let first = good(syn, "SYNs", frames.syns);
    if with(SEEN_SYN | SEEN_SYN_ACK) == 0 {
        let port = server.1;
        return [
            first,
            step(syn_ack, State::Bad, "the server answers no SYN: does it listen, or is its backlog full?")
                .next(format!("on the server: ss -ltn 'sport = :{port}'")),
            step(ack, State::Unknown, "there is no SYN-ACK to acknowledge"),
        ];
    }
    let second = good(syn_ack, "SYN-ACKs", frames.syn_acks);
    match with(SEEN_SYN | SEEN_SYN_ACK | SEEN_ACK) {
        0 => [
            first,
            second,
            missing(
                ack,
                "no client acknowledges: SYN-ACKs do not reach them, or SYNs are a flood (nothing is copied of those)",
            ),
        ],
        whole => [first, second, good(ack, "whole handshakes", whole)],
    }
}

/// What was seen of the connection to the target.
#[derive(Debug, Default)]
struct Tried {
    syn: bool,
    syn_ack: bool,
    rst: bool,
    ack: bool,
    took: Option<Duration>,
    errno: Option<Errno>,
}

/// Makes one connection to the target as copies are made, and closes it.
fn connection(args: &Cloning, to: SocketAddr) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let prefix = args.prefix();
    let mut own = None;
    let mut _local = None;
    if let Some((first, bits)) = prefix {
        let made = LocalPrefix::add(first, bits);
        own = own_address(first, bits);
        steps.push(match (&made, own) {
            (Err(error), _) => step(
                "prefix",
                State::Bad,
                format!("{first}/{bits} cannot be made local to this host: {error}"),
            ),
            (_, None) => step("prefix", State::Bad, format!("{first}/{bits} has no address to use")),
            (Ok(_), Some(_)) => step(
                "prefix",
                State::Good,
                format!("{first}/{bits} was local to this host while this was tried"),
            ),
        });
        _local = made.ok();
        if own.is_none() || _local.is_none() {
            return Ok(steps);
        }
    }
    let way = port::resolve::way_out(to.ip()).ok().flatten();
    if args.client_addresses {
        let tunnel = match Tunnel::open(args, to) {
            Ok(tunnel) => tunnel,
            Err(error) => return Ok(vec![step("tunnel", State::Bad, format!("{error:#}"))]),
        };
        steps.push(step("tunnel", State::Good, "was there while this was tried"));
        if let Err(error) = tunnel.check() {
            let agent = format!(
                "on the target: `.return_agent`, with PORT {} and ADDRESS {}",
                to.port(),
                tunnel.here()
            );
            steps.push(step("return agent", State::Bad, format!("{error:#}")).next(agent));
            return Ok(steps);
        }
        steps.push(step("return agent", State::Good, "sends the tunnel's packets back, of every length"));
        own = Some(tunnel.test_address());
        let (tried, from) = tunnel.namespace().run_in(|| attempt(to, own))??;
        steps.extend(judged(args, to, from, &tried));
        return Ok(steps);
    }
    let (tried, from) = attempt(to, own)?;
    steps.extend(judged(args, to, from, &tried));
    steps.extend(way.filter(|_| to.is_ipv4()).and_then(|way| rp_filter(&way)));
    Ok(steps)
}

fn attempt(to: SocketAddr, own: Option<SocketAddr>) -> Result<(Tried, Option<SocketAddr>)> {
    let filter =
        TcpServer { address: Some(to.ip()), port: to.port(), answers: ANSWERS, except: None }.steps();
    // Answers may come in by another interface than SYNs leave by.
    let all = Target { name: "any".to_owned(), index: 0, mtu: 1500 };
    let take = Take { direction: Direction::Both, filter: &filter, share: None, promiscuous: false };
    let mut ring =
        Slots::open_large(&all, BATCH, &take, RING).context("watching the connection to the target")?;
    let mut tried = Tried::default();
    let began = Instant::now();
    let socket = match super::copies::begin(to, own) {
        Ok(socket) => socket,
        Err(errno) => return Ok((Tried { errno: Some(errno), ..tried }, own)),
    };
    let from =
        rustix::net::getsockname(&socket).ok().and_then(|name| SocketAddr::try_from(name).ok()).or(own);
    let (mut end, mut settled) = (began + CONNECTS, false);
    while Instant::now() < end && !(settled && (tried.ack || tried.rst)) {
        if ring.advance(PATIENCE).is_err() {
            std::thread::sleep(PATIENCE);
        }
        for frame in ring.frames() {
            let Ok(segment) = read(LinkType::ETHERNET, frame.bytes, frame.length) else { continue };
            let ends = |address: IpAddr, port: u16| Some(SocketAddr::new(address, port));
            let flow = segment.flow;
            let source = ends(flow.source(), flow.source_port());
            let destination = ends(flow.destination(), flow.destination_port());
            if destination == Some(to) && source == from {
                tried.syn |= segment.has(SYN);
                tried.ack |= segment.has(ACK) && !segment.has(SYN) && !segment.has(RST);
            } else if source == Some(to) && destination == from {
                tried.syn_ack |= segment.has(SYN) && segment.has(ACK);
                tried.rst |= segment.has(RST);
            }
        }
        ring.give_back();
        if settled {
            continue;
        }
        let mut asked = [PollFd::new(&socket, PollFlags::OUT)];
        if poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(0) > 0 {
            settled = true;
            end = end.min(Instant::now() + SETTLES);
            match sockopt::socket_error(&socket) {
                Ok(Ok(())) => tried.took = Some(began.elapsed()),
                Ok(Err(errno)) | Err(errno) => tried.errno = Some(errno),
            }
        }
    }
    Ok((tried, from))
}

/// Says of the connection which of its three segments is missing.
fn judged(args: &Cloning, to: SocketAddr, from: Option<SocketAddr>, tried: &Tried) -> [Step; 3] {
    const STEPS: [&str; 3] = ["SYN to the target", "SYN-ACK of the target", "ACK to the target"];
    let [syn, syn_ack, ack] = STEPS;
    let own = from.map_or_else(|| "this host".to_owned(), |from| from.ip().to_string());
    let (ip, port) = (to.ip(), to.port());
    let unknown = |step_, why: &str| step(step_, State::Unknown, why);
    let connected = tried.took.is_some();
    let first = if tried.syn {
        step(syn, State::Good, format!("left from {own}"))
    } else if connected {
        unknown(syn, "the connection was established; its interface has no Ethernet frames to show")
    } else {
        let (why, command) = match tried.errno {
            Some(Errno::NETUNREACH) => ("there is no route to the target".to_owned(), format!("ip route get {ip}")),
            Some(Errno::HOSTUNREACH) => {
                ("the next hop to the target does not answer ARP or neighbour discovery".to_owned(), "ip neigh show".to_owned())
            }
            Some(errno) => (format!("it cannot be sent from {own}: {errno}"), format!("ip route get {ip}")),
            None => (
                "it is not seen at any interface: the next hop's address is not known, or a firewall of this host drops it".to_owned(),
                format!("ip route get {ip}; ip neigh show; nft list ruleset"),
            ),
        };
        let nothing = "there was no SYN to answer";
        return [step(syn, State::Bad, why).next(command), unknown(syn_ack, nothing), unknown(ack, nothing)];
    };
    let none = "there was no SYN-ACK to acknowledge";
    if !tried.syn_ack && !connected {
        let second = if tried.rst || tried.errno == Some(Errno::CONNREFUSED) {
            step(
                syn_ack,
                State::Bad,
                format!("the target answers {own} with RST: nobody listens at its port {port}"),
            )
            .next(format!("on the target: ss -ltn 'sport = :{port}'"))
        } else if args.client_addresses {
            step(syn_ack, State::Bad, format!("nothing came back for {own}, which stands for a client: the agent lets packets in, so it is the target's own stack"))
                .next(format!("on the target: ss -ltn 'sport = :{port}'; ip route get {own} (clients need a route, such as a default route); sysctl -ar 'ipv4.*rp_filter' (1 drops them); ethtool -K IFACE tx off, if its NIC gets checksums within tunnels wrong"))
        } else if let Some(prefix) = &args.source_prefix {
            let here = port::resolve::way_out(ip).ok().flatten();
            let here = here.and_then(|way| port::resolve::source(&way, ip).ok().flatten());
            let here = here.map_or_else(|| "THIS-HOST".to_owned(), |here| here.to_string());
            step(
                syn_ack,
                State::Bad,
                format!(
                    "nothing came back for {own}: the target has no route for `.source_prefix` to this host, its rp_filter drops \
                     the SYN, or a network between does"
                ),
            )
            .next(format!("on the target: ip route get {own}; if that leads elsewhere: ip route add {prefix} via {here}"))
        } else {
            step(
                syn_ack,
                State::Bad,
                format!("nothing came back for {own}: does the SYN arrive at the target, and does a firewall drop it?"),
            )
            .next(format!("on the target: tcpdump -ni any 'tcp and host {own} and port {port}'"))
        };
        return [first, second, unknown(ack, none)];
    }
    let second = match tried.syn_ack {
        true => step(syn_ack, State::Good, format!("came back to {own}")),
        false => {
            unknown(syn_ack, "the connection was established; its interface has no Ethernet frames to show")
        }
    };
    let third = match (tried.took, tried.ack) {
        (Some(took), true) => {
            step(ack, State::Good, format!("sent; the connection took {}", report::units::time(took.as_nanos() as u64)))
        }
        (Some(_), false) => unknown(ack, "the connection was established; its ACK was not seen"),
        (None, _) => step(
            ack,
            State::Bad,
            "SYN-ACKs come in, but this host's stack does not take them: its firewall or its rp_filter drops them",
        )
        .next("nft list ruleset; sysctl -ar 'ipv4.*rp_filter'"),
    };
    [first, second, third]
}

/// The reverse path filter of the interface that leads to the target (Documentation/networking/ip-sysctl.rst: the greater of both).
fn rp_filter(way: &str) -> Option<Step> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter")).ok()?;
        text.trim().parse::<u8>().ok()
    };
    let value = read("all")?.max(read(way)?);
    Some(match value {
        1 => step(
            "rp_filter",
            State::Note,
            format!(
                "1 (strict) at {way}: answers of the target have to come in by this interface, else they are dropped"
            ),
        ),
        other => step("rp_filter", State::Good, format!("{other} at {way}")),
    })
}
