//! What was read of results, kept beside them, so that a folder of thousands is looked at in no time.
//!
//! A file is read anew if its size or the time of its last change is another. The index has a check sum, and the keys of all figures
//! that the netdyno knew which wrote it. One that is damaged, or of another netdyno, is not used at all; it can be removed at any time.

use crate::entry::{Declared, Entry, Figure};
use crate::read::{Kept, Why};
use crate::walk::Seen;
use report::compare::{Better, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The index of a folder.
pub(crate) const NAME: &str = ".netdyno-trend";
const SCHEMA: &str = "netdyno.trend-index/2";
/// How each begins.
const HEAD: &[u8] = b"{\"schema\":\"netdyno.trend-index/";
/// An index of a million results is smaller.
const LARGEST: u64 = 1 << 30;

/// FNV-1a of 64 bits: it finds damage, and does not keep out who wants to deceive, who could write results as well.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What an index says, if it may be believed.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub kept: Vec<Kept>,
    /// Why it was not.
    pub damage: Option<String>,
}

/// Texts stand once, and are named by their numbers.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    schema: String,
    /// Which netdyno wrote it.
    of: String,
    texts: Vec<String>,
    figures: Vec<(usize, usize, Unit, Better)>,
    files: Vec<Row>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    path: String,
    size: u64,
    modified_ns: i128,
    digest: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<RowResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not: Option<(Why, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RowResult {
    started: Option<u64>,
    short: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    series: usize,
    label: usize,
    host: usize,
    conditions: Vec<(usize, usize)>,
    figures: Vec<(usize, f64)>,
}

/// The netdyno that reads and writes: results of the same files say something else to one that knows other figures.
fn this() -> String {
    let keys: Vec<&str> = report::get::keys().collect();
    format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), digest(keys.join(",").as_bytes()))
}

pub(crate) fn read(folder: &Path) -> Known {
    let mut text = String::new();
    let path = folder.join(NAME);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file());
    let read = || File::open(&path)?.take(LARGEST).read_to_string(&mut text);
    let damage = |what: &str| Known {
        kept: Vec::new(),
        damage: Some(format!("the index was {what}: all results were read again")),
    };
    match is_file.then(read) {
        None => return Known::default(),
        Some(Err(_)) => return damage("unreadable"),
        Some(Ok(_)) => {}
    }
    let Some((body, sum)) = text.trim_end().rsplit_once('\n') else { return damage("damaged") };
    if sum != format!("{:016x}", digest(body.as_bytes())) {
        return damage("damaged");
    }
    match serde_json::from_str::<Index>(body) {
        Ok(index) if index.schema == SCHEMA && index.of == this() => match kept(index) {
            Some(kept) => Known { kept, damage: None },
            None => damage("damaged"),
        },
        // Another netdyno's is no damage.
        _ => Known::default(),
    }
}

fn kept(index: Index) -> Option<Vec<Kept>> {
    let text = |at: usize| index.texts.get(at).cloned();
    let declared = |(key, name, unit, better): &(usize, usize, Unit, Better)| {
        Some(Declared { key: text(*key)?, name: text(*name)?, unit: *unit, better: *better })
    };
    let figures: Vec<Declared> = index.figures.iter().map(declared).collect::<Option<_>>()?;
    let figure = |(at, value): (usize, f64)| Some(Figure { of: figures.get(at)?.clone(), value });
    let entry = |row: RowResult| {
        let conditions = row.conditions.into_iter().map(|(name, value)| Some((text(name)?, text(value)?)));
        Some(Entry {
            started: row.started,
            short: row.short,
            failed: row.failed,
            series: text(row.series)?,
            label: text(row.label)?,
            host: text(row.host)?,
            conditions: conditions.collect::<Option<_>>()?,
            figures: row.figures.into_iter().map(figure).collect::<Option<_>>()?,
        })
    };
    let file = |row: Row| {
        Some(Kept {
            name: PathBuf::from(row.path),
            seen: Seen { size: row.size, modified_ns: row.modified_ns },
            digest: row.digest,
            what: match (row.result, row.not) {
                (Some(result), None) => Ok(entry(result)?),
                (None, Some(not)) => Err(not),
                _ => return None,
            },
        })
    };
    index.files.into_iter().map(file).collect()
}

/// Numbers of things, in the order in which they came first.
#[derive(Default)]
struct Numbers<T> {
    of: BTreeMap<T, usize>,
    all: Vec<T>,
}

impl<T: Ord + Clone> Numbers<T> {
    fn number(&mut self, of: &T) -> usize {
        if let Some(number) = self.of.get(of) {
            return *number;
        }
        self.of.insert(of.clone(), self.all.len());
        self.all.push(of.clone());
        self.all.len() - 1
    }
}

/// Whether nothing is there, or an index that netdyno wrote, damaged or not.
fn may_replace(path: &Path) -> io::Result<bool> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(true) };
    let mut head = Vec::new();
    if data.is_file() {
        File::open(path)?.take(HEAD.len() as u64).read_to_end(&mut head)?;
    }
    Ok(data.is_file() && (head.is_empty() || head == HEAD))
}

/// Writes it under another name, and gives it its own when it is whole.
///
/// # Errors
/// That it cannot be written; the one that was there stays.
pub(crate) fn write(folder: &Path, kept: &[Kept]) -> io::Result<()> {
    let mut texts = Numbers::<String>::default();
    let mut figures = Numbers::<(usize, usize, &str, bool)>::default();
    let mut declared = Vec::new();
    let mut files = Vec::new();
    for file in kept {
        // What cannot be read now may be read next time, with the same size and time.
        let Some(path) = file.name.to_str().filter(|_| !matches!(file.what, Err((Why::Unreadable, _))))
        else {
            continue;
        };
        let result = file.what.as_ref().ok().map(|entry| {
            let of = |figure: &Figure| {
                let Declared { key, name, unit, better } = &figure.of;
                let (key, name) = (texts.number(key), texts.number(name));
                let number = figures.number(&(key, name, unit.name(), *better == Better::Higher));
                if number == declared.len() {
                    declared.push((key, name, *unit, *better));
                }
                (number, figure.value)
            };
            let values = entry.figures.iter().map(of).collect();
            let conditions = entry
                .conditions
                .iter()
                .map(|(name, value)| (texts.number(name), texts.number(value)))
                .collect();
            RowResult {
                started: entry.started,
                short: entry.short,
                failed: entry.failed.clone(),
                series: texts.number(&entry.series),
                label: texts.number(&entry.label),
                host: texts.number(&entry.host),
                conditions,
                figures: values,
            }
        });
        files.push(Row {
            path: path.to_owned(),
            size: file.seen.size,
            modified_ns: file.seen.modified_ns,
            digest: file.digest,
            result,
            not: file.what.as_ref().err().cloned(),
        });
    }
    let index = Index { schema: SCHEMA.to_owned(), of: this(), texts: texts.all, figures: declared, files };
    let body = serde_json::to_string(&index)?;
    let whole = format!("{body}\n{:016x}\n", digest(body.as_bytes()));
    let folder = report::place::resolve_folder(folder)?;
    let path = folder.join(NAME);
    if !may_replace(&path)? {
        return Err(io::Error::other(format!("{} is there and is no index; remove it", path.display())));
    }
    let mut file = tempfile::Builder::new().prefix(".netdyno-trend-").tempfile_in(&folder)?;
    file.write_all(whole.as_bytes())?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
