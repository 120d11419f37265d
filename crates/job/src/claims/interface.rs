//! Interfaces that runs of `netdyno agent` hold, on this host: by a lock on a file for each, as of CPUs. The file goes with the claim; one that
//! a killed process left is taken away by the next who claims anything.

use super::folder;
use crate::place::Identity;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// What this process holds, and for whom: also where there is no folder of locks.
static HELD: Mutex<BTreeMap<Identity, String>> = Mutex::new(BTreeMap::new());

/// An interface that is held until this is dropped.
#[derive(Debug)]
pub struct Claimed {
    identity: Identity,
    file: Option<(OwnedFd, OwnedFd, String)>,
}

/// Somebody else holds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HeldBy(pub String);

/// Tries where a file is taken away while it is opened.
const TRIES: u32 = 16;

/// Claims an interface for `who`.
///
/// # Errors
/// Who holds it.
pub fn claim(identity: Identity, who: &str) -> Result<Claimed, HeldBy> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(other) = held.get(&identity) {
        return Err(HeldBy(other.clone()));
    }
    let file = folder().map(|folder| lock(folder, identity, who)).transpose()?.flatten();
    held.insert(identity, who.to_owned());
    Ok(Claimed { identity, file })
}

fn name((device, inode, index): Identity) -> String {
    format!("interface-{device}-{inode}-{index}")
}

/// `None`: here nobody can lock.
fn lock(
    folder: OwnedFd,
    identity: Identity,
    who: &str,
) -> Result<Option<(OwnedFd, OwnedFd, String)>, HeldBy> {
    let name = name(identity);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        let Ok(file) = openat(&folder, name.as_str(), flags, Mode::RUSR | Mode::WUSR) else {
            return Ok(None);
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut bytes = [0; 128];
                let length = rustix::io::pread(&file, &mut bytes, 0).unwrap_or(0);
                let said = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).trim().to_owned();
                let said = if said.is_empty() { "another process".to_owned() } else { said };
                return Err(HeldBy(report::units::printable(&said)));
            }
            Err(_) => return Ok(None),
        }
        // Its last holder may have taken it away since it was opened.
        if fstat(&file).is_ok_and(|stat| stat.st_nlink > 0) {
            sweep(&folder, &name);
            let text = format!("{who}\n");
            let written = rustix::fs::ftruncate(&file, 0);
            // Without it others know only that it is somebody's.
            let _ = written.and_then(|()| rustix::io::pwrite(&file, text.as_bytes(), 0));
            return Ok(Some((folder, file, name)));
        }
    }
    Ok(None)
}

/// Takes away what killed processes left.
fn sweep(folder: &OwnedFd, own: &str) {
    let Ok(entries) = rustix::fs::Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if !name.starts_with("interface-") || name == own {
            continue;
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(folder, name, flags, Mode::empty()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Ok(()) {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // Before its lock is free: whoever opened it meanwhile sees that it has no name any more.
        if let Some((folder, _, name)) = &self.file {
            let _ = unlinkat(folder, name.as_str(), AtFlags::empty());
        }
        HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.identity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn path(identity: Identity) -> PathBuf {
        PathBuf::from("/run/netdyno").join(name(identity))
    }

    #[test]
    fn an_interface_is_held_once_and_its_holder_is_named() {
        let identity = (u64::MAX, u64::from(std::process::id()), 1);
        let claimed = claim(identity, "run r1").expect("free");
        assert_eq!(claim(identity, "run r2").expect_err("held"), HeldBy("run r1".to_owned()));
        let beside =
            claim((u64::MAX, u64::from(std::process::id()), 2), "run r3").expect("another interface");
        assert!(path(identity).exists(), "as root");
        drop((claimed, beside));
        assert!(!path(identity).exists());
        drop(claim(identity, "run r2").expect("free again"));
    }

    #[test]
    fn another_process_is_named_and_what_a_killed_one_left_is_taken_away() {
        let identity = (u64::MAX, u64::from(std::process::id()), 3);
        let path = path(identity);
        std::fs::create_dir_all("/run/netdyno").expect("as root");
        std::fs::write(&path, "run r7 of process 1\n").expect("written");
        let file = std::fs::File::open(&path).expect("there");
        flock(&file, FlockOperation::LockExclusive).expect("locked");
        assert_eq!(claim(identity, "run r1").expect_err("held"), HeldBy("run r7 of process 1".to_owned()));
        drop(file);
        // It left its file, and another interface is claimed. (A process that another test begins has the lock, too, until its program is there.)
        for _ in 0..500 {
            drop(claim((u64::MAX, u64::from(std::process::id()), 4), "run r2").expect("free"));
            if !path.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("what a killed process left is still there");
    }
}
