//! Frames and super-frames: what of them an interface did not send.
//!
//! A bridge in the kernel's receive path hands on what it gets: some pieces are frames, some are super-frames (GSO, GRO) of
//! many. Whoever counts behind it counts a super-frame once or by its frames, and what segments it on the way (a token bucket)
//! changes which. So a count between pieces and frames says nothing by itself. Two things do: a queueing discipline counts
//! frames, and bytes show the payload, because each further packet adds its headers and nothing else.

use port::qdisc::Counted;

/// What an interface was handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handed {
    pub frames: u64,
    /// In so many pieces.
    pub buffers: u64,
    /// Layer 2 without FCS, each frame with its headers.
    pub frame_bytes: u64,
    /// The same with the headers of a super-frame once.
    pub buffer_bytes: u64,
}

/// What did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    None,
    /// Frames, in the queueing discipline.
    InQueue(u64),
    /// Frames, none of them in a super-frame.
    Counted(u64),
    /// Pieces, which is so many frames where each has the mean number.
    Pieces {
        about: u64,
        pieces: u64,
    },
    /// So many bytes of payload, which is so many frames of the mean length.
    Bytes {
        about: u64,
        bytes: u64,
    },
}

impl Lost {
    pub fn frames(self) -> u64 {
        match self {
            Lost::None => 0,
            Lost::InQueue(frames) | Lost::Counted(frames) => frames,
            Lost::Bytes { about, .. } | Lost::Pieces { about, .. } => about,
        }
    }
}

/// Headers of frames of different protocols differ by so much: IPv4 and IPv6.
const UNEQUAL: u64 = 20;

impl Handed {
    /// By what the interface counted, and the discipline in front of it.
    pub fn lost(&self, packets: u64, bytes: u64, queue: Option<&Counted>) -> Lost {
        if let Some(queue) = queue {
            // Others' frames may stand in for what was dropped, and what was dropped may be a super-frame: the larger is
            // what is certain.
            let lost = self.frames.saturating_sub(queue.frames).max(queue.dropped.into());
            if lost > 0 {
                return Lost::InQueue(lost.min(self.frames));
            }
        }
        if packets >= self.frames {
            return Lost::None;
        }
        let Some(more) = self.frames.checked_sub(self.buffers).filter(|more| *more > 0) else {
            return Lost::Counted(self.frames - packets);
        };
        if packets < self.buffers {
            let pieces = self.buffers - packets;
            let about = u128::from(pieces) * u128::from(self.frames) / u128::from(self.buffers);
            return Lost::Pieces { about: u64::try_from(about).unwrap_or(u64::MAX), pieces };
        }
        // So many packets more than pieces, each with headers of its own.
        let headers = self.frame_bytes.saturating_sub(self.buffer_bytes);
        let added = packets - self.buffers;
        let expected =
            u128::from(self.buffer_bytes) + u128::from(headers) * u128::from(added) / u128::from(more);
        let missing = expected.saturating_sub(bytes.into()) as u64;
        if missing <= UNEQUAL * added.min(self.frames - packets) {
            return Lost::None;
        }
        let payload = (self.frame_bytes / self.frames).saturating_sub(headers / more);
        Lost::Bytes { about: missing.div_ceil(payload.max(1)), bytes: missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 super-frames of 20 frames with 66 bytes of headers and 1,448 of payload, and 50 of headers alone.
    const HANDED: Handed = Handed {
        frames: 2_050,
        buffers: 150,
        frame_bytes: 2_050 * 66 + 2_000 * 1_448,
        buffer_bytes: 150 * 66 + 2_000 * 1_448,
    };

    fn queue(frames: u64, dropped: u32) -> Counted {
        Counted::told("tbf", frames, dropped)
    }

    #[test]
    fn whole_is_what_came_whole_however_it_was_counted() {
        for packets in [150, 151, 700, 2_049, 2_050] {
            let bytes = packets * 66 + 2_000 * 1_448;
            assert_eq!(HANDED.lost(packets, bytes, None), Lost::None, "{packets}");
            // Some interfaces count the FCS.
            assert_eq!(HANDED.lost(packets, bytes + 4 * packets, None), Lost::None, "{packets}");
            assert_eq!(HANDED.lost(packets, bytes, Some(&queue(2_050, 0))), Lost::None, "{packets}");
        }
        // Others' are nothing that is missing.
        assert_eq!(HANDED.lost(2_060, 9_999_999, Some(&queue(2_060, 0))), Lost::None);
    }

    #[test]
    fn what_was_dropped_shows_although_more_was_counted_than_pieces_were_handed_over() {
        // Cut into frames, and 300 with payload lost: 1,750 is more than 150 by far.
        let bytes = 1_750 * 66 + 1_700 * 1_448;
        assert_eq!(HANDED.lost(1_750, bytes, Some(&queue(1_750, 300))), Lost::InQueue(300));
        let Lost::Bytes { about, bytes } = HANDED.lost(1_750, bytes, None) else { panic!("not seen") };
        assert!((300..=310).contains(&about) && bytes == 300 * 1_448, "{about} {bytes}");
        // Super-frames, one of which was lost.
        let bytes = 149 * 66 + 1_980 * 1_448;
        assert_eq!(HANDED.lost(149, bytes, Some(&queue(2_030, 1))), Lost::InQueue(20));
        assert_eq!(HANDED.lost(149, bytes, None), Lost::Pieces { about: 13, pieces: 1 });
        // Another's frame in the place of the one that was dropped.
        assert_eq!(HANDED.lost(2_050, 0, Some(&queue(2_050, 1))), Lost::InQueue(1));
    }

    #[test]
    fn frames_that_are_no_super_frames_are_counted_plainly() {
        let plain = Handed { frames: 300, buffers: 300, frame_bytes: 18_000, buffer_bytes: 18_000 };
        assert_eq!(plain.lost(300, 18_000, None), Lost::None);
        assert_eq!(plain.lost(290, 18_000, None), Lost::Counted(10));
        assert_eq!(plain.lost(290, 0, Some(&queue(300, 0))), Lost::Counted(10));
    }
}
