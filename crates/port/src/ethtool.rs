//! What a driver tells through the `SIOCETHTOOL` ioctl: its name, link speed, rings, channels, offloads.
//!
//! The ioctl is used rather than the newer netlink family because every kernel and driver answers it and
//! small virtual machines' kernels are often built without the latter. Reading needs no privilege; the few
//! setters serve the lab, which owns its devices. netdyno changes no setting of a user's interface.
//!
//! Structures: `include/uapi/linux/ethtool.h`. All of them are sequences of 32-bit words that start with
//! the command, so one buffer of words serves every command.
#![allow(unsafe_code, reason = "an ioctl that carries a pointer has no safe form")]

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::Serialize;

const GDRVINFO: u32 = 0x03;
const GRINGPARAM: u32 = 0x10;
const GCHANNELS: u32 = 0x3c;
const GFLAGS: u32 = 0x25;
const GLINKSETTINGS: u32 = 0x4c;
const GET_TS_INFO: u32 = 0x41;

const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
/// `ETH_SS_STATS`.
const SET_STATISTICS: u32 = 1;
/// Bytes of a counter's name.
const NAME: usize = 32;
/// No driver has more: a hundred queues with a hundred counters each.
const MOST_STATISTICS: usize = 16_384;

const FLAG_LRO: u32 = 1 << 15;
const FLAG_RX_VLAN: u32 = 1 << 8;

/// The most words any structure here has: link settings with three masks of 127 words.
const WORDS: usize = 12 + 3 * 127;

/// Speed as the driver reports it when it does not know.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// An offload that joins or cuts up frames, as it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// What everybody calls it: `GRO`.
    pub name: &'static str,
    /// The kernel's name of it, as `ethtool -k` prints and `ethtool -K` takes: `rx-gro`.
    pub feature: &'static str,
    /// Is it on?
    pub on: bool,
}

/// Offloads that can be asked for one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Received frames of a flow are joined before the stack sees them.
    Gro,
    /// The stack hands over large segments that are cut just before the driver.
    Gso,
    /// The NIC cuts large TCP segments.
    Tso,
    /// The NIC computes checksums of frames sent.
    TxChecksum,
    /// The NIC checks checksums of frames received.
    RxChecksum,
}

impl Offload {
    /// The commands that get and set it.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::Gro => (0x2b, 0x2c),
            Self::Gso => (0x23, 0x24),
            Self::Tso => (0x1e, 0x1f),
            Self::TxChecksum => (0x16, 0x17),
            Self::RxChecksum => (0x14, 0x15),
        }
    }
}

/// A driver and the device it drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// As the kernel calls it.
    pub name: String,
    /// As the driver says, often the kernel's.
    pub version: String,
    /// As the driver says.
    pub firmware: String,
    /// Where the device sits, e.g. a PCI address; empty for virtual ones.
    pub bus: String,
}

/// Something that has a current value and a most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What is set.
    pub now: u32,
    /// What is possible.
    pub max: u32,
}

/// Descriptors in each receive and transmit ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// For frames that arrive.
    pub rx: Limit,
    /// For frames that are sent.
    pub tx: Limit,
}

/// Queues, each with an interrupt of its own. Drivers count receive and transmit queues apart, combined, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// Only for frames that arrive.
    pub rx: Limit,
    /// Only for frames that are sent.
    pub tx: Limit,
    /// For both.
    pub combined: Limit,
}

impl Channels {
    /// How many queues can send at the same time.
    pub fn transmit(&self) -> Limit {
        Limit { now: self.tx.now + self.combined.now, max: self.tx.max.max(self.combined.max) }
    }

    /// How many queues can receive at the same time.
    pub fn receive(&self) -> Limit {
        Limit { now: self.rx.now + self.combined.now, max: self.rx.max.max(self.combined.max) }
    }
}

/// What the hardware's own clock can be used for, and is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimeStamping {
    /// The clock that its stamps are of: N of `/dev/ptpN`.
    pub clock: Option<u32>,
    /// It can stamp each frame it receives, not only those of PTP.
    pub can_stamp_all: bool,
    /// It does so now. `None`: the driver does not say.
    pub stamps_all: Option<bool>,
    /// It can stamp frames that it sends.
    pub can_stamp_sent: bool,
    /// It does so now, of frames for which that is asked. `None`: the driver does not say.
    pub stamps_sent: Option<bool>,
    /// The driver stamps frames as it hands them to the device.
    pub driver_stamps_sent: bool,
    /// Which frames it stamps on receiving (HWTSTAMP_FILTER_*), where the driver says that.
    pub receive_filter: Option<i32>,
}

/// One interface, asked in the network namespace of the thread that opened this.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
    name: String,
}

impl Ethtool {
    /// Opens the interface of this name in the calling thread's network namespace.
    ///
    /// # Errors
    /// ENODEV of a name that no interface has; EMFILE.
    pub fn open(name: &str) -> Result<Self, Errno> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(Errno::NODEV);
        }
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, name: name.to_owned() })
    }

    /// Who drives it (ETHTOOL_GDRVINFO).
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that does not answer; ENODEV.
    pub fn driver(&self) -> Result<Driver, Errno> {
        let words = self.call(GDRVINFO, &[])?;
        let text = |field: usize| {
            let bytes: Vec<u8> =
                words[1 + field * 8..9 + field * 8].iter().flat_map(|word| word.to_ne_bytes()).collect();
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(Driver { name: text(0), version: text(1), firmware: text(2), bus: text(3) })
    }

    /// Megabits per second, if the driver knows.
    ///
    /// # Errors
    /// ENODEV of an interface that went away.
    pub fn speed_mbps(&self) -> Result<Option<u32>, Errno> {
        // First call: the kernel answers with the negated number of words its masks need (in the last byte
        // of word 3). Second call: the settings.
        let masks = self.call(GLINKSETTINGS, &[])?[3].to_ne_bytes()[3] as i8;
        let words =
            self.call(GLINKSETTINGS, &[0, 0, u32::from_ne_bytes([0, 0, 0, masks.wrapping_neg() as u8])])?;
        Ok(Some(words[1]).filter(|speed| *speed != SPEED_UNKNOWN && *speed != 0))
    }

    /// Entries of its rings (ETHTOOL_GRINGPARAM).
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that has none; ENODEV.
    pub fn rings(&self) -> Result<Rings, Errno> {
        let words = self.call(GRINGPARAM, &[])?;
        Ok(Rings { rx: Limit { now: words[5], max: words[1] }, tx: Limit { now: words[8], max: words[4] } })
    }

    /// Its queues (ETHTOOL_GCHANNELS).
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that does not say; ENODEV.
    pub fn channels(&self) -> Result<Channels, Errno> {
        let words = self.call(GCHANNELS, &[])?;
        let limit = |at: usize| Limit { now: words[at + 4], max: words[at] };
        Ok(Channels { rx: limit(1), tx: limit(2), combined: limit(4) })
    }

    /// Is it on?
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that does not know it; ENODEV.
    pub fn offload(&self, offload: Offload) -> Result<bool, Errno> {
        Ok(self.call(offload.commands().0, &[])?[1] != 0)
    }

    /// Switches an offload. For devices the caller made itself (the lab's); needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// EPERM, EOPNOTSUPP, ENODEV.
    pub fn set_offload(&self, offload: Offload, on: bool) -> Result<(), Errno> {
        self.call(offload.commands().1, &[u32::from(on)]).map(drop)
    }

    /// Whether the NIC itself joins received frames.
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that does not say; ENODEV.
    pub fn large_receive_offload(&self) -> Result<bool, Errno> {
        Ok(self.call(GFLAGS, &[])?[1] & FLAG_LRO != 0)
    }

    /// What joins and cuts up frames, as far as the driver tells.
    pub fn offloads(&self) -> Vec<Setting> {
        let known = [
            ("GRO", "rx-gro", Offload::Gro),
            ("GSO", "tx-generic-segmentation", Offload::Gso),
            ("TSO", "tx-tcp-segmentation", Offload::Tso),
        ];
        let setting = |(name, feature, which)| Some(Setting { name, feature, on: self.offload(which).ok()? });
        let mut offloads: Vec<_> = known.into_iter().filter_map(setting).collect();
        let joined = self.large_receive_offload().ok();
        offloads.extend(joined.map(|on| Setting { name: "LRO", feature: "rx-lro", on }));
        offloads
    }

    /// The driver's own counters by name: `ethtool -S`.
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that has none; ENODEV.
    pub fn statistics(&self) -> Result<Vec<(String, u64)>, Errno> {
        // struct ethtool_sset_info: command, padding, a mask of sets in 64 bits, and the size of each set in it.
        let count = self.call(GSSET_INFO, &[0, 1 << SET_STATISTICS])?[4] as usize;
        if count == 0 || count > MOST_STATISTICS {
            return Err(Errno::OPNOTSUPP);
        }
        let mut fenced = Fenced::new(8 + 4 + MOST_STATISTICS * NAME)?;
        // struct ethtool_gstrings: command, set, how many, names.
        self.ask(&mut fenced, &[GSTRINGS, SET_STATISTICS, count as u32])?;
        let name = |at: usize| {
            let bytes = fenced.bytes().get(12 + at * NAME..)?.get(..NAME)?;
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME);
            Some(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
        };
        let names: Vec<String> = (0..count).map_while(name).collect();
        // struct ethtool_stats: command, how many, values.
        self.ask(&mut fenced, &[GSTATS, count as u32])?;
        let value = |at: usize| {
            Some(u64::from_ne_bytes(fenced.bytes().get(8 + at * 8..)?.get(..8)?.try_into().ok()?))
        };
        Ok(names.into_iter().zip((0..count).map_while(value)).collect())
    }

    /// One command whose answer has no fixed length.
    fn ask(&self, fenced: &mut Fenced, words: &[u32]) -> Result<(), Errno> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        fenced.begin_with(&bytes);
        // SAFETY: `fenced` is memory of ours that ends in pages nobody may write: an answer that is longer than what
        // was asked for (a driver that has more counters by now) ends in EFAULT, and overwrites nothing.
        unsafe { self.ioctl(fenced.start()) }
    }

    /// Time stamps of the hardware.
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that does not say; ENODEV.
    pub fn time_stamping(&self) -> Result<TimeStamping, Errno> {
        // struct ethtool_ts_info: command, kinds of stamps, clock (-1: none), kinds of sending, three spare words,
        // filters of receiving as bits.
        let words = self.call(GET_TS_INFO, &[])?;
        let mut config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
        // SAFETY: the command's structure is this one.
        let asked = unsafe { self.request(libc::SIOCGHWTSTAMP, (&raw mut config).cast()) };
        Ok(TimeStamping {
            clock: u32::try_from(words[2] as i32).ok(),
            can_stamp_all: words[7] & (1 << libc::HWTSTAMP_FILTER_ALL) != 0,
            stamps_all: asked.ok().map(|()| config.rx_filter as u32 == libc::HWTSTAMP_FILTER_ALL),
            can_stamp_sent: words[1] & libc::SOF_TIMESTAMPING_TX_HARDWARE != 0
                && words[3] & (1 << libc::HWTSTAMP_TX_ON) != 0,
            stamps_sent: asked.ok().map(|()| config.tx_type as u32 == libc::HWTSTAMP_TX_ON),
            driver_stamps_sent: words[1] & libc::SOF_TIMESTAMPING_TX_SOFTWARE != 0,
            receive_filter: asked.ok().map(|()| config.rx_filter),
        })
    }

    /// Whether the NIC takes VLAN tags out of frames it receives, so that XDP sees them without.
    ///
    /// # Errors
    /// EOPNOTSUPP of a driver that does not say; ENODEV.
    pub fn takes_tags_out(&self) -> Result<bool, Errno> {
        Ok(self.call(GFLAGS, &[])?[1] & FLAG_RX_VLAN != 0)
    }

    /// One ethtool command: `arguments` follow the command word, the answer is what the kernel left there.
    fn call(&self, command: u32, arguments: &[u32]) -> Result<[u32; WORDS], Errno> {
        let mut words = [0_u32; WORDS];
        words[0] = command;
        words[1..=arguments.len()].copy_from_slice(arguments);
        // SAFETY: `words` is at least as long as the structure of every command that is called this way, and the
        // kernel writes no more than that structure.
        unsafe { self.ioctl(words.as_mut_ptr().cast()) }?;
        Ok(words)
    }

    /// # Safety
    /// `data` points to a structure that begins with its command, in memory that holds whatever the command answers.
    unsafe fn ioctl(&self, data: *mut libc::c_char) -> Result<(), Errno> {
        // SAFETY: as the caller says.
        unsafe { self.request(libc::SIOCETHTOOL, data) }
    }

    /// # Safety
    /// `data` points to memory that holds whatever `command` answers.
    unsafe fn request(&self, command: libc::c_ulong, data: *mut libc::c_char) -> Result<(), Errno> {
        // SAFETY: all-zero bytes are a valid `ifreq`, a struct of integers, arrays and a union of such.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = data;
        // SAFETY: the socket is open; `request` is a valid `ifreq` whose name ends in a zero byte (`open` checked
        // the length), and the caller vouches for its data.
        let status = unsafe { libc::ioctl(self.socket.as_raw_fd(), command, &mut request) };
        if status < 0 {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        Ok(())
    }
}

/// Memory with a page behind it that cannot be written.
struct Fenced {
    start: *mut u8,
    length: usize,
}

impl Fenced {
    /// At least `length` bytes, rounded up to whole pages.
    fn new(length: usize) -> Result<Fenced, Errno> {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
        let page = rustix::param::page_size();
        let length = length.next_multiple_of(page);
        // SAFETY: a fresh mapping at an address of the kernel's choice; its last page is then taken from everybody.
        unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap_anonymous(std::ptr::null_mut(), length + page, access, MapFlags::PRIVATE)?;
            let fenced = Fenced { start: start.cast(), length };
            mprotect(start.byte_add(length), page, MprotectFlags::empty())?;
            Ok(fenced)
        }
    }

    fn start(&mut self) -> *mut libc::c_char {
        self.start.cast()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, `length` bytes of it readable, and written by nobody meanwhile.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    fn begin_with(&mut self, bytes: &[u8]) {
        // SAFETY: as `bytes`, and borrowed by us alone.
        let all = unsafe { std::slice::from_raw_parts_mut(self.start, self.length) };
        all[..bytes.len()].copy_from_slice(bytes);
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, page behind it included, which nothing borrows any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.length + rustix::param::page_size()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_driver_rings_but_tells_its_offloads() {
        let lo = Ethtool::open("lo").unwrap();
        assert_eq!(lo.rings(), Err(Errno::OPNOTSUPP));
        assert!(lo.offload(Offload::TxChecksum).unwrap());
    }

    #[test]
    fn loopback_has_no_clock_and_stamps_nothing() {
        let stamping = Ethtool::open("lo").unwrap().time_stamping().unwrap();
        let nothing = TimeStamping {
            clock: None,
            can_stamp_all: false,
            stamps_all: None,
            can_stamp_sent: false,
            stamps_sent: None,
            driver_stamps_sent: true,
            receive_filter: None,
        };
        assert_eq!(stamping, nothing);
    }

    #[test]
    fn loopback_has_no_statistics_of_a_driver() {
        assert_eq!(Ethtool::open("lo").unwrap().statistics(), Err(Errno::OPNOTSUPP));
    }

    #[test]
    fn impossible_names_are_no_device() {
        for name in ["", "a-name-that-is-far-too-long", "a\0b", "no-such-if"] {
            let asked = Ethtool::open(name).and_then(|ethtool| ethtool.driver());
            assert_eq!(asked, Err(Errno::NODEV), "{name:?}");
        }
    }
}
