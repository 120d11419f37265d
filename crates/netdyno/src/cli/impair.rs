//! `netdyno impair`, and the same faults in a lab's device, where they are written without dashes.

use super::Output;
use clap::{Args, CommandFactory, Parser, ValueEnum};
use impair::plan::{parse_cycle, parse_shift};
use impair::{Cycle, Plan, Share, Shift};
use std::time::Duration;
use traffic::rate::{parse_count, parse_duration};

#[derive(Debug, Args)]
pub struct Impair {
    /// The two interfaces. What arrives on one leaves by the other.
    #[arg(long, num_args = 2, required = true, value_names = ["IFACE", "IFACE"])]
    pub between: Vec<String>,
    #[command(flatten)]
    pub faults: Faults,
    /// Stay for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Yes, use this interface although it carries the default route or your login: nothing that arrives on it reaches
    /// this host any more. Once for each.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    #[command(flatten)]
    pub output: Output,
}

/// What happens to frames.
#[derive(Debug, Clone, Args)]
pub struct Faults {
    /// Frames leave so long after they arrived: 500us, 10ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub delay: Option<Duration>,
    /// As much more or less, evenly drawn for each frame. Frames overtake each other; see --keep-order.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "delay")]
    pub jitter: Option<Duration>,
    /// With --jitter: no frame leaves before one that arrived earlier.
    #[arg(long, requires = "jitter")]
    pub keep_order: bool,
    /// Frames that are lost: 1%, 1/1000, 100%. Exactly so many and evenly spread (of 1% frame 1, 101, ...), as all shares
    /// here, unless --random.
    #[arg(long, value_name = "SHARE")]
    pub loss: Option<Share>,
    /// Frames that leave twice, of those not lost.
    #[arg(long, value_name = "SHARE")]
    pub duplicate: Option<Share>,
    /// Copies of a duplicated frame besides itself: a frame that circles.
    #[arg(long, value_name = "N", requires = "duplicate", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub copies: u32,
    /// Frames that are put back behind later ones, as --reorder-by says.
    #[arg(long, value_name = "SHARE")]
    pub reorder: Option<Share>,
    /// How far: behind so many later frames (3; a second at most), or by a time (200us).
    #[arg(long, value_name = "N|TIME", requires = "reorder", default_value = "3", value_parser = shift)]
    pub reorder_by: Shift,
    /// Frames of which one bit of the payload flips (not of a test frame's signature, where there is other payload).
    #[arg(long, value_name = "SHARE")]
    pub corrupt: Option<Share>,
    /// Give corrupted frames a right checksum of TCP, UDP or SCTP, so that the receiver takes them.
    #[arg(long, requires = "corrupt")]
    pub mend_checksum: bool,
    /// Forward for the first time, lose everything for the second, and so on: 2s/500ms. From the device's start.
    #[arg(long, value_name = "WELL/ILL", value_parser = cycle)]
    pub flap: Option<Cycle>,
    /// Forward for the first time, hold everything for the second and then let all of it out at once, and so on: 2s/500ms,
    /// 0/3s.
    #[arg(long, value_name = "WELL/ILL", value_parser = cycle)]
    pub freeze: Option<Cycle>,
    /// Copies of each frame that go back where it came from.
    #[arg(long = "loop", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub come_back: Option<u32>,
    /// Which direction this happens in: from the first interface to the second (there), back, or both.
    #[arg(long, value_name = "WHICH", default_value = "both")]
    pub direction: Which,
    /// Draw the frames of each share at random, rather than spread them evenly.
    #[arg(long)]
    pub random: bool,
    /// Key of all that is drawn.
    #[arg(long = "fault-seed", value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Bytes that may wait in each direction; what finds no room is lost, and that is said.
    #[arg(long, value_name = "BYTES", value_parser = parse_count, default_value = "256M")]
    pub buffer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    Both,
    There,
    Back,
}

fn cycle(text: &str) -> Result<Cycle, String> {
    parse_cycle(text, |time| parse_duration(time).ok()).map_err(|error| error.to_string())
}

fn shift(text: &str) -> Result<Shift, String> {
    parse_shift(text, |time| parse_duration(time).ok()).map_err(|error| error.to_string())
}

/// Faults alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    faults: Faults,
}

/// Reads `delay 500us loss 1%` or `delay=500us,loss=1%`: the options of `netdyno impair`, their dashes left out.
pub fn words(text: &str) -> Result<Faults, String> {
    let command = Words::command();
    let names: Vec<&str> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
    let parts =
        text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '=')).filter(|word| !word.is_empty());
    let dashed = parts.map(|word| match names.contains(&word) {
        true => format!("--{word}"),
        false => word.to_owned(),
    });
    Words::try_parse_from(dashed).map(|words| words.faults).map_err(|error| {
        let said = error.to_string();
        let lines = said.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
        let first = lines.collect::<Vec<_>>().join(" ");
        let first = first.trim_start_matches("error: ");
        format!("{first}. Write what `netdyno impair --help` lists, without dashes: delay 500us loss 1%")
    })
}

impl Faults {
    /// What it comes to in the direction of this number: 0 from the first interface to the second.
    pub fn plan(&self, direction: usize) -> Plan {
        match (self.direction, direction) {
            (Which::There, 1) | (Which::Back, 0) => return Plan::default(),
            _ => {}
        }
        Plan {
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            keep_order: self.keep_order,
            loss: self.loss,
            duplicate: self.duplicate,
            copies: self.copies,
            reorder: self.reorder,
            shift: self.reorder_by,
            corrupt: self.corrupt,
            mend: self.mend_checksum,
            flap: self.flap,
            freeze: self.freeze,
            come_back: self.come_back.unwrap_or(0),
            random: self.random,
            seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_written_with_dashes_or_without() {
        let faults = words("delay=10ms,jitter=1ms loss 1/3 random flap 2s/500ms reorder 1% reorder-by 200us")
            .expect("faults");
        let plan = faults.plan(0);
        assert_eq!((plan.delay, plan.jitter), (Duration::from_millis(10), Duration::from_millis(1)));
        assert!(plan.random && plan.loss == "1/3".parse().ok() && plan.flap.is_some());
        assert_eq!(plan.shift, Shift::Time(Duration::from_micros(200)));
        assert_eq!(
            words("--delay 10ms direction back").expect("faults").plan(0),
            Plan { seed: 0, ..Plan::default() }
        );
        assert_eq!(words("").expect("none").plan(1), Plan { seed: 1, ..Plan::default() });
        for bad in [
            "delay",
            "delay 5",
            "lose 1%",
            "jitter 1ms",
            "loss 200%",
            "flap 2s",
            "copies 3",
            "reorder 1% reorder-by 0",
        ] {
            let error = words(bad).expect_err(bad);
            assert!(error.contains("netdyno impair --help"), "{error}");
        }
    }
}
