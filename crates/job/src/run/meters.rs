//! The meters of a run: at one interface or at two, and what they counted together.

use super::losses::Numbers;
use crate::place::Place;
use anyhow::{Context, Result};
use meter::{Measurement, Meter, Snapshot};
use port::interface::Interface;

/// At least one meter.
pub struct Meters {
    first: Meter,
    second: Option<Meter>,
}

/// A finished measurement.
pub struct Measured {
    /// Of both.
    pub whole: Measurement,
    /// Frames and bytes of each, and whether its meter was still there at the end.
    pub parts: Vec<Part>,
}

pub struct Part {
    pub frames: u64,
    pub bytes: u64,
    /// Of the frames: such as are about on most networks.
    pub background: u64,
    pub attached: bool,
    /// An XDP program dropped what it had measured.
    pub drops: bool,
}

/// Starts to count frames of up to `longest` bytes at an interface. Says, too, what the user must know of how they are
/// measured there.
pub fn attach(place: &Place, options: &meter::Options, longest: usize) -> Result<(Meter, Option<String>)> {
    let options = meter::Options { not_by_xdp: not_by_xdp(place, longest), ..options.clone() };
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
    pub fn new(first: Meter, second: Option<Meter>) -> Meters {
        Meters { first, second }
    }

    /// That of what the first interface sends.
    pub fn first(&self) -> &Meter {
        &self.first
    }

    /// That of the only interface, if there is one: streams are told one by one only there while the run lasts.
    pub fn only(&self) -> Option<&Meter> {
        self.second.is_none().then_some(&self.first)
    }

    fn each(&self) -> impl Iterator<Item = &Meter> {
        std::iter::once(&self.first).chain(&self.second)
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
            // Of one that arrives at both, each has a part.
            let (mut reached, mut distinct) = (0, 0);
            for stats in self.each().filter_map(|meter| meter.stream_in_short(*stream)) {
                reached = reached.max(stats.highest_sequence.saturating_add(1));
                distinct += stats.distinct();
            }
            sum.reached += reached;
            sum.missing += reached.saturating_sub(distinct);
        }
        sum
    }

    pub fn finish(self) -> Measured {
        let part = |meter: Meter| {
            let (attached, drops) = (meter.is_attached(), meter.drops());
            let measured = meter.finish();
            let Snapshot { frames, bytes, background, .. } = measured.totals;
            (Part { frames, bytes, background, attached, drops }, measured)
        };
        let (first, mut whole) = part(self.first);
        let mut parts = vec![first];
        if let Some((second, measured)) = self.second.map(part) {
            parts.push(second);
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
