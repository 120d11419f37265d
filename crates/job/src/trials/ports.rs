//! The ports that trials use: the user's, or those of a lab; and what is sent between them by default.

use crate::impaired::Device;
use crate::kinds::lab;
use crate::place::Place;
use ::lab::{Host, Lab, Located};
use anyhow::{Context, Result, anyhow, bail};
use report::units;
use spec::{Bench, Consent, Cores, Dut};
use std::time::Duration;
use traffic::expr::Size;
use wire::Mac;

/// The queue before a lab's bottleneck, and the tokens it saves, each in time at its rate: enough that a moment in which
/// this machine did something else loses nothing, little enough that a trial of seconds is not longer for it.
const SAVED: Duration = Duration::from_millis(5);
/// UDP ports of RFC 2544's test frames (C.2.6.4).
const UDP: &str = "udp(sport=49184, dport=7)";

/// One way that frames go.
#[derive(Debug)]
pub struct Way {
    from: Located,
    to: Located,
    /// As the user knows them.
    pub from_name: String,
    pub to_name: String,
    /// What is sent.
    pub what: String,
    /// What teaches a switch where `to` is; sent from there.
    pub learning: Option<String>,
}

impl Way {
    pub fn sender(&self) -> Result<Place> {
        Place::at(self.from_name.clone(), again(&self.from)?)
    }

    pub fn receiver(&self) -> Result<Place> {
        Place::at(self.to_name.clone(), again(&self.to)?)
    }

    /// Is one of its ends, and so what is behind it, a device of this machine without a cable? One that cannot be looked at
    /// is told of by the trial.
    fn is_on_this_machine(&self) -> bool {
        [self.sender(), self.receiver()]
            .iter()
            .flatten()
            .any(|place| port::carrier::in_memory(&place.interface))
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
    ends: [(Located, String); 2],
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

    /// Finds the user's ports, or makes a lab.
    pub fn find(bench: &Bench, consent: &Consent) -> Result<Ports> {
        let on: Vec<&String> = bench.links.iter().filter_map(|link| link.on.as_ref()).collect();
        let measured: Vec<&String> = bench.links.iter().filter_map(|link| link.measure.as_ref()).collect();
        if let Some(lab) = &bench.lab {
            if !bench.links.is_empty() {
                bail!("links: a lab has ports of its own; leave out one of `lab` and `links`");
            }
            return Self::lab(bench, lab);
        }
        if on.is_empty() || measured.is_empty() {
            bail!(
                "between which ports? Give --on IFACE, where to send, and --measure IFACE, where to measure; or --lab, to try it without any"
            );
        }
        if on.len() != measured.len() {
            bail!(
                "{} but {}: each --on needs the --measure that its frames arrive at",
                units::counted(on.len() as u64, "--on"),
                units::counted(measured.len() as u64, "--measure")
            );
        }
        if !(bench.gateway.is_empty() || bench.gateway.len() == on.len()) {
            bail!("--gateway: give one for each --on, or none");
        }
        let mut all: Vec<&String> = on.iter().chain(&measured).copied().collect();
        all.sort();
        if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!(
                "{} is named twice: --both-ways sends in both directions between a pair of ports",
                twice[0]
            );
        }
        let mut pairs = Vec::new();
        for (number, (on, measure)) in on.into_iter().zip(measured).enumerate() {
            let mut macs = [Mac::default(); 2];
            let mut ends = Vec::new();
            for (mac, spec) in macs.iter_mut().zip([on, measure]) {
                let located = ::lab::resolve(spec)?;
                let place = Place::at(spec.clone(), again(&located)?)?;
                place.guard(&consent.yes_disrupt)?;
                crate::kinds::shared::measurable(&place)?;
                *mac = Mac(place.interface.mac.with_context(|| format!("{spec} has no Ethernet address"))?);
                ends.push((located, spec.clone()));
            }
            let Ok(ends) = <[_; 2]>::try_from(ends) else { bail!("a pair has two ends") };
            let next = match bench.gateway.get(number) {
                Some(_) if bench.both_ways => {
                    bail!("--gateway with --both-ways: say with WHAT and --back what is sent each way")
                }
                Some(gateway) => [**gateway, macs[0]],
                None => [macs[1], macs[0]],
            };
            let network = |half: u8| format!("198.{half}.{}.2", number + 1);
            pairs.push(Pair { ends, macs, next, networks: [network(18), network(19)] });
        }
        Ok(Ports { ways: ways(bench, pairs), device: None, lab: None })
    }

    fn lab(bench: &Bench, asked: &spec::Lab) -> Result<Ports> {
        let bottleneck = match asked.bottleneck.as_deref().copied() {
            None => None,
            Some(rate) => {
                let mut made = lab::bottleneck(
                    rate,
                    asked.queue.as_deref().copied(),
                    asked.burst.as_deref().copied(),
                    1500,
                )?;
                let saved = u128::from(made.bits_per_second) / 8 * SAVED.as_millis() / 1000;
                let saved = u32::try_from(saved).unwrap_or(u32::MAX).max(2 * 1518);
                if asked.burst.is_none() {
                    made.burst = saved;
                }
                if asked.queue.is_none() {
                    made.queue = saved;
                }
                Some(made)
            }
        };
        let loss =
            asked.loss.as_deref().map(str::parse).transpose().map_err(|bad| anyhow!("lab.loss: {bad}"))?;
        if asked.impair.is_some() && (asked.dut.is_some() || bottleneck.is_some() || loss.is_some()) {
            bail!("lab.impair: that is a device of its own; leave out `dut`, `bottleneck` and `loss`");
        }
        let limited = bottleneck.is_some() || loss.is_some();
        let dut = asked.dut.or(limited.then_some(Dut::Router));
        let device = lab::device(dut, bottleneck, loss);
        let device = device.or(asked.impair.as_ref().map(|_| lab::PROGRAM));
        let router = device.is_some_and(|device| device.kind == ::lab::Kind::Router);
        let queues = match bench.cores.as_deref() {
            Some(Cores::Number(n)) => u32::try_from(*n).unwrap_or(1).clamp(1, 64),
            _ => 1,
        };
        let device_cpus = lab::device_cpus();
        let lab =
            Lab::two_hosts(&::lab::Options { queues, device, device_cpus, ..::lab::Options::default() })?;
        let program = asked.impair.as_ref().map(|faults| Device::start_in(&lab, faults)).transpose()?;
        let end = |host: &Host| -> Result<(Located, String)> {
            let name = host.interface.to_owned();
            Ok((Located { namespace: Some(host.namespace.try_clone()?), name: name.clone() }, name))
        };
        let macs = [Mac(lab.sender.mac), Mac(lab.receiver.mac)];
        let next = match &lab.device {
            Some([near, far]) if router => [Mac(near.mac), Mac(far.mac)],
            _ => [macs[1], macs[0]],
        };
        let networks = ["198.18.0.1".to_owned(), if router { "198.19.0.2" } else { "198.18.0.2" }.to_owned()];
        let pair = Pair { ends: [end(&lab.sender)?, end(&lab.receiver)?], macs, next, networks };
        Ok(Ports { ways: ways(bench, vec![pair]), device: program, lab: Some(lab) })
    }
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
        let again =
            |(located, name): &(Located, String)| again(located).ok().map(|located| (located, name.clone()));
        let own = bench.what.is_some();
        let back = if bench.both_ways { again(&far).zip(again(&near)) } else { None };
        let learning = |from: usize| (!own).then(|| default(from));
        all.push(Way {
            from: near.0,
            to: far.0,
            from_name: near.1,
            to_name: far.1,
            what: bench.what.clone().unwrap_or_else(|| default(0)),
            learning: learning(1),
        });
        if let Some(((from, from_name), (to, to_name))) = back {
            let what = bench.back.clone().or_else(|| bench.what.clone()).unwrap_or_else(|| default(1));
            all.push(Way { from, to, from_name, to_name, what, learning: learning(0) });
        }
    }
    all
}

/// The sizes to test one after the other, each with its name.
pub fn frame_sizes(text: &str) -> Result<Vec<(String, Size)>> {
    if text.eq_ignore_ascii_case("rfc2544") {
        return Ok(trial::ethernet::SIZES.map(|size| (size.to_string(), Size::Fixed(size))).to_vec());
    }
    Ok(match text.parse::<Size>().with_context(|| format!("--size {text}"))? {
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
