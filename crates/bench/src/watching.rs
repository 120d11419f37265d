//! Case "screen": what the live screen and Prometheus' metrics cost the sender.

use crate::bench::{Bench, Ran};
use crate::document::{Section, Table};
use crate::stats::Sample;
use crate::topspeed::plainly;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ENGINES: [&str; 3] = ["packet", "afxdp", "xdp"];
/// On the sender's loopback interface, which nobody else is on.
const METRICS: &str = "127.0.0.1:9100";

/// Who looks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onlooker {
    Nobody,
    /// A screen of 80 by 24 that is read as fast as it is drawn.
    Screen,
    /// Prometheus, once a second.
    Metrics,
}

impl Onlooker {
    const ALL: [Onlooker; 3] = [Onlooker::Nobody, Onlooker::Screen, Onlooker::Metrics];

    fn name(self) -> &'static str {
        match self {
            Onlooker::Nobody => "nobody (--quiet)",
            Onlooker::Screen => "--tui",
            Onlooker::Metrics => "--metrics, scraped every second",
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    /// Frames a second.
    rate: Sample,
    /// Of a core: the threads that do not send.
    cpu: Sample,
}

/// CPU time so far of a process' threads that do not send: the one that watches, and the onlookers' own.
fn beside_sending(pid: u32) -> Option<Duration> {
    let mut sum = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |what: &str| std::fs::read_to_string(task.path().join(what)).unwrap_or_default();
        let own = task.file_name().to_str() == Some(pid.to_string().as_str());
        if own || matches!(read("comm").trim(), "screen" | "metrics" | "metrics client") {
            sum += read("schedstat")
                .split_whitespace()
                .next()
                .and_then(|ns| ns.parse::<u64>().ok())
                .unwrap_or(0);
        }
    }
    Some(Duration::from_nanos(sum))
}

fn scrape(at: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_millis(200))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

fn line(engine: &str, bench: &Bench, seconds: u64, onlooker: Onlooker) -> Vec<String> {
    let mut words: Vec<String> =
        ["send", "ipv4/udp(sport=1024..65535)", "--size", "64", "--on", "tx0"].map(str::to_owned).into();
    words.extend(["--measure".to_owned(), bench.far_interface(), "--topspeed".to_owned()]);
    words.extend(["--duration".to_owned(), format!("{seconds}s"), "--engine".to_owned(), engine.to_owned()]);
    words.extend(match onlooker {
        Onlooker::Nobody => vec!["--quiet".to_owned()],
        Onlooker::Screen => vec!["--tui".to_owned()],
        Onlooker::Metrics => vec!["--quiet".to_owned(), "--metrics".to_owned(), METRICS.to_owned()],
    });
    words
}

fn watched(bench: &Bench, engine: &str, seconds: u64, onlooker: Onlooker, seen: &mut Seen) -> Result<Ran> {
    let at: SocketAddr = METRICS.parse()?;
    let namespace = &bench.lab.sender.namespace;
    // In the midst of sending: neither preparing nor working the result out is the onlookers'.
    let whole = Duration::from_secs(seconds);
    let (mut first, mut last, mut scraped) = (None, None, Duration::ZERO);
    let watch = |pid, elapsed: Duration| {
        if elapsed >= whole.mul_f64(0.4) && elapsed <= whole.mul_f64(0.95) {
            last = beside_sending(pid).map(|cpu| (cpu, elapsed)).or(last);
            first = first.or(last);
        }
        if onlooker == Onlooker::Metrics && elapsed >= scraped + Duration::from_secs(1) {
            scraped = elapsed;
            // Before the run has begun nobody answers.
            let _ = namespace.run_in(|| scrape(at));
        }
        true
    };
    let words = line(engine, bench, seconds, onlooker);
    let tick = Duration::from_millis(50);
    let ran = bench.run_on_a_terminal(onlooker == Onlooker::Screen, &words, tick, watch)?;
    let tx = ran.report.as_ref().and_then(|report| report.result.tx.as_ref()).context("nothing was sent")?;
    seen.rate.push(tx.totals.frames_per_second);
    let share = first.zip(last).map_or(f64::NAN, |((before, began), (after, ended))| {
        (after.saturating_sub(before)).as_secs_f64() / (ended - began).as_secs_f64()
    });
    seen.cpu.push(share);
    Ok(ran)
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Screen",
        "Frames of 64 B a second at top speed, measured at the far end by netdyno itself (`--measure`), while nobody looks \
         on, with the screen, or with metrics; they take turns round by round. The CPU time is that of all threads that do \
         not send, while frames are sent. Ratios are medians of the ratios round by round.",
    );
    let loopback = "ip link set lo up";
    bench.lab.sender.namespace.command("sh")?.args(["-c", loopback]).status().context(loopback)?;
    let seconds = if bench.quick { 2 } else { 3 };
    let title = format!("Median of {} runs [lowest–highest]", bench.runs);
    let head = ["engine", "looks on", "million frames/s", "of nobody", "a core's %, beside sending"];
    let mut table = Table::new(title, &head);
    let percent = |v: f64| format!("{:.1}%", v * 100.0);
    for engine in ENGINES {
        let mut all = [Seen::default(), Seen::default(), Seen::default()];
        for round in 0..bench.runs {
            for turn in 0..Onlooker::ALL.len() {
                let n = (turn + round) % Onlooker::ALL.len();
                watched(bench, engine, seconds, Onlooker::ALL[n], &mut all[n])?;
            }
        }
        for (onlooker, seen) in Onlooker::ALL.into_iter().zip(&all) {
            let ratio = seen.rate.over(&all[0].rate);
            table.rows.push(vec![
                engine.to_owned(),
                onlooker.name().to_owned(),
                seen.rate.cell(|v| format!("{:.3}", v / 1e6)),
                if onlooker == Onlooker::Nobody { "–".to_owned() } else { ratio.cell(percent) },
                seen.cpu.cell(|v| format!("{:.2}", v * 100.0)),
            ]);
            if onlooker != Onlooker::Nobody {
                let what = format!("{engine}, {}", onlooker.name());
                section.at_least(format!("{what}: of the rate with nobody"), 0.98, ratio.median(), percent);
                let more = seen.cpu.median() - all[0].cpu.median();
                section.at_most(format!("{what}: more CPU time, of a core"), 0.01, more, percent);
            }
        }
    }
    section.tables.push(table);
    for onlooker in Onlooker::ALL {
        section.command(plainly(
            &bench.command_line(crate::bench::Tool::Netdyno, &line("packet", bench, seconds, onlooker)),
        ));
    }
    Ok(section)
}
