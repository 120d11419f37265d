//! Why nothing can be played.

use std::io;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Capture(#[from] capture::CaptureError),
    #[error(
        "no TCP connection in it{}: `netdyno info` says what it has",
        if *fragments > 0 { " (only IP fragments of TCP packets, which are not put together)" } else { "" }
    )]
    NoTcp { fragments: u64 },
    #[error(
        "no TCP connection {which} in it: it has {total}, numbered 0 to {last} as Wireshark's tcp.stream; \
         `tshark -r FILE -q -z conv,tcp` lists them"
    )]
    NoSuchFlow { which: String, total: u64, last: u64 },
    #[error("connection {which} takes more than {} MiB of memory: cut the capture, or choose one with --flow", most >> 20)]
    TooLarge { which: String, most: usize },
    #[error("{address} is not an address of this host's {interface}, and {reason}: give another with --from")]
    NoSource { interface: String, address: IpAddr, reason: &'static str },
    #[error("port {port} of {from} is in use on this host: give another with --port, or --port random")]
    PortInUse { port: u16, from: IpAddr },
    #[error("two connections would both be {from} to {to}: give --port random")]
    SameEnds { from: SocketAddr, to: SocketAddr },
    #[error("{what} is not permitted: run with sudo, or give CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")]
    Permission { what: &'static str },
    #[error(
        "this host would reset the connection, because its stack knows nothing of it, and the kernel does not take the \
         program that keeps the server's segments from it ({reason}). It needs Linux 6.6 or newer (tcx); without it give \
         an unused address of the network with --from ADDRESS, which is answered for here"
    )]
    NoGuard { reason: String },
    #[error("{what} on {interface}: {source}")]
    Io { what: &'static str, interface: String, source: io::Error },
}
