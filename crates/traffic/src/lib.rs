//! What to send: packet expressions, packet programs, schedules, and the Rust executor. No I/O.
//!
//! Everything that can be sent is compiled to one form, a [`Program`]: front ends (an expression, a capture, a
//! scenario file, a plugin) only produce one, engines only run one. Frame *n* (its bytes, its length and its departure
//! time) is a pure function of *n*, so that any number of cores can take disjoint ranges, a run can be repeated bit
//! for bit, and a receiver that knows the program knows every frame.
//!
//! * [`program`]: the form itself.
//! * [`values`], [`lengths`]: what varies, and by which law.
//! * [`templates`]: the bytes that do not.
//! * [`schedule`]: when each frame leaves. [`rate`]: what people write for it. [`fraction`]: both in lowest terms.
//! * [`shape`]: rates that vary, by a law or by chance.
//! * [`walk`]: whose frame comes next when several lanes run side by side.
//! * `share`: the same program for several cores ([`Program::share`]). `ports`: programs of several ports as one.
//! * [`endings`]: what a receiver can check of a frame.
//! * [`faults`]: shares of frames, cycles and distances, as people write what a device does to frames.
//! * [`executor`]: frame *n* into a buffer; patches only what changed when the buffer already holds the template.
//! * [`expr`]: the packet expression language.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod endings;
pub mod executor;
pub mod expr;
pub mod faults;
pub mod fraction;
pub mod lengths;
mod ports;
pub mod program;
pub mod rate;
pub mod schedule;
pub mod shape;
mod share;
pub mod templates;
pub mod values;
pub mod walk;

pub use endings::Ending;
pub use executor::{Buffers, Executor, Slab};
pub use lengths::Lengths;
pub use program::{Crc, Field, Lane, LengthField, Program, Stream, Sum};
pub use rate::Rate;
pub use schedule::{Schedule, Step};
pub use shape::Shape;
pub use templates::Templates;
pub use values::Values;
pub use walk::Walk;
