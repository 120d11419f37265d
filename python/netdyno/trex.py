"""Profiles of TRex's stateless mode become scenarios.

    import netdyno as nd
    from netdyno import trex

    scenario = trex.load("stl/imix.py", direction=0, tunables={"size": 64})
    nd.send(scenario, on="tx0", duration="10s")

A profile is a Python file with ``register()``; it is run, with a stand-in for ``trex.stl.api`` in the place of TRex. Its field engine's
variables become laws of fields at their places, its fixes become checksums. What no law says is refused by its name. Scapy must be
installed, because profiles are written with it.
"""

from __future__ import annotations

import binascii
import contextlib
import importlib
import os
import random
import sys
import types
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from . import _scapy, _trexapi, _trexhlt
from ._trexapi import (
    CTRexVmInsFixHwCs, STLPktBuilder, STLProfile, STLStream, STLTXMultiBurst, STLTXSingleBurst, STLVmFixChecksumHw, STLVmFixIcmpv6,
    STLVmFixIpv4, STLVmFlowVar, STLVmFlowVarRepeatableRandom, STLVmTrimPktSize, STLVmTupleGen, STLVmWrFlowVar, STLVmWrMaskFlowVar,
)
from .errors import NotTranslatable, UsageError

__all__ = ["load", "scenario"]

#: Values of a variable that are looked at to find runs, and runs that are written.
_MOST_VALUES = 1 << 18
_MOST_RUNS = 2000
#: A random variable that stands in several places is so many drawn values, so that the places agree.
_DRAWN = 2000
_PACKAGES = ("trex", "trex.stl", "trex_stl_lib")
_MODULES = ("trex.stl.api", "trex_stl_lib.api")


class _NoLaw(Exception):
    """Why a variable is no law."""


def load(path: Union[str, os.PathLike[str]], *, direction: int = 0, tunables: Union[Mapping[str, Any], Sequence[str], None] = None,
         port_id: int = 0) -> dict[str, Any]:
    """The scenario of a profile.

    ``tunables`` are what TRex's console takes after ``-t``: names with values, or the words of a command line. ``direction`` is 0 for
    one side and 1 for the other, as ports 0 and 1 of TRex.
    """
    path = Path(path)
    words, named = _tunables(tunables)
    with _stand_in(path):
        module = types.ModuleType("trex_profile")
        module.__file__ = str(path)
        try:
            source = path.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        try:
            exec(compile(source, str(path), "exec"), module.__dict__)
            register = module.__dict__.get("register")
            if register is None:
                raise UsageError(f"{path} is no profile of TRex: it has no register()")
            streams = register().get_streams(direction=direction, tunables=words, port_id=port_id, **named)
            if isinstance(streams, STLProfile):
                streams = streams.get_streams()
            return scenario(streams, name=path.stem, folder=path.parent)
        except (UsageError, KeyboardInterrupt):
            raise
        except SystemExit as end:
            raise UsageError(f"{path} does not take these tunables: {' '.join(words)}") from end
        except Exception as error:
            raise NotTranslatable(f"{path}: {type(error).__name__}: {error}") from error


def _tunables(given: Union[Mapping[str, Any], Sequence[str], None]) -> tuple[list[str], dict[str, Any]]:
    if given is None:
        return [], {}
    if isinstance(given, str):
        raise UsageError('tunables are names with values, or a list of words such as ["--size", "64"]')
    if isinstance(given, Mapping):
        return [word for name, value in given.items() for word in (f"--{name}", str(value))], dict(given)
    return list(given), {}


@contextlib.contextmanager
def _stand_in(path: Path) -> Iterator[None]:
    """TRex's modules, for as long as a profile is loaded."""
    try:
        scapy = importlib.import_module("scapy.all")
    except ImportError as error:
        raise UsageError("profiles of TRex are written with Scapy, which is not installed", remedy="pip install scapy") from error
    api = {name: value for name, value in vars(scapy).items() if not name.startswith("_")}
    api.update({name: getattr(_trexapi, name) for name in _trexapi.__all__})
    # What TRex's own module happens to bring along.
    api.update(binascii=binascii, os=os, sys=sys, random=random)
    made: dict[str, types.ModuleType] = {}
    for name in _PACKAGES:
        made[name] = types.ModuleType(name)
        made[name].__path__ = []
    for name in _MODULES:
        made[name] = types.ModuleType(name)
        made[name].__dict__.update(api)
    hlt = types.ModuleType("trex.stl.trex_stl_hltapi")
    hlt.__dict__.update(api, STLHltStream=_trexhlt.STLHltStream)
    made["trex.stl.trex_stl_hltapi"] = hlt
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update(made)
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(path.parent))
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


# ---------------------------------------------------------------------------------------------------------------------------------
# Streams
# ---------------------------------------------------------------------------------------------------------------------------------


def scenario(streams: Any, *, name: str = "profile", folder: Union[str, os.PathLike[str]] = ".") -> dict[str, Any]:
    """The scenario of streams that were made with the stand-in's classes."""
    listed: list[Any] = []
    for one in [streams] if isinstance(streams, STLStream) else list(streams or []):
        # (An IMIX of TRex's high-level API is a list in the list.)
        listed += one if isinstance(one, (list, tuple)) else [one]
    listed = [stream for stream in listed if stream.enabled]
    if not listed:
        raise NotTranslatable(f"{name} has no streams")
    names = [stream.name or f"stream {i + 1}" for i, stream in enumerate(listed)]
    started_by = _chains(listed, names)
    made = []
    for i, stream in enumerate(listed):
        try:
            if not stream.self_start and names[i] not in started_by:
                continue
            if stream.action_count or stream.dummy or stream.paused:
                what = "action_count" if stream.action_count else "dummy_stream" if stream.dummy else "start_paused"
                raise _NoLaw(f"{what} has no counterpart")
            made.append({"name": names[i], **_frames(stream.packet, Path(folder)), **_times(stream, started_by.get(names[i]))})
        except _NoLaw as why:
            raise NotTranslatable(f"{name}, stream `{names[i]}`: {why}") from None
    if not made:
        raise NotTranslatable(f"{name}: no stream starts by itself")
    return {"name": name, "streams": made}


def _chains(streams: list[Any], names: list[str]) -> dict[str, str]:
    """Which stream each is started by."""
    by: dict[str, str] = {}
    for name, stream in zip(names, streams):
        if stream.next is None:
            continue
        if stream.next not in names:
            raise NotTranslatable(f"stream `{name}` goes on with `{stream.next}`, which is not there")
        if stream.next in by or streams[names.index(stream.next)].self_start:
            raise NotTranslatable(f"stream `{stream.next}` starts more than once: a stream of a scenario starts once")
        by[stream.next] = name
    for name in by:
        seen, at = {name}, by[name]
        while at in by:
            if at in seen:
                raise NotTranslatable(f"stream `{name}` starts again when it has ended: a stream of a scenario starts once")
            seen.add(at)
            at = by[at]
        if at in seen:
            raise NotTranslatable(f"stream `{name}` starts itself again: a stream of a scenario starts once")
    return by


def _decimal(value: Any) -> str:
    """A number without an exponent."""
    text = f"{Fraction(str(value)).limit_denominator(10**9).__float__():.9f}"
    return text.rstrip("0").rstrip(".")


def _nanoseconds(value: Fraction) -> str:
    return f"{round(value)}ns"


def _times(stream: STLStream, after: Optional[str]) -> dict[str, Any]:
    mode = stream.mode
    unit, value = mode.unit, Fraction(str(mode.value))
    rate = f"{_decimal(mode.value)}{unit}"
    made: dict[str, Any] = {}
    wait = Fraction(str(stream.isg)) * 1000
    if after is not None:
        made["after"] = after
    if wait:
        made["pause" if after is not None else "start"] = _nanoseconds(wait)
    if isinstance(mode, STLTXMultiBurst):
        if unit != "pps":
            raise _NoLaw("bursts whose rate is in bits or percent: give pps")
        gap = Fraction(10**9) / value
        burst: dict[str, Any] = {"frames": mode.frames, "gap": _nanoseconds(gap)}
        burst["every"] = _nanoseconds(gap * mode.frames + Fraction(str(mode.ibg)) * 1000)
        if mode.count:
            burst["count"] = mode.count
        made["burst"] = burst
    else:
        made["rate"] = rate
        if isinstance(mode, STLTXSingleBurst):
            made["count"] = mode.total
    return made


# ---------------------------------------------------------------------------------------------------------------------------------
# Packets and the field engine
# ---------------------------------------------------------------------------------------------------------------------------------


class _Law(NamedTuple):
    """A variable: its value after ``n // every`` steps, and what is known of it."""

    size: int
    every: int
    period: int
    at: Callable[[int], int]
    #: First value, step (of either sign) and count, if it is a plain range.
    plain: Optional[tuple[int, int, int]]
    #: Least and greatest of a random one.
    chance: Optional[tuple[int, int]]


class _Packet:
    """A packet, and where its layers and fields are."""

    def __init__(self, builder: STLPktBuilder, folder: Path) -> None:
        if not isinstance(builder, STLPktBuilder):
            raise _NoLaw(f"its packet is {type(builder).__name__}, no STLPktBuilder")
        self.scapy: Any = None
        if builder.buffer is not None:
            self.bytes = bytes(builder.buffer)
        elif isinstance(builder.pkt, str):
            self.bytes = _first_of(folder / builder.pkt if builder.relative else Path(builder.pkt))
        elif builder.pkt is not None and _scapy.is_packet(builder.pkt):
            self.scapy = next(iter(_scapy._addressed(builder.pkt)))
            self.bytes = bytes(self.scapy)
        else:
            raise _NoLaw("it has no packet")
        if self.scapy is None:
            ether = _scapy._class("scapy.layers.l2", "Ether")
            self.scapy = ether(self.bytes)

    def layer(self, text: str) -> tuple[int, Any]:
        """A layer, such as ``IP`` or ``IP:1``, and where it starts."""
        name, _, which = text.partition(":")
        wanted = int(which or 0)
        for layer in _scapy._layers(self.scapy):
            if name in (type(layer).__name__, layer.name, layer.name.replace(".", "|")):
                if wanted == 0:
                    return len(self.bytes) - len(bytes(layer)), layer
                wanted -= 1
        raise _NoLaw(f"the packet has no {text}")

    def offset(self, place: Any) -> int:
        """A byte, a layer, or a field of a layer."""
        if isinstance(place, int):
            return place
        if "." not in place:
            return self.layer(place)[0]
        text, name = place.rsplit(".", 1)
        start, layer = self.layer(text)
        bits = 0
        for field in layer.fields_desc:
            if hasattr(field, "cond") and not field._evalcond(layer):
                continue
            if field.name == name:
                return start + bits // 8
            size = getattr(field, "size", None)
            bits += abs(size) if isinstance(size, int) else int(field.sz * 8)
        raise _NoLaw(f"{text} has no field {name}")


def _first_of(path: Path) -> bytes:
    reader = getattr(importlib.import_module("scapy.utils"), "RawPcapReader")
    try:
        with reader(str(path)) as capture:
            return bytes(next(iter(capture))[0])
    except (OSError, StopIteration) as error:
        raise _NoLaw(f"{path} has no packet: {error}") from None


def _frames(builder: Any, folder: Path) -> dict[str, Any]:
    packet = _Packet(builder, folder)
    commands = [] if builder.vm is None else builder.vm.commands
    engine = _Engine(packet, commands)
    return engine.stream()


class _Engine:
    """Instructions of the field engine as fields of a frame."""

    def __init__(self, packet: _Packet, commands: Sequence[Any]) -> None:
        self.packet, self.commands = packet, commands
        self.laws: dict[str, _Law] = {}
        self.fields: list[str] = []
        #: Of each its first bit and how many.
        self.written: list[tuple[int, int]] = []
        self.sums: list[tuple[int, str, range]] = []
        self.sizes: Optional[_Law] = None
        self.trimmed: Optional[str] = None

    def stream(self) -> dict[str, Any]:
        self._variables()
        for command in self.commands:
            if isinstance(command, STLVmTrimPktSize):
                if self.trimmed is not None:
                    raise _NoLaw("the packet is trimmed twice")
                self.trimmed, self.sizes = command.name, self._law(command.name)
        places: dict[str, int] = {}
        for command in self.commands:
            if isinstance(command, (STLVmWrFlowVar, STLVmWrMaskFlowVar)) and command.name != self.trimmed:
                places[command.name] = places.get(command.name, 0) + 1
        for name, uses in places.items():
            law = self._law(name)
            if law.chance is not None and uses > 1:
                drawn = _drawn(law.chance, 0, _DRAWN)
                self.laws[name] = law._replace(period=len(drawn), at=_scapy._Listed(drawn), chance=None)
        for command in self.commands:
            self._command(command)
        return self._written()

    # -- variables

    def _law(self, name: str) -> _Law:
        try:
            return self.laws[name]
        except KeyError:
            raise _NoLaw(f"there is no variable {name}") from None

    def _variables(self) -> None:
        variables = {command.name: command for command in self.commands
                     if isinstance(command, (STLVmFlowVar, STLVmFlowVarRepeatableRandom))}
        followed = {variable.next_var for variable in variables.values() if variable.next_var}
        for name, variable in variables.items():
            if name in followed:
                continue
            every, seen = 1, set()
            while variable is not None:
                if variable.name in seen or variable.next_var is not None and variable.next_var not in variables:
                    raise _NoLaw(f"the chain of variable {name} does not end, or goes on with one that is not there")
                seen.add(variable.name)
                law = self._variable(variable, every)
                self.laws[variable.name] = law
                if variable.next_var is None:
                    break
                if law.chance is not None or isinstance(variable, STLVmFlowVarRepeatableRandom):
                    raise _NoLaw(f"a variable depends on {variable.name}, which is random")
                if law.plain is None and variable.values is None or variable.init != (variable.max if variable.op == "dec" else variable.min):
                    raise _NoLaw(f"a variable depends on {variable.name}, whose turns are not of one length")
                every *= law.period
                variable = variables[variable.next_var]
        if len(self.laws) != len(variables):
            raise _NoLaw("variables wait for each other in a circle")
        for command in self.commands:
            if isinstance(command, STLVmTupleGen):
                self._tuple(command)

    @staticmethod
    def _variable(variable: Any, every: int) -> _Law:
        if isinstance(variable, STLVmFlowVarRepeatableRandom):
            if variable.limit > _DRAWN:
                raise _NoLaw(f"{variable.name} repeats {variable.limit} random values; {_DRAWN} are the most")
            drawn = _drawn((variable.min, variable.max), variable.seed or 0, variable.limit)
            return _Law(variable.size, every, len(drawn), lambda k: drawn[k % len(drawn)], None, None)
        low, high, step, first = variable.min, variable.max, variable.step, variable.init
        if variable.values is not None:
            values = variable.values
            if variable.op == "random":
                source = random.Random(0)
                items = [source.choice(values) for _ in range(_DRAWN)]
                return _Law(variable.size, every, _DRAWN, lambda k: items[k % _DRAWN], None, None)
            turn = values[::-1] if variable.op == "dec" else values
            count = len(turn)
            return _Law(variable.size, every, count, lambda k: turn[k * step % count], None, None)
        if variable.op == "random":
            return _Law(variable.size, every, 1, lambda k: low, None, (low, high))
        size = high - low + 1
        period = size // _gcd(size, step)
        if variable.op == "inc":
            plain = (first, step, period) if size % step == 0 and first == low else None
            return _Law(variable.size, every, period, lambda k: low + (first - low + step * k) % size, plain, None)
        plain = (first, -step, period) if size % step == 0 and first == high else None
        return _Law(variable.size, every, period, lambda k: high - (high - first + step * k) % size, plain, None)

    def _tuple(self, command: STLVmTupleGen) -> None:
        (ip_low, ip_high), (port_low, port_high) = command.ip, command.port
        ips, ports = ip_high - ip_low + 1, port_high - port_low + 1
        if ips < 1 or ports < 1:
            raise _NoLaw(f"{command.name} has no address or no port")
        limit = command.limit or ips * ports
        if limit % (ips * ports) == 0:
            turns = ports
        elif limit % ips == 0:
            turns = limit // ips
        elif limit <= _MOST_VALUES:
            self.laws[command.name + ".ip"] = _Law(4, 1, limit, lambda k: ip_low + k % limit % ips, None, None)
            self.laws[command.name + ".port"] = _Law(2, 1, limit, lambda k: port_low + k % limit // ips % ports, None, None)
            return
        else:
            raise _NoLaw(f"{command.name} begins again after {limit} flows, which is no multiple of its {ips} addresses")
        self.laws[command.name + ".ip"] = _Law(4, 1, ips, lambda k: ip_low + k % ips, (ip_low, 1, ips), None)
        plain = (port_low, 1, turns) if turns <= ports else None
        self.laws[command.name + ".port"] = _Law(2, ips, turns, lambda k: port_low + k % turns % ports, plain, None)

    # -- instructions

    def _command(self, command: Any) -> None:
        if isinstance(command, (STLVmFlowVar, STLVmFlowVarRepeatableRandom, STLVmTupleGen, STLVmTrimPktSize)):
            return
        if isinstance(command, (STLVmWrFlowVar, STLVmWrMaskFlowVar)):
            self._write(command)
        elif isinstance(command, STLVmFixIpv4):
            self._ipv4(self.packet.offset(command.offset))
        elif isinstance(command, STLVmFixChecksumHw):
            self._hardware(command)
        elif isinstance(command, STLVmFixIcmpv6):
            self._transport(self.packet.offset(command.l3), self.packet.offset(command.l4), 58, 2)
        else:
            raise _NoLaw(f"{type(command).__name__} is no instruction that is known here")

    def _ipv4(self, start: int) -> None:
        end = start + (self.packet.bytes[start] & 15) * 4
        self._sum(start + 10, f"checksum({start + 10}, {start}..{end - 1})", range(start, end))

    def _hardware(self, command: STLVmFixChecksumHw) -> None:
        start, l4 = self.packet.offset(command.l3), self.packet.offset(command.l4)
        if self.packet.bytes[start] >> 4 == 4:
            self._ipv4(start)
        if command.type == CTRexVmInsFixHwCs.L4_TYPE_UDP:
            self._transport(start, l4, 17, 6)
        elif command.type == CTRexVmInsFixHwCs.L4_TYPE_TCP:
            self._transport(start, l4, 6, 16)
        elif command.type != CTRexVmInsFixHwCs.L4_TYPE_IP:
            raise _NoLaw(f"fix_chksum_hw with l4_type {command.type}")

    def _transport(self, start: int, l4: int, protocol: int, at: int) -> None:
        first, last = (12, 19) if self.packet.bytes[start] >> 4 == 4 else (8, 39)
        text = f"checksum({l4 + at}, {l4}, pseudo=[{start + first}..{start + last}], protocol={protocol})"
        self._sum(l4 + at, text, range(l4, 1 << 17))

    def _sum(self, offset: int, text: str, covered: range) -> None:
        self.sums = [(at, before, over) for at, before, over in self.sums if at != offset]
        if any(offset in over for _, _, over in self.sums):
            raise _NoLaw("a checksum is computed before another one that it covers")
        self.sums.append((offset, text, covered))

    def _write(self, command: Any) -> None:
        law = self._law(command.name)
        offset = self.packet.offset(command.offset) + command.fixup
        size = command.cast if isinstance(command, STLVmWrMaskFlowVar) else law.size
        if offset < 0 or offset + size > len(self.packet.bytes):
            raise _NoLaw(f"{command.name} is written outside of the packet")
        if any(at in over for _, _, over in self.sums for at in range(offset, offset + size)):
            raise _NoLaw(f"{command.name} is written after the checksum that covers it was computed")
        mask = (1 << 8 * size) - 1
        wanted, shift = (command.mask & mask, command.shift) if isinstance(command, STLVmWrMaskFlowVar) else (mask, 0)
        if command.name == self.trimmed:
            if size != 2 or wanted != mask or shift or not command.big or command.add > 0:
                raise _NoLaw("the packet's size is written other than as a 16-bit length")
            self.fields.append(f"length({offset}, {-command.add})")
            self.written.append((offset * 8, 16))
            return
        if wanted == 0:
            return
        low = (wanted & -wanted).bit_length() - 1
        bits = wanted.bit_length() - low
        if wanted >> low != (1 << bits) - 1:
            raise _NoLaw(f"the mask {wanted:#x} of {command.name} has holes")
        if not command.big and size > 1 and (low % 8 or bits % 8 or isinstance(command, STLVmWrMaskFlowVar)):
            raise _NoLaw(f"{command.name} is written with a mask in little-endian order")

        def part(value: int) -> int:
            moved = value + command.add
            moved = moved << shift if shift >= 0 else moved >> -shift
            found = moved >> low & (1 << bits) - 1
            return found if command.big or size == 1 else int.from_bytes(found.to_bytes(size, "big"), "little")

        exact = (command.big or size == 1) and low == max(shift, 0) and shift >= 0
        text = self._text(command.name, law, bits, part, command.add if exact else None)
        place = offset * 8 + 8 * size - low - bits
        where = f"{place // 8}.{place % 8}" if place % 8 else str(place // 8)
        # (A value alone does not vary.)
        every = f" every={law.every}" if law.every > 1 and law.chance is None and not text.isdigit() else ""
        # What was written to the same bits before does not count.
        begin = place
        self.fields = [field for field, written in zip(self.fields, self.written) if not self._covers(begin, bits, written)]
        self.written = [written for written in self.written if not self._covers(begin, bits, written)]
        self.fields.append(f"field({where}, {bits}, {text}{every})")
        self.written.append((begin, bits))

    @staticmethod
    def _covers(begin: int, bits: int, other: tuple[int, int]) -> bool:
        return begin <= other[0] and other[0] + other[1] <= begin + bits

    @staticmethod
    def _text(name: str, law: _Law, bits: int, part: Callable[[int], int], add: Optional[int]) -> str:
        """A law as an expression writes it. ``add`` is what is added to the variable if nothing else happens to it."""
        most = (1 << bits) - 1
        if law.chance is not None:
            low, high = law.chance
            count = high - low + 1
            if add is not None and 0 <= low + add and high + add <= most:
                return "random()" if (low + add, high + add) == (0, most) else f"random({low + add}..{high + add})"
            if count <= _DRAWN:
                return f"random([{', '.join(str(part(value)) for value in range(low, high + 1))}])"
            if add is not None and count % (most + 1) == 0:
                return "random()"
            raise _NoLaw(f"the random {name} does not fit where it is written")
        if law.plain is not None and add is not None:
            first, step, count = law.plain
            last = first + step * (count - 1)
            if 0 <= min(first, last) + add and max(first, last) + add <= most:
                if count == 1:
                    return str(first + add)
                return f"{first + add}..{last + add}" + (f" step={abs(step)}" if abs(step) > 1 else "")
        if law.period > _MOST_VALUES:
            raise _NoLaw(f"{name} has {law.period} values that are no range where they are written")
        return _runs(name, [part(law.at(k)) for k in range(law.period)])

    # -- the frame

    def _written(self) -> dict[str, Any]:
        frame = self.packet.bytes
        fields = self.fields + [text for _, text, _ in self.sums]
        made: dict[str, Any] = {}
        fill = ""
        if self.sizes is not None:
            made["size"], least, longest = self._size()
            if longest > len(frame):
                raise _NoLaw(f"the packet is trimmed to {longest} bytes, but has {len(frame)}")
            rest = frame[least:]
            if any(byte != rest[0] for byte in rest):
                raise _NoLaw("what is trimmed off is not one byte again and again")
            fill = f", fill={rest[0]:#04x}" if rest else ""
            frame = frame[:least]
        words = f", fields=[{', '.join(fields)}]" if fields else ""
        made["frame"] = f'frame(hex="{frame.hex()}"{fill}{words})'
        if len(made["frame"]) > 1 << 16:
            raise _NoLaw(f"its expression has {len(made['frame'])} characters; a scenario takes {1 << 16}")
        return made

    def _size(self) -> tuple[Any, int, int]:
        law = self.sizes
        assert law is not None
        fcs = 4
        if law.chance is not None:
            low, high = law.chance
            return f"random({low + fcs}..{high + fcs})", low, high
        if law.every > 1:
            raise _NoLaw("the packet's size depends on another variable")
        if law.plain is not None and law.plain[1] == 1:
            first, _, count = law.plain
            return f"{first + fcs}..{first + count - 1 + fcs}", first, first + count - 1
        if law.period > _DRAWN:
            raise _NoLaw(f"the packet takes {law.period} sizes in an order that is no range; {_DRAWN} are the most")
        sizes = [law.at(k) for k in range(law.period)]
        return [size + fcs for size in sizes], min(sizes), max(sizes)


def _drawn(bounds: tuple[int, int], seed: int, count: int) -> list[int]:
    source = random.Random(seed)
    return [source.randint(*bounds) for _ in range(count)]


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def _runs(name: str, values: list[int]) -> str:
    """Values as ranges of neighbours, one behind the other."""
    runs: list[tuple[int, int]] = []
    at = 0
    while at < len(values):
        end, step = at, 0
        while end + 1 < len(values) and values[end + 1] - values[end] in ((step,) if step else (1, -1)):
            step = values[end + 1] - values[end]
            end += 1
        runs.append((values[at], values[end]))
        at = end + 1
    if len(runs) > _MOST_RUNS * 2:
        raise _NoLaw(f"{name} takes {len(values)} values in {len(runs)} ranges, which are too many")
    words = [str(first) if first == last else f"{first}..{last}" for first, last in runs]
    return words[0] if len(words) == 1 else f"[{', '.join(words)}]"
