//! What to send: a packet expression, a scenario file, or a plugin.

use crate::place::Place;
use anyhow::{Context as _, Result, bail};
use engine::source::{Row, Source};
use plugin::{Plugin, PluginError};
use report::{Code, Warnings};
use scenario::{Compiled, Context, FlowClass, FlowPlan, MAX_BYTES, Scenario, Sign, parse};
use serde_json::{Map, Value};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The first word after the verb.
#[derive(Debug)]
pub enum What<'a> {
    /// A packet expression.
    Expression(&'a str),
    /// A file, and what it was called.
    Scenario(Box<Scenario>, &'a str),
    /// A plugin, and what is asked of it.
    Plugin(Box<Plugged>),
}

/// A plugin that was found, with options that it takes.
#[derive(Debug)]
pub struct Plugged {
    /// The plugin.
    pub plugin: Plugin,
    options: Map<String, Value>,
}

impl Plugged {
    /// Finds the plugin of a job, and checks that it is the one that the job is of.
    ///
    /// # Errors
    /// There is none such, it is another, or an option is wrong.
    pub fn of(asked: &spec::Plugin) -> Result<Plugged> {
        let plugin = plugin::find(&asked.name)?;
        let another = |then: &str, now: &str, member| PluginError::Another {
            name: plugin.name().to_owned(),
            then: then.to_owned(),
            now: now.to_owned(),
            member,
        };
        let found = plugin.origin.sha256();
        if let Some(then) = asked.sha256.as_deref().filter(|then| Some(*then) != found) {
            let now = found
                .map_or("the built-in plugin".to_owned(), |sha256| format!("that with SHA-256 {sha256}"));
            return Err(another(&format!("the module with SHA-256 {then}"), &now, "sha256").into());
        }
        let version = &plugin.description.version;
        if let Some(then) = asked.version.as_ref().filter(|then| *then != version) {
            return Err(another(&format!("version {then}"), &format!("version {version}"), "version").into());
        }
        plugin.check(&asked.options)?;
        Ok(Plugged { plugin, options: asked.options.clone() })
    }

    /// As a result tells it.
    pub fn source(&self) -> report::Source {
        report::Source::Plugin {
            name: self.plugin.name().to_owned(),
            version: self.plugin.description.version.clone(),
            place: self.plugin.origin.place(),
            sha256: self.plugin.origin.sha256().map(str::to_owned),
        }
    }

    /// The scenario that it makes.
    ///
    /// # Errors
    /// An option is wrong, or what it makes.
    pub fn scenario(&self, seed: u64) -> Result<Scenario> {
        Ok(self.plugin.scenario(&self.options, Some(seed))?)
    }

    /// The frames that it yields, of a plugin of that world. With `sign_each` one that is to be signed and has no room is a fault.
    ///
    /// # Errors
    /// An option is wrong, or what it announces.
    pub fn frames(&self, seed: u64, sign_each: bool) -> Result<Source> {
        let row = self.row(seed)?;
        Ok(Source::from(if sign_each { row.signing_each() } else { row }))
    }

    /// The same, for who looks at them.
    ///
    /// # Errors
    /// As of [`Plugged::frames`].
    pub fn row(&self, seed: u64) -> Result<Row> {
        Ok(self.plugin.open(&self.options, Some(seed))?)
    }
}

impl<'a> What<'a> {
    /// What a job says is to be sent.
    ///
    /// # Errors
    /// As of [`What::of`], or of the plugin.
    pub fn of_job(word: &'a str, plugin: Option<&spec::Plugin>) -> Result<What<'a>> {
        match plugin {
            Some(plugin) => Ok(What::Plugin(Box::new(Plugged::of(plugin)?))),
            None => What::of(word),
        }
    }
}

impl What<'_> {
    /// Looks at the word, and reads the file if it names one: by its ending, by being there, or `-`.
    ///
    /// # Errors
    /// That there is such a file and it cannot be read.
    pub fn of(word: &str) -> Result<What<'_>> {
        let path = Path::new(word);
        let named =
            path.extension().is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"));
        if word != "-" && !named && (path.is_dir() || !path.exists()) {
            return Ok(What::Expression(word));
        }
        let name = if word == "-" { "standard input" } else { word };
        let mut bytes = Vec::new();
        let most = MAX_BYTES as u64 + 1;
        let read = match word {
            "-" => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
            _ => std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
        };
        read.with_context(|| format!("reading the scenario {name}"))?;
        let Ok(text) = String::from_utf8(bytes) else {
            bail!(
                "{name} is not text in UTF-8: a scenario is a YAML file (to send a capture, use `netdyno replay`)"
            );
        };
        Ok(What::Scenario(Box::new(parse(&text, name)?), word))
    }
}

/// Frames that have been decided to the last byte, and their times.
#[derive(Debug)]
pub struct Made {
    /// The frames.
    pub compiled: Compiled,
    /// The key of their random values, given or drawn.
    pub seed: u64,
    /// What to know of them.
    pub warnings: Warnings,
}

/// Compiles a scenario for `place`, and finds the Ethernet addresses it asks for.
///
/// # Errors
/// Where the scenario cannot be understood, or that a neighbour does not answer.
pub fn scenario(
    scenario: &Scenario,
    seed: Option<u64>,
    context: Context,
    place: Option<&Place>,
    stop: &AtomicBool,
) -> Result<Made> {
    let seed = seed.or(scenario.seed()).unwrap_or_else(super::shared::draw_seed);
    let link_bits_per_second = place.and_then(Place::bits_per_second);
    let measured = context.sign == Sign::WhereRoom;
    let mut compiled = scenario.compile(&Context { seed, link_bits_per_second, ..context })?;
    let mut warnings = Warnings::default();
    if measured && !compiled.unsigned.is_empty() {
        warnings.add(
            Code::NotSigned,
            format!(
                "the frames of {} have no room for a signature: order and latency are not measured there",
                compiled.unsigned.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ),
        );
    }
    match place {
        Some(place) => resolve(&mut compiled, place, stop)?,
        None if !compiled.resolve.is_empty() => {
            warnings.add(Code::SettingWithoutEffect,
                "nobody is asked for Ethernet addresses (`resolve`): these frames are not sent on an interface"
                    .to_owned(),
            );
        }
        None => {}
    }
    Ok(Made { compiled, seed, warnings })
}

/// Asks for the Ethernet addresses that a scenario wants, each once.
fn resolve(compiled: &mut Compiled, place: &Place, stop: &AtomicBool) -> Result<()> {
    if !compiled.resolve.is_empty() {
        crate::carrier::await_link(place, stop)?;
    }
    let mut known = std::collections::HashMap::new();
    for unresolved in compiled.resolve.clone() {
        let (name, next_hop, source) = (&place.interface.name, unresolved.next_hop, unresolved.source);
        let mac = match known.get(&next_hop) {
            Some(mac) => *mac,
            None => {
                let stream = compiled.program.streams.get(unresolved.stream).map_or("", |s| &s.name);
                let asked = place.run_in(|| port::resolve::neighbour(name, next_hop, source))?;
                let mac = asked.with_context(|| format!("stream `{stream}` (`resolve`)"))?;
                known.insert(next_hop, mac);
                mac
            }
        };
        let own = place.interface.mac.context("the interface has no Ethernet address of its own")?;
        compiled.resolved(&unresolved, mac, own);
    }
    Ok(())
}

/// A flow profile's arithmetic, as a result has it.
pub fn told(plan: &FlowPlan) -> report::FlowProfile {
    let kind = |class: &FlowClass| report::FlowKind {
        protocol: class.protocol.to_owned(),
        packets: class.packets,
        duration_ns: class.duration_ns,
        share: f64::from(class.share) / f64::from(class.cycle.max(1)),
        flows: class.flows,
    };
    report::FlowProfile {
        name: plan.name.clone(),
        flows_per_second: plan.flows_per_second(),
        frames_per_second: plan.frames_per_second(),
        concurrent_flows: plan.concurrency(),
        flows: plan.flows,
        frames: plan.frames(),
        different_flows: u64::try_from(plan.different_keys()).unwrap_or(u64::MAX),
        kinds: plan.classes.iter().map(kind).collect(),
    }
}

impl Made {
    /// Frames of the whole file, where every stream ends by itself.
    pub fn total(&self) -> Option<u64> {
        self.compiled.program.lanes.iter().map(|lane| lane.frames).sum()
    }
}
