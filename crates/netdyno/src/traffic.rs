//! Frames as functions of their number: programs, what compiles them, and what makes their frames.

#[doc(inline)]
pub use ::traffic::{
    Buffers, Crc, Ending, Executor, Field, Lane, LengthField, Lengths, Program, Rate, Schedule, Shape, Slab,
    Step, Stream, Sum, Templates, Values,
};

/// Packet expressions (docs/expressions.md) to programs.
pub mod expr {
    #[doc(inline)]
    pub use ::traffic::expr::{BadSize, ExprError, FCS, MAX_SIZE, Options, Size, compile};
}

/// Frames of a program.
pub mod executor {
    #[doc(inline)]
    pub use ::traffic::executor::{BATCH, Buffers, Executor, NOTHING, Slab, frame};
}

/// What programs are made of.
pub mod program {
    #[doc(inline)]
    pub use ::traffic::program::BadProgram;
    #[doc(inline)]
    pub use ::traffic::templates::{Addresses, NotTaken};
    #[doc(inline)]
    pub use ::traffic::values::{Run, Runs};
}

/// Rates and other quantities, as people write them.
pub mod rate {
    #[doc(inline)]
    pub use ::traffic::rate::{
        BadQuantity, Context, Exact, NoSchedule, Rate, parse_count, parse_duration, parse_speed,
    };
}

/// Scenario files (docs/scenarios.md) to programs.
pub mod scenario {
    #[doc(inline)]
    pub use ::scenario::{
        Compiled, Context, FlowClass, FlowPlan, Scenario, ScenarioError, Sign, Unresolved, parse,
    };
}

/// Rates that vary, by a law or by chance, as people write them and as schedules.
pub mod shape {
    #[doc(inline)]
    pub use ::traffic::shape::{BadShape, CYCLES_BITS, EXACT_AFTER_BITS, Onward, Shape, Shaped, WRITTEN};
}

/// When frames are due.
pub mod schedule {
    #[doc(inline)]
    pub use ::traffic::schedule::{Cursor, Position, Schedule, Speed, Step};
}
