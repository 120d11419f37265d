//! What is to be reflected, and how: plain data.

use crate::stamp;

/// What to reflect, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Which way to attach; [`Mode::Auto`] takes the fastest that there is.
    pub mode: Mode,
    /// Only frames with a signature at their end; others pass to the host.
    pub only_signed: bool,
    /// Let only the Ethernet addresses change places.
    pub mac_only: bool,
    /// Leave frames for other Ethernet addresses than the interface's own to its filter. Test frames are seldom
    /// addressed to this host, so the default is to take all.
    pub own_address_only: bool,
    /// Answer STAMP test packets, and leave all else to the host. The other options but `mode` mean nothing then.
    pub stamp: Option<stamp::Options>,
}

/// Where frames are turned round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// The best that is possible, in the order of the others.
    #[default]
    Auto,
    /// In the driver.
    XdpNative,
    /// In the kernel's receive path: works with every driver, about half as fast.
    XdpGeneric,
}
