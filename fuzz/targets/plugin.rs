//! What a plugin may say, at the boundary to it: descriptions with their schemas, words for options, answers, batches of frames,
//! and where they go. Modules are run by tests; what they return is read here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugin::{abi, judge, options::Schema, read_description};
use serde_json::Map;
use std::net::IpAddr;
use traffic::expr::{Options, compile};
use traffic::{Executor, Slab};
use wire::LinkType;
use wire::layers::{L3, Layers};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    match kind % 5 {
        0 => described(data),
        1 => answered(data),
        2 => batched(data),
        3 => returned(data),
        _ => judged(data),
    }
});

/// A description, and behind a zero byte words that set options.
fn described(data: &[u8]) {
    let (json, words) = data.split_at(data.iter().position(|&byte| byte == 0).unwrap_or(data.len()));
    let description = match abi::json(json).and_then(read_description) {
        Ok(description) => description,
        Err(why) => return assert!(!why.to_string().is_empty()),
    };
    let schema = Schema::new(&description.options).expect("it was checked");
    for told in schema.told() {
        assert!(!told.name.is_empty() || description.options.to_string().contains("\"\""));
    }
    let words: Vec<String> = String::from_utf8_lossy(words).split('\0').skip(1).map(str::to_owned).collect();
    let mut options = Map::new();
    if let Err(fault) = schema.set(&mut options, &words) {
        assert!(!fault.message.is_empty());
    }
    let _ = schema.check(&options);
    for example in &description.example {
        schema.check(&example.set).expect("it was checked");
    }
}

fn answered(data: &[u8]) {
    let Ok(answer) = abi::json(data) else { return };
    if let Ok(Ok(announced)) = abi::opened(answer.clone()) {
        assert!((abi::SHORTEST_FRAME..=abi::LONGEST_FRAME).contains(&announced.longest));
        assert_ne!(announced.count, Some(0));
    }
    if let Ok(Ok(text)) = abi::compiled(answer)
        && let Ok(scenario) = scenario::parse(&text, "fuzz")
    {
        let _ = scenario.wants_rate();
        let _ = scenario.compile(&scenario::Context::default());
    }
}

fn batched(data: &[u8]) {
    let Some((&[count, longest, rest], batch)) = data.split_first_chunk() else { return };
    let (count, longest) =
        (usize::from(count) % (abi::MOST_IN_A_BATCH + 1), usize::from(longest) << 3 | usize::from(rest & 7));
    let mut end = 0;
    let walked = abi::batch(batch, count, longest, |number, range| {
        assert!(number < count && range.end <= batch.len() && range.start >= end && range.start % 4 == 0);
        assert!((1..=longest).contains(&range.len()));
        end = range.end;
    });
    if let Err(why) = walked {
        assert!(!why.to_string().is_empty());
    }
}

fn returned(data: &[u8]) {
    let Some((packed, memory)) = data.split_first_chunk() else { return };
    let packed = i64::from_le_bytes(*packed);
    let (_, length) = abi::unpack(packed);
    if let Ok(part) = abi::returned(memory, packed, abi::MOST_OUTPUT) {
        assert_eq!(part.len(), length as usize);
        let _ = abi::text(part);
    }
}

/// Of a program that passed, each frame goes where it may.
fn judged(data: &[u8]) {
    let _ = judge::frame("fuzz", data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(program) = compile(text, &Options::default()) else { return };
    if judge::program(&program).is_err() {
        return;
    }
    let mut slab = Slab::new(1, program.longest() as usize);
    let mut executor = Executor::new(&program).expect("a program");
    for n in 0..64u64 {
        // Far apart, too.
        executor.seek(n * n * n);
        if executor.render(&mut slab.buffers(), 1, || 0) == 1 {
            let frame = slab.frame(0);
            let layers = Layers::parse(LinkType::ETHERNET, frame);
            let part = |from: usize, to: usize| frame.get(layers.l3_offset + from..layers.l3_offset + to);
            let destination = match layers.l3 {
                L3::V4 => part(16, 20).and_then(|part| <[u8; 4]>::try_from(part).ok()).map(IpAddr::from),
                L3::V6 => part(24, 40).and_then(|part| <[u8; 16]>::try_from(part).ok()).map(IpAddr::from),
                _ => None,
            };
            assert!(destination.is_none_or(judge::is_allowed), "{destination:?}");
        }
    }
}
