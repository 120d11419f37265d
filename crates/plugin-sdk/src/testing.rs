//! A test harness: runs a plugin in its own tests, without netdyno and without WebAssembly, the way a module is run.
//!
//! These functions panic, because a test that fails does.

use crate::description::{Description, Fault};
use crate::plugin::{
    Compile, Frame, Frames, Input, Run, compile_json, describe_compile, describe_frames, open_json,
};
use crate::scenario::Scenario;
use serde_json::Value;

fn input(options: &Value, seed: Option<u64>) -> String {
    let input = Input { options: options.clone(), run: Run { seed, ..Run::default() } };
    serde_json::to_string(&input).expect("options are JSON")
}

/// The scenario for these options.
///
/// # Panics
/// The plugin refuses them; the message has its fault.
#[must_use]
pub fn compile<P: Compile>(options: &Value) -> Scenario {
    let text = compile_json::<P>(&input(options, Some(1)))
        .unwrap_or_else(|fault| panic!("{} refuses {options}: {fault}", P::NAME));
    serde_json::from_str(&text).expect("a scenario")
}

/// What the plugin says of options that it cannot use.
///
/// # Panics
/// It can use them.
#[must_use]
pub fn refusal<P: Compile>(options: &Value) -> Fault {
    match compile_json::<P>(&input(options, Some(1))) {
        Ok(text) => panic!("{} takes {options}: {text}", P::NAME),
        Err(fault) => fault,
    }
}

/// A frames-world plugin, opened with these options.
///
/// # Panics
/// The plugin refuses them; the message has its fault.
#[must_use]
pub fn open<P: Frames>(options: &Value) -> P {
    open_json::<P>(&input(options, Some(1)))
        .unwrap_or_else(|fault| panic!("{} refuses {options}: {fault}", P::NAME))
}

/// The bytes of frame `n`.
///
/// # Panics
/// The frame is empty, or longer than the plugin said.
#[must_use]
pub fn frame<P: Frames>(plugin: &P, n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    plugin.frame(n, &mut Frame::at_end_of(&mut bytes));
    let longest = usize::from(plugin.longest());
    assert!(
        (1..=longest).contains(&bytes.len()),
        "frame {n} has {} bytes; 1 to {longest} were said",
        bytes.len()
    );
    bytes
}

/// Checks what all plugins must hold: a name that can be called, a description of each option, examples that are taken.
///
/// # Panics
/// Something does not hold.
pub fn check<P: Compile>() {
    let description = describe_compile::<P>();
    check_description(&description);
    for example in &description.example {
        let _ = compile::<P>(&Value::Object(example.set.clone()));
    }
}

/// The same of a frames-world plugin; and frame *n* is the same however it is asked for.
///
/// # Panics
/// Something does not hold.
pub fn check_frames<P: Frames>() {
    let description = describe_frames::<P>();
    check_description(&description);
    for example in &description.example {
        let options = Value::Object(example.set.clone());
        let (one, other) = (open::<P>(&options), open::<P>(&options));
        let most = one.count().unwrap_or(u64::MAX).min(100);
        let forwards: Vec<Vec<u8>> = (0..most).map(|n| frame(&one, n)).collect();
        for n in (0..most).rev() {
            assert!(
                frame(&other, n) == forwards[n as usize],
                "frame {n} depends on what was asked for before it"
            );
        }
    }
}

/// Checks a description.
///
/// # Panics
/// Something does not hold.
pub fn check_description(description: &Description) {
    let name = &description.name;
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    assert!(!name.is_empty() && name.chars().all(named), "`{name}` is no name: a to z, 0 to 9, _ and -");
    assert!(description.about.len() > 20, "{name} does not say what it is about");
    assert!(!description.example.is_empty(), "{name} has no example");
    let properties = description.options.get("properties").and_then(Value::as_object);
    for (option, schema) in properties.into_iter().flatten() {
        let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(!said.is_empty(), "option `{option}` of {name} has no description");
    }
}
