//! Netlink, as far as this project needs it: build a request, send it, read the answers.
//!
//! It carries the families in use here: rtnetlink (links, addresses, routes, queueing disciplines; callers:
//! `interface` and the lab), generic netlink (a device's XDP features) and netfilter (frames that the lab's device
//! loses). It is synchronous, it listens to one multicast group (links: `carrier`), and it knows no attribute by name:
//! those stand where they are used.
//!
//! Why not the `netlink-packet-*` crates: netdyno sends half a dozen kinds of messages and reads a
//! handful of attributes. The wire format needed for that is the 200 lines below, without unsafe code; the
//! type crates would add a dozen dependencies whose parts break each other's versions every month or two.
//!
//! Wire format: <https://docs.kernel.org/userspace-api/netlink/intro.html>. A message is a header of 16
//! bytes, a fixed struct of its family, and attributes, each `u16 length, u16 type, payload`, padded to 4.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, NETFILTER, SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Ask for an answer, and for an acknowledgement when it is complete.
pub const REQUEST: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
/// Ask for everything of a kind. The end of a dump is its acknowledgement.
pub const DUMP: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
/// Create an object; fail if it exists.
pub const CREATE: u16 = REQUEST | (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;

/// Generic netlink's own family, the one that tells the others' numbers.
const GENL_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const HEADER: usize = 16;

/// What can go wrong between us and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// There is no socket.
    #[error("cannot open a netlink socket: {0}")]
    Open(#[source] Errno),
    /// Sending or receiving failed.
    #[error("cannot talk to the kernel over netlink: {0}")]
    Talk(#[source] Errno),
    /// The kernel understood and said no.
    #[error("the kernel refused: {0}")]
    Refused(#[source] Errno),
    /// An answer is longer than the buffer that is there for it: bytes of both.
    #[error("a netlink answer of {0} bytes does not fit the buffer of {1}")]
    TooLong(usize, usize),
    /// The kernel's answer cannot be read.
    #[error("the kernel's netlink answer cannot be read: {0}")]
    Malformed(&'static str),
    /// The kernel has no such family of generic netlink.
    #[error("this kernel has no generic netlink family '{0}'")]
    NoFamily(String),
}

impl NetlinkError {
    /// The kernel's error number, where it is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Open(errno) | Self::Talk(errno) | Self::Refused(errno) => Some(*errno),
            _ => None,
        }
    }
}

/// A request being built.
#[derive(Debug, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    /// `kind` is the message type (`RTM_*`, or a generic family's number), `flags` one of this module's.
    pub fn new(kind: u16, flags: u16) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    /// A generic netlink request: `family` as [`Socket::family`] told it.
    pub fn generic(family: u16, flags: u16, command: u8) -> Self {
        Self::new(family, flags).fixed(&[command, 1, 0, 0])
    }

    /// The fixed struct that follows the header.
    pub fn fixed(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// The `struct ifinfomsg` of all link messages.
    pub fn link(self, index: u32, flags: u32, change: u32) -> Self {
        let mut info = [0; 16];
        info[4..8].copy_from_slice(&index.to_ne_bytes());
        info[8..12].copy_from_slice(&flags.to_ne_bytes());
        info[12..16].copy_from_slice(&change.to_ne_bytes());
        self.fixed(&info)
    }

    /// Adds an attribute of any bytes.
    pub fn attr(mut self, kind: u16, payload: &[u8]) -> Self {
        // Attributes come from this project's own code; a length is far below 64 KiB.
        let length = (payload.len() + 4) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(payload);
        self.pad();
        self
    }

    /// Adds an attribute of 32 bits.
    pub fn attr_u32(self, kind: u16, value: u32) -> Self {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// A string attribute, with the zero byte that ends it.
    pub fn attr_str(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attr(kind, &bytes)
    }

    /// An attribute that holds attributes (or a fixed struct and attributes).
    pub fn nest(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        self.0.extend_from_slice(&[0, 0]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        let mut filled = fill(self);
        let length = (filled.0.len() - start) as u16;
        filled.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// What follows the header, as answers are handed out.
    #[cfg(test)]
    pub(crate) fn payload(self) -> Vec<u8> {
        self.0[HEADER..].to_vec()
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// Iterates over the attributes in `bytes`; stops at the first that does not fit.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes behind a fixed struct of `fixed` bytes.
    pub fn after(bytes: &'a [u8], fixed: usize) -> Self {
        Self(bytes.get(fixed..).unwrap_or_default())
    }

    /// The first attribute of that kind.
    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|(found, _)| *found == kind).map(|(_, payload)| payload)
    }

    /// The attributes within one.
    pub fn nested(self, kind: u16) -> Attributes<'a> {
        Attributes(self.get(kind).unwrap_or_default())
    }

    /// The value of an attribute of 8 bits.
    pub fn u8(self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    /// The value of an attribute of 32 bits.
    pub fn u32(self, kind: u16) -> Option<u32> {
        read_u32(self.get(kind)?, 0)
    }

    /// The value of an attribute of 64 bits.
    pub fn u64(self, kind: u16) -> Option<u64> {
        read_u64(self.get(kind)?, 0)
    }

    /// The value of an attribute of 32 bits in network byte order, as nftables has them.
    pub fn be_u32(self, kind: u16) -> Option<u32> {
        Some(u32::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// The value of an attribute of 64 bits in network byte order.
    pub fn be_u64(self, kind: u16) -> Option<u64> {
        Some(u64::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// The text of an attribute, up to its NUL.
    pub fn str(self, kind: u16) -> Option<String> {
        self.get(kind).map(text)
    }
}

/// Text up to its NUL.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(read_u16(self.0, 0)?);
        // The two top bits are the kernel's marks for "nested" and "network byte order".
        let kind = read_u16(self.0, 2)? & 0x3fff;
        let payload = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    }
}

/// Reads in the machine's byte order, as netlink does.
pub fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A number in the host's byte order; `None` behind the end.
pub fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number in the host's byte order; `None` behind the end.
pub fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Messages that nobody asked for, each with its type.
pub type Told = Vec<(u16, Vec<u8>)>;

/// Takes a datagram apart into the payloads of its messages to the request with this number. True: that was all.
///
/// # Errors
/// What the kernel said instead of an answer, or that this is no answer.
pub fn split(datagram: &[u8], number: u32, answers: &mut Vec<Vec<u8>>) -> Result<bool, NetlinkError> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let size = read_u32(rest, 0).ok_or(NetlinkError::Malformed("a short header"))? as usize;
        let kind = read_u16(rest, 4).ok_or(NetlinkError::Malformed("a short header"))?;
        let sequence = read_u32(rest, 8).ok_or(NetlinkError::Malformed("a short header"))?;
        let body = rest.get(HEADER..size).ok_or(NetlinkError::Malformed("a wrong length"))?;
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        if sequence != number {
            // Left over from a request that ended in an error.
            continue;
        }
        match i32::from(kind) {
            libc::NLMSG_NOOP => {}
            // Both carry a negative error number first; zero in an error message is the acknowledgement.
            libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                return match (read_u32(body, 0).unwrap_or(0) as i32).wrapping_neg() {
                    0 => Ok(true),
                    code @ 1..4096 => Err(NetlinkError::Refused(Errno::from_raw_os_error(code))),
                    _ => Err(NetlinkError::Malformed("no error number")),
                };
            }
            _ => answers.push(body.to_vec()),
        }
    }
    Ok(false)
}

/// A netlink socket. It belongs to the network namespace of the thread that opened it, for good: one opened
/// inside a namespace can be used from everywhere.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Links, addresses, routes.
    ///
    /// # Errors
    /// That there are no descriptors left.
    pub fn route() -> Result<Self, NetlinkError> {
        // rtnetlink is protocol 0, the default.
        Self::open(None)
    }

    /// Generic netlink.
    ///
    /// # Errors
    /// That there are no descriptors left.
    pub fn generic() -> Result<Self, NetlinkError> {
        Self::open(Some(GENERIC))
    }

    /// Packet filters.
    ///
    /// # Errors
    /// That there are no descriptors left, or this kernel has no nftables.
    pub fn netfilter() -> Result<Self, NetlinkError> {
        Self::open(Some(NETFILTER))
    }

    /// Other sockets of this host.
    ///
    /// # Errors
    /// That there are no descriptors left, or this kernel has no such thing.
    pub fn diag() -> Result<Self, NetlinkError> {
        Self::open(Some(SOCK_DIAG))
    }

    /// Is told what happens to links; see [`Socket::told`].
    ///
    /// # Errors
    /// That there are no descriptors left.
    pub fn links() -> Result<Self, NetlinkError> {
        Self::listening(None, libc::RTMGRP_LINK as u32)
    }

    fn open(protocol: Option<Protocol>) -> Result<Self, NetlinkError> {
        Self::listening(protocol, 0)
    }

    fn listening(protocol: Option<Protocol>, groups: u32) -> Result<Self, NetlinkError> {
        let fd =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
                .map_err(NetlinkError::Open)?;
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, groups)).map_err(NetlinkError::Open)?;
        // The kernel packs dumps into datagrams of at most 32 KiB.
        Ok(Self { fd, sequence: 0, buffer: vec![0; 1 << 16] })
    }

    /// Sends `message` and returns the answers' payloads (family struct and attributes, without the netlink
    /// header) once the kernel has acknowledged it.
    ///
    /// # Errors
    /// What the kernel said instead of an answer, or that what came is none.
    pub fn request(&mut self, message: Message) -> Result<Vec<Vec<u8>>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = message.finish(self.sequence);
        rustix::net::send(&self.fd, &bytes, SendFlags::empty()).map_err(NetlinkError::Talk)?;
        self.answers()
    }

    /// Sends messages in one piece, as netfilter's transactions have to be, and waits until the kernel has
    /// acknowledged `last`, or refused any of them.
    ///
    /// # Errors
    /// What the kernel said of the first that it refused.
    pub fn batch(&mut self, before: Vec<Message>, last: Message, end: Message) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        // One number for all: whatever is refused first is the answer. Only `last` asks for an acknowledgement.
        let messages = before.into_iter().chain([last, end]);
        let bytes: Vec<u8> = messages.flat_map(|message| message.finish(self.sequence)).collect();
        rustix::net::send(&self.fd, &bytes, SendFlags::empty()).map_err(NetlinkError::Talk)?;
        self.answers().map(|_| ())
    }

    /// What the kernel answers to the request of the latest number.
    fn answers(&mut self) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let mut answers = Vec::new();
        loop {
            let (_, length) = match rustix::net::recv(&self.fd, self.buffer.as_mut_slice(), RecvFlags::TRUNC)
            {
                Err(Errno::INTR) => continue,
                other => other.map_err(NetlinkError::Talk)?,
            };
            let capacity = self.buffer.len();
            let datagram = self.buffer.get(..length).ok_or(NetlinkError::TooLong(length, capacity))?;
            if split(datagram, self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
    }

    /// What a listening socket was told since, one datagram at a time, each message with its type: `None` when that was
    /// all. Some may be missing: the kernel drops what does not fit the socket's buffer.
    ///
    /// # Errors
    /// That the socket cannot be read, or what came is no message.
    pub fn told(&mut self) -> Result<Option<Told>, NetlinkError> {
        let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        let length = match rustix::net::recv(&self.fd, self.buffer.as_mut_slice(), flags) {
            Ok((_, length)) => length,
            Err(Errno::AGAIN) => return Ok(None),
            // NOBUFS tells of the drop, once.
            Err(Errno::INTR | Errno::NOBUFS) => return Ok(Some(Vec::new())),
            Err(error) => return Err(NetlinkError::Talk(error)),
        };
        let mut rest = self.buffer.get(..length).unwrap_or_default();
        let mut messages = Vec::new();
        while let (Some(size), Some(kind)) = (read_u32(rest, 0), read_u16(rest, 4)) {
            let Some(body) = rest.get(HEADER..size as usize) else { break };
            messages.push((kind, body.to_vec()));
            rest = rest.get((size as usize).next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(Some(messages))
    }

    /// The number of a generic netlink family.
    ///
    /// # Errors
    /// ENOENT of a family that this kernel does not have; that the kernel does not answer.
    pub fn family(&mut self, name: &str) -> Result<u16, NetlinkError> {
        let ask = Message::generic(GENL_CTRL, REQUEST, CTRL_CMD_GETFAMILY);
        let answers = match self.request(ask.attr_str(CTRL_ATTR_FAMILY_NAME, name)) {
            Err(NetlinkError::Refused(Errno::NOENT)) => return Err(NetlinkError::NoFamily(name.to_owned())),
            other => other?,
        };
        answers
            .first()
            .and_then(|answer| read_u16(Attributes::after(answer, 4).get(CTRL_ATTR_FAMILY_ID)?, 0))
            .ok_or(NetlinkError::Malformed("no family number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_attributes_read_back_as_written() {
        let bytes = Message::new(16, REQUEST)
            .link(7, 1, 1)
            .attr_str(3, "tx0")
            .nest(18, |m| m.attr_str(1, "veth").nest(2, |m| m.attr_u32(5, 99)))
            .finish(4);
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(read_u32(&bytes, 0), Some(bytes.len() as u32));
        let attributes = Attributes::after(&bytes, HEADER + 16);
        assert_eq!(attributes.str(3).as_deref(), Some("tx0"));
        assert_eq!(attributes.nested(18).str(1).as_deref(), Some("veth"));
        assert_eq!(attributes.nested(18).nested(2).u32(5), Some(99));
        assert_eq!(attributes.u32(77), None);
    }

    #[test]
    fn attributes_of_impossible_length_end_the_iteration() {
        for bytes in [&[3, 0, 1, 0][..], &[200, 0, 1, 0, 9], &[1], &[0, 0, 0, 0, 0, 0]] {
            assert_eq!(Attributes(bytes).count(), 0, "{bytes:?}");
        }
    }

    #[test]
    fn the_kernel_answers_a_dump_and_an_error_leaves_the_socket_usable() {
        let mut socket = Socket::route().unwrap();
        let refused =
            socket.request(Message::new(libc::RTM_GETLINK, REQUEST).link(0, 0, 0).attr_str(3, "no-such-if"));
        assert_eq!(refused.unwrap_err().errno(), Some(Errno::NODEV));
        let links = socket.request(Message::new(libc::RTM_GETLINK, DUMP).link(0, 0, 0)).unwrap();
        assert!(links.iter().any(|link| Attributes::after(link, 16).str(3).as_deref() == Some("lo")));
    }
}
