//! Words that stand without the option they belong to: interfaces, ports and addresses, as other tools take them.

use super::{foreign, line};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use wire::proto::Protocol;

/// The line in which a word has the option it belongs to.
pub(super) fn word(
    verb: &str,
    command: &Command,
    typed: &str,
    words: &[String],
    at: usize,
) -> Option<String> {
    if typed.starts_with('-') || typed.contains('=') {
        return None;
    }
    let own = words.get(at..)?;
    let place = own.iter().position(|word| word == typed)?;
    // The words that stand behind one another, from the one that was refused on.
    let loose: Vec<&String> = own.get(place..)?.iter().take_while(|word| !word.starts_with('-')).collect();
    let before = words.get(1..at)?;
    let with = |option: &[&str], count: usize, says: &str| {
        let (first, rest) = (own.get(..place)?, own.get(place + count..)?);
        let mut behind: Vec<String> = first.to_vec();
        behind.extend(option.iter().map(|word| (*word).to_owned()));
        behind.extend(rest.iter().cloned());
        Some(format!("{says}: {}", line(before, &[], &behind)))
    };
    if Protocol::by_name(typed).is_some() && matches!(verb, "send" | "craft" | "trial") {
        // The layer before it was taken for the whole packet.
        let before = own.get(place.checked_sub(1)?).filter(|word| !word.starts_with('-'))?;
        return Some(format!("a packet's layers are one word, with / between them: '{before}/{typed}'"));
    }
    // An option without its dashes, or one whose like is there.
    let there = ["--on", "--lab", "--between", "--listen"];
    if foreign::nearly(command, typed).is_some() || own.iter().any(|word| there.contains(&word.as_str())) {
        return None;
    }
    match verb {
        "measure" | "reflect" if loose.len() == 1 => with(&["--on", typed], 1, "the interface is an option"),
        "bridge" | "impair" if loose.len() == 2 => {
            with(&["--between", typed, loose.get(1)?], 2, "both interfaces are an option")
        }
        "collect" if loose.len() == 1 => {
            let listen = if typed.bytes().all(|byte| byte.is_ascii_digit()) {
                format!("0.0.0.0:{typed}")
            } else {
                typed.to_owned()
            };
            with(&["--listen", &listen], 1, "where records come to is an option")
        }
        "send" if is_name(typed) => with(&["--on", typed], 1, "the interface is an option"),
        _ if (verb == "trial" || verb.starts_with("search ")) && is_name(typed) => {
            // The first of two was taken for the packet.
            let packet =
                own.get(..place)?.iter().rposition(|word| is_name(word) && !is_value(command, own, word))?;
            let on = own.get(packet)?;
            let mut behind: Vec<String> = own.get(..packet)?.to_vec();
            behind.extend(["--on", on.as_str(), "--measure", typed].map(str::to_owned));
            behind.extend(own.get(packet + 1..place)?.iter().chain(own.get(place + 1..)?).cloned());
            Some(format!("interfaces are options: {}", line(before, &[], &behind)))
        }
        _ => None,
    }
}

/// Whether it may name an interface: no layer, no rate, no file.
fn is_name(word: &str) -> bool {
    if Protocol::by_name(word).is_some() {
        return false;
    }
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@'))
}

/// Whether a word is the value of an option before it.
fn is_value(command: &Command, words: &[String], word: &str) -> bool {
    let before = words.iter().position(|other| other == word).and_then(|at| words.get(at.checked_sub(1)?));
    before
        .and_then(|option| foreign::named(command, option))
        .is_some_and(|arg| arg.get_action().takes_values())
}

/// `clone IFACE:PORT HOST:PORT`, whose two words were taken for captures.
pub(super) fn server_and_target(verb: &str, words: &[String], at: usize) -> Option<String> {
    if !matches!(verb, "clone" | "clone doctor") {
        return None;
    }
    let own = words.get(at..)?;
    let [from, to] = own.get(..2)? else { return None };
    let ends_with_port = |word: &String| {
        word.rsplit_once(':').is_some_and(|(before, port)| {
            !before.is_empty()
                && !before.starts_with('-')
                && !port.is_empty()
                && port.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    if !(ends_with_port(from) && ends_with_port(to)) {
        return None;
    }
    let line = line(words.get(1..at)?, &["--from", from, "--to", to], own.get(2..)?);
    Some(format!("the server and the target are options: {line}"))
}

/// `-V 9` at the probe: nProbe's version of NetFlow, and not a question for ours.
pub(super) fn no_version(
    error: &clap::Error,
    verb: &str,
    command: &Command,
    words: &[String],
) -> Option<clap::Error> {
    if error.kind() != ErrorKind::DisplayVersion || verb != "probe" {
        return None;
    }
    let at = words.iter().position(|word| word.starts_with("-V"))?;
    let value = match words.get(at)?.strip_prefix("-V")? {
        "" => words.get(at + 1)?,
        value => value,
    };
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(command);
    error.insert(ContextKind::InvalidArg, ContextValue::String("-V".to_owned()));
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn a_word_without_its_option_is_told_the_line_that_has_it() {
        for (line, said) in [
            ("measure rx0", "netdyno measure --on rx0"),
            ("measure eth0 --duration 1s", "netdyno measure --on eth0 --duration 1s"),
            ("reflect eth1", "netdyno reflect --on eth1"),
            ("bridge eth1 eth2", "netdyno bridge --between eth1 eth2"),
            ("impair eth1 eth2 --delay 1ms", "netdyno impair --between eth1 eth2 --delay 1ms"),
            ("collect 2055", "netdyno collect --listen 0.0.0.0:2055"),
            ("collect 10.0.0.1:2055 --count 5", "netdyno collect --listen 10.0.0.1:2055 --count 5"),
            ("send ipv4/udp eth1 --rate 1kpps", "netdyno send ipv4/udp --on eth1 --rate 1kpps"),
            ("trial eth1 eth2 --rate 1kpps", "netdyno trial --on eth1 --measure eth2 --rate 1kpps"),
            (
                "trial --size 64 eth1 eth2 --rate 1kpps",
                "netdyno trial --size 64 --on eth1 --measure eth2 --rate 1kpps",
            ),
            ("search throughput eth1 eth2", "netdyno search throughput --on eth1 --measure eth2"),
            ("clone eth0:80 10.0.0.2:80", "netdyno clone --from eth0:80 --to 10.0.0.2:80"),
            (
                "clone eth0:80 [2001:db8::2]:80 --dry-run",
                "netdyno clone --from eth0:80 --to '[2001:db8::2]:80' --dry-run",
            ),
        ] {
            let told = told(&format!("netdyno {line}"));
            assert!(told.contains(said), "{line}: {told}");
        }
        // What is no interface is left alone.
        for line in
            ["send ipv4/udp 10.0.0.1 --rate 1kpps", "trial ipv4/udp ipv4/tcp --rate 1kpps", "bridge eth1"]
        {
            assert!(!told(&format!("netdyno {line}")).contains("option: netdyno"), "{line}");
        }
    }

    #[test]
    fn a_version_of_netflow_is_no_question_for_ours() {
        for (line, said) in [
            ("probe a.pcap --export h:1 -V 9", "netdyno probe a.pcap --export h:1 --format 9"),
            ("probe a.pcap --export h:1 -V10", "netdyno probe a.pcap --export h:1 --format ipfix"),
            ("probe -i eth0 -n h:1 -V 9", "netdyno probe --on eth0 --export h:1 --format 9"),
        ] {
            let told = told(&format!("netdyno {line}"));
            assert!(told.contains(said), "{line}: {told}");
        }
        for line in ["probe -V", "send -V", "probe --version"] {
            assert!(told(&format!("netdyno {line}")).starts_with("netdyno-"), "{line}");
        }
    }
}
