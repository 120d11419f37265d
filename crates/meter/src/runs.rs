//! Runs of programs on single frames, for the tests.

use bpf::{Program, Run};

/// Runs the program on `frame`, `repeat` times, on the calling thread's CPU. Verdict and nanoseconds for each run.
pub fn run(program: &Program, frame: &[u8], repeat: u32) -> (u32, u32) {
    let ran = program.run(Run { repeat, ..Run::on(frame) }).expect("the kernel runs it");
    (ran.verdict, ran.cost_ns)
}

/// Runs it on `frame`, before which `told` stands.
pub fn run_told(program: &Program, told: u64, frame: &[u8]) -> u32 {
    let whole = [&told.to_ne_bytes(), frame].concat();
    program.run(Run { told: 8, ..Run::on(&whole) }).expect("the kernel runs it").verdict
}
