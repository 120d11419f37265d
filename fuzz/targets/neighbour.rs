//! Any bytes as the answer of a neighbour (ARP, neighbour discovery).
#![no_main]
#![allow(dead_code, reason = "a part of a crate, without its sockets")]

#[path = "../../crates/port/src/resolve/message.rs"]
mod message;

/// As in `port::resolve`, which the part names.
type Mac = [u8; 6];

use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;

fuzz_target!(|bytes: &[u8]| {
    for target in ["10.0.0.2", "2001:db8::2"] {
        let target: IpAddr = target.parse().expect("an address");
        if let Some(mac) = message::answer(bytes, target) {
            // It stands in the frame, and is taken from nowhere else.
            assert!(bytes.windows(6).any(|window| window == mac));
        }
    }
});
