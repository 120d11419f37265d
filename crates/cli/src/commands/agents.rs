//! `netdyno agents`: agents on other machines, and which ones an option or an inventory names.

use crate::cli::agents::{AgentsCommand, Check, Elsewhere, Reached};
use crate::client::Signals;
use crate::output::print;
use crate::wording;
use anyhow::{Context, Result, bail};
use fleet::{Asked, Patience, Reach};
use report::units::printable;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The least time for an answer.
const LEAST: Duration = Duration::from_millis(100);
/// Bytes of an inventory; a scenario's reader takes no more.
const MOST_BYTES: u64 = 1 << 20;

pub fn run(command: AgentsCommand) -> Result<u8> {
    match command {
        AgentsCommand::Check(args) => check(args),
        AgentsCommand::Reach(args) => super::nats::reach(args),
    }
}

fn check(args: Check) -> Result<u8> {
    if args.timeout < LEAST {
        bail!("--timeout: 100 ms are the least");
    }
    let mut agents = reached(args.reached)?;
    if !args.tag.is_empty() {
        agents.retain(|agent| agent.tags.iter().any(|tag| args.tag.contains(tag)));
        if agents.is_empty() {
            bail!("--tag: no agent of the inventory has the tag {}", printable(&args.tag.join(" or ")));
        }
    }
    for name in &args.names {
        if !agents.iter().any(|agent| agent.name.as_str() == name) {
            let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
            bail!("there is no agent `{}`; there are {}", printable(name), names.join(", "));
        }
    }
    if !args.names.is_empty() {
        agents.retain(|agent| args.names.iter().any(|name| name == agent.name.as_str()));
    }
    let signals = Signals::at_once()?;
    let patience = Patience { answer: args.timeout, stop: Arc::clone(&signals.stop) };
    let checked = fleet::check(&agents, !args.quick, &patience);
    if args.json {
        print(&wording::said(&(serde_json::to_string_pretty(&checked)? + "\n")))?;
    } else {
        print(&wording::said(&fleet::render(&checked, args.verbose)))?;
    }
    Ok(checked.exit_status())
}

/// How long an agent's answer is waited for.
const ANSWER: Duration = Duration::from_secs(10);

/// Agents that carry out a job, and how long each answer of theirs is waited for; `None`: none is named.
pub fn elsewhere(asked: &Elsewhere) -> Result<Option<(Vec<Reach>, Asked)>> {
    let Elsewhere { agent, inventory, agents_copy, at, agents_timeout } = asked.clone();
    let answer = agents_timeout.unwrap_or(ANSWER);
    if agent.is_empty() && inventory.is_none() {
        if let Some(option) = agents_timeout
            .map(|_| "--agents-timeout")
            .or(agents_copy.then_some("--agents-copy"))
            .or(at.as_ref().map(|_| "--at"))
        {
            bail!("{option}: no agent is named: give --agent NAME='COMMAND' or --inventory FILE, too");
        }
        return Ok(None);
    }
    if answer < LEAST {
        bail!("--agents-timeout: 100 ms are the least");
    }
    Ok(Some((reached(Reached { agent, inventory, agents_copy })?, Asked { answer, at })))
}

/// The agents that are named, in the order of the inventory and then of the options.
pub fn reached(asked: Reached) -> Result<Vec<Reach>> {
    let mut agents = asked.inventory.as_deref().map(inventory).transpose()?.unwrap_or_default();
    let mut typed = BTreeSet::new();
    for agent in asked.agent {
        if !typed.insert(agent.name.clone()) {
            bail!("--agent: {} is given twice: give each agent a name of its own", agent.name);
        }
        // What is typed goes before what stands in a file, which knows more of it.
        match agents.iter_mut().find(|listed| listed.name == agent.name) {
            Some(listed) => listed.command = agent.command,
            None => agents.push(agent),
        }
    }
    if asked.agents_copy {
        agents.iter_mut().for_each(|agent| agent.copies = true);
    }
    if agents.is_empty() {
        bail!(
            "no agent is named: give --agent NAME='COMMAND', such as --agent lab1='ssh lab1 netdyno agent --stdio', or --inventory FILE"
        );
    }
    if agents.len() > fleet::MOST {
        bail!("{} agents: {} are possible", agents.len(), fleet::MOST);
    }
    Ok(agents)
}

fn inventory(path: &Path) -> Result<Vec<Reach>> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .with_context(|| format!("--inventory: reading {}", printable(&name)))?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!(
            "--inventory: {} is no inventory: those are text, YAML or JSON (docs/many-machines.md)",
            printable(&name)
        );
    };
    fleet::inventory(&text, &name).map_err(|bad| match bad {
        fleet::BadInventory::Yaml(bad) => anyhow::anyhow!(bad),
        bad => anyhow::anyhow!("--inventory: {bad}"),
    })
}
