//! What making a frame costs in the kernel, without sending: nanoseconds a run of BPF_PROG_TEST_RUN, less an empty
//! program's. `cargo run --release -p netdyno-xdp --example cost`, as root.

use netdyno_xdp as xdp;

use bpf::{Program, Run};
use traffic::expr::{Options as Shape, compile as expression};
use xdp::asm::{Asm, R0};
use xdp::compile::{Exit, Options, Pages, compile};
use xdp::layout;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut asm = Asm::new();
    asm.mov_imm(R0, 3);
    asm.exit();
    let code = asm.finish().map_err(|_| "too far")?;
    let empty = Program::load(c"empty", &code, false).map_err(|refused| refused.log)?;
    let programs = [
        ("udp", "ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535, dport=53)", "64", None),
        (
            "udp, signed",
            "ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535, dport=53)",
            "64",
            Some(1),
        ),
        ("random", "ipv4(src=random(10.0.0.0/8))/udp(sport=random(1024..65535))", "64", None),
        ("1518 B", "ipv4(src=10.0.0.0/16)/udp(sport=1024..65535)", "1518", None),
        ("gtp-u", "ipv4/udp/gtpu(teid=1..1000)/ipv4(src=10.0.0.0/16)/udp(sport=1024..65535)", "128", None),
    ];
    for pages in [Pages::Kept, Pages::Touched] {
        for (name, text, size, signature) in programs {
            let size = Some(size.parse()?);
            let program = expression(text, &Shape { size, seed: 1, signature, name: String::new() })?;
            let compiled = compile(
                &program,
                &Options {
                    exit: Exit::Back,
                    pages,
                    pacing: engine::Pacing { catch_up: engine::CatchUp::Times(2.0), spin: false },
                    stamps: engine::clock::Clock::Monotonic,
                    together: true,
                },
            )?;
            compiled.state.store(layout::LEFT as usize, u64::MAX);
            compiled.state.store(layout::DURATION as usize, u64::MAX);
            compiled.state.store(layout::START as usize, 1);
            let mut costs: Vec<i64> = Vec::new();
            for _ in 0..9 {
                let cost = |program: &Program| {
                    let run = Run { repeat: 1_000_000, ..Run::on(&compiled.frame) };
                    program.run(run).map(|ran| i64::from(ran.cost_ns))
                };
                costs.push(cost(&compiled.program)? - cost(&empty)?);
            }
            costs.sort_unstable();
            println!("{name:12} {pages:?}: {} ns, {} instructions", costs[4], compiled.instructions);
        }
    }
    Ok(())
}
