//! Packet sockets (packet(7)): opened, set and bound. What goes through them is their users' own.
#![allow(unsafe_code, reason = "link-layer addresses and packet socket options, which rustix does not have")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

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

/// Waits until a descriptor is ready for what `flags` say, at most `patience`; a signal ends it, too. What it is ready for: nothing, if
/// neither came.
///
/// # Errors
/// As of poll(2).
pub fn polled(fd: impl AsFd, flags: PollFlags, patience: Duration) -> Result<PollFlags, Errno> {
    let time = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    let mut polled = [PollFd::new(&fd, flags)];
    match poll(&mut polled, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(polled[0].revents()),
        Err(errno) => Err(errno),
    }
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
pub fn set<T: Copy>(socket: impl AsFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let at = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is to a live value and its true size is given; the kernel only reads it.
    let done =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, at, size_of::<T>() as u32) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has it receive only frames that leave by the interface.
///
/// # Errors
/// What `setsockopt` answers: ENOMEM.
pub fn only_outgoing(socket: &OwnedFd) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        step(
            libc::BPF_LD | libc::BPF_B | libc::BPF_ABS,
            0,
            0,
            (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32,
        ),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::PACKET_OUTGOING.into()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    attach(socket, &filter)
}

/// Has it receive only what a filter takes, and of that as much as it says.
///
/// # Errors
/// What `setsockopt` answers: EINVAL of a program that is none; ENOMEM.
pub fn filter(socket: &OwnedFd, steps: &[crate::filter::Step]) -> io::Result<()> {
    let step =
        |step: &crate::filter::Step| libc::sock_filter { code: step.0, jt: step.1, jf: step.2, k: step.3 };
    attach(socket, &steps.iter().map(step).collect::<Vec<_>>())
}

/// Has it receive nothing more: what arrives from now on is dropped, what waits in it can still be read. The kernel counts the former among
/// its [drops](receive_drops).
///
/// # Errors
/// What `setsockopt` answers: ENOMEM.
pub fn receive_no_more(socket: impl AsFd) -> io::Result<()> {
    let nothing = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    attach(socket, &[nothing])
}

fn attach(socket: impl AsFd, filter: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel copies the instructions during the call; it does not write to them.
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Makes an interface take frames for any address for as long as the socket is open.
///
/// # Errors
/// What `setsockopt` answers: ENODEV, EPERM.
pub fn join_promiscuous(socket: &OwnedFd, index: u32) -> io::Result<()> {
    join(socket, index, libc::PACKET_MR_PROMISC)
}

/// Makes an interface take frames for any group for as long as the socket that it returns is open, which receives nothing.
///
/// # Errors
/// As [`open`]; what `setsockopt` answers: ENODEV, EPERM.
pub fn all_groups(index: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    join(&socket, index, libc::PACKET_MR_ALLMULTI)?;
    Ok(socket)
}

fn join(socket: &OwnedFd, index: u32, kind: i32) -> io::Result<()> {
    let membership =
        libc::packet_mreq { mr_ifindex: index as i32, mr_type: kind as u16, mr_alen: 0, mr_address: [0; 8] };
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
    Ok(memory(socket)?[DROPS].into())
}

/// Bytes that were written to a TCP socket and that its other end has not acknowledged (SIOCOUTQ, tcp(7)).
///
/// # Errors
/// What `ioctl` answers.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an int to a live one.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(u64::try_from(bytes).unwrap_or(0)) }
}

/// How full a socket's receive buffer is, from 0 to 1.
///
/// # Errors
/// What `getsockopt` answers.
pub fn receive_fill(socket: impl AsFd) -> io::Result<f64> {
    let info = memory(socket)?;
    Ok(f64::from(info[HELD]) / f64::from(info[BUFFER].max(1)))
}

/// `SK_MEMINFO_RMEM_ALLOC`, `SK_MEMINFO_RCVBUF` and `SK_MEMINFO_DROPS` (linux/sock_diag.h).
const HELD: usize = 0;
const BUFFER: usize = 1;
const DROPS: usize = 8;

fn memory(socket: impl AsFd) -> io::Result<[u32; DROPS + 1]> {
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
    Ok(info)
}

/// From now on messages that arrive at this socket carry the time they came ([`receive_stamped`]).
///
/// # Errors
/// What `setsockopt` answers.
pub fn stamp_arrivals(socket: &OwnedFd) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)
}

/// A message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes of it, as many as there was room for.
    pub length: usize,
    /// Whose.
    pub from: SocketAddr,
    /// When the kernel took it, in nanoseconds since 1970; `None` if it does not say so.
    pub at_ns: Option<u64>,
}

/// Receives a message of an Internet socket with the time that the kernel put on it.
///
/// # Errors
/// What `recvmsg` answers: EAGAIN when nothing came in time.
pub fn receive_stamped(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Arrived> {
    /// Room for one time, aligned as control messages are.
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: both are plain structs of integers and pointers, for which zeros are valid.
    let (mut address, mut header): (libc::sockaddr_storage, libc::msghdr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    header.msg_name = (&raw mut address).cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
    (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len();
    // SAFETY: all pointers in the header are to live values of the sizes that stand beside them.
    let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, 0) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut at_ns = None;
    // SAFETY: the kernel filled the control messages, and these functions stay within `msg_controllen`; a time is copied out
    // unaligned, of the length that its message says.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(at) = message.as_ref() {
            if at.cmsg_level == libc::SOL_SOCKET
                && at.cmsg_type == libc::SCM_TIMESTAMPNS
                && at.cmsg_len >= libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as usize
            {
                let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(message).cast());
                at_ns = u64::try_from(time.tv_sec).ok().and_then(|s| {
                    s.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?)
                });
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    let from = address_of(&address)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a message of no Internet address"))?;
    Ok(Arrived { length: length as usize, from, at_ns })
}

fn address_of(address: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let at = std::ptr::from_ref(address);
    match i32::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is, and the storage is large enough and aligned for any.
            let v4 = unsafe { &*at.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*at.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddr::V6(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id)))
        }
        _ => None,
    }
}

/// The longest datagram.
const LONGEST: usize = 65_536;

/// Asks for datagrams that the kernel has joined on their way (UDP_GRO, Linux 5.0): those of one sender and one length that came
/// together. What is asked is received by [`Datagrams`] alone, which parts them again.
///
/// # Errors
/// An older kernel: then each comes by itself.
pub fn join_datagrams(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::SOL_UDP, UDP_GRO, &1i32)
}

/// `linux/udp.h`
const UDP_GRO: i32 = 104;

/// Room for one control message that is a number, aligned as they are.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 32]);

impl Control {
    /// How long each of several datagrams is that were joined (`udp_cmsg_recv`, net/ipv4/udp.c); `None`: it is one.
    fn segment(&self, length: usize) -> Option<usize> {
        let bytes = self.0.get(..length)?;
        let number = |at: usize| Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        // struct cmsghdr: its length, level, type, and then what it says.
        let is_it = (number(8)?, number(12)?) == (libc::SOL_UDP, UDP_GRO);
        usize::try_from(number(16).filter(|_| is_it)?).ok().filter(|segment| *segment > 0)
    }
}

/// Datagrams of an Internet socket, several of which are received by one call.
#[derive(Debug)]
pub struct Datagrams {
    bytes: Vec<u8>,
    /// Of each that came: how long it is, how long each of those is that were joined to it, and whose.
    came: Vec<(usize, usize, Option<SocketAddr>)>,
    most: usize,
}

impl Datagrams {
    /// Room for so many, at least one.
    pub fn new(most: usize) -> Datagrams {
        let most = most.max(1);
        Datagrams { bytes: vec![0; most * LONGEST], came: Vec::with_capacity(most), most }
    }

    /// Waits for one, as long as the socket waits, and takes it and those that are there already. What was there before is
    /// forgotten.
    ///
    /// # Errors
    /// What `recvmmsg` answers: EAGAIN when nothing came in time.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        self.came.clear();
        // SAFETY: both are plain structs of integers and pointers, for which zeros are valid.
        let (no_address, no_header): (libc::sockaddr_storage, libc::mmsghdr) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut addresses = vec![no_address; self.most];
        let mut vectors: Vec<libc::iovec> = self
            .bytes
            .chunks_exact_mut(LONGEST)
            .map(|room| libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() })
            .collect();
        let mut controls = vec![Control([0; 32]); self.most];
        let mut headers: Vec<libc::mmsghdr> = addresses
            .iter_mut()
            .zip(&mut vectors)
            .zip(&mut controls)
            .map(|((address, vector), control)| {
                let mut header = no_header;
                header.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
                header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
                (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (std::ptr::from_mut(vector), 1);
                header.msg_hdr.msg_control = std::ptr::from_mut(control).cast();
                header.msg_hdr.msg_controllen = size_of::<Control>();
                header
            })
            .collect();
        // SAFETY: all pointers in the headers are to live values of the sizes that stand beside them: `addresses`, `vectors`,
        // `controls` and `bytes` are neither moved nor looked at before the call is over.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for ((header, address), control) in headers.iter().zip(&addresses).zip(&controls).take(count) {
            let length = header.msg_len as usize;
            let segment = control.segment(header.msg_hdr.msg_controllen).unwrap_or(length);
            self.came.push((length, segment, address_of(address)));
        }
        Ok(self.came.len())
    }

    /// What came, and whose it is; `None`: of no Internet address.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>)> {
        let each = self.came.iter().zip(self.bytes.chunks_exact(LONGEST));
        each.flat_map(|((length, segment, from), room)| {
            let bytes = room.get(..*length).unwrap_or_default();
            // An empty datagram is one, too.
            let empty = (*length == 0).then_some(&[][..]);
            bytes.chunks((*segment).max(1)).chain(empty).map(|message| (message, *from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn datagrams_that_were_joined_are_parted() {
        let [to, from] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        join_datagrams(&to).unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        // Sent as one by the socket (UDP_SEGMENT), it goes over the loopback as one.
        set(&from, libc::SOL_UDP, 103, &1000i32).unwrap();
        let sent: Vec<u8> = (0..3500u32).map(|at| (at / 7) as u8).collect();
        from.send(&sent).unwrap();
        let mut datagrams = Datagrams::new(4);
        assert_eq!(datagrams.receive(&to).unwrap(), 1, "the kernel joined none: nothing was tried");
        let came: Vec<(Vec<u8>, _)> =
            datagrams.iter().map(|(bytes, whose)| (bytes.to_vec(), whose)).collect();
        let whose = Some(from.local_addr().unwrap());
        let wanted: Vec<(Vec<u8>, _)> = sent.chunks(1000).map(|part| (part.to_vec(), whose)).collect();
        assert_eq!(came, wanted);
    }

    #[test]
    fn several_datagrams_come_by_one_call_each_as_it_was_sent() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let [to, from] = [(); 2].map(|()| UdpSocket::bind(local).unwrap());
            to.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let mut datagrams = Datagrams::new(4);
            let messages: Vec<Vec<u8>> = (0..6u8).map(|at| vec![at; usize::from(at) * 9000]).collect();
            for message in &messages {
                from.send_to(message, to.local_addr().unwrap()).unwrap();
            }
            let mut came = Vec::new();
            for count in [4, 2] {
                assert_eq!(datagrams.receive(&to).unwrap(), count);
                for (bytes, whose) in datagrams.iter() {
                    assert_eq!(whose, Some(from.local_addr().unwrap()));
                    came.push(bytes.to_vec());
                }
            }
            assert_eq!(came, messages);
            assert!(datagrams.receive(&to).is_err());
            assert_eq!(datagrams.iter().count(), 0);
        }
    }
}
