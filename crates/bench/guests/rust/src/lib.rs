//! UDP datagrams of 60 bytes whose source address and port follow from the frame's number.

use plugin_sdk::{Fault, Frame, Frames, Run};
use schemars::JsonSchema;
use serde::Deserialize;

/// None.
#[derive(Deserialize, JsonSchema)]
pub struct Options {}

/// The frame that the others are made of.
pub struct Ports([u8; 60]);

impl Frames for Ports {
    type Options = Options;
    const NAME: &'static str = "ports_rust";
    const VERSION: &'static str = "1";
    const ABOUT: &'static str = "Datagrams from many addresses and ports.";

    fn open(_: Options, _: &Run) -> Result<Ports, Fault> {
        let mut frame = [0; 60];
        let head = [
            2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 198, 18,
            0, 2, 4, 0, 0, 9, 0, 26,
        ];
        frame[..head.len()].copy_from_slice(&head);
        Ok(Ports(frame))
    }

    fn longest(&self) -> u16 {
        60
    }

    fn frame(&self, n: u64, into: &mut Frame<'_>) {
        let mut frame = self.0;
        frame[28..30].copy_from_slice(&(n as u16).to_be_bytes());
        frame[34..36].copy_from_slice(&((1024 + n % 64_512) as u16).to_be_bytes());
        let words = frame[14..34].chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
        let sum = words.sum::<u32>();
        let folded = (sum >> 16) + (sum & 0xffff);
        frame[24..26].copy_from_slice(&(!((folded >> 16) + folded) as u16).to_be_bytes());
        into.put(&frame);
    }
}

plugin_sdk::export_frames!(Ports);
