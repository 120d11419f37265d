//! Messages of applications: a table for the fixed part, and parts of other lengths that an expression writes by name
//! (`qname="www.example.org"`). How such parts are read out of a message stands in the protocol's file; how they are
//! written is the expression compiler's affair.

use std::fmt::Write;

/// A part of a message that is written by name and stands at no fixed place.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The name in expressions.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// What it is where it is not given, for the reference.
    pub default: &'static str,
    /// One line for the reference.
    pub doc: &'static str,
}

impl Part {
    pub(super) const fn new(name: &'static str, default: &'static str, doc: &'static str) -> Part {
        Part { name, aliases: &[], default, doc }
    }

    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Part {
        self.aliases = aliases;
        self
    }

    /// Whether `name` means this part.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }
}

/// What a dump says of a message: names and values, in the order of the bytes.
pub type Lines = Vec<(&'static str, String)>;

/// Bytes as text, with escapes where they do not print.
pub(super) fn text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
        out
    })
}

/// An IPv4 address.
pub(super) fn ipv4(bytes: &[u8]) -> Option<String> {
    Some(std::net::Ipv4Addr::from(*bytes.first_chunk::<4>()?).to_string())
}
