//! Without flow records (Cargo feature `netflow`): jobs of these kinds are refused.

use super::{Run, passive};
use crate::Session;
use anyhow::{Result, bail};
use report::Report;
use spec::{Collect, Probe};

// What is wrong with the job itself comes first, as in any other build.

impl Run for Probe {
    fn run(&self, _: Session) -> Result<Report> {
        passive::check(self)?;
        refuse()
    }
}

impl Run for Collect {
    fn run(&self, _: Session) -> Result<Report> {
        passive::check(self)?;
        refuse()
    }
}

/// Names the feature.
pub fn refuse<T>() -> Result<T> {
    bail!("{}", report::absent("NetFlow, IPFIX and sFlow", "netflow"))
}
