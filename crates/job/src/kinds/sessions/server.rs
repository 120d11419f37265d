//! `netdyno sessions serve`: the far end, without state.

use super::super::Run;
use super::super::clone::safety::is_private;
use super::super::{passive, shared};
use super::{keeps_tags, outcome, payload, port_of};
use crate::carrier::{self, Ends};
use crate::panel::Names;
use crate::place::Place;
use crate::run::counters::Leaving;
use crate::session::{Looked, Session};
use anyhow::{Context, Result, bail};
use report::{Choice, Code, Report, Rx, SessionsServed, Totals, Tx};
use sessions::{Longer, Served, Server, ServerOptions, answer, datagram};
use snapshot::{Count, Snapshot, Title};
use spec::SessionsServer;
use std::net::{IpAddr, SocketAddr};

const BODY: u32 = 100;

impl Run for SessionsServer {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &SessionsServer, session: &Session) -> Result<Report> {
    let duration = args.duration.as_deref().copied();
    let place = Place::find(&args.on)?;
    place.guard(&session.consent.yes_disrupt)?;
    shared::measurable(&place)?;
    let options = options(args, &place)?;
    session.stop_in_order();
    let mut leaving = Leaving::begin(&place)?;
    let mut ends = Ends::none();
    ends.optional(&place, "serve")?;
    let name = &place.interface.name;
    let server = place.run_in(|| Server::attach(name, &options))?;
    let server = server.with_context(|| format!("serving on {}", place.spec))?;
    let mut report = passive::report("sessions serve", &place, (None, duration));
    let engine = if server.is_native() { "xdp" } else { "xdp-generic" };
    let reason = server.reason().to_owned();
    report.environment.engine = Some(Choice { name: engine.to_owned(), reason, ..Choice::default() });
    let following = ends.wait(session, &mut report)?;

    session.serves();
    let (listen, by) = (options.listen, server.reason());
    session.say(Code::Begun, format!("serving {listen} on {} by {by}; Ctrl-C ends and reports", place.spec));
    session.warn(&report.warnings);
    let title = Title {
        engine: Some(engine.to_owned()),
        tx: Some(place.spec.clone()),
        rx: Some(place.spec.clone()),
        ..passive::title("sessions serve")
    };
    let one = std::slice::from_ref(&place);
    let mut panel = passive::panel(session, title, &report, one, Names::unknown(0))?;
    let watched = session.watch(&mut panel, duration, |_| look(&server));
    session.board.end();
    let detached = !server.is_attached();
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let done = server.finish();
    let span = watched.samples.intervals().last().map_or(0, |[_, (end_ns, _)]| end_ns);
    fill(&mut report, &done, (listen, engine), span);
    let intervals = watched.samples.intervals();
    report.intervals =
        intervals.map(|ends| outcome::interval(ends.map(|(at, now)| (at, moved(&now))))).collect();
    if detached {
        report.result.verdict.fall_short(Code::InterfaceGone, place.why_ended("the server"));
    } else {
        outcome::against(&mut report, &place, (done.tx_frames, done.tx_bytes), &mut leaving);
    }
    watched.judge(&mut report);
    Ok(report)
}

/// Segments of an answer whose sums are known to the kernel's program.
const SEGMENTS: usize = 128;

pub(super) fn options(args: &SessionsServer, place: &Place) -> Result<ServerOptions> {
    let index = place.interface.index;
    let owners = place.run_in(port::local::owners)??;
    let tag = args.tag();
    if tag.is_some() {
        keeps_tags(place)?;
    }
    let listen = match args.listen.as_deref() {
        Some(listen) => {
            SocketAddr::new(listen.address.to_canonical(), listen.port.unwrap_or(port_of(args.is_udp())))
        }
        None => match usual(&owners, index) {
            Some(address) => SocketAddr::new(address, port_of(args.is_udp())),
            None => bail!("{} has no address: say which one to serve with `.listen`", place.spec),
        },
    };
    // What the interface has outside a VLAN the host does not answer for in it.
    let has =
        |(owner, address): &(u32, IpAddr)| *address == listen.ip() && (tag.is_none() || *owner != index);
    let answers_for_address = !owners.iter().any(has);
    if !answers_for_address {
        // Else its clients would be reset, and their requests answered from here.
        let socket = match listen {
            // An address of one link says which.
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
                std::net::SocketAddrV6::new(*v6.ip(), v6.port(), 0, index).into()
            }
            other => other,
        };
        let udp = args.is_udp();
        let free = place.run_in(|| match udp {
            true => std::net::UdpSocket::bind(socket).map(drop),
            false => std::net::TcpListener::bind(socket).map(drop),
        })?;
        free.with_context(|| {
            format!("`.listen` {listen}: a program of this host listens there; name another port")
        })?;
    }
    // The link is asked without a tag.
    if answers_for_address && tag.is_none() && !args.yes_disrupt.contains(&place.spec) {
        nobodys(place, listen.ip())?;
    }
    let requests = args.requests.unwrap_or(1);
    let mss = payload(place, listen.ip());
    // Of UDP an answer is cut to the length of its request, unless it is said how long it is to be.
    let usual = if args.is_udp() { u32::from(mss) } else { BODY };
    let size = args.response_size.unwrap_or(usual) as usize;
    let longer = longer(args, listen.ip())?;
    let answer = if args.is_udp() { datagram(size, listen.is_ipv6()) } else { answer(size, requests == 1) };
    if args.is_udp() && answer.len() > usize::from(mss) {
        bail!(
            "`.response_size`: an answer of {} bytes does not fit in one datagram of {mss} bytes here",
            answer.len()
        );
    }
    if answer.len() as u64 * u64::from(requests) > MOST_OF_A_CONNECTION {
        bail!(
            "`.requests` {requests} with answers of {} bytes: a connection may take 1 GB; give a smaller number or a smaller `.response_size`",
            answer.len()
        );
    }
    if answer.len().div_ceil(usize::from(mss)) > SEGMENTS {
        bail!(
            "`.response_size`: an answer of {} bytes has more than {SEGMENTS} segments of {mss} bytes here; give a smaller one",
            answer.len()
        );
    }
    let seeds = [shared::draw_seed(), shared::draw_seed()];
    Ok(ServerOptions {
        listen,
        own: place.interface.mac.with_context(|| format!("{} has no Ethernet address", place.spec))?,
        answers_for_address,
        tag,
        udp: args.is_udp(),
        answer,
        mss,
        requests,
        key: [seeds[0] as u32, (seeds[0] >> 32) as u32, seeds[1] as u32, (seeds[1] >> 32) as u32],
        relays: args.relay,
        longer,
        generic: args.generic,
    })
}

/// Who may be answered with more bytes than were sent: of those whose addresses are public whoever forges one directs the answers to it.
fn longer(args: &SessionsServer, listen: IpAddr) -> Result<Longer> {
    Ok(match args.response_size {
        None => Longer::No,
        Some(_) if args.public_clients => Longer::All,
        Some(_) if args.is_udp() && !is_private(listen) => bail!(
            "`.response_size`: {listen} is a public address, and whoever forges a client's address would have longer answers sent there than were              asked for: leave it out, so that an answer is as long as its request, or say `.public_clients`"
        ),
        Some(_) => Longer::Private,
    })
}

/// Its sequence numbers tell how far it is, and are known by that to be of this server: that is worth something only if few are right.
const MOST_OF_A_CONNECTION: u64 = 1_000_000_000;

/// The address of an interface that is served unless another is named: the first of IPv4, else the first of IPv6 that is not of the link
/// alone.
fn usual(owners: &[(u32, IpAddr)], index: u32) -> Option<IpAddr> {
    let own = || owners.iter().filter(|(owner, _)| *owner == index).map(|(_, address)| *address);
    let beyond = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if !v6.is_unicast_link_local());
    own().find(IpAddr::is_ipv4).or_else(|| own().find(beyond))
}

/// Refuses an address that another host of the link has: ARP or neighbour discovery would be answered for it from here, and what is that host's would come here.
fn nobodys(place: &Place, address: IpAddr) -> Result<()> {
    let name = &place.interface.name;
    let holder = place.run_in(|| port::resolve::holder(name, address))?;
    // Who cannot ask is told so where it matters: the server needs the same rights.
    if let Ok(Some(mac)) = holder {
        bail!(
            "`.listen` {address} is the address of another host on {} ({}): its connections would come here; give an address that is \
             nobody's, or say `.yes_disrupt` {}",
            place.spec,
            wire::Mac(mac),
            place.spec
        );
    }
    Ok(())
}

/// What came, and what left.
fn moved(counts: &Served) -> [Count; 2] {
    [
        Count { frames: counts.rx_frames, bytes: counts.rx_bytes },
        Count { frames: counts.tx_frames, bytes: counts.tx_bytes },
    ]
}

/// How it stands.
fn look(server: &Server) -> Looked<'static, Served> {
    let now = server.snapshot();
    let [rx, tx] = moved(&now).map(Some);
    let snapshot = Snapshot { rx, tx, ..Snapshot::default() };
    Looked::of(now, !server.is_attached(), snapshot)
}

fn fill(report: &mut Report, done: &Served, (listen, engine): (SocketAddr, &str), span: u64) {
    report.result.rx =
        Some(Rx { totals: Totals::over(done.rx_frames, done.rx_bytes, span), ..Rx::default() });
    report.result.tx = Some(Tx {
        totals: Totals::over(done.tx_frames, done.tx_bytes, span),
        engine: engine.to_owned(),
        ..Tx::default()
    });
    report.result.sessions_served = Some(served(listen, done));
    if done.no_room > 0 {
        let said = format!(
            "{} not sent: the frames that asked for them had no room, and the driver gives none; a smaller `.response_size` may fit",
            report::units::counted(done.no_room, "segment")
        );
        report.result.verdict.fall_short(Code::SessionsUnsent, said);
    }
}

/// What it did, in the report.
pub(super) fn served(listen: SocketAddr, done: &Served) -> SessionsServed {
    SessionsServed {
        listen: listen.to_string(),
        syns: done.syns,
        requests: done.requests,
        finished: done.finished,
        answer_segments: done.segments,
        resets: done.resets,
        bad_cookies: done.bad_cookies,
        unexpected: done.unexpected,
        malformed: done.malformed,
        without_room: done.no_room,
        arp_replies: done.arp_replies,
        neighbour_advertisements: done.advertisements,
        request_bytes: done.request_bytes,
        answer_bytes: done.answer_bytes,
        relayed: done.relayed,
    }
}
