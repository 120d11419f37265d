//! Words and options that are read as something else than they are.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use wire::proto::Protocol;

/// Layers of a packet as words of their own: the one before was taken for the whole packet.
pub(super) fn layers(verb: &str, typed: &str, words: &[String], at: usize) -> Option<String> {
    let own = words.get(at..)?;
    let place = own.iter().position(|word| word == typed)?;
    if Protocol::by_name(typed).is_none() || !matches!(verb, "send" | "craft" | "trial") {
        return None;
    }
    let before = own.get(place.checked_sub(1)?).filter(|word| Protocol::by_name(word).is_some())?;
    Some(format!("a packet's layers are one word, with / between them: '{before}/{typed}'"))
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
