//! What a reader of figures has to know beside them: what was passed over, and what nobody said.

/// What else is to be known of what an exporter sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asides {
    /// Records of flows whose exporter did not say how it samples.
    pub unknown_sampling: u64,
    /// Sets of numbers that are reserved: they were passed over.
    pub reserved_sets: u64,
    /// Samples of sFlow without a record: not of IP, cut off before its addresses, or of a kind that is not known here.
    pub unread_samples: u64,
    /// Samples that did not arrive, by the numbers that sFlow's sources give them.
    pub missing_samples: u64,
    /// Samples that agents say they had no room for.
    pub dropped_samples: u64,
    /// Messages whose counts and lengths disagree with what was read in them: v9's head counts other records, sFlow has more samples or
    /// records than it counts, or a set of v9 or IPFIX ends with more than padding.
    pub miscounted_messages: u64,
}

impl Asides {
    pub(super) fn with(&self, other: &Asides, of: impl Fn(u64, u64) -> u64) -> Asides {
        let (a, b) = (self, other);
        Asides {
            unknown_sampling: of(a.unknown_sampling, b.unknown_sampling),
            reserved_sets: of(a.reserved_sets, b.reserved_sets),
            unread_samples: of(a.unread_samples, b.unread_samples),
            missing_samples: of(a.missing_samples, b.missing_samples),
            dropped_samples: of(a.dropped_samples, b.dropped_samples),
            miscounted_messages: of(a.miscounted_messages, b.miscounted_messages),
        }
    }
}
