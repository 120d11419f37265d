//! Files with the key that a clone and its captures on other hosts have. Who reads one can listen to everything that is copied: a file
//! that others than its owner may read is refused.

use anyhow::{Context, Result, bail};
use clone::remote::channel::Key;
use report::units::printable;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Longer is no key's file.
const MOST: u64 = 1000;

/// Writes a new key into a new file that its owner alone may read.
///
/// # Errors
/// The file is there already, or cannot be written.
pub fn make(path: &Path) -> Result<()> {
    let name = printable(&path.display().to_string()).to_string();
    let mut bytes = [0u8; 32];
    if getrandom(&mut bytes, GetRandomFlags::empty())? != bytes.len() {
        bail!("the system gives no random numbers: no key was made");
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("{name}: a key is written into a new file, never over one"))?;
    let text = Key::new(bytes).text() + "\n";
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(|| format!("writing {name}"))
}

/// Reads one.
///
/// # Errors
/// There is none, or others may read it.
pub fn read(path: &Path) -> Result<Key> {
    let name = printable(&path.display().to_string()).to_string();
    let file = std::fs::File::open(path)
        .with_context(|| format!("`.key` {name}; a key is made by `netdyno clone key FILE`"))?;
    let facts = file.metadata().with_context(|| format!("`.key` {name}"))?;
    if !facts.is_file() {
        bail!("`.key` {name} is no file; a key is made by `netdyno clone key FILE`");
    }
    if facts.mode() & 0o077 != 0 {
        bail!("`.key` {name} may be read or written by others than its owner: chmod 600 {name}");
    }
    let mut text = String::new();
    let read = file.take(MOST).read_to_string(&mut text);
    match read.ok().and_then(|_| Key::parse(&text)) {
        Some(key) => Ok(key),
        None => bail!(
            "`.key` {name} has no key: 32 bytes in 64 hexadecimal digits or in Base64, as `netdyno clone key FILE` writes them"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_made_once_and_read_by_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let key = read(&path).unwrap();
        assert!(make(&path).is_err_and(|error| error.to_string().contains("never over one")));
        assert_eq!(read(&path).unwrap(), key);
        let other = dir.path().join("other");
        make(&other).unwrap();
        assert_ne!(read(&other).unwrap(), key);
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(read(&path).is_err_and(|error| error.to_string().contains("chmod 600")), "{mode:o}");
        }
        std::fs::write(&other, "secret").unwrap();
        assert!(read(&other).is_err_and(|error| error.to_string().contains("has no key")));
        assert!(read(dir.path()).is_err_and(|error| error.to_string().contains("no file")));
        assert!(read(&dir.path().join("none")).is_err());
    }
}
