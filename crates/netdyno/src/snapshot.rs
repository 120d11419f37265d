//! How a job stands while it runs.

#[doc(inline)]
pub use ::snapshot::{
    Board, Bound, Cloned, Collected, Connections, Core, Count, Counter, Endpoint, Flows, ManualControl,
    Passage, Phase, Queue, Request, Search, Snapshot, Stream, Title, Trial, Worker, line,
};

#[doc(inline)]
pub use ::histogram::{Bucket, Histogram};
