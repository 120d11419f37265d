//! The native API (docs/http.md): jobs, their events and reports, files, settings.

use crate::events;
use crate::fault::Problem;
use crate::hand::Hand;
use crate::lock;
use crate::metrics;
use crate::openapi;
use crate::runs::{Run, command};
use crate::settings;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bytes of a body of JSON.
const JSON_BYTES: usize = 16 << 20;
/// Bytes of a file in one request.
const FILE_BYTES: usize = 256 << 20;
/// Files that arrive at once.
const UPLOADS: usize = 2;
/// Files that are kept; then the oldest goes.
const FILES: usize = 256;
/// A report is waited for so long at most.
const MOST_WAIT: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub(crate) struct Native {
    hand: Hand,
    /// The one run that is shown.
    watch: Option<&'static str>,
    uploads: Arc<Semaphore>,
    /// Contents that were sent, the oldest first.
    sent: Arc<Mutex<VecDeque<String>>>,
    /// One looks at the host at a time.
    looking: Arc<tokio::sync::Mutex<()>>,
}

type Answer = Result<Response, Problem>;

pub(crate) fn routes(hand: Hand, watch: Option<&'static str>) -> Router {
    let native = Native {
        hand,
        watch,
        uploads: Arc::new(Semaphore::new(UPLOADS)),
        sent: Arc::default(),
        looking: Arc::default(),
    };
    Router::new()
        .route("/api/v1/info", get(info))
        .route("/api/v1/doctor", get(doctor))
        .route("/api/v1/settings", get(|| async { told(&settings::told()) }))
        .route("/api/v1/schemas/{name}", get(schema))
        .route("/api/v1/runs", get(list).post(start))
        .route("/api/v1/runs/{run}", get(one).patch(change).delete(forget))
        .route("/api/v1/runs/{run}/{what}", get(part).post(steer))
        .route(
            "/api/v1/events",
            get(|State(native): State<Native>| async move { events::of_all(native.hand) }),
        )
        .route("/api/v1/contents", post(upload))
        .route("/api/v1/contents/{content}", delete(drop_content))
        .route("/metrics", get(scraped))
        .route("/openapi.json", get(|| async { told(&openapi::document()) }))
        .layer(DefaultBodyLimit::max(JSON_BYTES))
        .with_state(native)
}

/// An answer of JSON.
pub(crate) fn told(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn read<'b, T: Deserialize<'b>>(body: &'b Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("the body: {error}")))
}

async fn info(State(native): State<Native>) -> Response {
    let welcome = native.hand.welcome();
    told(&json!({
        "schema": "netdyno.serve/1",
        "version": welcome["version"],
        "job": welcome["job"],
        "report": welcome["report"],
        "snapshot": welcome["snapshot"],
        "host": welcome["host"],
        "may": welcome["may"],
        "limits": welcome["limits"],
        "watch": native.watch,
    }))
}

#[derive(Deserialize)]
struct Which {
    interface: Option<String>,
}

async fn doctor(State(native): State<Native>, Query(which): Query<Which>) -> Answer {
    let interfaces: Vec<String> = which.interface.into_iter().collect();
    let _turn = native.looking.lock().await;
    let asked = json!({"interfaces": interfaces, "diagnosis": true});
    Ok(told(&native.hand.call("host", asked).await?))
}

/// Each schema that a client of this API may need.
const SCHEMAS: [(&str, &str); 3] = [
    ("job.json", include_str!("../schemas/job.schema.json")),
    ("report.json", include_str!("../schemas/report.schema.json")),
    ("snapshot.json", include_str!("../schemas/snapshot.schema.json")),
];

async fn schema(Path(name): Path<String>) -> Answer {
    let found = SCHEMAS.iter().find(|(own, _)| *own == name);
    let (_, text) = found.ok_or_else(|| {
        let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
        Problem::new(
            StatusCode::NOT_FOUND,
            format!("there is no such schema; there are {}", names.join(", ")),
        )
    })?;
    Ok(([(header::CONTENT_TYPE, "application/schema+json")], *text).into_response())
}

async fn scraped(State(native): State<Native>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, metrics::text(&native.hand.runs().all())).into_response()
}

async fn list(State(native): State<Native>) -> Response {
    let runs: Vec<Value> = native.hand.runs().all().iter().map(|run| run.told()).collect();
    told(&json!({ "runs": runs }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    job: Map<String, Value>,
    #[serde(default)]
    contents: Map<String, Value>,
}

#[derive(Deserialize)]
struct Dry {
    #[serde(default)]
    dry: u8,
}

async fn start(State(native): State<Native>, Query(dry): Query<Dry>, body: Bytes) -> Answer {
    let Start { mut job, contents } = read(&body)?;
    if dry.dry != 0 {
        job.entry("schema").or_insert_with(|| spec::SCHEMA.into());
        return Ok(told(&checked(Value::Object(job))?));
    }
    let run = native.hand.start(json!({"job": job, "contents": contents, "closely": true})).await?;
    let place = format!("/api/v1/runs/{}", run.name);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], told(&run.told())).into_response())
}

/// A job that is looked at and not carried out.
fn checked(job: Value) -> Result<Value, Problem> {
    let wrong = |path: &str, what: &str| Problem {
        status: StatusCode::BAD_REQUEST,
        detail: format!("{path}: {what}"),
        errors: vec![json!({"path": path, "message": what, "hint": null})],
    };
    let mut file = spec::File::of(job).map_err(|bad| match bad {
        spec::BadFile::Member { path, what } => wrong(&path, &what),
        spec::BadFile::Yaml(error) => wrong("job", &error.to_string()),
    })?;
    if file.jobs.len() != 1 {
        return Err(wrong("job", "it is one job"));
    }
    let job = file.jobs.remove(0);
    job.check().map_err(|found| wrong(&found.member, &found.what))?;
    let job = job.to_value().map_err(|error| wrong("job", &error.to_string()))?;
    Ok(json!({"command": command(&job), "job": job}))
}

fn find(native: &Native, name: &str) -> Result<Arc<Run>, Problem> {
    native.hand.runs().find(name).ok_or_else(|| {
        let what = format!("there is no run `{}`", report::units::printable(name));
        Problem::new(StatusCode::NOT_FOUND, what)
    })
}

async fn one(State(native): State<Native>, Path(name): Path<String>) -> Answer {
    let run = find(&native, &name)?;
    let mut all = run.told();
    all["snapshot"] = run.newest().0.as_deref().cloned().unwrap_or_default();
    Ok(told(&all))
}

#[derive(Deserialize)]
struct Wait {
    wait: Option<String>,
}

async fn part(
    State(native): State<Native>,
    Path((name, what)): Path<(String, String)>,
    Query(wait): Query<Wait>,
) -> Answer {
    let run = find(&native, &name)?;
    match what.as_str() {
        "events" if run.is_over() && wait.wait.as_deref() == Some("0s") => {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        "events" => Ok(events::of_run(run)),
        "report.json" | "report.html" | "report.csv" => {
            if let Some(wait) = &wait.wait {
                let wait = traffic::rate::parse_duration(wait)
                    .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("wait: {error}")))?;
                let _ = tokio::time::timeout(wait.min(MOST_WAIT), run.await_over()).await;
            }
            report_as(&run, what.strip_prefix("report.").unwrap_or_default())
        }
        _ => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "a run has events, report.json, report.html and report.csv",
        )),
    }
}

fn report_as(run: &Run, format: &str) -> Answer {
    let Some(found) = run.report() else {
        let why = run.error().map_or_else(
            || format!("{} is {}: there is no report yet", run.name, run.state().name()),
            |fault| format!("{} has no report: {}", run.name, fault.message),
        );
        return Err(Problem::new(StatusCode::NOT_FOUND, why));
    };
    let broken = |error: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let typed = || -> Result<report::Report, Problem> {
        report::json::from_value((*found).clone()).map_err(|error| broken(error.to_string()))
    };
    let (kind, text) = match format {
        "html" => ("text/html; charset=utf-8", report::html::render(&typed()?)),
        "csv" => ("text/csv; charset=utf-8", report::csv::render(&typed()?)),
        _ => ("application/json", found.to_string()),
    };
    let policy = policy(&text);
    let mut response = ([(header::CONTENT_TYPE, kind)], text).into_response();
    if let Some(policy) = header::HeaderValue::from_str(&policy).ok().filter(|_| format == "html") {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// A report's page has its own style inside, and one script, which is allowed by what it is.
fn policy(page: &str) -> String {
    let script = page.rsplit_once("<script>").and_then(|(_, rest)| rest.split_once("</script>"));
    let digest = script.map(|(script, _)| STANDARD.encode(Sha256::digest(script)));
    let script = digest.map_or_else(|| "'none'".to_owned(), |digest| format!("'sha256-{digest}'"));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {script}; frame-ancestors 'none'"
    )
}

async fn steer(State(native): State<Native>, Path((name, what)): Path<(String, String)>) -> Answer {
    let run = find(&native, &name)?;
    let method = match what.as_str() {
        "pause" => "job.pause",
        "resume" => "job.resume",
        "stop" => "job.stop",
        "abort" => "job.abort",
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "a run takes pause, resume, stop and abort")),
    };
    native.hand.call(method, json!({"run": run.name})).await?;
    Ok(told(&run.told()))
}

async fn change(State(native): State<Native>, Path(name): Path<String>, body: Bytes) -> Answer {
    let run = find(&native, &name)?;
    let mut asked: Map<String, Value> = read(&body)?;
    asked.insert("run".to_owned(), run.name.clone().into());
    Ok(told(&native.hand.call("job.rate", Value::Object(asked)).await?))
}

async fn forget(State(native): State<Native>, Path(name): Path<String>) -> Answer {
    let run = find(&native, &name)?;
    if !run.is_over() {
        let what = format!("{} is {}: stop it first", run.name, run.state().name());
        return Err(Problem::new(StatusCode::CONFLICT, what));
    }
    native.hand.forget(&run).await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn drop_content(State(native): State<Native>, Path(name): Path<String>) -> Answer {
    native.hand.call("content.forget", json!({"content": name})).await?;
    lock(&native.sent).retain(|own| *own != name);
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

async fn upload(State(native): State<Native>, Query(named): Query<Named>, request: Request) -> Answer {
    let Ok(_place) = native.uploads.acquire().await else {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server ends"));
    };
    let name = named.name.unwrap_or_else(|| "file".to_owned());
    let body = axum::body::to_bytes(request.into_body(), FILE_BYTES).await;
    let body = body.map_err(|error| {
        let what = format!("the body: {error}; a file has at most {} MiB here", FILE_BYTES >> 20);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    })?;
    let content = native.hand.content(&name, &body).await?;
    let own = content["content"].as_str().unwrap_or_default().to_owned();
    let oldest = {
        let mut sent = lock(&native.sent);
        if !sent.contains(&own) {
            sent.push_back(own);
        }
        if sent.len() > FILES { sent.pop_front() } else { None }
    };
    if let Some(oldest) = oldest {
        let _ = native.hand.call("content.forget", json!({"content": oldest})).await;
    }
    Ok((StatusCode::CREATED, told(&content)).into_response())
}
