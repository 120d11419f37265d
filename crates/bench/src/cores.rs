//! Case "cores": two sending cores beside one, over a cable of two queues.

use crate::bench::{Bench, Far, Tool};
use crate::document::{Section, Table};
use crate::floors;
use crate::stats::Sample;
use crate::topspeed::plainly;
use anyhow::Result;
use std::time::Duration;

enum Sender {
    Floor(Vec<usize>),
    Netdyno(Vec<String>),
}

struct Contender {
    name: String,
    sender: Sender,
    rate: Sample,
    miscounted: u64,
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Cores",
        "Two sending cores beside one, over a veth pair of two queues: address, port and both checksums change in \
         frames of 64 B, counted by netdyno's meter. What the receiver does is work of the core that sends, so it \
         grows with the senders. The floor is live frames that nobody touches, from as many cores.",
    );
    let Some(other) = (0..bench.core_count).find(|&core| core != bench.core) else {
        section.notes.push("this machine has one core".to_owned());
        return Ok(section);
    };
    if bench.core_count == 2 {
        section.notes.push(
            "this machine has two cores: with both sending, the bench, netdyno's own watching and every other task \
             take their time from a sending core, so that the ratios are less than with cores to spare"
                .to_owned(),
        );
    }
    let bench = &bench.with_queues(2)?;
    let one = vec![bench.core];
    let two = vec![other, bench.core];
    let list = |cores: &[usize]| cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let ms = if bench.quick { 500 } else { 2000 };
    let far = bench.far_interface();
    let netdyno = |engine: &str, cores: &[usize]| {
        let text = format!(
            "send ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=1024..65535,dport=9) --size 64 --on tx0 --topspeed \
             --duration {ms}ms --engine {engine} --cores {} --measure {far} --no-sign",
            list(cores)
        );
        Sender::Netdyno(text.split_whitespace().map(str::to_owned).collect())
    };
    let contender = |name: &str, cores: &[usize], sender| Contender {
        name: format!("{name}, {} {}", cores.len(), if cores.len() == 1 { "core" } else { "cores" }),
        sender,
        rate: Sample::default(),
        miscounted: 0,
    };
    // Each followed by the same on two cores.
    let mut contenders: Vec<Contender> = Vec::new();
    for cores in [&one, &two] {
        contenders.push(contender("floor: empty live-frame loop", cores, Sender::Floor(cores.clone())));
    }
    for engine in ["xdp", "afxdp", "packet"] {
        for cores in [&one, &two] {
            contenders.push(contender(engine, cores, netdyno(engine, cores)));
        }
    }
    let count = contenders.len();
    for round in 0..bench.runs {
        for turn in 0..count {
            once(bench, &mut contenders[(turn + 2 * round) % count], Duration::from_millis(ms))?;
        }
    }
    let title = format!("Million frames/s, median of {} runs [lowest–highest]", bench.runs);
    let mut table = Table::new(title, &["sender", "rate", "x one core", "miscounted"]);
    for pair in contenders.chunks_exact(2) {
        let [single, double] = pair else { continue };
        let ratio = double.rate.over(&single.rate);
        for (contender, ratio) in [(single, &Sample::default()), (double, &ratio)] {
            table.rows.push(vec![
                contender.name.clone(),
                contender.rate.cell(|v| format!("{:.2}", v / 1e6)),
                ratio.cell(|v| format!("{v:.2}x")),
                contender.miscounted.to_string(),
            ]);
            if let Sender::Netdyno(arguments) = &contender.sender {
                section.command(plainly(&bench.command_line(Tool::Netdyno, arguments)));
            }
        }
        if double.name.starts_with("xdp") {
            let what = format!("{} over one", double.name);
            section.at_least(what, 1.8, ratio.median(), |v| format!("{v:.2}x"));
        }
    }
    section.tables.push(table);
    Ok(section)
}

fn once(bench: &Bench, contender: &mut Contender, length: Duration) -> Result<()> {
    // Looked at seldom: the looks themselves take time from a sending core.
    const TICK: Duration = Duration::from_millis(50);
    bench.check()?;
    let mut counter = bench.far_counter()?;
    match &contender.sender {
        Sender::Floor(cores) => {
            let _receiver = bench.receiver(Far::Count)?;
            floors::live_frames(bench, cores, 60, length, TICK, || counter.look().map(|_| ()))?;
        }
        Sender::Netdyno(arguments) => {
            let mut failed = None;
            let ran = bench.run(Tool::Netdyno, arguments, TICK, |_, _| {
                failed = counter.look().err();
                failed.is_none()
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            contender.miscounted += ran.said.unwrap_or(0).abs_diff(counter.arrived()?);
        }
    }
    contender.rate.push(counter.rate().unwrap_or(f64::NAN));
    Ok(())
}
