//! Queueing disciplines and what they dropped: the numbers of `tc -s qdisc show`.

use port::qdisc::rise;
use std::collections::BTreeMap;

pub use port::qdisc::{Discipline as Queue, dropped as read};

/// What each has dropped, modulo 2^32.
pub type Queues = BTreeMap<Queue, u32>;

/// Those that dropped anything since. Of one that was made anew meanwhile, all that it counts is since then.
pub fn since(now: &Queues, earlier: &Queues) -> Vec<(Queue, u64)> {
    let risen = |(queue, dropped): (&Queue, &u32)| {
        let earlier = earlier.get(queue).copied().unwrap_or(0);
        let dropped = rise(*dropped, earlier).unwrap_or(*dropped);
        (dropped > 0).then(|| (queue.clone(), u64::from(dropped)))
    };
    now.iter().filter_map(risen).collect()
}
