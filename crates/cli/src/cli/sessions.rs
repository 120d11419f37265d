//! The arguments of `netdyno sessions`.

use super::Output;
use super::declared::Declared;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "The server may be any TCP server of HTTP/1.1, or netdyno sessions serve.")]
pub struct Sessions {
    #[command(subcommand)]
    pub serve: Option<Serve>,
    #[command(flatten)]
    pub declared: Declared<spec::Sessions>,
}

#[derive(Debug, Subcommand)]
pub enum Serve {
    /// Serve such connections without keeping state, until interrupted: any client of HTTP/1.1 gets an answer, and nothing else is
    /// sent.
    Serve(Box<Declared<spec::SessionsServer>>),
}

impl Sessions {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        match self.serve {
            Some(Serve::Serve(server)) => server.job(),
            None => self.declared.job(),
        }
    }
}
