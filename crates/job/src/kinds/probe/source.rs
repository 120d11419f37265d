//! Where the probe has frames from: captures, an XDP program's rings, or a packet socket's, which alone has those that leave.

use crate::kinds::shared;
use crate::place::Place;
use crate::run;
use anyhow::{Context, Result, bail};
use bpf::{Hook, ProgramError};
use capture::Reader;
use meter::heads::{Heads, Options as HeadsOptions};
use port::rx::{Blocks, Direction, Frame, Rx, RxError};
use report::Choice;
use spec::{FlowDirection, How, Probe};
use std::path::PathBuf;
use std::time::Duration;

/// Memory for frames that wait: half a second of small ones at 1.5 Mpps.
const RING: usize = 64 << 20;
/// The same of heads, of all CPUs together: a CPU's share has to do for what it alone takes.
const HEADS: usize = 128 << 20;
/// A frame comes out of a packet socket's ring so long after it arrived, at most, where none waits.
const BEHIND_NS: u64 = 2 * port::rx::RETIRE.as_nanos() as u64;

/// Where frames come from.
pub enum Source {
    /// An interface, and how long the frames are that it sends.
    Live { ring: Ring, longest: usize },
    /// Captures, one behind the other.
    Captures(Vec<Reader>),
}

/// An interface's frames.
pub enum Ring {
    Socket(Box<Blocks>),
    Program(Box<Heads>),
}

/// Of when a batch's frames, or those that come next, are.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// By CLOCK_REALTIME; no earlier frame than the batch's last waits, or, without a batch, than so long ago.
    Behind(u64),
    /// By CLOCK_MONOTONIC: no earlier frame is to come.
    Monotonic(u64),
}

impl Ring {
    /// Gives the batch that is lent back, and takes the next one.
    pub fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        match self {
            Ring::Socket(blocks) => blocks.advance(patience),
            Ring::Program(heads) => heads.advance(patience),
        }
    }

    /// The batch that is lent.
    pub fn frames(&self) -> &[Frame<'_>] {
        match self {
            Ring::Socket(blocks) => blocks.frames(),
            Ring::Program(heads) => heads.frames(),
        }
    }

    pub fn until(&self) -> Until {
        match self {
            Ring::Socket(_) => Until::Behind(BEHIND_NS),
            Ring::Program(heads) => Until::Monotonic(heads.until_ns()),
        }
    }

    /// Frames that found no room. A system call, of a socket.
    pub fn dropped(&mut self) -> u64 {
        match self {
            Ring::Socket(blocks) => blocks.counters().dropped,
            Ring::Program(heads) => heads.dropped(),
        }
    }
}

impl Source {
    /// Captures, and the earliest time that one of them begins at, where all can be read twice.
    pub fn captures(files: &[PathBuf]) -> Result<(Source, Option<u64>)> {
        let mut readers = super::super::replay::open(files, false)?;
        let mut begins = Some(u64::MAX);
        for reader in &mut readers {
            let is_file = reader.patience().is_none();
            // What is wrong with it is said when it is its turn.
            let first =
                if is_file { reader.next_record().ok().flatten().map(|first| first.time_ns) } else { None };
            let links = reader.interfaces();
            if let (Some(one), false) = (links.first(), links.iter().any(|one| one.link.is_readable())) {
                bail!(
                    "{}: its frames are of {}, and where IP begins in these is not known here: convert them to Ethernet frames first",
                    reader.name(),
                    one.link
                );
            }
            begins = begins.filter(|_| is_file).map(|begins| begins.min(first.unwrap_or(u64::MAX)));
            if is_file {
                reader.rewind()?;
            }
        }
        readers.reverse();
        Ok((Source::Captures(readers), begins.filter(|begins| *begins < u64::MAX)))
    }

    /// What arrives at `place` or leaves by it, and how that is taken: native XDP, or a packet socket where that sees less or
    /// is not possible.
    pub fn live(args: &Probe, place: &Place, yes_disrupt: &[String]) -> Result<(Source, Choice)> {
        let longest = place.interface.mtu as usize + 18;
        let live = |ring| Source::Live { ring, longest };
        let hook = match args.how {
            How::Auto | How::Xdp => Some(Hook::XdpNative),
            How::XdpGeneric => Some(Hook::XdpGeneric),
            How::Packet => None,
        };
        // XDP sees nothing that leaves, and no frame's end is copied.
        let hook = hook.filter(|_| args.direction == FlowDirection::In && !args.signatures);
        let asked = args.how != How::Auto;
        let mut why_not = None;
        if let Some(hook) = hook {
            match not_by_xdp(args, place, yes_disrupt)? {
                Some(reason) if !asked => why_not = Some(reason),
                _ => match attached(args, place, hook) {
                    Ok(heads) => {
                        let choice = by_program(&heads, hook);
                        return Ok((live(Ring::Program(Box::new(heads))), choice));
                    }
                    Err(error @ ProgramError::Memory { .. }) => return Err(error.into()),
                    Err(error) if asked => {
                        return Err(error).with_context(|| format!("metering on {}", place.spec));
                    }
                    Err(error) => why_not = Some(error.to_string()),
                },
            }
        }
        if args.drop {
            let why = why_not.map_or_else(String::new, |why| format!(": {why}"));
            bail!("`.drop`: a packet socket keeps nothing from the host{why}");
        }
        let blocks = place.run_in(|| Blocks::open_large(&place.target(), direction(args, place), RING))?;
        let blocks = blocks.with_context(|| format!("metering on {}", place.spec))?;
        let reason = match why_not {
            Some(why) => format!("{why} (packet socket)"),
            None if args.how == How::Auto && args.signatures => {
                "packet socket: signatures stand at frames' ends, which the XDP program does not copy"
                    .to_owned()
            }
            None if args.how == How::Auto => "packet socket: XDP does not see what leaves".to_owned(),
            None => "packet socket".to_owned(),
        };
        let choice = Choice { name: "packet".to_owned(), reason, ..Choice::default() };
        Ok((live(Ring::Socket(Box::new(blocks))), choice))
    }
}

/// Which frames the packet socket takes. Of a loopback what leaves arrives, and each frame counts once: libpcap does the same.
fn direction(args: &Probe, place: &Place) -> Direction {
    match args.direction {
        FlowDirection::In => Direction::In,
        FlowDirection::Both if place.interface.loopback => Direction::In,
        FlowDirection::Both => Direction::Both,
        FlowDirection::Out => Direction::Out,
    }
}

/// Why XDP would see less than a packet socket does, or do harm, if so. Who asked for it is refused what needs consent.
fn not_by_xdp(args: &Probe, place: &Place, yes_disrupt: &[String]) -> Result<Option<String>> {
    // Attaching a program alone takes the link down for a moment, with some drivers. A packet socket only looks on.
    let guarded = match args.drop {
        true => place.guard_taking(yes_disrupt, Some("leave out `.drop`")),
        false => place.guard(yes_disrupt),
    };
    if let Err(error) = guarded {
        if args.how != How::Auto || args.drop {
            return Err(error);
        }
        return Ok(Some(format!("no XDP program without consent (`.yes_disrupt`): {error:#}")));
    }
    if shared::takes_tags_out(place) && !shared::tells_tags(place) {
        return Ok(Some(format!(
            "{} takes VLAN tags out of frames, and its driver does not tell XDP programs of them",
            place.spec
        )));
    }
    let why = run::not_by_xdp(place, place.interface.mtu as usize + 14).or_else(|| run::on_loopback(place));
    Ok(why.filter(|_| !args.drop))
}

fn attached(args: &Probe, place: &Place, hook: Hook) -> Result<Heads, ProgramError> {
    let options = HeadsOptions {
        hook,
        promiscuous: true,
        drop: args.drop,
        deep: args.inner,
        tags_told: shared::takes_tags_out(place) && shared::tells_tags(place),
        bytes: HEADS,
    };
    let attached = place.run_in(|| Heads::attach(&place.target(), &options));
    attached.unwrap_or_else(|error| {
        let error = std::io::Error::other(format!("{error:#}"));
        Err(ProgramError::System { what: "entering the namespace", error })
    })
}

fn by_program(heads: &Heads, hook: Hook) -> Choice {
    let (name, mut reason) = match hook {
        Hook::XdpNative => ("xdp", "native XDP".to_owned()),
        _ => ("xdp-generic", "generic XDP".to_owned()),
    };
    if let Some(note) = heads.note() {
        reason += &format!("; {note}");
    }
    Choice { name: name.to_owned(), reason, ..Choice::default() }
}
