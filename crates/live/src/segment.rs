//! TCP segments as data (RFC 9293 section 3.1, options of RFC 2018 and 7323): read from bytes, written to bytes.
//!
//! No addresses and no checksum here; `packet.rs` has those.

use std::borrow::Cow;

/// No more comes from the sender.
pub const FIN: u8 = 0x01;
/// Numbers begin.
pub const SYN: u8 = 0x02;
/// The connection is torn down.
pub const RST: u8 = 0x04;
/// To be handed on at once.
pub const PSH: u8 = 0x08;
/// `ack` means something.
pub const ACK: u8 = 0x10;

/// Blocks of selective acknowledgement that fit beside a time stamp.
pub const MAX_SACKS: usize = 3;

/// A segment. `seq` and `ack` are as on the wire, modulo 2^32.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segment<'a> {
    /// The number of the first byte.
    pub seq: u32,
    /// The number of the next byte that is awaited.
    pub ack: u32,
    /// Bits: [`FIN`] and the others.
    pub flags: u8,
    /// Not scaled.
    pub window: u16,
    /// As far as they are known here.
    pub options: Options,
    /// The bytes that are carried.
    pub payload: Cow<'a, [u8]>,
}

/// The options that mean something here; all others are passed over when read (RFC 9293 section 3.1, MUST-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The largest segment that is taken, in bytes.
    pub mss: Option<u16>,
    /// The window is shifted left by so much.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements are taken.
    pub sack_permitted: bool,
    /// Value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of what was received beyond a gap: first sequence number, and the one behind the last. `count` are used.
    pub sacks: Sacks,
}

/// Blocks of a selective acknowledgement (RFC 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sacks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl Sacks {
    /// Adds a block; false when there is no room.
    pub fn push(&mut self, block: (u32, u32)) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = block;
        self.count += 1;
        true
    }

    /// The blocks: first number, and the number behind the last.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or_default()
    }
}

impl Segment<'_> {
    /// Is this bit set?
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// How much of the sequence space it takes.
    pub fn length(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }
}

/// What the fixed header and the options say; `None` if they contradict themselves. Ports are the caller's.
pub fn parse(bytes: &[u8]) -> Option<Segment<'_>> {
    let head = bytes.first_chunk::<20>()?;
    let header = usize::from(head[12] >> 4) * 4;
    if header < 20 {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    Some(Segment {
        seq: word(4),
        ack: word(8),
        flags: head[13],
        window: u16::from_be_bytes([head[14], head[15]]),
        options: options(bytes.get(20..header)?),
        payload: Cow::Borrowed(bytes.get(header..)?),
    })
}

/// Reads options; what is cut off or of a wrong length ends them.
fn options(mut bytes: &[u8]) -> Options {
    let mut options = Options::default();
    loop {
        let (&kind, length) = match bytes {
            [0, ..] | [] => return options,
            [1, rest @ ..] => {
                bytes = rest;
                continue;
            }
            [kind, length, ..] => (kind, usize::from(*length)),
            [_] => return options,
        };
        let Some(value) = bytes.get(2..length) else { return options };
        let word = |at: usize| value.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        match (kind, value) {
            (2, [a, b]) => options.mss = Some(u16::from_be_bytes([*a, *b])),
            // More than 14 counts as 14 (RFC 7323 section 2.3).
            (3, [shift]) => options.window_scale = Some((*shift).min(14)),
            (4, []) => options.sack_permitted = true,
            (5, blocks) => {
                for at in (0..blocks.len()).step_by(8) {
                    if let (Some(left), Some(right)) = (word(at), word(at + 4)) {
                        options.sacks.push((left, right));
                    }
                }
            }
            (8, [_, _, _, _, _, _, _, _]) => options.timestamps = word(0).zip(word(4)),
            _ => {}
        }
        bytes = bytes.get(length..).unwrap_or_default();
    }
}

/// Appends the segment with these ports, its checksum left zero.
pub fn emit(segment: &Segment<'_>, ports: (u16, u16), out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(segment.seq.to_be_bytes());
    out.extend(segment.ack.to_be_bytes());
    out.extend([0, segment.flags]);
    out.extend(segment.window.to_be_bytes());
    out.extend([0; 4]);
    let options = &segment.options;
    if let Some(mss) = options.mss {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        out.extend([1, 3, 3, shift]);
    }
    if options.sack_permitted {
        out.extend([1, 1, 4, 2]);
    }
    if let Some((value, echo)) = options.timestamps {
        out.extend([1, 1, 8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    let sacks = options.sacks.as_slice();
    let sacks = sacks.get(..sacks.len().min(MAX_SACKS)).unwrap_or_default();
    if !sacks.is_empty() {
        out.extend([1, 1, 5, 2 + 8 * sacks.len() as u8]);
        for (left, right) in sacks {
            out.extend(left.to_be_bytes());
            out.extend(right.to_be_bytes());
        }
    }
    let header = out.len() - start;
    if let Some(offset) = out.get_mut(start + 12) {
        *offset = (header as u8 / 4) << 4;
    }
    out.extend_from_slice(&segment.payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_syn_is_written_as_the_standards_have_it_and_read_again() {
        let segment = Segment {
            seq: 0x0102_0304,
            flags: SYN,
            window: 64240,
            options: Options {
                mss: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some((5, 0)),
                ..Options::default()
            },
            ..Segment::default()
        };
        let mut bytes = Vec::new();
        emit(&segment, (1234, 80), &mut bytes);
        let literal = [
            4, 210, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xb0, 2, 0xfa, 0xf0, 0, 0, 0, 0, 2, 4, 5, 180, 1, 3, 3, 7,
            1, 1, 4, 2, 1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0,
        ];
        assert_eq!(bytes, literal);
        assert_eq!(parse(&bytes), Some(segment));
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn what_is_written_is_read(
            numbers in any::<(u32, u32, u8, u16)>(),
            mss in proptest::option::of(any::<u16>()),
            timestamps in proptest::option::of(any::<(u32, u32)>()),
            blocks in proptest::collection::vec(any::<(u32, u32)>(), 0..3),
            payload in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut options = Options { mss, timestamps, ..Options::default() };
            for block in blocks {
                options.sacks.push(block);
            }
            let (seq, ack, flags, window) = numbers;
            let segment = Segment { seq, ack, flags, window, options, payload: payload.into() };
            let mut bytes = Vec::new();
            emit(&segment, (1, 2), &mut bytes);
            prop_assert_eq!(parse(&bytes), Some(segment));
        }
    }
}
