//! Text from outside (file names, command lines, interface names) on its way into the page.

use std::fmt::{self, Display, Write};

use crate::data::units::{is_unprintable, printable};

/// Shows text as text in HTML and SVG, in content and in quoted attributes; control and direction-changing
/// characters become visible escapes.
pub(crate) struct Esc<'a>(pub &'a str);

impl Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in printable(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// JSON for a `<script type="application/json">`: the characters that could end the script, begin a comment or
/// turn the source's lines around stand only inside JSON strings, where an escape means the same.
pub(crate) fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '&' | '<' | '>') || (c != '\n' && is_unprintable(c)) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}
