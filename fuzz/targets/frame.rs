//! Any bytes as a frame: finding its layers and flow, and showing it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::LinkType;
use wire::flow::FlowKey;
use wire::layers::Layers;

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
});
