//! Searches for what a device under test can do: which trial to do next, and what the outcomes come to.
//!
//! ```text
//!              Wanted (a load, for how long)
//!    Search  --------------------------------->  whoever runs trials: the binary, or a simulated device
//!            <---------------------------------
//!              Outcome (sent, received, latency)
//! ```
//!
//! No I/O, no clock: a search is a function of the outcomes that it was told, so it runs on simulated devices in tests, and
//! goes on from a file of outcomes ([`resume`]). What a load is (frames per second, flows, the length of a burst) is the
//! caller's matter.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod again;
pub mod ahead;
pub mod bisect;
pub mod burst;
pub mod climb;
pub mod confirmed;
pub mod ethernet;
pub mod limits;
pub mod loss_curve;
pub mod mlr;
pub mod parts;
pub mod repeated;
pub mod search;
pub mod so_far;
pub mod stats;
pub mod sweep;
pub mod trial;
mod unjudged;

pub use again::{Again, Bounded, Policy, bounded};
pub use ahead::{Ahead, Remaining};
pub use bisect::{Bisect, BisectPlan, Direction, Resolution};
pub use burst::{BufferTime, Burst, BurstPlan, buffer_time};
pub use climb::{Climb, ClimbPlan};
pub use confirmed::{Confirmed, ConfirmedPlan, Raise};
pub use limits::{Broken, Delay, Delays, Judged, Limits};
pub use loss_curve::{LossCurve, LossCurvePlan};
pub use mlr::{Goal, MlrSearch};
pub use parts::{Look, Parts, parts};
pub use repeated::{LatencyFound, Repeated, RepeatedPlan};
pub use search::{Done, Left, NotThisSearch, Search, resume, run};
pub use so_far::{Shown, SoFar, Tried, so_far};
pub use stats::Spread;
pub use sweep::{Sure, Sweep, SweepPlan};
pub use trial::{Device, FrameToFrame, Latency, Outcome, Stage, Then, Wanted};
