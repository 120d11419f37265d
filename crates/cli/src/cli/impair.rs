//! Faults of a lab's device: the options of `netdyno impair`, written without dashes.

use super::declared::Asked;
use clap::{CommandFactory, Parser};
use spec::Faults;

/// Faults alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    faults: Asked<Faults>,
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
    Words::try_parse_from(dashed).map(|words| words.faults.0).map_err(|error| {
        let said = error.to_string();
        let lines = said.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
        let first = lines.collect::<Vec<_>>().join(" ");
        let first = first.trim_start_matches("error: ");
        format!("{first}. Write what `netdyno impair --help` lists, without dashes: delay 500us loss 1%")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use impair::{Plan, Shift};
    use job::impaired::plan;
    use std::time::Duration;

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
