//! A place that frames arrive at, seen from the loop that receives: [`Tx`](crate::tx::Tx) turned round.
//!
//! A receiver lends a batch of frames where they stand (a ring, a UMEM), with what the kernel knows of each beside it, and
//! takes them back when it is asked for the next batch. So no frame is copied on its way, and there is a call a batch.
//!
//! ```text
//!   Slots    packet socket, TPACKET_V2: a frame is there at once. What the kernel left to hardware is told.  bridge, impair
//!   Blocks   packet socket, TPACKET_V3: frames packed closely, each block up to 8 ms late.                   meter
//!   AfxdpRx  AF_XDP (`crate::afxdp`): one queue, before the host's stack; bytes and nothing beside them.
//!   Together several of these, as one.
//! ```
//!
//! What a receiver does not tell is in [`RxFacts`]: who needs it, refuses that receiver.

mod blocks;
pub(crate) mod inlet;
mod slots;
mod together;

pub use blocks::{Blocks, RETIRE};
pub use slots::{Slots, Take};
pub use together::Together;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// A frame that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its bytes from the Ethernet header on, without FCS and without the tag; fewer than `length` if it could not be had
    /// whole.
    pub bytes: &'a [u8],
    /// How long it was, in bytes, without FCS and without the tag.
    pub length: usize,
    /// The VLAN tag that was taken out from behind the addresses: its EtherType and control word.
    pub tag: Option<(u16, u16)>,
    /// What is known of its transport checksum.
    pub checksum: Checksum,
    /// What is yet to be done to it.
    pub offload: Offload,
    /// When it arrived.
    pub stamp: Stamp,
    /// Whom it is addressed to.
    pub kind: Kind,
}

impl<'a> Frame<'a> {
    /// A whole frame of which nothing but its bytes is known.
    pub fn bare(bytes: &'a [u8], stamp: Stamp) -> Frame<'a> {
        Frame {
            bytes,
            length: bytes.len(),
            tag: None,
            checksum: Checksum::Unknown,
            offload: Offload::default(),
            stamp,
            kind: Kind::Unknown,
        }
    }
}

/// What is known of a frame's transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing: it may be right or wrong.
    Unknown,
    /// The driver or the kernel found it right.
    Verified,
    /// It was left to hardware that the frame never passed: there is but the sum of the pseudo header.
    Unfinished,
}

/// When a frame arrived, and by which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// In nanoseconds.
    pub ns: u64,
    /// Who read which clock.
    pub by: StampedBy,
}

/// Who stamped a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampedBy {
    /// The NIC, by its own clock ([`phc`](crate::phc)).
    Hardware,
    /// The kernel, by CLOCK_REALTIME, when the driver handed the frame over.
    Driver,
    /// The kernel, by CLOCK_REALTIME, when the frame came to the socket.
    Socket,
    /// A program in the kernel, by CLOCK_MONOTONIC, when the driver had the frame.
    Program,
    /// This process, by CLOCK_REALTIME, when it took the batch: all its frames have the same time.
    Process,
}

/// Whom a frame is addressed to, as the kernel judges (packet(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This interface.
    Host,
    /// All.
    Broadcast,
    /// A group.
    Multicast,
    /// Somebody else: received in promiscuous mode.
    OtherHost,
    /// It leaves this interface.
    Outgoing,
    /// Not known.
    Unknown,
}

/// Which frames of an interface are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Those that arrive.
    In,
    /// Those that leave by it, as far as the host's stack sends them.
    Out,
    /// All. Of a loopback each frame comes twice: as it leaves, and as it arrives.
    Both,
}

/// What the kernel left to hardware: `struct virtio_net_hdr` (linux/virtio_net.h), the parts that are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum from this byte of the frame on, to be put that many bytes behind it; the sum of the pseudo header
    /// is there already.
    pub checksum: Option<(u16, u16)>,
    /// The frame is a super-frame: its payload is to be cut into parts of so many bytes.
    pub segment: Option<Segment>,
}

/// How a super-frame is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Of what.
    pub kind: SegmentKind,
    /// Payload of each frame but the last, in bytes.
    pub size: u16,
}

/// What a super-frame is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP.
    Tcp,
    /// UDP, each segment a datagram.
    Udp,
    /// Anything else.
    Other,
}

/// `struct virtio_net_hdr`, in bytes.
const OFFLOAD: usize = 10;

impl Offload {
    /// Reads `struct virtio_net_hdr` in this machine's byte order.
    pub fn parse(header: &[u8; OFFLOAD]) -> Offload {
        const NEEDS_CHECKSUM: u8 = 1;
        let [flags, kind, ..] = *header;
        if flags & NEEDS_CHECKSUM == 0 && kind == 0 {
            return Offload::default();
        }
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let kind = match kind & 0x7f {
            0 => None,
            1 | 4 => Some(SegmentKind::Tcp),
            5 => Some(SegmentKind::Udp),
            _ => Some(SegmentKind::Other),
        };
        Offload {
            checksum: (flags & NEEDS_CHECKSUM != 0).then(|| (word(6), word(8))),
            segment: kind.map(|kind| Segment { kind, size: word(4) }),
        }
    }
}

/// What became of the frames that arrived, since the receiver was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxCounters {
    /// Lent.
    pub frames: u64,
    /// Lost by the kernel, because the receiver had no room for them. What a NIC loses before that (with AF_XDP's
    /// zero-copy: all that finds no buffer) is among the interface's own counters.
    pub dropped: u64,
}

/// What a receiver tells of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RxFacts {
    /// VLAN tags that were taken out ([`Frame::tag`]). If not, a frame looks as if it never had one.
    pub tags: bool,
    /// Checksums left to hardware ([`Frame::checksum`]). If not, a frame of another host of this machine may have a wrong
    /// one, and nothing says so.
    pub checksums: bool,
    /// Where such a checksum is to be put, and how a super-frame is to be cut ([`Frame::offload`]).
    pub offloads: bool,
    /// Whom frames are addressed to ([`Frame::kind`]).
    pub kinds: bool,
    /// A time of arrival for each frame; if not, each has that of its batch ([`StampedBy::Process`]).
    pub stamps: bool,
    /// The host's own stack gets the frames, too.
    pub shared: bool,
}

/// Why nothing is received.
#[derive(Debug, thiserror::Error)]
pub enum RxError {
    /// Not permitted.
    #[error("receiving on {0} needs CAP_NET_RAW: run with sudo")]
    Permission(String),
    /// The interface went down.
    #[error("{0} went down")]
    Down(String),
    /// The interface is no longer there.
    #[error("{0} was removed")]
    Gone(String),
    /// Somebody detached the program that sees frames.
    #[error("the program that meters {0} was detached by force")]
    Detached(String),
    /// Anything else.
    #[error("{what} on {interface}: {source}")]
    Io {
        /// The call that failed.
        what: &'static str,
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Receives frames. Its descriptor can be polled for more than the batch that is lent.
pub trait Rx: AsFd {
    /// The most frames that make a batch.
    fn batch(&self) -> usize;

    /// Gives the batch that is lent back. [`Rx::advance`] does it, too: this is for who does not want the next one yet.
    fn give_back(&mut self);

    /// Gives the batch that is lent back and takes the next one: what is there, or else what is there after at most
    /// `patience`, which may be nothing. With a patience of zero there is no system call. A duration rather than a moment,
    /// because so nobody reads a clock while frames are there.
    ///
    /// That the interface went down or away is reported once, after what had arrived before; it may come back.
    ///
    /// # Errors
    /// That the interface is away or down, or that the socket cannot be read.
    fn advance(&mut self, patience: Duration) -> Result<usize, RxError>;

    /// The batch that is lent.
    fn frames(&self) -> &[Frame<'_>];

    /// [`Rx::advance`], then [`Rx::frames`].
    ///
    /// # Errors
    /// As [`Rx::advance`].
    fn receive(&mut self, patience: Duration) -> Result<&[Frame<'_>], RxError> {
        self.advance(patience)?;
        Ok(self.frames())
    }

    /// What became of the frames so far. A system call.
    fn counters(&mut self) -> RxCounters;

    /// What it tells of frames.
    fn facts(&self) -> RxFacts;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_hardware_is_read() {
        let header = |flags: u8, kind: u8, words: [u16; 4]| {
            let mut bytes = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
            for (at, word) in words.into_iter().enumerate() {
                bytes[2 + 2 * at..][..2].copy_from_slice(&word.to_ne_bytes());
            }
            Offload::parse(&bytes)
        };
        assert_eq!(header(0, 0, [0; 4]), Offload::default());
        let tcp = header(1, 1, [66, 1448, 34, 16]);
        assert_eq!(tcp.checksum, Some((34, 16)));
        assert_eq!(tcp.segment, Some(Segment { kind: SegmentKind::Tcp, size: 1448 }));
        assert_eq!(header(0, 4 | 0x80, [0, 9, 0, 0]).segment.map(|s| s.kind), Some(SegmentKind::Tcp));
        assert_eq!(header(0, 5, [0, 9, 0, 0]).segment.map(|s| s.kind), Some(SegmentKind::Udp));
        assert_eq!(header(2, 3, [0, 9, 7, 7]).checksum, None);
    }
}
