//! Who may test: what a client's token says once it is decrypted, and the server's file of users. Keys and hashes are the
//! drop-in's, which has them from a library.

/// Bytes of a token in base64, at most: of a key of 16,384 bits.
pub const TOKEN: usize = 2800;
/// Seconds that clocks may differ by, unless said.
pub const SKEW: u64 = 10;

/// Who, by which password, when.
#[derive(Clone, PartialEq, Eq)]
pub struct Claim {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
    /// Seconds of Unix time by the client's clock.
    pub time: i64,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("user", &self.user).field("time", &self.time).finish_non_exhaustive()
    }
}

impl Claim {
    /// What is encrypted.
    pub fn text(&self) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, self.time)
    }

    /// Of what was decrypted.
    pub fn read(text: &str) -> Option<Claim> {
        let mut lines = text.split('\n');
        let mut field =
            |name: &str| lines.next()?.strip_prefix(name).map(|rest| rest.trim_start_matches(' '));
        let (user, password, time) = (field("user:")?, field("pwd:")?, field("ts:")?);
        Some(Claim {
            user: user.to_owned(),
            password: password.to_owned(),
            time: time.trim_end().parse().ok()?,
        })
    }

    /// What the users' file has the hash of (SHA-256).
    pub fn hashed(&self) -> String {
        format!("{{{}}}{}", self.user, self.password)
    }

    /// Whether both clocks agree as far as they must.
    pub fn is_fresh(&self, now: u64, skew: u64) -> bool {
        i64::try_from(now).is_ok_and(|now| now.abs_diff(self.time) <= skew)
    }
}

/// The hash of a user's password, as hexadecimal digits: lines `user,hash`, and remarks behind `#`.
pub fn hash_of<'a>(users: &'a str, user: &str) -> Option<&'a str> {
    users.lines().map(str::trim).filter(|line| !line.starts_with('#')).find_map(|line| {
        let (name, hash) = line.split_once(',')?;
        (name.trim() == user).then(|| hash.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_survive_their_text(user in "[a-z]{1,9}", password in "[!-~]{1,20}", time: i64) {
            let claim = Claim { user, password, time };
            prop_assert_eq!(Claim::read(&claim.text()), Some(claim));
        }

        #[test]
        fn any_text_is_a_claim_or_none(text: String) {
            let _ = Claim::read(&text);
        }
    }

    #[test]
    fn clocks_may_differ_by_the_skew() {
        let claim = Claim { user: "u".into(), password: "p".into(), time: 100 };
        assert!(claim.is_fresh(90, 10) && claim.is_fresh(110, 10) && !claim.is_fresh(111, 10));
        assert!(!Claim { time: i64::MIN, ..claim }.is_fresh(u64::MAX, 10));
    }

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "# name,hash\nmario,bf7a49\n luigi , 00ff \n#bowser,1\n";
        assert_eq!(hash_of(users, "mario"), Some("bf7a49"));
        assert_eq!(hash_of(users, "luigi"), Some("00ff"));
        assert_eq!([hash_of(users, "mar"), hash_of(users, "#bowser"), hash_of(users, "")], [None; 3]);
    }
}
