//! Telling others' frames from a run's own where no signature does: of frames that most networks carry
//! ([`wire::background`]) those are not ours that arrived beyond what was sent.
//!
//! Everything else that arrives is taken for ours, so that the loss of such a run is known by count only.

use engine::Job;
use traffic::{Executor, Program};
use wire::background::is_background;

/// Frames of a program that are made to count its flows; beyond them it would take longer than the run.
pub const FLOW_SAMPLE: u64 = 4_000_000;

/// Of the frames that arrived, those that are others' for certain; `arrived` are of such kinds. `parts`: each worker's job, and
/// how many of its frames were taken. Which of them were refused is not known, so those count as sent, too.
pub fn of_others<'a>(parts: impl Iterator<Item = (&'a Job, u64)>, arrived: u64) -> u64 {
    if arrived == 0 {
        return 0;
    }
    let ours = parts.map(|(job, taken)| sent(job, taken)).try_fold(0, |sum: u64, of| sum.checked_add(of?));
    arrived.saturating_sub(ours.unwrap_or(u64::MAX))
}

/// Of `signed` frames that arrived, `copies` of them more than once, those that `ours` sent, each counted once. `streams`: each
/// that arrived, with its frames and how many of those were copies. Frames that could be put to no stream are taken for ours.
pub fn own_signed(
    (signed, copies): (u64, u64),
    streams: impl Iterator<Item = (u32, u64, u64)>,
    ours: impl Fn(u32) -> bool,
) -> u64 {
    let others = streams
        .filter(|(number, ..)| !ours(*number))
        .map(|(_, frames, copies)| frames.saturating_sub(copies));
    signed.saturating_sub(copies).saturating_sub(others.sum())
}

/// How many of the job's first frames are of such kinds, if that can be known.
pub fn sent(job: &Job, frames: u64) -> Option<u64> {
    match job.source.program() {
        Some(program) => of_program(program, frames),
        None => job.source.seen().map(|seen| seen.background),
    }
}

/// Frames of such kinds among the first `sent` of a program.
fn of_program(program: &Program, sent: u64) -> Option<u64> {
    // A capture repeats after a pass, but for addresses that change nothing here.
    let captured =
        program.is_pair_of_captures() || program.streams.len() == 1 && program.streams[0].is_captured();
    let pass = program.frames_per_pass().max(1);
    if captured {
        let in_pass = counted(program, pass.min(sent))?;
        let rest = if sent > pass { counted(program, sent % pass)? } else { 0 };
        return Some(in_pass * (sent / pass).max(1) + rest);
    }
    if sent <= FLOW_SAMPLE {
        return counted(program, sent);
    }
    // Of a longer one what it begins with tells whether there are any.
    let templates = program.streams.iter().flat_map(|stream| {
        let templates = &stream.templates;
        (0..templates.len()).map(|n| templates.get(n))
    });
    let any = templates.into_iter().any(is_background) || counted(program, FLOW_SAMPLE)? > 0;
    (!any).then_some(0)
}

fn counted(program: &Program, frames: u64) -> Option<u64> {
    let mut executor = Executor::new(program).ok()?;
    let mut slab = traffic::Slab::new(1, program.longest() as usize);
    let mut found = 0;
    for _ in 0..frames {
        executor.render(&mut slab.buffers(), 1, || 0);
        found += u64::from(is_background(slab.frame(0)));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_frames_of_others_are_not_a_runs_own() {
        let ours = |number: u32| number < 2;
        let streams = [(0, 60, 10), (1, 40, 0), (7, 20, 5)];
        // One more that nobody could put to a stream.
        assert_eq!(own_signed((121, 15), streams.into_iter(), ours), 91);
        assert_eq!(own_signed((0, 0), [].into_iter(), ours), 0);
        // Counts that were read while frames arrived.
        assert_eq!(own_signed((10, 0), streams.into_iter(), ours), 0);
    }

    use traffic::expr::{Options, compile};

    fn job(expression: &str) -> Job {
        let program = compile(expression, &Options::default()).expect("an expression");
        Job::program(program)
    }

    #[test]
    fn only_what_is_more_than_was_sent_is_of_others() {
        let of_others = |job: &Job, taken, arrived| of_others([(job, taken)].into_iter(), arrived);
        assert_eq!(of_others(&job("ipv4/udp"), 1_000, 5), 5);
        assert_eq!(of_others(&job("ipv4/udp"), 1 << 40, 5), 5);
        assert_eq!(of_others(&job("ipv4/udp"), 1_000, 0), 0);
        // A run of ARP itself.
        assert_eq!(of_others(&job("arp"), 1_000, 1_003), 3);
        assert_eq!(of_others(&job("arp"), 1_000, 900), 0);
        // Nobody counted so many.
        assert_eq!(of_others(&job("arp"), 1 << 40, 1_000), 0);
    }
    #[test]
    fn each_worker_sends_its_own_part_as_often_as_it_gets_to() {
        let (arp, udp) = (job("arp"), job("ipv4/udp"));
        // The one with the ARP has made ten times the other's passes.
        let parts = || [(&arp, 10_000), (&udp, 1_000)].into_iter();
        assert_eq!((of_others(parts(), 10_000), of_others(parts(), 10_007)), (0, 7));
    }
}
