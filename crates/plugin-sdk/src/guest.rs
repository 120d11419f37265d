//! What a module exports, in safe Rust; [`crate::export_compile`] and [`crate::export_frames`] give it its names.
//!
//! The host reads and writes the guest's memory between calls. So both buffers are kept here, and the host is told where they
//! are. On other machines than WebAssembly's (tests) addresses are cut to 32 bits, and serve only to tell that the host
//! speaks of the buffer that it was given.

use crate::description::Fault;
use crate::plugin::{Compile, Frame, Frames, compile_json, describe_compile, describe_frames, open_json};
use serde_json::json;
use std::cell::RefCell;

/// Most frames of one call.
const MOST: usize = 1 << 16;

thread_local! {
    /// What the host writes.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What the guest returned last.
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Where the host may write `len` bytes; 0 if there is no room.
#[must_use]
pub fn alloc(len: i32) -> i32 {
    let Ok(len) = usize::try_from(len) else { return 0 };
    INPUT.with_borrow_mut(|input| {
        input.clear();
        if input.try_reserve(len.max(1)).is_err() {
            return 0;
        }
        input.resize(len, 0);
        // Told as a mutable address: who has it writes there.
        input.as_mut_ptr() as usize as u32 as i32
    })
}

/// The text that the host wrote.
fn written(at: i32, len: i32) -> Result<String, Fault> {
    INPUT.with_borrow_mut(|input| {
        let same = input.as_mut_ptr() as usize as u32 as i32 == at;
        let bytes = usize::try_from(len).ok().and_then(|len| input.get(..len)).filter(|_| same);
        let bytes = bytes.ok_or_else(|| Fault::new("the input is not where netdyno_alloc said"))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Fault::new("the input is no UTF-8"))
    })
}

/// Keeps what is returned, and says where it is.
fn returned(bytes: Vec<u8>) -> i64 {
    OUTPUT.with_borrow_mut(|output| {
        *output = bytes;
        place(output)
    })
}

fn place(output: &[u8]) -> i64 {
    let at = u64::from(output.as_ptr() as usize as u32);
    (at << 32 | output.len() as u64) as i64
}

/// `netdyno_describe` of a compile-world plugin.
#[must_use]
pub fn describe_compiling<P: Compile>() -> i64 {
    returned(serde_json::to_vec(&describe_compile::<P>()).unwrap_or_default())
}

/// `netdyno_describe` of a frames-world plugin.
#[must_use]
pub fn describe_framing<P: Frames>() -> i64 {
    returned(serde_json::to_vec(&describe_frames::<P>()).unwrap_or_default())
}

/// `netdyno_compile`.
#[must_use]
pub fn compile<P: Compile>(at: i32, len: i32) -> i64 {
    let answer = match written(at, len).and_then(|input| compile_json::<P>(&input)) {
        Ok(scenario) => format!("{{\"scenario\":{scenario}}}"),
        Err(fault) => json!({ "fault": fault }).to_string(),
    };
    returned(answer.into_bytes())
}

/// `netdyno_open`: the plugin, for the calls that follow.
pub fn open<P: Frames>(opened: &mut Option<P>, at: i32, len: i32) -> i64 {
    let answer = match written(at, len).and_then(|input| open_json::<P>(&input)) {
        Ok(plugin) => {
            let frames = json!({ "frames": { "longest": plugin.longest(), "count": plugin.count() } });
            *opened = Some(plugin);
            frames
        }
        Err(fault) => json!({ "fault": fault }),
    };
    returned(answer.to_string().into_bytes())
}

/// `netdyno_frames`: a batch. Lengths first, 16 bits each, then the frames; both at multiples of 4 bytes.
pub fn frames<P: Frames>(opened: &Option<P>, first: i64, step: i64, count: i32) -> i64 {
    let Some(plugin) = opened else { return 0 };
    let count = usize::try_from(count).unwrap_or(0).min(MOST);
    let (first, step) = (first as u64, step as u64);
    OUTPUT.with_borrow_mut(|output| {
        output.clear();
        output.resize((2 * count).next_multiple_of(4), 0);
        for i in 0..count {
            let n = first.wrapping_add(step.wrapping_mul(i as u64));
            let mut frame = Frame::at_end_of(output);
            plugin.frame(n, &mut frame);
            let length = frame.len().min(usize::from(u16::MAX)) as u16;
            if let Some(place) = output.get_mut(2 * i..2 * i + 2) {
                place.copy_from_slice(&length.to_le_bytes());
            }
            let end = output.len().next_multiple_of(4);
            output.resize(end, 0);
        }
        place(output)
    })
}

/// What modules of both worlds export.
#[doc(hidden)]
#[macro_export]
macro_rules! export_common {
    () => {
        #[unsafe(no_mangle)]
        extern "C" fn netdyno_abi() -> i32 {
            $crate::ABI as i32
        }

        #[unsafe(no_mangle)]
        extern "C" fn netdyno_alloc(len: i32) -> i32 {
            $crate::guest::alloc(len)
        }
    };
}

/// Exports a compile-world plugin from a WebAssembly module: the functions of the interface, for the type given.
///
/// ```ignore
/// plugin_sdk::export_compile!(Hello);
/// ```
#[macro_export]
macro_rules! export_compile {
    ($plugin:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "an exported name is taken as unique")]
        mod netdyno_exports {
            use super::*;

            $crate::export_common!();

            #[unsafe(no_mangle)]
            extern "C" fn netdyno_describe() -> i64 {
                $crate::guest::describe_compiling::<$plugin>()
            }

            #[unsafe(no_mangle)]
            extern "C" fn netdyno_compile(at: i32, len: i32) -> i64 {
                $crate::guest::compile::<$plugin>(at, len)
            }
        }
    };
}

/// Exports a frames-world plugin from a WebAssembly module: the functions of the interface, for the type given.
///
/// ```ignore
/// plugin_sdk::export_frames!(Counter);
/// ```
#[macro_export]
macro_rules! export_frames {
    ($plugin:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "an exported name is taken as unique")]
        mod netdyno_exports {
            use super::*;
            use std::cell::RefCell;

            thread_local! {
                static PLUGIN: RefCell<Option<$plugin>> = const { RefCell::new(None) };
            }

            $crate::export_common!();

            #[unsafe(no_mangle)]
            extern "C" fn netdyno_describe() -> i64 {
                $crate::guest::describe_framing::<$plugin>()
            }

            #[unsafe(no_mangle)]
            extern "C" fn netdyno_open(at: i32, len: i32) -> i64 {
                PLUGIN.with_borrow_mut(|plugin| $crate::guest::open(plugin, at, len))
            }

            #[unsafe(no_mangle)]
            extern "C" fn netdyno_frames(first: i64, step: i64, count: i32) -> i64 {
                PLUGIN.with_borrow(|plugin| $crate::guest::frames(plugin, first, step, count))
            }
        }
    };
}
