//! When frames really left: stamps of the NIC, or of its driver as it hands a frame to the device.
//!
//! A packet socket gets the stamp of a frame that it sent by its error queue (the kernel's
//! Documentation/networking/timestamping.rst), if it asked for it with that frame. Many NICs have a single register for
//! such stamps, so one frame is asked for at a time: the next when the one before came back, or will not.
//!
//! ```text
//!   worker: choose, mark --> sendmmsg, one message with SO_TIMESTAMPING --> driver --> wire
//!              ^                                                              |
//!              '------ take <-- collect <-- error queue <--------- stamp -----'
//! ```
//!
//! Stamps of the hardware are by its own clock, which a thread compares with this host's (`phc`). No setting of the interface
//! is changed (`timestamps` says why). Caller: `packet`, which sends; the sending loop takes what came back.
#![allow(unsafe_code, reason = "control messages, which rustix does not have for time stamps")]

use crate::phc::{Comparison, Phc, realtime_ahead};
use crate::socket::set;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Who stamps.
#[derive(Debug)]
pub enum Stamper {
    /// The NIC, by this clock.
    Hardware(Phc),
    /// Its driver, by CLOCK_REALTIME.
    Driver,
}

/// A frame that was stamped. Times are of CLOCK_MONOTONIC, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// When it was due; `None` at top speed.
    pub due_ns: Option<u64>,
    /// When it was handed to the kernel.
    pub handed_ns: u64,
    /// When it left.
    pub left_ns: u64,
}

/// Frames are asked for no more often: a stamp costs the sender some two microseconds.
const APART_NS: u64 = 1_000_000;
/// A stamp that has not come back after so long is not waited for any more. (Where the register is taken, drivers give none.)
const LOST_NS: u64 = 1_000_000_000;
/// Drivers give a stamp up after at most so long (igb: 15 s).
const GIVES_UP_NS: u64 = 16_000_000_000;
/// A frame that seems to have left so long before it was handed over is an earlier one, whose stamp came too late.
const NOT_BEFORE_NS: u64 = 5_000_000;
/// A clock that shows another time than expected by more than this was set: clocks drift by less between two looks.
const SET_NS: u64 = 1_000_000;
/// The last stamp of a run is waited for so long.
const LAST_NS: u64 = 200_000_000;

/// The stamps of one socket.
#[derive(Debug)]
pub struct Departures {
    socket: OwnedFd,
    clock: Stamps,
    /// The control message that asks.
    ask: Box<Ask>,
    next_ns: u64,
    marked: Option<(usize, Option<u64>)>,
    /// Handed over, not stamped yet.
    pending: Option<(Option<u64>, u64)>,
    departed: Option<Departed>,
    /// When the last frame without a stamp was handed over, and its length.
    unanswered: Option<(u64, u32)>,
    asked: u64,
    stamped: u64,
}

/// One control message: SO_TIMESTAMPING with what is asked for.
#[repr(C)]
#[derive(Debug)]
struct Ask {
    length: usize,
    level: libc::c_int,
    kind: libc::c_int,
    flags: u32,
    _padding: u32,
}

// What the kernel reads is a cmsghdr with 32 bits behind it.
const _: () = assert!(std::mem::offset_of!(Ask, flags) == size_of::<libc::cmsghdr>());

#[derive(Debug)]
enum Stamps {
    Driver,
    Hardware(Follower),
}

impl Departures {
    /// Of frames that `socket` sends from now on.
    ///
    /// # Errors
    /// That the kernel or the driver does not stamp frames of this socket.
    pub fn of(socket: &OwnedFd, by: Stamper) -> io::Result<Departures> {
        let (reported, asked) = match by {
            Stamper::Hardware(_) => (libc::SOF_TIMESTAMPING_RAW_HARDWARE, libc::SOF_TIMESTAMPING_TX_HARDWARE),
            Stamper::Driver => (libc::SOF_TIMESTAMPING_SOFTWARE, libc::SOF_TIMESTAMPING_TX_SOFTWARE),
        };
        // The stamp alone comes back, without the frame.
        let reported = reported | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &reported)?;
        // SAFETY: a computation of a length.
        let length = unsafe { libc::CMSG_LEN(size_of::<u32>() as u32) } as usize;
        Ok(Departures {
            socket: socket.try_clone()?,
            clock: match by {
                Stamper::Hardware(clock) => Stamps::Hardware(Follower::start(clock)?),
                Stamper::Driver => Stamps::Driver,
            },
            ask: Box::new(Ask {
                length,
                level: libc::SOL_SOCKET,
                kind: libc::SO_TIMESTAMPING,
                flags: asked,
                _padding: 0,
            }),
            next_ns: 0,
            marked: None,
            pending: None,
            departed: None,
            unanswered: None,
            asked: 0,
            stamped: 0,
        })
    }

    /// Which of the `count` frames of the next batch is to be asked for, if any. Not always the first, which waits for no
    /// other.
    pub fn choose(&self, count: usize) -> Option<usize> {
        let free = self.pending.is_none() && self.departed.is_none() && count > 0;
        (free && clocks::monotonic() >= self.next_ns).then(|| (self.asked % count.max(1) as u64) as usize)
    }

    /// That frame is asked for, and was due at `due_ns`.
    pub fn mark(&mut self, nth: usize, due_ns: Option<u64>) {
        self.marked = Some((nth, due_ns));
    }

    /// Looks for the stamp that is waited for.
    pub fn collect(&mut self) {
        let Some((due_ns, handed_ns)) = self.pending else { return };
        // Of a frame that was tried again a driver may have stamped each try; it left by the last.
        let mut last = None;
        while let Some(stamp) = read(&self.socket) {
            let left = self.clock.host_time(stamp);
            last = left.filter(|left| possible(*left, handed_ns, clocks::monotonic())).or(last);
        }
        if let Some(left_ns) = last {
            (self.pending, self.unanswered) = (None, None);
            self.stamped += 1;
            self.departed = Some(Departed { due_ns, handed_ns, left_ns });
            return;
        }
        if clocks::monotonic() > handed_ns + LOST_NS {
            self.pending = None;
        }
    }

    /// A frame that came back.
    pub fn take(&mut self) -> Option<Departed> {
        self.collect();
        self.departed.take()
    }

    /// The same at the end of a run: the stamp is waited for.
    pub fn take_last(&mut self) -> Option<Departed> {
        let until = clocks::monotonic() + LAST_NS;
        self.marked = None;
        loop {
            if let Some(departed) = self.take() {
                return Some(departed);
            }
            if self.pending.is_none() || clocks::monotonic() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Length of the frame whose stamp the hardware's driver may still wait for. It keeps the frame's memory until then.
    pub(crate) fn awaits(&self) -> Option<u32> {
        let (handed_ns, length) = self.unanswered.filter(|_| self.by_hardware())?;
        (clocks::monotonic() < handed_ns.saturating_add(GIVES_UP_NS)).then_some(length)
    }

    /// The hardware stamps them, not its driver.
    pub fn by_hardware(&self) -> bool {
        matches!(self.clock, Stamps::Hardware(_))
    }

    /// Frames that were asked for, and those of them that came back.
    pub fn counts(&self) -> (u64, u64) {
        (self.asked, self.stamped)
    }

    /// By how much a stamp's time may be wrong on this host's clock.
    pub fn error_ns(&self) -> u64 {
        match &self.clock {
            Stamps::Driver => realtime_ahead().width_ns,
            Stamps::Hardware(follower) => follower.error_ns(),
        }
    }

    /// The frame of the batch that is asked for, and when it is handed over.
    pub(crate) fn asking(&self) -> Option<(usize, u64)> {
        let (nth, _) = self.marked?;
        // What is there by now is of a frame that was given up, or was tried several times.
        while read(&self.socket).is_some() {}
        Some((nth, clocks::monotonic()))
    }

    /// Asks with this message.
    pub(crate) fn ask_with(&mut self, header: &mut libc::msghdr) {
        header.msg_control = (&raw mut *self.ask).cast();
        header.msg_controllen = size_of::<Ask>();
    }

    /// The message asks no more. `sent`: when it was handed over, and its length; `None` if it was passed over.
    pub(crate) fn asked(&mut self, header: &mut libc::msghdr, sent: Option<(u64, u32)>) {
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
        let Some((_, due_ns)) = self.marked.take() else { return };
        if let Some((handed_ns, length)) = sent {
            self.unanswered = Some((handed_ns, length));
            self.asked += 1;
            self.pending = Some((due_ns, handed_ns));
            self.next_ns = handed_ns + APART_NS;
        }
    }
}

impl Stamps {
    /// CLOCK_MONOTONIC when the stamp was taken.
    fn host_time(&self, stamp: Stamp) -> Option<u64> {
        match self {
            Stamps::Driver => {
                Some(stamp.software_ns?.saturating_add_signed(realtime_ahead().ns.saturating_neg()))
            }
            Stamps::Hardware(follower) => follower.host_time(stamp.hardware_ns?),
        }
    }
}

/// What the kernel reported of one frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stamp {
    software_ns: Option<u64>,
    hardware_ns: Option<u64>,
}

/// The next message of the socket's error queue, if there is one.
fn read(socket: &OwnedFd) -> Option<Stamp> {
    // As large as the control messages' alignment wants.
    let mut control = [0u64; 64];
    // SAFETY: all zeroes are a valid msghdr: no name, no vectors, no control messages.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: `message` is a valid msghdr whose control buffer is as long as it says.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if got < 0 {
        return None;
    }
    let mut stamp = Stamp::default();
    // SAFETY: the kernel has filled in `message`, whose control buffer is still there.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: a header of the kernel's, inside of the control buffer.
        let (level, kind, length) =
            unsafe { ((*header).cmsg_level, (*header).cmsg_type, (*header).cmsg_len) };
        // struct scm_timestamping: three timespecs, by software, unused, by hardware.
        // SAFETY: a computation of a length.
        let whole = unsafe { libc::CMSG_LEN(size_of::<[libc::timespec; 3]>() as u32) } as usize;
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) && length >= whole {
            // SAFETY: the message is as long as three timespecs, which may stand anywhere.
            let times = unsafe { libc::CMSG_DATA(header).cast::<[libc::timespec; 3]>().read_unaligned() };
            stamp = Stamp { software_ns: nanoseconds(&times[0]), hardware_ns: nanoseconds(&times[2]) };
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Some(stamp)
}

/// Zero is no time.
fn nanoseconds(time: &libc::timespec) -> Option<u64> {
    let (seconds, rest) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest).filter(|time| *time > 0)
}

/// Follows a NIC's clock in a thread of its own.
#[derive(Debug)]
struct Follower {
    looks: Arc<Mutex<VecDeque<Comparison>>>,
    /// By how much the clock was set, at most. Stamps of the time until that was noticed may be off by it.
    set_ns: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The clocks are compared so often, and the pace is that of so many looks: a second.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS: usize = 20;

impl Follower {
    fn start(clock: Phc) -> io::Result<Follower> {
        let (looks, stop) = (Arc::new(Mutex::new(VecDeque::new())), Arc::new(AtomicBool::new(false)));
        let set_ns = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&set_ns);
        let look = move |looks: &Mutex<VecDeque<Comparison>>| -> io::Result<()> {
            let look = clock.compare()?;
            let mut looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(by) = was_set(&looks, &look) {
                noted.fetch_max(by, Relaxed);
                looks.clear();
            }
            if looks.len() >= LOOKS {
                looks.pop_front();
            }
            looks.push_back(look);
            Ok(())
        };
        look(&looks)?;
        let thread = {
            let (looks, stop) = (Arc::clone(&looks), Arc::clone(&stop));
            std::thread::Builder::new().name("stamps".to_owned()).spawn(move || {
                while !stop.load(Relaxed) {
                    std::thread::sleep(LOOK_EVERY);
                    // One that cannot be read for once leaves the line as it is.
                    let _ = look(&looks);
                }
            })?
        };
        Ok(Follower { looks, set_ns, stop, thread: Some(thread) })
    }

    fn host_time(&self, device_ns: u64) -> Option<u64> {
        on_line(&self.looks.lock().unwrap_or_else(PoisonError::into_inner), device_ns)
    }

    fn error_ns(&self) -> u64 {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let widths = looks.iter().map(|look| look.after_ns.saturating_sub(look.before_ns).div_ceil(2));
        widths.max().unwrap_or(0).max(self.set_ns.load(Relaxed))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// May a frame that was handed over then have left at that time, by what is known now? What was stamped before somebody set a
/// clock, and is read after it, is off by as much.
fn possible(left_ns: u64, handed_ns: u64, now_ns: u64) -> bool {
    left_ns.saturating_add(NOT_BEFORE_NS) >= handed_ns && left_ns <= now_ns.saturating_add(NOT_BEFORE_NS)
}

/// By how much the clock was set since the looks before this one, if it was.
fn was_set(looks: &VecDeque<Comparison>, look: &Comparison) -> Option<u64> {
    let newest = looks.back()?;
    // A look that took long is no proof.
    let most = SET_NS + look.after_ns.saturating_sub(look.before_ns);
    let middle = look.before_ns / 2 + look.after_ns / 2;
    let off = match on_line(looks, look.device_ns) {
        Some(expected) => expected.abs_diff(middle),
        // Before this host's boot.
        None => newest.device_ns.abs_diff(look.device_ns),
    };
    (off > most).then_some(off)
}

/// This host's time when the device's clock showed `device_ns`: from the newest look, at the pace since the oldest.
fn on_line(looks: &VecDeque<Comparison>, device_ns: u64) -> Option<u64> {
    let middle = |look: &Comparison| i128::from(look.before_ns) + i128::from(look.after_ns);
    let (oldest, newest) = (looks.front()?, looks.back()?);
    let host = (middle(newest) - middle(oldest)) as f64 / 2.0;
    let device = newest.device_ns as i128 - oldest.device_ns as i128;
    let pace = if device > 0 && host > 0.0 { host / device as f64 } else { 1.0 };
    let since = device_ns as i128 - newest.device_ns as i128;
    u64::try_from(middle(newest) / 2 + (since as f64 * pace).round() as i128).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_time_is_told_by_the_newest_look_and_the_pace_since_the_oldest() {
        // The device's clock runs 100 ppm fast, and is compared to within 200 ns.
        let look = |ms: u64| Comparison {
            before_ns: ms * 1_000_000 - 100,
            device_ns: 50_000_000_000 + ms * 1_000_100,
            after_ns: ms * 1_000_000 + 100,
        };
        let looks: VecDeque<Comparison> = (10..=30).map(|n| look(n * 50)).collect();
        for ms in [490, 1_000, 1_499, 1_510, 1_549] {
            let host = on_line(&looks, look(ms).device_ns).expect("a time");
            assert!(host.abs_diff(ms * 1_000_000) <= 1, "{ms}: {host}");
        }
        // One that somebody set is another clock from then on, in whichever direction.
        assert_eq!((was_set(&looks, &look(1_550)), was_set(&VecDeque::new(), &look(7))), (None, None));
        for step in [-37_000_000_000, -2_000_000, 2_000_000, 37_000_000_000] {
            let next = look(1_550);
            let device_ns = next.device_ns.saturating_add_signed(step);
            let by = was_set(&looks, &Comparison { device_ns, ..next }).expect("it was set");
            assert!(by.abs_diff(step.unsigned_abs()) < step.unsigned_abs() / 10, "{step}: {by}");
        }
        let one: VecDeque<Comparison> = [look(500)].into();
        assert_eq!(on_line(&one, look(500).device_ns + 1_000), Some(500_001_000));
        assert_eq!(on_line(&VecDeque::new(), 7), None);
    }

    #[test]
    fn a_stamp_from_before_the_frame_or_from_the_future_is_another_clocks() {
        let at = 1_000_000_000;
        for (left, is) in
            [(at + 1, true), (at - 4_000_000, true), (at - 6_000_000, false), (at + 60_000_000, false)]
        {
            assert_eq!(possible(left, at, at + 50_000_000), is, "{left}");
        }
    }

    #[test]
    fn one_frame_is_asked_for_at_a_time_and_what_does_not_come_back_is_given_up() {
        let lab = lab::Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let socket =
            lab.sender.namespace.run_in(crate::socket::open).expect("the namespace").expect("a socket");
        let mut departures = Departures::of(&socket, Stamper::Driver).expect("the option");
        // SAFETY: all zeroes are a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        assert_eq!(departures.choose(0), None);
        let nth = departures.choose(5).expect("the first");
        departures.mark(nth, Some(7));
        let (_, handed) = departures.asking().expect("marked");
        departures.ask_with(&mut header);
        // What was not sent is not waited for.
        departures.asked(&mut header, None);
        assert_eq!((departures.counts(), header.msg_controllen), ((0, 0), 0));
        departures.mark(nth, Some(7));
        departures.asked(&mut header, Some((handed, 60)));
        assert_eq!((departures.choose(5), departures.take(), departures.counts()), (None, None, (1, 0)));
        // As if it had been long ago.
        departures.pending = Some((None, handed.saturating_sub(2 * LOST_NS)));
        departures.next_ns = 0;
        assert_eq!(departures.take(), None);
        assert_eq!(departures.choose(5), Some(1));
    }
}
