//! What is published: `docs/scenario.schema.json` and everything under `examples/`.

use crate::context;
use netdyno_scenario::{parse, schema};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The examples' names and texts.
fn examples() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("examples")).expect("the examples");
    let mut all: Vec<(String, String)> = folder
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).expect("an example")))
        .collect();
    all.sort();
    all
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    let path = root().join("docs/scenario.schema.json");
    if std::env::var_os("NETDYNO_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, schema()).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == schema(),
        "docs/scenario.schema.json is stale: NETDYNO_BLESS=1 cargo test -p netdyno-scenario writes it anew"
    );
}

#[test]
fn every_example_keeps_to_the_schema_compiles_and_says_what_it_shows() {
    let schema: Value = serde_json::from_str(&schema()).expect("JSON");
    let all = examples();
    assert!(all.len() >= 11, "{}", all.len());
    for (name, text) in all {
        let value: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(check(&schema, &schema, &value, "file"), Ok(()), "{name}");
        let scenario = parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let compiled = scenario.compile(&context()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(compiled.unsigned, Vec::<String>::new(), "{name}: every example has room for signatures");
        assert!(!compiled.endless, "{name}: every example ends");
        let comment =
            text.lines().take_while(|line| line.starts_with('#')).filter(|line| line.len() > 2).count();
        assert!(comment >= 2, "{name} begins with what it shows");
        assert!(text.starts_with("# yaml-language-server: $schema=../docs/scenario.schema.json\n"), "{name}");
    }
}

#[test]
fn an_example_uses_its_seed_exactly_when_another_seed_makes_another_program() {
    let mut drawn = 0;
    for (name, text) in examples() {
        let scenario = parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let [one, other] = [1, 2].map(|seed| {
            let context = netdyno_scenario::Context { seed, ..context() };
            scenario.compile(&context).unwrap_or_else(|error| panic!("{error}")).program
        });
        let matters = format!("{one:?}") != format!("{other:?}");
        assert_eq!(one.uses_seed(), matters, "{name}");
        drawn += u32::from(matters);
    }
    assert!(drawn > 0, "at least one example is random");
}

#[test]
fn what_the_schema_refuses_the_parser_refuses() {
    let schema: Value = serde_json::from_str(&schema()).expect("JSON");
    for (text, schema_too) in [
        ("streams: [{frame: ipv4, rat: 1mpps}]", true),
        ("streams: [{rate: 1mpps}]", true),
        ("streams: []", true),
        ("stream: [{frame: ipv4}]", true),
        ("rate: [1mpps]\nstreams: [{frame: ipv4}]", true),
        ("streams: [{frame: ipv4, size: true, rate: 1kpps}]", true),
        ("streams: [{frame: ipv4, weight: 0}]\nrate: 1kpps", true),
        ("streams: [{frame: ipv4, ramp: {from: 1kpps, to: 2kpps, over: 1s, steps: 1}}]", true),
        ("streams: [{frame: ipv4, ramp: {from: 1kpps, to: 2kpps, over: 1s, then: go}}]", true),
        ("streams: [{frame: ipv4, burst: {frames: 5}}]", true),
        // What a schema cannot say.
        ("streams: [{frame: ipv4, rate: 1000}]", true),
        ("streams: [{frame: ipv5, rate: 1kpps}]", false),
        ("streams: [{frame: ipv4, rate: 1kpps, weight: 5}]", false),
    ] {
        let value: Value = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(check(&schema, &schema, &value, "file").is_err(), schema_too, "{text}");
        let refused = parse(text, "x").map(|scenario| scenario.compile(&context()).map(|_| ()));
        assert!(!matches!(refused, Ok(Ok(()))), "{text}");
    }
}

/// Holds a value to a JSON Schema, as far as ours uses the language; words that are not known here fail, so that
/// nothing passes unlooked at.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fault = |what: &str| Err(format!("{at}: {what}: {value}"));
    let words = schema.as_object().unwrap_or_else(|| panic!("{at}: not a schema: {schema}"));
    for (word, rule) in words {
        let ok = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "examples" | "default" | "format" => true,
            "$ref" => {
                let target = rule.as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
                check(root, target.unwrap_or_else(|| panic!("no {rule}")), value, at)?;
                true
            }
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is(kind, value)),
                kind => is(kind, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().expect("a list").contains(value),
            "anyOf" | "oneOf" => {
                let fits = rule
                    .as_array()
                    .expect("a list")
                    .iter()
                    .filter(|r| check(root, r, value, at).is_ok())
                    .count();
                if word == "anyOf" { fits > 0 } else { fits == 1 }
            }
            "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().expect("a number")),
            "minItems" => value.as_array().is_none_or(|v| v.len() as u64 >= rule.as_u64().expect("a number")),
            "maxItems" => value.as_array().is_none_or(|v| v.len() as u64 <= rule.as_u64().expect("a number")),
            "minProperties" => {
                value.as_object().is_none_or(|v| v.len() as u64 >= rule.as_u64().expect("a number"))
            }
            "required" => rule.as_array().expect("a list").iter().all(|name| {
                value.as_object().is_none_or(|fields| fields.contains_key(name.as_str().expect("a name")))
            }),
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}[{n}]"))?;
                }
                true
            }
            "properties" | "additionalProperties" => {
                let known = schema["properties"].as_object();
                for (name, field) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}.{name}");
                    match (known.and_then(|known| known.get(name)), rule) {
                        (Some(rule), _) => check(root, rule, field, &at)?,
                        (None, Value::Bool(false)) => return Err(format!("{at}: unknown")),
                        (None, rule) if word == "additionalProperties" => check(root, rule, field, &at)?,
                        (None, _) => {}
                    }
                }
                true
            }
            "propertyNames" => {
                // The one pattern there is: digits.
                assert_eq!(rule["pattern"], "^[0-9_]+$");
                value.as_object().is_none_or(|fields| {
                    fields.keys().all(|name| name.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
                })
            }
            other => panic!("the check does not know `{other}`: teach it"),
        };
        if !ok {
            return fault(word);
        }
    }
    Ok(())
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => panic!("no type {kind}"),
    }
}

#[test]
fn every_scenario_in_the_documentation_keeps_to_the_schema_and_compiles() {
    let schema: Value = serde_json::from_str(&schema()).expect("JSON");
    let page = std::fs::read_to_string(root().join("docs/scenarios.md")).expect("the page");
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 9, "{}", blocks.len());
    for text in blocks {
        let value: Value = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(check(&schema, &schema, &value, "file"), Ok(()), "{text}");
        let scenario = parse(text, "scenarios.md").unwrap_or_else(|error| panic!("{error}"));
        scenario.compile(&context()).unwrap_or_else(|error| panic!("{error}"));
    }
}
