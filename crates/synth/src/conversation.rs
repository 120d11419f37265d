//! Who talks to whom, and one frame of it: what the plan draws and the frames are made from.

use crate::application::Application;
use crate::random::{For, Key};

/// Shortest Ethernet frame, without FCS.
pub const MINIMUM: u16 = 60;
/// Longest, with an MTU of 1500.
pub const FULL: u16 = 1514;
/// Where UDP payload begins.
pub const UDP_PAYLOAD: u16 = 14 + 20 + 8;
/// Fewest payload bytes of a TCP segment that carries any.
pub const LEAST_DATA: u16 = 24;
/// Fewest payload bytes of a side's first: room for a protocol's opening.
pub const LEAST_FIRST_DATA: u16 = 112;

/// TCP flags (RFC 9293 section 3.1).
pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;

/// One frame to come.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Nanoseconds after the first frame.
    pub time: u64,
    /// Index of the conversation; numbers beyond the last are ARP frames.
    pub source: u32,
    /// Bytes in the frame.
    pub length: u16,
    /// TCP flags; zero for UDP.
    pub flags: u8,
    /// From the server to the client.
    pub back: bool,
}

/// Two hosts, their ports, and how far their talk has come.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub client: u32,
    pub server: [u8; 4],
    pub client_port: u16,
    pub application: Application,
    /// The client's system uses TCP time stamps (RFC 7323).
    pub timestamps: bool,
    /// Nobody answers.
    pub one_way: bool,
    /// Its number, for what is drawn while frames are made.
    pub number: u32,
    /// Payload bytes that each side will send in all: the client's, the server's.
    pub total: [u64; 2],
    /// Payload bytes each side has sent.
    pub sent: [u64; 2],
    /// Next sequence number of each side.
    pub sequence: [u32; 2],
    /// Time stamp clock of each side when the capture begins, and the value it said last.
    pub clock: [u32; 2],
    pub said: [u32; 2],
}

/// A trait of the client's operating system: Windows does not send time stamps, the others do.
pub fn uses_timestamps(key: Key, client: u32) -> bool {
    key.unit(For::Traits, u64::from(client)) < 0.45
}
