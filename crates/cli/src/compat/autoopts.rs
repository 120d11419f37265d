//! Command lines as the AutoOpts library reads them, which the tcpreplay tools are built with.
//!
//! Long names may be cut short as long as they stay unambiguous, `-`, `_` and case make no difference in them, a value
//! stands behind `=` or in the next word; short options may be joined, with the value of the last one attached. Beyond
//! AutoOpts, options may also stand behind files.

use std::ffi::OsString;

/// An option that there is.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub name: &'static str,
    pub short: Option<char>,
    /// What its value is called; `None`: it takes none.
    pub value: Option<&'static str>,
}

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The options by their full names, in order, with their values.
    pub options: Vec<(&'static str, String)>,
    pub files: Vec<OsString>,
}

impl Parsed {
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The value of an option, empty if it takes none; `None` if it was not given.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }
}

/// Why a command line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bad {
    Unknown(String),
    Ambiguous { given: String, could_be: Vec<&'static str> },
    NoValue { name: &'static str, value: &'static str },
    UnwantedValue { name: &'static str, value: String },
    Twice(&'static str),
    NotText(String),
}

impl std::error::Error for Bad {}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bad::Unknown(given) => write!(f, "there is no option {given}: --help lists them"),
            Bad::Ambiguous { given, could_be } => {
                write!(f, "{given} could be --{}: write more of it", could_be.join(" or --"))
            }
            Bad::NoValue { name, value } => write!(f, "--{name} needs a value: --{name}={value}"),
            Bad::UnwantedValue { name, value } => {
                write!(f, "--{name} takes no value, but has `{value}`: leave that out")
            }
            Bad::Twice(name) => write!(f, "--{name} is given twice: leave one out"),
            Bad::NotText(given) => write!(f, "`{given}` is not valid text (UTF-8)"),
        }
    }
}

/// Letters as names are compared.
fn folded(c: char) -> char {
    if c == '_' { '-' } else { c.to_ascii_lowercase() }
}

/// The option that a long name, perhaps cut short, stands for.
fn find(specs: &[Spec], given: &str) -> Result<Spec, Bad> {
    let wanted: String = given.chars().map(folded).collect();
    if let Some(exact) = specs.iter().find(|spec| spec.name == wanted) {
        return Ok(*exact);
    }
    let mut fits = specs.iter().filter(|spec| !wanted.is_empty() && spec.name.starts_with(&wanted));
    match (fits.next(), fits.next()) {
        (Some(only), None) => Ok(*only),
        (None, _) => Err(Bad::Unknown(format!("--{given}"))),
        (Some(first), Some(second)) => {
            let could_be = [first, second].into_iter().chain(fits).map(|spec| spec.name).collect();
            Err(Bad::Ambiguous { given: format!("--{given}"), could_be })
        }
    }
}

/// Reads `words`, which follow the program's name.
pub fn parse(specs: &[Spec], words: &[OsString]) -> Result<Parsed, Bad> {
    parse_repeated(specs, |_| false, words)
}

/// The option of `--long`, and its value; `next` is the next word.
fn long_option(
    specs: &[Spec],
    long: &str,
    mut next: impl FnMut(Spec, &'static str) -> Result<String, Bad>,
) -> Result<(Spec, String), Bad> {
    let (name, attached) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (long, None),
    };
    let spec = find(specs, name)?;
    let value = match (spec.value, attached) {
        (None, None) => String::new(),
        (None, Some(value)) => return Err(Bad::UnwantedValue { name: spec.name, value }),
        (Some(_), Some(value)) => value,
        (Some(placeholder), None) => next(spec, placeholder)?,
    };
    Ok((spec, value))
}

/// As [`parse`]; of some options, `repeated` tells, there may be more than one.
pub fn parse_repeated(
    specs: &[Spec],
    repeated: impl Fn(&str) -> bool,
    words: &[OsString],
) -> Result<Parsed, Bad> {
    let mut parsed = Parsed::default();
    let mut words = words.iter();
    let add = |parsed: &mut Parsed, spec: Spec, value: String| {
        if parsed.has(spec.name) && !repeated(spec.name) {
            return Err(Bad::Twice(spec.name));
        }
        parsed.options.push((spec.name, value));
        Ok(())
    };
    let text = |word: &OsString| {
        word.to_str().map(str::to_owned).ok_or_else(|| Bad::NotText(word.to_string_lossy().into_owned()))
    };
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.files.extend(words.by_ref().cloned());
            break;
        }
        if word == "-" || !word.as_encoded_bytes().starts_with(b"-") {
            parsed.files.push(word.clone());
            continue;
        }
        let word = text(word)?;
        let mut next = |spec: Spec, placeholder: &'static str| match words.next() {
            Some(value) => text(value),
            None => Err(Bad::NoValue { name: spec.name, value: placeholder }),
        };
        if let Some(long) = word.strip_prefix("--") {
            let (spec, value) = long_option(specs, long, next)?;
            add(&mut parsed, spec, value)?;
            continue;
        }
        let mut letters = word[1..].chars();
        while let Some(letter) = letters.next() {
            let spec = specs.iter().find(|spec| spec.short == Some(letter));
            let spec = *spec.ok_or_else(|| Bad::Unknown(format!("-{letter}")))?;
            let Some(placeholder) = spec.value else {
                add(&mut parsed, spec, String::new())?;
                continue;
            };
            let attached = letters.as_str();
            let value = if attached.is_empty() { next(spec, placeholder)? } else { attached.to_owned() };
            add(&mut parsed, spec, value)?;
            break;
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [Spec; 6] = [
        Spec { name: "intf1", short: Some('i'), value: Some("IFACE") },
        Spec { name: "preload-pcap", short: Some('K'), value: None },
        Spec { name: "pps", short: Some('p'), value: Some("N") },
        Spec { name: "pps-multi", short: None, value: Some("N") },
        Spec { name: "topspeed", short: Some('t'), value: None },
        Spec { name: "timer", short: Some('T'), value: Some("HOW") },
    ];

    fn read(line: &str) -> Result<Parsed, Bad> {
        parse(&SPECS, &line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_way_to_write_an_option_is_read() {
        let wanted = Parsed {
            options: vec![
                ("intf1", "eth0".to_owned()),
                ("preload-pcap", String::new()),
                ("pps", "5".to_owned()),
            ],
            files: vec!["a.pcap".into(), "-".into()],
        };
        for line in [
            "-i eth0 -K -p 5 a.pcap -",
            "-ieth0 -Kp5 a.pcap -",
            "--intf1=eth0 --preload-pcap --pps=5 a.pcap -",
            "--intf1 eth0 --PRELOAD_PCAP --pps 5 a.pcap -",
            "--int eth0 --pre --pps 5 -- a.pcap -",
            "a.pcap --intf1 eth0 -K - -p 5",
        ] {
            assert_eq!(read(line).as_ref(), Ok(&wanted), "{line}");
        }
        assert_eq!(read("-- -K").unwrap().files, ["-K"]);
        assert_eq!(read("-p -5").unwrap().value("pps"), Some("-5"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (line, says) in [
            ("--bogus", "no option --bogus"),
            ("-Kz", "no option -z"),
            ("--t a.pcap", "--t could be --topspeed or --timer"),
            ("--pp 5", "--pp could be --pps or --pps-multi"),
            ("-i", "--intf1=IFACE"),
            ("--topspeed=yes", "takes no value, but has `yes`"),
            ("-K -K", "--preload-pcap is given twice"),
            ("--=5", "no option --"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
