//! Links of README.md and the pages of docs: each file is there, and each heading.

use super::{blocks::pages, root};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

#[test]
fn links_of_the_documents_lead_somewhere() {
    let root = root();
    let mut all = pages(&root);
    all.extend(
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "SPECIFICATION.md", "CHANGELOG.md", "SECURITY.md"]
            .map(str::to_owned),
    );
    let texts: HashMap<PathBuf, String> = all
        .iter()
        .map(|page| (PathBuf::from(page), std::fs::read_to_string(root.join(page)).expect("a page")))
        .collect();
    let (mut followed, mut faults) = (0, Vec::new());
    for page in &all {
        for target in links(&texts[Path::new(page)]) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let file = match file {
                "" => PathBuf::from(page),
                file => plain(&Path::new(page).parent().expect("a folder").join(file)),
            };
            if !root.join(&file).exists() {
                faults.push(format!("{page}: {target}: no such file"));
            } else if !heading.is_empty() {
                let there =
                    texts.get(&file).is_some_and(|text| headings(text).iter().any(|one| one == heading));
                if !there {
                    faults.push(format!("{page}: {target}: no such heading"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(followed > 120, "{followed} links");
}

/// docs/mkdocs.yml: the site's contents name each page, and no other.
#[test]
fn each_page_stands_in_the_contents_of_the_site() {
    let root = root();
    let contents = std::fs::read_to_string(root.join("docs/mkdocs.yml")).expect("the contents");
    let named: Vec<&str> = contents
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- ")?.rsplit_once(": "))
        .filter_map(|(_, page)| page.ends_with(".md").then_some(page))
        .collect();
    for page in pages(&root) {
        assert_eq!(named.iter().filter(|one| **one == page).count(), 1, "{page} in docs/mkdocs.yml");
    }
    for page in named {
        assert!(root.join(page).exists(), "docs/mkdocs.yml names {page}");
    }
}

/// docs/search.js in a page as MkDocs makes it, opened from a file.
#[test]
fn the_site_can_be_searched_from_a_file() {
    let dir = crate::common::temporary();
    let at = |name: &str| dir.path().join(name);
    std::fs::copy(root().join("docs/search.js"), at("main.js")).expect("the search");
    let page = "<form><input name=q id=mkdocs-search-query></form><div id=mkdocs-search-results></div><script src=main.js defer></script>";
    std::fs::write(at("search.html"), page).expect("a page");
    let endpoint = std::fs::read_to_string(root().join("docs/endpoint.md")).expect("a document");
    let method = std::fs::read_to_string(root().join("docs/method.md")).expect("a document");
    let index = serde_json::json!([
        { "location": "docs/endpoint.html", "title": "Endpoint tests", "text": endpoint },
        { "location": "docs/method.html", "title": "Trials and searches", "text": method },
        { "location": "docs/other.html", "title": "<b>bold</b>", "text": "nothing" },
    ]);
    std::fs::write(at("index.js"), format!("window.siteIndex = {index};")).expect("an index");
    let found = |query: &str| -> Vec<String> {
        let url = format!("file://{}?q={query}", at("search.html").display());
        let browser = std::process::Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--no-first-run",
            ])
            .args(["--virtual-time-budget=5000", "--timeout=20000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", at("profile").display()))
            .arg(url)
            .output()
            .expect("a browser is needed: apt-get install chromium");
        let dom = String::from_utf8_lossy(&browser.stdout).into_owned();
        dom.split("<a href=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    assert_eq!(found("bufferbloat"), ["docs/endpoint.html"]);
    assert!(found("resume").contains(&"docs/method.html".to_owned()));
    assert_eq!(found("--continue%20resumed")[0], "docs/endpoint.html");
    assert_eq!(found("bold"), ["docs/other.html"]);
    assert!(found("nowhere-to-be-found").is_empty());
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// What stands behind `](`, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            // What stands between backticks is code.
            let parts = line.split('`').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "" });
            prose.extend(parts);
            prose.push('\n');
        }
    }
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.trim().to_owned())).collect()
}

/// The anchors of a page's headings, as GitHub and MkDocs make them.
fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let Some(title) = line.strip_prefix('#').filter(|_| !fenced) else { continue };
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        found.push(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    found
}

#[test]
fn a_heading_is_found_by_its_anchor_and_a_link_in_code_is_none() {
    let text = "# One: two (`three`)\n\n    [a](b)\n\n`[c](d)` [e](f.md#g), [h](\n```\n# No\n[i](j)\n```\n";
    assert_eq!(headings(text), ["one-two-three"]);
    assert_eq!(links(text), ["f.md#g"]);
}
