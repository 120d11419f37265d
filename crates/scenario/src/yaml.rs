//! YAML to our model, with the place of every value. The one module that knows the YAML reader.
//!
//! Bounds on hostile input are set here: the file's size, how deep it nests, and how far aliases may blow it up.

use super::error::{Fault, Place};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, MessageFormatter, Spanned};
use std::borrow::Cow;
use traffic::expr::did_you_mean;

/// Bytes of a file, at most.
pub const MAX_BYTES: usize = 1 << 20;
/// How deep maps and lists nest, at most. The language itself needs five levels.
const MAX_DEPTH: usize = 16;
/// Scalars, lists and maps, at most; aliases count as what they stand for.
const MAX_NODES: usize = 200_000;
/// Aliases, at most.
const MAX_ALIASES: usize = 4_096;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where.
    pub(super) place: Place,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At<T>, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(At { value: spanned.value, place: place(spanned.referenced) })
    }
}

/// In the schema a value is what it is without its place.
impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Reads one document.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; {MAX_BYTES} are the most", text.len());
        return Err(Fault { place: Place::START, message });
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_aliases: MAX_ALIASES,
            max_documents: 2,
            // Without merge keys: `defaults` is for what streams have in common.
            max_merge_keys: 0,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: MAX_DEPTH,
        },
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error))
}

fn place(location: Location) -> Place {
    Place {
        line: usize::try_from(location.line()).unwrap_or(0),
        column: usize::try_from(location.column()).unwrap_or(0),
        width: usize::try_from(location.span().len()).unwrap_or(1).max(1),
    }
}

/// What the reader says, in our words.
fn fault(error: &Error) -> Fault {
    let error = match error.without_snippet() {
        Error::AliasError { error, .. } => error,
        error => error,
    };
    let too_much = |what: &str| format!("{what}: this is more than any file needs");
    let message = match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            let hint = did_you_mean(field, expected.iter().copied());
            format!("unknown key `{}`{hint}keys here: {}", printable(field), expected.join(", "))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            let hint = did_you_mean(variant, expected.iter().copied());
            format!("unknown word `{}`{hint}write {}", printable(variant), expected.join(" or "))
        }
        Error::SerdeMissingField { field, .. } => format!("`{field}` is missing here"),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("expected {expected}, not {}", printable(unexpected))
        }
        Error::Unexpected { expected, .. } => match *expected {
            "sequence start" => "expected a list, each item after `- `".to_owned(),
            "mapping start" => "expected keys with values (`key: value`)".to_owned(),
            "string scalar" => "expected a single value".to_owned(),
            other => format!("expected {other}"),
        },
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{}` is given twice: keep one of them", printable(key))
        }
        Error::Eof { .. } => "the file is empty".to_owned(),
        Error::MultipleDocuments { .. } => {
            "a second document: a file holds one (remove the `---`)".to_owned()
        }
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (`<<`) are not taken: write out what is in common, or in a scenario put it under `defaults`".to_owned()
        }
        Error::InvalidScalar { ty, .. } => match *ty {
            "bool" | "boolean" => "expected true or false".to_owned(),
            _ => "expected a whole number".to_owned(),
        },
        Error::NullIntoString { .. } => "a value is missing here".to_owned(),
        Error::Budget { breach, .. } => too_much(match breach {
            BudgetBreach::Depth { .. } => "lists and maps nest too deep",
            BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. } => "too many aliases",
            BudgetBreach::MergeKeys { .. } => "merge keys (`<<`) are not taken; use `defaults`",
            _ => "the file holds too many values",
        }),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => too_much("aliases stand for too many values"),
        Error::UnknownAnchor { .. } => {
            "this alias has no anchor (a value that begins with `*` needs quotes)".to_owned()
        }
        // The reader's own words, without the place: ours follows.
        other => printable(&serde_saphyr::DefaultMessageFormatter.format_message(other)),
    };
    let place = error.location().filter(|at| at.line() > 0).map_or(Place::START, place);
    Fault { place, message }
}

/// Text from outside in a message: one line, no control characters, not endless.
fn printable(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(160).collect();
    line.trim().to_owned()
}
