//! `netdyno plugin`: which there are, what they take, and help for who writes one.

use crate::cli::plugin::PluginCommand;
use crate::output::{note, print};
use anyhow::{Context as _, Result, bail};
use plugin::options::Told;
use plugin::{Listed, Plugin, World, templates};
use report::units::{self, printable};
use scenario::{Context, Sign};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;
use traffic::{Executor, Program, Rate, Slab};
use wire::LinkType;

/// `netdyno plugin ...`.
pub fn run(command: PluginCommand) -> Result<u8> {
    match command {
        PluginCommand::List { words: true, .. } => names(),
        PluginCommand::List { json, .. } => list(json),
        PluginCommand::Info { name, words: true, .. } => settings(&name),
        PluginCommand::Info { name, json, .. } => info(&name, json),
        PluginCommand::New { folder, rust, go, .. } => {
            let template = if rust {
                &templates::RUST
            } else if go {
                &templates::GO
            } else {
                &templates::C
            };
            new(&folder, template)
        }
        PluginCommand::Test { path, count } => test(&path, Some(count)),
        PluginCommand::Check { path } => test(&path, None),
    }
}

fn world(plugin: &Plugin) -> &'static str {
    match plugin.description.world {
        World::Compile => "compile",
        World::Frames => "frames",
    }
}

/// The names of all that can be taken, a line each. What is broken is passed over: nobody reads a word of it while completing.
fn names() -> Result<u8> {
    let names = plugin::list().into_iter().filter_map(|found| match found {
        Listed::Plugin(plugin) => Some(plugin.name().to_owned() + "\n"),
        Listed::Broken { .. } => None,
    });
    print(&names.collect::<String>())?;
    Ok(0)
}

/// `NAME=` of each option, and `NAME=VALUE` where its schema names the values.
fn settings(name: &str) -> Result<u8> {
    let plugin = plugin::find(name)?;
    let mut text = String::new();
    for Told { name, .. } in plugin.schema.told() {
        text += &format!("{name}=\n");
        // Members of members stand under `properties` of these.
        let pointer = format!("/properties/{}", name.replace('.', "/properties/"));
        let Some(schema) = plugin.description.options.pointer(&pointer) else { continue };
        let listed = schema.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for value in listed {
            text += &format!("{name}={}\n", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        if schema.get("type").and_then(Value::as_str) == Some("boolean") {
            text += &format!("{name}=true\n{name}=false\n");
        }
    }
    print(&text.lines().map(|line| printable(line) + "\n").collect::<String>())?;
    Ok(0)
}

fn list(json: bool) -> Result<u8> {
    let mut listed = Vec::new();
    let mut broken = Vec::new();
    for found in plugin::list() {
        match found {
            Listed::Plugin(plugin) => listed.push(plugin),
            Listed::Broken { why, .. } => broken.push(why),
        }
    }
    if json {
        let row = |plugin: &Plugin| {
            json!({
                "name": plugin.name(),
                "version": plugin.description.version,
                "about": plugin.description.about,
                "world": world(plugin),
                "restricted": plugin.description.restricted,
                "where": plugin.origin.place(),
                "sha256": plugin.origin.sha256(),
            })
        };
        let rows: Vec<Value> = listed.iter().map(|plugin| row(plugin)).collect();
        print(&(serde_json::to_string_pretty(&rows)? + "\n"))?;
    } else {
        let width = listed.iter().map(|plugin| plugin.name().len()).max().unwrap_or(0);
        let mut text = String::new();
        for plugin in &listed {
            let about = plugin.description.about.lines().next().unwrap_or_default();
            let place = match plugin.origin.sha256() {
                Some(_) => format!(" ({})", plugin.origin.place()),
                None => String::new(),
            };
            text += &format!("{:width$}  {}{}\n", plugin.name(), printable(about), printable(&place));
        }
        if listed.is_empty() {
            text += "there are none\n";
        }
        print(&text)?;
    }
    for why in &broken {
        note(&printable(&why.to_string()));
    }
    Ok(0)
}

/// A command line that sets these options.
fn pasted(plugin: &str, set: &Map<String, Value>) -> String {
    let mut words =
        vec!["netdyno".to_owned(), "craft".to_owned(), "--plugin".to_owned(), units::shell_word(plugin)];
    for (name, value) in set {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(items) if items.iter().all(|item| plain(item).is_some()) => {
                items.iter().filter_map(plain).collect::<Vec<_>>().join(",")
            }
            value => value.to_string(),
        };
        words.extend(["--set".to_owned(), units::shell_word(&format!("{name}={value}"))]);
    }
    words.extend(["--count", "10", "--show"].map(str::to_owned));
    words.join(" ")
}

/// An item of a list, if it can be one of those with commas between.
fn plain(item: &Value) -> Option<String> {
    match item {
        Value::String(text) if !text.contains(',') && !text.starts_with('[') => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(item.to_string()),
        _ => None,
    }
}

fn info(name: &str, json: bool) -> Result<u8> {
    let plugin = plugin::find(name)?;
    let description = &plugin.description;
    let told = plugin.schema.told();
    // As it was found: `mine.wasm` is a path, and `mine` would be looked for in the folders.
    let called = name;
    let example = |example: &plugin::Example| json!({ "about": example.about, "set": example.set, "command": pasted(called, &example.set) });
    if json {
        let whole = json!({
            "name": plugin.name(),
            "version": description.version,
            "about": description.about,
            "world": world(&plugin),
            "restricted": description.restricted,
            "where": plugin.origin.place(),
            "sha256": plugin.origin.sha256(),
            "options": told,
            "schema": description.options,
            "examples": description.example.iter().map(example).collect::<Vec<_>>(),
        });
        print(&(serde_json::to_string_pretty(&whole)? + "\n"))?;
        return Ok(0);
    }
    let mut text = format!("{} {}: {}\n", plugin.name(), description.version, description.about);
    text += &format!("{}, world {}", plugin.origin.place(), world(&plugin));
    text += &plugin.origin.sha256().map_or_else(String::new, |sha256| format!(", SHA-256 {sha256}"));
    if description.restricted {
        text += "\nsends to private and benchmarking addresses only";
    }
    text += "\n\nOptions (--set NAME=VALUE):\n";
    for Told { name, kind, default, required, about } in &told {
        let default = match default {
            Some(Value::String(default)) if !default.is_empty() => format!(", default {default}"),
            Some(default) => format!(", default {default}"),
            None if *required => ", required".to_owned(),
            None => String::new(),
        };
        text += &format!("  {name}: {kind}{default}\n");
        if !about.is_empty() {
            text += &format!("      {about}\n");
        }
    }
    if told.is_empty() {
        text += "  none\n";
    }
    for example in &description.example {
        text += &format!("\n{}:\n  {}\n", example.about, pasted(called, &example.set));
    }
    print(&text.lines().map(|line| printable(line) + "\n").collect::<String>())?;
    Ok(0)
}

/// Checks a module, and with `count` makes so many frames of each example.
fn test(path: &str, count: Option<u64>) -> Result<u8> {
    let begun = Instant::now();
    let plugin = plugin::find(path)?;
    let loaded = begun.elapsed();
    let mut text = format!(
        "{} {}, world {}: loaded in {}\n",
        plugin.name(),
        plugin.description.version,
        world(&plugin),
        units::time(loaded.as_nanos() as u64)
    );
    if let Ok(meta) = std::fs::metadata(path) {
        text += &format!("module of {}\n", units::bytes(meta.len()));
    }
    text += &format!("{} options, schema sound\n", plugin.schema.told().len());
    let none = [plugin::Example { about: "without options".to_owned(), set: Map::new() }];
    let examples = match &plugin.description.example[..] {
        [] => &none[..],
        examples => examples,
    };
    for (number, example) in examples.iter().enumerate() {
        let told = one(&plugin, &example.set, count)
            .with_context(|| format!("example {} ({})", number + 1, printable(&example.about)))?;
        text += &format!("example {}, {}: {told}\n", number + 1, printable(&example.about));
    }
    if count.is_some() {
        text += "the same options make the same, twice\n";
    }
    print(&text)?;
    Ok(0)
}

/// What an example makes. Made twice, and compared.
fn one(plugin: &Plugin, set: &Map<String, Value>, count: Option<u64>) -> Result<String> {
    const SEED: u64 = 1;
    let begun = Instant::now();
    if plugin.yields_frames() {
        let most = count.unwrap_or(1);
        let mut seen = [Seen::default(), Seen::default()];
        for seen in &mut seen {
            plugin::each_frame(&mut plugin.open(set, Some(SEED))?, most, |frame| seen.frame(frame))?;
        }
        let [seen, again] = seen;
        if seen.frames != again.frames {
            bail!(
                "opened twice with the same options it makes other frames: they may follow from nothing else"
            );
        }
        return Ok(format!("{} in {}", seen.told(), units::time(begun.elapsed().as_nanos() as u64)));
    }
    let text = plugin.scenario_text(set, Some(SEED))?;
    if plugin.scenario_text(set, Some(SEED))? != text {
        bail!(
            "compiled twice with the same options it makes another scenario: it may follow from nothing else"
        );
    }
    let took = begun.elapsed();
    let scenario = plugin.scenario(set, Some(SEED))?;
    let rate = scenario.wants_rate().then_some(Rate::TopSpeed);
    let context = Context {
        seed: SEED,
        sign: Sign::No,
        rate,
        link_bits_per_second: Some(10_000_000_000),
        ..Context::default()
    };
    let compiled = scenario.compile(&context)?;
    plugin.judge(&compiled.program)?;
    let program = compiled.program;
    let what = format!(
        "{}, scenario of {} in {}",
        units::counted(program.streams.len() as u64, "stream"),
        units::bytes(text.len() as u64),
        units::time(took.as_nanos() as u64)
    );
    match count {
        None => Ok(what),
        Some(count) => Ok(format!("{what}; {}", rendered(&program, count)?.told())),
    }
}

fn rendered(program: &Program, count: u64) -> Result<Seen> {
    let mut executor = Executor::new(program)?;
    let mut slab = Slab::new(1, program.longest() as usize);
    let mut seen = Seen::default();
    for _ in 0..count {
        if executor.render(&mut slab.buffers(), 1, || 0) == 0 {
            break;
        }
        seen.frame(slab.frame(0));
    }
    Ok(seen)
}

/// Frames that were made.
#[derive(Default)]
struct Seen {
    frames: Vec<Vec<u8>>,
}

impl Seen {
    fn frame(&mut self, frame: &[u8]) {
        self.frames.push(frame.to_vec());
    }

    /// How many, how long, and of which layers.
    fn told(&self) -> String {
        let lengths = self.frames.iter().map(Vec::len);
        let (least, most) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for frame in &self.frames {
            let shown = wire::show::show(LinkType::ETHERNET, frame);
            let malformed = if shown.contains("(malformed)") { " (malformed)" } else { "" };
            let title = |line: &'_ str| {
                Some(line.strip_prefix("### [ ")?.strip_suffix(" ]###")?.to_owned())
                    .filter(|title| title != "Payload")
            };
            let layers: Vec<String> = shown.lines().filter_map(title).collect();
            *kinds.entry(layers.join("/") + malformed).or_default() += 1;
        }
        let lengths = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let kinds: Vec<String> =
            kinds.iter().map(|(layers, frames)| format!("{frames} of {layers}")).collect();
        format!(
            "{} of {lengths} bytes without FCS: {}",
            units::counted(self.frames.len() as u64, "frame"),
            kinds.join(", ")
        )
    }
}

/// Makes a folder with a template's files in it, and says how it is built.
fn new(folder: &Path, template: &templates::Template) -> Result<u8> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(sound) {
        bail!(
            "{}: the plugin is called as its folder, and plugins' names are of a-z, 0-9 and _: give another",
            folder.display()
        );
    }
    for (file, _) in template.files {
        let path = folder.join(file);
        if path.exists() {
            bail!("{} is there already: nothing was written", path.display());
        }
    }
    for (file, text) in template.files {
        let path = folder.join(file);
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above).with_context(|| above.display().to_string())?;
        }
        let mut new = std::fs::File::create_new(&path).with_context(|| path.display().to_string())?;
        new.write_all(templates::filled(text, name).as_bytes())
            .with_context(|| path.display().to_string())?;
    }
    note(&format!("wrote {} to {}", units::counted(template.files.len() as u64, "file"), folder.display()));
    // On a line of its own, which no terminal's width folds: it is to be pasted.
    print(&format!(
        "Build and test it (README.md says what that needs):\n    cd {} && {} && netdyno plugin test {}\n",
        units::shell_word(&folder.display().to_string()),
        templates::filled(template.build, name),
        templates::filled(template.module, name)
    ))?;
    Ok(0)
}
