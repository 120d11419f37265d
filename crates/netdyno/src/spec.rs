//! Jobs as plain data, `netdyno.job/1`: a struct for each kind, and what they are made of.
//!
//! docs/jobs.md has all members, docs/job.schema.json the schema of a file.

#[doc(inline)]
pub use ::spec::{
    Adopt, Answers, Axis, BadFile, Bench, BitRate, Bridge, BridgeEngine, Buffers, Burst, Capture, ClickHouse,
    Clock, CloneCapture, ClonePace, Cloning, Collect, Confidence, Consent, Contradiction, Cores, Direction,
    Dut, Edits, Endpoint, EndpointFind, EndpointRate, EndpointSearch, EndpointServer, EndpointTest, Engine,
    Event, ExportFormat, Family, Faults, File, Find, Finding, FixLength, Flow, FlowDirection, Flows,
    Forwarding, How, Impair, Iperf3, Iperf3Server, Job, Kafka, KafkaKey, KeepAlive, KeyOrder, Lab, Latency,
    Link, Live, Loss, LossCurve, Measure, Meter, Method, MostSessions, MostTransactions, Needless, Netperf,
    Netserver, NotGiven, NotText, Oversize, PartitionBy, Pattern, Plugin, Pool, Port, Probe, Quantity, Ratio,
    ReceiveMethod, Recovery, Reflect, Replay, Reset, ReturnAgent, SCHEMA, Search, Send, SendMethod, Served,
    Server, SessionApplication, SessionCapacity, SessionClose, Sessions, SessionsFind, SessionsSearch,
    SessionsServer, Share, Side, Sign, Soak, SocketBuffer, Stamp, Stamps, TCP, Through, Throughput,
    TimeOrZero, Timestamps, Timing, Trial, UnderTest, VlanKind, Written,
};

/// The settings of each kind as a table ([`Job::SETTINGS`]): what a client offers to its users, with texts, ranges and defaults.
pub mod setting {
    #[doc(inline)]
    pub use ::spec::setting::{Member, Setting, Shape, Shorthand, each, named};
}
