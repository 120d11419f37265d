//! The words of `netdyno trend`.

use super::FigureKey;
use clap::{Args, ValueEnum, ValueHint};
use spec::{Ratio, Written};
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::parse_duration;

/// From when on results count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Seconds since 1970.
    Time(u64),
    Ago(Duration),
}

/// A day, a time, or an age.
fn since(text: &str) -> Result<Since, String> {
    let of_time = trend::parse_time(text).map(Since::Time);
    of_time.or_else(|| parse_duration(text).ok().map(Since::Ago)).ok_or_else(|| {
        "it is a day (2026-11-28), a time in UTC (2026-11-28T23:00:00Z) or an age (30d, 12h)".to_owned()
    })
}

/// How it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people.
    Text,
    /// JUnit's XML, a test for each figure.
    Junit,
    /// A summary in Markdown.
    Markdown,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Results form a series if they are of the same job (seeds and the folders of files may differ) on the same host, interfaces and \
drivers. Kernel, versions, MTU and offloads may differ within a series: where a figure changed, it is said which of these changed, too.\n\n\
Exit status: 0 looked at; with --check 1 if the newest result of a series lies in a worse group than the one before; 2 not looked at."
)]
pub struct Trend {
    /// The folder that holds results, each in a folder that --report wrote or as a file NAME.json, at any depth.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Exit status 1 if a figure of the newest result lies in a worse group than the one before.
    #[arg(long)]
    pub check: bool,
    /// Look at this figure alone, such as latency_p99, or throughput:64. May be given more than once.
    #[arg(long, value_name = "FIGURE", value_parser = FigureKey, hide_possible_values = true)]
    pub figure: Vec<report::get::Wanted>,
    /// Ignore changes that are smaller than this share, however certain they are: 1%.
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub least: Written<Ratio>,
    /// Ignore results from before this day, time or age: 2026-11-28, 30d. This accepts a change that was intended.
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Since>,
    /// Compare results of different hosts, such as identical runners of CI.
    #[arg(long)]
    pub any_host: bool,
    /// Print everything as one JSON object, with each value of each result (docs/trend.md).
    #[arg(long, help_heading = "Output", conflicts_with = "format")]
    pub json: bool,
    /// The format of the output.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text", help_heading = "Output")]
    pub format: Format,
    /// Write a page with a small plot for each figure into this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub page: Option<PathBuf>,
    /// Write a table with a row for each figure of each result into this file of Parquet, which DuckDB and pandas read.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub parquet: Option<PathBuf>,
    /// Afterwards remove results that are older than this, such as 90d, with the files that netdyno wrote beside them, and list them.
    #[arg(long, value_name = "AGE", value_parser = parse_duration, conflicts_with_all = ["since", "figure"])]
    pub prune: Option<Duration>,
    /// With --prune: keep the newest N of each series, however old they are.
    #[arg(long, value_name = "N", default_value_t = 40, requires = "prune")]
    pub keep_newest: usize,
}
