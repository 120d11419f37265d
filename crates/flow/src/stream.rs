//! IPFIX as it goes over a connection (TCP; RFC 7011, 10.4): templates once, ahead of all, and messages one behind the other, with
//! nothing between them.

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
    /// A message that has the templates and no record.
    templates: Vec<u8>,
    /// The exporter's number of the connection's first message.
    first: Option<u32>,
}

impl Stream {
    /// With what [`templates`](crate::export::templates) gave.
    pub fn new(templates: Vec<u8>) -> Stream {
        Stream { templates, first: None }
    }

    /// A connection begins: the message that goes first.
    pub fn begin(&mut self, now_ns: u64) -> Vec<u8> {
        self.first = None;
        let mut message = self.templates.clone();
        put(&mut message, 4, (now_ns / 1_000_000_000) as u32);
        put(&mut message, 8, 0);
        message
    }

    /// Adds a message to what goes over the connection. Templates in it are left out: they went ahead.
    pub fn add(&mut self, message: &[u8], out: &mut Vec<u8>) {
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
        let number = word(head, 8);
        let first = *self.first.get_or_insert(number);
        let length = (out.len() - at) as u16;
        if let Some(message) = out.get_mut(at..) {
            put(message, 8, number.wrapping_sub(first));
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

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
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
    use crate::export::{Exporter, LONGEST, Settings, Status, templates};
    use crate::key::{Key, Parts};
    use crate::sampling::Flows;
    use crate::table::{Ended, Flow, Over};
    use crate::template::{Context, USUAL, Version};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    const NOW: u64 = 1_700_000_000_000_000_000;

    fn settings() -> Settings {
        Settings {
            version: Version::Ipfix,
            template: USUAL.to_owned(),
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

    /// The messages of so many flows, and of what the probe says of itself.
    fn messages(flows: u32) -> Vec<Vec<u8>> {
        let mut exporter = Exporter::new(settings()).expect("the usual template");
        let mut all = Vec::new();
        let mut keep = |message: crate::export::Message<'_>| all.push(message.bytes.to_vec());
        for number in 0..flows {
            let addresses = [Ipv4Addr::from_bits(number).into(), Ipv4Addr::LOCALHOST.into()];
            let parts = Parts { addresses, ports: [1, 2], protocol: 17, tos: 0, vlan: None };
            let flow = Flow {
                key: Key::new(parts).expect("one version"),
                packets: 1,
                octets: 100,
                times_ns: [NOW; 2],
                tcp_flags: 0,
                ttl: [64; 2],
                lengths: [100; 2],
                macs: [[0; 6]; 2],
                mpls: [0; 3],
                egress: false,
            };
            exporter.add(&Over { flow, why: Ended::Idle, back: None, signs: None }, NOW, &mut keep);
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
        let mut stream = Stream::new(templates(settings()).expect("the usual template"));
        for connection in [&all[..], &all[7..]] {
            let mut bytes = stream.begin(NOW);
            connection.iter().for_each(|message| stream.add(message, &mut bytes));
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
    fn what_is_left_out_of_a_connection_is_missing_in_its_numbers() {
        let all = messages(500);
        let mut stream = Stream::new(templates(settings()).expect("the usual template"));
        let mut bytes = stream.begin(NOW);
        let left_out = |number: usize| (5..8).contains(&number);
        let kept = all.iter().enumerate().filter(|(number, _)| !left_out(*number));
        kept.for_each(|(_, message)| stream.add(message, &mut bytes));
        let (_, counters) = read(&bytes);
        assert_eq!(counters.records + counters.missing_records, 500);
        assert!(counters.missing_records > 0);
    }

    #[test]
    fn a_message_of_templates_alone_is_left_out() {
        let only = templates(settings()).expect("the usual template");
        let mut out = vec![1];
        Stream::new(only.clone()).add(&only, &mut out);
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
            Stream::new(message.clone()).add(&message, &mut out);
            prop_assert!(out.len() <= message.len());
            Stream::new(message.clone()).begin(NOW);
            if let Front::Message(length) = front(&message) {
                prop_assert!((HEAD..=message.len()).contains(&length));
            }
        }
    }
}
