//! Payload: bytes that no table explains. It has no fields; the expression gives its text, bytes, or length.

use super::{Carries, Next, Protocol, Spec, Variable};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Raw,
    name: "raw",
    aliases: &["payload", "padding"],
    title: "Payload",
    doc: "Bytes: `raw(\"text\")`, `raw(hex=\"de ad\")`, `payload(len=100, fill=0x00)`.",
    min_len: 0,
    fields: &[],
    carries: Carries::Only(&[]),
    variable: Variable::None,
    header_len: |bytes| Some(bytes.len()),
    next: |_, _| Next::Payload,
};
