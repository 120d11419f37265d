//! Sets of records whose template has not come yet: they wait for it, within bounds and not for ever.

use super::{Head, NEVER};
use std::collections::BTreeMap;

/// Bytes of sets of an exporter that wait, with what keeping them costs.
pub(super) const MOST_WAITING: usize = 256 << 10;
/// A set waits for so long: templates are sent again each ten minutes by most exporters that send them again.
const WAITS_S: u32 = 600;

/// A set that waits.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// The message that it came in.
    pub(super) message: u32,
    /// That message had come already.
    pub(super) twice: bool,
    since_s: u32,
}

impl Set {
    /// What one takes, about, that holds nothing: vectors grow by doubling, and what is allocated has a head.
    pub(super) const LEAST: usize = 2 * size_of::<Set>() + 128;

    /// What it takes: an empty one is a set as well.
    pub(super) fn bytes(body: usize) -> usize {
        Set::LEAST + body
    }
}

/// Of a message, what waits.
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    sets: u32,
    /// Some of it is lost: all of it will never be counted.
    spoiled: bool,
}

/// Sets of a domain that wait, by their templates.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    sets: BTreeMap<u16, Vec<Set>>,
    messages: BTreeMap<u32, Pending>,
}

impl Waiting {
    pub(super) fn push(&mut self, template: u16, head: Head, body: &[u8], message: u32, now_s: u32) {
        let set = Set { head, body: body.to_vec(), message, twice: false, since_s: now_s };
        self.sets.entry(template).or_default().push(set);
        self.messages.entry(message).or_default().sets += 1;
    }

    /// What waits for a template.
    pub(super) fn take(&mut self, template: u16) -> Vec<Set> {
        self.sets.remove(&template).unwrap_or_default()
    }

    /// A set of a message waits no more. True: it was the last one, and all of them were read.
    pub(super) fn is_last(&mut self, message: u32, was_read: bool) -> bool {
        let Some(pending) = self.messages.get_mut(&message) else { return false };
        pending.spoiled |= !was_read;
        pending.sets = pending.sets.saturating_sub(1);
        let (over, whole) = (pending.sets == 0, !pending.spoiled);
        if over {
            self.messages.remove(&message);
        }
        over && whole
    }

    /// What tells the rest of a message that was read: its own number if it waits, [`NEVER`] if it cannot be read any more, 0 if
    /// there is none. `spoiled`: some of it is lost already.
    pub(super) fn rest_of(&mut self, message: u32, spoiled: bool) -> u32 {
        match self.messages.get_mut(&message) {
            Some(pending) => {
                pending.spoiled |= spoiled;
                message
            }
            None if spoiled => NEVER,
            None => 0,
        }
    }

    /// A message had come already: so had its sets.
    pub(super) fn twice(&mut self, message: u32) {
        if self.messages.contains_key(&message) {
            self.sets
                .values_mut()
                .flatten()
                .filter(|set| set.message == message)
                .for_each(|set| set.twice = true);
        }
    }

    /// Gives up what has waited too long. What these take.
    pub(super) fn age(&mut self, now_s: u32) -> Vec<usize> {
        let mut given_up = Vec::new();
        let mut spoiled = Vec::new();
        self.sets.retain(|_, sets| {
            sets.retain(|set| {
                let stays = now_s.saturating_sub(set.since_s) < WAITS_S;
                if !stays {
                    given_up.push(Set::bytes(set.body.len()));
                    spoiled.push(set.message);
                }
                stays
            });
            !sets.is_empty()
        });
        for message in spoiled {
            self.is_last(message, false);
        }
        given_up
    }

    /// What all of them take, and how many there are.
    pub(super) fn all(&self) -> (usize, u64) {
        let all = || self.sets.values().flatten();
        (all().map(|set| Set::bytes(set.body.len())).sum(), all().count() as u64)
    }
}
