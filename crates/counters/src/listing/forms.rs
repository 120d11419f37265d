//! Which tool printed a listing, and its text cut into words and numbers with names.

use super::{Align, Number, Piece};
use crate::kind::{Kind, kind};
use std::fmt;

/// What a listing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON of any shape: `netdyno counters -w`, `nstat --json`, `ip -s -j link`.
    Json,
    /// `/proc/net/snmp`, `/proc/net/netstat`: a line of names, a line of numbers.
    Pairs,
    /// `/proc/net/snmp6` and others: a name and a number on each line.
    Names,
    /// `nstat -a`.
    Nstat,
    /// `netstat -s`: sentences with numbers, under headings.
    Netstat,
    /// `ethtool -S`: names and numbers after a colon, under a heading.
    Ethtool,
    /// `/proc/net/dev`.
    Dev,
    /// `/proc/net/softnet_stat`.
    Softnet,
    /// `/proc/net/sockstat`.
    Sockstat,
    /// None of these.
    Unknown,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Json => "JSON",
            Form::Pairs => "/proc/net/snmp or netstat",
            Form::Names => "a list of names and numbers",
            Form::Nstat => "nstat",
            Form::Netstat => "netstat -s",
            Form::Ethtool => "ethtool -S",
            Form::Dev => "/proc/net/dev",
            Form::Softnet => "/proc/net/softnet_stat",
            Form::Sockstat => "/proc/net/sockstat",
            Form::Unknown => "no known listing",
        })
    }
}

impl Form {
    pub(super) fn align(self) -> Align {
        match self {
            Form::Dev => Align::Right,
            Form::Nstat => Align::Left,
            _ => Align::None,
        }
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A heading: at the left edge, and with nothing behind its colon.
fn is_heading(line: &str) -> bool {
    line.ends_with(':') && line.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// What a listing is, by how it begins and whether all of it is so.
pub(super) fn recognise(text: &str) -> Form {
    let mut lines = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return Form::Unknown };
    if first.starts_with(['{', '[']) && !first.starts_with("[0") {
        return Form::Json;
    }
    if first.starts_with("Inter-|") {
        return Form::Dev;
    }
    if first.starts_with("sockets: used ") || first.starts_with("TCP6: inuse ") {
        return Form::Sockstat;
    }
    if first.starts_with('#') && lines.clone().all(|line| is_nstat(line) || line.starts_with('#')) {
        return Form::Nstat;
    }
    if is_heading(first) && lines.clone().all(|line| is_heading(line) || line.starts_with([' ', '\t'])) {
        let statistics = first.contains("statistics") || first.contains("stats for");
        return if statistics { Form::Ethtool } else { Form::Netstat };
    }
    let all: Vec<&str> = std::iter::once(first).chain(lines).collect();
    let is_pair = |pair: &[&str]| {
        let [names, numbers] = pair else { return false };
        let (Some((a, names)), Some((b, numbers))) = (names.split_once(':'), numbers.split_once(':')) else {
            return false;
        };
        let whole = |word: &str| is_number(word.strip_prefix('-').unwrap_or(word));
        a == b
            && names.split_whitespace().count() == numbers.split_whitespace().count()
            && !names.split_whitespace().any(whole)
            && numbers.split_whitespace().all(whole)
    };
    if all.chunks(2).all(is_pair) {
        return Form::Pairs;
    }
    let is_named = |line: &&str| {
        let mut words = line.split_whitespace();
        let (name, number, none) = (words.next(), words.next(), words.next());
        name.is_some_and(|name| !is_number(name)) && number.is_some_and(is_number) && none.is_none()
    };
    if all.iter().all(is_named) {
        return Form::Names;
    }
    let is_cpu = |line: &&str| {
        line.split(' ').count() >= 9
            && line
                .split(' ')
                .all(|word| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if all.iter().all(is_cpu) { Form::Softnet } else { Form::Unknown }
}

fn is_nstat(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], [name, number, rate] if !is_number(name) && is_number(number) && rate.parse::<f64>().is_ok())
}

/// Cuts a listing of a known form (but JSON) into its pieces.
pub(super) fn cut(form: Form, text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut columns: Vec<&str> = Vec::new();
    let mut group = "";
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let bare = line.trim_end_matches(['\n', '\r']);
        let end = &line[bare.len()..];
        match form {
            Form::Netstat => sentence(bare, &mut headings, &mut pieces),
            Form::Ethtool => value(bare, &mut headings, &mut pieces),
            Form::Pairs => {
                let (of, rest) = bare.split_once(':').unwrap_or((bare, ""));
                if columns.is_empty() || of != group {
                    (group, columns) = (of, rest.split_whitespace().collect());
                    pieces.push(Piece::Text(bare));
                } else {
                    let at = std::mem::take(&mut columns);
                    pieces.push(Piece::Text(&bare[..bare.len() - rest.len()]));
                    each(rest, &mut pieces, |n, _| {
                        let name = format!("{group}.{}", at.get(n).unwrap_or(&"?"));
                        let gauge = kind(&name) == Kind::Gauge;
                        Some((name, gauge, false))
                    });
                }
            }
            Form::Names | Form::Nstat => {
                let name = bare.split_whitespace().next().unwrap_or("");
                each(bare, &mut pieces, |n, word| {
                    (n == 1 && is_number(word)).then(|| (name.to_owned(), is_joined_gauge(name), false))
                });
            }
            Form::Dev => {
                let (name, rest) = bare.rsplit_once(':').unwrap_or((bare, ""));
                pieces.push(Piece::Text(&bare[..bare.len() - rest.len()]));
                each(rest, &mut pieces, |n, word| {
                    is_number(word).then(|| (format!("{} column {}", name.trim(), n + 1), false, false))
                });
            }
            Form::Softnet => {
                // The CPU by its column, where there is one (net/core/net-procfs.c); gauges are queues' lengths.
                let cpu = bare
                    .split(' ')
                    .nth(12)
                    .and_then(|word| usize::from_str_radix(word, 16).ok())
                    .unwrap_or(n);
                each(bare, &mut pieces, |n, _| {
                    Some((format!("cpu{cpu} column {}", n + 1), matches!(n, 11..=14), true))
                });
            }
            Form::Sockstat | Form::Json | Form::Unknown => pieces.push(Piece::Text(bare)),
        }
        pieces.push(Piece::Text(end));
    }
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

/// Words of a line, blanks kept, each number with the name that `name` gives it, by its place among the words.
fn each<'a>(
    line: &'a str,
    pieces: &mut Vec<Piece<'a>>,
    name: impl Fn(usize, &str) -> Option<(String, bool, bool)>,
) {
    let mut rest = line;
    let mut n = 0;
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        let length = rest[blank..].find(char::is_whitespace).map_or(rest.len(), |end| blank + end);
        let (blank, word, left) = (&rest[..blank], &rest[blank..length], &rest[length..]);
        pieces.push(Piece::Text(blank));
        match name(n, word).filter(|_| !word.is_empty()) {
            Some((name, gauge, hexadecimal)) => {
                pieces.push(Piece::Number(Number { text: word, name, gauge, hexadecimal }));
            }
            None => pieces.push(Piece::Text(word)),
        }
        n += 1;
        rest = left;
    }
}

/// Gauges of lists whose names have no dot: `TcpCurrEstab`, and vmstat's `nr_free_pages`.
fn is_joined_gauge(name: &str) -> bool {
    let dotted =
        ["Ip", "Tcp", "MPTcpExt"].iter().filter_map(|group| Some((group, name.strip_prefix(group)?)));
    name.starts_with("nr_")
        || dotted.into_iter().any(|(group, rest)| kind(&format!("{group}.{rest}")) == Kind::Gauge)
}

/// Whether a number of `ip -j`, `nstat -j` or the like is none that counts.
pub(super) fn is_member_gauge(path: &[String]) -> bool {
    const STATES: [&str; 11] = [
        "ifindex",
        "link_index",
        "mtu",
        "min_mtu",
        "max_mtu",
        "txqlen",
        "num_tx_queues",
        "num_rx_queues",
        "realtime_ns",
        "monotonic_ns",
        "backlog",
    ];
    let Some(last) = path.last() else { return true };
    path[0] == "gauges"
        || STATES.contains(&last.as_str())
        || kind(last) == Kind::Gauge
        || is_joined_gauge(last)
        || path.len() > 1 && kind(&format!("{}.{last}", path[path.len() - 2])) == Kind::Gauge
}

/// Below which headings a line stands, by how far it is indented.
fn under(line: &str, headings: &mut Vec<(usize, &str)>) -> usize {
    let indent = line.len() - line.trim_start().len();
    while headings.last().is_some_and(|(of, _)| *of >= indent) {
        headings.pop();
    }
    indent
}

fn path(headings: &[(usize, &str)]) -> String {
    headings.iter().map(|(_, name)| format!("{name} ")).collect()
}

/// A line of `netstat -s`.
fn sentence<'a>(line: &'a str, headings: &mut Vec<(usize, &'a str)>, pieces: &mut Vec<Piece<'a>>) {
    let indent = under(line, headings);
    let cut = words(line);
    if cut.iter().all(|piece| matches!(piece, Piece::Text(_))) {
        if let Some(name) = line.trim().strip_suffix(':') {
            headings.push((indent, name));
        }
        pieces.push(Piece::Text(line));
        return;
    }
    let said: Vec<String> = cut
        .iter()
        .flat_map(|piece| match piece {
            Piece::Text(text) => text.split_whitespace().map(singular).collect(),
            Piece::Number(_) => vec!["N".to_owned()],
        })
        .collect();
    // `TCPTimeouts: N` is named by its word alone.
    let said = said.join(" ");
    let said = said.strip_suffix(": N").or(said.strip_prefix("N ")).unwrap_or(&said);
    let name = path(headings) + said;
    let gauge = is_gauge_sentence(&name);
    let numbers = cut.iter().filter(|piece| matches!(piece, Piece::Number(_))).count();
    let mut n = 0;
    pieces.extend(cut.into_iter().map(|piece| match piece {
        Piece::Text(text) => Piece::Text(text),
        Piece::Number(number) => {
            n += 1;
            let name = if numbers == 1 { name.clone() } else { format!("{name} ({n})") };
            Piece::Number(Number { name, gauge, ..number })
        }
    }));
}

/// Sentences of net-tools' statistics.c, and names of the kernel that it prints as they are.
fn is_gauge_sentence(name: &str) -> bool {
    let Some((heading, said)) = name.split_once(' ') else { return false };
    let sentences = ["connection established", "RTO", "Forwarding", "Default TTL"];
    sentences.iter().any(|begin| said.starts_with(begin)) || kind(&format!("{heading}.{said}")) == Kind::Gauge
}

/// BSD's netstat says `1 packet` and `2 packets`.
fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

/// A line of `ethtool -S`: what stands behind its last colon.
fn value<'a>(line: &'a str, headings: &mut Vec<(usize, &'a str)>, pieces: &mut Vec<Piece<'a>>) {
    let indent = under(line, headings);
    if let Some((name, number)) = line.rsplit_once(": ").filter(|(_, number)| is_number(number.trim())) {
        let text = number.trim();
        let start = line.len() - number.trim_start().len();
        let gauge = kind(&format!("ethtool.{}", name.trim())) == Kind::Gauge;
        let name = path(headings) + name.trim();
        pieces.push(Piece::Text(&line[..start]));
        pieces.push(Piece::Number(Number { text, name, gauge, hexadecimal: false }));
        pieces.push(Piece::Text(&line[start + text.len()..]));
        return;
    }
    if let Some(name) = line.trim().strip_suffix(':') {
        headings.push((indent, name));
    }
    pieces.push(Piece::Text(line));
}

/// Numbers that stand by themselves, and what is between them. No part of a word (`InType3`), of a fraction or an address is one.
pub(super) fn words(line: &str) -> Vec<Piece<'_>> {
    let bytes = line.as_bytes();
    let joins =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'#') || byte >= 0x80;
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let bound = at > 0 && joins(bytes[at - 1]);
        // A full stop at the end of a sentence is none within a number.
        let goes_on = match bytes.get(end) {
            Some(b'.') => bytes.get(end + 1).is_some_and(|byte| joins(*byte)),
            Some(byte) => joins(*byte),
            None => false,
        };
        if bound || goes_on {
            at = end + bytes[end..].iter().take_while(|byte| joins(**byte)).count();
            continue;
        }
        pieces.push(Piece::Text(&line[from..at]));
        let number =
            Number { text: &line[at..end], name: "a number".to_owned(), gauge: false, hexadecimal: false };
        pieces.push(Piece::Number(number));
        (from, at) = (end, end);
    }
    pieces.push(Piece::Text(&line[from..]));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}
