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
    /// Be a server of such connections that keeps no state, until interrupted: any client of HTTP/1.1 is answered, and nothing is
    /// sent that is no answer.
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
