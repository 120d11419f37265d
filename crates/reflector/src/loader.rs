//! The only module here that knows libbpf: loads `programs/bpf/reflect.bpf.c`, and hands out the program and mapped memory.

use crate::counters::Counters;
use crate::options::Options;
use bpf::object::{Needs, cpu_numbers, first_of, keep, map_all, no_constants, refusal};
use bpf::{Mapping, Program, ProgramError, Quiet};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::AsFd;

use programs::reflect::types::reflected;

// The kernel's layout and ours are the same.
const _: () = {
    assert!(size_of::<reflected>() == size_of::<Counters>());
    assert!(offset_of!(reflected, malformed) == offset_of!(Counters, malformed));
    assert!(offset_of!(reflected, tick) == offset_of!(Counters, tick));
};

/// The loaded reflector and what it writes.
#[derive(Debug)]
pub struct Loaded {
    pub program: Program,
    /// One entry for each CPU number.
    pub counters: Mapping<Counters>,
    /// Why a better program than this one was refused, if not for the kernel's age.
    pub refused: Option<String>,
}

/// Loads the reflector, with support for frames in several buffers where the kernel has it.
pub fn load(options: &Options) -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    let (mut loaded, refused) = first_of("reflector", [Needs::Buffers, Needs::Links], |needs| {
        load_with(options, needs == Needs::Buffers)
    })?;
    loaded.refused = refused.and_then(|(needs, error)| needs.unexpected(&error));
    Ok(loaded)
}

/// With or without support for frames in several buffers.
pub fn load_with(options: &Options, multi_buffer: bool) -> Result<Loaded, ProgramError> {
    let cpus = cpu_numbers()?;
    let bytes = u64::from(cpus) * size_of::<Counters>() as u64;
    let failed = |error| refusal("reflector", bytes, &error);
    let mut storage = MaybeUninit::uninit();
    let mut open = programs::reflect::ReflectSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants("reflector"))?;
    constants.only_signed = options.only_signed.into();
    constants.mac_only = options.mac_only.into();
    constants.multi_buffer = multi_buffer.into();
    if multi_buffer {
        open.progs.reflect.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    }
    open.maps.counters.set_max_entries(cpus).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    Ok(Loaded {
        program: keep(skeleton.progs.reflect.as_fd())?,
        refused: None,
        counters: map_all(&skeleton.maps.counters)?,
    })
}
