//! Putting results in front of people and programs.

use crate::cli::Output;
use anyhow::Result;
use report::live::Live;
use report::{Report, classic, csv, json, text};
use std::io::{IsTerminal, Stderr, Write, stderr, stdout};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Prints to standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Words that came while the screen was drawn.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// More are not kept.
const MOST_HELD: usize = 100;

/// A word on standard error, before or beside the result; behind the screen if there is one.
pub fn note(text: &str) {
    if gauges::screen::is_drawn() {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() < MOST_HELD {
            held.push(text.to_owned());
        }
        return;
    }
    let _ = writeln!(stderr(), "{}", report::units::printable(text));
}

/// Says what was held back. To be called when the screen is gone.
pub fn say_held() {
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    held.iter().for_each(|text| note(text));
}

/// A result on standard error, where standard output has taken a capture.
pub fn aside(text: &str) {
    let _ = stderr().lock().write_all(text.as_bytes());
}

/// The moving line: on a terminal redrawn, elsewhere a plain line every few seconds.
pub fn live(output: &Output) -> Option<Live<Stderr>> {
    if output.quiet || output.gauges.tui {
        return None;
    }
    if !stderr().is_terminal() {
        return Some(Live::log(stderr(), Duration::from_secs(5)));
    }
    let width = rustix::termios::tcgetwinsize(stderr()).map_or(80, |size| usize::from(size.ws_col));
    Some(Live::terminal(stderr(), if width == 0 { 80 } else { width }))
}

/// Writes and prints a finished result. Returns the exit status.
pub fn conclude(report: &Report, output: &Output, with_classic: bool) -> Result<u8> {
    // The result is printed even if it cannot be written: it took time to measure.
    let written = output.report.as_deref().map(|dir| report::write_dir(report, dir)).transpose();
    let page = written.as_ref().ok().and_then(|w| w.as_ref()).map(|w| w.html.display().to_string());
    let text = if output.json {
        json::to_string(report).trim_end().to_owned() + "\n"
    } else if output.csv {
        // Of a search the trials are what it was for.
        if report.result.trials.is_empty() { csv::render(report) } else { csv::trials(report) }
    } else {
        let options = text::Options { page: page.as_deref(), ..text::Options::default() };
        let block = if with_classic { classic::render(report) + "\n" } else { String::new() };
        block + &text::render(report, options)
    };
    // Whoever stops reading half-way (`| head`) still gets the status, and the report its errors.
    let printed = print(&text);
    written?;
    match printed {
        Err(error) if !crate::is_broken_pipe(&error) => Err(error),
        _ => Ok(report.result.verdict.exit_status()),
    }
}
