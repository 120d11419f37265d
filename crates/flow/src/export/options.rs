//! What the probe says of itself: records of options, and their templates (RFC 7011, 4).

use super::{Counters, Settings, Status, specifier};
use crate::element::Number;
use crate::template::{Field, Version};

/// What the probe says of itself: the first field is the scope.
#[derive(Debug)]
pub(super) struct OptionsTemplate {
    pub(super) number: u16,
    fields: Vec<(Field, Said)>,
    /// It says how packets or flows were selected, which does not change while the probe runs.
    pub(super) of_selection: bool,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    Domain,
    Process,
    Messages,
    Records,
    Octets,
    IgnoredPackets,
    IgnoredOctets,
    IgnoredAt(usize),
    Unsent(usize),
    UnsentAt(usize),
    Interval,
    Algorithm,
    One,
    Space,
    FlowAlgorithm,
    Seed,
    /// The least and the greatest hash that there is,
    HashLeast,
    HashGreatest,
    /// and the greatest one that is taken.
    HashTaken,
    /// An element that the hash is of.
    HashOf(u16),
}

/// Hash-based filtering (IANA's registry of flowSelectorAlgorithm).
const BY_HASH: u64 = 6;

impl Said {
    fn value(self, settings: &Settings, counters: &Counters, status: &Status) -> u64 {
        let sampling = settings.context.sampling.max(1);
        match self {
            Said::Domain => settings.domain.into(),
            Said::Process => 1,
            Said::Messages => counters.messages,
            Said::Records => counters.records,
            Said::Octets => counters.octets,
            Said::IgnoredPackets => status.ignored_packets,
            Said::IgnoredOctets => status.ignored_octets,
            Said::IgnoredAt(which) => status.ignored_ns[which & 1] / 1_000_000,
            Said::Unsent(which) => status.unsent.get(which).copied().unwrap_or_default(),
            Said::UnsentAt(which) => status.unsent_ns[which & 1] / 1_000_000,
            Said::Interval => sampling.into(),
            Said::Algorithm => {
                if settings.context.random {
                    2
                } else {
                    1
                }
            }
            Said::One => 1,
            Said::Space => (sampling - 1).into(),
            Said::FlowAlgorithm => BY_HASH,
            Said::Seed => settings.context.flows.seed(),
            Said::HashLeast => 0,
            Said::HashGreatest => u64::MAX,
            Said::HashTaken => settings.context.flows.highest(),
            Said::HashOf(element) => element.into(),
        }
    }
}

type Line = (u16, u16, Said);

/// How flows were selected (RFC 7014, 6.1): by a hash of which elements, and from where to where it may be.
fn flows(scope: u16) -> Vec<Line> {
    let mut lines = vec![
        (scope, 4, Said::Domain),
        (390, 2, Said::FlowAlgorithm),
        (334, 8, Said::Seed),
        (329, 8, Said::HashLeast),
        (330, 8, Said::HashGreatest),
        (331, 8, Said::HashLeast),
        (332, 8, Said::HashTaken),
    ];
    lines.extend([8, 27, 12, 28, 7, 11, 4, 5, 58].map(|element| (400, 2, Said::HashOf(element))));
    lines
}

impl OptionsTemplate {
    /// Those that these settings need, numbered from `first` on.
    pub(super) fn of(settings: &Settings, first: u16) -> Vec<OptionsTemplate> {
        use Said::{Algorithm, Domain, IgnoredAt, IgnoredOctets, IgnoredPackets, Interval, Messages, Octets};
        use Said::{One, Process, Records, Space, Unsent, UnsentAt};
        let exported: &[Line] = &[(149, 4, Domain), (41, 8, Messages), (42, 8, Records), (40, 8, Octets)];
        let ignored: &[Line] = &[
            (149, 4, Domain),
            (164, 8, IgnoredPackets),
            (165, 8, IgnoredOctets),
            (323, 8, IgnoredAt(0)),
            (323, 8, IgnoredAt(1)),
        ];
        let unsent: &[Line] = &[
            (144, 4, Process),
            (166, 8, Unsent(0)),
            (167, 8, Unsent(1)),
            (168, 8, Unsent(2)),
            (323, 8, UnsentAt(0)),
            (323, 8, UnsentAt(1)),
        ];
        // The scope of v9 is the system (1).
        let scope = if settings.version == Version::V9 { 1 } else { 149 };
        // It is said in both ways, by a record each: nfcapd 1.7.1 takes packet interval and space alone, and goflow2 takes a packet
        // interval for the rate unless it found one before.
        let sampling = [(scope, 4, Domain), (34, 4, Interval), (35, 1, Algorithm)];
        let spacing = [(scope, 4, Domain), (305, 4, One), (306, 4, Space)];
        let exported_v9: &[Line] = &[(1, 4, Domain), (41, 8, Messages), (42, 8, Records), (40, 8, Octets)];
        let mut lists = match settings.version {
            Version::V5 => return Vec::new(),
            Version::V9 => vec![exported_v9],
            Version::Ipfix => vec![exported, ignored, unsent],
        };
        let of_the_probe = lists.len();
        if settings.context.sampling > 1 {
            lists.extend([&sampling[..], &spacing]);
        }
        let flows = flows(scope);
        if settings.context.flows.are_sampled() {
            lists.push(&flows);
        }
        let field = |(id, length, said): &Line| (Field { number: Number::iana(*id), length: *length }, *said);
        (first..)
            .zip(lists.into_iter().enumerate())
            .map(|(number, (place, list))| OptionsTemplate {
                number,
                fields: list.iter().map(field).collect(),
                of_selection: place >= of_the_probe,
            })
            .collect()
    }

    /// Bytes of its record.
    pub(super) fn length(&self) -> usize {
        self.fields.iter().map(|(field, _)| usize::from(field.length)).sum()
    }

    /// Writes its record.
    pub(super) fn write(&self, settings: &Settings, counters: &Counters, status: &Status, out: &mut Vec<u8>) {
        for (field, what) in &self.fields {
            let bytes = what.value(settings, counters, status).to_be_bytes();
            out.extend(bytes.get(8 - usize::from(field.length.min(8))..).unwrap_or_default());
        }
    }

    /// Writes the template.
    pub(super) fn describe(&self, version: Version, out: &mut Vec<u8>) {
        let fields = self.fields.len() as u16;
        out.extend(self.number.to_be_bytes());
        match version {
            Version::V9 => {
                // In bytes: of the scope, of the rest.
                out.extend(4u16.to_be_bytes());
                out.extend((4 * (fields - 1)).to_be_bytes());
            }
            _ => {
                out.extend(fields.to_be_bytes());
                out.extend(1u16.to_be_bytes());
            }
        }
        self.fields.iter().for_each(|(field, _)| specifier(*field, out));
    }
}
