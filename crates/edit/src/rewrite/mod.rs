//! Editing frames, one pass over a capture: MAC addresses, VLAN tags, IP addresses, ports, lengths, checksums.
//!
//! ```text
//!  capture::Reader --> Frame --> link (addresses, tags) --> ip (headers, ports) --> lengths
//!                                 --> ip (addresses) --> header length --> checksums --> capture::FileWriter
//! ```
//!
//! A [`Plan`] says what to do; [`edit`] does it to one frame and knows no files; [`run`] takes a capture through it.
//! The order of operations and the meaning of seeds are tcprewrite's (of 4.5.5), so that captures come out byte for
//! byte the same where its results are right; docs/compat.md lists where they are not. Checksums are corrected for
//! what changed, so that a wrong one stays wrong unless asked otherwise. Frames are hostile: nothing here panics on
//! what they hold.

mod bytes;
mod fcs;
mod frame;
mod fuzz;
mod group;
mod ip;
mod link;
mod parse;
mod pass;
mod plan;
mod ports;
pub mod random;
mod sums;
#[cfg(test)]
mod tests;
mod uses;

use wire::LinkType;

pub use frame::{Verdict, edit};
pub use fuzz::Fuzz;
pub use link::Lacking;
pub use parse::{BadValue, address_map, endpoints, hex_bytes, mac_pair, mac_replacements, port_map, ttl};
pub use pass::{Fragmenting, Target, Totals, check, run};
pub use plan::{AddressMap, FixLength, MacScramble, NewHeader, PerSide, Plan, Prefix, Side, Ttl, Vlan};
pub use ports::PortMap;
pub use uses::Uses;

/// A frame to edit: the captured bytes, and the length it had on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// What was captured.
    pub data: Vec<u8>,
    /// What was on the wire: more, if the capture cut it.
    pub wire_len: u32,
    /// Written by [`edit`]: what the plan asks of the link header, and it does not have.
    pub lacking: Lacking,
}

/// Why a capture was not edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Reading or writing failed.
    #[error(transparent)]
    Capture(#[from] capture::CaptureError),
    /// Its frames cannot be read.
    #[error(
        "{file} has frames that cannot be edited, of {link}; Ethernet, raw IP, loopback, Linux cooked, Cisco HDLC, PPP, Juniper Ethernet and 802.11 can"
    )]
    UnreadableLink {
        /// The capture.
        file: String,
        /// Their type.
        link: LinkType,
    },
    /// Ethernet headers are to be made, of what?
    #[error("{file} has frames of {link}: to make them Ethernet, give {missing}")]
    MissingMac {
        /// The capture.
        file: String,
        /// Their type.
        link: LinkType,
        /// The addresses.
        missing: &'static str,
    },
    /// Addresses stand in headers that are not edited.
    #[error(
        "{file} has frames of {link}, whose headers have addresses that are not edited there; convert them to Ethernet, where they are"
    )]
    UneditedAddresses {
        /// The capture.
        file: String,
        /// Their type.
        link: LinkType,
    },
    /// One pcap file, two types.
    #[error(
        "{file}, record {record} is of {link}, the first record of {first}: one file has one link type; convert them all to Ethernet"
    )]
    MixedLinks {
        /// The capture.
        file: String,
        /// The record.
        record: u64,
        /// Its type.
        link: LinkType,
        /// The first record's.
        first: LinkType,
    },
    /// The cache file is not of this capture.
    #[error(
        "{cache} says of {frames} frames which side sent them, and {file} has {read}: it is of another capture"
    )]
    OtherCache {
        /// The cache file.
        cache: String,
        /// How many it knows.
        frames: u64,
        /// The capture.
        file: String,
        /// How many it has.
        read: u64,
    },
    /// It was told to stop.
    #[error("stopped: {file} was not written")]
    Stopped {
        /// The output.
        file: String,
    },
    /// A frame would become too many.
    #[error("{file}, record {record}: {why}")]
    Pieces {
        /// The capture.
        file: String,
        /// The record.
        record: u64,
        /// What is too much.
        why: crate::fragment::TooMany,
    },
}
