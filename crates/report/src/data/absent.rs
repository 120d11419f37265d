//! What a build does not have.

/// The sentence for who asks a build for a part that it was built without: `what` it is called, and the Cargo feature that adds it.
pub fn absent(what: &str, feature: &str) -> String {
    format!(
        "this netdyno was built without {what} (Cargo feature `{feature}`): `make build` makes one that has it"
    )
}
