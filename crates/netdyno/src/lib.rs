//! A dynamometer for networks, as a library: sends, replays and measures network traffic on Linux.
//!
//! What the program `netdyno` does, this library does: the program is its client. Everything goes the same way:
//!
//! ```text
//!   Job (plain data) --.
//!                       >-- start --> Handle: snapshot, pause, set_rate, stop, wait --> Report
//!   Session -----------'                  |
//!   (what it may, who ends it)         Board: how it stands, ten times a second
//! ```
//!
//! # A job
//!
//! A [`Job`] says what is to be done and nothing else: no open file, no closure. There is one kind for each command of the
//! program, as a struct in [`spec`] that can be written down as it is, or read from text as `netdyno run` reads it
//! (docs/jobs.md has all members):
//!
//! ```
//! use netdyno::Job;
//! use netdyno::spec::{File, Link, Send};
//!
//! let job: Job = Send {
//!     what: "ipv4(dst=198.18.0.1)/udp(dport=9)".to_owned(),
//!     links: vec![Link { on: Some("eth1".to_owned()), measure: Some("eth2".to_owned()) }],
//!     rate: Some("100kpps".parse()?),
//!     duration: Some("10s".parse()?),
//!     ..Send::default()
//! }
//! .into();
//!
//! let text = "{schema: netdyno.job/1, kind: send, what: ipv4(dst=198.18.0.1)/udp(dport=9), \
//!             links: [{on: eth1, measure: eth2}], rate: 100kpps, duration: 10s}";
//! assert_eq!(File::read(text, "a job")?.jobs, [job]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Quantities are read from the words that people write ([`spec::Written`]): `1.5mpps`, `40%`, `1m30s`.
//!
//! # Starting it, and what comes of it
//!
//! [`start`] carries a job out in a thread of its own and returns a [`Handle`] at once. [`Handle::wait`] gives the [`Report`]:
//! what was asked, on which machine, what was sent, what arrived, what was lost and where, and a verdict. A job that fell short
//! of what was asked has a report, and its verdict says so; an error is told only where nothing was measured ([`Failed`]).
//! A report is data: [`report`] renders it as text, JSON, CSV or a page of HTML, and compares reports with each other.
//!
//! Several jobs may run in one process, each where its interfaces are (`IFACE@NAMESPACE`). A [`Member`] in the session makes
//! them begin together. A handle that is dropped ends its job and leaves nothing behind: no program at an interface, no
//! namespace, no thread.
//!
//! ```no_run
//! use netdyno::{Session, start};
//! # fn job() -> netdyno::Job { unimplemented!() }
//! let report = start(job(), Session::default())?.wait()?;
//! print!("{}", netdyno::report::text::render(&report, netdyno::report::text::Options::default()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # While it runs
//!
//! A job puts how it stands on its [`Board`] ten times a second. [`Handle::snapshot`] is the latest [`Snapshot`]; notes (what it
//! found out, what to beware of) are taken from the board. Who looks on is never waited for. [`Handle::pause`],
//! [`Handle::resume`] and [`Handle::set_rate`] change a run that sends, and its report says when that was.
//!
//! # Frames of your own
//!
//! A job sends packet expressions, scenarios and captures. Anything else is a source: [`start_with`] takes one beside the job.
//! [`source::Sequence`] makes one of an iterator of frames, with times or without; [`source::Frames`] is the trait behind it, for
//! who wants to fill buffers himself. Frames that follow from their number are better compiled to a [`traffic::Program`], which
//! several cores can share and the kernel can make by itself.
//!
//! # What it may, and what it needs
//!
//! Whatever a job does to others needs [`Consent`], which is given in the session and never by the job: to use an interface that
//! carries the default route or a login, to run a command, to write a file. Without it the job ends with an error that says so.
//! A job that sends or measures drops and fills: name interfaces that carry nothing else.
//!
//! Sending and measuring need root, or `CAP_NET_RAW`, `CAP_NET_ADMIN`, `CAP_BPF` and `CAP_PERFMON`; labs and other
//! namespaces need `CAP_SYS_ADMIN`. Reading, editing and writing captures needs nothing. Linux only.
//!
//! The library handles no signal, prints nothing and does not end the process. A signal handler of yours sets
//! [`Session::stop`](Session#structfield.stop) or calls [`Handle::stop`].
//!
//! # Trying it
//!
//! A [`lab`] is two hosts in namespaces of their own and what joins them; [`lab::Host::spec`] names their interfaces in jobs. The
//! examples make one each, and can be run as root on any machine:
//!
//! | Example | Shows |
//! |---|---|
//! | `send_and_measure` | the whole in twenty lines |
//! | `search` | a search for the throughput of a device |
//! | `custom_source` | frames of an iterator |
//! | `observer` | looking at a job while it runs, and changing it |
//! | `two_jobs` | two jobs that begin together |
//! | `iperf3` | a test of iperf3's protocol between the two hosts of a lab |
//! | `edit_capture` | a capture written, edited and read; consent |
//!
//! # Features
//!
//! What takes long to compile, or needs C, is a Cargo feature; `full` is all of them. A job that needs one that is not there fails, and
//! its error names the feature.
//!
//! | Feature | Adds |
//! |---|---|
//! | `netflow` (default) | jobs of the kinds [`Probe`](spec::Probe) and [`Collect`](spec::Collect), and searches for [`Flows`](spec::Flows) |
//! | `clickhouse` (default) | flow records to ClickHouse, by HTTP without TLS |
//! | `kafka` | flow records to Kafka: librdkafka is compiled |
//! | `parquet` | flow records as Parquet: zstd is compiled |
//! | `zstd` | captures that zstd compressed: zstd is compiled |
//! | `wasm` | plugins that are WebAssembly modules: wasmtime is compiled |
//!
//! # Stability
//!
//! Before 1.0 anything here may change between minor versions. What is written down has versions of its own:
//! `netdyno.job/1`, the report's and the snapshot's schema.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod capture;
pub mod lab;
pub mod report;
pub mod snapshot;
pub mod source;
pub mod spec;
pub mod traffic;
pub mod wire;

#[doc(inline)]
pub use ::job::{
    Among, Elsewhere, Failed, FarPort, Handle, Hold, Late, Member, Outcome, Session, start, start_with,
};
#[doc(no_inline)]
pub use report::Report;
#[doc(no_inline)]
pub use snapshot::{Board, Snapshot};
#[doc(no_inline)]
pub use spec::{Consent, Job};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
