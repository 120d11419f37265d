//! The files of a login: bounded, and what is wrong with one is said by its name.

use crate::Fault;
use report::units::printable;
use std::io::Read;
use std::path::Path;

/// Bytes of a file of credentials or keys.
const MOST: u64 = 1 << 20;

/// Reads what `option` names.
fn text(option: &str, path: &Path) -> Result<String, Fault> {
    let name = printable(&path.display().to_string());
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
        .map_err(|error| Fault::Option(format!("{option}: {name}: {error}")))?;
    if bytes.len() as u64 > MOST {
        return Err(Fault::Option(format!("{option}: {name} has more than 1 MiB: this is another file")));
    }
    String::from_utf8(bytes)
        .map_err(|_| Fault::Option(format!("{option}: {name} is no text: this is another file")))
}

/// The seed of a user's key, which may stand between other lines.
pub(crate) fn seed(path: &Path) -> Result<String, Fault> {
    let text = text("--nkey", path)?;
    let is_seed = |word: &&str| {
        word.len() == 58 && word.starts_with("SU") && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.split_whitespace().find(is_seed).map(str::to_owned).ok_or_else(|| {
        let name = printable(&path.display().to_string());
        Fault::Option(format!("--nkey: {name} has no seed of a user's key, which begins with SU"))
    })
}

/// The first line.
pub(crate) fn password(path: &Path) -> Result<String, Fault> {
    let text = text("--password-file", path)?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => {
            let name = printable(&path.display().to_string());
            Err(Fault::Option(format!(
                "--password-file: the first line of {name} is empty: it is the password"
            )))
        }
    }
}

/// The credentials, as `nsc` and the like write them.
pub(crate) fn credentials(path: &Path) -> Result<String, Fault> {
    text("--creds", path)
}

/// There must be certificates, or a key.
pub(crate) fn pem(option: &str, path: &Path, what: &str) -> Result<(), Fault> {
    if text(option, path)?.contains("-----BEGIN ") {
        return Ok(());
    }
    let name = printable(&path.display().to_string());
    Err(Fault::Option(format!("{option}: {name} has no {what} in it (PEM)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said_by_its_name() {
        let dir = std::env::temp_dir().join(format!("netdyno-nats-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a file");
        let seed_text = format!("SU{}", "A".repeat(56));
        let write = |text: &[u8]| std::fs::write(&file, text).unwrap();
        write(
            format!("-----BEGIN USER NKEY SEED-----\n{seed_text}\n------END USER NKEY SEED------\n")
                .as_bytes(),
        );
        assert_eq!(seed(&file).unwrap(), seed_text);
        assert_eq!(password(&file).unwrap(), "-----BEGIN USER NKEY SEED-----");
        assert!(pem("--ca", &file, "certificate").is_ok());
        let fails = |wrong: Result<String, Fault>, says: &str| {
            let said = wrong.unwrap_err().to_string();
            assert!(said.contains(says) && said.contains("a file"), "{said}");
        };
        write(b"SAAA\n");
        fails(seed(&file), "has no seed of a user's key, which begins with SU");
        fails(pem("--ca", &file, "certificate").map(|()| String::new()), "has no certificate in it (PEM)");
        write(b"\n");
        fails(password(&file), "is empty");
        write(b"\xff");
        fails(credentials(&file), "is no text");
        write(&vec![b'a'; (1 << 20) + 1]);
        fails(credentials(&file), "has more than 1 MiB");
        std::fs::remove_file(&file).unwrap();
        fails(password(&file), "No such file");
        std::fs::remove_dir(&dir).unwrap();
    }
}
