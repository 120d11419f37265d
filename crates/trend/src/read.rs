//! A folder of results, read: what is kept of each, and which files are left out and why.

use crate::entry::Entry;
use crate::index;
use crate::walk::{Found, Seen, walk};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A result larger than this is not read, as in `netdyno compare`.
const LARGEST: u64 = 1 << 30;
/// A result that began later than this after now was made by a clock that is wrong, or this one is.
const LEAD: u64 = 300;

/// A file that is no part of any series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct LeftOut {
    /// Why, in a word.
    pub why: Why,
    /// Its path within the folder.
    pub path: String,
    /// Why, in words.
    pub reason: String,
}

/// Why a file is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It cannot be read.
    Unreadable,
    /// It is not whole, or not JSON.
    Damaged,
    /// It has a layout that this netdyno does not know.
    OtherVersion,
    /// Its run was not done: it has no figures.
    NotDone,
    /// It began later than now.
    Future,
    /// It does not say when it began.
    Undated,
    /// The same result is there under another name.
    Copy,
}

impl Why {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Why::Unreadable => "unreadable",
            Why::Damaged => "damaged",
            Why::OtherVersion => "of another version",
            Why::NotDone => "not done",
            Why::Future => "of the future",
            Why::Undated => "without a time",
            Why::Copy => "copies",
        }
    }
}

impl LeftOut {
    pub(crate) fn new(name: &Path, why: Why, reason: String) -> LeftOut {
        LeftOut { why, path: name.display().to_string(), reason }
    }
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The folder is none, or cannot be read.
    #[error("cannot read the folder {}: {source}; name the folder that holds results", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error(
        "no results in {0}: `netdyno run FILE` keeps some there by `.keep`, and each command writes one by `.report`",
        folder.display()
    )]
    Empty {
        /// Which.
        folder: PathBuf,
    },
}

/// What is kept of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub name: PathBuf,
    pub seen: Seen,
    /// Of its bytes: the same result may be there twice.
    pub digest: u64,
    pub what: Result<Entry, (Why, String)>,
}

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Which.
    pub path: PathBuf,
    pub(crate) results: Vec<Kept>,
    /// Those whose runs were not done; they are left out, too.
    pub(crate) failed: Vec<Kept>,
    /// Files that are left out.
    pub left_out: Vec<LeftOut>,
    /// Files of JSON that are no results.
    pub foreign: usize,
    /// What to know of how it was read.
    pub notes: Vec<String>,
    /// Files that had to be read because no index knew them.
    pub read_anew: usize,
}

/// Reads all results in a folder, and those only that have changed since the index was written. `now` is in seconds since 1970.
///
/// # Errors
/// That the folder cannot be read, or has no results.
pub fn read(folder: &Path, now: u64) -> Result<Folder, Unread> {
    let walked = walk(folder).map_err(|source| Unread::Folder { folder: folder.to_owned(), source })?;
    if walked.found.is_empty() && walked.left_out.is_empty() {
        return Err(Unread::Empty { folder: folder.to_owned() });
    }
    let known = index::read(folder);
    let mut notes = known.damage.iter().cloned().collect::<Vec<_>>();
    let mut known: BTreeMap<PathBuf, Kept> =
        known.kept.into_iter().map(|kept| (kept.name.clone(), kept)).collect();
    let before = known.len();
    let (mut results, mut new) = (Vec::new(), Vec::new());
    for found in walked.found {
        match known.remove(&found.name).filter(|kept| kept.seen == found.seen) {
            Some(kept) => results.push(kept),
            None => new.push(found),
        }
    }
    let unchanged = new.is_empty() && results.len() == before;
    let read_anew = new.len();
    results.extend(in_parallel(folder, new));
    results.sort_by(|a, b| a.name.cmp(&b.name));
    if !unchanged && let Err(why) = index::write(folder, &results) {
        notes.push(format!(
            "the index could not be written ({why}): the next look at this folder reads all results again"
        ));
    }
    let mut read = Folder {
        path: folder.to_owned(),
        results,
        failed: Vec::new(),
        left_out: walked.left_out,
        foreign: walked.foreign,
        notes,
        read_anew,
    };
    read.sort_out(now);
    Ok(read)
}

/// Reads files by as many threads as there are CPUs.
fn in_parallel(folder: &Path, files: Vec<Found>) -> Vec<Kept> {
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).min(files.len().div_ceil(8)).max(1);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Relaxed)) {
            done.push(one(folder, file));
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        all.extend(threads.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        all
    })
}

fn one(folder: &Path, file: &Found) -> Kept {
    let mut kept = Kept {
        name: file.name.clone(),
        seen: file.seen,
        digest: 0,
        what: Err((Why::Unreadable, String::new())),
    };
    let mut bytes = Vec::new();
    let path = folder.join(&file.name);
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    kept.what = match read {
        Err(error) => Err((Why::Unreadable, error.to_string())),
        Ok(_) if bytes.len() as u64 > LARGEST => {
            Err((Why::Unreadable, "it is larger than any result (1 GiB)".to_owned()))
        }
        Ok(_) => {
            kept.digest = index::digest(&bytes);
            entry(&bytes)
        }
    };
    kept
}

/// A result without the buckets of its histograms, which no figure needs: they are most of it, and reading them takes most of the
/// time. What is left out here cannot be part of a text, in which quotes stand behind a backslash.
fn without_histograms(text: &str) -> String {
    const BEGIN: &str = "\"histogram\": [";
    let mut out = String::with_capacity(text.len() / 2);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        out += before;
        out += BEGIN;
        // Buckets hold numbers alone. What has no end is damaged, and stays so.
        let end = after.bytes().position(|byte| byte == b']').unwrap_or(after.len());
        rest = after.get(end..).unwrap_or_default();
    }
    out + rest
}

fn entry(bytes: &[u8]) -> Result<Entry, (Why, String)> {
    let damaged = |why: String| (Why::Damaged, why);
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text".to_owned()))?;
    if text.trim().is_empty() {
        return Err(damaged("it is empty".to_owned()));
    }
    let report = report::json::from_str(&without_histograms(text)).map_err(|error| match error {
        report::json::ReadError::OtherVersion { .. } => (Why::OtherVersion, error.to_string()),
        report::json::ReadError::NotJson(error) => damaged(error.to_string()),
        other => damaged(other.to_string()),
    })?;
    Ok(Entry::of(&report))
}

impl Folder {
    /// Leaves out what cannot be put beside others, each with its reason.
    fn sort_out(&mut self, now: u64) {
        let mut seen = BTreeMap::new();
        let mut kept = Vec::new();
        for mut result in std::mem::take(&mut self.results) {
            result.what = result.what.and_then(|entry| match entry.started {
                None => Err((Why::Undated, "it does not say when its run began".to_owned())),
                Some(at) if at > now.saturating_add(LEAD) => Err((
                    Why::Future,
                    format!(
                        "it began at {}, and it is {} now: set the clock, or remove it",
                        crate::time::show(at),
                        crate::time::show(now)
                    ),
                )),
                Some(_) => match seen.insert(result.digest, result.name.clone()) {
                    Some(first) => {
                        seen.insert(result.digest, first.clone());
                        Err((Why::Copy, format!("the same as {}", first.display())))
                    }
                    None => Ok(entry),
                },
            });
            match &result.what {
                Ok(Entry { failed: Some(why), .. }) => {
                    self.left_out.push(LeftOut::new(&result.name, Why::NotDone, why.clone()));
                    self.failed.push(result);
                }
                Ok(_) => kept.push(result),
                Err((why, reason)) => self.left_out.push(LeftOut::new(&result.name, *why, reason.clone())),
            }
        }
        self.left_out.sort();
        self.results = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Bucket, Distribution};

    #[test]
    fn without_histograms_a_result_has_the_same_figures() {
        let mut report = report::Report::new("send");
        report.environment.started = Some("2026-11-28T23:00:00Z".to_owned());
        report.command_line = vec!["\"histogram\": [".to_owned()];
        let bucket = |from| Bucket { from, to: from + 1, count: 3 };
        let histogram = (0..500).map(|n| bucket(2 * n)).collect();
        report.result.latency_ns =
            Some(Distribution { p50: 500, p99: 990, histogram, ..Distribution::default() });
        let text = report::json::to_string(&report);
        let short = without_histograms(&text);
        assert!(short.len() * 5 < text.len(), "{short}");
        let [whole, read] = [&text, &short].map(|text| report::json::from_str(text).expect("a result"));
        assert_eq!(Entry::of(&whole), Entry::of(&read));
        assert_eq!(read.command_line, report.command_line);
        for cut in (0..text.len()).step_by(97) {
            assert!(entry(&text.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
    }
}
