//! Synthesises captures that look like an Internet access link, frame by frame, from a seed.
//!
//! A [`Profile`] says what the capture amounts to (frames, bytes, flows, duration, applications) and every total
//! is met exactly. Frames are whole and right: Ethernet, IPv4, TCP that opens, acknowledges and closes, UDP, DNS,
//! HTTP, TLS records, ARP; every checksum holds. There is no IPv6 and there are no fragments, because the
//! published captures state no share of them. Payload is a keyed pattern, copied from nobody.
//!
//! What this is not: a model of any one network. Only totals of the captures it imitates are published; the mix
//! behind them is a stated choice (see `plan`). There is no I/O here: `netdyno` writes the frames to a file.
//!
//! ```
//! use netdyno_synth::{Profile, Synth};
//!
//! let mut synth = Synth::new(Profile::SMALLFLOWS, 1)?;
//! let mut bytes = 0;
//! while let Some((_time_ns, frame)) = synth.next() {
//!     bytes += frame.len() as u64;
//! }
//! assert_eq!(bytes, Profile::SMALLFLOWS.bytes);
//! # Ok::<(), netdyno_synth::Error>(())
//! ```

#![deny(missing_docs, clippy::missing_errors_doc)]

mod application;
mod conversation;
mod frame;
mod hosts;
pub mod like;
mod payload;
mod plan;
mod profile;
mod random;

pub use profile::Profile;

use conversation::{Conversation, Slot};
use frame::Assembler;

/// Changes whenever the same profile and seed give other frames, so that a kept file can be told to be stale.
pub const GENERATION: u32 = 1;

/// Why a profile cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One total does not fit the others.
    #[error(
        "profile: {what} is {asked}, but with its other values it must be {least} to {most}; change one of them"
    )]
    OutOfRange {
        /// The total, by its name in [`Profile`].
        what: &'static str,
        /// What the profile says.
        asked: u64,
        /// Smallest value that fits.
        least: u64,
        /// Largest value that fits.
        most: u64,
    },
}

/// How much a capture has, or what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Frames.
    pub frames: u64,
    /// Bytes of all frames, without FCS.
    pub bytes: u64,
    /// Flows, as [`Profile::flows`] counts them.
    pub flows: u64,
}

/// A capture being synthesised: hands out its frames in the order of time.
///
/// Holds a plan of 16 bytes a frame, not the frames.
#[derive(Debug)]
pub struct Synth {
    profile: Profile,
    conversations: Vec<Conversation>,
    slots: std::vec::IntoIter<Slot>,
    assembler: Assembler,
}

impl Synth {
    /// Plans the capture that `profile` and `seed` mean. The same two give the same frames on every machine.
    ///
    /// # Errors
    /// What of the profile cannot be met.
    pub fn new(profile: Profile, seed: u64) -> Result<Synth, Error> {
        let key = random::Key::new(seed);
        let plan = plan::plan(&profile, key)?;
        let assembler = Assembler::new(key, profile.hosts);
        Ok(Synth { profile, conversations: plan.conversations, slots: plan.slots.into_iter(), assembler })
    }

    /// What was asked for, and is met.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Only the frames that carry at least `least` bytes of TCP or UDP payload, all others left out: handshakes, closes,
    /// acknowledgements and ARP. What is left of a connection is in sequence, because those carry nothing. (For who writes
    /// something at the end of each payload.)
    pub fn only_with_payload(self, least: usize) -> Synth {
        let Synth { profile, conversations, slots, assembler } = self;
        let carries = |slot: &Slot| {
            let conversation = conversations.get(slot.source as usize);
            conversation.is_some_and(|conversation| frame::payload_length(conversation, slot) >= least)
        };
        let slots: Vec<Slot> = slots.filter(carries).collect();
        Synth { profile, conversations, slots: slots.into_iter(), assembler }
    }

    /// What is still to come.
    pub fn amount(&self) -> Amount {
        let slots = self.slots.as_slice();
        let mut flows = vec![[false; 2]; self.conversations.len()];
        for slot in slots {
            if let Some(ways) = flows.get_mut(slot.source as usize) {
                ways[usize::from(slot.back)] = true;
            }
        }
        Amount {
            frames: slots.len() as u64,
            bytes: slots.iter().map(|slot| u64::from(slot.length)).sum(),
            flows: flows.iter().flatten().filter(|seen| **seen).count() as u64,
        }
    }

    /// The next frame: nanoseconds since the first one, and its bytes, which are lent until the next call.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its items")]
    pub fn next(&mut self) -> Option<(u64, &[u8])> {
        let slot = self.slots.next()?;
        let conversations = self.conversations.len();
        let bytes = match self.conversations.get_mut(slot.source as usize) {
            Some(conversation) => self.assembler.of_conversation(conversation, &slot),
            None => self.assembler.arp(slot.source as usize - conversations, &slot),
        };
        Some((slot.time, bytes))
    }
}
