//! The only module here that knows libbpf: loads `programs/bpf/segments.bpf.c`, and hands out the programs and their rings.

use super::Options;
use bpf::object::{keep, map_all, no_constants, refusal};
use bpf::{Mapping, Program, ProgramError, Quiet, Ring};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use programs::segments::types::address;
use std::mem::{MaybeUninit, size_of};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The array of rings has so many places.
pub const MOST_LANES: usize = 64;
/// A ring is at least so large: it holds the longest super-packet there is, twice.
const LEAST: usize = 2 << 20;

const WHAT: &str = "clone";

#[derive(Debug)]
pub struct Loaded {
    /// For ingress and egress.
    pub programs: [Program; 2],
    pub rings: Vec<Ring>,
    /// By lane: frames that found no room.
    pub drops: Mapping<u64>,
    /// Keeps the rings in their array, which the programs hold.
    _rings: OwnedFd,
}

/// An address as the program compares it.
fn words(of: IpAddr) -> address {
    let octets = match of {
        IpAddr::V4(of) => of.to_ipv6_mapped().octets(),
        IpAddr::V6(of) => of.octets(),
    };
    let (halves, _) = octets.as_chunks::<8>();
    let mut words = [0; 2];
    words.iter_mut().zip(halves).for_each(|(word, half)| *word = u64::from_ne_bytes(*half));
    address { words }
}

/// Loads both programs, with a ring for each lane.
pub fn load(options: &Options) -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    let lanes = options.lanes.clamp(1, MOST_LANES);
    let size = (options.bytes / lanes / 2 + 1).next_power_of_two().max(LEAST);
    let failed = |error| refusal(WHAT, (size * lanes) as u64, &error);
    let system = |error| ProgramError::System { what: "mapping the rings", error };

    let mut storage = MaybeUninit::uninit();
    let mut open = programs::segments::SegmentsSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants(WHAT))?;
    constants.server_port = options.port.to_be();
    constants.with_server = options.server.is_some().into();
    constants.server = options.server.map(words).unwrap_or_default();
    let except: Vec<IpAddr> = options.except.iter().flatten().copied().collect();
    constants.excepted = except.len() as u8;
    constants.except_first = except.first().copied().map(words).unwrap_or_default();
    constants.except_second = except.get(1).copied().map(words).unwrap_or_default();
    constants.answers = options.answers;
    constants.lanes = lanes as u32;
    constants.seed = options.seed;
    constants.sampling = options.sample.is_some().into();
    let [chosen, more] = options.sample.unwrap_or_default();
    // A bound of 0 means none: of no session a share is chosen nowhere, because shares are above zero.
    constants.chosen = chosen.map_or(0, |bound| bound.max(1));
    constants.more = more.map_or(0, |bound| bound.max(1));
    let skeleton = open.load().map_err(failed)?;

    let flags = sys::bpf_map_create_opts {
        sz: size_of::<sys::bpf_map_create_opts>() as sys::size_t,
        ..Default::default()
    };
    let mut rings = Vec::new();
    for lane in 0..lanes as u32 {
        let map = MapHandle::create(MapType::RingBuf, Some("segments"), 0, 0, size as u32, &flags)
            .map_err(failed)?;
        let number = map.as_fd().as_raw_fd().to_ne_bytes();
        skeleton.maps.rings.update(&lane.to_ne_bytes(), &number, MapFlags::ANY).map_err(failed)?;
        let own = map.as_fd().try_clone_to_owned().map_err(system)?;
        rings.push(Ring::open(own, size).map_err(system)?);
    }
    Ok(Loaded {
        programs: [keep(skeleton.progs.segments_in.as_fd())?, keep(skeleton.progs.segments_out.as_fd())?],
        rings,
        drops: map_all(&skeleton.maps.drops)?,
        _rings: skeleton.maps.rings.as_fd().try_clone_to_owned().map_err(system)?,
    })
}
