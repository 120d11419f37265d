"""Scapy's packets become packet programs, or frames.

The only module that touches objects of Scapy. Scapy is never imported here: whoever hands us one of its objects has imported it, so
that its classes are found in ``sys.modules``.

A template such as ``Ether()/IP(dst="198.18.0.0/16")/UDP(dport=(1, 1000))`` stands for many packets. Its *dimensions* are the fields
that have several values (in Scapy's order, the fastest first) and those that are random:

    template --> dimensions --> which bits of the frame does each move? --> field(...)   \\
                                where are checksums and lengths?        --> checksum(...), length(...)
                                some frames, made by both                --> equal, or it is no program

No table of layers is needed for this: a few packets are built with one and with another value of a field, and what moved is its place.
What has no fixed place, or depends on more than one field (except checksums), is enumerated with Scapy instead, up to a limit.
"""

from __future__ import annotations

import ipaddress
import math
import random
import re
import sys
from itertools import islice
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

from ._job import MOST_BYTES, Frames
from .errors import NotTranslatable

__all__ = ["built", "count", "each", "frames", "is_packet", "is_source_item", "time_of", "translate"]

#: Ethernet addresses that a packet leaves to Scapy. Scapy asks for them by ARP on the routes of this host, and takes the broadcast
#: address if nobody answers; these are those of netdyno's expressions.
DESTINATION = "02:00:00:00:00:02"
SOURCE = "02:00:00:00:00:01"

#: A field whose values follow no law is built so many times at most.
MOST_ITEMS = 4096
#: Packets that are enumerated, at most.
MOST_PACKETS = 100_000
#: A template with random values that no law describes is built so many times.
SAMPLES = 4096
#: Characters of an expression that a scenario takes, and fields of a frame.
_MOST_TEXT = 1 << 16
_MOST_FIELDS = 64
#: Bytes that a signature adds; frames may grow by any number.
_GROWTH = 18
_CHECKSUM = re.compile(r"ch?e?c?ksum\Z", re.IGNORECASE)
_PROTOCOLS = {"UDP": 17, "TCP": 6}
#: A dimension that advances after so many frames never does.
_NEVER = 1 << 62


class _NoProgram(Exception):
    """Why a template cannot be a program."""


def _class(module: str, name: str) -> Any:
    """A class of Scapy, if its module was imported; else one that nothing is an instance of."""
    return getattr(sys.modules.get(module), name, None) or _Nothing


class _Nothing:
    pass


def is_packet(obj: object) -> bool:
    """Is it a packet of Scapy?"""
    return isinstance(obj, _class("scapy.packet", "Packet"))


def is_source_item(obj: object) -> bool:
    """Is it a packet, or what a list of ``sr`` holds: a packet and its answer?"""
    return is_packet(obj) or (isinstance(obj, tuple) and len(obj) > 0 and all(map(is_packet, obj)))


# ---------------------------------------------------------------------------------------------------------------------------------
# Values of a field
# ---------------------------------------------------------------------------------------------------------------------------------


class _Values:
    """What a field takes, one after the other: parts, each a range of numbers or of addresses, or a value alone."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)
        self.ends = []
        total = 0
        for part in self.parts:
            total += part.count if isinstance(part, _Run) else 1
            self.ends.append(total)
        self.count = total

    def __getitem__(self, index: int) -> Any:
        before = 0
        for part, end in zip(self.parts, self.ends):
            if index < end:
                return part.at(index - before) if isinstance(part, _Run) else part
            before = end
        raise IndexError(index)


class _Run(NamedTuple):
    """Numbers with a step, and what Scapy makes of each."""

    start: int
    step: int
    count: int  # type: ignore[assignment]  # (a tuple's own method of that name is of no use here)
    make: Callable[[int], Any]

    def at(self, index: int) -> Any:
        return self.make(self.start + self.step * index)

    @property
    def last(self) -> int:
        return self.start + self.step * (self.count - 1)


def _number(value: int) -> int:
    return value


def _parts(elt: Any, top: bool = True) -> Iterator[Any]:
    """As Scapy's SetGen goes through a value that is set for a field."""
    if isinstance(elt, (list, _class("scapy.base_classes", "BasePacketList"))) and top:
        for item in elt:
            yield from _parts(item, top=False)
        return
    if isinstance(elt, tuple) and 2 <= len(elt) <= 3 and all(hasattr(item, "__int__") for item in elt):
        numbers = [int(item) for item in elt]
        elt = range(numbers[0], numbers[1] + 1, *numbers[2:])
    if isinstance(elt, range):
        if len(elt) > 0:
            yield _Run(elt[0], elt.step, len(elt), _number)
    elif isinstance(elt, _class("scapy.base_classes", "Net")):
        if elt.count > 0:
            yield _Run(elt.start, 1, elt.count, elt.int2ip)
    elif isinstance(elt, _class("types", "GeneratorType")):
        raise _NoProgram("a generator stands in a field: write a list")
    elif isinstance(elt, _class("scapy.base_classes", "Gen")):
        items = list(islice(iter(elt), MOST_ITEMS + 1))
        if len(items) > MOST_ITEMS:
            raise _NoProgram(f"a field holds a set of more than {MOST_ITEMS} values that follow no law")
        yield from items
    else:
        if _is_random(elt):
            raise _NoProgram("a random value stands in a list")
        yield elt


def _is_random(value: Any) -> bool:
    return isinstance(value, _class("scapy.volatile", "VolatileValue"))


def _number_of(value: Any) -> Optional[int]:
    """A value as the number that most fields write for it; None if that is not known."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, str):
        if re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", value):
            return int(value.replace(":", ""), 16)
        try:
            return int(ipaddress.ip_address(value))
        except ValueError:
            return None
    if type(value).__name__ == "FlagValue":
        return int(value)
    return None


# ---------------------------------------------------------------------------------------------------------------------------------
# Random values: what can be said of them as laws
# ---------------------------------------------------------------------------------------------------------------------------------


class _Law(NamedTuple):
    """A part of a random value: ``bits`` of it, the lowest at bit ``low``, vary by ``text``, which ``draw`` does too."""

    low: int
    bits: int
    text: str
    draw: Callable[[], int]


class _Chance(NamedTuple):
    """A random value: two values in which as many bits as possible differ, how to make one of a number, and its laws."""

    probes: tuple[Any, Any]
    make: Callable[[int], Any]
    bits: int
    laws: list[_Law]


def _uniform(low: int, first: int, last: int) -> list[_Law]:
    """Numbers from ``first`` to ``last``, of which only the bits that can differ vary."""
    bits = (first ^ last).bit_length()
    if bits == 0:
        return []
    if bits > 64:
        raise _NoProgram("a random number has more than 64 bits")
    mask = (1 << bits) - 1
    first, last = first & mask, last & mask
    text = "random()" if (first, last) == (0, mask) else f"random({first}..{last})"
    return [_Law(low, bits, text, lambda: random.randint(first, last))]


def _bytes_of_chance(ranges: Sequence[tuple[int, int]]) -> list[_Law]:
    """Bytes that vary one by one; those that take any value are joined."""
    laws: list[_Law] = []
    total = len(ranges)
    for i, (first, last) in enumerate(ranges):
        low = (total - 1 - i) * 8
        if (first, last) != (0, 255):
            laws += _uniform(low, first, last)
        elif laws and laws[-1].text == "random()" and laws[-1].low == low + 8 and laws[-1].bits % 8 == 0 and laws[-1].bits < 64:
            laws[-1] = _uniform(low, 0, (1 << (laws[-1].bits + 8)) - 1)[0]
        else:
            laws += _uniform(low, 0, 255)
    return laws


def _chance(value: Any) -> _Chance:
    """The laws of a random value of Scapy. A class that draws by itself is none that is known here."""
    named = {name: _class("scapy.volatile", name) for name in
             ("RandNum", "RandEnum", "RandEnumKeys", "RandChoice", "RandIP", "RandIP6", "RandMAC", "RandBin", "RandString")}
    kind = next((name for name, cls in named.items()
                 if isinstance(value, cls) and type(value)._fix is cls.__dict__.get("_fix")), None)
    if kind == "RandNum":
        first, last = value.min, value.max
        if first < 0 or last < first:
            raise _NoProgram(f"{type(value).__name__} may be negative")
        return _Chance((first, last), _number, last.bit_length(), _uniform(0, first, last))
    if kind == "RandEnum":
        return _each_once(range(value.min, value.max + 1))
    if kind == "RandEnumKeys":
        return _each_once(value.enum)
    if kind == "RandChoice":
        return _one_of(value._choice)
    if kind == "RandIP":
        net = value.ip
        return _Chance((net.int2ip(net.start), net.int2ip(net.stop)), net.int2ip, 32, _uniform(0, net.start, net.stop))
    if kind == "RandMAC":
        ranges = [_bounds(part) for part in value.mac]

        def mac(number: int) -> str:
            return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))

        return _composed(ranges, mac)
    if kind == "RandIP6":
        words = _words_of_ip6(value)
        ranges = []
        for first, last in words:
            if (first, last) == (0, 0xFFFF):
                ranges += [(0, 255), (0, 255)]
            elif first >> 8 == last >> 8:
                ranges += [(first >> 8, first >> 8), (first & 255, last & 255)]
            else:
                raise _NoProgram("RandIP6 with a range of more than 256 values in one group")
        return _composed(ranges, lambda number: str(ipaddress.IPv6Address(number)))
    if kind in ("RandBin", "RandString"):
        return _text(value, kind)
    raise _NoProgram(f"no law describes {type(value).__name__}")


def _bounds(part: Any) -> tuple[int, int]:
    return (part, part) if isinstance(part, int) else (part.min, part.max)


def _composed(ranges: Sequence[tuple[int, int]], make: Callable[[int], Any]) -> _Chance:
    first = int.from_bytes(bytes(low for low, _ in ranges), "big")
    last = int.from_bytes(bytes(high for _, high in ranges), "big")
    return _Chance((make(first), make(last)), make, len(ranges) * 8, _bytes_of_chance(ranges))


def _words_of_ip6(value: Any) -> list[tuple[int, int]]:
    sp = list(value.sp)
    if value.multi > 1 or value.multi and value.variable:
        raise _NoProgram("RandIP6 whose random groups have no fixed place")
    words: list[tuple[int, int]] = []
    if value.multi:
        for part in sp:
            words += [(0, 0xFFFF)] * (9 - len(sp)) if part == "**" else [_bounds(part)]
    elif value.variable:
        place = sp.index("")
        head = [_bounds(part) for part in sp[:place] if part != ""]
        tail = [_bounds(part) for part in sp[place:] if part != ""]
        words = head + [(0, 0)] * (8 - len(head) - len(tail)) + tail
    else:
        words = [_bounds(part) for part in sp]
    if len(words) != 8:
        raise _NoProgram("RandIP6 of other than eight groups")
    return words


def _each_once(items: Sequence[Any]) -> _Chance:
    """RandEnum: each value once in an order of chance, then again."""
    total = len(items)
    if total < 2:
        return _one_of(list(items))
    numbers = None if isinstance(items, range) else [_number_of(item) for item in items]
    if numbers is None and items[0] >= 0 and total & (total - 1) == 0:
        first, last = items[0], items[-1]
        bits = (first ^ last).bit_length()
        if bits <= 63:
            mask = (1 << bits) - 1
            law = _Law(0, bits, f"shuffled({first & mask}..{last & mask})", lambda: random.randint(first, last) & mask)
            return _Chance((first, last), _number, last.bit_length(), [law])
    if total > MOST_ITEMS:
        raise _NoProgram(f"an order of chance of {total} values, which are more than {MOST_ITEMS} and no power of two")
    shuffled = list(items)
    random.shuffle(shuffled)
    return _listed(shuffled, "[{}]")


def _one_of(items: Sequence[Any]) -> _Chance:
    if len(items) > MOST_ITEMS:
        raise _NoProgram(f"a choice of more than {MOST_ITEMS} values")
    return _listed(list(items), "random([{}])")


def _listed(items: list[Any], form: str) -> _Chance:
    numbers = [number for number in map(_number_of, items) if number is not None]
    if len(numbers) < len(items):
        raise _NoProgram(f"a random choice of values such as {items[0]!r}, which are no numbers or addresses")
    low = min(range(len(items)), key=lambda i: numbers[i])
    high = max(range(len(items)), key=lambda i: (numbers[low] ^ numbers[i]).bit_length())
    moved = 0
    for number in numbers:
        moved |= number ^ numbers[0]
    bits = moved.bit_length()
    if bits > 64:
        raise _NoProgram("a random choice of values of more than 64 bits")
    mask = (1 << bits) - 1
    made = dict(zip(numbers, items))
    laws = [] if bits == 0 else [_Law(0, bits, form.format(", ".join(str(number & mask) for number in numbers)),
                                      lambda: random.choice(numbers) & mask)]
    base = numbers[low] & ~mask
    return _Chance((items[low], items[high]), lambda number: made[base | number & mask], max(numbers).bit_length(), laws)


def _text(value: Any, kind: str) -> _Chance:
    size, chars = value.size, value.chars
    if not isinstance(size, int):
        raise _NoProgram(f"the length of {type(value).__name__} is random")
    codes = [char if isinstance(char, int) else ord(char) for char in chars]
    if not codes or max(codes) > 255:
        raise _NoProgram(f"{type(value).__name__} draws from other than bytes")

    def make(number: int) -> Any:
        made = number.to_bytes(size, "big")
        return made if kind == "RandBin" else made.decode("latin-1")

    if sorted(codes) == list(range(256)):
        laws = _bytes_of_chance([(0, 255)] * size)
        return _Chance((make(0), make((1 << 8 * size) - 1)), make, 8 * size, laws)
    items = ", ".join(map(str, codes))
    laws = [_Law(8 * i, 8, f"random([{items}])", lambda: random.choice(codes)) for i in reversed(range(size))]
    # Of two characters of which as many bits differ as there are: what does not differ is found by its neighbours.
    first = codes[0]
    other = max(codes, key=lambda code: bin(code ^ first).count("1"))
    return _Chance((make(int.from_bytes(bytes([first] * size), "big")), make(int.from_bytes(bytes([other] * size), "big"))),
                   make, 8 * size, laws)


# ---------------------------------------------------------------------------------------------------------------------------------
# The template: layers, dimensions, and packets built of them
# ---------------------------------------------------------------------------------------------------------------------------------


class _Dimension:
    """A field that varies."""

    def __init__(self, layer: int, name: str, values: Optional[_Values], chance: Any, every: int) -> None:
        self.layer, self.name, self.values, self.chance, self.every = layer, name, values, chance, every

    def __str__(self) -> str:
        return self.name


class _Template:
    """A packet of Scapy, taken apart."""

    def __init__(self, packet: Any) -> None:
        self.layers = list(_layers(packet))
        #: What each layer is built with; fields that vary are put over it.
        self.fixed: list[dict[str, Any]] = []
        self.dimensions: list[_Dimension] = []
        #: Packets that the template stands for.
        self.count = 1
        todo: list[list[str]] = []
        for layer in self.layers:
            plain = layer.explicit or layer.raw_packet_cache is not None
            names = list(layer.fields)
            if not plain:
                defaults = list(layer.default_fields.items()) + list(layer.overloaded_fields.items())
                names = [name for name, value in defaults if _is_random(value)] + names
            fixed = dict(layer.fields) if plain else {}
            fixed.update(self._addresses(layer))
            self.fixed.append(fixed)
            todo.append(names)
        for number in reversed(range(len(self.layers))):
            seen: set[str] = set()
            for name in todo[number]:
                self._dimension(number, name, name in seen)
                seen.add(name)

    @staticmethod
    def _addresses(layer: Any) -> dict[str, str]:
        """Ethernet addresses that would be asked for."""
        if layer.raw_packet_cache is not None:
            return {}
        found = {}
        for field in layer.fields_desc:
            kind = type(field).__name__
            if kind in ("DestMACField", "SourceMACField") and layer.getfieldval(field.name) is None:
                address = _group(layer.payload) if kind == "DestMACField" else SOURCE
                if address is not None:
                    found[field.name] = address
        return found

    def _dimension(self, number: int, name: str, again: bool) -> None:
        layer = self.layers[number]
        elt = layer.getfieldval(name)
        if _is_random(elt):
            if not again:
                self.dimensions.append(_Dimension(number, name, None, elt, 1))
            return
        if layer.explicit or layer.raw_packet_cache is not None:
            return
        if not isinstance(elt, _class("scapy.base_classes", "Gen")) and layer.get_field(name).islist:
            values = _Values([elt])
        else:
            values = _Values(list(_parts(elt)))
        every, self.count = self.count, self.count * values.count
        if again:
            # Scapy goes through it twice (a default of fuzz() beside a value); the inner one decides.
            return
        if values.count == 1:
            # Addresses that would be asked for stand there already.
            self.fixed[number].setdefault(name, values[0])
        elif values.count > 1:
            self.dimensions.append(_Dimension(number, name, values, None, every))

    def packet(self, varied: dict[tuple[int, str], Any], last: Any = None) -> Any:
        """One of the packets, with ``last`` behind its last layer."""
        built = last
        for number in reversed(range(len(self.layers))):
            fields = dict(self.fixed[number])
            for (layer, name), value in varied.items():
                if layer == number:
                    fields[name] = value
            built = self.layers[number].clone_with(payload=built, **fields)
        return built


def _layers(packet: Any) -> Iterator[Any]:
    nothing = _class("scapy.packet", "NoPayload")
    while not isinstance(packet, nothing):
        yield packet
        packet = packet.payload


def _first(value: Any) -> Any:
    try:
        return next((part.at(0) if isinstance(part, _Run) else part for part in _parts(value)), None)
    except _NoProgram:
        return None


def _group(below: Any) -> Optional[str]:
    """The destination of a frame with that payload; None where Scapy knows it without asking: groups."""
    kind = type(below).__name__
    if kind not in ("IP", "IPv6"):
        return DESTINATION
    try:
        address = ipaddress.ip_address(str(_first(below.getfieldval("dst"))))
    except ValueError:
        return DESTINATION
    if address == ipaddress.IPv4Address("255.255.255.255"):
        return "ff:ff:ff:ff:ff:ff"
    return None if address.is_multicast else DESTINATION


# ---------------------------------------------------------------------------------------------------------------------------------
# From the template to a program
# ---------------------------------------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """``bits`` of the frame, the lowest at bit ``low`` from its end, vary."""

    low: int
    bits: int
    text: str
    every: int
    #: The value of frame n; of random ones, of a drawn number.
    at: Callable[[int], int]
    dimension: _Dimension


class _Sum(NamedTuple):
    """A checksum at a byte."""

    offset: int
    start: int
    end: Optional[int]
    pseudo: Optional[tuple[int, int]]
    protocol: Optional[int]
    add: int

    def text(self) -> str:
        covered = f"{self.start}" if self.end is None else f"{self.start}..{self.end - 1}"
        more = "" if self.pseudo is None else f", pseudo=[{self.pseudo[0]}..{self.pseudo[1] - 1}]"
        more += "" if self.protocol is None else f", protocol={self.protocol}"
        return f"checksum({self.offset}, {covered}{more}{f', add={self.add}' if self.add else ''})"

    def total(self, frame: bytes | bytearray) -> int:
        end = len(frame) if self.end is None else self.end
        total = _words(frame[self.start : end]) + self.add
        if self.pseudo is not None:
            total += _words(frame[slice(*self.pseudo)])
        if self.protocol is not None:
            total += self.protocol + end - self.start
        return total

    def write(self, frame: bytearray) -> None:
        frame[self.offset : self.offset + 2] = b"\0\0"
        value = _folded(self.total(frame)) ^ 0xFFFF
        if value == 0 and self.protocol == 17:
            value = 0xFFFF
        frame[self.offset : self.offset + 2] = value.to_bytes(2, "big")


def _words(part: bytes | bytearray) -> int:
    return sum(part[0::2]) * 256 + sum(part[1::2])


def _folded(total: int) -> int:
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class _Listed:
    """Values in turn."""

    def __init__(self, items: list[int]) -> None:
        self.items = items

    def __call__(self, index: int) -> int:
        return self.items[index % len(self.items)]


class _Drawn:
    """Values of chance."""

    def __init__(self, law: _Law) -> None:
        self.law = law

    def __call__(self, _: int) -> int:
        return self.law.draw()


class _Program:
    """What a template becomes, and the proof that it is the same."""

    def __init__(self, template: _Template) -> None:
        self.template = template
        self.start = {self._key(d): d.values[0] for d in template.dimensions if d.values is not None}
        self.chances = {}
        for dimension in template.dimensions:
            if dimension.values is None:
                chance = _chance(dimension.chance)
                self.chances[self._key(dimension)] = chance
                self.start[self._key(dimension)] = chance.probes[0]
        self.pins: dict[tuple[int, str], Any] = {}
        for number, layer in enumerate(template.layers):
            if layer.raw_packet_cache is None:
                for field in layer.fields_desc:
                    if _CHECKSUM.search(field.name) and layer.getfieldval(field.name) is None:
                        self.pins[number, field.name] = 0
        self.base = self._build({})
        self.length = len(self.base)
        places = self._places()
        self.real_packet = template.packet(self.start)
        self.real = bytes(self.real_packet)
        self.fields: list[_Field] = []
        for dimension in template.dimensions:
            self._move(dimension)
        if len(self.fields) > _MOST_FIELDS:
            raise _NoProgram(f"{len(self.fields)} parts of the frame vary; {_MOST_FIELDS} are the most")
        self.lengths: list[tuple[int, int]] = []
        self.sums = self._grown(places)
        self._prove()

    @staticmethod
    def _key(dimension: _Dimension) -> tuple[int, str]:
        return dimension.layer, dimension.name

    def _build(self, varied: dict[tuple[int, str], Any]) -> bytes:
        """A frame whose checksums are 0."""
        return bytes(self.template.packet({**self.start, **self.pins, **varied}))

    # -- places

    def _places(self) -> dict[tuple[int, str], int]:
        """Where computed checksums stand."""
        places = {}
        for key in list(self.pins):
            field = self.template.layers[key[0]].get_field(key[1])
            if getattr(field, "sz", 2) != 2:
                raise _NoProgram(f"{key[1]} of {type(self.template.layers[key[0]]).__name__} is no Internet checksum")
            moved = int.from_bytes(self.base, "big") ^ int.from_bytes(self._build({key: 0xFFFF}), "big")
            low = (moved & -moved).bit_length() - 1
            if moved == 0:
                del self.pins[key]
            elif moved != 0xFFFF << low or low % 8:
                raise _NoProgram(f"the checksum {key[1]} of {type(self.template.layers[key[0]]).__name__} has not 16 bits")
            else:
                places[key] = self.length - low // 8 - 2
        return places

    def _moved(self, key: tuple[int, str], value: Any) -> tuple[int, bytes]:
        frame = self._build({key: value})
        if len(frame) != self.length:
            raise _NoProgram(f"the frame's length varies with {key[1]} of {type(self.template.layers[key[0]]).__name__}")
        return int.from_bytes(self.base, "big") ^ int.from_bytes(frame, "big"), frame

    def _move(self, dimension: _Dimension) -> None:
        """Which bits a dimension moves, and by which law."""
        key = self._key(dimension)
        if dimension.values is None:
            return self._move_by_chance(dimension, self.chances[key])
        if dimension.every >= _NEVER:
            return None
        values = dimension.values
        numbers = self._numbers(values)
        if numbers is not None:
            low = self._low(key, values, numbers)
            if low is not None:
                return self._laws(dimension, low, numbers)
        return self._rendered(dimension)

    @staticmethod
    def _numbers(values: _Values) -> Optional[list[Any]]:
        """Parts as numbers and runs of numbers."""
        numbers: list[Any] = []
        for part in values.parts:
            number = part if isinstance(part, _Run) and part.start >= 0 and part.last >= 0 else _number_of(part)
            if number is None:
                return None
            numbers.append(number)
        return numbers

    def _low(self, key: tuple[int, str], values: _Values, numbers: list[Any]) -> Optional[int]:
        """Where the lowest bit of the field stands: what moves must be what differs between the numbers, at one place."""

        def number(index: int) -> int:
            made = values[index]
            return _number_of(made) or 0

        first, low = number(0), None
        # In a list the second and the last may be as the first.
        differs = (index for index in range(1, min(values.count, MOST_ITEMS)) if number(index) != first)
        # What Scapy cannot build is likely the greatest, wherever it stands.
        greatest, at = (0, 0), 0
        for part in numbers:
            value, last, count = (max(part.start, part.last), part.last, part.count) if isinstance(part, _Run) else (part, part, 1)
            greatest = max(greatest, (value, at + count - 1 if value == last else at))
            at += count
        for index in sorted({1, next(differs, 1), greatest[1], values.count - 1} - {0}):
            moved, _ = self._moved(key, values[index])
            expected = number(index) ^ first
            if moved == 0 or expected == 0:
                if moved != expected:
                    return None
                continue
            shift = (moved & -moved).bit_length() - (expected & -expected).bit_length()
            if shift < 0 or moved != expected << shift or low not in (None, shift):
                return None
            low = shift
        return low

    def _laws(self, dimension: _Dimension, low: int, numbers: list[Any]) -> None:
        first = numbers[0].start if isinstance(numbers[0], _Run) else numbers[0]
        moved = 0
        clamped = []
        for part in numbers:
            if isinstance(part, _Run):
                # Nobody comes to the end of more.
                part = part._replace(count=min(part.count, 1 << 64))
                moved |= (part.start ^ first) | (part.last ^ first)
            else:
                moved |= part ^ first
            clamped.append(part)
        bits = moved.bit_length()
        for cut in range(0, bits, 64):
            wide = min(64, bits - cut)
            self.fields += self._field(dimension, low + cut, wide, clamped, cut)

    def _field(self, dimension: _Dimension, low: int, bits: int, numbers: list[Any], cut: int) -> list[_Field]:
        mask = (1 << bits) - 1
        steps = {abs(part.step) for part in numbers if isinstance(part, _Run) and part.count > 1}
        whole = all(not isinstance(part, _Run) or part.start >> cut + bits == part.last >> cut + bits for part in numbers)
        listed = len(numbers) > 1
        if cut or not whole or len(steps) > 1:
            # Not a run of its own: each value, unless nothing of these bits moves within a run.
            items = []
            for part in numbers:
                if not isinstance(part, _Run):
                    items.append(part >> cut & mask)
                elif part.start >> cut == part.last >> cut and not listed:
                    return []
                elif part.count > MOST_ITEMS:
                    raise _NoProgram(f"{dimension} varies in more than 64 bits")
                else:
                    items += [(part.start + part.step * i) >> cut & mask for i in range(part.count)]
            if len(items) > MOST_ITEMS:
                raise _NoProgram(f"{dimension} has more than {MOST_ITEMS} values that follow no law")
            return [_Field(low, bits, f"[{', '.join(map(str, items))}]", dimension.every,
                           lambda i: items[i % len(items)], dimension)]
        words = []
        for part in numbers:
            if isinstance(part, _Run) and part.count > 1:
                words.append(f"{part.start & mask}..{part.last & mask}")
            else:
                words.append(str((part.start if isinstance(part, _Run) else part) & mask))
        step = next(iter(steps), 1)
        text = f"[{', '.join(words)}]" if listed else words[0]
        text += f" step={step}" if step > 1 else ""
        parts = _Values(numbers)

        def at(index: int) -> int:
            before = 0
            for part, end in zip(parts.parts, parts.ends):
                if index < end:
                    return (part.start + part.step * (index - before) if isinstance(part, _Run) else part) & mask
                before = end
            return 0

        return [_Field(low, bits, text, dimension.every, at, dimension)]

    def _rendered(self, dimension: _Dimension) -> None:
        """Each value built: the bits that move, in words of up to 8 bytes, are lists."""
        key, values = self._key(dimension), dimension.values
        assert values is not None
        if values.count > MOST_ITEMS:
            raise _NoProgram(
                f"the {values.count} values of {key[1]} of {type(self.template.layers[key[0]]).__name__} follow no law"
                f" where they stand in the frame, and only {MOST_ITEMS} are listed")
        frames, moved = [self.base], 0
        for index in range(1, values.count):
            bits, frame = self._moved(key, values[index])
            moved |= bits
            frames.append(frame)
        places = moved.to_bytes(self.length, "big")
        at = 0
        while at < self.length:
            if not places[at]:
                at += 1
                continue
            end = at
            while end < min(self.length, at + 8) and places[end]:
                end += 1
            # Other bits of the first and the last byte may be another field's.
            word = int.from_bytes(places[at:end], "big")
            shift = (word & -word).bit_length() - 1
            bits = word.bit_length() - shift
            items = [int.from_bytes(frame[at:end], "big") >> shift & ((1 << bits) - 1) for frame in frames]
            self.fields.append(_Field((self.length - end) * 8 + shift, bits, f"[{', '.join(map(str, items))}]",
                                      dimension.every, _Listed(items), dimension))
            at = end

    def _move_by_chance(self, dimension: _Dimension, chance: _Chance) -> None:
        key = self._key(dimension)
        self.start[key] = chance.probes[0]
        moved, _ = self._moved(key, chance.probes[1])
        if not chance.laws:
            return
        first, last = (_as_number(probe) for probe in chance.probes)
        expected = first ^ last
        if moved == 0 or expected == 0:
            raise _NoProgram(f"the random {key[1]} has no place in the frame")
        low = (moved & -moved).bit_length() - (expected & -expected).bit_length()
        if low < 0 or moved != expected << low:
            raise _NoProgram(f"the random {key[1]} does not stand in the frame as it is")
        for law in chance.laws:
            self.fields.append(_Field(low + law.low, law.bits, law.text, 1, _Drawn(law), dimension))

    # -- lengths and checksums

    def _layer_starts(self) -> dict[int, int]:
        """Where the layers start that have a checksum, and the IP headers."""
        wanted = {number for number, _ in self.pins}
        if not wanted:
            return {}
        starts = {}
        packet = self.real_packet
        for number, layer in enumerate(self.template.layers):
            if number in wanted or type(layer).__name__ in ("IP", "IPv6") and number < max(wanted):
                starts[number] = 0 if number == 0 else self.length - len(bytes(packet))
            packet = packet.payload
        return starts

    def _grown(self, places: dict[tuple[int, str], int]) -> list[_Sum]:
        """Checksums, and lengths as they are when the frame grows. If it cannot, they keep what they have."""
        starts = self._layer_starts()
        raw = _class("scapy.packet", "Raw")
        padded = any(type(layer).__name__ == "Padding" for layer in self.template.layers)
        grown = b""
        if raw is not _Nothing and not padded:
            try:
                grown = bytes(self.template.packet(self.start, raw(load=b"\0" * _GROWTH)))
            except Exception:  # Scapy raises what it likes where nothing can follow.
                grown = b""
        lengths = self._lengths(grown, places)
        if lengths is not None:
            try:
                sums = self._sums(places, starts, self.length, True)
                made = bytearray(self.real + b"\0" * _GROWTH)
                for offset, start in lengths:
                    made[offset : offset + 2] = (len(made) - start).to_bytes(2, "big")
                for checksum in sums:
                    checksum.write(made)
                if made == grown:
                    self.lengths = lengths
                    return sums
            except _NoProgram:
                pass
        padding = sum(len(bytes(layer)) for layer in self.template.layers if type(layer).__name__ == "Padding")
        return self._sums(places, starts, self.length - padding, False)

    def _lengths(self, grown: bytes, places: dict[tuple[int, str], int]) -> Optional[list[tuple[int, int]]]:
        """16-bit fields that say how long the frame is from some byte on; None if the frame does not grow as others do."""
        if len(grown) != self.length + _GROWTH or grown[self.length :] != b"\0" * _GROWTH:
            return None
        skipped = {at + i for at in places.values() for i in (0, 1)}
        found = []
        at = 0
        while at < self.length:
            if at in skipped or grown[at] == self.real[at]:
                at += 1
                continue
            for start in (at, at - 1):
                before, after = (int.from_bytes(frame[start : start + 2], "big") for frame in (self.real, grown))
                if start >= 0 and after == before + _GROWTH and before <= self.length:
                    found.append((start, self.length - before))
                    at = start + 2
                    break
            else:
                return None
        return found

    def _sums(self, places: dict[tuple[int, str], int], starts: dict[int, int], total: int, grows: bool) -> list[_Sum]:
        sums = []
        for (number, name), offset in sorted(places.items(), reverse=True):
            start = starts[number]
            kind = type(self.template.layers[number]).__name__
            if kind == "IP":
                end: Optional[int] = start + (self.real[start] & 15) * 4
            else:
                end = None if grows else total
            sums.append(self._sum(number, kind, offset, start, end, starts))
        return sums

    def _sum(self, number: int, kind: str, offset: int, start: int, end: Optional[int], starts: dict[int, int]) -> _Sum:
        if offset < start or (offset - start) % 2:
            raise _NoProgram(f"the checksum of {kind} stands at an odd place")
        protocol = 58 if kind.startswith("ICMPv6") else _PROTOCOLS.get(kind)
        pseudo = None
        for above in range(number - 1, -1, -1):
            name = type(self.template.layers[above]).__name__
            if name in ("IP", "IPv6"):
                at = starts[above]
                pseudo = (at + 12, at + 20) if name == "IP" else (at + 8, at + 40)
                break
        plain = _Sum(offset, start, end, None, None, 0)
        guesses = [plain] if protocol is None or pseudo is None else [plain._replace(pseudo=pseudo, protocol=protocol), plain]
        for guess in guesses:
            made = bytearray(self.real)
            guess.write(made)
            if made == self.real:
                return guess
        # A pseudo header with a length or a number of its own: they never vary, so they are one number.
        guess = guesses[0]._replace(protocol=None, end=self.length if end is None else end)
        made = bytearray(self.real)
        made[offset : offset + 2] = b"\0\0"
        right = int.from_bytes(self.real[offset : offset + 2], "big") ^ 0xFFFF
        return guess._replace(add=(right - guess.total(made)) % 0xFFFF)

    # -- proof

    def frame(self, index: int, drawn: dict[tuple[int, str], int]) -> bytes:
        """Frame ``index``, with random values as they are drawn."""
        number = int.from_bytes(self.real, "big")
        for field in self.fields:
            dimension = field.dimension
            if dimension.values is None:
                value = drawn[self._key(dimension)] >> (field.low - drawn[dimension.layer, dimension.name + "/low"])
                value &= (1 << field.bits) - 1
            else:
                value = field.at(index // field.every % dimension.values.count)
            mask = ((1 << field.bits) - 1) << field.low
            number = number & ~mask | value << field.low
        made = bytearray(number.to_bytes(self.length, "big"))
        for checksum in self.sums:
            checksum.write(made)
        return bytes(made)

    def _prove(self) -> None:
        """Some frames, made by Scapy and by the program."""
        if not self.template.dimensions:
            return
        # Nobody comes to the end of more.
        total = min(self.template.count, _NEVER)
        places: dict[str, set[int]] = {}
        for field in self.fields:
            places.setdefault(str(self._key(field.dimension)), set()).add(field.low)
        scattered = any(
            len(lows) > 1 for dimension in self.template.dimensions if dimension.values is not None
            for lows in [places.get(str(self._key(dimension)), set())])
        tries = 64 if scattered else 3
        chosen = {total - 1} | {random.randrange(total) for _ in range(tries)}
        if total <= 32 and scattered:
            chosen = set(range(total))
        for index in chosen:
            varied: dict[tuple[int, str], Any] = {}
            drawn: dict[tuple[int, str], int] = {}
            for dimension in self.template.dimensions:
                key = self._key(dimension)
                if dimension.values is not None:
                    varied[key] = dimension.values[index // dimension.every % dimension.values.count]
                else:
                    self._draw(dimension, varied, drawn)
            try:
                made = bytes(self.template.packet(varied))
            except Exception as error:
                raise _NoProgram(f"Scapy cannot build each of the packets: {error}") from error
            if made != self.frame(index, drawn):
                raise _NoProgram("fields depend on each other in a way that no program says")

    def _draw(self, dimension: _Dimension, varied: dict[Any, Any], drawn: dict[Any, int]) -> None:
        key, chance = self._key(dimension), self.chances[self._key(dimension)]
        own = [field for field in self.fields if field.dimension is dimension]
        number = _as_number(chance.probes[0])
        low = min((field.low for field in own), default=0) - min((law.low for law in chance.laws), default=0)
        for law in chance.laws:
            mask = ((1 << law.bits) - 1) << law.low
            number = number & ~mask | law.draw() << law.low
        varied[key] = chance.make(number)
        drawn[key], drawn[dimension.layer, dimension.name + "/low"] = number, low

    # -- text

    def expression(self) -> str:
        words = [self._text(field) for field in self.fields]
        words += [f"length({offset}, {start})" for offset, start in self.lengths]
        words += [checksum.text() for checksum in self.sums]
        fields = f", fields=[{', '.join(words)}]" if words else ""
        text = f'frame(hex="{self.real.hex()}"{fields})'
        if len(text) > _MOST_TEXT:
            raise _NoProgram(f"its expression has {len(text)} characters; a scenario takes {_MOST_TEXT}")
        return text

    def _text(self, field: _Field) -> str:
        bit = self.length * 8 - field.low - field.bits
        place = f"{bit // 8}.{bit % 8}" if bit % 8 else str(bit // 8)
        if bit % 8 + field.bits > 64:
            raise _NoProgram(f"{field.dimension} moves bits of more than 8 bytes")
        every = f" every={field.every}" if field.every > 1 else ""
        return f"field({place}, {field.bits}, {field.text}{every})"


def _as_number(value: Any) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    number = _number_of(value)
    if number is None and isinstance(value, str):
        return int.from_bytes(value.encode("latin-1"), "big")
    if number is None:
        raise _NoProgram(f"a random value such as {value!r}")
    return number


# ---------------------------------------------------------------------------------------------------------------------------------
# What others call
# ---------------------------------------------------------------------------------------------------------------------------------

_LINKS = ("IP", "IPv6", "ARP")


def _framed(packet: Any) -> Any:
    """A packet that begins with IP, IPv6 or ARP gets an Ethernet header."""
    ether = _class("scapy.layers.l2", "Ether")
    return ether() / packet if type(packet).__name__ in _LINKS and ether is not _Nothing else packet


def _name(packet: Any) -> str:
    return "/".join(type(layer).__name__ for layer in _layers(packet))[:200]


def count(packet: Any) -> int:
    """How many packets a template stands for; random values do not count."""
    return _Template(_framed(packet)).count


def translate(obj: Any, limit: int = MOST_PACKETS, *, samples: int = SAMPLES) -> Union[dict[str, Any], Frames]:
    """A template of Scapy becomes a scenario (as ``netdyno send FILE`` reads it) with one stream.

    What cannot be a program becomes `Frames` that Scapy built, ``limit`` of them at most.
    """
    packet = _framed(obj)
    try:
        template = _Template(packet)
        if template.count == 0:
            raise NotTranslatable(f"{_name(obj)}: a field has no values, so this stands for no packet")
        try:
            expression = _Program(template).expression()
        except _NoProgram:
            raise
        except Exception as error:
            raise _failed(obj, error) from error
    except _NoProgram as why:
        return _enumerated(packet, obj, limit, samples, str(why))
    return {"name": _name(obj), "streams": [{"name": _name(obj), "frame": expression}]}


def _failed(packet: Any, error: Exception) -> NotTranslatable:
    return NotTranslatable(
        # Scapy's words may be several lines.
        f"Scapy cannot build {_name(packet)}: {type(error).__name__}: {' '.join(str(error).split())}", remedy="try bytes(packet) or packet.show2()")


def _enumerated(packet: Any, obj: Any, limit: int, samples: int, why: str) -> Frames:
    """All packets of a template, or of a random one some."""
    rounds = 1
    try:
        template = _Template(packet)
    except _NoProgram:
        # A set that Scapy alone can go through: whether it ends within the limit shows.
        return _collect(frames(obj), limit, why, _name(obj))
    if template.count > limit:
        raise NotTranslatable(
            f"{_name(obj)} stands for {template.count} packets, and is no packet program: {why}",
            remedy=f"let fewer of its fields vary, or raise limit={limit}")
    if any(dimension.values is None for dimension in template.dimensions):
        rounds = max(1, math.ceil(min(samples, limit) / template.count))

    def all_rounds() -> Iterator[bytes]:
        for _ in range(rounds):
            yield from frames(obj)

    return _collect(all_rounds(), max(limit, 1), why, _name(obj))


def _collect(source: Iterable[bytes], limit: int, why: Optional[str], name: str = "the source") -> Frames:
    made, size = Frames(), 0
    made.reason = why
    for frame in source:
        if len(made) == limit:
            raise NotTranslatable(
                f"{name} has more than {limit} packets{f', and is no packet program: {why}' if why else ''}",
                remedy="raise limit=, or hand over fewer")
        size += len(frame)
        if size > MOST_BYTES:
            raise NotTranslatable(f"{name} has more than {MOST_BYTES} bytes in {len(made) + 1} packets", remedy="hand over fewer")
        made.append(frame)
    if not made:
        raise NotTranslatable(f"{name} has no packets")
    return made


def frames(obj: Any) -> Iterator[bytes]:
    """Each packet of a template, a list, a generator or a reader, as bytes, in Scapy's order; one is built when it is asked for."""
    if isinstance(obj, (bytes, bytearray, memoryview)):
        yield bytes(obj)
    elif is_packet(obj):
        whole = _addressed(_framed(obj))
        # One that was taken apart, or was itself one of a template's, stands for itself alone: to ask Scapy costs as much as to build it.
        alone = all(getattr(layer, "explicit", False) for layer in _layers(whole))
        for packet in [whole] if alone else whole:
            try:
                made = bytes(packet)
            except Exception as error:
                raise _failed(obj, error) from error
            yield made
    elif isinstance(obj, (str, dict)) or not hasattr(obj, "__iter__"):
        raise NotTranslatable(f"a packet of Scapy, bytes, or a list or generator of these is expected, not {type(obj).__name__}")
    else:
        for item in obj:
            if isinstance(item, tuple) and item and is_packet(item[0]):
                # What sr() returns: the packet that was sent, and its answer.
                for packet in item:
                    yield from frames(packet)
            elif not (is_packet(item) or isinstance(item, (bytes, bytearray, memoryview))):
                raise NotTranslatable(f"a list of packets holds {type(item).__name__}: only packets of Scapy and bytes are frames")
            else:
                yield from frames(item)


def _addressed(packet: Any) -> Any:
    """The packet with Ethernet addresses in the place of those that Scapy would ask for."""
    copied = False
    layers = list(_layers(packet))
    for number, layer in enumerate(layers):
        found = _Template._addresses(layer)
        if found:
            if not copied:
                packet, copied = packet.copy(), True
                layers = list(_layers(packet))
            for name, address in found.items():
                layers[number].setfieldval(name, address)
    return packet


def built(obj: Any) -> list[bytes]:
    """An item of a list: the frames of a template, of which there may be so many as ``translate`` builds."""
    if is_packet(obj):
        # Nearly all that stand in lists are packets and no templates, and nothing of these is looked at.
        found = list(islice(frames(obj), MOST_PACKETS + 1))
        if len(found) > MOST_PACKETS:
            raise NotTranslatable(f"{_name(obj)} in a list stands for more than {MOST_PACKETS} packets", remedy="send it by itself")
        return found
    return [frame for packet in obj for frame in built(packet)]


def each(obj: Any) -> list[Any]:
    """The packets of a template or a source, with an Ethernet header each, as they are sent."""
    found: list[Any] = []
    for item in [obj] if is_packet(obj) else obj:
        if not is_packet(item):
            raise NotTranslatable(f"a list of packets holds {type(item).__name__}: only packets of Scapy have answers")
        found += islice(_addressed(_framed(item)), MOST_PACKETS + 1 - len(found))
        if len(found) > MOST_PACKETS:
            raise NotTranslatable(f"these are more than {MOST_PACKETS} packets", remedy="let fewer fields vary")
    return found


def time_of(obj: Any) -> int:
    """When it was captured or made, in nanoseconds since 1970."""
    packet = obj if is_packet(obj) else obj[0]
    return int(packet.time * 1_000_000_000)
