//! iperf3's authentication: the client encrypts name, password and time with the server's public key, the server looks its user up.
//!
//! The padding is OAEP with SHA-1, as iperf3 3.17 and later have it, or with `--use-pkcs1-padding` that of PKCS#1 v1.5.

use anyhow::{Context, Result, bail};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endpoint::iperf3::auth::{Claim, TOKEN, hash_of};
use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use transport::iperf3::server::Check;

/// A file of keys or users that is larger is none.
const FILE: u64 = 16 << 20;

/// What the client sends.
pub fn token(user: &str, key: &Path, old: bool) -> Result<String> {
    if user.contains('\n') {
        bail!("--username: a name is one line");
    }
    let (kind, der) = pem(key)?;
    let wrong = || {
        format!("{}: this is no RSA public key of 2048 to 8192 bits (PEM, BEGIN PUBLIC KEY)", key.display())
    };
    if kind != "PUBLIC KEY" {
        bail!("{} but {}", wrong(), report::units::printable(&kind));
    }
    let key = PublicEncryptingKey::from_der(&der).ok().with_context(wrong)?;
    let claim =
        Claim { user: user.to_owned(), password: password()?, time: i64::try_from(now()).unwrap_or(0) };
    let text = claim.text();
    let mut room = vec![0; key.key_size_bytes()];
    let encrypted = if old {
        Pkcs1PublicEncryptingKey::new(key)
            .and_then(|key| Ok(key.encrypt(text.as_bytes(), &mut room)?.to_vec()))
    } else {
        OaepPublicEncryptingKey::new(key)
            .and_then(|key| Ok(key.encrypt(&OAEP_SHA1_MGF1SHA1, text.as_bytes(), &mut room, None)?.to_vec()))
    };
    let encrypted = encrypted.ok().context("name and password are too long for this key")?;
    Ok(STANDARD.encode(encrypted))
}

enum Key {
    Oaep(OaepPrivateDecryptingKey),
    Old(Pkcs1PrivateDecryptingKey),
}

impl Key {
    fn decrypt(&self, token: &[u8]) -> Option<Vec<u8>> {
        let decrypted = match self {
            Key::Oaep(key) => {
                let mut room = vec![0; key.min_output_size()];
                key.decrypt(&OAEP_SHA1_MGF1SHA1, token, &mut room, None).ok()?.to_vec()
            }
            Key::Old(key) => {
                let mut room = vec![0; key.min_output_size()];
                key.decrypt(token, &mut room).ok()?.to_vec()
            }
        };
        Some(decrypted)
    }
}

/// What a server asks of each client. The file of users is read anew for each, so that it can be changed.
pub fn check(key: &Path, users: &Path, skew: u64, old: bool) -> Result<Box<Check>> {
    let wrong = || {
        format!(
            "{}: this is no RSA private key of 2048 to 8192 bits without a passphrase (PEM)",
            key.display()
        )
    };
    let (kind, der) = pem(key)?;
    let der = match &*kind {
        "PRIVATE KEY" => der,
        "RSA PRIVATE KEY" => wrapped(&der),
        other => bail!("{} but {}", wrong(), report::units::printable(other)),
    };
    let private = PrivateDecryptingKey::from_pkcs8(&der).ok().with_context(wrong)?;
    let key = if old {
        Key::Old(Pkcs1PrivateDecryptingKey::new(private).ok().with_context(wrong)?)
    } else {
        Key::Oaep(OaepPrivateDecryptingKey::new(private).ok().with_context(wrong)?)
    };
    let users = users.to_owned();
    bounded(&users)?;
    Ok(Box::new(move |token| {
        let refused = |why: &str| Err(format!("test authorization failed: {why}"));
        let Some(token) = token.filter(|token| token.len() <= TOKEN) else {
            return refused("the client sent no token");
        };
        let claim = STANDARD.decode(token).ok().and_then(|token| key.decrypt(&token));
        let claim = claim.and_then(|text| String::from_utf8(text).ok()).and_then(|text| Claim::read(&text));
        let Some(claim) = claim else { return refused("its token cannot be decrypted") };
        let Ok(users) = bounded(&users) else { return refused("the file of users cannot be read") };
        let users = String::from_utf8_lossy(&users);
        let hash = digest(&SHA256, claim.hashed().as_bytes());
        let hash = wire::hex::encode(hash.as_ref());
        let known = hash_of(&users, &claim.user).map(str::to_ascii_lowercase).unwrap_or_default();
        if verify_slices_are_equal(hash.as_bytes(), known.as_bytes()).is_err() {
            return refused("unknown user or wrong password");
        }
        if !claim.is_fresh(now(), skew) {
            return refused("its clock is too far off (--time-skew-threshold)");
        }
        Ok(())
    }))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn bounded(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE).read_to_end(&mut bytes))
        .with_context(|| format!("reading {}", path.display()))?;
    Ok(bytes)
}

/// The first block of a file in PEM: what it is, and its bytes.
fn pem(path: &Path) -> Result<(String, Vec<u8>)> {
    let text = bounded(path)?;
    block(&String::from_utf8_lossy(&text)).with_context(|| format!("{}: this is no PEM file", path.display()))
}

fn block(text: &str) -> Option<(String, Vec<u8>)> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("-----BEGIN "));
    let kind = lines.next()?.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?.to_owned();
    let body: String = lines.take_while(|line| !line.starts_with("-----END ")).collect();
    Some((kind, STANDARD.decode(body).ok()?))
}

/// PKCS#1's RSAPrivateKey as PKCS#8's PrivateKeyInfo (RFC 5208): version 0, rsaEncryption, the key.
fn wrapped(key: &[u8]) -> Vec<u8> {
    const HEAD: [u8; 18] = [2, 1, 0, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0];
    element(0x30, &[&HEAD[..], &element(4, key)].concat())
}

/// One element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let bytes = content.len().to_be_bytes();
    let digits: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut all = vec![tag];
    match digits[..] {
        [] => all.push(0),
        [short] if short < 0x80 => all.push(short),
        _ => {
            all.push(0x80 | u8::try_from(digits.len()).unwrap_or(8));
            all.extend_from_slice(&digits);
        }
    }
    all.extend_from_slice(content);
    all
}

/// From the environment, or the terminal, which does not show it.
fn password() -> Result<String> {
    if let Some(password) = std::env::var_os("IPERF3_PASSWORD") {
        return password.into_string().ok().context("IPERF3_PASSWORD is no text");
    }
    let terminal = std::io::stdin();
    let shown = if isatty(&terminal) { tcgetattr(&terminal).ok() } else { None };
    let _ = write!(std::io::stderr(), "Password: ");
    if let Some(shown) = &shown {
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &hidden).context("hiding the password")?;
    }
    let mut line = String::new();
    let read = std::io::Read::take(terminal.lock(), 1024).read_line(&mut line);
    if let Some(shown) = &shown {
        let _ = tcsetattr(&terminal, OptionalActions::Flush, shown);
        let _ = writeln!(std::io::stderr());
    }
    read.context("reading the password")?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_their_lines() {
        let text = "a remark\n-----BEGIN PUBLIC KEY-----\nAAEC\nAwQF\n-----END PUBLIC KEY-----\n";
        assert_eq!(block(text), Some(("PUBLIC KEY".to_owned(), vec![0, 1, 2, 3, 4, 5])));
        assert_eq!(block("-----BEGIN X-----\n!!\n-----END X-----"), None);
        assert_eq!(block("nothing"), None);
    }

    #[test]
    fn lengths_are_ders() {
        assert_eq!(element(4, &[7]), [4, 1, 7]);
        assert_eq!(element(4, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(element(4, &[0; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(element(5, &[]), [5, 0]);
    }
}
