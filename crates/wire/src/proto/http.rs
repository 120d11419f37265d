//! HTTP/1.1 messages (RFC 9112) that begin in this segment.

use super::message::{Lines, Part, text};
use super::{Carries, Next, Protocol, Spec, Variable};

/// What requests begin with (RFC 9110 section 9, RFC 5789).
pub const METHODS: &[&str] =
    &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
/// Ports of TCP on which it is expected.
pub const PORTS: &[u128] = &[80, 3128, 8000, 8080];

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Http,
    name: "http",
    aliases: &[],
    title: "HTTP",
    doc: "An HTTP/1.1 request, or with `status` a response, as payload of `tcp`, whose flags are then PSH and ACK. Nothing is answered.",
    min_len: 0,
    fields: &[],
    carries: Carries::Only(&[]),
    variable: Variable::Message {
        parts: &[
            Part::new("method", "`GET`", "Of a request. A list takes turns, here as in all others."),
            Part::new("path", "`\"/\"`", "Of a request.").or(&["uri", "target"]),
            Part::new("version", "`\"HTTP/1.1\"`", "Of the protocol.").or(&["http_version"]),
            Part::new("host", "`www.example.org`", "The Host header of a request."),
            Part::new("status", "none", "Makes it a response: `200`, `\"404 Not Found\"`.")
                .or(&["status_code"]),
            Part::new(
                "headers",
                "none",
                "Further headers: `[\"Accept: */*\", \"X-Id: 1\"]`; these do not take turns.",
            ),
            Part::new("body", "none", "Content. Content-Length says how long it is, unless `headers` does."),
        ],
        describe,
    },
    header_len: |bytes| begins(bytes).then_some(bytes.len()),
    next: |_, _| Next::Payload,
};

/// Whether a message begins here.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let method =
        |name: &&str| bytes.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b' '));
    bytes.starts_with(b"HTTP/1.") || METHODS.iter().any(method)
}

/// The lines of its head, and how much content is here.
fn describe(bytes: &[u8]) -> Lines {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let head = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    let mut lines: Lines = head
        .split(|byte| *byte == b'\n')
        .map(|line| text(line.strip_suffix(b"\r").unwrap_or(line)))
        .enumerate()
        .map(|(i, line)| (if i == 0 { "start" } else { "header" }, line))
        .collect();
    if let Some(content) = end.and_then(|end| bytes.get(end + 4..)).filter(|content| !content.is_empty()) {
        lines.push((
            "body",
            format!("{} bytes, \"{}\"", content.len(), text(content.get(..48).unwrap_or(content))),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};
    use super::describe;

    #[test]
    fn a_literal_packet() {
        let request = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
        testing::follows(Protocol::Http, request, request.len(), Next::Payload);
        let lines: Vec<String> =
            describe(request).into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(
            lines,
            [
                "start: POST /a HTTP/1.1",
                "header: Host: h",
                "header: Content-Length: 2",
                "body: 2 bytes, \"hi\""
            ]
        );
        for other in [&b"POSTER /"[..], b"", b"GE", b"\x16\x03\x01"] {
            assert_eq!((Protocol::Http.spec().header_len)(other), None);
        }
    }
}
