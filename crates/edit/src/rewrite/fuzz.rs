//! Payloads damaged on purpose, in every so many frames, as a seed has it: tcprewrite's `--fuzz-seed`.
//!
//! A number is drawn for each frame that can be edited. One in so many hits; the same number then says what happens:
//! the frame is dropped, cut, or up to 15 bytes at the start, in the middle or at the end of its payload become zeros,
//! ones, or others. Numbers, deeds and places are tcprewrite's, so that a seed does the same here as there. It takes
//! for a payload's length how far the payload is from the frame's start, less the transport header's length: 14 bytes
//! of TCP over Ethernet, whatever is there. [`Fuzz::whole_payloads`] takes what is there.

use std::sync::atomic::{AtomicU32, Ordering};

use wire::numbers::protocol::{TCP, UDP};

use super::{Frame, random};

/// What to do to payloads. Frames must come in order, from one thread: which number is whose follows from how many
/// came before.
#[derive(Debug)]
pub struct Fuzz {
    factor: u32,
    whole: bool,
    /// Of the random numbers. Not shared: an atomic, because a plan is lent out for reading.
    state: AtomicU32,
}

impl Clone for Fuzz {
    fn clone(&self) -> Fuzz {
        let state = self.state.load(Ordering::Relaxed);
        Fuzz { factor: self.factor, whole: self.whole, state: state.into() }
    }
}

impl PartialEq for Fuzz {
    fn eq(&self, other: &Fuzz) -> bool {
        let all = |fuzz: &Fuzz| (fuzz.factor, fuzz.whole, fuzz.state.load(Ordering::Relaxed));
        all(self) == all(other)
    }
}

impl Eq for Fuzz {}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    None,
    /// Its checksums are to be computed afresh.
    Payload,
    /// It ends within its headers.
    Cut,
    /// It is empty.
    Dropped,
}

/// Where a frame's payload is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payload {
    /// From where tcprewrite takes it to be.
    at: usize,
    /// How long tcprewrite takes it to be.
    window: usize,
}

impl Payload {
    /// Of a frame that is not IP: all behind the link header.
    pub(super) fn of_link(frame: &Frame, header: usize) -> Payload {
        Payload { at: header, window: frame.data.len().saturating_sub(header) }
    }

    /// Of an IP packet whose upper layer begins at `upper`.
    pub(super) fn of_ip(upper: usize, protocol: u8) -> Payload {
        let transport = match protocol {
            TCP => 20,
            UDP => 8,
            _ => 0,
        };
        Payload { at: upper + transport, window: upper.saturating_sub(transport) }
    }
}

impl Fuzz {
    /// One in `factor` frames; 0 counts as 1.
    pub fn new(seed: u32, factor: u32) -> Fuzz {
        Fuzz { factor: factor.max(1), whole: false, state: random::stirred(seed).0.into() }
    }

    /// Damages payloads wherever they are long, not only where tcprewrite does, and cuts no headers.
    #[must_use]
    pub fn whole_payloads(self) -> Fuzz {
        Fuzz { whole: true, ..self }
    }

    /// Damages the frame, if it is hit.
    pub(super) fn damage(&self, frame: &mut Frame, payload: Payload) -> Damage {
        let (state, number) = random::next(self.state.load(Ordering::Relaxed));
        self.state.store(state, Ordering::Relaxed);
        if !number.is_multiple_of(self.factor) || payload.at > frame.data.len() {
            return Damage::None;
        }
        let there = frame.data.len() - payload.at;
        let window = if self.whole { there } else { payload.window };
        if window <= 1 {
            return Damage::None;
        }
        let number = number ^ number >> 16;
        match number % 11 {
            0 => {
                frame.data.clear();
                frame.wire_len = 0;
                Damage::Dropped
            }
            1 => {
                let left = number as usize % (window - 1) + 1 + if self.whole { payload.at } else { 0 };
                match left.cmp(&frame.data.len()) {
                    std::cmp::Ordering::Greater => return Damage::None,
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Less => {
                        frame.data.truncate(left);
                        frame.wire_len = left as u32;
                    }
                }
                if self.whole { Damage::Payload } else { Damage::Cut }
            }
            deed => {
                let (place, pattern) = ((deed - 2) / 3, (deed - 2) % 3);
                if place == 1 && pattern != 1 && window <= 2 {
                    return Damage::None;
                }
                let (from, size) = match place {
                    0 => (0, spot(number, window)),
                    1 => {
                        let from = (number >> 16) as usize % (window - 1) + 1;
                        (from, spot(number, window - from))
                    }
                    _ => (window - spot(number, window), spot(number, window)),
                };
                let bytes = frame.data.iter_mut().skip(payload.at + from).take(size);
                for byte in bytes {
                    *byte = match pattern {
                        0 => 0,
                        1 => *byte ^ (number >> 4) as u8,
                        _ => 0xff,
                    };
                }
                Damage::Payload
            }
        }
    }
}

/// How many bytes of so many are damaged: one of few, up to 15 of more.
fn spot(number: u32, of: usize) -> usize {
    if of <= 16 { 1 } else { 1 + number as usize % 15 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_hit_and_a_seed_repeats_itself() {
        let run = |seed, factor| {
            let fuzz = Fuzz::new(seed, factor).whole_payloads();
            (0..8000u32)
                .map(|_| {
                    let mut frame = Frame { data: vec![0x55; 200], wire_len: 200, ..Frame::default() };
                    let payload = Payload::of_ip(34, UDP);
                    let damage = fuzz.damage(&mut frame, payload);
                    assert_eq!(frame.data.len(), frame.wire_len as usize);
                    if damage != Damage::Dropped {
                        assert!(frame.data.len() > 42 && frame.data[..42] == [0x55; 42], "headers stay");
                    }
                    assert!(damage != Damage::None || frame.data == [0x55; 200]);
                    (damage, frame.data)
                })
                .collect::<Vec<_>>()
        };
        let hit = run(42, 8).iter().filter(|(damage, _)| *damage != Damage::None).count();
        assert!((900..1100).contains(&hit), "{hit}");
        assert!(run(42, 1).iter().all(|(damage, _)| *damage != Damage::None));
        assert!(run(42, 8) == run(42, 8) && run(42, 8) != run(43, 8));
    }
}
