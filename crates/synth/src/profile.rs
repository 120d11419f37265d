//! What a synthesised capture shall amount to.

use std::time::Duration;

/// The totals of a capture. Every one of them is met exactly, or [`Synth::new`](crate::Synth::new) says why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Frames in all.
    pub frames: u64,
    /// Bytes of all frames, without FCS.
    pub bytes: u64,
    /// Flows as tcpreplay counts them: one for each distinct (source, destination, protocol, source port,
    /// destination port), so a conversation with an answer is two.
    pub flows: u64,
    /// How many of `frames` belong to no flow; they are ARP.
    pub non_flow_frames: u64,
    /// Time from the first frame, which is at 0, to the last.
    pub duration: Duration,
    /// Distinct server ports. The first three are TCP 80, TCP 443 and UDP 53.
    pub applications: u32,
    /// How many of `frames` are from or to TCP ports 80 and 443.
    pub web_frames: u64,
    /// Bytes of the web frames.
    pub web_bytes: u64,
    /// Inside hosts; a few of them are much busier than the rest.
    pub hosts: u32,
}

impl Profile {
    /// As the published bigFlows.pcap: an access point to the Internet of a busy private network, five minutes.
    pub const BIGFLOWS: Profile = Profile {
        frames: 791_615,
        bytes: 355_417_784,
        flows: 40_686,
        non_flow_frames: 436,
        duration: Duration::from_secs(300),
        applications: 132,
        web_frames: 411_194,
        web_bytes: 264_590_701,
        hosts: 60,
    };

    /// As the published smallFlows.pcap. Its web share was not published; this one is 62 % of the frames and
    /// 80 % of the bytes.
    pub const SMALLFLOWS: Profile = Profile {
        frames: 14_261,
        bytes: 9_216_531,
        flows: 1_209,
        non_flow_frames: 18,
        duration: Duration::from_secs(300),
        applications: 28,
        web_frames: 8_842,
        web_bytes: 7_373_225,
        hosts: 25,
    };

    /// The profiles that have a name.
    pub const NAMED: [(&'static str, Profile); 2] =
        [("bigflows", Profile::BIGFLOWS), ("smallflows", Profile::SMALLFLOWS)];

    /// The profile called `name`, in any case of letters.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, profile)| *profile)
    }

    /// The same mix with `frames` frames: bytes, flows and shares in proportion, duration and applications kept.
    pub fn with_frames(self, frames: u64) -> Profile {
        let scaled = |value| scale(value, frames, self.frames);
        Profile {
            frames,
            bytes: scaled(self.bytes),
            non_flow_frames: scaled(self.non_flow_frames),
            web_frames: scaled(self.web_frames),
            web_bytes: scaled(self.web_bytes),
            ..self
        }
        .with_flows(scaled(self.flows))
    }

    /// The same frames, larger or smaller: the web's share of the bytes is kept.
    pub fn with_bytes(self, bytes: u64) -> Profile {
        Profile { bytes, web_bytes: scale(self.web_bytes, bytes, self.bytes), ..self }
    }

    /// The same with `applications` server ports; with one or two there is nothing but web.
    pub fn with_applications(self, applications: u32) -> Profile {
        let mut profile = Profile { applications, ..self };
        if applications <= 2 {
            profile.web_frames = self.frames.saturating_sub(self.non_flow_frames);
            profile.web_bytes =
                self.bytes.saturating_sub(self.non_flow_frames * crate::conversation::MINIMUM as u64);
        }
        profile
    }

    /// The same frames spread over `flows` flows, with more inside hosts where these would run out of ports.
    pub fn with_flows(self, flows: u64) -> Profile {
        let needed = u32::try_from(flows / 10_000).unwrap_or(u32::MAX).min(crate::hosts::MAX_CLIENTS);
        Profile { flows, hosts: self.hosts.max(needed), ..self }
    }
}

/// `value * to / from`, rounded to nearest; `value` itself where `from` is zero.
fn scale(value: u64, to: u64, from: u64) -> u64 {
    if from == 0 {
        return value;
    }
    let (value, to, from) = (u128::from(value), u128::from(to), u128::from(from));
    u64::try_from((value * to + from / 2) / from).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_keeps_every_ratio() {
        let tenth = Profile::BIGFLOWS.with_frames(79_162);
        assert_eq!((tenth.bytes, tenth.flows, tenth.web_frames), (35_542_003, 4_069, 41_120));
        assert_eq!(Profile::BIGFLOWS.with_frames(791_615), Profile::BIGFLOWS);
        assert_eq!(Profile::BIGFLOWS.with_bytes(2 * 355_417_784).web_bytes, 2 * 264_590_701);
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(Profile::named("bigFlows"), Some(Profile::BIGFLOWS));
        assert_eq!(Profile::named("hugeflows"), None);
    }
}
