//! Frames that a plugin describes.

use serde_json::{Map, Value};
use settings::settings;

/// A plugin, and what is asked of it. A module has no access to the host, so that naming one needs no consent.
#[settings(heading = "Traffic", perhaps)]
pub struct Plugin {
    /// Have a plugin say what to send, in place of `.what`: its name (`netdyno plugin list`), or the path of a module, FILE.wasm
    /// (docs/plugins.md). `netdyno plugin info NAME` lists its options.
    #[setting(
        option = "plugin",
        value = "NAME|FILE",
        file,
        excludes("what"),
        brief = "Have a plugin say what to send (`netdyno plugin list`)"
    )]
    pub name: String,
    /// The job is of this version of it, and another is refused. Filled in when the job is run.
    #[setting(apart)]
    pub version: Option<String>,
    /// The job is of the module with this SHA-256, and another is refused. Filled in when the job is run; those built in have
    /// none.
    #[setting(apart)]
    pub sha256: Option<String>,
    /// Its options, as `netdyno plugin info NAME` lists them.
    // Their types are the plugin's to say: a client makes them of what was typed once it asked the plugin.
    #[setting(apart)]
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}
