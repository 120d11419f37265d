//! The only module here that knows libbpf: loads `programs/bpf/drops.bpf.c`, hangs it on the tracepoints and reads its tables.

use crate::btf::Btf;
use crate::counted::{self, COUNT, Cause, Counted, EXAMPLE, Example, KEY, Row, totals};
use crate::error::DropsError;
use crate::symbols::Symbols;
use bpf::{Quiet, kernel};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, ProgramMut, RingBufferBuilder};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

/// The tables' entries together take no more memory than this, a value for each CPU and each entry.
const MEMORY: usize = 64 << 20;
/// Entries of the table that tells frames apart, at most and at least; the other one's are fixed.
const ENTRIES: [usize; 2] = [256, 16_384];
const COARSE: u32 = 512;
/// Where frames in socket buffers are freed that a program of XDP drops at a veth interface: those of a meter in a lab.
const METERS_DROP: &str = "veth_xdp_rcv_skb";
/// The functions that free a frame in a socket buffer for a verdict of XDP.
const XDP_FREES: [&str; 4] =
    ["veth_xdp_rcv_skb", "do_xdp_generic", "netif_receive_generic_xdp", "bpf_prog_run_generic_xdp"];
/// Room for examples, in bytes: a power of two.
const KEPT: u32 = 8 << 20;
/// Rows that are read of a table; more cannot be there, whatever the kernel says.
const MOST: usize = ENTRIES[1] + COARSE as usize;

/// Which drops are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Only those at one interface.
    pub only: Option<Only>,
    /// Which signatures are of this run; `None`: all are taken for it.
    pub run: Option<Run>,
    /// Where meters are that drop what they have counted; the first four count.
    pub meters: Vec<Only>,
    /// Room for so many causes that are told apart; 0: as is usual.
    pub entries: usize,
    /// Frames are kept for examples ([`Tracer::examples`]).
    pub examples: bool,
}

/// An interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only {
    /// Its number.
    pub ifindex: u32,
    /// Its network namespace's ([`namespace_of_this_thread`]).
    pub netns: u32,
}

/// Frames of a run are those stamped since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Nanoseconds of the clock that its frames are stamped by.
    pub began_ns: u64,
    /// That is CLOCK_TAI, else CLOCK_MONOTONIC.
    pub tai: bool,
}

/// Counts drops from its start until it goes.
#[derive(Debug)]
pub struct Tracer {
    drops: MapHandle,
    coarse: MapHandle,
    totals: MapHandle,
    kept: MapHandle,
    programs: Vec<OwnedFd>,
    _links: Vec<Link>,
}

/// What the running kernel offers.
#[derive(Debug, Clone, Copy)]
struct Offered {
    /// Values of skb:kfree_skb.
    arguments: u32,
    /// Whether there is each of the tracepoints of XDP.
    exception: bool,
    bulk: bool,
    devmap: bool,
    redirect: bool,
}

impl Tracer {
    /// Starts to count, in all network namespaces of this kernel.
    ///
    /// # Errors
    /// That rights are missing, or what the kernel has not.
    pub fn start(settings: &Settings) -> Result<Tracer, DropsError> {
        match not_possible() {
            Some(error) => Err(error),
            None => Tracer::load(settings, offered()?),
        }
    }

    fn load(settings: &Settings, offered: Offered) -> Result<Tracer, DropsError> {
        let _quiet = Quiet::start();
        // The first one asks for Linux 6.12.
        match Tracer::load_with(settings, offered, true) {
            Ok(tracer) => Ok(tracer),
            Err(_) => {
                Quiet::forget();
                Tracer::load_with(settings, offered, false)
            }
        }
    }

    fn load_with(settings: &Settings, offered: Offered, read_buffers: bool) -> Result<Tracer, DropsError> {
        let failed =
            |error: libbpf_rs::Error| DropsError::Load { reason: Quiet::refusal(&format!("{error:#}")) };
        let mut storage = MaybeUninit::uninit();
        let mut open = programs::drops::DropsSkelBuilder::default().open(&mut storage).map_err(failed)?;
        let Some(constants) = open.maps.rodata_data.as_deref_mut() else {
            return Err(DropsError::Load { reason: "its object has no constants".to_owned() });
        };
        constants.arguments = offered.arguments;
        constants.read_buffers = read_buffers.into();
        if let Some(only) = settings.only {
            (constants.only_interface, constants.only_namespace) = (only.ifindex, only.netns);
        }
        if let Some(run) = settings.run {
            (constants.only_since, constants.tai_clock, constants.began) = (1, run.tai.into(), run.began_ns);
        }
        let symbols = Symbols::read().ok();
        let function = |name: &str| symbols.as_ref().and_then(|symbols| symbols.function(name));
        let frees = constants.xdp_frees_from.iter_mut().zip(&mut constants.xdp_frees_to);
        for ((from, to), range) in frees.zip(XDP_FREES.iter().filter_map(|name| function(name))) {
            (*from, *to) = range;
        }
        constants.examples = settings.examples.into();
        if !settings.meters.is_empty()
            && let Some(range) = function(METERS_DROP)
        {
            (constants.meter_from, constants.meter_to) = range;
            let places = constants.meter_interfaces.iter_mut().zip(&mut constants.meter_namespaces);
            for ((ifindex, netns), meter) in places.zip(&settings.meters) {
                (*ifindex, *netns) = (meter.ifindex, meter.netns);
            }
        }
        open.progs.exception.set_autoload(offered.exception);
        open.progs.bulk.set_autoload(offered.bulk);
        open.progs.devmap.set_autoload(offered.devmap);
        open.progs.redirect.set_autoload(offered.redirect);
        open.maps.drops.set_max_entries(entries(settings.entries)?).map_err(failed)?;
        open.maps.coarse.set_max_entries(COARSE).map_err(failed)?;
        if settings.examples {
            open.maps.kept.set_max_entries(KEPT).map_err(failed)?;
            open.maps.kept_of.set_max_entries(COARSE).map_err(failed)?;
        }
        let mut skeleton = open.load().map_err(failed)?;
        let kept = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(failed);
        let (drops, coarse) = (kept(&skeleton.maps.drops)?, kept(&skeleton.maps.coarse)?);
        let (totals, examples) = (kept(&skeleton.maps.totals)?, kept(&skeleton.maps.kept)?);
        let (mut programs, mut links) = (Vec::new(), Vec::new());
        let mut hang = |program: &mut ProgramMut<'_>| -> Result<(), DropsError> {
            links.push(program.attach_trace().map_err(failed)?);
            let kept = program.as_fd().try_clone_to_owned();
            programs.push(
                kept.map_err(|error| DropsError::System { what: "keeping the tracer of drops", error })?,
            );
            Ok(())
        };
        let progs = &mut skeleton.progs;
        hang(&mut progs.freed)?;
        let further = [
            (offered.exception, &mut progs.exception),
            (offered.bulk, &mut progs.bulk),
            (offered.devmap, &mut progs.devmap),
            (offered.redirect, &mut progs.redirect),
        ];
        for (there, program) in further {
            if there {
                hang(program)?;
            }
        }
        Ok(Tracer { drops, coarse, totals, kept: examples, programs, _links: links })
    }

    /// What was counted up to now.
    ///
    /// # Errors
    /// That the kernel does not give its tables.
    pub fn read(&self) -> Result<Counted, DropsError> {
        let reading = |error: libbpf_rs::Error| DropsError::System {
            what: "reading what was dropped",
            error: io::Error::other(format!("{error:#}")),
        };
        let mut rows = Vec::new();
        for (map, coarse) in [(&self.drops, false), (&self.coarse, true)] {
            for key in map.keys().take(MOST) {
                let counts = map.lookup_percpu(&key, MapFlags::ANY).map_err(reading)?.unwrap_or_default();
                rows.extend(Row::read(&key, &counts, coarse));
            }
        }
        rows.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.cmp(b)));
        let sums = self.totals.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(reading)?;
        let (unlisted, unread, _) = totals(&sums.unwrap_or_default());
        let missed = self.programs.iter().map(missed).sum();
        Ok(Counted { rows, unlisted, unread, missed })
    }
}

impl Tracer {
    /// Frames of this run that were dropped up to now, by cause, for who looks often. `None`: the tables have more than `most` rows, those of other
    /// frames included, and were not read to the end.
    ///
    /// # Errors
    /// That the kernel does not give its tables.
    pub fn signed(&self, most: usize) -> Result<Option<Vec<(Cause, u64)>>, DropsError> {
        let mut found = BTreeMap::new();
        let mut rows = 0;
        for map in [&self.drops, &self.coarse] {
            for key in map.keys() {
                rows += 1;
                if rows > most {
                    return Ok(None);
                }
                let Some(cause) = Cause::of_signed(&key) else { continue };
                let counts = map.lookup_percpu(&key, MapFlags::ANY).map_err(|error| DropsError::System {
                    what: "reading what was dropped",
                    error: io::Error::other(format!("{error:#}")),
                })?;
                let sum = found.entry(cause).or_insert(0_u64);
                *sum = sum.saturating_add(counted::frames(&counts.unwrap_or_default()));
            }
        }
        Ok(Some(found.into_iter().collect()))
    }

    /// Forgets the rows that were counted up to now, so that what comes has times, sequence numbers and room of its own. Sums of what found
    /// no place go on.
    ///
    /// # Errors
    /// That the kernel does not let go of one.
    pub fn forget(&self) -> Result<(), DropsError> {
        for map in [&self.drops, &self.coarse] {
            // A table whose keys go while they are walked begins again from its first.
            let keys: Vec<_> = map.keys().take(MOST).collect();
            for key in keys {
                map.delete(&key).map_err(|error| DropsError::System {
                    what: "forgetting what was dropped",
                    error: io::Error::other(format!("{error:#}")),
                })?;
            }
        }
        Ok(())
    }

    /// The frames that were kept for examples, in the order in which they were dropped, and how many there was no room for. Each is
    /// told once.
    ///
    /// # Errors
    /// That the kernel does not give them.
    pub fn examples(&self) -> Result<(Vec<Example>, u64), DropsError> {
        let reading = |error: libbpf_rs::Error| DropsError::System {
            what: "reading frames that were dropped",
            error: io::Error::other(format!("{error:#}")),
        };
        let mut found = Vec::new();
        let mut builder = RingBufferBuilder::new();
        let take = |bytes: &[u8]| {
            found.extend(Example::read(bytes));
            // What is dropped meanwhile comes to no end.
            -i32::from(found.len() > KEPT as usize / EXAMPLE)
        };
        builder.add(&self.kept, take).map_err(reading)?;
        let ring = builder.build().map_err(reading)?;
        // The callback ends it by an error of its own.
        let _ = ring.consume();
        drop(ring);
        let sums = self.totals.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(reading)?;
        found.sort_by_key(|example| example.time_ns);
        Ok((found, totals(&sums.unwrap_or_default()).2))
    }
}

/// How often a program was not run because one ran on that CPU; 0 where the kernel does not say (before 5.12).
fn missed(program: &OwnedFd) -> u64 {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).unwrap_or_default();
    let misses = told.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
    misses.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Entries of the table that tells frames apart.
fn entries(wanted: usize) -> Result<u32, DropsError> {
    let cpus = bpf::object::cpu_numbers().map_err(|error| DropsError::System {
        what: "counting CPUs",
        error: io::Error::other(error.to_string()),
    })?;
    let [least, most] = ENTRIES;
    let fit = MEMORY / (KEY + COUNT * cpus.max(1) as usize);
    let usual = fit.clamp(least, most);
    Ok(if wanted == 0 { usual } else { wanted.min(usual) } as u32)
}

/// What the kernel's own description says of its tracepoints.
fn offered() -> Result<Offered, DropsError> {
    let no_btf = |reason: String| DropsError::NoBtf { release: kernel::release(), reason };
    let bytes = fs::read("/sys/kernel/btf/vmlinux").map_err(|error| no_btf(error.to_string()))?;
    let btf = Btf::read(&bytes, None).ok_or_else(|| no_btf("it is damaged".to_owned()))?;
    let there = |tracepoint| btf.tracepoint_values(tracepoint).is_some();
    let arguments = btf.tracepoint_values("kfree_skb");
    Ok(Offered {
        arguments: arguments.ok_or_else(|| no_btf("it has no tracepoint skb:kfree_skb".to_owned()))?,
        exception: there("xdp_exception"),
        bulk: there("xdp_bulk_tx"),
        devmap: there("xdp_devmap_xmit"),
        redirect: there("xdp_redirect_err"),
    })
}

/// What keeps drops from being traced here, as far as that is known without trying.
pub fn not_possible() -> Option<DropsError> {
    let missing = missing_rights(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    if let Some(missing) = missing {
        let program =
            std::env::current_exe().map_or_else(|_| "netdyno".to_owned(), |path| path.display().to_string());
        return Some(DropsError::Permission { missing, program });
    }
    if let Err(error) = fs::metadata("/sys/kernel/btf/vmlinux") {
        return Some(DropsError::NoBtf { release: kernel::release(), reason: error.to_string() });
    }
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    lockdown.contains("[confidentiality]").then_some(DropsError::LockedDown)
}

/// The capabilities that are wanted and not there, by /proc/self/status.
fn missing_rights(status: &str) -> Option<String> {
    const ADMIN: u32 = 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = u64::from_str_radix(effective?.trim(), 16).ok()?;
    let has = |number: u32| effective >> number & 1 == 1 || effective >> ADMIN & 1 == 1;
    let wanted = [(39, "CAP_BPF"), (38, "CAP_PERFMON")];
    let missing: Vec<_> = wanted.iter().filter(|(number, _)| !has(*number)).map(|(_, name)| *name).collect();
    (!missing.is_empty()).then(|| missing.join(" and "))
}

/// The number of the calling thread's network namespace, as a row has it.
pub fn namespace_of_this_thread() -> u32 {
    fs::metadata("/proc/thread-self/ns/net")
        .map_or(0, |namespace| u32::try_from(namespace.ino()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named() {
        let said = |bits: u64| missing_rights(&format!("Name:\tx\nCapEff:\t{bits:016x}\n"));
        assert_eq!(said(0).as_deref(), Some("CAP_BPF and CAP_PERFMON"));
        assert_eq!(said(1 << 39).as_deref(), Some("CAP_PERFMON"));
        assert_eq!(said(1 << 39 | 1 << 38), None);
        assert_eq!(said(1 << 21), None, "CAP_SYS_ADMIN had them before");
        assert_eq!(missing_rights(""), None, "then the kernel says so");
    }

    #[test]
    fn tables_are_bounded() {
        let usual = entries(0).expect("CPUs are counted");
        assert!((ENTRIES[0]..=ENTRIES[1]).contains(&(usual as usize)));
        assert_eq!(entries(5).expect("as above"), 5);
    }
}
