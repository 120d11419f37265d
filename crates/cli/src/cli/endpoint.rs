//! The arguments of `netdyno endpoint`.

use super::Output;
use super::declared::Declared;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(
    after_help = "The server is the far end: netdyno endpoint serve there, first; of stamp, any reflector of STAMP or TWAMP-Light."
)]
pub struct Endpoint {
    #[command(subcommand)]
    pub serve: Option<Serve>,
    #[command(flatten)]
    pub declared: Declared<spec::Endpoint>,
}

#[derive(Debug, Subcommand)]
pub enum Serve {
    /// Be the far end of endpoint tests, for several clients at once, until interrupted. Safe to be left running: every client
    /// has limits, and nothing is sent to an address that did not ask over TCP.
    Serve(Box<Declared<spec::EndpointServer>>),
}

impl Endpoint {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        match self.serve {
            Some(Serve::Serve(server)) => served(*server),
            None => self.declared.job(),
        }
    }
}

fn served(mut asked: Declared<spec::EndpointServer>) -> (spec::Job, Output) {
    let server = &mut asked.asked.0;
    if server.listen.is_empty() {
        // Without IPv6 there is no [::] to listen on.
        let v6 = std::path::Path::new("/proc/net/if_inet6").exists();
        server.listen.push(if v6 { "[::]:12866" } else { "0.0.0.0:12866" }.to_owned());
    }
    // Who is not root has nothing to leave.
    if server.user.is_none() && transport::rights::is_root() {
        server.user = Some("nobody".to_owned());
    }
    asked.job()
}
