//! What both rings of packet sockets have in common: the socket, how it is bound and waited for, and what it dropped.

use super::{Checksum, Direction, Kind, RxError, Stamp, StampedBy};
use crate::map::Map;
use crate::packet::Target;
use crate::socket::{self, polled, set};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{netdevice, sockopt};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

const PACKET_IGNORE_OUTGOING: i32 = 23;

// Bits of tp_status (linux/if_packet.h).
const CHECKSUM_NOT_READY: u32 = 1 << 3;
const CHECKSUM_VALID: u32 = 1 << 7;
const TAG_TYPE_VALID: u32 = 1 << 6;
const BY_DRIVER: u32 = 1 << 29;
pub const BY_HARDWARE: u32 = 1 << 31;

/// PACKET_FANOUT_FLAG_DEFRAG of linux/if_packet.h.
const DEFRAG: u32 = 0x8000;
/// From a frame's address (`struct sockaddr_ll`, behind the ring's header) to what says whom it is addressed to.
pub const KIND: usize = offset_of!(libc::sockaddr_ll, sll_pkttype);

/// A packet socket with a receive ring.
#[derive(Debug)]
pub struct Inlet {
    socket: OwnedFd,
    name: String,
    index: u32,
    dropped: u64,
}

impl Inlet {
    /// A socket that receives nothing yet, for a ring of a version.
    pub fn open(
        target: &Target,
        version: libc::tpacket_versions,
        direction: Direction,
    ) -> Result<Inlet, RxError> {
        let failed = |source| failed(&target.name, "opening a packet socket", source);
        let socket = socket::open().map_err(failed)?;
        let inlet = Inlet { socket, name: target.name.clone(), index: target.index, dropped: 0 };
        inlet.set(libc::PACKET_VERSION, "PACKET_VERSION", &(version as i32))?;
        match direction {
            // Since Linux 4.20.
            Direction::In => inlet.set(PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING", &1)?,
            // There is no option for it, and what arrives is not to take the ring's room.
            Direction::Out => socket::only_outgoing(&inlet.socket)
                .map_err(|source| self::failed(&target.name, "SO_ATTACH_FILTER", source))?,
            Direction::Both => {}
        }
        Ok(inlet)
    }

    /// Takes only what a filter lets pass.
    pub fn filter(&self, steps: &[crate::filter::Step]) -> Result<(), RxError> {
        socket::filter(&self.socket, steps).map_err(|source| failed(&self.name, "SO_ATTACH_FILTER", source))
    }

    /// Shares frames out among the sockets of one number: both directions of a connection go to the same one (packet(7),
    /// PACKET_FANOUT_HASH). IPv4 packets in pieces are put together by the kernel before that (PACKET_FANOUT_FLAG_DEFRAG): pieces have no
    /// ports to be shared out by. After binding.
    pub fn share(&self, group: u16) -> Result<(), RxError> {
        self.set(libc::PACKET_FANOUT, "PACKET_FANOUT", &(u32::from(group) | DEFRAG << 16))
    }

    /// Sets an option of packet sockets.
    pub fn set<T: Copy>(&self, option: i32, what: &'static str, value: &T) -> Result<(), RxError> {
        set(&self.socket, libc::SOL_PACKET, option, value).map_err(|source| failed(&self.name, what, source))
    }

    /// Maps the ring that was set up.
    pub fn map(&self, length: usize) -> Result<Map, RxError> {
        Map::shared(&self.socket, 0, length)
            .map_err(|errno| failed(&self.name, "mapping the receive ring", errno.into()))
    }

    /// Starts to receive; last of all, so that no frame was from another interface or missed the ring.
    pub fn start(&self, promiscuous: bool) -> Result<(), RxError> {
        if promiscuous {
            socket::join_promiscuous(&self.socket, self.index)
                .map_err(|source| failed(&self.name, "promiscuous mode", source))?;
        }
        socket::bind(&self.socket, self.index, libc::ETH_P_ALL)
            .map_err(|source| failed(&self.name, "binding a packet socket", source))
    }

    /// Waits until a frame may be there, at most `patience`. That the interface went down is reported once.
    pub fn wait(&self, patience: Duration) -> Result<(), RxError> {
        let failed = |errno: Errno| failed(&self.name, "receiving", errno.into());
        if !polled(&self.socket, PollFlags::IN, patience).map_err(failed)?.contains(PollFlags::ERR) {
            return Ok(());
        }
        // Asking clears it; else each poll would return at once.
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Errno::NETDOWN)) => Err(lost(self.socket.as_fd(), self.index, &self.name)),
            Ok(Err(errno)) | Err(errno) => Err(failed(errno)),
        }
    }

    /// Frames that found the ring full, since the beginning.
    pub fn dropped(&mut self) -> u64 {
        // Asking sets the kernel's count back.
        self.dropped += socket::take_drops(&self.socket).unwrap_or(0);
        self.dropped
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An interface that a socket says is down: or is it away?
pub fn lost(socket: BorrowedFd<'_>, index: u32, name: &str) -> RxError {
    match netdevice::index_to_name(socket, index) {
        Err(Errno::NODEV | Errno::NXIO) => RxError::Gone(name.to_owned()),
        _ => RxError::Down(name.to_owned()),
    }
}

fn failed(interface: &str, what: &'static str, source: io::Error) -> RxError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => RxError::Permission(interface.to_owned()),
        _ => RxError::Io { what, interface: interface.to_owned(), source },
    }
}

/// The tag that was taken out, of a frame's status, the tag's control word and EtherType.
pub fn tag(status: u32, control: u16, kind: u16) -> Option<(u16, u16)> {
    (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let told = status & TAG_TYPE_VALID != 0;
        (if told { kind } else { libc::ETH_P_8021Q as u16 }, control)
    })
}

/// What a frame's status says of its checksum.
pub fn checksum(status: u32) -> Checksum {
    match status & (CHECKSUM_NOT_READY | CHECKSUM_VALID) {
        0 => Checksum::Unknown,
        CHECKSUM_VALID => Checksum::Verified,
        _ => Checksum::Unfinished,
    }
}

/// The time in a frame's header, and what its status says of it.
pub fn stamp(status: u32, seconds: u32, nanoseconds: u32) -> Stamp {
    let by = match status & (BY_DRIVER | BY_HARDWARE) {
        0 => StampedBy::Socket,
        BY_DRIVER => StampedBy::Driver,
        _ => StampedBy::Hardware,
    };
    Stamp { ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds), by }
}

/// `sll_pkttype` (packet(7)).
pub fn kind(byte: u8) -> Kind {
    match byte {
        libc::PACKET_HOST => Kind::Host,
        libc::PACKET_BROADCAST => Kind::Broadcast,
        libc::PACKET_MULTICAST => Kind::Multicast,
        libc::PACKET_OTHERHOST => Kind::OtherHost,
        libc::PACKET_OUTGOING => Kind::Outgoing,
        _ => Kind::Unknown,
    }
}
