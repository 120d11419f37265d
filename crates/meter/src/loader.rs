//! The only module here that knows libbpf: loads `programs/bpf/meter.bpf.c`, and hands out the program and mapped memory that
//! nothing else needs libbpf for. What it does as the loaders of other objects do stands in [`bpf::object`].

use crate::frames;
use crate::hardware::Line;
use crate::layout::{self, Buckets, Content, LatencySums, Stream, Totals};
use crate::options::{Action, Options};
use crate::seen;
use bpf::object::{Needs, cpu_numbers, first_of, keep, map_all, no_constants, refusal};
use bpf::{Mapping, PerfRings, Program, ProgramError, Quiet};
use clocks::Clock;
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenMapMut};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;

use programs::meter::types;

// The kernel's layout and ours are the same; fields that follow each other are held together by the property test.
const _: () = {
    assert!(
        size_of::<types::totals>() == size_of::<Totals>()
            && size_of::<types::stream>() == size_of::<Stream>()
    );
    assert!(size_of::<types::latency>() == size_of::<LatencySums>());
    assert!(offset_of!(types::latency, min) == offset_of!(LatencySums, min));
    assert!(offset_of!(types::totals, latency) == offset_of!(Totals, latency));
    assert!(offset_of!(types::totals, latencies) == offset_of!(Totals, latencies));
    assert!(offset_of!(types::totals, gaps) == offset_of!(Totals, gaps));
    assert!(offset_of!(types::stream, latency) == offset_of!(Stream, latency));
    assert!(offset_of!(types::stream, holes) == offset_of!(Stream, holes));
    assert!(offset_of!(types::stream, extent_sum) == offset_of!(Stream, extent_sum));
    assert!(size_of::<types::content>() == size_of::<Content>());
    assert!(size_of::<types::device_clock>() == 4 * size_of::<u64>());
    assert!(offset_of!(types::stream, window) == offset_of!(Stream, window));
    assert!(size_of::<types::histogram>() == size_of::<Buckets>());
};

/// The loaded meter and what it writes.
#[derive(Debug)]
pub struct Loaded {
    pub program: Program,
    /// How the hardware's clock stands to this host's; set before the program is attached, if it uses that.
    pub clock: ClockMap,
    /// Why a better program than this one was refused, if not for the kernel's age.
    pub refused: Option<String>,
    /// VLAN tags that were taken out of frames are counted, as far as the driver tells of them.
    pub counts_tags: bool,
    /// One entry for each CPU number.
    pub totals: Mapping<Totals>,
    /// One record for each stream, which the CPUs share; else one for each stream and CPU.
    pub shared: bool,
    /// Entry stream, or cpu * streams + stream.
    pub streams: Mapping<Stream>,
    /// Which sequence numbers were seen, if each CPU has records of its own.
    #[cfg(test)]
    pub seen: Mapping<u64>,
    /// Entry stream, or cpu * `with_histogram` + stream.
    pub histograms: Mapping<Buckets>,
    /// Streams that have a histogram, the first ones.
    pub with_histogram: u32,
    /// Entry stream, if the times between its arrivals were asked for.
    pub stream_gaps: Mapping<Buckets>,
    /// Entry 0 is the number of arrivals, the times follow.
    pub arrivals: Mapping<u64>,
    /// Where copies of frames come, if they were asked for: until somebody takes it.
    pub frames: Mutex<Option<(PerfRings, Switch)>>,
}

impl Loaded {
    /// Frames that were not copied, because whoever takes copies wants no more.
    pub fn unwanted(&self) -> u64 {
        let word = offset_of!(Totals, unwanted) / size_of::<u64>();
        (0..self.totals.len()).filter_map(|cpu| self.totals.word(cpu, word)).sum()
    }
}

/// Where the program has times of arrival from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamper {
    Software,
    /// What the driver of this interface of the calling thread's network namespace tells of frames, to which alone the
    /// program can be attached: stamps of the hardware, or but the VLAN tags that were taken out.
    Bound {
        ifindex: u32,
        stamps: bool,
    },
    /// Eight bytes before the frame.
    #[cfg(test)]
    Told,
}

/// Loads the best program that the kernel takes, with `options` frozen into it. Those for arrivals by software (`enum
/// kernel` of `programs/bpf/meter.bpf.c`) keep the same numbers by the same rules.
pub fn load(options: &Options, stamper: Stamper) -> Result<Loaded, ProgramError> {
    let _quiet = Quiet::start();
    if stamper != Stamper::Software {
        // What tells the hardware's stamps has had several buffers for long.
        return load_with(options, stamper, Needs::Buffers);
    }
    let (mut loaded, refused) = first_of("meter", Needs::ALL, |needs| load_with(options, stamper, needs))?;
    loaded.refused = refused.and_then(|(needs, error)| needs.unexpected(&error));
    Ok(loaded)
}

/// One of the programs.
pub fn load_with(options: &Options, stamper: Stamper, needs: Needs) -> Result<Loaded, ProgramError> {
    let cpus = cpu_numbers()?;
    let with_histogram = if options.latency { options.streams.min(options.stream_histograms) } else { 0 };
    let shared = options.inter_arrival
        || options.share_records.unwrap_or(layout::is_shared(cpus, options.streams, with_histogram));
    let copies = if shared { 1 } else { u64::from(cpus) };
    let slots = copies * u64::from(options.streams);
    let times = options.arrivals as u64 + 1;
    let histograms = (copies * u64::from(with_histogram)).max(1);
    // A single CPU needs no more than its records' windows.
    let seen_bits = if shared || cpus == 1 { 0 } else { layout::seen_bits(options.streams) };
    let seen = match seen_bits {
        0 => 1,
        bits => u64::from(options.streams) * (1 + seen::words(bits) as u64),
    };
    let contents = options.content.entries();
    let bytes = slots * size_of::<Stream>() as u64
        + (times + seen) * 8
        + u64::from(cpus) * size_of::<Totals>() as u64
        + (histograms + u64::from(options.stream_gaps())) * size_of::<Buckets>() as u64
        + size_of_val(contents) as u64;
    let too_many = |_| ProgramError::Memory { program: "meter", bytes };
    let slots = u32::try_from(slots).map_err(too_many)?;
    let times = u32::try_from(times).map_err(too_many)?;
    let seen = u32::try_from(seen).map_err(too_many)?;
    let histograms = u32::try_from(histograms).map_err(too_many)?;
    let expected = u32::try_from(contents.len()).map_err(too_many)?;
    let failed = |error| refusal("meter", bytes, &error);

    let mut storage = MaybeUninit::uninit();
    let mut open = programs::meter::MeterSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let constants = open.maps.rodata_data.as_deref_mut().ok_or_else(|| no_constants("meter"))?;
    constants.verdict = match options.action {
        Action::Drop => sys::XDP_DROP,
        Action::Pass => sys::XDP_PASS,
    };
    constants.stream_limit = options.streams;
    constants.histogram_limit = with_histogram;
    constants.gaps_limit = options.stream_gaps();
    constants.measure_latency = options.latency.into();
    constants.shared_streams = shared.into();
    constants.seen_bits = seen_bits;
    constants.ordered_stores = cfg!(any(target_arch = "x86_64", target_arch = "x86")).into();
    constants.tai_clock = (options.clock == Clock::Tai).into();
    constants.find_trailers = options.trailers.into();
    constants.content_slots = options.content.slots();
    constants.arrivals_limit = times - 1;
    constants.ignore_icmp_errors = options.ignore_icmp_errors.into();
    constants.capture_bytes =
        options.capture.as_ref().map_or(0, |capture| capture.bytes.clamp(1, frames::MOST));
    constants.exact_clock = options.is_exact().into();
    let counts_tags = options.tags_told && matches!(stamper, Stamper::Bound { .. });
    constants.ask_tags = counts_tags.into();
    constants.ask_stamps = matches!(stamper, Stamper::Bound { stamps: true, .. }).into();
    choose(&mut open, stamper, needs);
    let resize = |map: &mut OpenMapMut<'_>, entries| map.set_max_entries(entries).map_err(failed);
    resize(&mut open.maps.totals, cpus)?;
    resize(&mut open.maps.streams, slots)?;
    resize(&mut open.maps.seen, seen)?;
    resize(&mut open.maps.histograms, histograms)?;
    resize(&mut open.maps.stream_gaps, options.stream_gaps().max(1))?;
    resize(&mut open.maps.arrivals, times)?;
    resize(&mut open.maps.contents, expected.max(1))?;

    let skeleton = open.load().map_err(failed)?;
    for (slot, content) in (0u32..).zip(contents) {
        let value = [content.length.to_ne_bytes(), content.hash.to_ne_bytes()].concat();
        skeleton.maps.contents.update(&slot.to_ne_bytes(), &value, MapFlags::ANY).map_err(failed)?;
    }
    let program = match stamper {
        Stamper::Software => match needs {
            Needs::Buffers => skeleton.progs.meter.as_fd(),
            Needs::Atomics => skeleton.progs.meter_5_12.as_fd(),
            Needs::Links => skeleton.progs.meter_5_9.as_fd(),
        },
        Stamper::Bound { .. } => skeleton.progs.meter_hardware.as_fd(),
        #[cfg(test)]
        Stamper::Told => skeleton.progs.meter_told.as_fd(),
    };
    let frames = match &options.capture {
        None => None,
        Some(_) => {
            let over = MapHandle::try_from(&skeleton.maps.frames_over).map_err(failed)?;
            Some((rings(skeleton.maps.frames.as_fd(), cpus)?, Switch(over)))
        }
    };
    Ok(Loaded {
        program: keep(program)?,
        clock: ClockMap(MapHandle::try_from(&skeleton.maps.device_clock).map_err(failed)?),
        refused: None,
        counts_tags,
        shared,
        totals: map_all(&skeleton.maps.totals)?,
        streams: map_all(&skeleton.maps.streams)?,
        #[cfg(test)]
        seen: map_all(&skeleton.maps.seen)?,
        histograms: map_all(&skeleton.maps.histograms)?,
        with_histogram,
        stream_gaps: map_all(&skeleton.maps.stream_gaps)?,
        arrivals: map_all(&skeleton.maps.arrivals)?,
        frames: Mutex::new(frames),
    })
}

/// The rings that captured frames come by.
fn rings(map: BorrowedFd<'_>, cpus: u32) -> Result<PerfRings, ProgramError> {
    PerfRings::open(map, frames::room(cpus)).map_err(|error| ProgramError::System {
        what: "opening the rings that captured frames come by (perf_event_open)",
        error,
    })
}

/// Which of the programs is loaded, and as what.
fn choose(open: &mut programs::meter::OpenMeterSkel<'_>, stamper: Stamper, needs: Needs) {
    let software = |which| stamper == Stamper::Software && needs == which;
    open.progs.meter.set_autoload(software(Needs::Buffers));
    open.progs.meter_5_12.set_autoload(software(Needs::Atomics));
    open.progs.meter_5_9.set_autoload(software(Needs::Links));
    open.progs.meter_hardware.set_autoload(matches!(stamper, Stamper::Bound { .. }));
    open.progs.meter_told.set_autoload(!matches!(stamper, Stamper::Software | Stamper::Bound { .. }));
    open.progs.meter.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    open.progs.meter_told.set_flags(sys::BPF_F_XDP_HAS_FRAGS);
    open.progs.meter_hardware.set_flags(sys::BPF_F_XDP_HAS_FRAGS | sys::BPF_F_XDP_DEV_BOUND_ONLY);
    if let Stamper::Bound { ifindex, .. } = stamper {
        open.progs.meter_hardware.set_ifindex(ifindex);
    }
}

/// Ends the program's copying of frames.
#[derive(Debug)]
pub struct Switch(MapHandle);

impl Switch {
    /// From the next frame on none is copied; each is counted as one that nobody wanted.
    pub fn off(&self) -> io::Result<()> {
        let set = self.0.update(&0u32.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY);
        set.map_err(|error| io::Error::other(format!("{error:#}")))
    }
}

/// Tells the program how the hardware's clock stands to this host's.
#[derive(Debug)]
pub struct ClockMap(MapHandle);

impl ClockMap {
    /// Puts `line` in force as the `turn`-th, from 0 on: it is written where nobody looks, and then looked at.
    pub fn set(&self, turn: u64, line: &Line) -> Result<(), ProgramError> {
        let which = Line { at: turn & 1, ..Line::default() };
        self.write((turn & 1) as u32, line)?;
        self.write(2, &which)
    }

    fn write(&self, slot: u32, line: &Line) -> Result<(), ProgramError> {
        let Line { at, ahead, slope, tai } = *line;
        let value = [at, ahead, slope as u64, tai].map(u64::to_ne_bytes).concat();
        self.0.update(&slot.to_ne_bytes(), &value, MapFlags::ANY).map_err(|error| ProgramError::System {
            what: "writing the map of the hardware's clock",
            error: io::Error::other(format!("{error:#}")),
        })
    }
}
