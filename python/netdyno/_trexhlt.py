"""A stand-in for TRex's high-level API: ``STLHltStream(l3_protocol="ipv4", ip_src_mode="increment", ...)`` becomes a stream of
`_trexapi`. Arguments, their defaults and what they do are those of TRex's documentation; a field that varies becomes a variable of
the field engine, and a write.
"""

from __future__ import annotations

import importlib
import ipaddress
import re
from typing import Any, Optional

from . import _trexapi as api
from ._trexapi import STLError

__all__ = ["STLHltStream"]

_DEFAULTS: dict[str, Any] = {
    "ignore_macs": False, "transmit_mode": "continuous", "direction": 0, "pkts_per_burst": 1, "burst_loop_count": 1, "inter_burst_gap": 12,
    "length_mode": "fixed", "frame_size": 64, "frame_size_min": 64, "frame_size_max": 64, "frame_size_step": 1,
    "l3_length": None, "l3_length_min": 110, "l3_length_max": 238, "l3_length_step": 1,
    "l3_imix1_size": 64, "l3_imix1_ratio": 7, "l3_imix2_size": 570, "l3_imix2_ratio": 4, "l3_imix3_size": 1518, "l3_imix3_ratio": 1,
    "l3_imix4_size": 9230, "l3_imix4_ratio": 0,
    "l2_encap": "ethernet_ii", "mac_src": "00:00:01:00:00:01", "mac_dst": "00:00:00:00:00:00", "mac_src2": "00:00:01:00:00:01",
    "mac_dst2": "00:00:00:00:00:00", "vlan_user_priority": 1, "vlan_id": 0, "vlan_cfi": 1, "vlan_protocol_tag_id": None,
    "l3_protocol": None, "ip_precedence": 0, "ip_tos_field": 0, "ip_mbz": 0, "ip_delay": 0, "ip_throughput": 0, "ip_reliability": 0,
    "ip_cost": 0, "ip_reserved": 0, "ip_dscp": 0, "ip_cu": 0, "ip_id": 0, "ip_fragment_offset": 0, "ip_ttl": 64, "ip_checksum": None,
    "ip_src_addr": "0.0.0.0", "ip_dst_addr": "192.0.0.1", "ipv6_traffic_class": 0, "ipv6_flow_label": 0, "ipv6_length": None,
    "ipv6_next_header": None, "ipv6_hop_limit": 64, "ipv6_src_addr": "fe80:0:0:0:0:0:0:12", "ipv6_dst_addr": "fe80:0:0:0:0:0:0:22",
    "l4_protocol": None, "tcp_src_port": 1024, "tcp_dst_port": 80, "tcp_seq_num": 1, "tcp_ack_num": 1, "tcp_data_offset": 5,
    "tcp_window": 4069, "tcp_checksum": None, "tcp_urgent_ptr": 0, "udp_src_port": 1024, "udp_dst_port": 80, "udp_length": None,
}  # fmt: skip
_FLAGS = {"fin": "F", "syn": "S", "rst": "R", "psh": "P", "ack": "A", "urg": "U"}
# Fields that vary, with what their mode is if none is given.
_VARYING = {
    **dict.fromkeys(("mac_src", "mac_dst", "mac_src2", "mac_dst2", "vlan_id", "vlan_priority", "ip_src", "ip_dst", "ipv6_src", "ipv6_dst"), "fixed"),
    **dict.fromkeys(("tcp_src_port", "tcp_dst_port", "udp_src_port", "udp_dst_port"), "increment"),
}
for _name, _mode in _VARYING.items():
    _DEFAULTS.update({f"{_name}_mode": _mode, f"{_name}_step": 1, f"{_name}_count": 1})
_DEFAULTS.update({f"tcp_{_name}_flag": 0 for _name in _FLAGS})
# What is of no concern to a frame, or to one sender.
_IGNORED = {
    "split_by_cores", "consistent_random", "disable_flow_stats", "flow_stats_id", "pg_id", "port_handle", "port_handle2", "stream_id",
    "name", "mode", "rate_pps", "rate_bps", "rate_percent", "save_to_yaml", "save_to_pcap",
}  # fmt: skip
_RATES = {"rate_pps": "pps", "rate_bps": "bps_L2", "rate_percent": "percentage"}
_OPS = {"increment": "inc", "decrement": "dec", "random": "random"}


def STLHltStream(**given: Any) -> Any:  # noqa: N802 (TRex's name)
    """A stream, or with ``length_mode="imix"`` one of each size."""
    unknown = [name for name in given if name not in _DEFAULTS and name not in _IGNORED]
    if unknown:
        raise STLError(f"STLHltStream: {unknown[0]} is no argument that is known here")
    rates = [name for name in _RATES if given.get(name) is not None]
    if len(rates) > 1:
        raise STLError(f"STLHltStream takes one rate, not {' and '.join(rates)}")
    unit = rates[0] if rates else "rate_percent"
    rate = float(given.get(unit) or 10)
    values = {**_DEFAULTS, **given}
    if values["length_mode"] != "imix":
        return _stream(given, values, unit, rate)
    parts = [(values[f"l3_imix{n}_size"], values[f"l3_imix{n}_ratio"]) for n in (1, 2, 3, 4)]
    # Bits per second are shared by sizes, percent by what a frame takes of the wire.
    weights = [ratio * {"rate_pps": 1, "rate_bps": size, "rate_percent": size + 20}[unit] for size, ratio in parts]
    if not sum(weights):
        raise STLError("STLHltStream: all ratios of the IMIX are 0")
    streams = []
    for (size, ratio), weight in zip(parts, weights):
        if ratio > 0:
            own = {**given, "length_mode": "fixed", "frame_size": size}
            streams.append(_stream(own, {**_DEFAULTS, **own}, unit, rate * weight / sum(weights)))
    return streams


def _stream(given: dict[str, Any], values: dict[str, Any], unit: str, rate: float) -> api.STLStream:
    speed, mode = {_RATES[unit]: rate}, values["transmit_mode"]
    how: Any
    if mode == "continuous":
        how = api.STLTXCont(**speed)
    elif mode == "single_burst":
        how = api.STLTXSingleBurst(total_pkts=values["pkts_per_burst"], **speed)
    elif mode == "multi_burst":
        count, gap = int(values["burst_loop_count"]), values["inter_burst_gap"]
        how = api.STLTXMultiBurst(pkts_per_burst=values["pkts_per_burst"], count=count, ibg=gap, **speed)
    else:
        raise STLError(f"STLHltStream: transmit_mode {mode} is not known here")
    return api.STLStream(packet=_Builder(given, values).made(), mode=how)


def _mac(text: Any) -> str:
    digits = re.sub(r"[^0-9a-fA-F]", "", str(text))
    if len(digits) != 12:
        raise STLError(f"STLHltStream: {text} is no Ethernet address")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)).lower()


def _low(value: Any) -> int:
    """The low 32 bits of an address, or a number."""
    if isinstance(value, int):
        return value
    text = str(value)
    if text.isdigit():
        return int(text)
    try:
        return int(ipaddress.ip_address(text)) & 0xFFFFFFFF
    except ValueError:
        return int(_mac(text).replace(":", ""), 16) & 0xFFFFFFFF


class _Builder:
    """A packet, and its instructions."""

    def __init__(self, given: dict[str, Any], values: dict[str, Any]) -> None:
        self.given, self.values = given, dict(values)
        self.commands: list[Any] = []
        self.fix = False
        self.scapy = importlib.import_module("scapy.all")
        # (Sizes count the FCS, which a packet of Scapy has not.)
        for name in ("frame_size", "frame_size_min", "frame_size_max"):
            self.values[name] -= 4
        if self.values["direction"]:
            self._turned()

    def _turned(self) -> None:
        values, before = self.values, dict(self.values)
        values["mac_src"], values["mac_dst"] = before["mac_src2"], before["mac_dst2"]
        family = {"ipv4": "ip", "ipv6": "ipv6"}.get(values["l3_protocol"])
        if family:
            for what in ("addr", "mode", "step", "count"):
                one, other = f"{family}_src_{what}", f"{family}_dst_{what}"
                values[one], values[other] = before[other], before[one]

    def made(self) -> api.STLPktBuilder:
        packet = self._link()
        link = len(packet)
        packet = self._network(packet)
        network = len(packet) - link
        packet = self._transport(packet)
        packet = packet / self.scapy.Raw(load=b"!" * self._payload(packet, link, network))
        if self.fix and self.values["l3_protocol"] == "ipv4" and self.values["ip_checksum"] is None:
            self.commands.append(api.STLVmFixIpv4("IP"))
        return api.STLPktBuilder(pkt=packet, vm=self.commands or None)

    def _vary(self, values: dict[str, Any], name: str, start: Any, size: int, write: Any, *, called: str = "", fix: bool = False) -> None:
        """A variable in the middle of its range, so that it never wraps by itself, and a write that moves it to ``start``."""
        mode, steps = values[f"{name}_mode"], int(values[f"{name}_count"]) - 1
        if mode == "fixed" or (steps == 0 and mode != "random"):
            return
        step = _low(values[f"{name}_step"])
        if mode not in _OPS or steps < 0 or step < 1:
            raise STLError(f"STLHltStream: {name}_mode={mode}, {name}_count={steps + 1}, {name}_step={step} make no sense")
        variable, middle, most = called or name, (1 << 8 * size - 1) - 1, (1 << 8 * size) - 1
        bounds = {"increment": (middle, middle + steps * step), "decrement": (middle - steps * step, middle), "random": (0, most)}[mode]
        # (TRex has no step for values of chance.)
        self.commands.append(
            api.STLVmFlowVar(variable, min_value=bounds[0], max_value=bounds[1], size=size, step=1 if mode == "random" else step, op=_OPS[mode])
        )
        self.commands.append(write(variable, 0 if mode == "random" else _low(start) - middle))
        self.fix = self.fix or fix

    def _link(self) -> Any:
        values, scapy = self.values, self.scapy
        if values["l2_encap"] not in ("ethernet_ii", "ethernet_ii_vlan"):
            raise STLError(f"STLHltStream: l2_encap {values['l2_encap']} is not known here")
        # Left to TRex, they are those of its ports.
        addresses = {} if values["ignore_macs"] else {"src": _mac(values["mac_src"]), "dst": _mac(values["mac_dst"])}
        packet = scapy.Ether(**addresses)
        if not values["ignore_macs"]:
            for side in ("src", "dst"):
                where = f"Ethernet.{side}"
                self._vary(values, f"mac_{side}", addresses[side], 4, lambda name, add, where=where: api.STLVmWrFlowVar(name, where, 2, add))
        if values["l2_encap"] == "ethernet_ii_vlan" or any(name.startswith("vlan_") for name in self.given):
            for number, tag in enumerate(self._tags()):
                if tag["vlan_priority_mode"] != "fixed":
                    raise STLError("STLHltStream: vlan_priority_mode does nothing in TRex, and is refused here")
                kind = tag["vlan_protocol_tag_id"]
                if kind is not None:
                    packet.lastlayer().type = kind if isinstance(kind, int) else int(kind, 16)
                header = scapy.Dot1Q(prio=int(tag["vlan_user_priority"]), vlan=int(tag["vlan_id"]))
                # The bit between them was called `id` once.
                header.setfieldval(header.fields_desc[1].name, int(tag["vlan_cfi"]))
                packet = packet / header
                self._vary(
                    tag, "vlan_id", int(tag["vlan_id"]), 2,
                    lambda name, add, number=number: api.STLVmWrMaskFlowVar(name, f"802|1Q:{number}.vlan", 2, 0xFFF, 0, add),
                    called=f"vlan_id{number}",
                )  # fmt: skip
        return packet

    def _tags(self) -> list[dict[str, Any]]:
        """What each of several tags has: lists, or words with blanks between them."""
        listed = {}
        for name, value in self.values.items():
            if name.startswith("vlan_"):
                listed[name] = value if isinstance(value, (list, tuple)) else value.strip("{} ").split() if isinstance(value, str) else [value]
        most = max(map(len, listed.values()))
        return [{name: value[n] if n < len(value) else _DEFAULTS[name] for name, value in listed.items()} for n in range(most)]

    def _network(self, packet: Any) -> Any:
        values, scapy = self.values, self.scapy
        kind = values["l3_protocol"]
        if kind is None:
            return packet
        if kind == "ipv4":
            options = {"id": values["ip_id"], "frag": values["ip_fragment_offset"], "ttl": values["ip_ttl"], "chksum": values["ip_checksum"]}
            packet = packet / scapy.IP(tos=self._tos(), src=values["ip_src_addr"], dst=values["ip_dst_addr"], **options)
            prefix, fixup, layer = "ip", 0, "IP"
        elif kind == "ipv6":
            options = {"tc": values["ipv6_traffic_class"], "fl": values["ipv6_flow_label"], "plen": values["ipv6_length"], "hlim": values["ipv6_hop_limit"]}
            if values["ipv6_next_header"] is not None:
                options["nh"] = values["ipv6_next_header"]
            packet = packet / scapy.IPv6(src=values["ipv6_src_addr"], dst=values["ipv6_dst_addr"], **options)
            prefix, fixup, layer = "ipv6", 12, "IPv6"
        else:
            raise STLError(f"STLHltStream: l3_protocol {kind} is not known here")
        for side in ("src", "dst"):
            where = f"{layer}.{side}"
            self._vary(
                values, f"{prefix}_{side}", values[f"{prefix}_{side}_addr"], 4,
                lambda name, add, where=where: api.STLVmWrFlowVar(name, where, fixup, add), fix=True,
            )  # fmt: skip
        return packet

    def _tos(self) -> int:
        values, given = self.values, self.given
        total = 0
        for names in (("ip_tos_field", "ip_mbz"), ("ip_delay", "ip_throughput", "ip_reliability", "ip_cost", "ip_reserved"), ("ip_dscp", "ip_cu")):
            if any(name in given for name in names):
                total += 1
        if total > 1:
            raise STLError("STLHltStream: arguments of several ways to write the TOS byte stand together")
        precedence = int(values["ip_precedence"]) << 5
        if "ip_tos_field" in given or "ip_mbz" in given:
            return int(precedence + (values["ip_tos_field"] << 1) + int(values["ip_mbz"]))
        bits = sum(int(values[f"ip_{name}"]) << bit for name, bit in (("delay", 4), ("throughput", 3), ("reliability", 2), ("cost", 1), ("reserved", 0)))
        return precedence + bits + (int(values["ip_dscp"]) << 2) + int(values["ip_cu"])

    def _transport(self, packet: Any) -> Any:
        values, scapy = self.values, self.scapy
        kind: Optional[str] = values["l4_protocol"]
        if kind is None:
            return packet
        if kind not in ("tcp", "udp") or values["l3_protocol"] is None:
            raise STLError(f"STLHltStream: l4_protocol {kind} over {values['l3_protocol']} is not known here")
        ports = {"sport": values[f"{kind}_src_port"], "dport": values[f"{kind}_dst_port"]}
        if kind == "udp":
            packet = packet / scapy.UDP(len=values["udp_length"], **ports)
        else:
            flags = "".join(letter for name, letter in _FLAGS.items() if int(values[f"tcp_{name}_flag"]))
            packet = packet / scapy.TCP(
                seq=values["tcp_seq_num"], ack=values["tcp_ack_num"], dataofs=values["tcp_data_offset"], flags=flags,
                window=values["tcp_window"], chksum=values["tcp_checksum"], urgptr=values["tcp_urgent_ptr"], **ports,
            )  # fmt: skip
        for side in ("src", "dst"):
            where = f"{kind.upper()}.{side[0]}port"
            self._vary(
                values, f"{kind}_{side}_port", int(values[f"{kind}_{side}_port"]), 2,
                lambda name, add, where=where: api.STLVmWrFlowVar(name, where, 0, add), fix=True,
            )  # fmt: skip
        return packet

    def _payload(self, packet: Any, link: int, network: int) -> int:
        """Bytes that fill the packet up, and if its size varies, the instructions."""
        values, mode, here = self.values, self.values["length_mode"], len(packet)
        if mode == "auto":
            return 0
        if mode == "fixed":
            by_network = "l3_length" in self.given and "frame_size" not in self.given
            size = values["l3_length"] + link if by_network else values["frame_size"]
        elif mode in _OPS:
            if "frame_size_min" in self.given or "frame_size_max" in self.given:
                least, size, step = values["frame_size_min"], values["frame_size_max"], values["frame_size_step"]
            else:
                least, size, step = values["l3_length_min"] + link, values["l3_length_max"] + link, values["l3_length_step"]
            self.commands += [
                api.STLVmFlowVar("pkt_len", size=2, op=_OPS[mode], step=step, min_value=least, max_value=size),
                api.STLVmTrimPktSize("pkt_len"),
            ]
            if values["l3_protocol"] == "ipv4":
                self.fix = True
                self.commands.append(api.STLVmWrFlowVar("pkt_len", "IP.len", add_val=-link))
            if values["l4_protocol"] == "udp":
                self.commands.append(api.STLVmWrFlowVar("pkt_len", "UDP.len", add_val=-link - network))
        else:
            raise STLError(f"STLHltStream: length_mode {mode} is not known here")
        if size < here:
            raise STLError(f"STLHltStream: the headers take {here} bytes, and the packet has {size}")
        return int(size) - here
