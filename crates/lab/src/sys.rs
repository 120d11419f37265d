//! The few system calls that have no safe form: leaving a namespace, blocking signals, and being process 1.
#![allow(unsafe_code, reason = "unshare, signal masks and code between fork and exec have no safe form")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

/// Moves the calling thread (not the process) to new namespaces.
pub fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: unsafe only with FILES, since descriptors would then differ between threads; it is taken out.
    unsafe { rustix::thread::unshare_unsafe(flags.difference(UnshareFlags::FILES)) }
}

/// Makes `command` start inside the network namespace that `fd` holds.
pub fn start_in(command: &mut Command, fd: OwnedFd) {
    // SAFETY: between fork and exec only setns is called, which is one system call and allocates nothing.
    unsafe {
        command.pre_exec(move || Ok(rustix::thread::move_into_link_name_space(fd.as_fd(), None)?));
    }
}

/// Signals that a program is sent by people and other programs, and that the command should get.
const PASSED_ON: [i32; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

/// Collects signals that would otherwise end the process. The calling thread, and threads it starts from
/// then on, have them blocked until this is dropped.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks and collects the signals to be passed on.
    pub fn collect() -> io::Result<Self> {
        // SAFETY: the sets are plain values that sigemptyset initialises; all pointers are to locals.
        unsafe {
            let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            for signal in PASSED_ON {
                // Blocked, an ignored hangup (`nohup`) would be collected, and passed on as if it were not.
                if signal != libc::SIGHUP || !is_ignored(signal) {
                    libc::sigaddset(&mut set, signal);
                }
            }
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) {
                0 => {}
                code => return Err(io::Error::from_raw_os_error(code)),
            }
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC) {
                -1 => Err(io::Error::last_os_error()),
                // A fresh descriptor that nobody else owns.
                fd => Ok(Self { fd: OwnedFd::from_raw_fd(fd), before }),
            }
        }
    }

    /// Takes the next signal; `None` if it came from the terminal, which has sent it to the command as well. That a
    /// terminal is gone is told to its session's leader alone (tty_ioctl(4), credentials(7)): to us, where a terminal was
    /// opened for this program and no shell.
    pub fn take(&self) -> Option<i32> {
        let alone = |signal: &Signal| {
            signal.number == libc::SIGHUP
                && rustix::process::getsid(None).is_ok_and(|leader| leader == rustix::process::getpid())
        };
        read_signal(self.fd.as_raw_fd())
            .filter(|signal| signal.from_a_process || alone(signal))
            .map(|signal| signal.number)
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction is a plain value that is written to; nothing is set.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

struct Signal {
    number: i32,
    from_a_process: bool,
}

fn read_signal(fd: RawFd) -> Option<Signal> {
    // SAFETY: signalfd_siginfo is a struct of integers, and the kernel writes at most its size.
    unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        let read = libc::read(fd, (&raw mut info).cast(), size);
        // SI_USER, SI_QUEUE, SI_TKILL are zero and below; what the kernel itself raises is above.
        (read == size as isize)
            .then_some(Signal { number: info.ssi_signo as i32, from_a_process: info.ssi_code <= 0 })
    }
}

/// Makes `command`, which must be started from a thread with a fresh PID namespace, run as the child of an
/// init process of that namespace.
///
/// The init does three things. It ends when the command ends, with the command's status (128 plus the signal's
/// number if one killed it, as shells do), and passes signals on. It ends when nobody holds the other end of
/// `lifeline` any more, which is when the process that made the lab is gone, even by SIGKILL. And as
/// process 1 of its namespace, it takes every process in it along when it ends: the kernel sees to that.
/// That is why a parent-death signal is not enough here: it would only reach the command, not the
/// command's children.
pub fn supervise(command: &mut Command, lifeline: OwnedFd) {
    // SAFETY: `become_init` keeps to async-signal-safe calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || become_init(lifeline.as_raw_fd()));
    }
}

/// Returns in the command's process; the init never returns.
///
/// # Safety
/// For use between fork and exec only.
unsafe fn become_init(lifeline: RawFd) -> io::Result<()> {
    // SAFETY: system calls on constant strings and locals; no memory is shared with anyone.
    unsafe {
        // Process numbers of the new namespace, so that ps and /proc/self tell the truth in there.
        if libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, std::ptr::null()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // The caller collects these for itself; the command must be able to get them.
                for signal in PASSED_ON {
                    libc::sigdelset(&mut before, signal);
                }
                libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                Ok(())
            }
            command => init(command, lifeline, &all),
        }
    }
}

/// # Safety
/// As [`become_init`].
unsafe fn init(command: libc::pid_t, lifeline: RawFd, signals: &libc::sigset_t) -> ! {
    // SAFETY: system calls on locals; this process has one thread and gives all its descriptors up.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"netdyno-lab".as_ptr());
        // Nothing of the parent's may stay open here: pipes must end when the command closes them, and the
        // standard library waits on one to learn whether exec worked.
        libc::dup2(lifeline, 0);
        libc::syscall(libc::SYS_close_range, 1_u32, u32::MAX, 0_u32);
        let signals = libc::signalfd(-1, signals, libc::SFD_NONBLOCK);
        loop {
            let mut polled = [0, signals].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
            libc::poll(polled.as_mut_ptr(), 2, -1);
            if polled[0].revents != 0 {
                libc::_exit(128 + libc::SIGKILL);
            }
            while let Some(signal) = read_signal(signals) {
                if signal.number != libc::SIGCHLD {
                    if signal.from_a_process && PASSED_ON.contains(&signal.number) {
                        libc::kill(command, signal.number);
                    }
                    continue;
                }
                let mut status = 0;
                loop {
                    match libc::waitpid(-1, &mut status, libc::WNOHANG) {
                        ended if ended == command && libc::WIFSIGNALED(status) => {
                            libc::_exit(128 + libc::WTERMSIG(status))
                        }
                        ended if ended == command => libc::_exit(libc::WEXITSTATUS(status)),
                        // An orphan that process 1 has to bury.
                        ended if ended > 0 => {}
                        _ => break,
                    }
                }
            }
        }
    }
}
