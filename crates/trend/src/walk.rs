//! The files in a folder that may be results.

use crate::read::{LeftOut, Why};
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Folders within folders are looked into as far as this.
const DEEPEST: usize = 8;
/// What `--report` writes.
pub(crate) const RESULT: &str = "result.json";
/// At the begin of each result.
const MARK: &[u8] = b"\"netdyno.report/";

/// A file that may be a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its path within the folder.
    pub name: PathBuf,
    pub seen: Seen,
}

/// What tells whether a file is still what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub size: u64,
    pub modified_ns: i128,
}

impl Seen {
    pub fn of(data: &Metadata) -> Seen {
        Seen {
            size: data.len(),
            modified_ns: i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec()),
        }
    }
}

/// All of them in the order of their names, and what could not be looked at. JSON of others is passed over, and counted.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub found: Vec<Found>,
    pub left_out: Vec<LeftOut>,
    pub foreign: usize,
    seen: BTreeSet<(u64, u64)>,
}

/// # Errors
/// That the folder itself cannot be read.
pub(crate) fn walk(folder: &Path) -> io::Result<Walked> {
    let mut walked = Walked::default();
    fs::read_dir(folder)?;
    walked.look_into(folder, Path::new(""), 0);
    walked.found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(walked)
}

impl Walked {
    fn look_into(&mut self, root: &Path, within: &Path, depth: usize) {
        let at = root.join(within);
        let listed = fs::metadata(&at).and_then(|data| Ok((data, fs::read_dir(&at)?)));
        let (data, list) = match listed {
            Ok(listed) => listed,
            Err(error) => return self.unreadable(within, &error),
        };
        // A link may lead back to where we came from.
        if !self.seen.insert((data.dev(), data.ino())) {
            return;
        }
        if depth > DEEPEST {
            let why = format!("folders are looked into {DEEPEST} deep; name one further down");
            self.left_out.push(LeftOut::new(within, Why::Unreadable, why));
            return;
        }
        for item in list {
            match item {
                Ok(item) => self.item(root, &within.join(item.file_name()), depth),
                Err(error) => self.unreadable(within, &error),
            }
        }
    }

    fn item(&mut self, root: &Path, name: &Path, depth: usize) {
        let own = name.file_name().unwrap_or_default();
        let is_result = own == RESULT;
        let hidden = own.as_encoded_bytes().first() == Some(&b'.');
        let data = match fs::metadata(root.join(name)) {
            Ok(data) => data,
            // A link to nothing is no result, unless it is called so.
            Err(error) if is_result => return self.unreadable(name, &error),
            Err(_) => return,
        };
        if data.is_dir() && !hidden {
            return self.look_into(root, name, depth + 1);
        }
        let is_json = name.extension().is_some_and(|end| end == "json");
        if !is_json || hidden {
            return;
        }
        // A pipe would be waited for.
        if !data.is_file() {
            let kind = if data.file_type().is_fifo() { "a pipe" } else { "no file" };
            self.left_out.push(LeftOut::new(name, Why::Unreadable, format!("it is {kind}")));
            return;
        }
        if is_result || is_marked(&root.join(name)) {
            self.found.push(Found { name: name.to_owned(), seen: Seen::of(&data) });
        } else {
            self.foreign += 1;
        }
    }

    fn unreadable(&mut self, name: &Path, error: &io::Error) {
        self.left_out.push(LeftOut::new(name, Why::Unreadable, error.to_string()));
    }
}

/// Whether a file says of itself that it is a result. One that cannot be read may be one: it is named later.
fn is_marked(path: &Path) -> bool {
    let mut head = Vec::new();
    match File::open(path).and_then(|file| file.take(512).read_to_end(&mut head)) {
        Ok(_) => head.windows(MARK.len()).any(|part| part == MARK),
        Err(_) => true,
    }
}
