//! What depends on what within this crate: a result as data knows none of its renderings.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The first names behind `crate::` in a line, and how often `super::` stands before a name at most.
fn named(line: &str) -> (Vec<&str>, usize) {
    let code = line.split("//").next().unwrap_or_default();
    let first = |path: &'_ str| path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    let names = code.split("crate::").skip(1).map(|path| &path[..first(path)]).collect();
    let up = (1..8).take_while(|times| code.contains(&"super::".repeat(*times))).count();
    (names, up)
}

#[test]
fn no_module_of_the_data_uses_one_of_the_renderings() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/data");
    let files = sources(&data);
    assert!(files.len() > 40, "{files:?}");
    let mut uses = 0;
    for file in files {
        let inside = file.strip_prefix(&data).expect("a file of it");
        // As often as that `super::` leads no further than to the folder's own module.
        let depth = inside.components().count() - usize::from(inside.ends_with("mod.rs"));
        for (number, line) in fs::read_to_string(&file).expect("a source").lines().enumerate() {
            let (names, up) = named(line);
            let place = format!("{}:{}: {line}", inside.display(), number + 1);
            assert!(names.iter().all(|name| *name == "data"), "{place}");
            assert!(up <= depth, "{place}");
            uses += names.len();
        }
    }
    assert!(uses > 60, "{uses}");
    assert_eq!(named("use crate::render::text; // crate::data"), (vec!["render"], 0));
    assert_eq!(named("    super::super::text::fold(crate::{a, b})"), (vec![""], 2));
}
