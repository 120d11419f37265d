//! Without Parquet: no such file is written ([`HERE`]).

use crate::series::Trend;
use std::path::Path;

/// Whether this build can write such files.
pub const HERE: bool = false;

/// It is an error.
///
/// # Errors
/// Always.
pub fn parquet(_: &Trend) -> Result<Vec<u8>, String> {
    Err(report::absent("Parquet", "parquet"))
}

/// No file is known to be one.
pub fn is_table(_: &Path) -> bool {
    false
}
