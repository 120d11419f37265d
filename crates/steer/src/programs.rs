//! The only module here that knows libbpf's skeletons: loads `programs/bpf/steer.bpf.c`.

use crate::flows::{Flow, State};
use crate::options::{ENGINE_MAC, OWN_MAC, Options};
use bpf::object::{keep, no_constants, refusal};
use bpf::{Program, ProgramError, Quiet};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapHandle, libbpf_sys as sys};
use std::mem::{MaybeUninit, size_of};
use std::net::IpAddr;
use std::os::fd::AsFd;

/// bpf_redirect_neigh.
pub const OLDEST: (u32, u32) = (5, 10);
/// BPF_F_ADJ_ROOM_ENCAP_L2_ETH: hardware may cut the packets of a tunnel.
const ETHERNET_WITHIN: (u32, u32) = (5, 13);

// The program's layouts and ours are the same.
const _: () = {
    assert!(size_of::<programs::steer::types::flow>() == size_of::<Flow>());
    assert!(size_of::<programs::steer::types::state>() == size_of::<State>());
};

/// The loaded programs and what they share with user space.
#[derive(Debug)]
pub struct Loaded {
    pub arrive: Program,
    pub depart: Program,
    pub steal: Program,
    pub maps: Maps,
}

/// What the programs share with user space.
#[derive(Debug)]
pub struct Maps {
    pub flows: MapHandle,
    pub lease: MapHandle,
    pub counts: MapHandle,
    pub made: MapHandle,
}

/// An address as the programs have it.
pub fn words(address: IpAddr) -> [u32; 4] {
    let mut words = [0; 4];
    match address.to_canonical() {
        IpAddr::V4(v4) => words[3] = u32::from_ne_bytes(v4.octets()),
        IpAddr::V6(v6) => {
            for (word, bytes) in words.iter_mut().zip(v6.octets().as_chunks::<4>().0) {
                *word = u32::from_ne_bytes(*bytes);
            }
        }
    }
    words
}

fn halves([a, b, c, d, e, f]: [u8; 6]) -> [u16; 3] {
    [[a, b], [c, d], [e, f]].map(u16::from_ne_bytes)
}

/// Loads them. `underlay`: the number of the interface where the engine is reached; `here`: this host's address there.
pub fn load(options: &Options, underlay: u32, here: IpAddr) -> Result<Loaded, ProgramError> {
    const PROGRAM: &str = "return agent";
    if bpf::kernel::is_before(OLDEST) {
        let reason = bpf::kernel::needs("steering answers into a tunnel", OLDEST);
        return Err(ProgramError::Load { program: PROGRAM, reason });
    }
    let _quiet = Quiet::start();
    let bytes = u64::from(options.most_flows) * 128;
    let failed = |error| refusal(PROGRAM, bytes, &error);
    let mut storage = MaybeUninit::uninit();
    let mut open = ::programs::steer::SteerSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants(PROGRAM))?;
    let (address, port) = options.server;
    let is_v6 = options.engine.to_canonical().is_ipv6();
    constants.is_v6 = is_v6.into();
    constants.engine = words(options.engine);
    constants.here = words(here);
    constants.server = address.map_or([0; 4], words);
    constants.server_port = port.to_be();
    constants.tunnel_port = options.tunnel.0.to_be();
    constants.tunnel_vni = (options.tunnel.1 << 8).to_be();
    constants.underlay = underlay;
    constants.engine_mac = halves(ENGINE_MAC);
    constants.own_mac = halves(OWN_MAC);
    let family = if is_v6 { sys::BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 } else { sys::BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 };
    let ethernet = if bpf::kernel::is_before(ETHERNET_WITHIN) { 0 } else { sys::BPF_F_ADJ_ROOM_ENCAP_L2_ETH };
    // The length of the inner Ethernet header stands in the flags' top byte.
    constants.encapsulation = u64::from(family)
        | u64::from(sys::BPF_F_ADJ_ROOM_ENCAP_L4_UDP)
        | u64::from(sys::BPF_F_ADJ_ROOM_FIXED_GSO)
        | u64::from(ethernet)
        | 14 << sys::BPF_ADJ_ROOM_ENCAP_L2_SHIFT;
    open.maps.flows.set_max_entries(options.most_flows.max(1)).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    Ok(Loaded {
        arrive: keep(skeleton.progs.arrive.as_fd())?,
        depart: keep(skeleton.progs.depart.as_fd())?,
        steal: keep(skeleton.progs.steal.as_fd())?,
        maps: Maps {
            flows: MapHandle::try_from(&skeleton.maps.flows).map_err(failed)?,
            lease: MapHandle::try_from(&skeleton.maps.lease).map_err(failed)?,
            counts: MapHandle::try_from(&skeleton.maps.counts).map_err(failed)?,
            made: MapHandle::try_from(&skeleton.maps.made).map_err(failed)?,
        },
    })
}
