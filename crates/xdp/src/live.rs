//! Runs.
/// x
#[derive(Debug)] pub struct Live;
