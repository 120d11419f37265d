//! Packets, layer by layer: what docs/expressions.md writes `ipv4(src=10.0.0.0/16)/udp(dport=53)`.
//!
//! ```
//! use plugin_sdk::packet::*;
//! let packet = ipv4().src("10.0.0.0/16").dst("198.18.0.1") / udp().sport(1024..=65535).dport(53);
//! assert_eq!(
//!     packet.to_string(),
//!     "ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535, dport=53)"
//! );
//! ```
//!
//! Each layer has a method for each of its fields; what is not given is filled in or has a default. Field `type` is `kind`
//! here, and `len` is `length`. netdyno checks the packet when it compiles it: nothing here can fail.

use crate::payload::Payload;
use crate::value::Value;
use std::fmt;
use std::ops::Div;

/// Layers, outermost first. `a / b` puts `b` behind `a`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packet {
    layers: Vec<String>,
}

impl Packet {
    /// Puts layers behind these.
    #[must_use]
    pub fn then(mut self, next: impl Into<Packet>) -> Packet {
        self.layers.extend(next.into().layers);
        self
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.layers.join("/"))
    }
}

impl From<Packet> for String {
    fn from(packet: Packet) -> String {
        packet.to_string()
    }
}

impl<T: Into<Packet>> Div<T> for Packet {
    type Output = Packet;

    fn div(self, next: T) -> Packet {
        self.then(next)
    }
}

impl From<Payload> for Packet {
    fn from(payload: Payload) -> Packet {
        Packet { layers: vec![payload.to_string()] }
    }
}

impl<T: Into<Packet>> Div<T> for Payload {
    type Output = Packet;

    fn div(self, next: T) -> Packet {
        Packet::from(self).then(next)
    }
}

/// A layer in the expression language as it stands, for what has no method here.
#[must_use]
pub fn written(text: &str) -> Packet {
    Packet { layers: vec![text.to_owned()] }
}

macro_rules! layers {
    ($($(#[$doc:meta])* $type:ident $function:ident { $($method:ident $field:literal),* $(,)? })*) => {
        /// Name and fields of each layer, for tests.
        #[doc(hidden)]
        pub const LAYERS: &[(&str, &[&str])] = &[$((stringify!($function), &[$($field),*])),*];
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Eq)]
            pub struct $type {
                fields: Vec<(&'static str, String)>,
            }

            $(#[$doc])*
            #[must_use]
            pub fn $function() -> $type {
                $type::default()
            }

            impl $type {
                $(
                    #[doc = concat!("Sets `", $field, "`.")]
                    #[must_use]
                    pub fn $method(self, value: impl Into<Value>) -> $type {
                        self.set($field, value)
                    }
                )*

                /// Sets a field by its name in docs/expressions.md.
                #[must_use]
                pub fn set(mut self, field: &'static str, value: impl Into<Value>) -> $type {
                    self.fields.retain(|(name, _)| *name != field);
                    self.fields.push((field, value.into().to_string()));
                    self
                }

                /// Sets the field if there is a value.
                #[must_use]
                pub fn maybe(self, field: &'static str, value: Option<impl Into<Value>>) -> $type {
                    match value {
                        Some(value) => self.set(field, value),
                        None => self,
                    }
                }
            }

            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(stringify!($function))?;
                    if self.fields.is_empty() {
                        return Ok(());
                    }
                    let fields: Vec<String> =
                        self.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    write!(f, "({})", fields.join(", "))
                }
            }

            impl From<$type> for Packet {
                fn from(layer: $type) -> Packet {
                    Packet { layers: vec![layer.to_string()] }
                }
            }

            impl<T: Into<Packet>> Div<T> for $type {
                type Output = Packet;

                fn div(self, next: T) -> Packet {
                    Packet::from(self).then(next)
                }
            }
        )*
    };
}

layers! {
    /// Ethernet II. Put in front by itself where a packet does not begin with it.
    Ether ether { dst "dst", src "src", kind "type" }
    /// 802.1Q tag.
    Vlan vlan { prio "prio", dei "dei", id "id", kind "type" }
    /// 802.1ad service tag.
    Qinq qinq { prio "prio", dei "dei", id "id", kind "type" }
    /// MPLS label stack entry.
    Mpls mpls { label "label", tc "tc", s "s", ttl "ttl" }
    /// Address resolution of IPv4 over Ethernet.
    Arp arp { hwtype "hwtype", ptype "ptype", hwlen "hwlen", plen "plen", op "op", hwsrc "hwsrc", psrc "psrc", hwdst "hwdst", pdst "pdst" }
    /// IPv4.
    Ipv4 ipv4 { version "version", ihl "ihl", tos "tos", dscp "dscp", ecn "ecn", length "len", id "id", flags "flags", frag "frag", ttl "ttl", proto "proto", chksum "chksum", src "src", dst "dst", options "options" }
    /// IPv6.
    Ipv6 ipv6 { version "version", tc "tc", dscp "dscp", ecn "ecn", fl "fl", plen "plen", nh "nh", hlim "hlim", src "src", dst "dst" }
    /// IPv6 hop-by-hop options.
    Hopopts hopopts { nh "nh", length "len", options "options" }
    /// IPv6 destination options.
    Dstopts dstopts { nh "nh", length "len", options "options" }
    /// IPv6 fragment header.
    Frag frag { nh "nh", res1 "res1", offset "offset", res2 "res2", m "m", id "id" }
    /// IPv6 segment routing header.
    Srv6 srv6 { nh "nh", length "len", kind "type", segleft "segleft", lastentry "lastentry", flags "flags", tag "tag", segments "segments" }
    /// TCP.
    Tcp tcp { sport "sport", dport "dport", seq "seq", ack "ack", dataofs "dataofs", reserved "reserved", flags "flags", window "window", chksum "chksum", urgptr "urgptr", options "options" }
    /// UDP.
    Udp udp { sport "sport", dport "dport", length "len", chksum "chksum" }
    /// SCTP common header.
    Sctp sctp { sport "sport", dport "dport", tag "tag", chksum "chksum" }
    /// SCTP DATA chunk.
    Sctpdata sctpdata { flags "flags", length "len", tsn "tsn", stream_id "stream_id", stream_seq "stream_seq", proto_id "proto_id" }
    /// ICMP.
    Icmp icmp { kind "type", code "code", chksum "chksum", rest "rest", id "id", seq "seq", gw "gw", ptr "ptr", mtu "mtu" }
    /// ICMPv6.
    Icmpv6 icmpv6 { kind "type", code "code", cksum "cksum", rest "rest", id "id", seq "seq", mtu "mtu", ptr "ptr", target "target", dst "dst", reachable "reachable", retrans "retrans", options "options" }
    /// IGMP version 2.
    Igmp igmp { kind "type", maxresp "maxresp", chksum "chksum", group "group" }
    /// GRE.
    Gre gre { chksum_present "chksum_present", key_present "key_present", seq_present "seq_present", version "version", proto "proto", chksum "chksum", key "key", seq "seq" }
    /// VXLAN.
    Vxlan vxlan { flags "flags", reserved1 "reserved1", vni "vni", reserved2 "reserved2" }
    /// GTP user plane.
    Gtpu gtpu { kind "type", length "len", teid "teid", seq "seq", npdu "npdu", next_ex "next_ex", ext "ext" }
}
