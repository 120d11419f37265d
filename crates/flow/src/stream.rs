//! IPFIX as it goes over a connection (TCP; RFC 7011, 10.4): templates once, ahead of all, and messages one behind the other, with
//! nothing between them.

use crate::export::Opening;

/// Bytes of a message's head.
const HEAD: usize = 16;
/// Sets of templates and of templates of options (RFC 7011, 3.3.2).
const TEMPLATES: [u16; 2] = [2, 3];

/// Makes of the messages of an [`Exporter`](crate::export::Exporter) those of a connection.
///
/// A connection's records are numbered from zero on (RFC 7011, 3.1). What is left out meanwhile leaves a gap in these numbers,
/// as a message does that UDP loses.
#[derive(Debug)]
pub struct Stream {
    /// What each connection begins with.
    opening: Opening,
    /// The number of the connection's first message behind it, among all that go to its collector.
    first: Option<u32>,
}

impl Stream {
    /// With what [`opening`](crate::export::opening) gave.
    pub fn new(opening: Opening) -> Stream {
        Stream { opening, first: None }
    }

    /// A connection begins: the message that goes first.
    pub fn begin(&mut self, now_ns: u64) -> Vec<u8> {
        self.first = None;
        let mut message = self.opening.bytes.clone();
        put(&mut message, 4, (now_ns / 1_000_000_000) as u32);
        put(&mut message, 8, 0);
        message
    }

    /// Adds a message to what goes over the connection; `number`: its sequence number among all that go to this collector. Templates
    /// in it are left out: they went ahead.
    pub fn add(&mut self, message: &[u8], number: u32, out: &mut Vec<u8>) {
        let Some((head, mut rest)) = message.split_at_checked(HEAD) else { return };
        let at = out.len();
        out.extend(head);
        while let Some(set) = set(rest) {
            let (this, behind) = rest.split_at(set.length);
            if !TEMPLATES.contains(&set.number) {
                out.extend(this);
            }
            rest = behind;
        }
        if out.len() == at + HEAD {
            out.truncate(at);
            return;
        }
        let first = *self.first.get_or_insert(number);
        let behind = number.wrapping_sub(first).wrapping_add(self.opening.numbers);
        let length = (out.len() - at) as u16;
        if let Some(message) = out.get_mut(at..) {
            put(message, 8, behind);
            if let Some(place) = message.get_mut(2..4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
    }
}

struct Set {
    number: u16,
    length: usize,
}

/// The set that bytes begin with, if it is whole.
fn set(bytes: &[u8]) -> Option<Set> {
    let [a, b, c, d] = *bytes.first_chunk::<4>()?;
    let length = usize::from(u16::from_be_bytes([c, d]));
    (4..=bytes.len()).contains(&length).then(|| Set { number: u16::from_be_bytes([a, b]), length })
}

fn put(bytes: &mut [u8], at: usize, word: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

/// What bytes that came over a connection begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// A message of so many bytes.
    Message(usize),
    /// The beginning of one: the rest is to come.
    Part,
    /// No message of IPFIX: where the next one begins is not known either.
    Nonsense,
}

/// Finds the first message.
pub fn front(bytes: &[u8]) -> Front {
    // Each byte is judged as soon as it is there, so that nobody is waited for who speaks otherwise.
    let version = [0, 10];
    if bytes.iter().zip(version).any(|(byte, wanted)| *byte != wanted) {
        return Front::Nonsense;
    }
    let Some([_, _, a, b]) = bytes.first_chunk::<4>() else { return Front::Part };
    match usize::from(u16::from_be_bytes([*a, *b])) {
        length if length < HEAD => Front::Nonsense,
        length if length <= bytes.len() => Front::Message(length),
        _ => Front::Part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Room, Session};
    use crate::export::tests::{NOW, flow};
    use crate::export::{Exporter, LONGEST, Settings, Status, opening};
    use crate::sampling::Flows;
    use crate::template::{Context, Version, usual};
    use proptest::prelude::*;

    fn settings() -> Settings {
        Settings {
            version: Version::Ipfix,
            template: usual(Version::Ipfix),
            first_template: 300,
            both_ways: false,
            signed: false,
            domain: 9,
            longest: LONGEST,
            // In every other message there are templates.
            refresh_messages: 2,
            refresh_ns: u64::MAX,
            context: Context {
                began_ns: NOW,
                interfaces: [[1, 0], [0, 1]],
                sampling: 1,
                random: false,
                flows: Flows::all(),
            },
        }
    }

    fn word(bytes: &[u8], at: usize) -> u32 {
        bytes[at..].first_chunk().map(|word| u32::from_be_bytes(*word)).expect("four bytes")
    }

    /// The messages of so many flows, and of what the probe says of itself.
    fn messages(flows: u32) -> Vec<Vec<u8>> {
        let mut exporter = Exporter::new(settings()).expect("the usual template");
        let mut all = Vec::new();
        let mut keep = |message: crate::export::Message<'_>| all.push(message.bytes.to_vec());
        for number in 0..flows {
            exporter.add(&flow(number), NOW, &mut keep);
        }
        exporter.status(&Status::default(), NOW, &mut keep);
        exporter.flush(NOW, &mut keep);
        all
    }

    /// Reads a connection's bytes: records, and what was counted.
    fn read(bytes: &[u8]) -> (u64, crate::collect::Counters) {
        let (mut session, mut room) = (Session::connection(false), Room::of(1 << 20));
        let (mut rest, mut octets) = (bytes, 0);
        loop {
            match front(rest) {
                Front::Message(length) => {
                    let (message, behind) = rest.split_at(length);
                    session.message(message, &mut room, &mut |record, _| octets += record.octets);
                    rest = behind;
                }
                Front::Part if rest.is_empty() => break,
                other => panic!("{other:?} of {rest:?}"),
            }
        }
        let counters = *session.counters();
        session.end(&mut room);
        assert_eq!(room, Room::of(1 << 20));
        (octets, counters)
    }

    #[test]
    fn templates_go_once_in_each_connection_and_numbers_begin_anew() {
        let all = messages(500);
        let mut stream = Stream::new(opening(settings()).expect("the usual template"));
        for connection in [&all[..], &all[7..]] {
            let mut bytes = stream.begin(NOW);
            connection.iter().for_each(|message| stream.add(message, word(message, 8), &mut bytes));
            let (octets, counters) = read(&bytes);
            assert_eq!(counters.templates, 5, "{counters:?}");
            assert_eq!((octets, counters.missing_records), (counters.records * 100, 0));
            assert_eq!((counters.malformed, counters.waiting_sets, counters.restarts), (0, 0, 0));
            assert_eq!(counters.records == 500, connection.len() == all.len());
            // The first record's number is zero.
            let first = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
            assert_eq!((word(&bytes, 8), word(&bytes[first..], 8)), (0, 0));
        }
    }

    #[test]
    fn a_connection_begins_with_how_packets_were_selected_and_numbers_go_on_behind_it() {
        let context = Context { sampling: 100, ..settings().context };
        let mut stream =
            Stream::new(opening(Settings { context, ..settings() }).expect("the usual template"));
        let mut bytes = stream.begin(NOW);
        messages(500).iter().for_each(|message| stream.add(message, word(message, 8), &mut bytes));
        let (_, counters) = read(&bytes);
        assert_eq!((counters.records, counters.missing_records, counters.restarts), (500, 0, 0));
        // Three of the probe, and two of its sampling.
        assert_eq!((counters.options, counters.templates), (5, 7), "{counters:?}");
    }

    #[test]
    fn what_is_left_out_of_a_connection_is_missing_in_its_numbers() {
        let all = messages(500);
        let mut stream = Stream::new(opening(settings()).expect("the usual template"));
        let mut bytes = stream.begin(NOW);
        let left_out = |number: usize| (5..8).contains(&number);
        let kept = all.iter().enumerate().filter(|(number, _)| !left_out(*number));
        kept.for_each(|(_, message)| stream.add(message, word(message, 8), &mut bytes));
        let (_, counters) = read(&bytes);
        assert_eq!(counters.records + counters.missing_records, 500);
        assert!(counters.missing_records > 0);
    }

    #[test]
    fn a_message_of_templates_alone_is_left_out() {
        let only = opening(settings()).expect("the usual template");
        let mut out = vec![1];
        Stream::new(only.clone()).add(&only.bytes, 0, &mut out);
        assert_eq!(out, [1]);
    }

    #[test]
    fn the_front_of_a_connection_is_told_as_soon_as_it_can_be() {
        for (bytes, wanted) in [
            (&[][..], Front::Part),
            (&[0], Front::Part),
            (&[1], Front::Nonsense),
            (&[0, 9], Front::Nonsense),
            (&[0, 10, 0], Front::Part),
            (&[0, 10, 0, 15], Front::Nonsense),
            (&[0, 10, 0, 16], Front::Part),
            (&[0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7], Front::Message(16)),
        ] {
            assert_eq!(front(bytes), wanted, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_a_message(message in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            let opening = Opening { bytes: message.clone(), numbers: 0 };
            Stream::new(opening.clone()).add(&message, 0, &mut out);
            prop_assert!(out.len() <= message.len());
            Stream::new(opening).begin(NOW);
            if let Front::Message(length) = front(&message) {
                prop_assert!((HEAD..=message.len()).contains(&length));
            }
        }
    }
}
