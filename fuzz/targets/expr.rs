//! Any text as a packet expression; what compiles must run, and frame n must depend on n alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use traffic::executor::{Executor, Slab, frame};
use traffic::expr::{Options, Size, compile};

const FRAMES: usize = 6;

fuzz_target!(|text: &str| {
    let sized = Options {
        size: "64,1500".parse::<Size>().ok(),
        seed: 7,
        signature: Some(1),
        name: "fuzz".to_owned(),
    };
    for options in [Options::default(), sized] {
        let program = match compile(text, &options) {
            Ok(program) => program,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let mut executor = Executor::new(&program).expect("what the compiler makes, the executor takes");
        let mut slab = Slab::new(FRAMES, program.longest() as usize);
        // Twice, so that the second half is patched into buffers that hold earlier frames.
        for round in 0..2 {
            assert_eq!(executor.render(&mut slab.buffers(), FRAMES, || 0), FRAMES);
            for i in 0..FRAMES {
                let n = (round * FRAMES + i) as u64;
                let alone = frame(&program, n, 0).expect("a frame by itself");
                assert_eq!(slab.frame(i), &alone[..], "frame {n} depends on n alone");
            }
        }
        for i in 0..FRAMES {
            std::hint::black_box(wire::show::show(wire::LinkType::ETHERNET, slab.frame(i)));
        }
    }
});
