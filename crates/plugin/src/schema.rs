//! JSON Schema (draft 2020-12), as much of it as options need.
//!
//! A word that is not known here is an error and never passed over: options that nobody checked would look checked. A test holds
//! what is here to Python's `jsonschema`.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use traffic::expr::did_you_mean;

/// Memory of a compiled pattern.
const LARGEST_PATTERN: usize = 1 << 20;
/// Values that are held to schemas, each member and item with each, and some bytes of a text count as one: more is wanted by who
/// wants it to take long.
const MOST_STEPS: u64 = 10_000_000;
const BYTES_OF_A_STEP: usize = 64;

/// Words that are taken. The last ones say something, and check nothing.
pub(crate) const WORDS: [&str; 41] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "required",
    "minProperties",
    "maxProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Formats of numbers, as Rust's schemas have them: `minimum` and `maximum` check.
const NUMBERS: [&str; 14] = [
    "uint", "uint8", "uint16", "uint32", "uint64", "uint128", "int", "int8", "int16", "int32", "int64",
    "int128", "float", "double",
];

/// A schema that values are held to.
pub(crate) struct Checker(Node);

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A member that may not be there.
    Unknown(String),
    /// A member that must be there.
    Missing(String),
    /// The value, and all that it may be instead: types and values, in words.
    Other(String, Vec<String>),
    /// In words.
    Told(String),
}

/// What is wrong, and where: names and indices, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    path: Vec<String>,
    pub(crate) wrong: Wrong,
}

impl Fault {
    /// As a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        self.path
            .iter()
            .rev()
            .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
            .collect()
    }

    fn within(mut self, part: impl ToString) -> Fault {
        self.path.push(part.to_string());
        self
    }
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Fault {
        Fault { path: Vec::new(), wrong }
    }
}

fn told(said: String) -> Result<(), Fault> {
    Err(Wrong::Told(said).into())
}

/// A bound of a number.
struct Bound {
    limit: Number,
    /// What a number is to it that keeps it.
    keeps: fn(Ordering) -> bool,
    said: &'static str,
}

enum Format {
    Ip,
    V4,
    V6,
}

#[derive(Default)]
struct Node {
    /// `false`: nothing is right.
    nothing: bool,
    types: Option<Vec<&'static str>>,
    /// `enum` and `const`, each a list of what it allows: in canonical form, and in words.
    values: Vec<(HashSet<String>, Vec<String>)>,
    bounds: Vec<Bound>,
    multiple_of: Option<Number>,
    length: Within,
    pattern: Option<Regex>,
    format: Option<Format>,
    items: Option<Box<Node>>,
    first_items: Vec<Node>,
    item_count: Within,
    unique: bool,
    properties: BTreeMap<String, Node>,
    patterns: Vec<(Regex, Node)>,
    additional: Option<Box<Node>>,
    unevaluated: Option<Box<Node>>,
    names: Option<Box<Node>>,
    required: Vec<String>,
    member_count: Within,
    all: Vec<Node>,
    any: Option<Vec<Node>>,
    one: Option<Vec<Node>>,
    not: Option<Box<Node>>,
}

/// How many there may be.
#[derive(Default)]
struct Within {
    least: Option<u64>,
    most: Option<u64>,
}

impl Within {
    fn check(&self, count: u64, what: &str) -> Result<(), Fault> {
        match (self.least, self.most) {
            (Some(least), _) if count < least => {
                told(format!("it has {count} {what}, and at least {least} are needed"))
            }
            (_, Some(most)) if count > most => {
                told(format!("it has {count} {what}, and {most} are taken at most"))
            }
            _ => Ok(()),
        }
    }
}

/// Names of members that a schema, or one that it is made of, has looked at.
type Seen<'v> = BTreeSet<&'v str>;

impl Checker {
    /// Takes a schema whose references were looked through: they stand in the root, and go round in no circle.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn new(root: &Value) -> Result<Checker, String> {
        Compile { root }.node(root, "").map(Checker)
    }

    /// Is the value right?
    ///
    /// # Errors
    /// What is wrong first.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Fault> {
        let steps = Cell::new(0);
        let checked = self.0.check(value, &mut Seen::new(), &steps);
        // Whatever came of it, when it was given up.
        if steps.get() > MOST_STEPS { told("to check it takes too long".to_owned()) } else { checked }
    }
}

impl Node {
    fn check<'v>(&self, value: &'v Value, seen: &mut Seen<'v>, steps: &Cell<u64>) -> Result<(), Fault> {
        steps.set(steps.get() + 1);
        if self.nothing || steps.get() > MOST_STEPS {
            return told("nothing may stand here".to_owned());
        }
        let other = |may_be| Err(Wrong::Other(short(value), may_be).into());
        if let Some(types) = &self.types
            && !types.iter().any(|kind| is(value, kind))
        {
            return other(types.iter().map(|kind| article(kind).to_owned()).collect());
        }
        for (values, words) in &self.values {
            if !values.contains(&canonical(value, steps)) {
                return other(words.clone());
            }
        }
        match value {
            Value::Number(number) => self.check_number(number)?,
            Value::String(text) => {
                steps.set(steps.get() + (text.len() / BYTES_OF_A_STEP) as u64);
                self.check_text(text)?;
            }
            Value::Array(items) => self.check_items(items, steps)?,
            Value::Object(members) => self.check_members(members, seen, steps)?,
            _ => {}
        }
        self.check_parts(value, seen, steps)?;
        if let (Some(node), Value::Object(members)) = (&self.unevaluated, value) {
            check_others(node, members, seen, steps)?;
        }
        Ok(())
    }

    fn check_number(&self, number: &Number) -> Result<(), Fault> {
        for bound in &self.bounds {
            if !compare(number, &bound.limit).is_some_and(bound.keeps) {
                return told(format!("{number} is {} {}", bound.said, bound.limit));
            }
        }
        match &self.multiple_of {
            Some(of) if !is_multiple(number, of) => told(format!("{number} is no multiple of {of}")),
            _ => Ok(()),
        }
    }

    fn check_text(&self, text: &str) -> Result<(), Fault> {
        self.length.check(text.chars().count() as u64, "characters")?;
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            return told(format!("{} does not match {pattern}", short(&Value::from(text))));
        }
        let (right, what) = match self.format {
            None => return Ok(()),
            Some(Format::Ip) => (text.parse::<IpAddr>().is_ok(), "IP"),
            Some(Format::V4) => (text.parse::<Ipv4Addr>().is_ok(), "IPv4"),
            Some(Format::V6) => (text.parse::<Ipv6Addr>().is_ok(), "IPv6"),
        };
        if right { Ok(()) } else { told(format!("{} is not an {what} address", short(&Value::from(text)))) }
    }

    fn check_items(&self, items: &[Value], steps: &Cell<u64>) -> Result<(), Fault> {
        self.item_count.check(items.len() as u64, "items")?;
        if self.unique {
            let mut known = HashSet::new();
            if let Some(twice) = items.iter().find(|item| !known.insert(canonical(item, steps))) {
                return told(format!("{} is in it more than once", short(twice)));
            }
        }
        for (at, item) in items.iter().enumerate() {
            if let Some(node) = self.first_items.get(at).or(self.items.as_deref()) {
                node.check(item, &mut Seen::new(), steps).map_err(|fault| fault.within(at))?;
            }
        }
        Ok(())
    }

    fn check_members<'v>(
        &self,
        members: &'v Map<String, Value>,
        seen: &mut Seen<'v>,
        steps: &Cell<u64>,
    ) -> Result<(), Fault> {
        let mut own = Seen::new();
        for (name, member) in members {
            if let Some(names) = &self.names {
                let named = names.check(&Value::from(name.as_str()), &mut Seen::new(), steps);
                named.map_err(|_| {
                    Wrong::Told(format!("`{}` is no name that a member may have here", shortened(name)))
                })?;
            }
            let matched =
                self.patterns.iter().filter(|(pattern, _)| pattern.is_match(name)).map(|(_, node)| node);
            for node in self.properties.get(name).into_iter().chain(matched) {
                own.insert(name);
                node.check(member, &mut Seen::new(), steps).map_err(|fault| fault.within(name))?;
            }
        }
        if let Some(node) = &self.additional {
            check_others(node, members, &mut own, steps)?;
        }
        if let Some(missing) = self.required.iter().find(|name| !members.contains_key(*name)) {
            return Err(Wrong::Missing(missing.clone()).into());
        }
        self.member_count.check(members.len() as u64, "members")?;
        seen.append(&mut own);
        Ok(())
    }

    /// The schemas that it is made of.
    fn check_parts<'v>(&self, value: &'v Value, seen: &mut Seen<'v>, steps: &Cell<u64>) -> Result<(), Fault> {
        for node in &self.all {
            // What stands beside it is none of what it has seen.
            let mut own = Seen::new();
            node.check(value, &mut own, steps)?;
            seen.append(&mut own);
        }
        for (nodes, one) in [(&self.any, false), (&self.one, true)] {
            let Some(nodes) = nodes else { continue };
            let (mut right, mut faults) = (0, Vec::new());
            for node in nodes {
                let mut own = Seen::new();
                match node.check(value, &mut own, steps) {
                    Ok(()) => {
                        right += 1;
                        seen.append(&mut own);
                    }
                    Err(fault) => faults.push(fault),
                }
            }
            if right == 0 {
                return Err(nearest(faults));
            }
            if one && right > 1 {
                return told(format!("{} is {right} of the things that it may be one of", short(value)));
            }
        }
        match &self.not {
            Some(node) if node.check(value, &mut Seen::new(), steps).is_ok() => {
                told(format!("{} may not stand here", short(value)))
            }
            _ => Ok(()),
        }
    }
}

/// The members that were not seen yet.
fn check_others<'v>(
    node: &Node,
    members: &'v Map<String, Value>,
    seen: &mut Seen<'v>,
    steps: &Cell<u64>,
) -> Result<(), Fault> {
    for (name, member) in members {
        if seen.insert(name) {
            if node.nothing {
                return Err(Wrong::Unknown(name.clone()).into());
            }
            node.check(member, &mut Seen::new(), steps).map_err(|fault| fault.within(name))?;
        }
    }
    Ok(())
}

/// Of what is wrong with a value by each of the things that it may be, what is most likely a help: by the one whose type it has;
/// if it has none's, all that it may be.
fn nearest(faults: Vec<Fault>) -> Fault {
    let is_other = |fault: &&Fault| matches!(fault.wrong, Wrong::Other(..)) && fault.path.is_empty();
    if let Some(fault) = faults.iter().filter(|fault| !is_other(fault)).max_by_key(|fault| fault.path.len()) {
        return fault.clone();
    }
    let (mut value, mut all) = (String::new(), Vec::new());
    for fault in faults {
        if let Wrong::Other(own, may_be) = fault.wrong {
            value = own;
            all.extend(may_be);
        }
    }
    let mut known = HashSet::new();
    all.retain(|word| known.insert(word.clone()));
    Wrong::Other(value, all).into()
}

/// A type, as a person says that something is one.
pub(crate) fn article(kind: &str) -> &'static str {
    match kind {
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a JSON object",
        "null" => "null",
        _ => "a text",
    }
}

/// Is a value of a type?
fn is(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
        Value::Number(number) => {
            kind == "number" || kind == "integer" && (!number.is_f64() || whole(number).is_some())
        }
    }
}

/// An integer, however it is written.
fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // A float of this size or less is one of them exactly.
    integer.or_else(|| {
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e38).map(|float| float as i128)
    })
}

/// Compares by value: integers are not rounded to floats.
fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        // Between integers is a float; one beyond all of them compares with any.
        (Some(a), None) => against(a, b.as_f64()?),
        (None, Some(b)) => against(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// How an integer compares to a float that is none.
fn against(integer: i128, float: f64) -> Option<Ordering> {
    if float.abs() >= 1e38 {
        return 0.0.partial_cmp(&float);
    }
    Some(integer.cmp(&(float.floor() as i128)).then(Ordering::Less))
}

fn is_multiple(number: &Number, of: &Number) -> bool {
    match (whole(number), whole(of)) {
        (Some(number), Some(of)) => number.checked_rem(of) == Some(0),
        _ => match (number.as_f64(), of.as_f64()) {
            (Some(number), Some(of)) => (number / of).fract() == 0.0,
            _ => false,
        },
    }
}

/// Text that two values share if they are equal as JSON Schema has it: 1 is 1.0, and members have no order.
fn canonical(value: &Value, steps: &Cell<u64>) -> String {
    let length = value.as_str().map_or(0, str::len);
    steps.set(steps.get() + 1 + (length / BYTES_OF_A_STEP) as u64);
    if steps.get() > MOST_STEPS {
        return String::new();
    }
    match value {
        Value::Number(number) => whole(number).map_or_else(|| number.to_string(), |whole| whole.to_string()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| canonical(item, steps)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| {
                format!("{}:{}", Value::from(name.as_str()), canonical(member, steps))
            };
            let mut all: Vec<String> = members.iter().map(member).collect();
            all.sort();
            format!("{{{}}}", all.join(","))
        }
        other => other.to_string(),
    }
}

/// A pattern of ECMAScript, whose classes are of ASCII, as one of crate `regex`.
fn pattern(text: &str) -> Result<Regex, String> {
    let mut own = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            own.push(letter);
            continue;
        }
        match letters.next() {
            Some('d') => own += "[0-9]",
            Some('D') => own += "[^0-9]",
            Some('w') => own += "[0-9A-Za-z_]",
            Some('W') => own += "[^0-9A-Za-z_]",
            Some('s') => own += r"[\t\n\x0b\x0c\r \u{a0}\u{feff}\u{2028}\u{2029}]",
            Some('S') => own += r"[^\t\n\x0b\x0c\r \u{a0}\u{feff}\u{2028}\u{2029}]",
            Some(edge @ ('b' | 'B')) => own += &format!(r"(?-u:\{edge})"),
            Some('/') => own.push('/'),
            Some(other) => own.extend(['\\', other]),
            None => own.push('\\'),
        }
    }
    let mut builder = RegexBuilder::new(&own);
    builder.size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN);
    // The last line says what; those above point at it.
    builder.build().map_err(|why| {
        why.to_string().lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
    })
}

/// Makes nodes of schemas.
struct Compile<'s> {
    root: &'s Value,
}

impl Compile<'_> {
    fn node(&self, schema: &Value, at: &str) -> Result<Node, String> {
        let here = |what: String| format!("at `{}`: {what}", if at.is_empty() { "/" } else { at });
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(right) => return Ok(Node { nothing: !right, ..Node::default() }),
            _ => {
                return Err(here(format!(
                    "{} is no schema: it is neither an object nor true or false",
                    short(schema)
                )));
            }
        };
        let mut node = Node::default();
        for (word, value) in members {
            let path = format!("{at}/{}", word.replace('~', "~0").replace('/', "~1"));
            self.word(&mut node, word, value, &path).map_err(|what| match what {
                Bad::Here(what) => format!("at `{path}`: {what}"),
                Bad::Below(what) => what,
            })?;
        }
        Ok(node)
    }

    fn word(&self, node: &mut Node, word: &str, value: &Value, path: &str) -> Result<(), Bad> {
        let below = |schema: &Value, at: &str| self.node(schema, at).map_err(Bad::Below);
        let boxed = || below(value, path).map(|node| Some(Box::new(node)));
        match word {
            "type" => {
                let names: Vec<&Value> =
                    value.as_array().map_or_else(|| vec![value], |names| names.iter().collect());
                const KINDS: [&str; 7] =
                    ["array", "boolean", "integer", "null", "number", "object", "string"];
                let known = |name: &Value| KINDS.into_iter().find(|kind| name.as_str() == Some(kind));
                let kinds: Option<Vec<&'static str>> = names.into_iter().map(known).collect();
                let kinds = kinds.filter(|kinds| !kinds.is_empty());
                node.types = Some(
                    kinds.ok_or_else(|| bad(value, &format!("no type: there are {}", KINDS.join(", "))))?,
                );
            }
            "enum" | "const" => {
                let one = [value.clone()];
                let all = if word == "const" { &one[..] } else { list(value)? };
                let words =
                    all.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                let steps = Cell::new(0);
                node.values
                    .push((all.iter().map(|value| canonical(value, &steps)).collect(), words.collect()));
            }
            "minimum" => node.bounds.push(bound(value, Ordering::is_ge, "less than the minimum of")?),
            "maximum" => node.bounds.push(bound(value, Ordering::is_le, "greater than the maximum of")?),
            "exclusiveMinimum" => node.bounds.push(bound(value, Ordering::is_gt, "not greater than")?),
            "exclusiveMaximum" => node.bounds.push(bound(value, Ordering::is_lt, "not less than")?),
            "multipleOf" => {
                let of = number(value)?;
                if of.as_f64().is_none_or(|of| of <= 0.0) {
                    return Err(bad(value, "not more than 0"));
                }
                node.multiple_of = Some(of.clone());
            }
            "minLength" => node.length.least = Some(count(value)?),
            "maxLength" => node.length.most = Some(count(value)?),
            "minItems" => node.item_count.least = Some(count(value)?),
            "maxItems" => node.item_count.most = Some(count(value)?),
            "minProperties" => node.member_count.least = Some(count(value)?),
            "maxProperties" => node.member_count.most = Some(count(value)?),
            "pattern" => {
                let text = value.as_str().ok_or_else(|| bad(value, "no text"))?;
                node.pattern =
                    Some(pattern(text).map_err(|why| Bad::Here(format!("`{}`: {why}", shortened(text))))?);
            }
            "format" => match value.as_str().unwrap_or_default() {
                "ip" => node.format = Some(Format::Ip),
                "ipv4" => node.format = Some(Format::V4),
                "ipv6" => node.format = Some(Format::V6),
                other if NUMBERS.contains(&other) => {}
                _ => {
                    return Err(bad(
                        value,
                        "no format that is checked: there are ip, ipv4, ipv6; of other texts write a `pattern`",
                    ));
                }
            },
            "items" => node.items = boxed()?,
            "prefixItems" => node.first_items = self.nodes(value, path)?,
            "uniqueItems" => node.unique = flag(value)?,
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "required" => self.members(node, word, value, path)?,
            "allOf" => node.all.extend(self.nodes(value, path)?),
            "anyOf" => node.any = Some(self.nodes(value, path)?),
            "oneOf" => node.one = Some(self.nodes(value, path)?),
            "not" => node.not = boxed()?,
            "$ref" => {
                let at = value.as_str().ok_or_else(|| bad(value, "no text"))?;
                let schema = at.strip_prefix('#').and_then(|at| self.root.pointer(at));
                let schema = schema
                    .ok_or_else(|| bad(value, "no reference to something that stands in the schema"))?;
                node.all.push(below(schema, at.trim_start_matches('#'))?);
            }
            // What nothing refers to checks nothing.
            "$defs" | "definitions" => drop(object(value)?),
            "$schema" | "$comment" | "title" | "description" => {
                value.as_str().ok_or_else(|| bad(value, "no text"))?;
            }
            "examples" => drop(list(value)?),
            "deprecated" | "readOnly" | "writeOnly" => drop(flag(value)?),
            "default" => {}
            // A remark by convention.
            other if other.starts_with("x-") => {}
            other => {
                let hint = did_you_mean(other, WORDS.into_iter());
                let words = WORDS.join(", ");
                return Err(Bad::Here(format!(
                    "`{}` is no word of a schema that is checked here{hint}there are {words}",
                    shortened(other)
                )));
            }
        }
        Ok(())
    }

    /// What objects may have in them.
    fn members(&self, node: &mut Node, word: &str, value: &Value, path: &str) -> Result<(), Bad> {
        let below = |schema: &Value, at: &str| self.node(schema, at).map_err(Bad::Below);
        let boxed = || below(value, path).map(|node| Some(Box::new(node)));
        let at = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        match word {
            "properties" => {
                for (name, member) in object(value)? {
                    node.properties.insert(name.clone(), below(member, &at(name))?);
                }
            }
            "patternProperties" => {
                for (name, member) in object(value)? {
                    let own =
                        pattern(name).map_err(|why| Bad::Here(format!("`{}`: {why}", shortened(name))))?;
                    node.patterns.push((own, below(member, &at(name))?));
                }
            }
            "additionalProperties" => node.additional = boxed()?,
            "unevaluatedProperties" => node.unevaluated = boxed()?,
            "propertyNames" => node.names = boxed()?,
            "required" => {
                for name in list(value)? {
                    node.required.push(name.as_str().ok_or_else(|| bad(name, "no text"))?.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn nodes(&self, value: &Value, path: &str) -> Result<Vec<Node>, Bad> {
        let all = list(value)?;
        if all.is_empty() {
            return Err(bad(value, "a list of nothing"));
        }
        all.iter()
            .enumerate()
            .map(|(n, schema)| self.node(schema, &format!("{path}/{n}")).map_err(Bad::Below))
            .collect()
    }
}

/// What is wrong with a schema: here, or somewhere below, which is said already.
enum Bad {
    Here(String),
    Below(String),
}

fn bad(value: &Value, is: &str) -> Bad {
    Bad::Here(format!("{} is {is}", short(value)))
}

fn list(value: &Value) -> Result<&[Value], Bad> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| bad(value, "no list"))
}

fn object(value: &Value) -> Result<&Map<String, Value>, Bad> {
    value.as_object().ok_or_else(|| bad(value, "no object"))
}

fn flag(value: &Value) -> Result<bool, Bad> {
    value.as_bool().ok_or_else(|| bad(value, "neither true nor false"))
}

fn number(value: &Value) -> Result<&Number, Bad> {
    value.as_number().ok_or_else(|| bad(value, "no number"))
}

fn bound(value: &Value, keeps: fn(Ordering) -> bool, said: &'static str) -> Result<Bound, Bad> {
    Ok(Bound { limit: number(value)?.clone(), keeps, said })
}

fn count(value: &Value) -> Result<u64, Bad> {
    let whole = value.as_number().and_then(whole).and_then(|whole| u64::try_from(whole).ok());
    whole.ok_or_else(|| bad(value, "no number from 0 on without a fraction"))
}

/// A value as JSON, the first of a long one.
fn short(value: &Value) -> String {
    let mut few = Few(Vec::new());
    // It is full, and that is no error.
    let _ = serde_json::to_writer(&mut few, value);
    shortened(&String::from_utf8_lossy(&few.0))
}

/// Takes no more than is shown of it.
struct Few(Vec<u8>);

impl Write for Few {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() > 1000 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes.get(..1000).unwrap_or(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Not more of a text than anybody reads.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 160;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
