//! Laws that hold for all programs.

use netdyno_traffic as traffic;

mod executor;
mod generate;
mod lanes;
mod share;
mod sides;
