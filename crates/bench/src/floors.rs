//! Floors of the engines in the kernel: the least that live frames and AF_XDP can be asked for, with no frame made.

use crate::bench::{self, Bench};
use anyhow::{Context, Result, anyhow};
use bpf::{Insn, Memory, Program, Run};
use port::afxdp::bare::Bare;
use port::packet::Target;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xdp::asm::{Asm, If, Op, R0, R1, R2, R3, R4, R6, R7, Size, helper};
use xdp::sys::{interrupt, prepare_interrupts};
use xdp::{Way, way};

/// Verdicts (include/uapi/linux/bpf.h).
pub const XDP_DROP: u64 = 1;
const XDP_TX: u64 = 3;

/// As many as netdyno hands to the driver together at top speed.
const BATCH: u32 = 64;
/// Frames of one call, which is to be interrupted long before.
const REPEAT: u32 = 0xffff_ff00;

/// A program of two instructions.
pub fn verdict(verdict: u64) -> Result<Program> {
    let mut asm = Asm::new();
    asm.mov_imm(R0, verdict);
    asm.exit();
    load(asm)
}

fn load(asm: Asm) -> Result<Program> {
    let code: Vec<Insn> = asm.finish().map_err(|_| anyhow!("a floor program jumps too far"))?;
    Program::load(c"netdyno_floor", &code, true)
        .map_err(|refused| anyhow!("the kernel refused a floor program: {} {}", refused.error, refused.log))
}

/// Sends live frames of `bytes` that nobody makes or touches from each of `cores`, for so long; calls `watch` every `tick`. The
/// peer must have an XDP program by now.
pub fn live_frames(
    bench: &Bench,
    cores: &[usize],
    bytes: u32,
    length: Duration,
    tick: Duration,
    mut watch: impl FnMut() -> Result<()>,
) -> Result<()> {
    let running = Running::start(bench, cores, &bench::frame(bytes)?, &Arc::new(verdict(XDP_TX)?), BATCH)?;
    let start = Instant::now();
    let mut watched = Ok(());
    while watched.is_ok() && start.elapsed() < length && !running.is_over() {
        std::thread::sleep(tick);
        watched = watch();
    }
    running.stop()?;
    watched
}

/// A program that counts frames and their bytes in memory that it shares, and drops them.
pub fn counting() -> Result<(Program, Memory)> {
    let state = Memory::new(c"netdyno_floor", 16).context("a map")?;
    let mut asm = Asm::new();
    asm.load(Size::W, R2, R1, 0);
    asm.load(Size::W, R3, R1, 4);
    asm.op(Op::Sub, R3, R2);
    asm.map_value(R7, state.descriptor(), 0);
    asm.load(Size::D, R2, R7, 0);
    asm.op_small(Op::Add, R2, 1);
    asm.store(Size::D, R7, 0, R2);
    asm.load(Size::D, R2, R7, 8);
    asm.op(Op::Add, R2, R3);
    asm.store(Size::D, R7, 8, R2);
    asm.mov_imm(R0, XDP_DROP);
    asm.exit();
    Ok((load(asm)?, state))
}

/// Frames that end with a signature.
#[derive(Debug, Clone, Copy)]
pub struct Signed {
    /// Taking turns frame by frame; a power of two.
    pub streams: u32,
    /// The clock is read for each frame.
    pub stamped: bool,
}

/// Sends live frames of 60 bytes that end with a signature, and are otherwise not touched, for so long.
pub fn signed_live_frames(
    bench: &Bench,
    signed: Signed,
    length: Duration,
    tick: Duration,
    mut watch: impl FnMut() -> Result<()>,
) -> Result<()> {
    const FRAME: u64 = 60;
    const AT: i16 = FRAME as i16 - wire::signature::LEN as i16;
    let state = Memory::new(c"netdyno_floor", 8).context("a map")?;
    let mut asm = Asm::new();
    let short = asm.label();
    asm.mov(R6, R1);
    asm.mov_imm(R0, 0);
    if signed.stamped {
        asm.call(helper::KTIME);
    }
    asm.load(Size::W, R2, R6, 0);
    asm.load(Size::W, R3, R6, 4);
    asm.mov(R1, R2);
    asm.op_small(Op::Add, R1, FRAME as u32);
    asm.jump_if(If::Gt, R1, R3, short);
    asm.map_value(R7, state.descriptor(), 0);
    asm.load(Size::D, R3, R7, 0);
    asm.mov(R4, R3);
    asm.op_small(Op::Add, R4, 1);
    asm.store(Size::D, R7, 0, R4);
    // Stream: the number's low bits; sequence: the rest.
    asm.mov(R4, R3);
    asm.op_small(Op::And, R4, signed.streams - 1);
    asm.op_small(Op::Shr, R3, signed.streams.trailing_zeros());
    asm.op_small(Op::Shl, R4, 40);
    asm.op(Op::Or, R3, R4);
    asm.big_endian(R3, 64);
    asm.store(Size::D, R2, AT + 4, R3);
    asm.mov_imm(R3, wire::signature::MAGIC.into());
    asm.big_endian(R3, 32);
    asm.store(Size::W, R2, AT, R3);
    asm.mov(R3, R0);
    asm.op_small(Op::Shr, R3, 32);
    asm.big_endian(R3, 16);
    asm.store(Size::H, R2, AT + 12, R3);
    asm.big_endian(R0, 32);
    asm.store(Size::W, R2, AT + 14, R0);
    asm.mov_imm(R0, XDP_TX);
    asm.exit();
    asm.place(short);
    asm.mov_imm(R0, XDP_DROP);
    asm.exit();
    let frame = bench::frame(FRAME as u32)?;
    let running = Running::start(bench, &[bench.core], &frame, &Arc::new(load(asm)?), BATCH)?;
    let start = Instant::now();
    let mut watched = Ok(());
    while watched.is_ok() && start.elapsed() < length && !running.is_over() {
        std::thread::sleep(tick);
        watched = watch();
    }
    running.stop()?;
    watched
}

/// Sends `count` live frames that nobody touches, `gap_ns` apart, each handed to the driver by itself. The program does
/// nothing but look at the clock and count.
pub fn paced_live_frames(bench: &Bench, count: u64, gap_ns: u64) -> Result<()> {
    const DUE: usize = 0;
    const LEFT: usize = 8;
    let state = Memory::new(c"netdyno_floor", 16).context("a map")?;
    state.store(LEFT, count);
    let mut asm = Asm::new();
    let not_yet = asm.label();
    asm.map_value(R7, state.descriptor(), 0);
    asm.load(Size::D, R1, R7, LEFT as i16);
    asm.jump_if_imm(If::Eq, R1, 0, R3, not_yet);
    asm.call(helper::KTIME);
    asm.load(Size::D, R1, R7, DUE as i16);
    asm.jump_if(If::Lt, R0, R1, not_yet);
    asm.op_imm(Op::Add, R1, gap_ns, R3);
    asm.store(Size::D, R7, DUE as i16, R1);
    asm.load(Size::D, R2, R7, LEFT as i16);
    asm.op_imm(Op::Sub, R2, 1, R3);
    asm.store(Size::D, R7, LEFT as i16, R2);
    asm.mov_imm(R0, XDP_TX);
    asm.exit();
    asm.place(not_yet);
    asm.mov_imm(R0, XDP_DROP);
    asm.exit();
    // The first frames of a call come late: the kernel gets it going meanwhile.
    let begin = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    state.store(DUE, begin.tv_sec as u64 * 1_000_000_000 + begin.tv_nsec as u64 + 200_000_000);
    let running = Running::start(bench, &[bench.core], &bench::frame(60)?, &Arc::new(load(asm)?), 1)?;
    while state.load(LEFT) > 0 && !running.is_over() {
        bench.check()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    running.stop()
}

/// Calls for live frames, one on each core.
struct Running {
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Running {
    fn start(
        bench: &Bench,
        cores: &[usize],
        frame: &[u8],
        program: &Arc<Program>,
        batch: u32,
    ) -> Result<Running> {
        prepare_interrupts()?;
        let target = bench.target()?;
        let sender = &bench.lab.sender.namespace;
        let queues = cores.len() as u32;
        let way: Arc<Way> = Arc::new(sender.run_in(|| way::find(&target, Some("veth"), queues, queues))??);
        let ingress = way.ingress().context("live frames cannot go back by XDP_TX here")?;
        let start = |&core: &usize| {
            let (way, program, frame) = (Arc::clone(&way), Arc::clone(program), frame.to_vec());
            let realtime = bench.is_realtime();
            std::thread::spawn(move || -> Result<()> {
                Bench::take_core(realtime, core)?;
                way.enter()?;
                let (live, ingress) = (Some(batch), Some(ingress));
                match program.run(Run { repeat: REPEAT, live, ingress, ..Run::on(&frame) }) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
                    Err(error) => Err(error).context("live frames"),
                }
            })
        };
        Ok(Running { threads: cores.iter().map(start).collect() })
    }

    fn is_over(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    fn stop(mut self) -> Result<()> {
        self.interrupt();
        let mut joined = self.threads.drain(..).map(JoinHandle::join);
        joined.try_for_each(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// A signal that comes before a call begins ends nothing, so it is repeated.
    fn interrupt(&self) {
        while !self.threads.iter().all(JoinHandle::is_finished) {
            self.threads.iter().filter(|thread| !thread.is_finished()).for_each(interrupt);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Nothing goes on sending after an error.
impl Drop for Running {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// Submits the same descriptors again and again, on the calling thread and in its namespace. How many frames that were.
pub fn afxdp(target: &Target, frame: &[u8], more: impl Fn() -> bool) -> std::io::Result<u64> {
    let mut bare = Bare::open(target, 0, frame).map_err(std::io::Error::other)?;
    let mut sent = 0;
    while more() {
        sent += bare.submit()? as u64;
    }
    Ok(sent)
}
