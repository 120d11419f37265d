//! What tcpreplay's users see and say while it sends: packets shown by tcpdump (`--verbose`), some packets at a time
//! (`--oneatatime`), figures after each loop (`--stats=0`).

use super::autoopts::Parsed;
use crate::client::Signals;
use crate::output::print;
use anyhow::{Context, Result};
use engine::source::{Hooks, Passed};
use report::{Totals, classic};
use std::io::{BufWriter, Write, stdin};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Is any of these asked for?
pub fn wanted(given: &Parsed) -> bool {
    given.has("oneatatime") || given.has("verbose") || after_each_loop(given)
}

fn after_each_loop(given: &Parsed) -> bool {
    given.value("stats").is_some_and(|stats| stats.parse() == Ok(0))
}

/// What is asked for of these. `device` is what packets leave by, `loops` how many there are, 0 without end.
pub fn hooks(given: &Parsed, device: &str, loops: u64) -> Result<Hooks> {
    let mut hooks = Hooks::default();
    if given.has("oneatatime") {
        let mut steps = Steps { device: device.to_owned(), lines: lines(), stop: Signals::at_once()?.stop };
        hooks.ask = Some(Box::new(move |number| steps.ask(number)));
    }
    if given.has("verbose") {
        let mut tcpdump = Tcpdump::start(given.value("decode"))?;
        hooks.show = Some(Box::new(move |time_ns, frame| tcpdump.show(time_ns, frame)));
    }
    if after_each_loop(given) {
        hooks.passed = Some(Box::new(move |passed: Passed| {
            let totals = Totals::over(passed.frames, passed.bytes, passed.elapsed_ns);
            // Whoever does not read on is no reason to end the run.
            let _ = print(&(classic::totals(&totals) + &loop_line(passed.passes + 1, loops)));
        }));
    }
    Ok(hooks)
}

/// Which loop begins.
pub fn loop_line(number: u64, loops: u64) -> String {
    match loops {
        1 => String::new(),
        0 => format!("Loop {number}...\n"),
        _ => format!("Loop {number} of {loops}...\n"),
    }
}

/// Asks for how many packets may be sent.
struct Steps {
    device: String,
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
}

impl Steps {
    fn ask(&mut self, number: u64) -> Option<u64> {
        loop {
            let _ = print(&format!(
                "**** Next packet #{number} out {}.  How many packets do you wish to send? ",
                self.device
            ));
            let line = loop {
                match self.lines.recv_timeout(Duration::from_millis(50)) {
                    Ok(line) => break line,
                    Err(RecvTimeoutError::Timeout) if !self.stop.load(Relaxed) => {}
                    Err(_) => {
                        let _ = print("\n");
                        return None;
                    }
                }
            };
            match line.trim() {
                "" => return Some(1),
                number => match number.parse() {
                    Ok(0) | Err(_) => {
                        let _ = print("Give a number of packets, 1 or more; nothing is 1.\n");
                    }
                    Ok(count) => return Some(count),
                },
            }
        }
    }
}

/// The lines of standard input, read by a thread of their own, because a signal does not end reading.
fn lines() -> Receiver<String> {
    let (to, lines) = channel();
    std::thread::spawn(move || {
        for line in stdin().lines() {
            if line.map_or(true, |line| to.send(line).is_err()) {
                break;
            }
        }
    });
    lines
}

/// A tcpdump that prints what it is given. Dropping it waits until all is printed.
struct Tcpdump {
    child: Child,
    to: Option<BufWriter<ChildStdin>>,
}

impl Tcpdump {
    /// `options` beyond `-n -l`.
    fn start(options: Option<&str>) -> Result<Tcpdump> {
        let mut child = port::outside::program("tcpdump")
            .args(["-n", "-l", "-r", "-"])
            .args(options.unwrap_or_default().split_whitespace())
            .stdin(Stdio::piped())
            .spawn()
            .context("--verbose has packets printed by tcpdump, which cannot be started: install it")?;
        let mut to = child.stdin.take().map(BufWriter::new);
        // A pcap file of Ethernet frames with times in nanoseconds.
        let header = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 0x4_0000, 1];
        if let Some(to) = &mut to {
            let header: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
            // If it ended already, it has said why.
            let _ = to.write_all(&header);
        }
        Ok(Tcpdump { child, to })
    }

    fn show(&mut self, time_ns: u64, frame: &[u8]) {
        let Some(to) = &mut self.to else { return };
        let (length, second) = (frame.len() as u32, 1_000_000_000);
        let words = [(time_ns / second) as u32, (time_ns % second) as u32, length, length];
        let head: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let written = to.write_all(&head).and_then(|()| to.write_all(frame)).and_then(|()| to.flush());
        if written.is_err() {
            self.to = None;
        }
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_packets_leave_as_are_asked_for_until_the_input_ends() {
        let (to, lines) = channel();
        let mut steps = Steps { device: "tx0".into(), lines, stop: Arc::default() };
        for line in ["2", "", "0", "many", " 7 "] {
            to.send(line.to_owned()).unwrap();
        }
        drop(to);
        assert_eq!([1, 3, 4, 11].map(|number| steps.ask(number)), [Some(2), Some(1), Some(7), None]);
    }

    #[test]
    fn a_signal_ends_the_asking() {
        let (_to, lines) = channel();
        let mut steps = Steps { device: "tx0".into(), lines, stop: Arc::new(AtomicBool::new(true)) };
        assert_eq!(steps.ask(1), None);
    }
}
