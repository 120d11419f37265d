//! Through what frames are sent: what a job asks for, as far as it is allowed.

use spec::{Consent, Cores, Engine, Stamps};
use std::path::PathBuf;

/// Through what, and by which interfaces although they are in use.
#[derive(Debug, Clone, Default)]
pub struct Through {
    /// The engine.
    pub engine: Engine,
    /// What `auto` chooses by, where it was measured.
    pub calibration: Option<PathBuf>,
    /// The CPUs to send on.
    pub cores: Option<Cores>,
    /// Who is to stamp frames as they leave.
    pub tx_timestamps: Option<Stamps>,
    /// Interfaces that may be used although they carry the default route or a login.
    pub yes_disrupt: Vec<String>,
}

impl Through {
    /// Queues that an interface of a lab should have: one for each worker.
    pub fn queues(&self) -> u32 {
        match &self.cores {
            Some(Cores::Number(n)) => u32::try_from(*n).unwrap_or(1).clamp(1, 64),
            Some(Cores::List(list)) => u32::try_from(list.len()).unwrap_or(1).clamp(1, 64),
            None => 1,
        }
    }

    /// What a job asks for, as far as it is allowed.
    pub fn of(asked: spec::Through, consent: &Consent) -> Through {
        let spec::Through { engine, calibration, cores, tx_timestamps } = asked;
        let cores = cores.map(spec::Written::into_value);
        Through { engine, calibration, cores, tx_timestamps, yes_disrupt: consent.yes_disrupt.clone() }
    }
}
