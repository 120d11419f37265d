//! iperf3's protocol: parameters and results as JSON, states as single bytes.
