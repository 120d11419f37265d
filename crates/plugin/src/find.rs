//! Plugins by name and by path.

use crate::abi;
use crate::description;
use crate::error::PluginError;
#[cfg(feature = "wasm")]
use crate::guest::{Compiled, Limits};
use crate::judge;
use crate::options::Schema;
use engine::source::Row;
use plugin_sdk::{Description, Fault, Native, World};
use scenario::{Context, Scenario, ScenarioError, Sign, parse};
use serde_json::{Map, Value};
#[cfg(feature = "wasm")]
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};
use traffic::expr::did_you_mean;
use traffic::{Program, Rate};

/// Modules looked at in a folder.
const MOST_IN_A_FOLDER: usize = 1_000;

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A part of netdyno.
    BuiltIn,
    /// A module.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its SHA-256, as 64 hexadecimal digits.
        sha256: String,
    },
}

impl Origin {
    /// The hash of a module.
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Origin::BuiltIn => None,
            Origin::File { sha256, .. } => Some(sha256),
        }
    }

    /// Where, in words.
    pub fn place(&self) -> String {
        match self {
            Origin::BuiltIn => "built in".to_owned(),
            Origin::File { path, .. } => path.display().to_string(),
        }
    }
}

/// A plugin that can be used.
#[derive(Debug)]
pub struct Plugin {
    /// What it says of itself.
    pub description: Description,
    /// Where it is from.
    pub origin: Origin,
    /// Its options.
    pub schema: Schema,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Native(Native),
    #[cfg(feature = "wasm")]
    Module(Compiled),
}

/// What [`list`] found.
#[derive(Debug)]
pub enum Listed {
    /// A plugin.
    Plugin(Box<Plugin>),
    /// A module that is none.
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: PluginError,
    },
}

/// Where modules are looked for: the user's folder, then the system's.
pub fn folders() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
    let system = ["/usr/local/lib/netdyno/plugins", "/usr/lib/netdyno/plugins"].map(PathBuf::from);
    own.map(|data| data.join("netdyno/plugins")).into_iter().chain(system).collect()
}

fn built_in() -> impl Iterator<Item = Plugin> {
    plugins::ALL.iter().filter_map(|native| native_plugin(*native).ok())
}

fn native_plugin(native: Native) -> Result<Plugin, PluginError> {
    let description = (native.describe)();
    let invalid = |what| PluginError::Invalid {
        name: description.name.clone(),
        call: "its description",
        what,
        log: String::new(),
    };
    description::check(&description).map_err(invalid)?;
    let schema = Schema::new(&description.options).map_err(invalid)?;
    Ok(Plugin { description, origin: Origin::BuiltIn, schema, kind: Kind::Native(native) })
}

/// Finds a plugin: by the path of a module (with `/` in it, or ending in `.wasm`), else by its name among those built in, in
/// the user's folder and in the system's.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn find(name: &str) -> Result<Plugin, PluginError> {
    if name.contains('/') || name.ends_with(".wasm") {
        return load(Path::new(name));
    }
    if let Some(native) = plugins::ALL.iter().find(|native| (native.describe)().name == name) {
        return native_plugin(*native);
    }
    if description::is_name(name) {
        for folder in folders() {
            let path = folder.join(format!("{name}.wasm"));
            if path.exists() {
                let plugin = load(&path)?;
                return match plugin.description.name == name {
                    true => Ok(plugin),
                    false => Err(misnamed(&path, &plugin.description.name)),
                };
            }
        }
    }
    let names = names();
    let hint = did_you_mean(name, names.iter().map(String::as_str));
    Err(PluginError::Unknown { name: name.to_owned(), hint })
}

/// Why a scenario cannot be sent, whatever the rate and the interface.
fn unfit(scenario: &Scenario) -> Result<(), ScenarioError> {
    let context = Context {
        seed: 1,
        sign: Sign::No,
        rate: scenario.wants_rate().then_some(Rate::TopSpeed),
        link_bits_per_second: Some(10_000_000_000),
        ..Context::default()
    };
    scenario.compile(&context).map(drop)
}

fn misnamed(path: &Path, own: &str) -> PluginError {
    PluginError::Unreadable {
        path: path.to_owned(),
        why: format!("it calls itself `{own}`: rename the file {own}.wasm"),
    }
}

/// The names that there are, without looking into modules.
fn names() -> Vec<String> {
    let mut names: Vec<String> = plugins::ALL.iter().map(|native| (native.describe)().name).collect();
    names.extend(modules().iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())));
    names
}

/// The modules in all folders, by name within each.
fn modules() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in folders() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let paths = entries.take(MOST_IN_A_FOLDER).filter_map(|entry| Some(entry.ok()?.path()));
        let mut own: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|e| e == "wasm")).collect();
        own.sort();
        all.extend(own);
    }
    all
}

/// All plugins that can be named, those built in first, and the modules in the folders that are none.
pub fn list() -> Vec<Listed> {
    let mut all: Vec<Listed> = built_in().map(|plugin| Listed::Plugin(Box::new(plugin))).collect();
    let mut known: Vec<String> = plugins::ALL.iter().map(|native| (native.describe)().name).collect();
    for path in modules() {
        let found = load(&path);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let why = match found {
            Ok(plugin) if plugin.description.name != stem => misnamed(&path, &plugin.description.name),
            Ok(_) if known.contains(&stem) => PluginError::Unreadable {
                path: path.clone(),
                why: format!(
                    "another plugin is called `{stem}`, too, and comes first: use this one by its path"
                ),
            },
            Ok(plugin) => {
                known.push(stem);
                all.push(Listed::Plugin(Box::new(plugin)));
                continue;
            }
            Err(why) => why,
        };
        all.push(Listed::Broken { path, why });
    }
    all
}

/// Loads a module.
///
/// # Errors
/// It cannot be read, or is no plugin.
pub fn load(path: &Path) -> Result<Plugin, PluginError> {
    let unreadable = |why: String| PluginError::Unreadable { path: path.to_owned(), why };
    let read = || -> std::io::Result<(Vec<u8>, u64)> {
        let meta = std::fs::metadata(path)?;
        if !meta.is_file() {
            return Err(std::io::Error::other("it is no file"));
        }
        let mut bytes = Vec::new();
        if meta.len() <= abi::MOST_MODULE {
            std::fs::File::open(path)?.take(abi::MOST_MODULE + 1).read_to_end(&mut bytes)?;
        }
        let length = meta.len().max(bytes.len() as u64);
        Ok((bytes, length))
    };
    let (bytes, length) = read().map_err(|why| unreadable(why.to_string()))?;
    let name = path.display().to_string();
    if length > abi::MOST_MODULE {
        return Err(PluginError::TooLarge { name, bytes: length, most: abi::MOST_MODULE });
    }
    of_bytes(&name, path, &bytes)
}

#[cfg(not(feature = "wasm"))]
fn of_bytes(_: &str, path: &Path, _: &[u8]) -> Result<Plugin, PluginError> {
    Err(PluginError::NoWasm { path: path.to_owned() })
}

#[cfg(feature = "wasm")]
fn of_bytes(name: &str, path: &Path, bytes: &[u8]) -> Result<Plugin, PluginError> {
    of_module(name, path, bytes, Limits::default())
}

/// A module that was read from `path`.
#[cfg(feature = "wasm")]
pub(crate) fn of_module(
    name: &str,
    path: &Path,
    bytes: &[u8],
    limits: Limits,
) -> Result<Plugin, PluginError> {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let compiled = Compiled::new(name, bytes, &digest, limits)?;
    let description = compiled.guest(None)?.describe()?;
    let compiled = compiled.named(&description.name);
    compiled.check_world(description.world)?;
    let invalid = |what| PluginError::Invalid {
        name: description.name.clone(),
        call: "netdyno_describe",
        what,
        log: String::new(),
    };
    let schema = Schema::new(&description.options).map_err(invalid)?;
    let origin = Origin::File { path: path.to_owned(), sha256: wire::hex::encode(&digest) };
    Ok(Plugin { description, origin, schema, kind: Kind::Module(compiled) })
}

impl Plugin {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Does it yield frames one by one?
    pub fn yields_frames(&self) -> bool {
        self.description.world == World::Frames
    }

    /// Says what is wrong with an option.
    pub fn fault(&self, fault: Fault) -> PluginError {
        PluginError::Options { name: self.name().to_owned(), fault }
    }

    /// Sets options by words, `name=value`, typed by the schema.
    ///
    /// # Errors
    /// Which option is not there or cannot be that.
    pub fn set(&self, options: &mut Map<String, Value>, words: &[String]) -> Result<(), PluginError> {
        self.schema.set(options, words).map_err(|fault| self.fault(fault))
    }

    /// Checks options against the schema.
    ///
    /// # Errors
    /// Which option is wrong.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), PluginError> {
        self.schema.check(options).map_err(|fault| self.fault(fault))
    }

    /// The scenario that these options make.
    ///
    /// # Errors
    /// An option is wrong, or what the plugin made is.
    pub fn scenario(&self, options: &Map<String, Value>, seed: Option<u64>) -> Result<Scenario, PluginError> {
        let text = self.scenario_text(options, seed)?;
        let found = parse(&text, self.name());
        match found.as_ref().map_or_else(|why| Some(why.clone()), |scenario| unfit(scenario).err()) {
            None => {}
            // Whoever set an option never saw the scenario that it stands in.
            Some(why) => {
                if let Some(option) = self.to_blame(options, seed) {
                    return Err(self.fault(Fault::at(format!("/{option}"), why.message)));
                }
            }
        }
        found.map_err(|why| PluginError::Scenario { name: self.name().to_owned(), why: Box::new(why) })
    }

    /// The option without which the scenario is one that can be sent.
    fn to_blame(&self, options: &Map<String, Value>, seed: Option<u64>) -> Option<String> {
        options.keys().find_map(|option| {
            let mut others = options.clone();
            others.remove(option);
            let text = self.scenario_text(&others, seed).ok()?;
            let scenario = parse(&text, self.name()).ok()?;
            unfit(&scenario).is_ok().then(|| option.clone())
        })
    }

    /// The same as text.
    ///
    /// # Errors
    /// As of [`Plugin::scenario`].
    pub fn scenario_text(
        &self,
        options: &Map<String, Value>,
        seed: Option<u64>,
    ) -> Result<String, PluginError> {
        const CALL: &str = "netdyno_compile";
        self.check(options)?;
        if self.yields_frames() {
            let what = "what is asked for needs a scenario";
            return Err(PluginError::NotHere { name: self.name().to_owned(), what });
        }
        let input = abi::input(options, seed);
        let answer = match &self.kind {
            Kind::Native(native) => {
                let scenario = (native.compile)(&input).map_err(|fault| self.fault(fault))?;
                let value = abi::json(scenario.as_bytes());
                value.map(|scenario| serde_json::json!({ "scenario": scenario }))
            }
            #[cfg(feature = "wasm")]
            Kind::Module(compiled) => Ok(compiled.guest(seed)?.ask(CALL, &input)?),
        };
        let invalid = |what| PluginError::Invalid {
            name: self.name().to_owned(),
            call: CALL,
            what,
            log: String::new(),
        };
        answer.and_then(abi::compiled).map_err(invalid)?.map_err(|fault| self.fault(fault))
    }

    /// The frames that these options make, of a plugin that yields frames.
    ///
    /// # Errors
    /// An option is wrong, or what the plugin announces is.
    pub fn open(&self, options: &Map<String, Value>, seed: Option<u64>) -> Result<Row, PluginError> {
        self.check(options)?;
        #[cfg(not(feature = "wasm"))]
        let _ = seed;
        match &self.kind {
            #[cfg(feature = "wasm")]
            Kind::Module(compiled) if self.yields_frames() => {
                let (input, restricted) = (abi::input(options, seed), self.description.restricted);
                let frames = crate::frames::GuestFrames::open(compiled, input, seed, restricted)?;
                Ok(Row::new(Box::new(frames)))
            }
            _ => {
                let fault =
                    Fault::new("it makes a scenario and yields no frames: this is a defect of netdyno");
                Err(self.fault(fault))
            }
        }
    }

    /// Judges a program that was made of its scenario: a restricted plugin may not send everywhere.
    ///
    /// # Errors
    /// Where it would send.
    pub fn judge(&self, program: &Program) -> Result<(), PluginError> {
        if !self.description.restricted {
            return Ok(());
        }
        judge::program(program).map_err(|why| PluginError::Destination { name: self.name().to_owned(), why })
    }
}
