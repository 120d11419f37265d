//! The arguments of `netdyno collect`.

use super::Output;
use super::declared::Declared;
use clap::Args;

#[derive(Debug, Args)]
pub struct Collect {
    #[command(flatten)]
    pub declared: Declared<spec::Collect>,
}

impl Collect {
    /// The job, and where its result goes.
    pub fn job(mut self) -> (spec::Job, Output) {
        let listen = &mut self.declared.asked.0.listen;
        if listen.is_empty() {
            listen.push("0.0.0.0:2055".to_owned());
        }
        self.declared.job()
    }
}
