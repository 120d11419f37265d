//! Options: checked against the schema that a plugin declares, and read from words by it.
//!
//! The schema is a stranger's. Nothing is fetched for it, it may not refer to itself in circles or swell up by references,
//! and its patterns are matched in linear time, so that neither it nor what is checked by it can take long.

use crate::error::Invalid;
use crate::schema::{self, Checker, Wrong, article, shortened};
use plugin_sdk::Fault;
use serde_json::{Map, Value};
use traffic::expr::did_you_mean;

/// Members and items of a schema, each reference counted as what it refers to.
const MOST_NODES: usize = 20_000;
/// Deepest nesting, references followed.
const DEEPEST: usize = 64;
/// Patterns of a schema, and their bytes in all: what is compiled of each is bounded by itself only.
const MOST_PATTERNS: usize = 64;
const MOST_OF_PATTERNS: usize = 16 << 10;
/// Options in all, as JSON.
const MOST_OPTIONS: usize = 1 << 20;

/// A plugin's options: what there are, and what they may be.
pub struct Schema {
    schema: Value,
    checker: Checker,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// An option, as a person is told of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Told {
    /// Its name; of members of members with dots between.
    pub name: String,
    /// What it may be, in words.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is where nobody says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Must it be given?
    pub required: bool,
    /// What it means.
    pub about: String,
}

impl Schema {
    /// Takes a schema.
    ///
    /// # Errors
    /// It is none, or one that nobody needs.
    pub fn new(schema: &Value) -> Result<Schema, Invalid> {
        let bad = |what: String| Invalid::Schema(what);
        let Some(object) = schema.as_object() else {
            return Err(bad("it is no JSON object".to_owned()));
        };
        if object.get("type").and_then(Value::as_str) != Some("object") {
            return Err(bad("its `type` is not `object`: options have names".to_owned()));
        }
        let mut walk = Walk { root: schema, nodes: 0, patterns: 0, of_patterns: 0, refs: Vec::new() };
        walk.look(schema, 0).map_err(bad)?;
        let checker = Checker::new(schema).map_err(bad)?;
        Ok(Schema { schema: schema.clone(), checker })
    }

    /// Do these options keep to it?
    ///
    /// # Errors
    /// The first that does not, by its path.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), Fault> {
        let value = Value::Object(options.clone());
        let size = value.to_string().len();
        if size > MOST_OPTIONS {
            return Err(Fault::new(format!(
                "the options take {size} bytes as JSON, and {MOST_OPTIONS} are taken"
            )));
        }
        self.checker.check(&value).map_err(|fault| self.fault(fault))
    }

    /// What is wrong, in words that name the option.
    fn fault(&self, fault: schema::Fault) -> Fault {
        let path = fault.pointer();
        let message = match fault.wrong {
            Wrong::Unknown(name) => {
                let names = self.names_at(&path);
                self.unknown(&name, &names)
            }
            Wrong::Missing(name) => format!("`{name}` is missing: it has no default"),
            Wrong::Other(value, may_be) => match &may_be[..] {
                [] => format!("{value} may not stand here"),
                [one] => format!("{value} is not {one}"),
                [one, other] => format!("{value} is neither {one} nor {other}"),
                several => format!("{value} is none of these: {}", several.join(", ")),
            },
            Wrong::Told(said) => said,
        };
        Fault { path, message }
    }

    fn unknown(&self, name: &str, names: &[String]) -> String {
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("there is no option `{name}`{hint}there are {listed}")
    }

    /// The names of options below a JSON pointer.
    fn names_at(&self, pointer: &str) -> Vec<String> {
        let mut here = &self.schema;
        for segment in pointer.split('/').skip(1) {
            here = match segment.parse::<usize>() {
                Ok(_) if self.member(here, segment).is_none() => self.items(here),
                _ => self.member(here, segment),
            }
            .unwrap_or(&Value::Null);
        }
        self.properties(here).map(|(name, _)| name.clone()).collect()
    }

    /// Reads `name=value` words: dots lead into members, and a value is what the schema says that the option is.
    ///
    /// # Errors
    /// A word without `=`, an option that is not there, a value that cannot be one of the option's.
    pub fn set(&self, options: &mut Map<String, Value>, words: &[String]) -> Result<(), Fault> {
        for word in words {
            let Some((name, text)) = word.split_once('=') else {
                return Err(Fault::new(format!("`{}` sets nothing: write NAME=VALUE", shortened(word))));
            };
            self.set_one(options, name.trim(), text)?;
        }
        Ok(())
    }

    fn set_one(&self, options: &mut Map<String, Value>, name: &str, text: &str) -> Result<(), Fault> {
        let (mut here, mut into) = (&self.schema, options);
        let mut pointer = String::new();
        let segments: Vec<&str> = name.split('.').collect();
        for (depth, segment) in segments.iter().enumerate() {
            let within = pointer.clone();
            pointer += &format!("/{}", segment.replace('~', "~0").replace('/', "~1"));
            here = match self.member(here, segment) {
                Some(member) => member,
                None => {
                    let names: Vec<String> = self.properties(here).map(|(name, _)| name.clone()).collect();
                    return Err(Fault { path: within, message: self.unknown(segment, &names) });
                }
            };
            if depth + 1 == segments.len() {
                let value = self.value(here, text).map_err(|message| Fault { path: pointer, message })?;
                into.insert((*segment).to_owned(), value);
                return Ok(());
            }
            let member = into.entry((*segment).to_owned()).or_insert_with(|| Value::Object(Map::new()));
            into = match member {
                Value::Object(member) => member,
                _ => {
                    let message = "it has a value of its own, which has no members".to_owned();
                    return Err(Fault { path: pointer, message });
                }
            };
        }
        Ok(())
    }

    /// A value that `text` says, of those that `schema` allows.
    fn value(&self, schema: &Value, text: &str) -> Result<Value, String> {
        let forms = self.forms(schema);
        let mut ways: Vec<(&Value, &str)> =
            forms.iter().flat_map(|form| kinds(form).into_iter().map(move |kind| (*form, kind))).collect();
        // What is more than a text is taken for that; a list is one by its commas, where one item would do as well.
        let several = text.trim_start().starts_with('[') || items(text).len() > 1;
        ways.sort_by_key(|(_, kind)| match *kind {
            "string" => 2,
            "array" if several => 1,
            "array" => 3,
            _ => 0,
        });
        let mut wanted: Vec<&str> = Vec::new();
        for (form, kind) in ways {
            if let Some(value) = self.read(form, kind, text) {
                return value;
            }
            if !wanted.contains(&kind) {
                wanted.push(kind);
            }
        }
        if wanted.is_empty() {
            // Anything: what looks like JSON is, and a word is a word.
            return Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())));
        }
        let wanted: Vec<&str> = wanted.iter().map(|kind| article(kind)).collect();
        Err(format!("`{}` is not {}", shortened(text), wanted.join(" or ")))
    }

    /// `text` as a value of one type; `None` if it is none. What is one in itself but has a part that is not is an error.
    fn read(&self, form: &Value, kind: &str, text: &str) -> Option<Result<Value, String>> {
        let plain = text.trim().replace('_', "");
        let value = match kind {
            "integer" => match plain.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok().map(Value::from),
                None => plain
                    .parse::<i64>()
                    .map(Value::from)
                    .or_else(|_| plain.parse::<u64>().map(Value::from))
                    .ok(),
            },
            "number" => plain.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
            "boolean" => match text.trim() {
                "true" | "yes" | "on" => Some(Value::Bool(true)),
                "false" | "no" | "off" => Some(Value::Bool(false)),
                _ => None,
            },
            "null" => (text.trim() == "null").then_some(Value::Null),
            "object" => serde_json::from_str(text).ok().filter(Value::is_object),
            "array" => {
                if text.trim_start().starts_with('[') {
                    return serde_json::from_str(text).ok().filter(Value::is_array).map(Ok);
                }
                let own = self.items(form);
                let item = |word: &str| match own {
                    Some(own) => self.value(own, word.trim()),
                    None => Ok(Value::String(word.trim().to_owned())),
                };
                let words = if text.trim().is_empty() { Vec::new() } else { items(text) };
                return Some(words.into_iter().map(item).collect::<Result<Vec<_>, _>>().map(Value::Array));
            }
            "string" => Some(Value::String(text.to_owned())),
            _ => None,
        };
        value.map(Ok)
    }

    /// The option of an object.
    fn member<'s>(&'s self, schema: &'s Value, name: &str) -> Option<&'s Value> {
        self.properties(schema).find(|(own, _)| *own == name).map(|(_, member)| member)
    }

    /// The options of an object, those of its alternatives and parts included.
    fn properties<'s>(&'s self, schema: &'s Value) -> impl Iterator<Item = (&'s String, &'s Value)> {
        let all = self.forms(schema).into_iter();
        all.filter_map(|form| form.get("properties").and_then(Value::as_object)).flatten()
    }

    /// What the items of a list are.
    fn items<'s>(&'s self, schema: &'s Value) -> Option<&'s Value> {
        self.forms(schema).into_iter().find_map(|form| form.get("items")).filter(|items| items.is_object())
    }

    /// A schema, what it refers to, and its alternatives and parts.
    fn forms<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        let (mut all, mut open) = (Vec::new(), vec![schema]);
        while let Some(form) = open.pop() {
            if all.len() >= MOST_NODES {
                break;
            }
            all.push(form);
            let referred = form.get("$ref").and_then(Value::as_str).and_then(|at| referred(&self.schema, at));
            open.extend(referred);
            for parts in ["allOf", "oneOf", "anyOf"] {
                open.extend(form.get(parts).and_then(Value::as_array).into_iter().flatten().rev());
            }
        }
        all
    }

    /// All options, for who asks what there are.
    pub fn told(&self) -> Vec<Told> {
        let mut told = Vec::new();
        self.tell(&self.schema, "", 0, &mut told);
        told
    }

    fn tell(&self, schema: &Value, before: &str, depth: usize, told: &mut Vec<Told>) {
        let forms = self.forms(schema);
        let required = |name: &str| {
            let lists = forms.iter().filter_map(|form| form.get("required").and_then(Value::as_array));
            lists.flatten().any(|required| required.as_str() == Some(name))
        };
        for (name, member) in self.properties(schema) {
            let own = self.forms(member);
            let find = |key: &str| own.iter().find_map(|form| form.get(key));
            let about = find("description").or_else(|| find("title")).and_then(Value::as_str);
            let full = format!("{before}{name}");
            told.push(Told {
                name: full.clone(),
                kind: self.kind(member),
                default: find("default").filter(|default| !default.is_null()).cloned(),
                required: required(name),
                about: about.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "),
            });
            if depth < 8 && self.properties(member).next().is_some() {
                self.tell(member, &format!("{full}."), depth + 1, told);
            }
        }
    }

    /// What an option may be, in words.
    fn kind(&self, schema: &Value) -> String {
        let forms = self.forms(schema);
        let mut choices: Vec<String> = Vec::new();
        for form in &forms {
            let listed = form.get("enum").and_then(Value::as_array).into_iter().flatten();
            let values = listed.chain(form.get("const")).filter(|value| !value.is_null());
            choices
                .extend(values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        choices.dedup();
        if !choices.is_empty() {
            return choices.join(", ");
        }
        let (mut words, mut lists): (Vec<String>, Vec<String>) = Default::default();
        for form in &forms {
            for kind in kinds(form).into_iter().filter(|kind| *kind != "null") {
                let bound = |least: &str, most: &str| {
                    let number =
                        |key: &str| form.get(key).filter(|value| value.is_number()).map(Value::to_string);
                    match (number(least), number(most)) {
                        (Some(least), Some(most)) => format!(" {least} to {most}"),
                        (Some(least), None) => format!(" from {least} on"),
                        (None, Some(most)) => format!(" up to {most}"),
                        (None, None) => String::new(),
                    }
                };
                let word = match kind {
                    "integer" | "number" => format!("{kind}{}", bound("minimum", "maximum")),
                    "boolean" => "true or false".to_owned(),
                    "array" => {
                        lists.push(
                            self.items(form).map_or_else(|| "anything".to_owned(), |own| self.kind(own)),
                        );
                        continue;
                    }
                    "object" => "members".to_owned(),
                    "string" => match form.get("format").and_then(Value::as_str) {
                        Some(format) if !format.starts_with("uint") => format!("text ({format})"),
                        _ => "text".to_owned(),
                    },
                    other => other.to_owned(),
                };
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        let one = words.join(" or ");
        for list in lists {
            words.push(if list == one { "a list of these".to_owned() } else { format!("list of {list}") });
        }
        if words.is_empty() { "anything".to_owned() } else { words.join(" or ") }
    }
}

/// The types that a schema names, a text last: whatever is something else is that first.
fn kinds(form: &Value) -> Vec<&str> {
    let mut kinds: Vec<&str> = match form.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => {
            let values =
                form.get("enum").and_then(Value::as_array).into_iter().flatten().chain(form.get("const"));
            if values.into_iter().any(Value::is_string) { vec!["string"] } else { Vec::new() }
        }
    };
    kinds.sort_by_key(|kind| *kind == "string");
    kinds
}

/// The items of a list with commas between; one within parentheses or brackets is no end of an item.
fn items(text: &str) -> Vec<&str> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.push(text.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(text.get(from..).unwrap_or_default());
    all
}

/// What a reference within the schema refers to.
fn referred<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Looks through a schema as whoever checks by it will, before anybody does.
struct Walk<'s> {
    root: &'s Value,
    nodes: usize,
    patterns: usize,
    of_patterns: usize,
    /// References that are being followed.
    refs: Vec<&'s str>,
}

impl<'s> Walk<'s> {
    fn look(&mut self, value: &'s Value, depth: usize) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err(format!(
                "it has more than {MOST_NODES} parts, each reference counted as what it refers to"
            ));
        }
        if depth > DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} deep"));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.look(item, depth + 1)),
            Value::Object(members) => {
                members.iter().try_for_each(|(key, member)| self.member(key, member, depth))
            }
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        self.of_patterns += pattern.len();
        if self.patterns > MOST_PATTERNS || self.of_patterns > MOST_OF_PATTERNS {
            return Err(format!(
                "it has more than {MOST_PATTERNS} patterns, or {MOST_OF_PATTERNS} bytes of them"
            ));
        }
        Ok(())
    }

    fn member(&mut self, key: &'s str, member: &'s Value, depth: usize) -> Result<(), String> {
        match (key, member) {
            ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
            ("patternProperties", Value::Object(members)) => {
                members.keys().try_for_each(|pattern| self.pattern(pattern))?;
            }
            _ => {}
        }
        match (key, member) {
            (
                "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$anchor" | "$id" | "$vocabulary",
                Value::String(_),
            ) => Err(format!("`{key}` is not taken: options need no more than `$ref` to `#/$defs/...`")),
            ("$ref", Value::String(reference)) => {
                if !reference.starts_with("#/") {
                    return Err(format!(
                        "`$ref` {}: only what stands in the schema itself can be referred to",
                        shortened(reference)
                    ));
                }
                if self.refs.contains(&reference.as_str()) {
                    return Err(format!("`$ref` {}: it comes round to itself", shortened(reference)));
                }
                let target = referred(self.root, reference)
                    .ok_or_else(|| format!("`$ref` {}: nothing stands there", shortened(reference)))?;
                self.refs.push(reference);
                let looked = self.look(target, depth + 1);
                self.refs.pop();
                looked
            }
            // Looked at where they are referred to.
            ("$defs" | "definitions", _) if depth == 0 => Ok(()),
            _ => self.look(member, depth + 1),
        }
    }
}
