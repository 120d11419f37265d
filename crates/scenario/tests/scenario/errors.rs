//! Errors name the place and the mend, and no input upsets the reader.

use crate::context;
use netdyno_scenario::{Context, MAX_STREAMS, ScenarioError, Sign, parse};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn refused(text: &str) -> ScenarioError {
    match parse(text, "x.yaml").and_then(|scenario| scenario.compile(&context())) {
        Ok(_) => panic!("compiled: {text}"),
        Err(error) => error,
    }
}

/// A stream after `streams:`, on lines 2 and on.
fn stream(lines: &str) -> String {
    let mut text = "streams:\n".to_owned();
    for (n, line) in lines.lines().enumerate() {
        let _ = writeln!(text, "  {} {line}", if n == 0 { "-" } else { " " });
    }
    text
}

#[test]
fn errors_point_at_the_place_and_say_the_mend() {
    for (text, line, column, part) in [
        (
            stream("frame: ipv4/udp\nrat: 1mpps"),
            3,
            5,
            "unknown key `rat`; did you mean `rate`? keys here: name, frame",
        ),
        (stream("frame: ipv4/udp\nrate: 1000"), 3, 11, "write 1000pps"),
        (stream("frame: ipv4/udp\nrate: 1kfps"), 3, 11, "give frames per second"),
        (stream("frame: ipv4/udp"), 2, 5, "how fast?"),
        (stream("rate: 1kpps"), 2, 5, "`frame` is missing"),
        (stream("rate: 1kpps\nframe: ipv4(tll=3)/udp"), 3, 17, "did you mean `ttl`?"),
        (stream("rate: 1kpps\nframe: \"ipv4(tll=3)/udp\""), 3, 18, "did you mean `ttl`?"),
        (stream("rate: 1kpps\nframe: >-\n  ipv4(tll=3)\n  /udp"), 4, 7, "column 6: unknown field `tll`"),
        (stream("rate: 1kpps\nframe: [ipv4]"), 3, 12, "expected a single value"),
        (stream("rate: 1kpps\nframe:"), 3, 10, "a value is missing"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nsize: [64, 0]"), 4, 11, "sizes go from 1"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nsize: {64: x}"), 4, 16, "whole number"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nsize: yes"), 4, 5, "expected a frame size"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nsize: 20"), 3, 17, "need 46 at least"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nsign: maybe"), 4, 11, "true or false"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nsign: true\nsize: 46"), 3, 17, "18 for the signature"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nrate: 2kpps"), 4, 5, "`rate` is given twice"),
        (stream("rate: 1kpps\nframe: ipv4/udp\nweight: 2"), 4, 13, "`rate` and `weight`"),
        (stream("frame: ipv4/udp\nweight: 0") + "rate: 1kpps\n", 3, 13, "whole number from 1"),
        (stream("frame: ipv4/udp\nweight: 1.5") + "rate: 1kpps\n", 3, 13, "expected a whole number"),
        (stream("frame: ipv4/udp\nstart: 1s") + "rate: 1kpps\n", 3, 12, "needs a `rate`"),
        (stream("frame: ipv4/udp\nrate: 1kpps") + "rate: 1kpps\n", 4, 7, "no stream shares this rate"),
        (stream("frame: ipv4/udp\nrate: 1kpps\nduration: 5"), 4, 15, "write 5s"),
        (stream("frame: ipv4/udp\nrate: 1kpps\nduration: 0s"), 4, 15, "more than zero"),
        (stream("frame: ipv4/udp\nrate: 1kpps\nduration: 400d"), 4, 15, "366 days"),
        (stream("frame: ipv4/udp\nrate: 1kpps\ncount: 0"), 4, 12, "above zero"),
        (stream("frame: ipv4/udp\nrate: 1kpps\npause: 1s"), 4, 12, "needs `after`"),
        (stream("frame: ipv4/udp\nrate: 1kpps\nafter: y\nstart: 1s"), 4, 12, "give `pause`"),
        (stream("name: one\nframe: ipv4/udp\nrate: 1kpps\nafter: onee"), 5, 12, "did you mean `one`?"),
        (stream("name: one\nframe: ipv4/udp\nrate: 1kpps\nafter: one"), 5, 12, "never ends"),
        (stream("name: one\nframe: ipv4/udp\nrate: 1kpps\ncount: 5\nafter: one"), 6, 12, "in a circle"),
        (stream("frame: ipv4/udp\nburst: {frames: 10, gap: 1ms, every: 9ms}"), 3, 21, "longer `every`"),
        (stream("frame: ipv4/udp\nburst: {frames: 10, gap: 1ms, rate: 1kpps, every: 1s}"), 3, 30, "keep one"),
        (stream("frame: ipv4/udp\nburst: {frames: 10, gap: 1ms}"), 3, 25, "`every` is missing"),
        (
            stream("frame: ipv4/udp\nburst: {frames: 1, rate: 1mbps, every: 1s}\nsize: imix"),
            3,
            30,
            "where sizes vary",
        ),
        (stream("frame: ipv4/udp\nburst: 5"), 3, 12, "expected keys with values"),
        (
            stream("frame: ipv4/udp\nrate: 1kpps\nshape: sin"),
            4,
            12,
            "`sin` is not a shape of load: write poisson",
        ),
        (stream("frame: ipv4/udp\nshape: poisson"), 3, 12, "`shape` needs a `rate`"),
        (stream("frame: ipv4/udp\nweight: 2\nshape: poisson"), 4, 12, "`weight` says when frames leave"),
        (stream("frame: ipv4/udp\nrate: top\nshape: poisson"), 3, 11, "is a number"),
        (stream("frame: ipv4/udp\nrate: 1mbps\nshape: poisson\nsize: imix"), 3, 11, "where sizes vary"),
        (
            stream("frame: ipv4/udp\nramp: {from: 1kpps, to: 2kpps, over: 1s, then: stopp}"),
            3,
            52,
            "did you mean `stop`?",
        ),
        (stream("frame: ipv4/udp\nramp: {from: top, to: 2kpps, over: 1s}"), 3, 18, "is a number"),
        (
            stream("frame: ipv4/udp\nramp: {from: 1kpps, to: 2kpps, over: 1s, steps: 1}"),
            3,
            53,
            "2 to 10000 steps",
        ),
        (stream("frame: ipv4/udp\nrate: 1kpps\nresolve: nobody"), 4, 14, "write true"),
        (
            stream("frame: ipv4(dst=10.0.0.0/8)/udp\nrate: 1kpps\nresolve: true"),
            4,
            14,
            "the destination varies",
        ),
        (stream("frame: ether/raw(\"x\")\nrate: 1kpps\nresolve: true"), 4, 14, "not IP"),
        (stream("frame: ipv4(dst=255.255.255.255)/udp\nrate: 1kpps\nresolve: true"), 4, 14, "nobody answers"),
        (stream("frame: vlan/ipv4/udp\nrate: 1kpps\nresolve: true"), 4, 14, "behind VLAN tags"),
        (stream("frame: ipv4/udp\nrate: top\nstart: 1s"), 3, 11, "remove its start"),
        ("streams: 5".to_owned(), 1, 10, "expected a list"),
        ("streams: []".to_owned(), 1, 1, "nothing to send"),
        ("- a".to_owned(), 1, 1, "expected keys with values"),
        (String::new(), 1, 1, "the file is empty"),
        ("streams: [".to_owned(), 1, 10, "unclosed"),
        ("streams:\n\t- frame: x\n".to_owned(), 2, 2, "tabs"),
        ("seed: -1\nstreams: []".to_owned(), 1, 7, "whole number"),
        ("name: \"\"\nstreams: []".to_owned(), 1, 7, "a name has"),
        ("streams:\n  - frame: *x".to_owned(), 2, 12, "needs quotes"),
        ("defaults: {<<: {size: 64}}\nstreams: []".to_owned(), 1, 12, "under `defaults`"),
        (stream("frame: ipv4\nrate: 1kpps") + "---\na: 1\n", 5, 1, "a second document"),
    ] {
        let error = refused(&text);
        assert!(error.message.contains(part), "{text}\n{error}");
        assert_eq!((error.line, error.column), (line, column), "{text}\n{error}");
        let printed = error.to_string();
        assert!(
            printed.starts_with(&format!("x.yaml:{line}:{column}: ")) && printed.ends_with('^'),
            "{printed}"
        );
    }
}

#[test]
fn streams_that_do_not_go_together_are_refused() {
    let two = |first: &str, second: &str, top: &str| {
        refused(&format!(
            "{top}streams:\n  - {{frame: ipv4/udp, {first}}}\n  - {{frame: ipv4/udp, {second}}}\n"
        ))
        .message
    };
    let says = |message: String, part: &str| assert!(message.contains(part), "{message}");
    says(two("rate: top", "rate: 1kpps", ""), "no room for others");
    says(two("weight: 1", "rate: 1kpps", "rate: top\n"), "top speed leaves no room");
    says(two("name: a", "name: a", "rate: 1kpps\n"), "names must differ");
    says(two("name: stream 2", "weight: 1", "rate: 1kpps\n"), "names must differ");
    says(
        two("name: a, count: 1, rate: 1kpps, after: b", "name: b, count: 1, rate: 1kpps, after: a", ""),
        "in a circle",
    );
    says(two("name: a", "count: 1, after: a, rate: 1kpps", "rate: 1kpps\n"), "never ends");
    says(two("weight: 65536", "weight: 65537", "rate: 1kpps\n"), "give smaller numbers");
    says(
        two("name: a, rate: 1pps, count: 18500000000", "after: a, rate: 1kpps, count: 1", ""),
        "more than 500 years",
    );
}

#[test]
fn the_command_line_replaces_only_what_streams_leave_open() {
    let scenario = |text: &str| parse(text, "x.yaml").expect("a scenario");
    let own = scenario("streams: [{frame: ipv4/udp, rate: 1kpps, size: 64}]");
    let open = scenario("streams: [{frame: ipv4/udp}]");
    let faster = Context { rate: "2kpps".parse().ok(), ..Context::default() };
    let larger = Context { size: "128".parse().ok(), rate: faster.rate, ..Context::default() };
    let refused = own.compile(&faster).unwrap_err();
    assert!(refused.message.contains("each stream has its own") && refused.column == 35, "{refused}");
    let sized = Context { rate: None, ..larger.clone() };
    assert!(own.compile(&sized).unwrap_err().message.contains("each states its own"));
    let compiled = open.compile(&larger).expect("both were open");
    assert_eq!(compiled.program.longest(), 124);
    assert_eq!(compiled.rate, faster.rate);
    assert!(compiled.endless);
}

#[test]
fn signatures_go_where_the_file_and_the_run_want_them() {
    let text = "rate: 1kpps\nstreams:\n  - {frame: ipv4/udp, size: 64}\n  - {frame: ipv4/udp, size: 64, sign: false}\n  - {name: small, frame: ipv4/udp, size: 46}\n  - {frame: ipv4/udp, size: 64, sign: true}\n";
    let scenario = parse(text, "x.yaml").expect("a scenario");
    let signed = |sign| {
        let compiled = scenario.compile(&Context { sign, ..Context::default() }).expect("a program");
        let numbers: Vec<Option<u32>> = compiled.program.streams.iter().map(|s| s.signature).collect();
        (numbers, compiled.unsigned)
    };
    assert_eq!(signed(Sign::No), (vec![None, None, None, Some(3)], vec![]));
    assert_eq!(signed(Sign::WhereRoom), (vec![Some(0), None, None, Some(3)], vec!["small".to_owned()]));
    let all = scenario.compile(&Context { sign: Sign::All, ..Context::default() }).unwrap_err();
    assert!(all.message.contains("signature") && all.line == 5, "{all}");
}

/// Reads and compiles, in bounded time.
fn bounded(text: &str) -> Result<(), String> {
    let begun = Instant::now();
    let outcome = parse(text, "x.yaml").and_then(|scenario| scenario.compile(&context()));
    assert!(begun.elapsed() < Duration::from_secs(300), "{:?} for {} bytes", begun.elapsed(), text.len());
    outcome.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn what_is_too_much_is_refused_in_bounded_time() {
    let says = |text: &str, part: &str| {
        let error = bounded(text).expect_err("too much");
        assert!(error.contains(part), "{error}");
        assert!(error.len() < 3000, "{} bytes of error", error.len());
    };
    says(&"#".repeat((1 << 20) + 1), "1048576 are the most");
    let many = |n: usize, stream: &str| {
        format!("rate: 1kpps\nstreams:\n{}", format!("  - {{{stream}}}\n").repeat(n))
    };
    assert_eq!(bounded(&many(MAX_STREAMS, "frame: ipv4/udp")), Ok(()));
    says(&many(MAX_STREAMS + 1, "frame: ipv4/udp"), "more than 1024 streams");
    says(&many(MAX_STREAMS, "frame: ipv4/udp, size: 64..65000"), "more than 1048576 entries");
    says(&many(MAX_STREAMS, "frame: ipv4/udp, size: random(64..65000)"), "different sizes together");
    says(&many(1, &format!("frame: ipv4/udp, size: [{}]", "64,".repeat(5000))), "at most 4096 sizes");
    says(&many(1, &format!("frame: 'raw(\"{}\")'", "x".repeat(70_000))), "65536 are the most");
    says(&format!("streams: {}1{}", "[".repeat(5000), "]".repeat(5000)), "x.yaml:1:");
    // A billion laughs: in a key that takes them, and in one that does not.
    let mut laughs = "streams: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut deep = "streams:\n  - &s0 {frame: ipv4/udp, rate: 1kpps}\n".to_owned();
    for (name, next) in ('a'..'k').zip('b'..'l') {
        let _ = writeln!(laughs, "{next}: &{next} [{}]", format!("*{name}, ").repeat(9));
    }
    assert!(bounded(&laughs).is_err());
    for _ in 0..5000 {
        deep += "  - *s0\n";
    }
    says(&deep, "x.yaml:");
    // A chain as long as can be.
    let mut chain = "streams:\n".to_owned();
    for n in 0..MAX_STREAMS {
        let after = if n + 1 < MAX_STREAMS { format!(", after: s{}", n + 1) } else { String::new() };
        let _ = writeln!(chain, "  - {{name: s{n}, frame: ipv4/udp, rate: 1kpps, count: 10{after}}}");
    }
    assert_eq!(bounded(&chain), Ok(()));
    // Counting frames of random sizes is bounded, too.
    says(
        &stream("frame: ipv4/udp\nsize: random(64..1518)\nrate: 100gbps\nduration: 24h"),
        "takes too long to count",
    );
}

proptest! {
    #[test]
    fn no_text_upsets_the_parser(text in "\\PC{0,200}") {
        let _ = bounded(&text);
    }

    #[test]
    fn no_nearly_right_text_upsets_the_parser(text in "(streams|frame|rate|size|burst|ramp|from|to|over|every|frames|count|after|name|: |\\n|  |- |[{]|[}]|, |ipv4/udp|1kpps|64|imix|10ms|&a |\\*a|<<|\"|'|\\[|\\]){0,60}") {
        let _ = bounded(&text);
    }

    #[test]
    fn no_mutation_of_a_right_file_upsets_the_parser(at in 0usize..400, cut in 0usize..30, insert in "\\PC{0,5}") {
        let right = "name: x\nrate: 10%\nstreams:\n  - {name: a, frame: ipv4(src=10.0.0.0/8)/udp, size: {64: 7, 1518: 1}, weight: 3}\n  - name: b\n    frame: ipv4/udp\n    burst: {frames: 5, gap: 1us, every: 1ms, count: 10}\n    start: 5ms\n  - {name: c, frame: ipv6/udp, after: b, pause: 1s, ramp: {from: 1kpps, to: 1mpps, over: 1s, then: stop}}\n";
        prop_assert!(bounded(right).is_ok());
        let chars: Vec<char> = right.chars().collect();
        let at = at.min(chars.len());
        let text: String = chars[..at].iter().copied().chain(insert.chars()).chain(chars[(at + cut).min(chars.len())..].iter().copied()).collect();
        let _ = bounded(&text);
    }
}
