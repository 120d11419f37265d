//! A network card's own clock (PTP hardware clock, `/dev/ptpN`), compared with this host's.
//!
//! The kernel reads both within one call: where the card can latch them together, exactly
//! (`PTP_SYS_OFFSET_PRECISE`), else the card's between two readings of the host's, of which the closest pair counts
//! (`PTP_SYS_OFFSET_EXTENDED`). It tells the host's time as CLOCK_REALTIME; here it is made CLOCK_MONOTONIC, which
//! nobody can set. Callers: `timestamps`, and whoever follows the clock while a meter runs.
#![allow(unsafe_code, reason = "an ioctl that carries a pointer has no safe form")]

use clocks::{Ahead, Clock, ahead};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// One look at both clocks: when the card's showed `device_ns`, CLOCK_MONOTONIC was between the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// CLOCK_MONOTONIC before, in nanoseconds.
    pub before_ns: u64,
    /// The hardware's clock, in nanoseconds.
    pub device_ns: u64,
    /// CLOCK_MONOTONIC after, in nanoseconds.
    pub after_ns: u64,
}

/// A card's clock.
#[derive(Debug)]
pub struct Phc {
    file: File,
    path: String,
}

/// Readings in one call: a busy bus delays some of them.
const SAMPLES: usize = 10;

impl Phc {
    /// The clock of that number. Readable by root, unless somebody has set it otherwise.
    ///
    /// # Errors
    /// That there is no such clock, or it may not be read.
    pub fn open(number: u32) -> io::Result<Phc> {
        let path = format!("/dev/ptp{number}");
        Ok(Phc { file: File::open(&path)?, path })
    }

    /// Its device file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Compares it with this host's clock.
    ///
    /// # Errors
    /// That the driver does not answer, or its hardware went away.
    pub fn compare(&self) -> io::Result<Comparison> {
        // CLOCK_REALTIME may be set in between, which the offsets before and after show.
        for _ in 0..3 {
            let first = realtime_ahead();
            let looks = self.looks()?;
            let second = realtime_ahead();
            let off = first.width_ns.saturating_add(second.width_ns);
            if first.ns.abs_diff(second.ns) <= off {
                return best(&looks, first)
                    .ok_or_else(|| io::Error::other("the card's clock shows an impossible time"));
            }
        }
        Err(io::Error::other("this host's clock is being set again and again"))
    }

    fn looks(&self) -> io::Result<Vec<Look>> {
        // SAFETY: all zeroes are a valid structure, which asks for nothing special.
        let mut precise: libc::ptp_sys_offset_precise = unsafe { std::mem::zeroed() };
        // SAFETY: the command's structure is this one, and outlives the call.
        if unsafe { self.ioctl(libc::PTP_SYS_OFFSET_PRECISE, &raw mut precise) }.is_ok() {
            let real = nanoseconds(&precise.sys_realtime);
            return Ok(vec![Look { before: real, device: nanoseconds(&precise.device), after: real }]);
        }
        // SAFETY: as above; the clock of number 0 is CLOCK_REALTIME.
        let mut extended: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
        extended.n_samples = SAMPLES as libc::c_uint;
        // SAFETY: the command's structure is this one, with room for all samples there can be.
        unsafe { self.ioctl(libc::PTP_SYS_OFFSET_EXTENDED, &raw mut extended) }?;
        let look = |[before, device, after]: &[libc::ptp_clock_time; 3]| Look {
            before: nanoseconds(before),
            device: nanoseconds(device),
            after: nanoseconds(after),
        };
        Ok(extended.ts.iter().take(SAMPLES).map(look).collect())
    }

    /// # Safety
    /// `data` points to the structure of `command`.
    unsafe fn ioctl<T>(&self, command: libc::Ioctl, data: *mut T) -> io::Result<()> {
        // SAFETY: the file is open; the caller vouches for its data.
        let status = unsafe { libc::ioctl(self.file.as_raw_fd(), command, data) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// CLOCK_REALTIME before and after the card's time.
#[derive(Debug, Clone, Copy)]
struct Look {
    before: i128,
    device: i128,
    after: i128,
}

/// How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
pub(crate) fn realtime_ahead() -> Ahead {
    ahead(Clock::Realtime, Clock::Monotonic)
}

fn nanoseconds(time: &libc::ptp_clock_time) -> i128 {
    i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec)
}

/// The closest pair, by CLOCK_MONOTONIC.
fn best(looks: &[Look], realtime: Ahead) -> Option<Comparison> {
    let looks = looks.iter().filter(|look| look.after >= look.before);
    let look = looks.min_by_key(|look| look.after - look.before)?;
    let (half, realtime) = (i128::from(realtime.width_ns), i128::from(realtime.ns));
    Some(Comparison {
        before_ns: u64::try_from(look.before - realtime - half).ok()?,
        device_ns: u64::try_from(look.device).ok()?,
        after_ns: u64::try_from(look.after - realtime + half).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_pair_of_readings_counts_and_is_by_the_clock_that_nobody_sets() {
        let realtime = Ahead { ns: 1_000_000, width_ns: 5 };
        let looks = [(3_000_000, 77, 3_000_900), (3_002_000, 79, 3_002_100), (3_004_000, 81, 3_003_000)]
            .map(|(before, device, after)| Look { before, device, after });
        let wanted = Comparison { before_ns: 2_001_995, device_ns: 79, after_ns: 2_002_105 };
        assert_eq!(best(&looks, realtime), Some(wanted));
        assert_eq!(best(&looks[2..], realtime), None);
        assert_eq!(best(&[Look { before: 5, device: -1, after: 5 }], Ahead { ns: 0, width_ns: 1 }), None);
    }

    #[test]
    fn a_clock_that_is_not_there_is_named_by_its_file() {
        assert_eq!(Phc::open(4_000).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
