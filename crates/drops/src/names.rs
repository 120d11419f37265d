//! Words for what was counted: functions and reasons of the running kernel.

use crate::btf::Btf;
use crate::counted::{Row, Tracepoint};
use crate::symbols::{Place, Symbols};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs;

/// A subsystem's part of a reason: the upper 16 bits.
const SUBSYSTEM: u32 = 16;

/// Function and reason of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// Of the kernel's source, or what is said in its place: that it is hidden or gone.
    pub function: String,
    /// As in the kernel's source, without what all have in common: NETFILTER_DROP.
    pub reason: String,
}

/// Looks functions and reasons up.
#[derive(Debug, Default)]
pub struct Names {
    reasons: HashMap<u32, String>,
    symbols: Option<Symbols>,
    has_reasons: bool,
}

impl Names {
    /// Those of the running kernel and of the modules that are loaded now. What cannot be read has no names.
    pub fn read() -> Names {
        let (reasons, has_reasons) = reasons();
        Names { reasons, symbols: Symbols::read().ok(), has_reasons }
    }

    /// The names of a row.
    pub fn of(&self, row: &Row) -> Named {
        if let Some(tracepoint) = row.tracepoint() {
            return Named {
                function: tracepoint_name(tracepoint).to_owned(),
                reason: of_xdp(tracepoint, row.reason),
            };
        }
        Named { function: self.function(row.location), reason: self.reason(row.reason) }
    }

    /// What keeps the functions from being named, and the remedy.
    pub fn missing(&self) -> Option<&'static str> {
        let hidden = self.symbols.as_ref().is_none_or(|symbols| symbols.caller(u64::MAX) == Place::Hidden);
        hidden.then_some(
            "the kernel hides the names of its functions from this process: it needs CAP_SYSLOG (sudo has it), or \
             `sysctl kernel.kptr_restrict=0`",
        )
    }

    fn function(&self, location: u64) -> String {
        match self.symbols.as_ref().map_or(Place::Hidden, |symbols| symbols.caller(location)) {
            Place::Function(name) => name,
            Place::Hidden => "(hidden)".to_owned(),
            Place::Unknown => "(of no module that is loaded)".to_owned(),
        }
    }

    fn reason(&self, reason: u32) -> String {
        if !self.has_reasons {
            return "(told since Linux 5.17)".to_owned();
        }
        match self.reasons.get(&reason) {
            Some(name) => name.clone(),
            None if reason >> SUBSYSTEM != 0 => {
                format!("(reason {} of subsystem {})", reason & 0xffff, reason >> SUBSYSTEM)
            }
            None => format!("(reason {reason})"),
        }
    }
}

/// The reasons of the kernel and its modules; whether there are any.
fn reasons() -> (HashMap<u32, String>, bool) {
    let mut found = HashMap::new();
    let Ok(bytes) = fs::read("/sys/kernel/btf/vmlinux") else { return (found, false) };
    let Some(kernel) = Btf::read(&bytes, None) else { return (found, false) };
    add(&mut found, &kernel);
    let has_reasons = kernel.tracepoint_values("kfree_skb").is_some_and(|values| values > 2);
    // Modules that give reasons of their own: few, and each says which numbers are its own.
    for module in ["openvswitch", "mac80211"] {
        if let Ok(bytes) = fs::read(format!("/sys/kernel/btf/{module}"))
            && let Some(module) = Btf::read(&bytes, Some(&kernel))
        {
            add(&mut found, &module);
        }
    }
    (found, has_reasons)
}

fn add(found: &mut HashMap<u32, String>, btf: &Btf<'_>) {
    let of_drops = |name: &str| name.ends_with("drop_reason") || name == "ovs_drop_reason";
    for (name, value) in btf.enumerations(of_drops) {
        let name = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name).trim_start_matches('_');
        found.entry(value).or_insert_with(|| name.to_owned());
    }
}

fn tracepoint_name(tracepoint: Tracepoint) -> &'static str {
    match tracepoint {
        Tracepoint::Exception => "xdp_exception",
        Tracepoint::BulkTx => "xdp_bulk_tx",
        Tracepoint::DevmapXmit => "xdp_devmap_xmit",
        Tracepoint::Redirect => "xdp_redirect_err",
    }
}

/// Of an exception the verdict, of others the error; that of a full ring is 0 in some drivers.
fn of_xdp(tracepoint: Tracepoint, reason: u32) -> String {
    if tracepoint == Tracepoint::Exception {
        let verdict = ["XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"].get(reason as usize);
        return verdict.map_or_else(|| format!("(verdict {reason})"), |verdict| (*verdict).to_owned());
    }
    match i32::try_from(reason) {
        Ok(0) | Err(_) => "RING_FULL".to_owned(),
        Ok(errno) => format!("{:?}", Errno::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_running_kernels_names() {
        let names = Names::read();
        let (number, _) =
            names.reasons.iter().find(|(_, name)| *name == "NETFILTER_DROP").expect("since Linux 5.17");
        assert_eq!(names.reason(*number), "NETFILTER_DROP");
        assert_eq!(names.reason(0x7f_0003), "(reason 3 of subsystem 127)");
        assert_eq!(of_xdp(Tracepoint::Exception, 0), "XDP_ABORTED");
    }
}
