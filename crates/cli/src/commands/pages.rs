//! `netdyno help docs/PAGE.md`: the documents, for whoever has the program and nothing else.

use anyhow::{Result, bail};
use std::ffi::OsString;

macro_rules! page {
    ($name:literal) => {
        ($name, include_str!(concat!("../../pages/", $name, ".md")))
    };
}

/// By name, as they stand in docs.
const PAGES: &[(&str, &str)] = &[
    page!("agent"),
    page!("bridging"),
    page!("clone"),
    page!("compare"),
    page!("compat"),
    page!("counters"),
    page!("drivers"),
    page!("editing"),
    page!("endpoint"),
    page!("engines"),
    page!("expressions"),
    page!("flows"),
    page!("flows-at-scale"),
    page!("fragments"),
    page!("from-goreplay"),
    page!("from-iperf3"),
    page!("from-netperf"),
    page!("from-nprobe"),
    page!("from-softflowd"),
    page!("from-tcpcopy"),
    page!("from-tcpreplay"),
    page!("from-trex"),
    page!("from-xdperf"),
    page!("http"),
    page!("impair"),
    page!("installing"),
    page!("jobs"),
    page!("lab"),
    page!("live"),
    page!("many-machines"),
    page!("measuring"),
    page!("method"),
    page!("notes"),
    page!("otg"),
    page!("plugins"),
    page!("python"),
    page!("recipes"),
    page!("reflecting"),
    page!("replay"),
    page!("report"),
    page!("scenarios"),
    page!("screen"),
    page!("sessions"),
    page!("synth"),
    page!("trend"),
    page!("watching"),
    page!("why-lost"),
    page!("writing-plugins"),
    page!("xdp"),
];

/// The page that these words ask for, or the list of them: `help docs/lab.md`, `help docs`, and by its bare name one that no
/// verb has.
///
/// # Errors
/// A document is asked for that there is not.
pub fn asked(words: &[OsString], is_verb: impl Fn(&str) -> bool) -> Result<Option<String>> {
    let [_, help, name] = words else { return Ok(None) };
    let Some(name) = name.to_str().filter(|_| help == "help") else { return Ok(None) };
    if matches!(name, "docs" | "docs/") {
        return Ok(Some(list()));
    }
    let named = name.strip_prefix("docs/").or_else(|| Some(name).filter(|name| name.ends_with(".md")));
    let bare = match named {
        Some(named) => named.strip_suffix(".md").unwrap_or(named),
        None if is_verb(name) => return Ok(None),
        None => name,
    };
    match PAGES.iter().find(|(page, _)| *page == bare) {
        Some((_, text)) => Ok(Some(shown(text))),
        None if named.is_none() => Ok(None),
        None => {
            let near = report::get::alike(bare, PAGES.iter().map(|(page, _)| *page));
            let near: Vec<String> = near.iter().map(|page| format!("docs/{page}.md")).collect();
            let near =
                if near.is_empty() { String::new() } else { format!("near it are {}; ", near.join(", ")) };
            bail!(
                "there is no document {}; {near}`netdyno help docs` lists all",
                report::units::printable(name)
            )
        }
    }
}

/// The documents that speak of a word, the one that says most first: at most three.
pub fn about(word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    if word.chars().count() < 3 {
        return Vec::new();
    }
    let said = |text: &str| text.to_lowercase().matches(&word).count();
    // What a heading names, the page is about.
    let heading = |text: &str| text.lines().filter(|line| line.starts_with('#')).map(said).sum::<usize>();
    let mut pages: Vec<(usize, &str)> =
        PAGES.iter().map(|(name, text)| (said(text) + 10 * heading(text), *name)).collect();
    pages.retain(|(count, _)| *count > 0);
    pages.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    pages.into_iter().take(3).map(|(_, name)| format!("docs/{name}.md")).collect()
}

/// Each with its title.
fn list() -> String {
    let mut text = "The documents are in the program: netdyno help docs/PAGE.md\n\n".to_owned();
    for (name, page) in PAGES {
        let title = page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        text += &format!("  {:<24} {title}\n", format!("docs/{name}.md"));
    }
    text
}

/// Without the comments that tell its test how commands end.
fn shown(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, comment)) = rest.split_once("<!--") {
        text += before;
        rest = comment.split_once("-->").map_or("", |(_, behind)| behind.trim_start_matches('\n'));
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn ask(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        asked(&words, |word| word == "lab").expect("there is such a document, or none is asked for")
    }

    #[test]
    fn all_documents_are_there() {
        let docs =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository").join("docs");
        let mut names: Vec<String> = std::fs::read_dir(docs)
            .expect("docs")
            .filter_map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .ok()?
                    .strip_suffix(".md")
                    .map(str::to_owned)
            })
            .collect();
        names.sort();
        assert_eq!(names, PAGES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert!(PAGES.iter().all(|(_, text)| text.starts_with("# ")), "each has a title");
    }

    #[test]
    fn a_word_leads_to_the_documents_that_speak_of_it() {
        assert_eq!(about("bufferbloat").first().map(String::as_str), Some("docs/endpoint.md"));
        assert_eq!(about("Prometheus").first().map(String::as_str), Some("docs/screen.md"));
        assert!(about("resume").contains(&"docs/method.md".to_owned()), "{:?}", about("resume"));
        assert!(about("xyzzy").is_empty() && about("a").is_empty());
    }

    #[test]
    fn a_page_is_named_as_it_is_referred_to() {
        let lab = ask("netdyno help docs/lab.md").expect("a page");
        assert!(lab.starts_with("# ") && !lab.contains("<!--"), "{lab}");
        assert_eq!(ask("netdyno help lab"), None, "a verb");
        assert_eq!(ask("netdyno help expressions"), ask("netdyno help docs/expressions"));
        assert!(ask("netdyno help docs").is_some_and(|list| list.contains("docs/expressions.md")));
        for other in ["netdyno craft lab", "netdyno help", "netdyno help expressions more"] {
            assert_eq!(ask(other), None, "{other}");
        }
    }

    #[test]
    fn a_document_that_there_is_not_is_told_those_near_it() {
        for (name, said) in [
            ("docs/nosuch.md", "there is no document docs/nosuch.md; `netdyno help docs` lists all"),
            ("docs/expression.md", "near it are docs/expressions.md"),
            ("measure.md", "docs/measuring.md"),
        ] {
            let words: Vec<OsString> = ["netdyno", "help", name].map(OsString::from).into();
            let told = asked(&words, |_| false).expect_err("no document").to_string();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(shown("a\n<!-- b -->\nc\n<!-- d\ne -->f<!-- g"), "a\nc\nf");
    }
}
