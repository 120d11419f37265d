//! The result of a job as data, what reads and writes it, and its renderings.
//!
//! docs/report.md says what each member means, docs/report.schema.json is the schema of the JSON.

#[doc(inline)]
pub use ::report::{
    Achieved, Adjustment, AgentClock, AgentPart, Bucket, BufferPoint, Capture, CatchUp, Cause, Change,
    Choice, Cloned, ClonedAnswers, ClonedBytes, ClonedConnections, ClonedDifference, ClonedFrames,
    ClonedNoise, ClonedPlace, ClonedSent, ClonedSessions, Code, Collection, Collector, Conversation, Core,
    Datagrams, DelayVariation, Departures, Distribution, DropBacklog, DropQueue, DropRule, Dropped,
    DroppedKind, DroppedOfStream, DropsOverTime, DropsTraced, Endpoint, EndpointCounts, EndpointEnd,
    EndpointInterval, EndpointMemory, EndpointSearch, EndpointSearchKind, EndpointStage, EndpointStream,
    EndpointTrial, EndpointVerdict, Environment, Exact, Exported, Exporter, FlowKind, FlowProfile, Flows,
    Forwarded, ForwardedSessions, HardwareStamps, HeldSessions, HostCounter, Impaired, Interface,
    InterfaceCounters, Interval, L1_OVERHEAD_BYTES, LatencyClock, LinkChange, LinkEvent, Loss, Mesh,
    MeshAsymmetry, MeshFigure, MeshHost, MeshOutcome, MeshPair, MeshSchedule, MeshServed, MeshSlowest,
    MeshValue, MeshWorst, Metering, NatCounts, NotTaken, Note, Opening, Pacing, Passage, PortResult,
    QueueCounters, Reflection, Repeated, Report, RequestedRate, Resolved, Returned, Rx, RxInterface, Said,
    Sentence, Served, SessionCapacityFound, SessionRateFound, SessionTrial, SessionVerdict, Sessions,
    SessionsSearch, SessionsSearchKind, SessionsServed, Severity, SignedFrames, SocketBufferFound, Source,
    Stamp, StampClocks, StampError, StampReflection, StampStrangers, Stopped, Stream, Totals, Transactions,
    TransactionsFound, Tx, TxInterface, UnderLoad, Verdict, Warnings, Witness, Words, Written, XdpProgram,
    XdpVerdict,
};

#[doc(inline)]
pub use ::report::store::{read, write_comparison_in, write_dir, write_dir_in};

/// Results in folders, as `--report DIR` writes them and [`read`] reads them.
pub mod store {
    #[doc(inline)]
    pub use ::report::store::{StoreError, Written};
}

/// What limited a run, and what ended a search.
pub mod causes {
    #[doc(inline)]
    pub use ::report::causes::{By, StoppedAt};
}

/// Trials, and what a search found.
pub mod search {
    #[doc(inline)]
    pub use ::report::search::{
        Bounds, BurstFound, Floor, FloorOf, FlowTrial, FlowsFound, GoalOutcome, GoalResult, LatencyAt,
        LossAt, Part, SearchAxis, SearchKind, SearchMethod, SearchResult, SizeResult, Spread, Stage,
        Throughput, Trial, TrialLatency, TrialVerdict, Unfinished,
    };
}

/// Captured TCP connections that were played against a server.
pub mod conversations {
    #[doc(inline)]
    pub use ::report::conversations::{Difference, Exchange, Outcome, RoundTrip};
}

/// What the kernel of an endpoint counted during its test ([`EndpointEnd`]).
pub mod kernel_counters {
    #[doc(inline)]
    pub use ::counters::{Change, Difference, Group, Irregular, Note, State, Topic, Weight};
}

/// A result as JSON, and JSON of this version and of earlier ones as a result.
pub mod json {
    #[doc(inline)]
    pub use ::report::json::{ReadError, from_str, in_one_line, to_string};
}

/// A result as text for a terminal.
pub mod text {
    #[doc(inline)]
    pub use ::report::text::{Options, render};
}

/// A result as a page that opens offline.
pub mod html {
    #[doc(inline)]
    pub use ::report::html::{comparison, embedded_report, render};
}

/// A result as comma-separated values: its intervals, figures and trials.
pub mod csv {
    #[doc(inline)]
    pub use ::report::csv::{figures, render, trials};
}

/// Figures by their names, as `--get` prints them.
pub mod get {
    #[doc(inline)]
    pub use ::report::get::{Missing, Unknown, Wanted, keys, lines};
}

/// Results beside each other, with the noise of repeated runs.
pub mod compare {
    #[doc(inline)]
    pub use ::report::compare::{
        Better, Change, Compared, Comparison, Condition, Incomparable, Method, Named, OfferedLoad, Side,
        Unit, compare, render,
    };
}

/// Numbers as they are shown: `1.50 Mpps`, `12.3 us`.
pub mod units {
    #[doc(inline)]
    pub use ::report::units::{
        bit_rate, bytes, count, counted, event_rate, flow_rate, frame_rate, percent, printable, rfc3339, time,
    };
}
