//! The boundary between host and guest, version 1: names, layouts, limits. Pure functions over bytes, without WebAssembly, so
//! that they can be fuzzed by themselves.
//!
//! A guest is a core WebAssembly module. All integers are little endian; an address and a length in the guest's memory travel
//! as one `i64`, `address << 32 | length`. Texts are UTF-8 JSON. A guest exports:
//!
//! ```text
//!   memory
//!   netdyno_abi() -> i32                                1
//!   netdyno_alloc(len: i32) -> i32                      where the host may write `len` bytes; 0: there is no room
//!   netdyno_describe() -> i64                           Description
//!   netdyno_compile(ptr: i32, len: i32) -> i64          world `compile`: Input -> {"scenario": ...} or {"fault": ...}
//!   netdyno_open(ptr: i32, len: i32) -> i64             world `frames`:  Input -> {"frames": ...} or {"fault": ...}
//!   netdyno_frames(first: i64, step: i64, count: i32) -> i64     a batch of frames
//!   _initialize()                                       called once before anything else, if it is there
//! ```
//!
//! **A batch** holds the frames `first`, `first + step`, ...: `count` of them, exactly, and at most [`MOST_IN_A_BATCH`]. The
//! host never asks for frames beyond the `count` that the guest stated when it was opened. It begins with the lengths of all
//! frames, `count` times a `u16`, and zeros up to a multiple of 4 bytes. The frames follow; each begins at the next multiple
//! of 4 bytes from the batch's beginning. A frame is [`SHORTEST_FRAME`] to `longest` bytes, without FCS. What a guest returned stays as it is
//! until it is called again, so a guest may keep its batch in one place and change only what differs from the one before.
//!
//! Frame *n* is a function of *n* and of the input alone: several cores ask instances of their own for disjoint frames.
//!
//! **Imports.** A guest needs none. Those of `wasi_snapshot_preview1` that compilers emit are answered without any access to
//! the host: clocks go on by a microsecond with each look, random bytes follow from the seed, there are no files, arguments or variables of the
//! environment, and what is written to the descriptors 1 and 2 is shown with an error. Any other import is refused by name.

use crate::Invalid;
use plugin_sdk::Fault;
use serde_json::Value;
use std::ops::Range;

/// The version of this boundary.
pub const VERSION: i32 = 1;
/// Most frames of one call.
pub const MOST_IN_A_BATCH: usize = 64;
/// Largest text or batch that a guest may return.
pub const MOST_OUTPUT: usize = 16 << 20;
/// Largest module: of Go's, which bring a runtime, a few times the size.
pub const MOST_MODULE: u64 = 16 << 20;
/// Largest description, the schema of the options included.
pub const MOST_DESCRIPTION: usize = 1 << 20;
/// Longest frame that a guest may announce, without FCS: a jumbo frame's buffer.
pub const LONGEST_FRAME: u32 = 9_216;
/// Shortest frame that has both Ethernet addresses and a type.
pub const SHORTEST_FRAME: u32 = 14;

/// Takes an address and a length apart.
pub fn unpack(packed: i64) -> (u32, u32) {
    let packed = packed as u64;
    ((packed >> 32) as u32, packed as u32)
}

/// What a guest returned: the part of its memory that `packed` names.
///
/// # Errors
/// It lies outside of the guest's memory, or is longer than `most`.
pub fn returned(memory: &[u8], packed: i64, most: usize) -> Result<&[u8], Invalid> {
    let (at, length) = unpack(packed);
    let (at, length) = (at as usize, length as usize);
    if length > most {
        return Err(Invalid::TooMuch { bytes: length, most });
    }
    let end = at.saturating_add(length);
    memory.get(at..end).ok_or(Invalid::Outside { at, end, memory: memory.len() })
}

/// The same as text.
///
/// # Errors
/// It is no text in UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str, Invalid> {
    std::str::from_utf8(bytes).map_err(|bad| Invalid::NotText { at: bad.valid_up_to() })
}

/// The same as JSON.
///
/// # Errors
/// It is none, and where.
pub fn json(bytes: &[u8]) -> Result<Value, Invalid> {
    serde_json::from_str(text(bytes)?).map_err(|bad| Invalid::NotJson(bad.to_string()))
}

/// What a guest of the world `compile` answered: a scenario, as text.
///
/// # Errors
/// It is neither a scenario nor a fault.
pub fn compiled(answer: Value) -> Result<Result<String, Fault>, Invalid> {
    match member(answer, "scenario")? {
        Ok(scenario) if scenario.is_object() => {
            // Without spaces: a scenario's size is bounded, and indentation would be most of it.
            Ok(Ok(serde_json::to_string(&scenario).map_err(|bad| Invalid::NotJson(bad.to_string()))?))
        }
        Ok(_) => Err(Invalid::NotAsAsked("`scenario` is no object".to_owned())),
        Err(fault) => Ok(Err(fault)),
    }
}

/// What a guest of the world `frames` announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announced {
    /// Length of the longest frame, without FCS.
    pub longest: u32,
    /// How many frames there are; `None`: without end.
    #[serde(default)]
    pub count: Option<u64>,
}

/// What a guest of the world `frames` answered when it was opened.
///
/// # Errors
/// It is neither an announcement nor a fault, or announces what cannot be.
pub fn opened(answer: Value) -> Result<Result<Announced, Fault>, Invalid> {
    let announced = match member(answer, "frames")? {
        Ok(frames) => frames,
        Err(fault) => return Ok(Err(fault)),
    };
    let announced: Announced =
        serde_json::from_value(announced).map_err(|bad| Invalid::NotAsAsked(format!("`frames`: {bad}")))?;
    if !(SHORTEST_FRAME..=LONGEST_FRAME).contains(&announced.longest) {
        return Err(Invalid::NotAsAsked(format!(
            "`frames.longest` is {}: {SHORTEST_FRAME} to {LONGEST_FRAME} bytes are taken",
            announced.longest
        )));
    }
    if announced.count == Some(0) {
        return Err(Invalid::NotAsAsked("`frames.count` is 0: there is nothing to send".to_owned()));
    }
    Ok(Ok(announced))
}

/// The member that was asked for, or the fault in its place.
fn member(answer: Value, name: &str) -> Result<Result<Value, Fault>, Invalid> {
    let Value::Object(mut answer) = answer else {
        return Err(Invalid::NotAsAsked(format!("it is no object with `{name}` or `fault`")));
    };
    match (answer.remove(name), answer.remove("fault")) {
        (Some(found), None) => Ok(Ok(found)),
        (None, Some(fault)) => serde_json::from_value(fault)
            .map(Err)
            .map_err(|bad| Invalid::NotAsAsked(format!("`fault`: {bad}"))),
        _ => Err(Invalid::NotAsAsked(format!("there has to be one of `{name}` and `fault`"))),
    }
}

/// What a guest is opened or asked to compile with.
pub fn input(options: &serde_json::Map<String, Value>, seed: Option<u64>) -> String {
    serde_json::json!({ "options": options, "run": { "seed": seed, "abi": VERSION } }).to_string()
}

/// Walks a batch of `count` frames, none longer than `longest`, and hands the place of each in it to `take`.
///
/// # Errors
/// What does not hold of it. The frames before were taken.
pub fn batch(
    bytes: &[u8],
    count: usize,
    longest: usize,
    mut take: impl FnMut(usize, Range<usize>),
) -> Result<(), Invalid> {
    let table = (count * 2).next_multiple_of(4);
    let short = |need: usize| Invalid::ShortBatch { bytes: bytes.len(), need };
    let lengths = bytes.get(..count * 2).ok_or_else(|| short(table))?;
    let mut at = table;
    for (number, pair) in lengths.chunks_exact(2).enumerate() {
        let length = pair.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
        if length < SHORTEST_FRAME as usize || length > longest {
            return Err(Invalid::FrameLength { number, length, longest });
        }
        if at + length > bytes.len() {
            return Err(short(at + length));
        }
        take(number, at..at + length);
        at = (at + length).next_multiple_of(4);
    }
    Ok(())
}
