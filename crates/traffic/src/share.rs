//! A program shared out among workers: each gets a program of its own, and every frame is in exactly one of them.
//!
//! Executors know nothing of workers. A stream of one template is dealt out frame by frame, as cards are; of a capture
//! whole conversations go to one worker, so that their order is kept. Within a worker the frames of a lane keep the
//! order they have in the whole, at the worker's part of the lane's rate; workers begin one after the other, so that
//! together they keep the rate of the whole: at any time as many frames are due as in the whole, but for one for each
//! worker. (In a staircase it may be a few more: a gap that reaches over the end of a step holds up the rate behind it,
//! and a worker's gaps are longer.)
//!
//! How a lane's frames are dealt out repeats after a while, which makes it countable ([`Deal`]). Where that would take
//! too long, or its schedule cannot be divided, the lane goes to one worker whole.

use crate::fraction::{gcd, lcm, reduced};
use crate::lengths::Lengths;
use crate::program::{Lane, Program, Stream};
use crate::schedule::{Schedule, Step};
use crate::values::{hash, pick};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use wire::LinkType;
use wire::flow::FlowKey;
use wire::layers::Layers;

/// Longest repeating deal of streams that take turns, and longest list of times made for one.
const MOST: u64 = 1 << 22;

impl Program {
    /// The part of it that worker number `worker` of `of` sends: every frame is sent by exactly one of them. Its
    /// signed streams have numbers of their own, `of` times the old one and `worker`, under which they count from 0.
    /// Without lanes when nothing is left for the worker.
    ///
    /// Streams of one template are dealt out frame by frame; of captured ones both directions of a flow stay
    /// together, and what is no flow goes by its pair of Ethernet addresses. A lane whose schedule cannot be divided
    /// (bursts of a number of frames that is no multiple of `of`, bursts of captured frames) goes whole to worker
    /// number *lane* modulo `of`.
    pub fn share(&self, worker: u32, of: u32) -> Program {
        if of <= 1 {
            return self.clone();
        }
        let mut streams = BTreeMap::new();
        let mut lanes = Vec::new();
        for number in 0..self.lanes.len() {
            lanes.extend(self.share_of_lane(number, worker, of, &mut streams));
        }
        let numbers: BTreeMap<u32, u32> = streams.keys().zip(0..).map(|(&old, new)| (old, new)).collect();
        for lane in &mut lanes {
            lane.order = lane.order.iter().map(|old| numbers[old]).collect();
        }
        let signed = |mut stream: Stream| {
            stream.signature = stream.signature.map(|s| s.saturating_mul(of).saturating_add(worker));
            stream
        };
        Program { streams: streams.into_values().map(signed).collect(), lanes }
    }

    /// How many of the first `count` frames are the worker's. `None` when they come from several lanes.
    pub fn share_count(&self, worker: u32, of: u32, count: u64) -> Option<u64> {
        let lane = match &self.lanes[..] {
            [] => return Some(0),
            [lane] => lane,
            _ => return None,
        };
        let count = count.min(lane.limit());
        if of <= 1 {
            return Some(count);
        }
        Some(match Deal::new(self, lane, of) {
            Some(deal) => deal.among(count).get(worker as usize).copied().unwrap_or(0),
            None if worker == 0 => count,
            None => 0,
        })
    }

    /// The worker's part of a lane, which still names streams as the whole does; the worker's parts of those streams
    /// go into `streams`. `None` when it has no part in it.
    fn share_of_lane(
        &self,
        number: usize,
        worker: u32,
        of: u32,
        streams: &mut BTreeMap<u32, Stream>,
    ) -> Option<Lane> {
        let lane = &self.lanes[number];
        let Some(deal) = Deal::new(self, lane, of) else {
            if number as u64 % u64::from(of) != u64::from(worker) {
                return None;
            }
            let whole = |&s: &u32| Some((s, self.streams.get(s as usize)?.clone()));
            streams.extend(lane.order.iter().filter_map(whole));
            return Some(lane.clone());
        };
        let part = deal.lane(worker)?;
        for member in &deal.members {
            if part.order.contains(&member.number) {
                streams.insert(member.number, member.part(worker, of));
            }
        }
        Some(part)
    }
}

/// How the frames of a lane are dealt out to workers.
struct Deal<'p> {
    lane: &'p Lane,
    of: u64,
    members: Vec<Member<'p>>,
    /// For each place in the order its member, and how many of that member's places stand before it.
    places: Vec<(usize, u64)>,
    /// After so many frames it comes again.
    period: u64,
    /// Frames of a period that each worker has.
    counts: Vec<u64>,
    /// The bits a second of each worker, when that is what the schedule says, and when each begins.
    bits: Vec<(u64, u64)>,
}

/// A stream of a lane.
struct Member<'p> {
    number: u32,
    stream: &'p Stream,
    /// Places it has in the order.
    per_cycle: u64,
    /// Its first place there: neighbours in the order begin with different workers.
    first: u64,
    /// Of a capture: whose each template is.
    owners: Vec<u32>,
}

impl<'p> Member<'p> {
    fn owner(&self, k: u64, of: u64) -> u64 {
        if self.owners.is_empty() {
            return (k % of + self.first % of) % of;
        }
        u64::from(self.owners[(k % self.owners.len() as u64) as usize])
    }

    /// Frames after which it goes round again.
    fn period(&self, of: u64, lane: &Lane) -> Option<u64> {
        if !self.owners.is_empty() {
            return Some(self.owners.len() as u64);
        }
        match (&lane.schedule, &self.stream.lengths) {
            // How many bits a worker has to send depends on which lengths it got.
            (Schedule::Bits { .. }, Lengths::List(items)) => {
                let items = (items.len() as u64).max(1);
                lcm(of, items / gcd(items, self.stream.step))
            }
            _ => Some(of),
        }
    }

    /// What the worker has of it.
    fn part(&self, worker: u32, of: u32) -> Stream {
        let whole = self.stream;
        if !self.owners.is_empty() {
            return Stream {
                templates: whole.templates.subset(|i| self.owners[i] == worker),
                ..whole.clone()
            };
        }
        let (worker, of) = (u64::from(worker), u64::from(of));
        let begins = (worker + of - self.first % of) % of;
        Stream { first: whole.number(begins), step: whole.step.saturating_mul(of), ..whole.clone() }
    }

    /// Half bytes of frame `k`, on average over the frames it stands for.
    fn weight(&self, k: u64, overhead: u32) -> u128 {
        let bytes = match self.stream.lengths {
            Lengths::Random { min, max, .. } => u128::from(min) + u128::from(max),
            _ => 2 * u128::from(self.stream.length_of(k)),
        };
        bytes + 2 * u128::from(overhead)
    }
}

impl<'p> Deal<'p> {
    /// `None`: the lane must stay whole.
    fn new(program: &'p Program, lane: &'p Lane, of: u32) -> Option<Deal<'p>> {
        let mut numbers = BTreeMap::new();
        let mut members: Vec<Member<'_>> = Vec::new();
        let mut places = Vec::with_capacity(lane.order.len());
        for (place, &number) in lane.order.iter().enumerate() {
            let stream = program.streams.get(number as usize)?;
            let member = *numbers.entry(number).or_insert_with(|| {
                let owners = if stream.is_captured() { owners(stream, of) } else { Vec::new() };
                members.push(Member { number, stream, per_cycle: 0, first: place as u64, owners });
                members.len() - 1
            });
            places.push((member, members[member].per_cycle));
            members[member].per_cycle += 1;
        }
        let dealt = u64::from(of);
        let mut cycles = 1u64;
        for member in &members {
            member.stream.step.checked_mul(dealt)?;
            let period = member.period(dealt, lane)?;
            cycles = lcm(cycles, period / gcd(period, member.per_cycle))?;
        }
        let period = cycles.checked_mul(lane.order.len() as u64)?;
        // A capture is walked once, however long it is; one that leaves by two interfaces is two members.
        let alone = match &members[..] {
            [only] if places.len() == 1 => only.owners.len() as u64,
            sides if sides.iter().all(|side| side.per_cycle == side.owners.len() as u64) => {
                places.len() as u64
            }
            _ => 0,
        };
        if period > MOST.max(alone) {
            return None;
        }
        let mut deal =
            Deal { lane, of: dealt, members, places, period, counts: Vec::new(), bits: Vec::new() };
        deal.counts = deal.among_first(period);
        deal.schedule_divides().then_some(deal)
    }

    /// The member and its number of frame `i`.
    fn turn(&self, i: u64) -> (&Member<'p>, u64) {
        let cycle = self.places.len() as u64;
        let (member, before) = self.places[(i % cycle) as usize];
        let member = &self.members[member];
        (member, i / cycle * member.per_cycle + before)
    }

    fn owner(&self, i: u64) -> u64 {
        let (member, k) = self.turn(i);
        member.owner(k, self.of)
    }

    /// How many of the first `n` frames each worker has, counted.
    fn among_first(&self, n: u64) -> Vec<u64> {
        let mut counts = vec![0; self.of as usize];
        for i in 0..n {
            counts[self.owner(i) as usize] += 1;
        }
        counts
    }

    /// How many of the first `n` frames each worker has.
    fn among(&self, n: u64) -> Vec<u64> {
        let (periods, rest) = (n / self.period, n % self.period);
        self.among_first(rest).iter().zip(&self.counts).map(|(rest, count)| rest + periods * count).collect()
    }

    /// Can the schedule be divided? It must be so for all workers or for none.
    fn schedule_divides(&mut self) -> bool {
        match &self.lane.schedule {
            Schedule::TopSpeed | Schedule::Frames { .. } | Schedule::Steps { .. } | Schedule::Shaped(_) => {
                true
            }
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                self.bits = self.divide_bits(*bits_per_second, *overhead_bytes);
                self.counts.iter().zip(&self.bits).all(|(&count, &(rate, _))| count == 0 || rate > 0)
            }
            Schedule::Times { offsets, period_ns, .. } => {
                let given = (offsets.len() as u64).max(1);
                lcm(self.period, given).is_some_and(|all| {
                    all <= MOST.max(self.period).max(given) && period_ns.checked_mul(all / given).is_some()
                })
            }
            Schedule::Bursts { frames, gap_ns, .. } => {
                let captured = self.members.iter().any(|member| member.stream.is_captured());
                !captured && frames.is_multiple_of(self.of) && gap_ns.checked_mul(self.of).is_some()
            }
        }
    }

    /// Each worker's bits a second, in the proportion of the bits it has to send and in all exactly `rate`; and when
    /// it begins.
    fn divide_bits(&self, rate: u64, overhead: u32) -> Vec<(u64, u64)> {
        let mut weights = vec![0u128; self.of as usize];
        for i in 0..self.period {
            let (member, k) = self.turn(i);
            weights[member.owner(k, self.of) as usize] += member.weight(k, overhead);
        }
        let total: u128 = weights.iter().sum::<u128>().max(1);
        let until = |weight: u128| u128::from(rate) * weight / total;
        let mut before = 0u128;
        let mut out = Vec::new();
        for (&weight, &count) in weights.iter().zip(&self.counts) {
            let own = until(before + weight) - until(before);
            // A frame's mean time, four being the bits of half a byte.
            let gap = (weight * 4_000_000_000).checked_div(own * u128::from(count)).unwrap_or(0);
            out.push((own as u64, u64::try_from(gap * before / total).unwrap_or(u64::MAX)));
            before += weight;
        }
        out
    }

    /// The worker's lane. `None` when it has no frame in it.
    fn lane(&self, worker: u32) -> Option<Lane> {
        let own = *self.counts.get(worker as usize).filter(|&&count| count > 0)?;
        let before: u64 = self.counts[..worker as usize].iter().sum();
        let limit = Some(self.lane.limit()).filter(|&limit| limit != u64::MAX);
        let frames = limit.map(|limit| self.among(limit)[worker as usize]);
        if frames == Some(0) {
            return None;
        }
        let part = |frames: u64, per_ns: u64| ratio([frames, own], [per_ns, self.period]);
        // Each begins when those before it have had their part of its first gap.
        let begins = |frames: u64, per_ns: u64| {
            let gap = u128::from(before) * u128::from(per_ns) / (u128::from(frames) * u128::from(own)).max(1);
            u64::try_from(gap).unwrap_or(u64::MAX)
        };
        let (schedule, later) = match &self.lane.schedule {
            Schedule::TopSpeed => (Schedule::TopSpeed, 0),
            &Schedule::Frames { frames, per_ns } => {
                let later = begins(frames, per_ns);
                let (frames, per_ns) = part(frames, per_ns);
                (Schedule::Frames { frames, per_ns }, later)
            }
            &Schedule::Bits { overhead_bytes, .. } => {
                let (bits_per_second, later) = self.bits[worker as usize];
                (Schedule::Bits { bits_per_second, overhead_bytes }, later)
            }
            Schedule::Times { offsets, period_ns, speed } => {
                let given = offsets.len() as u64;
                let all = lcm(self.period, given)?;
                let of = |i: u64| {
                    (i / given).saturating_mul(*period_ns).saturating_add(offsets[(i % given) as usize])
                };
                let offsets = (0..all).filter(|&i| self.owner(i) == u64::from(worker)).map(of).collect();
                (Schedule::Times { offsets, period_ns: period_ns * (all / given), speed: *speed }, 0)
            }
            &Schedule::Bursts { frames, gap_ns, period_ns } => {
                let (frames, gap) = (frames / self.of, gap_ns * self.of);
                (Schedule::Bursts { frames, gap_ns: gap, period_ns }, gap_ns.saturating_mul(worker.into()))
            }
            // Each frame keeps its very time.
            Schedule::Shaped(shaped) => {
                let own = (0..self.period).filter(|&i| self.owner(i) == u64::from(worker));
                (Schedule::Shaped(shaped.part(self.period, own.map(|i| i as u32).collect()).into()), 0)
            }
            Schedule::Steps { steps } => {
                let later = steps.first().map_or(0, |step| begins(step.frames, step.per_ns));
                let mut steps: Vec<Step> = steps
                    .iter()
                    .map(|step| {
                        let (frames, per_ns) = part(step.frames, step.per_ns);
                        Step { end_ns: step.end_ns.saturating_sub(later), frames, per_ns }
                    })
                    .collect();
                // It ends with its last frame, not with its last nanosecond: gaps that reach over the ends of steps
                // may have cost it some.
                if let Some(last) = steps.last_mut().filter(|_| frames.is_some()) {
                    last.end_ns = u64::MAX;
                }
                steps.retain(|step| step.end_ns > 0);
                (Schedule::Steps { steps: steps.into() }, later)
            }
        };
        Some(Lane {
            order: self.order(worker),
            schedule,
            start_ns: self.lane.start_ns.saturating_add(later),
            frames,
        })
    }

    /// The order of the worker's frames, as short as it can be said.
    fn order(&self, worker: u32) -> Arc<[u32]> {
        if let [member] = &self.members[..] {
            return Arc::new([member.number]);
        }
        let own = (0..self.period).map(|i| self.turn(i));
        let own = own.filter(|(member, k)| member.owner(*k, self.of) == u64::from(worker));
        let mut order: Vec<u32> = own.map(|(member, _)| member.number).collect();
        order.truncate(repeats_after(&order));
        order.into()
    }
}

/// The shortest part that `items` is repetitions of.
fn repeats_after(items: &[u32]) -> usize {
    // For each item how long a beginning ends with it (the failure function of Knuth, Morris and Pratt).
    let mut borders = vec![0usize; items.len()];
    for i in 1..items.len() {
        let mut border = borders[i - 1];
        while border > 0 && items[i] != items[border] {
            border = borders[border - 1];
        }
        borders[i] = border + usize::from(items[i] == items[border]);
    }
    let part = items.len() - borders.last().copied().unwrap_or(0);
    if part > 0 && items.len().is_multiple_of(part) { part } else { items.len() }
}

/// Whose each template of a capture is.
fn owners(stream: &Stream, of: u32) -> Vec<u32> {
    let owner = |i| pick(conversation(stream.templates.get(i)), of.into()) as u32;
    (0..stream.templates.len()).map(owner).collect()
}

/// The same number for all frames of a conversation, in both directions.
fn conversation(frame: &[u8]) -> u64 {
    let mut mix = Mix(0);
    match FlowKey::of(&Layers::parse(LinkType::ETHERNET, frame), frame).key() {
        Some(key) => key.conversation().hash(&mut mix),
        None => {
            let address = |at: usize| frame.get(at..at + 6).unwrap_or_default();
            let (a, b) = (address(0), address(6));
            mix.write(a.min(b));
            mix.write(a.max(b));
        }
    }
    mix.finish()
}

/// A hash that is the same in every process: who sends a frame must follow from the program.
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            self.write_u64(part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = hash(self.0, word);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A product of two over a product of two, in 64 bits each.
fn ratio([a, b]: [u64; 2], [c, d]: [u64; 2]) -> (u64, u64) {
    let common = gcd(b, d).max(1);
    let (over, under) = (u128::from(a) * u128::from(b / common), u128::from(c) * u128::from(d / common));
    if let (Ok(over), Ok(under)) = (u64::try_from(over), u64::try_from(under)) {
        return (over, under);
    }
    let (over, under) = reduced(over, under);
    (over.max(1), under.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_cut_to_what_repeats() {
        for (items, part) in [
            (vec![], 0),
            (vec![3], 1),
            (vec![1, 1, 1], 1),
            (vec![1, 2, 1, 2], 2),
            (vec![1, 2, 1], 3),
            (vec![0, 0, 1, 0, 0, 1], 3),
            (vec![0, 0, 1, 0, 0], 5),
        ] {
            assert_eq!(repeats_after(&items), part, "{items:?}");
        }
    }

    #[test]
    fn a_ratio_beyond_64_bits_keeps_its_value() {
        assert_eq!(ratio([3, 2], [5, 4]), (3, 10));
        assert_eq!(ratio([1 << 62, 8], [1 << 62, 40]), (1, 5));
        let (over, under) = ratio([u64::MAX, 1], [u64::MAX - 2, 7]);
        assert!((over as f64 / under as f64 * 7.0 - 1.0).abs() < 1e-12);
    }
}
