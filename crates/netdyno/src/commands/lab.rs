//! `netdyno lab -- CMD`: any command between two hosts of its own.

use crate::cli::Lab;
use anyhow::{Result, bail};

pub fn run(args: Lab) -> Result<u8> {
    if !(68..=65_535).contains(&args.mtu) {
        bail!("--mtu {}: 68 to 65535 are possible", args.mtu);
    }
    if !(1..=64).contains(&args.queues) {
        bail!("--queues {}: 1 to 64 are possible", args.queues);
    }
    let options = ::lab::Options {
        mtu: args.mtu,
        queues: args.queues,
        addresses: args.addresses,
        ..::lab::Options::default()
    };
    let lab = ::lab::Lab::two_hosts(&options)?;
    let status = ::lab::run_command(&lab, &args.command)?;
    Ok(u8::try_from(status).unwrap_or(1))
}
