//! What the kernel dropped, as text: one table of causes, what they mean, and what should be known of the count.

use crate::data::sections::drops::{Dropped, DroppedKind, Drops, meaning};
use crate::data::units::{count, counted, printable, time};
use crate::render::table::Table;

/// Rows beyond this are added up: what matters stands first.
const ROWS: usize = 40;

/// What was dropped in a while, for a terminal.
pub fn render(of: &Drops) -> String {
    let over = time(of.duration_ns);
    if of.frames + of.missed_frames == 0 {
        return format!("The kernel dropped no frame in {over}.\n{}", remarks(of));
    }
    let mut text = format!("The kernel dropped {} in {over}.\n\n", counted(of.frames, "frame"));
    text += &table(&of.drops, ROWS, false);
    let witnesses = witnesses(of.drops.iter().take(ROWS));
    if !witnesses.is_empty() {
        text += "\nWho counted them\n";
        for line in witnesses {
            text += &format!("  {line}\n");
        }
    }
    let meanings = meanings(of.drops.iter());
    if !meanings.is_empty() {
        text += "\nWhat it means\n";
        for line in meanings {
            text += &format!("  {line}\n");
        }
    }
    text + &remarks(of)
}

/// Function, reason, interface, what it was, how many, and when if that is asked for, in at most so many rows.
pub(crate) fn table(drops: &[Dropped], most: usize, when: bool) -> String {
    let mut table = Table::with_header(["function", "reason", "at", "what", "frames", "copies", "when"]);
    for one in drops.iter().take(most) {
        let copies = (one.copies > 0).then(|| count(one.copies));
        table.row(
            &one.function,
            [
                Some(printable(&one.reason)),
                at(one),
                what(one),
                Some(count(one.frames)),
                copies,
                when.then(|| from_to(one)),
            ],
        );
    }
    let rest: u64 = drops.iter().skip(most).map(|one| one.frames).sum();
    if drops.len() > most {
        let label = format!("{} more", counted((drops.len() - most) as u64, "row"));
        table.row(&label, [None, None, None, Some(count(rest)), None, None]);
    }
    table.to_string()
}

/// "1.00 s to 2.00 s": the kernel tells times of drops to the tick.
pub(crate) fn from_to(one: &Dropped) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!("{:.2} s to {:.2} s", seconds(one.first_ns), seconds(one.last_ns))
}

/// What each cause is called, differently from all others: "nf_hook_slow, NETFILTER_DROP (v1)".
pub(crate) fn labels(causes: &[&Dropped]) -> Vec<String> {
    let short = |one: &Dropped| {
        let at = one.interface.as_deref().map(|name| format!(" ({})", printable(name))).unwrap_or_default();
        printable(&one.cause()) + &at
    };
    let all: Vec<String> = causes.iter().map(|one| short(one)).collect();
    let named = causes.iter().zip(&all).map(|(one, name)| {
        // Numbers of namespaces differ from run to run.
        let is_alone = all.iter().filter(|other| *other == name).count() == 1;
        match namespace(one).filter(|_| !is_alone) {
            Some(namespace) => format!("{name} ({namespace})"),
            None => name.clone(),
        }
    });
    named.collect()
}

fn at(one: &Dropped) -> Option<String> {
    let name = one.interface.as_deref().map(printable);
    match (name, namespace(one)) {
        (Some(name), Some(namespace)) => Some(format!("{name} ({namespace})")),
        (name, namespace) => name.or(namespace),
    }
}

/// Nothing is said of the command's own.
fn namespace(one: &Dropped) -> Option<String> {
    if one.namespace_unknown {
        return Some("netns unknown".to_owned());
    }
    one.namespace.map(|number| format!("netns {number}"))
}

/// Stream, or protocol and port.
fn what(one: &Dropped) -> Option<String> {
    match (one.kind, &one.streams[..], &one.protocol, one.port) {
        (DroppedKind::Test, [only], ..) => Some(format!("stream {}", only.stream)),
        (DroppedKind::Test, streams, ..) if !streams.is_empty() => {
            Some(format!("{} streams", count(streams.len() as u64)))
        }
        (DroppedKind::Test, ..) => Some("test frames".to_owned()),
        (DroppedKind::OtherTest, ..) => Some("another test's".to_owned()),
        (_, _, Some(protocol), Some(port)) => Some(format!("{} port {port}", printable(protocol))),
        (_, _, Some(protocol), None) => Some(printable(protocol)),
        _ => None,
    }
}

/// What is known of the causes, each once, with its function and reason in front.
pub(crate) fn meanings<'d>(drops: impl Iterator<Item = &'d Dropped>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for one in drops {
        if let Some(meaning) = meaning(&one.function, &one.reason) {
            let line = format!("{}: {meaning}", printable(&one.cause()));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// What rules, queueing disciplines and CPUs counted of them, with function, reason and interface in front.
pub(crate) fn witnesses<'d>(drops: impl Iterator<Item = &'d Dropped>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for one in drops {
        let at = at(one).map(|at| format!(" at {at}")).unwrap_or_default();
        for said in one.witnesses() {
            let line = format!("{}{at}: {}", printable(&one.cause()), printable(&said));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

fn remarks(of: &Drops) -> String {
    let mut text = String::new();
    let mut say = |line: String| {
        text += if text.is_empty() { "\n" } else { "" };
        text += &format!("note: {line}\n");
    };
    if of.unlisted_frames > 0 {
        say(format!(
            "{} of them stand in no row: there were more causes than there is room for",
            count(of.unlisted_frames)
        ));
    }
    if of.missed_frames > 0 {
        say(format!(
            "{} more came while another drop was being counted on the same CPU; nothing else is known of them",
            counted(of.missed_frames, "drop")
        ));
    }
    if of.local_messages > 0 {
        say(format!(
            "{} between processes of this host (Unix sockets, netlink), freed unread, are not counted",
            counted(of.local_messages, "message")
        ));
    }
    of.notes.iter().for_each(|note| say(printable(note)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::drops::DroppedOfStream;

    fn dropped(function: &str, reason: &str, frames: u64) -> Dropped {
        Dropped { function: function.to_owned(), reason: reason.to_owned(), frames, ..Dropped::default() }
    }

    #[test]
    fn causes_stand_in_one_table_with_what_they_mean_once() {
        let stream = DroppedOfStream { stream: 3, frames: 12_000, ..DroppedOfStream::default() };
        let drops = Drops {
            duration_ns: 2_000_000_000,
            frames: 12_345,
            unlisted_frames: 5,
            drops: vec![
                Dropped {
                    kind: DroppedKind::Test,
                    streams: vec![stream],
                    interface: Some("dut0".to_owned()),
                    namespace: Some(42),
                    ..dropped("nf_hook_slow", "NETFILTER_DROP", 12_000)
                },
                Dropped {
                    protocol: Some("udp".to_owned()),
                    port: Some(5001),
                    ..dropped("__udp4_lib_rcv", "NO_SOCKET", 300)
                },
                Dropped { protocol: Some("udp".to_owned()), ..dropped("__udp4_lib_rcv", "NO_SOCKET", 40) },
            ],
            ..Drops::default()
        };
        let text = render(&drops);
        for wanted in [
            "dropped 12,345 frames in 2.00 s",
            "dut0 (netns 42)",
            "stream 3",
            "udp port 5001",
            "5 of them stand in no row",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert_eq!(text.matches("nobody listens").count(), 1, "{text}");
        let json = drops.to_json().expect("written");
        let again: Drops = serde_json::from_str(&json).expect("read");
        assert_eq!(again, drops);
        assert!(render(&Drops::default()).starts_with("The kernel dropped no frame"));
    }

    #[test]
    fn what_does_not_fit_is_added_up() {
        let many: Vec<Dropped> = (0..50).map(|n| dropped(&format!("f{n}"), "R", 2)).collect();
        let text = table(&many, 40, false);
        assert!(text.contains("10 rows more") && text.trim_end().ends_with("20"), "{text}");
    }
}
