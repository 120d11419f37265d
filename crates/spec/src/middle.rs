//! Jobs that stand between two interfaces: a bridge, a device with known faults.

use crate::check::{self, Contradiction};
use crate::edits::Edits;
use crate::kind::Kind;
use crate::setting::{self, Member, OneValue, Settings as _, Shape};
use crate::words::words;
use crate::written::Written;
use settings::settings;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;
use traffic::faults::{Cycle, Share, Shift};

words! {
    /// How frames are forwarded.
    BridgeEngine {
        /// The fastest that the interfaces and what is asked for allow.
        Auto = "auto",
        /// In the drivers.
        Xdp = "xdp",
        /// In the kernel's receive path, as traffic control does.
        Tc = "tc",
        /// There, too, by XDP.
        XdpGeneric = "xdp-generic",
        /// Packet sockets and user space.
        Packet = "packet",
    }
}

/// Two interfaces become one cable, on which frames may be chosen and edited.
#[settings]
pub struct Bridge {
    /// The two interfaces. Of edits with two values the first is for what arrives on the first one (the client's side),
    /// the second for what arrives on the second one (the server's).
    #[setting(value = "IFACE")]
    pub between: [String; 2],
    /// Forward only from the first interface to the second.
    pub one_way: bool,
    /// Bridge for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End when this many frames have been forwarded, both directions together; not one more is.
    #[setting(value = "FRAMES")]
    pub count: Option<Written<u64>>,
    /// Forward only these frames: S:, D:, B: or E:NETWORKS (source, destination, both, either), P:1-5,9,72- (the
    /// number of the frame, both directions together), F:EXPRESSION (a BPF filter as tcpdump's, which compiles it).
    #[setting(value = "RULE", excludes("exclude"))]
    pub include: Option<String>,
    /// Forward all frames but these: S:, D:, B:, E: or P:, as above.
    #[setting(value = "RULE")]
    pub exclude: Option<String>,
    /// How frames are forwarded: xdp (in the drivers), tc (in the kernel's receive path, as traffic control does;
    /// Linux 6.6), xdp-generic (there, too, by XDP), packet (packet sockets and user space, which edits and chooses),
    /// or auto: the fastest that the interfaces and what is asked for allow.
    #[setting(
        value = "ENGINE",
        default = "auto",
        brief = "How frames leave: the fastest that is possible here, or one of these"
    )]
    #[serde(default)]
    pub engine: BridgeEngine,
    /// What is done to each frame.
    #[setting(within)]
    pub edits: Option<Edits>,
    /// Yes, bridge this interface although it carries the default route or your login: nothing that arrives on it
    /// reaches this host any more. Once for each.
    #[setting(value = "IFACE", expert, consent)]
    pub yes_disrupt: Vec<String>,
}

words! {
    /// Which way faults happen.
    Direction {
        /// Both ways.
        Both = "both",
        /// From the first interface to the second.
        There = "there",
        /// From the second to the first.
        Back = "back",
    }
}

/// What happens to frames. A share is written 1%, 1/1000. Exactly that share of the frames is taken, evenly spread, unless `random` is set.
#[settings]
pub struct Faults {
    /// Frames leave this long after they arrived: 500us, 10ms.
    #[setting(value = "TIME")]
    pub delay: Option<Written<Duration>>,
    /// As much more or less, evenly drawn for each frame. Frames overtake each other; see `.keep_order`.
    #[setting(value = "TIME", needs("delay"))]
    pub jitter: Option<Written<Duration>>,
    /// With `.jitter`: no frame leaves before one that arrived earlier.
    #[setting(needs("jitter"))]
    pub keep_order: bool,
    /// Frames that are lost: 1%, 1/1000, 100%. Exactly this share, evenly spread (of 1% frame 1, 101, ...), as all shares
    /// here, unless `.random`.
    #[setting(value = "SHARE", reads = "Share")]
    pub loss: Option<String>,
    /// Frames that leave twice, of those not lost.
    #[setting(value = "SHARE", reads = "Share")]
    pub duplicate: Option<String>,
    /// Copies of a duplicated frame besides itself: a frame that circles.
    #[setting(value = "N", needs("duplicate"), default = "1", least = 1, most = 100000)]
    pub copies: Option<u32>,
    /// Frames that are put back behind later ones, as `.reorder_by` says.
    #[setting(value = "SHARE", reads = "Share")]
    pub reorder: Option<String>,
    /// How far: behind this many later frames (3; a second at most), or by a time (200us).
    #[setting(value = "N|TIME", needs("reorder"), default = "3", reads = "Shift")]
    #[serde(deserialize_with = "crate::written::text_or_number")]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub reorder_by: Option<String>,
    /// Frames of which one bit of the payload flips (not of a test frame's signature, where there is other payload).
    #[setting(value = "SHARE", reads = "Share")]
    pub corrupt: Option<String>,
    /// Give corrupted frames a right checksum of TCP, UDP or SCTP, so that the receiver takes them.
    #[setting(needs("corrupt"))]
    pub mend_checksum: bool,
    /// Forward for the first time, lose everything for the second, and so on: 2s/500ms. From the device's start.
    #[setting(value = "WELL/ILL", reads = "Cycle")]
    pub flap: Option<String>,
    /// Forward for the first time, hold everything for the second and then let all of it out at once, and so on: 2s/500ms,
    /// 0/3s.
    #[setting(value = "WELL/ILL", reads = "Cycle")]
    pub freeze: Option<String>,
    /// Copies of each frame that go back where it came from.
    #[setting(value = "N", least = 1, most = 100000)]
    #[serde(rename = "loop")]
    pub come_back: Option<u32>,
    /// Which direction this happens in: from the first interface to the second (there), back, or both.
    #[setting(value = "WHICH", default = "both")]
    #[serde(default)]
    pub direction: Direction,
    /// Draw the frames of each share at random, rather than spread them evenly.
    pub random: bool,
    /// Key of all that is drawn.
    #[setting(option = "fault-seed", alias = "seed", value = "N", default = "1", expert)]
    pub seed: Option<u64>,
    /// Bytes that may wait in each direction; what finds no room is lost, and that is said.
    #[setting(value = "BYTES", default = "256M", expert)]
    pub buffer: Option<Written<u64>>,
}

/// The settings above in one text, each by its option's name and without dashes: `delay 500us loss 1%`, `delay=500us,loss=1%`.
impl OneValue for Faults {
    fn of(text: &OsStr) -> Result<Faults, String> {
        let text = setting::text(text)?;
        let mut words =
            text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '=')).filter(|word| !word.is_empty());
        let mut faults = Faults::default();
        let mut said = BTreeSet::new();
        while let Some(word) = words.next() {
            let name = word.trim_start_matches('-');
            let found = setting::typed(Faults::MEMBERS, name);
            let (path, setting) =
                found.ok_or_else(|| format!("there is no fault `{name}`. {TAKES_FAULTS}"))?;
            if !said.insert(path.clone()) {
                return Err(format!("`{name}` is said twice. {TAKES_FAULTS}"));
            }
            let value = match setting.shape {
                Shape::Flag => "",
                _ => words
                    .next()
                    .ok_or_else(|| format!("`{name}` takes a value, {}. {TAKES_FAULTS}", setting.value))?,
            };
            let put = setting.takes(OsStr::new(value)).and_then(|()| {
                let put = faults.put(&path, OsStr::new(setting.meant(value)));
                put.unwrap_or_else(|| Err("there is no such setting".to_owned()))
            });
            put.map_err(|bad| format!("`{name} {value}`: {bad}. {TAKES_FAULTS}"))?;
        }
        // In this text others are words as the one that is wrong is, and no settings that a client has another name for.
        check::faults("", &faults).map_err(|wrong| {
            let (name, what) = (wrong.member.replace('_', "-"), wrong.what.replace("`.", "`"));
            format!("`{name}`: {what}. {TAKES_FAULTS}")
        })?;
        Ok(faults)
    }
}

const TAKES_FAULTS: &str = "Write what `netdyno impair` takes, without dashes: delay 500us loss 1%";

/// Two interfaces become a device with known faults.
#[settings]
pub struct Impair {
    /// The two interfaces. What arrives on one leaves by the other.
    #[setting(value = "IFACE")]
    pub between: [String; 2],
    /// What happens to frames.
    #[setting(within)]
    #[serde(default)]
    pub faults: Faults,
    /// Stay for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Yes, use this interface although it carries the default route or your login: nothing that arrives on it reaches
    /// this host any more. Once for each.
    #[setting(value = "IFACE", expert)]
    pub yes_disrupt: Vec<String>,
}

impl Kind for Bridge {
    fn settings() -> &'static [Member] {
        Bridge::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::bridge(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

impl Kind for Impair {
    fn settings() -> &'static [Member] {
        Impair::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::impair(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::named;

    #[test]
    fn faults_are_written_with_dashes_or_without() {
        let read = |text: &str| Faults::of(OsStr::new(text));
        let some = "delay=10ms,jitter=1ms loss 1/3 random flap 2s/500ms reorder 1% reorder-by 200us";
        let faults = read(some).expect(some);
        let delays = [&faults.delay, &faults.jitter].map(|time| time.as_deref().copied());
        assert_eq!(delays, [10, 1].map(|ms| Some(Duration::from_millis(ms))));
        assert!(faults.random && faults.loss.as_deref() == Some("1/3") && faults.flap.is_some());
        assert_eq!(faults.reorder_by.as_deref(), Some("200us"));
        let back = Faults { direction: Direction::Back, ..read("delay 10ms").expect("a delay") };
        assert_eq!(read("--delay 10ms direction back"), Ok(back));
        assert_eq!(read("seed 7"), Ok(Faults { seed: Some(7), ..Faults::default() }));
        assert_eq!(read(""), Ok(Faults::default()));
        for (bad, says) in [
            ("delay", "`delay` takes a value, TIME"),
            ("delay 5", "`delay 5`: "),
            ("lose 1%", "no fault `lose`"),
            ("jitter 1ms", "it is of a `delay`"),
            ("loss 200%", "no share of frames"),
            ("loss 1% loss 2%", "`loss` is said twice"),
            ("flap 2s", "no two times"),
            ("copies 3", "nothing is copied"),
            ("reorder 1% reorder-by 0", "no distance"),
            ("loop 0", "not in 1..=100000"),
        ] {
            let error = read(bad).expect_err(bad);
            assert!(error.contains(says) && error.contains("netdyno impair"), "{bad}: {error}");
        }
    }

    /// They are kept as they were written, and read where the device is made.
    #[test]
    fn what_a_fault_cannot_be_is_told_of_its_setting() {
        for (path, good, bad, says) in [
            ("loss", "1%", "200%", "no share of frames"),
            ("duplicate", "1/1000", "0.01", "no share of frames"),
            ("reorder", "100%", "", "no share of frames"),
            ("corrupt", "0.5%", "1%%", "no share of frames"),
            ("reorder_by", "200us", "0", "no distance"),
            ("flap", "2s/500ms", "2s", "no two times"),
            ("freeze", "0/3s", "3s/0", "no two times"),
            ("copies", "100000", "100001", "not in 1..=100000"),
            ("loop", "1", "0", "not in 1..=100000"),
        ] {
            let setting = named(Impair::MEMBERS, path).expect(path);
            assert_eq!(setting.takes(OsStr::new(good)), Ok(()), "{path}");
            let error = setting.takes(OsStr::new(bad)).expect_err(path);
            assert!(error.contains(says), "{path}: {error}");
        }
    }
}
