//! What a stream's frames have directly before their signatures, as far as it does not vary: what a receiver can check
//! although a device under test may change headers. Only payload is told of.

use crate::lengths::Lengths;
use crate::program::Stream;
use std::collections::BTreeSet;
use wire::LinkType;
use wire::layers::Layers;
use wire::numbers::protocol;
use wire::proto::sctp;
use wire::signature;

/// Frames of more lengths than this are told of together.
const MOST_LENGTHS: usize = 7;

/// The bytes before the signature in frames of one length, or of any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The frame's length; `None`: whatever it is.
    pub length: Option<u32>,
    /// In order, the last one directly before the signature. None if all vary or are headers.
    pub bytes: Vec<u8>,
}

impl Stream {
    /// The endings of its frames by their lengths, then one for frames whose length a device has changed: as many
    /// bytes as all lengths have alike. Nothing is told of captures, where each frame has an ending of its own, nor of
    /// frames that are not signed.
    pub fn endings(&self) -> Vec<Ending> {
        if self.signature.is_none() || self.templates.is_captured() || self.templates.len() != 1 {
            return Vec::new();
        }
        let image = self.templates.get(0);
        let from = self.payload_that_stays(image);
        let ending = |length: u32| {
            let end = (length as usize).saturating_sub(signature::LEN).min(image.len());
            image.get(from..end).unwrap_or_default()
        };
        let lengths: BTreeSet<u32> = match &self.lengths {
            Lengths::Template => [image.len() as u32].into(),
            Lengths::Fixed(length) => [*length].into(),
            Lengths::List(items) => items.iter().copied().collect(),
            Lengths::Random { min, max, .. } => (*min..=*max).collect(),
        };
        let all = lengths.iter().map(|length| ending(*length));
        let common = all.reduce(|a, b| {
            let alike = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
            &a[a.len() - alike..]
        });
        let known = lengths.iter().take(if lengths.len() > MOST_LENGTHS { 0 } else { MOST_LENGTHS });
        let mut endings: Vec<Ending> =
            known.map(|length| Ending { length: Some(*length), bytes: ending(*length).to_vec() }).collect();
        endings.push(Ending { length: None, bytes: common.unwrap_or_default().to_vec() });
        endings
    }

    /// The first byte behind all headers that are known, and all that varies.
    fn payload_that_stays(&self, image: &[u8]) -> usize {
        let layers = Layers::parse(LinkType::ETHERNET, image);
        let behind = match (layers.l4_offset, layers.ip_protocol) {
            (Some(l4), Some(6)) => {
                l4 + image.get(l4 + 12).map_or(20, |words| usize::from(words >> 4).max(5) * 4)
            }
            (Some(l4), Some(protocol::SCTP)) => l4 + sctp::payload(image.get(l4..).unwrap_or_default()),
            (Some(l4), _) => l4 + 8,
            (None, _) => layers.l3_offset,
        };
        let fields = self.fields.iter().map(|field| field.range().end);
        let lengths = self.length_fields.iter().map(|field| field.offset as usize + 2);
        let sums = self.sums.iter().map(|sum| sum.offset as usize + 2);
        let crc = self.crc.iter().map(|crc| crc.offset as usize + 4);
        fields.chain(lengths).chain(sums).chain(crc).fold(behind, usize::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use crate::executor::{Executor, Slab};
    use crate::expr::{self, Options};

    fn program(text: &str, size: Option<&str>) -> Program {
        let size = size.map(|size| size.parse().expect("a size"));
        let options = Options { signature: Some(0), size, ..Options::default() };
        expr::compile(text, &options).expect("an expression")
    }

    #[test]
    fn every_frame_has_its_ending_before_its_signature() {
        for (text, size) in [
            ("ipv4(src=10.0.0.0/8)/udp(sport=1..9)/raw(\"some words that stay\")", Some("200")),
            ("ipv4/udp/raw(\"some words that stay\")", Some("84,128,1500")),
            ("ipv6/tcp/raw(\"words\")", Some("120..140")),
            ("vlan/ipv4/udp", Some("random(70..1500)")),
            ("ipv4/sctp(sport=1..9)/sctpdata(tsn=0..99)/raw(\"some words that stay\")", Some("150,700")),
            ("ipv6/sctp/raw(\"words\")", Some("150")),
            ("ether(type=0x88b5)", Some("100")),
            ("ipv4/udp(dport=4789)/vxlan/ether/ipv4(ttl=1..9)/udp", Some("128,600,1518")),
        ] {
            let program = program(text, size);
            let endings = program.streams[0].endings();
            let any = endings.last().expect("one for any length");
            assert_eq!(any.length, None);
            let mut executor = Executor::new(&program).expect("a program");
            let mut slab = Slab::new(1, program.longest() as usize);
            for _ in 0..500 {
                executor.render(&mut slab.buffers(), 1, || 7);
                let frame = slab.frame(0);
                let before = &frame[..frame.len() - signature::LEN];
                let own = endings.iter().find(|ending| ending.length == Some(frame.len() as u32));
                for ending in own.into_iter().chain([any]) {
                    assert!(before.ends_with(&ending.bytes), "{text}: {} bytes", frame.len());
                }
            }
        }
    }

    #[test]
    fn endings_are_all_of_the_payload_that_does_not_vary() {
        let lengths = |text, size| -> Vec<(Option<u32>, usize)> {
            let endings = program(text, size).streams[0].endings();
            endings.into_iter().map(|ending| (ending.length, ending.bytes.len())).collect()
        };
        // 100 bytes with FCS are 96: less 42 of headers and 18 of signature.
        assert_eq!(lengths("ipv4/udp", Some("100")), [(Some(96), 36), (None, 36)]);
        assert_eq!(lengths("ipv4/udp", Some("64,100")), [(Some(60), 0), (Some(96), 36), (None, 0)]);
        // SCTP's header and that of a DATA chunk have 28.
        assert_eq!(lengths("ipv4/sctp/sctpdata", Some("100")), [(Some(96), 16), (None, 16)]);
        assert_eq!(lengths("ipv4/sctp/raw(hex=\"01\")", Some("100")), [(Some(96), 32), (None, 32)]);
        assert_eq!(lengths("ipv4/udp", Some("random(70..1500)")), [(None, 6)]);
    }
}
