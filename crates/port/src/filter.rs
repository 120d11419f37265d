//! Classic BPF filters of packet sockets (Documentation/networking/filter.rst): which frames of one TCP server are taken, and how
//! much of each. Written by this module, run by the kernel before a frame takes room in a ring.
//!
//! What the filter cannot judge by itself (tags within the frame, extension headers, later fragments) it lets pass; who receives
//! looks again. So nothing is lost by it, and nearly nothing of others is copied.

use std::net::IpAddr;

/// `struct sock_filter`: code, jumps if true and if false, operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step(pub u16, pub u8, pub u8, pub u32);

const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF_AT_X: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
/// X is four times the lower half of a byte: an IPv4 header's length.
const HEADER_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const GO: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A TCP server's frames, of both directions.
#[derive(Debug, Clone, Copy)]
pub struct TcpServer {
    /// Its address; `None`: any.
    pub address: Option<IpAddr>,
    /// Its port.
    pub port: u16,
    /// Of frames from the server so many bytes are taken; of those to it all.
    pub answers: u32,
    /// A server of the same port whose frames are not taken.
    pub except: Option<IpAddr>,
}

/// A place in the program that jumps go to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Next,
    All,
    Answers,
    Nothing,
    /// To the part for IPv6.
    V6,
    /// To the part that looks at a frame from the server.
    FromServer,
}

enum Line {
    Do(u16, u32),
    If(u16, u32, To, To),
    Label(To),
}

const WHOLE: u32 = 0x4_0000;

impl TcpServer {
    /// The filter.
    pub fn program(&self) -> Vec<Step> {
        let mut lines = vec![
            Line::Do(LOAD_HALF, 12),
            Line::If(EQUAL, 0x86dd, To::V6, To::Next),
            // Tags within the frame, and whatever else: looked at by who receives.
            Line::If(EQUAL, 0x0800, To::Next, To::All),
            Line::Do(LOAD_BYTE, 23),
            Line::If(EQUAL, 6, To::Next, To::Nothing),
            Line::Do(LOAD_HALF, 20),
            // A later fragment has no ports, and of a first one nothing may be cut off: it is put together with the others.
            Line::If(ANY_BIT, 0x3fff, To::All, To::Next),
            Line::Do(HEADER_LENGTH, 14),
        ];
        self.ends(
            &mut lines,
            LOAD_HALF_AT_X,
            14,
            |address| match address {
                IpAddr::V4(address) => Some(vec![address.to_bits()]),
                IpAddr::V6(_) => None,
            },
            [26, 30],
        );
        lines.push(Line::Label(To::V6));
        lines.push(Line::Do(LOAD_BYTE, 20));
        lines.push(Line::If(EQUAL, 6, To::Next, To::All));
        self.ends(
            &mut lines,
            LOAD_HALF,
            54,
            |address| match address {
                IpAddr::V6(address) => Some(
                    address
                        .octets()
                        .chunks(4)
                        .map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
                        .collect(),
                ),
                IpAddr::V4(_) => None,
            },
            [22, 38],
        );
        assemble(&lines)
    }

    /// Looks at ports, which stand at `ports` and behind, and at addresses at `places`.
    fn ends(
        &self,
        lines: &mut Vec<Line>,
        load: u16,
        ports: u32,
        words: impl Fn(IpAddr) -> Option<Vec<u32>>,
        places: [u32; 2],
    ) {
        let side = |lines: &mut Vec<Line>, place: u32, taken: To| {
            // The excepted one is another address: all of its words are equal.
            if let Some(except) = self.except.and_then(&words) {
                different(lines, &except, place, taken, self.address.and_then(&words), place);
                return;
            }
            if let Some(wanted) = self.address.map(&words) {
                all_equal(lines, wanted.as_deref(), place, taken);
            } else {
                lines.push(Line::If(GO, 0, taken, taken));
            }
        };
        lines.push(Line::Do(load, ports + 2));
        lines.push(Line::If(EQUAL, self.port.into(), To::Next, To::FromServer));
        side(lines, places[1], To::All);
        lines.push(Line::Label(To::FromServer));
        lines.push(Line::Do(load, ports));
        lines.push(Line::If(EQUAL, self.port.into(), To::Next, To::Nothing));
        side(lines, places[0], To::Answers);
    }
}

/// Takes frames whose address is this; none of another family.
fn all_equal(lines: &mut Vec<Line>, wanted: Option<&[u32]>, place: u32, taken: To) {
    let Some(wanted) = wanted else {
        // A frame to another address may still be an answer: both ports may be the same.
        let other = if taken == To::All { To::FromServer } else { To::Nothing };
        lines.push(Line::If(GO, 0, other, other));
        return;
    };
    let other = if taken == To::All { To::FromServer } else { To::Nothing };
    for (at, word) in (place..).step_by(4).zip(wanted) {
        lines.push(Line::Do(LOAD_WORD, at));
        lines.push(Line::If(EQUAL, *word, To::Next, other));
    }
    lines.push(Line::If(GO, 0, taken, taken));
}

/// Takes frames whose address is another one, and the wanted one, if one is.
fn different(
    lines: &mut Vec<Line>,
    except: &[u32],
    place: u32,
    taken: To,
    wanted: Option<Vec<u32>>,
    at: u32,
) {
    let other = if taken == To::All { To::FromServer } else { To::Nothing };
    if let Some(wanted) = wanted {
        // The wanted address is known, and the excepted one is not it.
        return all_equal(lines, Some(&wanted), at, taken);
    }
    let last = except.len() - 1;
    for (nth, (at, word)) in (place..).step_by(4).zip(except).enumerate() {
        lines.push(Line::Do(LOAD_WORD, at));
        lines.push(Line::If(EQUAL, *word, if nth == last { other } else { To::Next }, taken));
    }
}

/// Finds out how far jumps go. All go forward: a label's next place behind the jump is meant.
fn assemble(lines: &[Line]) -> Vec<Step> {
    let steps = lines.iter().filter(|line| !matches!(line, Line::Label(_))).count();
    // Behind the last step there are three ways to end.
    let (all, answers, nothing) = (steps, steps + 1, steps + 2);
    let mut program = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let place = program.len();
        let jump = |to: &To| -> usize {
            let target = match to {
                To::Next => place + 1,
                To::All => all,
                To::Answers => answers,
                To::Nothing => nothing,
                label => {
                    let behind = lines.get(number + 1..).unwrap_or_default();
                    let before =
                        behind.iter().take_while(|line| !matches!(line, Line::Label(at) if at == label));
                    place + 1 + before.filter(|line| !matches!(line, Line::Label(_))).count()
                }
            };
            target - place - 1
        };
        match line {
            Line::Label(_) => {}
            Line::Do(code, operand) => program.push(Step(*code, 0, 0, *operand)),
            Line::If(GO, _, to, _) => program.push(Step(GO, 0, 0, jump(to) as u32)),
            Line::If(code, operand, yes, no) => {
                program.push(Step(*code, jump(yes) as u8, jump(no) as u8, *operand));
            }
        }
    }
    program.extend([Step(RETURN, 0, 0, WHOLE), Step(RETURN, 0, 0, 0), Step(RETURN, 0, 0, 0)]);
    program
}

impl TcpServer {
    /// The filter as it is attached.
    pub fn steps(&self) -> Vec<Step> {
        let mut program = self.program();
        let answers = program.len() - 2;
        if let Some(step) = program.get_mut(answers) {
            step.3 = self.answers;
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernel does with such a program: how much of the frame is taken.
    fn run(program: &[Step], frame: &[u8]) -> u32 {
        let (mut at, mut a, mut x) = (0, 0u32, 0u32);
        let load = |at: u32, size: usize| -> Option<u32> {
            let bytes = frame.get(at as usize..)?.get(..size)?;
            Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        loop {
            let Step(code, yes, no, k) = program[at];
            at += 1;
            let loaded = match code {
                LOAD_HALF => load(k, 2),
                LOAD_BYTE => load(k, 1),
                LOAD_WORD => load(k, 4),
                LOAD_HALF_AT_X => load(x + k, 2),
                HEADER_LENGTH => {
                    let Some(byte) = load(k, 1) else { return 0 };
                    x = (byte & 15) * 4;
                    continue;
                }
                EQUAL | ANY_BIT => {
                    let is = if code == EQUAL { a == k } else { a & k != 0 };
                    at += usize::from(if is { yes } else { no });
                    continue;
                }
                GO => {
                    at += k as usize;
                    continue;
                }
                RETURN => return k,
                _ => panic!("{code}"),
            };
            // Beyond the frame's end the kernel takes nothing.
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
        }
    }

    fn frame(from: (IpAddr, u16), to: (IpAddr, u16), options: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        match (from.0, to.0) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                frame.extend([8, 0, 0x45 + options as u8, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0]);
                frame.extend(a.octets());
                frame.extend(b.octets());
                frame.extend(vec![1; options * 4]);
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
                frame.extend(a.octets());
                frame.extend(b.octets());
            }
            _ => panic!("two families"),
        }
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend([0; 16]);
        frame
    }

    fn address(v6: bool, last: u8) -> IpAddr {
        match v6 {
            false => IpAddr::from([10, 0, 0, last]),
            true => format!("2001:db8::{last:x}").parse().unwrap(),
        }
    }

    proptest! {
        #[test]
        fn exactly_the_servers_frames_are_taken(
            v6 in any::<bool>(), filter_v6 in any::<bool>(), with_address in any::<bool>(), with_except in any::<bool>(),
            a in 1u8..4, b in 1u8..4, ports in (79u16..82, 79u16..82), options in 0usize..3,
        ) {
            let server = with_address.then(|| address(filter_v6, 1));
            let except = with_except.then(|| address(filter_v6, 2));
            let filter = TcpServer { address: server, port: 80, answers: 300, except };
            let program = filter.steps();
            let (from, to) = ((address(v6, a), ports.0), (address(v6, b), ports.1));
            let taken = run(&program, &frame(from, to, options));
            let is = |end: (IpAddr, u16)| {
                end.1 == 80 && server.is_none_or(|server| server == end.0) && (server.is_some() || except != Some(end.0))
            };
            let wanted = if is(to) { WHOLE } else if is(from) { 300 } else { 0 };
            prop_assert_eq!(taken, wanted, "{:?} from {:?} to {:?}", filter, from, to);
        }
    }

    #[test]
    fn what_it_cannot_judge_passes_and_what_is_something_else_does_not() {
        let filter = TcpServer { address: Some(address(false, 1)), port: 80, answers: 300, except: None };
        let program = filter.steps();
        let good = frame((address(false, 9), 5), (address(false, 1), 80), 0);
        let changed = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            run(&program, &frame)
        };
        assert_eq!((changed(0, 2), changed(12, 0x81)), (WHOLE, WHOLE));
        assert_eq!((changed(21, 7), changed(23, 17)), (WHOLE, 0));
    }
}
