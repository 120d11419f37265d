//! Which CPUs send.

use crate::written::{Quantity, Written};
use std::fmt;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cores {
    /// So many, we choose which.
    Number(usize),
    /// These.
    List(Vec<usize>),
}

/// CPU numbers are below this: what one affinity mask holds.
const MOST: usize = 1024;

impl Cores {
    /// One CPU, which may be one that there is not.
    pub fn one(cpu: usize) -> Written<Cores> {
        Written::of(format!("{cpu}-{cpu}"), Cores::List(vec![cpu]))
    }
}

impl Quantity for Cores {
    const NAME: &'static str = "Cores";
    const WRITTEN: &'static str = "A number of cores (4), or a list of CPUs (0-3,6; 4-4 for CPU 4).";
    const EXAMPLES: &'static [&'static str] = &["4", "0-3,6"];

    fn read(text: &str) -> Result<Cores, String> {
        let number = |part: &str| {
            let number = part.trim().parse::<usize>().ok().filter(|_| !part.trim().starts_with('+'));
            number.ok_or_else(|| {
                format!("`{text}` is neither a number of cores (4) nor a list of CPUs (0-3,6; 4-4 for CPU 4)")
            })
        };
        if !text.contains([',', '-']) {
            return match number(text)? {
                0 => Err("0 cores send nothing: give 1 or more, or 0-0 for CPU 0".to_owned()),
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

/// CPUs as one writes them: 0-3,6.
pub fn ranges(cpus: &[usize]) -> String {
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
        Cores::read(text)
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
}
