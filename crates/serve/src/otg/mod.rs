//! Open Traffic Generator (docs/otg.md): ports, port-to-port flows, their control and metrics, over the eleven routes of the model.
//!
//! ```text
//!   config --> frames: headers to expressions --> Config: a stream of a scenario for each flow
//!   control --> Tester: runs of the agent       metrics <-- snapshots of those
//! ```

mod answer;
mod captured;
mod config;
mod devices;
mod emulated;
mod frames;
mod metrics;
mod read;
mod tester;

pub(crate) use tester::Tester;

use crate::fault::Problem;
use answer::{Refused, told, warned};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch, post};
use read::{At, Findings};
use serde_json::{Value, json};

/// Versions of the model whose clients work with this server.
const VERSIONS: &str = ">=1.40.0,<2.0.0";
/// Bytes of a configuration.
const BYTES: usize = 16 << 20;

const PATHS: [&str; 9] = [
    "/capabilities/version",
    "/config",
    "/config/append",
    "/config/delete",
    "/control/state",
    "/control/action",
    "/monitor/metrics",
    "/monitor/states",
    "/monitor/capture",
];

/// Is it a route of the model?
pub(crate) fn owns(path: &str) -> bool {
    PATHS.contains(&path)
}

/// A refusal of the guard, as the model's clients read it.
pub(crate) fn refused(problem: &Problem) -> Response {
    Refused::from(problem).respond()
}

type Answer = Result<Response, Refusal>;

/// Is done to its end, also if the client has gone meanwhile: half a start would send what nobody can stop.
async fn whole<T: Send + 'static>(
    act: impl Future<Output = Result<T, Refused>> + Send + 'static,
) -> Result<T, Refused> {
    tokio::spawn(act).await.unwrap_or_else(|error| {
        Err(Refused { status: StatusCode::INTERNAL_SERVER_ERROR, errors: vec![error.to_string()] })
    })
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

struct Refusal(Refused);

impl<E: Into<Refused>> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal(error.into())
    }
}

impl axum::response::IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.0.respond()
    }
}

pub(crate) fn routes(tester: Tester) -> Router {
    Router::new()
        .route("/capabilities/version", get(version))
        .route("/config", get(get_config).post(set_config).patch(update_config))
        .route("/config/append", patch(append_config))
        .route("/config/delete", patch(delete_config))
        .route("/control/state", post(control_state))
        .route("/control/action", post(control_action))
        .route("/monitor/metrics", post(get_metrics))
        .route("/monitor/states", post(get_states))
        .route("/monitor/capture", post(get_capture))
        .layer(DefaultBodyLimit::max(BYTES))
        .with_state(tester)
}

fn body(bytes: &Bytes) -> Result<Value, Refused> {
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(bytes).map_err(|error| Refused::one(format!("the body: {error}")))
}

/// Fails with all that was found.
fn held(findings: &Findings) -> Result<(), Refused> {
    let offences = findings.offences();
    if offences.is_empty() { Ok(()) } else { Err(Refused::of(offences)) }
}

async fn version() -> Response {
    told(&json!({
        "api_spec_version": VERSIONS,
        "sdk_version": "",
        "app_version": env!("CARGO_PKG_VERSION"),
    }))
}

async fn get_config(State(tester): State<Tester>) -> Response {
    let value = tester.setup.lock().await.value.clone();
    told(&if value.is_null() { json!({}) } else { value })
}

async fn set_config(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    Ok(warned(whole(async move { tester.set_config(value).await }).await?))
}

async fn update_config(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    at.only(&["choice", "flows", "protocols"]);
    at.choice("flows", &["flows"]);
    let flows = at.get("flows");
    flows.only(&["property_names", "flows"]);
    let properties = flows.get("property_names").texts();
    for property in properties.iter().filter(|name| !matches!(**name, "rate" | "size")) {
        flows
            .get("property_names")
            .wrong(&format!("`{}`: rate and size can be changed", report::units::printable(property)));
    }
    let mut changes = Vec::new();
    for flow in flows.get("flows").each() {
        let Some(name) = flow.get("name").name() else { continue };
        let parts = properties
            .iter()
            .filter_map(|property| Some(((*property).to_owned(), flow.get(property).value()?.clone())));
        changes.push((name.to_owned(), parts.collect()));
    }
    held(&findings)?;
    Ok(warned(whole(async move { tester.update(changes).await }).await?))
}

async fn append_config(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    at.only(&["config_append_list"]);
    let mut more = Vec::new();
    for item in at.get("config_append_list").each() {
        for list in ["ports", "layer1", "captures", "flows"] {
            more.extend(
                item.get(list).each().iter().filter_map(At::value).map(|value| (list, value.clone())),
            );
        }
        item.only(&["ports", "layer1", "captures", "flows"]);
    }
    held(&findings)?;
    Ok(warned(whole(async move { tester.append(more).await }).await?))
}

async fn delete_config(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    at.only(&["config_delete_list"]);
    let mut names = Vec::new();
    for item in at.get("config_delete_list").each() {
        item.only(&["flows"]);
        names.extend(item.get("flows").texts().into_iter().map(str::to_owned));
    }
    held(&findings)?;
    Ok(warned(whole(async move { tester.delete(&names).await }).await?))
}

async fn control_state(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    at.only(&["choice", "port", "protocol", "traffic"]);
    match at.choice("", &["port", "protocol", "traffic"]) {
        "traffic" => {
            let flows = at.get("traffic").get("flow_transmit");
            at.get("traffic").only(&["choice", "flow_transmit"]);
            flows.only(&["flow_names", "state"]);
            let state = flows.get("state").name().unwrap_or_default();
            let names = flows.get("flow_names").texts();
            held(&findings)?;
            let (state, names) = (state.to_owned(), owned(&names));
            return Ok(warned(whole(async move { tester.transmit(&state, &names).await }).await?));
        }
        "port" => {
            let port = at.get("port");
            port.only(&["choice", "link", "capture"]);
            let choice = port.choice("capture", &["link", "capture"]);
            let of = port.get(choice);
            of.only(&["port_names", "state"]);
            let state = of.get("state").name().unwrap_or_default();
            let names = of.get("port_names").texts();
            held(&findings)?;
            let (state, names) = (state.to_owned(), owned(&names));
            match choice {
                "link" => whole(async move { tester.link(&state, &names).await }).await?,
                _ => whole(async move { tester.capture(&state, &names).await }).await?,
            }
        }
        "protocol" => {
            // Of protocols there are those of all devices: ARP, neighbour discovery and ping.
            let protocol = at.get("protocol");
            if protocol.choice("all", &["all"]) == "all" {
                protocol.only(&["choice", "all"]);
            }
            let all = protocol.get("all");
            all.only(&["state"]);
            let state = all.get("state").name().unwrap_or_default().to_owned();
            held(&findings)?;
            whole(async move { tester.protocols(&state).await }).await?;
        }
        _ => {
            at.get("choice").wrong("is needed: traffic, port or protocol");
            held(&findings)?;
        }
    }
    Ok(warned(Vec::new()))
}

async fn control_action() -> Answer {
    Err(Refused::one("choice: none is offered: devices answer ARP, neighbour discovery and ping, and have no other protocols").into())
}

async fn get_metrics(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    let choice = at.choice("port", &["port", "flow"]);
    at.only(&["choice", "port", "flow"]);
    let of = at.get(choice);
    let (names, columns) = match choice {
        "flow" => {
            of.only(&["flow_names", "metric_names", "tagged_metrics"]);
            (of.get("flow_names").texts(), of.get("metric_names").texts())
        }
        _ => {
            of.only(&["port_names", "column_names"]);
            (of.get("port_names").texts(), of.get("column_names").texts())
        }
    };
    if choice == "port" {
        tester.look_at_links().await;
    }
    let setup = tester.setup.lock().await;
    for name in &names {
        let known = match choice {
            "flow" => setup.config.flows.iter().any(|flow| flow.name == *name),
            _ => setup.config.port(name).is_some(),
        };
        if !known {
            of.wrong(&format!("there is no {choice} `{}`", report::units::printable(name)));
        }
    }
    held(&findings)?;
    let rows = match choice {
        "flow" => metrics::flows(&setup, &names, &columns),
        _ => metrics::ports(&setup, &names, &columns),
    };
    Ok(told(&rows))
}

async fn get_states(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    let choice = at.choice("ipv4_neighbors", &["ipv4_neighbors", "ipv6_neighbors"]);
    at.only(&["choice", "ipv4_neighbors", "ipv6_neighbors"]);
    let of = at.get(choice);
    of.only(&["ethernet_names"]);
    let names = of.get("ethernet_names").texts();
    held(&findings)?;
    let names = owned(&names);
    let rows = whole(async move { tester.neighbours(choice == "ipv4_neighbors", &names).await }).await?;
    Ok(told(&json!({"choice": choice, choice: rows})))
}

async fn get_capture(State(tester): State<Tester>, bytes: Bytes) -> Answer {
    let value = body(&bytes)?;
    let findings = Findings::default();
    let at = At::root(&value, &findings);
    at.only(&["port_name", "packets"]);
    at.not(&[("packets", "all that was captured is returned")]);
    let name = at.get("port_name").name().unwrap_or_default();
    held(&findings)?;
    let name = name.to_owned();
    let captured = whole(async move { tester.captured(&name).await }).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], captured).into_response())
}
