//! What this build has of what can be left out (cargo features), for `--version` and `doctor`.

use std::sync::OnceLock;

/// A part that takes long to compile: its cargo feature, what it is for, and whether it is here.
const PARTS: [(&str, &str, bool); 9] = [
    ("clickhouse", "collect --clickhouse", cfg!(feature = "clickhouse")),
    ("iperf3-auth", "iperf3's --rsa-... options", cfg!(feature = "iperf3-auth")),
    ("kafka", "collect --kafka", cfg!(feature = "kafka")),
    ("nats", "agent --nats, agents reach", cfg!(feature = "nats")),
    ("netflow", "probe, collect, search flows, nprobe, softflowd", cfg!(feature = "netflow")),
    ("parquet", "collect --write FILE.parquet, trend --parquet", cfg!(feature = "parquet")),
    ("serve", "serve", cfg!(feature = "serve")),
    ("tui", "--tui", cfg!(feature = "tui")),
    ("wasm", "plugins that are modules", cfg!(feature = "wasm")),
];

/// The version, and what was left out, if something was.
pub fn long_version() -> Option<&'static str> {
    static SAID: OnceLock<String> = OnceLock::new();
    let absent = absent(&PARTS);
    let version = env!("CARGO_PKG_VERSION");
    let said =
        || format!("{version}\n{absent}; in a clone of its repository `make build` makes one with all");
    (!absent.is_empty()).then(|| SAID.get_or_init(said).as_str())
}

/// What this build has, in words, and whether that is all.
pub fn found() -> (String, bool) {
    let version = env!("CARGO_PKG_VERSION");
    match absent(&PARTS) {
        absent if absent.is_empty() => {
            let names: Vec<&str> = PARTS.iter().map(|(name, ..)| *name).collect();
            (format!("netdyno {version}, whole: {}", names.join(", ")), true)
        }
        absent => (format!("netdyno {version}, {absent}"), false),
    }
}

/// What the parts that are not here are for; nothing if all are.
fn absent(parts: &[(&str, &str, bool)]) -> String {
    let absent: Vec<String> =
        parts.iter().filter(|part| !part.2).map(|(name, about, _)| format!("{name} ({about})")).collect();
    if absent.is_empty() { String::new() } else { format!("built without {}", absent.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_named_with_what_it_is_for() {
        assert_eq!(absent(&[("a", "as", true)]), "");
        assert_eq!(
            absent(&[("a", "as", false), ("b", "bs", true), ("c", "cs", false)]),
            "built without a (as), c (cs)"
        );
        let (said, whole) = found();
        assert_eq!(whole, long_version().is_none());
        assert!(PARTS.iter().all(|(name, ..)| said.contains(name)), "{said}");
    }
}
