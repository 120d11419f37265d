//! An interface that goes with the process that made it (Documentation/networking/tuntap.rst), and with it the routes that lead
//! there, however the process ends. Nothing is ever read from it or written to it. For `local`.
#![allow(unsafe_code, reason = "an ioctl that carries a pointer has no safe form")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// The interface is there for as long as this is.
#[derive(Debug)]
pub struct Tun {
    _file: File,
    name: String,
}

impl Tun {
    /// Makes one in the calling thread's network namespace; it is down. `%d` in its name becomes a number that is free.
    ///
    /// # Errors
    /// ENOENT where the kernel has no `tun`; EPERM without CAP_NET_ADMIN.
    pub fn make(pattern: &str) -> io::Result<Tun> {
        let file = File::options().read(true).write(true).open("/dev/net/tun")?;
        // SAFETY: a structure of integers, for which zeros are good values.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays 0.
        let room = request.ifr_name.len() - 1;
        for (to, byte) in request.ifr_name.iter_mut().take(room).zip(pattern.bytes()) {
            *to = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the kernel reads and writes one `struct ifreq`, which is alive.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let name = request.ifr_name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8 as char);
        Ok(Tun { name: name.collect(), _file: file })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
