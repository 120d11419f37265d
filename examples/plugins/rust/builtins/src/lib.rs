//! All plugins that netdyno comes with, as one WebAssembly module: what proves that they yield the same documents there as
//! natively. Of no other use.

use plugin_sdk::{Compile, Example, Fault, Run, Scenario};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which plugin, and its options.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Name of the built-in plugin.
    plugin: String,
    /// Its options.
    #[serde(default)]
    options: serde_json::Map<String, serde_json::Value>,
}

/// The module.
#[derive(Debug)]
pub struct Builtins;

impl Compile for Builtins {
    type Options = Options;
    const NAME: &'static str = "builtins";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const ABOUT: &'static str = "Any plugin that netdyno comes with, compiled to WebAssembly.";

    fn examples() -> Vec<Example> {
        vec![Example::new("One of them", serde_json::json!({ "plugin": "simpleudp" }))]
    }

    fn compile(o: Options, run: &Run) -> Result<Scenario, Fault> {
        let native = plugins::ALL.iter().find(|native| (native.describe)().name == o.plugin);
        let native = native.ok_or_else(|| Fault::at("/plugin", "there is none of that name"))?;
        let input = serde_json::json!({ "options": o.options, "run": run }).to_string();
        let document = (native.compile)(&input)?;
        serde_json::from_str(&document).map_err(|bad| Fault::new(bad.to_string()))
    }
}

plugin_sdk::export_compile!(Builtins);
