//! Putting results in front of people and programs.

use crate::cli::{Csv, Output};
use crate::wording;
use anyhow::Result;
use report::live::Live;
use report::{Report, classic, csv, get, json, text};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stderr, StdoutLock, Write, stderr, stdout};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How the user called us.
pub fn command_line() -> Vec<String> {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(first) = words.first_mut() {
        *first = "netdyno".to_owned();
    }
    words
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = Text(stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Standard output for text of any length; to be flushed at its end.
pub fn printer() -> BufWriter<Text> {
    BufWriter::new(Text(stdout().lock()))
}

/// Standard output that takes text. Its reader may have had enough of it, which is no fault.
#[derive(Debug)]
pub struct Text(StdoutLock<'static>);

/// The reader of our text closed its end (`netdyno info ... | head`).
#[derive(Debug)]
struct ReaderLeft;

impl std::fmt::Display for ReaderLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the reader of standard output closed it")
    }
}

impl std::error::Error for ReaderLeft {}

fn of_text(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::BrokenPipe { io::Error::other(ReaderLeft) } else { error }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_text)
    }
}

/// Whether writing ended because nobody wanted to read on.
pub fn reader_left(error: &anyhow::Error) -> bool {
    let inner = |cause: &io::Error| {
        let inner = cause.get_ref();
        inner.is_some_and(|inner| inner.is::<ReaderLeft>() || inner.is::<capture::ReaderLeft>())
    };
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(inner))
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
    let _ = stderr().write_all(folded(&report::units::printable(&wording::said(text))).as_bytes());
}

/// Says what was held back. To be called when the screen is gone.
pub fn say_held() {
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    held.iter().for_each(|text| note(text));
}

/// A result on standard error, where standard output has taken a capture.
pub fn aside(text: &str) {
    let _ = stderr().lock().write_all(wording::said(text).as_bytes());
}

/// The moving line: on a terminal redrawn, elsewhere a plain line every few seconds.
pub fn live(output: &Output) -> Option<Live<Stderr>> {
    if output.quiet || output.gauges.tui {
        return None;
    }
    // A dumb terminal cannot go back to a line's begin (terminfo, `cr` and `el`).
    if !stderr().is_terminal() || gauges::dumb_terminal().is_some() {
        return Some(Live::log(stderr(), Duration::from_secs(5)));
    }
    Some(Live::terminal(stderr(), columns(stderr())))
}

/// Columns of a terminal; 80 where there is none, unless COLUMNS says something else.
pub fn columns(of: impl rustix::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(of).ok().map(|size| usize::from(size.ws_col));
    let said = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    // Narrower ones do not even take a table of figures; in wider ones nobody finds the next line.
    size.filter(|columns| *columns > 0).or_else(said).unwrap_or(80).clamp(60, 120)
}

/// A message on standard error: folded between words where somebody looks at it.
pub fn folded(text: &str) -> String {
    match stderr().is_terminal() {
        true => text.lines().map(|line| text::fold(line, 0, columns(stderr()))).collect(),
        false => format!("{text}\n"),
    }
}

/// Says before a run which result it will replace in this folder: until it ends that one can still be copied elsewhere.
pub fn say_replaced(dir: &Path) {
    if !dir.join("result.json").is_file() {
        return;
    }
    let what = match report::read(dir) {
        Ok(before) => {
            let began = before.environment.started.map_or_else(String::new, |at| format!(", begun at {at}"));
            format!("the result of `netdyno {}`{began}", before.command)
        }
        Err(_) => "a result.json that this version cannot read".to_owned(),
    };
    note(&format!("{} has {what}: this run replaces it when it ends", dir.display()));
}

/// Writes a finished result into a folder, if one was named; where its page is.
pub fn written(report: &Report, dir: Option<&Path>) -> Result<Option<String>> {
    let written = dir.map(|dir| report::write_dir_in(report, dir, wording::said)).transpose()?;
    Ok(written.map(|written| written.html.display().to_string()))
}

/// Writes and prints a finished result. Returns the exit status.
pub fn conclude(report: &Report, output: &Output, with_classic: bool) -> Result<u8> {
    // The result is printed even if it cannot be written: it took time to measure.
    show(report, output, with_classic, written(report, output.report.as_deref()))
}

/// The same of a result that was kept earlier at `path`: nothing is written, and the page beside it is named.
pub fn conclude_kept(report: &Report, output: &Output, path: &Path) -> Result<u8> {
    show(report, output, false, Ok(page_beside(path)))
}

/// The page in the folder of a kept result.
fn page_beside(path: &Path) -> Option<String> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    Some(folder.join("report.html")).filter(|page| page.is_file()).map(|page| page.display().to_string())
}

fn show(report: &Report, output: &Output, with_classic: bool, written: Result<Option<String>>) -> Result<u8> {
    let page = written.as_ref().ok().and_then(Clone::clone);
    let text = if !output.get.is_empty() {
        // All of them or none: a script that reads lines would take one for another.
        let lines = get::lines(report, &output.get);
        if let (Err(_), Err(error)) = (&lines, &written) {
            // One error is returned; the other is no smaller for it.
            aside(&format!("netdyno: {error:#}\n"));
        }
        lines?
    } else if output.json {
        json::to_string(report).trim_end().to_owned() + "\n"
    } else if output.json_lines {
        json::in_one_line(report)
    } else if let Some(what) = output.csv {
        match what {
            Csv::Figures => csv::figures(report),
            // Of a search the trials are what it was for.
            Csv::Series if !report.result.trials.is_empty() => csv::trials(report),
            // Of a mesh its pairs.
            Csv::Series if report.result.mesh.is_some() => csv::pairs(report),
            Csv::Trials => csv::trials(report),
            Csv::Series | Csv::Intervals => csv::render(report),
        }
    } else {
        let options = text::Options {
            page: page.as_deref(),
            verbose: output.verbose,
            width: columns(stdout()),
            said: |text| wording::said(text).into_owned(),
            ..text::Options::default()
        };
        let whole = output.verbose || report.result.verdict != report::Verdict::Done;
        let block = if with_classic && whole { classic::render(report) + "\n" } else { String::new() };
        block + &text::render(report, options)
    };
    // Whoever stops reading half-way (`| head`) still gets the status, and the report its errors.
    let printed = print(&wording::said(&text));
    written?;
    match printed {
        Err(error) if !reader_left(&error) => Err(error),
        _ => Ok(report.result.verdict.exit_status()),
    }
}

#[cfg(test)]
mod tests {
    use super::page_beside;

    #[test]
    fn a_kept_result_names_the_page_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join("report.html");
        assert_eq!(page_beside(folder.path()), None, "there is none");
        std::fs::write(&page, "").expect("a page");
        let name = Some(page.display().to_string());
        for kept in [folder.path().to_owned(), page, folder.path().join("result.json")] {
            std::fs::write(folder.path().join("result.json"), "").expect("a result");
            assert_eq!(page_beside(&kept), name, "{}", kept.display());
        }
    }
}
