//! The only module here that knows libbpf: loads `programs/bpf/bridge.bpf.c`, and hands out its programs and mapped memory.

use crate::counters::Counters;
use crate::options::{Options, Way};
use bpf::object::{Needs, cpu_numbers, first_of, keep, map_all, no_constants, refusal};
use bpf::{Mapping, Program, ProgramError, Quiet};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsFd, OwnedFd};

use programs::bridge::types::passage;

// The kernel's layout and ours are the same.
const _: () = {
    assert!(size_of::<passage>() == size_of::<Counters>());
    assert!(offset_of!(passage, completed) == offset_of!(Counters, completed));
    assert!(offset_of!(passage, tick) == offset_of!(Counters, tick));
};

/// The loaded bridge and what it writes.
#[derive(Debug)]
pub struct Loaded {
    pub program: Program,
    /// Entry 2 * cpu + direction.
    pub counters: Mapping<Counters>,
    /// Leads to the interfaces: kept, because it forgets them when nothing holds it.
    _ways: OwnedFd,
    /// Why a better program than this one was refused, if not for the kernel's age.
    pub refused: Option<String>,
}

/// Loads the bridge's program for `way`, in the network namespace of `interfaces`; with support for frames in several
/// buffers where the kernel has it.
pub fn load(interfaces: [u32; 2], way: Way, options: &Options) -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    let ways: &[_] = match way {
        Way::Tc => &[Which::Tc],
        // The last one does not count up to a limit.
        _ if options.limit.is_none() => {
            &[Which::Xdp(Needs::Buffers), Which::Xdp(Needs::Atomics), Which::Xdp(Needs::Links)]
        }
        _ => &[Which::Xdp(Needs::Buffers), Which::Xdp(Needs::Atomics)],
    };
    let (mut loaded, refused) = first_of("bridge", ways, |which| load_with(interfaces, *which, options))?;
    loaded.refused = refused.and_then(|(which, error)| match which {
        Which::Xdp(needs) => needs.unexpected(&error),
        _ => None,
    });
    Ok(loaded)
}

/// Loads the program that keeps frames from the host.
pub fn load_hold() -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    load_with([0, 0], Which::Hold, &Options::default())
}

/// Loads the program that passes all.
pub fn load_pass() -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    load_with([0, 0], Which::Pass, &Options::default())
        .or_else(|_| load_with([0, 0], Which::PassWhole, &Options::default()))
}

/// The programs of `programs/bpf/bridge.bpf.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Xdp(Needs),
    /// With, without support for frames in several buffers.
    Pass,
    PassWhole,
    Tc,
    Hold,
}

/// One of the programs.
pub fn load_with(interfaces: [u32; 2], which: Which, options: &Options) -> Result<Loaded, ProgramError> {
    let entries = 2 * cpu_numbers()?;
    let bytes = u64::from(entries) * size_of::<Counters>() as u64;
    let failed = |error| refusal("bridge", bytes, &error);
    let mut storage = MaybeUninit::uninit();
    let mut open = programs::bridge::BridgeSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants("bridge"))?;
    constants.interfaces = interfaces;
    constants.complete = options.complete.map(u32::from);
    // With an Ethernet header.
    constants.longest = options.mtu.map(|mtu| mtu.saturating_add(14));
    constants.limit = options.limit.unwrap_or(0);
    let multi_buffer = which == Which::Xdp(Needs::Buffers);
    constants.multi_buffer = multi_buffer.into();
    open.progs.bridge_xdp.set_autoload(matches!(which, Which::Xdp(Needs::Buffers | Needs::Atomics)));
    open.progs.bridge_xdp_5_9.set_autoload(which == Which::Xdp(Needs::Links));
    open.progs.pass_xdp.set_autoload(matches!(which, Which::Pass | Which::PassWhole));
    open.progs.bridge_tc.set_autoload(which == Which::Tc);
    open.progs.hold_tc.set_autoload(which == Which::Hold);
    if multi_buffer {
        open.progs.bridge_xdp.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    }
    if which == Which::Pass {
        open.progs.pass_xdp.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    }
    open.maps.passages.set_max_entries(entries).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    if matches!(which, Which::Xdp(_)) {
        // What arrives on the one leaves by the other.
        for (direction, target) in [interfaces[1], interfaces[0]].into_iter().enumerate() {
            let key = (direction as u32).to_ne_bytes();
            skeleton.maps.ways.update(&key, &target.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        }
    }
    let program = match which {
        Which::Xdp(Needs::Links) => skeleton.progs.bridge_xdp_5_9.as_fd(),
        Which::Xdp(_) => skeleton.progs.bridge_xdp.as_fd(),
        Which::Pass | Which::PassWhole => skeleton.progs.pass_xdp.as_fd(),
        Which::Tc => skeleton.progs.bridge_tc.as_fd(),
        Which::Hold => skeleton.progs.hold_tc.as_fd(),
    };
    let ways = skeleton.maps.ways.as_fd().try_clone_to_owned();
    Ok(Loaded {
        program: keep(program)?,
        refused: None,
        counters: map_all(&skeleton.maps.passages)?,
        _ways: ways.map_err(|error| ProgramError::System { what: "keeping the bridge's map", error })?,
    })
}
