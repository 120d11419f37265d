//! The only module here that knows libbpf: loads `programs/bpf/sessions.bpf.c` and `serve.bpf.c`, and hands out programs and memory.

use crate::clients::Options;
use crate::layout::{Counts, RawSlot, Served, Times, control};
use crate::server::ServerOptions;
use bpf::object::{cpu_numbers, keep, map_all, no_constants, refusal};
use bpf::{Mapping, Memory, Program, ProgramError, Quiet};
use libbpf_rs::OpenProgramMut;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use rustix::io::Errno;
use std::mem::{MaybeUninit, size_of};
use std::net::IpAddr;
use std::os::fd::AsFd;

const CLIENTS: &str = "sessions";
const SERVER: &str = "sessions server";

/// The loaded clients.
#[derive(Debug)]
pub struct LoadedClients {
    /// Run as live frames.
    pub open: Program,
    /// Attached where answers arrive.
    pub client: Program,
    pub slots: Mapping<RawSlot>,
    pub control: Memory,
    pub counts: Mapping<Counts>,
    /// For each CPU number two.
    pub times: Mapping<Times>,
}

/// The loaded server.
#[derive(Debug)]
pub struct LoadedServer {
    pub program: Program,
    pub counts: Mapping<Served>,
}

/// What frames consist of; each sort has programs of its own, compiled for nothing else (`EACH_SORT`).
#[derive(Debug, Clone, Copy)]
struct Sort {
    v6: bool,
    tagged: bool,
    udp: bool,
}

/// Programs that do the same, one for each sort.
const SORTS: usize = 8;

impl Sort {
    /// Which of the programs in the order of `EACH_SORT` it has.
    fn number(self) -> usize {
        usize::from(self.v6) | usize::from(self.tagged) << 1 | usize::from(self.udp) << 2
    }

    /// Has the kernel load none of these but one.
    fn only(self, programs: [&mut OpenProgramMut<'_>; SORTS]) {
        let wanted = self.number();
        programs.into_iter().enumerate().for_each(|(at, program)| program.set_autoload(at == wanted));
    }
}

/// The programs of a skeleton that do the same, in the order of `EACH_SORT`, each borrowed.
macro_rules! each_sort {
    (mut $of:expr, $($name:ident)*) => { [$(&mut $of.$name),*] };
    ($of:expr, $($name:ident)*) => { [$(&$of.$name),*] };
}
macro_rules! openers {
    ($($of:tt)*) => {
        each_sort!($($of)*, sessions_open open_ipv6 open_tagged open_tagged_6 open_udp open_udp_ipv6 open_udp_tagged open_udp_tagged_6)
    };
}
macro_rules! takers {
    ($($of:tt)*) => {
        each_sort!($($of)*, sessions_client client_ipv6 client_tagged client_tagged_6
            client_udp client_udp_ipv6 client_udp_tagged client_udp_tagged_6)
    };
}
macro_rules! servers {
    ($($of:tt)*) => {
        each_sort!($($of)*, sessions_server server_ipv6 server_tagged server_tagged_6
            server_udp server_udp_ipv6 server_udp_tagged server_udp_tagged_6)
    };
}

/// The words of an address as they lie in memory; of IPv4 there is one, and zeros.
fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(v4) => [u32::from_ne_bytes(v4.octets()), 0, 0, 0],
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments().map(u16::to_be_bytes);
            [[a, b], [c, d], [e, f], [g, h]]
                .map(|[high, low]| u32::from_ne_bytes([high[0], high[1], low[0], low[1]]))
        }
    }
}

/// Where clients' addresses begin: the words that all have in common, and the last as a number.
fn first(address: IpAddr) -> ([u32; 3], u32) {
    match (address, words(address)) {
        (IpAddr::V4(v4), _) => ([0; 3], u32::from(v4)),
        (IpAddr::V6(_), [a, b, c, last]) => ([a, b, c], u32::from_be(last)),
    }
}

/// The halves of an Ethernet address as the programs have them.
fn mac(bytes: [u8; 6]) -> [u16; 3] {
    [0, 2, 4].map(|at| u16::from_ne_bytes([bytes[at], bytes[at + 1]]))
}

/// The sum of a payload's 16-bit words as they lie in memory, which the programs add to that of the headers.
pub fn sum_of(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let sum: u64 = words.map(u64::from).sum();
    // At most 730 words of 16 bits.
    sum as u32
}

/// Loads the clients. `redirect_to`: the interface that answers are redirected to, if not returned by XDP_TX.
pub fn clients(options: &Options, redirect_to: Option<u32>) -> Result<LoadedClients, ProgramError> {
    let _quiet = Quiet::start();
    let cpus = cpu_numbers()?;
    let bytes = u64::from(options.slots) * size_of::<RawSlot>() as u64;
    let failed = |error| refusal(CLIENTS, bytes, &error);
    let control = Memory::new(c"control", control::BYTES).map_err(|error| match error {
        Errno::PERM => ProgramError::Permission { what: "loading an XDP program" },
        _ => ProgramError::Memory { program: CLIENTS, bytes: control::BYTES as u64 },
    })?;
    let mut storage = MaybeUninit::uninit();
    let mut open = programs::sessions::SessionsSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants(CLIENTS))?;
    constants.own_mac = mac(options.own);
    (constants.prefix, constants.first_address) = first(options.first_address);
    constants.addresses = options.addresses.max(1);
    constants.first_port = options.first_port.into();
    constants.host = options.host.map_or([0; 4], words);
    constants.server = words(options.server.ip());
    constants.tag_control = options.tag.unwrap_or(0).to_be();
    constants.server_port = options.server.port().to_be();
    constants.slots_count = options.slots;
    constants.mss = options.mss.into();
    constants.retransmit_after = crate::sweep::ticks(options.retransmit_after.as_nanos() as u64);
    constants.request_length = options.request.len() as u32;
    constants.request_sum = sum_of(&options.request);
    constants.redirect_to = redirect_to.unwrap_or(0);
    constants.requests = options.requests;
    constants.closes = options.close as u32;
    constants.holds = options.holds.into();
    constants.from_server = options.from_server.into();
    constants.thinks = crate::sweep::ticks(options.think.as_nanos() as u64);
    constants.request.iter_mut().zip(&options.request).for_each(|(to, from)| *to = *from);
    let sort = Sort { v6: options.server.is_ipv6(), tagged: options.tag.is_some(), udp: options.udp };
    sort.only(openers!(mut open.progs));
    sort.only(takers!(mut open.progs));
    open.maps.slots.set_max_entries(options.slots).map_err(failed)?;
    open.maps.counts.set_max_entries(cpus).map_err(failed)?;
    open.maps.times.set_max_entries(2 * cpus).map_err(failed)?;
    open.maps.control.reuse_fd(control.as_fd()).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    let open = openers!(skeleton.progs)[sort.number()];
    let client = takers!(skeleton.progs)[sort.number()];
    Ok(LoadedClients {
        open: keep(open.as_fd())?,
        client: keep(client.as_fd())?,
        slots: map_all(&skeleton.maps.slots)?,
        counts: map_all(&skeleton.maps.counts)?,
        times: map_all(&skeleton.maps.times)?,
        control,
    })
}

/// Loads the server.
pub fn server(options: &ServerOptions, redirect_to: Option<u32>) -> Result<LoadedServer, ProgramError> {
    let _quiet = Quiet::start();
    let cpus = cpu_numbers()?;
    let bytes = u64::from(cpus) * size_of::<Served>() as u64;
    let failed = |error| refusal(SERVER, bytes, &error);
    let mut storage = MaybeUninit::uninit();
    let mut open = programs::serve::ServeSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants(SERVER))?;
    constants.own_mac = mac(options.own);
    constants.listen = words(options.listen.ip());
    constants.listen_port = options.listen.port().to_be();
    constants.answers_for_address = options.answers_for_address.into();
    constants.tag_control = options.tag.unwrap_or(0).to_be();
    constants.mss = options.mss.into();
    constants.answer_length = options.answer.len() as u32;
    constants.segment_length = options.mss.into();
    constants.requests = options.requests;
    constants.key = options.key;
    constants.relays = options.relays.into();
    constants.longer = options.longer as u32;
    constants.redirect_to = redirect_to.unwrap_or(0);
    constants.answer.iter_mut().zip(&options.answer).for_each(|(to, from)| *to = *from);
    let pieces = options.answer.chunks(usize::from(options.mss.max(1)));
    constants.sums.iter_mut().zip(pieces).for_each(|(to, piece)| *to = sum_of(piece));
    let sort = Sort { v6: options.listen.is_ipv6(), tagged: options.tag.is_some(), udp: options.udp };
    sort.only(servers!(mut open.progs));
    open.maps.counts.set_max_entries(cpus).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    let program = servers!(skeleton.progs)[sort.number()];
    Ok(LoadedServer { program: keep(program.as_fd())?, counts: map_all(&skeleton.maps.counts)? })
}
