//! Any text as a scenario file; what compiles must be a sound program, whose lanes come to their ends as they say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{Context, Sign, parse};
use traffic::executor::{Executor, Slab, frame};

const FRAMES: usize = 6;

fuzz_target!(|text: &str| {
    let scenario = match parse(text, "fuzz") {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(!scenario.name().is_empty());
    let link_bits_per_second = Some(10_000_000_000);
    for sign in [Sign::No, Sign::WhereRoom] {
        let mut compiled =
            match scenario.compile(&Context { seed: 7, sign, link_bits_per_second, ..Context::default() }) {
                Ok(compiled) => compiled,
                Err(error) => {
                    assert!(error.to_string().contains('^'));
                    return;
                }
            };
        compiled.program.check().expect("what the compiler makes is sound");
        for unresolved in compiled.resolve.clone() {
            compiled.resolved(&unresolved, [2; 6], [4; 6]);
        }
        compiled.program.check().expect("addresses change nothing else");
        let program = &compiled.program;
        let mut executor = Executor::new(program).expect("what the compiler makes, the executor takes");
        let mut slab = Slab::new(FRAMES, program.longest() as usize);
        let made = executor.render(&mut slab.buffers(), FRAMES, || 0);
        for i in 0..made {
            let alone = frame(program, i as u64, 0).expect("a frame by itself");
            assert_eq!(slab.frame(i), &alone[..], "frame {i} depends on i alone");
        }
        for lane in &compiled.program.lanes {
            let mut cursor = lane.schedule.cursor();
            let mut before = 0;
            for _ in 0..lane.frames.unwrap_or(100).min(100) {
                if cursor.at_end() {
                    break;
                }
                assert!(cursor.due() >= before, "times do not go back");
                before = cursor.due();
                cursor.advance(60);
            }
            if let (Some(frames), Some(total)) = (lane.frames, lane.schedule.total_frames()) {
                assert!(frames <= total, "a lane has no more frames than its schedule");
            }
        }
    }
});
