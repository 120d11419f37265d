//! The few calls that have no safe form: the resources a child used, a real-time thread, a terminal, and the floor that
//! every sender through a packet socket stands on.
#![allow(
    unsafe_code,
    reason = "wait4, sched_setscheduler, openpty and sendmmsg have no safe wrapper among our dependencies"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// What a process used, once it has ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// Times that another task took its core.
    pub preempted: u64,
    /// As `waitpid` gives it.
    pub status: i32,
}

/// Waits for a child to end.
pub fn wait(pid: u32) -> io::Result<Usage> {
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage (integers only).
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values of the types wait4 writes.
        let rc = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if rc >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Ok(Usage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        preempted: usage.ru_nivcsw as u64,
        status,
    })
}

/// Puts the calling thread before every ordinary one on its core, and before real-time ones of less priority.
pub fn become_realtime(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: a live sched_param; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A terminal of so many columns and rows: the end that shows, and the one that programs write to.
pub fn terminal(columns: u16, rows: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: openpty writes two descriptors and reads the size; no name and no modes are asked for or given.
    let rc = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, std::ptr::null_mut(), std::ptr::null(), &raw const size)
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both are new and owned by nobody else.
    let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    // A child that held our end would keep the terminal open for ever.
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    Ok((ours, theirs))
}

/// A packet socket that sends past the queueing discipline of an interface of the calling thread's namespace.
fn packet_socket(ifindex: u32) -> io::Result<OwnedFd> {
    // SAFETY: socket takes no pointers; a new descriptor is owned by nobody else.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex as i32;
    let one: libc::c_int = 1;
    // SAFETY: both calls read a live value of the size they are told.
    let ready = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        ) == 0
            && libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const one).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            ) == 0
    };
    if ready { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Frames in a call: more gains nothing.
const BATCH: usize = 64;

/// Sends `frame` again and again by sendmmsg, from one buffer that nobody touches: the least work that a packet socket
/// can be asked for. `left` says how many more, by how many were sent.
pub fn send_static_frames(ifindex: u32, frame: &[u8], left: impl Fn(u64) -> u64) -> io::Result<u64> {
    let socket = packet_socket(ifindex)?;
    let mut vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
    // SAFETY: all-zero is a valid mmsghdr (null pointers, zero lengths).
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = &raw mut vector;
    message.msg_hdr.msg_iovlen = 1;
    let mut messages = [message; BATCH];
    let mut sent = 0;
    loop {
        let ask = left(sent).min(BATCH as u64) as u32;
        if ask == 0 {
            return Ok(sent);
        }
        // SAFETY: each message points to `vector`, and that to `frame`, which sendmmsg only reads; all outlive the
        // call.
        let rc = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), ask, 0) };
        match rc {
            0.. => sent += rc as u64,
            _ => {
                let error = io::Error::last_os_error();
                if !matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EINTR)) {
                    return Err(error);
                }
            }
        }
    }
}

/// Sends `frame` at each of `times`, nanoseconds from the first, doing nothing but look at the clock in between: as
/// exact as a task that is alone on its core can be.
pub fn send_at(ifindex: u32, frame: &[u8], times: &[u64]) -> io::Result<u64> {
    let socket = packet_socket(ifindex)?;
    let start = Instant::now() + Duration::from_millis(1);
    let mut sent = 0;
    for time in times {
        let due = start + Duration::from_nanos(*time);
        while Instant::now() < due {}
        // SAFETY: send only reads the frame, which outlives the call.
        let rc = unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if rc < 0 {
            return Err(io::Error::last_os_error());
        }
        sent += 1;
    }
    Ok(sent)
}
