//! From a packet program to an eBPF program that makes its frames.
//!
//! One run of the eBPF program makes one live frame:
//!
//! ```text
//!   gate    may a frame leave now? (pace.rs)    no: XDP_DROP, which only recycles the page
//!   lane    which lane is due first, and which stream is next in its order
//!   lay     make the page hold the stream's image, as far as it may not (stream.rs; captures: captured.rs)
//!   fields  write what varies, and take down what it adds to the checksums
//!   crc     correct SCTP's CRC for the bytes that vary (crc.rs)
//!   sums    fold the checksums and write them
//!   lane    when is the lane's next frame due
//!   send    XDP_TX, or redirected to the interface
//! ```
//!
//! Bytecode is made for each program instead of one C program that is told by constants what to do: every offset,
//! width, step and checksum base becomes an immediate operand, nothing is looked up or decided for a frame that the
//! program decided before, and what a program does not use is not there.

mod captured;
mod crc;
mod lanes;
mod pace;
mod stream;
mod values;

use crate::asm::{Asm, FP, If, Label, Op, R0, R1, R2, R3, R5, R6, R7, Reg, Size, helper};
use crate::layout;
use crate::{XdpError, compile::stream::Plan};
use bpf::{Insn, Memory};
use engine::Pacing;
use engine::clock::Clock;
use rustix::io::Errno;
use std::collections::BTreeMap;
use traffic::{Program, Schedule, Templates};

/// How frames leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Back out of the interface they seem to have come from (XDP_TX): the cheaper, where it is possible.
    Back,
    /// Redirected to the interface of this number.
    Redirect(u32),
}

/// What becomes of a page between two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// It comes back as it was left: a NIC only reads it, and our own meter too. Then only what varies is written.
    Kept,
    /// Somebody may have written into it, or moved its ends (a veth peer's reflector, its stack, any XDP program there): every
    /// byte is written again, and the frame's ends are told to the kernel again.
    ///
    /// The kernel looks at a recycled page's beginning and not at its end (`frame_was_changed()`, net/bpf/test_run.c): a far end
    /// that calls bpf_xdp_adjust_tail and sends the frame back leaves its length there, and the next frame would leave with it. The
    /// kernel writes length, headroom and metadata anew only for a program that moves an end itself, so pages have one byte more
    /// than the longest frame, and every frame cuts it. It costs 14 ns a frame (`cargo run --example cost`, crate xdp).
    Touched,
}

impl Pages {
    /// Bytes of a page beyond the longest frame.
    fn beyond(self) -> usize {
        usize::from(self == Pages::Touched)
    }
}

/// How to compile.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How frames leave.
    pub exit: Exit,
    /// What becomes of pages.
    pub pages: Pages,
    /// How frames are kept to their times.
    pub pacing: Pacing,
    /// The clock whose times signatures carry: [`Clock::Tai`], or [`Clock::Monotonic`].
    pub stamps: Clock,
    /// At top speed the clock is read once for [`STAMPED_TOGETHER`] frames. Who measures them has to know of it.
    pub together: bool,
}

/// A program in the kernel, and what it shares with us.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: bpf::Program,
    /// Shared words; see [`layout`].
    pub state: Memory,
    /// What every page holds at first.
    pub frame: Vec<u8>,
    /// Frames made before they are handed to the driver together.
    pub batch: u32,
    /// Frames wait for their times.
    pub paced: bool,
    /// Frames a second, about, of those that have times.
    pub rate: Option<f64>,
    /// Length of all frames, if they have one.
    pub length: Option<u32>,
    /// Number of lanes.
    pub lanes: usize,
    /// Instructions.
    pub instructions: usize,
    /// Tables and templates that the program points into.
    _tables: [Option<Memory>; 2],
}

/// Verdicts (include/uapi/linux/bpf.h).
const XDP_DROP: u64 = 1;
const XDP_TX: u64 = 3;

/// The shortest that the kernel takes for a frame.
const ETHERNET_HEADER: u32 = 14;

/// Maps while they have no descriptors yet: the number that stands in their place.
const STATE: i32 = 1;
const DATA: i32 = 2;
const ARENA: i32 = 3;

/// What the verifier says of a helper that it does not know ends in its number (`helper::KTIME_TAI`).
const UNKNOWN_TAI: &str = "#208";

/// The verifier follows variable offsets into a map value up to 2^29 bytes.
const LARGEST_TABLE: usize = 1 << 29;

/// Frames in a batch at top speed: more gain nothing, and 256 overrun the ring of a veth.
const BATCH: u32 = 64;

/// Frames that the kernel collects before it hands them to a driver together (DEV_MAP_BULK_SIZE, kernel/bpf/devmap.c, since Linux 5.6). At top
/// speed they carry one time: none of them leaves before the last is made, and to read the clock for each would be half of what a signed frame
/// costs. Frames that have times of their own, and leave as near to them as can be, are stamped one by one.
pub const STAMPED_TOGETHER: u32 = 16;

/// A page, less the headroom before and what the kernel keeps behind a frame: the longest live frame (Linux 6.18). With
/// pages of 64 KiB, what an instruction's offset reaches.
pub fn longest_frame() -> usize {
    (rustix::param::page_size() - 688).min(i16::MAX as usize)
}

/// Turns `program` into an eBPF program and loads it.
///
/// # Errors
/// What of the program cannot be done there, or that the kernel does not load it.
pub fn compile(program: &Program, options: &Options) -> Result<Compiled, XdpError> {
    program.check().map_err(|bad| XdpError::Program(bad.to_string()))?;
    let longest = program.longest() as usize;
    let limit = longest_frame() - options.pages.beyond();
    if longest > limit {
        return Err(XdpError::TooLong { longest, limit });
    }
    let shortest =
        program.streams.iter().map(|s| s.lengths.bounds(s.templates.shortest()).0).min().unwrap_or(0);
    if shortest < ETHERNET_HEADER {
        return Err(XdpError::TooShort(shortest));
    }
    if program.lanes.len() > layout::MAX_LANES {
        return Err(XdpError::TooManyLanes(program.lanes.len()));
    }
    let mut compiler = Compiler::new(program, options);
    compiler.emit()?;
    compiler.load()
}

struct Compiler<'p> {
    asm: Asm,
    program: &'p Program,
    options: &'p Options,
    plans: Vec<Plan<'p>>,
    /// The first bytes of every frame that pages may not hold; all of them at most.
    unsure: usize,
    /// Lengths at which some stream's signature ends, when pages may hold an old one elsewhere.
    old_signatures: Vec<usize>,
    frame: Vec<u8>,
    data: Vec<u8>,
    /// Tables of what bytes change in a CRC, by how many bytes stand behind them.
    changes: BTreeMap<usize, u32>,
    /// Bytes of the captured frames, and where those of each stream begin. They are copied once, to where the program reads
    /// them: a capture may be a good part of the memory there is.
    arena: usize,
    captured: Vec<(usize, &'p Templates)>,
    state: BTreeMap<u32, u64>,
    state_end: u32,
    paced: bool,
    batch: u32,
    lengths_vary: bool,
    drop: Label,
    send: Label,
}

/// Where the length of the present frame is kept, when it is not a constant.
const LENGTH_SLOT: i16 = -8;
/// A stream's or lane's scratch.
const SPARE_SLOT: i16 = -16;

impl<'p> Compiler<'p> {
    fn new(program: &'p Program, options: &'p Options) -> Compiler<'p> {
        let mut asm = Asm::new();
        let (drop, send) = (asm.label(), asm.label());
        let plans: Vec<Plan<'p>> = program.streams.iter().map(Plan::new).collect();
        let mut frame =
            plans.iter().max_by_key(|plan| plan.longest).map_or_else(Vec::new, |plan| plan.image.clone());
        frame.resize(frame.len() + options.pages.beyond(), 0);
        let (unsure, old_signatures) = stream::unsure(&plans, &frame, options.pages);
        let paced = program.lanes.iter().any(|lane| lane.schedule.is_paced());
        let one = program.only_length();
        Compiler {
            asm,
            program,
            options,
            plans,
            unsure,
            old_signatures,
            frame,
            data: Vec::new(),
            changes: BTreeMap::new(),
            arena: 0,
            captured: Vec::new(),
            state: BTreeMap::new(),
            state_end: layout::STREAMS,
            paced,
            batch: if paced { pace::batch(program) } else { BATCH },
            lengths_vary: one.is_none(),
            drop,
            send,
        }
    }

    fn emit(&mut self) -> Result<(), XdpError> {
        // R6 is the context and R7 the shared words throughout; R8 becomes the frame, R9 the stream's own words.
        self.asm.mov(R6, R1);
        self.asm.map_value(R7, STATE, 0);
        let streams: Vec<Label> = self.plans.iter().map(|_| self.asm.label()).collect();
        let after: Vec<Label> = self.program.lanes.iter().map(|_| self.asm.label()).collect();
        // Unless the engine says otherwise.
        self.init(layout::LINGER, u64::MAX);
        self.init(layout::STAY, u64::MAX);
        self.gate();
        self.choose(&streams);
        for (lane, &after) in after.iter().enumerate() {
            for s in self.streams_of(lane) {
                self.asm.place(streams[s]);
                self.stream(s)?;
                self.asm.jump(after);
            }
        }
        for (lane, &after) in after.iter().enumerate() {
            self.asm.place(after);
            self.advance(lane)?;
            self.asm.jump(self.send);
        }
        self.asm.place(self.send);
        match self.options.exit {
            Exit::Back => self.asm.mov_imm(R0, XDP_TX),
            Exit::Redirect(index) => {
                self.asm.mov_imm(R1, index.into());
                self.asm.mov_imm(R2, 0);
                self.asm.call(helper::REDIRECT);
            }
        }
        self.asm.exit();
        self.asm.place(self.drop);
        self.asm.mov_imm(R0, XDP_DROP);
        self.asm.exit();
        Ok(())
    }

    /// Whether frames that leave together carry one time.
    fn stamps_together(&self) -> bool {
        let signed = || self.program.streams.iter().any(|stream| stream.signature.is_some());
        self.options.together && !self.paced && signed()
    }

    /// The streams of a lane, each once.
    fn streams_of(&self, lane: usize) -> Vec<usize> {
        let mut streams: Vec<usize> = self.program.lanes[lane].order.iter().map(|&s| s as usize).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    fn load(self) -> Result<Compiled, XdpError> {
        let instructions = self.asm.size();
        let mut code = self.asm.finish().map_err(|_| XdpError::TooLarge { instructions })?;
        let memory = |name, bytes: usize| {
            if bytes > LARGEST_TABLE {
                return Err(XdpError::TooMuchData { bytes });
            }
            Memory::new(name, bytes).map_err(|error| match error {
                Errno::PERM | Errno::ACCESS => XdpError::Permission,
                error => XdpError::Memory { bytes, error },
            })
        };
        let state = memory(c"netdyno_state", self.state_end as usize)?;
        for (&at, &value) in &self.state {
            state.store(at as usize, value);
        }
        let table = |name, bytes: usize| (bytes > 0).then(|| memory(name, bytes)).transpose();
        let mut tables = [table(c"netdyno_data", self.data.len())?, table(c"netdyno_arena", self.arena)?];
        if let Some(data) = &mut tables[0] {
            data.write(0, &self.data);
        }
        if let Some(arena) = &mut tables[1] {
            self.captured.iter().for_each(|(begin, templates)| captured::write(arena, *begin, templates));
        }
        link(&mut code, |map| match map {
            STATE => Some(state.descriptor()),
            DATA => tables[0].as_ref().map(Memory::descriptor),
            _ => tables[1].as_ref().map(Memory::descriptor),
        });
        let program =
            bpf::Program::load(c"netdyno_live", &code, false).map_err(|refused| match refused.error {
                Errno::PERM => XdpError::Permission,
                Errno::TOOBIG => XdpError::TooLarge { instructions },
                _ if refused.log.contains(UNKNOWN_TAI) => XdpError::Helper {
                    what: "stamping frames by CLOCK_TAI",
                    helper: "bpf_ktime_get_tai_ns",
                    since: "6.1",
                    mend: "use `.clock` monotonic, or `.engine` afxdp",
                },
                error => XdpError::Refused { error, log: refused.log },
            })?;
        Ok(Compiled {
            program,
            state,
            frame: self.frame,
            batch: self.batch,
            paced: self.paced,
            rate: self.program.lanes.iter().map(|lane| mean_rate(self.program, lane)).sum(),
            length: (!self.lengths_vary).then(|| self.program.longest()),
            lanes: self.program.lanes.len(),
            instructions: code.len(),
            _tables: tables,
        })
    }

    /// Notes the value a shared word begins with.
    fn init(&mut self, at: u32, value: u64) {
        if value != 0 {
            self.state.insert(at, value);
        }
    }

    /// Loads into R3, of a table of two or four bytes for each length from `shortest` to `longest`, the frame's. Takes R1, R2
    /// and R5.
    fn of_length(&mut self, table: u32, size: Size, (shortest, longest): (usize, usize)) {
        let inside = self.asm.label();
        self.asm.load(Size::D, R1, FP, LENGTH_SLOT);
        self.asm.op_imm(Op::Sub, R1, shortest as u64, R5);
        // It always is: this is for the verifier.
        self.asm.jump_if_imm(If::Le, R1, (longest - shortest) as u64, R5, inside);
        self.asm.mov_imm(R1, 0);
        self.asm.place(inside);
        self.asm.op_small(Op::Shl, R1, if size == Size::H { 1 } else { 2 });
        self.asm.map_value(R2, DATA, table);
        self.asm.op(Op::Add, R2, R1);
        self.asm.load(size, R3, R2, 0);
    }

    /// Puts bytes into the tables; returns where.
    fn table(&mut self, bytes: impl IntoIterator<Item = u8>) -> u32 {
        let at = self.data.len();
        self.data.extend(bytes);
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        at as u32
    }

    /// `dst = *(u64 *)(R7 + word)`
    fn word(&mut self, dst: Reg, word: u32) {
        self.asm.load(Size::D, dst, R7, word as i16);
    }

    /// `*(u64 *)(R7 + word) = src`
    fn set_word(&mut self, word: u32, src: Reg) {
        self.asm.store(Size::D, R7, word as i16, src);
    }

    /// Adds to a shared word, by way of `spare`.
    fn add_word(&mut self, word: u32, src: Reg, spare: Reg) {
        self.word(spare, word);
        self.asm.op(Op::Add, spare, src);
        self.set_word(word, spare);
    }

    /// `a = min(a, b)`
    fn min(&mut self, a: Reg, b: Reg) {
        let smaller = self.asm.label();
        self.asm.jump_if(If::Le, a, b, smaller);
        self.asm.mov(a, b);
        self.asm.place(smaller);
    }

    /// `a = max(a, b)`
    fn max(&mut self, a: Reg, b: Reg) {
        let greater = self.asm.label();
        self.asm.jump_if(If::Ge, a, b, greater);
        self.asm.mov(a, b);
        self.asm.place(greater);
    }

    /// Jumps to `labels[index]`, by halving.
    fn dispatch(&mut self, index: Reg, labels: &[(u64, Label)]) {
        if let [(_, only)] = labels {
            self.asm.jump(*only);
            return;
        }
        let (low, high) = labels.split_at(labels.len() / 2);
        let upper = self.asm.label();
        self.asm.jump_if_imm(If::Ge, index, high[0].0, R3, upper);
        self.dispatch(index, low);
        self.asm.place(upper);
        self.dispatch(index, high);
    }
}

/// Puts the maps' descriptors where their numbers stand.
fn link(code: &mut [Insn], descriptor: impl Fn(i32) -> Option<i32>) {
    const LOAD_MAP_VALUE: u8 = 2;
    let mut at = 0;
    while at < code.len() {
        if code[at].code == 0x18 {
            if code[at].registers >> 4 == LOAD_MAP_VALUE {
                code[at].immediate = descriptor(code[at].immediate).unwrap_or(-1);
            }
            at += 1;
        }
        at += 1;
    }
}

/// Frames a second that a lane asks for, about; `None` where frames may be due at once.
fn mean_rate(program: &Program, lane: &traffic::program::Lane) -> Option<f64> {
    match &lane.schedule {
        Schedule::TopSpeed => None,
        Schedule::Frames { frames, per_ns } => Some(*frames as f64 * 1e9 / (*per_ns).max(1) as f64),
        Schedule::Bits { bits_per_second, overhead_bytes } => {
            let shortest =
                program.streams.iter().map(|s| s.lengths.bounds(s.templates.shortest()).0).min()?;
            Some(*bits_per_second as f64 / (f64::from(shortest + overhead_bytes) * 8.0))
        }
        Schedule::Bursts { gap_ns, .. } => (*gap_ns > 0).then(|| 1e9 / *gap_ns as f64),
        Schedule::Steps { steps } => {
            steps.iter().map(|step| step.frames as f64 * 1e9 / step.per_ns.max(1) as f64).reduce(f64::max)
        }
        Schedule::Shaped(shaped) => Some(shaped.highest()),
        Schedule::Times { offsets, period_ns, speed } => {
            let seconds = speed.scale((*period_ns).into()) as f64 / 1e9;
            (seconds > 0.0).then(|| offsets.len() as f64 / seconds)
        }
    }
}
