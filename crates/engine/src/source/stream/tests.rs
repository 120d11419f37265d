//! What is due of a capture that is streamed. Times are the schedule's alone: no clock is waited for.

use super::*;
use capture::{FileFormat, Reader, Writer};

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use port::tx::{Tx, TxBuffers, TxCounters, TxError};
use tempfile::NamedTempFile;

const SECOND: u64 = 1_000_000_000;

/// A thousand frames a second.
fn schedule() -> Timing {
    Timing::Schedule(Schedule::Frames { frames: 1000, per_ns: SECOND })
}

fn options() -> Options {
    Options {
        loops: None,
        unique_every: None,
        only_unique: false,
        sign: None,
        reading: Reading::default(),
        timing: schedule(),
        together: NonZeroU64::MIN,
        pause_ns: 0,
        count_flows: false,
        flow_expiry_s: None,
        loss: None,
    }
}

/// A capture of so many frames of one flow, a microsecond apart.
fn capture(frames: u64) -> Vec<u8> {
    let mut frame = vec![0; 100];
    frame[12] = 8;
    // IPv4 from 10.0.0.1 to 10.0.0.2 with UDP of 58 bytes.
    frame[14..18].copy_from_slice(&[0x45, 0, 0, 86]);
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..40].copy_from_slice(&[0, 7, 0, 9, 0, 66]);
    let mut writer = Writer::new(Vec::new(), FileFormat::PcapNanoseconds, LinkType::ETHERNET);
    for n in 0..frames {
        writer.write(n * 1000, &frame, 100).expect("written");
    }
    writer.into_inner().expect("written")
}

/// That of a file, and the file.
fn source(frames: u64, options: Options) -> (StreamSource, NamedTempFile) {
    let mut file = NamedTempFile::new().expect("a file");
    std::io::Write::write_all(&mut file, &capture(frames)).expect("written");
    let reader = Reader::open(file.path()).expect("a capture");
    (StreamSource::new(vec![reader.into()], options, 1600), file)
}

/// A deadline that is not met.
fn later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// Frames that are due by `until`, one by one.
fn due_by(options: Options, frames: u64, until: u64) -> u64 {
    let (mut source, _file) = source(frames, options);
    let mut count = 0;
    while source.ready().expect("sound").is_some_and(|due| due <= until) {
        source.pass_by(100);
        count += 1;
    }
    count
}

#[test]
fn only_where_it_is_the_whole_truth_is_the_schedule_a_formula() {
    let pauses = Options { loops: Some(3), pause_ns: 5 * SECOND, ..options() };
    let loss = Options { loss: Loss::new(1, 4, 7), ..options() };
    let ends = Options { loops: Some(1), ..options() };
    let together = Options { together: NonZeroU64::new(8).expect("not 0"), ..options() };
    for (n, options) in [pauses, loss, ends, together].into_iter().enumerate() {
        let until = 3 * SECOND;
        let due = due_by(options.clone(), 1000, until);
        let (mut source, _file) = source(1000, options);
        assert!(!source.is_formula(), "{n}");
        let formula = source.schedule().frames_due_by(until).expect("a formula");
        assert_ne!(due, formula, "{n}");
        let all = Overdue { frames: due, at_least: false };
        assert_eq!(source.overdue(until, u64::MAX, later()), Some(all), "{n}");
    }
    let (mut source, _file) = source(1000, options());
    assert!(source.is_formula());
    assert_eq!(source.overdue(SECOND, u64::MAX, later()), None);
    assert_eq!(source.schedule().frames_due_by(SECOND), Some(due_by(options(), 1000, SECOND)));
}

#[test]
fn whoever_ends_a_run_does_not_wait_until_all_is_read_that_was_due() {
    let options = Options { loops: Some(1), ..options() };
    let (mut read_on, _file) = source(1000, options.clone());
    let late = read_on.overdue(SECOND, u64::MAX, Instant::now());
    assert_eq!(late, Some(Overdue { frames: LOOK_EVERY, at_least: true }));
    let (mut counted, _file) = source(1000, options.clone());
    let asked = counted.overdue(SECOND, 7, Instant::now());
    assert_eq!(asked, Some(Overdue { frames: 7, at_least: false }));

    /// What nobody may read to its end: whoever writes it has gone to sleep.
    struct Asleep(std::io::Cursor<Vec<u8>>);
    impl Read for Asleep {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            assert!(read > 0, "it would have waited");
            Ok(read)
        }
    }
    let mut bytes = capture(2);
    // Of the second there are only the first bytes.
    bytes.truncate(bytes.len() - 50);
    let reader = Reader::from_read(Box::new(Asleep(std::io::Cursor::new(bytes))), "pipe").expect("a capture");
    let mut pipe = StreamSource::new(vec![reader.into()], options, 1600);
    assert_eq!(pipe.next_due().expect("one"), Some(0));
    let ready = pipe.overdue(SECOND, u64::MAX, later());
    assert_eq!(ready, Some(Overdue { frames: 1, at_least: true }));
}

/// Takes so many frames and is stopped in the middle of a batch, and of what it had then as many leave all the same.
struct Stops {
    inner: crate::null::NullTx,
    room: u64,
    late: u64,
}

impl Tx for Stops {
    fn bound(&mut self, _stop: Arc<AtomicBool>, _deadline: Option<Instant>) {}

    fn batch(&self) -> usize {
        8
    }

    fn buffers(&mut self) -> TxBuffers<'_> {
        self.inner.buffers()
    }

    fn send(&mut self, count: usize, due: &[u64]) -> Result<(), TxError> {
        let fits = self.room.min(count as u64);
        self.room -= fits;
        self.inner.send(fits as usize, due)?;
        if fits < count as u64 { Err(TxError::Stopped("v0".into())) } else { Ok(()) }
    }

    fn drain(&mut self) -> Result<(), TxError> {
        self.inner.send(self.late as usize, &[])
    }

    fn counters(&self) -> TxCounters {
        self.inner.counters()
    }
}

#[test]
fn frames_that_were_given_back_are_counted_nowhere() {
    for (room, late) in [(0, 0), (5, 0), (8, 0), (13, 2), (21, 3)] {
        let options = Options { sign: Some(0), count_flows: true, ..options() };
        let options = Options { timing: Timing::Schedule(Schedule::TopSpeed), ..options };
        let (source, _file) = source(1000, options);
        let mut job = crate::Job::of(source);
        let mut tx = Stops { inner: crate::null::NullTx::new(1600), room, late };
        let sent = crate::worker::run(&mut [&mut tx], &mut job, &crate::Control::default(), true);
        assert_eq!((sent.counters.frames, sent.taken), (room + late, room + late));
        let seen = job.source.seen().expect("it counts");
        assert_eq!(seen.signed, [room + late, 0], "{room}");
        assert_eq!(seen.flow_frames, [room + late, 0], "{room}");
        assert_eq!(seen.flows, [u64::from(room + late > 0), 0], "{room}");
    }
}
