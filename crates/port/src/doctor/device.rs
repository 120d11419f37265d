//! One interface: its driver, XDP, queues, rings, offloads, interrupts, and what stands in the way.

use crate::ethtool::{Channels, Ethtool, Rings, Setting};
use crate::interface::{Interface, InterfaceError, XdpFeatures, disruption, xdp_features};

use super::{Area, Finding, State, read};

/// The largest frame of one buffer under native XDP: a page of 4,096 bytes without 256 of headroom and 320 for
/// the kernel's own notes at its end, and 24 for what drivers keep (`xdp_data_hard_end`, `skb_shared_info`).
const ONE_BUFFER: usize = 3496;

/// Frames at 64 bytes and 1 Gbit/s, with preamble, FCS and gap: 1e9 / (84 * 8).
const FRAMES_PER_GIGABIT: f64 = 1e9 / 672.0;

/// An interface as the kernel and its driver describe it.
#[derive(Debug)]
pub struct Device {
    pub interface: Interface,
    pub features: Option<XdpFeatures>,
    in_use: Option<String>,
    channels: Option<Channels>,
    rings: Option<Rings>,
    offloads: Vec<Setting>,
    /// VLAN tags are taken out of frames that it receives.
    takes_tags_out: bool,
    peer: Option<Peer>,
}

/// The other end of a veth pair.
#[derive(Debug)]
struct Peer {
    /// As the user would name it.
    name: String,
    /// What to type in front of a command so that it runs where the peer is.
    prefix: String,
}

impl Device {
    pub fn look(name: &str) -> Result<Self, InterfaceError> {
        let interface = Interface::by_name(name)?;
        let in_use = disruption(&interface.name)?.map(|why| why.to_string());
        let ethtool = Ethtool::open(&interface.name).ok();
        let ethtool = ethtool.as_ref();
        Ok(Self {
            features: xdp_features(interface.index).ok().flatten(),
            in_use,
            channels: ethtool.and_then(|ethtool| ethtool.channels().ok()),
            rings: ethtool.and_then(|ethtool| ethtool.rings().ok()),
            offloads: ethtool.map(Ethtool::offloads).unwrap_or_default(),
            takes_tags_out: interface.takes_tags_out(),
            peer: (interface.kind.as_deref() == Some("veth")).then(|| peer_of(&interface)),
            interface,
        })
    }

    pub fn is_veth(&self) -> bool {
        self.peer.is_some()
    }

    /// The most frames of 64 bytes that the link carries in a second. A veth's speed is made up.
    pub fn line_rate(&self) -> Option<f64> {
        let speed = self.interface.speed_mbps.filter(|_| !self.is_veth())?;
        Some(f64::from(speed) / 1000.0 * FRAMES_PER_GIGABIT)
    }

    pub fn offload(&self, name: &str) -> Option<bool> {
        self.offloads.iter().find(|offload| offload.name == name).map(|offload| offload.on)
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.link(), self.driver()];
        findings.extend(self.usage());
        findings.extend(self.xdp());
        findings.extend(self.queues());
        findings.extend(self.ring_sizes());
        findings.push(self.frame_size());
        findings.extend(self.receive_offloads());
        findings.extend(tags(self.takes_tags_out, self.features.as_ref(), &self.interface.name));
        findings.extend(self.discipline());
        findings.extend(self.interrupts());
        findings
    }

    fn link(&self) -> Finding {
        let Interface { name, up, carrier, .. } = &self.interface;
        match (up, carrier) {
            (true, true) => finding("link", State::Good, "up, with carrier", "frames can leave"),
            (true, false) => finding(
                "link",
                State::Bad,
                "up, no carrier",
                "nothing can leave: plug the cable in, or set the other end up",
            )
            .command(format!("ip -d link show {name}")),
            (false, _) => finding("link", State::Bad, "down", "nothing can leave")
                .command(format!("sudo ip link set {name} up")),
        }
    }

    fn driver(&self) -> Finding {
        let interface = &self.interface;
        let driver = interface.driver.as_deref().or(interface.kind.as_deref()).unwrap_or("unknown");
        let place = interface.device.as_ref().map(|device| format!(" at {device}")).unwrap_or_default();
        let node = self.numa_node().map(|node| format!(", NUMA node {node}")).unwrap_or_default();
        match (self.line_rate(), interface.speed_mbps) {
            (Some(frames), Some(speed)) => finding(
                "driver",
                State::Good,
                format!("{driver}{place}{node}, {} Gbit/s", f64::from(speed) / 1000.0),
                format!("the link carries at most {:.2} Mpps of 64-byte frames", frames / 1e6),
            ),
            _ if self.is_veth() => {
                finding("driver", State::Good, driver, "a cable in memory: as fast as the cores at both ends")
            }
            _ => finding(
                "driver",
                State::Note,
                format!("{driver}{place}{node}, speed not reported"),
                "the limit of the link is not known, and a rate in percent of it cannot be asked for",
            ),
        }
    }

    fn usage(&self) -> Option<Finding> {
        let name = &self.interface.name;
        let why = self.in_use.as_ref()?;
        let means =
            "netdyno refuses to load it, lest it cut this machine off; take another, or use `netdyno lab`";
        Some(finding("in use", State::Bad, why, means).command(format!("netdyno ... `.yes_disrupt` {name}")))
    }

    fn xdp(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(attached) = self.interface.xdp {
            findings.push(
                finding(
                    "XDP attached",
                    State::Bad,
                    format!("program {} ({:?})", attached.program_id, attached.mode).to_lowercase(),
                    format!(
                        "the meter cannot attach its own program while this one is there, and counts by a packet socket; `ip link set {} xdp off` detaches it, if nobody needs it",
                        self.interface.name
                    ),
                )
                .command(format!("sudo bpftool prog show id {}", attached.program_id)),
            );
        }
        let topic = "XDP";
        let Some(features) = self.features else {
            findings.push(finding(
                topic,
                State::Unknown,
                "this kernel does not tell (6.3 and later do)",
                "native XDP is tried when it is needed, and what a driver sends of it is counted",
            ));
            return findings;
        };
        let names = [
            (features.native, "native"),
            (features.redirect, "redirect"),
            (features.transmit, "transmit"),
            (features.zero_copy, "AF_XDP zero-copy"),
            (features.multi_buffer_receive, "multi-buffer"),
        ];
        let found: Vec<&str> = names.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        let found = if found.is_empty() { "generic only".to_owned() } else { found.join(", ") };
        findings.push(if !features.native {
            finding(
                topic,
                State::Note,
                found,
                "its driver has no native XDP: the meter runs in generic mode, after a socket buffer was made, about 2 Mpps a core",
            )
        } else if features.zero_copy {
            finding(
                topic,
                State::Good,
                found,
                "counts at full rate; sockets can hand frames over without copying, in some drivers only while a program is attached (igb), or where their memory is mapped (virtio_net: iommu_platform=on)",
            )
        } else {
            finding(
                topic,
                State::Good,
                found,
                "counts at full rate; AF_XDP sockets copy each frame, about 2 Mpps a core",
            )
        });
        if !features.native || features.transmit {
            return findings;
        }
        let topic = "XDP transmit";
        findings.push(match &self.peer {
            // Nothing is wrong with it: the meter of a measured run is such a program.
            Some(peer) => finding(
                topic,
                State::Note,
                format!("not before its peer {} has an XDP program", peer.name),
                format!(
                    "`.measure` {} attaches one, and live frames can be sent; to send without measuring give the peer GRO, or take another `.engine`",
                    peer.name
                ),
            )
            .command(format!("sudo {}ethtool -K {} gro on", peer.prefix, peer.name)),
            None => finding(
                topic,
                State::Note,
                "not declared now",
                "several drivers declare it only while a program is attached (igb, virtio_net, which needs as many queues as cores besides): netdyno attaches one and asks again",
            ),
        });
        findings
    }

    fn queues(&self) -> Option<Finding> {
        let name = &self.interface.name;
        let channels = self.channels?;
        let (send, receive) = (channels.transmit(), channels.receive());
        let found =
            format!("{} of {} to send, {} of {} to receive", send.now, send.max, receive.now, receive.max);
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        Some(if send.now < cores && send.now < send.max {
            let wanted = cores.min(send.max);
            let kind = if channels.combined.max > 0 { "combined" } else { "tx" };
            finding(
                "queues",
                State::Note,
                found,
                "senders on several cores share a queue and wait for each other",
            )
            .command(format!("sudo ethtool -L {name} {kind} {wanted}"))
        } else if send.now < cores {
            let means = format!(
                "no more than {} core{} can send without waiting",
                send.now,
                if send.now == 1 { "" } else { "s" }
            );
            finding("queues", State::Note, found, means)
        } else {
            finding("queues", State::Good, found, "one for each core")
        })
    }

    fn ring_sizes(&self) -> Option<Finding> {
        let rings = self.rings.filter(|rings| rings.rx.max > 0 || rings.tx.max > 0)?;
        let (rx, tx) = (rings.rx, rings.tx);
        let found = format!("rx {} of {}, tx {} of {}", rx.now, rx.max, tx.now, tx.max);
        let enough = |limit: crate::ethtool::Limit| limit.now >= limit.max.min(1024);
        Some(if enough(rx) && enough(tx) {
            finding("rings", State::Good, found, "ride out pauses of the core that serves them")
        } else {
            finding(
                "rings",
                State::Note,
                found,
                "a short receive ring loses frames in bursts; a short send ring shrinks batches",
            )
            .command(format!(
                "sudo ethtool -G {} rx {} tx {}",
                self.interface.name,
                rx.max.min(4096),
                tx.max.min(4096)
            ))
        })
    }

    fn frame_size(&self) -> Finding {
        let Interface { name, mtu, .. } = &self.interface;
        let longest = self.interface.max_frame();
        let found = format!("{mtu}: frames up to {longest} bytes ({} with FCS)", longest + 4);
        let multi = self.features.is_some_and(|features| features.multi_buffer_receive);
        if longest > ONE_BUFFER && !multi {
            return finding(
                "MTU",
                State::Note,
                found,
                "too long for native XDP in most drivers: the meter would fall back to generic mode",
            )
            .command(format!("sudo ip link set {name} mtu 1500"));
        }
        if *mtu < 1500 {
            let short = finding(
                "MTU",
                State::Note,
                found,
                "full-size Ethernet frames (1514 bytes) do not fit: a replay of them would be refused",
            );
            // Raising it on the machine's way out could cut it off.
            return if self.in_use.is_some() {
                short
            } else {
                short.command(format!("sudo ip link set {name} mtu 1500"))
            };
        }
        finding("MTU", State::Good, found, "longer frames are refused before the run")
    }

    fn receive_offloads(&self) -> Option<Finding> {
        let found: Vec<String> = self
            .offloads
            .iter()
            .map(|offload| format!("{} {}", offload.name, if offload.on { "on" } else { "off" }))
            .collect();
        if found.is_empty() {
            return None;
        }
        let (found, name) = (found.join(", "), &self.interface.name);
        Some(if self.offload("LRO") == Some(true) {
            finding(
                "offloads",
                State::Note,
                found,
                "LRO joins frames in the NIC: a packet socket counts joined ones. Some drivers take no XDP program while it is on, others switch it off for one (vmxnet3)",
            )
            .command(format!("sudo ethtool -K {name} lro off"))
        } else if self.offload("GRO") == Some(true) && !self.is_veth() {
            finding("offloads", State::Note, found, "GRO joins received TCP segments before a packet socket sees them; an XDP meter counts before that")
                .command(format!("sudo ethtool -K {name} gro off"))
        } else {
            finding(
                "offloads",
                State::Good,
                found,
                "nothing changes the frames that netdyno sends; they are for the stack's own traffic",
            )
        })
    }

    fn discipline(&self) -> Option<Finding> {
        let found = self.interface.queueing_discipline.as_ref()?;
        Some(finding("qdisc", State::Good, found, "netdyno's engines go past it"))
    }

    fn interrupts(&self) -> Option<Finding> {
        let bus = Ethtool::open(&self.interface.name).ok()?.driver().ok()?.bus;
        let device = self.interface.device.clone().unwrap_or_default();
        let numbers = interrupts_of(&read("/proc/interrupts")?, &[&self.interface.name, &device, &bus]);
        let (first, count) = (*numbers.first()?, numbers.len());
        let list = |number: &u32, file: &str| {
            read(&format!("/proc/irq/{number}/{file}")).filter(|list| !list.is_empty())
        };
        let mut served: Vec<String> = numbers
            .iter()
            .filter_map(|number| {
                list(number, "effective_affinity_list").or_else(|| list(number, "smp_affinity_list"))
            })
            .collect();
        served.sort();
        served.dedup();
        let found =
            format!("{count} on core{} {}", if served.len() == 1 { "" } else { "s" }, served.join(" "));
        let means =
            "do not send from a core that serves the receiver's interrupts; to move one (here the first):";
        let finding = match served.len() {
            0 => return None,
            1 if count > 1 => {
                finding("interrupts", State::Note, found, format!("one core serves them all; {means}"))
            }
            _ => finding("interrupts", State::Good, found, means),
        };
        Some(finding.command(format!("echo 1 | sudo tee /proc/irq/{first}/smp_affinity_list")))
    }

    /// By the device's own path: `/sys/class/net` would be that of another network namespace inside a lab.
    fn numa_node(&self) -> Option<u32> {
        let bus = Ethtool::open(&self.interface.name).ok()?.driver().ok()?.bus;
        // -1 stands for a machine without nodes.
        read(&format!("/sys/bus/pci/devices/{bus}/numa_node"))?.parse().ok()
    }
}

fn finding(topic: &str, state: State, found: impl Into<String>, means: impl Into<String>) -> Finding {
    Finding::new(Area::Interface, topic, state, found, means)
}

/// The peer's name, as far as it can be known: in this namespace by its index, in a lab by the lab's word.
/// What becomes of the VLAN tags of frames that are measured.
fn tags(taken_out: bool, features: Option<&XdpFeatures>, name: &str) -> Option<Finding> {
    let said = |state, means| finding("VLAN tags", state, "taken out on receiving (rx-vlan-offload)", means);
    if !taken_out {
        return None;
    }
    if features.is_some_and(|features| features.native && features.receive_tags) {
        return Some(said(
            State::Good,
            "the driver reports them to XDP programs, and the kernel to packet sockets: they are counted",
        ));
    }
    let unseen = "an XDP meter sees frames without, so that sizes, bytes and bit rates miss 4 bytes of each that had one; a packet socket counts them";
    Some(said(State::Note, unseen).command(format!("sudo ethtool -K {name} rxvlan off")))
}

fn peer_of(interface: &Interface) -> Peer {
    let here = || Interface::list().ok()?.into_iter().find(|link| Some(link.index) == interface.link);
    if !interface.link_elsewhere
        && let Some(peer) = here()
    {
        return Peer { name: peer.name, prefix: String::new() };
    }
    let lab = |name: &str| std::env::var(name).ok();
    match (lab("NETDYNO_LAB_TX"), lab("NETDYNO_LAB_RX")) {
        (Some(tx), Some(rx)) if tx == interface.name => {
            Peer { name: rx, prefix: "ip netns exec receiver ".to_owned() }
        }
        (Some(tx), Some(rx)) if rx == interface.name => {
            Peer { name: tx, prefix: "ip netns exec sender ".to_owned() }
        }
        _ => Peer { name: "PEER".to_owned(), prefix: "ip netns exec ITS_NAMESPACE ".to_owned() },
    }
}

/// The interrupts of a device in `/proc/interrupts`: lines that name the interface, its device or its bus address,
/// without those that only announce changes of configuration.
fn interrupts_of(table: &str, names: &[&str]) -> Vec<u32> {
    let names: Vec<&&str> = names.iter().filter(|name| !name.is_empty()).collect();
    table
        .lines()
        .filter(|line| !line.ends_with("-config") && names.iter().any(|name| has_word(line, name)))
        .filter_map(|line| line.split(':').next()?.trim().parse().ok())
        .collect()
}

/// Whether `word` stands in `line` and is not a part of a longer word: `virtio1` is not in `virtio10-input`.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let inside = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        !inside(line[..at].chars().next_back()) && !inside(line[at + word.len()..].chars().next())
    })
}

/// The interfaces there are, for someone who has yet to choose one.
pub fn overview() -> Result<Vec<Finding>, InterfaceError> {
    let describe = |link: Interface| {
        let what = link.driver.as_deref().or(link.kind.as_deref()).unwrap_or("virtual").to_owned();
        let state = if !link.up {
            "down"
        } else if link.carrier {
            "up"
        } else {
            "no carrier"
        };
        let speed = link
            .speed_mbps
            .filter(|_| link.kind.is_none())
            .map(|speed| format!(", {} Gbit/s", f64::from(speed) / 1000.0))
            .unwrap_or_default();
        let found = format!("{what}, {state}{speed}");
        match disruption(&link.name).ok().flatten() {
            Some(why) => finding(&link.name, State::Note, format!("{found}; {why}"), "not to be loaded"),
            None => finding(&link.name, State::Good, found, "may be loaded")
                .command(format!("sudo netdyno doctor {}", link.name)),
        }
    };
    let mut findings: Vec<Finding> =
        Interface::list()?.into_iter().filter(|link| !link.loopback).map(describe).collect();
    if findings.is_empty() {
        findings.push(
            finding("interfaces", State::Note, "none but the loopback", "the lab brings its own")
                .command("sudo netdyno demo"),
        );
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_meters_place_is_named() {
        use crate::interface::XdpMode;
        use crate::netlink::{Message, REQUEST, Socket};
        use std::os::fd::AsRawFd;

        const IFLA_XDP: u16 = 43;
        const IFLA_XDP_FD: u16 = 1;
        const IFLA_XDP_FLAGS: u16 = 3;
        let hosts = lab::Lab::two_hosts(&lab::Options::default()).unwrap();
        let program = super::super::probe::load_drop_program().unwrap();
        for (flag, mode) in [(1 << 1, XdpMode::Generic), (1 << 2, XdpMode::Native)] {
            let attach = |fd: i32| {
                let ask = Message::new(libc::RTM_SETLINK, REQUEST)
                    .link(0, 0, 0)
                    .attr_str(libc::IFLA_IFNAME, "rx0")
                    .nest(IFLA_XDP, |xdp| {
                        xdp.attr_u32(IFLA_XDP_FD, fd as u32).attr_u32(IFLA_XDP_FLAGS, flag)
                    });
                hosts.receiver.namespace.run_in(|| Socket::route().unwrap().request(ask)).unwrap().unwrap();
            };
            attach(program.as_raw_fd());
            let device = hosts.receiver.namespace.run_in(|| Device::look("rx0")).unwrap().unwrap();
            let attached = device.interface.xdp.unwrap();
            assert_eq!(attached.mode, mode);
            let findings = device.findings();
            let found = findings.iter().find(|finding| finding.topic == "XDP attached").unwrap();
            assert_eq!(found.command, Some(format!("sudo bpftool prog show id {}", attached.program_id)));
            attach(-1);
        }
    }

    #[test]
    fn tags_that_xdp_programs_do_not_see_are_told() {
        let features = |receive_tags| XdpFeatures { native: true, receive_tags, ..XdpFeatures::default() };
        assert!(tags(false, None, "eth7").is_none());
        let unseen = tags(true, Some(&features(false)), "eth7").expect("said");
        assert!(unseen.state == State::Note && unseen.means.contains("4 bytes"), "{unseen:?}");
        assert_eq!(unseen.command.as_deref(), Some("sudo ethtool -K eth7 rxvlan off"));
        let seen = tags(true, Some(&features(true)), "eth7").expect("said");
        assert!(seen.state == State::Good && seen.command.is_none(), "{seen:?}");
    }

    #[test]
    fn interrupts_are_found_by_interface_device_or_bus_and_not_by_half_a_name() {
        let table = "           CPU0       CPU1\n \
            37:  0  0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n \
            38:  0  6 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
            39:  4  0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0\n \
            52:  4  0 PCI-MSI 327680-edge      i40e-eth1-TxRx-0\n \
            60:  4  0 IO-APIC   2-edge      virtio20-input\n\
            NMI:  0  0   Non-maskable interrupts\n";
        assert_eq!(interrupts_of(table, &["eth0", "virtio2", ""]), [38, 39]);
        assert_eq!(interrupts_of(table, &["eth1", ""]), [52]);
        assert_eq!(interrupts_of(table, &["eth", "0000:00:03.0"]), [38, 39]);
    }
}
