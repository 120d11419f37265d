//! The folder of all files: contents, and what runs write. It is nobody else's, and nothing of it outlives the agent.

use rustix::fs::{FlockOperation, flock};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What names of folders begin with where the kernel cannot keep them without one.
const PREFIX: &str = "netdyno-agent-";

#[derive(Debug)]
enum Kept {
    /// A file system in memory that has no name: it is gone with its descriptor.
    #[expect(dead_code, reason = "it is held")]
    Unnamed(OwnedFd),
    /// A folder, and the lock that says that its agent lives.
    #[expect(dead_code, reason = "both are held")]
    Named(tempfile::TempDir, File),
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _kept: Kept,
}

impl Folder {
    /// One with room for so many bytes.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(bytes: u64) -> io::Result<Folder> {
        if let Ok(descriptor) = unnamed(bytes) {
            let path = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
            return Ok(Folder { path, _kept: Kept::Unnamed(descriptor) });
        }
        // Who may not mount has a folder among others, which the next agent takes away if this one is killed.
        let parent = std::env::temp_dir();
        sweep(&parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        let lock = File::open(folder.path())?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Folder { path: folder.path().to_owned(), _kept: Kept::Named(folder, lock) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Since Linux 5.2, and for root.
fn unnamed(bytes: u64) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // A file system has a little of its own beside the files.
    fsconfig_set_string(&context, "size", (bytes.saturating_add(1 << 20)).to_string())?;
    fsconfig_set_string(&context, "mode", "0700")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Takes away what killed agents of this user left.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Some(lock) = ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_agent_left_is_taken_away_and_what_a_live_one_has_is_not() {
        let parent = tempfile::tempdir().expect("a folder");
        let [dead, live] = ["dead", "live"].map(|name| parent.path().join(format!("{PREFIX}{name}")));
        let other = parent.path().join("other");
        for folder in [&dead, &live, &other] {
            std::fs::create_dir(folder).expect("made");
            std::fs::write(folder.join("file"), "x").expect("written");
        }
        let lock = File::open(&live).expect("there");
        flock(&lock, FlockOperation::LockExclusive).expect("locked");
        sweep(parent.path());
        assert_eq!([&dead, &live, &other].map(|folder| folder.exists()), [false, true, true]);
    }

    #[test]
    fn a_folder_holds_files_and_their_names_can_be_changed() {
        let folder = Folder::new(1 << 20).expect("a folder");
        let [first, second] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&first, "x").expect("written");
        std::fs::rename(&first, &second).expect("renamed");
        std::fs::hard_link(&second, &first).expect("linked");
        assert_eq!(std::fs::read_to_string(first).expect("read"), "x");
    }
}
