//! Which CPUs send.

use anyhow::{Result, bail};
use spec::{Cores, ranges};

/// The CPUs that others send on, and whether they do so as real-time tasks, which go before everybody else.
pub type Taken = std::collections::BTreeMap<usize, bool>;

/// The CPU of each worker, out of those `allowed` (ascending) to this process; `queues` has the interface to send on.
///
/// A list is taken as it stands. Of a number the CPUs are those that nobody else sends on, as far as there are such, then
/// those of ordinary senders, then those of real-time ones ([`Taken`]); of these the last ones, because the first serve most
/// interrupts; and as long as there are any, such that leave different remainders when divided by the number of queues: drivers (veth,
/// mlx5, i40e) pick the queue of a frame that XDP sends, and the kernel that of a packet socket, by the CPU's number
/// modulo the queues, and two CPUs on one queue wait for each other.
pub fn choose(cores: &Cores, allowed: &[usize], taken: &Taken, queues: u32) -> Result<Vec<usize>> {
    match cores {
        Cores::List(list) => {
            if let Some(cpu) = list.iter().find(|cpu| !allowed.contains(cpu)) {
                bail!("CPU {cpu} cannot send: this process may run on CPUs {} only", ranges(allowed));
            }
            Ok(list.clone())
        }
        Cores::Number(n) if *n > allowed.len() => bail!(
            "{n} cores: this process may run on {} only (CPUs {}), and each worker needs one of its own",
            report::units::counted(allowed.len() as u64, "CPU"),
            ranges(allowed)
        ),
        Cores::Number(n) => {
            let queues = queues.max(1) as usize;
            let mut chosen = Vec::with_capacity(*n);
            for by in [None, Some(false), Some(true)] {
                let mut left: Vec<usize> =
                    allowed.iter().rev().copied().filter(|cpu| taken.get(cpu).copied() == by).collect();
                while chosen.len() < *n && !left.is_empty() {
                    // One CPU for each queue, then from the start.
                    let mut served = Vec::new();
                    left.retain(|cpu| {
                        let take = chosen.len() < *n && !served.contains(&(cpu % queues));
                        if take {
                            served.push(cpu % queues);
                            chosen.push(*cpu);
                        }
                        !take
                    });
                }
            }
            Ok(chosen)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_the_last_cpus_and_spreads_them_over_the_queues() {
        let all: Vec<usize> = (0..8).collect();
        let of = |n, allowed: &[usize], queues| {
            choose(&Cores::Number(n), allowed, &Taken::new(), queues).expect("enough")
        };
        assert_eq!(of(1, &all, 1), [7]);
        assert_eq!(of(3, &all, 1), [7, 6, 5]);
        assert_eq!(of(3, &all, 2), [7, 6, 5]);
        // Of every other CPU all would share one of two queues, and two of four.
        assert_eq!(of(2, &[0, 2, 4, 5, 6], 2), [6, 5]);
        assert_eq!(of(4, &[0, 1, 4, 5, 8, 9], 4), [9, 8, 5, 4]);
        assert_eq!(of(8, &all, 3), [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(of(2, &all, 0), [7, 6]);
    }

    #[test]
    fn what_others_send_on_is_taken_last() {
        let all: Vec<usize> = (0..4).collect();
        let of = |n, taken: &[(usize, bool)]| {
            choose(&Cores::Number(n), &all, &taken.iter().copied().collect(), 2).expect("enough")
        };
        assert_eq!(of(1, &[(3, false)]), [2]);
        assert_eq!(of(1, &[(3, false), (2, true), (1, true)]), [0]);
        assert_eq!(of(2, &[(3, true)]), [2, 1]);
        assert_eq!(of(3, &[(3, true), (1, false)]), [2, 0, 1]);
        // Before a real-time sender comes an ordinary one, which shares.
        assert_eq!(of(1, &[(0, false), (1, true), (2, true), (3, true)]), [0]);
        assert_eq!(of(1, &[(0, true), (1, true), (2, true), (3, true)]), [3]);
        // Who says which, has it.
        let taken = Taken::from([(3, true)]);
        assert_eq!(choose(&Cores::List(vec![3]), &all, &taken, 1).expect("it is allowed"), [3]);
    }

    #[test]
    fn cpus_that_may_not_be_used_are_named() {
        let refused = |cores: &str, allowed: &[usize]| {
            choose(&spec::Quantity::read(cores).expect("cores"), allowed, &Taken::new(), 1)
                .expect_err("refused")
                .to_string()
        };
        assert!(refused("5", &[0, 1, 2, 7]).contains("4 CPUs only (CPUs 0-2,7)"));
        assert!(refused("1,3", &[0, 1]).contains("CPU 3 cannot send: this process may run on CPUs 0-1 only"));
    }
}
