//! Any bytes as the head of an HTTP request. No name that a stranger may have is taken for this host's.
#![no_main]
#![allow(dead_code, reason = "a part of a crate, without its sockets and its screen")]

#[path = "../../crates/gauges/src/metrics/head.rs"]
mod head;

use head::HttpRequest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let own = ["vm.lab.example.org".to_owned()];
    std::hint::black_box(HttpRequest::read(bytes, &own));
    let name: String = String::from_utf8_lossy(bytes).chars().filter(char::is_ascii_alphanumeric).collect();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {name}.example.com\r\n\r\n");
    assert_eq!(HttpRequest::read(request.as_bytes(), &own), HttpRequest::Another);
});
