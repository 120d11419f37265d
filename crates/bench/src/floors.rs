//! Floors of the engines in the kernel: the least that live frames and AF_XDP can be asked for, with no frame made.

use crate::bench::{self, Bench};
use anyhow::{Context, Result, anyhow};
use bpf::{Insn, Memory, Program, Run};
use port::afxdp::bare::Bare;
use port::packet::Target;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xdp::asm::{Asm, If, Op, R0, R1, R2, R3, R4, R6, R7, R8, Size, helper};
use xdp::calls::{Called, Calls, Step};
use xdp::spare::{self, Known};
use xdp::{Way, way};

/// Verdicts (include/uapi/linux/bpf.h).
pub const XDP_DROP: u64 = 1;
const XDP_TX: u64 = 3;

/// As many as netdyno hands to the driver together at top speed.
const BATCH: u32 = 64;

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
    attend(running, length, tick, &mut watch)
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
    attend(running, length, tick, &mut watch)
}

/// Lets a sender run for so long, and calls `watch` every `tick`.
fn attend(
    running: Running,
    length: Duration,
    tick: Duration,
    watch: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    let mut watched = Ok(());
    while watched.is_ok() && start.elapsed() < length && !running.is_over() {
        std::thread::sleep(tick);
        watched = watch();
    }
    running.stop()?;
    watched
}

/// Sends live frames as XDPerf makes them, for so long: the base packet is stored into each, then up to three differences from
/// it (here the source port and both checksums), all by helper calls, of the next of 65,536 flows by a counter. From its
/// authors' description.
pub fn stored_live_frames(
    bench: &Bench,
    length: Duration,
    tick: Duration,
    mut watch: impl FnMut() -> Result<()>,
) -> Result<()> {
    const FRAME: usize = 60;
    const FLOWS: usize = 1 << 16;
    /// In memory: the counter, the base packet, then eight bytes a flow.
    const BASE: usize = 8;
    const TABLE: usize = BASE + 64;
    /// Where they are stored: the source port, the checksums of IPv4 and UDP.
    const AT: [u64; 3] = [34, 24, 40];
    let base = bench::frame(FRAME as u32)?;
    let state = Memory::new(c"netdyno_floor", TABLE + 8 * FLOWS).context("a map")?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
    for (number, bytes) in base.chunks(8).enumerate() {
        state.store(BASE + 8 * number, word(bytes));
    }
    for flow in 0..FLOWS {
        state.store(TABLE + 8 * flow, (flow as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    let mut asm = Asm::new();
    asm.mov(R6, R1);
    asm.map_value(R7, state.descriptor(), 0);
    asm.load(Size::D, R8, R7, 0);
    asm.mov(R2, R8);
    asm.op_small(Op::Add, R2, 1);
    asm.store(Size::D, R7, 0, R2);
    asm.mov(R1, R6);
    asm.mov_imm(R2, 0);
    asm.mov(R3, R7);
    asm.op_small(Op::Add, R3, BASE as u32);
    asm.mov_imm(R4, FRAME as u64);
    asm.call(helper::STORE_BYTES);
    asm.op_small(Op::And, R8, FLOWS as u32 - 1);
    asm.op_small(Op::Shl, R8, 3);
    asm.op(Op::Add, R7, R8);
    for (number, at) in AT.into_iter().enumerate() {
        asm.mov(R1, R6);
        asm.mov_imm(R2, at);
        asm.mov(R3, R7);
        asm.op_small(Op::Add, R3, (TABLE + 2 * number) as u32);
        asm.mov_imm(R4, 2);
        asm.call(helper::STORE_BYTES);
    }
    asm.mov_imm(R0, XDP_TX);
    asm.exit();
    let running = Running::start(bench, &[bench.core], &base, &Arc::new(load(asm)?), BATCH)?;
    attend(running, length, tick, &mut watch)
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
    // Nothing is due while the calls are got going, which takes as long as it likes; and the first frames of a call come late.
    state.store(DUE, u64::MAX);
    let running = Running::start(bench, &[bench.core], &bench::frame(60)?, &Arc::new(load(asm)?), 1)?;
    let begin = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    state.store(DUE, begin.tv_sec as u64 * 1_000_000_000 + begin.tv_nsec as u64 + 200_000_000);
    while state.load(LEFT) > 0 && !running.is_over() {
        bench.check()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    running.stop()
}

/// Calls for live frames, one after the other on each core: as long as netdyno's (`xdp::calls`), because everybody on the
/// machine who waits for RCU waits for the end of one.
struct Running {
    threads: Vec<JoinHandle<Result<()>>>,
    stop: Arc<AtomicBool>,
    /// Programs that the kernel knows need not wait for RCU with each call.
    _known: Known,
}

impl Running {
    fn start(
        bench: &Bench,
        cores: &[usize],
        frame: &[u8],
        program: &Arc<Program>,
        batch: u32,
    ) -> Result<Running> {
        let target = bench.target()?;
        let sender = &bench.lab.sender.namespace;
        let queues = cores.len() as u32;
        let way: Arc<Way> = Arc::new(sender.run_in(|| way::find(&target, Some("veth"), queues, queues))??);
        let ingress = way.ingress().context("live frames cannot go back by XDP_TX here")?;
        let known = spare::attach(program)?;
        let stop = Arc::new(AtomicBool::new(false));
        let start = |&core: &usize| {
            let (way, program, stop) = (Arc::clone(&way), Arc::clone(program), Arc::clone(&stop));
            let (frame, realtime) = (frame.to_vec(), bench.is_realtime());
            std::thread::spawn(move || -> Result<()> {
                Bench::take_core(realtime, core)?;
                way.enter()?;
                let run = |repeat: u32| {
                    let (live, ingress) = (Some(batch), Some(ingress));
                    program.run(Run { repeat, live, ingress, ..Run::on(&frame) }).map(|_| ())
                };
                call_after_call(Calls::new(batch, None, realtime), &stop, run).context("live frames")
            })
        };
        Ok(Running { threads: cores.iter().map(start).collect(), stop, _known: known })
    }

    fn is_over(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// After the call that each thread is in.
    fn end(&mut self) -> Result<()> {
        self.stop.store(true, Relaxed);
        let mut joined = self.threads.drain(..).map(JoinHandle::join);
        joined.try_for_each(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

/// Nothing goes on sending after an error.
impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Calls `run`, for so many frames each, until it is to stop.
fn call_after_call(
    mut calls: Calls,
    stop: &AtomicBool,
    run: impl Fn(u32) -> std::result::Result<(), rustix::io::Errno>,
) -> std::result::Result<(), rustix::io::Errno> {
    while !stop.load(Relaxed) {
        let now = engine::clock::now();
        match calls.next(now, None) {
            step @ Step::Call { repeat, .. } => {
                run(repeat)?;
                let ended = engine::clock::now();
                let sent = u64::from(repeat);
                calls.called(step, &Called { began: now, ended, due: now, next: None, sent, waited: 0 });
            }
            Step::Sleep(until) => {
                engine::clock::sleep_until(until);
                calls.slept(now, until, engine::clock::now());
            }
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn calls_of_a_floor_are_short_and_end_when_they_are_to() {
        // Half a microsecond a frame: the first guess is short, and the next ones are near what is wanted.
        let (stop, lasted) = (AtomicBool::new(false), RefCell::new(Vec::new()));
        let run = |repeat: u32| {
            lasted.borrow_mut().push(u64::from(repeat) * 500);
            std::thread::sleep(Duration::from_nanos(u64::from(repeat) * 500));
            stop.store(lasted.borrow().len() == 20, Relaxed);
            Ok(())
        };
        call_after_call(Calls::new(BATCH, None, false), &stop, run).expect("no error");
        let lasted = lasted.into_inner();
        assert_eq!(lasted.len(), 20);
        // As long as they would be on a machine that takes just that; one that is busy makes them shorter.
        assert!(lasted.iter().all(|ns| *ns <= 2 * xdp::calls::CALL_NS), "{lasted:?}");
    }

    #[test]
    fn an_error_ends_the_calls() {
        let stop = AtomicBool::new(false);
        let ended = call_after_call(Calls::new(1, None, false), &stop, |_| Err(rustix::io::Errno::NODEV));
        assert_eq!(ended, Err(rustix::io::Errno::NODEV));
    }
}
