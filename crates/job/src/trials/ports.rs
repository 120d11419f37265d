//! The ports that trials use: the user's, or those of a lab; and what is sent between them by default.

use crate::impaired::Device;
use crate::kinds::lab;
use crate::kinds::what::Plugged;
use crate::mesh::{self, Station, UDP};
use crate::place::Place;
use crate::session::Elsewhere;
use ::lab::{Host, Lab, Located};
use anyhow::{Context, Result, bail};
use report::units;
use scenario::{Context as Compiling, Scenario, Sign};
use spec::{Bench, Consent, Cores, Dut, Pattern};
use std::sync::Arc;
use traffic::expr::Size;
use traffic::{Program, Rate};
use wire::Mac;

/// One way that frames go; or all of a mesh, which is one run.
#[derive(Debug)]
pub struct Way {
    from: Vec<End>,
    to: Vec<End>,
    /// What is sent.
    pub sends: Sends,
    /// What teaches a switch where ports are: the place in `to` that it is sent from, and the frames.
    learning: Vec<(usize, Learning)>,
}

/// A port.
#[derive(Debug)]
struct End {
    /// `None`: at an agent.
    here: Option<Located>,
    /// As the user knows it.
    name: String,
    /// Which it states.
    bits_per_second: Option<u64>,
}

impl End {
    fn here(located: Located, name: String) -> End {
        End { here: Some(located), name, bits_per_second: None }
    }

    fn again(&self) -> Result<End> {
        let here = self.here.as_ref().map(again).transpose()?;
        Ok(End { here, name: self.name.clone(), bits_per_second: self.bits_per_second })
    }

    fn place(&self) -> Result<Place> {
        let located = self.here.as_ref().with_context(|| format!("{} is at an agent", self.name))?;
        Place::at(self.name.clone(), again(located)?)
    }
}

/// What goes a way.
#[derive(Debug)]
pub enum Sends {
    /// This, from its port to its other.
    One(String),
    /// The streams of this, which a plugin made, at the load that is tried.
    Scenario(Box<Made>),
    /// Something from each port to every other.
    Mesh { stations: Vec<Station>, what: Option<String> },
}

/// What a plugin made of what it was asked.
#[derive(Debug)]
pub struct Made {
    pub plugged: Arc<Plugged>,
    pub scenario: Scenario,
    /// Streams that it has.
    pub streams: u32,
}

impl Made {
    /// The plugin of a bench, asked.
    ///
    /// # Errors
    /// What is wrong with it, or with what it makes.
    fn of(plugged: &Arc<Plugged>, seed: u64) -> Result<Made> {
        let scenario = plugged.scenario(seed)?;
        if scenario.has_flows() {
            bail!(
                "plugin `{}`: it makes flows, which have rates of their own, and a trial is what says how fast: give it options with which it makes streams",
                plugged.plugin.name()
            );
        }
        let streams = u32::try_from(scenario.streams())?;
        Ok(Made { plugged: Arc::clone(plugged), scenario, streams })
    }

    /// Its frames, each signed.
    ///
    /// # Errors
    /// They cannot be of that size, have times of their own, or are not to be signed.
    pub fn program(&self, seed: u64, size: &Size) -> Result<Program> {
        let name = self.plugged.plugin.name();
        let (sized, all) = (self.scenario.sized_streams(), self.scenario.streams());
        if sized > 0 && sized < all {
            bail!(
                "plugin `{name}`: {sized} of its {all} streams state a size, and a trial's frames are of the size that is tried, or all of the plugin's sizes: have all streams state one, or none"
            );
        }
        let (rate, size) = (Some(Rate::TopSpeed), Some(size.clone()));
        let context = Compiling { seed, sign: Sign::All, rate, size, ..Compiling::default() };
        let compiled = self.scenario.compile(&context).context(
            "a trial is what says how fast, and how long frames are: its plugin states no rate and no sizes",
        )?;
        if !compiled.resolve.is_empty() {
            bail!("a trial asks nobody for Ethernet addresses: have the plugin state them");
        }
        if let Some(unsigned) = compiled.program.streams.iter().find(|stream| stream.signature.is_none()) {
            bail!(
                "plugin `{name}`: stream `{}` is not to be signed (`sign: false`), and a trial counts frames by their signatures: have the plugin leave that out",
                units::printable(&unsigned.name)
            );
        }
        self.plugged.plugin.judge(&compiled.program)?;
        Ok(compiled.program)
    }
}

/// Frames that teach a switch.
#[derive(Debug)]
pub enum Learning {
    These(String),
    /// From the first station to the second.
    Between(Station, Station),
}

impl Way {
    pub fn senders(&self) -> Result<Vec<Place>> {
        self.from.iter().map(End::place).collect()
    }

    pub fn receivers(&self) -> Result<Vec<Place>> {
        self.to.iter().map(End::place).collect()
    }

    /// As the user knows them.
    pub fn sender_names(&self) -> impl Iterator<Item = &String> {
        self.from.iter().map(|end| &end.name)
    }

    /// As the user knows them.
    pub fn receiver_names(&self) -> impl Iterator<Item = &String> {
        self.to.iter().map(|end| &end.name)
    }

    /// Each port, once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.sender_names().cloned().collect();
        names.extend(
            self.receiver_names().filter(|name| !self.sender_names().any(|from| from == *name)).cloned(),
        );
        names
    }

    /// All ports of this host, those that send first, as they are now.
    pub fn each(&self) -> impl Iterator<Item = (&String, Result<Place>)> {
        let here = self.from.iter().chain(&self.to).filter(|end| end.here.is_some());
        here.map(|end| (&end.name, end.place()))
    }

    /// The speeds that ports state which send.
    pub fn speeds(&self) -> Result<Vec<Option<u64>>> {
        let speed = |end: &End| match &end.here {
            None => Ok(end.bits_per_second),
            // Virtual devices state a speed and do not keep to it.
            Some(_) => end.place().map(|place| place.bits_per_second().filter(|_| !place.is_virtual())),
        };
        self.from.iter().map(speed).collect()
    }

    /// Ports that send.
    pub fn width(&self) -> usize {
        self.from.len()
    }

    /// Streams that have signatures of their own.
    pub fn streams(&self) -> u32 {
        match &self.sends {
            Sends::One(_) => 1,
            Sends::Scenario(made) => made.streams,
            Sends::Mesh { stations, .. } => (stations.len() * stations.len().saturating_sub(1)) as u32,
        }
    }

    /// What is sent, as a result tells it.
    pub fn source(&self) -> report::Source {
        match &self.sends {
            Sends::Scenario(made) => made.plugged.source(),
            _ => report::Source::Expression { expression: self.expression() },
        }
    }

    /// What is sent, as an expression.
    fn expression(&self) -> String {
        match &self.sends {
            Sends::Scenario(_) => String::new(),
            Sends::One(what) => what.clone(),
            Sends::Mesh { what: Some(what), .. } => what.clone(),
            Sends::Mesh { stations, what: None } => match &stations[..] {
                [first, second, ..] => mesh::frames(None, first, second),
                _ => String::new(),
            },
        }
    }

    /// What teaches a switch, and where each is sent.
    pub fn learning(&self) -> impl Iterator<Item = (Result<Place>, &String, &Learning)> {
        self.learning.iter().filter_map(|(at, frames)| {
            let end = self.to.get(*at)?;
            Some((end.place(), &end.name, frames))
        })
    }

    /// Is one of its ends, and so what is behind it, a device of this machine without a cable? One that cannot be looked at
    /// is reported by the trial.
    fn is_on_this_machine(&self) -> bool {
        let places = self.from.iter().chain(&self.to).map(End::place);
        places.flatten().any(|place| port::carrier::in_memory(&place.interface))
    }
}

/// All ways, and the lab they are in if it is one.
#[derive(Debug)]
pub struct Ports {
    pub ways: Vec<Way>,
    /// Its device, if that is a program of ours.
    pub device: Option<Device>,
    pub lab: Option<Lab>,
}

fn again(located: &Located) -> Result<Located> {
    let namespace = located.namespace.as_ref().map(|namespace| namespace.try_clone()).transpose()?;
    Ok(Located { namespace, name: located.name.clone() })
}

/// A pair of ports with the addresses that frames between them have.
struct Pair {
    ends: [End; 2],
    macs: [Mac; 2],
    /// Whom frames are sent to at each end: the other, or a router.
    next: [Mac; 2],
    networks: [String; 2],
}

impl Ports {
    /// Does what frames pass share this machine with the sender? In a lab, also one that is around the search, it does.
    pub fn on_this_machine(&self) -> bool {
        self.lab.is_some() || self.ways.iter().any(Way::is_on_this_machine)
    }

    /// What the lab's own device has done so far, if that is a program of ours.
    pub fn did(&self) -> Option<[::impair::Did; 2]> {
        self.device.as_ref().map(Device::snapshot)
    }

    /// Finds the user's ports, here or where `elsewhere` reaches, or makes a lab.
    pub fn find(bench: &Bench, consent: &Consent, elsewhere: Option<&dyn Elsewhere>) -> Result<Ports> {
        let on: Vec<&String> = bench.links.iter().filter_map(|link| link.on.as_ref()).collect();
        let measured: Vec<&String> = bench.links.iter().filter_map(|link| link.measure.as_ref()).collect();
        if let Some(lab) = &bench.lab {
            if !bench.links.is_empty() {
                bail!("links: a lab has ports of its own; leave out one of `lab` and `links`");
            }
            return Self::lab(bench, lab);
        }
        if bench.pattern == Pattern::Mesh {
            return Self::meshed(bench, consent, &on);
        }
        if let ([first, ..], []) = (on.as_slice(), measured.as_slice()) {
            bail!("where do the frames of `.on` {first} arrive? Give `.measure` IFACE, too");
        }
        if on.is_empty() || measured.is_empty() {
            bail!(
                "between which ports? Add `.lab` (two hosts of its own, no hardware), or give `.on` IFACE, where to send, and `.measure` IFACE, where to measure"
            );
        }
        if on.len() != measured.len() {
            bail!(
                "{} but {}: each `.on` needs the `.measure` that its frames arrive at",
                units::counted(on.len() as u64, "`.on`"),
                units::counted(measured.len() as u64, "`.measure`")
            );
        }
        if !(bench.gateway.is_empty() || bench.gateway.len() == on.len()) {
            bail!("`.gateway`: give one for each `.on`, or none");
        }
        let mut all: Vec<&String> = on.iter().chain(&measured).copied().collect();
        all.sort();
        if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!(
                "{} is named twice: `.both_ways` sends in both directions between a pair of ports",
                twice[0]
            );
        }
        let mut pairs = Vec::new();
        for (number, (on, measure)) in on.into_iter().zip(measured).enumerate() {
            let mut macs = [Mac::default(); 2];
            let mut ends = Vec::new();
            for (mac, (spec, measures)) in macs.iter_mut().zip([(on, bench.both_ways), (measure, true)]) {
                if let Some(elsewhere) = elsewhere {
                    let port = elsewhere.port(spec)?;
                    *mac = Mac(port.mac.with_context(|| format!("{spec} has no Ethernet address"))?);
                    ends.push(End { here: None, name: spec.clone(), bits_per_second: port.bits_per_second });
                    continue;
                }
                let located = ::lab::resolve(spec)?;
                let place = Place::at(spec.clone(), again(&located)?)?;
                match measures {
                    true => place.guard_taking(&consent.yes_disrupt, None)?,
                    false => place.guard(&consent.yes_disrupt)?,
                }
                crate::kinds::shared::measurable(&place)?;
                *mac = Mac(place.interface.mac.with_context(|| format!("{spec} has no Ethernet address"))?);
                ends.push(End::here(located, spec.clone()));
            }
            let Ok(ends) = <[_; 2]>::try_from(ends) else { bail!("a pair has two ends") };
            let next = match bench.gateway.get(number) {
                Some(_) if bench.both_ways => {
                    bail!("`.gateway` with `.both_ways`: say with WHAT and `.back` what is sent each way")
                }
                Some(gateway) => [**gateway, macs[0]],
                None => [macs[1], macs[0]],
            };
            let network = |half: u8| format!("198.{half}.{}.2", number + 1);
            pairs.push(Pair { ends, macs, next, networks: [network(18), network(19)] });
        }
        Ok(Ports { ways: ways(bench, pairs), device: None, lab: None })
    }

    /// Each way carries what a plugin makes.
    pub fn send_what_it_makes(&mut self, plugged: Plugged, seed: u64) -> Result<()> {
        if plugged.plugin.yields_frames() {
            bail!(
                "`.plugin` {}: it yields frames one by one, and a trial's frames are a program, of which it is known how many are due",
                plugged.plugin.name()
            );
        }
        let plugged = Arc::new(plugged);
        for way in &mut self.ways {
            way.sends = Sends::Scenario(Box::new(Made::of(&plugged, seed)?));
        }
        Ok(())
    }

    /// The user's ports, each of which sends to every other.
    fn meshed(bench: &Bench, consent: &Consent, on: &[&String]) -> Result<Ports> {
        if on.len() < 2 {
            bail!("`.pattern: mesh`: each port sends to every other: give `.on` for two ports or more");
        }
        if !(bench.gateway.is_empty() || bench.gateway.len() == on.len()) {
            bail!("`.gateway`: give one for each `.on`, or none");
        }
        let (mut ends, mut stations) = (Vec::new(), Vec::new());
        for (number, spec) in on.iter().enumerate() {
            let located = ::lab::resolve(spec)?;
            let place = Place::at((*spec).clone(), again(&located)?)?;
            place.guard_taking(&consent.yes_disrupt, None)?;
            crate::kinds::shared::measurable(&place)?;
            stations.push(Station::at(&place, number, bench.gateway.get(number).map(|mac| **mac))?);
            ends.push(End::here(located, (*spec).clone()));
        }
        let way = mesh_way(bench, ends, stations)?;
        Ok(Ports { ways: vec![way], device: None, lab: None })
    }

    /// Finds the port that sends to a probe, or makes a lab with the port that a probe meters. `what` is sent.
    pub fn to_probe(bench: &Bench, consent: &Consent) -> Result<Ports> {
        let way =
            |from, to, what| Way { from: vec![from], to, sends: Sends::One(what), learning: Vec::new() };
        if bench.lab.is_some() {
            let lab = Lab::two_hosts(&::lab::Options::default())?;
            // A veth takes XDP's frames if its peer has GRO, as network cards have it. Of flows of one packet nothing is joined;
            // a kernel without it sends by the next engine.
            let _ = lab.receiver.namespace.run_in(|| {
                let device = port::ethtool::Ethtool::open(lab.receiver.interface)?;
                device.set_offload(port::ethtool::Offload::Gro, true)
            })?;
            let way = way(end_of(&lab.sender)?, vec![end_of(&lab.receiver)?], String::new());
            return Ok(Ports { ways: vec![way], device: None, lab: Some(lab) });
        }
        let on = bench.links.first().and_then(|link| link.on.as_ref());
        let on = on.context(
            "from which port? Add `.lab` (two hosts of its own, no hardware), or give `.on` IFACE",
        )?;
        let located = ::lab::resolve(on)?;
        let place = Place::at(on.clone(), again(&located)?)?;
        place.guard(&consent.yes_disrupt)?;
        let way = way(End::here(located, on.clone()), Vec::new(), String::new());
        Ok(Ports { ways: vec![way], device: None, lab: None })
    }

    fn lab(bench: &Bench, asked: &spec::Lab) -> Result<Ports> {
        let meshed = bench.pattern == Pattern::Mesh;
        if let Some(ports) = asked.ports.filter(|ports| !(3..=::lab::MOST_PORTS).contains(ports)) {
            bail!("`.lab.ports` {ports}: 3 to {} are possible; two are there without it", ::lab::MOST_PORTS);
        }
        if let Some(ports) = asked.ports.filter(|ports| !meshed && ports % 2 == 1) {
            bail!(
                "`.lab.ports` {ports}: in pairs there is an even number of them; make it even, or add `.pattern: mesh`"
            );
        }
        let ports = asked.ports.or(meshed.then_some(MESH_PORTS));
        let asked = spec::Lab { dut: asked.dut.or(ports.map(|_| Dut::Bridge)), ..asked.clone() };
        let device = lab::asked_for(&asked, Some(Dut::Router))?;
        let router = device.is_some_and(|device| device.kind.routes());
        let queues = match bench.cores.as_deref() {
            Some(Cores::Number(n)) => u32::try_from(*n).unwrap_or(1).clamp(1, 64),
            _ => 1,
        };
        let device_cpus = lab::device_cpus();
        let lab = Lab::two_hosts(&::lab::Options {
            queues,
            device,
            device_cpus,
            ports,
            ..::lab::Options::default()
        })?;
        let program = asked.impair.as_ref().map(|faults| Device::start_in(&lab, faults)).transpose()?;
        if !lab.ports.is_empty() {
            let ways = lab_ways(bench, &lab, router)?;
            return Ok(Ports { ways, device: program, lab: Some(lab) });
        }
        let macs = [Mac(lab.sender.mac), Mac(lab.receiver.mac)];
        let next = match &lab.device {
            Some([near, far]) if router => [Mac(near.mac), Mac(far.mac)],
            _ => [macs[1], macs[0]],
        };
        let networks = ["198.18.0.1".to_owned(), if router { "198.19.0.2" } else { "198.18.0.2" }.to_owned()];
        let pair = Pair { ends: [end_of(&lab.sender)?, end_of(&lab.receiver)?], macs, next, networks };
        Ok(Ports { ways: ways(bench, vec![pair]), device: program, lab: Some(lab) })
    }
}

/// Ports of a mesh in a lab, unless told otherwise.
const MESH_PORTS: u32 = 4;

fn end_of(host: &Host) -> Result<End> {
    let name = host.interface.to_owned();
    Ok(End::here(Located { namespace: Some(host.namespace.try_clone()?), name: name.clone() }, name))
}

/// Between the ports of a lab's device: all of them, or two and two.
fn lab_ways(bench: &Bench, lab: &Lab, router: bool) -> Result<Vec<Way>> {
    let station = |(number, [host, port]): (usize, &[Host; 2])| Station {
        name: host.interface.to_owned(),
        mac: Mac(host.mac),
        gateway: router.then_some(Mac(port.mac)),
        address: mesh::address(number),
    };
    let stations: Vec<Station> = lab.ports.iter().enumerate().map(station).collect();
    let ends: Vec<End> = lab.ports.iter().map(|[host, _]| end_of(host)).collect::<Result<_>>()?;
    if bench.pattern == Pattern::Mesh {
        return Ok(vec![mesh_way(bench, ends, stations)?]);
    }
    let mut ends = ends.into_iter();
    let mut pairs = Vec::new();
    for two in stations.chunks_exact(2) {
        let (Some(near), Some(far), [one, other]) = (ends.next(), ends.next(), two) else { continue };
        pairs.push(Pair {
            ends: [near, far],
            macs: [one.mac, other.mac],
            next: [one.gateway.unwrap_or(other.mac), other.gateway.unwrap_or(one.mac)],
            networks: [one.address.clone(), other.address.clone()],
        });
    }
    Ok(ways(bench, pairs))
}

/// From each of `ends` to every other.
fn mesh_way(bench: &Bench, ends: Vec<End>, stations: Vec<Station>) -> Result<Way> {
    let to = ends.iter().map(End::again).collect::<Result<_>>()?;
    let next = |at: usize| stations.get((at + 1) % stations.len());
    let learning = stations
        .iter()
        .enumerate()
        .filter_map(|(at, own)| Some((at, Learning::Between(own.clone(), next(at)?.clone()))));
    let learning = learning.collect();
    Ok(Way { from: ends, to, sends: Sends::Mesh { stations, what: bench.what.clone() }, learning })
}

fn ways(bench: &Bench, pairs: Vec<Pair>) -> Vec<Way> {
    let mut all = Vec::new();
    for Pair { ends: [near, far], macs, next, networks } in pairs {
        let default = |from: usize| {
            let to = 1 - from;
            format!(
                "ether(src={}, dst={})/ipv4(src={}, dst={})/{UDP}",
                macs[from], next[from], networks[from], networks[to]
            )
        };
        let again = |end: &End| end.again().ok();
        let own = bench.what.is_some() || bench.plugin.is_some();
        let back = if bench.both_ways { again(&far).zip(again(&near)) } else { None };
        let learning = |from: usize| match own {
            true => Vec::new(),
            false => vec![(0, Learning::These(default(from)))],
        };
        all.push(Way {
            from: vec![near],
            to: vec![far],
            sends: Sends::One(bench.what.clone().unwrap_or_else(|| default(0))),
            learning: learning(1),
        });
        if let Some((from, to)) = back {
            let what = bench.back.clone().or_else(|| bench.what.clone()).unwrap_or_else(|| default(1));
            all.push(Way { from: vec![from], to: vec![to], sends: Sends::One(what), learning: learning(0) });
        }
    }
    all
}

/// The sizes to test one after the other, each with its name.
///
/// # Errors
/// They are none.
pub fn frame_sizes(text: &str) -> Result<Vec<(String, Size)>> {
    if text.eq_ignore_ascii_case("rfc2544") {
        return Ok(trial::ethernet::SIZES.map(|size| (size.to_string(), Size::Fixed(size))).to_vec());
    }
    let meant = || match traffic::expr::did_you_mean(text, std::iter::once("rfc2544")).contains('`') {
        true => " (did you mean `rfc2544`?)",
        false => "",
    };
    Ok(match text.parse::<Size>().with_context(|| format!("`.size` {text}{}", meant()))? {
        Size::List(sizes) => sizes.into_iter().map(|size| (size.to_string(), Size::Fixed(size))).collect(),
        Size::Fixed(size) => vec![(size.to_string(), Size::Fixed(size))],
        other => vec![(text.to_owned(), other)],
    })
}

/// Bytes of a frame on average, the FCS counted.
pub fn mean_bytes(size: &Size) -> f64 {
    match size {
        Size::Fixed(size) => f64::from(*size),
        Size::List(sizes) => {
            sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / sizes.len().max(1) as f64
        }
        Size::Random { min, max } => (f64::from(*min) + f64::from(*max)) / 2.0,
        Size::Mix(parts) => {
            let weights: f64 = parts.iter().map(|&(_, weight)| f64::from(weight)).sum();
            parts.iter().map(|&(size, weight)| f64::from(size) * f64::from(weight)).sum::<f64>() / weights
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_size_is_told_the_nearest() {
        assert_eq!(frame_sizes("RFC2544").map(|sizes| sizes.len()).ok(), Some(7));
        for (typed, said) in [
            ("rfc2455", "(did you mean `rfc2544`?)"),
            ("imxi", "(did you mean `imix`?)"),
            ("64,", "a number of bytes was expected"),
        ] {
            let told = format!("{:#}", frame_sizes(typed).expect_err(typed));
            assert!(told.contains(said), "{told}");
        }
    }
}
