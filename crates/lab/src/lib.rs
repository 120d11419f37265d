//! Disposable hosts: anonymous network namespaces joined by veth pairs, gone with their file descriptors.
//!
//! ```text
//!   namespace "sender"                    namespace "receiver"
//!   tx0  02:00:00:00:00:01  <-- veth -->  rx0  02:00:00:00:00:02
//!        198.18.0.1/24                         198.18.0.2/24          (if addresses are asked for)
//!   tx1 ...                <-- veth -->  rx1 ...                       (if there are more cables)
//! ```
//!
//! With [`Options::device`] a third host stands between them, a device under test that forwards ([`device`]).
//!
//! A namespace has no name and no mount: it lives as long as someone holds a descriptor of it, and its
//! devices live as long as it does. So when the process that holds a [`Lab`] ends, in whatever way, the
//! kernel takes the hosts and their cable apart. The veth pair is created straight across the two
//! namespaces; at no moment is a device in the user's own.
//!
//! The hosts are silent. IPv6 sets itself no address, so there is no duplicate address detection, router
//! solicitation or multicast report; IPv4 neighbours are set by hand, so there is no ARP. Every frame on the
//! cable was sent on purpose, which is what makes exact accounting possible.
//!
//! The lab knows nothing of traffic. Callers: `netdyno demo`, `netdyno lab`, and the tests of the crates
//! that need an interface to try themselves on.

pub mod device;
mod loss;
mod namespace;
mod run;
mod steer;
mod sys;
mod veth;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use port::netlink::NetlinkError;
use rustix::io::Errno;

pub use device::{Bottleneck, Device, Kind, Loss, share};
pub use namespace::{Located, Namespace, NamespaceRef, resolve};
pub use run::{ENV_RECEIVER_NS, ENV_RX, ENV_TX, run_command, run_command_beside};

/// The sender's interface.
pub const SENDER_INTERFACE: &str = "tx0";
/// The receiver's interface.
pub const RECEIVER_INTERFACE: &str = "rx0";

/// The ends of the cables beyond the first.
const FURTHER_CABLES: [(&str, &str); 3] = [("tx1", "rx1"), ("tx2", "rx2"), ("tx3", "rx3")];
/// The most cables of a lab.
pub const MOST_CABLES: u32 = 1 + FURTHER_CABLES.len() as u32;

/// How a lab is built. `Options::default()` is two silent hosts without addresses, one queue, MTU 1500.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The largest packet (frame without its Ethernet header): 68 to 65,535.
    pub mtu: u32,
    /// Transmit and receive queues of each end; one for each core that will send at the same time.
    pub queues: u32,
    /// Cables between the hosts, 1 to 4: tx0 - rx0, tx1 - rx1, ...; only the first gets addresses.
    pub cables: u32,
    /// Generic receive offload at both ends. A veth end delivers XDP frames from its peer only if it has an
    /// XDP program or this; it also joins the segments of a TCP flow before a packet socket sees them, so it
    /// is off unless asked for.
    pub gro: bool,
    /// Give both hosts their IPv4 addresses, and tell each the other's MAC so that nobody asks by ARP.
    pub addresses: bool,
    /// A device between the hosts, rather than one cable. A router needs addresses, and so gives them.
    pub device: Option<Device>,
    /// The CPUs that the device's work is handed to, if the kernel can; of none, each frame is forwarded by the CPU that
    /// sent it.
    pub device_cpus: Vec<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mtu: 1500,
            queues: 1,
            cables: 1,
            gro: false,
            addresses: false,
            device: None,
            device_cpus: Vec::new(),
        }
    }
}

/// One host of a lab.
#[derive(Debug)]
pub struct Host {
    pub namespace: Namespace,
    pub interface: &'static str,
    pub mac: [u8; 6],
    /// From the range that RFC 2544 (appendix C.2.2) sets aside for benchmarks. Only set up on the
    /// interface if [`Options::addresses`] asked for it.
    pub address: Ipv4Addr,
}

/// Two hosts and what joins them. Dropping it takes them apart.
#[derive(Debug)]
pub struct Lab {
    pub sender: Host,
    pub receiver: Host,
    /// The interfaces of the device between them, towards the sender and towards the receiver.
    pub device: Option<[Host; 2]>,
}

impl Lab {
    /// Two hosts joined by a veth pair, or by a device and one on each side of it; all ends up and ready to send.
    pub fn two_hosts(options: &Options) -> Result<Self, LabError> {
        let [near, far] = Device::addresses(options.device.map(|device| device.kind));
        let host = |interface, number, address| -> Result<Host, LabError> {
            Ok(Host {
                namespace: Namespace::new()?,
                interface,
                // The bit 0x02 marks a locally administered address: it collides with no vendor's.
                mac: [0x02, 0, 0, 0, 0, number],
                address,
            })
        };
        let cables = options.cables.clamp(1, MOST_CABLES) as usize;
        let lab = Self {
            sender: host(SENDER_INTERFACE, 1, near)?,
            receiver: host(RECEIVER_INTERFACE, 2, far)?,
            device: options.device.map(|_| device::ports()).transpose()?,
        };
        match (&options.device, &lab.device) {
            (Some(device), Some(ports)) => {
                let addresses = options.addresses && device.kind != Kind::Router;
                let ends = Options { addresses, ..options.clone() };
                let inside = Options { addresses: false, ..options.clone() };
                for (host, peer, port) in
                    [(&lab.sender, &lab.receiver, &ports[0]), (&lab.receiver, &lab.sender, &ports[1])]
                {
                    veth::connect(host, port, options)?;
                    // The neighbour is the host at the far end: a bridge is no neighbour.
                    veth::set_up(host, peer, &ends)?;
                    veth::set_up(port, host, &inside)?;
                }
                device::set_up(device, ports, [&lab.sender, &lab.receiver])?;
                for port in ports.iter().filter(|_| !options.device_cpus.is_empty()) {
                    // A kernel without RPS has a lab all the same.
                    let _ = steer::to_cpus(port, &options.device_cpus);
                }
            }
            _ => {
                veth::connect(&lab.sender, &lab.receiver, options)?;
                veth::set_up(&lab.sender, &lab.receiver, options)?;
                veth::set_up(&lab.receiver, &lab.sender, options)?;
            }
        }
        for host in [&lab.sender, &lab.receiver].into_iter().chain(lab.device.iter().flatten()) {
            veth::wait_until_running(host)?;
        }
        for (cable, &(near, far)) in FURTHER_CABLES.iter().enumerate().take(cables - 1) {
            lab.connect_again(cable as u8 + 1, near, far, options)?;
        }
        Ok(lab)
    }

    /// One more cable between the hosts.
    fn connect_again(
        &self,
        number: u8,
        near: &'static str,
        far: &'static str,
        options: &Options,
    ) -> Result<(), LabError> {
        let end = |host: &Host, interface| -> Result<Host, LabError> {
            let mut mac = host.mac;
            mac[3] = number;
            Ok(Host { namespace: host.namespace.try_clone()?, interface, mac, address: host.address })
        };
        let (near, far) = (end(&self.sender, near)?, end(&self.receiver, far)?);
        let silent = Options { addresses: false, ..options.clone() };
        veth::connect(&near, &far, &silent)?;
        veth::set_up(&near, &far, &silent)?;
        veth::set_up(&far, &near, &silent)?;
        veth::wait_until_running(&near)?;
        veth::wait_until_running(&far)
    }
}

/// Whether this process may make a lab as it is.
pub fn is_privileged() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN))
}

/// Makes the calling process root of a user namespace of its own, in which a lab can be made without
/// privileges. Packet sockets work there; XDP does not, since loading BPF programs needs the real root.
///
/// Call it at the start of a program: a process with more than one thread cannot do this.
pub fn enter_user_namespace() -> Result<(), LabError> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare(rustix::thread::UnshareFlags::NEWUSER).map_err(LabError::UserNamespace)?;
    let write = |file: &str, text: String| {
        std::fs::write(file, text)
            .map_err(|error| LabError::UserNamespace(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    };
    // user_namespaces(7): without privileges, one id may be mapped, and groups only with setgroups denied.
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", format!("0 {gid} 1"))
}

/// What can keep a lab from being made or used.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("a lab needs CAP_SYS_ADMIN and CAP_NET_ADMIN to make network namespaces: run it as root (sudo)")]
    NotPermitted,
    #[error("cannot make a network namespace: {0}")]
    Create(#[source] Errno),
    #[error(
        "cannot make a user namespace: {0}. Run as root (sudo), or allow it: \
         sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    )]
    UserNamespace(#[source] Errno),
    #[error("cannot {doing}: {source}")]
    Netlink { doing: String, source: NetlinkError },
    #[error("cannot {doing}: {source}")]
    Kernel { doing: String, source: Errno },
    #[error(
        "cannot open the network namespace '{name}' ({}): {source}. `ip netns list` lists those that have a name; \
         'receiver' and 'sender' exist inside `netdyno lab`", path.display()
    )]
    Open { name: String, path: PathBuf, source: Errno },
    #[error("{} is not a network namespace", path.display())]
    NotANamespace { path: PathBuf },
    #[error("'{spec}' names no interface: write IFACE, or IFACE@NAMESPACE")]
    Spec { spec: String },
    #[error("no command to run in the lab: write it after --")]
    NoCommand,
    #[error("cannot run '{command}' in the lab: {source}")]
    Command { command: String, source: std::io::Error },
}

impl LabError {
    fn kernel(doing: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let doing = doing.into();
        move |source| match source {
            Errno::PERM | Errno::ACCESS => Self::NotPermitted,
            source => Self::Kernel { doing, source },
        }
    }
}
