//! What a job has to say beside its result, in words for a person and by a code for a program.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Something to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What it is about; stable.
    pub code: Code,
    /// How much the note matters.
    pub severity: Severity,
    /// What is so: one sentence or two, without the code.
    pub text: String,
    /// What to do about it, where that is known: an imperative without its full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// A sentence of a result, a warning or why a job fell short, with what it is about. In JSON it is the sentence; the code is
/// found in [`Report::notes`](crate::data::model::Report::notes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What it is about.
    pub code: Code,
    /// What is so, and behind it the remedy.
    whole: String,
    /// How much of that is what is so, where a remedy follows.
    cause: Option<usize>,
}

/// What is so, and perhaps what to do about it: `"it is late"`, or `("it is late", "give it more time")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    text: String,
    remedy: Option<String>,
}

impl Said {
    /// The same with another remedy.
    pub fn with_remedy(&self, remedy: &str) -> Said {
        let cause = self.cause.and_then(|cause| self.whole.get(..cause)).unwrap_or(&self.whole);
        self.code.says((cause, remedy))
    }
}

impl Sentence {
    /// What is so, and what to do about it where that is known.
    pub fn new(text: impl Into<String>, remedy: Option<impl Into<String>>) -> Sentence {
        Sentence { text: text.into(), remedy: remedy.map(Into::into) }
    }

    /// The same with something before it.
    pub fn behind(mut self, before: &str) -> Sentence {
        self.text.insert_str(0, before);
        self
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.remedy {
            Some(remedy) => write!(f, "{}{JOINT}{remedy}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl From<String> for Sentence {
    fn from(text: String) -> Sentence {
        Sentence { text, remedy: None }
    }
}

impl From<&String> for Sentence {
    fn from(text: &String) -> Sentence {
        Sentence::from(text.clone())
    }
}

impl From<&str> for Sentence {
    fn from(text: &str) -> Sentence {
        Sentence::from(text.to_owned())
    }
}

impl<T: Into<String>, R: Into<String>> From<(T, R)> for Sentence {
    fn from((text, remedy): (T, R)) -> Sentence {
        Sentence { text: text.into(), remedy: Some(remedy.into()) }
    }
}

/// Between what is so and the remedy, where they are read together.
const JOINT: &str = "; ";

/// What is to be known before the figures of a result are trusted, a sentence each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Warnings(Vec<Said>);

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// How it goes. Who wants quiet does not want it.
    Info,
    /// To be known before the figures are trusted.
    Warning,
    /// The job ran, but short of what was asked: exit status 1.
    Shortfall,
    /// The job was not done: exit status 2.
    Failure,
}

/// What a note is about. A code never changes its meaning; new ones may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// What the job does from now on, and through what.
    Begun,
    /// An interface had no carrier, and it was waited for.
    CarrierWaited,
    /// The next hop's Ethernet address was found out.
    NextHopFound,
    /// Captures were read, and how long that took.
    CaptureRead,
    /// Only a part of what a capture holds is used.
    PartOfCapture,
    /// What a search will try.
    SearchRange,
    /// A trial begins, or came to this.
    Trial,
    /// Something is to be done by hand now, or the job cannot do what it was asked for.
    ActNow,
    /// A command that was asked for could not be run.
    CommandFailed,
    /// An agent could not be had, was lost, or came to no result.
    AgentLost,
    // Of what was sent.
    /// Frames were not sent at the rate asked for.
    RateNotReached,
    /// An interface refused frames.
    FramesRefused,
    /// Whose frames were refused is not known.
    RefusedUnknown,
    /// Frames were handed over, and no counter saw all of them leave.
    FramesUnaccounted,
    /// A counter does not know the frames of this job; another witness is believed.
    CounterBlind,
    /// Counters of an interface can no longer be read.
    CountersUnreadable,
    /// Counts that must be equal differ.
    CountersDisagree,
    /// An interface sent frames that are not of this job.
    OthersSent,
    /// The sender was moved to another CPU, and frames came out of order.
    SenderMoved,
    /// Nothing came from the source for part of the time.
    SourceRanDry,
    /// The sender could not go on.
    SenderFailed,
    /// The source of the frames could not go on.
    SourceFailed,
    /// The job was ended before its time.
    Stopped,
    /// A core had nothing to send.
    CoreIdle,
    /// Something else uses a CPU that this job sends on.
    CpuBusy,
    /// Frames were left out on purpose, as asked.
    LostOnPurpose,
    /// Frames of the source were left out, cut or changed.
    FramesOdd,
    /// Frames have no room for a signature: nothing is known of them one by one.
    NotSigned,
    /// A capture is damaged, and was used up to its damage.
    CaptureDamaged,
    /// A setting has no effect with the others.
    SettingWithoutEffect,
    /// Frames are longer than an interface takes.
    FramesTooLong,
    /// An interface gave no stamps of when frames left.
    NoTransmitStamps,
    // Of what arrived.
    /// Frames were sent and did not arrive.
    FramesLost,
    /// A counter shows where lost frames may have gone.
    FramesExplained,
    /// Fewer frames came than were waited for.
    FewerFrames,
    /// Frames arrived at another port than the one they were sent to.
    FramesMisdirected,
    /// Frames arrived with other content than was sent.
    ContentChanged,
    /// The content of some frames is not checked.
    ContentUnchecked,
    /// Frames arrived that this job did not send.
    ForeignFrames,
    /// Frames of another run with the same signatures arrived.
    AnotherRun,
    /// More different frames arrived than were sent.
    SurplusFrames,
    /// Frames came too late to be distinguished from others, or after a trial was over.
    Stragglers,
    /// Copies cannot be distinguished from other frames.
    CopiesUnknown,
    /// Devices may have learned addresses so that they do not forward some frames.
    AddressesLearned,
    /// VLAN tags may have been taken out by the interface.
    TagsTakenOut,
    /// The link of an interface was down for a while.
    LinkLost,
    /// An interface has no carrier.
    NoCarrier,
    /// An interface was removed, or what was attached to it was detached by force.
    InterfaceGone,
    /// A meter counted nothing, or failed.
    MeterFailed,
    /// A meter may not see some frames.
    MeterBlind,
    /// The meter missed frames.
    MeterMissed,
    /// What the kernel drops could not be traced.
    DropsNotTraced,
    /// What the XDP program said that is the lab's device could not be counted.
    XdpNotCounted,
    /// Frames that were to be captured were not.
    FramesNotCaptured,
    /// There are more streams than can be distinguished.
    StreamsBeyond,
    /// Frames of a stream that several CPUs received at once are in no stream.
    StreamsContended,
    /// Numbers in signatures are damaged.
    StreamsAstray,
    /// A sender restarted the numbers of a stream.
    StreamsRenewed,
    /// More streams than are listed.
    StreamsNotListed,
    // Of times.
    /// No latency can be given.
    LatencyUnknown,
    /// Times between the arrivals of streams cannot be given.
    NoInterArrival,
    /// A clock is not kept by a daemon (PTP, NTP).
    ClockUnkept,
    /// A clock was set while the job lasted.
    ClockSet,
    /// A clock could not be read.
    ClockUnread,
    /// Frames without a stamp of the hardware were timed by software.
    SoftwareStamps,
    // Of bridges, reflectors and live replays.
    /// Frames were not sent on.
    FramesNotForwarded,
    /// IP fragments were left out.
    FragmentsLeftOut,
    /// A captured connection is not whole.
    ConversationIncomplete,
    /// Captured segments were left out.
    SegmentsLeftOut,
    /// A connection failed.
    ConversationFailed,
    /// A server's answer differs from the captured one.
    AnswerDiffers,
    /// A server did not close its side.
    ServerLeftOpen,
    /// TCP connections did not finish.
    SessionsFailed,
    /// Whether answers came whole is not known.
    AnswersUnknown,
    /// Frames of TCP connections were not sent as they should have been.
    SessionsUnsent,
    // Of flow probes and collectors.
    /// Frames were not counted for a flow, because the probe was slower.
    FramesUnmetered,
    /// Several packets may be counted as one, because the kernel joins them.
    FramesJoined,
    /// Fragments count for flows without ports, because the first one of their packet is not known.
    FragmentsUnattributed,
    /// Flow records were not sent, or no collector took them.
    RecordsUnsent,
    /// A connection to a collector broke, and was made again.
    ConnectionBroke,
    /// Records ended early, because there was no room for more flows.
    TableFull,
    /// A collector lost messages that had arrived.
    MessagesDropped,
    /// Records or messages are missing by their exporters' numbers.
    RecordsMissing,
    /// Messages of exporters came twice.
    MessagesTwice,
    /// No message came at all.
    NothingCame,
    /// Exporters restarted their counting.
    ExporterRestarted,
    /// Messages could not be read, or their templates did not come.
    MessagesUnread,
    /// Records were received and not written.
    RecordsUnwritten,
    /// A probe's records say what is not so.
    RecordsWrong,
    // Of clones.
    /// Sessions were not copied, or not to their end.
    SessionsNotCopied,
    /// Connections to the target were not established.
    TargetUnreachable,
    /// Bytes that were to be said to the target were not.
    BytesUnsent,
    /// What was captured shows that it is captured at the wrong place, or one direction of it alone.
    CaptureOneSided,
    /// Frames were captured in part.
    FramesCut,
    /// Copies came back to where they are captured.
    CopiesCameBack,
    /// The target answers differently.
    TargetDiffers,
    /// A capture on another host came, went, or was refused.
    CaptureElsewhere,
    // Of endpoint tests.
    /// The data was never touched by who received it, so that it was faster than any program that wants it.
    DataUntouched,
    /// Sends that were to be without a copy were copied by the kernel.
    CopiedAfterAll,
    /// Both ends are on one host, or others used an end meanwhile.
    EndsShared,
    /// Other clients' tests ran at a server meanwhile.
    ServerShared,
    /// The other end, or a connection, failed.
    EndpointFailed,
    /// Where datagrams were lost, or were not.
    DatagramsExplained,
    /// The interval of the result is wider than was asked for.
    ConfidenceNotReached,
    /// Something that was asked for was not to be had, and the test went on without it.
    WentWithout,
    // Of trials and searches.
    /// What was searched for was not found, or not for all of it.
    GoalNotReached,
    /// A search is determined, less closely than on a quiet machine.
    PrecisionLess,
    /// A search came to no end.
    SearchIncomplete,
    /// Trials were done again because this machine was at fault.
    TrialsRepeated,
    /// The sender cannot reach the highest load that was to be tried.
    SenderTooSlow,
    /// The device does not do the same each time.
    DeviceInconsistent,
    /// The device forwards far less under overload than below it.
    OverloadCollapse,
    /// The lab's device lost frames beyond what it was asked to.
    LabDeviceOverloaded,
    /// What the tester itself adds to latency is not known.
    FloorUnknown,
    /// Latency is of those frames that arrived.
    LatencyOfSurvivors,
    /// Bursts were not searched.
    BurstNotSearched,
    /// An overload lost nothing, so that there was nothing to recover from.
    NothingToRecover,
    /// Nothing was lost while the device was reset.
    ResetNotSeen,
    /// This kernel does not report something that the figures could be judged by.
    KernelSilent,
    /// The result cannot say how the job is run again.
    NotRepeatable,
    /// A sentence without a code: of a result of before, or of another program.
    #[serde(other)]
    Other,
}

impl Code {
    /// A sentence about it.
    pub fn says(self, sentence: impl Into<Sentence>) -> Said {
        let sentence = sentence.into();
        let cause = sentence.remedy.as_ref().map(|_| sentence.text.len());
        Said { code: self, whole: sentence.to_string(), cause }
    }
}

impl Said {
    /// As a note beside the result.
    pub(crate) fn note(&self, severity: Severity) -> Note {
        Note {
            code: self.code,
            severity,
            text: self.cause().to_owned(),
            remedy: self.remedy().map(str::to_owned),
        }
    }

    /// The same sentence, as a note of it has it.
    pub(crate) fn is_of(&self, note: &Note) -> bool {
        self.whole == note.sentence()
    }

    /// What is so and what to do about it, without the code.
    pub fn sentence(&self) -> Sentence {
        Sentence::new(self.cause(), self.remedy())
    }

    /// What is so, without the remedy.
    pub fn cause(&self) -> &str {
        self.cause.and_then(|end| self.whole.get(..end)).unwrap_or(&self.whole)
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<&str> {
        self.cause.and_then(|end| self.whole.get(end + JOINT.len()..))
    }

    /// Adds to what is so, and to what to do about it.
    pub fn also(&mut self, further: impl Into<Sentence>) {
        let Sentence { text, remedy } = further.into();
        let text = [self.cause(), &text].join(JOINT);
        let remedies: Vec<&str> = self.remedy().into_iter().chain(remedy.as_deref()).collect();
        let remedy = (!remedies.is_empty()).then(|| remedies.join(JOINT));
        *self = self.code.says(Sentence { text, remedy });
    }
}

impl Deref for Said {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole
    }
}

impl Borrow<str> for Said {
    fn borrow(&self) -> &str {
        &self.whole
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

impl PartialEq<str> for Said {
    fn eq(&self, other: &str) -> bool {
        self.whole == other
    }
}

impl PartialEq<&str> for Said {
    fn eq(&self, other: &&str) -> bool {
        self.whole == *other
    }
}

impl PartialEq<String> for Said {
    fn eq(&self, other: &String) -> bool {
        self.whole == *other
    }
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.whole)
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Said, D::Error> {
        Ok(Code::Other.says(String::deserialize(deserializer)?))
    }
}

#[cfg(not(feature = "without-schemas"))]
impl JsonSchema for Said {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Said".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl Warnings {
    /// Warns of something.
    pub fn add(&mut self, code: Code, sentence: impl Into<Sentence>) {
        self.0.push(code.says(sentence));
    }
}

impl Deref for Warnings {
    type Target = Vec<Said>;

    fn deref(&self) -> &Vec<Said> {
        &self.0
    }
}

impl DerefMut for Warnings {
    fn deref_mut(&mut self) -> &mut Vec<Said> {
        &mut self.0
    }
}

impl IntoIterator for Warnings {
    type Item = Said;
    type IntoIter = std::vec::IntoIter<Said>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'w> IntoIterator for &'w Warnings {
    type Item = &'w Said;
    type IntoIter = std::slice::Iter<'w, Said>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<Said> for Warnings {
    fn from_iter<I: IntoIterator<Item = Said>>(said: I) -> Warnings {
        Warnings(said.into_iter().collect())
    }
}

impl From<Vec<Said>> for Warnings {
    fn from(said: Vec<Said>) -> Warnings {
        Warnings(said)
    }
}

impl Note {
    /// How it goes.
    pub fn info(code: Code, sentence: impl Into<Sentence>) -> Note {
        code.says(sentence).note(Severity::Info)
    }

    /// To be known before the figures are trusted.
    pub fn warning(code: Code, sentence: impl Into<Sentence>) -> Note {
        code.says(sentence).note(Severity::Warning)
    }

    /// What is so and the remedy in one, for people.
    pub fn sentence(&self) -> Cow<'_, str> {
        match &self.remedy {
            Some(remedy) => Cow::Owned(format!("{}{JOINT}{remedy}", self.text)),
            None => Cow::Borrowed(&self.text),
        }
    }
}
