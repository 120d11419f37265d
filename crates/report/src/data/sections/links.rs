//! Times without a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_false;

/// An interface of the run had no link for a time. What was sent meanwhile is lost, and not by the device under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// The interface, as the user named it.
    pub interface: String,
    /// Role of the interface in the run: `send`, `measure`, ...
    pub role: String,
    /// What happened to it.
    pub what: LinkChange,
    /// When it was noticed, from the start of the run: at once, or up to 50 ms late.
    pub at_ns: u64,
    /// Left out where the link had not come back when the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// The link came and went between two readings, which are at `at_ns` and `duration_ns` later: it was down for less than
    /// that. Left out when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub between_looks: bool,
}

/// What happened to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkChange {
    /// The cable was out, or the other end down.
    CarrierLost,
    /// The interface was set down on this host.
    SetDown,
    /// The interface went away.
    Removed,
}

impl LinkEvent {
    /// For a person.
    pub fn sentence(&self) -> String {
        let LinkEvent { interface, role, .. } = self;
        let what = match self.what {
            LinkChange::CarrierLost => "lost its carrier",
            LinkChange::SetDown => "was set down",
            LinkChange::Removed => "was removed",
        };
        let at = crate::data::units::time(self.at_ns);
        let lasted = match self.duration_ns {
            Some(ns) if self.between_looks => format!(" for less than {}", crate::data::units::time(ns)),
            Some(ns) => format!(" for {}", crate::data::units::time(ns)),
            None if self.what == LinkChange::Removed => String::new(),
            None => " and did not come back".to_owned(),
        };
        format!("{interface} ({role}) {what} {at} after the start{lasted}")
    }
}
