"""What captures hold, in this process and without rights."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _core
from ._record import Record

__all__ = ["Info", "info", "read_frames", "read_packets"]


class Info(Record):
    """What a capture holds, as ``netdyno info --json`` says it: what is not listed here is in ``raw``."""

    frames: int
    """Frames."""
    bytes: int
    """Their bytes on the wire, without FCS."""
    duration_ns: int | None
    """From the first frame to the last."""
    flows: int
    """5-tuples."""
    flows_exact: bool
    """False: there are at least so many flows."""
    conversations: int
    """The same with both directions together."""
    warnings: tuple[str, ...]
    """What is odd about it."""

    _MEMBERS = {
        **{name: ("", None) for name in ("frames", "bytes", "duration_ns", "flows", "flows_exact", "conversations")},
        "warnings": ("*", ()),
    }

    def __str__(self) -> str:
        return str(self._kept.get(" text") or self.__repr__())


def info(path: str | os.PathLike[str], *, skip_corrupt: bool = False) -> Info:
    """What a capture holds. With ``skip_corrupt``, of a damaged one what is sound before the damage."""
    name = os.fspath(path)
    found = Info(json.loads(_core.info(name, skip_corrupt)))
    found._kept[" text"] = _core.info_text(name, skip_corrupt)
    return found


def read_frames(path: str | os.PathLike[str], *, limit: int = 1_000_000, skip_corrupt: bool = False) -> list[tuple[int, bytes]]:
    """The frames of a capture, at most ``limit``: when each was captured, in nanoseconds since 1970, and its bytes."""
    return _core.frames(os.fspath(path), limit, skip_corrupt)


def read_packets(path: str | os.PathLike[str], *, limit: int = 1_000_000, skip_corrupt: bool = False) -> list[Any]:
    """The frames of a capture as packets of Scapy, with their times; Scapy is imported now, and not before."""
    from scapy.layers.l2 import Ether  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from scapy.utils import EDecimal  # type: ignore[import-not-found,import-untyped,unused-ignore]

    packets = []
    for at, frame in read_frames(path, limit=limit, skip_corrupt=skip_corrupt):
        packet = Ether(frame)
        packet.time = EDecimal(at) / 1_000_000_000
        packets.append(packet)
    return packets
