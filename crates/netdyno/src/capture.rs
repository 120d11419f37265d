//! Capture files, read and written: pcap and pcapng, plain, gzip or (Cargo feature `zstd`) zstd.

#[doc(inline)]
pub use ::capture::{
    CaptureError, Compression, Container, Fault, FileFormat, FileWriter, Format, Interface, MAX_CAPTURED,
    Notes, Output, Patience, Place, Reader, Record, Section, Statistics, Writer,
};

/// What a capture holds.
pub mod info {
    #[doc(inline)]
    pub use ::capture::info::{
        Addresses, FramesWithoutFlow, Info, InterfaceInfo, Layer, Port, Protocol, SizeClass, Summary,
        summarise,
    };
}
