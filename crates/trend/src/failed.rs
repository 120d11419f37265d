//! Newest runs of a job that were not done: they have no figure, and so belong to no series, but nothing newer says that the job
//! works.

use crate::read::{Folder, Kept};
use crate::series::{Wish, shown};
use crate::time::show;
use serde::Serialize;
use std::collections::BTreeMap;

/// The newest run of a job was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotDone {
    /// What was asked for.
    pub name: String,
    /// The newest result's file, within the folder.
    pub path: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Why it was not done.
    pub reason: String,
    /// So many runs of the job in a row, the newest ones.
    pub runs: usize,
}

/// Of each job and host the newest run, if that was not done.
pub(crate) fn newest(folder: &Folder, wish: &Wish) -> Vec<NotDone> {
    // Of runs that began within a second, the file that was written first.
    let mut done: BTreeMap<(String, &str), (Option<u64>, i128)> = BTreeMap::new();
    for kept in &folder.results {
        let Ok(entry) = &kept.what else { continue };
        let job = entry.job();
        // One that says no host is put beside all.
        for host in ["", entry.host.as_str()] {
            let newest = done.entry((job.clone(), host)).or_default();
            *newest = (*newest).max((entry.started, kept.seen.modified_ns));
        }
    }
    let mut failed: BTreeMap<(String, &str), Vec<&Kept>> = BTreeMap::new();
    for kept in &folder.failed {
        let Ok(entry) = &kept.what else { continue };
        let host = if wish.any_host { "" } else { entry.host.as_str() };
        let key = (entry.job(), host);
        let at = (entry.started, kept.seen.modified_ns);
        let counts = entry.started >= wish.since && done.get(&key).is_none_or(|newest| at > *newest);
        if counts {
            failed.entry(key).or_default().push(kept);
        }
    }
    failed.into_values().filter_map(one).collect()
}

fn one(mut runs: Vec<&Kept>) -> Option<NotDone> {
    runs.sort_by_key(|kept| (kept.what.as_ref().ok().and_then(|entry| entry.started), kept.seen.modified_ns));
    let newest = runs.last()?;
    let entry = newest.what.as_ref().ok()?;
    Some(NotDone {
        name: entry.label.clone(),
        path: shown(newest),
        started: show(entry.started?),
        reason: entry.failed.clone().unwrap_or_default(),
        runs: runs.len(),
    })
}

impl NotDone {
    /// In a sentence.
    pub fn told(&self) -> String {
        let runs = match self.runs {
            1 => "the newest run was not done".to_owned(),
            runs => format!("the newest {runs} runs were not done, the last of them"),
        };
        format!("NOT DONE: {}: {runs} in {} ({}): {}", self.name, self.path, self.started, self.reason)
    }
}
