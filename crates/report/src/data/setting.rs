//! How a sentence names a setting of the job: by its place in the job, between backquotes and behind a dot, as in
//! `` raise `.meter.streams` or `.rate` ``. A client that calls settings by other names puts its own there.

use std::borrow::Cow;

/// Puts a client's names of settings into a sentence, or into any text with sentences.
pub type Words = for<'t> fn(&'t str) -> Cow<'t, str>;

/// `text` with the names that `word` gives instead of those of settings, which it is given without dot and backquotes. Those
/// that it does not know stay.
pub fn worded<'t>(text: &'t str, word: impl Fn(&str) -> Option<String>) -> Cow<'t, str> {
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("`.") {
        let (before, from) = rest.split_at(at);
        let inner = &from[2..];
        let found = inner.find('`').and_then(|end| Some((word(&inner[..end])?, &inner[end + 1..])));
        let (put, after) = found.unwrap_or_else(|| ("`.".to_owned(), inner));
        done += before;
        done += &put;
        rest = after;
    }
    if done.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(done + rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(setting: &str) -> Option<String> {
        let flags = [("rate", "--rate"), ("links[1].on", "--on2")];
        flags.iter().find(|(name, _)| *name == setting).map(|(_, flag)| (*flag).to_owned())
    }

    #[test]
    fn settings_get_a_clients_names_and_nothing_else_does() {
        for (text, told) in [
            ("", ""),
            ("`.rate`", "--rate"),
            ("lower `.rate` or name `.links[1].on`.", "lower --rate or name --on2."),
            ("`.gz` and `rate` and `.rate", "`.gz` and `rate` and `.rate"),
            ("`.gz `.rate` é", "`.gz --rate é"),
            ("`.", "`."),
        ] {
            assert_eq!(worded(text, flag), told, "{text}");
        }
        assert!(matches!(worded("`rate` stays", flag), Cow::Borrowed(_)));
    }
}
