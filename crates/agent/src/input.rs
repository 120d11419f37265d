//! Lines from the other end of a pipe, bounded: the client's at an agent, an agent's at a client.

use clocks::Clock;
use port::socket::polled;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    /// A line, without its newline.
    Line(Vec<u8>),
    /// One that has more bytes than a line may have; it is passed over. It is told once, and before its end: it may have none.
    TooLong,
    /// Nothing, within a while.
    Nothing,
    /// The other end was closed, or went away.
    End,
}

/// Lines, bounded.
#[derive(Debug)]
pub struct Input<F> {
    from: F,
    /// Read, and not handed on but for what `handed` says.
    held: Vec<u8>,
    /// So many, from the front, stood in lines that were handed on. They go when more is read, because many lines may come at once.
    handed: usize,
    /// Up to there none that was not handed on is a newline.
    looked: usize,
    /// Of a line that is too long, which has been told, the rest is passed over.
    skips: bool,
    most: usize,
    /// Read into. It is there before anything comes: to make it takes longer than to read a line.
    piece: Box<[u8]>,
    /// When the last piece had been read, by `CLOCK_TAI`.
    read_at: u64,
    /// By `CLOCK_MONOTONIC`, just before that was looked at and just after.
    read_between: [u64; 2],
    /// Until then it does not sleep between looks.
    awake_until: Option<Instant>,
}

const PIECE: usize = 64 << 10;
/// Who asks for the time asks again at once. To sleep meanwhile, and to be woken, takes tens of microseconds, which would be in one direction only.
const AWAKE: Duration = Duration::from_micros(200);

impl<F: AsFd> Input<F> {
    /// Lines of at most `most` bytes.
    pub fn new(from: F, most: usize) -> Input<F> {
        Input {
            from,
            held: Vec::new(),
            handed: 0,
            looked: 0,
            skips: false,
            most,
            piece: vec![0; PIECE].into_boxed_slice(),
            read_at: 0,
            read_between: [0; 2],
            awake_until: None,
        }
    }

    /// When the piece in which the last line ended had been read, by `CLOCK_TAI`.
    pub fn read_at(&self) -> u64 {
        self.read_at
    }

    /// The same by `CLOCK_MONOTONIC`, which nobody sets: that was between these two.
    pub fn read_between(&self) -> [u64; 2] {
        self.read_between
    }

    /// The next line comes soon, and when it comes matters.
    pub fn stay_awake(&mut self) {
        self.awake_until = Some(Instant::now() + AWAKE);
    }

    /// From now on lines of at most `most` bytes.
    pub fn takes(&mut self, most: usize) {
        self.most = most;
    }

    /// Bytes that came of a line that is not whole yet.
    pub fn begun(&self) -> usize {
        self.held.len() - self.handed
    }

    /// The next line, or that there is none within `patience`. Bytes without a newline do not make it longer, however many come.
    pub fn next(&mut self, patience: Duration) -> Came {
        let began = Instant::now();
        let mut has_read = false;
        loop {
            if let Some(came) = self.held_line() {
                return came;
            }
            let left = patience.saturating_sub(began.elapsed());
            if has_read && left.is_zero() {
                return Came::Nothing;
            }
            // Short of its time another process gets the core, which may be the one that is waited for.
            let awake = self.awake_until.is_some_and(|until| Instant::now() < until);
            let patience = if awake { Duration::ZERO } else { left };
            match polled(&self.from, PollFlags::IN, patience) {
                Ok(flags) if flags.is_empty() && awake => {
                    std::thread::yield_now();
                    continue;
                }
                Ok(flags) if flags.is_empty() => return Came::Nothing,
                Ok(_) => {}
                Err(_) => return Came::End,
            }
            let read = rustix::io::read(&self.from, &mut self.piece[..]);
            let before = clocks::monotonic();
            self.read_at = clocks::now(Clock::Tai);
            self.read_between = [before, clocks::monotonic()];
            self.awake_until = None;
            has_read = true;
            self.held.extend_from_slice(self.piece.get(..*read.as_ref().unwrap_or(&0)).unwrap_or_default());
            match read {
                Ok(0) => return self.rest(),
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return Came::End,
            }
        }
    }

    fn held_line(&mut self) -> Option<Came> {
        loop {
            let found =
                self.held.get(self.looked..).unwrap_or_default().iter().position(|byte| *byte == b'\n');
            let Some(end) = found.map(|at| self.looked + at) else {
                self.held.drain(..std::mem::take(&mut self.handed));
                self.looked = self.held.len();
                if !self.skips && self.looked <= self.most {
                    return None;
                }
                self.held.clear();
                self.looked = 0;
                return (!std::mem::replace(&mut self.skips, true)).then_some(Came::TooLong);
            };
            let line = self.held.get(self.handed..end).unwrap_or_default().to_vec();
            self.handed = end + 1;
            self.looked = self.handed;
            if std::mem::take(&mut self.skips) {
                continue;
            }
            return Some(if line.len() > self.most { Came::TooLong } else { Came::Line(line) });
        }
    }

    /// A last line without a newline is one, too.
    fn rest(&mut self) -> Came {
        let line = self.held.split_off(self.handed);
        self.held.clear();
        (self.handed, self.looked) = (0, 0);
        if std::mem::take(&mut self.skips) {
            return Came::End;
        }
        if line.is_empty() { Came::End } else { Came::Line(line) }
    }
}

/// Has the other end of a pipe or socket been closed, whatever is still in it?
pub(crate) fn is_hung_up(fd: BorrowedFd<'_>) -> bool {
    // Of a socket that is closed in one direction the other one is known to be.
    let gone = PollFlags::HUP | PollFlags::RDHUP;
    polled(fd, PollFlags::IN | PollFlags::RDHUP, Duration::ZERO).is_ok_and(|flags| flags.intersects(gone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    /// What comes of bytes that are written in pieces.
    fn lines(pieces: &[Vec<u8>], most: usize) -> Vec<Came> {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut came = Vec::new();
        let mut input = Input::new(reader.as_fd(), most);
        for piece in pieces {
            writer.write_all(piece).expect("room");
            loop {
                match input.next(Duration::ZERO) {
                    Came::Nothing => break,
                    line => came.push(line),
                }
            }
        }
        drop(writer);
        loop {
            match input.next(Duration::from_secs(60)) {
                Came::End => return came,
                line => came.push(line),
            }
        }
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(
            bytes in prop::collection::vec(prop_oneof![4 => any::<u8>(), 1 => Just(b'\n')], 0..300),
            cuts in prop::collection::vec(0usize..300, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut from = 0;
            let pieces: Vec<Vec<u8>> = cuts.iter().map(|to| {
                let piece = bytes[from..*to].to_vec();
                from = *to;
                piece
            }).collect();
            let mut wanted: Vec<Came> = bytes.split(|byte| *byte == b'\n')
                .map(|line| if line.len() > 20 { Came::TooLong } else { Came::Line(line.to_vec()) }).collect();
            // What follows the last newline is a line if there is something.
            if wanted.last() == Some(&Came::Line(Vec::new())) {
                wanted.pop();
            }
            prop_assert_eq!(lines(&pieces, 20), wanted);
        }
    }

    #[test]
    fn a_line_has_the_time_when_it_was_read_and_who_stays_awake_sleeps_again() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut input = Input::new(reader.as_fd(), 100);
        let before = clocks::now(Clock::Tai);
        writer.write_all(b"a\nb\n").expect("room");
        input.stay_awake();
        assert_eq!(input.next(Duration::ZERO), Came::Line(b"a".to_vec()));
        let read = input.read_at();
        assert!(before <= read && read <= clocks::now(Clock::Tai));
        assert_eq!(input.next(Duration::ZERO), Came::Line(b"b".to_vec()));
        assert_eq!(input.read_at(), read, "both came at once");
        input.stay_awake();
        assert_eq!(input.next(Duration::ZERO), Came::Nothing);
    }

    #[test]
    fn bytes_without_a_newline_do_not_hold_up_who_waits() {
        // As many as come, and one now and then.
        for (piece, pause) in [(&[0; 60_000][..], Duration::ZERO), (b"x", Duration::from_millis(5))] {
            let (reader, mut writer) = std::io::pipe().expect("a pipe");
            let drips = std::thread::spawn(move || {
                while writer.write_all(piece).is_ok() {
                    std::thread::sleep(pause);
                }
            });
            let mut input = Input::new(reader.as_fd(), 100_000);
            let (began, mut told) = (Instant::now(), 0);
            for _ in 0..5 {
                input.stay_awake();
                match input.next(Duration::from_millis(20)) {
                    Came::Nothing => {}
                    Came::TooLong => told += 1,
                    other => panic!("{other:?}"),
                }
            }
            // A machine that is busy needs longer; for ever it is not.
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
            assert!(told <= 1);
            drop(input);
            drop(reader);
            drips.join().expect("no panic");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut input = Input::new(reader.as_fd(), 100_000);
        for n in 0..100 {
            writer.write_all(&[b'x'; 60_000]).expect("room");
            // It is told once, and before it has an end.
            let told = if n == 1 { Came::TooLong } else { Came::Nothing };
            assert_eq!(input.next(Duration::ZERO), told, "{n}");
            assert!(input.held.len() <= 200_000);
        }
        writer.write_all(b"\nabc\n").expect("room");
        assert_eq!(input.next(Duration::ZERO), Came::Line(b"abc".to_vec()));
        assert!(!is_hung_up(reader.as_fd()));
        writer.write_all(b"d").expect("room");
        drop(writer);
        assert!(is_hung_up(reader.as_fd()), "though something is in it");
        assert_eq!(input.next(Duration::from_secs(60)), Came::Line(b"d".to_vec()));
        assert_eq!(input.next(Duration::ZERO), Came::End);
    }
}
