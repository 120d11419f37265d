//! The frame check sequence of captures that have it: it follows what is edited, and stays wrong where it was wrong, as other
//! checksums do.

/// Bytes of Ethernet's (IEEE 802.3 clause 3.2.9). Others, of PPP and HDLC, are not kept.
pub(super) const LEN: usize = 4;

/// CRC-32 by the nibble.
const NIBBLES: [u32; 16] = {
    let mut table = [0; 16];
    let mut n = 0;
    while n < 16 {
        let (mut crc, mut bit) = (n as u32, 0);
        while bit < 4 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};

/// Of a frame without it, in the order in which its bytes stand behind the frame.
pub(super) fn of(frame: &[u8]) -> [u8; LEN] {
    let step = |crc: u32, nibble: u32| NIBBLES[((crc ^ nibble) & 15) as usize] ^ crc >> 4;
    let crc =
        frame.iter().fold(u32::MAX, |crc, byte| step(step(crc, u32::from(*byte)), u32::from(*byte >> 4)));
    (!crc).to_le_bytes()
}

/// By what the captured one differs from the right one; zero where none was captured.
pub(super) fn error(frame: &[u8], captured: &[u8]) -> [u8; LEN] {
    let Some(captured) = captured.first_chunk::<LEN>() else { return [0; LEN] };
    xor(of(frame), *captured)
}

/// The one of an edited frame: right, but for what was wrong with it.
pub(super) fn corrected(frame: &[u8], error: [u8; LEN]) -> [u8; LEN] {
    xor(of(frame), error)
}

fn xor(a: [u8; LEN], b: [u8; LEN]) -> [u8; LEN] {
    (u32::from_ne_bytes(a) ^ u32::from_ne_bytes(b)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_crc_of_ieee_802_3() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(of(b"123456789"), 0xcbf4_3926u32.to_le_bytes());
        assert_eq!(of(b""), [0; 4]);
    }

    #[test]
    fn a_right_one_stays_right_and_a_wrong_one_wrong() {
        let right = of(b"before");
        assert_eq!(corrected(b"behind", error(b"before", &right)), of(b"behind"));
        let wrong = [right[0] ^ 1, right[1], right[2], right[3]];
        assert_eq!(corrected(b"before", error(b"before", &wrong)), wrong);
        assert_ne!(corrected(b"behind", error(b"before", &wrong)), of(b"behind"));
        // Of a frame that was captured in part there is none.
        assert_eq!(error(b"before", &right[..2]), [0; 4]);
    }
}
