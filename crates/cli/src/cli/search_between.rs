//! `netdyno search socket-buffer` and `netdyno search transactions`: searches between two endpoints. Their tests are those of `netdyno
//! endpoint`, and so are the options.

use super::Output;
use super::declared::{Asked, LeavesOut};
use super::search::{Earlier, said};
use clap::{Arg, Args};
use spec::setting::Settings;

const FAR_END: &str = "The server is the far end: netdyno endpoint serve there, first.";

/// A search for this, and the test that is done again and again.
#[derive(Debug, Args)]
#[command(mut_arg("host", |host| said(host, "The server (netdyno endpoint serve): HOST or HOST:PORT. Its port, if none is said, is 12866").required(false).required_unless_present_any(["lab", "resume"]).conflicts_with("lab")))]
#[command(mut_arg("duration", |time| said(time, "Measure each trial for this long. Default: 5s; in a lab 1s").long("trial-duration").help_heading("Search")))]
#[command(mut_arg("warm-up", |time| said(time, "Do not measure what comes in so long before. Default: 200ms").help_heading("Search")))]
pub struct Between<T: Settings, L: LeavesOut> {
    #[command(flatten)]
    pub find: Asked<T>,
    #[command(flatten)]
    pub asked: Asked<spec::EndpointSearch, L>,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

impl<T: Settings, L: LeavesOut> Between<T, L> {
    /// The job, the result to go on from, and where the result goes.
    pub fn job(
        self,
        find: impl FnOnce(T) -> spec::EndpointFind,
    ) -> (spec::Job, Option<std::path::PathBuf>, Output) {
        let search = spec::EndpointSearch { find: find(self.find.0), ..self.asked.0 };
        (search.into(), self.earlier.resume, self.output)
    }
}

/// The test is an option here, and one of some.
fn test(test: Arg, usual: &'static str, text: &'static str) -> Arg {
    said(test, text).long("test").required(false).default_value(usual).help_heading("Traffic")
}

#[derive(Debug, Args)]
#[command(after_help = FAR_END)]
#[command(mut_arg("test", |arg| test(arg, "tcp-stream", "What is done with each size: tcp-stream, tcp-maerts, udp-stream, udp-maerts, tcp-rr or udp-rr")))]
pub struct SocketBuffer {
    #[command(flatten)]
    pub between: Between<spec::SocketBuffer, OfBuffers>,
}

/// A trial ends by time, and its buffers are what is varied.
#[derive(Debug, Clone)]
pub struct OfBuffers;

impl LeavesOut for OfBuffers {
    const OPTIONS: &'static [&'static str] = &[
        "bytes",
        "transactions",
        "hold",
        "connect-timeout",
        "wait",
        "ssid",
        "mesh",
        "all-at-once",
        "send-buffer",
        "receive-buffer",
        "remote-send-buffer",
        "remote-receive-buffer",
        "ports",
    ];
}

#[derive(Debug, Args)]
#[command(after_help = FAR_END)]
#[command(mut_arg("test", |arg| test(arg, "tcp-rr", "What is offered: tcp-rr or udp-rr")))]
#[command(mut_arg("p99", |p99| p99.required_unless_present_any(["below", "resume"])))]
#[command(mut_arg("burst", |burst| said(burst, "Transactions in flight over each connection at most. Default: 1024, and 16 in the closed loop")))]
pub struct Transactions {
    #[command(flatten)]
    pub between: Between<spec::MostTransactions, OfTransactions>,
}

/// A trial ends by time, and its rate is what is varied. There are requests and responses, and no stream.
#[derive(Debug, Clone)]
pub struct OfTransactions;

impl LeavesOut for OfTransactions {
    const OPTIONS: &'static [&'static str] = &[
        "bytes",
        "transactions",
        "hold",
        "connect-timeout",
        "wait",
        "ssid",
        "mesh",
        "all-at-once",
        "rate",
        "confidence",
        "iterations",
        "size",
        "method",
        "receive-method",
        "gso",
        "gro",
        "batch",
        "ports",
    ];
}
