//! What can go wrong with the meter, in words that say what to do about it.

use bpf::ProgramError;

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// An option is out of its range.
    #[error("{0}")]
    Options(String),
    /// There is not enough memory for the tables.
    #[error(
        "no memory for the meter's tables ({bytes} bytes; {} for each stream, 32 KB for each stream with a histogram, 8 for \
         each arrival time): ask for fewer streams, histograms or arrivals, or raise the limit of this cgroup",
        crate::layout::STREAM_BYTES
    )]
    Memory {
        /// How much they take.
        bytes: u64,
    },
    /// Anything else: no such interface, no rights, or no way to count there.
    #[error(transparent)]
    Program(ProgramError),
}

impl From<ProgramError> for MeterError {
    fn from(error: ProgramError) -> MeterError {
        match error {
            ProgramError::Memory { bytes, .. } => MeterError::Memory { bytes },
            other => MeterError::Program(other),
        }
    }
}
