//! Clients and servers that speak iperf3's protocol.
