//! tcpreplay's options, and what becomes of each here. `super` reads them and says what they mean together.

use crate::compat::autoopts::Spec;

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    Works,
    /// Taken, because what it asks for is always so, or has no meaning here.
    Nothing,
    /// Refused: why, and what to do instead.
    Refused(&'static str),
}
use Here::{Nothing, Refused, Works};

/// An option, and its line in the help.
#[derive(Debug)]
pub struct Known {
    pub spec: Spec,
    pub here: Here,
    pub help: &'static str,
}

const fn known(
    short: Option<char>,
    name: &'static str,
    value: Option<&'static str>,
    here: Here,
    help: &'static str,
) -> Known {
    Known { spec: Spec { name, short, value }, here, help }
}

/// All options. --loss-seed, --no-real-time and the last three are netdyno's.
pub const OPTIONS: [Known; 55] = [
    known(Some('i'), "intf1", Some("IFACE"), Works, "send on this interface"),
    known(Some('I'), "intf2", Some("IFACE"), Works, "send what the server sent on this one"),
    known(Some('c'), "cachefile", Some("FILE"), Works, "which packets go where, by tcpprep"),
    known(Some('2'), "dualfile", None, Works, "captures come in pairs, one for each interface"),
    known(Some('w'), "write", Some("FILE"), Works, "write the frames into a capture file instead"),
    known(Some('K'), "preload-pcap", None, Works, "read the captures into memory first"),
    known(Some('l'), "loop", Some("N"), Works, "send the captures so many times; 0 is without end"),
    known(None, "loopdelay-ms", Some("N"), Works, "wait so many milliseconds between loops"),
    known(None, "loopdelay-ns", Some("N"), Works, "wait so many nanoseconds between loops"),
    known(Some('x'), "multiplier", Some("N"), Works, "so many times as fast as captured"),
    known(Some('p'), "pps", Some("N"), Works, "so many packets a second"),
    known(None, "pps-multi", Some("N"), Works, "with --pps: so many packets at a time"),
    known(Some('M'), "mbps", Some("N"), Works, "so many Mbit/s of layer 2 without FCS; 0 is --topspeed"),
    known(Some('t'), "topspeed", None, Works, "as fast as it goes"),
    known(
        Some('o'),
        "oneatatime",
        None,
        Works,
        "ask on standard input for how many packets to send, again and again",
    ),
    known(None, "maxsleep", Some("MS"), Works, "cut longer pauses of the capture to this"),
    known(Some('L'), "limit", Some("N"), Works, "send so many packets at most"),
    known(None, "duration", Some("SECONDS"), Works, "send for so long at most"),
    known(None, "include", Some("LIST"), Works, "send only these packets of each file: 1-5,9,72-"),
    known(None, "exclude", Some("LIST"), Works, "send all packets but these"),
    known(None, "unique-ip", None, Works, "with --loop: other addresses, and so new flows, in each loop"),
    known(
        None,
        "unique-ip-loops",
        Some("N"),
        Works,
        "with --unique-ip: other addresses in every so many loops",
    ),
    known(None, "pktlen", None, Works, "packets captured short get zeros up to the length they had"),
    known(
        None,
        "stats",
        Some("SECONDS"),
        Works,
        "print what was sent so far this often; 0 is after each loop",
    ),
    known(None, "no-flow-stats", None, Works, "print no flows, and do not count them"),
    known(None, "netmap", None, Works, "the fastest engine that works here, as without it"),
    known(None, "xdp", None, Works, "the fastest engine that works here, as without it"),
    known(Some('q'), "quiet", None, Works, "no warnings"),
    known(Some('W'), "suppress-warnings", None, Works, "no warnings"),
    known(Some('P'), "pid", None, Works, "print the process's number on standard error"),
    known(None, "listnics", None, Works, "list the interfaces"),
    known(Some('V'), "version", None, Works, "print the version"),
    known(Some('h'), "less-help", None, Works, "this"),
    known(Some('H'), "help", None, Works, "this"),
    known(Some('!'), "more-help", None, Works, "this"),
    known(Some('T'), "timer", Some("HOW"), Nothing, "gtod, nano, select, ioport"),
    known(None, "sleep-accel", Some("N"), Nothing, ""),
    known(None, "nm-delay", Some("SECONDS"), Nothing, ""),
    known(None, "xdp-batch-size", Some("N"), Nothing, ""),
    known(None, "skip-soft-errors", None, Nothing, ""),
    known(Some('d'), "dbug", Some("N"), Nothing, ""),
    known(None, "flow-expiry", Some("SECONDS"), Works, "a flow silent for longer counts as another"),
    known(Some('v'), "verbose", None, Works, "have tcpdump print each packet"),
    known(Some('A'), "decode", Some("ARGS"), Works, "with --verbose: options for tcpdump"),
    known(None, "load-opts", Some("FILE"), Works, "read options from a file, too: its section [TCPREPLAY]"),
    known(None, "no-load-opts", None, Nothing, ""),
    known(None, "save-opts", Some("FILE"), Works, "write the options into a file for --load-opts, and end"),
    known(None, "io-uring", None, Nothing, "the fastest engine that works here is taken"),
    known(None, "loss", Some("PERCENT"), Works, "do not send this share of the packets"),
    known(
        None,
        "loss-seed",
        Some("SEED"),
        Works,
        "which packets --loss loses: the same seed, the same packets",
    ),
    known(None, "no-real-time", None, Works, "do not go before other programs when they hold up the sending"),
    known(
        None,
        "raw",
        None,
        Refused("frames go out as they are, past this host's routing: `netdyno replay FILE --on IFACE`"),
        "",
    ),
    known(None, "skip-corrupt", None, Nothing, "what is sound of a damaged capture is always sent"),
    known(None, "departure-times", None, Works, "with -w: the times at which frames would leave, from 0"),
    known(
        None,
        "yes-disrupt",
        Some("IFACE"),
        Works,
        "yes, use it although it carries the default route or your login",
    ),
];
