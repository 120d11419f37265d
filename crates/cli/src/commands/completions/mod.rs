//! `netdyno completions`: clap's script for the shell, and behind it what only the program knows: the names of plugins and of
//! their options, which it is asked for with each Tab (`plugin list --words`, `plugin info NAME --words`). Names of interfaces are the
//! kernel's.

use crate::cli::help;
use crate::output::print;
use anyhow::{Result, bail};
use clap_complete::Shell;

/// Prints the script for a shell.
pub fn run(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "netdyno", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    print(&match shell {
        Shell::Bash => script + include_str!("plugins.bash"),
        Shell::Fish => script + include_str!("plugins.fish"),
        Shell::Zsh => zsh(&script)?,
        _ => script,
    })?;
    Ok(0)
}

/// zsh's options are completed by what stands behind their last colon.
fn zsh(script: &str) -> Result<String> {
    // What the script ends with calls the function of the verbs: ours have to stand before.
    const CALL: &str = "\nif [ \"$funcstack[1]\" = \"_netdyno\" ]";
    let Some((functions, call)) = script.split_once(CALL) else {
        bail!("the completion script for zsh has another form than expected");
    };
    let lines = functions.lines().map(|line| match line {
        plugin if plugin.contains("--plugin=[") => {
            plugin.replace(":NAME|FILE:_files'", ":NAME|FILE:_netdyno_plugins'")
        }
        on if on.contains(":IFACE:_default'") => {
            on.replace(":IFACE:_default'", ":IFACE:_netdyno_interfaces'")
        }
        set if set.contains("--set=[") => {
            set.replace(":NAME=VALUE:_default'", ":NAME=VALUE:_netdyno_settings'")
        }
        line => line.to_owned(),
    });
    let whole: Vec<String> = lines.collect();
    Ok(whole.join("\n") + "\n" + include_str!("plugins.zsh") + CALL + call)
}
