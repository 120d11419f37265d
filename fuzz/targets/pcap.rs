//! Any bytes as a pcap file, plain or compressed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| netdyno_fuzz::read_capture(bytes));
