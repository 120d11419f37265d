//! `netdyno plugin`, and the options by which commands that send take a plugin.

use anyhow::{Context as _, Result, bail};
use clap::{ArgGroup, Args, Subcommand, ValueHint};
use scenario::MAX_BYTES;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A plugin's options. Each plugin has its own, whose types it says itself: no table of settings can have them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Traffic")]
pub struct Given {
    #[arg(
        long,
        value_name = "NAME=VALUE",
        requires = "plugin",
        conflicts_with = "what",
        help = "Set an option of the plugin: dst_ip=10.0.0.1",
        long_help = "Set an option of the plugin, in place of what the file says: dst_ip=10.0.0.1; of members NAME.MEMBER=VALUE, of lists NAME=A,B or NAME='[...]' as JSON"
    )]
    pub set: Vec<String>,
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "plugin",
        conflicts_with = "what",
        help = "The plugin's options out of a file, YAML or JSON",
        long_help = "The plugin's options out of this file, YAML or JSON; - is standard input"
    )]
    pub plugin_config: Option<PathBuf>,
}

impl Given {
    /// Asks the plugin that is named, if there is one, what it is, and makes its options of the words.
    ///
    /// # Errors
    /// There is none such, or an option is wrong.
    pub fn ask(&self, named: Option<&mut spec::Plugin>) -> Result<()> {
        let Some(named) = named else { return Ok(()) };
        let plugin = ::plugin::find(&named.name)?;
        let mut options = match &self.plugin_config {
            Some(path) => read(path)?,
            None => Map::new(),
        };
        plugin.set(&mut options, &self.set)?;
        plugin.check(&options)?;
        named.version = Some(plugin.description.version.clone());
        named.sha256 = plugin.origin.sha256().map(str::to_owned);
        named.options = options;
        Ok(())
    }
}

/// Options out of a file.
fn read(path: &Path) -> Result<Map<String, Value>> {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let (mut text, most) = (String::new(), MAX_BYTES as u64 + 1);
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(most).read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text)),
    };
    read.with_context(|| format!("--plugin-config {name}"))?;
    match scenario::value(&text, &name)? {
        Value::Object(options) => Ok(options),
        Value::Null => Ok(Map::new()),
        _ => bail!("--plugin-config {name}: these are no options: write NAME: VALUE, one a line"),
    }
}

/// `netdyno plugin`.
#[derive(Debug, Args)]
pub struct Plugin {
    #[command(subcommand)]
    pub command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// List the plugins that can be named: those built in, the user's (~/.local/share/netdyno/plugins) and the system's.
    List {
        /// Print them as a JSON array.
        #[arg(long)]
        json: bool,
        /// Print the names alone, for completion scripts.
        #[arg(long, hide = true, conflicts_with = "json")]
        words: bool,
    },
    /// Show what a plugin sends, every option with its type, default and meaning, and examples to paste.
    Info {
        /// Its name, or the path of a module.
        #[arg(value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
        name: String,
        /// Print it as one JSON object.
        #[arg(long)]
        json: bool,
        /// Print what --set can begin with, for completion scripts.
        #[arg(long, hide = true, conflicts_with = "json")]
        words: bool,
    },
    /// Begin a plugin of one's own: a folder with a template that builds.
    #[command(group = ArgGroup::new("language").required(true))]
    New {
        /// The folder, which is made; the plugin is called as it is.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// In Rust.
        #[arg(long, group = "language")]
        rust: bool,
        /// In Go.
        #[arg(long, group = "language")]
        go: bool,
        /// In C.
        #[arg(long, group = "language")]
        c: bool,
    },
    /// Check a module, and make frames of each of its examples and say what they are.
    Test {
        /// The module.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        path: String,
        /// Frames of each example.
        #[arg(long, value_name = "FRAMES", default_value_t = 1_000)]
        count: u64,
    },
    /// Check a module: interface, description, schema, whether its examples compile, how long that takes.
    Check {
        /// The module.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        path: String,
    },
}
