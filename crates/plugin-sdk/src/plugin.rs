//! The traits that a plugin implements, and plugins that are linked natively.

use crate::description::{Description, Example, Fault, World};
use crate::scenario::Scenario;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The run that a plugin makes traffic for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Key of all that is random, if it is known: the same seed, the same traffic.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Version of the interface ([`crate::ABI`]).
    #[serde(default = "abi")]
    pub abi: u32,
}

impl Default for Run {
    fn default() -> Run {
        Run { seed: None, abi: crate::ABI }
    }
}

fn abi() -> u32 {
    crate::ABI
}

/// What netdyno hands to a plugin, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The options that were set.
    #[serde(default = "no_options")]
    pub options: Value,
    /// The run.
    #[serde(default)]
    pub run: Run,
}

fn no_options() -> Value {
    json!({})
}

/// A plugin that yields a scenario.
pub trait Compile {
    /// The options, each with a description and a default where there is a sensible one.
    type Options: DeserializeOwned + JsonSchema;

    /// The name it is called by: lower-case letters, digits, `_` and `-`.
    const NAME: &'static str;
    /// Its own version.
    const VERSION: &'static str;
    /// What it sends, in a sentence or a few.
    const ABOUT: &'static str;
    /// Whether netdyno refuses destinations outside private and benchmarking addresses.
    const RESTRICTED: bool = false;

    /// Options that do something useful; each must compile.
    #[must_use]
    fn examples() -> Vec<Example> {
        Vec::new()
    }

    /// The scenario for these options.
    ///
    /// # Errors
    /// The options contradict each other, or ask for what cannot be.
    fn compile(options: Self::Options, run: &Run) -> Result<Scenario, Fault>;
}

/// A plugin that yields frames one by one. Frame *n* is a function of *n* and of what it was opened with, and of nothing
/// else: several cores take disjoint frames, each from an instance of its own, in any order.
pub trait Frames: Sized {
    /// The options, each with a description and a default where there is a sensible one.
    type Options: DeserializeOwned + JsonSchema;

    /// The name it is called by: lower-case letters, digits, `_` and `-`.
    const NAME: &'static str;
    /// Its own version.
    const VERSION: &'static str;
    /// What it sends, in a sentence or a few.
    const ABOUT: &'static str;
    /// Whether netdyno refuses destinations outside private and benchmarking addresses.
    const RESTRICTED: bool = false;

    /// Options that do something useful; each must open.
    #[must_use]
    fn examples() -> Vec<Example> {
        Vec::new()
    }

    /// Makes ready to yield frames.
    ///
    /// # Errors
    /// The options contradict each other, or ask for what cannot be.
    fn open(options: Self::Options, run: &Run) -> Result<Self, Fault>;

    /// Bytes of the longest frame, without frame check sequence.
    fn longest(&self) -> u16;

    /// Number of frames; without end if `None`.
    fn count(&self) -> Option<u64> {
        None
    }

    /// Appends the bytes of frame `n`, from the destination address of Ethernet on, without frame check sequence.
    fn frame(&self, n: u64, frame: &mut Frame<'_>);
}

/// The frame that is being written.
#[derive(Debug)]
pub struct Frame<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Frame<'a> {
    /// A frame that begins at the end of `bytes`.
    pub fn at_end_of(bytes: &'a mut Vec<u8>) -> Frame<'a> {
        let start = bytes.len();
        Frame { bytes, start }
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What was written so far, to be changed.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().saturating_sub(self.start)
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A compile-world plugin that is linked into the program that runs it.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// What it is.
    pub describe: fn() -> Description,
    /// [`Input`] as JSON to a scenario as JSON.
    pub compile: fn(&str) -> Result<String, Fault>,
}

impl Native {
    /// The plugin `P`.
    #[must_use]
    pub const fn of<P: Compile>() -> Native {
        Native { describe: describe_compile::<P>, compile: compile_json::<P> }
    }
}

/// What a compile-world plugin is.
#[must_use]
pub fn describe_compile<P: Compile>() -> Description {
    Description {
        name: P::NAME.to_owned(),
        version: P::VERSION.to_owned(),
        about: P::ABOUT.to_owned(),
        world: World::Compile,
        options: schema::<P::Options>(),
        example: P::examples(),
        restricted: P::RESTRICTED,
    }
}

/// What a frames-world plugin is.
#[must_use]
pub fn describe_frames<P: Frames>() -> Description {
    Description {
        name: P::NAME.to_owned(),
        version: P::VERSION.to_owned(),
        about: P::ABOUT.to_owned(),
        world: World::Frames,
        options: schema::<P::Options>(),
        example: P::examples(),
        restricted: P::RESTRICTED,
    }
}

/// The scenario for an [`Input`], both as JSON.
///
/// # Errors
/// The input is not one, or the plugin cannot use its options.
pub fn compile_json<P: Compile>(input: &str) -> Result<String, Fault> {
    let (options, run) = options::<P::Options>(input)?;
    let scenario = P::compile(options, &run)?;
    serde_json::to_string(&scenario).map_err(|bad| Fault::new(bad.to_string()))
}

/// A frames-world plugin, opened with an [`Input`] as JSON.
///
/// # Errors
/// The input is not one, or the plugin cannot use its options.
pub fn open_json<P: Frames>(input: &str) -> Result<P, Fault> {
    let (options, run) = options::<P::Options>(input)?;
    P::open(options, &run)
}

/// Options and run of an input.
fn options<T: DeserializeOwned>(input: &str) -> Result<(T, Run), Fault> {
    let input: Input = serde_json::from_str(input)
        .map_err(|bad| Fault::new(format!("the input is not as it must be: {bad}")))?;
    if input.run.abi != crate::ABI {
        let message =
            format!("this plugin speaks version {} of the interface, not {}", crate::ABI, input.run.abi);
        return Err(Fault::new(message));
    }
    let options = serde_path_to_error::deserialize(&input.options).map_err(|bad| {
        use serde_path_to_error::Segment;
        let mut path = String::new();
        for segment in bad.path() {
            match segment {
                Segment::Seq { index } => path.push_str(&format!("/{index}")),
                Segment::Map { key } => {
                    path.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1")))
                }
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        Fault { path, message: bad.inner().to_string() }
    })?;
    Ok((options, input.run))
}

/// The schema of options. Nothing is referred to, so that whoever reads an option finds it where it stands; and a key that is
/// not there is a mistake.
fn schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.entry("type").or_insert_with(|| json!("object"));
        object.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    schema
}
