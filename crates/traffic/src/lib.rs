//! What to send: packet expressions, packet programs, schedules, and the Rust executor. No I/O.
