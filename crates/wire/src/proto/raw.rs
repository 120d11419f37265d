//! Payload: bytes that no table explains. It has no fields; the expression gives its text, bytes, or length.

use super::{Carries, Next, Protocol, Spec, Variable};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Raw,
    name: "raw",
    aliases: &["payload", "padding", "frame"],
    title: "Payload",
    doc: "Bytes: `raw(\"text\")`, `raw(hex=\"de ad\")`, `payload(len=100, fill=0x00)`; with `fields=[...]` parts of them vary. Any layer may follow: so headers without a table are written. `frame(hex=..)` is a frame from its first byte on: no Ethernet header is put in front.",
    min_len: 0,
    fields: &[],
    // A header that no table knows is written as bytes, with what it carries behind it.
    carries: Carries::Anything,
    variable: Variable::None,
    header_len: |bytes| Some(bytes.len()),
    next: |_, _| Next::Payload,
};
