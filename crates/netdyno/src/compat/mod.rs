//! Other tools' command lines, taken as they are and translated into netdyno's own.
//!
//! Called as `netdyno TOOL ...`, or through a link to netdyno that has the tool's name.

mod autoopts;
mod presets;
pub mod tcpcapinfo;
pub mod tcpprep;
pub mod tcpreplay;
mod tcpreplay_edit;

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The tools whose names netdyno answers to.
const TOOLS: [&str; 5] = ["tcpcapinfo", "tcpprep", "tcpreplay", "tcpreplay-edit", "tcprewrite"];

/// The words of our own command line for those we were called with.
pub fn arguments(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|word| Path::new(word).file_name()).and_then(OsStr::to_str);
    if let Some(tool) = TOOLS.into_iter().find(|tool| name == Some(tool)) {
        words.insert(1, tool.into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_a_tools_name_is_that_tool() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            arguments(words("/usr/local/bin/tcpreplay -i eth0")),
            words("/usr/local/bin/tcpreplay tcpreplay -i eth0")
        );
        for same in ["netdyno replay x.pcap", "/opt/tcpreplay/netdyno info x.pcap"] {
            assert_eq!(arguments(words(same)), words(same));
        }
    }
}
