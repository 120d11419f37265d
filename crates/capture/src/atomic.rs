//! A file that appears under its name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file being written under a temporary name in its own folder. [`finish`](Self::finish) gives it its name, in
/// one step that replaces what was there; dropping it unfinished removes it. What is not a regular file
/// (`/dev/null`, a pipe) is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// Temporary and final name; `None` once finished, and where the file is written directly.
    names: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Starts the file that will be `path`.
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A link stays a link: what it points to is replaced.
        let path = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        match fs::metadata(&path) {
            Ok(data) if data.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(data) if !data.is_file() => {
                return Ok(AtomicFile { file: OpenOptions::new().write(true).open(&path)?, names: None });
            }
            // Renaming asks nothing of the old file's permissions; a user who may not write it expects to be told.
            Ok(data) if data.permissions().readonly() => return Err(ErrorKind::PermissionDenied.into()),
            _ => {}
        }
        let Some(name) = path.file_name() else { return Err(ErrorKind::InvalidFilename.into()) };
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut temporary = std::ffi::OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}-{number}.part", std::process::id()));
            let temporary = path.with_file_name(temporary);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => return Ok(AtomicFile { file, names: Some((temporary, path)) }),
                // Left behind by a killed process with our number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((temporary, name)) = self.names.take()
            && let Err(error) = fs::rename(&temporary, name)
        {
            let _ = fs::remove_file(temporary);
            return Err(error);
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.names {
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_appears_only_when_finished_and_nothing_is_left_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        fs::write(&path, "old").unwrap();
        let entries = || fs::read_dir(folder.path()).unwrap().count();

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), entries()), (&b"old"[..], 2));
        drop(file);
        assert_eq!((fs::read(&path).unwrap().as_slice(), entries()), (&b"old"[..], 1));

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), entries()), (&b"new"[..], 1));
    }

    #[test]
    fn a_link_keeps_pointing_and_devices_are_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        AtomicFile::create(&link).unwrap().finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"");

        AtomicFile::create(Path::new("/dev/null")).unwrap().finish().unwrap();
        assert!(AtomicFile::create(folder.path()).is_err());
        assert!(AtomicFile::create(&folder.path().join("none/out.pcap")).is_err());
    }
}
