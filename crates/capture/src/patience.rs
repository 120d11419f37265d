//! Giving up a pipe that nobody writes into: a read would wait for ever, and a signal alone does not end it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The flag and the time are looked at this often.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// How long a capture that is no file is waited for: until a flag is set, or a time is there. For ever, as long as there is
/// neither. Reading then fails with [`CaptureError::GivenUp`](crate::CaptureError::GivenUp).
#[derive(Debug, Clone, Default)]
pub struct Patience(Arc<Ends>);

#[derive(Debug, Default)]
struct Ends {
    stop: OnceLock<Arc<AtomicBool>>,
    /// CLOCK_MONOTONIC in nanoseconds; 0 where no time is set.
    at_ns: AtomicU64,
}

impl Patience {
    /// Waits no longer once `stop` is set. The first flag counts.
    pub fn until(&self, stop: &Arc<AtomicBool>) {
        self.0.stop.get_or_init(|| Arc::clone(stop));
    }

    /// Waits no longer than until CLOCK_MONOTONIC shows so many nanoseconds. The last time counts.
    pub fn until_ns(&self, at_ns: u64) {
        self.0.at_ns.store(at_ns.max(1), Relaxed);
    }

    fn is_bounded(&self) -> bool {
        self.0.stop.get().is_some() || self.0.at_ns.load(Relaxed) > 0
    }

    fn is_stopped(&self) -> bool {
        self.0.stop.get().is_some_and(|stop| stop.load(Relaxed))
    }

    fn time_is_over(&self) -> bool {
        let at_ns = self.0.at_ns.load(Relaxed);
        at_ns > 0 && clocks::monotonic() >= at_ns
    }
}

/// A source that is waited for that long.
pub(crate) struct Waiting<S> {
    pub(crate) source: S,
    pub(crate) patience: Patience,
}

impl<S: Read + AsFd> Read for Waiting<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.patience.is_bounded() {
            if self.patience.is_stopped() {
                return Err(io::Error::other(GivenUp { stopped: true }));
            }
            // What is there is read, however late it is.
            let over = self.patience.time_is_over();
            let mut polled = [PollFd::new(&self.source, PollFlags::IN)];
            // The end, and whatever is wrong, are ready to be read, too.
            match poll(&mut polled, Some(if over { &AT_ONCE } else { &LOOK })) {
                Ok(0) if over => return Err(io::Error::other(GivenUp { stopped: false })),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.source.read(into)
    }
}

/// Why such a read failed.
#[derive(Debug, thiserror::Error)]
#[error("given up")]
pub(crate) struct GivenUp {
    /// By the flag, which whoever reads may not have seen set elsewhere; else the time was over.
    pub(crate) stopped: bool,
}

/// Was it given up, as far below decompressors as it may be?
pub(crate) fn given_up(error: &io::Error) -> Option<&GivenUp> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaptureError, Reader};
    use std::io::Write;
    use std::time::{Duration, Instant};

    /// A capture's header and one frame of 60 bytes.
    fn begun() -> Vec<u8> {
        let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1024, 1, 1, 0, 60, 60];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bytes.len() + 60, 2);
        bytes
    }

    /// A pipe's file under /proc, which can be opened by name, and who writes into it.
    fn pipe() -> (std::path::PathBuf, std::io::PipeReader, std::io::PipeWriter) {
        use std::os::fd::AsRawFd;
        let (reader, writer) = std::io::pipe().expect("a pipe");
        (format!("/proc/self/fd/{}", reader.as_raw_fd()).into(), reader, writer)
    }

    #[test]
    fn an_idle_pipe_is_given_up_when_the_flag_is_set_plain_or_packed() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(&begun()).expect("in memory");
        packed.flush().expect("in memory");
        for bytes in [begun(), packed.get_ref().clone()] {
            let (path, _reader, mut writer) = pipe();
            writer.write_all(&bytes).expect("room in the pipe");
            let mut reader = Reader::open(&path).expect("a capture");
            let stop = Arc::new(AtomicBool::new(false));
            reader.patience().expect("a pipe is waited for").until(&stop);
            assert_eq!(reader.next_record().expect("a frame").expect("a frame").data.len(), 60);
            let began = Instant::now();
            let setter = std::thread::spawn({
                let stop = Arc::clone(&stop);
                move || {
                    std::thread::sleep(Duration::from_millis(50));
                    stop.store(true, Relaxed);
                }
            });
            let error = reader.next_record().expect_err("nothing comes");
            assert!(matches!(error, CaptureError::GivenUp { stopped: true, .. }), "{error:?}");
            // Not before the flag, however busy the machine is.
            assert!(began.elapsed() >= Duration::from_millis(45) && stop.load(Relaxed));
            setter.join().expect("the setter");
        }
    }

    #[test]
    fn an_idle_pipe_is_given_up_when_its_time_is_over() {
        let (path, _reader, mut writer) = pipe();
        writer.write_all(&begun()).expect("room in the pipe");
        let mut reader = Reader::open(&path).expect("a capture");
        let at = clocks::monotonic() + 60_000_000;
        reader.patience().expect("a pipe").until_ns(at);
        // However late this thread is: what has come is read.
        while clocks::monotonic() < at {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(reader.next_record(), Ok(Some(_))));
        let error = reader.next_record().expect_err("nothing comes");
        assert!(matches!(error, CaptureError::GivenUp { stopped: false, .. }), "{error:?}");
        assert!(clocks::monotonic() >= at);
    }

    #[test]
    fn files_are_read_to_their_end_whatever_the_flag_says() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&begun()).expect("written");
        let reader = Reader::open(file.path()).expect("a capture");
        assert!(reader.patience().is_none());
        let (path, _reader, mut writer) = pipe();
        writer.write_all(&begun()).expect("room in the pipe");
        drop(writer);
        let mut reader = Reader::open(&path).expect("a capture");
        reader.patience().expect("a pipe").until(&Arc::default());
        assert!(reader.next_record().expect("a frame").is_some());
        assert!(reader.next_record().expect("the end").is_none());
    }
}
