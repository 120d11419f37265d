//! A capture that grows while it is taken: one pcapng file, or several in turn of which the last ones stay.
//!
//! ```text
//!   out.pcapng                          one file, or
//!   out-20261126T013000Z.pcapng         by when each began; out-20261126T013000Z-2.pcapng if that name is taken
//! ```
//!
//! Other files appear when they are whole. These are for looking at meanwhile, and what was captured until something broke is what
//! they are for: they grow under their own names, by whole blocks, so that a file is readable at any time.

use crate::error::CaptureError;
use crate::writer::{Section, Statistics, Writer};
use crate::{AtomicFile, Interface};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So much waits in memory at most,
const MOST_WAITING: usize = 128 * 1024;
/// and for so long.
const FLUSH: Duration = Duration::from_millis(200);
/// Files that begin within the same second.
const MOST_OF_A_SECOND: u32 = 100_000;

/// Which files there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The file, or what names of several begin with; `-` is standard output.
    pub path: PathBuf,
    /// A new one after so long.
    pub rotate: Option<Duration>,
    /// A new one when one has so many bytes.
    pub rotate_size: Option<u64>,
    /// Of several so many stay, the latest.
    pub files: Option<u32>,
}

impl Plan {
    fn rotates(&self) -> bool {
        self.rotate.is_some() || self.rotate_size.is_some()
    }

    fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// The name of the `number`-th file that begins in the second of `ns`.
    fn name(&self, ns: u64, number: u32) -> PathBuf {
        let stamp = report::units::rfc3339(ns / 1_000_000_000).replace(['-', ':'], "");
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let behind = if number > 1 { format!("-{number}") } else { String::new() };
        let name = format!("{}-{stamp}{behind}.{}", text(self.path.file_stem()), text(self.path.extension()));
        self.path.with_file_name(name)
    }
}

/// A capture that is being taken.
#[derive(Debug)]
pub struct Ongoing {
    plan: Plan,
    section: Section,
    interfaces: Vec<Interface>,
    writer: Writer<AtomicFile>,
    /// Those that are there, the latest last.
    files: VecDeque<PathBuf>,
    begun: u32,
    /// Of the file that is written.
    since: Instant,
    since_ns: u64,
    length: u64,
    flushed: Instant,
    /// Packets of each interface that were taken and did not get into the file, with their bytes, since that was last asked.
    lost: Vec<(u64, u64)>,
}

impl Ongoing {
    /// Begins the first file, at `now` (nanoseconds since 1970).
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(
        plan: Plan,
        section: Section,
        interfaces: Vec<Interface>,
        now: u64,
    ) -> Result<Ongoing, CaptureError> {
        let mut files = VecDeque::new();
        let writer = open(&plan, &section, &interfaces, now, &mut files)?;
        let since = Instant::now();
        let mut ongoing = Ongoing {
            plan,
            section,
            interfaces,
            writer,
            files,
            begun: 1,
            since,
            since_ns: now,
            length: 0,
            flushed: since,
            lost: Vec::new(),
        };
        // Whoever reads it meanwhile sees at once what it is.
        ongoing.flush()?;
        Ok(ongoing)
    }

    /// A packet of an interface: its time since 1970, how it begins, its length on the wire, and what is to be said of it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(
        &mut self,
        interface: u32,
        time_ns: u64,
        data: &[u8],
        wire_len: u32,
        comment: Option<&str>,
    ) -> Result<(), CaptureError> {
        match comment {
            None => self.writer.write_on(interface, time_ns, data, wire_len)?,
            Some(comment) => self.writer.write_noted(interface, time_ns, data, wire_len, comment)?,
        }
        if self.writer.waiting() >= MOST_WAITING {
            self.flush()?;
        }
        if self.plan.rotate_size.is_some_and(|most| self.length + self.writer.waiting() as u64 >= most) {
            self.next_file(time_ns)?;
        }
        Ok(())
    }

    /// To be called often: what waits is written, and a file whose time is over ends.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn tick(&mut self, now: u64) -> Result<(), CaptureError> {
        if self.plan.rotate.is_some_and(|length| self.since.elapsed() >= length) {
            self.next_file(now)?;
        }
        if self.writer.waiting() > 0 && (self.plan.is_stdout() || self.flushed.elapsed() >= FLUSH) {
            self.flush()?;
        }
        Ok(())
    }

    /// Files that were begun, and those of them that are there.
    pub fn files(&self) -> (u32, Vec<PathBuf>) {
        (self.begun, self.files.iter().cloned().collect())
    }

    /// Ends the last file. `told` is what became of each interface's packets.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self, told: &[Statistics]) -> Result<(), CaptureError> {
        for (interface, told) in (0..).zip(told) {
            self.writer.statistics(interface, told);
        }
        self.flush()
    }

    /// Writes what waits: the file is whole as it is, but for what is said at its end.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.flushed = Instant::now();
        self.length += self.writer.waiting() as u64;
        let flushed = self.writer.flush();
        if flushed.is_err() {
            self.mend();
        }
        flushed
    }

    /// After a failed write: the file ends behind its last whole block, and what did not get into it is known.
    fn mend(&mut self) {
        let Some((torn, file)) = self.writer.take_torn() else { return };
        // Of a pipe nothing can be taken back.
        let _ = file.take_back(torn.behind);
        self.length = self.length.saturating_sub(torn.behind);
        if self.lost.len() < torn.lost.len() {
            self.lost.resize(torn.lost.len(), (0, 0));
        }
        for ((packets, bytes), (more, of)) in self.lost.iter_mut().zip(torn.lost) {
            *packets += more;
            *bytes += of;
        }
    }

    /// Packets of each interface that were taken ([`write`](Self::write)) and could not be written, with their captured bytes,
    /// since this was last asked.
    pub fn take_lost(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.lost)
    }

    fn next_file(&mut self, now: u64) -> Result<(), CaptureError> {
        self.flush()?;
        while self.plan.files.is_some_and(|most| self.files.len() as u64 >= u64::from(most.max(1))) {
            let Some(oldest) = self.files.pop_front() else { break };
            // Whoever took it away has saved us the work.
            let _ = std::fs::remove_file(oldest);
        }
        self.writer =
            open(&self.plan, &self.section, &self.interfaces, now.max(self.since_ns), &mut self.files)?;
        self.begun += 1;
        (self.since, self.since_ns, self.length) = (Instant::now(), now, 0);
        Ok(())
    }
}

/// Begins a file, and puts its name to `files`.
fn open(
    plan: &Plan,
    section: &Section,
    interfaces: &[Interface],
    now: u64,
    files: &mut VecDeque<PathBuf>,
) -> Result<Writer<AtomicFile>, CaptureError> {
    let failed = |path: &Path, source| CaptureError::writing(path.display().to_string(), source);
    let (file, path) = if plan.is_stdout() {
        (AtomicFile::stdout().map_err(|error| failed(&plan.path, error))?, plan.path.clone())
    } else if plan.rotates() {
        let mut number = 1;
        loop {
            let path = plan.name(now, number);
            match AtomicFile::growing(&path, true) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_OF_A_SECOND => {
                    number += 1
                }
                opened => break (opened.map_err(|error| failed(&path, error))?, path),
            }
        }
    } else {
        let opened = AtomicFile::growing(&plan.path, false);
        (opened.map_err(|error| failed(&plan.path, error))?, plan.path.clone())
    };
    let mut writer = Writer::of_section(file, section).named(path.display().to_string());
    files.push_back(path);
    for interface in interfaces {
        writer.add_interface(interface)?;
    }
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    fn frames(path: &Path) -> Vec<u64> {
        let (mut reader, mut times) = (Reader::open(path).unwrap(), Vec::new());
        while let Some(record) = reader.next_record().unwrap() {
            times.push(record.time_ns);
        }
        times
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_readable_while_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcapng");
        let plan = Plan { path: path.clone(), ..Plan::default() };
        let section = Section { comment: "a test".to_owned(), ..Section::default() };
        let mut ongoing = Ongoing::begin(plan, section, vec![Interface::default()], 5).unwrap();
        assert_eq!(frames(&path), [0u64; 0]);
        ongoing.write(0, 7, &[1; 61], 61, None).unwrap();
        ongoing.write(0, 8, &[2; 61], 90, Some("lost")).unwrap();
        std::thread::sleep(FLUSH);
        ongoing.tick(9).unwrap();
        assert_eq!(frames(&path), [7, 8]);
        ongoing.finish(&[Statistics { begun_ns: 5, ended_ns: 9, received: 3, dropped: 1 }]).unwrap();
        drop(ongoing);
        assert_eq!(frames(&path), [7, 8]);
    }

    #[test]
    fn of_several_files_the_last_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcapng");
        let plan = Plan { path, rotate_size: Some(900), files: Some(2), ..Plan::default() };
        let second = 1_000_000_000;
        let mut ongoing = Ongoing::begin(plan, Section::default(), vec![Interface::default()], 0).unwrap();
        for number in 0..5 {
            ongoing.write(0, number * second, &[0; 900], 900, None).unwrap();
        }
        ongoing.finish(&[]).unwrap();
        assert_eq!(ongoing.files().0, 6);
        let names = names(folder.path());
        assert_eq!(names, ["out-19700101T000003Z.pcapng", "out-19700101T000004Z.pcapng"]);
        assert_eq!(frames(&folder.path().join(&names[0])), [4 * second]);
    }
}
