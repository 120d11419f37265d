//! What a capture holds: [`summarise`] reads it once and gives an [`Info`], for `netdyno info`, as JSON or text.
//!
//! One frame costs one walk over its headers and one look into the set of flows. Memory grows with the number of
//! flows and addresses, up to a stated limit; beyond it the counts are lower bounds and say so.

mod names;
mod summary;
mod text;

use serde::Serialize;

pub use summary::{FLOW_LIMIT, Summary, server_port};

use crate::{CaptureError, Notes, Reader};

/// What a capture holds. Field names of the JSON form are relied upon by others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    /// Name of the file.
    pub file: String,
    /// Its length on the disk, compressed if it is; not for pipes.
    pub file_bytes: Option<u64>,
    /// "pcap, little-endian, microseconds, gzip".
    pub format: String,
    /// Where frames were captured, in the file's order.
    pub interfaces: Vec<InterfaceInfo>,
    /// Frames.
    pub frames: u64,
    /// Bytes on the wire by the frames' original lengths, without FCS (unless the capture has it).
    pub bytes: u64,
    /// Bytes that are in the file.
    pub captured_bytes: u64,
    /// From the earliest to the latest frame.
    pub duration_ns: u64,
    /// Earliest time, in nanoseconds since 1970.
    pub first_time_ns: Option<u64>,
    /// Latest time.
    pub last_time_ns: Option<u64>,
    /// Earliest time in words (RFC 3339).
    pub first_time: Option<String>,
    /// Latest time in words.
    pub last_time: Option<String>,
    /// Frames over duration; none if there is no duration.
    pub frames_per_second: Option<f64>,
    /// Bits of layer 2 over duration, without FCS.
    pub bits_per_second: Option<f64>,
    /// Mean original length.
    pub mean_frame_bytes: Option<f64>,
    /// Smallest original length.
    pub smallest_frame_bytes: Option<u64>,
    /// Largest original length.
    pub largest_frame_bytes: Option<u64>,
    /// Sizes in the classes of RFC 2819 (etherStats), which count the FCS: a frame with 60 bytes here is in "64".
    /// Frames of other link types are counted with the bytes they have.
    pub sizes_with_fcs: Vec<SizeClass>,
    /// Unidirectional flows: addresses, protocol and ports (ICMP: type and code), as tcpreplay counts them.
    pub flows: u64,
    /// False if there were more flows than are kept track of: then `flows`, `conversations` and `addresses` are
    /// lower bounds.
    pub flows_exact: bool,
    /// Flows with both directions taken together.
    pub conversations: u64,
    /// Frames that belong to no flow, and why.
    pub frames_without_flow: FramesWithoutFlow,
    /// Unique addresses of the outermost IP header.
    pub addresses: Addresses,
    /// Frames and bytes by protocol, for each layer the largest first.
    pub protocols: Vec<Protocol>,
    /// Frames and bytes by server port, the largest first, at most [`MAX_PORTS`]. The server's is the port with a
    /// known service, or else the lower one.
    pub ports: Vec<Port>,
    /// How many different server ports there are.
    pub distinct_ports: u64,
    /// What is odd about the file.
    pub notes: Notes,
    /// What the user should know, in sentences.
    pub warnings: Vec<String>,
}

/// Entries in [`Info::ports`].
pub const MAX_PORTS: usize = 20;

/// An interface of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceInfo {
    /// Its name, if the file tells.
    pub name: Option<String>,
    /// Name of the link type.
    pub link: String,
    /// Number of the link type.
    pub link_number: u16,
    /// Its speed.
    pub bits_per_second: Option<u64>,
    /// The most bytes captured of a frame; 0 for no limit.
    pub snap_length: u32,
    /// Its frames.
    pub frames: u64,
}

/// One class of frame sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// Smallest size.
    pub from: u32,
    /// Largest size; none for the last class.
    pub to: Option<u32>,
    /// Frames.
    pub frames: u64,
}

/// Why frames belong to no flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FramesWithoutFlow {
    /// Not IP.
    pub not_ip: u64,
    /// Later IP fragments, which have no ports.
    pub later_fragments: u64,
    /// IP, but cut off before the ports.
    pub cut_off: u64,
}

/// How many unique addresses there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// IPv4 sources.
    pub ipv4_sources: u64,
    /// IPv4 destinations.
    pub ipv4_destinations: u64,
    /// IPv6 sources.
    pub ipv6_sources: u64,
    /// IPv6 destinations.
    pub ipv6_destinations: u64,
}

/// Where a protocol stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Tags and labels before the network layer. A frame may count in several.
    Tag,
    /// The network layer: each frame counts in one.
    Network,
    /// Behind IP: each IP frame counts in one.
    Transport,
}

/// A protocol's share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Protocol {
    /// Its layer.
    pub layer: Layer,
    /// Its name.
    pub name: String,
    /// Frames.
    pub frames: u64,
    /// Their original lengths added up.
    pub bytes: u64,
}

/// A server port's share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// "tcp" or "udp".
    pub transport: &'static str,
    /// The number.
    pub port: u16,
    /// The service that usually has it.
    pub name: Option<&'static str>,
    /// Frames.
    pub frames: u64,
    /// Their original lengths added up.
    pub bytes: u64,
}

/// Reads a capture to its end and says what it holds.
///
/// # Errors
/// The file cannot be read, or is damaged; a lenient reader says only what cannot be read.
pub fn summarise(reader: &mut Reader) -> Result<Info, CaptureError> {
    let mut summary = Summary::new(FLOW_LIMIT);
    while let Some(record) = reader.next_record()? {
        summary.add(&record);
    }
    Ok(summary.finish(reader))
}
