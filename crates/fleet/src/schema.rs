//! The JSON Schemas of what is told about agents, and of files that list them.

use crate::check::Checked;
use crate::reach::Inventory;
use schemars::{JsonSchema, generate::SchemaSettings};

/// The JSON Schema of `netdyno agents check --json`.
pub fn checked_schema() -> String {
    of::<Checked>(crate::check::SCHEMA)
}

/// The JSON Schema of a file of agents.
pub fn inventory_schema() -> String {
    of::<Inventory>(crate::reach::INVENTORY)
}

fn of<T: JsonSchema>(title: &str) -> String {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    report::pretty_schema(&schema)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_published_schemas_are_those_of_the_types() {
        for (file, schema) in [
            ("agents.schema.json", super::checked_schema()),
            ("inventory.schema.json", super::inventory_schema()),
        ] {
            let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("NETDYNO_BLESS").is_some_and(|bless| bless == "1") {
                std::fs::write(&path, &schema).expect("written");
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(kept == schema, "{path} is stale: NETDYNO_BLESS=1 cargo test -p netdyno-fleet");
        }
    }
}
