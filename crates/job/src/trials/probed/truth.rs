//! What is true of the flows that were sent, and what records say of them.

use flow::record::Record;
use report::search::FlowTrial;
use std::net::{IpAddr, Ipv4Addr};
use traffic::Program;

/// Bits of the source address that vary: 10.0.0.0/8.
const ADDRESS_BITS: u32 = 24;
const PER_PORT: usize = 1 << ADDRESS_BITS;
const NETWORK: u8 = 10;
/// Ports that flows with the same addresses differ in.
const FIRST_PORT: u16 = 1024;
const LAST_PORT: u16 = 65_535;
/// Flows of a trial: two bytes of memory each, 2 GiB in all.
const MOST: u64 = 1 << 30;
/// Where flows go to: RFC 863.
const DISCARD: u16 = 9;
const UDP: u8 = 17;
/// The keys of different trials differ in their destination: a record that comes late counts for none.
const TARGETS: [u8; 2] = [198, 19];
/// Who keeps the probe looking while its records are waited for.
pub const SENTINEL: &str = "198.18.0.99";
/// Of who says milliseconds.
const SLACK_NS: u64 = 2_000_000;

/// The flows of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// The trial, from 0.
    pub trial: u32,
    pub packets_per_flow: u32,
    pub random: bool,
}

impl Keys {
    fn target(self) -> Ipv4Addr {
        let [a, b] = TARGETS;
        let [.., c, d] = self.trial.wrapping_add(1).to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    }

    /// The frames, as an expression.
    pub fn expression(self, to: wire::Mac) -> String {
        let law = if self.random { "shuffled" } else { "range" };
        let every = self.packets_per_flow;
        format!(
            "ether(dst={to})/ipv4(src={law}({NETWORK}.0.0.0/8, every={every}), dst={})/udp(sport={FIRST_PORT}..{LAST_PORT} every=src, dport={DISCARD})",
            self.target()
        )
    }

    /// Flows that there can be in a trial.
    pub fn most() -> u64 {
        ((u64::from(LAST_PORT - FIRST_PORT) + 1) << ADDRESS_BITS).min(MOST)
    }
}

/// Where a flow's packets are counted.
fn slot(address: u32, port: u16) -> Option<usize> {
    let pass = port.checked_sub(FIRST_PORT)?;
    (address >> ADDRESS_BITS == u32::from(NETWORK))
        .then_some((usize::from(pass) << ADDRESS_BITS) + (address as usize & (PER_PORT - 1)))
}

/// What records said so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    pub records: u64,
    /// Packets of flows that were sent, each flow's no more than it has.
    pub packets: u64,
    /// Records beyond a flow's first.
    pub split: u64,
    /// Packets beyond those that a flow has.
    pub surplus: u64,
    /// Records of earlier trials.
    pub late: u64,
    /// Records of what is none of these flows.
    pub foreign: u64,
    /// Records whose bytes are not those of their packets, with a wrong type of service, or with times that are not the trial's.
    pub wrong_octets: u64,
    pub wrong_fields: u64,
    pub wrong_times: u64,
}

/// What is counted for one trial.
#[derive(Debug)]
pub struct Truth {
    keys: Keys,
    /// Bytes of IP of a packet.
    octets: u64,
    /// Packets that records have, by [`slot`].
    counted: Vec<u16>,
    said: Said,
    /// When it began, and when it ended if it has.
    began_ns: u64,
    ended_ns: Option<u64>,
}

impl Truth {
    /// Nothing was recorded yet. `flows`: as many as there may be at most; `octets`: of IP, in each packet.
    pub fn new(keys: Keys, octets: u64, flows: u64, began_ns: u64) -> Truth {
        let passes = flows.div_ceil(PER_PORT as u64).max(1) as usize;
        let counted = vec![0; passes * PER_PORT];
        Truth { keys, octets, counted, said: Said::default(), began_ns, ended_ns: None }
    }

    pub fn said(&self) -> &Said {
        &self.said
    }

    /// Nothing more is sent.
    pub fn end(&mut self, at_ns: u64) {
        self.ended_ns = Some(at_ns);
    }

    /// Takes a record. True: it is of this trial.
    pub fn take(&mut self, record: &Record) -> bool {
        let [Some(IpAddr::V4(from)), Some(IpAddr::V4(to))] = record.addresses else {
            self.said.foreign += 1;
            return false;
        };
        if to != self.keys.target() {
            let [a, b, ..] = to.octets();
            let late = [a, b] == TARGETS;
            // That of the sentinel is no flow of anybody.
            let sentinel = from.to_string() == SENTINEL;
            self.said.late += u64::from(late && !sentinel);
            self.said.foreign += u64::from(!late && !sentinel);
            return false;
        }
        let slot = slot(from.to_bits(), record.ports[0]);
        let count = slot.and_then(|slot| self.counted.get_mut(slot));
        let (Some(count), UDP, DISCARD) = (count, record.protocol, record.ports[1]) else {
            self.said.foreign += 1;
            return false;
        };
        let said = &mut self.said;
        said.records += 1;
        said.split += u64::from(*count > 0);
        let most = u64::from(self.keys.packets_per_flow);
        let room = most.saturating_sub(u64::from(*count));
        let packets = record.packets.min(room);
        said.packets += packets;
        said.surplus += record.packets - packets;
        // No more than 10,000.
        *count += packets as u16;
        said.wrong_octets += u64::from(record.octets != record.packets.saturating_mul(self.octets));
        said.wrong_fields += u64::from(record.tos != 0);
        let [first, last] = record.times_ns;
        let until = self.ended_ns.unwrap_or(u64::MAX).saturating_add(SLACK_NS);
        let within = |at: u64| at >= self.began_ns.saturating_sub(SLACK_NS) && at <= until;
        // Zero: it says none.
        let told = first != 0 && last != 0;
        said.wrong_times += u64::from(told && !(within(first) && within(last) && first <= last));
        true
    }

    /// Compares all that was said with the first `frames` frames of `program`, which were sent. Afterwards nothing is counted.
    pub fn settle(&mut self, program: &Program, frames: u64) -> FlowTrial {
        let each = u64::from(self.keys.packets_per_flow);
        let flows = frames.div_ceil(each);
        let mut found = FlowTrial { sent_flows: flows, sent_packets: frames, ..FlowTrial::default() };
        let value = |offset: u32, frame: u64| {
            let fields = program.streams.first().map(|stream| &stream.fields);
            let field = fields.and_then(|fields| fields.iter().find(|field| field.offset == offset));
            field.map_or(0, |field| field.values.at(frame / field.every))
        };
        // Ethernet has 14 bytes, and of IPv4 the source stands at 12, the port behind its 20 bytes.
        let (source, port) = (14 + 12, 14 + 20);
        for flow in 0..flows {
            let frame = flow * each;
            let expected = each.min(frames - frame);
            let slot = slot(value(source, frame) as u32, value(port, frame) as u16);
            let counted = slot.and_then(|slot| self.counted.get_mut(slot)).map_or(0, std::mem::take);
            let counted = u64::from(counted);
            found.recorded_packets += counted.min(expected);
            found.recorded_flows += u64::from(counted >= expected);
            found.partial_flows += u64::from(counted > 0 && counted < expected);
            found.surplus_packets += counted.saturating_sub(expected);
        }
        // What is left was never sent.
        let unsent = self.counted.iter_mut().filter(|count| **count > 0);
        found.foreign_records = self.said.foreign + unsent.map(|count| *count = 0).count() as u64;
        let said = &self.said;
        found.records = said.records;
        found.split_records = said.split;
        found.surplus_packets += said.surplus;
        found.late_records = said.late;
        found.wrong_octets_records = said.wrong_octets;
        found.wrong_fields_records = said.wrong_fields;
        found.wrong_times_records = said.wrong_times;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::record::Format;
    use traffic::expr::{Options, compile};

    const KEYS: Keys = Keys { trial: 7, packets_per_flow: 3, random: true };

    fn program() -> Program {
        compile(&KEYS.expression(wire::Mac([2, 0, 0, 0, 0, 9])), &Options::default()).expect("a program")
    }

    /// The record of a flow of the program.
    fn record(program: &Program, flow: u64, packets: u64) -> Record {
        let value = |offset: u32| {
            let field =
                program.streams[0].fields.iter().find(|field| field.offset == offset).expect("a field");
            field.values.at(flow * 3 / field.every)
        };
        let mut record = blank();
        record.addresses =
            [Some(IpAddr::V4(Ipv4Addr::from_bits(value(26) as u32))), Some(IpAddr::V4(KEYS.target()))];
        record.ports = [value(34) as u16, DISCARD];
        (record.packets, record.octets) = (packets, packets * 46);
        (record.protocol, record.times_ns) = (UDP, [1_500_000_000, 1_600_000_000]);
        record
    }

    fn blank() -> Record {
        let mut session = flow::collect::Session::new(false);
        // A message of NetFlow v5 with one record of zeros.
        let mut bytes = vec![0, 5, 0, 1];
        bytes.resize(24 + 48, 0);
        let mut read = None;
        session.message(&bytes, &mut flow::collect::Room::of(1 << 20), &mut |record, _| read = Some(*record));
        let record = read.expect("a record");
        assert_eq!(record.format, Format::V5);
        record
    }

    fn truth() -> Truth {
        let mut truth = Truth::new(KEYS, 46, 100, 1_000_000_000);
        truth.end(2_000_000_000);
        truth
    }

    #[test]
    fn records_of_all_packets_are_the_truth() {
        let (program, mut truth) = (program(), truth());
        for flow in 0..100 {
            // The last flow was cut by the end of the sending.
            assert!(truth.take(&record(&program, flow, if flow == 99 { 1 } else { 3 })));
        }
        let found = truth.settle(&program, 298);
        let whole = FlowTrial {
            sent_flows: 100,
            sent_packets: 298,
            recorded_flows: 100,
            recorded_packets: 298,
            records: 100,
            ..FlowTrial::default()
        };
        assert_eq!(found, whole);
        // Nothing is counted any more.
        assert_eq!(truth.settle(&program, 298).recorded_flows, 0);
    }

    #[test]
    fn what_is_missing_cut_or_told_twice_is_seen() {
        let (program, mut truth) = (program(), truth());
        for flow in 2..100 {
            truth.take(&record(&program, flow, 3));
        }
        // One in two records, one of which too few packets came, one told again, one that was never sent.
        truth.take(&record(&program, 0, 1));
        truth.take(&record(&program, 0, 2));
        truth.take(&record(&program, 1, 2));
        truth.take(&record(&program, 5, 3));
        truth.take(&record(&program, 100, 3));
        let found = truth.settle(&program, 300);
        assert_eq!((found.sent_flows, found.recorded_flows, found.partial_flows), (100, 99, 1));
        assert_eq!((found.recorded_packets, found.surplus_packets), (299, 3));
        assert_eq!((found.split_records, found.foreign_records, found.records), (2, 1, 103));
    }

    #[test]
    fn records_that_say_what_is_not_so_are_counted() {
        let (program, mut truth) = (program(), truth());
        let right = record(&program, 0, 3);
        let mut times = right;
        times.times_ns = [1_500_000_000, 2_003_000_000];
        let mut untold = right;
        untold.times_ns = [0; 2];
        let (mut octets, mut fields, mut late, mut foreign, mut sentinel) =
            (right, right, right, right, right);
        octets.octets += 18;
        fields.tos = 4;
        late.addresses[1] = Some(IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1)));
        foreign.ports[1] = 53;
        sentinel.addresses = [SENTINEL.parse().ok(), "198.18.0.98".parse().ok()];
        for one in [times, untold, octets, fields, late, foreign, sentinel] {
            truth.take(&one);
        }
        let found = truth.settle(&program, 300);
        let wrong = [found.wrong_times_records, found.wrong_octets_records, found.wrong_fields_records];
        assert_eq!((wrong, found.late_records, found.foreign_records), ([1; 3], 1, 1));
    }

    #[test]
    fn keys_do_not_repeat_beyond_one_address_space() {
        let program = program();
        let fields = &program.streams[0].fields;
        assert_eq!(fields.iter().map(|field| field.offset).collect::<Vec<_>>(), [26, 34]);
        // Behind all addresses comes the next port.
        assert_eq!(fields[1].every, 3 << ADDRESS_BITS);
        assert_eq!(fields[1].values.at(1), u64::from(FIRST_PORT) + 1);
        assert_eq!(Keys::most(), 1 << 30);
    }
}
