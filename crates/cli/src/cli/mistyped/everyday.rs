//! A whole command line out of one that says what it means otherwise: words that stand without their options (an interface, a
//! server, a rate), fields of packets as options, other tools' options. What a word is, its looks say; which option it has, the
//! verb's table. Whoever typed it gets a line to type as it stands: one that would itself be refused is never told.

use super::super::foreign::{self, fields};
use super::super::{Cli, help};
use super::line;
use clap::{Arg, ArgAction, Command, Parser as _};
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr as _;
use wire::proto::Protocol;

/// What a word may be, by its looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Capture,
    /// A packet expression.
    Packet,
    /// A layer of a packet by its name alone.
    Layer,
    Time,
    Rate,
    /// A number without a unit: a port, a count.
    Number,
    /// An address or a host, perhaps with a port; a URL.
    Host,
    /// An interface and a port: eth0:80.
    Service,
    Interface,
}

/// How a verb has such a word.
#[derive(Clone, Copy)]
enum As {
    /// It stands without an option.
    Word,
    /// Behind this option.
    Option(&'static str),
    /// The same, with something before it.
    After(&'static str, &'static str),
    /// The same, with something behind it, unless a port is there.
    Before(&'static str, &'static str),
    /// Two of them stand behind one option.
    Pair(&'static str),
    /// Into the packet.
    Packet,
}

type Places = &'static [(Kind, As)];

const ONE: Places = &[(Kind::Interface, As::Option("--on")), (Kind::Time, As::Option("--duration"))];
const BETWEEN: Places = &[(Kind::Interface, As::Pair("--between")), (Kind::Time, As::Option("--duration"))];
const FILE_TO_FILE: Places = &[(Kind::Capture, As::Word), (Kind::Capture, As::Option("--write"))];

/// The words that verbs have places for, a kind as often as there are places for it.
const PLACES: &[(&[&str], Places)] = &[
    (
        &["send"],
        &[
            (Kind::Packet, As::Word),
            (Kind::Layer, As::Packet),
            (Kind::Host, As::Packet),
            (Kind::Interface, As::Option("--on")),
            (Kind::Interface, As::Option("--measure")),
            (Kind::Rate, As::Option("--rate")),
            (Kind::Time, As::Option("--duration")),
            (Kind::Number, As::Option("--count")),
        ],
    ),
    (
        &["craft"],
        &[
            (Kind::Packet, As::Word),
            (Kind::Layer, As::Packet),
            (Kind::Host, As::Packet),
            (Kind::Capture, As::Option("--write")),
            (Kind::Rate, As::Option("--rate")),
            (Kind::Number, As::Option("--count")),
        ],
    ),
    (
        &["replay"],
        &[
            (Kind::Capture, As::Word),
            (Kind::Interface, As::Option("--on")),
            (Kind::Interface, As::Option("--measure")),
            (Kind::Rate, As::Option("--rate")),
            (Kind::Time, As::Option("--duration")),
        ],
    ),
    (
        &["trial"],
        &[
            (Kind::Packet, As::Word),
            (Kind::Layer, As::Packet),
            (Kind::Interface, As::Option("--on")),
            (Kind::Interface, As::Option("--measure")),
            (Kind::Rate, As::Option("--rate")),
            (Kind::Time, As::Option("--duration")),
        ],
    ),
    (
        &["search"],
        &[
            (Kind::Packet, As::Word),
            (Kind::Layer, As::Packet),
            (Kind::Interface, As::Option("--on")),
            (Kind::Interface, As::Option("--measure")),
            (Kind::Rate, As::Option("--max")),
            (Kind::Time, As::Option("--trial-duration")),
        ],
    ),
    (&["measure", "reflect", "counters"], ONE),
    (&["doctor"], &[(Kind::Interface, As::Word)]),
    (&["bridge", "impair"], BETWEEN),
    (
        &["collect"],
        &[
            (Kind::Number, As::After("--listen", "0.0.0.0:")),
            (Kind::Host, As::Before("--listen", ":2055")),
            (Kind::Time, As::Option("--duration")),
            (Kind::Interface, As::Option("")),
        ],
    ),
    (
        &["probe"],
        &[
            (Kind::Capture, As::Word),
            (Kind::Host, As::Before("--export", ":2055")),
            (Kind::Interface, As::Option("--on")),
            (Kind::Time, As::Option("--duration")),
        ],
    ),
    (
        &["sessions serve"],
        &[
            (Kind::Service, As::Option("--on")),
            (Kind::Host, As::Option("--listen")),
            (Kind::Number, As::After("--listen", "198.18.0.2:")),
            (Kind::Interface, As::Option("--on")),
            (Kind::Time, As::Option("--duration")),
        ],
    ),
    (
        &["sessions"],
        &[
            (Kind::Host, As::Option("--to")),
            (Kind::Interface, As::Option("--on")),
            (Kind::Rate, As::Option("--rate")),
            (Kind::Time, As::Option("--duration")),
            (Kind::Number, As::Option("--count")),
        ],
    ),
    (
        &["clone"],
        &[
            (Kind::Capture, As::Word),
            (Kind::Service, As::Option("--from")),
            (Kind::Host, As::Before("--to", ":80")),
            (Kind::Interface, As::Before("--from", ":80")),
        ],
    ),
    (
        &["live"],
        &[(Kind::Capture, As::Word), (Kind::Host, As::Option("--to")), (Kind::Interface, As::Option("--on"))],
    ),
    (
        &["endpoint serve"],
        &[
            (Kind::Number, As::After("--listen", "[::]:")),
            (Kind::Host, As::Option("--listen")),
            (Kind::Time, As::Option("--duration")),
        ],
    ),
    (
        &["serve"],
        &[(Kind::Number, As::After("--listen", "127.0.0.1:")), (Kind::Host, As::Option("--listen"))],
    ),
    (&["edit"], FILE_TO_FILE),
    (&["synth"], &[(Kind::Capture, As::Option("--write"))]),
    (&["info"], &[(Kind::Capture, As::Word)]),
    (
        &["demo"],
        &[
            (Kind::Rate, As::Option("--rate")),
            (Kind::Time, As::Option("--duration")),
            (Kind::Capture, As::Option("--capture")),
        ],
    ),
];

/// What a line of a verb has to have: one of the first, or what is put there in their place.
type Needed = (&'static [&'static str], &'static [&'static str]);

const NEEDED: &[(&[&str], &[Needed])] = &[
    (
        &["send", "replay", "trial", "search"],
        &[(&["--on", "--lab", "--write", "--engine", "--mesh", "--ports", "--between"], &["--lab"])],
    ),
    (&["send", "trial"], &[(&["--rate", "--topspeed"], &["--rate", "1kpps"])]),
    (&["measure", "reflect"], &[(&["--on"], &["--on", "IFACE"])]),
    (&["sessions serve"], &[(&["--on"], &["--on", "IFACE"])]),
    (&["sessions", "live"], &[(&["--on"], &["--on", "IFACE"]), (&["--to"], &["--to", "HOST:80"])]),
    (
        &["clone"],
        &[(&["--from", "--server", "--listen"], &["--from", "IFACE:80"]), (&["--to"], &["--to", "HOST:80"])],
    ),
    (&["craft"], &[(&["--write", "-w", "--show"], &["--show"])]),
    (&["edit", "synth"], &[(&["--write", "-w"], &["--write", "new.pcap"])]),
];

/// Words between others that say nothing: `clone eth0 -> HOST`.
const FILLERS: [&str; 8] = ["->", "-", "=>", "to", "from", "on", "at", "via"];

/// The options of other tools behind which stands what has no option here.
pub const BARE: &[(&[&str], &[&str])] = &[
    (&["replay", "probe", "info", "live"], &["-r", "-f", "--file", "--pcap", "--read"]),
    (&["edit"], &["-i", "--infile", "--input", "-r"]),
    (&["clone"], &["-i", "--input-file"]),
    (&["doctor"], &["-i", "--on", "--interface", "--iface"]),
    (&["send"], &["-f", "--file"]),
];

/// The words of a verb, with each in its place, as a line that can be typed. None if a word has none, or nothing is to be mended.
pub fn mended(verb: &str, command: &Command, words: &[String]) -> Option<String> {
    let (told, _) = placed(verb, command, words)?;
    (told.get(verb.split(' ').count()..) != Some(words)).then(|| line(&told, &[], &[]))
}

/// The same, if a word got an option that it lacked.
pub(super) fn moved(verb: &str, command: &Command, words: &[String]) -> Option<String> {
    let (told, is_moved) = placed(verb, command, words)?;
    is_moved.then(|| format!("it is written so: {}", line(&told, &[], &[])))
}

/// What to say of a word that a verb has no place for.
pub(super) fn word(
    verb: &str,
    command: &Command,
    typed: &str,
    words: &[String],
    at: usize,
) -> Option<String> {
    if typed.starts_with('-') && !FILLERS.contains(&typed) {
        return None;
    }
    match (mended(verb, command, words.get(at..)?), verb) {
        (Some(line), _) => Some(format!("it is written so: {line}")),
        (None, "bridge" | "impair") => {
            Some("both interfaces are one option: --between IFACE IFACE".to_owned())
        }
        (None, "demo") if is_interface(typed) => {
            let words = ["send", "ipv4/udp", "--on", typed, "--rate", "1kpps", "--count", "100"];
            Some(format!("a demo makes its own interfaces; on yours: {}", line(&[], &words, &[])))
        }
        _ => None,
    }
}

/// What to say of the words of a command that there is not: an interface, or which frames are meant.
pub(super) fn no_command(verb: &str, before: &[String], words: &[String]) -> Option<String> {
    let first = words.first().filter(|word| !is_command(word))?;
    let name = report::units::shell_word(first);
    let is_there = Path::new("/sys/class/net").join(first).exists();
    let with = |option: &str, value: &str| line(before, &[option, value], &[]);
    Some(match verb {
        "drops" if job::dropped::Filter::from_str(&words.join(" ")).is_ok() => {
            format!("frames of one kind alone are an option: {}", with("--filter", &words.join(" ")))
        }
        "drops" | "counters" if words.len() == 1 && is_there => {
            format!("the interface is an option: {}", with("--on", first))
        }
        "drops" | "counters" if words.len() == 1 && is_interface(first) => {
            format!("there is no command {name}; the interface is an option: {}", with("--on", first))
        }
        "drops" | "counters" => format!("there is no command {name}; an interface is --on IFACE"),
        _ => format!("there is no command {name}: such as {}", line(before, &["--", "bash"], &[])),
    })
}

/// Whether a shell would find a program of this name. Ours is wherever it was begun.
pub fn is_command(word: &str) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return runs(Path::new(word));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    word == "netdyno"
        || !word.is_empty() && std::env::split_paths(&path).any(|folder| runs(&folder.join(word)))
}

/// What to say of a word in the place of a verb below another one.
pub(super) fn below(
    verb: &str,
    command: &Command,
    typed: &str,
    words: &[String],
    at: usize,
) -> Option<String> {
    let own = words.get(at..)?;
    match verb {
        "sessions" => word(verb, command, typed, words, at),
        "xdp" if Path::new(typed).extension().is_some_and(|end| end == "o") => {
            let capture = own.get(1).filter(|word| foreign::is_capture(word));
            let capture = capture.map_or("some.pcap", String::as_str);
            Some(format!("it is written so: {}", line(&[], &["xdp", "test", typed, capture], &[])))
        }
        "agents" if is_host(typed) => {
            let agent = format!("a1=ssh {typed}");
            let said = line(&[], &["agents", "check", "--agent", &agent], &[]);
            Some(format!("an agent is a command that reaches it, with a name of yours: {said}"))
        }
        "search" if kinds(typed).contains(&Kind::Interface) && own.len() > 1 => {
            let goal = command.find_subcommand("throughput")?;
            let line = mended("search throughput", goal, own)?;
            Some(format!("say first what is searched for: {line}"))
        }
        _ => None,
    }
}

/// An example of a verb with what was typed behind another tool's name: its words as they are here, or its host, interface and file
/// in the example's places.
pub fn of_example(example: &str, typed: &[String]) -> String {
    let root = help::command();
    let words: Vec<String> = example.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect();
    let (verb, command, at) = super::verb(&words, &root);
    // Another tool's words of its own are no interfaces.
    let is_own =
        typed.iter().any(|word| is_interface(word) && interface(std::slice::from_ref(word)).is_none())
            || typed.iter().any(|word| word.ends_with(".cfg"));
    let placed = (!typed.is_empty() && !is_own).then(|| placed(&verb, command, typed)).flatten();
    if let Some((mut told, _)) = placed {
        // What the example says beyond it, if it goes with it.
        let mut more = words.iter().skip(at).peekable();
        while let Some(option) = more.next() {
            let with =
                [Some(option), more.next_if(|next| !next.starts_with('-'))].into_iter().flatten().cloned();
            let longer: Vec<String> = told.iter().cloned().chain(with).collect();
            if option.starts_with("--") && !told.contains(option) && can_be_typed(&longer) {
                told = longer;
            }
        }
        return line(&told, &[], &[]);
    }
    let here = |word: &String| {
        let own = match word.as_str() {
            "HOST" => host(typed),
            "eth0" => interface(typed),
            "small.pcap" => typed.iter().find(|word| foreign::is_capture(word)).map(String::as_str),
            "10.0.0.2:80" => host(typed),
            _ => None,
        };
        own.unwrap_or(word).to_owned()
    };
    let told: Vec<String> = words.iter().skip(1).map(here).collect();
    if can_be_typed(&told) { line(&told, &[], &[]) } else { example.to_owned() }
}

/// The words of a whole line, the verb's first, and whether one of them got an option that it lacked.
fn placed(verb: &str, command: &Command, words: &[String]) -> Option<(Vec<String>, bool)> {
    // Captures are another verb's.
    if verb == "send" && words.iter().any(|word| foreign::is_capture(word)) {
        let root = help::command();
        let words: Vec<String> = words.iter().filter(|word| *word != "-f").cloned().collect();
        return placed("replay", root.find_subcommand("replay")?, &words);
    }
    let mut placed = Placed {
        verb,
        command,
        words: Vec::new(),
        taken: Vec::new(),
        pair: Vec::new(),
        fields: Vec::new(),
        what: None,
        captures: 0,
        is_addressed: false,
        is_moved: false,
    };
    placed.read(&foreign::translated(verb, command, words))?;
    let is_moved = placed.is_moved;
    let told: Vec<String> = verb.split(' ').map(str::to_owned).chain(placed.line()?).collect();
    can_be_typed(&told).then_some((told, is_moved))
}

/// Whether a command line of these words, without the program's name, is none that would be refused.
pub fn can_be_typed(words: &[String]) -> bool {
    Cli::try_parse_from(std::iter::once("netdyno").chain(words.iter().map(String::as_str))).is_ok()
}

/// The same of a whole command line, for what is found wrong of a word only when it is to be opened.
pub fn of_line(words: &[String]) -> Option<String> {
    let root = help::command();
    let (verb, command, at) = super::verb(words, &root);
    placed(&verb, command, words.get(at..)?)
        .filter(|(_, is_moved)| *is_moved)
        .map(|(told, _)| line(&told, &[], &[]))
}

struct Placed<'a> {
    verb: &'a str,
    command: &'a Command,
    /// The words so far, each in its place.
    words: Vec<String>,
    /// Places that are taken, as they stand in the verb's table.
    taken: Vec<usize>,
    pair: Vec<String>,
    fields: Vec<fields::Set>,
    what: Option<String>,
    captures: usize,
    /// The packet has a destination.
    is_addressed: bool,
    /// A word got an option that it lacked.
    is_moved: bool,
}

impl Placed<'_> {
    fn read(&mut self, words: &[String]) -> Option<()> {
        let mut words = words.iter().peekable();
        let takes_packets = self.command.get_positionals().any(|arg| arg.get_id() == "what");
        while let Some(word) = words.next() {
            if word == "--" {
                self.words.push(word.clone());
                self.words.extend(words.by_ref().cloned());
                break;
            }
            if !word.starts_with('-') || FILLERS.contains(&word.as_str()) {
                let named = word.split_once('=').map_or((word.as_str(), None), |(name, v)| (name, Some(v)));
                match foreign::named(self.command, &format!("--{}", named.0)) {
                    // An option without its dashes.
                    Some(arg) if !named.0.is_empty() => {
                        self.is_moved = true;
                        self.words.push(format!("--{}", arg.get_long().unwrap_or_default()));
                        if arg.get_action().takes_values() {
                            self.words.extend(named.1.map(str::to_owned).or_else(|| words.next().cloned()));
                        }
                    }
                    _ => match fields::by_name(&format!("--{word}")).filter(|_| takes_packets) {
                        // A field without its dashes, with its value behind it.
                        Some(field) if field.takes_value() && !field.is_destination() => {
                            self.is_moved = true;
                            self.fields.push(field.set(words.next().cloned())?);
                        }
                        _ => self.place(word)?,
                    },
                }
                continue;
            }
            let name = word.split('=').next().unwrap_or(word);
            match foreign::named(self.command, name) {
                Some(arg) => {
                    self.words.push(word.clone());
                    let mut more = values(arg, word);
                    while let Some(value) = (more > 0).then(|| words.next()).flatten() {
                        self.words.push(value.clone());
                        more -= 1;
                    }
                }
                None if takes_packets => {
                    let field = fields::by_name(name)?;
                    let inline = word.split_once('=').map(|(_, value)| value.to_owned());
                    let value =
                        if field.takes_value() { inline.or_else(|| words.next().cloned()) } else { None };
                    if self.is_addressed && field.is_destination() {
                        return None;
                    }
                    self.is_addressed |= field.is_destination();
                    self.fields.push(field.set(value)?);
                }
                None => return None,
            }
        }
        Some(())
    }

    /// Puts a word into the first place that is free for what it may be.
    fn place(&mut self, word: &str) -> Option<()> {
        let places = self.places();
        for kind in kinds(word) {
            let free = places
                .iter()
                .enumerate()
                .find(|(at, (of, place))| *of == kind && !self.taken.contains(at) && !self.has(*place));
            let Some((at, (_, place))) = free else { continue };
            // A port of a packet that goes to a host is the host's.
            if kind == Kind::Number && self.verb == "send" && !self.fields.is_empty() {
                self.fields.push(fields::Set::port(word));
                return Some(());
            }
            let several = matches!(place, As::Packet | As::Pair(_))
                || kind == Kind::Capture && matches!(place, As::Word) && self.verb != "edit";
            if !several {
                self.taken.push(at);
            }
            return self.put(kind, *place, word);
        }
        // One is enough for most.
        let again =
            kinds(word).contains(&Kind::Interface) && places.iter().any(|(of, _)| *of == Kind::Interface);
        let alone = ["measure", "reflect", "doctor", "counters"].contains(&self.verb);
        // Where a packet comes from is not where it goes.
        let from = word == "from" && self.command.get_positionals().any(|arg| arg.get_id() == "what");
        (FILLERS.contains(&word) && !from || again && alone).then_some(())
    }

    fn places(&self) -> Places {
        let of =
            |verb: &str| PLACES.iter().find(|(verbs, _)| verbs.contains(&verb)).map(|(_, places)| *places);
        of(self.verb).or_else(|| of(self.verb.split(' ').next()?)).unwrap_or_default()
    }

    /// Whether a place's option is there already.
    fn has(&self, place: As) -> bool {
        let (As::Option(option) | As::After(option, _) | As::Before(option, _) | As::Pair(option)) = place
        else {
            return false;
        };
        self.words.iter().any(|word| word.split('=').next() == Some(option))
    }

    fn put(&mut self, kind: Kind, place: As, word: &str) -> Option<()> {
        let host = if kind == Kind::Host { address(word) } else { word };
        self.is_moved |= !matches!(place, As::Word);
        match place {
            As::Word if kind == Kind::Packet => self.what = Some(word.to_owned()),
            As::Word => self.words.push(word.to_owned()),
            As::Option("") => return None,
            // Whoever did not say so does not want it written over.
            As::Option("--write") if Path::new(word).exists() => return None,
            As::Option(option) if kind == Kind::Service && option == "--on" => {
                self.words.extend([option.to_owned(), word.split(':').next()?.to_owned()]);
            }
            As::Option(option) => self.words.extend([option.to_owned(), host.to_owned()]),
            As::After(option, before) => {
                self.words.extend([option.to_owned(), format!("{before}{}", word.trim_start_matches(':'))]);
            }
            As::Before(option, behind) => {
                let ends = host.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
                let is_v6 = IpAddr::from_str(host).is_ok_and(|address| address.is_ipv6());
                let value = match (is_v6, ends) {
                    (true, _) => format!("[{host}]{behind}"),
                    (false, true) => host.to_owned(),
                    (false, false) => format!("{host}{behind}"),
                };
                self.words.extend([option.to_owned(), value]);
            }
            As::Pair(_) => self.pair.push(word.to_owned()),
            As::Packet if kind == Kind::Layer => self.fields.push(fields::Set::layer(word)),
            // What is sent to one of them would not be sent to the other.
            As::Packet if self.is_addressed => return None,
            As::Packet => {
                let (host, port) =
                    host.rsplit_once(':').filter(|(_, port)| is_port(port)).unwrap_or((host, ""));
                // `::1` ends as if with a port.
                let (host, port) =
                    if IpAddr::from_str(address(word)).is_ok() { (address(word), "") } else { (host, port) };
                self.fields.push(fields::Set::destination(host.trim_matches(['[', ']'])));
                self.fields.extend((!port.is_empty()).then(|| fields::Set::port(port)));
                self.is_addressed = true;
            }
        }
        self.captures += usize::from(kind == Kind::Capture && matches!(place, As::Word));
        Some(())
    }

    /// All that stands behind the verb.
    fn line(mut self) -> Option<Vec<String>> {
        if !self.pair.is_empty() {
            let [one, other] = &self.pair[..] else { return None };
            self.words.splice(..0, ["--between".to_owned(), one.clone(), other.clone()]);
        }
        let takes_packets = self.command.get_positionals().any(|arg| arg.get_id() == "what");
        let has = |words: &[String], options: &[&str]| {
            words.iter().any(|word| word.split('=').next().is_some_and(|name| options.contains(&name)))
        };
        let is_plugin = has(&self.words, &["--plugin"]);
        if is_plugin && (self.what.is_some() || !self.fields.is_empty()) {
            return None;
        }
        if takes_packets && !is_plugin {
            let what = if self.fields.is_empty() {
                self.what.clone()
            } else {
                Some(fields::packet(self.what.as_deref(), &self.fields)?)
            };
            let needs = matches!(self.verb, "send" | "craft");
            let what = what.or_else(|| needs.then(|| "ipv4/udp".to_owned()));
            self.words.splice(..0, what);
            if self.verb == "send" && self.is_addressed && !has(&self.words, &["--lab"]) {
                if !has(&self.words, &["--on"]) {
                    self.words.extend(["--on", "IFACE"].map(str::to_owned));
                }
                if !has(&self.words, &["--resolve"]) {
                    self.words.push("--resolve".to_owned());
                }
            }
        }
        if self.verb == "replay" && self.captures == 0 {
            self.words.splice(..0, ["small.pcap".to_owned()]);
        }
        let is_of = |of: &&str| self.verb == *of || *of == "search" && self.verb.starts_with("search ");
        for (verbs, needed) in NEEDED {
            for (any, put) in needed.iter().filter(|_| verbs.iter().any(is_of)) {
                if !has(&self.words, any) {
                    self.words.extend(put.iter().map(|word| (*word).to_owned()));
                }
            }
        }
        Some(self.words)
    }
}

/// How many words behind it are an option's.
fn values(arg: &Arg, word: &str) -> usize {
    let is_inline = word.contains('=') || !word.starts_with("--") && word.len() > 2;
    if is_inline
        || !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
        || arg.is_require_equals_set()
    {
        return 0;
    }
    arg.get_num_args().map_or(1, |count| count.max_values().min(2))
}

/// All that a word may be, what it looks most like first.
fn kinds(word: &str) -> Vec<Kind> {
    if FILLERS.contains(&word) {
        return Vec::new();
    }
    let begins_with_digit = word.starts_with(|c: char| c.is_ascii_digit());
    let is = |kind: &Kind| match kind {
        Kind::Capture => foreign::is_capture(word),
        Kind::Packet => {
            let is_scenario = [".yaml", ".yml"].iter().any(|end| word.ends_with(end));
            is_scenario
                || word.contains(['/', '('])
                    && traffic::expr::compile(word, &traffic::expr::Options::default()).is_ok()
        }
        Kind::Layer => Protocol::by_name(&word.to_ascii_lowercase()).is_some(),
        Kind::Time => begins_with_digit && traffic::rate::parse_duration(word).is_ok(),
        Kind::Rate => begins_with_digit && traffic::Rate::from_str(word).is_ok(),
        Kind::Number => is_port(word.trim_start_matches(':')) || traffic::rate::parse_count(word).is_ok(),
        Kind::Host => is_host(word),
        Kind::Service => word.split_once(':').is_some_and(|(name, port)| is_interface(name) && is_port(port)),
        Kind::Interface => is_interface(word),
    };
    use Kind::{Capture, Host, Interface, Layer, Number, Packet, Rate, Service, Time};
    [Capture, Packet, Layer, Time, Rate, Number, Service, Host, Interface].into_iter().filter(is).collect()
}

fn is_port(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u16>().is_ok()
}

/// Whether it may name an interface: no layer, no rate, no file.
fn is_interface(word: &str) -> bool {
    if Protocol::by_name(word).is_some() {
        return false;
    }
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@'))
}

/// Whether it is an address or a host's name, perhaps with a port, or a URL.
pub fn is_host(word: &str) -> bool {
    if word.contains("://") || word == "localhost" {
        return true;
    }
    let (bare, port) = word.rsplit_once(':').filter(|(_, port)| is_port(port)).unwrap_or((word, ""));
    let prefix = word.split_once('/').filter(|(_, length)| length.parse::<u8>().is_ok());
    let address = prefix.map_or(word, |(address, _)| address);
    if IpAddr::from_str(address).is_ok() || IpAddr::from_str(bare.trim_matches(['[', ']'])).is_ok() {
        return true;
    }
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    };
    // A name with a dot may be a file's.
    let ends = bare.rsplit_once('.').map_or("", |(_, end)| end);
    let is_domain = ["com", "net", "org", "de", "io", "local", "lan", "internal", "example"].contains(&ends);
    is_name(bare) && (!port.is_empty() || is_domain) && !Path::new(word).exists()
}

/// What is left of a URL.
pub fn address(word: &str) -> &str {
    match word.split_once("://") {
        Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
        None => word,
    }
}

/// The first word that names a host.
pub fn host(words: &[String]) -> Option<&str> {
    words.iter().find(|word| !word.starts_with('-') && is_host(word)).map(|word| address(word))
}

/// The first word that names an interface: one of this machine's, or one that looks like one.
fn interface(words: &[String]) -> Option<&str> {
    // As the kernel, udev and netdyno's labs name them: `-i u100` is hping's interval.
    const NAMES: [&str; 15] =
        ["eth", "en", "wl", "ib", "lo", "br", "bond", "veth", "vlan", "tap", "tun", "vx", "tx", "rx", "dut"];
    let is = |word: &&String| {
        let is_named =
            word.ends_with(|c: char| c.is_ascii_digit()) && NAMES.iter().any(|name| word.starts_with(name));
        is_interface(word) && (is_named || Path::new("/sys/class/net").join(word).exists())
    };
    words.iter().find(is).map(String::as_str)
}

/// The command lines behind a colon in what is told, as a shell would split them, each without the program's name. What stands
/// between marks is spoken of, and need not be whole.
#[cfg(test)]
pub(super) fn lines(told: &str) -> Vec<Vec<String>> {
    let unmarked = told.split('`').step_by(2).flat_map(|part| part.split("; "));
    let line = |part: &str| {
        let at = part
            .find(": netdyno ")
            .map(|at| at + 2)
            .or_else(|| part.find("such as netdyno ").map(|at| at + 8))?;
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in part.get(at..)?.trim().chars() {
            match (c, words.last_mut()) {
                ('\'', _) => is_quoted = !is_quoted,
                (' ', _) if !is_quoted => words.push(String::new()),
                (c, Some(word)) => word.push(c),
                _ => {}
            }
        }
        Some(words.into_iter().skip(1).collect::<Vec<_>>())
    };
    let asks = |words: &Vec<String>| words.iter().any(|word| word == "--help" || word == "--version");
    unmarked.filter_map(line).filter(|words| !asks(words)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::told;

    /// What users of other tools type from habit, or by what help says of the verbs, and the line that does it. `told` holds that
    /// each such line can be typed.
    const EVERYDAY: &[(&str, &str)] = &[
        ("send vx0 1000", "netdyno send ipv4/udp --on vx0 --count 1000 --rate 1kpps"),
        ("send vx0 ipv4/udp --rate 1kpps", "netdyno send ipv4/udp --on vx0 --rate 1kpps"),
        (
            "send --dst 10.0.0.1 --dport 80",
            "netdyno send 'ipv4(dst=10.0.0.1)/udp(dport=80)' --on IFACE --resolve --rate 1kpps",
        ),
        (
            "send --to 10.0.0.1 --on vx0",
            "netdyno send 'ipv4(dst=10.0.0.1)/udp' --on vx0 --resolve --rate 1kpps",
        ),
        ("send -c 100", "netdyno send ipv4/udp --count 100 --lab --rate 1kpps"),
        ("send ipv4/udp 1000pps", "netdyno send ipv4/udp --rate 1000pps --lab"),
        ("send ipv4/udp --on vx0 10s", "netdyno send ipv4/udp --on vx0 --duration 10s --rate 1kpps"),
        ("send -f big.pcap -i vx0", "netdyno replay big.pcap --on vx0"),
        ("send udp 10.0.0.1 53", "'ipv4(dst=10.0.0.1)/udp(dport=53)' --on IFACE --resolve"),
        ("send --tcp -p 80 10.0.0.1", "'ipv4(dst=10.0.0.1)/tcp(dport=80)' --on IFACE --resolve"),
        ("send -S -p 80 10.0.0.1 -c 10", "'ipv4(dst=10.0.0.1)/tcp(flags=S,dport=80)' --count 10"),
        ("send --syn --flood 10.0.0.1", "'ipv4(dst=10.0.0.1)/tcp(flags=S)' --topspeed --on IFACE"),
        ("send --icmp 10.0.0.1", "'ipv4(dst=10.0.0.1)/icmp'"),
        ("send --udp [2001:db8::1]:53", "'ipv6(dst=2001:db8::1)/udp(dport=53)'"),
        ("send ipv4/udp --on vx0 vx1", "netdyno send ipv4/udp --on vx0 --measure vx1"),
        ("send ipv4/udp --on vx0 --vlan 5", "netdyno send 'vlan(id=5)/ipv4/udp' --on vx0"),
        (
            "ping -c 3 10.0.0.1",
            "`netdyno endpoint serve` runs are timed by: netdyno endpoint tcp-rr 10.0.0.1",
        ),
        ("arping -I vx0 10.0.0.1", "netdyno endpoint tcp-rr 10.0.0.1"),
        ("fping 10.0.0.1", "netdyno endpoint tcp-rr 10.0.0.1"),
        ("traceroute 10.0.0.1", "no path is traced"),
        ("hping3 -S -p 80 10.0.0.1", "'ipv4(dst=10.0.0.1)/tcp(flags=S,dport=80)' --on IFACE"),
        ("nping --tcp -p 80 10.0.0.1", "'ipv4(dst=10.0.0.1)/tcp(dport=80)' --on IFACE"),
        ("tcpdump -i vx0", "netdyno measure --on vx0 --capture arrived.pcapng --duration 10s"),
        ("tcpdump -i vx0 -w out.pcap", "netdyno measure --on vx0 --capture out.pcap"),
        ("tshark -r big.pcap", "netdyno info big.pcap"),
        (
            "wrk -t2 -c100 -d5s http://10.0.0.1/",
            "netdyno sessions --in-flight 100 --duration 5s --to 10.0.0.1 --on IFACE --rate 10kcps",
        ),
        (
            "wrk -c100 -t4 http://10.0.0.1/",
            "netdyno sessions --in-flight 100 --to 10.0.0.1 --on IFACE --rate 10kcps --duration 5s",
        ),
        (
            "wrk2 -t 4 -c 100 -R 2000 -d 30s http://10.0.0.1/",
            "netdyno sessions --in-flight 100 --rate 2000cps --duration 30s --to 10.0.0.1 --on IFACE",
        ),
        (
            "demo eth0",
            "a demo makes its own interfaces; on yours: netdyno send ipv4/udp --on eth0 --rate 1kpps --count 100",
        ),
        ("xdp prog.o", "netdyno xdp test prog.o some.pcap"),
        ("xdp prog.o big.pcap", "netdyno xdp test prog.o big.pcap"),
        ("agents 10.0.0.1", "netdyno agents check --agent 'a1=ssh 10.0.0.1'"),
        ("ab -n 100 -c 10 http://10.0.0.1/", "netdyno sessions --count 100 --in-flight 10 --to 10.0.0.1"),
        ("dperf -c test.conf", "netdyno sessions"),
        ("k6 run script.js", "netdyno sessions --on eth1 --to 10.0.0.2:80"),
        ("ntttcp -s 10.0.0.1", "netdyno endpoint tcp-stream 10.0.0.1"),
        ("nc 10.0.0.1", "netdyno endpoint tcp-stream 10.0.0.1"),
        ("mergecap -w all.pcap a.pcap b.pcap", "netdyno replay"),
        ("bpftrace -e 'tracepoint:skb:kfree_skb {}'", "netdyno drops --duration 5s"),
        ("testpmd -i", "netdyno reflect --on"),
        ("-c 10.0.0.1", "netdyno iperf3 -c 10.0.0.1"),
        ("-i vx0 big.pcap", "netdyno tcpreplay -i vx0 big.pcap"),
        ("iperf3", "netdyno iperf3 -c HOST"),
        (
            "endpoint -c 10.0.0.1 -p 5201 -t 10 -P 4 -R",
            "netdyno endpoint tcp-maerts 10.0.0.1:5201 --duration 10s --parallel 4",
        ),
        ("endpoint --server", "netdyno endpoint serve"),
        ("endpoint tcp-stream 10.0.0.1 5201", "netdyno endpoint tcp-stream 10.0.0.1:5201"),
        ("endpoint tcp-stream 10.0.0.1 --port 5201", "netdyno endpoint tcp-stream 10.0.0.1:5201"),
        ("endpoint serve 5201", "netdyno endpoint serve --listen '[::]:5201'"),
        ("endpoint -H 10.0.0.1 -t UDP_STREAM -- -m 64", "netdyno endpoint udp-stream 10.0.0.1 --size 64"),
        (
            "endpoint tcp-rr 10.0.0.1 -- -r 100,200",
            "netdyno endpoint tcp-rr 10.0.0.1 --request 100 --response 200",
        ),
        ("replay --pcap big.pcap --on vx0", "netdyno replay big.pcap --on vx0"),
        (
            "edit --enet-dmac=00:11:22:33:44:55 -i a.pcap -o b.pcap",
            "netdyno edit --dst-mac 00:11:22:33:44:55 a.pcap --write b.pcap",
        ),
        ("edit big.pcap out.pcap", "netdyno edit big.pcap --write out.pcap"),
        ("edit a.pcap --dst-ip 10.0.0.1 -w b.pcap", "--map-dst-ip 0.0.0.0/0=10.0.0.1"),
        ("craft ipv4/udp out.pcap", "netdyno craft ipv4/udp --write out.pcap"),
        ("synth out.pcap", "netdyno synth --write out.pcap"),
        ("measure vx1", "netdyno measure --on vx1"),
        ("measure vx0 vx1", "netdyno measure --on vx0"),
        ("measure vx0 --duration 1s", "netdyno measure --on vx0 --duration 1s"),
        ("reflect vx1", "netdyno reflect --on vx1"),
        ("drops -i vx0", "netdyno drops --on vx0"),
        ("drops udp", "netdyno drops --filter udp"),
        ("bridge vx1 vx2", "netdyno bridge --between vx1 vx2"),
        ("bridge br0 vx1 vx2", "--between IFACE IFACE"),
        ("bridge vx0", "--between IFACE IFACE"),
        ("impair vx1 vx2 --delay 1ms", "netdyno impair --between vx1 vx2 --delay 1ms"),
        ("impair vx0 vx1 delay 10ms", "netdyno impair --between vx0 vx1 --delay 10ms"),
        ("tc qdisc add dev vx0 root netem delay 10ms", "netdyno impair --between"),
        ("collect 2055", "netdyno collect --listen 0.0.0.0:2055"),
        ("collect :2055", "netdyno collect --listen 0.0.0.0:2055"),
        ("collect 10.0.0.1:2055 --count 5", "netdyno collect --listen 10.0.0.1:2055 --count 5"),
        ("collect -l flows -p 2055", "netdyno collect --write flows --listen '[::]:2055'"),
        ("nfcapd -p 2055", "netdyno collect --listen '[::]:2055'"),
        ("probe --on vx0 10.0.0.1:2055", "netdyno probe --on vx0 --export 10.0.0.1:2055"),
        ("search rfc2544 --on vx0 --measure vx1", "netdyno search throughput --on vx0 --measure vx1"),
        ("search vx0 vx1", "netdyno search throughput --on vx0 --measure vx1"),
        ("search throughput vx0 vx1", "netdyno search throughput --on vx0 --measure vx1"),
        ("search throughput --port 0 --port 1", "--on IFACE and --measure IFACE"),
        ("trial vx1 vx2 --rate 1kpps", "netdyno trial --on vx1 --measure vx2 --rate 1kpps"),
        (
            "trial --size 64 vx1 vx2 --rate 1kpps",
            "netdyno trial --size 64 --on vx1 --measure vx2 --rate 1kpps",
        ),
        ("trial 1mpps", "netdyno trial --rate 1mpps --lab"),
        ("sessions 10.0.0.1:80", "netdyno sessions --to 10.0.0.1:80 --on IFACE"),
        ("sessions http://10.0.0.1/", "netdyno sessions --to 10.0.0.1 --on IFACE"),
        ("sessions vx0 10.0.0.1:80", "netdyno sessions --on vx0 --to 10.0.0.1:80"),
        ("sessions serve vx0:80", "netdyno sessions serve --on vx0"),
        ("clone vx0 - --to 10.0.0.2:80", "netdyno clone --from vx0:80 --to 10.0.0.2:80"),
        ("clone vx0 -> 10.0.0.2:80", "netdyno clone --from vx0:80 --to 10.0.0.2:80"),
        ("clone vx0:80 to 10.0.0.2:80", "netdyno clone --from vx0:80 --to 10.0.0.2:80"),
        (
            "clone vx0:80 [2001:db8::2]:80 --dry-run",
            "netdyno clone --from vx0:80 --to '[2001:db8::2]:80' --dry-run",
        ),
        (
            "gor --input-raw :80 --output-http http://10.0.0.2:8080",
            "netdyno clone --from eth0:80 --to 10.0.0.2:8080",
        ),
        ("live small.pcap 10.0.0.1:80", "netdyno live small.pcap --to 10.0.0.1:80 --on IFACE"),
        ("report --latency file", "--get latency_p99"),
        ("report result.json --html", "report.html"),
        ("ethtool -S vx0", "netdyno counters --on vx0"),
        ("ip link", "netdyno counters --on eth0"),
        ("pwru --filter-dst-ip 10.0.0.1", "netdyno drops"),
        ("xdp-trafficgen udp vx0", "netdyno send ipv4/udp --on vx0 --rate 1kpps"),
        ("xdp-bench drop vx0", "netdyno measure --on vx0"),
        ("softflow", "'softflowd'"),
        ("pmacct", "netdyno probe --on eth0 --export HOST:2055"),
        ("speedtest 10.0.0.1", "netdyno endpoint tcp-stream 10.0.0.1"),
        ("stamp 10.0.0.1", "netdyno endpoint stamp 10.0.0.1"),
        ("doctor vx0 vx1", "netdyno doctor vx0"),
        ("doctor --on vx0", "netdyno doctor vx0"),
        ("demo 1gbps", "netdyno demo --rate 1gbps"),
        ("serve 8080", "netdyno serve --listen 127.0.0.1:8080"),
        ("plugin dns", "netdyno plugin info dns"),
        ("install", "netdyno doctor"),
        ("beforeafter", "netdyno beforeafter BEFORE AFTER"),
    ];

    #[test]
    fn what_is_typed_from_habit_is_answered_with_the_line_that_does_it() {
        let wrong: Vec<String> = EVERYDAY
            .iter()
            .filter_map(|(line, said)| {
                let told = told(&format!("netdyno {line}"));
                let is_one = told.matches("tip:").count() <= 1;
                (!told.contains(said) || !is_one).then(|| format!("{line}: {told}"))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_cannot_be_placed_is_given_no_line() {
        // What is lost on the way is not told as if it were there.
        for line in [
            "send --plugin dns 10.0.0.1",
            "bridge vx1",
            "trial ipv4/udp ipv4/tcp --rate 1kpps",
            "send ipv4/udp --nosuch 5",
        ] {
            let told = told(&format!("netdyno {line}"));
            assert!(!told.contains("written so: ") && !told.contains("in it: netdyno"), "{line}: {told}");
        }
    }

    #[test]
    fn a_word_is_what_it_looks_like() {
        use super::{Kind, kinds};
        for (word, kind) in [
            ("eth0", Some(Kind::Interface)),
            ("eth0:80", Some(Kind::Service)),
            ("10.0.0.1", Some(Kind::Host)),
            ("10.0.0.0/8", Some(Kind::Host)),
            ("2001:db8::1", Some(Kind::Host)),
            ("[2001:db8::1]:80", Some(Kind::Host)),
            ("http://web/x", Some(Kind::Host)),
            ("1mpps", Some(Kind::Rate)),
            ("5s", Some(Kind::Time)),
            ("2055", Some(Kind::Number)),
            (":2055", Some(Kind::Number)),
            ("a.pcap.gz", Some(Kind::Capture)),
            ("ipv4/udp(dport=53)", Some(Kind::Packet)),
            ("s.yaml", Some(Kind::Packet)),
            ("udp", Some(Kind::Layer)),
            ("->", None),
            ("ipv4/upd", None),
        ] {
            assert_eq!(kinds(word).first().copied(), kind, "{word}");
        }
    }
}
