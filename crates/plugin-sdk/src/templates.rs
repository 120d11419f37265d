//! What `netdyno plugin new` writes: the files of a new plugin, each as path and text. For netdyno alone: a plugin has the other
//! modules of this crate beside it, as source, and not this one.

/// Stands for the plugin's name in every text.
const NAME: &str = "PLUGIN_NAME";
/// Stands for this crate's version.
const VERSION: &str = "SDK_VERSION";
/// What `lib.rs` has for netdyno alone.
const OURS: &str = "#[cfg(feature = \"templates\")]\npub mod templates;\n";

/// A plugin of one language.
#[derive(Debug)]
pub struct Template {
    /// Path and text of each file; [`filled`] makes the text that is written.
    pub files: &'static [(&'static str, &'static str)],
    /// What builds it, typed in its folder.
    pub build: &'static str,
    /// The module that is built, in its folder.
    pub module: &'static str,
}

/// The text that is written, for a plugin of this name.
#[must_use]
pub fn filled(text: &str, name: &str) -> String {
    text.replace(OURS, "").replace(NAME, name).replace(VERSION, env!("CARGO_PKG_VERSION"))
}

/// A plugin in Rust. This crate goes with it, because it is on no registry.
pub const RUST: Template = Template {
    files: &[
        ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
        ("src/lib.rs", include_str!("../templates/rust/src/lib.rs")),
        ("README.md", include_str!("../templates/rust/README.md")),
        ("sdk/Cargo.toml", include_str!("../templates/rust/sdk/Cargo.toml.in")),
        ("sdk/src/description.rs", include_str!("description.rs")),
        ("sdk/src/guest.rs", include_str!("guest.rs")),
        ("sdk/src/lib.rs", include_str!("lib.rs")),
        ("sdk/src/options.rs", include_str!("options.rs")),
        ("sdk/src/packet.rs", include_str!("packet.rs")),
        ("sdk/src/payload.rs", include_str!("payload.rs")),
        ("sdk/src/plugin.rs", include_str!("plugin.rs")),
        ("sdk/src/scenario.rs", include_str!("scenario.rs")),
        ("sdk/src/testing.rs", include_str!("testing.rs")),
        ("sdk/src/value.rs", include_str!("value.rs")),
    ],
    build: "cargo build --release --target wasm32-unknown-unknown",
    module: "target/wasm32-unknown-unknown/release/PLUGIN_NAME.wasm",
};

/// A plugin in Go.
pub const GO: Template = Template {
    files: &[
        ("go.mod", include_str!("../templates/go/go.mod.in")),
        ("plugin.go", include_str!("../templates/go/plugin.go.in")),
        ("plugin_test.go", include_str!("../templates/go/plugin_test.go.in")),
        ("netdyno.go", include_str!("../go/netdyno.go")),
        ("netdyno_wasm.go", include_str!("../go/netdyno_wasm.go")),
        ("README.md", include_str!("../templates/go/README.md")),
    ],
    build: "GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o PLUGIN_NAME.wasm .",
    module: "PLUGIN_NAME.wasm",
};

/// A plugin in C.
pub const C: Template = Template {
    files: &[
        ("plugin.c", include_str!("../templates/c/plugin.c")),
        ("test.c", include_str!("../templates/c/test.c")),
        ("netdyno.h", include_str!("../c/netdyno.h")),
        ("Makefile", include_str!("../templates/c/Makefile.in")),
        ("README.md", include_str!("../templates/c/README.md")),
    ],
    build: "make",
    module: "PLUGIN_NAME.wasm",
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_plugin_in_rust_has_every_module_and_dependency_of_this_crate_beside_it() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in here.join("src").read_dir().expect("our sources") {
            let name = file.expect("an entry").file_name().into_string().expect("a name");
            let vendored = RUST.files.iter().find(|(path, _)| *path == format!("sdk/src/{name}"));
            assert_eq!(vendored.is_some(), name != "templates.rs", "{name}");
        }
        let (_, own) = RUST.files.iter().find(|(path, _)| *path == "sdk/src/lib.rs").expect("it is there");
        assert!(own.contains(OURS) && !filled(own, "mine").contains("templates"));

        let dependencies = |manifest: &str| {
            let (_, table) = manifest.split_once("\n[dependencies]\n").expect("dependencies");
            let lines = table.lines().take_while(|line| !line.is_empty());
            lines.filter_map(|line| Some(line.split(['.', ' ']).next()?.to_owned())).collect::<Vec<_>>()
        };
        let ours = std::fs::read_to_string(here.join("Cargo.toml")).expect("our manifest");
        let (_, vendored) =
            RUST.files.iter().find(|(path, _)| *path == "sdk/Cargo.toml").expect("it is there");
        assert_eq!(dependencies(vendored), dependencies(&ours));
        assert!(filled(vendored, "mine").contains(concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"")));
    }
}
