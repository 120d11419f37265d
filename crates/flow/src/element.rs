//! Information elements: what a field of a record means (IANA "ipfix"), and what NetFlow's users call it.
//!
//! NetFlow v9's field types are the same numbers up to 127 (RFC 5102, 4.2). Above them IPFIX's names are used in v9, too, as
//! other exporters do.

use std::borrow::Cow;

/// An element, as a template names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number {
    /// Whose it is; zero is IANA.
    pub enterprise: u32,
    /// Its number there.
    pub id: u16,
}

impl Number {
    /// One of IANA's.
    pub const fn iana(id: u16) -> Number {
        Number { enterprise: 0, id }
    }
}

/// How the bytes of a field are read (RFC 7011, 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An unsigned number of any length up to eight bytes.
    Unsigned,
    /// An IPv4 address.
    V4,
    /// An IPv6 address.
    V6,
    /// An Ethernet address.
    Mac,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Seconds and 2^-32 s since 1900, of which the last bits are nothing.
    Microseconds,
    /// Seconds and 2^-32 s since 1900.
    Nanoseconds,
    /// Text.
    Text,
    /// A floating-point number (IEEE 754) of eight bytes, or of four.
    Float,
    /// Bytes.
    Octets,
}

/// An element that is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// Its number.
    pub number: Number,
    /// IANA's name.
    pub name: &'static str,
    /// What NetFlow v9 and nProbe call it; empty where they do not.
    pub netflow: &'static str,
    /// Bytes in IPFIX; 65,535 where they vary.
    pub length: u16,
    /// Bytes in NetFlow v9.
    pub length_v9: u16,
    /// How it is read.
    pub kind: Kind,
}

/// The length of what varies.
pub const VARIES: u16 = u16::MAX;

const fn element(
    id: u16,
    name: &'static str,
    netflow: &'static str,
    (length, length_v9): (u16, u16),
    kind: Kind,
) -> Element {
    Element { number: Number::iana(id), name, netflow, length, length_v9, kind }
}

use Kind::{Float, Mac, Microseconds, Milliseconds, Nanoseconds, Octets, Seconds, Text, Unsigned, V4, V6};

/// Those that are known here, in the order of their numbers.
pub const ELEMENTS: &[Element] = &[
    element(1, "octetDeltaCount", "IN_BYTES", (8, 8), Unsigned),
    element(2, "packetDeltaCount", "IN_PKTS", (8, 8), Unsigned),
    element(4, "protocolIdentifier", "PROTOCOL", (1, 1), Unsigned),
    element(5, "ipClassOfService", "SRC_TOS", (1, 1), Unsigned),
    element(6, "tcpControlBits", "TCP_FLAGS", (2, 1), Unsigned),
    element(7, "sourceTransportPort", "L4_SRC_PORT", (2, 2), Unsigned),
    element(8, "sourceIPv4Address", "IPV4_SRC_ADDR", (4, 4), V4),
    element(9, "sourceIPv4PrefixLength", "IPV4_SRC_MASK", (1, 1), Unsigned),
    element(10, "ingressInterface", "INPUT_SNMP", (4, 4), Unsigned),
    element(11, "destinationTransportPort", "L4_DST_PORT", (2, 2), Unsigned),
    element(12, "destinationIPv4Address", "IPV4_DST_ADDR", (4, 4), V4),
    element(13, "destinationIPv4PrefixLength", "IPV4_DST_MASK", (1, 1), Unsigned),
    element(14, "egressInterface", "OUTPUT_SNMP", (4, 4), Unsigned),
    element(15, "ipNextHopIPv4Address", "IPV4_NEXT_HOP", (4, 4), V4),
    element(16, "bgpSourceAsNumber", "SRC_AS", (4, 4), Unsigned),
    element(17, "bgpDestinationAsNumber", "DST_AS", (4, 4), Unsigned),
    element(18, "bgpNextHopIPv4Address", "BGP_IPV4_NEXT_HOP", (4, 4), V4),
    element(21, "flowEndSysUpTime", "LAST_SWITCHED", (4, 4), Unsigned),
    element(22, "flowStartSysUpTime", "FIRST_SWITCHED", (4, 4), Unsigned),
    element(23, "postOctetDeltaCount", "OUT_BYTES", (8, 8), Unsigned),
    element(24, "postPacketDeltaCount", "OUT_PKTS", (8, 8), Unsigned),
    element(25, "minimumIpTotalLength", "MIN_IP_PKT_LEN", (8, 2), Unsigned),
    element(26, "maximumIpTotalLength", "MAX_IP_PKT_LEN", (8, 2), Unsigned),
    element(27, "sourceIPv6Address", "IPV6_SRC_ADDR", (16, 16), V6),
    element(28, "destinationIPv6Address", "IPV6_DST_ADDR", (16, 16), V6),
    element(29, "sourceIPv6PrefixLength", "IPV6_SRC_MASK", (1, 1), Unsigned),
    element(30, "destinationIPv6PrefixLength", "IPV6_DST_MASK", (1, 1), Unsigned),
    element(31, "flowLabelIPv6", "IPV6_FLOW_LABEL", (4, 3), Unsigned),
    element(32, "icmpTypeCodeIPv4", "ICMP_TYPE", (2, 2), Unsigned),
    element(34, "samplingInterval", "SAMPLING_INTERVAL", (4, 4), Unsigned),
    element(35, "samplingAlgorithm", "SAMPLING_ALGORITHM", (1, 1), Unsigned),
    element(36, "flowActiveTimeout", "FLOW_ACTIVE_TIMEOUT", (2, 2), Unsigned),
    element(37, "flowIdleTimeout", "FLOW_INACTIVE_TIMEOUT", (2, 2), Unsigned),
    element(38, "engineType", "ENGINE_TYPE", (1, 1), Unsigned),
    element(39, "engineId", "ENGINE_ID", (1, 1), Unsigned),
    element(40, "exportedOctetTotalCount", "TOTAL_BYTES_EXP", (8, 8), Unsigned),
    element(41, "exportedMessageTotalCount", "TOTAL_PKTS_EXP", (8, 8), Unsigned),
    element(42, "exportedFlowRecordTotalCount", "TOTAL_FLOWS_EXP", (8, 8), Unsigned),
    element(48, "samplerId", "FLOW_SAMPLER_ID", (1, 1), Unsigned),
    element(49, "samplerMode", "FLOW_SAMPLER_MODE", (1, 1), Unsigned),
    element(50, "samplerRandomInterval", "FLOW_SAMPLER_RANDOM_INTERVAL", (4, 4), Unsigned),
    element(52, "minimumTTL", "MIN_TTL", (1, 1), Unsigned),
    element(53, "maximumTTL", "MAX_TTL", (1, 1), Unsigned),
    element(54, "fragmentIdentification", "IPV4_IDENT", (4, 2), Unsigned),
    element(55, "postIpClassOfService", "DST_TOS", (1, 1), Unsigned),
    element(56, "sourceMacAddress", "IN_SRC_MAC", (6, 6), Mac),
    element(57, "postDestinationMacAddress", "OUT_DST_MAC", (6, 6), Mac),
    element(58, "vlanId", "SRC_VLAN", (2, 2), Unsigned),
    element(59, "postVlanId", "DST_VLAN", (2, 2), Unsigned),
    element(60, "ipVersion", "IP_PROTOCOL_VERSION", (1, 1), Unsigned),
    element(61, "flowDirection", "DIRECTION", (1, 1), Unsigned),
    element(62, "ipNextHopIPv6Address", "IPV6_NEXT_HOP", (16, 16), V6),
    element(63, "bgpNextHopIPv6Address", "BGP_IPV6_NEXT_HOP", (16, 16), V6),
    element(70, "mplsTopLabelStackSection", "MPLS_LABEL_1", (3, 3), Octets),
    element(80, "destinationMacAddress", "IN_DST_MAC", (6, 6), Mac),
    element(81, "postSourceMacAddress", "OUT_SRC_MAC", (6, 6), Mac),
    element(82, "interfaceName", "INTERFACE_NAME", (VARIES, 16), Text),
    element(83, "interfaceDescription", "INTERFACE_DESC", (VARIES, 32), Text),
    element(84, "samplerName", "FLOW_SAMPLER_NAME", (VARIES, 32), Text),
    element(85, "octetTotalCount", "IN_PERMANENT_BYTES", (8, 8), Unsigned),
    element(86, "packetTotalCount", "IN_PERMANENT_PKTS", (8, 8), Unsigned),
    element(89, "forwardingStatus", "FORWARDING_STATUS", (1, 1), Unsigned),
    element(94, "applicationDescription", "APPLICATION_DESCRIPTION", (VARIES, 32), Text),
    element(95, "applicationId", "APPLICATION_ID", (VARIES, 4), Octets),
    element(96, "applicationName", "APPLICATION_NAME", (VARIES, 24), Text),
    element(100, "className", "", (VARIES, 32), Text),
    element(130, "exporterIPv4Address", "EXPORTER_IPV4_ADDRESS", (4, 4), V4),
    element(131, "exporterIPv6Address", "EXPORTER_IPV6_ADDRESS", (16, 16), V6),
    element(136, "flowEndReason", "FLOW_END_REASON", (1, 1), Unsigned),
    element(138, "observationPointId", "OBSERVATION_POINT_ID", (8, 8), Unsigned),
    element(139, "icmpTypeCodeIPv6", "", (2, 2), Unsigned),
    element(143, "meteringProcessId", "", (4, 4), Unsigned),
    element(144, "exportingProcessId", "", (4, 4), Unsigned),
    element(145, "templateId", "", (2, 2), Unsigned),
    element(147, "wlanSSID", "", (VARIES, 32), Text),
    element(148, "flowId", "FLOW_ID", (8, 8), Unsigned),
    element(149, "observationDomainId", "", (4, 4), Unsigned),
    element(150, "flowStartSeconds", "FLOW_START_SEC", (4, 4), Seconds),
    element(151, "flowEndSeconds", "FLOW_END_SEC", (4, 4), Seconds),
    element(152, "flowStartMilliseconds", "FLOW_START_MILLISECONDS", (8, 8), Milliseconds),
    element(153, "flowEndMilliseconds", "FLOW_END_MILLISECONDS", (8, 8), Milliseconds),
    element(154, "flowStartMicroseconds", "FLOW_START_MICROSECONDS", (8, 8), Microseconds),
    element(155, "flowEndMicroseconds", "FLOW_END_MICROSECONDS", (8, 8), Microseconds),
    element(156, "flowStartNanoseconds", "FLOW_START_NANOSECONDS", (8, 8), Nanoseconds),
    element(157, "flowEndNanoseconds", "FLOW_END_NANOSECONDS", (8, 8), Nanoseconds),
    element(158, "flowStartDeltaMicroseconds", "", (4, 4), Unsigned),
    element(159, "flowEndDeltaMicroseconds", "", (4, 4), Unsigned),
    element(160, "systemInitTimeMilliseconds", "", (8, 8), Milliseconds),
    element(161, "flowDurationMilliseconds", "FLOW_DURATION_MILLISECONDS", (4, 4), Unsigned),
    element(162, "flowDurationMicroseconds", "FLOW_DURATION_MICROSECONDS", (4, 4), Unsigned),
    element(163, "observedFlowTotalCount", "", (8, 8), Unsigned),
    element(164, "ignoredPacketTotalCount", "", (8, 8), Unsigned),
    element(165, "ignoredOctetTotalCount", "", (8, 8), Unsigned),
    element(166, "notSentFlowTotalCount", "", (8, 8), Unsigned),
    element(167, "notSentPacketTotalCount", "", (8, 8), Unsigned),
    element(168, "notSentOctetTotalCount", "", (8, 8), Unsigned),
    element(171, "postOctetTotalCount", "", (8, 8), Unsigned),
    element(172, "postPacketTotalCount", "", (8, 8), Unsigned),
    element(173, "flowKeyIndicator", "", (8, 8), Unsigned),
    element(176, "icmpTypeIPv4", "ICMP_IPV4_TYPE", (1, 1), Unsigned),
    element(177, "icmpCodeIPv4", "ICMP_IPV4_CODE", (1, 1), Unsigned),
    element(178, "icmpTypeIPv6", "", (1, 1), Unsigned),
    element(179, "icmpCodeIPv6", "", (1, 1), Unsigned),
    element(195, "ipDiffServCodePoint", "", (1, 1), Unsigned),
    element(225, "postNATSourceIPv4Address", "POST_NAT_SRC_IPV4_ADDR", (4, 4), V4),
    element(226, "postNATDestinationIPv4Address", "POST_NAT_DST_IPV4_ADDR", (4, 4), V4),
    element(227, "postNAPTSourceTransportPort", "POST_NAPT_SRC_TRANSPORT_PORT", (2, 2), Unsigned),
    element(228, "postNAPTDestinationTransportPort", "POST_NAPT_DST_TRANSPORT_PORT", (2, 2), Unsigned),
    element(230, "natEvent", "", (1, 1), Unsigned),
    element(231, "initiatorOctets", "", (8, 8), Unsigned),
    element(232, "responderOctets", "", (8, 8), Unsigned),
    element(233, "firewallEvent", "", (1, 1), Unsigned),
    element(234, "ingressVRFID", "", (4, 4), Unsigned),
    element(235, "egressVRFID", "", (4, 4), Unsigned),
    element(236, "VRFname", "", (VARIES, 32), Text),
    element(239, "biflowDirection", "BIFLOW_DIRECTION", (1, 1), Unsigned),
    element(243, "dot1qVlanId", "DOT1Q_SRC_VLAN", (2, 2), Unsigned),
    element(244, "dot1qPriority", "", (1, 1), Unsigned),
    element(245, "dot1qCustomerVlanId", "", (2, 2), Unsigned),
    element(247, "metroEvcId", "", (VARIES, 32), Text),
    element(252, "ingressPhysicalInterface", "", (4, 4), Unsigned),
    element(253, "egressPhysicalInterface", "", (4, 4), Unsigned),
    element(254, "postDot1qVlanId", "DOT1Q_DST_VLAN", (2, 2), Unsigned),
    element(284, "natPoolName", "", (VARIES, 32), Text),
    element(288, "p2pTechnology", "", (VARIES, 32), Text),
    element(289, "tunnelTechnology", "", (VARIES, 32), Text),
    element(290, "encryptedTechnology", "", (VARIES, 32), Text),
    element(298, "initiatorPackets", "", (8, 8), Unsigned),
    element(299, "responderPackets", "", (8, 8), Unsigned),
    element(300, "observationDomainName", "", (VARIES, 32), Text),
    element(302, "selectorId", "SELECTOR_ID", (8, 8), Unsigned),
    element(304, "selectorAlgorithm", "", (2, 2), Unsigned),
    element(305, "samplingPacketInterval", "", (4, 4), Unsigned),
    element(306, "samplingPacketSpace", "", (4, 4), Unsigned),
    element(307, "samplingTimeInterval", "", (4, 4), Unsigned),
    element(308, "samplingTimeSpace", "", (4, 4), Unsigned),
    element(309, "samplingSize", "", (4, 4), Unsigned),
    element(310, "samplingPopulation", "", (4, 4), Unsigned),
    element(311, "samplingProbability", "", (8, 8), Float),
    element(313, "ipHeaderPacketSection", "", (VARIES, 64), Octets),
    element(315, "dataLinkFrameSection", "", (VARIES, 64), Octets),
    element(318, "selectorIdTotalPktsObserved", "", (8, 8), Unsigned),
    element(319, "selectorIdTotalPktsSelected", "", (8, 8), Unsigned),
    element(322, "observationTimeSeconds", "", (4, 4), Seconds),
    element(323, "observationTimeMilliseconds", "", (8, 8), Milliseconds),
    element(324, "observationTimeMicroseconds", "", (8, 8), Microseconds),
    element(325, "observationTimeNanoseconds", "", (8, 8), Nanoseconds),
    element(329, "hashOutputRangeMin", "", (8, 8), Unsigned),
    element(330, "hashOutputRangeMax", "", (8, 8), Unsigned),
    element(331, "hashSelectedRangeMin", "", (8, 8), Unsigned),
    element(332, "hashSelectedRangeMax", "", (8, 8), Unsigned),
    element(334, "hashInitialiserValue", "", (8, 8), Unsigned),
    element(335, "selectorName", "", (VARIES, 32), Text),
    element(340, "informationElementDescription", "", (VARIES, 32), Text),
    element(341, "informationElementName", "", (VARIES, 32), Text),
    element(348, "virtualStationInterfaceName", "", (VARIES, 32), Text),
    element(350, "virtualStationName", "", (VARIES, 32), Text),
    element(352, "layer2OctetDeltaCount", "", (8, 8), Unsigned),
    element(353, "layer2OctetTotalCount", "", (8, 8), Unsigned),
    element(371, "userName", "", (VARIES, 32), Text),
    element(372, "applicationCategoryName", "", (VARIES, 32), Text),
    element(373, "applicationSubCategoryName", "", (VARIES, 32), Text),
    element(374, "applicationGroupName", "", (VARIES, 32), Text),
    element(390, "flowSelectorAlgorithm", "", (2, 2), Unsigned),
    element(400, "hashFlowDomain", "", (2, 2), Unsigned),
    element(410, "sectionExportedOctets", "", (2, 2), Unsigned),
    element(450, "mibContextName", "", (VARIES, 32), Text),
    element(451, "mibObjectName", "", (VARIES, 32), Text),
    element(452, "mibObjectDescription", "", (VARIES, 32), Text),
    element(453, "mibObjectSyntax", "", (VARIES, 32), Text),
    element(454, "mibModuleName", "", (VARIES, 32), Text),
    element(455, "mobileIMSI", "", (VARIES, 32), Text),
    element(456, "mobileMSISDN", "", (VARIES, 32), Text),
    element(459, "httpRequestMethod", "", (VARIES, 32), Text),
    element(460, "httpRequestHost", "", (VARIES, 32), Text),
    element(461, "httpRequestTarget", "", (VARIES, 32), Text),
    element(462, "httpMessageVersion", "", (VARIES, 32), Text),
    element(468, "httpUserAgent", "", (VARIES, 32), Text),
    element(469, "httpContentType", "", (VARIES, 32), Text),
    element(470, "httpReasonPhrase", "", (VARIES, 32), Text),
];

/// Whose netdyno's own elements are: the number that RFC 5612 keeps for examples. netdyno has none of its own at IANA, and who
/// reads these has to know them anyway.
pub const OWN: u32 = 32_473;

const fn own(id: u16, name: &'static str, length: u16) -> Element {
    let number = Number { enterprise: OWN, id };
    Element { number, name, netflow: "", length, length_v9: length, kind: Unsigned }
}

/// What only a tester knows of a flow, by the signatures in its frames; and what sFlow says that IANA has no element for.
pub const OWN_ELEMENTS: &[Element] = &[
    own(1, "netdynoStream", 4),
    own(2, "netdynoFirstSequence", 8),
    own(3, "netdynoLastSequence", 8),
    own(4, "netdynoSignedPackets", 8),
    own(5, "netdynoOutputs", 4),
];

/// By how many interfaces a packet left, where it was not one; zero: the exporter does not know how many.
pub const OUTPUTS: Number = Number { enterprise: OWN, id: 5 };

/// Who exports, by its own address of IPv4 or IPv6.
pub const EXPORTER: [Number; 2] = [Number::iana(130), Number::iana(131)];

/// What an element of this number is, if it is known here.
pub fn of_number(number: Number) -> Option<&'static Element> {
    if number.enterprise == OWN {
        return OWN_ELEMENTS.iter().find(|element| element.number == number);
    }
    if number.enterprise != 0 {
        return None;
    }
    let at = ELEMENTS.binary_search_by_key(&number.id, |element| element.number.id).ok()?;
    ELEMENTS.get(at)
}

/// Whose elements are IANA's of the other direction, by the same numbers (RFC 5103, 6.1).
pub const REVERSE: u32 = 29_305;

/// The element whose other direction has this number, if it is known here.
pub fn reverse_of(number: Number) -> Option<&'static Element> {
    (number.enterprise == REVERSE).then(|| of_number(Number::iana(number.id))).flatten()
}

/// What follows `reverse` in the name of an element of the other direction: `OctetDeltaCount`.
fn after_reverse(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("reverse")?;
    rest.starts_with(|first: char| first.is_ascii_uppercase()).then_some(rest)
}

/// The element whose other direction has this name: `reverseOctetDeltaCount`.
pub fn reverse_of_name(name: &str) -> Option<&'static Element> {
    let name = after_reverse(name)?;
    ELEMENTS.iter().find(|element| element.name.eq_ignore_ascii_case(name))
}

/// How a field of this number is called; `None` if it is not known here.
pub fn name(number: Number) -> Option<Cow<'static, str>> {
    if let Some(element) = of_number(number) {
        return Some(element.name.into());
    }
    let name = reverse_of(number)?.name;
    let (first, rest) = name.split_at_checked(1)?;
    Some(format!("reverse{}{rest}", first.to_ascii_uppercase()).into())
}

/// The element of this name: IANA's or NetFlow's, with or without the % that nProbe's users write.
pub fn of_name(name: &str) -> Option<&'static Element> {
    let name = name.strip_prefix('%').unwrap_or(name);
    let is = |element: &&Element| {
        element.name.eq_ignore_ascii_case(name)
            || !element.netflow.is_empty() && element.netflow.eq_ignore_ascii_case(name)
    };
    // nProbe has more names for some.
    let same = match name.to_ascii_uppercase().as_str() {
        "SRC_MASK" => "IPV4_SRC_MASK",
        "DST_MASK" => "IPV4_DST_MASK",
        "IN_OCTETS" => "IN_BYTES",
        "DOT1Q_VLAN" => "DOT1Q_SRC_VLAN",
        "L4_PROTOCOL" => "PROTOCOL",
        _ => "",
    };
    ELEMENTS
        .iter()
        .chain(OWN_ELEMENTS)
        .find(is)
        .or_else(|| ELEMENTS.iter().find(|element| !same.is_empty() && element.netflow == same))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_in_order_and_found_by_each_of_their_names() {
        assert!(ELEMENTS.is_sorted_by(|a, b| a.number.id < b.number.id));
        for element in ELEMENTS {
            assert_eq!(of_number(element.number), Some(element));
            assert_eq!(of_name(element.name), Some(element));
            if !element.netflow.is_empty() {
                assert_eq!(of_name(&format!("%{}", element.netflow)), Some(element), "{}", element.netflow);
            }
        }
        for element in OWN_ELEMENTS {
            assert_eq!((of_number(element.number), of_name(element.name)), (Some(element), Some(element)));
            assert_eq!(name(element.number).as_deref(), Some(element.name));
        }
        assert_eq!(of_name("%NO_SUCH_THING"), None);
        let reverse = Number { enterprise: REVERSE, id: 1 };
        assert_eq!(name(reverse).as_deref(), Some("reverseOctetDeltaCount"));
        assert_eq!(reverse_of(reverse), reverse_of_name("reverseOctetDeltaCount"));
        assert_eq!([reverse_of_name("reverse"), reverse_of_name("reversedThing")], [None; 2]);
        assert_eq!(name(Number::iana(152)).as_deref(), Some("flowStartMilliseconds"));
        assert_eq!(of_number(Number { enterprise: 35_632, id: 1 }), None);
    }
}
