//! Why nothing can be played.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why connections cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] capture::CaptureError),
    /// There is no TCP in it.
    #[error(
        "no TCP connection in it{}: `netdyno info` says what it has",
        if *fragments > 0 { " (only IP fragments of TCP packets, which are not put together)" } else { "" }
    )]
    NoTcp {
        /// IP fragments that may have held some.
        fragments: u64,
    },
    /// It has no such connection.
    #[error(
        "no TCP connection {which} in it: it has {total}, numbered 0 to {last} as Wireshark's tcp.stream; \
         `tshark -r FILE -q -z conv,tcp` lists them"
    )]
    NoSuchFlow {
        /// What was asked for.
        which: String,
        /// How many it has.
        total: u64,
        /// The number of the last one.
        last: u64,
    },
    /// It does not fit into memory.
    #[error("connection {which} takes more than {} MiB of memory: cut the capture, or choose one with `.flow`", most >> 20)]
    TooLarge {
        /// Which connection.
        which: String,
        /// The most that is taken, in bytes.
        most: usize,
    },
    /// It cannot be played from that address.
    #[error(
        "{address} is not an address of this host's {interface}, and {reason}: give another with `.from`"
    )]
    NoSource {
        /// The interface.
        interface: String,
        /// The address.
        address: IpAddr,
        /// Why not.
        reason: &'static str,
    },
    /// This host uses the port.
    #[error("port {port} of {from} is in use on this host: give another with `.port`, or `.port` random")]
    PortInUse {
        /// The port.
        port: u16,
        /// The address.
        from: IpAddr,
    },
    /// Two connections would be the same.
    #[error("two connections would both be {from} to {to}: give `.port` random")]
    SameEnds {
        /// The client's end.
        from: SocketAddr,
        /// The server's end.
        to: SocketAddr,
    },
    /// It is not permitted.
    #[error("{what} is not permitted: run with sudo, or give CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")]
    Permission {
        /// What.
        what: &'static str,
    },
    /// This host's kernel cannot be kept from answering.
    #[error(
        "this host would reset the connection, because its stack knows nothing of it, and the kernel does not take the \
         program that keeps the server's segments from it ({reason}). It needs Linux 6.6 or newer (tcx); without it give \
         an unused address of the network with `.from` ADDRESS, which is answered for here"
    )]
    NoGuard {
        /// Why.
        reason: String,
    },
    /// The system refused.
    #[error("{what} on {interface}: {source}")]
    Io {
        /// What.
        what: &'static str,
        /// Where.
        interface: String,
        /// What it says.
        source: io::Error,
    },
}
