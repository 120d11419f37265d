//! Memory that exporters may make a collector keep: templates, domains, sets that wait.

/// Exporters that a room is shared by, at most; each has a part of its own.
pub const MOST_EXPORTERS: usize = 16_384;
/// No exporter takes more than one part in so many of what is shared.
const MOST_OF_ONE: usize = 4;

/// Memory that sessions may still take, in bytes, together: for templates, domains, and sets that wait. Who receives from anybody
/// cannot keep all that anybody sends.
///
/// Half of it is shared, as it comes; of the other half each of [`MOST_EXPORTERS`] has its part, whatever the others take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of what is shared, what is left.
    left: usize,
    /// What is shared.
    shared: usize,
    /// What each exporter may take beside it.
    each: usize,
}

impl Room {
    /// So many bytes.
    pub fn of(bytes: usize) -> Room {
        let shared = bytes - bytes / 2;
        Room { left: shared, shared, each: bytes / 2 / MOST_EXPORTERS }
    }

    /// There is none.
    pub(super) fn none() -> Room {
        Room { left: 0, shared: 0, each: 0 }
    }

    /// Of what is shared, less than an eighth is left.
    pub fn is_short(&self) -> bool {
        self.left < self.shared / 8
    }

    /// What an exporter that has taken so many bytes has of what is shared.
    fn of_shared(&self, taken: usize) -> usize {
        taken.saturating_sub(self.each)
    }

    pub(super) fn give_back(&mut self, taken: usize) {
        self.left = (self.left + self.of_shared(taken)).min(self.shared);
    }
}

/// A room that is lent to an exporter, and what it has taken of it.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) room: Room,
    pub(super) taken: usize,
}

impl Lent {
    pub(super) fn none() -> Lent {
        Lent { room: Room::none(), taken: 0 }
    }

    /// False: there is no room for so many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let Some(taken) = self.taken.checked_add(bytes) else { return false };
        let (before, after) = (self.room.of_shared(self.taken), self.room.of_shared(taken));
        if after > self.room.shared / MOST_OF_ONE {
            return false;
        }
        let left = self.room.left.checked_sub(after - before);
        self.room.left = left.unwrap_or(self.room.left);
        if left.is_some() {
            self.taken = taken;
        }
        left.is_some()
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        let taken = self.taken.saturating_sub(bytes);
        let (before, after) = (self.room.of_shared(self.taken), self.room.of_shared(taken));
        self.room.left = (self.room.left + (before - after)).min(self.room.shared);
        self.taken = taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_exporter_takes_a_part_and_none_takes_what_is_anothers_own() {
        let mut room = Room::of(2 * 100 * MOST_EXPORTERS);
        let (each, shared) = (100, 100 * MOST_EXPORTERS);
        let mut greedy: Vec<Lent> = (0..5).map(|_| Lent::none()).collect();
        for lent in &mut greedy {
            lent.room = room;
            while lent.take(50) {}
            room = std::mem::replace(&mut lent.room, Room::none());
        }
        let most = shared / MOST_OF_ONE + each;
        assert!(greedy.iter().all(|lent| lent.taken <= most), "{greedy:?}");
        assert!(greedy[..4].iter().all(|lent| lent.taken > most - 50), "{greedy:?}");
        assert!(room.is_short() && greedy[4].taken <= each + 200, "{greedy:?}");
        // What is its own, one that comes later has.
        let mut late = Lent { room, taken: 0 };
        assert!(late.take(60) && late.take(40) && !late.take(250), "{late:?}");
        late.give_back(100);
        room = late.room;
        for lent in greedy {
            room.give_back(lent.taken);
        }
        assert_eq!(room, Room::of(2 * 100 * MOST_EXPORTERS));
    }
}
