"""A stand-in for ``trex.stl.api``: what profiles of TRex write, kept as data.

:mod:`netdyno.trex` puts it into ``sys.modules`` while it loads a profile, and makes a scenario of what the profile returns. Nothing here
sends anything or talks to a server. Names and arguments are those of TRex's documentation of its stateless API; what is not here is
refused by its name.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Optional, Union

from .errors import NotTranslatable

__all__ = [
    "CTRexVmInsFixHwCs", "STLError", "STLFlowLatencyStats", "STLFlowStats", "STLPktBuilder", "STLProfile", "STLScVmRaw", "STLStream", "STLTaggedPktGroup", "STLTaggedPktGroup",
    "STLTXCont", "STLTXMultiBurst", "STLTXSingleBurst", "STLTypeError", "STLVM", "STLVmFixChecksumHw", "STLVmFixIcmpv6", "STLVmFixIpv4",
    "STLVmFlowVar", "STLVmFlowVarRepeatableRandom", "STLVmTrimPktSize", "STLVmTupleGen", "STLVmWrFlowVar", "STLVmWrMaskFlowVar",
    "ipv4_str_to_num", "is_valid_ipv4_ret",
]


class STLError(NotTranslatable):
    """What a profile raises by itself."""


STLTypeError = STLError


def number(value: Union[int, str]) -> int:
    """A number, or an IPv4 address as one."""
    return int(ipaddress.IPv4Address(value)) if isinstance(value, str) else int(value)


def ipv4_str_to_num(text: Union[bytes, str]) -> int:
    """An IPv4 address of four bytes, or as text, as a number."""
    return int.from_bytes(text, "big") if isinstance(text, bytes) else int(ipaddress.IPv4Address(text))


def is_valid_ipv4_ret(text: str) -> bytes:
    """The four bytes of an IPv4 address."""
    return ipaddress.IPv4Address(text).packed


# -- the field engine


class STLVmFlowVar:
    """A variable: a value for each packet, from ``min_value`` to ``max_value`` or out of a list."""

    def __init__(self, name: str, init_value: Any = None, min_value: Any = 0, max_value: Any = 255, size: int = 4, step: int = 1,
                 op: str = "inc", value_list: Optional[list[Any]] = None, split_to_cores: bool = True, next_var: Optional[str] = None) -> None:
        if op not in ("inc", "dec", "random"):
            raise STLError(f"variable {name}: op is inc, dec or random, not {op!r}")
        if size not in (1, 2, 4, 8):
            raise STLError(f"variable {name}: size is 1, 2, 4 or 8 bytes, not {size!r}")
        self.name, self.size, self.op, self.next_var = name, size, op, next_var
        if value_list is not None:
            # A list has no least and greatest; some profiles say so.
            min_value, max_value, init_value = 0, 0, None
        self.min, self.max, self.step = number(min_value), number(max_value), number(step)
        self.values = None if value_list is None else [number(value) for value in value_list]
        first = self.max if op == "dec" else self.min
        self.init = first if init_value is None else number(init_value)
        if self.step < 1 or self.values is None and not 0 <= self.min <= self.init <= self.max < 1 << 8 * size:
            raise STLError(f"variable {name}: {self.min} to {self.max} from {self.init} by {self.step} does not fit {size} bytes")
        if self.values is not None and (not self.values or max(self.values) >= 1 << 8 * size):
            raise STLError(f"variable {name}: its list is empty, or has values of more than {size} bytes")


class STLVmFlowVarRepeatableRandom:
    """``limit`` random values, then the same again."""

    def __init__(self, name: str, size: int = 4, limit: int = 100, seed: Optional[int] = None, min_value: Any = 0,
                 max_value: Any = None, split_to_cores: bool = True, next_var: Optional[str] = None) -> None:
        self.name, self.size, self.limit, self.seed, self.next_var = name, size, limit, seed, next_var
        self.min = number(min_value or 0)
        self.max = (1 << 8 * size) - 1 if max_value is None else number(max_value)


class STLVmTupleGen:
    """An address and a port that advance together: ``NAME.ip`` with each packet, ``NAME.port`` when the addresses are through."""

    def __init__(self, name: str, ip_min: Any = "0.0.0.1", ip_max: Any = "0.0.0.10", port_min: int = 1025, port_max: int = 65535,
                 limit_flows: int = 100_000, flags: int = 0) -> None:
        self.name, self.limit = name, limit_flows
        self.ip = (number(ip_min), number(ip_max))
        self.port = (port_min, port_max)


class STLVmWrFlowVar:
    """Writes a variable into the packet."""

    def __init__(self, fv_name: str, pkt_offset: Any, offset_fixup: int = 0, add_val: int = 0, is_big: bool = True) -> None:
        self.name, self.offset, self.fixup, self.add, self.big = fv_name, pkt_offset, offset_fixup, add_val, is_big


class STLVmWrMaskFlowVar:
    """Writes some bits of a variable over some bits of the packet."""

    def __init__(self, fv_name: str, pkt_offset: Any, pkt_cast_size: int = 1, mask: int = 0xFF, shift: int = 0, add_value: int = 0,
                 offset_fixup: int = 0, is_big: bool = True) -> None:
        self.name, self.offset, self.fixup, self.add, self.big = fv_name, pkt_offset, offset_fixup, add_value, is_big
        self.cast, self.mask, self.shift = pkt_cast_size, mask, shift


class STLVmFixIpv4:
    """Computes an IPv4 header's checksum."""

    def __init__(self, offset: Any) -> None:
        self.offset = offset


class CTRexVmInsFixHwCs:
    L4_TYPE_UDP = 11
    L4_TYPE_TCP = 13
    L4_TYPE_IP = 17


class STLVmFixChecksumHw:
    """Computes the checksums of IPv4 and of UDP or TCP."""

    def __init__(self, l3_offset: Any, l4_offset: Any, l4_type: int) -> None:
        self.l3, self.l4, self.type = l3_offset, l4_offset, l4_type


class STLVmFixIcmpv6:
    """Computes ICMPv6's checksum."""

    def __init__(self, l3_offset: Any, l4_offset: Any) -> None:
        self.l3, self.l4 = l3_offset, l4_offset


class STLVmTrimPktSize:
    """The packet is as long as a variable says."""

    def __init__(self, fv_name: str) -> None:
        self.name = fv_name


class STLScVmRaw:
    """A list of instructions."""

    def __init__(self, list_of_commands: Optional[list[Any]] = None, cache_size: Optional[int] = None) -> None:
        self.commands: list[Any] = []
        self.cache_size = cache_size
        for command in list_of_commands or []:
            self.add_cmd(command)

    def add_cmd(self, command: Any) -> None:
        self.commands.append(command)


class STLVM(STLScVmRaw):
    """Instructions, by methods."""

    def __init__(self) -> None:
        super().__init__()

    def set_cached(self, cache_size: int) -> None:
        """TRex then repeats that many packets; here each is made."""
        self.cache_size = cache_size

    def var(self, name: str, min_value: Any = 0, max_value: Any = 255, size: int = 4, op: str = "inc", step: int = 1,
            split_to_cores: bool = True, next_var: Optional[str] = None, **more: Any) -> None:
        self.add_cmd(STLVmFlowVar(name, min_value=min_value, max_value=max_value, size=size, op=op, step=step, next_var=next_var, **more))

    def write(self, fv_name: str, pkt_offset: Any, offset_fixup: int = 0, add_val: int = 0, byte_order: str = "big") -> None:
        self.add_cmd(STLVmWrFlowVar(fv_name, pkt_offset, offset_fixup, add_val, byte_order == "big"))

    def write_mask(self, fv_name: str, pkt_offset: Any, pkt_cast_size: int, mask: int, shift: int = 0, offset_fixup: int = 0,
                   add_val: int = 0, byte_order: str = "big") -> None:
        self.add_cmd(STLVmWrMaskFlowVar(fv_name, pkt_offset, pkt_cast_size, mask, shift, add_val, offset_fixup, byte_order == "big"))

    def tuple_var(self, name: str, ip_min: Any, ip_max: Any, port_min: int, port_max: int, limit_flows: int = 0, **more: Any) -> None:
        self.add_cmd(STLVmTupleGen(name, ip_min, ip_max, port_min, port_max, limit_flows, **more))

    def repeatable_random_var(self, fv_name: str, size: int, limit: int, seed: Optional[int] = None, min_value: Any = None,
                              max_value: Any = None, split_to_cores: bool = True, next_var: Optional[str] = None) -> None:
        self.add_cmd(STLVmFlowVarRepeatableRandom(fv_name, size, limit, seed, min_value, max_value, next_var=next_var))

    def fix_chksum(self, offset: Any = "IP") -> None:
        self.add_cmd(STLVmFixIpv4(offset))

    def fix_chksum_hw(self, l3_offset: Any, l4_offset: Any, l4_type: int) -> None:
        self.add_cmd(STLVmFixChecksumHw(l3_offset, l4_offset, l4_type))

    def fix_chksum_icmpv6(self, l3_offset: Any, l4_offset: Any) -> None:
        self.add_cmd(STLVmFixIcmpv6(l3_offset, l4_offset))

    def trim(self, fv_name: str) -> None:
        self.add_cmd(STLVmTrimPktSize(fv_name))


# -- packets, modes, streams


class STLPktBuilder:
    """A packet of Scapy (or its bytes, or the first of a capture), and the instructions for it."""

    def __init__(self, pkt: Any = None, pkt_buffer: Optional[bytes] = None, vm: Any = None, path_relative_to_profile: bool = False,
                 build_raw: bool = False, remove_fcs: bool = True) -> None:
        self.pkt, self.buffer = pkt, pkt_buffer
        self.vm = STLScVmRaw(vm) if isinstance(vm, list) else vm
        self.relative = path_relative_to_profile


class _Mode:
    """How fast."""

    def __init__(self, pps: Any = None, bps_L1: Any = None, bps_L2: Any = None, percentage: Any = None) -> None:
        given: list[tuple[str, Any]] = [(unit, value) for unit, value in
                 (("pps", pps), ("bps-l1", bps_L1), ("bps", bps_L2), ("%", percentage)) if value is not None]
        if len(given) > 1:
            raise STLError("a mode takes one of pps, bps_L1, bps_L2 and percentage")
        self.unit: str
        self.value: Any
        self.unit, self.value = given[0] if given else ("pps", 1)


class STLTXCont(_Mode):
    """Without end."""


class STLTXSingleBurst(_Mode):
    """So many packets."""

    def __init__(self, total_pkts: int = 1, **rate: Any) -> None:
        super().__init__(**rate)
        self.total = total_pkts


class STLTXMultiBurst(_Mode):
    """Bursts, with a pause (``ibg``, in microseconds) between the end of one and the begin of the next."""

    def __init__(self, pkts_per_burst: int = 1, ibg: float = 0.0, count: int = 1, **rate: Any) -> None:
        super().__init__(**rate)
        self.frames, self.ibg, self.count = pkts_per_burst, ibg, count


class STLFlowStats:
    """Each stream is measured here."""

    def __init__(self, pg_id: int, **_: Any) -> None:
        self.pg_id = pg_id


class STLFlowLatencyStats(STLFlowStats):
    """Latency is measured of each stream here."""


class STLTaggedPktGroup(STLFlowStats):
    """Packets are told apart by tags there; each stream is measured here."""

    def __init__(self, tpgid: int, **_: Any) -> None:
        super().__init__(tpgid)


class STLStream:
    """Packets, and when they leave."""

    def __init__(self, name: Optional[str] = None, packet: Any = None, mode: Any = None, enabled: bool = True, self_start: bool = True,
                 isg: float = 0.0, flow_stats: Any = None, next: Optional[str] = None, stream_id: Any = None, action_count: int = 0,
                 random_seed: int = 0, mac_src_override_by_pkt: Any = None, mac_dst_override_mode: Any = None,
                 dummy_stream: bool = False, start_paused: bool = False, core_id: int = -1) -> None:
        self.name, self.packet, self.mode, self.enabled = name, packet, mode or STLTXCont(), enabled
        self.self_start, self.isg, self.next, self.action_count = self_start, isg, next, action_count
        self.flow_stats, self.dummy, self.paused = flow_stats, dummy_stream, start_paused


class STLProfile:
    """Streams."""

    def __init__(self, streams: Any = None) -> None:
        self.streams = [streams] if isinstance(streams, STLStream) else list(streams or [])

    def get_streams(self) -> list[Any]:
        return self.streams

    @staticmethod
    def load_pcap(pcap_file: str, ipg_usec: Optional[float] = None, speedup: float = 1.0, loop_count: int = 1, vm: Any = None,
                  packet_hook: Any = None, split_mode: Any = None, min_ipg_usec: Optional[float] = None,
                  src_mac_pcap: bool = False, dst_mac_pcap: bool = False) -> Any:
        raise NotTranslatable(
            f"STLProfile.load_pcap({pcap_file!r}): a capture is no packet program",
            remedy=f"send it with netdyno.replay({pcap_file!r}), or netdyno replay {pcap_file}")
