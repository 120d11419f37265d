//! The kernel's protocol and interface counters: snapshots of them, and what changed between two.
