//! Leaving root: a server that was started as root goes on as a user who may do nothing, once it has what it needs.
#![allow(unsafe_code, reason = "libc's setuid and its like, which change all threads, take pointers")]

use std::io;

/// Whose rights a process goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// As /etc/passwd or the caller names it.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its group's.
    pub gid: u32,
}

/// Who is nobody where /etc/passwd does not say.
const NOBODY: u32 = 65_534;

impl User {
    /// By its name or number.
    ///
    /// # Errors
    /// There is no such user.
    pub fn find(name: &str) -> io::Result<User> {
        // A static program asks no other source of users than this file.
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        found(&passwd, name).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{name}: /etc/passwd has no such user"))
        })
    }
}

fn found(passwd: &str, name: &str) -> Option<User> {
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(User { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    };
    let number = name.parse::<u32>().ok();
    let mut all = passwd.lines().filter_map(entry);
    all.find(|user| user.name == name || Some(user.uid) == number).or_else(|| {
        let uid = number.or((name == "nobody").then_some(NOBODY))?;
        // chown(2): this number means "none".
        (uid != u32::MAX).then(|| User { name: name.to_owned(), uid, gid: uid })
    })
}

/// This process is root's.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Goes on as `user`, without groups besides, without capabilities, and without a way back: for all threads of the process. What is
/// executed gets no further rights either (no_new_privs, of this thread and those that it begins).
///
/// # Errors
/// The kernel refuses: the process is not root's.
pub fn become_user(user: &User) -> io::Result<()> {
    let check = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: no groups are read where their number is 0.
    check(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: takes numbers only.
    check(unsafe { libc::setresgid(user.gid, user.gid, user.gid) })?;
    // SAFETY: the same. With the last of root's numbers the kernel takes all capabilities (capabilities(7)).
    check(unsafe { libc::setresuid(user.uid, user.uid, user.uid) })?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n# none\nbad:x:1\nnet:x:77:88::/:/bin/false\n";
        let user = |name: &str, uid, gid| Some(User { name: name.to_owned(), uid, gid });
        assert_eq!(found(passwd, "net"), user("net", 77, 88));
        assert_eq!(found(passwd, "77"), user("net", 77, 88));
        assert_eq!(found(passwd, "5"), user("5", 5, 5));
        assert_eq!(found(passwd, "nobody"), user("nobody", NOBODY, NOBODY));
        assert_eq!((found(passwd, "nosuch"), found(passwd, "4294967295")), (None, None));
    }
}
