//! Without flow records there are no trials of a probe.

use super::Offer;
use super::ports::Ports;
use super::rig::Rig;
use crate::kinds::no_netflow::refuse;
use crate::run;
use anyhow::Result;
use report::Report;
use report::search::FlowTrial;
use spec::{Bench, Flows};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// There is none.
#[derive(Debug)]
pub struct Probed(Infallible);

impl Probed {
    /// Says that there is none.
    pub fn new(_: &Bench, _: &Flows, _: &Ports, _: &[usize]) -> Result<Probed> {
        refuse()
    }

    pub fn expression(&self) -> String {
        match self.0 {}
    }

    pub fn take_found(&self) -> Option<FlowTrial> {
        match self.0 {}
    }
}

impl Rig {
    pub(super) fn send_to_probe(
        &self,
        probed: &Probed,
        _: &Offer,
        _: &Arc<AtomicBool>,
        _: Option<run::Onlooker>,
    ) -> Result<(Report, Option<u64>)> {
        match probed.0 {}
    }

    /// There is nothing to warn of.
    pub(super) fn warn_of_records(&mut self, _: &FlowTrial) {}
}
