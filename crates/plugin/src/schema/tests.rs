//! Python's `jsonschema` judges what is right by a schema, but for `unevaluatedProperties`, of which some releases of it are wrong
//! (4.10 is; 4.26 was of one mind with this); hostile schemas and values end soon.

use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::process::{Command, Stdio};

fn verdict(schema: &Value, value: &Value) -> Result<(), String> {
    let checker = Checker::new(schema).expect("a schema");
    checker.check(value).map_err(|fault| format!("{}: {:?}", fault.pointer(), fault.wrong))
}

/// Values that are near each other, so that many keep to a schema.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..9).prop_map(Value::from),
        (-3i64..9).prop_map(|n| json!(n as f64)),
        (-6i64..18).prop_map(|n| json!(n as f64 / 2.0)),
        Just(json!(u64::MAX)),
        Just(json!((1u64 << 53) + 1)),
        "[abé1]{0,4}".prop_map(Value::from),
        Just(json!("10.0.0.1")),
        Just(json!("fc00::1")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let kind =
        || prop::sample::select(vec!["array", "boolean", "integer", "null", "number", "object", "string"]);
    let bound =
        || prop_oneof![(-2i64..7).prop_map(Value::from), (-4i64..14).prop_map(|n| json!(n as f64 / 2.0))];
    let word = |word: &'static str| move |value: Value| (word.to_owned(), value);
    let count = || (0u64..3).prop_map(Value::from);
    let flat = move || {
        prop_oneof![
            kind().prop_map(Value::from).prop_map(word("type")),
            prop::collection::btree_set(kind(), 1..4).prop_map(|kinds| json!(kinds)).prop_map(word("type")),
            prop::collection::vec(value(), 1..5).prop_map(Value::from).prop_map(word("enum")),
            value().prop_map(word("const")),
            bound().prop_map(word("minimum")),
            bound().prop_map(word("maximum")),
            bound().prop_map(word("exclusiveMinimum")),
            bound().prop_map(word("exclusiveMaximum")),
            prop_oneof![Just(json!(2)), Just(json!(1.5)), Just(json!(3))].prop_map(word("multipleOf")),
            count().prop_map(word("minLength")),
            count().prop_map(word("maxLength")),
            prop::sample::select(vec!["^a", "b$", "[ab]+1", "a|é", r"\d", r"^\w*$", r"^[^\d]*$", "."])
                .prop_map(Value::from)
                .prop_map(word("pattern")),
            prop::sample::select(vec!["ipv4", "ipv6", "uint32"])
                .prop_map(Value::from)
                .prop_map(word("format")),
            count().prop_map(word("minItems")),
            count().prop_map(word("maxItems")),
            any::<bool>().prop_map(Value::from).prop_map(word("uniqueItems")),
            prop::collection::btree_set("[abc]", 0..3)
                .prop_map(|names| json!(names))
                .prop_map(word("required")),
            count().prop_map(word("minProperties")),
            count().prop_map(word("maxProperties")),
            Just(json!({ "pattern": "^[ab]" })).prop_map(word("propertyNames")),
            Just(json!("#/$defs/d")).prop_map(word("$ref")),
        ]
    };
    let object = |words: Vec<(String, Value)>| Value::Object(words.into_iter().collect());
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        8 => prop::collection::vec(flat(), 0..3).prop_map(object),
    ];
    let any = leaf.prop_recursive(4, 24, 3, move |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let named = |names: &'static [&'static str]| {
            prop::collection::btree_map(prop::sample::select(names), inner.clone(), 0..3)
                .prop_map(|members| json!(members))
        };
        let deep = prop_oneof![
            named(&["a", "b", "c"]).prop_map(word("properties")),
            named(&["a", "[bc]", "^b$"]).prop_map(word("patternProperties")),
            inner.clone().prop_map(word("additionalProperties")),
            inner.clone().prop_map(word("items")),
            several().prop_map(word("prefixItems")),
            several().prop_map(word("allOf")),
            several().prop_map(word("anyOf")),
            several().prop_map(word("oneOf")),
            inner.clone().prop_map(word("not")),
        ];
        prop::collection::vec(prop_oneof![2 => deep, 1 => flat()], 1..5).prop_map(object)
    });
    any.prop_filter("an object, to have definitions", Value::is_object).prop_map(|mut schema| {
        schema["$defs"] = json!({ "d": { "type": ["integer", "object"], "properties": { "a": { "type": "integer" } }, "maximum": 4 } });
        schema
    })
}

const PYTHON: &str = r#"
import json, sys
from jsonschema import Draft202012Validator, FormatChecker
formats = FormatChecker(["ipv4", "ipv6"])
for line in sys.stdin:
    schema, values = json.loads(line)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema, format_checker=formats)
    print("".join("y" if validator.is_valid(value) else "n" for value in values))
"#;

#[test]
fn what_is_right_is_what_pythons_jsonschema_says() {
    const SCHEMAS: usize = 400;
    let mut runner = TestRunner::deterministic();
    let (schemas, values) = (schema(), prop::collection::vec(value(), 12));
    let mut cases: Vec<(Value, Vec<Value>)> = Vec::new();
    while cases.len() < SCHEMAS {
        let schema = schemas.new_tree(&mut runner).expect("a schema").current();
        cases.push((schema, values.new_tree(&mut runner).expect("values").current()));
    }
    let mut python = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 (scripts/setup test)");
    let lines: String = cases.iter().map(|case| json!(case).to_string() + "\n").collect();
    let mut stdin = python.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = python.wait_with_output().expect("python3");
    assert!(output.status.success(), "python3-jsonschema (scripts/setup test)");
    writer.join().expect("a thread").expect("python3 reads");
    let (mut right, mut all) = (0, 0);
    let output = String::from_utf8(output.stdout).expect("letters");
    assert_eq!(output.lines().count(), cases.len());
    for ((schema, values), judged) in cases.iter().zip(output.lines()) {
        for (value, judged) in values.iter().zip(judged.bytes()) {
            let own = verdict(schema, value);
            assert_eq!(own.is_ok(), judged == b'y', "{schema} of {value}: {own:?}");
            right += usize::from(own.is_ok());
            all += 1;
        }
    }
    // Neither everything nor nothing is right.
    assert!((all / 10..all / 10 * 9).contains(&right), "{right} of {all}");
}

#[test]
fn every_word_that_is_taken_is_known() {
    for word in WORDS {
        let numbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        let value = match word {
            "$defs" | "definitions" | "properties" | "patternProperties" | "not" | "items"
            | "propertyNames" => json!({}),
            "additionalProperties" | "unevaluatedProperties" | "uniqueItems" => json!(true),
            "deprecated" | "readOnly" | "writeOnly" => json!(false),
            "enum" | "required" | "examples" => json!([]),
            "prefixItems" | "allOf" | "anyOf" | "oneOf" => json!([{}]),
            "type" => json!("string"),
            "format" => json!("ipv4"),
            "$ref" => json!("#/$defs/a"),
            "const" | "default" => json!(1),
            _ if numbers.contains(&word) || word.starts_with("min") || word.starts_with("max") => json!(1),
            _ => json!("a"),
        };
        let schema = json!({ word: value });
        let mut with = schema.clone();
        if word == "$ref" {
            with["$defs"] = json!({ "a": {} });
        }
        assert!(Checker::new(&with).is_ok(), "{word}");
        // Of another type it is an error, unless anything may stand there.
        let wrong = Checker::new(&json!({ word: { "a": 5 } })).err();
        let free = ["const", "default", "$defs", "definitions"].contains(&word);
        assert_eq!(wrong.is_none(), free, "{word}: {wrong:?}");
    }
    for word in ["contains", "if", "minContains", "dependentRequired", "unevaluatedItems", "requierd"] {
        let said = Checker::new(&json!({ "properties": { "a": { word: {} } } })).err().expect("an error");
        assert!(said.starts_with(&format!("at `/properties/a/{word}`: `{word}` is no word")), "{said}");
    }
    assert!(Checker::new(&json!({ "x-ours": 1 })).is_ok());
}

#[test]
fn faults_name_the_place_and_what_may_stand_there() {
    let schema = json!({
        "properties": {
            "a~/b": { "items": { "anyOf": [{ "type": "integer", "maximum": 9 }, { "type": "null" }] } },
            "mode": { "oneOf": [{ "const": "web" }, { "const": "dns" }, { "enum": ["web", "mail"] }] },
            "inner": { "anyOf": [{ "type": "object", "required": ["x"], "additionalProperties": false, "properties": { "x": {} } }, { "type": "null" }] },
        },
        "additionalProperties": false,
    });
    let fault = |value: Value| {
        let fault = Checker::new(&schema).expect("a schema").check(&value).expect_err("wrong");
        (fault.pointer(), fault.wrong)
    };
    let told = |said: &str| Wrong::Told(said.to_owned());
    assert_eq!(
        fault(json!({ "a~/b": [1, 10] })),
        ("/a~0~1b/1".to_owned(), told("10 is greater than the maximum of 9"))
    );
    let may_be = ["an integer", "null"].map(str::to_owned).to_vec();
    assert_eq!(
        fault(json!({ "a~/b": ["x"] })),
        ("/a~0~1b/0".to_owned(), Wrong::Other("\"x\"".to_owned(), may_be))
    );
    let may_be = ["web", "dns", "mail"].map(str::to_owned).to_vec();
    assert_eq!(
        fault(json!({ "mode": "ftp" })),
        ("/mode".to_owned(), Wrong::Other("\"ftp\"".to_owned(), may_be))
    );
    assert_eq!(fault(json!({ "mode": "web" })).1, told("\"web\" is 2 of the things that it may be one of"));
    assert_eq!(fault(json!({ "moed": 1 })), (String::new(), Wrong::Unknown("moed".to_owned())));
    assert_eq!(fault(json!({ "inner": {} })), ("/inner".to_owned(), Wrong::Missing("x".to_owned())));
    assert_eq!(fault(json!({ "inner": { "y": 1 } })), ("/inner".to_owned(), Wrong::Unknown("y".to_owned())));
}

#[test]
fn members_that_no_part_has_looked_at_are_unevaluated() {
    let right = |schema: &Value, value: Value| verdict(schema, &value).is_ok();
    let schema = json!({
        "properties": { "a": {} },
        "allOf": [{ "properties": { "b": {} } }, { "$ref": "#/$defs/d" }],
        "anyOf": [{ "properties": { "d": { "const": 1 } }, "required": ["d"] }, { "patternProperties": { "^e": {} } }],
        "not": { "properties": { "f": { "const": 1 } }, "required": ["f"] },
        "unevaluatedProperties": false,
        "$defs": { "d": { "properties": { "c": {} } } },
    });
    assert!(right(&schema, json!({ "a": 1, "b": 1, "c": 1, "d": 1, "e2": 1 })));
    // A part that does not fit has seen nothing, nor has what may not be.
    assert!(!right(&schema, json!({ "d": 2 })));
    assert!(!right(&schema, json!({ "f": 2 })));
    let fault = Checker::new(&schema).expect("a schema").check(&json!({ "g": 1 })).expect_err("unknown");
    assert_eq!(fault.wrong, Wrong::Unknown("g".to_owned()));
    // What stands beside a part is not the part's; what may be anything has been looked at.
    let within = json!({ "properties": { "a": {} }, "allOf": [{ "unevaluatedProperties": false }] });
    assert!(!right(&within, json!({ "a": 1 })));
    assert!(right(
        &json!({ "additionalProperties": { "type": "null" }, "unevaluatedProperties": false }),
        json!({ "a": null })
    ));
    assert!(right(&json!({ "unevaluatedProperties": { "type": "null" } }), json!({ "a": null })));
}

#[test]
fn integers_are_compared_exactly() {
    let largest = json!({ "maximum": u64::MAX - 1, "minimum": i64::MIN });
    assert!(verdict(&largest, &json!(u64::MAX - 1)).is_ok());
    assert!(verdict(&largest, &json!(u64::MAX)).is_err());
    assert!(verdict(&largest, &json!(1e300)).is_err());
    assert!(verdict(&largest, &json!(-1e300)).is_err());
    assert!(verdict(&json!({ "exclusiveMinimum": 1.5 }), &json!(1)).is_err());
    assert!(verdict(&json!({ "exclusiveMinimum": 1.5 }), &json!(2)).is_ok());
    assert!(verdict(&json!({ "exclusiveMaximum": -1.5 }), &json!(-2)).is_ok());
    assert!(
        verdict(&json!({ "const": 9_007_199_254_740_993u64 }), &json!(9_007_199_254_740_992u64)).is_err()
    );
}

#[test]
fn what_would_take_long_is_given_up() {
    let list = Value::from(vec![json!(7); 20_000]);
    let parts: Vec<Value> = (0..1_000).map(|n| json!({ "items": { "minimum": -n } })).collect();
    let given_up = verdict(&json!({ "allOf": parts }), &list).expect_err("too long");
    assert!(given_up.contains("takes too long"), "{given_up}");
    // Nor does `not` make it right.
    let not = verdict(&json!({ "not": { "anyOf": [{ "allOf": parts }, false] } }), &list);
    assert!(not.expect_err("too long").contains("takes too long"));
    let text = Value::from("x".repeat(1 << 20));
    let lengths: Vec<Value> = (0..1_000).map(|n| json!({ "maxLength": 2_000_000 + n })).collect();
    assert!(verdict(&json!({ "allOf": lengths }), &text).expect_err("too long").contains("takes too long"));
    let different = Value::from((0..20_000).map(Value::from).collect::<Vec<_>>());
    assert_eq!(verdict(&json!({ "uniqueItems": true }), &different), Ok(()));
}
