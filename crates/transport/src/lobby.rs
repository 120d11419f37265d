//! What keeps a server that is left running from being used up by strangers: connections that have not shown yet that they are clients
//! have a bounded number of seats, and the memory of all tests together has a bound.
//!
//! Seats are fair by address: when all are taken, the address with the most of them loses the one that it has had longest. So a stranger
//! who takes seats without end takes them from himself, and whoever comes from elsewhere is heard.

use rustix::net::Shutdown;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// Who is one stranger: an address of IPv4, the network of a link of IPv6 (RFC 4291, 2.5.4: 64 bits of it are one host's to choose), or whoever
/// comes over a Unix socket.
fn stranger(from: Option<IpAddr>) -> Option<IpAddr> {
    match from?.to_canonical() {
        IpAddr::V6(v6) => {
            let network = u128::from(v6) & !u128::from(u64::MAX);
            Some(IpAddr::V6(network.into()))
        }
        v4 => Some(v4),
    }
}

/// Who of those who wait leaves for `newcomer`: `waiting` is who they are and where from, the oldest first.
pub(crate) fn leaves<K: Copy>(
    waiting: impl Iterator<Item = (K, Option<IpAddr>)>,
    newcomer: Option<IpAddr>,
) -> Option<K> {
    // How many an address has, and its oldest with its place in the order.
    let mut by_address: HashMap<Option<IpAddr>, (usize, usize, K)> = HashMap::new();
    for (order, (key, from)) in waiting.enumerate() {
        by_address.entry(stranger(from)).or_insert((0, order, key)).0 += 1;
    }
    let newcomer = stranger(newcomer);
    let many = |(address, (count, order, _)): &(&Option<IpAddr>, &(usize, usize, K))| {
        (count + usize::from(**address == newcomer), std::cmp::Reverse(*order))
    };
    by_address.iter().max_by_key(many).map(|(_, (_, _, key))| *key)
}

/// Seats for strangers.
#[derive(Debug)]
pub struct Lobby {
    seats: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    all: BTreeMap<u64, (Option<IpAddr>, OwnedFd)>,
}

impl Lobby {
    /// With so many seats.
    pub fn new(seats: usize) -> Arc<Lobby> {
        Arc::new(Lobby { seats, waiting: Mutex::default() })
    }

    /// A seat for this connection, as long as what comes back lives. Another one may lose its own: it is shut down, and whoever reads from it
    /// finds its end.
    ///
    /// # Errors
    /// No more files.
    pub fn enter(self: &Arc<Lobby>, socket: &impl AsFd, from: Option<IpAddr>) -> io::Result<Seat> {
        let socket = socket.as_fd().try_clone_to_owned()?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.all.len() >= self.seats.max(1) {
            let oldest = leaves(waiting.all.iter().map(|(key, (from, _))| (*key, *from)), from);
            let Some((_, socket)) = oldest.and_then(|key| waiting.all.remove(&key)) else { break };
            let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.insert(number, (from, socket));
        Ok(Seat { lobby: Arc::clone(self), number })
    }

    #[cfg(test)]
    fn taken(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).all.len()
    }
}

/// A stranger's seat.
#[derive(Debug)]
pub struct Seat {
    lobby: Arc<Lobby>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lobby.waiting.lock().unwrap_or_else(PoisonError::into_inner).all.remove(&self.number);
    }
}

/// What all tests of a server have together: bytes, or their number.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u64,
    taken: AtomicU64,
}

impl Budget {
    /// So much.
    pub fn new(most: u64) -> Budget {
        Budget { most, taken: AtomicU64::new(0) }
    }

    /// As much of it, as long as what comes back lives. None: there is not as much left.
    pub fn take(&self, amount: u64) -> Option<Share<'_>> {
        let more = |taken: u64| taken.checked_add(amount).filter(|sum| *sum <= self.most);
        self.taken.try_update(Relaxed, Relaxed, more).ok()?;
        Some(Share { of: self, amount })
    }

    /// All of it.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// What is taken now.
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

/// A part of a budget.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    of: &'a Budget,
    amount: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.taken.fetch_sub(self.amount, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    fn at(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn who_has_the_most_seats_loses_his_oldest() {
        let waiting = [(0, at("10.0.0.1")), (1, at("10.0.0.9")), (2, at("10.0.0.9")), (3, at("10.0.0.2"))];
        let leaves = |newcomer| leaves(waiting.into_iter(), at(newcomer));
        assert_eq!(leaves("10.0.0.3"), Some(1));
        // Who comes a second time and is as many then, and older, goes.
        assert_eq!(leaves("10.0.0.1"), Some(0));
        assert_eq!(leaves("10.0.0.9"), Some(1));
        // A host of IPv6 has more addresses than seats.
        let v6 = [(7, at("2001:db8::1")), (8, at("2001:db8:1::1")), (9, at("2001:db8:1::2"))];
        assert_eq!(super::leaves(v6.into_iter(), at("2001:db8:2::1")), Some(8));
        assert_eq!(super::leaves(std::iter::empty::<(u8, _)>(), None), None);
    }

    #[test]
    fn a_stranger_without_end_takes_seats_from_himself() {
        let lobby = Lobby::new(8);
        let pair = || UnixStream::pair().expect("a pair");
        let (good, mut good_far) = pair();
        good_far.set_nonblocking(true).expect("set");
        let seat = lobby.enter(&good, at("10.0.0.1")).expect("a seat");
        let mut held = Vec::new();
        for _ in 0..100 {
            let (near, far) = pair();
            held.push((lobby.enter(&near, at("10.6.6.6")).expect("a seat"), near, far));
        }
        assert_eq!(lobby.taken(), 8);
        assert!(good_far.read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        let mut ended = 0;
        for (_, _, far) in &mut held {
            far.set_nonblocking(true).expect("set");
            ended += usize::from(matches!(far.read(&mut [0]), Ok(0)));
        }
        assert_eq!(ended, 93);
        drop((held, seat));
        assert_eq!(lobby.taken(), 0);
    }

    #[test]
    fn a_budget_is_given_back() {
        let budget = Budget::new(10);
        let first = budget.take(7).expect("there is as much");
        assert!(budget.take(4).is_none() && budget.take(u64::MAX).is_none());
        let second = budget.take(3);
        assert!(second.is_some());
        assert_eq!((budget.most(), budget.taken()), (10, 10));
        drop((first, second));
        assert_eq!(budget.taken(), 0);
    }
}
