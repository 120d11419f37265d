//! What the loaders of objects made of C do alike: which of several programs is taken, and what libbpf's errors mean. The
//! objects themselves, with their generated skeletons, are known to one module of each crate that has one.

use crate::error::ProgramError;
use crate::kernel;
use crate::mapping::{Mapping, Words};
use crate::program::Program;
use crate::quiet::Quiet;
use libbpf_rs::{ErrorKind, MapCore, MapMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::{fs, io};

/// Programs of one object that do the same, by what the kernel must have. Only the newest sees frames in several buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Linux 5.18: frames in several buffers, bytes copied out of them.
    Buffers,
    /// Linux 5.12: atomic operations that give a value.
    Atomics,
    /// Linux 5.9.
    Links,
}

impl Needs {
    /// In the order in which they are tried.
    pub const ALL: [Needs; 3] = [Needs::Buffers, Needs::Atomics, Needs::Links];

    /// The oldest Linux that it is for.
    fn linux(self) -> (u32, u32) {
        match self {
            Needs::Buffers => (5, 18),
            Needs::Atomics => (5, 12),
            Needs::Links => kernel::OLDEST,
        }
    }

    /// Why a program was refused that this kernel should take; `None` if it is for a newer kernel.
    pub fn unexpected(self, error: &ProgramError) -> Option<String> {
        self.not_by_age(error, kernel::is_before(self.linux()))
    }

    fn not_by_age(self, error: &ProgramError, is_before: bool) -> Option<String> {
        let (version, level) = self.linux();
        (!is_before)
            .then(|| format!("the program for Linux {version}.{level} and newer was refused: {error}"))
    }
}

/// A way that was tried, and why it was refused.
pub type Refusal<T> = (T, ProgramError);

/// The first that is loaded, and the first that was not. Of those that are not, the last asks for the least, so that its
/// reason counts if there is none. Errors other than [`ProgramError::Load`] end the search.
///
/// # Errors
/// The first error other than [`ProgramError::Load`], else that of the last.
pub fn first_of<T: Copy, L>(
    program: &'static str,
    ways: impl IntoIterator<Item = T>,
    mut load: impl FnMut(T) -> Result<L, ProgramError>,
) -> Result<(L, Option<Refusal<T>>), ProgramError> {
    let (mut first, mut last) = (None, None);
    for way in ways {
        Quiet::forget();
        match load(way) {
            Ok(loaded) => return Ok((loaded, first)),
            Err(error @ ProgramError::Load { .. }) if first.is_none() => first = Some((way, error)),
            Err(error @ ProgramError::Load { .. }) => last = Some(error),
            Err(other) => return Err(other),
        }
    }
    Err(last.or(first.map(|(_, error)| error)).unwrap_or_else(|| no_constants(program)))
}

/// What libbpf's error means for the user; `bytes` is what the program's maps take. Call it while [`Quiet`] keeps what
/// libbpf says.
pub fn refusal(program: &'static str, bytes: u64, error: &libbpf_rs::Error) -> ProgramError {
    match error.kind() {
        // The verifier's refusal is EACCES, which has the same kind; but it comes with its log.
        ErrorKind::PermissionDenied if !Quiet::has_verifiers_log() => {
            ProgramError::Permission { what: "loading an XDP program" }
        }
        ErrorKind::OutOfMemory => ProgramError::Memory { program, bytes },
        _ => ProgramError::Load { program, reason: Quiet::refusal(&format!("{error:#}")) },
    }
}

/// An object without its read-only data cannot be told what to do.
pub fn no_constants(program: &'static str) -> ProgramError {
    ProgramError::Load { program, reason: "its object has no constants".to_owned() }
}

/// Maps all entries of an array map that was made with `BPF_F_MMAPABLE`.
///
/// # Errors
/// That the map's size cannot be read, or what [`Mapping::new`] says.
pub fn map_all<T: Words>(map: &MapMut<'_>) -> Result<Mapping<T>, ProgramError> {
    Mapping::new(map.as_fd(), map.max_entries() as usize)
        .map_err(|error| ProgramError::System { what: "mapping the counters", error })
}

/// One more than the highest CPU number that can ever run the program; numbers may have gaps.
///
/// # Errors
/// That the kernel does not say how many CPUs there can be.
pub fn cpu_numbers() -> Result<u32, ProgramError> {
    const FILE: &str = "/sys/devices/system/cpu/possible";
    let failed = |error| ProgramError::System { what: "reading /sys/devices/system/cpu/possible", error };
    let text = fs::read_to_string(FILE).map_err(failed)?;
    let highest = text.trim().rsplit([',', '-']).next().and_then(|number| number.parse::<u32>().ok());
    highest.map(|number| number + 1).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
}

/// A program that was loaded, beyond the life of its skeleton.
///
/// # Errors
/// That its file descriptor cannot be duplicated.
pub fn keep(program: BorrowedFd<'_>) -> Result<Program, ProgramError> {
    Program::keep(program).map_err(|error| ProgramError::System { what: "keeping the XDP program", error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_better_program_was_refused_is_kept_unless_it_is_the_kernels_age() {
        let refusing = |refused: &'static [Needs]| {
            move |needs| match refused.contains(&needs) {
                true => Err(ProgramError::Load { program: "meter", reason: format!("not {needs:?}") }),
                false => Ok(needs),
            }
        };
        let (loaded, refused) = first_of("meter", Needs::ALL, refusing(&[])).expect("the newest");
        assert!(loaded == Needs::Buffers && refused.is_none());
        let (loaded, refused) =
            first_of("meter", Needs::ALL, refusing(&[Needs::Buffers, Needs::Atomics])).expect("the oldest");
        let (needs, error) = refused.expect("a reason");
        assert_eq!((loaded, needs, needs.not_by_age(&error, true)), (Needs::Links, Needs::Buffers, None));
        let said = needs.not_by_age(&error, false).expect("a reason");
        assert!(said.contains("Linux 5.18") && said.contains("not Buffers"), "{said}");
        let error =
            first_of("meter", Needs::ALL, refusing(&Needs::ALL)).expect_err("none is taken").to_string();
        assert!(error.contains("not Links"), "{error}");
    }
}
