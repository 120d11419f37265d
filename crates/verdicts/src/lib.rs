//! Others' XDP programs under test: loaded from an object, run over frames without an interface ([`Trial`]), or attached, with their
//! verdicts counted by stream and their time by the kernel ([`Counter`]).
//!
//! The program is taken as it is. Nothing of it stays in the file system: its maps are not pinned. Callers: `netdyno xdp test` and
//! `netdyno lab --dut-xdp`; and runs in such a lab, which look at what is counted there ([`Watch`]).

#![deny(missing_docs, clippy::missing_errors_doc)]

mod counter;
mod error;
mod object;
mod trial;

pub use counter::{Counted, Counter, Row, Watch};
pub use error::VerdictsError;
pub use object::{Loaded, load};
pub use trial::{Judged, Timed, Trial};

/// What an XDP program says of a frame (linux/bpf.h), by its number.
const NAMES: [&str; 5] = ["aborted", "drop", "pass", "tx", "redirect"];

/// The name of a verdict: `pass`. What is none is `(verdict 7)`, which the kernel takes for `aborted`.
pub fn name(verdict: u32) -> String {
    NAMES.get(verdict as usize).map_or_else(|| format!("(verdict {verdict})"), |name| (*name).to_owned())
}

/// The kernel that runs programs, as `uname -r` prints it.
pub fn kernel() -> String {
    bpf::kernel::release()
}

/// Whether a frame goes on after that: to the host's stack, or out of an interface.
pub fn goes_on(verdict: u32) -> bool {
    (2..=4).contains(&verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_the_kernels_names() {
        assert_eq!([0, 1, 2, 3, 4].map(name), NAMES);
        assert_eq!(name(7), "(verdict 7)");
        assert_eq!([0, 1, 2, 3, 4, 5].map(goes_on), [false, false, true, true, true, false]);
    }
}
