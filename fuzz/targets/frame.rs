//! Any bytes as a frame: finding its layers and flow, showing it, and replaying it with other addresses and a
//! signature, which must leave its checksums as right or wrong as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use traffic::executor::{Executor, Slab};
use traffic::program::{Program, Stream};
use traffic::templates::Templates;
use wire::LinkType;
use wire::checksum::{fold, sum};
use wire::flow::FlowKey;
use wire::layers::Layers;
use wire::signature::Signature;

const LINKS: [LinkType; 10] = [
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::NULL,
    LinkType::LOOP,
    LinkType::C_HDLC,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::IEEE802_11,
];

// The first byte chooses the link type, the rest is the frame.
fuzz_target!(|bytes: &[u8]| {
    let Some((&link, frame)) = bytes.split_first() else { return };
    let link = LINKS[usize::from(link) % LINKS.len()];
    let layers = Layers::parse(link, frame);
    if let Some(key) = FlowKey::of(&layers, frame).key() {
        assert_eq!(key.reversed().reversed(), key);
        assert_eq!(key.conversation(), key.reversed().conversation());
    }
    assert!(!wire::show::show(link, frame).is_empty());
    if link == LinkType::ETHERNET {
        replay(frame, &layers);
    }
});

const PASSES: usize = 3;

fn replay(frame: &[u8], layers: &Layers) {
    let mut templates = Templates::new();
    if templates.push(LinkType::ETHERNET, frame).is_err() {
        return;
    }
    let signable = templates.number_signable() == 1;
    let stream = Stream { templates, unique_addresses: true, ..Stream::of("fuzz", frame) };
    for signature in [None, Some(3)] {
        let signed = signature.is_some() && signable;
        let program = Program::single(Stream { signature, ..stream.clone() });
        let Ok(mut executor) = Executor::new(&program) else { return };
        let mut slab = Slab::new(PASSES, frame.len());
        assert_eq!(executor.render(&mut slab.buffers(), PASSES, || 9), PASSES);
        for pass in 0..PASSES {
            let sent = slab.frame(pass);
            assert_eq!(sent.len(), frame.len());
            if signed {
                let found = Signature::at_end_of(sent);
                assert_eq!(found, Some(Signature { stream: 3, sequence: pass as u64, time: 9 }));
                let l4 = layers.l4_offset.expect("only what has a transport header is signed");
                // A UDP checksum of zero is none, and stays none.
                if layers.ip_protocol != Some(17) || frame[l4 + 6..l4 + 8] != [0, 0] {
                    assert_eq!(total(sent, l4), total(frame, l4));
                }
            } else {
                assert_eq!(total(sent, layers.l3_offset), total(frame, layers.l3_offset));
                assert!(pass != 0 || sent == frame, "the first pass is the capture itself");
            }
        }
    }
}

/// The one's complement sum of what stands behind `from`; 0 and 0xffff are the same number.
fn total(frame: &[u8], from: usize) -> u16 {
    fold(sum(frame.get(from..).unwrap_or_default())) % 0xffff
}
