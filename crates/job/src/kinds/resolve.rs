//! `--resolve`: fills in the Ethernet addresses that an expression leaves open.

use crate::carrier::await_link;
use crate::place::Place;
use anyhow::{Context, Result, bail};
use port::resolve::neighbour;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use traffic::expr::{Options, compile};
use traffic::{Executor, Program, Slab, Stream, Templates};
use wire::layers::{L3, Layers};
use wire::{LinkType, Mac};

const DESTINATION: std::ops::Range<usize> = 0..6;
const SOURCE: std::ops::Range<usize> = 6..12;

/// Gives the streams of `program` the next hop's Ethernet address as destination, and that of `place` as source, where
/// the expression gave none. It is looked for once for each stream, by the destination of its first frame. Returns what
/// was found, for a person.
pub fn resolve(program: &mut Program, place: &Place, stop: &AtomicBool) -> Result<Vec<String>> {
    let is_unset = unset()?;
    await_link(place, stop)?;
    let mut found = Vec::new();
    for stream in program.streams.iter_mut().filter(|stream| !stream.is_captured()) {
        let mut bytes = stream.templates.get(0).to_vec();
        if is_unset(stream, SOURCE)
            && let (Some(own), Some(field)) = (place.interface.mac, bytes.get_mut(SOURCE))
        {
            field.copy_from_slice(&own);
        }
        if is_unset(stream, DESTINATION) {
            let (source, destination) = addresses(stream)?;
            let name = &place.interface.name;
            let mac = place.run_in(|| neighbour(name, destination, source))?;
            let mac = mac.with_context(|| format!("`.resolve` on {}", place.spec))?;
            if let Some(field) = bytes.get_mut(DESTINATION) {
                field.copy_from_slice(&mac);
            }
            found.push(format!("{destination} is reached on {} by {}", place.spec, Mac(mac)));
        } else {
            found.push(format!(
                "stream `{}` has a destination of its own in ether(dst=...): not looked for",
                stream.name
            ));
        }
        stream.templates = Templates::single(&bytes);
    }
    Ok(found)
}

/// Tells whether an expression left an Ethernet address open. An address that the user gave and one that was filled in look
/// alike in a program, unless they differ.
fn unset() -> Result<impl Fn(&Stream, std::ops::Range<usize>) -> bool> {
    let unset = compile("ether", &Options::default())?;
    let unset = unset.streams.first().map_or_else(Vec::new, |stream| stream.templates.get(0).to_vec());
    Ok(move |stream: &Stream, range: std::ops::Range<usize>| {
        let varies = stream
            .fields
            .iter()
            .any(|field| field.range().start < range.end && field.range().end > range.start);
        !varies && stream.templates.get(0).get(range.clone()) == unset.get(range)
    })
}

/// Gives the streams of `program` these Ethernet addresses where the expression gave none.
pub fn addressed(program: &mut Program, source: Mac, destination: Mac) -> Result<()> {
    let is_unset = unset()?;
    for stream in program.streams.iter_mut().filter(|stream| !stream.is_captured()) {
        let mut bytes = stream.templates.get(0).to_vec();
        for (range, mac) in [(SOURCE, source), (DESTINATION, destination)] {
            if is_unset(stream, range.clone())
                && let Some(field) = bytes.get_mut(range)
            {
                field.copy_from_slice(&mac.0);
            }
        }
        stream.templates = Templates::single(&bytes);
    }
    Ok(())
}

/// Source and destination of a stream's first frame.
fn addresses(stream: &Stream) -> Result<(Option<IpAddr>, IpAddr)> {
    let name = &stream.name;
    let program = Program::single(stream.clone());
    let mut executor = Executor::new(&program)?;
    let mut slab = Slab::new(1, program.longest() as usize);
    executor.render(&mut slab.buffers(), 1, || 0);
    let frame = slab.frame(0);
    let layers = Layers::parse(LinkType::ETHERNET, frame);
    if layers.vlan_tags > 0 {
        bail!(
            "`.resolve`: `{name}` carries a VLAN tag, and neighbours are asked without one: give ether(dst=...), or send \
             untagged frames on a VLAN interface"
        );
    }
    let at = |offset: usize| frame.get(layers.l3_offset + offset..).unwrap_or_default();
    let pair = match layers.l3 {
        L3::V4 => at(12)
            .first_chunk::<4>()
            .map(|a| IpAddr::from(*a))
            .zip(at(16).first_chunk::<4>().map(|a| IpAddr::from(*a))),
        L3::V6 => at(8)
            .first_chunk::<16>()
            .map(|a| IpAddr::from(*a))
            .zip(at(24).first_chunk::<16>().map(|a| IpAddr::from(*a))),
        _ => None,
    };
    let (source, destination) = pair.with_context(|| {
        format!("`.resolve`: `{name}` has no IP destination to look for: give ether(dst=...)")
    })?;
    Ok(((!source.is_unspecified()).then_some(source), destination))
}
