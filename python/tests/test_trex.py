"""Profiles of TRex become scenarios whose frames are those of TRex's field engine.

The oracle is a model of that engine which goes through its instructions packet by packet, as TRex's documentation describes them: variables
that step and wrap, chains of them, tuples, writes with masks and shifts, checksums, trimming. It shares nothing with what is tested.
"""

from __future__ import annotations

import textwrap

import netdyno as nd
import pytest
import scapy.all as sc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netdyno import _trexapi as api
from netdyno import _trexhlt, trex

PACKET = bytes(
    sc.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    / sc.IP(src="16.0.0.1", dst="48.0.0.1")
    / sc.UDP(sport=1025, dport=12)
    / (b"x" * 30)
)
START = {"Ethernet": 0, "IP": 14, "UDP": 34}
FIELDS = {"IP.src": 26, "IP.dst": 30, "IP.id": 18, "UDP.sport": 34, "UDP.dport": 36}


def checksum(data: bytes) -> int:
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


class Variable:
    def __init__(self, command):
        self.of, self.first, self.wrapped = command, True, False
        if command.values is not None:
            self.at = len(command.values) - 1 if command.op == "dec" else 0
        self.value = command.init

    def step(self):
        of, self.wrapped = self.of, False
        if of.values is not None:
            if not self.first:
                after = self.at + (of.step if of.op == "inc" else -of.step)
                self.wrapped = not 0 <= after < len(of.values)
                self.at = after % len(of.values)
            self.value = of.values[self.at]
        elif not self.first:
            after = self.value + (of.step if of.op == "inc" else -of.step)
            size = of.max - of.min + 1
            self.wrapped = not of.min <= after <= of.max
            self.value = of.min + (after - of.min) % size
        self.first = False


class Tuple:
    def __init__(self, command):
        self.of, self.flow = command, -1

    def step(self):
        (first, last), (low, high) = self.of.ip, self.of.port
        ips, ports = last - first + 1, high - low + 1
        self.flow += 1
        if self.of.limit and self.flow == self.of.limit:
            self.flow = 0
        self.ip = first + self.flow % ips
        self.port = low + self.flow // ips % ports


def model(commands, count):
    """The frames, packet by packet."""
    variables = {command.name: Variable(command) for command in commands if isinstance(command, api.STLVmFlowVar)}
    tuples = {command.name: Tuple(command) for command in commands if isinstance(command, api.STLVmTupleGen)}
    followers = {variable.of.next_var for variable in variables.values()}
    frames = []
    for _ in range(count):
        for name, variable in variables.items():
            if name in followers:
                continue
            variable.step()
            while variable.of.next_var is not None:
                follower = variables[variable.of.next_var]
                if variable.wrapped or follower.first:
                    follower.step()
                else:
                    follower.wrapped = False
                variable = follower
        for one in tuples.values():
            one.step()
        frame, size = bytearray(PACKET), len(PACKET)

        def value(name):
            if name in variables:
                return variables[name].value, variables[name].of.size
            owner, part = name.split(".")
            return (tuples[owner].ip, 4) if part == "ip" else (tuples[owner].port, 2)

        def place(where):
            return where if isinstance(where, int) else FIELDS[where] if "." in where else START[where]

        for command in commands:
            if isinstance(command, api.STLVmWrFlowVar):
                got, width = value(command.name)
                at = place(command.offset) + command.fixup
                frame[at : at + width] = ((got + command.add) % (1 << 8 * width)).to_bytes(width, "big" if command.big else "little")
            elif isinstance(command, api.STLVmWrMaskFlowVar):
                got, _ = value(command.name)
                got += command.add
                got = got << command.shift if command.shift >= 0 else got >> -command.shift
                at = place(command.offset) + command.fixup
                before = int.from_bytes(frame[at : at + command.cast], "big")
                after = before & ~command.mask | got & command.mask
                frame[at : at + command.cast] = (after % (1 << 8 * command.cast)).to_bytes(command.cast, "big")
            elif isinstance(command, api.STLVmTrimPktSize):
                size, _ = value(command.name)
            elif isinstance(command, api.STLVmFixIpv4):
                frame[24:26] = b"\0\0"
                frame[24:26] = checksum(frame[14:34]).to_bytes(2, "big")
            elif isinstance(command, api.STLVmFixChecksumHw):
                frame[24:26] = frame[40:42] = b"\0\0"
                frame[24:26] = checksum(frame[14:34]).to_bytes(2, "big")
                covered = frame[26:34] + b"\0\x11" + (size - 34).to_bytes(2, "big") + frame[34:size]
                frame[40:42] = (checksum(covered) or 0xFFFF).to_bytes(2, "big")
        frames.append(bytes(frame[:size]))
    return frames


def stream(commands):
    return api.STLStream(packet=api.STLPktBuilder(pkt_buffer=PACKET, vm=list(commands)), mode=api.STLTXCont(pps=10))


WIDTH = {"IP.src": 4, "IP.dst": 4, "IP.id": 2, "UDP.sport": 2, "UDP.dport": 2}


@st.composite
def variables(draw, name, size, next_var=None):
    op = draw(st.sampled_from(["inc", "dec"]))
    most = (1 << 8 * size) - 1
    if draw(st.integers(0, 3)) == 0:
        values = draw(st.lists(st.integers(0, most), min_size=1, max_size=6))
        return api.STLVmFlowVar(name, size=size, op=op, value_list=values, step=1, next_var=next_var)
    low = draw(st.integers(0, most))
    high = min(most, low + draw(st.sampled_from([0, 1, 3, 6, 250, most])))
    step = draw(st.integers(1, 3))
    first = None if next_var is not None or draw(st.booleans()) else draw(st.integers(low, high))
    return api.STLVmFlowVar(name, min_value=low, max_value=high, size=size, op=op, step=min(step, high - low + 1), init_value=first, next_var=next_var)


@st.composite
def programs(draw):
    places = draw(st.lists(st.sampled_from(sorted(WIDTH)), unique=True, max_size=3))
    commands, writes = [], []
    for number, place in enumerate(places):
        chained = f"v{number - 1}" if number and draw(st.booleans()) else None
        commands.append(draw(variables(f"v{number}", WIDTH[place], chained if chained else None)))
        writes.append(api.STLVmWrFlowVar(f"v{number}", place, add_val=draw(st.sampled_from([0, 0, 0, 1, 7])), is_big=draw(st.integers(0, 4)) > 0))
    if draw(st.integers(0, 3)) == 0:
        ips, ports = draw(st.integers(1, 5)), draw(st.integers(1, 5))
        limit = draw(st.sampled_from([0, ips * ports, ips * 2, 7]))
        commands.append(api.STLVmTupleGen("t", "10.0.0.1", f"10.0.0.{ips}", 1025, 1024 + ports, limit))
        writes += [api.STLVmWrFlowVar("t.ip", 48), api.STLVmWrFlowVar("t.port", 52)]
    if draw(st.integers(0, 2)) == 0:
        commands.append(draw(variables("m", 2)))
        low, bits = draw(st.integers(0, 8)), draw(st.integers(1, 8))
        writes.append(api.STLVmWrMaskFlowVar("m", 56, 2, ((1 << bits) - 1) << low, draw(st.sampled_from([low, 0, -1]))))
    if writes and draw(st.integers(0, 3)) == 0:
        # What is written last stands there.
        commands.append(draw(variables("again", 2)))
        writes.append(api.STLVmWrFlowVar("again", "IP.id"))
    fix = draw(st.sampled_from([None, api.STLVmFixIpv4("IP"), api.STLVmFixChecksumHw("IP", "UDP", api.CTRexVmInsFixHwCs.L4_TYPE_UDP)]))
    return [*commands, *writes, *([] if fix is None else [fix])]


TALLY = {"compiled": 0, "refused": 0}


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(programs())
def frames_are_the_engines(commands):
    try:
        made = trex.scenario([stream(commands)])
    except nd.NotTranslatable as error:
        assert "stream `stream 1`: " in str(error)
        TALLY["refused"] += 1
        return
    TALLY["compiled"] += 1
    assert nd.craft(made, count=40) == model(commands, 40), [vars(command) for command in commands]


def test_frames_of_a_profile_are_those_of_the_field_engine():
    TALLY.update(compiled=0, refused=0)
    frames_are_the_engines()
    assert TALLY["compiled"] > 110, TALLY


PROFILE = """
    import argparse
    from trex_stl_lib.api import *

    class Profile(object):
        def get_streams(self, direction=0, tunables=(), **kwargs):
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=64)
            args = parser.parse_args(tunables)
            base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
            pad = max(0, args.size - 4 - len(base)) * "x"
            vm = STLVM()
            vm.var(name="src", min_value="16.0.0.1" if direction == 0 else "48.0.0.1", max_value="16.0.0.254" if direction == 0 else "48.0.0.254", size=4, op="inc")
            vm.write(fv_name="src", pkt_offset="IP.src")
            vm.fix_chksum()
            packet = STLPktBuilder(pkt=base / pad, vm=vm)
            return [
                STLStream(name="first", packet=packet, mode=STLTXSingleBurst(pps=100, total_pkts=5), next="second"),
                STLStream(name="second", self_start=False, packet=packet, mode=STLTXMultiBurst(pps=1000, pkts_per_burst=4, ibg=1000.0, count=3)),
                STLStream(packet=packet, mode=STLTXCont(bps_L2=1000000), isg=10.0, flow_stats=STLFlowStats(pg_id=7)),
            ]

    def register():
        return Profile()
"""


def test_a_profile_is_run_with_its_tunables_and_direction(tmp_path):
    file = tmp_path / "profile.py"
    file.write_text(textwrap.dedent(PROFILE))
    made = trex.load(file, direction=1, tunables={"size": 128})
    first, second, third = made["streams"]
    assert (first["rate"], first["count"]) == ("100pps", 5)
    assert second["after"] == "first" and second["burst"] == {"frames": 4, "gap": "1000000ns", "every": "5000000ns", "count": 3}
    assert (third["rate"], third["start"]) == ("1000000bps", "10000ns")
    (frame, *_) = nd.craft({"streams": [{"frame": first["frame"], "rate": "1pps"}]}, count=1)
    assert len(frame) == 124 and sc.Ether(frame)[sc.IP].src == "48.0.0.1"
    assert len(nd.craft(made, count=9)) == 9
    assert trex.load(file)["streams"][0]["frame"] != first["frame"]
    # Nothing of the stand-in stays behind.
    with pytest.raises(ImportError):
        __import__("trex_stl_lib.api")


def hlt(**given):
    """Frames of a stream of TRex's high-level API."""
    made = _trexhlt.STLHltStream(rate_pps=10, **given)
    return nd.craft(trex.scenario(made), count=8)


def test_streams_of_the_high_level_api_walk_as_their_arguments_say():
    base = {"l3_protocol": "ipv4", "l4_protocol": "udp", "ip_src_addr": "192.0.2.1", "ip_dst_addr": "198.18.0.9", "frame_size": 128}
    frames = hlt(**base, ip_src_mode="increment", ip_src_count=4, ip_dst_mode="decrement", ip_dst_count=3, ip_dst_step="0.0.0.2")
    read = [sc.Ether(frame) for frame in frames]
    assert {len(frame) for frame in frames} == {124}
    assert [packet[sc.IP].src for packet in read] == [f"192.0.2.{1 + n % 4}" for n in range(8)]
    # From 198.18.0.9 down by 2, and at the end of a range of five addresses on from its other end.
    assert [packet[sc.IP].dst for packet in read] == [f"198.18.0.{9 - n * 2 % 5}" for n in range(8)]
    for packet, frame in zip(read, frames):
        again = packet.copy()
        del again[sc.IP].chksum
        assert bytes(again) == frame
    # As TRex does, no instruction mends UDP's checksum.
    assert len({packet[sc.UDP].chksum for packet in read}) == 1


def test_tags_addresses_ports_and_sizes_of_the_high_level_api():
    frames = hlt(
        l3_protocol="ipv4", l4_protocol="tcp", vlan_id=[5, 7], vlan_id_mode=["increment", "fixed"], vlan_id_count=[3, 1], mac_src_mode="increment",
        mac_src_count=2, tcp_src_port_count=2, tcp_syn_flag=1, tcp_ack_flag=1, length_mode="increment", frame_size_min=100, frame_size_max=103,
    )  # fmt: skip
    read = [sc.Ether(frame) for frame in frames]
    assert [len(frame) for frame in frames] == [96 + n % 4 for n in range(8)] == [packet[sc.IP].len + 22 for packet in read]
    assert [packet[sc.Dot1Q].vlan for packet in read] == [5 + n % 3 for n in range(8)]
    assert {packet[sc.Dot1Q].payload.vlan for packet in read} == {7}
    assert [packet.src for packet in read] == [f"00:00:01:00:00:0{1 + n % 2}" for n in range(8)]
    assert [packet[sc.TCP].sport for packet in read] == [1024 + n % 2 for n in range(8)]
    assert {str(packet[sc.TCP].flags) for packet in read} == {"SA"}


def test_an_imix_of_the_high_level_api_is_a_stream_of_each_size():
    made = trex.scenario([_trexhlt.STLHltStream(length_mode="imix", rate_pps=1200, l3_protocol="ipv4", direction=1, ip_src_addr="192.0.2.1")])
    assert [stream["rate"] for stream in made["streams"]] == ["700pps", "400pps", "100pps"]
    frames = [nd.craft({"streams": [{"frame": stream["frame"], "rate": "1pps"}]})[0] for stream in made["streams"]]
    assert [len(frame) + 4 for frame in frames] == [64, 570, 1518]
    assert {sc.Ether(frame)[sc.IP].dst for frame in frames} == {"192.0.2.1"}
    with pytest.raises(nd.NotTranslatable, match="ip_scr_addr is no argument"):
        _trexhlt.STLHltStream(ip_scr_addr="192.0.2.1")


@pytest.mark.parametrize(
    ("stream", "refused"),
    [
        ("STLStream(packet=STLPktBuilder(pkt=p), mode=STLTXCont(), action_count=3)", "action_count has no counterpart"),
        ("STLStream(name='a', packet=STLPktBuilder(pkt=p), mode=STLTXSingleBurst(total_pkts=1), next='a')", "a stream of a scenario starts once"),
        ("STLStream(packet=STLPktBuilder(pkt=p, vm=[object()]))", "object is no instruction"),
        ("STLProfile.load_pcap('x.pcap', ipg_usec=1).get_streams()[0]", "netdyno.replay"),
    ],
)
def test_what_no_scenario_says_is_refused_by_its_name(tmp_path, stream, refused):
    file = tmp_path / "profile.py"
    text = f"""
        from trex.stl.api import *
        class Profile:
            def get_streams(self, **_):
                p = Ether() / IP() / UDP()
                return [{stream}]
        def register():
            return Profile()
    """
    file.write_text(textwrap.dedent(text))
    with pytest.raises(nd.NotTranslatable, match=refused):
        trex.load(file)
    with pytest.raises(nd.UsageError, match=r"no register\(\)"):
        file.write_text("x = 1\n")
        trex.load(file)
