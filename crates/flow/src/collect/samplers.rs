//! What exporters say of sampling: by options for a sampler, an interface, a template or all of a domain (RFC 3954, 8; RFC 5477),
//! or in records themselves. What nobody says is not known; it is not "each packet".

use super::{Cursor, Head, Lent, Template, Uptime};
use crate::element::Number;
use crate::record::{Format, unsigned};

/// Samplers, interfaces and templates of a domain whose sampling is kept.
const MOST: usize = 256;
/// What each takes.
const ENTRY: usize = 2 * size_of::<(Whose, u32)>();

/// Elements that say which packets are looked at.
pub(super) fn is_rate(id: u16) -> bool {
    matches!(id, 34 | 50 | 305 | 306 | 309 | 310 | 311)
}

/// Elements that name a sampler.
pub(super) fn is_selector(id: u16) -> bool {
    matches!(id, 48 | 302)
}

/// `systemInitTimeMilliseconds`.
pub(super) const INIT: u16 = 160;

/// How many packets are passed over for each that is looked at, as one record says it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rate {
    /// One in so many (`samplingInterval`, `samplerRandomInterval`).
    interval: u64,
    /// So many in a row, then so many not (`samplingPacketInterval`, `samplingPacketSpace`).
    row: u64,
    space: Option<u64>,
    /// So many of so many (`samplingSize`, `samplingPopulation`).
    size: u64,
    population: u64,
    /// Each with this chance (`samplingProbability`).
    probability: f64,
}

impl Rate {
    pub(super) fn hear(&mut self, id: u16, bytes: &[u8]) {
        let value = unsigned(bytes);
        match id {
            34 | 50 if value > 0 => self.interval = value,
            305 => self.row = value,
            306 => self.space = Some(value),
            309 => self.size = value,
            310 => self.population = value,
            311 => self.probability = float(bytes).unwrap_or(0.0),
            _ => {}
        }
    }

    /// One packet in so many, to the nearest whole number; zero: it is not said.
    pub(super) fn one_in(&self) -> u32 {
        let of = |all: u128, taken: u64| match (all + u128::from(taken / 2)).checked_div(taken.into()) {
            Some(one_in) if all >= taken.into() => u64::try_from(one_in).unwrap_or(u64::MAX),
            _ => 0,
        };
        let by_row = self.space.map_or(0, |space| of(u128::from(self.row) + u128::from(space), self.row));
        let by_chance = match self.probability {
            chance if chance > 0.0 && chance <= 1.0 => (1.0 / chance).round() as u64,
            _ => 0,
        };
        let ways = [self.interval, by_row, of(self.population.into(), self.size), by_chance];
        let said = ways.into_iter().find(|way| *way > 0).unwrap_or(0);
        u32::try_from(said).unwrap_or(u32::MAX)
    }
}

fn float(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        4 => bytes.first_chunk().map(|four| f32::from_be_bytes(*four).into()),
        8 => bytes.first_chunk().map(|eight| f64::from_be_bytes(*eight)),
        _ => None,
    }
}

/// Which records a statement is about; what is `None` is all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Whose {
    selector: Option<u64>,
    interface: Option<u32>,
    template: Option<u16>,
}

/// What one record of options says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Note {
    whose: Whose,
    /// Where it says it.
    rate: Option<Rate>,
    began_ms: Option<u64>,
}

impl Note {
    fn hear(&mut self, number: Number, bytes: &[u8], is_scope: bool, format: Format) {
        if number.enterprise != 0 {
            return;
        }
        let value = unsigned(bytes);
        match number.id {
            // Scopes of v9 have numbers of their own (RFC 3954, 6.1).
            2 if is_scope && format == Format::V9 => self.whose.interface = u32::try_from(value).ok(),
            5 if is_scope && format == Format::V9 => self.whose.template = u16::try_from(value).ok(),
            _ if is_scope && format == Format::V9 => {}
            10 | 14 if is_scope => self.whose.interface = u32::try_from(value).ok(),
            145 if is_scope => self.whose.template = u16::try_from(value).ok(),
            id if is_selector(id) => self.whose.selector = Some(value),
            id if is_rate(id) => self.rate.get_or_insert_default().hear(id, bytes),
            INIT => self.began_ms = Some(value).filter(|ms| *ms > 0),
            _ => {}
        }
    }
}

impl Template {
    /// What is said by the record of options that `cursor` stands at, if it is of these matters.
    pub(super) fn note(&self, mut cursor: Cursor<'_>, format: Format) -> Option<Note> {
        if !self.is_heeded {
            return None;
        }
        let mut note = Note::default();
        for (at, field) in self.fields.iter().enumerate() {
            let bytes = self.field(&mut cursor, field).ok()?;
            note.hear(field.number, bytes, at < self.scopes, format);
        }
        Some(note)
    }
}

/// What a domain's options said last.
#[derive(Debug, Default)]
pub(super) struct Known {
    rates: Vec<(Whose, u32)>,
    began_ms: Option<u64>,
}

impl Known {
    /// What it has taken of the room.
    pub(super) fn bytes(&self) -> usize {
        self.rates.len() * ENTRY
    }

    /// Keeps what was said. False: there was no room for some of it.
    pub(super) fn learn(&mut self, notes: &[Note], room: &mut Lent) -> bool {
        let mut all = true;
        for note in notes {
            self.began_ms = note.began_ms.or(self.began_ms);
            let Some(rate) = note.rate else { continue };
            let one_in = rate.one_in();
            let full = self.rates.len() >= MOST;
            match self.rates.iter_mut().find(|(whose, _)| *whose == note.whose) {
                Some((_, said)) => *said = one_in,
                None if full || !room.take(ENTRY) => all = false,
                None => self.rates.push((note.whose, one_in)),
            }
        }
        all
    }

    /// The same message with what is known of when its exporter began.
    pub(super) fn head(&self, head: Head) -> Head {
        let uptime = match (head.format, self.began_ms) {
            (Format::Ipfix, Some(began_ms)) => {
                Uptime::Since { began_ms, exported_ms: head.exported_ns / 1_000_000 }
            }
            _ => head.uptime,
        };
        Head { uptime, ..head }
    }

    /// Is some of it said of single interfaces, so that each record may have another?
    pub(super) fn by_interface(&self) -> bool {
        self.rates.iter().any(|(whose, _)| whose.interface.is_some())
    }

    /// What was said for records of a template that name this sampler and these interfaces. Zero: nothing, or not what for these.
    pub(super) fn one_in(&self, template: u16, selector: Option<u64>, interfaces: [u32; 2]) -> u32 {
        // Exporters that name no sampler in options mean all of them.
        let selector = selector.filter(|_| self.rates.iter().any(|(whose, _)| whose.selector.is_some()));
        let mut found: Option<(u8, u32)> = None;
        for (whose, one_in) in &self.rates {
            let template = match whose.template {
                None => 0,
                Some(of) if of == template => 1,
                Some(_) => continue,
            };
            let interface = match whose.interface {
                None => 0,
                Some(of) if of == interfaces[0] => 4,
                Some(of) if of == interfaces[1] => 2,
                Some(_) => continue,
            };
            match selector {
                Some(_) if whose.selector != selector => continue,
                // Of several samplers one that looks at nothing is none.
                None if *one_in == 0 => continue,
                _ => {}
            }
            let near = template + interface;
            found = match found {
                Some((nearest, _)) if nearest > near => found,
                // Two that could be meant, and differ.
                Some((nearest, other)) if nearest == near && other != *one_in => Some((near, 0)),
                _ => Some((near, *one_in)),
            };
        }
        found.map_or(0, |(_, one_in)| one_in)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Room;
    use super::*;

    fn rate(fields: &[(u16, &[u8])]) -> u32 {
        let mut rate = Rate::default();
        fields.iter().for_each(|(id, bytes)| rate.hear(*id, bytes));
        rate.one_in()
    }

    #[test]
    fn rates_are_read_from_each_of_the_elements_that_say_them() {
        let word = |value: u32| value.to_be_bytes();
        assert_eq!(rate(&[(34, &word(100))]), 100);
        assert_eq!(rate(&[(50, &word(2000))]), 2000);
        assert_eq!(rate(&[(34, &word(0))]), 0);
        assert_eq!(rate(&[(305, &word(1)), (306, &word(499))]), 500);
        assert_eq!(rate(&[(305, &word(3)), (306, &word(7))]), 3);
        // How many in a row, and not how many are passed over.
        assert_eq!(rate(&[(305, &word(100))]), 0);
        assert_eq!(rate(&[(306, &word(0)), (305, &word(5))]), 1);
        assert_eq!(rate(&[(309, &word(10)), (310, &word(1000))]), 100);
        assert_eq!(rate(&[(309, &word(10)), (310, &word(5))]), 0);
        assert_eq!(rate(&[(309, &word(0)), (310, &word(5))]), 0);
        assert_eq!(rate(&[(311, &0.01f64.to_be_bytes())]), 100);
        assert_eq!(rate(&[(311, &0.25f32.to_be_bytes())]), 4);
        for odd in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(rate(&[(311, &odd.to_be_bytes())]), 0, "{odd}");
        }
        assert_eq!(rate(&[(311, &f64::MIN_POSITIVE.to_be_bytes())]), u32::MAX);
        assert_eq!(rate(&[(305, &[0xff; 8]), (306, &[0xff; 8])]), 2);
        assert_eq!(rate(&[]), 0);
    }

    fn known(said: &[(Whose, u32)]) -> Known {
        Known { rates: said.to_vec(), began_ms: None }
    }

    fn of(selector: u64) -> Whose {
        Whose { selector: Some(selector), ..Whose::default() }
    }

    #[test]
    fn a_record_has_the_rate_of_the_sampler_that_it_names() {
        let two = known(&[(of(1), 2000), (of(2), 4000)]);
        let rates = [Some(1), Some(2), Some(3), None].map(|selector| two.one_in(256, selector, [0; 2]));
        assert_eq!(rates, [2000, 4000, 0, 0]);
        // One that looks at nothing is not meant by who names none, but by who names it.
        let one = known(&[(of(0), 0), (of(1), 10_922)]);
        assert_eq!(
            [None, Some(0), Some(1)].map(|selector| one.one_in(256, selector, [0; 2])),
            [10_922, 0, 10_922]
        );
        // Said of all: of samplers, too, if none is named in options.
        let all = known(&[(Whose::default(), 100)]);
        assert_eq!([None, Some(7)].map(|selector| all.one_in(256, selector, [0; 2])), [100, 100]);
        assert_eq!(known(&[]).one_in(256, Some(1), [0; 2]), 0);
    }

    #[test]
    fn what_is_said_of_an_interface_or_a_template_goes_before_what_is_said_of_all() {
        let interface = |number, one_in| (Whose { interface: Some(number), ..Whose::default() }, one_in);
        let template = (Whose { template: Some(300), ..Whose::default() }, 7);
        let known = known(&[(Whose::default(), 100), interface(3, 10), interface(4, 20), template]);
        assert!(known.by_interface());
        let rates = [[3, 4], [4, 3], [5, 4], [5, 6]].map(|interfaces| known.one_in(256, None, interfaces));
        assert_eq!(rates, [10, 20, 20, 100]);
        assert_eq!(known.one_in(300, None, [5, 6]), 7);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut known = Known::default();
        let note = |selector| {
            let mut note = Note { whose: of(selector), ..Note::default() };
            note.rate.get_or_insert_default().interval = selector + 1;
            note
        };
        let mut room = Lent { room: Room::of(1 << 20), taken: 0 };
        let notes: Vec<Note> = (0..1000).map(note).collect();
        assert!(!known.learn(&notes, &mut room));
        assert_eq!(known.rates.len(), MOST);
        assert_eq!(known.bytes(), room.taken, "what is given back when the domain is forgotten");
        assert!(known.learn(&notes[..MOST], &mut room), "what is there has room");
        // One exporter takes a quarter of what is shared, which is half.
        let mut full = Lent { room: Room::of(8 * ENTRY), taken: 0 };
        assert!(!Known::default().learn(&notes[..2], &mut full));
        assert_eq!(full.taken, ENTRY);
    }
}
