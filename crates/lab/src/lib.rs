//! Disposable hosts: anonymous network namespaces joined by veth pairs, gone with their file descriptors.
//!
//! ```text
//!   namespace "sender"                    namespace "receiver"
//!   tx0  02:00:00:00:00:01  <-- veth -->  rx0  02:00:00:00:00:02
//!        198.18.0.1/24                         198.18.0.2/24          (if addresses are asked for)
//!   tx1 ...                <-- veth -->  rx1 ...                       (if there are more cables)
//! ```
//!
//! With [`Options::device`] a third host stands between them, a device under test that forwards ([`device`]). With
//! [`Options::ports`] it has several ports, each joined to one host by a cable of its own:
//!
//! ```text
//!   namespace "sender"                                    namespace "dut"
//!   port0  02:00:00:00:00:01  198.18.1.2/24  <-- veth -->  dut0 --.
//!   port1  02:00:00:00:00:02  198.18.2.2/24  <-- veth -->  dut1 --+-- bridge br0, or routing
//!   port2  ...                               <-- veth -->  dut2 --'
//! ```
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

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod device;
mod loss;
mod namespace;
pub mod nat;
mod nft;
mod run;
mod steer;
mod sys;
mod veth;

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

use port::netlink::NetlinkError;
use rustix::io::Errno;

pub use device::{Bottleneck, Device, Kind, Loss};
pub use loss::lost_by_rule;
pub use namespace::{Located, Namespace, NamespaceRef, resolve};
pub use run::{
    DEVICE, ENV_HOST_NS, ENV_NAT, ENV_RECEIVER_NS, ENV_RX, ENV_TX, ENV_XDP, Running, run_command,
    run_command_beside, start,
};

/// The sender's interface.
pub const SENDER_INTERFACE: &str = "tx0";
/// The receiver's interface.
pub const RECEIVER_INTERFACE: &str = "rx0";

/// The ends of the cables beyond the first.
const FURTHER_CABLES: [(&str, &str); 3] = [("tx1", "rx1"), ("tx2", "rx2"), ("tx3", "rx3")];
/// The most cables of a lab.
pub const MOST_CABLES: u32 = 1 + FURTHER_CABLES.len() as u32;

/// The interfaces of a lab with a device of several ports, ours and the device's.
const PORTS: [(&str, &str); MOST_PORTS as usize] = [
    ("port0", "dut0"),
    ("port1", "dut1"),
    ("port2", "dut2"),
    ("port3", "dut3"),
    ("port4", "dut4"),
    ("port5", "dut5"),
    ("port6", "dut6"),
    ("port7", "dut7"),
    ("port8", "dut8"),
    ("port9", "dut9"),
    ("port10", "dut10"),
    ("port11", "dut11"),
    ("port12", "dut12"),
    ("port13", "dut13"),
    ("port14", "dut14"),
    ("port15", "dut15"),
];
/// The most ports of a lab's device.
pub const MOST_PORTS: u32 = 16;

/// How a lab is built. `Options::default()` is two silent hosts without addresses, one queue, MTU 1500.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The largest packet (frame without its Ethernet header): 68 to 65,535.
    pub mtu: u32,
    /// Transmit and receive queues of each end; one for each core that will send at the same time.
    pub queues: u32,
    /// Cables between the hosts, 1 to 4: tx0 - rx0, tx1 - rx1, ...; only the first gets addresses.
    pub cables: u32,
    /// Ports of the device, each joined to an interface of the sending host: 3 to 16. `None`: two, with a host at each.
    pub ports: Option<u32>,
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
            ports: None,
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
    /// Its network namespace.
    pub namespace: Namespace,
    /// Its interface on the first cable: `tx0`, `rx0`, ...
    pub interface: &'static str,
    /// The interface's Ethernet address.
    pub mac: [u8; 6],
    /// From the range that RFC 2544 (appendix C.2.2) sets aside for benchmarks. Only set up on the
    /// interface if [`Options::addresses`] asked for it.
    pub address: Ipv4Addr,
}

impl Host {
    /// Another handle of the same.
    fn again(&self) -> Result<Host, LabError> {
        let Host { namespace, interface, mac, address } = self;
        Ok(Host { namespace: namespace.try_clone()?, interface, mac: *mac, address: *address })
    }

    /// Names its interface in jobs of this process, for as long as the lab stands: `tx0@/proc/self/fd/7`.
    pub fn spec(&self) -> String {
        format!("{}@/proc/self/fd/{}", self.interface, self.namespace.as_fd().as_raw_fd())
    }
}

/// Two hosts and what joins them. Dropping it takes them apart.
#[derive(Debug)]
pub struct Lab {
    /// The host that frames are sent from.
    pub sender: Host,
    /// The host that they are sent to.
    pub receiver: Host,
    /// The interfaces of the device between them, towards the sender and towards the receiver.
    pub device: Option<[Host; 2]>,
    /// With a device of several ports: each of its cables, our end and the device's. The first two are `sender` and
    /// `receiver`.
    pub ports: Vec<[Host; 2]>,
}

impl Lab {
    /// Two hosts joined by a veth pair, or by a device and one on each side of it; all ends up and ready to send.
    ///
    /// # Errors
    /// The namespaces, interfaces or settings are not to be had: for want of rights ([`is_privileged`]), or because the kernel lacks
    /// what [`Options`] asks for.
    pub fn two_hosts(options: &Options) -> Result<Self, LabError> {
        if let (Some(device), Some(ports)) = (&options.device, options.ports) {
            return Self::around(device, ports, options);
        }
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
            ports: Vec::new(),
        };
        match (&options.device, &lab.device) {
            (Some(device), Some(ports)) => {
                let addresses = options.addresses && !device.kind.routes();
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

    /// One host with several interfaces, each joined to a port of one device; all ends up and ready to send.
    fn around(device: &Device, ports: u32, options: &Options) -> Result<Self, LabError> {
        let (ours, theirs) = (Namespace::new()?, Namespace::new()?);
        let silent = Options { addresses: false, ..options.clone() };
        let (mut hosts, mut ends) = (Vec::new(), Vec::new());
        for (number, (near, far)) in (0..).zip(PORTS).take(ports.clamp(2, MOST_PORTS) as usize) {
            let end = |namespace: &Namespace, interface, mac, address| -> Result<Host, LabError> {
                Ok(Host { namespace: namespace.try_clone()?, interface, mac, address })
            };
            let network = number + 1;
            let host = end(&ours, near, [0x02, 0, 0, 0, 0, network], Ipv4Addr::new(198, 18, network, 2))?;
            let port = end(&theirs, far, [0x02, 0, 0, 0, 1, network], Ipv4Addr::new(198, 18, network, 1))?;
            veth::connect(&host, &port, &silent)?;
            veth::set_up(&host, &port, &silent)?;
            veth::set_up(&port, &host, &silent)?;
            hosts.push(host);
            ends.push(port);
        }
        device::set_up_between(device, &ends, &hosts)?;
        for port in ends.iter().filter(|_| !options.device_cpus.is_empty()) {
            // A kernel without RPS has a lab all the same.
            let _ = steer::to_cpus(port, &options.device_cpus);
        }
        for host in hosts.iter().chain(&ends) {
            veth::wait_until_running(host)?;
        }
        let two = |of: &[Host]| -> Result<[Host; 2], LabError> {
            match of {
                [first, second, ..] => Ok([first.again()?, second.again()?]),
                _ => Err(LabError::kernel("make a device of several ports")(Errno::INVAL)),
            }
        };
        let [sender, receiver] = two(&hosts)?;
        let device = Some(two(&ends)?);
        let ports = hosts.into_iter().zip(ends).map(|(host, port)| [host, port]).collect();
        Ok(Self { sender, receiver, device, ports })
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
///
/// # Errors
/// The kernel or its settings do not allow user namespaces, or the process has several threads.
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
    /// It takes rights that this process does not have.
    #[error("a lab needs CAP_SYS_ADMIN and CAP_NET_ADMIN to make network namespaces: run it as root (sudo)")]
    NotPermitted,
    /// The kernel makes no network namespace.
    #[error("cannot make a network namespace: {0}")]
    Create(#[source] Errno),
    /// The kernel allows no user namespace.
    #[error(
        "cannot make a user namespace: {0}. Run as root (sudo), or allow it: \
         sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    )]
    UserNamespace(#[source] Errno),
    /// The kernel refused a change of interfaces, addresses or routes.
    #[error("cannot {doing}: {source}")]
    Netlink {
        /// What was to be done.
        doing: String,
        /// Why it was not.
        source: NetlinkError,
    },
    /// The kernel refused a system call.
    #[error("cannot {doing}: {source}")]
    Kernel {
        /// What was to be done.
        doing: String,
        /// Why it was not.
        source: Errno,
    },
    /// The root folder is no mount point, whose mounts could be kept apart from the host's.
    #[error(
        "a lab cannot keep its mounts apart here: / is no mount point, as after chroot(1) into a plain folder. \
         Make it one first (mount --bind FOLDER FOLDER), then chroot FOLDER"
    )]
    Root,
    /// A namespace that is named cannot be opened.
    #[error(
        "cannot open the network namespace '{name}' ({}): {source}. `ip netns list` lists those that have a name; \
         'receiver' and 'sender' exist inside `netdyno lab`, and another machine's interfaces are named so once its agent is \
         (docs/many-machines.md)", path.display()
    )]
    Open {
        /// As it was named.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
        /// Why it was not opened.
        source: Errno,
    },
    /// A file is no network namespace.
    #[error("{} is not a network namespace", path.display())]
    NotANamespace {
        /// The file.
        path: PathBuf,
    },
    /// What should name an interface does not.
    #[error(
        "'{spec}' names no interface: write IFACE, IFACE@NAMESPACE, or IFACE@AGENT (docs/many-machines.md)"
    )]
    Spec {
        /// As it was written.
        spec: String,
    },
    /// There is no command.
    #[error("no command to run in the lab: write it after --")]
    NoCommand,
    /// The command cannot be run.
    #[error("cannot run '{command}' in the lab: {source}")]
    Command {
        /// Its first word.
        command: String,
        /// Why not.
        source: std::io::Error,
    },
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
