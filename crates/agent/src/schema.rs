//! The JSON Schema of all lines.

use crate::message::{
    AskClock, AskHost, ClockTold, ContentBegin, ContentBegun, ContentChunk, DevicesStart, DevicesTold, Fault,
    FilePiece, FileRead, Hello, JobGo, JobRate, JobStart, JobStarted, LinkSet, OfContent, OfDevices, OfRun,
    RateSet, RunEnded, RunNote, RunReady, RunSnapshot, Welcome, Written,
};
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// A request's method, its parameters and its result.
struct Method {
    name: &'static str,
    params: Value,
    result: Value,
}

/// The JSON Schema of a line: a request, an answer, or a notification.
pub fn schema() -> String {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let methods = methods(&mut generator);
    let fault = of::<Fault>(&mut generator);
    let id = json!({ "description": "A whole number, or a text of at most 128 bytes.", "anyOf": [
        { "type": "integer" }, { "type": "string", "maxLength": 128 } ] });
    let request = |method: &Method| {
        json!({ "type": "object", "additionalProperties": false, "required": ["jsonrpc", "id", "method"], "properties": {
            "jsonrpc": { "const": "2.0" }, "id": id.clone(), "method": { "const": method.name }, "params": method.params } })
    };
    let requests: Vec<Value> = methods.iter().map(request).collect();
    let results: Map<String, Value> =
        methods.iter().map(|method| (method.name.to_owned(), method.result.clone())).collect();
    let notifications: Vec<Value> = [
        ("run.ready", of::<RunReady<'_>>(&mut generator)),
        ("run.snapshot", of::<RunSnapshot<'_>>(&mut generator)),
        ("run.note", of::<RunNote<'_>>(&mut generator)),
        ("run.ended", of::<RunEnded<'_>>(&mut generator)),
    ]
    .into_iter()
    .map(|(name, params)| {
        json!({ "type": "object", "additionalProperties": false, "required": ["jsonrpc", "method", "params"],
            "properties": { "jsonrpc": { "const": "2.0" }, "method": { "const": name }, "params": params } })
    })
    .collect();
    let definitions: Value = generator.take_definitions(true).into();
    let mut definitions = match definitions {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    definitions
        .insert("request".to_owned(), json!({ "description": "A line to the agent.", "oneOf": requests }));
    definitions.insert(
        "answer".to_owned(),
        json!({ "description": "A line from the agent with the `id` of the request that it answers, or null where that could not be read.",
            "type": "object", "additionalProperties": false, "required": ["jsonrpc", "id"], "properties": {
            "jsonrpc": { "const": "2.0" }, "id": { "anyOf": [id, { "type": "null" }] }, "result": {}, "error": fault },
            "oneOf": [{ "required": ["result"] }, { "required": ["error"] }] }),
    );
    definitions.insert(
        "results".to_owned(),
        json!({ "description": "Of each method the `result` of its answer.", "type": "object", "properties": results }),
    );
    definitions.insert(
        "notification".to_owned(),
        json!({ "description": "A line from the agent that nobody asked for.", "oneOf": notifications }),
    );
    let whole = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "netdyno.agent/1",
        "description": "A line of the protocol of `netdyno agent`.",
        "anyOf": [{ "$ref": "#/$defs/request" }, { "$ref": "#/$defs/answer" }, { "$ref": "#/$defs/notification" }],
        "$defs": definitions,
    });
    report::pretty_schema(&whole)
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn methods(generator: &mut SchemaGenerator) -> Vec<Method> {
    let nothing = json!({ "type": "object", "additionalProperties": false });
    let offset = json!({ "type": "object", "required": ["offset"], "properties": {
        "offset": { "description": "Where the next piece begins.", "type": "integer", "minimum": 0 } } });
    let host = json!({ "description": "The clock, the interfaces, and the findings of `netdyno doctor --json`, unless they were not asked for.", "type": "object",
        "required": ["clock", "interfaces"] });
    let waited = json!({ "type": "object", "required": ["report"], "properties": {
        "report": { "description": "Of netdyno.report/2.", "type": "object" } } });
    let written = of::<Written>(generator);
    let files = json!({ "type": "object", "required": ["files"], "properties": {
        "files": { "type": "array", "items": written } } });
    let (content, run) = (of::<OfContent>(generator), of::<OfRun>(generator));
    let table = [
        ("hello", of::<Hello>(generator), of::<Welcome>(generator)),
        ("host", of::<AskHost>(generator), host),
        ("clock", of::<AskClock>(generator), of::<ClockTold>(generator)),
        ("content.begin", of::<ContentBegin>(generator), of::<ContentBegun>(generator)),
        ("content.chunk", of::<ContentChunk<'_>>(generator), offset),
        ("content.end", content.clone(), nothing.clone()),
        ("content.forget", content, nothing.clone()),
        ("devices.start", of::<DevicesStart>(generator), of::<OfDevices>(generator)),
        ("devices.look", of::<OfDevices>(generator), of::<DevicesTold>(generator)),
        ("devices.stop", of::<OfDevices>(generator), nothing.clone()),
        ("link.set", of::<LinkSet>(generator), nothing.clone()),
        ("job.start", of::<JobStart>(generator), of::<JobStarted>(generator)),
        ("job.go", of::<JobGo>(generator), nothing.clone()),
        ("job.pause", run.clone(), nothing.clone()),
        ("job.resume", run.clone(), nothing.clone()),
        ("job.rate", of::<JobRate>(generator), of::<RateSet>(generator)),
        ("job.stop", run.clone(), nothing.clone()),
        ("job.abort", run.clone(), nothing.clone()),
        ("job.wait", run.clone(), waited),
        ("job.files", run.clone(), files),
        ("file.read", of::<FileRead>(generator), of::<FilePiece>(generator)),
        ("job.forget", run, nothing),
    ];
    table.into_iter().map(|(name, params, result)| Method { name, params, result }).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_published_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent.schema.json");
        if std::env::var_os("NETDYNO_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::write(path, super::schema()).expect("written");
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == super::schema(), "{path} is stale: NETDYNO_BLESS=1 cargo test -p netdyno-agent");
    }
}
