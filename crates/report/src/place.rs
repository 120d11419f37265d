//! Where files are written to: by names that others may have prepared.
//!
//! A folder that everybody may write to (`/tmp`) holds names of other users, and a program that runs as root must not
//! be led by them to what only root may write. Nor by links in another user's own folder. What the kernel has for it (fs.protected_symlinks, fs.protected_regular) may
//! be switched off, looks only at a path's last name, and cannot see through a path that was resolved before. So paths are
//! resolved here, by the same rule.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows (path_resolution(7)).
const MOST_LINKS: u32 = 40;

/// The path without symbolic links. Behind a name that does not exist it stays as it is. Another user's link is refused
/// unless it leads to what is that user's, too, and in a folder that all may write to in any case, as is another user's
/// file there.
///
/// # Errors
/// That a link is another user's, that links lead in a circle, or that a folder cannot be read.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    walk(path, |link, target| target.is_some_and(|target| target.uid() == link.uid()))
}

/// The same of a folder that is to be made, and written to more than once: another user's links are refused wherever they
/// lead.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_folder(path: &Path) -> io::Result<PathBuf> {
    walk(path, |_, _| false)
}

/// `trusts` says whether another user's link may be followed to what it leads to.
fn walk(path: &Path, trusts: impl Fn(&Metadata, Option<&Metadata>) -> bool) -> io::Result<PathBuf> {
    let mut names: VecDeque<OsString> = VecDeque::new();
    let mut at = PathBuf::new();
    push_front(&mut names, path);
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        let next = at.join(&name);
        let data = match fs::symlink_metadata(&next) {
            Ok(data) => data,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                at = next;
                at.extend(names);
                return Ok(at);
            }
            Err(error) => return Err(error),
        };
        let last = names.is_empty();
        let refused = |what: &str| {
            let what =
                format!("{} is another user's {what}; remove it, or name another place", next.display());
            io::Error::new(ErrorKind::PermissionDenied, what)
        };
        let kind = if data.is_symlink() { "symbolic link" } else { "file" };
        if (data.is_symlink() || last && !data.is_dir()) && is_foreign(&data, &at)? {
            return Err(refused(&format!("{kind} in a folder that everybody may write to")));
        }
        let own = [0, rustix::process::geteuid().as_raw()].contains(&data.uid());
        if data.is_symlink() && !own && !trusts(&data, fs::metadata(&next).ok().as_ref()) {
            return Err(refused("symbolic link, and leads to what is not that user's"));
        }
        if data.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::new(
                    ErrorKind::InvalidInput,
                    format!("{} leads over too many symbolic links", path.display()),
                ));
            }
            let target = fs::read_link(&next)?;
            let id = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
            let leads_to = id(&next);
            if leads_to.is_some() && leads_to != id(&at.join(&target)) {
                // Links of /proc to what has no name: /dev/stdout, where that is a pipe.
                at = next;
                continue;
            }
            if target.is_absolute() {
                at = PathBuf::new();
            }
            push_front(&mut names, &target);
        } else {
            at = next;
        }
    }
    Ok(at)
}

/// Puts the names of `path` before those that are left.
fn push_front(names: &mut VecDeque<OsString>, path: &Path) {
    for part in path.components().rev() {
        if part != Component::CurDir || path == Path::new(".") {
            names.push_front(part.as_os_str().to_owned());
        }
    }
}

/// Whether somebody else put this into a sticky folder that all may write to: neither its owner nor us.
fn is_foreign(data: &Metadata, folder: &Path) -> io::Result<bool> {
    const STICKY_AND_FOR_ALL: u32 = 0o1002;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = fs::metadata(folder)?;
    Ok(folder.mode() & STICKY_AND_FOR_ALL == STICKY_AND_FOR_ALL
        && data.uid() != rustix::process::geteuid().as_raw()
        && data.uid() != folder.uid())
}

/// Gives a file that is to replace another that one's owner and permissions, as far as we may: it is the same file to
/// whoever uses it, with other contents.
///
/// # Errors
/// That its permissions cannot be set.
pub fn take_over(file: &File, replaced: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let mut mode = replaced.mode() & 0o777;
    let differ = |new: u32, old: u32| (new != old).then_some(new);
    let owner = [differ(replaced.uid(), own.uid()), differ(replaced.gid(), own.gid())];
    if owner != [None, None] && std::os::unix::fs::fchown(file, owner[0], owner[1]).is_err() {
        // The group may still be one of ours; if not, nothing is granted to a group that had nothing.
        if std::os::unix::fs::fchown(file, None, owner[1]).is_err() {
            mode &= 0o707;
        }
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    const OTHER: u32 = 12_345;

    /// A folder like /tmp, and one beside it.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (shared, own) = (folder.path().join("shared"), folder.path().join("own"));
        fs::create_dir(&shared).unwrap();
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        (folder, shared, own)
    }

    #[test]
    fn another_users_links_and_files_in_a_shared_folder_are_refused() {
        let (_folder, shared, own) = folders();
        let secret = own.join("secret");
        fs::write(&secret, "kept").unwrap();
        let link = shared.join("link");
        symlink(&secret, &link).unwrap();
        assert_eq!(resolve(&link).unwrap(), secret);
        lchown(&link, Some(OTHER), None).expect("these tests need root");
        let refused = resolve(&link).unwrap_err();
        assert!(refused.to_string().contains("another user's symbolic link"), "{refused}");

        // As a folder on the way, which the kernel would follow.
        let folder = shared.join("folder");
        symlink(&own, &folder).unwrap();
        assert_eq!(resolve(&folder.join("new")).unwrap(), own.join("new"));
        lchown(&folder, Some(OTHER), None).unwrap();
        assert!(resolve(&folder.join("new")).is_err() && resolve(&folder).is_err());

        let file = shared.join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(resolve(&file).unwrap(), file);
        chown(&file, Some(OTHER), None).unwrap();
        assert!(resolve(&file).is_err());
        // Where not everybody may write, whoever put a file there was let in.
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(resolve(&file).unwrap(), file);
    }

    #[test]
    fn another_users_links_lead_only_to_what_is_that_users_too() {
        let (_folder, _, own) = folders();
        let (theirs, file) = (own.join("theirs"), own.join("file"));
        fs::create_dir(&theirs).unwrap();
        fs::write(&file, "kept").unwrap();
        chown(&theirs, Some(OTHER), None).expect("these tests need root");
        let link = |name: &str, target: &str| {
            let link = theirs.join(name);
            symlink(target, &link).unwrap();
            lchown(&link, Some(OTHER), None).unwrap();
            link
        };
        let (to_file, to_folder, nowhere) = (link("a", "../file"), link("b", ".."), link("c", "none"));
        for path in [&to_file, &nowhere, &to_folder.join("new"), &to_folder.join("file")] {
            let refused = resolve(path).unwrap_err().to_string();
            assert!(refused.contains("another user's symbolic link"), "{refused}");
        }
        chown(&file, Some(OTHER), None).unwrap();
        assert_eq!(resolve(&to_file).unwrap(), theirs.join("../file"));
        let back = link("d", ".");
        assert_eq!(resolve(&back.join("new")).unwrap(), theirs.join("new"));
        // Folders of reports are not reached over another user's links at all.
        assert!(resolve_folder(&back.join("new")).is_err());
        assert_eq!(resolve_folder(&theirs.join("new")).unwrap(), theirs.join("new"));
        // Root's and our own are followed.
        lchown(&back, Some(0), None).unwrap();
        assert_eq!(resolve_folder(&back.join("new")).unwrap(), theirs.join("new"));
    }

    #[test]
    fn paths_are_resolved_as_the_kernel_does() {
        let (_folder, shared, own) = folders();
        symlink("../own", shared.join("up")).unwrap();
        symlink("missing", own.join("dangling")).unwrap();
        assert_eq!(resolve(&shared.join("up/dangling")).unwrap(), shared.join("../own/missing"));
        symlink("loop", own.join("loop")).unwrap();
        assert!(resolve(&own.join("loop")).unwrap_err().to_string().contains("too many"));
        assert_eq!(resolve(Path::new("no-such/./file")).unwrap(), Path::new("no-such/file"));
        assert_eq!(resolve(Path::new(".")).unwrap(), Path::new("."));
        let (_reader, writer) = io::pipe().unwrap();
        let pipe = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        assert!(!fs::metadata(resolve(Path::new(&pipe)).unwrap()).unwrap().is_file());
    }

    #[test]
    fn what_replaces_a_file_has_its_owner_and_permissions() {
        let (_folder, _, own) = folders();
        let (old, new) = (own.join("old"), own.join("new"));
        fs::write(&old, "").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        chown(&old, Some(OTHER), Some(OTHER)).expect("these tests need root");
        let file = File::create(&new).unwrap();
        take_over(&file, &fs::metadata(&old).unwrap()).unwrap();
        let data = fs::metadata(&new).unwrap();
        assert_eq!((data.uid(), data.gid(), data.mode() & 0o7777), (OTHER, OTHER, 0o640));
    }
}
