//! Capture files: reading and writing pcap and pcapng, and what a capture holds.
