//! What the driver says of itself that matters to AF_XDP.

use super::AfxdpError;
use crate::ethtool::Ethtool;
use crate::interface::{Interface, xdp_features};
use crate::netlink::{Attributes, Message, NetlinkError, REQUEST, Socket};
use crate::packet::Target;

/// An interface, as AF_XDP sees it.
#[derive(Debug, Clone)]
pub struct Device {
    pub driver: String,
    /// Queues that send now. There may be room for more.
    pub queues: u32,
    /// Queues that receive now.
    pub receiving: u32,
    /// Those that do both: zero-copy takes a queue's both halves.
    pub pairs: u32,
    /// Somebody's XDP program is attached.
    pub occupied: bool,
    /// The driver sends from the UMEM; `None` if this kernel does not tell (before 6.3).
    pub zero_copy: Option<bool>,
    /// Buffers that a frame may consist of with zero-copy.
    pub segments: u32,
}

impl Device {
    /// Asks, in the network namespace of the calling thread.
    pub fn ask(target: &Target) -> Result<Device, AfxdpError> {
        let interface = Interface::by_name(&target.name)?;
        let channels = Ethtool::open(&target.name).and_then(|ethtool| ethtool.channels()).ok();
        // Netlink tells how many there are room for; who cannot change their number does not tell another.
        let of = |now: Option<u32>, room: u32| now.filter(|now| *now > 0).map_or(room, |now| now.min(room));
        let queues = of(channels.map(|channels| channels.transmit().now), interface.tx_queues);
        let receiving = of(channels.map(|channels| channels.receive().now), interface.rx_queues);
        let features = xdp_features(target.index).ok().flatten();
        Ok(Device {
            driver: interface.driver.unwrap_or_else(|| "this driver".to_owned()),
            queues,
            receiving,
            pairs: queues.min(receiving),
            occupied: interface.xdp.is_some(),
            zero_copy: features.map(|features| features.zero_copy),
            segments: segments(target.index).ok().flatten().unwrap_or(1),
        })
    }
}

/// `xdp-zc-max-segs` of `Documentation/netlink/specs/netdev.yaml`, since Linux 6.6.
fn segments(index: u32) -> Result<Option<u32>, NetlinkError> {
    const NETDEV_CMD_DEV_GET: u8 = 1;
    const NETDEV_A_DEV_IFINDEX: u16 = 1;
    const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;
    let mut socket = Socket::generic()?;
    let family = socket.family("netdev")?;
    let ask = Message::generic(family, REQUEST, NETDEV_CMD_DEV_GET).attr_u32(NETDEV_A_DEV_IFINDEX, index);
    let answers = socket.request(ask)?;
    Ok(answers.first().and_then(|answer| Attributes::after(answer, 4).u32(NETDEV_A_DEV_XDP_ZC_MAX_SEGS)))
}
