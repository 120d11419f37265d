//! Folders of made-up results, read and judged.

mod faults;
mod folder;
mod made;
mod measured;
