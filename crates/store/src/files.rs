//! Files of rows: one, or a new one after some time or some bytes, in folders by day and hour if asked for.
//!
//! ```text
//!   flows.parquet                                                   all in one
//!   flows-20261124T013000Z.parquet                                  rotated: by when its first row may have come
//!   date=2026-11-24/hour=01/flows-20261124T013000Z.parquet          partitioned, as DuckDB, Spark and pyarrow read it
//! ```
//!
//! A file has its name when it is whole, and no file that is there is replaced by a rotated one. One that cannot be written to its end
//! (the disk is full, a pipe's reader is gone) keeps the rows that are whole in it.

use crate::ground::Ground;
use crate::parquet::{self, Parquet};
use crate::{Kept, Row, Sink, protobuf, text};
use capture::AtomicFile;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file is kept open for so long after its time is over: rows come through queues.
const GRACE: Duration = Duration::from_secs(3);
/// After a fault a rotated file is begun anew no earlier than this.
const PAUSE: Duration = Duration::from_secs(2);
/// Files that are open at once, of rows whose times differ.
const MOST_OPEN: usize = 4;
const SECOND: u64 = 1_000_000_000;

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
    Bytes(Lines),
    Columns(Box<Parquet>),
}

/// Rows one behind the other, as bytes.
#[derive(Debug)]
struct Lines {
    form: Form,
    ground: Ground,
    /// What waits to be written, and where each of its rows ends.
    waiting: Vec<u8>,
    ends: Vec<usize>,
    /// Rows that are written whole.
    rows: u64,
    scratch: Vec<u8>,
}

/// So many bytes are written at once.
const AT_ONCE: usize = 1 << 18;

impl Lines {
    fn write(&mut self, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            match self.form {
                Form::Csv => text::csv(row, &mut self.waiting),
                Form::Protobuf => protobuf::write(row, &mut self.scratch, &mut self.waiting),
                Form::Lines | Form::Parquet => text::json(row, &mut self.waiting),
            }
            self.ends.push(self.waiting.len());
        }
        if self.waiting.len() >= AT_ONCE { self.flush() } else { Ok(()) }
    }

    /// Writes what waits. If that fails, the file ends behind the last row that is whole.
    fn flush(&mut self) -> io::Result<()> {
        let mut at = 0;
        let written = loop {
            let rest = self.waiting.get(at..).unwrap_or_default();
            if rest.is_empty() {
                break self.ground.flush();
            }
            match self.ground.write(rest) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let whole = self.ends.partition_point(|end| *end <= at);
        self.rows += whole as u64;
        if written.is_err() {
            let end = whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
            self.ground.cut(self.ground.written().saturating_sub((at - end.min(at)) as u64));
        }
        self.waiting.clear();
        self.ends.clear();
        written
    }
}

impl Encoder {
    fn create(form: Form, path: &Path) -> io::Result<Encoder> {
        let ground = if is_stdout(path) { Ground::stdout()? } else { Ground::create(path)? };
        if form == Form::Parquet {
            return Ok(Encoder::Columns(Box::new(Parquet::create(ground)?)));
        }
        let (waiting, ends, scratch) = (Vec::with_capacity(AT_ONCE), Vec::new(), Vec::new());
        let mut lines = Lines { form, ground, waiting, ends, rows: 0, scratch };
        if form == Form::Csv {
            text::head(&mut lines.waiting);
        }
        Ok(Encoder::Bytes(lines))
    }

    fn write(&mut self, rows: &[Row]) -> io::Result<()> {
        match self {
            Encoder::Bytes(lines) => lines.write(rows),
            Encoder::Columns(parquet) => parquet.write(rows),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Bytes(lines) => lines.flush(),
            Encoder::Columns(_) => Ok(()),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Encoder::Bytes(lines) => lines.ground.written() + lines.waiting.len() as u64,
            Encoder::Columns(parquet) => parquet.size(),
        }
    }

    /// Makes it a whole file under its name, or, if that is taken, one beside it. How many rows are in it, and what went wrong.
    fn finish(mut self, replace: bool) -> (u64, io::Result<()>) {
        let ended = match &mut self {
            Encoder::Bytes(lines) => lines.flush(),
            Encoder::Columns(parquet) => parquet.end(),
        };
        match ended {
            Ok(()) => {
                let (rows, ground) = match self {
                    Encoder::Bytes(lines) => (lines.rows, lines.ground),
                    Encoder::Columns(parquet) => parquet.ended(),
                };
                match ground.finish(replace) {
                    Ok(()) => (rows, Ok(())),
                    Err(error) => (0, Err(error)),
                }
            }
            Err(error) => (self.salvage(replace), Err(error)),
        }
    }

    /// Of one that failed, what is whole becomes a file, if there is any. How many rows that are.
    fn salvage(self, replace: bool) -> u64 {
        let (rows, ground) = match self {
            Encoder::Bytes(lines) => (lines.rows, lines.ground),
            Encoder::Columns(parquet) => match parquet.salvage() {
                Some(saved) => saved,
                None => return 0,
            },
        };
        if rows > 0 && ground.finish(replace).is_ok() { rows } else { 0 }
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
}

impl Files {
    /// Begins: a single file is there at once, under a temporary name, and a folder is tried.
    ///
    /// # Errors
    /// That nothing can be written there.
    pub fn create(plan: Plan) -> io::Result<Files> {
        if plan.form == Form::Parquet && !parquet::HERE {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("{}; or write .csv, .jsonl or .pb", report::absent("Parquet", "parquet")),
            ));
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
        Ok(Files { plan, open, pause: None, over: false, kept: Kept::default() })
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
        let (rows, ended) = open.of.finish(!self.plan.rotates());
        self.kept.records += rows;
        if let Err(error) = ended {
            self.failed((rows, open.rows), &open.name, &error);
        }
    }

    /// A file cannot be written any more: what is whole of it stays. So many rows more were to go into it.
    fn give_up(&mut self, at: usize, more: u64, error: &io::Error) {
        let open = self.open.remove(at);
        let rows = open.of.salvage(!self.plan.rotates());
        self.kept.records += rows;
        self.failed((rows, open.rows + more), &open.name, error);
    }

    /// Of all rows of a file so many are whole.
    fn failed(&mut self, (whole, all): (u64, u64), name: &Path, error: &io::Error) {
        self.kept.fail(all.saturating_sub(whole), || {
            let kept = match whole {
                0 => "none of its records is kept".to_owned(),
                whole => format!("it ends behind its first {}", report::units::counted(whole, "record")),
            };
            format!("writing {}: {error}; {kept}", name.display())
        });
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
        match open.of.write(rows) {
            Ok(()) => {
                open.rows += count;
                if self.plan.size.is_some_and(|size| open.of.size() >= size) {
                    self.end(at);
                }
            }
            Err(error) => self.give_up(at, count, &error),
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
            self.give_up(at, 0, &error);
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
