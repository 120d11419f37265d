//! Which frames are taken at all: rules by address and number (`edit::classify::Selection`), or a BPF filter.
//!
//! A filter expression is compiled by tcpdump, which everybody has who knows the language, and run here by a machine of
//! a few lines over the frame as it is on the wire. The kernel could run it at the socket, but there VLAN tags are no
//! longer in the frame, so that the same expression would mean something else.

use edit::classify::{BadSelection, Selection};
use std::process::Stdio;
use wire::LinkType;
use wire::bytes::{be16, be32};

/// Which frames are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// By address or number.
    Rule(Selection),
    /// By what a BPF program says.
    Bpf(Program),
}

/// Why a text is not a filter.
#[derive(Debug, thiserror::Error)]
pub enum BadFilter {
    /// Not a rule.
    #[error(transparent)]
    Selection(#[from] BadSelection),
    /// A BPF filter says what to take.
    #[error("`{0}`: leave out what a BPF filter names by including `F:not (...)`")]
    ExcludedFilter(String),
    /// There is no compiler.
    #[error(
        "BPF filters are compiled by tcpdump, which cannot be run here ({0}): install it, or use S:, D:, B:, E: or P:"
    )]
    NoCompiler(std::io::Error),
    /// The compiler refused it.
    #[error("`{filter}` is not a BPF filter: {why}")]
    NotAFilter {
        /// The expression.
        filter: String,
        /// tcpdump's words.
        why: String,
    },
}

impl Filter {
    /// Only what `rule` names.
    ///
    /// # Errors
    /// That the rule cannot be read, and where.
    pub fn include(rule: &str) -> Result<Filter, BadFilter> {
        match rule.strip_prefix("F:") {
            Some(expression) => compile(expression).map(Filter::Bpf),
            None => Ok(Filter::Rule(Selection::include(rule)?)),
        }
    }

    /// All but what `rule` names.
    ///
    /// # Errors
    /// That the rule cannot be read, and where.
    pub fn exclude(rule: &str) -> Result<Filter, BadFilter> {
        match rule.strip_prefix("F:") {
            Some(_) => Err(BadFilter::ExcludedFilter(rule.to_owned())),
            None => Ok(Filter::Rule(Selection::exclude(rule)?)),
        }
    }

    /// Whether frame `number` (from 1) is taken.
    #[inline]
    pub fn takes(&self, number: u64, frame: &[u8]) -> bool {
        match self {
            Filter::Rule(selection) => selection.takes(LinkType::ETHERNET, number, frame),
            Filter::Bpf(program) => program.run(frame) > 0,
        }
    }
}

/// Has tcpdump compile an expression for Ethernet frames.
fn compile(expression: &str) -> Result<Program, BadFilter> {
    let output = port::outside::program("tcpdump")
        .args(["-ddd", "-y", "EN10MB", "--", expression])
        .stdin(Stdio::null())
        .output()
        .map_err(BadFilter::NoCompiler)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Program::parse(&text).filter(|_| output.status.success()).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let why =
            said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("tcpdump does not say why");
        BadFilter::NotAFilter { filter: expression.to_owned(), why: why.trim().to_owned() }
    })
}

/// A classic BPF program (bpf(4) of the BSDs; Documentation/networking/filter.rst).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    k: u32,
}

const MEMORY: usize = 16;

impl Program {
    /// Reads what `tcpdump -ddd` prints: how many instructions there are, then each as four decimal numbers.
    pub fn parse(text: &str) -> Option<Program> {
        let mut lines = text.lines();
        let count: usize = lines.next()?.trim().parse().ok()?;
        let instruction = |line: &str| {
            let mut numbers = line.split_whitespace();
            let instruction = Instruction {
                code: numbers.next()?.parse().ok()?,
                if_true: numbers.next()?.parse().ok()?,
                if_false: numbers.next()?.parse().ok()?,
                k: numbers.next()?.parse().ok()?,
            };
            numbers.next().is_none().then_some(instruction)
        };
        let program: Vec<Instruction> = lines.map(instruction).collect::<Option<_>>()?;
        (program.len() == count && count > 0).then_some(Program(program))
    }

    /// How many bytes of the frame it takes; 0: not this frame. A load from outside of the frame, a jump or an
    /// instruction that does not exist, and a division by 0 end it with 0, as in the kernel.
    pub fn run(&self, frame: &[u8]) -> u32 {
        self.machine(frame).unwrap_or(0)
    }

    fn machine(&self, frame: &[u8]) -> Option<u32> {
        let (mut a, mut x, mut memory, mut at) = (0u32, 0u32, [0u32; MEMORY], 0usize);
        let load = |at: usize, size: u16| match size {
            0x00 => be32(frame, at),
            0x08 => be16(frame, at).map(u32::from),
            0x10 => frame.get(at).map(|byte| u32::from(*byte)),
            _ => None,
        };
        loop {
            let Instruction { code, if_true, if_false, k } = *self.0.get(at)?;
            at += 1;
            let operand = if code & 0x08 != 0 { x } else { k };
            match code & 0x07 {
                // Loads into A and X: immediate, absolute, indirect, from memory, length, header length.
                0x00 | 0x01 => {
                    let value = match code & 0xe0 {
                        0x00 => k,
                        0x20 => load(k as usize, code & 0x18)?,
                        0x40 => load((x as usize).checked_add(k as usize)?, code & 0x18)?,
                        0x60 => *memory.get(k as usize)?,
                        0x80 => frame.len() as u32,
                        0xa0 => (load(k as usize, 0x10)? & 0xf) * 4,
                        _ => return None,
                    };
                    if code & 0x07 == 0 {
                        a = value;
                    } else {
                        x = value;
                    }
                }
                0x02 => *memory.get_mut(k as usize)? = a,
                0x03 => *memory.get_mut(k as usize)? = x,
                0x04 => {
                    a = match code & 0xf0 {
                        0x00 => a.wrapping_add(operand),
                        0x10 => a.wrapping_sub(operand),
                        0x20 => a.wrapping_mul(operand),
                        0x30 => a.checked_div(operand)?,
                        0x40 => a | operand,
                        0x50 => a & operand,
                        0x60 => a.checked_shl(operand).unwrap_or(0),
                        0x70 => a.checked_shr(operand).unwrap_or(0),
                        0x80 => a.wrapping_neg(),
                        0x90 => a.checked_rem(operand)?,
                        0xa0 => a ^ operand,
                        _ => return None,
                    }
                }
                0x05 => {
                    let met = match code & 0xf0 {
                        0x00 => {
                            at = at.checked_add(k as usize)?;
                            continue;
                        }
                        0x10 => a == operand,
                        0x20 => a > operand,
                        0x30 => a >= operand,
                        0x40 => a & operand != 0,
                        _ => return None,
                    };
                    // Jumps lead forward only, so every program ends.
                    at += usize::from(if met { if_true } else { if_false });
                }
                0x06 => return Some(if code & 0x18 == 0x10 { a } else { k }),
                _ => match code & 0xf8 {
                    0x00 => x = a,
                    0x80 => a = x,
                    _ => return None,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP frame from 10.0.0.1:1000 to 10.0.0.2:53.
    fn udp() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x03, 0xe8, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        frame
    }

    /// Needs tcpdump.
    #[test]
    fn expressions_mean_what_they_say() {
        let mut tagged = udp();
        tagged.splice(12..12, [0x81, 0, 0, 7]);
        for (expression, plain, in_vlan) in [
            ("udp port 53", true, false),
            ("src host 10.0.0.1 and dst port 53", true, false),
            ("tcp", false, false),
            ("vlan 7", false, true),
            ("vlan 8", false, false),
            ("vlan and udp dst port 53", false, true),
            ("udp[8] = 1 and ip[8] > 60", true, false),
            ("ether[6] & 2 != 0", true, true),
            ("len <= 46", true, false),
            ("(udp[4:2] * 2 - 4) / 5 = 4", true, false),
        ] {
            let filter = Filter::include(&format!("F:{expression}")).expect(expression);
            assert_eq!((filter.takes(1, &udp()), filter.takes(1, &tagged)), (plain, in_vlan), "{expression}");
        }
    }

    /// Needs tcpdump.
    #[test]
    fn what_is_no_filter_is_named() {
        let error = Filter::include("F:port nowhere at all").expect_err("refused").to_string();
        assert!(error.contains("`port nowhere at all` is not a BPF filter"), "{error}");
        let error = Filter::exclude("F:udp").expect_err("refused").to_string();
        assert!(error.contains("F:not"), "{error}");
        assert!(Filter::include("Z:1").is_err());
    }

    #[test]
    fn programs_are_read_whole_or_not_at_all() {
        assert!(Program::parse("1\n6 0 0 262144\n").is_some());
        for wrong in ["", "2\n6 0 0 1\n", "1\n6 0 0\n", "1\n6 0 0 1 1\n", "0\n", "1\n6 0 256 1\n"] {
            assert!(Program::parse(wrong).is_none(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn every_program_ends_and_none_panics(
            codes in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>()), 1..50),
            frame in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let program = codes.into_iter().map(|(code, if_true, if_false, k)| {
                // Most numbers are no instructions, and most offsets lead outside.
                Instruction { code: code & 0xff, if_true: if_true % 8, if_false: if_false % 8, k: k % 128 }
            });
            let _ = Program(program.collect()).run(&frame);
        }
    }
}
