//! `netdyno impair`: a bridge that does to frames what a bad device does, as far as it was told to and no further.

use super::bridge::{Settings, bridge};
use crate::cli::impair::Impair;
use crate::output::conclude;
use anyhow::{Result, bail};

pub fn run(args: Impair) -> Result<u8> {
    let Ok(between) = <[String; 2]>::try_from(args.between) else {
        bail!("--between takes two interfaces");
    };
    let settings = Settings {
        duration: args.duration,
        faults: Some(args.faults),
        yes_disrupt: args.yes_disrupt,
        output: args.output.clone(),
        ..Settings::of_two("impair", between)
    };
    conclude(&bridge(settings)?, &args.output, false)
}
