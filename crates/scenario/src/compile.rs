//! A file's streams to a program: frames by the expression compiler, times by `timing`, lanes here.
//!
//! ```text
//!   streams without timing of their own --weights--> one lane, in an exact repeating order, at the common rate
//!   any other stream                    ----------->  a lane by itself, from its start to its end
//! ```

use super::Scenario;
use super::error::{Fault, Outcome, Place};
use super::flows::{self, FlowPlan};
use super::model::{File, Name, RateText, Resolve, SizeText, Stream, Time};
use super::timing::{self, Timing};
use super::yaml::At;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use traffic::expr::{self, ExprError, Options, Size};
use traffic::fraction::gcd;
use traffic::lengths::Lengths;
use traffic::program::{self, Lane, Program};
use traffic::rate::Rate;
use traffic::values;
use wire::LinkType;
use wire::layers::{L3, Layers};

/// Length of the order by which streams share a rate, at most.
const MAX_ORDER: u64 = 1 << 16;
/// Sizes in the tables of all streams together, at most.
const MAX_SIZES: usize = 1 << 20;
/// Different lengths of all streams together, at most: each has sums of its own when frames are made.
const MAX_SPREAD: u64 = 1 << 22;

/// Which streams end their frames with a signature, unless they say so themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sign {
    /// None.
    #[default]
    No,
    /// Those whose frames have room.
    WhereRoom,
    /// All; one without room is an error.
    All,
}

/// What the file does not decide, or what was asked for instead of what it says.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Key of all random values.
    pub seed: u64,
    /// Signatures.
    pub sign: Sign,
    /// For rates in percent of it.
    pub link_bits_per_second: Option<u64>,
    /// Instead of the file's common rate.
    pub rate: Option<Rate>,
    /// Instead of the file's default size.
    pub size: Option<Size>,
    /// Instead of the file's duration, in nanoseconds: flows end within it.
    pub duration: Option<u64>,
}

/// A scenario, ready to be sent.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// What to send; its streams are in the file's order, and so are the numbers in their signatures.
    pub program: Program,
    /// Stated for the whole run.
    pub duration: Option<Duration>,
    /// Stated for the whole run.
    pub count: Option<u64>,
    /// The rate of all frames together, where one is stated.
    pub rate: Option<Rate>,
    /// Does it go on until it is stopped, unless the run's end is stated?
    pub endless: bool,
    /// Streams that wait for Ethernet addresses.
    pub resolve: Vec<Unresolved>,
    /// Streams, and flow profiles, that would have been signed, had there been room.
    pub unsigned: Vec<String>,
    /// What each flow profile comes to.
    pub flows: Vec<FlowPlan>,
}

/// A stream whose frames need the Ethernet address of a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// Index of the stream.
    pub stream: usize,
    /// Whose address.
    pub next_hop: IpAddr,
    /// Who asks: the frame's first source address, where it is of the same family.
    pub source: Option<IpAddr>,
}

impl Compiled {
    /// Puts a neighbour's Ethernet address (and our own, unless the file gave one) into a stream's frames.
    pub fn resolved(&mut self, unresolved: &Unresolved, neighbour: [u8; 6], own: [u8; 6]) {
        /// What the expression compiler fills in.
        const DEFAULT_SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
        let Some(stream) = self.program.streams.get_mut(unresolved.stream) else {
            return;
        };
        let mut bytes = stream.templates.get(0).to_vec();
        if let Some(address) = bytes.get_mut(..6) {
            address.copy_from_slice(&neighbour);
        }
        if let Some(address) = bytes.get_mut(6..12).filter(|address| **address == DEFAULT_SOURCE) {
            address.copy_from_slice(&own);
        }
        stream.templates = traffic::templates::Templates::single(&bytes);
    }
}

/// A stream's own timing, or a part of the common rate.
enum Pace<'a> {
    Own(Option<&'a At<RateText>>),
    Share(u32),
}

pub(super) fn compile(scenario: &Scenario, context: &Context) -> Outcome<Compiled> {
    let file = &scenario.file;
    let streams = &file.streams.0;
    if streams.is_empty() && file.flows.0.is_empty() {
        let message = match scenario.text.trim().is_empty() {
            true => "the file is empty",
            false => "there is nothing to send: give `streams` or `flows`, one at least",
        };
        return Err(Fault { place: Place::START, message: message.to_owned() });
    }
    let duration = file.duration.as_ref().map(|time| timing::positive(time, "the run's duration"));
    let duration = duration.transpose()?.map(|time| Duration::from_nanos(time.value.0));
    let names = names(streams)?;
    let mut bounds = Bounds::default();
    let mut unsigned = Vec::new();
    let mut made = Vec::with_capacity(streams.len());
    for (number, stream) in streams.iter().enumerate() {
        let frames = frames(scenario, number, stream, &names[number], context, &mut bounds, &mut unsigned)?;
        made.push(frames);
    }
    let profiles = flows::compile(file, context, made.len())?;
    let wanted =
        streams.iter().map(|stream| stream.value.resolve.as_ref().or(file.defaults.resolve.as_ref()));
    let of_profiles = file.flows.0.iter().zip(&profiles).flat_map(|(at, made)| {
        let resolve = at.value.resolve.as_ref().or(file.defaults.resolve.as_ref());
        made.streams.iter().map(move |_| resolve)
    });
    let frames = made.iter().chain(profiles.iter().flat_map(|profile| &profile.streams));
    let resolve = unresolved(wanted.chain(of_profiles), frames)?;
    let common = common_rate(file, context);
    let paces: Vec<Pace<'_>> = streams.iter().map(|s| pace(&s.value, file)).collect::<Outcome<_>>()?;
    overridden(file, &paces, context)?;
    let mut lanes: Vec<(usize, Lane)> = Vec::new();
    let mut all_end = true;
    if let Some(lane) = shared(streams, &paces, common.as_ref(), file, context, profiles.len())? {
        all_end = false;
        lanes.push(lane);
    }
    let timings: Vec<Option<Timing>> = streams
        .iter()
        .zip(&paces)
        .zip(&made)
        .enumerate()
        .map(|(number, ((stream, pace), frames))| match pace {
            Pace::Own(rate) => {
                let seed = seed_of(number, context);
                timing::of(&stream.value, *rate, frames, (context.link_bits_per_second, seed)).map(Some)
            }
            Pace::Share(_) => Ok(None),
        })
        .collect::<Outcome<_>>()?;
    let starts = starts(streams, &names, &timings)?;
    let mut run_ends = duration;
    for (number, timing) in timings.into_iter().enumerate() {
        let Some(Timing { schedule, frames, end_ns }) = timing else {
            continue;
        };
        let start_ns = starts[number];
        if !schedule.is_paced() {
            // At top speed only the clock can end it.
            top_speed(&streams[number], streams.len() + profiles.len(), start_ns)?;
            let own = end_ns.map(Duration::from_nanos);
            run_ends = run_ends.into_iter().chain(own).min();
        }
        all_end &= frames.is_some() || end_ns.is_some();
        lanes.push((number, Lane { order: [number as u32].into(), schedule, start_ns, frames }));
    }
    lanes.sort_by_key(|(first, _)| *first);
    let mut lanes: Vec<Lane> = lanes.into_iter().map(|(_, lane)| lane).collect();
    let mut plans = Vec::with_capacity(profiles.len());
    for profile in profiles {
        all_end &= profile.plan.flows.is_some();
        if profile.unsigned {
            unsigned.push(profile.plan.name.clone());
        }
        for stream in &profile.streams {
            bounds.add(stream, Place::START)?;
        }
        made.extend(profile.streams);
        lanes.extend(profile.lanes);
        plans.push(profile.plan);
    }
    let shares = paces.iter().any(|pace| matches!(pace, Pace::Share(_)));
    let rate = match (&paces[..], &common) {
        (_, Some(rate)) if lanes.len() == 1 && shares => Some(rate.value.0),
        ([Pace::Own(Some(rate))], _) => Some(rate.value.0),
        _ => None,
    };
    let program = Program { streams: made, lanes };
    // What is checked there holds by construction; should it not, that is said rather than sent.
    program.check().map_err(|bad| Fault { place: Place::START, message: bad.to_string() })?;
    let count = file.count.as_ref().map(|count| count.value.0);
    let endless = !all_end && run_ends.is_none() && count.is_none();
    Ok(Compiled { program, duration: run_ends, count, rate, endless, resolve, unsigned, flows: plans })
}

/// The streams' names, all different.
fn names(streams: &[At<Stream>]) -> Outcome<Vec<String>> {
    let mut seen = HashMap::new();
    let mut names = Vec::with_capacity(streams.len());
    for (number, stream) in streams.iter().enumerate() {
        let name = stream.value.name.as_ref();
        let text = name.map_or_else(|| format!("stream {}", number + 1), |name| name.value.0.clone());
        if let Some(other) = seen.insert(text.clone(), number) {
            let place = name.map_or(stream.place, |name| name.place);
            let message = format!("`{text}` is the name of stream {}, too: names must differ", other + 1);
            return Err(Fault { place, message });
        }
        names.push(text);
    }
    Ok(names)
}

/// What streams have taken of what all of them may.
#[derive(Default)]
struct Bounds {
    sizes: usize,
    spread: u64,
}

impl Bounds {
    fn add(&mut self, stream: &program::Stream, place: Place) -> Outcome<()> {
        if let Lengths::List(items) = &stream.lengths {
            self.sizes += items.len();
        }
        let (shortest, longest) = stream.lengths.bounds(stream.templates.longest());
        self.spread += u64::from(longest - shortest);
        let message = if self.sizes > MAX_SIZES {
            format!(
                "the size tables of all streams have more than {MAX_SIZES} entries: give smaller weights or ranges"
            )
        } else if self.spread > MAX_SPREAD {
            format!("the streams have more than {MAX_SPREAD} different sizes together: give narrower ranges")
        } else {
            return Ok(());
        };
        Err(Fault { place, message })
    }
}

/// Each stream has random values of its own; a single one has those of the expression by itself.
fn seed_of(number: usize, context: &Context) -> u64 {
    if number == 0 { context.seed } else { values::hash(context.seed, number as u64) }
}

/// A stream's frames.
fn frames(
    scenario: &Scenario,
    number: usize,
    at: &At<Stream>,
    name: &str,
    context: &Context,
    bounds: &mut Bounds,
    unsigned: &mut Vec<String>,
) -> Outcome<program::Stream> {
    let (stream, defaults) = (&at.value, &scenario.file.defaults);
    let read = |size: &At<SizeText>| {
        size.value.0.parse::<Size>().map_err(|bad| Fault { place: size.place, message: bad.to_string() })
    };
    let own = stream.size.as_ref().or(defaults.size.as_ref().filter(|_| context.size.is_none()));
    let (size, size_at) = match own {
        Some(size) => (Some(read(size)?), size.place),
        None => (context.size.clone(), at.place),
    };
    let seed = seed_of(number, context);
    let options = |signature| Options { size: size.clone(), seed, signature, name: name.to_owned() };
    let frame = &stream.frame;
    let compile = |signature| {
        expr::compile(&frame.value.0, &options(signature)).map_err(|bad| scenario.expression(frame, &bad))
    };
    let number = u32::try_from(number).ok();
    let said = stream.sign.as_ref().or(defaults.sign.as_ref()).map(|sign| sign.value);
    let program = match sign_of(said, context.sign) {
        Sign::All => compile(number)?,
        Sign::No => compile(None)?,
        Sign::WhereRoom => match compile(number) {
            Ok(program) => program,
            Err(_) => {
                let program = compile(None)?;
                unsigned.push(name.to_owned());
                program
            }
        },
    };
    let mut made = program.streams;
    let Some(stream) = made.pop() else {
        return Err(Fault { place: frame.place, message: "this makes no frames".to_owned() });
    };
    bounds.add(&stream, size_at)?;
    Ok(stream)
}

/// What a stream says of signatures, or else what is asked of all.
pub(super) fn sign_of(said: Option<bool>, all: Sign) -> Sign {
    match (said, all) {
        (Some(false), _) | (None, Sign::No) => Sign::No,
        (Some(true), _) | (None, Sign::All) => Sign::All,
        (None, Sign::WhereRoom) => Sign::WhereRoom,
    }
}

impl Scenario {
    /// An expression's error, at its place in the file where that can be told.
    fn expression(&self, frame: &At<super::model::Frame>, bad: &ExprError) -> Fault {
        let Place { line, column, .. } = frame.place;
        let here = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let from = |skip: usize| here.char_indices().nth(column - 1 + skip).map_or("", |(at, _)| &here[at..]);
        // Plain, or in quotes; what is folded over several lines or has escapes stands elsewhere.
        let skip = (0..=1).find(|skip| column > 0 && from(*skip).starts_with(frame.value.0.trim_end()));
        match skip {
            Some(skip) => {
                let place = Place { line, column: column + skip + bad.column - 1, width: bad.width };
                Fault { place, message: bad.message.clone() }
            }
            None => Fault { place: Place { width: 1, ..frame.place }, message: bad.to_string() },
        }
    }
}

/// The rate that streams share, with the place to blame.
fn common_rate(file: &File, context: &Context) -> Option<At<RateText>> {
    let place = file.rate.as_ref().map_or(Place::START, |rate| rate.place);
    match context.rate {
        Some(rate) => Some(At { value: RateText(rate), place }),
        None => file.rate.clone(),
    }
}

/// Do streams share a rate that is not stated?
pub(super) fn wants_rate(file: &File) -> bool {
    let shares = |stream: &At<Stream>| matches!(pace(&stream.value, file), Ok(Pace::Share(_)));
    file.rate.is_none() && file.streams.0.iter().any(shares)
}

/// How a stream is paced, if what it says goes together.
fn pace<'a>(stream: &'a Stream, file: &'a File) -> Outcome<Pace<'a>> {
    let given: Vec<(&str, Place)> = [
        stream.rate.as_ref().map(|x| ("rate", x.place)),
        stream.burst.as_ref().map(|x| ("burst", x.place)),
        stream.ramp.as_ref().map(|x| ("ramp", x.place)),
        stream.weight.as_ref().map(|x| ("weight", x.place)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let [(first, _), (second, place), ..] = given[..] {
        let message =
            format!("`{first}` and `{second}` both say when this stream's frames leave: keep one of them");
        return Err(Fault { place, message });
    }
    if let (Some(_), Some(after)) = (&stream.start, &stream.after) {
        let message = "`start` counts from the run's start, `after` from another stream's end: for a time in between give `pause`";
        return Err(Fault { place: after.place, message: message.to_owned() });
    }
    if let (Some(pause), None) = (&stream.pause, &stream.after) {
        let message = "`pause` needs `after`, the stream to wait for; to begin later give `start`";
        return Err(Fault { place: pause.place, message: message.to_owned() });
    }
    let own = stream.rate.as_ref().or(file.defaults.rate.as_ref());
    if let Some(shape) = &stream.shape {
        let other = given.first().filter(|(key, _)| *key != "rate");
        let message = match (other, own) {
            (Some((key, _)), _) => {
                format!(
                    "`shape` varies a `rate`, and `{key}` says when frames leave without one: keep one of them"
                )
            }
            (None, None) => {
                "`shape` needs a `rate` in the same stream (or under `defaults`) that it varies".to_owned()
            }
            (None, Some(_)) => String::new(),
        };
        if !message.is_empty() {
            return Err(Fault { place: shape.place, message });
        }
    }
    if stream.weight.is_none() && (own.is_some() || stream.burst.is_some() || stream.ramp.is_some()) {
        return Ok(Pace::Own(own));
    }
    let bound = [
        stream.start.as_ref().map(|x| ("start", x.place)),
        stream.after.as_ref().map(|x| ("after", x.place)),
        stream.duration.as_ref().map(|x| ("duration", x.place)),
        stream.count.as_ref().map(|x| ("count", x.place)),
    ];
    if let Some((key, place)) = bound.into_iter().flatten().next() {
        let message = format!(
            "`{key}` needs a `rate`, `burst` or `ramp` in the same stream (or a rate under `defaults`): streams that share the common rate last as long as the run"
        );
        return Err(Fault { place, message });
    }
    match &stream.weight {
        Some(weight) if weight.value == 0 => {
            let message = "a weight is a whole number from 1; leave the stream out to send nothing of it";
            Err(Fault { place: weight.place, message: message.to_owned() })
        }
        weight => Ok(Pace::Share(weight.as_ref().map_or(1, |weight| weight.value))),
    }
}

/// Refuses what was asked for on the command line if it would change nothing.
fn overridden(file: &File, paces: &[Pace<'_>], context: &Context) -> Outcome<()> {
    let shares = paces.iter().any(|pace| matches!(pace, Pace::Share(_)));
    if let (Some(_), true, Some(first)) = (context.rate, paces.is_empty(), file.flows.0.first()) {
        let message = "`.rate` and `.rate: top` replace the rate that streams share, but here are flow profiles only: change theirs in the file";
        let place = first.value.rate.as_ref().map_or(first.place, |rate| rate.place);
        return Err(Fault { place, message: message.to_owned() });
    }
    if context.rate.is_some() && !shares {
        let first = file.streams.0.first().map(|stream| &stream.value);
        let own = first.and_then(|s| s.rate.as_ref().or(file.defaults.rate.as_ref()).map(|rate| rate.place));
        let burst = first.and_then(|s| s.burst.as_ref().map(|burst| burst.place));
        let ramp = first.and_then(|s| s.ramp.as_ref().map(|ramp| ramp.place));
        let message = "`.rate` and `.rate: top` replace the rate that streams share, but here each stream has its own: change them in the file";
        return Err(Fault {
            place: burst.or(ramp).or(own).unwrap_or(Place::START),
            message: message.to_owned(),
        });
    }
    let streams = file.streams.0.iter().map(|stream| stream.value.size.as_ref());
    let sizes: Option<Vec<Place>> = streams
        .chain(file.flows.0.iter().map(|profile| profile.value.size.as_ref()))
        .map(|size| size.map(|size| size.place))
        .collect();
    if let (Some(_), Some(sizes)) = (&context.size, sizes) {
        let place = sizes.first().copied().unwrap_or(Place::START);
        let message =
            "`.size` is for streams that state none, but here each states its own: change them in the file";
        return Err(Fault { place, message: message.to_owned() });
    }
    Ok(())
}

/// The lane of those that share the common rate.
fn shared(
    streams: &[At<Stream>],
    paces: &[Pace<'_>],
    common: Option<&At<RateText>>,
    file: &File,
    context: &Context,
    profiles: usize,
) -> Outcome<Option<(usize, Lane)>> {
    let parts: Vec<(usize, u32)> = paces
        .iter()
        .enumerate()
        .filter_map(|(number, pace)| match pace {
            Pace::Share(weight) => Some((number, *weight)),
            Pace::Own(_) => None,
        })
        .collect();
    let Some(&(first, _)) = parts.first() else {
        return match &file.rate {
            Some(rate) => {
                let message = "no stream shares this rate, each has its own: remove it";
                Err(Fault { place: rate.place, message: message.to_owned() })
            }
            None => Ok(None),
        };
    };
    let Some(common) = common else {
        let message = "how fast? Give the stream a `rate`, `burst` or `ramp`, or the file a `rate` that its streams share (or `.rate`, `.rate: top`)";
        return Err(Fault { place: streams[first].place, message: message.to_owned() });
    };
    let schedule = timing::schedule(common, context.link_bits_per_second)?;
    if !schedule.is_paced() && parts.len() < streams.len() + profiles {
        let message = "top speed leaves no room for the streams that have times of their own: give a rate";
        return Err(Fault { place: common.place, message: message.to_owned() });
    }
    let divisor = parts.iter().fold(0, |divisor, &(_, weight)| gcd(divisor, weight)).max(1);
    let total: u64 = parts.iter().map(|&(_, weight)| u64::from(weight / divisor)).sum();
    if total > MAX_ORDER {
        let place = parts
            .iter()
            .filter_map(|&(number, _)| streams[number].value.weight.as_ref())
            .max_by_key(|weight| weight.value)
            .map_or(Place::START, |weight| weight.place);
        let message = format!(
            "the weights come to an order of {total} frames before it repeats; {MAX_ORDER} are the most: give smaller numbers"
        );
        return Err(Fault { place, message });
    }
    let parts: Vec<(u32, u32)> =
        parts.iter().map(|&(number, weight)| (number as u32, weight / divisor)).collect();
    let Lengths::List(order) = Lengths::mix(&parts) else {
        return Err(Fault { place: common.place, message: "these weights make no order".to_owned() });
    };
    Ok(Some((first, Lane::new(order, schedule))))
}

/// A stream at top speed is alone, from the start.
fn top_speed(at: &At<Stream>, streams: usize, start_ns: u64) -> Outcome<()> {
    let place = at.value.rate.as_ref().map_or(at.place, |rate| rate.place);
    let message = if streams > 1 {
        "at top speed a stream leaves no room for others: give it a rate, or the file a common `rate: top`"
    } else if start_ns > 0 {
        "a stream at top speed begins with the run: remove its start"
    } else {
        return Ok(());
    };
    Err(Fault { place, message: message.to_owned() })
}

/// When each stream begins, after the run's start.
fn starts(streams: &[At<Stream>], names: &[String], timings: &[Option<Timing>]) -> Outcome<Vec<u64>> {
    let number_of: HashMap<&str, usize> =
        names.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
    let mut before: Vec<Option<usize>> = vec![None; streams.len()];
    for (number, stream) in streams.iter().enumerate() {
        let Some(At { value: Name(name), place }) = &stream.value.after else {
            continue;
        };
        let Some(&other) = number_of.get(name.as_str()) else {
            let hint = expr::did_you_mean(name, names.iter().map(String::as_str));
            let message =
                format!("no stream is called `{name}`{hint}`after` takes the name of another stream");
            return Err(Fault { place: *place, message });
        };
        if timings[other].as_ref().is_none_or(|timing| timing.end_ns.is_none()) {
            let message = format!(
                "`{name}` never ends, so nothing can come after it: give it a duration or a count, and a rate of its own"
            );
            return Err(Fault { place: *place, message });
        }
        before[number] = Some(other);
    }
    let mut starts: Vec<Option<u64>> = vec![None; streams.len()];
    for number in 0..streams.len() {
        // Back to where a chain begins, then forward again.
        let mut chain = vec![number];
        while let Some(&last) = chain.last()
            && starts[last].is_none()
            && let Some(other) = before[last]
        {
            if chain.len() > streams.len() {
                let place = streams[number].value.after.as_ref().map_or(Place::START, |after| after.place);
                let message =
                    "these streams wait for each other in a circle: one of them must not be `after` another";
                return Err(Fault { place, message: message.to_owned() });
            }
            chain.push(other);
        }
        for &link in chain.iter().rev() {
            if starts[link].is_some() {
                continue;
            }
            let stream = &streams[link].value;
            let offset = |time: &Option<At<Time>>| time.as_ref().map_or(0, |time| time.value.0);
            let base = match before[link] {
                None => Some(0),
                Some(other) => {
                    let end = timings[other].as_ref().and_then(|timing| timing.end_ns);
                    starts[other].zip(end).and_then(|(start, end)| start.checked_add(end))
                }
            };
            let start = base
                .and_then(|base| base.checked_add(offset(&stream.start)))
                .and_then(|base| base.checked_add(offset(&stream.pause)));
            let Some(start) = start else {
                let message = "this begins after more than 500 years";
                return Err(Fault { place: streams[link].place, message: message.to_owned() });
            };
            starts[link] = Some(start);
        }
    }
    Ok(starts.into_iter().map(|start| start.unwrap_or(0)).collect())
}

/// Whom to ask for Ethernet addresses.
fn unresolved<'a>(
    wanted: impl Iterator<Item = Option<&'a At<Resolve>>>,
    frames: impl Iterator<Item = &'a program::Stream>,
) -> Outcome<Vec<Unresolved>> {
    let mut all = Vec::new();
    for (number, (wanted, frames)) in wanted.zip(frames).enumerate() {
        let Some(At { value, place }) = wanted else { continue };
        if *value == Resolve::No {
            continue;
        }
        let wrong = |message: &str| Err(Fault { place: *place, message: message.to_owned() });
        let bytes = frames.templates.get(0);
        let layers = Layers::parse(LinkType::ETHERNET, bytes);
        let varies = |from: usize, to: usize| {
            frames.fields.iter().any(|field| field.range().start < to && field.range().end > from)
        };
        let ip = layers.l3_offset;
        let address = |at: usize, len: usize| bytes.get(ip + at..ip + at + len);
        let v4 = |at| address(at, 4).and_then(|b| <[u8; 4]>::try_from(b).ok()).map(IpAddr::from);
        let v6 = |at| address(at, 16).and_then(|b| <[u8; 16]>::try_from(b).ok()).map(IpAddr::from);
        let (source, destination, span) = match layers.l3 {
            L3::V4 => (v4(12), v4(16), 16..20),
            L3::V6 => (v6(8), v6(24), 24..40),
            _ => (None, None, 0..0),
        };
        let next_hop = match (value, destination) {
            (Resolve::NextHop(address), _) => *address,
            (_, None) => {
                return wrong("these frames are not IP: give the next hop's address instead of true");
            }
            (_, Some(_)) if varies(ip + span.start, ip + span.end) => {
                return wrong("the destination varies: give the next hop's IP address instead of true");
            }
            (_, Some(destination)) => destination,
        };
        if varies(0, 6) {
            return wrong("the frame's Ethernet destination varies already: leave `resolve` out");
        }
        if next_hop.is_unspecified() || next_hop == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return wrong("nobody answers for that address: give the next hop's IP address");
        }
        if matches!(bytes.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8])) {
            return wrong(
                "nobody is asked behind VLAN tags: write the Ethernet address into the frame, ether(dst=...)",
            );
        }
        let source =
            source.filter(|source| source.is_ipv4() == next_hop.is_ipv4() && !source.is_unspecified());
        all.push(Unresolved { stream: number, next_hop, source });
    }
    Ok(all)
}
