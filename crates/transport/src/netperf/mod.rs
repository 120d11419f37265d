//! Clients and servers that speak netperf's protocol, over real sockets.
//!
//! ```text
//!   client::Session --control--> server::serve (a thread for each client)
//!        |                            |
//!   client::data  ====== data ===== data::run
//! ```
//!
//! What is said is `endpoint::netperf`'s. Data phases are this crate's ([`crate::stream`], [`crate::exchange`],
//! [`crate::datagram`]), but for datagrams that netperf answers or ends in a way of its own (module `udp`).

pub mod client;
mod control;
mod data;
mod local;
pub mod server;
#[cfg(test)]
mod tests;
mod udp;
mod watch;

use crate::cpu::Use;
use endpoint::netperf::omni::{Cpu, PROC_STAT};

/// What the whole machine was used for, as netperf has it.
fn percent(used: &Use) -> Option<Cpu> {
    let machine = used.machine.as_ref()?;
    let cores = f64::from(machine.cores.max(1));
    let percent = |of: f64| (of / cores * 100.0) as f32;
    Some(Cpu {
        util: percent(machine.busy_cores),
        user: percent(machine.user_cores),
        system: percent(machine.system_cores),
        // Counted as idle: a processor that waits for disks has nothing to do with the network.
        iowait: 0.0,
        irq: percent(machine.irq_cores),
        softirq: percent(machine.softirq_cores),
        count: machine.cores as i32,
        peak_id: machine.peak_core as i32,
        peak: (machine.peak * 100.0) as f32,
        method: PROC_STAT,
    })
}

/// How many processors there are.
fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Bytes of each send where nothing else is said: as many as SO_SNDBUF at the beginning, and no more than a datagram has.
fn send_size(asked: Option<u32>, buffer: u32, datagrams: bool) -> u32 {
    let most = if datagrams { endpoint::netperf::plan::LARGEST_DATAGRAM } else { u32::MAX };
    asked.unwrap_or(buffer).clamp(1, most)
}

/// How many buffers netperf would use in turn. Here one serves.
fn width(asked: i32, buffer: u32, size: u32) -> i32 {
    if asked > 0 { asked } else { ((buffer / size.max(1)) as i32 + 1).max(2) }
}
