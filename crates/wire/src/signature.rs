//! The 18 bytes that a test frame carries at its very end, so that a receiver can tell loss, order and latency.
//!
//! They are found from the frame's *end*: a device under test may change, add or remove headers (NAT, VLAN,
//! tunnels) and the frame is still recognised. 18 bytes is what a minimum-size UDP/IPv4 frame has room for
//! (64 bytes with FCS = 60 in a buffer = 14 + 20 + 8 + 18).
//!
//! ```text
//!  0       4           7                12                18
//!  +-------+-----------+----------------+-----------------+
//!  | magic | stream    | sequence       | time stamp      |   all big-endian
//!  | 32 b  | 24 b      | 40 b           | 48 b, ns        |
//!  +-------+-----------+----------------+-----------------+
//! ```
//!
//! `programs/bpf/meter.bpf.c` reads the same layout in the kernel; a test there holds the two together.

/// Length of a signature in bytes.
pub const LEN: usize = 18;
/// First four bytes of every signature.
pub const MAGIC: u32 = 0x9d1e_d7a0;
/// Streams are numbered 0 to this.
pub const MAX_STREAM: u32 = (1 << 24) - 1;
/// How many sequence numbers there are.
pub const SEQUENCES: u64 = 1 << 40;
/// Sequence numbers run from 0 and wrap after this (at 100 Mpps: three hours).
pub const MAX_SEQUENCE: u64 = SEQUENCES - 1;
/// Time stamps are nanoseconds modulo 2^48 (78 hours).
pub const TIME_MASK: u64 = (1 << 48) - 1;

/// What a signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Which stream of the program the frame belongs to.
    pub stream: u32,
    /// Index of the frame among the stream's signed frames.
    pub sequence: u64,
    /// When it left: nanoseconds of the sender's clock, modulo 2^48.
    pub time: u64,
}

impl Signature {
    /// Encodes; values beyond their width keep their low bits.
    pub fn to_bytes(self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..4].copy_from_slice(&MAGIC.to_be_bytes());
        let middle = (u64::from(self.stream & MAX_STREAM) << 40) | (self.sequence & MAX_SEQUENCE);
        out[4..12].copy_from_slice(&middle.to_be_bytes());
        out[12..].copy_from_slice(&self.time.to_be_bytes()[2..]);
        out
    }

    /// Reads the signature at the end of `frame`, if there is one.
    pub fn at_end_of(frame: &[u8]) -> Option<Signature> {
        let bytes: &[u8; LEN] = frame.last_chunk()?;
        if bytes[..4] != MAGIC.to_be_bytes() {
            return None;
        }
        let middle = u64::from_be_bytes(bytes[4..12].try_into().ok()?);
        let mut time = [0; 8];
        time[2..].copy_from_slice(&bytes[12..]);
        Some(Signature {
            stream: (middle >> 40) as u32,
            sequence: middle & MAX_SEQUENCE,
            time: u64::from_be_bytes(time),
        })
    }
}

/// The number that a sequence number of 40 bits stands for: of all with these low bits the one nearest to `near`, such as
/// the one expected next. So a receiver can go on counting where they wrap. Before 0 there is none.
pub fn sequence_near(sequence: u64, near: u64) -> u64 {
    // As in `elapsed`: the sign of 40 bits is extended.
    let ahead = ((sequence.wrapping_sub(near) << 24) as i64) >> 24;
    near.checked_add_signed(ahead).unwrap_or(sequence & MAX_SEQUENCE)
}

/// Nanoseconds from `sent` to `received`, both modulo 2^48, as a signed difference.
pub fn elapsed(sent: u64, received: u64) -> i64 {
    // Shifting the 48-bit difference to the top and back extends its sign.
    ((received.wrapping_sub(sent) << 16) as i64) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_from_the_end() {
        let signature = Signature { stream: 0xab_cdef, sequence: 0x12_3456_789a, time: 0x7fff_0000_1111 };
        let mut frame = vec![0u8; 42];
        frame.extend(signature.to_bytes());
        assert_eq!(Signature::at_end_of(&frame), Some(signature));
        assert_eq!(Signature::at_end_of(&frame[..59]), None);
        assert_eq!(Signature::at_end_of(&frame[45..]), None);
    }

    #[test]
    fn sequence_numbers_go_on_where_they_wrap() {
        const ROUND: u64 = MAX_SEQUENCE + 1;
        for wide in [0, 7, ROUND - 2, ROUND - 1, ROUND, ROUND + 1, 3 * ROUND - 1, 3 * ROUND, 1 << 50] {
            let written = Signature { stream: 1, sequence: wide, time: 0 }.to_bytes();
            let sequence = Signature::at_end_of(&written).unwrap().sequence;
            for near in [wide, wide + 1, wide.saturating_sub(1000), wide + 1000, wide + ROUND / 2 - 1] {
                assert_eq!(sequence_near(sequence, near), wide, "{wide} near {near}");
            }
        }
        assert_eq!(sequence_near(MAX_SEQUENCE, 3), MAX_SEQUENCE, "nothing comes before the first");
    }

    #[test]
    fn elapsed_time_survives_the_wrap_and_clocks_that_run_backwards() {
        assert_eq!(elapsed(TIME_MASK - 9, 10), 20);
        assert_eq!(elapsed(100, 90), -10);
    }
}
