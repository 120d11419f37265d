//! How frames are to be forwarded: plain data.

use bpf::Hook;

/// Where frames are taken from their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In the driver.
    XdpNative,
    /// In the kernel's receive path, by XDP.
    XdpGeneric,
    /// In the kernel's receive path, by traffic control (tcx, Linux 6.6): knows super-frames and VLAN tags taken out.
    Tc,
}

impl Way {
    /// Its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Way::XdpNative => "xdp",
            Way::XdpGeneric => "xdp-generic",
            Way::Tc => "tc",
        }
    }

    pub(crate) fn hook(self) -> Hook {
        match self {
            Way::XdpNative => Hook::XdpNative,
            Way::XdpGeneric => Hook::XdpGeneric,
            Way::Tc => Hook::TcIngress,
        }
    }
}

/// How to forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Only from the first interface to the second.
    pub one_way: bool,
    /// Forward this many frames, both directions together, and drop what comes after.
    pub limit: Option<u64>,
    /// The largest packets that the second, the first interface sends (what arrives on the first leaves by the second).
    pub mtu: [u32; 2],
    /// Frames that arrive on the first, on the second interface may have checksums that were left to hardware.
    pub complete: [bool; 2],
    /// The driver of the second interface sends for XDP only while it has a program: give it one where nothing is taken from
    /// it (`one_way`).
    pub needs_program: bool,
}
