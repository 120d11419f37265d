//! Simulated devices, with all that devices do to searches.

use netdyno_trial::{Device, Latency, Outcome, Wanted};
use std::convert::Infallible;

/// What a simulated device does with a load.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Forwards so many frames a second and no more.
    Hard(f64),
    /// As `Hard`, and keeps what comes in so many seconds besides: (capacity, seconds).
    Buffered(f64, f64),
    /// As `Hard`, but a capacity of its own in each trial: (mean, relative spread).
    Noisy(f64, f64),
    /// Loss grows with the load above a point: (where it starts, loss ratio at ten times that).
    Slope(f64, f64),
    /// Loses this part of everything.
    Lossy(f64),
    /// Each second, with this chance, a spike that takes away a part: (capacity, chance, part).
    Spikes(f64, f64, f64),
    /// Passes or fails at random: (capacity, chance to fail whatever the load).
    Flapping(f64, f64),
    /// Forwards nothing.
    Dead,
    /// The sender does no more than this; the device forwards all.
    SlowSender(f64),
}

/// A device with its own, repeatable chance.
#[derive(Debug, Clone)]
pub struct Simulated {
    pub kind: Kind,
    state: u64,
    pub trials: u64,
    pub sending_ns: u64,
}

impl Simulated {
    pub fn new(kind: Kind, seed: u64) -> Self {
        Self { kind, state: seed.wrapping_mul(2).wrapping_add(1), trials: 0, sending_ns: 0 }
    }

    /// 0 to 1 (xorshift64*).
    fn chance(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn trial(&mut self, wanted: &Wanted) -> Outcome {
        self.trials += 1;
        self.sending_ns += wanted.sending_ns();
        let seconds = wanted.duration_ns as f64 / 1e9;
        let intended = ((wanted.load * seconds).round() as u64).max(1);
        let mut sent = intended;
        let up_to = |capacity: f64| (intended as f64).min((capacity * seconds).round()) as u64;
        let received = match self.kind {
            Kind::Hard(capacity) => up_to(capacity),
            Kind::Buffered(capacity, kept) => up_to(capacity * (1.0 + kept / seconds)),
            Kind::Noisy(mean, spread) => {
                let swing = (self.chance() + self.chance() - 1.0) * spread;
                up_to(mean * (1.0 + swing))
            }
            Kind::Slope(from, ratio) => {
                let over = ((wanted.load / from - 1.0) / 9.0 * ratio).clamp(0.0, 1.0);
                (intended as f64 * (1.0 - over)).round() as u64
            }
            Kind::Lossy(ratio) => (intended as f64 * (1.0 - ratio)).round() as u64,
            Kind::Spikes(capacity, chance, part) => {
                let calm = (1.0 - chance).powf(seconds);
                if self.chance() < calm { up_to(capacity) } else { up_to(capacity * (1.0 - part)) }
            }
            Kind::Flapping(capacity, chance) => {
                if self.chance() < chance {
                    intended / 2
                } else {
                    up_to(capacity)
                }
            }
            Kind::Dead => 0,
            Kind::SlowSender(most) => {
                sent = up_to(most);
                sent
            }
        };
        // Half full it takes 10 us; the queue grows with the load.
        let base = 10_000 + (wanted.load / 100.0) as u64;
        let latency = Latency {
            min_ns: base,
            mean_ns: base as f64 * 1.5,
            p50_ns: base * 3 / 2,
            p90_ns: base * 2,
            p99_ns: base * 3,
            p999_ns: base * 4,
            max_ns: base * 5,
            frames: received,
            frame_to_frame: None,
        };
        Outcome { intended, sent, received, latency: (received > 0).then_some(latency), ..Outcome::default() }
    }
}

impl Device for Simulated {
    type Error = Infallible;

    fn run(&mut self, wanted: &Wanted) -> Result<Outcome, Infallible> {
        Ok(self.trial(wanted))
    }
}
