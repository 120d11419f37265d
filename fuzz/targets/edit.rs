//! Any frame of any link type through any plan of edits: nothing panics, and checksums that were right stay right.
#![no_main]

use edit::rewrite::{
    FixLength, Frame, Fuzz, MacScramble, NewHeader, PerSide, Plan, PortMap, Side, Ttl, Verdict, Vlan,
    address_map, edit, port_map,
};
use libfuzzer_sys::fuzz_target;
use wire::layers::{Fragment, L3, Layers};
use wire::{LinkType, Mac};

const LINKS: [u16; 18] = [1, 0, 9, 12, 50, 101, 104, 105, 108, 113, 119, 127, 163, 178, 192, 228, 229, 276];

/// Bit n of the first four bytes: whether edit n is done, and how.
fn plan(bits: u32) -> Plan {
    let on = |n: u32| bits >> n & 1 == 1;
    let mac = |last| PerSide::both(Mac([2, 0, 0, 0, 0, last]));
    let mut ports = PortMap::default();
    if on(0) {
        port_map("0-1023:7,8080+53:80", &mut ports).expect("ports");
    }
    let map = |n| on(n).then(|| address_map("0.0.0.0/1=10.0.0.0/9,::/1=fd00::/37").expect("maps"));
    Plan {
        strip_fcs: on(1),
        // Always there, so that everything can become Ethernet.
        source_mac: mac(1),
        destination_mac: mac(2),
        skip_l2_broadcast: on(2),
        replace_mac: if on(3) { vec![(Mac([2, 0, 0, 0, 0, 1]), Mac([4; 6]))] } else { vec![] },
        scramble_mac: on(4).then(|| MacScramble::new(bits, 3)),
        header: match bits >> 5 & 7 {
            0 => Some(NewHeader::Hdlc { address: 15, control: 0 }),
            1 => Some(NewHeader::PppSerial),
            2 => Some(NewHeader::Raw),
            3 => Some(NewHeader::JuniperEthernet),
            4 => Some(NewHeader::Bytes { client: vec![1; 6], server: vec![] }),
            _ => None,
        },
        vlan: match bits >> 8 & 3 {
            0 => Some(Vlan::Add { id: 5, priority: None, cfi: Some(true), ether_type: 0x88a8 }),
            1 => Some(Vlan::Delete),
            _ => None,
        },
        tos: on(10).then_some(7),
        ttl: on(11).then_some(Ttl::Add(3)),
        traffic_class: on(12).then_some(5),
        flow_label: on(13).then_some(77),
        ports,
        tcp_shift: on(14).then_some(0xffff_0000),
        fuzz: on(15).then(|| Fuzz::new(bits, 1)),
        fix_length: match bits >> 16 & 3 {
            0 => Some(FixLength::Pad),
            1 => Some(FixLength::Truncate),
            _ => None,
        },
        cut_to_mtu: on(18).then_some(60),
        map_source: map(19).unwrap_or_default(),
        map_client: map(20).unwrap_or_default(),
        map_server: map(21).unwrap_or_default(),
        skip_broadcast: on(22),
        scramble_ip: on(23).then_some(bits),
        fix_header_length: on(24),
        fix_checksums: on(25),
        always_group_mac: on(26),
        drop_unsupported: on(27),
        ..Plan::default()
    }
}

/// Whether the checksums of a whole IPv4 packet are right; `None` where there is none to look at.
fn right(link: LinkType, frame: &[u8]) -> Option<bool> {
    let layers = Layers::parse(link, frame);
    let packet = frame.get(layers.l3_offset..)?;
    if layers.l3 != L3::V4 || layers.fragment != Fragment::Whole {
        return None;
    }
    let header = usize::from(packet.first()? & 15) * 4;
    let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    // Padding is nobody's.
    if header < 20 || length != packet.len() || length < header {
        return None;
    }
    let (head, upper) = packet.split_at_checked(header)?;
    let protocol = *head.get(9)?;
    let shortest = match protocol {
        6 => 20,
        17 => 8,
        _ => return None,
    };
    let no_checksum = protocol == 17 && upper.get(6..8)? == [0, 0];
    if upper.len() < shortest || no_checksum {
        return None;
    }
    use wire::checksum::{finish, pseudo_v4, sum};
    let [source, destination] =
        [12, 16].map(|at| head.get(at..).and_then(|rest| rest.first_chunk::<4>().copied()));
    let pseudo = pseudo_v4(source?, destination?, protocol, upper.len());
    Some(finish(sum(head)) == 0 && finish(pseudo + sum(upper)) == 0)
}

fuzz_target!(|bytes: &[u8]| {
    let [link, longer, b0, b1, b2, b3, data @ ..] = bytes else { return };
    let input = LinkType(LINKS[usize::from(*link) % LINKS.len()]);
    let plan = plan(u32::from_le_bytes([*b0, *b1, *b2, *b3]));
    let output = match &plan.header {
        Some(NewHeader::Hdlc { .. }) => LinkType::C_HDLC,
        Some(NewHeader::PppSerial) => LinkType::PPP_SERIAL,
        Some(NewHeader::Raw) => LinkType::RAW,
        Some(NewHeader::JuniperEthernet) => LinkType::JUNIPER_ETHERNET,
        Some(NewHeader::Bytes { .. }) => LinkType(147),
        None if longer & 1 == 1 => LinkType::ETHERNET,
        None => input,
    };
    let side = if longer & 2 == 2 { Side::Client } else { Side::Server };
    let cut = u32::from(longer >> 2);
    let mut frame = Frame { data: data.to_vec(), wire_len: data.len() as u32 + cut, ..Frame::default() };
    let before = right(input, data);
    let verdict = edit(&mut frame, &plan, input, output, side);
    assert!(frame.data.len() <= frame.wire_len as usize);
    // What was cut, by the capture or by an edit, has no checksum that could be right.
    let whole = cut == 0 && plan.cut_to_mtu.is_none() && !plan.strip_fcs;
    if verdict == Verdict::Edited && before == Some(true) && whole {
        assert_ne!(right(output, &frame.data), Some(false), "a right checksum became wrong");
    }
});
