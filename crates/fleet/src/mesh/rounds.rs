//! Which pairs of hosts are tested in which round, so that no host is in two tests at the same time.
//!
//! ```text
//!   the circle method, of six hosts; the first stays, the others turn by one each round:
//!
//!     0 1 2      0 5 1      0 4 5
//!     5 4 3      4 3 2      3 2 1       ...: 5 rounds of 3 pairs, then the same with client and server exchanged
//! ```
//!
//! An odd number of hosts has one that pauses in each round. Nothing is reached here.

/// A client and a server, by their places among the hosts.
pub(super) type Pair = (usize, usize);

/// All ordered pairs of so many hosts whose client `is_client`, in rounds in each of which a host is in one pair at most.
pub(super) fn rounds(hosts: usize, is_client: impl Fn(usize) -> bool) -> Vec<Vec<Pair>> {
    let seats = hosts.next_multiple_of(2);
    let turning = seats.saturating_sub(1);
    let seated = |round: usize, seat: usize| match seat {
        0 => 0,
        seat => (seat - 1 + round) % turning + 1,
    };
    let matched = |round: usize| {
        let pairs = (0..seats / 2).map(move |seat| (seated(round, seat), seated(round, seats - 1 - seat)));
        // Who sits opposite the seat that nobody has pauses.
        pairs.filter(|(a, b)| *a < hosts && *b < hosts)
    };
    let there = (0..turning).map(|round| {
        // Of a host without an agent there is one direction.
        matched(round).map(|(a, b)| if is_client(a) { (a, b) } else { (b, a) }).collect::<Vec<Pair>>()
    });
    let back = (0..turning).map(|round| {
        let both = matched(round).filter(|(a, b)| is_client(*a) && is_client(*b));
        both.map(|(a, b)| (b, a)).collect::<Vec<Pair>>()
    });
    let rounds = there.chain(back).map(|round| round.into_iter().filter(|(a, _)| is_client(*a)).collect());
    rounds.filter(|round: &Vec<Pair>| !round.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_ordered_pair_is_tested_once_and_no_host_is_in_two_tests_at_once() {
        for hosts in 2..20 {
            for agents in 1..=hosts {
                let rounds = rounds(hosts, |host| host < agents);
                let mut all = BTreeSet::new();
                for round in &rounds {
                    let mut busy = BTreeSet::new();
                    for (client, server) in round {
                        assert!(busy.insert(*client) && busy.insert(*server), "{hosts} {agents}: {round:?}");
                        assert!(*client < agents && client != server && *server < hosts);
                        assert!(all.insert((*client, *server)), "{hosts} {agents}: twice");
                    }
                }
                assert_eq!(all.len(), agents * (hosts - 1), "{hosts} {agents}");
            }
            let all = rounds(hosts, |_| true);
            let least = 2 * if hosts % 2 == 0 { hosts - 1 } else { hosts };
            assert_eq!(all.len(), least, "{hosts}: as few rounds as there can be");
        }
    }

    #[test]
    fn without_a_client_there_is_nothing_to_test() {
        assert!(
            rounds(3, |_| false).is_empty()
                && rounds(1, |_| true).is_empty()
                && rounds(0, |_| true).is_empty()
        );
    }
}
