"""Results: what was asked, where, and what came of it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core, _model
from ._record import Record, Rows
from .errors import NetdynoError, Short

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

__all__ = ["Comparison", "Figure", "NotMeasured", "Report", "compare", "read"]


class NotMeasured(NetdynoError, AttributeError):
    """This run did not measure that; the message says what would have.

    It is an AttributeError, too: ``hasattr(report, "latency")`` tells whether it was measured.
    """


class Figure(Record):
    """One figure of a result, as in figures.csv."""

    figure: str
    """Its key. It never changes its meaning: ``latency_p99``, ``lost_frames``."""
    value: float
    """Its value, in ``unit``."""
    unit: str
    """``frames_per_second``, ``bits_per_second``, ``ns``, ``ratio``, ``count``, ..."""
    better: str
    """``higher`` or ``lower``, or empty where neither is better."""
    name: str
    """For people; of several values of one figure each has a name of its own."""
    meaning: str
    """One sentence."""

    _MEMBERS = {name: ("", None) for name in ("figure", "value", "unit", "better", "name", "meaning")}


class Report(_model.ReportData):
    """The result of one job: ``netdyno.report/2``, by attributes.

    Whatever the JSON holds is an attribute of the same name: ``r.result.pacing.lateness_ns.p99``; what was not measured is None there.
    What everybody reads is at hand: ``r.tx``, ``r.rx``, ``r.loss``, ``r.latency``, ``r.throughput``; what was not measured raises
    `NotMeasured` there, which says why.

    A report is frozen; it can be compared by ``==`` and pickled.
    """

    _MEMBERS = _model.ReportData._MEMBERS
    _CLASSES = _model.ReportData._CLASSES

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Of JSON, of this version's layout or an earlier one's."""
        return cls(json.loads(_core.normal(text)))

    # What everybody asks.

    @property
    def ok(self) -> bool:
        """Whether it was done as asked: exit status 0."""
        return self.result.verdict.outcome == "done"

    @property
    def verdict(self) -> _model.Verdict:
        """Whether it was done as asked: ``outcome`` is done, short or failed; ``reasons`` says why; ``codes`` are for programs."""
        return self.result.verdict

    @property
    def exit_status(self) -> int:
        """What the command ends with: 0 done, 1 short of what was asked, 2 not done."""
        return {"done": 0, "short": 1}.get(self.result.verdict.outcome, 2)

    @property
    def tx(self) -> _model.Tx:
        """What was sent."""
        return self._measured(self.result.tx, "what was sent", "no frames were sent by this job")

    @property
    def rx(self) -> _model.Rx:
        """What arrived."""
        return self._measured(self.result.rx, "what arrived", "name the interface where it does: measure=")

    @property
    def loss(self) -> _model.Loss:
        """What was sent and did not arrive: ``frames`` and ``ratio`` (0 to 1)."""
        return self._measured(self.result.loss, "loss", "name the interface where frames arrive: measure=")

    @property
    def latency(self) -> _model.Distribution:
        """Delays of signed frames, in nanoseconds: ``min``, ``mean``, ``p50``, ``p90``, ``p99``, ``p999``, ``max``."""
        return self._measured(
            self.result.latency_ns,
            "latency",
            "only signed frames tell it: they need 18 bytes of room, and measure= where they arrive",
        )

    @property
    def throughput(self) -> _model.Throughput:
        """The throughput that a search found."""
        return self._measured(self.result.throughput, "a throughput", "nd.search('throughput', ...) finds one")

    @property
    def trials(self) -> Rows[_model.Trial]:
        """The trials of a search, in the order in which they were done."""
        return self.result.trials

    @property
    def figures(self) -> Rows[Figure]:
        """All its figures, as in figures.csv."""
        kept: Rows[Figure] | None = self._kept.get(" figures")
        if kept is None:
            rows = csv.DictReader(io.StringIO(_core.figures(self._line())))
            kept = Rows(Figure({**row, "value": float(row["value"])}) for row in rows)
            self._kept[" figures"] = kept
        return kept

    def figure(self, key: str, name: str = "") -> float:
        """The value of a figure by its key; of several of that key, the first whose name begins with ``name``."""
        of_key = [figure for figure in self.figures if figure.figure == key]
        for figure in of_key:
            if figure.name.startswith(name):
                return figure.value
        if of_key:
            there = "; ".join(figure.name for figure in of_key)
            raise NotMeasured(f"no `{key}` of this result has a name that begins with `{name}`; they are: {there}")
        there = ", ".join(dict.fromkeys(figure.figure for figure in self.figures))
        raise NotMeasured(f"this result has no figure `{key}`; it has {there or 'none'}")

    def raise_for_status(self) -> Self:
        """Raises `Short` unless it was done as asked; else it is the report itself."""
        if not self.ok:
            raise Short(self)
        return self

    # As something else.

    def to_json(self) -> str:
        """As ``netdyno ... --json`` prints it."""
        return json.dumps(self._raw, indent=2, ensure_ascii=False)

    def to_text(self, width: int = 100, *, verbose: bool = False) -> str:
        """The summary that a terminal shows."""
        return _core.text(self._line(), width, verbose)

    def to_html(self) -> str:
        """The whole page, which opens offline."""
        return _core.page(self._line())

    def to_pandas(self) -> Any:
        """Its figures as a ``pandas.DataFrame``; ``report.intervals.to_pandas()`` is the run over time."""
        return self.figures.to_pandas()

    def save(self, folder: str | os.PathLike[str]) -> list[str]:
        """Writes result.json, report.html, figures.csv and intervals.csv into a folder, as ``--report`` does; their names."""
        return [os.fspath(path) for path in _core.save(self._line(), os.fspath(folder))]

    def _repr_html_(self) -> str:
        return _core.fragment(self._line())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        verdict = self.result.verdict
        said = "; ".join(verdict.reasons)
        return f"<netdyno.Report of {self.command}: {verdict.outcome}{': ' + said if said else ''}>"

    def _line(self) -> str:
        return json.dumps(self._raw)

    def _measured(self, found: T | None, what: str, mend: str) -> T:
        if found is None:
            because = "; ".join(self.result.verdict.reasons)
            why = f" (the run: {because})" if because else ""
            raise NotMeasured(f"{what} was not measured by this {self.command}{why}", remedy=mend)
        return found


class Comparison(Record):
    """Two sides of results beside each other: ``netdyno.compare/1``, by attributes.

    ``outcome`` is ``worse`` if any figure of B is, else ``better`` if any is, else ``same``, or ``not_judged``.
    """

    schema: str
    command: str
    outcome: str
    figures: tuple[dict[str, Any], ...]
    conditions: tuple[dict[str, Any], ...]
    offered_loads: tuple[dict[str, Any], ...]
    not_in_all: tuple[str, ...]
    notes: tuple[str, ...]

    _MEMBERS = {
        **{name: ("", None) for name in ("schema", "command", "outcome")},
        **{name: ("*", ()) for name in ("a", "b", "figures", "conditions", "offered_loads", "not_in_all", "notes")},
    }

    @classmethod
    def _of(cls, of: tuple[str, str, str]) -> Self:
        made = cls(json.loads(of[0]))
        made._kept[" text"], made._kept[" page"] = of[1], of[2]
        return made

    @property
    def ok(self) -> bool:
        """Whether nothing of B is worse than it is of A."""
        return self.outcome != "worse"

    @property
    def worse(self) -> tuple[dict[str, Any], ...]:
        """The figures that are worse."""
        return tuple(figure for figure in self.figures if figure["change"] == "worse")

    def raise_for_status(self) -> Self:
        """Raises `NetdynoError` if anything of B is worse than of A; else it is the comparison itself."""
        if not self.ok:
            names = ", ".join(figure["name"] for figure in self.worse)
            raise NetdynoError(f"B is worse than A: {names}")
        return self

    def to_json(self) -> str:
        """As ``netdyno compare --json`` prints it."""
        return json.dumps(self._raw, indent=2, ensure_ascii=False)

    def to_text(self) -> str:
        """As ``netdyno compare`` prints it."""
        # Where a setting is spoken of, it is an argument of `compare`.
        return str(self._kept.get(" text", self.to_json())).replace("`.against`", "lists of them")

    def to_html(self) -> str:
        """The page with the plots, which opens offline."""
        return str(self._kept.get(" page", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Comparison._of, ((json.dumps(self._raw), self.to_text(), self.to_html()),))

    def __str__(self) -> str:
        return self.to_text()


def read(path: str | os.PathLike[str]) -> Report:
    """A result from disk: a folder of ``--report``, its result.json or report.html, or what ``--json`` printed."""
    return Report(json.loads(_core.read(os.fspath(path))))


def compare(
    a: Report | str | os.PathLike[str] | list[Report],
    b: Report | str | os.PathLike[str] | list[Report],
    *,
    least: float | str = 0.0,
) -> Comparison:
    """Compares results: A before, B after. Each side is a report, a path of one, or a list of repeated ones.

    Differences of less than ``least`` (a share: 0.05, "5%") count as none. What varies by itself is no difference: repeat
    runs, or let them be long enough to have intervals.
    """
    if isinstance(least, str):
        least = float(least[:-1]) / 100 if least.endswith("%") else float(least)
    return Comparison._of(_core.compare(_side(a, "A"), _side(b, "B"), least))


def _side(given: Any, name: str) -> list[tuple[str, str]]:
    many = list(given) if isinstance(given, (list, tuple)) else [given]
    named = []
    for number, one in enumerate(many, 1):
        if isinstance(one, Report):
            named.append((f"{name}{number}" if len(many) > 1 else name, one._line()))
        elif isinstance(one, Mapping):
            named.append((f"{name}{number}" if len(many) > 1 else name, json.dumps(dict(one))))
        else:
            named.append((os.fspath(one), _core.read(os.fspath(one))))
    return named
