//! Layers stacked to a frame: what follows what, lengths, checksums, and the laws of what varies.

use super::Options;
use super::error::{Fault, Outcome, did_you_mean};
use super::header::{self, Header, Payload};
use super::messages::Turns;
use super::patches::Patches;
use super::size::{FCS, MAX_SIZE};
use super::syntax::{Layer, Span};
use super::value::{Every, Sequence, Setting};
use crate::lengths::Lengths;
use crate::program::{Crc, Field, LengthField, MAX_FIELDS, Program, Stream, Sum};
use crate::templates::Templates;
use crate::values::{self, Runs, Values};
use std::ops::Range;
use wire::numbers::port;
use wire::proto::{Auto, Protocol, numbers};
use wire::signature;

/// Added to a checksum that is to be wrong. Not 1: from 0xffff that leads to 0x0000, which is the same number in
/// one's complement, and right again.
const WRONG: u16 = 0x5555;
/// The name of payload that is a frame from its first byte on: no Ethernet header is put in front.
const WHOLE: &str = "frame";
/// Bytes of an Ethernet header.
const ETHER: usize = 14;
/// Selects the random lengths among the sequences of a seed; fields are numbered from 0.
const LENGTH_KEY: u64 = u64::MAX;

pub(super) fn compile(text: &str, layers: &[Layer<'_>], options: &Options) -> Outcome<Program> {
    let mut headers = Vec::with_capacity(layers.len() + 1);
    for layer in layers {
        let protocol = header::protocol(&layer.name)?;
        let whole = layer.name.text.eq_ignore_ascii_case(WHOLE);
        if headers.is_empty() && protocol != Protocol::Ether && !whole {
            headers.push(header::default(Protocol::Ether)?);
        }
        if whole && !headers.is_empty() {
            let message = "`frame` begins with the Ethernet header, so nothing stands in front of it; write `raw` for bytes here";
            return Err(Fault::at(layer.name.span, message));
        }
        let header = header::build(protocol, layer)?;
        if whole && header.bytes.len() < ETHER {
            let message = format!(
                "a frame begins with an Ethernet header, which has {ETHER} bytes; these are {}",
                header.bytes.len()
            );
            return Err(Fault::at(layer.name.span, message));
        }
        headers.push(header);
    }
    let mut at = 0;
    for header in &mut headers {
        header.start = at;
        at += header.bytes.len();
    }
    for i in 0..headers.len() {
        announce(&mut headers, i)?;
    }
    active_segments(&mut headers);
    group_addresses(&mut headers);
    client_address(&mut headers);
    let fields = fields(&headers, options.seed)?;
    let (mut template, lengths, padding) = lengths(&headers, options)?;
    let length_fields = length_fields(&headers, lengths.bounds(template.len() as u32), padding)?;
    let crc = crc(&headers).filter(|crc| {
        !lay_crc(crc, &mut template, &lengths, &length_fields, &fields, options.signature.is_some())
    });
    let name =
        if options.name.is_empty() { text.trim().chars().take(200).collect() } else { options.name.clone() };
    let program = Program::single(Stream {
        name,
        fields,
        lengths,
        length_fields,
        crc,
        sums: sums(&headers),
        signature: options.signature,
        templates: Templates::single(&template),
        unique_addresses: false,
        first: 0,
        step: 1,
        port: 0,
    });
    // What is checked there holds by construction; should it not, that is said rather than sent.
    program.check().map_err(|bad| Fault::at(whole(text), bad.to_string()))?;
    Ok(program)
}

fn whole(text: &str) -> Span {
    Span { start: 0, end: text.len() }
}

/// Fills in the field of layer `i` that says what layer `i + 1` is, and refuses what cannot follow.
fn announce(headers: &mut [Header], i: usize) -> Outcome<()> {
    let child = headers.get(i + 1).map(|header| (header.spec, header.span));
    let above = i.checked_sub(1).and_then(|above| headers.get(above)).map(|header| header.spec.protocol);
    let Some(parent) = headers.get_mut(i) else { return Ok(()) };
    let protocol = parent.spec.protocol;
    let given = parent.spec.auto(Auto::Next).is_some_and(|field| parent.is_set(field))
        || parent.spec.field("dport").is_some_and(|field| parent.is_set(field)) && protocol == Protocol::Udp;
    if let Some((child, span)) = child
        && !given
        && !parent.spec.carries(child.protocol)
    {
        let can: Vec<&str> =
            Protocol::ALL.into_iter().filter(|p| parent.spec.carries(*p)).map(|p| p.spec().name).collect();
        let anyway = match parent.spec.auto(Auto::Next) {
            Some(field) => {
                format!("; to send it all the same, give `{}` of {}", field.name, parent.spec.name)
            }
            None if protocol == Protocol::Udp => "; to send it all the same, give `dport` of udp".into(),
            None => String::new(),
        };
        // What goes in between, if one layer does: users write `udp` and mean what carries it.
        let carriers = match protocol {
            Protocol::Ether | Protocol::Vlan | Protocol::Qinq => [Protocol::Ipv4, Protocol::Ipv6],
            _ => [Protocol::Tcp, Protocol::Udp],
        };
        let between: Vec<String> = carriers
            .into_iter()
            .filter(|p| *p != protocol && parent.spec.carries(*p) && p.spec().carries(child.protocol))
            .map(|p| format!("{}/{}", p.spec().name, child.name))
            .collect();
        let instead = match &between[..] {
            [] => format!("{} can", can.join(", ")),
            some => format!("write {}", some.join(" or ")),
        };
        let message = format!("{} cannot follow {}; {instead}{anyway}", child.name, parent.spec.name);
        return Err(Fault::at(span, message));
    }
    if protocol == Protocol::HopOpts && above != Some(Protocol::Ipv6) {
        return Err(Fault::at(parent.span, "hopopts stands directly after ipv6 (RFC 8200 section 4.1)"));
    }
    let child = child.map(|(spec, _)| spec.protocol);
    if let Some(field) = parent.auto(Auto::Next) {
        let value = match (field.bits, child) {
            (16, child) => child.and_then(numbers::ethertype_of).unwrap_or(numbers::ETHERTYPE_EXPERIMENTAL),
            (_, child) => {
                let nothing =
                    if protocol == Protocol::Ipv4 { numbers::IP_EXPERIMENTAL } else { numbers::IP_NO_NEXT };
                u16::from(child.and_then(numbers::ip_number_of).unwrap_or(nothing))
            }
        };
        parent.write(field.name, u128::from(value));
    }
    match (protocol, child) {
        (Protocol::Udp | Protocol::Tcp, Some(child)) => ports(headers, i, child),
        (Protocol::Mpls, child) => parent.write("s", u128::from(child != Some(Protocol::Mpls))),
        _ => {}
    }
    Ok(())
}

/// The ports of layer `i`, by which what follows is known: those of a client, or of a server that answers.
fn ports(headers: &mut [Header], i: usize, child: Protocol) {
    let first = |name: &str| headers.get(i + 1).and_then(|header| header.read(name));
    let status = headers.get(i + 1).is_some_and(|header| header.bytes.starts_with(b"HTTP/"));
    let server = match child {
        Protocol::Dns => first("qr") == Some(1),
        Protocol::Dhcp => first("op") == Some(2),
        Protocol::Ntp => first("mode") == Some(4),
        _ => status,
    };
    let Some(parent) = headers.get_mut(i) else { return };
    if child == Protocol::Http {
        // PSH and ACK, as on segments with content.
        parent.write("flags", 0x18);
    }
    let (port, clients) = match child {
        Protocol::Http => (Some(port::HTTP), 1024),
        Protocol::Dhcp => (Some(port::DHCP_SERVER), port::DHCP_CLIENT),
        child => (numbers::udp_port_of(child), 1024),
    };
    let Some(port) = port else { return };
    let (here, there) = if server { ("sport", "dport") } else { ("dport", "sport") };
    parent.write(here, port.into());
    if server || child == Protocol::Dhcp {
        parent.write(there, clients.into());
    }
}

/// A DHCP client's address is the one that its frame comes from, unless it is given.
fn client_address(headers: &mut [Header]) {
    for i in 0..headers.len() {
        let Some((before, [dhcp, ..])) = headers.split_at_mut_checked(i) else { continue };
        let ether = before.iter().rev().find(|header| header.spec.protocol == Protocol::Ether);
        if let (Protocol::Dhcp, Some(source)) =
            (dhcp.spec.protocol, ether.and_then(|ether| ether.read("src")))
        {
            dhcp.write("chaddr", source);
        }
    }
}

/// The destination of the IP packet in an Ethernet frame whose own destination is not given, if that is a group, or all hosts.
fn group(headers: &[Header], frame: usize) -> Option<(&Header, &Setting)> {
    let ether = headers.get(frame).filter(|header| header.spec.protocol == Protocol::Ether)?;
    if ether.spec.field("dst").is_none_or(|field| ether.is_set(field)) {
        return None;
    }
    let tag = |header: &&Header| matches!(header.spec.protocol, Protocol::Vlan | Protocol::Qinq);
    let ip = headers.get(frame + 1..)?.iter().find(|header| !tag(header))?;
    let is_group = |address: u128| match ip.spec.protocol {
        Protocol::Ipv4 => address >> 28 == 0xe,
        Protocol::Ipv6 => address >> 120 == 0xff,
        _ => false,
    };
    let to = ip.settings.iter().find(|setting| setting.field.name == "dst")?;
    let all = match &to.sequence {
        Sequence::One(address) => {
            is_group(*address) || ip.spec.protocol == Protocol::Ipv4 && *address == u128::from(u32::MAX)
        }
        // Groups are one block of addresses.
        Sequence::Range { first, last, .. }
        | Sequence::Random { first, last, .. }
        | Sequence::Shuffled { first, last, .. } => is_group(*first) && is_group(*last),
        Sequence::Runs { runs, .. } => runs.iter().all(|(first, last)| is_group(*first) && is_group(*last)),
        Sequence::List(items) | Sequence::RandomList(items) => items.iter().all(|item| is_group(*item)),
    };
    all.then_some((ip, to))
}

/// How many bits of a group's address its Ethernet address ends with.
fn group_bits(ip: &Header) -> u32 {
    if ip.spec.protocol == Protocol::Ipv4 { 23 } else { 32 }
}

/// A frame to a group goes to the group's Ethernet address (RFC 1112 section 6.4, RFC 2464 section 7), unless one is given.
fn group_addresses(headers: &mut [Header]) {
    for i in 0..headers.len() {
        let Some((ip, to)) = group(headers, i) else { continue };
        let (first, bits) = (to.sequence.first(), group_bits(ip));
        let prefix = if bits == 23 { 0x0100_5e00_0000 } else { 0x3333_0000_0000 };
        let all_hosts = bits == 23 && first == u128::from(u32::MAX);
        let address = if all_hosts { (1 << 48) - 1 } else { prefix | first & ((1 << bits) - 1) };
        if let Some(ether) = headers.get_mut(i) {
            ether.write("dst", address);
        }
    }
}

/// The Ethernet addresses of groups vary as the groups do. As in [`same_source`] these come last.
fn same_group(headers: &[Header], fields: &mut Vec<Field>) {
    for (i, ether) in headers.iter().enumerate() {
        let Some((ip, to)) = group(headers, i) else { continue };
        let place = |header: &Header| header.spec.field("dst")?.place(&header.bytes);
        let (Some(group), Some(own)) = (place(ip), place(ether)) else { continue };
        let end = ip.start + (group + usize::from(to.field.bits)) / 8;
        let bits = group_bits(ip);
        let at = (ether.start * 8 + own + 48) as u64 - u64::from(bits);
        let copies: Vec<Field> = fields
            .iter()
            .filter(|field| field.range().end == end)
            .filter_map(|field| Some(Field::at_bit(at, bits, field.values.clone())?.every(field.every)))
            .collect();
        fields.extend(copies);
    }
}

/// An IPv6 packet with a segment routing header goes to its active segment (RFC 8754 section 4.1).
fn active_segments(headers: &mut [Header]) {
    for i in 0..headers.len() {
        let Some((before, after)) = headers.split_at_mut_checked(i + 1) else { return };
        let Some(ip) = before.last_mut().filter(|header| header.spec.protocol == Protocol::Ipv6) else {
            continue;
        };
        let srh = after
            .iter()
            .take_while(|header| header.spec.protocol.is_ipv6_extension())
            .find(|header| header.spec.protocol == Protocol::Srv6);
        let Some(srh) = srh else { continue };
        let left = srh.read("segleft").and_then(|left| usize::try_from(left).ok()).unwrap_or(0);
        if let Some(segment) = srh.segments.get(left).or(srh.segments.last()) {
            ip.write("dst", u128::from(*segment));
        }
    }
}

/// Everything that varies, with its place in the frame.
fn fields(headers: &[Header], seed: u64) -> Outcome<Vec<Field>> {
    let mut fields = Vec::new();
    for (layer, header) in headers.iter().enumerate() {
        let own =
            header.settings.iter().map(|setting| (setting.field.place(&header.bytes).unwrap_or(0), setting));
        let patches =
            header.payload.iter().flat_map(|payload| &payload.patches.fields).chain(&header.patches);
        let patches = patches.map(|patch| (patch.bit, &patch.setting));
        for (place, setting) in own.chain(patches).filter(|(_, setting)| setting.sequence.varies()) {
            let key = values::hash(seed, fields.len() as u64);
            let at = place as u64 + header.start as u64 * 8;
            let every = every(headers, layer, &setting.every, 0)?;
            for (offset, width, values) in laws(&setting.sequence, u32::from(setting.field.bits), key)
                .map_err(|message| Fault::at(setting.span, message))?
            {
                let field = Field::at_bit(at + u64::from(offset), width, values)
                    .ok_or_else(|| Fault::at(setting.span, "this field cannot vary"))?;
                fields.push(field.every(every));
            }
        }
        if let Some(turns) = &header.turns {
            let key = values::hash(seed, fields.len() as u64);
            let every = every(headers, layer, &turns.every, 0)?;
            in_turn(header, turns, key, every, &mut fields)?;
        }
    }
    same_source(headers, &mut fields);
    same_group(headers, &mut fields);
    Ok(fields)
}

/// The words of a message in which texts that take turns differ: all advance together.
fn in_turn(header: &Header, turns: &Turns, key: u64, every: u64, fields: &mut Vec<Field>) -> Outcome<()> {
    let length = turns.items.first().map_or(0, Vec::len);
    // Numbers that vary by themselves are left out.
    let free = |byte: usize| {
        let bit = (turns.start + byte) * 8;
        !header
            .patches
            .iter()
            .any(|patch| patch.bit < bit + 8 && bit < patch.bit + usize::from(patch.setting.field.bits))
    };
    let differs = |byte: usize| {
        let first = turns.items.first().and_then(|item| item.get(byte));
        free(byte) && turns.items.iter().any(|item| item.get(byte) != first)
    };
    let mut at = 0;
    while at < length {
        if !differs(at) {
            at += 1;
            continue;
        }
        let end = (at + 1..length.min(at + 8)).find(|byte| !free(*byte)).unwrap_or(length.min(at + 8));
        let word = |item: &Vec<u8>| {
            item.get(at..end).unwrap_or_default().iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte))
        };
        let items: std::sync::Arc<[u64]> = turns.items.iter().map(word).collect();
        let values = if turns.random { Values::RandomList { key, items } } else { Values::List(items) };
        let bit = (header.start + turns.start + at) as u64 * 8;
        let field = Field::at_bit(bit, (end - at) as u32 * 8, values)
            .ok_or_else(|| Fault::at(turns.span, "this text cannot vary"))?;
        fields.push(field.every(every));
        if fields.len() > MAX_FIELDS {
            let message = format!(
                "these texts differ in too many bytes: all that varies in a frame has {MAX_FIELDS} fields of 8 bytes"
            );
            return Err(Fault::at(turns.span, message));
        }
        at = end;
    }
    Ok(())
}

/// A DHCP client's address varies as the source address of its frame does. These come last, so that the keys of other
/// fields stay as they are.
fn same_source(headers: &[Header], fields: &mut Vec<Field>) {
    for (i, dhcp) in headers.iter().enumerate().filter(|(_, header)| header.spec.protocol == Protocol::Dhcp) {
        let given = dhcp.spec.field("chaddr").is_none_or(|field| dhcp.is_set(field));
        let above = headers.iter().take(i).rev();
        let ether = above.into_iter().find(|header| header.spec.protocol == Protocol::Ether);
        let place = |header: &Header, name: &str| {
            let field = header.spec.field(name)?;
            Some(header.start + field.place(&header.bytes)? / 8)
        };
        let places = ether.and_then(|ether| place(ether, "src")).zip(place(dhcp, "chaddr"));
        let Some((from, to)) = places.filter(|_| !given) else { continue };
        let copies: Vec<Field> = fields
            .iter()
            .filter(|field| field.range().start == from && field.bytes == 6)
            .map(|field| Field { offset: to as u32, ..field.clone() })
            .collect();
        fields.extend(copies);
    }
}

/// Frames between two steps, with references to other fields followed.
fn every(headers: &[Header], layer: usize, asked: &Every, depth: usize) -> Outcome<u64> {
    let (name, field, span) = match asked {
        Every::Frames(frames) => return Ok(*frames),
        Every::Wrap { layer, field, span } => (layer.as_deref(), field, *span),
    };
    let varying = |i: &usize| {
        headers[*i].settings.iter().find(|s| s.field.is_called(field) && s.sequence.varies()).map(|s| (*i, s))
    };
    let of_name = |i: &usize| match name {
        None => true,
        Some(name) => header::protocol(&super::syntax::Word { text: name, span })
            .is_ok_and(|protocol| protocol == headers[*i].spec.protocol),
    };
    let own = varying(&layer).filter(|(i, _)| of_name(i));
    let mut all = (0..headers.len()).filter(of_name).filter_map(|i| varying(&i));
    let (found, setting) = match (own, all.next(), all.next()) {
        (Some(own), _, _) => own,
        (None, Some(only), None) => only,
        (None, None, _) => {
            if let Some(name) = name {
                header::protocol(&super::syntax::Word { text: name, span })?;
            }
            // A field's own name is not misspelt, and the field that asks does not wait for itself.
            let known = headers.iter().any(|header| header.spec.field(field).is_some());
            let others = headers.iter().flat_map(|header| &header.settings);
            let others = others.filter(|other| !known && other.sequence.varies() && other.every != *asked);
            let hint = did_you_mean(field, others.map(|other| other.field.name));
            let message = format!("every={field}: no field of that name varies{hint}give a number of frames");
            return Err(Fault::at(span, message));
        }
        _ => {
            let message =
                format!("every={field}: several layers vary it; write LAYER.{field}, or a number of frames");
            return Err(Fault::at(span, message));
        }
    };
    // A chain longer than any expression has fields goes round in a circle.
    if depth > headers.iter().map(|header| header.settings.len()).sum() {
        return Err(Fault::at(span, "these fields wait for each other: one of them needs a number"));
    }
    let inner = self::every(headers, found, &setting.every, depth + 1)?;
    let laws = laws(&setting.sequence, u32::from(setting.field.bits), 0)
        .map_err(|message| Fault::at(setting.span, message))?;
    let period =
        laws.last().and_then(|(_, _, values)| values.period()).and_then(|period| period.checked_mul(inner));
    period.ok_or_else(|| {
        Fault::at(span, format!("every={field}: `{field}` never starts over; give a number of frames"))
    })
}

const WITHIN: &str = "IPv6 addresses that vary by a range must lie within one /64; write a list or a prefix";

fn high(value: u128) -> u64 {
    (value >> 64) as u64
}

/// Steps from the first value to the last, and one; 2^64 is written as 0.
fn values_between(first: u128, last: u128, step: u128) -> u64 {
    (first.abs_diff(last) / step).wrapping_add(1) as u64
}

/// Runs that stand one behind the other, picked by `key` if there is one, in a field whose lower part has `width` bits from `low` on.
fn runs_laws(
    runs: &[(u128, u128)],
    step: u128,
    key: Option<u64>,
    (low, width): (u32, u32),
) -> Result<Vec<(u32, u32, Values)>, &'static str> {
    const TOO_MANY: &str = "the ranges of a list have 2^63 values together at most: write longer prefixes";
    if runs.iter().any(|(first, last)| high(*first) != high(*last)) {
        return Err(WITHIN);
    }
    let step64 = u64::try_from(step).unwrap_or(u64::MAX);
    let counts = runs.iter().map(|(first, last)| match values_between(*first, *last, step) {
        0 => Err(TOO_MANY),
        count => Ok(count),
    });
    let counts = counts.collect::<Result<Vec<u64>, _>>()?;
    let law = |values: &dyn Fn(u128, u128) -> (u64, u64)| -> Result<Values, &'static str> {
        let each = runs.iter().zip(&counts).map(|((first, last), count)| {
            let (start, step) = values(*first, *last);
            (start, step, *count)
        });
        let runs = Runs::new(each).ok_or(TOO_MANY)?;
        Ok(match key {
            Some(key) => Values::RandomRuns { key, runs },
            None => Values::Runs(runs),
        })
    };
    let mut laws = Vec::new();
    if runs.windows(2).any(|pair| high(pair[0].0) != high(pair[1].0)) {
        // As often as there are lower halves with it; random ones are picked together, by one key.
        laws.push((0, 64, law(&|first, _| (high(first), 0))?));
    }
    let signed = |first: u128, last: u128| if first <= last { step64 } else { step64.wrapping_neg() };
    laws.push((low, width, law(&|first, last| (first as u64, signed(first, last)))?));
    Ok(laws)
}

/// A sequence as laws of 64 bits at most: first bit in the field, width, values.
fn laws(sequence: &Sequence, bits: u32, key: u64) -> Result<Vec<(u32, u32, Values)>, &'static str> {
    let width = bits.min(64);
    let low = bits - width;
    let items = |items: &[u128], high_half: bool| -> std::sync::Arc<[u64]> {
        items.iter().map(|value| if high_half { high(*value) } else { *value as u64 }).collect()
    };
    let same_high = |items: &[u128]| items.windows(2).all(|pair| high(pair[0]) == high(pair[1]));
    Ok(match sequence {
        Sequence::One(_) => Vec::new(),
        Sequence::Range { first, last, step, prefix } => {
            let (first, last) = if high(*first) == high(*last) {
                (*first, *last)
            } else if *prefix {
                // Nobody sends 2^64 frames: of a prefix shorter than /64 the first /64 is what is walked.
                (*first, *first | u128::from(u64::MAX))
            } else {
                return Err(WITHIN);
            };
            let signed = if first <= last { *step as u64 } else { (*step as u64).wrapping_neg() };
            let count = values_between(first, last, *step);
            vec![(low, width, Values::Range { start: first as u64, step: signed, count })]
        }
        Sequence::Random { first, last, step, prefix } => {
            let (start, end) = (*first.min(last), *first.max(last));
            let step64 = u64::try_from(*step).unwrap_or(u64::MAX);
            let of = |start: u64, step: u64, count: u64, key: u64| Values::Random { key, start, step, count };
            if high(start) == high(end) {
                vec![(low, width, of(start as u64, step64, values_between(start, end, *step), key))]
            } else if *prefix && *step == 1 {
                let upper = high(end).wrapping_sub(high(start)).wrapping_add(1);
                vec![
                    (0, 64, of(high(start), 1, upper, values::hash(key, 1))),
                    (64, 64, of(start as u64, 1, 0, key)),
                ]
            } else {
                return Err(WITHIN);
            }
        }
        Sequence::Shuffled { first, last, step } => {
            let (start, end) = (*first.min(last), *first.max(last));
            let count = (end - start) / *step + 1;
            if !count.is_power_of_two() || count > 1 << 63 {
                return Err(
                    "shuffled() orders 2, 4, 8, ... values (up to 2^63): give a prefix, or a range of so many",
                );
            }
            if high(start) != high(end) {
                return Err(WITHIN);
            }
            let (step, bits) = (u64::try_from(*step).unwrap_or(u64::MAX), count.trailing_zeros() as u8);
            vec![(low, width, Values::Shuffled { key, start: start as u64, step, bits })]
        }
        Sequence::List(list) => {
            let mut laws = Vec::new();
            if bits > 64 && !same_high(list) {
                laws.push((0, 64, Values::List(items(list, true))));
            }
            laws.push((low, width, Values::List(items(list, false))));
            laws
        }
        Sequence::Runs { runs, step, random } => runs_laws(runs, *step, random.then_some(key), (low, width))?,
        Sequence::RandomList(list) => {
            // One key for both halves: they are picked together.
            let mut laws = Vec::new();
            if bits > 64 && !same_high(list) {
                laws.push((0, 64, Values::RandomList { key, items: items(list, true) }));
            }
            laws.push((low, width, Values::RandomList { key, items: items(list, false) }));
            laws
        }
    })
}

/// The template, as long as the longest frame, the law of lengths, and the bytes behind the last layer that its length
/// does not count.
fn lengths(headers: &[Header], options: &Options) -> Outcome<(Vec<u8>, Lengths, usize)> {
    let mut template: Vec<u8> = headers.iter().flat_map(|header| header.bytes.iter().copied()).collect();
    let here = headers.last().map_or(Span { start: 0, end: 1 }, |header| header.span);
    let payload =
        headers.last().and_then(|header| header.payload.as_ref().map(|payload| (header.start, payload)));
    if let Some(early) =
        headers.iter().rev().skip(1).filter_map(|h| h.payload.as_ref()).find_map(|p| p.length.as_ref())
    {
        return Err(Fault::at(early.1, "only the last layer's length can vary"));
    }
    let key = values::hash(options.seed, LENGTH_KEY);
    let content = payload.map_or(template.len(), |(start, payload)| start + payload.content);
    let reserved = if options.signature.is_some() { signature::LEN } else { 0 };
    let kept = payload.map_or(content, |(start, payload)| start + payload.kept());
    let least = template.len().max(kept + reserved);
    let mut padding = 0;
    let lengths = match (&options.size, payload.and_then(|(start, p)| p.length.as_ref().map(|l| (start, l))))
    {
        (Some(_), Some((_, (_, span)))) => {
            let message = "len= varies, and a frame size is asked for as well: one of them decides";
            return Err(Fault::at(*span, message));
        }
        (None, Some((start, (sequence, span)))) => payload_lengths(start, sequence, key)
            .map_err(|message| Fault::at(*span, message))
            .and_then(|lengths| within(lengths, least, reserved, *span))?,
        (Some(size), None) => {
            let (smallest, largest) = size.bounds();
            if (smallest as usize) < least + FCS as usize {
                let message = format!(
                    "frames of {smallest} bytes are asked for, but these layers need {} at least ({least} and {FCS} of frame check sequence{})",
                    least + FCS as usize,
                    if reserved > 0 { ", 18 for the signature included" } else { "" },
                );
                return Err(Fault::at(here, message));
            }
            if largest > MAX_SIZE {
                return Err(Fault::at(
                    here,
                    format!("frames of {largest} bytes are asked for; {MAX_SIZE} are the most"),
                ));
            }
            size.lengths(key)
        }
        (None, None) => {
            let chunk = headers.iter().find(|header| header.spec.protocol == Protocol::SctpData);
            // A chunk ends at a multiple of four bytes, with zeros that its length does not count (RFC 9260 section 3.2);
            // a signature is at the end of what it counts.
            let filling =
                chunk.map_or(0, |chunk| (least - chunk.start).next_multiple_of(4) - (least - chunk.start));
            padding = if options.signature.is_some() { 0 } else { filling };
            Lengths::Fixed((least + filling) as u32)
        }
    };
    let (_, longest) = lengths.bounds(least as u32);
    if longest > MAX_SIZE {
        return Err(Fault::at(here, format!("a frame of {longest} bytes; {MAX_SIZE} are the most")));
    }
    let nothing = Payload { content: 0, fill: vec![0], length: None, patches: Patches::default() };
    let filler = payload.map_or(&nothing, |(_, payload)| payload);
    header::extend(&mut template, content, &filler.fill, longest as usize - padding);
    template.resize(longest as usize, 0);
    Ok((template, lengths, padding))
}

/// `payload(len=...)` as a law of frame lengths, where the payload starts at `start`.
fn payload_lengths(start: usize, sequence: &Sequence, key: u64) -> Result<Lengths, &'static str> {
    let frame = |length: &u128| start as u32 + *length as u32;
    Ok(match sequence {
        Sequence::One(length) => Lengths::Fixed(frame(length)),
        Sequence::List(items) => Lengths::List(items.iter().map(frame).collect()),
        Sequence::Range { first, last, step, .. } => each_length(&[(*first, *last)], *step, frame)?,
        Sequence::Runs { runs, step, random: false } => each_length(runs, *step, frame)?,
        Sequence::Random { first, last, step: 1, .. } => {
            Lengths::Random { key, min: frame(first.min(last)), max: frame(first.max(last)) }
        }
        Sequence::Random { .. } => return Err("random lengths take no step="),
        Sequence::Shuffled { .. } => return Err("lengths are not shuffled; write random(a..b)"),
        Sequence::RandomList(_) | Sequence::Runs { .. } => {
            return Err("random lengths take a range: random(a..b)");
        }
    })
}

/// The lengths of ranges, one behind the other.
fn each_length(
    ranges: &[(u128, u128)],
    step: u128,
    frame: impl Fn(&u128) -> u32,
) -> Result<Lengths, &'static str> {
    // A list of many ranges could ask for more than memory has.
    const MOST: usize = 1 << 20;
    let Ok(step) = usize::try_from(step) else { return Err("the step is larger than any length") };
    let mut all: Vec<u32> = Vec::new();
    for (first, last) in ranges {
        let lengths = *first.min(last)..=*first.max(last);
        if first <= last {
            all.extend(lengths.step_by(step).map(|length| frame(&length)));
        } else {
            all.extend(lengths.rev().step_by(step).map(|length| frame(&length)));
        }
        if all.len() > MOST {
            return Err("these are more than a million lengths: write fewer ranges");
        }
    }
    all.shrink_to_fit();
    Ok(Lengths::List(all.into()))
}

/// Refuses lengths that leave no room for a signature.
fn within(lengths: Lengths, least: usize, reserved: usize, span: Span) -> Outcome<Lengths> {
    let (shortest, _) = lengths.bounds(least as u32);
    if reserved > 0 && (shortest as usize) < least {
        let message =
            format!("the signature's 18 bytes need {} bytes more of payload", least - shortest as usize);
        return Err(Fault::at(span, message));
    }
    Ok(lengths)
}

/// The fields that say a length, and were not given one.
fn length_fields(headers: &[Header], (_, longest): (u32, u32), padding: usize) -> Outcome<Vec<LengthField>> {
    let mut found = Vec::new();
    for header in headers {
        for role in [Auto::Length, Auto::PayloadLength] {
            let Some(field) = header.auto(role) else { continue };
            let less = header.start
                + match (role, header.spec.protocol) {
                    (Auto::PayloadLength, _) => header.spec.min_len,
                    (_, Protocol::SctpData) => padding,
                    _ => 0,
                };
            if longest as usize - less > usize::from(u16::MAX) {
                let message = format!(
                    "{} bytes do not fit `{}` of {}: 65535 are the most",
                    longest as usize - less,
                    field.name,
                    header.spec.name
                );
                return Err(Fault::at(header.span, message));
            }
            let at = field.place(&header.bytes).unwrap_or(0) / 8;
            found.push(LengthField { offset: (header.start + at) as u32, less: less as u32 });
        }
        for length in header.payload.iter().flat_map(|payload| &payload.patches.lengths) {
            let less = header.start + length.from;
            if longest as usize - less > usize::from(u16::MAX) {
                return Err(Fault::at(length.span, "a length of payload says 65535 at most"));
            }
            found.push(LengthField { offset: (header.start + length.offset) as u32, less: less as u32 });
        }
    }
    Ok(found)
}

/// The checksums to compute, innermost first: outer ones cover them.
fn sums(headers: &[Header]) -> Vec<Sum> {
    let mut sums = Vec::new();
    for (i, header) in headers.iter().enumerate().rev() {
        for role in [Auto::HeaderChecksum, Auto::Checksum, Auto::PseudoChecksum, Auto::UdpChecksum] {
            let Some(at) = header.auto(role).and_then(|field| field.place(&header.bytes)) else { continue };
            let start = header.start as u32;
            let mut sum = Sum {
                offset: start + at as u32 / 8,
                start,
                end: (role == Auto::HeaderChecksum).then(|| start + header.bytes.len() as u32),
                also: Vec::new(),
                plus: 0,
                plus_length: false,
                udp: role == Auto::UdpChecksum,
                error: if header.bad_checksum { WRONG } else { 0 },
            };
            if matches!(role, Auto::PseudoChecksum | Auto::UdpChecksum)
                && let Some(addresses) = pseudo_header(headers, i)
            {
                sum.also = addresses;
                sum.plus = u64::from(numbers::ip_number_of(header.spec.protocol).unwrap_or(0));
                sum.plus_length = true;
            }
            sums.push(sum);
        }
        // They may cover the layers behind, whose checksums are in the list already.
        let own = header.payload.iter().flat_map(|payload| &payload.patches.checksums);
        sums.extend(own.map(|checksum| checksum.sum(header.start)));
    }
    sums
}

/// The CRC to compute.
fn crc(headers: &[Header]) -> Option<Crc> {
    headers.iter().find_map(|header| {
        let at = header.auto(Auto::Crc32c)?.place(&header.bytes)?;
        let start = header.start as u32;
        let error = if header.bad_checksum { WRONG.into() } else { 0 };
        Some(Crc { offset: start + at as u32 / 8, start, error })
    })
}

/// Writes the CRC into the template, if what it covers is the same in all frames. Whether it is.
fn lay_crc(
    crc: &Crc,
    template: &mut [u8],
    lengths: &Lengths,
    length_fields: &[LengthField],
    fields: &[Field],
    signed: bool,
) -> bool {
    let (shortest, longest) = lengths.bounds(template.len() as u32);
    let covered = |field: &Field| field.range().end > crc.start as usize;
    if signed || shortest != longest || fields.iter().any(covered) {
        return false;
    }
    let mut frame = template.to_vec();
    for field in length_fields {
        let at = field.offset as usize;
        frame[at..at + 2].copy_from_slice(&((longest - field.less) as u16).to_be_bytes());
    }
    let at = crc.offset as usize;
    frame[at..at + 4].fill(0);
    let value = crc.bytes(wire::crc::crc32c(&frame[crc.start as usize..longest as usize]));
    template[at..at + 4].copy_from_slice(&value);
    true
}

/// Where the addresses stand that the checksum of layer `i` covers; `None` if it is not in an IP packet.
fn pseudo_header(headers: &[Header], i: usize) -> Option<Vec<Range<u32>>> {
    let above = headers.get(..i)?;
    let at = above.iter().rposition(|header| !header.spec.protocol.is_ipv6_extension())?;
    let ip = above.get(at)?;
    let start = ip.start as u32;
    match ip.spec.protocol {
        Protocol::Ipv4 => {
            let destination = start + wire::proto::ipv4::final_destination(&ip.bytes) as u32;
            Some(joined(start + 12..start + 16, destination..destination + 4))
        }
        Protocol::Ipv6 => {
            let mut source = start + 8;
            let mut destination = start + 24;
            for header in above.get(at + 1..)? {
                let left = header.read("segleft").is_some_and(|left| left != 0);
                match (header.spec.protocol, header.segments.len() as u32) {
                    // RFC 6275 section 11.3.1.
                    (Protocol::DstOpts, _) => {
                        if let Some(home) = wire::proto::ext::home_address(&header.bytes) {
                            source = (header.start + home) as u32;
                        }
                    }
                    // RFC 8200 section 8.1: with segments left the final destination is covered, not the next one.
                    (Protocol::Srv6, 1..) if left => destination = header.start as u32 + 8,
                    (Protocol::Routing, count @ 1..) if left => {
                        destination = header.start as u32 + 8 + 16 * (count - 1);
                    }
                    _ => {}
                }
            }
            Some(joined(source..source + 16, destination..destination + 16))
        }
        _ => None,
    }
}

/// Two ranges, or one where they touch.
fn joined(first: Range<u32>, second: Range<u32>) -> Vec<Range<u32>> {
    if first.end == second.start {
        std::iter::once(first.start..second.end).collect()
    } else {
        vec![first, second]
    }
}
