//! netperf's figures, made of what runs came to.

use super::options::Options;
use anyhow::{Context, Result};
use endpoint::netperf::confidence::Series;
use endpoint::netperf::figures::{Confidence, Figures, Flow, Latency, Place, Side, Unit, service_demand};
use endpoint::netperf::layout::End;
use endpoint::netperf::omni::{Cpu, flag};
use endpoint::netperf::plan::Transport;
use transport::netperf::client::Outcome;
use transport::socket::Actual;

/// AF_INET and AF_INET6.
const FAMILIES: [u32; 2] = [2, 10];

fn buffers(asked: [Option<u32>; 2], initial: &Actual, ended: &Actual) -> [[i32; 3]; 2] {
    let number = |size: Option<u32>| size.map_or(-1, |size| size as i32);
    let row = |asked: Option<u32>, initial: Option<u32>, ended: Option<u32>| {
        // One that was asked for stays as it was made.
        [number(asked), number(initial), number(if asked.is_some() { initial } else { ended })]
    };
    [
        row(asked[0], initial.send_buffer, ended.send_buffer),
        row(asked[1], initial.receive_buffer, ended.receive_buffer),
    ]
}

/// Of one run.
pub fn of(o: &Options, run: &Outcome) -> Figures {
    let [send_buffer, recv_buffer] = buffers(o.own_buffers, &run.initial, &run.ended);
    let local = Side {
        send_buffer,
        recv_buffer,
        send_size: if matches!(o.flow, Flow::Send) { run.sizes.0 as i32 } else { o.own_sizes[0] as i32 },
        recv_size: if matches!(o.flow, Flow::Receive) { run.sizes.1 as i32 } else { o.own_sizes[1] as i32 },
        width: run.widths,
        align: o.align,
        offset: o.offset,
        send_calls: run.sent.1,
        recv_calls: run.received.1,
        bytes_sent: run.sent.0,
        bytes_received: run.received.0,
        cpu: run.cpu,
        service_demand: -1.0,
        cpu_bind: o.core.map_or(-1, |core| core as i32),
        nodelay: o.nodelay,
        cork: o.cork,
        retransmits: run.retransmits.map_or(-1, |count| count as i32),
        congestion: run.ended.congestion.clone().unwrap_or_default(),
        priority: o.priority.map_or(-1, |value| value as i32),
        tos: o.tos.map_or(-1, i32::from),
        fill_file: o.fill.as_ref().map_or_else(String::new, |file| file.display().to_string()),
    };
    let (asked, response, results) = (&o.request, &run.response, &run.results);
    let measured = response.flags & flag::MEASURE_CPU != 0;
    let remote = Side {
        send_buffer: [asked.send_buffer, response.send_buffer, results.send_buffer],
        recv_buffer: [asked.recv_buffer, response.recv_buffer, results.recv_buffer],
        send_size: response.send_size,
        recv_size: response.receive_size,
        width: [response.send_width, response.recv_width],
        align: [asked.send_align, asked.recv_align],
        offset: [asked.send_offset, asked.recv_offset],
        send_calls: results.send_calls.into(),
        // The protocol's number ends at 2^32 - 1, which datagrams reach within an hour; their bytes do not.
        recv_calls: match results.recv_calls {
            u32::MAX if o.datagrams && o.flow == Flow::Send => {
                results.bytes_received / u64::from(run.sizes.0.max(1))
            }
            calls => calls.into(),
        },
        bytes_sent: results.bytes_sent,
        bytes_received: results.bytes_received,
        cpu: measured.then_some(results.cpu),
        service_demand: -1.0,
        cpu_bind: asked.cpu,
        nodelay: response.flags & flag::NODELAY != 0,
        cork: o.cork,
        retransmits: results.retransmits,
        congestion: results.congestion.clone(),
        priority: asked.priority,
        tos: asked.tos,
        fill_file: asked.fill_file.clone(),
    };
    let (unit, elapsed) = (o.unit(), run.elapsed);
    let xferred = |side: &Side| (side.bytes_sent + side.bytes_received) as f64;
    let amount = match (unit, o.flow) {
        (Unit::Transactions, _) => run.transactions as f64,
        (_, Flow::Receive) => xferred(&local),
        // What arrived counts, not what was sent.
        _ => xferred(&remote),
    };
    let rate = if elapsed > 0.0 { run.transactions as f64 / elapsed } else { 0.0 };
    let transacts = o.flow.is_transactions();
    let mut figures = Figures {
        flow: o.flow,
        transport: if o.datagrams { Transport::Udp } else { Transport::Tcp },
        unit,
        elapsed,
        throughput: unit.rate(amount, elapsed),
        transaction_rate: if transacts { rate } else { 1.0 },
        rt_latency: if transacts && rate > 0.0 { f64::from(1 + o.burst) * 1e6 / rate } else { -1.0 },
        burst: o.burst,
        request_size: if transacts { o.request_size as i32 } else { -1 },
        response_size: if transacts { o.response_size as i32 } else { -1 },
        mss: run.mss.map_or(-1, |mss| mss as i32),
        failed_sends: run.failed_sends,
        local,
        remote,
        latency: latency(run),
        confidence: Confidence::default(),
        source: Place { port: String::new(), host: String::new(), family: 0 },
        destination: Place { port: String::new(), host: String::new(), family: 0 },
        uuid: String::new(),
        brand: o.brand.clone(),
        command_line: String::new(),
    };
    let demand = |cpu: Option<Cpu>, bytes: f64| {
        let amount = if unit == Unit::Transactions { run.transactions as f64 } else { bytes };
        cpu.map_or(-1.0, |cpu| service_demand(cpu.util.into(), cpu.count, amount, elapsed, unit))
    };
    figures.local.service_demand = demand(figures.local.cpu, xferred(&figures.local));
    figures.remote.service_demand = demand(figures.remote.cpu, xferred(&figures.remote));
    figures
}

fn latency(run: &Outcome) -> Latency {
    let all = &run.latency;
    if all.is_empty() {
        return Latency::default();
    }
    let mean = all.mean();
    // By the middle of each bucket: they are as fine as a hundredth.
    let square = |bucket: histogram::Bucket| {
        let middle = (bucket.from as f64 + bucket.to as f64) / 2.0;
        (middle - mean).powi(2) * bucket.count as f64
    };
    let variance = all.buckets().map(square).sum::<f64>() / all.count() as f64;
    let micros = |nanos: u64| (nanos / 1000) as i64;
    Latency {
        min: micros(all.min()),
        max: micros(all.max()),
        percentiles: [all.p50(), all.p90(), all.p99()].map(micros),
        mean: mean / 1000.0,
        stddev: variance.sqrt() / 1000.0,
    }
}

/// Of all runs: the last one's, with the means of what netperf takes means of.
pub fn mean(o: &Options, runs: Vec<(Figures, Outcome)>, series: &Series, ends: &[End; 2]) -> Result<Figures> {
    let count = runs.len().max(1) as f64;
    let average =
        |of: &dyn Fn(&Figures) -> f64| runs.iter().map(|(figures, _)| of(figures)).sum::<f64>() / count;
    let elapsed = average(&|f| f.elapsed);
    let throughput = average(&|f| f.throughput);
    let demands = [average(&|f| f.local.service_demand), average(&|f| f.remote.service_demand)];
    let (mut figures, _) = runs.into_iter().next_back().context("none")?;
    (figures.elapsed, figures.throughput) = (elapsed, throughput);
    (figures.local.service_demand, figures.remote.service_demand) = (demands[0], demands[1]);
    let [_, local, remote] = series.means();
    for (cpu, util) in [(&mut figures.local.cpu, local), (&mut figures.remote.cpu, remote)] {
        if let Some(cpu) = cpu {
            cpu.util = util as f32;
        }
    }
    if let Some(goal) = &o.confidence {
        figures.confidence = Confidence {
            level: goal.level,
            interval: goal.interval,
            iterations: series.len(),
            reached: series.widths(goal.level).map_or([-1.0; 3], |widths| widths.map(|width| width * 100.0)),
        };
    }
    figures.uuid = o.uuid.clone().map_or_else(uuid, Ok)?;
    figures.command_line = crate::output::command_line().join(" ").replacen("netdyno netperf", "netperf", 1);
    let place = |end: &End, given: bool| Place {
        port: end.port.to_string(),
        host: end.name.clone(),
        family: if given { FAMILIES[usize::from(end.address.is_ipv6())] } else { 0 },
    };
    let own = o.own.host.is_some() || o.own_data.host.is_some();
    (figures.source, figures.destination) = (place(&ends[0], own), place(&ends[1], true));
    Ok(figures)
}

/// A name that no other result has (RFC 9562, version 4).
pub fn uuid() -> Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).context("random bytes")?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = wire::hex::encode(&bytes);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}
