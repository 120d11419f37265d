//! Network interfaces: what they are, what they can do, and sockets that put frames on them.

pub mod ethtool;
pub mod netlink;
