//! Modules run: what they may take, how they are called, what becomes of those that misbehave.
//!
//! Each guest has memory of its own and no way out of it. Time is bounded by epochs: a thread counts them up while there are
//! guests, and compiled code looks at the count at loops and calls (2 % of a batch's cost).

use crate::abi;
use crate::cache;
use crate::error::{Invalid, PluginError};
use crate::wasi::{self, Exit};
use plugin_sdk::World;
use std::fmt;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wasmtime::{
    Config, Engine, ExternType, Instance, Linker, Memory, Module, OptLevel, ResourceLimiter, Store, Trap,
    TypedFunc, ValType, WasmParams, WasmResults,
};

/// What a guest may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: usize,
    /// Time to describe itself, to compile, to be opened.
    pub call: Duration,
    /// Time for a batch of frames.
    pub batch: Duration,
    /// Time to compile the module.
    pub compile: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory: 256 << 20,
            call: Duration::from_secs(10),
            batch: Duration::from_secs(1),
            compile: Duration::from_secs(60),
        }
    }
}

/// From one epoch to the next.
const EPOCH: Duration = Duration::from_millis(10);
/// Stack of compiled code; the thread's own has to be larger.
const STACK: usize = 512 << 10;
/// Functions of a module, empty ones too: each costs its compiler some 0.1 ms and 5 KB. What compilers make of a plugin has some
/// thousand (of Go, whose runtime is in it, the most).
const MOST_FUNCTIONS: u32 = 50_000;
/// Entries of a guest's tables.
const MOST_TABLE: usize = 1 << 20;

/// What compiles and runs all modules of this process.
fn engine() -> Result<&'static Engine, String> {
    static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        let mut config = Config::new();
        config
            .epoch_interruption(true)
            .max_wasm_stack(STACK)
            .cranelift_opt_level(OptLevel::Speed)
            // The same frames on every processor.
            .cranelift_nan_canonicalization(true)
            .relaxed_simd_deterministic(true)
            .wasm_multi_memory(false)
            .wasm_memory64(false)
            .generate_address_map(false);
        Engine::new(&config).map_err(|why| why.to_string())
    });
    engine.as_ref().map_err(Clone::clone)
}

/// How many guests there are: while there are any, epochs are counted.
static GUESTS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Counts a guest as long as it is there.
#[derive(Debug)]
struct Counted;

impl Counted {
    /// Fails where there is no thread to be had that counts epochs: without it no guest would be ended that does not end by itself.
    fn new(engine: &'static Engine) -> std::io::Result<Counted> {
        static TICKS: Mutex<bool> = Mutex::new(false);
        let mut ticks = TICKS.lock().unwrap_or_else(PoisonError::into_inner);
        if !*ticks {
            std::thread::Builder::new().name("epochs".to_owned()).spawn(move || tick(engine))?;
            *ticks = true;
        }
        *GUESTS.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        GUESTS.1.notify_one();
        Ok(Counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *GUESTS.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

fn tick(engine: &Engine) {
    loop {
        let guests = GUESTS.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(GUESTS.1.wait_while(guests, |guests| *guests == 0).unwrap_or_else(PoisonError::into_inner));
        std::thread::sleep(EPOCH);
        engine.increment_epoch();
    }
}

/// What a guest has on this side: nothing of the host's.
pub struct Host {
    most_memory: usize,
    /// It wanted more than that.
    pub refused_memory: bool,
    /// For the answers to what compilers' runtimes ask.
    pub wasi: wasi::State,
}

impl ResourceLimiter for Host {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.most_memory;
        self.refused_memory |= !allowed;
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MOST_TABLE)
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        16
    }
}

/// A module, compiled.
#[derive(Clone)]
pub struct Compiled {
    name: String,
    module: Module,
    limits: Limits,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Compiled {
    /// Compiles `bytes`, or takes what was compiled of them before. `name`: for messages.
    pub fn new(name: &str, bytes: &[u8], sha256: &[u8; 32], limits: Limits) -> Result<Compiled, PluginError> {
        let not = |what: String| PluginError::NotAModule { name: name.to_owned(), what };
        if bytes.get(..4) != Some(b"\0asm") {
            return Err(not("it is no WebAssembly module".to_owned()));
        }
        if let Some(functions) = functions(bytes).filter(|functions| *functions > MOST_FUNCTIONS) {
            return Err(not(format!(
                "the module has {functions} functions, and {MOST_FUNCTIONS} are taken at most"
            )));
        }
        let engine = engine().map_err(|why| not(format!("WebAssembly cannot be run here: {why}")))?;
        let module = match cache::get(engine, sha256) {
            Some(module) => module,
            None => {
                let module = translated(engine, bytes, limits.compile).map_err(not)?;
                cache::put(engine, sha256, &module);
                module
            }
        };
        let compiled = Compiled { name: name.to_owned(), module, limits };
        compiled.check_imports()?;
        compiled.check_exports(&COMMON)?;
        Ok(compiled)
    }

    /// The same under the name that it gives itself.
    pub fn named(self, name: &str) -> Compiled {
        Compiled { name: name.to_owned(), ..self }
    }

    fn check_imports(&self) -> Result<(), PluginError> {
        let unknown = self.module.imports().find(|import| !wasi::answers(import.module(), import.name()));
        match unknown {
            None => Ok(()),
            Some(import) => Err(PluginError::Import {
                name: self.name.clone(),
                import: format!("{}.{}", import.module(), import.name()),
            }),
        }
    }

    /// Has it all of these?
    fn check_exports(&self, wanted: &[Export]) -> Result<(), PluginError> {
        let mut missing = Vec::new();
        if !matches!(self.module.get_export("memory"), Some(ExternType::Memory(memory)) if !memory.is_64()) {
            missing.push("no `memory`".to_owned());
        }
        for (name, takes, gives) in wanted {
            let of = |kinds: &mut dyn Iterator<Item = ValType>| {
                kinds.map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ")
            };
            match self.module.get_export(name) {
                Some(ExternType::Func(own)) => {
                    let (params, results) = (of(&mut own.params()), of(&mut own.results()));
                    if params != *takes || results != *gives {
                        missing.push(format!(
                            "`{name}` as ({params}) -> ({results}) instead of ({takes}) -> ({gives})"
                        ));
                    }
                }
                _ => missing.push(format!("no `{name}`")),
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(PluginError::Exports { name: self.name.clone(), missing: missing.join(", ") }),
        }
    }

    /// Has it what plugins of its world have?
    pub fn check_world(&self, world: World) -> Result<(), PluginError> {
        self.check_exports(match world {
            World::Compile => &COMPILE,
            World::Frames => &FRAMES,
        })
    }

    /// A guest of its own memory.
    pub fn guest(&self, seed: Option<u64>) -> Result<Guest, PluginError> {
        let not = |what: String| PluginError::NotAModule { name: self.name.clone(), what };
        let engine = engine().map_err(|why| not(format!("WebAssembly cannot be run here: {why}")))?;
        let host = Host {
            most_memory: self.limits.memory,
            refused_memory: false,
            wasi: wasi::State::new(seed.unwrap_or_default()),
        };
        let mut store = Store::new(engine, host);
        store.limiter(|host| host);
        let counted = Counted::new(engine)
            .map_err(|why| not(format!("there is no thread to watch over the time that it takes: {why}")))?;
        let mut linker = Linker::new(engine);
        wasi::link(&mut linker).map_err(|why| not(why.to_string()))?;
        // A start function runs as the module is made an instance.
        store.set_epoch_deadline(epochs(self.limits.call));
        let instance = linker.instantiate(&mut store, &self.module);
        let instance = match instance {
            Ok(instance) => instance,
            Err(why) => {
                return Err(broke(&self.name, "its start", &mut store, self.limits.call, self.limits, &why));
            }
        };
        let memory = instance.get_memory(&mut store, "memory");
        let memory = memory.ok_or_else(|| not("it has no memory".to_owned()))?;
        let mut guest = Guest {
            name: self.name.clone(),
            store,
            instance,
            memory,
            limits: self.limits,
            _counted: counted,
        };
        if let Ok(initialize) = guest.instance.get_typed_func::<(), ()>(&mut guest.store, "_initialize") {
            guest.call("_initialize", &initialize, (), guest.limits.call)?;
        }
        let abi = guest.function::<(), i32>("netdyno_abi")?;
        let theirs = guest.call("netdyno_abi", &abi, (), guest.limits.call)?;
        match theirs == abi::VERSION {
            true => Ok(guest),
            false => Err(PluginError::Version { name: self.name.clone(), theirs, ours: abi::VERSION }),
        }
    }
}

/// How many functions a module says that it has (section 3), if it can be read so far.
fn functions(bytes: &[u8]) -> Option<u32> {
    /// A number in LEB128, and what is behind it.
    fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
        let length = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)? + 1;
        let (number, rest) = bytes.split_at_checked(length)?;
        let value = number.iter().rev().fold(0u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
        Some((u32::try_from(value).ok()?, rest))
    }
    let mut rest = bytes.get(8..)?;
    loop {
        let (id, behind) = rest.split_first()?;
        let (length, content) = number(behind)?;
        if *id == 3 {
            return number(content).map(|(count, _)| count);
        }
        rest = content.get(length as usize..)?;
    }
}

/// Compiles a module, for so long at most. What takes longer goes on in a thread that nobody waits for, until the process ends: a
/// compiler cannot be interrupted.
fn translated(engine: &'static Engine, bytes: &[u8], most: Duration) -> Result<Module, String> {
    let (done, when) = std::sync::mpsc::channel();
    let bytes = bytes.to_owned();
    let thread = std::thread::Builder::new().name("compiler".to_owned());
    thread
        .spawn(move || {
            done.send(Module::new(engine, bytes).map_err(|why| format!("it cannot be compiled: {why:#}")))
        })
        .map_err(|why| format!("there is no thread to compile it: {why}"))?;
    when.recv_timeout(most).unwrap_or_else(|_| {
        let most = report::units::time(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
        Err(format!("compiling it did not come to an end within {most}"))
    })
}

/// A function that is exported: its name, what it takes and gives.
type Export = (&'static str, &'static str, &'static str);

const COMMON: [Export; 3] =
    [("netdyno_abi", "", "i32"), ("netdyno_alloc", "i32", "i32"), ("netdyno_describe", "", "i64")];
const COMPILE: [Export; 1] = [("netdyno_compile", "i32, i32", "i64")];
const FRAMES: [Export; 2] = [("netdyno_open", "i32, i32", "i64"), ("netdyno_frames", "i64, i64, i32", "i64")];

/// Epochs that a time lasts, at least.
fn epochs(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() / EPOCH.as_nanos()).unwrap_or(u64::MAX / 2).saturating_add(2)
}

/// An instance of a module.
pub struct Guest {
    name: String,
    store: Store<Host>,
    instance: Instance,
    memory: Memory,
    limits: Limits,
    _counted: Counted,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Guest {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may take.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// All of its memory.
    #[inline]
    pub fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// What it exports under that name.
    pub fn function<P: WasmParams, R: WasmResults>(
        &mut self,
        name: &'static str,
    ) -> Result<TypedFunc<P, R>, PluginError> {
        self.instance
            .get_typed_func(&mut self.store, name)
            .map_err(|_| PluginError::Exports { name: self.name.clone(), missing: format!("no `{name}`") })
    }

    /// Calls it, for so long at most.
    #[inline]
    pub fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        call: &'static str,
        function: &TypedFunc<P, R>,
        with: P,
        most: Duration,
    ) -> Result<R, PluginError> {
        self.store.set_epoch_deadline(epochs(most));
        // What an earlier call was refused, and lived with, is not why this one ends.
        self.store.data_mut().refused_memory = false;
        match function.call(&mut self.store, with) {
            Ok(returned) => Ok(returned),
            Err(why) => Err(broke(&self.name, call, &mut self.store, most, self.limits, &why)),
        }
    }

    /// Says what is wrong with what it returned.
    pub fn invalid(&self, call: &'static str, what: Invalid) -> PluginError {
        PluginError::Invalid { name: self.name.clone(), call, what, log: self.store.data().wasi.log() }
    }

    /// The JSON that it returned, of a text of up to `most` bytes.
    fn json(&self, call: &'static str, packed: i64, most: usize) -> Result<serde_json::Value, PluginError> {
        abi::returned(self.memory(), packed, most).and_then(abi::json).map_err(|bad| self.invalid(call, bad))
    }

    /// What it says of itself.
    pub fn describe(&mut self) -> Result<plugin_sdk::Description, PluginError> {
        const CALL: &str = "netdyno_describe";
        let describe = self.function::<(), i64>(CALL)?;
        let packed = self.call(CALL, &describe, (), self.limits.call)?;
        let value = self.json(CALL, packed, abi::MOST_DESCRIPTION)?;
        crate::description::read(value).map_err(|bad| self.invalid(CALL, bad))
    }

    /// Hands `input` to one of its functions that answer it with JSON.
    pub fn ask(&mut self, call: &'static str, input: &str) -> Result<serde_json::Value, PluginError> {
        let length = i32::try_from(input.len()).unwrap_or(i32::MAX);
        let alloc = self.function::<i32, i32>("netdyno_alloc")?;
        let at = self.call("netdyno_alloc", &alloc, length, self.limits.call)? as u32 as usize;
        if at == 0 {
            return Err(PluginError::Broke {
                name: self.name.clone(),
                call: "netdyno_alloc",
                what: format!("it has no room for {} bytes of options", input.len()),
                log: self.store.data().wasi.log(),
            });
        }
        let (end, memory) = (at.saturating_add(input.len()), self.memory().len());
        let Some(into) = self.memory.data_mut(&mut self.store).get_mut(at..end) else {
            return Err(self.invalid("netdyno_alloc", Invalid::Outside { at, end, memory }));
        };
        into.copy_from_slice(input.as_bytes());
        let function = self.function::<(i32, i32), i64>(call)?;
        let packed = self.call(call, &function, (at as u32 as i32, length), self.limits.call)?;
        self.json(call, packed, abi::MOST_OUTPUT)
    }
}

/// What became of a call that did not come to its end.
fn broke(
    name: &str,
    call: &'static str,
    store: &mut Store<Host>,
    most: Duration,
    limits: Limits,
    why: &wasmtime::Error,
) -> PluginError {
    let host = store.data();
    let what = if host.refused_memory {
        format!("it wants more than the {} MiB of memory that a plugin may have", limits.memory >> 20)
    } else if let Some(Exit(status)) = why.downcast_ref() {
        format!("it ended itself, with status {status}")
    } else {
        match why.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => {
                format!("it did not come to an end within {}", report::units::time(most.as_nanos() as u64))
            }
            Some(Trap::StackOverflow) => {
                format!("its calls are nested too deep: its stack of {} KiB is full", STACK >> 10)
            }
            Some(Trap::UnreachableCodeReached) => "it gave up (trap: `unreachable`)".to_owned(),
            Some(trap) => {
                let trap = trap.to_string();
                format!("it trapped: {}", trap.strip_prefix("wasm trap: ").unwrap_or(&trap))
            }
            None => format!("{why:#}"),
        }
    };
    PluginError::Broke { name: name.to_owned(), call, what, log: host.wasi.log() }
}
