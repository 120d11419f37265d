//! Old results, removed.

use crate::series::Trend;
use crate::walk::RESULT;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What netdyno writes beside a result, which goes with it. What others put there stays, and the folder with it.
const BESIDE: [&str; 5] = ["figures.csv", "intervals.csv", "trials.csv", "report.html", RESULT];

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Results that were removed, by their paths in the folder.
    pub removed: Vec<String>,
    /// Those that could not be, and why.
    pub failed: Vec<String>,
}

/// Removes results that began before `before` (in seconds since 1970), but of each series the newest `keep`.
pub fn prune(trend: &Trend, before: u64, keep: usize) -> Pruned {
    let mut pruned = Pruned::default();
    let root = match fs::canonicalize(&trend.folder) {
        Ok(root) => root,
        Err(error) => {
            pruned.failed.push(format!("{}: {error}", trend.folder));
            return pruned;
        }
    };
    for series in &trend.series {
        let old = series.results.len().saturating_sub(keep.max(1));
        for past in series.results.iter().take(old).filter(|past| past.at < before) {
            match remove(&Path::new(&trend.folder).join(&past.path), &root) {
                Ok(()) => pruned.removed.push(past.path.clone()),
                Err(error) => pruned.failed.push(format!("{}: {error}", past.path)),
            }
        }
    }
    pruned
}

/// A result's folder, or a file by another name.
fn remove(path: &PathBuf, root: &Path) -> io::Result<()> {
    // What a link leads to may be somebody else's.
    if fs::symlink_metadata(path)?.is_symlink() || !fs::canonicalize(path)?.starts_with(root) {
        return Err(io::Error::other("it lies behind a link"));
    }
    if !path.is_dir() {
        return fs::remove_file(path);
    }
    for name in BESIDE {
        match fs::remove_file(path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match fs::remove_dir(path) {
        // Somebody keeps something of his own there.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done,
    }
}
