//! Frames that a plugin describes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A plugin, and what is asked of it. A module has no access to the host, so that naming one needs no consent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plugin {
    /// Its name (`netdyno plugin list`), or the path of a module: FILE.wasm.
    pub name: String,
    /// The job is of this version of it, and another is refused. Filled in when the job is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The job is of the module with this SHA-256, and another is refused. Filled in when the job is run; those built in have
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its options, as `netdyno plugin info NAME` lists them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}
