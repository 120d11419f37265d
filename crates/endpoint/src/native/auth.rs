//! Both ends prove that they have the same token, without saying it: HMAC-SHA-256 over what both drew.
//!
//! What is sent after that is neither encrypted nor signed: the token keeps strangers from using a server, and no more.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// Bytes that each end draws.
pub const NONCE: usize = 32;

/// Who proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The client, first.
    Client,
    /// The server, to a client that proved.
    Server,
}

fn mac(token: &[u8], role: Role, server: &str, client: &str) -> Option<Hmac<Sha256>> {
    // Any length of key is possible: this never fails.
    let mut mac = Hmac::<Sha256>::new_from_slice(token).ok()?;
    let role: &[u8] = match role {
        Role::Client => b"netdyno endpoint 1 client",
        Role::Server => b"netdyno endpoint 1 server",
    };
    for part in [role, server.as_bytes(), client.as_bytes()] {
        // With its length: no two lists of parts are the same bytes.
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    Some(mac)
}

/// The proof, over what the server and the client drew.
pub fn proof(token: &[u8], role: Role, server: &str, client: &str) -> String {
    mac(token, role, server, client).map_or_else(String::new, |mac| hex(&mac.finalize().into_bytes()))
}

/// Whether `proof` is one; takes as long whatever is wrong.
pub fn is_proof(proof: &str, token: &[u8], role: Role, server: &str, client: &str) -> bool {
    match (mac(token, role, server, client), unhex(proof)) {
        (Some(mac), Some(bytes)) => mac.verify_slice(&bytes).is_ok(),
        _ => false,
    }
}

/// As hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Out of hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_token_one_role_and_both_nonces() {
        let good = proof(b"token", Role::Client, "aa", "bb");
        assert_eq!(good.len(), 64);
        assert!(is_proof(&good, b"token", Role::Client, "aa", "bb"));
        assert!(!is_proof(&good, b"other", Role::Client, "aa", "bb"));
        assert!(!is_proof(&good, b"token", Role::Server, "aa", "bb"));
        assert!(!is_proof(&good, b"token", Role::Client, "a", "abb"));
        assert!(!is_proof("", b"token", Role::Client, "aa", "bb"));
        assert!(!is_proof("xyz\u{20ac}", b"token", Role::Client, "aa", "bb"));
    }

    #[test]
    fn digits_are_read_back() {
        assert_eq!(unhex("00ff7A"), Some(vec![0, 255, 0x7a]));
        assert_eq!((unhex("0"), unhex("0g")), (None, None));
    }
}
