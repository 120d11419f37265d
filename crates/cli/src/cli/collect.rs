//! The arguments of `netdyno collect`.

use super::Output;
use clap::{Args, ValueHint};
use spec::Written;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Collect {
    /// Where messages come to, of any of the protocols; may be given more than once. Default: 0.0.0.0:2055 (IPv4).
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<String>,
    /// Write the records to this file: .csv, .jsonl (a JSON object a line) or .pb (goflow2's messages); may be given more than once. It appears
    /// when all is written.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Vec<PathBuf>,
    /// Receive by N threads, among which the kernel shares out exporters. Default: 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// Collect for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End when this many records have come.
    #[arg(long, value_name = "RECORDS")]
    pub count: Option<Written<u64>>,
    #[command(flatten)]
    pub output: Output,
}

impl Collect {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let listen = if self.listen.is_empty() { vec!["0.0.0.0:2055".to_owned()] } else { self.listen };
        let job = spec::Collect {
            listen,
            write: self.write,
            threads: self.threads,
            duration: self.duration,
            count: self.count,
        };
        (job.into(), self.output)
    }
}
