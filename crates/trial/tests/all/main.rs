//! Searches on simulated devices.

mod device;
mod mlrsearch_library;
mod searches;
mod stalls;
