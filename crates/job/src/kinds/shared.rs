//! What several verbs do alike.

use crate::claims::{self, Claim};
use crate::cores::{self, Taken};
use crate::place::Place;
use crate::session::Among;
use crate::sides::Sides;
use anyhow::{Context as _, Result, bail};
use engine::{CatchUp, Pacing, Priority};
use report::RequestedRate;
use spec::{Clock, Cores, Engine, How, Side, Timestamps};
use std::sync::Arc;
use std::time::Duration;
use traffic::fraction::reduced;
use traffic::rate::Context;
use traffic::schedule::LAYER1_OVERHEAD;
use traffic::shape::Shaped;
use traffic::{Program, Rate, Schedule, Shape};

pub use crate::engines::{open_by, open_engines};
pub use crate::through::Through;

/// Frames of a run that are timed one by one at the receiver.
const ARRIVALS: usize = 4_000_000;

/// How fast, for how long.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// `None`: as the source's own times say.
    pub rate: Option<Rate>,
    /// For so long.
    pub duration: Option<Duration>,
    /// So many frames.
    pub count: Option<u64>,
    /// After a stall, at most so many times the rate; 1: nothing is caught up. `None`: as the link allows.
    pub catch_up: Option<f64>,
    /// Never sleep.
    pub spin: bool,
    /// Never go before other programs.
    pub no_real_time: bool,
}

impl Pace {
    /// How frames are kept to their times on the way by `places`.
    pub fn pacing(&self, places: &[Place]) -> Pacing {
        let catch_up = match self.catch_up {
            Some(times) if times <= NOTHING => CatchUp::Never,
            Some(times) => CatchUp::Times(times),
            // Of several the slowest.
            None => CatchUp::by_link(places.iter().filter_map(speed).min()),
        };
        Pacing { catch_up, spin: self.spin }
    }

    /// Of senders whose frames have times, or have none. Those that send as fast as it goes need all of their CPU always, and
    /// leave it to the kernel what that takes from others.
    pub fn priority(&self, paced: bool) -> Priority {
        if paced && !self.no_real_time { Priority::AsNeeded } else { Priority::Ordinary }
    }
}

/// The value of `catch_up` by which nothing is.
const NOTHING: f64 = 1.0;

/// The speed of a link, as far as catching up is concerned: what virtual devices state keeps nobody to it.
fn speed(place: &Place) -> Option<u64> {
    let stated = place.bits_per_second()?;
    Some(if place.is_virtual() { stated.max(engine::pacer::UNKNOWN_LINK) } else { stated })
}

/// Of those that have that part.
macro_rules! pace_of {
    ($($job:ty),+) => {$(
        impl From<&$job> for Pace {
            fn from(asked: &$job) -> Pace {
                Pace {
                    rate: asked.rate.as_deref().copied(),
                    duration: asked.duration.as_deref().copied(),
                    count: asked.count.as_deref().copied(),
                    catch_up: asked.catch_up,
                    spin: asked.spin,
                    no_real_time: asked.no_real_time,
                }
            }
        }
    )+};
}

pace_of!(spec::Send, spec::Replay);

/// The second side of a capture, and how it is told apart.
#[derive(Debug, Clone, Default)]
pub struct TwoSides {
    /// Where the second side leaves.
    pub on2: Option<String>,
    /// How the sides are told apart.
    pub sides: Option<Sides>,
    /// Nobody said how; it is by what the capture shows.
    pub assumed: bool,
    /// The side that is sent alone.
    pub only_side: Option<Side>,
    /// Where the second side is measured.
    pub measure2: Option<String>,
}

/// What is measured, and how.
#[derive(Debug, Clone, Default)]
pub struct Metering {
    /// Where frames are measured.
    pub measure: Option<String>,
    /// Frames come back to where they are sent.
    pub round_trip: bool,
    /// By what, and what is looked at.
    pub how: spec::Meter,
}

/// Streams that get percentiles, of who names no number.
pub const STREAM_HISTOGRAMS: u32 = 64;

/// Refuses what leaves nothing to do for a lab.
///
/// # Errors
/// It is such.
pub fn check_lab(through: &Through) -> Result<()> {
    if through.engine == Engine::Null {
        bail!("`.engine` null sends nothing, so `.lab` has nothing to measure: leave one of them out");
    }
    Ok(())
}

/// Finds where to send, and refuses what would cut the user off.
///
/// # Errors
/// That the interface is not there, or that the user depends on it.
pub fn sending_place(spec: Option<&str>, through: &Through) -> Result<Option<Place>> {
    let Some(spec) = spec else {
        if through.engine == Engine::Null {
            return Ok(None);
        }
        bail!(
            "where to? Add `.lab` (two hosts of its own, no hardware), name an interface with `.on` IFACE (`ip -br link` \
             lists them), or use `.engine` null"
        );
    };
    let place = Place::find(spec)?;
    place.guard(&through.yes_disrupt)?;
    if !place.interface.ethernet {
        bail!("{spec} is not an Ethernet interface: netdyno sends Ethernet frames");
    }
    if !place.interface.up {
        bail!("{spec} is down: bring it up with `ip link set {} up`", place.interface.name);
    }
    Ok(Some(place))
}

/// The CPUs to send on, one worker on each; `None` where the kernel may put it anywhere. Where they are left to us, CPUs that
/// another netdyno sends on are taken last. What is taken is ours from then on (module `claims`).
///
/// # Errors
/// That a CPU is not there, or may not be used.
pub fn cpus(through: &Through, places: &[Place]) -> Result<Vec<Option<usize>>> {
    cpus_apart(through, places, Priority::Ordinary, true)
}

/// The CPUs of several ports that each have workers of their own: how many workers a port has, and the CPUs of all, port by
/// port. Who names none has one worker for each port, on CPUs of their own as far as there are as many.
///
/// # Errors
/// That a CPU is not there, or that they cannot be shared out.
pub fn cpus_of_ports(through: &Through, places: &[Place]) -> Result<(usize, Vec<Option<usize>>)> {
    let own = match &through.cores {
        Some(_) => cpus(through, places)?,
        None => {
            let allowed = crate::environment::allowed_cpus().map_or(1, |allowed| allowed.len());
            let cores = Some(Cores::Number(places.len().clamp(1, allowed.max(1))));
            cpus(&Through { cores, ..through.clone() }, places)?
        }
    };
    let workers = if through.cores.is_some() { own.len() } else { 1 };
    let all = own.iter().copied().cycle().take(places.len() * workers).collect();
    Ok((workers, all))
}

/// The same for senders of a priority. Not `apart`: the others' CPUs do not matter.
///
/// # Errors
/// As [`cpus`].
pub fn cpus_apart(
    through: &Through,
    places: &[Place],
    priority: Priority,
    apart: bool,
) -> Result<Vec<Option<usize>>> {
    let queues = places.iter().map(|place| place.interface.tx_queues).min().unwrap_or(1);
    let cores = through.cores.clone().unwrap_or(Cores::Number(1));
    let Some(allowed) = crate::environment::allowed_cpus() else {
        return Ok(match cores {
            Cores::List(list) => list.into_iter().map(Some).collect(),
            Cores::Number(n) => vec![None; n],
        });
    };
    let apart = apart && matches!(cores, Cores::Number(_));
    let held = |cpu: &usize| Some((*cpu, claims::held_by_another(*cpu)?.real_time));
    let mut taken: Taken = allowed.iter().filter(|_| apart).filter_map(held).collect();
    loop {
        let chosen =
            cores::choose(&cores, &allowed, &taken, queues).with_context(|| format!("`.cores` {cores}"))?;
        // Another may have been quicker.
        let lost =
            chosen.iter().filter(|cpu| apart && !taken.contains_key(cpu)).find_map(
                |cpu| match claims::claim(*cpu, priority) {
                    Claim::Held(holder) => Some((*cpu, holder.real_time)),
                    Claim::Ours => None,
                },
            );
        match lost {
            Some((cpu, real_time)) => taken.insert(cpu, real_time),
            None => return Ok(chosen.into_iter().map(Some).collect()),
        };
    }
}

/// Finds where to measure: for a round trip where frames are sent, on `sending`.
///
/// # Errors
/// That the interface is not there, or may not be used.
pub fn measuring_place(
    metering: &Metering,
    through: &Through,
    paced: bool,
    sending: Option<&str>,
) -> Result<Option<(Place, meter::Options)>> {
    let (spec, option) = match (&metering.measure, sending) {
        (Some(spec), _) => (spec.as_str(), format!("`.measure` {spec}")),
        (None, Some(sending)) if metering.round_trip => (sending, "`.round_trip`".to_owned()),
        _ => return Ok(None),
    };
    if through.engine == Engine::Null {
        bail!("`.engine` null sends nothing, so {option} has nothing to measure: leave one of them out");
    }
    let place = Place::find(spec)?;
    // What arrives is dropped, unless it is to pass: that would cut the user off as well as sending would, and what else this
    // host is connected with.
    guard_measuring(&place, metering, through)?;
    metered(place, metering, paced).map(Some)
}

/// Refuses to measure where the user depends on what arrives.
fn guard_measuring(place: &Place, metering: &Metering, through: &Through) -> Result<()> {
    match metering.how.pass {
        true => place.guard(&through.yes_disrupt),
        false => place.guard_taking(&through.yes_disrupt, Some(LET_PASS)),
    }
}

/// What takes nothing from the host that is measured at.
const LET_PASS: &str = "let it pass, by `.pass`";

/// The same for a place that is known.
///
/// # Errors
/// That it cannot be measured there.
pub fn metered(place: Place, metering: &Metering, paced: bool) -> Result<(Place, meter::Options)> {
    let how = &metering.how;
    let (place, options) = with_meter(place, (how.how, how.timestamps), paced)?;
    let clock = stamp_clock(how.clock);
    let stream_histograms = how.stream_histograms.unwrap_or(STREAM_HISTOGRAMS);
    let action = if how.pass { meter::Action::Pass } else { meter::Action::Drop };
    Ok((
        place,
        meter::Options { action, stream_histograms, inter_arrival: how.inter_arrival, clock, ..options },
    ))
}

/// Where frames leave, and where they arrive.
pub type Ends = (Vec<Place>, Vec<(Place, meter::Options)>);

/// Finds where the second side's frames leave and arrive, behind the first's.
///
/// # Errors
/// That an interface is not there, or may not be used.
pub fn second(
    two: &TwoSides,
    through: &Through,
    metering: &Metering,
    paced: bool,
    (tx, rx): &mut Ends,
) -> Result<()> {
    let (Some(spec), Some(first)) = (two.on2.as_deref(), tx.first()) else { return Ok(()) };
    let Some(place) = sending_place(Some(spec), through)? else { return Ok(()) };
    if place.is_same_as(first) {
        bail!(
            "{} is named for both sides: name another interface for the second one, or no second side at all",
            place.spec
        );
    }
    if metering.round_trip {
        bail!(
            "`.round_trip` measures at one interface: with `.links[1].on` say where frames arrive with `.measure` and `.links[1].measure`"
        );
    }
    if let Some(spec) = &two.measure2 {
        let at = Place::find(spec)?;
        guard_measuring(&at, metering, through)?;
        rx.push(with_meter(at, (metering.how.how, metering.how.timestamps), paced)?);
    }
    if metering.measure.is_some() && two.measure2.is_none() {
        bail!(
            "`.measure` sees only what arrives of one side: name with `.links[1].measure` where the other side's frames arrive"
        );
    }
    tx.push(place);
    Ok(())
}

/// The interfaces that the user named, each once.
pub fn interfaces(tx: &[Place], rx: &[(Place, meter::Options)], round_trip: bool) -> Vec<String> {
    let measured = rx.iter().filter(|_| !round_trip).map(|(place, _)| place);
    let mut names: Vec<String> = Vec::new();
    for place in tx.iter().chain(measured) {
        if !names.contains(&place.spec) {
            names.push(place.spec.clone());
        }
    }
    names
}

/// Meter options for a port that only receives what this run sends.
///
/// # Errors
/// That what arrives there cannot be measured so.
pub fn with_meter(
    place: Place,
    (how, who): (How, Timestamps),
    paced: bool,
) -> Result<(Place, meter::Options)> {
    measurable(&place)?;
    let options = meter::Options {
        mode: meter_mode(how),
        hardware: hardware(&place, who, how)?,
        arrivals: if paced { ARRIVALS } else { 0 },
        tags_taken_out: takes_tags_out(&place),
        tags_told: tells_tags(&place),
        ..meter::Options::default()
    };
    Ok((place, options))
}

/// Refuses interfaces whose frames would be misread.
///
/// # Errors
/// Why frames would be misread.
pub fn measurable(place: &Place) -> Result<()> {
    if !place.interface.ethernet {
        bail!("{} is not an Ethernet interface: netdyno measures Ethernet frames", place.spec);
    }
    if !place.interface.up {
        bail!("{} is down: bring it up with `ip link set {} up`", place.spec, place.interface.name);
    }
    Ok(())
}

/// Whether XDP programs there see frames without their VLAN tags.
pub fn takes_tags_out(place: &Place) -> bool {
    place.run_in(|| place.interface.takes_tags_out()).unwrap_or(false)
}

/// Whether XDP programs there can ask for the VLAN tags that were taken out.
pub fn tells_tags(place: &Place) -> bool {
    let features = place.run_in(|| port::interface::xdp_features(place.interface.index));
    matches!(features, Ok(Ok(Some(features))) if features.receive_tags)
}

/// Time stamps of the hardware at `place`: asked for, or there to be had.
///
/// # Errors
/// That they were asked for and cannot be had.
pub fn hardware(place: &Place, who: Timestamps, how: How) -> Result<Option<meter::Hardware>> {
    match who {
        Timestamps::Software => return Ok(None),
        Timestamps::Auto if how == How::XdpGeneric => return Ok(None),
        Timestamps::Hardware if how == How::XdpGeneric => {
            bail!("`.timestamps` hardware: generic XDP sees none; leave out `.how`, or take `.how` packet")
        }
        Timestamps::Auto | Timestamps::Hardware => {}
    }
    let (name, index) = (&place.interface.name, place.interface.index);
    let stamping = match place.run_in(|| port::timestamps::receive_stamps(name, index))? {
        Ok(stamping) => stamping,
        Err(_) if who == Timestamps::Auto => return Ok(None),
        Err(why) => bail!("`.timestamps` hardware on {}: {why}", place.spec),
    };
    let (clock, to_xdp) = (stamping.clock, stamping.to_xdp);
    let compare = move || {
        let port::phc::Comparison { before_ns, device_ns, after_ns } = clock.compare()?;
        Ok(meter::Comparison { before_ns, device_ns, after_ns })
    };
    let required = who == Timestamps::Hardware;
    Ok(Some(meter::Hardware { compare: Arc::new(compare), to_xdp, required }))
}

/// The clock that arrivals are timed by, and signatures carry times of.
pub fn stamp_clock(clock: Clock) -> clocks::Clock {
    match clock {
        Clock::Monotonic => clocks::Clock::Monotonic,
        Clock::Tai => clocks::Clock::Tai,
    }
}

/// The clock that frames are stamped by: of several hosts that of the one where they are measured.
pub fn stamps(clock: Clock, among: &Among) -> clocks::Clock {
    match among.stamps_ahead_ns.saturating_add(clocks::pretended()) {
        ahead_ns @ (..=-1 | 1..) if clock == Clock::Tai => clocks::Clock::Elsewhere { ahead_ns },
        _ => stamp_clock(clock),
    }
}

/// The same way, for who measures.
pub fn meter_mode(how: How) -> meter::Mode {
    match how {
        How::Auto => meter::Mode::Auto,
        How::Xdp => meter::Mode::XdpNative,
        How::XdpGeneric => meter::Mode::XdpGeneric,
        How::Packet => meter::Mode::PacketSocket,
    }
}

/// The schedule of a rate on `place`, even if its link cannot carry that.
///
/// # Errors
/// That a share of a link's speed was asked for and the speed is not known.
pub fn any_schedule(
    rate: Rate,
    place: Option<&Place>,
    flows_per_pass: Option<(u64, u64)>,
) -> Result<Schedule> {
    let link_bits_per_second = place.and_then(Place::bits_per_second);
    let schedule = rate.schedule(Context { link_bits_per_second, flows_per_pass });
    schedule.with_context(|| match place {
        Some(place) => format!("`.rate` {rate} on {}", place.spec),
        None => format!("`.rate` {rate}"),
    })
}

/// The schedule of a rate on `place`; what its link cannot carry is refused.
///
/// # Errors
/// As [`any_schedule`], and that the link is slower.
pub fn schedule(rate: Rate, place: Option<&Place>, flows_per_pass: Option<(u64, u64)>) -> Result<Schedule> {
    let schedule = any_schedule(rate, place, flows_per_pass)?;
    if let (Some(place), Some(link)) = (place, place.and_then(Place::bits_per_second))
        && !place.is_virtual()
    {
        let too_fast = match (&schedule, rate) {
            (_, Rate::Percent(_)) => false,
            (Schedule::Bits { bits_per_second, .. }, _) => *bits_per_second > link,
            // The smallest frame takes 84 bytes of the wire.
            (Schedule::Frames { frames, per_ns }, _) => {
                *frames as f64 * 1e9 / *per_ns as f64 * f64::from(60 + LAYER1_OVERHEAD) * 8.0 > link as f64
            }
            _ => false,
        };
        if too_fast {
            bail!(
                "`.rate` {rate} is more than {} can do: its link runs at {}; give at most 100%, or `.rate: top`",
                place.spec,
                report::units::bit_rate(link as f64)
            );
        }
    }
    Ok(schedule)
}

/// The program, its frames at the times of this shape, if one is asked for; `seed` is the key of what is left to chance.
///
/// # Errors
/// That there is no rate in frames per second that could vary.
pub fn shaped(program: Program, shape: Option<&Shape>, seed: u64) -> Result<Program> {
    let Some(shape) = shape else { return Ok(program) };
    let (frames, per_ns) = match program.only_schedule() {
        Some(&Schedule::Frames { frames, per_ns }) => (frames, per_ns),
        Some(&Schedule::Bits { bits_per_second, overhead_bytes }) => {
            let Some(length) = program.only_length() else {
                bail!(
                    "`.shape` {shape}: a shape varies frames per second, and frames of several sizes have no fixed number of them in a rate in bits: give `.rate` as 100kpps, or one `.size`"
                );
            };
            let bits = u128::from(length + overhead_bytes) * 8;
            reduced(bits_per_second.into(), bits * 1_000_000_000)
        }
        _ => bail!(
            "`.shape` {shape}: at top speed there is no rate that could vary: give `.rate` (100kpps, 500mbps, 10%, ...)"
        ),
    };
    Ok(program.with_schedule(shape.schedule(frames, per_ns, seed)))
}

/// Refuses a shape that at its highest is more than the link carries.
///
/// # Errors
/// That it is.
pub fn check_peak(program: &Program, shape: &Shape, place: &Place) -> Result<()> {
    let Some(link) = carried(place) else { return Ok(()) };
    if let Some((_, highest)) = above(program, link) {
        bail!(above_link(shape, highest, place, link));
    }
    Ok(())
}

/// The same of captured frames, as if all were the shortest there are, as their rate is looked at.
///
/// # Errors
/// That it is.
pub fn check_highest(shaped: &Shaped, shape: &Shape, place: &Place) -> Result<()> {
    let Some(link) = carried(place) else { return Ok(()) };
    if is_above(shaped, 60, link) {
        bail!(above_link(shape, shaped.highest(), place, link));
    }
    Ok(())
}

fn above_link(shape: &Shape, highest: f64, place: &Place, link: u64) -> String {
    format!(
        "`.shape` {shape}: at its highest {} are more than {} can do: its link runs at {}; give a lower `.rate`",
        report::units::frame_rate(highest),
        place.spec,
        report::units::bit_rate(link as f64)
    )
}

/// The same of the shapes in a scenario, each by itself: the highest of several need not come together.
///
/// # Errors
/// Which stream's is.
pub fn check_peaks(program: &Program, scenario: &str, place: &Place) -> Result<()> {
    let Some(link) = carried(place) else { return Ok(()) };
    if let Some((stream, highest)) = above(program, link) {
        bail!(
            "{scenario}: stream {stream}: at the highest of its `shape` {} are more than {} can do: its link runs at {}; give a lower `rate` there",
            report::units::frame_rate(highest),
            place.spec,
            report::units::bit_rate(link as f64)
        );
    }
    Ok(())
}

/// The first stream whose shape is at its highest more than a link of so many bits per second carries, and how many frames per second
/// that is.
fn above(program: &Program, link: u64) -> Option<(&str, f64)> {
    program.lanes.iter().find_map(|lane| {
        let Schedule::Shaped(shaped) = &lane.schedule else { return None };
        let streams = || lane.order.iter().filter_map(|which| program.streams.get(*which as usize));
        let shortest = streams().map(|s| s.lengths.bounds(s.templates.shortest()).0).min()?;
        let name = streams().next().map_or("", |stream| &stream.name);
        is_above(shaped, shortest, link).then(|| (name, shaped.highest()))
    })
}

/// How many bits per second a link carries at most. Virtual ones state a speed and do not keep to it.
fn carried(place: &Place) -> Option<u64> {
    place.bits_per_second().filter(|_| !place.is_virtual())
}

/// Whether frames of so many bytes are, at the shape's highest, more than a link carries. As much as it carries is possible, whatever the
/// arithmetic loses.
fn is_above(shaped: &Shaped, bytes: u32, link: u64) -> bool {
    shaped.highest() * f64::from(bytes + LAYER1_OVERHEAD) * 8.0 > link as f64 * 1.001
}

/// The rate and its shape as the result tells them.
pub fn requested_shape(rate: Rate, schedule: &Schedule, shape: Option<&Shape>) -> RequestedRate {
    let asked = requested_rate(rate, schedule);
    match shape {
        Some(shape) => RequestedRate { text: format!("{rate}, shape {shape}"), ..RequestedRate::default() },
        None => asked,
    }
}

/// The rate as the result tells it.
pub fn requested_rate(rate: Rate, schedule: &Schedule) -> RequestedRate {
    let mut asked = RequestedRate { text: rate.to_string(), ..RequestedRate::default() };
    match schedule {
        Schedule::Frames { frames, per_ns } => {
            asked.frames_per_second = Some(*frames as f64 * 1e9 / *per_ns as f64);
        }
        Schedule::Bits { bits_per_second, overhead_bytes: 0 } => {
            asked.bits_per_second = Some(*bits_per_second as f64);
        }
        Schedule::Bits { bits_per_second, .. } => asked.bits_per_second_l1 = Some(*bits_per_second as f64),
        // Of what varies no single number was asked for in a run of any length.
        Schedule::TopSpeed
        | Schedule::Times { .. }
        | Schedule::Bursts { .. }
        | Schedule::Steps { .. }
        | Schedule::Shaped(_) => {}
    }
    if let Rate::Flows(flows) = rate {
        asked.flows_per_second = Some(flows.as_f64());
    }
    asked
}

/// A key for random values, small enough for JSON readers that keep numbers as floats.
pub fn draw_seed() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes) >> 11,
        _ => engine::clock::now() >> 11,
    }
}

/// Refuses limits that make no sense.
///
/// # Errors
/// Which limit makes no sense.
pub fn check_pace(pace: &Pace) -> Result<()> {
    if let Some(times) = pace.catch_up
        && !(times.is_finite() && (times >= 1.2 || times == NOTHING))
    {
        bail!("`.catch_up` {times}: give 1.2 or more (times the rate asked for), or 1 to catch nothing up");
    }
    Ok(())
}

/// Refuses frames that the interface is too small for.
///
/// # Errors
/// That they are too long, and how long they may be.
pub fn check_mtu(program: &Program, place: &Place) -> Result<()> {
    // A VLAN tag may stand on top of the MTU.
    let tagged = program.streams.iter().any(|s| s.templates.get(0).get(12..14) == Some(&[0x81, 0x00]));
    let most = place.interface.mtu as usize + if tagged { 18 } else { 14 };
    if program.longest() as usize > most {
        bail!(
            "frames of {} bytes (with FCS) do not fit {}, whose MTU is {}: raise it with `ip link set {} mtu {}`, or give a smaller `.size`",
            program.longest() + traffic::expr::FCS,
            place.spec,
            place.interface.mtu,
            place.interface.name,
            program.longest() - 14
        );
    }
    Ok(())
}

/// Nothing of a trial, whose load is what is tried.
pub fn no_manual_control_of_trials() -> snapshot::ManualControl {
    let why =
        || Some("a trial is at its load for its time: changed by hand, it would say nothing".to_owned());
    snapshot::ManualControl { no_pause: why(), no_rate: why() }
}

/// Lets the process have as many connections as it may.
pub fn allow_many() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Else there are as many as there were.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::Lane;

    #[test]
    fn a_shape_above_the_link_is_told_of_the_stream_that_has_it() {
        let shape: Shape = "sine:period=1s,amplitude=100%".parse().expect("a shape");
        let lane = |stream: u32, rate| Lane::new([stream], shape.schedule(rate, 1_000_000_000, 1));
        let streams = ["even", "waves"].map(|name| traffic::Stream::of(name, &[0; 60])).into();
        // 84 bytes on the wire: 100 Mbit/s carry 148,809 frames/s, and twice 70,000 and twice 80,000 are below and above that.
        let program = Program { streams, lanes: vec![lane(0, 70_000), lane(1, 80_000)] };
        let (stream, highest) = above(&program, 100_000_000).expect("more than the link carries");
        assert_eq!(stream, "waves");
        assert!((highest - 160_000.0).abs() < 100.0, "{highest}");
        assert_eq!(above(&program, 1_000_000_000), None);
    }
}
