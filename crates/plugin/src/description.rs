//! What a plugin says of itself, checked: nobody vouches for it.

use crate::error::Invalid;
use crate::options;
use plugin_sdk::Description;
use serde_json::Value;

/// Longest name.
const LONGEST_NAME: usize = 64;
/// Longest sentence.
const LONGEST_TEXT: usize = 4_096;
/// Most examples.
const MOST_EXAMPLES: usize = 64;

/// Reads it.
///
/// # Errors
/// What it says cannot be so.
pub fn read(value: Value) -> Result<Description, Invalid> {
    let bad = |what: String| Invalid::Description(what);
    let description: Description = serde_json::from_value(value).map_err(|why| bad(why.to_string()))?;
    check(&description)?;
    Ok(description)
}

/// Checks it, the schema of the options and that the examples keep to it included.
pub(crate) fn check(description: &Description) -> Result<(), Invalid> {
    let Description { name, version, about, world: _, options, example, restricted: _ } = description;
    let bad = |what: String| Err(Invalid::Description(what));
    if !is_name(name) {
        return bad(format!(
            "`name` is {name:?}: letters, digits, `-` and `_` make a name, {LONGEST_NAME} at most"
        ));
    }
    let texts = example.iter().map(|example| ("example.about", &example.about));
    for (member, text) in [("version", version), ("about", about)].into_iter().chain(texts) {
        if text.len() > LONGEST_TEXT || text.trim().is_empty() {
            return bad(format!("`{member}` has {} bytes, and 1 to {LONGEST_TEXT} are taken", text.len()));
        }
    }
    if example.len() > MOST_EXAMPLES {
        return bad(format!("`example` has {} of them, and {MOST_EXAMPLES} are taken", example.len()));
    }
    let schema = options::Schema::new(options)?;
    for (number, example) in example.iter().enumerate() {
        if let Err(fault) = schema.check(&example.set) {
            return bad(format!("`/example/{number}/set` does not keep to the plugin's own schema: {fault}"));
        }
    }
    Ok(())
}

/// May a plugin be called so? A name is typed, and may be a file's.
pub(crate) fn is_name(name: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(sound)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}
