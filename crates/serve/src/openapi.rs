//! The API as an OpenAPI document, made from a table that a test holds to the routes.

use serde_json::{Map, Value, json};

/// One route: method, path, what it does, what it takes, what it answers.
pub(crate) struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub text: &'static str,
    pub takes: Option<&'static str>,
    pub answers: (u16, &'static str),
}

const fn route(
    method: &'static str,
    path: &'static str,
    text: &'static str,
    takes: Option<&'static str>,
    answers: (u16, &'static str),
) -> Route {
    Route { method, path, text, takes, answers }
}

const JSON: &str = "application/json";

/// All of the native API.
pub(crate) const ROUTES: &[Route] = &[
    route("get", "/api/v1/info", "What the server is, what jobs may do, and its limits", None, (200, JSON)),
    route(
        "get",
        "/api/v1/doctor",
        "What this host can do; `interface`: one of them in full",
        None,
        (200, JSON),
    ),
    route("get", "/api/v1/settings", "The settings of each kind of job", None, (200, JSON)),
    route(
        "get",
        "/api/v1/schemas/{name}",
        "job.json, report.json, snapshot.json: JSON Schemas",
        None,
        (200, "application/schema+json"),
    ),
    route("get", "/api/v1/runs", "All runs, the newest first", None, (200, JSON)),
    route("post", "/api/v1/runs", "Starts a job; with `dry=1` it is checked only", Some(JSON), (201, JSON)),
    route("get", "/api/v1/runs/{run}", "One run, with its newest snapshot", None, (200, JSON)),
    route(
        "patch",
        "/api/v1/runs/{run}",
        "Changes the rate: `rate`, or `percent` of the job's own",
        Some(JSON),
        (200, JSON),
    ),
    route("delete", "/api/v1/runs/{run}", "Forgets a run that is over", None, (204, "")),
    route(
        "get",
        "/api/v1/runs/{run}/events",
        "How a run goes: hello, moment, notice, end",
        None,
        (200, "text/event-stream"),
    ),
    route("get", "/api/v1/runs/{run}/report.json", "The report; `wait=30s` waits for it", None, (200, JSON)),
    route("get", "/api/v1/runs/{run}/report.html", "The report as a page", None, (200, "text/html")),
    route("get", "/api/v1/runs/{run}/report.csv", "The report's intervals", None, (200, "text/csv")),
    route("post", "/api/v1/runs/{run}/pause", "Sends nothing until it is resumed", Some(JSON), (200, JSON)),
    route("post", "/api/v1/runs/{run}/resume", "Goes on", Some(JSON), (200, JSON)),
    route(
        "post",
        "/api/v1/runs/{run}/stop",
        "Ends it in an orderly way, with its report",
        Some(JSON),
        (200, JSON),
    ),
    route("post", "/api/v1/runs/{run}/abort", "Ends it without a report", Some(JSON), (200, JSON)),
    route(
        "get",
        "/api/v1/events",
        "The list of runs, each time that it changes",
        None,
        (200, "text/event-stream"),
    ),
    route(
        "post",
        "/api/v1/contents",
        "A file that jobs may read: `name` for messages",
        Some("application/octet-stream"),
        (201, JSON),
    ),
    route("delete", "/api/v1/contents/{content}", "Forgets a file", None, (204, "")),
    route("get", "/metrics", "The runs for Prometheus", None, (200, "text/plain")),
    route("get", "/openapi.json", "This document", None, (200, JSON)),
];

/// The document, of OpenAPI 3.1.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let mut names: Vec<Value> = Vec::new();
        for part in route.path.split('/') {
            if let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                let text = json!({"type": "string"});
                names.push(json!({"name": name, "in": "path", "required": true, "schema": text}));
            }
        }
        for (query, of) in [
            ("interface", "/api/v1/doctor"),
            ("wait", "/api/v1/runs/{run}/report.json"),
            ("dry", "/api/v1/runs"),
            ("name", "/api/v1/contents"),
        ] {
            let takes = route.path == of && (route.method == "post" || query != "dry");
            if takes {
                names.push(json!({"name": query, "in": "query", "schema": {"type": "string"}}));
            }
        }
        let (status, kind) = route.answers;
        let mut answers = Map::new();
        let content = if kind.is_empty() { json!({}) } else { json!({ kind: {} }) };
        answers.insert(status.to_string(), json!({"description": route.text, "content": content}));
        let problem =
            json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
        answers.insert("default".to_owned(), json!({"description": "Why not", "content": problem}));
        let mut operation = json!({"summary": route.text, "parameters": names, "responses": answers});
        if let Some(takes) = route.takes {
            operation["requestBody"] = json!({"required": true, "content": { takes: {} }});
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "netdyno serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Jobs of netdyno over HTTP. Bodies of jobs, reports and snapshots have schemas at /api/v1/schemas.",
        },
        "paths": paths,
        "components": {"schemas": {"Problem": {
            "type": "object",
            "description": "Problem details (RFC 9457)",
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
                "errors": {"type": "array", "items": {"type": "object", "properties": {
                    "path": {"type": ["string", "null"]},
                    "message": {"type": "string"},
                    "hint": {"type": ["string", "null"]},
                }}},
            },
        }}},
    })
}
