//! What compilers' runtimes import of WASI (preview 1), answered without the host: every guest sees the same world each time.
//!
//! Its clocks begin at 1 and go on by a microsecond with each look (runtimes take a clock that stands for a defect); random
//! bytes follow from the seed; what it writes to descriptors 1 and 2 is kept for errors; there is nothing else.

use crate::guest::Host;
use traffic::values::hash;
use wasmtime::{Caller, Extern, Linker};

/// The module that these are imported from.
const MODULE: &str = "wasi_snapshot_preview1";
/// Of what a guest writes so much is kept, the end of it.
const MOST_LOG: usize = 4 << 10;

/// No such descriptor.
const BADF: i32 = 8;
/// The address is none of the guest's.
const FAULT: i32 = 21;
/// There is no such thing here.
const NOSYS: i32 = 52;
/// Written to a place that takes no more is no use: as a pipe nobody reads.
const SUCCESS: i32 = 0;

/// What a guest's runtime may ask for.
#[derive(Debug)]
pub struct State {
    seed: u64,
    drawn: u64,
    looks: u64,
    log: Vec<u8>,
}

impl State {
    /// A world with this seed.
    pub fn new(seed: u64) -> State {
        State { seed: hash(seed, 0x706c_7567_696e), drawn: 0, looks: 0, log: Vec::new() }
    }

    /// What was written, as text on one line.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn write(&mut self, bytes: &[u8]) {
        self.log.extend_from_slice(bytes.get(bytes.len().saturating_sub(MOST_LOG)..).unwrap_or_default());
        let over = self.log.len().saturating_sub(MOST_LOG);
        self.log.drain(..over);
    }

    fn draw(&mut self, into: &mut [u8]) {
        for part in into.chunks_mut(8) {
            let word = hash(self.seed, self.drawn).to_le_bytes();
            self.drawn += 1;
            part.iter_mut().zip(word).for_each(|(byte, own)| *byte = own);
        }
    }
}

/// A guest that ended itself.
#[derive(Debug, thiserror::Error)]
#[error("it ended itself, with status {0}")]
pub struct Exit(pub i32);

/// What is answered with "there is no such thing", by its parameters.
const ABSENT: [(&str, &str); 33] = [
    ("fd_advise", "iIIi"),
    ("fd_allocate", "iII"),
    ("fd_datasync", "i"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_fdstat_set_rights", "iII"),
    ("fd_filestat_get", "ii"),
    ("fd_filestat_set_size", "iI"),
    ("fd_filestat_set_times", "iIIi"),
    ("fd_pread", "iiiIi"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_prestat_get", "ii"),
    ("fd_pwrite", "iiiIi"),
    ("fd_read", "iiii"),
    ("fd_readdir", "iiiIi"),
    ("fd_renumber", "ii"),
    ("fd_seek", "iIii"),
    ("fd_sync", "i"),
    ("fd_tell", "ii"),
    ("path_create_directory", "iii"),
    ("path_filestat_get", "iiiii"),
    ("path_filestat_set_times", "iiiiIIi"),
    ("path_link", "iiiiiii"),
    ("path_open", "iiiiiIIii"),
    ("path_readlink", "iiiiii"),
    ("path_remove_directory", "iii"),
    ("path_rename", "iiiiii"),
    ("path_symlink", "iiiii"),
    ("path_unlink_file", "iii"),
    ("proc_raise", "i"),
    ("sock_accept", "iii"),
    ("sock_recv", "iiiiii"),
    ("sock_send", "iiiii"),
    ("sock_shutdown", "ii"),
];

/// What is answered by more than that.
const ANSWERED: [&str; 13] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_close",
    "fd_fdstat_get",
    "fd_write",
    "poll_oneoff",
    "proc_exit",
    "random_get",
    "sched_yield",
];

/// Is that import answered here?
pub fn answers(module: &str, name: &str) -> bool {
    module == MODULE && (ANSWERED.contains(&name) || ABSENT.iter().any(|(own, _)| *own == name))
}

/// The guest's memory from `at` on, `length` bytes of it, and the world.
fn memory<'c>(
    caller: &'c mut Caller<'_, Host>,
    at: i32,
    length: usize,
) -> Option<(&'c mut [u8], &'c mut State)> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else { return None };
    let (bytes, host) = memory.data_and_store_mut(caller);
    let at = at as u32 as usize;
    Some((bytes.get_mut(at..at.checked_add(length)?)?, &mut host.wasi))
}

/// Writes bytes into the guest's memory.
fn put(caller: &mut Caller<'_, Host>, at: i32, bytes: &[u8]) -> i32 {
    match memory(caller, at, bytes.len()) {
        Some((into, _)) => {
            into.copy_from_slice(bytes);
            SUCCESS
        }
        None => FAULT,
    }
}

/// A 32-bit word of the guest's.
fn word(caller: &mut Caller<'_, Host>, at: i32) -> Option<u32> {
    let (bytes, _) = memory(caller, at, 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Links all of it.
pub fn link(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    use wasmtime::{FuncType, Val, ValType};
    for (name, takes) in ABSENT {
        let kind = |letter: char| if letter == 'I' { ValType::I64 } else { ValType::I32 };
        let own = FuncType::new(linker.engine(), takes.chars().map(kind), [ValType::I32]);
        let errno = if name.starts_with("fd_prestat") || name == "fd_read" { BADF } else { NOSYS };
        linker.func_new(MODULE, name, own, move |_, _, results| {
            results.iter_mut().for_each(|result| *result = Val::I32(errno));
            Ok(())
        })?;
    }
    // Neither arguments nor an environment.
    let none = |mut caller: Caller<'_, Host>, count: i32, bytes: i32| -> i32 {
        put(&mut caller, count, &[0; 4]).max(put(&mut caller, bytes, &[0; 4]))
    };
    linker.func_wrap(MODULE, "args_sizes_get", none)?;
    linker.func_wrap(MODULE, "environ_sizes_get", none)?;
    linker.func_wrap(MODULE, "args_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(MODULE, "environ_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(MODULE, "clock_res_get", |mut caller: Caller<'_, Host>, _: i32, at: i32| -> i32 {
        put(&mut caller, at, &1_000u64.to_le_bytes())
    })?;
    linker.func_wrap(
        MODULE,
        "clock_time_get",
        |mut caller: Caller<'_, Host>, _: i32, _: i64, at: i32| -> i32 {
            let state = &mut caller.data_mut().wasi;
            state.looks += 1;
            let now = state.looks * 1_000;
            put(&mut caller, at, &now.to_le_bytes())
        },
    )?;
    linker.func_wrap(MODULE, "fd_close", |_: i32| SUCCESS)?;
    linker.func_wrap(
        MODULE,
        "fd_fdstat_get",
        |mut caller: Caller<'_, Host>, descriptor: i32, at: i32| -> i32 {
            if !(0..=2).contains(&descriptor) {
                return BADF;
            }
            // A character device, without flags and rights.
            let mut stat = [0; 24];
            stat[0] = 2;
            put(&mut caller, at, &stat)
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_write",
        |mut caller: Caller<'_, Host>, descriptor: i32, vectors: i32, count: i32, written: i32| -> i32 {
            if !(1..=2).contains(&descriptor) {
                return BADF;
            }
            let mut total = 0u32;
            for number in 0..count.clamp(0, 1_024) {
                let at = vectors.wrapping_add(number.wrapping_mul(8));
                let (Some(from), Some(length)) =
                    (word(&mut caller, at), word(&mut caller, at.wrapping_add(4)))
                else {
                    return FAULT;
                };
                let Some((bytes, state)) = memory(&mut caller, from as i32, length as usize) else {
                    return FAULT;
                };
                state.write(bytes);
                total = total.saturating_add(length);
            }
            put(&mut caller, written, &total.to_le_bytes())
        },
    )?;
    // Whoever waits has waited: every subscription has come.
    linker.func_wrap(
        MODULE,
        "poll_oneoff",
        |mut caller: Caller<'_, Host>, subscriptions: i32, events: i32, count: i32, came: i32| -> i32 {
            for number in 0..count.clamp(0, 1_024) {
                let from = subscriptions.wrapping_add(number.wrapping_mul(48));
                let mut event = [0; 32];
                let Some((own, _)) = memory(&mut caller, from, 9) else { return FAULT };
                let (data, kind) = own.split_at(8);
                event[..8].copy_from_slice(data);
                event[10] = kind.first().copied().unwrap_or_default();
                if put(&mut caller, events.wrapping_add(number.wrapping_mul(32)), &event) != SUCCESS {
                    return FAULT;
                }
            }
            put(&mut caller, came, &count.clamp(0, 1_024).to_le_bytes())
        },
    )?;
    linker
        .func_wrap(MODULE, "proc_exit", |status: i32| -> wasmtime::Result<()> { Err(Exit(status).into()) })?;
    linker.func_wrap(MODULE, "random_get", |mut caller: Caller<'_, Host>, at: i32, length: i32| -> i32 {
        match memory(&mut caller, at, length as u32 as usize) {
            Some((into, state)) => {
                state.draw(into);
                SUCCESS
            }
            None => FAULT,
        }
    })?;
    linker.func_wrap(MODULE, "sched_yield", || SUCCESS)?;
    Ok(())
}
