//! Network interfaces: what they are, what they can do, and sockets that put frames on them.

pub mod afxdp;
pub mod carrier;
pub mod departures;
pub mod doctor;
pub mod ethtool;
pub mod guard;
pub mod interface;
pub mod netlink;
pub mod outside;
pub mod packet;
pub mod phc;
pub mod qdisc;
pub mod receive;
pub mod resolve;
pub mod socket;
pub mod timestamps;
pub mod tx;
pub mod watch;
