//! Which sessions are copied, and how often: a keyed hash of addresses and ports decides, so that a session is copied whole, and
//! the same one by everybody who has the seed.

use std::net::IpAddr;
use wire::flow::FlowKey;

/// SipHash-2-4 (Aumasson and Bernstein, 2012) with a key of two words.
pub fn siphash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    };
    let take = |v: &mut [u64; 4], word: u64| {
        v[3] ^= word;
        round(v);
        round(v);
        v[0] ^= word;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        take(&mut v, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    last[7] = bytes.len() as u8;
    take(&mut v, u64::from_le_bytes(last));
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

/// The hash of a session, from the client to the server.
pub fn session(seed: u64, flow: &FlowKey) -> u64 {
    let mut bytes = [0; 36];
    let (from, to) = bytes.split_at_mut(18);
    for (half, address, port) in
        [(from, flow.source(), flow.source_port()), (to, flow.destination(), flow.destination_port())]
    {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        half[..16].copy_from_slice(&address);
        half[16..].copy_from_slice(&port.to_be_bytes());
    }
    siphash([seed, !seed], &bytes)
}

/// A second hash, of a session's first.
pub fn again(hash: u64) -> u64 {
    siphash([hash, 0], &[])
}

/// Which of so many threads has the session with this hash, where a program in the kernel shares them out.
pub fn lane(hash: u64, lanes: u64) -> u64 {
    // Not the bits that choose.
    (hash & u64::from(u32::MAX)) % lanes.max(1)
}

/// How many copies there are of each session: so many, and one more of a share of the sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copies {
    whole: u32,
    /// Of 2^64; `None`: no session has one more.
    more: Option<u64>,
    /// Of 2^64, those that are copied at all; `None`: all.
    chosen: Option<u64>,
}

/// More copies of a session than this are refused.
pub const MOST_COPIES: u32 = 1000;

impl Copies {
    /// `2.5`: two of each session, and a third of every other one. `None` of what is no number of copies.
    pub fn new(number: f64) -> Option<Copies> {
        if !(number > 0.0 && number <= f64::from(MOST_COPIES)) {
            return None;
        }
        let share = number.fract();
        let more = (share > 0.0).then_some(part(share));
        Some(Copies { whole: number.trunc() as u32, more, chosen: None })
    }

    /// Of a share of the sessions alone; the others have none.
    pub fn of_share(self, share: f64) -> Copies {
        Copies { chosen: (share < 1.0).then_some(part(share)), ..self }
    }

    /// Who judges sessions elsewhere (a program in the kernel) takes those whose hash is below the first bound, and of those the ones
    /// whose [`again`] is below the second; a bound that is not there lets all pass. `None`: each session is copied.
    pub fn bounds(&self) -> Option<[Option<u64>; 2]> {
        let more = self.more.filter(|_| self.whole == 0);
        (self.chosen.is_some() || more.is_some()).then_some([self.chosen, more])
    }

    /// Of the session with this hash.
    pub fn of(&self, hash: u64) -> u32 {
        // Other bits than those that say who is chosen: a share of the chosen, too, has one more.
        let more = u32::from(self.more.is_some_and(|more| again(hash) < more));
        if self.chosen.is_some_and(|chosen| hash >= chosen) { 0 } else { self.whole + more }
    }
}

/// A share of 2^64: below one it fits, and rounding is of no account.
fn part(share: f64) -> u64 {
    (share * 18_446_744_073_709_551_616.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_siphash() {
        // From the reference implementation's vectors: key 00..0f, messages 00..n.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(key, &message), 0xa129_ca61_49be_45e5);
    }

    fn flow(n: u32) -> FlowKey {
        let ip = |n: u32| IpAddr::from(n.to_be_bytes());
        FlowKey::new(ip(0x0a00_0000 + n / 100), ip(0x0a01_0001), 6, 1000 + (n % 100) as u16, 80).unwrap()
    }

    #[test]
    fn whole_numbers_of_copies_are_exact_and_shares_are_met() {
        let four = Copies::new(4.0).unwrap();
        assert!((0..10_000).all(|n| four.of(session(1, &flow(n))) == 4));
        for share in [0.5, 0.1, 1.3, 2.75] {
            let copies = Copies::new(share).unwrap();
            let sum: u32 = (0..40_000).map(|n| copies.of(session(7, &flow(n)))).sum();
            assert!((f64::from(sum) / 40_000.0 - share).abs() < 0.01, "{share}: {sum}");
        }
    }

    #[test]
    fn of_a_share_of_the_sessions_each_is_copied_as_often_as_asked() {
        let copies = Copies::new(2.5).unwrap().of_share(0.25);
        let all: Vec<u32> = (0..40_000).map(|n| copies.of(session(7, &flow(n)))).collect();
        let count = |of: u32| all.iter().filter(|copies| **copies == of).count() as f64 / 40_000.0;
        assert!(
            (count(0) - 0.75).abs() < 0.01
                && (count(2) - 0.125).abs() < 0.01
                && (count(3) - 0.125).abs() < 0.01
        );
    }

    #[test]
    fn bounds_say_which_sessions_have_copies() {
        for number in [0.3, 1.0, 1.5, 4.0] {
            for share in [0.2, 1.0] {
                let copies = Copies::new(number).unwrap().of_share(share);
                let [chosen, more] = copies.bounds().unwrap_or_default();
                for n in 0..2000 {
                    let hash = session(9, &flow(n));
                    let passes = chosen.is_none_or(|bound| hash < bound)
                        && more.is_none_or(|bound| again(hash) < bound);
                    assert_eq!(passes, copies.of(hash) > 0, "{number} of {share}: {hash}");
                }
                assert_eq!(copies.bounds().is_none(), number >= 1.0 && share == 1.0);
            }
        }
    }

    #[test]
    fn who_has_the_seed_chooses_the_same_sessions() {
        let half = Copies::new(0.5).unwrap();
        let chosen = |seed: u64| (0..1000).map(|n| half.of(session(seed, &flow(n)))).collect::<Vec<_>>();
        assert_eq!(chosen(3), chosen(3));
        assert_ne!(chosen(3), chosen(4));
    }

    #[test]
    fn what_is_no_number_of_copies_is_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1000.5] {
            assert_eq!(Copies::new(bad), None);
        }
    }
}
