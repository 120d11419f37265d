//! The only module here that knows libbpf: loads `programs/bpf/heads.bpf.c`, and hands out the program and its rings.

use super::Options;
use bpf::object::{Needs, cpu_numbers, first_of, keep, no_constants, refusal};
use bpf::{Program, ProgramError, Quiet};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use port::map::Map;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

/// What stands before a ring's entries (`struct ring` of `programs/bpf/include/heads.h`), and its words, in bytes.
pub const BEFORE: usize = 128;
pub const DROPPED: usize = 8;
pub const TAIL: usize = 64;
/// Room behind a ring for an entry that stands over its end.
pub const SLACK: usize = 512;
/// The longest head, and that of packets whose inside does not matter.
pub const LONGEST: usize = 240;
const SHORT: u32 = 112;

/// A ring holds at most so much, some 260,000 small frames, and at least so much.
const RINGS: [usize; 2] = [16 << 20, 256 << 10];

const WHAT: &str = "probe";

/// Stores are seen by other CPUs in the order they were made in.
const ORDERED: bool = cfg!(any(target_arch = "x86_64", target_arch = "x86"));

#[derive(Debug)]
pub struct Loaded {
    pub program: Program,
    pub rings: Map,
    /// One for each CPU number, so far apart.
    pub count: usize,
    pub stride: usize,
    /// Bytes of entries of each: a power of two.
    pub bytes: usize,
    /// Why a better program than this one was refused, if not for the kernel's age.
    pub refused: Option<String>,
}

/// Loads the best program that the kernel takes; with `bound` the one that asks the driver of that interface for VLAN tags.
pub fn load(options: &Options, bound: Option<u32>) -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    if bound.is_some() {
        return load_with(options, Needs::Buffers, bound);
    }
    let ways = Needs::ALL.into_iter().filter(|needs| ORDERED || *needs != Needs::Links);
    let (mut loaded, refused) = first_of(WHAT, ways, |needs| load_with(options, needs, None))?;
    loaded.refused = refused.and_then(|(needs, error)| needs.unexpected(&error));
    Ok(loaded)
}

/// One of the programs.
pub fn load_with(options: &Options, needs: Needs, bound: Option<u32>) -> Result<Loaded, ProgramError> {
    let count = cpu_numbers()? as usize;
    let [most, least] = RINGS;
    let each = (options.bytes / count.max(1)).clamp(least, most);
    let bytes = (each / 2 + 1).next_power_of_two();
    let stride = BEFORE + bytes + SLACK;
    let total = stride * count;
    let failed = |error| refusal(WHAT, total as u64, &error);
    let memory = |_| ProgramError::Memory { program: WHAT, bytes: total as u64 };

    let mut storage = MaybeUninit::uninit();
    let mut open = programs::heads::HeadsSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants(WHAT))?;
    constants.verdict = if options.drop { sys::XDP_DROP } else { sys::XDP_PASS };
    constants.ring_mask = bytes as u64 - 1;
    constants.longest_head = if options.deep { LONGEST as u32 } else { SHORT };
    constants.short_heads = (!options.deep).into();
    constants.ordered_stores = ORDERED.into();
    constants.ask_tags = bound.is_some().into();
    let free = |which| bound.is_none() && needs == which;
    open.progs.heads.set_autoload(free(Needs::Buffers));
    open.progs.heads_5_12.set_autoload(free(Needs::Atomics));
    open.progs.heads_5_9.set_autoload(free(Needs::Links));
    open.progs.heads_bound.set_autoload(bound.is_some());
    open.progs.heads.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    open.progs.heads_bound.set_flags(sys::BPF_F_XDP_HAS_FRAGS | sys::BPF_F_XDP_DEV_BOUND_ONLY);
    if let Some(ifindex) = bound {
        open.progs.heads_bound.set_ifindex(ifindex);
    }
    open.maps.rings.set_value_size(u32::try_from(stride).map_err(memory)?).map_err(failed)?;
    open.maps.rings.set_max_entries(u32::try_from(count).map_err(memory)?).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    let program = match (bound, needs) {
        (Some(_), _) => skeleton.progs.heads_bound.as_fd(),
        (None, Needs::Buffers) => skeleton.progs.heads.as_fd(),
        (None, Needs::Atomics) => skeleton.progs.heads_5_12.as_fd(),
        (None, Needs::Links) => skeleton.progs.heads_5_9.as_fd(),
    };
    let rings = Map::shared(skeleton.maps.rings.as_fd(), 0, total)
        .map_err(|error| ProgramError::System { what: "mapping the rings", error: error.into() })?;
    Ok(Loaded { program: keep(program)?, rings, count, stride, bytes, refused: None })
}
