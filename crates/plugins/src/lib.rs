//! The plugins that netdyno comes with, one module each: traffic of common protocols, by options.
//!
//! Each turns its options into a scenario and knows nothing of frames and engines. They are written with the SDK that
//! everybody has, linked natively, and can be built to WebAssembly as they are.

#![deny(
    clippy::missing_errors_doc,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod arp_storm;
mod common;
pub mod dhcp;
pub mod dns;
pub mod esp;
pub mod fragments;
pub mod gre;
pub mod gtpu;
pub mod http;
pub mod imix;
pub mod mpls_l3vpn;
pub mod multicast;
pub mod nd_storm;
pub mod netflow;
pub mod pppoe;
pub mod quic;
pub mod scan;
pub mod simpleudp;
pub mod srv6;
pub mod syn_flood;
pub mod syslog;
pub mod tcp_syn;
pub mod vxlan;

use plugin_sdk::Native;

/// All of them.
pub const ALL: &[Native] = &[
    Native::of::<simpleudp::SimpleUdp>(),
    Native::of::<tcp_syn::TcpSyn>(),
    Native::of::<scan::tcp_port_scan::TcpPortScan>(),
    Native::of::<scan::udp_port_scan::UdpPortScan>(),
    Native::of::<imix::Imix>(),
    Native::of::<dns::Dns>(),
    Native::of::<http::Http>(),
    Native::of::<gtpu::Gtpu>(),
    Native::of::<srv6::Srv6>(),
    Native::of::<vxlan::Vxlan>(),
    Native::of::<gre::Gre>(),
    Native::of::<esp::Esp>(),
    Native::of::<mpls_l3vpn::MplsL3Vpn>(),
    Native::of::<quic::Quic>(),
    Native::of::<multicast::Multicast>(),
    Native::of::<arp_storm::ArpStorm>(),
    Native::of::<nd_storm::NdStorm>(),
    Native::of::<dhcp::Dhcp>(),
    Native::of::<pppoe::Pppoe>(),
    Native::of::<syslog::Syslog>(),
    Native::of::<netflow::NetFlow>(),
    Native::of::<syn_flood::SynFlood>(),
    Native::of::<fragments::Fragments>(),
];
