//! Case "plugins": a compiled plugin beside the same expression on every engine, frames that a module makes one by one beside
//! both, and the way that XDPerf makes frames in the kernel beside ours.

use crate::bench::{Bench, Far, Tool};
use crate::document::{Section, Table};
use crate::floors;
use crate::stats::Sample;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

/// Where modules of the world `frames` stand that are measured, too: `scripts/bench-plugin` builds them.
const MODULES: &str = "NETDYNO_BENCH_MODULES";

const TICK: Duration = Duration::from_millis(1);

/// The same frames: by the expression language, and by the plugin's options.
const EXPRESSION: &str = "ether(src=02:00:00:00:00:01,dst=02:00:00:00:00:99)/ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=1024..65535,dport=9)";
const PLUGIN: &str = "--plugin simpleudp --set src_mac=02:00:00:00:00:01 --set dst_mac=02:00:00:00:00:99 \
    --set src_ip=10.0.0.0/16 --set dst_ip=198.18.0.2 --set src_port=1024..65535 --set dst_port=9";

struct Contender {
    name: String,
    engine: &'static str,
    /// None: XDPerf's way.
    words: Option<String>,
    rate: Sample,
}

fn length(bench: &Bench) -> Duration {
    Duration::from_millis(if bench.quick { 400 } else { 1000 })
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut all = Vec::new();
    let modules = std::env::var(MODULES).unwrap_or_default();
    let modules: Vec<&str> = modules.split_whitespace().collect();
    for engine in ["xdp", "afxdp", "packet", "null"] {
        let mut add = |name: String, words: Option<String>| {
            all.push(Contender { name, engine, words, rate: Sample::default() });
        };
        add("expression".to_owned(), Some(EXPRESSION.to_owned() + " --size 64"));
        add("plugin, compiled".to_owned(), Some(PLUGIN.to_owned() + " --size 64"));
        if engine == "xdp" {
            add("XDPerf's way: base packet and three differences stored by helpers".to_owned(), None);
            continue;
        }
        for module in &modules {
            let name = Path::new(module).file_stem().and_then(|stem| stem.to_str()).unwrap_or(module);
            add(format!("module {name}, frame by frame"), Some(format!("--plugin {module}")));
        }
    }
    for round in 0..bench.runs {
        eprintln!("plugins: round {} of {}", round + 1, bench.runs);
        for contender in &mut all {
            bench.check()?;
            let rate = once(bench, contender)
                .with_context(|| format!("{}, {}", contender.name, contender.engine))?;
            contender.rate.push(rate);
        }
    }
    Ok(told(bench, &all))
}

/// Frames a second: that arrived, of those that go nowhere that were made.
fn once(bench: &Bench, contender: &Contender) -> Result<f64> {
    let ms = length(bench).as_millis();
    let words = |on: &str, words: &str| -> Vec<String> {
        let line = format!("send {words} {on} --topspeed --duration {ms}ms --engine {}", contender.engine);
        line.split_whitespace().map(str::to_owned).collect()
    };
    if let (Some(own), "null") = (&contender.words, contender.engine) {
        let ran = bench.run_plainly(Tool::Netdyno, &words("", own))?;
        let made = ran.report.and_then(|report| report.result.tx).map(|tx| tx.totals.frames_per_second);
        return made.context("a run without a result");
    }
    let _receiver = bench.receiver(Far::Drop)?;
    let mut counter = bench.far_counter()?;
    match &contender.words {
        Some(own) => {
            let mut failed = None;
            bench.run(Tool::Netdyno, &words("--on tx0 --no-sign", own), TICK, |_, _| {
                failed = counter.look().err();
                failed.is_none()
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        None => floors::stored_live_frames(bench, length(bench), TICK, || counter.look().map(|_| ()))?,
    }
    counter.rate().context("nothing arrived")
}

fn told(bench: &Bench, all: &[Contender]) -> Section {
    let mut section = Section::new(
        "Plugins",
        "The same UDP frames of 64 bytes, whose source address and port change, from one core over a veth, dropped where they arrive; \
         `null` makes them and sends them nowhere. A plugin of the world `compile` is compiled to the program that the expression \
         is; a module of the world `frames` makes each frame itself. XDPerf's way is a program that does what XDPerf's does for each \
         frame (its base packet and up to three differences stored by bpf_xdp_store_bytes, the next of 65,536 flows by a counter), \
         over the same live frames as ours.",
    );
    let mfps = |v: f64| format!("{:.2}", v / 1e6);
    let times = |v: f64| format!("{v:.3}x");
    let mut table = Table::new(
        format!("Million frames/s, median of {} runs [lowest–highest]", bench.runs),
        &["engine", "frames by", "rate", "over the expression"],
    );
    for contender in all {
        let base = all.iter().find(|other| other.engine == contender.engine && other.name == "expression");
        let ratio = base.map_or(Sample::default(), |base| contender.rate.over(&base.rate));
        let (name, engine) = (&contender.name, contender.engine);
        table.rows.push(vec![
            engine.to_owned(),
            name.clone(),
            contender.rate.cell(mfps),
            if name == "expression" { String::new() } else { ratio.short(times) },
        ]);
        if name == "plugin, compiled" {
            section.at_least(
                format!("{engine}: a compiled plugin over the expression"),
                0.98,
                ratio.median(),
                times,
            );
        } else if name.starts_with("module") && engine != "null" {
            section.at_least(format!("{engine}: {name}, over the expression"), 0.9, ratio.median(), times);
        } else if name.starts_with("module") {
            let wanted = if name.contains("_go") { 2e6 } else { 5e6 };
            section.at_least(format!("{name}: million frames/s"), wanted, contender.rate.median(), mfps);
        } else if contender.words.is_none()
            && let Some(base) = base
        {
            let ours = base.rate.over(&contender.rate).median();
            section.at_least("ours over XDPerf's way".to_owned(), 1.4, ours, times);
        }
    }
    section.tables.push(table);
    section
}
