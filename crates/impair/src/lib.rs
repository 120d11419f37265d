//! A device with known faults and a known delay, between two interfaces: to hold what measures devices to a truth, and in
//! the place of netem where the kernel has none.
//!
//! ```text
//!   port::rx::Slots --> bridge::wholes --> Faults::decide --> Queue --> corrupt --> port::packet
//!   (ring, time         (as on the         lost? copied?      (by due   (a bit)     (sendmmsg)
//!    of arrival)         wire)             due when?           time)
//! ```
//!
//! What happens to a frame ([`faults`]) and which one leaves next ([`queue`]) are decided without I/O and without a clock:
//! numbers and times of arrival go in. [`device`] is one direction in a thread of its own. Every frame that arrives is
//! counted once more: by what became of it ([`Did`]). Called by `netdyno impair`, and by labs that have such a device.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod corrupt;
pub mod device;
pub mod faults;
pub mod plan;
pub mod queue;
pub mod random;

pub use device::{DeviceError, Did, Direction, Job, carry};
pub use faults::{Fate, Faults, Passed, Why};
pub use plan::Plan;
pub use queue::Queue;
pub use traffic::faults::{Cycle, Share, Shift};
