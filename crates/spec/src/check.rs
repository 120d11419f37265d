//! What contradicts itself in a job, as far as that is seen without looking at the machine.

use crate::bench::{Bench, Dut, Find, Search};
use crate::{
    Bridge, Capture, Collect, Edits, Engine, ExportFormat, Faults, FlowDirection, Flows, How, Impair, Lab,
    Link, Live, Meter, Pattern, Probe, Replay, Send, Sign, TCP, Timestamps,
};
use std::time::Duration;

/// Two members that do not go together, or one that does nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member}: {what}")]
pub struct Contradiction {
    /// Its path within the job.
    pub member: String,
    /// What is wrong, and the mend.
    pub what: String,
}

/// Members, whether each is wrong, and what to say then.
pub(crate) type Rules<'a> = &'a [(&'a str, bool, &'a str)];

#[cfg_attr(test, track_caller)]
pub(crate) fn hold(path: &str, rules: Rules<'_>) -> Result<(), Contradiction> {
    #[cfg(test)]
    crate::rules::seen(path, rules);
    match rules.iter().find(|(_, wrong, _)| *wrong) {
        None => Ok(()),
        Some((member, _, what)) => {
            Err(Contradiction { member: format!("{path}{member}"), what: (*what).to_owned() })
        }
    }
}

pub(crate) fn bridge(job: &Bridge) -> Result<(), Contradiction> {
    let both = job.include.is_some() && job.exclude.is_some();
    hold("", &[("include", both, "there is one rule; leave out `.exclude`")])?;
    let none = Edits::default();
    let edits_given = job.edits.as_ref().unwrap_or(&none);
    let already = "what comes from an Ethernet interface is Ethernet already; leave it out";
    hold("edits.", &[("to_ethernet", edits_given.to_ethernet, already)])?;
    edits(edits_given)
}

pub(crate) fn collect(job: &Collect) -> Result<(), Contradiction> {
    let none = job.threads == Some(0);
    let nothing = job.write.is_empty();
    let no_file = "there is no file to write; give `.write`, too";
    let brief = job.rotate.as_deref().is_some_and(|time| *time < Duration::from_secs(1));
    let many = job.rotate.is_some() || job.rotate_size.is_some() || job.partition.is_some();
    hold(
        "",
        &[
            (
                "write",
                many && job.writes_to_stdout(),
                "standard output is one file: leave out what makes several",
            ),
            (
                "write",
                job.write.len() > 1 && job.writes_to_stdout(),
                "what goes to standard output goes nowhere else",
            ),
            ("listen", job.listen.is_empty(), "where do messages come to? Name ADDR:PORT"),
            ("threads", none, "it is at least 1"),
            ("rotate", nothing && job.rotate.is_some(), no_file),
            ("rotate", brief, "it is at least a second"),
            ("rotate_size", nothing && job.rotate_size.is_some(), no_file),
            ("rotate_size", job.rotate_size.as_deref() == Some(&0), "it is at least 1"),
            ("partition", nothing && job.partition.is_some(), no_file),
        ],
    )
}

pub(crate) fn capture(path: &str, asked: Option<&Capture>) -> Result<(), Contradiction> {
    let Some(asked) = asked else { return Ok(()) };
    let ending = asked.file.extension().map(|ending| ending.to_ascii_lowercase());
    let named = ending.is_some_and(|ending| ending == "pcapng" || ending == "ntar");
    let rotates = asked.rotate.is_some() || asked.rotate_size.is_some();
    let brief = asked.rotate.as_deref().is_some_and(|time| *time < Duration::from_secs(1));
    hold(
        path,
        &[
            (
                "file",
                !named && !asked.writes_to_stdout(),
                "a capture of what arrives is a pcapng file, which is not compressed: name it NAME.pcapng",
            ),
            (
                "file",
                rotates && asked.writes_to_stdout(),
                "standard output is one file: leave out what makes several",
            ),
            ("rotate", brief, "it is at least a second"),
            ("rotate_size", asked.rotate_size.as_deref() == Some(&0), "it is at least 1"),
            ("files", asked.files == Some(0), "it is at least 1"),
            (
                "files",
                asked.files.is_some() && !rotates,
                "there is but one file: say with `.capture.rotate` or `.capture.rotate_size` when the next one begins",
            ),
            (
                "around",
                asked.around.is_some() && asked.only.is_empty(),
                "all frames are captured: say with `.capture.only` which ones have neighbours",
            ),
        ],
    )
}

/// A lab of a job that sends: from one host to the other.
/// `elsewhere`: whether frames go elsewhere, and by which settings they may.
fn own_lab(asked: Option<&Lab>, links: &[Link], elsewhere: (bool, &str)) -> Result<(), Contradiction> {
    let Some(asked) = asked else { return Ok(()) };
    let (elsewhere, by) = elsewhere;
    let nowhere =
        format!("there frames go from one host to the other, and nowhere else: leave out {by}, or the lab");
    hold(
        "",
        &[
            ("links", !links.is_empty(), "a lab has ports of its own; leave out one of `.lab` and `.links`"),
            ("lab", elsewhere, &nowhere),
            ("lab.ports", asked.ports.is_some(), "this lab has two hosts; leave it out"),
            (
                "lab.dut",
                asked.dut.is_some() && asked.impair.is_some(),
                "the device with faults is another one; leave one of them out",
            ),
        ],
    )?;
    lab("lab.", asked, false)
}

/// What is said of measuring in a job that sends.
fn metered(meter: &Meter, measured: bool, signed: bool) -> Result<(), Contradiction> {
    let nothing = "nothing is measured: say where frames arrive with `.measure`, or leave it out";
    let only = meter.capture.as_ref().is_some_and(|capture| !capture.only.is_empty());
    hold(
        "meter.",
        &[
            ("capture", meter.capture.is_some() && !measured, nothing),
            ("pass", meter.pass && !measured, nothing),
            (
                "capture.only",
                only && !signed,
                "the signature shows what happened to a frame: have frames signed (`.sign: always`), or leave it out",
            ),
        ],
    )?;
    capture("meter.capture.", meter.capture.as_ref())
}

pub(crate) fn probe(job: &Probe) -> Result<(), Contradiction> {
    let nothing = job.on.is_none() && job.captures.is_empty();
    let both = job.on.is_some() && !job.captures.is_empty();
    let leaving = job.direction != FlowDirection::In;
    let one_layout = job.template.is_some() && job.format == ExportFormat::V5;
    hold(
        "",
        &[
            ("on", nothing, "what is to be metered? Name an interface, or captures"),
            ("on", both, "an interface and captures are not metered at once; name one of them"),
            (
                "direction",
                leaving && !job.captures.is_empty(),
                "a capture does not say which frames left an interface: leave it out",
            ),
            (
                "direction",
                leaving && matches!(job.how, How::Xdp | How::XdpGeneric),
                "XDP sees what arrives and nothing that leaves: take `.how` packet, or leave `.how` or `.direction` out",
            ),
            (
                "drop",
                leaving && job.drop,
                "what leaves is metered by a packet socket, which keeps nothing from the host: leave it out, or `.direction`",
            ),
            (
                "template",
                one_layout,
                "NetFlow v5 has but one layout; leave it out, or take another `.format`",
            ),
            (
                "biflow",
                job.biflow && job.format != ExportFormat::Ipfix,
                "records of both directions are IPFIX's (RFC 5103); NetFlow has none: leave it out, or take another `.format`",
            ),
            (
                "signatures",
                job.signatures && job.format != ExportFormat::Ipfix,
                "NetFlow has no fields for it: leave it out, or take `.format` ipfix",
            ),
            (
                "signatures",
                job.signatures && job.biflow,
                "a stream has one direction: leave it out, or `.biflow`",
            ),
            (
                "signatures",
                job.signatures && matches!(job.how, How::Xdp | How::XdpGeneric),
                "XDP copies how frames begin, and signatures stand at their ends: take `.how` packet, or leave `.how` out",
            ),
            (
                "drop",
                job.signatures && job.drop,
                "signatures are read by a packet socket, which keeps nothing from the host: leave it out, or `.signatures`",
            ),
            (
                "export",
                job.format != ExportFormat::Ipfix && job.export.iter().any(|to| to.starts_with(TCP)),
                "only IPFIX goes over TCP (RFC 7011, 10.4): take `.format` ipfix, or name HOST:PORT for UDP",
            ),
        ],
    )?;
    numbers_of_probe(job)
}

/// What the numbers of a probe may be, most of them by what NetFlow v5 has room for.
fn numbers_of_probe(job: &Probe) -> Result<(), Contradiction> {
    let v5 = job.format == ExportFormat::V5;
    let above_16_bits = |index: u32| index > 0xffff;
    let zero = "it is at least 1";
    hold(
        "",
        &[
            ("template_id", job.template_id.is_some_and(|id| id < 256), "templates are numbered from 256 on"),
            ("sample", job.sample == Some(0), zero),
            (
                "sample",
                v5 && job.sample.is_some_and(|one_in| one_in > 0x3fff),
                "NetFlow v5 has 14 bits for it: give `.sample` up to 16383, or take another `.format`",
            ),
            (
                "domain",
                v5 && job.domain.is_some_and(|domain| domain > 0xff),
                "NetFlow v5 has a byte for it, the engine's number: give `.domain` up to 255, or take another `.format`",
            ),
            (
                "input_index",
                v5 && job.input_index.is_some_and(above_16_bits),
                "NetFlow v5 has two bytes for it: give `.input_index` up to 65535, or take another `.format`",
            ),
            (
                "output_index",
                v5 && job.output_index.is_some_and(above_16_bits),
                "NetFlow v5 has two bytes for it: give `.output_index` up to 65535, or take another `.format`",
            ),
            ("sample_flows", job.sample_flows == Some(0), zero),
            (
                "sample_flows",
                job.sample_flows.is_some() && v5,
                "NetFlow v5 cannot say that flows were left out; leave it out, or take another `.format`",
            ),
            (
                "sample_seed",
                job.sample_seed.is_some() && job.sample_flows.is_none(),
                "it says which flows `.sample_flows` takes; leave it out, or give that",
            ),
            ("max_flows", job.max_flows.as_deref() == Some(&0), zero),
            ("export_rate", job.export_rate == Some(0), zero),
        ],
    )
}

pub(crate) fn impair(job: &Impair) -> Result<(), Contradiction> {
    faults("faults.", &job.faults)
}

pub(crate) fn send(job: &Send) -> Result<(), Contradiction> {
    let first = job.links.first();
    let measured = first.is_some_and(|link| link.measure.is_some());
    let sends = first.is_some_and(|link| link.on.is_some());
    let nothing = job.what.is_empty() && job.plugin.is_none();
    hold(
        "",
        &[
            ("what", nothing, "what is to be sent? Give an expression, a scenario file, or `.plugin`"),
            (
                "plugin",
                job.plugin.is_some() && !job.what.is_empty(),
                "it says what is sent, and so does `.what`: leave one of them out",
            ),
            (
                "plugin",
                job.plugin.is_some() && job.pattern == Pattern::Mesh,
                "what each port of a mesh sends to every other is an expression: leave it out, or `.pattern`",
            ),
            ("shape", job.shape.is_some() && job.rate.is_none(), "it varies a rate: give `.rate`, too"),
            (
                "shape",
                job.shape.is_some() && matches!(job.rate.as_deref(), Some(traffic::Rate::TopSpeed)),
                "at top speed there is no rate that could vary: give `.rate` as a number, such as 100kpps",
            ),
            (
                "shape",
                job.shape.is_some() && job.pattern == Pattern::Mesh,
                "in a mesh all ports send evenly, in turns: leave it out, or `.pattern: mesh`",
            ),
            (
                "round_trip",
                job.round_trip && (job.links.len() > 1 || job.pattern == Pattern::Mesh),
                "what comes back is measured at one port: give one `.on`, or say by `.measure` where the frames of each arrive",
            ),
            (
                "round_trip",
                job.round_trip && measured,
                "frames that come back are measured where they are sent; leave out `.measure`",
            ),
            (
                "round_trip",
                job.round_trip && job.sign == Sign::Never,
                "frames that come back are recognised by their signature; leave out `.sign: never`",
            ),
            ("resolve", job.resolve && !sends, "on which interface is the next hop? Say where frames leave"),
            (
                "resolve",
                job.resolve && job.pattern == Pattern::Mesh,
                "in a mesh frames go to the other ports, whose addresses are known; leave it out",
            ),
        ],
    )?;
    let any = job.links.iter().any(|link| link.measure.is_some());
    let any = any || job.round_trip || job.pattern == Pattern::Mesh || job.lab.is_some();
    let round_trip = job.round_trip || job.resolve || job.pattern == Pattern::Mesh;
    let elsewhere = round_trip || job.engine == Engine::Null;
    let by = "`.round_trip`, `.resolve`, `.pattern: mesh` and `.engine: null`";
    own_lab(job.lab.as_ref(), &job.links, (elsewhere, by))?;
    metered(&job.meter, any, job.sign != Sign::Never)?;
    ports("", &job.links, (job.pattern, job.share))
}

/// Several ports, and which of them send to which.
fn ports(path: &str, links: &[Link], (pattern, shared): (Pattern, bool)) -> Result<(), Contradiction> {
    let mesh = pattern == Pattern::Mesh;
    let few = mesh && links.len() < 2;
    let more = "a mesh has two ports or more, of which each sends to every other: name another one, or leave out `.pattern: mesh`";
    hold(path, &[("links", few, more)])?;
    if links.len() < 2 {
        return Ok(());
    }
    let counted = |of: fn(&Link) -> &Option<String>| links.iter().filter(|link| of(link).is_some()).count();
    let (on, measured) = (counted(|link| &link.on), counted(|link| &link.measure));
    let counts = format!("there are {on} of `.on` but {measured} of `.measure`");
    for (number, link) in links.iter().enumerate() {
        let named_before = |of: fn(&Link) -> &Option<String>| {
            of(link).is_some() && links.iter().take(number).any(|other| of(other) == of(link))
        };
        let twice = |name: &Option<String>| {
            let name = name.as_deref().unwrap_or_default();
            format!("{name} is named twice: give each port an interface of its own")
        };
        hold(
            &format!("{path}links[{number}]."),
            &[
                (
                    "on",
                    link.on.is_none(),
                    &format!("each link sends, and {counts}: say where its frames leave"),
                ),
                ("on", named_before(|link| &link.on), &twice(&link.on)),
                (
                    "measure",
                    mesh && link.measure.is_some(),
                    "in a mesh each port measures what is sent to it; leave it out",
                ),
                (
                    "measure",
                    !mesh && !shared && measured > 0 && link.measure.is_none(),
                    &format!("all links are measured or none, and {counts}: say where its frames arrive"),
                ),
                ("measure", named_before(|link| &link.measure), &twice(&link.measure)),
            ],
        )?;
    }
    Ok(())
}

pub(crate) fn replay(job: &Replay) -> Result<(), Contradiction> {
    let two = job.links.len();
    let measured = |number: usize| job.links.get(number).is_some_and(|link| link.measure.is_some());
    hold(
        "",
        &[
            ("captures", job.captures.is_empty(), "there is none to send"),
            ("links", two > 2, "a capture has two sides at most; give one link or two"),
            (
                "links[1].measure",
                measured(1) && !measured(0),
                "of two sides both are measured or none; say where the first one's frames arrive, too",
            ),
            (
                "only_side",
                job.only_side.is_some() && (job.sides.is_none() || two == 2),
                "it is sent by one link, and `.sides` says which frames it has",
            ),
            ("shape", job.shape.is_some() && job.rate.is_none(), "it varies a rate: give `.rate`, too"),
            (
                "seed",
                job.seed.is_some() && job.shape.is_none(),
                "it is the key of what `.shape` leaves to chance",
            ),
            (
                "speed",
                job.rate.is_some() && job.speed.is_some(),
                "it goes without `.rate`, which says how fast whatever the capture says",
            ),
            (
                "write",
                job.write.is_some() && (two > 0 || job.round_trip || job.cores.is_some()),
                "into a file, frames leave by no interface: leave out `.links`, `.round_trip` and `.cores`",
            ),
            (
                "round_trip",
                job.round_trip && job.links.iter().any(|link| link.measure.is_some()),
                "frames that come back are measured where they are sent; leave out `.measure`",
            ),
        ],
    )?;
    let any = job.round_trip || job.lab.is_some() || job.links.iter().any(|link| link.measure.is_some());
    let elsewhere = job.round_trip || job.write.is_some() || job.engine == Engine::Null;
    let by = "`.round_trip`, `.write` and `.engine: null`";
    own_lab(job.lab.as_ref(), &job.links, (elsewhere, by))?;
    metered(&job.meter, any, job.round_trip || job.sign == Sign::Always)?;
    job.edits.as_ref().map_or(Ok(()), edits)
}

pub(crate) fn live(job: &Live) -> Result<(), Contradiction> {
    hold(
        "",
        &[
            ("to", job.to.address.is_unspecified(), "where is the server? Name its address and port"),
            ("all", job.all && job.flow.is_some(), "leave out `.flow`, which names one connection"),
        ],
    )
}

fn edits(edits: &Edits) -> Result<(), Contradiction> {
    let (no_tag, no_fuzz) = (edits.vlan_add.is_none(), edits.fuzz_seed.is_none());
    let tag = "there is no tag to have it: give `.vlan_add`";
    hold(
        "edits.",
        &[
            (
                "keep_mac_bytes",
                edits.keep_mac_bytes.is_some() && edits.scramble_mac.is_none(),
                "nothing is scrambled: give `.scramble_mac`",
            ),
            ("vlan_priority", edits.vlan_priority.is_some() && no_tag, tag),
            ("vlan_dei", edits.vlan_dei.is_some() && no_tag, tag),
            ("vlan_kind", edits.vlan_kind.is_some() && no_tag, tag),
            ("fuzz_factor", edits.fuzz_factor.is_some() && no_fuzz, "nothing is damaged: give `.fuzz_seed`"),
        ],
    )
}

pub(crate) fn faults(path: &str, faults: &Faults) -> Result<(), Contradiction> {
    hold(
        path,
        &[
            ("jitter", faults.jitter.is_some() && faults.delay.is_none(), "it is of a `.delay`: give one"),
            ("keep_order", faults.keep_order && faults.jitter.is_none(), "it is of a `.jitter`: give one"),
            (
                "copies",
                faults.copies.is_some() && faults.duplicate.is_none(),
                "nothing is copied: give `.duplicate`",
            ),
            (
                "copies",
                faults.copies.is_some_and(|copies| !(1..=100_000).contains(&copies)),
                "give 1 to 100000",
            ),
            (
                "reorder_by",
                faults.reorder_by.is_some() && faults.reorder.is_none(),
                "nothing is put back: give `.reorder`",
            ),
            (
                "mend_checksum",
                faults.mend_checksum && faults.corrupt.is_none(),
                "nothing is damaged: give `.corrupt`",
            ),
        ],
    )
}

pub(crate) fn bench(bench: &Bench) -> Result<(), Contradiction> {
    hold(
        "bench.",
        &[
            (
                "back",
                bench.back.is_some() && !bench.both_ways,
                "nothing is sent back: give `.both_ways: true`",
            ),
            (
                "back",
                bench.back.is_some() && bench.what.is_none(),
                "it goes with `.what`, which says what is sent there",
            ),
            (
                "plugin",
                bench.plugin.is_some() && bench.what.is_some(),
                "it says what is sent, and so does `.what`: leave one of them out",
            ),
            (
                "plugin",
                bench.plugin.is_some() && bench.pattern == Pattern::Mesh,
                "what each port of a mesh sends to every other is an expression: leave it out, or `.pattern`",
            ),
            (
                "plugin",
                bench.plugin.is_some() && !bench.gateway.is_empty(),
                "its frames have addresses of their own; leave out `.gateway`",
            ),
            (
                "gateway",
                !bench.gateway.is_empty() && bench.what.is_some(),
                "frames of `.what` have the addresses that stand there; leave one of them out",
            ),
            (
                "both_ways",
                bench.both_ways && bench.pattern == Pattern::Mesh,
                "in a mesh frames go both ways already; leave it out",
            ),
            (
                "links",
                bench.lab.is_some() && !bench.links.is_empty(),
                "a lab brings its own ports; leave one of them out",
            ),
            (
                "links",
                bench.lab.is_none() && bench.links.is_empty(),
                "between which ports? Add `.lab` (two hosts of its own, no hardware), or say where to send and where to measure: `.links: [{on: eth1, measure: eth2}]`",
            ),
        ],
    )?;
    let mesh = bench.pattern == Pattern::Mesh;
    if mesh && bench.lab.is_none() {
        ports("bench.", &bench.links, (bench.pattern, false))?;
    }
    for (number, link) in bench.links.iter().enumerate().filter(|_| !mesh) {
        let path = format!("bench.links[{number}].");
        hold(
            &path,
            &[
                ("on", link.on.is_none(), "where do its frames leave?"),
                ("measure", link.measure.is_none(), "where do its frames arrive?"),
            ],
        )?;
    }
    bench.lab.as_ref().map_or(Ok(()), |asked| lab("bench.lab.", asked, mesh))
}

/// What a lab's nat can have for limits, and what it does not stand between.
fn nat(path: &str, lab: &Lab, mesh: bool) -> Result<(), Contradiction> {
    let is_nat = lab.dut.unwrap_or(Dut::Nat) == Dut::Nat;
    let (limits, of_nat) = (lab.limits_connections(), "it is of the device `.lab.dut` nat");
    let held = lab.connections.is_some() && lab.most_connections().is_none();
    let new = lab.new_connections.is_some() && lab.most_new_connections().is_none();
    let translates = is_nat && (limits || lab.dut.is_some());
    hold(
        path,
        &[
            ("connections", lab.connections.is_some() && !is_nat, of_nat),
            ("connections", held, "it is 1 to 65535"),
            ("new_connections", lab.new_connections.is_some() && !is_nat, of_nat),
            ("new_connections", new, "it is in connections per second, up to 1000kcps: 2kcps"),
            (
                "impair",
                lab.impair.is_some() && limits,
                "the device with faults is no nat; leave out its limits",
            ),
            (
                "ports",
                translates && (mesh || lab.ports.is_some()),
                "a nat stands between two hosts; leave it out",
            ),
        ],
    )
}

/// A lab: in a mesh its ports are all of it, and else pairs.
pub(crate) fn lab(path: &str, lab: &Lab, mesh: bool) -> Result<(), Contradiction> {
    nat(path, lab, mesh)?;
    let (free, what) = (lab.bottleneck.is_none(), "it is of a `.lab.bottleneck`: give one");
    let own = lab.impair.is_some();
    let instead = "the device with faults is another one; leave out `.lab.impair`, or say its loss there";
    let number = lab.ports.unwrap_or_default();
    let outside = format!(
        "a lab's device has 3 to 16 of them, or two if it is left out, which `.ports` {number} is not"
    );
    let odd = format!(
        "in pairs there is an even number of them, which `.ports` {number} is not; make it even, or send in a mesh: `.pattern: mesh`"
    );
    hold(
        path,
        &[
            ("queue", lab.queue.is_some() && free, what),
            ("burst", lab.burst.is_some() && free, what),
            ("bottleneck", own && lab.bottleneck.is_some(), instead),
            ("loss", own && lab.loss.is_some(), instead),
            ("ports", lab.ports.is_some_and(|ports| !(3..=16).contains(&ports)), &outside),
            ("ports", !mesh && lab.ports.is_some_and(|ports| ports % 2 == 1), &odd),
            (
                "ports",
                own && (lab.ports.is_some() || mesh),
                "the device with faults has two ports; leave out `.lab.impair`, or several ports",
            ),
        ],
    )?;
    lab.impair.as_ref().map_or(Ok(()), |impair| faults(&format!("{path}impair."), impair))
}

/// What a search for flows has no use for, and what it needs.
pub(crate) fn flows(flows: &Flows, search: &Search) -> Result<(), Contradiction> {
    let bench = &search.bench;
    let in_a_lab = bench.lab.is_some();
    let lab = bench.lab.clone().unwrap_or_default();
    hold(
        "bench.",
        &[
            ("what", bench.what.is_some(), "the frames of this search are its own: leave it out"),
            ("plugin", bench.plugin.is_some(), "the frames of this search are its own: leave it out"),
            ("both_ways", bench.both_ways, "flows are sent to a probe and nothing comes back: leave it out"),
            ("pattern", bench.pattern == Pattern::Mesh, "flows are sent by one port: leave it out"),
            ("lab", lab != Lab::default(), "the probe is all that stands in this lab: `.lab: {}`"),
            (
                "links",
                in_a_lab && !bench.links.is_empty(),
                "a lab brings its own ports; leave one of them out",
            ),
            (
                "links",
                !in_a_lab && bench.links.len() != 1,
                "from which port? Add `.lab` (two hosts of its own, no hardware), or name it: `.links: [{on: eth1}]`",
            ),
            (
                "links",
                bench.links.iter().any(|link| link.measure.is_some()),
                "the probe's records say what arrived: leave out `.measure`",
            ),
            ("warm_up", bench.warm_up.is_some(), "a trial begins with an empty cache: leave it out"),
            ("back", bench.back.is_some(), "flows are sent to a probe and nothing comes back: leave it out"),
            ("no_learning", bench.no_learning, "a probe is told no addresses before a trial: leave it out"),
            ("how", bench.how != How::Auto, "the probe's records say what arrived: leave it out"),
            (
                "timestamps",
                bench.timestamps != Timestamps::Auto,
                "the probe's records say what arrived: leave it out",
            ),
        ],
    )?;
    let no_flows = |rate: &crate::Written<traffic::Rate>| {
        !matches!(**rate, traffic::Rate::Flows(_) | traffic::Rate::Frames(_))
    };
    const FLOWS: &str = "give new flows per second: 100kflows/s";
    let [max, min] = [&search.max, &search.min].map(|rate| rate.as_ref().is_some_and(no_flows));
    hold("", &[("max", max, FLOWS), ("min", min, FLOWS)])?;
    hold(
        "find.flows.",
        &[
            ("probe", flows.probe.is_some() && !in_a_lab, "a probe is started in a lab only: `.lab: {}`"),
            ("command", flows.command.is_some() && !in_a_lab, "it is run in a lab only: `.lab: {}`"),
            (
                "command",
                flows.command.is_some() && flows.probe.is_some(),
                "one probe at a time: leave out `.probe`",
            ),
            (
                "collect",
                flows.collect.is_some() && in_a_lab,
                "the lab's probe knows where to send its records: leave it out",
            ),
            (
                "collect",
                flows.collect.is_none() && !in_a_lab,
                "where does the probe send its records? `.collect: 0.0.0.0:2055`",
            ),
            ("packets_per_flow", !(1..=10_000).contains(&flows.packets_per_flow()), "give 1 to 10000"),
            ("confirm", flows.confirm == Some(0), "give 1 or more"),
            (
                "rates",
                !flows.rates.is_empty() && (search.max.is_some() || search.min.is_some()),
                "rates that are given are not searched for: leave out `.max` and `.min`",
            ),
            ("rates", flows.rates.iter().any(no_flows), FLOWS),
        ],
    )
}

pub(crate) fn find(find: &Find) -> Result<(), Contradiction> {
    let repetitions = find.repetitions();
    hold(&format!("find.{}.", find.name()), &[("repetitions", repetitions == Some(0), "give 1 or more")])
}

#[cfg(test)]
mod tests {
    use crate::File;

    #[test]
    fn what_contradicts_itself_is_named_by_its_path() {
        for (job, says) in [
            ("kind: send, what: ipv4, links: [{on: a}, {measure: b}]", "links[0].measure: all links"),
            ("kind: send, what: ipv4, links: [{on: a}, {on: a}]", "links[1].on: a is named twice"),
            (
                "kind: send, what: ipv4, links: [{on: a, measure: c}, {on: b, measure: c}]",
                "links[1].measure: c is named twice",
            ),
            ("kind: send, what: ipv4, links: [{on: a}, {on: b}], round_trip: true", "round_trip: what comes"),
            ("kind: send, what: ipv4, links: [{on: a}], pattern: mesh", "links: a mesh has two ports"),
            (
                "kind: send, what: ipv4, links: [{on: a}, {on: b, measure: c}], pattern: mesh",
                "links[1].measure: in a mesh",
            ),
            (
                "kind: trial, rate: 5pps, bench: {links: [{on: a}, {on: b}], pattern: mesh, both_ways: true}",
                "bench.both_ways: in a mesh",
            ),
            ("kind: trial, rate: 5pps, bench: {links: [{on: a}], pattern: mesh}", "bench.links: a mesh"),
            ("kind: trial, rate: 5pps, bench: {lab: {ports: 2}}", "bench.lab.ports: a lab's device has 3"),
            ("kind: trial, rate: 5pps, bench: {lab: {ports: 5}}", "bench.lab.ports: in pairs"),
            (
                "kind: send, what: ipv4, links: [{on: a, measure: b}], round_trip: true",
                "round_trip: frames that",
            ),
            ("kind: replay, captures: []", "captures: there is none"),
            ("kind: replay, captures: [a], links: [{on: a}], lab: {}", "links: a lab has ports"),
            ("kind: replay, captures: [a], write: b, lab: {}", "lab: there frames go"),
            ("kind: send, what: ipv4, lab: {ports: 4}", "lab.ports: this lab has two hosts"),
            (
                "kind: send, what: ipv4, links: [{on: a}], meter: {pass: true}",
                "meter.pass: nothing is measured",
            ),
            (
                "kind: send, what: ipv4, lab: {}, meter: {capture: {file: a.pcap}}",
                "meter.capture.file: a capture of",
            ),
            (
                "kind: send, what: ipv4, lab: {}, meter: {capture: {file: a.pcapng, around: 3}}",
                "meter.capture.around: all frames",
            ),
            (
                "kind: replay, captures: [a], lab: {}, meter: {capture: {file: a.pcapng, only: [lost]}}",
                "meter.capture.only: the signature shows what happened to a frame",
            ),
            ("kind: measure, on: a, capture: {file: a.pcapng, files: 3}", "capture.files: there is but one"),
            (
                "kind: measure, on: a, capture: {file: '-', rotate: 5s}",
                "capture.file: standard output is one",
            ),
            (
                "kind: replay, captures: [a], sides: auto, links: [{on: a}, {on: b, measure: c}]",
                "links[1].measure: of two sides both",
            ),
            ("kind: replay, captures: [a], links: [{on: a}], write: b", "write: into a file"),
            (
                "kind: replay, captures: [a], edits: {vlan_priority: 3}",
                "edits.vlan_priority: there is no tag",
            ),
            ("kind: bridge, between: [a, b], include: src=a, exclude: src=b", "include: there is one rule"),
            ("kind: impair, between: [a, b], faults: {copies: 3}", "faults.copies: nothing is copied"),
            (
                "kind: impair, between: [a, b], faults: {duplicate: 1%, copies: 0}",
                "faults.copies: give 1 to 100000",
            ),
            ("kind: trial, rate: 5pps", "bench.links: between which ports?"),
            ("kind: trial, rate: 5pps, bench: {links: [{on: a}]}", "bench.links[0].measure: where"),
            (
                "kind: search, find: {burst: {repetitions: 0}}, bench: {lab: {}}",
                "find.burst.repetitions: give 1 or more",
            ),
            (
                "kind: trial, rate: 5pps, bench: {lab: {queue: 5}}",
                "bench.lab.queue: it is of a `.lab.bottleneck`",
            ),
            (
                "kind: search, find: loss, bench: {lab: {impair: {keep_order: true}}}",
                "bench.lab.impair.keep_order: it is of a `.jitter`",
            ),
            (
                "kind: search, find: throughput, bench: {lab: {}, what: ipv4, gateway: ['02:00:00:00:00:01']}",
                "bench.gateway: frames of `.what`",
            ),
        ] {
            for (file, path) in [
                (format!("{{schema: netdyno.job/1, {job}}}"), ""),
                (
                    format!("{{schema: netdyno.job/1, jobs: [{{kind: measure, on: a}}, {{{job}}}]}}"),
                    "jobs[1].",
                ),
            ] {
                let error = File::read(&file, "job").expect_err(job).to_string();
                assert!(error.starts_with(&format!("{path}{says}")), "{job}: {error}");
            }
        }
    }
}
