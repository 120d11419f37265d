//! `netdyno man`: a page for the program and one for each verb, with what is common to all of them.

use crate::cli::help;
use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::Path;

/// Writes the pages into a folder, which is made if it is not there.
pub fn run(folder: &Path) -> Result<u8> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut command = help::command().disable_help_subcommand(true);
    // Names of pages come from the words that verbs are called by.
    command.build();
    pages(&command, "", folder)?;
    Ok(0)
}

fn pages(command: &Command, path: &str, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below, format!("{path} {}", below.get_name()).trim_start(), folder)?;
    }
    let mut shown = command.clone();
    // As help has it: all options in a row tell nothing.
    let usage = shown.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let version = format!("netdyno {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(shown.override_usage(usage)).manual("netdyno").source(version);
    let file = folder.join(man.get_filename());
    let page = page(&man, command, path).with_context(|| format!("making {}", file.display()))?;
    std::fs::write(&file, page).with_context(|| format!("writing {}", file.display()))
}

fn page(man: &Man, command: &Command, path: &str) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    let examples = help::of(path);
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
        for example in examples {
            rest.control("PP", []);
            rest.text([roman(format!("{}:", example.says))]);
            rest.control("PP", []);
            // As it is typed: neither filled nor hyphenated.
            rest.control("nf", []);
            rest.control("RS", ["4"]);
            for line in example.line.lines() {
                rest.text([bold(line)]);
            }
            rest.control("RE", []);
            rest.control("fi", []);
        }
    }
    let notes = help::notes(path);
    // What a verb says of its own exit status has a place of its own.
    let (notes, own) = notes.split_once("Exit status: ").unwrap_or((&notes, ""));
    if !notes.trim().is_empty() {
        rest.control("SH", ["NOTES"]);
        for line in notes.lines() {
            rest.text([roman(line)]);
        }
    }
    if !own.is_empty() {
        rest.control("SH", ["EXIT STATUS"]);
        rest.text([roman(own)]);
    } else if help::is_ours(path) {
        rest.control("SH", ["EXIT STATUS"]);
        for (status, means) in help::STATUS {
            tagged(&mut rest, status, means);
        }
    }
    if path.is_empty() {
        rest.control("SH", ["ENVIRONMENT"]);
        for (name, means) in help::ENVIRONMENT {
            tagged(&mut rest, name, means);
        }
    }
    rest.control("SH", ["SEE ALSO"]);
    let above = match path.rsplit_once(' ') {
        _ if path.is_empty() => None,
        Some((above, _)) => Some(format!("netdyno-{}(1)", above.replace(' ', "-"))),
        None => Some("netdyno(1)".to_owned()),
    };
    let verbs = help::related(path).into_iter().map(|verb| format!("netdyno-{verb}(1)"));
    let all = command.get_subcommands().map(|below| format!("netdyno-{}(1)", below.get_name()));
    let verbs = above.into_iter().chain(verbs).chain(all.filter(|_| path.is_empty()));
    let pages = help::docs(path).into_iter().map(|page| format!("docs/{page}.md"));
    let said: Vec<String> = verbs.chain(pages).collect();
    rest.text([roman(said.join(", "))]);
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn tagged(page: &mut Roff, name: &str, means: &str) {
    page.control("TP", []);
    page.text([bold(name)]);
    page.text([roman(means)]);
}
