//! Network interfaces: what they are, what they can do, and sockets that put frames on them ([`tx`]) and take them off ([`rx`]).

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod afxdp;
pub mod carrier;
pub mod departures;
pub mod doctor;
pub mod ethtool;
pub mod filter;
pub mod guard;
pub mod interface;
pub mod local;
pub mod map;
pub mod netlink;
pub mod outside;
pub mod packet;
pub mod phc;
pub mod qdisc;
pub mod resolve;
pub mod rx;
pub mod socket;
pub mod softnet;
pub mod timestamps;
pub mod tun;
pub mod tx;
pub mod watch;
