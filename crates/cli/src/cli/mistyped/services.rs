//! What is typed at the verbs that serve, watch and look back, and at those with verbs of their own below them. Their users come
//! from web servers, load generators of HTTP, dropwatch and dashboards.

use super::{Called, line};
use clap::Command;
use report::units::shell_word;

const NO_PORT: &str = "an agent has no port: its client starts it, as by ssh HOST netdyno agent --stdio, or it dials out by --nats URL; \
    jobs over HTTP are taken by `netdyno serve`";
const FOREGROUND: &str = "it stays in the foreground: put `&` behind it, or let systemd start it";
const ALLOWED: &str = "which interfaces jobs may use is --allow-interface PATTERN";
const PRINTS_ONCE: &str = "it prints once, at the end: --duration TIME, or Ctrl-C";
const AS_JSON: &str = "for other programs there is --json; a test's own drops are in the result of `netdyno send --trace-drops`";
const SHOWN_ALONE: &str = "drops of one kind alone are --filter 'udp and port 53', or 'reason NAME'";
const PAGE: &str = "the page is written by --page FILE, all values by --json";
const HOW_OLD: &str = "what counts is what is not older: --since 30d";
const OWN_FIGURES: &str =
    "both directions are counted at --on IFACE; a server's side is counted by `netdyno sessions serve`";
const ANSWERS: &str = "requests are filled up by --request-size BYTES; answers are the server's: `netdyno sessions serve --response-size`";
const NAMED: &str = "an agent is named with the command that reaches it, ssh or another: --agent NAME='COMMAND' (docs/many-machines.md)";

/// As the table above this module, for these verbs.
pub(super) const CALLED: &[Called] = &[
    (&["serve", "agent"], "--on", ALLOWED),
    (&["serve", "agent"], "--interface", ALLOWED),
    (&["serve", "agent"], "-i", ALLOWED),
    (&["serve", "agent"], "--rate", "the most that jobs may send is --max-rate RATE"),
    (&["serve", "agent"], "-d", FOREGROUND),
    (&["serve", "agent"], "--daemon", FOREGROUND),
    (&["serve", "agent"], "-D", FOREGROUND),
    (&["serve"], "--token", "a command line is seen by all users: the token is in a file, --token-file FILE"),
    (
        &["serve"],
        "--password",
        "a command line is seen by all users: the password is in a file, --token-file FILE",
    ),
    (&["serve"], "--auth", "requests have to bring what is in a file: --token-file FILE"),
    (&["serve"], "--tls", "TLS needs a certificate and its key: --cert FILE --key FILE"),
    (&["serve"], "--https", "TLS needs a certificate and its key: --cert FILE --key FILE"),
    (&["serve"], "--ssl", "TLS needs a certificate and its key: --cert FILE --key FILE"),
    (&["serve"], "--stdio", "jobs over a pipe are carried out by `netdyno agent --stdio`"),
    (&["serve"], "--nats", "an agent dials out: `netdyno agent --nats`"),
    (&["serve"], "--root", "folders that jobs may read files of are --folder DIR"),
    (&["serve"], "--report", "each run has its report at /api/v1/runs/ID/report.html (docs/http.md)"),
    (&["agent"], "--listen", NO_PORT),
    (&["agent"], "--port", NO_PORT),
    (&["agent"], "-p", NO_PORT),
    (&["agent"], "--bind", NO_PORT),
    (&["agent"], "--name", "its name at a NATS server is --id NAME"),
    (&["agents"], "--host", NAMED),
    (&["agents"], "-H", NAMED),
    (&["agents"], "--ssh", NAMED),
    (&["send", "replay", "trial", "search", "endpoint", "measure"], "--ssh", NAMED),
    (&["drops"], "--report", AS_JSON),
    (&["drops"], "--csv", AS_JSON),
    (&["drops"], "--write", AS_JSON),
    (&["drops"], "--watch", PRINTS_ONCE),
    (&["drops"], "--interval", PRINTS_ONCE),
    (&["drops"], "--live", PRINTS_ONCE),
    (&["drops"], "--measure", "the interface is --on IFACE"),
    (&["drops"], "--reason", SHOWN_ALONE),
    (&["drops"], "--port", SHOWN_ALONE),
    (&["drops"], "-p", SHOWN_ALONE),
    (&["drops"], "-f", SHOWN_ALONE),
    (&["drops"], "--udp", SHOWN_ALONE),
    (&["drops"], "--tcp", SHOWN_ALONE),
    (&["drops"], "--function", SHOWN_ALONE),
    (&["trend"], "--csv", PAGE),
    (&["trend"], "--report", PAGE),
    (&["trend"], "--write", PAGE),
    (&["trend"], "--plot", PAGE),
    (&["trend"], "--last", HOW_OLD),
    (&["trend"], "--count", HOW_OLD),
    (&["trend"], "--days", HOW_OLD),
    (&["trend"], "--from", HOW_OLD),
    (&["trend"], "--junit", "that is --format junit"),
    (&["trend"], "--markdown", "that is --format markdown"),
    (
        &["trend"],
        "--baseline",
        "a level that is meant begins with --since TIME: what was before counts for nothing",
    ),
    (&["trend"], "--against", "two results are compared by `netdyno compare`"),
    (&["trend"], "--fail", "exit status 1 where the newest result is worse is --check"),
    (&["trend"], "--strict", "exit status 1 where the newest result is worse is --check"),
    (&["sessions"], "--measure", OWN_FIGURES),
    (&["sessions"], "--size", ANSWERS),
    (
        &["sessions"],
        "--threads",
        "the kernel makes them, beside which one thread counts: how many are open is --in-flight N",
    ),
    (
        &["sessions"],
        "--cores",
        "the kernel makes them, beside which one thread counts: how many are open is --in-flight N",
    ),
    (&["sessions"], "--parallel", "how many are open at once is --in-flight N"),
    (&["sessions"], "--port", "the server's port stands behind its address: --to ADDRESS:PORT"),
    (&["sessions serve"], "--port", "the port stands behind an address: --listen ADDRESS:PORT"),
    (&["sessions serve"], "-p", "the port stands behind an address: --listen ADDRESS:PORT"),
    (&["sessions serve"], "--to", "what clients connect to is --listen ADDRESS:PORT"),
    (&["sessions serve"], "--size", "bytes of an answer's body are --response-size BYTES"),
    (
        &["sessions"],
        "--keepalive",
        "several requests of each connection are --requests N; held ones are --connections N",
    ),
    (&["sessions"], "--server", "it runs at the other end: `netdyno sessions serve`"),
    (&["sessions"], "-s", "it runs at the other end: `netdyno sessions serve`"),
    (&["sessions"], "--tls", "there is no TLS: the kernel says HTTP/1.1, in plain"),
    (&["sessions"], "--https", "there is no TLS: the kernel says HTTP/1.1, in plain"),
    (&["plugin"], "--lang", "the language is --rust, --go or --c"),
    (&["plugin"], "--language", "the language is --rust, --go or --c"),
    (
        &["plugin"],
        "--name",
        "the plugin is called as its folder is: `netdyno plugin new` with the folder and a language",
    ),
    (&["lab"], "--bandwidth", "the most that the device forwards is --bottleneck RATE"),
    (&["lab"], "--rate", "the most that the device forwards is --bottleneck RATE"),
    (&["lab"], "--bw", "the most that the device forwards is --bottleneck RATE"),
    (&["lab"], "--delay", "faults are --impair 'delay 10ms'"),
    (&["lab"], "--latency", "faults are --impair 'delay 10ms'"),
    (&["lab"], "--jitter", "faults are --impair 'delay 10ms jitter 1ms'"),
    (
        &["trial"],
        "--loss",
        "what it has to keep to pass is --goal loss=SHARE; a lab's device loses by --lab-loss SHARE",
    ),
    (
        &["measure"],
        "--size",
        "frames of all sizes are counted; bytes of each that are kept are --capture-snap",
    ),
    (&["measure"], "--rate", "what arrives is counted at any rate; frames are sent by `netdyno send --rate`"),
    (
        &["replay"],
        "--random-ip",
        "each pass has other addresses by --unique-ip; scrambled ones are --scramble-ip SEED",
    ),
    (
        &["replay"],
        "--randomize-ip",
        "each pass has other addresses by --unique-ip; scrambled ones are --scramble-ip SEED",
    ),
    (
        &["send", "replay", "trial", "search", "measure", "endpoint", "sessions"],
        "--format",
        "results are printed by --json, --csv or --get FIGURE",
    ),
    (&["live"], "--server", "the server is --to HOST:PORT"),
    (&["live"], "--host", "the server is --to HOST:PORT"),
    (&["live"], "--target", "the server is --to HOST:PORT"),
];

/// Words in the place of a verb below another one: what was meant.
const BELOW: &[(&str, &[&str], &str)] = &[
    (
        "agents",
        &["list", "ls", "status", "show", "ping", "test", "doctor", "info", "hosts"],
        "agents are looked at by: netdyno agents check --inventory FILE",
    ),
    (
        "agents",
        &["run", "start", "send", "exec", "job", "jobs"],
        "a job is begun at agents by its own verb: netdyno send ipv4/udp --on eth1@lab1 --measure eth2@lab2 --rate 1kpps --inventory FILE",
    ),
    (
        "agents",
        &["add", "register", "new", "deploy", "install", "copy"],
        "agents stand in a file, --inventory FILE, or are named by --agent; --agents-copy copies netdyno there (docs/many-machines.md)",
    ),
    (
        "agents",
        &["connect", "ssh", "attach", "join"],
        "one at a NATS server is reached by: netdyno agents reach NAME --nats URL",
    ),
    (
        "plugin",
        &["run", "send", "start", "exec"],
        "a plugin is sent by: netdyno send --plugin dns --lab --rate 1kpps --count 100",
    ),
    (
        "plugin",
        &["show", "describe", "help", "options", "explain"],
        "what it does, and its options: netdyno plugin info dns",
    ),
    (
        "plugin",
        &["create", "init", "begin", "make", "scaffold"],
        "one of your own is begun by: netdyno plugin new myplugin --rust",
    ),
    (
        "plugin",
        &["install", "add", "load", "build", "compile"],
        "a module is named by its path where it is sent: netdyno send --plugin ./myplugin.wasm --lab; netdyno plugin check looks at it",
    ),
];

/// What was meant by a word where a verb below another one should be.
pub(super) fn below(verb: &str, word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    if verb == "plugin" && plugin::find(&word).is_ok() {
        return Some(format!("what it does, and its options: netdyno plugin info {word}"));
    }
    BELOW
        .iter()
        .find(|(of, typed, _)| *of == verb && typed.contains(&word.as_str()))
        .map(|(_, _, says)| (*says).to_owned())
}

/// What to type in place of an argument that there is not, where the words around it say it.
pub(super) fn option(
    verb: &str,
    command: &Command,
    typed: &str,
    words: &[String],
    at: usize,
) -> Option<String> {
    let own = words.get(at..)?;
    if ["--output", "--out", "-o", "-f", "--output-format"].contains(&typed) {
        let value = own.iter().skip_while(|word| *word != typed).nth(1).map(String::as_str);
        let printed = value.filter(|value| ["json", "csv", "json-lines"].contains(value))?;
        let has = command.get_arguments().any(|arg| arg.get_long() == Some(printed));
        return has.then(|| format!("that is --{printed}"));
    }
    match verb {
        "serve" if typed == "--lab" => {
            Some("each job says where it runs, in a lab of its own too: leave it out".to_owned())
        }
        "serve" if !typed.starts_with('-') => match typed {
            "start" | "run" => Some("leave it out: netdyno serve".to_owned()),
            "stop" | "status" => Some("it is in the foreground, and Ctrl-C or SIGTERM ends it".to_owned()),
            _ => None,
        },
        "sessions" if typed == "--lab" => {
            let rest: Vec<String> = own.iter().filter(|word| *word != "--lab").cloned().collect();
            let on: &[&str] = &["sessions", "--on", "tx0", "--to", "198.18.0.2"];
            let line = line(&[], on, &rest).replacen("netdyno ", "", 1);
            Some(format!(
                "in a lab, with a server at the other end: netdyno lab{} -- netdyno {line}",
                far_end(verb)
            ))
        }
        "iperf3" if !typed.starts_with('-') => {
            Some(format!("iperf3 has the server behind -c: netdyno iperf3 -c {}", shell_word(typed)))
        }
        // What a verb below it has.
        "agents" => {
            let name = typed.split('=').next().unwrap_or(typed);
            let long = name.strip_prefix("--")?;
            let has = |below: &&Command| below.get_arguments().any(|arg| arg.get_long() == Some(long));
            let below = command.get_subcommands().find(has)?;
            let line = line(words.get(1..at)?, &[below.get_name()], own);
            Some(format!("say first what to do: {line}"))
        }
        _ => None,
    }
}

/// What a lab needs at the other end, for an example of a verb.
pub(super) fn far_end(verb: &str) -> &'static str {
    if verb == "sessions" { " --server 'netdyno sessions serve --on rx0'" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn verbs_that_serve_watch_and_look_back_say_what_they_call_it() {
        for (line, said) in [
            ("serve --port 8080", "`--listen`: netdyno serve --listen 127.0.0.1:8080"),
            ("serve -p 8080", "netdyno serve --listen 127.0.0.1:8080"),
            ("serve 8080", "netdyno serve --listen 127.0.0.1:8080"),
            ("serve 0.0.0.0:8080", "netdyno serve --listen 0.0.0.0:8080"),
            ("serve --bind [::1]:80", "netdyno serve --listen '[::1]:80'"),
            ("serve --on eth1", "--allow-interface PATTERN"),
            ("serve --lab", "leave it out"),
            ("serve --tls cert.pem", "--cert FILE --key FILE"),
            ("serve --token x", "--token-file FILE"),
            ("serve --daemon", "put `&` behind it"),
            ("serve stop", "Ctrl-C"),
            ("agent --listen 0.0.0.0:4000", "ssh HOST netdyno agent --stdio"),
            ("agent --port 4000", "`netdyno serve`"),
            ("agent --on eth1", "--allow-interface PATTERN"),
            ("agent", "netdyno agent --stdio"),
            ("agent --nats tls://s:4222", "netdyno agent --nats tls://s:4222 --id lab1"),
            ("agents list", "netdyno agents check --inventory FILE"),
            ("agents run job.yaml", "netdyno send ipv4/udp --on eth1@lab1"),
            ("agents --inventory x.yaml", "say first what to do: netdyno agents check --inventory x.yaml"),
            ("agents check --host lab1", "--agent NAME='COMMAND'"),
            ("agents reach lab1", "netdyno agents reach lab1 --nats tls://server:4222"),
            ("drops lo", "the interface is an option: netdyno drops --on lo"),
            ("drops sleep 1", "netdyno drops -- sleep 1"),
            ("drops --report out", "--json"),
            ("drops --measure rx0", "--on IFACE"),
            ("drops --port 53", "--filter 'udp and port 53'"),
            ("drops -p 53", "--filter 'udp and port 53'"),
            ("drops --watch", "--duration TIME"),
            ("trend . --get latency_p99", "`--figure`: netdyno trend . --figure latency_p99"),
            ("trend . --metric latency_p99", "netdyno trend . --figure latency_p99"),
            ("trend . --threshold 5", "netdyno trend . --least 5%"),
            ("trend . --last 10", "--since 30d"),
            ("trend . --csv", "--json"),
            ("trend . --html out.html", "`--page`: netdyno trend . --page out.html"),
            ("sessions 198.18.0.2:80", "netdyno sessions --to 198.18.0.2:80 --on IFACE"),
            ("sessions http://198.18.0.2/ --on tx0", "netdyno sessions --to 198.18.0.2 --on tx0"),
            (
                "sessions --to 198.18.0.2",
                "netdyno lab --server 'netdyno sessions serve --on rx0' -- netdyno sessions --to 198.18.0.2 --on tx0",
            ),
            (
                "sessions --lab --rate 10kcps",
                "--server 'netdyno sessions serve --on rx0' -- netdyno sessions --on tx0 --to 198.18.0.2 --rate 10kcps",
            ),
            ("sessions --on a --to 10.0.0.2:80 -c 1000", "--in-flight 1000"),
            ("sessions --on a --to 10.0.0.2:80 -n 1000", "--count 1000"),
            ("sessions --on a --to 10.0.0.2:80 --number 1000", "--count 1000"),
            ("sessions --on a --to 10.0.0.2:80 --keepalive", "--requests N"),
            ("sessions --on a --to 10.0.0.2:80 --cps 1000", "--rate 1000cps"),
            ("sessions --on a --to 10.0.0.2:80 --measure b", "`netdyno sessions serve`"),
            ("sessions --on a --to 10.0.0.2:80 --size 100", "--request-size BYTES"),
            ("sessions --on a --to 10.0.0.2:80 --threads 4", "--in-flight N"),
            ("sessions serve", "netdyno sessions serve --on rx0"),
            ("sessions serve --on rx0 --port 80", "--listen ADDRESS:PORT"),
            ("plugin run dns", "netdyno send --plugin dns"),
            ("plugin show dns", "netdyno plugin info dns"),
            ("plugin new dns --lang rust", "--rust, --go or --c"),
            ("plugin new --language rust foo", "--rust, --go or --c"),
            ("lab --delay 10ms -- true", "--impair 'delay 10ms'"),
            ("lab --bandwidth 10mbps -- true", "--bottleneck RATE"),
            ("trial --lab --rate 1kpps --loss 1%", "--goal loss=SHARE"),
            ("replay a.pcap --lab --random-ip", "--unique-ip"),
            ("live a.pcap --on a 198.18.0.2:80", "--to 198.18.0.2:80"),
            ("send ipv4/udp --lab --output json", "that is --json"),
            ("trends out", "netdyno trend"),
            ("dropwatch", "netdyno drops"),
            ("dashboard", "netdyno serve"),
            ("nodes", "netdyno agents check"),
            ("cps", "netdyno sessions"),
            ("iperf3 198.18.0.2", "netdyno iperf3 -c 198.18.0.2"),
        ] {
            let told = told(&format!("netdyno {line}"));
            assert!(told.contains(said), "{line}: {told}");
            assert!(!told.contains("a similar"), "{line}: {told}");
        }
    }

    #[test]
    fn words_below_a_verb_are_none_of_its_verbs() {
        let root = crate::cli::help::command();
        for (verb, words, _) in BELOW {
            let command = root.find_subcommand(verb).expect(verb);
            for word in *words {
                assert!(command.find_subcommand(word).is_none(), "{verb} {word}");
            }
        }
    }
}
