//! `netdyno send`: frames of an expression onto an interface.

use super::shared;
use crate::cli::Send;
use crate::output::conclude;
use crate::run::{self, Setup};
use anyhow::{Result, bail};
use engine::Job;
use engine::source::Source;
use report::Requested;
use std::sync::Arc;
use traffic::expr::{Options, compile};
use traffic::rate::NoSchedule;
use traffic::{Program, Rate};

pub fn run(args: Send) -> Result<u8> {
    shared::check_pace(&args.pace)?;
    let Some(rate) = shared::rate_of(&args.pace) else {
        bail!("how fast? Give --rate (1mpps, 500mbps, 10%, ...) or --topspeed");
    };
    let place = shared::sending_place(args.interface.as_deref(), &args.through)?;
    let cpus = shared::cpus(&args.through, place.as_ref())?;
    let rx = shared::measuring_place(&args.metering, &args.through, rate != Rate::TopSpeed)?;
    let seed = args.shape.seed.unwrap_or_else(shared::draw_seed);
    let mut warnings = Vec::new();
    let program = program(&args, seed, rx.is_some(), &mut warnings)?;
    if let Some(place) = &place {
        // A VLAN tag may stand on top of the MTU.
        let tagged = program.streams.iter().any(|s| s.templates.get(0).get(12..14) == Some(&[0x81, 0x00]));
        let most = place.interface.mtu as usize + if tagged { 18 } else { 14 };
        if program.longest() as usize > most {
            bail!(
                "frames of {} bytes (with FCS) do not fit {}, whose MTU is {}: raise it with `ip link set {} mtu {}`, or give a smaller --size",
                program.longest() + traffic::expr::FCS,
                place.spec,
                place.interface.mtu,
                place.interface.name,
                program.longest() - 14
            );
        }
    }
    let flows = match rate {
        Rate::Flows(_) => Some(flows_per_pass(&program)?),
        _ => None,
    };
    let schedule = shared::schedule(rate, place.as_ref(), flows)?;
    let asked = shared::requested_rate(rate, &schedule);
    let program = program.with_schedule(schedule);
    let requested = Requested {
        command_line: shared::command_line(),
        source: Some(report::Source::Expression { expression: args.expression.clone() }),
        engine: Some(shared::engine_name(args.through.engine)),
        rate: Some(asked),
        count: args.pace.count,
        duration_ns: args.pace.duration.map(|d| d.as_nanos() as u64),
        seed: program.uses_seed().then_some(seed),
        interfaces: place.iter().chain(rx.iter().map(|(p, _)| p)).map(|p| p.spec.clone()).collect(),
        ..Requested::default()
    };
    let stop = run::stop_on_signals()?;
    let report = run::run(Setup {
        command: "send",
        requested,
        open: shared::open_engines(args.through.engine),
        longest: program.longest() as usize,
        job: Job {
            source: Source::Program(Arc::new(program)),
            count: args.pace.count,
            duration: args.pace.duration,
            catch_up: args.pace.catch_up,
            spin: args.pace.spin,
        },
        total: args.pace.count,
        endless: args.pace.count.is_none() && args.pace.duration.is_none(),
        tx: place.filter(|_| args.through.engine != crate::cli::Engine::Null),
        rx,
        cpus,
        warnings,
        truncated: (0, 1),
        output: args.output.clone(),
        stop,
    })?;
    conclude(&report, &args.output, false)
}

/// Compiles the expression, signed if that was asked for or can be had.
fn program(args: &Send, seed: u64, measured: bool, warnings: &mut Vec<String>) -> Result<Program> {
    let options = |signature| Options { size: args.shape.size.clone(), seed, signature, name: String::new() };
    if args.sign {
        return Ok(compile(&args.expression, &options(Some(0)))?);
    }
    if measured && let Ok(program) = compile(&args.expression, &options(Some(0))) {
        return Ok(program);
    }
    let program = compile(&args.expression, &options(None))?;
    if measured {
        warnings
            .push("these frames have no room for a signature: order and latency are not measured".to_owned());
    }
    Ok(program)
}

/// Frames looked at to find how many flows an expression has.
const MOST: u64 = 1 << 22;

/// Flows, and frames until they come again.
fn flows_per_pass(program: &Program) -> Result<(u64, u64)> {
    let mut period = 1u64;
    for field in program.streams.iter().flat_map(|s| &s.fields) {
        let Some(own) = field.values.period().and_then(|p| p.checked_mul(field.every)) else {
            bail!("{}: some of its fields never repeat; give frames per second", NoSchedule::FlowsUnknown);
        };
        let (mut a, mut b) = (period, own.max(1));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        match (period / a).checked_mul(own) {
            Some(next) if next <= MOST => period = next,
            _ => bail!(
                "a rate in flows per second needs flows that repeat within {MOST} frames; give frames per second"
            ),
        }
    }
    let flows = run::count_flows(program, period).map_or(0, |(flows, _)| flows);
    Ok((flows, period))
}
