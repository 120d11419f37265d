//! Look-alikes of captures, from statistics alone.
//!
//! ```text
//!   frames --Measure--> FlowProfile (numbers only; a JSON file) --Like--> other frames with the same numbers
//!                            '---------- Agreement ----------'
//! ```
//!
//! A [`FlowProfile`] has no address and no payload of the capture it was measured from. It says how many conversations there
//! were of each kind (IP version, protocol, server port, tags), of how many frames and how long, how large their frames were by
//! direction and place in the conversation, and how far apart frames came. [`Like`] deals these numbers out to conversations of
//! its own, without replacement: so what a profile counts comes out in the same number, whatever the seed.
//!
//! Not imitated: payload, what tunnels carry, IP options and extension headers, fragments other than their number, damaged
//! checksums, and who talks to whom beyond the number of hosts in each role.

mod agree;
mod distribution;
mod measure;
mod packet;
mod plan;
mod play;
mod profile;

pub use agree::{Agreement, Row, Share};
pub use distribution::Distribution;
pub use measure::{CONVERSATIONS, Measure, Seen};
pub use play::Like;
pub use profile::{
    BadProfile, Blocks, Bounds, FlowProfile, Hosts, Interval, Kind, Other, SCHEMA, Shape, Sizes, Tags, What,
};
