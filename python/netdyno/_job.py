"""From what people write in Python to a job as data, and the files that go with it."""

from __future__ import annotations

import datetime
import difflib
import itertools
import json
import logging
import os
import re
import struct
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from . import _core, _table
from .errors import NetdynoError, UsageError

Error = TypeVar("Error", bound=NetdynoError)
LOG = logging.getLogger("netdyno")

# Bytes of frames that are handed over, at most.
MOST_BYTES = 1 << 30
# What jobs have besides the settings of the table: where frames leave and arrive, and a plugin.
_APART = ("links", "plugin", "on", "measure")
# Kinds of jobs whose ports are a pair of interfaces, and where those stand in the job.
_LINKS = {"send": "", "replay": "", "trial": "bench.", "search": "bench."}


class Frames(list[bytes]):
    """Frames as bytes, which stand where captures do."""

    times: list[int] | None = None
    """When each was captured, in nanoseconds since 1970; None: they have no times of their own."""
    reason: str | None = None
    """Why the packet of Scapy that they were built of is no program."""


@dataclass
class Job:
    """A job, ready to be started: `netdyno.job/1` as data, and the contents of the files that it names.

    ``nd.job(nd.send, "ipv4/udp", on="tx0")`` makes one; ``nd.start(job)`` starts it.
    """

    data: dict[str, Any]
    """As docs/jobs.md describes it."""
    contents: dict[str, bytes] = field(default_factory=dict)
    """Files that are not on disk: what the job calls them, and what they hold."""
    find: str | None = None

    @property
    def kind(self) -> str:
        """What is done: ``send``, ``search``, ..."""
        return str(self.data["kind"])

    def to_json(self) -> str:
        """As a file for ``netdyno run``, if it needs no contents."""
        return json.dumps(self.data, indent=2, ensure_ascii=False)

    def check(self) -> Job:
        """The same as it is written in full. Raises `UsageError` where it makes no sense, which names the argument."""
        self.asks()
        return self

    def asks(self) -> dict[str, Any]:
        """What it needs to be allowed: interfaces in use, files to be written, commands to be run."""
        try:
            full, asks = _core.check(json.dumps(self.data))
        except UsageError as error:
            raise self.worded(error) from None
        self.data = json.loads(full)
        asked: dict[str, Any] = json.loads(asks)
        return asked

    def worded(self, error: Error) -> Error:
        """An error that names arguments instead of paths in the job."""
        setting = error.setting
        if setting is not None:
            path = re.sub(r"^jobs\[\d+\]\.", "", setting)
            named = _table.by_path(self.kind, self.find, path)
            setting = named.argument if named else path
        error.message = _table.worded(self.kind, self.find, error.message)
        if error.remedy is not None:
            error.remedy = _table.worded(self.kind, self.find, error.remedy)
        error.args = (error.message,)
        error.setting = setting
        return error


def build(kind: str, find: str | None, given: Mapping[str, Any]) -> Job:
    """A job of the arguments of a verb."""
    data: dict[str, Any] = {"schema": _core.JOB, "kind": kind}
    job = Job(data, {}, find)
    rows = {setting.argument: setting for setting in _table.settings(kind, find)}
    prefix = _LINKS.get(kind)
    if find is not None:
        _put(data, f"find.{find}", {}, split=False)
    for name, value in given.items():
        if value is None:
            continue
        if name in rows:
            setting = rows[name]
            if setting.shape == "flag" and isinstance(value, (bool, Mapping)) and _holds(rows, setting.path):
                # A part of the job, which has settings of its own: `lab=True`, `lab={"dut": "router"}`.
                if value is not False:
                    _put(data, setting.path, {} if value is True else dict(value))
                continue
            _put(data, setting.path, _value(setting, value, job))
        elif prefix is not None and name in ("on", "measure"):
            pass
        elif name == "plugin" and prefix is not None:
            _put(data, f"{prefix}plugin", {"name": value} if isinstance(value, str) else value)
        elif name == "links" and prefix is not None:
            _put(data, f"{prefix}links", [dict(link) for link in value])
        elif any(setting.path.startswith(f"{name}.") for setting in rows.values()):
            # A part of the job as a whole: `lab=True`, `edits={"vlan_add": 7}`.
            if value is not False:
                _put(data, name, {} if value is True else dict(value))
        else:
            known = [*rows, *(_APART if prefix is not None else ())]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(known))}"
            called = kind.replace("-", "_")
            raise UsageError(f"nd.{called} has no argument `{name}`", setting=name, hint=hint)
    if prefix is not None:
        links = _links(given.get("on"), given.get("measure"))
        if links:
            _put(data, f"{prefix}links", links)
    return job


def _holds(rows: Mapping[str, _table.Setting], path: str) -> bool:
    return any(setting.path.startswith(f"{path}.") for setting in rows.values())


def _links(on: Any, measure: Any) -> list[dict[str, str]]:
    """Pairs of interfaces: each `on` with the `measure` at its place."""
    leave, arrive = _names(on), _names(measure)
    if len(leave) > 1 and len(arrive) > 1 and len(leave) != len(arrive):
        raise UsageError(
            f"{len(leave)} interfaces send and {len(arrive)} measure: each `on` has the `measure` at its place",
            setting="measure",
        )
    links = []
    for place in range(max(len(leave), len(arrive))):
        link = {}
        if place < len(leave):
            link["on"] = leave[place]
        if place < len(arrive):
            link["measure"] = arrive[place]
        links.append(link)
    return links


def _names(given: Any) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str):
        return [name.strip() for name in given.split(",")]
    return [str(name) for name in given] if isinstance(given, (list, tuple)) else [str(given)]


def _put(data: dict[str, Any], path: str, value: Any, *, split: bool = True) -> None:
    """Puts a value at its path; a struct that is there already is completed."""
    names = path.split(".") if split else path.split(".", 1)
    for name in names[:-1]:
        data = data.setdefault(name, {})
    last = names[-1]
    if isinstance(value, dict) and isinstance(data.get(last), dict):
        data[last].update(value)
    else:
        data[last] = value


def _value(setting: _table.Setting, value: Any, job: Job) -> Any:
    """A value as the job has it."""
    if setting.path.split(".")[-1] == "what":
        return _what(value, job)
    if setting.path == "captures":
        return _captures(value, job)
    if setting.shape == "many":
        many = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
        return [_one(setting, one) for one in many]
    if setting.shape == "pair":
        pair = _names(value) if isinstance(value, str) else list(value)
        return [str(one) for one in pair]
    if setting.shape == "flag":
        if not isinstance(value, bool):
            raise UsageError(f"{value!r} is neither True nor False", setting=setting.argument)
        return value
    return _one(setting, value)


def _captures(given: Any, job: Job) -> list[str]:
    """Names of files as they stand; what else is given is one capture: frames as bytes, or packets of Scapy with their times."""
    many = given if isinstance(given, (list, tuple, Frames)) else [given]
    if not isinstance(given, Frames) and all(isinstance(one, (str, os.PathLike)) for one in many):
        return [str(os.fspath(one)) for one in many]
    frames = given if isinstance(given, Frames) else _source(given, timed=True)
    job.contents["frames.pcap"] = capture(frames, frames.times)
    return ["frames.pcap"]


def _one(setting: _table.Setting, value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, datetime.timedelta):
        nanoseconds = (value.days * 86_400 + value.seconds) * 1_000_000_000 + value.microseconds * 1000
        return f"{nanoseconds}ns"
    if isinstance(value, bool):
        return value if setting.switch else str(value).lower()
    if isinstance(value, (int, float)):
        if setting.unit is not None:
            return f"{_decimal(value)}{setting.unit}"
        return value if setting.number else _decimal(value)
    if isinstance(value, str):
        return setting.other_words.get(value, value)
    if isinstance(value, (list, tuple)):
        # Lists of sizes, of addresses: as they are written, with commas.
        return ",".join(str(one) for one in value)
    return str(value)


def _decimal(value: float) -> str:
    """A number without an exponent, exactly as it is written."""
    if isinstance(value, int):
        return str(value)
    text = repr(value)
    return f"{value:.12f}".rstrip("0").rstrip(".") if "e" in text else text.removesuffix(".0")


def _what(value: Any, job: Job) -> str:
    """What is sent: an expression or the name of a file as it stands; a scenario as a dict; packets of Scapy; frames as bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    stand_in = value if isinstance(value, Mapping) else translated(value)
    if isinstance(stand_in, Mapping):
        job.contents["scenario.yaml"] = json.dumps(dict(stand_in)).encode()
        return "scenario.yaml"
    raise UsageError(
        "frames as bytes are replayed: give them to nd.send alone, or write a capture and name it",
        setting="what",
    )


def translated(value: Any) -> Mapping[str, Any] | Frames:
    """Packets as a scenario, or as the bytes of their frames. Scapy is imported by nobody but who made them."""
    scapy = _scapy()
    if scapy is not None and scapy.is_packet(value):
        made: Mapping[str, Any] | Frames = scapy.translate(value)
        if isinstance(made, Frames):
            LOG.info("this is no packet program, and Scapy built %d frames: %s", len(made), made.reason)
        return made
    return _source(value)


def _scapy() -> Any:
    """What knows Scapy, if anybody has imported Scapy."""
    if "scapy" not in sys.modules:
        return None
    from . import _scapy as known

    return known


def _source(value: Any, *, timed: bool = False) -> Frames:
    """Frames of bytes, of packets of Scapy, or of a list, a generator or a reader of these; with ``timed``, with the times of packets."""
    frames, size, scapy = Frames(), 0, _scapy()
    if isinstance(value, (bytes, bytearray, memoryview)) or (scapy is not None and scapy.is_packet(value)):
        value = [value]
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise UsageError(
            f"{type(value).__name__} is nothing that can be sent: give an expression ('ipv4/udp'), a scenario (a file's name or a dict),"
            " a packet of Scapy, or frames as bytes",
            setting="what",
        )
    times: list[int] | None = [] if timed else None
    for number, one in enumerate(value):
        if isinstance(one, (bytes, bytearray, memoryview)):
            found, times = [bytes(one)], None
        elif scapy is not None and scapy.is_source_item(one):
            try:
                found = scapy.built(one)
            except UsageError as error:
                error.message = f"item {number}: {error.message}"
                error.args = (error.message,)
                raise
            if times is not None:
                # A template has one time, and so have all packets that it stands for.
                times += [scapy.time_of(one)] * len(found)
        else:
            raise UsageError(f"item {number} is {type(one).__name__}: neither bytes nor a packet of Scapy", setting="what")
        frames += found
        size += sum(map(len, found))
        if size > MOST_BYTES:
            raise UsageError(
                f"the first {number + 1} items have more than {MOST_BYTES >> 30} GiB",
                setting="what",
                remedy="write a capture (wrpcap) and name it",
            )
    if not frames:
        raise UsageError("no frame is in it", setting="what")
    frames.times = times
    return frames


def capture(frames: Iterable[bytes], times: Iterable[int] | None = None) -> bytes:
    """Frames as a capture (pcap, nanoseconds, Ethernet), at their times or a microsecond apart."""
    begin = time.time_ns()
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)]
    for number, (frame, at) in enumerate(zip(frames, itertools.count(begin, 1000) if times is None else times)):
        if len(frame) > 262_144:
            raise UsageError(f"frame {number} has {len(frame)} bytes; a capture holds frames of up to 262144", setting="what")
        parts.append(struct.pack("<IIII", at // 1_000_000_000, at % 1_000_000_000, len(frame), len(frame)))
        parts.append(frame)
    return b"".join(parts)
