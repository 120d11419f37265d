//! Measures what arrives: counts, sizes, sequence and latency per stream, in XDP or over a packet socket.
