//! Heads of frames from an XDP program (`programs/bpf/heads.bpf.c`): how each begins, how long it was, when it arrived.
//! The frame itself goes on to its host, or is dropped.
//!
//! ```text
//!   driver --> program on CPU 0 --> ring 0 --.
//!          --> program on CPU 1 --> ring 1 --+--> batches by time, read in place
//! ```
//!
//! Memory is all that both sides share: nobody is woken, and no call is made for a batch. Who finds the rings empty sleeps
//! for a moment that grows up to the patience that was given. A ring that is full is counted by the program.
//!
//! Several CPUs' frames come in the order of their times: those of the last `SETTLED_NS` wait, because a CPU may not yet
//! have handed over what it stamped before another one did.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

mod loader;

use bpf::attach::{self, WhyNot};
use bpf::{Hook, Link, ProgramError};
use loader::{BEFORE, DROPPED, LONGEST, Loaded, TAIL};
use port::interface::Interface;
use port::packet::Target;
use port::rx::{Checksum, Frame, Kind, Offload, RxError, Stamp, StampedBy};
use port::socket;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Heads of a batch, at most.
const BATCH: usize = 256;
/// Of an entry, before the head.
const HEADER: usize = 16;
/// In an entry's length: there is a VLAN tag.
const TAGGED: u32 = 1 << 31;
/// From a frame's stamp to its being in the ring it takes less than this, in nanoseconds.
const SETTLED_NS: u64 = 100_000;
/// The first nap of who finds nothing.
const NAP: Duration = Duration::from_micros(500);
/// Whether the program is still attached is asked this often.
const LOOK: Duration = Duration::from_millis(100);

/// How heads are taken.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where: [`Hook::XdpNative`] or [`Hook::XdpGeneric`].
    pub hook: Hook,
    /// Take frames for any address for as long as this is open.
    pub promiscuous: bool,
    /// Frames are dropped, and the host gets nothing.
    pub drop: bool,
    /// What is inside of tunnels is wanted, too: longer heads.
    pub deep: bool,
    /// The driver tells of VLAN tags that the NIC took out (Linux 6.8).
    pub tags_told: bool,
    /// Memory for all rings together, in bytes; a ring is no smaller than 256 KiB.
    pub bytes: usize,
}

/// Receives the beginning of every frame that arrives on one interface.
#[derive(Debug)]
pub struct Heads {
    // Before the memory that they stand in. They are 'static only in here: `frames` lends them for as long as self.
    frames: Vec<Frame<'static>>,
    rings: Vec<Ring>,
    loaded: Loaded,
    /// `None` in tests.
    link: Option<Link>,
    _promiscuous: Option<OwnedFd>,
    target: Target,
    /// Only frames up to this time are taken in this round.
    limit_ns: u64,
    until_ns: u64,
    nap: Duration,
    looked: Instant,
    tells_tags: bool,
    note: Option<String>,
}

/// A CPU's ring, as the reader knows it: positions count bytes and never go back.
#[derive(Debug, Clone, Copy, Default)]
struct Ring {
    /// The first entry that was not taken.
    next: u64,
    /// Behind the last entry that is there.
    end: u64,
    /// What the program was told: up to here there is room.
    free: u64,
}

impl Heads {
    /// Attaches a program to an interface of the calling thread's network namespace, for as long as this is open.
    ///
    /// # Errors
    /// That the kernel does not load or attach the program, and why.
    pub fn attach(target: &Target, options: &Options) -> Result<Heads, ProgramError> {
        if options.tags_told
            && options.hook == Hook::XdpNative
            && let Ok(loaded) = loader::load(options, Some(target.index))
            && let Ok(link) = loaded.program.attach(target.index, options.hook)
        {
            return Ok(Heads::over(target, options, loaded, Some(link), true));
        }
        let loaded = loader::load(options, None)?;
        match loaded.program.attach(target.index, options.hook) {
            Ok(link) => Ok(Heads::over(target, options, loaded, Some(link), false)),
            Err(Errno::PERM) => Err(attach::not_permitted()),
            Err(error) => Err(refused(target, options, error, &loaded)),
        }
    }

    fn over(
        target: &Target,
        options: &Options,
        loaded: Loaded,
        link: Option<Link>,
        tells_tags: bool,
    ) -> Heads {
        let mut note = loaded.refused.clone();
        let promiscuous = match options.promiscuous.then(|| socket::promiscuous(target.index)) {
            Some(Ok(socket)) => Some(socket),
            Some(Err(error)) => {
                note = Some(format!(
                    "promiscuous mode is not possible ({error}): only frames to its own addresses"
                ));
                None
            }
            None => None,
        };
        Heads {
            frames: Vec::with_capacity(BATCH),
            rings: vec![Ring::default(); loaded.count],
            loaded,
            link,
            _promiscuous: promiscuous,
            target: target.clone(),
            limit_ns: 0,
            until_ns: 0,
            nap: NAP,
            looked: Instant::now(),
            tells_tags,
            note,
        }
    }

    /// What keeps it from all that it could do, for a person.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// VLAN tags that the NIC took out are reported, as far as the driver reports them.
    pub fn tells_tags(&self) -> bool {
        self.tells_tags
    }

    /// Gives the batch that is lent back and takes the next one: what is there, or else what is there after at most
    /// `patience`. Stamps are by [`StampedBy::Program`].
    ///
    /// # Errors
    /// That the interface is away, or the program was detached.
    pub fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        self.give_back();
        self.take();
        if !self.frames.is_empty() {
            self.nap = NAP;
        } else if !patience.is_zero() {
            std::thread::sleep(self.nap.min(patience));
            self.nap = (self.nap * 2).min(patience);
            self.take();
        }
        // What came before is taken first; behind it nothing comes of a program that was detached.
        if self.frames.is_empty() && self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            if self.link.as_ref().is_some_and(|link| !link.is_attached()) {
                return Err(match Interface::by_name(&self.target.name) {
                    Ok(found) if found.index == self.target.index => {
                        RxError::Detached(self.target.name.clone())
                    }
                    _ => RxError::Gone(self.target.name.clone()),
                });
            }
        }
        Ok(self.frames.len())
    }

    /// The batch that is lent.
    pub fn frames(&self) -> &[Frame<'_>] {
        &self.frames
    }

    /// By CLOCK_MONOTONIC: no later batch has a frame that arrived before this, but for what a CPU was kept from handing
    /// over.
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Frames that found a ring full.
    pub fn dropped(&self) -> u64 {
        (0..self.loaded.count).map(|ring| self.word(ring, DROPPED).load(Ordering::Relaxed)).sum()
    }

    fn word(&self, ring: usize, at: usize) -> &AtomicU64 {
        // SAFETY: inside of the mapping, which lives as long as self: `ring` is below the number of rings, `at` one of the
        // words before its entries, all multiples of 8. Both sides access them as whole words.
        unsafe {
            AtomicU64::from_ptr(self.loaded.rings.base().add(ring * self.loaded.stride + at).cast().as_ptr())
        }
    }

    /// Bytes of a ring's entries, from a position below its size on; as many as an entry has at most.
    fn entry(&self, ring: usize, position: u64) -> NonNull<u8> {
        let at = (position as usize & (self.loaded.bytes - 1)) & !(HEADER - 1);
        // SAFETY: below the ring's size, behind which there is room for an entry, so this is inside of the mapping.
        unsafe { self.loaded.rings.base().add(ring * self.loaded.stride + BEFORE + at) }
    }

    /// When the frame of an entry arrived, and what else stands before its head. Only of entries that are there.
    #[inline]
    fn header(&self, ring: usize, position: u64) -> [u64; 2] {
        let entry = self.entry(ring, position).cast::<[u64; 2]>();
        // SAFETY: entries stand at multiples of 16 of a page, and the program does not write to one that is there, between
        // `free` and `end`, where the caller looks.
        unsafe { entry.read() }
    }

    /// A frame of which the header says `told`, and how much room its entry takes.
    #[inline]
    fn frame(&self, ring: usize, position: u64, [ns, told]: [u64; 2]) -> (Frame<'static>, usize) {
        // `struct head` of `programs/bpf/include/heads.h`, in this machine's byte order.
        let [a, b, c, d, length @ ..] = told.to_ne_bytes();
        let [captured, control] = [[a, b], [c, d]].map(u16::from_ne_bytes);
        let (captured, length) = (usize::from(captured).min(LONGEST), u32::from_ne_bytes(length));
        // SAFETY: inside of the entry, and as for `header`. `give_back` empties `frames`, which lends the bytes no longer
        // than that, before it lets the program have the room.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.entry(ring, position).add(HEADER).as_ptr(), captured) };
        let frame = Frame {
            bytes,
            length: (length & !TAGGED) as usize,
            tag: (length & TAGGED != 0).then_some((libc::ETH_P_8021Q as u16, control)),
            checksum: Checksum::Unknown,
            offload: Offload::default(),
            stamp: Stamp { ns, by: StampedBy::Program },
            kind: Kind::Unknown,
        };
        (frame, HEADER + captured.next_multiple_of(HEADER))
    }

    fn give_back(&mut self) {
        self.frames.clear();
        for at in 0..self.rings.len() {
            let Some(ring) = self.rings.get_mut(at).filter(|ring| ring.free != ring.next) else { continue };
            ring.free = ring.next;
            let free = ring.free;
            // Release: what was lent was read before.
            self.word(at, TAIL).store(free, Ordering::Release);
        }
    }

    /// Takes the next batch: of those that are there, the earliest.
    fn take(&mut self) {
        let mut waiting = self.waiting();
        if waiting.is_empty() {
            self.look();
            waiting = self.waiting();
        }
        while self.frames.len() < BATCH {
            // The ring whose next frame is the earliest, and how long it stays that.
            let Some(&(nth, first_ns)) = waiting.iter().min_by_key(|(_, ns)| *ns) else { break };
            if first_ns > self.limit_ns {
                break;
            }
            let others = waiting.iter().filter(|(ring, _)| *ring != nth).map(|(_, ns)| *ns).min();
            let next_ns = self.take_of(nth, others.unwrap_or(u64::MAX).min(self.limit_ns));
            match next_ns {
                Some(ns) => waiting.iter_mut().filter(|(ring, _)| *ring == nth).for_each(|of| of.1 = ns),
                None => waiting.retain(|(ring, _)| *ring != nth),
            }
        }
        // What is left is later than what was taken, and what is to come is later than the limit.
        let left = waiting.iter().map(|(_, ns)| *ns).min().unwrap_or(u64::MAX);
        let settled = self.limit_ns.min(left);
        let several = self.rings.len() > 1;
        let last = self.frames.last().map_or(0, |frame| frame.stamp.ns);
        self.until_ns =
            self.until_ns.max(if several { settled } else { last.max(settled.min(self.now_settled())) });
    }

    fn now_settled(&self) -> u64 {
        clocks::monotonic().saturating_sub(SETTLED_NS)
    }

    /// Begins a round: looks how far the programs have come.
    fn look(&mut self) {
        // Before the rings are looked at: what is stamped later may be in one and not yet in another.
        self.limit_ns = match self.rings.len() {
            1 => u64::MAX,
            _ => self.now_settled(),
        };
        for at in 0..self.rings.len() {
            // Acquire: entries are read only after the program has said that they are there.
            let end = self.word(at, 0).load(Ordering::Acquire);
            if let Some(ring) = self.rings.get_mut(at) {
                ring.end = end;
            }
        }
    }

    /// Rings that have entries which may be taken, and the time of the first.
    fn waiting(&self) -> Vec<(usize, u64)> {
        let rings = self.rings.iter().enumerate().filter(|(_, ring)| ring.next != ring.end);
        let timed = rings.map(|(at, ring)| (at, self.header(at, ring.next)[0]));
        timed.filter(|(_, ns)| *ns <= self.limit_ns).collect()
    }

    /// Takes entries of a ring up to a time. The time of the next one, if there is one.
    fn take_of(&mut self, nth: usize, until_ns: u64) -> Option<u64> {
        let Ring { mut next, end, .. } = *self.rings.get(nth)?;
        let mut time_ns = None;
        while next != end {
            let header = self.header(nth, next);
            time_ns = Some(header[0]);
            if header[0] > until_ns || self.frames.len() >= BATCH {
                break;
            }
            let (frame, room) = self.frame(nth, next, header);
            self.frames.push(frame);
            next += room as u64;
            time_ns = None;
        }
        if let Some(ring) = self.rings.get_mut(nth) {
            ring.next = next;
        }
        time_ns
    }
}

/// Why the kernel did not attach the program.
fn refused(target: &Target, options: &Options, error: Errno, loaded: &Loaded) -> ProgramError {
    let native = options.hook == Hook::XdpNative;
    let place = (target.name.as_str(), target.index);
    let reasons = match attach::why_not(place, || Some(target.mtu), native, error, &loaded.program) {
        WhyNot::Occupied(said) => format!("{said}; frames that it drops or redirects are not seen here"),
        WhyNot::Refused(said) => said,
    };
    ProgramError::NotPossible { what: "meter", interface: target.name.clone(), reasons }
}

#[cfg(test)]
mod tests;
