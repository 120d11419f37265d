//! A file that appears under its name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, OFlags};

/// A file being written under a temporary name in its own folder. [`finish`](Self::finish) gives it its name, in
/// one step that replaces what was there; dropping it unfinished removes it. What a killed process left of one goes when the next
/// of that name begins. What is not a regular file
/// (`/dev/null`, a pipe) is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// Temporary and final name; `None` once finished, and where the file is written directly.
    names: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Starts the file that will be `path`.
    ///
    /// # Errors
    /// The folder cannot be written into.
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A link stays a link: what it points to is replaced.
        let path = report::place::resolve(path)?;
        let replaced = match look(&path) {
            Ok(data) if data.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(data) if !data.is_file() => {
                return Ok(AtomicFile { file: open_directly(&path, &data)?, names: None });
            }
            // Renaming asks nothing of the old file's permissions; a user who may not write it expects to be told.
            Ok(data) if data.permissions().readonly() => return Err(ErrorKind::PermissionDenied.into()),
            Ok(data) => Some(data),
            Err(_) => None,
        };
        let Some(name) = path.file_name() else { return Err(ErrorKind::InvalidFilename.into()) };
        sweep(&path, name);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut temporary = OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}-{number}.part", std::process::id()));
            let temporary = path.with_file_name(temporary);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            // What nobody else could read must not be readable meanwhile.
            if replaced.is_some() {
                options.mode(0o600);
            }
            match options.open(&temporary) {
                Ok(file) => {
                    // For as long as it is open: nobody takes it for one that was left behind. Not all file systems can.
                    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                    let made = AtomicFile { file, names: Some((temporary, path)) };
                    if let Some(replaced) = &replaced {
                        report::place::take_over(&made.file, replaced)?;
                    }
                    return Ok(made);
                }
                // Left behind by a killed process with our number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, but it does not wait: `None` of a named pipe that nobody has open to read.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create_if_read(path: &Path) -> io::Result<Option<AtomicFile>> {
        use std::os::unix::fs::FileTypeExt;
        let resolved = report::place::resolve(path)?;
        match look(&resolved) {
            Ok(data) if data.file_type().is_fifo() => {
                let file = match open_as(&resolved, &data, OFlags::NONBLOCK) {
                    Ok(file) => file,
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                        return Ok(None);
                    }
                    Err(error) => return Err(error),
                };
                // Whoever reads slowly is waited for.
                let flags = rustix::fs::fcntl_getfl(&file)?;
                rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
                Ok(Some(AtomicFile { file, names: None }))
            }
            _ => AtomicFile::create(path).map(Some),
        }
    }

    /// A file that grows under its own name, for who reads it meanwhile; what it had is gone. With `new` there must be none.
    ///
    /// # Errors
    /// It cannot be written, or there is one.
    pub fn growing(path: &Path, new: bool) -> io::Result<AtomicFile> {
        let path = report::place::resolve(path)?;
        if let Ok(data) = look(&path)
            && !data.is_file()
        {
            return match data.is_dir() {
                true => Err(ErrorKind::IsADirectory.into()),
                false => Ok(AtomicFile { file: open_directly(&path, &data)?, names: None }),
            };
        }
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        match new {
            true => options.create_new(true),
            false => options.create(true).truncate(true),
        };
        Ok(AtomicFile { file: options.open(&path)?, names: None })
    }

    /// Standard output, written directly.
    ///
    /// # Errors
    /// It is closed.
    pub fn stdout() -> io::Result<AtomicFile> {
        let file = io::stdout().as_fd().try_clone_to_owned()?.into();
        Ok(AtomicFile { file, names: None })
    }

    /// Shortens a file by so many of the bytes written last.
    ///
    /// # Errors
    /// It is no file, or cannot be shortened.
    pub fn take_back(&mut self, bytes: u64) -> io::Result<()> {
        use std::io::Seek;
        if bytes == 0 {
            return Ok(());
        }
        let end = self.file.stream_position()?.saturating_sub(bytes);
        self.file.set_len(end)?;
        self.file.seek(io::SeekFrom::Start(end)).map(|_| ())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// The last bytes cannot be written, or the file cannot be renamed; then nothing is left of it.
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

/// Takes away what killed processes left behind of files that were to have this name: of this user, written by nobody any more.
fn sweep(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let Some(process) = part_of(&entry.file_name(), name) else { continue };
        let path = entry.path();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        let Ok(file) = options.open(&path) else { continue };
        let is_ours = file.metadata().is_ok_and(|data| data.is_file() && data.uid() == user);
        // One that is being written is locked. The process is asked for, too, for where files cannot be locked.
        let is_left = !Path::new("/proc").join(process.to_string()).exists()
            && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_ours && is_left {
            let _ = fs::remove_file(path);
        }
    }
}

/// The process that writes or wrote this temporary file of a file of that name: `.NAME.PROCESS-NUMBER.part`.
fn part_of(entry: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = entry.as_bytes().strip_prefix(b".")?.strip_prefix(name.as_bytes())?.strip_prefix(b".")?;
    let (process, number) = std::str::from_utf8(rest.strip_suffix(b".part")?).ok()?.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

/// Whether a resolved path is still a link: one of the kernel's, to what has no name (`/dev/stdout`, where that is a pipe).
fn is_of_the_kernel(path: &Path) -> bool {
    path.starts_with("/proc")
}

fn look(path: &Path) -> io::Result<Metadata> {
    if is_of_the_kernel(path) { fs::metadata(path) } else { fs::symlink_metadata(path) }
}

/// Opens what is not a regular file, if it still is what was looked at: meanwhile another might have put a link there.
fn open_directly(path: &Path, seen: &Metadata) -> io::Result<File> {
    open_as(path, seen, OFlags::empty())
}

fn open_as(path: &Path, seen: &Metadata, flags: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let follows = if is_of_the_kernel(path) { OFlags::empty() } else { OFlags::NOFOLLOW };
    options.write(true).custom_flags((flags | follows).bits() as i32);
    let file = options.open(path)?;
    let data = file.metadata()?;
    if (data.dev(), data.ino()) != (seen.dev(), seen.ino()) {
        let what = format!("{} was replaced while it was opened; try again", path.display());
        return Err(io::Error::new(ErrorKind::PermissionDenied, what));
    }
    Ok(file)
}

impl AtomicFile {
    /// The same, but what has that name already stays: this then is `NAME-2.ENDING`, or with the next number that is free.
    ///
    /// # Errors
    /// As [`AtomicFile::finish`].
    pub fn finish_beside(mut self) -> io::Result<()> {
        const MOST: u32 = 100_000;
        self.file.flush()?;
        let Some((temporary, name)) = self.names.take() else { return Ok(()) };
        let part = |of: Option<&OsStr>| of.unwrap_or_default().to_owned();
        let (stem, ending) = (part(name.file_stem()), part(name.extension()));
        let mut free = name.clone();
        let mut number = 1;
        let ended = loop {
            // A second name is only given if it is free; renaming would replace what came there meanwhile.
            match fs::hard_link(&temporary, &free) {
                Ok(()) => break fs::remove_file(&temporary),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < MOST => {}
                // Where files have but one name.
                Err(_) if !free.exists() => break fs::rename(&temporary, &free),
                Err(error) if number >= MOST => break Err(error),
                Err(_) => {}
            }
            number += 1;
            let mut next = stem.clone();
            next.push(format!("-{number}."));
            next.push(&ending);
            free = name.with_file_name(next);
        };
        if ended.is_err() {
            let _ = fs::remove_file(temporary);
        }
        ended
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
    fn what_a_killed_process_left_is_taken_away_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        // No process has a number beyond the kernel's greatest (2^22).
        let left = [".out.pcap.4194305-0.part", ".out.pcap.4294967295-17.part"];
        let others = [
            ".out.pcap.1-0.part",
            ".other.pcap.4194305-0.part",
            ".out.pcap.4194305-x.part",
            "out.pcap.4194305-0.part",
            ".out.pcap.bak.4194305-0.part",
        ];
        let locked = ".out.pcap.4194306-0.part";
        for name in left.iter().chain(&others).chain([&locked]) {
            fs::write(folder.path().join(name), "part").unwrap();
        }
        let held = File::open(folder.path().join(locked)).unwrap();
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        AtomicFile::create(&path).unwrap().finish().unwrap();
        let is_there = |name: &&str| folder.path().join(name).exists();
        assert!(!left.iter().any(is_there));
        assert!(others.iter().all(&is_there) && is_there(&locked));
        // Two that are written at once leave each other alone.
        let (first, second) = (AtomicFile::create(&path).unwrap(), AtomicFile::create(&path).unwrap());
        first.finish().unwrap();
        second.finish().unwrap();
    }

    #[test]
    fn a_name_that_is_taken_stays_with_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        for content in ["one", "two", "three"] {
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file.finish_beside().unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!([read("out.csv"), read("out-2.csv"), read("out-3.csv")], ["one", "two", "three"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_is_replaced_keeps_owner_and_permissions_and_foreign_links_are_not_followed() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(12_345), Some(12_346)).expect("these tests need root");
        AtomicFile::create(&path).unwrap().finish().unwrap();
        let data = fs::metadata(&path).unwrap();
        assert_eq!((data.uid(), data.gid(), data.mode() & 0o7777), (12_345, 12_346, 0o600));

        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let link = shared.join("link.pcap");
        symlink(&path, &link).unwrap();
        lchown(&link, Some(12_345), None).unwrap();
        let refused = AtomicFile::create(&link).unwrap_err().to_string();
        assert!(refused.contains("another user's symbolic link"), "{refused}");
    }

    #[test]
    fn a_device_that_became_a_link_or_another_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let (null, link) = (Path::new("/dev/null"), folder.path().join("link"));
        let seen = look(null).unwrap();
        open_directly(null, &seen).unwrap();
        assert!(open_directly(Path::new("/dev/zero"), &seen).is_err());
        std::os::unix::fs::symlink(null, &link).unwrap();
        assert!(open_directly(&link, &seen).is_err());
        assert!(look(&link).unwrap().is_symlink());
        let (_reader, writer) = io::pipe().unwrap();
        let pipe = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        AtomicFile::create(Path::new(&pipe)).unwrap().finish().unwrap();
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
