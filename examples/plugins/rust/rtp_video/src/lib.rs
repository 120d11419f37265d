//! Video over RTP (RFC 3550): a plugin of the frames world. Packets of a picture share a time stamp, its last one has the marker,
//! and pictures differ in size as an encoder makes them: large ones that stand alone, small ones between. No scenario says that.

use plugin_sdk::{Example, Fault, Frame, Frames, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// What may be set.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Sender of the first channel; each channel has the next address.
    source: Ipv4Addr,
    /// Receiver of the first channel; each channel has the next address.
    destination: Ipv4Addr,
    /// Number of channels; their packets take turns.
    #[schemars(range(min = 1, max = 65536))]
    channels: u32,
    /// Pictures from one that stands alone to the next.
    #[schemars(range(min = 1, max = 300))]
    group: u32,
    /// Packets of a picture that stands alone.
    #[schemars(range(min = 1, max = 500))]
    key_packets: u32,
    /// Packets of any other picture.
    #[schemars(range(min = 1, max = 500))]
    other_packets: u32,
    /// Bytes of payload of a full packet; a picture's last one has half of it.
    #[schemars(range(min = 64, max = 1400))]
    payload: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            source: Ipv4Addr::new(198, 18, 0, 1),
            destination: Ipv4Addr::new(198, 19, 0, 1),
            channels: 16,
            group: 25,
            key_packets: 40,
            other_packets: 6,
            payload: 1316,
        }
    }
}

/// Bytes of Ethernet, IPv4, UDP and RTP headers.
const HEADERS: usize = 14 + 20 + 8 + 12;

/// The plugin, opened.
#[derive(Debug)]
pub struct RtpVideo {
    options: Options,
    /// A frame with all that does not vary.
    template: Vec<u8>,
    /// The sum of the IPv4 header but for length and addresses.
    header_sum: u32,
}

/// A packet's place in its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    picture: u64,
    last: bool,
}

impl RtpVideo {
    /// Packet `k` of a channel: the groups before it are reckoned, not walked.
    fn place(&self, k: u64) -> Place {
        let (key, other) = (u64::from(self.options.key_packets), u64::from(self.options.other_packets));
        let pictures = u64::from(self.options.group);
        let of_group = key + (pictures - 1) * other;
        let (group, within) = (k / of_group, k % of_group);
        let (picture, last) = if within < key {
            (0, within + 1 == key)
        } else {
            (1 + (within - key) / other, (within - key) % other + 1 == other)
        };
        Place { picture: group * pictures + picture, last }
    }
}

fn put16(frame: &mut [u8], at: usize, value: u16) {
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn put32(frame: &mut [u8], at: usize, value: u32) {
    if let Some(place) = frame.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn words(value: u32) -> u32 {
    (value >> 16) + (value & 0xffff)
}

impl Frames for RtpVideo {
    type Options = Options;
    const NAME: &'static str = "rtp_video";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const ABOUT: &'static str = "Channels of video over RTP: bursts of packets for pictures that stand alone, few for others, time stamps and markers as a receiver expects them.";

    fn examples() -> Vec<Example> {
        vec![
            Example::new("16 channels", serde_json::json!({})),
            Example::new("1,000 channels of small pictures", serde_json::json!({
                "channels": 1000, "key_packets": 8, "other_packets": 1, "payload": 700
            })),
        ]
    }

    fn open(options: Options, _: &Run) -> Result<RtpVideo, Fault> {
        if options.channels == 0 || options.group == 0 || options.key_packets == 0 || options.other_packets == 0 {
            return Err(Fault::new("numbers of channels, pictures and packets are 1 at least"));
        }
        let last = u32::from(options.destination).checked_add(options.channels);
        if last.is_none() || u32::from(options.source).checked_add(options.channels).is_none() {
            return Err(Fault::at("/channels", "there are not so many addresses"));
        }
        let mut template = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        // Version and length, DSCP AF41, identification 0, DF, time to live 64, UDP.
        template.extend([0x45, 34 << 2, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // Ports, length, no checksum; RTP version 2, payload type 33.
        template.extend([0x13, 0x88, 0x13, 0x8a, 0, 0, 0, 0, 0x80, 33]);
        template.resize(HEADERS + usize::from(options.payload), 0x47);
        let header_sum = 0x4500 + (34 << 2) + 0x4000 + (64 << 8) + 17;
        Ok(RtpVideo { options, template, header_sum })
    }

    fn longest(&self) -> u16 {
        HEADERS as u16 + self.options.payload
    }

    fn frame(&self, n: u64, frame: &mut Frame<'_>) {
        let channels = u64::from(self.options.channels);
        let (channel, k) = ((n % channels) as u32, n / channels);
        let place = self.place(k);
        let payload = if place.last { self.options.payload / 2 } else { self.options.payload };
        let length = HEADERS + usize::from(payload);
        frame.put(self.template.get(..length).unwrap_or_default());
        let bytes = frame.bytes();
        let total = (length - 14) as u16;
        let source = u32::from(self.options.source).wrapping_add(channel);
        let destination = u32::from(self.options.destination).wrapping_add(channel);
        let mut sum = self.header_sum + u32::from(total) + words(source) + words(destination);
        sum = words(words(sum));
        put16(bytes, 16, total);
        put16(bytes, 24, !(sum as u16));
        put32(bytes, 26, source);
        put32(bytes, 30, destination);
        put16(bytes, 38, total - 20);
        put16(bytes, 42, 0x8021 | u16::from(place.last) << 7);
        put16(bytes, 44, k as u16);
        // 25 pictures a second of a clock of 90 kHz.
        put32(bytes, 46, (place.picture * 3600) as u32);
        put32(bytes, 50, channel + 1);
    }
}

plugin_sdk::export_frames!(RtpVideo);

#[cfg(test)]
mod tests {
    use super::*;
    use plugin_sdk::testing;
    use serde_json::json;

    #[test]
    fn it_describes_itself_and_frames_are_functions_of_their_number() {
        testing::check_frames::<RtpVideo>();
    }

    #[test]
    fn pictures_have_their_packets_marker_and_time() {
        let video: RtpVideo =
            testing::open(&json!({ "channels": 1, "group": 3, "key_packets": 4, "other_packets": 2, "payload": 100 }));
        let seen: Vec<(u32, bool, usize)> = (0..9)
            .map(|n| {
                let bytes = testing::frame(&video, n);
                let time = u32::from_be_bytes([bytes[46], bytes[47], bytes[48], bytes[49]]);
                (time / 3600, bytes[43] & 0x80 != 0, bytes.len() - HEADERS)
            })
            .collect();
        let full = |picture| (picture, false, 100);
        let last = |picture| (picture, true, 50);
        assert_eq!(seen, [full(0), full(0), full(0), last(0), full(1), last(1), full(2), last(2), full(3)]);
    }

    #[test]
    fn the_header_sum_is_right() {
        let video: RtpVideo = testing::open(&json!({ "channels": 300 }));
        for n in [0, 1, 299, 300, 12_345_678] {
            let bytes = testing::frame(&video, n);
            let sum: u32 = bytes[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
            assert_eq!((sum >> 16) + (sum & 0xffff), 0xffff, "frame {n}");
        }
    }
}
