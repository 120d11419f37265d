//! Modules that misbehave, each in its own way: one clear error each, and nothing of it left on this side.

use crate::find::of_module;
use crate::{Limits, Plugin, PluginError, each_frame};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

const ORDINARY: Limits =
    Limits { memory: 0, call: Duration::ZERO, batch: Duration::ZERO, compile: Duration::from_secs(60) };
const LIMITS: Limits = Limits {
    memory: 16 << 20,
    call: Duration::from_millis(200),
    batch: Duration::from_millis(100),
    ..ORDINARY
};

/// A string of WAT with these bytes.
fn literal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:02x}")).collect()
}

fn packed(at: u64, length: usize) -> u64 {
    at << 32 | length as u64
}

fn description(world: &str) -> Value {
    json!({
        "name": "probe", "version": "1", "about": "a test", "world": world,
        "options": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "dst_ip": { "type": "string", "format": "ipv4", "default": "10.0.0.1" },
                "count": { "type": "integer", "minimum": 1, "maximum": 100 },
                "inner": { "type": "object", "properties": { "ports": { "type": "array", "items": { "type": "integer" } } } },
            },
        },
    })
}

/// Where a guest keeps its description, what it answers, and room for the host.
const DESCRIBED: u64 = 1024;
const ANSWER: u64 = 32768;

/// A module with all that plugins have; `more` are its own parts.
fn module(description: &Value, answer: &str, more: &str) -> String {
    let described = description.to_string();
    let mut wat = format!(
        "(module
           (data (i32.const {DESCRIBED}) \"{}\")
           (data (i32.const {ANSWER}) \"{}\")
           {more}\n",
        literal(&described),
        literal(answer),
    );
    let parts = [
        ("memory\"", "(memory (export \"memory\") 4)".to_owned()),
        ("netdyno_abi\"", "(func (export \"netdyno_abi\") (result i32) (i32.const 1))".to_owned()),
        (
            "netdyno_alloc\"",
            "(func (export \"netdyno_alloc\") (param i32) (result i32) (i32.const 131072))".to_owned(),
        ),
        (
            "netdyno_describe\"",
            format!(
                "(func (export \"netdyno_describe\") (result i64) (i64.const {}))",
                packed(DESCRIBED, described.len())
            ),
        ),
        (
            "netdyno_compile\"",
            format!(
                "(func (export \"netdyno_compile\") (param i32 i32) (result i64) (i64.const {}))",
                packed(ANSWER, answer.len())
            ),
        ),
        (
            "netdyno_open\"",
            format!(
                "(func (export \"netdyno_open\") (param i32 i32) (result i64) (i64.const {}))",
                packed(ANSWER, answer.len())
            ),
        ),
        (
            "netdyno_frames\"",
            "(func (export \"netdyno_frames\") (param i64 i64 i32) (result i64) unreachable)".to_owned(),
        ),
    ];
    for (name, part) in parts {
        if !more.contains(name) {
            wat += &part;
            wat += "\n";
        }
    }
    wat + ")"
}

fn load(wat: &str) -> Result<Plugin, PluginError> {
    let bytes = wat::parse_str(wat).unwrap_or_else(|bad| panic!("{bad}: {wat}"));
    of_module("probe.wasm", Path::new("probe.wasm"), &bytes, LIMITS)
}

const SCENARIO: &str =
    r#"{"scenario": {"rate": "1mpps", "streams": [{"frame": "ipv4(dst=10.0.0.1)/udp(dport=1..9)"}]}}"#;

/// What becomes of a plugin that is loaded, and asked for what it makes.
fn asked(wat: &str, options: &Value) -> Result<String, PluginError> {
    let plugin = load(wat)?;
    let options = options.as_object().cloned().unwrap_or_default();
    match plugin.yields_frames() {
        false => {
            let scenario = plugin.scenario(&options, Some(1))?;
            let compiled = scenario.compile(&Default::default());
            let compiled = compiled
                .map_err(|why| PluginError::Scenario { name: "probe".to_owned(), why: Box::new(why) })?;
            plugin.judge(&compiled.program)?;
            plugin.scenario_text(&options, Some(1))
        }
        true => {
            let mut frames = plugin.open(&options, Some(1))?;
            let mut all = String::new();
            let made = each_frame(&mut frames, 200, |frame| all += &format!("{} ", frame.len()));
            made.map(|_| all).map_err(|why| match why {
                engine::source::SourceError::Other(why) => match why.downcast::<PluginError>() {
                    Ok(why) => *why,
                    Err(other) => panic!("{other}"),
                },
                other => panic!("{other}"),
            })
        }
    }
}

fn refused(wat: &str, says: &[&str]) {
    let error = match asked(wat, &json!({})) {
        Ok(made) => panic!("it made {made} out of {wat}"),
        Err(error) => error.to_string(),
    };
    assert!(error.starts_with("plugin `probe"), "{error}");
    assert!(!error.contains('\n') || error.contains("scenario"), "{error}");
    for says in says {
        assert!(error.contains(says), "{error}: not {says}");
    }
}

fn compile(answer: &str, more: &str) -> String {
    module(&description("compile"), answer, more)
}

/// A guest of the world `frames` whose batch holds these bytes.
fn frames(announced: &str, batch: &[u8]) -> String {
    let bytes: String = batch.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let more = format!(
        "(data (i32.const 65536) \"{bytes}\")
         (func (export \"netdyno_frames\") (param i64 i64 i32) (result i64) (i64.const {}))",
        packed(65536, batch.len())
    );
    module(&description("frames"), &format!("{{\"frames\": {announced}}}"), &more)
}

#[test]
fn a_sound_module_makes_the_same_each_time() {
    let wat = compile(
        SCENARIO,
        "(import \"wasi_snapshot_preview1\" \"random_get\" (func (param i32 i32) (result i32)))",
    );
    let plugin = load(&wat).expect("a plugin");
    assert_eq!((plugin.name(), plugin.origin.sha256().map(str::len)), ("probe", Some(64)));
    let made = asked(&wat, &json!({})).expect("a scenario");
    assert!(made.contains("ipv4(dst=10.0.0.1)/udp(dport=1..9)"), "{made}");
    assert_eq!(asked(&wat, &json!({})).expect("the same"), made);
}

#[test]
fn what_takes_too_much_is_ended() {
    let body = |name: &str, takes: &str, gives: &str, body: &str| {
        let export = format!("(func (export \"{name}\") {takes} (result {gives}) {body})");
        compile(SCENARIO, &export)
    };
    let of_compile = |code: &str| body("netdyno_compile", "(param i32 i32)", "i64", code);
    refused(&of_compile("unreachable"), &["in netdyno_compile: it gave up"]);
    refused(&of_compile("(i64.div_u (i64.const 1) (i64.const 0))"), &["it trapped: integer divide by zero"]);
    refused(&of_compile("(i64.load (i32.const -8))"), &["it trapped: out of bounds memory access"]);
    let forever = "(loop $l (br $l)) unreachable";
    refused(&of_compile(forever), &["in netdyno_compile: it did not come to an end within 200"]);
    refused(&body("netdyno_describe", "", "i64", forever), &["in netdyno_describe: it did not come"]);
    refused(&body("netdyno_alloc", "(param i32)", "i32", forever), &["in netdyno_alloc: it did not come"]);
    let start = compile(SCENARIO, "(func $s (loop $l (br $l))) (start $s)");
    refused(&start, &["in its start: it did not come"]);
    let initialize = compile(SCENARIO, "(func (export \"_initialize\") unreachable)");
    refused(&initialize, &["in _initialize: it gave up"]);
    let deep = compile(
        SCENARIO,
        "(func $f (param i32 i32) (result i64) (call $f (local.get 0) (local.get 1)))
         (export \"netdyno_compile\" (func $f))",
    );
    refused(&deep, &["nested too deep"]);
    let bomb = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    refused(&of_compile(bomb), &["it wants more than the 16 MiB of memory"]);
    refused(
        &compile(SCENARIO, "(memory (export \"memory\") 1000)"),
        &["it wants more than the 16 MiB of memory"],
    );
    refused(&compile(SCENARIO, "(table 20000000 funcref)"), &["in its start", "table"]);
    let exit = compile(
        SCENARIO,
        "(import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))
         (func (export \"netdyno_compile\") (param i32 i32) (result i64) (call $exit (i32.const 3)) unreachable)",
    );
    refused(&exit, &["it ended itself, with status 3"]);
    let log = compile(
        SCENARIO,
        "(import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32)))
         (data (i32.const 100) \"\\70\\00\\00\\00\\05\\00\\00\\00\") (data (i32.const 112) \"woe\\1b!\")
         (func (export \"netdyno_compile\") (param i32 i32) (result i64)
           (drop (call $write (i32.const 2) (i32.const 100) (i32.const 1) (i32.const 96))) unreachable)",
    );
    refused(&log, &["it gave up (trap: `unreachable`); it wrote: woe\\u{1b}!"]);
}

#[test]
fn a_guest_finds_neither_files_nor_a_clock_of_the_hosts() {
    let wat = compile(
        SCENARIO,
        "(import \"wasi_snapshot_preview1\" \"path_open\" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
         (import \"wasi_snapshot_preview1\" \"fd_prestat_get\" (func $prestat (param i32 i32) (result i32)))
         (import \"wasi_snapshot_preview1\" \"fd_read\" (func $read (param i32 i32 i32 i32) (result i32)))
         (import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32)))
         (import \"wasi_snapshot_preview1\" \"random_get\" (func $random (param i32 i32) (result i32)))
         (import \"wasi_snapshot_preview1\" \"clock_time_get\" (func $clock (param i32 i64 i32) (result i32)))
         (import \"wasi_snapshot_preview1\" \"environ_sizes_get\" (func $environ (param i32 i32) (result i32)))
         (func $is (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
         (func (export \"_initialize\")
           ;; ENOSYS and EBADF, whatever is asked for.
           (call $is (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0)) (i32.const 52))
           (call $is (call $prestat (i32.const 3) (i32.const 0)) (i32.const 8))
           (call $is (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0)) (i32.const 8))
           (call $is (call $write (i32.const 3) (i32.const 0) (i32.const 1) (i32.const 0)) (i32.const 8))
           ;; EFAULT outside of its memory.
           (call $is (call $random (i32.const 8) (i32.const -1)) (i32.const 21))
           (call $is (call $clock (i32.const 0) (i64.const 0) (i32.const -4)) (i32.const 21))
           (call $is (call $write (i32.const 1) (i32.const -8) (i32.const 1) (i32.const 0)) (i32.const 21))
           ;; No variables, and a clock that counts its looks.
           (i32.store (i32.const 8) (i32.const 7))
           (call $is (call $environ (i32.const 8) (i32.const 12)) (i32.const 0))
           (call $is (i32.load (i32.const 8)) (i32.const 0))
           (call $is (call $clock (i32.const 0) (i64.const 0) (i32.const 8)) (i32.const 0))
           (call $is (i32.load (i32.const 8)) (i32.const 2000)))",
    );
    asked(&wat, &json!({})).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn what_is_no_plugin_is_told_from_one() {
    let export = |name: &str, rest: &str| compile(SCENARIO, &format!("(func (export \"{name}\") {rest})"));
    refused(
        &export("netdyno_abi", "(result i32) (i32.const 2)"),
        &["version 2 of the interface", "version 1"],
    );
    refused(&export("netdyno_abi", "(param i32)"), &["`netdyno_abi` as (i32) -> () instead of () -> (i32)"]);
    refused(
        &compile(SCENARIO, "(func (export \"netdyno_abi\") (result i64) (i64.const 1))"),
        &["instead of"],
    );
    let none =
        of_module("probe.wasm", Path::new("p"), &wat::parse_str("(module)").expect("a module"), LIMITS);
    let error = none.expect_err("no plugin").to_string();
    for name in ["memory", "netdyno_abi", "netdyno_alloc", "netdyno_describe"] {
        assert!(error.contains(&format!("no `{name}`")), "{error}");
    }
    let alien = compile(SCENARIO, "(import \"env\" \"system\" (func (param i32) (result i32)))");
    refused(&alien, &["it imports `env.system`"]);
    let bytes = wat::parse_str(compile(SCENARIO, "")).expect("a module");
    for (bytes, says) in [
        (&b"#!/bin/sh"[..], "it is no WebAssembly module"),
        (&[], "it is no WebAssembly module"),
        (&bytes[..bytes.len() / 2], "it cannot be compiled"),
    ] {
        let error = of_module("probe.wasm", Path::new("p"), bytes, LIMITS).expect_err("broken").to_string();
        assert!(error.contains(says), "{error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.wasm");
    let large = std::fs::File::create(&path).expect("a file");
    large.set_len(crate::abi::MOST_MODULE + 1).expect("room");
    let error = crate::load(&path).expect_err("too large").to_string();
    assert!(error.contains("bytes, and 16777216 are taken at most"), "{error}");
    for (path, says) in
        [(folder.path().join("none.wasm"), "No such file"), (folder.path().to_owned(), "no file")]
    {
        let error = crate::load(&path).expect_err("nothing there").to_string();
        assert!(error.contains(says), "{error}");
    }
    let error = crate::find("no-such-plugin").expect_err("none").to_string();
    assert!(error.contains("there is no plugin `no-such-plugin`; `netdyno plugin list`"), "{error}");
}

#[test]
fn what_a_guest_answers_is_not_believed() {
    for (answer, says) in [
        ("{\"scenario\": {}", "what it returns is no JSON"),
        ("[]", "no object with `scenario` or `fault`"),
        ("{}", "there has to be one of `scenario` and `fault`"),
        ("{\"scenario\": 5}", "`scenario` is no object"),
        ("{\"fault\": 5}", "`fault`: "),
        (
            "{\"scenario\": {\"streems\": []}}",
            "no scenario that can be sent: probe:1:2: unknown key `streems`",
        ),
        (
            "{\"scenario\": {\"rate\": \"1mpps\", \"streams\": [{\"frame\": \"ipv5\"}]}}",
            "unknown layer `ipv5`",
        ),
        (
            "{\"fault\": {\"path\": \"/dst_ip\", \"message\": \"it is taken\"}}",
            "`/dst_ip`: it is taken: `netdyno plugin info probe`",
        ),
    ] {
        refused(&compile(answer, ""), &[says]);
    }
    let returns = |packed: u64| {
        let export = format!(
            "(func (export \"netdyno_compile\") (param i32 i32) (result i64) (i64.const {}))",
            packed as i64
        );
        compile(SCENARIO, &export)
    };
    refused(
        &returns(packed(262_140, 8)),
        &["it points at bytes 262140 to 262148, and its memory has 262144"],
    );
    refused(&returns(packed(0xffff_fff0, 64)), &["it points at bytes 4294967280"]);
    refused(&returns(packed(0, 0xffff_ffff)), &["it returns 4294967295 bytes, and 16777216 are taken"]);
    let alloc = |at: i32| {
        let export = format!("(func (export \"netdyno_alloc\") (param i32) (result i32) (i32.const {at}))");
        compile(SCENARIO, &export)
    };
    refused(&alloc(0), &["it has no room for"]);
    refused(&alloc(-4), &["in netdyno_alloc: it points at bytes 4294967292"]);
    let not_text = compile("x", "(data (i32.const 32768) \"\\ff\\fe\")");
    refused(&not_text, &["no text in UTF-8"]);
}

#[test]
fn what_a_guest_says_of_itself_is_checked() {
    let with = |changes: Value| {
        let mut description = description("compile");
        for (member, value) in changes.as_object().expect("members") {
            description[member] = value.clone();
        }
        module(&description, SCENARIO, "")
    };
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "type": "object", "properties": { "a": inner } }));
    let mut defs: Map<String, Value> =
        (0..20).map(|n| (format!("d{n}"), json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }, { "$ref": format!("#/$defs/d{}", n + 1) }] }))).collect();
    defs.insert("d20".to_owned(), json!({}));
    for (changes, says) in [
        (json!({ "name": "../etc/passwd" }), "`name` is \"../etc/passwd\""),
        (json!({ "version": "" }), "`version` has 0 bytes"),
        (json!({ "world": "other" }), "unknown variant `other`"),
        (json!({ "options": [] }), "it is no JSON object"),
        (json!({ "options": { "type": "string" } }), "its `type` is not `object`"),
        (json!({ "options": { "type": "object", "properties": 5 } }), "at `/properties`: 5 is no object"),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "minimun": 1 } } } }),
            "at `/properties/a/minimun`: `minimun` is no word of a schema that is checked here; did you mean `minimum`?",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "format": "email" } } } }),
            "at `/properties/a/format`: \"email\" is no format that is checked",
        ),
        (
            json!({ "options": { "type": "object", "patternProperties": { "(": {} } } }),
            "schema of its options",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "pattern": "(((a{1,1000}){1,1000}){1,1000}){1,1000}" } } } }),
            "schema of its options",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "allOf": vec![json!({ "pattern": "a" }); 65] } } } }),
            "more than 64 patterns",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "pattern": "(a)\\1" } } } }),
            "schema of its options",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "$ref": "https://example.org/x" } } } }),
            "only what stands in the schema itself",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "$ref": "#/properties/a" } } } }),
            "comes round to itself",
        ),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "$ref": "#/$defs/none" } } } }),
            "nothing stands there",
        ),
        (json!({ "options": { "type": "object", "properties": { "a": deep } } }), "nested more than"),
        (
            json!({ "options": { "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": defs } }),
            "more than 20000 parts",
        ),
        (
            json!({ "example": [{ "about": "x", "set": { "cuont": 5 } }] }),
            "there is no option `cuont`; did you mean `count`?",
        ),
    ] {
        refused(&with(changes), &["in netdyno_describe: ", says]);
    }
}

#[test]
fn options_are_named_by_their_path_and_typed_by_the_schema() {
    let plugin = load(&compile(SCENARIO, "")).expect("a plugin");
    for (options, says) in [
        (json!({ "count": 0 }), "`/count`: 0 is less than the minimum of 1"),
        (json!({ "count": "5" }), "`/count`: \"5\" is not an integer"),
        (json!({ "inner": { "ports": [1, "x"] } }), "`/inner/ports/1`: \"x\" is not an integer"),
        (json!({ "dst_ip": "10.0.0" }), "`/dst_ip`: \"10.0.0\" is not an IPv4 address"),
        (json!({ "dstip": "10.0.0.1" }), "there is no option `dstip`; did you mean `dst_ip`? there are"),
    ] {
        let error =
            plugin.scenario(options.as_object().expect("members"), None).expect_err("wrong").to_string();
        assert!(error.contains(says) && error.contains("`netdyno plugin info probe`"), "{error}: not {says}");
    }
    let set = |words: &[&str]| {
        let mut options = Map::new();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        plugin.set(&mut options, &words).map(|()| Value::Object(options)).map_err(|bad| bad.to_string())
    };
    assert_eq!(
        set(&["dst_ip=10.0.0.9", "count=0x10", "inner.ports=1,2,3"]),
        Ok(json!({ "dst_ip": "10.0.0.9", "count": 16, "inner": { "ports": [1, 2, 3] } }))
    );
    assert_eq!(set(&["inner.ports=[7]", "inner={\"ports\": []}"]), Ok(json!({ "inner": { "ports": [] } })));
    let either = json!({ "type": "object", "properties": { "a": { "anyOf": [
        { "type": "array", "items": { "type": ["integer", "string"] } }, { "type": "string" }, { "type": "integer" }, { "type": "null" },
    ] } } });
    let schema = crate::options::Schema::new(&either).expect("a schema");
    for (text, value) in [
        ("9", json!(9)),
        ("1..9", json!("1..9")),
        ("1,b", json!([1, "b"])),
        ("random(1,2)", json!("random(1,2)")),
        ("[1]", json!([1])),
        ("null", Value::Null),
    ] {
        let mut options = Map::new();
        schema.set(&mut options, &[format!("a={text}")]).expect("an option");
        assert_eq!(options.get("a"), Some(&value), "{text}");
    }
    assert_eq!(schema.told()[0].kind, "text or integer or list of integer or text");
    for (word, says) in [
        ("count", "sets nothing: write NAME=VALUE"),
        ("count=many", "`/count`: `many` is not an integer"),
        ("inner.port=1", "`/inner`: there is no option `port`; did you mean `ports`?"),
        ("inner.ports=1,x", "`/inner/ports`: `x` is not an integer"),
        ("dst-ip=1", "there is no option `dst-ip`; did you mean `dst_ip`?"),
    ] {
        let error = set(&[word]).expect_err(word);
        assert!(error.contains(says), "{error}: not {says}");
    }
    let told = plugin.schema.told();
    let names: Vec<&str> = told.iter().map(|told| told.name.as_str()).collect();
    assert_eq!(names, ["count", "dst_ip", "inner", "inner.ports"]);
    assert_eq!((told[0].kind.as_str(), told[3].kind.as_str()), ("integer 1 to 100", "list of integer"));
}

#[test]
fn frames_that_are_not_as_announced_end_the_run() {
    // Two frames, the second behind padding; asked for as many as there are.
    let batch = |lengths: [u16; 2], bytes: usize| {
        let mut batch: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
        batch.resize(4 + bytes, 0xaa);
        batch
    };
    let two = "{\"longest\": 64, \"count\": 2}";
    assert_eq!(asked(&frames(two, &batch([61, 60], 124)), &json!({})).expect("frames"), "61 60 ");
    for (announced, batch, says) in [
        (two, batch([61, 0], 124), "frame 1 of its batch has 0 bytes"),
        (
            two,
            batch([65, 60], 132),
            "frame 0 of its batch has 65 bytes, and it said that frames have 14 to 64",
        ),
        (
            two,
            batch([61, 60], 100),
            "its batch has 104 bytes, and the frames that it is said to hold take 128",
        ),
        (two, vec![60], "its batch has 1 bytes"),
        ("{\"longest\": 64}", batch([61, 60], 124), "frames that it is said to hold take"),
        ("{\"longest\": 13}", batch([1, 1], 8), "`frames.longest` is 13"),
        ("{\"longest\": 65536}", batch([1, 1], 8), "`frames.longest` is 65536"),
        ("{\"longest\": 64, \"count\": 0}", batch([1, 1], 8), "there is nothing to send"),
        ("{\"longest\": -1}", batch([1, 1], 8), "`frames`: "),
        ("{\"longest\": 64, \"size\": 1}", batch([1, 1], 8), "unknown field `size`"),
    ] {
        refused(&frames(announced, &batch), &[says]);
    }
    let forever =
        "(func (export \"netdyno_frames\") (param i64 i64 i32) (result i64) (loop $l (br $l)) unreachable)";
    let wat = module(&description("frames"), &format!("{{\"frames\": {two}}}"), forever);
    refused(&wat, &["in netdyno_frames: it did not come to an end within 100"]);
    let outside = "(func (export \"netdyno_frames\") (param i64 i64 i32) (result i64) (i64.const -1))";
    let wat = module(&description("frames"), &format!("{{\"frames\": {two}}}"), outside);
    refused(&wat, &["in netdyno_frames: it returns 4294967295 bytes"]);
}

#[test]
fn a_restricted_plugin_loads_private_and_benchmarking_addresses_only() {
    let answer =
        |frame: &str| json!({ "scenario": { "rate": "1mpps", "streams": [{ "frame": frame }] } }).to_string();
    let mut restricted = description("compile");
    restricted["restricted"] = Value::Bool(true);
    for frame in [
        "ipv4(dst=10.0.0.0/8)/udp",
        "ipv4(dst=random(198.18.0.0/15))/tcp",
        "ipv4(dst=[10.0.0.1, 192.168.0.1, 172.31.255.255])/udp",
        "ether(dst=02:00:00:00:00:00..02:00:00:00:00:ff)/vlan(vid=1..9)/ipv4(dst=192.168.0.0/16)/udp",
        "ipv6(dst=2001:2::/64)/udp",
        "ipv4(dst=10.0.0.1)/udp(dport=4789)/vxlan/ether/ipv4(dst=10.1.0.0/24)/udp",
        "ipv4(dst=10.0.0.1, ttl=random(1..64), id=random())/udp(sport=random(), dport=1..65535)",
        "ipv4(dst=10.0.0.1)/udp(dport=[9,4789])/raw(hex=\"0800000000000100\")/ether/ipv4(dst=10.8.8.8)/udp",
        "ipv6(dst=fc00::1)/srv6(segments=[fc00::1,fc00::2])/ipv4(dst=10.0.0.1)/udp",
        // A loose source route, then no operation and the end.
        "ether(type=0x0800)/raw(hex=\"4700002000000000401100000a0000010a000001830704\")/raw(hex=\"0a0000020100\")",
    ] {
        asked(&module(&restricted, &answer(frame), ""), &json!({}))
            .unwrap_or_else(|why| panic!("{frame}: {why}"));
    }
    for (frame, says) in [
        ("ipv4(dst=8.8.8.8)/udp", "would go to 8.8.8.8"),
        ("ipv4(dst=[10.0.0.1, 11.0.0.1])/udp", "would go to 11.0.0.1"),
        ("ipv4(dst=9.255.255.0..10.0.0.9)/udp", "would go to 9.255.255.0"),
        ("ipv4(dst=random(172.16.0.0..172.32.0.0))/udp", "would go to 172.32.0.0"),
        ("ipv6(dst=2001:db8::1)/udp", "would go to 2001:db8::1"),
        ("ipv4(dst=224.0.0.1)/udp", "would go to 224.0.0.1"),
        ("ipv4(dst=8.8.8.8)/udp(dport=4789)/vxlan/ether/ipv4(dst=10.0.0.1)/udp", "would go to 8.8.8.8"),
        ("ipv4(dst=10.0.0.1)/udp(dport=4789)/vxlan/ether/ipv4(dst=8.8.8.8)/udp", "would go to 8.8.8.8"),
        ("ether(type=0x0800..0x0806)/ipv4(dst=10.0.0.1)/udp", "byte 12 varies"),
        // By a value of what varies a tunnel begins.
        (
            "ipv4(dst=10.0.0.1)/udp(dport=[9,4789])/raw(hex=\"0800000000000100\")/ether/ipv4(dst=8.8.8.8)/udp",
            "would go to 8.8.8.8",
        ),
        ("ipv4(dst=10.0.0.1, proto=[4,253])/ipv4(dst=8.8.8.8)/udp", "would go to 8.8.8.8"),
        ("ipv6(dst=fc00::1, nh=[4,253])/ipv4(dst=8.8.8.8)/udp", "would go to 8.8.8.8"),
        (
            "ipv4(dst=10.0.0.1, proto=47)/raw(hex=\"00000801\", fields=[field(2, 16, [0x0800, 0x0801])])/ipv4(dst=8.8.8.8)/udp",
            "byte 36 varies",
        ),
        // A length over the destination of a header in a tunnel.
        (
            "ipv4(dst=10.0.0.1, proto=4)/raw(hex=\"45000014000000004011000a0a0000010a000001\", fields=[length(16, 0)])",
            "byte 50 varies",
        ),
        // Where a frame goes from its first destination on: segments, source routes.
        (
            "ipv6(dst=fc00::1)/srv6(segments=[fc00::1,2001:db8::2])/ipv4(dst=10.0.0.1)/udp",
            "would go to 2001:db8::2",
        ),
        (
            "ipv6(dst=fc00::1, nh=43)/raw(hex=\"3b02060000000000\")/raw(hex=\"00000000000000000000000000000000\")",
            "a routing header of an unknown type at byte 54",
        ),
        (
            "ipv6(dst=fc00::1, nh=43)/raw(hex=\"3b02040009000000\")/raw(hex=\"fc000000000000000000000000000001\")",
            "a routing header that is longer than it says",
        ),
        (
            "ether(type=0x0800)/raw(hex=\"4700002000000000401100000a0000010a000001830704\")/raw(hex=\"080808080100\")",
            "would go to 8.8.8.8",
        ),
        (
            "ether(type=0x0800)/raw(hex=\"4600001800000000401100000a0000010a00000183070408\")",
            "an IP option that is longer than its header",
        ),
        (&format!("{}udp", "ipv4(dst=10.0.0.1)/".repeat(9)), "more headers than are judged"),
        // The identifier varies before the type, and harmlessly.
        ("vlan(vid=1..9, type=[0x0800,0x86dd])/ipv4(dst=10.0.0.1)/udp", "byte 16 varies"),
    ] {
        refused(&module(&restricted, &answer(frame), ""), &["private and benchmarking addresses only", says]);
        asked(&module(&description("compile"), &answer(frame), ""), &json!({}))
            .unwrap_or_else(|why| panic!("unrestricted, {frame}: {why}"));
    }
    // Frame by frame.
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[30..34].copy_from_slice(&[8, 8, 4, 4]);
    let batch = [&[60, 0, 60, 0][..], &frame, &frame].concat();
    let mut restricted = description("frames");
    restricted["restricted"] = Value::Bool(true);
    let free = frames("{\"longest\": 64, \"count\": 2}", &batch);
    let wat = free.replace(&literal(&description("frames").to_string()), &literal(&restricted.to_string()));
    let length = |description: &Value| packed(DESCRIBED, description.to_string().len()).to_string();
    let wat = wat.replace(&length(&description("frames")), &length(&restricted));
    refused(&wat, &["would go to 8.8.4.4"]);
    assert_eq!(asked(&free, &json!({})).expect("frames"), "60 60 ");
}

/// A module of so many functions that do nothing.
fn of_functions(count: u32) -> Vec<u8> {
    let number = |mut value: u32| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let section = |id: u8, content: Vec<u8>| [vec![id], number(content.len() as u32), content].concat();
    let each = |bytes: &[u8]| [number(count), bytes.repeat(count as usize)].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(3, each(&[0])),
        section(10, each(&[2, 0, 0x0b])),
    ]
    .concat()
}

#[test]
fn a_module_of_many_functions_or_one_that_takes_long_to_compile_is_refused() {
    let refused = |count: u32, limits: Limits| {
        of_module("many", Path::new("many"), &of_functions(count), limits).expect_err("no plugin").to_string()
    };
    // 3.6 MB, for which a compiler takes two minutes and 4.5 GB.
    let told = refused(900_000, LIMITS);
    assert!(told.contains("the module has 900000 functions, and 50000 are taken at most"), "{told}");
    let told = refused(30, LIMITS);
    assert!(told.contains("it exports no `memory`"), "what is compiled is looked at: {told}");
    let told = refused(5_000, Limits { compile: Duration::ZERO, ..LIMITS });
    assert!(told.contains("compiling it did not come to an end within"), "{told}");
}

#[test]
fn an_option_out_of_range_is_refused_by_its_name_and_not_in_words_of_a_generated_scenario() {
    let plugin = crate::find("simpleudp").expect("it is built in");
    for (options, name) in [
        (json!({ "dscp": 64 }), "/dscp"),
        (json!({ "src_ip": "10.0.0.1", "ttl": 256, "payload_size": 20 }), "/ttl"),
        (json!({ "dst_port": "1..70000" }), "/dst_port"),
        (json!({ "vlan": 5000, "dscp": 1 }), "/vlan"),
        (json!({ "src_ip": "10.0.0.0/33" }), "/src_ip"),
        (json!({ "src_ip": "10.0.0.1/8" }), "/src_ip"),
    ] {
        let options = options.as_object().cloned().expect("options");
        match plugin.scenario(&options, Some(1)).expect_err("out of range") {
            PluginError::Options { fault, .. } => assert_eq!(fault.path, name, "{fault}"),
            other => panic!("{options:?}: {other}"),
        }
    }
}
