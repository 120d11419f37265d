//! A result on disk: a folder with `result.json`, `figures.csv`, `intervals.csv` and `report.html`, of a search also
//! `trials.csv`, of a mesh `pairs.csv`, and reading it back.
//!
//! Each file appears under its name complete or not at all: all are written and synced under temporary
//! names in the same folder first, then renamed. A full disk leaves what was there before. Files of the same
//! name that netdyno did not write are never replaced.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::data::compare::{Comparison, Named};
use crate::data::json;
use crate::data::model::Report;
use crate::data::setting::Words;
use crate::place;
use crate::render::{csv, html};

const JSON: &str = "result.json";
const FIGURES: &str = "figures.csv";
const CSV: &str = "intervals.csv";
const TRIALS: &str = "trials.csv";
const PAIRS: &str = "pairs.csv";
const HTML: &str = "report.html";
const COMPARISON: &str = "comparison.json";
const COMPARISON_PAGE: &str = "comparison.html";

/// A report file larger than this is not read: a day of 100 ms intervals in HTML stays far below it.
const LARGEST_READ: u64 = 1 << 30;

/// The files that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// `result.json`.
    pub json: PathBuf,
    /// `figures.csv`.
    pub figures: PathBuf,
    /// `intervals.csv`.
    pub csv: PathBuf,
    /// Only where there were trials.
    pub trials: Option<PathBuf>,
    /// `report.html`.
    pub html: PathBuf,
}

/// Why a report could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be made, or is none.
    #[error("cannot make the report folder {}: {source}; name a folder you may write to", dir.display())]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(
        "cannot write the report to {}: {source}; nothing was replaced, free space or name another folder",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A written file cannot take its place.
    #[error(
        "cannot put {} in place: {source}; files of an earlier report may stand beside new ones, write it again",
        path.display()
    )]
    Replace {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of that name is there, and netdyno did not write it.
    #[error("{} is there already and is not a netdyno report; move it or name another folder", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No result was written to that folder.
    #[error("no {JSON} is in {}: name the folder, or the file, that a result was written to", dir.display())]
    NoResult {
        /// The folder.
        dir: PathBuf,
    },
    /// It is longer than any report.
    #[error("cannot read {}: it is larger than any report (1 GiB)", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// What stands in it is no report.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: json::ReadError,
    },
}

/// Makes the folder if need be and finds out whether a report can be written there, so that a long run does not
/// end in "permission denied". Leaves nothing behind but the folder.
///
/// # Errors
/// That the folder cannot be made or written to, and which.
pub fn prepare_dir(dir: &Path) -> Result<(), StoreError> {
    made(dir, &[JSON, FIGURES, CSV, TRIALS, PAIRS, HTML]).map(drop)
}

/// The folder, made if need be, in which these files may be written.
fn made(dir: &Path, names: &[&str]) -> Result<PathBuf, StoreError> {
    let dir = safe(dir)?;
    fs::create_dir_all(&dir).map_err(|source| StoreError::Folder { dir: dir.clone(), source })?;
    for name in names {
        refuse_foreign(&dir.join(name))?;
    }
    temporary(&dir).map(drop).map_err(|source| StoreError::Write { path: dir.clone(), source })?;
    Ok(dir)
}

/// The folder, unless another user's link leads there.
fn safe(dir: &Path) -> Result<PathBuf, StoreError> {
    place::resolve_folder(dir).map_err(|source| StoreError::Folder { dir: dir.to_owned(), source })
}

/// Writes the files, replacing those of an earlier report.
///
/// # Errors
/// That a file cannot be written, and which: earlier ones stay as they were.
pub fn write_dir(report: &Report, dir: &Path) -> Result<Written, StoreError> {
    write_dir_in(report, dir, |text| Cow::Borrowed(text))
}

/// As [`write_dir`]; in all files settings have the names that `words` gives them.
///
/// # Errors
/// As [`write_dir`].
pub fn write_dir_in(report: &Report, dir: &Path, words: Words) -> Result<Written, StoreError> {
    prepare_dir(dir)?;
    let dir = &safe(dir)?;
    let mut contents = vec![
        (JSON, json::to_string(report)),
        (FIGURES, csv::figures(report)),
        (CSV, csv::render(report)),
        (HTML, html::render(report)),
    ];
    let has_trials = !report.result.trials.is_empty();
    if has_trials {
        contents.push((TRIALS, csv::trials(report)));
    }
    let has_pairs = report.result.mesh.is_some();
    if has_pairs {
        contents.push((PAIRS, csv::pairs(report)));
    }
    put(dir, contents, words)?;
    for (name, _) in [(TRIALS, has_trials), (PAIRS, has_pairs)].iter().filter(|(_, has)| !has) {
        // Those of an earlier report are not of this one.
        match fs::remove_file(dir.join(name)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::Replace { path: dir.join(name), source });
            }
            _ => {}
        }
    }
    sync(dir)?;
    let trials = has_trials.then(|| dir.join(TRIALS));
    let [json, figures, csv, html] = [JSON, FIGURES, CSV, HTML].map(|name| dir.join(name));
    Ok(Written { json, figures, csv, trials, html })
}

/// Writes a comparison and its page, `comparison.json` and `comparison.html`; settings have the names that `words` gives
/// them. Returns the page's path.
///
/// # Errors
/// As [`write_dir`].
pub fn write_comparison_in(
    comparison: &Comparison,
    (a, b): (&[Named<'_>], &[Named<'_>]),
    dir: &Path,
    words: Words,
) -> Result<PathBuf, StoreError> {
    let dir = &made(dir, &[COMPARISON, COMPARISON_PAGE])?;
    // Serialising a comparison cannot fail, as of a report.
    let data = serde_json::to_string_pretty(comparison).unwrap_or_default() + "\n";
    put(dir, vec![(COMPARISON, data), (COMPARISON_PAGE, html::comparison(comparison, a, b))], words)?;
    sync(dir)?;
    Ok(dir.join(COMPARISON_PAGE))
}

/// Puts files with these contents into a folder, all or, where one cannot be written, none.
fn put(dir: &Path, contents: Vec<(&str, String)>, words: Words) -> Result<(), StoreError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Write { path, source }
    };
    let mut ready = Vec::with_capacity(contents.len());
    for (name, content) in contents {
        let path = dir.join(name);
        let mut file = temporary(dir).map_err(failed(&path))?;
        if let Ok(replaced) = fs::symlink_metadata(&path) {
            place::take_over(file.as_file(), &replaced).map_err(failed(&path))?;
        }
        file.write_all(words(&content).as_bytes()).map_err(failed(&path))?;
        file.as_file().sync_all().map_err(failed(&path))?;
        ready.push((path, file));
    }
    for (path, file) in ready {
        file.persist(&path).map_err(|e| StoreError::Replace { path, source: e.error })?;
    }
    Ok(())
}

/// The renames last only once the folder itself is on disk.
fn sync(dir: &Path) -> Result<(), StoreError> {
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    synced.map_err(|source| StoreError::Replace { path: dir.to_owned(), source })
}

/// Reads a report from a folder, a `result.json` or a `report.html`.
///
/// # Errors
/// That nothing is there that can be read, or that it is no report.
pub fn read(path: &Path) -> Result<Report, StoreError> {
    let path = match path.is_dir() {
        true if matches!(path.join(JSON).try_exists(), Ok(false)) => {
            return Err(StoreError::NoResult { dir: path.to_owned() });
        }
        true => path.join(JSON),
        false => path.to_owned(),
    };
    let unreadable = |source| StoreError::Read { path: path.clone(), source };
    let file = File::open(&path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(LARGEST_READ + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LARGEST_READ {
        return Err(StoreError::TooLarge { path });
    }
    let is_page = text.trim_start().starts_with('<');
    let report = if is_page { html::embedded_report(&text) } else { json::from_str(&text) };
    report.map_err(|source| StoreError::Content { path, source })
}

/// A file in `dir` that vanishes unless it is renamed. Readable as the umask allows, not only by its owner:
/// netdyno often runs as root for a user who then opens the page.
fn temporary(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".netdyno-report-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(dir)
}

/// An earlier report's file may be replaced, anything else may not.
fn refuse_foreign(path: &Path) -> Result<(), StoreError> {
    let unreadable = |source| StoreError::Read { path: path.to_owned(), source };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(unreadable(e)),
    };
    if !metadata.is_file() {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    // Not what another user put into a folder that all may write to.
    place::resolve(path).map_err(unreadable)?;
    let mut head = Vec::new();
    File::open(path).and_then(|f| f.take(512).read_to_end(&mut head)).map_err(unreadable)?;
    let head = String::from_utf8_lossy(&head);
    let marks = [
        "\"schema\": \"netdyno.report/",
        "\"schema\": \"netdyno.compare/",
        html::GENERATOR,
        "start_ns,end_ns,intended_frames,",
        "trial,part,stage,",
        "from,to,outcome,",
        csv::FIGURES_HEADER,
        // As it was before names stood behind values.
        "figure,name,value,unit,",
    ];
    if marks.iter().any(|mark| head.contains(mark)) {
        Ok(())
    } else {
        Err(StoreError::Foreign { path: path.to_owned() })
    }
}
