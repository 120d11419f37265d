//! `netdyno live`: plays the client's side of captured TCP connections against a server.

use super::Run;
use super::held_up::HeldUp;
use super::{passive, shared};
use crate::carrier;
use crate::panel::Names;
use crate::place::Place;
use crate::session::Session;
use anyhow::{Context, Result, bail};
use capture::{FileFormat, FileWriter, Reader};
use engine::{Priority, clock};
use live::connection::Config;
use live::dialogue::collect::Conversation as Captured;
use live::packet::Ends;
use live::play::Broken;
use live::run::{Traffic, Wire};
use live::segment::Options;
use live::{Dialogue, Ended, LiveError, Outcome, Play, Settings, Which, collect, understand};
use report::conversations::{Difference, Exchange, Outcome as Verdict, RoundTrip};
use report::{Code, Conversation, Pacing, Report, Source, Warnings};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use snapshot::{Connections, Count, Snapshot, Title};
use spec::{Answers, Flow, Live, Port, Timing};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use wire::LinkType;

/// What we take at once, where the capture's client offered to take so much.
const MOST_WINDOW: u32 = 1 << 20;

/// Before the server is given up, of who names none.
const TIMEOUT: Duration = Duration::from_secs(10);
const QUIET_TIME: Duration = Duration::from_secs(1);
const RETRIES: u32 = 5;

impl Run for spec::Live {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Live, session: &Session) -> Result<Report> {
    let settings = Arc::new(settings(args)?);
    let place = Place::find(&args.on)?;
    place.guard(&session.consent.yes_disrupt)?;
    if !place.interface.ethernet {
        bail!("{} is not an Ethernet interface: netdyno sends Ethernet frames", place.spec);
    }
    if !place.interface.up {
        bail!("{} is down: bring it up with `ip link set {} up`", place.spec, place.interface.name);
    }
    let mut warnings = Warnings::default();
    let dialogues = dialogues(args, session, &mut warnings)?;
    let to = server(args, &dialogues)?;
    session.stop_in_order();
    // A command before this one may have taken the link down with its programs; this one's guard takes none down.
    let mut links = carrier::Ends::none();
    links.needed(&place, "live")?;
    let mut report = passive::report("live", &place, (None, None));
    report.resolved.source = Some(Source::Files { files: vec![args.capture.display().to_string()] });
    report.warnings = warnings;
    let following = links.wait(session, &mut report)?;
    let wire = wire(args, &place, to)?;
    let ends = ends(args, &place, &wire, &dialogues)?;
    let mut plays = plays(args, &dialogues, &ends.ends, &place, &settings);
    let mut record = match &args.write {
        Some(path) => Some(FileWriter::create(path, FileFormat::of_name(path), LinkType::ETHERNET)?),
        None => None,
    };
    session.say(Code::Begun, begun(plays.len(), &wire, &place));
    let title =
        Title { tx: Some(place.spec.clone()), rx: Some(wire.to.to_string()), ..passive::title("live") };
    let mut panel = passive::panel(session, title, &report, std::slice::from_ref(&place), Names::unknown(0))?;
    let mut held_up = HeldUp::of(priority(args));
    let mut look = |at_ns: u64, traffic: &Traffic, plays: &[(Option<u64>, Play)]| {
        held_up.look(clock::thread_waited(), (at_ns, clock::thread_cpu()));
        panel.show(snapshot(at_ns, traffic, plays), None);
    };
    session.meet()?;
    let started = clock::now();
    let outcomes =
        place.run_in(|| live::run::run(&wire, &mut plays, record.as_mut(), &session.stop, &mut look))??;
    session.board.end();
    drop(ends);
    report.result.pacing = Some(Pacing { priority: Some(held_up.had().to_string()), ..Pacing::default() });
    following.end(Some(carrier::Lasted::since(started)), &mut report);
    carrier::warn(&mut report);
    if let Some(record) = record {
        record.finish()?;
    }
    judge(&mut report, &outcomes, args.answers);
    report.result.conversations = outcomes.iter().map(conversation).collect();
    if session.is_stopped() && outcomes.iter().any(|outcome| outcome.broken == Some(Broken::Stopped)) {
        report.result.verdict.fall_short(Code::Stopped, "stopped before all was played");
    }
    Ok(report)
}

/// Before whom it goes: clients that wait as long as they did before ordinary tasks, as soon as these hold it up, unless it
/// turns out to need its CPU always. Who plays as fast as it goes does, and goes before nobody.
fn priority(args: &Live) -> Priority {
    match args.no_real_time || args.timing == Timing::Fast {
        true => Priority::Ordinary,
        false => Priority::AsNeeded,
    }
}

/// Where the server is.
fn server(args: &Live, dialogues: &[Arc<Dialogue>]) -> Result<SocketAddr> {
    let first = dialogues.first().context("a connection")?;
    let to = SocketAddr::new(args.to.address, args.to.port.unwrap_or(first.server.port()));
    if args.to.port.is_none() && dialogues.iter().any(|dialogue| dialogue.server.port() != to.port()) {
        bail!(
            "the connections go to several ports: say which one, `.to` {}:PORT, or choose with `.flow`",
            to.ip()
        );
    }
    Ok(to)
}

/// What is to be played, and when.
fn plays(
    args: &Live,
    dialogues: &[Arc<Dialogue>],
    ends: &[Ends],
    place: &Place,
    settings: &Arc<Settings>,
) -> Vec<(Option<u64>, Play)> {
    let start = dialogues.iter().map(|dialogue| dialogue.start_ns).min().unwrap_or(0);
    let play = |(dialogue, ends): (&Arc<Dialogue>, &Ends)| {
        let at = (args.timing == Timing::Captured).then(|| dialogue.start_ns - start);
        let config = config(args, dialogue, place);
        (at, Play::new(Arc::clone(dialogue), *ends, config, Arc::clone(settings)))
    };
    dialogues.iter().zip(ends).map(play).collect()
}

/// What is said when it begins.
fn begun(connections: usize, wire: &Wire, place: &Place) -> String {
    let what = report::units::counted(connections as u64, "connection");
    let own = if wire.borrowed { ", answering for it" } else { "" };
    format!(
        "playing {what} from {}{own} to {} on {}; Ctrl-C ends and reports",
        wire.from, wire.to, place.spec
    )
}

/// How it stands.
fn snapshot(at_ns: u64, traffic: &Traffic, plays: &[(Option<u64>, Play)]) -> Snapshot {
    let mut connections = Connections::default();
    for standing in plays.iter().map(|(_, play)| play.standing()) {
        match (standing.begun, standing.over) {
            (_, true) => connections.over += 1,
            (true, false) => connections.open += 1,
            (false, false) => connections.waiting += 1,
        }
        connections.broken += u64::from(standing.broken);
        connections.said += standing.said;
        connections.heard += standing.heard;
        connections.retransmitted += standing.retransmitted;
    }
    Snapshot {
        at_ns,
        tx: Some(Count { frames: traffic.sent_frames, bytes: traffic.sent_bytes }),
        rx: Some(Count { frames: traffic.received_frames, bytes: traffic.received_bytes }),
        connections: Some(connections),
        ..Snapshot::default()
    }
}

fn settings(args: &Live) -> Result<Settings> {
    let timeout = args.timeout.as_deref().copied().unwrap_or(TIMEOUT);
    let quiet_time = args.quiet_time.as_deref().copied().unwrap_or(QUIET_TIME);
    let mut ignore = Vec::new();
    for text in &args.ignore {
        let built = regex::bytes::RegexBuilder::new(text).unicode(false).multi_line(true).crlf(true).build();
        ignore.push(built.with_context(|| format!("`.ignore` {text}"))?);
    }
    if timeout < Duration::from_millis(1) || quiet_time < Duration::from_millis(1) {
        bail!("`.timeout` and `.quiet_time` need at least 1ms");
    }
    Ok(Settings {
        captured_timing: args.timing == Timing::Captured,
        timeout: nanos(timeout),
        quiet: nanos(quiet_time),
        ignore,
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

/// Reads the capture and understands what is to be played.
fn dialogues(args: &Live, session: &Session, warnings: &mut Warnings) -> Result<Vec<Arc<Dialogue>>> {
    let file = args.capture.display();
    let mut reader = Reader::open(&args.capture)?;
    if args.skip_corrupt {
        reader = reader.lenient();
    }
    let which = match (args.flow.as_deref().copied(), args.all) {
        (Some(Flow::Number(number)), _) => Which::Number(number),
        (Some(Flow::Between(client, server)), _) => Which::Between(client, server),
        (None, true) => Which::All,
        (None, false) => Which::First,
    };
    let collected = match collect(&mut reader, &which) {
        Err(error @ LiveError::Capture(_)) => return Err(error.into()),
        other => other.with_context(|| file.to_string())?,
    };
    if which == Which::First && collected.total > 1 {
        session.say(
            Code::PartOfCapture,
            format!(
                "{file} has {} TCP connections; the first is played. `.flow` N chooses another one, `.all` plays all",
                collected.total
            ),
        );
    }
    if collected.fragments > 0 {
        warnings.add(
            Code::FragmentsLeftOut,
            format!(
                "{} of TCP packets were left out: they are not put together",
                report::units::counted(collected.fragments, "IP fragment")
            ),
        );
    }
    if let Some(reason) = &collected.cut_short {
        warnings.add(Code::CaptureDamaged, format!("{file} was read up to its damage only: {reason}"));
    }
    let mut dialogues = Vec::new();
    for conversation in collected.conversations {
        let conversation = directed(conversation, args.flow.as_deref().copied());
        let dialogue = understand(&conversation);
        if let Some(told) = incomplete(&dialogue) {
            if !args.until_gap {
                bail!("{file}: connection {}: {told}; `.until_gap` plays up to there", dialogue.number);
            }
            warnings.add(
                Code::ConversationIncomplete,
                format!("connection {}: {told}: it is played up to there", dialogue.number),
            );
        }
        if !dialogue.handshake {
            session.say(
                Code::PartOfCapture,
                format!(
                    "connection {} has no SYN in the capture: {} is taken for the client, and is played from the \
                     first words that are there",
                    dialogue.number, dialogue.client
                ),
            );
        }
        if dialogue.wild > 0 {
            warnings.add(
                Code::SegmentsLeftOut,
                format!(
                    "connection {}: {} fitted nowhere and were left out",
                    dialogue.number,
                    report::units::counted(dialogue.wild, "captured segment")
                ),
            );
        }
        dialogues.push(Arc::new(dialogue));
    }
    dialogues.sort_by_key(|dialogue| dialogue.start_ns);
    Ok(dialogues)
}

/// Who is the client has been said with --flow CLIENT-SERVER, where the capture does not show it.
fn directed(mut conversation: Captured, flow: Option<Flow>) -> Captured {
    if let Some(Flow::Between(client, _)) = flow
        && (conversation.ends.0 == client) != conversation.first_is_client()
        && !conversation.shows_client()
    {
        conversation.client_is(client);
    }
    conversation
}

/// What the capture lacks of the client's words.
fn incomplete(dialogue: &Dialogue) -> Option<String> {
    let gap = dialogue.gap?;
    let at = report::units::count(gap.at);
    let missing = gap.bytes.map_or_else(String::new, |bytes| report::units::counted(bytes, "byte"));
    Some(if gap.cut {
        format!(
            "{missing} of what the client said, after its first {at}, were cut off by the capture's snap length"
        )
    } else {
        format!("{missing} of what the client said, after its first {at}, are missing from the capture")
    })
}

/// Finds out from where and by whom the server is reached.
fn wire(args: &Live, place: &Place, to: SocketAddr) -> Result<Wire> {
    let name = place.interface.name.as_str();
    let no_source = |reason| LiveError::NoSource { interface: place.spec.clone(), address: to.ip(), reason };
    let from = match args.from {
        Some(from) if from.is_ipv4() != to.is_ipv4() => {
            bail!("`.from` {from} and `.to` {to}: one is IPv4, the other IPv6")
        }
        Some(from) if from.is_multicast() || from.is_unspecified() || from == to.ip() => {
            bail!("`.from` {from} cannot be the address of a client of {to}")
        }
        Some(from) => from,
        None => {
            let found = place.run_in(|| port::resolve::source(name, to.ip()))??;
            match found.filter(|found| found.is_ipv4() == to.is_ipv4()) {
                Some(from) => from,
                None => bail!(
                    "{} has no address to reach {} from: give one with `.from` (an unused one of the server's network \
                     will do), or set one with `ip addr add`",
                    place.spec,
                    to.ip()
                ),
            }
        }
    };
    let own_mac = place.interface.mac.ok_or_else(|| no_source("has no Ethernet address"))?;
    let borrowed = match place.run_in(|| reserve(SocketAddr::new(from, 0)))? {
        Ok(_) => false,
        Err(rustix::io::Errno::ADDRNOTAVAIL) => true,
        Err(error) => {
            return Err(error).with_context(|| format!("looking whether {from} is an address of this host"));
        }
    };
    let next_hop = match args.mac.as_deref().copied() {
        Some(mac) => mac.0,
        None => {
            let asked = place.run_in(|| port::resolve::neighbour(name, to.ip(), Some(from)))?;
            asked.map_err(|error| {
                anyhow::anyhow!("{}", error.to_string().replace("ether(dst=...)", "`.mac` MAC"))
            })?
        }
    };
    let wire = Wire {
        interface: place.spec.clone(),
        ifindex: place.interface.index,
        own_mac,
        next_hop,
        from,
        to,
        borrowed,
    };
    Ok(wire)
}

/// A port of ours, held so that nobody else on this host gets it.
fn reserve(address: SocketAddr) -> rustix::io::Result<(OwnedFd, u16)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let held = socket(family, SocketType::STREAM, None)?;
    bind(&held, &address)?;
    let port = SocketAddr::try_from(getsockname(&held)?).map_or(0, |address| address.port());
    Ok((held, port))
}

/// Ends of each connection, and what holds their ports.
struct Reserved {
    ends: Vec<Ends>,
    _held: Vec<OwnedFd>,
}

fn ends(args: &Live, place: &Place, wire: &Wire, dialogues: &[Arc<Dialogue>]) -> Result<Reserved> {
    let (mut ends, mut held, mut used) = (Vec::new(), Vec::new(), HashSet::new());
    for (nth, dialogue) in dialogues.iter().enumerate() {
        let wanted = match args.port.as_deref().copied().unwrap_or(Port::Random) {
            Port::Random => 0,
            Port::Captured => dialogue.client.port(),
            Port::Number(first) => match u16::try_from(nth).ok().and_then(|nth| first.checked_add(nth)) {
                Some(port) => port,
                None => bail!(
                    "`.port` {first}: there are not enough ports above it for {} connections",
                    dialogues.len()
                ),
            },
        };
        let port = if wire.borrowed {
            // Nobody else uses the address: any port is free.
            std::iter::once(wanted)
                .filter(|port| *port != 0)
                .chain(std::iter::repeat_with(|| 32_768 + (shared::draw_seed() % 28_000) as u16))
                .find(|port| wanted != 0 || !used.contains(port))
                .unwrap_or(wanted)
        } else {
            let address = SocketAddr::new(wire.from, wanted);
            match place.run_in(|| reserve(address))? {
                Ok((socket, port)) => {
                    held.push(socket);
                    port
                }
                Err(rustix::io::Errno::ADDRINUSE) if used.contains(&wanted) => wanted,
                Err(rustix::io::Errno::ADDRINUSE) => {
                    return Err(LiveError::PortInUse { port: wanted, from: wire.from }.into());
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("taking port {wanted} of {}", wire.from));
                }
            }
        };
        let from = SocketAddr::new(wire.from, port);
        if !used.insert(port) {
            return Err(LiveError::SameEnds { from, to: wire.to }.into());
        }
        ends.push(Ends { from, to: wire.to });
    }
    Ok(Reserved { ends, _held: held })
}

fn config(args: &Live, dialogue: &Dialogue, place: &Place) -> Config {
    let ipv6 = args.to.address.is_ipv6();
    let headers: u32 = if ipv6 { 60 } else { 40 };
    let most = place.interface.mtu.saturating_sub(headers).clamp(48, 65_000) as u16;
    let offered = dialogue.offer;
    let offer = Options {
        // No more than our interface takes.
        mss: offered.mss.map(|mss| mss.min(most)).or((!dialogue.handshake).then_some(most)),
        ..offered
    };
    let random = shared::draw_seed();
    Config {
        isn: random as u32,
        time_offset: (random >> 20) as u32,
        offer,
        most,
        window: dialogue.window.clamp(0xffff, MOST_WINDOW).min(0xffff << offered.window_scale.unwrap_or(0)),
        ipv6,
        retries: args.retries.unwrap_or(RETRIES),
    }
}

/// What it comes to: the verdict, and so the exit status.
fn judge(report: &mut Report, outcomes: &[Outcome], answers: Answers) {
    let verdict = &mut report.result.verdict;
    let connected = outcomes.iter().any(|outcome| outcome.connected);
    for outcome in outcomes {
        let number = outcome.dialogue.number;
        if let Some(broken) = outcome.broken {
            if broken == Broken::Stopped {
                continue;
            }
            let told = format!("connection {number}: {}", why(broken, outcome));
            match connected {
                true => verdict.fall_short(Code::ConversationFailed, told),
                false => verdict.fail(Code::ConversationFailed, told),
            }
        } else if !outcome.is_equal() && answers == Answers::Same {
            let which: Vec<String> = outcome
                .exchanges
                .iter()
                .enumerate()
                .filter(|(_, exchange)| exchange.difference.is_some())
                .map(|(nth, _)| (nth + 1).to_string())
                .collect();
            let named = which.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let more = if which.len() > 8 { ", ..." } else { "" };
            verdict.fall_short(
                Code::AnswerDiffers,
                format!("connection {number}: another answer than captured in exchange {named}{more}"),
            );
        }
        if outcome.left_open {
            report.warnings.add(
                Code::ServerLeftOpen,
                format!("connection {number}: the server did not close its side; the connection was reset"),
            );
        }
    }
}

fn why(broken: Broken, outcome: &Outcome) -> String {
    let exchange = outcome.exchanges.len().max(1);
    let (to, tries) = (outcome.ends.to, outcome.counts.timeouts);
    match broken {
        Broken::Refused => format!("{to} refused the connection"),
        Broken::NoAnswerToSyn => {
            format!("no answer from {to}, asked {} times", outcome.counts.segments_sent)
        }
        Broken::NotAcknowledged => {
            format!(
                "the server went silent in exchange {exchange}: {tries} retransmissions without an answer"
            )
        }
        Broken::WindowClosed => format!(
            "the server took no more in exchange {exchange}: its window stayed closed after {} of {} bytes",
            outcome.said,
            outcome.dialogue.said.len()
        ),
        Broken::NoAnswer => format!("the server did not answer in exchange {exchange}"),
        Broken::Reset => format!("the server reset the connection in exchange {exchange}"),
        Broken::ClosedEarly => {
            format!("the server closed the connection after exchange {exchange}, before all was said")
        }
        Broken::Stopped => "stopped".to_owned(),
    }
}

fn conversation(outcome: &Outcome) -> Conversation {
    let dialogue = &outcome.dialogue;
    let counts = &outcome.counts;
    let rtt_ns = match (counts.rtt_least_ns, counts.rtt_mean_ns, counts.rtt_most_ns) {
        (Some(min), Some(mean), Some(max)) => Some(RoundTrip { min, mean, max }),
        _ => None,
    };
    Conversation {
        flow: dialogue.number,
        captured_client: dialogue.client.to_string(),
        captured_server: dialogue.server.to_string(),
        from: outcome.ends.from.to_string(),
        to: outcome.ends.to.to_string(),
        outcome: match (outcome.connected, outcome.broken) {
            (false, _) => Verdict::Failed,
            (true, Some(_)) => Verdict::Broken,
            (true, None) if outcome.is_equal() => Verdict::Equal,
            (true, None) => Verdict::Differs,
        },
        reason: outcome.broken.map(|broken| why(broken, outcome)),
        client_bytes: dialogue.said.len() as u64,
        acknowledged_bytes: outcome.said,
        expected_bytes: dialogue.heard.len() as u64,
        received_bytes: outcome.exchanges.iter().map(|exchange| exchange.received).sum(),
        captured_end: ended(dialogue.ended).to_owned(),
        end: ended(outcome.ended).to_owned(),
        duration_ns: outcome.duration_ns,
        segments_sent: counts.segments_sent,
        segments_received: counts.segments_received,
        retransmitted_segments: counts.retransmissions,
        retransmission_timeouts: counts.timeouts,
        window_probes: counts.window_probes,
        out_of_order_segments: counts.out_of_order,
        duplicate_bytes: counts.duplicate_bytes,
        rtt_ns,
        exchanges: outcome
            .exchanges
            .iter()
            .map(|exchange| Exchange {
                asked_at_ns: exchange.asked_at,
                client_bytes: exchange.said,
                expected_bytes: exchange.expected,
                received_bytes: exchange.received,
                not_compared_bytes: exchange.not_compared,
                difference: exchange.difference.as_ref().map(|difference| Difference {
                    offset: difference.offset,
                    shown_from: difference.shown_from,
                    captured: wire::hex::encode(&difference.captured),
                    live: wire::hex::encode(&difference.live),
                }),
                first_byte_ns: exchange.first_byte_ns,
                captured_first_byte_ns: exchange.captured_first_byte_ns,
                last_byte_ns: exchange.last_byte_ns,
                captured_last_byte_ns: exchange.captured_last_byte_ns,
            })
            .collect(),
    }
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::ByClient => "client",
        Ended::ByServer => "server",
        Ended::ResetByClient => "reset by client",
        Ended::ResetByServer => "reset by server",
        Ended::Open => "open",
    }
}
