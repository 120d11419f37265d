//! Both ends prove that they have the same token, without saying it: HMAC-SHA-256 over what both drew.
//!
//! What is sent after that is neither encrypted nor signed: the token keeps strangers from using a server, and no more.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
/// How nonces, keys and proofs are written.
pub use wire::hex;

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
    mac(token, role, server, client).map_or_else(String::new, |mac| hex::encode(&mac.finalize().into_bytes()))
}

/// Whether `proof` is one; takes as long whatever is wrong.
pub fn is_proof(proof: &str, token: &[u8], role: Role, server: &str, client: &str) -> bool {
    match (mac(token, role, server, client), hex::decode(proof)) {
        (Some(mac), Some(bytes)) => mac.verify_slice(&bytes).is_ok(),
        _ => false,
    }
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
}
