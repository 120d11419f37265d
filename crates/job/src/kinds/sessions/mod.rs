//! `netdyno sessions`: TCP connections and UDP sessions that the kernel's XDP makes, and a server of the same kind (`server`).

mod outcome;
pub mod search;
mod server;

use super::Run;
use super::clone::safety::is_private;
use super::{passive, shared};
use crate::carrier::{self, Ends};
use crate::device_nat::DeviceNat;
use crate::panel::Names;
use crate::place::Place;
use crate::run::counters::Leaving;
use crate::session::{Looked, Session};
use anyhow::{Context, Result, bail};
use engine::Priority;
use report::{Code, Report};
use sessions::{Clients, Close, Counts, Load, Options, Ran, SessionsError, datagram, request};
use snapshot::{Connections, Count, Snapshot, Title};
use spec::{Pool, SessionClose, Sessions};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use xdp::way::{Way, find_until};

/// The port of a server of which none is said: that of HTTP, or of echo (RFC 862).
const HTTP: u16 = 80;
const ECHO: u16 = 7;
/// Ports of clients: from here to the last. Those below may be of services.
const FIRST_PORT: u16 = 16_384;
/// Of an address that is the host's own: from here, without those that the host takes by itself.
const FIRST_OF_HOST: u16 = 1024;
/// The host takes its ports from these, if it does not say from which.
const EPHEMERAL: RangeInclusive<u16> = 32_768..=60_999;
/// Slots that there are at least, if there are tuples for them, and at most: 32 MB, 512 MB.
const USUAL_SLOTS: u64 = 1 << 20;
const MOST_SLOTS: u64 = 1 << 24;
/// Connections that are open at once without a rate: a veth has room for 256 frames.
const IN_FLIGHT: u64 = 100;
const TIMEOUT: Duration = Duration::from_secs(10);
const RETRANSMIT_AFTER: Duration = Duration::from_millis(200);
/// Headers of IPv4 or IPv6 and TCP, and the longest packet.
const HEADERS: u32 = 40;
const HEADERS_IPV6: u32 = 60;
const MOST_PACKET: u32 = 1500;

impl Run for Sessions {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Sessions, session: &Session) -> Result<Report> {
    let place = Place::find(&args.on)?;
    place.guard(&session.consent.yes_disrupt)?;
    shared::measurable(&place)?;
    let plan = Plan::of(args, &place)?;
    session.stop_in_order();
    let (count, duration) = (args.count.as_deref().copied(), args.duration.as_deref().copied());
    let mut ends = Ends::none();
    ends.needed(&place, "sessions")?;
    let name = &place.interface.name;
    let clients = place.run_in(|| Clients::attach(name, plan.options.clone()))?;
    let clients = clients.with_context(|| format!("opening connections on {}", place.spec))?;
    let mut report = passive::report("sessions", &place, (count, duration));
    let following = ends.wait(session, &mut report)?;
    let way = way(&place, &session.stop)?;
    let load = Load { next_hop: plan.next_hop(args, &place)?, ..plan.load };
    report.environment.engine = Some(outcome::choice(clients.is_native(), clients.reason(), &way));

    session.meet()?;
    let (server, from) = (plan.options.server, plan.from());
    session.say(
        Code::Begun,
        format!("opening connections to {server} from {from} on {}; Ctrl-C ends and reports", place.spec),
    );
    session.warn(&report.warnings);
    let title =
        Title { tx: Some(place.spec.clone()), rx: Some(server.to_string()), ..passive::title("sessions") };
    let one = std::slice::from_ref(&place);
    let mut panel = passive::panel(session, title, &report, one, Names::unknown(0))?;
    let mut leaving = Leaving::begin(&place)?;
    let nat = DeviceNat::around(&place)?;
    let nat = nat.map(|nat| anyhow::Ok((nat.begin()?, nat))).transpose()?;
    let over = AtomicBool::new(false);
    let (ran, watched) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let ran = clients.run(&way, &load, &session.stop);
            over.store(true, Relaxed);
            ran
        });
        let watched = session.watch(&mut panel, None, |_| look(&clients, &over));
        (sending.join(), watched)
    });
    session.board.end();
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let (counts, times, open) = (clients.counts(), clients.times(), clients.open());
    drop(clients);
    let ran = match ran {
        Ok(Ok(ran)) => ran,
        Ok(Err(SessionsError::Gone(_))) => {
            report.result.verdict.fail(Code::InterfaceGone, place.why_ended("the clients"));
            Ran::default()
        }
        Ok(Err(error)) => {
            report.result.verdict.fail(Code::SenderFailed, error.to_string());
            Ran::default()
        }
        Err(_) => bail!("the thread that opens connections ended by a defect"),
    };
    let intervals = watched.samples.intervals();
    report.intervals =
        intervals.map(|ends| outcome::interval(ends.map(|(at, now)| (at, moved(&now))))).collect();
    outcome::fill(&mut report, &plan, (&counts, &ran, open), &times);
    if let (Some((before, nat)), Some(made)) = (nat, &mut report.result.sessions) {
        let counted = nat.since(&before);
        made.nat.clone_from(&counted);
        nat.compare(&mut report, [(counts.finished, counted.as_ref())].into_iter());
    }
    outcome::judge(&mut report, &plan, (&counts, &ran, open), plan.is_bounded());
    outcome::beside(&mut report, &plan, &place, &counts);
    outcome::compare(&mut report, &place, &counts, &mut leaving);
    Ok(report)
}

/// The port of a server of which none is said.
fn port_of(udp: bool) -> u16 {
    if udp { ECHO } else { HTTP }
}

/// What each request is.
fn asked(args: &Sessions, server: SocketAddr) -> Vec<u8> {
    let size = args.request_size.map(|size| size as usize);
    if args.is_udp() {
        return datagram(size.unwrap_or(0), server.is_ipv6());
    }
    let path = args.path.as_deref().unwrap_or("/");
    request(&server.to_string(), path, size, args.closes() == SessionClose::Server)
}

/// How often, for how long, and before whom.
fn load(args: &Sessions, in_flight: Option<u64>) -> Load {
    let held = args.connections.as_deref().copied();
    Load {
        rate: args.connections_per_second(),
        count: args.count.as_deref().copied().or(held),
        duration: args.duration.as_deref().copied(),
        in_flight,
        hold: args.hold.as_deref().copied().or(args.uses_again().then_some(Duration::ZERO)),
        use_again: args.uses_again(),
        priority: priority(args),
        ..Load::default()
    }
}

/// What has times goes before ordinary tasks as soon as these hold it up.
fn priority(args: &Sessions) -> Priority {
    match args.no_real_time || args.rate.is_none() {
        true => Priority::Ordinary,
        false => Priority::AsNeeded,
    }
}

/// Who connects where, and how often.
struct Plan {
    options: Options,
    load: Load,
    /// This host's address there, if it has one.
    host: Option<IpAddr>,
    /// Tuples that there are, whether there are slots for them or not.
    tuples: u64,
}

/// Of UDP no session is to have a tuple of an earlier one, which a device may know still: there are slots for all that are due, if that is known.
fn at_least_due(args: &Sessions, slots: u64, tuples: u64) -> Result<u64> {
    let timed = args.connections_per_second().zip(args.duration.as_deref()).map(|(rate, time)| {
        u64::try_from((u128::from(rate) * time.as_nanos()).div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
    });
    let due = match args.count.as_deref() {
        Some(count) => Some(("`.count`", *count)),
        None => timed.map(|due| ("`.rate` and `.duration`", due)),
    };
    let Some((by, due)) = due.filter(|_| args.is_udp()) else { return Ok(slots) };
    let slots = slots.max(tuples.min(due).min(MOST_SLOTS));
    if due > slots {
        bail!(
            "{by}: {due} sessions, and there are {slots} tuples for them: one that is used again is no new session to a device that still knows it; \
             give more addresses with `.clients` (up to 16777216 tuples)"
        );
    }
    Ok(slots)
}

impl Plan {
    fn of(args: &Sessions, place: &Place) -> Result<Plan> {
        let to = args.to.address.to_canonical();
        if !args.public_target && !is_private(to) {
            bail!(
                "`.to` {to} is a public address: connections are not opened to it, unless `.public_target` says so"
            );
        }
        let own = place.run_in(port::local::addresses)??;
        if own.contains(&to) {
            bail!("`.to` {to} is an address of this host: name a server behind {}", place.spec);
        }
        let name = &place.interface.name;
        let tag = args.tag();
        if tag.is_some() {
            keeps_tags(place)?;
        }
        // What the host has in a VLAN is not the interface's own.
        let host = match place.run_in(|| port::resolve::source(name, to))? {
            Ok(Some(host)) if tag.is_none() && host.is_ipv4() == to.is_ipv4() && reaches(host, to) => {
                Some(host)
            }
            Ok(_) | Err(_) => None,
        };
        let pool = pool(args, place, (to, host), &own)?;
        let ports = ports(place, &pool, &own)?;
        let in_flight = args.in_flight.or(args.rate.is_none().then_some(IN_FLIGHT));
        let tuples = u64::from(pool.count) * ports.len() as u64;
        let slots = tuples.min(USUAL_SLOTS.max(in_flight.unwrap_or(0).saturating_mul(2)).min(MOST_SLOTS));
        if let Some(in_flight) = in_flight.filter(|in_flight| *in_flight > slots) {
            bail!(
                "`.in_flight` {in_flight}: there are {slots} tuples for connections; give more addresses with `.clients` \
                 (up to 16777216 tuples)"
            );
        }
        let held = args.connections.as_deref().copied();
        let slots = slots.max(tuples.min(held.unwrap_or(0)).min(MOST_SLOTS));
        if let Some(held) = held.filter(|held| *held > slots) {
            bail!(
                "`.connections` {held}: there are {slots} tuples for connections; give more addresses with `.clients` (up to 16777216 tuples)"
            );
        }
        let slots = at_least_due(args, slots, tuples)?;
        let server = SocketAddr::new(to, args.to.port.unwrap_or(port_of(args.is_udp())));
        let closes = args.closes();
        let request = asked(args, server);
        let requests = args.requests.unwrap_or(1);
        let payload = payload(place, to);
        if request.len() > usize::from(payload) {
            bail!("a request of {} bytes does not fit in one segment of {payload} bytes", request.len());
        }
        if request.len() as u64 * u64::from(requests) > MOST_ASKED {
            bail!("`.requests` {requests} of {} bytes each: a connection asks 1 GB at most", request.len());
        }
        let options = Options {
            server,
            own: place.interface.mac.with_context(|| format!("{} has no Ethernet address", place.spec))?,
            host,
            first_address: pool.first,
            addresses: pool.count,
            first_port: *ports.start(),
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            udp: args.is_udp(),
            from_server: args.from_server,
            request,
            requests,
            think: args.think.as_deref().copied().unwrap_or_default(),
            close: match closes {
                SessionClose::Server => Close::Server,
                SessionClose::Fin => Close::Fin,
                SessionClose::Rst => Close::Rst,
            },
            holds: args.holds(),
            mss: payload,
            tag,
            retransmit_after: args.retransmit_after.as_deref().copied().unwrap_or(RETRANSMIT_AFTER),
            timeout: args.timeout.as_deref().copied().unwrap_or(TIMEOUT),
            generic: args.generic,
        };
        Ok(Plan { options, load: load(args, in_flight), host, tuples })
    }

    /// The next hop is asked for when answers can arrive: a server in XDP answers by XDP, which a veth without a program does not take.
    fn next_hop(&self, args: &Sessions, place: &Place) -> Result<[u8; 6]> {
        if let Some(mac) = args.mac.as_deref() {
            return Ok(mac.0);
        }
        let (name, to) = (&place.interface.name, self.options.server.ip());
        let asked = place.run_in(|| port::resolve::neighbour(name, to, self.host))?;
        asked
            .map_err(|error| anyhow::anyhow!("{}", error.to_string().replace("ether(dst=...)", "`.mac` MAC")))
    }

    /// An end was asked for.
    fn is_bounded(&self) -> bool {
        match self.options.holds {
            true => self.load.hold.is_some(),
            false => self.load.count.is_some() || self.load.duration.is_some(),
        }
    }

    /// The clients' addresses, for a person.
    fn from(&self) -> String {
        let (first, count) = (self.options.first_address, self.options.addresses);
        match count {
            1 => first.to_string(),
            _ => format!("{} addresses from {first} on", report::units::count(count.into())),
        }
    }
}

/// Clients in a network of the link are asked for, if there are no more than these: a burst of as many frames, for a second.
const MOST_PROBED: u32 = 1024;

/// Refuses clients of a network that the interface is in, where others of the link have their addresses or may have them: ARP or neighbour
/// discovery would be answered for these from here, and what is theirs would come here.
fn takes_nobodys(place: &Place, pool: &Pool, own: &[IpAddr]) -> Result<()> {
    let networks = place.run_in(|| port::local::networks(place.interface.index))??;
    let of_link = matches!(pool.first, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if !of_link && !networks.iter().any(|network| is_within(pool.first, *network)) {
        return Ok(());
    }
    let spec = &place.spec;
    if pool.count > MOST_PROBED {
        bail!(
            "`.clients` are of a network that {spec} is in, and more than the {MOST_PROBED} whose addresses are asked for to see that they are \
             nobody's: give fewer, or a prefix of another network, or say `.yes_disrupt` {spec}"
        );
    }
    let asked: Vec<IpAddr> = pool.addresses().filter(|address| !own.contains(address)).collect();
    let holder = place.run_in(|| port::resolve::holder_of_any(&place.interface.name, &asked))?;
    let holder = holder.with_context(|| format!("asking on {spec} whether `.clients` are nobody's"))?;
    if let Some((address, mac)) = holder {
        bail!(
            "`.clients`: {address} is the address of another host on {spec} ({}): what is for it would come here; give a prefix that is \
             nobody's, or say `.yes_disrupt` {spec}",
            wire::Mac(mac)
        );
    }
    Ok(())
}

/// Is the address of that network?
fn is_within(address: IpAddr, (of, bits): (IpAddr, u8)) -> bool {
    Pool { first: of, count: 1, bits }.is_of_network(address)
}

/// More requests of a connection would have sequence numbers that come again.
const MOST_ASKED: u64 = 1_000_000_000;

/// The clients' addresses, if those who answer them reach nobody else by them.
fn pool(
    args: &Sessions,
    place: &Place,
    (to, host): (IpAddr, Option<IpAddr>),
    own: &[IpAddr],
) -> Result<Pool> {
    let pool = match (args.pool(), host) {
        (Some(pool), _) => pool,
        (None, Some(host)) => Pool { first: host, count: 1, bits: if host.is_ipv4() { 32 } else { 128 } },
        (None, None) => bail!(
            "{} has no address to reach {to} from: give addresses with `.clients`, or set one with `ip addr add`",
            place.spec
        ),
    };
    let on_the_link = own.iter().any(|own| pool.is_of_network(*own));
    if pool.count > 1 && on_the_link && !args.yes_disrupt.contains(&place.spec) {
        bail!(
            "`.clients` are of a network that this host is in: {} would be answered for its other hosts, and what is theirs would come here; \
             give a prefix that is nobody's, such as {}, or say `.yes_disrupt` {}",
            if to.is_ipv4() { "ARP" } else { "neighbour discovery" },
            if to.is_ipv4() { "198.18.0.0/24" } else { "2001:db8:1::/64" },
            place.spec
        );
    }
    // A host's own address is its own, and a VLAN cannot be asked.
    let known = pool.count == 1 && own.contains(&pool.first) || args.tag().is_some();
    if args.clients.is_some() && !known && !args.yes_disrupt.contains(&place.spec) {
        takes_nobodys(place, &pool, own)?;
    }
    if args.clients.is_some() && !args.public_target && !is_private(pool.first) {
        bail!(
            "`.clients` {} and on are public addresses: the server's answers would go to others",
            pool.first
        );
    }
    Ok(pool)
}

/// The ports of clients. Those of an address that the host has itself are none that the host takes for connections of its own, which
/// would else be taken for ours and reset.
fn ports(place: &Place, pool: &Pool, own: &[IpAddr]) -> Result<RangeInclusive<u16>> {
    let of_host = own.iter().any(|own| pool.has(*own));
    if !of_host {
        return Ok(FIRST_PORT..=u16::MAX);
    }
    let said = place.run_in(|| std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range"))?;
    let numbers = said.unwrap_or_default();
    let mut numbers = numbers.split_whitespace().filter_map(|number| number.parse::<u16>().ok());
    let taken = match (numbers.next(), numbers.next()) {
        (Some(low), Some(high)) if low <= high => low..=high,
        _ => EPHEMERAL,
    };
    beside(&taken).with_context(|| {
        format!(
            "this host takes ports {} to {} for its own connections and leaves none for clients of its address: give other addresses with \
             `.clients`, or a narrower range with sysctl net.ipv4.ip_local_port_range",
            taken.start(),
            taken.end()
        )
    })
}

/// The larger of the ranges below and above.
fn beside(taken: &RangeInclusive<u16>) -> Option<RangeInclusive<u16>> {
    let below = FIRST_OF_HOST..=taken.start().saturating_sub(1);
    let above = taken.end().checked_add(1).map(|first| first..=u16::MAX);
    let all = [Some(below), above].into_iter().flatten().filter(|range| !range.is_empty());
    all.max_by_key(ExactSizeIterator::len)
}

/// The longest payload of a segment there, of the family of this address.
fn payload(place: &Place, of: IpAddr) -> u16 {
    let headers = if of.is_ipv4() { HEADERS } else { HEADERS_IPV6 };
    u16::try_from(place.interface.mtu.min(MOST_PACKET).saturating_sub(headers).max(1)).unwrap_or(1)
}

/// From an address of the link alone only such a one is reached.
fn reaches(host: IpAddr, to: IpAddr) -> bool {
    let of_link = |address| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !of_link(host) || of_link(to)
}

/// Refuses an interface that takes tags out of frames before a program sees them.
fn keeps_tags(place: &Place) -> Result<()> {
    if shared::takes_tags_out(place) {
        bail!(
            "`.vlan`: {} takes VLAN tags out of the frames that it receives, before any program sees them: switch that off with \
             `ethtool -K {} rxvlan off`",
            place.spec,
            place.interface.name
        );
    }
    Ok(())
}

/// How live frames leave there.
fn way(place: &Place, stop: &AtomicBool) -> Result<Way> {
    let interface = &place.interface;
    let find = || find_until(&place.target(), interface.kind.as_deref(), 1, 1, stop, None);
    place.run_in(find)?.with_context(|| format!("opening connections on {}", place.spec))
}

/// What came, and what left.
fn moved(counts: &Counts) -> [Count; 2] {
    [
        Count { frames: counts.rx_frames, bytes: counts.rx_bytes },
        Count { frames: counts.tx_frames, bytes: counts.tx_bytes },
    ]
}

/// How it stands.
fn look(clients: &Clients, over: &AtomicBool) -> Looked<'static, Counts> {
    let ended = over.load(Relaxed);
    let now = clients.counts();
    let [rx, tx] = moved(&now).map(Some);
    let snapshot = Snapshot {
        tx,
        rx,
        connections: Some(Connections {
            open: now.opened.saturating_sub(now.ended()),
            over: now.ended(),
            broken: now.failed(),
            retransmitted: now.retransmitted(),
            heard: now.answer_bytes,
            ..Connections::default()
        }),
        ..Snapshot::default()
    };
    Looked::of(now, ended, snapshot)
}
