//! The only module here that knows libbpf: loads `programs/bpf/stamp.bpf.c`, and hands out the program and its maps.

use super::Options;
use super::clock::Reading;
use super::counters::Counters;
use super::own::Own;
use bpf::object::{Needs, cpu_numbers, first_of, keep, map_all, no_constants, refusal};
use bpf::{Mapping, Program, ProgramError, Quiet};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;

use programs::stamp::types::{
    stamp_address, stamp_clock, stamp_session, stamp_session_key, stamp_source, stamped,
};

// The kernel's layouts and ours are the same.
const _: () = {
    assert!(size_of::<stamped>() == size_of::<Counters>());
    assert!(offset_of!(stamped, without_room) == offset_of!(Counters, stamped.without_room));
    assert!(offset_of!(stamped, others) == offset_of!(Counters, stamped));
    assert!(offset_of!(stamped, tick) == offset_of!(Counters, tick));
    assert!(size_of::<stamp_clock>() == 6 * size_of::<u64>());
    assert!(offset_of!(stamp_clock, estimates) == 4 * size_of::<u64>());
    assert!(size_of::<stamp_session_key>() == 40);
    assert!(offset_of!(stamp_session, last_ns) == SILENT_AT && size_of::<stamp_session>() == 16);
    assert!(offset_of!(stamp_clock, own_only) == 5 * size_of::<u64>());
    assert!(size_of::<stamp_source>() == 20 && size_of::<stamp_address>() == 16);
};

/// Where a session's value says when its last packet came.
const SILENT_AT: usize = 8;

/// What a session takes in the kernel: key, value, and what its hash map keeps of each (64 bytes on 64-bit machines).
const SESSION_BYTES: u64 = 128;

/// The most addresses of a host that are looked at.
const DESTINATIONS: u32 = 65_536;

const WHAT: &str = "STAMP reflector";

/// The loaded reflector, what it writes, and what it is told.
#[derive(Debug)]
pub struct Loaded {
    pub program: Program,
    /// One entry for each CPU number.
    pub counters: Mapping<Counters>,
    /// Why a better program than this one was refused, if not for the kernel's age.
    pub refused: Option<String>,
    clocks: MapHandle,
    sessions: MapHandle,
    destinations: MapHandle,
}

/// Loads the reflector of an interface with that Ethernet address, with support for frames in several buffers where the kernel has it.
/// `generic`: for the kernel's receive path.
pub fn load(options: &Options, own: [u8; 6], generic: bool) -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    let (mut loaded, refused) = first_of(WHAT, [Needs::Buffers, Needs::Links], |needs| {
        load_with(options, own, generic, needs == Needs::Buffers)
    })?;
    loaded.refused = refused.and_then(|(needs, error)| needs.unexpected(&error));
    Ok(loaded)
}

/// With or without support for frames in several buffers.
pub fn load_with(
    options: &Options,
    own: [u8; 6],
    generic: bool,
    multi_buffer: bool,
) -> Result<Loaded, ProgramError> {
    let cpus = cpu_numbers()?;
    let sessions = if options.stateless { 1 } else { options.sessions.max(1) };
    let bytes = u64::from(cpus) * size_of::<Counters>() as u64 + u64::from(sessions) * SESSION_BYTES;
    let failed = |error| refusal(WHAT, bytes, &error);
    let mut storage = MaybeUninit::uninit();
    let mut open = programs::stamp::StampSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants(WHAT))?;
    constants.port = options.port.to_be();
    constants.own = [0, 2, 4].map(|at| u16::from_ne_bytes([own[at], own[at + 1]]));
    constants.stateless = options.stateless.into();
    constants.listed = (!options.sources.is_empty()).into();
    (constants.interval_ns, constants.burst_ns) = options.rate.map_or((0, 0), pace);
    constants.generic = generic.into();
    constants.multi_buffer = multi_buffer.into();
    if multi_buffer {
        open.progs.stamp.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    }
    open.maps.counters.set_max_entries(cpus).map_err(failed)?;
    open.maps.sessions.set_max_entries(sessions).map_err(failed)?;
    open.maps.destinations.set_max_entries(DESTINATIONS).map_err(failed)?;
    let sources = u32::try_from(options.sources.len()).unwrap_or(u32::MAX);
    open.maps.sources.set_max_entries(sources.max(1)).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    for source in &options.sources {
        let allow = skeleton.maps.sources.update(&source_key(*source), &1u32.to_ne_bytes(), MapFlags::ANY);
        allow.map_err(failed)?;
    }
    Ok(Loaded {
        program: keep(skeleton.progs.stamp.as_fd())?,
        refused: None,
        counters: map_all(&skeleton.maps.counters)?,
        clocks: MapHandle::try_from(&skeleton.maps.clocks).map_err(failed)?,
        sessions: MapHandle::try_from(&skeleton.maps.sessions).map_err(failed)?,
        destinations: MapHandle::try_from(&skeleton.maps.destinations).map_err(failed)?,
    })
}

/// Nanoseconds between two packets, rounded up so that no more than the rate are answered, and by how much they may be early: what
/// comes in ten milliseconds.
fn pace(rate: u32) -> (u64, u64) {
    let interval_ns = 1_000_000_000u64.div_ceil(u64::from(rate.max(1)));
    (interval_ns, 10_000_000u64.saturating_sub(interval_ns))
}

fn failed(what: &'static str, error: &libbpf_rs::Error) -> ProgramError {
    ProgramError::System { what, error: io::Error::other(format!("{error:#}")) }
}

/// An IPv4 address is the IPv6 address that it is mapped to.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// `struct stamp_source`: an IPv4 prefix is one of the IPv6 addresses that IPv4 addresses are mapped to.
fn source_key((address, bits): (IpAddr, u8)) -> Vec<u8> {
    let bits = u32::from(bits) + if address.is_ipv4() { 96 } else { 0 };
    [&bits.to_ne_bytes()[..], &mapped(address).octets()].concat()
}

impl Loaded {
    /// Puts `reading` in force as the `turn`-th, from 0 on: it is written where the program does not look, and then it looks there.
    pub fn set_clock(&self, turn: u64, reading: &Reading, own: &Own) -> Result<(), ProgramError> {
        let Reading { utc_ahead, tai_ahead, taken_ns, ntp_estimate, ptp_estimate } = *reading;
        let estimates = u64::from(ptp_estimate) << 16 | u64::from(ntp_estimate);
        let own_only = u64::from(own.v4_only) | u64::from(own.v6_only) << 1;
        let at = turn & 1;
        self.write_clock(at as u32, [0, utc_ahead, tai_ahead, taken_ns, estimates, own_only])?;
        self.write_clock(2, [at, 0, 0, 0, 0, 0])
    }

    fn write_clock(&self, slot: u32, words: [u64; 6]) -> Result<(), ProgramError> {
        let value = words.map(u64::to_ne_bytes).concat();
        let written = self.clocks.update(&slot.to_ne_bytes(), &value, MapFlags::ANY);
        written.map_err(|error| failed("writing the STAMP reflector's clock", &error))
    }

    /// The host's own addresses are these now, and were those.
    pub fn set_destinations(&self, before: &Own, now: &Own) -> Result<(), ProgramError> {
        let failed = |error| failed("writing the STAMP reflector's addresses", &error);
        for address in now.addresses.difference(&before.addresses) {
            let key = mapped(*address).octets();
            self.destinations.update(&key, &1u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        }
        for address in before.addresses.difference(&now.addresses) {
            self.destinations.delete(&mapped(*address).octets()).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes the sessions whose last packet came before that time by CLOCK_MONOTONIC. Keys are collected first: one that is
    /// removed is nothing to go on from.
    pub fn forget_before(&self, ns: u64) {
        let silent = |key: &Vec<u8>| {
            let value = self.sessions.lookup(key, MapFlags::ANY).ok().flatten();
            let last = value.as_ref().and_then(|value| value.get(SILENT_AT..)?.first_chunk::<8>());
            last.is_some_and(|last| u64::from_ne_bytes(*last) < ns)
        };
        let keys: Vec<Vec<u8>> = self.sessions.keys().filter(silent).collect();
        for key in keys {
            // One that is gone is what was wanted.
            let _ = self.sessions.delete(&key);
        }
    }
}
