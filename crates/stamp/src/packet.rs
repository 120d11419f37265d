//! Test packets of STAMP's unauthenticated mode.
//!
//! ```text
//!   sender (RFC 8762, 4.2.1; RFC 8972, 3)    reflector (4.3.1)
//!    0 sequence number                        0 its sequence number
//!    4 time stamp T1                          4 time stamp T3
//!   12 error estimate                        12 error estimate
//!   14 session identifier                    14 session identifier
//!   16 zeroes                                16 receive time stamp T2
//!                                            24 the sender's sequence number, time stamp (28) and error estimate (36)
//!                                            40 the sender's TTL, zeroes
//!   44 TLVs                                  44 TLVs
//! ```
//!
//! A packet of more than 44 octets carries an Extra Padding TLV (RFC 8972, section 4.1): a reflector of STAMP sends it back, and one of
//! TWAMP-Light takes it for the padding that it knows (RFC 8762, section 4.6).

use crate::time::ErrorEstimate;

/// A test packet without TLVs.
pub const BASE: usize = 44;
/// The header of a TLV.
pub const TLV_HEADER: usize = 4;
/// The largest UDP payload over IPv4.
pub const LARGEST: usize = 65_507;
/// An answer has the sender's number, time stamp and error estimate at least. TWAMP-Light's have the TTL, too (RFC 5357, section 4.2.1), but
/// some reflectors (twampy) leave it out where they are not asked for padding.
pub const SHORTEST_ANSWER: usize = 38;
/// Where the sender's TTL is.
const TTL_AT: usize = 40;
/// TTL of the sender's packets (RFC 8762, section 4.2; RFC 5357, section 4.1.2).
pub const TTL: u8 = 255;

/// Flags of a TLV (RFC 8972, section 4): not recognised by the reflector. The sender sets it, and who recognises the TLV clears it.
const UNRECOGNISED: u8 = 0x80;
/// It is cut short.
const MALFORMED: u8 = 0x40;
/// Extra Padding (RFC 8972, section 4.1).
const EXTRA_PADDING: u8 = 1;

/// Whether packets can have so many octets: the base, or one with room for a TLV.
pub fn is_size(size: usize) -> bool {
    size == BASE || (BASE + TLV_HEADER..=LARGEST).contains(&size)
}

/// A packet of a sender, but for its number and time. `size` is one that [`is_size`].
pub fn blank(size: usize, session: u16) -> Vec<u8> {
    let mut bytes = vec![0; size.clamp(BASE, LARGEST)];
    bytes[14..16].copy_from_slice(&session.to_be_bytes());
    if let Some(value) = bytes.len().checked_sub(BASE + TLV_HEADER) {
        let length = u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes();
        bytes[BASE..BASE + TLV_HEADER].copy_from_slice(&[UNRECOGNISED, EXTRA_PADDING, length[0], length[1]]);
    }
    bytes
}

/// Writes the number and the time of departure.
pub fn mark(packet: &mut [u8], number: u32, time: u64, error: u16) {
    let Some(head) = packet.first_chunk_mut::<14>() else { return };
    head[..4].copy_from_slice(&number.to_be_bytes());
    head[4..12].copy_from_slice(&time.to_be_bytes());
    head[12..].copy_from_slice(&error.to_be_bytes());
}

/// What a reflector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Its own sequence number: its count of what it sent in this session, or a copy of the sender's.
    pub own_number: u32,
    /// When it sent, raw.
    pub t3: u64,
    /// What it says of its clock.
    pub error: ErrorEstimate,
    /// The session identifier; 0 of reflectors that do not know it.
    pub session: u16,
    /// When it received, raw.
    pub t2: u64,
    /// Which packet it answers.
    pub number: u32,
    /// When that was sent, as it says.
    pub t1: u64,
    /// TTL with which it received that; `None`: the answer ends before it.
    pub ttl: Option<u8>,
    /// What became of the padding; `None` where the answer has no TLV in its place.
    pub padding: Option<Tlv>,
}

/// A TLV that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv {
    /// The reflector has recognised it: it knows RFC 8972.
    pub recognised: bool,
    /// The reflector says that it is malformed.
    pub malformed: bool,
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl Answer {
    /// `None`: too short.
    pub fn read(bytes: &[u8]) -> Option<Answer> {
        let number = |at| field(bytes, at).map(u32::from_be_bytes);
        let time = |at| field(bytes, at).map(u64::from_be_bytes);
        let word = |at| field(bytes, at).map(u16::from_be_bytes);
        let padding = field::<4>(bytes, BASE)
            .filter(|tlv| tlv[1] == EXTRA_PADDING)
            .map(|tlv| Tlv { recognised: tlv[0] & UNRECOGNISED == 0, malformed: tlv[0] & MALFORMED != 0 });
        if bytes.len() < SHORTEST_ANSWER {
            return None;
        }
        Some(Answer {
            own_number: number(0)?,
            t3: time(4)?,
            error: ErrorEstimate::read(word(12)?),
            session: word(14)?,
            t2: time(16)?,
            number: number(24)?,
            t1: time(28)?,
            ttl: bytes.get(TTL_AT).copied(),
            padding,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Format;
    use proptest::prelude::*;

    #[test]
    fn a_packet_is_what_the_standards_draw() {
        let mut packet = blank(52, 0xabcd);
        mark(&mut packet, 7, 0x1122_3344_5566_7788, 0x8a01);
        let mut expected =
            vec![0, 0, 0, 7, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x8a, 0x01, 0xab, 0xcd];
        expected.extend([0; 28]);
        expected.extend([0x80, 1, 0, 4, 0, 0, 0, 0]);
        assert_eq!(packet, expected);
        assert_eq!(blank(44, 1).len(), 44);
        assert!(is_size(44) && is_size(48) && is_size(65_507));
        assert!(!is_size(43) && !is_size(45) && !is_size(47) && !is_size(65_508));
    }

    #[test]
    fn an_answer_is_read_from_literal_octets() {
        let mut bytes: Vec<u8> = vec![0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3, 0xc1, 2, 0xab, 0xcd];
        bytes.extend([
            0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x8a, 1,
        ]);
        bytes.extend([0, 0, 250]);
        let answer = Answer::read(&bytes).expect("41 octets");
        assert_eq!((answer.own_number, answer.number, answer.session), (5, 7, 0xabcd));
        assert_eq!((answer.t3, answer.t2, answer.t1), (2 << 32 | 3, 1 << 32 | 9, 0x1122_3344_5566_7788));
        assert_eq!((answer.error.synchronised, answer.error.format), (true, Format::Ptp));
        assert_eq!((answer.ttl, answer.padding), (Some(250), None));
        assert_eq!(Answer::read(&bytes[..38]).map(|answer| answer.ttl), Some(None));
        assert_eq!(Answer::read(&bytes[..37]), None);
        bytes.extend([0, 0, 0, 0x40, 1, 0, 0]);
        let padding = Answer::read(&bytes).expect("48 octets").padding;
        assert_eq!(padding, Some(Tlv { recognised: true, malformed: true }));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_too_short(bytes: Vec<u8>) {
            prop_assert_eq!(Answer::read(&bytes).is_some(), bytes.len() >= SHORTEST_ANSWER);
        }
    }
}
