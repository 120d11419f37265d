//! What `netdyno plugin new` writes: the files of a new plugin, each as path and text. [`NAME`] stands for its name.

/// Stands for the plugin's name in every text.
pub const NAME: &str = "PLUGIN_NAME";

/// Path and text of a file.
pub type File = (&'static str, &'static str);

/// A plugin in Rust.
pub const RUST: &[File] = &[
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
    ("src/lib.rs", include_str!("../templates/rust/src/lib.rs")),
    ("README.md", include_str!("../templates/rust/README.md")),
];

/// A plugin in Go.
pub const GO: &[File] = &[
    ("go.mod", include_str!("../templates/go/go.mod.in")),
    ("plugin.go", include_str!("../templates/go/plugin.go.in")),
    ("plugin_test.go", include_str!("../templates/go/plugin_test.go.in")),
    ("netdyno.go", include_str!("../go/netdyno.go")),
    ("netdyno_wasm.go", include_str!("../go/netdyno_wasm.go")),
    ("README.md", include_str!("../templates/go/README.md")),
];

/// A plugin in C.
pub const C: &[File] = &[
    ("plugin.c", include_str!("../templates/c/plugin.c")),
    ("test.c", include_str!("../templates/c/test.c")),
    ("netdyno.h", include_str!("../c/netdyno.h")),
    ("Makefile", include_str!("../templates/c/Makefile.in")),
    ("README.md", include_str!("../templates/c/README.md")),
];
