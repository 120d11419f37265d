//! What the texts of a job reach, beside traffic: files, interfaces, addresses, programs.
//!
//! By the names of settings, whatever kind of job they are of. Who carries out jobs of others (`netdyno agent`) goes through all texts of
//! a job by it; a test of [`crate::Consent`] holds that each text of the schema is listed here or known to reach nothing.

use serde_json::Value;

/// What a setting is, as far as it reaches out of netdyno.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// A file whose words are shown to others: [`crate::Consent::read`].
    Secret,
    /// [`crate::Consent::addresses`]
    Address,
    /// [`crate::Consent::write`]
    Written,
    /// [`crate::Consent::command`]
    Command,
    /// [`crate::Consent::own_prefixes`]
    Prefix,
    /// An interface, which is not used where it carries others' traffic: [`crate::Consent::yes_disrupt`].
    Interface,
    /// A file of which only what has its layout is used: a capture's packets, a calibration's rates; or none but whether it is there.
    Parsed,
    /// The name of such a file, or something else: an expression or a scenario, a plugin or its module.
    Perhaps,
    /// Where peers come to.
    Listens,
    /// None of these.
    Word,
}

/// Those that reach something.
pub(crate) const REACHES: &[(&str, Reach)] = &[
    ("password_file", Reach::Secret),
    ("token_file", Reach::Secret),
    ("passphrase_file", Reach::Secret),
    ("key", Reach::Secret),
    ("url", Reach::Address),
    ("brokers", Reach::Address),
    ("data_host", Reach::Address),
    ("export", Reach::Address),
    ("host", Reach::Address),
    ("to", Reach::Address),
    ("noise_target", Reach::Address),
    ("send_to", Reach::Address),
    ("write", Reach::Written),
    ("file", Reach::Written),
    ("command", Reach::Command),
    ("source_prefix", Reach::Prefix),
    ("between", Reach::Interface),
    ("bind_dev", Reach::Interface),
    ("device", Reach::Interface),
    ("measure", Reach::Interface),
    ("on", Reach::Interface),
    ("yes_disrupt", Reach::Interface),
    ("calibration", Reach::Parsed),
    ("capture", Reach::Parsed),
    ("captures", Reach::Parsed),
    ("stop_file", Reach::Parsed),
    ("back", Reach::Perhaps),
    ("floor", Reach::Perhaps),
    ("name", Reach::Perhaps),
    ("sides", Reach::Perhaps),
    ("what", Reach::Perhaps),
    ("bind", Reach::Listens),
    ("collect", Reach::Listens),
    ("listen", Reach::Listens),
];

/// Calls `see` with each text of a job ([`crate::Job::to_value`]): its path in the job, what it reaches, and the text, which may be
/// changed. What is handed to a plugin reaches nothing, and is left out.
pub fn each_text(job: &mut Value, see: &mut dyn FnMut(&str, Reach, &mut String)) {
    below(job, "", Reach::Word, see);
}

fn below(value: &mut Value, path: &str, reach: Reach, see: &mut dyn FnMut(&str, Reach, &mut String)) {
    match value {
        Value::String(text) => see(path, reach, text),
        Value::Array(values) => {
            for (number, value) in values.iter_mut().enumerate() {
                below(value, &format!("{path}[{number}]"), reach, see);
            }
        }
        Value::Object(members) => {
            let is_clone = path.is_empty() && members.get("kind").is_some_and(|kind| kind == "clone");
            for (name, value) in members.iter_mut() {
                if name == "options" {
                    continue;
                }
                // A clone's key is a file, and Kafka's a word; how a clone captures is a word, and what `live` plays a file.
                let is_word = name == "key" && path.ends_with("kafka") || name == "capture" && is_clone;
                let reach = REACHES
                    .iter()
                    .find(|(listed, _)| listed == name && !is_word)
                    .map_or(Reach::Word, |(_, reach)| *reach);
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                below(value, &path, reach, see);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    #[test]
    fn what_has_the_name_of_a_file_and_is_a_word_reaches_nothing() {
        let seen = |text: &str| {
            let job = File::read(&format!("{{schema: netdyno.job/1, {text}}}"), "job")
                .expect("a job")
                .jobs
                .remove(0);
            let mut seen = Vec::new();
            each_text(&mut job.to_value().expect("text"), &mut |path, reach, text| {
                if path == "capture" {
                    seen.push(format!("{reach:?} {text}"));
                }
            });
            seen
        };
        let clone = "kind: clone, on: eth1, server: 192.0.2.1:80, to: 192.0.2.2:80";
        for how in ["packet-socket", "ring-buffer"] {
            assert_eq!(seen(&format!("{clone}, capture: {how}")), [format!("Word {how}")]);
        }
        assert_eq!(seen("kind: live, on: eth1, capture: a.pcap, to: 192.0.2.2:80"), ["Parsed a.pcap"]);
    }

    #[test]
    fn each_text_of_a_job_is_seen_with_its_path_and_may_be_changed() {
        let text = "{schema: netdyno.job/1, kind: replay, captures: [a.pcap, b.pcap], links: [{on: tx0, measure: rx0}], rate: 5pps, \
            meter: {capture: {file: got.pcapng}}}";
        let job = File::read(text, "job").expect("a job").jobs.remove(0);
        let mut value = job.to_value().expect("text");
        let mut seen = Vec::new();
        each_text(&mut value, &mut |path, reach, text| {
            if reach != Reach::Word {
                seen.push(format!("{path} {reach:?} {text}"));
            }
            if reach == Reach::Parsed {
                *text = format!("/there/{text}");
            }
        });
        seen.sort();
        let expected = [
            "captures[0] Parsed a.pcap",
            "captures[1] Parsed b.pcap",
            "links[0].measure Interface rx0",
            "links[0].on Interface tx0",
            "meter.capture.file Written got.pcapng",
        ];
        assert_eq!(seen, expected);
        assert_eq!(value["captures"][1], "/there/b.pcap");
    }

    #[test]
    fn a_clones_key_is_a_file_and_kafkas_is_none() {
        let text = "{schema: netdyno.job/1, kind: collect, listen: ['127.0.0.1:1'], kafka: {brokers: [a:1], topic: t, key: sampler}}";
        let mut value = File::read(text, "job").expect("a job").jobs.remove(0).to_value().expect("text");
        let mut seen = Vec::new();
        each_text(&mut value, &mut |path, reach, _| seen.push((path.to_owned(), reach)));
        assert!(seen.contains(&("kafka.key".to_owned(), Reach::Word)), "{seen:?}");
    }

    #[test]
    fn what_a_plugin_is_told_is_none_of_a_jobs_own_texts() {
        let text = "{schema: netdyno.job/1, kind: send, plugin: {name: dns-flood, options: {on: eth0, file: a}}, rate: 1pps}";
        let mut value = File::read(text, "job").expect("a job").jobs.remove(0).to_value().expect("text");
        let mut seen = Vec::new();
        each_text(&mut value, &mut |path, _, _| seen.push(path.to_owned()));
        assert!(seen.contains(&"plugin.name".to_owned()), "{seen:?}");
        assert!(!seen.iter().any(|path| path.contains("options")), "{seen:?}");
    }
}
