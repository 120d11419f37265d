//! One frame through the plan.

use wire::LinkType;
use wire::numbers::ethertype::{ARP, IPV4, IPV6};
use wire::numbers::protocol::UDP;

use super::Frame;
use super::bytes::{write, write16};
use super::fuzz::{Damage, Payload};
use super::ip::{self, Packet, Sums};
use super::link::{self, Lacking, Link};
use super::plan::{FixLength, NewHeader, Plan, Side};

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was looked at from link to transport layer, and edited where the plan applies.
    Edited,
    /// It has no headers that could be edited. What was done before that was seen (the FCS, tags) stays done.
    Unsupported,
    /// The plan leaves it out.
    Left,
}

/// Edits `frame`, which is of type `input` and becomes one of type `output`: the same, Ethernet, or what
/// [`Plan::header`] is.
pub fn edit(frame: &mut Frame, plan: &Plan, input: LinkType, output: LinkType, side: Side) -> Verdict {
    frame.lacking = Lacking::default();
    if plan.strip_fcs && frame.wire_len > 4 {
        frame.wire_len -= 4;
        frame.data.truncate(frame.wire_len as usize);
    }
    if supported(frame, plan, input, output, side).is_none() {
        return if plan.drop_unsupported { Verdict::Left } else { Verdict::Unsupported };
    }
    if frame.data.is_empty() { Verdict::Left } else { Verdict::Edited }
}

fn supported(frame: &mut Frame, plan: &Plan, input: LinkType, output: LinkType, side: Side) -> Option<()> {
    let mut link = link::decode(input, &frame.data)?;
    let captured = frame.data.len();
    let done = match &plan.header {
        Some(NewHeader::JuniperEthernet) if input == output => {
            link::edit(&mut frame.data, &mut link, plan, side)
        }
        Some(header @ NewHeader::JuniperEthernet) => {
            (input == LinkType::ETHERNET || link::to_ethernet(&mut frame.data, &mut link, plan, side))
                && link::edit(&mut frame.data, &mut link, plan, side)
                && link::replace(&mut frame.data, &mut link, header, side)
        }
        Some(header) => link::replace(&mut frame.data, &mut link, header, side),
        None => {
            (input == output || link::to_ethernet(&mut frame.data, &mut link, plan, side))
                && link::edit(&mut frame.data, &mut link, plan, side)
        }
    };
    // What the headers grew or shrank by, the frame on the wire did, too.
    frame.wire_len = (i64::from(frame.wire_len) + frame.data.len() as i64 - captured as i64).max(0) as u32;
    if !done {
        return None;
    }
    frame.lacking = link::lacking(&link, plan, side);
    if matches!(link.protocol, IPV4 | IPV6) {
        return network(frame, plan, &link, side);
    }
    if let Some(fuzz) = &plan.fuzz {
        let payload = Payload::of_link(frame, link.header);
        match fuzz.damage(frame, payload) {
            Damage::Cut | Damage::Dropped => return (!plan.drop_unsupported).then_some(()),
            Damage::None | Damage::Payload => {}
        }
    }
    fix_length(frame, plan, &link, None);
    if link.protocol == ARP
        && let Some(bytes) = frame.data.get_mut(link.header..)
    {
        ip::arp(bytes, plan, side);
    }
    Some(())
}

fn network(frame: &mut Frame, plan: &Plan, link: &Link, side: Side) -> Option<()> {
    let bytes = frame.data.get_mut(link.header..)?;
    let parse = |bytes: &[u8]| if link.protocol == IPV4 { Packet::v4(bytes) } else { Packet::v6(bytes) };
    let packet = parse(bytes)?;
    let mut recompute = ip::headers(bytes, &packet, plan);
    if let Some(fuzz) = &plan.fuzz {
        // By the IP header's own field, whatever stands between.
        let protocol = bytes.get(if packet.v6 { 6 } else { 9 }).copied().unwrap_or(0);
        match fuzz.damage(frame, Payload::of_ip(link.header + packet.header, protocol)) {
            Damage::Cut | Damage::Dropped => return (!plan.drop_unsupported).then_some(()),
            Damage::Payload => recompute = true,
            Damage::None => {}
        }
    }
    recompute |= fix_length(frame, plan, link, Some(&packet));
    if frame.data.is_empty() {
        return Some(());
    }
    let on_wire = (frame.wire_len as usize).saturating_sub(link.header);
    let whole = frame.data.len() == frame.wire_len as usize;
    let bytes = frame.data.get_mut(link.header..)?;
    // Cutting to an MTU may have left less than the header.
    let packet = if plan.cut_to_mtu.is_some() { parse(bytes)? } else { packet };
    let destination = |bytes: &[u8]| ip::group(bytes, &packet);
    let before = destination(bytes);
    if plan.maps_addresses() || plan.scramble_ip.is_some() {
        let afresh = plan.fix_checksums && !plan.fix_header_length && ip::sums_all(bytes, &packet, whole);
        let sums = if afresh { Sums::Left } else { Sums::Corrected };
        ip::addresses(bytes, &packet, plan, side, sums);
    }
    let after = destination(bytes);
    if plan.fix_header_length && (packet.v6 || !packet.fragment) {
        recompute |= ip::set_length(bytes, &packet, on_wire);
    }
    if plan.fix_checksums || recompute {
        ip::checksums(bytes, &packet, whole);
    }
    if let (Some(group), Some(ethernet)) = (after, link.ethernet)
        && (plan.always_group_mac || before != after)
    {
        write(&mut frame.data, ethernet, &group.mac().0);
    }
    Some(())
}

/// Pads, cuts or deletes. A deleted frame is empty. Whether checksums are to be computed afresh.
fn fix_length(frame: &mut Frame, plan: &Plan, link: &Link, packet: Option<&Packet>) -> bool {
    let captured = frame.data.len();
    let short = captured != frame.wire_len as usize;
    let fix = plan.fix_length.filter(|_| short && packet.is_some());
    if fix.is_none() && (plan.cut_to_mtu.is_none() || plan.fix_length.is_some()) {
        return false;
    }
    let mut recompute = packet.is_some();
    if let Some(packet) = packet.filter(|packet| !packet.v6)
        && let Some(bytes) = frame.data.get_mut(link.header..)
        && packet.fragment
    {
        match packet.upper {
            // The first fragment's UDP checksum covers fragments that are edited by themselves: none is better than
            // a wrong one.
            Some(UDP) => {
                if let Some(upper) = bytes.get_mut(packet.header..) {
                    write16(upper, 6, 0);
                }
                recompute = false;
            }
            None => recompute = false,
            Some(_) => {}
        }
    }
    match (fix, plan.cut_to_mtu) {
        (Some(FixLength::Pad), _) => {
            let wanted = frame.wire_len.min(capture::MAX_CAPTURED) as usize;
            if wanted > captured {
                frame.data.resize(wanted, 0);
            }
        }
        (Some(FixLength::Truncate), _) => {
            frame.wire_len = captured as u32;
            set_length(frame, link, packet, captured - link.header.min(captured));
        }
        (Some(FixLength::Delete), _) => frame.data.clear(),
        (None, Some(mtu)) => {
            let longest = u64::from(mtu) + link.header as u64;
            if u64::from(frame.wire_len) > longest {
                frame.wire_len = longest as u32;
                frame.data.truncate(longest as usize);
                set_length(frame, link, packet, mtu as usize);
            }
        }
        (None, None) => {}
    }
    recompute
}

fn set_length(frame: &mut Frame, link: &Link, packet: Option<&Packet>, length: usize) {
    if let (Some(packet), Some(bytes)) = (packet, frame.data.get_mut(link.header..)) {
        ip::set_length(bytes, packet, length);
    }
}
