//! What a device that learns addresses does to a capture whose two sides leave by one interface.
//!
//! A bridge remembers by which port the frames of each address came in, and sends no frame back by the port it came from
//! (IEEE 802.1Q, 8.6.1 and 8.7). So once it has seen a frame of each of two hosts come in by one port, it passes on nothing
//! that they say to each other, however slowly it is sent. Called by `replay`, before it sends and when it has.

use capture::Reader;
use report::{Code, Loss, Report, Sentence, units};
use std::collections::{HashMap, HashSet};
use wire::LinkType;

type Mac = [u8; 6];

/// Goes through a capture's frames in order.
#[derive(Debug, Default)]
pub struct Learning {
    seen: HashSet<Mac>,
    destinations: HashMap<Mac, u64>,
    kept: u64,
    frames: u64,
}

/// More addresses than a switch remembers tell nothing.
const MOST: usize = 1 << 16;

impl Learning {
    pub fn frame(&mut self, frame: &[u8]) {
        self.frames += 1;
        let Some((destination, rest)) = frame.split_first_chunk::<6>() else { return };
        let Some(source) = rest.first_chunk::<6>() else { return };
        let room = self.seen.len() < MOST && self.destinations.len() < MOST;
        if source[0] & 1 == 0 && room {
            self.seen.insert(*source);
        }
        // Groups go everywhere.
        if destination[0] & 1 == 0 && room {
            self.kept += u64::from(self.seen.contains(destination));
            *self.destinations.entry(*destination).or_default() += 1;
        }
    }

    /// `None`: it would keep nothing.
    pub fn kept(&self) -> Option<Kept> {
        let known = self.destinations.iter().filter(|(mac, _)| self.seen.contains(*mac));
        let later = known.map(|(_, frames)| frames).sum();
        (later > 0).then_some(Kept { first: self.kept, later, frames: self.frames })
    }
}

/// Frames that such a device keeps to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Of the first pass, and of each behind it.
    first: u64,
    later: u64,
    /// Of a pass.
    frames: u64,
}

/// Frames of a capture that is read while it is sent which are looked at before: what comes behind them is taken to be alike.
const LOOK: u64 = 100_000;

/// Looks through the first frames of a file, and goes back to its beginning. What cannot be read is reported by who sends it.
pub fn look_through(reader: &mut Reader) -> Option<Kept> {
    reader.file_len()?;
    let (learning, _) = look(reader, LOOK);
    reader.rewind().ok()?;
    learning.kept()
}

/// At so many records, and how many there were: those of other links cost as much to read.
fn look(reader: &mut Reader, most: u64) -> (Learning, u64) {
    let mut learning = Learning::default();
    for read in 0..most {
        match reader.next_record() {
            Ok(Some(record)) if record.link == LinkType::ETHERNET => learning.frame(record.data),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return (learning, read),
        }
    }
    (learning, most)
}

const MEND: &str = "send each side by an interface of its own (`.links[1].on` IFACE `.sides` auto), or one side alone (`.sides` auto \
                    `.only_side` first)";

impl Kept {
    /// Of so many sent frames.
    pub fn of(&self, sent: u64) -> u64 {
        let passes = sent / self.frames.max(1);
        let scaled = |kept: u64, frames: u64| {
            u64::try_from(u128::from(kept) * u128::from(frames) / u128::from(self.frames.max(1)))
                .unwrap_or(u64::MAX)
        };
        match passes {
            0 => scaled(self.first, sent),
            _ => self.first.saturating_add(scaled(self.later, sent - self.frames)),
        }
    }

    /// What is to be said before.
    pub fn warning(&self, interface: &str) -> Sentence {
        let said = format!(
            "both sides of the capture leave by {interface}: {} of its frames ({}) are to hosts whose own frames come from \
             there, too, and a device that learns addresses (a switch, a bridge) passes none of those on",
            units::count(self.later),
            units::percent(self.later as f64 / self.frames.max(1) as f64)
        );
        (said, MEND).into()
    }

    /// Says so when as much was lost of a finished run.
    pub fn tell(&self, report: &mut Report) {
        let sent = report.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
        let kept = self.of(sent);
        let arrived = report.result.rx.as_ref().map_or(0, |rx| rx.totals.frames);
        let Some(loss) = &mut report.result.loss else { return };
        // A frame of a hundred may have been in the flood before the device had learnt. Where nothing came, or most of what
        // such a device passes on did not, something else is the matter.
        let passed = sent.saturating_sub(kept);
        let least = kept - kept / 100;
        if kept == 0 || arrived == 0 || loss.frames < least || loss.frames > kept.saturating_add(passed / 2) {
            return;
        }
        *loss = Loss { learnt_frames: Some(kept.min(loss.frames)), ..*loss };
        let of = units::counted(kept.min(loss.frames), "lost frame");
        // Whatever else loses nearly all looks the same.
        let verb = match (passed <= sent / 100, kept) {
            (true, _) => "may be",
            (false, 1) => "is",
            (false, _) => "are",
        };
        let said = format!(
            "{of} {verb} to hosts whose own frames leave by the same interface: a device that learns addresses passes none of \
             those on, at no rate"
        );
        report.result.verdict.fall_short(Code::AddressesLearned, (said, MEND));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> [u8; 14] {
        [2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0]
    }

    #[test]
    fn what_is_to_a_host_that_was_heard_by_the_same_port_is_kept() {
        let mut learning = Learning::default();
        // Two go out before the other host is heard; then nothing more does, but to groups and to a third.
        for (to, from) in [(2, 1), (2, 1), (1, 2), (2, 1), (1, 2), (9, 1)] {
            learning.frame(&frame(to, from));
        }
        learning.frame(&[[0xff; 6].as_slice(), &frame(2, 1)[6..]].concat());
        learning.frame(&[]);
        let kept = learning.kept().expect("some");
        assert_eq!(kept, Kept { first: 3, later: 5, frames: 8 });
        assert_eq!([0, 8, 16, 24].map(|sent| kept.of(sent)), [0, 3, 8, 13]);
        assert!(
            kept.warning("tx0").to_string().contains("5 of its frames (62.5 %)"),
            "{}",
            kept.warning("tx0")
        );
    }

    #[test]
    fn one_side_alone_is_not_kept() {
        let mut learning = Learning::default();
        (0..100).for_each(|n| learning.frame(&frame(2, 3 + n % 4)));
        assert_eq!(learning.kept(), None);
    }

    #[test]
    fn a_loss_is_put_down_to_it_only_where_there_is_as_much() {
        let nearly_all = Kept { first: 998, later: 1_000, frames: 1_000 };
        let half = Kept { first: 498, later: 500, frames: 1_000 };
        for (kept, lost, told) in [
            (nearly_all, 998, Some("998 lost frames may be to hosts")),
            (nearly_all, 999, Some("998 lost frames may be to hosts")),
            (nearly_all, 990, Some("990 lost frames may be to hosts")),
            // Nothing came at all.
            (nearly_all, 1_000, None),
            (nearly_all, 500, None),
            (nearly_all, 0, None),
            (half, 498, Some("498 lost frames are to hosts")),
            (half, 749, Some("498 lost frames are to hosts")),
            // Most of what is passed on was lost, too.
            (half, 750, None),
            (half, 1_000, None),
        ] {
            let mut report = Report::new("replay");
            report.result.tx = Some(report::Tx {
                totals: report::Totals::over(1_000, 60_000, 1_000),
                ..report::Tx::default()
            });
            report.result.rx = Some(report::Rx {
                totals: report::Totals::over(1_000 - lost, 60_000, 1_000),
                ..report::Rx::default()
            });
            report.result.loss = Some(Loss::of(lost, 1_000));
            kept.tell(&mut report);
            let learnt = report.result.loss.and_then(|loss| loss.learnt_frames);
            assert_eq!(learnt.is_some(), told.is_some(), "{lost}");
            let said = report.result.verdict.reasons().join("; ");
            assert!(told.map_or(said.is_empty(), |told| said.starts_with(told)), "{lost}: {said}");
        }
    }

    #[test]
    fn records_of_other_links_count_among_those_that_are_looked_at() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        // pcap of raw IP (LINKTYPE_RAW) in the order of x86: a header, and records of one byte.
        let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101];
        let record = [[0_u32, 0, 1, 1].map(u32::to_le_bytes).concat(), vec![0x45]].concat();
        let bytes = [header.map(u32::to_le_bytes).concat(), record.repeat(10)].concat();
        std::io::Write::write_all(&mut file, &bytes).expect("written");
        let mut reader = Reader::open(file.path()).expect("a capture");
        assert_eq!(look(&mut reader, 4).1, 4);
        reader.rewind().expect("a file");
        assert_eq!(look(&mut reader, 100).1, 10);
        assert_eq!(look_through(&mut reader), None);
    }
}
