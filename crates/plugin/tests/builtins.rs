//! The built-in plugins yield the same documents from WebAssembly as natively, and every guest of examples/plugins, in each
//! language, does what it says. `scripts/plugins` builds them from source, which these tests call.

#![cfg(feature = "wasm")]

use netdyno_plugin as plugin;
use plugin_sdk::World;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A module of target/plugins, built if it is not there or old.
fn module(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let built = Command::new("scripts/plugins").current_dir(&root).output().expect("scripts/plugins");
        assert!(built.status.success(), "scripts/plugins: {}", String::from_utf8_lossy(&built.stderr));
        root.join("target/plugins")
    });
    folder.join(format!("{name}.wasm"))
}

fn options(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn built_in_plugins_yield_the_same_documents_from_webassembly() {
    let guest = plugin::load(&module("builtins")).expect("a plugin");
    let mut compared = 0;
    for native in plugins::ALL {
        let description = (native.describe)();
        let own = plugin::find(&description.name).expect("it is built in");
        let examples = description.example.iter().map(|example| example.set.clone());
        for set in examples.chain([Map::new()]) {
            let here = own.scenario_text(&set, Some(7)).expect("a document");
            let there = options(&json!({ "plugin": description.name, "options": set }));
            let there = guest.scenario_text(&there, Some(7)).expect("a document");
            let [here, there] = [here, there].map(|text| serde_json::from_str::<Value>(&text).expect("JSON"));
            assert_eq!(here, there, "{} {set:?}", description.name);
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn guests_of_every_language_do_what_they_say() {
    for (name, world) in [
        ("coap_sensors", World::Compile),
        ("rtp_video", World::Frames),
        ("radius_clients", World::Compile),
        ("udp_flows_go", World::Frames),
        ("ntp_clients", World::Compile),
        ("udp_flows_c", World::Frames),
    ] {
        let guest = plugin::load(&module(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((guest.name(), guest.description.world), (name, world));
        assert!(!guest.description.example.is_empty(), "{name}");
        for example in &guest.description.example {
            if world == World::Compile {
                let scenario =
                    guest.scenario(&example.set, Some(7)).unwrap_or_else(|error| panic!("{name}: {error}"));
                // What states no rate of its own is given one where it is sent.
                let rate = scenario.wants_rate().then_some(traffic::rate::Rate::TopSpeed);
                let context = scenario::Context { seed: 7, rate, ..Default::default() };
                let compiled = scenario.compile(&context).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(!compiled.program.streams.is_empty());
                continue;
            }
            let mut frames = Vec::new();
            let mut row = guest.open(&example.set, Some(7)).unwrap_or_else(|error| panic!("{name}: {error}"));
            plugin::each_frame(&mut row, 300, |frame| frames.push(frame.to_vec())).expect("frames");
            assert_eq!(frames.len(), 300, "{name}");
            for frame in &frames {
                let shown = wire::show::show(wire::LinkType::ETHERNET, frame);
                assert!(!shown.contains("bad, should") && !shown.contains("malformed"), "{name}: {shown}");
            }
            assert!(frames.windows(2).any(|two| two[0] != two[1]), "{name}: all frames are the same");
        }
    }
}
