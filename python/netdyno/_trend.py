"""Results over time."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._record import Record, Rows
from .errors import NetdynoError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Trend", "TrendFigure", "TrendNotDone", "TrendSeries", "trend"]


class TrendFigure(Record):
    """A figure over time."""

    key: str
    """As `Report.figure` takes it: ``latency_p99``."""
    name: str
    """For people."""
    unit: str
    better: str
    """``higher`` or ``lower``."""
    outcome: str
    """Of the newest result's group: ``worse``, ``better``, ``same`` or ``not_judged``."""
    values: tuple[float | None, ...]
    """One for each result of the series; None where a result does not have it."""
    groups: tuple[dict[str, Any], ...]
    """Stretches with one mean."""
    exceptions: tuple[int, ...]
    """Which results stand apart alone."""
    shift: dict[str, Any] | None
    """How the newest group differs from the one before: ``after``, ``since``, ``before``, ``now``, ``ratio``, ``changed``."""

    _MEMBERS = {
        **{name: ("", None) for name in ("key", "name", "unit", "better", "outcome", "shift")},
        **{name: ("*", ()) for name in ("values", "groups", "exceptions")},
    }


class TrendSeries(Record):
    """Results that are alike, in the order in which their runs began."""

    name: str
    """What was asked for, and at which interfaces."""
    host: str
    results: tuple[dict[str, Any], ...]
    """Each with its ``path`` and when it ``started``."""
    marks: tuple[dict[str, Any], ...]
    """Where conditions changed."""
    figures: Rows[TrendFigure]
    """Those that became worse first."""

    _MEMBERS = {"name": ("", None), "host": ("", ""), "results": ("*", ()), "marks": ("*", ()), "figures": ("*TrendFigure", ())}
    _CLASSES = {"TrendFigure": TrendFigure}


class TrendNotDone(Record):
    """A job whose newest run was not done: it is in no series."""

    name: str
    """What was asked for."""
    path: str
    """The newest result's file, within the folder."""
    started: str
    reason: str
    """Why it was not done."""
    runs: int
    """So many runs of the job in a row, the newest ones."""

    _MEMBERS = {name: ("", None) for name in ("name", "path", "started", "reason", "runs")}


class Trend(Record):
    """A folder of results over time: ``netdyno.trend/1``, by attributes (docs/trend.md)."""

    schema: str
    folder: str
    outcome: str
    """``worse`` if any figure is, else ``better`` if any is, else ``same``, or ``not_judged``."""
    results: int
    """Results in all series."""
    before_since: int
    left_out: tuple[dict[str, Any], ...]
    """Files that are in no series, each with the reason."""
    other_files: int
    notes: tuple[str, ...]
    not_done: Rows[TrendNotDone]
    """Jobs whose newest run was not done."""
    series: Rows[TrendSeries]
    """Those that became worse first."""

    _MEMBERS = {
        **{name: ("", None) for name in ("schema", "folder", "outcome", "results", "before_since", "other_files")},
        **{name: ("*", ()) for name in ("left_out", "notes")},
        "not_done": ("*TrendNotDone", ()),
        "series": ("*TrendSeries", ()),
    }
    _CLASSES = {"TrendNotDone": TrendNotDone, "TrendSeries": TrendSeries}

    @classmethod
    def _of(cls, of: tuple[str, str, str, str, str]) -> Self:
        made = cls(json.loads(of[0]))
        for name, text in zip((" text", " page", " junit", " markdown"), of[1:]):
            made._kept[name] = text
        return made

    @property
    def ok(self) -> bool:
        """Whether no figure of the newest result of a series lies in a worse group than the one before, and every job's newest run was done."""
        return self.outcome != "worse" and not self.not_done

    @property
    def worse(self) -> tuple[TrendFigure, ...]:
        """The figures that became worse, of all series."""
        return tuple(figure for series in self.series for figure in series.figures if figure.outcome == "worse")

    def raise_for_status(self) -> Self:
        """Raises `NetdynoError` if a figure became worse or a job's newest run was not done; else it is the trend itself."""
        if self.worse:
            raise NetdynoError(f"worse than before: {', '.join(figure.name for figure in self.worse)}")
        if self.not_done:
            raise NetdynoError(f"the newest run was not done: {', '.join(f'{run.name} ({run.reason})' for run in self.not_done)}")
        return self

    def to_json(self) -> str:
        """As ``netdyno trend --json`` prints it."""
        return json.dumps(self._raw, indent=2, ensure_ascii=False)

    def to_text(self) -> str:
        """As ``netdyno trend`` prints it."""
        return str(self._kept.get(" text", self.to_json()))

    def to_html(self) -> str:
        """The page with a small plot for each figure, which opens offline."""
        return str(self._kept.get(" page", ""))

    def to_junit(self) -> str:
        """JUnit's XML, a test for each figure."""
        return str(self._kept.get(" junit", ""))

    def to_markdown(self) -> str:
        """A summary, as for ``$GITHUB_STEP_SUMMARY``."""
        return str(self._kept.get(" markdown", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Trend._of, ((json.dumps(self._raw), self.to_text(), self.to_html(), self.to_junit(), self.to_markdown()),))

    def __str__(self) -> str:
        return self.to_text()


def trend(
    folder: str | os.PathLike[str],
    *,
    figure: str | Sequence[str] = (),
    least: float | str = 0.0,
    since: str | None = None,
    any_host: bool = False,
) -> Trend:
    """Which figures changed in a folder of results, after which result, and what else changed there.

    figure: looks at this figure alone, or these: ``latency_p99``, ``throughput:64``.
    least: changes of less than this share (0.02, "2%") count as none, however sure they are.
    since: results of before this day, time or age count for nothing: ``2026-11-28``, ``30d``.
    any_host: results of different hosts are put beside each other.
    """
    if isinstance(least, str):
        least = float(least[:-1]) / 100 if least.endswith("%") else float(least)
    figures = [figure] if isinstance(figure, str) else list(figure)
    return Trend._of(_core.trend(os.fspath(folder), figures, least, since, any_host))
