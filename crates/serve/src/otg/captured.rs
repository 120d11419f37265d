//! What was captured, as the model's clients expect it: each frame with its frame check sequence, which no interface hands over, made anew.

use capture::{FileFormat, Reader, Writer};
use std::io::Cursor;
use wire::LinkType;

/// The same frames, each whole one with its four bytes of FCS behind it. Those that were cut stay as they are.
pub(crate) fn with_fcs(bytes: Vec<u8>, pcapng: bool) -> Result<Vec<u8>, String> {
    let says = |error: capture::CaptureError| error.to_string();
    let mut reader = Reader::from_read(Box::new(Cursor::new(bytes)), "captured.pcapng").map_err(says)?;
    let format = if pcapng { FileFormat::Pcapng } else { FileFormat::PcapNanoseconds };
    let mut writer = Writer::new(Vec::new(), format, LinkType::ETHERNET);
    let mut frame = Vec::new();
    while let Some(record) = reader.next_record().map_err(says)? {
        frame.clear();
        frame.extend_from_slice(record.data);
        let is_whole = u64::from(record.wire_len) == record.data.len() as u64;
        if is_whole {
            let mut sum = flate2::Crc::new();
            sum.update(record.data);
            // Least significant byte first, as it is on the wire (IEEE 802.3, section 3.2.9).
            frame.extend_from_slice(&sum.sum().to_le_bytes());
        }
        let wire_len = record.wire_len.saturating_add(4);
        writer.write(record.time_ns, &frame, wire_len).map_err(says)?;
    }
    writer.into_inner().map_err(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_frames_get_the_fcs_that_is_theirs() {
        let mut writer = Writer::new(Vec::new(), FileFormat::Pcapng, LinkType::ETHERNET);
        writer.write(5, b"123456789", 9).expect("written");
        writer.write(6, b"1234", 9).expect("written");
        let bytes = with_fcs(writer.into_inner().expect("whole"), false).expect("read");
        let mut reader = Reader::from_read(Box::new(Cursor::new(bytes)), "x").expect("a capture");
        let whole = reader.next_record().expect("readable").expect("one");
        // The check value of CRC-32 over these digits is 0xcbf43926.
        assert_eq!((whole.data, whole.wire_len), (&b"123456789\x26\x39\xf4\xcb"[..], 13));
        let cut = reader.next_record().expect("readable").expect("two");
        assert_eq!((cut.data, cut.wire_len), (&b"1234"[..], 13));
    }
}
