"""How a run stands while it lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _snapshot_model
from ._record import Record

__all__ = ["Flow", "Snapshot"]


class Flow(Record):
    """Frames one way: how many since the start, and how many a second since the snapshot before."""

    frames: int
    """Frames since the start."""
    bytes: int
    """Their bytes: layer 2 without FCS."""
    rate: float | None
    """Frames per second since the snapshot before; None of the first."""
    bits_per_second: float | None
    """Bits per second of layer 2 since the snapshot before; None of the first."""
    lost: int | None
    """Frames that have not arrived although they had time to; None where that is not known. Of what arrives only."""

    _MEMBERS = {name: ("", None) for name in ("frames", "bytes", "rate", "bits_per_second", "lost")}


class Snapshot(_snapshot_model.SnapshotData):
    """How a run stands at one moment. All counts are since its start; what is not known is None.

    ``s.tx.rate`` and ``s.rx.lost`` are at hand; all that docs/snapshot.schema.json lists is an attribute of the same name.
    """

    _MEMBERS = {**_snapshot_model.SnapshotData._MEMBERS, "tx": ("Flow", None), "rx": ("Flow", None)}
    _CLASSES = {**_snapshot_model.SnapshotData._CLASSES, "Flow": Flow}

    if TYPE_CHECKING:
        tx: Flow | None  # type: ignore[assignment]
        rx: Flow | None  # type: ignore[assignment]

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.elapsed_ns / 1e9


def of(raw: dict[str, Any], before: dict[str, Any] | None) -> Snapshot:
    """A snapshot with the rates since the one before."""
    made = dict(raw)
    for way in ("tx", "rx"):
        now = raw.get(way)
        if not isinstance(now, dict):
            continue
        flow = {"frames": now.get("frames", 0), "bytes": now.get("bytes", 0)}
        then = before.get(way) if before else None
        passed = raw.get("elapsed_ns", 0) - (before.get("elapsed_ns", 0) if before else 0)
        if isinstance(then, dict) and passed > 0:
            flow["rate"] = (flow["frames"] - then.get("frames", 0)) * 1e9 / passed
            flow["bits_per_second"] = (flow["bytes"] - then.get("bytes", 0)) * 8e9 / passed
        if way == "rx" and raw.get("lost_frames") is not None:
            flow["lost"] = raw["lost_frames"]
        made[way] = flow
    return Snapshot(made)
