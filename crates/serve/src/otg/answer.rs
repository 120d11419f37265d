//! Answers as the model's clients read them: floats in plain decimal, uint64 as text, `{}` never an empty body.
//!
//! snappi parses answers as YAML, which takes `1e-7` and `1e16` for words; gosnappi refuses members that it does not know.

use crate::fault::Problem;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize as _;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Serializer, Value, json};
use std::io;

/// What cannot be done, all of it.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub status: StatusCode,
    pub errors: Vec<String>,
}

impl Refused {
    /// The client asks for what does not make sense, or what netdyno cannot do.
    pub fn of(errors: Vec<String>) -> Refused {
        Refused { status: StatusCode::BAD_REQUEST, errors }
    }

    pub fn one(error: impl Into<String>) -> Refused {
        Refused::of(vec![error.into()])
    }

    pub fn respond(&self) -> Response {
        let kind = if self.status.is_server_error() { "internal" } else { "validation" };
        let body = json!({"code": self.status.as_u16(), "kind": kind, "errors": self.errors});
        with(self.status, &body)
    }
}

impl From<&Problem> for Refused {
    fn from(problem: &Problem) -> Refused {
        Refused { status: problem.status, errors: vec![problem.detail.clone()] }
    }
}

impl From<agent::Fault> for Refused {
    fn from(fault: agent::Fault) -> Refused {
        let text = match &fault.data.remedy {
            Some(remedy) => format!("{}: {remedy}", fault.message),
            None => fault.message.clone(),
        };
        Refused { status: crate::fault::status(&fault), errors: vec![text] }
    }
}

/// Writes floats in plain decimal.
struct Plain<'i>(PrettyFormatter<'i>);

impl Formatter for Plain<'_> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        // Never with an exponent, and as many digits as it takes to read the same value.
        write!(to, "{value}")
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

pub(crate) fn text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Plain(PrettyFormatter::new()));
    // Into memory, of a value that has text for keys: nothing fails.
    let _ = value.serialize(&mut serializer);
    String::from_utf8(bytes).unwrap_or_default()
}

pub(crate) fn with(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text(value)).into_response()
}

pub(crate) fn told(value: &Value) -> Response {
    with(StatusCode::OK, value)
}

/// A `Warning`.
pub(crate) fn warned(warnings: Vec<String>) -> Response {
    told(&if warnings.is_empty() { json!({}) } else { json!({ "warnings": warnings }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_no_exponent() {
        let value = json!([1e-7, 1e16, 1e21, 0.0, 5.0, 0.1]);
        let flat: String = text(&value).split_whitespace().collect();
        assert_eq!(flat, "[0.0000001,10000000000000000,1000000000000000000000,0,5,0.1]");
        assert_eq!(text(&json!({})), "{}");
    }
}
