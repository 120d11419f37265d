//! Files of rows: one, or a new one after some time or some bytes, in folders by day and hour if asked for.
//!
//! ```text
//!   flows.parquet                                                   all in one
//!   flows-20261124T013000Z.parquet                                  rotated: by when its first row may have come
//!   date=2026-11-24/hour=01/flows-20261124T013000Z.parquet          partitioned, as DuckDB, Spark and pyarrow read it
//! ```
//!
//! A file has its name when it is whole, and no file that is there is replaced by a rotated one.

use crate::parquet::{self, Parquet};
use crate::{Kept, Row, Sink, protobuf, text};
use capture::AtomicFile;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file is kept open for so long after its time is over: rows come through queues.
const GRACE: Duration = Duration::from_secs(3);
/// After a fault a rotated file is begun anew no earlier than this.
const PAUSE: Duration = Duration::from_secs(2);
/// Files that are open at once, of rows whose times differ.
const MOST_OPEN: usize = 4;
const SECOND: u64 = 1_000_000_000;
/// Of a build without Parquet.
const ABSENT: &str = "this netdyno was built without Parquet, as `make demo` builds it: write .csv, .jsonl or .pb, or use one that \
                      `make build` makes (cargo feature `parquet`)";

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines of values with commas between them.
    Csv,
    /// A JSON object a line.
    Lines,
    /// goflow2's messages, each behind its length.
    Protobuf,
    /// Parquet, by zstd.
    Parquet,
}

/// What folders are by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// `date=2026-11-24`
    Day,
    /// `date=2026-11-24/hour=01`
    Hour,
}

/// Which files rows go to.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file, or what the files' names begin with.
    pub path: PathBuf,
    /// What is in it.
    pub form: Form,
    /// A new file when so much time has begun, counted from 1970; at least a second.
    pub every: Option<Duration>,
    /// A new file when one has so many bytes.
    pub size: Option<u64>,
    /// In folders.
    pub partition: Option<Partition>,
}

/// `-.pb` and the like.
fn is_stdout(path: &Path) -> bool {
    path.parent() == Some(Path::new("")) && path.file_stem().is_some_and(|stem| stem == "-")
}

impl Form {
    /// By a file's ending; `-` and an ending is standard output in that form.
    pub fn of(path: &Path) -> Option<Form> {
        Some(match path.extension()?.to_str()? {
            "csv" => Form::Csv,
            "jsonl" | "json" | "ndjson" => Form::Lines,
            "pb" => Form::Protobuf,
            "parquet" => Form::Parquet,
            _ => return None,
        })
    }
}

/// Times that go into one file: which span, and which folder's. Without either all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    span: u64,
    folder: u64,
}

impl Plan {
    fn rotates(&self) -> bool {
        self.every.is_some() || self.size.is_some() || self.partition.is_some()
    }

    fn span_ns(&self) -> Option<u64> {
        self.every.map(|every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(SECOND))
    }

    fn folder_ns(&self) -> Option<u64> {
        self.partition.map(|partition| match partition {
            Partition::Day => 86_400 * SECOND,
            Partition::Hour => 3600 * SECOND,
        })
    }

    fn slot(&self, ns: u64) -> Slot {
        let part = |length: Option<u64>| length.map_or(0, |length| ns / length);
        Slot { span: part(self.span_ns()), folder: part(self.folder_ns()) }
    }

    /// When a slot's time is over.
    fn end_ns(&self, slot: Slot) -> u64 {
        let end = |number: u64, length: Option<u64>| {
            length.map_or(u64::MAX, |length| (number + 1).saturating_mul(length))
        };
        end(slot.span, self.span_ns()).min(end(slot.folder, self.folder_ns()))
    }

    /// The file of a slot that begins with a row of `ns`.
    fn name(&self, slot: Slot, ns: u64) -> PathBuf {
        if !self.rotates() {
            return self.path.clone();
        }
        let begin = |number: u64, length: Option<u64>| number.saturating_mul(length.unwrap_or(0));
        let mut path = self.path.parent().unwrap_or(Path::new("")).to_owned();
        if let Some(partition) = self.partition {
            let at = begin(slot.folder, self.folder_ns());
            let date = report::units::rfc3339(at / SECOND);
            path.push(format!("date={}", date.get(..10).unwrap_or_default()));
            if partition == Partition::Hour {
                path.push(format!("hour={}", date.get(11..13).unwrap_or_default()));
            }
        }
        // Without a span by when it really begins.
        let from = match self.span_ns() {
            Some(_) => begin(slot.span, self.span_ns()).max(begin(slot.folder, self.folder_ns())),
            None => ns,
        };
        let stamp = report::units::rfc3339(from / SECOND).replace(['-', ':'], "");
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        path.push(format!("{}-{stamp}.{}", text(self.path.file_stem()), text(self.path.extension())));
        path
    }
}

/// A file that is written.
#[derive(Debug)]
struct Open {
    slot: Slot,
    name: PathBuf,
    rows: u64,
    of: Encoder,
}

#[derive(Debug)]
enum Encoder {
    Bytes { file: BufWriter<AtomicFile>, form: Form, written: u64 },
    Columns(Box<Parquet<BufWriter<AtomicFile>>>),
}

impl Encoder {
    fn create(form: Form, path: &Path) -> io::Result<Encoder> {
        let file = if is_stdout(path) { AtomicFile::stdout()? } else { AtomicFile::create(path)? };
        let file = BufWriter::with_capacity(1 << 18, file);
        if form == Form::Parquet {
            return Ok(Encoder::Columns(Box::new(Parquet::create(file)?)));
        }
        let mut made = Encoder::Bytes { file, form, written: 0 };
        if form == Form::Csv {
            let mut head = Vec::new();
            text::head(&mut head);
            made.write_bytes(&head)?;
        }
        Ok(made)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Encoder::Bytes { file, written, .. } = self {
            file.write_all(bytes)?;
            *written += bytes.len() as u64;
        }
        Ok(())
    }

    fn write(&mut self, rows: &[Row], scratch: &mut [Vec<u8>; 2]) -> io::Result<()> {
        let form = match self {
            Encoder::Columns(parquet) => return parquet.write(rows),
            Encoder::Bytes { form, .. } => *form,
        };
        let [out, message] = scratch;
        out.clear();
        for row in rows {
            match form {
                Form::Csv => text::csv(row, out),
                Form::Protobuf => protobuf::write(row, message, out),
                Form::Lines | Form::Parquet => text::json(row, out),
            }
        }
        self.write_bytes(out)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Bytes { file, .. } => file.flush(),
            Encoder::Columns(_) => Ok(()),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Encoder::Bytes { written, .. } => *written,
            Encoder::Columns(parquet) => parquet.size(),
        }
    }

    /// Makes it a whole file under its name, or, if that is taken, one beside it.
    fn finish(self, replace: bool) -> io::Result<()> {
        let file = match self {
            Encoder::Bytes { file, .. } => file,
            Encoder::Columns(parquet) => parquet.finish()?,
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if replace { file.finish() } else { file.finish_beside() }
    }
}

/// Writes rows to files.
#[derive(Debug)]
pub struct Files {
    plan: Plan,
    open: Vec<Open>,
    /// Nothing is begun before this; what comes is lost.
    pause: Option<Instant>,
    /// A single file failed, or all is written.
    over: bool,
    kept: Kept,
    scratch: [Vec<u8>; 2],
}

impl Files {
    /// Begins: a single file is there at once, under a temporary name, and a folder is tried.
    ///
    /// # Errors
    /// That nothing can be written there.
    pub fn create(plan: Plan) -> io::Result<Files> {
        if plan.form == Form::Parquet && !parquet::HERE {
            return Err(io::Error::new(io::ErrorKind::Unsupported, ABSENT));
        }
        let mut open = Vec::new();
        if plan.rotates() {
            // Tried, and left again.
            drop(AtomicFile::create(&plan.path)?);
        } else {
            let slot = plan.slot(0);
            let of = Encoder::create(plan.form, &plan.path)?;
            open.push(Open { slot, name: plan.path.clone(), rows: 0, of });
        }
        Ok(Files { plan, open, pause: None, over: false, kept: Kept::default(), scratch: Default::default() })
    }

    fn begin(&mut self, slot: Slot, ns: u64) -> io::Result<usize> {
        while self.open.len() >= MOST_OPEN {
            self.end(0);
        }
        let name = self.plan.name(slot, ns);
        let of = name
            .parent()
            .filter(|folder| self.plan.partition.is_some() && !folder.as_os_str().is_empty())
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| Encoder::create(self.plan.form, &name));
        let of = of.inspect_err(|error| {
            self.kept.fail(0, || format!("writing {}: {error}", name.display()));
        })?;
        self.open.push(Open { slot, name, rows: 0, of });
        Ok(self.open.len() - 1)
    }

    /// Ends a file, whole.
    fn end(&mut self, at: usize) {
        let open = self.open.remove(at);
        match open.of.finish(!self.plan.rotates()) {
            Ok(()) => self.kept.records += open.rows,
            Err(error) => self.failed(open.rows, &open.name, &error),
        }
    }

    fn failed(&mut self, lost: u64, name: &Path, error: &io::Error) {
        self.kept.fail(lost, || format!("writing {}: {error}", name.display()));
        self.over |= !self.plan.rotates();
        self.pause = Some(Instant::now() + PAUSE);
    }

    fn take_of(&mut self, slot: Slot, rows: &[Row]) {
        let count = rows.len() as u64;
        if self.over || self.pause.is_some_and(|until| Instant::now() < until) {
            self.kept.lost += count;
            return;
        }
        self.pause = None;
        let first_ns = rows.first().map_or(0, |row| row.received_ns);
        let at = match self.open.iter().position(|open| open.slot == slot) {
            Some(at) => at,
            None => match self.begin(slot, first_ns) {
                Ok(at) => at,
                Err(_) => {
                    self.kept.lost += count;
                    self.pause = Some(Instant::now() + PAUSE);
                    return;
                }
            },
        };
        let Some(open) = self.open.get_mut(at) else { return };
        match open.of.write(rows, &mut self.scratch) {
            Ok(()) => {
                open.rows += count;
                if self.plan.size.is_some_and(|size| open.of.size() >= size) {
                    self.end(at);
                }
            }
            Err(error) => {
                // What is in it already goes with it: half a file is none.
                let open = self.open.remove(at);
                self.failed(open.rows + count, &open.name, &error);
            }
        }
    }
}

impl Sink for Files {
    fn take(&mut self, rows: &[Row]) {
        let plan = self.plan.clone();
        for rows in rows.chunk_by(|a, b| plan.slot(a.received_ns) == plan.slot(b.received_ns)) {
            let ns = rows.first().map_or(0, |row| row.received_ns);
            self.take_of(plan.slot(ns), rows);
        }
    }

    fn look(&mut self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let past = u64::try_from(now.saturating_sub(GRACE).as_nanos()).unwrap_or(u64::MAX);
        while let Some(at) = self.open.iter().position(|open| self.plan.end_ns(open.slot) <= past) {
            self.end(at);
        }
        // Whoever reads a pipe gets what came, however little it is.
        while let Some((at, error)) =
            self.open.iter_mut().enumerate().find_map(|(at, open)| Some((at, open.of.flush().err()?)))
        {
            let open = self.open.remove(at);
            self.failed(open.rows, &open.name, &error);
        }
    }

    fn finish(&mut self) {
        while !self.open.is_empty() {
            self.end(0);
        }
        self.over = true;
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

#[cfg(test)]
mod tests;
