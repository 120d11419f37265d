//! `#[derive(JsonSchema)]` that makes nothing.
//!
//! Our types are described by JSON Schemas, which tests write to docs. The program has no use for them, and to compile what makes
//! them takes as long as much of what it does. So crates take this one in schemars' place, with their cargo feature `without-schemas`.

#![deny(missing_docs)]

use proc_macro::TokenStream;

/// Nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
