//! Totals that exporters tell of themselves in options (RFC 7011, 4.2 and 4.3): what they did not meter, and what they did not send.
//!
//! A total counts since its process began, which may be long before this run, and an exporter may have several processes. So only
//! differences count, each of one process. All of a total counts where that process is seen to have begun within the run: its domain's
//! messages were numbered from zero on, the total went back, or the first thing that was lost was lost since the run began.

use super::{Counters, Cursor, Template};
use crate::element::{Kind, Number};
use crate::record::{time_ns, unsigned};

/// `ignoredPacketTotalCount`, then `notSentFlowTotalCount`, `notSentPacketTotalCount` and `notSentOctetTotalCount`.
const TOLD: [u16; 4] = [164, 166, 167, 168];
/// What says whose a total is, even where it is not its scope: line card, port, metering process, exporting process, domain.
const OWNERS: [u16; 5] = [141, 142, 143, 144, 149];
/// `observationTimeSeconds`, `...Milliseconds`, `...Microseconds`, `...Nanoseconds`: the first one is that of the first loss.
const TIMES: [(u16, Kind); 4] =
    [(322, Kind::Seconds), (323, Kind::Milliseconds), (324, Kind::Microseconds), (325, Kind::Nanoseconds)];
/// Processes of a domain.
const MOST: usize = 32;
const SECOND: u64 = 1_000_000_000;

/// A process's totals, as it reported them last.
#[derive(Debug, Clone, Copy)]
struct Process {
    whose: u64,
    exported_ns: u64,
    told: [Option<u64>; 4],
}

/// Those of a domain.
#[derive(Debug, Default)]
pub(super) struct Totals(Vec<Process>);

/// When a record of totals was exported, and since when we listen.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    pub(super) exported_ns: u64,
    /// Its domain was seen to begin.
    pub(super) is_new: bool,
    /// Now, and the beginning of the session, in nanoseconds by one clock; 0 where nobody says it.
    pub(super) now_ns: u64,
    pub(super) began_ns: u64,
}

impl When {
    /// What happened at this time by the exporter's clock happened since we listen. Its messages say how its clock differs from ours.
    fn is_within(&self, at_ns: u64) -> bool {
        self.began_ns > 0
            && at_ns.saturating_add(self.now_ns)
                > self.exported_ns.saturating_add(self.began_ns).saturating_add(SECOND)
    }
}

/// What a process takes.
pub(super) const BYTES: usize = 2 * size_of::<Process>();

impl Totals {
    /// Does a template tell totals?
    pub(super) fn are_in(template: &Template) -> bool {
        let options = template.fields.iter().skip(template.scopes);
        template.scopes > 0
            && options.into_iter().any(|field| TOLD.iter().any(|id| field.number == Number::iana(*id)))
    }

    /// Reads a record of options that has some. `room` is asked for the memory of a process that is not known yet; true: there was
    /// none.
    pub(super) fn read(
        &mut self,
        template: &Template,
        record: &[u8],
        when: When,
        counters: &mut Counters,
        room: impl FnOnce(usize) -> bool,
    ) -> bool {
        let (mut whose, mut said, mut first_ns) = (0xcbf2_9ce4_8422_2325_u64, [None; 4], None);
        let mut cursor = Cursor(record);
        for (at, field) in template.fields.iter().enumerate() {
            let Ok(bytes) = template.field(&mut cursor, field) else { return false };
            let iana = field.number.enterprise == 0;
            if at < template.scopes || iana && OWNERS.contains(&field.number.id) {
                let id = field.number.id.to_be_bytes();
                // FNV-1a.
                whose = id
                    .iter()
                    .chain(bytes)
                    .fold(whose, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
                continue;
            }
            if !iana {
                continue;
            }
            if let Some(which) = TOLD.iter().position(|id| *id == field.number.id) {
                said[which & 3] = Some(unsigned(bytes));
            } else if let Some((_, kind)) = TIMES.iter().find(|(id, _)| *id == field.number.id) {
                first_ns = first_ns.or_else(|| time_ns(*kind, bytes).filter(|ns| *ns > 0));
            }
        }
        let is_new = when.is_new || first_ns.is_some_and(|at| when.is_within(at));
        let known = self.0.iter_mut().find(|process| process.whose == whose);
        let Some(process) = known else {
            if self.0.len() >= MOST || !room(BYTES) {
                return true;
            }
            self.0.push(Process { whose, exported_ns: when.exported_ns, told: said });
            if is_new {
                said.iter().enumerate().for_each(|(which, told)| add(counters, which, told.unwrap_or(0)));
            }
            return false;
        };
        // One that was overtaken says what was.
        let is_late = when.exported_ns < process.exported_ns;
        let is_later = when.exported_ns > process.exported_ns;
        for (which, (now, told)) in said.into_iter().zip(&mut process.told).enumerate() {
            let Some(now) = now.filter(|_| !is_late) else { continue };
            match *told {
                Some(before) if now >= before => add(counters, which, now - before),
                // It began anew since.
                Some(_) if is_later => add(counters, which, now),
                Some(_) => continue,
                None if is_new => add(counters, which, now),
                None => {}
            }
            *told = Some(now);
        }
        process.exported_ns = process.exported_ns.max(when.exported_ns);
        false
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len() * BYTES
    }
}

fn add(counters: &mut Counters, which: usize, count: u64) {
    let sum = match which {
        0 => Some(&mut counters.ignored_packets),
        which => counters.unsent.get_mut(which - 1),
    };
    if let Some(sum) = sum {
        *sum = sum.saturating_add(count);
    }
}
