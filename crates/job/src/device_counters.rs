//! What a lab's device counted while a run or a trial lasted. The lab made it, so its interfaces, the queue of its bottleneck, its rule
//! of loss and its impairments are known, and can be read where a device of the user's cannot.

use crate::run::counters::host_counter;
use ::impair::Did;
use ::lab::{Host, Lab};
use port::interface::Interface;
use port::qdisc::{Counted, Reader};
use port::watch::{Source, Watch};
use report::HostCounter;
use report::causes::OF_THE_LAB;

/// One port of the device, from [`DeviceCounters::begin`] on.
#[derive(Debug)]
struct Port {
    /// Ours, at the other end of its cable.
    end: &'static str,
    place: String,
    /// The first tells of the whole device what its stack counts.
    first: bool,
    watch: Watch,
    queue: Option<(Reader, Counted)>,
    /// What its rule had lost.
    rule: Option<u64>,
}

/// The device of a lab.
#[derive(Debug)]
pub struct DeviceCounters {
    ports: Vec<Port>,
    did: Option<[Did; 2]>,
}

/// The ports of a lab's device, each with our interface at its other end.
fn ports(lab: &Lab) -> Vec<(&'static str, &Host)> {
    match (&lab.device, lab.ports.is_empty()) {
        (_, false) => lab.ports.iter().map(|[ours, its]| (ours.interface, its)).collect(),
        (Some([near, far]), true) => {
            vec![(lab.sender.interface, near), (lab.receiver.interface, far)]
        }
        (None, true) => Vec::new(),
    }
}

const ON_PURPOSE: &str = "it loses them on purpose (`.lab.impair`)";
const SLOW: &str = "they came faster than this machine can carry them through the lab's device";

/// A count of our own device's: its name, which it is, and why frames go into it.
type Gone = (&'static str, fn(&Did) -> u64, &'static str);

/// Those of frames that are gone.
const IMPAIRED: [Gone; 6] = [
    ("impair_lost", |did| did.lost, ON_PURPOSE),
    ("impair_flapped", |did| did.flapped, ON_PURPOSE),
    ("impair_full", |did| did.full, "more waited than the device's buffer holds (`.lab.impair`)"),
    ("impair_missed", |did| did.missed, SLOW),
    ("impair_refused", |did| did.refused, SLOW),
    ("impair_too_long", |did| did.too_long, "they are longer than the MTU allows"),
];

/// A count of the device's whose meaning is known.
fn counted(place: &str, source: &str, name: &str, rise: u64, why: &str) -> HostCounter {
    HostCounter {
        place: place.to_owned(),
        source: source.to_owned(),
        name: name.to_owned(),
        rise,
        own_frames: None,
        explains: Some(why.to_owned()),
    }
}

impl DeviceCounters {
    /// Reads for the first time. What cannot be read is left out: a trial can do without. `did`: of a program of ours.
    pub fn begin(lab: &Lab, did: Option<[Did; 2]>) -> DeviceCounters {
        let begin = |(number, (end, host)): (usize, (&'static str, &Host))| {
            let open = || {
                let index = Interface::by_name(host.interface).ok()?.index;
                let mut reader = Reader::open(index).ok()?;
                let before = reader.read().ok()??;
                Some((reader, before))
            };
            let (watch, queue) =
                host.namespace.run_in(|| (Watch::begin(host.interface, false), open())).ok()?;
            let place = format!("{OF_THE_LAB}{}", host.interface);
            Some(Port {
                end,
                place,
                first: number == 0,
                watch,
                queue,
                rule: ::lab::lost_by_rule(host).ok().flatten(),
            })
        };
        DeviceCounters { ports: ports(lab).into_iter().enumerate().filter_map(begin).collect(), did }
    }

    /// What rose since, for frames that came from `senders` and went to `receivers`.
    pub fn rises(
        &mut self,
        lab: &Lab,
        did: Option<[Did; 2]>,
        senders: &[&str],
        receivers: &[&str],
    ) -> Vec<HostCounter> {
        let mut all = Vec::new();
        let hosts = ports(lab);
        for port in &mut self.ports {
            let (enters, leaves) = (senders.contains(&port.end), receivers.contains(&port.end));
            if !enters && !leaves {
                continue;
            }
            for rise in port.watch.rises() {
                let kept = match rise.source {
                    Source::Interface | Source::Driver => {
                        enters && rise.name.contains("rx") || leaves && rise.name.contains("tx")
                    }
                    Source::Stack => port.first && rise.meaning().is_some(),
                    Source::Cores => false,
                };
                if kept {
                    let mut counter = host_counter(&port.place, rise);
                    // What a program of ours has taken it keeps from the stack, which may count as dropped.
                    counter.explains = counter.explains.filter(|_| self.did.is_none());
                    all.push(counter);
                }
            }
            if let Some((reader, before)) = port.queue.as_mut().filter(|_| leaves)
                && let Ok(Some(now)) = reader.read()
                && let Some(since) = now.since(before).filter(|since| since.dropped > 0)
            {
                let why = "frames came faster than the bottleneck lets them through, and its queue was full (`.lab.bottleneck`, \
                           `.lab.queue`)";
                let name = format!("{}_dropped", since.kind);
                all.push(counted(&port.place, "queue", &name, since.dropped.into(), why));
            }
            let host = hosts.iter().find(|(end, _)| *end == port.end).filter(|_| enters);
            if let Some((host, before)) = host.zip(port.rule)
                && let Ok(Some(now)) = ::lab::lost_by_rule(host.1)
                && now > before
            {
                let why = "it loses them on purpose (`.lab.loss`)";
                all.push(counted(&port.place, "rule", "nft_dropped", now - before, why));
            }
        }
        all.extend(self.impaired(did, senders));
        all
    }

    /// What our own device did with them.
    fn impaired(&self, did: Option<[Did; 2]>, senders: &[&str]) -> Vec<HostCounter> {
        let mut all = Vec::new();
        let directions = self.did.iter().flatten().zip(did.iter().flatten()).zip(&self.ports);
        for ((before, now), port) in directions.filter(|(_, port)| senders.contains(&port.end)) {
            for (name, of, why) in IMPAIRED {
                let rise = of(now).saturating_sub(of(before));
                if rise > 0 {
                    all.push(counted(&port.place, "impair", name, rise, why));
                }
            }
        }
        all
    }
}
