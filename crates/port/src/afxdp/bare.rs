//! The least that anyone can do who sends through AF_XDP: the same frames again and again, no byte of them written.
//!
//! This is the floor that benchmarks put beside the engine's figure.
#![allow(unsafe_code, reason = "writing frames into memory that no socket knows yet")]

use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdpFlags as Flags, XdpDesc, XdpDescOptions};

use super::AfxdpError;
use super::socket::{Failed, Memory, Socket};
use super::umem::{CHUNK, Region, slot_size};
use crate::packet::{BATCH, Target};

/// A socket in copy mode and one batch of frames in its memory.
#[derive(Debug)]
pub struct Bare {
    socket: Socket,
    frames: Vec<XdpDesc>,
    /// Descriptors not yet completed.
    outstanding: usize,
    _region: Region,
}

impl Bare {
    /// Prepares a batch of copies of `frame`, which must fit into one buffer (4,096 bytes).
    ///
    /// # Errors
    /// What [`open`](super::open) says of any sender.
    pub fn open(target: &Target, queue: u32, frame: &[u8]) -> Result<Bare, AfxdpError> {
        let failed = |what| {
            let interface = target.name.clone();
            move |source| AfxdpError::Io { what, interface, queue, source }
        };
        if frame.is_empty() || frame.len() > CHUNK {
            return Err(failed("a frame for one buffer")(Errno::MSGSIZE));
        }
        let mut region = Region::allot(1, BATCH, slot_size(frame.len()), false)
            .map_err(failed("memory for frames"))?
            .remove(0);
        let stride = region.stride();
        // SAFETY: the kernel does not know this memory yet.
        for slot in unsafe { region.bytes(0..BATCH) }.chunks_exact_mut(stride) {
            slot[..frame.len()].copy_from_slice(frame);
        }
        let frames = (0..BATCH).flat_map(|slot| region.pieces(slot, frame.len()));
        let frames = frames.map(|(addr, len, _)| XdpDesc { addr, len, options: XdpDescOptions::empty() });
        let frames = frames.collect();
        let flags = Flags::XDP_COPY | Flags::XDP_USE_NEED_WAKEUP;
        let size = 4 * BATCH as u32;
        let socket = Socket::open(Memory::Own(region.umem()), size, target.index, queue, flags)
            .map_err(|Failed { what, errno }| failed(what)(errno))?;
        Ok(Bare { socket, frames, outstanding: 0, _region: region })
    }

    /// Sends the batch once more. How many frames that were.
    ///
    /// # Errors
    /// What `sendto` answers, but for what says to try again.
    pub fn submit(&mut self) -> Result<usize, Errno> {
        for frame in &self.frames {
            if self.socket.tx.push(*frame) {
                self.outstanding += 1;
            }
        }
        self.socket.tx.publish();
        loop {
            match self.socket.kick() {
                // Dropped by the driver: completed all the same, and the floor does not care.
                Ok(()) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            while self.socket.done.pop().is_some() {
                self.outstanding -= 1;
            }
            self.socket.done.release();
            if self.outstanding == 0 {
                return Ok(self.frames.len());
            }
        }
    }
}
