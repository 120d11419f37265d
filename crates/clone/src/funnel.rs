//! What became of everything that was captured, stage by stage with reasons, and whether it adds up.
//!
//! What is counted is what the result says: one set of structs for both.

pub use report::{
    ClonedBytes as Bytes, ClonedConnections as Copies, ClonedFrames as Frames, ClonedSent as Said,
    ClonedSessions as Sessions,
};

/// All of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Funnel {
    /// Frames.
    pub frames: Frames,
    /// Sessions.
    pub sessions: Sessions,
    /// Bytes of their clients.
    pub bytes: Bytes,
    /// Connections to the target.
    pub copies: Copies,
    /// Bytes to it.
    pub said: Said,
    /// The same of the second target, which has one copy of each session.
    pub second_copies: Copies,
    /// Bytes to it.
    pub second_said: Said,
}

/// Counters that add up.
pub(crate) trait Plus {
    /// Adds another's.
    fn plus(&mut self, other: &Self);
}

macro_rules! sums {
    ($($part:ident: $($field:ident)+;)+) => {
        $(impl Plus for $part {
            fn plus(&mut self, other: &$part) {
                // All fields: one that is added does not compile before it is added up.
                let $part { $($field),+ } = other;
                $(self.$field += $field;)+
            }
        })+
    };
}

sums! {
    Frames: captured from_clients from_server other_flows other_protocols fragments joined malformed truncated urgent syns syn_acks
        syn_acks_alone strays;
    Sessions: seen half_open refused waiting midstream sampled_out over_sessions over_rate ramped_out over_ceiling over_link own tls copied adopted gaps
        missed truncated too_early turned_tls shed unforwarded idle replaced;
    Bytes: captured delivered behind_gaps repeated different wild;
    Copies: wanted connected refused timed_out no_address failed unfinished closed_early reset_early overfull impatient held_ends
        unanswered_ends;
    Said: due sent unconnected after_close overfull reset unfinished received;
}

/// What became of all connections that were wanted.
fn connections(of: &Copies) -> u64 {
    of.connected + of.refused + of.timed_out + of.no_address + of.failed + of.unfinished
}

/// What became of all bytes that were due.
fn bytes(of: &Said) -> u64 {
    of.sent + of.unconnected + of.after_close + of.overfull + of.reset + of.unfinished
}

impl Funnel {
    /// Adds another's.
    pub fn add(&mut self, other: &Funnel) {
        self.frames.plus(&other.frames);
        self.sessions.plus(&other.sessions);
        self.bytes.plus(&other.bytes);
        self.copies.plus(&other.copies);
        self.said.plus(&other.said);
        self.second_copies.plus(&other.second_copies);
        self.second_said.plus(&other.second_said);
    }

    /// What does not add up, at the end, a sentence each. There must be none.
    pub fn contradictions(&self) -> Vec<String> {
        let Funnel { frames: f, sessions: s, bytes: b, .. } = self;
        let left = s.midstream
            + s.sampled_out
            + s.over_sessions
            + s.over_rate
            + s.ramped_out
            + s.over_ceiling
            + s.over_link
            + s.own
            + s.tls;
        let sums = [
            (
                "frames captured",
                f.captured,
                f.from_clients
                    + f.from_server
                    + f.other_flows
                    + f.other_protocols
                    + f.fragments
                    + f.joined
                    + f.malformed,
            ),
            ("sessions seen", s.seen, s.half_open + s.refused + s.waiting + left + s.copied + s.adopted),
            ("bytes captured", b.captured, b.delivered + b.behind_gaps),
            ("connections wanted", self.copies.wanted, connections(&self.copies)),
            ("bytes due", self.said.due, bytes(&self.said)),
            ("connections to the second target", self.second_copies.wanted, connections(&self.second_copies)),
            ("bytes due to the second target", self.second_said.due, bytes(&self.second_said)),
        ];
        let wrong = sums.into_iter().filter(|(_, whole, parts)| whole != parts);
        wrong.map(|(what, whole, parts)| format!("{what}: {whole}, and their parts are {parts}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_add_up_is_said() {
        let mut funnel = Funnel::default();
        assert!(funnel.contradictions().is_empty());
        funnel.sessions.seen = 3;
        funnel.sessions.copied = 2;
        assert_eq!(funnel.contradictions(), ["sessions seen: 3, and their parts are 2"]);
        let mut both = Funnel::default();
        both.add(&funnel);
        both.add(&funnel);
        assert_eq!((both.sessions.seen, both.sessions.copied), (6, 4));
    }
}
