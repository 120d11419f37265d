//! The meters of a run, one at each of its ports, and what they counted together.

use super::losses::Numbers;
use super::ports::PerPort;
use crate::place::Place;
use anyhow::{Context, Result};
use engine::Job;
use meter::{Measurement, Meter, Snapshot, StreamStats};
use port::interface::Interface;

/// At least one meter. With `per_port` each stream is to arrive at one of them.
pub struct Meters {
    first: Meter,
    others: Vec<Meter>,
    per_port: Option<PerPort>,
}

/// A finished measurement.
pub struct Measured {
    /// Of all.
    pub whole: Measurement,
    /// Of each what was to arrive there, and whether its meter was still there at the end.
    pub parts: Vec<Part>,
}

pub struct Part {
    pub frames: u64,
    pub bytes: u64,
    /// Of the frames: those that most networks carry.
    pub background: u64,
    /// Beside them: those that were to arrive at another port.
    pub strays: u64,
    pub attached: bool,
    /// An XDP program dropped what it had measured.
    pub drops: bool,
    /// Frames that were captured, if that was asked for.
    pub captured: Option<meter::Captured>,
}

/// Starts to count frames of up to `longest` bytes at an interface. Says, too, what the user must know of how they are
/// measured there.
pub fn attach(place: &Place, options: &meter::Options, longest: usize) -> Result<(Meter, Option<String>)> {
    let passing = || on_loopback(place).filter(|_| options.action == meter::Action::Pass);
    let options =
        meter::Options { not_by_xdp: not_by_xdp(place, longest).or_else(passing), ..options.clone() };
    let name = &place.interface.name;
    let attached = place.run_in(|| Meter::attach(name, &options))?;
    let meter = attached.with_context(|| format!("measuring on {}", place.spec))?;
    let warning = options.not_by_xdp.filter(|_| meter.mode() == meter::Mode::XdpNative);
    Ok((meter, warning))
}

/// The longest frame that fills one receive buffer of virtio_net at any MTU: 1500 bytes, an Ethernet header and a VLAN tag.
const ONE_BUFFER: usize = 1518;

/// Why XDP would not see all frames of up to `longest` bytes at `place`, if it would not.
///
/// virtio_net's buffers of before a program was attached have no room for one: of a frame that fills several of those it
/// drops what does not fit a page, and counts some as too long, until its ring has been used up once (seen on Linux 6.12 to
/// 7.3; drivers/net/virtio_net.c, mergeable_xdp_get_buf).
pub fn not_by_xdp(place: &Place, longest: usize) -> Option<String> {
    fills_several(place.interface.driver.as_deref(), place.interface.mtu, longest).then(|| {
        format!(
            "with an XDP program {}'s driver, virtio_net, loses frames of more than {ONE_BUFFER} bytes on arrival, until \
             each of its buffers has been used once",
            place.spec
        )
    })
}

/// Why no XDP program is attached to a loopback unless it is asked for, where frames are only counted: it has no driver that runs one,
/// and the kernel would make a copy of all that this host's programs say to each other.
pub fn on_loopback(place: &Place) -> Option<String> {
    place.interface.loopback.then(|| {
        format!(
            "{} is a loopback, where an XDP program would slow down what this host says to itself",
            place.spec
        )
    })
}

fn fills_several(driver: Option<&str>, mtu: u32, longest: usize) -> bool {
    driver == Some("virtio_net") && mtu > 1500 && longest > ONE_BUFFER
}

/// What the user must know of a packet socket behind a program of somebody else's.
pub fn blind(meter: &Meter, place: &Place) -> Option<String> {
    if meter.mode() != meter::Mode::PacketSocket {
        return None;
    }
    let name = &place.interface.name;
    // As it is now, not as it was when the command began.
    let xdp = place.run_in(|| Interface::by_name(name)).ok()?.ok()?.xdp?;
    Some(format!(
        "{} has another XDP program (id {}): what that drops or redirects never reaches the packet socket \
         that measures here, and counts as lost; detach it (`ip link set {name} xdp off`) to measure all that arrives",
        place.spec, xdp.program_id
    ))
}

impl Meters {
    /// Those at the ports of a run, in their order; `None` of none.
    pub fn of(meters: Vec<Meter>, per_port: Option<PerPort>) -> Option<Meters> {
        let mut meters = meters.into_iter();
        Some(Meters { first: meters.next()?, others: meters.collect(), per_port })
    }

    /// That of what the first port sends.
    pub fn first(&self) -> &Meter {
        &self.first
    }

    /// That of the only interface, if there is one: streams are listed one by one only there while the run lasts.
    pub fn only(&self) -> Option<&Meter> {
        self.others.is_empty().then_some(&self.first)
    }

    /// All, in the order of the ports.
    pub fn each(&self) -> impl Iterator<Item = &Meter> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The only one at which a stream of ours is to arrive.
    fn meter_of(&self, number: u32) -> Option<&Meter> {
        match &self.per_port {
            None => self.only(),
            Some(per_port) => self.each().nth(per_port.meter_of(number)?),
        }
    }

    /// Is each stream to arrive at one meter only, so that [`Meters::stream`] tells of it?
    pub fn tells_streams(&self) -> bool {
        self.per_port.is_some() || self.only().is_some()
    }

    /// What arrived of a stream where it was to.
    pub fn stream(&self, number: u32) -> Option<StreamStats> {
        self.meter_of(number)?.stream(number)
    }

    /// Frames of the jobs' streams that arrived at any meter, copies counted once at each. `None`: their streams are too many
    /// to look at.
    pub fn arrived_of(&self, jobs: &[Job]) -> Option<u64> {
        const FEW: usize = 256;
        let mut numbers = Vec::new();
        for job in jobs {
            numbers.extend(job.source.program()?.streams.iter().filter_map(|stream| stream.signature));
        }
        let of = |number: &u32| self.stream(*number).map_or(0, |stream| stream.distinct());
        (numbers.len() <= FEW).then(|| numbers.iter().map(of).sum())
    }

    /// What all counted up to now.
    pub fn snapshot(&self) -> Snapshot {
        let mut sum = self.first.snapshot();
        self.each().skip(1).for_each(|meter| sum.add(&meter.snapshot()));
        sum
    }

    /// What the numbers of these streams' frames say up to now.
    pub fn numbers(&self, streams: &[u32]) -> Numbers {
        let mut sum = Numbers::default();
        for stream in streams {
            // Of one that arrives at several, each has a part.
            let (mut reached, mut distinct) = (0, 0);
            let alone = self.per_port.as_ref().map(|_| self.meter_of(*stream));
            let at: Vec<&Meter> =
                alone.map_or_else(|| self.each().collect(), |one| one.into_iter().collect());
            for stats in at.into_iter().filter_map(|meter| meter.stream_in_short(*stream)) {
                reached = reached.max(stats.highest_sequence.saturating_add(1));
                distinct += stats.distinct();
            }
            sum.reached += reached;
            sum.missing += reached.saturating_sub(distinct);
        }
        sum
    }

    pub fn finish(self) -> Measured {
        let part = |(at, meter): (usize, Meter)| {
            let (attached, drops) = (meter.is_attached(), meter.drops());
            let mut measured = meter.finish();
            let strays = self.per_port.as_ref().map_or(0, |per_port| per_port.take_strays(at, &mut measured));
            let Snapshot { frames, bytes, background, .. } = measured.totals;
            (
                Part { frames, bytes, background, strays, attached, drops, captured: measured.captured },
                measured,
            )
        };
        let (first, mut whole) = part((0, self.first));
        let mut parts = vec![first];
        for (part, measured) in (1..).zip(self.others).map(part) {
            parts.push(part);
            whole.add(measured);
        }
        Measured { whole, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_frames_of_one_driver_are_not_for_xdp() {
        for (driver, mtu, longest, several) in [
            (Some("virtio_net"), 9000, 8996, true),
            (Some("virtio_net"), 9000, 1519, true),
            (Some("virtio_net"), 9000, 1518, false),
            (Some("virtio_net"), 1500, 1518, false),
            // A run that is told to send more than fits.
            (Some("virtio_net"), 1500, 9000, false),
            (Some("igb"), 9000, 8996, false),
            (None, 9000, 8996, false),
        ] {
            assert_eq!(fills_several(driver, mtu, longest), several, "{driver:?} {mtu} {longest}");
        }
    }
}
