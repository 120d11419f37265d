//! `--cores`: which CPUs send.

use anyhow::{Result, bail};
use std::fmt;
use std::str::FromStr;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cores {
    /// So many, we choose which.
    Number(usize),
    /// These.
    List(Vec<usize>),
}

/// The CPUs that others send on, and whether they do so as real-time tasks, which go before everybody else.
pub type Taken = std::collections::BTreeMap<usize, bool>;

/// CPU numbers are below this: what one affinity mask holds.
const MOST: usize = rustix::thread::CpuSet::MAX_CPU;

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        let number = |part: &str| {
            let number = part.trim().parse::<usize>().ok().filter(|_| !part.trim().starts_with('+'));
            number.ok_or_else(|| {
                format!("`{text}` is neither a number of cores (4) nor a list of CPUs (0-3,6; 4-4 for CPU 4)")
            })
        };
        if !text.contains([',', '-']) {
            return match number(text)? {
                0 => Err("0 cores send nothing: give 1 or more".to_owned()),
                n if n > MOST => Err(format!("{n} cores: there are never more than {MOST}")),
                n => Ok(Cores::Number(n)),
            };
        }
        let mut list = Vec::new();
        for part in text.split(',') {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(part)?, number(part)?),
            };
            if from > to {
                return Err(format!("`{part}` runs backwards: write {to}-{from}"));
            }
            if to >= MOST {
                return Err(format!("there is no CPU {to}: their numbers are below {MOST}"));
            }
            for cpu in from..=to {
                if list.contains(&cpu) {
                    return Err(format!("CPU {cpu} is in the list twice: one worker runs on each"));
                }
                list.push(cpu);
            }
        }
        Ok(Cores::List(list))
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cores::Number(n) => write!(f, "{n}"),
            Cores::List(list) => f.write_str(&ranges(list)),
        }
    }
}

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

/// CPUs as one writes them: 0-3,6.
fn ranges(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == cpu => *to = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |&(from, to): &(usize, usize)| {
        if from == to { from.to_string() } else { format!("{from}-{to}") }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Cores, String> {
        text.parse()
    }

    #[test]
    fn a_number_and_lists_are_read() {
        assert_eq!(parsed("4"), Ok(Cores::Number(4)));
        assert_eq!(parsed("0-3,6"), Ok(Cores::List(vec![0, 1, 2, 3, 6])));
        assert_eq!(parsed("6,2"), Ok(Cores::List(vec![6, 2])));
        assert_eq!(parsed("4-4"), Ok(Cores::List(vec![4])));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_reason() {
        for (text, words) in [
            ("0", "give 1 or more"),
            ("1,1", "CPU 1 is in the list twice"),
            ("0-3,2", "CPU 2 is in the list twice"),
            ("3-1", "write 1-3"),
            ("0-99999999999", "there is no CPU 99999999999"),
            ("5000", "never more than"),
            ("all", "neither a number"),
            ("1,", "neither a number"),
            ("-1", "neither a number"),
            ("+1", "neither a number"),
            ("", "neither a number"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

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
            choose(&cores.parse().expect("cores"), allowed, &Taken::new(), 1)
                .expect_err("refused")
                .to_string()
        };
        assert!(refused("5", &[0, 1, 2, 7]).contains("4 CPUs only (CPUs 0-2,7)"));
        assert!(refused("1,3", &[0, 1]).contains("CPU 3 cannot send: this process may run on CPUs 0-1 only"));
    }
}
