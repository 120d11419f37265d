//! Clients and servers that speak netperf's protocol.
