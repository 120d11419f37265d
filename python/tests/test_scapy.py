"""Templates of Scapy become programs: what netdyno makes of one is what Scapy makes of it, byte for byte.

The oracle is Scapy's own iteration, ``list(pkt)``, over templates that hypothesis puts together.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import islice

import netdyno as nd
import pytest
import scapy.all as sc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netdyno._job import Frames, translated
from netdyno._scapy import translate
from scapy.contrib import mpls

logging.getLogger("scapy").setLevel(logging.CRITICAL)
EXAMPLES = int(os.environ.get("NETDYNO_SCAPY_EXAMPLES", "2000"))
MAC = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


def by_scapy(packet, count):
    return [bytes(one) for one in islice(iter(packet), count)]


def program(packet):
    """The scenario of a template, which must be one."""
    made = translated(packet)
    assert isinstance(made, Mapping), getattr(made, "reason", made)
    return made


# Values of fields: one, ranges, lists and tuples, as Scapy's users write them.


def numbers(most, least=0):
    one = st.integers(least, most)
    near = st.integers(0, 6)
    span = st.builds(lambda first, more: (first, min(first + more, most)), one, near)
    stepped = st.builds(lambda first, more, step: (first, min(first + more * step, most), step), one, near, st.integers(1, 5))
    wide = st.just((least, most))
    several = st.lists(st.one_of(one, one, span), min_size=1, max_size=5)
    return st.one_of(one, one, span, span, stepped, wide, several)


def maybe(strategy):
    """A field that is left to Scapy, more often than not."""
    return st.one_of(st.none(), st.none(), strategy)


ADDRESS = st.integers(1 << 24, 0xDFFFFFFF).map(lambda n: ".".join(map(str, n.to_bytes(4, "big"))))
NETWORK = st.builds(lambda address, bits: f"{address}/{bits}", ADDRESS, st.integers(8, 32))
IP4 = st.one_of(
    ADDRESS,
    NETWORK,
    NETWORK,
    NETWORK.map(sc.Net),
    st.lists(st.one_of(ADDRESS, NETWORK), min_size=1, max_size=3),
)
ADDRESS6 = st.integers(0, (1 << 64) - 1).map(lambda n: sc.inet_ntop(sc.socket.AF_INET6, (0x20010DB8 << 96 | n).to_bytes(16, "big")))
NETWORK6 = st.builds(lambda address, bits: f"{address}/{bits}", ADDRESS6, st.integers(64, 128))
IP6 = st.one_of(ADDRESS6, NETWORK6, NETWORK6.map(sc.Net6), st.lists(ADDRESS6, min_size=1, max_size=3))
LOAD = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=40),
    st.lists(st.binary(min_size=5, max_size=5), min_size=1, max_size=3),
)


@st.composite
def layer(draw, kind, **fields):
    """Some of the fields are set, the others left to Scapy."""
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=min(4, len(fields))))
    return kind(**{name: draw(fields[name]) for name in sorted(chosen)})


ETHER = st.builds(lambda more: sc.Ether(**{**MAC, **more}), st.fixed_dictionaries({}, optional={"type": st.just(0x88B5)}))
VLAN = layer(sc.Dot1Q, vlan=numbers(4095), prio=numbers(7), id=numbers(1))
MPLS = layer(mpls.MPLS, label=numbers((1 << 20) - 1), ttl=numbers(255), cos=numbers(7))
IPV4 = layer(
    sc.IP,
    src=IP4,
    dst=IP4,
    ttl=numbers(255),
    tos=numbers(255),
    id=numbers(65535),
    flags=st.sampled_from(["DF", 2, "MF+DF"]),
    frag=numbers(8191),
    proto=st.just(253),
    chksum=numbers(65535),
    len=st.integers(0, 65535),
    options=st.sampled_from([[sc.IPOption_NOP()] * 4, [sc.IPOption_RR(routers=["192.0.2.1"])]]),
)
IPV6 = layer(sc.IPv6, src=IP6, dst=IP6, hlim=numbers(255), tc=numbers(255), fl=numbers((1 << 20) - 1), plen=st.integers(0, 65535))
ARP = layer(sc.ARP, op=numbers(2, 1), psrc=IP4, pdst=IP4, hwsrc=st.just("02:00:00:00:00:09"), hwdst=st.just("02:00:00:00:00:0a"))
UDP = layer(sc.UDP, sport=numbers(65535), dport=numbers(65535), chksum=numbers(65535), len=st.integers(0, 65535))
TCP = layer(
    sc.TCP,
    sport=numbers(65535),
    dport=numbers(65535),
    seq=numbers((1 << 32) - 1),
    ack=numbers((1 << 32) - 1),
    flags=st.sampled_from(["S", "SA", 0x18]),
    window=numbers(65535),
    urgptr=numbers(65535),
    options=st.sampled_from([[("MSS", 1460)], [("NOP", None), ("WScale", 7)], [("Timestamp", (1, 2))]]),
)
ICMP = layer(sc.ICMP, type=st.sampled_from([0, 8, 3]), code=numbers(15), id=numbers(65535), seq=numbers(65535), chksum=numbers(65535))
ICMP6 = layer(sc.ICMPv6EchoRequest, id=numbers(65535), seq=numbers(65535), code=numbers(255))
GRE = layer(sc.GRE, key_present=st.just(1), key=numbers((1 << 32) - 1), seqnum_present=st.just(1), sequence_number=numbers(65535))
DNS = layer(sc.DNS, id=numbers(65535), rd=numbers(1), qd=st.sampled_from([sc.DNSQR(qname="example.org"), sc.DNSQR(qname="a.example", qtype="AAAA")]))
# (Its times are those of building, if they are left to Scapy.)
NTP = layer(lambda **fields: sc.NTP(ref=0, orig=0, recv=0, sent=1, **fields), poll=numbers(255), stratum=st.integers(0, 15), id=ADDRESS, precision=numbers(255))
VXLAN = layer(sc.VXLAN, vni=numbers((1 << 24) - 1))
SCTP = st.builds(lambda header, tsn: header / sc.SCTPChunkData(data=b"abcd", tsn=tsn), layer(sc.SCTP, sport=numbers(65535), tag=numbers(65535)), numbers(9))
L2TP = layer(sc.L2TP, tunnel_id=numbers(65535), session_id=numbers(65535))
HOPS = st.just(sc.IPv6ExtHdrHopByHop(options=[sc.PadN(optdata=b"\0\0\0\0")]))


@st.composite
def templates(draw):
    packet = draw(ETHER)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        packet /= draw(VLAN)
    if draw(st.integers(0, 9)) == 0:
        packet /= draw(MPLS)
    network = draw(st.sampled_from(["4", "4", "4", "4", "6", "6", "arp"]))
    if network == "arp":
        return packet / draw(ARP)
    packet /= draw(IPV4 if network == "4" else IPV6)
    if draw(st.integers(0, 9)) == 0:
        packet = packet / draw(GRE) / draw(IPV4) if network == "4" else packet / draw(HOPS)
    upper = draw(st.sampled_from(["udp", "udp", "udp", "tcp", "tcp", "icmp", "sctp", "none"]))
    if upper == "udp":
        packet /= draw(UDP)
        inner = draw(st.sampled_from(["", "", "", "", "dns", "ntp", "vxlan", "l2tp"]))
        if inner == "vxlan":
            packet = packet / draw(VXLAN) / sc.Ether(**MAC) / draw(IPV4) / draw(UDP)
        elif inner:
            packet /= draw({"dns": DNS, "ntp": NTP, "l2tp": L2TP}[inner])
    elif upper == "tcp":
        packet /= draw(TCP)
    elif upper == "icmp":
        packet /= draw(ICMP if network == "4" else ICMP6)
    elif upper == "sctp":
        packet /= draw(SCTP)
    load = draw(maybe(LOAD))
    if load is not None:
        packet /= sc.Raw(load=load)
    if draw(st.integers(0, 19)) == 0:
        packet /= sc.Padding(load=b"\0" * draw(st.integers(0, 8)))
    return packet


# So many packets of what is no program are built here: Scapy builds some thousands a second.
BOUND = 100
TALLY = {"program": 0, "built": 0}


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(templates(), st.integers(1, 12))
def frames_are_scapys(packet, count):
    written = packet.command()
    try:
        expected = by_scapy(packet, count)
    except Exception:  # Scapy raises whatever it likes.
        with pytest.raises(nd.UsageError):
            translate(packet, BOUND)
        return
    try:
        made = translate(packet, BOUND)
    except nd.NotTranslatable as error:
        # More of them than are built, and no program, which the message says; or Scapy cannot build one that comes later.
        if "Scapy cannot build" in str(error):
            with pytest.raises(Exception):  # noqa: B017, PT011
                by_scapy(packet, 1 << 14)
        else:
            assert "is no packet program" in str(error), written
        TALLY["built"] += 1
        return
    if isinstance(made, Frames):
        TALLY["built"] += 1
        assert made.reason, written
        assert made[:count] == expected, written
        return
    TALLY["program"] += 1
    frames = nd.craft(made, count=count)
    assert frames[: len(expected)] == expected, written
    # A template has an end; a program begins again.
    if len(expected) < count:
        assert frames == [expected[n % len(expected)] for n in range(count)], written


def test_what_netdyno_makes_of_a_template_is_what_scapy_makes_of_it():
    TALLY.update(program=0, built=0)
    frames_are_scapys()
    # Else this would compare Scapy with Scapy.
    assert TALLY["program"] > 0.8 * EXAMPLES, TALLY


def test_a_list_whose_values_return_stands_beside_bits_of_another_field():
    packet = sc.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / mpls.MPLS(label=[1, 1, 0, 1], cos=(0, 7)) / sc.IP() / sc.UDP()
    assert not isinstance(translate(packet, BOUND), Frames)
    assert nd.craft(packet, count=32) == [bytes(one) for one in packet]


# Random values: of each frame the fields are read by Scapy, put into the template as fixed values, and built by Scapy.

RANDOM = {
    "IP.src": [sc.RandIP(), sc.RandIP("198.18.0.0/15"), sc.RandChoice("192.0.2.1", "192.0.2.9")],
    "IP.dst": [sc.RandIP("10.1.0.0/16")],
    "IP.ttl": [sc.RandByte(), sc.RandNum(5, 9), sc.RandChoice(64, 128, 255)],
    "IP.id": [sc.RandShort()],
    "UDP.sport": [sc.RandShort(), sc.RandNum(1024, 65535), sc.RandEnum(8, 15)],
    "UDP.dport": [sc.RandChoice(53, 123), sc.RandNum(7, 7), sc.RandEnumShort()],
    "Ether.src": [sc.RandMAC(), sc.RandMAC("02:00:5e")],
}


@settings(max_examples=max(20, EXAMPLES // 20), deadline=None, derandomize=True, database=None)
@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in RANDOM.items()}), st.integers(0, 1 << 32))
def test_random_values_are_in_their_range_and_all_else_follows(chosen, seed):
    def template(fixed):
        fields = {"Ether": dict(MAC), "IP": {"src": "192.0.2.1", "dst": "192.0.2.2"}, "UDP": {}}
        for name, value in fixed.items():
            kind, field = name.split(".")
            fields[kind][field] = value
        return sc.Ether(**fields["Ether"]) / sc.IP(**fields["IP"]) / sc.UDP(**fields["UDP"]) / b"payload"

    frames = nd.craft(program(template(chosen)), count=8, seed=seed)
    for frame in frames:
        read = sc.Ether(frame)
        values = {}
        for name, value in chosen.items():
            kind, field = name.split(".")
            values[name] = read[getattr(sc, kind)].getfieldval(field)
            assert allowed(value, values[name]), (name, value, values[name])
        assert bytes(template(values)) == frame
    assert not chosen or len({*frames}) > 1 or set(chosen) <= {"UDP.dport", "IP.src", "IP.ttl"}


def allowed(value, got):
    if isinstance(value, sc.RandIP):
        net = value.ip
        return net.start <= sc.Net.ip2int(got) <= net.stop
    if isinstance(value, sc.RandMAC):
        return all((part == byte) if isinstance(part, int) else part.min <= byte <= part.max for part, byte in zip(value.mac, bytes.fromhex(got.replace(":", ""))))
    if isinstance(value, sc.RandChoice):
        return got in value._choice
    if isinstance(value, sc.RandEnum):
        return value.min <= got <= value.max
    return value.min <= got <= value.max


def test_each_value_of_an_enumeration_comes_once_before_any_comes_again():
    packet = sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2") / sc.UDP(sport=sc.RandEnum(8, 15))
    ports = [int.from_bytes(frame[34:36], "big") for frame in nd.craft(packet, count=16, seed=3)]
    assert sorted(ports[:8]) == sorted(ports[8:]) == list(range(8, 16))


def test_ip6_and_text_of_chance_stand_where_scapy_puts_them():
    packet = sc.Ether(**MAC) / sc.IPv6(src="2001:db8::1", dst=sc.RandIP6("2001:db8:0:1::*")) / sc.UDP() / sc.Raw(load=sc.RandString(6))
    frames = nd.craft(program(packet), count=50)
    for frame in frames:
        # (Port 53 is Scapy's own, and 2.5.0 reads any six bytes there as DNS.)
        read, load = sc.Ether(frame), frame[62:]
        assert load.isalnum() and len(load) == 6
        assert bytes(sc.Ether(**MAC) / sc.IPv6(src="2001:db8::1", dst=read[sc.IPv6].dst) / sc.UDP() / load) == frame
    assert len({*frames}) == 50


# What is no program.


def test_what_is_no_program_is_built_up_to_a_bound_and_then_refused_with_the_reason():
    few = sc.Ether(**MAC) / sc.IP(dst="192.0.2.0/30", src="192.0.2.9") / sc.UDP() / sc.Raw(load=[b"a", b"bcd"])
    made = translated(few)
    assert isinstance(made, Frames) and "length" in made.reason
    assert made == by_scapy(few, 99) and len(made) == 8
    many = sc.Ether(**MAC) / sc.IP(dst="10.0.0.0/8", src="192.0.2.9") / sc.UDP() / sc.Raw(load=[b"a", b"bcd"])
    with pytest.raises(nd.NotTranslatable, match="33554432 packets, and is no packet program: the frame's length varies") as raised:
        nd.craft(many)
    assert "fewer of its fields" in raised.value.remedy
    with pytest.raises(nd.NotTranslatable, match="no values"):
        translated(sc.Ether(**MAC) / sc.IP(ttl=[]))


def test_what_scapy_cannot_build_is_an_error_that_says_so():
    with pytest.raises(nd.NotTranslatable, match="Scapy cannot build Ether/IP/UDP"):
        nd.craft(sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2") / sc.UDP(sport=70_000))


def test_a_million_implicit_packets_are_one_program_and_cost_no_more_than_one():
    packet = sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="198.18.0.0/16") / sc.UDP(dport=(1, 1000))
    translated(packet)
    begin = time.process_time()
    made = program(packet)
    took = time.process_time() - begin
    # The goal of 10 ms is measured by itself (docs/python.md); enumerating would take minutes.
    assert took < 1, took
    total = 65536 * 1000
    for first in (0, 999, 65_535_990):
        expected = [bytes(one) for one in sliced(packet, first, 5)]
        assert nd.craft(made, first=first, count=5) == expected
    assert nd.craft(made, first=total, count=1) == nd.craft(made, count=1)


def sliced(packet, first, count):
    """Packets of that template from one on, without going through those before: its order is a nested product, ports fastest."""
    for number in range(first, first + count):
        address = sc.Net("198.18.0.0/16").start + number // 1000
        yield sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst=sc.Net.int2ip(address)) / sc.UDP(dport=1 + number % 1000)


# Lists, generators, readers.


def test_lists_generators_and_readers_are_sources(tmp_path):
    packets = [sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2", id=n) / sc.UDP() for n in range(5)]
    frames = [bytes(packet) for packet in packets]
    file = str(tmp_path / "five.pcap")
    sc.wrpcap(file, packets)
    assert nd.craft(packets, count=9) == nd.craft((packet for packet in packets), count=9) == frames
    assert nd.craft(sc.rdpcap(file), count=9) == nd.craft(sc.PcapReader(file), count=9) == frames
    assert nd.craft([packets[0], frames[1], sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2", id=(2, 4)) / sc.UDP()], count=9) == frames
    assert nd.craft(sc.SndRcvList([(packets[0], packets[1])]), count=9) == frames[:2]

    def broken():
        yield packets[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nd.craft(broken())
    with pytest.raises(nd.UsageError, match="item 1 is int"):
        nd.craft([packets[0], 5])
    with pytest.raises(nd.UsageError, match="no frame is in it"):
        nd.craft(sc.PacketList())


def test_captured_packets_are_replayed_at_their_times(tmp_path):
    packets = [sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2", id=n) for n in range(3)]
    for packet, at in zip(packets, (5.0, 5.25, 7.0)):
        packet.time = at
    file = tmp_path / "three.pcap"
    sc.wrpcap(str(file), packets)
    job = nd.job(nd.replay, sc.rdpcap(str(file)), on="tx0")
    (tmp_path / "sent.pcap").write_bytes(job.contents["frames.pcap"])
    assert nd.read_frames(tmp_path / "sent.pcap") == [(int(at * 1e9), bytes(packet)) for at, packet in zip((5.0, 5.25, 7.0), packets)]
    assert [bytes(packet) for packet in nd.read_packets(file)] == [bytes(packet) for packet in packets]
    assert [float(packet.time) for packet in nd.read_packets(file)] == [5.0, 5.25, 7.0]


def test_addresses_that_scapy_would_ask_the_network_for_are_those_of_expressions():
    frames = nd.craft(sc.IP(src="192.0.2.1", dst="198.18.0.0/30") / sc.UDP(), count=4)
    assert {frame[:12].hex() for frame in frames} == {"020000000002020000000001"}
    assert [frame[33] for frame in frames] == [0, 1, 2, 3]
    assert nd.craft(sc.Ether(src="02:00:00:00:00:07") / sc.IP(src="192.0.2.1", dst="224.0.0.5"))[0][:6].hex() == "01005e000005"


def test_scapy_is_not_imported_for_packets_of_nobody():
    code = "import sys, netdyno as nd; nd.craft([b'x' * 60]); nd.job(nd.replay, 'x.pcap', on='tx0'); print('scapy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
