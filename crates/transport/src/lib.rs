//! Endpoint tests over the host's TCP and UDP: sockets with their options, data phases, control connections.
//!
//! What is said over a control connection is crate `endpoint`'s; jobs and drop-ins call the drivers of this crate.
//!
//! | module | what it has |
//! |---|---|
//! | [`socket`] | [`socket::Options`]; `connect`, `listen`, `udp`, `unix`; what the kernel made of them ([`socket::Actual`]) |
//! | [`tcp_info`] | a connection's `TCP_INFO` |
//! | [`phase`] | what all data phases take and yield: [`phase::Until`], [`phase::Stop`], [`phase::Progress`], [`phase::Done`] |
//! | [`stream`] | bytes in one direction over TCP or a Unix socket: `send`, `receive` |
//! | [`exchange`] | requests and responses: `ask`, `answer`, and over a connection each: `ask_each`, `answer_each` |
//! | [`datagram`] | datagrams in one direction, with sequence numbers: `send`, `receive` |
//! | [`crowd`] | the same over thousands of connections by few threads; connections that are opened, held, closed |
//! | [`native`] | netdyno's own tests: client and server |
//! | [`files`], [`memory`], [`rights`] | how many files the process may open; what connections take of memory; leaving root |
//! | `lobby` | what strangers may take of a server: seats, fair by address; memory of all tests together |
//! | [`pace`] | schedules |
//! | [`cpu`] | what processors were used for, and pinning |
//!
//! Every data phase is a blocking function for one thread, over one connection, or of `crowd` over many. Others watch its [`phase::Progress`] and end it by its
//! [`phase::Stop`], at which it ends within a tenth of a second.

pub mod cpu;
pub mod crowd;
pub mod datagram;
pub mod exchange;
pub mod files;
pub mod iperf3;
pub mod lobby;
pub mod memory;
pub mod native;
pub mod netperf;
pub mod pace;
pub mod phase;
pub mod rights;
pub mod socket;
pub mod stream;
pub mod sys;
pub mod tcp_info;
