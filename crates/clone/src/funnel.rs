//! What became of everything that was captured, stage by stage with reasons, and whether it adds up.

/// Frames, and the segments in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frames {
    /// Frames that came from the capture.
    pub captured: u64,
    /// TCP segments from a client to the server,
    pub from_clients: u64,
    /// and back.
    pub from_server: u64,
    /// TCP of others.
    pub other_flows: u64,
    /// Other protocols.
    pub other_protocols: u64,
    /// Pieces of IP packets that never became whole.
    pub fragments: u64,
    /// Frames that held nothing but further pieces of packets that became whole: each packet is counted once, by what it is.
    pub joined: u64,
    /// Frames whose headers cannot be read.
    pub malformed: u64,
    /// Segments from clients of which a part was not captured: they are among the segments.
    pub truncated: u64,
    /// SYNs, without ACK, among the segments from clients,
    pub syns: u64,
    /// SYNs with ACK among those from the server,
    pub syn_acks: u64,
    /// and those of them whose SYN was not seen.
    pub syn_acks_alone: u64,
    /// Segments of no session: what comes behind its end, or without a beginning that could be one.
    pub strays: u64,
}

/// Sessions by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Seen on the wire.
    pub seen: u64,
    /// SYNs whose connection never came about.
    pub half_open: u64,
    /// The server refused them.
    pub refused: u64,
    /// Open before the start, and waiting for a moment to be adopted.
    pub waiting: u64,
    /// Open before the start, and never adopted.
    pub midstream: u64,
    /// Not chosen.
    pub sampled_out: u64,
    /// Not taken, because there were too many at once,
    pub over_sessions: u64,
    /// too many new ones a second,
    pub over_rate: u64,
    /// because copies were to become more slowly,
    pub ramped_out: u64,
    /// or because copying took more of the machine than it may.
    pub over_ceiling: u64,
    /// The way from a capture on another host had no room, or was not there.
    pub over_link: u64,
    /// Of copies of ours that came back: from our addresses, or from the target; or of the target itself.
    pub own: u64,
    /// Speaking TLS from their first byte: the target has other keys.
    pub tls: u64,
    /// Copied from their beginning,
    pub copied: u64,
    /// or from somewhere in between.
    pub adopted: u64,
    /// Of those that are copied: ended with a gap, because a segment was neither captured nor sent again,
    pub gaps: u64,
    /// with bytes that the server has and the capture has not,
    pub missed: u64,
    /// with a segment that was captured in part,
    pub truncated: u64,
    /// with more out of order than there is room for,
    pub too_early: u64,
    /// turned to TLS (STARTTLS),
    pub turned_tls: u64,
    /// given up, because copying took far more of the machine than it may,
    pub shed: u64,
    /// or given up by a capture on another host: the way from it had no room for a segment, or broke.
    pub unforwarded: u64,
    /// Ended because nothing came for long.
    pub idle: u64,
    /// Ended by a new one of the same addresses and ports.
    pub replaced: u64,
}

/// Bytes that clients said in sessions that are copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Captured, each once.
    pub captured: u64,
    /// In order, and handed on to be said again.
    pub delivered: u64,
    /// Never in order: behind a gap.
    pub behind_gaps: u64,
    /// Captured again.
    pub repeated: u64,
    /// Captured again, and different.
    pub different: u64,
    /// Too far ahead to belong to their connection.
    pub wild: u64,
}

/// Connections to the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// Wanted: sessions times copies.
    pub wanted: u64,
    /// Established.
    pub connected: u64,
    /// The target refused.
    pub refused: u64,
    /// The target did not answer in time.
    pub timed_out: u64,
    /// No address and port were free.
    pub no_address: u64,
    /// The kernel had another reason.
    pub failed: u64,
    /// The copying ended before.
    pub unfinished: u64,
    /// Among the established: the target closed, while its client still spoke,
    pub closed_early: u64,
    /// or reset,
    pub reset_early: u64,
    /// or they were given up, because too much waited for the target.
    pub overfull: u64,
    /// Requests that were not held until their answer any more, because it did not come.
    pub impatient: u64,
    /// Ends (FIN or RST) that were put off, because the target had not answered yet as the server had,
    pub held_ends: u64,
    /// and those among them that were put off no longer, because its answers did not come.
    pub unanswered_ends: u64,
}

/// Bytes that were to be said to the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// Delivered bytes times copies.
    pub due: u64,
    /// Taken by the sockets.
    pub sent: u64,
    /// Not sent, because the connection did not come about,
    pub unconnected: u64,
    /// because the target closed or reset it,
    pub after_close: u64,
    /// because too much waited,
    pub overfull: u64,
    /// because the client reset its connection,
    pub reset: u64,
    /// or because the copying ended.
    pub unfinished: u64,
    /// Bytes that the target answered.
    pub received: u64,
}

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

macro_rules! sums {
    ($($part:ident: $($field:ident)+;)+) => {
        $(impl $part {
            fn plus(&mut self, other: &$part) {
                $(self.$field += other.$field;)+
            }
        })+
    };
}

sums! {
    Frames: captured from_clients from_server other_flows other_protocols fragments joined malformed truncated syns syn_acks
        syn_acks_alone strays;
    Sessions: seen half_open refused waiting midstream sampled_out over_sessions over_rate ramped_out over_ceiling over_link own tls copied adopted gaps
        missed truncated too_early turned_tls shed unforwarded idle replaced;
    Bytes: captured delivered behind_gaps repeated different wild;
    Copies: wanted connected refused timed_out no_address failed unfinished closed_early reset_early overfull impatient held_ends
        unanswered_ends;
    Said: due sent unconnected after_close overfull reset unfinished received;
}

impl Copies {
    fn parts(&self) -> u64 {
        self.connected + self.refused + self.timed_out + self.no_address + self.failed + self.unfinished
    }
}

impl Said {
    fn parts(&self) -> u64 {
        self.sent + self.unconnected + self.after_close + self.overfull + self.reset + self.unfinished
    }
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
            ("connections wanted", self.copies.wanted, self.copies.parts()),
            ("bytes due", self.said.due, self.said.parts()),
            ("connections to the second target", self.second_copies.wanted, self.second_copies.parts()),
            ("bytes due to the second target", self.second_said.due, self.second_said.parts()),
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
