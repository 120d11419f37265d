//! Errors as they are answered: problem details (RFC 9457).

use agent::FaultKind;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Why a request was not done.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub status: StatusCode,
    pub detail: String,
    pub errors: Vec<Value>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem { status, detail: detail.into(), errors: Vec::new() }
    }
}

/// What HTTP calls a fault of this kind.
pub(crate) fn status(fault: &agent::Fault) -> StatusCode {
    match fault.data.kind {
        FaultKind::Usage => StatusCode::BAD_REQUEST,
        FaultKind::Unknown => StatusCode::NOT_FOUND,
        FaultKind::Refused if fault.message.contains("is held by") => StatusCode::CONFLICT,
        FaultKind::Refused | FaultKind::Permission => StatusCode::FORBIDDEN,
        FaultKind::Engine | FaultKind::Aborted | FaultKind::Late => StatusCode::CONFLICT,
        FaultKind::Limit => StatusCode::SERVICE_UNAVAILABLE,
        FaultKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A fault of the agent as data.
pub(crate) fn told(fault: &agent::Fault) -> Value {
    json!({
        "message": fault.message,
        "kind": fault.data.kind,
        "setting": fault.data.setting,
        "remedy": fault.data.remedy,
    })
}

impl From<agent::Fault> for Problem {
    fn from(fault: agent::Fault) -> Problem {
        let error = json!({
            "path": fault.data.setting,
            "message": fault.message,
            "hint": fault.data.remedy,
        });
        Problem { status: status(&fault), detail: fault.message, errors: vec![error] }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "errors": self.errors,
        });
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (self.status, kind, body.to_string()).into_response()
    }
}
