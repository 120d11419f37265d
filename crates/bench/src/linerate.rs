//! Case "line-rate": every engine at top speed beside its floor and its peers, over shapes of traffic, flow counts and
//! a large capture.

use crate::bench::{Bench, Far, Tool};
use crate::document::{Section, Table};
use crate::fixtures::{Fixtures, argument};
use crate::floors;
use crate::plot;
use crate::stats::Sample;
use crate::sys;
use crate::topspeed::plainly;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::time::{Duration, Instant};

enum Sender {
    /// Live frames of so many bytes that nobody touches.
    EmptyLoop(u32),
    /// AF_XDP descriptors submitted again and again.
    BareAfxdp,
    /// sendmmsg of one frame that nobody touches.
    BareSendmmsg,
    Tool(Tool, Vec<String>),
}

struct Contender {
    name: &'static str,
    far: Far,
    sender: Sender,
    /// What this one is put in relation to, by name and receiver; and the least ratio wanted.
    floor: Option<(&'static str, Far)>,
    wanted: Option<f64>,
    peers: Vec<(&'static str, Far)>,
    wanted_of_peer: Option<f64>,
    rate: Sample,
    /// Bits a second of frames without FCS, that arrived.
    bits: Sample,
    lost: u64,
    /// Why this one cannot be measured here.
    broken: Option<String>,
}

const LOOP: &str = "floor: empty live-frame loop";
const LONG_LOOP: &str = "floor: empty live-frame loop, 1518 B";
const RING: &str = "floor: bare AF_XDP loop";
const CALL: &str = "floor: bare sendmmsg loop";
const PLAIN: &str = "xdp, UDP, address, port and both checksums change";
const TCPREPLAY: &str = "tcpreplay -K -t";
const TCPREPLAY_UNIQUE: &str = "tcpreplay -K -t --unique-ip, 40,686 flows";

fn contender(name: &'static str, far: Far, sender: Sender) -> Contender {
    Contender {
        name,
        far,
        sender,
        floor: None,
        wanted: None,
        peers: Vec::new(),
        wanted_of_peer: None,
        rate: Sample::default(),
        bits: Sample::default(),
        lost: 0,
        broken: None,
    }
}

fn tool(name: &'static str, far: Far, tool: Tool, text: &str) -> Contender {
    contender(name, far, Sender::Tool(tool, text.split_whitespace().map(str::to_owned).collect()))
}

impl Contender {
    fn over(self, floor: &'static str, wanted: Option<f64>) -> Contender {
        let far = if self.far == Far::Own { Far::Count } else { self.far };
        Contender { floor: Some((floor, far)), wanted, ..self }
    }

    /// Over a floor whose receiver reads the clock as this one's does.
    fn over_timed(self, floor: &'static str) -> Contender {
        Contender { floor: Some((floor, Far::Time)), ..self }
    }

    fn beside(self, peers: &[(&'static str, Far)], wanted: Option<f64>) -> Contender {
        Contender { peers: peers.to_vec(), wanted_of_peer: wanted, ..self }
    }

    fn is_ours(&self) -> bool {
        matches!(self.sender, Sender::Tool(Tool::Netdyno, _))
    }

    /// Can be missing.
    fn is_peer(&self) -> bool {
        matches!(self.sender, Sender::Tool(..)) && !self.is_ours()
    }

    fn is(&self, (name, far): (&str, Far)) -> bool {
        self.name == name && self.far == far
    }
}

/// Frames for another host, so that the far stack drops them at once where it gets them.
const ETHER: &str = "ether(src=02:00:00:00:00:01,dst=02:00:00:00:00:99)";
const VARYING: &str = "ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=1024..65535,dport=9)";

/// Eight streams frame by frame in turn, each with its own addresses and ports.
fn eight_streams() -> String {
    let mut text = "name: eight streams\nrate: top\ndefaults:\n  size: 64\nstreams:\n".to_owned();
    for n in 0..8 {
        text += &format!(
            "  - {{name: s{n}, frame: \"{ETHER}/ipv4(src=10.{n}.0.0/16,dst=198.18.{n}.2)/udp(sport=1024..65535,dport=500{n})\"}}\n"
        );
    }
    text
}

/// trafgen's frame: the same fields change. A program of it runs on the core it is told to.
fn trafgen(core: usize) -> String {
    format!(
        "cpu({core}): {{\n 0x02, 0, 0, 0, 0, 0x99, 0x02, 0, 0, 0, 0, 0x01, c16(0x0800),\n \
         0x45, 0, c16(46), c16(0), c16(0), 64, 17, csumip(14, 33), 10, 0, dinc(0, 255), dinc(0, 255), 198, 18, 0, 2,\n \
         drnd(2), c16(9), c16(26), csumudp(14, 34), fill(0, 18)\n}}\n"
    )
}

/// How long each sends.
fn length(bench: &Bench) -> Duration {
    Duration::from_millis(if bench.quick { 400 } else { 1000 })
}

/// Files that contenders read.
struct Inputs {
    eight: String,
    capture: String,
    small: String,
    trafgen: String,
}

fn contenders(bench: &Bench, inputs: &Inputs) -> Vec<Contender> {
    let Inputs { eight, capture, small, trafgen } = inputs;
    let far = bench.far_interface();
    let ms = length(bench).as_millis();
    let run = format!("--on tx0 --topspeed --duration {ms}ms");
    let xdp = |name, what: &str| {
        let text = format!("send {what} {run} --engine xdp --measure {far} --no-sign");
        tool(name, Far::Own, Tool::Netdyno, &text)
    };
    let plain = format!("{ETHER}/{VARYING} --size 64");
    let flows = |last: &str| {
        format!("{ETHER}/ipv4(src=10.0.0.0..{last},dst=198.18.0.2)/udp(sport=5001,dport=9) --size 64")
    };
    let gtpu = format!(
        "{ETHER}/ipv4(src=198.18.0.1,dst=198.19.0.1)/udp(sport=2152)/gtpu(teid=1..1000)\
         /ipv4(src=10.45.0.0/16,dst=203.0.113.1)/udp(sport=1024..65535,dport=9) --size 128"
    );
    let srv6 = format!(
        "{ETHER}/ipv6(src=2001:db8:1::1)/srv6(segments=[2001:db8::3,2001:db8::2,2001:db8::1],left=2)\
         /ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=1024..65535,dport=9) --size 192"
    );
    let sends = |name, far, engine: &str| {
        tool(name, far, Tool::Netdyno, &format!("send {plain} {run} --engine {engine}"))
    };
    let unique = format!("replay {capture} {run} --preload --unique-ip --engine");
    let part = if bench.quick { 3 } else { 1 };
    let passes = 15 / part;
    let replays = |name, far, passes: u64, options: &str, file: &str| {
        tool(name, far, Tool::Tcpreplay, &format!("-i tx0 -t -K --loop {passes} {options} {file}"))
    };
    let generates = |far| {
        let text = format!("-o tx0 -i {trafgen} -P {} -n {}", bench.core + 1, 900_000 / part);
        tool("trafgen, same fields change", far, Tool::Trafgen, &text)
    };
    let both = |name| [(name, Far::Count), (name, Far::Stack)];
    let mut list = vec![
        contender(LOOP, Far::Drop, Sender::EmptyLoop(60)),
        contender(LOOP, Far::Count, Sender::EmptyLoop(60)),
        contender(LOOP, Far::Time, Sender::EmptyLoop(60)),
        contender(LONG_LOOP, Far::Drop, Sender::EmptyLoop(1514)),
        contender(LONG_LOOP, Far::Count, Sender::EmptyLoop(1514)),
        xdp(PLAIN, &plain).over(LOOP, Some(0.9)),
        sends("xdp, same, the far end not ours: every byte written", Far::Drop, "xdp").over(LOOP, Some(0.9)),
        sends("xdp, same, signed with time stamp", Far::Count, "xdp --sign").over(LOOP, Some(0.55)),
        tool(
            "xdp, same, signed, and latency measured",
            Far::Own,
            Tool::Netdyno,
            &format!("send {plain} {run} --engine xdp --measure {far} --sign"),
        )
        .over_timed(LOOP),
        xdp("xdp, eight streams frame by frame in turn", eight).over(LOOP, Some(0.7)),
        xdp("xdp, IMIX (354 B mean)", &format!("{ETHER}/{VARYING} --size imix")).over(LOOP, Some(0.8)),
        xdp("xdp, GTP-U, inner fields change (128 B)", &gtpu).over(LOOP, Some(0.7)),
        xdp("xdp, SRv6, inner fields change (192 B)", &srv6).over(LOOP, Some(0.7)),
        xdp("xdp, 1518 B", &format!("{ETHER}/{VARYING} --size 1518")).over(LONG_LOOP, None),
        xdp(FLOWS[0], &flows("10.0.3.231")).over(LOOP, None),
        xdp(FLOWS[1], &flows("10.1.134.159")).over(LOOP, None),
        xdp(FLOWS[2], &flows("10.152.150.127")).over(LOOP, None),
        tool(
            "xdp, capture of 40,686 flows, unique addresses",
            Far::Count,
            Tool::Netdyno,
            // Of captures every byte is written anyway.
            &format!("{unique} xdp"),
        )
        .over(LOOP, Some(0.6))
        .beside(&both(TCPREPLAY_UNIQUE), Some(8.0)),
    ];
    for far in [Far::Count, Far::Stack] {
        list.push(replays(TCPREPLAY_UNIQUE, far, 2, "--unique-ip", capture));
        list.push(replays(TCPREPLAY, far, passes, "", small));
        list.push(generates(far));
        list.push(contender(RING, far, Sender::BareAfxdp));
        list.push(
            sends("afxdp, address, port and both checksums change", far, "afxdp")
                .over(RING, Some(0.95))
                .beside(&[(TCPREPLAY, far)], Some(1.5)),
        );
        list.push(contender(CALL, far, Sender::BareSendmmsg));
        list.push(
            sends("packet, address, port and both checksums change", far, "packet")
                .over(CALL, None)
                .beside(&[(TCPREPLAY, far)], None),
        );
    }
    let count = 900_000_000;
    let text = format!("udp tx0 -m 02:00:00:00:00:99 -d 1000 -n {count}");
    list.push(
        tool("xdp-trafficgen udp, port changes", Far::Count, Tool::XdpTrafficgen, &text).over(LOOP, None),
    );
    list
}

const FLOWS: [&str; 3] = ["xdp, 1,000 flows", "xdp, 100,000 flows", "xdp, 10,000,000 flows"];

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Line rate",
        "Million frames a second arriving at the far end of a veth pair, whose whole work is done on the sending core. \
         Frames are of 64 B (60 in a buffer) unless said otherwise. `received by`: *drop*, an XDP program of two \
         instructions; *meter*, netdyno's meter, counting; *clock*, the same, the clock read for each frame; *stack*, \
         the host's own, which drops frames for another host. The rate is that of the far interface's counter, for \
         all alike. `of floor` is over the floor of the engine with the same receiver, `of empty loop` over live frames \
         that nobody touches and the two instructions drop. Ratios are medians of the ratios round by round; the \
         order changes from round to round. For x tcpreplay on captures, tcpreplay has the faster of its two \
         receivers.",
    );
    let files = Fixtures::new()?;
    let inputs = Inputs {
        eight: argument(&files.text("eight.yaml", &eight_streams())?),
        capture: argument(&large_capture(bench, &files)?),
        small: argument(&files.flows("udp64.pcap", 60, crate::fixtures::FLOWS)?),
        trafgen: argument(&files.text("udp.trafgen", &trafgen(bench.core))?),
    };
    let mut list = contenders(bench, &inputs);
    for contender in list.iter_mut().filter(|c| c.is_peer()) {
        if let Sender::Tool(tool, _) = contender.sender
            && !crate::machine::has(tool.name())
        {
            contender.broken = Some("not installed".to_owned());
        }
    }
    let count = list.len();
    for round in 0..bench.runs {
        for turn in 0..count {
            once(bench, &mut list[(turn + round * count / bench.runs) % count])?;
        }
    }
    tabulate(bench, &list, &mut section);
    Ok(section)
}

/// A synthesised capture with the totals of bigFlows.pcap, in the page cache.
fn large_capture(bench: &Bench, files: &Fixtures) -> Result<PathBuf> {
    let path = files.path("bigflows.pcap");
    let made = std::process::Command::new(&bench.netdyno)
        .args(["synth", "--write"])
        .arg(&path)
        .output()
        .context("netdyno synth")?;
    ensure!(made.status.success(), "netdyno synth: {}", String::from_utf8_lossy(&made.stderr));
    Ok(path)
}

fn once(bench: &Bench, contender: &mut Contender) -> Result<()> {
    const TICK: Duration = Duration::from_millis(1);
    bench.check()?;
    if contender.broken.is_some() {
        contender.rate.push(f64::NAN);
        return Ok(());
    }
    let _receiver = bench.receiver(contender.far)?;
    let mut counter = bench.far_counter()?;
    let length = length(bench);
    let start = Instant::now();
    let more = || start.elapsed() < length;
    let said = match &contender.sender {
        Sender::EmptyLoop(bytes) => {
            floors::live_frames(bench, &[bench.core], *bytes, length, TICK, || counter.look().map(|_| ()))?;
            None
        }
        Sender::BareAfxdp => {
            let target = bench.target()?;
            let send = |_, frame: &[u8]| floors::afxdp(&target, frame, more);
            Some(bench.send_barely(60, send, || counter.look().map(|_| ()))?)
        }
        Sender::BareSendmmsg => {
            let left = |_| if more() { 64 } else { 0 };
            let send = |index, frame: &[u8]| sys::send_static_frames(index, frame, left);
            Some(bench.send_barely(60, send, || counter.look().map(|_| ()))?)
        }
        Sender::Tool(tool, arguments) => {
            let mut failed = None;
            // xdp-trafficgen has no clock of its own.
            let endless = *tool == Tool::XdpTrafficgen;
            let ran = bench.run(*tool, arguments, TICK, |_, elapsed| {
                failed = counter.look().err();
                failed.is_none() && !(endless && elapsed > length)
            });
            if let Some(error) = failed {
                return Err(error);
            }
            match ran {
                Ok(ran) => ran.said,
                Err(error) if contender.is_peer() => {
                    bench.check()?;
                    contender.broken = Some(last_words(&error));
                    contender.rate.push(f64::NAN);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    };
    let rate = counter.rate();
    let (arrived, bytes) = counter.arrived_bytes()?;
    if let Some(said) = said {
        contender.lost += said.abs_diff(arrived);
    }
    match rate {
        Some(rate) => {
            contender.rate.push(rate);
            contender.bits.push(rate * bytes as f64 / arrived.max(1) as f64 * 8.0);
        }
        None if contender.is_peer() => {
            contender.broken = Some("nothing arrived".to_owned());
            contender.rate.push(f64::NAN);
        }
        None => contender.rate.push(f64::NAN),
    }
    Ok(())
}

/// What a tool complained of at last.
fn last_words(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("").to_owned();
    line.split("failed: ").last().unwrap_or("").to_owned()
}

fn received_by(far: Far) -> &'static str {
    match far {
        Far::Stack => "stack",
        Far::Pass => "pass",
        Far::Drop | Far::Bare => "drop",
        Far::Count | Far::Own => "meter",
        Far::Time | Far::Streams { .. } => "clock",
    }
}

fn tabulate(bench: &Bench, list: &[Contender], section: &mut Section) {
    let (mfps, times) = (|v: f64| format!("{:.2}", v / 1e6), |v: f64| format!("{v:.2}x"));
    let percent = |v: f64| format!("{:.0}%", v * 100.0);
    let find = |key| list.iter().find(|c| c.is(key) && c.broken.is_none());
    let empty = find((LOOP, Far::Drop));
    let over = |c: &Contender, other: Option<&Contender>| {
        other.map_or(Sample::default(), |other| c.rate.over(&other.rate))
    };
    let title = format!("Million frames/s, median of {} runs [lowest–highest]", bench.runs);
    let head =
        ["sender", "received by", "rate", "of floor", "of empty loop", "x tcpreplay", "Gbit/s", "miscounted"];
    let mut table = Table::new(title, &head);
    let mut bars = Vec::new();
    for contender in list {
        let timed = matches!(contender.floor, Some((_, Far::Time)));
        let by = if timed { "clock" } else { received_by(contender.far) };
        if let Some(why) = &contender.broken {
            let mut row = vec![contender.name.to_owned(), by.to_owned(), "does not run here".to_owned()];
            row.resize(head.len(), "–".to_owned());
            table.rows.push(row);
            section.notes.push(format!("{}: does not run here: {why}", contender.name));
            continue;
        }
        let floor = over(contender, contender.floor.and_then(find));
        // The peer's faster way.
        let peer = contender.peers.iter().filter_map(|&peer| find(peer));
        let peer = peer.max_by(|a, b| a.rate.median().total_cmp(&b.rate.median()));
        let beside = over(contender, peer);
        let live = contender.name.starts_with("xdp") || contender.name.contains("live-frame");
        table.rows.push(vec![
            contender.name.to_owned(),
            by.to_owned(),
            contender.rate.cell(mfps),
            floor.short(percent),
            over(contender, empty.filter(|_| live)).short(percent),
            beside.short(times),
            contender.bits.short(|v| format!("{:.2}", v / 1e9)),
            contender.lost.to_string(),
        ]);
        if let Some(wanted) = contender.wanted {
            let what = format!("{}, by {by}: of the floor", contender.name);
            section.at_least(what, wanted, floor.median(), percent);
        }
        if let (Some(wanted), Some(peer)) = (contender.wanted_of_peer, peer) {
            let what =
                format!("{}, by {by}: over {} by {}", contender.name, peer.name, received_by(peer.far));
            section.at_least(what, wanted, beside.median(), times);
        }
        if let Sender::Tool(tool, arguments) = &contender.sender {
            section.command(plainly(&bench.command_line(*tool, arguments)));
        }
        bars.push(plot::Bar {
            label: format!("{} · {by}", contender.name),
            value: contender.rate.median() / 1e6,
            low: contender.rate.min() / 1e6,
            high: contender.rate.max() / 1e6,
            colour: match contender.sender {
                Sender::Tool(Tool::Netdyno, _) => plot::OURS,
                Sender::Tool(..) => plot::THEIRS,
                _ => plot::GREY,
            },
        });
    }
    let by_name = |name| list.iter().find(|c| c.name == name);
    if let [Some(few), Some(middle), Some(many)] = FLOWS.map(by_name) {
        for (contender, flows) in [(middle, "100,000"), (many, "10,000,000")] {
            let ratio = contender.rate.over(&few.rate).median();
            section.at_least(format!("{flows} flows over 1,000"), 0.95, ratio, |v| format!("{v:.3}x"));
        }
    }
    section.tables.push(table);
    let title = "Every engine at top speed, one core, veth";
    section.plot = Some(("line-rate.svg", plot::bars(title, "million frames/s", &bars)));
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_peers_last_words_are_its_reason() {
        let error =
            anyhow::anyhow!("`x` failed: libbpf: failed to load object\nError probing: No such process\n");
        assert_eq!(super::last_words(&error), "Error probing: No such process");
        assert_eq!(super::last_words(&anyhow::anyhow!("`x` failed: cannot open tx0")), "cannot open tx0");
    }
}
