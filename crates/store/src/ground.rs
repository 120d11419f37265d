//! What files are written on: a file that can be cut where what is whole ends, or a pipe that may have no reader yet.

use capture::AtomicFile;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that wait for a named pipe's first reader.
const MOST_WAITING: usize = 64 << 20;

#[derive(Debug)]
struct Inside {
    path: PathBuf,
    /// `None`: a named pipe that nobody has opened to read.
    file: Option<AtomicFile>,
    waiting: Vec<u8>,
    /// Bytes that the file has.
    written: u64,
    /// What is still to come is thrown away.
    closed: bool,
}

impl Inside {
    /// Opens a pipe that has a reader now, and writes what waited for it.
    fn open(&mut self) -> io::Result<bool> {
        if self.file.is_none() {
            let Some(mut file) = AtomicFile::create_if_read(&self.path)? else { return Ok(false) };
            file.write_all(&self.waiting)?;
            self.written += self.waiting.len() as u64;
            self.waiting = Vec::new();
            self.file = Some(file);
        }
        Ok(true)
    }
}

fn no_reader() -> io::Error {
    io::Error::other("nobody opened the pipe to read it")
}

/// A file or pipe; copies are the same one.
#[derive(Debug, Clone)]
pub struct Ground(Arc<Mutex<Inside>>);

impl Ground {
    /// A file that has its name when it is finished; what is no file is written directly. Does not wait for who reads a pipe.
    pub fn create(path: &Path) -> io::Result<Ground> {
        let file = AtomicFile::create_if_read(path)?;
        Ok(Ground::of(path, file))
    }

    pub fn stdout() -> io::Result<Ground> {
        Ok(Ground::of(Path::new("-"), Some(AtomicFile::stdout()?)))
    }

    fn of(path: &Path, file: Option<AtomicFile>) -> Ground {
        let (path, waiting) = (path.to_owned(), Vec::new());
        Ground(Arc::new(Mutex::new(Inside { path, file, waiting, written: 0, closed: false })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing is written any more by other copies of it.
    #[cfg(feature = "parquet")]
    pub fn close(&self) -> Ground {
        self.with(|inside| {
            inside.closed = true;
            let (file, waiting) = (inside.file.take(), std::mem::take(&mut inside.waiting));
            let (path, written) = (inside.path.clone(), inside.written);
            Ground(Arc::new(Mutex::new(Inside { path, file, waiting, written, closed: false })))
        })
    }

    /// Cuts a file behind so many bytes; what went into a pipe stays there.
    pub fn cut(&self, bytes: u64) {
        self.with(|inside| {
            let more = inside.written.saturating_sub(bytes);
            if more > 0 && inside.file.as_mut().is_some_and(|file| file.take_back(more).is_ok()) {
                inside.written = bytes;
            }
        });
    }

    /// Whether what waited has been written.
    #[cfg(test)]
    pub fn is_open(&self) -> bool {
        self.with(|inside| inside.file.is_some())
    }

    /// Bytes that it has.
    pub fn written(&self) -> u64 {
        self.with(|inside| inside.written + inside.waiting.len() as u64)
    }

    /// Gives it its name, or, unless that is to be replaced, one beside it if it is taken.
    pub fn finish(self, replace: bool) -> io::Result<()> {
        let file = self.with(|inside| {
            if !inside.open()? {
                return Err(no_reader());
            }
            inside.file.take().ok_or_else(no_reader)
        })?;
        if replace { file.finish() } else { file.finish_beside() }
    }
}

impl Write for Ground {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|inside| {
            if inside.closed {
                return Err(io::Error::other("it failed before"));
            }
            if !inside.open()? {
                if inside.waiting.len() + bytes.len() > MOST_WAITING {
                    return Err(no_reader());
                }
                inside.waiting.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            let count = inside.file.as_mut().map_or(Err(no_reader()), |file| file.write(bytes))?;
            inside.written += count as u64;
            Ok(count)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(|inside| match inside.closed {
            true => Ok(()),
            false => inside.open().map(|_| ()),
        })
    }
}
