//! The frames of a look-alike in the order of time.
//!
//! Conversations are played side by side, each by its own beginning and duration; that gives the order of frames, and times as
//! planned. When they really come is dealt from the profile's gaps between frames, interval by interval and a block of frames at
//! a time: the longest gap goes where the longest was planned, those before a conversation's first frame apart from others. So rates, gaps and the whole duration are those of the profile,
//! and conversations keep about their durations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::distribution::{Deck, Distribution};
use super::measure::place;
use super::packet::{Assembler, Turn};
use super::plan::{Addresses, Talk, plan};
use super::profile::{BadProfile, FlowProfile, PLACES};
use crate::conversation::{ACK, FIN, RST, SYN};
use crate::random::{For, Key};
use wire::numbers::protocol;

/// Spread of the gaps within a conversation, as the standard deviation of their logarithm.
const GAP_SIGMA: f64 = 1.5;

/// Frames of a block, and bytes of them, at most.
const BLOCK: usize = 8192;
const BLOCK_BYTES: usize = 16 << 20;

/// A look-alike being made: hands out its frames in the order of time. It holds 56 bytes for each conversation, 100 more while it
/// lasts, and a block of up to 8,192 frames (16 MiB).
#[derive(Debug)]
pub struct Like {
    profile: FlowProfile,
    key: Key,
    talks: Vec<Talk>,
    /// Conversations that have begun.
    begun: usize,
    open: Vec<Open>,
    free: Vec<u32>,
    queue: BinaryHeap<Reverse<(u64, u64, Next)>>,
    sizes: Vec<[Vec<Deck>; 2]>,
    others: Vec<(Deck, u64)>,
    clock: Clock,
    /// How many were made, and when the last one was planned.
    frames: u64,
    planned: u64,
    assembler: Assembler,
    block: Block,
}

/// Frames that are made, with their times; handed out from the front.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// With times as planned, then as dealt.
    frames: Vec<Slot>,
    next: usize,
}

/// Whose frame comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Talk(u32),
    Other(u32),
}

/// A conversation under way.
#[derive(Debug, Clone, Copy)]
struct Open {
    talk: u32,
    left: [u32; 2],
    sent: [u32; 2],
    numbers: [u32; 2],
    /// Of all gaps, as drawn; and of those that are over.
    total: f64,
    over: f64,
}

/// Deals out the gaps between frames: those before conversations' first frames, and those before others.
#[derive(Debug)]
struct Clock {
    gaps: [Gaps; 2],
    now_ns: u64,
}

/// Gaps in the order of intervals, within one in an order of chance.
#[derive(Debug)]
struct Gaps {
    parts: std::vec::IntoIter<(Deck, u64)>,
    part: (Deck, u64),
}

/// A frame of a block: where it ends, when it comes, and whether it begins a conversation.
#[derive(Debug, Clone, Copy)]
struct Slot {
    end: usize,
    time: u64,
    begins: bool,
}

impl Gaps {
    fn new<'a>(parts: impl Iterator<Item = &'a Distribution>) -> Gaps {
        let parts: Vec<_> = parts.map(|part| (Deck::new(part), part.count())).collect();
        Gaps { parts: parts.into_iter(), part: Default::default() }
    }

    /// The interval's gaps, of the next interval that has any left.
    fn part(&mut self) -> Option<&mut (Deck, u64)> {
        while self.part.1 == 0 {
            self.part = self.parts.next()?;
        }
        Some(&mut self.part)
    }

    /// The next `count` gaps, the longest first. Behind the last there are none: nothing is said, and frames come at once.
    fn deal(&mut self, count: usize, bits: &mut impl FnMut() -> u64) -> Vec<u64> {
        let gap = |_| {
            let (deck, left) = self.part()?;
            *left -= 1;
            deck.deal(bits())
        };
        let mut gaps: Vec<u64> = (0..count).map_while(gap).collect();
        gaps.sort_unstable_by_key(|gap| Reverse(*gap));
        gaps
    }
}

impl Clock {
    fn new(profile: &FlowProfile) -> Clock {
        let parts = || profile.intervals.iter();
        Clock {
            gaps: [
                Gaps::new(parts().map(|part| &part.starts_ns)),
                Gaps::new(parts().map(|part| &part.gaps_ns)),
            ],
            now_ns: 0,
        }
    }

    /// Deals the times of a block, which was planned for after `before` ns.
    fn deal(&mut self, slots: &mut [Slot], before: u64, first: bool, mut bits: impl FnMut() -> u64) {
        let mut planned = before;
        let mut orders: [Vec<(Reverse<u64>, usize)>; 2] = Default::default();
        for (n, slot) in slots.iter_mut().enumerate() {
            let [starts, others] = &mut orders;
            let gap = slot.time.saturating_sub(planned);
            planned = slot.time;
            slot.time = 0;
            if !first || n > 0 {
                if slot.begins { starts } else { others }.push((Reverse(gap), n));
            }
        }
        if first {
            self.take_first();
        }
        for (which, order) in orders.iter_mut().enumerate() {
            order.sort_unstable();
            let [own, other] = match &mut self.gaps {
                [starts, others] if which == 0 => [starts, others],
                [starts, others] => [others, starts],
            };
            let mut gaps = own.deal(order.len(), &mut bits);
            // The first frame may have been one of the other kind.
            gaps.extend(other.deal(order.len() - gaps.len(), &mut bits));
            for ((_, n), gap) in order.iter().zip(gaps) {
                if let Some(slot) = slots.get_mut(*n) {
                    slot.time = gap;
                }
            }
        }
        for slot in slots {
            self.now_ns = self.now_ns.saturating_add(slot.time);
            slot.time = self.now_ns;
        }
    }

    /// Before the first frame of all there was no time: one of the gaps of nothing is its.
    fn take_first(&mut self) {
        let parts = self.gaps.iter_mut().filter_map(|gaps| gaps.part());
        if let Some((deck, left)) = parts.min_by_key(|(deck, _)| deck.least()) {
            deck.deal_least();
            *left -= 1;
        }
    }
}

impl Like {
    /// Plans the capture that `profile` and `seed` mean. The same two give the same frames on every machine.
    ///
    /// # Errors
    /// What of the profile cannot be followed.
    pub fn new(profile: FlowProfile, seed: u64) -> Result<Like, BadProfile> {
        profile.check()?;
        let key = Key::new(seed);
        let talks = plan(&profile, key);
        let side = |places: &[Distribution]| places.iter().map(Deck::new).collect::<Vec<_>>();
        let sizes =
            profile.kinds.iter().map(|kind| [side(&kind.sizes.client), side(&kind.sizes.server)]).collect();
        let others = profile.others.iter().map(|other| (Deck::new(&other.sizes), other.sizes.count()));
        let mut like = Like {
            key,
            talks,
            begun: 0,
            open: Vec::new(),
            free: Vec::new(),
            queue: BinaryHeap::new(),
            sizes,
            others: others.collect(),
            clock: Clock::new(&profile),
            frames: 0,
            assembler: Assembler::new(key, Addresses::new(&profile.blocks)),
            block: Block::default(),
            planned: 0,
            profile,
        };
        for number in 0..like.others.len() as u32 {
            like.queue_other(number);
        }
        Ok(like)
    }

    /// What is imitated.
    pub fn profile(&self) -> &FlowProfile {
        &self.profile
    }

    /// The next frame: ns since the first one, and its bytes, which are lent until the next call.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its items")]
    pub fn next(&mut self) -> Option<(u64, &[u8])> {
        if self.block.next == self.block.frames.len() {
            self.fill();
        }
        let number = self.block.next;
        let &Slot { end, time, .. } = self.block.frames.get(number)?;
        let start =
            number.checked_sub(1).and_then(|n| self.block.frames.get(n)).map_or(0, |before| before.end);
        self.block.next += 1;
        Some((time, self.block.bytes.get(start..end)?))
    }

    /// Makes the next block.
    fn fill(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        block.bytes.clear();
        block.frames.clear();
        block.next = 0;
        let (first, before) = (self.frames, self.planned);
        let interval_ns = self.profile.interval_ns;
        let interval = |at: u64| at.checked_div(interval_ns);
        // Of one interval, so that gaps stay in theirs.
        let mut now = None;
        while block.frames.len() < BLOCK && block.bytes.len() < BLOCK_BYTES {
            if let Some(now) = now
                && self.next_planned().is_some_and(|next| interval(next) != interval(now))
            {
                break;
            }
            let Some((planned, begins, frame)) = self.make() else { break };
            block.bytes.extend_from_slice(frame);
            block.frames.push(Slot { end: block.bytes.len(), time: planned, begins });
            (self.planned, now) = (planned, Some(planned));
        }
        let (key, mut n) = (self.key, first);
        let bits = || {
            n += 1;
            key.bits(For::Gap, 1 << 63 | n)
        };
        if !self.profile.intervals.is_empty() {
            self.clock.deal(&mut block.frames, before, first == 0, bits);
        }
        self.block = block;
    }

    /// When the next frame is planned.
    fn next_planned(&self) -> Option<u64> {
        let open = self.queue.peek().map(|Reverse((at, ..))| *at);
        let new = self.talks.get(self.begun).map(|talk| talk.start_ns);
        open.into_iter().chain(new).min()
    }

    /// Makes the next frame: when it is planned, whether it begins a conversation, and its bytes.
    fn make(&mut self) -> Option<(u64, bool, &[u8])> {
        // Conversations that begin before the next frame of those under way.
        while let Some(talk) = self.talks.get(self.begun)
            && self.queue.peek().is_none_or(|Reverse((at, ..))| talk.start_ns <= *at)
        {
            self.begin(*talk);
        }
        let Reverse((planned, _, next)) = self.queue.pop()?;
        self.frames += 1;
        match next {
            Next::Other(number) => {
                self.queue_other(number);
                let other = self.profile.others.get(number as usize)?;
                let (deck, _) = self.others.get_mut(number as usize)?;
                let size = deck.deal(self.key.bits(For::NonFlow, self.frames)).unwrap_or(64);
                Some((planned, false, self.assembler.of_other(other.what, other.tags, length(size))))
            }
            Next::Talk(slot) => self.turn(slot, planned),
        }
    }

    fn begin(&mut self, talk: Talk) {
        let number = self.begun as u32;
        self.begun += 1;
        let frames = u64::from(talk.frames[0]) + u64::from(talk.frames[1]);
        let total = (1..frames).map(|n| self.gap(number, n)).sum();
        let bits = self.key.bits(For::Sequence, number.into());
        let numbers = [bits as u32, (bits >> 32) as u32];
        let open = Open { talk: number, left: talk.frames, sent: [0; 2], numbers, total, over: 0.0 };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.open.push(open);
                self.open.len() as u32 - 1
            }
        };
        if let Some(place) = self.open.get_mut(slot as usize) {
            *place = open;
        }
        self.queue.push(Reverse((talk.start_ns, u64::from(number), Next::Talk(slot))));
    }

    /// Before frame `n` of a conversation, relative to its other gaps.
    fn gap(&self, talk: u32, n: u64) -> f64 {
        self.key.lognormal(For::Gap, u64::from(talk) << 32 | n & 0xffff_ffff, 0.0, GAP_SIGMA)
    }

    /// The next frame of a conversation.
    fn turn(&mut self, slot: u32, time: u64) -> Option<(u64, bool, &[u8])> {
        let mut open = *self.open.get(slot as usize)?;
        let talk = *self.talks.get(open.talk as usize)?;
        let kind = self.profile.kinds.get(usize::from(talk.kind))?;
        let n = u64::from(open.sent[0]) + u64::from(open.sent[1]);
        let back = match (open.left, n) {
            ([0, _], _) => true,
            ([_, 0], _) => false,
            (_, 0) => talk.server_first,
            // Who opens gets an answer and acknowledges that.
            (_, 1 | 2) if talk.opened => n == 1,
            ([client, server], _) => {
                let all = u64::from(client) + u64::from(server);
                self.key.bits(For::Shape, u64::from(open.talk) << 32 | n & 0xffff_ffff) % all >= client.into()
            }
        };
        let (side, other) = (usize::from(back), usize::from(!back));
        let places = self.sizes.get_mut(usize::from(talk.kind)).and_then(|sides| sides.get_mut(side))?;
        let last = places.len().saturating_sub(1);
        let deck = places.get_mut(place(open.sent[side]).min(last).min(PLACES - 1));
        let bits = self.key.bits(For::Length, self.frames);
        let size = deck.filter(|deck| !deck.is_empty()).and_then(|deck| deck.deal(bits));
        let flags = match kind.protocol {
            protocol::TCP => flags(&talk, &open, back),
            _ => 0,
        };
        let turn = Turn {
            back,
            flags,
            numbers: [open.numbers[side], open.numbers[other]],
            now_ms: (time / 1_000_000) as u32,
        };
        open.left[side] -= 1;
        open.sent[side] += 1;
        if open.left != [0; 2] {
            open.over += self.key.lognormal(
                For::Gap,
                u64::from(open.talk) << 32 | (n + 1) & 0xffff_ffff,
                0.0,
                GAP_SIGMA,
            );
            let part = if open.total > 0.0 { (open.over / open.total).min(1.0) } else { 1.0 };
            let at = talk.start_ns + (part * talk.duration_ns as f64) as u64;
            self.queue.push(Reverse((at, u64::from(open.talk), Next::Talk(slot))));
        } else {
            self.free.push(slot);
        }
        let length = length(size.unwrap_or(kind.shortest()).max(kind.shortest()));
        let (frame, payload) = self.assembler.of_talk(&talk, kind, &turn, length);
        let counted = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        open.numbers[side] = open.numbers[side].wrapping_add(payload).wrapping_add(counted);
        if let Some(place) = self.open.get_mut(slot as usize) {
            *place = open;
        }
        Some((time, n == 0, frame))
    }

    /// Queues the next frame of `others[number]`: they come evenly.
    fn queue_other(&mut self, number: u32) {
        let Some(other) = self.profile.others.get(number as usize) else { return };
        let Some((_, left)) = self.others.get_mut(number as usize) else { return };
        if *left == 0 {
            return;
        }
        let (all, n) = (other.sizes.count(), other.sizes.count() - *left);
        *left -= 1;
        let within = self.key.unit(For::NonFlow, 1 << 63 | u64::from(number) << 40 | n);
        let at = (n as f64 + within) / all as f64 * self.profile.duration_ns as f64;
        self.queue.push(Reverse((at as u64, u64::MAX - u64::from(number), Next::Other(number))));
    }
}

/// Without FCS.
fn length(size: u64) -> usize {
    size.saturating_sub(4) as usize
}

/// TCP's flags of the next frame of a conversation.
fn flags(talk: &Talk, open: &Open, back: bool) -> u8 {
    let side = usize::from(back);
    let first = open.sent[side] == 0;
    let last = open.left[side] == 1;
    let only = open.left == [1, 0] || open.left == [0, 1];
    if first && talk.opened {
        // Refused where the answer is all there is.
        return match (back, talk.reset && only && !talk.finished) {
            (false, _) => SYN,
            (true, true) => RST | ACK,
            (true, false) => SYN | ACK,
        };
    }
    if talk.reset && only {
        return RST | ACK;
    }
    if talk.finished && last {
        return FIN | ACK;
    }
    ACK
}
