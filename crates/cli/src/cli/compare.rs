//! The words of `netdyno compare`.

use clap::{Args, ValueHint};
use spec::{Ratio, Written};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "The table: parts are a run's intervals but the first and the last, neighbours joined into about 20 of equal length; \
effect is Cliff's delta, from -1 (every value of B is below every value of A) over 0 to +1 (above), or with g Hedges' g, the \
difference in standard deviations.\n\n\
Exit status: 0 nothing is worse, 1 something is worse by more than the noise, 2 not compared."
)]
pub struct Compare {
    /// Folders that --report wrote, or their result.json or report.html: A and B; with --against all of these are A.
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::AnyPath)]
    pub results: Vec<PathBuf>,
    /// B: several results a side are repetitions, which tell how much a run differs from itself.
    #[arg(long, value_name = "RESULT", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub against: Vec<PathBuf>,
    /// Take differences of less than this share of A for none, however sure they are: 1%.
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub least: Written<Ratio>,
    /// Print the comparison as one JSON object (docs/compare.md) on standard output.
    #[arg(long)]
    pub json: bool,
    /// Write comparison.json and comparison.html into this folder: a page with the differences and their noise, the
    /// conditions that differ, and the runs' plots over each other.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub report: Option<PathBuf>,
}
