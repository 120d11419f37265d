//! What stamps of departing frames came to: how late frames really left, as somebody beyond this program saw it.

use histogram::Histogram;
use port::departures::Departed;

/// Of the frames that were asked for; most are not (`port::departures`).
#[derive(Debug, Default)]
pub struct Departures {
    /// The hardware stamps, not its driver.
    pub by_hardware: bool,
    /// Frames whose stamps were asked for.
    pub asked: u64,
    /// Of those, stamped.
    pub stamped: u64,
    /// How long after its time a frame left; one that was early counts as 0. Empty at top speed.
    pub lateness: Histogram,
    /// From when it was handed to the kernel until it left.
    pub handing: Histogram,
    /// By how much these times may be wrong: how closely the stamps' clock is known.
    pub error_ns: u64,
}

impl Departures {
    /// Takes one down.
    pub fn note(&mut self, frame: Departed) {
        let Departed { due_ns, handed_ns, left_ns } = frame;
        if let Some(due_ns) = due_ns {
            self.lateness.record(left_ns.saturating_sub(due_ns));
        }
        self.handing.record(left_ns.saturating_sub(handed_ns));
    }

    /// Adds those of another sender.
    pub fn merge(&mut self, other: &Departures) {
        self.by_hardware |= other.by_hardware;
        self.asked += other.asked;
        self.stamped += other.stamped;
        self.lateness.merge(&other.lateness);
        self.handing.merge(&other.handing);
        self.error_ns = self.error_ns.max(other.error_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_counts_from_the_schedule_and_handing_from_the_call() {
        let mut departures = Departures::default();
        let frame = |due_ns, handed_ns, left_ns| Departed { due_ns, handed_ns, left_ns };
        departures.note(frame(Some(1_000), 1_020, 1_050));
        // Before its time by the stamps' clock, which is known to some nanoseconds only.
        departures.note(frame(Some(2_000), 1_999, 1_990));
        departures.note(frame(None, 3_000, 3_007));
        let seen = |of: &Histogram| (of.count(), of.min(), of.max());
        assert_eq!(seen(&departures.lateness), (2, 0, 50));
        assert_eq!(seen(&departures.handing), (3, 0, 30));
    }
}
