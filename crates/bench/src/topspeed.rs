//! Case "topspeed": replay as fast as it goes, through each engine and the peer, over a bare loop of the same system
//! call.

use crate::bench::{Bench, Tool};
use crate::document::{Section, Table};
use crate::fixtures::{Fixtures, argument};
use crate::plot;
use crate::stats::Sample;
use crate::sys;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

enum Sender {
    /// sendmmsg of one frame that nobody touches, of so many bytes.
    Floor(u32),
    Tool(Tool, Vec<String>),
}

struct Contender {
    name: String,
    sender: Sender,
    /// Frames in a run.
    frames: u64,
    /// The contenders that this one is put in relation to, by their place in the list.
    floor: Option<usize>,
    peer: Option<usize>,
    /// The least ratio to the peer.
    wanted: Option<f64>,
    rate: Sample,
    /// CPU time of the whole process for each frame, in nanoseconds.
    cpu: Sample,
    /// Runs in which the tool's count and the far end's differed.
    miscounted: Vec<String>,
}

impl Contender {
    fn new(name: &str, sender: Sender, frames: u64) -> Contender {
        Contender {
            name: name.to_owned(),
            sender,
            frames,
            floor: None,
            peer: None,
            wanted: None,
            rate: Sample::default(),
            cpu: Sample::default(),
            miscounted: Vec::new(),
        }
    }

    fn is_peer(&self) -> bool {
        matches!(self.sender, Sender::Tool(Tool::Tcpreplay, _))
    }
}

/// Frames of the capture, and passes over it.
struct Load<'a> {
    file: &'a Path,
    frames: u64,
    passes: u64,
}

impl Load<'_> {
    fn netdyno(&self, name: &str, options: &str) -> Contender {
        let text =
            format!("replay {} --on tx0 --topspeed --loop {} {options}", argument(self.file), self.passes);
        self.contender(name, Tool::Netdyno, &text)
    }

    fn tcpreplay(&self, name: &str, options: &str) -> Contender {
        let text = format!("-i tx0 -t --loop {} {options} {}", self.passes, argument(self.file));
        self.contender(name, Tool::Tcpreplay, &text)
    }

    fn contender(&self, name: &str, tool: Tool, text: &str) -> Contender {
        let arguments = text.split_whitespace().map(str::to_owned).collect();
        Contender::new(name, Sender::Tool(tool, arguments), self.frames * self.passes)
    }
}

/// Everything that runs in a round, in this order.
fn contenders(small: &Load<'_>, few: &Load<'_>, large: &Load<'_>) -> Vec<Contender> {
    let mut list: Vec<Contender> = Vec::new();
    let mut group =
        |floor: Option<(&str, u32, u64)>, peer: Contender, ours: Vec<(Contender, Option<f64>)>| {
            let floor = match floor {
                Some((name, bytes, frames)) => {
                    list.push(Contender::new(name, Sender::Floor(bytes), frames));
                    list.len() - 1
                }
                None => 0,
            };
            list.push(Contender { floor: Some(floor), ..peer });
            let peer = list.len() - 1;
            for (contender, wanted) in ours {
                list.push(Contender { floor: Some(floor), peer: Some(peer), wanted, ..contender });
            }
        };
    group(
        Some(("64 B floor: bare sendmmsg, one frame", 60, small.frames * small.passes)),
        small.tcpreplay("64 B tcpreplay -K -t", "-K"),
        vec![
            (small.netdyno("64 B netdyno --preload", "--preload --engine packet"), Some(1.1)),
            (small.netdyno("64 B netdyno --preload, packet-ring", "--preload --engine packet-ring"), None),
        ],
    );
    group(
        None,
        small.tcpreplay("64 B tcpreplay -K -t --unique-ip", "-K --unique-ip"),
        vec![(
            small.netdyno("64 B netdyno --preload --unique-ip", "--preload --unique-ip --engine packet"),
            Some(1.3),
        )],
    );
    group(
        None,
        small.tcpreplay("64 B tcpreplay -t", ""),
        vec![(small.netdyno("64 B netdyno --stream", "--stream --engine packet"), None)],
    );
    group(
        None,
        few.tcpreplay("64 B tcpreplay -t --unique-ip", "--unique-ip"),
        vec![(
            few.netdyno("64 B netdyno --stream --unique-ip", "--stream --unique-ip --engine packet"),
            Some(4.0),
        )],
    );
    group(
        Some(("1518 B floor: bare sendmmsg, one frame", 1514, large.frames * large.passes)),
        large.tcpreplay("1518 B tcpreplay -K -t", "-K"),
        vec![
            (large.netdyno("1518 B netdyno --preload", "--preload --engine packet"), None),
            (large.netdyno("1518 B netdyno --preload, packet-ring", "--preload --engine packet-ring"), None),
        ],
    );
    list
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Top speed",
        "Million frames a second arriving at the far end of a veth pair, whose plain network stack drops them (they \
         are for another host); veth does all of this on the sending core. The rate is that of the far interface's \
         own counter, looked at every millisecond from the other core. `x peer` and `of floor` are medians of the \
         ratios run by run, since all contenders take turns in each round. `CPU` is the process's whole CPU time over \
         its frames, start and loading included. Sizes count the FCS: 64 B is 60 bytes in a buffer.",
    );
    let files = Fixtures::new()?;
    let flows = crate::fixtures::FLOWS;
    let (udp64, udp1514) =
        (files.flows("udp64.pcap", 60, flows)?, files.flows("udp1514.pcap", 1514, 10_000)?);
    let shorter = if bench.quick { 3 } else { 1 };
    let small = Load { file: &udp64, frames: flows, passes: 30 / shorter };
    let few = Load { file: &udp64, frames: flows, passes: 15 / shorter };
    let large = Load { file: &udp1514, frames: 10_000, passes: 80 / shorter };
    let mut list = contenders(&small, &few, &large);
    for _ in 0..bench.runs {
        for contender in list.iter_mut().filter(|c| bench.peer || !c.is_peer()) {
            once(bench, contender)?;
        }
    }
    let mfps = |v: f64| format!("{:.2}", v / 1e6);
    let times = |v: f64| format!("{v:.2}x");
    let percent = |v: f64| format!("{:.0}%", v * 100.0);
    let title = format!("Million frames/s, median of {} runs [lowest–highest]", bench.runs);
    let mut table =
        Table::new(title, &["sender", "rate", "x peer", "of floor", "CPU ns/frame", "all arrived"]);
    let mut bars = Vec::new();
    for contender in list.iter().filter(|c| bench.peer || !c.is_peer()) {
        let of = |other: Option<usize>| {
            other.and_then(|i| list.get(i)).map_or(Sample::default(), |o| contender.rate.over(&o.rate))
        };
        let (peer, floor) = (of(contender.peer.filter(|_| bench.peer)), of(contender.floor));
        let arrived = if contender.miscounted.is_empty() { "yes" } else { "NO" };
        table.rows.push(vec![
            contender.name.clone(),
            contender.rate.cell(mfps),
            peer.short(times),
            floor.short(percent),
            contender.cpu.short(|v| format!("{v:.0}")),
            arrived.to_owned(),
        ]);
        if let Some(wanted) = contender.wanted.filter(|_| !peer.is_empty()) {
            let headroom = 1.0 / of_peer_floor(&list, contender).median();
            if headroom < wanted {
                section.notes.push(format!(
                    "{}: {wanted} times the peer cannot be reached through a packet socket here, since the floor is \
                     only {headroom:.2} times the peer",
                    contender.name
                ));
            }
            section.at_least(format!("{} over the peer", contender.name), wanted, peer.median(), times);
        }
        section.notes.extend(contender.miscounted.iter().map(|m| format!("{}: {m}", contender.name)));
        if let Sender::Tool(tool, arguments) = &contender.sender {
            section.command(plainly(&bench.command_line(*tool, arguments)));
        }
        bars.push(plot::Bar {
            label: contender.name.clone(),
            value: contender.rate.median() / 1e6,
            low: contender.rate.min() / 1e6,
            high: contender.rate.max() / 1e6,
            colour: match contender.sender {
                Sender::Floor(_) => plot::GREY,
                Sender::Tool(Tool::Netdyno, _) => plot::OURS,
                Sender::Tool(..) => plot::THEIRS,
            },
        });
    }
    section.tables.push(table);
    section.plot =
        Some(("topspeed.svg", plot::bars("Replay at top speed, one core, veth", "million frames/s", &bars)));
    Ok(section)
}

/// What the contender's peer reaches of the floor.
fn of_peer_floor(list: &[Contender], contender: &Contender) -> Sample {
    let at = |i: Option<usize>| i.and_then(|i| list.get(i));
    match (at(contender.peer), at(contender.floor)) {
        (Some(peer), Some(floor)) => peer.rate.over(&floor.rate),
        _ => Sample::default(),
    }
}

/// A command line for people: without the folders of this machine.
pub fn plainly(line: &[String]) -> String {
    let short = |word: &String| match word.rsplit_once('/') {
        Some((_, name)) if word.starts_with('/') => name.to_owned(),
        // As it is called within `netdyno lab`.
        Some(_) if word.contains("@/proc/") => "rx0@receiver".to_owned(),
        _ if word.contains('(') => format!("'{word}'"),
        _ => word.clone(),
    };
    line.iter().map(short).collect::<Vec<_>>().join(" ")
}

fn once(bench: &Bench, contender: &mut Contender) -> Result<()> {
    bench.check()?;
    let mut counter = bench.far_counter()?;
    let tick = Duration::from_millis(1);
    let (said, cpu) = match &contender.sender {
        Sender::Floor(bytes) => {
            let count = contender.frames;
            let send = |index, frame: &[u8]| sys::send_static_frames(index, frame, |sent| count - sent);
            let sent = bench.send_barely(*bytes, send, || counter.look().map(|_| ()))?;
            (Some(sent), None)
        }
        Sender::Tool(tool, arguments) => {
            let mut failed = None;
            let ran = bench.run(*tool, arguments, tick, |_, _| {
                failed = counter.look().err();
                failed.is_none()
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            (ran.said, Some(ran.cpu()))
        }
    };
    // The rate is that of the looks during the run; the count is taken once more at its end.
    let rate = counter.rate();
    let arrived = counter.look()?;
    if said != Some(arrived) || arrived != contender.frames {
        let said = said.map_or("nothing".to_owned(), |n| n.to_string());
        contender.miscounted.push(format!("asked {}, said {said}, arrived {arrived}", contender.frames));
    }
    contender.rate.push(rate.unwrap_or(f64::NAN));
    if let Some(cpu) = cpu {
        contender.cpu.push(cpu.as_nanos() as f64 / arrived.max(1) as f64);
    }
    Ok(())
}
