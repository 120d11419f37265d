//! What yields the frames of a job: programs, and whatever implements [`Frames`].

#[doc(inline)]
pub use ::engine::Overdue;
#[doc(inline)]
pub use ::engine::clock::Clock;
#[doc(inline)]
pub use ::engine::source::{Facts, Frames, Oddities, Seen, Sequence, Source, SourceError};
#[doc(inline)]
pub use ::traffic::executor::{Buffers, NOTHING};
#[doc(inline)]
pub use ::traffic::schedule::Schedule;
