//! What the interface itself counts while its frames are metered: somebody else's count beside the probe's.

use super::meter::Seen;
use crate::place::Place;
use crate::run::counters::about;
use anyhow::Result;
use port::interface::{CounterReader, Counters};
use port::watch::Watch;
use report::units::{count, counted};
use spec::FlowDirection;

/// The interface's counters, from when the probe looks.
pub struct Witness {
    reader: CounterReader,
    began: Counters,
    watch: Watch,
}

impl Witness {
    /// Begins when frames are taken already: the interface counts no frame that the probe could not have seen.
    pub fn begin(place: &Place) -> Result<Witness> {
        let name = &place.interface.name;
        let watch = place.run_in(|| Watch::begin(name, true))?;
        let mut reader = place.counters()?;
        let began = reader.read()?;
        Ok(Witness { reader, began, watch })
    }

    /// What it counted up to now, before the probe is told to end.
    pub fn moved(&mut self) -> Option<Counters> {
        Some(self.reader.read().ok()?.since(&self.began))
    }

    /// All counters that rose.
    pub fn end(self) -> Watch {
        self.watch
    }
}

/// What the interface counted and the probe did not see. Of frames that were joined nobody knows how many they were, and of a probe that
/// was slower that is said already.
pub fn unseen(moved: &Counters, seen: &Seen, (direction, loopback): (FlowDirection, bool)) -> Option<String> {
    let frames = match direction {
        FlowDirection::Both if !loopback => moved.rx_packets.saturating_add(moved.tx_packets),
        FlowDirection::Out => moved.tx_packets,
        FlowDirection::In | FlowDirection::Both => moved.rx_packets,
    };
    if seen.joined + seen.dropped + seen.undrained_ns > 0 {
        return None;
    }
    // A super frame is one here, and as many as it has segments to most drivers.
    let others = seen.other + seen.malformed + seen.unreadable + seen.unsampled;
    let came = seen.frames.max(seen.table.packets.saturating_add(others));
    (frames > came + about(frames)).then(|| {
        format!(
            "the interface counted {} while the probe looked, and {} came by it: the others were taken before it sees them (by another \
             XDP program or a driver), or the driver counts late",
            counted(frames, "frame"),
            count(came)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_interface_counted_and_nobody_metered_is_told() {
        let moved = Counters { rx_packets: 1_000, tx_packets: 500, ..Counters::default() };
        let seen = |frames: u64| Seen { frames, ..Seen::default() };
        let told = |frames: u64, way: FlowDirection| unseen(&moved, &seen(frames), (way, false)).is_some();
        assert!(told(900, FlowDirection::In) && !told(1_000, FlowDirection::In));
        assert!(told(1_000, FlowDirection::Both) && !told(1_500, FlowDirection::Both));
        assert!(told(400, FlowDirection::Out) && !told(500, FlowDirection::Out));
        assert!(!told(2_000, FlowDirection::In), "a driver that does not count what XDP takes");
        assert!(unseen(&moved, &seen(1_000), (FlowDirection::Both, true)).is_none(), "a loopback");
        // Ten super frames of a hundred segments each; what was dropped or joined is said elsewhere.
        let mut super_frames = seen(10);
        super_frames.table.packets = 1_000;
        assert!(unseen(&moved, &super_frames, (FlowDirection::In, false)).is_none());
        for odd in [Seen { dropped: 1, ..seen(900) }, Seen { joined: 1, ..seen(900) }] {
            assert!(unseen(&moved, &odd, (FlowDirection::In, false)).is_none());
        }
        let said = unseen(&moved, &seen(900), (FlowDirection::In, false)).expect("a difference");
        assert!(said.contains("counted 1,000 frames") && said.contains("900 came by"), "{said}");
    }
}
