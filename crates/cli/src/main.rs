//! The program: reads the command line, connects the libraries, prints what they say.
//!
//! Exit status: 0 done as asked; 1 done, but short of what was asked (a rate not reached, frames unaccounted); 2 not
//! done.

mod cli;
mod client;
mod commands;
mod compat;
mod features;
mod hints;
mod memory;
mod output;
mod wording;

use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: memory::Saying = memory::Saying;

fn main() -> ExitCode {
    // A file that may not grow any more (`ulimit -f`) is an error that is told, as a full disk is. By itself the signal would end the
    // process, and leave behind what is half-written.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    let words = match compat::arguments(std::env::args_os().collect()) {
        Ok(Some(words)) => words,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return failed(&error),
    };
    match commands::pages::asked(&words, cli::help::is_verb) {
        Ok(Some(page)) => return ended(output::print(&page).map(|()| 0)),
        Ok(None) => {}
        Err(error) => return failed(&error),
    }
    let cli = match cli::help::parse(words.clone()) {
        Ok(cli) => cli,
        Err(error) => {
            if error.kind() == clap::error::ErrorKind::MissingRequiredArgument
                && let Err(wrong) = hints::check_refused(&words)
            {
                return failed(&wrong);
            }
            // Help and version are no errors; clap tells by the status it would exit with.
            let status = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    let done = commands::dispatch(cli);
    output::say_held();
    ended(done)
}

/// The exit status of what was done; what was not is said.
fn ended(done: anyhow::Result<u8>) -> ExitCode {
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Some errors point into a line that they show.
    let said: Vec<String> =
        wording::said(&job::in_full(error)).lines().map(report::units::printable).collect();
    // What points into a line stays as it is; what is one line is folded between its words.
    let text = format!("netdyno: {}", said.join("\n"));
    let text = if said.len() == 1 { output::folded(&text) } else { text + "\n" };
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(2)
}
