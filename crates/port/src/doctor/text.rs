//! A diagnosis on a screen of 80 columns.

use std::fmt::Write as _;

use super::{Area, Diagnosis, Finding, State};

const WIDTH: usize = 80;
/// Where what was found starts: after the state and the topic.
const COLUMN: usize = 26;

const AREAS: [(Area, &str); 6] = [
    (Area::Program, "Program"),
    (Area::Kernel, "Kernel"),
    (Area::Privileges, "Privileges"),
    (Area::Processor, "Processor"),
    (Area::Settings, "Settings"),
    (Area::Interface, "Interface"),
];

pub fn render(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for (area, title) in AREAS {
        let mut findings = diagnosis.findings.iter().filter(|finding| finding.area == area).peekable();
        if findings.peek().is_none() {
            continue;
        }
        let name = diagnosis.interface.as_deref().filter(|_| area == Area::Interface);
        let _ = writeln!(text, "{title}{}", name.map(|name| format!(" {name}")).unwrap_or_default());
        for finding in findings {
            write_finding(&mut text, finding);
        }
        text.push('\n');
    }
    let count = |state| diagnosis.findings.iter().filter(|finding| finding.state == state).count();
    let _ = writeln!(
        text,
        "{} ok, {} to note, {} bad, {} unknown. What stands after $ is the command to type.",
        count(State::Good),
        count(State::Note),
        count(State::Bad),
        count(State::Unknown)
    );
    if !diagnosis.outlook.is_empty() {
        text.push_str("\nTo expect, in 64-byte frames a second from one core (scaled from the reference\nmachine by the time for a live frame):\n");
    }
    for outlook in &diagnosis.outlook {
        let rate = outlook.frames_per_second.map_or_else(|| "none".to_owned(), mpps);
        let _ = write!(text, "  {:<8}{rate:<12}", outlook.engine);
        write_wrapped(&mut text, 22, 22, &outlook.why);
    }
    text
}

fn mpps(frames: f64) -> String {
    if frames < 1e5 { format!("{:.0} kpps", frames / 1e3) } else { format!("{:.1} Mpps", frames / 1e6) }
}

fn write_finding(text: &mut String, finding: &Finding) {
    let state = match finding.state {
        State::Good => "ok",
        State::Note => "note",
        State::Bad => "BAD",
        State::Unknown => "?",
    };
    let head = format!("  {state:<5} {:<17} ", finding.topic);
    text.push_str(&head);
    write_wrapped(text, head.chars().count(), COLUMN, &format!("{} - {}", finding.found, finding.means));
    if let Some(command) = &finding.command {
        // In one piece, so that it can be copied; a long one starts further left.
        let start = COLUMN.min(WIDTH.saturating_sub(command.chars().count() + 2)).max(2);
        let _ = writeln!(text, "{}$ {command}", " ".repeat(start));
    }
}

/// Writes words from the current column on, and goes on at `indent` in the next lines.
fn write_wrapped(text: &mut String, column: usize, indent: usize, words: &str) {
    let mut at = column;
    let mut first = true;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if !first && at + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            at = indent;
        } else if !first {
            text.push(' ');
            at += 1;
        }
        text.push_str(word);
        at += length;
        first = false;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_at_eighty_columns_and_commands_stay_in_one_piece() {
        let long = "word ".repeat(40);
        let finding = Finding::new(Area::Kernel, "topic", State::Bad, "found", long.trim())
            .command("sudo a-command-of-more-than-fifty-four-letters --with an-argument");
        let mut text = String::new();
        write_finding(&mut text, &finding);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("  BAD   topic             found - word word"), "{text}");
        assert!(
            text.contains("$ sudo a-command-of-more-than-fifty-four-letters --with an-argument\n"),
            "{text}"
        );
    }
}
