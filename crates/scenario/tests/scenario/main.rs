//! Scenario files: the published schema, the examples, errors, hostile input, and times held to their definitions.

mod errors;
mod examples;
mod flows;
mod times;

use netdyno_scenario::{Compiled, Context, Sign, parse};

/// Compiles what must compile, for a 10 Gbit/s link.
#[track_caller]
fn compiled(text: &str) -> Compiled {
    let scenario = parse(text, "test.yaml").unwrap_or_else(|error| panic!("{error}"));
    scenario.compile(&context()).unwrap_or_else(|error| panic!("{error}"))
}

fn context() -> Context {
    Context {
        seed: 1,
        link_bits_per_second: Some(10_000_000_000),
        sign: Sign::WhereRoom,
        ..Context::default()
    }
}
