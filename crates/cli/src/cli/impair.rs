//! `netdyno impair`, and the same faults in a lab's device, where they are written without dashes.

use super::{Output, readable, word};
use clap::{Args, CommandFactory, Parser};
use impair::Share;
use job::impaired::{cycle, shift};
use spec::{Direction, Written};
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Impair {
    /// The two interfaces. What arrives on one leaves by the other.
    #[arg(long, num_args = 2, required = true, value_names = ["IFACE", "IFACE"])]
    pub between: Vec<String>,
    #[command(flatten)]
    pub faults: Faults,
    /// Stay for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
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
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Written<Duration>>,
    /// As much more or less, evenly drawn for each frame. Frames overtake each other; see --keep-order.
    #[arg(long, value_name = "TIME", requires = "delay")]
    pub jitter: Option<Written<Duration>>,
    /// With --jitter: no frame leaves before one that arrived earlier.
    #[arg(long, requires = "jitter")]
    pub keep_order: bool,
    /// Frames that are lost: 1%, 1/1000, 100%. Exactly so many and evenly spread (of 1% frame 1, 101, ...), as all shares
    /// here, unless --random.
    #[arg(long, value_name = "SHARE", value_parser = readable::<Share>)]
    pub loss: Option<String>,
    /// Frames that leave twice, of those not lost.
    #[arg(long, value_name = "SHARE", value_parser = readable::<Share>)]
    pub duplicate: Option<String>,
    /// Copies of a duplicated frame besides itself: a frame that circles.
    #[arg(long, value_name = "N", requires = "duplicate", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub copies: u32,
    /// Frames that are put back behind later ones, as --reorder-by says.
    #[arg(long, value_name = "SHARE", value_parser = readable::<Share>)]
    pub reorder: Option<String>,
    /// How far: behind so many later frames (3; a second at most), or by a time (200us).
    #[arg(long, value_name = "N|TIME", requires = "reorder", default_value = "3", value_parser = |text: &str| shift(text).map(|_| text.to_owned()))]
    pub reorder_by: String,
    /// Frames of which one bit of the payload flips (not of a test frame's signature, where there is other payload).
    #[arg(long, value_name = "SHARE", value_parser = readable::<Share>)]
    pub corrupt: Option<String>,
    /// Give corrupted frames a right checksum of TCP, UDP or SCTP, so that the receiver takes them.
    #[arg(long, requires = "corrupt")]
    pub mend_checksum: bool,
    /// Forward for the first time, lose everything for the second, and so on: 2s/500ms. From the device's start.
    #[arg(long, value_name = "WELL/ILL", value_parser = |text: &str| cycle(text).map(|_| text.to_owned()))]
    pub flap: Option<String>,
    /// Forward for the first time, hold everything for the second and then let all of it out at once, and so on: 2s/500ms,
    /// 0/3s.
    #[arg(long, value_name = "WELL/ILL", value_parser = |text: &str| cycle(text).map(|_| text.to_owned()))]
    pub freeze: Option<String>,
    /// Copies of each frame that go back where it came from.
    #[arg(long = "loop", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub come_back: Option<u32>,
    /// Which direction this happens in: from the first interface to the second (there), back, or both.
    #[arg(long, value_name = "WHICH", default_value = "both", value_parser = word::<Direction>())]
    pub direction: Direction,
    /// Draw the frames of each share at random, rather than spread them evenly.
    #[arg(long)]
    pub random: bool,
    /// Key of all that is drawn.
    #[arg(long = "fault-seed", alias = "seed", value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Bytes that may wait in each direction; what finds no room is lost, and that is said.
    #[arg(long, value_name = "BYTES", default_value = "256M")]
    pub buffer: Written<u64>,
}

/// Faults alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    faults: Faults,
}

/// Reads `delay 500us loss 1%` or `delay=500us,loss=1%`: the options of `netdyno impair`, their dashes left out.
pub fn words(text: &str) -> Result<spec::Faults, String> {
    let command = Words::command();
    let names: Vec<&str> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
    let parts =
        text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '=')).filter(|word| !word.is_empty());
    let dashed = parts.map(|word| match names.contains(&word) {
        true => format!("--{word}"),
        false => word.to_owned(),
    });
    Words::try_parse_from(dashed).map(|words| words.faults.into()).map_err(|error| {
        let said = error.to_string();
        let lines = said.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
        let first = lines.collect::<Vec<_>>().join(" ");
        let first = first.trim_start_matches("error: ");
        format!("{first}. Write what `netdyno impair --help` lists, without dashes: delay 500us loss 1%")
    })
}

impl From<Faults> for spec::Faults {
    fn from(args: Faults) -> spec::Faults {
        let Faults {
            delay,
            jitter,
            keep_order,
            loss,
            duplicate,
            copies,
            reorder,
            reorder_by,
            corrupt,
            mend_checksum,
            flap,
            freeze,
            come_back,
            direction,
            random,
            seed,
            buffer,
        } = args;
        spec::Faults {
            delay,
            jitter,
            keep_order,
            loss,
            copies: duplicate.is_some().then_some(copies),
            duplicate,
            reorder_by: reorder.is_some().then_some(reorder_by),
            reorder,
            corrupt,
            mend_checksum,
            flap,
            freeze,
            come_back,
            direction,
            random,
            seed: Some(seed),
            buffer: Some(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use impair::{Plan, Shift};
    use job::impaired::plan;

    #[test]
    fn faults_are_written_with_dashes_or_without() {
        let planned = |text: &str, direction| plan(&words(text).expect(text), direction).expect(text);
        let plan =
            planned("delay=10ms,jitter=1ms loss 1/3 random flap 2s/500ms reorder 1% reorder-by 200us", 0);
        assert_eq!((plan.delay, plan.jitter), (Duration::from_millis(10), Duration::from_millis(1)));
        assert!(plan.random && plan.loss == "1/3".parse().ok() && plan.flap.is_some());
        assert_eq!(plan.shift, Shift::Time(Duration::from_micros(200)));
        assert_eq!(planned("--delay 10ms direction back", 0), Plan { seed: 0, ..Plan::default() });
        assert_eq!(planned("", 1), Plan { seed: 1, ..Plan::default() });
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
