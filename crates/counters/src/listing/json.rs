//! JSON as pieces: its text stays as it is, numbers are named by their path.
//!
//! The text is checked by serde_json first; what follows walks it a second time, for the places of its numbers.

use super::forms::is_member_gauge;
use super::{Number, Piece};
use serde_json::Value;

/// Members that name an object within a list.
const NAMES: [&str; 4] = ["ifname", "dev", "name", "cpu"];

/// Cuts JSON into text and whole numbers.
pub(super) fn cut(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut walk = Walk { text, at: 0, copied: 0, pieces: Vec::new(), path: Vec::new() };
    walk.value(Some(&value));
    walk.pieces.push(Piece::Text(&text[walk.copied..]));
    walk.pieces.retain(|piece| *piece != Piece::Text(""));
    Ok(walk.pieces)
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// So far it is in `pieces`.
    copied: usize,
    pieces: Vec<Piece<'a>>,
    path: Vec<String>,
}

impl Walk<'_> {
    /// Goes on to behind the next of `bytes`. Blanks, commas and colons lie between.
    fn behind(&mut self, byte: u8) {
        let left = &self.text.as_bytes()[self.at..];
        self.at += left.iter().position(|of| *of == byte).map_or(left.len(), |found| found + 1);
    }

    /// Goes on to behind the text that begins next.
    fn string(&mut self) -> &str {
        self.behind(b'"');
        let (start, bytes) = (self.at, self.text.as_bytes());
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.text.get(start..self.at.saturating_sub(1)).unwrap_or("")
    }

    /// The value that begins next. What it is the text says; `value` is the same read by serde_json, for names of what is within.
    /// (Of members with one name it has only the last.) serde_json bounds how deep it goes.
    fn value(&mut self, value: Option<&Value>) {
        self.next_is_not(0);
        match self.text.as_bytes().get(self.at) {
            Some(b'{') => {
                self.at += 1;
                while self.next_is_not(b'}') {
                    let name = self.string().to_owned();
                    self.behind(b':');
                    let name: String = serde_json::from_str(&format!("\"{name}\"")).unwrap_or(name);
                    let member = value.and_then(|value| value.get(&name));
                    self.path.push(name);
                    self.value(member);
                    self.path.pop();
                }
                self.at += 1;
            }
            Some(b'[') => {
                self.at += 1;
                let mut n = 0;
                while self.next_is_not(b']') {
                    let item = value.and_then(|value| value.get(n));
                    let name = item.and_then(|item| NAMES.iter().find_map(|name| item.get(name)?.as_str()));
                    self.path.push(name.map_or_else(|| n.to_string(), str::to_owned));
                    self.value(item);
                    self.path.pop();
                    n += 1;
                }
                self.at += 1;
            }
            Some(b'"') => {
                self.string();
            }
            _ => self.word(),
        }
    }

    /// Looks past blanks and commas.
    fn next_is_not(&mut self, byte: u8) -> bool {
        let left = &self.text.as_bytes()[self.at..];
        self.at += left.iter().take_while(|of| of.is_ascii_whitespace() || **of == b',').count();
        self.text.as_bytes().get(self.at).is_some_and(|of| *of != byte)
    }

    /// A number, or `null`, `true`, `false`.
    fn word(&mut self) {
        let left = &self.text.as_bytes()[self.at..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        let end = self.at + left.iter().position(ends).unwrap_or(left.len());
        let text = &self.text[self.at..end];
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !is_member_gauge(&self.path) {
            self.pieces.push(Piece::Text(&self.text[self.copied..self.at]));
            let name = self.path.join(".");
            self.pieces.push(Piece::Number(Number { text, name, gauge: false, hexadecimal: false }));
            self.copied = end;
        }
        self.at = end;
    }
}
