//! What clients say to a TCP server, and the beginnings of its answers, from programs at the interface's ingress and egress
//! (`programs/bpf/segments.bpf.c`, tcx: Linux 6.6): a [`Rx`] for each thread that reads. `netdyno clone` says it again.
//!
//! ```text
//!   interface, in  --> program --.   by the hash of addresses and ports   .-- ring buffer 0 --> Segments
//!   interface, out --> program --'                                        '-- ring buffer 1 --> Segments
//! ```
//!
//! Beside a packet socket (`port::rx::Slots`) it copies nothing of sessions that were not chosen, takes as little room as a segment
//! needs, and has room for long super-packets where short ones have it. The frames themselves go on untouched; with the last
//! `Segments`, or with the process, however that ends, the programs are gone.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

mod loader;
#[cfg(test)]
mod twin;

use bpf::{Hook, Link, Mapping, ProgramError, Ring, kernel};
use port::packet::Target;
use port::rx::{Checksum, Frame, Kind, Offload, Rx, RxCounters, RxError, RxFacts, Stamp, StampedBy};
use port::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Before a frame's bytes: when it came, its length, how much of it follows.
const HEADER: usize = 16;
/// Whether the programs are still attached is asked this often.
const LOOK: Duration = Duration::from_millis(100);
/// The Linux that brought tcx.
const TCX: (u32, u32) = (6, 6);

/// What is taken.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server's address; `None`: any.
    pub server: Option<IpAddr>,
    /// Its port.
    pub port: u16,
    /// Without an address: what is no server, though it has the port.
    pub except: [Option<IpAddr>; 2],
    /// Of frames from the server so many bytes are taken; of those to it all.
    pub answers: u32,
    /// Of the hash that chooses.
    pub seed: u64,
    /// Sessions whose hash is below the first number, and of those the ones whose second hash is below the second, are taken. `None`:
    /// all.
    pub sample: Option<[Option<u64>; 2]>,
    /// Rings, each with connections of its own.
    pub lanes: usize,
    /// Memory of all rings together, in bytes.
    pub bytes: usize,
    /// Each frame passes twice, as it leaves and as it arrives: it is taken as it arrives.
    pub loopback: bool,
    /// Take frames for any address for as long as this is open.
    pub promiscuous: bool,
}

/// Programs in place.
#[derive(Debug)]
struct Attached {
    links: Vec<Link>,
    drops: Mapping<u64>,
    interface: String,
    _promiscuous: Option<OwnedFd>,
}

/// Receives one ring's segments.
#[derive(Debug)]
pub struct Segments {
    // Before the memory that they stand in. They are 'static only in here: `frames` lends them for as long as self.
    frames: Vec<Frame<'static>>,
    ring: Ring,
    attached: Arc<Attached>,
    lane: usize,
    batch: usize,
    looked: Instant,
    counters: RxCounters,
}

impl Segments {
    /// Attaches the programs to an interface of the calling thread's network namespace: a receiver for each lane.
    ///
    /// # Errors
    /// That the kernel does not load or attach them, and why.
    pub fn attach(target: &Target, options: &Options, batch: usize) -> Result<Vec<Segments>, ProgramError> {
        let loaded = loader::load(options).map_err(|error| match error {
            ProgramError::Load { .. } if kernel::is_before(TCX) => not_possible(target, needs_tcx()),
            other => other,
        })?;
        let promiscuous = match options.promiscuous {
            true => Some(
                socket::promiscuous(target.index)
                    .map_err(|error| ProgramError::System { what: "promiscuous mode", error })?,
            ),
            false => None,
        };
        let [arriving, leaving] = &loaded.programs;
        let both = [(arriving, Hook::TcIngress), (leaving, Hook::TcEgress)];
        let hooks = both.iter().take(if options.loopback { 1 } else { 2 });
        let links = hooks.map(|(program, hook)| {
            program.attach(target.index, *hook).map_err(|error| match error {
                Errno::PERM => ProgramError::Permission { what: "attaching a program to traffic control" },
                Errno::INVAL | Errno::OPNOTSUPP => not_possible(target, needs_tcx()),
                other => not_possible(target, other.to_string()),
            })
        });
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let interface = target.name.clone();
        let attached =
            Arc::new(Attached { links, drops: loaded.drops, interface, _promiscuous: promiscuous });
        let over = |(lane, ring)| Segments::over(ring, attached.clone(), lane, batch);
        Ok(loaded.rings.into_iter().enumerate().map(|(lane, ring)| over((lane, ring))).collect())
    }

    fn over(ring: Ring, attached: Arc<Attached>, lane: usize, batch: usize) -> Segments {
        Segments {
            frames: Vec::with_capacity(batch),
            ring,
            attached,
            lane,
            batch,
            looked: Instant::now(),
            counters: RxCounters::default(),
        }
    }

    /// Takes what is there; stamps are CLOCK_MONOTONIC's in the ring, and are told as CLOCK_REALTIME's, which is `ahead_ns` later.
    fn take(&mut self, ahead_ns: i64) {
        while self.frames.len() < self.batch {
            let Some(record) = self.ring.take() else { break };
            // SAFETY: `give_back` empties `frames`, which lends the bytes no longer than that, before the ring gives them back; the
            // ring lives as long as self.
            let record: &'static [u8] = unsafe { Ring::bytes(record) };
            let Some((header, rest)) = record.split_first_chunk::<HEADER>() else { continue };
            // `struct taken` of the program, in this machine's byte order.
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *header;
            let ns = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
            let length = u32::from_ne_bytes([i, j, k, l]) as usize;
            let captured = u32::from_ne_bytes([m, n, o, p]) as usize;
            self.frames.push(Frame {
                bytes: rest.get(..captured).unwrap_or_default(),
                length,
                tag: None,
                checksum: Checksum::Unknown,
                offload: Offload::default(),
                // As a packet socket's: the kernel's, and by this clock.
                stamp: Stamp { ns: ns.saturating_add_signed(ahead_ns), by: StampedBy::Socket },
                kind: Kind::Unknown,
            });
        }
        self.counters.frames += self.frames.len() as u64;
    }
}

/// By how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, now: it changes when somebody sets the clock.
fn ahead_ns() -> i64 {
    let real = clocks::now(clocks::Clock::Realtime);
    let monotonic = clocks::now(clocks::Clock::Monotonic);
    i64::try_from(real).unwrap_or(i64::MAX).saturating_sub_unsigned(monotonic)
}

fn needs_tcx() -> String {
    kernel::needs("a program at traffic control that goes with its process (tcx)", TCX)
}

fn not_possible(target: &Target, reasons: String) -> ProgramError {
    ProgramError::NotPossible { what: "capture by a ring buffer", interface: target.name.clone(), reasons }
}

impl AsFd for Segments {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl Rx for Segments {
    fn batch(&self) -> usize {
        self.batch
    }

    fn give_back(&mut self) {
        self.frames.clear();
        self.ring.give_back();
    }

    fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        self.give_back();
        let ahead_ns = ahead_ns();
        self.take(ahead_ns);
        if self.frames.is_empty() && !patience.is_zero() && !self.ring.has_more() {
            let time = Timespec {
                tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: patience.subsec_nanos().into(),
            };
            // An interruption is as good as quiet.
            let _ = poll(&mut [PollFd::new(&self.ring, PollFlags::IN)], Some(&time));
            self.take(ahead_ns);
        }
        if self.frames.is_empty() && self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            if self.attached.links.iter().any(|link| !link.is_attached()) {
                // The links do not say whether it was the interface that went.
                return Err(RxError::Detached(self.attached.interface.clone()));
            }
        }
        Ok(self.frames.len())
    }

    fn frames(&self) -> &[Frame<'_>] {
        &self.frames
    }

    fn counters(&mut self) -> RxCounters {
        self.counters.dropped = self.attached.drops.get(self.lane).unwrap_or(0);
        self.counters
    }

    fn facts(&self) -> RxFacts {
        RxFacts { tags: false, checksums: false, offloads: false, kinds: false, stamps: true, shared: true }
    }
}
