//! A result as a person or another program reads it: a summary in text, a page, tables for spreadsheets, tcpreplay's block. All
//! of it is made from `data` and from nothing else.

pub mod classic;
pub(crate) mod compare;
pub mod conclusion;
pub mod csv;
pub mod drops;
pub(crate) mod expected;
mod floor;
pub mod html;
pub mod kernel_counters;
pub mod live;
mod search_flows;
mod search_tables;
pub(crate) mod search_text;
pub(crate) mod sections;
pub(crate) mod table;
mod tabular;
pub mod text;
pub mod xdp;
