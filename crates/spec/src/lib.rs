//! Jobs as plain data, `netdyno.job/1`: what a user wants done.
//!
//! A [`Job`] holds nothing but values: no closures, no open files, no command line. Whoever has one can print it, keep it,
//! send it elsewhere and run it again; the command line, a file of jobs and a result's `requested` are three ways to get one.
//! Quantities keep the words they were written in ([`Written`]).
//!
//! What a job may not decide alone is its [`Consent`]: a file states what it needs, and whoever runs it has to give the same.

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

mod bench;
mod check;
mod cloning;
mod collect;
mod consent;
mod cores;
mod edits;
mod endpoint;
mod endpoint_search;
mod file;
mod flows;
mod iperf3;
mod kind;
mod listen;
mod live;
mod middle;
mod netperf;
mod parts;
mod plugin;
mod probe;
pub mod reach;
#[cfg(test)]
mod rules;
mod sessions;
mod sessions_search;
pub mod setting;
mod stamp;
mod transmit;
mod words;
mod written;

pub use bench::{
    Axis, Bench, Burst, Dut, Find, Finding, Lab, Latency, LossCurve, Method, Recovery, Reset, Search, Soak,
    Throughput, Trial,
};
pub use check::Contradiction;
pub use cloning::{Adopt, CloneCapture, ClonePace, CloneSource, Cloning, Forwarding, ReturnAgent, Served};
pub use collect::{ClickHouse, Collect, Kafka, KafkaKey, PartitionBy};
pub use consent::{Consent, Needless, NotGiven};
pub use cores::{Cores, ranges};
pub use edits::{Edits, FixLength, VlanKind};
pub use endpoint::{
    Confidence, Endpoint, EndpointRate, EndpointServer, EndpointTest, Family, ReceiveMethod, SendMethod,
};
pub use endpoint_search::{Buffers, EndpointFind, EndpointSearch, MostTransactions, SocketBuffer};
#[cfg(not(feature = "without-schemas"))]
pub use file::schema;
pub use file::{BadFile, File, NotText, SCHEMA};
pub use flows::{Flows, KeyOrder, UnderTest};
pub use iperf3::{BitRate, Iperf3, Iperf3Server, KeepAlive, TimeOrZero};
pub use kind::Kind;
pub use listen::{Capture, Clock, Event, How, Measure, Reflect, Stamp, Timestamps};
pub use live::{Answers, Flow, Live, Port, Server, Timing};
pub use middle::{Bridge, BridgeEngine, Direction, Faults, Impair};
pub use netperf::{Netperf, Netserver};
pub use plugin::Plugin;
pub use probe::{ExportFormat, FlowDirection, Probe, TCP};
pub use sessions::{Pool, SessionApplication, SessionClose, Sessions, SessionsServer};
pub use sessions_search::{MostSessions, SessionCapacity, SessionsFind, SessionsSearch};
pub use transmit::{
    Engine, Link, Loss, Meter, Oversize, Pattern, Replay, Send, Shape, Side, Sign, Stamps, Through,
};
pub use words::Word;
pub use written::{Quantity, Ratio, Share, Written};

use kind::kinds;

kinds! { ($)
    /// Frames of an expression, a scenario or a plugin.
    "send" Send,
    /// Captures.
    "replay" Replay,
    /// What arrives is counted.
    "measure" Measure,
    /// What arrives is sent back.
    "reflect" Reflect,
    /// Two interfaces become one cable.
    "bridge" Bridge,
    /// Two interfaces become a device with known faults.
    "impair" Impair,
    /// What arrives is counted by flows, and their records are exported.
    "probe" Probe,
    /// Records of flows are received, checked and written.
    "collect" Collect,
    /// What clients say to a server is said to another one.
    "clone" Cloning,
    /// A server's clients are captured, and forwarded to a clone on another host.
    "clone-capture" Forwarding,
    /// At a clone's target, answers to copies go back to the clone.
    "clone-return" ReturnAgent,
    /// The clients of captured TCP connections, against a real server.
    "live" Live,
    /// Streams and transactions over this host's TCP and UDP.
    "endpoint" Endpoint,
    /// The far end of endpoint tests.
    "endpoint-server" EndpointServer,
    /// The smallest socket buffer, or the highest rate of transactions, between two endpoints.
    "endpoint-search" EndpointSearch,
    /// TCP connections by the million, made in the kernel.
    "sessions" Sessions,
    /// A server of TCP connections that keeps no state, in the kernel.
    "sessions-server" SessionsServer,
    /// The highest rate of new TCP connections through a device.
    "sessions-search" SessionsSearch,
    /// One load, and whether the device keeps to a goal.
    "trial" Trial,
    /// What the device can do.
    "search" Search,
    /// A test with a server of iperf3's protocol.
    "iperf3" Iperf3,
    /// A server of iperf3's protocol.
    "iperf3-server" Iperf3Server,
    /// A test with a server of netperf's protocol.
    "netperf" Netperf,
    /// A server of netperf's protocol.
    "netserver" Netserver,
}

impl Job {
    /// Does it make sense?
    ///
    /// # Errors
    /// What does not, and the mend.
    pub fn check(&self) -> Result<(), Contradiction> {
        of_kind!(self, job => job.check())
    }

    /// What it needs to be allowed.
    pub fn asks(&self) -> Consent {
        of_kind!(self, job => Consent { yes_disrupt: job.yes_disrupt().to_vec(), ..job.asks() })
    }

    /// Makes `seed` the one of its random choices, if it says none: run again, it does the same.
    pub fn draw(&mut self, seed: u64) {
        of_kind!(self, job => job.draw(seed));
    }

    /// The plugin that says what its frames are.
    pub fn plugin_mut(&mut self) -> Option<&mut Plugin> {
        match self {
            Job::Send(send) => send.plugin.as_mut(),
            Job::Trial(trial) => trial.bench.plugin.as_mut(),
            Job::Search(search) => search.bench.plugin.as_mut(),
            _ => None,
        }
    }

    /// Does it need the tester for itself, so that nothing runs beside it?
    pub fn runs_alone(&self) -> bool {
        of_kind!(self, job => job.runs_alone())
    }
}
