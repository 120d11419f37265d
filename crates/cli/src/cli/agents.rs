//! The arguments of `netdyno agents`, and of options that name agents.

use super::nats::AtServer;
use clap::{Args, Subcommand, ValueHint};
use fleet::Reach;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::parse_duration;

#[derive(Debug, Args)]
pub struct Agents {
    #[command(subcommand)]
    pub command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Look at agents before anything is sent: their versions, interfaces and drivers, what `netdyno doctor` says there, and how far their
    /// clocks are ahead of this host's, each with its error.
    Check(Check),
    /// Connect standard input and output with an agent at a NATS server. That is the command of an agent that dials out (`netdyno agent
    /// --nats`): --agent lab1='netdyno agents reach lab1 --nats tls://server:4222 --creds me.creds'.
    Reach(ReachAgent),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 the session ended regularly, 2 there was none, or it was lost.")]
pub struct ReachAgent {
    /// The agent's name at the server (--id).
    #[arg(value_name = "NAME")]
    pub id: String,
    /// The NATS server: tls://server:4222. Several of a cluster have commas between them.
    #[arg(long, value_name = "URL", value_delimiter = ',', required = true, help_heading = "NATS")]
    pub nats: Vec<String>,
    /// Wait this long for the server, and for the agent's answer.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub timeout: Duration,
    #[command(flatten)]
    pub at_server: AtServer,
}

/// Agents, and how they are reached.
#[derive(Debug, Clone, Default, Args)]
pub struct Reached {
    #[arg(
        long = "agent",
        value_name = "NAME=COMMAND",
        help = "An agent, and the command that reaches it: lab1='ssh lab1 netdyno agent --stdio'",
        long_help = "An agent, and the shell's command whose standard input and output reach it: lab1='ssh lab1 netdyno agent --stdio --allow-interface eth1'. The command may be any that starts `netdyno agent --stdio` (docs/agent.md): by ssh, kubectl exec -i, docker exec -i, ip netns exec, sudo -n. May be given more than once; one that --inventory lists under the same name is replaced"
    )]
    pub agent: Vec<Reach>,
    /// Take agents from this file, too (docs/many-machines.md).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub inventory: Option<PathBuf>,
    /// Copy this netdyno to each agent's host, where it is not there yet (its hash is compared), and run it there: the command's `netdyno`
    /// is replaced by the copy, in ~/.cache/netdyno.
    #[arg(long)]
    pub agents_copy: bool,
}

/// Agents that carry out a job: its interfaces are theirs.
#[derive(Debug, Clone, Default, Args)]
pub struct Elsewhere {
    #[arg(
        long = "agent",
        value_name = "NAME=COMMAND",
        hide_short_help = true,
        help_heading = "Agents",
        long_help = "An agent on another machine, and the shell's command that reaches it: lab1='ssh lab1 netdyno agent --stdio --allow-interface eth1'. The job's interfaces are then at agents, eth1@lab1, and what leaves at one may be measured at another (docs/many-machines.md). May be given more than once"
    )]
    pub agent: Vec<Reach>,
    /// Take agents from this file, too (docs/many-machines.md).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Agents")]
    pub inventory: Option<PathBuf>,
    /// Copy this netdyno to each agent's host, where it is not there yet (its hash is compared), and run it there: the command's `netdyno`
    /// is replaced by the copy, in ~/.cache/netdyno.
    #[arg(long, hide_short_help = true, help_heading = "Agents")]
    pub agents_copy: bool,
    /// Begin the job at this agent: of jobs without interfaces, such as an endpoint test, whose server may be at another agent
    /// (192.0.2.1@lab2).
    #[arg(long, value_name = "AGENT", hide_short_help = true, help_heading = "Agents")]
    pub at: Option<String>,
    /// Wait this long for each answer of an agent, and for its command to begin; default: 10s.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true, help_heading = "Agents")]
    pub agents_timeout: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 all agents are ready, 1 some are, 2 none is.")]
pub struct Check {
    /// Look at these agents alone.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub reached: Reached,
    /// Look at agents of the inventory with this tag alone. May be given more than once.
    #[arg(long, value_name = "TAG", requires = "inventory")]
    pub tag: Vec<String>,
    /// Leave out what `netdyno doctor` finds, which takes each agent a tenth of a second of CPU time.
    #[arg(long)]
    pub quick: bool,
    /// Wait this long for each answer, and for the command to begin.
    #[arg(long, alias = "agents-timeout", value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub timeout: Duration,
    /// Print JSON (docs/agents.schema.json).
    #[arg(long)]
    pub json: bool,
    /// Print what is in order, too.
    #[arg(long, short)]
    pub verbose: bool,
}
