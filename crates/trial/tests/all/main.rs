//! Searches on simulated devices.

mod ahead;
mod device;
mod ended;
mod mlrsearch_library;
mod searches;
mod stalls;
