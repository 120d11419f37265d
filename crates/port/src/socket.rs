//! Packet sockets (packet(7)): opened, set and bound. What goes through them is their users' own.
#![allow(unsafe_code, reason = "link-layer addresses and packet socket options, which rustix does not have")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// A packet socket of the calling thread's network namespace, which receives nothing until it is bound.
///
/// # Errors
/// EPERM without CAP_NET_RAW; EMFILE.
pub fn open() -> io::Result<OwnedFd> {
    // SAFETY: plain integers.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Binds it to an interface: from now on frames of `protocol` (`libc::ETH_P_*`) are received there; 0: none, it only sends.
///
/// # Errors
/// ENODEV of an interface that is not there.
pub fn bind(socket: &OwnedFd, index: u32, protocol: i32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (protocol as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the pointer is to a live sockaddr_ll and its true size is given.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets an option.
///
/// # Errors
/// What `setsockopt` answers.
pub fn set<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let at = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is to a live value and its true size is given; the kernel only reads it.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, size_of::<T>() as u32) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes an interface take frames for any address for as long as the socket is open.
///
/// # Errors
/// What `setsockopt` answers: ENODEV, EPERM.
pub fn join_promiscuous(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// The same by a socket of its own, which receives nothing.
///
/// # Errors
/// As [`open`] and [`join_promiscuous`].
pub fn promiscuous(index: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    join_promiscuous(&socket, index)?;
    Ok(socket)
}

/// Frames that a receive ring had no room for since the last call: asking sets the kernel's count back.
///
/// # Errors
/// What `getsockopt` answers.
pub fn take_drops(socket: &OwnedFd) -> io::Result<u64> {
    // Version 2 of the ring fills the first two words alone.
    let mut statistics = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    let mut size = size_of::<libc::tpacket_stats_v3>() as u32;
    let at = (&raw mut statistics).cast();
    // SAFETY: the kernel writes at most `size` bytes to a live tpacket_stats_v3.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, at, &raw mut size)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics.tp_drops.into()) }
}

/// Messages that a socket's receive buffer had no room for since it was opened (SO_MEMINFO, Linux 4.12).
///
/// # Errors
/// What `getsockopt` answers.
pub fn receive_drops(socket: impl AsFd) -> io::Result<u64> {
    /// `SK_MEMINFO_DROPS` (linux/sock_diag.h), and how many there are.
    const DROPS: usize = 8;
    let mut info = [0u32; DROPS + 1];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: `info` is as long as `length` says, and any bytes are valid numbers.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(info[DROPS].into())
}
