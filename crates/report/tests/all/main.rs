//! The report as its users see it, one binary for all of it.

mod compare;
mod fixtures;
mod golden;
mod hostile;
mod live;
mod page;
mod renderings;
mod searches;
mod shape;
mod store;
mod widths;
